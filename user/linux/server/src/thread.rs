//! Threads of processes, as the machine below has them.

pub use tench::abi::fault::{FloatRegisters, Registers};
use tench_linux_files::Errno;
use tench_linux_memory::Hardware;

/// Threads of processes. A thread runs, waits for the answer to a call or fault, or is stopped.
pub trait Threads: Hardware {
    /// A thread.
    type Thread: core::fmt::Debug;

    /// Makes a stopped thread in an address space, whose calls and faults come in a process's name.
    ///
    /// # Errors
    /// `ENOMEM`
    fn make_thread(&mut self, root: &Self::Root, process: u32) -> Result<Self::Thread, Errno>;

    /// Ends a thread, whatever it does.
    fn end_thread(&mut self, thread: Self::Thread);

    /// Answers a call or fault: the thread goes on, perhaps with a result in `x0`. The thread that is being served may
    /// go on a little later.
    fn answer(&mut self, thread: &mut Self::Thread, result: Option<u64>);

    /// Lets a thread whose call or fault is being served wait for the answer while others are served.
    fn keep(&mut self, thread: &mut Self::Thread);

    /// Stops a thread, whatever it does. A call that nobody has served yet is made again when the thread goes on; one
    /// that is being served is over. One that was answered has its result.
    fn stop(&mut self, thread: &mut Self::Thread);

    /// Returns the registers of a thread that waits or is stopped.
    fn registers(&mut self, thread: &Self::Thread) -> Registers;

    /// Returns the floating-point registers of a thread that waits or is stopped.
    fn float_registers(&mut self, thread: &Self::Thread) -> FloatRegisters;

    /// Sets the floating-point registers of a stopped thread.
    fn set_float_registers(&mut self, thread: &mut Self::Thread, registers: &FloatRegisters);

    /// Moves a stopped thread to another address space.
    fn move_thread(&mut self, thread: &mut Self::Thread, root: &Self::Root);

    /// Lets a stopped thread run with these registers.
    fn run(&mut self, thread: &mut Self::Thread, registers: &Registers);
}
