//! Values of flags and other constants on AArch64, under Linux's names.
//!
//! Where the target's build has Linux's own numbers (`linux-raw-sys`), the personality compares them with these.

#![allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]

/// Stands for the working directory where a directory's descriptor is expected.
pub const AT_FDCWD: i32 = -100;

pub mod open {
    //! Flags of `openat`.
    pub const ACCESS: u32 = 0o3;
    pub const RDONLY: u32 = 0;
    pub const WRONLY: u32 = 0o1;
    pub const RDWR: u32 = 0o2;
    pub const CREAT: u32 = 0o100;
    pub const EXCL: u32 = 0o200;
    pub const NOCTTY: u32 = 0o400;
    pub const TRUNC: u32 = 0o1000;
    pub const APPEND: u32 = 0o2000;
    pub const NONBLOCK: u32 = 0o4000;
    pub const DSYNC: u32 = 0o10000;
    pub const ASYNC: u32 = 0o20000;
    pub const DIRECTORY: u32 = 0o40000;
    pub const NOFOLLOW: u32 = 0o100000;
    pub const DIRECT: u32 = 0o200000;
    pub const LARGEFILE: u32 = 0o400000;
    pub const NOATIME: u32 = 0o1000000;
    pub const CLOEXEC: u32 = 0o2000000;
    pub const SYNC: u32 = 0o4010000;
    pub const PATH: u32 = 0o10000000;
    pub const TMPFILE: u32 = 0o20040000;
}

pub mod at {
    //! Flags of calls that take a directory's descriptor and a path.
    pub const SYMLINK_NOFOLLOW: u32 = 0x100;
    pub const REMOVEDIR: u32 = 0x200;
    pub const SYMLINK_FOLLOW: u32 = 0x400;
    pub const NO_AUTOMOUNT: u32 = 0x800;
    pub const EMPTY_PATH: u32 = 0x1000;
}

pub mod prot {
    //! Protection of memory.
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const EXEC: u32 = 4;
    pub const GROWSDOWN: u32 = 0x0100_0000;
}

pub mod map {
    //! Flags of `mmap`.
    pub const TYPE: u32 = 0xf;
    pub const SHARED: u32 = 1;
    pub const PRIVATE: u32 = 2;
    pub const SHARED_VALIDATE: u32 = 3;
    pub const FIXED: u32 = 0x10;
    pub const ANONYMOUS: u32 = 0x20;
    pub const GROWSDOWN: u32 = 0x100;
    pub const DENYWRITE: u32 = 0x800;
    pub const EXECUTABLE: u32 = 0x1000;
    pub const LOCKED: u32 = 0x2000;
    pub const NORESERVE: u32 = 0x4000;
    pub const POPULATE: u32 = 0x8000;
    pub const NONBLOCK: u32 = 0x10000;
    pub const STACK: u32 = 0x20000;
    pub const HUGETLB: u32 = 0x40000;
    pub const FIXED_NOREPLACE: u32 = 0x10_0000;
}

pub mod clone {
    //! Flags of `clone`.
    pub const VM: u64 = 0x100;
    pub const FS: u64 = 0x200;
    pub const FILES: u64 = 0x400;
    pub const SIGHAND: u64 = 0x800;
    pub const PIDFD: u64 = 0x1000;
    pub const PTRACE: u64 = 0x2000;
    pub const VFORK: u64 = 0x4000;
    pub const PARENT: u64 = 0x8000;
    pub const THREAD: u64 = 0x10000;
    pub const NEWNS: u64 = 0x20000;
    pub const SYSVSEM: u64 = 0x40000;
    pub const SETTLS: u64 = 0x80000;
    pub const PARENT_SETTID: u64 = 0x10_0000;
    pub const CHILD_CLEARTID: u64 = 0x20_0000;
    pub const DETACHED: u64 = 0x40_0000;
    pub const UNTRACED: u64 = 0x80_0000;
    pub const CHILD_SETTID: u64 = 0x100_0000;
}

