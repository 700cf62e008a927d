//! The queue of waiting threads, compared with simpler ones.

use proptest::prelude::*;
use tench_quota::Client;
use tench_quota::queue::{NEVER, Queue};

/// Removes the wait that is due next.
fn next<R>(queue: &mut Queue<R>, now: u64) -> Option<R> {
    queue.pop_expired(now).map(|(_, reply)| reply)
}

/// Removes waits of a family that are found to have ended.
fn some_gone<R>(queue: &mut Queue<R>, family: u64, looks: usize, has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
    queue.take_out_some(family, looks, has_gone).into_iter().map(|(_, reply)| reply).collect()
}

#[test]
fn the_earliest_is_first_and_equals_are_in_order_of_arrival() {
    let mut queue = Queue::new(10);
    for (deadline, name) in [(30, "d"), (10, "a"), (20, "b"), (20, "c")] {
        queue.push(deadline, Client::alone(1), name);
    }
    assert_eq!(queue.next_deadline(), Some(10));
    assert_eq!(next(&mut queue, 9), None);
    let mut order = Vec::new();
    while let Some(name) = next(&mut queue, 20) {
        order.push(name);
    }
    assert_eq!(order, ["a", "b", "c"]);
    assert_eq!(queue.next_deadline(), Some(30));
}

#[test]
fn a_full_queue_accepts_a_wait_when_another_ends() {
    let mut queue = Queue::new(1);
    assert!(queue.may_wait(Client::alone(1)));
    queue.push(5, Client::alone(1), 'a');
    assert!(!queue.may_wait(Client::alone(2)));
    assert_eq!(next(&mut queue, 5), Some('a'));
    assert!(queue.may_wait(Client::alone(2)));
}

#[test]
fn a_process_that_waits_with_all_its_threads_leaves_capacity_for_others() {
    let mut queue = Queue::new(8);
    for number in 0..4 {
        assert!(queue.may_wait(Client::alone(1)));
        queue.push(number, Client::alone(1), number);
    }
    assert!(!queue.may_wait(Client::alone(1)) && queue.may_wait(Client::alone(2)));
    queue.push(3, Client::alone(2), 9);
    // Waits that have ended are found when there is no room for their process.
    assert_eq!(some_gone(&mut queue, 1, 9, |number| *number < 3), [0, 1, 2]);
    assert!(queue.may_wait(Client::alone(1)));
    queue.check_invariants();
    assert_eq!(some_gone(&mut queue, 1, 9, |_| false), []);
    assert_eq!([next(&mut queue, 9), next(&mut queue, 9), next(&mut queue, 9)], [Some(3), Some(9), None]);
    queue.check_invariants();
}

/// However many waits there are, a request checks a few of them, and the next request others, in all processes of the
/// family.
#[test]
fn abandoned_waits_are_found_a_few_at_a_time() {
    let mut queue = Queue::new(64);
    let of_family = |process| Client { process, family: 1 << 38 };
    for number in 0..30 {
        queue.push(number, of_family(1 + number % 3), number);
    }
    (30..40).for_each(|number| _ = queue.push(number, Client::alone(2 + number), number));
    let mut looked_at = Vec::new();
    for _ in 0..10 {
        let before = looked_at.len();
        let gone = some_gone(&mut queue, 1 << 38, 3, |number| {
            looked_at.push(*number);
            *number == 29
        });
        assert_eq!(looked_at.len(), before + 3);
        assert!(gone.is_empty() || gone == [29]);
        queue.check_invariants();
    }
    looked_at.sort_unstable();
    assert_eq!(looked_at, (0..30).collect::<Vec<_>>(), "each once");
}

/// Eleven children of one process once took all entries, each half of what was left.
#[test]
fn a_family_leaves_capacity_for_others() {
    let mut queue = Queue::new(1024);
    let of_family = |process| Client { process, family: 1 << 38 };
    for process in 1..=12 {
        while queue.may_wait(of_family(process)) {
            queue.push(process, of_family(process), process);
        }
    }
    assert!(queue.may_wait(Client::alone(20)));
    (0..256).for_each(|_| _ = queue.push(1, Client::alone(20), 0));
    assert!(!queue.may_wait(Client::alone(20)), "it has half of what the family left");
    queue.check_invariants();
    // Ended waits of the whole family make room for each of its processes.
    assert_eq!(some_gone(&mut queue, 1 << 38, 600, |_| true).len(), 512);
    assert!(queue.may_wait(of_family(12)));
    queue.check_invariants();
}

