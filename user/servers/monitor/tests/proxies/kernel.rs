//! A fake kernel: endpoints and notifications, and the capabilities to them.
//!
//! Slots and the addresses of endpoints are reused as soon as they are free, the last freed first. So a stale reference
//! finds another object.

use std::collections::{BTreeMap, BTreeSet};

use tench_abi::{CapAddress, Error as KernelError, Rights};
use tench_monitor::message::carried::ObjectClass;
use tench_monitor::transfer::proxies::{Common, FIRST_BIT, Found, Kernel};

/// First slot of processes.
const PROCESSES: u32 = 1 << 20;

/// The receiver at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// A process, which knows the endpoint by this number.
    Process(usize),
    /// The monitor, at the proxy that all badged capabilities share.
    Common,
    /// The monitor, at the proxy of this name.
    Own(u64),
    /// A process: it receives the signals at the notification that it knows by this number.
    Signalled(usize),
    /// The monitor's main thread: it receives the signals at proxies that are bits.
    Bits,
    /// A thread of the monitor: it receives the signals at the proxy of this name.
    Listener(u64),
}

impl Receiver {
    const fn class(self) -> ObjectClass {
        match self {
            Receiver::Process(_) | Receiver::Common | Receiver::Own(_) => ObjectClass::Endpoint,
            Receiver::Signalled(_) | Receiver::Bits | Receiver::Listener(_) => ObjectClass::Notification,
        }
    }

    /// Returns whether the object was opened, and so has to be closed.
    const fn is_opened(self) -> bool {
        matches!(self, Receiver::Own(_) | Receiver::Listener(_))
    }
}

/// A thread of the monitor that waits at a notification.
#[derive(Clone, Copy, Debug, Default)]
pub struct Listener {
    /// Bits that it has received, and that the main thread has not collected.
    pub hand: u64,
    /// Bits that were pending when the notification was closed.
    pub rest: u64,
    /// Set if the notification is gone.
    pub is_closed: bool,
}

/// Set of capabilities that a revoke deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// All other capabilities to the endpoint.
    Endpoint,
    /// All others with its badge.
    Badge,
    /// None: it is a copy.
    Copy,
}

#[derive(Clone, Debug)]
pub struct Cap<M> {
    pub physical: u64,
    pub badge: u64,
    pub rights: Rights,
    pub origin: Origin,
    /// The expected meaning. It is not part of the kernel's state, but copied with the capability.
    pub meaning: Option<M>,
}

/// The kernel of one core.
pub struct Fake<M> {
    pub caps: BTreeMap<u32, Cap<M>>,
    pub endpoints: BTreeMap<u64, Receiver>,
    /// Pending bits of notifications.
    pub words: BTreeMap<u64, u64>,
    pub listeners: BTreeMap<u64, Listener>,
    /// Slots that the monitor has taken. They may be empty.
    taken: BTreeSet<u32>,
    free_slots: Vec<u32>,
    free_addresses: Vec<u64>,
    last_slot: u32,
    last_process_slot: u32,
    last_address: u64,
    common: u32,
    signals: u32,
    /// Signals from the monitor to processes: the notification, and the bits.
    pub delivered: Vec<(usize, u64)>,
    /// Every name that a proxy was ever given.
    pub names: BTreeSet<u64>,
    /// Number of calls until one fails for lack of memory.
    pub patience: Option<usize>,
    /// Number of calls that failed for lack of memory.
    pub refusals: usize,
}

impl<M: Clone> Fake<M> {
    /// Returns a kernel with the objects that all badged proxies share, and their physical addresses.
    pub fn new() -> (Fake<M>, Common) {
        let mut fake = Fake {
            caps: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            words: BTreeMap::new(),
            listeners: BTreeMap::new(),
            taken: BTreeSet::new(),
            free_slots: Vec::new(),
            free_addresses: Vec::new(),
            last_slot: 0,
            last_process_slot: PROCESSES,
            last_address: 0,
            common: 0,
            signals: 0,
            delivered: Vec::new(),
            names: BTreeSet::new(),
            patience: None,
            refusals: 0,
        };
        let [(endpoint, common), (notification, signals)] = [Receiver::Common, Receiver::Bits].map(|receiver| {
            let (physical, slot) = (fake.make(receiver), fake.take_slot());
            fake.caps.insert(slot, Cap::original(physical));
            (physical, slot)
        });
        (fake.common, fake.signals) = (common, signals);
        (fake, Common { endpoint, notification })
    }

