//! Tests of untyped memory that is split while in use, and of the kernel's count of the objects made of it.

use tench::sys::{
    Cap, CapAddress, CapNode, Children, Endpoint, Frame, Kind, MapFlags, OWN_CSPACE, PageTable, Placement, Rights,
    Untyped,
};
use tench_random::Random;

use crate::case::{Case, Outcome};
use crate::stage::{EMPTY_INDEX, KERNEL, Stage, identify, is_empty, physical_address};
use crate::untyped::retype;

pub const CASES: &[Case] = &[
    Case::new("UNT0021", "an untyped is split in two, and each half is used by itself", halves),
    Case::new("UNT0022", "what lies in an untyped that is split stays, and belongs to its half", split_in_use),
    Case::new("UNT0023", "a split through an object is refused", split_across),
    Case::new("UNT0024", "the smallest untyped is not split", split_smallest),
    Case::new("UNT0025", "a split needs an empty slot that exists, and fills slots of another CSpace", split_slots),
    Case::new("UNT0026", "a lender takes half of a block back while the other is in use", half_back),
    Case::new("UNT0027", "children are counted once, whatever is copied, mapped or made of them", counted),
    Case::new("UNT0028", "the count follows a random sequence of retypes, splits and deletions", counted_randomly),
];

fn halves(stage: &mut Stage) -> Outcome {
    let lower = stage.make::<Untyped>(16)?;
    let (start, to) = (physical_address(lower)?, stage.slot());
    let upper = lower.split(to)?;
    for (half, address) in [(lower, start), (upper, start + (1 << 15))] {
        let found = half.query()?;
        equal!((found.size_bits, physical_address(half)?, found.watermark, found.device), (15, address, 0, false));
        let (a, b) = (stage.slot(), stage.slot());
        let frame = half.retype::<Frame>(15, a)?;
        equal!(physical_address(frame)?, address);
        refused!(retype(half, Kind::Frame, 12, b), OutOfMemory);
        check!(frame.delete()?.freed.is_some());
    }
    Ok(())
}

fn split_in_use(stage: &mut Stage) -> Outcome {
    let lower = stage.make::<Untyped>(16)?;
    let first = stage.slots(6);
    let slot = |index: u32| CapAddress(first.0 + index);
    lower.retype_many(Kind::Frame, 12, 2, Placement::Watermark, OWN_CSPACE, slot(0))?;
    lower.retype_many(Kind::Frame, 12, 3, Placement::At(9 << 12), OWN_CSPACE, slot(2))?;
    let destination = stage.slot();
    let upper = lower.split(destination)?;
    equal!((lower.query()?.watermark, upper.query()?.watermark), (2 << 12, 0));
    equal!((lower.children()?.objects, upper.children()?.objects), (2, 3));
    // Memory above both watermarks is free, below them it is not.
    refused!(retype(upper, Kind::Frame, 13, slot(5)), Overlap);
    upper.retype_many(Kind::Frame, 12, 1, Placement::At(4 << 12), OWN_CSPACE, slot(5))?;
    equal!(upper.revoke()?, 4);
    check!(is_empty(Cap::<Frame>::new(slot(2))) && !is_empty(Cap::<Frame>::new(slot(1))));
    equal!((lower.query()?.watermark, upper.children()?.objects), (2 << 12, 0));
    equal!(lower.revoke()?, 2);
    Ok(())
}

fn split_across(stage: &mut Stage) -> Outcome {
    let untyped = stage.make::<Untyped>(16)?;
    let (a, b) = (stage.slot(), stage.slot());
    for kind in [Kind::Frame, Kind::Untyped] {
        retype(untyped, kind, 16, a)?;
        refused!(untyped.split(b), Overlap);
        equal!(untyped.query()?.size_bits, 16);
        equal!(untyped.revoke()?, 1);
    }
    // An object as large as a half is no obstacle.
    let above = stage.slot();
    untyped.retype_many(Kind::Untyped, 15, 1, Placement::At(1 << 15), OWN_CSPACE, a)?;
    untyped.retype_many(Kind::Frame, 15, 1, Placement::At(0), OWN_CSPACE, above)?;
    let upper = untyped.split(b)?;
    equal!((untyped.children()?.bytes, upper.children()?.bytes), (1 << 15, 1 << 15));
    Ok(())
}

fn split_smallest(stage: &mut Stage) -> Outcome {
    let untyped = stage.make::<Untyped>(5)?;
    let (a, b) = (stage.slot(), stage.slot());
    let upper = untyped.split(a)?;
    refused!(untyped.split(b), InvalidArgument);
    refused!(upper.split(b), InvalidArgument);
    check!(is_empty(Cap::<Untyped>::new(b)));
    Ok(())
}

