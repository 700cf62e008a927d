//! Running processes, and what remains of them when they have been stopped.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench::memory::{self as own_memory, Made};
use tench::server::delete_in_parts;
use tench_abi::layout::slot;
use tench_abi::{CapAddress, Rights};
use tench_boot::Content;
use tench_loader::fault::Layout;
use tench_loader::{LoadError, Process, Schedule};
use tench_sys::{Cap, Endpoint, Error as KernelError, Notification, OWN_CSPACE};

use super::memory::ProcessMemory;
use super::{SERVICE, Terms};

/// Preemption points that the kernel passes in one part of deleting a process's objects: some 60,000 instructions, for
/// which a request that arrives meanwhile waits.
const PART: u64 = 48;
/// Time slices in a second.
const SLICES_PER_SECOND: u64 = 100;

/// Data kept for a running process.
pub struct RunningProcess {
    /// Kernel objects of the process.
    pub process: Process,
    /// Layout of its address space.
    pub layout: Layout,
    /// Size of its program in bytes.
    pub size: u64,
    /// Source of its objects' memory.
    pub(super) memory: ProcessMemory,
    /// File of its program, parts of which are mapped into it, if its parent handed the file over.
    pub(super) _content: Option<Content>,
    /// Endpoint at which it serves: when it ends, threads that wait there are refused.
    pub(super) service: Option<Service>,
    /// Servers to which this server gave it capabilities, by slot.
    pub connected: Vec<(CapAddress, &'static str)>,
    /// Notification that an interrupt signals instead of killing the process, if it wants that; held in a slot of this
    /// server.
    pub(super) interrupt: Option<Cap<Notification>>,
}

impl RunningProcess {
    /// Returns the ticks that its threads have used.
    pub fn ticks(&self) -> u64 {
        self.process.address_space().account().map_or(0, |account| account.ticks)
    }

    /// Runs the process.
    pub(super) fn start(&mut self, terms: &Terms) -> Result<(), KernelError> {
        let slot = own_memory::take_slot().map_err(|_| KernelError::NoSuchSlot)?;
        let faults = SERVICE.mint_to(slot, Rights::WRITE | Rights::CALL, terms.process);
        let slice = tench::time::frequency() / SLICES_PER_SECOND;
        let schedule = Schedule { priority: terms.priority, ceiling: terms.ceiling, slice };
        let account = self.process.address_space().open_account(Cap::new(slot::KERNEL));
        let ready = account.and(faults).and_then(|faults| self.process.make_ready(schedule, faults));
        delete_in_parts(slot);
        ready.and_then(|()| self.memory.put_away()).and_then(|()| self.process.start())
    }

    /// Stops the process: none of its threads runs any more.
    pub fn stop(mut self: Box<Self>) -> Remains {
        // A process without an account has not run yet.
        let _ = self.process.address_space().suspend_account(true);
        let used = self.ticks();
        if let Some(signal) = self.interrupt.take() {
            delete_in_parts(signal.address());
        }
        Remains { service: self.service.take(), process: Some(self), used }
    }

    /// Sets the notification that the next interrupt signals.
    pub fn on_interrupt(&mut self, signal: Cap<Notification>) {
        if let Some(before) = self.interrupt.replace(signal) {
            delete_in_parts(before.address());
        }
    }

    /// Signals the notification set for an interrupt, and clears it. Returns whether there was one.
    pub fn interrupt(&mut self) -> bool {
        let Some(signal) = self.interrupt.take() else { return false };
        let was_signalled = signal.signal().is_ok();
        delete_in_parts(signal.address());
        was_signalled
    }
}

/// Everything that is left of a process that has been stopped, or that could not be started.
pub struct Remains {
    service: Option<Service>,
    process: Option<Box<RunningProcess>>,
    used: u64,
}

impl Remains {
    /// Returns the remains of a process that could not be loaded.
    pub(super) const fn of_service(service: Option<Service>) -> Remains {
        Remains { service, process: None, used: 0 }
    }

    /// Returns the ticks that the process's threads had used when it was stopped.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Does one part of clearing the remains. Returns whether nothing is left.
    pub fn clear_part(&mut self) -> bool {
        if let Some(service) = self.service.take_if(|service| service.revoke_part()) {
            service.close();
        }
        self.service.is_none() && self.process.as_mut().is_none_or(|process| process.memory.close_part())
    }
}

/// The endpoint at which a process serves.
pub enum Service {
    /// The endpoint was given by the parent.
    Given(CapAddress),
    /// The endpoint was made when the server was restarted.
    Made(Made<Endpoint>),
}

impl Service {
    /// Makes an endpoint.
    pub fn make() -> Result<Service, LoadError> {
        own_memory::make::<Endpoint>(0).map(Service::Made).map_err(|_| LoadError::OutOfMemory)
    }

    /// Returns the endpoint.
    pub const fn endpoint(&self) -> Cap<Endpoint> {
        match self {
            Service::Given(slot) => Cap::new(*slot),
            Service::Made(made) => made.cap(),
        }
    }

    /// Deletes this server's capability to the endpoint, when [all others are gone](Self::revoke_part).
    pub fn close(self) {
        match self {
            Service::Given(slot) => delete_in_parts(slot),
            Service::Made(made) => drop(made),
        }
    }

    /// Revokes some of the capabilities derived from this one. Returns whether none is left: then nobody will ever
    /// receive there, and the kernel refuses present and future senders. If the capability is not the original, whoever
    /// holds the original decides that.
    fn revoke_part(&self) -> bool {
        OWN_CSPACE.revoke_part_at(self.endpoint().address(), PART) != Err(KernelError::Unfinished)
    }
}
