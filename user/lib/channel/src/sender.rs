//! The sending end of a ring.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::error::{Broken, Refused};
use crate::layout::{ASLEEP, Half, Header, LONGEST, Message, PAYLOAD, Position, Side, TAKEN, WAITS};
use crate::memory::{Memory, Word};
use crate::sleep::{Idle, Notifier, Own, Peer};

/// Sender of messages of at most `LINES` lines.
pub struct Sender<M, B, const LINES: usize = LONGEST> {
    ring: Ring<M>,
    asleep: Peer<B, ASLEEP>,
    waits: Own<WAITS>,
    /// The unsent words of the last message: `unsent` of them.
    rest: [[u64; PAYLOAD]; LINES],
    unsent: Range<usize>,
    broken: Option<Broken>,
}

/// The lines, and the known state of them.
struct Ring<M> {
    own: Half<M>,
    peer: Half<M>,
    position: Position,
    /// Number of lines that may be written without checking. 0 if the channel is broken, and 0 between calls while part
    /// of a message is unsent: so a message with room for its line needs no other check.
    free: usize,
    /// Number of lines that the peer is known to have received since the beginning. All other lines except those with
    /// room are outstanding.
    taken: u64,
}

impl<M: Memory> Ring<M> {
    /// Writes the next line. There must be room.
    #[inline(always)]
    fn put(&mut self, header: Header, words: &[u64]) {
        let line = self.own.line(self.position.line);
        // Relaxed: the header's release orders the words before the header. They come after the peer's last read of the
        // line, because the peer published the room after that read, and `refresh` read it with acquire.
        if let Ok(words) = <&[u64; PAYLOAD]>::try_from(words) {
            // The commonest length, without a test at each word.
            line[1..].iter().zip(words).for_each(|(word, value)| word.store(*value, Relaxed));
        } else {
            line[1..].iter().zip(words).for_each(|(word, value)| word.store(*value, Relaxed));
        }
        // Release: a reader that sees the header sees the words. Pairs with the acquire in `receiver::look`.
        line[0].store(header.with_lap(self.position.lap).0, Release);
        self.position.advance();
        self.free -= 1;
    }

    /// Writes lines as long as there is room; returns for how many words there was.
    fn put_rest(&mut self, words: &[u64]) -> usize {
        let mut done = 0;
        while done < words.len() && self.free > 0 {
            let left = &words[done..];
            let part = &left[..left.len().min(PAYLOAD)];
            self.put(Header::rest(left.len()), part);
            done += part.len();
        }
        done
    }

    /// Checks how much room the peer has made.
    fn refresh(&mut self) -> Result<(), Broken> {
        // Acquire: the peer read the lines that it returns before it published them, so it cannot read what is written
        // to them from now on. Pairs with the release in `Receiver::tell`.
        let taken = self.peer.control(TAKEN).load(Acquire);
        let outstanding = (self.position.lines - self.free) as u64;
        let newly = taken.wrapping_sub(self.taken);
        if newly > outstanding {
            return Err(Broken::Credits(taken));
        }
        self.taken = taken;
        self.free += newly as usize;
        Ok(())
    }
}

impl<M: Memory, B: Notifier, const LINES: usize> Sender<M, B, LINES> {
    pub(crate) fn new(memory: &M, side: Side, doorbell: B) -> Self {
        const { assert!(LINES >= 1 && LINES * PAYLOAD < 1 << 12, "a message's length has 12 bits") };
        let lines = memory.lines() / 2 - 1;
        let ring = Ring {
            own: Half::new(memory.clone(), side),
            peer: Half::new(memory.clone(), side.other()),
            position: Position::new(lines),
            free: lines,
            taken: 0,
        };
        Sender {
            ring,
            asleep: Peer::new(doorbell),
            waits: Own::new(),
            rest: [[0; PAYLOAD]; LINES],
            unsent: 0..0,
            broken: None,
        }
    }

