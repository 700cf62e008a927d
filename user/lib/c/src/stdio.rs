//! Files and standard streams in C's form.
//!
//! Output is not buffered: each call sends its bytes. Input is read ahead, a message at a time; a write to a file that
//! is also read begins at the read position.

use alloc::boxed::Box;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::slice;

use tench::files::protocol::{Error as FilesError, How};
use tench::io::{self, End, Error, Gather, Read, Write};
use tench::stream::protocol::{Error as StreamError, MAX_DATA};
use tench::sync::Mutex;
use tench::{fs, memory};
use tench_protocol::Failure;

use crate::arguments::{Arguments, VaList};
use crate::errno::{self, fail};
use crate::format::format;
use crate::text::bytes;

/// Result of functions at the end of a file and on failure.
const EOF: c_int = -1;

/// Source and destination of bytes.
enum Target {
    Input,
    Output,
    Errors,
    File(End),
}

/// State of a `FILE`.
struct State {
    target: Target,
    bytes: [u8; MAX_DATA],
    /// Bytes that have been read ahead.
    rest: core::ops::Range<usize>,
    has_ended: bool,
    has_failed: bool,
}

/// A `FILE`.
pub struct File(Mutex<State>);

static STDIN: File = File::new(Target::Input);
static STDOUT: File = File::new(Target::Output);
static STDERR: File = File::new(Target::Errors);

impl File {
    const fn new(target: Target) -> File {
        let state = State { target, bytes: [0; MAX_DATA], rest: 0..0, has_ended: false, has_failed: false };
        File(Mutex::new(state))
    }
}

/// Returns the error number for an error of a stream or file.
fn number_of(error: &Error) -> c_int {
    match error {
        Error::Stream(Failure::Refused(error)) => match error {
            StreamError::Closed | StreamError::NotForReading | StreamError::NotForWriting => errno::EBADF,
            StreamError::Broken => errno::EPIPE,
            StreamError::NoSpace => errno::ENOSPC,
            StreamError::TooLarge => errno::EFBIG,
            StreamError::Full => errno::EAGAIN,
            StreamError::NotAFile => errno::EINVAL,
        },
        Error::Files(Failure::Refused(error)) => match error {
            FilesError::BadPath | FilesError::IntoItself => errno::EINVAL,
            FilesError::NoSuchFile | FilesError::NoMoreEntries => errno::ENOENT,
            FilesError::NotADirectory => errno::ENOTDIR,
            FilesError::IsDirectory => errno::EISDIR,
            FilesError::ReadOnly => errno::EROFS,
            FilesError::NotAllowed => errno::EACCES,
            FilesError::Exists => errno::EEXIST,
            FilesError::NotEmpty => errno::ENOTEMPTY,
            FilesError::NoSpace => errno::ENOSPC,
            FilesError::Full => errno::ENFILE,
        },
        Error::Files(Failure::TooLong) => errno::EINVAL,
        Error::Memory(memory::Error::NoSlots) => errno::ENFILE,
        Error::Memory(_) => errno::ENOMEM,
        _ => errno::EIO,
    }
}

impl State {
    /// Reads ahead if nothing is buffered. Returns whether there are bytes.
    fn fill(&mut self) -> bool {
        if !self.rest.is_empty() {
            return true;
        }
        let read = match &mut self.target {
            Target::Input => io::read(&mut self.bytes),
            Target::File(end) => end.read(&mut self.bytes),
            Target::Output | Target::Errors => Err(Error::Stream(Failure::Refused(StreamError::NotForReading))),
        };
        self.rest = 0..*read.as_ref().unwrap_or(&0);
        match read {
            Ok(0) => self.has_ended = true,
            Ok(_) => {}
            Err(error) => self.failed(&error),
        }
        !self.rest.is_empty()
    }

    fn failed(&mut self, error: &Error) {
        self.has_failed = true;
        errno::set(number_of(error));
    }

    fn next(&mut self) -> Option<u8> {
        if !self.fill() {
            return None;
        }
        self.rest.start += 1;
        Some(self.bytes[self.rest.start - 1])
    }

    fn read(&mut self, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() && self.fill() {
            let rest = &self.bytes[self.rest.clone()];
            let count = rest.len().min(into.len() - done);
            into[done..done + count].copy_from_slice(&rest[..count]);
            self.rest.start += count;
            done += count;
        }
        done
    }

