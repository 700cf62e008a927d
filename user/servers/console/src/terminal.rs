//! The terminal: its readers, writers, and ownership.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench::server::Lasting;
use tench_console_interface::protocol::{Error, MAX_TEXT, Mode};
use tench_protocol::Powers;
use tench_quota::cursors::{Cursors, EVERYBODY, look};
use tench_quota::{Client, allows};
use tench_sys::Instant;

use crate::kept::{Kept, Ownership};
use crate::line::{Line, TAKE_BACK, Typed};
use crate::output::Output;
use crate::plain::Plain;

/// Maximum number of bytes that writers can be ahead of the line.
pub const OUTPUT_LIMIT: usize = 8000;
/// Bytes of heap that a request or an input may need, with at most 256 waiting threads, besides what the terminal
/// allocates at its start. A test counts.
pub const GROWTH: usize = 30 << 10;
/// Number of waiting texts checked at a time for writers that have given up.
const TEXTS: usize = 8;

/// A thread that waits for input. `R` is what it takes to reply.
struct Reader<R> {
    client: Client,
    max: usize,
    /// Deadline of the read, if it has one.
    deadline: Option<Instant>,
    reply: R,
}

/// A key that is signalled to the process that controls the foreground process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Ctrl-C, or Ctrl-] while the terminal is lent.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

/// A thread that waits for room.
struct Writer<R> {
    client: Client,
    text: Vec<u8>,
    reply: R,
}

/// A reply to a waiting thread.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A read: these bytes.
    Input(Vec<u8>),
    /// A read: refused.
    Refused(Error),
    /// A write or a drain: done.
    Done,
}

/// The terminal. `R` is what it takes to reply to a waiter later.
pub struct Terminal<R> {
    line: Line,
    /// Output buffer.
    pub output: Output,
    /// Filter for the output of ordinary programs.
    plain: Plain,
    /// The process that controls who reads; 0 if none does.
    owner: u64,
    /// The only process that reads; 0 if every process may.
    foreground: u64,
    /// Set if the terminal is lent to the process in the foreground.
    is_lent: bool,
    readers: VecDeque<Reader<R>>,
    writers: VecDeque<Writer<R>>,
    drainers: Vec<(Client, R)>,
    /// Replies that are due.
    outcomes: VecDeque<(R, Outcome)>,
    /// For each family, where [`take_out_some`](Self::take_out_some) continues.
    cursors: Cursors<usize>,
    limit: usize,
}

impl<R> Terminal<R> {
    /// Returns a terminal at which `limit` threads can wait.
    pub fn new(limit: usize) -> Terminal<R> {
        Terminal {
            line: Line::default(),
            output: Output::new(OUTPUT_LIMIT),
            plain: Plain::default(),
            owner: 0,
            foreground: 0,
            is_lent: false,
            readers: VecDeque::with_capacity(limit),
            writers: VecDeque::with_capacity(limit),
            drainers: Vec::with_capacity(limit),
            // A thread that need not wait also gets its reply this way.
            outcomes: VecDeque::with_capacity(limit + 1),
            cursors: Cursors::new(),
            limit,
        }
    }

    fn waiting(&self) -> usize {
        self.readers.len() + self.writers.len() + self.drainers.len() + self.outcomes.len()
    }

    /// Returns whether one more thread of a client may wait.
    pub fn may_wait(&self, client: Client) -> bool {
        let is_of_family = |other: &Client| other.family == client.family;
        let own = self.readers.iter().filter(|reader| is_of_family(&reader.client)).count()
            + self.writers.iter().filter(|writer| is_of_family(&writer.client)).count()
            + self.drainers.iter().filter(|(drainer, _)| is_of_family(drainer)).count();
        allows(own, self.waiting(), self.limit)
    }

    /// Returns all waiting threads: readers, writers, drainers.
    fn waiters(&self) -> impl Iterator<Item = (&Client, &R)> + Clone {
        let readers = self.readers.iter().map(|reader| (&reader.client, &reader.reply));
        let writers = self.writers.iter().map(|writer| (&writer.client, &writer.reply));
        readers.chain(writers).chain(self.drainers.iter().map(|(client, reply)| (client, reply)))
    }

    /// Removes waits of a family whose threads have stopped waiting without notice, as `has_gone` reports. Checks at
    /// most `looks`, and others the next time. Text of theirs that has had no room yet is dropped, as if it had not
    /// been written.
    pub fn take_out_some(&mut self, family: u64, looks: usize, has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        self.take_out_among(family, looks, |client| client.family == family, has_gone)
    }

