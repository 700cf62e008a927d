//! Kernel stacks. Each entry into the kernel runs on a coroutine, so a thread that is switched away from at a
//! preemption point stays suspended in the middle of its operation, as on a real kernel stack, and threads continue in
//! any order.
//!
//! A suspended entry is dropped when its thread no longer continues there (it was deleted, or its registers were
//! written): the design allows such an operation to be forgotten.

use std::cell::Cell;
use std::collections::HashMap;
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use tench_kernel::object::Ref;
use tench_kernel::thread::Thread;

type Entry = Coroutine<(), Ref<Thread>, Ref<Thread>, DefaultStack>;
type Exit = Yielder<(), Ref<Thread>>;

thread_local! {
    /// The yielder by which the running entry leaves to the driver; null outside of an entry.
    static EXIT: Cell<*const Exit> = const { Cell::new(ptr::null()) };
}

/// Suspends the running entry, which belongs to `from`; the driver continues with `to`. Returns when the driver is to
/// continue with `from` again.
pub fn switch(from: Ref<Thread>, to: Ref<Thread>) {
    let exit = EXIT.get();
    assert!(!exit.is_null(), "threads are switched only inside of Machine's entries");
    set_suspended(from, true);
    // SAFETY: `EXIT` points to the yielder of the running coroutine, which lives as long as the coroutine runs.
    unsafe { &*exit }.suspend(to);
    EXIT.set(exit);
    set_suspended(from, false);
}

/// Records whether a thread continues in the kernel.
fn set_suspended(thread: Ref<Thread>, suspended: bool) {
    let thread: *mut Thread = ptr::with_exposed_provenance_mut(thread.address());
    // SAFETY: the thread is alive, because it is being switched from or to; no reference into it exists (contract of
    // `Arch::switch`).
    unsafe { (*thread).kernel_stack_pointer = usize::from(suspended) };
}

/// The suspended entries, by thread.
#[derive(Default)]
pub struct Stacks {
    suspended: HashMap<usize, Entry>,
    spare: Vec<DefaultStack>,
}

impl Stacks {
    /// Enters the kernel as `thread` and continues from entry to entry until a thread is to run in user mode. Returns
    /// that thread. `continues` returns true if a thread continues in the kernel.
    pub fn enter(
        &mut self,
        thread: Ref<Thread>,
        job: impl FnOnce() -> Ref<Thread> + 'static,
        continues: impl Fn(Ref<Thread>) -> bool,
    ) -> Ref<Thread> {
        if cfg!(miri) {
            // Coroutines are made with assembly, which Miri does not execute. So nothing can be switched away from.
            return job();
        }
        let stack = self.spare.pop().unwrap_or_default();
        let mut entry: Entry = Coroutine::with_stack(stack, move |exit, ()| {
            EXIT.set(exit);
            job()
        });
        let mut running = thread;
        loop {
            let next = match entry.resume(()) {
                CoroutineResult::Yield(next) => {
                    self.suspended.insert(running.address(), entry);
                    next
                }
                CoroutineResult::Return(next) => {
                    self.spare.push(entry.into_stack());
                    next
                }
            };
            EXIT.set(ptr::null());
            let suspended = self.suspended.remove(&next.address());
            match suspended {
                Some(suspended) if continues(next) => {
                    entry = suspended;
                    running = next;
                }
                _ => return next,
            }
        }
    }

    /// Drops all suspended entries.
    pub fn forget(&mut self) {
        self.suspended.clear();
    }

    /// Returns the number of threads that are suspended in the kernel, or were when they were deleted.
    pub fn suspended(&self) -> usize {
        self.suspended.len()
    }
}
