//! Output to the device, and in which column of the screen it ends.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::characters::{continues_utf8, is_control, to_upper};
use crate::modes::{Modes, input, output};

/// Number of bytes that wait for the device at most.
pub(crate) const LIMIT: usize = 8192;
/// Columns from a tab's place to the next.
const TAB: u32 = 8;

#[derive(Clone, Debug)]
pub(crate) struct Output {
    bytes: VecDeque<u8>,
    pub(crate) column: u32,
    /// The column in which the line being edited begins.
    pub(crate) canonical_column: u32,
    /// Set if nothing goes out.
    pub(crate) is_stopped: bool,
    /// Set if a process has stopped the output, so that no key starts it.
    pub(crate) is_stopped_by_call: bool,
}

impl Output {
    pub(crate) fn new() -> Output {
        let bytes = VecDeque::with_capacity(LIMIT);
        Output { bytes, column: 0, canonical_column: 0, is_stopped: false, is_stopped_by_call: false }
    }

    /// Returns the number of bytes that can go out now.
    pub(crate) fn room(&self) -> usize {
        if self.is_stopped { 0 } else { LIMIT - self.bytes.len() }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.bytes.drain(..).collect()
    }

    /// Moves bytes to where at most `limit` are kept. Returns their number.
    pub(crate) fn move_to(&mut self, into: &mut VecDeque<u8>, limit: usize) -> usize {
        let count = self.bytes.len().min(limit.saturating_sub(into.len()));
        into.extend(self.bytes.drain(..count));
        count
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
    }

    pub(crate) fn start(&mut self) {
        self.is_stopped &= self.is_stopped_by_call;
    }

    /// Puts out a byte as it is, for which there is room.
    pub(crate) fn put(&mut self, byte: u8) {
        self.bytes.push_back(byte);
    }

    /// Moves left by a column.
    pub(crate) fn move_back(&mut self) {
        self.column = self.column.saturating_sub(1);
    }

    /// Puts out a byte with or without processing. Returns whether there was room.
    pub(crate) fn write(&mut self, byte: u8, modes: &Modes) -> bool {
        if modes.has_output(output::OPOST) {
            return self.process(byte, modes);
        }
        let has_room = self.room() > 0;
        if has_room {
            self.put(byte);
        }
        has_room
    }

    /// Puts out a byte with processing. Returns whether there was room; without, nothing has changed.
    fn process(&mut self, byte: u8, modes: &Modes) -> bool {
        let room = self.room();
        if room == 0 {
            return false;
        }
        match byte {
            b'\n' => return self.newline(modes, room),
            b'\r' if modes.has_output(output::ONOCR) && self.column == 0 => {}
            b'\r' => self.carriage_return(modes),
            b'\t' => return self.tab(modes, room),
            0x08 => {
                self.move_back();
                self.put(byte);
            }
            _ if is_control(byte) => self.put(byte),
            _ => {
                let byte = if modes.has_output(output::OLCUC) { to_upper(byte) } else { byte };
                if !(modes.has_input(input::IUTF8) && continues_utf8(byte)) {
                    self.column = self.column.wrapping_add(1);
                }
                self.put(byte);
            }
        }
        true
    }

    fn newline(&mut self, modes: &Modes, room: usize) -> bool {
        if modes.has_output(output::ONLRET) {
            self.column = 0;
        }
        if modes.has_output(output::ONLCR) {
            if room < 2 {
                return false;
            }
            self.column = 0;
            self.put(b'\r');
        }
        self.canonical_column = self.column;
        self.put(b'\n');
        true
    }

    fn carriage_return(&mut self, modes: &Modes) {
        let becomes_newline = modes.has_output(output::OCRNL);
        if !becomes_newline || modes.has_output(output::ONLRET) {
            (self.column, self.canonical_column) = (0, 0);
        }
        self.put(if becomes_newline { b'\n' } else { b'\r' });
    }

    fn tab(&mut self, modes: &Modes, room: usize) -> bool {
        let spaces = TAB - self.column % TAB;
        if modes.output & output::TABDLY == output::XTABS {
            if room < spaces as usize {
                return false;
            }
            (0..spaces).for_each(|_| self.put(b' '));
        } else {
            self.put(b'\t');
        }
        self.column = self.column.wrapping_add(spaces);
        true
    }

    /// Moves back over a tab that begins `width` columns after another tab or, if `is_in_line`, after the beginning of
    /// the line being edited. Returns whether there was room.
    pub(crate) fn erase_tab(&mut self, width: u32, is_in_line: bool) -> bool {
        let begin = if is_in_line { width.wrapping_add(self.canonical_column) } else { width };
        let count = TAB - begin % TAB;
        if count as usize > self.room() {
            return false;
        }
        for _ in 0..count {
            self.put(0x08);
            self.move_back();
        }
        true
    }
}
