//! Tests that, whatever runs out and wherever, the request fails, and ledger, slots and the kernel's account are right.
//!
//! The same requests are made again and again; each time another call to the kernel fails, from the first to the last,
//! alone or with some or all that follow.

mod machine;

use machine::Model;
use proptest::prelude::*;
use tench_abi::power::{Client, family_of};
use tench_abi::{CapAddress, Kind};
use tench_mem::blocks::Block;
use tench_mem::ledger::{Region, Request};
use tench_mem::machine::{Machine, STEP_BITS};
use tench_mem::store::Store;
use tench_mem_interface::protocol::{ABROAD, Error};
use tench_procs_interface::pid;
use tench_random::Random;

const REGIONS: [u32; 2] = [256, 257];
/// Slot in which the server makes a client's untyped; clients' own slots follow.
const OUTGOING: CapAddress = CapAddress(40);
const CLIENTS: u32 = 1 << 20;
/// The first free slot.
const FIRST: CapAddress = CapAddress(48);

/// The server, and what its clients have.
struct Server {
    store: Store<Model>,
    /// Blocks by account: number and log2 of the size.
    given: Vec<(u64, u16, u32)>,
    carried: u32,
}

impl Server {
    fn new(bits: [u32; 2]) -> Server {
        Server::with(Model::default(), bits)
    }

    /// Returns a server whose arrays grow by as much as a step has room for.
    fn with_usual_steps(bits: [u32; 2]) -> Server {
        let mut model = Model::default();
        model.growth = 1 << STEP_BITS;
        Server::with(model, bits)
    }

    fn with(mut model: Model, bits: [u32; 2]) -> Server {
        let mut regions = Vec::new();
        for (slot, bits) in REGIONS.into_iter().zip(bits) {
            let address = 0x4000_0000 + (u64::from(slot - 256) << 32);
            model.objects.insert(slot, machine::Object { kind: Kind::Untyped, address, bits, parent: 0 });
            regions.push(Region { address, size_bits: bits, slot: CapAddress(slot) });
        }
        let store = Store::new(model, FIRST, &regions).unwrap();
        Server { store, given: Vec::new(), carried: 0 }
    }

    /// Lets `count` calls fail, after the next `after`.
    fn refuse(&mut self, after: u64, count: u64) {
        let machine = &mut self.store.machine;
        machine.refused = Some((machine.calls + after, count));
    }

    fn refuse_nothing(&mut self) {
        self.store.machine.refused = None;
    }

    fn allocate(&mut self, account: u64, bits: u32) -> Result<u16, Error> {
        let (slot, block) = self.store.give(&Request::anywhere(account, account, bits.into()), OUTGOING)?;
        self.store.machine.carry(OUTGOING, CLIENTS + self.carried);
        self.carried += 1;
        self.given.push((account, slot.0 as u16, block.size_bits));
        Ok(slot.0 as u16)
    }

    /// Returns the address of a block.
    fn address(&self, account: u64, number: u16) -> u64 {
        self.store.ledger.block(account, number).unwrap().1.address
    }

    fn free(&mut self, index: usize) -> Result<(), Error> {
        let (account, number, bits) = self.given[index];
        let (slot, block) = self.store.ledger.block(account, number)?;
        assert_eq!(block.size_bits, bits);
        self.store.free(slot)?;
        self.given.swap_remove(index);
        Ok(())
    }

    fn divide(&mut self, index: usize) -> Result<(), Error> {
        let (account, number, bits) = self.given[index];
        // The client gives its untyped up first.
        let (slot, block) = self.store.ledger.block(account, number)?;
        self.store.machine.revoke(slot, u64::MAX).unwrap();
        let (upper, half) = self.store.divide(account, number)?;
        assert_eq!(half, Block { size_bits: bits - 1, ..block });
        assert_eq!(self.address(account, upper.0 as u16), block.address + half.size());
        self.given[index].2 -= 1;
        self.given.push((account, upper.0 as u16, bits - 1));
        Ok(())
    }

    fn close(&mut self, account: u64) {
        while self.store.close(account) == Err(Error::Unfinished) {}
        assert_eq!(self.store.close(account), Ok(()));
        self.given.retain(|given| given.0 != account);
    }

