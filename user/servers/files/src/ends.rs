//! Ends of streams: who has which, what is at them, and who must be answered.
//!
//! An end has a number that is never used twice, an owner (with whose end it is closed) and a payer (against whose limit it
//! counts: whoever opened or shared it). When the payer ends before the owner, nobody knows whether there is an owner at all; the
//! process server is asked ([`Ends::orphan`]), and then the owner pays.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use tench_files_client::protocol::{self as files, How};
use tench_stream::protocol::{Error, Info, Kind, MAX_DATA};

use crate::contents::{Contents, MAX_SIZE};
use crate::pipe::{Answer, Data, Pipe};
use crate::tree::{Node, Tree};

/// Ends that there can be.
pub const MAX_ENDS: usize = 2048;
/// Ends that one process can pay for.
pub const MAX_OWN_ENDS: usize = 128;
/// Requests that can wait.
pub const MAX_WAITING: usize = 1024;
/// Requests that can wait at the ends of one process.
pub const MAX_OWN_WAITING: usize = 64;
/// Payer of an end whose payer has ended.
const NOBODY: u64 = u64::MAX;
/// Bytes of heap that a request may need beside what it leaves behind of its own data. A test counts.
pub const GROWTH: usize = 24 << 10;

/// What is at an end: the number of a pipe or of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Reader(u64),
    Writer(u64),
    Open(u64),
}

/// An end.
#[derive(Clone, Copy, Debug)]
struct End {
    owner: u64,
    payer: u64,
    at: At,
    /// Requests that wait at it.
    waiting: u32,
}

/// An open file: what all ends to it share.
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

/// What becomes of a request that may wait.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome<T> {
    /// Answered.
    Now(Result<T, Error>),
    /// It must wait, and may.
    Wait,
}

/// The answer to somebody who waited.
#[derive(Debug)]
pub struct Due<R> {
    /// What it takes to answer.
    pub reply: R,
    /// The answer.
    pub answer: Answer,
    /// Where its bytes go back to if they do not arrive.
    pub from: Source,
}

/// Where the bytes of an answer come from.
#[derive(Clone, Copy, Debug)]
pub struct Source(u64);

/// All ends, pipes and open files. `R` is what it takes to answer somebody later.
#[derive(Debug)]
pub struct Ends<R> {
    /// The files.
    pub tree: Tree,
    ends: BTreeMap<u64, End>,
    opens: BTreeMap<u64, Open>,
    pipes: BTreeMap<u64, Pipe<R>>,
    owned: BTreeSet<(u64, u64)>,
    paid: BTreeSet<(u64, u64)>,
    /// Pipes at which somebody may go on.
    ready: BTreeSet<u64>,
    waiting: usize,
    /// The next number, of whatever.
    next: u64,
}

/// The pairs of a set that belong to a process.
fn of(set: &BTreeSet<(u64, u64)>, process: u64) -> impl Iterator<Item = u64> {
    set.range((process, 0)..=(process, u64::MAX)).map(|(_, end)| *end)
}

/// The first of them.
fn first_of(set: &BTreeSet<(u64, u64)>, process: u64) -> Option<u64> {
    of(set, process).next()
}

