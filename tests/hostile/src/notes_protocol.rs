//! An interface whose arguments lie in shared memory.

use tench_protocol::{Caller, Shared, SharedMut, Text, interface};

/// A service that keeps notes.
#[interface(client = Notes, version = 1)]
pub trait NotesService {
    /// Writes into a note. Replies the note's length in bytes.
    #[method(1)]
    fn write(&mut self, caller: Caller, note: Text<'_, 16>, at: u64, text: Shared<'_>) -> Result<u64, Error>;

    /// Reads a note. Replies the number of bytes.
    #[method(2)]
    fn read(&mut self, caller: Caller, note: Text<'_, 16>, into: SharedMut<'_>) -> Result<u64, Error>;

    /// Reverses text.
    #[method(3)]
    fn turn(&mut self, text: Shared<'_>, into: SharedMut<'_>) -> Result<(), Error>;

    /// Replies a count; needs no memory.
    #[method(4)]
    fn count(&mut self) -> Result<u64, Error>;
}

tench_protocol::codes! {
    /// Reasons for which a request is refused.
    pub enum Error {
        /// There is no such note.
        NoSuchNote = 1, "there is no such note";
    }
}
