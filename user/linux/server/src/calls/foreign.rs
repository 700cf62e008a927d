//! Calls that copy between the memories of two processes.

use alloc::vec::Vec;

use tench_linux_files::Errno;

use super::transfer::{MAX_TRANSFER, PART, Vector, total};
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::spaces::SpaceId;

/// Places in a memory, one behind another, from which copying goes on.
struct Places {
    vectors: Vec<Vector>,
    done: u64,
}

impl Places {
    /// Returns the next place, and how many bytes are left there.
    fn next(&mut self) -> Option<(u64, u64)> {
        while let Some(vector) = self.vectors.first() {
            if self.done < vector.length {
                return Some((vector.address.wrapping_add(self.done), vector.length - self.done));
            }
            self.vectors.remove(0);
            self.done = 0;
        }
        None
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Copies from the memory of another process to the caller's, or the other way round. Returns how many bytes were
    /// copied.
    pub fn copy_foreign(&mut self, id: u64, own: [u64; 2], other: [u64; 2], flags: u64, writes: bool) -> Result {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let own_vectors = self.read_vectors(own[0], own[1])?;
        if total(&own_vectors) == 0 {
            return Ok(0);
        }
        let other_vectors = self.read_vectors(other[0], other[1])?;
        if total(&other_vectors) == 0 {
            return Ok(0);
        }
        let space = self.foreign_space(id)?;
        let own = (self.process.space, Places { vectors: own_vectors, done: 0 });
        let other = (space, Places { vectors: other_vectors, done: 0 });
        let done = if writes { self.copy_places(own, other) } else { self.copy_places(other, own) };
        if done == 0 { Err(Errno::EFAULT) } else { Ok(done) }
    }

    /// Returns the memory of a process that has not ended.
    fn foreign_space(&self, id: u64) -> Result<SpaceId> {
        let id = id as u32;
        if self.process.index_of(id).is_ok() {
            return Ok(self.process.space);
        }
        let owner = self.others.owner(id).unwrap_or(id);
        let process = self.others.find(owner).filter(|process| !process.has_ended()).ok_or(Errno::ESRCH)?;
        let may_inspect = self.identity().may_attach(process.identity(), process.is_dumpable);
        if may_inspect { Ok(process.space) } else { Err(Errno::EPERM) }
    }

    /// Copies as much as can be copied. Returns the number of bytes.
    fn copy_places(&mut self, mut from: (SpaceId, Places), mut to: (SpaceId, Places)) -> u64 {
        let mut buffer = self.take_buffer();
        let mut done = 0;
        while done < MAX_TRANSFER
            && let (Some((source, left)), Some((target, room))) = (from.1.next(), to.1.next())
        {
            let part = left.min(room).min(PART as u64).min(MAX_TRANSFER - done) as usize;
            let read = self.system.read(from.0, source, &mut buffer[..part]);
            let written = self.system.write(to.0, target, &buffer[..read]);
            done += written as u64;
            from.1.done += written as u64;
            to.1.done += written as u64;
            if written < part {
                break;
            }
        }
        self.system.buffer = buffer;
        done
    }
}
