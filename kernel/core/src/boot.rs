//! The first process. The kernel makes it out of the memory with which it was booted, and gives it everything.
//!
//! `init`'s objects lie at the beginning of one of the untypeds that it receives, as if it had retyped them itself; its
//! program's pages are mapped where the boot loader left them. There is a capability to every object, so that memory in
//! use cannot be retyped, and a mapping for every page of memory that could become a kernel object once its frame is
//! deleted.

use core::mem::offset_of;
use core::ptr::NonNull;

use tench_abi::boot::{BootInfo, Header, MAGIC, MAX_UNTYPED, MemoryKind, UntypedInfo, VERSION};
use tench_abi::layout::{address, slot};
use tench_abi::memory::{MapFlags, PAGE_BITS, PAGE_SIZE, TABLE_ENTRIES, entry_bits};
use tench_abi::object::{NODE_BITS, NODE_SLOTS, PAGE_TABLE_BITS, SCHEDULING_CONTEXT_BITS, SLOT_SIZE, THREAD_BITS};
use tench_abi::{CapAddress, Kind};

use crate::kernel::{NEVER, State};
use crate::object::Ref;
use crate::page_table::{PageTable, ShadowEntry};
use crate::scheduling_context::SchedulingContext;
use crate::slot::payload::Marks;
use crate::slot::{Cap, SLOT_SHIFT, SlotRef, flag};
use crate::thread::{THREAD_OFFSET, Thread};
use crate::timers::Timers;
use crate::{Arch, Kernel, derivation, mapping, page_table, scheduler, thread};

/// The resources with which the machine was booted.
pub struct Plan<'a> {
    /// Memory, in naturally aligned blocks whose sizes are powers of two.
    pub memory: &'a [UntypedInfo],
    /// Physical address that is the base for the offsets of `init`'s segments.
    pub init: u64,
    /// The header in the first page there, which is valid.
    pub header: &'a Header,
    /// Physical address and size in bytes of the boot archive.
    pub archive: (u64, u64),
    /// Physical address and size in bytes of the device tree.
    pub device_tree: (u64, u64),
    /// Ticks of the system counter per second.
    pub counter_frequency: u64,
    /// This core's number.
    pub core: u64,
}

/// Log2 of the smallest block that holds `init`'s objects.
const OBJECTS_BITS: u32 = 20;
/// Virtual address at which `init` finds the device tree.
const DEVICE_TREE: u64 = address::PROCESS_INFO + 0x40_0000;

impl<A: Arch + 'static> State<A> {
    /// Makes a kernel's state of zeroed memory, with an idle thread and nothing else.
    ///
    /// # Safety
    /// `memory` is zeroed, aligned and lives as long as the kernel; `idle` is the address of a zeroed thread object.
    pub unsafe fn initialise(memory: NonNull<State<A>>, arch: A, idle: usize) -> Option<&'static mut Kernel<A>> {
        // SAFETY: the idle thread's object is there; only its address is used until it is initialised.
        let thread = unsafe { Ref::<Thread>::at(idle + THREAD_OFFSET) }?;
        let field = |offset| memory.as_ptr().cast::<u8>().wrapping_add(offset);
        // SAFETY: `memory` is valid for writes (caller), here and below; fields without a valid zero are written.
        unsafe { field(offset_of!(State<A>, arch)).cast::<A>().write(arch) };
        // SAFETY: as above.
        unsafe { field(offset_of!(State<A>, current)).cast::<Ref<Thread>>().write(thread) };
        // SAFETY: as above.
        unsafe { field(offset_of!(State<A>, idle)).cast::<Ref<Thread>>().write(thread) };
        // SAFETY: as above.
        unsafe { field(offset_of!(State<A>, highest_ready)).cast::<i32>().write(-1) };
        // SAFETY: as above.
        unsafe { field(offset_of!(State<A>, budget_end)).cast::<u64>().write(NEVER) };
        // SAFETY: as above.
        unsafe { field(offset_of!(State<A>, timers)).cast::<Timers>().write(Timers::EMPTY) };
        // SAFETY: the state is complete now, and this is its first token.
        let kernel = unsafe { Kernel::from_state(memory) };
        thread::initialise(kernel, idle);
        kernel.state().asids[0] = page_table::RESERVED;
        Some(kernel)
    }
}

