//! Message queues.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use tench_linux_calls::Errno;

use crate::table::{By, Entry, Found, Owner, Table, index_of};
use crate::waits::Waits;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The type, which is positive.
    pub kind: i64,
    /// The contents.
    pub bytes: Box<[u8]>,
}

/// A choice of the message that is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The oldest one.
    Any,
    /// The oldest one of a type.
    Of(i64),
    /// The oldest one of another type.
    NotOf(i64),
    /// The oldest one of the lowest type up to this one.
    UpTo(i64),
}

impl Filter {
    /// Returns which message a type stands for: with `excepts`, one of another type.
    pub const fn new(kind: i64, excepts: bool) -> Filter {
        match kind {
            0 => Filter::Any,
            ..0 => Filter::UpTo(kind.saturating_neg()),
            _ if excepts => Filter::NotOf(kind),
            _ => Filter::Of(kind),
        }
    }

    const fn accepts(self, kind: i64) -> bool {
        match self {
            Filter::Any => true,
            Filter::Of(wanted) => kind == wanted,
            Filter::NotOf(unwanted) => kind != unwanted,
            Filter::UpTo(most) => kind <= most,
        }
    }
}

/// A request to receive a message.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The choice of the message.
    pub filter: Filter,
    /// The most bytes.
    pub bytes: u64,
    /// A longer message is received as well, without its end.
    pub cuts: bool,
    /// The thread waits if there is none.
    pub waits: bool,
}

impl Wanted {
    const fn takes(&self, message: &Message) -> bool {
        self.cuts || message.bytes.len() as u64 <= self.bytes
    }
}

/// The outcome of sending a message, or of a request for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The message.
    Message(Message),
    /// The message was sent.
    Sent,
    /// The message or request is kept for later.
    Waits,
}

/// A thread that waits to send a message.
#[derive(Debug)]
struct Sender {
    thread: u32,
    process: u32,
    message: Message,
}

/// A thread that waits to receive a message.
#[derive(Debug)]
struct Receiver {
    thread: u32,
    wanted: Wanted,
}

/// A queue.
#[derive(Debug)]
pub struct Queue {
    /// By the order in which they came.
    messages: BTreeMap<u64, Message>,
    next: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// The most bytes of all messages, and the most messages.
    pub limit: u64,
    /// The process that has sent a message last; 0 for none.
    pub sender: u32,
    /// The process that has received a message last; 0 for none.
    pub receiver: u32,
    /// When a message was sent last, in seconds; 0 for never.
    pub sent: u64,
    /// When a message was received last, in seconds; 0 for never.
    pub received: u64,
    /// When the queue was made or set, in seconds.
    pub changed: u64,
    senders: VecDeque<Sender>,
    receivers: VecDeque<Receiver>,
}

impl Queue {
    const fn new(now: u64) -> Queue {
        Queue {
            messages: BTreeMap::new(),
            next: 0,
            bytes: 0,
            limit: Queues::USUAL_LIMIT,
            sender: 0,
            receiver: 0,
            sent: 0,
            received: 0,
            changed: now,
            senders: VecDeque::new(),
            receivers: VecDeque::new(),
        }
    }

    /// Returns the number of messages.
    pub fn count(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Returns whether there is room for a message.
    fn has_room(&self, message: &Message) -> bool {
        let bytes = self.bytes.saturating_add(message.bytes.len() as u64);
        bytes <= self.limit && self.count() < self.limit
    }

    /// Returns the place of the message that a filter stands for.
    fn find(&self, filter: Filter) -> Option<u64> {
        let mut accepted = self.messages.iter().filter(|(_, message)| filter.accepts(message.kind));
        let found = match filter {
            // Of equal ones, the first.
            Filter::UpTo(_) => accepted.min_by_key(|(_, message)| message.kind),
            _ => accepted.next(),
        };
        found.map(|(place, _)| *place)
    }

    /// Takes a message for a process.
    fn take(&mut self, place: u64, process: u32, now: u64) -> Option<Message> {
        let message = self.messages.remove(&place)?;
        self.bytes -= message.bytes.len() as u64;
        (self.receiver, self.received) = (process, now);
        Some(message)
    }

    /// Gives a process's message to the first thread that waits for such a one, or adds it. Names threads whose wait is
    /// over.
    fn put(&mut self, process: u32, now: u64, message: Message, mut finish: impl FnMut(u32, Result<Received, Errno>)) {
        (self.sender, self.sent) = (process, now);
        while let Some(index) = self.receivers.iter().position(|one| one.wanted.filter.accepts(message.kind)) {
            let Some(Receiver { thread, wanted }) = self.receivers.remove(index) else { break };
            if !wanted.takes(&message) {
                finish(thread, Err(Errno::E2BIG));
                continue;
            }
            (self.receiver, self.received) = (thread, now);
            return finish(thread, Ok(Received::Message(message)));
        }
        self.bytes += message.bytes.len() as u64;
        self.messages.insert(self.next, message);
        self.next += 1;
    }

    fn check(&self) -> Result<(), &'static str> {
        let bytes: usize = self.messages.values().map(|message| message.bytes.len()).sum();
        if bytes as u64 != self.bytes {
            return Err("bytes of messages are counted wrongly");
        }
        if self.receivers.iter().any(|receiver| self.find(receiver.wanted.filter).is_some()) {
            return Err("somebody waits for a message that is there");
        }
        if self.senders.iter().any(|sender| self.has_room(&sender.message)) {
            return Err("somebody waits for room that is there");
        }
        Ok(())
    }
}

