//! Cores with their ledgers, and fake kernels that know the derivation of capabilities as far as the ledgers need it.

use std::collections::BTreeMap;
use tench_quota::Client;

use tench_abi::{CapAddress, Error as KernelError, Rights};
use tench_monitor::message::line::Line;
use tench_monitor::transfer::exchange::mailbox::ReceivedTransfer;
use tench_monitor::transfer::exchange::{Done, Exchange, Found, Kernel, OutgoingTransfer};
use tench_monitor_interface::protocol::{Error, pid_base};
use tench_remote::{Core, Kind, ObjectId, Shape};

use crate::simulation::Network;

pub const PAGE: u64 = 4096;

pub fn core(number: u8) -> Core {
    Core::new(number).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    pub shape: Shape,
    pub rights: Rights,
    pub borrowed: bool,
    pub exported: bool,
    /// Set if revocation of the exported capability is requested.
    pub revoke_requested: bool,
    /// Set if the slot is a client's and not the monitor's.
    pub client: bool,
    /// Depth of derivation among memory of the same extent.
    pub depth: u32,
}

/// A fake kernel: capabilities by number, whichever process holds them.
#[derive(Default)]
pub struct Fake {
    pub caps: BTreeMap<u32, Cap>,
    last: u32,
    /// Number of calls until one fails for lack of memory.
    pub patience: Option<u32>,
    /// Device memory.
    pub devices: Vec<u64>,
    /// Cores that have stopped.
    pub off: Vec<Core>,
}

impl Fake {
    pub fn add(&mut self, cap: Cap) -> CapAddress {
        self.last += 1;
        self.caps.insert(self.last, cap);
        CapAddress(self.last)
    }

    fn get(&self, slot: CapAddress) -> Result<Cap, KernelError> {
        self.caps.get(&slot.0).copied().ok_or(KernelError::InvalidCapability)
    }

    fn may(&mut self) -> Result<(), KernelError> {
        match &mut self.patience {
            Some(0) => Err(KernelError::OutOfMemory),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn lies_in(inner: &Shape, outer: &Shape) -> bool {
        outer.base <= inner.base && inner.base + inner.bytes <= outer.base + outer.bytes
    }

    fn is_made_of(made: &Cap, of: &Cap) -> bool {
        Self::lies_in(&made.shape, &of.shape)
            && (made.shape.kind != Kind::Untyped || made.shape.bytes < of.shape.bytes || made.depth > of.depth)
    }

    /// Deletes everything in a range except exported capabilities and the slot. Fails if exported ones are left.
    pub fn revoke(&mut self, slot: CapAddress) -> Result<(), KernelError> {
        let cap = self.get(slot)?;
        let goes = |other: &Cap| match cap.shape.kind {
            Kind::Untyped => Self::is_made_of(other, &cap),
            _ => other.shape == cap.shape,
        };
        self.caps.retain(|number, other| *number == slot.0 || other.exported || !goes(other));
        let mut stays = false;
        for (number, other) in &mut self.caps {
            if other.exported && (*number == slot.0 || goes(other)) {
                (other.revoke_requested, stays) = (true, true);
            }
        }
        if stays { Err(KernelError::RemoteCopies) } else { Ok(()) }
    }
}

impl Kernel for Fake {
    fn look(&self, slot: CapAddress) -> Option<Found> {
        let cap = self.get(slot).ok()?;
        Some(Found::Memory { shape: cap.shape, rights: cap.rights, is_borrowed: cap.borrowed })
    }

    fn export(&mut self, slot: CapAddress) -> Result<(), KernelError> {
        self.may()?;
        let cap = self.get(slot)?;
        if self.devices.contains(&cap.shape.base) {
            return Err(KernelError::DeviceMemory);
        }
        if cap.borrowed {
            return Err(KernelError::Borrowed);
        }
        if self.caps.values().any(|other| other.shape == cap.shape && other.exported) {
            return Err(KernelError::Lent);
        }
        if cap.shape.kind == Kind::Untyped && self.is_used(slot) {
            return Err(KernelError::Busy);
        }
        let cap = self.caps.get_mut(&slot.0).unwrap();
        (cap.exported, cap.revoke_requested) = (true, false);
        Ok(())
    }

    fn unexport(&mut self, slot: CapAddress) -> Result<(), KernelError> {
        let cap = self.get(slot)?;
        if !cap.exported {
            return Err(KernelError::NotExported);
        }
        if cap.shape.kind == Kind::Untyped && self.is_used(slot) {
            return Err(KernelError::Busy);
        }
        self.caps.get_mut(&slot.0).unwrap().exported = false;
        Ok(())
    }

    fn import(&mut self, shape: &Shape) -> Result<CapAddress, KernelError> {
        self.may()?;
        let overlaps = |other: &Cap| {
            other.shape.base < shape.base + shape.bytes && shape.base < other.shape.base + other.shape.bytes
        };
        let is_lent =
            |other: &Cap| other.exported && other.shape.kind == Kind::Untyped && Self::lies_in(shape, &other.shape);
        if self.caps.values().any(|other| overlaps(other) && !is_lent(other)) {
            return Err(KernelError::Overlap);
        }
        let rights = Rights::all();
        let around = self.caps.values().filter(|other| overlaps(other)).map(|other| other.depth + 1).max();
        let depth = around.unwrap_or(0);
        Ok(self.add(Cap {
            shape: *shape,
            rights,
            borrowed: true,
            exported: false,
            revoke_requested: false,
            client: false,
            depth,
        }))
    }

    fn copy(&mut self, slot: CapAddress, kind: Kind, rights: Rights) -> Result<CapAddress, KernelError> {
        self.may()?;
        let cap = self.get(slot)?;
        let child = kind == Kind::Untyped;
        let borrowed = cap.borrowed && !child;
        let rights = if child { Rights::all() } else { cap.rights & rights };
        let depth = cap.depth + u32::from(child);
        Ok(self.add(Cap { rights, borrowed, exported: false, revoke_requested: false, depth, ..cap }))
    }

    fn is_used(&self, slot: CapAddress) -> bool {
        let Ok(cap) = self.get(slot) else { return true };
        self.caps.iter().any(|(number, other)| {
            *number != slot.0
                && match cap.shape.kind {
                    Kind::Untyped => Self::is_made_of(other, &cap),
                    _ => other.shape == cap.shape,
                }
        })
    }

    fn is_revoke_requested(&self, slot: CapAddress) -> bool {
        self.get(slot).is_ok_and(|cap| cap.exported && cap.revoke_requested)
    }

    fn delete(&mut self, slot: CapAddress) {
        if let Some(cap) = self.caps.get(&slot.0) {
            assert!(!cap.exported, "an exported capability was deleted");
        }
        self.caps.remove(&slot.0);
    }

    fn is_off(&self, core: Core) -> bool {
        self.off.contains(&core)
    }
}

/// A waiting requester: a number.
pub type Who = u64;

/// Reply that a requester got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    Reply(Result<(), Error>),
    /// A transfer: its sender, its word, and the slot.
    Transfer(u64, u64, CapAddress),
}

pub struct World {
    pub cores: Vec<Exchange<Fake, Who>>,
    /// Events on their way: operations and words.
    network: Network<(u16, Vec<u64>)>,
    pub heard: BTreeMap<Who, Heard>,
    /// Roots that are being deleted.
    pub deleting: Vec<(usize, ObjectId, CapAddress)>,
    last: Who,
}

impl World {
    pub fn new(count: u8) -> World {
        World::with(count, |_, _| true)
    }

