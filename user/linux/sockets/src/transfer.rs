//! Sending and receiving, by all kinds of sockets.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::address::{Address, UnixName};
use crate::control::{Credentials, Ipv6Header};
use crate::numbers::message;
use crate::parts::{self, Sink, Source};
use crate::queue::{Origin, Queue};
use crate::socket::{Kind, Socket, State};
use crate::{Errno, Event, Refusal, SocketId, Sockets, Target};

/// The address and credentials that are sent with bytes.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// To whom, if not to the peer.
    pub to: Option<Target<'a>>,
    /// The sender's credentials.
    pub credentials: Credentials,
    /// Says whether the program has sent the credentials itself, so that they are told in any case.
    pub states_credentials: bool,
    /// IPv6 header fields that the program has set.
    pub header: Ipv6Header,
    /// Flags of the call.
    pub flags: u32,
}

/// The sender of what was received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sender {
    /// There is no address to tell: one of a connection, or a Unix socket without a name.
    Unnamed,
    /// A Unix socket.
    Unix(Arc<UnixName>),
    /// An internet address.
    Internet(SocketAddr),
}

impl Sender {
    /// Returns the address, if there is one.
    pub fn address(&self) -> Option<Address<'_>> {
        match self {
            Sender::Unnamed => None,
            Sender::Unix(name) => Some(Address::Unix(Some(name))),
            Sender::Internet(address) => Some(Address::Internet(*address)),
        }
    }
}

/// Everything that is received at once.
#[derive(Debug)]
pub struct Received<R> {
    /// The call's result: the number of bytes received; with `MSG_TRUNC`, of a message's bytes.
    pub count: usize,
    /// Flags for the program.
    pub flags: u32,
    /// The sender.
    pub sender: Sender,
    /// The sender's credentials, if the socket is told them.
    pub credentials: Option<Credentials>,
    /// IPv6 header fields that the program wants to receive.
    pub header: Ipv6Header,
    /// Rights, which the caller has now. None with `MSG_PEEK`: see [`Sockets::rights_ahead`].
    pub rights: Vec<R>,
    /// Says whether there were rights, also with `MSG_PEEK`.
    pub has_rights: bool,
}

impl<R> Received<R> {
    /// Returns bytes that were received from a stream, with nothing beside them.
    pub const fn of_bytes(count: usize) -> Received<R> {
        Received::new(count)
    }

    pub(crate) const fn new(count: usize) -> Received<R> {
        let header = Ipv6Header::DEFAULT;
        Received {
            count,
            flags: 0,
            sender: Sender::Unnamed,
            credentials: None,
            header,
            rights: Vec::new(),
            has_rights: false,
        }
    }
}

impl<R> Sockets<R> {
    /// Sends bytes, which are in several parts, and rights. Returns the number of bytes sent, which may be fewer with a
    /// stream: who waits sends the rest then. Rights are taken from the vector with the first byte, and left there if
    /// nothing was sent.
    ///
    /// # Errors
    /// - `EPIPE`: nothing can be sent any more. The caller raises `SIGPIPE` (for streams and sequenced packets).
    /// - `ENOTCONN`, `EDESTADDRREQ`: there is nobody to send to.
    /// - `ECONNREFUSED`, `ECONNRESET`: the receiver is gone.
    /// - `EISCONN`, `EOPNOTSUPP`: a Unix stream was given an address; or urgent data is to be sent.
    /// - `EMSGSIZE`: the message is too long.
    /// - `EPROTOTYPE`, `EPERM`: the receiver is of another type, or receives from its own peer only.
    /// - `EINVAL`, `EAFNOSUPPORT`, `ENETUNREACH`, `EACCES`: the address is none to which can be sent.
    /// - `ETOOMANYREFS`, `ENOBUFS`: too much lies in queues.
    /// - `EBADF`
    pub fn send(
        &mut self,
        id: SocketId,
        parts: &[&[u8]],
        message: &Message<'_>,
        rights: &mut Vec<R>,
    ) -> Result<usize, Refusal> {
        let socket = self.open(id)?;
        if message.flags & message::OOB != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        match (socket.is_unix(), socket.kind) {
            (true, Kind::Stream) => self.send_stream(id.0, parts, message, rights),
            (true, _) => self.send_message(id.0, parts, message, rights),
            (false, Kind::Stream) => self.send_tcp(id.0, parts),
            (false, _) => self.send_udp(id.0, parts, message).map_err(Refusal::from),
        }
    }

