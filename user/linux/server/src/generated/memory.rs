//! The file `/proc/PID/mem`: the memory of a process, each byte at the offset of its address.

use tench_linux_files::{Errno, NodeId};

use super::{Owner, What};
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::process::Process;
use crate::spaces::SpaceId;

impl<M: Machine> Caller<'_, M> {
    /// Checks that the caller may read and write the memory of a process, as a tracer does.
    pub(super) fn check_attachment(&self, owner: Owner) -> Result<()> {
        let process = self.viewer().process(owner).ok_or(Errno::ESRCH)?;
        let may = process.id == self.process.id || self.identity().may_attach(process.identity(), process.is_dumpable);
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Returns how many programs a process has started, for a file that has just been opened.
    pub(crate) fn programs_of(&self, node: NodeId) -> u64 {
        let owner = What::of(node).and_then(What::owner);
        owner.and_then(|owner| self.viewer().process(owner)).map_or(0, |process| process.programs)
    }

    /// Returns the address space that an open file shows; nothing if its process has ended, or has started another
    /// program: who opened the file need not be allowed to see the memory of that.
    fn space_of_file(&self, owner: Owner, programs: u64) -> Result<Option<SpaceId>> {
        let viewer = self.viewer();
        let is_same = |process: &&Process<M>| !process.has_ended() && process.programs == programs;
        let Some(process) = viewer.process(owner).filter(is_same) else { return Ok(None) };
        self.check_attachment(owner)?;
        Ok(Some(process.space))
    }

    /// Reads from an address on, as far as there is memory.
    pub(super) fn read_memory(&mut self, owner: Owner, programs: u64, address: u64, into: &mut [u8]) -> Result<usize> {
        let Some(space) = self.space_of_file(owner, programs)? else { return Ok(0) };
        match self.system.read(space, address, into) {
            0 if !into.is_empty() => Err(Errno::EIO),
            count => Ok(count),
        }
    }

    /// Writes from an address on, as far as there is memory: also where the process itself may only read, if it shares
    /// the memory with nobody.
    pub(super) fn write_memory(&mut self, owner: Owner, programs: u64, address: u64, from: &[u8]) -> Result<usize> {
        let Some(space) = self.space_of_file(owner, programs)? else { return Ok(0) };
        match self.system.write_by_force(space, address, from) {
            0 if !from.is_empty() => Err(Errno::EIO),
            count => Ok(count),
        }
    }
}
