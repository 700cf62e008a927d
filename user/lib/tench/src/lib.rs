//! The user library: what a program has around its `main`.
//!
//! ```
//! #![cfg_attr(target_os = "none", no_std, no_main)]
//!
//! use tench::println;
//!
//! tench::entry!(main);
//!
//! fn main() {
//!     println!("hello");
//! }
//! ```
//! | module | purpose | system calls |
//! |---|---|---|
//! | [`process`] | arguments, environment, exit | one, at the end |
//! | [`io`] | `print!`, `println!`, `eprintln!`, reading lines; pipes | one call to the console or a stream for each line |
//! | [`fs`] | files and directories | one call to the file server for each request |
//! | [`memory`] | slots, kernel objects, mapped memory | a block of memory at a time |
//! | `heap` | `alloc`: `Box`, `Vec`, `String`, … | while it grows |
//! | [`thread`] | threads with guarded stacks, data of each thread | a dozen to start one |
//! | [`sync`] | mutex, condition variable, semaphore, read-write lock, barrier, once; [shared](sync::shared) ones | none without contention |
//! | [`time`] | now, sleep | one to sleep |
//! | [`server`] | slots, reply objects and persistent state of a server | none |
//! | [`shared`] | memory shared by client and server | a few to attach it |
//! | [`upcall`] | handling one's own faults and foreign system calls | one to return |
//!
//! `unsafe` is allowed in: `runtime` (first instructions), `process` (the information block), `heap`, `thread`, `sync`
//! (cells behind locks), `upcall`, `backtrace`, `memory` (touching the stack in advance, linking the start on demand),
//! `memory::window` (volatile accesses), `memory::metadata` (nodes in new memory), `memory::resources`.

#![cfg_attr(not(test), no_std)]
#![deny(missing_docs)]

extern crate alloc;

mod backtrace;
#[cfg(target_os = "none")]
mod bytes;
pub mod fs;
mod heap;
pub mod io;
pub mod memory;
pub mod process;
pub mod runtime;
pub mod server;
pub mod shared;
pub mod sync;
pub mod thread;
pub mod time;
pub mod upcall;

pub use process::{args, env, exit};
pub use tench_clock_interface as clock;
pub use tench_console_interface as console;
pub use tench_files_interface as files;
pub use tench_mem_interface as mem;
pub use tench_names_interface as names;
pub use tench_paging as paging;
pub use tench_procs_interface as procs;
pub use tench_protocol::again;
pub use tench_reserve_interface as reserve;
pub use tench_stream as stream;
pub use {tench_abi as abi, tench_sys as sys};

/// Names the function with which the program begins: `entry!(main)`.
///
/// The function has no parameters and returns `()`, an exit code (`i32`), or a `Result` whose error can be displayed;
/// see [`runtime::Termination`]. On the host, where programs are only checked, the macro expands to an empty `main`,
/// unless the function itself is called `main`.
#[macro_export]
macro_rules! entry {
    (main) => {
        $crate::entry!(@target main);
    };
    ($function:path) => {
        $crate::entry!(@target $function);

        #[cfg(not(target_os = "none"))]
        #[allow(dead_code)]
        fn main() {
            let _ = $function;
        }
    };
    (@target $function:path) => {
        #[cfg(target_os = "none")]
        const _: () = {
            #[unsafe(no_mangle)]
            fn tench_main() -> i32 {
                $crate::runtime::Termination::report($function())
            }
        };
    };
}
