//! Sleeping and waking.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::Half;
use crate::memory::{Memory, Word};

/// Doorbell that wakes a sleeping peer: on the target a system call that raises an interrupt on the other core, which
/// signals a notification there.
pub trait Notifier {
    /// Wakes the peer, or makes its next sleep end at once.
    fn notify(&self);
}

impl<B: Notifier + ?Sized> Notifier for &B {
    fn notify(&self) {
        (**self).notify();
    }
}

/// Behaviour of a thread that has nothing to do.
pub trait Idle {
    /// Returns how often the thread polls before it sleeps.
    fn polls(&self) -> u32;
    /// Yields the core for a moment between two polls.
    fn pause(&mut self);
    /// Sleeps until the peer notifies this side, or has done so since the last sleep. May return earlier.
    fn sleep(&mut self);
}

/// This side's control word that says whether it sleeps, for one of the two reasons.
///
/// The word is odd in a sleep, and each sleep has a different number: the peer cannot change the word, and so remembers
/// for which sleep it has notified this side.
pub(crate) struct Own<const WORD: usize> {
    value: u64,
}

impl<const WORD: usize> Own<WORD> {
    pub fn new() -> Self {
        Own { value: 0 }
    }

    /// Announces a sleep. The condition to wait for has to be checked once more after this.
    pub fn announce_sleep<M: Memory>(&mut self, own: &Half<M>) {
        if self.value.is_multiple_of(2) {
            self.value = self.value.wrapping_add(1);
            // Relaxed: it says nothing about other words. The fence orders it before the check that follows.
            own.control(WORD).store(self.value, Relaxed);
        }
        // Pairs with the fence in `Peer::notify_if_asleep`. Both sides store, fence and load: this one stores that it
        // sleeps and loads what it waits for, the peer stores that and loads whether this side sleeps. One of the
        // fences is first in the order of all such fences. If it is this one, the peer sees the sleep and notifies; if
        // it is the peer's, this side sees what it waits for, and does not sleep. Without either fence both loads could
        // overtake the stores before them.
        own.fence();
    }

    /// Announces the end of the sleep, if there was one.
    #[inline]
    pub fn announce_wake<M: Memory>(&mut self, own: &Half<M>) {
        if !self.value.is_multiple_of(2) {
            self.value = self.value.wrapping_add(1);
            // Relaxed: a peer that still sees the old value notifies in vain, once, and the next sleep ends at once.
            own.control(WORD).store(self.value, Relaxed);
        }
    }
}

/// The peer's control word of the same kind.
pub(crate) struct Peer<B, const WORD: usize> {
    /// The last sleep for which the peer was notified.
    notified: u64,
    doorbell: B,
}

impl<B: Notifier, const WORD: usize> Peer<B, WORD> {
    pub fn new(doorbell: B) -> Self {
        Peer { notified: 0, doorbell }
    }

    /// Notifies the peer if it sleeps. Has to be called after storing what the peer may wait for.
    #[inline(always)]
    pub fn notify_if_asleep<M: Memory>(&mut self, peer: &Half<M>) {
        // Pairs with the fence in `Own::announce_sleep`; see there.
        peer.fence();
        self.notify_if_seen_asleep(peer);
    }

    /// As [`notify_if_asleep`](Self::notify_if_asleep), after a fence.
    #[inline(always)]
    pub fn notify_if_seen_asleep<M: Memory>(&mut self, peer: &Half<M>) {
        // Relaxed: the value is only compared, and whatever the peer wrote, the worst is a needless notification.
        let value = peer.control(WORD).load(Relaxed);
        if value & 1 != 0 && value != self.notified {
            self.notify(value);
        }
    }

    #[cold]
    fn notify(&mut self, value: u64) {
        self.notified = value;
        self.doorbell.notify();
    }
}
