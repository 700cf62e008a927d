//! Calls that read and write files.

use alloc::vec::Vec;

use tench_linux_calls::numbers::open;
use tench_linux_calls::records::{iovec, u64_at};
use tench_linux_files::{Class, Errno, Kind, NodeId};
use tench_linux_memory::ObjectId;

use crate::caller::{Caller, Result, WAITS};
use crate::calls::seals::KEEPING_SEALS;
use crate::descriptors::DescriptionId;
use crate::devices;
use crate::mounts::Changed;
use crate::{Machine, System};

/// The most that one call transfers.
pub(super) const MAX_TRANSFER: u64 = 0x7fff_f000;
/// The most that is copied at once, in bytes.
pub(super) const PART: usize = 64 * 1024;
/// The most that one call reads of what is made for it, or writes to it, in bytes.
const MAX_GENERATED: u64 = 1 << 20;
/// RWF_HIPRI, RWF_DSYNC and RWF_SYNC: what is written is at once where it stays.
const KEEPING_FLAGS: u64 = 1 | 2 | 4;
/// The most vectors of one call.
pub(super) const MAX_VECTORS: u64 = 1024;

/// A place in the process's memory.
#[derive(Clone, Copy)]
pub(super) struct Vector {
    pub(super) address: u64,
    pub(super) length: u64,
}

/// End of the addresses that Linux gives to programs. Whatever is written to nothing only has to lie before it.
pub(super) const END: u64 = 1 << 48;

/// Returns how many bytes a call with these vectors transfers at most.
pub(super) fn total(vectors: &[Vector]) -> u64 {
    vectors.iter().map(|vector| vector.length).sum::<u64>().min(MAX_TRANSFER)
}

/// Returns the result of writing where nobody reads what is written: only its addresses have to be possible.
fn swallow(vectors: &[Vector]) -> Result {
    let is_possible = |vector: &Vector| vector.address.checked_add(vector.length).is_some_and(|end| end <= END);
    if !vectors.iter().all(is_possible) {
        return Err(Errno::EFAULT);
    }
    Ok(total(vectors))
}

/// Checks that the offset behind the last byte of a transfer is one that a file can have.
pub(super) fn check_end(start: u64, length: u64) -> Result<()> {
    let end = start.checked_add(length).filter(|end| i64::try_from(*end).is_ok());
    end.map(drop).ok_or(Errno::EINVAL)
}

/// The place in a file from which a call transfers.
enum From {
    /// The position of the open file, which moves.
    Position,
    /// This offset.
    Offset(u64),
}

