//! Threads and scheduling contexts.

use tench_abi::fault::{Class, Registers, Report};
use tench_abi::layout::UNBIND;
use tench_abi::object::ThreadState;
use tench_abi::{CapAddress, Error, Operation};

use crate::block;
use crate::cap::{Cap, CapNode, objects};
use crate::ipc::{Endpoint, Notification, Reply};
use crate::memory::{Frame, PageTable};
use crate::raw;

objects! {
    /// A thread with its kernel stack.
    Thread;
    /// Priority, ceiling and time slice.
    SchedulingContext;
}

/// What to do with one binding of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding<T> {
    /// Leave it as it is.
    Keep,
    /// Bind this.
    To(Cap<T>),
    /// Unbind what is bound.
    Unbind,
}

impl<T> Binding<T> {
    const fn raw(self) -> u64 {
        match self {
            Binding::Keep => 0,
            Binding::To(cap) => cap.raw(),
            Binding::Unbind => UNBIND,
        }
    }
}

/// Arguments of [`Cap::<Thread>::bind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bindings {
    /// The scheduling context that it runs on.
    pub scheduling: Binding<SchedulingContext>,
    /// The reply object with which it receives.
    pub reply: Binding<Reply>,
    /// The notification for which it waits whenever it receives.
    pub notification: Binding<Notification>,
}

impl Bindings {
    /// Leaves everything as it is.
    pub const KEEP: Bindings =
        Bindings { scheduling: Binding::Keep, reply: Binding::Keep, notification: Binding::Keep };
}

/// What the kernel knows about a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// What it is doing.
    pub state: ThreadState,
    /// The priority at which it runs, its own or that of somebody who helps it.
    pub priority: u64,
    /// Ticks that its own scheduling context has consumed.
    pub ticks: u64,
    /// Deepest use of its kernel stack in bytes.
    pub kernel_stack: u64,
    /// Its fault, if it is `Faulted`. The class is not told.
    pub fault: Report,
}

impl Cap<Thread> {
    /// Says where a suspended thread lives: capability space, address space, message area (frame, and offset in it: a
    /// multiple of 1,024).
    /// Rights: `WRITE`. Errors: `WrongState`, `Misaligned`, `DeviceMemory`, `InvalidArgument`.
    pub fn configure(
        self,
        space: Cap<CapNode>,
        address_space: Cap<PageTable>,
        message_area: Option<(Cap<Frame>, u64)>,
    ) -> Result<(), Error> {
        let (frame, offset) = message_area.map_or((0, 0), |(frame, offset)| (frame.raw(), offset));
        // SAFETY: the kernel writes into the message area only what the thread asks for; which memory to give for it
        // is the caller's choice, like any other sharing of a frame.
        unsafe { raw::call3(Operation::ThreadConfigure, self.raw(), space.raw(), address_space.raw(), frame, offset) }
            .done()
    }

    /// Binds or unbinds scheduling context, reply object and notification.
    /// Rights: `WRITE`; `READ` on the notification. Errors: `AlreadyBound`, `Busy` (the reply object holds a caller).
    pub fn bind(self, bindings: Bindings) -> Result<(), Error> {
        let Bindings { scheduling, reply, notification } = bindings;
        // SAFETY: no memory of the program changes.
        unsafe { raw::call2(Operation::ThreadBind, self.raw(), scheduling.raw(), reply.raw(), notification.raw()) }
            .done()
    }

