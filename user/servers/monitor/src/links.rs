//! Channels between any two further cores. The first core's monitor makes one when one of the two asks for it: a frame,
//! which it sends to both as any process sends one, but to the monitors themselves. It stays the owner, and never takes
//! one back while both run: a monitor must not lose memory that it uses.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use tench::memory;
use tench_foreign::Core;
use tench_monitor::boot::CHANNEL_BITS;
use tench_monitor::exchange::MONITOR;
use tench_monitor::exchange::mail::Letter;
use tench_monitor_client::protocol::Error;
use tench_sys::{Cap, Frame, Rights};

use crate::capabilities::{Gift, Waiter, core};
use crate::{Result, no_memory};

/// In a letter's word: the side that its receiver is of, above the other core.
const SECOND: u64 = 1 << 8;
/// The letter has memory for the memory server instead.
pub const MEMORY: u64 = 1 << 9;

/// What the first core's monitor knows of them.
pub struct Links {
    /// The frame of each pair, the lower core first.
    frames: BTreeMap<(Core, Core), Cap<Frame>>,
    /// To whom which is still to be sent.
    unsent: VecDeque<(Core, Core)>,
    /// What was sent, or is on its way.
    sent: BTreeSet<(Core, Core)>,
}

impl Links {
    /// None.
    pub const fn new() -> Links {
        Links { frames: BTreeMap::new(), unsent: VecDeque::new(), sent: BTreeSet::new() }
    }

    /// Two cores are to have a channel.
    pub fn want(&mut self, one: Core, other: Core) {
        for pair in [(one, other), (other, one)] {
            if one != other && self.sent.insert(pair) {
                self.unsent.push_back(pair);
            }
        }
    }

    /// How many are still to be sent.
    pub fn waiting(&self) -> usize {
        self.unsent.len()
    }

    /// To whom the next is to be sent, and to whom it leads.
    pub fn next(&mut self) -> Option<(Core, Core)> {
        self.unsent.pop_front()
    }

    /// Not yet.
    pub fn postpone(&mut self, (to, other): (Core, Core)) {
        self.unsent.push_back((to, other));
    }

    /// What is sent: a copy of the frame.
    pub fn gift(&mut self, (to, other): (Core, Core)) -> Result<Gift> {
        let pair = (to.min(other), to.max(other));
        let frame = match self.frames.get(&pair) {
            Some(frame) => *frame,
            None => memory::make::<Frame>(u64::from(CHANNEL_BITS)).map_err(no_memory)?.leak(),
        };
        self.frames.insert(pair, frame);
        let slot = memory::take_slot().map_err(no_memory)?;
        frame.mint_to(slot, Rights::READ | Rights::WRITE, 0).inspect_err(|_| memory::free_slot(slot))?;
        let word = other.index() as u64 | if to < other { 0 } else { SECOND };
        Ok(Gift::new(Waiter::Link(to, other), slot, (0, MONITOR), (to, MONITOR), word))
    }

    /// It was sent, or could not be: then it is tried again, unless the core has stopped.
    pub fn sent(&mut self, to: Core, other: Core, result: core::result::Result<(), Error>) {
        match result {
            Ok(()) | Err(Error::CoreLost | Error::Broken) => {}
            Err(_) => self.postpone((to, other)),
        }
    }
}

/// To which core a letter to this monitor is the channel, and whether this is its second side. Only the first core's
/// monitor sends such.
pub fn read(letter: &Letter) -> Option<(Core, bool)> {
    let other = core(letter.word & !SECOND)?;
    (letter.from == MONITOR).then_some((other, letter.word & SECOND != 0))
}
