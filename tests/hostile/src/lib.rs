//! Random and hostile messages for every interface.
//!
//! For each interface the compiler generates a server that records what reaches it and makes random replies ([`Tape`]),
//! and a client that makes random requests ([`Probe`]). Bytes decide about requests and replies, so the same code
//! serves the property tests here and the fuzz targets:
//!
//! ```text
//! bytes ─ Dice ─▶ client ─▶ message ─▶ dispatch ─▶ Tape        round trip: what is recorded is what was sent,
//!                   ▲                     │                    and what comes back is what was replied
//!                   └────── message ◀─────┘
//! hostile: messages are changed on their way, both ways, or are random from the beginning; then only
//! valid requests are recorded, every reply is well formed, and nothing panics.
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

probe!(clock as tench_clock_interface::protocol in "../../user/interfaces/clock/src/protocol.rs");
probe!(console as tench_console_interface::protocol in "../../user/interfaces/console/src/protocol.rs");
probe!(files as tench_files_interface::protocol in "../../user/interfaces/files/src/protocol.rs");
probe!(mem as tench_mem_interface::protocol in "../../user/interfaces/mem/src/protocol.rs");
probe!(monitor as tench_monitor_interface::protocol in "../../user/interfaces/monitor/src/protocol.rs");
probe!(names as tench_names_interface::protocol in "../../user/interfaces/names/src/protocol.rs");
probe!(pager as tench_pager::protocol in "../../user/lib/pager/src/protocol.rs");
probe!(procs as tench_procs_interface::protocol in "../../user/interfaces/procs/src/protocol.rs");
probe!(reserve as tench_reserve_interface::protocol in "../../user/interfaces/reserve/src/protocol.rs");
probe!(slabs as tench_mem_interface::slabs::protocol in "../../user/interfaces/mem/src/slabs/protocol.rs");
probe!(stream as tench_stream::protocol in "../../user/lib/stream/src/protocol.rs");

probe!(notes as crate::notes_protocol in "src/notes_protocol.rs");

/// Bytes of memory that client and server share.
pub const SHARED: usize = 512;

/// Description of a method.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// Name of the method.
    pub name: &'static str,
    /// Label of the method's requests.
    pub label: u64,
    /// Set if only callers without a badge may call the method.
    pub authority: bool,
    /// The power that a caller with a badge needs.
    pub power: Powers,
    /// Set if the server may reply later.
    pub later: bool,
}

impl Method {
    /// Returns whether a caller with this badge may call the method.
    pub const fn permits(&self, badge: u64) -> bool {
        badge == 0 || !self.authority && Powers::of_badge(badge).contains(self.power)
    }
}

/// An interface under test.
pub trait Probe {
    /// Name of the interface.
    const NAME: &'static str;
    /// Version of the interface.
    const VERSION: u16;
    /// Methods of the interface.
    const METHODS: &'static [Method];

    /// Dispatches a request to the recording server.
    fn dispatch(tape: &mut Tape, request: &Received, context: &mut Context<'_>, reply: &mut Message) -> Flow;

    /// Returns whether the interface has an error of this number.
    fn is_error(code: u64) -> bool;

    /// Makes a random request through the client. Returns the message as the test would have written it, and the
    /// outcome.
    fn call<Way: Shares>(label: u64, dice: &mut Dice, way: Way) -> (Message, Outcome);
}

/// Outcome of a request as the client reports it.
#[allow(clippy::large_enum_variant)] // Only one value lives at a time.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Success; the values, written again as a message.
    Replied(Message),
    /// Failure; errors of the interface by number.
    Failed(Failure<u64>),
}

/// A server that records what reaches it, and makes random replies.
#[derive(Debug)]
pub struct Tape {
    /// Dice that decide the replies.
    pub dice: Dice,
    /// Requests that have reached the server, written again as messages.
    pub seen: Vec<Message>,
    /// Last reply.
    pub reply: Option<Message>,
    /// Capabilities of the last request that the server has kept, a bit for each.
    pub kept: u8,
    /// Words of the last request that end a text, and how many of their bits belong to the text.
    pub tails: Vec<(usize, usize)>,
    /// Number of capabilities of the last request that the server has seen.
    caps: usize,
    /// Buffers for replies' texts.
    texts: [String; 4],
    bytes: [Vec<u8>; 4],
}

impl Tape {
    /// Makes a tape with dice that decide the replies.
    pub fn new(dice: Dice) -> Tape {
        let (texts, bytes) = Default::default();
        Tape { dice, seen: Vec::new(), reply: None, kept: 0, tails: Vec::new(), caps: 0, texts, bytes }
    }

    /// Clears the records before the next request.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.tails.clear();
        (self.reply, self.kept, self.caps) = (None, 0, 0);
    }

    /// Records that a text of `length` bytes begins at this word.
    fn tail(&mut self, word: usize, length: usize) {
        if !length.is_multiple_of(8) {
            self.tails.push((word + 1 + length / 8, length % 8 * 8));
        }
    }

    /// Decides whether the next capability is kept.
    fn keeps(&mut self) -> bool {
        let keeps = self.dice.below(2) == 1;
        self.kept |= u8::from(keeps) << self.caps;
        self.caps += 1;
        keeps
    }
}

/// Returns the kind that a capability's address stands for in these tests.
pub fn kind_of(cap: CapAddress) -> Option<Kind> {
    Kind::from_code(u64::from(cap.0 >> 8)).filter(|kind| *kind != Kind::Null)
}

/// Fails unless a capability that has reached a server is of the kind that its method expects.
fn expect(cap: CapAddress, kind: Kind) {
    assert_eq!(kind_of(cap), Some(kind), "another kind of capability has reached the server");
}
