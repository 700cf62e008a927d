//! Ctrl-C and Ctrl-Z while programs run.
//!
//! The console, which edits lines itself then, signals a notification. A thread of its own waits for it, because the
//! main thread waits for the programs' end, or until a program reads what a command has written. That thread interrupts
//! the programs, which kills those that have not asked to be told, or suspends them. If that does not end the main
//! thread's wait, it ends the wait by suspending and resuming the main thread: the interrupted call fails. This is done
//! only while the main thread is in a call that is prepared for it ([`interruptible`]), and is repeated until the main
//! thread has noticed, since that may just have been before or after the call.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use tench::sync::Mutex;
use tench::sys::abi::Rights;
use tench::sys::abi::layout::slot;
use tench::sys::thread::yield_now;
use tench::sys::{Cap, Error, Notification, Thread};
use tench::{memory, thread, time};
use tench_shell::system::{OnKey, SystemError};

use super::cores;

/// Signals of Ctrl-C and Ctrl-Z.
const INTERRUPT: u64 = 1;
const SUSPEND: u64 = 2;
/// Time between two attempts to interrupt the main thread.
const PATIENCE: Duration = Duration::from_millis(1);

/// Target of keys.
struct Foreground {
    /// The processes.
    pids: Vec<u64>,
    /// Effect of keys on them; `None` when they are not waited for.
    on_key: Option<OnKey>,
}

static FOREGROUND: Mutex<Foreground> = Mutex::new(Foreground { pids: Vec::new(), on_key: None });
/// Number of changes of the foreground.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// Set if a key has ended the wait for the processes in the foreground.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);
/// Set if Ctrl-C has killed the processes in the foreground, or told them to end.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Set while the main thread is in a call that may be interrupted.
static IN_CALL: AtomicBool = AtomicBool::new(false);

/// The notifications that the console signals.
#[derive(Clone, Copy)]
pub struct Keys {
    pub interrupt: Cap<Notification>,
    pub suspend: Cap<Notification>,
}

impl Keys {
    /// Starts the thread that handles keys. If there is no memory for it, programs run without keys.
    pub fn new() -> Option<Keys> {
        let notification = memory::make::<Notification>(0).ok()?.leak();
        let badged = |badge| notification.mint_to(memory::take_slot().ok()?, Rights::WRITE, badge).ok();
        let keys = Keys { interrupt: badged(INTERRUPT)?, suspend: badged(SUSPEND)? };
        thread::Builder::new().spawn(move || handle_keys(notification)).ok()?.detach();
        Some(keys)
    }
}

/// Sets the processes that keys affect, and how.
pub fn set(pids: &[u64], on_key: OnKey) {
    // The thread that handles keys has the same priority: if it was woken for others before, it runs now, and finds
    // nothing to do.
    yield_now();
    let mut foreground = FOREGROUND.lock();
    foreground.pids = pids.into();
    foreground.on_key = Some(on_key);
    CHANGES.fetch_add(1, Ordering::Relaxed);
    IS_STOPPED.store(false, Ordering::Relaxed);
    IS_INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Clears the target of keys. Returns their effect before.
pub fn clear() -> Option<OnKey> {
    let mut foreground = FOREGROUND.lock();
    foreground.pids = Vec::new();
    CHANGES.fetch_add(1, Ordering::Relaxed);
    foreground.on_key.take()
}

/// Returns whether a key has ended the wait.
pub fn is_stopped() -> bool {
    IS_STOPPED.load(Ordering::Acquire)
}

/// Returns whether Ctrl-C has ended the processes in the foreground.
pub fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::Acquire)
}

/// Makes a call that a key may interrupt, so that it fails with `Aborted`. It allocates nothing.
pub fn interruptible<T>(call: impl FnOnce() -> T) -> T {
    IN_CALL.store(true, Ordering::SeqCst);
    let result = call();
    IN_CALL.store(false, Ordering::SeqCst);
    result
}

/// Handles keys in a loop.
fn handle_keys(signals: Cap<Notification>) {
    while let Ok(bits) = signals.wait() {
        let foreground = FOREGROUND.lock();
        // They may just have ended by themselves.
        let each = |act: fn(u64) -> Result<(), SystemError>| {
            for &pid in &foreground.pids {
                let _ = act(pid);
            }
        };
        match foreground.on_key {
            Some(OnKey::Handle) if bits & INTERRUPT != 0 => {
                IS_INTERRUPTED.store(true, Ordering::Release);
                each(cores::interrupt);
                continue;
            }
            Some(OnKey::Handle) => each(cores::suspend),
            Some(OnKey::StopWaiting) if bits & INTERRUPT != 0 => {}
            _ => continue,
        }
        IS_STOPPED.store(true, Ordering::Release);
        let these = CHANGES.load(Ordering::Relaxed);
        drop(foreground);
        let main = Cap::<Thread>::new(slot::THREAD);
        while CHANGES.load(Ordering::Relaxed) == these {
            if IN_CALL.load(Ordering::SeqCst) {
                // A thread that has been suspended can be resumed.
                let _: Result<(), Error> = main.suspend().and_then(|()| main.resume());
            }
            time::sleep(PATIENCE);
        }
    }
}
