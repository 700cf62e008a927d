//! Endpoints and notifications that are reached from other cores: one monitor's ledger.
//!
//! ```text
//!       core of the endpoint                                 caller's core
//!   server ◀── held: a copy, which has a number ◀═ FORWARD ═ proxy: an endpoint where the monitor receives ◀── process
//! ```
//! An endpoint stays on its core, and so does every capability to it. What is sent is the number under which the
//! monitor there *holds* a copy; the other monitor makes a *proxy* for it. A request that arrives at a proxy is
//! forwarded, and the call is made with the held copy. So revoking the capability also ends the access of other cores,
//! at once and without asking them.
//!
//! All badged capabilities share one proxy endpoint, in which the badge is the proxy's name. The holder of an unbadged
//! capability can make badges, so its proxy is an endpoint of its own, and the badge is sent with the request.
//!
//! A capability to a proxy that is sent back to the core of its endpoint becomes a copy of the held one there. To a
//! third core it is an endpoint like any other, which is held here. A badge that was made at a proxy is revoked where
//! it was made: there, and on all cores that reach the endpoint over that core. What has come back from there is no
//! longer derived from it.
//!
//! Notifications are reached in the same way: a signal at a proxy is [sent](Proxies::next_signal) to their core, and
//! given there with the held copy. The holder of a badged notification can signal only its badge, so all such proxies
//! share one notification, bound to the monitor's main thread: each is a bit of it. A proxy of an unbadged notification
//! is a notification of its own, at which a thread waits, and the bits are sent. Before a proxy is removed, pending
//! signals are collected, so that none is lost.
//!
//! Proxies that nobody holds any more are found by asking the kernel ([`sweep`](Proxies::sweep)). Their owner is told,
//! and no longer holds the copy. A number is never used again; messages about it go through one channel, in the order
//! of events.
//!
//! System calls are behind the trait [`Kernel`].

mod ends;
mod held;
mod signals;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use tench_abi::power::Powers;
use tench_abi::{CapAddress, Error as KernelError, Rights};
use tench_quota::{Client, Quota};

use crate::message::carried::{Carried, NAME_SHIFT, ObjectClass, REQUESTER, RIGHTS, Server};
use crate::transfer::attachments::UNCLAIMED;
use crate::transfer::exchange::mailbox::MAX_TRANSFERS;
use held::{Held, Holdings};
use signals::Signals;

/// Maximum number of a monitor's proxies, shared by the clients that requested them.
pub const PROXIES: usize = 512;
/// Maximum number of proxies that are endpoints or notifications of their own, each with a receiving thread.
pub const OWN_PROXIES: usize = 64;
/// First bit of the common notification that can be a proxy. The lower ones are the monitor's.
pub const FIRST_BIT: u32 = 8;
/// Maximum number of proxies that are bits of the common notification.
pub const BITS: usize = (u64::BITS - FIRST_BIT) as usize;
/// Maximum number of copies held for each other core: as many as it can have proxies, and some that are on their way.
const HELD: usize = 2 * PROXIES;
/// Maximum number of releases queued for a core: as many as it holds copies for this core, and attachments of messages
/// that were not sent.
const RELEASED: usize = HELD + MAX_TRANSFERS;
// There is always an unused name, also while all proxies are being closed.
const _: () = assert!(1_u64 << (u64::BITS - NAME_SHIFT) > 8 * PROXIES as u64);
/// A slot's content, if it is a capability to an object that is reached from other cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Class of the object.
    pub class: ObjectClass,
    /// Identity of the object: its physical address.
    pub physical: u64,
    /// Badge, or 0 if there is none.
    pub badge: u64,
    /// Rights of the capability.
    pub rights: Rights,
}

