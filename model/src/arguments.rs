//! Arguments for random system calls: mostly such that calls succeed, so that state is built up (addresses of
//! capabilities of the right kind, empty slots, small numbers, sizes, flags), and some nonsense.

use tench_abi::fault::Class;
use tench_abi::layout::{UNBIND, WATERMARK, slot};
use tench_abi::memory::entry_bits;
use tench_abi::message::IPC_BUFFER_SIZE;
use tench_abi::object::{DOORBELLS, MAX_DEPTH, MIN_BUDGET, NODE_SLOTS, SLOT_SIZE};
use tench_abi::{Kind, Operation, Tag, power};
use tench_arch_host::Host;
use tench_arch_host::host::CORES;
use tench_arch_host::machine::{DEVICE, FREE};
use tench_arch_host::memory::RAM_START;
use tench_kernel::mapping::scattered::is_scattered;
use tench_kernel::slot::Payload;
use tench_kernel::slot::flag;
use tench_kernel::thread::Thread;
use tench_kernel::{Arch, Cap, Kernel, Ref};

use crate::source::Source;

/// Number of slots that calls mostly name: the well-known ones, the untyped memory, and some that are empty at first.
const SLOTS: u64 = FREE + 40;
/// Number of second-level nodes that may be installed.
const NODES: u64 = 4;

/// Kinds to retype, and the sizes that go with them.
const OBJECTS: [(Kind, u64); 20] = [
    (Kind::Untyped, 4),
    (Kind::Untyped, 12),
    (Kind::Untyped, 16),
    (Kind::CapNode, 8),
    (Kind::CapNode, 8),
    (Kind::CapNode, 2),
    (Kind::Frame, 12),
    (Kind::Frame, 12),
    (Kind::Frame, 14),
    (Kind::Frame, 21),
    (Kind::PageTable, 0),
    (Kind::PageTable, 1),
    (Kind::PageTable, 2),
    (Kind::PageTable, 3),
    (Kind::Thread, 0),
    (Kind::SchedulingContext, 0),
    (Kind::Endpoint, 0),
    (Kind::Reply, 0),
    (Kind::Notification, 0),
    (Kind::Mapping, 0),
];

/// The contents of a thread's CSpace, so that calls can name what they need.
pub struct Catalogue {
    /// The capabilities, by address.
    pub filled: Vec<(u64, Cap)>,
    empty: Vec<u64>,
    /// Addresses behind the last capability of each node.
    runs: Vec<u64>,
    /// The kernel's virtual address of physical address 0.
    base: usize,
}

impl Catalogue {
    /// Reads a thread's CSpace.
    pub fn of(k: &mut Kernel<Host>, thread: Ref<Thread>) -> Catalogue {
        let base = k.arch().base();
        let mut catalogue = Catalogue { filled: Vec::new(), empty: Vec::new(), runs: Vec::new(), base };
        let (root, slots) = (k.get(thread).cspace_root, k.get(thread).cspace_slots);
        for index in 0..slots {
            let Some(entry) = k.slot_at(root + index * SLOT_SIZE) else { continue };
            let node = k.slot(entry).cap;
            if node.kind != Kind::CapNode || node.slots() != NODE_SLOTS || node.flags & flag::ZOMBIE != 0 {
                continue;
            }
            for i in 0..NODE_SLOTS {
                let address = (index * NODE_SLOTS + i) as u64;
                match k.slot_at(node.object + i * SLOT_SIZE) {
                    Some(slot) if k.slot(slot).cap.kind != Kind::Null => {
                        catalogue.filled.push((address, k.slot(slot).cap));
                    }
                    // A few near to the filled slots are enough.
                    _ if catalogue.empty.len() < 48 && address != 0 => catalogue.empty.push(address),
                    _ => {}
                }
            }
            let last = catalogue.filled.last().map_or(0, |(address, _)| *address);
            let first = (index * NODE_SLOTS) as u64;
            catalogue.runs.push(first.max(last + 1));
        }
        catalogue
    }

