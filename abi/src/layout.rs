//! Addresses and slots that everybody has to know.

/// `place` of `UntypedRetype`: put the objects at the watermark, aligned.
pub const WATERMARK: u64 = u64::MAX;

/// Bind argument of `ThreadBind`: unbind.
pub const UNBIND: u64 = u64::MAX;

/// Well-known slots of every process, in its second-level node 0.
pub mod slot {
    use crate::CapAddress;

    /// The root node of the own capability space.
    pub const CSPACE: CapAddress = CapAddress(1);
    /// The own level-0 page table.
    pub const VSPACE: CapAddress = CapAddress(2);
    /// The main thread.
    pub const THREAD: CapAddress = CapAddress(3);
    /// The main thread's scheduling context.
    pub const SCHEDULING: CapAddress = CapAddress(4);
    /// The main thread's reply object.
    pub const REPLY: CapAddress = CapAddress(5);
    /// The frame that holds the process information page.
    pub const PROCESS_INFO: CapAddress = CapAddress(6);
    /// Endpoint of the process server, badged for this process.
    pub const PROCS: CapAddress = CapAddress(7);
    /// Endpoint of the memory server, badged for this process.
    pub const MEM: CapAddress = CapAddress(8);
    /// Endpoint of the name server, badged for this process.
    pub const NAMES: CapAddress = CapAddress(9);
    /// Endpoint of the standard input and output, badged for this process.
    pub const CONSOLE: CapAddress = CapAddress(10);
    /// The main thread's message-area frame.
    pub const MESSAGE_FRAME: CapAddress = CapAddress(11);
    /// The kernel (`init`, and programs to which the system description gives it).
    pub const KERNEL: CapAddress = CapAddress(12);
    /// Interrupt control (likewise).
    pub const INTERRUPT_CONTROL: CapAddress = CapAddress(13);
    /// The server's own endpoint, for a server (made by `init`).
    pub const SERVICE: CapAddress = CapAddress(14);
    /// The second-level node 0 itself.
    pub const NODE0: CapAddress = CapAddress(15);
    /// First of the slots for capabilities that the parent gave along ([`EXTRA_COUNT`]).
    pub const EXTRA: CapAddress = CapAddress(16);
    /// Slots from [`EXTRA`] on.
    pub const EXTRA_COUNT: u32 = 27;
    /// Of a server that is started again when it ends: memory that stays, a frame.
    pub const KEPT_MEMORY: CapAddress = CapAddress(43);
    /// The same for capabilities: the first of at most `KEPT_NODES` nodes of 256 slots.
    pub const KEPT_CAPABILITIES: CapAddress = CapAddress(44);
    /// How many.
    pub const KEPT_NODES: u32 = 4;
    /// Endpoint of the file server, badged for this process.
    pub const FILES: CapAddress = CapAddress(48);
    /// The byte stream from which the process reads its input; empty: it reads from [`CONSOLE`].
    pub const STDIN: CapAddress = CapAddress(49);
    /// The byte stream to which its output goes; empty: to [`CONSOLE`].
    pub const STDOUT: CapAddress = CapAddress(50);
    /// The byte stream to which its error messages go; empty: to [`CONSOLE`].
    pub const STDERR: CapAddress = CapAddress(51);
    /// First slot that the program may use as it likes.
    pub const FIRST_FREE: CapAddress = CapAddress(52);
    /// `init`: first untyped that the kernel handed over; [`crate::boot::BootInfo`] lists them.
    pub const BOOT_UNTYPED: CapAddress = CapAddress(64);
    /// `init`: first of the capabilities to the tables, frames and mappings that it was started with, in no order that
    /// matters. They keep the memory from being retyped.
    pub const BOOT_OBJECTS: CapAddress = CapAddress(BOOT_UNTYPED.0 + crate::boot::MAX_UNTYPED as u32);
}

/// Where things lie in an address space.
///
/// The addresses above the first page, up to [`DYNAMIC`](address::DYNAMIC), are the program's. Where the rest lies is
/// chosen at random for each process, which is told ([`crate::process::Info`]); only `init`, which the kernel starts,
/// finds things at the addresses here.
pub mod address {
    /// `init`: its boot information ([`crate::boot::BootInfo`]), read-only.
    pub const PROCESS_INFO: u64 = 0x7fff_0000_0000;
    /// `init`: its message area.
    pub const MESSAGE_AREAS: u64 = 0x7fff_0010_0000;
    /// `init`: top of its stack; a guard page lies below the stack.
    pub const STACK_TOP: u64 = 0x7ffe_0000_0000;
    /// Bytes of a main thread's stack that is mapped whole, unless something else is said.
    pub const STACK_SIZE: u64 = 64 * 1024;
    /// Bytes of the stack on which a program begins that makes the main thread's itself: enough to find memory for
    /// another, and to handle page faults, also in a program that was compiled without optimisation.
    pub const FIRST_STACK_SIZE: u64 = 32 * 1024;
    /// `init`: where it maps the boot archive. The process server has it somewhere in the 8 TiB from here on.
    pub const BOOT_ARCHIVE: u64 = 0x6000_0000_0000;
    /// Where the range for what libraries allocate begins at the lowest, and where programs end at the highest.
    pub const DYNAMIC: u64 = 0x1000_0000_0000;
    /// Where that range ends.
    pub const DYNAMIC_END: u64 = 0x5000_0000_0000;
    /// `init`: where the books of that range lie.
    pub const BOOKS: u64 = DYNAMIC_END;
    /// Bytes of addresses for them.
    pub const BOOKS_SIZE: u64 = 1 << 30;
    /// Where `init` lies, and the lowest address of a program that can be moved.
    pub const PROGRAM: u64 = 0x20_0000;
}
