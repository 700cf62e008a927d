//! Why a request had no success, and why a message was not believed.

use crate::object::Core;

macro_rules! errors {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal $text:literal,)*) => {
        /// Why a request was refused. None changes anything, but where it says so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Error {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl Error {
            /// The error of this number.
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
    /// The object belongs to another core, and only there can this be asked.
    NotOwner = 3 "another core owns the object",
    /// Whoever asks has no copy of the object.
    NotHolder = 4 "no copy of the object is there",
    /// The copy would arrive where it is sent from.
    ToSelf = 5 "the object is there already",
    /// The object, or the memory that it was made of, is being withdrawn from the other cores.
    BeingRevoked = 6 "the object is being revoked",
    /// The memory is lent to a core already.
    Lent = 7 "the memory is lent",
    /// The memory was borrowed: it can be given back, and what is made of it can be sent; it itself cannot be sent on.
    Borrowed = 8 "borrowed memory cannot be sent on",
    /// Only borrowed memory can be given back.
    NotBorrowed = 9 "the object is no borrowed memory",
    /// Something was made of the memory, or sent on that was made of it.
    InUse = 10 "something was made of the memory",
    /// The copy that is sent would have more rights than the sender's.
    TooManyRights = 11 "more rights than the sender has",
    /// The owner's table of objects is full.
    TooManyExports = 12 "too many objects on other cores",
    /// The owner's table of who has copies is full.
    TooManyHolders = 13 "too many copies on other cores",
    /// The table of foreign objects of the core that was sent to is full.
    TooManyCopies = 14 "too many foreign objects",
    /// This core's table of requests is full.
    TooManyRequests = 15 "too many requests are under way",
    /// The core that was to receive the object has stopped. Whether it had received it is unknown, and no longer
    /// matters.
    CoreLost = 16 "the core has stopped",
    /// The core that owns the object has stopped; copies are on their way out.
    OwnerLost = 17 "the owner of the object has stopped",
    /// The kernel of the sender's, the owner's or the receiver's core refused (no room for the capability, say).
    Kernel = 18 "the kernel refused",
    /// Withdrawn from the cores that are alive. The memory around it is being withdrawn as well, and what a lost core
    /// made of it goes with that.
    MemoryWithdrawn = 19 "the memory around the object is being withdrawn",
    /// Nobody on the core that was sent to expects the copy, or too many have arrived there that nobody expects.
    NoReceiver = 20 "nobody expects the copy",
}

impl core::error::Error for Error {}

/// A message that no monitor in its right mind sends. It was ignored, or answered with an error; nothing was changed
/// but what is between this core and the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Who sent it, or this core itself for a senseless input.
    pub from: Core,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// Such a message comes from the owner of the object, or goes to it: this pair is neither.
    NotOwner,
    /// It names a core that there is not.
    UnknownCore,
    /// It names an object or a generation that was never given, or is over.
    UnknownObject,
    /// Its sender has no copy.
    NotHolder,
    /// It counts what was not sent, or counts it again.
    WrongCount,
    /// It answers a request that was not made.
    UnknownRequest,
    /// What it says about memory cannot be.
    WrongShape,
    /// It comes at a time at which it means nothing.
    OutOfTurn,
    /// It asks for more than its sender has.
    TooManyRights,
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "core {}: {:?}", self.from.index(), self.why)
    }
}

impl core::error::Error for Fault {}
