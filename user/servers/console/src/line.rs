//! The line discipline: how typed bytes are treated before they can be read.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench_console_interface::protocol::Mode;

use crate::output::Output;

/// Bytes of the longest line that can be edited.
pub const MAX_LINE: usize = 1024;
/// Maximum number of bytes that can be typed ahead of readers.
pub const MAX_AHEAD: usize = 4096;

const INTERRUPT: u8 = 3; // Ctrl-C
const END: u8 = 4; // Ctrl-D
const BELL: u8 = 7;
const BACKSPACE: u8 = 8;
const KILL_LINE: u8 = 21; // Ctrl-U
const KILL_WORD: u8 = 23; // Ctrl-W
const SUSPEND: u8 = 26; // Ctrl-Z
/// Ctrl-], which interrupts in either mode while the terminal is lent.
pub const TAKE_BACK: u8 = 29;
const DELETE: u8 = 127;

/// An item of input that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// A byte.
    Byte(u8),
    /// The end of the input: Ctrl-D was typed.
    End,
}

/// Effect of a typed byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// No effect outside.
    Nothing,
    /// There may be something to read.
    Ready,
    /// Ctrl-C in canonical mode, or Ctrl-] while the terminal is lent.
    Interrupt,
    /// Ctrl-Z in canonical mode.
    Suspend,
}

/// Typed bytes on their way to readers.
pub struct Line {
    mode: Mode,
    /// The line being edited; empty in raw mode.
    edit: Vec<u8>,
    ready: VecDeque<Item>,
    /// Set if Ctrl-Z is signalled instead of being a character.
    pub can_suspend: bool,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            mode: Mode::Canonical,
            edit: Vec::with_capacity(MAX_LINE),
            // Bytes that a reader did not take come back.
            ready: VecDeque::with_capacity(MAX_AHEAD + MAX_LINE + 1),
            can_suspend: false,
        }
    }
}

impl Line {
    /// Returns the mode.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Sets the mode. When the mode becomes raw, a line that is being edited can be read byte by byte. What was typed
    /// in raw mode and not read is meant for the next mode: ends of lines and of the input are treated as such, and a
    /// key that is signalled is returned. What was typed before that key is dropped.
    pub fn set_mode(&mut self, mode: Mode) -> Typed {
        let was_raw = core::mem::replace(&mut self.mode, mode) == Mode::Raw;
        if mode == Mode::Raw {
            self.ready.extend(self.edit.drain(..).map(Item::Byte));
            return Typed::Nothing;
        }
        let mut typed = Typed::Nothing;
        if was_raw {
            let can_suspend = self.can_suspend;
            let is_key = |item: &Item| *item == Item::Byte(INTERRUPT) || can_suspend && *item == Item::Byte(SUSPEND);
            if let Some(index) = self.ready.iter().rposition(is_key) {
                let is_interrupt = self.ready.get(index) == Some(&Item::Byte(INTERRUPT));
                typed = if is_interrupt { Typed::Interrupt } else { Typed::Suspend };
                self.ready.drain(..=index);
            }
            for item in &mut self.ready {
                match item {
                    Item::Byte(b'\r') => *item = Item::Byte(b'\n'),
                    Item::Byte(END) => *item = Item::End,
                    _ => {}
                }
            }
        }
        typed
    }

    /// Handles a typed byte. What a terminal should show goes to `echo`.
    pub fn typed(&mut self, byte: u8, echo: &mut Output) -> Typed {
        match self.mode {
            Mode::Raw => self.typed_raw(byte, echo),
            Mode::Canonical => self.typed_canonical(byte, echo),
        }
    }

    /// Handles Ctrl-] while the terminal is lent. What was typed for the borrower and not finished or read is dropped.
    pub fn take_back(&mut self, echo: &mut Output) -> Typed {
        match self.mode {
            Mode::Raw => self.ready.clear(),
            Mode::Canonical => {
                self.edit.clear();
                echo.write(b"^]\n");
            }
        }
        Typed::Interrupt
    }