fn split_slots(stage: &mut Stage) -> Outcome {
    let untyped = stage.make::<Untyped>(16)?;
    refused!(untyped.split(untyped.address()), SlotOccupied);
    for address in [CapAddress::NULL, CapAddress::new(EMPTY_INDEX, 7), CapAddress(u32::MAX)] {
        refused!(untyped.split(address), NoSuchSlot);
    }
    equal!(untyped.query()?.size_bits, 16);
    let (root, node) = (stage.make::<CapNode>(2)?, stage.make::<CapNode>(8)?);
    root.install_node(1, node)?;
    let address = CapAddress::new(1, 10);
    untyped.split_to(root, address)?;
    equal!(root.identify_at(address)?.size_bits, 15);
    let weak = stage.mint(root, Rights::READ, 0)?;
    refused!(untyped.split_to(weak, CapAddress::new(1, 11)), MissingRights);
    Ok(())
}

fn half_back(stage: &mut Stage) -> Outcome {
    // The lender's untyped, and the client's, made of it, with an endpoint in its upper half.
    let lender = stage.make::<Untyped>(16)?;
    let (a, b, c, d) = (stage.slot(), stage.slot(), stage.slot(), stage.slot());
    let client = lender.retype::<Untyped>(16, a)?;
    client.retype_many(Kind::Endpoint, 0, 1, Placement::At(3 << 14), OWN_CSPACE, b)?;
    refused!(lender.split(c), Overlap);
    let rest = client.split(c)?;
    // The client's halves are as large as the lender's will be.
    let upper = lender.split(d)?;
    equal!(lender.revoke()?, 1);
    check!(is_empty(client) && !is_empty(rest));
    equal!((lender.children()?.objects, upper.children()?.bytes), (0, 1 << 15));
    retype(lender, Kind::Frame, 15, a)?;
    equal!(Cap::<Endpoint>::new(b).identify()?.kind, Kind::Endpoint);
    Ok(())
}

fn counted(stage: &mut Stage) -> Outcome {
    equal!(stage.pool.children()?, Children { objects: 0, bytes: 0 });
    let untyped = stage.make::<Untyped>(16)?;
    let first = stage.slots(20);
    untyped.retype_many(Kind::Endpoint, 0, 20, Placement::Watermark, OWN_CSPACE, first)?;
    let endpoint = stage.endpoint()?;
    stage.copy(endpoint)?;
    stage.mint(endpoint, Rights::WRITE, 7)?;
    let (table, frame, slot) = (stage.make::<PageTable>(3)?, stage.make::<Frame>(12)?, stage.slot());
    frame.map(table, 0, 1, 0, MapFlags::READ, slot)?;
    equal!(stage.pool.children()?, Children { objects: 4, bytes: (1 << 16) + 32 + 8192 + 4096 });
    equal!(untyped.children()?, Children { objects: 20, bytes: 20 * 32 });
    // Objects left behind by a deleted untyped belong to its parent.
    untyped.delete()?;
    equal!(stage.pool.children()?, Children { objects: 23, bytes: 21 * 32 + 8192 + 4096 });
    Ok(())
}

/// Bytes that the random case divides.
const CHUNK_BITS: u32 = 16;

fn counted_randomly(stage: &mut Stage) -> Outcome {
    // Untypeds and objects made of them: the slot's number gives the object's slot.
    let first = stage.slots(64);
    let slot = |index: u64| CapAddress(first.0 + index as u32);
    stage.pool.retype_many(Kind::Untyped, u64::from(CHUNK_BITS), 1, Placement::At(0), OWN_CSPACE, slot(0))?;
    let start = physical_address(stage.pool)?;
    let mut random = Random::new(42);
    let mut draw = |bound| random.below(bound);
    let (mut splits, mut made) = (0, 0);
    for _ in 0..2000 {
        let (at, to) = (slot(draw(8)), slot(draw(8)));
        let object = slot(8 + draw(56));
        let untyped = Cap::<Untyped>::new(at);
        let size = 1u64 << identify(at)?.size_bits;
        match draw(10) {
            0..3 => splits += u64::from(untyped.split(to).is_ok()),
            3 if at != slot(0) => drop(OWN_CSPACE.delete_at(at)),
            4..7 => drop(OWN_CSPACE.delete_at(object)),
            _ if size >= 32 => {
                let placement = Placement::At(draw(size / 32) * 32);
                made += u64::from(untyped.retype_many(Kind::Endpoint, 0, 1, placement, OWN_CSPACE, object).is_ok());
            }
            _ => {}
        }
        // The parent of an object is the smallest remaining untyped around it.
        let endpoints = (8..64).filter(|index| identify(slot(*index)).is_ok_and(|found| found.kind != Kind::Null));
        let total = endpoints.count() as u64;
        let mut counted = stage.pool.children()?.objects;
        for index in 0..8 {
            let found = OWN_CSPACE.locate_at(KERNEL, slot(index))?;
            if found.kind == Kind::Untyped {
                check!(found.address >= start && found.address < start + (1 << CHUNK_BITS));
                counted += Cap::<Untyped>::new(slot(index)).children()?.objects;
                counted -= 1;
            }
        }
        equal!(counted, total);
    }
    check!(splits > 20 && made > 50);
    Ok(())
}
