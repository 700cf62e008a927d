//! The quota, compared with a list of owners, and the effect of greedy clients.

use proptest::prelude::*;
use tench_places::{Client, Places, allows};

/// A family that is not a process's own.
const FAMILY: u64 = 1 << 38;

/// Returns a process of a family.
const fn of(family: u64, process: u64) -> Client {
    Client { process, family: family * FAMILY }
}

#[test]
fn alone_one_gets_half_and_the_next_half_of_the_rest() {
    let mut places = Places::new(1024);
    for (process, share) in [(1, 512), (2, 256), (3, 128), (4, 64)] {
        while places.may_take(Client::alone(process)) {
            places.take(Client::alone(process));
        }
        assert_eq!(places.held(process), share);
    }
    assert!(places.may_take(Client::alone(5)));
}

#[test]
fn those_who_want_everything_at_the_same_time_get_the_same() {
    for clients in 1..40 {
        let all = || (0..clients).map(Client::alone);
        let mut places = Places::new(1024);
        while all().any(|client| places.may_take(client)) {
            all().filter(|client| places.may_take(*client)).collect::<Vec<_>>().into_iter().for_each(|client| {
                if places.may_take(client) {
                    places.take(client);
                }
            });
            places.check_invariants();
        }
        let free = 1024 - places.taken();
        assert!(free >= 1024 / (clients as usize + 1), "{clients} greedy clients leave {free} free");
        assert!((0..clients).all(|client| places.held(client).abs_diff(free) <= 1), "{clients} get the same");
        assert!(places.may_take(Client::alone(1000)), "who has nothing is served");
    }
}

#[test]
fn children_get_a_family_no_more_than_one_process_could() {
    for children in 1..40 {
        let mut places = Places::new(1024);
        for process in 1..=children {
            while places.may_take(of(1, process)) {
                places.take(of(1, process));
            }
            places.check_invariants();
        }
        assert_eq!((places.held_by_family(FAMILY), places.taken()), (512, 512), "{children} children");
        // Another family gets what it would get beside one process.
        while places.may_take(of(2, 99)) {
            places.take(of(2, 99));
        }
        assert_eq!(places.held(99), 256);
        // Entries returned by one of the first can be taken by another of them, and so on as before.
        (0..places.held(1)).for_each(|_| places.give_back(1));
        assert_eq!(places.held(1), 0);
        assert!(places.may_take(of(1, 50)) && places.may_take(of(2, 99)));
        places.check_invariants();
    }
}

#[test]
fn a_process_whose_family_is_found_out_takes_what_it_has_along() {
    let mut places = Places::new(8);
    (0..4).for_each(|_| places.take(Client::alone(7)));
    assert!(!places.may_take(Client::alone(7)));
    assert!(!places.may_take(of(1, 7)), "what it has counts in any family");
    assert!(places.may_take(of(1, 8)), "the family does not know of it yet");
    places.take(of(1, 7));
    assert_eq!((places.held_by_family(7), places.held_by_family(FAMILY), places.held(7)), (0, 5, 5));
    assert!(!places.may_take(of(1, 8)));
    places.check_invariants();
}

#[test]
fn what_nobody_took_nobody_gives_back() {
    let mut places = Places::new(2);
    places.give_back(7);
    places.take(Client::alone(7));
    places.give_back(8);
    assert_eq!((places.taken(), places.held(7), places.held(8)), (1, 1, 0));
    places.check_invariants();
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
        let mut places = Places::new(limit);
        let mut list: Vec<u64> = Vec::new();
        let is_of = |holder: u64, family: u64| client(holder).family == family;
        for (process, step) in steps {
            let asks = client(process);
            let own = list.iter().filter(|holder| is_of(**holder, asks.family)).count();
            match step {
                0 => {
                    places.give_back(process);
                    let of = |holder: u64| list.iter().position(|other| *other == holder);
                    if let Some(index) = of(process) {
                        list.swap_remove(index);
                    }
                }
                4 => {
                    let (mut one_by_one, count) = (places.clone(), 3);
                    places.give_back_all(process, count);
                    (0..count).for_each(|_| one_by_one.give_back(process));
                    prop_assert_eq!(places.taken(), one_by_one.taken());
                    for _ in 0..count {
                        let of = |holder: u64| list.iter().position(|other| *other == holder);
                        if let Some(index) = of(process) {
                            list.swap_remove(index);
                        }
                    }
                }
                2 => {
                    let to = PROCESSES - 1 - process;
                    places.pass(process, client(to), 2);
                    list.iter_mut().filter(|holder| **holder == process).take(2).for_each(|holder| *holder = to);
                }
                3 => {
                    let mut one_by_one = places.clone();
                    let may = (0..4).take_while(|_| one_by_one.may_take(asks) && { one_by_one.take(asks); true }).count();
                    for count in 0..=4 {
                        prop_assert_eq!(places.may_take_all(asks, count), count <= may, "{} of {}", count, may);
                    }
                }
                _ => {
                    prop_assert_eq!(places.may_take(asks), own < limit - list.len());
                    if places.may_take(asks) {
                        places.take(asks);
                        list.push(process);
                    }
                }
            }
            places.check_invariants();
            prop_assert_eq!(places.taken(), list.len());
            for process in 0..PROCESSES {
                prop_assert_eq!(places.held(process), list.iter().filter(|holder| **holder == process).count());
                let family = client(process).family;
                prop_assert_eq!(places.held_by_family(family), list.iter().filter(|holder| is_of(**holder, family)).count());
            }
            // A family without entries is refused only when none is free.
            prop_assert_eq!(places.may_take(Client::alone(99)), list.len() < limit);
        }
    }

    /// A family of any number of processes is granted, request for request, what a single process would be.
    #[test]
    fn a_family_is_granted_what_one_process_would_be(
        steps in prop::collection::vec((0..4u64, 0..20u64, any::<bool>()), 0..300), limit in 1..60usize,
    ) {
        let (mut places, mut single) = (Places::new(limit), Places::new(limit));
        for (family, child, takes) in steps {
            let (many, one) = (of(family + 1, family * 20 + child + 1), Client::alone(family));
            if takes {
                prop_assert_eq!(places.may_take(many), single.may_take(one));
                if places.may_take(many) {
                    places.take(many);
                    single.take(one);
                }
            } else if places.held(many.process) > 0 {
                places.give_back(many.process);
                single.give_back(family);
            }
            prop_assert_eq!((places.held_by_family(many.family), places.taken()), (single.held(family), single.taken()));
            places.check_invariants();
        }
    }
}
