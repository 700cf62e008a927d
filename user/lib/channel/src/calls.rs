//! Requests and answers over a channel, both ways.
//!
//! Each side may have up to 64 requests in flight; answers come in whatever order the other side has them. A request is
//! known by its number: the low six bits are its place in a table, the others change whenever the place is used again,
//! so that an answer that comes twice does not pass for the answer to the next request. An answer has to name a request
//! in flight and its operation, and a request a place that is free; anything else closes the channel.
//!
//! # Nobody waits for ever
//!
//! Both sides may send as much as they like, so both may find their rings full. That is no deadlock as long as whoever
//! cannot send goes on taking in, by [`receive`](Calls::receive):
//!
//! 1. To take a message in needs no room: it frees lines and changes the own control line, which can always be written.
//!    `receive` never waits and sends nothing but what is left of an older message, if there is room for it.
//! 2. There is always a place for what was taken in. An answer belongs to a request whose place in the table is still
//!    kept. Of requests no more than the limit are in flight, so whoever has not yet been able to answer keeps at most
//!    so many. Events are dealt with at once, or dropped.
//! 3. So lines are taken in whatever else goes on, room is made, and who waits for room is woken. A message that is
//!    sent in parts is no exception: each part needs one line.
//!
//! Hence the two rules for users: who is refused with `Full` calls `receive`, or [`wait`](Calls::wait) and then
//! `receive`, before it tries again; and to deal with a request must not mean to wait for an answer without calling
//! `receive`.

use crate::error::{Broken, Refused, Unfit};
use crate::layout::{Kind, LONGEST, Message, Side};
use crate::memory::Memory;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sleep::{Bell, Idle};

/// The largest number of requests in flight in one direction.
pub const MOST: u32 = 64;

const PLACE: u16 = MOST as u16 - 1;

/// A request: of this side, to know its answer by, or of the peer, to answer it.
///
/// The operation and above it the number, as in a header, so that two are compared at once.
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

    /// A number less than the limit, which no other request in flight in this direction has.
    #[inline]
    pub fn place(self) -> usize {
        usize::from(self.id() & PLACE)
    }

    /// What is asked for.
    #[inline]
    pub fn operation(self) -> u16 {
        self.0 as u16
    }
}

