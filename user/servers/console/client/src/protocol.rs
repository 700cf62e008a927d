//! What travels between the console server and its clients.
//!
//! A request's label says what is asked, its words are the arguments. A reply's label is 0 for success, otherwise an
//! [`Error`]; its words are the results. *Text* in a message is one word with its length in bytes, and then its bytes,
//! eight to a word, the first in the lowest bits: up to 56 bytes travel in registers.

tench_protocol::codes! {
    /// What can be asked.
    pub enum Label {
        /// **Write**. Words: text of at most [`MAX_TEXT`] bytes. `\n` becomes `\r\n` on the line. Answers when the text
        /// is in the server's buffer, which is when there is room for it.
        Write = 1;
        /// **Read**. Words: how many bytes at most. Answers text, when there is some: in canonical mode one line with
        /// its `\n` (or what fits of it), in raw mode what has come, at least one byte. The end of the input, Ctrl-D on
        /// an empty line, is an answer of 0 bytes. While a foreground process is set, others wait.
        /// Errors: `Interrupted` (Ctrl-C in canonical mode), `Full`.
        Read = 2;
        /// **Set the mode**. Words: [`Mode`]. Typed text that nobody has read stays. Errors: `NotYours`.
        SetMode = 3;
        /// **Mode**. Answers [`Mode`], the foreground process (0: none), and 1 if the output so far ends in the middle of
        /// a line, otherwise 0.
        Mode = 4;
        /// **Set the foreground**: which process reads, and what Ctrl-C does in canonical mode. Words: process (0:
        /// every process reads). With a capability, to a notification, Ctrl-C signals it; without one, it does no more
        /// than to interrupt reads. The first who asks owns the terminal from then on. Errors: `NotYours`.
        SetForeground = 5;
        /// **A process ended**: what it waited for is forgotten, and what it owned is free. Words: process. Needs the
        /// capability without a badge.
        ProcessEnded = 6;
        /// **Drain**: answers when everything written so far has left for the line.
        Drain = 7;
    }
}

tench_protocol::codes! {
    /// What the server does with typed characters.
    pub enum Mode {
        /// Lines: echo; backspace, Ctrl-U and Ctrl-W edit; Ctrl-C interrupts; Ctrl-D ends the input.
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
        /// The label, the number of words or the length of the text is wrong.
        BadRequest = 1, "the console server does not know this request; see its protocol";
        /// Ctrl-C was typed while the thread waited for input.
        Interrupted = 2, "Ctrl-C was typed";
        /// Too many threads wait.
        Full = 3, "too many threads wait at the console; try again later";
        /// Another process owns the terminal.
        NotYours = 4, "another process owns the terminal";
        /// The request needs the capability without a badge.
        NotAllowed = 5, "only the process server may do this";
    }
}
