//! Mutexes and condition variables in memory that processes share.
//!
//! The other processes can change all numbers here, so none is used as an address or an index: a wrong number makes a
//! lock useless, and does no other harm.

use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use tench::sync::shared::{Crowd, Error, SharedCondition, SharedLock, Slept, Taken};

use super::attributes::{ERROR_CHECK, RECURSIVE, ROBUST};
use crate::errno::{EAGAIN, EBUSY, EDEADLK, EINVAL, ENOTRECOVERABLE, EOWNERDEAD, EPERM, ETIMEDOUT, done_or};

/// State of a mutex whose data are in order.
const IN_ORDER: usize = 0;
/// State after an owner's death, while the thread that got the mutex with `EOWNERDEAD` holds it.
const OWNER_DIED: usize = 1;
/// State once that thread has released the mutex without making its data consistent: no thread can take it any more.
const NOT_RECOVERABLE: usize = 2;
/// State after the death of the owner of a mutex that is not robust: the mutex counts as held for ever.
const STALLED: usize = 3;

/// A mutex for the threads of several processes.
#[repr(C)]
pub struct SharedMutex {
    /// The kind, and whether the mutex is robust, as in the attributes.
    kind: AtomicUsize,
    lock: SharedLock,
    /// Number of recursive acquisitions.
    depth: AtomicUsize,
    state: AtomicUsize,
}

const _: () = assert!(size_of::<SharedMutex>() <= size_of::<super::mutex::Mutex>());

/// Waits for what never comes, until a deadline or for ever. Returns `ETIMEDOUT`.
fn wait_in_vain(crowd: &impl Crowd, deadline: Option<u64>) -> c_int {
    while crowd.sleep(deadline) != Slept::TimedOut {}
    ETIMEDOUT
}

impl SharedMutex {
    pub fn new(kind: c_int) -> SharedMutex {
        SharedMutex {
            kind: AtomicUsize::new(kind as usize),
            lock: SharedLock::new(),
            depth: AtomicUsize::new(0),
            state: AtomicUsize::new(IN_ORDER),
        }
    }

    fn is(&self, kind: c_int) -> bool {
        self.kind.load(Relaxed) & !(ROBUST as usize) == kind as usize
    }

    fn is_robust(&self) -> bool {
        self.kind.load(Relaxed) & ROBUST as usize != 0
    }

    fn is_mine(&self, crowd: &impl Crowd<Word = AtomicUsize>) -> bool {
        self.lock.owner() == Some(crowd.me())
    }

    pub fn is_held(&self) -> bool {
        self.lock.owner().is_some()
    }

    /// Returns the result of an acquisition of the lock, which depends on the state. `held` counts the thread's locks.
    fn taken(
        &self,
        crowd: &impl Crowd<Word = AtomicUsize>,
        held: &Cell<usize>,
        taken: Taken,
        deadline: Option<u64>,
    ) -> c_int {
        if taken == Taken::OwnerDied {
            self.depth.store(0, Relaxed);
            // One that nobody can have any more stays so, also if a thread dies that is just learning it.
            if self.state.load(Relaxed) != NOT_RECOVERABLE {
                self.state.store(if self.is_robust() { OWNER_DIED } else { STALLED }, Relaxed);
            }
        }
        match self.state.load(Relaxed) {
            NOT_RECOVERABLE => self.lock.unlock(crowd).map_or(EPERM, |()| ENOTRECOVERABLE),
            STALLED => self.lock.unlock(crowd).map_or(EPERM, |()| wait_in_vain(crowd, deadline)),
            _ => {
                held.set(held.get() + 1);
                done_or(taken == Taken::InOrder, EOWNERDEAD)
            }
        }
    }

    /// Returns the result of an acquisition by the owner.
    fn again(&self) -> c_int {
        if self.is(RECURSIVE) {
            let one_more = |depth: usize| depth.checked_add(1);
            done_or(self.depth.fetch_update(Relaxed, Relaxed, one_more).is_ok(), EAGAIN)
        } else {
            EDEADLK
        }
    }

    /// Takes the mutex, after waiting if necessary, at most until a deadline if there is one.
    pub fn lock(&self, crowd: &impl Crowd<Word = AtomicUsize>, held: &Cell<usize>, deadline: Option<u64>) -> c_int {
        match self.lock.lock(crowd, deadline) {
            Ok(taken) => self.taken(crowd, held, taken, deadline),
            Err(Error::HeldAlready) if self.is(RECURSIVE) || self.is(ERROR_CHECK) => self.again(),
            Err(Error::HeldAlready) => wait_in_vain(crowd, deadline),
            Err(_) => ETIMEDOUT,
        }
    }

