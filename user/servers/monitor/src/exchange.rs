//! Capabilities that are sent to processes of any core: the books of one monitor, around the protocol's
//! ([`tench_foreign`]).
//!
//! ```text
//!      sender's core                         owner's core                    receiver's core
//!   give ──▶ ADMIT ─────────────────────────────────────────────────────────▶ is there such a process? ticket
//!            parcel ◀──────────────────────────────────────────────────────── ticket
//!            step(Send) ── ADDRESS (request, ticket) ───────────────────────▶ mail
//!                       ── Ask ──────────────▶ export, Grant ───────────────▶ import ─▶ mail ─▶ take
//! ```
//! (Mostly the sender's core is the owner's as well, and there is no `Ask`.) A receiver on the sender's own core gets
//! the capability without the protocol.
//!
//! Endpoints stay on their core: [what is said about them](crate::proxies) is said in the place of what the protocol
//! says.
//!
//! Of each object that left this core the monitor has a *stand-in*, and of each that came a *root*, of which those that
//! clients have are copies. A root that nobody uses any more is found by asking the kernel ([`poll`](Exchange::poll)).
//!
//! Everything here is done at once, but deleting what another core takes back: that is [handed
//! out](Exchange::deletion), to be done elsewhere. What makes system calls is behind [`Kernel`], and who waits for
//! answers is a type of the caller's.

mod hands;
pub mod line;
pub mod mail;
mod others;

use alloc::vec::Vec;

use tench_abi::power::{Client, identity};
use tench_abi::{CapAddress, Error as Refusal, Rights};
use tench_foreign::{
    Core, Cores, Effects, Error as Foreign, Input, Kind, Limits, Machine, ObjectId, Send, Sent, Shape, Stage, Token,
};
use tench_monitor_client::protocol::Error;

pub use hands::Done;
use hands::{Hands, Purpose, Recall};
use mail::Letter;

/// What a monitor keeps books of at most.
pub const LIMITS: Limits = Limits { exports: 1024, holders: 4096, copies: 1024, requests: 128 };
/// Wishes for channels that wait, at most.
const MOST_LINKS: usize = 4096;
/// The process that stands for a core's monitor.
pub const MONITOR: u64 = 0;

/// What lies in a slot, if it can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub shape: Shape,
    /// What it allows.
    pub rights: Rights,
    /// It is a copy of something of another core's.
    pub is_borrowed: bool,
}

/// The kernel, as far as capabilities leave their core. Slots are the monitor's own.
pub trait Kernel {
    /// What lies in a slot. `None` if it is nothing that can be sent.
    fn look(&self, slot: CapAddress) -> Option<Found>;
    /// Makes it a stand-in.
    fn export(&mut self, slot: CapAddress) -> Result<(), Refusal>;
    /// Makes it an ordinary capability again.
    fn unexport(&mut self, slot: CapAddress) -> Result<(), Refusal>;
    /// Makes the root of something of another core's, in a slot that it takes.
    fn import(&mut self, shape: &Shape) -> Result<CapAddress, Refusal>;
    /// Makes what can be given to a client of what lies in a slot: a copy, or of untyped memory all of it.
    fn copy(&mut self, slot: CapAddress, kind: Kind, rights: Rights) -> Result<CapAddress, Refusal>;
    /// Whether anybody else has it, or something was made of it.
    fn is_used(&self, slot: CapAddress) -> bool;
    /// Whether somebody wanted to delete a stand-in, and was told that there are copies.
    fn is_wanted(&self, slot: CapAddress) -> bool;
    /// Deletes it, and gives the slot back.
    fn delete(&mut self, slot: CapAddress);
    /// Whether another core is off: it executes nothing, and never will.
    fn is_off(&self, core: Core) -> bool;
}

