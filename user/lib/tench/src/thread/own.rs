//! The runtime's record of a thread, beside its block.

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::ops::Deref;
use core::ptr::null;

use tench_sync::Member;
use tench_sys::ThreadBlock;

use super::local::Locals;
use crate::sync::inheriting::Queues;

/// Maximum length of a thread's name in bytes.
pub const MAX_NAME: usize = 31;

/// A thread's name.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Name {
    length: u8,
    bytes: [u8; MAX_NAME],
}

impl Name {
    /// The empty name.
    pub const NONE: Name = Name { length: 0, bytes: [0; MAX_NAME] };

    /// Returns a name from a text, cut to the maximum length.
    pub fn new(text: &str) -> Name {
        let mut length = text.len().min(MAX_NAME);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let mut name = Name { length: length as u8, ..Name::NONE };
        name.bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        name
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length)).unwrap_or(&[]);
        core::str::from_utf8(bytes).unwrap_or("")
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// The runtime's record of a thread. The thread block's `runtime` holds its address, or 0 in threads that did not begin
/// in this library; those have no thread-local data.
///
/// Only its own thread reads and writes it while that thread runs.
#[repr(C)]
pub struct Own {
    /// Number of the thread: 0 for the main thread, then in the order in which they were started.
    pub number: Cell<usize>,
    /// The thread-local data.
    pub locals: UnsafeCell<Locals>,
    /// The thread's name.
    pub name: Cell<Name>,
    /// The error number that C programs see. It is not among the thread-local data, because those need memory, and the
    /// error may be that there is none.
    pub error: Cell<i32>,
    /// The thread's member among the users of inheriting locks; null until it uses one.
    pub member: Cell<*const Member<Queues>>,
}

impl Own {
    /// Returns the record of a thread with this number and name.
    pub const fn new(number: usize, name: Name) -> Own {
        Own {
            number: Cell::new(number),
            locals: UnsafeCell::new(Locals::NONE),
            name: Cell::new(name),
            error: Cell::new(0),
            member: Cell::new(null()),
        }
    }

    /// Returns the running thread's record.
    #[inline]
    pub fn current() -> Option<&'static Own> {
        let block = ThreadBlock::current()?;
        let own = core::ptr::with_exposed_provenance::<Own>(block.runtime.get());
        // SAFETY: the address is 0, or that of a record that this library made and that stays as long as the thread
        // runs.
        unsafe { own.as_ref() }
    }
}

/// The main thread's record. Only that thread uses it.
pub struct MainOwn(Own);

// SAFETY: only the main thread reaches it, through its block.
unsafe impl Sync for MainOwn {}

static MAIN: MainOwn = MainOwn(Own::new(0, Name::NONE));

/// Returns the address of the main thread's record, for its block.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
pub fn main_record() -> usize {
    core::ptr::from_ref(&MAIN.0).expose_provenance()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(&*Name::new("worker 5"), "worker 5");
        assert_eq!(&*Name::new(""), "");
        assert_eq!(Name::new(&"ä".repeat(20)).len(), 30);
        assert_eq!(Name::new(&"x".repeat(99)).to_string(), "x".repeat(MAX_NAME));
    }
}
