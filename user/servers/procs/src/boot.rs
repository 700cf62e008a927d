//! What `init` has left for this server: the boot archive and the other servers' endpoints.

use alloc::boxed::Box;

use tench::memory;
use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{CapAddress, Kind};
use tench_loader::addresses::{self, Randomness};
use tench_loader::space::Space;
use tench_loader::{Archive, LoadError, Machine, Resources, Shown};
use tench_procs::catalogue::Catalogue;
use tench_sys::{Cap, Endpoint, Frame, OWN_SPACE, PageTable};
use tench_system::{ARCHIVE_PATH, Capability, System};

/// This server's name in the system description.
const NAME: &str = "procs";

/// Everything that does not change while the system runs.
#[derive(Clone, Copy)]
pub struct Boot {
    /// The system description in it.
    pub system: System<'static>,
    /// What is in both, to be found fast.
    pub catalogue: &'static Catalogue<'static>,
    /// The archive's memory, of which processes are shown parts.
    pub shown: &'static Shown,
}

impl Boot {
    /// Maps the archive and reads the system description.
    pub fn open(random: &mut Randomness) -> Result<Boot, LoadError> {
        let shown = Box::leak(Box::new(map_archive(random)?));
        let bytes = core::ptr::with_exposed_provenance::<u8>(shown.start() as usize);
        // SAFETY: so many bytes were just mapped there, for ever; nobody can write to them.
        let bytes = unsafe { core::slice::from_raw_parts(bytes, shown.size() as usize) };
        let archive = Archive::new(bytes);
        let invalid = LoadError::Kernel(tench_sys::Error::InvalidArgument);
        let description = archive.find(ARCHIVE_PATH).ok_or(invalid)?;
        let system = System::parse(description.contents).map_err(|_| invalid)?;
        let catalogue = Box::leak(Box::new(Catalogue::new(&archive, &system)));
        Ok(Boot { system, catalogue, shown })
    }

    /// The endpoint of a server that the description gives this one, without a badge.
    pub fn service(&self, name: &str) -> Option<Cap<Endpoint>> {
        let mut next = slot::EXTRA.0;
        for capability in self.system.find(NAME)?.capabilities.iter() {
            match capability {
                Capability::Kernel | Capability::InterruptControl | Capability::Untyped => {}
                Capability::Archive => next += frames().count() as u32,
                Capability::Device(_) | Capability::Interrupt(_) => next += 1,
                Capability::Service(server) if server == name => return Some(Cap::new(CapAddress(next))),
                Capability::Service(_) => next += 1,
            }
        }
        None
    }
}

/// The frames that hold the archive: they lie side by side from `EXTRA` on, and log2 of their sizes.
fn frames() -> impl Iterator<Item = (Cap<Frame>, u64, u32)> {
    (slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT).map_while(|slot| {
        let frame = OWN_SPACE.identify_at(CapAddress(slot)).ok().filter(|found| found.kind == Kind::Frame)?;
        Some((Cap::new(CapAddress(slot)), frame.address, frame.size_bits))
    })
}

/// The archive's own frames among them: what does not continue the archive is something else.
fn archive_frames() -> impl Iterator<Item = (Cap<Frame>, u32)> {
    let mut expected = None;
    frames().map_while(move |(frame, physical, size_bits)| {
        let continues = expected.is_none_or(|expected| expected == physical);
        expected = Some(physical + (1 << size_bits));
        continues.then_some((frame, size_bits))
    })
}

/// Maps the archive's frames side by side.
fn map_archive(random: &mut Randomness) -> Result<Shown, LoadError> {
    let size = archive_frames().map(|(_, size_bits)| 1u64 << size_bits).sum();
    let mut shown = Shown::new(addresses::archive(&mut random.sequence(), size));
    let mut space = Space::over(slot::VSPACE);
    for (frame, size_bits) in archive_frames() {
        let mut resources = OwnSpace;
        let mut machine = Machine::without_window(&mut resources);
        space.map(&mut machine, frame.address(), shown.end(), 1 << size_bits, MapFlags::READ)?;
        shown.add(frame, size_bits)?;
    }
    Ok(shown)
}

/// Slots and page tables of this server itself.
pub struct OwnSpace;

impl Resources for OwnSpace {
    fn slot(&mut self) -> Result<CapAddress, LoadError> {
        memory::take_slot().map_err(|_| LoadError::OutOfMemory)
    }

    fn make(&mut self, kind: Kind, size: u64, slot: CapAddress) -> Result<(), LoadError> {
        if kind != Kind::PageTable {
            return Err(LoadError::Kernel(tench_sys::Error::InvalidArgument));
        }
        let made = memory::make::<PageTable>(size).map_err(|_| LoadError::OutOfMemory)?;
        made.cap().move_to(slot)?;
        memory::free_slot(made.cap().address());
        Ok(())
    }
}
