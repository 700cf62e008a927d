//! What is signalled at proxies of notifications, until it is said to the cores of these.
//!
//! Signals of one proxy that were not said are one, as the kernel's are: so however many there are, they take no memory
//! but what a proxy takes. What waits is said in the order in which it began to wait, so that no proxy at which much is
//! signalled keeps others waiting.

use alloc::collections::BTreeMap;

use super::{Kernel, Proxies, What};

/// A proxy of a notification.
#[derive(Clone, Copy, Debug)]
struct Signal {
    core: u64,
    number: u64,
    /// What is to be said.
    bits: u64,
    /// Since when.
    since: u64,
    /// The proxy is gone.
    is_over: bool,
}

/// All of them, by the names of the proxies.
pub(super) struct Signals {
    all: BTreeMap<u64, Signal>,
    /// How many wait.
    waiting: usize,
    /// How often one began to.
    count: u64,
}

impl Signals {
    /// None.
    pub const fn new() -> Signals {
        Signals { all: BTreeMap::new(), waiting: 0, count: 0 }
    }

    /// There is a proxy of what a core holds under a number.
    pub fn begin(&mut self, name: u64, core: u64, number: u64) {
        self.all.insert(name, Signal { core, number, bits: 0, since: 0, is_over: false });
    }

    /// There is no such proxy any more. What was signalled is said all the same.
    pub fn end(&mut self, name: u64) {
        let Some(signal) = self.all.get_mut(&name) else { return };
        signal.is_over = true;
        if signal.bits == 0 {
            self.all.remove(&name);
        }
    }

    /// Something was signalled.
    pub fn add(&mut self, name: u64, bits: u64) {
        let Some(signal) = self.all.get_mut(&name) else { return };
        if signal.bits == 0 && bits != 0 {
            self.waiting += 1;
            self.count += 1;
            signal.since = self.count;
        }
        signal.bits |= bits;
    }

    /// Whether something is to be said.
    pub const fn is_any(&self) -> bool {
        self.waiting > 0
    }

    /// What is to be said next to a core: the number, and bits.
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

    /// It was said.
    pub fn said(&mut self, core: u64) {
        if let Some((name, _)) = self.first(core) {
            self.forget(name);
        }
    }

    /// Nobody is to be told any more what was signalled at a proxy.
    fn forget(&mut self, name: u64) {
        let Some(signal) = self.all.get_mut(&name) else { return };
        if core::mem::take(&mut signal.bits) != 0 {
            self.waiting -= 1;
        }
        if signal.is_over {
            self.all.remove(&name);
        }
    }

    /// A core has stopped.
    pub fn lose(&mut self, core: u64) {
        while let Some((name, _)) = self.first(core) {
            self.forget(name);
        }
    }
}

impl<K: Kernel> Proxies<K> {
    /// The proxy that is these bits of the common notification.
    pub fn named(&self, bits: u64) -> Option<u64> {
        self.bits.get(&bits).copied()
    }

    /// These bits were signalled at the common notification.
    pub fn signalled(&mut self, bits: u64) {
        let mut left = bits;
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            left ^= lowest;
            if let Some(name) = self.named(lowest) {
                // The badge is that of what is held, whatever is said.
                self.signalled_at(name, 1);
            }
        }
    }

    /// The same at the proxy of this name, which is a notification of its own.
    pub fn signalled_at(&mut self, name: u64, bits: u64) {
        let proxy = self.proxies.get(&name).or_else(|| self.closing.get(&name));
        if proxy.is_some_and(|proxy| !self.lost.contains(&proxy.owner)) {
            self.signals.add(name, bits);
        }
    }

    /// Nothing comes any more that was signalled at a proxy of this name, which was [closed](Kernel::close).
    pub fn closed(&mut self, name: u64) {
        if let Some(proxy) = self.closing.remove(&name) {
            self.openers.give_back(proxy.asker);
            self.forget(name, &proxy);
        }
    }

    /// Whether a core is to be told what was signalled.
    pub const fn has_signals(&self) -> bool {
        self.signals.is_any()
    }

    /// What a core is to be told next that was signalled: under which number it is held there, and which bits.
    pub fn next_signal(&self, core: u64) -> Option<(u64, u64)> {
        self.signals.next(core)
    }

    /// It was told that.
    pub fn said(&mut self, core: u64) {
        self.signals.said(core);
    }

    /// A core says that what is held for it under a number was signalled there, with these bits.
    pub fn signal(&mut self, core: u64, number: u64, bits: u64) {
        let held = self.held.held_for(core, number).filter(|held| held.what == What::Notification);
        if let Some(held) = held {
            self.kernel.signal(held.slot, bits);
        }
    }
}
