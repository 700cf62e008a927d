//! Tests of untyped memory.

use tench::abi::object::UNTYPED_MAX_BITS;
use tench::memory::Window;
use tench::sys::{
    Cap, CapAddress, CapNode, Endpoint, Error, Frame, Kind, MapFlags, OWN_CSPACE, Placement, Rights, Untyped,
};

use crate::case::{Case, Outcome};
use crate::stage::{EMPTY_INDEX, KERNEL, Stage, identify, is_empty, physical_address, system_call};

pub const CASES: &[Case] = &[
    Case::new("UNT0001", "retype makes every kind in every size", every_kind),
    Case::new("UNT0002", "new objects are zero whatever was there before", zeroed),
    Case::new("UNT0003", "objects at the watermark are aligned and side by side", watermark),
    Case::new("UNT0004", "objects are placed at offsets", offsets),
    Case::new("UNT0005", "memory in use is not given again", overlap),
    Case::new("UNT0006", "an offset has to be a multiple of the size", misaligned),
    Case::new("UNT0007", "nothing is made beyond the end", beyond_the_end),
    Case::new("UNT0008", "a retype makes 1 to 256 objects", counts),
    Case::new("UNT0009", "sizes outside the range are refused", sizes),
    Case::new("UNT0010", "what cannot be made is refused", unmakeable),
    Case::new("UNT0011", "an occupied destination is refused, and nothing is made", occupied),
    Case::new("UNT0012", "destinations must exist", no_such_slot),
    Case::new("UNT0013", "the watermark returns to 0 with the last child", watermark_returns),
    Case::new("UNT0014", "deleting says which memory became free", freed),
    Case::new("UNT0015", "deleting an untyped leaves its children", children_stay),
    Case::new("UNT0016", "revoke deletes children, copies and grandchildren", revoked),
    Case::new("UNT0017", "an untyped is unique: moved, not copied", unique),
    Case::new("UNT0018", "retype fills slots of another CSpace", other_cspace),
    Case::new("UNT0019", "destination CSpaces need a node with WRITE", cspace_errors),
    Case::new("UNT0020", "freed gaps are used again by offset", gaps),
];

/// Makes one object at the watermark of the pool.
pub fn retype(pool: Cap<Untyped>, kind: Kind, size: u64, slot: CapAddress) -> Result<u64, Error> {
    pool.retype_many(kind, size, 1, Placement::Watermark, OWN_CSPACE, slot)
}

fn every_kind(stage: &mut Stage) -> Outcome {
    let sizes = [
        (Kind::Untyped, 4..=20),
        (Kind::CapNode, 1..=12),
        (Kind::Frame, 12..=20),
        (Kind::PageTable, 0..=3),
        (Kind::Thread, 0..=0),
        (Kind::SchedulingContext, 0..=0),
        (Kind::Endpoint, 0..=0),
        (Kind::Reply, 0..=0),
        (Kind::Notification, 0..=0),
    ];
    for (kind, range) in sizes {
        for size in range {
            let slot = stage.make_kind(kind, size)?;
            let found = identify(slot)?;
            equal!((kind, found.kind), (kind, kind));
            equal!((kind, size, Some(found.size_bits)), (kind, size, kind.object_bits(size)));
            equal!((kind, found.badge), (kind, 0));
            check!(found.rights.contains(Rights::READ | Rights::WRITE));
        }
    }
    Ok(())
}

fn zeroed(stage: &mut Stage) -> Outcome {
    let frame = stage.make::<Frame>(16)?;
    let window = Window::new(frame, 16, MapFlags::READ | MapFlags::WRITE)?;
    for offset in (0..window.size()).step_by(8) {
        window.write64(offset, !0);
    }
    drop(window);
    frame.delete()?;
    let again = stage.pool.retype_many(Kind::Frame, 16, 1, Placement::At(0), OWN_CSPACE, frame.address())?;
    equal!(again, 0);
    let window = Window::new(frame, 16, MapFlags::READ)?;
    for offset in (0..window.size()).step_by(8) {
        equal!((offset, window.read64(offset)), (offset, 0));
    }
    Ok(())
}

fn watermark(stage: &mut Stage) -> Outcome {
    let (a, b, c) = (stage.slot(), stage.slots(4), stage.slot());
    equal!(retype(stage.pool, Kind::Endpoint, 0, a)?, 0);
    equal!(stage.pool.query()?.watermark, 32);
    equal!(stage.pool.retype_many(Kind::Frame, 12, 4, Placement::Watermark, OWN_CSPACE, b)?, 4096);
    equal!(stage.pool.query()?.watermark, 5 * 4096);
    let start = physical_address(stage.pool)?;
    for index in 0..4 {
        equal!(physical_address(Cap::<Frame>::new(CapAddress(b.0 + index)))?, start + 4096 * (1 + u64::from(index)));
    }
    equal!(retype(stage.pool, Kind::Frame, 21, c)?, 1 << 21);
    equal!(stage.pool.query()?.watermark, 2 << 21);
    Ok(())
}

