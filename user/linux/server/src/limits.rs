//! Resource limits of a process. A child inherits them, and `execve` keeps them.

use tench_linux_memory::Allowance;

use crate::descriptors::MAX_DESCRIPTORS;

/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// Resources that can be limited, by their numbers in calls.
pub mod resource {
    /// CPU time in seconds.
    pub const CPU: usize = 0;
    /// Length of a file that is written, in bytes.
    pub const FILE: usize = 1;
    /// Bytes of private memory that can be written.
    pub const DATA: usize = 2;
    /// Bytes of the stack.
    pub const STACK: usize = 3;
    /// Bytes of a core dump, which is never made.
    pub const CORE: usize = 4;
    /// Number of processes.
    pub const PROCESSES: usize = 6;
    /// Number of descriptors.
    pub const DESCRIPTORS: usize = 7;
    /// Bytes of memory that is locked.
    pub const LOCKED: usize = 8;
    /// Bytes of all memory.
    pub const ALL: usize = 9;
    /// How far a priority can be raised by `nice`.
    pub const NICE: usize = 13;
    /// The highest priority of `SCHED_FIFO` and `SCHED_RR`.
    pub const REAL_TIME: usize = 14;
    /// The end of the numbers.
    pub const COUNT: usize = 16;
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit that is enforced.
    pub soft: u64,
    /// The ceiling of the soft limit.
    pub hard: u64,
}

/// All limits of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits([Limit; resource::COUNT]);

impl Limits {
    /// Returns a limit, if there is one with this number.
    pub fn get(&self, resource: u32) -> Option<Limit> {
        self.0.get(resource as usize).copied()
    }

    /// Returns the limit of something that can be limited.
    pub const fn of(&self, resource: usize) -> Limit {
        self.0[resource]
    }

    /// Sets the limit of something that can be limited.
    pub const fn set(&mut self, resource: usize, limit: Limit) {
        self.0[resource] = limit;
    }

    /// Returns all limits.
    pub const fn all(&self) -> &[Limit; resource::COUNT] {
        &self.0
    }

    /// Returns how long the areas of memory may be.
    pub const fn allowance(&self) -> Allowance {
        let [all, data, stack] = [resource::ALL, resource::DATA, resource::STACK];
        Allowance { all: self.of(all).soft, data: self.of(data).soft, stack: self.of(stack).soft }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        let unlimited = Limit { soft: UNLIMITED, hard: UNLIMITED };
        let mut limits = Limits([unlimited; resource::COUNT]);
        limits.set(resource::STACK, Limit { soft: 8 << 20, ..unlimited });
        limits.set(resource::CORE, Limit { soft: 0, ..unlimited });
        limits.set(resource::DESCRIPTORS, Limit { soft: MAX_DESCRIPTORS.into(), hard: 4096 });
        limits.set(resource::LOCKED, Limit { soft: 8 << 20, hard: 8 << 20 });
        // Without the capability for it, nobody gets a higher priority.
        limits.set(resource::NICE, Limit { soft: 0, hard: 0 });
        limits.set(resource::REAL_TIME, Limit { soft: 0, hard: 0 });
        limits
    }
}
