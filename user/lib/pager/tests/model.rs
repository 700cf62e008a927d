//! The pager, compared with clients that have plain memory of their own: whatever is accessed, shared, copied and
//! forgotten, each client sees its own writes and the contents at its fork.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tench_quota::Client;

use proptest::prelude::*;
use tench::abi::fault::Report;
use tench_pager::pager::Memory;
use tench_pager::{Error, Page, Pager, Pool, REGION_SIZE};
use tench_random::Random;

/// Number of pages of a region that the test touches.
const TOUCHED: usize = 6;
/// Number of pages in the pool: fewer than all clients could use.
const POOL: u32 = 14;
const CLIENTS: u64 = 4;
const BASE: u64 = 5 * REGION_SIZE;

/// Pages of one word each, and their mappings.
#[derive(Default)]
struct Hardware {
    contents: Vec<u64>,
    /// Mappings by table and entry.
    entries: BTreeMap<(u64, usize), (Page, bool)>,
    /// Deleted tables, in which nothing can be mapped.
    gone: Vec<u64>,
    /// Number of mappings that are refused from now on.
    refuse: usize,
}

#[derive(Clone, Default)]
struct Simulated(Rc<RefCell<Hardware>>);

impl Memory for Simulated {
    type Table = u64;
    type Mapping = (u64, usize);

    fn map(&mut self, table: &u64, entry: usize, page: Page, writable: bool) -> Result<(u64, usize), Error> {
        let mut hardware = self.0.borrow_mut();
        if hardware.gone.contains(table) {
            return Err(Error::Refused);
        }
        if hardware.refuse > 0 {
            hardware.refuse -= 1;
            return Err(Error::Refused);
        }
        let before = hardware.entries.insert((*table, entry), (page, writable));
        assert!(before.is_none(), "mapped over something");
        Ok((*table, entry))
    }

    fn allow(&mut self, mapping: &(u64, usize), writable: bool) -> Result<(), Error> {
        let mut hardware = self.0.borrow_mut();
        match hardware.entries.get_mut(mapping) {
            Some(entry) => entry.1 = writable,
            None => return Err(Error::Refused),
        }
        Ok(())
    }

    fn unmap(&mut self, mapping: (u64, usize)) {
        let mut hardware = self.0.borrow_mut();
        let removed = hardware.entries.remove(&mapping);
        assert!(removed.is_some() || hardware.gone.contains(&mapping.0), "unmapped twice");
    }

    fn zero(&mut self, page: Page) {
        self.0.borrow_mut().contents[page.0 as usize] = 0;
    }

    fn copy(&mut self, from: Page, to: Page) {
        let mut hardware = self.0.borrow_mut();
        hardware.contents[to.0 as usize] = hardware.contents[from.0 as usize];
    }
}

/// Returns the report of a data abort: of a store if `write`.
fn report(address: u64, write: bool) -> Report {
    let syndrome = 0x24 << 26 | u64::from(write) << 6 | 0b0111;
    Report { class: 0, address, instruction: 0x20_0000, syndrome }
}

struct Both {
    pager: Pager<Simulated>,
    hardware: Simulated,
    /// Memory that each attached client must see.
    model: BTreeMap<u64, [Option<u64>; TOUCHED]>,
    next: u64,
    /// Set if a client may get one more page only while it has fewer than are free.
    is_fair: bool,
}

impl Both {
    fn new() -> Both {
        Both::with(Pager::new, false)
    }

    fn with(make: impl Fn(Simulated, Pool) -> Pager<Simulated>, is_fair: bool) -> Both {
        let hardware = Simulated::default();
        hardware.0.borrow_mut().contents = vec![!0; POOL as usize];
        let pager = make(hardware.clone(), Pool::new(POOL));
        Both { pager, hardware, model: BTreeMap::new(), next: 1, is_fair }
    }

