//! The console server's interface.

use tench_protocol::{Arrived, Bytes, Caller, Later, Powers, Replies, interface};
use tench_sys::{Instant, Notification};

/// The terminal: output, input, and ownership.
#[interface(client = Console, version = 1)]
pub trait ConsoleService {
    /// Writes text. `\n` becomes `\r\n` on the line. The reply comes when the text is in the server's buffer, that is,
    /// when there is room for it. Unless the caller has the power `terminal` or is lent the terminal, the only control
    /// characters that reach it are `\n`, `\t`, `\r` and backspace; the others are shown, as `^[` for instance, and
    /// invalid UTF-8 as U+FFFD. A character may be split over several writes.
    /// Errors: `Full`.
    #[method(1)]
    fn put(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        text: Bytes<'_, MAX_TEXT>,
    ) -> Result<Option<()>, Error>;

    /// Reads at most this many bytes, when there are some: in canonical mode one line with its `\n` (or what fits of
    /// it), in raw mode what has come, at least one byte. The end of the input, Ctrl-D on an empty line, is a reply of
    /// 0 bytes. While a foreground process is set, others wait.
    /// Errors: `Interrupted` (Ctrl-C in canonical mode, or Ctrl-] while the terminal is lent), `Full`.
    #[method(2)]
    fn get(
        &mut self,
        caller: Caller,
        later: Later<'_, Bytes<'static, MAX_TEXT>, Error>,
        max: usize,
    ) -> Result<Option<Bytes<'_, MAX_TEXT>>, Error>;

    /// Sets the mode. Typed text that has not been read stays, but a Ctrl-C or Ctrl-Z in it that was typed in raw mode
    /// has its canonical effect once that is the mode.
    /// Errors: `NotYours` (the terminal is another process's and not lent to the caller; or nobody's, and the caller
    /// lacks the power `terminal`).
    #[method(3)]
    fn set_mode(&mut self, caller: Caller, powers: Powers, mode: Mode) -> Result<(), Error>;

    /// Returns the mode, the foreground process (0: none), and whether the output so far, of all processes, ends in the
    /// middle of a line.
    #[method(4)]
    fn state(&mut self) -> Result<(Mode, u64, bool), Error>;

    /// Sets which process reads (0: every one); Ctrl-C interrupts reads and has no other effect. The caller owns the
    /// terminal from then on. When the process that reads has ended, the owner reads. Either ends what `lend` permits.
    /// Errors: `NotYours` (the terminal is another process's; or nobody's, and the caller lacks the power `terminal`).
    #[method(5)]
    fn set_reader(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error>;

    /// Sets which process reads, as `set_reader` does; in canonical mode Ctrl-C also signals this notification.
    /// Errors: `NotYours`.
    #[method(6)]
    fn set_reader_and_signal(
        &mut self,
        caller: Caller,
        powers: Powers,
        process: u64,
        interrupt: Arrived<'_, Notification>,
    ) -> Result<(), Error>;

    /// Reports that a process has ended: its waits are removed, and what it owned is free.
    #[method(7, authority)]
    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<(), Error>;

    /// Waits until everything written so far has been sent on the line.
    /// Errors: `Full`.
    #[method(8)]
    fn drain(&mut self, caller: Caller, later: Later<'_, (), Error>) -> Result<Option<()>, Error>;

    /// Reads as `get` does, and waits until this time at most. The reply may come later if the server is busy with
    /// other requests at that time.
    /// Errors: `TimedOut`, `Interrupted`, `Full`.
    #[method(9)]
    fn get_until(
        &mut self,
        caller: Caller,
        later: Later<'_, Bytes<'static, MAX_TEXT>, Error>,
        max: usize,
        deadline: Instant,
    ) -> Result<Option<Bytes<'_, MAX_TEXT>>, Error>;

    /// Sets the notification that Ctrl-Z signals in canonical mode, until the next change of the process that reads;
    /// without one it is an ordinary character.
    /// Errors: `NotYours`.
    #[method(10)]
    fn set_suspend_signal(
        &mut self,
        caller: Caller,
        powers: Powers,
        suspend: Arrived<'_, Notification>,
    ) -> Result<(), Error>;

    /// Lends the terminal to the process that reads: until it ends, or the next change of the process that reads, it
    /// may set the mode and write any character, and nothing else of what the owner may. Then the mode is canonical.
    /// Meanwhile Ctrl-] does in both modes what Ctrl-C does in canonical mode; what was typed in raw mode and not read
    /// before it is dropped.
    /// Errors: `NotYours`, `NotReading` (that process does not read, or every one does), `NoSignal` (no notification
    /// is set for Ctrl-C, so Ctrl-] could not take the terminal back).
    #[method(11)]
    fn lend(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error>;
}

tench_protocol::codes! {
    /// Treatment of typed characters.
    pub enum Mode {
        /// Lines: echo; backspace, Ctrl-U and Ctrl-W edit; Ctrl-C interrupts; Ctrl-D ends the input; Ctrl-Z suspends,
        /// if a notification is set for it.
        Canonical = 1;
        /// Every byte goes to the reader as it comes, without echo; but Ctrl-] interrupts while the terminal is lent.
        Raw = 2;
    }
}

/// Maximum number of bytes of text in one message.
pub const MAX_TEXT: usize = 448;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// Ctrl-C was typed while the thread waited for input.
        Interrupted = 1, "Ctrl-C was typed";
        /// Too many threads wait.
        Full = 2, "too many threads wait at the console; try again later";
        /// The terminal is another process's; or nobody's, and the process lacks the power to take it.
        NotYours = 3, "the terminal is another process's, or nobody's and this one has no power to take it";
        /// Nothing was typed in time.
        TimedOut = 4, "nothing was typed in time";
        /// The terminal is lent only to the process that reads.
        NotReading = 5, "the terminal is lent only to the process that reads; make it the reader first";
        /// No notification is set for Ctrl-C, which would take a lent terminal back.
        NoSignal = 6, "nobody would be told to take the terminal back; set the reader with a notification for Ctrl-C first";
    }
}
