//! Files in memory without a path, and seals: what may not be done to a file any more.
//!
//! A seal belongs to the file's contents, so it binds whoever has opened it, by whatever way. All other files have the
//! seal that forbids further ones, as on Linux's file system in memory.

use tench_linux_calls::numbers::{memfd, open, seal};
use tench_linux_files::{Errno, Kind};
use tench_linux_memory::{Backing, ObjectId, Rights};

use super::transfer::{Vector, total};
use crate::caller::{Caller, Result};
use crate::descriptors::{DescriptionId, Descriptor};
use crate::{Machine, System};

/// The beginning that Linux gives to each name.
const PREFIX: &[u8] = b"memfd:";
/// The longest name in bytes.
const MAX_NAME: usize = tench_linux_files::MAX_NAME - PREFIX.len();
/// Permissions of such a file. The mask does not matter.
const PERMISSIONS: u32 = 0o777;
/// Seals because of which a write may be refused, or may be shorter.
pub(super) const KEEPING_SEALS: u32 = seal::GROW | seal::WRITE | seal::FUTURE_WRITE;

impl<M: Machine> System<M> {
    /// Returns whether a process has mapped contents so that it could write to them.
    fn is_mapped_to_write(&self, object: ObjectId) -> bool {
        let areas = self.spaces.iter().flat_map(|used| used.space.areas().iter());
        let mut of_it = areas.filter(|(_, area)| matches!(area.backing, Backing::Object(id, _) if id == object));
        of_it.any(|(_, area)| area.shared && area.allowed.contains(Rights::WRITE))
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Makes a file in memory without a path, which ends with its last user.
    pub fn memfd_create(&mut self, name: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !(memfd::CLOEXEC | memfd::ALLOW_SEALING) != 0 {
            return Err(Errno::EINVAL);
        }
        let name = self.read_string(name, MAX_NAME + 1)?.ok_or(Errno::EINVAL)?;
        self.system.update_time();
        let seals = if flags & memfd::ALLOW_SEALING != 0 { 0 } else { seal::SEAL };
        let object = self.system.memory.objects.make_named(&[PREFIX, &name].concat(), seals);
        let node = self.system.tree.make_regular(object, PERMISSIONS);
        self.own(node);
        let description = self.system.open(node, open::RDWR | open::LARGEFILE);
        self.add_descriptor(Descriptor { description, closes_on_exec: flags & memfd::CLOEXEC != 0 }, 0)
    }

    /// Returns what may not be done to an open file any more.
    pub(super) fn seals(&mut self, description: DescriptionId) -> Result {
        let object = self.sealable(description)?;
        Ok(self.system.memory.objects.get(object).seals().into())
    }

    /// Returns the contents of an open file, if it can have seals.
    fn sealable(&mut self, description: DescriptionId) -> Result<ObjectId> {
        let node = self.system.descriptions.get(description).node;
        match self.system.tree.node(node).kind {
            Kind::Regular(object) => Ok(object),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Lets something not be done to an open file any more.
    pub(super) fn add_seals(&mut self, description: DescriptionId, seals: u64) -> Result {
        let seals = u32::try_from(seals).map_err(|_| Errno::EINVAL)?;
        if !self.system.descriptions.get(description).writes() {
            return Err(Errno::EPERM);
        }
        if seals & !seal::ALL != 0 {
            return Err(Errno::EINVAL);
        }
        let object = self.sealable(description)?;
        let present = self.system.memory.objects.get(object).seals();
        if present & seal::SEAL != 0 {
            return Err(Errno::EPERM);
        }
        if seals & !present & seal::WRITE != 0 && self.system.is_mapped_to_write(object) {
            return Err(Errno::EBUSY);
        }
        self.system.memory.objects.seal(object, seals);
        Ok(0)
    }

    /// Returns how many bytes a call may write to contents that have seals.
    pub(super) fn most_written(&mut self, object: ObjectId, start: u64, vectors: &[Vector]) -> Result<u64> {
        let Some(first) = vectors.iter().find(|vector| vector.length > 0) else { return Ok(0) };
        // As on Linux, what cannot be read is noticed first.
        let [_] = self.read_record(first.address)?;
        self.system.memory.objects.get(object).room_for(start, total(vectors))
    }

    /// Checks whether contents may be mapped so that others see what is written, by an open file that may be written.
    /// Takes the right to write away if there are seals against that.
    pub(super) fn check_seals_to_map(&self, object: ObjectId, rights: Rights, allowed: &mut Rights) -> Result<()> {
        if self.system.memory.objects.get(object).seals() & (seal::WRITE | seal::FUTURE_WRITE) == 0 {
            return Ok(());
        }
        allowed.remove(Rights::WRITE);
        if rights.contains(Rights::WRITE) { Err(Errno::EPERM) } else { Ok(()) }
    }
}