/// An allocator for `init`'s objects: takes them from one block of memory, one after another.
struct Objects {
    next: usize,
    end: usize,
    /// Address of node 0.
    node: usize,
    /// Next slot for a capability that has no well-known address.
    slot: u32,
}

impl Objects {
    /// Returns zeroed memory of `1 << bits` bytes, aligned to its size.
    fn take<A: Arch>(&mut self, k: &mut Kernel<A>, bits: u32) -> Result<usize, &'static str> {
        let size = 1usize << bits;
        let start = self.next.next_multiple_of(size);
        if start + size > self.end {
            return Err("the block of memory for the first process is too small");
        }
        self.next = start + size;
        // SAFETY: the range lies in a block of free memory that nothing else uses yet.
        unsafe { k.arch().zero(start, size.max(16)) };
        Ok(start)
    }

    /// Stores a capability in the next slot without a well-known address.
    fn keep<A: Arch>(&mut self, k: &mut Kernel<A>, cap: Cap) -> Result<SlotRef, &'static str> {
        let address = self.next_slot()?;
        put(k, self.node, address, cap)
    }

    /// Returns the next address that is not well known.
    fn next_slot(&mut self) -> Result<CapAddress, &'static str> {
        if self.slot as usize >= NODE_SLOTS {
            return Err("the first process needs more tables than there are slots for; make its program smaller");
        }
        self.slot += 1;
        Ok(CapAddress(self.slot - 1))
    }
}

