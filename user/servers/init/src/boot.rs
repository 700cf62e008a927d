//! The boot archive, and the system description in it.

use arrayvec::ArrayVec;
use tench_abi::Kind;
use tench_abi::boot::{BootInfo, MAX_UNTYPED, MemoryKind};
use tench_abi::layout::{address, slot};
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_loader::pages::runs;
use tench_loader::space::Space;
use tench_loader::{Archive, Builder, Machine, Resources, Shown};
use tench_sys::{Cap, Frame, OWN_CSPACE, Placement, Rights};
use tench_system::{ARCHIVE_PATH, System};

use crate::failure::Failure;
use crate::pool::{Pool, untyped_capability};

/// The boot archive.
pub struct Boot {
    /// The parsed archive.
    pub archive: Archive<'static>,
    /// The programs to be started.
    pub system: System<'static>,
    /// The archive's frames, only for reading and executing.
    pub shown: Shown,
}

impl Boot {
    /// Maps the archive and reads the system description.
    pub fn open(info: &BootInfo, pool: &mut Pool) -> Result<Boot, Failure> {
        let shown = map(info, pool)?;
        let bytes = core::ptr::with_exposed_provenance::<u8>(address::BOOT_ARCHIVE as usize);
        // SAFETY: `map` has mapped at least that many bytes there, for ever; nobody writes to them.
        let bytes = unsafe { core::slice::from_raw_parts(bytes, info.archive_size as usize) };
        let archive = Archive::new(bytes);
        let description = archive.find(ARCHIVE_PATH);
        let description = description.ok_or(Failure::Text("the boot archive has no system description"))?;
        let system = System::parse(description.contents);
        let system = system.map_err(|_| Failure::Text("the system description is malformed; rebuild the image"))?;
        Ok(Boot { archive, system, shown })
    }
}

/// Makes frames of the memory that contains the archive and maps them, so that the archive begins at `BOOT_ARCHIVE`.
fn map(info: &BootInfo, pool: &mut Pool) -> Result<Shown, Failure> {
    let count = (info.untyped_count as usize).min(MAX_UNTYPED);
    let blocks = info.untyped.iter().take(count).enumerate();
    let mut blocks: ArrayVec<_, MAX_UNTYPED> =
        blocks.filter(|(_, block)| block.kind == MemoryKind::Archive as u32).collect();
    blocks.sort_unstable_by_key(|(_, block)| block.address);

    let loading = |error| Failure::Load("mapping the boot archive", error);
    let failed = |error| Failure::Kernel("mapping the boot archive", error);
    let mut space = Space::over(slot::VSPACE);
    let mut shown = Shown::new(address::BOOT_ARCHIVE);
    let mut next = info.archive_address;
    let end = (info.archive_address + info.archive_size).next_multiple_of(PAGE_SIZE as u64);
    for (number, block) in blocks {
        let block_end = block.address + (1 << block.size_bits);
        if block_end <= next || block.address >= end {
            continue;
        }
        if block.address > next {
            break;
        }
        let frame = pool.slot().map_err(loading)?;
        let untyped = untyped_capability(number);
        untyped
            .retype_many(Kind::Frame, u64::from(block.size_bits), 1, Placement::At(0), OWN_CSPACE, frame)
            .map_err(failed)?;
        // These pages are mapped into processes as their code: nobody may write to them.
        let constant = Cap::<Frame>::new(frame)
            .mint_to(pool.slot().map_err(loading)?, Rights::READ | Rights::EXECUTE, 0)
            .map_err(failed)?;
        let mut machine = Machine::without_window(pool);
        let offset = next - block.address;
        let virtual_address = address::BOOT_ARCHIVE + (next - info.archive_address);
        if shown.size() == 0 {
            shown = Shown::new(virtual_address - offset);
        }
        let added = shown.add(constant, block.size_bits);
        added.map_err(|_| Failure::Text("the boot archive lies in too many blocks"))?;
        for run in runs(virtual_address, block_end.min(end) - next) {
            let table = space.table(&mut machine, run.address, 3).map_err(loading)?;
            machine.map(frame, table, run.first, run.count, offset + run.offset, MapFlags::READ).map_err(loading)?;
        }
        next = block_end;
    }
    if next < end {
        return Err(Failure::Text("the kernel did not hand over all of the boot archive"));
    }
    Ok(shown)
}
