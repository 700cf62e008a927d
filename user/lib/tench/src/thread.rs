//! Threads of this process.
//!
//! A thread has a stack with an unmapped page below it, and some memory of its own that is always mapped:
//!
//! ```text
//! 0      stack on which its page faults are handled; below it nothing is mapped
//! 12288  IPC buffer, shared with the kernel
//! 13312  thread block, where the thread pointer points
//! 13376  exit state: not joined, joined (a waiter), done
//! 13384  the runtime's data: number, thread-local data, name
//! 16384
//! ```
//! The main thread handles its page faults on the stack on which the process began (`runtime`).
//!
//! A thread cannot free the stack on which it runs. So when its function has returned it sets its exit state to done
//! and stops; the thread that joins it, or that starts the next thread, frees its memory. Setting the state takes no
//! lock, because from then on the thread may be deleted at any moment.

mod local;
mod own;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use tench_abi::fault::{Class, Registers};
use tench_abi::layout::slot;
use tench_abi::memory::PAGE_SIZE;
use tench_abi::message::IpcBuffer;
pub use tench_sys::thread::yield_now;
use tench_sys::thread::{Binding, Bindings};
use tench_sys::{Cap, Notification, Reply, SchedulingContext, Thread, ThreadBlock};

use crate::memory::{self, Anonymous, Error, Made, Pages};
pub use local::{LocalKey, Number, find as find_local, put as put_local};
pub(crate) use own::Own;
#[cfg(target_os = "none")]
pub(crate) use own::main_record;
pub use own::{MAX_NAME, Name};

use crate::sync::{Mutex, Waiter};
use crate::time::Budget;
use crate::{process, upcall};

/// Default size of a stack in bytes.
pub const DEFAULT_STACK_SIZE: usize = 64 * 1024;

/// Size in bytes of a thread's own memory if it handles its page faults: the stack for that, and a page at the end. A
/// request to the memory server takes 5 KiB of that stack, and 13 KiB in a program compiled without optimisation.
const CONTROL_SIZE: usize = if cfg!(unoptimised) { 32 } else { 16 } * 1024;

/// A thread's own data, in a page above its stack for page faults.
#[repr(C)]
struct Control {
    buffer: IpcBuffer,
    block: ThreadBlock,
    exit: AtomicPtr<Waiter>,
    own: Own,
}

/// Value of [`Control::exit`] that means that the thread is done.
const DONE: *mut Waiter = core::ptr::without_provenance_mut(1);

const _: () = assert!(size_of::<Control>() <= PAGE_SIZE);

/// The parts of a thread. They are dropped in this order: the thread first, so that nothing uses the rest any more.
struct Parts {
    thread: Made<Thread>,
    scheduling: Made<SchedulingContext>,
    _reply: Made<Reply>,
    _notification: Made<Notification>,
    _stack: Anonymous,
    control: Pages,
}

impl Parts {
    /// Returns the address of the [`Control`], which is the end of the stack for page faults.
    const fn control(&self) -> usize {
        self.control.end() - PAGE_SIZE
    }

    /// Returns the exit state.
    fn exit(&self) -> &AtomicPtr<Waiter> {
        let control = core::ptr::with_exposed_provenance::<Control>(self.control());
        // SAFETY: the page is mapped as long as `self` lives, and zeroed memory is a valid atomic pointer.
        unsafe { &*control.wrapping_byte_add(offset_of!(Control, exit)).cast() }
    }

    fn is_done(&self) -> bool {
        self.exit().load(Ordering::Acquire) == DONE
    }

    /// Waits until the thread is done.
    fn wait(&self) {
        let waiter = Waiter::new();
        let mine = core::ptr::from_ref(&waiter).cast_mut();
        if self.exit().compare_exchange(null_mut(), mine, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            waiter.wait();
        }
    }
}

/// Threads that nobody joins. They are freed when they are done and another thread is started.
static DETACHED: Mutex<Vec<Parts>> = Mutex::new(Vec::new());

/// Number of threads started so far.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// Options of a thread to be started.
#[derive(Clone, Copy, Debug)]
pub struct Builder {
    stack_size: usize,
    priority: Option<u8>,
    budget: Budget,
    name: Name,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// Returns default options: a stack of [`DEFAULT_STACK_SIZE`], and the priority of the starting thread.
    pub const fn new() -> Builder {
        Builder { stack_size: DEFAULT_STACK_SIZE, priority: None, budget: Budget::UNLIMITED, name: Name::NONE }
    }

