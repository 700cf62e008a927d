//! Lists of strings in the form of the process information page: each is terminated by a zero byte.

use serde::{Deserialize, Serialize};

/// Strings, each terminated by a zero byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strings<'a> {
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    /// The empty list.
    pub const EMPTY: Strings<'static> = Strings { bytes: &[] };

    /// Returns the strings in `bytes`, each terminated by a zero byte.
    pub const fn new(bytes: &'a [u8]) -> Strings<'a> {
        Strings { bytes }
    }

    /// Returns all strings with their zero bytes, ready to be copied.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of strings.
    pub fn count(&self) -> usize {
        self.bytes.iter().filter(|&&byte| byte == 0).count()
    }

    /// Returns an iterator over the strings.
    pub fn iter(&self) -> Iter<'a> {
        Iter { rest: self.bytes }
    }

    pub(crate) fn is_well_formed(&self) -> bool {
        self.bytes.last().is_none_or(|&last| last == 0) && core::str::from_utf8(self.bytes).is_ok()
    }
}

/// Iterator over [`Strings`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        let text = core::str::from_utf8(&self.rest[..end]).ok()?;
        self.rest = &self.rest[end + 1..];
        Some(text)
    }
}
