//! Random use of sockets, compared with what those of the Linux under these tests do.

mod support;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, sockopt};
use support::{Got, Place, ours, refused};
use tench_linux_sockets::address::Address;
use tench_linux_sockets::control::Ipv6Header;
use tench_linux_sockets::numbers::{family, kind, level, message, option};
use tench_linux_sockets::{Credentials, Errno, Limits, Message, Readiness, Refusal, SocketId, Sockets, Target};
use tench_random::Random;

/// Time after which a connection over Linux's loopback has certainly got what was sent to it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Room that sent buffers take at most, in Linux, too, where it is not the same, before `poll` sees it.
const MOST_SENT: usize = 25_000;
/// Number of sockets at once.
const MOST_SOCKETS: usize = 12;

struct Both {
    here: Sockets<u64>,
    sockets: Vec<(SocketId, OwnedFd)>,
    /// Files that are sent, and their identities.
    files: Vec<(u64, OwnedFd)>,
    /// Nodes of the paths that exist.
    nodes: BTreeMap<Vec<u8>, u64>,
    next_node: u64,
    places: Vec<Place>,
    family: u16,
    own: Credentials,
    random: Random,
    log: Vec<String>,
    /// Number of rights that were sent, and received.
    sent_rights: usize,
    received_rights: usize,
}

fn own_credentials() -> Credentials {
    let process = rustix::process::getpid().as_raw_pid().cast_unsigned();
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    Credentials { process, user, group }
}

fn receive_here(here: &mut Sockets<u64>, socket: SocketId, room: usize, flags: u32) -> Result<(Got, usize), i32> {
    let mut bytes = vec![0; room];
    let (first, second) = bytes.split_at_mut(room / 3);
    let flags = flags | message::DONTWAIT;
    let received = refused(here.receive(socket, &mut [first, second], flags))?;
    let number = received.rights.len();
    let ahead = here.rights_ahead(socket).unwrap();
    let rights = if flags & message::PEEK != 0 && received.has_rights { ahead.to_vec() } else { received.rights };
    let sender = received.sender.address().map_or_else(|| "unnamed".into(), |address| support::show_here(&address));
    bytes.truncate(received.count);
    let credentials = received.credentials.map(|all| (all.process, all.user, all.group));
    let (count, is_cut) = (received.count, received.flags & message::TRUNC != 0);
    Ok((Got { count, bytes, is_cut, sender, credentials, rights }, number))
}

fn target<'a>(nodes: &BTreeMap<Vec<u8>, u64>, place: &'a Place) -> Result<Target<'a>, ()> {
    match place {
        Place::Path(path) => nodes.get(path).map(|node| Target::Node(*node)).ok_or(()),
        Place::Abstract(name) => Ok(Target::Abstract(name)),
        Place::Internet(address) => Ok(Target::Internet(*address)),
    }
}

impl Both {
    fn new(seed: u64, family: u16, places: Vec<Place>) -> Both {
        let file = |_| {
            let (file, _) = rustix::pipe::pipe().unwrap();
            (support::identity(&file), file)
        };
        Both {
            here: Sockets::new(Limits::default()),
            sockets: Vec::new(),
            files: (0..5).map(file).collect(),
            nodes: BTreeMap::new(),
            next_node: 0,
            places,
            family,
            own: own_credentials(),
            random: Random::new(seed),
            log: Vec::new(),
            sent_rights: 0,
            received_rights: 0,
        }
    }

    /// Returns the index of a socket.
    fn some(&mut self) -> usize {
        self.random.index(self.sockets.len())
    }

    fn place(&mut self) -> Place {
        self.places[self.random.index(self.places.len())].clone()
    }

    fn has_kind(&mut self, index: usize, kind: u32) -> bool {
        let value = self.here.option(self.sockets[index].0, level::SOCKET, option::TYPE).unwrap();
        value.as_bytes() == kind.to_le_bytes()
    }

    fn is_tcp(&mut self, index: usize) -> bool {
        self.family != family::UNIX && self.has_kind(index, kind::STREAM)
    }

    /// Returns whether a program has chosen a socket's port.
    fn has_chosen_port(&self, index: usize) -> bool {
        let name = self.here.name(self.sockets[index].0).unwrap();
        matches!(name, Address::Internet(address) if (1..32768).contains(&address.port()))
    }

    /// Returns what was done last, the last first.
    fn last(&self) -> Vec<&String> {
        self.log.iter().rev().take(30).collect()
    }

    #[track_caller]
    fn compare<T: PartialEq + std::fmt::Debug>(&self, here: T, there: T) {
        assert_eq!(here, there, "here, and there, after {:#?}", self.last());
    }

