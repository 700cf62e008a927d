//! The C library: `main`, output, memory, text, time. The declarations are in `include`.
//!
//! ```text
//! start      arguments, and the call of main
//! format     printf's format language
//! output     printf and its relatives         arguments: a C argument list, read word by word
//! variadic   those with variable arguments    float: floating point in printf, strtod, and math.h
//! stdio      files and standard streams
//! memory     malloc and its relatives         errno: why they failed
//! text       strings
//! pthread    POSIX threads                    semaphore: POSIX semaphores
//! emulated   thread-local variables
//! errno      error numbers                    time: points in time in C's form
//! profile    memory requests of studied applications
//! jump       setjmp and longjmp
//! call       requests to servers, for the headers of interfaces
//! shared     memory that processes share   program: starting programs with capabilities
//! ```
//! The functions have the names of standard C on the target alone; on the host they would replace the real ones.
//! `memcpy` and its relatives come with the compiler's library. C has no safe functions, so nearly everything here is
//! `unsafe`: a function relies on its caller to fulfil the requirements of standard C.

#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(not(target_os = "none"), allow(dead_code))]
#![deny(missing_docs)]

extern crate alloc;

mod arguments;
mod call;
mod emulated;
mod errno;
mod float;
mod format;
#[cfg(target_os = "none")]
mod jump;
mod memory;
mod output;
mod profile;
mod program;
mod pthread;
mod semaphore;
mod shared;
mod start;
mod stdio;
mod text;
mod time;
#[cfg(target_os = "none")]
mod variadic;
