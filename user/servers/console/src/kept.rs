//! What the console keeps when it is started again: text that it has accepted, and whose the terminal is.
//!
//! ```text
//! word 0      whose the terminal is: 1 or 2, the first or the second record (0: nobody has said it yet)
//! word 1      bytes that were ever appended
//! word 2      bytes that were ever taken
//! word 4…6    first record: mode, owner, foreground
//! word 8…10   second record
//! word 12…    the bytes, a word each, in a ring
//! ```
//! The record that is not in use is written; then word 0 says that it is. So whenever the console ends, there is the
//! old or the new one. Typed text that nobody has read is not kept.

use alloc::vec::Vec;

use tench::server::Lasting;
use tench_console_client::protocol::Mode;

use crate::output::Output;

const CURRENT: usize = 0;
const APPENDED: usize = 1;
const TAKEN: usize = 2;
/// Words of a record, the number of which begins at 1.
const RECORD: usize = 4;
/// Where the ring begins. Memory has at least so many words.
pub const RING: usize = 12;

/// Whose the terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// What is done with typed characters.
    pub mode: Mode,
    /// The process that says who reads; 0: nobody.
    pub owner: u64,
    /// The only process that reads; 0: every one does.
    pub foreground: u64,
}

/// What is kept.
pub struct Kept<M> {
    memory: M,
}

impl<M: Lasting> Kept<M> {
    /// What is kept in this memory.
    pub const fn new(memory: M) -> Kept<M> {
        Kept { memory }
    }

    /// Bytes that fit.
    pub fn capacity(&self) -> usize {
        self.memory.size().saturating_sub(RING)
    }

    /// Whose the terminal was.
    pub fn ownership(&self) -> Option<Ownership> {
        let at = match self.memory.read(CURRENT) {
            number @ 1..=2 => number as usize * RECORD,
            _ => return None,
        };
        let mode = Mode::from_code(self.memory.read(at))?;
        Some(Ownership { mode, owner: self.memory.read(at + 1), foreground: self.memory.read(at + 2) })
    }

    /// Whose the terminal is from now on.
    pub fn set_ownership(&mut self, now: Ownership) {
        let other = if self.memory.read(CURRENT) == 1 { 2 } else { 1 };
        let at = other as usize * RECORD;
        self.memory.write(at, now.mode as u64);
        self.memory.write(at + 1, now.owner);
        self.memory.write(at + 2, now.foreground);
        self.memory.write(CURRENT, other);
    }

    /// The output that was on its way.
    pub fn output(&self, limit: usize) -> Output {
        let (appended, taken) = (self.memory.read(APPENDED), self.memory.read(TAKEN));
        let count = appended.saturating_sub(taken).min(self.capacity() as u64);
        let bytes: Vec<u8> =
            (0..count).map(|index| self.memory.read(self.place(taken.saturating_add(index))) as u8).collect();
        Output::resume(limit, taken, &bytes)
    }

    /// Keeps what is on its way to the line now. Whoever wrote is answered afterwards.
    pub fn set_output(&mut self, output: &Output) {
        let taken = output.taken();
        let appended = taken + output.waiting().len() as u64;
        let known = self.memory.read(APPENDED).clamp(taken, appended);
        for (number, byte) in (known..appended).zip(output.waiting().skip((known - taken) as usize)) {
            self.memory.write(self.place(number), u64::from(*byte));
        }
        self.memory.write(APPENDED, appended);
        self.memory.write(TAKEN, taken);
    }

    fn place(&self, number: u64) -> usize {
        RING + (number % self.capacity().max(1) as u64) as usize
    }
}