/// Builds the first process, ready to run.
///
/// # Errors
/// A sentence, if the machine has too little memory or the RAM disk's header is damaged.
pub fn first_process<A: Arch>(k: &mut Kernel<A>, plan: &Plan<'_>) -> Result<Ref<Thread>, &'static str> {
    k.state().device_tree = plan.device_tree;
    let home = choose_home(plan)?;
    let base = k.arch().base();
    let start = base + plan.memory[home].address as usize;
    let end = start + (1usize << plan.memory[home].size_bits);
    let mut objects = Objects { next: start, end, node: 0, slot: slot::BOOT_OBJECTS.0 };

    let root_node = objects.take(k, NODE_BITS + SLOT_SIZE.trailing_zeros())?;
    let node = objects.take(k, NODE_BITS + SLOT_SIZE.trailing_zeros())?;
    objects.node = node;
    give_memory(k, node, plan)?;
    let bits = NODE_BITS + SLOT_SIZE.trailing_zeros();
    let mut cap = Cap::new(Kind::CapNode, root_node, bits as u8).with_number(NODE_BITS);
    put(k, node, slot::CSPACE, cap)?;
    cap.object = node;
    install(k, root_node, cap)?;

    let root = objects.take(k, PAGE_TABLE_BITS)?;
    page_table::initialise(k, root, 0);
    put(k, node, slot::VSPACE, Cap::new(Kind::PageTable, root, PAGE_TABLE_BITS as u8))?;
    map_program(k, &mut objects, root, plan)?;
    let buffer = map_fresh(k, &mut objects, root, address::IPC_BUFFERS, 0, Some(slot::IPC_BUFFER))?;
    let stack_bits = (address::STACK_SIZE >> PAGE_BITS).ilog2();
    map_fresh(k, &mut objects, root, address::STACK_TOP - address::STACK_SIZE, stack_bits, None)?;
    let info = map_fresh(k, &mut objects, root, address::PROCESS_INFO, 0, Some(slot::PROCESS_INFO))?;
    write_info(info, plan);

    let object = objects.take(k, THREAD_BITS)?;
    thread::initialise(k, object);
    put(k, node, slot::THREAD, Cap::new(Kind::Thread, object, THREAD_BITS as u8))?;
    let context = objects.take(k, SCHEDULING_CONTEXT_BITS)?;
    put(k, node, slot::SCHEDULING, Cap::new(Kind::SchedulingContext, context, SCHEDULING_CONTEXT_BITS as u8))?;
    let reply = objects.take(k, tench_abi::object::REPLY_BITS)?;
    put(k, node, slot::REPLY, Cap::new(Kind::Reply, reply, tench_abi::object::REPLY_BITS as u8))?;
    put(k, node, slot::KERNEL, Cap::new(Kind::Kernel, 0, 0))?;
    put(k, node, slot::INTERRUPT_CONTROL, Cap::new(Kind::InterruptControl, 0, 0))?;
    set_watermark(k, node, home, objects.next - start)?;
    start_thread(k, object, context, node, buffer, plan)
}

/// Returns the index of the smallest block of RAM that is large enough for `init`'s objects.
fn choose_home(plan: &Plan<'_>) -> Result<usize, &'static str> {
    let candidates = plan.memory.iter().enumerate().take(MAX_UNTYPED);
    candidates
        .filter(|(_, block)| block.kind == MemoryKind::Ram as u32 && block.size_bits >= OBJECTS_BITS)
        .min_by_key(|(_, block)| block.size_bits)
        .map(|(i, _)| i)
        .ok_or("no block of memory of 1 MiB for the first process")
}

/// Returns the slot at `address` of the second-level node 0.
fn slot_in<A: Arch>(k: &mut Kernel<A>, node: usize, address: CapAddress) -> Result<SlotRef, &'static str> {
    k.slot_at(node + (address.0 as usize) * SLOT_SIZE).ok_or("no such slot")
}

/// Fills an empty slot of node 0.
fn put<A: Arch>(k: &mut Kernel<A>, node: usize, address: CapAddress, cap: Cap) -> Result<SlotRef, &'static str> {
    let slot = slot_in(k, node, address)?;
    derivation::insert_child(k, slot, cap);
    Ok(slot)
}

/// Installs node 0 in the root node.
fn install<A: Arch>(k: &mut Kernel<A>, root_node: usize, cap: Cap) -> Result<(), &'static str> {
    let entry = k.slot_at(root_node).ok_or("no root")?;
    derivation::insert_child(k, entry, cap);
    Ok(())
}

/// Gives `init` one untyped capability for each block of memory.
fn give_memory<A: Arch>(k: &mut Kernel<A>, node: usize, plan: &Plan<'_>) -> Result<(), &'static str> {
    for (i, block) in plan.memory.iter().enumerate().take(MAX_UNTYPED) {
        let object = k.arch().base() + block.address as usize;
        let mut cap = Cap::new(Kind::Untyped, object, block.size_bits as u8);
        if block.kind == MemoryKind::Device as u32 {
            cap.flags |= flag::DEVICE;
        } else if block.kind == MemoryKind::Archive as u32 || block.kind == MemoryKind::Channel as u32 {
            cap.flags |= flag::PRESERVED;
        }
        put(k, node, CapAddress(slot::BOOT_UNTYPED.0 + i as u32), cap)?;
    }
    Ok(())
}

/// Sets the watermark of the block in which `init`'s objects lie.
fn set_watermark<A: Arch>(k: &mut Kernel<A>, node: usize, home: usize, used: usize) -> Result<(), &'static str> {
    let slot = slot_in(k, node, CapAddress(slot::BOOT_UNTYPED.0 + home as u32))?;
    Marks { watermark: used as u64, placed: 0 }.write(&mut k.slot(slot).cap);
    Ok(())
}

