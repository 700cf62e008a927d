//! Tests of capabilities exported to other cores, as far as one kernel shows it: the case plays the monitors of both
//! cores.

use tench::memory::Window;
use tench::sys::{Cap, CapAddress, CapNode, Endpoint, Frame, Kind, MapFlags, OWN_CSPACE, Placement, Rights, Untyped};

use crate::case::{Case, Outcome};
use crate::space::RW;
use crate::stage::{KERNEL, NODE_INDEX, Stage, identify, is_empty, system_call};
use crate::untyped::retype;

pub const CASES: &[Case] = &[
    Case::new("REM0001", "an exported capability is not deleted until its mark is taken away", stays),
    Case::new("REM0002", "revoking memory deletes all but exported capabilities, and says so", revoke_memory),
    Case::new("REM0003", "revoking an original deletes all copies but the exported capability", revoke_copies),
    Case::new("REM0005", "lent memory is not retyped, split or lent again", lent),
    Case::new("REM0006", "only memory is exported", kinds),
    Case::new("REM0007", "memory that somebody has here is not imported", own),
    Case::new("REM0008", "the kernel and devices are not imported", not_memory),
    Case::new("REM0009", "what was lent is borrowed back, used, and revoked", borrowed_back),
    Case::new("REM0010", "a borrowed frame has the rights that it was sent with", rights),
    Case::new("REM0011", "an exported capability is moved into nodes and out again with its mark", node),
    Case::new("REM0012", "the kernel reports whether others have an object", holders),
    Case::new("REM0013", "200 exported capabilities are passed, and what lies between them goes", many),
];

/// Marks a capability as exported.
fn export<T>(cap: Cap<T>) -> Result<(), tench::sys::Error> {
    KERNEL.export(OWN_CSPACE, cap.address())
}

/// Removes a capability's export mark.
fn unexport<T>(cap: Cap<T>) -> Result<(), tench::sys::Error> {
    KERNEL.unexport(OWN_CSPACE, cap.address())
}

fn stays(stage: &mut Stage) -> Outcome {
    for (kind, size) in [(Kind::Untyped, 12), (Kind::Frame, 12)] {
        let cap = Cap::<Untyped>::new(stage.make_kind(kind, size)?);
        export(cap)?;
        refused!(cap.delete(), RemoteCopies);
        let moved = cap.move_to(stage.slot())?;
        refused!(moved.delete(), RemoteCopies);
        refused!(unexport(cap), InvalidCapability);
        unexport(moved)?;
        refused!(unexport(moved), NotExported);
        check!(moved.delete()?.freed.is_some());
    }
    Ok(())
}

fn revoke_memory(stage: &mut Stage) -> Outcome {
    let (outer, frame) = (stage.make::<Untyped>(16)?, stage.slot());
    retype(outer, Kind::Frame, 12, frame)?;
    let (frame, inner) = (Cap::<Frame>::new(frame), stage.slot());
    retype(outer, Kind::Untyped, 13, inner)?;
    let others = stage.slots(8);
    Cap::<Untyped>::new(inner).retype_many(Kind::Endpoint, 0, 8, Placement::Watermark, OWN_CSPACE, others)?;
    let copy = stage.copy(frame)?;
    export(copy)?;
    refused!(outer.revoke(), RemoteCopies);
    check!(is_empty(frame) && is_empty(Cap::<Untyped>::new(inner)));
    for i in 0..8 {
        check!(is_empty(Cap::<Endpoint>::new(CapAddress(others.0 + i))));
    }
    refused!(outer.revoke(), RemoteCopies);
    equal!(outer.children()?.objects, 1);
    unexport(copy)?;
    equal!(outer.revoke()?, 1);
    equal!(outer.query()?.watermark, 0);
    Ok(())
}

fn revoke_copies(stage: &mut Stage) -> Outcome {
    let frame = stage.make::<Frame>(12)?;
    let (first, marked, last) = (stage.copy(frame)?, stage.copy(frame)?, stage.copy(frame)?);
    export(marked)?;
    refused!(export(last), Lent);
    refused!(frame.revoke(), RemoteCopies);
    check!(is_empty(first) && is_empty(last) && !is_empty(marked));
    // The exported capability keeps the object.
    check!(frame.delete()?.freed.is_none());
    refused!(marked.delete(), RemoteCopies);
    unexport(marked)?;
    check!(marked.delete()?.freed.is_some());
    Ok(())
}

