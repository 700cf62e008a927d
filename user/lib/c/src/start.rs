//! The beginning and end of a program, its environment, and time.

use core::ffi::{c_char, c_int, c_uint};
use core::ptr::null_mut;

use tench::process;
use tench::sync::OnceLock;
use tench::time::{self, Duration};

use crate::text::bytes;

/// The function that is called before a program exits by itself.
static AT_EXIT: OnceLock<fn()> = OnceLock::new();

/// Sets the function that is called before the program exits by itself. Only the first one set counts.
pub fn at_exit(function: fn()) {
    AT_EXIT.get_or_init(|| function);
}

/// Calls that function, if there is one.
fn finish() {
    if let Some(function) = AT_EXIT.get() {
        function();
    }
}

#[cfg(target_os = "none")]
mod start {
    use core::ffi::{c_char, c_int};

    use tench::process;

    unsafe extern "C" {
        /// The program's main function.
        fn main(argc: c_int, argv: *mut *mut c_char) -> c_int;
    }

    /// Runs the program; the user library calls this.
    #[unsafe(no_mangle)]
    fn tench_main() -> i32 {
        let (mut count, mut bytes) = (0, 0);
        let mut arguments = process::args();
        while let Some(argument) = arguments.next_bytes() {
            count += 1;
            bytes += argument.len() + 1;
        }
        let size = (count + 1) * size_of::<*mut c_char>() + bytes;
        // SAFETY: `size` bytes suffice for the pointers and the strings that `run` puts there.
        unsafe { on_stack(size.next_multiple_of(16), count, run) }
    }

    /// Calls `function` with `size` bytes of this thread's stack, and `count`. So a program's arguments need no heap.
    ///
    /// # Safety
    /// `function` must be allowed to be called so, and `size` must be a multiple of 16. A stack without that much room
    /// overflows.
    #[unsafe(naked)]
    unsafe extern "C" fn on_stack(
        size: usize,
        count: usize,
        function: unsafe extern "C" fn(*mut *mut c_char, usize) -> c_int,
    ) -> c_int {
        core::arch::naked_asm!(
            "stp x29, x30, [sp, #-16]!",
            "mov x29, sp",
            // Every page is touched, so that none is skipped on a stack that ends or comes on demand.
            "0: cmp x0, #4096",
            "b.ls 1f",
            "sub sp, sp, #4096",
            "str xzr, [sp]",
            "sub x0, x0, #4096",
            "b 0b",
            "1: sub sp, sp, x0",
            "mov x0, sp",
            "blr x2",
            "mov sp, x29",
            "ldp x29, x30, [sp], #16",
            "ret",
        )
    }

    /// Copies the arguments, which the program may change, and runs it.
    ///
    /// # Safety
    /// At `pointers` there must be room for `count` pointers to arguments, a null, and the arguments.
    unsafe extern "C" fn run(pointers: *mut *mut c_char, count: usize) -> c_int {
        let mut to = pointers.wrapping_add(count + 1).cast::<u8>();
        let mut arguments = process::args();
        for index in 0..count {
            let argument = arguments.next_bytes().unwrap_or_default();
            // SAFETY: the caller guarantees the room.
            unsafe { pointers.wrapping_add(index).write(to.cast()) };
            // SAFETY: as above.
            unsafe { to.copy_from_nonoverlapping(argument.as_ptr(), argument.len()) };
            to = to.wrapping_add(argument.len());
            // SAFETY: as above.
            unsafe { to.write(0) };
            to = to.wrapping_add(1);
        }
        // SAFETY: as above.
        unsafe { pointers.wrapping_add(count).write(core::ptr::null_mut()) };
        // SAFETY: the program has a `main` of this type; the pointers stay valid until it ends.
        let code = unsafe { main(count as c_int, pointers) };
        super::finish();
        code
    }
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
    finish();
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
