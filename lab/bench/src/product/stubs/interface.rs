//! The interface that is measured.

use tench::sys::Notification;
use tench_protocol::{Arrived, Text, Words, interface};

/// A service with one method for each size of message.
#[interface(client = Measured, version = 1)]
pub trait MeasuredService {
    /// Sends no data.
    #[method(1)]
    fn zero(&mut self) -> Result<(), Error>;

    /// Sends a word, and replies it.
    #[method(2)]
    fn one(&mut self, a: u64) -> Result<u64, Error>;

    /// Sends four words, and replies them.
    #[method(3)]
    fn four(&mut self, a: u64, b: u64, c: u64, d: u64) -> Result<(u64, u64, u64, u64), Error>;

    /// Sends eight words, and replies them.
    #[method(4)]
    fn eight(&mut self, words: [u64; 8]) -> Result<[u64; 8], Error>;

    /// Sends text, and replies it.
    #[method(5)]
    fn text(&mut self, text: Text<'_, 16>) -> Result<Text<'_, 16>, Error>;

    /// Sends a capability.
    #[method(6)]
    fn cap(&mut self, cap: Arrived<'_, Notification>) -> Result<(), Error>;

    /// Replies the information about a task.
    #[method(7)]
    fn task_info(&mut self, task: u64) -> Result<TaskInfo, Error>;
}

/// Information that R2's `task_info` returns, in 10 words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct TaskInfo {
    /// Number of suspensions.
    pub suspended: u64,
    /// Priority of the task.
    pub priority: u64,
    /// Bytes of address space.
    pub reserved: u64,
    /// Bytes of memory.
    pub resident: u64,
    /// Time in user mode: seconds and microseconds.
    pub user: [u64; 2],
    /// Time in the kernel: seconds and microseconds.
    pub system: [u64; 2],
    /// Scheduling policy.
    pub policy: u64,
    /// Number of threads.
    pub threads: u64,
}

impl TaskInfo {
    /// Information about every task here.
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

    /// Returns the information as words.
    pub const fn words(&self) -> [u64; 10] {
        let TaskInfo { suspended, priority, reserved, resident, user, system, policy, threads } = *self;
        [suspended, priority, reserved, resident, user[0], user[1], system[0], system[1], policy, threads]
    }

    /// Makes the information from words.
    pub const fn of(words: [u64; 10]) -> TaskInfo {
        let [suspended, priority, reserved, resident, user, user_us, system, system_us, policy, threads] = words;
        let (user, system) = ([user, user_us], [system, system_us]);
        TaskInfo { suspended, priority, reserved, resident, user, system, policy, threads }
    }
}

/// Number of the existing task.
pub const TASK: u64 = 42;

tench_protocol::codes! {
    /// Reasons for which a request is refused.
    pub enum Error {
        /// There is no such task.
        NoSuchTask = 1, "no such task";
    }
}
