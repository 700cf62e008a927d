//! Random requests, against the invariants and a slow model of limits.

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Allocate { account: u64, size_bits: u64, align_bits: u64 },
    Free(prop::sample::Index),
    Divide(prop::sample::Index),
    Close(u64),
    Quota(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let allocate = (0..6u64, 10..19u64, 0..20u64);
    prop_oneof![
        4 => allocate.prop_map(|(account, size_bits, align_bits)| Step::Allocate { account, size_bits, align_bits }),
        3 => any::<prop::sample::Index>().prop_map(Step::Free),
        2 => any::<prop::sample::Index>().prop_map(Step::Divide),
        1 => (0..6u64).prop_map(Step::Close),
        1 => (0..6u64, 0..MIB).prop_map(|(account, quota)| Step::Quota(account, quota)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn bytes_are_conserved_and_blocks_never_overlap(steps in prop::collection::vec(step(), 1..150)) {
        let regions = [(0x4000_0000, 19), (0x4008_0000, 19), (0x4020_0000, 21), (0x8000_3000, 12)];
        let total: u64 = regions.iter().map(|(_, bits)| 1 << bits).sum();
        let mut server = Server::new(&regions);
        let mut model: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for step in steps {
            let pick = |index: prop::sample::Index| {
                (!model.is_empty()).then(|| model.iter().nth(index.index(model.len())).map(|(&a, &b)| (a, b)).unwrap())
            };
            match step {
                Step::Allocate { account, size_bits, align_bits } => {
                    // The family is known from the beginning for some, later for others, and never for the rest.
                    let family = if account % 3 == 0 || size_bits % 2 == 0 { 0 } else { family_of(0, account % 5) };
                    let request = Request { align_bits, family, ..Request::anywhere(account, account, size_bits) };
                    if let Ok(block) = server.ask(request) {
                        let size = block.size();
                        prop_assert!(size >= 1 << size_bits && block.address.is_multiple_of(size.max(1 << align_bits)));
                        let before = model.range(..block.address + size).next_back();
                        prop_assert!(before.is_none_or(|(&start, &(other, _))| start + other <= block.address));
                        model.insert(block.address, (size, account));
                    }
                }
                Step::Free(index) => {
                    if let Some((address, (_, account))) = pick(index) {
                        prop_assert_eq!(server.free(account, address), Ok(()));
                        model.remove(&address);
                    }
                }
                Step::Divide(index) => {
                    if let Some((address, (size, account))) = pick(index) {
                        match server.divide(account, address) {
                            Ok(half) => {
                                prop_assert_eq!(half.size() * 2, size);
                                model.insert(address, (half.size(), account));
                                model.insert(address + half.size(), (half.size(), account));
                            }
                            Err(error) => prop_assert_eq!((error, size), (Error::BadSize, 4096)),
                        }
                    }
                }
                Step::Close(account) => {
                    while let Some((slot, block)) = server.ledger.first_of(account) {
                        server.ledger.release(slot).unwrap();
                        server.slots.push(slot.0);
                        prop_assert!(model.remove(&block.address).is_some());
                    }
                    server.ledger.close(account);
                    prop_assert!(model.values().all(|(_, other)| *other != account));
                }
                Step::Quota(account, quota) => {
                    server.refill();
                    server.ledger.set_quota(account, quota).unwrap();
                }
            }
            server.ledger.check_invariants();
            let totals = server.ledger.totals();
            let used: u64 = model.values().map(|(size, _)| size).sum();
            prop_assert_eq!((totals.total, totals.free, totals.blocks), (total, total - used, model.len() as u64));
        }
    }
}

/// A process of the slow model: its parent, its limit, and what it has.
#[derive(Clone, Debug, Default)]
struct Person {
    parent: Option<usize>,
    limit: Option<u64>,
    used: u64,
    has_ended: bool,
}

/// Returns whether a process is another one or below it.
fn is_below(people: &[Person], mut person: usize, other: usize) -> bool {
    loop {
        if person == other {
            return true;
        }
        let Some(parent) = people[person].parent else { return false };
        person = parent;
    }
}

/// Returns how many bytes more a process may have: each limit above it applies to all below, whether those between have
/// ended or not.
fn left(people: &[Person], person: usize) -> u64 {
    let above = (0..people.len()).filter(|other| is_below(people, person, *other));
    let free = above.filter_map(|other| {
        let all: u64 =
            (0..people.len()).filter(|each| is_below(people, *each, other)).map(|each| people[each].used).sum();
        Some(people[other].limit?.saturating_sub(all))
    });
    free.min().unwrap_or(NO_QUOTA)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn limits_are_those_of_the_model(
        steps in prop::collection::vec((0..6u8, any::<prop::sample::Index>(), 0..6u64, any::<bool>()), 1..120)
    ) {
        let mut server = Server::new(&[(0x4000_0000, 22)]);
        let mut people: Vec<Person> = Vec::new();
        // The blocks and objects of each process.
        let mut blocks: Vec<Vec<u64>> = Vec::new();
        let mut objects: Vec<u64> = Vec::new();
        for (step, index, size, flag) in steps {
            server.refill();
            let live: Vec<usize> = (0..people.len()).filter(|person| !people[*person].has_ended).collect();
            let chosen = (!live.is_empty()).then(|| live[index.index(live.len())]);
            // Account 0 has no children.
            let number = |person: usize| person as u64 + 1;
            match (step, chosen) {
                (0 | 1, _) => {
                    let (person, parent) = (people.len(), chosen.filter(|_| size > 0));
                    let limit = flag.then_some((size * 3) << 12);
                    let opened = server.ledger.open_below(number(person), parent.map_or(0, number), limit.unwrap_or(NO_QUOTA));
                    if opened.is_ok() {
                        people.push(Person { parent, limit, used: 0, has_ended: false });
                        blocks.push(Vec::new());
                        objects.push(0);
                    } else {
                        prop_assert_eq!(opened, Err(Error::TooDeep));
                    }
                }
                (2, Some(person)) => {
                    let bytes = 4096 << size.min(3);
                    let block = server.allocate(number(person), 12 + size.min(3));
                    if left(&people, person) < bytes {
                        prop_assert_eq!(block, Err(Error::QuotaExceeded));
                    } else if let Ok(block) = block {
                        people[person].used += bytes;
                        blocks[person].push(block.address);
                    } else {
                        prop_assert_eq!(block, Err(Error::OutOfMemory));
                    }
                }
                (3, Some(person)) if flag => {
                    if let Some(address) = blocks[person].pop() {
                        let size = server.block(number(person), address).unwrap().1.size();
                        server.free(number(person), address).unwrap();
                        people[person].used -= size;
                    }
                }
                (3, Some(person)) => {
                    let charged = server.ledger.charge(Client::alone(number(person)), size * 1000, 1);
                    prop_assert_eq!(charged.is_ok(), left(&people, person) >= size * 1000);
                    if charged.is_ok() {
                        people[person].used += size * 1000;
                        objects[person] += size * 1000;
                    }
                }
                (4, Some(person)) => {
                    let bytes = objects[person].min(size * 500);
                    server.ledger.credit(number(person), bytes, 0);
                    objects[person] -= bytes;
                    people[person].used -= bytes;
                }
                (5, Some(person)) => {
                    while let Some((slot, _)) = server.ledger.first_of(number(person)) {
                        server.ledger.release(slot).unwrap();
                        server.slots.push(slot.0);
                    }
                    server.ledger.credit(number(person), objects[person], 0);
                    server.ledger.close(number(person));
                    (people[person].used, people[person].has_ended, objects[person]) = (0, true, 0);
                    blocks[person].clear();
                }
                _ => {}
            }
            server.ledger.check_invariants();
            for person in (0..people.len()).filter(|person| !people[*person].has_ended) {
                let Some(account) = server.ledger.account(number(person)) else {
                    prop_assert_eq!((people[person].used, left(&people, person)), (0, NO_QUOTA));
                    continue;
                };
                let expected = left(&people, person).saturating_add(people[person].used);
                prop_assert_eq!(server.ledger.limit(account), expected, "process {}", person);
            }
        }
        for person in 0..people.len() as u64 {
            while let Some((slot, _)) = server.ledger.first_of(person + 1) {
                server.ledger.release(slot).unwrap();
            }
            server.ledger.credit(person + 1, objects[person as usize], 0);
            server.ledger.close(person + 1);
        }
        prop_assert_eq!(server.ledger.totals().accounts, 0, "nothing is left of whoever has ended");
    }
}
