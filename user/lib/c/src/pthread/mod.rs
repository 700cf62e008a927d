//! POSIX threads, on the threads and locks of the user library.
//!
//! The structures of `pthread.h` are arrays of words as large as the types here; all zeros are a valid value of each,
//! so that the initialisers of C are zeros. Where POSIX leaves misuse undefined, and it can be detected, an error is
//! returned.
//!
//! The lifetimes of C's locks are not checked, so everything here is reached through pointers, and every function
//! relies on its caller to fulfil the requirements of POSIX.

mod attributes;
mod barrier;
mod condition;
mod keys;
mod mutex;
mod once;
mod read_write;
mod shared;
mod thread;

/// Returns the number of the running thread, never 0.
fn me() -> usize {
    tench::thread::current_id() + 1
}
