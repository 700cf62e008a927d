//! Images of a machine: part of its memory and the kernel's state, to be put back much faster than a machine is made.
//!
//! Kernel objects name each other by address, so an image belongs to the machine of which it was taken. Nothing may be suspended in
//! the kernel meanwhile: what lies on the stacks is not part of an image.

use std::mem::offset_of;
use std::ops::Range;

use tench_kernel::kernel::State;

use crate::Machine;
use crate::host::{Host, Registers};

/// Bytes of the kernel's state, without the machine below it. All of them are plain numbers and addresses.
const STATE: usize = offset_of!(State<Host>, arch);

/// An image.
#[derive(Default)]
pub struct Image {
    memory: Vec<u8>,
    state: Vec<u8>,
    registers: Registers,
}

/// The memory that images contain: ranges of kernel virtual addresses.
pub struct Regions {
    ranges: Vec<Range<usize>>,
}

impl Regions {
    /// Images of `machine` contain these ranges, all of which must be RAM.
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

    /// Bytes in an image.
    pub fn size(&self) -> usize {
        self.ranges.iter().map(Range::len).sum::<usize>() + STATE
    }
}

/// Copies what lies at an address into a buffer.
fn take(address: usize, bytes: &mut [u8]) {
    let from: *const u8 = std::ptr::with_exposed_provenance(address);
    // SAFETY: RAM of the machine, or its state (callers), which the machine's borrow keeps others from writing.
    unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) }
}

/// Copies a buffer to an address.
fn put(bytes: &[u8], address: usize) {
    let to: *mut u8 = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: as in `take`; what is written was read there, when the kernel's state was complete.
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
}

impl Machine {
    /// The address of the kernel's state.
    fn state_address(&mut self) -> usize {
        std::ptr::from_mut(self.kernel().state()).expose_provenance()
    }

    /// Takes an image, in the place of an older one.
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

    /// Puts an image back. What is suspended in the kernel is forgotten.
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
}
