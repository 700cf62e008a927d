//! Channels of cache lines in a frame that two cores share.
//!
//! ```text
//!   Calls                             requests and answers, both ways, in any order
//!   Sender ──▶ ring ──▶ Receiver      messages of any length, one direction
//!   Memory  Frame                     what the two cores share
//!   Bell  Idle                        what wakes the other side, what this side does meanwhile
//! ```
//! Programs on one core talk through the kernel; programs on different cores talk through lines of 64 bytes in memory
//! that both have mapped. A line travels from one core's cache to the other's, and no kernel is involved as long as
//! both sides are awake. What lies where in the frame is said in `layout.rs`.
//!
//! # Flow
//!
//! A ring has as many lines as half of the frame has room for, but one. The sender writes a line when it knows that the
//! receiver has taken in what was there before; it keeps count of how many lines it may write, and looks at the
//! receiver's number only when there are none left. The receiver publishes that number when it has taken in half a
//! ring, and before it sleeps. So while both are awake its control line is written twice in each lap, and all else that
//! is written is messages.
//!
//! A sender without room can always expect some: if a whole ring of lines is outstanding, either the receiver has some
//! of them still to take in, or it took in all of them and published at least half.
//!
//! # Long messages
//!
//! A message of more than seven words takes several lines, and may have more of them than the ring. What has no room
//! stays with the sender, which has a buffer for one message; the receiver puts it together in a buffer of its own. So
//! the longest message does not depend on the size of the frame, and `try_send` takes all of a message or nothing.
//!
//! # Sleeping
//!
//! A side that is busy looks for lines by itself; one that is idle sleeps until it is rung. Whoever has looked a few
//! times in vain says in its control line that it sleeps, passes a fence, looks once more, and sleeps. Whoever has
//! written a line or made room passes a fence, and looks whether the other side sleeps. So one of the two sees the
//! other (`sleep.rs` has the argument). The bell rings at most once in each sleep; whoever polls is never rung, unless
//! it was asleep a moment ago.
//!
//! # Memory order
//!
//! | what | is seen with | because |
//! |---|---|---|
//! | words of a line | its header: release, acquire | a header that is seen without its words is a torn message |
//! | reads of a line | the number of lines taken in: release, acquire | a line must not be overwritten while it is read |
//! | "a line is there", "somebody sleeps" | a fence between store and load on both sides | otherwise both could miss each other |
//!
//! Each access says what it pairs with. The tests run all orders of steps of both sides, and again with each of these
//! taken away, to see that it is missed.
//!
//! # A hostile peer
//!
//! The peer may write anything anywhere in the frame at any time. This side never reads what it wrote itself, checks
//! and uses one and the same copy of whatever it reads, and keeps all indices to itself. A call looks at no more lines
//! than the longest message has. What cannot be is answered by [`Broken`], which says what was wrong; from then on the
//! channel is closed. The peer is not told: whoever holds the channel tells it, if there is another way.
//!
//! What a peer can do is to be silent, to have the bell rung in vain, once for each message and each batch of credits,
//! and to send messages that make no sense, which is for whoever understands messages to check.
//!
//! # Example
//!
//! ```
//! use tench_channel::{Bell, Calls, Frame, Incoming, Line, Side};
//!
//! /// Both sides are this thread here, and nobody sleeps.
//! #[derive(Clone)]
//! struct Silent;
//!
//! impl Bell for Silent {
//!     fn ring(&self) {}
//! }
//!
//! let lines: [Line; 64] = std::array::from_fn(|_| Line::default());
//! let mut client = Calls::<_, _>::open(&Frame::of(&lines), Side::First, Silent, 16).unwrap();
//! let mut server = Calls::<_, _>::open(&Frame::of(&lines), Side::Second, Silent, 16).unwrap();
//!
//! let question = client.request(42, &[2, 3]).unwrap();
//! let Ok(Some(Incoming::Request(request, words))) = server.receive() else { panic!() };
//! let sum = words.iter().sum();
//! server.answer(request, &[sum]).unwrap();
//! assert_eq!(client.receive(), Ok(Some(Incoming::Answer(question, &[5]))));
//! ```

#![no_std]
#![deny(missing_docs)]

mod calls;
mod error;
mod layout;
mod memory;
mod receiver;
mod sender;
mod sleep;

pub use calls::{Calls, Incoming, MOST, Request};
pub use error::{Broken, Refused, Unfit};
pub use layout::{Kind, LONGEST, Message, PAYLOAD, Side};
pub use memory::{Frame, LARGEST, LINE, Line, Memory, SMALLEST, WORDS, Word};
pub use receiver::Receiver;
pub use sender::Sender;
pub use sleep::{Bell, Idle};

/// The two ends of a side.
pub type Ends<M, B, const LINES: usize = LONGEST> = (Sender<M, B, LINES>, Receiver<M, B, LINES>);

/// Opens a channel for one side: its end of each direction. The memory is all zeros before either side opens it; both
/// sides use the same number of lines and the same `LINES`. `bell` wakes the peer.
///
/// Error: `Lines`.
pub fn open<M: Memory, B: Bell + Clone, const LINES: usize>(
    memory: &M,
    side: Side,
    bell: B,
) -> Result<Ends<M, B, LINES>, Unfit> {
    let lines = memory.lines();
    if lines < 4 || !lines.is_multiple_of(2) {
        return Err(Unfit::Lines(lines));
    }
    Ok((Sender::new(memory, side, bell.clone()), Receiver::new(memory, side, bell)))
}
