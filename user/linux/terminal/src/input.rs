//! Bytes from the device: what they mean, what of them is kept, and what is echoed.

use crate::characters::to_lower;
use crate::modes::{index, input, local};
use crate::ring::SIZE;
use crate::{Signal, Terminal};

/// Number of received bytes that wait for room at most.
pub(crate) const MAX_RECEIVED: usize = 8192;
/// A byte that marks errors of the line if they are shown, and then stands for itself if it comes twice.
const MARK: u8 = 0xff;

impl Terminal {
    /// Receives bytes from the device. Returns their number, less than all if too many wait for room.
    ///
    /// The echo is in the [output](Terminal::take_output), and signals of keys in the
    /// [signals](Terminal::take_signals).
    pub fn input(&mut self, bytes: &[u8]) -> usize {
        if self.is_hung_up {
            return bytes.len();
        }
        let count = bytes.len().min(self.input_room());
        self.received.extend(&bytes[..count]);
        self.process_received();
        count
    }

    /// Returns how many bytes can be received now.
    pub fn input_room(&self) -> usize {
        MAX_RECEIVED - self.received.len()
    }

    /// Discards received bytes for which there was no room.
    pub fn discard_received(&mut self) {
        self.received.clear();
        self.looked_at = 0;
        self.lacks_room = false;
    }

    /// Goes on with received bytes if some have waited for room.
    pub(crate) fn go_on(&mut self) {
        if core::mem::take(&mut self.lacks_room) {
            self.process_received();
        }
    }

    fn process_received(&mut self) {
        while !self.received.is_empty() {
            let count = self.process_while_there_is_room();
            self.looked_at = self.looked_at.saturating_sub(count);
            self.look_ahead();
            if count == 0 {
                break;
            }
        }
    }

    /// Lets the keys that stop and start output act, although there is no room for what comes before them.
    fn look_ahead(&mut self) {
        let count = self.received.len() - self.looked_at;
        self.looked_ahead += count;
        if self.modes.has_input(input::IXON) {
            for at in self.looked_at..self.received.len() {
                self.control_flow(self.received[at], false);
            }
        }
        self.looked_at += count;
    }

    /// Processes received bytes. Returns their number.
    fn process_while_there_is_room(&mut self) -> usize {
        let mut all = 0;
        loop {
            let parts = if self.modes.has_input(input::PARMRK) { 3 } else { 1 };
            let mut room = self.lines.room(parts);
            if room == 0 {
                // A line that is too long can still be edited and ended: its last byte is replaced.
                let can_be_edited = self.modes.has_local(local::ICANON) && self.lines.canonical == self.lines.tail;
                if can_be_edited {
                    self.lines.head = self.lines.head.min(self.lines.tail + SIZE - 1);
                }
                room = usize::from(can_be_edited);
                self.lacks_room = !can_be_edited;
            }
            let count = room.min(self.received.len());
            if count == 0 {
                return all;
            }
            self.process(count);
            all += count;
        }
    }

    /// Processes so many received bytes, for which there is room.
    fn process(&mut self, count: usize) {
        let looked_ahead = self.looked_ahead.min(count);
        let strips = self.modes.has_input(input::ISTRIP)
            || self.modes.has_input(input::IUCLC) && self.modes.has_local(local::IEXTEN);
        let is_raw = self.modes.is_raw() || self.modes.has_local(local::EXTPROC) && !strips;
        for at in 0..count {
            let Some(byte) = self.received.pop_front() else { break };
            if is_raw {
                self.lines.push(byte);
            } else {
                self.process_byte(byte, at < looked_ahead);
            }
        }
        if !is_raw {
            self.echo.flush(&mut self.output, &self.modes);
        }
        self.looked_ahead = self.looked_ahead.saturating_sub(looked_ahead);
        if !self.modes.reads_lines() {
            self.lines.committed = self.lines.head;
        }
    }

    fn process_byte(&mut self, byte: u8, was_looked_at: bool) {
        let is_literal = core::mem::take(&mut self.is_next_literal);
        let mut byte = byte;
        if self.modes.has_input(input::ISTRIP) {
            byte &= 0x7f;
        }
        if self.modes.has_input(input::IUCLC) && self.modes.has_local(local::IEXTEN) {
            byte = to_lower(byte);
        }
        if is_literal {
            self.ordinary(byte);
        } else if self.modes.has_local(local::EXTPROC) {
            self.lines.push(byte);
        } else if self.special[usize::from(byte)] {
            self.special(byte, was_looked_at);
        } else {
            self.ordinary(byte);
        }
    }

    /// Starts stopped output if any key does so.
    fn start_by_any_key(&mut self) {
        let starts = self.modes.has_input(input::IXON) && self.modes.has_input(input::IXANY);
        if starts && self.output.is_stopped {
            self.start();
        }
    }

    fn start(&mut self) {
        self.output.start();
        self.echo.process(&mut self.output, &self.modes);
    }

    fn commit_echo(&mut self) {
        self.echo.commit(&mut self.output, &self.modes);
    }

