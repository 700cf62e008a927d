//! Sockets that hold each other in messages: random programs, and a slow model, in which a file is open as long as
//! there is a way to it from a descriptor.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tench_linux_sockets::control::Ipv6Header;
use tench_linux_sockets::numbers::{family, kind, message};
use tench_linux_sockets::{Credentials, Limits, Message, SentFile, SocketId, Sockets};
use tench_random::Random;

const CREDENTIALS: Credentials = Credentials { process: 1, user: 0, group: 0 };
const PLAIN: Message<'static> =
    Message { to: None, credentials: CREDENTIALS, states_credentials: false, header: Ipv6Header::DEFAULT, flags: 0 };
const UNIX: u32 = family::UNIX as u32;
/// The most files that there are at a time.
const MOST: usize = 24;

type File = u32;

/// Sockets, and files with counts of users, as a kernel has them.
struct Here {
    sockets: Sockets<File>,
    files: BTreeMap<File, SentFile>,
}

impl Here {
    /// Removes a user from a file.
    fn close(&mut self, file: File) {
        let entry = self.files.get_mut(&file).unwrap();
        entry.users -= 1;
        match *entry {
            SentFile { users: 0, socket } => {
                self.files.remove(&file);
                if let Some(id) = socket {
                    self.sockets.close(id).unwrap();
                }
            }
            SentFile { socket: Some(id), .. } => {
                let files = &self.files;
                self.sockets.collect(id, |right| files[&right]);
            }
            SentFile { .. } => {}
        }
        for right in self.sockets.take_rights() {
            self.close(right);
        }
    }
}

/// A socket in the model. Connections that nobody has accepted are sockets without a descriptor.
#[derive(Default)]
struct Modelled {
    peer: Option<File>,
    /// For each message, the files in it.
    queue: VecDeque<Vec<File>>,
    connections: VecDeque<File>,
}

/// The model: descriptors, and what a way leads to.
#[derive(Default)]
struct Model {
    /// For each file that a process has open, the number of its descriptors.
    held: BTreeMap<File, u32>,
    sockets: BTreeMap<File, Modelled>,
    plain: BTreeSet<File>,
}

