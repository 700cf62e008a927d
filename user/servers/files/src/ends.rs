//! Ends of streams: their objects, and the replies that are due at them.
//!
//! An end has a number that is never used twice. Its owner and payer: [`Owners`]. When a process that gave ends away
//! has ended, it is unknown whether the receivers run; the process server is asked ([`Ends::question`]).

use alloc::collections::{BTreeMap, BTreeSet};

use tench_files_interface::protocol::{self as files, How};
use tench_quota::Client;
use tench_stream::protocol::{Error, Info, Kind, MAX_DATA};

use crate::contents::{Contents, MAX_SIZE};
use crate::owners::{At, End, Owners};
use crate::pipe::{Completion, Data, Pipe};
use crate::tree::{Node, Requester, Tree};

/// Maximum number of ends that are closed, or get another payer, in one request, when a process ends that has more.
pub const BATCH: usize = 64;
/// Bytes of heap that a request may need besides its own lasting data. A test counts.
pub const GROWTH: usize = 24 << 10;

/// An open file, shared by all ends to it.
#[derive(Debug)]
struct Open {
    node: Node,
    position: u64,
    how: How,
    ends: u32,
}

impl Open {
    const fn is_readable(&self) -> bool {
        matches!(self.how, How::Read | How::Update | How::CreateNew)
    }

    const fn is_writable(&self) -> bool {
        !matches!(self.how, How::Read)
    }
}

/// Outcome of a request that may wait.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome<T> {
    /// The request has its reply.
    Now(Result<T, Error>),
    /// The request must wait, and may.
    Wait,
}

/// The reply to a thread that waited.
#[derive(Debug)]
pub struct Due<R> {
    /// The waiting thread's reply object.
    pub reply: R,
    /// The outcome to be sent.
    pub completion: Completion,
    /// Source to which its bytes return if they do not arrive.
    pub from: Source,
}

/// Source of the bytes of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Source(u64);

/// All ends, pipes and open files. `R` is what it takes to reply to a waiter later.
#[derive(Debug)]
pub struct Ends<R> {
    /// The files.
    pub tree: Tree,
    owners: Owners,
    opens: BTreeMap<u64, Open>,
    pipes: BTreeMap<u64, Pipe<R>>,
    /// Pipes at which a waiting thread may go on.
    ready: BTreeSet<u64>,
    /// The next number, of whatever object.
    next: u64,
}

