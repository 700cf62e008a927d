//! Cores with their ledgers, the channels between them, and the actions of their processes; and the expected meaning of
//! every capability.

mod judge;
mod signals;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use tench_quota::Client;

use tench_abi::{CapAddress, Rights};
use tench_monitor::message::carried::{Carried, ObjectClass};
use tench_monitor::transfer::proxies::{Error, Kernel, Proxies, Target};
use tench_monitor_interface::protocol::pid_base;

use crate::kernel::{Cap, Fake, Origin, Receiver};
use crate::simulation::{Dice, Network};

pub use tally::Tally;

/// Rights to an endpoint that remain on other cores.
pub const SENDABLE: Rights = Rights::WRITE.union(Rights::CALL).union(Rights::GRANT);

/// Returns the rights that remain on other cores.
pub const fn sendable(class: ObjectClass) -> Rights {
    match class {
        ObjectClass::Endpoint => SENDABLE,
        ObjectClass::Notification => Rights::WRITE,
    }
}
/// Longest route that a process makes on purpose.
const LONGEST: usize = 8;

/// The expected meaning of a capability, derived from its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// Endpoint or notification of the capability, and its badge.
    pub class: ObjectClass,
    pub endpoint: usize,
    pub badge: u64,
    pub rights: Rights,
    /// The cores from that of the endpoint to its own.
    pub route: Vec<usize>,
    /// Set if it is what others were made of here.
    is_origin: bool,
    /// The minting that gave it its badge, if that can be revoked, and the length of the route there.
    mint: Option<(usize, usize)>,
    /// Number of earlier revokes of the endpoint and of the minting.
    revoked: (usize, usize),
}

/// A request on its way.
struct Call {
    meaning: Meaning,
    /// Set if it should arrive, as of when it was made.
    is_right: bool,
    /// Copies with which it was made so far, with their cores. They exist until it gets its reply.
    copies: Vec<(usize, CapAddress)>,
}

/// A message between monitors.
enum Message {
    Cap { words: [u64; 2], meaning: Option<Meaning>, requester: u64 },
    Call { number: u64, badge: u64, call: Call },
    Signal { number: u64, bits: u64 },
    Release(u64),
}

pub struct Node {
    pub proxies: Proxies<Fake<Meaning>>,
    /// Target of each proxy, by name, as first seen.
    seen: BTreeMap<u64, Option<Target>>,
    /// Cores that it knows to have stopped.
    lost: Vec<usize>,
}

pub struct World {
    pub nodes: Vec<Node>,
    network: Network<Message>,
    /// Endpoints and notifications: whether each exists, and how often all other capabilities to it were revoked.
    endpoints: Vec<(bool, usize)>,
    /// Mintings of badges: how often each was revoked.
    mints: Vec<usize>,
    /// Signals that should be received.
    due: Vec<(Meaning, u64)>,
    /// Number of times that each bit of a notification was signalled and has not been received.
    credit: BTreeMap<(usize, u32), usize>,
    /// Notifications that the hostile monitor can signal.
    tainted: BTreeSet<usize>,
    /// A core whose monitor also sends invalid messages.
    hostile: Option<usize>,
    /// Set if nothing happens by chance.
    pub is_calm: bool,
    pub dice: Dice,
    pub tally: Tally,
}

impl World {
    pub fn new(count: usize, seed: u64) -> World {
        World {
            nodes: (0..count).map(|_| Node::new()).collect(),
            network: Network::new(count),
            endpoints: Vec::new(),
            mints: Vec::new(),
            due: Vec::new(),
            credit: BTreeMap::new(),
            tainted: BTreeSet::new(),
            hostile: None,
            is_calm: false,
            dice: Dice::new(seed),
            tally: Tally::default(),
        }
    }

    /// Returns true one time in `times`.
    fn happens(&mut self, times: usize) -> bool {
        !self.is_calm && self.dice.below(times) == 0
    }

    pub fn kernel(&mut self, at: usize) -> &mut Fake<Meaning> {
        self.nodes[at].proxies.kernel()
    }

    fn cap(&mut self, at: usize, slot: CapAddress) -> Cap<Meaning> {
        self.kernel(at).caps[&slot.0].clone()
    }

