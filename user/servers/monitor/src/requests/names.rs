//! Names that are local to each core.
//!
//! The name server runs on the first core, and programs of every core find what is registered there. But a server that
//! the system description starts on every core exists once per core, and a program is to find its own core's: it may
//! have to give that server something that cannot leave the core, such as a scheduling context. So on a further core
//! the monitor, which receives in place of the name server, keeps these names itself, in the name server's own table,
//! and forwards requests about all others.
//!
//! Invariants:
//! - A request about a local name stays on its core, whoever the requester is, and whether the name is registered or
//!   not; a request about another name never gets its reply here. So no name can be registered in both places, and
//!   every name can be found in one.
//! - A listing shows each name once, in order, and a local name only if it is registered on the requester's core, with
//!   the process that has registered it there.

use alloc::vec::Vec;

use tench_names::table::Table;
use tench_names_interface::Names;
use tench_names_interface::protocol::MAX_NAME;
use tench_sys::Reader;

/// The names of a core. `C` and `R` are those of the [`Table`].
pub struct OwnNames<C, R> {
    /// The local names.
    known: Vec<&'static str>,
    /// Registrations of local names, and waits for them.
    pub table: Table<C, R>,
}

/// The name in a request to the name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The request is about this name.
    Name(&'a str),
    /// The request is for the name after this one.
    After(&'a str),
}

/// The next name in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed<'a> {
    /// The name server's reply.
    There,
    /// This name, which this process has registered here.
    Here(&'a str, u64),
    /// Undecided: the name server's name is local to its core. The name server is to be asked for the name after that.
    Further,
}

/// Returns the name in a request; `None` if it is not a client's request to the name server, or malformed.
pub fn subject(label: u64, words: &[u64]) -> Option<Subject<'_>> {
    let of = match label {
        Names::REGISTER | Names::LOOK_UP | Names::WAIT_FOR | Names::UNREGISTER => Subject::Name,
        Names::NEXT => Subject::After,
        _ => return None,
    };
    let mut words = Reader::new(words);
    let text = words.str(MAX_NAME)?;
    words.rest().is_empty().then(|| of(text))
}

impl<C: Copy, R> OwnNames<C, R> {
    /// Returns a table in which these names are local, and this many threads can wait for one.
    pub const fn new(known: Vec<&'static str>, max_waiters: usize) -> OwnNames<C, R> {
        let table = Table::new(known.len(), max_waiters);
        OwnNames { known, table }
    }

    /// Returns whether a name is local.
    pub fn has(&self, name: &str) -> bool {
        self.known.contains(&name)
    }