    fn make(&mut self) {
        let kinds: &[u32] = match self.family {
            family::UNIX => &[kind::STREAM, kind::DGRAM, kind::SEQPACKET],
            _ => &[kind::STREAM, kind::STREAM, kind::DGRAM],
        };
        let kind = kinds[self.random.index(kinds.len())];
        let is_pair = self.family == family::UNIX && self.random.once_in(3);
        self.log.push(format!("socket {} of type {kind}, pair: {is_pair}", self.sockets.len()));
        if is_pair {
            let [one, other] = self.here.pair(self.family.into(), kind, 0, self.own).unwrap();
            let (first, second) = support::pair(kind);
            self.sockets.extend([(one, first), (other, second)]);
            return;
        }
        let here = self.here.socket(self.family.into(), kind, 0).unwrap();
        let there = support::socket(self.family, kind);
        // Linux keeps the port of a connection that is over, unless that is allowed to be used.
        if self.family != family::UNIX && kind == kind::STREAM {
            self.here.set_option(here, level::SOCKET, option::REUSEADDR, &[1, 0, 0, 0]).unwrap();
            sockopt::set_socket_reuseaddr(&there, true).unwrap();
        }
        self.sockets.push((here, there));
    }

    fn bind(&mut self) {
        let (index, place) = (self.some(), self.place());
        self.log.push(format!("bind {index} to {place:?}"));
        let (id, there) = &self.sockets[index];
        let here = match &place {
            Place::Path(path) if self.nodes.contains_key(path) => Err(Errno::EADDRINUSE),
            Place::Path(path) => self.here.bind_node(*id, self.next_node, path),
            Place::Abstract(name) => self.here.bind_abstract(*id, name),
            Place::Internet(address) => self.here.bind_internet(*id, *address),
        };
        if let (Place::Path(path), Ok(())) = (&place, &here) {
            self.nodes.insert(path.clone(), self.next_node);
            self.next_node += 1;
        }
        let there = rustix::net::bind(there, &place.there()).map_err(support::error);
        self.compare(ours(here), there);
    }

    fn listen(&mut self) {
        let (index, backlog) = (self.some(), self.random.below(3) as u32);
        self.log.push(format!("listen at {index} for {backlog}"));
        let (id, there) = &self.sockets[index];
        let here = self.here.listen(*id, backlog, self.own);
        let there = rustix::net::listen(there, backlog.cast_signed()).map_err(support::error);
        self.compare(ours(here), there);
    }

    fn connect(&mut self) {
        let (index, place) = (self.some(), self.place());
        let is_tcp = self.is_tcp(index);
        let (id, there) = &self.sockets[index];
        if self.random.once_in(8) {
            self.log.push(format!("disconnect {index}"));
            let here = self.here.connect(*id, Target::Nobody, self.own);
            let there = rustix::net::connect_unspec(there).map_err(support::error);
            return self.compare(refused(here), there);
        }
        // Linux does not make a connection again that was there a moment ago.
        if is_tcp && self.has_chosen_port(index) {
            return;
        }
        self.log.push(format!("connect {index} to {place:?}"));
        let here = match target(&self.nodes, &place) {
            Ok(target) => self.here.connect(*id, target, self.own),
            // A path that leads nowhere is the caller's error.
            Err(()) => return,
        };
        // Linux would wait for a while.
        if is_tcp && matches!(here, Err(Refusal::Waits(..))) {
            self.log.push("which has to wait".into());
            return;
        }
        let there = support::connect(there, &place);
        self.compare(refused(here), there);
    }

    fn accept(&mut self) {
        let index = self.some();
        self.log.push(format!("accept from {index} as {}", self.sockets.len()));
        let (id, there) = &self.sockets[index];
        let here = refused(self.here.accept(*id, false));
        let there = support::accept(there);
        self.compare(here.as_ref().err(), there.as_ref().err());
        if let (Ok(here), Ok(there)) = (here, there) {
            // Whether a connection inherits this from its listener depends on Linux's version.
            if self.family == family::UNIX {
                sockopt::set_socket_passcred(&there, false).unwrap();
            }
            self.sockets.push((here, there));
        }
    }

