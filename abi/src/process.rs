//! What a new process is told: a few pages, wherever they lie.
//!
//! `x0` holds their address at the first instruction. All offsets are from the start of the page block.

/// First word of [`Info`]: "TENCHPRO" in little-endian order.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TENCHPRO");
/// Pages for the information block, arguments and environment included.
pub const INFO_PAGES: usize = 4;
/// Priority and ceiling of a process for which its parent says none.
pub const DEFAULT_PRIORITY: u8 = 100;
/// Segments described in [`Info`].
pub const MAX_SEGMENTS: usize = 16;

/// The note (`PT_NOTE`) in a program's file that says what the program does for itself. A program without it does
/// nothing for itself.
pub mod note {
    /// The note's name, with the zero byte at its end.
    pub const NAME: &[u8] = b"Tench\0";
    /// The note's type. Its contents are a word of 32 bits: flags.
    pub const KIND: u32 = 1;
    /// A flag: the program makes its main thread's stack itself, of memory that comes on demand. It is started on a
    /// small one ([`FIRST_STACK_SIZE`](crate::layout::address::FIRST_STACK_SIZE)), and can keep that for its page
    /// faults.
    pub const OWN_STACK: u32 = 1;
}

/// A mapped part of the program, for fault reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// [`MapFlags`](crate::memory::MapFlags).
    pub flags: u64,
}

/// Start of the information block. Arguments and environment follow as zero-terminated strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Info {
    /// [`MAGIC`].
    pub magic: u64,
    /// Process identifier.
    pub pid: u64,
    /// Number of arguments, the program's name included.
    pub argument_count: u64,
    /// Offset of the first argument.
    pub arguments_offset: u64,
    /// Number of environment entries (`NAME=value`).
    pub environment_count: u64,
    /// Offset of the first environment entry.
    pub environment_offset: u64,
    /// Capabilities given in the slots from `EXTRA` on.
    pub extra_count: u64,
    /// Ticks of the system counter per second.
    pub counter_frequency: u64,
    /// Lowest address of the stack on which the process begins; the page below is the guard, and all of it is mapped.
    pub stack_bottom: u64,
    /// One past the highest address of the stack on which the process begins.
    pub stack_top: u64,
    /// Bytes of the stack that the program makes for its main thread itself ([`note::OWN_STACK`]); 0: it stays on the
    /// one on which it begins.
    pub own_stack: u64,
    /// The message area of the main thread, readable and writable.
    pub message_area: u64,
    /// First address that libraries may use as they like, for the heap, thread stacks, mapped frames; the range ends at
    /// [`DYNAMIC_END`](crate::layout::address::DYNAMIC_END).
    pub dynamic: u64,
    /// First address for the books of that range, [`BOOKS_SIZE`](crate::layout::address::BOOKS_SIZE) bytes, a multiple
    /// of that; nothing else lies in what the same table of level 1 shows.
    pub books: u64,
    /// By how many bytes the program lies above where it was linked; 0 for one with fixed addresses. An address less
    /// this is what the program's file has a name for.
    pub bias: u64,
    /// Random numbers for this process alone.
    pub random: [u64; 4],
    /// Segments in use.
    pub segment_count: u64,
    /// The program's segments.
    pub segments: [Segment; MAX_SEGMENTS],
}
