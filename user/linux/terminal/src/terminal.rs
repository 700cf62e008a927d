//! A terminal, and what processes do with it besides reading.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench_linux_calls::Errno;

use crate::echo::Echo;
use crate::input::MAX_RECEIVED;
use crate::lines::Lines;
use crate::modes::{Modes, control, index, input, local};
use crate::output::{LIMIT, Output};
use crate::ring::SIZE;

/// Number of bytes that a write puts out in one piece.
const PIECE: usize = 2048;

/// A signal for the foreground process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGINT`.
    Interrupt,
    /// `SIGQUIT`.
    Quit,
    /// `SIGTSTP`.
    Suspend,
}

impl Signal {
    /// Returns the signal's number.
    pub const fn number(self) -> u32 {
        match self {
            Signal::Interrupt => 2,
            Signal::Quit => 3,
            Signal::Suspend => 20,
        }
    }
}

/// The size of a terminal's window: Linux's `struct winsize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSize {
    /// Number of rows.
    pub rows: u16,
    /// Number of columns.
    pub columns: u16,
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
}

/// An action of `tcflow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Output stops: `TCOOFF`.
    StopOutput,
    /// Output starts: `TCOON`.
    StartOutput,
    /// The device is told to stop: `TCIOFF`.
    StopInput,
    /// The device is told to start: `TCION`.
    StartInput,
}

/// Readiness for what could wait, for `poll`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// There is input: `POLLIN` and `POLLRDNORM`.
    pub is_readable: bool,
    /// There is room for output: `POLLOUT` and `POLLWRNORM`.
    pub is_writable: bool,
    /// The device is gone: `POLLERR` and `POLLHUP`.
    pub is_hung_up: bool,
}

/// A terminal.
#[derive(Clone, Debug)]
pub struct Terminal {
    pub(crate) modes: Modes,
    /// The bytes with a meaning in these modes.
    pub(crate) special: [bool; 256],
    /// Received bytes for which there was no room.
    pub(crate) received: VecDeque<u8>,
    /// Number of received bytes whose keys for stopping and starting have acted already.
    pub(crate) looked_at: usize,
    /// Number of those bytes as far as the input since the last flush knows.
    pub(crate) looked_ahead: usize,
    /// Set if received bytes wait until something is read.
    pub(crate) lacks_room: bool,
    pub(crate) lines: Lines,
    pub(crate) is_next_literal: bool,
    /// Set if what is erased is being shown between `\` and `/`.
    pub(crate) is_erasing: bool,
    pub(crate) echo: Echo,
    pub(crate) output: Output,
    pub(crate) signals: Vec<Signal>,
    pub(crate) is_hung_up: bool,
    window: WindowSize,
    foreground: Option<u32>,
    session: Option<u32>,
}

impl Terminal {
    /// Number of bytes that a terminal takes beside its own record. It never takes more.
    pub const BUFFERS: usize = MAX_RECEIVED + LIMIT + 3 * SIZE;

    /// Makes a terminal.
    pub fn new(modes: Modes) -> Terminal {
        Terminal {
            modes,
            special: modes.special(),
            received: VecDeque::with_capacity(MAX_RECEIVED),
            looked_at: 0,
            looked_ahead: 0,
            lacks_room: false,
            lines: Lines::new(),
            is_next_literal: false,
            is_erasing: false,
            echo: Echo::new(),
            output: Output::new(),
            signals: Vec::new(),
            is_hung_up: false,
            window: WindowSize::default(),
            foreground: None,
            session: None,
        }
    }

    /// Returns the modes.
    pub const fn modes(&self) -> &Modes {
        &self.modes
    }

    /// Sets the modes. Bytes always have eight bits without parity, and are received.
    ///
    /// Input that was not read stays. If it becomes canonical, it is a line.
    pub fn set_modes(&mut self, modes: Modes) {
        let old = core::mem::replace(&mut self.modes, modes);
        self.modes.control = modes.control & !(control::CSIZE | control::PARENB) | control::CS8 | control::CREAD;
        self.special = modes.special();
        if (old.local ^ modes.local) & (local::ICANON | local::EXTPROC) != 0 {
            self.lines.convert(modes.has_local(local::ICANON));
            self.is_erasing = false;
            self.is_next_literal = false;
        }
        let had_keys = old.has_input(input::IXON) && !modes.has_input(input::IXON);
        if had_keys && !self.output.is_stopped_by_call {
            self.output.start();
            self.echo.process(&mut self.output, &self.modes);
        }
    }

    /// Discards input that was not read: `TCIFLUSH`. Received bytes for which there was no room now follow.
    pub fn flush_input(&mut self) {
        self.clear_lines();
        self.go_on();
    }

