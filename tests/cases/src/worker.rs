//! Threads of this process for a case.
//!
//! A worker can end at any moment, because a case deletes it or because the case's memory is taken back. So it owns
//! nothing, takes no lock and uses no heap: what it runs is copied into its page, and so is what it answers.
//!
//! ```text
//! 0      message area
//! 1024   thread block
//! 2048   what it runs
//! 3072   what it answers
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

/// Workers that a case can have.
pub const PLACES: usize = 8;
/// Offsets in a worker's page.
const BLOCK: usize = 1024;
const BODY: usize = 2048;
const RESULT: usize = 3072;
/// Bytes for what it runs, and for what it answers.
const ROOM: usize = 1024;
/// Ticks for which anybody waits for something that has to happen: a second.
const PATIENCE: u64 = 62_500_000;
/// A tenth of a millisecond in ticks.
pub const MOMENT: u64 = 6_250;

/// The time after which a wait that has to end has failed.
pub fn patience() -> Instant {
    Instant::now().after(PATIENCE)
}

/// A moment from now.
pub fn soon() -> Instant {
    Instant::now().after(MOMENT)
}

/// Lets everybody else run for a moment.
pub fn pause(stage: &mut Stage) -> Outcome {
    let never = stage.notification()?;
    refused!(never.wait_until(soon()), TimedOut);
    never.delete()?;
    Ok(())
}

/// What a worker has.
#[derive(Clone, Copy)]
pub struct Equipment {
    /// Its priority; none for a thread without a scheduling context.
    pub priority: Option<u64>,
    /// Ticks of its time slice.
    pub slice: u64,
    /// Whether it has a message area.
    pub area: bool,
    /// Whether a reply object is bound to it.
    pub reply: bool,
    /// Whether it runs at once.
    pub start: bool,
}

impl Equipment {
    /// Everything, at a priority.
    pub const fn at(priority: u64) -> Equipment {
        Equipment { priority: Some(priority), slice: 0, area: true, reply: true, start: true }
    }
}

/// A worker that answers a `T`.
#[derive(Clone, Copy)]
pub struct Worker<T> {
    /// The thread.
    pub thread: Cap<Thread>,
    /// What it runs on.
    pub scheduling: Cap<SchedulingContext>,
    /// What is bound for it to receive with.
    pub reply: Cap<Reply>,
    /// Its page.
    pub page: usize,
    done: Cap<Notification>,
    result: PhantomData<T>,
}

/// What a worker runs first: calls the body that lies in the page, and keeps the answer there.
unsafe extern "C" fn run<F: FnOnce() -> T, T>(page: usize, done: u64, thread: u64) -> ! {
    // SAFETY: `spawn` has written the body there, which is as large as it says, and nobody else reads it.
    let body = unsafe { core::ptr::with_exposed_provenance::<F>(page + BODY).read() };
    let result = body();
    // SAFETY: this part of the page is for the answer, and nobody reads it before `done` is signalled.
    unsafe { core::ptr::with_exposed_provenance_mut::<T>(page + RESULT).write(result) };
    let _ = Cap::<Notification>::new(tench::sys::CapAddress(done as u32)).signal();
    loop {
        let _ = Cap::<Thread>::new(tench::sys::CapAddress(thread as u32)).suspend();
    }
}

impl Stage {
    /// A worker that runs before the main thread.
    pub fn spawn<F, T>(&mut self, body: F) -> Outcome<Worker<T>>
    where
        F: FnOnce() -> T + Copy + 'static,
        T: Copy + 'static,
    {
        self.spawn_with(Equipment::at(HIGH), body)
    }

    /// A worker.
    pub fn spawn_with<F, T>(&mut self, equipment: Equipment, body: F) -> Outcome<Worker<T>>
    where
        F: FnOnce() -> T + Copy + 'static,
        T: Copy + 'static,
    {
        const { assert!(size_of::<F>() <= ROOM && size_of::<T>() <= ROOM) };
        let (thread, scheduling) = (self.make::<Thread>(0)?, self.make::<SchedulingContext>(0)?);
        let (reply, done) = (self.reply()?, self.notification()?);
        let Some((stack, page)) = self.places.get(self.workers) else {
            return Err(Failure::new("a case has eight workers at most"));
        };
        self.workers += 1;
        let area = equipment.area.then_some((page.frame(), 0));
        thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), area)?;
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
        write_block(page, stack, thread, equipment.area);
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
fn write_block(page: usize, stack: (usize, usize), thread: Cap<Thread>, area: bool) {
    let block = ThreadBlock::new();
    block.this.set(page + BLOCK);
    block.message_area.set(if area { page } else { 0 });
    block.thread.set(thread.address());
    block.stack_bottom.set(stack.0);
    block.stack_top.set(stack.1);
    // SAFETY: the page is mapped, this part of it is for the block, and the thread does not run yet.
    unsafe { core::ptr::with_exposed_provenance_mut::<ThreadBlock>(page + BLOCK).write(block) };
}

impl<T: Copy> Worker<T> {
    /// Waits until it has ended, and answers what it answers.
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
        // SAFETY: the worker has written its answer before it signalled, and writes there no more.
        Ok(unsafe { core::ptr::with_exposed_provenance::<T>(self.page + RESULT).read() })
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        match self.done.poll() {
            Ok(_) => self.done.signal().is_ok(),
            Err(_) => false,
        }
    }

    /// What it is doing.
    pub fn state(&self) -> Result<ThreadState, Error> {
        Ok(self.thread.query()?.state)
    }
}

/// A word that workers and the main thread share. It outlives the case.
#[derive(Clone, Copy)]
pub struct Shared(&'static AtomicU64);

impl Shared {
    /// Word `index`, as it is.
    pub fn existing(index: usize) -> Shared {
        Shared(&WORDS[index])
    }

    /// Its value.
    pub fn get(self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Sets it.
    pub fn set(self, value: u64) {
        self.0.store(value, Ordering::SeqCst);
    }

    /// Adds 1, and answers what it was.
    pub fn fetch_add(self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Appends a digit, so that the number tells an order.
    pub fn append(self, digit: u64) {
        self.set(self.get() * 10 + digit);
    }
}

/// What [`Stage::word`] gives out.
static WORDS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

impl Stage {
    /// A word that starts at 0.
    pub fn word(&mut self, index: usize) -> Outcome<Shared> {
        let word = WORDS.get(index).ok_or_else(|| Failure::new("no such word"))?;
        word.store(0, Ordering::SeqCst);
        Ok(Shared(word))
    }
}
