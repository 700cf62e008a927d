//! Reading by processes.

use alloc::vec::Vec;

use tench_linux_calls::Errno;

use crate::Terminal;
use crate::modes::{index, local};

/// Number of bytes that Linux reads from a terminal in one piece. A read waits for bytes of the first piece only.
const PIECE: usize = 64;
/// Number of waiting bytes up to which a read lets further input in before it is complete.
const LOW: usize = 128;
/// The limit of the time that a read waits, in tenths of a second.
type Tenths = Option<u8>;

/// A read that has begun.
#[derive(Debug)]
pub struct Reading {
    wanted: usize,
    taken: Vec<u8>,
    /// Number of bytes for which the read waits.
    minimum: usize,
    /// Time for which the read waits between bytes; 0 stands for ever.
    between: u8,
    timeout: Tenths,
}

/// How far a read has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The read is complete, perhaps without bytes, which is the end of a file.
    Done,
    /// The read waits, at most as many tenths of a second. That time begins anew whenever the read has
    /// [taken](Reading::taken) further bytes.
    Waits(Option<u8>),
}

/// Why a read ends that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process does not want to wait (`O_NONBLOCK`).
    WouldBlock,
    /// The time is over.
    TimedOut,
    /// There is a signal for the process.
    Interrupted,
}

impl Reading {
    /// Returns the bytes that were read so far.
    pub fn taken(&self) -> &[u8] {
        &self.taken
    }

    /// Returns what a complete read has read.
    pub fn into_bytes(self) -> Vec<u8> {
        self.taken
    }

    /// Ends a read that waits. Returns what the process gets.
    ///
    /// # Errors
    /// If there are no bytes: `EAGAIN` if the process does not want to wait, and `EINTR` after a signal, after which a
    /// call may be made again instead.
    pub fn end(self, ending: Ending) -> Result<Vec<u8>, Errno> {
        match ending {
            _ if !self.taken.is_empty() => Ok(self.taken),
            Ending::TimedOut => Ok(self.taken),
            Ending::WouldBlock => Err(Errno::EAGAIN),
            Ending::Interrupted => Err(Errno::EINTR),
        }
    }
}

impl Terminal {
    /// Begins a read of at most `wanted` bytes, in the modes that there are now. Only one read may have begun at a
    /// time; others wait until it has ended.
    pub fn begin_read(&self, wanted: usize) -> Reading {
        let (minimum, time) = (self.modes.characters[index::VMIN], self.modes.characters[index::VTIME]);
        let (minimum, between, timeout) = match minimum {
            _ if self.modes.has_local(local::ICANON) => (0, 0, None),
            0 => (1, 0, Some(time)),
            _ => (usize::from(minimum), time, None),
        };
        Reading { wanted, taken: Vec::new(), minimum, between, timeout }
    }

    /// Goes on with a read as far as there is input. If the read waits, this is called again after further input, and
    /// when modes have changed.
    pub fn read(&mut self, reading: &mut Reading) -> Progress {
        if self.is_hung_up {
            return Progress::Done;
        }
        let first = reading.wanted.min(PIECE);
        let begin = self.lines.tail;
        while reading.taken.len() < first {
            if !self.is_available() {
                if reading.timeout == Some(0) {
                    break;
                }
                return Progress::Waits(reading.timeout);
            }
            let count = first - reading.taken.len();
            let goes_on = self.take(count, &mut reading.taken);
            if goes_on && (self.modes.reads_lines() || reading.taken.len() >= reading.minimum) {
                self.read_further(reading);
                return Progress::Done;
            }
            self.tell_of_room();
            if reading.taken.len() >= reading.minimum {
                break;
            }
            if reading.between != 0 {
                reading.timeout = Some(reading.between);
            }
        }
        if begin != self.lines.tail {
            self.go_on();
        }
        Progress::Done
    }

    /// Reads all that is there without waiting, after the first piece.
    fn read_further(&mut self, reading: &mut Reading) {
        loop {
            let count = (reading.wanted - reading.taken.len()).min(PIECE);
            if count == 0 && self.modes.reads_lines() {
                self.lines.skip_end_of_file();
            }
            if count == 0 || !self.take(count, &mut reading.taken) {
                break;
            }
        }
        self.go_on();
    }

    /// Moves input into a read. Returns whether there is more for it.
    fn take(&mut self, count: usize, into: &mut Vec<u8>) -> bool {
        if self.modes.reads_lines() {
            return self.lines.take_line(count, into);
        }
        let before = into.len();
        let goes_on = self.lines.take(count, into);
        // With `EXTPROC` the device's side edits, and sends the end of a file as a single special character.
        let is_last = !goes_on && self.modes.has_local(local::ICANON) && into.len() == before + 1;
        if is_last && into.ends_with(&[self.modes.characters[index::VEOF]]) {
            into.pop();
        }
        goes_on
    }

    /// Goes on with received bytes if little input is left.
    fn tell_of_room(&mut self) {
        let end = if self.modes.has_local(local::ICANON) { self.lines.canonical } else { self.lines.committed };
        if end.wrapping_sub(self.lines.tail) <= LOW {
            self.go_on();
        }
    }

    fn is_available(&self) -> bool {
        self.has_input(1)
    }

    /// Returns whether a line can be read or, without lines, so many bytes.
    pub(crate) fn has_input(&self, count: usize) -> bool {
        if self.modes.reads_lines() {
            self.lines.canonical != self.lines.tail
        } else {
            self.lines.committed - self.lines.tail >= count
        }
    }
}
