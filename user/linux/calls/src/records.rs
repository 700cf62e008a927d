//! Layouts of records in memory to which arguments of calls point, on AArch64: offsets of fields in bytes, and sizes.

#![allow(missing_docs, reason = "these are Linux's names; its manual pages explain them")]

/// Returns the 8 bytes at an offset, as a number; 0 if the record ends before.
pub fn u64_at(record: &[u8], offset: usize) -> u64 {
    record.get(offset..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Returns the 4 bytes at an offset, as a number; 0 if the record ends before.
pub fn u32_at(record: &[u8], offset: usize) -> u32 {
    record.get(offset..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Returns the 2 bytes at an offset, as a number; 0 if the record ends before.
pub fn u16_at(record: &[u8], offset: usize) -> u16 {
    record.get(offset..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

pub mod stat {
    pub const DEVICE: usize = 0;
    pub const INODE: usize = 8;
    pub const MODE: usize = 16;
    pub const LINKS: usize = 20;
    pub const USER: usize = 24;
    pub const GROUP: usize = 28;
    pub const SPECIAL_DEVICE: usize = 32;
    pub const LENGTH: usize = 48;
    pub const BLOCK_SIZE: usize = 56;
    pub const BLOCKS: usize = 64;
    pub const ACCESSED: usize = 72;
    pub const MODIFIED: usize = 88;
    pub const CHANGED: usize = 104;
    pub const SIZE: usize = 128;
}

pub mod timespec {
    pub const SECONDS: usize = 0;
    pub const NANOSECONDS: usize = 8;
    pub const SIZE: usize = 16;
}

pub mod sigaction {
    pub const HANDLER: usize = 0;
    pub const FLAGS: usize = 8;
    pub const RESTORER: usize = 16;
    pub const MASK: usize = 24;
    pub const SIZE: usize = 32;
}

pub mod siginfo {
    /// Bytes that have a meaning when a child has news.
    pub const USED: usize = 28;
}

pub mod msghdr {
    pub const NAME: usize = 0;
    pub const NAME_LENGTH: usize = 8;
    pub const VECTORS: usize = 16;
    pub const VECTOR_COUNT: usize = 24;
    pub const CONTROL: usize = 32;
    pub const CONTROL_LENGTH: usize = 40;
    pub const FLAGS: usize = 48;
    pub const SIZE: usize = 56;
    /// Offset of the length of a message in a record of several, and that record's size.
    pub const DONE: usize = 56;
    pub const SIZE_OF_SEVERAL: usize = 64;
}

pub mod sigevent {
    pub const VALUE: usize = 0;
    pub const SIGNAL: usize = 8;
    pub const NOTIFY: usize = 12;
    pub const THREAD: usize = 16;
    /// Bytes that have a meaning.
    pub const USED: usize = 20;
}

pub mod mq_attr {
    pub const FLAGS: usize = 0;
    pub const MESSAGES: usize = 8;
    pub const BYTES: usize = 16;
    pub const COUNT: usize = 24;
    pub const SIZE: usize = 64;
}

pub mod epoll_event {
    pub const EVENTS: usize = 0;
    pub const DATA: usize = 8;
    pub const SIZE: usize = 16;
}

pub mod signalfd_siginfo {
    pub const SIGNAL: usize = 0;
    pub const CODE: usize = 8;
    pub const PROCESS: usize = 12;
    pub const USER: usize = 16;
    pub const DESCRIPTOR: usize = 20;
    pub const TIMER: usize = 24;
    pub const EVENTS: usize = 28;
    pub const STATUS: usize = 40;
    pub const NUMBER: usize = 44;
    pub const POINTER: usize = 48;
    pub const ADDRESS: usize = 72;
    pub const SIZE: usize = 128;
}

pub mod rusage {
    pub const SECONDS: usize = 0;
    pub const MICROSECONDS: usize = 8;
    pub const SIZE: usize = 144;
}

pub mod robust_list {
    /// Address of the first entry, which begins with that of the next; the last one's is the list's.
    pub const NEXT: usize = 0;
    /// Offset of a lock's word from its entry.
    pub const OFFSET: usize = 8;
    /// Address of an entry that is being added or removed.
    pub const PENDING: usize = 16;
    pub const SIZE: usize = 24;
}

pub mod flock {
    pub const TYPE: usize = 0;
    pub const WHENCE: usize = 2;
    pub const START: usize = 8;
    pub const LENGTH: usize = 16;
    pub const PROCESS: usize = 24;
    pub const SIZE: usize = 32;
}

pub mod timex {
    pub const MODES: usize = 0;
    pub const OFFSET: usize = 8;
    pub const FREQUENCY: usize = 16;
    pub const MAX_ERROR: usize = 24;
    pub const ERROR: usize = 32;
    pub const STATUS: usize = 40;
    pub const CONSTANT: usize = 48;
    pub const PRECISION: usize = 56;
    pub const TOLERANCE: usize = 64;
    pub const SECONDS: usize = 72;
    pub const PARTS: usize = 80;
    pub const TICK: usize = 88;
    pub const SIGNAL: usize = 96;
    pub const TAI: usize = 160;
    pub const SIZE: usize = 208;
}

pub mod iocb {
    pub const KEY: usize = 8;
    pub const READ_WRITE_FLAGS: usize = 12;
    pub const KIND: usize = 16;
    pub const DESCRIPTOR: usize = 20;
    pub const BUFFER: usize = 24;
    pub const LENGTH: usize = 32;
    pub const OFFSET: usize = 40;
    pub const RESERVED: usize = 48;
    pub const FLAGS: usize = 56;
    pub const COUNTER: usize = 60;
    pub const SIZE: usize = 64;
}

pub mod iovec {
    pub const BASE: usize = 0;
    pub const LENGTH: usize = 8;
    pub const SIZE: usize = 16;
}

pub mod pollfd {
    pub const DESCRIPTOR: usize = 0;
    pub const EVENTS: usize = 4;
    pub const RESULT: usize = 6;
    pub const SIZE: usize = 8;
}

pub mod rlimit {
    pub const CURRENT: usize = 0;
    pub const MAXIMUM: usize = 8;
    pub const SIZE: usize = 16;
}

pub mod sockaddr {
    pub const FAMILY: usize = 0;
    /// Path of a Unix socket.
    pub const PATH: usize = 2;
    /// Port of an internet socket, in network byte order.
    pub const PORT: usize = 2;
    /// Address of an internet socket.
    pub const ADDRESS: usize = 4;
    /// The longest address.
    pub const MAX_SIZE: usize = 128;
}
