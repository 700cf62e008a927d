//! Tests of the memory server's ledger: named cases, and random requests against its invariants.

mod random;

use std::collections::BTreeMap;

use proptest::prelude::*;
use tench_abi::CapAddress;
use tench_abi::power::{Client, family_of};
use tench_extents::Node;
use tench_mem::accounts::{Account, MAX_DEPTH};
use tench_mem::blocks::{Block, Entry};
use tench_mem::ledger::{Ledger, Need, Region, Request, Totals};
use tench_mem::view;
use tench_mem_interface::protocol::{Error, NO_QUOTA, Within};
use tench_protocol::{Caller, Powers};

const MIB: u64 = 1 << 20;

type Plain = Ledger<Vec<Node>, Vec<Entry>, Vec<Account>>;

/// A ledger, and the slots for blocks.
struct Server {
    ledger: Plain,
    slots: Vec<u32>,
}

impl Server {
    fn new(regions: &[(u64, u32)]) -> Server {
        let storage = (vec![Node::EMPTY; 64], vec![Entry::EMPTY; 2000], vec![Account::EMPTY; 4]);
        let mut server =
            Server { ledger: Ledger::new(storage.0, storage.1, storage.2), slots: (1..2000).rev().collect() };
        for (number, &(address, size_bits)) in regions.iter().enumerate() {
            server.ledger.add(Region { address, size_bits, slot: CapAddress(number as u32) }).unwrap();
        }
        server
    }

    /// Lets arrays grow, as the server does between requests.
    fn refill(&mut self) {
        while let Some(need) = self.ledger.need() {
            match need {
                Need::Extents => {
                    let nodes = self.ledger.extents_storage();
                    nodes.resize(nodes.len() + 32, Node::EMPTY);
                }
                Need::Blocks => unreachable!("slots bring their entries along"),
                Need::Accounts => {
                    let accounts = self.ledger.accounts_storage();
                    accounts.resize(accounts.len() + 4, Account::EMPTY);
                }
            }
        }
    }

    fn ask(&mut self, request: Request) -> Result<Block, Error> {
        self.refill();
        let slot = self.slots.pop().unwrap();
        let block = self.ledger.allocate(&request, CapAddress(slot));
        if block.is_err() {
            self.slots.push(slot);
        }
        self.ledger.check_invariants();
        block
    }

    fn allocate(&mut self, account: u64, size_bits: u64) -> Result<Block, Error> {
        self.ask(Request::anywhere(account, account, size_bits))
    }

    fn block(&self, holder: u64, address: u64) -> Result<(CapAddress, Block), Error> {
        self.ledger.block(holder, self.ledger.number_at(address).ok_or(Error::NoSuchBlock)?)
    }

    fn free(&mut self, holder: u64, address: u64) -> Result<(), Error> {
        let (slot, _) = self.block(holder, address)?;
        self.ledger.release(slot)?;
        self.slots.push(slot.0);
        self.ledger.check_invariants();
        Ok(())
    }

    fn divide(&mut self, holder: u64, address: u64) -> Result<Block, Error> {
        self.refill();
        let (slot, _) = self.block(holder, address)?;
        let upper = self.slots.pop().unwrap();
        let lower = self.ledger.divide(slot, CapAddress(upper)).inspect_err(|_| self.slots.push(upper))?;
        self.ledger.check_invariants();
        Ok(lower)
    }
}

fn server() -> Server {
    Server::new(&[(0x4000_0000, 20), (0x4010_0000, 20)])
}

#[test]
fn a_block_comes_from_the_lowest_address() {
    let mut server = server();
    for (size_bits, address) in
        [(12, 0x4000_0000), (12, 0x4000_1000), (16, 0x4001_0000), (20, 0x4010_0000), (13, 0x4000_2000)]
    {
        assert_eq!(server.allocate(5, size_bits).map(|block| block.address), Ok(address));
    }
    assert_eq!(server.allocate(5, 20), Err(Error::OutOfMemory));
}

