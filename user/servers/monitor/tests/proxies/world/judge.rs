//! Checks that every capability has its expected meaning, by asking the kernels and by following its route; and that
//! nothing is left.

use tench_quota::Client;

use tench_abi::{CapAddress, Rights};
use tench_monitor::message::carried::{Carried, ObjectClass};
use tench_monitor::transfer::proxies::{Kernel, PROXIES, Target};

use super::{Meaning, Node, SENDABLE, World};
use crate::kernel::{Origin, Receiver};

/// More hops than any route has.
const MOST_HOPS: usize = 200;

impl World {
    /// Returns whether a capability should lead to its endpoint; `otherwise` if that is unknown because a core on the
    /// route is hostile or has stopped.
    pub(super) fn is_alive(&self, meaning: &Meaning, otherwise: bool) -> bool {
        let (is_there, revoked) = self.endpoints[meaning.endpoint];
        let revoked_badge = meaning.mint.map_or(0, |(mint, _)| self.mints[mint]);
        if !is_there || meaning.revoked.0 < revoked || meaning.mint.is_some() && meaning.revoked.1 < revoked_badge {
            return false;
        }
        let is_unsure = |at: &usize| self.network.has_stopped(*at) || self.hostile == Some(*at);
        if meaning.route.len() > 1 && meaning.route.iter().any(is_unsure) { otherwise } else { true }
    }

    /// Follows a capability over other cores. Returns the number of hops, and the object and badge that it reaches.
    pub fn follow(&mut self, at: usize, slot: CapAddress) -> (usize, Option<(usize, u64)>) {
        let (mut at, mut slot, mut copies) = (at, slot, Vec::new());
        let reached = loop {
            let badge = self.cap(at, slot).badge;
            let receiver = self.kernel(at).receiver(slot).expect("it is there");
            if let Receiver::Process(endpoint) | Receiver::Signalled(endpoint) = receiver {
                break Some((endpoint, badge));
            }
            let (name, badge) = self.proxy(at, receiver, badge);
            let Some(Target { core, number }) = self.nodes[at].proxies.target(name) else { break None };
            let there = core as usize;
            let is_cut = self.network.has_stopped(there);
            let copy = self.nodes[there].proxies.copy(number, at as u64, Rights::all(), badge).ok();
            let Some(copy) = copy.filter(|_| !is_cut) else { break None };
            copies.push((there, copy));
            (at, slot) = (there, copy);
            assert!(copies.len() < MOST_HOPS, "it leads in a circle");
        };
        let hops = copies.len();
        for (at, copy) in copies {
            self.kernel(at).delete(copy);
        }
        (hops, reached)
    }

    /// Checks that every capability has its expected meaning, and that each name of a proxy has kept its own.
    pub fn judge(&mut self) {
        for at in self.network.alive() {
            for slot in self.kernel(at).of_processes() {
                let (cap, meaning) = (self.cap(at, slot), self.meaning(at, slot));
                let (hops, reached) = self.follow(at, slot);
                assert_eq!(cap.rights, meaning.rights, "rights on core {at}: {meaning:?}");
                assert_eq!(cap.origin != Origin::Copy, meaning.is_origin, "core {at} may revoke others: {meaning:?}");
                if reached.is_none() {
                    assert!(!self.is_alive(&meaning, false), "core {at} does not reach {meaning:?}");
                    continue;
                }
                assert!(self.is_alive(&meaning, true), "core {at} reaches what is gone: {meaning:?}");
                assert_eq!(reached, Some((meaning.endpoint, meaning.badge)), "core {at} reaches something else");
                assert_eq!(hops, meaning.route.len() - 1, "core {at} takes another way to {meaning:?}");
            }
            self.nodes[at].check_names(at);
        }
    }

    pub fn run_until_idle(&mut self) {
        loop {
            while self.go_on() {}
            for at in self.network.alive() {
                self.nodes[at].proxies.sweep();
                while !self.is_quiet(at) {
                    self.hear(at);
                    self.send_releases(at);
                }
            }
            if self.network.ready().is_empty() && self.network.unaware.is_empty() {
                return self.judge_signals();
            }
        }
    }

    /// Drops all capabilities, and checks that nothing is left.
    pub fn drop_everything(&mut self) {
        self.run_until_idle();
        self.judge();
        for round in 0..2 {
            for at in 0..self.nodes.len() {
                for slot in self.kernel(at).of_processes() {
                    self.kernel(at).drop_one(slot);
                }
            }
            self.run_until_idle();
            let alive = self.network.alive();
            for at in &alive {
                self.check_empty(*at);
            }
            if round == 0 {
                alive.iter().for_each(|at| self.fill(*at));
            }
        }
    }

    /// Checks that nothing is left.
    pub fn check_empty(&mut self, at: usize) {
        let count = self.nodes[at].proxies.count();
        assert_eq!((at, count, self.kernel(at).slots()), (at, (0, 0), vec![]), "copies, proxies and slots are left");
        assert_eq!(self.kernel(at).endpoints.len(), 2, "endpoints or notifications are left on core {at}");
        assert!(self.kernel(at).listeners.is_empty(), "somebody still waits on core {at}");
        for to in 0..self.nodes.len() {
            assert_eq!(self.nodes[at].proxies.next_release(to as u64), None, "core {at} has something to say to {to}");
        }
    }

    /// Lets one process take as many as it can: half of all.
    fn fill(&mut self, at: usize) {
        let Some(from) = self.network.alive().into_iter().find(|other| *other != at) else { return };
        let mut taken = 0;
        while taken < PROXIES {
            let number = 1 << 40 | taken as u64;
            let class = ObjectClass::Endpoint;
            let carried = Carried::Held { class, number, rights: SENDABLE, is_plain: false, server: None };
            let Ok(slot) = self.nodes[at].proxies.receive(&carried, from as u64, Client::alone(1)) else { break };
            self.endpoints.push((false, 0));
            let meaning = Meaning::of_nothing(self.endpoints.len() - 1, from, at);
            self.kernel(at).take_out(slot, meaning);
            taken += 1;
        }
        assert_eq!((at, taken), (at, PROXIES / 2), "some entries are not free");
    }
}

impl Node {
    pub(super) fn check_names(&mut self, at: usize) {
        for name in self.proxies.kernel().names.clone() {
            let target = self.proxies.target(name);
            let before = *self.seen.entry(name).or_insert(target);
            assert!(target.is_none() || target == before, "{name:#x} leads somewhere else on core {at}");
            self.seen.insert(name, target);
        }
    }
}
