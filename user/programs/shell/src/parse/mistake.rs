//! Syntax errors of a line.

use core::fmt;

use super::Standard;

/// A syntax error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A quotation mark without its partner.
    OpenQuote(char),
    /// A backslash with nothing behind it.
    Backslash,
    /// Nothing before `&`.
    BeforeAmpersand,
    /// Nothing before `;`.
    BeforeSemicolon,
    /// Nothing before the first `|`.
    BeforePipe,
    /// Nothing after a `|`.
    AfterPipe,
    /// `&&`.
    DoubleAmpersand,
    /// `||`.
    DoublePipe,
    /// `<<`.
    DoubleLess,
    /// A number directly before this operator that is not a stream's.
    Number(char),
    /// `>&` that is not part of `2>&1`.
    Copy,
    /// A redirection without a file.
    NoFile(Standard),
    /// A redirection without anything to run.
    NothingToRedirect(Standard),
    /// Two redirections of the same stream.
    Twice(Standard),
    /// A stream with a pipe and a redirection.
    PipeAndFile(Standard),
}

/// Returns the operator that redirects a stream.
const fn operator(stream: Standard) -> &'static str {
    match stream {
        Standard::Input => "<",
        Standard::Output => ">",
        Standard::Errors => "2>",
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Mistake::OpenQuote(mark) => {
                return write!(f, "the closing {mark} is missing; write \\{mark} for the character itself");
            }
            Mistake::NoFile(stream) => {
                let operator = operator(stream);
                return write!(f, "the file after {operator} is missing; write COMMAND {operator} FILE");
            }
            Mistake::NothingToRedirect(stream) => {
                let operator = operator(stream);
                return write!(f, "nothing to run beside {operator}; write COMMAND {operator} FILE");
            }
            Mistake::Number(mark) => {
                return write!(
                    f,
                    "<, > and 2> can be redirected, and no other number; write a space before {mark} if the number is \
                     an argument"
                );
            }
            Mistake::Backslash => "nothing follows the backslash; write \\\\ for the character itself",
            Mistake::BeforeAmpersand => "nothing to run before &; write PROGRAM ARGUMENTS &",
            Mistake::BeforeSemicolon => "nothing to run before the semicolon; write COMMAND ; COMMAND",
            Mistake::BeforePipe => "nothing to run before |; write COMMAND | PROGRAM",
            Mistake::AfterPipe => "nothing to run after |; write COMMAND | PROGRAM",
            Mistake::DoubleAmpersand => "there is no &&; COMMAND ; COMMAND runs one after the other",
            Mistake::DoublePipe => {
                "there is no ||; COMMAND | PROGRAM connects two, COMMAND ; COMMAND runs one after the other"
            }
            Mistake::DoubleLess => "there is no <<; PROGRAM < FILE reads a file",
            Mistake::Copy => "nothing can follow >& but in 2>&1, which sends errors where output goes",
            Mistake::Twice(Standard::Input) => "input is redirected twice; cat FILE FILE | PROGRAM reads several files",
            Mistake::Twice(Standard::Output) => "output is redirected twice; tee FILE FILE writes to several files",
            Mistake::Twice(Standard::Errors) => "errors are redirected twice; write 2> FILE or 2>&1",
            Mistake::PipeAndFile(Standard::Input) => "input comes from | or from a file, not from both",
            Mistake::PipeAndFile(_) => "output goes to | or to a file; tee FILE writes to both",
        };
        f.write_str(text)
    }
}
