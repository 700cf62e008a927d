//! Threads, locks, time.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use tench::memory::make;
use tench::runtime::text;
use tench::sync::{Condvar, Mutex, OnceLock};
use tench::sys::{Endpoint, Error, Message, Notification, Wait};
use tench::thread::{self, Builder, JoinHandle};
use tench::time::{self, Duration, Instant};

use crate::check;
use crate::memory::blocks;

/// One thread at a time holds a lock.
pub fn threads() -> Result<(), String> {
    let counter = Arc::new(Mutex::new(0));
    let handles: Vec<_> = (0..8)
        .map(|number| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                for _ in 0..200 {
                    let mut guard = counter.lock();
                    let before = *guard;
                    thread::yield_now();
                    *guard = before + 1;
                }
                number
            })
        })
        .collect();
    let sum: u64 = handles.into_iter().map(JoinHandle::join).sum();
    check!(sum == 28);
    check!(*counter.lock() == 1600);
    Ok(())
}

/// Each produced number is consumed once.
pub fn condition_variable() -> Result<(), String> {
    let shared = Arc::new((Mutex::new(VecDeque::new()), Condvar::new()));
    let consumers: Vec<_> = (0..3)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut sum = 0;
                loop {
                    let mut queue = shared.1.wait_while(shared.0.lock(), |queue| queue.is_empty());
                    match queue.pop_front() {
                        Some(0) | None => return sum,
                        Some(number) => sum += number,
                    }
                }
            })
        })
        .collect();
    for number in 1..=500_u64 {
        shared.0.lock().push_back(number);
        shared.1.notify_one();
        if number % 50 == 0 {
            thread::yield_now();
        }
    }
    shared.0.lock().extend([0; 3]);
    shared.1.notify_all();
    let sum: u64 = consumers.into_iter().map(JoinHandle::join).sum();
    check!(sum == 125_250);
    Ok(())
}

/// Every wait can end at a deadline.
pub fn timeouts() -> Result<(), String> {
    let (mutex, condvar) = (Mutex::new(()), Condvar::new());
    let start = Instant::now();
    let (guard, notified) = condvar.wait_until(mutex.lock(), time::deadline(Duration::from_millis(5)));
    check!(!notified && time::elapsed(start) >= Duration::from_millis(5));
    drop(guard);
    let notification = make::<Notification>(0).map_err(text)?;
    let deadline = time::deadline(Duration::from_millis(3));
    check!(notification.cap().wait_until(deadline) == Err(Error::TimedOut));
    check!(Instant::now() >= deadline);
    check!(notification.cap().poll() == Err(Error::WouldBlock));
    notification.cap().signal().map_err(text)?;
    check!(notification.cap().wait_until(Instant::from_ticks(0)) == Ok(1));
    let endpoint = make::<Endpoint>(0).map_err(text)?;
    let wait = Wait::until(time::deadline(Duration::from_millis(3)));
    check!(endpoint.cap().call_with(&Message::new(1), wait).err() == Some(Error::TimedOut));
    check!(endpoint.cap().try_send(&Message::new(1)) == Err(Error::WouldBlock));
    Ok(())
}

/// Sleepers wake in the order of their times.
pub fn sleep() -> Result<(), String> {
    let start = Instant::now();
    time::sleep(Duration::from_millis(20));
    check!(time::elapsed(start) >= Duration::from_millis(20));
    let sleepers: Vec<_> = [30, 10, 20]
        .map(|milliseconds| {
            thread::spawn(move || {
                time::sleep(Duration::from_millis(milliseconds));
                Instant::now()
            })
        })
        .into_iter()
        .map(JoinHandle::join)
        .collect();
    check!(sleepers[1] < sleepers[2] && sleepers[2] < sleepers[0]);
    Ok(())
}

/// A value is made once.
pub fn once() -> Result<(), String> {
    static VALUE: OnceLock<u64> = OnceLock::new();
    static MADE: AtomicU64 = AtomicU64::new(0);
    let handles: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                *VALUE.get_or_init(|| {
                    thread::yield_now();
                    MADE.fetch_add(1, Ordering::Relaxed) + 5
                })
            })
        })
        .collect();
    check!(handles.into_iter().all(|handle| handle.join() == 5));
    Ok(())
}

/// A joined thread leaves nothing behind.
pub fn thread_memory_returns() -> Result<(), String> {
    thread::spawn(|| ()).join();
    let before = blocks()?;
    for number in 0..100 {
        check!(thread::spawn(move || number).join() == number);
    }
    check!(blocks()? == before);
    Ok(())
}

/// Threads run without being joined.
pub fn detached_threads() -> Result<(), String> {
    static DONE: AtomicU64 = AtomicU64::new(0);
    for _ in 0..20 {
        drop(thread::spawn(|| DONE.fetch_add(1, Ordering::Relaxed)));
    }
    for _ in 0..100 {
        thread::yield_now();
    }
    check!(DONE.load(Ordering::Relaxed) == 20);
    Ok(())
}

/// A thread of lower priority waits.
pub fn priorities() -> Result<(), String> {
    let own = thread::current_thread().query().map_err(text)?.priority as u8;
    let order = Arc::new(Mutex::new(Vec::new()));
    let place = Arc::clone(&order);
    let lower = Builder::new().priority(own - 1).spawn(move || place.lock().push("lower")).map_err(text)?;
    thread::yield_now();
    order.lock().push("main");
    lower.join();
    check!(*order.lock() == ["main", "lower"]);
    check!(Builder::new().priority(255).spawn(|| ()).is_err());
    Ok(())
}
