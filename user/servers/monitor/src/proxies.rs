//! Endpoints that are reached from other cores: the books of one monitor.
//!
//! ```text
//!       core of the endpoint                                 core of who calls
//!   server ◀── held: a copy, which has a number ◀═ FORWARD ═ proxy: an endpoint at which the monitor receives ◀── process
//! ```
//! An endpoint stays on its core, and so does every capability to it. What travels is the number under which the monitor there
//! *holds* a copy; the other monitor makes a *proxy* for it. A request that arrives at a proxy is forwarded, and made with the copy
//! that is held. So whoever revokes the capability revokes what other cores can do with it, at once and without asking them.
//!
//! All capabilities with a badge have one proxy between them: in it, the badge says which. For one without a badge, whoever has
//! it can make badges, so its proxy is an endpoint of its own, and the badge travels with the request.
//!
//! A capability to a proxy that comes back to the core of its endpoint is a copy of the one that is held. To a third core it is an
//! endpoint like any other, which is held here. A badge that was made at a proxy is revoked where it was made: there, and on all cores
//! that reach the endpoint over that one. What has come back from there has nothing to do with it any more.
//!
//! Proxies that nobody has any more are found by asking the kernel ([`sweep`](Proxies::sweep)). Their owner is told, and holds the copy no
//! longer. A number is never used again; what is said about it goes through one channel, in the order in which it happens.
//!
//! What makes system calls is behind [`Kernel`].

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use tench_abi::{CapAddress, Error as Refusal, Rights};
use tench_places::Places;

use crate::exchange::mail::LETTERS;
use crate::freight::UNCLAIMED;
use crate::message::Malformed;

/// Proxies that a monitor has at most, for those who asked for them.
pub const PROXIES: usize = 512;
/// Those of them that are endpoints of their own, at each of which a thread receives.
pub const OWN_PROXIES: usize = 64;
/// Copies that it holds for each other core at most: as many as there can be proxies of it, and some that are on their way.
const HELD: usize = 2 * PROXIES;
/// Numbers that a core is to be told it need not keep, at most: as many as are held there for this one, and letters with memory for messages
/// that were not sent.
const RELEASED: usize = HELD + LETTERS;
/// What can be done with an endpoint of another core: not receive.
const RIGHTS: Rights = Rights::WRITE.union(Rights::CALL).union(Rights::GRANT);

/// What lies in a slot, if it is a capability to an endpoint with which something can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which endpoint.
    pub place: u64,
    /// 0 if it has none.
    pub badge: u64,
    /// What it allows.
    pub rights: Rights,
}

/// The kernel, as far as endpoints are concerned. Slots are the monitor's own.
pub trait Kernel {
    /// What lies in a slot. `None` if it is no endpoint.
    fn look(&self, slot: CapAddress) -> Option<Found>;
    /// Whether anybody else has it.
    fn is_used(&self, slot: CapAddress) -> bool;
    /// Deletes it, and gives the slot back.
    fn delete(&mut self, slot: CapAddress);
    /// A copy with no more than these rights and, if the badge is not 0, with this badge.
    fn copy(&mut self, slot: CapAddress, rights: Rights, badge: u64) -> Result<CapAddress, Refusal>;
    /// A capability with a badge to the proxy that all such have in common.
    fn common(&mut self, badge: u64, rights: Rights) -> Result<CapAddress, Refusal>;
    /// Makes a proxy of its own, at which the monitor receives from now on: the only capability to it, and which endpoint it is.
    fn open(&mut self, proxy: u64) -> Result<(CapAddress, u64), Refusal>;
    /// Deletes it, because nobody else has it.
    fn close(&mut self, proxy: u64);
}