pub mod wait {
    //! Options of `wait4` and `waitid`.
    pub const NOHANG: u32 = 1;
    pub const UNTRACED: u32 = 2;
    pub const EXITED: u32 = 4;
    pub const CONTINUED: u32 = 8;
    /// `WNOWAIT`: the news stay.
    pub const KEEP: u32 = 0x100_0000;
    pub const NOTHREAD: u32 = 0x2000_0000;
    pub const ALL: u32 = 0x4000_0000;
    pub const CLONE: u32 = 0x8000_0000;
}

pub mod trace {
    //! Requests of `ptrace`, and what belongs to them.
    pub const TRACEME: u32 = 0;
    pub const PEEKTEXT: u32 = 1;
    pub const PEEKDATA: u32 = 2;
    pub const POKETEXT: u32 = 4;
    pub const POKEDATA: u32 = 5;
    pub const CONT: u32 = 7;
    pub const KILL: u32 = 8;
    pub const SINGLESTEP: u32 = 9;
    pub const ATTACH: u32 = 16;
    pub const DETACH: u32 = 17;
    pub const SYSCALL: u32 = 24;
    pub const SETOPTIONS: u32 = 0x4200;
    pub const GETEVENTMSG: u32 = 0x4201;
    pub const GETSIGINFO: u32 = 0x4202;
    pub const SETSIGINFO: u32 = 0x4203;
    pub const GETREGSET: u32 = 0x4204;
    pub const SETREGSET: u32 = 0x4205;
    pub const SEIZE: u32 = 0x4206;
    pub const INTERRUPT: u32 = 0x4207;
    pub const LISTEN: u32 = 0x4208;
    pub const GETSIGMASK: u32 = 0x420a;
    pub const SETSIGMASK: u32 = 0x420b;
    pub const GET_SYSCALL_INFO: u32 = 0x420e;

    pub mod event {
        //! Events.
        pub const FORK: u32 = 1;
        pub const VFORK: u32 = 2;
        pub const CLONE: u32 = 3;
        pub const EXEC: u32 = 4;
        pub const VFORK_DONE: u32 = 5;
        pub const EXIT: u32 = 6;
        pub const STOP: u32 = 128;
    }

    pub mod option {
        //! Options: a bit for each event, and others.
        pub const MARK_CALLS: u32 = 1;
        pub const KILL_AT_END: u32 = 1 << 20;
        pub const ALL: u32 = 0x3000ff;
    }

    pub mod regset {
        //! Sets of registers.
        pub const GENERAL: u32 = 1;
        pub const FLOAT: u32 = 2;
        pub const THREAD_POINTER: u32 = 0x401;
        /// `NT_ARM_HW_BREAK`
        pub const BREAKPOINTS: u32 = 0x402;
        /// `NT_ARM_HW_WATCH`
        pub const WATCHPOINTS: u32 = 0x403;
        pub const CALL: u32 = 0x404;
    }
}

pub mod file_type {
    //! Types of files in the upper bits of a mode.
    pub const MASK: u32 = 0o170000;
    pub const SOCKET: u32 = 0o140000;
    pub const LINK: u32 = 0o120000;
    pub const REGULAR: u32 = 0o100000;
    pub const BLOCK: u32 = 0o60000;
    pub const DIRECTORY: u32 = 0o40000;
    pub const CHARACTER: u32 = 0o20000;
    pub const FIFO: u32 = 0o10000;
}

pub mod schedule {
    //! Ways to schedule threads.
    pub const OTHER: u32 = 0;
    pub const FIFO: u32 = 1;
    pub const RR: u32 = 2;
    pub const BATCH: u32 = 3;
    pub const IDLE: u32 = 5;
    pub const RESET_ON_FORK: u32 = 0x4000_0000;
    /// The highest priority.
    pub const MAX: u32 = 99;
}

pub mod io_priority {
    //! Priorities of input and output: a class, and a number within it.
    pub const NONE: u32 = 0;
    pub const REAL_TIME: u32 = 1;
    pub const BEST_EFFORT: u32 = 2;
    pub const IDLE: u32 = 3;
    /// Number of bits below the class, and bits of the class.
    pub const SHIFT: u32 = 13;
    pub const CLASSES: u32 = 7;
    /// How many numbers the first two classes have.
    pub const LEVELS: u32 = 8;
}

