//! The thread block: what a thread knows about itself, reached through its thread pointer.
//!
//! `TPIDR_EL0` holds the address of the running thread's [`ThreadBlock`], or 0 before the runtime has set it up.
//! Whoever starts a thread writes its block first. The offsets are part of what C programs and assembly rely on.

use core::cell::Cell;
use core::mem::{MaybeUninit, offset_of};

use tench_abi::CapAddress;
use tench_abi::fault::Registers;
use tench_abi::message::{MAX_CAPS, MAX_WORDS, MessageArea, REGISTER_WORDS};

/// What lies where the thread pointer points.
///
/// Only its own thread reads and writes it while that thread runs.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ThreadBlock {
    /// Address of this block.
    pub this: Cell<usize>,
    /// Address of the thread's message area, or 0.
    pub message_area: Cell<usize>,
    /// The thread.
    pub thread: Cell<CapAddress>,
    /// A notification of the thread's own, on which it sleeps and is woken.
    pub notification: Cell<CapAddress>,
    /// Lowest address of the thread's stack.
    pub stack_bottom: Cell<usize>,
    /// One past the highest address of the thread's stack.
    pub stack_top: Cell<usize>,
    /// The runtime's own.
    pub runtime: Cell<usize>,
    /// Not zero while the thread panics, so that a panic in the panic handler ends at once.
    pub panicking: Cell<usize>,
}

const _: () = assert!(offset_of!(ThreadBlock, message_area) == 8);
const _: () = assert!(size_of::<ThreadBlock>() == 64);

impl ThreadBlock {
    /// A block in which nothing is set.
    pub const fn new() -> ThreadBlock {
        ThreadBlock {
            this: Cell::new(0),
            message_area: Cell::new(0),
            thread: Cell::new(CapAddress::NULL),
            notification: Cell::new(CapAddress::NULL),
            stack_bottom: Cell::new(0),
            stack_top: Cell::new(0),
            runtime: Cell::new(0),
            panicking: Cell::new(0),
        }
    }

    /// Makes a block that lives for ever the running thread's.
    ///
    /// # Safety
    /// `message_area` of the block must be 0 or the address at which the thread's message area is mapped, readable and
    /// writable, for as long as the thread runs, and no other thread may use the block meanwhile.
    pub unsafe fn install(&'static self) {
        self.this.set(core::ptr::from_ref(self).addr());
        #[cfg(all(target_arch = "aarch64", target_os = "none"))]
        {
            let address = core::ptr::from_ref(self);
            // SAFETY: the thread pointer is the program's own; the caller answers for what it points to.
            unsafe { core::arch::asm!("msr tpidr_el0, {}", in(reg) address, options(nostack, preserves_flags)) };
        }
    }

    /// The running thread's block, if one is installed. It belongs to this thread alone.
    #[inline(always)]
    pub fn current() -> Option<&'static ThreadBlock> {
        #[cfg(all(target_arch = "aarch64", target_os = "none"))]
        {
            let address: *const ThreadBlock;
            // SAFETY: reads a register.
            unsafe {
                core::arch::asm!(
                    "mrs {}, tpidr_el0",
                    out(reg) address,
                    options(nomem, nostack, preserves_flags)
                );
            }
            // SAFETY: the register is 0 or was set by `install`, or by whoever started the thread with a block that
            // it keeps alive as long as the thread runs.
            unsafe { address.as_ref() }
        }
        #[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
        None
    }
}

impl Default for ThreadBlock {
    fn default() -> Self {
        Self::new()
    }
}

/// The running thread's message area, or null.
#[inline(always)]
pub fn message_area() -> *mut MessageArea {
    match ThreadBlock::current() {
        Some(block) => core::ptr::with_exposed_provenance_mut(block.message_area.get()),
        None => core::ptr::null_mut(),
    }
}

/// A field of the running thread's message area, by its offset; `None` without a message area.
///
/// The area is shared with the kernel, so nobody makes references into it; it is read and written in single accesses.
#[inline(always)]
fn field<T>(offset: usize) -> Option<*mut T> {
    let area = message_area();
    if area.is_null() { None } else { Some(area.wrapping_byte_add(offset).cast()) }
}

/// Writes words 8.. of a message into the message area. `words` are those from the eighth on.
///
/// Without a message area nothing happens, and the kernel refuses the message.
#[inline(never)]
pub(crate) fn write_words(words: &[u64]) {
    let Some(area) = field::<u64>(offset_of!(MessageArea, words)) else { return };
    let count = words.len().min(MAX_WORDS - REGISTER_WORDS);
    // SAFETY: the area is mapped (`install`), and what is written ends with word `MAX_WORDS`. The kernel looks at it
    // only during system calls of this thread, before which it is written because they count as reading memory.
    unsafe { area.wrapping_add(REGISTER_WORDS).copy_from_nonoverlapping(words.as_ptr(), count) };
}

/// Reads words 8.. of a received message from the message area.
#[inline(never)]
pub(crate) fn read_words(words: &mut [MaybeUninit<u64>]) {
    let Some(area) = field::<u64>(offset_of!(MessageArea, words)) else {
        // The kernel delivers more than eight words only to a thread with a message area.
        words.fill(MaybeUninit::new(0));
        return;
    };
    let count = words.len().min(MAX_WORDS - REGISTER_WORDS);
    // SAFETY: the area is mapped (`install`), and what is read ends with word `MAX_WORDS`. The kernel writes it only
    // during system calls of this thread, which count as writing memory.
    unsafe { words.as_mut_ptr().cast::<u64>().copy_from_nonoverlapping(area.wrapping_add(REGISTER_WORDS), count) };
}

