//! The log of an instance, in place of Linux's kernel log: the reports to whoever runs the instance.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

/// The most bytes in the log. The oldest lines are dropped.
pub const SIZE: usize = 16 * 1024;
/// The longest line in bytes; the rest of a longer one is lost.
const LONGEST: usize = 1024;

/// The lines, with how far they were taken and cleared.
#[derive(Debug, Default)]
pub struct Log {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Number of lines that were taken.
    taken: usize,
    /// Number of bytes of the next line that were taken.
    part: usize,
    /// Number of lines that were cleared.
    cleared: usize,
}

impl Log {
    /// Adds a line.
    pub fn add(&mut self, now: Duration, text: &str) {
        const WARNING: u32 = 4;
        let (seconds, micros) = (now.as_secs(), now.subsec_micros());
        let mut line = format!("<{WARNING}>[{seconds:5}.{micros:06}] {text}").into_bytes();
        line.truncate(LONGEST - 1);
        line.push(b'\n');
        self.bytes += line.len();
        self.lines.push_back(line.into_boxed_slice());
        while self.bytes > SIZE
            && let Some(oldest) = self.lines.pop_front()
        {
            self.bytes -= oldest.len();
            if self.taken == 0 {
                self.part = 0;
            }
            (self.taken, self.cleared) = (self.taken.saturating_sub(1), self.cleared.saturating_sub(1));
        }
    }

    /// Returns the number of bytes that were not taken.
    pub fn unread(&self) -> usize {
        self.lines.range(self.taken..).map(|line| line.len()).sum::<usize>() - self.part
    }

    /// Takes the oldest bytes that were not taken, at most `most`.
    pub fn take(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < most
            && let Some(line) = self.lines.get(self.taken)
        {
            let rest = &line[self.part..];
            let count = rest.len().min(most - bytes.len());
            bytes.extend_from_slice(&rest[..count]);
            self.part += count;
            if self.part == line.len() {
                (self.taken, self.part) = (self.taken + 1, 0);
            }
        }
        bytes
    }

    /// Returns the last whole lines since the log was cleared, at most `most` bytes.
    pub fn last(&self, most: usize) -> Vec<u8> {
        let mut first = self.lines.len();
        let mut bytes = 0;
        while first > self.cleared && bytes + self.lines[first - 1].len() <= most {
            first -= 1;
            bytes += self.lines[first].len();
        }
        self.lines.range(first..).flat_map(|line| line.iter().copied()).collect()
    }

    /// Clears the log: [`last`](Self::last) returns only later lines.
    pub fn clear(&mut self) {
        self.cleared = self.lines.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(count: usize) -> Log {
        let mut log = Log::default();
        for number in 0..count {
            log.add(Duration::from_micros(number as u64), &format!("line {number}"));
        }
        log
    }

    #[test]
    fn lines_are_taken_once_and_shown_until_they_are_cleared() {
        let mut log = log(2);
        let first = b"<4>[    0.000000] line 0\n";
        assert_eq!(log.unread(), 2 * first.len());
        assert_eq!(log.take(4), b"<4>[");
        assert_eq!(log.take(100), b"    0.000000] line 0\n<4>[    0.000001] line 1\n");
        assert_eq!((log.unread(), log.take(100)), (0, Vec::new()));
        assert_eq!(log.last(100).len(), 2 * first.len());
        assert_eq!(log.last(2 * first.len() - 1), b"<4>[    0.000001] line 1\n");
        log.clear();
        assert_eq!(log.last(100), b"");
        log.add(Duration::from_secs(70), "more");
        assert_eq!(log.last(100), b"<4>[   70.000000] more\n");
    }

    #[test]
    fn the_oldest_lines_give_way() {
        let mut log = log(SIZE);
        let all = log.last(usize::MAX);
        assert!(all.len() <= SIZE && all.len() > SIZE - LONGEST && all.ends_with(b" line 16383\n"));
        assert_eq!(log.unread(), all.len());
        log.take(3);
        for _ in 0..SIZE {
            log.add(Duration::ZERO, "x");
        }
        assert_eq!(log.take(5), b"<4>[ ", "the line that was partly taken has been dropped");
        log.add(Duration::ZERO, &"y".repeat(5000));
        assert_eq!(log.last(LONGEST).len(), LONGEST);
    }
}