/// All queues.
#[derive(Debug)]
pub struct Queues {
    all: Table<Queue>,
    waits: Waits<Received>,
}

impl Default for Queues {
    fn default() -> Queues {
        Queues { all: Table::new(Queues::MAX_COUNT), waits: Waits::new() }
    }
}

impl Queues {
    /// The most queues.
    pub const MAX_COUNT: usize = 32_000;
    /// The most bytes of a message.
    pub const MAX_MESSAGE: u64 = 8192;
    /// The most bytes of the messages in a queue, unless its owner wants others.
    pub const USUAL_LIMIT: u64 = 16_384;

    /// Returns the identifier of a queue, which is made if that is wanted.
    ///
    /// # Errors
    /// `ENOENT`, `EEXIST`, `EACCES`, `ENOSPC` if there are too many.
    pub fn get(&mut self, by: &By<'_>, key: i32, flags: u32) -> Result<i32, Errno> {
        if let Some(id) = self.all.find(by, key, flags, |_| Ok(()))? {
            return Ok(id);
        }
        self.all.check_count()?;
        Ok(self.all.add(by, key, flags, Queue::new(by.now)))
    }

    /// Sends a message, or keeps it for the thread.
    ///
    /// # Errors
    /// `EINVAL` if the queue is not there, `EACCES`, `EAGAIN` if there is no room and the thread does not wait.
    pub fn send(&mut self, by: &By<'_>, id: i32, message: Message, waits: bool) -> Result<Received, Errno> {
        let entry = self.all.get_mut(id)?;
        entry.permissions.check(&by.user, 0o222)?;
        let queue = &mut entry.value;
        if queue.has_room(&message) {
            queue.put(by.process, by.now, message, |thread, result| self.waits.finish(thread, result));
            return Ok(Received::Sent);
        }
        if !waits {
            return Err(Errno::EAGAIN);
        }
        queue.senders.push_back(Sender { thread: by.thread, process: by.process, message });
        self.waits.begin(by.thread, index_of(id));
        Ok(Received::Waits)
    }

    /// Receives a message, or keeps the request for the thread.
    ///
    /// # Errors
    /// `EINVAL` if the queue is not there, `EACCES`, `ENOMSG` if there is no such message and the thread does not wait,
    /// `E2BIG` if it is too long.
    pub fn receive(&mut self, by: &By<'_>, id: i32, wanted: Wanted) -> Result<Received, Errno> {
        let entry = self.all.get_mut(id)?;
        entry.permissions.check(&by.user, 0o444)?;
        let queue = &mut entry.value;
        let Some(place) = queue.find(wanted.filter) else {
            if !wanted.waits {
                return Err(Errno::ENOMSG);
            }
            queue.receivers.push_back(Receiver { thread: by.thread, wanted });
            self.waits.begin(by.thread, index_of(id));
            return Ok(Received::Waits);
        };
        if queue.messages.get(&place).is_some_and(|message| !wanted.takes(message)) {
            return Err(Errno::E2BIG);
        }
        let message = queue.take(place, by.process, by.now).ok_or(Errno::ENOMSG)?;
        self.advance(by, index_of(id));
        Ok(Received::Message(message))
    }