    /// Writes all bytes. Returns whether they were written.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let ahead = self.rest.len() as u64;
        self.rest = 0..0;
        let written = match &mut self.target {
            Target::Input => Err(Error::Stream(Failure::Refused(StreamError::NotForWriting))),
            Target::Output => {
                io::put(bytes);
                Ok(())
            }
            Target::Errors => io::write_error(bytes),
            Target::File(end) if ahead == 0 => end.write(bytes),
            Target::File(end) => {
                end.info().and_then(|info| end.seek(info.position - ahead)).and_then(|()| end.write(bytes))
            }
        };
        written.map_err(|error| self.failed(&error)).is_ok()
    }
}

/// Locks a `FILE` for a function.
///
/// # Safety
/// `file` must have been returned by `fopen` or a function for a standard stream, and not have been closed.
unsafe fn with<T>(file: *mut File, function: impl FnOnce(&mut State) -> T) -> T {
    // SAFETY: the caller guarantees that it exists.
    let file = unsafe { &*file };
    function(&mut file.0.lock())
}

/// Returns standard input.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_stdin() -> *mut File {
    (&raw const STDIN).cast_mut()
}

/// Returns standard output.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_stdout() -> *mut File {
    (&raw const STDOUT).cast_mut()
}

/// Returns standard error output.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_stderr() -> *mut File {
    (&raw const STDERR).cast_mut()
}

/// Opens a file with a mode of `fopen`.
fn open(path: &str, mode: &[u8]) -> Result<End, c_int> {
    let how = |how| fs::open_as(path, how).map_err(|error| number_of(&error));
    match mode {
        b"r" | b"rb" => how(How::Read),
        b"w" | b"wb" => how(How::Write),
        b"a" | b"ab" => how(How::Append),
        b"wx" | b"wbx" => how(How::CreateNew),
        b"r+" | b"rb+" | b"r+b" => how(How::Update),
        // The file is emptied first.
        b"w+" | b"wb+" | b"w+b" => how(How::Write).and_then(|_| how(How::Update)),
        _ => Err(errno::EINVAL),
    }
}

/// Returns the text of a path.
///
/// # Safety
/// `path` must be a string.
unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a str, c_int> {
    // SAFETY: the caller guarantees that it is a string.
    let path = unsafe { bytes(path, usize::MAX) };
    core::str::from_utf8(path).map_err(|_| errno::EINVAL)
}

/// Opens a file; returns null if it cannot be opened.
///
/// # Safety
/// `path` and `mode` must be strings.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut File {
    // SAFETY: the caller guarantees that it is a string.
    let path = unsafe { path_of(path) };
    // SAFETY: as above.
    let mode = unsafe { bytes(mode, usize::MAX) };
    match path.and_then(|path| open(path, mode)) {
        Ok(end) => Box::into_raw(Box::new(File::new(Target::File(end)))),
        Err(error) => {
            errno::set(error);
            null_mut()
        }
    }
}

/// Closes a file. A standard stream stays open.
///
/// # Safety
/// As for `with`; the file is not used any more.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn fclose(file: *mut File) -> c_int {
    // SAFETY: the caller guarantees it.
    let is_own = unsafe { with(file, |state| matches!(state.target, Target::File(_))) };
    if is_own {
        // SAFETY: `fopen` made it, and nobody uses it any more.
        drop(unsafe { Box::from_raw(file) });
    }
    0
}

/// Reads elements. Returns the number of whole elements read.
///
/// # Safety
/// `to` must point to room for `count` elements of `size` bytes; the rest as for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn fread(to: *mut c_void, size: usize, count: usize, file: *mut File) -> usize {
    let Some(length) = size.checked_mul(count).filter(|length| *length > 0) else { return 0 };
    // SAFETY: the caller guarantees it. The bytes are written before they are read.
    let into = unsafe { slice::from_raw_parts_mut(to.cast::<u8>(), length) };
    // SAFETY: the caller guarantees it.
    unsafe { with(file, |state| state.read(into)) / size }
}

/// Writes elements. Returns the number of elements written: all or none.
///
/// # Safety
/// `from` must point to `count` elements of `size` bytes; the rest as for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn fwrite(from: *const c_void, size: usize, count: usize, file: *mut File) -> usize {
    let Some(length) = size.checked_mul(count).filter(|length| *length > 0) else { return 0 };
    // SAFETY: the caller guarantees it.
    let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), length) };
    // SAFETY: the caller guarantees it.
    if unsafe { with(file, |state| state.write(bytes)) } { count } else { 0 }
}

