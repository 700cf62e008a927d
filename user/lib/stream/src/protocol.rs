//! The interface of an end of a byte stream.
//!
//! The capability says which end: its badge is the end's number. Several capabilities can stand for the same end; they
//! share its position in a file. An end is gone when the last of them is [closed](StreamService::close), or the process
//! that it belongs to has ended.

use tench_protocol::{Bytes, Caller, Given, Later, Replies, Sent, Words, interface};
use tench_sys::Endpoint;

/// One end of a byte stream: of a pipe, or an open file.
#[interface(client = Stream, version = 1)]
pub trait StreamService {
    /// Reads at most so many bytes, when there are some: of a pipe, waits until somebody has written. Those who wait
    /// get bytes in the order in which they came. No bytes are the end: of a file, or of a pipe into which nobody can
    /// write any more.
    /// Errors: `Closed`, `NotForReading`, `Full`.
    #[method(1)]
    fn read(
        &mut self,
        caller: Caller,
        later: Later<'_, Bytes<'static, MAX_DATA>, Error>,
        max: usize,
    ) -> Result<Option<Bytes<'_, MAX_DATA>>, Error>;

    /// Writes bytes, all of them and together: what others write to the same pipe comes before or behind. Returns when
    /// they are in the pipe's buffer or in the file. Those who wait for room get it in the order in which they came.
    /// Errors: `Closed`, `NotForWriting`, `Broken`, `NoSpace`, `TooLarge`, `Full`.
    #[method(2)]
    fn write(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        data: Bytes<'_, MAX_DATA>,
    ) -> Result<Option<()>, Error>;

    /// Another capability to the same end, which belongs to this process: it is closed when that process ends, whoever
    /// holds the capability. This is how a process passes a stream to one that it starts. The capability goes to the
    /// empty slot.
    /// Errors: `Closed`, `Full`.
    #[method(3)]
    fn share(&mut self, caller: Caller, process: u64) -> Result<Sent<Endpoint, Given>, Error>;

    /// Closes this capability; it is of no more use then. Whoever waits with it is refused with `Closed`.
    /// Errors: `Closed`.
    #[method(4)]
    fn close(&mut self, caller: Caller, replies: &mut Replies) -> Result<(), Error>;

    /// Returns the properties of this end.
    /// Errors: `Closed`.
    #[method(5)]
    fn info(&mut self, caller: Caller) -> Result<Info, Error>;

    /// Sets where in the file to read or write next, in bytes from its beginning; it may lie behind the end.
    /// Errors: `Closed`, `NotAFile`.
    #[method(6)]
    fn seek(&mut self, caller: Caller, position: u64) -> Result<(), Error>;

    /// Sets the file's size in bytes: what lies behind is gone, what comes in addition is zeros.
    /// Errors: `Closed`, `NotAFile`, `NotForWriting`, `TooLarge`.
    #[method(7)]
    fn truncate(&mut self, caller: Caller, size: u64) -> Result<(), Error>;
}

/// Properties of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Info {
    /// Kind of the stream.
    pub kind: Kind,
    /// Set if this end can be read.
    pub readable: bool,
    /// Set if this end can be written.
    pub writable: bool,
    /// Bytes of the file, or bytes in the pipe that nobody has read.
    pub size: u64,
    /// Where in the file the next byte is read or written; of a pipe 0.
    pub position: u64,
}

tench_protocol::codes! {
    /// Kind of a stream.
    pub enum Kind {
        /// A pipe.
        Pipe = 1;
        /// A file.
        File = 2;
        /// A terminal.
        Terminal = 3;
    }
}

/// Bytes in one message.
pub const MAX_DATA: usize = 480;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The end has been closed, or the process to which it belonged has ended.
        Closed = 1, "this end of the stream is closed";
        /// Nobody can read what would be written.
        Broken = 2, "nobody reads from the pipe any more";
        /// The end is for writing.
        NotForReading = 3, "this end of the stream is for writing only";
        /// The end is for reading, or the file is one of the boot archive.
        NotForWriting = 4, "this end of the stream is for reading only";
        /// The memory for files is used up; nothing was written.
        NoSpace = 5, "no space is left for files; remove one";
        /// Files do not become so large.
        TooLarge = 6, "a file has at most 2^31 bytes";
        /// Too many requests wait, or there are too many ends, of this process or of all.
        Full = 7, "too many requests wait for streams, or too many are open; close one";
        /// A pipe has no position and no size that could be set.
        NotAFile = 8, "this is a pipe, which has no position and no size";
    }
}