    /// Returns a world with channels between some of the cores.
    pub fn with(count: u8, is_connected: impl Fn(u8, u8) -> bool) -> World {
        let mut cores: Vec<_> =
            (0..count).map(|at| Exchange::new(u64::from(at), u64::from(count), Fake::default()).unwrap()).collect();
        for (at, exchange) in cores.iter_mut().enumerate() {
            let at = at as u8;
            let others = (0..count).filter(|other| *other != at && is_connected(at.min(*other), at.max(*other)));
            others.for_each(|other| exchange.connect(core(other)));
        }
        World { cores, network: Network::new(count.into()), heard: BTreeMap::new(), deleting: Vec::new(), last: 0 }
    }

    pub fn kernel(&mut self, at: usize) -> &mut Fake {
        self.cores[at].kernel()
    }

    /// Makes a client's capability.
    pub fn make(&mut self, at: usize, kind: Kind, base: u64, bytes: u64) -> CapAddress {
        let shape = Shape { kind, base, bytes };
        let rights = Rights::all();
        self.kernel(at).add(Cap {
            shape,
            rights,
            borrowed: false,
            exported: false,
            revoke_requested: false,
            client: true,
            depth: 0,
        })
    }

    /// Copies a client's capability as it arrives at the monitor; untyped memory is moved.
    fn arrive(&mut self, at: usize, slot: CapAddress) -> CapAddress {
        let kernel = self.kernel(at);
        let cap = kernel.caps[&slot.0];
        if cap.shape.kind == Kind::Untyped {
            kernel.caps.remove(&slot.0);
        }
        kernel.add(Cap { exported: false, revoke_requested: false, client: false, ..cap })
    }

    fn who(&mut self) -> Who {
        self.last += 1;
        self.last
    }

