//! A window onto a frame that somebody else gave: shared memory, device registers, a program being loaded.

use tench_abi::memory::PAGE_BITS;
use tench_sys::{Cap, Frame, MapFlags};

use super::manager::Mapped;
use super::{Error, manager};

/// A frame mapped at a free place, read and written piece by piece. Dropping it unmaps the frame.
///
/// Others may see the same memory, or it may be a device's: so there are no references into it, only accesses that
/// happen exactly as written. An access outside the window panics.
#[derive(Debug)]
pub struct Window {
    mapped: Mapped,
}

impl Window {
    /// Maps a whole frame of `1 << bits` bytes (4 KiB to 1 GiB).
    pub fn new(frame: Cap<Frame>, bits: u32, flags: MapFlags) -> Result<Window, Error> {
        let bits = u8::try_from(bits).map_err(|_| Error::BadSize)?;
        Ok(Window { mapped: manager().map(frame, bits, flags, false)? })
    }

    /// First address, for those who may use pointers.
    pub const fn address(&self) -> usize {
        self.mapped.address as usize
    }

    /// Bytes.
    pub const fn size(&self) -> usize {
        1 << self.mapped.bits
    }

    /// Pages.
    pub const fn pages(&self) -> usize {
        self.size() >> PAGE_BITS
    }

    /// The place of a `T`, checked.
    fn place<T>(&self, offset: usize) -> *mut T {
        let inside = offset.checked_add(size_of::<T>()).is_some_and(|end| end <= self.size());
        assert!(inside && offset.is_multiple_of(align_of::<T>()), "offset {offset:#x} is not in the window");
        core::ptr::with_exposed_provenance_mut(self.address() + offset)
    }

    /// Reads 32 bits, for instance of a device register.
    pub fn read32(&self, offset: usize) -> u32 {
        // SAFETY: the place is mapped and aligned; any bits are a number.
        unsafe { self.place::<u32>(offset).read_volatile() }
    }

    /// Writes 32 bits.
    pub fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the place is mapped and aligned, and no reference to it exists.
        unsafe { self.place::<u32>(offset).write_volatile(value) };
    }

    /// Reads 64 bits.
    pub fn read64(&self, offset: usize) -> u64 {
        // SAFETY: as in `read32`.
        unsafe { self.place::<u64>(offset).read_volatile() }
    }

    /// Writes 64 bits.
    pub fn write64(&self, offset: usize, value: u64) {
        // SAFETY: as in `write32`.
        unsafe { self.place::<u64>(offset).write_volatile(value) };
    }

    /// Copies bytes out of the window.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        self.check(offset, bytes.len());
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done;
            if at.is_multiple_of(8) && bytes.len() - done >= 8 {
                bytes[done..done + 8].copy_from_slice(&self.read64(at).to_le_bytes());
                done += 8;
            } else {
                // SAFETY: as in `read32`.
                bytes[done] = unsafe { self.place::<u8>(at).read_volatile() };
                done += 1;
            }
        }
    }

    /// Copies bytes into the window.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done;
            match bytes[done..].first_chunk::<8>() {
                Some(chunk) if at.is_multiple_of(8) => {
                    self.write64(at, u64::from_le_bytes(*chunk));
                    done += 8;
                }
                _ => {
                    // SAFETY: as in `write32`.
                    unsafe { self.place::<u8>(at).write_volatile(bytes[done]) };
                    done += 1;
                }
            }
        }
    }

    fn check(&self, offset: usize, length: usize) {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.size());
        assert!(inside, "{length} bytes at {offset:#x} are not in the window");
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // What cannot be unmapped stays; there is nobody to tell.
        let _ = manager().unmap(&self.mapped);
    }
}
