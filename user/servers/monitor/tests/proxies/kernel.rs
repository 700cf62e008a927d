//! A kernel that is none: endpoints, and who has which capability to them.
//!
//! Slots and the places of endpoints are used again as soon as they are free, the last that was freed first. So whoever remembers one for too
//! long finds something else there.

use std::collections::{BTreeMap, BTreeSet};

use tench_abi::{CapAddress, Error as Refusal, Rights};
use tench_monitor::proxies::{Found, Kernel};

/// Slots of processes begin here.
const PROCESSES: u32 = 1 << 20;

/// Who receives at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// A process, which knows it by this number.
    Process(usize),
    /// The monitor, at the proxy that all capabilities with badges have in common.
    Common,
    /// The monitor, at the proxy of this name.
    Own(u64),
}

/// What goes when a capability is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// All others to the endpoint.
    Endpoint,
    /// All others with its badge.
    Badge,
    /// Nothing: it is a copy.
    Copy,
}

#[derive(Clone, Debug)]
pub struct Cap<M> {
    pub place: u64,
    pub badge: u64,
    pub rights: Rights,
    pub origin: Origin,
    /// What it ought to be. No part of the kernel, which passes it on to copies.
    pub meaning: Option<M>,
}

/// The kernel of one core.
pub struct Fake<M> {
    pub caps: BTreeMap<u32, Cap<M>>,
    pub endpoints: BTreeMap<u64, Receiver>,
    /// Slots that the monitor has. They may be empty.
    taken: BTreeSet<u32>,
    free_slots: Vec<u32>,
    free_places: Vec<u64>,
    last_slot: u32,
    last_process_slot: u32,
    last_place: u64,
    common: u32,
    /// Every name that a proxy was ever given.
    pub names: BTreeSet<u64>,
    /// Calls until there is no memory for one.
    pub patience: Option<usize>,
    /// Calls that were refused for want of memory.
    pub refusals: usize,
}

impl<M: Clone> Fake<M> {
    /// With the proxy that all capabilities with badges have in common; answers where it lies.
    pub fn new() -> (Fake<M>, u64) {
        let mut fake = Fake {
            caps: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            taken: BTreeSet::new(),
            free_slots: Vec::new(),
            free_places: Vec::new(),
            last_slot: 0,
            last_process_slot: PROCESSES,
            last_place: 0,
            common: 0,
            names: BTreeSet::new(),
            patience: None,
            refusals: 0,
        };
        let place = fake.make(Receiver::Common);
        fake.common = fake.take_slot();
        fake.caps.insert(fake.common, Cap::original(place));
        (fake, place)
    }

