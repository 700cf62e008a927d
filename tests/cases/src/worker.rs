//! Threads of this process for a case.
//!
//! A worker can end at any moment, because a case deletes it or takes the case's memory back. So it owns nothing, takes
//! no lock and uses no heap: its body is copied into its page, and so is its result.
//!
//! ```text
//! 0      IPC buffer
//! 1024   thread block
//! 2048   body
//! 3072   result
//! ```

use alloc::format;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use tench::abi::fault::Registers;
use tench::abi::layout::slot;
use tench::abi::object::ThreadState;
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, Error, Instant, Notification, Reply, SchedulingContext, Thread, ThreadBlock};

use crate::assembly;
use crate::case::{Failure, Outcome};
use crate::stage::{HIGH, Stage};

/// Maximum number of workers of a case.
pub const MAX_WORKERS: usize = 8;
/// Offsets in a worker's page.
const BLOCK: usize = 1024;
const BODY: usize = 2048;
const RESULT: usize = 3072;
/// Bytes for the body, and for the result.
const CAPACITY: usize = 1024;
/// Ticks after which a wait for something that must happen fails: one second.
const PATIENCE: u64 = 62_500_000;
/// A tenth of a millisecond in ticks.
pub const MOMENT: u64 = 6_250;

/// Returns the deadline after which a wait that must end has failed.
pub fn patience() -> Instant {
    Instant::now().after(PATIENCE)
}

/// Returns the instant one moment from now.
pub fn soon() -> Instant {
    Instant::now().after(MOMENT)
}

/// Lets all other threads run for a moment.
pub fn pause(stage: &mut Stage) -> Outcome {
    let never = stage.notification()?;
    refused!(never.wait_until(soon()), TimedOut);
    never.delete()?;
    Ok(())
}

/// Equipment of a worker.
#[derive(Clone, Copy)]
pub struct Equipment {
    /// Priority of the worker; none for a thread without a scheduling context.
    pub priority: Option<u64>,
    /// Ticks of its time slice.
    pub slice: u64,
    /// Set if the worker has an IPC buffer.
    pub buffer: bool,
    /// Set if a reply object is bound to the worker.
    pub reply: bool,
    /// Set if the worker runs at once.
    pub start: bool,
}

impl Equipment {
    /// Returns full equipment at a priority.
    pub const fn at(priority: u64) -> Equipment {
        Equipment { priority: Some(priority), slice: 0, buffer: true, reply: true, start: true }
    }
}

/// A worker whose body returns a `T`.
#[derive(Clone, Copy)]
pub struct Worker<T> {
    /// Capability of the thread.
    pub thread: Cap<Thread>,
    /// The worker's scheduling context.
    pub scheduling: Cap<SchedulingContext>,
    /// Reply object bound to the worker for receiving.
    pub reply: Cap<Reply>,
    /// Address of the worker's page.
    pub page: usize,
    done: Cap<Notification>,
    result: PhantomData<T>,
}

/// Entry point of a worker: calls the body that lies in the page, and stores the result there.
unsafe extern "C" fn run<F: FnOnce() -> T, T>(page: usize, done: u64, thread: u64) -> ! {
    // SAFETY: `spawn` has written the body there, which has the declared size, and it is read only here.
    let body = unsafe { core::ptr::with_exposed_provenance::<F>(page + BODY).read() };
    let result = body();
    // SAFETY: this part of the page is for the result, which is not read before `done` is signalled.
    unsafe { core::ptr::with_exposed_provenance_mut::<T>(page + RESULT).write(result) };
    let _ = Cap::<Notification>::new(tench::sys::CapAddress(done as u32)).signal();
    loop {
        let _ = Cap::<Thread>::new(tench::sys::CapAddress(thread as u32)).suspend();
    }
}

impl Stage {
    /// Spawns a worker that runs before the main thread.
    pub fn spawn<F, T>(&mut self, body: F) -> Outcome<Worker<T>>
    where
        F: FnOnce() -> T + Copy + 'static,
        T: Copy + 'static,
    {
        self.spawn_with(Equipment::at(HIGH), body)
    }

