//! The monitor's interface.

use tench_protocol::{Any, Arrived, Caller, Given, Later, Powers, Sent, Words, interface};
use tench_sys::{Endpoint, Untyped};

pub use tench_procs_interface::pid::{CORE_SHIFT, pid_base, split_pid};

/// The cores of the machine, each with a kernel and a monitor of its own.
#[expect(clippy::type_complexity, reason = "a deferred reply of words and a capability")]
#[interface(client = Monitor, version = 1)]
pub trait MonitorService {
    /// Returns how many cores the machine has, and the number of this one.
    #[method(1)]
    fn cores(&mut self) -> Result<(u64, u64), Error>;

    /// Returns the state of a core.
    /// Errors: `NoSuchCore`.
    #[method(2)]
    fn core(&mut self, core: u64) -> Result<Core, Error>;

    /// Sends a message to the monitor of another core, and waits for its reply. Returns how many ticks of the system
    /// counter that took.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`.
    #[method(3)]
    fn ping(&mut self, later: Later<'_, u64, Error>, core: u64) -> Result<Option<u64>, Error>;

    /// Returns how much memory a core's memory server has, in bytes, and how much of that is free.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `Internal`.
    #[method(8)]
    fn memory(&mut self, later: Later<'_, Memory, Error>, core: u64) -> Result<Option<Memory>, Error>;

    /// Sends a copy of a capability to a frame, an endpoint or a notification to a process of any core, with a word
    /// that tells its purpose. The reply comes when the copy is in the receiver's mailbox, or on its way there, for the
    /// process to `take`. The copy has the rights of the caller's; on another core, an endpoint can be called and sent
    /// to, not received at, and a notification be signalled, not waited for.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`; `NotSendable`, `DeviceMemory`,
    /// `MailboxFull`, `BeingRevoked`, `TooManyObjects`, `CoreLost`, `Refused`; `NotAllowed` for a caller that is no
    /// process.
    #[method(20)]
    fn give(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        process: u64,
        word: u64,
        capability: Arrived<'_, Any>,
    ) -> Result<Option<()>, Error>;

    /// Lends unused untyped memory to a process of any core, which may make any objects of it. The capability leaves
    /// the caller, even if the request is refused: the memory is again part of what it was made of when it has come
    /// back (`recall`).
    /// Errors: as `give`, and `Lent`, `InUse`.
    #[method(21)]
    fn lend(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        process: u64,
        word: u64,
        memory: Arrived<'_, Untyped, Given>,
    ) -> Result<Option<()>, Error>;

    /// Waits for the next capability that was sent to the caller. Returns the sending process, and the word.
    /// Errors: `Full` (too many threads wait), `NotAllowed` for a caller that is no process.
    #[method(22)]
    fn take(
        &mut self,
        caller: Caller,
        later: Later<'_, (Transfer, Sent<Any, Given>), Error>,
    ) -> Result<Option<(Transfer, Sent<Any, Given>)>, Error>;

    /// Revokes, from all other cores, the object of a capability, for the process that has sent it there and cannot
    /// revoke or delete it in the kernel because there are remote copies. The reply comes when no other core has a
    /// copy, nor anything that was made of one.
    /// Errors: `NotSendable`, `Borrowed` (it is another core's), `NotAllowed` (another process has sent it; the owner
    /// of the memory has it revoked by trying to revoke it in the kernel), `Full`.
    #[method(23)]
    fn revoke(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        capability: Arrived<'_, Any>,
    ) -> Result<Option<()>, Error>;

    /// Revokes, from all other cores, what the caller has sent or lent there of its block of this number from the
    /// memory server. The reply comes when nothing is left of it there.
    /// Errors: `Full`, `NoSuchBlock`.
    #[method(24)]
    fn recall(&mut self, caller: Caller, later: Later<'_, (), Error>, block: u16) -> Result<Option<()>, Error>;

    /// Gives the object that begins at a physical address back to the core that it came from, after its capabilities
    /// here were deleted. It goes back after a moment in any case.
    /// Errors: `NotForeign`, `InUse`.
    #[method(25, power(MEMORY))]
    fn give_back(&mut self, address: u64) -> Result<(), Error>;

    /// Returns the counts in this core's monitor's ledger: exported objects, imported objects, capabilities that were
    /// sent and not taken, protocol violations by other monitors, and endpoints and notifications that are used from
    /// other cores.
    #[method(26)]
    fn exchanged(&mut self) -> Result<Exchanged, Error>;

    /// Requests memory from another core, which is given for good: about this many bytes, a power of two of at least 1
    /// MiB. A core gives only what leaves it as much free memory as the requester has then, and 32 MiB. Returns how
    /// many bytes were given; this core's memory server has them a moment later.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`; `NothingToSpare`, `NoRicher` if that core gives nothing,
    /// `OutOfMemory` if it has nothing in one piece; `CoreLost`, `Refused`.
    #[method(27)]
    fn grow(
        &mut self,
        caller: Caller,
        later: Later<'_, u64, Error>,
        from: u64,
        bytes: u64,
    ) -> Result<Option<u64>, Error>;

    /// Returns a capability to the process server of any core, with the same meaning as for that core's own processes:
    /// it identifies the caller, and what the caller prepares there and starts has it as its parent. Process builders
    /// are discarded when the caller has deleted the capability. The capability goes to the empty slot on offer.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `Internal`, `OutOfMemory`;
    /// `NotAllowed` for a caller that is no process, `Limited` for one whose memory is limited; `NoSuchProcess`,
    /// `WrongState` for one that has ended.
    #[method(28)]
    fn processes(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        core: u64,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error>;
}

/// Sender and purpose of a received capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Transfer {
    /// The process that sent it, of whichever core.
    pub from: u64,
    /// Word that tells its purpose.
    pub word: u64,
}

/// Counts in a monitor's ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Exchanged {
    /// Objects of this core that were exported to others.
    pub exports: u64,
    /// Objects of other cores that were imported.
    pub copies: u64,
    /// Capabilities that were sent to processes of this core, and not taken.
    pub transfers: u64,
    /// Protocol violations by other monitors.
    pub faults: u64,
    /// Capabilities to endpoints and notifications that other cores hold, as they were sent.
    pub endpoints: u64,
    /// Capabilities to endpoints and notifications of other cores that this one holds.
    pub proxies: u64,
}

/// A core's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Memory {
    /// Bytes in all.
    pub total: u64,
    /// Free bytes.
    pub free: u64,
}

impl Monitor<()> {
    /// The name under which it is registered.
    pub const NAME: &'static str = "monitor";
}

/// A core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Core {
    /// State of the core.
    pub state: State,
    /// Bytes of memory that it was given; 0 for the first core, which gives it.
    pub memory: u64,
    /// Ticks of the system counter from its start until its monitor replied; 0 if it has not.
    pub start: u64,
}

