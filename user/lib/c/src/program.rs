//! Starting programs, and giving them capabilities.

use core::ffi::{c_char, c_int, c_uint};

use tench::abi::layout::slot;
use tench::process;
use tench::procs::Procs;
use tench::procs::protocol::{Error, Strings};
use tench::procs::{Failure, Spawn};
use tench::sys::CapAddress;

use crate::errno::{EAGAIN, EINVAL, ENOENT, ENOMEM, ESRCH, fail, set};
use crate::text::bytes;

/// Returns the error number for a failed request.
fn number(failure: &Failure) -> c_int {
    match failure {
        Failure::Refused(Error::NoSuchProgram) => ENOENT,
        Failure::Refused(Error::NoSuchProcess) => ESRCH,
        Failure::Refused(Error::OutOfMemory) => ENOMEM,
        Failure::Refused(Error::TooManyProcesses | Error::Full) => EAGAIN,
        Failure::Refused(_) | Failure::Rejected(_) | Failure::TooLong => EINVAL,
        Failure::Lost(_) | Failure::Restarted | Failure::Malformed => EAGAIN,
    }
}

/// Appends the arguments, which end with a null pointer.
///
/// # Safety
/// `arguments` must point to pointers to strings, of which the last is null.
unsafe fn append(spawn: Spawn, arguments: *const *const c_char) -> Result<(), Failure> {
    let mut next = arguments;
    loop {
        // SAFETY: the caller guarantees a null at the end, and it was not reached yet.
        let argument = unsafe { next.read() };
        if argument.is_null() {
            return Ok(());
        }
        // SAFETY: the caller guarantees that it is a string.
        spawn.strings(Strings::Arguments, unsafe { bytes(argument, usize::MAX) })?;
        spawn.strings(Strings::Arguments, &[0])?;
        next = next.wrapping_add(1);
    }
}

/// Starts a program with its arguments and copies of capabilities. Returns the process's number, or 0.
///
/// # Safety
/// `program` must be a string, `arguments` must be null or point to pointers to strings, of which the last is null, and
/// `capabilities` to `count` numbers of slots.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn tench_run(
    program: *const c_char,
    arguments: *const *const c_char,
    capabilities: *const u32,
    count: c_uint,
) -> u64 {
    // SAFETY: the caller guarantees that it is a string.
    let Ok(program) = core::str::from_utf8(unsafe { bytes(program, usize::MAX) }) else {
        set(ENOENT);
        return 0;
    };
    let prepared = Procs::STANDARD.prepare(program).and_then(|mut spawn| {
        let mut fill = || {
            if !arguments.is_null() {
                // SAFETY: the caller guarantees it.
                unsafe { append(spawn, arguments) }?;
            }
            (0..count as usize).try_for_each(|index| {
                // SAFETY: the caller guarantees that there are so many.
                let slot = unsafe { *capabilities.wrapping_add(index) };
                spawn.give(CapAddress(slot)).map(drop)
            })
        };
        let filled = fill();
        filled.inspect_err(|_| spawn.abandon())?;
        spawn.start()
    });
    prepared.unwrap_or_else(|failure| {
        set(number(&failure));
        0
    })
}

/// Waits until a process has ended, and stores its exit code, or -1 if it was killed.
///
/// # Safety
/// `code` must be null or point to memory for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn tench_wait(process: u64, code: *mut c_int) -> c_int {
    match Procs::STANDARD.wait(process) {
        Ok(status) => {
            if !code.is_null() {
                // SAFETY: the caller guarantees it.
                unsafe { *code = status.exit_code().map_or(-1, |code| code as c_int) };
            }
            0
        }
        Err(failure) => fail(number(&failure)),
    }
}

/// Returns the slot of a capability that the program was given at its start, or 0 if it was given fewer.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_given(index: c_uint) -> u32 {
    let given = process::info().map_or(0, |info| info.extra_count);
    if u64::from(index) < given { slot::EXTRA.0 + index } else { 0 }
}
