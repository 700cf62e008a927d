//! Open files that send their owner `SIGIO` when something happens to them: `O_ASYNC`.
//!
//! Such a file watches its events as an entry of an `epoll` does. Most files have no owner, so this is kept beside
//! them; a file with an owner counts as one that is watched, so that the owner is forgotten when it is closed.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tench_linux_sockets::Event as SocketEvent;

use crate::descriptors::DescriptionId;
use crate::signals::{Cause, Info, Set, number, only};
use crate::waiting::Key;
use crate::{Machine, System};

/// To whom a signal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// To a thread.
    Thread(u32),
    /// To a process.
    Process(u32),
    /// To all processes of a group.
    Group(u32),
}

/// The owner of an open file, and when it gets a signal.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    /// The owner, if there is one.
    pub owner: Option<Owner>,
    /// The real and the effective user who has said so.
    pub by: [u32; 2],
    /// The signal; 0 for `SIGIO` without further information.
    pub signal: u32,
    /// The file descriptor by which signals were requested.
    pub descriptor: u32,
    /// Everything that comes with a signal.
    pub keys: Vec<Key>,
}

/// The event that caused a signal: `si_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Something can be read.
    Readable = 1,
    /// Something can be written.
    Writable = 2,
    /// A directory has changed (`POLL_MSG`).
    Message = 3,
}

impl Reason {
    /// Returns the reason that belongs to a key.
    pub const fn of(key: Key) -> Reason {
        match key {
            Key::Writable(_)
            | Key::TerminalOutput(_)
            | Key::MasterRoom(_)
            | Key::Socket(_, SocketEvent::Writable | SocketEvent::Room) => Reason::Writable,
            _ => Reason::Readable,
        }
    }

    /// Returns the events, as `poll` has them.
    const fn events(self) -> u32 {
        match self {
            Reason::Readable => 0x41,
            Reason::Writable => 0x304,
            Reason::Message => 0x441,
        }
    }
}

impl Owned {
    /// Returns the signal to send for a reason.
    pub const fn info(&self, reason: Reason, descriptor: u32) -> Info {
        /// `SI_SIGIO`: the code for signals that have codes of their own, with other meanings.
        const BY_FILE: i32 = -5;
        const WITH_CODES: Set = only(number::ILL)
            | only(number::TRAP)
            | only(number::BUS)
            | only(number::FPE)
            | only(number::SEGV)
            | only(number::CHLD)
            | only(number::SYS);
        match self.signal {
            0 => Info::from_system(number::IO),
            signal => {
                let code = if WITH_CODES & only(signal) != 0 { BY_FILE } else { reason as i32 };
                Info { signal, code, cause: Cause::File { descriptor, events: reason.events() } }
            }
        }
    }
}

/// The open files that have or had an owner.
pub type Owners = BTreeMap<DescriptionId, Owned>;

impl<M: Machine> System<M> {
    /// Returns the owner of an open file and its events, which can be changed.
    pub(crate) fn owned(&mut self, description: DescriptionId) -> &mut Owned {
        if !self.owners.contains_key(&description) {
            self.descriptions.get(description).watchers += 1;
        }
        self.owners.entry(description).or_default()
    }

    /// Lets an open file send signals when something of this happens, and nothing else.
    pub(crate) fn watch_for_owner(&mut self, description: DescriptionId, mut keys: Vec<Key>) {
        keys.sort_unstable();
        keys.dedup();
        let old = core::mem::replace(&mut self.owned(description).keys, keys.clone());
        self.waiters.watch_file(description, &old, false);
        self.waiters.watch_file(description, &keys, true);
    }

    /// Forgets the owner of an open file that is about to be closed.
    pub(crate) fn end_owner(&mut self, description: DescriptionId) {
        let node = self.descriptions.find(description).node;
        self.notices.end(node, description, None);
        if let Some(owned) = self.owners.remove(&description) {
            self.waiters.watch_file(description, &owned.keys, false);
            self.waiters.forget_file(description);
            self.descriptions.get(description).watchers -= 1;
        }
    }
}