    pub fn try_lock(&self, crowd: &impl Crowd<Word = AtomicUsize>, held: &Cell<usize>) -> c_int {
        match self.lock.try_lock(crowd).or_else(|error| match error {
            Error::Busy if self.is_robust() => self.lock.take_over(crowd),
            error => Err(error),
        }) {
            Ok(_) if self.state.load(Relaxed) == STALLED => self.lock.unlock(crowd).map_or(EPERM, |()| EBUSY),
            Ok(taken) => self.taken(crowd, held, taken, None),
            Err(Error::HeldAlready) if self.is(RECURSIVE) => self.again(),
            Err(_) => EBUSY,
        }
    }

    /// Releases the mutex, which only its owner may.
    pub fn unlock(&self, crowd: &impl Crowd<Word = AtomicUsize>, held: &Cell<usize>) -> c_int {
        if !self.is_mine(crowd) {
            return EPERM;
        }
        match self.depth.load(Relaxed) {
            0 => {
                self.prepare_release(held);
                done_or(self.lock.unlock(crowd).is_ok(), EPERM)
            }
            depth => {
                self.depth.store(depth - 1, Relaxed);
                0
            }
        }
    }

    /// Prepares a release: data that were not made consistent before it stay so for ever.
    fn prepare_release(&self, held: &Cell<usize>) {
        if self.state.load(Relaxed) == OWNER_DIED {
            self.state.store(NOT_RECOVERABLE, Relaxed);
        }
        held.set(held.get().saturating_sub(1));
    }

    /// Records that the data are consistent again. Returns `EINVAL` if the caller cannot say so.
    pub fn make_consistent(&self, crowd: &impl Crowd<Word = AtomicUsize>) -> c_int {
        let mine = self.is_mine(crowd);
        done_or(mine && self.state.compare_exchange(OWNER_DIED, IN_ORDER, Relaxed, Relaxed).is_ok(), EINVAL)
    }

    /// Releases the mutex, waits at a condition, and takes the mutex again with its former depth.
    pub fn wait(
        &self,
        condition: &SharedCondition,
        crowd: &impl Crowd<Word = AtomicUsize>,
        held: &Cell<usize>,
        deadline: Option<u64>,
    ) -> c_int {
        if !self.is_mine(crowd) {
            return EPERM;
        }
        let depth = self.depth.swap(0, Relaxed);
        self.prepare_release(held);
        match condition.wait(crowd, &self.lock, deadline) {
            Ok((taken, notified)) => match self.taken(crowd, held, taken, None) {
                0 => {
                    self.depth.store(depth, Relaxed);
                    done_or(notified, ETIMEDOUT)
                }
                error => error,
            },
            Err(_) => EPERM,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::attributes::{ERROR_CHECK, RECURSIVE, ROBUST};
    use super::*;
    use core::cell::RefCell;
    use tench::sync::shared::Table;

    /// Members, of which one runs at a time and some have ended. None is woken while another sleeps.
    struct Members {
        table: Table<AtomicUsize>,
        dead: RefCell<Vec<usize>>,
    }

    struct One<'m>(&'m Members, usize);

    impl Crowd for One<'_> {
        type Word = AtomicUsize;

        fn me(&self) -> usize {
            self.1
        }

        fn table(&self) -> &Table<AtomicUsize> {
            &self.0.table
        }

        fn sleep(&self, deadline: Option<u64>) -> Slept {
            match deadline {
                Some(0) => Slept::TimedOut,
                _ if self.0.dead.borrow().is_empty() => panic!("the member sleeps for ever"),
                _ => Slept::Long,
            }
        }

        fn wake(&self, member: usize) -> bool {
            self.is_alive(member)
        }

        fn is_alive(&self, member: usize) -> bool {
            !self.0.dead.borrow().contains(&member)
        }
    }

    fn members() -> Members {
        Members { table: Table::new(), dead: RefCell::new(Vec::new()) }
    }

    #[test]
    fn kinds_differ_when_a_mutex_is_taken_again() {
        let members = members();
        let (one, other, held) = (One(&members, 0), One(&members, 1), Cell::new(0));
        let normal = SharedMutex::new(0);
        assert_eq!((normal.lock(&one, &held, None), normal.lock(&one, &held, Some(0))), (0, ETIMEDOUT));
        assert_eq!((normal.try_lock(&one, &held), normal.try_lock(&other, &held)), (EBUSY, EBUSY));
        assert_eq!((normal.unlock(&other, &held), held.get()), (EPERM, 1));
        assert_eq!((normal.unlock(&one, &held), normal.unlock(&one, &held), held.get()), (0, EPERM, 0));
        let checking = SharedMutex::new(ERROR_CHECK);
        assert_eq!((checking.lock(&one, &held, None), checking.lock(&one, &held, None)), (0, EDEADLK));
        assert_eq!((checking.unlock(&one, &held), checking.is_held()), (0, false));
        let recursive = SharedMutex::new(RECURSIVE | ROBUST);
        assert_eq!((recursive.lock(&one, &held, None), recursive.try_lock(&one, &held)), (0, 0));
        assert_eq!((recursive.unlock(&one, &held), recursive.try_lock(&other, &held), held.get()), (0, EBUSY, 1));
        assert_eq!((recursive.unlock(&one, &held), recursive.unlock(&one, &held), held.get()), (0, EPERM, 0));
    }

