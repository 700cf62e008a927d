//! Capabilities that are sent to processes of any core: the system calls and threads around the ledger
//! ([`tench_monitor::transfer::exchange`]).
//!
//! Workers do what takes time: asking the process server whether a process runs, and deleting what another core
//! revokes.

use alloc::vec::Vec;

use tench::memory;
use tench::server::Watch;
use tench::time;
use tench_abi::power::identity;
use tench_channel::Request as Number;
use tench_monitor::message::line::{Admission, operation};
use tench_monitor::message::{MONITOR, Outcome, decode_result};
use tench_monitor::transfer::exchange::mailbox::ReceivedTransfer;
use tench_monitor::transfer::exchange::{Done, Exchange, Found, Kernel as ExchangeKernel, OutgoingTransfer};
use tench_monitor_interface::protocol::{Error, Transfer, pid_base};
use tench_protocol::{Any, Given, Pending, Port, Replies, Sent};
use tench_remote::{Core, Cores, Kind as Sendable, Shape};
use tench_sys::{Cap, CapAddress, Error as KernelError, Frame, Instant, Kind, OWN_CSPACE, Placement, Rights, Untyped};

use crate::kernel::{KERNEL, is_off};
use crate::slots::discard;
use crate::transfer::dirty_flag::Flagged;
use crate::transfer::tasks::{MOST_ASKED, Task, Work};

/// Frequency in Hz of asking the kernel which capabilities are no longer used.
const LOOKS: u64 = 10;
/// Number of these polls until the process server is asked which processes have ended.
const ROUNDS: u32 = 10;

/// Reply to a receiver: a transfer.
pub type Taken = (Transfer, Sent<Any, Given>);

/// The party that is told when an operation of the ledger is complete.
pub enum Completion {
    /// A requester that waits for nothing else.
    Done(Pending<(), Error>),
    /// A receiver that waits for a transfer.
    Transfer(Pending<Taken, Error>),
    /// Another core waits for memory from this monitor: the core, its request, and the memory's address and size.
    Grown { core: u64, number: Number, block: (u64, u64) },
    /// This monitor itself sends two other monitors the channel between them: the receiving core, and the core at the
    /// other end.
    Link(Core, Core),
    /// A message waits for its attachment with this number.
    Message(u64),
}

impl Completion {
    /// Returns whether a receiver no longer waits.
    pub fn has_gone(&self, watch: Watch) -> bool {
        matches!(self, Completion::Transfer(pending) if watch.has_gone(pending))
    }

    /// Releases the reply object of a receiver that no longer waits.
    pub fn forget(self, replies: &mut Replies) {
        if let Completion::Transfer(pending) = self {
            replies.forget(pending);
        }
    }
}

/// Outcome of giving memory to another core: the core, its request, the memory's address and size, and the result.
pub type Grown = (u64, Number, (u64, u64), Result<(), Error>);

/// Outcomes of what this monitor did for itself.
#[derive(Default)]
pub struct Own {
    /// Memory for other cores.
    pub grown: Vec<Grown>,
    /// Attachments of messages, by number.
    pub attachments: Vec<(u64, Result<(), Error>)>,
    /// Channels: the receiving core, and the core at the other end.
    pub links: Vec<(Core, Core, Result<(), Error>)>,
}

/// The ledger of capabilities that left their core, with a dirty flag.
pub type Ledger = Flagged<Exchange<Machine, Completion>>;

/// Returns an empty ledger for a core.
pub fn open(core: u64, cores: u64) -> Option<Ledger> {
    Exchange::new(core, cores, Machine).map(Flagged::new)
}

/// Returns the core of this number, if the ledger can represent it.
pub fn core(number: u64) -> Option<Core> {
    Core::new(u8::try_from(number).ok()?)
}

/// The kernel of this core.
pub struct Machine;

fn take_slot() -> Result<CapAddress, KernelError> {
    memory::take_slot().map_err(|_| KernelError::OutOfMemory)
}

/// Returns the slot if something was made in it, and frees it otherwise.
fn made<T>(slot: CapAddress, made: Result<T, KernelError>) -> Result<CapAddress, KernelError> {
    made.map(|_| slot).inspect_err(|_| memory::free_slot(slot))
}

impl ExchangeKernel for Machine {
    fn look(&self, slot: CapAddress) -> Option<Found> {
        let found = OWN_CSPACE.locate_at(KERNEL, slot).ok()?;
        let kind = match found.kind {
            Kind::Frame => Sendable::Frame,
            Kind::Untyped => Sendable::Untyped,
            Kind::Endpoint | Kind::Notification => return Some(Found::Endpoint),
            _ => return None,
        };
        let is_borrowed = KERNEL.holders(OWN_CSPACE, slot).ok()?.borrowed;
        let shape = Shape { kind, base: found.address, bytes: 1u64.checked_shl(found.size_bits)? };
        Some(Found::Memory { shape, rights: found.rights, is_borrowed })
    }

