//! Soak clients that work on their own address space: memory on demand, frames at several addresses, the heap.

use alloc::vec::Vec;

use tench::abi::memory::{MapFlags, PAGE_SIZE};
use tench::memory::{self, Anonymous, Error, Made, make_present, with_paging};
use tench::paging::FrameCap;
use tench::sys::Frame;
use tench_random::Random;

use super::client::{Outcome, made};

/// Maximum number of a client's ranges.
const RANGES: usize = 8;
/// Maximum number of a client's frames, and of addresses for each.
const FRAMES: usize = 4;
const MAPPINGS: usize = 5;
/// Maximum number of a client's heap allocations.
const ALLOCATIONS: usize = 32;
const PAGE: u64 = PAGE_SIZE as u64;
const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

/// Reads a word of memory that this program has mapped.
fn read(address: usize) -> u64 {
    // SAFETY: the clients read only what they have mapped, and any bits are a number.
    unsafe { core::ptr::with_exposed_provenance::<u64>(address).read_volatile() }
}

/// Writes a word of memory that this program has mapped for itself.
fn write(address: usize, value: u64) {
    // SAFETY: the clients write only to memory that they have mapped, to which there are no references.
    unsafe { core::ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(value) };
}

// ── Memory on demand ─────────────────────────────────────────────────────────────────────────────────────────────────

/// Number of pages of a range whose contents are checked.
const WATCHED: usize = 16;

/// A range, and the expected contents of its checked pages.
struct Range {
    memory: Anonymous,
    /// Distance between checked pages.
    stride: usize,
    written: [bool; WATCHED],
}

impl Range {
    fn new(random: &mut Random) -> Outcome<Option<Range>> {
        let pages = WATCHED << random.below(5);
        let memory = made(Anonymous::new(pages * PAGE_SIZE), "no range of addresses")?;
        Ok(memory.map(|memory| Range { memory, stride: pages / WATCHED, written: [false; WATCHED] }))
    }

    fn address_of(&self, page: usize) -> usize {
        self.memory.address() + page * self.stride * PAGE_SIZE
    }

    /// Touches a page, and checks that it holds what was written, or zeros.
    fn touch(&mut self, page: usize, random: &mut Random) -> Outcome {
        let address = self.address_of(page);
        // Mostly the client checks first that there is memory; a fault without memory ends the process.
        if !random.once_in(16) && made(make_present(address, 8), "a page could not be made present")?.is_none() {
            return Ok(());
        }
        let expected = if self.written[page] { address as u64 ^ 0x5555 } else { 0 };
        if read(address) != expected || read(address + PAGE_SIZE - 8) != expected {
            return Err("a page does not hold what was written");
        }
        write(address, address as u64 ^ 0x5555);
        write(address + PAGE_SIZE - 8, address as u64 ^ 0x5555);
        self.written[page] = true;
        Ok(())
    }

    /// Makes a page read-only, reads it, and makes it writable again.
    fn protect(&self, page: usize) -> Outcome {
        let address = self.address_of(page);
        if !self.written[page] {
            return Ok(());
        }
        let set = |flags| with_paging(|paging, carrier| paging.protect(carrier, address as u64, PAGE, flags));
        let shut = made(set(MapFlags::READ).map_err(Error::from), "a page could not be protected")?;
        if read(address) != address as u64 ^ 0x5555 {
            return Err("a protected page does not hold what was written");
        }
        // A table that could be split needs no memory to be protected back.
        match shut {
            Some(()) => set(RW).map_err(|_| "a page could not be made writable again"),
            None => Ok(()),
        }
    }
}

/// Reserves, touches, protects and frees ranges.
pub fn regions(random: &mut Random, steps: u64) -> Outcome {
    let mut held: [Option<Range>; RANGES] = [const { None }; RANGES];
    for _ in 0..steps {
        let entry = &mut held[random.index(RANGES)];
        match entry {
            None => *entry = Range::new(random)?,
            Some(range) => match random.below(8) {
                0 => *entry = None,
                1 => range.protect(random.index(WATCHED))?,
                _ => range.touch(random.index(WATCHED), random)?,
            },
        }
    }
    with_paging(|paging, _| paging.check_invariants());
    Ok(())
}

