//! The text of a call in a trace.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::names::{self, Choices, Flags};
use crate::numbers::{AT_FDCWD, file_type};
use crate::records::{iovec, pollfd, rlimit, sigaction, sockaddr, stat, timespec, u16_at, u32_at, u64_at};
use crate::signature::{Argument, Outcome, Signature};
use crate::{Errno, Sysno, table};

/// Number of bytes of a buffer that are shown.
const SHOWN: usize = 32;
/// Number of strings, vectors and other elements that are shown.
const ELEMENTS: usize = 32;
/// The longest path.
const MAX_PATH: usize = 4096;
/// Column at which results begin.
const RESULT_COLUMN: usize = 40;

/// The memory of a traced program.
pub trait Memory {
    /// Copies as many bytes from an address as are readable there and fit. Returns their number.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;
}

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
            let show = Show { arguments: &self.arguments, index: self.shown, memory, result: result.unwrap_or(0) };
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

/// Writing to a string cannot fail.
fn kept(result: core::fmt::Result) {
    debug_assert!(result.is_ok(), "a string takes everything");
}

/// Returns a number in octal, as C writes it.
fn octal(number: u64) -> String {
    if number == 0 { "0".into() } else { format!("{number:#o}").replacen("0o", "0", 1) }
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
    memory: &'a dyn Memory,
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
            Argument::String => self.string(value),
            Argument::Strings => self.strings(),
            Argument::Bytes(length) => self.bytes(value, self.other(length)),
            Argument::Result if self.failed() => address(value),
            Argument::Result => self.bytes(value, self.returned()),
            Argument::ResultString if self.failed() => address(value),
            Argument::ResultString => self.string(value),
            Argument::Vectors(count) => self.vectors(self.other(count), u64::MAX),
            Argument::ResultVectors(count) if !self.failed() => self.vectors(self.other(count), self.returned()),
            Argument::ResultVectors(_) => address(value),
            Argument::Time => self.record(value, timespec::SIZE, time),
            Argument::ResultTime => self.result_record(timespec::SIZE, time),
            Argument::Times => self.record(value, 2 * timespec::SIZE, |both| {
                format!("[{}, {}]", time_or_name(both), time_or_name(both.get(timespec::SIZE..).unwrap_or(&[])))
            }),
            Argument::Signals => self.record(value, 8, signals),
            Argument::ResultSignals => self.result_record(8, signals),
            Argument::Action => self.record(value, sigaction::SIZE, action),
            Argument::ResultAction => self.result_record(sigaction::SIZE, action),
            Argument::Descriptors => {
                self.result_record(8, |both| format!("[{}, {}]", u32_at(both, 0), u32_at(both, 4)))
            }
            Argument::Status => self.result_record(stat::SIZE, status),
            Argument::WaitStatus if self.returned() == 0 => address(value),
            Argument::WaitStatus => self.record(value, 4, |word| format!("[{}]", wait_status(u32_at(word, 0)))),
            Argument::Polled(count) => self.polled(self.other(count)),
            Argument::Limit => self.record(value, rlimit::SIZE, limit),
            Argument::ResultLimit => self.result_record(rlimit::SIZE, limit),
            Argument::SocketAddress => self.socket_address(),
        }
    }

    fn failed(&self) -> bool {
        error(self.result).is_some()
    }

    /// Shows a record if it is readable, else its address.
    fn record(&self, place: u64, size: usize, show: impl Fn(&[u8]) -> String) -> String {
        let mut record = vec![0; size];
        if place != 0 && self.memory.read(place, &mut record) == size { show(&record) } else { address(place) }
    }

    /// Shows a record that the call has written, or its address if the call has failed.
    fn result_record(&self, size: usize, show: impl Fn(&[u8]) -> String) -> String {
        if self.failed() { address(self.value()) } else { self.record(self.value(), size, show) }
    }

    /// Reads a string up to its end, at most as many bytes as a path may have.
    fn read_string(&self, place: u64) -> Option<Vec<u8>> {
        let mut string = Vec::new();
        while string.len() < MAX_PATH {
            let mut chunk = [0; 64];
            let length = self.memory.read(place.wrapping_add(string.len() as u64), &mut chunk);
            let chunk = chunk.get(..length)?;
            if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
                string.extend_from_slice(&chunk[..end]);
                return Some(string);
            }
            if length == 0 {
                return None;
            }
            string.extend_from_slice(chunk);
        }
        Some(string)
    }

    fn string(&self, place: u64) -> String {
        match self.read_string(place) {
            Some(string) if place != 0 => quoted(&string),
            _ => address(place),
        }
    }

    fn bytes(&self, place: u64, length: u64) -> String {
        let shown = usize::try_from(length).unwrap_or(usize::MAX).min(SHOWN);
        let mut bytes = vec![0; shown];
        if self.memory.read(place, &mut bytes) < shown || place == 0 {
            return address(place);
        }
        let dots = if length > shown as u64 { "..." } else { "" };
        format!("{}{dots}", quoted(&bytes))
    }

    /// Returns the records of an array, at most as many as are shown, or `None` if they are not readable.
    fn array(&self, count: u64, size: usize) -> Option<Vec<Vec<u8>>> {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(ELEMENTS);
        let mut array = Vec::new();
        for index in 0..count {
            let mut record = vec![0; size];
            let place = self.value().wrapping_add((index * size) as u64);
            if self.memory.read(place, &mut record) < size {
                return None;
            }
            array.push(record);
        }
        Some(array)
    }

    /// Shows vectors and their bytes, of which there are `bytes` together, and no more than the vectors have.
    fn vectors(&self, count: u64, mut bytes: u64) -> String {
        let Some(vectors) = self.array(count, iovec::SIZE) else { return address(self.value()) };
        let show = |vector: &Vec<u8>| {
            let (base, length) = (u64_at(vector, iovec::BASE), u64_at(vector, iovec::LENGTH));
            let filled = length.min(bytes);
            bytes -= filled;
            format!("{{iov_base={}, iov_len={length}}}", self.bytes(base, filled))
        };
        let shown: Vec<String> = vectors.iter().map(show).collect();
        list(&shown, count)
    }

    fn polled(&self, count: u64) -> String {
        let Some(records) = self.array(count, pollfd::SIZE) else { return address(self.value()) };
        let show = |record: &Vec<u8>| {
            let descriptor = u32_at(record, pollfd::DESCRIPTOR).cast_signed();
            format!("{{fd={descriptor}, events={}}}", set(&names::POLL, u16_at(record, pollfd::EVENTS).into()))
        };
        let shown: Vec<String> = records.iter().map(show).collect();
        list(&shown, count)
    }

    fn strings(&self) -> String {
        let mut shown = Vec::new();
        loop {
            let mut pointer = [0; 8];
            let place = self.value().wrapping_add(8 * shown.len() as u64);
            if self.memory.read(place, &mut pointer) < 8 {
                return address(self.value());
            }
            let pointer = u64::from_le_bytes(pointer);
            if pointer == 0 {
                return list(&shown, shown.len() as u64);
            }
            if shown.len() == ELEMENTS {
                return list(&shown, u64::MAX);
            }
            shown.push(match self.read_string(pointer) {
                Some(string) if string.len() > SHOWN => format!("{}...", quoted(&string[..SHOWN])),
                Some(string) => quoted(&string),
                None => address(pointer),
            });
        }
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

    fn socket_address(&self) -> String {
        let length = self.other(self.index + 1).min(sockaddr::MAX_SIZE as u64) as usize;
        if length < sockaddr::PATH {
            return address(self.value());
        }
        self.record(self.value(), length, |record| match u16_at(record, sockaddr::FAMILY) {
            1 => {
                let path = &record[sockaddr::PATH..];
                let path = match path.split_first() {
                    // An abstract name begins with a zero, and its length is part of it.
                    Some((0, name)) => format!("@{}", quoted(name)),
                    _ => quoted(path.split(|byte| *byte == 0).next().unwrap_or(path)),
                };
                format!("{{sa_family=AF_UNIX, sun_path={path}}}")
            }
            2 => {
                let port = u16_at(record, sockaddr::PORT).swap_bytes();
                let [a, b, c, d] = u32_at(record, sockaddr::ADDRESS).to_le_bytes();
                format!("{{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr(\"{a}.{b}.{c}.{d}\")}}")
            }
            family => format!("{{sa_family={}, ...}}", one(&names::FAMILY, family.into())),
        })
    }
}