    /// Checks that ledger, kernel and clients agree about everything.
    fn check(&mut self) {
        self.store.ledger.check_invariants();
        let totals = self.store.ledger.totals();
        let in_use = (totals.total - totals.free, totals.blocks);
        assert_eq!(self.store.machine.in_use(&REGIONS), in_use, "the kernel's account is that of the ledger");
        let own = self.store.ledger.next_account(pid::MEM - 1).map_or(0, |account| account.blocks);
        assert_eq!(own + self.given.len() as u64, totals.blocks, "nobody has a block that was not given");
        for &(account, number, bits) in &self.given {
            let found = self.store.ledger.block(account, number).map(|(_, block)| block.size_bits);
            assert_eq!(found, Ok(bits));
        }
        // A slot is free if and only if it is empty and the server does not intend to fill it.
        let store = &self.store;
        for slot in (FIRST.0..store.slots.next_node() * 256).filter(|slot| !REGIONS.contains(slot)) {
            let is_empty = !store.machine.objects.contains_key(&slot) && !self.is_kept(slot);
            let pool = if slot < 512 { &store.own } else { &store.slots };
            assert_eq!(pool.is_free(CapAddress(slot)), is_empty, "slot {slot}");
        }
    }

    /// Returns whether a block is in the ledger under a slot whose capability is elsewhere: a node of slots.
    fn is_kept(&self, slot: u32) -> bool {
        let is_empty = !self.store.machine.objects.contains_key(&slot);
        is_empty && self.store.ledger.holds(CapAddress(slot))
    }
}

/// Makes requests that let every array grow, add nodes of slots, and free them.
fn requests(server: &mut Server, check: bool) -> u64 {
    let mut refusals = 0;
    let mut outcome = |result: Result<(), Error>| match result {
        Ok(()) => {}
        Err(Error::OutOfMemory | Error::TooManyBlocks | Error::Internal) => refusals += 1,
        Err(other) => panic!("refused for another reason: {other:?}"),
    };
    for step in 0..330_u64 {
        // Many accounts, so that their array grows, too.
        outcome(server.allocate(10 + step, 12 + (step % 3) as u32).map(drop));
        if step % 7 == 0 && !server.given.is_empty() {
            let index = step as usize % server.given.len();
            if server.given[index].2 > 12 {
                outcome(server.divide(index));
            }
        }
        if check && step % 20 == 0 {
            server.check();
        }
    }
    while let Some(index) = server.given.len().checked_sub(3) {
        server.free(index / 2).unwrap();
    }
    refusals
}

/// Returns the bytes on the server's own account: array steps, their page tables, and nodes of slots.
fn own(server: &Server) -> u64 {
    server.store.ledger.next_account(pid::MEM - 1).map_or(0, |account| account.used)
}

/// Ends all clients.
fn close_all(server: &mut Server) {
    (10..400).for_each(|account| server.close(account));
    server.check();
    assert_eq!(server.store.ledger.totals().accounts, 1, "nobody has an account but the server");
    assert_eq!(server.store.machine.nodes.len(), 1, "nodes of slots are given back but for the first");
    let (frames, tables) = (server.store.machine.frames, server.store.machine.tables + 2);
    assert_eq!(
        own(server),
        (frames << STEP_BITS) + tables * 8192 + 16384,
        "the arrays stay as large as they had to be, and that is all"
    );
}

/// Much that was made of memory is deleted in parts, between which other requests are served; nothing of it is free
/// before.
#[test]
fn long_operations_are_done_in_parts() {
    let mut server = Server::new([23, 20]);
    for (index, free) in [true, false].into_iter().enumerate() {
        server.allocate(10, 20).unwrap();
        let (untyped, frames) = (CLIENTS + server.carried - 1, 2 * CLIENTS + 1000 * index as u32);
        server.store.machine.make_frames(untyped, 256, frames);
        let mut parts = 0;
        loop {
            let before = server.store.machine.objects.range(frames..frames + 256).count();
            let part = match free {
                true => server.free(0),
                false => server.store.close(10),
            };
            let now = server.store.machine.objects.range(frames..frames + 256).count();
            assert!(before - now <= 97, "{} in a part, with 96 windows between them", before - now);
            if part == Ok(()) {
                break;
            }
            assert_eq!(part, Err(Error::Unfinished));
            assert_eq!(server.store.ledger.account(10).map(|account| account.used), Some(1 << 20));
            server.check();
            assert!(free || server.allocate(10, 12) == Err(Error::Ended), "its process has ended");
            assert!(free == server.store.ledger.is_served(10));
            server.allocate(11, 12).unwrap();
            server.free(1).unwrap();
            parts += 1;
        }
        assert!(parts >= 256 / 97, "{parts} parts");
    }
    server.given.clear();
    close_all(&mut server);
}

