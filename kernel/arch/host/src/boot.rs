//! Boots the machine that tests use, with the code that boots a real one.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ptr::NonNull;

use tench_abi::boot::{Header, MAGIC, MemoryKind, Segment, UntypedInfo, VERSION};
use tench_abi::layout::slot::BOOT_UNTYPED;
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_abi::object::LINES;
use tench_kernel::boot::{Plan, first_process};
use tench_kernel::kernel::State;
use tench_kernel::object::Ref;
use tench_kernel::scheduler;
use tench_kernel::thread::Thread;

use crate::host::Host;
use crate::memory::RAM_START;

/// Size of RAM in bytes.
const MEMORY: usize = 32 << 20;
/// Size in bytes of the beginning of RAM, the only part in which boot writes without marking pages.
pub const BOOT_MEMORY: usize = 1 << 20;
/// Physical address of the RAM disk: one page of header, one of program; the rest is the archive.
const RAMDISK: u64 = RAM_START + (1 << 20);
/// Size of the RAM disk in bytes.
const RAMDISK_SIZE: u64 = 64 << 10;
/// Virtual address at which the program is linked.
pub const PROGRAM: u64 = 0x20_0000;
/// Physical address of the device tree, in the last page of the RAM disk.
const DEVICE_TREE: u64 = RAMDISK + RAMDISK_SIZE - PAGE_SIZE as u64;

/// Returns the description of one boot untyped.
const fn block(address: u64, size_bits: u32, kind: MemoryKind) -> UntypedInfo {
    UntypedInfo { address, size_bits, kind: kind as u32 }
}

/// The boot untypeds. The first 2 MiB of RAM hold the idle thread and the RAM disk.
pub const UNTYPED: [UntypedInfo; 7] = [
    block(RAM_START + (16 << 20), 24, MemoryKind::Ram),
    block(RAM_START + (4 << 20), 22, MemoryKind::Ram),
    block(RAM_START + (8 << 20), 14, MemoryKind::Ram),
    block(0x0900_0000, 12, MemoryKind::Device),
    block(0x8000_0000, 30, MemoryKind::Device),
    block(RAMDISK, 16, MemoryKind::Archive),
    block(RAM_START + (2 << 20), 20, MemoryKind::Ram),
];

/// Returns the address of the capability to boot untyped `n`.
const fn untyped(n: u64) -> u64 {
    BOOT_UNTYPED.0 as u64 + n
}

/// Address of an untyped of 16 MiB of RAM.
pub const RAM: u64 = untyped(0);
/// Address of an untyped of 4 MiB of RAM.
pub const RAM_MEDIUM: u64 = untyped(1);
/// Address of an untyped of 16 KiB of RAM.
pub const RAM_SMALL: u64 = untyped(2);
/// Address of an untyped of one page of device registers.
pub const DEVICE: u64 = untyped(3);
/// Address of an untyped of 1 GiB of device memory, aligned to its size.
pub const LARGE_DEVICE: u64 = untyped(4);
/// Address of an untyped of 64 KiB whose contents are kept.
pub const ARCHIVE: u64 = untyped(5);
/// The first address that is empty after boot.
pub const FREE: u64 = 128;

/// Boots a kernel and returns it with its first thread, which runs. The state was allocated as a box.
pub fn boot() -> (NonNull<State<Host>>, Ref<Thread>) {
    let mut host = Host::new(MEMORY);
    host.memory.fill(RAMDISK, RAMDISK_SIZE as usize, |offset| !offset);
    let idle = host.memory.base() + RAM_START as usize;
    let layout = Layout::new::<State<Host>>();
    // SAFETY: the state is not of size 0.
    let Some(memory) = NonNull::new(unsafe { alloc_zeroed(layout) }.cast::<State<Host>>()) else {
        handle_alloc_error(layout)
    };
    // SAFETY: `memory` is zeroed, aligned and freed with the machine; the idle thread's object is zeroed RAM outside of
    // all untyped memory.
    let kernel = unsafe { State::initialise(memory, host, idle) }.expect("an address is not 0");
    let mut header = Header {
        magic: MAGIC,
        version: VERSION,
        entry: PROGRAM,
        segment_count: 1,
        segments: Default::default(),
        archive_offset: 2 * PAGE_SIZE as u64,
        archive_size: RAMDISK_SIZE - 2 * PAGE_SIZE as u64,
        line_owners: [0; LINES],
    };
    header.segments[0] = Segment {
        address: PROGRAM,
        offset: PAGE_SIZE as u64,
        size: PAGE_SIZE as u64,
        flags: (MapFlags::READ | MapFlags::EXECUTE).bits(),
    };
    let plan = Plan {
        memory: &UNTYPED,
        init: RAMDISK,
        header: &header,
        archive: (RAMDISK + header.archive_offset, header.archive_size),
        device_tree: (DEVICE_TREE, 128),
        counter_frequency: 100_000,
        core: 0,
    };
    let first = first_process(kernel, &plan).expect("the plan is complete");
    let runs = scheduler::leave(kernel);
    assert!(runs == first, "the first thread runs");
    (memory, first)
}