/// Binds everything to the thread, and makes it ready.
fn start_thread<A: Arch>(
    k: &mut Kernel<A>,
    object: usize,
    context: usize,
    node: usize,
    buffer: usize,
    plan: &Plan<'_>,
) -> Result<Ref<Thread>, &'static str> {
    // SAFETY: the thread object was just initialised.
    let first = unsafe { Ref::<Thread>::at(object + THREAD_OFFSET) }.ok_or("no thread")?;
    let wanted = [
        (thread::Binding::CSpace, slot::CSPACE),
        (thread::Binding::AddressSpace, slot::VSPACE),
        (thread::Binding::IpcBuffer, slot::IPC_BUFFER),
        (thread::Binding::Scheduling, slot::SCHEDULING),
        (thread::Binding::Reply, slot::REPLY),
    ];
    // SAFETY: the scheduling context is zeroed memory of its own, which is a valid one.
    let context = unsafe { Ref::<SchedulingContext>::at(context) }.ok_or("no scheduling context")?;
    let c = k.get(context);
    c.priority = u8::MAX;
    c.ceiling = u8::MAX;
    // The context has no slice limit, so it may give any slice to others.
    c.is_configured = true;
    for (binding, address) in wanted {
        let source = slot_in(k, node, address)?;
        thread::binding::adopt(k, first, binding, source);
    }
    k.get(first).set_ipc_buffer(buffer);
    let t = k.get(first);
    t.registers.pc = plan.header.entry;
    t.registers.sp = address::STACK_TOP;
    t.registers.x[0] = address::PROCESS_INFO;
    scheduler::make_ready(k, first);
    Ok(first)
}

/// Maps `init`'s segments and the device tree where they lie.
fn map_program<A: Arch>(
    k: &mut Kernel<A>,
    objects: &mut Objects,
    root: usize,
    plan: &Plan<'_>,
) -> Result<(), &'static str> {
    let count = plan.header.segment_count as usize;
    for segment in plan.header.segments.get(..count).ok_or("the RAM disk's header is damaged")? {
        let flags = MapFlags::from_bits(segment.flags).ok_or("a segment of the first process has unknown flags")?;
        for page in 0..segment.size >> PAGE_BITS {
            let offset = page << PAGE_BITS;
            map_page(k, objects, root, segment.address + offset, plan.init + segment.offset + offset, flags)?;
        }
        if flags.contains(MapFlags::EXECUTE) {
            let start = k.arch().base() + (plan.init + segment.offset) as usize;
            k.arch().synchronise_instructions(start, segment.size as usize);
        }
    }
    let (tree, size) = plan.device_tree;
    let first = tree & !(PAGE_SIZE as u64 - 1);
    for page in 0..(tree + size - first).div_ceil(PAGE_SIZE as u64) {
        let offset = page << PAGE_BITS;
        map_page(k, objects, root, DEVICE_TREE + offset, first + offset, MapFlags::READ)?;
    }
    k.arch().publish_entries();
    Ok(())
}

/// Maps `1 << bits` fresh zeroed pages, with a frame and a mapping of their own, in one table. Returns the kernel
/// virtual address of the first page.
fn map_fresh<A: Arch>(
    k: &mut Kernel<A>,
    objects: &mut Objects,
    root: usize,
    address: u64,
    bits: u32,
    slot: Option<CapAddress>,
) -> Result<usize, &'static str> {
    let memory = objects.take(k, PAGE_BITS + bits)?;
    let frame = Cap::new(Kind::Frame, memory, (PAGE_BITS + bits) as u8);
    let frame_slot = match slot {
        Some(slot) => put(k, objects.node, slot, frame)?,
        None => objects.keep(k, frame)?,
    };
    let table = leaf_table(k, objects, root, address)?;
    let flags = MapFlags::READ | MapFlags::WRITE;
    let (first, count) = ((address >> PAGE_BITS) as usize & (TABLE_ENTRIES - 1), 1 << bits);
    let cap = mapping::cap(&frame, table, (first, count), (0, flags));
    let address = objects.next_slot()?;
    let slot = slot_in(k, objects.node, address)?;
    derivation::insert_mapping(k, frame_slot, slot, &cap);
    let physical = k.physical(memory);
    let entry = k.arch().page_entry(physical, 3, flags);
    let shadow = ShadowEntry::Mapping(slot).pack();
    mapping::write_entries(k, table, (first, count), (entry, PAGE_SIZE as u64), shadow);
    k.get(table).used += count as u16;
    k.arch().publish_entries();
    Ok(memory)
}

