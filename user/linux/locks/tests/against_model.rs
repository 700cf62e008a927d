//! Random locks of ranges, compared with a slow model: an array with what every owner has of every byte.

use std::collections::{BTreeMap, BTreeSet};

use tench_linux_locks::{Kind, Locks, Owner, Range, Record, Refusal, Wanted};
use tench_random::Random;

/// Number of bytes of a file that locks have, but for those that end nowhere.
const BYTES: u64 = 40;
const OWNERS: [Owner<u8>; 5] =
    [Owner::Process(1), Owner::Process(2), Owner::Process(3), Owner::Description(1), Owner::Description(2)];

/// Locks of every owner: of every byte, and of all behind them together.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<(u8, usize, u64), Kind>,
    whole: BTreeMap<(u8, u8), Kind>,
}

/// Returns the bytes of a range. Number `BYTES` stands for all that lie behind.
fn bytes(range: Range) -> std::ops::RangeInclusive<u64> {
    range.first..=range.last.min(BYTES)
}

impl Model {
    /// Returns the owners who are in the way of a lock.
    fn in_the_way(&self, file: u8, owner: usize, range: Range, kind: Kind) -> BTreeSet<usize> {
        let held = self.bytes.iter().filter(|((other_file, other, byte), held)| {
            let is_exclusive = kind == Kind::Exclusive || **held == Kind::Exclusive;
            *other_file == file && *other != owner && is_exclusive && bytes(range).contains(byte)
        });
        held.map(|((_, other, _), _)| *other).collect()
    }

    fn set(&mut self, file: u8, owner: usize, range: Range, kind: Option<Kind>) {
        for byte in bytes(range) {
            match kind {
                Some(kind) => drop(self.bytes.insert((file, owner, byte), kind)),
                None => drop(self.bytes.remove(&(file, owner, byte))),
            }
        }
    }

    /// Returns the locks of an owner: as few as possible.
    fn records(&self, file: u8, owner: usize) -> Vec<(Range, Kind)> {
        let mut records: Vec<(Range, Kind)> = Vec::new();
        for byte in 0..=BYTES {
            let Some(kind) = self.bytes.get(&(file, owner, byte)) else { continue };
            let last = if byte == BYTES { Range::END } else { byte };
            match records.last_mut() {
                Some((range, before)) if before == kind && range.last + 1 == byte => range.last = last,
                _ => records.push((Range { first: byte, last }, *kind)),
            }
        }
        records
    }

    fn is_whole_held(&self, file: u8, description: u8, kind: Kind) -> bool {
        let mut others = self.whole.iter().filter(|((other, owner), _)| *other == file && *owner != description);
        others.any(|(_, held)| kind == Kind::Exclusive || *held == Kind::Exclusive)
    }
}

fn range(random: &mut Random) -> Range {
    let first = random.below(BYTES);
    let last = if random.once_in(6) { Range::END } else { first + random.below(BYTES - first) };
    Range { first, last }
}

fn kind(random: &mut Random) -> Kind {
    if random.once_in(2) { Kind::Shared } else { Kind::Exclusive }
}

/// Compares all locks of a file.
fn compare(locks: &Locks<u8, u8>, model: &Model, file: u8) {
    locks.check().unwrap();
    for (number, owner) in OWNERS.iter().enumerate() {
        let theirs = locks.records().filter(|(other, record)| *other == file && record.owner == *owner);
        let theirs: Vec<(Range, Kind)> = theirs.map(|(_, record)| (record.range, record.kind)).collect();
        assert_eq!(theirs, model.records(file, number), "locks of {owner:?}");
    }
    let whole: BTreeMap<(u8, u8), Kind> = locks.whole().map(|(file, owner, kind)| ((file, owner), kind)).collect();
    assert_eq!(whole, model.whole);
    assert_eq!(locks.is_empty(), model.bytes.is_empty() && model.whole.is_empty());
}

