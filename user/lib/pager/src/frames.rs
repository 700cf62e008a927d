//! A frame of the pager's own, cut into pages, and mappings of them in foreign tables.
//!
//! The frame is mapped in the pager as a whole, once: pages are zeroed and copied there, and a page that is given again
//! costs no system call but the mapping. Clients get mappings, never the frame, so that nothing but the pager decides
//! how long they see a page.

use tench::abi::memory::{PAGE_BITS, PAGE_SIZE};
use tench::memory::{self, Made, Window};
use tench::sys::{Cap, Frame, MapFlags, Mapping, PageTable};

use crate::pager::Memory;
use crate::pool::{Page, Pool};
use crate::protocol::Error;

/// For reading alone.
const READABLE: MapFlags = MapFlags::READ;
/// For writing too.
const WRITABLE: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

/// Pages of one frame.
pub struct Frames {
    /// Dropped before the frame.
    window: Window,
    frame: Made<Frame>,
}

impl Frames {
    /// Takes `1 << bits` pages (at most 2¹⁸) from the memory server.
    ///
    /// # Errors
    /// Why there is no such memory.
    pub fn new(bits: u32) -> Result<Frames, memory::Error> {
        let frame = memory::make::<Frame>(u64::from(bits + PAGE_BITS))?;
        let window = Window::new(frame.cap(), bits + PAGE_BITS, WRITABLE)?;
        Ok(Frames { window, frame })
    }

    /// A pool of all its pages.
    pub fn pool(&self) -> Pool {
        Pool::new(self.window.pages() as u32)
    }

    /// Where a page lies in the frame, in bytes.
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
        // If the client's table went first, the slot is empty already.
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
