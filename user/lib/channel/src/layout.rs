//! Layout of the frame, and encoding of a line's words.
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
//! has a page or more, the other side could map it read-only.)
//!
//! *Lap* counts the writer's passes through its lines, from 1. So a reader that knows which line is next needs no index
//! from the writer: the line has arrived when its lap is the reader's, has not when it is the one before, and anything
//! else is an error. In a frame of zeros lap 0 is complete: nothing has to be initialised, and neither side has to wait
//! for the other to do so.

use crate::memory::{Memory, WORDS};

/// Number of words of a message in one line.
pub const PAYLOAD: usize = WORDS - 1;
/// Default number of lines of the longest message: 525 words, or 4 KiB and 13 words.
pub const LONGEST: usize = 75;

/// Word of the control line: the number of lines that this side has received since the channel was opened.
pub(crate) const TAKEN: usize = 0;
/// Word of the control line: odd while this side sleeps until a line arrives; a different number for each sleep.
pub(crate) const ASLEEP: usize = 1;
/// Word of the control line: odd while this side sleeps until it can send; a different number for each sleep.
pub(crate) const WAITS: usize = 2;

/// One of the two sides of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The side that writes to the first half of the frame.
    First,
    /// The side that writes to the second half of the frame.
    Second,
}

impl Side {
    /// Returns the other side.
    pub fn other(self) -> Side {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }
}

/// Kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A request, which expects a reply.
    Request,
    /// A reply.
    Reply,
    /// An event, which is neither.
    Event,
}

const REST: u64 = 4;

impl Kind {
    #[inline]
    fn number(self) -> u64 {
        match self {
            Kind::Request => 1,
            Kind::Reply => 2,
            Kind::Event => 3,
        }
    }
}

/// A message, borrowed from the sender's or the receiver's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'m> {
    /// Kind of the message.
    pub kind: Kind,
    /// The requested operation; the channel passes it on.
    pub operation: u16,
    /// Number of the request; the channel passes it on.
    pub id: u16,
    /// Words of the message.
    pub words: &'m [u64],
}

/// The first word of a line.
#[derive(Clone, Copy)]
pub(crate) struct Header(pub u64);

impl Header {
    /// Returns the header of a message's first line, without the lap. The length must have been checked.
    #[inline]
    pub fn first(message: &Message<'_>) -> Header {
        let (operation, id) = (u64::from(message.operation), u64::from(message.id));
        Header((message.words.len() as u64) << 16 | message.kind.number() << 28 | operation << 32 | id << 48)
    }

    /// Returns the header of a continuation line of a message with `length` remaining words, without the lap.
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

    /// Returns the kind, if a message can begin with it.
    #[inline(always)]
    pub fn kind(self) -> Result<Kind, u8> {
        match (self.0 >> 28) as u8 & 15 {
            1 => Ok(Kind::Request),
            2 => Ok(Kind::Reply),
            3 => Ok(Kind::Event),
            other => Err(other),
        }
    }

    #[inline]
    pub fn operation(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Returns operation and number.
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

    /// Returns a line of messages.
    #[inline(always)]
    pub fn line(&self, index: usize) -> &[M::Word; WORDS] {
        self.memory.line(self.start + 1 + index)
    }

    #[inline(always)]
    pub fn fence(&self) {
        self.memory.fence();
    }
}

/// Position of a side in a ring.
pub(crate) struct Position {
    /// Index of the next line.
    pub line: usize,
    /// The lap to which it belongs.
    pub lap: u16,
    /// Number of lines.
    pub lines: usize,
}

impl Position {
    pub fn new(lines: usize) -> Position {
        Position { line: 0, lap: 1, lines }
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