    pub fn meaning(&mut self, at: usize, slot: CapAddress) -> Meaning {
        self.cap(at, slot).meaning.expect("it is a process's")
    }

    /// Does a random action.
    pub fn act(&mut self) {
        let at = self.dice.below(self.nodes.len());
        if self.network.has_stopped(at) {
            return;
        }
        let slot = self.some_cap(at);
        match (self.dice.below(32), slot) {
            (0, _) | (_, None) if self.dice.below(2) == 0 => drop(self.make_notification(at)),
            (0, _) | (_, None) => drop(self.make(at)),
            (1..3, Some(slot)) => drop(self.copy(at, slot)),
            (3..6, Some(slot)) => drop(self.mint(at, slot)),
            (6..9, Some(slot)) => self.kernel(at).drop_one(slot),
            (9, Some(slot)) => self.revoke(at, slot),
            (10, Some(slot)) if self.dice.below(3) == 0 => self.end_server(at, slot),
            (10..18, Some(slot)) => self.send_somewhere(at, slot),
            (18..20, Some(slot)) if self.meaning(at, slot).class == ObjectClass::Endpoint => self.call(at, slot),
            (18..20, Some(slot)) => self.signal(at, slot),
            (20, _) => self.nodes[at].proxies.sweep(),
            (23, _) => self.hear(at),
            (21, _) => self.send_releases(at),
            (22, _) if self.hostile == Some(at) => self.lie(at),
            _ => drop(self.go_on()),
        }
        self.judge();
    }

    fn some_cap(&mut self, at: usize) -> Option<CapAddress> {
        let slots = self.kernel(at).of_processes();
        self.dice.one_of(&slots)
    }

    // ── Processes ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Makes an endpoint for a process.
    pub fn make(&mut self, at: usize) -> CapAddress {
        self.make_object(at, ObjectClass::Endpoint)
    }

    /// Makes a notification for a process.
    pub fn make_notification(&mut self, at: usize) -> CapAddress {
        self.make_object(at, ObjectClass::Notification)
    }

    fn make_object(&mut self, at: usize, class: ObjectClass) -> CapAddress {
        let endpoint = self.endpoints.len();
        self.endpoints.push((true, 0));
        let (rights, route) = (Rights::all(), vec![at]);
        let meaning =
            Meaning { class, endpoint, badge: 0, rights, route, is_origin: true, mint: None, revoked: (0, 0) };
        let receiver = match class {
            ObjectClass::Endpoint => Receiver::Process(endpoint),
            ObjectClass::Notification => Receiver::Signalled(endpoint),
        };
        self.kernel(at).make_object(receiver, meaning)
    }

    /// Copies a capability, sometimes with fewer rights.
    pub fn copy(&mut self, at: usize, slot: CapAddress) -> CapAddress {
        let rights = Rights::from_bits_truncate(self.dice.below(16) as u8) | Rights::WRITE;
        let rights = if self.happens(3) { rights } else { Rights::all() };
        let rights = if self.happens(20) { Rights::READ } else { rights };
        self.weaken(at, slot, rights)
    }

    /// Makes a copy with at most these rights.
    pub fn weaken(&mut self, at: usize, slot: CapAddress, rights: Rights) -> CapAddress {
        let cap = self.cap(at, slot);
        let meaning = cap.meaning.clone().map(|meaning| {
            let rights = meaning.rights & rights;
            Meaning { rights, is_origin: false, ..meaning }
        });
        self.kernel(at).give(Cap { rights: cap.rights & rights, origin: Origin::Copy, meaning, ..cap })
    }

    /// Makes a copy with a badge, if there is none. No two badges are equal, but many look like names of proxies.
    pub fn mint(&mut self, at: usize, slot: CapAddress) -> CapAddress {
        let cap = self.cap(at, slot);
        if cap.badge != 0 || self.meaning(at, slot).badge != 0 {
            return slot;
        }
        let is_bit = self.meaning(at, slot).class == ObjectClass::Notification;
        // One bit each, so that the signaller of every bit is known.
        let count = self.mints.len() as u32;
        if is_bit && count >= u64::BITS {
            return slot;
        }
        self.mints.push(0);
        let badge = if is_bit { 1 << count } else { (self.mints.len() as u64) << 32 | self.dice.below(3) as u64 };
        let mut meaning = self.meaning(at, slot);
        (meaning.badge, meaning.is_origin) = (badge, true);
        meaning.mint = Some((self.mints.len() - 1, meaning.route.len()));
        meaning.revoked.1 = 0;
        self.kernel(at).give(Cap { badge, origin: Origin::Badge, meaning: Some(meaning), ..cap })
    }

