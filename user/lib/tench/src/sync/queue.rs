//! A lock without data, and the way in which a thread waits.

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use tench_abi::CapAddress;
use tench_sys::{Cap, Error, Instant, Notification, ThreadBlock};

/// A thread that waits. It lies on the thread's own stack, which stays as it is until the thread is woken.
pub struct Waiter {
    notification: CapAddress,
    woken: AtomicBool,
    /// The waiter that came before it.
    next: Cell<*mut Waiter>,
}

impl Waiter {
    /// The running thread, which does not wait yet.
    pub fn new() -> Waiter {
        let notification = ThreadBlock::current().map_or(CapAddress::NULL, |block| block.notification.get());
        Waiter { notification, woken: AtomicBool::new(false), next: Cell::new(null_mut()) }
    }

    /// Whether it was woken.
    pub fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Waits until somebody wakes it.
    pub fn wait(&self) {
        while !self.is_woken() {
            if self.notification == CapAddress::NULL || self.own().wait().is_err() {
                pause();
            }
        }
    }

    /// Waits until somebody wakes it, or a time. Answers whether it was woken.
    pub fn wait_until(&self, deadline: Instant) -> bool {
        while !self.is_woken() {
            if self.notification == CapAddress::NULL {
                pause();
                if Instant::now() >= deadline {
                    return self.is_woken();
                }
                continue;
            }
            match self.own().wait_until(deadline) {
                Err(Error::TimedOut) => return self.is_woken(),
                Err(_) => pause(),
                Ok(_) => {}
            }
        }
        true
    }

    const fn own(&self) -> Cap<Notification> {
        Cap::new(self.notification)
    }

    /// Wakes a waiter, which may be gone the moment it knows.
    ///
    /// # Safety
    /// `waiter` waits or is about to, was not woken before, and is in no queue any more.
    pub unsafe fn wake(waiter: *const Waiter) {
        // SAFETY: it stays where it is until it is woken, which happens below.
        let waiting = unsafe { &*waiter };
        let notification = waiting.own();
        waiting.woken.store(true, Ordering::Release);
        // From here on only the copy is used.
        if notification.address() != CapAddress::NULL {
            // A notification that is gone belonged to a thread that is gone.
            let _ = notification.signal();
        }
    }
}

/// Lets others run, where there is no notification to wait for: only in a single-threaded program (that waits for
/// ever) and in tests on the host.
fn pause() {
    #[cfg(test)]
    std::thread::yield_now();
    tench_sys::thread::yield_now();
}

/// Lowest bit of the state: the lock is held. The other bits are the address of the newest waiter.
const LOCKED: usize = 1;

/// A lock.
///
/// ```text
/// state 0: free        LOCKED: held        waiter | LOCKED: held, others wait        waiter: free, one is on its way
/// ```
/// Waiters form a list from the newest to the oldest. Anybody may put itself in front; only the holder takes one out,
/// always the oldest. Between unlocking and the woken thread's arrival anybody may take the lock; then the woken thread
/// waits again.
pub struct RawMutex {
    state: AtomicPtr<Waiter>,
}

// SAFETY: the state is atomic, and the list behind it is changed only as the comment above says.
unsafe impl Send for RawMutex {}
// SAFETY: as above.
unsafe impl Sync for RawMutex {}

