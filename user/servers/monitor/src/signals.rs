//! Notifications that are signalled from other cores, and those that stand for ones of other cores: the system calls
//! for [the books](tench_monitor::proxies), and the threads that wait.
//!
//! What stands for a notification that has no badge is one of its own, at which a thread waits: it keeps what is
//! signalled until the main thread asks for it. The others are bits of the one that is bound to the main thread.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use tench::memory::{self, Made};
use tench::sync::Mutex;
use tench::{server, thread};
use tench_monitor::proxies::FIRST_BIT;
use tench_sys::{Cap, CapAddress, Error, Notification, OWN_SPACE, Rights};

use crate::capabilities::KERNEL;
use crate::forward::STACK;
use crate::{Result, no_memory};

/// What was signalled at a notification, and was not taken yet.
#[derive(Default)]
struct Heard {
    bits: u64,
    /// Nothing comes any more.
    is_over: bool,
}

/// All of that.
pub struct Signals {
    /// Bound to the main thread.
    main: Cap<Notification>,
    /// Wakes it.
    wake: Cap<Notification>,
    /// An empty slot, in which bits are minted.
    spare: CapAddress,
    heard: Arc<Mutex<BTreeMap<u64, Heard>>>,
    /// Signals of the main thread were taken that are not about proxies.
    took_others: bool,
}

impl Signals {
    /// None.
    pub fn new(main: Cap<Notification>, wake: Cap<Notification>) -> Result<Signals> {
        let spare = memory::take_slot().map_err(no_memory)?;
        Ok(Signals { main, wake, spare, heard: Arc::default(), took_others: false })
    }

    /// Where the notification lies that is bound to the main thread.
    pub fn place(&self) -> Result<u64> {
        Ok(KERNEL.holders(OWN_SPACE, self.main.address())?.place)
    }

    /// A capability in a slot that signals these bits there.
    pub fn bits(&self, bits: u64) -> Result<CapAddress> {
        let slot = memory::take_slot().map_err(no_memory)?;
        self.main.mint_to(slot, Rights::WRITE, bits).map(|_| slot).inspect_err(|_| memory::free_slot(slot))
    }

    /// Makes a notification at which a thread waits until it is [closed](Self::close). Answers where the capability to
    /// it lies, and where it does itself.
    pub fn open(&self, name: u64) -> Result<(CapAddress, u64)> {
        let made = memory::make::<Notification>(0).map_err(no_memory)?;
        let slot = made.cap().address();
        let place = KERNEL.holders(OWN_SPACE, slot)?.place;
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
        Ok((slot, place))
    }

    /// Deletes it. The thread ends, and gives the slot back.
    pub fn close(&self, name: u64, slot: CapAddress) {
        // What the thread has not received is gone with the notification.
        if let Ok(bits) = Cap::<Notification>::new(slot).poll() {
            hear(&self.heard, name, |heard| heard.bits |= bits);
            let _ = self.wake.signal();
        }
        let _ = OWN_SPACE.delete_at(slot);
    }

    /// What was signalled at a notification since this was asked last: its name, the bits, and whether it is gone.
    pub fn next(&self) -> Option<(u64, u64, bool)> {
        let mut all = self.heard.lock();
        let (name, heard) = all.iter_mut().find(|(_, heard)| heard.bits != 0 || heard.is_over)?;
        let found = (*name, core::mem::take(&mut heard.bits), heard.is_over);
        if found.2 {
            all.remove(&found.0);
        }
        Some(found)
    }

    /// Takes what was signalled to the main thread and was not received, or was lost to a [watch](server::Watch): the
    /// bits that are about proxies. What the others would have told [is to be looked at](Self::took_others).
    pub fn drain(&mut self) -> u64 {
        let bits = self.main.poll().unwrap_or(0) | server::missed_signals();
        let about = bits & (u64::MAX << FIRST_BIT);
        self.took_others |= bits != about;
        about
    }

    /// Whether others were taken since this was asked last.
    pub fn took_others(&mut self) -> bool {
        core::mem::take(&mut self.took_others)
    }

    /// Signals with what lies in a slot; if it has no badge, these bits.
    pub fn signal(&self, slot: CapAddress, bits: u64) {
        let held = Cap::<Notification>::new(slot);
        // What has a badge gets no other, and what was revoked is nothing.
        let told = match held.mint_to(self.spare, Rights::WRITE, bits) {
            Ok(minted) => minted.signal(),
            Err(Error::InvalidArgument) => held.signal(),
            Err(error) => Err(error),
        };
        // Whoever has it may have revoked it.
        let _ = told;
        let _ = OWN_SPACE.delete_at(self.spare);
    }
}

fn hear(all: &Mutex<BTreeMap<u64, Heard>>, name: u64, hear: impl FnOnce(&mut Heard)) {
    if let Some(heard) = all.lock().get_mut(&name) {
        hear(heard);
    }
}

/// Waits until the notification is deleted. Its slot is free only then, so that nothing else is found there.
fn listen(name: u64, made: Made<Notification>, all: &Mutex<BTreeMap<u64, Heard>>, wake: Cap<Notification>) {
    while let Ok(bits) = made.cap().wait() {
        hear(all, name, |heard| heard.bits |= bits);
        // It is there as long as this process.
        let _ = wake.signal();
    }
    made.deleted();
    hear(all, name, |heard| heard.is_over = true);
    let _ = wake.signal();
}
