//! Bytes to be echoed, until the output has room for them.
//!
//! Echo is a ring of bytes with operations between them, since what erases a tab depends on the column in which it is
//! put out. Its bytes wait until a block of them or the input that caused them is complete, or a process writes.

use crate::characters::is_control;
use crate::modes::{Modes, local};
use crate::output::Output;
use crate::ring::{Ring, SIZE, same};

/// The byte that begins an operation. Twice, it stands for itself.
const START: u8 = 0xff;
/// The column is one less.
const MOVE_BACK: u8 = 0x80;
/// The line being edited begins in this column.
const SET_LINE: u8 = 0x81;
/// A tab is erased. A byte follows: the columns before it, and the flag [`AFTER_TAB`].
const ERASE_TAB: u8 = 0x82;
/// The columns are counted from another tab, and not from the beginning of the line.
const AFTER_TAB: u8 = 0x80;

/// Number of bytes that are put out together.
const BLOCK: usize = 256;
/// Number of waiting bytes from which the oldest are lost.
const TOO_MANY: usize = SIZE - (BLOCK + 32);

#[derive(Clone, Debug)]
pub(crate) struct Echo {
    bytes: Ring<u8>,
    /// The first byte that waits.
    tail: usize,
    /// The end of those that may be put out.
    committed: usize,
    /// The end of those that may be put out when a process writes.
    marked: usize,
    head: usize,
}

impl Echo {
    pub(crate) fn new() -> Echo {
        Echo { bytes: Ring::new(), tail: 0, committed: 0, marked: 0, head: 0 }
    }

    pub(crate) const fn clear(&mut self) {
        (self.tail, self.committed, self.marked, self.head) = (0, 0, 0, 0);
    }

    fn add(&mut self, byte: u8) {
        self.bytes.set(self.head, byte);
        self.head += 1;
    }

    /// Adds a byte as it is.
    pub(crate) fn raw(&mut self, byte: u8) {
        if byte == START {
            self.add(START);
        }
        self.add(byte);
    }

    /// Adds a byte, a control character perhaps as `^` and a letter.
    pub(crate) fn character(&mut self, byte: u8, modes: &Modes) {
        let is_shown = modes.has_local(local::ECHOCTL) && is_control(byte) && byte != b'\t';
        if byte == START || is_shown {
            self.add(START);
        }
        self.add(byte);
    }

    /// Adds characters that erase the one before.
    pub(crate) fn rub_out(&mut self) {
        b"\x08 \x08".iter().for_each(|byte| self.raw(*byte));
    }

    pub(crate) fn move_back(&mut self) {
        self.add(START);
        self.add(MOVE_BACK);
    }

    pub(crate) fn set_line(&mut self) {
        self.add(START);
        self.add(SET_LINE);
    }

    /// Adds what erases a tab after so many columns of the line, or, with `is_after_tab`, after another tab.
    pub(crate) fn erase_tab(&mut self, columns: u8, is_after_tab: bool) {
        self.add(START);
        self.add(ERASE_TAB);
        self.add(columns & 7 | if is_after_tab { AFTER_TAB } else { 0 });
    }

    /// Allows that what was added is put out, which happens at once if there is a block of it.
    pub(crate) fn commit(&mut self, output: &mut Output, modes: &Modes) {
        self.marked = self.head;
        let old = self.committed - self.tail;
        let count = self.head - self.tail;
        if count < BLOCK || count % BLOCK > old % BLOCK {
            return;
        }
        self.committed = self.head;
        self.put_out(output, modes);
    }

    /// Puts out what may be put out.
    pub(crate) fn process(&mut self, output: &mut Output, modes: &Modes) {
        if self.marked != self.tail {
            self.committed = self.marked;
            self.put_out(output, modes);
        }
    }

    /// Puts out everything, at the end of some input.
    pub(crate) fn flush(&mut self, output: &mut Output, modes: &Modes) {
        if modes.has_local(local::ECHO | local::ECHONL) && self.committed != self.head {
            self.committed = self.head;
            self.put_out(output, modes);
        }
    }

    fn put_out(&mut self, output: &mut Output, modes: &Modes) {
        while !same(self.committed, self.tail) {
            let byte = self.bytes.get(self.tail);
            if byte != START {
                if !output.write(byte, modes) {
                    break;
                }
                self.tail += 1;
                continue;
            }
            let Some(length) = self.operation_length() else { return };
            if !self.operate(output) {
                break;
            }
            self.tail += length;
        }
        while self.committed > self.tail && self.committed - self.tail >= TOO_MANY {
            self.tail += match (self.bytes.get(self.tail), self.bytes.get(self.tail + 1)) {
                (START, ERASE_TAB) => 3,
                (START, _) => 2,
                _ => 1,
            };
        }
    }

    /// Returns the length of the operation at the tail, or nothing if it is not complete. That happens if more was
    /// added at once than there is space for, so that the oldest bytes are no longer what they were.
    fn operation_length(&self) -> Option<usize> {
        if same(self.committed, self.tail + 1) {
            return None;
        }
        let has_parameter = self.bytes.get(self.tail + 1) == ERASE_TAB;
        if has_parameter && same(self.committed, self.tail + 2) {
            return None;
        }
        Some(if has_parameter { 3 } else { 2 })
    }

    /// Carries out the operation at the tail. Returns whether there was room for it.
    fn operate(&mut self, output: &mut Output) -> bool {
        match self.bytes.get(self.tail + 1) {
            ERASE_TAB => {
                let parameter = self.bytes.get(self.tail + 2);
                return output.erase_tab(parameter.into(), parameter & AFTER_TAB == 0);
            }
            SET_LINE => output.canonical_column = output.column,
            MOVE_BACK => output.move_back(),
            START if output.room() < 1 => return false,
            START => {
                output.put(START);
                output.column = output.column.wrapping_add(1);
            }
            _ if output.room() < 2 => return false,
            control => {
                output.put(b'^');
                output.put(control ^ 0x40);
                output.column = output.column.wrapping_add(2);
            }
        }
        true
    }
}