fn offsets(stage: &mut Stage) -> Outcome {
    let start = physical_address(stage.pool)?;
    for offset in [5 << 12, 0, 3 << 12, (1 << 23) - 4096, 1 << 20] {
        let to = stage.slot();
        let found = stage.pool.retype_many(Kind::Frame, 12, 1, Placement::At(offset), OWN_CSPACE, to)?;
        equal!(found, offset);
        equal!(physical_address(Cap::<Frame>::new(to))?, start + offset);
    }
    equal!(stage.pool.query()?.watermark, 0);
    Ok(())
}

fn overlap(stage: &mut Stage) -> Outcome {
    let (a, b) = (stage.slot(), stage.slot());
    stage.pool.retype_many(Kind::Frame, 14, 1, Placement::At(4 << 12), OWN_CSPACE, a)?;
    for (kind, size, count, offset) in [
        (Kind::Frame, 14, 1, 4 << 12),
        (Kind::Frame, 12, 1, 5 << 12),
        (Kind::Frame, 12, 1, 7 << 12),
        (Kind::Frame, 12, 2, 3 << 12),
        (Kind::Frame, 15, 1, 0),
        (Kind::Endpoint, 0, 1, (4 << 12) + 64),
        (Kind::Untyped, 23, 1, 0),
    ] {
        refused!(stage.pool.retype_many(kind, size, count, Placement::At(offset), OWN_CSPACE, b), Overlap);
    }
    check!(is_empty(Cap::<Frame>::new(b)));
    stage.pool.retype_many(Kind::Frame, 12, 1, Placement::At(3 << 12), OWN_CSPACE, b)?;
    let c = stage.slot();
    stage.pool.retype_many(Kind::Frame, 12, 1, Placement::At(8 << 12), OWN_CSPACE, c)?;
    // The watermark is still at 0, where an object would overlap those placed by offset.
    let d = stage.slot();
    refused!(retype(stage.pool, Kind::Frame, 15, d), Overlap);
    Ok(())
}

fn misaligned(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    for (kind, size, offset) in [
        (Kind::Frame, 12, 2048),
        (Kind::Frame, 13, 4096),
        (Kind::Endpoint, 0, 16),
        (Kind::Thread, 0, 2048),
        (Kind::Untyped, 4, 8),
        (Kind::CapNode, 8, 8192),
    ] {
        refused!(stage.pool.retype_many(kind, size, 1, Placement::At(offset), OWN_CSPACE, slot), Misaligned);
    }
    Ok(())
}

fn beyond_the_end(stage: &mut Stage) -> Outcome {
    let slot = stage.slots(8);
    let small = stage.make::<Untyped>(13)?;
    refused!(small.retype_many(Kind::Frame, 14, 1, Placement::Watermark, OWN_CSPACE, slot), OutOfMemory);
    refused!(small.retype_many(Kind::Frame, 12, 3, Placement::Watermark, OWN_CSPACE, slot), OutOfMemory);
    refused!(small.retype_many(Kind::Frame, 12, 2, Placement::At(4096), OWN_CSPACE, slot), OutOfMemory);
    refused!(small.retype_many(Kind::Frame, 12, 1, Placement::At(8192), OWN_CSPACE, slot), OutOfMemory);
    refused!(small.retype_many(Kind::Frame, 12, 1, Placement::At(1 << 63), OWN_CSPACE, slot), OutOfMemory);
    refused!(small.retype_many(Kind::Untyped, 47, 256, Placement::At(0), OWN_CSPACE, slot), OutOfMemory);
    small.retype_many(Kind::Frame, 12, 2, Placement::Watermark, OWN_CSPACE, slot)?;
    let more = CapAddress(slot.0 + 2);
    refused!(small.retype_many(Kind::Untyped, 4, 1, Placement::Watermark, OWN_CSPACE, more), OutOfMemory);
    Ok(())
}

fn counts(stage: &mut Stage) -> Outcome {
    let first = stage.slot();
    for count in [0, 257, 1 << 32, u64::MAX] {
        refused!(
            stage.pool.retype_many(Kind::Endpoint, 0, count, Placement::Watermark, OWN_CSPACE, first),
            InvalidArgument
        );
    }
    stage.pool.retype_many(Kind::Endpoint, 0, 256, Placement::Watermark, OWN_CSPACE, first)?;
    for index in 0..256 {
        equal!(identify(CapAddress(first.0 + index))?.kind, Kind::Endpoint);
    }
    equal!(stage.pool.query()?.watermark, 256 * 32);
    equal!(stage.pool.revoke()?, 256);
    Ok(())
}