    /// Sends a message, and notifies the peer if it sleeps. The part of a message of several lines that has no room in
    /// the ring stays with the sender until [`flush`](Self::flush) or the next message.
    ///
    /// Errors: `Full` if there is no room, or not for all of the message before; `TooLong`; `Broken`. Then nothing was
    /// sent.
    #[inline(always)]
    pub fn try_send(&mut self, message: &Message<'_>) -> Result<(), Refused> {
        if self.ring.free == 0 || message.words.len() > PAYLOAD {
            return self.send_slowly(message);
        }
        self.ring.put(Header::first(message), message.words);
        self.asleep.notify_if_asleep(&self.ring.peer);
        Ok(())
    }

    #[cold]
    fn send_slowly(&mut self, message: &Message<'_>) -> Result<(), Refused> {
        if message.words.len() > LINES * PAYLOAD {
            return Err(Refused::TooLong(message.words.len()));
        }
        self.flush()?;
        if self.ring.free == 0 {
            return Err(Refused::Full);
        }
        let (first, rest) = message.words.split_at(message.words.len().min(PAYLOAD));
        self.ring.put(Header::first(message), first);
        let left = &rest[self.ring.put_rest(rest)..];
        self.rest.as_flattened_mut()[..left.len()].copy_from_slice(left);
        self.unsent = 0..left.len();
        self.asleep.notify_if_asleep(&self.ring.peer);
        Ok(())
    }

    /// Checks for room, and sends the unsent part of the last message.
    ///
    /// Errors: `Full` if a part is still unsent; `Broken`.
    pub fn flush(&mut self) -> Result<(), Refused> {
        if let Some(broken) = self.broken {
            return Err(broken.into());
        }
        if let Err(broken) = self.ring.refresh() {
            return Err(self.close(broken).into());
        }
        if self.unsent.is_empty() {
            return Ok(());
        }
        let done = self.ring.put_rest(&self.rest.as_flattened()[self.unsent.clone()]);
        self.unsent.start += done;
        if done > 0 {
            self.asleep.notify_if_asleep(&self.ring.peer);
        }
        if self.unsent.is_empty() { Ok(()) } else { Err(Refused::Full) }
    }

    /// Returns whether part of the last message is unsent. Then a side that goes to sleep should sleep for room too.
    #[inline]
    pub fn is_partial(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Returns whether another message has room, after the unsent part of the last one.
    pub fn has_capacity(&mut self) -> Result<bool, Broken> {
        if self.ring.free == 0 {
            match self.flush() {
                Err(Refused::Broken(broken)) => return Err(broken),
                // An unsent part without room leaves no room for a message either.
                _ => return Ok(self.ring.free > 0),
            }
        }
        Ok(true)
    }

    /// Announces that this side is about to sleep until there is room. If this returns true, it may sleep: the peer
    /// notifies it after making room. Otherwise there is room already. In either case the caller has to call
    /// [`awake`](Self::awake) afterwards.
    pub fn prepare_wait(&mut self) -> Result<bool, Broken> {
        self.waits.announce_sleep(&self.ring.own);
        let has_capacity = self.has_capacity();
        if has_capacity != Ok(false) {
            self.awake();
        }
        has_capacity.map(|has_capacity| !has_capacity)
    }

    /// Announces that this side does not sleep any more.
    #[inline]
    pub fn awake(&mut self) {
        self.waits.announce_wake(&self.ring.own);
    }

    /// Waits until there is room: polls a few times, and then sleeps. The unsent part of the last message is sent
    /// first.
    pub fn wait(&mut self, idle: &mut impl Idle) -> Result<(), Broken> {
        for _ in 0..idle.polls() {
            if self.has_capacity()? {
                return Ok(());
            }
            idle.pause();
        }
        while self.prepare_wait()? {
            idle.sleep();
            self.awake();
        }
        Ok(())
    }

    /// Closes this end; returns why it is closed, which may be an older reason.
    #[cold]
    pub fn close(&mut self, why: Broken) -> Broken {
        self.ring.free = 0;
        *self.broken.get_or_insert(why)
    }
}
