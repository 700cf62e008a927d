//! The name server's interface.

use tench_abi::layout::slot;
use tench_procs_client::Standing;
use tench_protocol::{Arrived, Caller, Given, Later, Powers, Replies, Sent, Text, interface};
use tench_sys::Endpoint;

/// Endpoints by name. Names with a `/` in them are everybody's, and whoever comes first has one; by custom a program's
/// begin with its own: `chess/board`. Names without are the system's: only those with the power `names` register them,
/// so that nobody else can take the name of a server that is being started again.
#[interface(client = Names, version = 2)]
pub trait NamesService {
    /// Registers an endpoint under a name. Whoever looks the name up gets a copy of this capability, so it is usually
    /// one that allows no more than to call. If the capability has no badge, the copy's badge has the number and the
    /// family of the process that looked the name up: so a server knows its clients. If moreover the name is the
    /// system's, the badge says what powers that process has. A name that the process has registered before stands for
    /// the new endpoint.
    /// Errors: `BadName`, `NotAllowed` (a name of the system's, without the power `names`), `Taken` (by another
    /// process), `Full` (no name is free, or the process's family has more than are free).
    #[method(1)]
    fn register(
        &mut self,
        caller: Caller,
        powers: Powers,
        replies: &mut Replies,
        name: Text<'_, MAX_NAME>,
        endpoint: Arrived<'_, Endpoint>,
    ) -> Result<(), Error>;

    /// The endpoint that is registered under a name; the capability goes to the empty slot.
    /// Errors: `BadName`, `Unknown`.
    #[method(2)]
    fn look_up(
        &mut self,
        caller: Caller,
        powers: Powers,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Sent<Endpoint, Given>, Error>;

    /// The same, but waits until the name is registered.
    /// Errors: `BadName`, `Full` (nobody more can wait, or more threads of the family wait than could wait besides).
    #[method(3)]
    fn wait_for(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error>;

    /// Forgets a name that this process registered.
    /// Errors: `BadName`, `Unknown`, `NotYours`.
    #[method(4)]
    fn unregister(&mut self, caller: Caller, name: Text<'_, MAX_NAME>) -> Result<(), Error>;

    /// The first name after another in alphabetical order (from the beginning: after the empty name) and the process
    /// that registered it.
    /// Errors: `Unknown` when there is none.
    #[method(5)]
    fn next(&mut self, name: Text<'_, MAX_NAME>) -> Result<(Text<'_, MAX_NAME>, u64), Error>;

    /// A process has ended: its names and waits are forgotten. Answers another process of the same core, if the server
    /// must know whether that one lives: one that has registered its first name. If it does not live, this is to be
    /// said of it, too; otherwise `process_lives`.
    #[method(6, authority)]
    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<Option<u64>, Error>;

    /// A process lives and keeps its names. Answers as `process_ended`.
    #[method(7, authority)]
    fn process_lives(&mut self, process: u64) -> Result<Option<u64>, Error>;
}

impl Names<Standing> {
    /// The name server as every process finds it.
    pub const STANDARD: Names<Standing> = Names::at(Standing(slot::NAMES));
}

/// Bytes of the longest name.
pub const MAX_NAME: usize = 255;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// A name is empty, or has control characters in it.
        BadName = 1, "a name has 1 to 255 bytes of UTF-8 without control characters";
        /// Somebody has registered this name.
        Taken = 2, "the name is taken; choose another";
        /// The table of names or of waiting threads is full, or the process's family has more of it than is free.
        Full = 3, "the name server is full, or you have more names than are free; unregister a name first";
        /// Nobody has registered this name.
        Unknown = 4, "nobody has registered this name";
        /// Somebody else has registered this name.
        NotYours = 5, "another process registered this name; only that one can unregister it";
        /// The name is the system's, and the process may not register those.
        NotAllowed = 6, "names without a / are the system's; register one with a /, such as PROGRAM/NAME";
    }
}