    /// Returns an address at which a capability may lie.
    pub fn any(&self, source: &mut impl Source) -> u64 {
        if self.filled.is_empty() || source.one_in(16) {
            return source.below(SLOTS + NODES * NODE_SLOTS as u64);
        }
        self.filled[source.below(self.filled.len() as u64) as usize].0
    }

    /// Returns mostly the address of a slot for which `wanted` holds.
    fn such_slot(&self, source: &mut impl Source, wanted: impl Fn(u64, &Cap) -> bool) -> u64 {
        if source.one_in(16) {
            return self.any(source);
        }
        let fitting: Vec<u64> = self.filled.iter().filter(|(a, cap)| wanted(*a, cap)).map(|(a, _)| *a).collect();
        if fitting.is_empty() { self.any(source) } else { source.pick(&fitting) }
    }

    /// Returns mostly the address of a capability for which `wanted` holds.
    fn such(&self, source: &mut impl Source, wanted: impl Fn(&Cap) -> bool) -> u64 {
        self.such_slot(source, |_, cap| wanted(cap))
    }

    /// Returns mostly the address of a capability of a kind.
    fn kind(&self, source: &mut impl Source, kind: Kind) -> u64 {
        self.such(source, |cap| cap.kind == kind)
    }

    /// Returns mostly the address of a page table of a level.
    fn table(&self, source: &mut impl Source, level: u32) -> u64 {
        self.such(source, |cap| cap.payload() == Payload::PageTable(level))
    }

    /// Returns mostly the address of an empty slot.
    pub fn empty(&self, source: &mut impl Source) -> u64 {
        if self.empty.is_empty() || source.one_in(16) {
            return self.any(source);
        }
        source.pick(&self.empty)
    }

    /// Returns the beginning of a long run of empty slots, if there is one.
    fn long_run(&self, source: &mut impl Source) -> u64 {
        if self.runs.is_empty() { self.empty(source) } else { source.pick(&self.runs) }
    }

    /// Returns a CSpace: mostly the caller's own.
    fn cspace(&self, source: &mut impl Source) -> u64 {
        if source.one_in(4) { self.kind(source, Kind::CapNode) } else { 0 }
    }

    /// Returns an address whose deletion does not end the episode all too soon.
    fn expendable(&self, source: &mut impl Source) -> u64 {
        if source.one_in(200) {
            return self.any(source);
        }
        let first = if source.one_in(10) { FREE / 2 } else { FREE };
        self.such_slot(source, |address, _| address >= first && !(DEVICE..FREE).contains(&address))
    }
}

/// Returns any number.
pub fn argument(source: &mut impl Source) -> u64 {
    match source.below(8) {
        0 => source.word(),
        1 => source.pick(&[u64::MAX, UNBIND, WATERMARK, 1 << 63, 1 << 32, 1 << 31, u64::MAX - 1]),
        2 => 1 << source.below(64),
        3 => (1u64 << source.below(64)).wrapping_sub(1),
        4 => source.below(64) << 12,
        _ => source.below(300),
    }
}

/// Returns an entry of a table and a number of entries.
fn entries(source: &mut impl Source) -> (u64, u64) {
    let first = if source.one_in(4) { source.below(513) } else { source.below(8) };
    let count = if source.one_in(3) { source.below(514) } else { 1 + source.below(3) };
    (if count > 3 { first % 8 } else { first }, count)
}

/// Returns a message tag.
fn tag(source: &mut impl Source) -> u64 {
    let length = if source.one_in(4) { source.below(70) } else { source.below(9) } as usize;
    let caps = if source.one_in(2) { 0 } else { source.below(6) as usize };
    let flags = if source.one_in(4) { source.below(16) << 12 } else { 0 };
    Tag::new(source.below(6), length).with_caps(caps).with(flags).0
}

/// Replaces most arguments of an operation by ones with which it may succeed.
pub fn sensible(operation: Operation, x: &mut [u64; 13], known: &Catalogue, source: &mut impl Source) {
    if source.one_in(12) {
        return;
    }
    let keep = *x;
    match operation as u64 {
        0..16 => shape_message(operation, x, known, source),
        16..48 => shape_capability(operation, x, known, source),
        48..64 => shape_mapping(operation, x, known, source),
        _ => shape_thread(operation, x, known, source),
    }
    if source.one_in(6) {
        let spoiled = source.below(8) as usize;
        x[spoiled] = keep[spoiled];
    }
}

