//! The end of a ring that receives.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::error::Broken;
use crate::layout::{ASLEEP, Half, Header, Kind, LONGEST, Message, PAYLOAD, Place, Side, TAKEN, WAITS};
use crate::memory::{Memory, Word};
use crate::sleep::{Bell, Idle, Own, Peer};

/// Receives messages of at most `LINES` lines.
pub struct Receiver<M, B, const LINES: usize = LONGEST> {
    own: Half<M>,
    peer: Half<M>,
    place: Place,
    /// Lines taken in since the beginning.
    taken: u64,
    /// How many of these the peer was not told of.
    kept: usize,
    /// As soon as there are so many, it is told.
    batch: usize,
    waits: Peer<B>,
    asleep: Own,
    /// The message that is being put together: its first header and kind, how many lines are here, how many words are not.
    head: Header,
    kind: Kind,
    here: usize,
    missing: usize,
    buffer: [[u64; PAYLOAD]; LINES],
    broken: Option<Broken>,
}

impl<M: Memory, B: Bell, const LINES: usize> Receiver<M, B, LINES> {
    pub(crate) fn new(memory: &M, side: Side, bell: B) -> Self {
        let lines = memory.lines() / 2 - 1;
        Receiver {
            own: Half::new(memory.clone(), side),
            peer: Half::new(memory.clone(), side.other()),
            place: Place::new(lines),
            taken: 0,
            kept: 0,
            // When the sender has no room, the receiver has kept at least this many back or still has lines to take in.
            batch: (lines / 2).max(1),
            waits: Peer::new(WAITS, bell),
            asleep: Own::new(ASLEEP),
            head: Header(0),
            kind: Kind::Event,
            here: 0,
            missing: 0,
            buffer: [[0; PAYLOAD]; LINES],
            broken: None,
        }
    }

    /// The next message, if all of it has arrived. Looks at no more lines than the longest message has.
    #[inline]
    pub fn try_receive(&mut self) -> Result<Option<Message<'_>>, Broken> {
        let Some(head) = self.fetch()? else { return Ok(None) };
        let words = self.words();
        Ok(Some(Message { kind: self.kind, operation: head.operation(), id: head.id(), words }))
    }

    /// The same, of which [`kind`](Self::kind) and [`words`](Self::words) answer the rest.
    #[inline]
    pub(crate) fn fetch(&mut self) -> Result<Option<Header>, Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        loop {
            let Some(header) = self.look()? else { return Ok(None) };
            self.take(header)?;
            if self.missing == 0 {
                return Ok(Some(self.head));
            }
        }
    }

    /// What the message is that was fetched.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Its words.
    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        &self.buffer.as_flattened()[..self.head.length()]
    }

    /// Why the channel is closed, if it is.
    pub(crate) fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// The header of the next line, if the line has arrived. It is the only read of it.
    #[inline(always)]
    fn look(&mut self) -> Result<Option<Header>, Broken> {
        // Acquire: the words that were written before the header are seen too. Pairs with the release in `Ring::put`.
        let header = Header(self.peer.line(self.place.line)[0].load(Acquire));
        match header.lap().wrapping_sub(self.place.lap) {
            0 => Ok(Some(header)),
            u16::MAX => Ok(None),
            _ => Err(self.close(Broken::Lap { due: self.place.lap, found: header.lap() })),
        }
    }

    /// Takes in the line that has this header.
    #[inline(always)]
    fn take(&mut self, header: Header) -> Result<(), Broken> {
        if self.missing == 0 {
            self.kind = match header.kind() {
                Ok(kind) => kind,
                Err(kind) => return Err(self.close(Broken::Kind(kind))),
            };
            if header.length() > LINES * PAYLOAD {
                return Err(self.close(Broken::Length(header.length() as u16)));
            }
            self.head = header;
            self.here = 0;
            self.missing = header.length();
        } else if header.0 != Header::rest(self.missing).with_lap(self.place.lap).0 {
            return Err(self.close(Broken::Rest(header.0)));
        }
        // In range, because the length was.
        let words = &mut self.buffer[self.here];
        for (word, shared) in words.iter_mut().zip(&self.peer.line(self.place.line)[1..]) {
            // Relaxed: the acquire of the header puts it after the header, the release in `give_back` before the sender's next
            // use of the line. A word of a hostile peer may be anything, but it is read once.
            *word = shared.load(Relaxed);
        }
        self.here += 1;
        self.missing = self.missing.saturating_sub(PAYLOAD);
        self.place.advance();
        self.kept += 1;
        if self.kept >= self.batch {
            self.give_back();
        }
        Ok(())
    }

    /// Tells the sender of the room that there is.
    #[cold]
    fn give_back(&mut self) {
        self.taken = self.taken.wrapping_add(self.kept as u64);
        self.kept = 0;
        // Release: the lines were read before this. Pairs with the acquire in `Ring::refresh`.
        self.own.control(TAKEN).store(self.taken, Release);
        self.waits.ring_if_asleep(&self.peer);
    }

    /// Whether there is something to receive: a line, or a reason to close the channel.
    #[inline]
    pub fn has_line(&self) -> bool {
        // Relaxed: nothing is read because of it but, later and with acquire, the same header.
        let header = Header(self.peer.line(self.place.line)[0].load(Relaxed));
        header.lap() != self.place.lap.wrapping_sub(1)
    }

    /// Says that this side is about to sleep until a line arrives. If the answer is true, it may: the peer rings when it has
    /// written one. Otherwise there is one already. After either, whoever slept calls [`awake`](Self::awake).
    pub fn prepare_sleep(&mut self) -> Result<bool, Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        if self.kept > 0 {
            self.give_back();
        }
        self.asleep.begin(&self.own);
        let has_line = self.has_line();
        if has_line {
            self.awake();
        }
        Ok(!has_line)
    }

    /// Says that this side does not sleep any more.
    #[inline]
    pub fn awake(&mut self) {
        self.asleep.end(&self.own);
    }

    /// Returns when there is something to receive: looks a few times, and then sleeps.
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

    /// Closes this end; answers why it is closed, which may be an older reason.
    #[cold]
    pub fn close(&mut self, why: Broken) -> Broken {
        *self.broken.get_or_insert(why)
    }
}
