//! UDP.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use alloc::vec::Vec;

use crate::control::Credentials;
use crate::numbers::option;
use crate::parts::{self, Source};
use crate::ports::{forget_addresses, receives_at, route};
use crate::queue::{Origin, Segment, message_charge};
use crate::socket::State;
use crate::transfer::Message;
use crate::{Errno, Event, Sockets, Target};

/// The most bytes of a message, with headers and without, of both versions of the protocol.
const MOST: usize = 0xffff;
const MOST_4: usize = 65507;
const MOST_6: usize = 65527;

/// Returns whether an address means all machines.
const fn is_broadcast(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(Ipv4Addr::BROADCAST) | IpAddr::V4(LOOPBACK_BROADCAST))
}

/// The address of all machines in the network of loopback.
const LOOPBACK_BROADCAST: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 255);

impl<R> Sockets<R> {
    /// Makes an address the one to which a socket sends, and from which alone it receives; or undoes that.
    pub(crate) fn connect_udp(&mut self, index: u32, target: Target<'_>) -> Result<(), Errno> {
        let address = match target {
            Target::Internet(address) => address,
            Target::Nobody => {
                let socket = self.at_mut(index);
                socket.state = State::Closed;
                if !socket.internet.port_is_chosen {
                    self.leave_port(index);
                    self.at_mut(index).internet.local.set_port(0);
                }
                forget_addresses(self.at_mut(index));
                return Ok(());
            }
            Target::Node(_) | Target::Abstract(_) => return Err(Errno::EAFNOSUPPORT),
        };
        self.choose_port(index).map_err(|_| Errno::EAGAIN)?;
        let socket = self.at_mut(index);
        if is_broadcast(address.ip()) && !socket.options.has(option::BROADCAST) {
            return Err(Errno::EACCES);
        }
        let (address, source) = route(socket, address)?;
        socket.internet.local.set_ip(source);
        socket.internet.remote = Some(address);
        socket.state = State::Established;
        self.tell(index, Event::Writable);
        Ok(())
    }

    /// Returns the socket that receives a message.
    fn find_receiver(&self, protocol: u32, from: SocketAddr, to: SocketAddr) -> Option<u32> {
        let port = self.ports.ports.get(&(protocol, to.port()))?;
        let receives = |index: &&u32| {
            let socket = self.at(**index);
            receives_at(socket, to.ip()) && socket.internet.remote.is_none_or(|remote| remote == from)
        };
        // Of several that fit equally well it is the newest.
        port.bound.iter().filter(receives).max_by_key(|index| self.nearness(**index)).copied()
    }

    pub(crate) fn send_udp(&mut self, index: u32, parts: &[&[u8]], message: &Message<'_>) -> Result<usize, Errno> {
        let length = parts::total(parts);
        self.choose_port(index).map_err(|_| Errno::EAGAIN)?;
        if length > MOST {
            return Err(Errno::EMSGSIZE);
        }
        let own = self.at_mut(index);
        let to = match message.to {
            Some(Target::Internet(address)) if address.port() == 0 => return Err(Errno::EINVAL),
            Some(Target::Internet(address)) => address,
            Some(_) => return Err(Errno::EAFNOSUPPORT),
            None => own.internet.remote.ok_or(Errno::EDESTADDRREQ)?,
        };
        if is_broadcast(to.ip()) && !own.options.has(option::BROADCAST) {
            return Err(Errno::EACCES);
        }
        let (to, source) = route(own, to)?;
        if length > if to.is_ipv4() { MOST_4 } else { MOST_6 } {
            return Err(Errno::EMSGSIZE);
        }
        own.take_error()?;
        if own.sends_no_more {
            return Err(Errno::EPIPE);
        }
        let from = SocketAddr::new(source, own.internet.local.port());
        let (header, protocol) = (own.options.header.or(message.header), own.protocol());
        match self.find_receiver(protocol, from, to) {
            None => {
                let own = self.at_mut(index);
                if own.internet.remote == Some(to) {
                    own.error = Some(Errno::ECONNREFUSED);
                    self.tell_state(index);
                }
            }
            // Messages for which there is no room are lost.
            Some(receiver) => self.deliver(Origin::Internet(from, header), receiver, parts, length),
        }
        Ok(length)
    }

    fn deliver(&mut self, origin: Origin, to: u32, parts: &[&[u8]], length: usize) {
        let receiver = self.at(to);
        let is_full = receiver.queue.charge > receiver.options.receive_buffer as usize;
        if is_full || self.check_limits(length, 0).is_err() {
            return;
        }
        let segment = Segment {
            length,
            charge: message_charge(length),
            origin,
            credentials: Credentials::NOBODY,
            rights: Vec::new(),
        };
        let queue = &mut self.at_mut(to).queue;
        let before = queue.size();
        if queue.push(&mut Source::new(parts), segment, &mut Vec::new()).is_ok() {
            self.has_grown |= self.at(to).queue.size() > before;
            self.held_bytes += length;
            self.tell(to, Event::Readable);
        }
    }
}
