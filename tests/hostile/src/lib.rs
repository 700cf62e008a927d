//! Random and hostile messages for every interface.
//!
//! From each interface the compiler writes a server that records what reaches it and answers anything ([`Tape`]), and a
//! client that asks for anything ([`Probe`]). Bytes decide what is asked and answered, so the same code serves the
//! property tests here and the fuzz targets:
//!
//! ```text
//! bytes ─ Dice ─▶ client ─▶ message ─▶ dispatch ─▶ Tape        round trip: what is recorded is what was sent,
//!                   ▲                     │                    and what comes back is what was answered
//!                   └────── message ◀─────┘
//! hostile: messages are changed on their way, both ways, or are random from the beginning; then only what is valid may be
//! recorded, every answer is well formed, and nothing panics.
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod dice;
mod here;
pub mod notes_protocol;
mod random;

use tench_protocol::{Context, Failure, Flow, Powers, Shares, probe};
use tench_sys::{CapAddress, Kind, Message, Received};

pub use dice::Dice;
pub use here::{hostile, round_trip};
pub use random::Random;

probe!(clock as tench_clock_client::protocol in "../../user/servers/clock/client/src/protocol.rs");
probe!(console as tench_console_client::protocol in "../../user/servers/console/client/src/protocol.rs");
probe!(files as tench_files_client::protocol in "../../user/servers/files/client/src/protocol.rs");
probe!(mem as tench_mem_client::protocol in "../../user/servers/mem/client/src/protocol.rs");
probe!(monitor as tench_monitor_client::protocol in "../../user/servers/monitor/client/src/protocol.rs");
probe!(names as tench_names_client::protocol in "../../user/servers/names/client/src/protocol.rs");
probe!(pager as tench_pager::protocol in "../../user/lib/pager/src/protocol.rs");
probe!(procs as tench_procs_client::protocol in "../../user/servers/procs/client/src/protocol.rs");
probe!(reserve as tench_reserve_client::protocol in "../../user/servers/reserve/client/src/protocol.rs");
probe!(slabs as tench_mem_client::slabs::protocol in "../../user/servers/mem/client/src/slabs/protocol.rs");
probe!(stream as tench_stream::protocol in "../../user/lib/stream/src/protocol.rs");

probe!(notes as crate::notes_protocol in "src/notes_protocol.rs");

/// Bytes of memory that client and server share.
pub const SHARED: usize = 512;

/// What is known about a method.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// Its label.
    pub label: u64,
    /// Whether only callers without a badge may use it.
    pub authority: bool,
    /// The power that a caller with a badge needs.
    pub power: Powers,
    /// Whether it may answer later.
    pub later: bool,
}

impl Method {
    /// Whether somebody with this badge may use it.
    pub const fn permits(&self, badge: u64) -> bool {
        badge == 0 || !self.authority && Powers::of_badge(badge).contains(self.power)
    }
}

/// An interface under test.
pub trait Probe {
    /// Its name.
    const NAME: &'static str;
    /// Its version.
    const VERSION: u16;
    /// Its methods.
    const METHODS: &'static [Method];

    /// The dispatch, with the recording server behind it.
    fn dispatch(tape: &mut Tape, request: &Received, context: &mut Context<'_>, answer: &mut Message) -> Flow;

    /// Whether the interface has an error of this number.
    fn is_error(code: u64) -> bool;

    /// Asks for random things by the client. Answers the message as the test would have written it, and what came of
    /// it.
    fn call<Way: Shares>(label: u64, dice: &mut Dice, way: Way) -> (Message, Outcome);
}

/// What the client says that came of a request.
#[allow(clippy::large_enum_variant)] // One lives at a time.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was answered; the values, written again as a message.
    Answered(Message),
    /// It had no success; errors of the interface by number.
    Failed(Failure<u64>),
}

/// A server that records what reaches it, and answers anything.
#[derive(Debug)]
pub struct Tape {
    /// Decides what is answered.
    pub dice: Dice,
    /// What has reached it, written again as messages.
    pub seen: Vec<Message>,
    /// What it has answered last.
    pub answer: Option<Message>,
    /// Capabilities of the last request that it has kept, a bit for each.
    pub kept: u8,
    /// Words of the last request that end a text, and how many of their bits belong to it.
    pub tails: Vec<(usize, usize)>,
    /// How many capabilities of the last request it has looked at.
    caps: usize,
    /// What answers lie in.
    texts: [String; 4],
    bytes: [Vec<u8>; 4],
}

impl Tape {
    /// With dice that decide what is answered.
    pub fn new(dice: Dice) -> Tape {
        let (texts, bytes) = Default::default();
        Tape { dice, seen: Vec::new(), answer: None, kept: 0, tails: Vec::new(), caps: 0, texts, bytes }
    }

    /// Before the next request.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.tails.clear();
        (self.answer, self.kept, self.caps) = (None, 0, 0);
    }

    /// A text of so many bytes is at this word.
    fn tail(&mut self, word: usize, length: usize) {
        if !length.is_multiple_of(8) {
            self.tails.push((word + 1 + length / 8, length % 8 * 8));
        }
    }

    /// Whether the next capability is kept.
    fn keeps(&mut self) -> bool {
        let keeps = self.dice.below(2) == 1;
        self.kept |= u8::from(keeps) << self.caps;
        self.caps += 1;
        keeps
    }
}

/// What a capability is for, in these tests: its address says it.
pub fn kind_of(cap: CapAddress) -> Option<Kind> {
    Kind::from_code(u64::from(cap.0 >> 8)).filter(|kind| *kind != Kind::Null)
}

/// Demands that a capability which has reached a server is of the kind that its method expects.
fn expect(cap: CapAddress, kind: Kind) {
    assert_eq!(kind_of(cap), Some(kind), "another kind of capability has reached the server");
}