/// Children once had quotas of their own, and fourteen of them took all slots for blocks.
#[test]
fn blocks_count_for_the_family() {
    let mut server = server();
    let (ours, theirs) = (family_of(0, 9), family_of(0, 10));
    let ask = |server: &mut Server, account, family| {
        server.ask(Request { family, ..Request::anywhere(account, account, 12) })
    };
    // What was taken before its family was known counts for the process alone, until it is known.
    let first = ask(&mut server, 5, 0).unwrap();
    assert_eq!([server.ledger.share(5, 0), server.ledger.share(5, ours), server.ledger.share(6, ours)], [1, 1, 0]);
    ask(&mut server, 5, ours).unwrap();
    ask(&mut server, 6, ours).unwrap();
    assert_eq!([server.ledger.share(5, 0), server.ledger.share(6, ours), server.ledger.share(7, ours)], [3, 3, 3]);
    assert_eq!([server.ledger.share(7, theirs), server.ledger.share(7, 7), server.ledger.share(7, 0)], [0, 0, 0]);
    // It stays in its family, whatever later requests say.
    ask(&mut server, 5, theirs).unwrap();
    assert_eq!([server.ledger.share(5, theirs), server.ledger.share(7, theirs)], [4, 0]);
    // What is moved, divided or freed counts for the account where it is.
    let (slot, _) = server.block(5, first.address).unwrap();
    server.ledger.pass(slot, 7).unwrap();
    server.ledger.check_invariants();
    assert_eq!([server.ledger.share(6, ours), server.ledger.share(7, theirs)], [3, 1]);
    server.free(7, first.address).unwrap();
    let large = server.ask(Request { family: ours, ..Request::anywhere(6, 6, 14) }).unwrap();
    server.divide(6, large.address).unwrap();
    assert_eq!(server.ledger.share(5, ours), 5);
}

/// A family's blocks once did not count against its objects in slabs, and vice versa.
#[test]
fn objects_in_slabs_count_with_the_blocks() {
    let mut server = server();
    let ours = family_of(0, 9);
    server.ask(Request { family: ours, ..Request::anywhere(5, 5, 12) }).unwrap();
    // A process with nothing but objects belongs to its family, too.
    server.ledger.charge(Client { process: 6, family: ours }, 1 << 12, 200).unwrap();
    server.ledger.charge(Client { process: 5, family: ours }, 1 << 12, 30).unwrap();
    server.ledger.check_invariants();
    assert_eq!([server.ledger.share(5, ours), server.ledger.share(6, 0), server.ledger.share(7, ours)], [231; 3]);
    // While a process's family is unknown, both count for the process; once it is known, both count for the family.
    server.allocate(7, 12).unwrap();
    server.ledger.charge(Client::alone(7), 1 << 12, 10).unwrap();
    assert_eq!([server.ledger.share(7, 7), server.ledger.share(6, ours)], [11, 231]);
    server.ledger.charge(Client { process: 7, family: ours }, 1 << 12, 1).unwrap();
    assert_eq!([server.ledger.share(7, 7), server.ledger.share(6, ours)], [243; 2]);
    for (process, objects) in [(5, 30), (6, 200), (7, 11)] {
        server.ledger.credit(process, 1 << 13, objects);
        server.ledger.check_invariants();
    }
    assert_eq!(server.ledger.share(8, ours), 2);
}

#[test]
fn neighbouring_regions_are_never_joined() {
    let mut server = server();
    assert_eq!(server.allocate(5, 21), Err(Error::OutOfMemory));
    let block = server.allocate(5, 20).unwrap();
    server.free(5, block.address).unwrap();
    assert_eq!(server.ledger.totals().largest, MIB);
    assert_eq!(server.ledger.region_of(0x4010_0000).map(|region| region.slot.0), Some(1));
    assert_eq!(server.ledger.region_of(0x400f_ffff).map(|region| region.slot.0), Some(0));
    assert_eq!((server.ledger.region_of(0x4020_0000), server.ledger.region_of(0x3fff_ffff)), (None, None));
}