/// The kernel's operations on endpoints and notifications. Slots are the monitor's own.
pub trait Kernel {
    /// Returns a slot's content, or `None` if it is neither an endpoint nor a notification.
    fn look(&self, slot: CapAddress) -> Option<Found>;
    /// Returns whether others hold the object.
    fn is_used(&self, slot: CapAddress) -> bool;
    /// Deletes the slot's capability, and frees the slot.
    fn delete(&mut self, slot: CapAddress);
    /// Makes a copy with at most these rights and, if the badge is not 0, with this badge.
    fn copy(&mut self, slot: CapAddress, rights: Rights, badge: u64) -> Result<CapAddress, KernelError>;
    /// Makes a badged capability to the endpoint that proxies share.
    fn common(&mut self, badge: u64, rights: Rights) -> Result<CapAddress, KernelError>;
    /// Makes a capability that signals these bits at the notification that proxies share.
    fn bits(&mut self, bits: u64) -> Result<CapAddress, KernelError>;
    /// Makes a proxy of its own, at which the monitor receives from now on. Returns the only capability to it, and its
    /// physical address.
    fn open(&mut self, proxy: u64, class: ObjectClass) -> Result<(CapAddress, u64), KernelError>;
    /// Deletes a proxy of its own that nobody else holds. Returns false if signals from it may still come; when they
    /// have, [`closed`](Proxies::closed) is called.
    fn close(&mut self, proxy: u64) -> bool;
    /// Returns the bits signalled at the common notification that have not been passed to
    /// [`signalled`](Proxies::signalled) yet.
    fn drain(&mut self) -> u64;
    /// Signals with a slot's capability; if it has no badge, with these bits.
    fn signal(&mut self, slot: CapAddress, bits: u64);
}

tench_protocol::codes! {
    /// Why a capability does not reach another core.
    pub enum Error {
        /// The capability is not to an endpoint or a notification, or lacks the right to send or signal.
        NotSendable = 1, "only endpoints, to call them, and notifications, to signal them, can be sent with a message to another core";
        /// There is no room for more.
        Full = 2, "too many endpoints and notifications of other cores are in use";
        /// The capability has been revoked meanwhile, another monitor names something that it does not have, or the
        /// core has stopped.
        Gone = 3, "the capability was revoked on its way, or the other core has stopped";
    }
}

/// Form of a proxy.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A badge of the common endpoint.
    Badge,
    /// These bits of the common notification.
    Bits(u64),
    /// An endpoint or a notification of its own, at this physical address.
    Own(u64),
}

/// A proxy of an object of another core.
#[derive(Clone, Copy, Debug)]
struct Proxy {
    owner: u64,
    number: u64,
    /// Slot of the original capability, of which all others are copies.
    slot: CapAddress,
    form: Form,
    requester: u64,
}

/// Target of requests to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The core of the object.
    pub core: u64,
    /// Number under which that core holds it.
    pub number: u64,
}

/// Physical addresses of the endpoint and the notification that most proxies share.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// The endpoint of badged proxies.
    pub endpoint: u64,
    /// The notification of badged proxies.
    pub notification: u64,
}

/// The ledger.
pub struct Proxies<K> {
    kernel: K,
    common: Common,
    held: Holdings,
    proxies: BTreeMap<u64, Proxy>,
    /// Proxies that are endpoints or notifications of their own, by physical address.
    by_address: BTreeMap<u64, u64>,
    /// Proxies that are bits of the common notification, by bits.
    bits: BTreeMap<u64, u64>,
    /// Proxies that nobody holds any more, and whose signals may still come.
    closing: BTreeMap<u64, Proxy>,
    signals: Signals,
    requesters: Quota,
    /// Quota of proxies that are endpoints or notifications of their own.
    openers: Quota,
    /// Quota of proxies that are bits.
    signallers: Quota,
    /// Set if a copy held here that was dropped may have been the last capability to a proxy.
    is_stale: bool,
    /// Releases by owner that have not been sent yet.
    released: BTreeMap<u64, VecDeque<u64>>,
    /// Cores that have stopped.
    lost: BTreeSet<u64>,
    /// Counter in the name of the last proxy.
    named: u64,
}

impl<K: Kernel> Proxies<K> {
    /// Returns an empty ledger.
    pub fn new(kernel: K, common: Common) -> Proxies<K> {
        Proxies {
            kernel,
            common,
            held: Holdings::new(),
            proxies: BTreeMap::new(),
            by_address: BTreeMap::new(),
            bits: BTreeMap::new(),
            closing: BTreeMap::new(),
            signals: Signals::new(),
            requesters: Quota::new(PROXIES),
            openers: Quota::new(OWN_PROXIES),
            signallers: Quota::new(BITS),
            is_stale: false,
            released: BTreeMap::new(),
            lost: BTreeSet::new(),
            named: 0,
        }
    }

    /// Returns the kernel.
    pub const fn kernel(&mut self) -> &mut K {
        &mut self.kernel
    }

    // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Exports a slot's capability to a core, and returns its description. The slot is consumed, whatever the result.
    /// `server` returns the server whose endpoint is at a physical address.
    pub fn send(
        &mut self,
        slot: CapAddress,
        to: u64,
        server: impl FnOnce(&Found) -> Option<Server>,
    ) -> Result<Carried, Error> {
        let found = self.kernel.look(slot).filter(|found| found.rights.contains(Rights::WRITE));
        let Some(found) = found else {
            self.kernel.delete(slot);
            return Err(Error::NotSendable);
        };
        // A stopped core would never send a release.
        if self.lost.contains(&to) {
            self.kernel.delete(slot);
            return Err(Error::Gone);
        }
        let (class, rights) = (found.class, found.rights & found.class.rights());
        let proxy = self.proxy_of(&found);
        if let Some(proxy) = proxy.filter(|proxy| proxy.owner == to) {
            self.kernel.delete(slot);
            let badge = if matches!(proxy.form, Form::Own(_)) { found.badge } else { 0 };
            return Ok(Carried::Returned { number: proxy.number, rights, badge });
        }
        if !self.held.has_capacity(to) {
            self.kernel.delete(slot);
            return Err(Error::Full);
        }
        let server = if class == ObjectClass::Endpoint { server(&found) } else { None };
        let held = Held { slot, class, to, badge: found.badge, server, is_proxy: proxy.is_some() };
        Ok(Carried::Held { class, number: self.held.hold(held), rights, is_plain: found.badge == 0, server })
    }

    /// Returns the proxy that a capability is to, if it is to one.
    fn proxy_of(&self, found: &Found) -> Option<Proxy> {
        let name = match found.physical {
            physical if physical == self.common.endpoint => Some(&found.badge),
            physical if physical == self.common.notification => self.bits.get(&found.badge),
            physical => self.by_address.get(&physical),
        };
        name.and_then(|name| self.proxies.get(name)).copied()
    }

    /// Takes back the capabilities of a message that was not sent to a core: held copies are dropped, and attachments
    /// that have arrived there are released.
    pub fn take_back(&mut self, carried: &[Carried], to: u64) {
        for carried in carried {
            match carried {
                Carried::Held { number, .. } => {
                    let held = self.held.let_go(*number);
                    self.drop_held(held);
                }
                Carried::Memory { number } => self.release(to, number | UNCLAIMED),
                Carried::Returned { .. } => {}
            }
        }
    }

    fn drop_held(&mut self, held: Option<Held>) {
        let Some(held) = held else { return };
        self.kernel.delete(held.slot);
        self.is_stale |= held.is_proxy;
    }

    // ── Receiving ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Makes a capability from a core's description, for `requester`, in a slot that the caller then owns.
    pub fn receive(&mut self, carried: &Carried, from: u64, requester: Client) -> Result<CapAddress, Error> {
        match *carried {
            Carried::Returned { number, rights, badge } => {
                let made = self.copy(number, from, rights, badge)?;
                if badge == 0 {
                    return Ok(made);
                }
                // The capability from which a badge was made can revoke all capabilities with that badge. This is
                // reserved for the maker of the badge.
                let copy = self.kernel.copy(made, rights, 0);
                self.kernel.delete(made);
                copy.map_err(|_| Error::Full)
            }
            Carried::Held { class, number, rights, is_plain, .. } => {
                let made = self.make((from, number), class, rights, is_plain, requester);
                if made.is_err() {
                    self.release(from, number);
                }
                made
            }
            // Memory is in the mailbox.
            Carried::Memory { .. } => Err(Error::NotSendable),
        }
    }

    /// Rejects a description that came from a core: the core need not hold the capability.
    pub fn take_in_vain(&mut self, carried: &Carried, from: u64) {
        if let Carried::Held { number, .. } = carried {
            self.release(from, *number);
        }
    }

    /// Makes a copy of what is held under a number for a core.
    pub fn copy(&mut self, number: u64, core: u64, rights: Rights, badge: u64) -> Result<CapAddress, Error> {
        let held = self.held.held_for(core, number).ok_or(Error::Gone)?;
        self.kernel.copy(held.slot, rights, badge).map_err(|error| match error {
            KernelError::OutOfMemory => Error::Full,
            _ => Error::Gone,
        })
    }

