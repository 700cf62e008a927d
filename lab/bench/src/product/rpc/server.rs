//! A server that receives strings.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use tench::shared::Buffers;
use tench::sys::{Wait, put_short};
use tench_protocol::{ArrayString, Bytes, Event, Shared, SharedMut, Text, interface};

/// Bytes of a part: what fits into a message.
pub const PART: usize = 448;
/// Bytes of the longest string.
pub const LARGEST: u64 = 64 << 10;

/// A service to which strings are sent, and which sends them back.
#[interface(client = Strings, version = 1)]
pub trait StringsService {
    /// Keeps a short string. Replies its length.
    #[method(1)]
    fn short(&mut self, text: Text<'_, 16>) -> Result<u64, Error>;

    /// Keeps a longer string. Replies its length.
    #[method(2)]
    fn long(&mut self, text: Text<'_, 128>) -> Result<u64, Error>;

    /// Keeps a part of a string. Replies its length.
    #[method(3)]
    fn part(&mut self, part: Bytes<'_, PART>) -> Result<u64, Error>;

    /// Keeps a string in shared memory. Replies its length.
    #[method(4)]
    fn whole(&mut self, bytes: Shared<'_>) -> Result<u64, Error>;

    /// Replies the short string.
    #[method(5)]
    fn echo_short(&mut self, text: Text<'_, 16>) -> Result<Text<'_, 16>, Error>;

    /// Replies the longer string.
    #[method(6)]
    fn echo_long(&mut self, text: Text<'_, 128>) -> Result<Text<'_, 128>, Error>;

    /// Copies a string from shared memory back into shared memory. Errors: `TooLong`.
    #[method(7)]
    fn echo(&mut self, bytes: Shared<'_>, into: SharedMut<'_>) -> Result<(), Error>;
}

tench_protocol::codes! {
    /// Reasons for which a request is refused.
    pub enum Error {
        /// The string is longer than there is room for.
        TooLong = 1, "the string is too long";
    }
}

/// The last string kept.
struct Kept {
    /// The string in words, as it arrived, and its length.
    packed: ([u64; 2], usize),
    short: ArrayString<16>,
    long: ArrayString<128>,
    bytes: Vec<u8>,
}

impl Kept {
    /// Copies a string out of shared memory.
    fn take(&mut self, bytes: &Shared<'_>) -> Result<&[u8], Error> {
        let room = self.bytes.get_mut(..bytes.len()).ok_or(Error::TooLong)?;
        bytes.read(0, room);
        Ok(room)
    }
}

impl StringsService for Kept {
    fn short(&mut self, text: Text<'_, 16>) -> Result<u64, Error> {
        self.packed.1 = text.len();
        put_short(&mut self.packed.0, text.as_bytes(), 16);
        Ok(self.packed.1 as u64)
    }

    fn long(&mut self, text: Text<'_, 128>) -> Result<u64, Error> {
        self.long = text.to_owned();
        Ok(self.long.len() as u64)
    }

    fn part(&mut self, part: Bytes<'_, PART>) -> Result<u64, Error> {
        self.bytes[..part.len()].copy_from_slice(&part);
        Ok(part.len() as u64)
    }

    fn whole(&mut self, bytes: Shared<'_>) -> Result<u64, Error> {
        self.take(&bytes).map(|bytes| bytes.len() as u64)
    }

    fn echo_short(&mut self, text: Text<'_, 16>) -> Result<Text<'_, 16>, Error> {
        self.short = text.to_owned();
        Text::new(&self.short).ok_or(Error::TooLong)
    }

    fn echo_long(&mut self, text: Text<'_, 128>) -> Result<Text<'_, 128>, Error> {
        self.long = text.to_owned();
        Text::new(&self.long).ok_or(Error::TooLong)
    }

    fn echo(&mut self, bytes: Shared<'_>, into: SharedMut<'_>) -> Result<(), Error> {
        let length = bytes.len();
        if into.len() < length {
            return Err(Error::TooLong);
        }
        into.write(0, self.take(&bytes)?);
        Ok(())
    }
}

/// Runs the server's process, which serves until it is killed.
pub fn serve() -> Result<(), String> {
    let (short, long, bytes) = (ArrayString::new(), ArrayString::new(), vec![0; LARGEST as usize]);
    let mut kept = Kept { packed: ([0; 2], 0), short, long, bytes };
    let mut buffers = Buffers::new(2 * LARGEST, 1);
    let mut port = tench::server::port(0, 1);
    loop {
        if port.next(Wait::FOREVER) == Event::Request {
            port.carry_out_sharing(&mut buffers, |request, context, reply| {
                Strings::dispatch(&mut kept, request, context, reply)
            });
        }
    }
}
