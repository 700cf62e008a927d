//! Images of a machine: part of its memory and the kernel's state. Restoring one is much faster than making a machine.
//!
//! The caller chooses the part: ranges that are known to hold everything that changes ([`Regions::new`]), or all pages
//! that may hold anything but zeros ([`Regions::written`]).
//!
//! Kernel objects name each other by address, so an image belongs to the machine of which it was taken. No thread may
//! be suspended in the kernel when an image is taken, because images do not contain the coroutines' stacks.

use std::mem::offset_of;
use std::ops::Range;

use tench_abi::Kind;
use tench_abi::fault;
use tench_abi::memory::PAGE_SIZE;
use tench_abi::message::IPC_BUFFER_SIZE;
use tench_kernel::kernel::State;
use tench_kernel::thread::{THREAD_OFFSET, Thread};
use tench_kernel::{Cap, Ref, SlotRef};

use crate::Machine;
use crate::boot::BOOT_MEMORY;
use crate::host::{Host, Registers};
use crate::translation;

/// Size in bytes of the kernel's state, without the machine below it. All of it is plain numbers and addresses.
const STATE: usize = offset_of!(State<Host>, arch);

/// Size in bytes of the kernel's state before its statistics, on which nothing depends and which come last.
const COUNTED: usize = offset_of!(State<Host>, statistics);
/// Range of the registers in a thread.
const REGISTERS: Range<usize> = {
    let start = offset_of!(Thread, registers);
    start..start + size_of::<fault::Registers>()
};

/// A saved part of a machine's state.
#[derive(Default)]
pub struct Image {
    memory: Vec<u8>,
    state: Vec<u8>,
    registers: Registers,
}

/// A word in which two states differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Kernel virtual address, in RAM or in the kernel's state.
    pub address: usize,
    /// The word in the image.
    pub image: u64,
    /// The word in the machine.
    pub machine: u64,
}

/// The memory that images contain: ranges of kernel virtual addresses.
pub struct Regions {
    ranges: Vec<Range<usize>>,
}

impl Regions {
    /// Returns regions that consist of these ranges of `machine`, all of which must be RAM.
    pub fn new(machine: &mut Machine, mut ranges: Vec<Range<usize>>) -> Regions {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            assert!(machine.host().memory.contains(range.start, range.len()), "no RAM at {range:x?}");
            match merged.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Regions { ranges: merged }
    }

    /// Returns regions that consist of all pages of `machine` that may hold anything but zeros by now.
    /// [`Machine::restore_all`] zeroes other pages that were written later.
    pub fn written(machine: &mut Machine) -> Regions {
        let pages = machine.host().memory.written();
        let ranges = pages.into_iter().map(|page| page..page + PAGE_SIZE).collect();
        Regions::new(machine, ranges)
    }

    /// Returns true if an address lies in one of the ranges.
    fn contains(&self, address: usize) -> bool {
        let after = self.ranges.partition_point(|range| range.end <= address);
        self.ranges.get(after).is_some_and(|range| range.contains(&address))
    }

    /// Returns the size of an image in bytes.
    pub fn size(&self) -> usize {
        self.ranges.iter().map(Range::len).sum::<usize>() + STATE
    }
}

/// Copies the memory at an address into a buffer.
fn take(address: usize, bytes: &mut [u8]) {
    let from: *const u8 = std::ptr::with_exposed_provenance(address);
    // SAFETY: RAM of the machine, or its state (callers); the machine's borrow keeps other code from writing it.
    unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) }
}

/// Returns true if the memory at an address equals a buffer.
fn is_equal(bytes: &[u8], address: usize) -> bool {
    let there: *const u8 = std::ptr::with_exposed_provenance(address);
    // SAFETY: as in `take`; nothing is written while the slice lives. Padding is compared too, which at worst makes
    // equal states differ.
    unsafe { std::slice::from_raw_parts(there, bytes.len()) == bytes }
}

/// Copies a buffer to an address.
fn put(bytes: &[u8], address: usize) {
    let to: *mut u8 = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: as in `take`; these bytes were read there, when the kernel's state was complete.
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
}

impl Machine {
    /// Returns the address of the kernel's state.
    fn state_address(&mut self) -> usize {
        std::ptr::from_mut(self.kernel().state()).expose_provenance()
    }