    fn send(&mut self) {
        let index = self.some();
        let is_tcp = self.is_tcp(index);
        let (id, _) = &self.sockets[index];
        if self.here.unsent_bytes(*id).is_ok_and(|sent| sent > MOST_SENT) {
            return;
        }
        // Of packets without bytes, Linux 6.1 and 6.18 disagree on whether they are lost with a socket.
        let least = usize::from(self.has_kind(index, kind::SEQPACKET));
        let (id, there) = &self.sockets[index];
        let length = [least, 1, 2, 10, 100, 1000, 5000][self.random.index(7)];
        let bytes: Vec<u8> = (0..length).map(|_| self.random.below(256) as u8).collect();
        let to = self.random.once_in(3).then(|| self.places[self.random.index(self.places.len())].clone());
        let count = if self.family == family::UNIX && self.random.once_in(3) { 1 + self.random.index(3) } else { 0 };
        let files: Vec<_> = (0..count).map(|_| &self.files[self.random.index(5)]).collect();
        let mut rights: Vec<u64> = files.iter().map(|file| file.0).collect();
        self.log.push(format!("send {length} bytes from {index} to {to:?} with {count} rights"));
        let to_here = match to.as_ref().map(|place| target(&self.nodes, place)).transpose() {
            Ok(to) => to,
            Err(()) => return,
        };
        let (first, second) = bytes.split_at(length / 3);
        let message = Message {
            to: to_here,
            credentials: self.own,
            states_credentials: false,
            header: Ipv6Header::DEFAULT,
            flags: 0,
        };
        let here = self.here.send(*id, &[first, second], &message, &mut rights);
        assert!(rights.is_empty() || rights.len() == count);
        self.sent_rights += count - rights.len();
        let files: Vec<_> = files.iter().map(|file| &file.1).collect();
        let to = to.filter(|_| !is_tcp);
        let there = support::send(there, &bytes, to.as_ref(), &files);
        self.compare(refused(here), there);
    }

    fn receive(&mut self) {
        let index = self.some();
        let room = [0, 1, 5, 50, 3000, 10_000][self.random.index(6)];
        let mut flags = if self.random.once_in(4) { message::PEEK } else { 0 };
        flags |= if self.random.once_in(4) { message::TRUNC } else { 0 };
        self.log.push(format!("receive {room} bytes at {index}, flags {flags}"));
        let is_tcp = self.is_tcp(index);
        let (id, there) = &self.sockets[index];
        let here = receive_here(&mut self.here, *id, room, flags);
        let there = support::receive(there, room, flags);
        self.received_rights += here.as_ref().map_or(0, |(_, rights)| *rights);
        let mut here = here.map(|(got, _)| got);
        // What Linux reads of a stream that is thrown away lies nowhere.
        if let (Ok(here), Ok(there)) = (&mut here, &there)
            && is_tcp
            && flags & message::TRUNC != 0
        {
            here.bytes.clone_from(&there.bytes);
        }
        if let Ok(got) = &here {
            self.log.push(format!("  {} bytes, {} rights", got.count, got.rights.len()));
        }
        self.compare(here, there);
    }

    fn shut_down(&mut self) {
        let (index, how) = (self.some(), self.random.below(3) as u32);
        let is_closed = self.here.peer_name(self.sockets[index].0).is_err()
            && self.here.option(self.sockets[index].0, level::SOCKET, option::ACCEPTCONN).unwrap().as_bytes()[0] == 0;
        // Connections that are made after that end by themselves, some earlier, some later.
        if is_closed && self.is_tcp(index) {
            return;
        }
        self.log.push(format!("shut down {index}: {how}"));
        let (id, there) = &self.sockets[index];
        let here = self.here.shut_down(*id, how);
        let how = [Shutdown::Read, Shutdown::Write, Shutdown::Both][how as usize];
        self.compare(ours(here), rustix::net::shutdown(there, how).map_err(support::error));
    }

    fn close(&mut self) {
        let index = self.some();
        self.log.push(format!("close {index}; the last one gets its number"));
        let (id, _) = self.sockets.swap_remove(index);
        self.here.close(id).unwrap();
    }

    fn change(&mut self) {
        let index = self.some();
        let (id, there) = &self.sockets[index];
        match self.random.below(3) {
            0 if self.family == family::UNIX => {
                // Whether a send that fails chooses a name before depends on Linux's version.
                let is_named = self.here.name(*id).unwrap() != Address::Unix(None);
                let passes = self.random.once_in(2) && is_named;
                self.log.push(format!("tell credentials at {index}: {passes}"));
                self.here.set_option(*id, level::SOCKET, option::PASSCRED, &[passes.into(), 0, 0, 0]).unwrap();
                sockopt::set_socket_passcred(there, passes).unwrap();
            }
            1 if self.family == family::UNIX => {
                let paths: Vec<_> = self.nodes.keys().cloned().collect();
                for path in paths {
                    self.log.push(format!("remove {}", path.escape_ascii()));
                    support::remove(&path);
                    self.nodes.remove(&path);
                }
            }
            _ => {
                self.log.push(format!("take the error of {index}"));
                let here = self.here.option(*id, level::SOCKET, option::ERROR).unwrap();
                let there = sockopt::socket_error(there).unwrap().map_or_else(support::error, |()| 0);
                self.compare(here.as_bytes(), &there.to_le_bytes()[..]);
            }
        }
    }

