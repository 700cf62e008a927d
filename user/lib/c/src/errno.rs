//! Error numbers, and `errno`.

use core::ffi::c_int;

/// The caller may not do this, for instance release a lock that it does not hold.
pub const EPERM: c_int = 1;
/// There is no such file or directory.
pub const ENOENT: c_int = 2;
/// There is no such thread.
pub const ESRCH: c_int = 3;
/// The other end of a stream is gone.
pub const EIO: c_int = 5;
/// The stream is not open for this operation.
pub const EBADF: c_int = 9;
/// The operation would wait, or a limit is reached.
pub const EAGAIN: c_int = 11;
/// There is no memory.
pub const ENOMEM: c_int = 12;
/// The object belongs to another program.
pub const EACCES: c_int = 13;
/// The object is in use.
pub const EBUSY: c_int = 16;
/// The path exists already.
pub const EEXIST: c_int = 17;
/// A file is where a directory is needed.
pub const ENOTDIR: c_int = 20;
/// A directory is where a file is needed.
pub const EISDIR: c_int = 21;
/// An argument is invalid.
pub const EINVAL: c_int = 22;
/// Too many files are open.
pub const ENFILE: c_int = 23;
/// A file would become too large.
pub const EFBIG: c_int = 27;
/// No space is left for files.
pub const ENOSPC: c_int = 28;
/// The file can only be read.
pub const EROFS: c_int = 30;
/// Nobody reads from the pipe.
pub const EPIPE: c_int = 32;
/// A number is too large or too small to be represented.
pub const ERANGE: c_int = 34;
/// The caller would wait for itself.
pub const EDEADLK: c_int = 35;
/// The directory is not empty.
pub const ENOTEMPTY: c_int = 39;
/// The number is too large to be counted.
pub const EOVERFLOW: c_int = 75;
/// The operation is not supported here.
pub const ENOTSUP: c_int = 95;
/// The deadline has passed.
pub const ETIMEDOUT: c_int = 110;
/// The last owner of a lock has ended.
pub const EOWNERDEAD: c_int = 130;
/// An owner of the lock has ended, and the data that it protects were not made consistent.
pub const ENOTRECOVERABLE: c_int = 131;

/// Returns the address of the running thread's error number.
#[cfg(target_os = "none")]
#[unsafe(no_mangle)]
extern "C" fn tench_errno() -> *mut c_int {
    tench::thread::error_number()
}

/// Returns the address of the error number on the host, whose threads are not this library's.
#[cfg(not(target_os = "none"))]
fn tench_errno() -> *mut c_int {
    std::thread_local! {
        static ERRNO: core::cell::Cell<c_int> = const { core::cell::Cell::new(0) };
    }
    ERRNO.with(core::cell::Cell::as_ptr)
}

/// Sets the running thread's error number.
pub fn set(error: c_int) {
    // SAFETY: the memory is the running thread's own as long as it runs.
    unsafe { tench_errno().write(error) };
}

/// Returns the running thread's error number.
#[cfg(test)]
pub fn get() -> c_int {
    // SAFETY: as in `set`.
    unsafe { tench_errno().read() }
}

/// Sets the running thread's error number, and returns -1.
pub fn fail(error: c_int) -> c_int {
    set(error);
    -1
}

/// Returns 0 if `done`, otherwise the error.
pub const fn done_or(done: bool, error: c_int) -> c_int {
    if done { 0 } else { error }
}
