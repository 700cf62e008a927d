//! The table of all sockets, and what happens to them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::Errno;
use crate::ports::Ports;
use crate::queue::{Origin, Segment};
use crate::socket::{Domain, Kind, Socket, State};

/// A socket.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SocketId(pub(crate) u32);

impl SocketId {
    /// Returns a number that no other open socket has.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// Something that may have happened to a socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// There is something to receive or to accept, an error, or nothing more will come.
    Readable,
    /// There is room for what this socket sends, an error, or nothing can be sent any more.
    Writable,
    /// There is room in this socket's queue of messages or connections for what others send to it; or it was closed.
    Room,
}

impl Event {
    const fn mark(self) -> u8 {
        match self {
            Event::Readable => 1,
            Event::Writable => 2,
            Event::Room => 4,
        }
    }
}

/// The reason why an operation has done nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The operation fails.
    Fails(Errno),
    /// The operation would wait. The call fails with `EAGAIN`, or is made again after this event of this socket.
    Waits(SocketId, Event),
}

impl Refusal {
    /// Returns the error for a call that does not wait.
    pub const fn errno(self) -> Errno {
        match self {
            Refusal::Fails(error) => error,
            Refusal::Waits(..) => Errno::EAGAIN,
        }
    }
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Refusal {
        Refusal::Fails(error)
    }
}

/// The socket that an address means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// None: `connect` undoes a connection (`AF_UNSPEC`).
    Nobody,
    /// The Unix socket that is bound to a node.
    Node(u64),
    /// The Unix socket with an abstract name.
    Abstract(&'a [u8]),
    /// An internet address.
    Internet(SocketAddr),
}

/// How much there may be of everything at once, whatever programs do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Sockets (`ENFILE`).
    pub sockets: usize,
    /// Bytes that nobody has received (`ENOBUFS`).
    pub bytes: usize,
    /// Rights that nobody has received (`ETOOMANYREFS`).
    pub rights: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sockets: 1 << 16, bytes: 64 << 20, rights: 1 << 14 }
    }
}

/// All sockets. `R` is a right that can be sent.
#[derive(Debug)]
pub struct Sockets<R> {
    pub(crate) slots: Vec<Socket<R>>,
    /// Slots without a socket.
    pub(crate) free: Vec<u32>,
    pub(crate) limits: Limits,
    /// Unix sockets by their names. An abstract name is another one for each type of socket.
    pub(crate) nodes: BTreeMap<u64, u32>,
    pub(crate) abstract_names: BTreeMap<(Kind, Vec<u8>), u32>,
    pub(crate) next_name: u32,
    pub(crate) ports: Ports,
    pub(crate) events: Vec<(SocketId, Event)>,
    /// Rights that nobody can receive any more.
    pub(crate) returned: Vec<R>,
    /// Number of bytes and rights in all queues.
    pub(crate) held_bytes: usize,
    pub(crate) held_rights: usize,
    /// Set if a queue has taken more memory.
    pub(crate) has_grown: bool,
}

impl<R> Sockets<R> {
    /// Begins with no sockets.
    pub const fn new(limits: Limits) -> Sockets<R> {
        Sockets {
            slots: Vec::new(),
            free: Vec::new(),
            limits,
            nodes: BTreeMap::new(),
            abstract_names: BTreeMap::new(),
            next_name: 0,
            ports: Ports::new(),
            events: Vec::new(),
            returned: Vec::new(),
            held_bytes: 0,
            held_rights: 0,
            has_grown: false,
        }
    }

    /// Makes room for further sockets. `check` checks that there are so many bytes of memory.
    ///
    /// # Errors
    /// Those of `check`.
    pub fn prepare(&mut self, count: usize, check: impl FnOnce(usize) -> Result<(), Errno>) -> Result<(), Errno> {
        let used = self.slots.len();
        if self.slots.capacity() - used + self.free.len() >= count {
            return Ok(());
        }
        let more = count.max(used);
        check((used + more) * (size_of::<Socket<R>>() + size_of::<u32>()))?;
        self.slots.reserve(more);
        // A socket that goes needs no memory for that.
        self.free.reserve(self.slots.capacity() - self.free.len());
        Ok(())
    }

    /// Returns whether a queue has taken more memory since the last time.
    pub const fn take_growth(&mut self) -> bool {
        core::mem::replace(&mut self.has_grown, false)
    }

    /// Returns the number of sockets, with those that are closed but not forgotten.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether there are no sockets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the events since the last time. Each is told once however often it has happened; one that is told may
    /// also concern a socket that was closed since.
    pub fn take_events(&mut self) -> impl Iterator<Item = (SocketId, Event)> {
        for (socket, _) in &self.events {
            self.slots[socket.0 as usize].marks = 0;
        }
        self.events.drain(..)
    }

    /// Takes the rights that were sent, and that nobody can receive any more.
    pub fn take_rights(&mut self) -> Vec<R> {
        core::mem::take(&mut self.returned)
    }

    /// Returns the number of rights that were sent and are not received yet.
    pub const fn held_rights(&self) -> usize {
        self.held_rights
    }