    /// Receives a byte without a meaning.
    fn ordinary(&mut self, byte: u8) {
        self.start_by_any_key();
        if self.modes.has_local(local::ECHO) {
            self.finish_erasing();
            if self.lines.is_new_line() {
                self.echo.set_line();
            }
            self.echo.character(byte, &self.modes);
            self.commit_echo();
        }
        self.push_marked(byte);
    }

    /// Keeps a byte, twice if one could be taken for a mark.
    fn push_marked(&mut self, byte: u8) {
        self.double_mark(byte);
        self.lines.push(byte);
    }

    fn double_mark(&mut self, byte: u8) {
        if byte == MARK && self.modes.has_input(input::PARMRK) {
            self.lines.push(byte);
        }
    }

    /// Receives a byte that may have a meaning.
    fn special(&mut self, byte: u8, was_looked_at: bool) {
        if self.modes.has_input(input::IXON) && self.control_flow(byte, was_looked_at) || self.raise(byte) {
            return;
        }
        self.start_by_any_key();
        let has = |flag| self.modes.has_input(flag);
        let byte = match byte {
            b'\r' if has(input::IGNCR) => return,
            b'\r' if has(input::ICRNL) => b'\n',
            b'\n' if has(input::INLCR) => b'\r',
            byte => byte,
        };
        if self.modes.has_local(local::ICANON) && self.edit(byte) {
            return;
        }
        if self.modes.has_local(local::ECHO) {
            self.finish_erasing();
            if byte == b'\n' {
                self.echo.raw(byte);
            } else {
                if self.lines.is_new_line() {
                    self.echo.set_line();
                }
                self.echo.character(byte, &self.modes);
            }
            self.commit_echo();
        }
        self.push_marked(byte);
    }

    /// Stops or starts output. Returns whether the byte is a key for that.
    fn control_flow(&mut self, byte: u8, was_looked_at: bool) -> bool {
        let starts = self.modes.is(byte, index::VSTART);
        let is_key = starts || self.modes.is(byte, index::VSTOP);
        if is_key && !was_looked_at {
            if starts {
                self.start();
            } else {
                self.output.stop();
            }
        }
        is_key
    }

    /// Raises a signal. Returns whether the byte is a key for that.
    fn raise(&mut self, byte: u8) -> bool {
        let keys = [(index::VINTR, Signal::Interrupt), (index::VQUIT, Signal::Quit), (index::VSUSP, Signal::Suspend)];
        let found = keys.into_iter().find(|(index, _)| self.modes.is(byte, *index));
        let Some((_, signal)) = found.filter(|_| self.modes.has_local(local::ISIG)) else { return false };
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
        if !self.modes.has_local(local::NOFLSH) {
            self.echo.clear();
            self.output.clear();
            self.clear_lines();
        }
        if self.modes.has_input(input::IXON) {
            self.output.start();
        }
        if self.modes.has_local(local::ECHO) {
            self.echo.character(byte, &self.modes);
            self.commit_echo();
        } else {
            self.echo.process(&mut self.output, &self.modes);
        }
        true
    }

    /// Edits or ends the line. Returns whether the byte is a key for that.
    fn edit(&mut self, byte: u8) -> bool {
        let is = |index| self.modes.is(byte, index);
        let is_extended = self.modes.has_local(local::IEXTEN);
        let is_echoed = self.modes.has_local(local::ECHO);
        if is(index::VERASE) || is(index::VKILL) || is_extended && is(index::VWERASE) {
            self.erase(byte);
            self.commit_echo();
        } else if is_extended && is(index::VLNEXT) {
            self.take_next_literally();
        } else if is_extended && is_echoed && is(index::VREPRINT) {
            self.reprint(byte);
        } else if byte == b'\n' {
            if self.modes.has_local(local::ECHO | local::ECHONL) {
                self.echo.raw(byte);
                self.commit_echo();
            }
            self.lines.end_line(byte);
        } else if is(index::VEOF) {
            self.lines.end_file();
        } else if is(index::VEOL) || is_extended && is(index::VEOL2) {
            if is_echoed {
                if self.lines.is_new_line() {
                    self.echo.set_line();
                }
                self.echo.character(byte, &self.modes);
                self.commit_echo();
            }
            self.double_mark(byte);
            self.lines.end_line(byte);
        } else {
            return false;
        }
        true
    }

    fn take_next_literally(&mut self) {
        self.is_next_literal = true;
        if self.modes.has_local(local::ECHO) {
            self.finish_erasing();
            if self.modes.has_local(local::ECHOCTL) {
                self.echo.raw(b'^');
                self.echo.raw(0x08);
                self.commit_echo();
            }
        }
    }

    /// Echoes the line again.
    fn reprint(&mut self, key: u8) {
        self.finish_erasing();
        self.echo.character(key, &self.modes);
        self.echo.raw(b'\n');
        for position in self.lines.canonical..self.lines.head {
            self.echo.character(self.lines.get(position), &self.modes);
        }
        self.commit_echo();
    }
}
