//! The monitor's interface.

use tench_protocol::{Later, Words, interface};

/// The cores of the machine, each with a kernel and a monitor of its own.
#[interface(client = Monitor, version = 1)]
pub trait MonitorService {
    /// How many cores the machine has, and which of them this is.
    #[method(1)]
    fn cores(&mut self) -> Result<(u64, u64), Error>;

    /// What is known of a core.
    /// Errors: `NoSuchCore`.
    #[method(2)]
    fn core(&mut self, core: u64) -> Result<Core, Error>;

    /// Sends a message to the monitor of another core, which answers it. Answers how many ticks of the system counter that took.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
    #[method(3)]
    fn ping(&mut self, later: Later<'_, u64, Error>, core: u64) -> Result<Option<u64>, Error>;
}

impl Monitor<()> {
    /// The name under which it is registered.
    pub const NAME: &'static str = "monitor";
}

/// A core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Core {
    /// How far it is.
    pub state: State,
    /// Bytes of memory that it was given; 0 for the core that gives it.
    pub memory: u64,
    /// Ticks of the system counter from its start until its monitor answered; 0 if it has not.
    pub start: u64,
}

tench_protocol::codes! {
    /// How far a core is.
    pub enum State {
        /// It is this one.
        Here = 1, "here";
        /// Its kernel was started; its monitor has not answered yet.
        Starting = 2, "starting";
        /// Its monitor answers.
        Running = 3, "running";
        /// The firmware refused to start it.
        Refused = 4, "refused by the firmware";
        /// There was no memory for it.
        NoMemory = 5, "no memory";
        /// Its monitor did not answer in time.
        Silent = 6, "silent";
        /// Its monitor wrote what no monitor writes; nothing of it is believed any more.
        Broken = 7, "broken channel";
        /// This core has no channel to it.
        Unconnected = 8, "not connected";
    }
}

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The machine has no such core.
        NoSuchCore = 1, "the machine has no such core; cores are counted from 0";
        /// There is no channel to this core.
        NotConnected = 2, "this core's monitor has no channel to that one; ask from the first core";
        /// Too many requests wait for answers of that core.
        Full = 3, "too many requests wait for that core; try again later";
        /// The channel is closed, because its other side wrote what no monitor writes.
        Broken = 4, "that core's monitor wrote something impossible, and its channel is closed";
    }
}
