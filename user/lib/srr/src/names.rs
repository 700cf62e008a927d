//! The name server, through which tasks find one another.
//!
//! The name server is a task like any other, and by convention the second to be created, so that its identifier is
//! always [`NAME_SERVER`]. The first task calls `create(0, names::serve)` before it creates any other.
//!
//! R4's name server stops the machine when it runs out of room. This one replies with [`Error::NamesFull`], goes on
//! serving the names it knows, and still accepts a new owner for a registered name.
//!
//! A request has one byte with the kind of request, four bytes with a task identifier (of the task to register,
//! otherwise ignored), and the name. The reply has one byte with the outcome and four with a task identifier.

use alloc::vec::Vec;

use crate::{Error, MAX_MESSAGE, Tid, create, my_tid, receive, reply, send};

/// The name server's task identifier.
pub const NAME_SERVER: Tid = Tid(1);
/// Maximum length of a name in bytes.
pub const MAX_NAME: usize = 255;
/// Maximum number of names.
pub const MAX_NAMES: usize = 128;
/// Maximum length of all names together in bytes.
pub const MAX_NAME_BYTES: usize = 4096;

/// Size of a request before the name in bytes.
const HEADER: usize = 5;
/// Size of a reply in bytes.
const REPLY: usize = 5;

const _: () = assert!(HEADER + MAX_NAME <= MAX_MESSAGE);

/// The registered names, stored contiguously so that short names take little room and long ones are possible.
#[derive(Debug, Default)]
pub struct Names {
    bytes: Vec<u8>,
    /// For each name, its end in `bytes` and its owner.
    entries: Vec<(usize, Tid)>,
}

impl Names {
    /// Returns an empty set.
    pub const fn new() -> Names {
        Names { bytes: Vec::new(), entries: Vec::new() }
    }

    /// Returns the index of a name's entry.
    fn position(&self, name: &[u8]) -> Option<usize> {
        let mut start = 0;
        self.entries.iter().position(|(end, _)| &self.bytes[core::mem::replace(&mut start, *end)..*end] == name)
    }

    /// Registers a name, or changes its owner.
    /// Errors: `BadName`, `NamesFull`.
    pub fn register(&mut self, name: &[u8], tid: Tid) -> Result<(), Error> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Error::BadName);
        }
        if let Some(position) = self.position(name) {
            self.entries[position].1 = tid;
            return Ok(());
        }
        if self.entries.len() == MAX_NAMES || self.bytes.len() + name.len() > MAX_NAME_BYTES {
            return Err(Error::NamesFull);
        }
        self.bytes.extend_from_slice(name);
        self.entries.push((self.bytes.len(), tid));
        Ok(())
    }

    /// Returns the owner of a name.
    /// Errors: `NameUnknown`.
    pub fn who_is(&self, name: &[u8]) -> Result<Tid, Error> {
        self.position(name).map(|position| self.entries[position].1).ok_or(Error::NameUnknown)
    }
}

/// Kind of a request to the name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Question {
    WhoIs = 0,
    RegisterAs = 1,
    Shutdown = 2,
}

impl Question {
    /// Returns the request with this number.
    const fn from_code(code: u8) -> Option<Question> {
        match code {
            0 => Some(Question::WhoIs),
            1 => Some(Question::RegisterAs),
            2 => Some(Question::Shutdown),
            _ => None,
        }
    }
}

/// Returns the outcome byte of a reply; [`outcome`] decodes it.
const fn outcome_code(result: Result<Tid, Error>) -> u8 {
    match result {
        Ok(_) => 0,
        Err(Error::NameUnknown) => 1,
        Err(Error::NamesFull) => 2,
        Err(_) => 3,
    }
}

/// Returns the result in a reply. An invalid reply does not come from the name server.
fn outcome(reply: &[u8]) -> Result<Tid, Error> {
    let &[code, a, b, c, d] = reply else { return Err(Error::NoNameServer) };
    match code {
        0 => Ok(Tid(u32::from_le_bytes([a, b, c, d]))),
        1 => Err(Error::NameUnknown),
        2 => Err(Error::NamesFull),
        3 => Err(Error::BadName),
        _ => Err(Error::NoNameServer),
    }
}

/// Returns the reply to one request, and whether the server goes on serving.
fn serve_one(names: &mut Names, request: &[u8]) -> ([u8; REPLY], bool) {
    let (result, serving) = match request {
        [code, a, b, c, d, name @ ..] => match Question::from_code(*code) {
            Some(Question::WhoIs) => (names.who_is(name), true),
            Some(Question::RegisterAs) => {
                let tid = Tid(u32::from_le_bytes([*a, *b, *c, *d]));
                (names.register(name, tid).map(|()| tid), true)
            }
            Some(Question::Shutdown) => (Ok(NAME_SERVER), false),
            None => (Err(Error::BadName), true),
        },
        _ => (Err(Error::BadName), true),
    };
    let tid = result.unwrap_or_default().0.to_le_bytes();
    ([outcome_code(result), tid[0], tid[1], tid[2], tid[3]], serving)
}

