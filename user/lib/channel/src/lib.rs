//! Channels of cache lines in a frame that two cores share.
//!
//! ```text
//!   Calls                             requests and replies, in both directions, in any order
//!   Sender ──▶ ring ──▶ Receiver      messages of any length, in one direction
//!   Memory  Frame                     the memory that the two cores share
//!   Notifier  Idle                    waking the other side; polling and sleeping of this side
//! ```
//! Programs on one core communicate through the kernel; programs on different cores communicate through lines of 64
//! bytes in memory that both have mapped. A line moves from one core's cache to the other's, and no kernel is involved
//! as long as both sides are awake. `layout.rs` describes the frame.
//!
//! # Flow control
//!
//! A ring has one line less than half of the frame has room for. The sender writes a line when it knows that the
//! receiver has received the line's previous contents; it counts the lines that it may write, and reads the receiver's
//! number only when there are none left. The receiver publishes that number when it has received half a ring, and
//! before it sleeps. So while both are awake the receiver's control line is written twice in each lap, and all other
//! writes are messages.
//!
//! A sender without room can always expect some: if a whole ring of lines is outstanding, either the receiver still has
//! some of them to receive, or it has received all of them and published at least half.
//!
//! # Long messages
//!
//! A message of more than seven words takes several lines, possibly more than the ring has. The part without room stays
//! with the sender, which has a buffer for one message; the receiver reassembles it in a buffer of its own. So the
//! longest message does not depend on the size of the frame, and `try_send` accepts all of a message or nothing.
//!
//! # Sleeping
//!
//! A busy side polls for lines; an idle one sleeps until its doorbell is notified. A side that has polled a few times
//! in vain announces in its control line that it sleeps, executes a fence, checks once more, and sleeps. A side that
//! has written a line or made room executes a fence, and checks whether the other sleeps. So one of the two sees the
//! other (`sleep.rs` has the argument). The doorbell is notified at most once in each sleep; a side that polls is never
//! notified, unless it slept a moment ago.
//!
//! # Memory order
//!
//! | what | is seen with | because |
//! |---|---|---|
//! | words of a line | its header: release, acquire | a header that is seen without its words is a torn message |
//! | reads of a line | the number of lines taken in: release, acquire | a line must not be overwritten while it is read |
//! | "a line is there", "somebody sleeps" | a fence between store and load on both sides | otherwise both could miss each other |
//!
//! Each access says with what it pairs. The tests try all orders of steps of both sides, and repeat that without each
//! of these orderings, to check that the tests detect it.
//!
//! # A hostile peer
//!
//! The peer may write anything anywhere in the frame at any time. This side never reads its own writes, checks and uses
//! one and the same copy of whatever it reads, and keeps all indices to itself. A call examines no more lines than the
//! longest message has. A violation of the protocol fails with [`Broken`], which says what was wrong; from then on the
//! channel is closed. The peer is not told; the user of the channel can tell it, if there is another way.
//!
//! A peer can be silent, notify in vain, once for each message and each batch of credits, and send meaningless
//! messages, which the users of messages have to check.
//!
//! # Example
//!
//! ```
//! use tench_channel::{Notifier, Calls, Frame, Incoming, Line, Side};
//!
//! /// Both sides are this thread here, and nobody sleeps.
//! #[derive(Clone)]
//! struct Silent;
//!
//! impl Notifier for Silent {
//!     fn notify(&self) {}
//! }
//!
//! let lines: [Line; 64] = std::array::from_fn(|_| Line::default());
//! let mut client = Calls::<_, _>::open(&Frame::of(&lines), Side::First, Silent, 16).unwrap();
//! let mut server = Calls::<_, _>::open(&Frame::of(&lines), Side::Second, Silent, 16).unwrap();
//!
//! let question = client.request(42, &[2, 3]).unwrap();
//! let Ok(Some(Incoming::Request(request, words))) = server.receive() else { panic!() };
//! let sum = words.iter().sum();
//! server.reply(request, &[sum]).unwrap();
//! assert_eq!(client.receive(), Ok(Some(Incoming::Reply(question, &[5]))));
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
pub use sleep::{Idle, Notifier};

/// The two ends of a side.
pub type Ends<M, B, const LINES: usize = LONGEST> = (Sender<M, B, LINES>, Receiver<M, B, LINES>);

/// Opens a channel for one side: its end of each direction. The memory must be all zeros before either side opens it;
/// both sides must use the same number of lines and the same `LINES`. `doorbell` notifies the peer.
///
/// Error: `Lines`.
pub fn open<M: Memory, B: Notifier + Clone, const LINES: usize>(
    memory: &M,
    side: Side,
    doorbell: B,
) -> Result<Ends<M, B, LINES>, Unfit> {
    let lines = memory.lines();
    if lines < 4 || !lines.is_multiple_of(2) {
        return Err(Unfit::Lines(lines));
    }
    Ok((Sender::new(memory, side, doorbell.clone()), Receiver::new(memory, side, doorbell)))
}
