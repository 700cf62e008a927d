//! TCP without packets: connections whose two sides know each other.
//!
//! ```text
//!                 shut_down, close                  the other side's
//!  Established ───────────────────→ sends no more ──────────────────→ Closed
//!       └── the other side's ──→ is finished ──── own ──────────────────┘
//! ```
//!
//! A side that is closed with bytes that nobody has read, or to which bytes are sent although nobody can read them,
//! resets the connection: the other one gets an error.

use core::net::SocketAddr;

use crate::control::Credentials;
use crate::creation::MESSAGES;
use crate::numbers::{message, protocol};
use crate::parts::{self, Sink, Source};
use crate::ports::{forget_addresses, route};
use crate::socket::{Kind, Socket, State};
use crate::transfer::Received;
use crate::{Errno, Event, Refusal, SocketId, Sockets, Target};

/// Returns how many bytes may lie in the queue of a connection's side.
fn capacity<R>(sender: &Socket<R>, receiver: &Socket<R>) -> usize {
    let half = Sockets::<R>::TCP_BYTES / 2;
    let options = [(sender.options.chosen_send_buffer, half), (receiver.options.chosen_receive_buffer, half)];
    options.iter().map(|(chosen, usual)| chosen.map_or(*usual, |chosen| chosen as usize)).sum()
}

impl<R> Sockets<R> {
    /// Bytes that may lie in one direction of a connection of TCP, unless buffers of other sizes are set.
    pub const TCP_BYTES: usize = 1 << 20;

    /// Returns whether `poll` says that a side of a connection can send.
    pub(crate) fn has_tcp_room(&self, index: u32) -> bool {
        let own = self.at(index);
        let Some(peer) = own.peer.map(|peer| self.at(peer)) else { return true };
        peer.queue.bytes.len() * 3 <= capacity(own, peer) * 2
    }

    pub(crate) fn connect_tcp(&mut self, index: u32, target: Target<'_>) -> Result<(), Refusal> {
        let address = match target {
            Target::Internet(address) => address,
            Target::Nobody => {
                self.disconnect_tcp(index);
                return Ok(());
            }
            Target::Node(_) | Target::Abstract(_) => return Err(Errno::EAFNOSUPPORT.into()),
        };
        if core::mem::take(&mut self.at_mut(index).internet.is_attempted) {
            return self.end_attempt(index).map_err(Refusal::from);
        }
        let own = self.at(index);
        if own.internet.was_connected || own.state != State::Closed {
            return Err(Errno::EISCONN.into());
        }
        let (address, source) = route(own, address)?;
        let Some(listener) = self.find_listener(address) else {
            self.choose_port(index)?;
            // As after a connection, the socket still shows the port that it had.
            self.disconnect_tcp(index);
            self.at_mut(index).error = None;
            return Err(Errno::ECONNREFUSED.into());
        };
        if self.at(listener).has_full_backlog() {
            return Err(Refusal::Waits(SocketId(listener), Event::Room));
        }
        self.make_connection(index, listener, address, source)?;
        Ok(())
    }

    /// Connects a socket for a program that does not wait. The program learns later whether the connection is made or
    /// refused: by an event, by `SO_ERROR`, or by connecting again.
    ///
    /// # Errors
    /// - Those of [`Sockets::connect`].
    /// - `EINPROGRESS`: a connection of TCP is being made.
    pub fn attempt(&mut self, id: SocketId, target: Target<'_>, credentials: Credentials) -> Result<(), Refusal> {
        let socket = self.open(id)?;
        let begins = socket.is_tcp() && !socket.internet.is_attempted && matches!(target, Target::Internet(_));
        let result = self.connect(id, target, credentials);
        let is_refused = matches!(result, Err(Refusal::Fails(Errno::ECONNREFUSED)));
        if !begins || result.is_err() && !is_refused {
            return result;
        }
        let socket = self.at_mut(id.0);
        socket.internet.is_attempted = true;
        if is_refused {
            socket.error = Some(Errno::ECONNREFUSED);
            (socket.receives_no_more, socket.sends_no_more) = (true, true);
            self.tell_state(id.0);
        }
        Err(Errno::EINPROGRESS.into())
    }

    /// Returns the result of an attempt to connect that the program does not know yet.
    fn end_attempt(&mut self, index: u32) -> Result<(), Errno> {
        let socket = self.at_mut(index);
        if socket.state == State::Established {
            return Ok(());
        }
        let error = socket.error.take().unwrap_or(Errno::ECONNABORTED);
        self.disconnect_tcp(index);
        self.at_mut(index).error = None;
        Err(error)
    }

    /// Connects a socket to one that listens at an address.
    fn make_connection(
        &mut self,
        index: u32,
        listener: u32,
        address: SocketAddr,
        mut source: core::net::IpAddr,
    ) -> Result<(), Errno> {
        self.choose_port(index)?;
        let own = self.at(index);
        if own.internet.local.ip() == address.ip() {
            source = address.ip();
        }
        let local = SocketAddr::new(source, own.internet.local.port());
        let there = self.ports.ports.get(&(protocol::TCP, local.port()));
        let is_same = |other: &&u32| {
            let internet = &self.at(**other).internet;
            internet.local == local && internet.remote == Some(address)
        };
        if there.is_some_and(|port| port.bound.iter().any(|other| is_same(&other))) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        self.at_mut(listener).connections.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        let domain = self.at(listener).domain;
        let connection = self.add(domain, Kind::Stream)?;
        for (side, peer, local, remote) in [(connection, index, address, local), (index, connection, local, address)] {
            self.set_peer(side, Some(peer));
            let socket = self.at_mut(side);
            (socket.state, socket.error) = (State::Established, None);
            socket.internet.local = local;
            socket.internet.remote = Some(remote);
            socket.internet.was_connected = true;
        }
        let listening = self.at(listener);
        let (options, is_chosen) = (listening.options.clone(), listening.internet.address_is_chosen);
        let accepted = self.at_mut(connection);
        (accepted.options, accepted.backlog) = (options, MESSAGES);
        accepted.is_embryo = true;
        accepted.internet.address_is_chosen = is_chosen;
        self.enter_port(connection);
        self.at_mut(listener).connections.push_back(connection);
        self.tell(listener, Event::Readable);
        self.tell_state(index);
        Ok(())
    }