fn sizes(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    for (kind, size) in [
        (Kind::Untyped, 3),
        (Kind::Untyped, u64::from(UNTYPED_MAX_BITS) + 1),
        (Kind::Untyped, u64::MAX),
        (Kind::Frame, 11),
        (Kind::Frame, 31),
        (Kind::Frame, 12 + (1 << 32)),
        (Kind::CapNode, 0),
        (Kind::CapNode, 17),
        (Kind::PageTable, 4),
        (Kind::PageTable, u64::MAX),
    ] {
        refused!(retype(stage.pool, kind, size, slot), InvalidArgument);
    }
    Ok(())
}

fn unmakeable(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    for kind in [Kind::Null, Kind::Mapping, Kind::Interrupt, Kind::InterruptControl, Kind::Kernel] {
        refused!(retype(stage.pool, kind, 12, slot), InvalidArgument);
    }
    for kind in [14, 255, 256 + 3, 1 << 32 | 3, u64::MAX] {
        let arguments = [u64::from(stage.pool.address().0), kind, 12, 1, u64::MAX, 0, u64::from(slot.0)];
        refused!(system_call(16, &arguments), InvalidArgument);
    }
    Ok(())
}

fn occupied(stage: &mut Stage) -> Outcome {
    let first = stage.slots(4);
    stage.pool.retype_many(Kind::Endpoint, 0, 1, Placement::Watermark, OWN_CSPACE, CapAddress(first.0 + 3))?;
    let before = stage.pool.query()?;
    refused!(stage.pool.retype_many(Kind::Endpoint, 0, 4, Placement::Watermark, OWN_CSPACE, first), SlotOccupied);
    equal!(stage.pool.query()?, before);
    for index in 0..3 {
        equal!(identify(CapAddress(first.0 + index))?.kind, Kind::Null);
    }
    Ok(())
}

fn no_such_slot(stage: &mut Stage) -> Outcome {
    for address in [CapAddress::NULL, CapAddress::new(EMPTY_INDEX, 7), CapAddress::new(64, 0), CapAddress(u32::MAX)] {
        refused!(retype(stage.pool, Kind::Endpoint, 0, address), NoSuchSlot);
    }
    let last = Stage::last_slot();
    refused!(stage.pool.retype_many(Kind::Endpoint, 0, 2, Placement::Watermark, OWN_CSPACE, last), NoSuchSlot);
    equal!(identify(last)?.kind, Kind::Null);
    equal!(stage.pool.query()?.watermark, 0);
    Ok(())
}

fn watermark_returns(stage: &mut Stage) -> Outcome {
    let untyped = stage.make::<Untyped>(16)?;
    let (a, b) = (stage.slot(), stage.slot());
    let (a, b) = (untyped.retype::<Frame>(12, a)?, untyped.retype::<Frame>(12, b)?);
    equal!(untyped.query()?.watermark, 8192);
    a.delete()?;
    equal!(untyped.query()?.watermark, 8192);
    b.delete()?;
    equal!(untyped.query()?.watermark, 0);
    untyped.retype::<Frame>(16, a.address())?;
    Ok(())
}

fn freed(stage: &mut Stage) -> Outcome {
    let start = physical_address(stage.pool)?;
    for (kind, size) in [
        (Kind::Untyped, 20),
        (Kind::CapNode, 8),
        (Kind::Frame, 16),
        (Kind::PageTable, 3),
        (Kind::PageTable, 0),
        (Kind::Thread, 0),
        (Kind::SchedulingContext, 0),
        (Kind::Endpoint, 0),
        (Kind::Reply, 0),
        (Kind::Notification, 0),
    ] {
        let made = stage.make_kind(kind, size)?;
        let deleted = OWN_CSPACE.delete_located_at(KERNEL, made)?;
        let Some(freed) = deleted.freed else { return Err(crate::case::Failure::new("nothing became free")) };
        equal!((kind, freed.address, Some(freed.size_bits)), (kind, start, kind.object_bits(size)));
        equal!(stage.pool.query()?.watermark, 0);
    }
    Ok(())
}