/// Chooses arguments of messages and signals.
fn shape_message(operation: Operation, x: &mut [u64; 13], known: &Catalogue, source: &mut impl Source) {
    let kind = match operation {
        Operation::Reply => Kind::Reply,
        Operation::Signal if source.one_in(4) => Kind::Doorbell,
        Operation::Signal => Kind::Notification,
        Operation::Receive | Operation::TryReceive | Operation::ReplyReceive if source.one_in(4) => Kind::Notification,
        _ => Kind::Endpoint,
    };
    x[0] = known.kind(source, kind);
    x[1] = tag(source);
    x[11] = known.kind(source, Kind::Reply);
    x[12] = source.below(5000);
    if operation == Operation::Reply && source.one_in(2) {
        x[0] = 0;
    }
}

/// Chooses arguments of operations on untyped memory and CSpaces.
fn shape_capability(operation: Operation, x: &mut [u64; 13], known: &Catalogue, source: &mut impl Source) {
    match operation {
        Operation::UntypedRetype => {
            x[0] = known.such(source, |cap| cap.kind == Kind::Untyped && cap.flags & flag::DEVICE == 0);
            let (kind, size) = source.pick(&OBJECTS);
            (x[1], x[2]) = (kind as u64, size);
            x[3] = match source.below(16) {
                0 => source.below(258),
                1..4 => 4 + source.below(30),
                _ => 1 + source.below(3),
            };
            x[4] = if source.one_in(4) { source.below(64) << 12 } else { WATERMARK };
            (x[5], x[6]) = (0, known.empty(source));
            if source.one_in(8) {
                x[5] = known.cspace(source);
            } else if x[3] > 3 {
                x[6] = known.long_run(source);
            }
        }
        Operation::UntypedQuery | Operation::UntypedChildren => x[0] = known.kind(source, Kind::Untyped),
        Operation::UntypedSplit => {
            // Large untypeds rarely: otherwise soon no untyped would be large enough for anything else.
            let any = source.one_in(30);
            x[0] = known.such_slot(source, |address, cap| {
                cap.kind == Kind::Untyped && (any || address >= FREE && cap.size_bits <= 14)
            });
            (x[1], x[2]) = (known.cspace(source), known.empty(source));
        }
        Operation::Copy | Operation::Mint | Operation::Move => {
            x[0] = known.cspace(source);
            x[1] = known.any(source);
            x[2] = known.cspace(source);
            x[3] = known.empty(source);
            x[4] = if source.one_in(2) { 15 } else { source.below(16) };
            // Sometimes with powers.
            x[5] = match source.below(4) {
                0 | 1 => 0,
                2 => source.below(4),
                _ => 1 << (power::SHIFT + source.below(10) as u32) | source.below(2),
            };
        }
        Operation::NodeInstall => {
            x[0] = known.cspace(source);
            x[1] = source.below(NODES + 1);
            x[2] = known.kind(source, Kind::CapNode);
        }
        Operation::NodeRemove => {
            x[0] = known.cspace(source);
            x[1] = if source.one_in(100) { 0 } else { 1 + source.below(NODES) };
            x[2] = known.empty(source);
        }
        _ => {
            x[0] = known.cspace(source);
            x[1] = known.expendable(source);
            // The end of deletions in parts.
            x[2] = source.below(4);
        }
    }
}

