//! IPC buffers: the only memory that both the kernel and user programs read and write.
//!
//! An IPC buffer lies within a frame to which its thread has a capability, at an offset that was checked when it was
//! bound. The kernel accesses it through its own addresses, and the binding goes before the frame does. So the kernel
//! never follows an address that a program names.
//!
//! The contents are hostile at every moment. Frames are shared between cores, and a program on another core can write a
//! buffer while this kernel reads it, even between two instructions. Hence three rules:
//!
//! - A word is read once, by one load, and its value is passed on. The kernel never reads a field again after checking
//!   it, nor reads back what it has written here.
//! - A value that has to have a certain form gets it in the kernel's own copy, after it was read: a thread's flags
//!   ([`load_registers`](Buffer::load_registers)), a capability's address (looked up like an argument). A
//!   message's number of words and capabilities comes from the tag, which travels in a register.
//! - Any other value is acceptable. Words that change while they are copied arrive half old and half new, as if the
//!   sender had written them so. A false `upcall_running` only means that the thread's own upcall is entered again, or
//!   its endpoint is called.

use core::mem::offset_of;

use tench_abi::fault::Report;
use tench_abi::message::{IpcBuffer, MAX_CAPS, MAX_WORDS, REGISTER_WORDS};

use crate::object::Ref;
use crate::thread::Thread;
use crate::{Arch, Kernel};

/// A bound IPC buffer. Valid until the next preemption point, then to be looked up again.
#[derive(Clone, Copy)]
pub struct Buffer {
    /// Kernel virtual address, a multiple of the buffer's size.
    address: usize,
}

const _: () = assert!(size_of::<[[u64; 2]; 32]>() == MAX_WORDS * size_of::<u64>(), "they fill the words");

impl Buffer {
    /// Returns the IPC buffer of a thread, if one is bound.
    pub fn of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Buffer> {
        let address = k.get(thread).ipc_buffer;
        (address != 0).then_some(Buffer { address })
    }

    /// Reads the field at `offset`.
    fn read<T: Copy>(self, offset: usize) -> T {
        // SAFETY: 1,024 bytes of live, aligned memory (head of this module); `offset` is that of a field of type `T`,
        // which is made of integers.
        unsafe { ((self.address + offset) as *const T).read_volatile() }
    }

    /// Writes the field at `offset`.
    fn write<T: Copy>(self, offset: usize, value: T) {
        // SAFETY: as in `read`.
        unsafe { ((self.address + offset) as *mut T).write_volatile(value) };
    }

    /// Copies the message words from `REGISTER_WORDS` up to `length` to another buffer.
    pub fn copy_words<A: Arch>(self, k: &mut Kernel<A>, to: Buffer, length: usize) {
        if length <= REGISTER_WORDS {
            return;
        }
        let words = length.min(MAX_WORDS) - REGISTER_WORDS;
        let first = offset_of!(IpcBuffer, words) + REGISTER_WORDS * size_of::<u64>();
        // SAFETY: at most 56 words behind the first eight of each buffer. Buffers are aligned to their size, so two of
        // them are identical or disjoint; no reference to either exists.
        unsafe { k.arch().copy(self.address + first, to.address + first, words) };
    }

    /// Returns the address of the capability that the thread sends as number `index`.
    pub fn sent_cap(self, index: usize) -> u32 {
        assert!(index < MAX_CAPS);
        self.read(offset_of!(IpcBuffer, send_caps) + index * size_of::<u32>())
    }

    /// Returns whether any capability that the thread sends, in this message or an earlier one, is to be moved.
    pub fn names_moves(self) -> bool {
        let [a, b] = self.read::<[u64; 2]>(offset_of!(IpcBuffer, send_caps));
        (a | b) & (u64::from(IpcBuffer::MOVE) << 32 | u64::from(IpcBuffer::MOVE)) != 0
    }

    /// Returns the address of the slot in which the thread receives capability `index`.
    pub fn receive_slot(self, index: usize) -> u32 {
        assert!(index < MAX_CAPS);
        self.read(offset_of!(IpcBuffer, receive_slots) + index * size_of::<u32>())
    }

    /// Returns whether the thread is in an upcall, as the buffer says.
    pub fn upcall_is_running(self) -> bool {
        self.read::<u64>(offset_of!(IpcBuffer, upcall_running)) != 0
    }

    /// Records whether the thread is in an upcall.
    pub fn set_upcall_running(self, running: bool) {
        self.write(offset_of!(IpcBuffer, upcall_running), u64::from(running));
    }

    /// Writes the report of the thread's fault.
    pub fn set_fault(self, report: Report) {
        self.write(offset_of!(IpcBuffer, fault), report);
    }

    /// Copies a thread's registers into the buffer.
    pub fn store_registers<A: Arch>(self, k: &mut Kernel<A>, thread: Ref<Thread>) {
        let from = (&raw const k.get(thread).registers).addr();
        let to = self.address + offset_of!(IpcBuffer, registers);
        copy_registers(k, from, to);
    }

    /// Copies a thread's saved floating-point registers into the words of the buffer.
    pub fn store_float<A: Arch>(self, k: &mut Kernel<A>, thread: Ref<Thread>) {
        let from = (&raw const k.get(thread).float.registers).addr();
        let to = self.address + offset_of!(IpcBuffer, words);
        // SAFETY: a live thread's registers and room for as many; no reference to either exists.
        unsafe { k.arch().copy(from, to, MAX_WORDS) };
    }

    /// Copies floating-point registers from the words of the buffer into a thread. Any values are valid there.
    pub fn load_float<A: Arch>(self, k: &mut Kernel<A>, thread: Ref<Thread>) {
        let from = self.address + offset_of!(IpcBuffer, words);
        let to = (&raw mut k.get(thread).float.registers).addr();
        // SAFETY: as in `store_float`.
        unsafe { k.arch().copy(from, to, MAX_WORDS) };
    }

    /// Copies user registers from the buffer into a thread. Of the flags, only those of the condition are kept; the
    /// other registers may have any value.
    #[inline(always)]
    pub fn load_registers<A: Arch>(self, k: &mut Kernel<A>, thread: Ref<Thread>) {
        let from = self.address + offset_of!(IpcBuffer, registers);
        let to = (&raw mut k.get(thread).registers).addr();
        copy_registers(k, from, to);
        let t = k.get(thread);
        t.registers.flags &= 0xf000_0000;
        t.full_restore = 1;
    }
}

/// Copies registers between a live thread and a buffer. (Not inlined: it has no loop, so it is long.)
#[inline(never)]
fn copy_registers<A: Arch>(k: &mut Kernel<A>, from: usize, to: usize) {
    // SAFETY: a live thread's registers and room for as many, or the reverse; no reference to either exists.
    unsafe { k.arch().copy_registers(from, to) };
}
