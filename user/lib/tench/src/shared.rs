//! Memory that a server shares with its clients for data that exceeds a message: both sides of
//! `tench_protocol::shared`.
//!
//! ```no_run
//! # use tench::sys::{Cap, CapAddress, Endpoint};
//! # use tench::shared::Connection;
//! # fn example(server: Cap<Endpoint>, slot: CapAddress) -> Result<(), tench::memory::Error> {
//! // A client: `let (frame, bits) = Files::at(server).attach_buffer(64 << 10, slot)?`, and then
//! # let (frame, bits) = (Cap::new(slot), 16);
//! let connection = Connection::new(server, frame, bits)?;
//! // `Files::at(&connection).read("readme", 0, &mut bytes)`
//! # Ok(())
//! # }
//! ```
//! A server has [`Buffers`] and carries requests out by `Port::carry_out_sharing`.

use alloc::collections::BTreeMap;

use tench_abi::memory::PAGE_BITS;
use tench_protocol::wire::Registers;
use tench_protocol::{Attachments, Caller, Memory, Shares, Transport, transport};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Frame, MapFlags, Message, OWN_CSPACE, Received, Words};

use crate::memory::{self, Made, Window};
use crate::sync::Mutex;

impl Memory for Window {
    fn size(&self) -> usize {
        Window::size(self)
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        Window::read(self, offset, to);
    }

    fn write(&self, offset: usize, from: &[u8]) {
        Window::write(self, offset, from);
    }
}

/// A server's buffers, one for each caller. The server pays for them, so it limits their size and number.
#[derive(Debug)]
pub struct Buffers {
    /// Buffers by process.
    held: BTreeMap<u64, Buffer>,
    largest: u64,
    most: usize,
}

/// One buffer. The window is dropped before the frame.
#[derive(Debug)]
struct Buffer {
    window: Window,
    _frame: Made<Frame>,
}

impl Buffers {
    /// Returns an empty set of at most `most` buffers, each of at most `largest` bytes.
    pub const fn new(largest: u64, most: usize) -> Buffers {
        Buffers { held: BTreeMap::new(), largest, most }
    }

    /// Frees the buffer of a process that has ended, if it had one.
    pub fn forget(&mut self, process: u64) {
        self.held.remove(&process);
    }

    /// Returns the number of buffers.
    pub fn count(&self) -> usize {
        self.held.len()
    }
}

impl Attachments for Buffers {
    fn attach(&mut self, caller: Caller, bytes: u64) -> Result<(Cap<Frame>, u64), Error> {
        // The old buffer goes first, so that a caller cannot have two.
        self.forget(caller.process);
        if bytes > self.largest || self.held.len() >= self.most {
            return Err(Error::OutOfMemory);
        }
        let bits = bytes.max(1 << PAGE_BITS).next_power_of_two().ilog2();
        let frame = memory::make::<Frame>(u64::from(bits)).map_err(|_| Error::OutOfMemory)?;
        let flags = MapFlags::READ | MapFlags::WRITE;
        let window = Window::new(frame.cap(), bits, flags).map_err(|_| Error::OutOfMemory)?;
        let cap = frame.cap();
        self.held.insert(caller.process, Buffer { window, _frame: frame });
        Ok((cap, u64::from(bits)))
    }

    fn memory(&self, caller: Caller) -> Option<&dyn Memory> {
        self.held.get(&caller.process).map(|buffer| &buffer.window as &dyn Memory)
    }
}

/// A client's connection to a server with which it shares memory. Threads use it one after another; threads that should
/// not wait for each other have a connection each. Attaching another buffer makes the old connection useless.
#[derive(Debug)]
pub struct Connection {
    endpoint: Cap<Endpoint>,
    window: Mutex<Window>,
    _frame: Held,
}

/// A slot whose capability is deleted when nobody uses it any more.
#[derive(Debug)]
struct Held(CapAddress);

impl Drop for Held {
    fn drop(&mut self) {
        // The server may have revoked the frame before.
        let _ = OWN_CSPACE.delete_at(self.0);
        memory::free_slot(self.0);
    }
}

impl Connection {
    /// Returns a connection that uses the buffer returned by a client's `attach_buffer`. The slot belongs to the
    /// connection from now on.
    ///
    /// # Errors
    /// Fails if the buffer does not fit into the address space; the slot is free again.
    pub fn new(endpoint: Cap<Endpoint>, frame: Cap<Frame>, bits: u64) -> Result<Connection, memory::Error> {
        let held = Held(frame.address());
        let bits = u32::try_from(bits).map_err(|_| memory::Error::BadSize)?;
        let window = Window::new(frame, bits, MapFlags::READ | MapFlags::WRITE)?;
        Ok(Connection { endpoint, window: Mutex::new(window), _frame: held })
    }
}

impl Transport for &Connection {
    fn call_registers(self, label: u64, words: &Registers) -> Result<Words, Error> {
        Transport::call_registers(self.endpoint, label, words)
    }

    fn call_short(
        self,
        label: u64,
        words: &Registers,
        caps: usize,
        offered: &[CapAddress],
    ) -> Result<transport::Short, Error> {
        Transport::call_short(self.endpoint, label, words, caps, offered)
    }

    fn call(self, request: &Message, offered: &[CapAddress], reply: &mut Received) -> Result<(), Error> {
        Transport::call(self.endpoint, request, offered, reply)
    }
}

impl Shares for &Connection {
    fn share<T>(self, with: impl FnOnce(&dyn Memory) -> T) -> T {
        with(&*self.window.lock())
    }
}
