//! Well-known addresses and slots.

/// `placement` argument of `UntypedRetype`: puts the objects at the watermark, aligned.
pub const WATERMARK: u64 = u64::MAX;

/// Argument of `ThreadBind`: unbinds.
pub const UNBIND: u64 = u64::MAX;

/// Well-known slots of every process, in its second-level node 0.
pub mod slot {
    use crate::CapAddress;

    /// The root node of the process's own CSpace.
    pub const CSPACE: CapAddress = CapAddress(1);
    /// The process's own level-0 page table.
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
    /// The frame with the main thread's IPC buffer.
    pub const IPC_BUFFER: CapAddress = CapAddress(11);
    /// The kernel (only `init`, and programs to which the system description gives it).
    pub const KERNEL: CapAddress = CapAddress(12);
    /// Interrupt control (only `init`, and programs to which the system description gives it).
    pub const INTERRUPT_CONTROL: CapAddress = CapAddress(13);
    /// A server's own endpoint (made by `init`).
    pub const SERVICE: CapAddress = CapAddress(14);
    /// The second-level node 0 itself.
    pub const NODE0: CapAddress = CapAddress(15);
    /// First of the slots for capabilities that the parent passed to the process ([`EXTRA_COUNT`]).
    pub const EXTRA: CapAddress = CapAddress(16);
    /// Number of slots from [`EXTRA`] on.
    pub const EXTRA_COUNT: u32 = 27;
    /// Persistent state of a server that is restarted when it ends: its memory, a frame.
    pub const KEPT_MEMORY: CapAddress = CapAddress(43);
    /// Persistent state of a server that is restarted when it ends: its capabilities, in at most [`KEPT_NODES`] nodes
    /// of 256 slots from here on.
    pub const KEPT_CAPABILITIES: CapAddress = CapAddress(44);
    /// Maximum number of nodes of persistent capabilities.
    pub const KEPT_NODES: u32 = 4;
    /// Endpoint of the file server, badged for this process.
    pub const FILES: CapAddress = CapAddress(48);
    /// The byte stream from which the process reads its input. If the slot is empty, it reads from [`CONSOLE`].
    pub const STDIN: CapAddress = CapAddress(49);
    /// The byte stream to which its output goes. If the slot is empty, it goes to [`CONSOLE`].
    pub const STDOUT: CapAddress = CapAddress(50);
    /// The byte stream to which its error messages go. If the slot is empty, they go to [`CONSOLE`].
    pub const STDERR: CapAddress = CapAddress(51);
    /// First slot that the program may use as it likes.
    pub const FIRST_FREE: CapAddress = CapAddress(52);
    /// First untyped that the kernel handed to `init`; [`crate::boot::BootInfo`] lists them.
    pub const BOOT_UNTYPED: CapAddress = CapAddress(64);
    /// First of `init`'s capabilities to the page tables, frames and mappings with which it was started, in arbitrary
    /// order. They keep that memory from being retyped.
    pub const BOOT_OBJECTS: CapAddress = CapAddress(BOOT_UNTYPED.0 + crate::boot::MAX_UNTYPED as u32);
}

/// Layout of an address space.
///
/// The addresses above the first page, up to [`DYNAMIC`](address::DYNAMIC), belong to the program. Everything else is
/// placed at random in each process, which finds the addresses in its [`crate::process::Info`]; only `init`, which the
/// kernel starts, finds things at the addresses given here.
pub mod address {
    /// Boot information of `init` ([`crate::boot::BootInfo`]), read-only.
    pub const PROCESS_INFO: u64 = 0x7fff_0000_0000;
    /// IPC buffer of `init`.
    pub const IPC_BUFFERS: u64 = 0x7fff_0010_0000;
    /// Top of `init`'s stack; a guard page lies below the stack.
    pub const STACK_TOP: u64 = 0x7ffe_0000_0000;
    /// Default size in bytes of a main thread's stack that is mapped as a whole.
    pub const STACK_SIZE: u64 = 64 * 1024;
    /// Size in bytes of the initial stack of a program that makes its main thread's stack itself: enough to find memory
    /// for that stack and to handle page faults, even in a program compiled without optimisation.
    pub const FIRST_STACK_SIZE: u64 = 32 * 1024;
    /// Address at which `init` maps the boot archive. The process server maps it somewhere in the 8 TiB from here on.
    pub const BOOT_ARCHIVE: u64 = 0x6000_0000_0000;
    /// Lowest possible start of the range in which libraries allocate, and highest possible end of a program.
    pub const DYNAMIC: u64 = 0x1000_0000_0000;
    /// End of the range in which libraries allocate.
    pub const DYNAMIC_END: u64 = 0x5000_0000_0000;
    /// Address of `init`'s metadata of that range.
    pub const METADATA: u64 = DYNAMIC_END;
    /// Size in bytes of the address range for that metadata.
    pub const METADATA_SIZE: u64 = 1 << 30;
    /// Address of `init`, and the lowest address of a relocatable program.
    pub const PROGRAM: u64 = 0x20_0000;
}