    /// Saves the machine's state in `image`, which may hold an older one.
    pub fn save(&mut self, regions: &Regions, image: &mut Image) {
        assert_eq!(self.suspended(), 0, "somebody is suspended in the kernel");
        image.memory.resize(regions.size() - STATE, 0);
        image.state.resize(STATE, 0);
        let mut rest = &mut image.memory[..];
        for range in &regions.ranges {
            let (part, others) = rest.split_at_mut(range.len());
            take(range.start, part);
            rest = others;
        }
        take(self.state_address(), &mut image.state);
        image.registers = self.host().registers();
    }

    /// Restores an image. Forgets the entries that are suspended in the kernel.
    pub fn restore(&mut self, regions: &Regions, image: &Image) {
        self.forget_suspended();
        let mut rest = &image.memory[..];
        for range in &regions.ranges {
            let (part, others) = rest.split_at(range.len());
            put(part, range.start);
            rest = others;
        }
        assert_eq!(image.state.len(), STATE, "an image that was never taken");
        put(&image.state, self.state_address());
        self.host().set_registers(&image.registers);
    }

    /// Returns true if the state equals an image, except for `thread`'s registers and the kernel's statistics.
    pub fn is_unchanged(&mut self, regions: &Regions, image: &Image, thread: Ref<Thread>) -> bool {
        let state = self.state_address();
        if !is_equal(&image.state[..COUNTED], state) || self.host().registers_differ(&image.registers) {
            return false;
        }
        let hole = thread.address() + REGISTERS.start..thread.address() + REGISTERS.end;
        let mut rest = &image.memory[..];
        for range in &regions.ranges {
            let (part, others) = rest.split_at(range.len());
            // The parts before and behind the hole.
            let before = hole.start.clamp(range.start, range.end) - range.start;
            let behind = hole.end.clamp(range.start, range.end) - range.start;
            if !is_equal(&part[..before], range.start) || !is_equal(&part[behind..], range.start + behind) {
                return false;
            }
            rest = others;
        }
        true
    }

    /// Returns the words in which RAM and the kernel's state differ from an image, except for the kernel's statistics.
    pub fn differences(&mut self, regions: &Regions, image: &Image) -> Vec<Difference> {
        let state = self.state_address();
        let mut parts = vec![(state, &image.state[..COUNTED])];
        let mut rest = &image.memory[..];
        for range in &regions.ranges {
            let (part, others) = rest.split_at(range.len());
            parts.push((range.start, part));
            rest = others;
        }
        let mut found = Vec::new();
        for (start, part) in parts.into_iter().filter(|(start, part)| !is_equal(part, *start)) {
            for (address, bytes) in (start..).step_by(8).zip(part.chunks_exact(8)) {
                let mut there = [0; 8];
                take(address, &mut there);
                if there != bytes {
                    let image = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
                    found.push(Difference { address, image, machine: u64::from_ne_bytes(there) });
                }
            }
        }
        found
    }

    /// Returns whether the machine's own registers (timer, interrupt lines, address space, floating-point unit) equal
    /// those in an image.
    pub fn has_registers_of(&mut self, image: &Image) -> bool {
        !self.host().registers_differ(&image.registers)
    }

    /// Restores what [`is_unchanged`](Self::is_unchanged) leaves out: a thread's registers. The kernel's statistics
    /// stay.
    pub fn restore_registers(&mut self, regions: &Regions, image: &Image, thread: Ref<Thread>) {
        let hole = thread.address() + REGISTERS.start..thread.address() + REGISTERS.end;
        let mut rest = &image.memory[..];
        for range in &regions.ranges {
            let (part, others) = rest.split_at(range.len());
            if range.contains(&hole.start) && hole.end <= range.end {
                put(&part[hole.start - range.start..hole.end - range.start], hole.start);
                return;
            }
            rest = others;
        }
        panic!("the registers of {thread:?} are not part of the image");
    }

    /// Takes an image of the whole machine. The caller has forgotten all entries that are suspended in the kernel; this
    /// function empties the translation cache.
    pub fn save_all(&mut self) -> (Regions, Image) {
        self.host().cache = translation::Cache::default();
        self.host().memory.mark_found(BOOT_MEMORY);
        // Most of the memory is frames of zeros, to which the kernel writes messages at most.
        for cap in self.capabilities(Kind::Frame) {
            self.host().memory.unmark_zeros(cap.object, cap.size());
        }
        self.mark_ipc_buffers();
        let regions = Regions::written(self);
        let mut image = Image::default();
        self.save(&regions, &mut image);
        (regions, image)
    }