impl RawMutex {
    /// A free lock.
    pub const fn new() -> RawMutex {
        RawMutex { state: AtomicPtr::new(null_mut()) }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state.addr() & LOCKED == 0 {
            let locked = state.map_addr(|address| address | LOCKED);
            match self.state.compare_exchange_weak(state, locked, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes the lock, and waits for it if need be.
    #[inline]
    pub fn lock(&self) {
        let locked = null_mut::<Waiter>().wrapping_byte_add(LOCKED);
        if self.state.compare_exchange(null_mut(), locked, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_slowly();
        }
    }

    #[cold]
    fn lock_slowly(&self) {
        while !self.try_lock() {
            let waiter = Waiter::new();
            if self.enqueue(&waiter) {
                waiter.wait();
            }
        }
    }

    /// Puts a waiter in front, unless the lock has become free.
    fn enqueue(&self, waiter: &Waiter) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state.addr() & LOCKED != 0 {
            waiter.next.set(state.map_addr(|address| address & !LOCKED));
            let mine = core::ptr::from_ref(waiter).cast_mut().map_addr(|address| address | LOCKED);
            match self.state.compare_exchange_weak(state, mine, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Gives the lock up, and wakes the thread that has waited longest.
    ///
    /// # Safety
    /// The caller holds the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        let locked = null_mut::<Waiter>().wrapping_byte_add(LOCKED);
        if self.state.compare_exchange(locked, null_mut(), Ordering::Release, Ordering::Relaxed).is_err() {
            // SAFETY: the caller holds the lock.
            unsafe { self.unlock_slowly() };
        }
    }

    /// # Safety
    /// The caller holds the lock, and somebody waits.
    #[cold]
    unsafe fn unlock_slowly(&self) {
        let state = self.state.load(Ordering::Acquire);
        let newest = state.map_addr(|address| address & !LOCKED);
        let mut before: *mut Waiter = null_mut();
        let mut oldest = newest;
        loop {
            // SAFETY: whoever is in the list waits, and so stays, until the holder takes it out.
            let next = unsafe { &*oldest }.next.get();
            if next.is_null() {
                break;
            }
            (before, oldest) = (oldest, next);
        }
        if before.is_null() {
            // The only one: the list becomes empty, unless somebody has come meanwhile.
            if self.state.compare_exchange(state, null_mut(), Ordering::Release, Ordering::Relaxed).is_err() {
                // SAFETY: the caller still holds the lock. Now there are at least two, so this happens once.
                return unsafe { self.unlock_slowly() };
            }
        } else {
            // SAFETY: as above; only the holder changes `next` of a waiter in the list.
            unsafe { &*before }.next.set(null_mut());
            // Clears the lowest bit, whoever may have come meanwhile.
            let mut state = self.state.load(Ordering::Relaxed);
            while let Err(now) = self.state.compare_exchange_weak(
                state,
                state.map_addr(|address| address & !LOCKED),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                state = now;
            }
        }
        // SAFETY: it was taken out of the list, and only the holder wakes.
        unsafe { Waiter::wake(oldest) };
    }
}

/// A list of waiters, from the oldest to the newest. Its owner sees to it that one thread at a time uses it.
pub struct WaiterList {
    oldest: Cell<*mut Waiter>,
}

impl WaiterList {
    /// An empty list.
    pub const fn new() -> WaiterList {
        WaiterList { oldest: Cell::new(null_mut()) }
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.oldest.get().is_null()
    }

    /// Appends a waiter.
    ///
    /// # Safety
    /// It stays where it is until it has left the list.
    pub unsafe fn push(&self, waiter: &Waiter) {
        waiter.next.set(null_mut());
        let new = core::ptr::from_ref(waiter).cast_mut();
        let mut place = &self.oldest;
        while let Some(waiting) = {
            // SAFETY: waiters in the list stay (`push`).
            unsafe { place.get().as_ref() }
        } {
            place = &waiting.next;
        }
        place.set(new);
    }

    /// Takes the oldest out.
    pub fn pop(&self) -> Option<*const Waiter> {
        // SAFETY: waiters in the list stay (`push`).
        let waiter = unsafe { self.oldest.get().as_ref() }?;
        self.oldest.set(waiter.next.get());
        Some(waiter)
    }

    /// Takes a certain one out. Answers whether it was in the list.
    pub fn remove(&self, waiter: &Waiter) -> bool {
        let mut place = &self.oldest;
        while let Some(waiting) = {
            // SAFETY: waiters in the list stay (`push`).
            unsafe { place.get().as_ref() }
        } {
            if core::ptr::eq(waiting, waiter) {
                place.set(waiting.next.get());
                return true;
            }
            place = &waiting.next;
        }
        false
    }
}
