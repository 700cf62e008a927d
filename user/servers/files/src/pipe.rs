//! A pipe: buffered bytes, and the threads that wait at both sides of it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use tench_protocol::ArrayVec;
use tench_stream::protocol::{Error, MAX_DATA};

/// Maximum number of buffered bytes.
pub const CAPACITY: usize = 4096;

/// Bytes that are read.
pub type Data = ArrayVec<u8, MAX_DATA>;

/// A reply to a waiting thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // It is sent as soon as it is there.
pub enum Completion {
    /// A read: these bytes; none means the end.
    Data(Data),
    /// A write: done.
    Done,
    /// The request is refused.
    Refused(Error),
}

/// A thread that waits for bytes. `R` is what it takes to reply.
#[derive(Debug)]
struct Reader<R> {
    end: u64,
    max: usize,
    reply: R,
}

/// A thread that waits for room.
#[derive(Debug)]
struct Writer<R> {
    end: u64,
    data: Box<[u8]>,
    reply: R,
}

/// A pipe. Waiting threads are ordered by their tickets.
#[derive(Debug)]
pub struct Pipe<R> {
    buffer: VecDeque<u8>,
    /// Number of ends to read from.
    pub readers: u32,
    /// Number of ends to write to.
    pub writers: u32,
    reading: BTreeMap<u64, Reader<R>>,
    writing: BTreeMap<u64, Writer<R>>,
}

impl<R> Pipe<R> {
    /// Returns an empty pipe with an end on each side.
    pub const fn new() -> Pipe<R> {
        Pipe { buffer: VecDeque::new(), readers: 1, writers: 1, reading: BTreeMap::new(), writing: BTreeMap::new() }
    }

    /// Returns the number of buffered bytes.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns whether no bytes are buffered.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the number of waiting threads.
    pub fn waiting(&self) -> usize {
        self.reading.len() + self.writing.len()
    }

    fn take(&mut self, max: usize) -> Data {
        let count = max.min(self.buffer.len()).min(MAX_DATA);
        self.buffer.drain(..count).collect()
    }

    fn put(&mut self, data: &[u8]) {
        if self.buffer.capacity() < CAPACITY {
            self.buffer.reserve_exact(CAPACITY - self.buffer.len());
        }
        self.buffer.extend(data);
    }

    /// Reads at once, if no thread waits and there are bytes, or the end; an empty result is the end.
    pub fn read_now(&mut self, max: usize) -> Option<Data> {
        let can = self.reading.is_empty() && (!self.buffer.is_empty() || self.writers == 0);
        can.then(|| self.take(max))
    }

    /// Writes at once, if no thread waits and there is room. Fails if nobody can read.
    pub fn write_now(&mut self, data: &[u8]) -> Option<Result<(), Error>> {
        if self.readers == 0 {
            return Some(Err(Error::Broken));
        }
        let can = self.writing.is_empty() && self.buffer.len() + data.len() <= CAPACITY;
        can.then(|| {
            self.put(data);
            Ok(())
        })
    }

    /// Adds a thread that waits for bytes.
    pub fn wait_to_read(&mut self, ticket: u64, end: u64, max: usize, reply: R) {
        self.reading.insert(ticket, Reader { end, max, reply });
    }

    /// Adds a thread that waits for room.
    pub fn wait_to_write(&mut self, ticket: u64, end: u64, data: &[u8], reply: R) {
        self.writing.insert(ticket, Writer { end, data: data.into(), reply });
    }

    /// Returns the next reply that is due: the end, the waiting thread's reply object, and the outcome.
    pub fn step(&mut self) -> Option<(u64, R, Completion)> {
        if (!self.buffer.is_empty() || self.writers == 0)
            && let Some((_, reader)) = self.reading.pop_first()
        {
            let data = self.take(reader.max);
            return Some((reader.end, reader.reply, Completion::Data(data)));
        }
        let (_, writer) = self.writing.first_key_value()?;
        let is_broken = self.readers == 0;
        if !is_broken && self.buffer.len() + writer.data.len() > CAPACITY {
            return None;
        }
        let (_, writer) = self.writing.pop_first()?;
        if is_broken {
            return Some((writer.end, writer.reply, Completion::Refused(Error::Broken)));
        }
        self.put(&writer.data);
        Some((writer.end, writer.reply, Completion::Done))
    }

    /// Returns bytes to the buffer that the last step gave to a reader that has gone.
    pub fn put_back(&mut self, data: &[u8]) {
        data.iter().rev().for_each(|byte| self.buffer.push_front(*byte));
    }

    /// Ends all waits at this end. Calls `refuse` with each.
    pub fn leave(&mut self, end: u64, mut refuse: impl FnMut(R)) {
        self.reading.extract_if(.., |_, reader| reader.end == end).for_each(|(_, reader)| refuse(reader.reply));
        self.writing.extract_if(.., |_, writer| writer.end == end).for_each(|(_, writer)| refuse(writer.reply));
    }

    /// Removes waits at this end whose threads have given up. Calls `forget` with each.
    pub fn forget_gone(&mut self, end: u64, has_gone: impl Fn(&R) -> bool, mut forget: impl FnMut(R)) {
        let readers = self.reading.extract_if(.., |_, reader| reader.end == end && has_gone(&reader.reply));
        readers.for_each(|(_, reader)| forget(reader.reply));
        let writers = self.writing.extract_if(.., |_, writer| writer.end == end && has_gone(&writer.reply));
        writers.for_each(|(_, writer)| forget(writer.reply));
    }

    /// Panics if an invariant does not hold. Calls `waits` with the end of each waiting thread, and whether it is a
    /// reader.
    pub fn check_invariants(&self, mut waits: impl FnMut(u64, bool)) {
        assert!(self.buffer.len() <= CAPACITY, "{} bytes in a pipe", self.buffer.len());
        assert!(self.readers > 0 || self.reading.is_empty());
        assert!(self.writers > 0 || self.writing.is_empty());
        self.reading.values().for_each(|reader| waits(reader.end, true));
        self.writing.values().for_each(|writer| waits(writer.end, false));
    }

    /// Panics if a thread waits that need not.
    pub fn check_all_blocked(&self) {
        assert!(self.reading.is_empty() || self.buffer.is_empty() && self.writers > 0, "a reader waits in vain");
        if let Some((_, writer)) = self.writing.first_key_value() {
            assert!(self.readers > 0 && self.buffer.len() + writer.data.len() > CAPACITY, "a writer waits in vain");
        }
    }
}

impl<R> Default for Pipe<R> {
    fn default() -> Pipe<R> {
        Pipe::new()
    }
}
