//! Places that outlast their processes, against a list of who took them.

use proptest::prelude::*;
use tench_places::Client;
use tench_places::lasting::{COMMON, Lasting, Owner};

/// A family that processes begin who manage all, of a number.
const fn family(number: u64) -> u64 {
    number << 38
}

/// One of guests.
const fn guests(number: u64) -> u64 {
    (tench_abi::power::GUESTS + number) << 38 | 1 << 32
}

/// A process of a family.
const fn of(family: u64, process: u64) -> Client {
    Client { process, family }
}

fn take_all(places: &mut Lasting, client: Client, owners: &mut Vec<Owner>) -> usize {
    let before = owners.len();
    while places.may_take(client) {
        owners.push(places.take(client));
    }
    places.check_invariants(owners);
    owners.len() - before
}

#[test]
fn one_child_after_another_gets_no_more_than_one_process() {
    let (mut places, mut owners) = (Lasting::new(1024), Vec::new());
    assert_eq!(take_all(&mut places, of(family(1), 1), &mut owners), 512);
    for child in 2..40 {
        assert_eq!(take_all(&mut places, of(family(1), child), &mut owners), 0);
    }
    assert_eq!(take_all(&mut places, of(family(2), 50), &mut owners), 256);
    // Commands of a person, one after another, get half of the rest each: what is left is nobody's.
    places.family_ended(family(1));
    assert_eq!((places.held(family(1)), places.taken()), (0, 768));
    assert_eq!(take_all(&mut places, of(family(1), 60), &mut owners), 128);
}

#[test]
fn guests_are_one_family_that_never_ends() {
    let (mut places, mut owners) = (Lasting::new(1024), Vec::new());
    assert_eq!(take_all(&mut places, of(guests(1), 1), &mut owners), 512);
    for number in 1..40 {
        places.family_ended(guests(number));
        places.family_ended(COMMON);
        assert_eq!(take_all(&mut places, of(guests(number + 1), number), &mut owners), 0);
    }
    assert_eq!((places.held(COMMON), places.held(guests(7))), (512, 512));
    assert!(places.may_take(of(family(1), 99)));
    places.give_back_all(owners[0], 512);
    places.check_invariants(&[]);
}

/// Families of the model, of whom the last two are guests.
const FAMILIES: [u64; 5] = [family(1), family(2), family(3), guests(1), guests(2)];

/// For whom one of them counts.
const fn counts_for(index: usize) -> usize {
    if index == 4 { 3 } else { index }
}

proptest! {
    #[test]
    fn counts_are_those_of_a_list(steps in prop::collection::vec((0..FAMILIES.len(), 0..40usize, 0..10u8), 0..300), limit in 1..40usize) {
        let mut places = Lasting::new(limit);
        // Whose each place is, and how it is given back; those that were left are nobody's.
        let mut list: Vec<(Option<usize>, Owner)> = Vec::new();
        for (index, which, step) in steps {
            let (client, group) = (of(FAMILIES[index], which as u64), counts_for(index));
            let own = list.iter().filter(|(holder, _)| *holder == Some(group)).count();
            match step {
                0 => {
                    places.family_ended(client.family);
                    if group != 3 {
                        list.iter_mut().filter(|(holder, _)| *holder == Some(group)).for_each(|(holder, _)| *holder = None);
                    }
                }
                1..4 => {
                    if !list.is_empty() {
                        let (_, owner) = list.swap_remove(which % list.len());
                        places.give_back(owner);
                    }
                }
                4 => {
                    let mut one_by_one = places.clone();
                    let may = (0..4).take_while(|_| one_by_one.may_take(client) && { one_by_one.take(client); true }).count();
                    for count in 0..=4 {
                        prop_assert_eq!(places.may_take_all(client, count), count <= may, "{} of {}", count, may);
                    }
                }
                _ => {
                    prop_assert_eq!(places.may_take(client), own < limit - list.len());
                    if places.may_take(client) {
                        list.push((Some(group), places.take(client)));
                    }
                }
            }
            let owners: Vec<Owner> = list.iter().map(|(_, owner)| *owner).collect();
            places.check_invariants(&owners);
            for (index, family) in FAMILIES.iter().enumerate() {
                let own = list.iter().filter(|(holder, _)| *holder == Some(counts_for(index))).count();
                prop_assert_eq!(places.held(*family), own);
            }
            prop_assert_eq!(places.may_take(of(family(9), 99)), list.len() < limit);
        }
    }
}