    fn typed_raw(&mut self, byte: u8, echo: &mut Output) -> Typed {
        if self.ready.len() >= MAX_AHEAD {
            echo.write(&[BELL]);
            return Typed::Nothing;
        }
        self.ready.push_back(Item::Byte(byte));
        Typed::Ready
    }

    fn typed_canonical(&mut self, byte: u8, echo: &mut Output) -> Typed {
        match byte {
            b'\r' | b'\n' => {
                echo.write(b"\n");
                self.finish(Item::Byte(b'\n'), echo)
            }
            END if self.edit.is_empty() => self.finish(Item::End, echo),
            END => self.finish_without_end(),
            INTERRUPT => {
                self.edit.clear();
                echo.write(b"^C\n");
                Typed::Interrupt
            }
            SUSPEND if self.can_suspend => {
                self.edit.clear();
                echo.write(b"^Z\n");
                Typed::Suspend
            }
            BACKSPACE | DELETE => {
                self.rub_out(echo);
                Typed::Nothing
            }
            KILL_LINE => {
                while self.rub_out(echo) {}
                Typed::Nothing
            }
            KILL_WORD => {
                while self.edit.last() == Some(&b' ') && self.rub_out(echo) {}
                while self.edit.last().is_some_and(|&last| last != b' ') && self.rub_out(echo) {}
                Typed::Nothing
            }
            _ => self.insert(byte, echo),
        }
    }

    /// Makes the edited line readable, and `item` after it.
    fn finish(&mut self, item: Item, echo: &mut Output) -> Typed {
        if self.ready.len() + self.edit.len() >= MAX_AHEAD {
            echo.write(&[BELL]);
            return Typed::Nothing;
        }
        self.finish_without_end();
        self.ready.push_back(item);
        Typed::Ready
    }

    /// Makes the edited text readable although the line has no end (Ctrl-D in the middle of a line).
    fn finish_without_end(&mut self) -> Typed {
        if self.ready.len() + self.edit.len() > MAX_AHEAD {
            return Typed::Nothing;
        }
        self.ready.extend(self.edit.drain(..).map(Item::Byte));
        Typed::Ready
    }

    fn insert(&mut self, byte: u8, echo: &mut Output) -> Typed {
        if self.edit.len() >= MAX_LINE {
            echo.write(&[BELL]);
            return Typed::Nothing;
        }
        self.edit.push(byte);
        match byte {
            b'\t' => echo.write(b" "),
            0..32 => echo.write(&[b'^', byte + 64]),
            _ => echo.write(&[byte]),
        }
        Typed::Nothing
    }

    /// Removes the last character, also from the screen. Returns whether there was one.
    fn rub_out(&mut self, echo: &mut Output) -> bool {
        // A UTF-8 character ends with continuation bytes (10xxxxxx) after its first byte.
        while self.edit.pop_if(|last| *last & 0xc0 == 0x80).is_some() {}
        let Some(byte) = self.edit.pop() else { return false };
        let columns = if byte < 32 && byte != b'\t' { 2 } else { 1 };
        for _ in 0..columns {
            echo.write(b"\x08 \x08");
        }
        true
    }

    /// Returns whether there is something to read.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the input for a reader that has room for `max` bytes: in canonical mode up to the end of a line, or
    /// nothing at the end of the input; in raw mode whatever there is.
    pub fn read(&mut self, max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < max {
            match self.ready.pop_front() {
                Some(Item::Byte(byte)) => {
                    bytes.push(byte);
                    if byte == b'\n' && self.mode == Mode::Canonical {
                        break;
                    }
                }
                // Bytes before the end are a reply of their own; the next reader sees the end.
                Some(Item::End) if !bytes.is_empty() => {
                    self.ready.push_front(Item::End);
                    break;
                }
                Some(Item::End) if self.mode == Mode::Raw => bytes.push(END),
                Some(Item::End) | None => break,
            }
        }
        bytes
    }

    /// Puts back what [`read`](Self::read) has returned for a reader that has gone.
    pub fn put_back(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.ready.push_front(Item::End);
        }
        for &byte in bytes.iter().rev() {
            self.ready.push_front(Item::Byte(byte));
        }
    }
}