impl<R> Ends<R> {
    /// Returns a table without ends, over these files.
    pub const fn new(tree: Tree) -> Ends<R> {
        Ends {
            tree,
            owners: Owners::new(),
            opens: BTreeMap::new(),
            pipes: BTreeMap::new(),
            ready: BTreeSet::new(),
            next: 1,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns how much of each resource is in use.
    pub fn usage(&self) -> files::Usage {
        let block = crate::contents::BLOCK as u64;
        files::Usage {
            bytes: self.tree.space.used() as u64 * block,
            most_bytes: self.tree.space.most() as u64 * block,
            nodes: self.tree.made() as u64,
            pipes: self.pipes.len() as u64,
            ends: self.owners.len() as u64,
            waiting: self.owners.waiting() as u64,
        }
    }

    fn add(&mut self, client: Client, at: At) -> u64 {
        let number = self.number();
        self.owners.open(number, client, at);
        number
    }

    /// Makes a pipe for a client. Returns the ends to read from and to write to.
    pub fn pipe(&mut self, client: Client) -> Result<(u64, u64), files::Error> {
        if !self.owners.may_open(client, 2) {
            return Err(files::Error::Full);
        }
        let pipe = self.number();
        self.pipes.insert(pipe, Pipe::new());
        Ok((self.add(client, At::Reader(pipe)), self.add(client, At::Writer(pipe))))
    }

    /// Opens a file. Returns the end, which the requester owns.
    pub fn open(&mut self, by: Requester, path: &str, how: How) -> Result<u64, files::Error> {
        if !self.owners.may_open(by.client, 1) {
            return Err(files::Error::Full);
        }
        let node = self.tree.open(by, path, how)?;
        let open = self.number();
        self.opens.insert(open, Open { node, position: 0, how, ends: 1 });
        Ok(self.add(by.client, At::Open(open)))
    }

    /// Makes another end to the same object, which `process` owns.
    pub fn share(&mut self, end: u64, process: u64) -> Result<u64, Error> {
        let end = *self.owners.get(end).ok_or(Error::Closed)?;
        if !self.owners.may_share(&end) {
            return Err(Error::Full);
        }
        // The object of an end exists as long as the end.
        match end.at {
            At::Reader(pipe) => self.pipes.get_mut(&pipe).into_iter().for_each(|pipe| pipe.readers += 1),
            At::Writer(pipe) => self.pipes.get_mut(&pipe).into_iter().for_each(|pipe| pipe.writers += 1),
            At::Open(open) => self.opens.get_mut(&open).into_iter().for_each(|open| open.ends += 1),
        }
        let number = self.number();
        self.owners.share(&end, number, process);
        Ok(number)
    }

    /// Closes an end. Calls `refuse` with what it takes to reply to those who waited there.
    pub fn close(&mut self, end: u64, mut refuse: impl FnMut(R)) -> Result<(), Error> {
        let End { at, .. } = self.owners.remove(end).ok_or(Error::Closed)?;
        let (pipe, readers, writers) = match at {
            At::Open(open) => {
                self.close_file(open);
                return Ok(());
            }
            At::Reader(pipe) => (pipe, 1, 0),
            At::Writer(pipe) => (pipe, 0, 1),
        };
        let Some(found) = self.pipes.get_mut(&pipe) else { return Ok(()) };
        found.leave(end, &mut refuse);
        found.readers -= readers;
        found.writers -= writers;
        if found.readers + found.writers == 0 {
            self.pipes.remove(&pipe);
            self.ready.remove(&pipe);
        } else {
            self.ready.insert(pipe);
        }
        Ok(())
    }

    fn close_file(&mut self, number: u64) {
        let Some(open) = self.opens.get_mut(&number) else { return };
        open.ends -= 1;
        if open.ends == 0 {
            let node = open.node;
            self.opens.remove(&number);
            self.tree.close(node);
        }
    }

    /// Closes the ends of a process that has ended, or as many as one request may; the [question](Self::question) then
    /// names the process again. If it was the last of its `family`, what they made belongs to nobody; otherwise
    /// `family` is 0. Calls `refuse` with what it takes to reply to those who waited there.
    pub fn process_ended(&mut self, process: u64, family: u64, mut refuse: impl FnMut(R)) {
        self.owners.process_ended(process);
        for _ in 0..BATCH {
            match self.owners.next_of_ended(process) {
                // The end exists.
                Some((end, false)) => _ = self.close(end, &mut refuse),
                Some((_, true)) => {}
                None => break,
            }
        }
        if family != 0 {
            // This comes last, and each time: others write through its ends as long as it pays for them.
            self.tree.family_ended(family);
        }
    }

    /// Returns a process, of the same core as `process`, about which that core's process server is to be asked: its
    /// ends have no payer, or not all are closed yet, or it has opened its first.
    pub fn question(&self, process: u64) -> Option<u64> {
        self.orphan(process).or_else(|| self.owners.unconfirmed(process))
    }

    /// Returns how many ends a process pays for.
    pub fn opened(&self, process: u64) -> usize {
        self.owners.opened(process)
    }

    /// Returns such a process whose ends have no payer, or are not all closed yet.
    pub fn orphan(&self, process: u64) -> Option<u64> {
        self.owners.some_ended(process).or_else(|| self.owners.orphan(process))
    }

    /// Notes that a client runs: it keeps ends that it was given. Calls `refuse` as [`close`](Self::close) does, for
    /// ends beyond the maximum.
    pub fn process_lives(&mut self, client: Client, mut refuse: impl FnMut(R)) {
        for _ in 0..BATCH {
            let Some(end) = self.owners.process_lives(client) else { return };
            // The end exists.
            let _ = self.close(end, &mut refuse);
        }
    }

    /// Removes waits of the payer's family that have been given up, after [`read`](Self::read) or
    /// [`write`](Self::write) has failed with `Full`. Calls `forget` with what it took to reply.
    pub fn forget_gone(&mut self, end: u64, has_gone: impl Fn(&R) -> bool, mut forget: impl FnMut(R)) {
        let Some(end) = self.owners.get(end).copied() else { return };
        let mut after = 0;
        while let Some((number, at)) = self.owners.next_in_the_way(&end, after) {
            after = number;
            let (At::Reader(pipe) | At::Writer(pipe)) = at else { continue };
            let Some(found) = self.pipes.get_mut(&pipe) else { continue };
            found.forget_gone(number, &has_gone, |reply| {
                self.owners.stop_waiting(number);
                forget(reply);
            });
            // Threads behind them may go on.
            self.ready.insert(pipe);
        }
    }

    /// Reads from an end. A thread that must wait is added by [`wait_to_read`](Self::wait_to_read).
    pub fn read(&mut self, end: u64, max: usize) -> Outcome<Data> {
        let Some(found) = self.owners.get(end).copied() else { return Outcome::Now(Err(Error::Closed)) };
        match found.at {
            At::Writer(_) => Outcome::Now(Err(Error::NotForReading)),
            At::Open(open) => Outcome::Now(self.read_file(open, max)),
            At::Reader(pipe) => {
                let now =
                    if max == 0 { Some(Data::new()) } else { self.pipe_mut(pipe).and_then(|pipe| pipe.read_now(max)) };
                match now {
                    Some(data) => {
                        self.ready.insert(pipe);
                        Outcome::Now(Ok(data))
                    }
                    None if self.owners.may_wait(&found) => Outcome::Wait,
                    None => Outcome::Now(Err(Error::Full)),
                }
            }
        }
    }

    /// Writes to an end. A thread that must wait is added by [`wait_to_write`](Self::wait_to_write).
    pub fn write(&mut self, end: u64, data: &[u8]) -> Outcome<()> {
        let Some(found) = self.owners.get(end).copied() else { return Outcome::Now(Err(Error::Closed)) };
        match found.at {
            At::Reader(_) => Outcome::Now(Err(Error::NotForWriting)),
            At::Open(open) => Outcome::Now(self.write_file(open, found.writer(), data)),
            At::Writer(pipe) => match self.pipe_mut(pipe).and_then(|pipe| pipe.write_now(data)) {
                Some(result) => {
                    self.ready.insert(pipe);
                    Outcome::Now(result)
                }
                None if self.owners.may_wait(&found) => Outcome::Wait,
                None => Outcome::Now(Err(Error::Full)),
            },
        }
    }

    fn pipe_mut(&mut self, pipe: u64) -> Option<&mut Pipe<R>> {
        self.pipes.get_mut(&pipe)
    }

    /// Adds a thread that waits at an end, after [`read`](Self::read) has returned `Wait`.
    pub fn wait_to_read(&mut self, end: u64, max: usize, reply: R) {
        let ticket = self.number();
        if let Some(End { at: At::Reader(pipe), .. }) = self.owners.get(end)
            && let Some(pipe) = self.pipes.get_mut(pipe)
        {
            self.owners.wait(end);
            pipe.wait_to_read(ticket, end, max.min(MAX_DATA), reply);
        }
    }

    /// Adds a thread that waits at an end, after [`write`](Self::write) has returned `Wait`.
    pub fn wait_to_write(&mut self, end: u64, data: &[u8], reply: R) {
        let ticket = self.number();
        if let Some(End { at: At::Writer(pipe), .. }) = self.owners.get(end)
            && let Some(pipe) = self.pipes.get_mut(pipe)
        {
            self.owners.wait(end);
            pipe.wait_to_write(ticket, end, data, reply);
        }
    }

    /// Returns the next reply that is due.
    pub fn next_due(&mut self) -> Option<Due<R>> {
        while let Some(pipe) = self.ready.first().copied() {
            if let Some((end, reply, completion)) = self.pipe_mut(pipe).and_then(Pipe::step) {
                self.owners.stop_waiting(end);
                return Some(Due { reply, completion, from: Source(pipe) });
            }
            self.ready.remove(&pipe);
        }
        None
    }

    /// Returns the bytes of the last reply, which did not arrive, to the next reader.
    pub fn undelivered(&mut self, from: Source, data: &[u8]) {
        if let Some(pipe) = self.pipe_mut(from.0) {
            pipe.put_back(data);
        }
    }

    fn read_file(&mut self, open: u64, max: usize) -> Result<Data, Error> {
        let open = self.opens.get_mut(&open).ok_or(Error::Closed)?;
        if !open.is_readable() {
            return Err(Error::NotForReading);
        }
        let contents = self.tree.contents(open.node).ok_or(Error::Closed)?;
        let mut buffer = [0; MAX_DATA];
        let count = contents.read(open.position, &mut buffer[..max.min(MAX_DATA)]);
        open.position += count as u64;
        Ok(buffer[..count].iter().copied().collect())
    }

    fn write_file(&mut self, open: u64, client: Client, data: &[u8]) -> Result<(), Error> {
        let open = self.opens.get_mut(&open).ok_or(Error::Closed)?;
        if !open.is_writable() {
            return Err(Error::NotForWriting);
        }
        let size = self.tree.contents(open.node).map_or(0, Contents::size);
        let position = if open.how == How::Append { size } else { open.position };
        self.tree.write(open.node, position, data, client)?;
        open.position = position + data.len() as u64;
        Ok(())
    }

    /// Returns information about the object of an end.
    pub fn info(&self, end: u64) -> Result<Info, Error> {
        let pipe_info = |pipe: &u64, readable: bool| {
            let size = self.pipes.get(pipe).map_or(0, Pipe::len) as u64;
            Info { kind: Kind::Pipe, readable, writable: !readable, size, position: 0 }
        };
        match &self.owners.get(end).ok_or(Error::Closed)?.at {
            At::Reader(pipe) => Ok(pipe_info(pipe, true)),
            At::Writer(pipe) => Ok(pipe_info(pipe, false)),
            At::Open(open) => {
                let open = self.opens.get(open).ok_or(Error::Closed)?;
                let size = self.tree.contents(open.node).map_or(0, Contents::size);
                let (readable, writable) = (open.is_readable(), open.is_writable());
                Ok(Info { kind: Kind::File, readable, writable, size, position: open.position })
            }
        }
    }

    fn open_file(&mut self, end: u64) -> Result<(&mut Open, &mut Tree), Error> {
        match self.owners.get(end).ok_or(Error::Closed)?.at {
            At::Open(open) => Ok((self.opens.get_mut(&open).ok_or(Error::Closed)?, &mut self.tree)),
            At::Reader(_) | At::Writer(_) => Err(Error::NotAFile),
        }
    }

    /// Sets the position for the next read or write.
    pub fn seek(&mut self, end: u64, position: u64) -> Result<(), Error> {
        let (open, _) = self.open_file(end)?;
        if position > MAX_SIZE {
            return Err(Error::TooLarge);
        }
        open.position = position;
        Ok(())
    }

    /// Sets a file's size.
    pub fn truncate(&mut self, end: u64, size: u64) -> Result<(), Error> {
        let (open, tree) = self.open_file(end)?;
        if !open.is_writable() {
            return Err(Error::NotForWriting);
        }
        tree.truncate(open.node, size)
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let mut at = BTreeMap::new();
        self.owners.check_invariants();
        for (_, end) in self.owners.iter() {
            let entry = at.entry(match end.at {
                At::Reader(pipe) | At::Writer(pipe) => pipe,
                At::Open(open) => open,
            });
            let (readers, writers, opens) = entry.or_insert((0, 0, 0));
            match end.at {
                At::Reader(_) => *readers += 1,
                At::Writer(_) => *writers += 1,
                At::Open(_) => *opens += 1,
            }
        }
        assert_eq!(at.len(), self.pipes.len() + self.opens.len(), "something has no end");
        let mut waiting = BTreeMap::new();
        for (number, pipe) in &self.pipes {
            assert_eq!(at.get(number), Some(&(pipe.readers, pipe.writers, 0)));
            pipe.check_invariants(|end, is_reader| {
                let expected = if is_reader { At::Reader(*number) } else { At::Writer(*number) };
                assert_eq!(self.owners.get(end).map(|end| end.at), Some(expected), "who waits has an end");
                *waiting.entry(end).or_insert(0) += 1;
            });
            if !self.ready.contains(number) {
                pipe.check_all_blocked();
            }
        }
        for (number, open) in &self.opens {
            assert_eq!(at.get(number), Some(&(0, 0, open.ends)));
        }
        for (number, end) in self.owners.iter() {
            assert_eq!(waiting.get(&number).copied().unwrap_or(0), end.waiting, "who waits at end {number}");
        }
        assert_eq!(waiting.values().sum::<u32>() as usize, self.owners.waiting());
        assert!(self.ready.iter().all(|pipe| self.pipes.contains_key(pipe)));
        self.tree.check_invariants(|node| self.opens.values().filter(|open| open.node == node).count() as u32);
    }
}
