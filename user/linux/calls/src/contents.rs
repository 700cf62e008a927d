//! The text of what arguments point to in a traced program's memory: strings, buffers and records.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::names;
use crate::numbers::file_type;
use crate::records::{iovec, pollfd, rlimit, sigaction, sockaddr, stat, timespec, u16_at, u32_at, u64_at};
use crate::text::{address, kept, list, octal, one, quoted, set, signal};

/// Number of bytes of a buffer that are shown.
const SHOWN: usize = 32;
/// Number of strings, vectors and other elements that are shown.
const ELEMENTS: usize = 32;
/// The longest path.
const MAX_PATH: usize = 4096;

/// The memory of a traced program.
pub trait Memory {
    /// Copies as many bytes from an address as are readable there and fit. Returns their number.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;
}

/// The contents of a traced program's memory, as text.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a>(pub(crate) &'a dyn Memory);

impl Contents<'_> {
    /// Shows a record if it is readable, else its address.
    pub(crate) fn record(&self, place: u64, size: usize, show: impl Fn(&[u8]) -> String) -> String {
        let mut record = vec![0; size];
        if place != 0 && self.0.read(place, &mut record) == size { show(&record) } else { address(place) }
    }

    /// Reads a string up to its end, at most as many bytes as a path may have.
    fn read_string(&self, place: u64) -> Option<Vec<u8>> {
        let mut string = Vec::new();
        while string.len() < MAX_PATH {
            let mut chunk = [0; 64];
            let length = self.0.read(place.wrapping_add(string.len() as u64), &mut chunk);
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

    /// Shows a string.
    pub(crate) fn string(&self, place: u64) -> String {
        match self.read_string(place) {
            Some(string) if place != 0 => quoted(&string),
            _ => address(place),
        }
    }

    /// Shows the bytes of a buffer.
    pub(crate) fn bytes(&self, place: u64, length: u64) -> String {
        let shown = usize::try_from(length).unwrap_or(usize::MAX).min(SHOWN);
        let mut bytes = vec![0; shown];
        if self.0.read(place, &mut bytes) < shown || place == 0 {
            return address(place);
        }
        let dots = if length > shown as u64 { "..." } else { "" };
        format!("{}{dots}", quoted(&bytes))
    }

    /// Returns the records of an array, at most as many as are shown, or `None` if they are not readable.
    fn array(&self, place: u64, count: u64, size: usize) -> Option<Vec<Vec<u8>>> {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(ELEMENTS);
        let mut array = Vec::new();
        for index in 0..count {
            let mut record = vec![0; size];
            let record_place = place.wrapping_add((index * size) as u64);
            if self.0.read(record_place, &mut record) < size {
                return None;
            }
            array.push(record);
        }
        Some(array)
    }

    /// Shows vectors and their bytes, of which there are `bytes` together, and no more than the vectors have.
    pub(crate) fn vectors(&self, place: u64, count: u64, mut bytes: u64) -> String {
        let Some(vectors) = self.array(place, count, iovec::SIZE) else { return address(place) };
        let show = |vector: &Vec<u8>| {
            let (base, length) = (u64_at(vector, iovec::BASE), u64_at(vector, iovec::LENGTH));
            let filled = length.min(bytes);
            bytes -= filled;
            format!("{{iov_base={}, iov_len={length}}}", self.bytes(base, filled))
        };
        let shown: Vec<String> = vectors.iter().map(show).collect();
        list(&shown, count)
    }

    /// Shows the descriptors of `poll`.
    pub(crate) fn polled(&self, place: u64, count: u64) -> String {
        let Some(records) = self.array(place, count, pollfd::SIZE) else { return address(place) };
        let show = |record: &Vec<u8>| {
            let descriptor = u32_at(record, pollfd::DESCRIPTOR).cast_signed();
            format!("{{fd={descriptor}, events={}}}", set(&names::POLL, u16_at(record, pollfd::EVENTS).into()))
        };
        let shown: Vec<String> = records.iter().map(show).collect();
        list(&shown, count)
    }

    /// Shows an array of strings that ends with a null pointer.
    pub(crate) fn strings(&self, place: u64) -> String {
        let mut shown = Vec::new();
        loop {
            let mut pointer = [0; 8];
            let next = place.wrapping_add(8 * shown.len() as u64);
            if self.0.read(next, &mut pointer) < 8 {
                return address(place);
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

    /// Shows the address of a socket, of so many bytes.
    pub(crate) fn socket_address(&self, place: u64, length: u64) -> String {
        let length = length.min(sockaddr::MAX_SIZE as u64) as usize;
        if length < sockaddr::PATH {
            return address(place);
        }
        self.record(place, length, |record| match u16_at(record, sockaddr::FAMILY) {
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

/// Returns a time.
pub(crate) fn time(record: &[u8]) -> String {
    let (seconds, nanoseconds) = (u64_at(record, timespec::SECONDS), u64_at(record, timespec::NANOSECONDS));
    format!("{{tv_sec={}, tv_nsec={}}}", seconds.cast_signed(), nanoseconds.cast_signed())
}

/// Returns the two times of a file.
pub(crate) fn times(both: &[u8]) -> String {
    format!("[{}, {}]", time_or_name(both), time_or_name(both.get(timespec::SIZE..).unwrap_or(&[])))
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
pub(crate) fn signals(record: &[u8]) -> String {
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

/// Returns what is done about a signal.
pub(crate) fn action(record: &[u8]) -> String {
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

/// Returns the attributes of a file.
pub(crate) fn status(record: &[u8]) -> String {
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

/// Returns how a process ended or has stopped.
pub(crate) fn wait_status(status: u32) -> String {
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

/// Returns the limits of a resource.
pub(crate) fn limit(record: &[u8]) -> String {
    let bound = |value: u64| match value {
        u64::MAX => "RLIM64_INFINITY".into(),
        _ if value > 1024 && value.is_multiple_of(1024) => format!("{}*1024", value / 1024),
        _ => format!("{value}"),
    };
    let (current, maximum) = (u64_at(record, rlimit::CURRENT), u64_at(record, rlimit::MAXIMUM));
    format!("{{rlim_cur={}, rlim_max={}}}", bound(current), bound(maximum))
}