/// A capability on its way to a process, with a ticket of the core it goes to.
#[derive(Debug)]
pub struct Parcel<P> {
    /// Who is answered.
    pub who: Option<P>,
    /// Where it lies; the exchange deletes it in the end.
    pub slot: Option<CapAddress>,
    /// Who sends it: the badge of the process, without powers.
    pub from: u64,
    /// To which core.
    pub to: Core,
    /// The place in the mail there.
    pub ticket: u64,
    /// What the kernel said.
    refusal: Option<Refusal>,
}

impl<P> Parcel<P> {
    /// What lies in `slot`, for who holds the ticket.
    pub const fn new(who: Option<P>, slot: CapAddress, from: u64, to: Core, ticket: u64) -> Parcel<P> {
        Parcel { who, slot: Some(slot), from, to, ticket, refusal: None }
    }
}

/// In the words of the monitor's interface.
fn reason(error: Foreign, refusal: Option<Refusal>) -> Error {
    match error {
        Foreign::UnknownCore => Error::NoSuchCore,
        Foreign::NotOwner | Foreign::Borrowed => Error::Borrowed,
        Foreign::BeingRevoked => Error::BeingRevoked,
        Foreign::Lent => Error::Lent,
        Foreign::InUse => Error::InUse,
        Foreign::NotBorrowed | Foreign::UnknownObject => Error::NotForeign,
        Foreign::TooManyExports | Foreign::TooManyHolders | Foreign::TooManyCopies => Error::TooManyObjects,
        Foreign::TooManyRequests => Error::Full,
        Foreign::CoreLost | Foreign::OwnerLost => Error::CoreLost,
        Foreign::NoReceiver => Error::MailboxFull,
        Foreign::Kernel if refusal == Some(Refusal::DeviceMemory) => Error::DeviceMemory,
        Foreign::Kernel => Error::Refused,
        Foreign::NotHolder | Foreign::ToSelf | Foreign::TooManyRights | Foreign::MemoryWithdrawn => Error::Internal,
    }
}

/// The books of one monitor. `P` is who waits for an answer.
pub struct Exchange<K, P> {
    machine: Machine,
    hands: Hands<K, P>,
    malformed: u64,
}

impl<K: Kernel, P> Exchange<K, P> {
    /// Of this core among so many. `None` if there can be no such core.
    pub fn new(core: u64, cores: u64, kernel: K) -> Option<Exchange<K, P>> {
        let (core, count) = (Core::new(u8::try_from(core).ok()?)?, u8::try_from(cores).ok()?);
        // Each message can have a line before it that says for whom it is, or behind it that it did not come.
        let most = 2 * LIMITS.messages(usize::from(count)) + LIMITS.requests;
        let machine = Machine::new(core, count, &LIMITS)?;
        Some(Exchange { machine, hands: Hands::new(core, kernel, most), malformed: 0 })
    }

    fn step(&mut self, input: Input) {
        // What is senseless was counted by the machine, and is over.
        let _ = self.machine.step(input, &mut self.hands);
    }

    // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Whether what lies in a slot can be sent to somebody.
    pub fn check(&self, slot: CapAddress) -> Result<(), Error> {
        self.hands.kernel.look(slot).map(drop).ok_or(Error::NotSendable)
    }

    /// Keeps a place for what a process of a core will send to one of this core.
    pub fn reserve(&mut self, sender: Core, from: u64, to: Client, word: u64) -> Result<u64, Error> {
        self.hands.mail.reserve(sender, from, to, word)
    }

    /// Whether somebody may send one more to this core.
    pub fn has_room(&self, from: u64) -> bool {
        self.hands.mail.has_room(from)
    }

