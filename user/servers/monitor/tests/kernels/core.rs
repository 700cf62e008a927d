//! One core: the kernel, whose first thread acts as the monitor and all of its clients.
//!
//! Each core has 1 MiB of the machine's memory of its own. The host's kernels each have a buffer that begins at the
//! same address; so another core's memory is at addresses at which a kernel has no memory of its own, and addresses are
//! translated:
//!
//! ```text
//!  machine's      BASE + 0 MiB    BASE + 1 MiB    BASE + 2 MiB
//!                 of core 0       of core 1       of core 2
//!  of kernel 1    REMOTE + 0   its pool        REMOTE + 2 MiB
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use tench_abi::layout::slot;
use tench_abi::object::CorePower;
use tench_abi::{CapAddress, Error, Kind, Operation, Rights};
use tench_arch_host::Machine;
use tench_arch_host::host::CORES;
use tench_arch_host::machine::{RAM, RAM_MEDIUM, at};
use tench_arch_host::memory::RAM_START;
use tench_monitor::transfer::exchange::{Found, Kernel};
use tench_remote::{Core as Number, Kind as Sendable, Shape};

pub const PAGE: u64 = 4096;
/// Log2 of the memory of a core.
pub const POOL_BITS: u64 = 20;
/// Start of the machine's memory.
pub const BASE: u64 = 1 << 32;
/// RAM of a kernel that is in no part of its own memory.
const REMOTE: u64 = RAM_START + (12 << 20);
/// Number of capability nodes.
const NODES: u64 = 4;
const SLOTS: u64 = 256;
const KERNEL: u64 = at(slot::KERNEL);

/// Content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub kind: Kind,
    /// Address in the machine's memory.
    pub base: u64,
    pub bits: u64,
    pub rights: Rights,
    /// Set if others hold the object, or something was derived from it.
    pub is_used: bool,
    /// Set if the capability is exported.
    pub is_exported: bool,
    /// Set if revocation of the exported capability is requested.
    pub is_revoke_requested: bool,
    /// Set if the object belongs to another core.
    pub is_borrowed: bool,
}

/// A core, on which system calls can be made.
#[derive(Clone)]
pub struct Core(Rc<RefCell<Inner>>);

struct Inner {
    machine: Machine,
    number: u64,
    /// Local address of its memory.
    pool: u64,
    free: Vec<u64>,
    /// Set if its monitor is not told of requested revocations.
    is_deaf: bool,
}

fn result(error: Option<Error>) -> Result<(), Error> {
    error.map_or(Ok(()), Err)
}

impl Core {
    /// Boots a core. Also returns the untyped capability to its memory.
    pub fn new(number: u64) -> (Core, CapAddress) {
        let mut machine = Machine::new();
        machine.host().started = (1..CORES).map(|core| (core, (0, 0))).collect();
        let mut free = Vec::new();
        for node in 1..=NODES {
            let address = machine.take_free();
            machine.retype(RAM_MEDIUM, Kind::CapNode, 8, 1, address).ok();
            machine.call(Operation::NodeInstall, &[0, node, address]).ok();
            free.extend(node * SLOTS..(node + 1) * SLOTS);
        }
        free.reverse();
        let memory = machine.take_free();
        machine.retype(RAM, Kind::Untyped, POOL_BITS, 1, memory).ok();
        let pool = machine.physical(memory);
        (Core(Rc::new(RefCell::new(Inner { machine, number, pool, free, is_deaf: false }))), CapAddress(memory as u32))
    }

    /// Stops telling the monitor of requested revocations: only clients revoke.
    pub fn deafen(&self) {
        self.0.borrow_mut().is_deaf = true;
    }

    /// Marks another core as off.
    pub fn lose(&self, core: usize) {
        self.0.borrow_mut().machine.host().stopped.insert(core as u64);
    }

    pub fn call(&self, operation: Operation, arguments: &[u64]) -> Result<[u64; 11], Error> {
        let returned = self.0.borrow_mut().machine.call(operation, arguments);
        result(returned.error()).map(|()| returned.x)
    }

    /// Panics unless the kernel's whole state is consistent.
    pub fn check(&self) {
        self.0.borrow_mut().machine.check();
    }

    /// Calls `operation` so that it makes something in a free slot, which it is passed.
    fn make(&self, operation: Operation, arguments: impl FnOnce(u64) -> Vec<u64>) -> Result<CapAddress, Error> {
        let slot = self.0.borrow_mut().free.pop().ok_or(Error::NoSuchSlot)?;
        match self.call(operation, &arguments(slot)) {
            Ok(_) => Ok(CapAddress(slot as u32)),
            Err(error) => {
                self.0.borrow_mut().free.push(slot);
                Err(error)
            }
        }
    }

    /// Returns the slots that are taken.
    pub fn taken_slots(&self) -> Vec<CapAddress> {
        let free = self.0.borrow().free.clone();
        Core::slots().filter(|slot| !free.contains(&slot.0.into())).collect()
    }

    /// Returns all slots that clients and the monitor use.
    pub fn slots() -> impl Iterator<Item = CapAddress> {
        (SLOTS..(NODES + 1) * SLOTS).map(|slot| CapAddress(slot as u32))
    }

