//! Calls that change the process's memory.

use tench_linux_calls::numbers::{map, open, prot};
use tench_linux_files::{Errno, Kind};
use tench_linux_memory::{Backing, MapRequest, Move, PAGE_SIZE, Placement, Rights, round_up};

use crate::caller::{Caller, Result};
use crate::devices;
use crate::waiting::Interruption;
use crate::{Machine, System};

/// The longest object in memory, in bytes.
const MAX_LENGTH: u64 = 1 << 47;

/// Returns the rights that Linux gives. Whatever can be written or executed can be read on this machine.
fn rights(protection: u64) -> Rights {
    let protection = protection as u32;
    let mut rights = Rights::empty();
    rights.set(Rights::WRITE, protection & prot::WRITE != 0);
    rights.set(Rights::EXECUTE, protection & prot::EXEC != 0);
    rights.set(Rights::READ, protection & (prot::READ | prot::WRITE | prot::EXEC) != 0);
    rights
}

impl<M: Machine> Caller<'_, M> {
    /// Moves the end of the heap. Returns where it is then, which is where it was if it cannot be moved.
    pub fn brk(&mut self, end: u64) -> Result {
        let System { memory, spaces, .. } = &mut *self.system;
        let used = spaces.get(self.process.space);
        let Some(new) = round_up(end).filter(|_| end >= used.heap) else { return Ok(used.heap_end) };
        let old = round_up(used.heap_end).unwrap_or(used.heap_end);
        if new > old {
            let request = MapRequest {
                placement: Placement::FixedIfFree(old),
                length: new - old,
                rights: Rights::READ | Rights::WRITE,
                allowed: Rights::all(),
                shared: false,
                backing: Backing::Anonymous,
                grows: false,
            };
            if used.space.map(memory, &request).is_err() {
                return Ok(used.heap_end);
            }
        } else if new < old && used.space.unmap(memory, new, old - new).is_err() {
            return Ok(used.heap_end);
        }
        used.heap_end = end;
        Ok(end)
    }

    /// Makes an area.
    pub fn mmap(&mut self, address: u64, length: u64, protection: u64, flags: u64, file: u64, offset: u64) -> Result {
        let flags = flags as u32;
        let shared = match flags & map::TYPE {
            map::PRIVATE => false,
            map::SHARED | map::SHARED_VALIDATE => true,
            _ => return Err(Errno::EINVAL),
        };
        if length == 0 || !offset.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let size = round_up(length).filter(|length| *length <= MAX_LENGTH).ok_or(Errno::ENOMEM)?;
        offset.checked_add(size).ok_or(Errno::EOVERFLOW)?;
        let placement = match flags {
            _ if flags & map::FIXED_NOREPLACE != 0 => Placement::FixedIfFree(address),
            _ if flags & map::FIXED != 0 => Placement::Fixed(address),
            _ => Placement::Hint(address),
        };
        let mut allowed = Rights::all();
        let anonymous = flags & map::ANONYMOUS != 0;
        let (backing, shared) = if anonymous {
            let backing = if shared {
                Backing::Object(self.system.memory.objects.make(size, &[]), 0)
            } else {
                Backing::Anonymous
            };
            (backing, shared)
        } else {
            self.file_to_map(file, offset, (shared, rights(protection)), &mut allowed)?
        };
        let rights = rights(protection);
        let grows = flags & map::GROWSDOWN != 0;
        let request = MapRequest { placement, length, rights, allowed, shared, backing, grows };
        let result = if allowed.contains(rights) {
            let (space, memory) = self.space();
            space.map(memory, &request)
        } else {
            Err(Errno::EACCES)
        };
        if let (Backing::Object(object, _), true) = (backing, anonymous) {
            // Its users are the areas from now on.
            let memory = &mut self.system.memory;
            memory.objects.release(&mut memory.pool, object);
        }
        result
    }

    /// Returns what a file's area consists of.
    fn file_to_map(
        &mut self,
        file: u64,
        offset: u64,
        (shared, rights): (bool, Rights),
        allowed: &mut Rights,
    ) -> Result<(Backing, bool)> {
        let description = self.descriptor(file)?;
        let description = self.system.descriptions.get(description);
        let (node, reads, writes) = (description.node, description.reads(), description.writes());
        let is_path = description.flags & open::PATH != 0;
        if is_path {
            return Err(Errno::EBADF);
        }
        if !reads {
            return Err(Errno::EACCES);
        }
        if shared && !writes {
            allowed.remove(Rights::WRITE);
        }
        match self.system.tree.node(node).kind {
            Kind::Regular(object) => {
                if shared && writes && self.system.tree.node(node).mirror.is_some() {
                    // What is written to memory would not come to the file server.
                    if rights.contains(Rights::WRITE) {
                        return Err(Errno::ENODEV);
                    }
                    allowed.remove(Rights::WRITE);
                } else if shared && writes {
                    self.check_seals_to_map(object, rights, allowed)?;
                }
                Ok((Backing::Object(object, offset), shared))
            }
            // Zeros are anonymous memory; those that are shared nobody else can name.
            Kind::Character(devices::ZERO) => Ok((Backing::Anonymous, false)),
            _ => Err(Errno::ENODEV),
        }
    }

    /// Removes what is in a range.
    pub fn munmap(&mut self, address: u64, length: u64) -> Result {
        let (space, memory) = self.space();
        space.unmap(memory, address, length).map(|()| 0)
    }

    /// Changes the length or the place of an area.
    pub fn mremap(&mut self, old: u64, old_length: u64, new_length: u64, flags: u64, new: u64) -> Result {
        const MAY_MOVE: u64 = 1;
        const FIXED: u64 = 2;
        let to = match flags {
            0 => Move::No,
            MAY_MOVE => Move::IfNecessary,
            flags if flags == MAY_MOVE | FIXED => Move::To(new),
            _ => return Err(Errno::EINVAL),
        };
        let (space, memory) = self.space();
        space.remap(memory, old, old_length, new_length, to)
    }

    /// Changes what the process may do in a range.
    pub fn mprotect(&mut self, address: u64, length: u64, protection: u64) -> Result {
        let (space, memory) = self.space();
        space.protect(memory, address, length, rights(protection)).map(|()| 0)
    }

    /// Takes advice about a range.
    pub fn madvise(&mut self, address: u64, length: u64, advice: u64) -> Result {
        const DONT_NEED: u64 = 4;
        const FREE: u64 = 8;
        const KNOWN: core::ops::RangeInclusive<u64> = 0..=23;
        match advice {
            DONT_NEED | FREE => {
                let (space, memory) = self.space();
                space.discard(memory, address, length).map(|()| 0)
            }
            advice if !KNOWN.contains(&advice) => Err(Errno::EINVAL),
            _ if !address.is_multiple_of(PAGE_SIZE) => Err(Errno::EINVAL),
            _ => {
                let end = round_up(length).and_then(|length| address.checked_add(length)).ok_or(Errno::EINVAL)?;
                if self.space().0.areas().cover(address..end) { Ok(0) } else { Err(Errno::ENOMEM) }
            }
        }
    }

    /// Tells which pages of a range are in memory, by a byte for each. Others are served between parts of a long range.
    pub fn mincore(&mut self, address: u64, length: u64, into: u64) -> Result {
        const PART: u64 = 1 << 16;
        if !address.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let end = round_up(length).and_then(|length| address.checked_add(length)).ok_or(Errno::ENOMEM)?;
        let first = self.done();
        let pages = (end - address) / PAGE_SIZE;
        let last = pages.min(first.saturating_add(PART));
        let mut bytes = [0; 256];
        let mut done = first;
        while done < last {
            let count = (last - done).min(bytes.len() as u64);
            for (byte, page) in bytes.iter_mut().zip(done..done + count) {
                let (space, memory) = self.space();
                *byte = space.is_present(memory, address + page * PAGE_SIZE).ok_or(Errno::ENOMEM)?.into();
            }
            self.write(into.checked_add(done).ok_or(Errno::EFAULT)?, &bytes[..count as usize])?;
            done += count;
        }
        if done == pages {
            return Ok(0);
        }
        let error = self.let_others_be_served(done);
        if let Some(waiting) = self.waiting_mut() {
            waiting.interruption = Interruption::Never;
        }
        Err(error)
    }

    /// Lets the other threads of the process, or of all, see what this one has written, and the other way round. All
    /// threads run on one core, so that each change between two is such a barrier already.
    pub fn membarrier(&mut self, command: u64, flags: u64) -> Result {
        const QUERY: u32 = 0;
        const GLOBAL: u32 = 1;
        const GLOBAL_FAST: u32 = 2;
        const REGISTER_GLOBAL: u32 = 4;
        const PRIVATE: u32 = 8;
        const REGISTER_PRIVATE: u32 = 16;
        const PRIVATE_CODE: u32 = 32;
        const REGISTER_PRIVATE_CODE: u32 = 64;
        const ALL: u32 = 127;
        if flags as u32 != 0 {
            return Err(Errno::EINVAL);
        }
        let registered = &mut self.system.spaces.get(self.process.space).barriers;
        match command as u32 {
            QUERY => Ok(ALL.into()),
            GLOBAL | GLOBAL_FAST => Ok(0),
            command @ (REGISTER_GLOBAL | REGISTER_PRIVATE | REGISTER_PRIVATE_CODE) => {
                *registered |= command;
                Ok(0)
            }
            command @ (PRIVATE | PRIVATE_CODE) if *registered & command << 1 == 0 => Err(Errno::EPERM),
            PRIVATE | PRIVATE_CODE => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Writes an area back to its file: nothing is to be done, but the range must have areas.
    pub fn msync(&mut self, address: u64, length: u64, flags: u64) -> Result {
        const ASYNC: u32 = 1;
        const INVALIDATE: u32 = 2;
        const SYNC: u32 = 4;
        let flags = flags as u32;
        let both = ASYNC | SYNC;
        if flags & !(both | INVALIDATE) != 0 || flags & both == both || !address.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let end = round_up(length).and_then(|length| address.checked_add(length)).ok_or(Errno::ENOMEM)?;
        self.require_areas(address, end)
    }

    /// Locks or unlocks pages in memory, where all pages stay anyway.
    pub fn mlock(&mut self, address: u64, length: u64) -> Result {
        let start = address - address % PAGE_SIZE;
        let end = address.checked_add(length).and_then(round_up).ok_or(Errno::EINVAL)?;
        self.require_areas(start, end)
    }

    /// Locks all pages in memory, where they stay anyway.
    pub fn mlockall(flags: u64) -> Result {
        const CURRENT: u32 = 1;
        const FUTURE: u32 = 2;
        const ON_FAULT: u32 = 4;
        let flags = flags as u32;
        let is_known = flags & !(CURRENT | FUTURE | ON_FAULT) == 0;
        if is_known && flags & (CURRENT | FUTURE) != 0 { Ok(0) } else { Err(Errno::EINVAL) }
    }

    /// Fails unless a range, which may be empty, has areas everywhere.
    fn require_areas(&mut self, start: u64, end: u64) -> Result {
        let covers = start == end || self.space().0.areas().cover(start..end);
        if covers { Ok(0) } else { Err(Errno::ENOMEM) }
    }
}