    /// Sets the size of the stack in bytes, rounded up to a power of two.
    pub const fn stack_size(mut self, bytes: usize) -> Builder {
        self.stack_size = bytes;
        self
    }

    /// Sets the priority, at most the ceiling of the main thread.
    pub const fn priority(mut self, priority: u8) -> Builder {
        self.priority = Some(priority);
        self
    }

    /// Sets a limit to the thread's processor time. (The starting thread's limit is not inherited: without this, the
    /// new thread is not limited.)
    pub const fn budget(mut self, budget: Budget) -> Builder {
        self.budget = budget;
        self
    }

    /// Sets a name for display, cut to [`MAX_NAME`] bytes.
    pub fn name(mut self, name: &str) -> Builder {
        self.name = Name::new(name);
        self
    }

    /// Starts a thread that runs `function`.
    pub fn spawn<F, T>(self, function: F) -> Result<JoinHandle<T>, Error>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        let body: Body = Box::new(move || *place.lock() = Some(function()));
        let argument = Box::into_raw(Box::new(body));
        // SAFETY: `run_body` takes ownership of the box, to which nobody else refers.
        match unsafe { self.spawn_raw(run_body, argument.cast()) } {
            Ok(thread) => Ok(JoinHandle { thread, result }),
            Err(error) => {
                // SAFETY: the thread does not run, so the box is still this function's.
                drop(unsafe { Box::from_raw(argument) });
                Err(error)
            }
        }
    }

    /// Starts a thread that calls `function` with `argument`.
    ///
    /// # Safety
    /// The call must be sound in a new thread.
    pub unsafe fn spawn_raw(self, function: extern "C" fn(*mut ()), argument: *mut ()) -> Result<RawThread, Error> {
        reap();
        // From now on this thread may have to wait for a lock.
        own_notification();
        let parts = self.build()?;
        start(&parts, self.name, function, argument)?;
        Ok(RawThread { parts: Some(parts) })
    }

    /// Makes all parts of a thread.
    fn build(self) -> Result<Parts, Error> {
        let on_demand = memory::comes_on_demand();
        let parts = Parts {
            thread: memory::make(0)?,
            scheduling: memory::make(0)?,
            _reply: memory::make(0)?,
            _notification: memory::make(0)?,
            _stack: Anonymous::stack(self.stack_size)?,
            // Nobody handles a fault on the stack for page faults, so an overflow of it must be noticed.
            control: if on_demand { Pages::with_guard(CONTROL_SIZE)? } else { Pages::new(PAGE_SIZE)? },
        };
        let thread = parts.thread.cap();
        let buffer = (parts.control.frame(), (parts.control() - parts.control.address()) as u64);
        thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), Some(buffer))?;

        let main = Cap::<SchedulingContext>::new(slot::SCHEDULING);
        let like = main.query()?;
        let priority = match self.priority {
            Some(priority) => u64::from(priority),
            None => Cap::<Thread>::new(current()).query()?.priority,
        };
        parts.scheduling.cap().configure(priority, like.ceiling, like.slice, Some(main))?;
        if self.budget.is_limit() {
            self.budget.limit(parts.scheduling.cap(), Some(main))?;
        }
        thread.bind(Bindings {
            scheduling: Binding::To(parts.scheduling.cap()),
            reply: Binding::To(parts._reply.cap()),
            notification: Binding::Keep,
        })?;
        for class in Class::STOPPING {
            // Without a process server, a fault stops the thread.
            let _ = thread.faults_to(class, Some(Cap::new(slot::PROCS)));
        }
        if on_demand {
            // SAFETY: the memory below belongs to the new thread, for this purpose.
            unsafe { upcall::handle_page_faults(thread, parts.control()) }?;
        }
        Ok(parts)
    }
}

/// The function that a thread runs.
type Body = Box<dyn FnOnce() + Send>;

/// Runs the body in a box.
extern "C" fn run_body(argument: *mut ()) {
    // SAFETY: `spawn` made the box and passed it to this thread alone.
    let body = unsafe { Box::from_raw(argument.cast::<Body>()) };
    body();
}