    pub fn held(&self, slot: CapAddress) -> Option<Held> {
        let [_, kind, rights, bits, _, physical, ..] =
            self.call(Operation::Identify, &[0, slot.0.into(), KERNEL]).ok()?;
        let kind = Kind::from_code(kind).filter(|kind| matches!(kind, Kind::Frame | Kind::Untyped))?;
        let [_, used, exported, borrowed, ..] =
            self.call(Operation::KernelHolders, &[KERNEL, 0, slot.0.into()]).expect("it can be asked about");
        Some(Held {
            kind,
            base: self.machines(physical),
            bits,
            rights: Rights::from_bits_truncate(rights as _),
            is_used: used != 0,
            is_exported: exported != 0,
            is_revoke_requested: exported > 1,
            is_borrowed: borrowed != 0,
        })
    }

    fn machines(&self, local: u64) -> u64 {
        let inner = self.0.borrow();
        if local >> POOL_BITS == inner.pool >> POOL_BITS {
            BASE + (inner.number << POOL_BITS) + (local - inner.pool)
        } else {
            BASE + (local - REMOTE)
        }
    }

    fn local(&self, address: u64) -> u64 {
        let (inner, offset) = (self.0.borrow(), address - BASE);
        if offset >> POOL_BITS == inner.number {
            inner.pool + (offset & ((1 << POOL_BITS) - 1))
        } else {
            REMOTE + offset
        }
    }

    // ── What clients do ──────────────────────────────────────────────────────────────────────────────────────────────

    /// Makes an object of memory.
    pub fn retype(&self, memory: CapAddress, kind: Kind, bits: u64) -> Result<CapAddress, Error> {
        let placement = tench_abi::layout::WATERMARK;
        self.make(Operation::UntypedRetype, |slot| vec![memory.0.into(), kind as u64, bits, 1, placement, 0, slot])
    }

    pub fn mint(&self, from: CapAddress, rights: Rights) -> Result<CapAddress, Error> {
        self.make(Operation::Mint, |slot| vec![0, from.0.into(), 0, slot, rights.bits().into(), 0])
    }

    /// Gives a capability to the monitor as a message would: as a copy, but untyped memory is moved.
    pub fn hand_in(&self, slot: CapAddress) -> Result<CapAddress, Error> {
        let found = self.held(slot).ok_or(Error::InvalidCapability)?;
        if found.kind != Kind::Untyped {
            return self.mint(slot, found.rights);
        }
        let moved = self.make(Operation::Move, |to| vec![0, slot.0.into(), 0, to])?;
        self.0.borrow_mut().free.push(slot.0.into());
        Ok(moved)
    }

    pub fn revoke(&self, slot: CapAddress) -> Result<(), Error> {
        self.call(Operation::Revoke, &[0, slot.0.into()]).map(drop)
    }

    /// Deletes a capability, if it still exists, and frees the slot.
    pub fn delete(&self, slot: CapAddress) -> Result<(), Error> {
        match self.call(Operation::Delete, &[0, slot.0.into()]) {
            Ok(_) | Err(Error::InvalidCapability) => {
                self.0.borrow_mut().free.push(slot.0.into());
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the number of objects made of memory.
    pub fn children(&self, memory: CapAddress) -> u64 {
        self.call(Operation::UntypedChildren, &[memory.0.into()]).map_or(0, |returned| returned[1])
    }
}

/// These are the system calls of the monitor on the target.
impl Kernel for Core {
    fn look(&self, slot: CapAddress) -> Option<Found> {
        let found = self.held(slot)?;
        let kind = if found.kind == Kind::Frame { Sendable::Frame } else { Sendable::Untyped };
        let shape = Shape { kind, base: found.base, bytes: 1 << found.bits };
        Some(Found::Memory { shape, rights: found.rights, is_borrowed: found.is_borrowed })
    }

    fn export(&mut self, slot: CapAddress) -> Result<(), Error> {
        self.call(Operation::KernelExport, &[KERNEL, 0, slot.0.into()]).map(drop)
    }

    fn unexport(&mut self, slot: CapAddress) -> Result<(), Error> {
        self.call(Operation::KernelUnexport, &[KERNEL, 0, slot.0.into()]).map(drop)
    }

    fn import(&mut self, shape: &Shape) -> Result<CapAddress, Error> {
        let kind = if shape.kind == Sendable::Frame { Kind::Frame } else { Kind::Untyped };
        let (physical, bits) = (self.local(shape.base), u64::from(shape.bytes.ilog2()));
        let rights = u64::from(Rights::all().bits());
        self.make(Operation::KernelImport, |slot| vec![KERNEL, kind as u64, physical, bits, rights, 0, slot])
    }

    fn copy(&mut self, from: CapAddress, kind: Sendable, rights: Rights) -> Result<CapAddress, Error> {
        if kind == Sendable::Frame {
            return self.mint(from, rights);
        }
        let bits = self.held(from).ok_or(Error::InvalidCapability)?.bits;
        self.make(Operation::UntypedRetype, |slot| vec![from.0.into(), Kind::Untyped as u64, bits, 1, 0, 0, slot])
    }

    fn is_used(&self, slot: CapAddress) -> bool {
        self.held(slot).is_some_and(|found| found.is_used)
    }

    fn is_revoke_requested(&self, slot: CapAddress) -> bool {
        !self.0.borrow().is_deaf && self.held(slot).is_some_and(|found| found.is_revoke_requested)
    }

    fn delete(&mut self, slot: CapAddress) {
        Core::delete(self, slot).expect("the monitor deletes no exported capability");
    }

    fn is_off(&self, core: Number) -> bool {
        let power = self.call(Operation::KernelCorePower, &[KERNEL, core.index() as u64]).map(|returned| returned[1]);
        power.ok().and_then(CorePower::from_code) == Some(CorePower::Off)
    }
}
