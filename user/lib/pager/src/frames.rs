//! The pager's own frame, cut into pages, and mappings of these in clients' tables.
//!
//! The frame is mapped in the pager as a whole, once: pages are zeroed and copied there, and reusing a page costs no
//! system call except the mapping. Clients get mappings, never the frame, so that only the pager decides how long a
//! page stays mapped.

use tench::abi::memory::{PAGE_BITS, PAGE_SIZE};
use tench::memory::{self, Made, Window};
use tench::sys::{Cap, Frame, MapFlags, Mapping, PageTable};

use crate::pager::Memory;
use crate::pool::{Page, Pool};
use crate::protocol::Error;

/// Rights for reading only.
const READABLE: MapFlags = MapFlags::READ;
/// Rights for reading and writing.
const WRITABLE: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

/// The pages of one frame.
pub struct Frames {
    /// Dropped before the frame.
    window: Window,
    frame: Made<Frame>,
}

impl Frames {
    /// Takes `1 << bits` pages (at most 2¹⁸) from the memory server.
    ///
    /// # Errors
    /// Fails if there is no such memory.
    pub fn new(bits: u32) -> Result<Frames, memory::Error> {
        let frame = memory::make::<Frame>(u64::from(bits + PAGE_BITS))?;
        let window = Window::new(frame.cap(), bits + PAGE_BITS, WRITABLE)?;
        Ok(Frames { window, frame })
    }

    /// Returns a pool of all its pages.
    pub fn pool(&self) -> Pool {
        Pool::new(self.window.pages() as u32)
    }

    /// Returns the offset of a page in the frame in bytes.
    const fn offset(page: Page) -> usize {
        page.0 as usize * PAGE_SIZE
    }
}

impl Memory for Frames {
    type Table = Cap<PageTable>;
    type Mapping = Cap<Mapping>;

    fn map(&mut self, table: &Cap<PageTable>, entry: usize, page: Page, writable: bool) -> Result<Cap<Mapping>, Error> {
        let slot = memory::take_slot().map_err(|_| Error::Refused)?;
        let flags = if writable { WRITABLE } else { READABLE };
        match self.frame.cap().map(*table, entry as u64, 1, Self::offset(page) as u64, flags, slot) {
            Ok(mapping) => Ok(mapping),
            Err(_) => {
                memory::free_slot(slot);
                Err(Error::Refused)
            }
        }
    }

    fn allow(&mut self, mapping: &Cap<Mapping>, writable: bool) -> Result<(), Error> {
        mapping.protect(if writable { WRITABLE } else { READABLE }).map_err(|_| Error::Refused)
    }

    fn unmap(&mut self, mapping: Cap<Mapping>) {
        // If the client's table was deleted first, the slot is empty already.
        let _ = mapping.delete();
        memory::free_slot(mapping.address());
    }

    fn zero(&mut self, page: Page) {
        self.window.zero(Self::offset(page), PAGE_SIZE);
    }

    fn copy(&mut self, from: Page, to: Page) {
        self.window.copy_within(Self::offset(from), Self::offset(to), PAGE_SIZE);
    }
}