#[test]
fn the_waits_of_an_ended_process_are_removed() {
    let mut queue = Queue::new(10);
    queue.push(1, Client::alone(7), 'a');
    queue.push(2, Client::alone(8), 'b');
    queue.push(3, Client::alone(7), 'c');
    let ended = |queue: &mut Queue<char>, most| -> Vec<char> {
        queue.process_ended(7, most).into_iter().map(|(_, reply)| reply).collect()
    };
    assert_eq!(ended(&mut queue, 1), ['a']);
    queue.check_invariants();
    assert_eq!((ended(&mut queue, 9), queue.held(7)), (vec!['c'], 0));
    assert_eq!(queue.next_deadline(), Some(2));
}

#[test]
fn processes_whose_time_has_come_get_replies_in_turn() {
    let mut queue = Queue::new(100);
    for number in 0..40 {
        queue.push(10, Client::alone(1), (1, number));
    }
    queue.push(10, Client::alone(2), (2, 0));
    queue.push(9, Client::alone(3), (3, 0));
    queue.push(10, Client::alone(3), (3, 1));
    queue.push(20, Client::alone(2), (2, 1));
    let order: Vec<_> = (0..6).filter_map(|_| next(&mut queue, 10)).collect();
    assert_eq!(order, [(3, 0), (1, 0), (2, 0), (3, 1), (1, 1), (1, 2)]);
    assert_eq!(queue.next_deadline(), Some(0), "somebody's time has come");
    // A process that comes meanwhile has a turn, too, and of one process the earliest wait comes first.
    queue.push(5, Client::alone(4), (4, 0));
    queue.push(8, Client::alone(1), (1, 99));
    assert_eq!([next(&mut queue, 10), next(&mut queue, 10)], [Some((1, 99)), Some((4, 0))]);
    assert_eq!(std::iter::from_fn(|| next(&mut queue, 10)).count(), 37);
    assert_eq!((queue.next_deadline(), next(&mut queue, 19), next(&mut queue, 20)), (Some(20), None, Some((2, 1))));
    queue.check_invariants();
}

/// Returns a process of a family.
const fn of(family: u64, process: u64) -> Client {
    Client { process, family: family << 38 }
}

/// Forty children once delayed each other process by a reply to each of them.
#[test]
fn families_and_their_processes_get_replies_in_turn() {
    let mut queue = Queue::new(200);
    for number in 0..120 {
        queue.push(10, of(1, 1 + number / 3), (1, 1 + number / 3));
    }
    queue.push(10, of(2, 50), (2, 50));
    queue.push(10, Client::alone(60), (60, 60));
    queue.push(10, of(2, 50), (2, 50));
    queue.push(10, of(2, 51), (2, 51));
    let order: Vec<_> = (0..9).filter_map(|_| next(&mut queue, 10)).collect();
    queue.check_invariants();
    assert_eq!(order, [(1, 1), (2, 50), (60, 60), (1, 2), (2, 51), (1, 1), (2, 50), (1, 3), (1, 2)]);
    // Each of its processes has its turn before any has the third.
    let rest: Vec<_> = std::iter::from_fn(|| next(&mut queue, 10)).collect();
    let place = |process, number: usize| rest.iter().enumerate().filter(|(_, name)| name.1 == process).nth(number);
    assert_eq!(rest.len(), 115);
    assert!((4..=40).all(|process| place(process, 0).unwrap().0 < place(40, 2).unwrap().0));
}

