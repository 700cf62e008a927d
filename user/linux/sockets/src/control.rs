//! Control messages, as they are in memory.
//!
//! Each is a header (length with the header, 8 bytes; level and type, 4 bytes each) and its contents; the next one
//! begins at a multiple of 8.

use alloc::vec::Vec;

use tench_linux_calls::records::{u32_at, u64_at};

use crate::Errno;
use crate::numbers::{control, ip, level, message};

/// Size of a header, and places in it.
const HEADER: usize = 16;
const LENGTH: usize = 0;
const LEVEL: usize = 8;
const TYPE: usize = 12;
/// Size of a descriptor, and of credentials.
const DESCRIPTOR: usize = 4;
const CREDENTIALS: usize = 12;

/// The most descriptors that can be sent at once.
pub const MAX_DESCRIPTORS: usize = 253;

/// A process's credentials (`struct ucred`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Number of the process.
    pub process: u32,
    /// The process's user.
    pub user: u32,
    /// The process's group.
    pub group: u32,
}

impl Credentials {
    /// Nobody's.
    pub const NOBODY: Credentials = Credentials { process: 0, user: u32::MAX, group: u32::MAX };
    /// Those of what was sent while nobody wanted to be told who sends.
    pub const UNTOLD: Credentials = Credentials { process: 0, user: 65534, group: 65534 };

    /// Returns the record of credentials.
    pub fn to_record(self) -> [u8; CREDENTIALS] {
        let mut record = [0; CREDENTIALS];
        for (place, number) in record.chunks_exact_mut(4).zip([self.process, self.user, self.group]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        record
    }
}

/// The fields of an IPv6 header that programs can set and read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ipv6Header {
    /// The hop limit.
    pub hop_limit: Option<u8>,
    /// The traffic class.
    pub class: Option<u8>,
}

impl Ipv6Header {
    /// No field is set: the defaults are used.
    pub const DEFAULT: Ipv6Header = Ipv6Header { hop_limit: None, class: None };

    /// Returns the fields that `more` sets, and otherwise those that are set here.
    pub(crate) fn or(self, more: Ipv6Header) -> Ipv6Header {
        Ipv6Header { hop_limit: more.hop_limit.or(self.hop_limit), class: more.class.or(self.class) }
    }

    /// Parses the control messages that a program sends over a UDP socket of IPv6. Other messages are ignored.
    ///
    /// # Errors
    /// `EINVAL`: a message is longer than the buffer, or has an invalid value.
    pub fn parse(mut records: &[u8]) -> Result<Ipv6Header, Errno> {
        let mut header = Ipv6Header::DEFAULT;
        while records.len() >= HEADER {
            let length = u64_at(records, LENGTH);
            if length < HEADER as u64 || length > records.len() as u64 {
                return Err(Errno::EINVAL);
            }
            let length = length as usize;
            let contents = &records[HEADER..length];
            match (u32_at(records, LEVEL), u32_at(records, TYPE)) {
                (level::IPV6, ip::HOPLIMIT) => header.hop_limit = part(contents)?,
                (level::IPV6, ip::TCLASS) => header.class = part(contents)?,
                (level::IPV6, _) => return Err(Errno::EINVAL),
                _ => {}
            }
            records = records.get(aligned(length)..).unwrap_or_default();
        }
        Ok(header)
    }
}

/// Returns a field from a control message's contents; -1 stands for the default.
fn part(contents: &[u8]) -> Result<Option<u8>, Errno> {
    let bytes: [u8; 4] = contents.try_into().map_err(|_| Errno::EINVAL)?;
    match i32::from_le_bytes(bytes) {
        -1 => Ok(None),
        value => u8::try_from(value).map(Some).map_err(|_| Errno::EINVAL),
    }
}

/// Contents of the control messages that a program sends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Descriptors of the files to send.
    pub descriptors: Vec<u32>,
    /// Credentials that the program claims to have. The caller decides whether this is so (`EPERM`).
    pub credentials: Option<Credentials>,
}