    /// Returns what both sides say of a socket.
    fn states(&self, index: usize) -> [(Readiness, Result<u64, i32>, String, String); 2] {
        let (id, there) = &self.sockets[index];
        let here = Readiness { lacks_room_of: None, ..self.here.readiness(*id).unwrap() };
        let readable = ours(self.here.readable_bytes(*id)).map(|count| count as u64);
        let name = support::show_here(&self.here.name(*id).unwrap());
        let peer = ours(self.here.peer_name(*id)).map(|name| support::show_here(&name));
        let here = (here, readable, name, format!("{peer:?}"));
        let readable = rustix::io::ioctl_fionread(there).map_err(support::error);
        let name = support::show_there(rustix::net::getsockname(there).unwrap());
        let peer = rustix::net::getpeername(there).map_err(support::error);
        let peer = peer.map(|peer| peer.map_or_else(|| "unnamed".into(), support::show_there));
        [here, (support::readiness(there), readable, name, format!("{peer:?}"))]
    }

    fn compare_states(&mut self) {
        for index in 0..self.sockets.len() {
            let begin = Instant::now();
            loop {
                let [here, there] = self.states(index);
                if here == there {
                    break;
                }
                if self.family == family::UNIX || begin.elapsed() > PATIENCE {
                    panic!("socket {index}: {here:#?} here, {there:#?} there, after {:#?}", self.last());
                }
                std::thread::yield_now();
            }
        }
    }

    fn step(&mut self) {
        if self.sockets.len() < 2 {
            self.make();
        }
        match self.random.below(40) {
            0..4 if self.sockets.len() < MOST_SOCKETS => self.make(),
            0..7 => self.bind(),
            7..10 => self.listen(),
            10..16 => self.connect(),
            16..19 if self.sockets.len() < MOST_SOCKETS => self.accept(),
            16..27 => self.send(),
            27..36 => self.receive(),
            36 => self.shut_down(),
            37..39 => self.close(),
            _ => self.change(),
        }
        self.compare_states();
        self.here.check();
        let held = self.here.held_rights();
        self.received_rights += self.here.take_rights().len();
        assert_eq!(self.sent_rights, held + self.received_rights, "no right is lost");
        self.here.take_events().for_each(drop);
    }

    fn end(mut self) {
        for (socket, _) in std::mem::take(&mut self.sockets) {
            self.here.close(socket).unwrap();
            self.here.check();
        }
        self.received_rights += self.here.take_rights().len();
        assert_eq!((self.here.len(), self.received_rights), (0, self.sent_rights));
    }
}

fn unix_places(directory: &std::path::Path, seed: u64) -> Vec<Place> {
    let path = |name: &str| Place::Path(directory.join(name).to_str().unwrap().as_bytes().to_vec());
    let name = |name: u32| Place::Abstract(format!("tench {} {seed} {name}", std::process::id()).into_bytes());
    vec![path("a"), path("b"), name(0), name(1), name(2)]
}

#[test]
fn unix_sockets_do_what_linuxs_do() {
    for seed in 0..400 {
        let directory = tempfile::tempdir().unwrap();
        let mut both = Both::new(seed, family::UNIX, unix_places(directory.path(), seed));
        both.log.push(format!("seed {seed}"));
        for _ in 0..300 {
            both.step();
        }
        both.end();
    }
}

fn internet_places(seed: u64) -> Vec<Place> {
    let first = 10_000 + (std::process::id() as u16 % 1000) * 20 + (seed as u16 % 10) * 2;
    let addresses = [([127, 0, 0, 1], 0), ([127, 0, 0, 1], 1), ([127, 0, 0, 2], 0), ([0, 0, 0, 0], 0)];
    addresses.map(|(ip, port)| Place::Internet((ip, first + port).into())).to_vec()
}

#[test]
fn internet_sockets_do_what_linuxs_do() {
    for seed in 0..150 {
        let mut both = Both::new(seed, family::INET, internet_places(seed));
        both.log.push(format!("seed {seed}"));
        for _ in 0..200 {
            both.step();
        }
        both.end();
    }
}
