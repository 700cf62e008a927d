//! Numbers and records of System V's shared memory, semaphores and message queues.

#![allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]

/// The key of objects that nobody finds by a key.
pub const PRIVATE: i32 = 0;
pub const CREAT: u32 = 0o1000;
pub const EXCL: u32 = 0o2000;
pub const NOWAIT: u32 = 0o4000;

pub mod command {
    //! Commands of `shmctl`, `semctl` and `msgctl`.
    pub const REMOVE: u32 = 0;
    pub const SET: u32 = 1;
    pub const STAT: u32 = 2;
    pub const INFO: u32 = 3;

    pub const SHM_LOCK: u32 = 11;
    pub const SHM_UNLOCK: u32 = 12;
    pub const SHM_STAT: u32 = 13;
    pub const SHM_INFO: u32 = 14;
    pub const SHM_STAT_ANY: u32 = 15;

    pub const GETPID: u32 = 11;
    pub const GETVAL: u32 = 12;
    pub const GETALL: u32 = 13;
    pub const GETNCNT: u32 = 14;
    pub const GETZCNT: u32 = 15;
    pub const SETVAL: u32 = 16;
    pub const SETALL: u32 = 17;
    pub const SEM_STAT: u32 = 18;
    pub const SEM_INFO: u32 = 19;
    pub const SEM_STAT_ANY: u32 = 20;

    pub const MSG_STAT: u32 = 11;
    pub const MSG_INFO: u32 = 12;
    pub const MSG_STAT_ANY: u32 = 13;
}

pub mod shm {
    //! Flags of shared memory.
    pub const HUGETLB: u32 = 0o4000;
    /// Where the size of huge pages is: its logarithm, or 0 for the usual one.
    pub const HUGE_SHIFT: u32 = 26;
    pub const HUGE_MASK: u32 = 0x3f;
    pub const RDONLY: u32 = 0o10000;
    pub const RND: u32 = 0o20000;
    pub const REMAP: u32 = 0o40000;
    pub const EXEC: u32 = 0o100_000;
    /// In the mode: the memory ends when nobody has it attached any more.
    pub const DEST: u32 = 0o1000;
    /// In the mode.
    pub const LOCKED: u32 = 0o2000;
}

pub mod sem {
    //! Flags of an operation.
    pub const UNDO: u32 = 0o10000;
}

pub mod msg {
    //! Flags of `msgrcv`.
    pub const NOERROR: u32 = 0o10000;
    pub const EXCEPT: u32 = 0o20000;
    pub const COPY: u32 = 0o40000;
}

pub mod ipc64_perm {
    pub const KEY: usize = 0;
    pub const USER: usize = 4;
    pub const GROUP: usize = 8;
    pub const MAKER_USER: usize = 12;
    pub const MAKER_GROUP: usize = 16;
    pub const MODE: usize = 20;
    pub const SEQUENCE: usize = 24;
    pub const SIZE: usize = 48;
}

pub mod shmid64_ds {
    pub const SIZE_OF_SEGMENT: usize = 48;
    pub const ATTACHED: usize = 56;
    pub const DETACHED: usize = 64;
    pub const CHANGED: usize = 72;
    pub const MAKER: usize = 80;
    pub const LAST: usize = 84;
    pub const ATTACHMENTS: usize = 88;
    pub const SIZE: usize = 112;
}

pub mod semid64_ds {
    pub const OPERATED: usize = 48;
    pub const CHANGED: usize = 56;
    pub const COUNT: usize = 64;
    pub const SIZE: usize = 88;
}

pub mod msqid64_ds {
    pub const SENT: usize = 48;
    pub const RECEIVED: usize = 56;
    pub const CHANGED: usize = 64;
    pub const BYTES: usize = 72;
    pub const COUNT: usize = 80;
    pub const MOST_BYTES: usize = 88;
    pub const SENDER: usize = 96;
    pub const RECEIVER: usize = 100;
    pub const SIZE: usize = 120;
}

pub mod shminfo64 {
    pub const MOST_BYTES: usize = 0;
    pub const LEAST_BYTES: usize = 8;
    pub const MOST: usize = 16;
    pub const MOST_ATTACHED: usize = 24;
    pub const MOST_PAGES: usize = 32;
    pub const SIZE: usize = 72;
}

pub mod shm_info {
    pub const COUNT: usize = 0;
    pub const PAGES: usize = 8;
    pub const RESIDENT: usize = 16;
    pub const SIZE: usize = 48;
}
