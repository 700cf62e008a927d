//! The end of sockets of TCP and UDP.

use crate::socket::State;
use crate::{Errno, Event, Sockets};

impl<R> Sockets<R> {
    /// Ends that a socket listens. The connections that nobody has accepted are reset.
    pub(crate) fn stop_listening(&mut self, index: u32) {
        let socket = self.at(index);
        let key = (socket.protocol(), socket.internet.local.port());
        if let Some(port) = self.ports.ports.get_mut(&key) {
            port.listening.retain(|other| *other != index);
        }
        self.close_connections(index);
        self.at_mut(index).state = State::Closed;
        self.tell(index, Event::Room);
    }

    pub(crate) fn shut_down_internet(&mut self, index: u32, receives: bool, sends: bool) -> Result<(), Errno> {
        let socket = self.at_mut(index);
        match socket.state {
            State::Listening if receives => {
                self.disconnect_tcp(index);
                return Ok(());
            }
            State::Listening => return Ok(()),
            State::Closed | State::Established => {}
        }
        let sends_now = sends && !socket.internet.has_finished;
        socket.receives_no_more |= receives;
        socket.sends_no_more |= sends;
        let (is_tcp, is_connected) = (socket.is_tcp(), socket.state == State::Established);
        self.tell_state(index);
        if !is_connected {
            return Err(Errno::ENOTCONN);
        }
        if is_tcp && sends_now {
            self.finish(index);
        }
        Ok(())
    }

    /// Ends a socket's part in the network.
    pub(crate) fn close_internet(&mut self, index: u32) {
        let socket = self.at(index);
        match socket.state {
            State::Listening => self.stop_listening(index),
            State::Established if socket.is_tcp() => {
                let has_lost = !socket.queue.bytes.is_empty() || socket.options.linger == Some(0);
                match socket.peer {
                    Some(peer) if has_lost || socket.is_embryo => self.reset(peer),
                    _ if socket.internet.has_finished => {}
                    _ => self.finish(index),
                }
            }
            State::Established | State::Closed => {}
        }
        self.leave_port(index);
    }
}
