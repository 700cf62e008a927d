//! The name server's interface.

use tench_abi::layout::slot;
use tench_procs_interface::Standing;
use tench_protocol::{Arrived, Caller, Given, Later, Powers, Replies, Sent, Text, interface};
use tench_sys::Endpoint;

/// Endpoints by name. Names that contain a `/` are open to everybody, first come, first served; by convention, a
/// program's names begin with its own: `chess/board`. Names without a `/` are the system's: only processes with the
/// power `names` register them, so that no other process can take the name of a server that is being restarted.
#[interface(client = Names, version = 2)]
pub trait NamesService {
    /// Registers an endpoint under a name. A client that looks the name up gets a copy of this capability, so it
    /// usually permits only calls. If the capability has no badge, the copy's badge is the number and the family of the
    /// client: so a server knows its clients. If moreover the name is the system's, the badge also contains the
    /// client's powers. If the process has registered the name before, the new endpoint replaces the old one.
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

    /// Returns the endpoint registered under a name; the capability goes to the empty slot on offer.
    /// Errors: `BadName`, `Unknown`.
    #[method(2)]
    fn look_up(
        &mut self,
        caller: Caller,
        powers: Powers,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Sent<Endpoint, Given>, Error>;

    /// Returns the endpoint registered under a name, and waits for that if need be.
    /// Errors: `BadName`, `Full` (no more threads can wait, or more threads of the family wait than waits are free).
    #[method(3)]
    fn wait_for(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error>;

    /// Removes a name that this process registered.
    /// Errors: `BadName`, `Unknown`, `NotYours`.
    #[method(4)]
    fn unregister(&mut self, caller: Caller, name: Text<'_, MAX_NAME>) -> Result<(), Error>;

    /// Returns the first name after another in alphabetical order (for the first of all: after the empty name) and the
    /// process that registered it.
    /// Errors: `Unknown` when there is none.
    #[method(5)]
    fn next(&mut self, name: Text<'_, MAX_NAME>) -> Result<(Text<'_, MAX_NAME>, u64), Error>;

    /// Reports that a process has ended: its names and waits are removed. Returns another process of the same core, if
    /// the server must know whether that one runs: one that has registered its first name. If that process has ended,
    /// this is to be reported in the same way; otherwise with `process_lives`.
    #[method(6, authority)]
    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<Option<u64>, Error>;

    /// Reports that a process runs and keeps its names. Returns the same as `process_ended`.
    #[method(7, authority)]
    fn process_lives(&mut self, process: u64) -> Result<Option<u64>, Error>;
}

impl Names<Standing> {
    /// The name server, in the slot where every process finds it.
    pub const STANDARD: Names<Standing> = Names::at(Standing(slot::NAMES));
}

/// Maximum length of a name in bytes.
pub const MAX_NAME: usize = 255;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// A name is empty, or contains control characters.
        BadName = 1, "a name has 1 to 255 bytes of UTF-8 without control characters";
        /// Another process has registered this name.
        Taken = 2, "the name is taken; choose another";
        /// The table of names or of waiting threads is full, or the process's family has more entries than are free.
        Full = 3, "the name server is full, or you have more names than are free; unregister a name first";
        /// This name is not registered.
        Unknown = 4, "nobody has registered this name";
        /// Another process has registered this name.
        NotYours = 5, "another process registered this name; only that one can unregister it";
        /// The name is the system's, and the process may not register such names.
        NotAllowed = 6, "names without a / are the system's; register one with a /, such as PROGRAM/NAME";
    }
}