impl<M: Machine> Caller<'_, M> {
    /// Reads from a file, at its position or at an offset.
    pub fn read_file(&mut self, descriptor: u64, address: u64, length: u64, offset: Option<u64>) -> Result {
        let description = self.descriptor(descriptor)?;
        self.system.descriptions.get(description).reads().then_some(()).ok_or(Errno::EBADF)?;
        let from = self.from(description, offset)?;
        let length = length.min(MAX_TRANSFER);
        if self.is_socket(description) {
            return self.read_socket(descriptor, &[Vector { address, length }]);
        }
        self.read_to(description, address, length, from)
    }

    /// Writes to a file, at its position or at an offset.
    pub fn write_file(&mut self, descriptor: u64, address: u64, length: u64, offset: Option<u64>) -> Result {
        let description = self.descriptor(descriptor)?;
        self.system.descriptions.get(description).writes().then_some(()).ok_or(Errno::EBADF)?;
        let from = self.from(description, offset)?;
        let vectors = [Vector { address, length: length.min(MAX_TRANSFER) }];
        if self.is_socket(description) {
            return self.write_socket(descriptor, &vectors);
        }
        self.write_vectors(description, &vectors, &from)
    }

    /// Returns from where a call transfers.
    fn from(&mut self, description: DescriptionId, offset: Option<u64>) -> Result<From> {
        let Some(offset) = offset else { return Ok(From::Position) };
        if offset.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let node = self.system.descriptions.get(description).node;
        match self.system.tree.node(node).kind {
            Kind::Fifo(_) | Kind::Socket | Kind::Special(_) => Err(Errno::ESPIPE),
            Kind::Character(device) if devices::is_terminal(device) => Err(Errno::ESPIPE),
            _ => Ok(From::Offset(offset)),
        }
    }

    /// Returns whether an open file is a socket, of which one call reads or writes one message.
    fn is_socket(&mut self, description: DescriptionId) -> bool {
        let node = self.system.descriptions.get(description).node;
        self.is_socket_node(node)
    }

    fn read_to(&mut self, description: DescriptionId, address: u64, length: u64, from: From) -> Result {
        let open_file = self.system.descriptions.get(description);
        let (node, position) = (open_file.node, open_file.position);
        let System { memory, spaces, tree, .. } = &mut *self.system;
        let space = &mut spaces.get(self.process.space).space;
        let offset = if let From::Offset(offset) = from { offset } else { position };
        check_end(offset, length)?;
        let (wanted, done) = match tree.node(node).kind {
            Kind::Regular(object) => {
                let there = memory.objects.get(object).length().saturating_sub(offset).min(length) as usize;
                (there, space.write_from(memory, address, (object, offset), there))
            }
            Kind::Character(devices::ZERO | devices::FULL) => {
                (length as usize, space.write_zeros(memory, address, length as usize))
            }
            _ => return self.read_buffered(description, address, length, from),
        };
        if let From::Position = from {
            self.system.descriptions.get(description).position += done as u64;
        }
        if done == 0 && wanted > 0 { Err(Errno::EFAULT) } else { Ok(done as u64) }
    }

    /// Reads what has to be copied first to a buffer, from which it is copied to the process.
    fn read_buffered(&mut self, description: DescriptionId, address: u64, length: u64, from: From) -> Result {
        let length = length.min(self.most_at_once(description));
        let mut buffer = self.take_buffer();
        let result = self.read_through(&mut buffer, description, address, length, &from);
        self.system.buffer = buffer;
        result
    }

    /// Returns the most bytes that one call reads from a file, or writes to it: fewer than are wanted if that takes
    /// more than a copy, since nobody else is served meanwhile.
    pub(super) fn most_at_once(&mut self, description: DescriptionId) -> u64 {
        let node = self.system.descriptions.get(description).node;
        if let Kind::Generated(_) = self.system.tree.node(node).kind { MAX_GENERATED } else { MAX_TRANSFER }
    }

    /// Takes the buffer through which calls copy. It has what was copied last.
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        let mut buffer = core::mem::take(&mut self.system.buffer);
        buffer.resize(PART, 0);
        buffer
    }

    fn read_through(
        &mut self,
        buffer: &mut [u8],
        description: DescriptionId,
        address: u64,
        length: u64,
        from: &From,
    ) -> Result {
        let mut done = 0;
        while done < length {
            let part = (length - done).min(PART as u64) as usize;
            let buffer = &mut buffer[..part];
            let offset = match from {
                From::Position => None,
                From::Offset(offset) => Some(offset + done),
            };
            let count = match self.read_part(description, buffer, offset) {
                Ok(count) => count,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            };
            let place = address.checked_add(done).ok_or(Errno::EFAULT)?;
            let written = self.copy_to(place, &buffer[..count]);
            if let From::Position = from {
                self.system.descriptions.get(description).position += written as u64;
            }
            done += written as u64;
            if written < count {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
            }
            if count < buffer.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Reads once from where a file's position is, or from an offset. The position stays.
    pub(super) fn read_part(
        &mut self,
        description: DescriptionId,
        into: &mut [u8],
        offset: Option<u64>,
    ) -> Result<usize> {
        let open_file = self.system.descriptions.get(description);
        let (node, flags) = (open_file.node, open_file.flags);
        let offset = offset.unwrap_or(open_file.position);
        let memory = &mut self.system.memory;
        match self.system.tree.node(node).kind {
            Kind::Regular(object) => Ok(memory.objects.read(&mut memory.hardware, object, offset, into)),
            Kind::Directory(_) | Kind::Generated(Class::Directory) => Err(Errno::EISDIR),
            Kind::Generated(_) => self.read_generated(description, offset, into),
            Kind::Character(device) if devices::is_terminal(device) => self.read_end(description, into),
            Kind::Character(device) => devices::read(&mut memory.hardware, device, into),
            Kind::Fifo(_) => self.read_pipe(node, flags, into),
            Kind::Special(number) => self.read_special(number, node, flags, into),
            Kind::Link(_) | Kind::Block(_) | Kind::Socket => Err(Errno::EINVAL),
        }
    }

    /// Writes bytes of the process to a file, one vector after another. What a call had done when it began to wait is
    /// not done again.
    fn write_vectors(&mut self, description: DescriptionId, vectors: &[Vector], from: &From) -> Result {
        let node = self.system.descriptions.get(description).node;
        let most = match self.system.tree.node(node).kind {
            Kind::Regular(object) => return self.write_object(description, (node, object), vectors, from),
            Kind::Character(devices::NULL | devices::ZERO) => return swallow(vectors),
            Kind::Character(devices::FULL) => return Err(Errno::ENOSPC),
            Kind::Generated(_) => MAX_GENERATED,
            _ => MAX_TRANSFER,
        };
        let mut buffer = self.take_buffer();
        let result = self.write_through(&mut buffer, description, (vectors, most), from);
        self.system.buffer = buffer;
        result
    }

    /// Writes bytes of the process to a regular file, one vector after another.
    fn write_object(
        &mut self,
        description: DescriptionId,
        (node, object): (NodeId, ObjectId),
        vectors: &[Vector],
        from: &From,
    ) -> Result {
        let open_file = self.system.descriptions.get(description);
        let mut start = if let From::Offset(offset) = from { *offset } else { open_file.position };
        check_end(start, total(vectors))?;
        let appends = open_file.flags & open::APPEND != 0;
        let contents = self.system.memory.objects.get(object);
        if appends {
            start = contents.length();
            check_end(start, total(vectors)).map_err(|_| Errno::EFBIG)?;
        }
        let is_sealed = contents.seals() & KEEPING_SEALS != 0;
        let most = if is_sealed { self.most_written(object, start, vectors)? } else { MAX_TRANSFER };
        let most = most.min(self.room_in_file(start, total(vectors))?);
        let System { memory, spaces, descriptions, .. } = &mut *self.system;
        let (space, open_file) = (&mut spaces.get(self.process.space).space, descriptions.get(description));
        let mut done = 0;
        for Vector { address, length } in vectors {
            let length = (*length).min(most - done) as usize;
            match space.read_to(memory, *address, (object, start + done), length) {
                Ok(count) => {
                    done += count as u64;
                    if count < length {
                        break;
                    }
                }
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if done == 0 {
            return Ok(0);
        }
        if let From::Position = from {
            open_file.position = start + done;
        }
        self.distrust(node);
        self.note_contents(node, object, || Changed::Bytes(start..start + done));
        Ok(done)
    }

    /// Writes bytes of the process, at most so many, through a buffer.
    fn write_through(
        &mut self,
        buffer: &mut [u8],
        description: DescriptionId,
        (vectors, most): (&[Vector], u64),
        from: &From,
    ) -> Result {
        let length = total(vectors).min(most);
        let mut done = self.done();
        while done < length {
            let part = (length - done).min(PART as u64) as usize;
            let filled = self.gather(vectors, done, &mut buffer[..part]);
            if filled == 0 {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
            }
            let offset = match from {
                From::Position => None,
                From::Offset(offset) => Some(offset + done),
            };
            match self.write_part(description, &buffer[..filled], offset) {
                Ok(0) => break,
                Ok(count) => done += count as u64,
                Err(WAITS) => {
                    if let Some(waiting) = self.waiting_mut() {
                        waiting.done = done;
                    }
                    return Err(WAITS);
                }
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Copies bytes of the process from an offset in its vectors on. Returns their number: fewer than asked for if some
    /// cannot be read.
    pub(super) fn gather(&mut self, vectors: &[Vector], mut skipped: u64, into: &mut [u8]) -> usize {
        let mut filled = 0;
        for vector in vectors {
            let skip = skipped.min(vector.length);
            skipped -= skip;
            let part = (vector.length - skip).min((into.len() - filled) as u64) as usize;
            let place = vector.address.wrapping_add(skip);
            let part_of_it = &mut into[filled..filled + part];
            let count = self.copy_from(place, part_of_it);
            filled += count;
            if count < part {
                break;
            }
        }
        filled
    }

    /// Copies bytes to the process, from an offset in its vectors on. Returns their number: fewer than given if some
    /// cannot be written.
    pub(super) fn scatter(&mut self, vectors: &[Vector], mut skipped: u64, mut from: &[u8]) -> usize {
        let length = from.len();
        for vector in vectors {
            let skip = skipped.min(vector.length);
            skipped -= skip;
            let (part, rest) = from.split_at((vector.length - skip).min(from.len() as u64) as usize);
            let count = self.copy_to(vector.address.wrapping_add(skip), part);
            from = rest;
            if count < part.len() {
                return length - rest.len() - (part.len() - count);
            }
        }
        length - from.len()
    }

    /// Writes once to where a file's position is, which moves, or to an offset.
    pub(super) fn write_part(&mut self, description: DescriptionId, from: &[u8], offset: Option<u64>) -> Result<usize> {
        let open_file = self.system.descriptions.get(description);
        let (node, flags) = (open_file.node, open_file.flags);
        let appends = flags & open::APPEND != 0;
        let mut place = offset.unwrap_or(open_file.position);
        let memory = &mut self.system.memory;
        let count = match self.system.tree.node(node).kind {
            Kind::Regular(object) => {
                if appends {
                    place = memory.objects.get(object).length();
                }
                let most = memory.objects.get(object).room_for(place, from.len() as u64)?;
                let most = most.min(self.room_in_file(place, most)?);
                let memory = &mut self.system.memory;
                let from = &from[..most as usize];
                let count = memory.objects.write(&mut memory.pool, &mut memory.hardware, object, place, from)?;
                self.distrust(node);
                self.note_contents(node, object, || Changed::Bytes(place..place + count as u64));
                count
            }
            Kind::Character(device) if devices::is_terminal(device) => return self.write_end(description, from),
            Kind::Character(device) => devices::write(device, from)?,
            Kind::Fifo(_) => return self.write_pipe(node, flags, from),
            Kind::Special(number) => return self.write_special(number, node, flags, from),
            Kind::Generated(Class::File) => self.write_generated(description, place, from)?,
            Kind::Directory(_) | Kind::Generated(_) => return Err(Errno::EISDIR),
            Kind::Link(_) | Kind::Block(_) | Kind::Socket => return Err(Errno::EINVAL),
        };
        if offset.is_none() {
            self.system.descriptions.get(description).position = place + count as u64;
        }
        Ok(count)
    }

    /// Reads the addresses and lengths of several places.
    pub(super) fn read_vectors(&mut self, vectors: u64, count: u64) -> Result<Vec<Vector>> {
        if count > MAX_VECTORS {
            return Err(Errno::EINVAL);
        }
        let records = self.read(vectors, count as usize * iovec::SIZE)?;
        let mut left = i64::MAX.cast_unsigned();
        let vector = |record: &[u8]| {
            let (address, length) = (u64_at(record, iovec::BASE), u64_at(record, iovec::LENGTH));
            left = left.checked_sub(length).ok_or(Errno::EINVAL)?;
            Ok(Vector { address, length })
        };
        records.chunks_exact(iovec::SIZE).map(vector).collect()
    }

    /// Returns the offset at which `preadv2` or `pwritev2` transfers; nothing if at the file's position.
    pub fn with_flags(&mut self, descriptor: u64, offset: u64, flags: u64) -> Result<Option<u64>> {
        self.descriptor(descriptor)?;
        // Others change what is done, and programs do without them where this is the answer. Only 32 bits count.
        if u64::from(flags as u32) & !KEEPING_FLAGS != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        Ok((offset.cast_signed() != -1).then_some(offset))
    }

    /// Reads from a file into several places, at its position or at an offset.
    pub fn readv(&mut self, descriptor: u64, vectors: u64, count: u64, offset: Option<u64>) -> Result {
        let description = self.descriptor(descriptor)?;
        self.system.descriptions.get(description).reads().then_some(()).ok_or(Errno::EBADF)?;
        let from = self.from(description, offset)?;
        let vectors = self.read_vectors(vectors, count)?;
        if self.is_socket(description) {
            return self.read_socket(descriptor, &vectors);
        }
        let position = self.system.descriptions.get(description).position;
        let start = if let From::Offset(offset) = from { offset } else { position };
        check_end(start, total(&vectors))?;
        let (mut done, most) = (0, self.most_at_once(description));
        for Vector { address, length } in vectors {
            let length = length.min(most - done);
            let from = match from {
                From::Position => From::Position,
                From::Offset(offset) => From::Offset(offset + done),
            };
            match self.read_to(description, address, length, from) {
                Ok(part) => {
                    done += part;
                    if part < length {
                        break;
                    }
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes to a file from several places, at its position or at an offset.
    pub fn writev(&mut self, descriptor: u64, vectors: u64, count: u64, offset: Option<u64>) -> Result {
        let description = self.descriptor(descriptor)?;
        self.system.descriptions.get(description).writes().then_some(()).ok_or(Errno::EBADF)?;
        let from = self.from(description, offset)?;
        let vectors = self.read_vectors(vectors, count)?;
        if self.is_socket(description) {
            let is_empty = vectors.iter().all(|vector| vector.length == 0);
            return if is_empty { Ok(0) } else { self.write_socket(descriptor, &vectors) };
        }
        self.write_vectors(description, &vectors, &from)
    }

    /// Moves a file's position.
    pub fn lseek(&mut self, descriptor: u64, offset: u64, whence: u64) -> Result {
        let description = self.descriptor(descriptor)?;
        let open_file = self.system.descriptions.get(description);
        let (node, position) = (open_file.node, open_file.position);
        if open_file.flags & open::PATH != 0 {
            return Err(Errno::EBADF);
        }
        let length = match self.system.tree.node(node).kind {
            Kind::Regular(object) => self.system.memory.objects.get(object).length(),
            Kind::Special(number) if self.system.specials.is_socket(number) => return Err(Errno::ESPIPE),
            Kind::Character(device) if devices::is_terminal(device) => return Err(Errno::ESPIPE),
            Kind::Character(_) | Kind::Special(_) => return Ok(0),
            Kind::Fifo(_) | Kind::Socket => return Err(Errno::ESPIPE),
            // Their lengths are not known before they are read.
            Kind::Generated(Class::File) if whence as u32 > 1 => return Err(Errno::EINVAL),
            Kind::Directory(_) | Kind::Link(_) | Kind::Block(_) | Kind::Generated(_) => 0,
        };
        let offset = offset.cast_signed();
        let new = match whence as u32 {
            0 => Some(offset),
            1 => position.cast_signed().checked_add(offset),
            2 => length.cast_signed().checked_add(offset),
            // There are no holes that could be found.
            3 | 4 if offset < 0 || offset.cast_unsigned() >= length => return Err(Errno::ENXIO),
            3 => Some(offset),
            4 => Some(length.cast_signed()),
            _ => return Err(Errno::EINVAL),
        };
        let new = new.ok_or(Errno::EOVERFLOW)?;
        if new < 0 {
            return Err(Errno::EINVAL);
        }
        self.system.descriptions.get(description).position = new.cast_unsigned();
        Ok(new.cast_unsigned())
    }
}
