//! The boot archive: its frames, as init gave them, mapped side by side.

use tench::memory;
use tench_abi::layout::{address, slot};
use tench_abi::memory::MapFlags;
use tench_abi::{CapAddress, Kind};
use tench_loader::space::Space;
use tench_loader::{Archive, LoadError, Machine, Resources};
use tench_sys::{Error, OWN_SPACE, PageTable};

/// Maps the archive for ever.
pub fn open() -> Result<Archive<'static>, LoadError> {
    let mut space = Space::over(slot::VSPACE);
    let mut length = 0;
    let mut expected = None;
    for slot in (slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT).map(CapAddress) {
        let Some(frame) = OWN_SPACE.identify_at(slot).ok().filter(|found| found.kind == Kind::Frame) else { break };
        // What does not continue the archive is something else.
        if expected.is_some_and(|expected| expected != frame.address) {
            break;
        }
        let size = 1u64 << frame.size_bits;
        let mut resources = OwnSpace;
        let mut machine = Machine::without_window(&mut resources);
        space.map(&mut machine, slot, address::BOOT_ARCHIVE + length, size, MapFlags::READ)?;
        length += size;
        expected = Some(frame.address + size);
    }
    let bytes = core::ptr::with_exposed_provenance::<u8>(address::BOOT_ARCHIVE as usize);
    // SAFETY: so many bytes were just mapped there, for ever; nobody writes to them.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, length as usize) };
    Ok(Archive::new(bytes))
}

/// Slots and page tables of this server itself.
struct OwnSpace;

impl Resources for OwnSpace {
    fn slot(&mut self) -> Result<CapAddress, LoadError> {
        memory::take_slot().map_err(|_| LoadError::OutOfMemory)
    }

    fn make(&mut self, kind: Kind, size: u64, slot: CapAddress) -> Result<(), LoadError> {
        if kind != Kind::PageTable {
            return Err(LoadError::Kernel(Error::InvalidArgument));
        }
        let made = memory::make::<PageTable>(size).map_err(|_| LoadError::OutOfMemory)?;
        made.cap().move_to(slot)?;
        memory::free_slot(made.leak().address());
        Ok(())
    }
}
