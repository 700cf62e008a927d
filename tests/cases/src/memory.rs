//! Tests of frames, mappings and page tables.

use tench::abi::fault::{Access, Class, Report};
use tench::abi::layout::slot;
use tench::abi::memory::{TABLE_ENTRIES, entry_bits};
use tench::abi::object::ThreadState;
use tench::memory::Window;
use tench::sys::{Cap, CapAddress, Error, Frame, Kind, MapFlags, Mapping, OWN_CSPACE, PageTable, Rights};

use crate::assembly;
use crate::case::{Case, Failure, Outcome};
use crate::space::{BASE, ROOT, RW, read, root_entry, write};
use crate::stage::{EMPTY_INDEX, HIGH, LOW, Stage, is_empty, physical_address, system_call};
use crate::worker::{Equipment, pause};

pub const CASES: &[Case] = &[
    Case::new("MEM0001", "a mapped page is read and written", read_and_write),
    Case::new("MEM0002", "a page mapped for reading cannot be written or executed", read_only),
    Case::new("MEM0003", "what was written is executed after it was mapped so", execute),
    Case::new("MEM0004", "no mapping is writable and executable, or not readable", flags),
    Case::new("MEM0005", "a mapping needs the frame's rights", frame_rights),
    Case::new("MEM0006", "a mapping needs a table with WRITE", table_rights),
    Case::new("MEM0007", "entries must lie in the table", entries),
    Case::new("MEM0008", "offsets must lie in the frame and be aligned", frame_offsets),
    Case::new("MEM0009", "an entry in use is not mapped over", in_use),
    Case::new("MEM0010", "a mapping needs an empty slot", slots),
    Case::new("MEM0011", "512 pages are mapped and unmapped in one call", whole_table),
    Case::new("MEM0012", "2 MiB are mapped as one page", large_page),
    Case::new("MEM0013", "a frame is mapped at several addresses", twice),
    Case::new("MEM0014", "uncached mappings show the same memory", uncached),
    Case::new("MEM0015", "protect takes rights away and gives them back", protect),
    Case::new("MEM0016", "protect gives no more than the mapping was made with", protect_errors),
    Case::new("MEM0017", "a mapping is described", query),
    Case::new("MEM0018", "a mapping is unique, and works on after it was moved", moved),
    Case::new("MEM0019", "deleting a mapping unmaps", delete_mapping),
    Case::new("MEM0020", "deleting a frame's last capability unmaps it", delete_frame),
    Case::new("MEM0021", "revoking a frame unmaps it everywhere", revoke_frame),
    Case::new("MEM0022", "deleting a table unmaps what it shows", delete_table),
    Case::new("MEM0023", "uninstalling a page table unmaps what it shows, installing it elsewhere moves it", uninstall),
    Case::new("MEM0024", "page tables are installed one level below each other", levels),
    Case::new("MEM0025", "an entry or a page table in use is not installed again", install_twice),
    Case::new("MEM0026", "deleting a page table uninstalls those below it", delete_parent),
    Case::new("MEM0027", "programs cannot have the entries of the kernel's half", kernel_half),
    Case::new("MEM0028", "a thread whose address space goes faults alone", space_gone),
    Case::new("MEM0029", "two address spaces show different memory at one address", two_spaces),
];

/// Lets a worker access an address. Returns its fault, if there is one.
pub fn access(stage: &mut Stage, function: unsafe extern "C" fn(u64) -> u64, address: u64) -> Outcome<Option<Report>> {
    let worker = stage.spawn(move || {
        // SAFETY: a fault stops the worker, which has nothing else to do.
        unsafe { function(address) }
    })?;
    let info = worker.thread.query()?;
    worker.thread.delete()?;
    stage.workers = 0;
    Ok((info.state == ThreadState::Faulted).then_some(Report { class: Class::PageFault as u64, ..info.fault }))
}

/// Fails unless an access raises this fault.
#[track_caller]
pub fn faults(found: Option<Report>, address: u64, kind: Access, is_permission: bool) -> Outcome {
    let Some(report) = found else { return Err(Failure::new("there was no fault")) };
    crate::case::equal("the fault", &(report.address, report.access()), &(address, kind))?;
    crate::case::equal("is a matter of rights", &report.is_permission(), &is_permission)
}