/// A process without a known family moves to its family when that is known, and has its turn there.
#[test]
fn a_family_that_becomes_known_has_one_turn() {
    let mut queue = Queue::new(200);
    queue.push(10, Client::alone(1), 1);
    queue.push(10, of(1, 2), 2);
    queue.push(10, Client::alone(3), 3);
    queue.push(11, of(1, 1), 1);
    queue.check_invariants();
    assert_eq!((0..4).filter_map(|_| next(&mut queue, 20)).collect::<Vec<_>>(), [1, 3, 2, 1]);
}

#[test]
fn an_endless_wait_has_no_deadline() {
    let mut queue = Queue::new(10);
    let key = queue.push(NEVER, Client::alone(1), 'a');
    assert_eq!((queue.next_deadline(), next(&mut queue, u64::MAX)), (None, None));
    queue.push(7, Client::alone(1), 'b');
    assert_eq!((queue.next_deadline(), next(&mut queue, u64::MAX), queue.next_deadline()), (Some(7), Some('b'), None));
    queue.check_invariants();
    assert_eq!((queue.remove(key), queue.remove(key)), (Some('a'), None));
    assert!(queue.is_empty());
    queue.check_invariants();
}

/// Two families are searched in turn, and neither search begins anew because of the other.
#[test]
fn each_family_goes_on_where_it_stopped() {
    let mut queue = Queue::new(64);
    (0..12).for_each(|number| _ = queue.push(number, Client::alone(9), number));
    (0..12).for_each(|number| _ = queue.push(number, Client::alone(5), 100 + number));
    let mut looked_at = Vec::new();
    for _ in 0..3 {
        for family in [9, 5] {
            drop(queue.take_out_some(family, 4, |number| {
                looked_at.push(*number);
                false
            }));
        }
    }
    looked_at.sort_unstable();
    assert_eq!(looked_at, (0..12).chain(100..112).collect::<Vec<_>>(), "each once");
}

/// No more cursors are kept than there is room for.
#[test]
fn more_families_than_cursors_look_nevertheless() {
    let mut queue = Queue::new(1024);
    (0..100).for_each(|family| _ = queue.push(1, Client::alone(family), family));
    for round in 0..3 {
        for family in 0..100 {
            assert_eq!(
                some_gone(&mut queue, family, 4, |_| round == 2),
                if round == 2 { vec![family] } else { vec![] }
            );
            queue.check_invariants();
        }
    }
    assert!(queue.is_empty());
}

/// Waits counted for a family that has gone are found, too.
#[test]
fn every_wait_is_checked_eventually() {
    let mut queue = Queue::new(64);
    (0..30).for_each(|number| _ = queue.push(7, Client::alone(number % 4), number));
    let mut looked_at = Vec::new();
    for _ in 0..6 {
        let gone = queue.take_out_any(6, |number| {
            looked_at.push(*number);
            number % 5 == 0
        });
        assert!(gone.iter().all(|(_, number)| number % 5 == 0));
        queue.check_invariants();
    }
    looked_at.sort_unstable();
    looked_at.dedup();
    assert_eq!((looked_at, queue.len()), ((0..30).collect::<Vec<_>>(), 24));
}

/// A wait: family, process, deadline, arrival.
type Wait = (u64, u64, u64, u64);

/// The queue as a list.
#[derive(Default)]
struct List {
    waits: Vec<Wait>,
    arrivals: u64,
    /// Families, and processes, that have been called, in the order of the calls.
    families: Vec<u64>,
    processes: Vec<(u64, u64)>,
}

impl List {
    fn push(&mut self, family: u64, process: u64, deadline: u64) {
        self.arrivals += 1;
        self.waits.push((family, process, deadline, self.arrivals));
    }

    /// Returns the first wait for which `is_meant` holds.
    fn first(&self, is_meant: impl Fn(&Wait) -> bool) -> Option<Wait> {
        let waits = self.waits.iter().copied().filter(is_meant);
        waits.min_by_key(|&(.., deadline, arrival)| (deadline, arrival))
    }