    /// Returns all capabilities of a kind.
    fn capabilities(&mut self, kind: Kind) -> Vec<Cap> {
        let k = self.kernel();
        let (mut found, mut at) = (Vec::new(), SlotRef::new(k.state().derivation_tail));
        while let Some(slot) = at {
            let s = k.slot(slot);
            at = SlotRef::new(s.links.previous);
            found.extend((s.cap.kind == kind).then_some(s.cap));
        }
        found
    }

    /// Marks the IPC buffers as possibly written. Must be called whenever threads may have been given IPC buffers, if
    /// [`restore_all`](Self::restore_all) is used.
    pub fn mark_ipc_buffers(&mut self) {
        for cap in self.capabilities(Kind::Thread) {
            // SAFETY: a thread capability names a live thread object.
            let Some(thread) = (unsafe { Ref::<Thread>::at(cap.object + THREAD_OFFSET) }) else { continue };
            let buffer = self.thread(thread).ipc_buffer;
            if buffer != 0 {
                self.host().memory.mark(buffer, IPC_BUFFER_SIZE);
            }
        }
    }

    /// Restores an image that [`save_all`](Self::save_all) has taken.
    pub fn restore_all(&mut self, regions: &Regions, image: &Image) {
        self.forget_suspended();
        for page in self.host().memory.written() {
            if !regions.contains(page) {
                self.host().memory.clear(page);
            }
        }
        self.restore(regions, image);
    }
}

#[cfg(test)]
mod tests {
    use tench_abi::Operation;

    use super::*;
    use crate::memory::RAM_START;

    /// Returns a machine with two threads, an image of it, and the second thread.
    fn machine() -> (Machine, Regions, Image, Ref<Thread>) {
        let mut m = Machine::new();
        let other = m.make_thread(100);
        let (regions, image) = m.save_all();
        (m, regions, image, other)
    }

    #[test]
    fn every_change_is_seen_but_one_threads_registers() {
        let (mut m, regions, image, other) = machine();
        let first = m.first;
        assert!(m.is_unchanged(&regions, &image, first));
        m.thread(first).registers.x[0] = 17;
        m.thread(first).registers.pc += 4;
        assert!(m.is_unchanged(&regions, &image, first));
        assert!(!m.is_unchanged(&regions, &image, other));
        m.restore_registers(&regions, &image, first);
        assert!(m.is_unchanged(&regions, &image, other));
        let changes: [fn(&mut Machine, Ref<Thread>); 6] = [
            |m, other| m.thread(other).registers.x[0] = 17,
            |m, _| m.thread(m.first).badge = 1,
            |m, _| m.host().time += 1,
            |m, _| m.kernel().state().reschedule = true,
            |m, _| m.buffer(m.first).send_caps[0] = 1,
            |m, _| m.kernel().state().shared_space = 64,
        ];
        for (i, change) in changes.into_iter().enumerate() {
            change(&mut m, other);
            assert!(!m.is_unchanged(&regions, &image, first), "change {i} is not seen");
            let is_seen = !m.differences(&regions, &image).is_empty() || !m.has_registers_of(&image);
            assert!(is_seen, "change {i} makes no difference");
            m.restore_all(&regions, &image);
            assert!(m.is_unchanged(&regions, &image, first), "change {i} is not taken back");
        }
    }

    #[test]
    fn outside_of_an_image_are_zeros() {
        let (mut m, regions, image, other) = machine();
        m.call_as(other, Operation::Yield, &[]).ok();
        m.restore_all(&regions, &image);
        let base = m.host().memory.base() + RAM_START as usize;
        let pages = (base..base + m.host().memory.size()).step_by(PAGE_SIZE);
        let stray: Vec<usize> =
            pages.filter(|page| !regions.contains(*page) && !m.host().memory.is_zero(*page)).collect();
        assert!(stray.is_empty(), "{stray:x?}");
    }

    #[test]
    fn objects_made_later_are_removed_on_restore() {
        let (mut m, regions, image, _) = machine();
        let made = (m.make(Kind::CapNode, 8), m.make(Kind::Frame, 12));
        let addresses = [m.cap(made.0).object, m.cap(made.1).object];
        let first = m.first;
        let thread = m.make_thread(90);
        m.buffer(thread).send_caps[0] = 5;
        m.call(Operation::Copy, &[0, made.1, 0, m.free]).ok();
        m.host().started.insert(1, (2, 3));
        m.restore_all(&regions, &image);
        assert!(m.is_unchanged(&regions, &image, first));
        assert!(m.host().started.is_empty());
        for address in addresses {
            assert!(!m.host().memory.written().contains(&address), "what was made at {address:x} is still there");
        }
    }
}