fn read_and_write(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(13)?);
    stage.map(frame, tables.level3, 5, RW)?;
    let address = BASE + 5 * 4096;
    equal!((read(address), read(address + 8184)), (0, 0));
    write(address, 1);
    write(address + 8184, 2);
    let window = Window::new(frame, 13, MapFlags::READ)?;
    equal!((window.read64(0), window.read64(8184)), (1, 2));
    faults(access(stage, assembly::load, address + 8192)?, address + 8192, Access::Read, false)?;
    faults(access(stage, assembly::store, address - 8)?, address - 8, Access::Write, false)
}

fn read_only(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    stage.map(frame, tables.level3, 0, MapFlags::READ)?;
    equal!(read(BASE), 0);
    faults(access(stage, assembly::store, BASE)?, BASE, Access::Write, true)?;
    faults(access(stage, assembly::jump, BASE)?, BASE, Access::Execute, true)
}

/// Writes a function's first instructions into memory that is mapped writable.
fn write_code(address: u64) {
    let code = assembly::forty_two as *const () as u64;
    write(address, read(code));
}

fn execute(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    stage.map(frame, tables.level3, 0, RW)?;
    write_code(BASE + 64);
    stage.map(frame, tables.level3, 1, MapFlags::READ | MapFlags::EXECUTE)?;
    let worker = stage.spawn(|| {
        // SAFETY: the function was copied there.
        unsafe { assembly::jump(BASE + 4096 + 64) }
    })?;
    equal!(worker.join()?, 42);
    faults(access(stage, assembly::jump, BASE + 64)?, BASE + 64, Access::Execute, true)?;
    faults(access(stage, assembly::store, BASE + 4096)?, BASE + 4096, Access::Write, true)
}

fn flags(stage: &mut Stage) -> Outcome {
    let (tables, frame, slot) = (stage.tables()?, stage.make::<Frame>(12)?, stage.slot());
    let wrong = [
        MapFlags::empty(),
        MapFlags::WRITE,
        MapFlags::EXECUTE,
        MapFlags::READ | MapFlags::WRITE | MapFlags::EXECUTE,
        MapFlags::WRITE | MapFlags::EXECUTE,
        MapFlags::DEVICE,
    ];
    for flags in wrong.map(|flags| flags.bits()).into_iter().chain([32 | 1, 1 << 11 | 1, 1 << 12 | 1, u64::MAX]) {
        let (frame, table) = (u64::from(frame.address().0), u64::from(tables.level3.address().0));
        refused!(system_call(48, &[frame, table, 0, 1, 0, flags, u64::from(slot.0)]), InvalidArgument);
    }
    equal!(OWN_CSPACE.identify_at(slot)?.kind, Kind::Null);
    Ok(())
}

fn frame_rights(stage: &mut Stage) -> Outcome {
    let (tables, frame, slot) = (stage.tables()?, stage.make::<Frame>(12)?, stage.slot());
    for (missing, flags) in
        [(Rights::READ, MapFlags::READ), (Rights::WRITE, RW), (Rights::EXECUTE, MapFlags::READ | MapFlags::EXECUTE)]
    {
        let weak = stage.mint(frame, Rights::all().difference(missing), 0)?;
        refused!(weak.map(tables.level3, 0, 1, 0, flags, slot), MissingRights);
    }
    let reader = stage.mint(frame, Rights::READ, 0)?;
    let mapping = reader.map(tables.level3, 0, 1, 0, MapFlags::READ, slot)?;
    refused!(mapping.protect(RW), MissingRights);
    Ok(())
}

fn table_rights(stage: &mut Stage) -> Outcome {
    let (tables, frame, slot) = (stage.tables()?, stage.make::<Frame>(12)?, stage.slot());
    let weak = stage.mint(tables.level3, Rights::READ, 0)?;
    refused!(frame.map(weak, 0, 1, 0, MapFlags::READ, slot), MissingRights);
    let wrong = Cap::<PageTable>::new(frame.address());
    refused!(frame.map(wrong, 0, 1, 0, MapFlags::READ, slot), WrongType);
    refused!(frame.map(Cap::new(slot), 0, 1, 0, MapFlags::READ, slot), InvalidCapability);
    Ok(())
}

