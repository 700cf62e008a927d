//! Unix sockets: names and connections.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::address::UnixName;
use crate::control::Credentials;
use crate::creation::MESSAGES;
use crate::socket::{Domain, Kind, State};
use crate::{Errno, Event, Refusal, SocketId, Sockets, Target};

/// Number of names that sockets can be given if they have to have some.
const AUTOMATIC_NAMES: u32 = 1 << 20;

impl<R> Sockets<R> {
    /// Gives a Unix socket a name in the file system: that of a node, which the caller has made for it and keeps as
    /// long as the socket is open, by a path.
    ///
    /// # Errors
    /// - `EINVAL`: the socket has a name, or is no Unix socket.
    /// - `EADDRINUSE`: another socket is bound to the node.
    /// - `EBADF`
    pub fn bind_node(&mut self, id: SocketId, node: u64, path: &[u8]) -> Result<(), Errno> {
        self.check_without_name(id)?;
        if self.nodes.contains_key(&node) {
            return Err(Errno::EADDRINUSE);
        }
        self.nodes.insert(node, id.0);
        self.at_mut(id.0).name = Some(Arc::new(UnixName::Node { node, path: path.to_vec() }));
        Ok(())
    }

    /// Gives a Unix socket an abstract name.
    ///
    /// # Errors
    /// - `EINVAL`: the socket has a name, or is no Unix socket.
    /// - `EADDRINUSE`: another socket of the type has the name.
    /// - `EBADF`
    pub fn bind_abstract(&mut self, id: SocketId, name: &[u8]) -> Result<(), Errno> {
        self.check_without_name(id)?;
        let key = (self.at(id.0).kind, name.to_vec());
        if self.abstract_names.contains_key(&key) {
            return Err(Errno::EADDRINUSE);
        }
        self.abstract_names.insert(key, id.0);
        self.at_mut(id.0).name = Some(Arc::new(UnixName::Abstract(name.to_vec())));
        Ok(())
    }

    /// Gives a Unix socket an abstract name of five digits, unless it has a name.
    ///
    /// # Errors
    /// - `EINVAL`: the socket is no Unix socket.
    /// - `ENOSPC`: there is no free name.
    /// - `EBADF`
    pub fn bind_automatically(&mut self, id: SocketId) -> Result<(), Errno> {
        let socket = self.open(id)?;
        if socket.is_unix() && socket.name.is_some() {
            return Ok(());
        }
        for _ in 0..AUTOMATIC_NAMES {
            let name = format!("{:05x}", self.next_name);
            self.next_name = (self.next_name + 1) % AUTOMATIC_NAMES;
            match self.bind_abstract(id, name.as_bytes()) {
                Err(Errno::EADDRINUSE) => {}
                result => return result,
            }
        }
        Err(Errno::ENOSPC)
    }

