//! Memory and bells of this machine.

#![allow(dead_code)] // Each test file uses what it needs.

use std::cell::Cell;
use std::rc::Rc;

use tench_channel::{Bell, Idle, Line};

/// The lines of a frame with so many for messages in each direction.
pub fn lines(ring: usize) -> Vec<Line> {
    (0..2 * (ring + 1)).map(|_| Line::default()).collect()
}

/// Counts how often it was rung.
#[derive(Clone, Default, Debug)]
pub struct Count(Rc<Cell<u32>>);

impl Count {
    /// How often it was rung since the last time that this was asked.
    pub fn take(&self) -> u32 {
        self.0.take()
    }
}

impl Bell for Count {
    fn ring(&self) {
        self.0.set(self.0.get() + 1);
    }
}

/// For tests in which both sides are one thread, that cannot sleep.
pub struct Never;

impl Idle for Never {
    fn polls(&self) -> u32 {
        1
    }

    fn pause(&mut self) {}

    fn sleep(&mut self) {}
}