fn entries(stage: &mut Stage) -> Outcome {
    let (tables, frame, slot) = (stage.tables()?, stage.make::<Frame>(21)?, stage.slot());
    for (first, count) in [(0, 0), (512, 1), (511, 2), (0, 513), (u64::MAX, 1), (1, u64::MAX), (1 << 32, 1)] {
        refused!(frame.map(tables.level3, first, count, 0, MapFlags::READ, slot), InvalidArgument);
    }
    frame.map(tables.level3, 511, 1, 0, MapFlags::READ, slot)?;
    Ok(())
}

fn frame_offsets(stage: &mut Stage) -> Outcome {
    let (tables, frame, slot) = (stage.tables()?, stage.make::<Frame>(14)?, stage.slot());
    for offset in [1, 8, 2048, 4097] {
        refused!(frame.map(tables.level3, 0, 1, offset, MapFlags::READ, slot), Misaligned);
    }
    for (offset, count) in [(1 << 14, 1), (1 << 13, 3), (0, 5), (1 << 63, 1), (u64::MAX, 1)] {
        refused!(frame.map(tables.level3, 0, count, offset, MapFlags::READ, slot), InvalidArgument);
    }
    // A frame smaller than an entry cannot fill one, and neither can a misaligned one.
    let large = stage.make::<Frame>(21)?;
    refused!(large.map(tables.level2, 1, 1, 4096, MapFlags::READ, slot), Misaligned);
    refused!(large.map(tables.level2, 1, 2, 0, MapFlags::READ, slot), InvalidArgument);
    refused!(large.map(tables.level1, 1, 1, 0, MapFlags::READ, slot), Misaligned);
    refused!(large.map(ROOT, 200, 1, 0, MapFlags::READ, slot), InvalidArgument);
    Window::new(frame, 14, RW)?.write64(2 << 12, 77);
    frame.map(tables.level3, 0, 2, 2 << 12, MapFlags::READ, slot)?;
    equal!(read(BASE), 77);
    Ok(())
}

fn in_use(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(14)?);
    let (a, b) = (stage.slot(), stage.slot());
    frame.map(tables.level3, 4, 1, 0, MapFlags::READ, a)?;
    refused!(frame.map(tables.level3, 4, 1, 0, MapFlags::READ, b), AlreadyMapped);
    refused!(frame.map(tables.level3, 2, 4, 0, MapFlags::READ, b), AlreadyMapped);
    // A table is in entry 0.
    let large = stage.make::<Frame>(21)?;
    refused!(large.map(tables.level2, 0, 1, 0, MapFlags::READ, b), AlreadyMapped);
    faults(access(stage, assembly::load, BASE + 2 * 4096)?, BASE + 2 * 4096, Access::Read, false)?;
    frame.map(tables.level3, 0, 4, 0, MapFlags::READ, b)?;
    Ok(())
}

fn slots(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    refused!(frame.map(tables.level3, 0, 1, 0, MapFlags::READ, frame.address()), SlotOccupied);
    for slot in [CapAddress::NULL, CapAddress::new(EMPTY_INDEX, 0), CapAddress(u32::MAX)] {
        refused!(frame.map(tables.level3, 0, 1, 0, MapFlags::READ, slot), NoSuchSlot);
    }
    faults(access(stage, assembly::load, BASE)?, BASE, Access::Read, false)
}

fn whole_table(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(21)?);
    let mapping = stage.map(frame, tables.level3, 0, RW)?;
    for page in 0..TABLE_ENTRIES as u64 {
        write(BASE + page * 4096, page);
    }
    equal!(mapping.query()?.count, 512);
    mapping.protect(MapFlags::READ)?;
    faults(access(stage, assembly::store, BASE + 511 * 4096)?, BASE + 511 * 4096, Access::Write, true)?;
    mapping.delete()?;
    for page in [0, 63, 64, 300, 511] {
        faults(access(stage, assembly::load, BASE + page * 4096)?, BASE + page * 4096, Access::Read, false)?;
    }
    stage.map(frame, tables.level3, 0, MapFlags::READ)?;
    for page in 0..TABLE_ENTRIES as u64 {
        equal!(read(BASE + page * 4096), page);
    }
    Ok(())
}

