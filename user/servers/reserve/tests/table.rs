//! Tests of requests by several owners against a plain account, and of the state that survives the server's end.

use proptest::prelude::*;
use tench::server::Fragile;
use tench_quota::Client;
use tench_reserve::analysis::Task;
use tench_reserve::kept::{Before, Entry, WORDS};
use tench_reserve::levels;
use tench_reserve::table::{Clock, Table};
use tench_reserve_interface::protocol::{
    Error, FIRST_PRIORITY, LAST_PRIORITY, LONGEST_PERIOD, MAX_RESERVATIONS, RESERVABLE, SHORTEST_BUDGET,
    SHORTEST_PERIOD, WHOLE,
};

const CLOCK: Clock = Clock { frequency: 62_500_000 };
const BEFORE: Before = Before { priority: 120, ceiling: 120, slice: 62_500 };
/// Present time of the tests.
const NOW: u64 = 123_456_789;
const MICROSECOND: u64 = 1000;
const MILLISECOND: u64 = 1000 * MICROSECOND;

fn memory() -> Fragile {
    Fragile { words: vec![0; WORDS], left: usize::MAX }
}

/// Grants a request, as the server does, and checks after each step.
fn reserve(table: &mut Table<&mut Fragile>, owner: u64, times: (u64, u64, u64)) -> Result<u64, Error> {
    let (grant, task) = table.admit(Client::alone(owner), times.0, times.1, times.2)?;
    for step in &grant.moves {
        table.set_level(step.position, step.to);
        table.check_invariants();
    }
    table.write(Client::alone(owner), task, &grant, BEFORE);
    table.check_invariants();
    Ok(grant.id)
}

/// A process cannot get more of the core by starting children that reserve it.
#[test]
fn a_family_has_one_share() {
    let mut memory = memory();
    let mut table = Table::new(&mut memory, CLOCK);
    let of_family = |process| Client { process, family: 1 << 38 };
    let free = |table: &Table<&mut Fragile>, client| table.possible(client, 20 * MILLISECOND, 0).unwrap().0;
    let before = free(&table, of_family(5));
    let (grant, task) = table.admit(of_family(5), 2 * MILLISECOND, 20 * MILLISECOND, 0).unwrap();
    table.write(of_family(5), task, &grant, BEFORE);
    table.check_invariants();
    assert_eq!(free(&table, of_family(6)), free(&table, of_family(5)), "whoever of it asks");
    assert_eq!(free(&table, of_family(6)), before - task.share());
    assert!(free(&table, Client::alone(7)) > free(&table, of_family(6)));
    // The persistent state contains the family.
    let table = Table::new(&mut memory, CLOCK);
    assert_eq!(table.entry(grant.position).unwrap().owner, of_family(5));
    assert_eq!(free(&table, of_family(6)), before - task.share());
}