/// Memory of which other cores have a part stays when its owner ends, has no owner then, and is freed when they have
/// nothing any more.
#[test]
fn memory_that_is_abroad_outlives_its_owner() {
    let mut server = Server::new([23, 20]);
    let [kept, other, gone] = [14, 13, 12].map(|bits| server.allocate(10, bits).unwrap());
    let neighbour = server.allocate(11, 12).unwrap();
    let untyped = |number: u16, server: &Server| {
        let address = server.address(10, number);
        let objects = server.store.machine.objects.range(CLIENTS..);
        *objects.filter(|(_, object)| object.address == address).map(|(slot, _)| slot).next().unwrap()
    };
    let abroad = [untyped(kept, &server), untyped(other, &server)];
    server.store.machine.abroad.extend(abroad);
    assert_eq!(server.free(0), Err(Error::Abroad));
    server.check();
    // A block that is abroad ends a part.
    assert_eq!(server.store.close(10), Err(Error::Unfinished));
    while server.store.close(10) == Err(Error::Unfinished) {}
    assert_eq!(server.store.close(10), Ok(()));
    let ledger = &server.store.ledger;
    assert_eq!(ledger.account(10), None, "the process is forgotten");
    assert_eq!(ledger.account(ABROAD).map(|account| (account.used, account.blocks)), Some((3 << 13, 2)));
    let (first, second) = (kept.min(other), kept.max(other));
    let next = |after: u16| ledger.next_of(ABROAD, after).map(|(slot, _)| slot.0 as u16);
    assert_eq!([0, first, second].map(next), [Some(first), Some(second), None]);
    assert_eq!(server.store.reclaim(gone), Err(Error::NoSuchBlock));
    assert_eq!(server.store.reclaim(neighbour), Err(Error::NoSuchBlock));
    assert_eq!(server.store.reclaim(kept), Err(Error::Abroad));
    assert_eq!(server.store.close(ABROAD), Err(Error::Abroad));
    server.store.machine.abroad.clear();
    assert_eq!(server.store.reclaim(kept), Ok(1 << 14));
    assert_eq!(server.store.reclaim(other), Ok(1 << 13));
    assert_eq!(server.store.reclaim(other), Err(Error::NoSuchBlock));
    server.given.retain(|given| given.0 == 11);
    close_all(&mut server);
}

/// Memory that another core gives is like any other; it is refused if it overlaps existing memory.
#[test]
fn memory_from_elsewhere_is_taken_in() {
    let mut server = Server::new([20, 17]);
    let arrives = |server: &mut Server, address: u64, bits: u32| {
        let arrival = CapAddress(41);
        server
            .store
            .machine
            .objects
            .insert(arrival.0, machine::Object { kind: Kind::Untyped, address, bits, parent: 0 });
        let added = server.store.add(arrival, address, bits);
        server.store.machine.objects.remove(&arrival.0);
        added
    };
    let before = server.store.ledger.totals();
    assert_eq!(server.allocate(10, 21), Err(Error::OutOfMemory));
    assert_eq!(arrives(&mut server, 0x4000_0000, 16), Err(Error::BadSize), "it has this already");
    assert_eq!(arrives(&mut server, 0x9000_0000, 11), Err(Error::BadSize), "too small");
    server.refuse(1, 1);
    assert_eq!(arrives(&mut server, 0x9000_0000, 22), Err(Error::Internal));
    server.refuse_nothing();
    server.check();
    assert_eq!(server.store.ledger.totals(), before);
    assert_eq!(arrives(&mut server, 0x9000_0000, 22), Ok(()));
    assert_eq!(server.store.ledger.totals().free, before.free + (1 << 22));
    let number = server.allocate(10, 21).unwrap();
    assert_eq!(server.address(10, number), 0x9000_0000);
}