    #[test]
    fn a_robust_mutex_gets_a_new_owner_and_is_lost_unless_its_data_are_made_consistent() {
        let members = members();
        let (one, other, held) = (One(&members, 0), One(&members, 1), Cell::new(0));
        let robust = SharedMutex::new(RECURSIVE | ROBUST);
        assert_eq!((robust.lock(&one, &held, None), robust.lock(&one, &held, None)), (0, 0));
        assert_eq!(robust.make_consistent(&one), EINVAL);
        members.dead.borrow_mut().push(0);
        held.set(0);
        assert_eq!((robust.lock(&other, &held, None), held.get()), (EOWNERDEAD, 1));
        assert_eq!((robust.make_consistent(&other), robust.make_consistent(&other)), (0, EINVAL));
        assert_eq!((robust.unlock(&other, &held), robust.unlock(&other, &held), held.get()), (0, EPERM, 0));
        // The next owner dies, too, and the one after it does not make the data consistent.
        let third = One(&members, 2);
        assert_eq!(robust.lock(&third, &held, None), 0);
        members.dead.borrow_mut().push(2);
        assert_eq!((robust.try_lock(&other, &held), robust.unlock(&other, &held)), (EOWNERDEAD, 0));
        assert_eq!(robust.lock(&other, &held, None), ENOTRECOVERABLE);
        assert_eq!((robust.try_lock(&other, &held), robust.is_held()), (ENOTRECOVERABLE, false));
    }

    #[test]
    fn an_unrecoverable_mutex_stays_so_if_a_thread_dies_that_learns_it() {
        let members = members();
        let (one, other, held) = (One(&members, 0), One(&members, 1), Cell::new(0));
        let robust = SharedMutex::new(ROBUST);
        robust.state.store(NOT_RECOVERABLE, Relaxed);
        // The thread takes the lock for a moment, and dies with it.
        assert_eq!(robust.lock.try_lock(&one), Ok(Taken::InOrder));
        members.dead.borrow_mut().push(0);
        assert_eq!(
            (robust.lock(&other, &held, None), robust.try_lock(&other, &held)),
            (ENOTRECOVERABLE, ENOTRECOVERABLE)
        );
        assert_eq!((held.get(), robust.is_held()), (0, false));
    }

    #[test]
    fn a_mutex_that_is_not_robust_stays_held_after_its_owner_has_died() {
        let members = members();
        let (one, other, held) = (One(&members, 0), One(&members, 1), Cell::new(0));
        let stalled = SharedMutex::new(0);
        assert_eq!(stalled.lock(&one, &held, None), 0);
        members.dead.borrow_mut().push(0);
        held.set(0);
        assert_eq!((stalled.try_lock(&other, &held), stalled.lock(&other, &held, Some(0))), (EBUSY, ETIMEDOUT));
        // The member that notices the death takes the lock, but does not get the mutex either.
        stalled.state.store(STALLED, Relaxed);
        assert_eq!(stalled.lock.take_over(&other), Ok(Taken::OwnerDied));
        stalled.lock.unlock(&other).unwrap();
        assert_eq!((stalled.try_lock(&other, &held), stalled.lock(&other, &held, Some(0))), (EBUSY, ETIMEDOUT));
        assert_eq!((stalled.unlock(&other, &held), held.get(), stalled.is_held()), (EPERM, 0, false));
    }

    #[test]
    fn a_wait_releases_a_recursive_mutex_completely() {
        let members = members();
        let (one, held, condition) = (One(&members, 0), Cell::new(0), SharedCondition::new());
        let recursive = SharedMutex::new(RECURSIVE);
        assert_eq!(recursive.wait(&condition, &one, &held, Some(0)), EPERM);
        assert_eq!((recursive.lock(&one, &held, None), recursive.lock(&one, &held, None)), (0, 0));
        assert_eq!((recursive.wait(&condition, &one, &held, Some(0)), held.get()), (ETIMEDOUT, 1));
        assert_eq!(condition.waiting(), 0);
        assert_eq!((recursive.unlock(&one, &held), recursive.unlock(&one, &held), held.get()), (0, 0, 0));
        assert!(!recursive.is_held());
    }
}
