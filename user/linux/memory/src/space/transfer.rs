//! Calls that read and write a process's memory.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Access, MAX_AREAS, Space};
use crate::{Errno, Hardware, Memory, ObjectId, PAGE_SIZE, Place, Rights};

impl<H: Hardware> Space<H> {
    /// Copies bytes of the process from an address on. Returns how many could be read.
    #[inline]
    pub fn read(&mut self, memory: &mut Memory<H>, address: u64, into: &mut [u8]) -> usize {
        if let Some(Place { page, offset }) = self.place_at_hand(address, into.len(), Access::Read) {
            into.copy_from_slice(&memory.hardware.bytes(page)[offset..offset + into.len()]);
            return into.len();
        }
        self.read_parts(memory, address, into)
    }

    fn read_parts(&mut self, memory: &mut Memory<H>, address: u64, into: &mut [u8]) -> usize {
        self.transfer(memory, address, into.len(), Access::Read, |memory, place, part| {
            let bytes = &memory.hardware.bytes(place.page)[place.offset..];
            into[part.clone()].copy_from_slice(&bytes[..part.len()]);
            true
        })
    }

    /// Copies bytes of the process from an address on, until a zero, which is not copied. Returns whether one came
    /// within so many bytes.
    ///
    /// # Errors
    /// `EFAULT` if a byte before cannot be read.
    pub fn read_string(
        &mut self,
        memory: &mut Memory<H>,
        address: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> Result<bool, Errno> {
        let mut has_ended = false;
        let read = self.transfer(memory, address, limit, Access::Read, |memory, place, part| {
            let bytes = &memory.hardware.bytes(place.page)[place.offset..][..part.len()];
            let end = bytes.iter().position(|byte| *byte == 0);
            has_ended = end.is_some();
            into.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            !has_ended
        });
        if has_ended || read == limit { Ok(has_ended) } else { Err(Errno::EFAULT) }
    }

    /// Copies bytes to the process, to an address on. Returns how many could be written.
    #[inline]
    pub fn write(&mut self, memory: &mut Memory<H>, address: u64, from: &[u8]) -> usize {
        if let Some(Place { page, offset }) = self.place_at_hand(address, from.len(), Access::Write) {
            memory.hardware.bytes(page)[offset..offset + from.len()].copy_from_slice(from);
            return from.len();
        }
        self.write_parts(memory, address, from)
    }

    fn write_parts(&mut self, memory: &mut Memory<H>, address: u64, from: &[u8]) -> usize {
        self.transfer(memory, address, from.len(), Access::Write, |memory, place, part| {
            let bytes = &mut memory.hardware.bytes(place.page)[place.offset..];
            bytes[..part.len()].copy_from_slice(&from[part]);
            true
        })
    }

    /// Copies bytes to the process, also where it may only read, as long as others do not see them. Returns how many
    /// could be written.
    pub fn write_by_force(&mut self, memory: &mut Memory<H>, address: u64, from: &[u8]) -> usize {
        let mut done = 0;
        loop {
            done += self.write(memory, address.wrapping_add(done as u64), &from[done..]);
            if done == from.len() {
                return done;
            }
            let place = address.wrapping_add(done as u64);
            let count = (from.len() - done).min((PAGE_SIZE - place % PAGE_SIZE) as usize);
            let written = self.write_to_private_page(memory, place, &from[done..done + count]);
            done += written;
            if written < count {
                return done;
            }
        }
    }

    /// Copies bytes to a page of the process that it shares with nobody. Returns how many could be written.
    fn write_to_private_page(&mut self, memory: &mut Memory<H>, address: u64, from: &[u8]) -> usize {
        let area = self.areas.at(address).filter(|(_, area)| !area.shared);
        let Some(rights) = area.map(|(_, area)| area.rights) else { return 0 };
        // The page becomes an area of its own meanwhile, between two others.
        let is_full = self.areas.count() + 2 > MAX_AREAS;
        let page = address & !(PAGE_SIZE - 1);
        if is_full || self.protect(memory, page, PAGE_SIZE, Rights::READ | Rights::WRITE).is_err() {
            return 0;
        }
        let written = self.write(memory, address, from);
        let restored = self.protect(memory, page, PAGE_SIZE, rights);
        debug_assert!(restored.is_ok(), "{restored:?}");
        written
    }

    /// Copies zeros to the process, to an address on. Returns how many could be written.
    pub fn write_zeros(&mut self, memory: &mut Memory<H>, address: u64, length: usize) -> usize {
        self.transfer(memory, address, length, Access::Write, |memory, place, part| {
            memory.hardware.bytes(place.page)[place.offset..][..part.len()].fill(0);
            true
        })
    }

    /// Copies bytes of an object, from an offset on, to the process. All lie before the object's end. Returns how many
    /// could be written.
    pub fn write_from(
        &mut self,
        memory: &mut Memory<H>,
        address: u64,
        (object, offset): (ObjectId, u64),
        length: usize,
    ) -> usize {
        self.transfer(memory, address, length, Access::Write, |memory, place, part| {
            let Memory { objects, hardware, .. } = memory;
            objects.copy_to(hardware, object, offset + part.start as u64, place, part.len());
            true
        })
    }

    /// Copies bytes of the process to an object, from an offset on. Returns how many could be read, and written before
    /// there was no memory for more.
    ///
    /// # Errors
    /// If there were none: `EFAULT` if the first one cannot be read, `ENOSPC` if there is no memory.
    pub fn read_to(
        &mut self,
        memory: &mut Memory<H>,
        address: u64,
        (object, offset): (ObjectId, u64),
        length: usize,
    ) -> Result<usize, Errno> {
        let mut written = 0;
        let read = self.transfer(memory, address, length, Access::Read, |memory, place, part| {
            let Memory { pool, objects, hardware } = memory;
            written += objects.copy_from(pool, hardware, object, offset + part.start as u64, place, part.len());
            written == part.end
        });
        match (length, read, written) {
            (1.., 0, 0) => Err(Errno::EFAULT),
            (1.., _, 0) => Err(Errno::ENOSPC),
            _ => Ok(written),
        }
    }

    /// Returns where so many bytes are, if they lie in one page that can be accessed as it is mapped, as most arguments
    /// do. No bytes are nowhere.
    fn place_at_hand(&self, address: u64, length: usize, access: Access) -> Option<Place> {
        let offset = (address % PAGE_SIZE) as usize;
        if length == 0 || length > PAGE_SIZE as usize - offset {
            return None;
        }
        Some(Place { page: self.mapped(address, access)?, offset })
    }

    /// Calls a function for the parts of a range that lie in one page each, with their first bytes, while it returns
    /// true and the access is possible. Returns the length of the parts for which it was called.
    fn transfer(
        &mut self,
        memory: &mut Memory<H>,
        address: u64,
        length: usize,
        access: Access,
        mut each: impl FnMut(&mut Memory<H>, Place, Range<usize>) -> bool,
    ) -> usize {
        let mut done = 0;
        while done < length {
            let Some(place) = address.checked_add(done as u64) else { break };
            let Ok(page) = self.resolve(memory, place, access) else { break };
            let offset = (place % PAGE_SIZE) as usize;
            let part = done..length.min(done + PAGE_SIZE as usize - offset);
            done = part.end;
            if !each(memory, Place { page, offset }, part) {
                break;
            }
        }
        done
    }
}