#[test]
fn every_call_can_be_refused_alone_or_with_those_that_follow() {
    let mut server = Server::new([24, 22]);
    requests(&mut server, true);
    let calls = server.store.machine.calls;
    close_all(&mut server);
    assert!(calls > 600, "{calls}");
    for (step, count) in [(1, 1), (7, 5), (17, 40), (41, u64::MAX / 2)] {
        for after in (1..=calls).step_by(step) {
            let mut server = Server::new([24, 22]);
            server.refuse(after, count);
            requests(&mut server, false);
            server.check();
            server.refuse_nothing();
            // What was refused can be had now.
            assert_eq!(server.allocate(10, 13).map(drop), Ok(()), "{after}");
            close_all(&mut server);
        }
    }
}

#[test]
fn memory_that_is_used_up_comes_back_whole() {
    // The region of 256 KiB goes to the server; the other one is small, so that growing fails, too.
    for bits in 15..21 {
        let mut server = Server::with_usual_steps([bits, 18]);
        let mut step = 0;
        while server.allocate(10 + step % 9, 12).is_ok() {
            server.check();
            step += 1;
        }
        let refused = server.allocate(10, 12);
        assert!(matches!(refused, Err(Error::OutOfMemory | Error::TooManyBlocks)), "{refused:?}");
        // Nothing is left, or not enough for one more step of an array.
        assert!(server.store.ledger.totals().largest < 64 << 10, "{step} pages of {bits}");
        close_all(&mut server);
        let totals = server.store.ledger.totals();
        assert_eq!(totals.free, totals.total - own(&server));
    }
}

#[test]
fn blocks_can_be_freed_when_the_ledger_is_full() {
    for holes in [2, 3, 5] {
        let mut server = Server::new([24, 22]);
        server.store.machine.is_full = true;
        // Blocks of changing sizes and holes between them: the extents are used up, to the last node.
        for step in 0..200 {
            if server.allocate(10, 12 + step % holes).is_ok() && step % holes == 0 {
                server.free(step as usize / 3 % server.given.len()).unwrap();
            }
        }
        server.check();
        let refused = (0..400).filter(|_| server.allocate(10, 12).is_err()).count();
        assert!(refused > 100, "{refused}");
        while !server.given.is_empty() {
            server.free(server.given.len() / 2).unwrap();
            server.check();
        }
        server.store.machine.is_full = false;
        assert!(server.allocate(10, 12).is_ok());
        close_all(&mut server);
    }
}

#[test]
fn nodes_of_slots_are_bounded_and_go_back() {
    let mut server = Server::with_usual_steps([28, 24]);
    let (mut blocks, mut client, mut own) = (0_u64, 10, 0_u64);
    // Every slot that the root has room for: one client after another takes what it gets, until one gets nothing.
    let refused = loop {
        match server.allocate(client, 12) {
            Ok(_) => (blocks, own) = (blocks + 1, own + 1),
            Err(error) if own == 0 => break error,
            Err(error) => {
                assert_eq!(error, Error::TooManyBlocks);
                // No client has more than is left for others, and what is left is not much less.
                let free = 62 * 256 - blocks;
                assert!(free == own || free + 1 == own, "{own} of {blocks}");
                (client, own) = (client + 1, 0);
            }
        }
    };
    assert_eq!(refused, Error::TooManyBlocks);
    assert!(blocks == 62 * 256 && server.store.machine.nodes.len() == 62, "{blocks}");
    server.check();
    // Half of them are freed, in any order, and then the rest.
    for index in 0..8000 {
        let index = index * 7919 % server.given.len();
        server.free(index).unwrap();
    }
    server.check();
    close_all(&mut server);
}

