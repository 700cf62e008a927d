//! The ports of TCP and UDP, and who is at them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use crate::numbers::{option, protocol};
use crate::socket::{Domain, Kind, Socket, State, unspecified};
use crate::{Errno, SocketId, Sockets};

/// Ports that sockets are given if they have to have some.
const FIRST_PORT: u16 = 32768;
const LAST_PORT: u16 = 60999;

/// The sockets at one port.
#[derive(Debug, Default)]
pub(crate) struct Port {
    /// All, the oldest first.
    pub(crate) bound: Vec<u32>,
    /// Those that listen.
    pub(crate) listening: Vec<u32>,
}

/// All ports at which somebody is.
#[derive(Debug)]
pub(crate) struct Ports {
    /// The ports, by protocol and number.
    pub(crate) ports: BTreeMap<(u32, u16), Port>,
    /// The port that is given next.
    next: u16,
}

impl Ports {
    pub(crate) const fn new() -> Ports {
        Ports { ports: BTreeMap::new(), next: FIRST_PORT }
    }

    /// Returns a port at which nobody is.
    fn choose(&mut self, protocol: u32) -> Option<u16> {
        for _ in FIRST_PORT..=LAST_PORT {
            let port = self.next;
            self.next = if port == LAST_PORT { FIRST_PORT } else { port + 1 };
            if !self.ports.contains_key(&(protocol, port)) {
                return Some(port);
            }
        }
        None
    }
}

/// Returns whether two sockets at a port are at the same address. No address means all of them, for a socket of IPv6
/// those of IPv4, too, unless it is for IPv6 only.
fn overlap<R>(one: &Socket<R>, other: &Socket<R>) -> bool {
    let (first, second) = (one.internet.local.ip(), other.internet.local.ip());
    match (first.is_unspecified(), second.is_unspecified()) {
        (false, false) => first == second,
        (true, false) => receives_at(one, second),
        (false, true) => receives_at(other, first),
        (true, true) => receives_at(one, second) || receives_at(other, first),
    }
}

