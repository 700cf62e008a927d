//! The liveness timer reminds the main thread to check that the cores from which a reply is awaited still run.
//!
//! The end of a core is not announced: its kernel may have failed, and a monitor that has ended sends nothing. So a
//! client that waits for a reply of another core would wait for ever. Every few seconds the main thread is reminded of
//! such cores; for those that have sent nothing meanwhile it asks the kernel whether they are off, and, if not, asks
//! their monitors. While nothing is awaited there are no reminders, and an idle machine stays idle. The timer is a
//! thread of its own because a deadline in the main thread would lengthen the path to another core.

use alloc::sync::Arc;
use core::time::Duration;

use tench::memory;
use tench::sync::{Condvar, Mutex};
use tench::{thread, time};
use tench_sys::{Cap, Notification};

/// Time from one reminder to the next.
const PERIOD: Duration = Duration::from_secs(2);
/// Size of the thread's stack in bytes.
const STACK: usize = 16 * 1024;

/// The liveness timer.
pub struct LivenessTimer {
    is_on: bool,
    wanted: Arc<(Mutex<bool>, Condvar)>,
}

impl LivenessTimer {
    /// Starts the timer, switched off. A reminder signals `remind`.
    pub fn new(remind: Cap<Notification>) -> Result<LivenessTimer, memory::Error> {
        let wanted = Arc::new((Mutex::new(false), Condvar::new()));
        let shared = Arc::clone(&wanted);
        let builder = thread::Builder::new().stack_size(STACK).name("liveness");
        let work = move || {
            let (wanted, changed) = &*shared;
            loop {
                *changed.wait_while(wanted.lock(), |wanted| !*wanted) = false;
                time::sleep(PERIOD);
                // The notification exists as long as this process.
                let _ = remind.signal();
            }
        };
        builder.spawn(work)?.detach();
        Ok(LivenessTimer { is_on: false, wanted })
    }

    /// Requests a reminder, if none is under way.
    #[inline]
    pub fn arm(&mut self) {
        if !self.is_on {
            self.turn_on();
        }
    }

    #[cold]
    fn turn_on(&mut self) {
        self.is_on = true;
        let (wanted, changed) = &*self.wanted;
        *wanted.lock() = true;
        changed.notify_one();
    }

    /// Notes that the reminder has arrived.
    pub fn was_reminded(&mut self) {
        self.is_on = false;
    }
}
