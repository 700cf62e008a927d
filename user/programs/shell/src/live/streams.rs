//! Files and pipes. An end of a stream that the shell holds is named by the slot of its capability.

use alloc::string::ToString;
use alloc::vec::Vec;

use tench::sys::abi::layout::slot;
use tench::sys::{Cap, CapAddress, Endpoint, Error as KernelError, Kind, OWN_CSPACE};
use tench::{again, memory};
use tench_files_interface::protocol::{Error as FilesError, How as Opening, Kind as FileKind, Status};
use tench_files_interface::{Failure as FilesFailure, Files};
use tench_shell::system::{Entry, How, Stream, SystemError, Unwritten, base_name};
use tench_stream::protocol::{Error, MAX_DATA};
use tench_stream::{Failure, Stream as Client};

use super::keys::interruptible;

/// Slots of a process's standard streams.
pub const STANDARD: [CapAddress; 3] = [slot::STDIN, slot::STDOUT, slot::STDERR];

/// Returns one of the shell's own standard streams, if it is not the terminal.
pub fn own(index: usize) -> Option<Stream> {
    let address = STANDARD[index];
    let is_there = OWN_CSPACE.identify_at(address).is_ok_and(|found| found.kind == Kind::Endpoint);
    is_there.then_some(Stream(address.0))
}

const fn client(stream: Stream) -> Client {
    Client::at(Cap::new(CapAddress(stream.0)))
}

/// Lets a request put a capability into a free slot, which is freed if the request fails.
fn into_slot<T, E>(request: impl FnOnce(CapAddress) -> Result<T, E>) -> Result<T, SystemError>
where
    SystemError: From<E>,
{
    let slot = memory::take_slot()?;
    request(slot).map_err(|error| {
        memory::free_slot(slot);
        error.into()
    })
}

fn end(cap: Cap<Endpoint>) -> Stream {
    Stream(cap.address().0)
}

pub fn pipe() -> Result<(Stream, Stream), SystemError> {
    let reader = memory::take_slot()?;
    let made = into_slot(|writer| again(|| Files::STANDARD.pipe(reader, writer)));
    if made.is_err() {
        memory::free_slot(reader);
    }
    made.map(|(reader, writer)| (end(reader), end(writer)))
}

pub fn open(path: &str, how: How) -> Result<Stream, SystemError> {
    let how = match how {
        How::Read => Opening::Read,
        How::Replace => Opening::Write,
        How::Append => Opening::Append,
    };
    into_slot(|slot| again(|| Files::STANDARD.open(path, how, slot))).map(end)
}

/// Makes another capability to an end, for a process. Returns its slot.
pub fn share(stream: Stream, pid: u64) -> Result<CapAddress, SystemError> {
    into_slot(|slot| client(stream).share(pid, slot)).map(Cap::address)
}

pub fn read(stream: Stream, max: usize) -> Result<Vec<u8>, SystemError> {
    Ok(client(stream).read(max.min(MAX_DATA))?.to_vec())
}

pub fn write(stream: Stream, bytes: &[u8]) -> Result<(), Unwritten> {
    bytes.chunks(MAX_DATA).try_for_each(|part| match interruptible(|| client(stream).write(part)) {
        Ok(()) => Ok(()),
        // Ctrl-Z: the reader is suspended, and the command is not waited for any longer.
        Err(Failure::Refused(Error::Broken) | Failure::Lost(KernelError::Aborted)) => Err(Unwritten::Broken),
        Err(failure) => Err(Unwritten::Refused(failure.into())),
    })
}

pub fn close(stream: Stream) {
    // An end whose server was restarted is closed already. A key may have interrupted the call; then it is repeated.
    while let Err(Failure::Lost(KernelError::Aborted)) = client(stream).close() {}
    let slot = CapAddress(stream.0);
    // The slot is not empty: nobody else deletes its content.
    let _ = OWN_CSPACE.delete_at(slot);
    memory::free_slot(slot);
}

fn entry_of(name: &str, status: &Status) -> Entry {
    let is_directory = status.kind == FileKind::Directory;
    Entry { name: name.to_string(), size: if is_directory { 0 } else { status.size }, is_directory }
}

pub fn entries(directory: &str) -> Result<Vec<Entry>, SystemError> {
    let directory = if directory.is_empty() { "/" } else { directory };
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = entries.last().map_or("", |last| last.name.as_str());
        match again(|| Files::STANDARD.next(directory, after)) {
            Ok((status, name)) => entries.push(entry_of(&name, &status)),
            Err(FilesFailure::Refused(FilesError::NoMoreEntries)) => return Ok(entries),
            Err(failure) => return Err(failure.into()),
        }
    }
}

pub fn entry(path: &str) -> Result<Entry, SystemError> {
    let status = again(|| Files::STANDARD.status(path))?;
    Ok(entry_of(base_name(path), &status))
}

/// Makes a request about a path.
pub fn change(request: impl FnMut() -> Result<(), FilesFailure>) -> Result<(), SystemError> {
    Ok(again(request)?)
}
