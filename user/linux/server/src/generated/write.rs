//! Generated files that can be written.

use tench_linux_calls::numbers::capability;
use tench_linux_files::Errno;

use super::process::{ENTRIES, Entry};
use super::{Owner, What};
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::DescriptionId;

/// How much the system's choice of whom to end can be changed for a process.
const SCORES: core::ops::RangeInclusive<i16> = -1000..=1000;
/// The most bytes of a number that count.
const NUMBER: usize = 12;

impl<M: Machine> Caller<'_, M> {
    /// Writes to a generated file, at an offset if it is one with a process's memory. Returns the number of bytes.
    ///
    /// # Errors
    /// - `EIO`, `EINVAL`: it cannot be written, or not so.
    /// - `ESRCH`: its process does not exist any more.
    pub(crate) fn write_generated(&mut self, description: DescriptionId, offset: u64, from: &[u8]) -> Result<usize> {
        let open_file = self.system.descriptions.get(description);
        let programs = open_file.programs;
        match What::of(open_file.node) {
            Some(What::Entry(owner, index) | What::ThreadEntry(owner, _, index))
                if ENTRIES[index].entry == Entry::Memory =>
            {
                self.write_memory(owner, programs, offset, from)
            }
            Some(What::Entry(owner, index)) => self.write_entry(owner, owner.id, ENTRIES[index].entry, from),
            Some(What::ThreadEntry(owner, thread, index)) => {
                self.write_entry(owner, thread, ENTRIES[index].entry, from)
            }
            Some(What::DescriptorFacts(..)) => Err(Errno::EINVAL),
            _ => Err(Errno::EIO),
        }
    }

    fn write_entry(&mut self, owner: Owner, thread: u32, entry: Entry, from: &[u8]) -> Result<usize> {
        match entry {
            Entry::Name => self.write_name(owner, thread, from),
            Entry::ScoreAdjustment => self.write_score(owner, from),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Changes the name of a thread of the own process.
    fn write_name(&mut self, owner: Owner, thread: u32, from: &[u8]) -> Result<usize> {
        let process = self.viewer().process(owner).ok_or(Errno::ESRCH)?;
        if process.id != self.process.id {
            return Err(Errno::EINVAL);
        }
        let index = process.index_of(thread).map_err(|_| Errno::ESRCH)?;
        let end = from.iter().position(|byte| *byte == 0).unwrap_or(from.len());
        self.process.threads[index].set_name(&from[..end]);
        Ok(from.len())
    }

    /// Records how much sooner or later than others a process is to be ended if there is no memory.
    fn write_score(&mut self, owner: Owner, from: &[u8]) -> Result<usize> {
        let text = core::str::from_utf8(&from[..from.len().min(NUMBER)]).map_err(|_| Errno::EINVAL)?;
        let score = text.trim().parse().ok().filter(|score| SCORES.contains(score)).ok_or(Errno::EINVAL)?;
        self.viewer().process(owner).filter(|process| !process.has_ended()).ok_or(Errno::ESRCH)?;
        let is_privileged = self.identity().has(capability::SYS_RESOURCE);
        let process = if owner.id == self.process.id { Some(&mut *self.process) } else { self.others.get(owner.id) };
        let process = process.ok_or(Errno::ESRCH)?;
        if score < process.least_adjustment && !is_privileged {
            return Err(Errno::EACCES);
        }
        process.score_adjustment = score;
        if is_privileged {
            process.least_adjustment = score;
        }
        Ok(from.len())
    }
}