/// Chooses arguments of operations on frames, mappings and tables.
fn shape_mapping(operation: Operation, x: &mut [u64; 13], known: &Catalogue, source: &mut impl Source) {
    match operation {
        Operation::FrameMap => {
            let large = source.one_in(3);
            x[0] = known.such(source, |cap| cap.kind == Kind::Frame && (cap.size_bits >= 21) == large);
            let level = if large { source.pick(&[2, 3]) } else { 3 };
            x[1] = known.table(source, level);
            (x[2], x[3]) = entries(source);
            x[4] = if source.one_in(3) { source.below(16) << 12 } else { 0 };
            let bits = known.filled.iter().find(|(address, _)| *address == x[0]).map_or(12, |(_, cap)| cap.size_bits);
            if !source.one_in(8) {
                x[3] = x[3].min(1 << bits.saturating_sub(entry_bits(level) as u8)).max(1);
            }
            x[5] = source.pick(&[1, 3, 5, 1, 3, 5, 1, 3, 9, 11, 17, 7, 0, 2]);
            x[6] = known.empty(source);
        }
        Operation::FrameScatter => {
            x[0] = known.kind(source, Kind::Frame);
            let level = source.pick(&[3, 3, 3, 2]);
            x[1] = known.table(source, level);
            x[2] = known.empty(source);
        }
        Operation::MappingSet => {
            x[0] = known.such(source, |cap| cap.kind == Kind::Mapping && is_scattered(cap));
            (x[1], x[2]) = entries(source);
            x[3] = source.below(16) << 12;
            x[4] = source.pick(&[1, 3, 3, 3, 5, 0, 0, 9, 17, 7]);
        }
        Operation::MappingClone => {
            x[0] = known.such(source, |cap| cap.kind == Kind::Mapping && is_scattered(cap));
            x[1] = known.such(source, |cap| cap.kind == Kind::Mapping && is_scattered(cap));
            (x[2], x[3]) = if source.one_in(4) { entries(source) } else { (0, 512) };
            x[4] = source.pick(&[1, 3, 5, 7, 7, 1, 8]);
            x[5] = source.below(2);
        }
        Operation::MappingProtect | Operation::MappingQuery => {
            x[0] = known.kind(source, Kind::Mapping);
            x[1] = source.pick(&[1, 3, 5, 1, 3, 5, 9, 17, 7]);
        }
        Operation::PageTableMap => {
            let level = 1 + source.below(3) as u32;
            x[0] = known.table(source, level);
            x[1] = known.table(source, level - 1);
            x[2] = if source.one_in(8) { source.below(513) } else { source.below(8) };
        }
        _ => x[0] = known.kind(source, Kind::PageTable),
    }
}

/// Chooses arguments of operations on remote capabilities, except the kernel's capability.
fn shape_foreign(operation: Operation, x: &mut [u64; 13], known: &Catalogue, source: &mut impl Source) {
    x[1] = known.cspace(source);
    match operation {
        Operation::KernelExport => {
            // Memory of exported capabilities is never freed, so large untypeds rarely.
            let any = source.one_in(20);
            let small = |cap: &Cap| cap.kind != Kind::Untyped || any || cap.size_bits <= 16;
            let kinds = [Kind::Untyped, Kind::Frame];
            x[2] = known.such_slot(source, |address, cap| address >= FREE && kinds.contains(&cap.kind) && small(cap));
        }
        Operation::KernelUnexport => x[2] = known.such(source, |cap| cap.is_exported()),
        Operation::KernelHolders => x[2] = known.any(source),
        _ => {
            x[1] = source.pick(&[Kind::Frame, Kind::Untyped]) as u64;
            x[3] = if source.one_in(4) { source.below(24) } else { 12 + source.below(4) };
            // Memory in no boot untyped, or in one; sometimes memory that was exported.
            x[2] = RAM_START + (source.below(8) << 20) + (source.below(16) << x[3]);
            let lent = known.filled.iter().filter(|(_, cap)| cap.is_exported() && cap.kind == Kind::Untyped);
            let lent: Vec<usize> = lent.map(|(_, cap)| cap.object).collect();
            if !lent.is_empty() && source.one_in(2) {
                x[2] = (source.pick(&lent) - known.base) as u64;
            }
            x[4] = if x[1] == Kind::Untyped as u64 || source.one_in(2) { 15 } else { source.below(16) };
            (x[5], x[6]) = (known.cspace(source), known.empty(source));
        }
    }
}

