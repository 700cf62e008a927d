//! The memory server's books: named cases, and random requests against their invariants.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tench_mem::books::{Books, Region};
use tench_mem_client::protocol::{Error, NO_QUOTA};

const MIB: u64 = 1 << 20;

fn books() -> Books {
    let mut books = Books::new(1000);
    books.add(Region { address: 0x4000_0000, size_bits: 20 }).unwrap();
    books.add(Region { address: 0x4010_0000, size_bits: 20 }).unwrap();
    books.check_invariants();
    books
}

#[test]
fn a_block_comes_from_the_lowest_address() {
    let mut books = books();
    assert_eq!(books.allocate(5, 5, 12, 0).unwrap().address, 0x4000_0000);
    assert_eq!(books.allocate(5, 5, 12, 0).unwrap().address, 0x4000_1000);
    assert_eq!(books.allocate(5, 5, 16, 0).unwrap().address, 0x4001_0000);
    assert_eq!(books.allocate(5, 5, 20, 0).unwrap().address, 0x4010_0000);
    assert_eq!(books.allocate(5, 5, 20, 0), Err(Error::OutOfMemory));
    books.check_invariants();
}

#[test]
fn neighbouring_regions_are_never_joined() {
    let mut books = books();
    assert_eq!(books.allocate(5, 5, 21, 0), Err(Error::OutOfMemory));
    let block = books.allocate(5, 5, 20, 0).unwrap();
    books.release(block.address).unwrap();
    assert_eq!(books.totals().largest, MIB);
    books.check_invariants();
}

#[test]
fn small_requests_are_rounded_up() {
    let mut books = books();
    assert_eq!(books.allocate(5, 5, 0, 0).unwrap().size_bits, 12);
    assert_eq!(books.allocate(5, 5, 48, 0), Err(Error::BadSize));
    assert_eq!(books.allocate(5, 5, u64::MAX, 0), Err(Error::BadSize));
}

#[test]
fn only_the_holder_can_free() {
    let mut books = books();
    let block = books.allocate(0, 5, 12, 0).unwrap();
    assert_eq!(books.block(5, block.address), Err(Error::NoSuchBlock));
    assert_eq!(books.block(0, block.address + 1), Err(Error::NoSuchBlock));
    assert_eq!(books.block(0, block.address), Ok(block));
}

#[test]
fn a_quota_is_kept() {
    let mut books = books();
    books.set_quota(5, 8192);
    books.allocate(5, 5, 12, 0).unwrap();
    assert_eq!(books.allocate(5, 5, 13, 0), Err(Error::QuotaExceeded));
    let second = books.allocate(5, 5, 12, 0).unwrap();
    assert_eq!(books.allocate(5, 5, 12, 0), Err(Error::QuotaExceeded));
    books.release(second.address).unwrap();
    books.allocate(5, 5, 12, 0).unwrap();
    books.set_quota(5, NO_QUOTA);
    books.allocate(5, 5, 13, 0).unwrap();
    books.check_invariants();
}

#[test]
fn the_table_of_blocks_can_be_full() {
    let mut books = Books::new(2);
    books.add(Region { address: 0, size_bits: 20 }).unwrap();
    books.allocate(1, 1, 12, 0).unwrap();
    books.allocate(1, 1, 12, 0).unwrap();
    assert_eq!(books.allocate(1, 1, 12, 0), Err(Error::TooManyBlocks));
}

#[test]
fn regions_must_be_aligned_and_apart() {
    let mut books = books();
    for region in [
        Region { address: 0x4000_0000, size_bits: 12 },
        Region { address: 0x4000_0000, size_bits: 24 },
        Region { address: 0x5000_1000, size_bits: 20 },
        Region { address: 0x6000_0000, size_bits: 11 },
    ] {
        assert_eq!(books.add(region), Err(Error::BadSize));
    }
    books.check_invariants();
}

#[test]
fn accounts_are_listed_in_order() {
    let mut books = books();
    books.allocate(9, 9, 12, 0).unwrap();
    books.allocate(0, 3, 13, 0).unwrap();
    assert_eq!(books.next_account(0).unwrap().0, 3);
    assert_eq!(books.next_account(3).unwrap().0, 9);
    assert!(books.next_account(9).is_none() && books.next_account(u64::MAX).is_none());
    let block = books.blocks_of(3)[0];
    books.close(3);
    assert!(books.next_account(0).unwrap().0 == 3, "an account with blocks stays");
    books.release(block.address).unwrap();
    books.close(3);
    assert_eq!(books.next_account(0).unwrap().0, 9);
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { account: u64, size_bits: u64 },
    Free(prop::sample::Index),
    Close(u64),
    Quota(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6u64, 10..19u64).prop_map(|(account, size_bits)| Step::Allocate { account, size_bits }),
        3 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => (0..6u64).prop_map(Step::Close),
        1 => (0..6u64, 0..MIB).prop_map(|(account, quota)| Step::Quota(account, quota)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn bytes_are_conserved_and_blocks_never_overlap(steps in prop::collection::vec(step(), 1..150)) {
        let mut books = Books::new(40);
        let mut total = 0;
        for (address, size_bits) in [(0x4000_0000, 19), (0x4008_0000, 19), (0x4020_0000, 21), (0x8000_3000, 12)] {
            books.add(Region { address, size_bits }).unwrap();
            total += 1u64 << size_bits;
        }
        let mut model: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Allocate { account, size_bits } => match books.allocate(account, account, size_bits, 1) {
                    Ok(block) => {
                        let size = block.size();
                        prop_assert!(size >= 1 << size_bits);
                        let before = model.range(..block.address + size).next_back();
                        prop_assert!(before.is_none_or(|(&start, &(other, _))| start + other <= block.address));
                        model.insert(block.address, (size, account));
                    }
                    Err(Error::OutOfMemory) => prop_assert!(books.totals().largest < 1 << size_bits.max(12)),
                    Err(error) => prop_assert!(matches!(error, Error::QuotaExceeded | Error::TooManyBlocks)),
                },
                Step::Free(index) if !model.is_empty() => {
                    let address = *model.keys().nth(index.index(model.len())).unwrap();
                    let (size, account) = model.remove(&address).unwrap();
                    prop_assert_eq!(books.block(account, address).unwrap().size(), size);
                    prop_assert_eq!(books.release(address).unwrap().size(), size);
                    prop_assert_eq!(books.release(address), Err(Error::NoSuchBlock));
                }
                Step::Free(_) => {}
                Step::Close(account) => {
                    for block in books.blocks_of(account) {
                        books.release(block.address).unwrap();
                    }
                    books.close(account);
                    model.retain(|_, &mut (_, owner)| owner != account);
                }
                Step::Quota(account, quota) => books.set_quota(account, quota),
            }
            books.check_invariants();
            let used: u64 = model.values().map(|&(size, _)| size).sum();
            let totals = books.totals();
            prop_assert_eq!(totals.total, total);
            prop_assert_eq!(totals.free, total - used);
            prop_assert_eq!(totals.blocks, model.len() as u64);
        }
    }
}
