//! Quota of entries that outlast their processes, compared with a list of their owners.

use proptest::prelude::*;
use tench_quota::Client;
use tench_quota::lasting::{COMMON, Lasting, Owner};

/// Returns a family of a number, as started by a process with the power `processes`.
const fn family(number: u64) -> u64 {
    number << 38
}

/// Returns a family of guests.
const fn guests(number: u64) -> u64 {
    (tench_abi::power::GUESTS + number) << 38 | 1 << 32
}

/// Returns a process of a family.
const fn of(family: u64, process: u64) -> Client {
    Client { process, family }
}

fn take_all(quota: &mut Lasting, client: Client, owners: &mut Vec<Owner>) -> usize {
    let before = owners.len();
    while quota.may_take(client) {
        owners.push(quota.take(client));
    }
    quota.check_invariants(owners);
    owners.len() - before
}

#[test]
fn one_child_after_another_gets_no_more_than_one_process() {
    let (mut quota, mut owners) = (Lasting::new(1024), Vec::new());
    assert_eq!(take_all(&mut quota, of(family(1), 1), &mut owners), 512);
    for child in 2..40 {
        assert_eq!(take_all(&mut quota, of(family(1), child), &mut owners), 0);
    }
    assert_eq!(take_all(&mut quota, of(family(2), 50), &mut owners), 256);
    // A user's commands, one after another, get half of the rest each: what they leave has no owner.
    quota.family_ended(family(1));
    assert_eq!((quota.held(family(1)), quota.taken()), (0, 768));
    assert_eq!(take_all(&mut quota, of(family(1), 60), &mut owners), 128);
}

#[test]
fn guests_together_get_what_a_family_gets_and_share_it() {
    let (mut quota, mut owners) = (Lasting::new(1024), Vec::new());
    let got: Vec<usize> = (1..4).map(|number| take_all(&mut quota, of(guests(number), number), &mut owners)).collect();
    assert_eq!(got, [256, 128, 64]);
    // Entries left by guests that have ended reduce the other guests' share.
    quota.family_ended(guests(1));
    assert_eq!((quota.held(guests(1)), quota.taken()), (0, 448));
    let mut number = 10;
    while take_all(&mut quota, of(guests(number), number), &mut owners) > 0 {
        quota.family_ended(guests(number));
        number += 1;
    }
    assert_eq!(quota.taken(), 512, "however many there have been");
    quota.give_back(owners.remove(0));
    quota.check_invariants(&owners);
    assert!(quota.may_take(of(guests(1), 1)));
    assert_eq!(take_all(&mut quota, of(family(1), 99), &mut owners), 257);
}

#[test]
fn of_whom_nothing_is_known_is_one_family_of_guests_that_never_ends() {
    let (mut quota, mut owners) = (Lasting::new(1024), Vec::new());
    assert_eq!(take_all(&mut quota, of(COMMON, 1), &mut owners), 256);
    quota.family_ended(COMMON);
    assert_eq!((take_all(&mut quota, of(COMMON, 2), &mut owners), quota.held(COMMON)), (0, 256));
    assert_eq!(take_all(&mut quota, of(guests(1), 3), &mut owners), 128);
    quota.give_back_all(owners[0], 256);
    quota.check_invariants(&owners[256..]);
}

/// Families of the model; the last two are guests.
const FAMILIES: [u64; 5] = [family(1), family(2), family(3), guests(1), guests(2)];

/// Returns whether one of them is of guests.
const fn is_guest(index: usize) -> bool {
    index >= 3
}

/// Entries with their family, whether it lives, and their owner. Entries left by a family that has ended have no owner.
type List = Vec<(usize, bool, Owner)>;

/// Returns how many more entries one of the families can take by the rule, if no other takes any.
fn more(list: &List, index: usize, limit: usize) -> usize {
    let own = list.iter().filter(|(holder, lives, _)| (*holder, *lives) == (index, true)).count();
    let of_guests = list.iter().filter(|(holder, ..)| is_guest(*holder)).count();
    // All guests are one family among families.
    let may = |taken: usize| {
        let all = list.len() + taken;
        if !is_guest(index) {
            return own + taken < limit.saturating_sub(all);
        }
        let rest = (0..).take_while(|more| of_guests + taken + more < limit.saturating_sub(all + more)).count();
        own + taken < rest
    };
    (0..).take_while(|taken| may(*taken)).count()
}

proptest! {
    #[test]
    fn counts_are_those_of_a_list(steps in prop::collection::vec((0..FAMILIES.len(), 0..40usize, 0..10u8), 0..300), limit in 1..40usize) {
        let mut quota = Lasting::new(limit);
        let mut list = List::new();
        for (index, which, step) in steps {
            let client = of(FAMILIES[index], which as u64);
            let more = more(&list, index, limit);
            match step {
                0 => {
                    quota.family_ended(client.family);
                    list.iter_mut().filter(|(holder, ..)| *holder == index).for_each(|(_, lives, _)| *lives = false);
                }
                1..4 => {
                    if !list.is_empty() {
                        let (.., owner) = list.swap_remove(which % list.len());
                        quota.give_back(owner);
                    }
                }
                4 => {
                    for count in 0..=4 {
                        prop_assert_eq!(quota.may_take_all(client, count), count <= more, "{} of {}", count, more);
                    }
                }
                _ => {
                    prop_assert_eq!(quota.may_take(client), more > 0);
                    if more > 0 {
                        list.push((index, true, quota.take(client)));
                    }
                }
            }
            let owners: Vec<Owner> = list.iter().map(|(.., owner)| *owner).collect();
            quota.check_invariants(&owners);
            for (index, family) in FAMILIES.iter().enumerate() {
                let own = list.iter().filter(|(holder, lives, _)| (*holder, *lives) == (index, true)).count();
                prop_assert_eq!(quota.held(*family), own);
            }
            prop_assert_eq!(quota.may_take(of(family(9), 99)), list.len() < limit);
        }
    }
}