/// Returns whether a socket receives what comes to an address.
pub(crate) fn receives_at<R>(socket: &Socket<R>, ip: IpAddr) -> bool {
    match (socket.internet.local.ip(), ip) {
        (own, _) if !own.is_unspecified() => own == ip,
        (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => true,
        (IpAddr::V6(_), IpAddr::V4(_)) => !socket.options.is_version_6_only,
        (IpAddr::V4(_), IpAddr::V6(_)) => false,
    }
}

/// Returns whether two sockets may be at the same port and address.
fn may_share<R>(one: &Socket<R>, other: &Socket<R>) -> bool {
    let listens = one.kind == Kind::Stream && [one.state, other.state].contains(&State::Listening);
    let share = |option| one.options.has(option) && other.options.has(option);
    share(option::REUSEPORT) || share(option::REUSEADDR) && !listens
}

impl<R> Sockets<R> {
    /// Returns whether a socket may not be where it wants to be, or is.
    fn has_conflict(&self, index: u32) -> bool {
        let own = self.at(index);
        let Some(port) = self.ports.ports.get(&(own.protocol(), own.internet.local.port())) else { return false };
        let conflicts = |other: u32| {
            let other = self.at(other);
            overlap(own, other) && !may_share(own, other)
        };
        port.bound.iter().any(|other| *other != index && conflicts(*other))
    }

    /// Enters a socket at the port of its address.
    pub(crate) fn enter_port(&mut self, index: u32) {
        let socket = self.at_mut(index);
        socket.internet.has_port = true;
        let key = (socket.protocol(), socket.internet.local.port());
        self.ports.ports.entry(key).or_default().bound.push(index);
    }

    /// Removes a socket from its port.
    pub(crate) fn leave_port(&mut self, index: u32) {
        let socket = self.at_mut(index);
        if !core::mem::take(&mut socket.internet.has_port) {
            return;
        }
        let key = (socket.protocol(), socket.internet.local.port());
        if let Some(port) = self.ports.ports.get_mut(&key) {
            if let Some(place) = port.bound.iter().rposition(|other| *other == index) {
                port.bound.remove(place);
            }
            port.listening.retain(|other| *other != index);
            if port.bound.is_empty() {
                self.ports.ports.remove(&key);
            }
        }
    }

    /// Gives a socket a port if it has none.
    ///
    /// # Errors
    /// `EADDRNOTAVAIL`: all are taken.
    pub(crate) fn choose_port(&mut self, index: u32) -> Result<(), Errno> {
        let socket = self.at(index);
        if !socket.internet.has_port {
            let port = self.ports.choose(socket.protocol()).ok_or(Errno::EADDRNOTAVAIL)?;
            self.at_mut(index).internet.local.set_port(port);
            self.enter_port(index);
        }
        Ok(())
    }

    /// Gives an internet socket an address and a port; port 0 stands for any.
    ///
    /// # Errors
    /// - `EINVAL`: the socket has a port, is connected, or is no internet socket; or it is for IPv6 only, and the
    ///   address is not.
    /// - `EADDRNOTAVAIL`: the address is not one of loopback.
    /// - `EADDRINUSE`: another socket is there, or all ports are taken.
    /// - `EBADF`
    pub fn bind_internet(&mut self, id: SocketId, address: SocketAddr) -> Result<(), Errno> {
        let socket = self.open(id)?;
        if socket.is_unix() || socket.options.is_version_6_only && address.is_ipv4() {
            return Err(Errno::EINVAL);
        }
        let ip = address.ip();
        if !ip.is_loopback() && !ip.is_unspecified() {
            return Err(Errno::EADDRNOTAVAIL);
        }
        if socket.state != State::Closed || socket.internet.has_port {
            return Err(Errno::EINVAL);
        }
        let old = SocketAddr::new(unspecified(socket.domain), socket.internet.local.port());
        self.at_mut(id.0).internet.local = address;
        let chosen = if address.port() == 0 {
            self.choose_port(id.0).map_err(|_| Errno::EADDRINUSE)
        } else if self.has_conflict(id.0) {
            Err(Errno::EADDRINUSE)
        } else {
            self.enter_port(id.0);
            Ok(())
        };
        let internet = &mut self.at_mut(id.0).internet;
        if chosen.is_err() {
            internet.local = old;
        } else {
            internet.address_is_chosen = !ip.is_unspecified();
            internet.port_is_chosen = address.port() != 0;
        }
        chosen
    }

    /// Enters a socket as one that listens at its port.
    ///
    /// # Errors
    /// `EADDRINUSE`
    pub(crate) fn enter_listener(&mut self, index: u32) -> Result<(), Errno> {
        self.choose_port(index).map_err(|_| Errno::EADDRINUSE)?;
        if self.has_conflict(index) {
            return Err(Errno::EADDRINUSE);
        }
        let socket = self.at(index);
        let key = (socket.protocol(), socket.internet.local.port());
        self.ports.ports.entry(key).or_default().listening.push(index);
        Ok(())
    }

    /// Returns the socket that listens at an address.
    pub(crate) fn find_listener(&self, address: SocketAddr) -> Option<u32> {
        let port = self.ports.ports.get(&(protocol::TCP, address.port()))?;
        let at_address = port.listening.iter().filter(|listener| receives_at(self.at(**listener), address.ip()));
        at_address.max_by_key(|listener| self.nearness(**listener)).copied()
    }

    /// Returns how well a socket fits what it receives: for an own address and a peer rather than for all, and for one
    /// version of the protocol.
    pub(crate) fn nearness(&self, index: u32) -> u32 {
        let socket = self.at(index);
        let internet = &socket.internet;
        let has_address = !internet.local.ip().is_unspecified();
        4 * u32::from(has_address) + 8 * u32::from(internet.remote.is_some()) + u32::from(internet.local.is_ipv4())
    }
}

/// Returns the address that a destination means, and from which a socket sends to it.
///
/// # Errors
/// `ENETUNREACH`: the address is not one of loopback, or of the other version of the protocol.
pub(crate) fn route<R>(socket: &Socket<R>, to: SocketAddr) -> Result<(SocketAddr, IpAddr), Errno> {
    const LOOPBACK_4: IpAddr = IpAddr::V4(core::net::Ipv4Addr::LOCALHOST);
    const LOOPBACK_6: IpAddr = IpAddr::V6(core::net::Ipv6Addr::LOCALHOST);
    let own = socket.internet.local.ip();
    let loopback = if to.is_ipv4() { LOOPBACK_4 } else { LOOPBACK_6 };
    let source = if own.is_unspecified() { loopback } else { own };
    let ip = if to.ip().is_unspecified() { source } else { to.ip() };
    let is_other_version =
        !own.is_unspecified() && own.is_ipv4() != to.is_ipv4() || socket.options.is_version_6_only && to.is_ipv4();
    if !ip.is_loopback() || is_other_version {
        return Err(Errno::ENETUNREACH);
    }
    Ok((SocketAddr::new(ip, to.port()), source))
}

/// Forgets the addresses of a socket that is not connected any more, as far as the program has not chosen them.
pub(crate) fn forget_addresses<R>(socket: &mut Socket<R>) {
    let domain: Domain = socket.domain;
    let internet = &mut socket.internet;
    internet.remote = None;
    if !internet.address_is_chosen {
        internet.local.set_ip(unspecified(domain));
    }
}