/// Shows an array of which `count` elements exist, perhaps more than are shown.
fn list(shown: &[String], count: u64) -> String {
    let dots = if count > shown.len() as u64 { ", ..." } else { "" };
    format!("[{}{dots}]", shown.join(", "))
}

fn address(value: u64) -> String {
    if value == 0 { "NULL".into() } else { format!("{value:#x}") }
}

fn number(value: u64) -> String {
    if value == 0 { "0".into() } else { format!("{value:#x}") }
}

/// Returns a signed number. One that fits into 32 bits has been passed as such: the upper half is unspecified.
fn signed(value: u64) -> String {
    if value >> 32 == 0 { format!("{}", (value as u32).cast_signed()) } else { format!("{}", value.cast_signed()) }
}

fn signal(number: u32) -> String {
    match names::signal(number) {
        Some(name) => format!("SIG{name}"),
        None => format!("{number}"),
    }
}

fn set(flags: &Flags, value: u32) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = value;
    if let Some((mask, choices)) = flags.choice {
        parts.push(one(choices, value & mask));
        rest &= !mask;
    }
    for (bits, name) in flags.names {
        if rest & bits == *bits {
            parts.push((*name).into());
            rest &= !bits;
        }
    }
    if rest != 0 {
        parts.push(format!("{rest:#x}"));
    }
    if parts.is_empty() { flags.none.into() } else { parts.join("|") }
}

