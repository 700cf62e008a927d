//! System calls of the ledger ([`tench_monitor::transfer::proxies`]).

use alloc::collections::BTreeMap;

use tench::memory;
use tench_monitor::message::carried::ObjectClass;
use tench_monitor::transfer::proxies::{self, Found};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Kind, OWN_CSPACE, Rights};

use crate::kernel::KERNEL;
use crate::requests::forward::{Inbox, Source};
use crate::slots::discard;
use crate::transfer::signals::Signals;

/// The kernel of this core.
pub(super) struct Machine {
    inbox: Inbox,
    pub(super) signals: Signals,
    common: Cap<Endpoint>,
    /// Proxies that are endpoints or notifications of their own.
    own: BTreeMap<u64, (ObjectClass, CapAddress)>,
}

/// Copies a capability to a new slot.
pub(super) fn copy(from: Cap<Endpoint>, rights: Rights, badge: u64) -> core::result::Result<CapAddress, Error> {
    let slot = memory::take_slot().map_err(|_| Error::OutOfMemory)?;
    from.mint_to(slot, rights, badge).map(|_| slot).inspect_err(|_| memory::free_slot(slot))
}

impl Machine {
    /// Returns the machine; requests to proxies that share an endpoint arrive at `common`.
    pub(super) fn new(inbox: Inbox, signals: Signals, common: Cap<Endpoint>) -> Machine {
        Machine { inbox, signals, common, own: BTreeMap::new() }
    }
}

impl proxies::Kernel for Machine {
    fn look(&self, slot: CapAddress) -> Option<Found> {
        let found = OWN_CSPACE.identify_at(slot).ok()?;
        let class = match found.kind {
            Kind::Endpoint => ObjectClass::Endpoint,
            Kind::Notification => ObjectClass::Notification,
            _ => return None,
        };
        let physical = KERNEL.holders(OWN_CSPACE, slot).ok()?.physical;
        Some(Found { class, physical, badge: found.badge, rights: found.rights })
    }

    fn is_used(&self, slot: CapAddress) -> bool {
        match KERNEL.holders(OWN_CSPACE, slot) {
            Ok(found) => found.others,
            // All capabilities to this object were revoked: nobody holds it.
            Err(Error::InvalidCapability) => false,
            // If the kernel does not tell, the proxy counts as used.
            Err(_) => true,
        }
    }

    fn delete(&mut self, slot: CapAddress) {
        discard(&[slot]);
    }

    fn copy(&mut self, slot: CapAddress, rights: Rights, badge: u64) -> core::result::Result<CapAddress, Error> {
        copy(Cap::new(slot), rights, badge)
    }

    fn common(&mut self, badge: u64, rights: Rights) -> core::result::Result<CapAddress, Error> {
        copy(self.common, rights, badge)
    }

    fn bits(&mut self, bits: u64) -> core::result::Result<CapAddress, Error> {
        self.signals.bits(bits)
    }

    fn open(&mut self, proxy: u64, class: ObjectClass) -> core::result::Result<(CapAddress, u64), Error> {
        let (slot, physical) = match class {
            ObjectClass::Endpoint => {
                let endpoint = memory::make::<Endpoint>(0).map_err(|_| Error::OutOfMemory)?;
                let slot = endpoint.cap().address();
                let physical = KERNEL.holders(OWN_CSPACE, slot)?.physical;
                self.inbox.open_until_deleted(Source::Own(proxy), endpoint).map_err(|_| Error::OutOfMemory)?;
                (slot, physical)
            }
            ObjectClass::Notification => self.signals.open(proxy)?,
        };
        self.own.insert(proxy, (class, slot));
        Ok((slot, physical))
    }

    fn close(&mut self, proxy: u64) -> bool {
        // The thread that receives at the endpoint ends, and frees the slot.
        match self.own.remove(&proxy) {
            Some((ObjectClass::Endpoint, slot)) => drop(OWN_CSPACE.delete_at(slot)),
            Some((ObjectClass::Notification, slot)) => {
                self.signals.close(proxy, slot);
                return false;
            }
            None => {}
        }
        true
    }

    fn drain(&mut self) -> u64 {
        self.signals.drain()
    }

    fn signal(&mut self, slot: CapAddress, bits: u64) {
        self.signals.signal(slot, bits);
    }
}
