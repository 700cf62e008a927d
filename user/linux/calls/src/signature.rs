//! Meanings of the arguments and results of calls.

use crate::Sysno;
use crate::names::{Choices, Flags};

/// The arguments and the result of a system call.
#[derive(Debug)]
pub struct Signature {
    /// The call's number.
    pub number: Sysno,
    /// The arguments, in the order of the registers `x0` to `x5`.
    pub arguments: &'static [Argument],
    /// The result, if the call succeeds.
    pub outcome: Outcome,
}

/// The meaning of an argument. What points to memory says whether the call reads it (*in*) or writes it (*out*).
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// A file descriptor.
    Descriptor,
    /// A file descriptor of a directory, or [`AT_FDCWD`](crate::numbers::AT_FDCWD).
    Directory,
    /// A signed number.
    Signed,
    /// An unsigned number.
    Unsigned,
    /// A number of which no more is known, in hexadecimal.
    Number,
    /// Permissions of a file.
    Mode,
    /// A set of flags.
    Flags(&'static Flags),
    /// One of several values.
    Choice(&'static Choices),
    /// One of several values, together with flags.
    ChoiceWithFlags(&'static Choices, &'static Flags),
    /// A signal's number.
    Signal,
    /// The flags of `clone`, with the number of a signal in the lowest byte.
    CloneFlags,
    /// An address.
    Address,
    /// In: a string that ends with a zero.
    String,
    /// In: an array of addresses of strings, which ends with a zero.
    Strings,
    /// In: bytes, as many as the argument with this index says.
    Bytes(usize),
    /// Out: bytes, as many as the call returns.
    Result,
    /// Out: a string that ends with a zero, which is no longer than what the call returns.
    ResultString,
    /// In: `iovec`s with the bytes to be written, as many as the argument with this index says.
    Vectors(usize),
    /// Out: `iovec`s with bytes, as many as the argument with this index says; together they have as many bytes as the
    /// call returns.
    ResultVectors(usize),
    /// In: a `timespec`.
    Time,
    /// Out: a `timespec`.
    ResultTime,
    /// In: two `timespec`s.
    Times,
    /// In: a set of signals.
    Signals,
    /// Out: a set of signals.
    ResultSignals,
    /// In: a `sigaction`.
    Action,
    /// Out: a `sigaction`.
    ResultAction,
    /// Out: two file descriptors.
    Descriptors,
    /// Out: a `stat`.
    Status,
    /// Out: how a child has changed.
    WaitStatus,
    /// In: `pollfd`s, as many as the argument with this index says.
    Polled(usize),
    /// In: an `rlimit64`.
    Limit,
    /// Out: an `rlimit64`.
    ResultLimit,
    /// In: the address of a socket, with its length in the next argument.
    SocketAddress,
}

/// The meaning of a successful result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A signed number.
    Number,
    /// An address.
    Address,
    /// A number of permissions or other bits, in octal.
    Octal,
    /// The call does not return.
    Never,
}
