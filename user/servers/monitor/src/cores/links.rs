//! Channels between two further cores. The first core's monitor makes one when either of the two requests it: a frame,
//! sent to both by the transfer that any process can use, but addressed to the monitors themselves. The first core
//! remains the owner, and never revokes a channel while both cores run: a monitor must not lose memory that it uses.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use tench::memory;
use tench_monitor::cores::boot::CHANNEL_BITS;
use tench_monitor::message::MONITOR;
use tench_monitor::transfer::exchange::mailbox::ReceivedTransfer;
use tench_monitor_interface::protocol::Error;
use tench_remote::Core;
use tench_sys::{Cap, Frame, Rights};

use crate::transfer::capabilities::{Completion, TransferRequest, core};
use crate::{Result, no_memory};

/// Bit in a transfer's word, above the other core's number: the receiver is the channel's second side.
const SECOND: u64 = 1 << 8;
/// Bit in a transfer's word: the transfer is memory for the memory server instead.
pub const MEMORY: u64 = 1 << 9;

/// The first core's monitor's record of channels.
pub struct Links {
    /// The frame of each pair, the lower core first.
    frames: BTreeMap<(Core, Core), Cap<Frame>>,
    /// Channels still to be sent: the receiver, and the core at the other end.
    unsent: VecDeque<(Core, Core)>,
    /// Channels that were sent, or are on their way.
    sent: BTreeSet<(Core, Core)>,
}

impl Links {
    /// Returns an empty record.
    pub const fn new() -> Links {
        Links { frames: BTreeMap::new(), unsent: VecDeque::new(), sent: BTreeSet::new() }
    }

    /// Requests a channel between two cores.
    pub fn want(&mut self, one: Core, other: Core) {
        for pair in [(one, other), (other, one)] {
            if one != other && self.sent.insert(pair) {
                self.unsent.push_back(pair);
            }
        }
    }

    /// Returns how many channels are still to be sent.
    pub fn waiting(&self) -> usize {
        self.unsent.len()
    }

    /// Returns the next channel to be sent: its receiver, and the core at the other end.
    pub fn next(&mut self) -> Option<(Core, Core)> {
        self.unsent.pop_front()
    }

    /// Queues a channel again.
    pub fn postpone(&mut self, (to, other): (Core, Core)) {
        self.unsent.push_back((to, other));
    }

    /// Returns the transfer request for a copy of the frame.
    pub fn transfer_request(&mut self, (to, other): (Core, Core)) -> Result<TransferRequest> {
        let pair = (to.min(other), to.max(other));
        let frame = match self.frames.get(&pair) {
            Some(frame) => *frame,
            None => memory::make::<Frame>(u64::from(CHANNEL_BITS)).map_err(no_memory)?.leak(),
        };
        self.frames.insert(pair, frame);
        let slot = memory::take_slot().map_err(no_memory)?;
        frame.mint_to(slot, Rights::READ | Rights::WRITE, 0).inspect_err(|_| memory::free_slot(slot))?;
        let word = other.index() as u64 | if to < other { 0 } else { SECOND };
        Ok(TransferRequest::new(Completion::Link(to, other), slot, (0, MONITOR), (to, MONITOR), word))
    }

    /// Notes that a channel was sent, or could not be: then it is sent again, unless the core has stopped.
    pub fn sent(&mut self, to: Core, other: Core, result: core::result::Result<(), Error>) {
        match result {
            Ok(()) | Err(Error::CoreLost | Error::Broken) => {}
            Err(_) => self.postpone((to, other)),
        }
    }
}

/// Returns, for a transfer to this monitor that is a channel, the core at the other end, and whether this is the second
/// side. Only the first core's monitor sends such transfers.
pub fn read(transfer: &ReceivedTransfer) -> Option<(Core, bool)> {
    let other = core(transfer.word & !SECOND)?;
    (transfer.from == MONITOR).then_some((other, transfer.word & SECOND != 0))
}