    /// Returns the server whose endpoint is held under a number, and the process for which it was made, if both are
    /// known.
    pub fn client(&self, number: u64) -> Option<(u8, Client)> {
        let held = self.held.at(number)?;
        held.server.filter(|server| server.is_personal).map(|server| (server.number, Client::of_badge(held.badge)))
    }

    fn make(
        &mut self,
        (owner, number): (u64, u64),
        class: ObjectClass,
        rights: Rights,
        is_plain: bool,
        requester: Client,
    ) -> Result<CapAddress, Error> {
        if !self.may_make(class, is_plain, requester) {
            self.sweep();
        }
        if !self.may_make(class, is_plain, requester) {
            return Err(Error::Full);
        }
        let name = self.name(requester);
        let (slot, form) = self.form(name, class, is_plain)?;
        let Ok(copy) = self.kernel.copy(slot, rights & class.rights(), 0) else {
            match form {
                // Nobody has held it, so no signal can come.
                Form::Own(_) => drop(self.kernel.close(name)),
                Form::Badge | Form::Bits(_) => self.kernel.delete(slot),
            }
            return Err(Error::Full);
        };
        self.requesters.take(requester);
        match form {
            Form::Badge => {}
            Form::Bits(bits) => {
                self.signallers.take(requester);
                self.bits.insert(bits, name);
            }
            Form::Own(physical) => {
                self.openers.take(requester);
                self.by_address.insert(physical, name);
            }
        }
        if class == ObjectClass::Notification {
            self.signals.add_proxy(name, owner, number);
        }
        self.proxies.insert(name, Proxy { owner, number, slot, form, requester: requester.process });
        Ok(copy)
    }

    /// Makes the proxy of this name.
    fn form(&mut self, name: u64, class: ObjectClass, is_plain: bool) -> Result<(CapAddress, Form), Error> {
        let made = match (is_plain, class) {
            (true, class) => self.kernel.open(name, class).map(|(slot, physical)| (slot, Form::Own(physical))),
            (false, ObjectClass::Endpoint) => self.kernel.common(name, RIGHTS).map(|slot| (slot, Form::Badge)),
            (false, ObjectClass::Notification) => {
                let mut all = (FIRST_BIT..u64::BITS).map(|bit| 1 << bit);
                let bits = all.find(|bits| !self.bits.contains_key(bits)).ok_or(Error::Full)?;
                self.kernel.bits(bits).map(|slot| (slot, Form::Bits(bits)))
            }
        };
        made.map_err(|_| Error::Full)
    }

    fn may_make(&self, class: ObjectClass, is_plain: bool, requester: Client) -> bool {
        let may_take = match (is_plain, class) {
            (true, _) => self.openers.may_take(requester),
            (false, ObjectClass::Notification) => self.signallers.may_take(requester),
            (false, ObjectClass::Endpoint) => true,
        };
        may_take && self.requesters.may_take(requester)
    }

    /// Returns a new name for a proxy, which is a badge. It contains the
    /// [requester](crate::message::carried::requester_of), to which requests are charged.
    fn name(&mut self, requester: Client) -> u64 {
        loop {
            self.named = self.named.wrapping_add(1);
            let name = self.named << NAME_SHIFT | requester.badge(Powers::empty()) & REQUESTER;
            let is_used = self.proxies.contains_key(&name) || self.closing.contains_key(&name);
            if name != 0 && !is_used {
                return name;
            }
        }
    }

    /// Returns the target of a proxy.
    pub fn target(&self, proxy: u64) -> Option<Target> {
        self.proxies.get(&proxy).map(|proxy| Target { core: proxy.owner, number: proxy.number })
    }

    /// Returns whether there are proxies for [`sweep`](Self::sweep).
    pub fn has_proxies(&self) -> bool {
        !self.proxies.is_empty()
    }

    /// Returns whether there are no proxies, and nothing is to be sent.
    pub fn is_quiet(&self) -> bool {
        let is_all_sent = self.closing.is_empty() && !self.has_signals() && !self.held.has_parted();
        self.proxies.is_empty() && is_all_sent && self.released.is_empty()
    }

    /// Returns whether a sweep may find something new, because a held copy was dropped.
    pub const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Returns the number of held copies, and of proxies.
    pub fn count(&self) -> (usize, usize) {
        (self.held.count(), self.proxies.len() + self.closing.len())
    }
}