    /// Sends something for which there is a ticket.
    pub fn send(&mut self, mut parcel: Parcel<P>) {
        let slot = parcel.slot;
        let Some((slot, found)) = slot.and_then(|slot| Some((slot, self.hands.kernel.look(slot)?))) else {
            // Somebody took it back meanwhile.
            return self.hands.finish(parcel, Err(Error::BeingRevoked));
        };
        if parcel.to == self.hands.core {
            parcel.slot = None;
            self.hands.mail.put(parcel.to, parcel.ticket, slot);
            return self.hands.finish(parcel, Ok(()));
        }
        if found.shape.kind == Kind::Endpoint {
            return self.hands.leaving.push_back(parcel);
        }
        let what = match found.is_borrowed {
            false => Sent::Own(found.shape),
            true => match self.root_of(&found.shape) {
                Some(object) => Sent::Foreign(object),
                None => return self.hands.finish(parcel, Err(Error::BeingRevoked)),
            },
        };
        if !self.hands.askers.may_take(Client::of_badge(parcel.from)) {
            return self.hands.finish(parcel, Err(Error::Full));
        }
        self.hands.askers.take(Client::of_badge(parcel.from));
        let rights = if found.shape.kind == Kind::Untyped { Rights::empty() } else { found.rights };
        let (token, to) = (self.hands.name(), parcel.to);
        self.hands.requests.insert(token, Purpose::Send(parcel));
        self.hands.current = Some(token);
        self.step(Input::Send { token: Token(token), send: Send { what, to, rights } });
        self.hands.current = None;
    }

    /// Gives up a parcel that has no ticket.
    pub fn refuse(&mut self, who: Option<P>, slot: CapAddress, why: Error) {
        self.hands.kernel.delete(slot);
        if let Some(who) = who {
            self.hands.done.push_back(Done::Answer(who, Err(why)));
        }
    }

    fn root_of(&self, shape: &Shape) -> Option<ObjectId> {
        self.hands.roots.iter().find(|(_, root)| root.shape == *shape).map(|(object, _)| *object)
    }

    // ── Taking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Somebody waits for the next letter. If too many do, it is refused.
    pub fn take(&mut self, client: Client, who: P) {
        if let Err(who) = self.hands.mail.wait(client, who) {
            self.hands.done.push_back(Done::Answer(who, Err(Error::Full)));
        }
    }

    /// Returns whether one more of a client may wait for a letter.
    pub fn may_wait(&self, client: Client) -> bool {
        self.hands.mail.may_wait(client)
    }

    /// Takes out those who wait for letters and have gone.
    pub fn forget(&mut self, has_gone: impl Fn(&P) -> bool) -> Vec<P> {
        self.hands.mail.forget(has_gone)
    }

    /// Whoever was to get a letter has gone.
    pub fn put_back(&mut self, letter: Letter) {
        self.hands.mail.put_back(letter);
    }

    /// The processes for which letters lie here.
    pub fn receivers(&self) -> Vec<u64> {
        self.hands.mail.receivers()
    }

    /// A process has ended.
    pub fn end(&mut self, process: u64) {
        for slot in self.hands.mail.end(process) {
            self.hands.kernel.delete(slot);
        }
    }

    /// Who is to be answered next.
    pub fn done(&mut self) -> Option<Done<P>> {
        while let Some(slot) = self.hands.mail.peek() {
            if self.hands.kernel.look(slot).is_some() {
                break;
            }
            // Whoever sent it has revoked it meanwhile.
            self.hands.mail.discard(slot);
            self.hands.kernel.delete(slot);
        }
        let letter = || self.hands.mail.hand_out().map(|(who, letter)| Done::Letter(who, letter));
        self.hands.done.pop_front().or_else(letter)
    }

    // ── Taking back ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Takes back from all other cores what the capability in a slot is to, if whoever asks has sent it there. That he
    /// has a capability to it says nothing: he may have been given a copy, as they have. (Whose it is tells the kernel,
    /// by revoking it: then it is [taken back](Self::poll), too.)
    pub fn revoke(&mut self, from: u64, slot: CapAddress, who: P) {
        let Some(found) = self.hands.kernel.look(slot) else {
            return self.hands.done.push_back(Done::Answer(who, Err(Error::NotSendable)));
        };
        if found.is_borrowed {
            return self.hands.done.push_back(Done::Answer(who, Err(Error::Borrowed)));
        }
        let is_others = |giver, shape: &Shape| *shape == found.shape && identity(giver) != identity(from);
        if !self.given(is_others).is_empty() {
            return self.hands.done.push_back(Done::Answer(who, Err(Error::NotAllowed)));
        }
        let objects = self.given(|_, shape| *shape == found.shape);
        self.take_back(from, Some(who), objects);
    }

