//! Endpoints and notifications that are reached from other cores: the books of one monitor.
//!
//! ```text
//!       core of the endpoint                                 core of who calls
//!   server ◀── held: a copy, which has a number ◀═ FORWARD ═ proxy: an endpoint at which the monitor receives ◀── process
//! ```
//! An endpoint stays on its core, and so does every capability to it. What travels is the number under which the
//! monitor there *holds* a copy; the other monitor makes a *proxy* for it. A request that arrives at a proxy is
//! forwarded, and made with the copy that is held. So whoever revokes the capability revokes what other cores can do
//! with it, at once and without asking them.
//!
//! All capabilities with a badge have one proxy between them: in it, the badge says which. For one without a badge,
//! whoever has it can make badges, so its proxy is an endpoint of its own, and the badge travels with the request.
//!
//! A capability to a proxy that comes back to the core of its endpoint is a copy of the one that is held. To a third
//! core it is an endpoint like any other, which is held here. A badge that was made at a proxy is revoked where it was
//! made: there, and on all cores that reach the endpoint over that one. What has come back from there has nothing to do
//! with it any more.
//!
//! Notifications are reached in the same way: what is signalled at a proxy is [said](Proxies::next_signal) to their
//! core, where it is signalled with the copy that is held. Whoever has one with a badge can signal nothing else, so all
//! such have one notification between them, which is bound to the monitor's main thread: each is a bit of it. One
//! without a badge gets a notification of its own, at which a thread waits, and the bits travel. Before a proxy is let
//! go it is looked what was signalled there, so that nothing that was is lost.
//!
//! Proxies that nobody has any more are found by asking the kernel ([`sweep`](Proxies::sweep)). Their owner is told,
//! and holds the copy no longer. A number is never used again; what is said about it goes through one channel, in the
//! order in which it happens.
//!
//! What makes system calls is behind [`Kernel`].

mod ends;
mod held;
mod signals;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use tench_abi::power::{self, Powers};
use tench_abi::{CapAddress, Error as Refusal, Rights};
use tench_places::{Client, Places};

use crate::exchange::mail::LETTERS;
use crate::freight::UNCLAIMED;
use crate::message::Malformed;
use held::{Held, Holdings};
use signals::Signals;

/// Proxies that a monitor has at most, for those who asked for them.
pub const PROXIES: usize = 512;
/// Those of them that are endpoints or notifications of their own, at each of which a thread receives.
pub const OWN_PROXIES: usize = 64;
/// The first bit of the common notification that can be a proxy. Those before are the monitor's.
pub const FIRST_BIT: u32 = 8;
/// How many there can be.
pub const BITS: usize = (u64::BITS - FIRST_BIT) as usize;
/// Copies that it holds for each other core at most: as many as there can be proxies of it, and some that are on their
/// way.
const HELD: usize = 2 * PROXIES;
/// Numbers that a core is to be told it need not keep, at most: as many as are held there for this one, and letters
/// with memory for messages that were not sent.
const RELEASED: usize = HELD + LETTERS;
/// Bits of a proxy's name below those that count: a badge without powers.
const NAME_SHIFT: u32 = power::SHIFT - 1;
/// Those bits.
const ASKER: u64 = (1 << NAME_SHIFT) - 1;
// There is always a name that no proxy has, also while all of them are being closed.
const _: () = assert!(1_u64 << (u64::BITS - NAME_SHIFT) > 8 * PROXIES as u64);
/// What can be done with an endpoint of another core: not receive.
const RIGHTS: Rights = Rights::WRITE.union(Rights::CALL).union(Rights::GRANT);

/// What is reached from other cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An endpoint, to be asked.
    Endpoint,
    /// A notification, to be signalled.
    Notification,
}

impl What {
    /// What can be done with it on other cores.
    const fn rights(self) -> Rights {
        match self {
            What::Endpoint => RIGHTS,
            What::Notification => Rights::WRITE,
        }
    }
}