    /// Removes waits of any family in the same way: a wait in the name of an ended process is checked by nobody of its
    /// family.
    pub fn take_out_any(&mut self, looks: usize, has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        self.take_out_among(EVERYBODY, looks, |_| true, has_gone)
    }

    /// Returns whether [`take_out_some`](Self::take_out_some) has not yet checked all waits of a family since it began.
    /// If requests continue it while that is so, as many waits are freed as if it had checked all at once.
    pub fn is_looking(&mut self, family: u64) -> bool {
        let index = self.cursors.take(family);
        index.into_iter().for_each(|index| self.cursors.put(family, index));
        index.is_some()
    }

    /// Checks some of the waits for which `is_meant` holds, from cursor `number` on, and removes those whose threads
    /// have gone.
    fn take_out_among(
        &mut self,
        number: u64,
        looks: usize,
        is_meant: impl Fn(&Client) -> bool,
        has_gone: impl FnMut(&R) -> bool,
    ) -> Vec<R> {
        let from = self.cursors.take(number);
        let waiters = self.waiters().filter(|(client, _)| is_meant(client)).map(|(_, reply)| reply);
        let count = waiters.clone().count();
        let (gone, next) = look(from, looks, waiters, has_gone);
        if next + gone.len() < count {
            self.cursors.put(number, next);
        }
        if gone.is_empty() {
            return Vec::new();
        }
        // Positions among all waits.
        let meant = self.waiters().enumerate().filter(|(_, (client, _))| is_meant(client)).map(|(index, _)| index);
        let gone = meant.enumerate().filter(|(number, _)| gone.contains(number)).map(|(_, index)| index);
        let gone: Vec<usize> = gone.collect();
        // Removal starts at the end, so that the other positions stay valid.
        gone.into_iter().rev().filter_map(|index| self.take_out_at(index)).collect()
    }

    /// Removes the wait at a position among all.
    fn take_out_at(&mut self, index: usize) -> Option<R> {
        let (readers, writers) = (self.readers.len(), self.writers.len());
        if index < readers {
            return Some(self.readers.remove(index)?.reply);
        }
        match index - readers {
            index if index < writers => Some(self.writers.remove(index)?.reply),
            index => (index - writers < self.drainers.len()).then(|| self.drainers.remove(index - writers).1),
        }
    }

    /// Removes all waits of a process.
    fn take_out_all(&mut self, process: u64) -> Vec<R> {
        let mut replies: Vec<R> = Vec::new();
        let readers = extract(&mut self.readers, |reader| reader.client.process == process);
        replies.extend(readers.into_iter().map(|reader| reader.reply));
        let writers = extract(&mut self.writers, |writer| writer.client.process == process);
        replies.extend(writers.into_iter().map(|writer| writer.reply));
        let drainers = self.drainers.extract_if(.., |(drainer, _)| drainer.process == process);
        replies.extend(drainers.map(|(_, reply)| reply));
        replies
    }

    /// Handles a typed byte. Returns a key that has to be signalled.
    pub fn typed(&mut self, byte: u8) -> Option<Key> {
        let typed = match byte {
            TAKE_BACK if self.is_lent => self.line.take_back(&mut self.output),
            _ => self.line.typed(byte, &mut self.output),
        };
        match typed {
            Typed::Nothing => None,
            Typed::Ready => {
                self.serve();
                None
            }
            Typed::Interrupt => {
                let foreground = self.foreground;
                self.refuse_readers(Error::Interrupted, |reader| {
                    foreground == 0 || reader.client.process == foreground
                });
                Some(Key::Interrupt)
            }
            Typed::Suspend => Some(Key::Suspend),
        }
    }

    /// Sets whether Ctrl-Z is a key that is signalled.
    pub fn set_suspends(&mut self, suspends: bool) {
        self.line.can_suspend = suspends;
    }

    fn refuse_readers(&mut self, error: Error, is_meant: impl Fn(&Reader<R>) -> bool) {
        let refused = extract(&mut self.readers, is_meant);
        self.outcomes.extend(refused.into_iter().map(|reader| (reader.reply, Outcome::Refused(error))));
    }

    /// Reads for a thread, which waits for input until the deadline if there is one.
    pub fn read(&mut self, client: Client, max: usize, deadline: Option<Instant>, reply: R) {
        if max == 0 {
            self.outcomes.push_back((reply, Outcome::Input(Vec::new())));
        } else if !self.may_wait(client) {
            self.outcomes.push_back((reply, Outcome::Refused(Error::Full)));
        } else {
            self.readers.push_back(Reader { client, max: max.min(MAX_TEXT), deadline, reply });
            self.serve();
        }
    }

