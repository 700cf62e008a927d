//! The clock server's arithmetic. This library makes no system call, so all of it is tested on the host; `main.rs`
//! reads the counter and replies. The queue of waits: `tench_quota::queue`.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod time;

/// Bytes of heap that a request may need, with at most 1024 waiting threads. A test counts.
pub const GROWTH: usize = 6 << 10;