/// Maps one page of memory that never becomes a kernel object. No capability names it: it stays as long as the table.
fn map_page<A: Arch>(
    k: &mut Kernel<A>,
    objects: &mut Objects,
    root: usize,
    address: u64,
    physical: u64,
    flags: MapFlags,
) -> Result<(), &'static str> {
    let table = leaf_table(k, objects, root, address)?;
    let index = (address >> PAGE_BITS) as usize & (TABLE_ENTRIES - 1);
    let entry = k.arch().page_entry(physical, 3, flags);
    mapping::write_entries(k, table, (index, 1), (entry, 0), ShadowEntry::Boot.pack());
    k.get(table).used += 1;
    Ok(())
}

/// Returns the table of level 3 for an address. Makes the tables above it as needed.
fn leaf_table<A: Arch>(
    k: &mut Kernel<A>,
    objects: &mut Objects,
    root: usize,
    address: u64,
) -> Result<Ref<PageTable>, &'static str> {
    // SAFETY: the root was just made.
    let mut at = unsafe { Ref::<PageTable>::at(root) }.ok_or("no table")?;
    for level in 0..3 {
        let index = (address >> entry_bits(level)) as usize & (TABLE_ENTRIES - 1);
        let shadow = k.get(at).shadows.get(index).copied().map(ShadowEntry::unpack);
        at = match shadow {
            Some(ShadowEntry::Table(number)) => {
                let child = k.arch().locate(number, SLOT_SHIFT);
                // SAFETY: tables in shadow entries are alive.
                unsafe { Ref::at(child) }.ok_or("no table")?
            }
            _ => new_table(k, objects, at, index, level + 1)?,
        };
    }
    Ok(at)
}

/// Makes a table and installs it in its parent.
fn new_table<A: Arch>(
    k: &mut Kernel<A>,
    objects: &mut Objects,
    parent: Ref<PageTable>,
    index: usize,
    level: u32,
) -> Result<Ref<PageTable>, &'static str> {
    let object = objects.take(k, PAGE_TABLE_BITS)?;
    page_table::initialise(k, object, level.into());
    objects.keep(k, Cap::new(Kind::PageTable, object, PAGE_TABLE_BITS as u8).with_number(level))?;
    // SAFETY: just made of zeroed memory.
    let made = unsafe { Ref::<PageTable>::at(object) }.ok_or("no table")?;
    page_table::install(k, made, parent, index);
    Ok(made)
}

/// Writes the boot information into its page.
fn write_info(page: usize, plan: &Plan<'_>) {
    let mut untyped = [UntypedInfo::default(); MAX_UNTYPED];
    let count = plan.memory.len().min(MAX_UNTYPED);
    for (to, from) in untyped.iter_mut().zip(plan.memory) {
        *to = *from;
    }
    let (tree, size) = plan.device_tree;
    let info = BootInfo {
        magic: MAGIC,
        version: VERSION,
        untyped_count: count as u64,
        archive_address: plan.archive.0,
        archive_size: plan.archive.1,
        device_tree: if size == 0 { 0 } else { DEVICE_TREE + (tree & (PAGE_SIZE as u64 - 1)) },
        device_tree_size: size,
        counter_frequency: plan.counter_frequency,
        core: plan.core,
        untyped,
    };
    // SAFETY: the page was just taken for this, is zeroed and page-aligned, and a `BootInfo` fits into it.
    unsafe { (page as *mut BootInfo).write(info) };
}
