//! The line editor: typed bytes in, lines and screen bytes out. It makes no system call.
//!
//! ```text
//! keys      bytes to keys
//! history   earlier lines
//! screen    what the terminal shows
//! mod       effect of each key on the line (this file)
//! ```
//! The existing libraries (`noline`, `embedded-cli`) were not taken: the first asks the terminal for its cursor before
//! every line, to which a script at the other end does not reply, and has no completion; the second lacks half of the
//! keys.
//!
//! Where the line wraps matters only for lines longer than [`NARROW`] that are edited in their middle. Only then does
//! the editor ask the terminal for its width, and show the change when the report comes. If a key comes instead, the
//! terminal does not report, and counts as [`USUAL_COLUMNS`] wide.

mod history;
mod keys;
mod screen;

use alloc::string::String;
use alloc::vec::Vec;

use history::History;
use keys::{Key, Keys};
use screen::Screen;

/// Characters of the longest line.
pub const MAX_LINE: usize = 1024;
/// Lines up to this many columns are assumed to fit into one row of any terminal.
const NARROW: usize = 60;
/// Columns of a terminal that does not report its width.
const USUAL_COLUMNS: usize = 80;
/// Saves the cursor, moves it to the right margin, requests its position, and restores it.
const ASK_COLUMNS: &[u8] = b"\x1b7\x1b[999C\x1b[6n\x1b8";
const BELL: u8 = 7;

/// Effect of a typed byte, beyond the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// No effect.
    Nothing,
    /// Enter: the line.
    Line(String),
    /// Ctrl-C: the line is dropped.
    Interrupted,
    /// Ctrl-D on an empty line.
    End,
    /// Tab: the line up to the cursor should be completed; [`Editor::complete`] takes the result.
    Complete,
}

/// Completion of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Bytes before the cursor that `text` replaces.
    pub replaces: usize,
    /// The replacement.
    pub text: String,
    /// Choices, if `text` does not decide between them.
    pub choices: Vec<String>,
}

/// A line being edited, and the history.
#[derive(Debug)]
pub struct Editor {
    prompt: &'static str,
    line: Vec<char>,
    /// Index of the character before which typed ones are inserted.
    cursor: usize,
    keys: Keys,
    history: History,
    screen: Screen,
    /// Set if the terminal was asked for its columns and has not reported them.
    asked_columns: bool,
    /// Set if the last key was a Tab that could not add anything.
    tabbed: bool,
}

impl Editor {
    /// Returns an editor that shows `prompt` before every line.
    pub fn new(prompt: &'static str) -> Editor {
        Editor {
            prompt,
            line: Vec::new(),
            cursor: 0,
            keys: Keys::default(),
            history: History::default(),
            screen: Screen::default(),
            asked_columns: false,
            tabbed: false,
        }
    }

    /// Begins a line.
    pub fn begin_line(&mut self, out: &mut Vec<u8>) {
        self.line.clear();
        self.cursor = 0;
        self.history.reset();
        self.asked_columns = false;
        // The terminal's window may have another size by now.
        self.screen.set_columns(None, out);
        self.screen.show_prompt(self.prompt, out);
    }

    /// Returns the line.
    pub fn line(&self) -> String {
        self.line.iter().collect()
    }

    /// Returns the line up to the cursor.
    pub fn before_cursor(&self) -> String {
        self.line[..self.cursor].iter().collect()
    }

    /// Returns earlier lines, oldest first.
    pub fn history(&self) -> impl Iterator<Item = &str> {
        self.history.lines()
    }

    /// Handles a typed byte. Output for the terminal goes to `out`.
    pub fn feed(&mut self, byte: u8, out: &mut Vec<u8>) -> Event {
        let Some(key) = self.keys.feed(byte) else { return Event::Nothing };
        if core::mem::take(&mut self.asked_columns) {
            let columns = if let Key::CursorColumn(column) = key { column.max(1) } else { USUAL_COLUMNS };
            self.screen.set_columns(Some(columns), out);
            self.refresh(out);
        }
        if key != Key::Tab {
            self.tabbed = false;
        }
        match key {
            Key::Enter => self.enter(out),
            Key::Interrupt => {
                self.screen.finish(out);
                out.extend_from_slice(b"^C\n");
                Event::Interrupted
            }
            Key::EndOfInput if self.line.is_empty() => {
                out.push(b'\n');
                Event::End
            }
            Key::Tab => Event::Complete,
            _ => {
                if self.edit(key, out) {
                    self.refresh(out);
                } else {
                    out.push(BELL);
                }
                Event::Nothing
            }
        }
    }