fn step(locks: &mut Locks<u8, u8>, model: &mut Model, random: &mut Random) -> &'static str {
    let (file, number) = (random.below(2) as u8, random.index(OWNERS.len()));
    let (owner, range, kind) = (OWNERS[number], range(random), kind(random));
    let description = random.below(3) as u8;
    let what = match random.below(12) {
        0..5 => {
            let wanted = Record { owner, kind, range };
            let in_the_way = model.in_the_way(file, number, range, kind);
            let found = locks.conflict(file, &wanted).map(|record| record.owner);
            assert_eq!(found.is_some(), !in_the_way.is_empty());
            assert!(found.is_none_or(|found| in_the_way.iter().any(|other| OWNERS[*other] == found)));
            let result = locks.lock(file, wanted);
            assert_eq!(result, if in_the_way.is_empty() { Ok(()) } else { Err(Refusal::Held) });
            if result.is_ok() {
                model.set(file, number, range, Some(kind));
            }
            if result.is_ok() { "locked" } else { "refused" }
        }
        5..8 => {
            assert_eq!(locks.unlock(file, owner, range), Ok(()));
            model.set(file, number, range, None);
            "unlocked"
        }
        8 => {
            if let Owner::Process(process) = owner {
                locks.close_process(file, process);
                model.set(file, number, Range { first: 0, last: Range::END }, None);
            } else if let Owner::Description(description) = owner {
                locks.close_description(file, description);
                model.set(file, number, Range { first: 0, last: Range::END }, None);
                model.whole.remove(&(file, description));
            }
            "closed"
        }
        9..11 => {
            let before = model.whole.get(&(file, description)).copied();
            if before != Some(kind) {
                model.whole.remove(&(file, description));
            }
            let is_held = before != Some(kind) && model.is_whole_held(file, description, kind);
            let expected = if is_held { Err(Refusal::Held) } else { Ok(()) };
            assert_eq!(locks.lock_whole(file, description, kind), expected);
            if !is_held {
                model.whole.insert((file, description), kind);
            }
            if is_held { "whole refused" } else { "whole locked" }
        }
        _ => {
            locks.unlock_whole(file, description);
            model.whole.remove(&(file, description));
            "whole unlocked"
        }
    };
    assert!(locks.take_woken().is_empty(), "nobody waits");
    compare(locks, model, file);
    what
}

#[test]
fn locks_are_those_of_the_model() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let (mut locks, mut model) = (Locks::default(), Model::default());
        for _ in 0..500 {
            *counts.entry(step(&mut locks, &mut model, &mut random)).or_default() += 1;
        }
    }
    println!("{counts:?}");
    assert!(counts.len() == 7 && counts.values().all(|count| *count > 300), "{counts:?}");
}

/// A process of the play of waits, which has one thread.
fn thread(process: u32) -> u32 {
    100 + process
}

/// Returns whether a process would wait for itself: whoever is in the way of a process is who it waits for.
fn is_cycle(
    model: &Model,
    waits: &BTreeMap<usize, (u8, Range, Kind)>,
    number: usize,
    wanted: (u8, Range, Kind),
) -> bool {
    let (mut seen, mut searched) = (BTreeSet::new(), vec![(number, wanted)]);
    while let Some((who, (file, range, kind))) = searched.pop() {
        for other in model.in_the_way(file, who, range, kind) {
            if other == number {
                return true;
            }
            if seen.insert(other) {
                searched.extend(waits.get(&other).map(|wait| (other, *wait)));
            }
        }
    }
    false
}

