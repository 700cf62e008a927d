//! Threads and scheduling contexts.

use tench_abi::fault::{Class, FloatRegisters, Registers, Report, write};
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

/// Change of one binding of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding<T> {
    /// Leaves the binding as it is.
    Keep,
    /// Binds this object.
    To(Cap<T>),
    /// Removes the binding.
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
    /// The scheduling context on which the thread runs.
    pub scheduling: Binding<SchedulingContext>,
    /// The reply object with which the thread receives.
    pub reply: Binding<Reply>,
    /// The notification whose signals the thread also receives whenever it receives.
    pub notification: Binding<Notification>,
}

impl Bindings {
    /// Leaves everything as it is.
    pub const KEEP: Bindings =
        Bindings { scheduling: Binding::Keep, reply: Binding::Keep, notification: Binding::Keep };
}

/// A thread as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// State of the thread.
    pub state: ThreadState,
    /// The priority at which the thread runs: its own or that of a thread that helps it.
    pub priority: u64,
    /// Ticks that the thread's own scheduling context has consumed.
    pub ticks: u64,
    /// Deepest use of the thread's kernel stack in bytes.
    pub kernel_stack: u64,
    /// The thread's fault, if it is `Faulted`. The class is not reported.
    pub fault: Report,
}

impl Cap<Thread> {
    /// Configures a suspended thread with its CSpace, address space and IPC buffer (a frame, and an offset in it that
    /// is a multiple of 1,024).
    /// Rights: `WRITE`. Errors: `WrongState`, `Misaligned`, `DeviceMemory`, `InvalidArgument`.
    pub fn configure(
        self,
        cspace: Cap<CapNode>,
        address_space: Cap<PageTable>,
        ipc_buffer: Option<(Cap<Frame>, u64)>,
    ) -> Result<(), Error> {
        let (frame, offset) = ipc_buffer.map_or((0, 0), |(frame, offset)| (frame.raw(), offset));
        // SAFETY: the kernel writes into the IPC buffer only what the thread asks for; which memory to use for it is
        // the caller's choice, like any other sharing of a frame.
        unsafe { raw::call3(Operation::ThreadConfigure, self.raw(), cspace.raw(), address_space.raw(), frame, offset) }
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

    /// Makes a thread serve an endpoint: callers that wait there help it with their time and priority. Meanwhile its
    /// own calls go `depth` servers deep (0 to [`MAX_DEPTH`](tench_abi::object::MAX_DEPTH)): the kernel reserves room
    /// for them in a chain of threads that help each other.
    /// Rights: `WRITE`; `READ` on the endpoint. Errors: `AlreadyBound` (the thread serves one, or the endpoint has a
    /// thread), `InvalidArgument` (the depth).
    pub fn serve(self, endpoint: Cap<Endpoint>, depth: u64) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call1(Operation::ThreadServe, self.raw(), endpoint.raw(), depth) }.done()
    }

    /// Makes a thread serve no endpoint any more.
    /// Rights: `WRITE`.
    pub fn stop_serving(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::ThreadServe, self.raw(), 0) }.done()
    }

    /// Directs faults of a class to an endpoint, or, with `None`, lets them stop the thread. Removes an upcall for the
    /// class.
    /// Rights: `WRITE`; `WRITE` and `CALL` on the endpoint.
    pub fn faults_to(self, class: Class, endpoint: Option<Cap<Endpoint>>) -> Result<(), Error> {
        let endpoint = endpoint.map_or(0, Cap::raw);
        // SAFETY: no memory of the program changes.
        unsafe { raw::call3(Operation::ThreadFaults, self.raw(), class as u64, endpoint, 0, 0) }.done()
    }

    /// Makes faults of a class upcalls: the thread continues at `entry`, on the stack at `stack` (0: the one in use). A
    /// fault during an upcall goes to the endpoint.
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
        // SAFETY: the caller is responsible for entry point and stack.
        unsafe { raw::call3(Operation::ThreadFaults, self.raw(), class as u64, endpoint, entry as u64, stack as u64) }
            .done()
    }

    /// Resumes a suspended, faulted or new thread. Rights: `WRITE`. Errors: `NotConfigured`.
    pub fn resume(self) -> Result<(), Error> {
        // SAFETY: the thread runs where it was configured to run before.
        unsafe { raw::call0(Operation::ThreadResume, self.raw(), 0) }.done()
    }

    /// Suspends a thread in any state; a wait ends with `Aborted`. Rights: `WRITE`.
    pub fn suspend(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::ThreadSuspend, self.raw(), 0) }.done()
    }

    /// Returns the registers of a thread that is suspended, faulted, or waits for its fault handler's reply; with
    /// `suspend`, suspends the thread first.
    /// Rights: `READ`. Errors: `NoIpcBuffer`, `WrongState`.
    pub fn read_registers(self, suspend: bool) -> Result<Registers, Error> {
        // SAFETY: the kernel writes the registers to the IPC buffer, into which nobody holds a reference.
        unsafe { raw::call0(Operation::ThreadReadRegisters, self.raw(), u64::from(suspend)) }.done()?;
        block::read_registers().ok_or(Error::NoIpcBuffer)
    }

    /// Sets the registers of such a thread, and with `resume` resumes it, unless it waits for a reply.
    /// Rights: `WRITE`. Errors: `NoIpcBuffer`, `WrongState`, `NotConfigured`.
    ///
    /// # Safety
    /// If the thread lives in the caller's address space, it must be fit to run with these registers: code at the
    /// program counter, a stack of its own, and nothing broken where it was before. For a thread of another address
    /// CSpace there is no condition.
    pub unsafe fn write_registers(self, registers: &Registers, resume: bool) -> Result<(), Error> {
        // SAFETY: the caller is responsible for what the thread will do.
        unsafe { self.write_registers_with(registers, if resume { write::RESUME } else { 0 }) }
    }

    /// As [`write_registers`](Self::write_registers), but the thread executes one instruction when it goes on, and
    /// raises an exception of the class [`STEP_CLASS`](tench_abi::fault::STEP_CLASS).
    /// Rights: `WRITE`. Errors: `NoIpcBuffer`, `WrongState`, `NotConfigured`.
    ///
    /// # Safety
    /// As for [`write_registers`](Self::write_registers).
    pub unsafe fn step(self, registers: &Registers, resume: bool) -> Result<(), Error> {
        let resume = if resume { write::RESUME } else { 0 };
        // SAFETY: the caller is responsible for what the thread will do.
        unsafe { self.write_registers_with(registers, write::STEP | resume) }
    }

    /// Performs `ThreadWriteRegisters`, with its flags.
    ///
    /// # Safety
    /// As for [`write_registers`](Self::write_registers).
    unsafe fn write_registers_with(self, registers: &Registers, flags: u64) -> Result<(), Error> {
        block::write_registers(registers).ok_or(Error::NoIpcBuffer)?;
        // SAFETY: the caller is responsible for what the thread will do.
        unsafe { raw::call0(Operation::ThreadWriteRegisters, self.raw(), flags) }.done()
    }

    /// Returns the floating-point registers of a thread, under the same conditions as
    /// [`read_registers`](Self::read_registers). Changes the message words in the caller's IPC buffer.
    /// Rights: `READ`. Errors: `NoIpcBuffer`, `WrongState`.
    pub fn read_float(self) -> Result<FloatRegisters, Error> {
        // SAFETY: the kernel writes the registers to the IPC buffer, into which nobody holds a reference.
        let result = unsafe { raw::call0(Operation::ThreadReadFloat, self.raw(), 0) }.check()?;
        let q = block::read_float().ok_or(Error::NoIpcBuffer)?;
        Ok(FloatRegisters { q, status: result.first, control: result.words[0] })
    }

    /// Sets the floating-point registers of a thread, under the same conditions. Changes the message words in the
    /// caller's IPC buffer. Rights: `WRITE`. Errors: `NoIpcBuffer`, `WrongState`.
    pub fn write_float(self, registers: &FloatRegisters) -> Result<(), Error> {
        block::write_float(&registers.q).ok_or(Error::NoIpcBuffer)?;
        let FloatRegisters { status, control, .. } = *registers;
        // SAFETY: floating-point registers are numbers to whatever the thread does.
        unsafe { raw::call1(Operation::ThreadWriteFloat, self.raw(), status, control) }.done()
    }

    /// Returns a description of the thread. Rights: `READ`.
    pub fn query(self) -> Result<ThreadInfo, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::ThreadQuery, self.raw(), 0) }.check()?;
        let [priority, ticks, kernel_stack, address, instruction, syndrome, ..] = result.words;
        Ok(ThreadInfo {
            state: ThreadState::from_code(result.first).ok_or(Error::UnknownOperation)?,
            priority,
            ticks,
            kernel_stack,
            fault: Report { class: 0, address, instruction, syndrome },
        })
    }
}

