//! Watching many open files.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_calls::numbers::{epoll as number, open};
use tench_linux_calls::records::{epoll_event, u32_at, u64_at};
use tench_linux_files::{Errno, Kind, Tree};

use crate::caller::{Caller, Result};
use crate::descriptors::{DescriptionId, Descriptions};
use crate::epoll::{Entry, Epoll};
use crate::specials::Special;
use crate::waiting::{EntryId, Interruption, Key};
use crate::{Machine, System};

/// The most events that one call reads.
const MOST_EVENTS: usize = 4096;
/// The deepest `epoll` in an `epoll`, as with Linux.
const MAX_DEPTH: usize = 4;

/// Returns the number of what an open file is that has no name.
fn special_of(descriptions: &Descriptions, tree: &Tree, file: DescriptionId) -> Option<u32> {
    match tree.node(descriptions.find(file).node).kind {
        Kind::Special(number) => Some(number),
        _ => None,
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Makes a set of files that are watched.
    pub fn epoll_create1(&mut self, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !open::CLOEXEC != 0 {
            return Err(Errno::EINVAL);
        }
        self.add_special(Special::Epoll(Epoll::default()), open::RDWR, flags & open::CLOEXEC != 0)
    }

    /// Returns the number of the `epoll` that an open file is.
    fn epoll_of(&mut self, description: DescriptionId) -> Option<u32> {
        let node = self.system.descriptions.get(description).node;
        let Kind::Special(number) = self.system.tree.node(node).kind else { return None };
        matches!(self.system.specials.get(number), Special::Epoll(_)).then_some(number)
    }

    /// Returns a set of files that are watched.
    fn epoll(&mut self, number: u32) -> Result<&mut Epoll> {
        match self.system.specials.get(number) {
            Special::Epoll(epoll) => Ok(epoll),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Adds, changes or removes a file that is watched.
    pub fn epoll_ctl(&mut self, epoll: u64, operation: u64, descriptor: u64, event: u64) -> Result {
        let operation = operation as u32;
        let (mut events, mut data) = (0, 0);
        if operation != number::DEL {
            let record: [u8; epoll_event::SIZE] = self.read_record(event)?;
            (events, data) = (u32_at(&record, epoll_event::EVENTS), u64_at(&record, epoll_event::DATA));
        }
        let own = self.descriptor(epoll)?;
        let description = self.descriptor(descriptor)?;
        self.check_watchable(description)?;
        let epoll = self.epoll_of(own).filter(|_| own != description).ok_or(Errno::EINVAL)?;
        let found = self.epoll(epoll)?.find(descriptor as u32, description);
        match (operation, found) {
            (number::ADD, Some(_)) => Err(Errno::EEXIST),
            (number::ADD, None) => {
                self.check_depth(epoll, description)?;
                self.system.prepare_to_watch()?;
                let entry = Entry { descriptor: descriptor as u32, description, events, data, keys: Vec::new() };
                let entry = self.epoll(epoll)?.add(entry);
                self.system.descriptions.get(description).watchers += 1;
                self.watch(EntryId { epoll, entry }, description)
            }
            (number::MOD | number::DEL, None) => Err(Errno::ENOENT),
            (number::MOD, Some(entry)) => {
                if let Some(entry) = self.epoll(epoll)?.get(entry) {
                    (entry.events, entry.data) = (events, data);
                }
                self.watch(EntryId { epoll, entry }, description)
            }
            (number::DEL, Some(entry)) => {
                let removed = self.epoll(epoll)?.remove(entry);
                self.system.remove_entry(EntryId { epoll, entry }, removed);
                Ok(0)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Refuses what has no events: files, directories and most devices.
    fn check_watchable(&mut self, description: DescriptionId) -> Result<()> {
        let open_file = self.system.descriptions.get(description);
        if open_file.flags & open::PATH != 0 {
            return Err(Errno::EBADF);
        }
        match self.system.tree.node(open_file.node).kind {
            Kind::Regular(_) | Kind::Directory(_) | Kind::Link(_) | Kind::Block(_) => Err(Errno::EPERM),
            Kind::Character(device) if !crate::devices::has_events(device) => Err(Errno::EPERM),
            _ => Ok(()),
        }
    }

    /// Refuses an `epoll` that watches itself through others, or too deep a pile of them, also of those that lie above.
    fn check_depth(&mut self, epoll: u32, description: DescriptionId) -> Result<()> {
        let Some(watched) = self.epoll_of(description) else { return Ok(()) };
        let mut depth = 0;
        let mut level = alloc::vec![watched];
        while !level.is_empty() {
            depth += 1;
            if depth > MAX_DEPTH || level.contains(&epoll) {
                return Err(Errno::ELOOP);
            }
            level = self.below(&level);
        }
        level.push(epoll);
        loop {
            level = self.above(&level);
            if level.is_empty() {
                return Ok(());
            }
            depth += 1;
            if depth > MAX_DEPTH {
                return Err(Errno::ELOOP);
            }
        }
    }

    /// Returns the `epoll`s that some watch, each once however many ways lead to it.
    fn below(&mut self, epolls: &[u32]) -> Vec<u32> {
        let System { specials, descriptions, tree, .. } = &mut *self.system;
        let mut files = BTreeSet::new();
        for (_, set) in specials.epolls().filter(|(number, _)| epolls.contains(number)) {
            files.extend(set.entries().filter_map(|entry| special_of(descriptions, tree, entry.description)));
        }
        specials.epolls().map(|(number, _)| number).filter(|number| files.contains(number)).collect()
    }

    /// Returns the `epoll`s that watch some.
    fn above(&mut self, epolls: &[u32]) -> Vec<u32> {
        let System { specials, descriptions, tree, .. } = &mut *self.system;
        let is_meant = |entry: &Entry| {
            special_of(descriptions, tree, entry.description).is_some_and(|file| epolls.contains(&file))
        };
        specials.epolls().filter(|(_, set)| set.entries().any(is_meant)).map(|(number, _)| number).collect()
    }

    /// Lets an entry watch its file from now on. If the file has an event already, that counts as one.
    fn watch(&mut self, id: EntryId, description: DescriptionId) -> Result {
        let mut keys = Vec::new();
        let events = self.events(description, &mut keys);
        self.watch_keys(id, keys)?;
        let Some(entry) = self.epoll(id.epoll)?.get(id.entry) else { return Ok(0) };
        let has_event = u32::from(events) & (entry.events | number::ALWAYS) != 0;
        if has_event {
            self.system.waiters.touched.add(id);
            self.system.waiters.wake(Key::Watched(id.epoll));
        }
        Ok(0)
    }

    /// Lets an entry watch these keys, and no others.
    fn watch_keys(&mut self, id: EntryId, mut keys: Vec<Key>) -> Result<()> {
        keys.sort_unstable();
        keys.dedup();
        let Some(entry) = self.epoll(id.epoll)?.get(id.entry) else { return Ok(()) };
        if entry.keys != keys {
            let old = core::mem::replace(&mut entry.keys, keys.clone());
            self.system.waiters.watch(id, &old, false);
            self.system.waiters.watch(id, &keys, true);
        }
        Ok(())
    }

    /// Returns the events that an entry's file has and that are wanted, if there are any. An entry from which nothing
    /// more is wanted has none.
    fn events_of(&mut self, id: EntryId) -> Result<Option<(u32, Entry)>> {
        let Some(entry) = self.epoll(id.epoll)?.get(id.entry).cloned() else { return Ok(None) };
        let mut keys = Vec::new();
        if entry.events & !number::FLAGS == 0 && entry.events & number::ONESHOT != 0 {
            return Ok(None);
        }
        let events = u32::from(self.events(entry.description, &mut keys)) & (entry.events | number::ALWAYS);
        // A socket that sends to others waits now for one, now for another.
        self.watch_keys(id, keys)?;
        Ok((events != 0).then_some((events, entry)))
    }

    /// Returns whether an `epoll` has events to read. Of those that it watches, each is asked once, however many ways
    /// lead to it.
    pub(crate) fn has_events(&mut self, epoll: u32) -> bool {
        let mut asked = alloc::vec![epoll];
        let mut next = 0;
        while let Some(epoll) = asked.get(next).copied() {
            next += 1;
            let touched: Vec<u32> = self.system.waiters.touched.of(epoll).collect();
            for entry in touched {
                let id = EntryId { epoll, entry };
                match self.readable_below(id) {
                    Some(below) if asked.contains(&below) => {}
                    Some(below) => asked.push(below),
                    None if matches!(self.events_of(id), Ok(Some(_))) => return true,
                    None => {}
                }
            }
        }
        false
    }

    /// Returns the `epoll` that an entry watches to learn when that can be read.
    fn readable_below(&mut self, id: EntryId) -> Option<u32> {
        let (events, description) =
            self.epoll(id.epoll).ok()?.get(id.entry).map(|one| (one.events, one.description))?;
        if events & number::READABLE == 0 { None } else { self.epoll_of(description) }
    }

    /// Takes at most so many events of an `epoll`, as records.
    fn take_events(&mut self, epoll: u32, most: usize) -> Result<Vec<u8>> {
        let mut records = Vec::new();
        let mut again = Vec::new();
        while records.len() < most * epoll_event::SIZE {
            let Some(id) = self.system.waiters.touched.take(epoll) else { break };
            let Some((events, entry)) = self.events_of(id)? else { continue };
            records.extend_from_slice(&u64::from(events).to_le_bytes());
            records.extend_from_slice(&entry.data.to_le_bytes());
            if entry.events & number::ONESHOT != 0 {
                if let Some(entry) = self.epoll(epoll)?.get(id.entry) {
                    entry.events &= number::FLAGS;
                }
            } else if entry.events & number::EDGE == 0 {
                again.push(id);
            }
        }
        // What is still so is told again, after everything else.
        for id in again {
            self.system.waiters.touched.add(id);
        }
        Ok(records)
    }

    /// Reads events; waits until there are some, at the longest for so many milliseconds.
    pub fn epoll_pwait(&mut self, epoll: u64, into: u64, most: u64, time: u64, mask: u64, size: u64) -> Result {
        let deadline = match (self.waiting(), (time as u32).cast_signed()) {
            (Some(waiting), _) => waiting.deadline,
            (None, ..0) => None,
            (None, time) => {
                let time = Duration::from_millis(time.unsigned_abs().into());
                Some(self.system.memory.hardware.monotonic().saturating_add(time))
            }
        };
        self.wait_for_events(epoll, into, most, deadline, (mask, size))
    }

    /// Reads events; waits until there are some, at the longest for a time.
    pub fn epoll_pwait2(&mut self, epoll: u64, into: u64, most: u64, time: u64, mask: u64, size: u64) -> Result {
        let deadline = self.read_deadline(time)?;
        self.wait_for_events(epoll, into, most, deadline, (mask, size))
    }

    fn wait_for_events(
        &mut self,
        epoll: u64,
        into: u64,
        most: u64,
        deadline: Option<Duration>,
        (mask, size): (u64, u64),
    ) -> Result {
        let most = (most as u32).cast_signed();
        if most <= 0 || most as usize > i32::MAX as usize / epoll_event::SIZE {
            return Err(Errno::EINVAL);
        }
        let description = self.descriptor(epoll)?;
        let epoll = self.epoll_of(description).ok_or(Errno::EINVAL)?;
        self.block_meanwhile(mask, size)?;
        let records = self.take_events(epoll, MOST_EVENTS.min(most as usize))?;
        if records.is_empty() && !self.has_passed(deadline) {
            if self.process.is_due() {
                return Err(Errno::EINTR);
            }
            return Err(self.wait(&[Key::Watched(epoll)], deadline, Interruption::Final));
        }
        self.process.thread_mut().signals.restore_blocked();
        self.write(into, &records)?;
        Ok((records.len() / epoll_event::SIZE) as u64)
    }
}