#[test]
fn small_requests_are_rounded_up_and_impossible_ones_refused() {
    let mut server = server();
    assert_eq!(server.allocate(5, 0).unwrap().size_bits, 12);
    assert_eq!(server.allocate(5, 48), Err(Error::BadSize));
    assert_eq!(server.allocate(5, u64::MAX), Err(Error::BadSize));
    let anywhere = Request::anywhere(5, 5, 12);
    assert_eq!(server.ask(Request { align_bits: 64, ..anywhere }), Err(Error::BadSize));
    assert_eq!(server.ask(Request { base: 8192, limit: 4096, ..anywhere }), Err(Error::BadRange));
    assert_eq!(server.ask(Request { base: 0, limit: 4096, ..anywhere }), Err(Error::OutOfMemory));
}

#[test]
fn a_block_lies_where_it_is_wanted() {
    let mut server = server();
    let high = Request { base: 0x4018_0000, ..Request::anywhere(5, 5, 12) };
    assert_eq!(server.ask(high).unwrap().address, 0x4018_0000);
    let aligned = Request { align_bits: 18, base: 0x4000_0001, ..Request::anywhere(5, 5, 12) };
    // Above the first block is the smallest extent.
    assert_eq!(server.ask(aligned).unwrap().address, 0x401c_0000);
    let low = Request { limit: 0x4000_1000, ..Request::anywhere(5, 5, 12) };
    assert_eq!(server.ask(low).unwrap().address, 0x4000_0000);
    assert_eq!(server.ask(low), Err(Error::OutOfMemory));
}

#[test]
fn only_the_holder_can_free() {
    let mut server = server();
    let block = server.ask(Request::anywhere(0, 5, 12)).unwrap();
    assert_eq!(server.block(5, block.address), Err(Error::NoSuchBlock));
    assert_eq!(server.block(0, block.address + 1), Err(Error::NoSuchBlock));
    assert_eq!(server.block(0, block.address).map(|(_, block)| block), Ok(block));
}

#[test]
fn a_quota_is_kept() {
    let mut server = server();
    server.ledger.set_quota(5, 8192).unwrap();
    server.allocate(5, 12).unwrap();
    assert_eq!(server.allocate(5, 13), Err(Error::QuotaExceeded));
    let second = server.allocate(5, 12).unwrap();
    assert_eq!(server.allocate(5, 12), Err(Error::QuotaExceeded));
    server.free(5, second.address).unwrap();
    server.allocate(5, 12).unwrap();
    server.ledger.set_quota(5, NO_QUOTA).unwrap();
    server.allocate(5, 13).unwrap();
}

#[test]
fn a_limit_counts_for_all_below_it() {
    let mut server = server();
    let open = |server: &mut Server, account, parent, quota| {
        server.refill();
        server.ledger.open_below(account, parent, quota)
    };
    let limit = |server: &Server, account| server.ledger.limit(server.ledger.account(account).unwrap());
    open(&mut server, 5, 4, 16 << 10).unwrap();
    // A limit as high as the parent's is none of its own; a lower one is.
    open(&mut server, 6, 5, 16 << 10).unwrap();
    open(&mut server, 7, 5, 8 << 10).unwrap();
    open(&mut server, 8, 6, NO_QUOTA).unwrap();
    assert_eq!([5, 6, 7, 8].map(|account| limit(&server, account)), [16 << 10, 16 << 10, 8 << 10, 16 << 10]);
    assert_eq!(server.allocate(7, 14), Err(Error::QuotaExceeded));
    server.allocate(7, 13).unwrap();
    let block = server.allocate(8, 12).unwrap();
    server.ledger.charge(Client::alone(6), 1 << 12, 1).unwrap();
    assert_eq!([5, 6, 7, 8].map(|account| limit(&server, account)), [0, 4 << 10, 8 << 10, 4 << 10]);
    for account in 5..9 {
        assert_eq!(server.allocate(account, 12), Err(Error::QuotaExceeded));
        assert_eq!(server.ledger.charge(Client::alone(account), 1, 1), Err(Error::QuotaExceeded));
    }
    server.allocate(4, 16).unwrap();
    // An account whose limit is lifted still knows which are below it, even if a request fails.
    server.ledger.set_quota(5, NO_QUOTA).unwrap();
    assert_eq!(server.allocate(5, 30), Err(Error::OutOfMemory));
    server.ledger.check_invariants();
    server.ledger.set_quota(5, 16 << 10).unwrap();
    server.ledger.credit(6, 1 << 12, 1);
    server.free(8, block.address).unwrap();
    assert_eq!(limit(&server, 5), 8 << 10);
    assert_eq!(server.allocate(5, 13).map(drop), Ok(()));
    assert_eq!(server.allocate(6, 12), Err(Error::QuotaExceeded));
}