/// Yields to other threads of the same priority.
#[inline]
pub fn yield_now() {
    // SAFETY: no memory of the program changes.
    let _ = unsafe { raw::call0(Operation::Yield, 0, 0) };
}

/// Tells the processor that this thread polls for something that another core does. An emulator that runs the cores in
/// turn then ends this core's turn, which would otherwise last until the next timer expires.
#[inline]
pub fn poll_hint() {
    #[cfg(all(target_arch = "aarch64", target_os = "none"))]
    // SAFETY: the instruction changes nothing.
    unsafe {
        core::arch::asm!("yield", options(nomem, nostack, preserves_flags))
    };
}

/// Ends an upcall: the thread continues with these registers. Returns only on failure.
///
/// # Safety
/// The thread must be in an upcall, and the registers must be fit to continue with.
pub unsafe fn upcall_return(registers: &Registers) -> Error {
    if block::write_registers(registers).is_none() {
        return Error::NoIpcBuffer;
    }
    // SAFETY: the caller is responsible for the registers.
    unsafe { upcall_resume() }
}

/// Ends an upcall: the thread continues where it was, with the registers that the kernel left in the IPC buffer.
/// Returns only on failure.
///
/// # Safety
/// The thread must be in an upcall, the registers in the IPC buffer must be unchanged, and the cause of the interrupted
/// instruction's fault must have been removed.
pub unsafe fn upcall_resume() -> Error {
    // SAFETY: the caller is responsible for the registers.
    match unsafe { raw::call0(Operation::UpcallReturn, 0, 0) }.done() {
        Ok(()) => Error::WrongState,
        Err(error) => error,
    }
}