    /// Revokes what was derived from a capability. For a copy, that is nothing.
    pub fn revoke(&mut self, at: usize, slot: CapAddress) {
        let mut meaning = self.meaning(at, slot);
        self.kernel(at).revoke(slot);
        if !meaning.is_origin {
            return;
        }
        self.tally.revoked += 1;
        match meaning.mint {
            Some((mint, _)) => {
                self.mints[mint] += 1;
                meaning.revoked.1 += 1;
            }
            None => {
                self.endpoints[meaning.endpoint].1 += 1;
                meaning.revoked.0 += 1;
            }
        }
        self.kernel(at).caps.get_mut(&slot.0).expect("it stays").meaning = Some(meaning);
    }

    /// Ends the process that receives at an endpoint, if it is one of this core.
    pub fn end_server(&mut self, at: usize, slot: CapAddress) {
        let physical = self.cap(at, slot).physical;
        if let Some(Receiver::Process(endpoint) | Receiver::Signalled(endpoint)) = self.kernel(at).receiver(slot) {
            self.kernel(at).destroy(physical);
            self.endpoints[endpoint].0 = false;
        }
    }

    fn send_somewhere(&mut self, at: usize, slot: CapAddress) {
        let to = self.dice.below(self.nodes.len());
        if to == at || self.meaning(at, slot).route.len() >= LONGEST {
            return;
        }
        let is_moved = self.happens(4);
        let requester = if self.happens(4) { pid_base(at as u64) } else { 1 + self.dice.below(3) as u64 };
        if self.happens(8) {
            let calls = self.dice.below(3);
            self.kernel(at).patience = Some(calls);
        }
        let sent = self.send(at, slot, to, requester, is_moved);
        self.kernel(at).patience = None;
        self.tally.refused += usize::from(sent.is_err());
    }

    /// Sends a process's capability to a process of another core; the sender keeps it, or does not.
    pub fn send(
        &mut self,
        at: usize,
        slot: CapAddress,
        to: usize,
        requester: u64,
        is_moved: bool,
    ) -> Result<(), Error> {
        let mut cap = self.cap(at, slot);
        let mut meaning = cap.meaning.take().expect("it is a process's");
        if !is_moved {
            cap.origin = Origin::Copy;
        }
        let rights = cap.rights;
        let handed_in = self.kernel(at).hand_in(cap);
        if is_moved {
            self.kernel(at).drop_one(slot);
        }
        if self.hostile.is_some_and(|hostile| hostile == to || meaning.route.contains(&hostile)) {
            self.tainted.insert(meaning.endpoint);
        }
        let has_heard = self.nodes[at].lost.contains(&to);
        let sent = self.nodes[at].proxies.send(handed_in, to as u64, |_| None);
        let carried = match sent {
            Ok(carried) => carried,
            Err(why) => {
                let expected = if rights.contains(Rights::WRITE) { Error::Gone } else { Error::NotSendable };
                assert!(
                    why == expected && (has_heard || why != Error::Gone),
                    "{why:?} when {rights:?} were to be sent"
                );
                return Err(why);
            }
        };
        assert!(!has_heard, "something was sent to a core that has stopped");
        meaning.go(to);
        assert_eq!(matches!(carried, Carried::Returned { .. }), meaning.has_come_back(at, to), "{carried:?}");
        if self.happens(16) {
            // There is no room in the channel, or it is closed.
            self.nodes[at].proxies.take_back(&[carried], to as u64);
            return Ok(());
        }
        self.say(at, to, Message::Cap { words: carried.encode(), meaning: Some(meaning), requester });
        Ok(())
    }

    /// Sends a capability and delivers it at once. Returns what arrives.
    pub fn pass(&mut self, at: usize, slot: CapAddress, to: usize) -> Option<CapAddress> {
        let before = self.kernel(to).of_processes();
        self.send(at, slot, to, 1, false).expect("it can be sent");
        while self.deliver(at, to) {}
        self.kernel(to).of_processes().into_iter().find(|slot| !before.contains(slot))
    }

