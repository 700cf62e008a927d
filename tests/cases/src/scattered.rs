//! Tests of scattered mappings.

use tench::abi::fault::Access;
use tench::abi::memory::{MAX_SCATTERED, MAX_SET};
use tench::sys::{Cap, Error, Frame, MapFlags, Mapping, PageTable, Rights};

use crate::assembly;
use crate::case::{Case, Outcome};
use crate::memory::{access, faults};
use crate::space::{BASE, RW, Tables, read, write};
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("SCATTER0001", "any entry shows any page, and another afterwards", anywhere),
    Case::new("SCATTER0002", "clones are read-only on both sides, and show the same memory", cloned),
    Case::new("SCATTER0003", "an entry has no more rights than the frame's capability had", rights),
    Case::new("SCATTER0004", "entries that are another mapping's stay as they are", others),
    Case::new("SCATTER0005", "a table has eight scattered mappings", many),
    Case::new("SCATTER0006", "what is executed was made coherent", executed),
    Case::new("SCATTER0007", "a scattered mapping is described, moved and deleted", life),
];

/// Size of the frame in bytes.
const SIZE: u64 = 1 << 16;

/// Tables, a frame, and a scattered mapping of it in the table at [`BASE`].
struct World {
    tables: Tables,
    frame: Cap<Frame>,
    mapping: Cap<Mapping>,
}

impl World {
    fn new(stage: &mut Stage) -> Outcome<World> {
        let (tables, frame, slot) =
            (stage.tables()?, stage.make::<Frame>(u64::from(SIZE.trailing_zeros()))?, stage.slot());
        let mapping = frame.scatter(tables.level3, slot)?;
        Ok(World { tables, frame, mapping })
    }
}

/// Sets entries of a mapping.
fn set(mapping: Cap<Mapping>, first: u64, count: u64, offset: u64, flags: MapFlags) -> Result<(), Error> {
    // SAFETY: a case uses what it has mapped by reading and writing words only.
    unsafe { mapping.set(first, count, offset, flags) }
}

/// Returns the address of an entry's page.
const fn at(entry: u64) -> u64 {
    BASE + (entry << 12)
}

fn anywhere(stage: &mut Stage) -> Outcome {
    let World { mapping, .. } = World::new(stage)?;
    set(mapping, 511, 1, 0x3000, RW)?;
    set(mapping, 2, 2, 0x2000, RW)?;
    write(at(511), 3);
    write(at(2), 2);
    equal!((read(at(3)), read(at(2))), (3, 2));
    // Cached by now.
    set(mapping, 511, 1, 0x2000, MapFlags::READ)?;
    equal!(read(at(511)), 2);
    faults(access(stage, assembly::store, at(511))?, at(511), Access::Write, true)?;
    set(mapping, 511, 1, 0, MapFlags::empty())?;
    faults(access(stage, assembly::load, at(511))?, at(511), Access::Read, false)
}

fn cloned(stage: &mut Stage) -> Outcome {
    let World { tables, frame, mapping } = World::new(stage)?;
    let (second, slot) = (stage.make::<PageTable>(3)?, stage.slot());
    second.install(tables.level2, 1)?;
    let clone = frame.scatter(second, slot)?;
    for entry in [0, 1, 7, 8, 300] {
        set(mapping, entry, 1, (entry % 16) << 12, RW)?;
        write(at(entry), entry + 1);
    }
    equal!(mapping.clone_to(clone, 0, 512, MapFlags::READ, true)?, 5);
    for entry in [0, 1, 7, 8, 300] {
        let there = at(512 + entry);
        equal!((read(at(entry)), read(there)), (entry + 1, entry + 1));
        faults(access(stage, assembly::store, at(entry))?, at(entry), Access::Write, true)?;
        faults(access(stage, assembly::store, there)?, there, Access::Write, true)?;
    }
    // What a handler of the fault does: another page, with the same contents, for one of the two.
    set(clone, 7, 1, 0x9000, RW)?;
    write(at(512 + 7), 70);
    equal!((read(at(7)), read(at(512 + 7))), (8, 70));
    refused!(mapping.clone_to(mapping, 0, 512, MapFlags::WRITE, true), InvalidArgument);
    equal!(mapping.clone_to(mapping, 0, 512, MapFlags::READ, true)?, 0);
    Ok(())
}

