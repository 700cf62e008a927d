//! The end of proxies that nobody holds any more, and of copies that are no longer needed.

use alloc::vec::Vec;

use super::{Form, Kernel, Proxies, Proxy, RELEASED};

impl<K: Kernel> Proxies<K> {
    /// Finds and removes the proxies that nobody holds any more.
    pub fn sweep(&mut self) {
        self.is_stale = false;
        let kernel = &self.kernel;
        let unused: Vec<(u64, Proxy)> = self
            .proxies
            .iter()
            .filter(|(_, proxy)| !kernel.is_used(proxy.slot))
            .map(|(name, it)| (*name, *it))
            .collect();
        if unused.iter().any(|(_, proxy)| matches!(proxy.form, Form::Bits(_))) {
            // The last holder may have signalled before: that is collected while it is known whose bit it is.
            let bits = self.kernel.drain();
            self.signalled(bits);
        }
        for (name, proxy) in unused {
            self.proxies.remove(&name);
            match proxy.form {
                Form::Badge => self.kernel.delete(proxy.slot),
                Form::Bits(bits) => {
                    self.bits.remove(&bits);
                    self.kernel.delete(proxy.slot);
                    self.signallers.give_back(proxy.requester);
                }
                Form::Own(physical) => {
                    self.by_address.remove(&physical);
                    if !self.kernel.close(name) {
                        self.closing.insert(name, proxy);
                        continue;
                    }
                    self.openers.give_back(proxy.requester);
                }
            }
            self.forget(name, &proxy);
        }
    }

    /// Forgets a removed proxy.
    pub(super) fn forget(&mut self, name: u64, proxy: &Proxy) {
        self.requesters.give_back(proxy.requester);
        self.signals.remove_proxy(name);
        self.release(proxy.owner, proxy.number);
    }

    pub(super) fn release(&mut self, core: u64, number: u64) {
        if self.lost.contains(&core) {
            return;
        }
        let numbers = self.released.entry(core).or_default();
        // A monitor that keeps to the protocol holds no more. For one that violates it, memory use stays bounded.
        if numbers.len() < RELEASED {
            numbers.push_back(number);
        }
    }

    /// Returns whether a release is to be sent to a core.
    pub fn has_releases(&self) -> bool {
        !self.released.is_empty()
    }

    /// Returns the next number to be released on a core; [signals](Self::next_signal) must be sent before it.
    pub fn next_release(&self, core: u64) -> Option<u64> {
        let number = self.released.get(&core)?.front().copied();
        number.filter(|_| self.signals.next(core).is_none())
    }

    /// Marks the next release as sent.
    pub fn release_sent(&mut self, core: u64) {
        if let Some(numbers) = self.released.get_mut(&core) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.released.remove(&core);
            }
        }
    }

    /// Drops what is held for a core under a number, which the core no longer needs.
    pub fn released(&mut self, core: u64, number: u64) {
        let held = self.held.release(core, number);
        self.drop_held(held);
    }

    /// Handles a stopped core: drops what is held for it. Calls to its endpoints are refused until nobody holds them,
    /// and signals to its notifications are dropped.
    pub fn lose(&mut self, core: u64) {
        self.held.numbers(core).into_iter().for_each(|number| self.released(core, number));
        self.held.lose(core);
        self.released.remove(&core);
        self.signals.lose(core);
        self.lost.insert(core);
    }

    /// Returns a process that has one way fewer to reach this core's process server.
    pub fn parted(&mut self) -> Option<u64> {
        self.held.parted()
    }

    /// Queues such a process again.
    pub fn put_back(&mut self, process: u64) {
        self.held.put_back(process);
    }
}
