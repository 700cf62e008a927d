//! Tests of the name server's table.

use tench_names::table::{Table, badge_for, check_power};
use tench_names_interface::protocol::Error;
use tench_protocol::{Caller, Powers};
use tench_quota::Client;

fn table() -> Table<u32, &'static str> {
    Table::new(3, 2)
}

#[test]
fn a_registered_name_is_found() {
    let mut table = table();
    assert_eq!(table.look_up("clock"), Err(Error::Unknown));
    assert_eq!(table.register("clock", Client::alone(5), 70), Ok(vec![]));
    assert_eq!(table.look_up("clock"), Ok(70));
    assert_eq!(table.register("clock", Client::alone(6), 71), Err(Error::Taken));
    assert_eq!(table.look_up("clock"), Ok(70));
    assert_eq!((table.own("clock", 5), table.own("clock", 6), table.own("klock", 5)), (Some(70), None, None));
}

#[test]
fn names_have_one_to_255_bytes_and_no_control_characters() {
    let mut table = table();
    for bad in ["", "a\nb", "\0", &"x".repeat(256)] {
        assert_eq!(table.register(bad, Client::alone(1), 1), Err(Error::BadName));
        assert_eq!(table.look_up(bad), Err(Error::BadName));
        assert_eq!(table.unregister(bad, 1), Err(Error::BadName));
    }
    for good in ["a", "größe und so", "srr/rps", &"x".repeat(255)] {
        table.register(good, Client::alone(1), 1).unwrap();
        table.unregister(good, 1).unwrap();
    }
}

#[test]
fn names_of_the_system_need_the_power() {
    let without = Powers::all().difference(Powers::NAMES);
    for (name, is_system) in [("clock", true), ("reserve", true), ("files.new", true), ("a/b", false), ("/", false)] {
        let expected = if is_system { Err(Error::NotAllowed) } else { Ok(()) };
        assert_eq!(check_power(name, without), expected, "{name}");
        assert_eq!(check_power(name, Powers::NAMES), Ok(()), "{name}");
    }
}

#[test]
fn only_servers_of_the_system_learn_powers() {
    let (caller, powers) = (Caller::alone(7), Powers::MEMORY.union(Powers::RESERVE));
    assert_eq!(badge_for("reserve", caller, powers), powers.badge(7));
    assert_eq!(badge_for("my/reserve", caller, powers), 7);
    assert_eq!(badge_for("reserve", caller, Powers::empty()), 7);
    assert_eq!(badge_for("reserve", Caller::AUTHORITY, Powers::all()), 0, "who has the original gets no badge");
}

#[test]
fn a_full_table_is_an_error_and_stays_usable() {
    let mut table = table();
    for name in ["a", "b", "c"] {
        table.register(name, Client::alone(1), 1).unwrap();
    }
    assert_eq!(table.register("d", Client::alone(1), 1), Err(Error::Full));
    table.unregister("b", 1).unwrap();
    table.register("d", Client::alone(1), 1).unwrap();
}

#[test]
fn no_client_has_more_names_than_are_free() {
    let mut table = Table::<u32, u32>::new(8, 8);
    let mut register = |owner: u64, number: u32| {
        let name = format!("{owner} {number}");
        let checked = table.check_register(&name, Client::alone(owner));
        if checked.is_ok() {
            table.register(&name, Client::alone(owner), number).unwrap();
        }
        table.check_invariants();
        checked
    };
    assert_eq!((0..4).map(|number| register(1, number)).collect::<Vec<_>>(), [Ok(()); 4]);
    assert_eq!(register(1, 4), Err(Error::Full));
    assert_eq!([register(2, 0), register(2, 1), register(2, 2)], [Ok(()), Ok(()), Err(Error::Full)]);
    assert_eq!(register(3, 0), Ok(()));
    // A restarted server takes over all existing names.
    table.register("kept", Client::alone(1), 9).unwrap();
    table.process_ended(1);
    table.check_invariants();
    assert_eq!(table.check_register("mine", Client::alone(2)), Ok(()));
}

