//! The invariants of the table.

use alloc::vec;

use crate::Sockets;
use crate::address::UnixName;
use crate::queue::Origin;
use crate::socket::{Socket, State};

impl<R> Sockets<R> {
    /// Checks that all counts are those of what is counted, that names and ports belong to those who have them, and
    /// that queues are as long as they may be at most.
    ///
    /// # Panics
    /// If that is not so.
    pub fn check(&self) {
        let mut references = vec![0; self.slots.len()];
        let mut sent = vec![0; self.slots.len()];
        let mut is_pending = vec![false; self.slots.len()];
        let (mut bytes, mut rights) = (0, 0);
        for (index, socket) in self.slots.iter().enumerate() {
            references[index] += u32::from(socket.is_open);
            if let Some(peer) = socket.peer {
                references[peer as usize] += 1;
            }
            for segment in &socket.queue.segments {
                rights += segment.rights.len();
                if let Origin::Unix(sender) = segment.origin {
                    references[sender as usize] += 1;
                    sent[sender as usize] += segment.charge;
                }
            }
            for connection in &socket.connections {
                let twice = core::mem::replace(&mut is_pending[*connection as usize], true);
                assert!(self.at(*connection).is_embryo, "a connection that waits is not accepted");
                assert!(!twice && self.at(*connection).is_open, "a connection is accepted once");
            }
            bytes += socket.queue.bytes.len();
            self.check_socket(index as u32, socket);
        }
        for (index, socket) in self.slots.iter().enumerate() {
            assert_eq!(socket.references, references[index], "references to socket {index}");
            assert_eq!(socket.sent, sent[index], "what socket {index} has sent");
            assert_eq!(self.free.contains(&(index as u32)), socket.references == 0, "socket {index} is free or used");
        }
        assert_eq!((self.held_bytes, self.held_rights), (bytes, rights), "bytes and rights in queues");
        assert!(bytes <= self.limits.bytes && rights <= self.limits.rights && self.slots.len() <= self.limits.sockets);
        self.check_names();
        self.check_ports();
    }

    fn check_socket(&self, index: u32, socket: &Socket<R>) {
        let queue = &socket.queue;
        if !socket.is_open {
            assert!(queue.is_empty() && socket.connections.is_empty() && socket.peer.is_none(), "closed: {index}");
            assert!(!socket.internet.has_port, "socket {index} is closed, and has no port");
            return;
        }
        assert!(socket.state == State::Listening || socket.connections.is_empty(), "only who listens is connected to");
        assert!(socket.connections.len() <= socket.backlog as usize + 1 || socket.state == State::Listening);
        assert_eq!(queue.charge, queue.segments.iter().map(|segment| segment.charge).sum::<usize>());
        if socket.is_tcp() {
            assert!(queue.segments.is_empty(), "bytes of TCP are not divided");
            return;
        }
        let length: usize = queue.segments.iter().map(|segment| segment.length).sum();
        assert_eq!(queue.bytes.len(), length, "bytes of the segments of socket {index}");
    }

    fn check_names(&self) {
        let nodes = self.nodes.iter().map(|(node, index)| (*index, Some(*node), None));
        let names = self.abstract_names.iter().map(|((kind, name), index)| (*index, None, Some((*kind, name))));
        for (index, node, name) in nodes.chain(names) {
            let socket = self.at(index);
            let has_name = match socket.name.as_deref() {
                Some(UnixName::Node { node: own, .. }) => node == Some(*own),
                Some(UnixName::Abstract(own)) => name == Some((socket.kind, own)),
                None => false,
            };
            assert!(socket.is_open && has_name, "a name leads to socket {index}, which has it");
        }
    }

    fn check_ports(&self) {
        for ((protocol, number), port) in &self.ports.ports {
            assert!(!port.bound.is_empty(), "somebody is at port {number}");
            for index in &port.bound {
                let socket = self.at(*index);
                let internet = &socket.internet;
                assert!(
                    socket.is_open
                        && internet.has_port
                        && internet.local.port() == *number
                        && socket.protocol() == *protocol
                );
                assert_eq!(port.bound.iter().filter(|other| *other == index).count(), 1);
            }
            for index in &port.listening {
                assert!(port.bound.contains(index) && self.at(*index).state == State::Listening);
            }
        }
        let entered: usize = self.ports.ports.values().map(|port| port.bound.len()).sum();
        let listening: usize = self.ports.ports.values().map(|port| port.listening.len()).sum();
        assert_eq!(self.slots.iter().filter(|socket| socket.internet.has_port).count(), entered);
        let listens = |socket: &&Socket<R>| socket.is_tcp() && socket.state == State::Listening;
        assert_eq!(self.slots.iter().filter(listens).count(), listening);
    }
}
