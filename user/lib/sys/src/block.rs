//! The thread block: a thread's data about itself, reached through its thread pointer.
//!
//! `TPIDR_EL0` holds the address of the running thread's [`ThreadBlock`], or 0 before the runtime has set it up. The
//! creator of a thread writes the block before starting it. C programs and assembly rely on the offsets.

use core::cell::Cell;
use core::mem::{MaybeUninit, offset_of};

use tench_abi::CapAddress;
use tench_abi::fault::Registers;
use tench_abi::message::{IpcBuffer, MAX_CAPS, MAX_WORDS, REGISTER_WORDS};

/// The data at the thread pointer.
///
/// Only the block's own thread reads and writes it while that thread runs.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ThreadBlock {
    /// Address of this block.
    pub this: Cell<usize>,
    /// Address of the thread's IPC buffer, or 0.
    pub ipc_buffer: Cell<usize>,
    /// The thread.
    pub thread: Cell<CapAddress>,
    /// The thread's own notification, on which it sleeps and is woken.
    pub notification: Cell<CapAddress>,
    /// Lowest address of the thread's stack.
    pub stack_bottom: Cell<usize>,
    /// One past the highest address of the thread's stack.
    pub stack_top: Cell<usize>,
    /// Reserved for the runtime.
    pub runtime: Cell<usize>,
    /// Not zero while the thread panics, so that a panic in the panic handler ends the program at once.
    pub panicking: Cell<usize>,
}

const _: () = assert!(offset_of!(ThreadBlock, ipc_buffer) == 8);
const _: () = assert!(size_of::<ThreadBlock>() == 64);

impl ThreadBlock {
    /// Returns a block in which nothing is set.
    pub const fn new() -> ThreadBlock {
        ThreadBlock {
            this: Cell::new(0),
            ipc_buffer: Cell::new(0),
            thread: Cell::new(CapAddress::NULL),
            notification: Cell::new(CapAddress::NULL),
            stack_bottom: Cell::new(0),
            stack_top: Cell::new(0),
            runtime: Cell::new(0),
            panicking: Cell::new(0),
        }
    }

    /// Installs this block, which is never freed, as that of the running thread.
    ///
    /// # Safety
    /// `ipc_buffer` of the block must be 0 or the address at which the thread's IPC buffer is mapped, readable and
    /// writable, for as long as the thread runs, and no other thread may use the block meanwhile.
    pub unsafe fn install(&'static self) {
        self.this.set(core::ptr::from_ref(self).addr());
        #[cfg(all(target_arch = "aarch64", target_os = "none"))]
        {
            let address = core::ptr::from_ref(self);
            // SAFETY: the thread pointer is the program's own; the caller guarantees that the block is valid.
            unsafe { core::arch::asm!("msr tpidr_el0, {}", in(reg) address, options(nostack, preserves_flags)) };
        }
    }