    /// Lets a process send something, up to the point where it has the reservation.
    pub fn give(&mut self, at: usize, from: u64, slot: CapAddress, to: usize, process: u64, word: u64) -> Who {
        let who = self.who();
        let slot = self.arrive(at, slot);
        // Every second process belongs to a family.
        let family = if who.is_multiple_of(2) { 0 } else { 1 << tench_abi::power::FAMILY_SHIFT };
        let (sender, from) = (core(at as u8), pid_base(at as u64) | family | from);
        match self.cores[to].reserve(sender, from, Client::alone(process), word) {
            Ok(reservation) => {
                self.cores[at].send(OutgoingTransfer::new(Some(who), slot, from, core(to as u8), reservation))
            }
            Err(why) => self.cores[at].refuse(Some(who), slot, why),
        }
        who
    }

    pub fn take(&mut self, at: usize, process: u64) -> Who {
        let who = self.who();
        self.cores[at].take(Client::alone(process), who);
        who
    }

    pub fn revoke(&mut self, at: usize, from: u64, slot: CapAddress) -> Who {
        let who = self.who();
        let copy = self.arrive(at, slot);
        self.cores[at].revoke(pid_base(at as u64) | from, copy, who);
        self.kernel(at).delete(copy);
        who
    }

    pub fn recall(&mut self, at: usize, from: u64, base: u64, bytes: u64) -> Who {
        let who = self.who();
        self.cores[at].recall(pid_base(at as u64) | from, base, bytes, who);
        who
    }

    /// Lets all monitors poll their kernels, and handles the consequences.
    pub fn poll(&mut self) {
        self.cores.iter_mut().for_each(Exchange::poll);
        self.run_until_idle();
    }

    /// Collects replies, events and deletions.
    fn collect(&mut self) {
        for at in 0..self.cores.len() {
            let exchange = &mut self.cores[at];
            while let Some(done) = exchange.done() {
                let (who, heard) = match done {
                    Done::Reply(who, result) => (who, Heard::Reply(result)),
                    Done::Transfer(who, ReceivedTransfer { from, word, slot, .. }) => {
                        exchange.kernel().caps.get_mut(&slot.0).unwrap().client = true;
                        (who, Heard::Transfer(tench_abi::power::identity(from), word, slot))
                    }
                };
                assert_eq!(self.heard.insert(who, heard), None, "two replies");
            }
            while let Some((object, slot, _)) = exchange.deletion() {
                self.deleting.push((at, object, slot));
            }
            for to in (0..64).filter(|to| exchange.is_connected(core(*to))).collect::<Vec<_>>() {
                while let Some(line) = exchange.next_line(core(to)) {
                    exchange.said(core(to));
                    let (operation, words) = line.encode();
                    assert_eq!(Line::decode(operation, &words), Some(line));
                    let refused = self.network.send(at, usize::from(to), (operation, words.to_vec()));
                    assert_eq!(refused, None, "no core has stopped");
                }
            }
        }
    }

    /// Delivers an event of some channel, or ends a deletion. Returns whether there was anything to do.
    pub fn step(&mut self, choice: usize) -> bool {
        self.collect();
        let ready = self.network.ready();
        let all = ready.len() + self.deleting.len();
        if all == 0 {
            return false;
        }
        let choice = choice % all;
        if let Some(&(from, to)) = ready.get(choice) {
            let (operation, words) = self.network.next(from, to).unwrap();
            self.cores[to].receive(core(from as u8), operation, &words);
        } else {
            let (at, object, slot) = self.deleting.swap_remove(choice - ready.len());
            self.kernel(at).revoke(slot).expect("exported capabilities were taken back before");
            self.cores[at].deleted(object);
        }
        self.collect();
        true
    }

    /// Steps until nothing is left to do.
    pub fn run_until_idle(&mut self) {
        while self.step(0) {}
    }

    pub fn result_of(&mut self, who: Who) -> Result<(), Error> {
        self.run_until_idle();
        match self.heard.get(&who) {
            Some(Heard::Reply(result)) => *result,
            other => panic!("{who} heard {other:?}"),
        }
    }

    pub fn transfer(&mut self, who: Who) -> (u64, u64, CapAddress) {
        self.run_until_idle();
        match self.heard.get(&who) {
            Some(Heard::Transfer(from, word, slot)) => (*from, *word, *slot),
            other => panic!("{who} heard {other:?}"),
        }
    }

    /// Checks that nothing is under way or kept anywhere, and that each kernel has only the clients' own capabilities.
    pub fn check_empty(&mut self) {
        self.run_until_idle();
        for at in 0..self.cores.len() {
            self.cores[at].poll();
        }
        self.run_until_idle();
        for (at, exchange) in self.cores.iter_mut().enumerate() {
            assert_eq!((at, exchange.count(), exchange.requests()), (at, (0, 0, 0), 0));
            assert_eq!((at, exchange.faults(), exchange.charged()), (at, 0, 0));
            assert!(exchange.is_idle());
            let rest: Vec<Cap> = exchange.kernel().caps.values().filter(|cap| !cap.client).copied().collect();
            assert_eq!((at, rest), (at, vec![]));
        }
    }
}
