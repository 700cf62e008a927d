//! How sockets are made, get connections, and stop.

use core::net::SocketAddr;

use crate::address::{self, Address};
use crate::control::Credentials;
use crate::numbers::{family, kind, protocol, shutdown};
use crate::socket::{Domain, Kind, Socket, State};
use crate::{Errno, Event, Refusal, SocketId, Sockets, Target};

/// The most connections that may wait to be accepted.
const MAX_BACKLOG: u32 = 4096;
/// Messages of others that may wait in a Unix socket's queue, less one.
pub(crate) const MESSAGES: u32 = 10;

/// Returns what kind of socket three numbers mean.
///
/// # Errors
/// - `EINVAL`: there is no such type or protocol.
/// - `EAFNOSUPPORT`: the family is not supported.
/// - `ESOCKTNOSUPPORT`: the family has no sockets of the type.
/// - `EPROTONOSUPPORT`: the family has no such protocol, or not with the type.
fn meaning(domain: u32, kind: u32, protocol: u32) -> Result<(Domain, Kind), Errno> {
    if kind >= kind::MAX {
        return Err(Errno::EINVAL);
    }
    let domain = match u16::try_from(domain) {
        Ok(family::UNIX) => Domain::Unix,
        Ok(family::INET) => Domain::Internet,
        Ok(family::INET6) => Domain::Internet6,
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    if domain == Domain::Unix {
        return match (protocol, kind) {
            (2.., _) => Err(Errno::EPROTONOSUPPORT),
            (_, kind::STREAM) => Ok((domain, Kind::Stream)),
            (_, kind::DGRAM | kind::RAW) => Ok((domain, Kind::Datagram)),
            (_, kind::SEQPACKET) => Ok((domain, Kind::Sequenced)),
            _ => Err(Errno::ESOCKTNOSUPPORT),
        };
    }
    match (kind, protocol) {
        (_, protocol::MAX..) => Err(Errno::EINVAL),
        (kind::STREAM, 0 | protocol::TCP) => Ok((domain, Kind::Stream)),
        (kind::DGRAM, 0 | protocol::UDP | protocol::UDPLITE) => Ok((domain, Kind::Datagram)),
        (kind::STREAM | kind::DGRAM | kind::RAW, _) => Err(Errno::EPROTONOSUPPORT),
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }
}

impl<R> Sockets<R> {
    /// Makes a socket of a family, type (without flags) and protocol.
    ///
    /// # Errors
    /// - `EINVAL`: there is no such type or protocol.
    /// - `EAFNOSUPPORT`: the family is not supported.
    /// - `ESOCKTNOSUPPORT`: the family has no sockets of the type.
    /// - `EPROTONOSUPPORT`: the family has no such protocol, or not with the type.
    /// - `ENFILE`, `ENOMEM`
    pub fn socket(&mut self, domain: u32, kind: u32, protocol: u32) -> Result<SocketId, Errno> {
        let (domain, kind) = meaning(domain, kind, protocol)?;
        let index = self.add(domain, kind)?;
        let socket = self.at_mut(index);
        socket.backlog = MESSAGES;
        socket.internet.is_lite = domain != Domain::Unix && protocol == protocol::UDPLITE;
        Ok(SocketId(index))
    }

    /// Makes two sockets that are connected with each other, of a process with these credentials.
    ///
    /// # Errors
    /// - Those of [`Sockets::socket`].
    /// - `EOPNOTSUPP`: the family has no pairs.
    pub fn pair(
        &mut self,
        domain: u32,
        kind: u32,
        protocol: u32,
        credentials: Credentials,
    ) -> Result<[SocketId; 2], Errno> {
        let (domain, kind) = meaning(domain, kind, protocol)?;
        if domain != Domain::Unix {
            return Err(Errno::EOPNOTSUPP);
        }
        let one = self.add(domain, kind)?;
        let other = self.add(domain, kind).inspect_err(|_| self.close_at(one))?;
        for (own, peer) in [(one, other), (other, one)] {
            self.set_peer(own, Some(peer));
            let socket = self.at_mut(own);
            socket.backlog = MESSAGES;
            socket.state = State::Established;
            socket.credentials = credentials;
        }
        Ok([SocketId(one), SocketId(other)])
    }

    /// Lets a socket receive connections, so many of which may wait to be accepted. Who connects sees these
    /// credentials.
    ///
    /// # Errors
    /// - `EOPNOTSUPP`: sockets of this type make no connections.
    /// - `EINVAL`: the socket is connected, or is a Unix socket without a name.
    /// - `EADDRINUSE`: another one listens at this port.
    /// - `EBADF`
    pub fn listen(&mut self, id: SocketId, backlog: u32, credentials: Credentials) -> Result<(), Errno> {
        let socket = self.open(id)?;
        if !socket.kind.connects() {
            return Err(Errno::EOPNOTSUPP);
        }
        let is_connected = socket.state == State::Established || socket.internet.was_connected;
        if is_connected || socket.is_unix() && socket.name.is_none() {
            return Err(Errno::EINVAL);
        }
        if socket.is_tcp() && socket.state == State::Closed {
            self.enter_listener(id.0)?;
        }
        let socket = self.at_mut(id.0);
        if socket.is_unix() {
            socket.credentials = credentials;
        }
        socket.state = State::Listening;
        socket.backlog = backlog.min(MAX_BACKLOG);
        self.tell(id.0, Event::Room);
        Ok(())
    }

    /// Takes the first connection that waits. Only a caller that may wait is told that there will be none.
    ///
    /// # Errors
    /// - `EOPNOTSUPP`: sockets of this type make no connections.
    /// - `EINVAL`: the socket does not listen, or not any more.
    /// - `EBADF`
    pub fn accept(&mut self, id: SocketId, may_wait: bool) -> Result<SocketId, Refusal> {
        let socket = self.open(id)?;
        if !socket.kind.connects() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if socket.state != State::Listening {
            return Err(Errno::EINVAL.into());
        }
        let no_more_come = may_wait && socket.is_unix() && socket.receives_no_more;
        let Some(connection) = self.at_mut(id.0).connections.pop_front() else {
            if no_more_come {
                return Err(Errno::EINVAL.into());
            }
            return Err(Refusal::Waits(id, Event::Readable));
        };
        self.at_mut(connection).is_embryo = false;
        self.tell(id.0, Event::Room);
        Ok(SocketId(connection))
    }

    /// Connects a socket, for a process with these credentials. Sockets that send messages have a default receiver
    /// after that.
    ///
    /// # Errors
    /// - `ECONNREFUSED`: nobody is there, or listens.
    /// - `EPROTOTYPE`: a socket of another type is there.
    /// - `EISCONN`: the socket is connected.
    /// - `EINVAL`: the socket listens.
    /// - `EPERM`: the receiver receives from its own peer only.
    /// - `EAFNOSUPPORT`: the address is of another family.
    /// - `ENETUNREACH`: the address is not one of loopback.
    /// - `EADDRNOTAVAIL`: there is no free port, or the connection exists.
    /// - `EBADF`, `ENFILE`, `ENOMEM`
    pub fn connect(&mut self, id: SocketId, target: Target<'_>, credentials: Credentials) -> Result<(), Refusal> {
        let socket = self.open(id)?;
        match (socket.domain, socket.kind) {
            (Domain::Unix, Kind::Datagram) => self.connect_messages(id.0, target),
            (Domain::Unix, _) => self.connect_unix(id.0, target, credentials),
            (_, Kind::Stream) => self.connect_tcp(id.0, target),
            _ => self.connect_udp(id.0, target).map_err(Refusal::from),
        }
    }

    /// Ends one or both directions.
    ///
    /// # Errors
    /// - `EINVAL`: there is no such direction.
    /// - `ENOTCONN`: an internet socket is not connected.
    /// - `EBADF`
    pub fn shut_down(&mut self, id: SocketId, direction: u32) -> Result<(), Errno> {
        let is_unix = self.open(id)?.is_unix();
        let (receives, sends) = match direction {
            shutdown::READ => (true, false),
            shutdown::WRITE => (false, true),
            shutdown::BOTH => (true, true),
            _ => return Err(Errno::EINVAL),
        };
        if is_unix {
            self.shut_down_unix(id.0, receives, sends);
            return Ok(());
        }
        self.shut_down_internet(id.0, receives, sends)
    }

    /// Returns a socket's own address (`getsockname`).
    ///
    /// # Errors
    /// `EBADF`
    pub fn name(&self, id: SocketId) -> Result<Address<'_>, Errno> {
        let socket = self.open(id)?;
        if socket.is_unix() {
            return Ok(Address::Unix(socket.name.as_deref()));
        }
        Ok(Address::Internet(shown_by(socket, socket.internet.local)))
    }

    /// Returns the address of a socket's peer (`getpeername`).
    ///
    /// # Errors
    /// - `ENOTCONN`: the socket is not connected.
    /// - `EBADF`
    pub fn peer_name(&self, id: SocketId) -> Result<Address<'_>, Errno> {
        let socket = self.open(id)?;
        if socket.is_unix() {
            let peer = socket.peer.ok_or(Errno::ENOTCONN)?;
            return Ok(Address::Unix(self.at(peer).name.as_deref()));
        }
        let remote = socket.internet.remote.filter(|remote| socket.state == State::Established && remote.port() != 0);
        Ok(Address::Internet(shown_by(socket, remote.ok_or(Errno::ENOTCONN)?)))
    }
}

/// Returns an internet address in the form of a socket's family.
pub(crate) fn shown_by<R>(socket: &Socket<R>, address: SocketAddr) -> SocketAddr {
    if socket.domain == Domain::Internet6 { address::in_version_6(address) } else { address }
}
