//! The order in which waiting threads continue.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use tench::sync::{Barrier, Condvar, Mutex, RwLock, Semaphore};
use tench::thread::{self, JoinHandle};
use tench::time::{self, Duration, Instant, instructions, may_count};

use crate::check;

/// Number of instructions that is too small for any system call: entering the kernel and leaving it takes more.
const NO_SYSTEM_CALL: u64 = 50;

/// Starts threads one after another, each when `waiting` says that the previous ones wait.
fn in_turn<T: Send + 'static>(
    count: usize,
    waiting: impl Fn() -> usize,
    body: impl Fn(usize) -> T + Clone + Send + 'static,
) -> Vec<JoinHandle<T>> {
    (0..count)
        .map(|number| {
            let body = body.clone();
            let handle = thread::spawn(move || body(number));
            while waiting() <= number {
                thread::yield_now();
            }
            handle
        })
        .collect()
}

/// Returns the fewest instructions of several tries.
fn cost(mut action: impl FnMut()) -> u64 {
    let tries = (0..8).map(|_| {
        let before = instructions();
        action();
        instructions() - before
    });
    tries.min().unwrap_or(0)
}

pub fn uncontended() -> Result<(), String> {
    // Without permission to count, nothing can be checked.
    if !may_count() {
        return Ok(());
    }
    let (mutex, semaphore, lock, condvar) = (Mutex::new(0), Semaphore::new(1), RwLock::new(0), Condvar::new());
    check!(cost(|| *mutex.lock() += 1) < NO_SYSTEM_CALL);
    let pair = || {
        semaphore.acquire();
        // There was room for the permit before.
        let _ = semaphore.release();
    };
    check!(cost(pair) < NO_SYSTEM_CALL);
    check!(cost(|| drop(lock.read())) < NO_SYSTEM_CALL);
    check!(cost(|| *lock.write() += 1) < NO_SYSTEM_CALL);
    check!(cost(|| condvar.notify_all()) < NO_SYSTEM_CALL);
    // A system call takes more, or the limit would prove nothing.
    check!(cost(thread::yield_now) > NO_SYSTEM_CALL);
    Ok(())
}

/// A log of arrivals, in order.
type Log = Arc<Mutex<Vec<usize>>>;

fn in_order(log: &Log, count: usize) -> bool {
    log.lock().iter().copied().eq(0..count)
}

pub fn lock() -> Result<(), String> {
    const COUNT: usize = 16;
    let (shared, arrived, log) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)), Log::default());
    let guard = shared.lock();
    let (lock, order, number_of) = (Arc::clone(&shared), Arc::clone(&log), Arc::clone(&arrived));
    let body = move |number| {
        number_of.fetch_add(1, Ordering::Relaxed);
        let _guard = lock.lock();
        order.lock().push(number);
    };
    let handles = in_turn(COUNT, || arrived.load(Ordering::Relaxed), body);
    // The last thread may still be on its way to the queue.
    (0..4).for_each(|_| thread::yield_now());
    drop(guard);
    // The lock was handed over: this thread waits behind all of them.
    drop(shared.lock());
    check!(in_order(&log, COUNT));
    handles.into_iter().for_each(JoinHandle::join);
    Ok(())
}

