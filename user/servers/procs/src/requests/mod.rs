//! Requests, faults and the work between them, on the table of processes.
//!
//! ```text
//! service    the requests, as the interface has them
//! starting   first starts, and restarts of servers
//! ending     kills, faults, and the parts in which processes are destroyed
//! reaper     a thread that requests the remaining parts of ending processes
//! waiting    threads that wait for the end of a process, and their replies
//! inspect    read-only requests
//! kept       what the table keeps for each process
//! ```

mod ending;
mod inspect;
mod kept;
mod reaper;
mod service;
mod starting;
mod waiting;

use tench::memory;
use tench_abi::Powers;
use tench_abi::layout::slot;
use tench_loader::LoadError;
use tench_loader::addresses::Randomness;
use tench_loader::information::TEXT_SIZE;
use tench_mem_interface::Mem;
use tench_procs::spawn::catalogue::Catalogue;
use tench_procs::table;
use tench_procs_interface::protocol::{Error, State};
use tench_procs_interface::{Procs, pid};
use tench_protocol::{Caller, Event, Flow};
use tench_sys::{Cap, Error as KernelError, Kernel};

use crate::boot::{self, Boot};
use crate::spawn::Spawner;
use crate::supervision::Supervision;

use self::kept::ProcessTable;
use self::reaper::Reaper;
use self::waiting::Waiting;

/// Bytes of heap that a request may need that adds something: for a record, twice the texts that a process is started
/// with, and the description of its address space.
const GROWTH: usize = table::GROWTH + 3 * TEXT_SIZE;
/// Bytes of heap that any other request may need until it gets its reply. They are always kept in reserve, so that a
/// process can end when there is no memory left.
const BRIEFLY: usize = table::BRIEFLY + (8 << 10);

/// The server's state.
pub struct Server {
    /// Programs of the boot archive.
    catalogue: &'static Catalogue<'static>,
    /// Number of this core.
    core: u64,
    records: ProcessTable,
    waiting: Waiting,
    spawner: Spawner,
    reaper: Reaper,
    supervision: Supervision,
}

impl Server {
    /// Returns a server that knows of the processes that `init` has started without it.
    pub fn new(boot: Boot, random: Randomness) -> Result<Server, LoadError> {
        memory::serve_without_faults(GROWTH + BRIEFLY).map_err(|_| LoadError::OutOfMemory)?;
        let mem = boot.service("mem").ok_or(LoadError::Kernel(KernelError::InvalidCapability))?;
        let core = Cap::<Kernel>::new(slot::KERNEL).machine()?.core;
        Ok(Server {
            catalogue: boot.catalogue,
            core,
            records: first_records(core),
            waiting: Waiting::new().map_err(|_| LoadError::OutOfMemory)?,
            spawner: Spawner::new(Mem::at(mem), boot.shown, random)?,
            reaper: Reaper::start(core).ok_or(LoadError::OutOfMemory)?,
            supervision: Supervision::new(boot)?,
        })
    }

    /// Serves requests and faults for ever.
    pub fn serve(&mut self) -> ! {
        let mut port = tench::server::port(1, 2);
        loop {
            if port.next(self.waiting.next(&self.records, self.supervision.next_deadline())) == Event::Request {
                port.carry_out(|request, context, reply| {
                    if request.is_fault() {
                        self.fault_message(request, reply);
                        Flow::Reply
                    } else if self.reaper.is_own(request.badge()) {
                        reply.restart(self.next_part() as u64);
                        Flow::Reply
                    } else {
                        Procs::dispatch(self, request, context, reply)
                    }
                });
            }
            self.restart_servers();
            self.waiting.expire(&mut self.records);
            self.waiting.send_replies(&self.records, &mut port.replies);
            self.supervision.reply_to_connections(&mut port.replies, &self.records);
        }
    }
}

/// Returns a table with the processes that `init` has started without this server, and `init` itself.
fn first_records(core: u64) -> ProcessTable {
    let mut records = ProcessTable::of_core(core);
    let here = |number| pid::pid_base(core) | number;
    for (number, process) in [pid::INIT, pid::MEM, pid::PROCS].map(here).into_iter().zip(boot::first_processes()) {
        let is_init = number == here(pid::INIT);
        let parent = Caller::alone(if is_init { 0 } else { here(pid::INIT) });
        let made = records.prepare(process.path, parent, Powers::empty(), None);
        if made == Ok(number)
            && let Ok(record) = records.get_mut(number)
        {
            (record.priority, record.ceiling) = (process.priority, process.ceiling);
            record.powers = if is_init { Powers::all() } else { Powers::empty() };
            let _ = records.set_state(number, State::Running);
        }
    }
    records
}

/// Makes sure that there is memory for a request that adds lasting data. All other requests are carried out in any
/// case.
pub fn reserve() -> Result<(), Error> {
    memory::reserve_heap(GROWTH + BRIEFLY).map_err(|_| Error::OutOfMemory)
}