    /// Undoes a connection, or that a socket listens.
    pub(crate) fn disconnect_tcp(&mut self, index: u32) {
        match self.at(index).state {
            State::Listening => self.stop_listening(index),
            State::Established => {
                if let Some(peer) = self.at(index).peer {
                    self.reset(peer);
                }
                self.at_mut(index).error = Some(Errno::ECONNRESET);
            }
            State::Closed => {}
        }
        self.purge(index);
        self.end(index);
        let socket = self.at_mut(index);
        (socket.receives_no_more, socket.sends_no_more) = (false, false);
        (socket.internet.is_finished, socket.internet.has_finished) = (false, false);
        socket.internet.was_connected = false;
        socket.internet.is_attempted = false;
        forget_addresses(socket);
    }

    /// Ends a connection at one side.
    fn end(&mut self, index: u32) {
        let socket = self.at_mut(index);
        socket.state = State::Closed;
        (socket.receives_no_more, socket.sends_no_more) = (true, true);
        if !socket.internet.port_is_chosen {
            self.leave_port(index);
        }
        self.set_peer(index, None);
        self.tell_state(index);
    }

    /// Ends a connection at a side that is told that the other one does not want it any more.
    pub(crate) fn reset(&mut self, index: u32) {
        let socket = self.at_mut(index);
        if !socket.is_open || socket.state != State::Established {
            return;
        }
        let is_told = socket.internet.is_finished && !socket.internet.has_finished;
        socket.error = Some(if is_told { Errno::EPIPE } else { Errno::ECONNRESET });
        self.end(index);
    }

    /// Tells the other side of a connection that nothing more is sent.
    pub(crate) fn finish(&mut self, index: u32) {
        let socket = self.at_mut(index);
        socket.sends_no_more = true;
        socket.internet.has_finished = true;
        let is_over = socket.internet.is_finished;
        let Some(peer) = socket.peer else { return };
        let other = self.at_mut(peer);
        if other.is_open && other.state == State::Established {
            other.internet.is_finished = true;
            other.receives_no_more = true;
            let is_over = other.internet.has_finished;
            self.tell_state(peer);
            if is_over {
                self.end(peer);
            }
        }
        if is_over {
            self.end(index);
        }
    }

    pub(crate) fn send_tcp(&mut self, index: u32, parts: &[&[u8]]) -> Result<usize, Refusal> {
        let own = self.at_mut(index);
        if own.state != State::Established || own.sends_no_more || own.error.is_some() {
            return Err(own.take_error().err().unwrap_or(Errno::EPIPE).into());
        }
        let length = parts::total(parts);
        let Some(peer) = own.peer.filter(|_| length > 0) else { return Ok(0) };
        let (own, other) = (self.at(index), self.at(peer));
        if !other.is_open || other.receives_no_more && other.internet.has_finished {
            self.reset(index);
            self.reset(peer);
            return Ok(length);
        }
        let room = capacity(own, other).saturating_sub(other.queue.bytes.len());
        if room == 0 {
            return Err(Refusal::Waits(SocketId(index), Event::Writable));
        }
        let count = length.min(room);
        self.push_bytes(peer, &mut Source::new(parts), count)?;
        self.tell(peer, Event::Readable);
        Ok(count)
    }

    pub(crate) fn receive_tcp(
        &mut self,
        index: u32,
        parts: &mut [&mut [u8]],
        flags: u32,
    ) -> Result<Received<R>, Refusal> {
        let socket = self.at_mut(index);
        if socket.state == State::Listening {
            return Err(Errno::ENOTCONN.into());
        }
        if socket.queue.bytes.is_empty() {
            if !socket.internet.is_finished {
                socket.take_error()?;
            }
            return match socket.state {
                _ if socket.internet.is_finished || socket.receives_no_more => Ok(Received::new(0)),
                State::Closed => Err(Errno::ENOTCONN.into()),
                _ => Err(Refusal::Waits(SocketId(index), Event::Readable)),
            };
        }
        let count = parts::room(parts).min(socket.queue.bytes.len());
        // Whoever wants a stream to be cut wants its bytes to be thrown away.
        if flags & message::TRUNC == 0 {
            Sink::new(parts).put(&socket.queue.bytes, 0, count);
        }
        if flags & message::PEEK == 0 {
            let peer = socket.peer.filter(|_| count > 0);
            let had_room = peer.is_none_or(|peer| self.has_tcp_room(peer));
            self.at_mut(index).queue.drop_bytes(count);
            self.held_bytes -= count;
            if let Some(peer) = peer.filter(|peer| !had_room && self.has_tcp_room(*peer)) {
                self.tell(peer, Event::Writable);
            }
        }
        Ok(Received::new(count))
    }
}