    /// Receives bytes into several parts. No bytes of a stream, where room for some was given, mean its end. A caller
    /// that wants all bytes (`MSG_WAITALL`) calls again for the rest, unless there were rights.
    ///
    /// # Errors
    /// - `ENOTCONN`, `EINVAL`: the socket is not connected.
    /// - `ECONNREFUSED`, `ECONNRESET`: the other side is gone.
    /// - `EOPNOTSUPP`, `EINVAL`: urgent data is wanted.
    /// - `EBADF`
    pub fn receive(&mut self, id: SocketId, parts: &mut [&mut [u8]], flags: u32) -> Result<Received<R>, Refusal> {
        let socket = self.open(id)?;
        let is_urgent = flags & message::OOB != 0;
        match (socket.is_unix(), socket.kind) {
            // Without urgent data, TCP says so like this.
            (false, Kind::Stream) if is_urgent => Err(Errno::EINVAL.into()),
            (true, _) if is_urgent => Err(Errno::EOPNOTSUPP.into()),
            (true, Kind::Stream) => self.receive_stream(id.0, parts, flags),
            (false, Kind::Stream) => self.receive_tcp(id.0, parts, flags),
            _ => self.receive_message(id.0, parts, flags),
        }
    }

    /// Returns the rights that come next.
    ///
    /// # Errors
    /// `EBADF`
    pub fn rights_ahead(&self, id: SocketId) -> Result<&[R], Errno> {
        let mut all = self.open(id)?.queue.segments.iter();
        Ok(all.find(|segment| !segment.rights.is_empty()).map_or(&[], |segment| &segment.rights))
    }

    /// Returns the number of bytes that can be received (`FIONREAD`): of a socket that receives messages, those of the
    /// first one.
    ///
    /// # Errors
    /// - `EINVAL`: the socket listens.
    /// - `EBADF`
    pub fn readable_bytes(&self, id: SocketId) -> Result<usize, Errno> {
        let socket = self.open(id)?;
        if socket.state == State::Listening {
            return Err(Errno::EINVAL);
        }
        Ok(match socket.kind {
            Kind::Datagram => socket.queue.segments.front().map_or(0, |segment| segment.length),
            _ => socket.queue.bytes.len(),
        })
    }

    /// Returns how much of what was sent lies in a buffer of the sender's (`SIOCOUTQ`). For Unix sockets that is what
    /// it takes until it is received.
    ///
    /// # Errors
    /// - `EINVAL`: the socket listens.
    /// - `EBADF`
    pub fn unsent_bytes(&self, id: SocketId) -> Result<usize, Errno> {
        let socket = self.open(id)?;
        if socket.state == State::Listening {
            return Err(Errno::EINVAL);
        }
        Ok(socket.sent)
    }

    /// Receives a message.
    pub(crate) fn receive_message(
        &mut self,
        index: u32,
        parts: &mut [&mut [u8]],
        flags: u32,
    ) -> Result<Received<R>, Refusal> {
        let socket = self.at_mut(index);
        if socket.kind == Kind::Sequenced && socket.state != State::Established {
            return Err(Errno::ENOTCONN.into());
        }
        socket.take_error()?;
        let Some(segment) = socket.queue.segments.front() else {
            return end_of_messages(socket, SocketId(index), flags);
        };
        let (length, room) = (segment.length, parts::room(parts));
        Sink::new(parts).put(&socket.queue.bytes, 0, length.min(room));
        let mut received = Received::new(if flags & message::TRUNC != 0 { length } else { length.min(room) });
        received.flags = if length > room { message::TRUNC } else { 0 };
        received.credentials = socket.options.passes_credentials.then_some(segment.credentials);
        if let Origin::Internet(SocketAddr::V6(_), header) = segment.origin {
            received.header = socket.options.wanted_header(header);
        }
        received.has_rights = !segment.rights.is_empty();
        received.sender = self.sender(index);
        if flags & message::PEEK == 0 {
            let socket = self.at_mut(index);
            let was_full = socket.has_full_queue();
            socket.queue.drop_bytes(length);
            self.held_bytes -= length;
            if let Some(segment) = self.at_mut(index).queue.pop() {
                received.rights = self.settle(segment);
            }
            if was_full && !self.at(index).has_full_queue() {
                self.tell(index, Event::Room);
            }
        }
        Ok(received)
    }

    /// Adds bytes to a queue, if there may be so many.
    pub(crate) fn push_bytes(&mut self, to: u32, source: &mut Source<'_>, count: usize) -> Result<(), Errno> {
        self.check_limits(count, 0)?;
        let queue: &mut Queue<R> = &mut self.at_mut(to).queue;
        let before = queue.size();
        queue.push_bytes(source, count)?;
        self.has_grown |= self.at(to).queue.size() > before;
        self.held_bytes += count;
        Ok(())
    }
}

/// Returns what is received where no message is.
fn end_of_messages<R>(socket: &Socket<R>, id: SocketId, flags: u32) -> Result<Received<R>, Refusal> {
    // Who does not wait is not told that datagrams have ended.
    let is_told = socket.kind == Kind::Sequenced || flags & message::DONTWAIT == 0;
    if socket.receives_no_more && is_told {
        return Ok(Received::new(0));
    }
    Err(Refusal::Waits(id, Event::Readable))
}
