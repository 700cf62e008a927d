//! Memory that a server shares with its clients, for what exceeds a message: both sides of `tench_protocol::shared`.
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
use tench_sys::{Cap, CapAddress, Endpoint, Error, Frame, MapFlags, Message, OWN_SPACE, Received, Words};

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

/// A server's buffers, one for each caller. The server pays for them, so it says how large and how many they may be.
#[derive(Debug)]
pub struct Buffers {
    /// By process.
    held: BTreeMap<u64, Buffer>,
    largest: u64,
    most: usize,
}

/// One of them. The window goes before the frame.
#[derive(Debug)]
struct Buffer {
    window: Window,
    _frame: Made<Frame>,
}

impl Buffers {
    /// None yet: each of at most `largest` bytes, at most `most` of them.
    pub const fn new(largest: u64, most: usize) -> Buffers {
        Buffers { held: BTreeMap::new(), largest, most }
    }

    /// Gives up the buffer of a process that has ended, if it had one.
    pub fn forget(&mut self, process: u64) {
        self.held.remove(&process);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.held.len()
    }
}

impl Attachments for Buffers {
    fn attach(&mut self, caller: Caller, bytes: u64) -> Result<(Cap<Frame>, u64), Error> {
        // The old one first, so that a caller cannot have two.
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

/// A client's way to a server with which it shares memory. Threads use it one after another; those that should not wait
/// for each other have a connection each. It is useless once another buffer was attached in its place.
#[derive(Debug)]
pub struct Connection {
    endpoint: Cap<Endpoint>,
    window: Mutex<Window>,
    _frame: Held,
}

/// A slot with a capability that is deleted when nobody uses it any more.
#[derive(Debug)]
struct Held(CapAddress);

impl Drop for Held {
    fn drop(&mut self) {
        // The server may have taken the frame away before.
        let _ = OWN_SPACE.delete_at(self.0);
        memory::free_slot(self.0);
    }
}

impl Connection {
    /// With the buffer that a client's `attach_buffer` has answered. The slot belongs to the connection from now on.
    ///
    /// # Errors
    /// There is no room for the buffer in the address space; the slot is free again.
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

    fn call(self, request: &Message, offered: &[CapAddress], answer: &mut Received) -> Result<(), Error> {
        Transport::call(self.endpoint, request, offered, answer)
    }
}

impl Shares for &Connection {
    fn share<T>(self, with: impl FnOnce(&dyn Memory) -> T) -> T {
        with(&*self.window.lock())
    }
}
