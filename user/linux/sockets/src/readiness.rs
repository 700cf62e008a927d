//! The answer to what can be done with a socket without waiting.

use crate::socket::{Socket, State};
use crate::{Errno, SocketId, Sockets};

/// The events that `poll` tells of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Readiness {
    /// `POLLIN`, `POLLRDNORM`
    pub is_readable: bool,
    /// `POLLOUT`, `POLLWRNORM`
    pub is_writable: bool,
    /// `POLLERR`
    pub has_error: bool,
    /// `POLLHUP`
    pub is_hung_up: bool,
    /// `POLLRDHUP`
    pub receives_no_more: bool,
    /// The socket whose [`Room`](crate::Event::Room) makes this one writable, if that is all that is missing.
    pub lacks_room_of: Option<SocketId>,
}

impl<R> Sockets<R> {
    /// Returns what can be done with a socket without waiting.
    ///
    /// # Errors
    /// `EBADF`
    pub fn readiness(&self, id: SocketId) -> Result<Readiness, Errno> {
        let socket = self.open(id)?;
        if socket.is_tcp() && socket.state == State::Listening {
            return Ok(Readiness { is_readable: !socket.connections.is_empty(), ..Readiness::default() });
        }
        let has_ended = socket.receives_no_more && socket.sends_no_more;
        let is_unconnected = socket.kind.connects() && socket.state == State::Closed;
        let is_readable = !socket.queue.is_empty() || !socket.connections.is_empty() || socket.receives_no_more;
        let (is_writable, lacks_room_of) = self.is_writable(id, socket);
        Ok(Readiness {
            is_readable,
            is_writable,
            has_error: socket.error.is_some(),
            is_hung_up: has_ended || is_unconnected,
            receives_no_more: socket.receives_no_more,
            lacks_room_of,
        })
    }

    /// Returns whether a socket can send, and whose room it lacks.
    fn is_writable(&self, id: SocketId, socket: &Socket<R>) -> (bool, Option<SocketId>) {
        if !socket.is_unix() {
            let can = !socket.is_tcp() || socket.sends_no_more || self.has_tcp_room(id.0);
            return (can, None);
        }
        if socket.state == State::Listening || !socket.has_room() {
            return (false, None);
        }
        match socket.peer.filter(|peer| *peer != id.0) {
            Some(peer) if !socket.kind.connects() => {
                let other = self.at(peer);
                let is_full = other.is_open && other.peer != Some(id.0) && other.has_full_queue();
                (!is_full, is_full.then_some(SocketId(peer)))
            }
            _ => (true, None),
        }
    }
}