#[test]
fn no_process_gains_memory_by_ending() {
    let mut server = server();
    server.refill();
    for (account, parent) in [(5, 0), (6, 5), (7, 6), (8, 7)] {
        server.refill();
        server.ledger.open_below(account, parent, 8192).unwrap();
    }
    let block = server.allocate(8, 12).unwrap();
    for ended in [5, 6, 7] {
        server.ledger.close(ended);
        server.ledger.check_invariants();
    }
    assert_eq!(server.ledger.totals().accounts, 2, "that with the limit stays");
    server.allocate(8, 12).unwrap();
    assert_eq!(server.allocate(8, 12), Err(Error::QuotaExceeded));
    server.ledger.open_below(9, 8, NO_QUOTA).unwrap();
    assert_eq!(server.allocate(9, 12), Err(Error::QuotaExceeded));
    server.free(8, block.address).unwrap();
    let (slot, _) = server.ledger.first_of(8).unwrap();
    server.ledger.release(slot).unwrap();
    server.ledger.close(8);
    server.ledger.close(9);
    server.ledger.check_invariants();
    assert_eq!(server.ledger.totals().accounts, 0);
}

#[test]
fn limits_within_each_other_are_not_too_many() {
    let mut server = server();
    for account in 1..40 {
        server.refill();
        let opened = server.ledger.open_below(account, account - 1, (100 - account) << 12);
        server.ledger.check_invariants();
        assert_eq!(opened, if account <= u64::from(MAX_DEPTH) { Ok(()) } else { Err(Error::TooDeep) });
        if opened.is_err() {
            break;
        }
    }
    assert_eq!(server.ledger.totals().accounts, 32);
    // The same limit again is none.
    server.ledger.open_below(99, 32, (100 - 32) << 12).unwrap();
    server.refill();
    server.ledger.open_below(100, 99, NO_QUOTA).unwrap();
}

#[test]
fn a_quota_outlives_a_refusal() {
    let mut server = server();
    server.ledger.set_quota(5, 4096).unwrap();
    assert_eq!(server.allocate(5, 13), Err(Error::QuotaExceeded));
    assert_eq!(server.ledger.next_account(0).map(|account| account.quota), Some(4096));
    // An account that was opened for a failed request is not left behind.
    assert_eq!(server.allocate(6, 30), Err(Error::OutOfMemory));
    assert_eq!(server.ledger.totals().accounts, 1);
}

#[test]
fn a_divided_block_is_freed_in_parts() {
    let mut server = server();
    let block = server.allocate(5, 14).unwrap();
    assert_eq!(server.divide(6, block.address), Err(Error::NoSuchBlock));
    assert_eq!(server.divide(5, block.address).map(|half| half.size()), Ok(8192));
    assert_eq!(server.divide(5, block.address + 8192).map(|half| half.size()), Ok(4096));
    assert_eq!(server.divide(5, block.address + 8192), Err(Error::BadSize));
    assert_eq!(server.ledger.next_account(0).map(|account| (account.used, account.blocks)), Some((1 << 14, 3)));
    server.free(5, block.address + 8192).unwrap();
    assert_eq!(server.free(5, block.address + 8192), Err(Error::NoSuchBlock));
    server.free(5, block.address).unwrap();
    server.free(5, block.address + 12288).unwrap();
    assert_eq!(server.ledger.totals().free, 2 * MIB);
}

