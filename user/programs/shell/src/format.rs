//! Numbers and tables for people.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// A number with commas between groups of three digits.
#[derive(Clone, Copy, Debug)]
pub struct Grouped(pub u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// A number of bytes in the largest unit that leaves at least one before the point.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let Some((bits, unit)) = units.into_iter().find(|&(bits, _)| self.0 >> bits != 0) else {
            return f.pad(&format!("{} B", self.0));
        };
        let whole = self.0 >> bits;
        let tenths = ((self.0 & ((1 << bits) - 1)) * 10) >> bits;
        let text = if tenths == 0 { format!("{whole} {unit}") } else { format!("{whole}.{tenths} {unit}") };
        f.pad(&text)
    }
}

/// Ticks of a counter as time.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Number of ticks.
    pub ticks: u64,
    /// Ticks in a second.
    pub per_second: u64,
}

impl Time {
    fn micros(self) -> u128 {
        u128::from(self.ticks) * 1_000_000 / u128::from(self.per_second.max(1))
    }
}

impl fmt::Display for Time {
    /// `12.345 ms`, `3.210 s`, `2 min 3 s`, `1 d 2 h 3 min`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.micros();
        let (millis, seconds) = (micros / 1_000, micros / 1_000_000);
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
        let text = match seconds {
            _ if micros < 1_000 => format!("{micros} µs"),
            0 => format!("{millis}.{:03} ms", micros % 1_000),
            1..60 => format!("{seconds}.{:03} s", millis % 1_000),
            60..3600 => format!("{minutes} min {} s", seconds % 60),
            3600..86_400 => format!("{hours} h {} min", minutes % 60),
            _ => format!("{days} d {} h {} min", hours % 24, minutes % 60),
        };
        f.pad(&text)
    }
}

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// Rows with aligned columns.
#[derive(Debug)]
pub struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with a row of headings.
    pub fn new(columns: &[(&str, Side)]) -> Table {
        let headings = columns.iter().map(|(heading, _)| String::from(*heading)).collect();
        Table { sides: columns.iter().map(|&(_, side)| side).collect(), rows: Vec::from([headings]) }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, entries: [String; N]) {
        self.add(Vec::from(entries));
    }

    /// Adds a row with as many entries as there are columns.
    pub fn add(&mut self, entries: Vec<String>) {
        self.rows.push(entries);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let entries = self.rows.iter().filter_map(|row| row.get(column));
            entries.map(|entry| entry.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.sides.len()).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for ((entry, side), width) in row.iter().zip(&self.sides).zip(&widths) {
                match side {
                    Side::Left => line += &format!("{entry:<width$}  "),
                    Side::Right => line += &format!("{entry:>width$}  "),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