/// What comes from the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incoming<'m> {
    /// The peer asks, and waits for [`answer`](Calls::answer).
    Request(Request, &'m [u64]),
    /// The peer has answered a request of this side.
    Answer(Request, &'m [u64]),
    /// The peer says something: an operation, and words.
    Event(u16, &'m [u64]),
}

/// The requests in flight in one direction.
struct Table {
    /// A bit for each place that is used.
    used: u64,
    /// Who uses the place, or used it last.
    requests: [Request; MOST as usize],
}

impl Table {
    fn new() -> Table {
        let request = |place| Request::new(place as u16, 0);
        Table { used: 0, requests: core::array::from_fn(request) }
    }

    #[inline]
    fn has(&self, request: Request) -> bool {
        self.used >> request.place() & 1 != 0 && self.requests[request.place()] == request
    }

    #[inline]
    fn add(&mut self, request: Request) {
        self.used |= 1 << request.place();
        self.requests[request.place()] = request;
    }

    #[inline]
    fn remove(&mut self, request: Request) {
        self.used &= !(1 << request.place());
    }
}

/// A side of a channel on which both sides ask and answer.
pub struct Calls<M, B, const LINES: usize = LONGEST> {
    sender: Sender<M, B, LINES>,
    receiver: Receiver<M, B, LINES>,
    limit: u32,
    /// Requests of this side.
    asked: Table,
    /// Requests of the peer.
    owed: Table,
}

impl<M: Memory, B: Bell + Clone, const LINES: usize> Calls<M, B, LINES> {
    /// Opens a channel as [`open`](crate::open) does, with at most `limit` requests in flight in each direction. Both
    /// sides use the same limit.
    ///
    /// Errors: `Lines`, `Limit`.
    pub fn open(memory: &M, side: Side, bell: B, limit: u32) -> Result<Self, Unfit> {
        if !(1..=MOST).contains(&limit) {
            return Err(Unfit::Limit(limit));
        }
        let (sender, receiver) = crate::open(memory, side, bell)?;
        Ok(Calls { sender, receiver, limit, asked: Table::new(), owed: Table::new() })
    }
}

impl<M: Memory, B: Bell, const LINES: usize> Calls<M, B, LINES> {
    /// Asks the peer. Its answer will be [`Incoming::Answer`] with the request that is returned.
    ///
    /// Errors: `TooMany`, `Full`, `TooLong`, `Broken`; then nothing was sent.
    #[inline]
    pub fn request(&mut self, operation: u16, words: &[u64]) -> Result<Request, Refused> {
        let place = self.asked.used.trailing_ones();
        if place >= self.limit {
            return Err(self.too_many());
        }
        let last = self.asked.requests[place as usize % MOST as usize].id();
        let request = Request::new(last.wrapping_add(MOST as u16), operation);
        self.send(Kind::Request, request, words)?;
        self.asked.add(request);
        Ok(request)
    }

    /// Answers a request of the peer.
    ///
    /// Errors: `NotAsked` if it was answered before; `Full`, `TooLong`, `Broken`. Then nothing was sent, and it can
    /// still be answered.
    #[inline]
    pub fn answer(&mut self, request: Request, words: &[u64]) -> Result<(), Refused> {
        if !self.owed.has(request) {
            return Err(Refused::NotAsked);
        }
        self.send(Kind::Answer, request, words)?;
        self.owed.remove(request);
        Ok(())
    }

    /// Says something that has no answer. Errors: `Full`, `TooLong`, `Broken`; then nothing was sent.
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

    /// The next message, if there is one.
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
                // A place beyond the limit counts as used.
                if self.owed.used >> request.place() & 1 != 0 || request.place() >= self.limit as usize {
                    return Err(self.close(Broken::Request(request.id())));
                }
                self.owed.add(request);
                Ok(Some(Incoming::Request(request, self.receiver.words(head))))
            }
            Kind::Answer => {
                if !self.asked.has(request) {
                    return Err(self.close(Broken::Unasked { id: request.id(), operation: request.operation() }));
                }
                self.asked.remove(request);
                Ok(Some(Incoming::Answer(request, self.receiver.words(head))))
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

    /// Returns when [`receive`](Self::receive) has something to do, or, if `room` is true, when a message could be
    /// sent: looks a few times, and then sleeps until the peer rings. It may also return without a reason.
    pub fn wait(&mut self, room: bool, idle: &mut impl Idle) -> Result<(), Broken> {
        for _ in 0..idle.polls() {
            if self.receiver.has_line() || self.makes_progress(room)? {
                return Ok(());
            }
            idle.pause();
        }
        let ready = match self.prepare(room) {
            Ok(ready) => ready,
            Err(broken) => return Err(self.close(broken)),
        };
        if !ready {
            idle.sleep();
        }
        self.awake();
        Ok(())
    }

    /// For whoever waits for more than this channel: says that this side sleeps from now on, and looks once more.
    /// Answers whether there is nothing to do, and it may sleep until the bell rings; whatever it does, it calls
    /// [`awake`](Self::awake) then.
    #[inline]
    pub fn prepare_sleep(&mut self) -> Result<bool, Broken> {
        match self.prepare(false) {
            Ok(ready) => Ok(!ready),
            Err(broken) => Err(self.close(broken)),
        }
    }

    /// The same for whoever has also been refused with `Full`: the bell rings when there is room, too.
    #[inline(never)]
    pub fn prepare_sleep_for_room(&mut self) -> Result<bool, Broken> {
        match self.prepare(true) {
            Ok(ready) => Ok(!ready),
            Err(broken) => Err(self.close(broken)),
        }
    }

    /// This side does not sleep any more.
    pub fn awake(&mut self) {
        self.sender.awake();
        self.receiver.awake();
    }

    /// Says that this side is about to sleep; answers whether there is something to do already.
    #[inline(always)]
    fn prepare(&mut self, room: bool) -> Result<bool, Broken> {
        let has_line = !self.receiver.prepare_sleep()?;
        let has_room = (room || self.sender.is_partial()) && !self.sender.prepare_wait()?;
        Ok(has_line || has_room)
    }

    /// Whether there is room that somebody waits for.
    fn makes_progress(&mut self, room: bool) -> Result<bool, Broken> {
        if !room && !self.sender.is_partial() {
            return Ok(false);
        }
        self.sender.has_room().map_err(|broken| self.close(broken))
    }

    /// Whether part of a message was not sent yet: whoever has nothing more to do calls [`receive`](Self::receive)
    /// until it was.
    pub fn is_partial(&self) -> bool {
        self.sender.is_partial()
    }

    /// How many requests of this side wait for their answers.
    pub fn in_flight(&self) -> u32 {
        self.asked.used.count_ones()
    }

    /// How many requests of the peer were not answered.
    pub fn unanswered(&self) -> u32 {
        self.owed.used.count_ones()
    }

    /// Closes the channel; answers why it is closed, which may be an older reason.
    #[cold]
    pub fn close(&mut self, why: Broken) -> Broken {
        let why = self.receiver.close(why);
        self.sender.close(why)
    }
}
