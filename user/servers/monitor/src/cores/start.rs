//! Starting another core: memory of its own, with a kernel, `init`, and the first channel in one block.
//!
//! Memory given to another core is no longer used here: the capabilities to it stay with this process, which derives
//! nothing from them, and marks them as lent. The block is written through an uncached mapping, because the other core
//! begins without caches.

use arrayvec::ArrayVec;
use tench::memory::{self, Window};
use tench_abi::boot::{CORE_MAGIC, INIT_FILE, KERNEL_FILE, MAX_CORE_MEMORY, MemoryKind, UntypedInfo, VERSION};
use tench_abi::layout::slot;
use tench_abi::memory::PAGE_SIZE;
use tench_channel::Side;
use tench_loader::Archive;
use tench_loader::addresses::Randomness;
use tench_mem_interface::{Block, Mem};
use tench_monitor::cores::boot::{BLOCK_BITS, CHANNEL_BITS, Layout};
use tench_monitor::cores::share::LEAST;
use tench_monitor::transfer::grant::next_block_bits;
use tench_monitor_interface::protocol::State;
use tench_sys::{Cap, CapAddress, Error, Frame, Kind, Machine, MapFlags, OWN_CSPACE, Placement, Untyped};
use tench_system::{ARCHIVE_PATH, System};

use crate::cores::channel;
use crate::cores::peer::Peer;
use crate::kernel::KERNEL;
use crate::{Result, no_memory};

/// Log2 of the largest block that is requested: the largest frame.
const LARGEST: u32 = 30;

/// Memory of a core.
type Blocks = ArrayVec<UntypedInfo, MAX_CORE_MEMORY>;

/// Blocks taken for a core; the first is the one with which it begins.
type Taken = ArrayVec<Block, MAX_CORE_MEMORY>;

/// Data with which every core is started.
pub struct Starter<'a> {
    pub machine: Machine,
    /// The kernel's image, and `init`.
    pub files: (&'a [u8], &'a [u8]),
    /// Physical address and size of the boot archive.
    pub archive: (u64, u64),
}

/// A core that was started.
pub struct Started {
    /// Frame of the channel to it.
    pub channel: Cap<Frame>,
    /// Bytes of memory of its own.
    pub memory: u64,
}