tench_protocol::codes! {
    /// State of a core.
    pub enum State {
        /// The core is this one.
        Here = 1, "here";
        /// The core's kernel was started; its monitor has not replied yet.
        Starting = 2, "starting";
        /// The core's monitor replies.
        Running = 3, "running";
        /// The firmware refused to start it.
        Refused = 4, "refused by the firmware";
        /// There was no memory for it.
        NoMemory = 5, "no memory";
        /// The core's monitor did not reply in time, and does not. If it replies later, the core runs again.
        Silent = 6, "silent";
        /// The core's monitor violated the protocol; its messages are no longer trusted.
        Broken = 7, "broken channel";
        /// This core has no channel to it.
        Unconnected = 8, "not connected";
        /// The core is off, as the firmware says: it has stopped, or it was never started.
        Stopped = 9, "stopped";
    }
}

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The machine has no such core.
        NoSuchCore = 1, "the machine has no such core; cores are counted from 0";
        /// There is no channel to this core.
        NotConnected = 2, "this core's monitor has no channel to that one; ask from the first core";
        /// Too many requests wait for replies of that core.
        Full = 3, "too many requests wait for that core; try again later";
        /// The channel is closed, because the other monitor violated the protocol.
        Broken = 4, "that core's monitor wrote something impossible, and its channel is closed";
        /// The core's servers replied with something impossible.
        Internal = 6, "a server of that core refused what should be possible";
        /// The core's monitor does not reply; the request may have been carried out or not.
        Silent = 7, "that core does not reply";
        /// The core has stopped.
        Stopped = 8, "that core has stopped";
        /// There is no such process.
        NoSuchProcess = 32, "no such process; `ps` lists them";
        /// The process is not in a state for this.
        WrongState = 33, "the process's state does not allow this";
        /// There is not enough memory.
        OutOfMemory = 36, "not enough memory";
        /// The caller is no process, or may not do that with the object.
        NotAllowed = 39, "this takes a power that you do not have; `caps` shows which you have";
        /// A process with a memory limit gets no process server of another core, where its limit would not count.
        Limited = 41, "your memory is limited, which counts on your own core alone: who has no limit can start that there, with a limit";
        /// Only memory, endpoints and notifications can be sent.
        NotSendable = 64, "only frames, untyped memory, endpoints to call and notifications to signal can be sent to a process";
        /// Memory of devices stays on its core.
        DeviceMemory = 65, "memory of devices stays on its core";
        /// Too many capabilities sent by the caller have not been taken at that core, or came unexpectedly.
        MailboxFull = 66, "too much was sent there that nobody has taken; try again later";
        /// The object is being revoked, or was.
        BeingRevoked = 67, "it is being taken back from other cores";
        /// The memory is lent already.
        Lent = 68, "the memory is lent to a core already";
        /// Something was made of the memory, or it is in use.
        InUse = 69, "something was made of the memory; delete that first";
        /// The object belongs to another core.
        Borrowed = 70, "it belongs to another core, and only there can this be asked";
        /// A table of the monitors is full.
        TooManyObjects = 71, "too many objects are on other cores; take some back first";
        /// A core that was needed has stopped.
        CoreLost = 72, "a core that was needed has stopped";
        /// The kernel of one of the cores refused.
        Refused = 73, "the kernel of one of the cores refused";
        /// There is no object of another core.
        NotForeign = 74, "nothing of another core's begins there";
        /// The caller has no such block from the memory server.
        NoSuchBlock = 77, "you have no block with that number from the memory server";
        /// The requested core has too little free memory to give any.
        NothingToSpare = 75, "that core gives nothing: it keeps 32 MiB free for itself, and has less than 1 MiB more";
        /// The requesting core has as much free memory as the requested one, or is the same.
        NoRicher = 76, "that core gives nothing: it would have less free memory than this one then";
    }
}
