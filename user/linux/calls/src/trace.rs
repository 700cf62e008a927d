//! The text of a call in a trace.

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use crate::contents::{self, Contents, Memory};
use crate::names;
use crate::numbers::AT_FDCWD;
use crate::records::{rlimit, sigaction, stat, timespec, u32_at};
use crate::signature::{Argument, Outcome, Signature};
use crate::text::{address, kept, number, octal, one, set, signal, signed};
use crate::{Errno, Sysno, table};

/// Column at which results begin.
const RESULT_COLUMN: usize = 40;

/// The line of a call.
#[derive(Debug)]
pub struct Trace {
    number: Option<Sysno>,
    arguments: [u64; 6],
    text: String,
    /// Number of arguments that are in the text.
    shown: usize,
}

impl Trace {
    /// Begins the line of a call that is about to be made: shows the arguments up to the first one to whose memory the
    /// call writes.
    pub fn begin(number: u64, arguments: [u64; 6], memory: &dyn Memory) -> Trace {
        let name = usize::try_from(number).ok().and_then(Sysno::new);
        let mut text = String::new();
        match name {
            Some(name) => text.push_str(table::name(name)),
            None => kept(write!(text, "syscall_{number:#x}")),
        }
        text.push('(');
        let mut trace = Trace { number: name, arguments, text, shown: 0 };
        trace.show_arguments(memory, None);
        trace
    }

    /// Returns the text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Ends the line with the call's result, as it is in `x0`. Returns the line.
    pub fn end(mut self, result: u64, memory: &dyn Memory) -> String {
        self.show_arguments(memory, Some(result));
        let result = shown_result(self.outcome(), result);
        self.finish(&result)
    }

    /// Ends the line of a call that does not return. Returns the line.
    pub fn end_without_return(self) -> String {
        self.finish("?")
    }

    fn finish(mut self, result: &str) -> String {
        self.text.push(')');
        let width = RESULT_COLUMN.saturating_sub(1);
        format!("{:width$} = {result}", self.text)
    }

    fn signature(&self) -> Option<&'static Signature> {
        self.number.and_then(table::signature)
    }

    fn outcome(&self) -> Outcome {
        self.signature().map_or(Outcome::Number, |signature| signature.outcome)
    }

    /// Shows further arguments: without a result those that can be shown before the call, with one all.
    fn show_arguments(&mut self, memory: &dyn Memory, result: Option<u64>) {
        let arguments = self.signature().map_or(&[Argument::Number; 6][..], |signature| signature.arguments);
        // `open` has a mode only if it may make a file.
        let creates = self.number != Some(Sysno::openat) || names_a_new_file(self.arguments[2]);
        let count = if creates { arguments.len() } else { 3 };
        while self.shown < count {
            let argument = arguments[self.shown];
            if result.is_none() && argument.is_written() {
                break;
            }
            if self.shown > 0 {
                self.text.push_str(", ");
            }
            let show = Show {
                arguments: &self.arguments,
                index: self.shown,
                memory: Contents(memory),
                result: result.unwrap_or(0),
            };
            self.text.push_str(&show.argument(argument));
            self.shown += 1;
        }
    }
}

fn shown_result(outcome: Outcome, result: u64) -> String {
    match error(result) {
        Some(error) => match error.name() {
            Some(name) => format!("-1 {name}"),
            None => format!("-1 (errno {})", error.into_raw()),
        },
        None => match outcome {
            Outcome::Number => format!("{}", result.cast_signed()),
            Outcome::Address => format!("{result:#x}"),
            Outcome::Octal => octal(result),
            Outcome::Never => "?".into(),
        },
    }
}

/// Returns whether flags of `openat` can make a file.
fn names_a_new_file(flags: u64) -> bool {
    let (create, temporary) = (crate::numbers::open::CREAT, crate::numbers::open::TMPFILE);
    let flags = flags as u32;
    flags & create != 0 || flags & temporary == temporary
}

/// Returns the error that a result reports.
fn error(result: u64) -> Option<Errno> {
    let negated = result.wrapping_neg();
    (1..4096).contains(&negated).then(|| Errno::new(negated as i32))
}

impl Argument {
    /// Returns whether the call writes to the memory to which the argument points.
    fn is_written(self) -> bool {
        match self {
            Argument::Result
            | Argument::ResultString
            | Argument::ResultVectors(_)
            | Argument::ResultTime
            | Argument::ResultSignals
            | Argument::ResultAction
            | Argument::Descriptors
            | Argument::Status
            | Argument::WaitStatus
            | Argument::ResultLimit => true,
            Argument::Descriptor
            | Argument::Directory
            | Argument::Signed
            | Argument::Unsigned
            | Argument::Number
            | Argument::Mode
            | Argument::Flags(_)
            | Argument::Choice(_)
            | Argument::ChoiceWithFlags(..)
            | Argument::Signal
            | Argument::CloneFlags
            | Argument::Address
            | Argument::String
            | Argument::Strings
            | Argument::Bytes(_)
            | Argument::Vectors(_)
            | Argument::Time
            | Argument::Times
            | Argument::Signals
            | Argument::Action
            | Argument::Polled(_)
            | Argument::Limit
            | Argument::SocketAddress => false,
        }
    }
}