/// Returns where the control message after one of this length begins.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(8)
}

/// Parses the control messages that a program sends over a Unix socket. Messages of other levels mean nothing there.
///
/// # Errors
/// `EINVAL`: a message is shorter than its header or longer than what is there, of an unknown type, or has contents of
/// another size than its type; there are too many descriptors.
pub fn parse(mut records: &[u8]) -> Result<Sent, Errno> {
    let mut sent = Sent::default();
    while records.len() >= HEADER {
        let length = u64_at(records, LENGTH);
        if length < HEADER as u64 || length > records.len() as u64 {
            return Err(Errno::EINVAL);
        }
        let length = length as usize;
        let contents = &records[HEADER..length];
        match (u32_at(records, LEVEL), u32_at(records, TYPE)) {
            (level::SOCKET, control::RIGHTS) => {
                let count = contents.len() / DESCRIPTOR;
                if sent.descriptors.len() + count > MAX_DESCRIPTORS {
                    return Err(Errno::EINVAL);
                }
                sent.descriptors.extend((0..count).map(|index| u32_at(contents, index * DESCRIPTOR)));
            }
            (level::SOCKET, control::CREDENTIALS) => {
                if contents.len() != CREDENTIALS {
                    return Err(Errno::EINVAL);
                }
                let [process, user, group] = [0, 4, 8].map(|at| u32_at(contents, at));
                sent.credentials = Some(Credentials { process, user, group });
            }
            (level::SOCKET, _) => return Err(Errno::EINVAL),
            _ => {}
        }
        records = records.get(aligned(length)..).unwrap_or_default();
    }
    Ok(sent)
}

/// Writes the control messages that a program receives, into so much room as it has.
#[derive(Debug)]
pub struct Writer {
    records: Vec<u8>,
    room: usize,
    is_cut: bool,
}

impl Writer {
    /// Begins to write.
    pub const fn new(room: usize) -> Writer {
        Writer { records: Vec::new(), room, is_cut: false }
    }

    /// Adds a message, or as much of it as there is room for.
    fn write(&mut self, level: u32, kind: u32, contents: &[u8]) {
        let room = self.room - self.records.len();
        if room < HEADER {
            self.is_cut = true;
            return;
        }
        let whole = HEADER + contents.len();
        let length = whole.min(room);
        self.is_cut |= length < whole;
        self.records.extend((length as u64).to_le_bytes());
        self.records.extend(level.to_le_bytes());
        self.records.extend(kind.to_le_bytes());
        self.records.extend(&contents[..length - HEADER]);
        let end = self.records.len() - length + aligned(length);
        self.records.resize(end.min(self.room), 0);
    }

    /// Adds the sender's credentials.
    pub fn credentials(&mut self, credentials: Credentials) {
        self.write(level::SOCKET, control::CREDENTIALS, &credentials.to_record());
    }

    /// Adds the fields with which a message has come.
    pub fn header(&mut self, header: Ipv6Header) {
        for (kind, part) in [(ip::HOPLIMIT, header.hop_limit), (ip::TCLASS, header.class)] {
            if let Some(part) = part {
                self.write(level::IPV6, kind, &u32::from(part).to_le_bytes());
            }
        }
    }

    /// Returns how many of so many received files there is room for. The caller gives these descriptors, and lets the
    /// others go.
    pub fn room_for_descriptors(&mut self, count: usize) -> usize {
        let room = (self.room - self.records.len()).saturating_sub(HEADER) / DESCRIPTOR;
        self.is_cut |= count > room;
        count.min(room)
    }

    /// Adds received files, by their descriptors.
    pub fn descriptors(&mut self, descriptors: &[u32]) {
        if !descriptors.is_empty() {
            let contents: Vec<u8> = descriptors.iter().flat_map(|number| number.to_le_bytes()).collect();
            self.write(level::SOCKET, control::RIGHTS, &contents);
        }
    }

