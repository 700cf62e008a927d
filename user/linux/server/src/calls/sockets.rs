//! Sockets: making them, their addresses, connections and options.

use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_calls::numbers::{capability, open, permission};
use tench_linux_files::{Errno, Found, Kind, Last, NewNode, NodeId, Tree};
use tench_linux_sockets::address::{UnixAddress, family_of, parse_internet};
use tench_linux_sockets::numbers::family;
use tench_linux_sockets::{Credentials, Refusal, SocketId, Target};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::specials::{Socket, Special};
use crate::waiting::{Interruption, Key};

/// Flags beside the type of a socket.
const FLAGS: u32 = open::CLOEXEC | open::NONBLOCK;
/// The longest address.
const MAX_ADDRESS: usize = 128;
/// The longest value of an option.
const MAX_OPTION: u64 = 256;

/// An address that a program gives.
pub(crate) enum Named {
    Nobody,
    Node(NodeId),
    Abstract(Vec<u8>),
    Internet(core::net::SocketAddr),
}

impl Named {
    /// Returns what the address means.
    pub(crate) fn target(&self) -> Target<'_> {
        match self {
            Named::Nobody => Target::Nobody,
            Named::Node(node) => Target::Node(Tree::number(*node)),
            Named::Abstract(name) => Target::Abstract(name),
            Named::Internet(address) => Target::Internet(*address),
        }
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Returns the socket of a descriptor, with the number of what has it and the flags of its open file.
    pub(crate) fn socket_of(&mut self, descriptor: u64) -> Result<(Socket, u32, u32)> {
        let description = self.descriptor(descriptor)?;
        let open_file = self.system.descriptions.get(description);
        let (node, flags) = (open_file.node, open_file.flags);
        if flags & open::PATH != 0 {
            return Err(Errno::EBADF);
        }
        let Kind::Special(number) = self.system.tree.node(node).kind else { return Err(Errno::ENOTSOCK) };
        match self.system.specials.get(number) {
            Special::Socket(socket) => Ok((*socket, number, flags)),
            _ => Err(Errno::ENOTSOCK),
        }
    }

    /// Returns the credentials of the process, as its peers see them.
    fn credentials(&self) -> Credentials {
        let identity = self.identity();
        Credentials { process: self.process.id, user: identity.user.effective, group: identity.group.effective }
    }

    /// Opens a socket. Returns its descriptor.
    fn add_socket(&mut self, socket: Socket, flags: u32) -> Result {
        let kept = open::RDWR | flags & open::NONBLOCK;
        self.add_special(Special::Socket(socket), kept, flags & open::CLOEXEC != 0)
    }

    /// Makes a socket.
    pub fn socket(&mut self, family: u64, kind: u64, protocol: u64) -> Result {
        let (kind, flags) = (kind as u32 & !FLAGS, kind as u32 & FLAGS);
        let id = self.system.sockets.socket(family as u32, kind, protocol as u32)?;
        self.add_socket(Socket { id, family: family as u16, kind, node: None }, flags)
    }

    /// Makes two sockets that are connected with each other.
    pub fn socketpair(&mut self, family: u64, kind: u64, protocol: u64, into: u64) -> Result {
        let (kind, flags) = (kind as u32 & !FLAGS, kind as u32 & FLAGS);
        let credentials = self.credentials();
        let ids = self.system.sockets.pair(family as u32, kind, protocol as u32, credentials)?;
        let [one, other] = ids.map(|id| Socket { id, family: family as u16, kind, node: None });
        let first = match self.add_socket(one, flags) {
            Ok(first) => first,
            Err(error) => {
                let closed = self.system.sockets.close(other.id);
                debug_assert!(closed.is_ok(), "the other one is open still");
                self.system.settle_sockets();
                return Err(error);
            }
        };
        let both = self.add_socket(other, flags).and_then(|second| {
            let numbers = [first, second].map(|number| (number as u32).to_le_bytes()).concat();
            let written = self.write(into, &numbers);
            written.inspect_err(|_| self.undo(second))
        });
        both.inspect_err(|_| self.undo(first)).map(|()| 0)
    }

    /// Closes a descriptor that the call has made.
    fn undo(&mut self, descriptor: u64) {
        let closed = self.close(descriptor);
        debug_assert!(closed.is_ok(), "it has just been opened");
    }

    /// Reads an address of the process.
    pub(crate) fn read_address(&mut self, address: u64, length: u64) -> Result<Vec<u8>> {
        let length = (length as u32).cast_signed();
        if length < 0 || length as usize > MAX_ADDRESS {
            return Err(Errno::EINVAL);
        }
        self.read(address, length as usize)
    }