fn lent(stage: &mut Stage) -> Outcome {
    let (memory, slot) = (stage.make::<Untyped>(14)?, stage.slot());
    export(memory)?;
    refused!(retype(memory, Kind::Endpoint, 0, slot), Lent);
    refused!(memory.split(slot), Lent);
    refused!(export(memory), Lent);
    refused!(memory.revoke(), RemoteCopies);
    equal!(memory.query()?.size_bits, 14);
    unexport(memory)?;
    retype(memory, Kind::Endpoint, 0, slot)?;
    refused!(export(memory), Busy);
    Ok(())
}

fn kinds(stage: &mut Stage) -> Outcome {
    for (kind, size) in [(Kind::CapNode, 4), (Kind::PageTable, 3), (Kind::Thread, 0), (Kind::Notification, 0)] {
        let address = stage.make_kind(kind, size)?;
        refused!(KERNEL.export(OWN_CSPACE, address), WrongType);
    }
    let endpoint = stage.endpoint()?;
    let five = stage.mint(endpoint, Rights::all(), 5)?;
    refused!(export(endpoint), WrongType);
    refused!(export(five), WrongType);
    check!(five.delete()?.freed.is_none());
    refused!(export(crate::kernel::RTC), DeviceMemory);
    refused!(export(KERNEL), WrongType);
    refused!(KERNEL.export(OWN_CSPACE, stage.slot()), InvalidCapability);
    Ok(())
}

fn own(stage: &mut Stage) -> Outcome {
    let (frame, slot) = (stage.make::<Frame>(13)?, stage.slot());
    let start = frame.locate(KERNEL)?.address;
    for (address, bits) in
        [(start, 13), (start + 4096, 12), (start & !0xffff, 16), (stage.pool.locate(KERNEL)?.address, 12)]
    {
        refused!(KERNEL.import_frame(address, bits, Rights::all(), slot), Overlap);
        refused!(KERNEL.import_untyped(address, bits, slot), Overlap);
    }
    refused!(KERNEL.import_frame(start + 2048, 12, Rights::all(), slot), Misaligned);
    refused!(KERNEL.import_frame(start, 11, Rights::all(), slot), InvalidArgument);
    refused!(KERNEL.import_untyped(start, 48, slot), InvalidArgument);
    refused!(KERNEL.import_frame(start, 13, Rights::all(), frame.address()), SlotOccupied);
    let arguments =
        |kind: Kind, rights: u64| [u64::from(KERNEL.address().0), kind as u64, start, 12, rights, 0, u64::from(slot.0)];
    for (kind, rights) in [(Kind::Endpoint, 15), (Kind::Frame, 16), (Kind::Untyped, 7)] {
        refused!(system_call(106, &arguments(kind, rights)), InvalidArgument);
    }
    check!(is_empty(Cap::<Frame>::new(slot)));
    Ok(())
}

fn not_memory(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    let clock = crate::kernel::RTC.locate(KERNEL)?.address;
    for address in [0, clock, 1 << 36, 1 << 47, u64::MAX << 12] {
        refused!(KERNEL.import_frame(address, 12, Rights::all(), slot), InvalidArgument);
    }
    // The first core's kernel lies at the beginning of RAM, where it was linked.
    refused!(KERNEL.import_frame(0x4020_0000, 12, Rights::all(), slot), Overlap);
    refused!(KERNEL.import_untyped(0x4000_0000, 26, slot), Overlap);
    Ok(())
}

fn borrowed_back(stage: &mut Stage) -> Outcome {
    let lent = stage.make::<Untyped>(16)?;
    let start = lent.locate(KERNEL)?.address;
    export(lent)?;
    refused!(KERNEL.import_untyped(start, 17, stage.slot()), Overlap);
    let root = KERNEL.import_untyped(start, 15, stage.slot())?;
    refused!(export(root), Borrowed);
    refused!(unexport(lent), Busy);
    let (frame, endpoint) = (stage.slot(), stage.slot());
    retype(root, Kind::Frame, 13, frame)?;
    retype(root, Kind::Endpoint, 0, endpoint)?;
    let frame = Cap::<Frame>::new(frame);
    equal!(frame.locate(KERNEL)?.address, start);
    let window = Window::new(frame, 13, RW)?;
    window.write64(4096, 77);
    equal!(window.read64(4096), 77);
    drop(window);
    // Objects made of the imported memory belong to this core, and can be sent.
    export(frame)?;
    refused!(root.revoke(), RemoteCopies);
    unexport(frame)?;
    equal!(root.revoke()?, 1);
    equal!(root.query()?.watermark, 0);
    root.delete()?;
    unexport(lent)?;
    equal!(lent.query()?.watermark, 0);
    Ok(())
}