    /// Returns the running thread's block, if one is installed. It belongs to this thread alone.
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
            // SAFETY: the register is 0, or was set by `install` or by the thread's creator to a block that stays alive
            // as long as the thread runs.
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

/// Returns the address of the running thread's IPC buffer, or null.
#[inline(always)]
pub fn ipc_buffer() -> *mut IpcBuffer {
    match ThreadBlock::current() {
        Some(block) => core::ptr::with_exposed_provenance_mut(block.ipc_buffer.get()),
        None => core::ptr::null_mut(),
    }
}

/// Returns the address of a field of the running thread's IPC buffer by its offset; `None` without a buffer.
///
/// The buffer is shared with the kernel, so no references into it are made; it is read and written in single accesses.
#[inline(always)]
fn field<T>(offset: usize) -> Option<*mut T> {
    let buffer = ipc_buffer();
    if buffer.is_null() { None } else { Some(buffer.wrapping_byte_add(offset).cast()) }
}

/// Writes the words of a message from the eighth on into the IPC buffer. `words` begins with the eighth.
///
/// Without a buffer it does nothing, and the kernel refuses the message.
#[inline(never)]
pub(crate) fn write_words(words: &[u64]) {
    let Some(buffer) = field::<u64>(offset_of!(IpcBuffer, words)) else { return };
    let count = words.len().min(MAX_WORDS - REGISTER_WORDS);
    // SAFETY: the buffer is mapped (`install`), and the copy ends with word `MAX_WORDS`. The kernel accesses the buffer
    // only during system calls of this thread, and those count as reading memory, so the copy is complete before.
    unsafe { buffer.wrapping_add(REGISTER_WORDS).copy_from_nonoverlapping(words.as_ptr(), count) };
}

/// Reads the words of a received message from the eighth on from the IPC buffer.
#[inline(never)]
pub(crate) fn read_words(words: &mut [MaybeUninit<u64>]) {
    let Some(buffer) = field::<u64>(offset_of!(IpcBuffer, words)) else {
        // The kernel delivers more than eight words only to a thread with an IPC buffer.
        words.fill(MaybeUninit::new(0));
        return;
    };
    let count = words.len().min(MAX_WORDS - REGISTER_WORDS);
    // SAFETY: the buffer is mapped (`install`), and the copy ends with word `MAX_WORDS`. The kernel writes the buffer
    // only during system calls of this thread, which count as writing memory.
    unsafe { words.as_mut_ptr().cast::<u64>().copy_from_nonoverlapping(buffer.wrapping_add(REGISTER_WORDS), count) };
}

/// Writes the capabilities of a message to be sent into the IPC buffer.
#[inline(never)]
pub(crate) fn write_caps(caps: &[u32]) {
    let Some(buffer) = field::<u32>(offset_of!(IpcBuffer, send_caps)) else { return };
    for (index, cap) in caps.iter().take(MAX_CAPS).enumerate() {
        // SAFETY: the buffer is mapped (`install`), and the index is below `MAX_CAPS`.
        unsafe { buffer.wrapping_add(index).write_volatile(*cap) };
    }
}

/// Offers empty slots for the capabilities of the next message or reply that this thread receives, in place of those
/// offered before. The offer stands until capabilities arrive, which removes the slots they use from it.
pub fn offer_slots(slots: &[CapAddress]) {
    let Some(buffer) = field::<u32>(offset_of!(IpcBuffer, receive_slots)) else { return };
    for index in 0..MAX_CAPS {
        let slot = slots.get(index).map_or(0, |slot| slot.0);
        // SAFETY: the buffer is mapped (`install`), and the index is below `MAX_CAPS`.
        unsafe { buffer.wrapping_add(index).write_volatile(slot) };
    }
}

/// Returns the slots on offer, `NULL` where there is none, so that a function that offers others for a while can
/// restore them.
pub fn offered_slots() -> [CapAddress; MAX_CAPS] {
    let mut offered = [CapAddress::NULL; MAX_CAPS];
    if let Some(buffer) = field::<u32>(offset_of!(IpcBuffer, receive_slots)) {
        for (index, slot) in offered.iter_mut().enumerate() {
            // SAFETY: the buffer is mapped (`install`), and the index is below `MAX_CAPS`.
            *slot = CapAddress(unsafe { buffer.wrapping_add(index).read_volatile() });
        }
    }
    offered
}

/// Returns the first slot on offer. It changes as soon as capabilities arrive or other slots are offered.
#[inline(always)]
pub fn first_offered_slot() -> CapAddress {
    match field::<u32>(offset_of!(IpcBuffer, receive_slots)) {
        // SAFETY: the buffer is mapped (`install`).
        Some(first) => CapAddress(unsafe { first.read_volatile() }),
        None => CapAddress::NULL,
    }
}

/// Removes the first `count` slots, in which capabilities have arrived, from the offer. The others move up.
#[inline(never)]
pub(crate) fn take_slots(count: usize) -> [CapAddress; MAX_CAPS] {
    let mut taken = [CapAddress::NULL; MAX_CAPS];
    let Some(buffer) = field::<u32>(offset_of!(IpcBuffer, receive_slots)) else { return taken };
    let count = count.min(MAX_CAPS);
    for (index, place) in taken.iter_mut().enumerate() {
        // SAFETY: the buffer is mapped (`install`), and the index is below `MAX_CAPS`.
        let slot = unsafe { buffer.wrapping_add(index).read_volatile() };
        if index < count {
            *place = CapAddress(slot);
        } else {
            // SAFETY: as above.
            unsafe { buffer.wrapping_add(index - count).write_volatile(slot) };
        }
    }
    for index in MAX_CAPS - count..MAX_CAPS {
        // SAFETY: as above.
        unsafe { buffer.wrapping_add(index).write_volatile(0) };
    }
    taken
}

/// Contents of the IPC buffer between writing a message there and the system call that sends it. An upcall that sends
/// messages itself saves the interrupted thread's contents here.
#[derive(Clone, Copy, Debug)]
pub struct Staged {
    words: [u64; MAX_WORDS - REGISTER_WORDS],
    send_caps: [u32; MAX_CAPS],
    receive_slots: [u32; MAX_CAPS],
}

impl Staged {
    /// Copies the contents out of the running thread's IPC buffer; returns `None` without one.
    pub fn save() -> Option<Staged> {
        let (words, send_caps, receive_slots) = Self::pointers()?;
        Some(Staged {
            // SAFETY: the buffer is mapped (`install`), and any bytes are numbers.
            words: unsafe { words.read_volatile() },
            // SAFETY: as above.
            send_caps: unsafe { send_caps.read_volatile() },
            // SAFETY: as above.
            receive_slots: unsafe { receive_slots.read_volatile() },
        })
    }

