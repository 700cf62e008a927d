//! The line as the terminal shows it, and the fewest bytes that change what is shown.
//!
//! Appending a character at the end of the line sends only that character, so that a transcript of a typed script reads
//! like what was typed. Every character counts as one column.

use alloc::vec::Vec;

/// The line as the terminal shows it now.
#[derive(Debug, Default)]
pub struct Screen {
    prompt_columns: usize,
    shown: Vec<char>,
    cursor: usize,
    /// Columns of the terminal, if known. If not, the line is assumed to fit into one row.
    columns: Option<usize>,
}

impl Screen {
    /// Begins an empty line with a prompt, at the start of a row.
    pub fn show_prompt(&mut self, prompt: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(prompt.as_bytes());
        self.prompt_columns = prompt.chars().count();
        self.shown.clear();
        self.cursor = 0;
    }

    /// Returns how many columns prompt and line take together.
    pub fn length(&self) -> usize {
        self.prompt_columns + self.shown.len()
    }

    /// Returns the columns of the terminal.
    pub const fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Sets the columns of the terminal.
    pub fn set_columns(&mut self, columns: Option<usize>, out: &mut Vec<u8>) {
        self.columns = columns;
        self.leave_margin(out);
    }

    /// Returns whether `line` with the cursor behind it can be shown by sending only what was added at its end.
    pub fn is_appended(&self, line: &[char], cursor: usize) -> bool {
        self.cursor == self.shown.len() && cursor == line.len() && line.starts_with(&self.shown)
    }

    /// Shows `line` with the cursor before its character `cursor`.
    pub fn show(&mut self, line: &[char], cursor: usize, out: &mut Vec<u8>) {
        let same = self.shown.iter().zip(line).take_while(|(old, new)| old == new).count();
        if same < self.shown.len().max(line.len()) {
            self.move_to(same, out);
            let mut bytes = [0; 4];
            for character in &line[same..] {
                out.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
            }
            let rows_before = self.row_and_column(self.shown.len()).0;
            let is_shorter = line.len() < self.shown.len();
            self.shown.clear();
            self.shown.extend_from_slice(line);
            self.cursor = line.len();
            self.leave_margin(out);
            if is_shorter {
                let is_one_row = rows_before == self.row_and_column(self.cursor).0;
                out.extend_from_slice(if is_one_row { b"\x1b[K" } else { b"\x1b[J" });
            }
        }
        self.move_to(cursor, out);
    }

    /// Moves the cursor behind the line, for other output to be written below.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.move_to(self.shown.len(), out);
    }

    /// Returns the row (from the prompt's) and column of a character of the line.
    fn row_and_column(&self, index: usize) -> (usize, usize) {
        let column = self.prompt_columns + index;
        self.columns.map_or((0, column), |columns| (column / columns, column % columns))
    }

    /// Leaves the right margin: a terminal that has filled its last column goes to the next row only with the next
    /// character. A space, which the next character replaces, moves the cursor to where
    /// [`row_and_column`](Self::row_and_column) says it is.
    fn leave_margin(&self, out: &mut Vec<u8>) {
        if self.cursor == self.shown.len() && self.row_and_column(self.cursor).1 == 0 && self.length() > 0 {
            out.extend_from_slice(b" \r");
        }
    }

    fn move_to(&mut self, index: usize, out: &mut Vec<u8>) {
        let (old_row, old_column) = self.row_and_column(self.cursor);
        let (new_row, new_column) = self.row_and_column(index);
        self.cursor = index;
        let mut column = old_column;
        if new_row != old_row {
            let (rows, direction) =
                if new_row < old_row { (old_row - new_row, b'A') } else { (new_row - old_row, b'B') };
            control(rows, direction, out);
            out.push(b'\r');
            column = 0;
        }
        match new_column {
            0 if column > 4 => out.push(b'\r'),
            _ if new_column < column && column - new_column <= 4 => {
                out.extend(core::iter::repeat_n(b'\x08', column - new_column));
            }
            _ if new_column < column => control(column - new_column, b'D', out),
            _ if new_column > column => control(new_column - column, b'C', out),
            _ => {}
        }
    }
}

/// Writes `ESC [ count last`.
fn control(count: usize, last: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[");
    if count != 1 {
        out.extend_from_slice(alloc::format!("{count}").as_bytes());
    }
    out.push(last);
}