/// A family that had half of the slots for blocks once could get half of the rest for objects.
#[test]
fn blocks_and_objects_are_one_share() {
    const OBJECTS: u16 = 7;
    let mut server = Server::with_usual_steps([28, 24]);
    let (family, mut taken) = (family_of(0, 9), 0_u16);
    // One kind after the other, and then both in turn.
    for (takes_blocks, takes_objects) in [(4000, 0), (0, 300), (9000, 9000)] {
        let (mut blocks, mut objects) = (0, 0);
        loop {
            let before = taken;
            let request = Request { family, ..Request::anywhere(10, 10, 12) };
            if blocks < takes_blocks && server.store.give(&request, OUTGOING).is_ok() {
                server.store.machine.carry(OUTGOING, CLIENTS + server.carried);
                server.carried += 1;
                (blocks, taken) = (blocks + 1, taken + 1);
            }
            server.store.refill();
            server.store.ensure_slots(OBJECTS.into());
            let client = Client { process: 11, family };
            if objects < takes_objects && server.store.charge(client, 64, OBJECTS).is_ok() {
                // The kernel makes them so.
                server.store.slots.take_run(OBJECTS.into()).unwrap();
                (objects, taken) = (objects + 1, taken + OBJECTS);
            }
            if taken == before {
                break;
            }
        }
        server.store.ledger.check_invariants();
    }
    assert_eq!(taken, 62 * 256 / 2, "half, and no more");
    assert_eq!(server.store.charge(Client { process: 12, family }, 64, 1), Err(Error::TooManyBlocks));
    // Another family has half of the rest, of either kind.
    server.allocate(13, 12).unwrap();
    let other = Client::alone(14);
    assert_eq!(server.store.charge(other, 64, 62 * 64 + 1), Err(Error::TooManyBlocks));
    server.store.charge(other, 64, 62 * 64).unwrap();
}

#[test]
fn a_refill_does_not_nest() {
    let mut server = Server::new([24, 22]);
    while server.store.ledger.need().is_none() {
        server.allocate(10, 12).unwrap();
    }
    // While a refill is under way, another one does nothing.
    assert!(server.store.ledger.begin_refill());
    let calls = server.store.machine.calls;
    server.store.refill();
    assert!(!server.store.ledger.begin_refill());
    assert_eq!(server.store.machine.calls, calls);
    server.store.ledger.end_refill();
    server.store.refill();
    assert!(server.store.ledger.need().is_none() && server.store.machine.calls > calls);
    server.check();
}

#[test]
fn a_million_requests_keep_the_ledger_right() {
    let mut server = Server::with_usual_steps([28, 22]);
    let mut random = Random::new(11);
    let mut below = |limit| random.below(limit);
    let mut refused = 0;
    for step in 0..1_000_000_u64 {
        // Phases of growing and of shrinking, so that memory and slots run out, and all of it comes back.
        let grows = if step / 40_000 % 2 == 0 { 7 } else { 4 };
        let given = server.given.len() as u64;
        match below(10) {
            0 if below(50) == 0 => server.refuse(below(20), below(5)),
            0 if below(300) == 0 => server.close(10 + below(200)),
            1 if given > 0 => {
                let index = below(given) as usize;
                if server.given[index].2 > 12 {
                    refused += u64::from(server.divide(index).is_err());
                }
            }
            number if number < grows || given == 0 => {
                let most = 1 + below(9);
                let bits = 12 + below(most) as u32;
                refused += u64::from(server.allocate(10 + below(200), bits).is_err());
            }
            _ => server.free(below(given) as usize).unwrap(),
        }
        if step % 20_011 == 0 {
            server.check();
        }
    }
    assert!(refused > 1000, "{refused}");
    server.refuse_nothing();
    close_all(&mut server);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_requests_and_refusals(
        steps in proptest::collection::vec((0_u8..12, 0_u64..40, 12_u32..20, 1_u64..6), 1..600),
    ) {
        let mut server = Server::new([23, 20]);
        for (what, number, bits, calls) in steps {
            let given = server.given.len();
            match what {
                0..=5 => drop(server.allocate(10 + number, bits)),
                6..=7 if given > 0 => server.free(number as usize % given).unwrap(),
                8 if given > 0 => {
                    let index = number as usize % given;
                    if server.given[index].2 > 12 {
                        let _ = server.divide(index);
                    }
                }
                9 => server.close(10 + number),
                10 => server.refuse(calls, number),
                _ => server.refuse_nothing(),
            }
            server.check();
        }
        server.refuse_nothing();
        close_all(&mut server);
    }
}
