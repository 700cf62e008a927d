//! Messages: the tag that describes a message, and the IPC buffer for what does not fit into registers.

/// Number of message words that travel in registers (`x2`..`x9`).
pub const REGISTER_WORDS: usize = 8;
/// Maximum number of words in a message.
pub const MAX_WORDS: usize = 64;
/// Maximum number of capabilities in a message.
pub const MAX_CAPS: usize = 4;

/// Description of a message; travels in `x1`.
///
/// ```text
///  63                     16 15 14 13 12 11     8 7            0
/// ┌─────────────────────────┬──┬──┬──┬──┬────────┬──────────────┐
/// │ label (48 bits)         │N │K │R │D │ caps   │ length       │
/// └─────────────────────────┴──┴──┴──┴──┴────────┴──────────────┘
/// ```
/// `length`: words, 0 to 64. `caps`: capabilities, 0 to 4. `D`: `x12` holds a deadline. `R`: `x11` names a reply
/// object. `K`: the kernel wrote this message (a fault). `N`: this is the word of a notification, not a message; the
/// word is in the badge. A sender cannot set `K` and `N`; a receiver never sees `D` and `R`. In the tag of a receive,
/// bit 14 means that the deadline is an alarm (`A`). The low 16 bits of the tag of a message that travels in registers
/// alone are its length, so the fast path tests them with one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
#[repr(transparent)]
pub struct Tag(pub u64);

impl Tag {
    /// `D`: `x12` holds a deadline in ticks of the system counter.
    pub const DEADLINE: u64 = 1 << 12;
    /// `R`: `x11` holds the address of the reply object to use.
    pub const REPLY: u64 = 1 << 13;
    /// `K`: the kernel wrote the message.
    pub const KERNEL: u64 = 1 << 14;
    /// `A`, of a receive with `D`: the deadline is an alarm, which does more than end the wait. If a caller comes
    /// first, the alarm stays set; when it passes, the thread's own priority counts until it receives again.
    pub const ALARM: u64 = 1 << 14;
    /// `N`: a notification was received; its word is in the badge register.
    pub const NOTIFICATION: u64 = 1 << 15;
    /// Number of bits of a label.
    pub const LABEL_BITS: u32 = 48;

    /// Returns a tag for `length` words and no capabilities. `label` is cut to 48 bits, `length` to 8.
    pub const fn new(label: u64, length: usize) -> Tag {
        Tag(label << 16 | (length as u64 & 0xff))
    }

    /// Returns this tag with `count` capabilities.
    pub const fn with_caps(self, count: usize) -> Tag {
        Tag(self.0 & !0xf00 | (count as u64 & 0xf) << 8)
    }

    /// Returns this tag with these flag bits set.
    pub const fn with(self, flags: u64) -> Tag {
        Tag(self.0 | flags)
    }

    /// Returns the label: the user's own number for the subject of the message.
    pub const fn label(self) -> u64 {
        self.0 >> 16
    }

    /// Returns the number of words in the message.
    pub const fn length(self) -> usize {
        (self.0 & 0xff) as usize
    }

    /// Returns the number of capabilities in the message. In a received message, that is how many arrived.
    pub const fn caps(self) -> usize {
        (self.0 >> 8 & 0xf) as usize
    }

    /// Returns whether the whole message is in registers: at most eight words, and no capabilities.
    #[inline(always)]
    pub const fn is_in_registers(self) -> bool {
        (self.0 & 0xfff) as usize <= REGISTER_WORDS
    }

    /// Returns whether the kernel wrote this message (a fault or a foreign system call).
    pub const fn is_kernel(self) -> bool {
        self.0 & Self::KERNEL != 0
    }

    /// Returns whether a notification was received instead of a message.
    pub const fn is_notification(self) -> bool {
        self.0 & Self::NOTIFICATION != 0
    }
}

/// Size and alignment of an IPC buffer in bytes. Four share a page.
pub const IPC_BUFFER_SIZE: usize = 1024;

/// A thread's IPC buffer, which the thread and its kernel both access.
///
/// The kernel accesses it only while it carries out a call of the thread itself, delivers a message to it, or makes an
/// upcall, and trusts nothing that it reads there.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(1024))]
pub struct IpcBuffer {
    /// Message words. Words 0..8 travel in registers and are neither read nor written here.
    pub words: [u64; MAX_WORDS],
    /// Sender: capabilities to transfer. Each is a capability address, with [`MOVE`](Self::MOVE) set to move instead of
    /// copy.
    pub send_caps: [u32; MAX_CAPS],
    /// Receiver: empty slots to receive into, in order; 0 for none.
    pub receive_slots: [u32; MAX_CAPS],
    /// Upcall: description of the fault. See [`crate::fault`].
    pub fault: crate::fault::Report,
    /// Upcall: not zero while an upcall runs; a further fault goes to the endpoint. The kernel sets it on an upcall and
    /// clears it on the return; the program may also set and clear it itself.
    pub upcall_running: u64,
    /// Upcall and register transfer: a thread's registers.
    pub registers: crate::fault::Registers,
    /// Unused.
    pub reserved: [u64; 20],
}

impl IpcBuffer {
    /// Flag in [`send_caps`](Self::send_caps): move the capability instead of copying it.
    pub const MOVE: u32 = 1 << 31;
}

const _: () = assert!(core::mem::size_of::<IpcBuffer>() == IPC_BUFFER_SIZE);
