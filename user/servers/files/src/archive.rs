//! The boot archive: its frames, as init gave them, mapped side by side.

use tench::{memory, process};
use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{CapAddress, Kind};
use tench_loader::addresses::{self, Randomness};
use tench_loader::space::Space;
use tench_loader::{Archive, LoadError, Machine, Resources};
use tench_sys::{Error, OWN_SPACE, PageTable};

/// The frames that hold the archive, from `EXTRA` on, and log2 of their sizes: what does not continue it is something else.
fn frames() -> impl Iterator<Item = (CapAddress, u32)> {
    let mut expected = None;
    (slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT).map(CapAddress).map_while(move |slot| {
        let frame = OWN_SPACE.identify_at(slot).ok().filter(|found| found.kind == Kind::Frame)?;
        let continues = expected.is_none_or(|expected| expected == frame.address);
        expected = Some(frame.address + (1 << frame.size_bits));
        continues.then_some((slot, frame.size_bits))
    })
}

/// Maps the archive for ever, at a random address as the process server does.
pub fn open() -> Result<Archive<'static>, LoadError> {
    let mut random = Randomness::from_words(process::info().map_or([0; 4], |info| info.random));
    let size: u64 = frames().map(|(_, size_bits)| 1 << size_bits).sum();
    let start = addresses::archive(&mut random.sequence(), size);
    let mut space = Space::over(slot::VSPACE);
    let mut length = 0;
    for (slot, size_bits) in frames() {
        let mut resources = OwnSpace;
        let mut machine = Machine::without_window(&mut resources);
        space.map(&mut machine, slot, start + length, 1 << size_bits, MapFlags::READ)?;
        length += 1 << size_bits;
    }
    let bytes = core::ptr::with_exposed_provenance::<u8>(start as usize);
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