    fn pop(&mut self, now: u64) -> Option<Wait> {
        while let Some((family, ..)) = self.first(|wait| wait.2 <= now && !self.families.contains(&wait.0)) {
            self.families.push(family);
        }
        if self.families.is_empty() {
            return None;
        }
        let family = self.families.remove(0);
        let process = match self.processes.iter().position(|called| called.0 == family) {
            Some(place) => self.processes.remove(place).1,
            None => self.first(|wait| wait.0 == family)?.1,
        };
        let taken = self.first(|wait| wait.1 == process)?;
        self.waits.retain(|wait| *wait != taken);
        let is_new = |wait: &Wait| wait.1 != process && !self.processes.contains(&(wait.0, wait.1));
        let another = self.first(|wait| wait.0 == family && wait.2 <= now && is_new(wait));
        let same = self.first(|wait| wait.1 == process && wait.2 <= now);
        self.processes.extend([another, same].into_iter().flatten().map(|wait| (wait.0, wait.1)));
        self.rejoin(family);
        Some(taken)
    }

    /// A process that loses some of its threads loses its turn, and its family comes last.
    fn take_out(&mut self, process: u64, is_gone: impl Fn(&Wait) -> bool) -> Vec<u64> {
        let (gone, left): (Vec<Wait>, _) = self.waits.iter().partition(|wait| wait.1 == process && is_gone(wait));
        self.waits = left;
        if let Some((family, ..)) = gone.first() {
            self.families.retain(|other| other != family);
            self.processes.retain(|other| other.1 != process);
            self.rejoin(*family);
        }
        gone.into_iter().map(|wait| wait.3).collect()
    }

    fn rejoin(&mut self, family: u64) {
        if self.processes.iter().any(|called| called.0 == family) {
            self.families.push(family);
        }
    }
}