// ── Frames ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A frame, and where it is mapped.
struct Shown {
    frame: Made<Frame>,
    bits: u8,
    addresses: [Option<u64>; MAPPINGS],
}

impl Shown {
    fn new(random: &mut Random) -> Outcome<Option<Shown>> {
        let bits = 12 + random.below(10) as u8;
        let frame = made(memory::make::<Frame>(u64::from(bits)), "no frame")?;
        Ok(frame.map(|frame| Shown { frame, bits, addresses: [None; MAPPINGS] }))
    }

    /// Maps the frame at one more address, or unmaps one. What is written at one address is seen at all.
    fn change(&mut self, random: &mut Random) -> Outcome {
        let index = random.index(MAPPINGS);
        match self.addresses[index].take() {
            None => {
                let cap = FrameCap { cap: self.frame.cap().address(), bits: self.bits };
                let mapped = with_paging(|paging, carrier| paging.map(carrier, cap, RW)).map_err(Error::from);
                self.addresses[index] = made(mapped, "a frame was not mapped")?;
            }
            Some(address) => unmap(address, 1 << self.bits)?,
        }
        let value = random.next();
        let offset = random.below(1 << (self.bits - 3)) << 3;
        if let Some(address) = self.addresses.iter().flatten().next() {
            write((address + offset) as usize, value);
        }
        if self.addresses.iter().flatten().any(|address| read((address + offset) as usize) != value) {
            return Err("a frame is not the same everywhere");
        }
        Ok(())
    }

    /// Unmaps the frame everywhere, and deletes it.
    fn end(self) -> Outcome {
        self.addresses.iter().flatten().try_for_each(|address| unmap(*address, 1 << self.bits))
    }
}

/// Unmaps a range.
fn unmap(start: u64, size: u64) -> Outcome {
    with_paging(|paging, carrier| paging.unmap(carrier, start, size)).map_err(|_| "a frame was not unmapped")
}

/// Makes frames, maps each at several addresses, unmaps and deletes them.
pub fn frames(random: &mut Random, steps: u64) -> Outcome {
    let mut held: [Option<Shown>; FRAMES] = [const { None }; FRAMES];
    for _ in 0..steps {
        let entry = &mut held[random.index(FRAMES)];
        match entry.take() {
            None => *entry = Shown::new(random)?,
            Some(shown) if random.once_in(12) => shown.end()?,
            Some(mut shown) => {
                shown.change(random)?;
                *entry = Some(shown);
            }
        }
    }
    with_paging(|paging, _| paging.check_invariants());
    Ok(())
}

// ── Heap ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Allocates, fills, checks and frees heap allocations.
pub fn heap(random: &mut Random, steps: u64) -> Outcome {
    let mut held: [Vec<u64>; ALLOCATIONS] = [const { Vec::new() }; ALLOCATIONS];
    for _ in 0..steps {
        let allocation = &mut held[random.index(ALLOCATIONS)];
        let scale = 1 + random.below(16);
        let words = 1 + random.index(1 << scale);
        if allocation.is_empty() {
            // Without memory there is none.
            if allocation.try_reserve(words).is_ok() {
                allocation.extend((0..words as u64).map(|word| word * 0x9e37_79b9));
            }
            continue;
        }
        if allocation.iter().enumerate().any(|(index, word)| *word != index as u64 * 0x9e37_79b9) {
            return Err("the heap does not hold what was written");
        }
        match random.below(3) {
            0 if allocation.try_reserve(words).is_ok() => {
                let length = allocation.len() as u64;
                allocation.extend((length..length + words as u64).map(|word| word * 0x9e37_79b9));
            }
            1 => allocation.truncate(words),
            _ => *allocation = Vec::new(),
        }
    }
    Ok(())
}