    /// Takes back from all other cores what somebody has sent of a range of memory.
    pub fn recall(&mut self, giver: u64, base: u64, bytes: u64, who: P) {
        let end = base.saturating_add(bytes);
        let lies_in = |shape: &Shape| base <= shape.base && shape.base.saturating_add(shape.bytes) <= end;
        let objects = self.given(|sender, shape| identity(sender) == identity(giver) && lies_in(shape));
        self.take_back(giver, Some(who), objects);
    }

    /// What other cores have: by who gave it, and what it is. Of who gave it the family may not have been known, so the
    /// process counts.
    fn given(&self, is_it: impl Fn(u64, &Shape) -> bool) -> Vec<ObjectId> {
        let all = self.hands.stand_ins.iter();
        all.filter(|(_, stand_in)| is_it(stand_in.giver, &stand_in.shape)).map(|(object, _)| *object).collect()
    }

    fn take_back(&mut self, from: u64, who: Option<P>, objects: Vec<ObjectId>) {
        let number = self.hands.name();
        let left = objects.len();
        if left == 0 {
            self.hands.done.extend(who.map(|who| Done::Answer(who, Ok(()))));
            return;
        }
        self.hands.recalls.insert(number, Recall { who, from, left, result: Ok(()) });
        for object in objects {
            let token = self.hands.name();
            // Whoever takes back more than there is room for is refused the rest, and asks again.
            let may = from == 0 || self.hands.askers.may_take(Client::of_badge(from));
            self.hands.askers.take(Client::of_badge(from));
            self.hands.requests.insert(token, Purpose::Recall(number));
            if may {
                self.step(Input::Revoke { token: Token(token), object });
            } else {
                self.hands.answer(Token(token), Err(Foreign::TooManyRequests));
            }
        }
    }

    /// Gives back what another core owns, because nothing of it is used here any more: what begins at an address.
    pub fn give_back(&mut self, base: u64) -> Result<(), Error> {
        let roots = self.hands.roots.iter();
        let objects: Vec<ObjectId> =
            roots.filter(|(_, root)| root.shape.base == base).map(|(object, _)| *object).collect();
        if objects.is_empty() {
            return Err(Error::NotForeign);
        }
        for object in &objects {
            self.step(Input::Unused { object: *object });
        }
        if objects.iter().any(|object| self.hands.roots.contains_key(object)) { Err(Error::InUse) } else { Ok(()) }
    }

    // ── The kernel ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Asks the kernel which roots nobody uses any more, and takes back of what is on other cores that somebody here
    /// wanted to delete.
    pub fn poll(&mut self) {
        let kernel = &self.hands.kernel;
        let unused = |copy: &&tench_foreign::Copy| {
            let root = self.hands.roots.get(&copy.object);
            copy.stage == Stage::Held && root.is_some_and(|root| !root.is_kept && !kernel.is_used(root.slot))
        };
        let objects: Vec<ObjectId> = self.machine.copies().filter(unused).map(|copy| copy.object).collect();
        for object in objects {
            self.step(Input::Unused { object });
        }
        let kernel = &self.hands.kernel;
        let wanted = self.hands.stand_ins.iter().filter(|(_, stand_in)| kernel.is_wanted(stand_in.slot));
        let wanted = wanted.map(|(object, _)| *object).collect();
        self.take_back(0, None, wanted);
        for slot in core::mem::take(&mut self.hands.stubborn) {
            if !self.hands.release(slot) {
                self.hands.stubborn.push(slot);
            }
        }
    }

