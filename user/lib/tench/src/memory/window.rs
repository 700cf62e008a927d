//! A window onto a frame from elsewhere: shared memory, device registers, a program being loaded.

use tench_abi::memory::PAGE_BITS;
use tench_paging::Kind;
use tench_sys::{Cap, Frame, MapFlags};

use super::manager::Mapped;
use super::{Error, manager};

/// Number of bytes that are zeroed or copied at once.
const LINE: usize = 64;

/// Returns the word at an address that the caller knows to be mapped.
#[inline(always)]
const fn word_at(address: usize) -> *mut u64 {
    core::ptr::with_exposed_provenance_mut(address)
}

/// Copies bytes of memory of which one side may be shared with other processes.
///
/// # Safety
/// `length` bytes must be mapped at both addresses, must not overlap, and no reference of this process may forbid the
/// accesses.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller guarantees it. Concurrent writes of another process only change which bytes are copied.
    unsafe { to.copy_from_nonoverlapping(from, length) };
    // From now on only the copy counts: the compiler must assume that this changes both ranges, so it cannot read the
    // source again, which another process may have changed.
    // SAFETY: there is no instruction.
    unsafe { core::arch::asm!("/* {0} {1} */", in(reg) from, in(reg) to, options(nostack, preserves_flags)) };
}

/// A frame mapped at a free address, accessed value by value. Dropping it unmaps the frame.
///
/// Other processes may see the same memory, or it may be a device's: so there are no references into it, only accesses
/// that happen exactly as written. An access outside the window panics.
#[derive(Debug)]
pub struct Window {
    mapped: Mapped,
}

impl Window {
    /// Maps a whole frame of `1 << bits` bytes (4 KiB to 1 GiB).
    pub fn new(frame: Cap<Frame>, bits: u32, flags: MapFlags) -> Result<Window, Error> {
        let bits = u8::try_from(bits).map_err(|_| Error::BadSize)?;
        Ok(Window { mapped: manager().map(frame, bits, flags, Kind::Frame, false)? })
    }

    /// Returns the first address, for code that may use pointers.
    pub const fn address(&self) -> usize {
        self.mapped.address as usize
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> usize {
        self.mapped.size as usize
    }

    /// Returns the number of pages.
    pub const fn pages(&self) -> usize {
        self.size() >> PAGE_BITS
    }

    /// Returns the checked address of a `T`.
    fn pointer<T>(&self, offset: usize) -> *mut T {
        let inside = offset.checked_add(size_of::<T>()).is_some_and(|end| end <= self.size());
        assert!(inside && offset.is_multiple_of(align_of::<T>()), "offset {offset:#x} is not in the window");
        core::ptr::with_exposed_provenance_mut(self.address() + offset)
    }

    /// Reads 32 bits, for instance a device register.
    pub fn read32(&self, offset: usize) -> u32 {
        // SAFETY: the address is mapped and aligned; any bits are a number.
        unsafe { self.pointer::<u32>(offset).read_volatile() }
    }

    /// Writes 32 bits.
    pub fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the address is mapped and aligned, and no reference to it exists.
        unsafe { self.pointer::<u32>(offset).write_volatile(value) };
    }

    /// Reads 64 bits.
    pub fn read64(&self, offset: usize) -> u64 {
        // SAFETY: as in `read32`.
        unsafe { self.pointer::<u64>(offset).read_volatile() }
    }

    /// Writes 64 bits.
    pub fn write64(&self, offset: usize, value: u64) {
        // SAFETY: as in `write32`.
        unsafe { self.pointer::<u64>(offset).write_volatile(value) };
    }

    /// Copies bytes out of the window, which must map ordinary memory.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        self.check(offset, bytes.len());
        let from = core::ptr::with_exposed_provenance(self.address() + offset);
        // SAFETY: `check` has found that these bytes are mapped; the borrowed buffer lies elsewhere.
        unsafe { copy(from, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Copies bytes into the window, which must map ordinary memory.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        let to = core::ptr::with_exposed_provenance_mut(self.address() + offset);
        // SAFETY: as in `read`; no reference into the window exists.
        unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Zeroes a part of the window. Offset and length must be multiples of 64.
    pub fn zero(&self, offset: usize, length: usize) {
        self.each_line(offset, length, |line| {
            for word in (0..LINE).step_by(8) {
                // SAFETY: `each_line` passes lines of the window, which are mapped and aligned.
                unsafe { word_at(line + word).write_volatile(0) };
            }
        });
    }

    /// Copies from one part of the window to another. Offsets and length must be multiples of 64; the parts must not
    /// overlap.
    pub fn copy_within(&self, from: usize, to: usize, length: usize) {
        self.check(from, length);
        assert!(from.is_multiple_of(LINE) && from.abs_diff(to) >= length, "{from:#x} and {to:#x} overlap");
        let distance = from.wrapping_sub(to);
        self.each_line(to, length, |line| {
            let source = line.wrapping_add(distance);
            for word in (0..LINE).step_by(8) {
                // SAFETY: `check` has found that the source lies in the window, which is mapped; it is aligned.
                let value = unsafe { word_at(source + word).read_volatile() };
                // SAFETY: `each_line` passes lines of the window, which are mapped and aligned.
                unsafe { word_at(line + word).write_volatile(value) };
            }
        });
    }

    /// Calls a function with the address of each line of 64 bytes in a part of the window.
    #[inline(always)]
    fn each_line(&self, offset: usize, length: usize, line: impl Fn(usize)) {
        self.check(offset, length);
        assert!(
            offset.is_multiple_of(LINE) && length.is_multiple_of(LINE),
            "{offset:#x}, {length:#x}: not whole lines"
        );
        let start = self.address() + offset;
        (start..start + length).step_by(LINE).for_each(line);
    }

    fn check(&self, offset: usize, length: usize) {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.size());
        assert!(inside, "{length} bytes at {offset:#x} are not in the window");
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // Memory that cannot be unmapped stays; there is nobody to tell.
        let _ = manager().unmap(&self.mapped);
    }
}
