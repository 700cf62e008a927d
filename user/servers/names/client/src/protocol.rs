//! What travels between the name server and its clients.
//!
//! A request's label says what is asked, its words are the arguments. A reply's label is 0 for success, otherwise an
//! [`Error`]; its words are the results. A *name* in a message is one word with its length in bytes, and then its
//! bytes, eight to a word, the first in the lowest bits.

tench_protocol::codes! {
    /// What can be asked.
    pub enum Label {
        /// **Register** a name. Words: name. One capability, to an endpoint; whoever looks the name up gets a copy of
        /// it.
        /// Errors: `BadName`, `Taken`, `Full`, `NoCapability`.
        Register = 1;
        /// **Look up** a name. Words: name. Answers one capability. Errors: `BadName`, `Unknown`.
        LookUp = 2;
        /// **Look up** a name, and wait until it is registered. Otherwise as `LookUp`. Errors: `BadName`, `Full` (too
        /// many wait).
        Await = 3;
        /// **Unregister** a name. Words: name. Errors: `BadName`, `Unknown`, `NotYours`.
        Unregister = 4;
        /// **Next name**. Words: a name, or an empty one. Answers the next one in alphabetical order: the process that
        /// registered it, name. Errors: `Unknown` when there is none.
        Next = 5;
        /// **A process ended**: its names and waits are forgotten. Words: process. Needs the capability without a
        /// badge.
        ProcessEnded = 6;
    }
}

/// Bytes of the longest name.
pub const MAX_NAME: usize = 255;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The label or the number of words is wrong.
        BadRequest = 1, "the name server does not know this request; see its protocol";
        /// A name is empty, longer than [`MAX_NAME`], not UTF-8, or has control characters in it.
        BadName = 2, "a name has 1 to 255 bytes of UTF-8 without control characters";
        /// Somebody has registered this name.
        Taken = 3, "the name is taken; choose another";
        /// The table of names or of waiting threads is full.
        Full = 4, "the name server is full; unregister a name first";
        /// Nobody has registered this name.
        Unknown = 5, "nobody has registered this name";
        /// Somebody else has registered this name.
        NotYours = 6, "another process registered this name; only that one can unregister it";
        /// No capability came with the message.
        NoCapability = 7, "no capability came with the name; send the endpoint along";
        /// The request needs the capability without a badge.
        NotAllowed = 8, "only the process server may do this";
    }
}
