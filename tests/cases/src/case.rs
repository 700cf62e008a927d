//! The type of a case, and how a case reports what went wrong.

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Debug, Display};
use core::panic::Location;

use tench::sys::Error;

use crate::stage::Stage;

/// A test case that runs on the target.
#[derive(Clone, Copy)]
pub struct Case {
    /// Identifier by which the case is cited. Never reused for another case.
    pub id: &'static str,
    /// Statement that holds if the case passes.
    pub name: &'static str,
    /// Function that runs the case.
    pub run: fn(&mut Stage) -> Outcome,
}

impl Case {
    /// Makes a case.
    pub const fn new(id: &'static str, name: &'static str, run: fn(&mut Stage) -> Outcome) -> Case {
        Case { id, name, run }
    }
}

/// Result of a case.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Reason why a case failed, and where.
pub struct Failure {
    text: String,
    location: &'static Location<'static>,
}

impl Failure {
    /// Makes a failure at the caller's source line.
    #[track_caller]
    pub fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), location: Location::caller() }
    }

    /// Returns the source line that detected the failure.
    pub fn line(&self) -> u32 {
        self.location.line()
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.location.file().rsplit('/').next().unwrap_or("");
        write!(f, "{file}:{}: {}", self.location.line(), self.text)
    }
}

impl From<Error> for Failure {
    #[track_caller]
    fn from(error: Error) -> Failure {
        Failure::new(format!("the kernel refused: {error:?}"))
    }
}

impl From<tench::memory::Error> for Failure {
    #[track_caller]
    fn from(error: tench::memory::Error) -> Failure {
        Failure::new(format!("the library refused: {error}"))
    }
}

impl From<tench::procs::Failure> for Failure {
    #[track_caller]
    fn from(failure: tench::procs::Failure) -> Failure {
        Failure::new(format!("the process server refused: {failure}"))
    }
}

impl From<tench::mem::Failure> for Failure {
    #[track_caller]
    fn from(failure: tench::mem::Failure) -> Failure {
        Failure::new(format!("the memory server refused: {failure}"))
    }
}

/// Returns the result; fails with the reason if the request was refused.
#[track_caller]
pub fn said<T, E: Debug>(result: Result<T, E>) -> Outcome<T> {
    match result {
        Ok(result) => Ok(result),
        Err(error) => Err(Failure::new(format!("unexpectedly refused: {error:?}"))),
    }
}

/// Fails unless the two values are equal.
#[track_caller]
pub fn equal<T, U>(what: &str, found: &T, expected: &U) -> Outcome
where
    T: Debug + PartialEq<U> + ?Sized,
    U: Debug + ?Sized,
{
    if found == expected { Ok(()) } else { Err(Failure::new(format!("{what}: found {found:?}, not {expected:?}"))) }
}

/// Fails unless the call was refused with this error.
#[track_caller]
pub fn refused<T: Debug>(what: &str, found: Result<T, Error>, expected: Error) -> Outcome {
    match found {
        Err(error) if error == expected => Ok(()),
        found => Err(Failure::new(format!("{what}: found {found:?}, not {expected:?}"))),
    }
}

/// Fails unless the condition holds.
macro_rules! check {
    ($condition:expr) => {
        if !$condition {
            return Err($crate::case::Failure::new(concat!("not so: ", stringify!($condition))));
        }
    };
}

/// Fails unless two values are equal.
macro_rules! equal {
    ($found:expr, $expected:expr) => {
        $crate::case::equal(stringify!($found), &$found, &$expected)?
    };
}

/// Fails unless a system call was refused with this error.
macro_rules! refused {
    ($call:expr, $error:ident) => {
        $crate::case::refused(stringify!($call), $call, tench::sys::Error::$error)?
    };
}
