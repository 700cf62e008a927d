//! The receiving end of a ring.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::error::Broken;
use crate::layout::{ASLEEP, Half, Header, Kind, LONGEST, Message, PAYLOAD, Position, Side, TAKEN, WAITS};
use crate::memory::{Memory, WORDS, Word};
use crate::sleep::{Idle, Notifier, Own, Peer};

/// Receiver of messages of at most `LINES` lines.
pub struct Receiver<M, B, const LINES: usize = LONGEST> {
    own: Half<M>,
    peer: Half<M>,
    position: Position,
    /// Number of lines that the peer was told were received since the beginning.
    published: u64,
    /// Number of further lines to receive before it is told again.
    quiet: usize,
    /// Initial value of that number.
    batch: usize,
    waits: Peer<B, WAITS>,
    asleep: Own<ASLEEP>,
    /// The message being reassembled: its first header, the number of lines received, the number of words missing.
    /// Nothing is missing of a received message; something is if the channel is closed.
    head: Header,
    here: usize,
    missing: usize,
    buffer: [[u64; PAYLOAD]; LINES],
    broken: Option<Broken>,
}

impl<M: Memory, B: Notifier, const LINES: usize> Receiver<M, B, LINES> {
    pub(crate) fn new(memory: &M, side: Side, doorbell: B) -> Self {
        let lines = memory.lines() / 2 - 1;
        // When the sender has no room, the receiver has published at least this many lines, or still has lines to
        // receive.
        let batch = (lines / 2).max(1);
        Receiver {
            own: Half::new(memory.clone(), side),
            peer: Half::new(memory.clone(), side.other()),
            position: Position::new(lines),
            published: 0,
            quiet: batch,
            batch,
            waits: Peer::new(doorbell),
            asleep: Own::new(),
            head: Header(0),
            here: 0,
            missing: 0,
            buffer: [[0; PAYLOAD]; LINES],
            broken: None,
        }
    }