    /// Reads for a thread what there is, without waiting.
    pub fn read_at_once(&mut self, client: Client, max: usize, reply: R) {
        // If an earlier reader could have it, it would have been served.
        if max == 0 || self.line.is_ready() && self.may_read(&client) {
            self.read(client, max, None, reply);
        } else {
            self.outcomes.push_back((reply, Outcome::Refused(Error::TimedOut)));
        }
    }

    /// Returns whether typed input is for a client.
    const fn may_read(&self, client: &Client) -> bool {
        self.foreground == 0 || client.process == self.foreground
    }

    /// Returns the earliest deadline of a reader.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.readers.iter().filter_map(|reader| reader.deadline).min()
    }

    /// Refuses one reader whose deadline has passed. Returns whether there was one.
    pub fn expire_one(&mut self, now: Instant) -> bool {
        let is_over = |reader: &Reader<R>| reader.deadline.is_some_and(|deadline| deadline <= now);
        let Some(reader) = self.readers.iter().position(is_over).and_then(|index| self.readers.remove(index)) else {
            return false;
        };
        self.outcomes.push_back((reader.reply, Outcome::Refused(Error::TimedOut)));
        true
    }

    /// Writes for a thread: the text as it is if the client has the power for that or is lent the terminal, otherwise
    /// [filtered](Plain).
    pub fn write_with(&mut self, client: Client, powers: Powers, text: &[u8], reply: R) {
        if powers.contains(Powers::TERMINAL) || self.is_lent_to(client.process) {
            self.write(client, text, reply);
            return;
        }
        let (shown, beginning) = self.plain.show(client.process, text);
        if self.write(client, &shown, reply) {
            self.plain.keep(client, beginning);
        }
    }

    /// Writes text as it is for a thread. Returns whether the text is accepted: written, or waiting for room.
    pub fn write(&mut self, client: Client, text: &[u8], reply: R) -> bool {
        if self.writers.is_empty() && self.output.has_capacity_for(text) {
            self.output.write(text);
            self.outcomes.push_back((reply, Outcome::Done));
        } else if !self.may_wait(client) {
            self.outcomes.push_back((reply, Outcome::Refused(Error::Full)));
            return false;
        } else {
            self.writers.push_back(Writer { client, text: text.to_vec(), reply });
        }
        true
    }

    /// Returns whether there is room for the next writer, so that [`sent`](Self::sent) is to be called though nothing
    /// was sent.
    pub fn has_capacity(&self) -> bool {
        self.writers.front().is_some_and(|writer| self.output.has_capacity_for(&writer.text))
    }

    /// Lets a thread wait until everything written has been sent.
    pub fn drain(&mut self, client: Client, reply: R) {
        if !self.may_wait(client) {
            self.outcomes.push_back((reply, Outcome::Refused(Error::Full)));
        } else {
            self.drainers.push((client, reply));
        }
    }

    /// Lets waiting writers go on, or some of them, after bytes were sent, perhaps all. A text whose writer `has_gone`
    /// is dropped, as if it had not been written: otherwise abandoned texts would come before those of others.
    pub fn sent(&mut self, mut has_gone: impl FnMut(&R) -> bool) {
        for _ in 0..TEXTS {
            let has_capacity = |writer: &mut Writer<R>| self.output.has_capacity_for(&writer.text);
            let Some(writer) = self.writers.pop_front_if(has_capacity) else { break };
            if !has_gone(&writer.reply) {
                self.output.write(&writer.text);
            }
            self.outcomes.push_back((writer.reply, Outcome::Done));
        }
        if self.output.is_empty() && self.writers.is_empty() {
            self.outcomes.extend(self.drainers.drain(..).map(|(_, reply)| (reply, Outcome::Done)));
        }
    }

    /// Gives input to readers that may have it, in the order of their arrival.
    fn serve(&mut self) {
        while self.line.is_ready() {
            let Some(index) = self.readers.iter().position(|reader| self.may_read(&reader.client)) else { return };
            if let Some(reader) = self.readers.remove(index) {
                let bytes = self.line.read(reader.max);
                self.outcomes.push_back((reader.reply, Outcome::Input(bytes)));
            }
        }
    }

    /// Returns the next reply that is due.
    pub fn next_outcome(&mut self) -> Option<(R, Outcome)> {
        self.outcomes.pop_front()
    }

    /// Returns input of a reply that did not arrive to the next reader.
    pub fn undelivered(&mut self, bytes: &[u8]) {
        self.line.put_back(bytes);
        self.serve();
    }

    /// Returns the mode, the foreground process, and whether the output so far ends in the middle of a line.
    pub fn mode(&self) -> (Mode, u64, bool) {
        (self.line.mode(), self.foreground, self.output.is_mid_line())
    }

    /// Returns a terminal at which `limit` threads can wait, and which continues after a restart: with the text that
    /// was accepted, and with the ownership if it was set.
    pub fn resumed<M: Lasting>(limit: usize, kept: &Kept<M>) -> Terminal<R> {
        let mut terminal = Terminal::new(limit);
        terminal.output = kept.output(OUTPUT_LIMIT);
        if let Some(ownership) = kept.ownership() {
            terminal.owner = ownership.owner;
            terminal.foreground = ownership.foreground;
            terminal.is_lent = ownership.is_lent;
            terminal.line.set_mode(ownership.mode);
        }
        terminal
    }

    /// Returns the ownership of the terminal.
    pub const fn ownership(&self) -> Ownership {
        let (mode, is_lent) = (self.line.mode(), self.is_lent);
        Ownership { mode, owner: self.owner, foreground: self.foreground, is_lent }
    }

    /// Sets the mode. Returns a key that has to be signalled.
    pub fn set_mode(&mut self, process: u64, powers: Powers, mode: Mode) -> Result<Option<Key>, Error> {
        if !self.is_lent_to(process) {
            self.check_control(process, powers)?;
        }
        let key = match self.line.set_mode(mode) {
            Typed::Interrupt => {
                self.output.write(b"^C\n");
                Some(Key::Interrupt)
            }
            Typed::Suspend => {
                self.output.write(b"^Z\n");
                Some(Key::Suspend)
            }
            Typed::Nothing | Typed::Ready => None,
        };
        self.serve();
        Ok(key)
    }

    /// Sets who reads. The caller owns the terminal from then on, and it is lent to nobody.
    pub fn set_foreground(&mut self, process: u64, powers: Powers, foreground: u64) -> Result<(), Error> {
        self.check_control(process, powers)?;
        self.end_lending();
        self.owner = process;
        self.foreground = foreground;
        self.serve();
        Ok(())
    }

    /// Lends the terminal to the process that reads. `has_signal` says whether Ctrl-] can be signalled to anybody.
    pub fn lend(&mut self, process: u64, powers: Powers, borrower: u64, has_signal: bool) -> Result<(), Error> {
        self.check_control(process, powers)?;
        if borrower == 0 || borrower != self.foreground {
            return Err(Error::NotReading);
        }
        if !has_signal {
            return Err(Error::NoSignal);
        }
        self.is_lent = true;
        // What it writes now is not put together with the beginning of a character that it wrote before.
        self.plain.forget(borrower);
        Ok(())
    }

    /// Returns whether the terminal is lent to a process.
    const fn is_lent_to(&self, process: u64) -> bool {
        self.is_lent && process == self.foreground
    }

    /// Ends the lending, if there is any: the mode is canonical again. A key among what the borrower has not read is
    /// not signalled: it was meant for the borrower.
    fn end_lending(&mut self) {
        if core::mem::take(&mut self.is_lent) {
            self.line.set_mode(Mode::Canonical);
        }
    }

    /// Checks that a process may control who reads, and how. Fails with `NotYours` if another process owns the
    /// terminal, or if none does and the process lacks the power to take it. (If the power could take it from its
    /// owner, two shells would edit one line.)
    pub fn check_control(&self, process: u64, powers: Powers) -> Result<(), Error> {
        let may = if self.owner == 0 { powers.contains(Powers::TERMINAL) } else { self.owner == process };
        if may { Ok(()) } else { Err(Error::NotYours) }
    }

    /// Removes an ended process's waits, and frees what it owned. Returns the replies that nobody waits for any more,
    /// and whether the process was the owner.
    pub fn process_ended(&mut self, process: u64) -> (Vec<R>, bool) {
        let replies = self.take_out_all(process);
        self.plain.forget(process);
        if self.foreground == process {
            self.end_lending();
            // Not every process: what is typed now is not for a program in the background.
            self.foreground = self.owner;
        }
        let owned = self.owner == process;
        if owned {
            self.owner = 0;
            self.foreground = 0;
            self.is_lent = false;
            self.line.set_mode(Mode::Canonical);
        }
        self.serve();
        (replies, owned)
    }
}

/// Removes the elements for which `is_wanted` holds; the others keep their order.
fn extract<T>(queue: &mut VecDeque<T>, is_wanted: impl FnMut(&T) -> bool) -> Vec<T> {
    let (wanted, others): (Vec<T>, Vec<T>) = queue.drain(..).partition(is_wanted);
    queue.extend(others);
    wanted
}
