//! Reminds the main thread to look whether those still answer for whom somebody waits.
//!
//! Nobody hears of the end of a core: its kernel may have failed, and a monitor that is gone says nothing. So whoever
//! waits for an answer of another core would wait for ever. The main thread is reminded of them every few seconds, asks
//! the kernel whether those are off of whom it has heard nothing meanwhile, and, if they are not, themselves. While
//! nobody waits there are no reminders, and an idle machine stays idle. That the main thread has no deadline of its own
//! for this keeps the way to another core short.

use alloc::sync::Arc;
use core::time::Duration;

use tench::memory;
use tench::sync::{Condvar, Mutex};
use tench::{thread, time};
use tench_sys::{Cap, Notification};

/// Time from one reminder to the next.
const PERIOD: Duration = Duration::from_secs(2);
/// Bytes of the thread's stack.
const STACK: usize = 16 * 1024;

/// Whether reminders are wanted, and who wants them.
pub struct Attention {
    is_on: bool,
    wanted: Arc<(Mutex<bool>, Condvar)>,
}

impl Attention {
    /// Off at first. Reminders are signals.
    pub fn new(remind: Cap<Notification>) -> Result<Attention, memory::Error> {
        let wanted = Arc::new((Mutex::new(false), Condvar::new()));
        let shared = Arc::clone(&wanted);
        let builder = thread::Builder::new().stack_size(STACK).name("attention");
        let work = move || {
            let (wanted, changed) = &*shared;
            loop {
                *changed.wait_while(wanted.lock(), |wanted| !*wanted) = false;
                time::sleep(PERIOD);
                // It is there as long as this process.
                let _ = remind.signal();
            }
        };
        builder.spawn(work)?.detach();
        Ok(Attention { is_on: false, wanted })
    }

    /// A reminder is to come, if none is on its way.
    #[inline]
    pub fn pay(&mut self) {
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

    /// The reminder has come.
    pub fn was_reminded(&mut self) {
        self.is_on = false;
    }
}
