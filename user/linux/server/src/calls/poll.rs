//! Calls that wait for one of several files.

use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_calls::records::{pollfd, u32_at, u64_at};
use tench_linux_files::{Errno, Kind, NodeId, Pipe};
use tench_linux_sockets::{Event as SocketEvent, SocketId};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::DescriptionId;
use crate::devices;
use crate::specials::{Counter, Socket, Special};
use crate::waiting::{Interruption, Key};

/// Events of a file.
mod event {
    pub const READABLE: u16 = 1;
    pub const WRITABLE: u16 = 4;
    pub const BROKEN: u16 = 8;
    pub const HUNG_UP: u16 = 0x10;
    pub const NOT_OPEN: u16 = 0x20;
    /// `POLLRDHUP`: nothing more will be received.
    pub const ENDED: u16 = 0x2000;
    /// `POLLRDNORM`, `POLLWRNORM`: other names of the first two.
    pub const READABLE_TOO: u16 = 0x40;
    pub const WRITABLE_TOO: u16 = 0x100;
    /// Events that are told whether or not they were asked for.
    pub const ALWAYS: u16 = BROKEN | HUNG_UP | NOT_OPEN;
}

/// Number of descriptors for which most calls wait at most.
const FEW: usize = 8;
/// Number of descriptors that need no room to be asked for: what so many take, the reserve has between two checks of it
/// for each call.
const SMALL: usize = 64;
/// Bytes that a record takes at most while the call is served, with what it waits for, while that is copied.
const KEPT_FOR_EACH: usize = 256;
/// Number of sets of descriptors, each of which may have all of them.
const SETS: usize = 3;
/// Bytes of a set that needs no memory from the heap.
const FEW_IN_SETS: usize = 32;
/// Descriptors in a word of a set.
const SET_WORD: usize = 64;

