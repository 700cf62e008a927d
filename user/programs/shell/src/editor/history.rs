//! The lines of earlier.

use alloc::collections::VecDeque;
use alloc::string::String;

/// Lines that are kept.
pub const MAX_LINES: usize = 256;

/// Earlier lines, and which of them is being looked at.
#[derive(Debug, Default)]
pub struct History {
    lines: VecDeque<String>,
    /// How many lines back; 0 is the line being typed.
    back: usize,
    /// What was being typed before looking back.
    draft: String,
}

impl History {
    /// Adds a line, unless it is blank or the same as the last one, and looks at no earlier line any more.
    pub fn add(&mut self, line: &str) {
        self.back = 0;
        if line.trim().is_empty() || self.lines.back().is_some_and(|last| last == line) {
            return;
        }
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(String::from(line));
    }

    /// Looks at no earlier line any more.
    pub fn reset(&mut self) {
        self.back = 0;
    }

    /// The line before the one looked at. `current` is what is on the screen.
    pub fn older(&mut self, current: &str) -> Option<&str> {
        if self.back == self.lines.len() {
            return None;
        }
        if self.back == 0 {
            self.draft = String::from(current);
        }
        self.back += 1;
        self.lines.get(self.lines.len() - self.back).map(String::as_str)
    }

    /// The line after the one looked at, at last the one that was being typed.
    pub fn newer(&mut self) -> Option<&str> {
        self.back = self.back.checked_sub(1)?;
        if self.back == 0 {
            return Some(&self.draft);
        }
        self.lines.get(self.lines.len() - self.back).map(String::as_str)
    }

    /// All lines, the oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}
