//! The boot archive as a process gets it: its frames are side by side in the slots for extra capabilities. Also the
//! resources that the loader needs to map memory into the process itself, and programs' files from elsewhere
//! ([`Content`]).

#![no_std]
#![deny(missing_docs)]

mod content;

pub use content::{Content, Opened};

use tench::memory;
use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{CapAddress, Kind};
use tench_loader::addresses::{self, Randomness};
use tench_loader::space::Space;
use tench_loader::{Archive, LoadError, Machine, Resources, Shown};
use tench_sys::{Cap, Error, Frame, OWN_CSPACE, PageTable, Rights};

/// Returns the archive's frames, the first of which is in slot `first`, and log2 of their sizes in bytes. They are the
/// frames that can be read and executed, but not written; those of devices and channels can be written.
pub fn frames(first: CapAddress) -> impl Iterator<Item = (Cap<Frame>, u32)> {
    (first.0..slot::EXTRA.0 + slot::EXTRA_COUNT).map(CapAddress).map_while(|slot| {
        let found = OWN_CSPACE.identify_at(slot).ok()?;
        let is_archive = found.kind == Kind::Frame && found.rights == Rights::READ | Rights::EXECUTE;
        is_archive.then_some((Cap::new(slot), found.size_bits))
    })
}

/// Maps the archive's frames side by side, at a random address, for reading as long as the process lives. Returns the
/// frames and the archive.
///
/// # Errors
/// Fails with the kernel's errors for a mapping, and with `OutOfMemory` for its tables.
pub fn map(first: CapAddress, random: &mut Randomness) -> Result<(Shown, Archive<'static>), LoadError> {
    let size = frames(first).map(|(_, size_bits)| 1u64 << size_bits).sum();
    let mut shown = Shown::new(addresses::archive(&mut random.sequence(), size));
    let mut space = Space::over(slot::VSPACE);
    for (frame, size_bits) in frames(first) {
        let mut resources = OwnSpace;
        let mut machine = Machine::without_window(&mut resources);
        space.map(&mut machine, frame.address(), shown.end(), 1 << size_bits, MapFlags::READ)?;
        shown.add(frame, size_bits)?;
    }
    let start = core::ptr::with_exposed_provenance::<u8>(shown.start() as usize);
    // SAFETY: these bytes were just mapped there, for ever; nobody can write to them.
    let bytes = unsafe { core::slice::from_raw_parts(start, shown.size() as usize) };
    Ok((shown, Archive::new(bytes)))
}

/// Slots and page tables of this process itself.
pub struct OwnSpace;

impl Resources for OwnSpace {
    fn slot(&mut self) -> Result<CapAddress, LoadError> {
        memory::take_slot().map_err(|_| LoadError::OutOfMemory)
    }

    fn make(&mut self, kind: Kind, size: u64, slot: CapAddress) -> Result<(), LoadError> {
        if kind != Kind::PageTable {
            return Err(LoadError::Kernel(Error::InvalidArgument));
        }
        let made = memory::make::<PageTable>(size).map_err(|_| LoadError::OutOfMemory)?.leak();
        made.move_to(slot)?;
        memory::free_slot(made.address());
        Ok(())
    }
}
