//! Signals from and to other cores' notifications: the system calls for
//! [the ledger](tench_monitor::transfer::proxies), and the threads that wait.
//!
//! The proxy of an unbadged notification is a notification of its own, at which a thread waits; it keeps the signals
//! until the main thread collects them. Other proxies are bits of the notification that is bound to the main thread.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use tench::memory::{self, Made};
use tench::sync::Mutex;
use tench::{server, thread};
use tench_monitor::transfer::proxies::FIRST_BIT;
use tench_sys::{Cap, CapAddress, Error, Notification, OWN_CSPACE, Rights};

use crate::kernel::KERNEL;
use crate::requests::forward::STACK;
use crate::{Result, no_memory};

/// Signals at a notification that have not been collected.
#[derive(Default)]
struct Heard {
    bits: u64,
    /// Set if no more signals come.
    is_over: bool,
}

/// The notifications of all proxies.
pub struct Signals {
    /// The notification that is bound to the main thread.
    main: Cap<Notification>,
    /// Wakes the main thread.
    wake: Cap<Notification>,
    /// An empty slot, in which badges are minted.
    spare: CapAddress,
    heard: Arc<Mutex<BTreeMap<u64, Heard>>>,
    /// Set if signals of the main thread were taken that are not about proxies.
    took_others: bool,
}

impl Signals {
    /// Returns a set without proxies.
    pub fn new(main: Cap<Notification>, wake: Cap<Notification>) -> Result<Signals> {
        let spare = memory::take_slot().map_err(no_memory)?;
        Ok(Signals { main, wake, spare, heard: Arc::default(), took_others: false })
    }

    /// Returns the physical address of the notification that is bound to the main thread.
    pub fn physical_address(&self) -> Result<u64> {
        Ok(KERNEL.holders(OWN_CSPACE, self.main.address())?.physical)
    }

    /// Makes a capability that signals these bits at the main thread's notification.
    pub fn bits(&self, bits: u64) -> Result<CapAddress> {
        let slot = memory::take_slot().map_err(no_memory)?;
        self.main.mint_to(slot, Rights::WRITE, bits).map(|_| slot).inspect_err(|_| memory::free_slot(slot))
    }

    /// Makes a notification at which a thread waits until it is [closed](Self::close). Returns the slot of its
    /// capability, and its physical address.
    pub fn open(&self, name: u64) -> Result<(CapAddress, u64)> {
        let made = memory::make::<Notification>(0).map_err(no_memory)?;
        let slot = made.cap().address();
        let physical = KERNEL.holders(OWN_CSPACE, slot)?.physical;
        self.heard.lock().insert(name, Heard::default());
        let (heard, wake) = (Arc::clone(&self.heard), self.wake);
        let builder = thread::Builder::new().stack_size(STACK).name("signals");
        match builder.spawn(move || listen(name, made, &heard, wake)) {
            Ok(listener) => listener.detach(),
            Err(error) => {
                self.heard.lock().remove(&name);
                return Err(no_memory(error));
            }
        }
        Ok((slot, physical))
    }

    /// Deletes a notification. Its thread ends, and frees the slot.
    pub fn close(&self, name: u64, slot: CapAddress) {
        // Bits that the thread has not received would be lost with the notification.
        if let Ok(bits) = Cap::<Notification>::new(slot).poll() {
            hear(&self.heard, name, |heard| heard.bits |= bits);
            let _ = self.wake.signal();
        }
        let _ = OWN_CSPACE.delete_at(slot);
    }

    /// Returns signals that have not been collected: the name, the bits, and whether the notification is gone.
    pub fn next(&self) -> Option<(u64, u64, bool)> {
        let mut all = self.heard.lock();
        let (name, heard) = all.iter_mut().find(|(_, heard)| heard.bits != 0 || heard.is_over)?;
        let found = (*name, core::mem::take(&mut heard.bits), heard.is_over);
        if found.2 {
            all.remove(&found.0);
        }
        Some(found)
    }

    /// Takes the main thread's signals that were not received, or were lost to a [watch](server::Watch). Returns the
    /// bits of proxies; for the others, [a check is needed](Self::took_others).
    pub fn drain(&mut self) -> u64 {
        let bits = self.main.poll().unwrap_or(0) | server::missed_signals();
        let proxies = bits & (u64::MAX << FIRST_BIT);
        self.took_others |= bits != proxies;
        proxies
    }

    /// Returns whether other signals were taken since the last call.
    pub fn took_others(&mut self) -> bool {
        core::mem::take(&mut self.took_others)
    }

    /// Signals with a slot's capability; if it has no badge, with these bits.
    pub fn signal(&self, slot: CapAddress, bits: u64) {
        let held = Cap::<Notification>::new(slot);
        // A capability with a badge gets no other, and a revoked one is empty.
        let signalled = match held.mint_to(self.spare, Rights::WRITE, bits) {
            Ok(minted) => minted.signal(),
            Err(Error::InvalidArgument) => held.signal(),
            Err(error) => Err(error),
        };
        // Its holder may have revoked it.
        let _ = signalled;
        let _ = OWN_CSPACE.delete_at(self.spare);
    }
}

fn hear(all: &Mutex<BTreeMap<u64, Heard>>, name: u64, hear: impl FnOnce(&mut Heard)) {
    if let Some(heard) = all.lock().get_mut(&name) {
        hear(heard);
    }
}

/// Waits until the notification is deleted. Its slot is freed only then, so that nothing else can be in it before.
fn listen(name: u64, made: Made<Notification>, all: &Mutex<BTreeMap<u64, Heard>>, wake: Cap<Notification>) {
    while let Ok(bits) = made.cap().wait() {
        hear(all, name, |heard| heard.bits |= bits);
        // The notification exists as long as this process.
        let _ = wake.signal();
    }
    made.deleted();
    hear(all, name, |heard| heard.is_over = true);
    let _ = wake.signal();
}