#[test]
fn each_mistake_has_its_error() {
    let mut memory = memory();
    let mut table = Table::new(&mut memory, CLOCK);
    let admit = |table: &Table<_>, budget, period, deadline| {
        table.admit(Client::alone(7), budget, period, deadline).map(|_| ()).unwrap_err()
    };
    let ms = MILLISECOND;
    assert_eq!(admit(&table, SHORTEST_BUDGET - 1, ms, 0), Error::BudgetTooShort);
    assert_eq!(admit(&table, 0, ms, 0), Error::BudgetTooShort);
    assert_eq!(admit(&table, ms, SHORTEST_PERIOD - 1, 0), Error::PeriodTooShort);
    assert_eq!(admit(&table, ms, LONGEST_PERIOD + 1, 0), Error::PeriodTooLong);
    assert_eq!(admit(&table, ms, u64::MAX, u64::MAX), Error::PeriodTooLong);
    assert_eq!(admit(&table, ms, 10 * ms, 10 * ms + 1), Error::DeadlineTooLong);
    assert_eq!(admit(&table, ms, 10 * ms, 10 * ms - SHORTEST_BUDGET + MICROSECOND), Error::DeadlineTooLong);
    assert_eq!(admit(&table, 3 * ms, 10 * ms, 2 * ms), Error::BudgetTooLong);
    assert_eq!(admit(&table, 3 * ms, 10 * ms, 8 * ms), Error::BudgetTooLong);
    assert_eq!(admit(&table, u64::MAX, 10 * ms, 0), Error::BudgetTooLong);
    // Shares are those of the time that the deadline leaves.
    assert_eq!(admit(&table, 9 * ms, 20 * ms, 0), Error::Overcommitted);
    assert_eq!(admit(&table, 5 * ms, 20 * ms, 0), Error::Excessive);
    // 450 of 500 microseconds are free, except the servers' 250, 10 without preemption, and 4.8 of switching.
    assert_eq!(
        table.admit(Client::alone(0), 300 * MICROSECOND, 2 * ms, 500 * MICROSECOND).map(|_| ()),
        Err(Error::Unschedulable)
    );
    assert_eq!(reserve(&mut table, 0, (234 * MICROSECOND, 2 * ms, 500 * MICROSECOND)), Ok(1));
    assert_eq!(table.find(1), Some(0));
    assert_eq!((table.find(0), table.find(2)), (None, None));
}

#[test]
fn only_clients_with_authority_have_more_than_is_left_to_others() {
    let mut memory = memory();
    let mut table = Table::new(&mut memory, CLOCK);
    let ten_percent = (10 * MILLISECOND, 200 * MILLISECOND, 0);
    for _ in 0..4 {
        reserve(&mut table, 7, ten_percent).unwrap();
    }
    assert_eq!(reserve(&mut table, 7, ten_percent), Err(Error::Excessive));
    for _ in 0..2 {
        reserve(&mut table, 8, ten_percent).unwrap();
    }
    assert_eq!(reserve(&mut table, 8, ten_percent), Err(Error::Excessive));
    reserve(&mut table, 0, ten_percent).unwrap();
    reserve(&mut table, 0, ten_percent).unwrap();
    assert_eq!(reserve(&mut table, 0, ten_percent), Err(Error::Overcommitted));
    assert_eq!(table.possible(Client::alone(0), 100 * MILLISECOND, 0), Ok((0, 0)));
}

#[test]
fn the_quota_of_one_is_exhausted_before_the_table_is_full() {
    let mut memory = memory();
    let mut table = Table::new(&mut memory, CLOCK);
    let little = (SHORTEST_BUDGET, 100 * MILLISECOND, 0);
    let count = |table: &mut Table<_>, owner| (0..40).filter(|_| reserve(table, owner, little).is_ok()).count();
    assert_eq!(count(&mut table, 7), MAX_RESERVATIONS / 2);
    assert_eq!(reserve(&mut table, 7, little), Err(Error::Full));
    assert_eq!(count(&mut table, 8), MAX_RESERVATIONS / 4);
    assert_eq!(count(&mut table, 0), MAX_RESERVATIONS / 4);
    assert_eq!(reserve(&mut table, 9, little), Err(Error::Full));
}

/// Ending a reservation and requesting another does not give a fresh budget.
#[test]
fn a_share_that_was_used_is_free_when_the_budget_has_come_back() {
    let mut memory = memory();
    let mut table = Table::new(&mut memory, CLOCK);
    let all = (40 * MILLISECOND, 200 * MILLISECOND, 100 * MILLISECOND);
    reserve(&mut table, 7, all).unwrap();
    table.retire(0, NOW);
    let window = CLOCK.floor(100 * MILLISECOND);
    for now in [NOW, NOW + window - 1] {
        table.expire(now);
        assert_eq!(reserve(&mut table, 7, all), Err(Error::Excessive));
        assert_eq!(table.next(0), None);
    }
    // A successor knows it, too.
    let mut table = Table::new(&mut memory, CLOCK);
    assert_eq!(reserve(&mut table, 7, all), Err(Error::Excessive));
    table.expire(NOW + window);
    assert_eq!(reserve(&mut table, 7, all), Ok(2));
}

