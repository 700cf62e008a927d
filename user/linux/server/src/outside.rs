//! Input from outside, for which a thread of its own waits, and Ctrl-C.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tench::memory::{Made, make, take_slot};
use tench::procs::Procs;
use tench::sync::{Mutex, Semaphore};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, Notification, Rights};
use tench::{io, thread};

/// The longest input that is read at once, in bytes.
const LONGEST: usize = 4096;
/// Size of the waiting thread's stack in bytes.
const STACK: usize = 64 * 1024;

/// The notification's bit for input: that of a capability without a badge.
const INPUT: u64 = 1;
/// The notification's bit for Ctrl-C.
const INTERRUPT: u64 = 2;

/// Events outside.
#[derive(Debug)]
pub struct Event {
    /// Ctrl-C was typed.
    pub is_interrupt: bool,
    /// Input has come; nothing at its end.
    pub input: Option<Vec<u8>>,
}

/// Everything that the two threads share.
struct Shared {
    /// Released once for each input that is wanted.
    wanted: Semaphore,
    /// Bytes that were read; nothing at the end.
    input: Mutex<Vec<u8>>,
    /// Signalled when something was read.
    arrived: Cap<Notification>,
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").field("arrived", &self.arrived).finish_non_exhaustive()
    }
}

impl Shared {
    fn wait_for_input(&self) {
        loop {
            self.wanted.acquire();
            let mut bytes = [0; LONGEST];
            let count = loop {
                match io::read(&mut bytes) {
                    Ok(count) => break count,
                    Err(error) if error.is_interrupted() => {}
                    // Where nothing can be read, the input is at its end.
                    Err(_) => break 0,
                }
            };
            self.input.lock().extend_from_slice(&bytes[..count]);
            self.signal();
        }
    }

    fn signal(&self) {
        let signalled = self.arrived.signal();
        debug_assert!(signalled.is_ok(), "the notification lives as long as the process");
    }
}

/// Input from outside.
#[derive(Debug)]
pub struct Outside {
    arrived: Made<Notification>,
    /// Capability to the same notification, with the bit of Ctrl-C.
    interrupt: Option<Cap<Notification>>,
    /// Made when input is first wanted: most programs want none.
    shared: Option<Arc<Shared>>,
    /// Set while input is wanted that has not come.
    is_awaited: bool,
}

impl Outside {
    /// Returns the input from outside, whose arrival ends the calling thread's waits for messages.
    pub fn new() -> Result<Outside, tench::memory::Error> {
        let arrived: Made<Notification> = make(0)?;
        let bindings = Bindings { notification: Binding::To(arrived.cap()), ..Bindings::KEEP };
        thread::current_thread().bind(bindings)?;
        let interrupt = arrived.cap().mint_to(take_slot()?, Rights::WRITE, INTERRUPT).ok();
        let outside = Outside { arrived, interrupt, shared: None, is_awaited: false };
        outside.await_interrupt();
        Ok(outside)
    }

    /// Returns the notification that ends the waits for messages.
    pub const fn arrived(&self) -> Cap<Notification> {
        self.arrived.cap()
    }

    /// Lets the next input be read, if it is not awaited already.
    pub fn await_input(&mut self) {
        if core::mem::replace(&mut self.is_awaited, true) {
            return;
        }
        let arrived = self.arrived.cap();
        let shared = self.shared.get_or_insert_with(|| {
            let shared = Arc::new(Shared { wanted: Semaphore::new(0), input: Mutex::new(Vec::new()), arrived });
            let other = Arc::clone(&shared);
            let builder = thread::Builder::new().name("console").stack_size(STACK);
            match builder.spawn(move || other.wait_for_input()) {
                Ok(thread) => thread.detach(),
                // Without a thread, there is no input.
                Err(_) => shared.signal(),
            }
            shared
        });
        let released = shared.wanted.release();
        debug_assert!(released.is_ok(), "input is awaited once at a time");
    }

    /// Takes what has happened, according to the bits of the notification.
    pub fn take_event(&mut self, bits: u64) -> Event {
        let is_interrupt = bits & INTERRUPT != 0;
        if is_interrupt {
            // The next one, too, only tells.
            self.await_interrupt();
        }
        let input = (bits & INPUT != 0).then(|| {
            self.is_awaited = false;
            self.shared.as_ref().map_or(Vec::new(), |shared| core::mem::take(&mut *shared.input.lock()))
        });
        Event { is_interrupt, input }
    }

    /// Lets the next Ctrl-C signal the notification, in place of ending the process.
    fn await_interrupt(&self) {
        if let Some(interrupt) = self.interrupt {
            // If the process server does not want to, Ctrl-C ends the instance.
            let _ = Procs::STANDARD.on_interrupt(interrupt);
        }
    }
}
