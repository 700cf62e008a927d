//! Conveniences on top of the requests.

use tench_abi::layout::slot;
use tench_procs_interface::Standing;
use tench_protocol::again;
use tench_protocol::transport::Until;
use tench_sys::{Cap, Error as KernelError, Instant, Notification};

use crate::Failure;
use crate::protocol::{Console, Error, MAX_TEXT};

impl Console<Standing> {
    /// The console, in the slot where every process finds it.
    pub const STANDARD: Console<Standing> = Console::at(Standing(slot::CONSOLE));

    /// Writes text of any length. Each [`MAX_TEXT`] bytes of it stay together. If the server is restarted meanwhile,
    /// text under way may appear twice, but is not lost.
    pub fn write(self, text: &[u8]) -> Result<(), Failure> {
        text.chunks(MAX_TEXT).try_for_each(|part| again(|| self.put(part)))
    }

    /// Waits for input and reads as much as is there, at most [`MAX_TEXT`] bytes. 0 is the end of the input.
    pub fn read(self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let text = again(|| self.get(buffer.len().min(MAX_TEXT)))?;
        buffer.get_mut(..text.len()).ok_or(Failure::Malformed)?.copy_from_slice(&text);
        Ok(text.len())
    }

    /// Reads until a deadline. Returns `None` if nothing came in time. If the server is kept from replying then, the
    /// kernel ends the wait a few milliseconds later; input that comes from another core's console at that very moment
    /// is lost.
    pub fn read_until(self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, Failure> {
        let limited = Console::at(Until::with_margin(self.way(), deadline));
        let text = match again(|| limited.get_until(buffer.len().min(MAX_TEXT), deadline)) {
            Err(Failure::Refused(Error::TimedOut) | Failure::Lost(KernelError::TimedOut)) => return Ok(None),
            text => text?,
        };
        buffer.get_mut(..text.len()).ok_or(Failure::Malformed)?.copy_from_slice(&text);
        Ok(Some(text.len()))
    }

    /// Returns whether the output so far, of all processes, ends in the middle of a line.
    pub fn is_mid_line(self) -> Result<bool, Failure> {
        Ok(self.state()?.2)
    }

    /// Sets which process reads (0: every one), and what Ctrl-C signals in canonical mode.
    pub fn set_foreground(self, process: u64, interrupt: Option<Cap<Notification>>) -> Result<(), Failure> {
        again(|| match interrupt {
            Some(notification) => self.set_reader_and_signal(process, notification),
            None => self.set_reader(process),
        })
    }
}