    /// Returns what an address means that the process sends to.
    pub(crate) fn named(&mut self, socket: &Socket, record: &[u8]) -> Result<Named> {
        if socket.family != family::UNIX {
            return parse_internet(socket.family, record).map(Named::Internet);
        }
        match UnixAddress::parse(record)? {
            UnixAddress::Unnamed => Err(Errno::EINVAL),
            UnixAddress::Abstract(name) => Ok(Named::Abstract(name.to_vec())),
            UnixAddress::Path(path) => {
                let places = (self.process.root, self.process.directory);
                let node = self.system.tree.find_with(&self.view(), places, path, Last::Follow)?;
                self.may_access(node, permission::WRITE)?;
                let is_socket = matches!(self.system.tree.node(node).kind, Kind::Socket);
                if is_socket { Ok(Named::Node(node)) } else { Err(Errno::ECONNREFUSED) }
            }
        }
    }

    /// Gives a socket an address.
    pub fn bind(&mut self, descriptor: u64, address: u64, length: u64) -> Result {
        let (socket, number, _) = self.socket_of(descriptor)?;
        let record = self.read_address(address, length)?;
        if socket.family != family::UNIX {
            let address = parse_internet(socket.family, &record)?;
            return self.bind_port(socket.id, address);
        }
        match UnixAddress::parse(&record)? {
            UnixAddress::Unnamed => self.system.sockets.bind_automatically(socket.id).map(|()| 0),
            UnixAddress::Abstract(name) => self.system.sockets.bind_abstract(socket.id, name).map(|()| 0),
            UnixAddress::Path(path) => self.bind_path(socket, number, path),
        }
    }

    /// Binds a socket to an address with a port. Low ports need a capability.
    fn bind_port(&mut self, socket: SocketId, address: core::net::SocketAddr) -> Result {
        const FIRST_FREE: u16 = 1024;
        let ip = address.ip();
        let is_own = ip.is_loopback() || ip.is_unspecified();
        let is_low = is_own && (1..FIRST_FREE).contains(&address.port());
        if is_low && !self.identity().has(capability::NET_BIND_SERVICE) {
            return Err(Errno::EACCES);
        }
        self.system.sockets.bind_internet(socket, address).map(|()| 0)
    }

    /// Makes a file that is a socket's address.
    fn bind_path(&mut self, socket: Socket, number: u32, path: &[u8]) -> Result {
        let places = (self.process.root, self.process.directory);
        let place = self.system.tree.walk_with(&self.view(), places, path, Last::Name)?;
        if place.entry()?.is_some() {
            return Err(Errno::EADDRINUSE);
        }
        self.may_make(&place)?;
        self.may_enter(&place, false)?;
        if socket.node.is_some() {
            return Err(Errno::EINVAL);
        }
        self.make_in_mount(&place, &NewNode::Socket)?;
        self.system.update_time();
        let permissions = 0o777 & !self.process.mask;
        let node = self.system.tree.make(&mut self.system.memory, &place, NewNode::Socket, permissions)?;
        if let Err(error) = self.system.sockets.bind_node(socket.id, Tree::number(node), path) {
            let removed = self.system.tree.unlink(&mut self.system.memory, &place);
            debug_assert!(removed.is_ok(), "it has just been made");
            if self.system.is_watching() {
                self.system.settle_watches();
            }
            return Err(error);
        }
        self.own_in(place.parent, node);
        self.system.tree.share(node);
        if self.system.is_watching() {
            self.system.tell_of_making(&Found { node: Some(node), ..place }, false);
        }
        *self.system.specials.get(number) = Special::Socket(Socket { node: Some(node), ..socket });
        Ok(0)
    }

    /// Lets a socket take connections.
    pub fn listen(&mut self, descriptor: u64, backlog: u64) -> Result {
        let (socket, ..) = self.socket_of(descriptor)?;
        let credentials = self.credentials();
        self.system.sockets.listen(socket.id, backlog as u32, credentials)?;
        self.system.settle_sockets();
        Ok(0)
    }

    /// Returns the result of an operation on a socket, which waits if the socket does, at the longest as long as the
    /// socket's option says.
    pub(crate) fn socket_result<T>(
        &mut self,
        id: SocketId,
        result: core::result::Result<T, Refusal>,
        may_wait: bool,
        sends: bool,
    ) -> Result<T> {
        self.system.settle_sockets();
        let (other, event) = match result {
            Ok(value) => return Ok(value),
            Err(Refusal::Fails(error)) => return Err(error),
            Err(Refusal::Waits(..)) if !may_wait => return Err(Errno::EAGAIN),
            Err(Refusal::Waits(other, event)) => (other, event),
        };
        let limit = self.system.sockets.time_limit(id, sends)?.map(Duration::from_micros);
        let deadline = match self.waiting() {
            Some(waiting) => waiting.deadline,
            None => limit.map(|limit| self.system.memory.hardware.monotonic().saturating_add(limit)),
        };
        if self.has_passed(deadline) {
            return Err(Errno::EAGAIN);
        }
        let interruption = if deadline.is_some() { Interruption::Final } else { Interruption::Restartable };
        Err(self.wait(&[Key::Socket(other, event)], deadline, interruption))
    }