fn children_stay(stage: &mut Stage) -> Outcome {
    let untyped = stage.make::<Untyped>(16)?;
    let slot = stage.slot();
    let frame = untyped.retype::<Frame>(12, slot)?;
    equal!(untyped.delete()?.freed, None);
    equal!(frame.identify()?.kind, Kind::Frame);
    // The pool still regards the memory as in use.
    let other = stage.slot();
    refused!(stage.pool.retype_many(Kind::Frame, 12, 1, Placement::At(0), OWN_CSPACE, other), Overlap);
    check!(frame.delete()?.freed.is_some());
    stage.pool.retype_many(Kind::Frame, 12, 1, Placement::At(0), OWN_CSPACE, other)?;
    Ok(())
}

fn revoked(stage: &mut Stage) -> Outcome {
    let outer = stage.make::<Untyped>(18)?;
    let (a, b, c) = (stage.slot(), stage.slot(), stage.slot());
    let inner = outer.retype::<Untyped>(16, a)?;
    let endpoint = inner.retype::<Endpoint>(0, b)?;
    let frame = outer.retype::<Frame>(12, c)?;
    let copy = stage.copy(endpoint)?;
    let badged = stage.mint(endpoint, Rights::WRITE, 5)?;
    equal!(inner.revoke()?, 3);
    check!(is_empty(endpoint) && is_empty(copy) && is_empty(badged));
    check!(!is_empty(inner) && !is_empty(frame));
    equal!(inner.query()?.watermark, 0);
    inner.retype::<Endpoint>(0, b)?;
    equal!(outer.revoke()?, 3);
    check!(is_empty(inner) && is_empty(endpoint) && is_empty(frame) && !is_empty(outer));
    equal!(outer.revoke()?, 0);
    Ok(())
}

fn unique(stage: &mut Stage) -> Outcome {
    let untyped = stage.make::<Untyped>(16)?;
    let (a, b) = (stage.slot(), stage.slot());
    refused!(untyped.copy_to(a), NotCopyable);
    refused!(untyped.mint_to(a, Rights::all(), 0), NotCopyable);
    let child = untyped.retype::<Endpoint>(0, b)?;
    let moved = untyped.move_to(a)?;
    check!(is_empty(untyped));
    equal!(moved.query()?.watermark, 32);
    equal!(moved.revoke()?, 1);
    check!(is_empty(child));
    Ok(())
}

fn other_cspace(stage: &mut Stage) -> Outcome {
    let (root, node) = (stage.make::<CapNode>(2)?, stage.make::<CapNode>(8)?);
    root.install_node(1, node)?;
    let first = CapAddress::new(1, 10);
    stage.pool.retype_many(Kind::Reply, 0, 5, Placement::Watermark, root, first)?;
    for index in 0..5 {
        equal!(root.identify_at(CapAddress(first.0 + index))?.kind, Kind::Reply);
    }
    refused!(stage.pool.retype_many(Kind::Reply, 0, 1, Placement::Watermark, root, first), SlotOccupied);
    let beyond = CapAddress::new(4, 0);
    refused!(stage.pool.retype_many(Kind::Reply, 0, 1, Placement::Watermark, root, beyond), NoSuchSlot);
    let last = CapAddress::new(1, 255);
    refused!(stage.pool.retype_many(Kind::Reply, 0, 2, Placement::Watermark, root, last), NoSuchSlot);
    Ok(())
}

fn cspace_errors(stage: &mut Stage) -> Outcome {
    let (root, node) = (stage.make::<CapNode>(2)?, stage.make::<CapNode>(8)?);
    root.install_node(0, node)?;
    let (slot, first) = (stage.slot(), CapAddress(1));
    let wrong = Cap::<CapNode>::new(stage.pool.address());
    refused!(stage.pool.retype_many(Kind::Reply, 0, 1, Placement::Watermark, wrong, first), WrongType);
    let nobody = Cap::<CapNode>::new(slot);
    refused!(stage.pool.retype_many(Kind::Reply, 0, 1, Placement::Watermark, nobody, first), InvalidCapability);
    let weak = stage.mint(root, Rights::READ, 0)?;
    refused!(stage.pool.retype_many(Kind::Reply, 0, 1, Placement::Watermark, weak, first), MissingRights);
    Ok(())
}

fn gaps(stage: &mut Stage) -> Outcome {
    let untyped = stage.make::<Untyped>(16)?;
    let first = stage.slots(16);
    untyped.retype_many(Kind::Frame, 12, 16, Placement::Watermark, OWN_CSPACE, first)?;
    let slot = |index: u64| CapAddress(first.0 + index as u32);
    for index in [3, 9, 15] {
        OWN_CSPACE.delete_at(slot(index))?;
        refused!(untyped.retype_many(Kind::Frame, 12, 1, Placement::Watermark, OWN_CSPACE, slot(index)), OutOfMemory);
        untyped.retype_many(Kind::Frame, 12, 1, Placement::At(index << 12), OWN_CSPACE, slot(index))?;
    }
    Ok(())
}
