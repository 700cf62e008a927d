//! Requests and replies over a channel, in both directions.
//!
//! Each side may have up to 64 requests in flight; replies come in any order. A request is identified by its number:
//! the low six bits are its index in a table, the others change whenever the index is reused, so that a duplicate reply
//! is not taken for the reply to the next request. A reply has to name a request in flight and its operation, and a
//! request a free index; anything else closes the channel.
//!
//! # Freedom from deadlock
//!
//! Both sides may send as much as they like, so both may find their rings full. That is no deadlock as long as a side
//! that cannot send goes on receiving, with [`receive`](Calls::receive):
//!
//! 1. Receiving a message needs no room: it frees lines and changes the side's own control line, which can always be
//!    written. `receive` never waits, and sends nothing but the rest of an older message, if there is room for it.
//! 2. There is always room for what was received. A reply belongs to a request whose index is still reserved. No more
//!    requests than the limit are in flight, so a side that has not yet been able to reply stores at most that many.
//!    Events are handled at once, or dropped.
//! 3. So lines are received whatever else happens, which makes room, and a side that waits for room is woken. A message
//!    that is sent in parts is no exception: each part needs one line.
//!
//! Hence the two rules for users: after `Full`, call `receive`, or [`wait`](Calls::wait) and then `receive`, before
//! trying again; and never handle a request by waiting for a reply without calling `receive`.

use crate::error::{Broken, Refused, Unfit};
use crate::layout::{Kind, LONGEST, Message, Side};
use crate::memory::Memory;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sleep::{Idle, Notifier};

/// Maximum number of requests in flight in one direction.
pub const MOST: u32 = 64;

const INDEX_MASK: u16 = MOST as u16 - 1;

/// A request: of this side, to recognise its reply, or of the peer, to reply to it.
///
/// The word has the operation and above it the number, as in a header, so that both are compared at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request(u32);

impl Request {
    #[inline]
    fn new(id: u16, operation: u16) -> Request {
        Request(u32::from(id) << 16 | u32::from(operation))
    }

    #[inline]
    fn id(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns the index of the request: less than the limit, and unique among the requests in flight in this
    /// direction.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.id() & INDEX_MASK)
    }

    /// Returns the requested operation.
    #[inline]
    pub fn operation(self) -> u16 {
        self.0 as u16
    }
}