/// What lies in a slot, if it is a capability to something that is reached from other cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// To what.
    pub what: What,
    /// Where that lies, by which it is told from others.
    pub place: u64,
    /// 0 if it has none.
    pub badge: u64,
    /// What it allows.
    pub rights: Rights,
}

/// The kernel, as far as endpoints and notifications are concerned. Slots are the monitor's own.
pub trait Kernel {
    /// What lies in a slot. `None` if it is neither.
    fn look(&self, slot: CapAddress) -> Option<Found>;
    /// Whether anybody else has it.
    fn is_used(&self, slot: CapAddress) -> bool;
    /// Deletes it, and gives the slot back.
    fn delete(&mut self, slot: CapAddress);
    /// A copy with no more than these rights and, if the badge is not 0, with this badge.
    fn copy(&mut self, slot: CapAddress, rights: Rights, badge: u64) -> Result<CapAddress, Refusal>;
    /// A capability with a badge to the proxy that all such have in common.
    fn common(&mut self, badge: u64, rights: Rights) -> Result<CapAddress, Refusal>;
    /// A capability that signals these bits at the notification that all proxies of notifications with badges have in
    /// common.
    fn bits(&mut self, bits: u64) -> Result<CapAddress, Refusal>;
    /// Makes a proxy of its own, at which the monitor receives from now on: the only capability to it, and where it
    /// lies.
    fn open(&mut self, proxy: u64, what: What) -> Result<(CapAddress, u64), Refusal>;
    /// Deletes it, because nobody else has it. Answers false if something that was signalled there may still come; when
    /// it has, [that is said](Proxies::closed).
    fn close(&mut self, proxy: u64) -> bool;
    /// What has been signalled at the common notification, and was not [taken in](Proxies::signalled) yet.
    fn drain(&mut self) -> u64;
    /// Signals with what lies in a slot; if it has no badge, these bits.
    fn signal(&mut self, slot: CapAddress, bits: u64);
}

/// A capability in a message between monitors, in two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// To something of the core that sends it, where it is held under a number.
    Held {
        /// To what.
        what: What,
        /// The number.
        number: u64,
        /// What it allows.
        rights: Rights,
        /// It has no badge, and whoever has it can give it one.
        is_plain: bool,
        /// The server whose endpoint it is, if the core that sends it has told the other of it.
        server: Option<Server>,
    },
    /// To something of the core that receives it, under the number that this one gave it.
    Returned {
        /// The number.
        number: u64,
        /// What it allows.
        rights: Rights,
        /// The badge that it was given since, or 0.
        badge: u64,
    },
    /// To memory, which has arrived before the message as a letter with this number ([`freight`](crate::freight)).
    Memory {
        /// The number.
        number: u64,
    },
}

/// One of the servers that cores know by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its number.
    pub number: u8,
    /// The badge is the process for which it was made. Otherwise, the server alone knows whose it is.
    pub is_personal: bool,
}

/// The number of the core's process server.
pub const PROCESSES: u8 = u8::MAX;
/// In the place of a server's number: nobody knows whose endpoint it is.
pub const NO_SERVER: u64 = u64::MAX - 2;
/// Bits of a number.
const NUMBER: u32 = 48;

impl Carried {
    /// Its words.
    pub const fn encode(&self) -> [u64; 2] {
        match *self {
            Carried::Held { what, number, rights, is_plain, server } => {
                let kind = match what {
                    What::Endpoint => 1 + is_plain as u64,
                    What::Notification => 5 + is_plain as u64,
                };
                let server = match server {
                    Some(Server { number, is_personal }) => (1 + number as u64) | (is_personal as u64) << 16,
                    None => 0,
                };
                [number | (rights.bits() as u64) << NUMBER | kind << 56, server]
            }
            Carried::Returned { number, rights, badge } => [number | (rights.bits() as u64) << NUMBER | 3 << 56, badge],
            Carried::Memory { number } => [number | 4 << 56, 0],
        }
    }

