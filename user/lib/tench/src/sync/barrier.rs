//! Barriers.

use core::sync::atomic::AtomicUsize;

use super::{RawBarrier, line};

/// A point that threads pass together, repeatedly.
pub struct Barrier {
    raw: RawBarrier,
}

impl Barrier {
    /// Returns a barrier for `size` threads.
    pub const fn new(size: usize) -> Barrier {
        Barrier { raw: RawBarrier::of(AtomicUsize::new(0), line(), size) }
    }

    /// Waits until as many threads have arrived as the barrier's size. Returns true to the thread that came last.
    pub fn wait(&self) -> bool {
        self.raw.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_thread_passes_before_all_have_arrived() {
        let (barrier, arrived, last) = (Barrier::new(4), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 1..=100 {
                        arrived.fetch_add(1, Ordering::SeqCst);
                        last.fetch_add(usize::from(barrier.wait()), Ordering::SeqCst);
                        assert!(arrived.load(Ordering::SeqCst) >= 4 * round);
                    }
                });
            }
        });
        assert_eq!((arrived.into_inner(), last.into_inner()), (400, 100));
    }
}
