//! The interface that is measured.

use tench::sys::Notification;
use tench_protocol::{Arrived, Text, Words, interface};

/// One method for each size of message.
#[interface(client = Measured, version = 1)]
pub trait MeasuredService {
    /// Nothing.
    #[method(1)]
    fn zero(&mut self) -> Result<(), Error>;

    /// A word.
    #[method(2)]
    fn one(&mut self, a: u64) -> Result<u64, Error>;

    /// Four words.
    #[method(3)]
    fn four(&mut self, a: u64, b: u64, c: u64, d: u64) -> Result<(u64, u64, u64, u64), Error>;

    /// Eight words.
    #[method(4)]
    fn eight(&mut self, words: [u64; 8]) -> Result<[u64; 8], Error>;

    /// Text.
    #[method(5)]
    fn text(&mut self, text: Text<'_, 16>) -> Result<Text<'_, 16>, Error>;

    /// A capability.
    #[method(6)]
    fn cap(&mut self, cap: Arrived<'_, Notification>) -> Result<(), Error>;

    /// What is known about a task.
    #[method(7)]
    fn task_info(&mut self, task: u64) -> Result<TaskInfo, Error>;
}

/// What R2's `task_info` answers, in 10 words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct TaskInfo {
    /// How often it is suspended.
    pub suspended: u64,
    /// Its priority.
    pub priority: u64,
    /// Bytes of address space.
    pub reserved: u64,
    /// Bytes of memory.
    pub resident: u64,
    /// Time in user mode: seconds and microseconds.
    pub user: [u64; 2],
    /// Time in the kernel: the same.
    pub system: [u64; 2],
    /// How it is scheduled.
    pub policy: u64,
    /// How many threads it has.
    pub threads: u64,
}

impl TaskInfo {
    /// What every task has here.
    pub const SAMPLE: TaskInfo = TaskInfo {
        suspended: 0,
        priority: 31,
        reserved: 1 << 30,
        resident: 1 << 20,
        user: [3, 141_592],
        system: [2, 718_281],
        policy: 1,
        threads: 4,
    };

    /// As words.
    pub const fn words(&self) -> [u64; 10] {
        let TaskInfo { suspended, priority, reserved, resident, user, system, policy, threads } = *self;
        [suspended, priority, reserved, resident, user[0], user[1], system[0], system[1], policy, threads]
    }

    /// Of words.
    pub const fn of(words: [u64; 10]) -> TaskInfo {
        let [suspended, priority, reserved, resident, user, user_us, system, system_us, policy, threads] = words;
        let (user, system) = ([user, user_us], [system, system_us]);
        TaskInfo { suspended, priority, reserved, resident, user, system, policy, threads }
    }
}

/// The task that exists.
pub const TASK: u64 = 42;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// There is no such task.
        NoSuchTask = 1, "no such task";
    }
}