pub fn no_starvation() -> Result<(), String> {
    const ROUNDS: usize = 100;
    let (lock, done) = (Arc::new(Mutex::new(0)), Arc::new(AtomicUsize::new(0)));
    let (others_lock, others_done) = (Arc::clone(&lock), Arc::clone(&done));
    let other = thread::spawn(move || {
        for _ in 0..ROUNDS {
            *others_lock.lock() += 1;
            others_done.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut own = 0;
    // The lock is released and taken again at once, and held while the other thread comes to want it.
    while done.load(Ordering::Relaxed) < ROUNDS {
        let mut guard = lock.lock();
        thread::yield_now();
        *guard += 1;
        own += 1;
        check!(own < 10 * ROUNDS);
    }
    other.join();
    check!(own <= ROUNDS + 2 && *lock.lock() == own + ROUNDS);
    Ok(())
}

pub fn semaphore() -> Result<(), String> {
    const COUNT: usize = 12;
    let (semaphore, log) = (Arc::new(Semaphore::new(0)), Log::default());
    let (shared, order) = (Arc::clone(&semaphore), Arc::clone(&log));
    let body = move |number| {
        shared.acquire();
        order.lock().push(number);
    };
    let handles = in_turn(COUNT, || semaphore.check_invariants(), body);
    for _ in 0..COUNT {
        semaphore.release().map_err(|_| "overflow")?;
        // A permit that was handed over cannot be taken by the first thread that comes.
        check!(!semaphore.try_acquire());
    }
    handles.into_iter().for_each(JoinHandle::join);
    check!(in_order(&log, COUNT) && semaphore.available() == 0);
    Ok(())
}

pub fn semaphore_deadline() -> Result<(), String> {
    let semaphore = Arc::new(Semaphore::new(0));
    let shared = Arc::clone(&semaphore);
    let patient = in_turn(1, || semaphore.check_invariants(), move |_| shared.acquire());
    let start = Instant::now();
    check!(!semaphore.acquire_until(time::deadline(Duration::from_millis(3))));
    check!(time::elapsed(start) >= Duration::from_millis(3) && semaphore.check_invariants() == 1);
    semaphore.release().map_err(|_| "overflow")?;
    patient.into_iter().for_each(JoinHandle::join);
    semaphore.release().map_err(|_| "overflow")?;
    check!(semaphore.acquire_until(Instant::from_ticks(0)) && semaphore.available() == 0);
    Ok(())
}

pub fn condition() -> Result<(), String> {
    const COUNT: usize = 8;
    let (shared, log) = (Arc::new((Mutex::new(()), Condvar::new())), Log::default());
    let (pair, order) = (Arc::clone(&shared), Arc::clone(&log));
    let body = move |number| {
        let guard = pair.1.wait(pair.0.lock());
        order.lock().push(number);
        drop(guard);
    };
    let handles = in_turn(COUNT, || shared.1.check_invariants(), body);
    shared.1.notify_one();
    check!(shared.1.check_invariants() == COUNT - 1);
    shared.1.notify_all();
    check!(shared.1.check_invariants() == 0);
    handles.into_iter().for_each(JoinHandle::join);
    check!(in_order(&log, COUNT));
    Ok(())
}

pub fn read_write() -> Result<(), String> {
    let (lock, log) = (Arc::new(RwLock::new(0)), Log::default());
    let reader = lock.read();
    let (shared, order) = (Arc::clone(&lock), Arc::clone(&log));
    // Writer, two readers, writer: the readers pass together, and neither writer is overtaken.
    let body = move |number: usize| {
        if number.is_multiple_of(3) {
            let mut guard = shared.write();
            order.lock().push(number);
            *guard += 1;
        } else {
            let guard = shared.read();
            order.lock().push(number);
            thread::yield_now();
            drop(guard);
        }
    };
    let handles = in_turn(4, || lock.check_invariants(), body);
    check!(lock.try_read().is_none() && log.lock().is_empty());
    drop(reader);
    handles.into_iter().for_each(JoinHandle::join);
    check!(in_order(&log, 4) && *lock.read() == 2);
    Ok(())
}

pub fn read_write_deadline() -> Result<(), String> {
    let lock = Arc::new(RwLock::new(()));
    let reader = lock.read();
    let shared = Arc::clone(&lock);
    let deadline = time::deadline(Duration::from_millis(3));
    let writer = in_turn(1, || lock.check_invariants(), move |_| shared.write_until(deadline).is_some());
    // This reader waits behind the writer, and passes when the writer gives up.
    let late = lock.read();
    check!(Instant::now() >= deadline);
    check!(writer.into_iter().all(|writer| !writer.join()));
    drop((reader, late));
    check!(lock.try_write().is_some());
    Ok(())
}

pub fn barrier() -> Result<(), String> {
    const COUNT: usize = 5;
    let shared = Arc::new((Barrier::new(COUNT), AtomicUsize::new(0)));
    let body = |shared: Arc<(Barrier, AtomicUsize)>| {
        let mut last = 0;
        for round in 1..=20 {
            shared.1.fetch_add(1, Ordering::Relaxed);
            last += usize::from(shared.0.wait());
            if shared.1.load(Ordering::Relaxed) < COUNT * round {
                return usize::MAX;
            }
        }
        last
    };
    let others: Vec<_> = (1..COUNT)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || body(shared))
        })
        .collect();
    let own = body(Arc::clone(&shared));
    let sum = others.into_iter().map(JoinHandle::join).fold(own, usize::saturating_add);
    check!(sum == 20);
    Ok(())
}