/// Sets the thread's block and registers, and resumes it.
fn start(parts: &Parts, name: Name, function: extern "C" fn(*mut ()), argument: *mut ()) -> Result<(), Error> {
    let address = parts.control();
    let (block_address, own_address) = (address + offset_of!(Control, block), address + offset_of!(Control, own));
    let own = Own::new(STARTED.fetch_add(1, Ordering::Relaxed) + 1, name);
    // SAFETY: the page is mapped, this part of it is for the record, and the thread does not run yet.
    unsafe { core::ptr::with_exposed_provenance_mut::<Own>(own_address).write(own) };
    let block = ThreadBlock::new();
    block.this.set(block_address);
    block.ipc_buffer.set(address);
    block.thread.set(parts.thread.cap().address());
    block.notification.set(parts._notification.cap().address());
    block.stack_bottom.set(parts._stack.address());
    block.stack_top.set(parts._stack.end());
    block.runtime.set(own_address);
    // SAFETY: as above, for the block.
    unsafe { core::ptr::with_exposed_provenance_mut::<ThreadBlock>(block_address).write(block) };

    let mut registers = Registers::ZERO;
    registers.pc = entry() as u64;
    registers.sp = parts._stack.end() as u64;
    registers.x[0] = function as usize as u64;
    registers.x[1] = argument.expose_provenance() as u64;
    registers.thread_pointer = block_address as u64;
    // SAFETY: the thread is new, has a stack, block and IPC buffer of its own, and begins at the entry point of
    // threads.
    unsafe { parts.thread.cap().write_registers(&registers, true) }.map_err(Error::Kernel)
}

/// Returns the address of a thread's first instruction.
fn entry() -> usize {
    #[cfg(target_os = "none")]
    {
        /// Entry point of a thread, with its function in `x0` and its argument in `x1`. A frame record of zeros ends
        /// every backtrace here.
        #[unsafe(naked)]
        extern "C" fn begin() -> ! {
            core::arch::naked_asm!("mov x29, xzr", "mov x30, xzr", "b {}", sym run)
        }
        begin as *const () as usize
    }
    #[cfg(not(target_os = "none"))]
    {
        run as *const () as usize
    }
}

/// Runs a thread's function, and ends it.
extern "C" fn run(function: extern "C" fn(*mut ()), argument: *mut ()) -> ! {
    function(argument);
    // SAFETY: the function has returned, and nothing else is on this stack.
    unsafe { end() }
}

/// Ends the running thread as if its function had returned: its thread-local data is dropped, and the thread that joins
/// it continues. If the main thread ends, the process ends.
///
/// # Safety
/// Values on the stack are never dropped. No code may rely on their being dropped, for instance to release a lock or
/// because another thread uses a value that lies there. A thread started with [`Builder::spawn`] has no result then.
pub unsafe fn end() -> ! {
    local::drop_all();
    let Some(block) = ThreadBlock::current().filter(|_| current_id() != 0) else { crate::process::exit(0) };
    let control = block.this.get() - offset_of!(Control, block);
    let exit = core::ptr::with_exposed_provenance::<AtomicPtr<Waiter>>(control + offset_of!(Control, exit));
    let thread = Cap::<Thread>::new(block.thread.get());
    // SAFETY: the page is mapped until another thread sees that this thread is done.
    let waiter = unsafe { &*exit }.swap(DONE, Ordering::AcqRel);
    if !waiter.is_null() {
        // SAFETY: the thread that put the waiter there waits for this.
        unsafe { Waiter::wake(waiter) };
    }
    loop {
        let _ = thread.suspend();
    }
}

/// Frees detached threads that are done.
fn reap() {
    let mut detached = DETACHED.lock();
    let mut index = 0;
    while index < detached.len() {
        if detached[index].is_done() {
            let parts = detached.swap_remove(index);
            drop(parts);
        } else {
            index += 1;
        }
    }
}

/// A started thread. Dropping the handle detaches the thread.
pub struct RawThread {
    parts: Option<Parts>,
}

impl RawThread {
    /// Waits until the thread has ended, and frees its memory.
    pub fn join(mut self) {
        if let Some(parts) = self.parts.take() {
            parts.wait();
        }
    }

    /// Returns whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.parts.as_ref().is_none_or(Parts::is_done)
    }

    /// Returns the thread's capability.
    pub fn thread(&self) -> Option<Cap<Thread>> {
        self.parts.as_ref().map(|parts| parts.thread.cap())
    }

    /// Returns the thread's scheduling context.
    pub fn scheduling(&self) -> Option<Cap<SchedulingContext>> {
        self.parts.as_ref().map(|parts| parts.scheduling.cap())
    }
}