    /// Performs a client's access to a page: tries it until it succeeds, with a fault each time that it does not.
    fn access(&mut self, client: u64, page: usize, write: Option<u64>) -> Result<u64, Error> {
        let mut faults = 0;
        loop {
            let mapped = self.hardware.0.borrow().entries.get(&(client, page)).copied();
            if let Some((shown, writable)) = mapped
                && (writable || write.is_none())
            {
                let contents = &mut self.hardware.0.borrow_mut().contents;
                if let Some(word) = write {
                    contents[shown.0 as usize] = word;
                }
                return Ok(contents[shown.0 as usize]);
            }
            assert!(faults < 2, "served and still not accessible");
            faults += 1;
            self.pager.fault(Client::alone(client), &report(BASE + (page as u64) * 4096 + 8, write.is_some()))?;
        }
    }

    fn touch(&mut self, client: u64, page: usize, write: bool) {
        self.next += 1;
        let word = write.then_some(self.next);
        let free = self.pager.free();
        let known = self.model.contains_key(&client);
        match self.access(client, page, word) {
            Ok(found) => {
                let memory = self.model.get_mut(&client).expect("only a client is served");
                match word {
                    Some(word) => memory[page] = Some(word),
                    None => assert_eq!(found, memory[page].unwrap_or(0), "client {client}, page {page}"),
                }
                memory[page].get_or_insert(0);
            }
            Err(Error::NotMine) => assert!(!known),
            Err(Error::OutOfPages) => {
                let own = self.model[&client].iter().flatten().count();
                assert!(free == 0 || self.is_fair && own >= free, "{own} pages, {free} free");
            }
            Err(Error::Refused) => assert_eq!(self.hardware.0.borrow().refuse, 0, "refused without a reason"),
            Err(error) => panic!("{error}"),
        }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Attach(client) => {
                let known = self.model.contains_key(&client);
                assert_eq!(self.pager.attach(Client::alone(client), BASE, client).is_err(), known);
                self.model.entry(client).or_default();
            }
            Step::Touch { client, page, write } => self.touch(client, page, write),
            Step::Fail { client, page, write } => {
                self.hardware.0.borrow_mut().refuse = 1;
                self.touch(client, page, write);
                self.hardware.0.borrow_mut().refuse = 0;
            }
            Step::Share { from, to } => match self.pager.share(from, to, BASE) {
                Ok(count) => {
                    let memory = self.model[&from];
                    assert_eq!(count, memory.iter().flatten().count() as u64);
                    assert_eq!(self.model.insert(to, memory), Some([None; TOUCHED]));
                }
                Err(Error::NoSuchRegion) => {
                    assert!(!self.model.contains_key(&from) || !self.model.contains_key(&to));
                }
                Err(Error::NotEmpty) => assert!(from == to || self.model[&to].iter().any(Option::is_some)),
                Err(error) => panic!("{error}"),
            },
            Step::Forget(client) => {
                let tables = self.pager.forget(client);
                assert_eq!(tables.len(), usize::from(self.model.remove(&client).is_some()));
                let hardware = self.hardware.0.borrow();
                assert!(hardware.entries.keys().all(|(table, _)| *table != client), "something is mapped still");
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Attach(u64),
    Touch {
        client: u64,
        page: usize,
        write: bool,
    },
    /// The kernel refuses the next mapping.
    Fail {
        client: u64,
        page: usize,
        write: bool,
    },
    Share {
        from: u64,
        to: u64,
    },
    Forget(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..CLIENTS).prop_map(Step::Attach),
        20 => (0..CLIENTS, 0..TOUCHED, any::<bool>())
            .prop_map(|(client, page, write)| Step::Touch { client, page, write }),
        2 => (0..CLIENTS, 0..TOUCHED, any::<bool>())
            .prop_map(|(client, page, write)| Step::Fail { client, page, write }),
        4 => (0..CLIENTS, 0..CLIENTS).prop_map(|(from, to)| Step::Share { from, to }),
        2 => (0..CLIENTS).prop_map(Step::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn each_client_sees_its_own_memory(steps in prop::collection::vec(step(), 1..200), is_fair in any::<bool>()) {
        let mut both = if is_fair { Both::with(Pager::fair, true) } else { Both::new() };
        for step in &steps {
            both.apply(step);
            if let Err(wrong) = both.pager.check_invariants() {
                panic!("{step:?}: {wrong}");
            }
        }
        for client in 0..CLIENTS {
            both.apply(&Step::Forget(client));
        }
        prop_assert_eq!(both.pager.free(), POOL as usize);
    }
}

#[test]
fn a_greedy_client_leaves_pages_and_regions_for_others() {
    let mut both = Both::with(Pager::fair, true);
    for region in 0..10 {
        both.pager.attach(Client::alone(1), BASE + region * REGION_SIZE, 100 + region).unwrap();
    }
    let taken = {
        let addresses = (0..10).flat_map(|region| (0..TOUCHED as u64).map(move |page| (region, page)));
        let places = addresses.map(|(region, page)| BASE + region * REGION_SIZE + page * 4096);
        let taken = places.map(|address| both.pager.fault(Client::alone(1), &report(address, true)));
        taken.take_while(|served| *served != Err(Error::OutOfPages)).filter(Result::is_ok).count()
    };
    assert_eq!(taken, POOL as usize / 2);
    // A child of that client has no share of its own.
    let child = Client { process: 4, family: 1 };
    both.pager.attach(child, BASE, 400).unwrap();
    assert_eq!(both.pager.fault(child, &report(BASE, true)), Err(Error::OutOfPages));
    both.pager.detach(4, BASE).unwrap();
    both.pager.attach(Client::alone(2), BASE, 200).unwrap();
    let mut regions = 11;
    let mut served = 0;
    for page in 0..TOUCHED as u64 {
        served += usize::from(both.pager.fault(Client::alone(2), &report(BASE + page * 4096, true)).is_ok());
    }
    assert_eq!(served, POOL as usize / 4 + 1, "half of what is left");
    while both.pager.attach(Client::alone(1), BASE + regions * REGION_SIZE, 100 + regions).is_ok() {
        regions += 1;
    }
    assert!(matches!(both.pager.attach(Client::alone(1), 0, 0), Err((Error::TooManyRegions, 0))));
    assert!(both.pager.attach(Client::alone(3), BASE, 300).is_ok());
    both.pager.check_invariants().unwrap();
}

#[test]
fn a_page_is_copied_only_while_another_shows_it() {
    let mut both = Both::new();
    both.apply(&Step::Attach(1));
    both.apply(&Step::Attach(2));
    both.touch(1, 0, true);
    both.touch(1, 1, true);
    both.apply(&Step::Share { from: 1, to: 2 });
    both.touch(2, 0, true);
    let statistics = both.pager.statistics();
    assert_eq!((statistics.fresh, statistics.copied, statistics.kept), (2, 1, 0));
    // The other has a copy now, so the first has its page to itself.
    both.touch(1, 0, true);
    assert_eq!(both.pager.statistics().kept, 1);
    // The second page is still shared, and read by both.
    both.touch(1, 1, false);
    both.touch(2, 1, false);
    let statistics = both.pager.statistics();
    assert_eq!((statistics.copied, statistics.joined), (1, 1));
    // When the first ends, the second keeps the shared pages.
    both.apply(&Step::Forget(1));
    both.touch(2, 1, true);
    let statistics = both.pager.statistics();
    assert_eq!((statistics.copied, statistics.kept), (1, 2));
    both.pager.check_invariants().unwrap();
}

#[test]
fn refused_requests_change_nothing() {
    for stage in 0..3 {
        let mut both = Both::new();
        both.apply(&Step::Attach(1));
        both.apply(&Step::Attach(2));
        if stage > 0 {
            both.touch(1, 3, true);
            both.apply(&Step::Share { from: 1, to: 2 });
        }
        let free = both.pager.free();
        both.hardware.0.borrow_mut().refuse = 1;
        // A new page; a copy of one that is mapped; a page that was never mapped here.
        let (client, write) = [(1, true), (1, true), (2, false)][stage];
        assert_eq!(both.access(client, 3, write.then_some(77)), Err(Error::Refused));
        both.pager.check_invariants().unwrap();
        assert_eq!(both.pager.free(), free);
        for client in [1, 2] {
            both.touch(client, 3, false);
        }
        both.touch(client, 3, true);
        both.pager.check_invariants().unwrap();
        assert_eq!(both.pager.statistics().refused, 1);
    }
}

#[test]
fn a_client_whose_table_is_gone_is_forgotten() {
    let mut both = Both::new();
    both.apply(&Step::Attach(1));
    both.touch(1, 0, true);
    {
        let mut hardware = both.hardware.0.borrow_mut();
        hardware.gone.push(1);
        hardware.entries.clear();
    }
    assert_eq!(both.access(1, 2, Some(1)), Err(Error::Refused));
    both.apply(&Step::Attach(2));
    assert_eq!(both.pager.share(1, 2, BASE), Err(Error::Refused));
    assert_eq!(both.pager.forget(1), [1]);
    both.pager.check_invariants().unwrap();
    assert_eq!(both.pager.free(), POOL as usize);
}

#[test]
fn faults_outside_the_pagers_memory_are_refused() {
    let mut both = Both::new();
    both.apply(&Step::Attach(1));
    for address in [0, BASE - 8, BASE + REGION_SIZE, u64::MAX - 7] {
        assert_eq!(both.pager.fault(Client::alone(1), &report(address, true)), Err(Error::NotMine));
    }
    assert_eq!(both.pager.fault(Client::alone(2), &report(BASE, true)), Err(Error::NotMine));
    let fetch = Report { syndrome: 0x20 << 26 | 0b0111, ..report(BASE, false) };
    assert_eq!(both.pager.fault(Client::alone(1), &fetch), Err(Error::NotMine));
    assert_eq!(both.pager.attach(Client::alone(1), BASE + 4096, 9).map_err(|(error, _)| error), Err(Error::BadRegion));
    assert_eq!(both.pager.share(1, 3, BASE), Err(Error::NoSuchRegion));
    assert_eq!(both.pager.share(1, 1, BASE), Err(Error::NotEmpty));
    assert_eq!(both.pager.detach(3, BASE), Err(Error::NoSuchRegion));
    both.pager.check_invariants().unwrap();
}

fn random_step(random: &mut Random) -> Step {
    let client = random.below(CLIENTS);
    let (page, write) = (random.index(TOUCHED), random.once_in(2));
    match random.below(30) {
        0..3 => Step::Attach(client),
        3..6 => Step::Share { from: client, to: random.below(CLIENTS) },
        6 => Step::Forget(client),
        7..9 => Step::Fail { client, page, write },
        _ => Step::Touch { client, page, write },
    }
}

#[test]
fn a_million_operations() {
    let mut both = Both::new();
    let mut random = Random::new(42);
    for step in 0..1_000_000 {
        both.apply(&random_step(&mut random));
        if step % 256 == 0 {
            both.pager.check_invariants().unwrap();
        }
    }
    let found = both.pager.statistics();
    // Otherwise the test no longer covers these cases.
    let counts = [found.fresh, found.copied, found.kept, found.joined, found.refused];
    assert!(counts.iter().all(|count| *count > 2_000), "{found:?}");
}

#[test]
fn a_page_that_is_there_already_is_no_error() {
    // Two threads of a client fault on one page: the second finds it mapped.
    let mut both = Both::new();
    both.apply(&Step::Attach(1));
    for write in [false, true] {
        both.touch(1, 0, write);
        let before = both.hardware.0.borrow().entries.clone();
        assert_eq!(both.pager.fault(Client::alone(1), &report(BASE, write)), Ok(()));
        assert_eq!(both.hardware.0.borrow().entries, before);
    }
    assert_eq!(both.pager.statistics().fresh, 1);
}