    /// What two words say.
    pub fn decode([first, second]: [u64; 2]) -> Result<Carried, Malformed> {
        let number = first & ((1 << NUMBER) - 1);
        let rights = Rights::from_bits((first >> NUMBER) as u8).filter(|rights| RIGHTS.contains(*rights));
        let (rights, kind) = (rights.ok_or(Malformed::Capability)?, first >> 56);
        let server = match (second & 0xffff, second >> 16) {
            (0, 0) => None,
            (server @ 1..=0x100, personal @ 0..=1) if kind < 3 => {
                Some(Server { number: (server - 1) as u8, is_personal: personal == 1 })
            }
            _ if kind == 3 => None,
            _ => return Err(Malformed::Capability),
        };
        match kind {
            1 | 2 => Ok(Carried::Held { what: What::Endpoint, number, rights, is_plain: kind == 2, server }),
            5 | 6 if What::Notification.rights().contains(rights) => {
                Ok(Carried::Held { what: What::Notification, number, rights, is_plain: kind == 6, server })
            }
            3 => Ok(Carried::Returned { number, rights, badge: second }),
            4 if rights.is_empty() && second == 0 => Ok(Carried::Memory { number }),
            _ => Err(Malformed::Capability),
        }
    }
}

tench_protocol::codes! {
    /// Why a capability does not reach another core.
    pub enum Error {
        /// It is to something else than an endpoint or a notification, or does not allow to send or signal anything to
        /// it.
        NotSendable = 1, "only endpoints, to call them, and notifications, to signal them, can be sent with a message to another core";
        /// There is no room for more.
        Full = 2, "too many endpoints and notifications of other cores are in use";
        /// It has been revoked meanwhile, another monitor names something that it does not have, or the core has
        /// stopped.
        Gone = 3, "the capability was revoked on its way, or the other core has stopped";
    }
}

/// Returns who asked for the proxy of this name.
pub const fn asker_of(name: u64) -> Client {
    Client::of_badge(name & ASKER)
}

/// How a proxy is made.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// As a badge of the common endpoint.
    Badge,
    /// As these bits of the common notification.
    Bits(u64),
    /// As an endpoint or a notification of its own, which lies here.
    Own(u64),
}

/// A proxy of something of another core's.
#[derive(Clone, Copy, Debug)]
struct Proxy {
    owner: u64,
    number: u64,
    /// The first capability to it, of which all others are copies.
    slot: CapAddress,
    form: Form,
    asker: u64,
}

/// A request at a proxy leads here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// To which core.
    pub core: u64,
    /// To what it holds under this number.
    pub number: u64,
}

/// Where the endpoint and the notification lie that most proxies have in common.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// Of capabilities with badges to endpoints.
    pub endpoint: u64,
    /// Of capabilities with badges to notifications.
    pub notification: u64,
}

/// The books.
pub struct Proxies<K> {
    kernel: K,
    /// Where the common endpoint and the common notification lie.
    common: Common,
    held: Holdings,
    proxies: BTreeMap<u64, Proxy>,
    /// Those that are endpoints or notifications of their own, by where these lie.
    places: BTreeMap<u64, u64>,
    /// Those that are bits of the common notification, by these.
    bits: BTreeMap<u64, u64>,
    /// Nobody has them any more, and something that was signalled there may still come.
    closing: BTreeMap<u64, Proxy>,
    signals: Signals,
    askers: Places,
    /// The same of those that are endpoints or notifications of their own.
    openers: Places,
    /// And of those that are bits.
    signallers: Places,
    /// A proxy may have been let go by what was held here.
    is_stale: bool,
    /// What is not needed any more, and whose owner is not told yet.
    released: BTreeMap<u64, VecDeque<u64>>,
    /// Cores that have stopped.
    lost: BTreeSet<u64>,
    /// The upper bits of the last proxy's name.
    named: u64,
}