    fn export(&mut self, slot: CapAddress) -> Result<(), KernelError> {
        KERNEL.export(OWN_CSPACE, slot)
    }

    fn unexport(&mut self, slot: CapAddress) -> Result<(), KernelError> {
        KERNEL.unexport(OWN_CSPACE, slot)
    }

    fn import(&mut self, shape: &Shape) -> Result<CapAddress, KernelError> {
        if !shape.bytes.is_power_of_two() {
            return Err(KernelError::InvalidArgument);
        }
        let (slot, bits) = (take_slot()?, u64::from(shape.bytes.ilog2()));
        let imported = match shape.kind {
            Sendable::Frame => KERNEL.import_frame(shape.base, bits, Rights::all(), slot).map(drop),
            Sendable::Untyped => KERNEL.import_untyped(shape.base, bits, slot).map(drop),
        };
        made(slot, imported)
    }

    fn copy(&mut self, from: CapAddress, kind: Sendable, rights: Rights) -> Result<CapAddress, KernelError> {
        let slot = take_slot()?;
        let copied = match kind {
            Sendable::Frame => Cap::<Frame>::new(from).mint_to(slot, rights, 0).map(drop),
            Sendable::Untyped => OWN_CSPACE.identify_at(from).and_then(|found| {
                let (memory, bits) = (Cap::<Untyped>::new(from), u64::from(found.size_bits));
                memory.retype_many(Kind::Untyped, bits, 1, Placement::At(0), OWN_CSPACE, slot).map(drop)
            }),
        };
        made(slot, copied)
    }

    fn is_used(&self, slot: CapAddress) -> bool {
        match KERNEL.holders(OWN_CSPACE, slot) {
            Ok(found) => found.others,
            // The slot's content was revoked here: nobody has it.
            Err(KernelError::InvalidCapability) => false,
            // If the kernel does not tell, the capability counts as used.
            Err(_) => true,
        }
    }

    fn is_revoke_requested(&self, slot: CapAddress) -> bool {
        KERNEL.holders(OWN_CSPACE, slot).is_ok_and(|found| found.revoke_requested)
    }

    fn delete(&mut self, slot: CapAddress) {
        discard(&[slot]);
    }

    fn is_off(&self, core: Core) -> bool {
        is_off(core.index() as u64)
    }
}

/// A transfer request: a local process sends a capability, and has no reservation yet.
pub struct TransferRequest {
    who: Completion,
    slot: CapAddress,
    /// The sender, in this core's numbering, and its core: badges without powers.
    requester: u64,
    pub from: u64,
    to: Core,
    process: u64,
    word: u64,
}

impl TransferRequest {
    /// Returns a request to transfer the capability in a slot, from a process of this core to a process of any core.
    pub const fn new(
        who: Completion,
        slot: CapAddress,
        (own, requester): (u64, u64),
        (to, process): (Core, u64),
        word: u64,
    ) -> TransferRequest {
        TransferRequest { who, slot, requester, from: pid_base(own) | requester, to, process, word }
    }

    /// Returns the question to the receiver's monitor.
    pub const fn admission(&self) -> Admission {
        Admission { requester: self.requester, process: self.process, word: self.word }
    }

    /// Fails the request.
    pub fn refuse(self, ledger: &mut Ledger, why: Error) {
        ledger.refuse(Some(self.who), self.slot, why);
    }

    /// Handles the reply of the receiver's monitor: a reservation, or a refusal.
    pub fn admitted(self, ledger: &mut Ledger, words: &[u64]) {
        match reservation(words) {
            Ok(reservation) => self.send(ledger, reservation),
            Err(why) => self.refuse(ledger, why),
        }
    }

    /// Starts the transfer to a reservation.
    pub fn send(self, ledger: &mut Ledger, reservation: u64) {
        ledger.send(OutgoingTransfer::new(Some(self.who), self.slot, self.from, self.to, reservation));
    }
}

/// Returns the reservation in the reply to an admission. Words from another monitor are checked, not trusted.
fn reservation(words: &[u64]) -> Result<u64, Error> {
    let (outcome, words) = decode_result(words).map_err(|_| Error::Broken)?;
    match (outcome, words) {
        (Outcome::Replied, &[reservation]) => Ok(reservation),
        (Outcome::Refused, &[code]) => Err(Error::from_code(code).unwrap_or(Error::Broken)),
        (Outcome::Busy, _) => Err(Error::Full),
        _ => Err(Error::Internal),
    }
}