    /// Returns what follows a name in a listing, if `there` is the name server's reply: a name, or none.
    pub fn listed(&self, after: &str, there: Option<&str>) -> Listed<'_> {
        match (self.table.next(after), there) {
            (Some((name, owner)), Some(there)) if name <= there => Listed::Here(name, owner),
            (Some((name, owner)), None) => Listed::Here(name, owner),
            // Each step moves on in the order, so the listing ends, whatever the replies are.
            (_, Some(there)) if self.has(there) && there > after => Listed::Further,
            _ => Listed::There,
        }
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.table.check_invariants();
        let mut after = "";
        while let Some((name, _)) = self.table.next(after) {
            assert!(self.has(name), "{name} does not stay here");
            after = name;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeMap;
    use std::string::{String, ToString};
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;
    use tench_names_interface::protocol::Error;
    use tench_quota::Client;
    use tench_sys::{Message, Received};

    use super::*;

    const OWN: [&str; 3] = ["mem", "monitor", "reserve"];
    const OTHERS: [&str; 4] = ["a", "clock", "rather", "zebra"];

    fn names() -> OwnNames<u32, u32> {
        OwnNames::new(OWN.to_vec(), 4)
    }

    /// Returns what a program of the core sees in a listing, if these names are registered at the name server.
    fn list(names: &OwnNames<u32, u32>, there: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
        let (mut seen, mut asked) = (Vec::new(), 0);
        let mut after = String::new();
        loop {
            let mut from = after.clone();
            let next = loop {
                asked += 1;
                assert!(asked < 100, "it does not end");
                let reply = there
                    .range::<String, _>((std::ops::Bound::Excluded(from.clone()), std::ops::Bound::Unbounded))
                    .next();
                match names.listed(&from, reply.map(|(name, _)| name.as_str())) {
                    Listed::Here(name, owner) => break Some((name.to_string(), owner)),
                    Listed::There => break reply.map(|(name, owner)| (name.clone(), *owner)),
                    Listed::Further => from = reply.unwrap().0.clone(),
                }
            };
            let Some((name, owner)) = next else { return seen };
            after = name.clone();
            seen.push((name, owner));
        }
    }

    #[test]
    fn requests_about_names_are_told_from_others() {
        let words = |name: &str| {
            let mut message = Message::new(0);
            message.push_text(name.as_bytes());
            Received::from_message(&message, 0).words().to_vec()
        };
        for label in [Names::REGISTER, Names::LOOK_UP, Names::WAIT_FOR, Names::UNREGISTER] {
            assert_eq!(subject(label, &words("reserve")), Some(Subject::Name("reserve")));
        }
        assert_eq!(subject(Names::NEXT, &words("")), Some(Subject::After("")));
        assert_eq!(subject(Names::PROCESS_ENDED, &words("reserve")), None);
        assert_eq!(subject(Names::LOOK_UP ^ 1 << 32, &words("reserve")), None, "another interface");
        assert_eq!(subject(Names::LOOK_UP, &[words("reserve"), vec![0]].concat()), None, "too long");
        assert_eq!(subject(Names::LOOK_UP, &[]), None);
        assert_eq!(subject(Names::LOOK_UP, &[1 << 40]), None);
        assert_eq!(subject(Names::LOOK_UP, &[1, 0xff]), None, "no text");
    }

    #[test]
    fn a_name_is_its_cores_if_its_server_is() {
        let mut names = names();
        assert!(OWN.iter().all(|name| names.has(name)) && !OTHERS.iter().any(|name| names.has(name)));
        assert!(!names.has("") && !names.has("reserves"));
        for (name, owner) in OWN.into_iter().zip(5..) {
            assert_eq!(names.table.check_register(name, Client::alone(owner)), Ok(()), "the quota allows each");
            assert_eq!(names.table.register(name, Client::alone(owner), 1), Ok(vec![]));
        }
        assert_eq!(names.table.check_register("reserve", Client::alone(9)), Err(Error::Taken));
        names.check_invariants();
    }

    #[test]
    fn a_list_of_names_has_those_of_the_own_core() {
        let mut names = names();
        let there: BTreeMap<String, u64> =
            [("clock", 5), ("monitor", 8), ("reserve", 9)].map(|(name, owner)| (name.to_string(), owner)).into();
        let expected = |expected: &[(&str, u64)]| {
            expected.iter().map(|(name, owner)| (name.to_string(), *owner)).collect::<Vec<_>>()
        };
        assert_eq!(list(&names, &there), expected(&[("clock", 5)]), "another core's are not this one's");
        names.table.register("reserve", Client::alone(105), 1).unwrap();
        assert_eq!(list(&names, &there), expected(&[("clock", 5), ("reserve", 105)]));
        names.table.register("mem", Client::alone(103), 1).unwrap();
        assert_eq!(list(&names, &there), expected(&[("clock", 5), ("mem", 103), ("reserve", 105)]));
        assert_eq!(list(&names, &BTreeMap::new()), expected(&[("mem", 103), ("reserve", 105)]));
        assert_eq!(names.listed("reserve", Some("mem")), Listed::There, "a name server that goes back ends the list");
    }

    proptest! {
        #[test]
        fn a_list_has_each_name_once_and_in_order(here: Vec<(usize, u64)>, there: Vec<(usize, u64)>) {
            let mut names = names();
            for (which, owner) in here {
                let _ = names.table.register(OWN[which % OWN.len()], Client::alone(owner), 0);
            }
            names.check_invariants();
            let all: Vec<&str> = OWN.into_iter().chain(OTHERS).collect();
            let there: BTreeMap<String, u64> =
                there.into_iter().map(|(which, owner)| (all[which % all.len()].to_string(), owner)).collect();
            let mut expected: BTreeMap<String, u64> = there.clone();
            expected.retain(|name, _| !names.has(name));
            let mut after = "";
            while let Some((name, owner)) = names.table.next(after) {
                expected.insert(name.to_string(), owner);
                after = name;
            }
            prop_assert_eq!(list(&names, &there), expected.into_iter().collect::<Vec<_>>());
        }
    }
}
