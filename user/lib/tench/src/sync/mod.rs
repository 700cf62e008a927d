//! Mutex, condition variable, semaphore, read-write lock, barrier, once: without system calls as long as no thread has
//! to wait.
//!
//! The algorithms are those of `tench-sync`: locks are granted in the order of the requests, and nothing spins. A
//! thread that has to wait puts itself in a queue of the lock, and waits for the notification in its thread block. The
//! thread that grants the lock takes it out of the queue and signals that notification. Both are system calls on an
//! object of this process: between threads of one process the address space is never switched.
//!
//! [`InheritingMutex`] is different: its waiters wait for its holder as for a server, and so help it.
//!
//! Locks between several processes are in [`shared`].

mod barrier;
mod condvar;
pub(crate) mod inheriting;
mod mutex;
mod once;
mod read_write;
mod semaphore;
pub mod shared;

use core::sync::atomic::AtomicUsize;

use tench_abi::CapAddress;
use tench_sync::Platform;
use tench_sys::{Cap, Error, Instant, Notification, ThreadBlock};

pub use barrier::Barrier;
pub use condvar::Condvar;
pub use inheriting::{InheritingGuard, InheritingMutex};
pub use mutex::{Mutex, MutexGuard};
pub use once::{Once, OnceLock};
pub use read_write::{ReadGuard, RwLock, WriteGuard};
pub use semaphore::Semaphore;
pub use tench_sync::Overflow;

/// A fair lock without data.
pub type RawLock = tench_sync::FairLock<Threads>;
/// A condition variable without a lock of its own.
pub type RawCondition = tench_sync::Condition<Threads>;
/// A read-write lock without data.
pub type RawReadWrite = tench_sync::ReadWrite<Threads>;
/// A semaphore with all operations.
pub type RawPermits = tench_sync::Permits<Threads>;
/// A barrier.
pub type RawBarrier = tench_sync::Barrier<Threads>;
/// A waiting thread.
pub(crate) type Waiter = tench_sync::Waiter<Threads>;
type Line = tench_sync::Line<Threads>;

/// Returns a free lock.
pub const fn raw_lock() -> RawLock {
    RawLock::of(AtomicUsize::new(0), AtomicUsize::new(0))
}

/// Returns an empty line.
const fn line() -> Line {
    Line::of(raw_lock(), AtomicUsize::new(0), AtomicUsize::new(0))
}

/// The threads of this process, which sleep on the notification in their thread block.
pub enum Threads {}

impl Platform for Threads {
    type Word = AtomicUsize;
    type Parker = CapAddress;

    #[inline]
    fn own() -> CapAddress {
        ThreadBlock::current().map_or(CapAddress::NULL, |block| block.notification.get())
    }

    fn park(own: &CapAddress) {
        if *own == CapAddress::NULL || Cap::<Notification>::new(*own).wait().is_err() {
            pause();
        }
    }

    fn park_until(own: &CapAddress, deadline: u64) -> bool {
        let deadline = Instant::from_ticks(deadline);
        if *own == CapAddress::NULL {
            pause();
            return Instant::now() < deadline;
        }
        match Cap::<Notification>::new(*own).wait_until(deadline) {
            Err(Error::TimedOut) => return false,
            Err(_) => pause(),
            Ok(_) => {}
        }
        true
    }

    fn unpark(parker: &CapAddress) {
        if *parker != CapAddress::NULL {
            // If the notification was deleted, so was its thread.
            let _ = Cap::<Notification>::new(*parker).signal();
        }
    }
}

/// Yields to other threads, where there is no notification to wait for: only in a single-threaded program (which waits
/// for ever) and in tests on the host.
fn pause() {
    #[cfg(test)]
    std::thread::yield_now();
    tench_sys::thread::yield_now();
}