fn large_page(stage: &mut Stage) -> Outcome {
    let (tables, frame, slot) = (stage.tables()?, stage.make::<Frame>(21)?, stage.slot());
    let mapping = frame.map(tables.level2, 3, 1, 0, RW, slot)?;
    let address = BASE + (3 << entry_bits(2));
    equal!(mapping.query()?.address, Some(address));
    write(address + (1 << 21) - 8, 9);
    stage.map(frame, tables.level3, 0, MapFlags::READ)?;
    equal!(read(BASE + (1 << 21) - 8), 9);
    mapping.delete()?;
    faults(access(stage, assembly::load, address)?, address, Access::Read, false)
}

fn twice(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let first = stage.map(frame, tables.level3, 0, RW)?;
    stage.map(frame, tables.level3, 9, MapFlags::READ)?;
    write(BASE, 3);
    equal!(read(BASE + 9 * 4096), 3);
    first.delete()?;
    equal!(read(BASE + 9 * 4096), 3);
    Ok(())
}

fn uncached(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let mapping = stage.map(frame, tables.level3, 0, RW)?;
    write(BASE, 4);
    stage.map(frame, tables.level3, 1, RW | MapFlags::UNCACHED)?;
    equal!(read(BASE + 4096), 4);
    mapping.protect(MapFlags::READ | MapFlags::UNCACHED)?;
    equal!(mapping.query()?.flags, MapFlags::READ | MapFlags::UNCACHED);
    equal!(read(BASE), 4);
    let device = stage.map(frame, tables.level3, 2, RW | MapFlags::DEVICE)?;
    equal!(device.query()?.flags, RW | MapFlags::DEVICE);
    equal!(read(BASE + 8192), 4);
    Ok(())
}

fn protect(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let mapping = stage.map(frame, tables.level3, 0, RW)?;
    write_code(BASE);
    mapping.protect(MapFlags::READ)?;
    faults(access(stage, assembly::store, BASE)?, BASE, Access::Write, true)?;
    mapping.protect(MapFlags::READ | MapFlags::EXECUTE)?;
    // SAFETY: the function was copied there.
    equal!(stage.spawn(|| unsafe { assembly::jump(BASE) })?.join()?, 42);
    mapping.protect(RW)?;
    faults(access(stage, assembly::jump, BASE)?, BASE, Access::Execute, true)?;
    write(BASE, 1);
    equal!(mapping.query()?.flags, RW);
    Ok(())
}

fn protect_errors(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let weak = stage.mint(frame, Rights::READ | Rights::WRITE, 0)?;
    let mapping = stage.map(weak, tables.level3, 0, MapFlags::READ)?;
    refused!(mapping.protect(MapFlags::READ | MapFlags::EXECUTE), MissingRights);
    for flags in [MapFlags::empty(), MapFlags::WRITE, MapFlags::all()] {
        refused!(mapping.protect(flags), InvalidArgument);
    }
    refused!(system_call(49, &[u64::from(mapping.address().0), 1 << 5 | 1]), InvalidArgument);
    equal!(mapping.query()?.flags, MapFlags::READ);
    Ok(())
}

fn query(stage: &mut Stage) -> Outcome {
    let (tables, frame, slot) = (stage.tables()?, stage.make::<Frame>(14)?, stage.slot());
    let mapping = frame.map(tables.level3, 17, 2, 4096, RW, slot)?;
    let info = mapping.query()?;
    equal!((info.first, info.count, info.flags), (17, 2, RW));
    equal!(physical_address(mapping)?, physical_address(frame)? + 4096);
    equal!(info.address, Some(BASE + 17 * 4096));
    tables.level2.uninstall()?;
    equal!(mapping.query()?.address, None);
    Ok(())
}