impl Drop for RawThread {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            DETACHED.lock().push(parts);
        }
    }
}

/// A started thread and the future result of its function. Dropping the handle detaches the thread.
pub struct JoinHandle<T> {
    thread: RawThread,
    result: Arc<Mutex<Option<T>>>,
}

impl<T> JoinHandle<T> {
    /// Waits until the thread's function has returned, and returns its result.
    pub fn join(self) -> T {
        self.thread.join();
        match self.result.lock().take() {
            Some(value) => value,
            None => unreachable!("a thread whose function has returned has a result"),
        }
    }

    /// Detaches the thread; its memory is freed when it has ended.
    pub fn detach(self) {
        drop(self);
    }

    /// Returns whether the thread's function has returned.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Returns the thread's capability.
    pub fn thread(&self) -> Option<Cap<Thread>> {
        self.thread.thread()
    }

    /// Returns the thread's scheduling context.
    pub fn scheduling(&self) -> Option<Cap<SchedulingContext>> {
        self.thread.scheduling()
    }
}

/// Starts a thread that runs `function`. Panics if there is not enough memory; see [`Builder::spawn`].
pub fn spawn<F, T>(function: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match Builder::new().spawn(function) {
        Ok(handle) => handle,
        Err(error) => panic!("cannot start a thread: {error}"),
    }
}

/// Returns the capability address of the running thread.
fn current() -> tench_abi::CapAddress {
    ThreadBlock::current().map_or(slot::THREAD, |block| block.thread.get())
}

/// Returns the running thread's capability.
pub fn current_thread() -> Cap<Thread> {
    Cap::new(current())
}

/// Returns the end of the stack on which the running thread's page faults are handled; 0 if they are not handled.
pub(crate) fn fault_stack() -> usize {
    if !memory::comes_on_demand() {
        return 0;
    }
    match ThreadBlock::current() {
        Some(block) if block.runtime.get() != 0 && current_id() != 0 => block.this.get() - offset_of!(Control, block),
        Some(block) if block.thread.get() == slot::THREAD => main_fault_stack(),
        // A thread that the program made itself has no such stack.
        _ => 0,
    }
}

/// Returns the end of the stack on which the main thread's page faults are handled: the initial stack, which that
/// thread has left.
pub(crate) fn main_fault_stack() -> usize {
    process::info().map_or(0, |info| info.stack_top as usize)
}

/// Returns the number of the running thread: 0 for the main thread, then in the order in which they were started.
pub fn current_id() -> usize {
    Own::current().map_or(0, |own| own.number.get())
}

/// Returns the address of the running thread's C error number, valid as long as the thread runs. Threads that did not
/// begin in this library share one.
pub fn error_number() -> *mut i32 {
    static SHARED: AtomicI32 = AtomicI32::new(0);
    Own::current().map_or(SHARED.as_ptr(), |own| own.error.as_ptr())
}

/// Returns the running thread's name; empty if it has none.
pub fn current_name() -> Name {
    Own::current().map_or(Name::NONE, |own| own.name.get())
}

/// Renames the running thread.
pub fn set_name(name: &str) {
    if let Some(own) = Own::current() {
        own.name.set(Name::new(name));
    }
}

/// Returns the notification on which the running thread sleeps. Other threads get theirs when they are started; the
/// main thread's is made when it is first needed.
pub fn own_notification() -> Option<Cap<Notification>> {
    let block = ThreadBlock::current()?;
    if block.notification.get() == tench_abi::CapAddress::NULL {
        let made = memory::make::<Notification>(0).ok()?;
        block.notification.set(made.leak().address());
    }
    Some(Cap::new(block.notification.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_kernel_no_thread_starts() {
        assert!(Builder::new().stack_size(4096).priority(3).spawn(|| 5).is_err());
        assert_eq!((current_id(), current(), own_notification()), (0, slot::THREAD, None));
    }

    #[test]
    fn the_memory_holds_all_its_parts() {
        // The minimum that `upcall::handle` documents.
        const { assert!(CONTROL_SIZE - PAGE_SIZE >= 12 * 1024) };
        assert_eq!((offset_of!(Control, buffer), offset_of!(Control, block)), (0, 1024));
        assert_eq!((offset_of!(Control, exit), offset_of!(Control, own)), (1088, 1096));
    }
}