/// A capability in a message between monitors, in two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// To an endpoint of the core that sends it, where it is held under a number.
    Held {
        /// The number.
        number: u64,
        /// What it allows.
        rights: Rights,
        /// It has no badge, and whoever has it can give it one.
        is_plain: bool,
        /// The server whose endpoint it is, if the core that sends it has told the other of it.
        server: Option<Server>,
    },
    /// To an endpoint of the core that receives it, under the number that this one gave it.
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
            Carried::Held { number, rights, is_plain, server } => {
                let kind = if is_plain { 2 } else { 1 };
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
            (server @ 1..=0x100, personal @ 0..=1) => {
                Some(Server { number: (server - 1) as u8, is_personal: personal == 1 })
            }
            _ if kind == 3 => None,
            _ => return Err(Malformed::Capability),
        };
        match kind {
            1 | 2 => Ok(Carried::Held { number, rights, is_plain: kind == 2, server }),
            3 => Ok(Carried::Returned { number, rights, badge: second }),
            4 if rights.is_empty() && second == 0 => Ok(Carried::Memory { number }),
            _ => Err(Malformed::Capability),
        }
    }
}

tench_protocol::codes! {
    /// Why a capability does not reach another core.
    pub enum Error {
        /// It is not to an endpoint, or does not allow to send anything to it.
        NotSendable = 1, "only endpoints can be sent with a message to another core, to call them";
        /// There is no room for more.
        Full = 2, "too many endpoints of other cores are in use";
        /// It has been revoked meanwhile, another monitor names something that it does not have, or the core has stopped.
        Gone = 3, "the capability was revoked on its way, or the other core has stopped";
    }
}

/// A copy of a capability of this core, with which another core's requests are made.
#[derive(Clone, Copy, Debug)]
struct Held {
    slot: CapAddress,
    to: u64,
    badge: u64,
    server: Option<Server>,
    /// It is a proxy.
    is_proxy: bool,
}

impl Held {
    /// Whether it is to the process server.
    fn asks_processes(&self) -> bool {
        self.server.is_some_and(|server| server.number == PROCESSES)
    }
}

/// A proxy of an endpoint of another core, or what in the common proxy is one.
#[derive(Clone, Copy, Debug)]
struct Proxy {
    owner: u64,
    number: u64,
    /// The first capability to it, of which all others are copies.
    slot: CapAddress,
    /// Where an endpoint of its own lies.
    place: Option<u64>,
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

/// The books.
pub struct Proxies<K> {
    kernel: K,
    /// Where the common proxy lies.
    common: u64,
    held: BTreeMap<u64, Held>,
    /// How many are held for each core.
    counts: BTreeMap<u64, usize>,
    proxies: BTreeMap<u64, Proxy>,
    /// Those with an endpoint of their own, by where it lies.
    places: BTreeMap<u64, u64>,
    askers: Places,
    /// The same of those with an endpoint of their own.
    openers: Places,
    /// A proxy may have been let go by what was held here.
    is_stale: bool,
    /// What is not needed any more, and whose owner is not told yet.
    released: BTreeMap<u64, VecDeque<u64>>,
    /// Processes that cannot ask the process server any more.
    parted: Vec<u64>,
    /// Cores that have stopped.
    lost: BTreeSet<u64>,
    /// The last number under which something was held.
    last: u64,
    /// The upper half of the last proxy's name.
    named: u32,
}

impl<K: Kernel> Proxies<K> {
    /// None. The endpoint that all proxies of capabilities with badges have in common lies at `common`.
    pub fn new(kernel: K, common: u64) -> Proxies<K> {
        Proxies {
            kernel,
            common,
            held: BTreeMap::new(),
            counts: BTreeMap::new(),
            proxies: BTreeMap::new(),
            places: BTreeMap::new(),
            askers: Places::new(PROXIES),
            openers: Places::new(OWN_PROXIES),
            is_stale: false,
            released: BTreeMap::new(),
            parted: Vec::new(),
            lost: BTreeSet::new(),
            last: 0,
            named: 0,
        }
    }

    /// The kernel.
    pub const fn kernel(&mut self) -> &mut K {
        &mut self.kernel
    }

    // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Sends what lies in a slot to a core: answers what to say about it. The slot is taken, whatever comes of it. `server` tells whose
    /// endpoint lies where.
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
        let rights = found.rights & RIGHTS;
        let proxy = self.proxy_of(&found);
        if let Some(proxy) = proxy.filter(|proxy| proxy.owner == to) {
            self.kernel.delete(slot);
            let badge = if proxy.place.is_some() { found.badge } else { 0 };
            return Ok(Carried::Returned { number: proxy.number, rights, badge });
        }
        let count = self.counts.entry(to).or_default();
        if *count >= HELD {
            self.kernel.delete(slot);
            return Err(Error::Full);
        }
        *count += 1;
        self.last += 1;
        let server = server(&found);
        self.held.insert(self.last, Held { slot, to, badge: found.badge, server, is_proxy: proxy.is_some() });
        Ok(Carried::Held { number: self.last, rights, is_plain: found.badge == 0, server })
    }