/// Writes what a message carries along into the message area.
#[inline(never)]
pub(crate) fn write_caps(caps: &[u32]) {
    let Some(area) = field::<u32>(offset_of!(MessageArea, send_caps)) else { return };
    for (index, cap) in caps.iter().take(MAX_CAPS).enumerate() {
        // SAFETY: the area is mapped (`install`), and the index is below `MAX_CAPS`.
        unsafe { area.wrapping_add(index).write_volatile(*cap) };
    }
}

/// Offers empty slots for the capabilities of the next message that this thread receives, or of the next reply; those
/// offered before are forgotten. The offer stands until capabilities arrive: the used slots leave it then.
pub fn offer_slots(slots: &[CapAddress]) {
    let Some(area) = field::<u32>(offset_of!(MessageArea, receive_slots)) else { return };
    for index in 0..MAX_CAPS {
        let slot = slots.get(index).map_or(0, |slot| slot.0);
        // SAFETY: the area is mapped (`install`), and the index is below `MAX_CAPS`.
        unsafe { area.wrapping_add(index).write_volatile(slot) };
    }
}

/// The slots that are on offer, so that whoever offers others for a while can put them back; `NULL` where none is.
pub fn offered_slots() -> [CapAddress; MAX_CAPS] {
    let mut offered = [CapAddress::NULL; MAX_CAPS];
    if let Some(area) = field::<u32>(offset_of!(MessageArea, receive_slots)) {
        for (index, slot) in offered.iter_mut().enumerate() {
            // SAFETY: the area is mapped (`install`), and the index is below `MAX_CAPS`.
            *slot = CapAddress(unsafe { area.wrapping_add(index).read_volatile() });
        }
    }
    offered
}

/// The first slot that is on offer. It is another one as soon as capabilities have arrived, or somebody offers other
/// slots.
#[inline(always)]
pub fn first_offered_slot() -> CapAddress {
    match field::<u32>(offset_of!(MessageArea, receive_slots)) {
        // SAFETY: the area is mapped (`install`).
        Some(first) => CapAddress(unsafe { first.read_volatile() }),
        None => CapAddress::NULL,
    }
}

/// Takes the first `count` slots out of the offer: capabilities have arrived in them. The others move up.
#[inline(never)]
pub(crate) fn take_slots(count: usize) -> [CapAddress; MAX_CAPS] {
    let mut taken = [CapAddress::NULL; MAX_CAPS];
    let Some(area) = field::<u32>(offset_of!(MessageArea, receive_slots)) else { return taken };
    let count = count.min(MAX_CAPS);
    for (index, place) in taken.iter_mut().enumerate() {
        // SAFETY: the area is mapped (`install`), and the index is below `MAX_CAPS`.
        let slot = unsafe { area.wrapping_add(index).read_volatile() };
        if index < count {
            *place = CapAddress(slot);
        } else {
            // SAFETY: as above.
            unsafe { area.wrapping_add(index - count).write_volatile(slot) };
        }
    }
    for index in MAX_CAPS - count..MAX_CAPS {
        // SAFETY: as above.
        unsafe { area.wrapping_add(index).write_volatile(0) };
    }
    taken
}

/// What a message leaves in the message area between the moment that it is written there and the system call that sends
/// it. An upcall that sends messages itself keeps the interrupted thread's here.
#[derive(Clone, Copy, Debug)]
pub struct Staged {
    words: [u64; MAX_WORDS - REGISTER_WORDS],
    send_caps: [u32; MAX_CAPS],
    receive_slots: [u32; MAX_CAPS],
}

impl Staged {
    /// Copies it out of the running thread's message area; `None` without one.
    pub fn save() -> Option<Staged> {
        let (words, send_caps, receive_slots) = Self::places()?;
        Some(Staged {
            // SAFETY: the area is mapped (`install`), and any bytes are numbers.
            words: unsafe { words.read_volatile() },
            // SAFETY: as above.
            send_caps: unsafe { send_caps.read_volatile() },
            // SAFETY: as above.
            receive_slots: unsafe { receive_slots.read_volatile() },
        })
    }

    /// Puts it back.
    pub fn restore(&self) {
        let Some((words, send_caps, receive_slots)) = Self::places() else { return };
        // SAFETY: the area is mapped (`install`), and nobody holds a reference into it.
        unsafe { words.write_volatile(self.words) };
        // SAFETY: as above.
        unsafe { send_caps.write_volatile(self.send_caps) };
        // SAFETY: as above.
        unsafe { receive_slots.write_volatile(self.receive_slots) };
    }

    fn places() -> Option<(*mut [u64; MAX_WORDS - REGISTER_WORDS], *mut [u32; MAX_CAPS], *mut [u32; MAX_CAPS])> {
        let words = field(offset_of!(MessageArea, words) + REGISTER_WORDS * size_of::<u64>())?;
        Some((words, field(offset_of!(MessageArea, send_caps))?, field(offset_of!(MessageArea, receive_slots))?))
    }
}

/// Reads the registers in the message area: in an upcall, those of the interrupted thread.
pub fn read_registers() -> Option<Registers> {
    let place = field::<Registers>(offset_of!(MessageArea, registers))?;
    // SAFETY: the area is mapped (`install`), and any bytes are registers.
    Some(unsafe { place.read_volatile() })
}

/// Writes registers into the message area.
pub(crate) fn write_registers(registers: &Registers) -> Option<()> {
    let place = field::<Registers>(offset_of!(MessageArea, registers))?;
    // SAFETY: the area is mapped (`install`), and nobody holds a reference into it.
    unsafe { place.write_volatile(*registers) };
    Some(())
}