/// Chooses arguments of operations on threads, scheduling contexts, interrupts and the kernel.
fn shape_thread(operation: Operation, x: &mut [u64; 13], known: &Catalogue, source: &mut impl Source) {
    x[0] = match operation as u64 {
        64..80 => known.kind(source, Kind::Thread),
        80..88 => known.kind(source, Kind::SchedulingContext),
        88..96 => known.table(source, 0),
        96 | 99 => known.kind(source, Kind::InterruptControl),
        97..104 => known.kind(source, Kind::Interrupt),
        _ => known.kind(source, Kind::Kernel),
    };
    match operation {
        Operation::ThreadConfigure => {
            x[1] = if source.one_in(20) { known.kind(source, Kind::CapNode) } else { slot::CSPACE.0 as u64 };
            x[2] = known.table(source, 0);
            x[3] = if source.one_in(4) { 0 } else { known.kind(source, Kind::Frame) };
            x[4] = source.below(6) * IPC_BUFFER_SIZE as u64;
        }
        Operation::ThreadBind => {
            let kinds = [Kind::SchedulingContext, Kind::Reply, Kind::Notification];
            for (argument, kind) in x[1..4].iter_mut().zip(kinds) {
                *argument = match source.below(6) {
                    0..3 => 0,
                    3 => UNBIND,
                    _ => known.kind(source, kind),
                };
            }
        }
        Operation::ThreadFaults => {
            x[1] = source.below(Class::COUNT as u64 + 1);
            x[2] = if source.one_in(2) { 0 } else { known.kind(source, Kind::Endpoint) };
            x[3] = source.pick(&[0, 0x20_0000]);
            x[4] = source.pick(&[0, 0x7ffe_0000_0000]);
        }
        Operation::ThreadServe => {
            x[1] = if source.one_in(4) { 0 } else { known.kind(source, Kind::Endpoint) };
            x[2] = source.below(MAX_DEPTH + 2);
        }
        Operation::ThreadReadRegisters => x[1] = source.below(3),
        Operation::ThreadWriteRegisters => x[1] = source.below(5),
        Operation::SchedulingConfigure => {
            x[1] = source.pick(&[255, 255, 255, 255, 255, 200, 100]);
            x[2] = source.pick(&[255, 255, 100]);
            x[3] = source.pick(&[0, 10, 1000]);
            x[4] = if source.one_in(4) { known.kind(source, Kind::SchedulingContext) } else { 0 };
        }
        Operation::SchedulingReserve => {
            let (budget, period) = (MIN_BUDGET + source.below(1000), source.below(2000));
            (x[1], x[2]) = if source.one_in(4) { (0, 0) } else { (budget, budget + period) };
            x[3] = if source.one_in(4) { known.kind(source, Kind::SchedulingContext) } else { 0 };
        }
        _ => shape_kernel(operation, x, known, source),
    }
}

/// Chooses arguments of operations on accounts, interrupts and the kernel; x0 is chosen.
fn shape_kernel(operation: Operation, x: &mut [u64; 13], known: &Catalogue, source: &mut impl Source) {
    match operation {
        Operation::AccountOpen => x[1] = known.kind(source, Kind::Kernel),
        // Rarely, because otherwise soon no thread runs.
        Operation::AccountSuspend => x[1] = u64::from(source.one_in(3)),
        Operation::InterruptGet => {
            // Lines of devices, and doorbell lines of this core.
            x[1] = if source.one_in(2) { 32 + source.below(6) } else { source.below(4) };
            x[2] = source.below(4);
            x[3] = known.empty(source);
        }
        Operation::InterruptDoorbell => {
            x[1] = source.below(CORES + 1);
            x[2] = if source.one_in(8) { source.below(DOORBELLS + 2) } else { source.below(4) };
            x[3] = known.empty(source);
        }
        Operation::KernelStartCore | Operation::KernelCorePower => x[1] = source.below(CORES + 1),
        Operation::InterruptBind => x[1] = if source.one_in(4) { 0 } else { known.kind(source, Kind::Notification) },
        Operation::KernelExport | Operation::KernelUnexport | Operation::KernelHolders | Operation::KernelImport => {
            shape_foreign(operation, x, known, source);
        }
        Operation::KernelPowerOff | Operation::KernelPrint | Operation::KernelQuery => x[1] = source.below(70),
        Operation::KernelIrqOff => x[1] = source.pick(&[0, 115, 120, 126, 127, u64::MAX]),
        _ => {}
    }
}
