//! A thread that tells the personality when a time has come.
//!
//! A call takes the kernel's fast path only to a thread that receives without a time limit. So when two messages in a
//! row arrive before the same deadline, this thread waits for that deadline instead, and signals when it has come.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use tench::memory::{Made, make, take_slot};
use tench::sys::{Cap, Error, Notification, Rights, Wait};
use tench::thread::Builder;
use tench::time::{self, Instant};

/// The bit of the notification that this thread signals.
pub const BIT: u64 = 4;

/// Size of the thread's stack in bytes.
const STACK: usize = 16 * 1024;

/// Everything that the two threads share.
#[derive(Debug)]
struct Shared {
    /// The time for which to wait, in ticks.
    until: AtomicU64,
    /// Signalled when that has changed.
    changed: Made<Notification>,
    /// Signalled when it has come.
    passed: Cap<Notification>,
}

impl Shared {
    fn wait_for_times(&self) {
        let mut until = None;
        loop {
            let changed = match until {
                Some(until) => self.changed.cap().wait_until(until),
                None => self.changed.cap().wait(),
            };
            until = if changed == Err(Error::TimedOut) {
                signal(self.passed);
                None
            } else {
                Some(Instant::from_ticks(self.until.load(Ordering::Relaxed)))
            };
        }
    }
}

fn signal(notification: Cap<Notification>) {
    let signalled = notification.signal();
    debug_assert!(signalled.is_ok(), "the notification lives as long as the process");
}

/// The time for which the personality waits while it receives.
#[derive(Debug)]
pub struct Timer {
    /// The notification that ends the personality's waits for messages.
    arrived: Cap<Notification>,
    /// Made when it is first needed: most programs never wait for a time while others go on.
    shared: Option<Arc<Shared>>,
    /// Set if there was no memory for the thread. The personality receives with a time limit then.
    is_refused: bool,
    /// The time for which the thread waits.
    until: Option<Duration>,
    /// The time limit of the last receive that had one.
    limit: Option<Duration>,
}

impl Timer {
    /// Returns a timer that signals [`BIT`] of a notification.
    pub const fn new(arrived: Cap<Notification>) -> Timer {
        Timer { arrived, shared: None, is_refused: false, until: None, limit: None }
    }

    /// Returns whether the thread waits for a time already, or for one before it.
    #[inline]
    pub fn waits_for(&self, due: Duration) -> bool {
        self.until.is_some_and(|until| until <= due)
    }

    /// Returns how to wait for a time, which comes after `left`.
    pub fn wait(&mut self, due: Duration, left: Duration) -> Wait {
        let until = time::deadline(left);
        if self.limit.replace(due) == Some(due) && self.set(until) {
            self.until = Some(due);
            return Wait::FOREVER;
        }
        Wait::until(until)
    }

    /// Notes that the thread has signalled, and waits no more.
    pub const fn pass(&mut self) {
        self.until = None;
    }

    /// Lets the thread wait for a time. Returns whether there is a thread.
    fn set(&mut self, until: Instant) -> bool {
        if self.shared.is_none() && !self.is_refused {
            self.shared = self.start().ok();
            self.is_refused = self.shared.is_none();
        }
        let Some(shared) = &self.shared else { return false };
        shared.until.store(until.ticks(), Ordering::Relaxed);
        signal(shared.changed.cap());
        true
    }

    fn start(&self) -> Result<Arc<Shared>, tench::memory::Error> {
        let passed = self.arrived.mint_to(take_slot()?, Rights::WRITE, BIT)?;
        let shared = Arc::new(Shared { until: AtomicU64::new(0), changed: make(0)?, passed });
        let other = Arc::clone(&shared);
        Builder::new().name("timer").stack_size(STACK).spawn(move || other.wait_for_times())?.detach();
        Ok(shared)
    }
}
