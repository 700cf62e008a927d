//! Unix sockets: sending and receiving.

use alloc::vec::Vec;

use crate::control::Credentials;
use crate::creation::shown_by;
use crate::numbers::message;
use crate::parts::{self, Sink, Source};
use crate::queue::{Origin, Segment, message_charge, segment_limit, stream_charge};
use crate::socket::{Kind, State};
use crate::transfer::{Message, Received, Sender};
use crate::{Errno, Event, Refusal, SocketId, Sockets};

impl<R> Sockets<R> {
    /// Sends bytes of a stream.
    pub(crate) fn send_stream(
        &mut self,
        from: u32,
        parts: &[&[u8]],
        message: &Message<'_>,
        rights: &mut Vec<R>,
    ) -> Result<usize, Refusal> {
        let own = self.at(from);
        if message.to.is_some() {
            let is_connected = own.state == State::Established;
            return Err(if is_connected { Errno::EISCONN } else { Errno::EOPNOTSUPP }.into());
        }
        let to = own.peer.ok_or(Errno::ENOTCONN)?;
        if own.sends_no_more {
            return Err(Errno::EPIPE.into());
        }
        let other = self.at(to);
        let length = parts::total(parts);
        if length > 0 && (!other.is_open || other.receives_no_more) {
            return Err(Errno::EPIPE.into());
        }
        let (mut source, mut done) = (Source::new(parts), 0);
        let limit = segment_limit(own.options.send_buffer as usize);
        while done < length {
            let own = self.at(from);
            if own.sent >= own.options.send_buffer as usize {
                break;
            }
            let count = limit.min(length - done);
            match self.push_segment((from, to), &mut source, (count, stream_charge(count)), message, rights) {
                Err(error) if done == 0 => return Err(error.into()),
                Err(_) => return Ok(done),
                Ok(()) => done += count,
            }
        }
        if done == 0 && length > 0 {
            return Err(Refusal::Waits(SocketId(from), Event::Writable));
        }
        Ok(done)
    }

    /// Adds a segment of a length and a charge to the queue of a socket.
    fn push_segment(
        &mut self,
        (from, to): (u32, u32),
        source: &mut Source<'_>,
        (length, charge): (usize, usize),
        message: &Message<'_>,
        rights: &mut Vec<R>,
    ) -> Result<(), Errno> {
        let number = rights.len();
        self.check_limits(length, number)?;
        let other = self.at(to);
        let is_told = other.options.passes_credentials || self.at(from).options.passes_credentials;
        let is_told = is_told || other.is_embryo || message.states_credentials;
        let credentials = if is_told { message.credentials } else { Credentials::UNTOLD };
        let segment = Segment { length, charge, origin: Origin::Unix(from), credentials, rights: Vec::new() };
        let before = self.at(to).queue.size();
        self.at_mut(to).queue.push(source, segment, rights)?;
        self.has_grown |= self.at(to).queue.size() > before;
        self.held_bytes += length;
        self.held_rights += number;
        let own = self.at_mut(from);
        own.sent += charge;
        own.references += 1;
        self.tell(to, Event::Readable);
        Ok(())
    }

