//! Reasons for refusing requests, and faults of messages.

use crate::object::Core;

macro_rules! errors {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal $text:literal,)*) => {
        /// Reason why a request was refused. A refused request has changed nothing, except as the error says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Error {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl Error {
            /// Returns the error with this number.
            pub const fn new(code: u8) -> Option<Error> {
                match code {
                    $($code => Some(Error::$name),)*
                    _ => None,
                }
            }
        }

        impl core::fmt::Display for Error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self { $(Error::$name => $text,)* })
            }
        }
    };
}

errors! {
    /// No object of this name is known here (any more).
    UnknownObject = 1 "no such object",
    /// There is no core of this number.
    UnknownCore = 2 "no such core",
    /// The object belongs to another core, and the request is possible only there.
    NotOwner = 3 "another core owns the object",
    /// The requester has no copy of the object.
    NotHolder = 4 "no copy of the object is there",
    /// The copy would arrive where it is sent from.
    ToSelf = 5 "the object is there already",
    /// The object, or the memory from which it was made, is being withdrawn from the other cores.
    BeingRevoked = 6 "the object is being revoked",
    /// The memory is already lent to a core.
    Lent = 7 "the memory is lent",
    /// The memory was borrowed: it can be given back, and objects made from it can be sent, but it cannot be sent on
    /// itself.
    Borrowed = 8 "borrowed memory cannot be sent on",
    /// Only borrowed memory can be given back.
    NotBorrowed = 9 "the object is no borrowed memory",
    /// Something was made from the memory, or an object made from it was sent on.
    InUse = 10 "something was made of the memory",
    /// The sent copy would have more rights than the sender's.
    TooManyRights = 11 "more rights than the sender has",
    /// The owner's table of objects is full.
    TooManyExports = 12 "too many objects on other cores",
    /// The owner's table of holders is full.
    TooManyHolders = 13 "too many copies on other cores",
    /// The receiving core's table of remote objects is full.
    TooManyCopies = 14 "too many remote objects",
    /// This core's table of requests is full.
    TooManyRequests = 15 "too many requests are under way",
    /// The receiving core has stopped. Whether it had received the object is unknown, and no longer matters.
    CoreLost = 16 "the core has stopped",
    /// The core that owns the object has stopped; its copies are being deleted.
    OwnerLost = 17 "the owner of the object has stopped",
    /// The kernel of the sender's, the owner's or the receiver's core refused (for lack of room for the capability, for
    /// instance).
    Kernel = 18 "the kernel refused",
    /// The object is withdrawn from the cores that are alive. The memory around it is being withdrawn as well, and
    /// objects that a lost core made from it go with that memory.
    MemoryWithdrawn = 19 "the memory around the object is being withdrawn",
    /// No receiver on the destination core expects the copy, or too many unexpected ones have arrived there.
    NoReceiver = 20 "nobody expects the copy",
}

impl core::error::Error for Error {}

/// A message that no correct monitor sends. It was ignored, or refused with an error; only state between this core and
/// the sender has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The sender, or this core itself for an invalid input.
    pub from: Core,
    /// Kind of the fault.
    pub why: FaultKind,
}

/// Kind of a message's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Such a message is exchanged between the owner of the object and a holder, but neither end is the owner.
    NotOwner,
    /// The message names a core that does not exist.
    UnknownCore,
    /// The message names an object or a generation that was never assigned, or is over.
    UnknownObject,
    /// The sender has no copy.
    NotHolder,
    /// The message counts copies that were not sent, or counts them again.
    WrongCount,
    /// The message replies to a request that was not made.
    UnknownRequest,
    /// The message describes impossible memory.
    WrongShape,
    /// The message comes at a time at which it has no meaning.
    OutOfTurn,
    /// The message requests more rights than its sender has.
    TooManyRights,
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "core {}: {:?}", self.from.index(), self.why)
    }
}

impl core::error::Error for Fault {}