    /// Makes an endpoint.
    fn make(&mut self, receiver: Receiver) -> u64 {
        let physical = self.free_addresses.pop().unwrap_or_else(|| {
            self.last_address += 0x40;
            self.last_address
        });
        assert_eq!(self.endpoints.insert(physical, receiver), None);
        physical
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
        if !self.caps.values().any(|other| other.physical == cap.physical) {
            self.endpoints.remove(&cap.physical);
            self.words.remove(&cap.physical);
            self.free_addresses.push(cap.physical);
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

    /// Moves what the monitor has made to a process. `None` if it has been revoked meanwhile.
    pub fn take_out(&mut self, slot: CapAddress, meaning: M) -> CapAddress {
        let cap = self.caps.get_mut(&slot.0).expect("what was received is a capability");
        cap.meaning = Some(meaning);
        let copy = cap.clone();
        self.caps.remove(&slot.0);
        self.free(slot.0);
        self.give(copy)
    }

    /// Makes an endpoint or a notification for a process.
    pub fn make_object(&mut self, receiver: Receiver, meaning: M) -> CapAddress {
        let physical = self.make(receiver);
        self.give(Cap { meaning: Some(meaning), ..Cap::original(physical) })
    }

    /// Destroys an endpoint, as the revoke of its memory does.
    pub fn destroy(&mut self, physical: u64) {
        let slots: Vec<u32> =
            self.caps.iter().filter(|(_, cap)| cap.physical == physical).map(|(slot, _)| *slot).collect();
        slots.into_iter().for_each(|slot| self.remove(slot));
    }

    /// Deletes a capability of a process.
    pub fn drop_one(&mut self, slot: CapAddress) {
        assert!(slot.0 > PROCESSES);
        self.remove(slot.0);
    }

    /// Deletes all capabilities that a revoke of this one deletes.
    pub fn revoke(&mut self, slot: CapAddress) {
        let Cap { physical, badge, origin, .. } = self.caps[&slot.0].clone();
        let goes = |other: &Cap<M>| match origin {
            Origin::Endpoint => other.physical == physical,
            Origin::Badge => other.physical == physical && other.badge == badge,
            Origin::Copy => false,
        };
        let slots: Vec<u32> = self.caps.iter().filter(|(_, cap)| goes(cap)).map(|(slot, _)| *slot).collect();
        slots.into_iter().filter(|other| *other != slot.0).for_each(|slot| self.remove(slot));
    }

    /// Returns the capabilities of processes.
    pub fn of_processes(&self) -> Vec<CapAddress> {
        self.caps.range(PROCESSES..).map(|(slot, _)| CapAddress(*slot)).collect()
    }

    /// Returns the monitor's slots other than those of the common proxies.
    pub fn slots(&self) -> Vec<u32> {
        self.taken.iter().copied().filter(|slot| ![self.common, self.signals].contains(slot)).collect()
    }

    /// Signals with a slot's capability. If a process is to be told, returns the notification and the bits.
    pub fn signal_with(&mut self, slot: CapAddress, bits: u64) -> Option<(usize, u64)> {
        let cap = self.caps.get(&slot.0).filter(|cap| cap.rights.contains(Rights::WRITE))?;
        let (physical, bits) = (cap.physical, if cap.badge == 0 { bits } else { cap.badge });
        match self.endpoints[&physical] {
            Receiver::Signalled(number) => Some((number, bits)),
            receiver => {
                assert_eq!(receiver.class(), ObjectClass::Notification, "an endpoint is signalled");
                *self.words.entry(physical).or_default() |= bits;
                None
            }
        }
    }

    /// Lets the thread that waits at the proxy of a name receive pending bits.
    pub fn listen(&mut self, name: u64) {
        let physical = self.physical_address_of(Receiver::Listener(name));
        let word = physical.and_then(|physical| self.words.remove(&physical)).unwrap_or(0);
        self.listeners.get_mut(&name).expect("it waits").hand |= word;
    }

    fn physical_address_of(&self, receiver: Receiver) -> Option<u64> {
        self.endpoints.iter().find_map(|(physical, at)| (*at == receiver).then_some(*physical))
    }

    /// Returns the receiver at a slot's object.
    pub fn receiver(&self, slot: CapAddress) -> Option<Receiver> {
        self.caps.get(&slot.0).map(|cap| self.endpoints[&cap.physical])
    }

    fn free(&mut self, slot: u32) {
        assert!(self.taken.remove(&slot), "a slot is given back that the monitor does not have");
        self.free_slots.push(slot);
    }

    fn may(&mut self) -> Result<(), KernelError> {
        match &mut self.patience {
            Some(0) => {
                (self.patience, self.refusals) = (None, self.refusals + 1);
                Err(KernelError::OutOfMemory)
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
    fn original(physical: u64) -> Cap<M> {
        Cap { physical, badge: 0, rights: Rights::all(), origin: Origin::Endpoint, meaning: None }
    }
}

impl<M: Clone> Kernel for Fake<M> {
    fn look(&self, slot: CapAddress) -> Option<Found> {
        let cap = self.caps.get(&slot.0)?;
        Some(Found {
            class: self.endpoints[&cap.physical].class(),
            physical: cap.physical,
            badge: cap.badge,
            rights: cap.rights,
        })
    }

    fn is_used(&self, slot: CapAddress) -> bool {
        let Some(cap) = self.caps.get(&slot.0) else { return false };
        let is_like = |other: &Cap<M>| other.physical == cap.physical && (cap.badge == 0 || other.badge == cap.badge);
        self.caps.iter().any(|(number, other)| *number != slot.0 && is_like(other))
    }

    fn delete(&mut self, slot: CapAddress) {
        let is_opened = self.caps.get(&slot.0).is_some_and(|cap| cap.origin == Origin::Endpoint)
            && self.receiver(slot).is_some_and(Receiver::is_opened);
        assert!(!is_opened, "what was opened is closed");
        self.remove(slot.0);
        self.free(slot.0);
    }

    fn copy(&mut self, slot: CapAddress, rights: Rights, badge: u64) -> Result<CapAddress, KernelError> {
        assert!(self.taken.contains(&slot.0), "the monitor copies what is not its own");
        self.may()?;
        let cap = self.caps.get(&slot.0).ok_or(KernelError::InvalidCapability)?;
        if badge != 0 && cap.badge != 0 {
            return Err(KernelError::InvalidArgument);
        }
        let origin = if badge == 0 { Origin::Copy } else { Origin::Badge };
        let copy = Cap { rights: cap.rights & rights, badge: cap.badge | badge, origin, ..cap.clone() };
        Ok(self.hand_in(copy))
    }

    fn common(&mut self, badge: u64, rights: Rights) -> Result<CapAddress, KernelError> {
        assert_ne!(badge, 0, "the common proxy itself is given away");
        let made = self.copy(CapAddress(self.common), rights, badge)?;
        assert!(self.names.insert(badge), "{badge:#x} was the name of another");
        Ok(made)
    }

    fn bits(&mut self, bits: u64) -> Result<CapAddress, KernelError> {
        assert!(bits.is_power_of_two() && bits >= 1 << FIRST_BIT, "{bits:#x} is no bit of a proxy's");
        let is_it = |cap: &Cap<M>| cap.physical == self.caps[&self.signals].physical && cap.badge == bits;
        assert!(!self.caps.values().any(is_it), "{bits:#x} is in use");
        self.copy(CapAddress(self.signals), Rights::WRITE, bits)
    }

    fn open(&mut self, proxy: u64, class: ObjectClass) -> Result<(CapAddress, u64), KernelError> {
        self.may()?;
        assert!(self.names.insert(proxy), "{proxy:#x} was the name of another");
        let receiver = match class {
            ObjectClass::Endpoint => Receiver::Own(proxy),
            ObjectClass::Notification => {
                self.listeners.insert(proxy, Listener::default());
                Receiver::Listener(proxy)
            }
        };
        let physical = self.make(receiver);
        Ok((self.hand_in(Cap::original(physical)), physical))
    }

    fn close(&mut self, proxy: u64) -> bool {
        let addresses =
            [Receiver::Own(proxy), Receiver::Listener(proxy)].map(|receiver| self.physical_address_of(receiver));
        let physical = addresses.into_iter().flatten().next().expect("what is closed was opened");
        let rest = self.words.remove(&physical).unwrap_or(0);
        let listener = self.listeners.get_mut(&proxy);
        let is_endpoint = listener.is_none();
        listener.into_iter().for_each(|listener| (listener.rest, listener.is_closed) = (rest, true));
        let is_own = |(slot, cap): (&u32, &Cap<M>)| {
            (cap.physical == physical && cap.origin == Origin::Endpoint).then_some(*slot)
        };
        let own = self.caps.iter().find_map(is_own).expect("the monitor has it");
        self.destroy(physical);
        self.free(own);
        is_endpoint
    }

    fn drain(&mut self) -> u64 {
        let physical = self.caps[&self.signals].physical;
        self.words.remove(&physical).unwrap_or(0)
    }

    fn signal(&mut self, slot: CapAddress, bits: u64) {
        let delivered = self.signal_with(slot, bits);
        self.delivered.extend(delivered);
    }
}
