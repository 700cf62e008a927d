//! Ends of streams that this process owns.

use tench_abi::CapAddress;
use tench_files_interface::Files;
use tench_procs_interface::Spawn;
use tench_protocol::again;
use tench_stream::Stream;
use tench_stream::protocol::Info;
use tench_sys::{Cap, Endpoint, OWN_CSPACE};

use super::{Error, Read, Write, read_some, write_all};
use crate::memory;

/// An end of a stream: of a pipe, or an open file. Dropping it closes the end.
#[derive(Debug)]
pub struct End {
    cap: Cap<Endpoint>,
}

/// Makes a pipe: bytes written to the second end can be read from the first.
pub fn pipe() -> Result<(End, End), Error> {
    let (reader, writer) = (Slot::take()?, Slot::take()?);
    again(|| Files::STANDARD.pipe(reader.0, writer.0))?;
    Ok((reader.end(), writer.end()))
}

/// An empty slot, which is freed unless a capability was put into it.
struct Slot(CapAddress);

impl Slot {
    fn take() -> Result<Slot, Error> {
        memory::take_slot().map(Slot).map_err(Error::Memory)
    }

    fn end(self) -> End {
        let end = End { cap: Cap::new(self.0) };
        core::mem::forget(self);
        end
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        memory::free_slot(self.0);
    }
}

impl End {
    /// Returns the end that a request puts into an empty slot.
    pub(crate) fn requested(request: impl Fn(CapAddress) -> Result<(), Error>) -> Result<End, Error> {
        let slot = Slot::take()?;
        request(slot.0)?;
        Ok(slot.end())
    }

    /// Returns the client of the interface, for requests for which this type has no method.
    pub const fn stream(&self) -> Stream {
        Stream::at(self.cap)
    }

    /// Returns the capability.
    pub const fn cap(&self) -> Cap<Endpoint> {
        self.cap
    }

    /// Returns another capability to the same end, which is closed when the process `process` ends, or when it is
    /// dropped.
    pub fn share(&self, process: u64) -> Result<End, Error> {
        End::requested(|slot| self.stream().share(process, slot).map(drop).map_err(Error::Stream))
    }

    /// Gives the same end to a process builder, in this slot; it belongs to that process from then on.
    pub fn give(&self, to: &Spawn, slot: CapAddress) -> Result<(), Error> {
        let shared = self.share(to.process())?;
        to.move_in(shared.cap, slot).map_err(Error::Procs)?;
        // The capability has left the slot.
        memory::free_slot(shared.cap.address());
        core::mem::forget(shared);
        Ok(())
    }

    /// Returns a description of the object at this end.
    pub fn info(&self) -> Result<Info, Error> {
        self.stream().info().map_err(Error::Stream)
    }

    /// Sets the position of the next read or write, in bytes from the file's beginning.
    pub fn seek(&self, position: u64) -> Result<(), Error> {
        self.stream().seek(position).map_err(Error::Stream)
    }

    /// Sets the file's size in bytes.
    pub fn truncate(&self, size: u64) -> Result<(), Error> {
        self.stream().truncate(size).map_err(Error::Stream)
    }
}

impl Read for End {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        read_some(self.stream(), buffer)
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        write_all(self.stream(), bytes)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // If the end's server has ended, it is closed and the slot is empty.
        let _ = self.stream().close();
        let _ = OWN_CSPACE.delete_at(self.cap.address());
        memory::free_slot(self.cap.address());
    }
}
