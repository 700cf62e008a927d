//! Message areas: the one place where the kernel reads and writes what user programs reach too.
//!
//! A message area lies whole in a frame whose capability its thread holds, at an offset that was checked when it was
//! bound, and is reached through the kernel's own addresses; the thread forgets it before the frame goes. So no address
//! that a program names is ever followed.
//!
//! Everything here is hostile, at every moment. Frames are shared between cores, and a program on another core can
//! write an area while this kernel reads it: between two instructions, too. So
//!
//! - a word is read once, by one load, and its reader hands the value on. Nobody reads a field again after having
//!   checked it, and nobody reads back what the kernel has written here;
//! - what has to have a certain form is made so in the kernel's own copy, after it was read: a thread's flags
//!   ([`load_registers`](crate::thread::load_registers)), a capability's address (looked up like an argument). How many
//!   words and capabilities a message has comes from the tag, which travels in a register;
//! - whatever is found is right. Words that change while they are copied arrive half old and half new, as if their
//!   sender had written them so. `upcall_running` can be lied about: then the thread's own upcall is entered again, or
//!   its endpoint is asked.

use core::mem::offset_of;

use tench_abi::fault::{Registers, Report};
use tench_abi::message::{MAX_CAPS, MAX_WORDS, MessageArea, REGISTER_WORDS};

use crate::object::Ref;
use crate::thread::Thread;
use crate::{Arch, Kernel};

/// A bound message area. It is used before the next window, or looked up again.
#[derive(Clone, Copy)]
pub struct Area {
    /// Kernel virtual address, a multiple of its size.
    address: usize,
}

impl Area {
    /// The message area of a thread, if one is bound.
    #[inline]
    pub fn of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Area> {
        let address = k.get(thread).message_area;
        (address != 0).then_some(Area { address })
    }

    /// Reads a field.
    #[inline]
    fn read<T: Copy>(self, offset: usize) -> T {
        // SAFETY: 1,024 bytes of live, aligned memory (head of this module); `offset` is that of a field of type `T`,
        // which is made of integers.
        unsafe { ((self.address + offset) as *const T).read_volatile() }
    }

    /// Writes a field.
    #[inline]
    fn write<T: Copy>(self, offset: usize, value: T) {
        // SAFETY: as in `read`.
        unsafe { ((self.address + offset) as *mut T).write_volatile(value) };
    }

    /// Copies message words from `REGISTER_WORDS` up to `length` from here.
    #[inline]
    pub fn copy_words<A: Arch>(self, k: &mut Kernel<A>, to: Area, length: usize) {
        let words = length.min(MAX_WORDS).saturating_sub(REGISTER_WORDS);
        let first = offset_of!(MessageArea, words) + REGISTER_WORDS * size_of::<u64>();
        // SAFETY: at most 56 words behind the first eight of each area. Areas are aligned to their size, so two are the
        // same or apart; no reference to either exists.
        unsafe { k.arch().copy(self.address + first, to.address + first, words) };
    }

    /// Writes a message word.
    pub fn set_word(self, index: usize, word: u64) {
        assert!(index < MAX_WORDS);
        self.write(offset_of!(MessageArea, words) + index * size_of::<u64>(), word);
    }

    /// What the thread sends as its capability `index`.
    pub fn sent_cap(self, index: usize) -> u32 {
        assert!(index < MAX_CAPS);
        self.read(offset_of!(MessageArea, send_caps) + index * size_of::<u32>())
    }

    /// Where the thread receives capability `index`.
    pub fn receive_slot(self, index: usize) -> u32 {
        assert!(index < MAX_CAPS);
        self.read(offset_of!(MessageArea, receive_slots) + index * size_of::<u32>())
    }

    /// Whether the thread is in an upcall, by its own account.
    #[inline]
    pub fn upcall_is_running(self) -> bool {
        self.read::<u64>(offset_of!(MessageArea, upcall_running)) != 0
    }

    /// Says whether the thread is in an upcall.
    #[inline]
    pub fn set_upcall_running(self, running: bool) {
        self.write(offset_of!(MessageArea, upcall_running), u64::from(running));
    }

    /// Says what happened to the thread.
    #[inline]
    pub fn set_fault(self, report: Report) {
        self.write(offset_of!(MessageArea, fault), report);
    }

    /// Copies a thread's registers here.
    #[inline]
    pub fn store_registers<A: Arch>(self, k: &mut Kernel<A>, thread: Ref<Thread>) {
        let from = (&raw const k.get(thread).registers).addr();
        let to = self.address + offset_of!(MessageArea, registers);
        // SAFETY: a live thread's registers and room for as many; no reference to either exists.
        unsafe { k.arch().copy(from, to, size_of::<Registers>() / size_of::<u64>()) };
    }

    /// Copies registers from here into a thread, as they are. Any numbers are valid there.
    #[inline]
    pub fn load_registers<A: Arch>(self, k: &mut Kernel<A>, thread: Ref<Thread>) {
        let from = self.address + offset_of!(MessageArea, registers);
        let to = (&raw mut k.get(thread).registers).addr();
        // SAFETY: as in `store_registers`.
        unsafe { k.arch().copy(from, to, size_of::<Registers>() / size_of::<u64>()) };
    }
}
