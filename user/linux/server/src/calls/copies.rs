//! Calls that copy from one file to another.

use alloc::vec;

use tench_linux_calls::numbers::open;
use tench_linux_files::{Class, Errno, Kind, NodeId};
use tench_linux_memory::ObjectId;

use super::transfer::{MAX_TRANSFER, PART};
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::DescriptionId;

impl<M: Machine> Caller<'_, M> {
    /// Copies from one file to another, from an offset that moves, or from the position.
    pub fn sendfile(&mut self, to: u64, from: u64, offset: u64, length: u64) -> Result {
        let (to, from) = (self.descriptor(to)?, self.descriptor(from)?);
        let is_open = self.system.descriptions.get(from).reads() && self.system.descriptions.get(to).writes();
        is_open.then_some(()).ok_or(Errno::EBADF)?;
        let node = self.system.descriptions.get(from).node;
        if !matches!(self.system.tree.node(node).kind, Kind::Regular(_) | Kind::Generated(Class::File)) {
            return Err(Errno::EINVAL);
        }
        let mut place = match offset {
            0 => self.system.descriptions.get(from).position,
            _ => u64::from_le_bytes(self.read_record(offset)?),
        };
        if place.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let mut done = self.copy_between((from, place), (to, None), length)?;
        let target = self.system.descriptions.get(to).node;
        if done > 0 && done < length && matches!(self.system.tree.node(target).kind, Kind::Regular(_)) {
            // As on Linux, which notices only then that there is no room for more.
            done += self.copy_between((from, place + done), (to, None), length - done).unwrap_or(0);
        }
        place += done;
        match offset {
            0 => self.system.descriptions.get(from).position = place,
            _ => self.write(offset, &place.to_le_bytes())?,
        }
        Ok(done)
    }

    /// Copies bytes of a regular file to another one. If an offset's address is 0, the file's position counts, and
    /// moves.
    pub fn copy_file_range(&mut self, [from, from_offset, to, to_offset]: [u64; 4], length: u64, flags: u64) -> Result {
        let (from, to) = (self.descriptor(from)?, self.descriptor(to)?);
        let (start, end) = (self.offset_at(from_offset, from)?, self.offset_at(to_offset, to)?);
        if flags as u32 != 0 {
            return Err(Errno::EINVAL);
        }
        let ((node, object), (to_node, _)) = (self.regular_file(from)?, self.regular_file(to)?);
        let descriptions = &mut self.system.descriptions;
        let is_readable = descriptions.get(from).reads();
        let target = descriptions.get(to);
        if !is_readable || !target.writes() || target.flags & open::APPEND != 0 {
            return Err(Errno::EBADF);
        }
        if start.checked_add(length).is_none() || end.checked_add(length).is_none() {
            return Err(Errno::EOVERFLOW);
        }
        if start.max(end) > i64::MAX.cast_unsigned() {
            return Err(Errno::EINVAL);
        }
        let left = self.system.memory.objects.get(object).length().saturating_sub(start);
        let length = length.min(left).min(MAX_TRANSFER);
        if node == to_node && start < end + length && end < start + length {
            return Err(Errno::EINVAL);
        }
        let done = self.copy_between((from, start), (to, Some(end)), length)?;
        for (address, description, place) in [(from_offset, from, start + done), (to_offset, to, end + done)] {
            match address {
                0 => self.system.descriptions.get(description).position = place,
                _ => self.write(address, &place.to_le_bytes())?,
            }
        }
        Ok(done)
    }

    /// Reads an offset, or returns a file's position if the address is 0.
    fn offset_at(&mut self, address: u64, description: DescriptionId) -> Result {
        match address {
            0 => Ok(self.system.descriptions.get(description).position),
            _ => Ok(u64::from_le_bytes(self.read_record(address)?)),
        }
    }

    /// Returns what an open regular file is.
    fn regular_file(&mut self, description: DescriptionId) -> Result<(NodeId, ObjectId)> {
        let node = self.system.descriptions.get(description).node;
        match self.system.tree.node(node).kind {
            Kind::Regular(object) => Ok((node, object)),
            Kind::Directory(_) | Kind::Generated(Class::Directory) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Copies bytes from a place of an open file to a place of another one, or to its position, until there are no more
    /// or no more fit. Returns their number.
    fn copy_between(
        &mut self,
        (from, start): (DescriptionId, u64),
        (to, end): (DescriptionId, Option<u64>),
        length: u64,
    ) -> Result {
        let (length, mut done) = (length.min(self.most_at_once(from)).min(self.most_at_once(to)), 0);
        while done < length {
            let mut buffer = vec![0; (length - done).min(PART as u64) as usize];
            let count = self.read_part(from, &mut buffer, Some(start + done))?;
            if count == 0 {
                break;
            }
            match self.write_part(to, &buffer[..count], end.map(|end| end + done)) {
                Ok(written) => {
                    done += written as u64;
                    if written < count {
                        break;
                    }
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }
}