#[test]
fn abandoned_waits_are_replaced_by_others_of_their_process() {
    let mut table = Table::<u32, u32>::new(8, 8);
    for number in 0..4 {
        assert!(table.may_wait(Client::alone(1)));
        table.wait("a", Client::alone(1), number);
    }
    assert!(!table.may_wait(Client::alone(1)) && table.may_wait(Client::alone(2)));
    table.wait("a", Client::alone(2), 7);
    assert_eq!(table.take_out(Some(1), 9, |number| number % 2 == 0), [0, 2]);
    assert!(table.may_wait(Client::alone(1)));
    assert_eq!(table.register("a", Client::alone(3), 1).unwrap(), [(1, 1), (1, 3), (2, 7)]);
    table.check_invariants();
}

#[test]
fn only_the_owner_unregisters() {
    let mut table = table();
    table.register("a", Client::alone(1), 9).unwrap();
    assert_eq!(table.unregister("a", 2), Err(Error::NotYours));
    assert_eq!(table.unregister("b", 1), Err(Error::Unknown));
    assert_eq!(table.unregister("a", 1), Ok(9));
    assert_eq!(table.look_up("a"), Err(Error::Unknown));
}

#[test]
fn waiting_threads_get_replies_in_order() {
    let mut table = table();
    table.wait("a", Client::alone(1), "first");
    assert!(table.may_wait(Client::alone(2)));
    table.wait("a", Client::alone(2), "second");
    assert!(!table.may_wait(Client::alone(3)));
    assert_eq!(table.register("b", Client::alone(9), 1), Ok(vec![]));
    assert_eq!(table.register("a", Client::alone(9), 2), Ok(vec![(1, "first"), (2, "second")]));
    assert!(table.may_wait(Client::alone(3)));
}

#[test]
fn the_names_of_an_ended_process_are_removed() {
    let mut table = table();
    table.register("a", Client::alone(1), 10).unwrap();
    table.register("b", Client::alone(2), 20).unwrap();
    table.register("c", Client::alone(1), 30).unwrap();
    table.wait("d", Client::alone(1), "mine");
    table.wait("d", Client::alone(2), "yours");
    assert_eq!(table.process_ended(1), (vec![10, 30], vec!["mine"]));
    assert_eq!(table.process_ended(1), (vec![], vec![]));
    assert_eq!(table.look_up("b"), Ok(20));
    assert_eq!(table.register("d", Client::alone(2), 40), Ok(vec![(2, "yours")]));
}

#[test]
fn names_are_listed_in_alphabetical_order() {
    let mut table = table();
    for (name, owner) in [("names", 3), ("clock", 4), ("console", 5)] {
        table.register(name, Client::alone(owner), 0).unwrap();
    }
    assert_eq!(table.next(""), Some(("clock", 4)));
    assert_eq!(table.next("clock"), Some(("console", 5)));
    assert_eq!(table.next("console"), Some(("names", 3)));
    assert_eq!(table.next("names"), None);
}

/// Children of one process once took all names and all waits.
#[test]
fn a_family_leaves_names_and_waits_for_others() {
    let mut table = Table::<u32, u64>::new(64, 32);
    let of_family = |process| Client { process, family: 1 << 38 };
    let mut names = 0;
    for process in 1..=12 {
        while table.check_register(&format!("x/{names}"), of_family(process)).is_ok() {
            table.register(&format!("x/{names}"), of_family(process), 0).unwrap();
            names += 1;
        }
        while table.may_wait(of_family(process)) {
            table.wait("x/never", of_family(process), process);
        }
        table.check_invariants();
    }
    assert_eq!(names, 32);
    assert!(table.may_wait(Client::alone(20)));
    assert_eq!(table.check_register("y", Client::alone(20)), Ok(()));
    // A thread of the family that gave up makes room for another of it; a process that ends takes only its own waits
    // along.
    assert_eq!(table.take_out(Some(1 << 38), 64, |process| *process == 1).len(), 16);
    assert!(table.may_wait(of_family(12)));
    table.wait("x/never", of_family(12), 12);
    table.wait("x/never", of_family(11), 11);
    assert_eq!(table.process_ended(12).1, [12]);
    assert_eq!(table.process_ended(1).0.len(), 32);
    assert_eq!(table.check_register("z", of_family(12)), Ok(()));
    table.check_invariants();
}