fn moved(stage: &mut Stage) -> Outcome {
    let (tables, frame, slot) = (stage.tables()?, stage.make::<Frame>(12)?, stage.slot());
    let mapping = stage.map(frame, tables.level3, 0, RW)?;
    refused!(mapping.copy_to(slot), NotCopyable);
    refused!(mapping.mint_to(slot, Rights::all(), 0), NotCopyable);
    let moved = mapping.move_to(slot)?;
    check!(is_empty(mapping));
    write(BASE, 1);
    equal!(moved.query()?.address, Some(BASE));
    // The table finds its mapping in the new place.
    tables.level3.revoke()?;
    tables.level3.delete()?;
    check!(is_empty(moved));
    Ok(())
}

fn delete_mapping(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let mapping = stage.map(frame, tables.level3, 0, RW)?;
    write(BASE, 5);
    mapping.delete()?;
    faults(access(stage, assembly::load, BASE)?, BASE, Access::Read, false)?;
    check!(!is_empty(frame));
    stage.map(frame, tables.level3, 0, MapFlags::READ)?;
    equal!(read(BASE), 5);
    Ok(())
}

fn delete_frame(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(13)?);
    let copy = stage.copy(frame)?;
    let mapping = stage.map(frame, tables.level3, 0, RW)?;
    write(BASE, 5);
    equal!(frame.delete()?.freed, None);
    equal!(read(BASE), 5);
    check!(copy.delete()?.freed.is_some());
    check!(is_empty(mapping));
    faults(access(stage, assembly::load, BASE)?, BASE, Access::Read, false)?;
    faults(access(stage, assembly::load, BASE + 4096)?, BASE + 4096, Access::Read, false)
}

fn revoke_frame(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let first = stage.map(frame, tables.level3, 0, RW)?;
    let copy = stage.copy(frame)?;
    let second = stage.map(copy, tables.level3, 1, RW)?;
    equal!(frame.revoke()?, 3);
    check!(is_empty(first) && is_empty(second) && is_empty(copy) && !is_empty(frame));
    faults(access(stage, assembly::load, BASE)?, BASE, Access::Read, false)?;
    faults(access(stage, assembly::load, BASE + 4096)?, BASE + 4096, Access::Read, false)
}

fn delete_table(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let mappings = [stage.map(frame, tables.level3, 0, RW)?, stage.map(frame, tables.level3, 400, RW)?];
    check!(tables.level3.delete()?.freed.is_some());
    check!(mappings.into_iter().all(is_empty::<Mapping>));
    faults(access(stage, assembly::load, BASE)?, BASE, Access::Read, false)?;
    // Its entry is free again.
    let table = stage.make::<PageTable>(3)?;
    table.install(tables.level2, 0)?;
    faults(access(stage, assembly::load, BASE)?, BASE, Access::Read, false)?;
    stage.map(frame, table, 0, RW)?;
    equal!(read(BASE), 0);
    Ok(())
}

fn uninstall(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let mapping = stage.map(frame, tables.level3, 1, RW)?;
    write(BASE + 4096, 6);
    tables.level3.uninstall()?;
    faults(access(stage, assembly::load, BASE + 4096)?, BASE + 4096, Access::Read, false)?;
    refused!(tables.level3.uninstall(), NotMapped);
    tables.level3.install(tables.level2, 9)?;
    let address = BASE + (9 << entry_bits(2)) + 4096;
    equal!((read(address), mapping.query()?.address), (6, Some(address)));
    tables.level1.uninstall()?;
    faults(access(stage, assembly::load, address)?, address, Access::Read, false)
}

fn levels(stage: &mut Stage) -> Outcome {
    let tables = [stage.make(0)?, stage.make(1)?, stage.make(2)?, stage.make(3)?].map(|t: Cap<PageTable>| t);
    for (lower, table) in tables.iter().enumerate() {
        for (upper, parent) in tables.iter().enumerate() {
            if upper + 1 != lower {
                refused!(table.install(*parent, 0), InvalidArgument);
            }
        }
    }
    for entry in [512, 1 << 32, u64::MAX] {
        refused!(tables[3].install(tables[2], entry), InvalidArgument);
    }
    let weak = stage.mint(tables[2], Rights::READ, 0)?;
    refused!(tables[3].install(weak, 0), MissingRights);
    refused!(tables[3].install(Cap::new(stage.pool.address()), 0), WrongType);
    tables[3].install(tables[2], 511)?;
    Ok(())
}

