//! Calls about shared memory of System V.

use tench_linux_calls::ipc::{command, shm, shm_info, shmid64_ds, shminfo64};
use tench_linux_files::Errno;
use tench_linux_memory::{Backing, MapRequest, Memory, ObjectId, PAGE_SIZE, Placement, Rights, round_up};
use tench_linux_sysv::Segments;

use super::ipc::{found, identifier, owner, put, put_half, put_permissions};
use crate::Machine;
use crate::caller::{Caller, Result};

/// Logarithms of the sizes that huge pages have on Linux; 0 is the usual one.
const HUGE_SIZES: [u32; 5] = [0, 16, 21, 25, 30];

impl<M: Machine> Caller<'_, M> {
    /// Returns the identifier of a segment, or makes it.
    pub fn shmget(&mut self, key: u64, size: u64, flags: u64) -> Result {
        let identity = self.identity().clone();
        let (by, key, flags) = (self.by(&identity), (key as u32).cast_signed(), flags as u32);
        let memory = &mut self.system.memory;
        let make = || {
            if flags & shm::HUGETLB != 0 {
                let is_known = HUGE_SIZES.contains(&(flags >> shm::HUGE_SHIFT & shm::HUGE_MASK));
                // No huge pages are reserved.
                return Err(if is_known { Errno::ENOMEM } else { Errno::EINVAL });
            }
            let length = round_up(size).ok_or(Errno::EINVAL)?;
            Ok(memory.objects.make_counted(alloc::format!("SYSV{key:08x}").as_bytes(), length))
        };
        let id = self.system.ipc.segments.get(&by, key, size, flags, make)?;
        Ok(id.cast_unsigned().into())
    }

    /// Attaches a segment. Returns its address.
    pub fn shmat(&mut self, id: u64, address: u64, flags: u64) -> Result {
        let (id, flags) = (identifier(id)?, flags as u32);
        let replaces = flags & shm::REMAP != 0;
        let start = if flags & shm::RND != 0 { address - address % PAGE_SIZE } else { address };
        if !start.is_multiple_of(PAGE_SIZE) || start == 0 && replaces {
            return Err(Errno::EINVAL);
        }
        let (mut rights, mut wanted) = (Rights::READ, 0o444);
        if flags & shm::RDONLY == 0 {
            rights |= Rights::WRITE;
            wanted |= 0o222;
        }
        let mut allowed = rights | Rights::EXECUTE;
        if flags & shm::EXEC != 0 {
            rights |= Rights::EXECUTE;
            wanted |= 0o111;
        }
        allowed |= rights;
        let identity = self.identity().clone();
        let by = self.by(&identity);
        let segment = self.system.ipc.segments.attach(&by, id, wanted)?;
        let (object, length) = (segment.content, segment.size);
        if start != 0 && !replaces && start.checked_add(length).is_none() {
            return Err(Errno::EINVAL);
        }
        let placement = match address {
            0 => Placement::Hint(0),
            _ if replaces => Placement::Fixed(start),
            _ => Placement::FixedIfFree(start),
        };
        let backing = Backing::Object(object, 0);
        let (space, memory) = self.space();
        let request = MapRequest { placement, length, rights, allowed, shared: true, backing, grows: false };
        space.map(memory, &request).map_err(|error| if error == Errno::EEXIST { Errno::EINVAL } else { error })
    }

    /// Detaches the segment that was attached at an address: all parts of it that are where they were then.
    pub fn shmdt(&mut self, address: u64) -> Result {
        if !address.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let (first, object) = self.attached_at(address).ok_or(Errno::EINVAL)?;
        let length = self.system.memory.objects.get(object).length();
        let mut next = first;
        while let Some((start, end)) = self.part_from(next, address, Some(object)) {
            if start != first && end - address > length {
                break;
            }
            let (space, memory) = self.space();
            space.unmap(memory, start, end - start)?;
            next = end;
        }
        Ok(0)
    }

    /// Returns the first area of a segment that was attached at an address, and the segment's contents.
    fn attached_at(&mut self, address: u64) -> Option<(u64, ObjectId)> {
        let (start, _) = self.part_from(address, address, None)?;
        let (space, _) = self.space();
        match space.areas().at(start)?.1.backing {
            Backing::Object(object, _) => Some((start, object)),
            Backing::Anonymous => None,
        }
    }

    /// Returns the range of the first area at or above `from` that maps a part of a segment that was attached at an
    /// address; with `of`, of that segment only.
    fn part_from(&mut self, from: u64, address: u64, of: Option<ObjectId>) -> Option<(u64, u64)> {
        let (space, memory) = self.space();
        let part = space.areas().within(from..u64::MAX).find(|(range, area)| match area.backing {
            Backing::Object(object, offset) => {
                let is_whole = space.areas().at(range.start).is_some_and(|(start, _)| start == range.start);
                let is_it = of.map_or(memory.objects.is_counted(object), |of| of == object);
                is_whole && is_it && range.start - address == offset
            }
            Backing::Anonymous => false,
        });
        part.map(|(range, _)| (range.start, range.end))
    }

    /// Tells or changes what is known of a segment, or of all.
    pub fn shmctl(&mut self, id: u64, number: u64, buffer: u64) -> Result {
        let identity = self.identity().clone();
        let (id, number, by) = (identifier(id)?, number as u32, self.by(&identity));
        let highest = self.system.ipc.segments.highest();
        match number {
            command::INFO => self.write(buffer, &limits()).map(|()| highest),
            command::SHM_INFO => {
                let record = self.use_of_segments();
                self.write(buffer, &record).map(|()| highest)
            }
            command::STAT | command::SHM_STAT | command::SHM_STAT_ANY => {
                let (record, result) = self.status_of_segment(id, number)?;
                self.write(buffer, &record).map(|()| result)
            }
            command::SET => {
                let record: [u8; shmid64_ds::SIZE] = self.read_record(buffer)?;
                self.system.ipc.segments.give(&by, id, &owner(&record)).map(|()| 0)
            }
            command::REMOVE => {
                if let Some(content) = self.system.ipc.segments.remove(&by, id)? {
                    let Memory { objects, pool, .. } = &mut self.system.memory;
                    objects.release(pool, content);
                }
                Ok(0)
            }
            command::SHM_LOCK => self.system.ipc.segments.lock(&by, id, true).map(|()| 0),
            command::SHM_UNLOCK => self.system.ipc.segments.lock(&by, id, false).map(|()| 0),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns the record of a segment, and what the call returns.
    fn status_of_segment(&self, id: i32, number: u32) -> Result<([u8; shmid64_ds::SIZE], u64)> {
        let how = found(number, command::SHM_STAT);
        let identity = self.identity().clone();
        let (entry, result) = self.system.ipc.segments.look(&self.by(&identity), id, how)?;
        let segment = &entry.value;
        let mut record = [0; shmid64_ds::SIZE];
        put_permissions(&mut record, entry);
        put(&mut record, shmid64_ds::SIZE_OF_SEGMENT, segment.size);
        put(&mut record, shmid64_ds::ATTACHED, segment.attached);
        put(&mut record, shmid64_ds::DETACHED, segment.detached);
        put(&mut record, shmid64_ds::CHANGED, segment.changed);
        put_half(&mut record, shmid64_ds::MAKER, segment.maker);
        put_half(&mut record, shmid64_ds::LAST, segment.last);
        put(&mut record, shmid64_ds::ATTACHMENTS, segment.attachments);
        Ok((record, result))
    }

    /// Returns the record of how much memory all segments use.
    fn use_of_segments(&self) -> [u8; shm_info::SIZE] {
        let segments = &self.system.ipc.segments;
        let objects = &self.system.memory.objects;
        let resident: usize = segments.iter().map(|entry| objects.get(entry.value.content).pages().count()).sum();
        let mut record = [0; shm_info::SIZE];
        put_half(&mut record, shm_info::COUNT, segments.count() as u32);
        put(&mut record, shm_info::PAGES, segments.pages());
        put(&mut record, shm_info::RESIDENT, resident as u64);
        record
    }
}

/// Returns the record of the limits.
fn limits() -> [u8; shminfo64::SIZE] {
    let (bytes, count) = (Segments::<ObjectId>::MAX_BYTES, Segments::<ObjectId>::MAX_COUNT as u64);
    let mut record = [0; shminfo64::SIZE];
    put(&mut record, shminfo64::MOST_BYTES, bytes);
    put(&mut record, shminfo64::LEAST_BYTES, 1);
    put(&mut record, shminfo64::MOST, count);
    put(&mut record, shminfo64::MOST_ATTACHED, count);
    put(&mut record, shminfo64::MOST_PAGES, bytes);
    record
}
