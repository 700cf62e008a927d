//! Typed requests to the console server.

use tench_abi::layout::slot;
use tench_protocol::{call, call_words};
use tench_sys::{Cap, Endpoint, Message, Notification};

use crate::Failure;
use crate::protocol::{Label, MAX_TEXT, Mode};

/// The console server.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    endpoint: Cap<Endpoint>,
}

impl Console {
    /// Standard input and output as every process finds them.
    pub const STANDARD: Console = Console { endpoint: Cap::new(slot::CONSOLE) };

    /// The console server behind an endpoint.
    pub const fn at(endpoint: Cap<Endpoint>) -> Console {
        Console { endpoint }
    }

    /// Writes text of any length. Each [`MAX_TEXT`] bytes of it stay together.
    pub fn write(self, text: &[u8]) -> Result<(), Failure> {
        for part in text.chunks(MAX_TEXT) {
            let mut request = Message::new(Label::Write as u64);
            request.push_text(part);
            call(self.endpoint, &request)?;
        }
        Ok(())
    }

    /// Waits for input and reads as much as is there, at most [`MAX_TEXT`] bytes. 0 is the end of the input.
    pub fn read(self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let max = buffer.len().min(MAX_TEXT);
        let reply = call(self.endpoint, &Message::with_words(Label::Read as u64, &[max as u64]))?;
        let text = reply.reader().text().ok_or(Failure::Malformed)?;
        buffer.get_mut(..text.len()).ok_or(Failure::Malformed)?.copy_from_slice(text);
        Ok(text.len())
    }

    /// Sets the mode.
    pub fn set_mode(self, mode: Mode) -> Result<(), Failure> {
        call_words(self.endpoint, Label::SetMode as u64, [mode as u64, 0, 0, 0]).map(drop)
    }

    /// The mode and the foreground process (0: none).
    pub fn mode(self) -> Result<(Mode, u64), Failure> {
        let [mode, foreground, ..] = call_words(self.endpoint, Label::Mode as u64, [0; 4])?;
        Ok((Mode::from_code(mode).ok_or(Failure::Malformed)?, foreground))
    }

    /// Whether the output so far, of all processes, ends in the middle of a line.
    pub fn is_mid_line(self) -> Result<bool, Failure> {
        let [_, _, mid_line, ..] = call_words(self.endpoint, Label::Mode as u64, [0; 4])?;
        Ok(mid_line != 0)
    }

    /// Sets which process reads (0: every one), and what Ctrl-C signals in canonical mode.
    pub fn set_foreground(self, process: u64, interrupt: Option<Cap<Notification>>) -> Result<(), Failure> {
        let mut request = Message::with_words(Label::SetForeground as u64, &[process]);
        if let Some(notification) = interrupt {
            request.copy_cap(notification);
        }
        call(self.endpoint, &request).map(drop)
    }

    /// Waits until everything written has left for the line.
    pub fn drain(self) -> Result<(), Failure> {
        call_words(self.endpoint, Label::Drain as u64, [0; 4]).map(drop)
    }

    /// A process has ended. Needs the capability without a badge.
    pub fn process_ended(self, process: u64) -> Result<(), Failure> {
        call_words(self.endpoint, Label::ProcessEnded as u64, [process, 0, 0, 0]).map(drop)
    }
}
