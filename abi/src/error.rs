//! Errors of system calls.

/// Defines [`Error`] with its codes, texts and conversions from one list.
macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Reason why a system call failed. A failed call has changed nothing, except as its operation says for that
        /// error.
        ///
        /// Zero is never an error code: `x0 == 0` is success.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum Error { $($(#[$doc])* $name = $code,)* }

        impl Error {
            /// Every error, in order of its code.
            pub const ALL: &'static [Error] = &[$(Error::$name,)*];

            /// Returns the error with this code, if there is one.
            pub const fn from_code(code: u64) -> Option<Error> {
                match code { $($code => Some(Error::$name),)* _ => None }
            }

            /// Returns one sentence that says what was wrong and what to do.
            pub const fn text(self) -> &'static str {
                match self { $(Error::$name => $text,)* }
            }
        }
    };
}

errors! {
    /// The operation number is not in the table.
    UnknownOperation = 1, "no such system call; see the table of operations";
    /// The address names no slot, or the slot is empty or being deleted.
    InvalidCapability = 2, "the slot is empty or does not exist; name a slot that holds a capability";
    /// The capability is of a type that has no such operation.
    WrongType = 3, "the capability is of another type; this operation needs the type that its name begins with";
    /// The capability lacks a right that the operation needs.
    MissingRights = 4, "the capability lacks a right; ask its owner for one minted with that right";
    /// An argument is outside its range.
    InvalidArgument = 5, "an argument is out of range; the operation's page lists the ranges";
    /// The destination slot is not empty.
    SlotOccupied = 6, "the destination slot holds a capability; delete it or choose an empty slot";
    /// The destination names no slot: the second-level node is not there.
    NoSuchSlot = 7, "the destination slot does not exist; install a capability node there first";
    /// The untyped has no room for the request.
    OutOfMemory = 8, "not enough room in this untyped; use a larger one or free its children";
    /// The requested range is in use.
    Overlap = 9, "the range overlaps an existing object; choose a free offset";
    /// An address or offset is not aligned as the object requires.
    Misaligned = 10, "the offset is not a multiple of the object's size";
    /// The capability cannot be copied (untyped and mapping are unique).
    NotCopyable = 11, "this capability is unique; move it instead";
    /// The page-table entry is in use.
    AlreadyMapped = 12, "an entry is in use; unmap it first";
    /// The object is not mapped.
    NotMapped = 13, "it is not mapped; map it first";
    /// The object is already bound.
    AlreadyBound = 14, "it is bound already; unbind it first";
    /// The object is not bound.
    NotBound = 15, "nothing is bound here; bind it first";
    /// The deadline passed before the partner was ready.
    TimedOut = 16, "the deadline passed; try again with a later one";
    /// The wait ended because the object waited for was deleted or the thread was suspended.
    Aborted = 17, "the other side was deleted or the wait was cancelled; reconnect";
    /// Nobody was ready to receive or send a message, and the operation does not block.
    WouldBlock = 18, "nobody is waiting; use the blocking form or try later";
    /// The reply object holds no caller.
    NoCaller = 19, "no caller waits for this reply; receive a call first";
    /// The thread has no reply object bound, and the call named none.
    NoReplyObject = 20, "no reply object; bind one to the thread or name one in x11";
    /// The reply object already holds a caller.
    ReplyInUse = 21, "this reply object holds a caller; reply to it or use another";
    /// The message has more than 64 words or 4 capabilities.
    MessageTooLong = 22, "a message has at most 64 words and 4 capabilities; use a shared frame for more";
    /// A message with more than eight words or with capabilities needs an IPC buffer.
    NoIpcBuffer = 23, "the thread has no IPC buffer; configure one";
    /// The thread lacks what it needs to run.
    NotConfigured = 24, "the thread has no CSpace or no address space yet; configure it first";
    /// The memory is device memory, which cannot become this object.
    DeviceMemory = 25, "device memory can only become untyped memory or frames";
    /// The capability is not an exported capability.
    NotExported = 26, "it stands for no copies on other cores";
    /// The requested priority is above the ceiling of the authorising scheduling context.
    PriorityTooHigh = 27, "the priority exceeds the ceiling of the scheduling context that authorises it";
    /// The object is in use in a way that forbids this operation.
    Busy = 28, "the object is in use; end that use first";
    /// The interrupt number does not exist, or belongs to the kernel or to another core.
    InvalidInterrupt = 29, "no such interrupt, or the kernel uses it itself, or it is another core's";
    /// The thread is in a state that does not allow the operation.
    WrongState = 30, "the thread's state does not allow this; suspend or resume it first";
    /// This kernel was built without the feature to which the operation refers.
    Unsupported = 31, "this kernel was built without that; boot one that has it";
    /// The device tree names no such core.
    NoSuchCore = 32, "the machine has no such core; KernelMachine returns how many there are";
    /// The core runs already or is about to.
    CoreRunning = 33, "this core has been started already; start another";
    /// The firmware refused to start the core or to report its power state.
    CoreRefused = 34, "the firmware refused what was asked of this core; the others can go on without it";
    /// The capability to delete is exported, or its deletion would delete one.
    RemoteCopies = 35, "there are copies on other cores, which are being taken back now; try again, or have the monitor wait for it";
    /// The memory is lent to another core, or the object already has an exported capability.
    Lent = 36, "it is exported to another core; take it back first";
    /// The object belongs to another core.
    Borrowed = 37, "it belongs to another core; only that can send it on";
    /// The operation is partly done and has to be continued.
    Unfinished = 38, "a part of it is done; call again to go on";
    /// The requested slice, at the ceiling of the authorising scheduling context, is longer than that context's slice.
    SliceTooLong = 39, "the slice exceeds that of the scheduling context that authorises it; ask for a shorter one, or for a lower priority and ceiling";
    /// The endpoint to which the message was sent is served by a thread. Such an endpoint accepts only calls, because
    /// nobody would pay for the time spent on a message without a caller.
    CallsOnly = 40, "a thread serves this endpoint, and whoever waits for it pays for what it does; call instead of sending";
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for Error {}
