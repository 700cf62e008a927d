//! A program's file that a parent transfers, in memory to which nobody else has a capability.
//!
//! Its bytes come in messages and are copied out of them. They lie in a frame that is made here: pages of it are mapped
//! into the process whose program it is, for reading and executing, and nobody else gets the frame. So the checked
//! bytes are those that run, whatever the parent does meanwhile.

use tench::memory::{self, Window as View};
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_abi::{CapAddress, Error};
use tench_loader::{LoadError, Shown, Window};
use tench_sys::{Cap, Frame, OWN_CSPACE, Untyped};

/// A file in a frame of its own. Dropping it frees the slots; the memory belongs to the owner of the block.
#[derive(Debug)]
pub struct Content {
    block: CapAddress,
    frame: CapAddress,
    size_bits: u32,
    /// Maximum size in bytes.
    capacity: usize,
    /// Size in bytes.
    length: usize,
}

impl Content {
    /// Makes room for a file of `bytes` bytes. `block` takes a block of 2^n bytes, with its capability in an empty
    /// slot.
    ///
    /// # Errors
    /// Fails with errors of `block`, with `OutOfMemory` if there are no slots, and with errors of the kernel.
    pub fn new(
        capacity: usize,
        block: impl FnOnce(u32, CapAddress) -> Result<Cap<Untyped>, LoadError>,
    ) -> Result<Content, LoadError> {
        let size_bits = capacity.max(PAGE_SIZE).next_power_of_two().ilog2();
        let mut content = Content { block: take_slot()?, frame: CapAddress::NULL, size_bits, capacity, length: 0 };
        content.frame = take_slot()?;
        block(size_bits, content.block)?.retype::<Frame>(u64::from(size_bits), content.frame)?;
        Ok(content)
    }

    /// Returns the number of bytes for which there is still room.
    pub const fn left(&self) -> usize {
        self.capacity - self.length
    }

    /// Appends bytes through a window onto the frame.
    ///
    /// # Errors
    /// Fails with `InvalidArgument` if there is no room, and with the kernel's errors for the mapping.
    pub fn append(&mut self, window: Window, bytes: &[u8]) -> Result<(), LoadError> {
        if bytes.len() > self.left() {
            return Err(LoadError::Kernel(Error::InvalidArgument));
        }
        window.fill(Cap::new(self.frame), self.size_bits, self.length as u64, bytes)?;
        self.length += bytes.len();
        Ok(())
    }

    /// Maps the file into this process. Nothing can be appended meanwhile.
    ///
    /// # Errors
    /// Fails with `OutOfMemory` if it cannot be mapped.
    pub fn open(&self) -> Result<Opened<'_>, LoadError> {
        let frame = Cap::new(self.frame);
        let view = View::new(frame, self.size_bits, MapFlags::READ).map_err(|_| LoadError::OutOfMemory)?;
        let mut shown = Shown::new(view.address() as u64);
        shown.add(frame, self.size_bits)?;
        Ok(Opened { content: self, view, shown })
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        for slot in [self.frame, self.block].into_iter().filter(|slot| *slot != CapAddress::NULL) {
            // The capability may have been deleted with the memory.
            let _ = OWN_CSPACE.delete_at(slot);
            memory::free_slot(slot);
        }
    }
}

/// A [`Content`] that is mapped into this process's address space.
#[derive(Debug)]
pub struct Opened<'a> {
    content: &'a Content,
    view: View,
    shown: Shown,
}

impl Opened<'_> {
    /// Returns the file.
    pub fn bytes(&self) -> &[u8] {
        let start = core::ptr::with_exposed_provenance::<u8>(self.view.address());
        // SAFETY: the frame is mapped there, for reading, as long as `view` lives, and is at least that long. Nobody
        // writes to it: only `Content` has a capability to it, whose `append` takes it mutably, and processes into
        // which its pages are mapped cannot write to them.
        unsafe { core::slice::from_raw_parts(start, self.content.length) }
    }

    /// Returns the memory in which it lies, parts of which are mapped into its process.
    pub const fn shown(&self) -> &Shown {
        &self.shown
    }
}

fn take_slot() -> Result<CapAddress, LoadError> {
    memory::take_slot().map_err(|_| LoadError::OutOfMemory)
}