fn rights(stage: &mut Stage) -> Outcome {
    let World { tables, frame, mapping } = World::new(stage)?;
    let (slot, other) = (stage.slot(), stage.slot());
    let reader = frame.mint_to(slot, Rights::READ, 0)?;
    let weak = reader.scatter(tables.level3, other)?;
    refused!(set(weak, 0, 1, 0, RW), MissingRights);
    refused!(set(weak, 0, 1, 0, MapFlags::READ | MapFlags::EXECUTE), MissingRights);
    refused!(set(mapping, 0, 1, 0, RW | MapFlags::EXECUTE), InvalidArgument);
    refused!(set(mapping, 0, 1, 0, MapFlags::WRITE), InvalidArgument);
    refused!(set(mapping, 0, 1, 0x800, RW), Misaligned);
    refused!(set(mapping, 0, 1, SIZE, RW), InvalidArgument);
    refused!(set(mapping, 0, 2, SIZE - 4096, RW), InvalidArgument);
    refused!(set(mapping, 512, 1, 0, RW), InvalidArgument);
    refused!(set(mapping, 0, MAX_SET + 1, 0, RW), InvalidArgument);
    set(mapping, 0, 1, 0, RW)?;
    refused!(mapping.clone_to(weak, 0, 1, RW, false), MissingRights);
    refused!(mapping.protect(MapFlags::READ), WrongType);
    set(weak, 1, 1, 0, MapFlags::READ)
        .map_err(Into::into)
        .and_then(|()| faults(access(stage, assembly::store, at(1))?, at(1), Access::Write, true))
}

fn others(stage: &mut Stage) -> Outcome {
    let World { tables, frame, mapping } = World::new(stage)?;
    let slot = stage.slot();
    let other = frame.scatter(tables.level3, slot)?;
    let page = stage.make::<Frame>(12)?;
    stage.map(page, tables.level3, 5, RW)?;
    set(other, 6, 1, 0x1000, RW)?;
    write(at(5), 5);
    write(at(6), 6);
    for (first, count) in [(5, 1), (6, 1), (4, 2), (6, 2), (0, 16)] {
        refused!(set(mapping, first, count, 0, RW), AlreadyMapped);
        refused!(set(mapping, first, count, 0, MapFlags::empty()), AlreadyMapped);
    }
    equal!((read(at(5)), read(at(6)), mapping.query()?.count), (5, 6, 0));
    let slot = stage.slot();
    refused!(page.map(tables.level3, 6, 1, 0, RW, slot), AlreadyMapped);
    Ok(())
}

fn many(stage: &mut Stage) -> Outcome {
    let World { tables, frame, .. } = World::new(stage)?;
    for _ in 1..MAX_SCATTERED {
        let slot = stage.slot();
        frame.scatter(tables.level3, slot)?;
    }
    let slot = stage.slot();
    refused!(frame.scatter(tables.level3, slot), Busy);
    refused!(frame.scatter(crate::space::ROOT, slot), InvalidArgument);
    refused!(frame.scatter(tables.level2, slot), InvalidArgument);
    Ok(())
}

fn executed(stage: &mut Stage) -> Outcome {
    let World { mapping, .. } = World::new(stage)?;
    set(mapping, 0, 1, 0, RW)?;
    write(at(0) + 64, read(assembly::forty_two as *const () as u64));
    set(mapping, 1, 1, 0, MapFlags::READ | MapFlags::EXECUTE)?;
    let worker = stage.spawn(|| {
        // SAFETY: the function was copied there.
        unsafe { assembly::jump(at(1) + 64) }
    })?;
    equal!(worker.join()?, 42);
    Ok(())
}

fn life(stage: &mut Stage) -> Outcome {
    let World { tables, mapping, .. } = World::new(stage)?;
    set(mapping, 0, 16, 0, RW)?;
    write(at(9), 9);
    let info = mapping.query()?;
    equal!((info.first, info.count, info.address), (0, 16, Some(BASE)));
    equal!(info.flags, RW | MapFlags::EXECUTE);
    let slot = stage.slot();
    let moved = mapping.move_to(slot)?;
    refused!(set(mapping, 0, 1, 0, RW), InvalidCapability);
    set(moved, 400, 1, 0x9000, RW)?;
    equal!(read(at(400)), 9);
    moved.delete()?;
    for entry in [0, 9, 400] {
        faults(access(stage, assembly::load, at(entry))?, at(entry), Access::Read, false)?;
    }
    tables.level3.delete()?;
    Ok(())
}