    /// Makes an endpoint.
    fn make(&mut self, receiver: Receiver) -> u64 {
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.last_place += 0x40;
            self.last_place
        });
        assert_eq!(self.endpoints.insert(place, receiver), None);
        place
    }

    fn take_slot(&mut self) -> u32 {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.last_slot += 1;
            self.last_slot
        });
        assert!(self.taken.insert(slot));
        slot
    }

    fn remove(&mut self, slot: u32) {
        let Some(cap) = self.caps.remove(&slot) else { return };
        if !self.caps.values().any(|other| other.place == cap.place) {
            self.endpoints.remove(&cap.place);
            self.free_places.push(cap.place);
        }
    }

    /// Puts a capability into a slot of a process.
    pub fn give(&mut self, cap: Cap<M>) -> CapAddress {
        self.last_process_slot += 1;
        self.caps.insert(self.last_process_slot, cap);
        CapAddress(self.last_process_slot)
    }

    /// Puts a capability into a slot of the monitor.
    pub fn hand_in(&mut self, cap: Cap<M>) -> CapAddress {
        let slot = self.take_slot();
        self.caps.insert(slot, cap);
        CapAddress(slot)
    }

    /// A process takes what the monitor has made for it. `None` if somebody has revoked it meanwhile.
    pub fn take_out(&mut self, slot: CapAddress, meaning: M) -> CapAddress {
        let cap = self.caps.get_mut(&slot.0).expect("what was received is a capability");
        cap.meaning = Some(meaning);
        let copy = cap.clone();
        self.caps.remove(&slot.0);
        self.free(slot.0);
        self.give(copy)
    }

    /// A process makes an endpoint.
    pub fn make_endpoint(&mut self, number: usize, meaning: M) -> CapAddress {
        let place = self.make(Receiver::Process(number));
        self.give(Cap { meaning: Some(meaning), ..Cap::original(place) })
    }

    /// Memory in which an endpoint lies is taken back.
    pub fn destroy(&mut self, place: u64) {
        let slots: Vec<u32> = self.caps.iter().filter(|(_, cap)| cap.place == place).map(|(slot, _)| *slot).collect();
        slots.into_iter().for_each(|slot| self.remove(slot));
    }

    /// Deletes a capability of a process.
    pub fn drop_one(&mut self, slot: CapAddress) {
        assert!(slot.0 > PROCESSES);
        self.remove(slot.0);
    }

    /// Deletes all others that a revocation takes.
    pub fn revoke(&mut self, slot: CapAddress) {
        let Cap { place, badge, origin, .. } = self.caps[&slot.0].clone();
        let goes = |other: &Cap<M>| match origin {
            Origin::Endpoint => other.place == place,
            Origin::Badge => other.place == place && other.badge == badge,
            Origin::Copy => false,
        };
        let slots: Vec<u32> = self.caps.iter().filter(|(_, cap)| goes(cap)).map(|(slot, _)| *slot).collect();
        slots.into_iter().filter(|other| *other != slot.0).for_each(|slot| self.remove(slot));
    }

    /// Capabilities that processes have.
    pub fn of_processes(&self) -> Vec<CapAddress> {
        self.caps.range(PROCESSES..).map(|(slot, _)| CapAddress(*slot)).collect()
    }

    /// Slots of the monitor other than that of the common proxy.
    pub fn slots(&self) -> Vec<u32> {
        self.taken.iter().copied().filter(|slot| *slot != self.common).collect()
    }

    /// Who receives at what lies in a slot.
    pub fn receiver(&self, slot: CapAddress) -> Option<Receiver> {
        self.caps.get(&slot.0).map(|cap| self.endpoints[&cap.place])
    }

    fn free(&mut self, slot: u32) {
        assert!(self.taken.remove(&slot), "a slot is given back that the monitor does not have");
        self.free_slots.push(slot);
    }

    fn may(&mut self) -> Result<(), Refusal> {
        match &mut self.patience {
            Some(0) => {
                (self.patience, self.refusals) = (None, self.refusals + 1);
                Err(Refusal::OutOfMemory)
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl<M> Cap<M> {
    fn original(place: u64) -> Cap<M> {
        Cap { place, badge: 0, rights: Rights::all(), origin: Origin::Endpoint, meaning: None }
    }
}

impl<M: Clone> Kernel for Fake<M> {
    fn look(&self, slot: CapAddress) -> Option<Found> {
        let cap = self.caps.get(&slot.0)?;
        Some(Found { place: cap.place, badge: cap.badge, rights: cap.rights })
    }

    fn is_used(&self, slot: CapAddress) -> bool {
        let Some(cap) = self.caps.get(&slot.0) else { return false };
        let is_like = |other: &Cap<M>| other.place == cap.place && (cap.badge == 0 || other.badge == cap.badge);
        self.caps.iter().any(|(number, other)| *number != slot.0 && is_like(other))
    }

    fn delete(&mut self, slot: CapAddress) {
        let is_opened = self.caps.get(&slot.0).is_some_and(|cap| cap.origin == Origin::Endpoint)
            && matches!(self.receiver(slot), Some(Receiver::Own(_)));
        assert!(!is_opened, "what was opened is closed");
        self.remove(slot.0);
        self.free(slot.0);
    }

    fn copy(&mut self, slot: CapAddress, rights: Rights, badge: u64) -> Result<CapAddress, Refusal> {
        assert!(self.taken.contains(&slot.0), "the monitor copies what is not its own");
        self.may()?;
        let cap = self.caps.get(&slot.0).ok_or(Refusal::InvalidCapability)?;
        if badge != 0 && cap.badge != 0 {
            return Err(Refusal::InvalidArgument);
        }
        let origin = if badge == 0 { Origin::Copy } else { Origin::Badge };
        let copy = Cap { rights: cap.rights & rights, badge: cap.badge | badge, origin, ..cap.clone() };
        Ok(self.hand_in(copy))
    }

    fn common(&mut self, badge: u64, rights: Rights) -> Result<CapAddress, Refusal> {
        assert_ne!(badge, 0, "the common proxy itself is given away");
        let made = self.copy(CapAddress(self.common), rights, badge)?;
        assert!(self.names.insert(badge), "{badge:#x} was the name of another");
        Ok(made)
    }

    fn open(&mut self, proxy: u64) -> Result<(CapAddress, u64), Refusal> {
        self.may()?;
        assert!(self.names.insert(proxy), "{proxy:#x} was the name of another");
        let place = self.make(Receiver::Own(proxy));
        Ok((self.hand_in(Cap::original(place)), place))
    }

    fn close(&mut self, proxy: u64) {
        let at = |(place, receiver): (&u64, &Receiver)| (*receiver == Receiver::Own(proxy)).then_some(*place);
        let place = self.endpoints.iter().find_map(at).expect("what is closed was opened");
        let is_own =
            |(slot, cap): (&u32, &Cap<M>)| (cap.place == place && cap.origin == Origin::Endpoint).then_some(*slot);
        let own = self.caps.iter().find_map(is_own).expect("the monitor has it");
        self.destroy(place);
        self.free(own);
    }
}