/// A scheduling context as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulingInfo {
    /// Priority, 0 to 255.
    pub priority: u64,
    /// Highest priority that the context authorises.
    pub ceiling: u64,
    /// Time slice in ticks; 0 for none.
    pub slice: u64,
    /// Ticks consumed.
    pub consumed: u64,
    /// Budget in ticks that can be consumed in any interval as long as `period`; 0 for no limit.
    pub budget: u64,
    /// Period in ticks; 0 for no limit.
    pub period: u64,
    /// Ticks of the budget that can be used now.
    pub usable: u64,
    /// Time of the next refill, as a reading of the counter; 0 if all of the budget can be used, or if there is no
    /// limit.
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

    /// Limits the context to `budget` ticks in any interval of `period` ticks (0, 0: no limit), authorised by another
    /// context (`None`: the caller's own), whose ceiling the context's priority may not exceed. All of the budget can
    /// be used at once.
    /// Rights: `WRITE`. Errors: `PriorityTooHigh`, `InvalidArgument`.
    pub fn reserve(self, budget: u64, period: u64, authority: Option<Cap<SchedulingContext>>) -> Result<(), Error> {
        let authority = authority.map_or(u64::from(CapAddress::NULL.0), Cap::raw);
        // SAFETY: no memory of the program changes.
        unsafe { raw::call3(Operation::SchedulingReserve, self.raw(), budget, period, authority, 0) }.done()
    }

    /// Returns a description of the context. Rights: `READ`.
    pub fn query(self) -> Result<SchedulingInfo, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::SchedulingQuery, self.raw(), 0) }.check()?;
        let [ceiling, slice, consumed, budget, period, usable, refill, ..] = result.words;
        Ok(SchedulingInfo { priority: result.first, ceiling, slice, consumed, budget, period, usable, refill })
    }
}