fn install_twice(stage: &mut Stage) -> Outcome {
    let (tables, other) = (stage.tables()?, stage.make::<PageTable>(3)?);
    refused!(other.install(tables.level2, 0), AlreadyMapped);
    refused!(tables.level3.install(tables.level2, 1), AlreadyMapped);
    let (large, slot) = (stage.make::<Frame>(21)?, stage.slot());
    large.map(tables.level2, 1, 1, 0, MapFlags::READ, slot)?;
    refused!(other.install(tables.level2, 1), AlreadyMapped);
    other.install(tables.level2, 2)?;
    Ok(())
}

fn delete_parent(stage: &mut Stage) -> Outcome {
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    let mapping = stage.map(frame, tables.level3, 0, RW)?;
    write(BASE, 8);
    tables.level2.delete()?;
    refused!(tables.level3.uninstall(), NotMapped);
    equal!(mapping.query()?.address, None);
    faults(access(stage, assembly::load, BASE)?, BASE, Access::Read, false)?;
    let level2 = stage.make::<PageTable>(2)?;
    level2.install(tables.level1, 0)?;
    tables.level3.install(level2, 0)?;
    equal!(read(BASE), 8);
    Ok(())
}

fn kernel_half(stage: &mut Stage) -> Outcome {
    let table = stage.make::<PageTable>(1)?;
    for entry in [256, 257, 511, 512] {
        refused!(table.install(ROOT, entry), InvalidArgument);
    }
    // An entry of the upper half will do; this process has nothing there.
    let free = (0..256)
        .rev()
        .map(|entry| table.install(ROOT, entry))
        .find(|installed| *installed != Err(Error::AlreadyMapped));
    equal!(free, Some(Ok(())));
    Ok(())
}

fn space_gone(stage: &mut Stage) -> Outcome {
    let root = stage.make::<PageTable>(0)?;
    let thread = stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, || ())?;
    thread.thread.configure(Cap::new(slot::CSPACE), root, None)?;
    thread.thread.resume()?;
    pause(stage)?;
    // Nothing is mapped there.
    equal!(thread.state()?, ThreadState::Faulted);
    root.revoke()?;
    refused!(thread.thread.resume(), NotConfigured);
    root.delete()?;
    equal!(thread.state()?, ThreadState::Faulted);
    Ok(())
}

fn two_spaces(stage: &mut Stage) -> Outcome {
    // The other address space has the same tables except for what the case maps.
    let (tables, frame) = (stage.tables()?, stage.make::<Frame>(12)?);
    stage.map(frame, tables.level3, 0, RW)?;
    write(BASE, 0x1111);
    let (root, slot) = (stage.make::<PageTable>(0)?, stage.slot());
    let chain = [stage.make::<PageTable>(1)?, stage.make::<PageTable>(2)?, stage.make::<PageTable>(3)?];
    chain[0].install(root, root_entry())?;
    chain[1].install(chain[0], 0)?;
    chain[2].install(chain[1], 0)?;
    let code = stage.make::<Frame>(12)?;
    let window = Window::new(code, 12, RW)?;
    // `ldr x0, [x0]`, then the next instruction is beyond the page, and faults there.
    let load = assembly::load as *const () as u64;
    window.write32(4092, read(load & !7).wrapping_shr(((load & 4) * 8) as u32) as u32);
    let data = stage.make::<Frame>(12)?;
    Window::new(data, 12, RW)?.write64(0, 0x2222);
    stage.map(data, chain[2], 0, MapFlags::READ)?;
    code.map(chain[2], 1, 1, 0, MapFlags::READ | MapFlags::EXECUTE, slot)?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, || ())?;
    worker.thread.configure(Cap::new(slot::CSPACE), root, None)?;
    let mut registers = worker.thread.read_registers(false)?;
    (registers.pc, registers.x[0]) = (BASE + 4096 + 4092, BASE);
    // SAFETY: the thread lives in an address space of its own.
    unsafe { worker.thread.write_registers(&registers, true) }?;
    let info = worker.thread.query()?;
    equal!((info.state, info.fault.address), (ThreadState::Faulted, BASE + 8192));
    equal!(worker.thread.read_registers(false)?.x[0], 0x2222);
    equal!(read(BASE), 0x1111);
    Ok(())
}
