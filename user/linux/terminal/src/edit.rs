//! Erasing of characters, words and lines.

use crate::Terminal;
use crate::characters::{continues_utf8, is_alphanumeric, is_control};
use crate::modes::{index, input, local};
use crate::ring::same;

/// How much is erased.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Character,
    Word,
    Line,
}

impl Terminal {
    fn continues(&self, byte: u8) -> bool {
        self.modes.has_input(input::IUTF8) && continues_utf8(byte)
    }

    /// Ends the echo of what was erased, if it is being shown.
    pub(crate) fn finish_erasing(&mut self) {
        if self.is_erasing {
            self.echo.raw(b'/');
            self.is_erasing = false;
        }
    }

    /// Erases what a special character stands for.
    pub(crate) fn erase(&mut self, key: u8) {
        if self.lines.is_new_line() {
            return;
        }
        let extent = if self.modes.is(key, index::VERASE) {
            Extent::Character
        } else if self.modes.is(key, index::VWERASE) {
            Extent::Word
        } else if self.kill() {
            return;
        } else {
            Extent::Line
        };
        self.erase_extent(extent);
        if self.lines.is_new_line() && self.modes.has_local(local::ECHO) {
            self.finish_erasing();
        }
    }

    /// Erases the line at once, if its echo is not rubbed out character by character. Returns whether it was erased.
    fn kill(&mut self) -> bool {
        let has = |flag| self.modes.has_local(flag);
        let is_shown = has(local::ECHO);
        let shows_newline = has(local::ECHOK);
        if is_shown && shows_newline && has(local::ECHOKE) && has(local::ECHOE) {
            return false;
        }
        self.lines.head = self.lines.canonical;
        if is_shown {
            self.finish_erasing();
            self.echo.character(self.modes.characters[index::VKILL], &self.modes);
            if shows_newline {
                self.echo.raw(b'\n');
            }
        }
        true
    }

    fn erase_extent(&mut self, extent: Extent) {
        let mut has_seen_word = false;
        while !same(self.lines.head, self.lines.canonical) {
            let mut begin = self.lines.head - 1;
            while self.continues(self.lines.get(begin)) && !same(begin, self.lines.canonical) {
                begin -= 1;
            }
            let byte = self.lines.get(begin);
            if self.continues(byte) {
                // The line begins with a part of a character, which stays.
                break;
            }
            if extent == Extent::Word {
                if is_alphanumeric(byte) || byte == b'_' {
                    has_seen_word = true;
                } else if has_seen_word {
                    break;
                }
            }
            let end = core::mem::replace(&mut self.lines.head, begin);
            if self.modes.has_local(local::ECHO) {
                self.echo_erased(extent, begin, end);
            }
            if extent == Extent::Character {
                break;
            }
        }
    }

    /// Echoes that the character from `begin` to `end` was erased.
    fn echo_erased(&mut self, extent: Extent, begin: usize, end: usize) {
        let byte = self.lines.get(begin);
        let shows_control = self.modes.has_local(local::ECHOCTL);
        if self.modes.has_local(local::ECHOPRT) {
            if !self.is_erasing {
                self.echo.raw(b'\\');
                self.is_erasing = true;
            }
            self.echo.character(byte, &self.modes);
            for position in begin + 1..end {
                self.echo.raw(self.lines.get(position));
                self.echo.move_back();
            }
        } else if extent == Extent::Character && !self.modes.has_local(local::ECHOE) {
            self.echo.character(self.modes.characters[index::VERASE], &self.modes);
        } else if byte == b'\t' {
            self.erase_tab();
        } else if !is_control(byte) {
            self.echo.rub_out();
        } else if shows_control {
            self.echo.rub_out();
            self.echo.rub_out();
        }
    }

    /// Echoes that a tab at the end of the line was erased.
    fn erase_tab(&mut self) {
        let mut columns: u8 = 0;
        let mut position = self.lines.head;
        while !same(position, self.lines.canonical) {
            position -= 1;
            match self.lines.get(position) {
                b'\t' => return self.echo.erase_tab(columns, true),
                byte if is_control(byte) => {
                    let width = if self.modes.has_local(local::ECHOCTL) { 2 } else { 0 };
                    columns = columns.wrapping_add(width);
                }
                byte if self.continues(byte) => {}
                _ => columns = columns.wrapping_add(1),
            }
        }
        self.echo.erase_tab(columns, false);
    }
}