    fn check_without_name(&self, id: SocketId) -> Result<(), Errno> {
        let socket = self.open(id)?;
        if socket.is_unix() && socket.name.is_none() { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// Gives a socket a name if those to whom it sends are told who it is.
    pub(crate) fn name_if_told(&mut self, index: u32) -> Result<(), Errno> {
        let socket = self.at(index);
        if socket.options.passes_credentials && socket.name.is_none() {
            self.bind_automatically(SocketId(index))?;
        }
        Ok(())
    }

    /// Returns the socket of a type that has a name.
    pub(crate) fn find_unix(&self, kind: Kind, target: Target<'_>) -> Result<u32, Errno> {
        let found = match target {
            Target::Node(node) => self.nodes.get(&node),
            Target::Abstract(name) => self.abstract_names.get(&(kind, name.to_vec())),
            Target::Nobody | Target::Internet(_) => return Err(Errno::EINVAL),
        };
        let found = *found.ok_or(Errno::ECONNREFUSED)?;
        if self.at(found).kind == kind { Ok(found) } else { Err(Errno::EPROTOTYPE) }
    }

    /// Connects a socket to one that listens.
    pub(crate) fn connect_unix(
        &mut self,
        index: u32,
        target: Target<'_>,
        credentials: Credentials,
    ) -> Result<(), Refusal> {
        let kind = self.at(index).kind;
        if matches!(target, Target::Nobody | Target::Internet(_)) {
            return Err(Errno::EINVAL.into());
        }
        self.name_if_told(index)?;
        let listener = self.find_unix(kind, target)?;
        let other = self.at(listener);
        if other.state != State::Listening || other.receives_no_more {
            return Err(Errno::ECONNREFUSED.into());
        }
        if other.has_full_backlog() {
            return Err(Refusal::Waits(SocketId(listener), Event::Room));
        }
        match self.at(index).state {
            State::Closed => {}
            State::Established => return Err(Errno::EISCONN.into()),
            State::Listening => return Err(Errno::EINVAL.into()),
        }
        let (name, shown) = (other.name.clone(), other.credentials);
        self.at_mut(listener).connections.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        let connection = self.add(Domain::Unix, kind)?;
        self.set_peer(connection, Some(index));
        self.set_peer(index, Some(connection));
        let accepted = self.at_mut(connection);
        (accepted.state, accepted.is_embryo) = (State::Established, true);
        accepted.backlog = MESSAGES;
        (accepted.name, accepted.credentials) = (name, credentials);
        let own = self.at_mut(index);
        (own.state, own.credentials) = (State::Established, shown);
        self.at_mut(listener).connections.push_back(connection);
        self.tell(listener, Event::Readable);
        self.tell_state(index);
        Ok(())
    }

    /// Makes a socket the one to which messages go, or undoes that.
    pub(crate) fn connect_messages(&mut self, index: u32, target: Target<'_>) -> Result<(), Refusal> {
        let peer = match target {
            Target::Nobody => None,
            _ => {
                self.name_if_told(index)?;
                Some(self.find_unix(Kind::Datagram, target)?)
            }
        };
        if peer.is_some_and(|peer| !self.may_send(index, peer)) {
            return Err(Errno::EPERM.into());
        }
        let old = self.at(index).peer;
        if old.is_some_and(|old| Some(old) != peer) {
            self.leave_peer(index);
        }
        self.set_peer(index, peer);
        self.at_mut(index).state = if peer.is_some() { State::Established } else { State::Closed };
        self.tell(index, Event::Writable);
        Ok(())
    }

    /// Returns whether a socket receives messages of another one: if it has a peer, only from that.
    pub(crate) fn may_send(&self, from: u32, to: u32) -> bool {
        self.at(to).peer.is_none_or(|peer| peer == from)
    }

    /// Ends that messages go to a socket's peer. Those that were received are lost, and a peer that sends here, too,
    /// is told so.
    pub(crate) fn leave_peer(&mut self, index: u32) {
        let Some(peer) = self.at(index).peer else { return };
        self.set_peer(index, None);
        if self.at(index).queue.is_empty() {
            return;
        }
        self.purge(index);
        self.tell(index, Event::Room);
        let other = self.at_mut(peer);
        if other.is_open && other.peer == Some(index) {
            other.error = Some(Errno::ECONNRESET);
            self.tell_state(peer);
        }
    }

    pub(crate) fn shut_down_unix(&mut self, index: u32, receives: bool, sends: bool) {
        let socket = self.at_mut(index);
        socket.receives_no_more |= receives;
        socket.sends_no_more |= sends;
        let peer = socket.peer.filter(|_| socket.kind.connects());
        self.tell_state(index);
        self.tell(index, Event::Room);
        if let Some(peer) = peer {
            let other = self.at_mut(peer);
            other.receives_no_more |= sends;
            other.sends_no_more |= receives;
            self.tell_state(peer);
        }
    }

    /// Tells a peer that a socket is closed, and gives its name free.
    pub(crate) fn close_unix(&mut self, index: u32) {
        self.close_connections(index);
        let socket = self.at(index);
        let (kind, peer) = (socket.kind, socket.peer);
        let has_lost = socket.is_embryo || !socket.queue.is_empty();
        match socket.name.clone().as_deref() {
            // An accepted socket has its listener's name, and does not own that.
            Some(UnixName::Node { node, .. }) if self.nodes.get(node) == Some(&index) => {
                self.nodes.remove(node);
            }
            Some(UnixName::Abstract(name)) => {
                let key: (Kind, Vec<u8>) = (kind, name.clone());
                if self.abstract_names.get(&key) == Some(&index) {
                    self.abstract_names.remove(&key);
                }
            }
            _ => {}
        }
        if let Some(peer) = peer.filter(|_| kind.connects()) {
            let other = self.at_mut(peer);
            (other.receives_no_more, other.sends_no_more) = (true, true);
            if has_lost {
                other.error = Some(Errno::ECONNRESET);
            }
            self.tell_state(peer);
        }
    }
}