/// Everything that is needed to show one argument.
struct Show<'a> {
    arguments: &'a [u64; 6],
    index: usize,
    memory: Contents<'a>,
    /// The call's result; 0 before the call.
    result: u64,
}

impl Show<'_> {
    fn value(&self) -> u64 {
        self.arguments[self.index]
    }

    /// Returns the value of another argument.
    fn other(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or(0)
    }

    /// Returns what a successful call has returned, or 0.
    fn returned(&self) -> u64 {
        if error(self.result).is_some() { 0 } else { self.result }
    }

    fn argument(&self, argument: Argument) -> String {
        let value = self.value();
        let small = value as u32;
        let memory = self.memory;
        match argument {
            Argument::Descriptor => format!("{}", small.cast_signed()),
            Argument::Signed => signed(value),
            Argument::Directory if small.cast_signed() == AT_FDCWD => "AT_FDCWD".into(),
            Argument::Directory => format!("{}", small.cast_signed()),
            Argument::Unsigned => format!("{value}"),
            Argument::Number => number(value),
            Argument::Mode => format!("{:0>3}", octal(value)),
            Argument::Flags(flags) => set(flags, small),
            Argument::Choice(choices) => one(choices, small),
            Argument::ChoiceWithFlags(choices, flags) => {
                let named = flags.names.iter().fold(0, |all, (bits, _)| all | bits);
                let choice = one(choices, small & !named);
                if small & named == 0 { choice } else { format!("{choice}|{}", set(flags, small & named)) }
            }
            Argument::Signal => signal(small),
            Argument::CloneFlags => self.clone_flags(),
            Argument::Address => address(value),
            Argument::String => memory.string(value),
            Argument::Strings => memory.strings(value),
            Argument::Bytes(length) => memory.bytes(value, self.other(length)),
            Argument::Result if self.failed() => address(value),
            Argument::Result => memory.bytes(value, self.returned()),
            Argument::ResultString if self.failed() => address(value),
            Argument::ResultString => memory.string(value),
            Argument::Vectors(count) => memory.vectors(value, self.other(count), u64::MAX),
            Argument::ResultVectors(count) if !self.failed() => {
                memory.vectors(value, self.other(count), self.returned())
            }
            Argument::ResultVectors(_) => address(value),
            Argument::Time => memory.record(value, timespec::SIZE, contents::time),
            Argument::ResultTime => self.result_record(timespec::SIZE, contents::time),
            Argument::Times => memory.record(value, 2 * timespec::SIZE, contents::times),
            Argument::Signals => memory.record(value, 8, contents::signals),
            Argument::ResultSignals => self.result_record(8, contents::signals),
            Argument::Action => memory.record(value, sigaction::SIZE, contents::action),
            Argument::ResultAction => self.result_record(sigaction::SIZE, contents::action),
            Argument::Descriptors => {
                self.result_record(8, |both| format!("[{}, {}]", u32_at(both, 0), u32_at(both, 4)))
            }
            Argument::Status => self.result_record(stat::SIZE, contents::status),
            Argument::WaitStatus if self.returned() == 0 => address(value),
            Argument::WaitStatus => {
                memory.record(value, 4, |word| format!("[{}]", contents::wait_status(u32_at(word, 0))))
            }
            Argument::Polled(count) => memory.polled(value, self.other(count)),
            Argument::Limit => memory.record(value, rlimit::SIZE, contents::limit),
            Argument::ResultLimit => self.result_record(rlimit::SIZE, contents::limit),
            Argument::SocketAddress => memory.socket_address(value, self.other(self.index + 1)),
        }
    }

    fn failed(&self) -> bool {
        error(self.result).is_some()
    }

    /// Shows a record that the call has written, or its address if the call has failed.
    fn result_record(&self, size: usize, show: impl Fn(&[u8]) -> String) -> String {
        if self.failed() { address(self.value()) } else { self.memory.record(self.value(), size, show) }
    }

    fn clone_flags(&self) -> String {
        let flags = self.value() as u32;
        let (bits, last) = (flags & !0xff, flags & 0xff);
        match (bits, last) {
            (_, 0) => set(&names::CLONE, bits),
            (0, _) => signal(last),
            _ => format!("{}|{}", set(&names::CLONE, bits), signal(last)),
        }
    }
}
