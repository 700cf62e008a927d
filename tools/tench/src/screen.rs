//! A terminal's output, line by line.
//!
//! A shell with line editing moves the cursor and rewrites what it wrote. A transcript needs the result: this is the
//! small part of a terminal that line editing needs, and it keeps what has scrolled away.

/// A terminal's current line.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    line: Vec<char>,
    cursor: usize,
    /// Bytes of an unfinished character or escape sequence.
    pending: Vec<u8>,
}

impl Screen {
    /// Shows `bytes`, and returns the lines that they completed.
    pub fn show(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut completed = Vec::new();
        for &byte in bytes {
            if self.pending.first() != Some(&0x1b) && !(0x80..0xc0).contains(&byte) && !self.pending.is_empty() {
                self.pending.clear();
                self.character(char::REPLACEMENT_CHARACTER);
            }
            self.pending.push(byte);
            if self.pending[0] == 0x1b {
                self.escape();
                continue;
            }
            let character = match str::from_utf8(&self.pending) {
                Ok(text) => text.chars().next(),
                Err(error) if error.error_len().is_some() => Some(char::REPLACEMENT_CHARACTER),
                Err(_) => None,
            };
            if character.is_some() {
                self.pending.clear();
            }
            if character == Some('\n') {
                completed.push(self.current().trim_end().to_owned());
                self.line.clear();
                self.cursor = 0;
            } else if let Some(character) = character {
                self.character(character);
            }
        }
        completed
    }

    /// Returns the incomplete line.
    pub fn current(&self) -> String {
        self.line.iter().collect()
    }

    fn character(&mut self, character: char) {
        match character {
            '\r' => self.cursor = 0,
            '\u{8}' => self.cursor = self.cursor.saturating_sub(1),
            '\t' => self.move_to(self.cursor / 8 * 8 + 8),
            _ if character.is_control() => {}
            _ => {
                self.move_to(self.cursor);
                match self.line.get_mut(self.cursor) {
                    Some(place) => *place = character,
                    None => self.line.push(character),
                }
                self.cursor += 1;
            }
        }
    }

    /// Moves the cursor, writing blanks up to it.
    fn move_to(&mut self, column: usize) {
        self.cursor = column;
        if self.line.len() < column {
            self.line.resize(column, ' ');
        }
    }

    /// Executes the escape sequence in `pending` once it is complete.
    fn escape(&mut self) {
        let sequence = self.pending.as_slice();
        let complete = match sequence {
            [_] => false,
            [_, b'[', .., last] => sequence.len() > 2 && (0x40..=0x7e).contains(last),
            [_, b'['] => false,
            _ => true,
        };
        // No sequence is longer than this; anything longer is noise.
        if !complete && sequence.len() < 32 {
            return;
        }
        let sequence = std::mem::take(&mut self.pending);
        if let [_, b'[', parameter @ .., action] = sequence.as_slice() {
            let number: Option<usize> = str::from_utf8(parameter).ok().and_then(|text| text.parse().ok());
            self.control(*action, number);
        }
    }

    fn control(&mut self, action: u8, number: Option<usize>) {
        let distance = number.unwrap_or(1).clamp(1, 1000);
        match action {
            b'C' => self.move_to(self.cursor + distance),
            b'D' => self.cursor = self.cursor.saturating_sub(distance),
            b'G' => self.move_to(distance - 1),
            b'K' if number.unwrap_or(0) == 0 => self.line.truncate(self.cursor),
            b'K' => {
                self.line.clear();
                self.move_to(self.cursor);
            }
            b'P' => {
                let start = self.cursor.min(self.line.len());
                let end = (start + distance).min(self.line.len());
                self.line.drain(start..end);
            }
            b'J' if number == Some(2) => self.line.clear(),
            b'H' => self.cursor = 0,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &str) -> (Vec<String>, String) {
        let mut screen = Screen::default();
        // One byte at a time, as a serial port delivers them.
        let lines = bytes.as_bytes().iter().flat_map(|byte| screen.show(&[*byte])).collect();
        (lines, screen.current())
    }

    #[test]
    fn plain_lines() {
        assert_eq!(shown("one\r\ntwo  \r\nth"), (vec!["one".into(), "two".into()], "th".into()));
    }

    #[test]
    fn editing_shows_its_result() {
        assert_eq!(shown("tench> ehco\x08\x08\x08cho\r\n").0, ["tench> echo"]);
        assert_eq!(shown("tench> ls\r\x1b[Ktench> cat").1, "tench> cat");
        assert_eq!(shown("abc\x1b[2DX\x1b[K").1, "aX");
        assert_eq!(shown("abcdef\r\x1b[1C\x1b[2P").1, "adef");
        assert_eq!(shown("\x1b[1;32mgreen\x1b[0m\x1b[9Gx\x1b[2K").1, "         ");
        assert_eq!(shown("a\tb").1, "a       b");
    }

    #[test]
    fn characters_of_several_bytes() {
        assert_eq!(shown("größer → ok\n").0, ["größer → ok"]);
        let mut screen = Screen::default();
        screen.show(b"a\xff\xfeb\xc3");
        screen.show(b"(c");
        assert_eq!(screen.current(), "a\u{fffd}\u{fffd}b\u{fffd}(c");
    }
}