    /// Which proxy a capability is to, if it is to one.
    fn proxy_of(&self, found: &Found) -> Option<Proxy> {
        let key = if found.place == self.common { Some(&found.badge) } else { self.places.get(&found.place) };
        key.and_then(|key| self.proxies.get(key)).copied()
    }

    /// What was to be sent to a core has not been: it is not held any more, and what has arrived there already is not needed.
    pub fn take_back(&mut self, carried: &[Carried], to: u64) {
        for carried in carried {
            match carried {
                Carried::Held { number, .. } => self.drop_held(*number),
                Carried::Memory { number } => self.release(to, number | UNCLAIMED),
                Carried::Returned { .. } => {}
            }
        }
    }

    fn drop_held(&mut self, number: u64) {
        let Some(held) = self.held.remove(&number) else { return };
        self.kernel.delete(held.slot);
        self.is_stale |= held.is_proxy;
        if let Some(count) = self.counts.get_mut(&held.to) {
            *count -= 1;
        }
    }

    // ── Receiving ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Makes of what came from a core a capability, for `asker`: in a slot that whoever asks has from now on.
    pub fn receive(&mut self, carried: &Carried, from: u64, asker: u64) -> Result<CapAddress, Error> {
        match *carried {
            Carried::Returned { number, rights, badge } => {
                let made = self.copy(number, from, rights, badge)?;
                if badge == 0 {
                    return Ok(made);
                }
                // With the capability for which a badge was made, all that have it can be revoked. That is left to whoever made it.
                let copy = self.kernel.copy(made, rights, 0);
                self.kernel.delete(made);
                copy.map_err(|_| Error::Full)
            }
            Carried::Held { number, rights, is_plain, .. } => {
                let made = self.make(from, number, rights, is_plain, asker);
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
        let held = self.held.get(&number).filter(|held| held.to == core).ok_or(Error::Gone)?;
        self.kernel.copy(held.slot, rights, badge).map_err(|refusal| match refusal {
            Refusal::OutOfMemory => Error::Full,
            _ => Error::Gone,
        })
    }

    /// The server whose endpoint is held under a number, and the process for which that was made, if both are known.
    pub fn client(&self, number: u64) -> Option<(u8, u64)> {
        let held = self.held.get(&number)?;
        held.server.filter(|server| server.is_personal).map(|server| (server.number, held.badge))
    }

    fn make(
        &mut self,
        owner: u64,
        number: u64,
        rights: Rights,
        is_plain: bool,
        asker: u64,
    ) -> Result<CapAddress, Error> {
        if !self.may_make(is_plain, asker) {
            self.sweep();
        }
        if !self.may_make(is_plain, asker) {
            return Err(Error::Full);
        }
        let proxy = self.name(asker);
        let full = |_| Error::Full;
        let (slot, place) = if is_plain {
            let (slot, place) = self.kernel.open(proxy).map_err(full)?;
            (slot, Some(place))
        } else {
            (self.kernel.common(proxy, RIGHTS).map_err(full)?, None)
        };
        let Ok(copy) = self.kernel.copy(slot, rights & RIGHTS, 0) else {
            match is_plain {
                true => self.kernel.close(proxy),
                false => self.kernel.delete(slot),
            }
            return Err(Error::Full);
        };
        self.askers.take(asker);
        if is_plain {
            self.openers.take(asker);
        }
        self.proxies.insert(proxy, Proxy { owner, number, slot, place, asker });
        self.places.extend(place.map(|place| (place, proxy)));
        Ok(copy)
    }

    fn may_make(&self, is_plain: bool, asker: u64) -> bool {
        self.askers.may_take(asker) && (!is_plain || self.openers.may_take(asker))
    }

    /// A name for a proxy, which is a badge. Who asked is in it, so that whoever receives knows whose request counts.
    fn name(&mut self, asker: u64) -> u64 {
        loop {
            self.named = self.named.wrapping_add(1);
            let name = u64::from(self.named) << 32 | asker & u64::from(u32::MAX);
            if name != 0 && !self.proxies.contains_key(&name) {
                return name;
            }
        }
    }

    /// Where a request at a proxy leads.
    pub fn target(&self, proxy: u64) -> Option<Target> {
        self.proxies.get(&proxy).map(|proxy| Target { core: proxy.owner, number: proxy.number })
    }

    // ── What is not needed any more ──────────────────────────────────────────────────────────────────────────────────

    /// Finds the proxies that nobody has any more.
    pub fn sweep(&mut self) {
        self.is_stale = false;
        let kernel = &self.kernel;
        let unused: Vec<u64> =
            self.proxies.iter().filter(|(_, proxy)| !kernel.is_used(proxy.slot)).map(|(proxy, _)| *proxy).collect();
        for key in unused {
            let Some(proxy) = self.proxies.remove(&key) else { continue };
            match proxy.place {
                Some(place) => {
                    self.places.remove(&place);
                    self.kernel.close(key);
                    self.openers.give_back(proxy.asker);
                }
                None => self.kernel.delete(proxy.slot),
            }
            self.askers.give_back(proxy.asker);
            self.release(proxy.owner, proxy.number);
        }
    }

    fn release(&mut self, core: u64, number: u64) {
        if self.lost.contains(&core) {
            return;
        }
        let numbers = self.released.entry(core).or_default();
        // A monitor that keeps to the protocol holds no more. What one says that does not is not remembered without end.
        if numbers.len() < RELEASED {
            numbers.push_back(number);
        }
    }

    /// Whether a core is to be told that.
    pub fn has_releases(&self) -> bool {
        !self.released.is_empty()
    }

    /// What a core is to be told next that it need not hold any more.
    pub fn next_release(&self, core: u64) -> Option<u64> {
        self.released.get(&core)?.front().copied()
    }

    /// It was told.
    pub fn told(&mut self, core: u64) {
        if let Some(numbers) = self.released.get_mut(&core) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.released.remove(&core);
            }
        }
    }

