//! Threads.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cell::Cell;
use core::ffi::{c_char, c_int, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use tench::sync::{Condvar, Mutex};
use tench::thread::{Builder, RawThread, end, set_name, yield_now};

use super::attributes::ThreadAttributes;
use crate::errno::{EAGAIN, EDEADLK, EINVAL, ESRCH};
use crate::text::bytes;

/// Function of a thread.
type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Number of the main thread.
const MAIN: u64 = 1;

/// A thread other than the main thread.
struct Record {
    result: AtomicPtr<c_void>,
    /// Set once the thread's function has returned; changes only under the lock of `state`.
    ended: AtomicBool,
    state: Mutex<State>,
}

/// State that determines who frees a thread's resources.
enum State {
    /// Not decided yet.
    Joinable(Option<RawThread>),
    /// A thread joins it.
    Joining,
    /// Nobody will join it.
    Detached,
}

/// Threads that have not been joined and, if they are detached, have not ended.
static THREADS: Mutex<BTreeMap<u64, Arc<Record>>> = Mutex::new(BTreeMap::new());
/// The next number.
static NEXT: AtomicU64 = AtomicU64::new(MAIN + 1);
/// Number of threads that run besides the main thread.
static RUNNING: Mutex<usize> = Mutex::new(0);
/// Signals that one of them has ended.
static ENDED: Condvar = Condvar::new();

/// The running thread, if it was started here.
struct Own {
    number: Cell<u64>,
    record: Cell<Option<Arc<Record>>>,
}

tench::thread_local! {
    static OWN: Own = Own { number: Cell::new(MAIN), record: Cell::new(None) };
}

impl Drop for Own {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        let state = record.state.lock();
        record.ended.store(true, Ordering::Relaxed);
        if matches!(*state, State::Detached) {
            THREADS.lock().remove(&self.number.get());
        }
        drop(state);
        *RUNNING.lock() -= 1;
        ENDED.notify_all();
    }
}

/// Arguments of a new thread.
struct Beginning {
    number: u64,
    record: Arc<Record>,
    function: Function,
    argument: *mut c_void,
}

/// First function of a new thread.
extern "C" fn start_thread(beginning: *mut ()) {
    // SAFETY: `pthread_create` made the box and passed it to this thread alone.
    let Beginning { number, record, function, argument } = *unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
    OWN.with(|own| {
        own.number.set(number);
        own.record.set(Some(record));
    });
    // SAFETY: the program guarantees that the function may be called with this argument.
    finish(unsafe { function(argument) });
}

/// Records the running thread's result.
fn finish(result: *mut c_void) {
    OWN.with(|own| {
        let record = own.record.take();
        if let Some(record) = &record {
            record.result.store(result, Ordering::Release);
        }
        own.record.set(record);
    });
}

/// Starts a thread. Returns `EAGAIN` if there is not enough memory.
///
/// # Safety
/// `pointer` must point to memory for a number, `attributes` must be null or point to some, and `function` may be
/// called with `argument` in another thread.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_create(
    pointer: *mut c_ulong,
    attributes: *const ThreadAttributes,
    function: Function,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let attributes = unsafe { attributes.as_ref() }.copied().unwrap_or_default();
    let builder = match attributes.stack {
        0 => Builder::new(),
        size => Builder::new().stack_size(size),
    };
    let detached = attributes.detached != 0;
    let state = Mutex::new(if detached { State::Detached } else { State::Joinable(None) });
    let record = Arc::new(Record { result: AtomicPtr::new(null_mut()), ended: AtomicBool::new(false), state });
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    THREADS.lock().insert(number, Arc::clone(&record));
    *RUNNING.lock() += 1;
    // Written before the thread begins, which may read it.
    // SAFETY: the caller guarantees it.
    unsafe { *pointer = number };
    let beginning = Box::into_raw(Box::new(Beginning { number, record: Arc::clone(&record), function, argument }));
    // SAFETY: `start_thread` takes ownership of the box, to which nobody else refers.
    match unsafe { builder.spawn_raw(start_thread, beginning.cast()) } {
        Ok(thread) => {
            // The thread may have been detached meanwhile; then the handle is dropped.
            if let State::Joinable(handle) = &mut *record.state.lock() {
                *handle = Some(thread);
            }
            0
        }
        Err(_) => {
            // SAFETY: the thread does not run, so the box is still this function's.
            drop(unsafe { Box::from_raw(beginning) });
            THREADS.lock().remove(&number);
            *RUNNING.lock() -= 1;
            EAGAIN
        }
    }
}

/// Returns the thread with a number, unless it is gone.
fn find(number: u64) -> Result<Arc<Record>, c_int> {
    match THREADS.lock().get(&number) {
        Some(record) => Ok(Arc::clone(record)),
        None => Err(if number == MAIN { EINVAL } else { ESRCH }),
    }
}

/// Waits for a thread's end. Returns `ESRCH` if there is no such thread, `EINVAL` if it is detached or is being joined
/// already, and `EDEADLK` if it is the caller.
///
/// # Safety
/// `result` must be null or point to memory for a pointer.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_join(number: c_ulong, result: *mut *mut c_void) -> c_int {
    if number == pthread_self() {
        return EDEADLK;
    }
    let record = match find(number) {
        Ok(record) => record,
        Err(error) => return error,
    };
    let handle = {
        let mut state = record.state.lock();
        match core::mem::replace(&mut *state, State::Joining) {
            State::Joinable(Some(handle)) => handle,
            other => {
                *state = other;
                return EINVAL;
            }
        }
    };
    handle.join();
    THREADS.lock().remove(&number);
    // SAFETY: the caller guarantees it.
    if let Some(pointer) = unsafe { result.as_mut() } {
        *pointer = record.result.load(Ordering::Acquire);
    }
    0
}

/// Detaches a thread. Errors as for `pthread_join`, except `EDEADLK`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_detach(number: c_ulong) -> c_int {
    let record = match find(number) {
        Ok(record) => record,
        Err(error) => return error,
    };
    let mut state = record.state.lock();
    if !matches!(*state, State::Joinable(_)) {
        return EINVAL;
    }
    *state = State::Detached;
    if record.ended.load(Ordering::Relaxed) {
        THREADS.lock().remove(&number);
    }
    0
}

/// Returns the running thread's number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_self() -> c_ulong {
    OWN.with(|own| own.number.get())
}

/// Returns whether two numbers are those of one thread.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_equal(one: c_ulong, other: c_ulong) -> c_int {
    c_int::from(one == other)
}

/// Ends the running thread. The main thread waits for the others, and then ends the process.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_exit(result: *mut c_void) -> ! {
    finish(result);
    if pthread_self() == MAIN {
        drop(ENDED.wait_while(RUNNING.lock(), |running| *running > 0));
    }
    // SAFETY: the program guarantees that nobody relies on values on the stack.
    unsafe { end() }
}

/// Names the running thread; other threads cannot be named.
///
/// # Safety
/// `name` must be a string.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_setname_np(number: c_ulong, name: *const c_char) -> c_int {
    if number != pthread_self() {
        return EINVAL;
    }
    // SAFETY: the caller guarantees it.
    let name = unsafe { bytes(name, usize::MAX) };
    set_name(name.utf8_chunks().next().map_or("", |chunk| chunk.valid()));
    0
}

/// Yields to other threads.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn sched_yield() -> c_int {
    yield_now();
    0
}