    pub(crate) fn at(&self, index: u32) -> &Socket<R> {
        &self.slots[index as usize]
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> &mut Socket<R> {
        &mut self.slots[index as usize]
    }

    /// Returns the socket that a caller names.
    ///
    /// # Errors
    /// `EBADF`
    pub(crate) fn open(&self, id: SocketId) -> Result<&Socket<R>, Errno> {
        self.slots.get(id.0 as usize).filter(|socket| socket.is_open).ok_or(Errno::EBADF)
    }

    /// Tells an event, unless that is done already.
    pub(crate) fn tell(&mut self, index: u32, event: Event) {
        let socket = &mut self.slots[index as usize];
        if socket.marks & event.mark() == 0 {
            socket.marks |= event.mark();
            self.events.push((SocketId(index), event));
        }
    }

    /// Tells that a socket's state is another one, which who receives and who sends must see.
    pub(crate) fn tell_state(&mut self, index: u32) {
        self.tell(index, Event::Readable);
        self.tell(index, Event::Writable);
    }

    /// Adds an open socket.
    ///
    /// # Errors
    /// `ENFILE`, `ENOMEM`
    pub(crate) fn add(&mut self, domain: Domain, kind: Kind) -> Result<u32, Errno> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() >= self.limits.sockets => return Err(Errno::ENFILE),
            None => {
                self.slots.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
                self.slots.push(Socket::new(domain, kind));
                self.slots.len() as u32 - 1
            }
        };
        // An event that is told for this slot is not told again.
        let marks = self.at(index).marks;
        *self.at_mut(index) = Socket { references: 1, is_open: true, marks, ..Socket::new(domain, kind) };
        Ok(index)
    }

    /// Removes a reference to a socket. With the last one, the socket goes.
    pub(crate) fn release(&mut self, index: u32) {
        let socket = self.at_mut(index);
        socket.references -= 1;
        if socket.references == 0 {
            let marks = socket.marks;
            *socket = Socket { marks, ..Socket::new(Domain::Unix, Kind::Stream) };
            self.free.push(index);
        }
    }

    /// Makes a socket the peer of another one, or of nobody, instead of the peer that it had.
    pub(crate) fn set_peer(&mut self, index: u32, peer: Option<u32>) {
        if let Some(peer) = peer {
            self.at_mut(peer).references += 1;
        }
        let old = core::mem::replace(&mut self.at_mut(index).peer, peer);
        if let Some(old) = old {
            self.release(old);
        }
    }

    /// Does what follows when a segment was taken out of a queue: its sender has room again. Returns its rights.
    pub(crate) fn settle(&mut self, segment: Segment<R>) -> Vec<R> {
        if let Origin::Unix(sender) = segment.origin {
            let socket = self.at_mut(sender);
            let had_room = socket.has_room();
            socket.sent -= segment.charge;
            if !had_room && socket.has_room() && socket.is_open {
                self.tell(sender, Event::Writable);
            }
            self.release(sender);
        }
        self.held_rights -= segment.rights.len();
        segment.rights
    }

    /// Empties a socket's queue.
    pub(crate) fn purge(&mut self, index: u32) {
        let queue = &mut self.at_mut(index).queue;
        let count = queue.bytes.len();
        queue.drop_bytes(count);
        self.held_bytes -= count;
        while let Some(segment) = self.at_mut(index).queue.pop() {
            let rights = self.settle(segment);
            self.returned.extend(rights);
        }
    }

    /// Ends a socket: the caller does not use it any more. Rights that it had not received are returned by
    /// [`Sockets::take_rights`].
    ///
    /// # Errors
    /// `EBADF`
    pub fn close(&mut self, id: SocketId) -> Result<(), Errno> {
        self.open(id)?;
        self.close_at(id.0);
        Ok(())
    }

    /// Closes a socket.
    pub(crate) fn close_at(&mut self, index: u32) {
        if self.at(index).is_unix() {
            self.close_unix(index);
        } else {
            self.close_internet(index);
        }
        self.purge(index);
        self.set_peer(index, None);
        self.tell(index, Event::Room);
        let socket = self.at_mut(index);
        socket.is_open = false;
        socket.state = State::Closed;
        self.release(index);
    }

    /// Closes the connections that nobody has accepted.
    pub(crate) fn close_connections(&mut self, index: u32) {
        while let Some(connection) = self.at_mut(index).connections.pop_front() {
            self.close_at(connection);
        }
    }

    /// Returns an error if so many more bytes and rights are too many.
    ///
    /// # Errors
    /// `ENOBUFS`, `ETOOMANYREFS`
    pub(crate) const fn check_limits(&self, bytes: usize, rights: usize) -> Result<(), Errno> {
        if rights > self.limits.rights.saturating_sub(self.held_rights) {
            return Err(Errno::ETOOMANYREFS);
        }
        if bytes > self.limits.bytes.saturating_sub(self.held_bytes) {
            return Err(Errno::ENOBUFS);
        }
        Ok(())
    }
}