impl Model {
    /// Returns the files to which there is a way, by following all ways until there is nothing new.
    fn reachable(&self) -> BTreeSet<File> {
        let mut found: BTreeSet<File> = self.held.keys().copied().collect();
        loop {
            let before = found.len();
            for (file, socket) in &self.sockets {
                if found.contains(file) {
                    found.extend(socket.queue.iter().flatten());
                    found.extend(&socket.connections);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Forgets all other files.
    fn forget(&mut self) {
        let found = self.reachable();
        self.sockets.retain(|file, _| found.contains(file));
        self.plain.retain(|file| found.contains(file));
    }

    fn let_go(&mut self, file: File) {
        let count = self.held.get_mut(&file).unwrap();
        *count -= 1;
        if *count == 0 {
            self.held.remove(&file);
        }
        self.forget();
    }
}

/// A program.
struct Play {
    here: Here,
    model: Model,
    random: Random,
    next: File,
    /// How often something has happened.
    counts: BTreeMap<&'static str, usize>,
}

impl Play {
    fn new(seed: u64) -> Play {
        let here = Here { sockets: Sockets::new(Limits::default()), files: BTreeMap::new() };
        Play { here, model: Model::default(), random: Random::new(seed), next: 0, counts: BTreeMap::new() }
    }

    fn new_name(&mut self) -> File {
        self.next += 1;
        self.next
    }

    /// Adds a file with a descriptor.
    fn add(&mut self, socket: Option<SocketId>) -> File {
        let file = self.new_name();
        self.here.files.insert(file, SentFile { users: 1, socket });
        self.model.held.insert(file, 1);
        match socket {
            Some(_) => drop(self.model.sockets.insert(file, Modelled::default())),
            None => drop(self.model.plain.insert(file)),
        }
        file
    }

    fn make_pair(&mut self) {
        let kind = [kind::STREAM, kind::SEQPACKET][self.random.below(2) as usize];
        let [one, other] = self.here.sockets.pair(UNIX, kind, 0, CREDENTIALS).unwrap();
        let (one, other) = (self.add(Some(one)), self.add(Some(other)));
        self.model.sockets.get_mut(&one).unwrap().peer = Some(other);
        self.model.sockets.get_mut(&other).unwrap().peer = Some(one);
    }

    /// Makes a socket that listens, by the name of its number.
    fn make_listener(&mut self) {
        let id = self.here.sockets.socket(UNIX, kind::STREAM, 0).unwrap();
        let file = self.add(Some(id));
        self.here.sockets.bind_abstract(id, &file.to_le_bytes()).unwrap();
        self.here.sockets.listen(id, 3, CREDENTIALS).unwrap();
    }

    fn held_socket(&mut self) -> Option<(File, SocketId)> {
        let all: Vec<File> =
            self.model.held.keys().copied().filter(|file| self.model.sockets.contains_key(file)).collect();
        let file = *all.get(self.random.below(all.len().max(1) as u64) as usize)?;
        Some((file, self.here.files[&file].socket.unwrap()))
    }

    fn held_file(&mut self) -> Option<File> {
        let count = self.model.held.len().max(1) as u64;
        self.model.held.keys().nth(self.random.below(count) as usize).copied()
    }

    /// Connects to any socket that listens, whoever has that. Nobody can be asked whether somebody could accept.
    fn connect(&mut self) {
        let all: Vec<File> = self.model.sockets.keys().copied().collect();
        let Some(listener) = all.get(self.random.below(all.len().max(1) as u64) as usize).copied() else { return };
        let id = self.here.sockets.socket(UNIX, kind::STREAM, 0).unwrap();
        let name = listener.to_le_bytes();
        if self.here.sockets.connect(id, tench_linux_sockets::Target::Abstract(&name), CREDENTIALS).is_err() {
            return self.here.sockets.close(id).unwrap();
        }
        let (client, connection) = (self.add(Some(id)), self.new_name());
        self.model.sockets.insert(connection, Modelled { peer: Some(client), ..Modelled::default() });
        self.model.sockets.get_mut(&client).unwrap().peer = Some(connection);
        self.model.sockets.get_mut(&listener).unwrap().connections.push_back(connection);
        *self.counts.entry("connected").or_default() += 1;
    }

    fn accept(&mut self) {
        let Some((file, id)) = self.held_socket() else { return };
        let expected = self.model.sockets.get_mut(&file).unwrap().connections.pop_front();
        let accepted = self.here.sockets.accept(id, false).ok();
        assert_eq!(accepted.is_some(), expected.is_some());
        if let (Some(socket), Some(connection)) = (accepted, expected) {
            self.here.files.insert(connection, SentFile { users: 1, socket: Some(socket) });
            self.model.held.insert(connection, 1);
        }
    }

    /// Sends files with a byte.
    fn send(&mut self) {
        let Some((file, id)) = self.held_socket() else { return };
        let count = 1 + self.random.below(3);
        let rights: Vec<File> = (0..count).filter_map(|_| self.held_file()).collect();
        let mut left = rights.clone();
        let result = self.here.sockets.send(id, &[b"x"], &PLAIN, &mut left);
        let peer = self.model.sockets[&file].peer.filter(|peer| self.model.sockets.contains_key(peer));
        assert_eq!(result.is_ok(), peer.is_some(), "{result:?}");
        assert_eq!(left.is_empty(), result.is_ok());
        if let Some(peer) = peer {
            for right in &rights {
                self.here.files.get_mut(right).unwrap().users += 1;
            }
            self.model.sockets.get_mut(&peer).unwrap().queue.push_back(rights);
            *self.counts.entry("sent").or_default() += 1;
        }
    }

    /// Receives files, which get descriptors, or are closed at once.
    fn receive(&mut self) {
        let Some((file, id)) = self.held_socket() else { return };
        let mut receive = || self.here.sockets.receive(id, &mut [&mut [0; 4]], message::DONTWAIT);
        // The first call may report that the other side is gone, in place of what it has sent before.
        let received = receive().or_else(|_| receive());
        let rights = received.map_or(Vec::new(), |received| received.rights);
        let expected = self.model.sockets.get_mut(&file).unwrap().queue.pop_front().unwrap_or_default();
        assert_eq!(rights, expected);
        for right in &rights {
            *self.model.held.entry(*right).or_default() += 1;
        }
        if self.random.below(2) == 0 {
            for right in rights {
                self.model.let_go(right);
                self.here.close(right);
            }
        }
    }

    fn let_go(&mut self) {
        let Some(file) = self.held_file() else { return };
        let before = self.model.sockets.len() + self.model.plain.len();
        let is_alone = self.here.files[&file].users == 1;
        self.model.let_go(file);
        let gone = before - self.model.sockets.len() - self.model.plain.len();
        *self.counts.entry("circles").or_default() += usize::from(!is_alone && gone > 0);
        self.here.close(file);
    }

    fn step(&mut self) {
        let is_full = self.here.files.len() >= MOST;
        match self.random.below(if is_full { 12 } else { 16 }) {
            0..4 => self.send(),
            4..6 => self.receive(),
            6..9 => self.let_go(),
            9 => self.accept(),
            10 => {
                if let Some(file) = self.held_file() {
                    *self.model.held.get_mut(&file).unwrap() += 1;
                    self.here.files.get_mut(&file).unwrap().users += 1;
                }
            }
            11 => {}
            12..14 => self.make_pair(),
            14 => self.make_listener(),
            _ if self.random.below(3) == 0 => drop(self.add(None)),
            _ => self.connect(),
        }
    }

    /// Compares what is open, and what lies in queues.
    fn compare(&self) {
        self.here.sockets.check();
        let accepted = |file: &&File| !self.model.sockets.values().any(|socket| socket.connections.contains(file));
        let sockets = self.model.sockets.keys().filter(accepted);
        let expected: BTreeSet<File> = sockets.chain(&self.model.plain).copied().collect();
        let open: BTreeSet<File> = self.here.files.keys().copied().collect();
        assert_eq!(open, expected);
        let rights: usize = self.model.sockets.values().flat_map(|socket| &socket.queue).map(Vec::len).sum();
        assert_eq!(self.here.sockets.held_rights(), rights);
    }
}

#[test]
fn a_file_is_open_as_long_as_there_is_a_way_to_it() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..400 {
        let mut play = Play::new(seed);
        for _ in 0..400 {
            play.step();
            play.compare();
        }
        while !play.model.held.is_empty() {
            play.let_go();
            play.compare();
        }
        assert!(play.here.files.is_empty() && play.here.sockets.is_empty(), "nothing is left");
        play.counts.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{counts:?}");
    assert!(counts["circles"] > 500 && counts["sent"] > 10_000 && counts["connected"] > 400, "{counts:?}");
}