impl<K: Kernel> Proxies<K> {
    /// None.
    pub fn new(kernel: K, common: Common) -> Proxies<K> {
        Proxies {
            kernel,
            common,
            held: Holdings::new(),
            proxies: BTreeMap::new(),
            places: BTreeMap::new(),
            bits: BTreeMap::new(),
            closing: BTreeMap::new(),
            signals: Signals::new(),
            askers: Places::new(PROXIES),
            openers: Places::new(OWN_PROXIES),
            signallers: Places::new(BITS),
            is_stale: false,
            released: BTreeMap::new(),
            lost: BTreeSet::new(),
            named: 0,
        }
    }

    /// The kernel.
    pub const fn kernel(&mut self) -> &mut K {
        &mut self.kernel
    }

    // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Sends what lies in a slot to a core: answers what to say about it. The slot is taken, whatever comes of it.
    /// `server` tells whose endpoint lies where.
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
        // Nobody would ever say that it need not be held any more.
        if self.lost.contains(&to) {
            self.kernel.delete(slot);
            return Err(Error::Gone);
        }
        let (what, rights) = (found.what, found.rights & found.what.rights());
        let proxy = self.proxy_of(&found);
        if let Some(proxy) = proxy.filter(|proxy| proxy.owner == to) {
            self.kernel.delete(slot);
            let badge = if matches!(proxy.form, Form::Own(_)) { found.badge } else { 0 };
            return Ok(Carried::Returned { number: proxy.number, rights, badge });
        }
        if !self.held.has_room(to) {
            self.kernel.delete(slot);
            return Err(Error::Full);
        }
        let server = if what == What::Endpoint { server(&found) } else { None };
        let held = Held { slot, what, to, badge: found.badge, server, is_proxy: proxy.is_some() };
        Ok(Carried::Held { what, number: self.held.hold(held), rights, is_plain: found.badge == 0, server })
    }

    /// Which proxy a capability is to, if it is to one.
    fn proxy_of(&self, found: &Found) -> Option<Proxy> {
        let name = match found.place {
            place if place == self.common.endpoint => Some(&found.badge),
            place if place == self.common.notification => self.bits.get(&found.badge),
            place => self.places.get(&place),
        };
        name.and_then(|name| self.proxies.get(name)).copied()
    }

    /// What was to be sent to a core has not been: it is not held any more, and what has arrived there already is not
    /// needed.
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

    /// Makes of what came from a core a capability, for `asker`: in a slot that whoever asks has from now on.
    pub fn receive(&mut self, carried: &Carried, from: u64, asker: Client) -> Result<CapAddress, Error> {
        match *carried {
            Carried::Returned { number, rights, badge } => {
                let made = self.copy(number, from, rights, badge)?;
                if badge == 0 {
                    return Ok(made);
                }
                // With the capability for which a badge was made, all that have it can be revoked. That is left to
                // whoever made it.
                let copy = self.kernel.copy(made, rights, 0);
                self.kernel.delete(made);
                copy.map_err(|_| Error::Full)
            }
            Carried::Held { what, number, rights, is_plain, .. } => {
                let made = self.make((from, number), what, rights, is_plain, asker);
                if made.is_err() {
                    self.release(from, number);
                }
                made
            }
            // It is the mail's.
            Carried::Memory { .. } => Err(Error::NotSendable),
        }
    }

    /// What came from a core cannot be received: it need not be held.
    pub fn take_in_vain(&mut self, carried: &Carried, from: u64) {
        if let Carried::Held { number, .. } = carried {
            self.release(from, *number);
        }
    }

    /// A copy of what is held under a number for a core.
    pub fn copy(&mut self, number: u64, core: u64, rights: Rights, badge: u64) -> Result<CapAddress, Error> {
        let held = self.held.held_for(core, number).ok_or(Error::Gone)?;
        self.kernel.copy(held.slot, rights, badge).map_err(|refusal| match refusal {
            Refusal::OutOfMemory => Error::Full,
            _ => Error::Gone,
        })
    }

    /// The server whose endpoint is held under a number, and the process for which that was made, if both are known.
    pub fn client(&self, number: u64) -> Option<(u8, Client)> {
        let held = self.held.at(number)?;
        held.server.filter(|server| server.is_personal).map(|server| (server.number, Client::of_badge(held.badge)))
    }

    fn make(
        &mut self,
        (owner, number): (u64, u64),
        what: What,
        rights: Rights,
        is_plain: bool,
        asker: Client,
    ) -> Result<CapAddress, Error> {
        if !self.may_make(what, is_plain, asker) {
            self.sweep();
        }
        if !self.may_make(what, is_plain, asker) {
            return Err(Error::Full);
        }
        let name = self.name(asker);
        let (slot, form) = self.form(name, what, is_plain)?;
        let Ok(copy) = self.kernel.copy(slot, rights & what.rights(), 0) else {
            match form {
                // Nobody has had it, so nothing comes.
                Form::Own(_) => drop(self.kernel.close(name)),
                Form::Badge | Form::Bits(_) => self.kernel.delete(slot),
            }
            return Err(Error::Full);
        };
        self.askers.take(asker);
        match form {
            Form::Badge => {}
            Form::Bits(bits) => {
                self.signallers.take(asker);
                self.bits.insert(bits, name);
            }
            Form::Own(place) => {
                self.openers.take(asker);
                self.places.insert(place, name);
            }
        }
        if what == What::Notification {
            self.signals.begin(name, owner, number);
        }
        self.proxies.insert(name, Proxy { owner, number, slot, form, asker: asker.process });
        Ok(copy)
    }

    /// Makes what a proxy of this name consists of.
    fn form(&mut self, name: u64, what: What, is_plain: bool) -> Result<(CapAddress, Form), Error> {
        let made = match (is_plain, what) {
            (true, what) => self.kernel.open(name, what).map(|(slot, place)| (slot, Form::Own(place))),
            (false, What::Endpoint) => self.kernel.common(name, RIGHTS).map(|slot| (slot, Form::Badge)),
            (false, What::Notification) => {
                let mut all = (FIRST_BIT..u64::BITS).map(|bit| 1 << bit);
                let bits = all.find(|bits| !self.bits.contains_key(bits)).ok_or(Error::Full)?;
                self.kernel.bits(bits).map(|slot| (slot, Form::Bits(bits)))
            }
        };
        made.map_err(|_| Error::Full)
    }

    fn may_make(&self, what: What, is_plain: bool, asker: Client) -> bool {
        let may_take = match (is_plain, what) {
            (true, _) => self.openers.may_take(asker),
            (false, What::Notification) => self.signallers.may_take(asker),
            (false, What::Endpoint) => true,
        };
        may_take && self.askers.may_take(asker)
    }

    /// Makes a name for a proxy, which is a badge. [Who asked](asker_of) is in it, so that whoever receives knows whose
    /// request counts.
    fn name(&mut self, asker: Client) -> u64 {
        loop {
            self.named = self.named.wrapping_add(1);
            let name = self.named << NAME_SHIFT | asker.badge(Powers::empty()) & ASKER;
            let is_used = self.proxies.contains_key(&name) || self.closing.contains_key(&name);
            if name != 0 && !is_used {
                return name;
            }
        }
    }

    /// Where a request at a proxy leads.
    pub fn target(&self, proxy: u64) -> Option<Target> {
        self.proxies.get(&proxy).map(|proxy| Target { core: proxy.owner, number: proxy.number })
    }

    /// Whether there are proxies that [`sweep`](Self::sweep) would look at.
    pub fn has_proxies(&self) -> bool {
        !self.proxies.is_empty()
    }

    /// Whether there are none, and nobody is to be told anything.
    pub fn is_quiet(&self) -> bool {
        let is_settled = self.closing.is_empty() && !self.has_signals() && !self.held.has_parted();
        self.proxies.is_empty() && is_settled && self.released.is_empty()
    }

    /// Whether it may find something that it did not before, because of what is held no longer.
    pub const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Copies that are held, and proxies.
    pub fn count(&self) -> (usize, usize) {
        (self.held.count(), self.proxies.len() + self.closing.len())
    }
}