fn one(choices: &Choices, value: u32) -> String {
    choices.name(value).map_or_else(|| number(value.into()), Into::into)
}

/// Returns bytes in quotation marks, with the escapes of C.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x0b => text.push_str("\\v"),
            0x0c => text.push_str("\\f"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // As few digits as possible, but three before another digit.
            _ if bytes.get(index + 1).is_some_and(u8::is_ascii_digit) => kept(write!(text, "\\{byte:03o}")),
            _ => kept(write!(text, "\\{byte:o}")),
        }
    }
    text.push('"');
    text
}

fn time(record: &[u8]) -> String {
    let (seconds, nanoseconds) = (u64_at(record, timespec::SECONDS), u64_at(record, timespec::NANOSECONDS));
    format!("{{tv_sec={}, tv_nsec={}}}", seconds.cast_signed(), nanoseconds.cast_signed())
}

/// Returns a time of a file, which may be none.
fn time_or_name(record: &[u8]) -> String {
    match u64_at(record, timespec::NANOSECONDS) {
        0x3fff_ffff => "UTIME_NOW".into(),
        0x3fff_fffe => "UTIME_OMIT".into(),
        _ => time(record),
    }
}

/// Returns a set of signals, or what is missing in it if that is shorter.
fn signals(record: &[u8]) -> String {
    let set = u64_at(record, 0);
    let (prefix, set) = if set.count_ones() > 32 { ("~", !set) } else { ("", set) };
    let names: Vec<String> = (1..=64)
        .filter(|number| set >> (number - 1) & 1 != 0)
        .map(|number| match (names::signal(number), number) {
            (Some(name), _) => name.into(),
            (None, 32) => "RTMIN".into(),
            (None, _) => format!("RT_{}", number - 32),
        })
        .collect();
    format!("{prefix}[{}]", names.join(" "))
}

fn action(record: &[u8]) -> String {
    let handler = match u64_at(record, sigaction::HANDLER) {
        0 => "SIG_DFL".into(),
        1 => "SIG_IGN".into(),
        handler => format!("{handler:#x}"),
    };
    let flags = u64_at(record, sigaction::FLAGS) as u32;
    let mask = signals(&record[sigaction::MASK..]);
    let mut text = format!("{{sa_handler={handler}, sa_mask={mask}, sa_flags={}", set(&names::ACTION, flags));
    if flags & 0x0400_0000 != 0 {
        kept(write!(text, ", sa_restorer={:#x}", u64_at(record, sigaction::RESTORER)));
    }
    text.push('}');
    text
}

fn status(record: &[u8]) -> String {
    let mode = u32_at(record, stat::MODE);
    let kind = mode & file_type::MASK;
    let mode = format!("{}|{:0>4}", one(&names::FILE_TYPE, kind), octal((mode & !file_type::MASK).into()));
    let detail = if kind == file_type::CHARACTER || kind == file_type::BLOCK {
        let device = u64_at(record, stat::SPECIAL_DEVICE);
        format!("st_rdev=makedev({:#x}, {:#x})", device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xf_ff00)
    } else {
        format!("st_size={}", u64_at(record, stat::LENGTH))
    };
    format!("{{st_mode={mode}, {detail}, ...}}")
}

fn wait_status(status: u32) -> String {
    let signal_of = |number: u32| signal(number & 0x7f);
    match (status & 0x7f, status >> 8 & 0xff) {
        (0, code) => format!("{{WIFEXITED(s) && WEXITSTATUS(s) == {code}}}"),
        (0x7f, 0xff) if status == 0xffff => "{WIFCONTINUED(s)}".into(),
        (0x7f, number) => format!("{{WIFSTOPPED(s) && WSTOPSIG(s) == {}}}", signal_of(number)),
        (number, _) => {
            let dumped = if status & 0x80 != 0 { " && WCOREDUMP(s)" } else { "" };
            format!("{{WIFSIGNALED(s) && WTERMSIG(s) == {}{dumped}}}", signal_of(number))
        }
    }
}

fn limit(record: &[u8]) -> String {
    let bound = |value: u64| match value {
        u64::MAX => "RLIM64_INFINITY".into(),
        _ if value > 1024 && value.is_multiple_of(1024) => format!("{}*1024", value / 1024),
        _ => format!("{value}"),
    };
    let (current, maximum) = (u64_at(record, rlimit::CURRENT), u64_at(record, rlimit::MAXIMUM));
    format!("{{rlim_cur={}, rlim_max={}}}", bound(current), bound(maximum))
}