    /// Lets a process call a capability, perhaps without waiting for the reply.
    pub fn call(&mut self, at: usize, slot: CapAddress) {
        let meaning = self.meaning(at, slot);
        let is_right = self.is_alive(&meaning, true);
        self.arrives(at, slot, Call { meaning, is_right, copies: Vec::new() });
    }

    // ── Monitors ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Handles a request that arrives at an endpoint of a core: forwards it if that is a proxy.
    fn arrives(&mut self, at: usize, slot: CapAddress, call: Call) {
        let badge = self.cap(at, slot).badge;
        match self.kernel(at).receiver(slot) {
            Some(Receiver::Process(endpoint)) => {
                assert_eq!((endpoint, badge), (call.meaning.endpoint, call.meaning.badge), "{:?}", call.meaning);
                // It may have left the core before the badge was revoked there.
                let is_right = call.is_right && self.is_alive(&Meaning { mint: None, ..call.meaning.clone() }, true);
                assert!(is_right, "what is gone is reached: {:?}", call.meaning);
                self.tally.calls += 1;
                self.finish(call);
            }
            Some(receiver) => {
                let (name, badge) = self.proxy(at, receiver, badge);
                match self.nodes[at].proxies.target(name) {
                    Some(target) => {
                        let (to, number) = (target.core as usize, target.number);
                        self.say(at, to, Message::Call { number, badge, call });
                    }
                    None => self.fail(call),
                }
            }
            None => self.fail(call),
        }
    }

    /// Handles that some core on the route has refused a request.
    fn fail(&mut self, call: Call) {
        assert!(!self.is_alive(&call.meaning, false), "what is there is not reached: {:?}", call.meaning);
        self.finish(call);
    }

    fn finish(&mut self, call: Call) {
        for (at, slot) in call.copies {
            if !self.network.has_stopped(at) {
                self.kernel(at).delete(slot);
            }
        }
    }

    fn say(&mut self, from: usize, to: usize, message: Message) {
        if let Some(Message::Call { call, .. }) = self.network.send(from, to, message) {
            self.finish(call);
        }
    }

    /// Sends the pending releases.
    pub fn send_releases(&mut self, at: usize) {
        // There is no channel to a core that is known to have stopped.
        for to in (0..self.nodes.len()).filter(|to| !self.nodes[at].lost.contains(to)).collect::<Vec<_>>() {
            if !self.send_signals(at, to) {
                continue;
            }
            while let Some(number) = self.nodes[at].proxies.next_release(to as u64) {
                self.say(at, to, Message::Release(number));
                self.nodes[at].proxies.release_sent(to as u64);
            }
        }
    }

    /// Delivers a message, or tells a core that another has stopped. Returns false if there is nothing to do.
    fn go_on(&mut self) -> bool {
        let ready = self.network.ready();
        let choice = self.dice.below(ready.len() + self.network.unaware.len());
        if let Some(&(from, to)) = ready.get(choice) {
            self.deliver(from, to);
        } else if choice < ready.len() + self.network.unaware.len() {
            let (at, lost) = self.network.unaware.swap_remove(choice - ready.len());
            // Messages that it has sent are delivered first.
            while self.deliver(lost, at) {}
            self.nodes[at].proxies.lose(lost as u64);
            self.nodes[at].lost.push(lost);
        } else {
            return false;
        }
        true
    }

    /// Delivers the next message between two cores, if there is one.
    pub fn deliver(&mut self, from: usize, to: usize) -> bool {
        let Some(message) = self.network.next(from, to) else { return false };
        match message {
            Message::Release(number) => self.nodes[to].proxies.released(from as u64, number),
            Message::Signal { number, bits } => {
                self.nodes[to].proxies.signal(from as u64, number, bits);
                self.heard(to);
            }
            Message::Cap { words, meaning, requester } => {
                let carried = Carried::decode(words).expect("monitors say what can be understood");
                self.take_in(from, to, &carried, meaning, requester);
            }
            Message::Call { number, badge, mut call } => {
                match self.nodes[to].proxies.copy(number, from as u64, Rights::all(), badge) {
                    Ok(slot) => {
                        call.copies.push((to, slot));
                        self.arrives(to, slot, call);
                    }
                    Err(why) => {
                        assert_eq!(why, Error::Gone);
                        self.fail(call);
                    }
                }
            }
        }
        true
    }