impl<M: Machine> Caller<'_, M> {
    /// Returns the events that an open file has, and adds what others would come with.
    pub(crate) fn events(&mut self, description: DescriptionId, keys: &mut Vec<Key>) -> u16 {
        const READ: u16 = event::READABLE | event::READABLE_TOO;
        const WRITE: u16 = event::WRITABLE | event::WRITABLE_TOO;
        let open_file = self.system.descriptions.get(description);
        let (node, reads, writes) = (open_file.node, open_file.reads(), open_file.writes());
        let unseen = open_file.without_writers;
        match &self.system.tree.node(node).kind {
            Kind::Fifo(pipe) => {
                keys.extend(reads.then_some(Key::Readable(node)));
                keys.extend(writes.then_some(Key::Writable(node)));
                let events = pipe_events(pipe, reads, writes, unseen);
                if events & event::READABLE == 0 && reads {
                    self.await_outside(node);
                }
                events
            }
            Kind::Character(device) if devices::is_terminal(*device) => {
                let readiness = self.end_events(description, keys);
                (if readiness.is_writable { WRITE } else { 0 })
                    | if readiness.is_readable { READ } else { 0 }
                    | if readiness.is_hung_up { event::HUNG_UP } else { 0 }
                    | if readiness.has_failed { event::BROKEN } else { 0 }
            }
            // What is only a path is asked for by mistake.
            Kind::Special(_) if !reads && !writes => event::NOT_OPEN,
            Kind::Special(number) => {
                let number = *number;
                self.special_events(number, node, keys)
            }
            _ => READ | WRITE,
        }
    }

    /// Returns the events of something without a name, and adds what others would come with.
    fn special_events(&mut self, number: u32, node: NodeId, keys: &mut Vec<Key>) -> u16 {
        match self.system.specials.get(number) {
            Special::Counter(Counter { value, .. }) => {
                keys.extend([Key::Readable(node), Key::Writable(node)]);
                let readable = if *value > 0 { event::READABLE } else { 0 };
                readable | if *value < Counter::MAX { event::WRITABLE } else { 0 }
            }
            Special::Timer(timer) => {
                keys.push(Key::Timer(number));
                if timer.count > 0 { event::READABLE } else { 0 }
            }
            Special::Signals(set) => {
                keys.push(Key::Signal(self.process.id));
                if self.process.pending() & *set != 0 { event::READABLE } else { 0 }
            }
            Special::Socket(Socket { id, .. }) => {
                let id = *id;
                self.socket_events(id, keys)
            }
            Special::Queue(queue) => {
                let queue = *queue;
                keys.extend([Key::Message(queue), Key::QueueRoom(queue)]);
                let queues = &self.system.queues;
                let readable = if queues.count(queue) > 0 { event::READABLE | event::READABLE_TOO } else { 0 };
                let writable = if queues.has_room(queue) { event::WRITABLE | event::WRITABLE_TOO } else { 0 };
                readable | writable
            }
            Special::Watches(instance) => {
                let instance = *instance;
                keys.push(Key::Watch(instance));
                let has_events = self.system.watches.has_events(instance);
                if has_events { event::READABLE | event::READABLE_TOO } else { 0 }
            }
            Special::Process(name) => {
                let name = *name;
                keys.push(Key::Program(name.id));
                let has_ended = self.has_named_ended(name).unwrap_or(true);
                if has_ended { event::READABLE | event::READABLE_TOO } else { 0 }
            }
            Special::Epoll(_) => {
                keys.push(Key::Watched(number));
                if self.has_events(number) { event::READABLE | event::READABLE_TOO } else { 0 }
            }
        }
    }

    /// Returns the events of a socket, and adds what others would come with.
    fn socket_events(&mut self, id: SocketId, keys: &mut Vec<Key>) -> u16 {
        let Ok(readiness) = self.system.sockets.readiness(id) else { return event::BROKEN };
        keys.extend([Key::Socket(id, SocketEvent::Readable), Key::Socket(id, SocketEvent::Writable)]);
        keys.extend(readiness.lacks_room_of.map(|other| Key::Socket(other, SocketEvent::Room)));
        let flags = [
            (readiness.is_readable, event::READABLE | event::READABLE_TOO),
            (readiness.is_writable, event::WRITABLE | event::WRITABLE_TOO),
            (readiness.has_error, event::BROKEN),
            (readiness.is_hung_up, event::HUNG_UP),
            (readiness.receives_no_more, event::ENDED),
        ];
        flags.iter().filter(|(is_so, _)| *is_so).fold(0, |events, (_, event)| events | event)
    }

    /// Fails if there is no room for so many records and what they wait for.
    fn check_room_for(&mut self, count: usize) -> Result<()> {
        if count <= SMALL { Ok(()) } else { self.system.memory.check_room(count * KEPT_FOR_EACH) }
    }

    /// Waits until one of several descriptors has an event. Returns how many have.
    pub fn ppoll(&mut self, records: u64, count: u64, time: u64, mask: u64, mask_size: u64) -> Result {
        if count > u64::from(self.process.descriptors.limit) {
            return Err(Errno::EINVAL);
        }
        let deadline = self.read_deadline(time)?;
        self.block_meanwhile(mask, mask_size)?;
        // A few need no memory from the heap.
        let (mut few, mut many) = ([0; FEW * pollfd::SIZE], Vec::new());
        let all = match few.get_mut(..count as usize * pollfd::SIZE) {
            Some(few) => few,
            None => {
                self.check_room_for(count as usize)?;
                many.resize(count as usize * pollfd::SIZE, 0);
                &mut many
            }
        };
        if self.copy_from(records, all) < all.len() {
            return Err(Errno::EFAULT);
        }
        let (mut ready, mut keys) = (0, Vec::new());
        for record in all.chunks_exact_mut(pollfd::SIZE) {
            let number = u32_at(record, pollfd::DESCRIPTOR);
            let wanted = u16::from_le_bytes([record[pollfd::EVENTS], record[pollfd::EVENTS + 1]]);
            let events = match self.descriptor(number.into()) {
                _ if number.cast_signed() < 0 => 0,
                Ok(description) => self.events(description, &mut keys) & (wanted | event::ALWAYS),
                Err(_) => event::NOT_OPEN,
            };
            record[pollfd::RESULT..].copy_from_slice(&events.to_le_bytes());
            ready += u64::from(events != 0);
        }
        if ready == 0 && self.process.is_due() {
            return Err(Errno::EINTR);
        }
        if ready == 0 && !self.has_passed(deadline) {
            return Err(self.wait(&keys, deadline, Interruption::Final));
        }
        self.write(records, all)?;
        self.write_time_left(time, deadline);
        self.process.thread_mut().signals.restore_blocked();
        Ok(ready)
    }

    /// Waits until one of the descriptors in three sets can be read, can be written, or has something else to tell.
    /// Returns how many are in the sets then.
    pub fn pselect6(&mut self, count: u64, sets: [u64; 3], time: u64, mask: u64) -> Result {
        const READ: u16 = event::READABLE | event::HUNG_UP;
        const WRITE: u16 = event::WRITABLE | event::BROKEN;
        let count = (count as u32).cast_signed();
        if count < 0 {
            return Err(Errno::EINVAL);
        }
        let count = (count as usize).min(self.process.descriptors.limit as usize);
        let deadline = self.read_deadline(time)?;
        if mask != 0 {
            let record: [u8; 16] = self.read_record(mask)?;
            self.block_meanwhile(u64_at(&record, 0), u64_at(&record, 8))?;
        }
        self.check_room_for(SETS * count)?;
        // Three sets that are wanted, and what is found of them.
        let size = count.div_ceil(SET_WORD) * size_of::<u64>();
        let (mut few, mut many) = ([0; 6 * FEW_IN_SETS], Vec::new());
        let all = match few.get_mut(..6 * size) {
            Some(few) => few,
            None => {
                many.resize(6 * size, 0);
                &mut many
            }
        };
        let (wanted, found) = all.split_at_mut(3 * size);
        for (set, wanted) in sets.into_iter().zip(wanted.chunks_exact_mut(size.max(1))) {
            if set != 0 && self.copy_from(set, wanted) < size {
                return Err(Errno::EFAULT);
            }
        }
        let (mut ready, mut keys) = (0, Vec::new());
        let pairs = wanted.chunks_exact(size.max(1)).zip(found.chunks_exact_mut(size.max(1)));
        for ((wanted, found), meaning) in pairs.zip([READ, WRITE, 0]) {
            for number in (0..count).filter(|number| wanted[number / 8] & 1 << (number % 8) != 0) {
                let description = self.descriptor(number as u64)?;
                if self.events(description, &mut keys) & meaning != 0 {
                    found[number / 8] |= 1 << (number % 8);
                    ready += 1;
                }
            }
        }
        if ready == 0 && self.process.is_due() {
            return Err(Errno::EINTR);
        }
        if ready == 0 && !self.has_passed(deadline) {
            return Err(self.wait(&keys, deadline, Interruption::Final));
        }
        for (set, found) in sets.into_iter().zip(found.chunks_exact(size.max(1))) {
            self.write_if_wanted(set, found)?;
        }
        self.write_time_left(time, deadline);
        self.process.thread_mut().signals.restore_blocked();
        Ok(ready)
    }

    /// Tells how much of a call's time was left.
    fn write_time_left(&mut self, into: u64, deadline: Option<Duration>) {
        let Some(deadline) = deadline else { return };
        let left = deadline.saturating_sub(self.system.memory.hardware.monotonic());
        // As Linux, which does not mind if the time cannot be written.
        if into != 0 {
            self.copy_to(into, &super::time_record(left));
        }
    }
}

/// Returns the events of a pipe.
fn pipe_events(pipe: &Pipe, reads: bool, writes: bool, without_writers: Option<u32>) -> u16 {
    let mut events = 0;
    if reads && !pipe.is_empty() {
        events |= event::READABLE | event::READABLE_TOO;
    }
    // Who has opened the pipe before anybody wrote waits for the first.
    let has_had_writers = without_writers != Some(pipe.openings().1);
    if reads && !writes && !pipe.has_writers() && has_had_writers {
        events |= event::HUNG_UP;
    }
    if writes && pipe.has_room(Pipe::ATOMIC) {
        events |= event::WRITABLE | event::WRITABLE_TOO;
    }
    if writes && !pipe.has_readers() {
        events |= event::BROKEN;
    }
    events
}
