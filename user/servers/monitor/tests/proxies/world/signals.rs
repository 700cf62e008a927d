//! Signals that processes give, and those that they should receive.

use tench_abi::CapAddress;
use tench_monitor::transfer::proxies::Kernel;

use super::{Message, World};
use crate::kernel::Receiver;

impl World {
    /// Returns the proxy that is called or signalled, and the badge to be sent.
    pub(super) fn proxy(&self, at: usize, receiver: Receiver, badge: u64) -> (u64, u64) {
        match receiver {
            Receiver::Common => (badge, 0),
            Receiver::Own(name) | Receiver::Listener(name) => (name, badge),
            Receiver::Bits => (self.nodes[at].proxies.named(badge).expect("it is that of a proxy"), 0),
            Receiver::Process(_) | Receiver::Signalled(_) => unreachable!("it is none"),
        }
    }

    /// Lets a process signal. It is not told whether the signal is received.
    pub fn signal(&mut self, at: usize, slot: CapAddress) {
        let meaning = self.meaning(at, slot);
        if !meaning.rights.contains(tench_abi::Rights::WRITE) {
            return;
        }
        let bits = if meaning.badge == 0 { 1 } else { meaning.badge };
        *self.credit.entry((meaning.endpoint, bits.trailing_zeros())).or_default() += 1;
        self.tally.signals += usize::from(meaning.route.len() > 1);
        if self.is_alive(&meaning, false) {
            self.due.push((meaning, bits));
        }
        let delivered = self.kernel(at).signal_with(slot, 1);
        self.kernel(at).delivered.extend(delivered);
        self.heard(at);
    }

    /// Handles the signals that processes of a core have received.
    pub(super) fn heard(&mut self, at: usize) {
        for (number, bits) in core::mem::take(&mut self.kernel(at).delivered) {
            for bit in (0..u64::BITS).filter(|bit| bits >> bit & 1 != 0) {
                self.tally.heard += 1;
                let credit = self.credit.entry((number, bit)).or_default();
                let is_true = *credit > 0 || self.tainted.contains(&number);
                assert!(is_true, "notification {number} was not signalled with bit {bit}");
                *credit = credit.saturating_sub(1);
                self.due.retain(|(meaning, due)| meaning.endpoint != number || due & 1 << bit == 0);
            }
        }
    }

    /// Lets a monitor collect signals, as far as its threads have got.
    pub fn hear(&mut self, at: usize) {
        let names: Vec<u64> = self.kernel(at).listeners.keys().copied().collect();
        for name in names {
            if !self.happens(3) {
                self.kernel(at).listen(name);
            }
            if self.happens(3) {
                continue;
            }
            let listener = &mut self.kernel(at).listeners.get_mut(&name).expect("it is there");
            let bits = core::mem::take(&mut listener.hand) | core::mem::take(&mut listener.rest);
            let is_closed = listener.is_closed;
            self.nodes[at].proxies.signalled_at(name, bits);
            if is_closed {
                self.kernel(at).listeners.remove(&name);
                self.nodes[at].proxies.closed(name);
            }
        }
        if !self.happens(3) {
            let bits = self.kernel(at).drain();
            self.nodes[at].proxies.signalled(bits);
        }
    }

    /// Returns whether a monitor has collected and sent all signals.
    pub(super) fn is_quiet(&mut self, at: usize) -> bool {
        let kernel = self.kernel(at);
        let is_taken_in = kernel.words.is_empty()
            && kernel.listeners.values().all(|listener| listener.hand | listener.rest == 0 && !listener.is_closed);
        let proxies = &self.nodes[at].proxies;
        is_taken_in && !proxies.has_signals() && !proxies.has_releases()
    }

    /// Sends signals, as far as there is room in the channel. Returns whether those were all.
    pub(super) fn send_signals(&mut self, at: usize, to: usize) -> bool {
        while let Some((number, bits)) = self.nodes[at].proxies.next_signal(to as u64) {
            if self.happens(4) {
                let release = self.nodes[at].proxies.next_release(to as u64);
                assert_eq!(release, None, "what is let go is still to be signalled");
                return false;
            }
            self.say(at, to, Message::Signal { number, bits });
            self.nodes[at].proxies.said(to as u64);
        }
        true
    }

    /// Checks, when nothing is on its way, that all signals due have been received.
    pub(super) fn judge_signals(&mut self) {
        for (meaning, bits) in core::mem::take(&mut self.due) {
            assert!(!self.is_alive(&meaning, false), "nobody heard {bits:#x}: {meaning:?}");
        }
        // Several signals were merged into one.
        self.credit.clear();
    }
}
