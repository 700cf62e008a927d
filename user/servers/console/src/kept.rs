//! The console's persistent state across restarts: accepted text, and the ownership of the terminal.
//!
//! ```text
//! word 0      ownership: 1 or 2, the first or the second record (0: not set yet)
//! word 1      number of bytes ever appended
//! word 2      number of bytes ever sent
//! word 4…7    first record: mode, owner, foreground, and 1 if the terminal is lent to the foreground
//! word 8…11   second record
//! word 12…    the bytes, a word each, in a ring
//! ```
//! The record that is not in use is written; then word 0 selects it. So whenever the console ends, there is the old or
//! the new record. Typed text that has not been read is not kept.

use alloc::vec::Vec;

use tench::server::Lasting;
use tench_console_interface::protocol::Mode;

use crate::output::Output;

const CURRENT: usize = 0;
const APPENDED: usize = 1;
const TAKEN: usize = 2;
/// Number of words of a record. Records are numbered from 1.
const RECORD: usize = 4;
/// First word of the ring. The memory has at least this many words.
pub const RING: usize = 12;

/// Ownership of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Treatment of typed characters.
    pub mode: Mode,
    /// The process that controls who reads; 0 if none does.
    pub owner: u64,
    /// The only process that reads; 0 if every process may.
    pub foreground: u64,
    /// Set if the terminal is lent to the process in the foreground.
    pub is_lent: bool,
}

/// The persistent state.
pub struct Kept<M> {
    memory: M,
}

impl<M: Lasting> Kept<M> {
    /// Returns the state in this memory.
    pub const fn new(memory: M) -> Kept<M> {
        Kept { memory }
    }

    /// Returns the number of bytes that fit.
    pub fn capacity(&self) -> usize {
        self.memory.size().saturating_sub(RING)
    }

    /// Returns the saved ownership of the terminal.
    pub fn ownership(&self) -> Option<Ownership> {
        let at = match self.memory.read(CURRENT) {
            number @ 1..=2 => number as usize * RECORD,
            _ => return None,
        };
        let mode = Mode::from_code(self.memory.read(at))?;
        let foreground = self.memory.read(at + 2);
        // To every process it is never lent.
        let is_lent = foreground != 0 && self.memory.read(at + 3) == 1;
        Some(Ownership { mode, owner: self.memory.read(at + 1), foreground, is_lent })
    }

    /// Saves the ownership of the terminal.
    pub fn set_ownership(&mut self, now: Ownership) {
        let other = if self.memory.read(CURRENT) == 1 { 2 } else { 1 };
        let at = other as usize * RECORD;
        self.memory.write(at, now.mode as u64);
        self.memory.write(at + 1, now.owner);
        self.memory.write(at + 2, now.foreground);
        self.memory.write(at + 3, now.is_lent.into());
        self.memory.write(CURRENT, other);
    }

    /// Returns the buffered output.
    pub fn output(&self, limit: usize) -> Output {
        let (appended, taken) = (self.memory.read(APPENDED), self.memory.read(TAKEN));
        let count = appended.saturating_sub(taken).min(self.capacity() as u64);
        let bytes: Vec<u8> =
            (0..count).map(|index| self.memory.read(self.ring_index(taken.saturating_add(index))) as u8).collect();
        Output::resume(limit, taken, &bytes)
    }

    /// Saves the buffered output. Writers get their replies afterwards.
    pub fn set_output(&mut self, output: &Output) {
        let taken = output.taken();
        let appended = taken + output.waiting().len() as u64;
        let known = self.memory.read(APPENDED).clamp(taken, appended);
        for (number, byte) in (known..appended).zip(output.waiting().skip((known - taken) as usize)) {
            self.memory.write(self.ring_index(number), u64::from(*byte));
        }
        self.memory.write(APPENDED, appended);
        self.memory.write(TAKEN, taken);
    }

    fn ring_index(&self, number: u64) -> usize {
        RING + (number % self.capacity().max(1) as u64) as usize
    }
}