    pub(crate) fn clear_lines(&mut self) {
        self.lines.clear();
        self.is_erasing = false;
        self.looked_ahead = 0;
    }

    /// Discards output that the device has not taken: `TCOFLUSH`.
    pub fn flush_output(&mut self) {
        self.output.clear();
    }

    /// Stops or starts output or the device.
    pub fn control_flow_by_call(&mut self, flow: Flow) {
        match flow {
            Flow::StopOutput => {
                self.output.is_stopped_by_call = true;
                self.output.stop();
            }
            Flow::StartOutput => {
                if core::mem::take(&mut self.output.is_stopped_by_call) {
                    self.output.start();
                }
            }
            Flow::StopInput => self.send_key(index::VSTOP),
            Flow::StartInput => self.send_key(index::VSTART),
        }
    }

    /// Puts out a special character even if a key has stopped output.
    fn send_key(&mut self, index: usize) {
        let key = self.modes.characters[index];
        if key == 0 {
            return;
        }
        let was_stopped = self.output.is_stopped;
        self.output.start();
        if self.output.room() > 0 {
            self.output.put(key);
        }
        self.output.is_stopped = was_stopped;
    }

    /// Writes bytes. Returns the number of those that have gone out; for the others there is no room, or the output is
    /// stopped.
    ///
    /// # Errors
    /// `EIO` if the terminal is hung up.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.is_hung_up {
            return Err(Errno::EIO);
        }
        let mut written = 0;
        loop {
            self.echo.process(&mut self.output, &self.modes);
            let end = bytes.len().min(written + PIECE);
            while written < end && self.output.write(bytes[written], &self.modes) {
                written += 1;
            }
            if written < end || written == bytes.len() {
                return Ok(written);
            }
        }
    }

    /// Takes the output and the echo for the device.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.output.take()
    }

    /// Moves output and echo to the device, which keeps at most `limit` bytes. Returns the number of those that moved.
    pub fn move_output(&mut self, into: &mut VecDeque<u8>, limit: usize) -> usize {
        self.output.move_to(into, limit)
    }

    /// Returns the number of bytes of output that the device has not taken.
    pub fn waiting_output(&self) -> usize {
        self.output.waiting()
    }

    /// Takes the signals that keys have raised since the last time, each once.
    pub fn take_signals(&mut self) -> Vec<Signal> {
        core::mem::take(&mut self.signals)
    }

    /// Returns the number of bytes that can be read: `FIONREAD`.
    pub fn readable_bytes(&self) -> usize {
        if self.modes.reads_lines() { self.lines.count_canonical() } else { self.lines.count() }
    }

    /// Returns the number of received bytes that wait until something is read.
    pub fn waiting_input(&self) -> usize {
        self.received.len()
    }

    /// Returns what can be done without waiting.
    pub fn readiness(&self) -> Readiness {
        let (minimum, time) = (self.modes.characters[index::VMIN], self.modes.characters[index::VTIME]);
        let count = if time == 0 && minimum != 0 { usize::from(minimum) } else { 1 };
        let is_hung_up = self.is_hung_up;
        Readiness {
            is_readable: is_hung_up || self.has_input(count),
            is_writable: is_hung_up || self.output.room() > 0,
            is_hung_up,
        }
    }

    /// Returns whether output is stopped.
    pub const fn is_stopped(&self) -> bool {
        self.output.is_stopped
    }

    /// Hangs up: the device is gone. Reads then meet the end of a file, and writes fail.
    pub fn hang_up(&mut self) {
        self.discard_received();
        self.clear_lines();
        self.echo.clear();
        self.output.clear();
        self.is_hung_up = true;
    }

    /// Returns whether the terminal is hung up.
    pub const fn is_hung_up(&self) -> bool {
        self.is_hung_up
    }

    /// Returns the size of the window.
    pub const fn window(&self) -> WindowSize {
        self.window
    }

    /// Sets the size of the window. Returns whether it has changed, of which the foreground process group is told by
    /// `SIGWINCH`.
    pub fn set_window(&mut self, window: WindowSize) -> bool {
        core::mem::replace(&mut self.window, window) != window
    }

    /// Returns the number of the foreground process group.
    pub const fn foreground(&self) -> Option<u32> {
        self.foreground
    }

    /// Sets the foreground process group.
    pub fn set_foreground(&mut self, group: Option<u32>) {
        self.foreground = group;
    }

    /// Returns the number of the session whose terminal this is.
    pub const fn session(&self) -> Option<u32> {
        self.session
    }

    /// Sets the session.
    pub fn set_session(&mut self, session: Option<u32>) {
        self.session = session;
    }
}