/// Runs the name server. Returns after a [`shutdown`].
pub fn serve() {
    let mut names = Names::new();
    let mut request = [0; HEADER + MAX_NAME];
    loop {
        let (sender, length) = receive(&mut request);
        let (response, serving) = serve_one(&mut names, &request[..length]);
        // A sender waits for the reply until it has it, so this cannot fail; and if it could, only the sender would
        // lose.
        let _ = reply(sender, &response);
        if !serving {
            return;
        }
    }
}

/// Creates the name server with priority 0. The first task has to call this before it creates another.
/// Errors: those of [`create`], and `NoNameServer` if the new task is not [`NAME_SERVER`].
pub fn start() -> Result<(), Error> {
    if create(0, serve)? == NAME_SERVER { Ok(()) } else { Err(Error::NoNameServer) }
}

/// Makes a request to the name server.
fn ask(question: Question, tid: Tid, name: &[u8]) -> Result<Tid, Error> {
    if name.len() > MAX_NAME {
        return Err(Error::BadName);
    }
    let mut request = [0; HEADER + MAX_NAME];
    request[0] = question as u8;
    request[1..HEADER].copy_from_slice(&tid.0.to_le_bytes());
    request[HEADER..HEADER + name.len()].copy_from_slice(name);
    let mut response = [0; REPLY];
    let length = send(NAME_SERVER, &request[..HEADER + name.len()], &mut response).map_err(|_| Error::NoNameServer)?;
    outcome(&response[..length])
}

/// Returns the owner of a name. R4's `WhoIs`.
/// Errors: `NoNameServer` (-1), `NameUnknown` (-2), `BadName` (-2).
pub fn who_is(name: &str) -> Result<Tid, Error> {
    ask(Question::WhoIs, Tid(0), name.as_bytes())
}

/// Registers a name for the calling task, also if another task owns it. R4's `RegisterAs`.
/// Errors: `NoNameServer` (-1), `NamesFull` (-2), `BadName` (-2).
pub fn register_as(name: &str) -> Result<(), Error> {
    ask(Question::RegisterAs, my_tid(), name.as_bytes()).map(|_| ())
}

/// Ends the name server.
/// Errors: `NoNameServer`.
pub fn shutdown() -> Result<(), Error> {
    ask(Question::Shutdown, Tid(0), b"").map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the `n`th of some names of `length` bytes.
    fn name(n: usize, length: usize) -> Vec<u8> {
        (0..length).map(|i| b'a' + (n >> (4 * (i % 8)) & 15) as u8).collect()
    }

    #[test]
    fn names_are_found_and_can_change_hands() {
        let mut names = Names::new();
        assert_eq!(names.who_is(b"a"), Err(Error::NameUnknown));
        for (n, text) in [&b"a"[..], b"ab", b"b", b"abc"].iter().enumerate() {
            names.register(text, Tid(n as u32)).unwrap();
        }
        for (n, text) in [&b"a"[..], b"ab", b"b", b"abc"].iter().enumerate() {
            assert_eq!(names.who_is(text), Ok(Tid(n as u32)));
        }
        assert_eq!(names.who_is(b"ca"), Err(Error::NameUnknown), "across the border of two names");
        names.register(b"ab", Tid(9)).unwrap();
        assert_eq!(names.who_is(b"ab"), Ok(Tid(9)));
    }

    #[test]
    fn a_full_name_server_says_so_and_goes_on() {
        let mut names = Names::new();
        for n in 0..MAX_NAMES {
            names.register(&name(n, 8), Tid(n as u32)).unwrap();
        }
        assert_eq!(names.register(b"one more", Tid(1)), Err(Error::NamesFull));
        assert_eq!(names.register(&name(5, 8), Tid(77)), Ok(()), "a known name needs no room");
        assert_eq!(names.who_is(&name(5, 8)), Ok(Tid(77)));
        assert_eq!(names.who_is(&name(MAX_NAMES - 1, 8)), Ok(Tid(MAX_NAMES as u32 - 1)));
    }

    #[test]
    fn long_names_run_out_of_bytes_first() {
        let mut names = Names::new();
        let fit = MAX_NAME_BYTES / MAX_NAME;
        for n in 0..fit {
            names.register(&name(n, MAX_NAME), Tid(0)).unwrap();
        }
        assert_eq!(names.register(&name(fit, MAX_NAME), Tid(0)), Err(Error::NamesFull));
        assert_eq!(names.register(b"short", Tid(3)), Ok(()), "what still fits is accepted");
    }

    #[test]
    fn bad_names_are_refused() {
        let mut names = Names::new();
        assert_eq!(names.register(b"", Tid(0)), Err(Error::BadName));
        assert_eq!(names.register(&name(0, MAX_NAME + 1), Tid(0)), Err(Error::BadName));
    }

    #[test]
    fn nonsense_gets_a_reply_and_changes_nothing() {
        let mut names = Names::new();
        for request in [&[][..], &[0], &[9, 0, 0, 0, 0, b'x'], &[1, 0, 0, 0, 0]] {
            let (response, serving) = serve_one(&mut names, request);
            assert!(serving);
            assert_eq!(outcome(&response), Err(Error::BadName));
        }
        assert_eq!(outcome(b""), Err(Error::NoNameServer));
        assert_eq!(outcome(&[7, 0, 0, 0, 0]), Err(Error::NoNameServer));
    }
}