/// A wait in the name of a process that has ended is found at the end of any process.
#[test]
fn abandoned_waits_are_found_a_few_at_a_time() {
    let mut table = Table::<u32, u64>::new(10, 64);
    (0..20).for_each(|number| table.wait("x", Client::alone(number % 3), number));
    let mut looked_at = Vec::new();
    for _ in 0..8 {
        let gone = table.take_out(None, 3, |number| {
            looked_at.push(*number);
            *number == 7
        });
        assert!(gone.is_empty() || gone == [7]);
    }
    looked_at.sort_unstable();
    looked_at.dedup();
    assert_eq!(looked_at, (0..20).collect::<Vec<_>>());
}

/// A request that finds no room also checks a few waits of its family, and the next request others.
#[test]
fn a_family_looks_at_a_few_of_its_own_at_a_time() {
    let mut table = Table::<u32, u64>::new(10, 64);
    (0..30).for_each(|number| table.wait("x", Client { process: number, family: number % 3 }, number));
    let mut looked_at = [Vec::new(), Vec::new()];
    for _ in 0..4 {
        for family in [0, 2] {
            let gone = table.take_out(Some(family), 3, |number| {
                looked_at[family as usize / 2].push(*number);
                *number == 12
            });
            assert!(gone.is_empty() || family == 0 && gone == [12]);
        }
    }
    // After the fourth, all waits of each family have been checked.
    for (family, mut looked_at) in [0, 2].into_iter().zip(looked_at) {
        assert!(looked_at.len() <= 4 * 3);
        looked_at.sort_unstable();
        looked_at.dedup();
        assert_eq!(looked_at, (0..10).map(|number| 3 * number + family).collect::<Vec<_>>());
    }
}

#[test]
fn a_process_is_queried_once_when_it_registers_its_first_name() {
    let mut table = Table::<u32, u32>::new(64, 8);
    let other_core = 1 << 32 | 5;
    for (owner, name) in [(5, "a"), (5, "b"), (other_core, "c"), (6, "d")] {
        table.register(name, Client::alone(owner), 0).unwrap();
    }
    // The process server of its core asks, and only while the process has a name.
    assert_eq!(
        (table.question(99), table.question(1 << 32), table.question(2 << 32)),
        (Some(5), Some(other_core), None)
    );
    table.process_lives(5);
    assert_eq!(table.question(99), Some(6));
    table.unregister("d", 6).unwrap();
    table.register("e", Client::alone(5), 0).unwrap();
    assert_eq!(table.question(99), None, "its end will be said");
    table.check_invariants();
    // A name is registered in the ended process's name: when the end is reported again, all is gone.
    table.process_ended(5);
    table.register("f", Client::alone(5), 7).unwrap();
    table.check_invariants();
    assert_eq!(table.question(99), Some(5));
    assert_eq!(table.process_ended(5).0, [7]);
    assert_eq!((table.question(99), table.look_up("c")), (None, Ok(0)));
    // The holder of an unbadged capability is no process, on whichever core.
    table.register("g", Client::alone(0), 0).unwrap();
    table.register("h", Client::alone(1 << 32), 0).unwrap();
    table.process_lives(other_core);
    assert_eq!((table.question(99), table.question(1 << 32)), (None, None));
    table.check_invariants();
}
