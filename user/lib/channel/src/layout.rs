//! What lies where in the frame, and what the words of a line mean.
//!
//! ```text
//!   half of the first side                 half of the second side
//!   ┌─────────────────────────────┐        ┌─────────────────────────────┐
//!   │ control: taken·asleep·waits │        │ control: taken·asleep·waits │
//!   ├─────────────────────────────┤        ├─────────────────────────────┤
//!   │ lines to the second side    │        │ lines to the first side     │
//!   │ …                           │        │ …                           │
//!   └─────────────────────────────┘        └─────────────────────────────┘
//!
//!   a line:    header │ 7 words of the message
//!   a header:  0      16       28     32          48    64
//!              │ lap  │ length │ kind │ operation │ id  │
//! ```
//! A half is written by its side alone and never read by it, so each line has one writer and one reader. (Where a half
//! has a page or more, the other side could be given it read-only.)
//!
//! *Lap* counts how often the writer has been through its lines, from 1. So a reader that knows which line is next
//! needs no index of the writer's: the line has arrived when its lap is the reader's, has not when it is the one
//! before, and anything else is a mistake. A frame of zeros is one in which lap 0 is complete: nothing has to be
//! initialised, and neither side has to wait for the other to do so.

use crate::memory::{Memory, WORDS};

/// Words of a message in one line.
pub const PAYLOAD: usize = WORDS - 1;
/// Lines that the longest message has by default: 525 words, or 4 KiB and 13 words.
pub const LONGEST: usize = 75;

/// Words of the control line. How many lines this side has taken in since the channel was opened.
pub(crate) const TAKEN: usize = 0;
/// Odd while this side sleeps until a line arrives; another number for each sleep.
pub(crate) const ASLEEP: usize = 1;
/// Odd while this side sleeps until it can send; another number for each sleep.
pub(crate) const WAITS: usize = 2;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The one that writes to the first half of the frame.
    First,
    /// The other one.
    Second,
}

impl Side {
    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }
}

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Asks for an answer.
    Request,
    /// Is one.
    Answer,
    /// Neither.
    Event,
}

const REST: u64 = 4;

impl Kind {
    #[inline]
    fn number(self) -> u64 {
        match self {
            Kind::Request => 1,
            Kind::Answer => 2,
            Kind::Event => 3,
        }
    }
}

/// A message, or what goes around in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'m> {
    /// What it is.
    pub kind: Kind,
    /// What is asked for; the channel passes it on.
    pub operation: u16,
    /// Which request; the channel passes it on.
    pub id: u16,
    /// What it says.
    pub words: &'m [u64],
}

/// The first word of a line.
#[derive(Clone, Copy)]
pub(crate) struct Header(pub u64);

impl Header {
    /// Of a message's first line, but for the lap. The length was checked.
    #[inline]
    pub fn first(message: &Message<'_>) -> Header {
        let (operation, id) = (u64::from(message.operation), u64::from(message.id));
        Header((message.words.len() as u64) << 16 | message.kind.number() << 28 | operation << 32 | id << 48)
    }

    /// Of a line with which a message continues that has so many words left, but for the lap.
    pub fn rest(length: usize) -> Header {
        Header((length as u64) << 16 | REST << 28)
    }

    #[inline]
    pub fn with_lap(self, lap: u16) -> Header {
        Header(self.0 | u64::from(lap))
    }

    #[inline]
    pub fn lap(self) -> u16 {
        self.0 as u16
    }

    #[inline]
    pub fn length(self) -> usize {
        (self.0 >> 16) as usize & 0xfff
    }

    /// The kind, if a message can begin with it.
    #[inline(always)]
    pub fn kind(self) -> Result<Kind, u8> {
        match (self.0 >> 28) as u8 & 15 {
            1 => Ok(Kind::Request),
            2 => Ok(Kind::Answer),
            3 => Ok(Kind::Event),
            other => Err(other),
        }
    }

    #[inline]
    pub fn operation(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Operation and number.
    #[inline]
    pub fn request(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub fn id(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// The lines that one side writes.
#[derive(Clone)]
pub(crate) struct Half<M> {
    memory: M,
    start: usize,
}

impl<M: Memory> Half<M> {
    pub fn new(memory: M, side: Side) -> Half<M> {
        let start = if side == Side::First { 0 } else { memory.lines() / 2 };
        Half { memory, start }
    }

    #[inline(always)]
    pub fn control(&self, word: usize) -> &M::Word {
        &self.memory.line(self.start)[word]
    }

    /// A line of messages.
    #[inline(always)]
    pub fn line(&self, index: usize) -> &[M::Word; WORDS] {
        self.memory.line(self.start + 1 + index)
    }

    #[inline(always)]
    pub fn fence(&self) {
        self.memory.fence();
    }
}

/// Where a side is in a ring.
pub(crate) struct Place {
    /// The next line.
    pub line: usize,
    /// The lap to which it belongs.
    pub lap: u16,
    /// How many lines there are.
    pub lines: usize,
}

impl Place {
    pub fn new(lines: usize) -> Place {
        Place { line: 0, lap: 1, lines }
    }

    #[inline(always)]
    pub fn advance(&mut self) {
        self.line += 1;
        if self.line == self.lines {
            self.line = 0;
            self.lap = self.lap.wrapping_add(1);
        }
    }
}