pub mod fallocate {
    //! Modes of `fallocate`.
    pub const KEEP_SIZE: u32 = 1;
    pub const PUNCH_HOLE: u32 = 2;
}

pub mod memfd {
    //! Flags of `memfd_create`.
    pub const CLOEXEC: u32 = 1;
    pub const ALLOW_SEALING: u32 = 2;
}

pub mod seal {
    //! Seals of a file, which say what may not be done to it any more: arguments of `F_ADD_SEALS`.
    /// No seal is added.
    pub const SEAL: u32 = 1;
    /// The file does not become shorter.
    pub const SHRINK: u32 = 2;
    /// The file does not become longer.
    pub const GROW: u32 = 4;
    /// Nobody writes.
    pub const WRITE: u32 = 8;
    /// Nobody writes but by what is mapped already.
    pub const FUTURE_WRITE: u32 = 16;
    pub const ALL: u32 = SEAL | SHRINK | GROW | WRITE | FUTURE_WRITE;
}

pub mod epoll {
    //! Operations of `epoll_ctl`, and flags beside its events.
    pub const ADD: u32 = 1;
    pub const DEL: u32 = 2;
    pub const MOD: u32 = 3;
    /// `EPOLLIN` and `EPOLLRDNORM`.
    pub const READABLE: u32 = 0x41;
    /// Events that are told whether or not they are wanted: `EPOLLERR`, `EPOLLHUP`.
    pub const ALWAYS: u32 = 0x18;
    pub const EXCLUSIVE: u32 = 1 << 28;
    pub const WAKEUP: u32 = 1 << 29;
    pub const ONESHOT: u32 = 1 << 30;
    /// `EPOLLET`: each event is told once.
    pub const EDGE: u32 = 1 << 31;
    pub const FLAGS: u32 = EXCLUSIVE | WAKEUP | ONESHOT | EDGE;
}

pub mod watch {
    //! Events of watched files, and flags of a watch.
    pub const ACCESS: u32 = 1;
    pub const MODIFY: u32 = 2;
    pub const ATTRIB: u32 = 4;
    pub const CLOSE_WRITE: u32 = 8;
    pub const CLOSE_NOWRITE: u32 = 0x10;
    pub const OPEN: u32 = 0x20;
    pub const MOVED_FROM: u32 = 0x40;
    pub const MOVED_TO: u32 = 0x80;
    pub const CREATE: u32 = 0x100;
    pub const DELETE: u32 = 0x200;
    pub const DELETE_SELF: u32 = 0x400;
    pub const MOVE_SELF: u32 = 0x800;
    /// All events that can be wanted.
    pub const ALL: u32 = 0xfff;
    pub const UNMOUNT: u32 = 0x2000;
    pub const Q_OVERFLOW: u32 = 0x4000;
    pub const IGNORED: u32 = 0x8000;
    pub const ONLYDIR: u32 = 1 << 24;
    pub const DONT_FOLLOW: u32 = 1 << 25;
    pub const EXCL_UNLINK: u32 = 1 << 26;
    pub const MASK_CREATE: u32 = 1 << 28;
    pub const MASK_ADD: u32 = 1 << 29;
    pub const ISDIR: u32 = 1 << 30;
    pub const ONESHOT: u32 = 1 << 31;
    /// All bits of a mask that exist.
    pub const KNOWN: u32 = ALL
        | UNMOUNT
        | Q_OVERFLOW
        | IGNORED
        | ONLYDIR
        | DONT_FOLLOW
        | EXCL_UNLINK
        | MASK_CREATE
        | MASK_ADD
        | ISDIR
        | ONESHOT;
}

