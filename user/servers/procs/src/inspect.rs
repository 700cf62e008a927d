//! Requests that only look: processes, their capabilities, the boot archive.

use alloc::string::ToString;
use alloc::vec::Vec;

use tench_abi::object::{NODE_BITS, SLOT_SIZE};
use tench_abi::{CapAddress, Kind};
use tench_procs::records::Status;
use tench_procs_client::protocol::{CAPABILITIES_PER_ANSWER, Error, MAX_FILE_TEXT, MAX_NAME};
use tench_protocol::DONE;
use tench_sys::Message;

use crate::server::{Answer, Kept, ProcessRecord, Server, done};

/// Slots that are looked at for one answer to `Capabilities`.
const SLOTS_PER_ANSWER: u32 = 1024;

impl Server {
    /// Answers `Status`.
    pub fn status(&mut self, process: u64) -> Answer {
        self.records.get(process)?;
        Ok(Some(self.describe(process)))
    }

    /// What is known about a process, as an answer.
    pub fn describe(&self, process: u64) -> Message {
        match self.records.get(process) {
            Ok(record) => describe(Message::new(DONE), record),
            Err(error) => Message::new(error as u64),
        }
    }

    /// Answers `Next`.
    pub fn next(&mut self, after: u64) -> Answer {
        let (process, record) = self.records.next(after).ok_or(Error::NoSuchProcess)?;
        Ok(Some(describe(Message::with_words(DONE, &[process]), record)))
    }

    /// Answers `Find`.
    pub fn find(&mut self, after: u64, name: &str) -> Answer {
        Ok(done(&[self.records.find(name, after).ok_or(Error::NoSuchProcess)?]))
    }

    /// Answers `Capabilities`.
    pub fn capabilities(&mut self, caller: u64, process: u64, from: u64) -> Answer {
        self.records.check_manage(caller, process)?;
        let Some(Kept::Living(living)) = &self.records.get(process)?.kernel else { return Err(Error::WrongState) };
        let root = living.process.root;
        let nodes = 1u32 << root.identify().map_err(|_| Error::Internal)?.size_bits.saturating_sub(SLOT_SIZE.ilog2());
        let end = nodes << NODE_BITS;
        let mut found = Vec::new();
        let mut address = u32::try_from(from).unwrap_or(end);
        let stop = address.saturating_add(SLOTS_PER_ANSWER).min(end);
        while address < stop && found.len() < CAPABILITIES_PER_ANSWER {
            match root.identify_at(CapAddress(address)) {
                Ok(one) if one.kind == Kind::Null => address += 1,
                Ok(one) => {
                    let (kind, rights) = (one.kind as u64, u64::from(one.rights.bits()));
                    let size_bits = u64::from(one.size_bits);
                    found.push([u64::from(address), kind, rights, size_bits, one.badge, one.address]);
                    address += 1;
                }
                // Address 0 is never a capability; elsewhere the whole node is not there.
                Err(_) if address == 0 => address = 1,
                Err(_) => address = ((address >> NODE_BITS) + 1) << NODE_BITS,
            }
        }
        let next = if address < end { u64::from(address) } else { 0 };
        let mut answer = Message::with_words(DONE, &[next]);
        for words in found {
            answer.extend(&words);
        }
        Ok(Some(answer))
    }

    /// Answers `File`.
    pub fn file(&mut self, index: u64) -> Answer {
        let index = usize::try_from(index).map_err(|_| Error::NoSuchFile)?;
        let file = self.boot.archive.files().nth(index).ok_or(Error::NoSuchFile)?;
        let mut answer = Message::with_words(DONE, &[file.contents.len() as u64]);
        let path = file.path.to_string();
        answer.push_text(&path.as_bytes()[..path.len().min(MAX_NAME)]);
        Ok(Some(answer))
    }

    /// Answers `ReadFile`.
    pub fn read_file(&mut self, offset: u64, path: &str) -> Answer {
        let file = self.boot.archive.find(path).ok_or(Error::NoSuchFile)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| file.contents.get(offset..)).unwrap_or(&[]);
        let mut answer = Message::with_words(DONE, &[file.contents.len() as u64]);
        answer.push_text(&rest[..rest.len().min(MAX_FILE_TEXT)]);
        Ok(Some(answer))
    }
}

/// Appends what is known about a process.
fn describe(mut answer: Message, record: &ProcessRecord) -> Message {
    let ticks = match &record.kernel {
        Some(Kept::Living(living)) => living.process.thread.query().map_or(0, |info| info.ticks),
        _ => 0,
    };
    let Status { state, detail } = record.status;
    answer.extend(&[state as u64, detail, record.parent, u64::from(record.priority), ticks, record.size]);
    answer.push_text(&record.name.as_bytes()[..record.name.len().min(MAX_NAME)]);
    answer
}
