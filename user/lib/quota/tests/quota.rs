//! The quota, compared with a list of owners, and the effect of greedy clients.

use proptest::prelude::*;
use tench_quota::{Client, Quota, allows};

/// A family that is not a process's own.
const FAMILY: u64 = 1 << 38;

/// Returns a process of a family.
const fn of(family: u64, process: u64) -> Client {
    Client { process, family: family * FAMILY }
}

#[test]
fn alone_one_gets_half_and_the_next_half_of_the_rest() {
    let mut quota = Quota::new(1024);
    for (process, share) in [(1, 512), (2, 256), (3, 128), (4, 64)] {
        while quota.may_take(Client::alone(process)) {
            quota.take(Client::alone(process));
        }
        assert_eq!(quota.held(process), share);
    }
    assert!(quota.may_take(Client::alone(5)));
}

#[test]
fn simultaneous_greedy_clients_get_equal_shares() {
    for clients in 1..40 {
        let all = || (0..clients).map(Client::alone);
        let mut quota = Quota::new(1024);
        while all().any(|client| quota.may_take(client)) {
            all().filter(|client| quota.may_take(*client)).collect::<Vec<_>>().into_iter().for_each(|client| {
                if quota.may_take(client) {
                    quota.take(client);
                }
            });
            quota.check_invariants();
        }
        let free = 1024 - quota.taken();
        assert!(free >= 1024 / (clients as usize + 1), "{clients} greedy clients leave {free} free");
        assert!((0..clients).all(|client| quota.held(client).abs_diff(free) <= 1), "{clients} get the same");
        assert!(quota.may_take(Client::alone(1000)), "who has nothing is served");
    }
}

#[test]
fn children_get_a_family_no_more_than_one_process_could() {
    for children in 1..40 {
        let mut quota = Quota::new(1024);
        for process in 1..=children {
            while quota.may_take(of(1, process)) {
                quota.take(of(1, process));
            }
            quota.check_invariants();
        }
        assert_eq!((quota.held_by_family(FAMILY), quota.taken()), (512, 512), "{children} children");
        // Another family gets what it would get beside one process.
        while quota.may_take(of(2, 99)) {
            quota.take(of(2, 99));
        }
        assert_eq!(quota.held(99), 256);
        // Entries returned by one of the first can be taken by another of them, and so on as before.
        (0..quota.held(1)).for_each(|_| quota.give_back(1));
        assert_eq!(quota.held(1), 0);
        assert!(quota.may_take(of(1, 50)) && quota.may_take(of(2, 99)));
        quota.check_invariants();
    }
}

#[test]
fn a_process_whose_family_is_found_out_takes_what_it_has_along() {
    let mut quota = Quota::new(8);
    (0..4).for_each(|_| quota.take(Client::alone(7)));
    assert!(!quota.may_take(Client::alone(7)));
    assert!(!quota.may_take(of(1, 7)), "what it has counts in any family");
    assert!(quota.may_take(of(1, 8)), "the family does not know of it yet");
    quota.take(of(1, 7));
    assert_eq!((quota.held_by_family(7), quota.held_by_family(FAMILY), quota.held(7)), (0, 5, 5));
    assert!(!quota.may_take(of(1, 8)));
    quota.check_invariants();
}

#[test]
fn a_return_without_a_charge_is_ignored() {
    let mut quota = Quota::new(2);
    quota.give_back(7);
    quota.take(Client::alone(7));
    quota.give_back(8);
    assert_eq!((quota.taken(), quota.held(7), quota.held(8)), (1, 1, 0));
    quota.check_invariants();
    assert!(!allows(0, 3, 2), "more may be taken than there are, by a server that is started again");
}

/// Number of processes of the model; a third of them are in no family but their own.
const PROCESSES: u64 = 9;

/// Returns the client of a process: 0, 3 and 6 alone, 1, 4, 7 of one family, 2, 5, 8 of another.
const fn client(process: u64) -> Client {
    if process.is_multiple_of(3) { Client::alone(process) } else { of(process % 3, process) }
}

proptest! {
    #[test]
    fn counts_are_those_of_a_list(steps in prop::collection::vec((0..PROCESSES, 0..12u8), 0..200), limit in 1..40usize) {
        let mut quota = Quota::new(limit);
        let mut list: Vec<u64> = Vec::new();
        let is_of = |holder: u64, family: u64| client(holder).family == family;
        for (process, step) in steps {
            let asks = client(process);
            let own = list.iter().filter(|holder| is_of(**holder, asks.family)).count();
            match step {
                0 => {
                    quota.give_back(process);
                    let of = |holder: u64| list.iter().position(|other| *other == holder);
                    if let Some(index) = of(process) {
                        list.swap_remove(index);
                    }
                }
                4 => {
                    let (mut one_by_one, count) = (quota.clone(), 3);
                    quota.give_back_all(process, count);
                    (0..count).for_each(|_| one_by_one.give_back(process));
                    prop_assert_eq!(quota.taken(), one_by_one.taken());
                    for _ in 0..count {
                        let of = |holder: u64| list.iter().position(|other| *other == holder);
                        if let Some(index) = of(process) {
                            list.swap_remove(index);
                        }
                    }
                }
                2 => {
                    let to = PROCESSES - 1 - process;
                    quota.pass(process, client(to), 2);
                    list.iter_mut().filter(|holder| **holder == process).take(2).for_each(|holder| *holder = to);
                }
                3 => {
                    let mut one_by_one = quota.clone();
                    let may = (0..4).take_while(|_| one_by_one.may_take(asks) && { one_by_one.take(asks); true }).count();
                    for count in 0..=4 {
                        prop_assert_eq!(quota.may_take_all(asks, count), count <= may, "{} of {}", count, may);
                    }
                }
                _ => {
                    prop_assert_eq!(quota.may_take(asks), own < limit - list.len());
                    if quota.may_take(asks) {
                        quota.take(asks);
                        list.push(process);
                    }
                }
            }
            quota.check_invariants();
            prop_assert_eq!(quota.taken(), list.len());
            for process in 0..PROCESSES {
                prop_assert_eq!(quota.held(process), list.iter().filter(|holder| **holder == process).count());
                let family = client(process).family;
                prop_assert_eq!(quota.held_by_family(family), list.iter().filter(|holder| is_of(**holder, family)).count());
            }
            // A family without entries is refused only when none is free.
            prop_assert_eq!(quota.may_take(Client::alone(99)), list.len() < limit);
        }
    }

    /// A family of any number of processes is granted, request for request, what a single process would be.
    #[test]
    fn a_family_is_granted_what_one_process_would_be(
        steps in prop::collection::vec((0..4u64, 0..20u64, any::<bool>()), 0..300), limit in 1..60usize,
    ) {
        let (mut quota, mut single) = (Quota::new(limit), Quota::new(limit));
        for (family, child, takes) in steps {
            let (many, one) = (of(family + 1, family * 20 + child + 1), Client::alone(family));
            if takes {
                prop_assert_eq!(quota.may_take(many), single.may_take(one));
                if quota.may_take(many) {
                    quota.take(many);
                    single.take(one);
                }
            } else if quota.held(many.process) > 0 {
                quota.give_back(many.process);
                single.give_back(family);
            }
            prop_assert_eq!((quota.held_by_family(many.family), quota.taken()), (single.held(family), single.taken()));
            quota.check_invariants();
        }
    }
}