    /// Says which endpoint a thread serves: whoever waits there helps it, with his time and priority. Its own calls go
    /// `depth` servers deep meanwhile (0 to [`MAX_DEPTH`](tench_abi::object::MAX_DEPTH)): the kernel keeps room for
    /// these in a chain of threads that help each other.
    /// Rights: `WRITE`; `READ` on the endpoint. Errors: `AlreadyBound` (it serves one, or the endpoint has a thread),
    /// `InvalidArgument` (the depth).
    pub fn serve(self, endpoint: Cap<Endpoint>, depth: u64) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call1(Operation::ThreadServe, self.raw(), endpoint.raw(), depth) }.done()
    }

    /// Says that a thread serves no endpoint any more.
    /// Rights: `WRITE`.
    pub fn stop_serving(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::ThreadServe, self.raw(), 0) }.done()
    }

    /// Sends faults of a class to an endpoint, or, with `None`, lets them stop the thread. Ends an upcall for them.
    /// Rights: `WRITE`; `WRITE` and `CALL` on the endpoint.
    pub fn faults_to(self, class: Class, endpoint: Option<Cap<Endpoint>>) -> Result<(), Error> {
        let endpoint = endpoint.map_or(0, Cap::raw);
        // SAFETY: no memory of the program changes.
        unsafe { raw::call3(Operation::ThreadFaults, self.raw(), class as u64, endpoint, 0, 0) }.done()
    }

    /// Makes faults of a class upcalls: the thread continues at `entry`, on the stack at `stack` (0: the one in use).
    /// A fault during an upcall goes to the endpoint.
    /// Rights: `WRITE`; `WRITE` and `CALL` on the endpoint.
    ///
    /// # Safety
    /// `entry` is code that handles an upcall and ends with [`upcall_return`]; `stack` is the top of unused memory.
    pub unsafe fn faults_upcall(
        self,
        class: Class,
        endpoint: Option<Cap<Endpoint>>,
        entry: usize,
        stack: usize,
    ) -> Result<(), Error> {
        let endpoint = endpoint.map_or(0, Cap::raw);
        // SAFETY: the caller answers for entry point and stack.
        unsafe { raw::call3(Operation::ThreadFaults, self.raw(), class as u64, endpoint, entry as u64, stack as u64) }
            .done()
    }

    /// Lets a suspended, faulted or new thread run. Rights: `WRITE`. Errors: `NotConfigured`.
    pub fn resume(self) -> Result<(), Error> {
        // SAFETY: where it runs was said before.
        unsafe { raw::call0(Operation::ThreadResume, self.raw(), 0) }.done()
    }

    /// Stops a thread, whatever it does; a wait ends with `Aborted`. Rights: `WRITE`.
    pub fn suspend(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::ThreadSuspend, self.raw(), 0) }.done()
    }

    /// Registers of a suspended thread; with `suspend`, of any, which is then suspended.
    /// Rights: `READ`. Errors: `NoMessageArea`, `WrongState`.
    pub fn read_registers(self, suspend: bool) -> Result<Registers, Error> {
        // SAFETY: the kernel writes the registers to the message area, where nobody holds a reference.
        unsafe { raw::call0(Operation::ThreadReadRegisters, self.raw(), u64::from(suspend)) }.done()?;
        block::read_registers().ok_or(Error::NoMessageArea)
    }

    /// Sets the registers of a suspended thread, and with `resume` lets it run.
    /// Rights: `WRITE`. Errors: `NoMessageArea`, `WrongState`, `NotConfigured`.
    ///
    /// # Safety
    /// If the thread lives in the caller's address space, it must be fit to run with these registers: code at the
    /// program counter, a stack of its own, and nothing broken where it was before. For a thread of another address
    /// space there is no condition.
    pub unsafe fn write_registers(self, registers: &Registers, resume: bool) -> Result<(), Error> {
        block::write_registers(registers).ok_or(Error::NoMessageArea)?;
        // SAFETY: the caller answers for what the thread will do.
        unsafe { raw::call0(Operation::ThreadWriteRegisters, self.raw(), u64::from(resume)) }.done()
    }

    /// What the kernel knows about it. Rights: `READ`.
    pub fn query(self) -> Result<ThreadInfo, Error> {
        // SAFETY: no memory of the program changes.
        let answer = unsafe { raw::call0(Operation::ThreadQuery, self.raw(), 0) }.check()?;
        let [priority, ticks, kernel_stack, address, instruction, syndrome, ..] = answer.words;
        Ok(ThreadInfo {
            state: ThreadState::from_code(answer.first).ok_or(Error::UnknownOperation)?,
            priority,
            ticks,
            kernel_stack,
            fault: Report { class: 0, address, instruction, syndrome },
        })
    }
}