/// An owner's request.
#[derive(Clone, Copy, Debug)]
enum Step {
    Reserve(u64, (u64, u64, u64)),
    Release(usize),
    Retire(usize),
    Expire(u64),
    Possible(u64, u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let period = prop_oneof![
        Just(SHORTEST_PERIOD),
        (SHORTEST_PERIOD..20 * MILLISECOND),
        (1..40u64).prop_map(|n| n * MILLISECOND),
        (SHORTEST_PERIOD..LONGEST_PERIOD),
    ];
    let times = (period, 1..300u64, prop_oneof![Just(1000), 100..900u64]).prop_map(|(period, part, deadline)| {
        (period * part / 1000, period, if deadline == 1000 { 0 } else { period * deadline / 1000 })
    });
    prop_oneof![
        6 => (0..4u64, times.clone()).prop_map(|(owner, times)| Step::Reserve(owner, times)),
        1 => (0..MAX_RESERVATIONS).prop_map(Step::Release),
        1 => (0..MAX_RESERVATIONS).prop_map(Step::Retire),
        1 => (0..1_000_000_000u64).prop_map(Step::Expire),
        1 => (0..4u64, times).prop_map(|(owner, times)| Step::Possible(owner, times.1, times.2)),
    ]
}

/// Returns every reservation in the memory.
fn found(memory: &mut Fragile) -> Vec<Entry> {
    let table = Table::new(memory, CLOCK);
    (0..MAX_RESERVATIONS).filter_map(|position| table.entry(position).copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any requests, all deadlines are met after every step, refusals change nothing, and what is possible is
    /// granted.
    #[test]
    fn granted_reservations_can_be_kept(steps in prop::collection::vec(step(), 1..80)) {
        let mut memory = memory();
        let mut table = Table::new(&mut memory, CLOCK);
        let mut ids = Vec::new();
        for step in steps {
            match step {
                Step::Reserve(owner, times) => {
                    if let Ok(id) = reserve(&mut table, owner, times) {
                        prop_assert!(ids.iter().all(|other| *other < id), "a number was given twice");
                        ids.push(id);
                        let position = table.find(id).unwrap();
                        let entry = table.entry(position).unwrap();
                        let exact = u128::from(times.0) * u128::from(CLOCK.frequency);
                        prop_assert!(u128::from(entry.task.budget) * 1_000_000_000 >= exact, "less than was asked for");
                        prop_assert!(table.response(position).unwrap() <= entry.task.deadline);
                    }
                }
                Step::Release(position) => table.clear(position),
                Step::Retire(position) => {
                    // It is not in use any more, and its share is not free yet.
                    let id = table.entry(position).map(|entry| entry.id);
                    let free = table.possible(Client::alone(0), 100 * MILLISECOND, 0);
                    table.retire(position, NOW);
                    prop_assert!(table.entry(position).is_none() && id.is_none_or(|id| table.find(id).is_none()));
                    prop_assert_eq!(table.possible(Client::alone(0), 100 * MILLISECOND, 0), free);
                }
                Step::Expire(later) => table.expire(NOW + later),
                Step::Possible(owner, period, deadline) => {
                    let Ok((_, budget)) = table.possible(Client::alone(owner), period, deadline) else { continue };
                    if budget > 0 {
                        let more = table.admit(Client::alone(owner), budget + CLOCK.nanoseconds(1) + 1, period, deadline);
                        prop_assert!(more.is_err(), "more than is possible was granted");
                        let full = table.admit(Client::alone(owner), budget, period, deadline);
                        prop_assert!(full.is_ok() || full == Err(Error::Full), "{full:?}");
                    }
                }
            }
            table.check_invariants();
        }
    }

    /// Whenever the server ends, its successor finds what was granted before a step, or after it, or during a
    /// reordering, in which no reservation is above one that it has to be below.
    #[test]
    fn whenever_the_server_ends_reservations_are_kept(
        steps in prop::collection::vec(step(), 1..40),
        left in 0..400usize,
    ) {
        let mut memory = Fragile { words: vec![0; WORDS], left };
        let mut wanted: Vec<u64> = Vec::new();
        for step in steps {
            let before = wanted.clone();
            let mut table = Table::new(&mut memory, CLOCK);
            match step {
                Step::Reserve(owner, times) => {
                    if let Ok((grant, task)) = table.admit(Client::alone(owner), times.0, times.1, times.2) {
                        grant.moves.iter().for_each(|step| table.set_level(step.position, step.to));
                        table.write(Client::alone(owner), task, &grant, BEFORE);
                        wanted.push(grant.id);
                    }
                }
                Step::Release(position) => {
                    if let Some(entry) = table.entry(position).copied() {
                        table.clear(position);
                        wanted.retain(|id| *id != entry.id);
                    }
                }
                Step::Retire(position) => {
                    if let Some(entry) = table.entry(position).copied() {
                        table.retire(position, NOW);
                        wanted.retain(|id| *id != entry.id);
                    }
                }
                Step::Expire(later) => table.expire(NOW + later),
                Step::Possible(..) => {}
            }
            let mut now: Vec<u64> = found(&mut memory).iter().map(|entry| entry.id).collect();
            now.sort_unstable();
            let (mut old, mut new) = (before, wanted.clone());
            old.sort_unstable();
            new.sort_unstable();
            prop_assert!(now == new || memory.left == 0 && now == old, "{now:?}, not {new:?} or {old:?}");
            Table::new(&mut memory, CLOCK).check_invariants();
            if memory.left == 0 {
                return Ok(());
            }
        }
    }

    /// Whatever the memory contains, nothing panics, and each entry found has a valid priority and task.
    #[test]
    fn any_words_are_reservations_or_none(words in prop::collection::vec(prop_oneof![Just(0), 0..300u64, any::<u64>()], WORDS)) {
        for entry in found(&mut Fragile { words, left: 0 }) {
            let Task { budget, period, deadline } = entry.task;
            prop_assert!(0 < budget && budget <= deadline && deadline <= period);
            prop_assert!((FIRST_PRIORITY..=LAST_PRIORITY).contains(&entry.level));
        }
    }

    /// Room is made anywhere between others, one step at a time, and none ever passes a neighbour.
    #[test]
    fn priorities_keep_their_order_in_every_step(
        levels in prop::collection::btree_set(FIRST_PRIORITY..=LAST_PRIORITY, 0..MAX_RESERVATIONS),
        position in 0..MAX_RESERVATIONS,
    ) {
        let mut levels: Vec<u8> = levels.into_iter().rev().collect();
        let position = position % (levels.len() + 1);
        let (moves, new) = levels::insert(&levels, position).unwrap();
        for step in moves {
            levels[step.position] = step.to;
            prop_assert!(levels.is_sorted_by(|a, b| a > b), "{levels:?}");
        }
        levels.insert(position, new);
        prop_assert!(levels.is_sorted_by(|a, b| a > b), "{levels:?}");
        prop_assert!(levels.iter().all(|level| (FIRST_PRIORITY..=LAST_PRIORITY).contains(level)));
    }
}

#[test]
fn all_priorities_can_be_given_and_no_more() {
    let all: Vec<u8> = (FIRST_PRIORITY..=LAST_PRIORITY).rev().collect();
    assert_eq!(levels::insert(&all, 3), None);
    for missing in 0..all.len() {
        let mut levels = all.clone();
        levels.remove(missing);
        for position in 0..=levels.len() {
            // More would have to move than there can be reservations, or it is possible.
            if let Some((moves, _)) = levels::insert(&levels, position) {
                assert!(moves.len() <= MAX_RESERVATIONS);
            }
        }
    }
    const { assert!(RESERVABLE < WHOLE) };
}
