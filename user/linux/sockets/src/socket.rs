//! A socket.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::Errno;
use crate::address::UnixName;
use crate::control::Credentials;
use crate::numbers::{family, kind, protocol};
use crate::options::Options;
use crate::queue::Queue;

/// The family of a socket's addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Domain {
    Unix,
    Internet,
    Internet6,
}

impl Domain {
    pub(crate) const fn number(self) -> u16 {
        match self {
            Domain::Unix => family::UNIX,
            Domain::Internet => family::INET,
            Domain::Internet6 => family::INET6,
        }
    }
}

/// The type of a socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// Connected; bytes.
    Stream,
    /// Messages.
    Datagram,
    /// Connected; messages.
    Sequenced,
}

impl Kind {
    pub(crate) const fn number(self) -> u32 {
        match self {
            Kind::Stream => kind::STREAM,
            Kind::Datagram => kind::DGRAM,
            Kind::Sequenced => kind::SEQPACKET,
        }
    }

    /// Returns whether sockets of this type make connections.
    pub(crate) const fn connects(self) -> bool {
        !matches!(self, Kind::Datagram)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Not connected, or not any more.
    Closed,
    Listening,
    Established,
}

/// The part of a socket that only internet sockets have.
#[derive(Clone, Debug)]
pub(crate) struct Internet {
    /// The own address; port 0 if there is none.
    pub(crate) local: SocketAddr,
    pub(crate) remote: Option<SocketAddr>,
    /// Says whether the socket is entered at its port.
    pub(crate) has_port: bool,
    /// Says whether the program has chosen the port, and the address.
    pub(crate) port_is_chosen: bool,
    pub(crate) address_is_chosen: bool,
    /// Says whether the other side of a connection sends nothing more.
    pub(crate) is_finished: bool,
    /// Says whether the other side was told that nothing more is sent. A socket that stops sending before it is
    /// connected tells nobody.
    pub(crate) has_finished: bool,
    /// Says whether the protocol is UDP-Lite, whose checksums may cover a part of a message.
    pub(crate) is_lite: bool,
    /// Says whether the program does not know yet how its `connect` without waiting ended.
    pub(crate) is_attempted: bool,
    /// Says whether the socket was connected, and `connect` has to be told so, even if the connection is over.
    pub(crate) was_connected: bool,
}

/// Returns the address of a socket that has none.
pub(crate) const fn unspecified(domain: Domain) -> IpAddr {
    match domain {
        Domain::Internet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

impl Internet {
    pub(crate) const fn new(domain: Domain) -> Internet {
        Internet {
            local: SocketAddr::new(unspecified(domain), 0),
            remote: None,
            has_port: false,
            port_is_chosen: false,
            address_is_chosen: false,
            is_finished: false,
            has_finished: false,
            is_lite: false,
            is_attempted: false,
            was_connected: false,
        }
    }
}

/// A socket: one that the caller has, one that waits in the queue of a listener, or one that is closed but to which
/// others still refer.
#[derive(Debug)]
pub(crate) struct Socket<R> {
    /// One if it is open; and one for each socket whose peer it is, and for each of its segments that lie somewhere.
    /// Zero if there is no socket.
    pub(crate) references: u32,
    /// Says whether it was not closed.
    pub(crate) is_open: bool,
    /// Says whether it is a connection that nobody has accepted.
    pub(crate) is_embryo: bool,
    pub(crate) domain: Domain,
    pub(crate) kind: Kind,
    pub(crate) state: State,
    /// Say whether nothing is received any more, except what lies in the queue, and nothing is sent any more.
    pub(crate) receives_no_more: bool,
    pub(crate) sends_no_more: bool,
    /// The error that the next call reports.
    pub(crate) error: Option<Errno>,
    pub(crate) options: Options,
    pub(crate) queue: Queue<R>,
    /// Charges of its segments that others have not received.
    pub(crate) sent: usize,
    /// The other side of a connection, or to whom messages go.
    pub(crate) peer: Option<u32>,
    /// Connections that nobody has accepted, and how many there may be, less one.
    pub(crate) connections: VecDeque<u32>,
    pub(crate) backlog: u32,
    /// The name of a Unix socket.
    pub(crate) name: Option<Arc<UnixName>>,
    /// Credentials of the other side of a Unix connection, or of whoever listens.
    pub(crate) credentials: Credentials,
    pub(crate) internet: Internet,
    /// Events that are told already.
    pub(crate) marks: u8,
}

impl<R> Socket<R> {
    pub(crate) const fn new(domain: Domain, kind: Kind) -> Socket<R> {
        Socket {
            references: 0,
            is_open: false,
            is_embryo: false,
            domain,
            kind,
            state: State::Closed,
            receives_no_more: false,
            sends_no_more: false,
            error: None,
            options: Options::new(domain, kind),
            queue: Queue::new(),
            sent: 0,
            peer: None,
            connections: VecDeque::new(),
            backlog: 0,
            name: None,
            credentials: Credentials::NOBODY,
            internet: Internet::new(domain),
            marks: 0,
        }
    }

    pub(crate) const fn is_unix(&self) -> bool {
        matches!(self.domain, Domain::Unix)
    }

    /// Returns whether the socket is one of TCP.
    pub(crate) fn is_tcp(&self) -> bool {
        !self.is_unix() && self.kind == Kind::Stream
    }

    /// Returns the number of the protocol.
    pub(crate) const fn protocol(&self) -> u32 {
        match (self.domain, self.kind) {
            (Domain::Unix, _) => 0,
            (_, Kind::Stream) => protocol::TCP,
            _ if self.internet.is_lite => protocol::UDPLITE,
            _ => protocol::UDP,
        }
    }

    /// Takes the error that is to be reported.
    pub(crate) fn take_error(&mut self) -> Result<(), Errno> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Returns whether there are as many connections as may wait.
    pub(crate) fn has_full_backlog(&self) -> bool {
        self.connections.len() > self.backlog as usize
    }

    /// Returns whether a Unix socket's queue has as many messages as may wait, if they come from others than its peer.
    pub(crate) fn has_full_queue(&self) -> bool {
        self.queue.segments.len() > self.backlog as usize
    }

    /// Returns whether `poll` says that a Unix socket can send.
    pub(crate) const fn has_room(&self) -> bool {
        self.sent * 4 <= self.options.send_buffer as usize
    }
}