    /// Restores the saved contents.
    pub fn restore(&self) {
        let Some((words, send_caps, receive_slots)) = Self::pointers() else { return };
        // SAFETY: the buffer is mapped (`install`), and nobody holds a reference into it.
        unsafe { words.write_volatile(self.words) };
        // SAFETY: as above.
        unsafe { send_caps.write_volatile(self.send_caps) };
        // SAFETY: as above.
        unsafe { receive_slots.write_volatile(self.receive_slots) };
    }

    fn pointers() -> Option<(*mut [u64; MAX_WORDS - REGISTER_WORDS], *mut [u32; MAX_CAPS], *mut [u32; MAX_CAPS])> {
        let words = field(offset_of!(IpcBuffer, words) + REGISTER_WORDS * size_of::<u64>())?;
        Some((words, field(offset_of!(IpcBuffer, send_caps))?, field(offset_of!(IpcBuffer, receive_slots))?))
    }
}

/// Returns the floating-point registers in the words of the IPC buffer.
pub(crate) fn read_float() -> Option<[u128; 32]> {
    let pointer = field::<[u128; 32]>(offset_of!(IpcBuffer, words))?;
    // SAFETY: the buffer is mapped and aligned to 1,024 bytes (`install`), and any bytes are registers.
    Some(unsafe { pointer.read_volatile() })
}

/// Writes floating-point registers into the words of the IPC buffer.
pub(crate) fn write_float(registers: &[u128; 32]) -> Option<()> {
    let pointer = field::<[u128; 32]>(offset_of!(IpcBuffer, words))?;
    // SAFETY: as above, and nobody holds a reference into it.
    unsafe { pointer.write_volatile(*registers) };
    Some(())
}

/// Returns the registers in the IPC buffer: in an upcall, those of the interrupted thread.
pub fn read_registers() -> Option<Registers> {
    let pointer = field::<Registers>(offset_of!(IpcBuffer, registers))?;
    // SAFETY: the buffer is mapped (`install`), and any bytes are registers.
    Some(unsafe { pointer.read_volatile() })
}

/// Writes registers into the IPC buffer, from where a reply with the label
/// [`REGISTERS`](tench_abi::fault::reply::REGISTERS) takes them. Returns `None` without a buffer.
pub fn write_registers(registers: &Registers) -> Option<()> {
    let pointer = field::<Registers>(offset_of!(IpcBuffer, registers))?;
    // SAFETY: the buffer is mapped (`install`), and nobody holds a reference into it.
    unsafe { pointer.write_volatile(*registers) };
    Some(())
}
