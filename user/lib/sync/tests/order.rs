//! Every order of steps of a few threads, tried by a checker that also lets loads see old values where the orderings
//! permit it: it would find a missing acquire, a missed waiter or a lock held twice.

mod checker;

use std::sync::atomic::Ordering;

use checker::{Checked, Guarded, check, together};
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread::{self, Thread};
use tench_sync::{Barrier, Condition, FairLock, Permits, Platform, ReadWrite};

/// The checker's threads.
struct Loom;

impl Platform for Loom {
    type Word = Checked;
    type Parker = Thread;

    fn own() -> Thread {
        thread::current()
    }

    fn park(_: &Thread) {
        thread::park();
    }

    /// Deadlines have always passed, so that the checker tries giving up at every moment.
    fn park_until(_: &Thread, _: u64) -> bool {
        thread::yield_now();
        false
    }

    fn unpark(parker: &Thread) {
        parker.unpark();
    }
}

#[test]
fn one_at_a_time_holds_a_lock() {
    check(3, || {
        let shared = Arc::new((FairLock::<Loom>::new(), Guarded::new()));
        together(3, &shared, |_, (lock, data)| {
            lock.lock();
            data.increment();
            // SAFETY: the lock was taken above.
            unsafe { lock.unlock() };
        });
        assert!(!shared.0.is_locked());
        assert_eq!(shared.1.get(), 3);
    });
}

#[test]
fn a_lock_that_is_taken_again_and_again_is_handed_over() {
    check(3, || {
        let shared = Arc::new((FairLock::<Loom>::new(), Guarded::new()));
        together(2, &shared, |_, (lock, data)| {
            for _ in 0..2 {
                lock.lock();
                data.increment();
                // SAFETY: the lock was taken above.
                unsafe { lock.unlock() };
            }
        });
        assert_eq!(shared.1.get(), 4);
    });
}

#[test]
fn a_lock_goes_to_whoever_waits_and_not_to_whoever_is_there_first() {
    check(3, || {
        let shared = Arc::new((FairLock::<Loom>::new(), Guarded::new()));
        shared.0.lock();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.lock();
                shared.1.increment();
                // SAFETY: the lock was taken above.
                unsafe { shared.0.unlock() };
            })
        };
        while !shared.0.is_waited_for() {
            thread::yield_now();
        }
        // SAFETY: the lock was taken above.
        unsafe { shared.0.unlock() };
        // The lock is never free before the other has had it.
        assert!(!shared.0.try_lock() || shared.1.get() == 1);
        other.join().unwrap();
        assert_eq!(shared.1.get(), 1);
    });
}

#[test]
fn a_notification_is_not_missed() {
    check(3, || {
        let shared = Arc::new((FairLock::<Loom>::new(), Guarded::new(), Condition::<Loom>::new()));
        together(2, &shared, |number, (lock, data, condition)| {
            lock.lock();
            if number == 0 {
                while data.get() == 0 {
                    // SAFETY: the lock was taken above.
                    unsafe { condition.wait(lock) };
                }
            } else {
                data.increment();
                condition.notify_one();
            }
            // SAFETY: the lock was taken above, or again by the wait.
            unsafe { lock.unlock() };
        });
        assert_eq!(shared.2.check_invariants(), 0);
    });
}

#[test]
fn giving_up_meets_a_notification() {
    check(3, || {
        let shared = Arc::new((FairLock::<Loom>::new(), Guarded::new(), Condition::<Loom>::new()));
        together(2, &shared, |number, (lock, data, condition)| {
            lock.lock();
            if number == 0 {
                // SAFETY: the lock was taken above.
                let notified = unsafe { condition.wait_until(lock, 0) };
                assert!(!notified || data.get() == 1);
            } else {
                data.increment();
                condition.notify_all();
            }
            // SAFETY: the lock was taken above, or again by the wait.
            unsafe { lock.unlock() };
        });
        assert_eq!(shared.2.check_invariants(), 0);
    });
}

#[test]
fn permits_are_neither_lost_nor_made() {
    check(3, || {
        let shared = Arc::new((Permits::<Loom>::new(1), Guarded::new()));
        together(3, &shared, |_, (permits, data)| {
            permits.acquire();
            data.increment();
            permits.release().unwrap();
        });
        assert_eq!((shared.0.available(), shared.0.check_invariants(), shared.1.get()), (1, 0, 3));
    });
}

#[test]
fn giving_up_meets_a_permit() {
    check(3, || {
        let shared = Arc::new(Permits::<Loom>::new(0));
        let taken = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let others = {
            let (shared, taken) = (Arc::clone(&shared), Arc::clone(&taken));
            thread::spawn(move || {
                if shared.acquire_until(0) {
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        shared.release().unwrap();
        shared.release().unwrap();
        others.join().unwrap();
        assert_eq!(shared.available() + taken.load(Ordering::Relaxed), 2);
        assert_eq!(shared.check_invariants(), 0);
    });
}

#[test]
fn writers_are_alone_and_readers_see_what_they_wrote() {
    check(2, || {
        let shared = Arc::new((ReadWrite::<Loom>::new(), Guarded::new()));
        together(3, &shared, |number, (lock, data)| {
            if number == 0 {
                lock.read(None);
                assert!(data.get() <= 2);
                // SAFETY: the lock was taken above.
                unsafe { lock.unlock_read() };
            } else {
                lock.write(None);
                data.increment();
                // SAFETY: the lock was taken above.
                unsafe { lock.unlock_write() };
            }
        });
        assert_eq!((shared.0.check_invariants(), shared.1.get()), (0, 2));
        assert!(shared.0.try_write());
    });
}

#[test]
fn readers_pass_when_the_writer_before_them_gives_up() {
    check(2, || {
        let shared = Arc::new((ReadWrite::<Loom>::new(), Guarded::new()));
        together(3, &shared, |number, (lock, data)| {
            if number == 2 {
                if lock.write(Some(0)) {
                    data.increment();
                    // SAFETY: the lock was taken.
                    unsafe { lock.unlock_write() };
                }
            } else {
                lock.read(None);
                data.get();
                // SAFETY: the lock was taken above.
                unsafe { lock.unlock_read() };
            }
        });
        assert_eq!(shared.0.check_invariants(), 0);
        assert!(shared.0.try_write());
    });
}

#[test]
fn a_barrier_lets_all_pass_together() {
    check(2, || {
        let shared = Arc::new((Barrier::<Loom>::new(2), AtomicUsize::new(0), AtomicUsize::new(0)));
        together(2, &shared, |_, (barrier, arrived, last)| {
            for round in 1..=2 {
                arrived.fetch_add(1, Ordering::Relaxed);
                if barrier.wait() {
                    last.fetch_add(1, Ordering::Relaxed);
                }
                assert!(arrived.load(Ordering::Relaxed) >= 2 * round);
            }
        });
        assert_eq!((shared.0.check_invariants(), shared.2.load(Ordering::Relaxed)), (0, 2));
    });
}