pub mod lock {
    //! Locks of files: commands of `fcntl`, the types in their records, and operations of `flock`.
    pub const GETLK: u32 = 5;
    pub const SETLK: u32 = 6;
    pub const SETLKW: u32 = 7;
    pub const OFD_GETLK: u32 = 36;
    pub const OFD_SETLK: u32 = 37;
    pub const OFD_SETLKW: u32 = 38;
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const UNLOCK: u16 = 2;
    pub const SHARED: u32 = 1;
    pub const EXCLUSIVE: u32 = 2;
    pub const NONBLOCK: u32 = 4;
    pub const REMOVE: u32 = 8;
    pub const MANDATORY: u32 = 32;
}

pub mod futex {
    //! Operations of `futex`, and their flags.
    pub const WAIT: u32 = 0;
    pub const WAKE: u32 = 1;
    pub const REQUEUE: u32 = 3;
    pub const CMP_REQUEUE: u32 = 4;
    pub const WAKE_OP: u32 = 5;
    pub const LOCK_PI: u32 = 6;
    pub const UNLOCK_PI: u32 = 7;
    pub const TRYLOCK_PI: u32 = 8;
    pub const WAIT_BITSET: u32 = 9;
    pub const WAKE_BITSET: u32 = 10;
    pub const WAIT_REQUEUE_PI: u32 = 11;
    pub const CMP_REQUEUE_PI: u32 = 12;
    pub const LOCK_PI_2: u32 = 13;
    pub const PRIVATE: u32 = 0x80;
    pub const CLOCK_REALTIME: u32 = 0x100;
    /// Both flags.
    pub const FLAGS: u32 = PRIVATE | CLOCK_REALTIME;
    /// Bits of a lock's word: its owner's number.
    pub const OWNER: u32 = 0x3fff_ffff;
    /// The owner has ended without having released the lock.
    pub const OWNER_DIED: u32 = 0x4000_0000;
    /// Somebody waits for the lock.
    pub const WAITERS: u32 = 0x8000_0000;
}

pub mod capability {
    //! Capabilities, each as the set with nothing but it.
    pub const CHOWN: u64 = 1 << 0;
    pub const DAC_OVERRIDE: u64 = 1 << 1;
    pub const DAC_READ_SEARCH: u64 = 1 << 2;
    pub const FOWNER: u64 = 1 << 3;
    pub const FSETID: u64 = 1 << 4;
    pub const KILL: u64 = 1 << 5;
    pub const SETGID: u64 = 1 << 6;
    pub const SETUID: u64 = 1 << 7;
    pub const SETPCAP: u64 = 1 << 8;
    pub const LINUX_IMMUTABLE: u64 = 1 << 9;
    pub const NET_BIND_SERVICE: u64 = 1 << 10;
    pub const IPC_OWNER: u64 = 1 << 15;
    pub const SYS_CHROOT: u64 = 1 << 18;
    pub const SYS_PTRACE: u64 = 1 << 19;
    pub const SYS_ADMIN: u64 = 1 << 21;
    pub const SYS_BOOT: u64 = 1 << 22;
    pub const SYS_NICE: u64 = 1 << 23;
    pub const SYS_RESOURCE: u64 = 1 << 24;
    pub const SYS_TIME: u64 = 1 << 25;
    pub const SYSLOG: u64 = 1 << 34;
    pub const MKNOD: u64 = 1 << 27;
    pub const MAC_OVERRIDE: u64 = 1 << 32;
    /// All capabilities of Linux 6.1.
    pub const ALL: u64 = (1 << 41) - 1;
    /// Those that belong to the user as whom files are accessed.
    pub const OF_FILES: u64 =
        CHOWN | DAC_OVERRIDE | DAC_READ_SEARCH | FOWNER | FSETID | LINUX_IMMUTABLE | MKNOD | MAC_OVERRIDE;
}

pub mod permission {
    //! Bits of a mode beside the type, and what is wanted of a file.
    pub const SET_USER: u32 = 0o4000;
    pub const SET_GROUP: u32 = 0o2000;
    pub const STICKY: u32 = 0o1000;
    pub const GROUP_EXECUTE: u32 = 0o10;
    pub const OTHERS_WRITE: u32 = 0o2;
    pub const READ: u32 = 4;
    pub const WRITE: u32 = 2;
    pub const EXECUTE: u32 = 1;
}