    /// Connects a socket.
    pub fn connect(&mut self, descriptor: u64, address: u64, length: u64) -> Result {
        let (socket, _, flags) = self.socket_of(descriptor)?;
        let record = self.read_address(address, length)?;
        let named = match family_of(&record)? {
            family::UNSPEC => Named::Nobody,
            _ => self.named(&socket, &record)?,
        };
        let credentials = self.credentials();
        let may_wait = flags & open::NONBLOCK == 0;
        let result = if may_wait {
            self.system.sockets.connect(socket.id, named.target(), credentials)
        } else {
            self.system.sockets.attempt(socket.id, named.target(), credentials)
        };
        self.socket_result(socket.id, result, may_wait, true).map(|()| 0)
    }

    /// Takes a connection. Returns a descriptor for it.
    pub fn accept(&mut self, descriptor: u64, address: u64, length: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !FLAGS != 0 {
            return Err(Errno::EINVAL);
        }
        let (socket, _, own) = self.socket_of(descriptor)?;
        let may_wait = own & open::NONBLOCK == 0;
        let result = self.system.sockets.accept(socket.id, may_wait);
        let id = self.socket_result(socket.id, result, may_wait, false)?;
        let number = self.add_socket(Socket { id, node: None, ..socket }, flags)?;
        if address != 0 {
            let mut record = Vec::new();
            // A connection whose other side has gone already has no address.
            if let Ok(peer) = self.system.sockets.peer_name(id) {
                peer.write(&mut record);
            }
            self.write_address(&record, address, length).inspect_err(|_| self.undo(number))?;
        }
        Ok(number)
    }

    /// Writes an address, or as much of it as there is room for, and its length.
    pub(crate) fn write_address(&mut self, record: &[u8], into: u64, length: u64) -> Result<()> {
        let room = u32::from_le_bytes(self.read_record(length)?).cast_signed();
        if room < 0 {
            return Err(Errno::EINVAL);
        }
        self.write(into, &record[..record.len().min(room as usize)])?;
        self.write(length, &(record.len() as u32).to_le_bytes())
    }

    /// Reads a socket's address.
    pub fn getsockname(&mut self, descriptor: u64, into: u64, length: u64) -> Result {
        let (socket, ..) = self.socket_of(descriptor)?;
        let mut record = Vec::new();
        self.system.sockets.name(socket.id)?.write(&mut record);
        self.write_address(&record, into, length).map(|()| 0)
    }

    /// Reads the address with which a socket is connected.
    pub fn getpeername(&mut self, descriptor: u64, into: u64, length: u64) -> Result {
        let (socket, ..) = self.socket_of(descriptor)?;
        let mut record = Vec::new();
        self.system.sockets.peer_name(socket.id)?.write(&mut record);
        self.write_address(&record, into, length).map(|()| 0)
    }

    /// Reads an option.
    pub fn getsockopt(&mut self, descriptor: u64, level: u64, name: u64, into: u64, length: u64) -> Result {
        let (socket, ..) = self.socket_of(descriptor)?;
        let room = u32::from_le_bytes(self.read_record(length)?).cast_signed();
        if room < 0 {
            return Err(Errno::EINVAL);
        }
        let value = self.system.sockets.option(socket.id, level as u32, name as u32)?;
        let bytes = value.as_bytes();
        let bytes = &bytes[..bytes.len().min(room as usize)];
        self.write(into, bytes)?;
        self.write(length, &(bytes.len() as u32).to_le_bytes()).map(|()| 0)
    }

    /// Sets an option.
    pub fn setsockopt(&mut self, descriptor: u64, level: u64, name: u64, value: u64, length: u64) -> Result {
        let (socket, ..) = self.socket_of(descriptor)?;
        if (length as u32).cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let bytes = self.read(value, u64::from(length as u32).min(MAX_OPTION) as usize)?;
        self.system.sockets.set_option(socket.id, level as u32, name as u32, &bytes)?;
        self.system.settle_sockets();
        Ok(0)
    }

    /// Ends one or both directions of a connection.
    pub fn shutdown(&mut self, descriptor: u64, direction: u64) -> Result {
        let (socket, ..) = self.socket_of(descriptor)?;
        self.system.sockets.shut_down(socket.id, direction as u32)?;
        self.system.settle_sockets();
        Ok(0)
    }

    /// Tells how many bytes a socket has to be received, or to be sent.
    pub(crate) fn count_socket_bytes(&mut self, socket: &Socket, sends: bool, into: u64) -> Result {
        let sockets = &self.system.sockets;
        let count = if sends { sockets.unsent_bytes(socket.id) } else { sockets.readable_bytes(socket.id) };
        self.write(into, &(count? as u32).to_le_bytes()).map(|()| 0)
    }
}
