//! The beginning and end of a program, its environment, and time.

use alloc::vec::Vec;
use core::ffi::{c_char, c_int, c_uint};
use core::ptr::null_mut;

use tench::process::{self, Strings};
use tench::time::{self, Duration};

use crate::text::bytes;

#[cfg(target_os = "none")]
unsafe extern "C" {
    /// The program's main function.
    fn main(argc: c_int, argv: *mut *mut c_char) -> c_int;
}

#[cfg(target_os = "none")]
const _: () = {
    /// Runs the program; the user library calls this.
    #[unsafe(no_mangle)]
    fn tench_main() -> i32 {
        let arguments = copies(process::args());
        let count = arguments.len() as c_int - 1;
        // SAFETY: the program has a `main` of this type; the pointers stay valid until it ends.
        unsafe { main(count, arguments.leak().as_mut_ptr()) }
    }
};

/// Returns copies of strings, which the program may change, and a null at the end. They are never freed.
fn copies(mut strings: Strings) -> Vec<*mut c_char> {
    let mut pointers = Vec::new();
    while let Some(string) = strings.next_bytes() {
        let mut copy = Vec::with_capacity(string.len() + 1);
        copy.extend_from_slice(string);
        copy.push(0);
        pointers.push(copy.leak().as_mut_ptr().cast());
    }
    pointers.push(null_mut());
    pointers
}

/// Returns the value of an environment entry, or null. The program must not change it.
///
/// # Safety
/// `name` must be a string.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn getenv(name: *const c_char) -> *mut c_char {
    // SAFETY: the caller guarantees that it is a string.
    let name = unsafe { bytes(name, usize::MAX) };
    let mut entries = process::env();
    while let Some(entry) = entries.next_bytes() {
        if let Some([b'=', value @ ..]) = entry.strip_prefix(name) {
            return value.as_ptr().cast_mut().cast();
        }
    }
    null_mut()
}

/// Ends the process.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn exit(code: c_int) -> ! {
    process::exit(code)
}

/// Ends the process because of an error.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn abort() -> ! {
    panic!("aborted")
}

/// Sleeps for a number of seconds.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn sleep(seconds: c_uint) -> c_uint {
    time::sleep(Duration::from_secs(seconds.into()));
    0
}

/// Sleeps for a number of milliseconds.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_sleep(milliseconds: u64) {
    time::sleep(Duration::from_millis(milliseconds));
}

/// Returns the milliseconds since the machine was started.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_uptime() -> u64 {
    time::uptime().as_millis() as u64
}

/// Returns the number of instructions that the processor has executed.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_instructions() -> u64 {
    if time::may_count() { time::instructions() } else { 0 }
}

/// Returns the process identifier.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_process() -> u64 {
    process::id()
}
