//! Information block of a new process: a few pages at an arbitrary address.
//!
//! `x0` holds their address at the first instruction. All offsets are from the start of the block.

/// First word of [`Info`]: "TENCHPRO" in little-endian order.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TENCHPRO");
/// Number of pages of the information block, arguments and environment included.
pub const INFO_PAGES: usize = 4;
/// Priority and ceiling of a process whose parent sets none.
pub const DEFAULT_PRIORITY: u8 = 100;
/// Maximum number of segments described in [`Info`].
pub const MAX_SEGMENTS: usize = 16;

/// The note (`PT_NOTE`) in a program's file that says which parts of its set-up the program does itself. A program
/// without it does none.
pub mod note {
    /// The note's name, with the terminating zero byte.
    pub const NAME: &[u8] = b"Tench\0";
    /// The note's type. Its contents are a 32-bit word of flags.
    pub const KIND: u32 = 1;
    /// Flag: the program makes its main thread's stack itself, of memory that comes on demand. It starts on a small
    /// stack ([`FIRST_STACK_SIZE`](crate::layout::address::FIRST_STACK_SIZE)), which it can keep for handling page
    /// faults.
    pub const OWN_STACK: u32 = 1;
}

/// A mapped part of the program, for fault reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// First address.
    pub address: u64,
    /// Size in bytes.
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
    /// Offset of the first argument in bytes.
    pub arguments_offset: u64,
    /// Number of environment entries (`NAME=value`).
    pub environment_count: u64,
    /// Offset of the first environment entry in bytes.
    pub environment_offset: u64,
    /// Number of capabilities passed in the slots from [`EXTRA`](crate::layout::slot::EXTRA) on.
    pub extra_count: u64,
    /// Ticks of the system counter per second.
    pub counter_frequency: u64,
    /// Lowest address of the initial stack. All of it is mapped; the page below is the guard.
    pub stack_bottom: u64,
    /// One past the highest address of the initial stack.
    pub stack_top: u64,
    /// Size in bytes of the stack that the program makes for its main thread itself ([`note::OWN_STACK`]), or 0 if the
    /// main thread stays on the initial stack.
    pub own_stack: u64,
    /// Address of the main thread's IPC buffer, readable and writable.
    pub ipc_buffer: u64,
    /// First address that libraries may use freely for the heap, thread stacks and mapped frames; the range ends at
    /// [`DYNAMIC_END`](crate::layout::address::DYNAMIC_END).
    pub dynamic: u64,
    /// First address of that range's metadata, which takes [`METADATA_SIZE`](crate::layout::address::METADATA_SIZE)
    /// bytes; a multiple of that size. The page table of level 1 that maps it maps nothing else.
    pub metadata: u64,
    /// Distance in bytes from the address at which the program was linked to the one at which it lies; 0 for a program
    /// with fixed addresses. Subtracting it from an address gives the address in the program's file.
    pub bias: u64,
    /// Random numbers of this process alone.
    pub random: [u64; 4],
    /// Number of segments in use.
    pub segment_count: u64,
    /// The program's segments.
    pub segments: [Segment; MAX_SEGMENTS],
}
