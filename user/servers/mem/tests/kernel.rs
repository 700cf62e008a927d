//! Tests of what the server relies on in the kernel: revoking a block frees that block and nothing else.

use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;

/// Makes an untyped of `bits` at an offset of another one.
fn untyped(m: &mut Machine, from: u64, bits: u64, offset: u64) -> u64 {
    let slot = m.take_free();
    m.call(Operation::UntypedRetype, &[from, Kind::Untyped as u64, bits, 1, offset, 0, slot]).ok();
    m.check();
    slot
}

fn kind(m: &mut Machine, slot: u64) -> Kind {
    Kind::from_code(m.call(Operation::Identify, &[0, slot]).ok()[1]).unwrap()
}

#[test]
fn revoking_a_block_takes_back_that_block_alone() {
    let mut m = Machine::new();
    let region = m.make(Kind::Untyped, 16);
    let first = untyped(&mut m, region, 13, 0);
    let second = untyped(&mut m, region, 13, 0x2000);
    let lent_first = untyped(&mut m, first, 13, 0);
    let lent_second = untyped(&mut m, second, 13, 0);

    // The client moves its untyped about, and makes objects of it.
    let moved = m.take_free();
    m.call(Operation::Move, &[0, lent_first, 0, moved]).ok();
    let [frame, endpoint, copy] = [m.take_free(), m.take_free(), m.take_free()];
    m.retype(moved, Kind::Frame, 12, 1, frame).ok();
    m.retype(moved, Kind::Endpoint, 0, 1, endpoint).ok();
    m.call(Operation::Copy, &[0, endpoint, 0, copy]).ok();

    m.call(Operation::Revoke, &[0, first]).ok();
    m.check();
    for gone in [moved, frame, endpoint, copy, lent_first] {
        assert_eq!(kind(&mut m, gone), Kind::Null);
    }
    for stays in [region, first, second, lent_second] {
        assert_eq!(kind(&mut m, stays), Kind::Untyped);
    }
    m.call(Operation::Delete, &[0, first]).ok();
    m.check();
    // The memory can be reused, also in one piece with its neighbour once that is free, too.
    let refused = m.take_free();
    let join = [region, Kind::Untyped as u64, 14, 1, 0, 0, refused];
    assert_eq!(m.call(Operation::UntypedRetype, &join).err(), Error::Overlap);
    m.call(Operation::Revoke, &[0, second]).ok();
    m.call(Operation::Delete, &[0, second]).ok();
    m.call(Operation::UntypedRetype, &join).ok();
    m.check();
}

#[test]
fn a_block_can_be_all_of_its_region() {
    let mut m = Machine::new();
    let region = m.make(Kind::Untyped, 14);
    let block = untyped(&mut m, region, 14, 0);
    let lent = untyped(&mut m, block, 14, 0);
    let node = m.take_free();
    m.retype(lent, Kind::CapNode, 4, 1, node).ok();
    m.call(Operation::Revoke, &[0, block]).ok();
    m.check();
    assert_eq!(
        [region, block, lent, node].map(|slot| kind(&mut m, slot)),
        [Kind::Untyped, Kind::Untyped, Kind::Null, Kind::Null]
    );
    // A client that deletes its capability takes nothing from the server.
    let lent = untyped(&mut m, block, 14, 0);
    m.call(Operation::Delete, &[0, lent]).ok();
    m.check();
    assert_eq!(kind(&mut m, block), Kind::Untyped);
}