fn rights(stage: &mut Stage) -> Outcome {
    let lent = stage.make::<Untyped>(12)?;
    export(lent)?;
    let root = KERNEL.import_frame(lent.locate(KERNEL)?.address, 12, Rights::READ, stage.slot())?;
    equal!(root.identify()?.rights, Rights::READ);
    let copy = stage.copy(root)?;
    check!(Window::new(copy, 12, RW).is_err());
    let window = Window::new(copy, 12, MapFlags::READ)?;
    window.read64(0);
    drop(window);
    equal!(root.revoke()?, 1);
    root.delete()?;
    unexport(lent)?;
    Ok(())
}

fn node(stage: &mut Stage) -> Outcome {
    let node = stage.make::<CapNode>(8)?;
    let (frame, endpoint) = (stage.make::<Frame>(12)?, stage.endpoint()?);
    let witness = stage.copy(endpoint)?;
    let root = Cap::<CapNode>::new(tench::abi::layout::slot::CSPACE);
    let index = NODE_INDEX - 1;
    root.install_node(index, node)?;
    endpoint.move_to(CapAddress::new(index, 1))?;
    export(frame)?;
    let inside = frame.move_to(CapAddress::new(index, 2))?;
    refused!(inside.delete(), RemoteCopies);
    let marked = inside.move_to(frame.address())?;
    root.remove_node(index, node.address())?;
    check!(KERNEL.holders(OWN_CSPACE, witness.address())?.others);
    node.delete()?;
    check!(!KERNEL.holders(OWN_CSPACE, witness.address())?.others);
    refused!(marked.delete(), RemoteCopies);
    refused!(stage.pool.revoke(), RemoteCopies);
    check!(is_empty(witness) && !is_empty(marked));
    unexport(marked)?;
    Ok(())
}

fn holders(stage: &mut Stage) -> Outcome {
    let (frame, memory) = (stage.make::<Frame>(12)?, stage.make::<Untyped>(12)?);
    let others = |address: CapAddress| KERNEL.holders(OWN_CSPACE, address).map(|found| found.others);
    equal!(others(frame.address())?, false);
    let copy = stage.copy(frame)?;
    equal!(others(frame.address())?, true);
    copy.delete()?;
    let window = Window::new(frame, 12, RW)?;
    equal!(others(frame.address())?, true);
    drop(window);
    equal!(others(frame.address())?, false);
    equal!(others(memory.address())?, false);
    let slot = stage.slot();
    retype(memory, Kind::Endpoint, 0, slot)?;
    equal!(others(memory.address())?, true);
    Cap::<Endpoint>::new(slot).delete()?;
    export(memory)?;
    let found = KERNEL.holders(OWN_CSPACE, memory.address())?;
    check!(found.exported && !found.borrowed && !found.others);
    unexport(memory)?;
    let (endpoint, another) = (stage.make::<Endpoint>(0)?, stage.make::<Endpoint>(0)?);
    let badges = [5, 5, 6].map(|badge| (stage.slot(), badge));
    for (slot, badge) in badges {
        endpoint.mint_to(slot, Rights::WRITE, badge)?;
    }
    let [five, also_five, six] = badges.map(|(slot, _)| slot);
    equal!([five, also_five, six].map(others), [Ok(true), Ok(true), Ok(false)]);
    equal!(others(endpoint.address())?, true);
    Cap::<Endpoint>::new(five).delete()?;
    equal!(others(also_five)?, false);
    let identity = |address: CapAddress| KERNEL.holders(OWN_CSPACE, address).map(|found| found.physical);
    equal!(identity(six)?, identity(endpoint.address())?);
    check!(identity(six)? != identity(another.address())?);
    Ok(())
}

fn many(stage: &mut Stage) -> Outcome {
    let lender = stage.make::<Untyped>(20)?;
    let first = stage.slots(220);
    lender.retype_many(Kind::Frame, 12, 220, Placement::Watermark, OWN_CSPACE, first)?;
    let is_marked = |i: u32| i % 11 != 5;
    let slot = |i: u32| CapAddress(first.0 + i);
    for i in (0..220).filter(|i| is_marked(*i)) {
        KERNEL.export(OWN_CSPACE, slot(i))?;
    }
    refused!(lender.revoke(), RemoteCopies);
    for i in 0..220 {
        equal!((i, identify(slot(i))?.kind != Kind::Null), (i, is_marked(i)));
    }
    for i in (0..220).filter(|i| is_marked(*i)) {
        KERNEL.unexport(OWN_CSPACE, slot(i))?;
    }
    equal!(lender.revoke()?, 200);
    Ok(())
}