/// A message from the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incoming<'m> {
    /// A request, for which the peer expects a [`reply`](Calls::reply).
    Request(Request, &'m [u64]),
    /// The peer's reply to a request of this side.
    Reply(Request, &'m [u64]),
    /// An event: an operation, and words.
    Event(u16, &'m [u64]),
}

/// Table of the requests in flight in one direction.
struct Table {
    /// Bit set of the indices in use.
    used: u64,
    /// The current or last request with each index.
    requests: [Request; MOST as usize],
}

impl Table {
    fn new() -> Table {
        let request = |index| Request::new(index as u16, 0);
        Table { used: 0, requests: core::array::from_fn(request) }
    }

    #[inline]
    fn has(&self, request: Request) -> bool {
        self.used >> request.index() & 1 != 0 && self.requests[request.index()] == request
    }

    #[inline]
    fn add(&mut self, request: Request) {
        self.used |= 1 << request.index();
        self.requests[request.index()] = request;
    }

    #[inline]
    fn remove(&mut self, request: Request) {
        self.used &= !(1 << request.index());
    }
}

/// A side of a channel on which both sides make requests and reply.
pub struct Calls<M, B, const LINES: usize = LONGEST> {
    sender: Sender<M, B, LINES>,
    receiver: Receiver<M, B, LINES>,
    limit: u32,
    /// Requests of this side.
    asked: Table,
    /// Requests of the peer.
    owed: Table,
}

impl<M: Memory, B: Notifier + Clone, const LINES: usize> Calls<M, B, LINES> {
    /// Opens a channel as [`open`](crate::open) does, with at most `limit` requests in flight in each direction. Both
    /// sides must use the same limit.
    ///
    /// Errors: `Lines`, `Limit`.
    pub fn open(memory: &M, side: Side, doorbell: B, limit: u32) -> Result<Self, Unfit> {
        if !(1..=MOST).contains(&limit) {
            return Err(Unfit::Limit(limit));
        }
        let (sender, receiver) = crate::open(memory, side, doorbell)?;
        Ok(Calls { sender, receiver, limit, asked: Table::new(), owed: Table::new() })
    }
}

impl<M: Memory, B: Notifier, const LINES: usize> Calls<M, B, LINES> {
    /// Sends a request to the peer. Its reply will be an [`Incoming::Reply`] with the returned request.
    ///
    /// Errors: `TooMany`, `Full`, `TooLong`, `Broken`; then nothing was sent.
    #[inline]
    pub fn request(&mut self, operation: u16, words: &[u64]) -> Result<Request, Refused> {
        let index = self.asked.used.trailing_ones();
        if index >= self.limit {
            return Err(self.too_many());
        }
        let last = self.asked.requests[index as usize % MOST as usize].id();
        let request = Request::new(last.wrapping_add(MOST as u16), operation);
        self.send(Kind::Request, request, words)?;
        self.asked.add(request);
        Ok(request)
    }

    /// Replies to a request of the peer.
    ///
    /// Errors: `NotAsked` if it got a reply before; `Full`, `TooLong`, `Broken`. Then nothing was sent, and the reply
    /// can still be sent.
    #[inline]
    pub fn reply(&mut self, request: Request, words: &[u64]) -> Result<(), Refused> {
        if !self.owed.has(request) {
            return Err(Refused::NotAsked);
        }
        self.send(Kind::Reply, request, words)?;
        self.owed.remove(request);
        Ok(())
    }

    /// Sends an event, which has no reply. Errors: `Full`, `TooLong`, `Broken`; then nothing was sent.
    pub fn event(&mut self, operation: u16, words: &[u64]) -> Result<(), Refused> {
        self.send(Kind::Event, Request::new(0, operation), words)
    }

    #[inline]
    fn send(&mut self, kind: Kind, request: Request, words: &[u64]) -> Result<(), Refused> {
        let sent = self.sender.try_send(&Message { kind, operation: request.operation(), id: request.id(), words });
        if let Err(Refused::Broken(broken)) = sent {
            return Err(self.close(broken).into());
        }
        sent
    }

    #[cold]
    fn too_many(&self) -> Refused {
        self.receiver.broken().map_or(Refused::TooMany, Refused::Broken)
    }

    /// Returns the next message, if there is one.
    #[inline]
    pub fn receive(&mut self) -> Result<Option<Incoming<'_>>, Broken> {
        if self.sender.is_partial() {
            self.flush()?;
        }
        let (kind, head) = match self.receiver.fetch() {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(None),
            Err(broken) => return Err(self.close(broken)),
        };
        let request = Request(head.request());
        match kind {
            Kind::Request => {
                // An index beyond the limit counts as used.
                if self.owed.used >> request.index() & 1 != 0 || request.index() >= self.limit as usize {
                    return Err(self.close(Broken::Request(request.id())));
                }
                self.owed.add(request);
                Ok(Some(Incoming::Request(request, self.receiver.words(head))))
            }
            Kind::Reply => {
                if !self.asked.has(request) {
                    return Err(self.close(Broken::Unasked { id: request.id(), operation: request.operation() }));
                }
                self.asked.remove(request);
                Ok(Some(Incoming::Reply(request, self.receiver.words(head))))
            }
            Kind::Event => Ok(Some(Incoming::Event(request.operation(), self.receiver.words(head)))),
        }
    }

    #[cold]
    fn flush(&mut self) -> Result<(), Broken> {
        match self.sender.flush() {
            Err(Refused::Broken(broken)) => Err(self.close(broken)),
            _ => Ok(()),
        }
    }

    /// Waits until [`receive`](Self::receive) has something to do, or, if `for_capacity` is true, until a message could
    /// be sent: polls a few times, and then sleeps until the peer notifies this side. May also return without a reason.
    pub fn wait(&mut self, for_capacity: bool, idle: &mut impl Idle) -> Result<(), Broken> {
        for _ in 0..idle.polls() {
            if self.receiver.has_line() || self.makes_progress(for_capacity)? {
                return Ok(());
            }
            idle.pause();
        }
        let ready = match self.prepare(for_capacity) {
            Ok(ready) => ready,
            Err(broken) => return Err(self.close(broken)),
        };
        if !ready {
            idle.sleep();
        }
        self.awake();
        Ok(())
    }

    /// For users that wait for more than this channel: announces that this side sleeps from now on, and checks once
    /// more. Returns whether there is nothing to do, so that this side may sleep until its doorbell is notified; in
    /// either case it has to call [`awake`](Self::awake) afterwards.
    #[inline]
    pub fn prepare_sleep(&mut self) -> Result<bool, Broken> {
        match self.prepare(false) {
            Ok(ready) => Ok(!ready),
            Err(broken) => Err(self.close(broken)),
        }
    }

    /// As [`prepare_sleep`](Self::prepare_sleep), for a side that has also failed with `Full`: the doorbell is notified
    /// when there is room, too.
    #[inline(never)]
    pub fn prepare_sleep_for_capacity(&mut self) -> Result<bool, Broken> {
        match self.prepare(true) {
            Ok(ready) => Ok(!ready),
            Err(broken) => Err(self.close(broken)),
        }
    }

    /// Announces that this side does not sleep any more.
    pub fn awake(&mut self) {
        self.sender.awake();
        self.receiver.awake();
    }

    /// Announces that this side is about to sleep; returns whether there is something to do already.
    #[inline(always)]
    fn prepare(&mut self, for_capacity: bool) -> Result<bool, Broken> {
        let has_line = !self.receiver.prepare_sleep()?;
        let has_capacity = (for_capacity || self.sender.is_partial()) && !self.sender.prepare_wait()?;
        Ok(has_line || has_capacity)
    }

    /// Returns whether there is room for which the caller waits.
    fn makes_progress(&mut self, for_capacity: bool) -> Result<bool, Broken> {
        if !for_capacity && !self.sender.is_partial() {
            return Ok(false);
        }
        self.sender.has_capacity().map_err(|broken| self.close(broken))
    }

    /// Returns whether part of a message was not sent yet: a user with nothing more to do has to call
    /// [`receive`](Self::receive) until it was.
    pub fn is_partial(&self) -> bool {
        self.sender.is_partial()
    }

    /// Returns the number of requests of this side that wait for their replies.
    pub fn in_flight(&self) -> u32 {
        self.asked.used.count_ones()
    }

    /// Returns the number of requests of the peer without replies.
    pub fn owed(&self) -> u32 {
        self.owed.used.count_ones()
    }

    /// Closes the channel; returns why it is closed, which may be an older reason.
    #[cold]
    pub fn close(&mut self, why: Broken) -> Broken {
        let why = self.receiver.close(why);
        self.sender.close(why)
    }
}
