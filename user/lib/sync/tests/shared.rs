//! Every order of steps of a few members, some of which end silently.

mod checker;

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use checker::{Checked, Guarded, check};
use loom::sync::{Arc, Notify};
use loom::thread;
use tench_sync::shared::{Condition, Crowd, Error, Lock, Permits, Slept, Table, Taken};

const COUNT: usize = 3;

/// Data that the members share.
struct Shared {
    table: Table<Checked>,
    lock: Lock<Checked>,
    permits: Permits<Checked>,
    condition: Condition<Checked>,
    data: Guarded,
    notify: [Notify; COUNT],
    dead: [AtomicBool; COUNT],
    count: AtomicUsize,
    /// Set if sleepers wake up by themselves to check, as they must where other members end; otherwise a sleeper that
    /// is not woken sleeps for ever.
    impatient: bool,
}

struct Member<'s> {
    shared: &'s Shared,
    /// The member's number; after its end an unused one, so that its remaining steps have no effect.
    me: Cell<usize>,
}

const NOBODY: usize = COUNT;

impl Crowd for Member<'_> {
    type Word = Checked;

    fn me(&self) -> usize {
        self.me.get()
    }

    fn table(&self) -> &Table<Checked> {
        &self.shared.table
    }

    fn sleep(&self, deadline: Option<u64>) -> Slept {
        if deadline.is_some() {
            thread::yield_now();
            if self.shared.impatient {
                self.shared.dead[self.me.replace(NOBODY)].store(true, SeqCst);
            }
            return Slept::TimedOut;
        }
        if self.shared.impatient {
            thread::yield_now();
            return Slept::Long;
        }
        self.shared.notify[self.me.get()].wait();
        Slept::Woken
    }

    fn wake(&self, member: usize) -> bool {
        self.shared.notify[member].notify();
        self.is_alive(member)
    }

    fn is_alive(&self, member: usize) -> bool {
        !self.shared.dead[member].load(SeqCst)
    }
}

/// Runs `function` as each of `count` members.
fn members(count: usize, permits: usize, impatient: bool, function: fn(&Member)) -> Arc<Shared> {
    let shared = Arc::new(Shared {
        table: Table::new(),
        lock: Lock::new(),
        permits: Permits::new(permits),
        condition: Condition::new(),
        data: Guarded::new(),
        notify: std::array::from_fn(|_| Notify::new()),
        dead: Default::default(),
        count: AtomicUsize::new(0),
        impatient,
    });
    let handles: Vec<_> = (1..count)
        .map(|me| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || function(&Member { shared: &shared, me: Cell::new(me) }))
        })
        .collect();
    function(&Member { shared: &shared, me: Cell::new(0) });
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    shared
}

#[test]
fn every_waiter_of_a_lock_is_woken() {
    for (count, preemptions) in [(2, 4), (3, 1)] {
        check(preemptions, move || {
            let shared = members(count, 0, false, |member| {
                let lock = &member.shared.lock;
                assert_eq!(lock.lock(member, None), Ok(Taken::InOrder));
                assert_eq!(lock.lock(member, None), Err(Error::HeldAlready));
                member.shared.data.increment();
                assert_eq!(lock.unlock(member), Ok(()));
                assert_eq!(lock.unlock(member), Err(Error::NotHeld));
            });
            assert_eq!((shared.lock.owner(), shared.lock.waiting(), shared.data.get()), (None, 0, count));
        });
    }
}

#[test]
fn the_lock_of_a_member_that_ends_passes_on() {
    check(3, || {
        let shared = members(2, 0, true, |member| {
            let taken = member.shared.lock.lock(member, None).unwrap();
            if member.me.get() == 1 {
                // The member ends while it holds the lock.
                member.shared.dead[1].store(true, SeqCst);
                return;
            }
            let other_was_first = taken == Taken::OwnerDied;
            assert!(!other_was_first || member.shared.dead[1].load(SeqCst));
            member.shared.count.store(1, SeqCst);
            member.shared.lock.unlock(member).unwrap();
        });
        assert_eq!(shared.count.load(SeqCst), 1);
    });
}

#[test]
fn the_lock_of_a_member_that_ended_is_taken_over_once() {
    check(3, || {
        let shared = members(3, 0, true, |member| {
            let lock = &member.shared.lock;
            if member.me.get() == 2 {
                if lock.try_lock(member).is_ok() {
                    member.shared.dead[2].store(true, SeqCst);
                }
                return;
            }
            match lock.try_lock(member).or_else(|_| lock.take_over(member)) {
                Ok(taken) => {
                    assert!(taken == Taken::InOrder || member.shared.dead[2].load(SeqCst));
                    member.shared.data.increment();
                    lock.unlock(member).unwrap();
                }
                Err(error) => assert_eq!(error, Error::Busy),
            }
        });
        assert!(shared.lock.owner().is_none_or(|owner| owner == 2));
    });
}

#[test]
fn a_member_that_ends_while_it_waits_is_passed_over() {
    check(2, || {
        let shared = members(2, 0, true, |member| {
            if member.me.get() == 1 {
                // The member ends where it would sleep.
                if member.shared.lock.lock(member, Some(0)).is_ok() {
                    member.shared.lock.unlock(member).unwrap();
                }
                return;
            }
            let _ = member.shared.lock.lock(member, None).unwrap();
            member.shared.data.increment();
            member.shared.lock.unlock(member).unwrap();
        });
        // Its bit may be left, if no member had to check.
        assert_eq!((shared.lock.owner(), shared.data.get()), (None, 1));
    });
}

#[test]
fn permits_are_neither_lost_nor_made() {
    check(3, || {
        let shared = members(2, 1, false, |member| {
            assert!(member.shared.permits.acquire(member, None));
            member.shared.data.increment();
            member.shared.permits.release(member).unwrap();
        });
        assert_eq!((shared.permits.available(), shared.data.get()), (1, 2));
    });
}

#[test]
fn giving_up_passes_the_permit_on() {
    check(2, || {
        let shared = members(3, 0, false, |member| match member.me.get() {
            0 => member.shared.permits.release(member).unwrap(),
            // The second member either takes the permit and returns it, or gives up; the third has it in the end.
            1 if member.shared.permits.acquire(member, Some(0)) => member.shared.permits.release(member).unwrap(),
            1 => {}
            _ => assert!(member.shared.permits.acquire(member, None)),
        });
        assert_eq!(shared.permits.available(), 0);
    });
}

#[test]
fn a_notification_is_not_missed() {
    check(3, || {
        members(2, 0, false, |member| {
            let Shared { lock, condition, data, .. } = member.shared;
            let _ = lock.lock(member, None).unwrap();
            if member.me.get() == 0 {
                while data.get() == 0 {
                    assert_eq!(condition.wait(member, lock, None), Ok((Taken::InOrder, true)));
                }
            } else {
                data.increment();
                condition.notify_one(member);
            }
            lock.unlock(member).unwrap();
            assert_eq!(condition.wait(member, lock, None), Err(Error::NotHeld));
        });
    });
}