/// Lets other threads of the same priority run.
#[inline]
pub fn yield_now() {
    // SAFETY: no memory of the program changes.
    let _ = unsafe { raw::call0(Operation::Yield, 0, 0) };
}

/// Ends an upcall: the thread continues with these registers. Returns only if that is refused.
///
/// # Safety
/// The thread is in an upcall, and the registers are fit to continue with.
pub unsafe fn upcall_return(registers: &Registers) -> Error {
    if block::write_registers(registers).is_none() {
        return Error::NoMessageArea;
    }
    // SAFETY: the caller answers for the registers.
    unsafe { upcall_resume() }
}

/// Ends an upcall: the thread continues where it was, with the registers that the kernel left in the message area.
/// Returns only if that is refused.
///
/// # Safety
/// The thread is in an upcall, nothing has changed the registers in the message area, and what made the instruction at
/// which the thread was fail has been mended.
pub unsafe fn upcall_resume() -> Error {
    // SAFETY: the caller answers for the registers.
    match unsafe { raw::call0(Operation::UpcallReturn, 0, 0) }.done() {
        Ok(()) => Error::WrongState,
        Err(error) => error,
    }
}

/// What the kernel knows about a scheduling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulingInfo {
    /// Priority, 0 to 255.
    pub priority: u64,
    /// Highest priority that it authorises.
    pub ceiling: u64,
    /// Time slice in ticks; 0 for none.
    pub slice: u64,
    /// Ticks consumed.
    pub consumed: u64,
    /// Ticks that can be consumed in any stretch of time as long as `period`; 0 for no limit.
    pub budget: u64,
    /// Ticks of a period; 0 for no limit.
    pub period: u64,
    /// Ticks of the budget that can be used now.
    pub usable: u64,
    /// When more of it comes, as a reading of the counter; 0 if all of it can be used, and without a limit.
    pub refill: u64,
}

impl Cap<SchedulingContext> {
    /// Sets priority, ceiling and time slice in ticks (0: none), authorised by another context (`None`: the caller's
    /// own), whose ceiling neither may exceed. At that ceiling the slice may not be longer than the authority's own.
    /// Rights: `WRITE`. Errors: `PriorityTooHigh`, `SliceTooLong`, `InvalidArgument`.
    pub fn configure(
        self,
        priority: u64,
        ceiling: u64,
        slice: u64,
        authority: Option<Cap<SchedulingContext>>,
    ) -> Result<(), Error> {
        let authority = authority.map_or(u64::from(CapAddress::NULL.0), Cap::raw);
        // SAFETY: no memory of the program changes.
        unsafe { raw::call3(Operation::SchedulingConfigure, self.raw(), priority, ceiling, slice, authority) }.done()
    }

    /// Limits it to `budget` ticks in any stretch of time as long as `period` ticks (0, 0: no limit), authorised by
    /// another context (`None`: the caller's own), whose ceiling its priority may not exceed. All of the budget can be
    /// used at once.
    /// Rights: `WRITE`. Errors: `PriorityTooHigh`, `InvalidArgument`.
    pub fn reserve(self, budget: u64, period: u64, authority: Option<Cap<SchedulingContext>>) -> Result<(), Error> {
        let authority = authority.map_or(u64::from(CapAddress::NULL.0), Cap::raw);
        // SAFETY: no memory of the program changes.
        unsafe { raw::call3(Operation::SchedulingReserve, self.raw(), budget, period, authority, 0) }.done()
    }

    /// What the kernel knows about it. Rights: `READ`.
    pub fn query(self) -> Result<SchedulingInfo, Error> {
        // SAFETY: no memory of the program changes.
        let answer = unsafe { raw::call0(Operation::SchedulingQuery, self.raw(), 0) }.check()?;
        let [ceiling, slice, consumed, budget, period, usable, refill, ..] = answer.words;
        Ok(SchedulingInfo { priority: answer.first, ceiling, slice, consumed, budget, period, usable, refill })
    }
}