    /// Returns the message at a position in a queue, which stays there. One that is longer than so many bytes is not
    /// copied, even if it may be cut.
    ///
    /// # Errors
    /// `EINVAL` if the queue is not there, or the message is longer and may be cut; `E2BIG` if it is longer and may
    /// not; `EACCES`, `ENOMSG` if there is none at the position.
    pub fn copy(&self, by: &By<'_>, id: i32, position: i64, bytes: u64, cuts: bool) -> Result<&Message, Errno> {
        let entry = self.all.get(id)?;
        entry.permissions.check(&by.user, 0o444)?;
        let position = usize::try_from(position).map_err(|_| Errno::ENOMSG)?;
        let message = entry.value.messages.values().nth(position).ok_or(Errno::ENOMSG)?;
        match message.bytes.len() as u64 <= bytes {
            true => Ok(message),
            false if cuts => Err(Errno::EINVAL),
            false => Err(Errno::E2BIG),
        }
    }

    /// Sends the messages for which there is room now, in the order in which they came.
    fn advance(&mut self, by: &By<'_>, index: u32) {
        let Some(queue) = self.all.at(index).map(|entry| &mut entry.value) else { return };
        while let Some(first) = queue.senders.iter().position(|sender| queue.has_room(&sender.message)) {
            let Some(Sender { thread, process, message }) = queue.senders.remove(first) else { return };
            self.waits.finish(thread, Ok(Received::Sent));
            queue.put(process, by.now, message, |thread, result| self.waits.finish(thread, result));
        }
    }

    /// Returns whether a thread's message, or request for one, is kept.
    pub fn is_kept(&self, thread: u32) -> bool {
        self.waits.is_kept(thread)
    }

    /// Takes the result of what was kept for a thread, if it is over.
    pub fn take_result(&mut self, thread: u32) -> Option<Result<Received, Errno>> {
        self.waits.take_result(thread)
    }

    /// Takes a thread for which what was kept is over.
    pub fn take_woken(&mut self) -> Option<u32> {
        self.waits.take_woken()
    }

    /// Forgets what was kept for a thread that waits no longer.
    pub fn end_wait(&mut self, thread: u32) {
        if let Some(entry) = self.waits.end(thread).and_then(|index| self.all.at(index)) {
            entry.value.senders.retain(|sender| sender.thread != thread);
            entry.value.receivers.retain(|receiver| receiver.thread != thread);
        }
    }

    /// Removes a queue. The operations that wait for it fail with `EIDRM`.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EPERM` if it belongs to another.
    pub fn remove(&mut self, by: &By<'_>, id: i32) -> Result<(), Errno> {
        self.all.own(by, id)?;
        let Some(queue) = self.all.remove(index_of(id)) else { return Ok(()) };
        let receivers = queue.receivers.iter().map(|receiver| receiver.thread);
        for thread in receivers.chain(queue.senders.iter().map(|sender| sender.thread)) {
            self.waits.finish(thread, Err(Errno::EIDRM));
        }
        Ok(())
    }

    /// Gives a queue to somebody, and sets how many bytes its messages may have.
    ///
    /// # Errors
    /// `EINVAL` if it is not there or nobody has such a number, `EPERM` if it belongs to another, or only the
    /// super-user may set such a limit.
    pub fn give(&mut self, by: &By<'_>, id: i32, owner: &Owner, limit: u64) -> Result<(), Errno> {
        self.all.own(by, id)?;
        if limit > Self::USUAL_LIMIT && !by.user.may_raise_limits {
            return Err(Errno::EPERM);
        }
        let queue = self.all.give(by, id, owner)?;
        (queue.limit, queue.changed) = (limit, by.now);
        self.advance(by, index_of(id));
        Ok(())
    }

    /// Returns what is known of a queue, and what a call that asks for it returns.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EACCES`.
    pub fn look(&self, by: &By<'_>, id: i32, how: Found) -> Result<(&Entry<Queue>, u64), Errno> {
        self.all.look(by, id, how)
    }

    /// Returns the number of queues.
    pub fn count(&self) -> usize {
        self.all.count()
    }

    /// Returns the highest index of a queue; 0 if there is none.
    pub fn highest(&self) -> u64 {
        self.all.highest()
    }

    /// Returns all queues, by their indices.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<Queue>> {
        self.all.iter()
    }

    /// Returns the threads that wait, or for which what was kept is over and that do not know it.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.waits.threads()
    }

    /// Checks queues, and that threads and queues know each other.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        self.all.check()?;
        let mut kept = Vec::new();
        for entry in self.iter() {
            entry.value.check()?;
            let index = index_of(entry.id);
            kept.extend(entry.value.senders.iter().map(|sender| (sender.thread, index)));
            kept.extend(entry.value.receivers.iter().map(|receiver| (receiver.thread, index)));
        }
        kept.sort_unstable();
        if self.waits.kept().eq(kept) { Ok(()) } else { Err("a thread and its queue do not know each other") }
    }
}
