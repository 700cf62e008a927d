//! What the console keeps when it is started again: text that it has accepted, and whose the terminal is.
//!
//! ```text
//! word 0   mode (0: nothing is kept yet)      word 3   bytes that were ever appended
//! word 1   owner                               word 4   bytes that were ever taken
//! word 2   foreground                          word 8…  the bytes, a word each, in a ring
//! ```
//! Typed text that nobody has read is not kept.

use alloc::vec::Vec;

use tench_console_client::protocol::Mode;

use crate::output::Output;

const MODE: usize = 0;
const OWNER: usize = 1;
const FOREGROUND: usize = 2;
const APPENDED: usize = 3;
const TAKEN: usize = 4;
const RING: usize = 8;

/// Memory that stays, in words.
pub trait Memory {
    /// Words.
    fn size(&self) -> usize;
    /// Reads a word.
    fn read(&self, index: usize) -> u64;
    /// Writes a word.
    fn write(&mut self, index: usize, word: u64);
}

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

impl<M: Memory> Kept<M> {
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
        let mode = Mode::from_code(self.memory.read(MODE))?;
        Some(Ownership { mode, owner: self.memory.read(OWNER), foreground: self.memory.read(FOREGROUND) })
    }

    /// Whose the terminal is from now on.
    pub fn set_ownership(&mut self, now: Ownership) {
        // Without a mode nothing is kept, so a half-written state is none.
        self.memory.write(MODE, 0);
        self.memory.write(OWNER, now.owner);
        self.memory.write(FOREGROUND, now.foreground);
        self.memory.write(MODE, now.mode as u64);
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