    fn enter(&mut self, out: &mut Vec<u8>) -> Event {
        self.screen.finish(out);
        out.push(b'\n');
        let line = self.line();
        self.history.add(&line);
        Event::Line(line)
    }

    /// Applies a key to the line. Returns whether that was possible.
    fn edit(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        let length = self.line.len();
        match key {
            Key::Char(_) if length >= MAX_LINE => return false,
            Key::Char(character) => {
                self.line.insert(self.cursor, character);
                self.cursor += 1;
            }
            Key::Backspace if self.cursor > 0 => self.delete(self.cursor - 1, self.cursor),
            Key::Delete | Key::EndOfInput if self.cursor < length => self.delete(self.cursor, self.cursor + 1),
            Key::Left if self.cursor > 0 => self.cursor -= 1,
            Key::Right if self.cursor < length => self.cursor += 1,
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = length,
            Key::WordLeft => self.cursor = self.word_start(),
            Key::WordRight => self.cursor = self.word_end(),
            Key::KillToEnd => self.line.truncate(self.cursor),
            Key::KillToStart => self.delete(0, self.cursor),
            Key::KillWord => self.delete(self.word_start(), self.cursor),
            Key::Up => {
                let older = self.history.older(&self.line()).map(String::from);
                return older.is_some_and(|line| self.replace(&line));
            }
            Key::Down => {
                let newer = self.history.newer().map(String::from);
                return newer.is_some_and(|line| self.replace(&line));
            }
            Key::ClearScreen => {
                out.extend_from_slice(b"\x1b[H\x1b[2J");
                self.screen.show_prompt(self.prompt, out);
            }
            Key::CursorColumn(_) => {}
            _ => return false,
        }
        true
    }

    fn replace(&mut self, line: &str) -> bool {
        self.line = line.chars().collect();
        self.cursor = self.line.len();
        true
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.line.drain(from..to);
        self.cursor = from;
    }

    /// Returns the start of the word before the cursor.
    fn word_start(&self) -> usize {
        let before = &self.line[..self.cursor];
        let word_end = before.iter().rposition(|&character| character != ' ').map_or(0, |last| last + 1);
        before[..word_end].iter().rposition(|&character| character == ' ').map_or(0, |space| space + 1)
    }

    /// Returns the end of the word after the cursor.
    fn word_end(&self) -> usize {
        let from = |start: usize, wanted: fn(&char) -> bool| {
            self.line[start..].iter().position(wanted).map_or(self.line.len(), |offset| start + offset)
        };
        let word = from(self.cursor, |&character| character != ' ');
        from(word, |&character| character == ' ')
    }

    /// Makes the terminal show the line, once it is known where it wraps.
    fn refresh(&mut self, out: &mut Vec<u8>) {
        let is_long = self.screen.length().max(self.prompt.len() + self.line.len()) >= NARROW;
        if is_long && self.screen.columns().is_none() && !self.screen.is_appended(&self.line, self.cursor) {
            self.asked_columns = true;
            out.extend_from_slice(ASK_COLUMNS);
        } else {
            self.screen.show(&self.line, self.cursor, out);
        }
    }

    /// Completes the line after [`Event::Complete`]. If there is nothing to add, the first Tab rings the bell and the
    /// second shows the choices.
    pub fn complete(&mut self, completion: &Completion, out: &mut Vec<u8>) {
        let before = self.before_cursor();
        let kept = before.len().saturating_sub(completion.replaces);
        let replaced = before.get(kept..).unwrap_or("");
        if replaced != completion.text && completion.text.chars().count() + self.line.len() <= MAX_LINE {
            let from = self.cursor - replaced.chars().count();
            self.line.splice(from..self.cursor, completion.text.chars());
            self.cursor = from + completion.text.chars().count();
            self.tabbed = false;
            self.refresh(out);
        } else if self.tabbed && !completion.choices.is_empty() {
            self.screen.finish(out);
            out.push(b'\n');
            list(&completion.choices, out);
            self.screen.show_prompt(self.prompt, out);
            self.refresh(out);
        } else {
            self.tabbed = true;
            out.push(BELL);
        }
    }
}

/// Writes words in columns.
fn list(words: &[String], out: &mut Vec<u8>) {
    let width = words.iter().map(|word| word.chars().count()).max().unwrap_or(0) + 2;
    let per_row = (USUAL_COLUMNS / width).max(1);
    for row in words.chunks(per_row) {
        for (index, word) in row.iter().enumerate() {
            out.extend_from_slice(word.as_bytes());
            if index + 1 < row.len() {
                out.extend(core::iter::repeat_n(b' ', width - word.chars().count()));
            }
        }
        out.push(b'\n');
    }
}