impl<R> Ends<R> {
    /// None yet, over these files.
    pub const fn new(tree: Tree) -> Ends<R> {
        Ends {
            tree,
            ends: BTreeMap::new(),
            opens: BTreeMap::new(),
            pipes: BTreeMap::new(),
            owned: BTreeSet::new(),
            paid: BTreeSet::new(),
            ready: BTreeSet::new(),
            waiting: 0,
            next: 1,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// How much there is of everything.
    pub fn usage(&self) -> files::Usage {
        let block = crate::contents::BLOCK as u64;
        files::Usage {
            bytes: self.tree.space.used() as u64 * block,
            most_bytes: self.tree.space.most() as u64 * block,
            nodes: self.tree.made() as u64,
            pipes: self.pipes.len() as u64,
            ends: self.ends.len() as u64,
            waiting: self.waiting as u64,
        }
    }

    /// Whether a process can pay for so many more ends.
    fn can_pay(&self, process: u64, more: usize) -> bool {
        self.ends.len() + more <= MAX_ENDS && of(&self.paid, process).count() + more <= MAX_OWN_ENDS
    }

    fn add(&mut self, owner: u64, payer: u64, at: At) -> u64 {
        let number = self.number();
        self.ends.insert(number, End { owner, payer, at, waiting: 0 });
        self.owned.insert((owner, number));
        self.paid.insert((payer, number));
        number
    }

    /// Makes a pipe for a process. Answers the ends to read from and to write to.
    pub fn pipe(&mut self, process: u64) -> Result<(u64, u64), files::Error> {
        if !self.can_pay(process, 2) {
            return Err(files::Error::Full);
        }
        let pipe = self.number();
        self.pipes.insert(pipe, Pipe::new());
        Ok((self.add(process, process, At::Reader(pipe)), self.add(process, process, At::Writer(pipe))))
    }

    /// Opens a file for a process. Answers the end.
    pub fn open(&mut self, process: u64, path: &str, how: How) -> Result<u64, files::Error> {
        if !self.can_pay(process, 1) {
            return Err(files::Error::Full);
        }
        let node = self.tree.open(path, how)?;
        let open = self.number();
        self.opens.insert(open, Open { node, position: 0, how, ends: 1 });
        Ok(self.add(process, process, At::Open(open)))
    }

    /// Another end to the same, which belongs to a process.
    pub fn share(&mut self, end: u64, process: u64) -> Result<u64, Error> {
        let End { owner, at, .. } = *self.ends.get(&end).ok_or(Error::Closed)?;
        if !self.can_pay(owner, 1) {
            return Err(Error::Full);
        }
        // What is at an end is there as long as the end.
        match at {
            At::Reader(pipe) => self.pipes.get_mut(&pipe).into_iter().for_each(|pipe| pipe.readers += 1),
            At::Writer(pipe) => self.pipes.get_mut(&pipe).into_iter().for_each(|pipe| pipe.writers += 1),
            At::Open(open) => self.opens.get_mut(&open).into_iter().for_each(|open| open.ends += 1),
        }
        Ok(self.add(process, owner, at))
    }

    /// Closes an end. Calls `refuse` with what it takes to answer those who waited there.
    pub fn close(&mut self, end: u64, mut refuse: impl FnMut(R)) -> Result<(), Error> {
        let End { owner, payer, at, waiting } = self.ends.remove(&end).ok_or(Error::Closed)?;
        self.owned.remove(&(owner, end));
        self.paid.remove(&(payer, end));
        self.waiting -= waiting as usize;
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

    /// A process has ended: its ends are closed. Answers what it takes to answer those who waited there.
    pub fn process_ended(&mut self, process: u64) -> Vec<R> {
        let mut refused = Vec::new();
        while let Some(end) = first_of(&self.owned, process) {
            // It is there.
            let _ = self.close(end, |reply| refused.push(reply));
        }
        self.pass_on(process, NOBODY, |_| true);
        refused
    }

    /// Lets another process, or nobody, pay for what this one pays for.
    fn pass_on(&mut self, from: u64, to: u64, is_meant: impl Fn(&End) -> bool) {
        let mut after = 0;
        while let Some(end) = self.paid.range((from, after)..=(from, u64::MAX)).next().map(|(_, end)| *end) {
            after = end + 1;
            if let Some(found) = self.ends.get_mut(&end).filter(|found| is_meant(found)) {
                found.payer = to;
                self.paid.remove(&(from, end));
                self.paid.insert((to, end));
            }
        }
    }

    /// A process for whose ends nobody pays: whether it lives must be found out.
    pub fn orphan(&self) -> Option<u64> {
        self.ends.get(&first_of(&self.paid, NOBODY)?).map(|end| end.owner)
    }

    /// A process lives: it pays for its ends from now on.
    pub fn process_lives(&mut self, process: u64) {
        self.pass_on(NOBODY, process, |end| end.owner == process);
    }

    /// Whether one more request can wait at an end.
    fn can_wait(&self, end: &End) -> bool {
        let own = of(&self.owned, end.owner).filter_map(|end| self.ends.get(&end)).map(|end| end.waiting as usize);
        self.waiting < MAX_WAITING && own.sum::<usize>() < MAX_OWN_WAITING
    }

    /// Reads from an end. One who must wait [waits](Self::wait_to_read).
    pub fn read(&mut self, end: u64, max: usize) -> Outcome<Data> {
        let Some(found) = self.ends.get(&end).copied() else { return Outcome::Now(Err(Error::Closed)) };
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
                    None if self.can_wait(&found) => Outcome::Wait,
                    None => Outcome::Now(Err(Error::Full)),
                }
            }
        }
    }

    /// Writes to an end. One who must wait [waits](Self::wait_to_write).
    pub fn write(&mut self, end: u64, data: &[u8]) -> Outcome<()> {
        let Some(found) = self.ends.get(&end).copied() else { return Outcome::Now(Err(Error::Closed)) };
        match found.at {
            At::Reader(_) => Outcome::Now(Err(Error::NotForWriting)),
            At::Open(open) => Outcome::Now(self.write_file(open, data)),
            At::Writer(pipe) => match self.pipe_mut(pipe).and_then(|pipe| pipe.write_now(data)) {
                Some(result) => {
                    self.ready.insert(pipe);
                    Outcome::Now(result)
                }
                None if self.can_wait(&found) => Outcome::Wait,
                None => Outcome::Now(Err(Error::Full)),
            },
        }
    }

