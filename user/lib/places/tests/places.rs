//! Places against a list of who has them, and what greed comes to.

use proptest::prelude::*;
use tench_places::{Places, allows};

#[test]
fn alone_one_gets_half_and_the_next_half_of_the_rest() {
    let mut places = Places::new(1024);
    for (client, share) in [(1, 512), (2, 256), (3, 128), (4, 64)] {
        while places.may_take(client) {
            places.take(client);
        }
        assert_eq!(places.held(client), share);
    }
    assert!(places.may_take(5));
}

#[test]
fn those_who_want_everything_at_the_same_time_get_the_same() {
    for clients in 1..40 {
        let mut places = Places::new(1024);
        while (0..clients).any(|client| places.may_take(client)) {
            (0..clients).filter(|client| places.may_take(*client)).collect::<Vec<_>>().into_iter().for_each(|client| {
                if places.may_take(client) {
                    places.take(client);
                }
            });
            places.check_invariants();
        }
        let free = 1024 - places.taken();
        assert!(free >= 1024 / (clients as usize + 1), "{clients} greedy clients leave {free} free");
        assert!((0..clients).all(|client| places.held(client).abs_diff(free) <= 1), "{clients} get the same");
        assert!(places.may_take(1000), "who has nothing is served");
    }
}

#[test]
fn what_nobody_took_nobody_gives_back() {
    let mut places = Places::new(2);
    places.give_back(7);
    places.take(7);
    places.give_back(8);
    assert_eq!((places.taken(), places.held(7), places.held(8)), (1, 1, 0));
    places.check_invariants();
    assert!(!allows(0, 3, 2), "more may be taken than there are, by a server that is started again");
}

/// In the list, whose places those are that were left.
const LEFT: u64 = u64::MAX;

proptest! {
    #[test]
    fn counts_are_those_of_a_list(steps in prop::collection::vec((0..6u64, 0..9u8), 0..200), limit in 1..40usize) {
        let mut places = Places::new(limit);
        let mut list: Vec<u64> = Vec::new();
        for (client, step) in steps {
            let own = list.iter().filter(|holder| **holder == client).count();
            match step {
                0 => {
                    places.give_back(client);
                    let of = |holder: u64| list.iter().position(|other| *other == holder);
                    if let Some(index) = of(client).or_else(|| of(LEFT)) {
                        list.swap_remove(index);
                    }
                }
                1 => {
                    places.leave(client);
                    list.iter_mut().filter(|holder| **holder == client).for_each(|holder| *holder = LEFT);
                }
                2 => {
                    places.pass(client, 5 - client, 2);
                    list.iter_mut().filter(|holder| **holder == client).take(2).for_each(|holder| *holder = 5 - client);
                }
                3 => {
                    let mut one_by_one = places.clone();
                    let may = (0..4).take_while(|_| one_by_one.may_take(client) && { one_by_one.take(client); true }).count();
                    for count in 0..=4 {
                        prop_assert_eq!(places.may_take_all(client, count), count <= may, "{} of {}", count, may);
                    }
                }
                _ => {
                    prop_assert_eq!(places.may_take(client), own < limit - list.len());
                    if places.may_take(client) {
                        places.take(client);
                        list.push(client);
                    }
                }
            }
            places.check_invariants();
            prop_assert_eq!(places.taken(), list.len());
            for client in 0..6 {
                prop_assert_eq!(places.held(client), list.iter().filter(|holder| **holder == client).count());
            }
            // Who has nothing is refused only when there is nothing.
            prop_assert_eq!(places.may_take(99), list.len() < limit);
        }
    }
}
