//! Signals at proxies of notifications, until they are sent to the notifications' cores.
//!
//! Unsent signals of one proxy are merged, as in the kernel: so however many there are, they take no memory beyond the
//! proxy's own. They are sent in the order in which they became pending, so that a busy proxy does not delay the
//! others.

use alloc::collections::BTreeMap;

use super::{Kernel, Proxies};
use crate::message::carried::ObjectClass;

/// A proxy of a notification.
#[derive(Clone, Copy, Debug)]
struct Signal {
    core: u64,
    number: u64,
    /// Pending bits.
    bits: u64,
    /// Position in the order of pending proxies.
    since: u64,
    /// Set if the proxy has been removed.
    is_over: bool,
}

/// All proxies of notifications, by name.
pub(super) struct Signals {
    all: BTreeMap<u64, Signal>,
    /// Number of pending proxies.
    waiting: usize,
    /// Number of times that a proxy became pending.
    count: u64,
}

impl Signals {
    /// Returns an empty set.
    pub const fn new() -> Signals {
        Signals { all: BTreeMap::new(), waiting: 0, count: 0 }
    }

    /// Adds a proxy of what a core holds under a number.
    pub fn add_proxy(&mut self, name: u64, core: u64, number: u64) {
        self.all.insert(name, Signal { core, number, bits: 0, since: 0, is_over: false });
    }

    /// Removes a proxy. Pending signals are still sent.
    pub fn remove_proxy(&mut self, name: u64) {
        let Some(signal) = self.all.get_mut(&name) else { return };
        signal.is_over = true;
        if signal.bits == 0 {
            self.all.remove(&name);
        }
    }

    /// Adds bits to a proxy's pending ones.
    pub fn add(&mut self, name: u64, bits: u64) {
        let Some(signal) = self.all.get_mut(&name) else { return };
        if signal.bits == 0 && bits != 0 {
            self.waiting += 1;
            self.count += 1;
            signal.since = self.count;
        }
        signal.bits |= bits;
    }

    /// Returns whether any signal is pending.
    pub const fn is_any(&self) -> bool {
        self.waiting > 0
    }

    /// Returns the next signal for a core: the number, and bits.
    pub fn next(&self, core: u64) -> Option<(u64, u64)> {
        self.first(core).map(|(_, signal)| (signal.number, signal.bits))
    }

    fn first(&self, core: u64) -> Option<(u64, Signal)> {
        if !self.is_any() {
            return None;
        }
        let waiting = self.all.iter().filter(|(_, signal)| signal.core == core && signal.bits != 0);
        waiting.min_by_key(|(_, signal)| signal.since).map(|(name, signal)| (*name, *signal))
    }

    /// Marks the next signal as sent.
    pub fn said(&mut self, core: u64) {
        if let Some((name, _)) = self.first(core) {
            self.forget(name);
        }
    }

    /// Drops a proxy's pending signals.
    fn forget(&mut self, name: u64) {
        let Some(signal) = self.all.get_mut(&name) else { return };
        if core::mem::take(&mut signal.bits) != 0 {
            self.waiting -= 1;
        }
        if signal.is_over {
            self.all.remove(&name);
        }
    }

    /// Drops the pending signals for a stopped core.
    pub fn lose(&mut self, core: u64) {
        while let Some((name, _)) = self.first(core) {
            self.forget(name);
        }
    }
}

impl<K: Kernel> Proxies<K> {
    /// Returns the proxy that is these bits of the common notification.
    pub fn named(&self, bits: u64) -> Option<u64> {
        self.bits.get(&bits).copied()
    }

    /// Handles bits signalled at the common notification.
    pub fn signalled(&mut self, bits: u64) {
        let mut left = bits;
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            left ^= lowest;
            if let Some(name) = self.named(lowest) {
                // The held copy has a badge, so these bits do not matter.
                self.signalled_at(name, 1);
            }
        }
    }

    /// Handles bits signalled at the proxy of this name, which is a notification of its own.
    pub fn signalled_at(&mut self, name: u64, bits: u64) {
        let proxy = self.proxies.get(&name).or_else(|| self.closing.get(&name));
        if proxy.is_some_and(|proxy| !self.lost.contains(&proxy.owner)) {
            self.signals.add(name, bits);
        }
    }

    /// Handles that no more signals come from a proxy of this name, which was [closed](Kernel::close).
    pub fn closed(&mut self, name: u64) {
        if let Some(proxy) = self.closing.remove(&name) {
            self.openers.give_back(proxy.requester);
            self.forget(name, &proxy);
        }
    }

    /// Returns whether a signal is to be sent to a core.
    pub const fn has_signals(&self) -> bool {
        self.signals.is_any()
    }

    /// Returns the next signal for a core: the number under which the core holds the notification, and the bits.
    pub fn next_signal(&self, core: u64) -> Option<(u64, u64)> {
        self.signals.next(core)
    }

    /// Marks the next signal as sent.
    pub fn said(&mut self, core: u64) {
        self.signals.said(core);
    }

    /// Gives another core's signal to what is held for it under a number.
    pub fn signal(&mut self, core: u64, number: u64, bits: u64) {
        let held = self.held.held_for(core, number).filter(|held| held.class == ObjectClass::Notification);
        if let Some(held) = held {
            self.kernel.signal(held.slot, bits);
        }
    }
}