    /// Makes a capability from a description, and gives it to a process.
    fn take_in(&mut self, from: usize, to: usize, carried: &Carried, meaning: Option<Meaning>, requester: u64) {
        if self.happens(16) {
            return self.nodes[to].proxies.take_in_vain(carried, from as u64);
        }
        let is_short = self.happens(8);
        let calls = self.dice.below(4);
        let refusals = self.kernel(to).refusals;
        self.kernel(to).patience = is_short.then_some(calls);
        let received = self.nodes[to].proxies.receive(carried, from as u64, Client::alone(requester));
        self.kernel(to).patience = None;
        match (received, meaning) {
            (Ok(slot), Some(meaning)) => {
                self.tally.sent += 1;
                self.tally.home += usize::from(meaning.route.len() == 1);
                self.tally.far += usize::from(meaning.route.len() > 2);
                self.kernel(to).take_out(slot, meaning);
            }
            (Ok(slot), None) => self.kernel(to).delete(slot),
            (Err(Error::Full), _) => assert!(self.kernel(to).refusals > refusals, "it was not for want of memory"),
            (Err(why), meaning) => {
                assert_eq!(why, Error::Gone);
                self.tally.gone += 1;
                let is_there = meaning.is_some_and(|meaning| self.is_alive(&meaning, false));
                // A hostile monitor may have released it before, or have named it so that it comes back twice.
                let is_hostile = self.hostile.is_some_and(|hostile| hostile == from || hostile == to);
                assert!(!is_there || is_hostile, "what was sent does not arrive");
            }
        }
    }

    /// Sends an invalid message from a monitor.
    fn lie(&mut self, from: usize) {
        let to = self.dice.below(self.nodes.len());
        let number = self.dice.below(30) as u64;
        if to == from {
            return;
        }
        let badge = self.dice.below(3) as u64;
        let class = if self.dice.below(2) == 0 { ObjectClass::Notification } else { ObjectClass::Endpoint };
        let rights = sendable(class);
        let carried = match self.dice.below(5) {
            0 => return self.say(from, to, Message::Release(number)),
            1 | 2 => {
                let bits = 1 << self.dice.below(64);
                return self.say(from, to, Message::Signal { number, bits });
            }
            3 => Carried::Returned { number, rights, badge },
            _ => Carried::Held { class, number, rights, is_plain: badge == 0, server: None },
        };
        self.say(from, to, Message::Cap { words: carried.encode(), meaning: None, requester: 1 });
    }

    /// Makes a core's monitor hostile.
    pub fn lies(&mut self, at: usize) {
        self.hostile = Some(at);
    }

    /// Stops one core for good.
    pub fn stop(&mut self, lost: usize) {
        let missed = self.network.stop(lost);
        self.network.announce(lost);
        for message in missed {
            if let Message::Call { call, .. } = message {
                self.finish(call);
            }
        }
    }
}

impl Meaning {
    fn of_nothing(endpoint: usize, from: usize, at: usize) -> Meaning {
        let (class, rights, route) = (ObjectClass::Endpoint, SENDABLE, vec![from, at]);
        Meaning { class, endpoint, badge: 0, rights, route, is_origin: false, mint: None, revoked: (0, 0) }
    }

    /// Extends the route to a core, or shortens it if the capability goes back to where it came from.
    fn go(&mut self, to: usize) {
        (self.rights, self.is_origin) = (self.rights & sendable(self.class), false);
        if self.route.len() > 1 && self.route[self.route.len() - 2] == to {
            self.route.pop();
            // The route no longer leads over the core where its badge was made.
            self.mint = self.mint.filter(|(_, length)| *length <= self.route.len());
        } else {
            self.route.push(to);
        }
    }

    /// Returns whether the last step went back.
    fn has_come_back(&self, from: usize, to: usize) -> bool {
        !self.route.ends_with(&[from, to])
    }
}

impl Node {
    fn new() -> Node {
        let (kernel, common) = Fake::new();
        let proxies = Proxies::new(kernel, common);
        Node { proxies, seen: BTreeMap::new(), lost: Vec::new() }
    }
}