    fn pipe_mut(&mut self, pipe: u64) -> Option<&mut Pipe<R>> {
        self.pipes.get_mut(&pipe)
    }

    /// Somebody waits at an end, after [`read`](Self::read) said so.
    pub fn wait_to_read(&mut self, end: u64, max: usize, reply: R) {
        let ticket = self.number();
        if let Some(End { at: At::Reader(pipe), waiting, .. }) = self.ends.get_mut(&end)
            && let Some(pipe) = self.pipes.get_mut(pipe)
        {
            *waiting += 1;
            self.waiting += 1;
            pipe.wait_to_read(ticket, end, max.min(MAX_DATA), reply);
        }
    }

    /// Somebody waits at an end, after [`write`](Self::write) said so.
    pub fn wait_to_write(&mut self, end: u64, data: &[u8], reply: R) {
        let ticket = self.number();
        if let Some(End { at: At::Writer(pipe), waiting, .. }) = self.ends.get_mut(&end)
            && let Some(pipe) = self.pipes.get_mut(pipe)
        {
            *waiting += 1;
            self.waiting += 1;
            pipe.wait_to_write(ticket, end, data, reply);
        }
    }

    /// The next who need not wait any more.
    pub fn next_due(&mut self) -> Option<Due<R>> {
        while let Some(pipe) = self.ready.first().copied() {
            if let Some((end, reply, answer)) = self.pipe_mut(pipe).and_then(Pipe::step) {
                self.waiting -= 1;
                self.ends.get_mut(&end).into_iter().for_each(|end| end.waiting -= 1);
                return Some(Due { reply, answer, from: Source(pipe) });
            }
            self.ready.remove(&pipe);
        }
        None
    }

    /// The bytes of the last answer did not arrive: they are for the next reader.
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

    fn write_file(&mut self, open: u64, data: &[u8]) -> Result<(), Error> {
        let open = self.opens.get_mut(&open).ok_or(Error::Closed)?;
        if !open.is_writable() {
            return Err(Error::NotForWriting);
        }
        let size = self.tree.contents(open.node).map_or(0, Contents::size);
        let (blocks, space) = self.tree.blocks(open.node).ok_or(Error::NotForWriting)?;
        let position = if open.how == How::Append { size } else { open.position };
        blocks.write(position, data, space)?;
        open.position = position + data.len() as u64;
        Ok(())
    }

    /// What is at an end.
    pub fn info(&self, end: u64) -> Result<Info, Error> {
        let pipe_info = |pipe: &u64, readable: bool| {
            let size = self.pipes.get(pipe).map_or(0, Pipe::len) as u64;
            Info { kind: Kind::Pipe, readable, writable: !readable, size, position: 0 }
        };
        match &self.ends.get(&end).ok_or(Error::Closed)?.at {
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
        match self.ends.get(&end).ok_or(Error::Closed)?.at {
            At::Open(open) => Ok((self.opens.get_mut(&open).ok_or(Error::Closed)?, &mut self.tree)),
            At::Reader(_) | At::Writer(_) => Err(Error::NotAFile),
        }
    }

    /// Sets where to read or write next.
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
        let (blocks, space) = tree.blocks(open.node).ok_or(Error::NotForWriting)?;
        blocks.truncate(size, space)
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let mut at = BTreeMap::new();
        for (number, end) in &self.ends {
            assert!(self.owned.contains(&(end.owner, *number)) && self.paid.contains(&(end.payer, *number)));
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
        assert_eq!((self.owned.len(), self.paid.len()), (self.ends.len(), self.ends.len()));
        assert_eq!(at.len(), self.pipes.len() + self.opens.len(), "something has no end");
        let mut waiting = BTreeMap::new();
        for (number, pipe) in &self.pipes {
            assert_eq!(at.get(number), Some(&(pipe.readers, pipe.writers, 0)));
            pipe.check_invariants(|end, is_reader| {
                let expected = if is_reader { At::Reader(*number) } else { At::Writer(*number) };
                assert_eq!(self.ends.get(&end).map(|end| end.at), Some(expected), "who waits has an end");
                *waiting.entry(end).or_insert(0) += 1;
            });
            if !self.ready.contains(number) {
                pipe.check_settled();
            }
        }
        for (number, open) in &self.opens {
            assert_eq!(at.get(number), Some(&(0, 0, open.ends)));
        }
        for (number, end) in &self.ends {
            assert_eq!(waiting.get(number).copied().unwrap_or(0), end.waiting, "who waits at end {number}");
        }
        assert_eq!(waiting.values().sum::<u32>() as usize, self.waiting);
        assert!(self.ends.len() <= MAX_ENDS && self.waiting <= MAX_WAITING);
        assert!(self.ready.iter().all(|pipe| self.pipes.contains_key(pipe)));
        self.tree.check_invariants(|node| self.opens.values().filter(|open| open.node == node).count() as u32);
    }
}