#[test]
fn storage_that_is_used_up_is_an_error_and_nothing_changes() {
    let storage = (vec![Node::EMPTY; 3], vec![Entry::EMPTY; 4], vec![Account::EMPTY; 2]);
    let mut ledger = Ledger::new(storage.0, storage.1, storage.2);
    ledger.add(Region { address: 0, size_bits: 20, slot: CapAddress(1) }).unwrap();
    let mut ask = |account: u64, slot: u32| {
        let before = (ledger.totals(), ledger.extents(0).collect::<Vec<_>>());
        let result = ledger.allocate(&Request::anywhere(account, account, 12), CapAddress(slot));
        ledger.check_invariants();
        assert!(result.is_ok() || before == (ledger.totals(), ledger.extents(0).collect()));
        result.map(drop)
    };
    assert_eq!(ask(1, 4), Err(Error::TooManyBlocks), "there is no entry for the slot");
    assert_eq!(ask(1, 3), Ok(()));
    assert_eq!(ask(1, 3), Err(Error::TooManyBlocks), "the slot holds a block");
    assert_eq!(ask(2, 2), Err(Error::TooManyBlocks), "there are no nodes");
    ledger.extents_storage().resize(64, Node::EMPTY);
    let mut ask = |account: u64, slot: u32| ledger.allocate(&Request::anywhere(account, account, 12), CapAddress(slot));
    assert!(ask(2, 2).is_ok());
    assert_eq!(ask(3, 1), Err(Error::TooManyBlocks), "there is no room for an account");
}

#[test]
fn regions_must_be_aligned_and_apart() {
    let mut server = server();
    for (address, size_bits) in [(0x4000_0000, 12), (0x4000_0000, 24), (0x5000_1000, 20), (0x6000_0000, 11)] {
        assert_eq!(server.ledger.add(Region { address, size_bits, slot: CapAddress(9) }), Err(Error::BadSize));
    }
    server.ledger.check_invariants();
}

#[test]
fn accounts_are_listed_in_order() {
    let mut server = server();
    server.allocate(9, 12).unwrap();
    let block = server.ask(Request::anywhere(0, 3, 13)).unwrap();
    let next = |server: &Server, after| server.ledger.next_account(after).map(|account| account.number);
    assert_eq!([0, 3, 9, u64::MAX].map(|after| next(&server, after)), [Some(3), Some(9), None, None]);
    assert_eq!(server.ledger.first_of(3).map(|(_, block)| block), Some(block));
    server.ledger.close(3);
    assert_eq!(next(&server, 0), Some(3), "an account with blocks stays");
    server.free(0, block.address).unwrap();
    server.ledger.close(3);
    assert_eq!(next(&server, 0), Some(9));
}

#[test]
fn accounts_of_others_are_for_those_with_the_power() {
    let mut server = server();
    for account in [3, 5, 9] {
        server.allocate(account, 12).unwrap();
    }
    let seen = |caller, powers, after| {
        view::next_account(&server.ledger, Caller::alone(caller), powers, after).map(|account| account.number)
    };
    let without = Powers::all().difference(Powers::MEMORY);
    assert_eq!([0, 4, 5, 8].map(|after| seen(5, without, after).ok()), [Some(5), Some(5), None, None]);
    assert_eq!(seen(4, without, 0), Err(Error::NoSuchAccount), "it has none of its own");
    assert_eq!([0, 3, 5, 9].map(|after| seen(5, Powers::MEMORY, after).ok()), [Some(3), Some(5), Some(9), None]);
}

#[test]
fn the_view_of_all_memory_depends_on_the_power() {
    let mut server = server();
    server.allocate(5, 12).unwrap();
    let all = server.ledger.totals();
    assert_eq!(view::totals(Powers::MEMORY, all), all);
    let expected = Totals { total: 2 * MIB, free: 2 * MIB - 4096, ..Totals::default() };
    assert_eq!(view::totals(Powers::all().difference(Powers::MEMORY), all), expected);
}

#[test]
fn addresses_are_chosen_by_those_with_the_power() {
    let ordinary = Within { align_bits: 14, base: 0, limit: 0 };
    let special =
        [Within { align_bits: 15, ..ordinary }, Within { base: 1, ..ordinary }, Within { limit: 1 << 40, ..ordinary }];
    let without = Powers::all().difference(Powers::MEMORY);
    assert_eq!(view::check_choice(without, 14, &ordinary), Ok(()));
    // The smallest block is aligned to its size in any case.
    assert_eq!(view::check_choice(without, 0, &Within { align_bits: 12, ..ordinary }), Ok(()));
    for within in special {
        assert_eq!(view::check_choice(without, 14, &within), Err(Error::NotAllowed));
        assert_eq!(view::check_choice(Powers::MEMORY, 14, &within), Ok(()));
    }
}