    /// Spawns a worker with this equipment.
    pub fn spawn_with<F, T>(&mut self, equipment: Equipment, body: F) -> Outcome<Worker<T>>
    where
        F: FnOnce() -> T + Copy + 'static,
        T: Copy + 'static,
    {
        const { assert!(size_of::<F>() <= CAPACITY && size_of::<T>() <= CAPACITY) };
        let (thread, scheduling) = (self.make::<Thread>(0)?, self.make::<SchedulingContext>(0)?);
        let (reply, done) = (self.reply()?, self.notification()?);
        let Some((stack, page)) = self.worker_memory.get(self.workers) else {
            return Err(Failure::new("a case has eight workers at most"));
        };
        self.workers += 1;
        let buffer = equipment.buffer.then_some((page.frame(), 0));
        thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), buffer)?;
        let mut bindings = Bindings::KEEP;
        if let Some(priority) = equipment.priority {
            scheduling.configure(priority, priority, equipment.slice, None)?;
            bindings.scheduling = Binding::To(scheduling);
        }
        if equipment.reply {
            bindings.reply = Binding::To(reply);
        }
        thread.bind(bindings)?;

        let (page, stack) = (page.address(), (stack.address(), stack.end()));
        // SAFETY: the page is mapped and its thread does not run yet.
        unsafe { core::ptr::with_exposed_provenance_mut::<[u64; 512]>(page).write([0; 512]) };
        write_block(page, stack, thread, equipment.buffer);
        // SAFETY: as above; the body fits, and is aligned by the page's layout.
        unsafe { core::ptr::with_exposed_provenance_mut::<F>(page + BODY).write(body) };
        let mut registers = Registers::ZERO;
        registers.pc = assembly::begin as *const () as u64;
        registers.sp = stack.1 as u64;
        registers.x[0] = page as u64;
        registers.x[1] = u64::from(done.address().0);
        registers.x[2] = u64::from(thread.address().0);
        registers.x[3] = run::<F, T> as *const () as u64;
        registers.thread_pointer = (page + BLOCK) as u64;
        // SAFETY: the thread is new, with a stack of its own, and begins at `begin`.
        unsafe { thread.write_registers(&registers, equipment.start) }?;
        Ok(Worker { thread, scheduling, reply, page, done, result: PhantomData })
    }
}

/// Writes a worker's thread block into its page.
fn write_block(page: usize, stack: (usize, usize), thread: Cap<Thread>, buffer: bool) {
    let block = ThreadBlock::new();
    block.this.set(page + BLOCK);
    block.ipc_buffer.set(if buffer { page } else { 0 });
    block.thread.set(thread.address());
    block.stack_bottom.set(stack.0);
    block.stack_top.set(stack.1);
    // SAFETY: the page is mapped, this part of it is for the block, and the thread does not run yet.
    unsafe { core::ptr::with_exposed_provenance_mut::<ThreadBlock>(page + BLOCK).write(block) };
}

impl<T: Copy> Worker<T> {
    /// Waits until the worker has ended, and returns its result.
    #[track_caller]
    pub fn join(&self) -> Outcome<T> {
        match self.done.wait_until(patience()) {
            Ok(_) => {}
            Err(Error::TimedOut) => {
                let state = self.thread.query().map(|info| info.state);
                return Err(Failure::new(format!("a worker did not end; it is {state:?}")));
            }
            Err(error) => return Err(Failure::new(format!("waiting for a worker: {error:?}"))),
        }
        // SAFETY: the worker wrote its result before it signalled, and does not write there any more.
        Ok(unsafe { core::ptr::with_exposed_provenance::<T>(self.page + RESULT).read() })
    }

    /// Returns whether the worker has ended.
    pub fn has_ended(&self) -> bool {
        match self.done.poll() {
            Ok(_) => self.done.signal().is_ok(),
            Err(_) => false,
        }
    }

    /// Returns the worker's thread state.
    pub fn state(&self) -> Result<ThreadState, Error> {
        Ok(self.thread.query()?.state)
    }
}

/// A word that workers and the main thread share. It outlives the case.
#[derive(Clone, Copy)]
pub struct Shared(&'static AtomicU64);

impl Shared {
    /// Returns word `index` with its present value.
    pub fn existing(index: usize) -> Shared {
        Shared(&WORDS[index])
    }

    /// Returns the value.
    pub fn get(self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Sets the value.
    pub fn set(self, value: u64) {
        self.0.store(value, Ordering::SeqCst);
    }

    /// Adds 1, and returns the previous value.
    pub fn fetch_add(self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Appends a decimal digit, so that the number records an order.
    pub fn append(self, digit: u64) {
        self.set(self.get() * 10 + digit);
    }
}

/// Words that [`Stage::word`] gives out.
static WORDS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

impl Stage {
    /// Returns a word that starts at 0.
    pub fn word(&mut self, index: usize) -> Outcome<Shared> {
        let word = WORDS.get(index).ok_or_else(|| Failure::new("no such word"))?;
        word.store(0, Ordering::SeqCst);
        Ok(Shared(word))
    }
}