    /// Returns the messages, and `MSG_CTRUNC` if there was no room for all.
    pub fn end(self) -> (Vec<u8>, u32) {
        (self.records, if self.is_cut { message::CTRUNC } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;

    fn record(length: u64, level: u32, kind: u32, contents: &[u8]) -> Vec<u8> {
        [&length.to_le_bytes()[..], &level.to_le_bytes(), &kind.to_le_bytes(), contents].concat()
    }

    fn rights(numbers: &[u32]) -> Vec<u8> {
        let contents: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut all = record(16 + contents.len() as u64, 1, 1, &contents);
        all.resize(aligned(all.len()), 0);
        all
    }

    #[test]
    fn messages_are_parsed_in_a_row() {
        let credentials = Credentials { process: 1, user: 2, group: 3 };
        let all = [rights(&[5]), record(28, 1, 2, &credentials.to_record()), vec![0; 4], rights(&[7, 8])].concat();
        let expected = Sent { descriptors: vec![5, 7, 8], credentials: Some(credentials) };
        assert_eq!(parse(&all), Ok(expected.clone()));
        // What is too short for a header is nothing, and so is a message for another level.
        assert_eq!(parse(&[&all[..], &[0xff; 15]].concat()), Ok(expected.clone()));
        assert_eq!(parse(&[&record(16, 0, 9, b"")[..], &all].concat()), Ok(expected));
        assert_eq!(parse(&rights(&[3; MAX_DESCRIPTORS])).unwrap().descriptors.len(), MAX_DESCRIPTORS);
    }

    #[test]
    fn each_mistake_has_its_error() {
        let refused = Err(Errno::EINVAL);
        assert_eq!(parse(&record(15, 1, 1, b"")), refused, "shorter than its header");
        assert_eq!(parse(&record(0, 1, 1, b"")), refused, "without an end");
        assert_eq!(parse(&record(21, 1, 1, &[0; 4])), refused, "longer than what is there");
        assert_eq!(parse(&record(u64::MAX, 1, 1, &[0; 4])), refused, "longer than what is there");
        assert_eq!(parse(&record(27, 1, 2, &[0; 11])), refused, "credentials that are too short");
        assert_eq!(parse(&record(32, 1, 2, &[0; 16])), refused, "credentials that are too long");
        assert_eq!(parse(&record(16, 1, 3, b"")), refused, "an unknown type");
        assert_eq!(parse(&rights(&[3; MAX_DESCRIPTORS + 1])), refused, "too many descriptors");
        assert_eq!(parse(&[rights(&[3; 200]), rights(&[3; 54])].concat()), refused, "too many in several messages");
    }

    #[test]
    fn what_is_written_is_parsed_again() {
        let credentials = Credentials { process: 1, user: 2, group: 3 };
        let mut writer = Writer::new(100);
        writer.credentials(credentials);
        assert_eq!(writer.room_for_descriptors(3), 3);
        writer.descriptors(&[4, 5, 6]);
        let (records, flags) = writer.end();
        assert_eq!((records.len(), flags), (64, 0));
        assert_eq!(parse(&records), Ok(Sent { descriptors: vec![4, 5, 6], credentials: Some(credentials) }));
    }

    #[test]
    fn what_has_no_room_is_cut() {
        let mut writer = Writer::new(24);
        assert_eq!(writer.room_for_descriptors(3), 2);
        writer.descriptors(&[4, 5]);
        assert_eq!(writer.end(), (rights(&[4, 5]), message::CTRUNC));
        let mut writer = Writer::new(15);
        assert_eq!(writer.room_for_descriptors(1), 0);
        writer.credentials(Credentials::NOBODY);
        assert_eq!(writer.end(), (vec![], message::CTRUNC));
        let mut writer = Writer::new(20);
        writer.credentials(Credentials { process: 1, user: 2, group: 3 });
        assert_eq!(writer.end(), (record(20, 1, 2, &[1, 0, 0, 0]), message::CTRUNC));
    }
}
