//! The history of lines.

use alloc::collections::VecDeque;
use alloc::string::String;

/// Maximum number of lines that are kept.
pub const MAX_LINES: usize = 256;

/// Earlier lines, and which of them is shown.
#[derive(Debug, Default)]
pub struct History {
    lines: VecDeque<String>,
    /// Number of lines back; 0 is the line being typed.
    back: usize,
    /// The line being typed before an earlier one was shown.
    draft: String,
}

impl History {
    /// Adds a line, unless it is blank or equal to the last one, and returns to the line being typed.
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

    /// Returns to the line being typed.
    pub fn reset(&mut self) {
        self.back = 0;
    }

    /// Returns the line before the one shown. `current` is what is on the screen.
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

    /// Returns the line after the one shown; after the last, the one that was being typed.
    pub fn newer(&mut self) -> Option<&str> {
        self.back = self.back.checked_sub(1)?;
        if self.back == 0 {
            return Some(&self.draft);
        }
        self.lines.get(self.lines.len() - self.back).map(String::as_str)
    }

    /// Returns all lines, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}
