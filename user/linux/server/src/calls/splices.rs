//! Calls that move bytes between a pipe and another file, or memory.

use tench_linux_calls::numbers::open;
use tench_linux_files::{Class, Errno, Kind, NodeId};

use super::transfer::{PART, Vector, total};
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::DescriptionId;
use crate::devices;
use crate::generated::What;
use crate::specials::Special;
use crate::waiting::{Interruption, Key};

/// Flags of the calls.
mod flag {
    pub const NONBLOCK: u32 = 2;
    pub const ALL: u32 = 15;
}

/// A file at one side of a call.
#[derive(Clone, Copy)]
struct Side {
    description: DescriptionId,
    node: NodeId,
    /// Flags of the open file.
    flags: u32,
    is_pipe: bool,
}

impl<M: Machine> Caller<'_, M> {
    fn side(&mut self, descriptor: u64) -> Result<Side> {
        let description = self.descriptor(descriptor)?;
        let open_file = self.system.descriptions.get(description);
        let (node, flags) = (open_file.node, open_file.flags);
        if flags & open::PATH != 0 {
            return Err(Errno::EBADF);
        }
        let is_pipe = matches!(self.system.tree.node(node).kind, Kind::Fifo(_));
        Ok(Side { description, node, flags, is_pipe })
    }

    /// Refuses to move bytes from a file that cannot be read to one that cannot be written.
    fn check_sides(&mut self, from: Side, to: Side) -> Result<()> {
        let is_open = self.system.descriptions.get(from.description).reads()
            && self.system.descriptions.get(to.description).writes();
        is_open.then_some(()).ok_or(Errno::EBADF)
    }

    /// Moves bytes from a pipe to another file, or the other way round.
    pub fn splice(&mut self, [from, from_offset, to, to_offset]: [u64; 4], length: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if length == 0 {
            return Ok(0);
        }
        if flags & !flag::ALL != 0 {
            return Err(Errno::EINVAL);
        }
        let (from, to) = (self.side(from)?, self.side(to)?);
        if from.is_pipe && from_offset != 0 || to.is_pipe && to_offset != 0 {
            return Err(Errno::ESPIPE);
        }
        let length = length.min(PART as u64) as usize;
        let waits = flags & flag::NONBLOCK == 0;
        match (from.is_pipe, to.is_pipe) {
            (true, true) => {
                self.check_sides(from, to)?;
                self.move_between(from, to, length, waits)
            }
            (true, false) => self.move_out(from, to, to_offset, length, waits),
            (false, true) => self.move_in(from, to, from_offset, length, waits),
            (false, false) => {
                self.check_sides(from, to)?;
                Err(Errno::EINVAL)
            }
        }
    }

    /// Copies bytes from one pipe to another. They stay in the first.
    pub fn tee(&mut self, from: u64, to: u64, length: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !flag::ALL != 0 {
            return Err(Errno::EINVAL);
        }
        if length == 0 {
            return Ok(0);
        }
        let (from, to) = (self.side(from)?, self.side(to)?);
        self.check_sides(from, to)?;
        if !from.is_pipe || !to.is_pipe || from.node == to.node {
            return Err(Errno::EINVAL);
        }
        let waits = (from.flags | to.flags) & open::NONBLOCK == 0 && flags & flag::NONBLOCK == 0;
        let length = length.min(PART as u64) as usize;
        self.through_pipe(from, length, waits, true, |caller, bytes| caller.put_into_pipe(to, bytes, waits))
    }

    /// Writes bytes of the process's memory to a pipe, or reads what is in a pipe to its memory.
    pub fn vmsplice(&mut self, descriptor: u64, vectors: u64, count: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !flag::ALL != 0 {
            return Err(Errno::EINVAL);
        }
        let side = self.side(descriptor)?;
        let vectors = self.read_vectors(vectors, count)?;
        if !side.is_pipe {
            return Err(Errno::EBADF);
        }
        let waits = flags & flag::NONBLOCK == 0;
        let length = total(&vectors).min(PART as u64) as usize;
        if length == 0 {
            return Ok(0);
        }
        if self.system.descriptions.get(side.description).writes() {
            let room = self.await_room(side, length, waits)?;
            let mut bytes = self.take_buffer();
            let filled = self.gather(&vectors, 0, &mut bytes[..length.min(room)]);
            let result = match filled {
                0 => Err(Errno::EFAULT),
                _ => self.write_pipe(side.node, open::NONBLOCK, &bytes[..filled]).map(|count| count as u64),
            };
            self.system.buffer = bytes;
            return result;
        }
        self.through_pipe(side, length, waits, false, |caller, bytes| {
            let mut done = 0;
            for Vector { address, length } in &vectors {
                let part = &bytes[done..bytes.len().min(done + *length as usize)];
                let copied = caller.copy_to(*address, part);
                done += copied;
                if copied < part.len() {
                    break;
                }
            }
            if done == 0 { Err(Errno::EFAULT) } else { Ok(done) }
        })
    }

    /// Moves bytes from one pipe to another.
    fn move_between(&mut self, from: Side, to: Side, length: usize, waits: bool) -> Result {
        if from.node == to.node {
            return Err(Errno::EINVAL);
        }
        let waits = waits && (from.flags | to.flags) & open::NONBLOCK == 0;
        self.through_pipe(from, length, waits, false, |caller, bytes| caller.put_into_pipe(to, bytes, waits))
    }

    /// Moves bytes from a pipe to another file, at an offset that moves, or at its position.
    fn move_out(&mut self, from: Side, to: Side, offset: u64, length: usize, waits: bool) -> Result {
        let place = self.place_of(to, offset)?;
        self.check_sides(from, to)?;
        let is_taken = match self.system.tree.node(to.node).kind {
            Kind::Character(devices::ZERO | devices::FULL) => false,
            Kind::Regular(_) | Kind::Character(_) => to.flags & open::APPEND == 0,
            Kind::Special(number) => matches!(self.system.specials.get(number), Special::Socket(_)),
            _ => false,
        };
        is_taken.then_some(()).ok_or(Errno::EINVAL)?;
        let waits = waits && from.flags & open::NONBLOCK == 0;
        let done = self.through_pipe(from, length, waits, false, |caller, bytes| {
            caller.write_part(to.description, bytes, place)
        })?;
        self.note_place(offset, place, done)
    }

    /// Moves bytes to a pipe from another file, from an offset that moves, or from its position.
    fn move_in(&mut self, from: Side, to: Side, offset: u64, length: usize, waits: bool) -> Result {
        let place = self.place_of(from, offset)?;
        self.check_sides(from, to)?;
        let mut socket = None;
        let is_given = match self.system.tree.node(from.node).kind {
            Kind::Character(device) => devices::has_events(device),
            // As on Linux, what is about the whole system.
            Kind::Generated(Class::File) => matches!(What::of(from.node), Some(What::Fixed(_))),
            Kind::Regular(_) => true,
            Kind::Special(number) => {
                socket = match self.system.specials.get(number) {
                    Special::Socket(socket) => Some(*socket),
                    _ => None,
                };
                socket.is_some()
            }
            _ => false,
        };
        is_given.then_some(()).ok_or(Errno::EINVAL)?;
        let room = self.await_room(to, length, waits && to.flags & open::NONBLOCK == 0)?;
        let mut bytes = self.take_buffer();
        let into = &mut bytes[..length.min(room)];
        let result = match socket {
            Some(socket) => self.receive_bytes(&socket, waits && from.flags & open::NONBLOCK == 0, into),
            None => self.read_part(from.description, into, place),
        };
        let result = result.and_then(|count| {
            if place.is_none() && count > 0 {
                self.system.descriptions.get(from.description).position += count as u64;
            }
            self.write_pipe(to.node, open::NONBLOCK, &bytes[..count])
        });
        self.system.buffer = bytes;
        self.note_place(offset, place, result? as u64)
    }

    /// Reads the offset at an address, if there is one.
    fn place_of(&mut self, side: Side, offset: u64) -> Result<Option<u64>> {
        if offset == 0 {
            return Ok(None);
        }
        let place = u64::from_le_bytes(self.read_record(offset)?);
        let has_offsets = match self.system.tree.node(side.node).kind {
            Kind::Special(_) | Kind::Socket => false,
            Kind::Character(device) => !devices::is_terminal(device),
            _ => true,
        };
        if !has_offsets || place.cast_signed() < 0 { Err(Errno::EINVAL) } else { Ok(Some(place)) }
    }

    /// Writes the offset behind what was moved, if there is one. Returns how much that was.
    fn note_place(&mut self, offset: u64, place: Option<u64>, done: u64) -> Result {
        if let Some(place) = place {
            self.write(offset, &(place + done).to_le_bytes())?;
        }
        Ok(done)
    }

    /// Returns how many bytes a pipe has room for; waits until it has some.
    ///
    /// # Errors
    /// `EPIPE`, `EAGAIN`, and `ENOMEM` if there is no memory for what the pipe would have then.
    fn await_room(&mut self, to: Side, length: usize, waits: bool) -> Result<usize> {
        let is_outside = self.system.stream_of(to.node).is_some();
        let pipe = self.pipe(to.node)?;
        if !pipe.has_readers() {
            return Err(self.broken_pipe());
        }
        match pipe.room() {
            _ if is_outside => Ok(PART),
            0 if waits => Err(self.wait(&[Key::Writable(to.node)], None, Interruption::Restartable)),
            0 => Err(Errno::EAGAIN),
            room => {
                let growth = pipe.growth(length.min(room));
                growth.map_or(Ok(()), |bytes| self.system.memory.check_room(bytes))?;
                Ok(room)
            }
        }
    }

    /// Writes as many bytes to a pipe as it has room for; waits until it has some.
    fn put_into_pipe(&mut self, to: Side, bytes: &[u8], waits: bool) -> Result<usize> {
        let room = self.await_room(to, bytes.len(), waits)?;
        self.write_pipe(to.node, open::NONBLOCK, &bytes[..bytes.len().min(room)])
    }

    /// Passes on the first bytes of a pipe, of which as many are removed as were taken, unless they stay. Waits until
    /// there are some.
    fn through_pipe(
        &mut self,
        from: Side,
        length: usize,
        waits: bool,
        stay: bool,
        pass_on: impl FnOnce(&mut Self, &[u8]) -> Result<usize>,
    ) -> Result {
        let pipe = self.pipe(from.node)?;
        if pipe.is_empty() {
            return match pipe.has_writers() {
                false => Ok(0),
                true if !waits => Err(Errno::EAGAIN),
                true => {
                    self.await_outside(from.node);
                    Err(self.wait(&[Key::Readable(from.node)], None, Interruption::Restartable))
                }
            };
        }
        let mut bytes = self.take_buffer();
        let count = self.pipe(from.node)?.peek(&mut bytes[..length]);
        let result = pass_on(self, &bytes[..count]);
        self.system.buffer = bytes;
        let taken = result?;
        if !stay {
            self.pipe(from.node)?.drop_first(taken);
            self.system.waiters.wake(Key::Writable(from.node));
        }
        Ok(taken as u64)
    }
}