    /// Returns the next message, if all of it has arrived. Examines no more lines than the longest message has.
    #[inline]
    pub fn try_receive(&mut self) -> Result<Option<Message<'_>>, Broken> {
        let Some((kind, head)) = self.fetch()? else { return Ok(None) };
        Ok(Some(Message { kind, operation: head.operation(), id: head.id(), words: self.words(head) }))
    }

    /// As [`try_receive`](Self::try_receive); [`words`](Self::words) returns the message's words.
    #[inline(always)]
    pub(crate) fn fetch(&mut self) -> Result<Option<(Kind, Header)>, Broken> {
        let line = self.peer.line(self.position.line);
        let header = look(line);
        if self.missing == 0 {
            if header.lap() == self.position.lap
                && header.length() <= PAYLOAD
                && let Ok(kind) = header.kind()
            {
                copy(line, &mut self.buffer[0]);
                self.go_on();
                return Ok(Some((kind, header)));
            }
            if header.lap() == self.position.lap.wrapping_sub(1) {
                return Ok(None);
            }
        }
        self.fetch_slowly(header)
    }

    /// Handles the case in which the next line is not a whole message, with this header, which was just read, or
    /// without one.
    #[inline(never)]
    fn fetch_slowly(&mut self, mut header: Header) -> Result<Option<(Kind, Header)>, Broken> {
        loop {
            if let Some(broken) = self.broken {
                return Err(broken);
            }
            if header.lap() == self.position.lap.wrapping_sub(1) {
                return Ok(None);
            }
            if header.lap() != self.position.lap {
                return Err(self.close(Broken::Lap { due: self.position.lap, found: header.lap() }));
            }
            self.take(header)?;
            if let (Ok(kind), 0) = (self.head.kind(), self.missing) {
                return Ok(Some((kind, self.head)));
            }
            header = look(self.peer.line(self.position.line));
        }
    }

    /// Returns the words of the message that was fetched with this header.
    #[inline]
    pub(crate) fn words(&self, head: Header) -> &[u64] {
        &self.buffer.as_flattened()[..head.length()]
    }

    /// Returns why the channel is closed, if it is.
    pub(crate) fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Receives the line with this header, which belongs to a message of several lines or to none.
    fn take(&mut self, header: Header) -> Result<(), Broken> {
        if self.missing == 0 {
            if let Err(kind) = header.kind() {
                return Err(self.close(Broken::Kind(kind)));
            }
            if header.length() > LINES * PAYLOAD {
                return Err(self.close(Broken::Length(header.length() as u16)));
            }
            (self.head, self.here, self.missing) = (header, 0, header.length());
        } else if header.0 != Header::rest(self.missing).with_lap(self.position.lap).0 {
            return Err(self.close(Broken::Rest(header.0)));
        }
        // The index in the buffer is valid, because the length was checked.
        copy(self.peer.line(self.position.line), &mut self.buffer[self.here]);
        self.go_on();
        self.here += 1;
        self.missing = self.missing.saturating_sub(PAYLOAD);
        Ok(())
    }

    /// Advances past the line that was copied.
    #[inline(always)]
    fn go_on(&mut self) {
        self.position.advance();
        self.quiet -= 1;
        if self.quiet == 0 {
            self.give_back();
        }
    }

    /// Publishes the room to the sender.
    #[cold]
    fn give_back(&mut self) {
        self.publish();
        self.waits.notify_if_asleep(&self.peer);
    }

    #[inline]
    fn publish(&mut self) {
        self.published = self.published.wrapping_add((self.batch - self.quiet) as u64);
        self.quiet = self.batch;
        // Release: the lines were read before this. Pairs with the acquire in `Ring::refresh`.
        self.own.control(TAKEN).store(self.published, Release);
    }

    /// Returns whether there is something to receive: a line, or a reason to close the channel.
    #[inline]
    pub fn has_line(&self) -> bool {
        // Relaxed: the result only leads to a later load of the same header, with acquire.
        let header = Header(self.peer.line(self.position.line)[0].load(Relaxed));
        header.lap() != self.position.lap.wrapping_sub(1)
    }

    /// Announces that this side is about to sleep until a line arrives. If this returns true, it may sleep: the peer
    /// notifies it after writing a line. Otherwise there is one already. In either case the caller has to call
    /// [`awake`](Self::awake) afterwards.
    #[inline]
    pub fn prepare_sleep(&mut self) -> Result<bool, Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let has_published = self.quiet < self.batch;
        if has_published {
            self.publish();
        }
        self.asleep.announce_sleep(&self.own);
        if has_published {
            // The fence of the sleep comes after both stores.
            self.waits.notify_if_seen_asleep(&self.peer);
        }
        let has_line = self.has_line();
        if has_line {
            self.awake();
        }
        Ok(!has_line)
    }

    /// Announces that this side does not sleep any more.
    #[inline]
    pub fn awake(&mut self) {
        self.asleep.announce_wake(&self.own);
    }

    /// Waits until there is something to receive: polls a few times, and then sleeps.
    pub fn wait(&mut self, idle: &mut impl Idle) -> Result<(), Broken> {
        for _ in 0..idle.polls() {
            if self.has_line() {
                return Ok(());
            }
            idle.pause();
        }
        while self.prepare_sleep()? {
            idle.sleep();
            self.awake();
        }
        Ok(())
    }

    /// Closes this end; returns why it is closed, which may be an older reason.
    #[cold]
    pub fn close(&mut self, why: Broken) -> Broken {
        // A line that arrives now does not complete a message.
        self.missing = usize::MAX;
        *self.broken.get_or_insert(why)
    }
}

/// Returns the header of a line.
#[inline(always)]
fn look<W: Word>(line: &[W; WORDS]) -> Header {
    // Acquire: the words written before the header are seen too. Pairs with the release in `Ring::put`.
    Header(line[0].load(Acquire))
}

/// Copies the words of a line that has arrived.
#[inline(always)]
fn copy<W: Word>(line: &[W; WORDS], words: &mut [u64; PAYLOAD]) {
    for (word, shared) in words.iter_mut().zip(&line[1..]) {
        // Relaxed: the acquire of the header puts it after the header, the release in `Receiver::tell` before the
        // sender's next use of the line. A word of a hostile peer may be anything, but it is read once.
        *word = shared.load(Relaxed);
    }
}