    /// A core does not need any more what is held for it under a number.
    pub fn released(&mut self, core: u64, number: u64) {
        let Some(held) = self.held.get(&number).copied().filter(|held| held.to == core) else { return };
        self.drop_held(number);
        if held.asks_processes() && !self.can_ask(held.badge) {
            self.parted.push(held.badge);
        }
    }

    /// Whether this core's process server can be asked as this process.
    fn can_ask(&self, process: u64) -> bool {
        self.held.values().any(|held| held.asks_processes() && held.badge == process)
    }

    /// A core has stopped: what is held for it is not needed any more. Who asks its endpoints is refused until nobody has them.
    pub fn lose(&mut self, core: u64) {
        let numbers: Vec<u64> =
            self.held.iter().filter(|(_, held)| held.to == core).map(|(number, _)| *number).collect();
        numbers.into_iter().for_each(|number| self.released(core, number));
        self.released.remove(&core);
        self.counts.remove(&core);
        self.lost.insert(core);
    }

    /// A process that could ask this core's process server, and cannot any more.
    pub fn parted(&mut self) -> Option<u64> {
        // It may have asked for it again meanwhile.
        while let Some(process) = self.parted.pop() {
            if !self.can_ask(process) {
                return Some(process);
            }
        }
        None
    }

    /// It is to be dealt with later.
    pub fn put_back(&mut self, process: u64) {
        self.parted.push(process);
    }

    /// Whether there are proxies that [`sweep`](Self::sweep) would look at.
    pub fn has_proxies(&self) -> bool {
        !self.proxies.is_empty()
    }

    /// Whether there are none, and nobody is to be told anything.
    pub fn is_quiet(&self) -> bool {
        self.proxies.is_empty() && self.parted.is_empty() && self.released.is_empty()
    }

    /// Whether it may find something that it did not before, because of what is held no longer.
    pub const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Copies that are held, and proxies.
    pub fn count(&self) -> (usize, usize) {
        (self.held.len(), self.proxies.len())
    }
}
