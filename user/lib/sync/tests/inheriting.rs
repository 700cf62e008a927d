//! Every order of steps of a few threads that use inheriting locks, over a model of the kernel's queues.

mod checker;

use checker::{Checked, Guarded, check};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use tench_sync::{Gate, Gates, Helping, InheritingLock, Member, WaitEnd, Word};

/// The kernel: one step at a time. A thread that waits is in a queue, or taken by the thread with this queue.
struct Kernel {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The queue to which an entrance leads.
    entrances: [Option<usize>; MOST],
    /// Waiters: their number, their queue, and their word.
    waiting: Vec<(usize, usize, usize)>,
    /// The waiter that a thread has taken.
    taken: [Option<usize>; MOST],
    /// Waiters that were released.
    released: Vec<usize>,
    /// Number of waits so far.
    waits: usize,
}

const MOST: usize = 8;

struct Queue(&'static Kernel, usize);
struct Entrance(&'static Kernel, usize);
struct Model;

impl Helping for Model {
    type Word = Checked;
    type Queue = Queue;
    type Entrance = Entrance;

    fn open(entrance: &Entrance, queue: &Queue) {
        let before = entrance.0.state.lock().unwrap().entrances[entrance.1].replace(queue.1);
        assert_eq!(before, None, "an entrance was open");
    }

    fn shut(entrance: &Entrance) {
        entrance.0.state.lock().unwrap().entrances[entrance.1] = None;
    }

    /// Deadlines have always passed, so that the checker tries giving up at every moment.
    fn wait(entrance: &Entrance, word: usize, deadline: Option<u64>) -> WaitEnd {
        let kernel = entrance.0;
        let mut state = kernel.state.lock().unwrap();
        let Some(queue) = state.entrances[entrance.1] else { return WaitEnd::Refused };
        state.waits += 1;
        let number = state.waits;
        state.waiting.push((number, queue, word));
        if deadline.is_some() {
            drop(state);
            thread::yield_now();
            state = kernel.state.lock().unwrap();
        }
        loop {
            if let Some(place) = state.released.iter().position(|other| *other == number) {
                state.released.swap_remove(place);
                return WaitEnd::Released;
            }
            if deadline.is_some() {
                state.waiting.retain(|waiter| waiter.0 != number);
                state.taken.iter_mut().filter(|taken| **taken == Some(number)).for_each(|taken| *taken = None);
                return WaitEnd::TimedOut;
            }
            state = kernel.changed.wait(state).unwrap();
        }
    }

    fn take(own: &Queue, queue: &Queue) -> Option<usize> {
        let mut state = own.0.state.lock().unwrap();
        let place = state.waiting.iter().position(|waiter| waiter.1 == queue.1)?;
        let (number, _, word) = state.waiting.remove(place);
        state.taken[own.1] = Some(number);
        Some(word)
    }

    fn release(own: &Queue, _: &Queue) -> bool {
        let mut state = own.0.state.lock().unwrap();
        let Some(number) = state.taken[own.1].take() else { return false };
        state.released.push(number);
        own.0.changed.notify_all();
        true
    }
}

/// Threads and two locks. All is leaked, as on the target.
struct World {
    gates: Gates<Model>,
    members: Vec<&'static Member<Model>>,
    locks: [InheritingLock<Model>; 2],
    data: [Guarded; 2],
}

// SAFETY: a member of the model is used like one on the target: by reference, from any thread.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

impl World {
    fn new(count: usize) -> &'static World {
        let kernel = leak(Kernel { state: Mutex::new(State::default()), changed: Condvar::new() });
        let gates = Gates::of(Checked::new(0));
        (0..2 * count).for_each(|number| gates.add(leak(Gate::new(Entrance(kernel, number)))));
        let members = (0..count).map(|number| leak(Member::new(Queue(kernel, number), &gates))).collect();
        let locks = [(); 2].map(|()| InheritingLock::of(Checked::new(0)));
        leak(World { gates, members, locks, data: [(); 2].map(|()| Guarded::new()) })
    }

    fn lock(&self, lock: usize, me: usize) {
        assert!(self.locks[lock].lock(self.members[me], None));
    }

    fn unlock(&self, lock: usize, me: usize) {
        // SAFETY: the caller has taken the lock.
        unsafe { self.locks[lock].unlock(self.members[me], &self.gates) };
    }

    /// Increments a lock's data, while it is held.
    fn increment(&self, lock: usize, me: usize) {
        self.lock(lock, me);
        self.data[lock].increment();
        self.unlock(lock, me);
    }
}

/// Runs `function` in so many threads, in every order.
fn in_every_order(count: usize, preemptions: usize, function: fn(&World, usize), expected: [usize; 2]) {
    check(preemptions, move || {
        let world = World::new(count);
        let others: Vec<_> = (1..count).map(|me| thread::spawn(move || function(world, me))).collect();
        function(world, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
        for (number, lock) in world.locks.iter().enumerate() {
            assert!(!lock.is_locked());
            assert_eq!(world.data[number].get(), expected[number]);
        }
    });
}

#[test]
fn one_at_a_time_holds_the_lock_and_nobody_waits_for_ever() {
    in_every_order(3, 2, |world, me| world.increment(0, me), [3, 0]);
}

#[test]
fn nobody_waits_for_a_lock_that_is_taken_again_and_again() {
    in_every_order(2, 3, |world, me| (0..2).for_each(|_| world.increment(0, me)), [4, 0]);
}

#[test]
fn a_holder_of_two_locks_releases_the_waiters_of_either() {
    let function = |world: &World, me| match me {
        0 => {
            world.lock(0, me);
            world.lock(1, me);
            world.unlock(0, me);
            world.unlock(1, me);
        }
        1 => world.increment(0, me),
        _ => world.increment(1, me),
    };
    in_every_order(3, 2, function, [1, 1]);
}

#[test]
fn holders_wait_for_each_other_in_a_chain() {
    let function = |world: &World, me| match me {
        0 => world.increment(0, me),
        1 => {
            world.lock(1, me);
            world.increment(0, me);
            world.unlock(1, me);
        }
        _ => world.increment(1, me),
    };
    in_every_order(3, 2, function, [2, 1]);
}

#[test]
fn a_waiter_gives_up_at_any_moment() {
    let function = |world: &World, me| {
        if me != 1 {
            world.increment(0, me);
        } else if world.locks[0].lock(world.members[me], Some(0)) {
            world.unlock(0, me);
        }
    };
    in_every_order(3, 2, function, [2, 0]);
}