/// Replies to requesters whose operations are complete.
pub fn reply_to_waiters(ledger: &mut Ledger, port: &mut Port) -> Own {
    let mut own = Own::default();
    while let Some(done) = ledger.done() {
        match done {
            Done::Reply(Completion::Done(pending), result) => port.finish(pending, &result),
            Done::Reply(Completion::Transfer(pending), result) => {
                let refused: Result<Taken, Error> = Err(result.err().unwrap_or(Error::Internal));
                port.finish(pending, &refused);
            }
            Done::Transfer(Completion::Transfer(pending), transfer) => deliver(ledger, port, pending, transfer),
            Done::Reply(Completion::Link(to, other), result) => own.links.push((to, other, result)),
            Done::Reply(Completion::Grown { core, number, block }, result) => {
                own.grown.push((core, number, block, result));
            }
            Done::Reply(Completion::Message(number), result) => own.attachments.push((number, result)),
            // No requester waits for this combination.
            Done::Transfer(Completion::Done(pending), transfer) => {
                port.finish(pending, &Err(Error::Internal));
                ledger.put_back(transfer);
            }
            Done::Transfer(Completion::Link(..) | Completion::Grown { .. } | Completion::Message(_), transfer) => {
                ledger.put_back(transfer)
            }
        }
    }
    own
}

/// Hands a transfer over. If the receiver has given up, or has no slot for it, the transfer returns to the mailbox.
fn deliver(ledger: &mut Ledger, port: &mut Port, pending: Pending<Taken, Error>, transfer: ReceivedTransfer) {
    let result: Result<Taken, Error> = {
        let header = Transfer { from: identity(transfer.from), word: transfer.word };
        Ok((header, Sent::new(Cap::new(transfer.slot))))
    };
    let delivered = port.replies.send(pending, &result);
    let has_left = OWN_CSPACE.identify_at(transfer.slot).is_ok_and(|found| found.kind == Kind::Null);
    match (delivered, has_left) {
        // This is also right if it was revoked before it was handed over.
        (Ok(()), true) => memory::free_slot(transfer.slot),
        _ => ledger.put_back(transfer),
    }
}

/// Schedule of the polls for unused capabilities.
pub struct Rounds {
    next: Option<Instant>,
    count: u32,
    /// Set if a process may have ended of whose memory other cores have a part.
    may_be_abroad: bool,
    /// Cores from which the ledger awaited something at the last poll.
    awaited: Cores,
}

impl Rounds {
    /// Returns a schedule without a poll.
    pub const fn new() -> Rounds {
        Rounds { next: None, count: 0, may_be_abroad: false, awaited: Cores::NONE }
    }

    /// Returns whether no poll is scheduled.
    pub const fn is_over(&self) -> bool {
        self.next.is_none() && !self.may_be_abroad
    }

    /// Polls the kernel, if it is time. Returns tasks for workers.
    pub fn pass(&mut self, ledger: &mut Ledger) -> [Option<(Work, Task)>; 2] {
        if ledger.is_idle() && !self.may_be_abroad {
            (self.next, self.awaited) = (None, Cores::NONE);
            return [None, None];
        }
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return [None, None];
        }
        let is_first = self.next.is_none();
        self.next = Some(now.after(time::frequency() / LOOKS));
        if is_first {
            return [None, None];
        }
        ledger.poll();
        self.awaited = ledger.awaited();
        // The task is due once more after the last object has come back.
        let was = core::mem::replace(&mut self.may_be_abroad, ledger.has_exports());
        let reclaims = (was || self.may_be_abroad).then_some((Work::Reclaim, Task::Reclaim));
        self.count = self.count.wrapping_add(1);
        let receivers = if self.count.is_multiple_of(ROUNDS) { ledger.receivers() } else { Vec::new() };
        let looks = !receivers.is_empty();
        let look = || (Work::Sweep, Task::Look(MONITOR, receivers.into_iter().take(MOST_ASKED).collect()));
        [reclaims, looks.then(look)]
    }

    /// Returns whether the ledger awaits something of any core.
    pub fn await_any(&self) -> bool {
        self.awaited != Cores::NONE
    }

    /// Returns whether the ledger awaits something of this core.
    pub fn await_it(&self, core: u64) -> bool {
        self::core(core).is_some_and(|core| self.awaited.has(core))
    }

    /// Returns the time until which the main thread may sleep.
    pub const fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

/// Returns whether an event is about capabilities.
pub const fn is_line(event: u16) -> bool {
    matches!(event, operation::AGREE..=operation::DROP | operation::LOST | operation::LINK | operation::ENDPOINT)
}
