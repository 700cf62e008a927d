//! What becomes of proxies that nobody has any more, and of what is held for those who do not need it.

use alloc::vec::Vec;

use super::{Form, Kernel, Proxies, Proxy, RELEASED};

impl<K: Kernel> Proxies<K> {
    /// Finds the proxies that nobody has any more.
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
            // Whoever had it may have signalled before: then it is taken in while it is known whose bit it is.
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
                    self.signallers.give_back(proxy.asker);
                }
                Form::Own(place) => {
                    self.places.remove(&place);
                    if !self.kernel.close(name) {
                        self.closing.insert(name, proxy);
                        continue;
                    }
                    self.openers.give_back(proxy.asker);
                }
            }
            self.forget(name, &proxy);
        }
    }

    /// A proxy is gone.
    pub(super) fn forget(&mut self, name: u64, proxy: &Proxy) {
        self.askers.give_back(proxy.asker);
        self.signals.end(name);
        self.release(proxy.owner, proxy.number);
    }

    pub(super) fn release(&mut self, core: u64, number: u64) {
        if self.lost.contains(&core) {
            return;
        }
        let numbers = self.released.entry(core).or_default();
        // A monitor that keeps to the protocol holds no more. What one says that does not is not remembered without
        // end.
        if numbers.len() < RELEASED {
            numbers.push_back(number);
        }
    }

    /// Whether a core is to be told that.
    pub fn has_releases(&self) -> bool {
        !self.released.is_empty()
    }

    /// What a core is to be told next that it need not hold any more: behind [what was signalled](Self::next_signal).
    pub fn next_release(&self, core: u64) -> Option<u64> {
        let number = self.released.get(&core)?.front().copied();
        number.filter(|_| self.signals.next(core).is_none())
    }

    /// It was told.
    pub fn told(&mut self, core: u64) {
        if let Some(numbers) = self.released.get_mut(&core) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.released.remove(&core);
            }
        }
    }

    /// A core does not need any more what is held for it under a number.
    pub fn released(&mut self, core: u64, number: u64) {
        let held = self.held.release(core, number);
        self.drop_held(held);
    }

    /// A core has stopped: what is held for it is not needed any more. Who asks its endpoints is refused until nobody
    /// has them, and who signals its notifications is not heard.
    pub fn lose(&mut self, core: u64) {
        self.held.numbers(core).into_iter().for_each(|number| self.released(core, number));
        self.held.lose(core);
        self.released.remove(&core);
        self.signals.lose(core);
        self.lost.insert(core);
    }

    /// A process that has one way less to ask this core's process server.
    pub fn parted(&mut self) -> Option<u64> {
        self.held.parted()
    }

    /// It is to be dealt with later.
    pub fn put_back(&mut self, process: u64) {
        self.held.put_back(process);
    }
}