proptest! {
    /// Three families, of three processes each.
    #[test]
    fn the_order_is_that_of_a_list(steps in prop::collection::vec((0..9u64, 0..12u8, 0..20u64), 0..150)) {
        let (mut queue, mut list, mut now) = (Queue::new(1000), List::default(), 100);
        for (process, step, time) in steps {
            let (family, process) = (process / 3, 10 + process);
            match step {
                0 => now += time,
                1..6 => {
                    let popped = queue.pop_expired(now).map(|(key, number)| (key.process, key.deadline, number));
                    prop_assert_eq!(popped, list.pop(now).map(|(_, process, deadline, number)| (process, deadline, number)));
                }
                6 => {
                    let mut gone: Vec<u64> = queue.process_ended(process, 1000).into_iter().map(|(_, number)| number).collect();
                    gone.sort_unstable();
                    prop_assert_eq!(gone, list.take_out(process, |_| true));
                }
                7 => {
                    let mut gone = some_gone(&mut queue, process, 1000, |_| false);
                    gone.extend(queue.take_out_any(1000, |number| number % 7 == time % 7).into_iter().map(|(_, number)| number));
                    gone.sort_unstable();
                    let mut wanted: Vec<_> = list.waits.iter().filter(|wait| wait.3 % 7 == time % 7).copied().collect();
                    wanted.sort_unstable_by_key(|wait| (wait.1, wait.2, wait.3));
                    let mut found = Vec::new();
                    wanted.iter().for_each(|wait| found.extend(list.take_out(wait.1, |other| other == wait)));
                    found.sort_unstable();
                    prop_assert_eq!(gone, found);
                }
                _ => {
                    list.push(family, process, now + time);
                    queue.push(now + time, of(family + 1, process), list.arrivals);
                }
            }
            queue.check_invariants();
        }
        prop_assert_eq!(queue.len(), list.waits.len());
    }

    /// Between a thread's deadline and its reply, each other family gets no more replies than its own process and
    /// family leave it.
    #[test]
    fn no_family_is_late_because_another_has_many_processes(
        many in 1..60u64, others in prop::collection::vec(0..4u64, 0..12), deadline in 0..10u64,
    ) {
        let mut queue = Queue::new(1000);
        (0..many).for_each(|process| _ = queue.push(10 - deadline, of(1, 100 + process), 1));
        others.iter().for_each(|family| _ = queue.push(10, of(2 + family, 200 + family), 2 + family));
        queue.push(10, of(9, 300), 9);
        let families = others.iter().collect::<std::collections::BTreeSet<_>>().len();
        let order: Vec<u64> = (0..families + 2).filter_map(|_| next(&mut queue, 10)).collect();
        prop_assert!(order.contains(&9), "{order:?}");
    }

    #[test]
    fn the_counts_are_right_after_any_requests(steps in prop::collection::vec((0..5u64, 0..6u8, 0..50u64), 0..150)) {
        let mut queue = Queue::new(12);
        for (process, step, time) in steps {
            match step {
                0 => drop(next(&mut queue, time)),
                1 => drop(queue.process_ended(process, 2)),
                2 => drop(some_gone(&mut queue, process, 3, |reply| reply % 3 == 0)),
                _ if queue.may_wait(Client::alone(process)) => _ = queue.push(time, Client::alone(process), time),
                _ => {}
            }
            queue.check_invariants();
        }
    }

    #[test]
    fn no_wait_lasts_longer_than_a_turn_of_each_process(
        waiters in prop::collection::vec((0..5u64, 0..30u64), 1..80),
    ) {
        let mut queue = Queue::new(200);
        for (process, deadline) in &waiters {
            queue.push(*deadline, Client::alone(*process), (*process, *deadline));
        }
        // The first of each process comes among the first, one of each process.
        let processes: std::collections::BTreeSet<_> = waiters.iter().map(|(process, _)| *process).collect();
        let first: Vec<_> = (0..processes.len()).map(|_| next(&mut queue, 30).unwrap()).collect();
        queue.check_invariants();
        prop_assert_eq!(first.iter().map(|(process, _)| *process).collect::<std::collections::BTreeSet<_>>(), processes);
        for (process, deadline) in first {
            let earliest = waiters.iter().filter(|(other, _)| *other == process).map(|(_, deadline)| *deadline).min();
            prop_assert_eq!(Some(deadline), earliest);
        }
    }

    #[test]
    fn no_wait_is_lost_or_ends_early(steps in prop::collection::vec((0..4u64, 0..8u8, 0..60u64), 0..200)) {
        let (mut queue, mut model, mut now) = (Queue::new(200), Vec::new(), 0);
        for (process, step, time) in steps {
            match step {
                0 => now += time,
                1 => {
                    let mut gone = some_gone(&mut queue, process, usize::MAX, |(_, deadline)| deadline % 2 == 0);
                    gone.sort_unstable();
                    let (mut wanted, left): (Vec<_>, Vec<_>) = model.into_iter().partition(|(other, deadline)| *other == process && deadline % 2 == 0);
                    wanted.sort_unstable();
                    model = left;
                    prop_assert_eq!(gone, wanted);
                }
                2..4 => match next(&mut queue, now) {
                    None => prop_assert!(model.iter().all(|(_, deadline)| *deadline > now)),
                    Some(waiter) => {
                        prop_assert!(waiter.1 <= now);
                        let place = model.iter().position(|other| *other == waiter);
                        prop_assert!(place.is_some());
                        model.swap_remove(place.unwrap());
                    }
                },
                _ => {
                    queue.push(now + time, Client::alone(process), (process, now + time));
                    model.push((process, now + time));
                }
            }
            let due = queue.next_deadline();
            let earliest = model.iter().map(|(_, deadline)| *deadline).min();
            prop_assert!(due == earliest || due == Some(0) && earliest.is_some_and(|earliest| earliest <= now));
            queue.check_invariants();
        }
    }

    #[test]
    fn the_queue_is_a_stable_sort(deadlines in prop::collection::vec(0..50u64, 0..60)) {
        let mut queue = Queue::new(100);
        let mut wanted: Vec<_> = deadlines.iter().copied().enumerate().collect();
        wanted.sort_by_key(|&(_, deadline)| deadline);
        for (index, deadline) in deadlines.into_iter().enumerate() {
            queue.push(deadline, Client::alone(1), index);
        }
        let popped: Vec<_> = std::iter::from_fn(|| next(&mut queue, 100)).collect();
        prop_assert_eq!(popped, wanted.into_iter().map(|(index, _)| index).collect::<Vec<_>>());
    }
}