/// Processes that wait get their locks when these are free, in the order in which they asked; and nobody waits for
/// ever.
#[test]
fn who_waits_is_woken_and_no_circle_waits() {
    const PROCESSES: usize = 3;
    let (mut waited, mut deadlocks, mut got) = (0, 0, 0);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (mut locks, mut model): (Locks<u8, u8>, Model) = (Locks::default(), Model::default());
        let mut waits: BTreeMap<usize, (u8, Range, Kind)> = BTreeMap::new();
        for _ in 0..200 {
            let running: Vec<usize> = (0..PROCESSES).filter(|number| !waits.contains_key(number)).collect();
            let number = running[random.index(running.len())];
            let (file, range, kind) = (random.below(2) as u8, range(&mut random), kind(&mut random));
            let wanted = Record { owner: OWNERS[number], kind, range };
            if random.below(3) == 0 {
                locks.unlock(file, OWNERS[number], range).unwrap();
                model.set(file, number, range, None);
            } else if locks.lock(file, wanted).is_ok() {
                model.set(file, number, range, Some(kind));
            } else if is_cycle(&model, &waits, number, (file, range, kind)) {
                assert!(locks.is_deadlock(file, &wanted));
                deadlocks += 1;
            } else {
                assert!(!locks.is_deadlock(file, &wanted));
                locks.wait(thread(number as u32), file, Wanted::Record(wanted));
                waits.insert(number, (file, range, kind));
                waited += 1;
            }
            loop {
                let woken = locks.take_woken();
                if woken.is_empty() {
                    break;
                }
                for number in woken.iter().map(|woken| (*woken - 100) as usize) {
                    let Some((file, range, kind)) = waits.get(&number).copied() else { continue };
                    if locks.lock(file, Record { owner: OWNERS[number], kind, range }).is_ok() {
                        locks.end_wait(thread(number as u32));
                        waits.remove(&number);
                        model.set(file, number, range, Some(kind));
                        got += 1;
                    }
                }
            }
            for (number, (file, range, kind)) in &waits {
                assert!(!model.in_the_way(*file, *number, *range, *kind).is_empty(), "{number} was not woken");
            }
            assert!(waits.len() < PROCESSES, "somebody runs");
            assert_eq!(locks.threads().count(), waits.len());
            compare(&locks, &model, file);
        }
    }
    println!("{waited} waited, {got} got their lock, {deadlocks} would have waited for themselves");
    assert!(waited > 1000 && got > 1000 && deadlocks > 1000);
}

#[test]
fn the_number_of_locks_is_limited() {
    type Some = Locks<u32, u32>;
    let mut locks = Some::default();
    let record = |index: usize, length: u64| {
        let first = 10 * index as u64;
        Record { owner: Owner::Process(1), kind: Kind::Shared, range: Range { first, last: first + length - 1 } }
    };
    for index in 0..Some::MAX_OF_FILE {
        assert_eq!(locks.lock(1, record(index, 5)), Ok(()));
    }
    assert_eq!(locks.lock(1, record(Some::MAX_OF_FILE, 1)), Err(Refusal::Full));
    let hole = Range { first: 1, last: 1 };
    assert_eq!(locks.unlock(1, Owner::Process(1), hole), Err(Refusal::Full), "one would become two");
    assert_eq!(locks.records().count(), Some::MAX_OF_FILE, "nothing has changed");
    assert_eq!(locks.lock(1, record(0, 7)), Ok(()), "one that is there already grows");
    for file in 2..=(Some::MAX / Some::MAX_OF_FILE) as u32 {
        (0..Some::MAX_OF_FILE).for_each(|index| locks.lock(file, record(index, 1)).unwrap());
    }
    assert_eq!(locks.lock(99, record(0, 1)), Err(Refusal::Full), "too many of all files");
    assert_eq!(locks.lock_whole(99, 1, Kind::Shared), Err(Refusal::Full));
    locks.check().unwrap();
    locks.close_process(1, 1);
    assert_eq!(locks.lock(99, record(0, 1)), Ok(()));
    (0..Some::MAX_OF_FILE as u32 - 1).for_each(|index| locks.lock_whole(1, index, Kind::Shared).unwrap());
    assert_eq!(locks.lock_whole(1, 9999, Kind::Shared), Err(Refusal::Full));
    locks.check().unwrap();
}

#[test]
fn who_has_waited_longer_is_woken_first_even_after_a_vain_attempt() {
    let mut locks: Locks<u8, u8> = Locks::default();
    let range = Range { first: 0, last: 9 };
    let record = |process| Record { owner: Owner::Process(process), kind: Kind::Exclusive, range };
    locks.lock(1, record(1)).unwrap();
    locks.wait(9, 1, Wanted::Record(record(2)));
    locks.wait(7, 1, Wanted::Record(record(3)));
    locks.wait(8, 1, Wanted::Whole);
    locks.wait(6, 2, Wanted::Record(record(4)));
    locks.wait(9, 1, Wanted::Record(record(2)));
    locks.unlock(1, Owner::Process(1), Range { first: 5, last: 5 }).unwrap();
    assert_eq!(locks.take_woken(), [9, 7]);
    locks.end_wait(9);
    locks.close_process(1, 1);
    assert_eq!(locks.take_woken(), [7], "only those of the same file and sort");
}