    /// Receives bytes of a stream: those before the end of the first segment that has rights, which come with its first
    /// byte. Bytes of different senders are not joined if the receiver is told who sends.
    pub(crate) fn receive_stream(
        &mut self,
        index: u32,
        parts: &mut [&mut [u8]],
        flags: u32,
    ) -> Result<Received<R>, Refusal> {
        let socket = self.at_mut(index);
        if socket.state != State::Established {
            return Err(Errno::EINVAL.into());
        }
        let Some(first) = socket.queue.segments.front() else {
            socket.take_error()?;
            if !socket.receives_no_more {
                return Err(Refusal::Waits(SocketId(index), Event::Readable));
            }
            // The end of a stream comes from the super-user.
            let nothing = Credentials { process: 0, user: 0, group: 0 };
            let credentials = socket.options.passes_credentials.then_some(nothing);
            return Ok(Received { credentials, ..Received::new(0) });
        };
        let mut received = Received::new(0);
        let credentials = socket.options.passes_credentials.then_some(first.credentials);
        received.credentials = credentials;
        let is_peeking = flags & message::PEEK != 0;
        let mut left = parts::room(parts);
        let (mut sink, mut finished) = (Sink::new(parts), 0);
        let queue = &mut socket.queue;
        for segment in &mut queue.segments {
            if credentials.is_some_and(|credentials| credentials != segment.credentials) {
                break;
            }
            let count = segment.length.min(left);
            sink.put(&queue.bytes, received.count, count);
            received.count += count;
            left -= count;
            received.has_rights = !segment.rights.is_empty();
            if !is_peeking {
                received.rights = core::mem::take(&mut segment.rights);
                segment.length -= count;
                finished += usize::from(segment.length == 0);
            }
            // Who peeks sees the next rights even if their bytes have no room.
            if received.has_rights || left == 0 && !is_peeking {
                break;
            }
        }
        received.sender = self.sender(index);
        if !is_peeking {
            self.drop_received(index, received.count, finished, received.rights.len());
        }
        Ok(received)
    }

    /// Removes bytes that were received, and so many segments all of whose bytes are.
    fn drop_received(&mut self, index: u32, bytes: usize, segments: usize, rights: usize) {
        self.held_bytes -= bytes;
        self.held_rights -= rights;
        self.at_mut(index).queue.drop_bytes(bytes);
        for _ in 0..segments {
            if let Some(segment) = self.at_mut(index).queue.pop() {
                // Its rights are taken already.
                self.settle(segment);
            }
        }
    }

    /// Returns the sender of what comes next in a queue.
    pub(crate) fn sender(&self, index: u32) -> Sender {
        let socket = self.at(index);
        match socket.queue.segments.front().map(|segment| segment.origin) {
            Some(Origin::Unix(sender)) => self.at(sender).name.clone().map_or(Sender::Unnamed, Sender::Unix),
            Some(Origin::Internet(address, _)) => Sender::Internet(shown_by(socket, address)),
            None => Sender::Unnamed,
        }
    }

    /// Sends a message.
    pub(crate) fn send_message(
        &mut self,
        from: u32,
        parts: &[&[u8]],
        message: &Message<'_>,
        rights: &mut Vec<R>,
    ) -> Result<usize, Refusal> {
        let own = self.at(from);
        let kind = own.kind;
        if kind == Kind::Sequenced && own.state != State::Established {
            return Err(Errno::ENOTCONN.into());
        }
        // Connections need no address, and take none seriously.
        let target = message.to.filter(|_| kind == Kind::Datagram);
        self.name_if_told(from)?;
        let length = parts::total(parts);
        let own = self.at_mut(from);
        if length + 32 > own.options.send_buffer as usize {
            return Err(Errno::EMSGSIZE.into());
        }
        own.take_error()?;
        if own.sends_no_more {
            return Err(Errno::EPIPE.into());
        }
        if own.sent >= own.options.send_buffer as usize {
            return Err(Refusal::Waits(SocketId(from), Event::Writable));
        }
        let to = match (target, own.peer) {
            (Some(target), _) => self.find_unix(kind, target)?,
            (None, peer) => peer.ok_or(Errno::ENOTCONN)?,
        };
        self.check_receiver(from, to)?;
        let sizes = (length, message_charge(length));
        self.push_segment((from, to), &mut Source::new(parts), sizes, message, rights)?;
        Ok(length)
    }

    /// Returns an error if a socket receives no message of another one, or not now.
    fn check_receiver(&mut self, from: u32, to: u32) -> Result<(), Refusal> {
        if !self.may_send(from, to) {
            return Err(Errno::EPERM.into());
        }
        let other = self.at(to);
        if !other.is_open {
            self.leave_peer(from);
            self.at_mut(from).state = State::Closed;
            return Err(Errno::ECONNREFUSED.into());
        }
        if other.receives_no_more {
            return Err(Errno::EPIPE.into());
        }
        if other.has_full_queue() && to != from && other.peer != Some(from) {
            return Err(Refusal::Waits(SocketId(to), Event::Room));
        }
        Ok(())
    }
}