    /// Whether anything is here that [`poll`](Self::poll) looks at, or letters whose receivers may end.
    pub fn is_idle(&self) -> bool {
        self.roots() == 0 && !self.has_exports() && self.hands.stubborn.is_empty() && !self.hands.mail.has_letters()
    }

    /// Whether there is nothing to do for anybody, either: nobody to be answered, nothing to be said, deleted or asked
    /// for.
    pub fn is_quiet(&self) -> bool {
        let hands = &self.hands;
        hands.unsaid == 0
            && hands.done.is_empty()
            && hands.deletions.is_empty()
            && hands.leaving.is_empty()
            && hands.arriving.is_empty()
            && hands.links.is_empty()
            && hands.returned.is_empty()
            && hands.wanted.and(hands.overdue) == Cores::NONE
            && !hands.has_lost
            && self.is_idle()
    }

    /// Whether a core has stopped since this was asked last.
    pub fn has_lost(&mut self) -> bool {
        core::mem::take(&mut self.hands.has_lost)
    }

    /// Memory that this monitor itself gave to another core, and that has come back: its address.
    pub fn returned(&mut self) -> Option<u64> {
        self.hands.returned.pop()
    }

    /// Whether something of this core's is on others.
    pub fn has_exports(&self) -> bool {
        self.stand_ins() > 0
    }

    /// Without the channels of the monitors themselves.
    fn stand_ins(&self) -> usize {
        if self.hands.stand_ins.is_empty() {
            return 0;
        }
        self.hands.stand_ins.values().filter(|stand_in| !stand_in.is_own()).count()
    }

    fn roots(&self) -> usize {
        if self.hands.roots.is_empty() {
            return 0;
        }
        self.hands.roots.values().filter(|root| !root.is_kept).count()
    }

    /// What is to be deleted next: the root in a slot, all that was made of it and copied from it, and then
    /// [that is to be said](Self::deleted).
    ///
    /// With it comes the core to which it was the monitor's own channel, which is not to be used any more from now on.
    pub fn deletion(&mut self) -> Option<(ObjectId, CapAddress, Option<Core>)> {
        let object = self.hands.deletions.pop_front()?;
        // What of it was lent on to a core that has stopped goes with it.
        let exports = self.machine.exports();
        let given_up: Vec<ObjectId> =
            exports.filter(|(_, export)| export.given_up && export.within == Some(object)).map(|(id, _)| id).collect();
        for export in given_up {
            // The kernel does not let it go before what was lent back from there is gone.
            if let Some(stand_in) = self.hands.stand_ins.remove(&export) {
                self.hands.givers.give_back(stand_in.giver);
                if !self.hands.release(stand_in.slot) {
                    self.hands.stubborn.push(stand_in.slot);
                }
            }
        }
        self.hands.roots.get(&object).map(|root| (object, root.slot, root.link))
    }

    /// A deletion could not be begun.
    pub fn postpone(&mut self, object: ObjectId) {
        self.hands.deletions.push_front(object);
    }

    /// Whether something waits to be deleted.
    pub fn has_deletions(&self) -> bool {
        !self.hands.deletions.is_empty()
    }

    /// Nothing is left of a root but the root itself.
    pub fn deleted(&mut self, object: ObjectId) {
        if let Some(root) = self.hands.roots.remove(&object) {
            self.hands.kernel.delete(root.slot);
        }
        self.step(Input::Deleted { object });
    }

    // ── Books ────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Objects of this core on others, objects of others here, and letters.
    pub fn count(&self) -> (usize, usize, usize) {
        (self.stand_ins(), self.roots(), self.hands.mail.count().0)
    }

    /// What was said or done that no monitor says or does: by others, and what the machine found.
    pub fn faults(&self) -> u64 {
        self.malformed + self.machine.faults()
    }

    /// Requests that are not answered.
    pub fn requests(&self) -> usize {
        self.hands.requests.len()
    }

    /// The kernel.
    pub fn kernel(&mut self) -> &mut K {
        &mut self.hands.kernel
    }
}