impl<'a> Starter<'a> {
    /// Returns a starter with the files of an archive, which is at a physical address.
    pub fn new(machine: Machine, archive: &Archive<'a>, range: (u64, u64)) -> Result<Starter<'a>> {
        let file = |path| archive.find(path).map(|file| file.contents).ok_or(Error::InvalidArgument);
        Ok(Starter { machine, files: (file(KERNEL_FILE)?, file(INIT_FILE)?), archive: range })
    }

    /// Starts a core with about this many bytes of memory.
    ///
    /// # Errors
    /// Fails with `OutOfMemory` if it would have less than [`LEAST`], with the kernel's error if it cannot be started
    /// (`CoreRunning`, `CoreRefused`), and with `InvalidArgument` if the image's files are not as they should be. What
    /// was taken for the core is then returned.
    pub fn start(&self, core: u64, memory: u64) -> Result<Started> {
        let mut taken = Taken::new();
        let started = self.start_with(core, memory, &mut taken);
        if started.is_err() {
            taken.iter().for_each(give_back);
        }
        started
    }

    fn start_with(&self, core: u64, memory: u64, taken: &mut Taken) -> Result<Started> {
        let layout = Layout::new(self.files.0, self.files.1).ok_or(Error::InvalidArgument)?;
        let block = allocate(BLOCK_BITS)?;
        taken.push(block);
        take_memory(memory, taken)?;
        let ram = |address, size_bits| UntypedInfo { address, size_bits, kind: MemoryKind::Ram as u32 };
        let whole = |block: &Block| Ok(ram(address(block)?, block.size_bits));
        let mut blocks = taken.iter().skip(1).map(whole).collect::<Result<Blocks>>()?;
        let start = address(&block)?;
        // Of the smallest blocks, some may be left over.
        let rest = layout.free_blocks().map(|(offset, bits)| ram(start + offset as u64, bits));
        blocks.extend(rest.take(blocks.remaining_capacity()));
        self.fill(core, (&block, start), &layout, &blocks)?;
        let channel = make_channel(&block)?;
        let [image, page] = [layout.kernel, layout.page].map(|offset| start + offset as u64);
        KERNEL.start_core(core, image, page)?;
        lend(taken);
        Ok(Started { channel, memory: blocks.iter().map(|block| 1 << block.size_bits).sum() })
    }

    /// Writes the block, which begins at a physical address. Afterwards it is not mapped here.
    fn fill(&self, core: u64, (block, start): (&Block, u64), layout: &Layout, blocks: &[UntypedInfo]) -> Result<()> {
        let slot = memory::take_slot().map_err(no_memory)?;
        let frame = block.untyped.retype::<Frame>(u64::from(BLOCK_BITS), slot)?;
        let flags = MapFlags::READ | MapFlags::WRITE | MapFlags::UNCACHED;
        let window = Window::new(frame, BLOCK_BITS, flags).map_err(no_memory)?;
        window.write(layout.kernel, self.files.0);
        window.write(layout.init, self.files.1);
        self.write_page(&window, core, start, layout, blocks);
        drop(window);
        block.untyped.revoke()?;
        memory::free_slot(slot);
        Ok(())
    }

    /// Writes the boot page, a [`CoreBoot`](tench_abi::boot::CoreBoot), word by word.
    fn write_page(&self, window: &Window, core: u64, start: u64, layout: &Layout, blocks: &[UntypedInfo]) {
        let words = [
            CORE_MAGIC,
            VERSION,
            core,
            self.machine.device_tree,
            self.machine.device_tree_size,
            start + layout.init as u64,
            self.archive.0,
            self.archive.1,
            start,
            u64::from(CHANNEL_BITS),
            blocks.len() as u64,
        ];
        let memory = blocks
            .iter()
            .flat_map(|block| [block.address, u64::from(block.size_bits) | u64::from(block.kind) << u32::BITS]);
        for (index, word) in words.into_iter().chain(memory).enumerate() {
            window.write64(layout.page + index * size_of::<u64>(), word);
        }
    }
}

const _: () = assert!(size_of::<tench_abi::boot::CoreBoot>() == (11 + 2 * MAX_CORE_MEMORY) * size_of::<u64>());
const _: () = assert!(size_of::<tench_abi::boot::CoreBoot>() <= PAGE_SIZE);

/// Makes the frame at the beginning of the block, filled with zeros as a new channel is.
fn make_channel(block: &Block) -> Result<Cap<Frame>> {
    let slot = memory::take_slot().map_err(no_memory)?;
    block.untyped.retype_many(Kind::Frame, u64::from(CHANNEL_BITS), 1, Placement::At(0), OWN_CSPACE, slot)?;
    Ok(Cap::new(slot))
}

/// Tells the kernel that the memory is another core's, so that objects which that core makes of it, and sends here, can
/// be imported. The block with the channel is divided before, because the channel's frame, which was made of it here,
/// stays.
fn lend(taken: &Taken) {
    let mark = |memory: Cap<Untyped>| KERNEL.export(OWN_CSPACE, memory.address());
    for (number, block) in taken.iter().enumerate() {
        if number > 0 {
            // Nothing was derived from it, so it can be marked. If marking fails, what comes from there is refused.
            let _ = mark(block.untyped);
            continue;
        }
        for _ in CHANNEL_BITS..block.size_bits {
            let Ok(slot) = memory::take_slot() else { return };
            match block.untyped.split(slot) {
                Ok(upper) => drop(mark(upper)),
                Err(_) => memory::free_slot(slot),
            }
        }
    }
}

/// Returns a block of memory, charged to this process's account.
fn allocate(bits: u32) -> Result<Block> {
    let slot = memory::take_slot().map_err(no_memory)?;
    Mem::STANDARD.allocate(bits, slot).map_err(|_| {
        memory::free_slot(slot);
        Error::OutOfMemory
    })
}

/// Returns the physical address of a block.
fn address(block: &Block) -> Result<u64> {
    Ok(block.untyped.locate(KERNEL)?.address)
}

/// Returns a block that no core knows to the memory server.
fn give_back(block: &Block) {
    // If the memory server does not accept it, it stays on this process's account.
    let _ = block.untyped.revoke();
    if Mem::STANDARD.free(block.number).is_ok() {
        memory::free_slot(block.untyped.address());
    }
}

/// Takes about this many bytes, in the largest blocks that are free.
fn take_memory(bytes: u64, taken: &mut Taken) -> Result<()> {
    let (mut left, mut limit) = (bytes, LARGEST);
    while let Some(bits) = next_block_bits(left, limit).filter(|_| !taken.is_full()) {
        match allocate(bits) {
            Ok(block) => {
                left = left.saturating_sub(1 << block.size_bits);
                taken.push(block);
            }
            Err(_) => limit = bits - 1,
        }
    }
    if bytes - left >= LEAST { Ok(()) } else { Err(Error::OutOfMemory) }
}

/// The boot archive.
pub struct Files {
    pub archive: Archive<'static>,
    /// Physical address and size.
    pub range: (u64, u64),
}

impl Files {
    /// Maps the archive. On a further core its frames follow that of the channel.
    pub fn open(core: u64) -> Result<Files> {
        let first = if core == 0 { slot::EXTRA } else { CapAddress(slot::EXTRA.0 + 1) };
        let mut random = Randomness::new(Default::default());
        let (shown, archive) = tench_boot::map(first, &mut random).map_err(no_memory)?;
        Ok(Files { archive, range: (first_frame(first)?.locate(KERNEL)?.address, shown.size()) })
    }

    /// Returns the system description.
    pub fn system(&self) -> Option<System<'static>> {
        System::parse(self.archive.find(ARCHIVE_PATH)?.contents).ok()
    }
}

/// Returns the frame in one of the slots for extra capabilities.
pub fn first_frame(slot: CapAddress) -> Result<Cap<Frame>> {
    let is_frame = OWN_CSPACE.identify_at(slot)?.kind == Kind::Frame;
    if is_frame { Ok(Cap::new(slot)) } else { Err(Error::InvalidCapability) }
}

/// Starts a core and opens the channel to it.
pub fn start_one(starter: &Starter<'_>, core: u64, memory: u64) -> Peer {
    let mut peer = Peer::new(core);
    let opened = starter.start(core, memory).and_then(|started| {
        let channel = channel::open(started.channel, Side::First, core)?;
        Ok((started.memory, channel))
    });
    peer.state = match opened {
        Ok((memory, channel)) => {
            (peer.memory, peer.channel) = (memory, Some(channel));
            State::Starting
        }
        Err(Error::OutOfMemory) => State::NoMemory,
        Err(_) => State::Refused,
    };
    peer
}
