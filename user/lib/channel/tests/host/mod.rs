//! Memory and doorbells on the host.

#![allow(dead_code)] // Each test file uses what it needs.

use std::cell::Cell;
use std::rc::Rc;

use tench_channel::{Idle, Line, Notifier};

/// Returns the lines of a frame with `ring` lines for messages in each direction.
pub fn lines(ring: usize) -> Vec<Line> {
    (0..2 * (ring + 1)).map(|_| Line::default()).collect()
}

/// Doorbell that counts its notifications.
#[derive(Clone, Default, Debug)]
pub struct Count(Rc<Cell<u32>>);

impl Count {
    /// Returns the number of notifications since the last call.
    pub fn take(&self) -> u32 {
        self.0.take()
    }
}

impl Notifier for Count {
    fn notify(&self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Idle behaviour of tests in which both sides are one thread, which cannot sleep.
pub struct Never;

impl Idle for Never {
    fn polls(&self) -> u32 {
        1
    }

    fn pause(&mut self) {}

    fn sleep(&mut self) {}
}
