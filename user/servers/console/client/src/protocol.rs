//! The console server's interface.

use tench_protocol::{Arrived, Bytes, Caller, Later, Powers, Replies, interface};
use tench_sys::{Instant, Notification};

/// The terminal: text out, text in, and who has it.
#[interface(client = Console, version = 1)]
pub trait ConsoleService {
    /// Writes text. `\n` becomes `\r\n` on the line. Answers when the text is in the server's buffer, which is when
    /// there is room for it. Without the power `terminal`, of the control characters only `\n`, `\t`, `\r` and
    /// backspace reach the terminal; the others are shown, as `^[` for instance, and what is no UTF-8 as U+FFFD. A
    /// character may come in several writes.
    /// Errors: `Full`.
    #[method(1)]
    fn put(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        text: Bytes<'_, MAX_TEXT>,
    ) -> Result<Option<()>, Error>;

    /// Reads at most so many bytes, when there are some: in canonical mode one line with its `\n` (or what fits of it),
    /// in raw mode what has come, at least one byte. The end of the input, Ctrl-D on an empty line, is an answer of 0
    /// bytes. While a foreground process is set, others wait.
    /// Errors: `Interrupted` (Ctrl-C in canonical mode), `Full`.
    #[method(2)]
    fn get(
        &mut self,
        caller: Caller,
        later: Later<'_, Bytes<'static, MAX_TEXT>, Error>,
        max: usize,
    ) -> Result<Option<Bytes<'_, MAX_TEXT>>, Error>;

    /// Sets the mode. Typed text that nobody has read stays, but a Ctrl-C or Ctrl-Z in it that was typed in raw mode
    /// does what it does in canonical mode once that is the mode.
    /// Errors: `NotYours` (somebody else's; or nobody's, without the power `terminal`).
    #[method(3)]
    fn set_mode(&mut self, caller: Caller, powers: Powers, mode: Mode) -> Result<(), Error>;

    /// The mode, the foreground process (0: none), and whether the output so far, of all processes, ends in the middle
    /// of a line.
    #[method(4)]
    fn state(&mut self) -> Result<(Mode, u64, bool), Error>;

    /// Sets which process reads (0: every one); Ctrl-C interrupts reads and does no more. Who asks owns the
    /// terminal from then on. When the process that reads has ended, the owner reads.
    /// Errors: `NotYours` (somebody else's; or nobody's, without the power `terminal`).
    #[method(5)]
    fn set_reader(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error>;

    /// The same; in canonical mode Ctrl-C signals this notification, too.
    /// Errors: `NotYours`.
    #[method(6)]
    fn set_reader_and_signal(
        &mut self,
        caller: Caller,
        powers: Powers,
        process: u64,
        interrupt: Arrived<'_, Notification>,
    ) -> Result<(), Error>;

    /// A process has ended: what it waited for is forgotten, and what it owned is free.
    #[method(7, authority)]
    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<(), Error>;

    /// Waits until everything written so far has left for the line.
    /// Errors: `Full`.
    #[method(8)]
    fn drain(&mut self, caller: Caller, later: Later<'_, (), Error>) -> Result<Option<()>, Error>;

    /// Reads as `get`, and waits until this time at most. The answer may come later if the server works for somebody
    /// else at that time.
    /// Errors: `TimedOut`, `Interrupted`, `Full`.
    #[method(9)]
    fn get_until(
        &mut self,
        caller: Caller,
        later: Later<'_, Bytes<'static, MAX_TEXT>, Error>,
        max: usize,
        deadline: Instant,
    ) -> Result<Option<Bytes<'_, MAX_TEXT>>, Error>;

    /// Until it is set anew which process reads, Ctrl-Z in canonical mode signals this notification; without one it is
    /// a character like others.
    /// Errors: `NotYours`.
    #[method(10)]
    fn set_suspend_signal(
        &mut self,
        caller: Caller,
        powers: Powers,
        suspend: Arrived<'_, Notification>,
    ) -> Result<(), Error>;
}

tench_protocol::codes! {
    /// What the server does with typed characters.
    pub enum Mode {
        /// Lines: echo; backspace, Ctrl-U and Ctrl-W edit; Ctrl-C interrupts; Ctrl-D ends the input;
        /// Ctrl-Z suspends, if somebody set what that is.
        Canonical = 1;
        /// Every byte goes to the reader as it comes, and nothing is echoed.
        Raw = 2;
    }
}

/// Bytes of text in one message.
pub const MAX_TEXT: usize = 448;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// Ctrl-C was typed while the thread waited for input.
        Interrupted = 1, "Ctrl-C was typed";
        /// Too many threads wait.
        Full = 2, "too many threads wait at the console; try again later";
        /// The terminal is another process's; or nobody's, and the process has no power to take it.
        NotYours = 3, "the terminal is another process's, or nobody's and this one has no power to take it";
        /// Nothing was typed in time.
        TimedOut = 4, "nothing was typed in time";
    }
}