/// Reads a byte, or returns `EOF`.
///
/// # Safety
/// As for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn fgetc(file: *mut File) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { with(file, State::next) }.map_or(EOF, c_int::from)
}

/// Reads a byte from standard input, or returns `EOF`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn getchar() -> c_int {
    STDIN.0.lock().next().map_or(EOF, c_int::from)
}

/// Reads a line with its end, or as much of it as fits, and appends a zero byte; returns null at the end.
///
/// # Safety
/// `to` must point to room for `size` bytes; the rest as for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn fgets(to: *mut c_char, size: c_int, file: *mut File) -> *mut c_char {
    let Some(room) = usize::try_from(size).ok().and_then(|size| size.checked_sub(1)) else { return null_mut() };
    let mut count = 0;
    let take = |state: &mut State| {
        while count < room {
            let Some(byte) = state.next() else { break };
            // SAFETY: the index is below `size`, for which there is room.
            unsafe { to.wrapping_add(count).write(byte as c_char) };
            count += 1;
            if byte == b'\n' {
                break;
            }
        }
    };
    // SAFETY: the caller guarantees it.
    unsafe { with(file, take) };
    if count == 0 {
        return null_mut();
    }
    // SAFETY: the index is the last for which there is room, or lower.
    unsafe { to.wrapping_add(count).write(0) };
    to
}

/// Writes a byte.
///
/// # Safety
/// As for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn fputc(character: c_int, file: *mut File) -> c_int {
    let byte = character as u8;
    // SAFETY: the caller guarantees it.
    if unsafe { with(file, |state| state.write(&[byte])) } { c_int::from(byte) } else { EOF }
}

/// Writes text.
///
/// # Safety
/// `text` must be a string; the rest as for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn fputs(text: *const c_char, file: *mut File) -> c_int {
    // SAFETY: the caller guarantees that it is a string.
    let text = unsafe { bytes(text, usize::MAX) };
    // SAFETY: the caller guarantees it.
    if unsafe { with(file, |state| state.write(text)) } { 0 } else { EOF }
}

/// Returns whether the end was reached.
///
/// # Safety
/// As for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn feof(file: *mut File) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { with(file, |state| c_int::from(state.has_ended)) }
}

/// Returns whether an operation has failed.
///
/// # Safety
/// As for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn ferror(file: *mut File) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { with(file, |state| c_int::from(state.has_failed)) }
}

/// Does nothing, because output is not buffered.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn fflush(_: *mut File) -> c_int {
    0
}

/// Writes formatted text.
///
/// # Safety
/// `text` must be a string, and the arguments are those that it takes; the rest as for `with`.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
pub unsafe extern "C" fn vfprintf(file: *mut File, text: *const c_char, list: &mut VaList) -> c_int {
    // SAFETY: the caller guarantees that it is a string.
    let text = unsafe { bytes(text, usize::MAX) };
    // SAFETY: the caller guarantees that the arguments fit.
    let mut arguments = unsafe { Arguments::new(list) };
    let print = |state: &mut State| {
        let (mut count, mut is_written) = (0, true);
        let mut gather = Gather::to(|part| is_written &= state.write(part));
        format(text, &mut arguments, &mut |part| {
            gather.push(part);
            count += part.len();
        });
        drop(gather);
        if is_written { count as c_int } else { EOF }
    };
    // SAFETY: the caller guarantees it.
    unsafe { with(file, print) }
}

/// Removes a file.
///
/// # Safety
/// `path` must be a string.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn remove(path: *const c_char) -> c_int {
    // SAFETY: the caller guarantees it.
    let path = unsafe { path_of(path) };
    done(path.and_then(|path| fs::remove(path).map_err(|error| number_of(&error))))
}

/// Renames a file.
///
/// # Safety
/// `from` and `to` must be strings.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller guarantees it.
    let from = unsafe { path_of(from) };
    // SAFETY: the caller guarantees it.
    let to = unsafe { path_of(to) };
    let rename = |from, to| fs::rename(from, to).map_err(|error| number_of(&error));
    done(from.and_then(|from| rename(from, to?)))
}

fn done(result: Result<(), c_int>) -> c_int {
    result.map_or_else(fail, |()| 0)
}
