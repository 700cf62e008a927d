//! The memory of the first process: all RAM, device registers and the boot archive, except what the kernel uses, as
//! naturally aligned blocks whose sizes are powers of two.
//!
//! ```text
//!  RAM  ├──┤kernel├────────┤disk: header, init│ archive ├──┤device tree├─────┤
//!        Ram        Ram                         Archive   Ram            Ram
//! ```
//! Pages of the first process's program and of the device tree are in no block: the kernel maps them for the process,
//! and they stay. Kernel memory is never in a block, since the holder of a block may map it.

use arrayvec::ArrayVec;
use tench_abi::boot::{CoreBoot, MAX_UNTYPED, MemoryKind, UntypedInfo};
use tench_abi::memory::PAGE_BITS;
use tench_arch_aarch64::layout::{RAM_END, Region};

use crate::platform::Platform;

/// The blocks: RAM, the largest first, then devices, then the archive.
pub type UntypedBlocks = ArrayVec<UntypedInfo, MAX_UNTYPED>;

/// Divides the machine's memory into blocks. `kernel` is the part of the image that stays; `archive` lies in the RAM
/// disk.
///
/// # Errors
/// A sentence, if devices and archive alone are more blocks than there are slots. If there are too many blocks of RAM,
/// the smallest are left out.
pub fn untyped_blocks(platform: &Platform, kernel: Region, archive: Region) -> Result<UntypedBlocks, &'static str> {
    let mut taken: ArrayVec<Region, 24> = ArrayVec::new();
    let own = [kernel, platform.device_tree, platform.ramdisk.unwrap_or_default()];
    for region in own.into_iter().chain(platform.reserved.iter().copied()).filter(|region| !region.is_empty()) {
        taken.try_push(region.widen(PAGE_BITS)).map_err(|_| "firmware reserves too many ranges of memory")?;
    }
    sort(&mut taken);

    let mut others = UntypedBlocks::new();
    push_devices(&mut others, platform)?;
    split(archive.widen(PAGE_BITS), MemoryKind::Archive, |block| others.try_push(block).is_ok())
        .ok_or("there are too many devices to hand over the boot archive")?;

    let mut blocks = UntypedBlocks::new();
    for bank in &platform.memory {
        for gap in gaps(*bank, &taken) {
            let _ = split(gap, MemoryKind::Ram, |block| {
                insert(&mut blocks, block, MAX_UNTYPED - others.len());
                true
            });
        }
    }
    blocks.extend(others);
    Ok(blocks)
}

/// Appends the registers of all devices except the interrupt controller.
fn push_devices(blocks: &mut UntypedBlocks, platform: &Platform) -> Result<(), &'static str> {
    let controller = [platform.distributor].into_iter().chain(platform.redistributors.iter().copied());
    let mut not_devices: ArrayVec<Region, 32> = controller.chain(platform.memory.iter().copied()).collect();
    sort(&mut not_devices);
    for device in &platform.devices {
        for gap in gaps(*device, &not_devices) {
            split(gap, MemoryKind::Device, |block| blocks.try_push(block).is_ok())
                .ok_or("there are too many devices")?;
        }
    }
    Ok(())
}

/// Returns the blocks of a core that another core has started: its memory, the largest first, the frame that the two
/// share, the archive, and the core's devices. `own` are the parts of the image that are free afterwards; they are too
/// small to hold the first process's objects, which are made before that.
///
/// # Errors
/// A sentence, if what the other core says is not possible.
pub fn given(boot: &CoreBoot, own: [Region; 2], platform: &Platform) -> Result<UntypedBlocks, &'static str> {
    let memory =
        boot.memory.get(..boot.memory_count as usize).ok_or("the boot page is damaged: too many blocks of memory")?;
    let is_valid = |block: &UntypedInfo| {
        block.kind == MemoryKind::Ram as u32
            && (PAGE_BITS..RAM_END.ilog2()).contains(&block.size_bits)
            && block.address.is_multiple_of(1 << block.size_bits)
            && block.address < RAM_END
    };
    if !memory.iter().all(is_valid) {
        return Err("the boot page is damaged: a block of memory that is not aligned RAM");
    }
    let mut blocks = UntypedBlocks::new();
    for block in memory {
        insert(&mut blocks, *block, MAX_UNTYPED);
    }
    for region in own {
        let _ = split(region, MemoryKind::Ram, |block| {
            insert(&mut blocks, block, MAX_UNTYPED);
            true
        });
    }
    let channel =
        Region::new(boot.channel, 1 << (boot.channel_bits & 31)).ok_or("the boot page is damaged: no channel")?;
    let archive = Region::new(boot.archive, boot.archive_size).ok_or("the boot page is damaged: no archive")?;
    for (region, kind) in [(channel, MemoryKind::Channel), (archive.widen(PAGE_BITS), MemoryKind::Archive)] {
        split(region, kind, |block| blocks.try_push(block).is_ok())
            .ok_or("there is too much memory for the boot archive")?;
    }
    push_devices(&mut blocks, platform)?;
    Ok(blocks)
}

/// Inserts a block after all that are at least as large. If there are `limit` already, the smallest is left out.
fn insert(blocks: &mut UntypedBlocks, block: UntypedInfo, limit: usize) {
    let index = blocks.partition_point(|other| other.size_bits >= block.size_bits);
    if index >= limit {
        return;
    }
    blocks.truncate(limit - 1);
    let _ = blocks.try_insert(index, block);
}

/// Sorts a few ranges. The library's sort is made for many, and is ten times as long.
fn sort(ranges: &mut [Region]) {
    for end in 1..ranges.len() {
        for index in (1..=end).rev() {
            if let [lower, upper] = &mut ranges[index - 1..=index]
                && *upper < *lower
            {
                core::mem::swap(lower, upper);
            }
        }
    }
}

/// Returns the parts of a range outside `taken`, whose ranges are sorted.
fn gaps(whole: Region, taken: &[Region]) -> impl Iterator<Item = Region> + '_ {
    let mut start = whole.start;
    let ends = taken.iter().copied().chain([Region { start: whole.end, end: whole.end }]);
    ends.filter_map(move |hole| {
        let gap = Region { start, end: hole.start.min(whole.end) };
        start = start.max(hole.end);
        Some(gap).filter(|gap| !gap.is_empty())
    })
}

/// Splits a range of whole pages into the fewest naturally aligned powers of two. Stops with `None` if `take` returns
/// false.
fn split(region: Region, kind: MemoryKind, mut take: impl FnMut(UntypedInfo) -> bool) -> Option<()> {
    let mut address = region.start;
    while address < region.end {
        // The largest size that both the alignment of the address and the room to the end allow.
        let size_bits = address.trailing_zeros().min((region.end - address).ilog2());
        if !take(UntypedInfo { address, size_bits, kind: kind as u32 }) {
            return None;
        }
        address += 1 << size_bits;
    }
    Some(())
}
