//! Instances, their watches and queues.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use slab::Slab;
use tench_linux_calls::numbers::watch;

use crate::{Errno, Event};

/// The most instances.
pub const MAX_INSTANCES: usize = 128;
/// The most watches of all instances together.
pub const MAX_WATCHES: usize = 8192;
/// The most events of a queue, without the one that says that others were lost.
pub const MAX_EVENTS: usize = 16_384;
/// The most bytes of memory of all queues together, about.
pub const MAX_BYTES: usize = 8 << 20;
/// Bytes that a watch takes at most, with its places among the others.
const WATCH_SIZE: usize = 512;

/// Name of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceId(u32);

/// A file that is watched.
#[derive(Clone, Copy, Debug)]
struct Watch<F> {
    file: F,
    /// The events that are wanted, with flags.
    mask: u32,
}

#[derive(Debug)]
struct Instance<F> {
    watches: BTreeMap<i32, Watch<F>>,
    /// The number that was given to a watch last.
    last: i32,
    queue: VecDeque<Event>,
    /// The queue has an event that says that others were lost.
    has_overflow: bool,
}

/// Something that has happened, without where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happened {
    /// The kind of event, with flags.
    pub mask: u32,
    /// A number that two events have if they are one; otherwise 0.
    pub cookie: u32,
    /// Set if it happened by a name that is not in its directory any more.
    pub is_unlinked: bool,
}

impl Happened {
    /// Returns an event that happened by a name that exists.
    pub const fn new(mask: u32) -> Happened {
        Happened { mask, cookie: 0, is_unlinked: false }
    }
}

/// All instances.
#[derive(Debug)]
pub struct Watches<F> {
    instances: Slab<Instance<F>>,
    /// Numbers of the watches by files and instances.
    by_file: BTreeMap<(F, InstanceId), i32>,
    /// Bytes of memory of all events.
    bytes: usize,
    /// The cookie that was used last.
    cookie: u32,
    /// Instances that have got something to read.
    woken: Vec<InstanceId>,
}

impl<F: Copy + Ord> Watches<F> {
    /// Returns no instances.
    pub const fn new() -> Watches<F> {
        Watches { instances: Slab::new(), by_file: BTreeMap::new(), bytes: 0, cookie: 0, woken: Vec::new() }
    }

    /// Returns whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.by_file.is_empty()
    }

    /// Returns the number of instances.
    pub fn count(&self) -> usize {
        self.instances.len()
    }

    /// Returns the number of bytes that the events of all queues take.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes an instance.
    ///
    /// # Errors
    /// `EMFILE` if there are as many as may be.
    pub fn open(&mut self) -> Result<InstanceId, Errno> {
        if self.instances.len() >= MAX_INSTANCES {
            return Err(Errno::EMFILE);
        }
        let new = Instance { watches: BTreeMap::new(), last: 0, queue: VecDeque::new(), has_overflow: false };
        Ok(InstanceId(self.instances.insert(new) as u32))
    }

    /// Ends an instance.
    pub fn close(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.try_remove(id.0 as usize) else { return };
        for watch in instance.watches.values() {
            self.by_file.remove(&(watch.file, id));
        }
        self.bytes -= instance.queue.iter().map(Event::memory).sum::<usize>();
        self.woken.retain(|woken| *woken != id);
    }

    /// Watches a file, or changes what is wanted of one that is watched. Returns the number of the watch.
    ///
    /// # Errors
    /// - `EEXIST`: the file is watched, and the mask asks for a new watch.
    /// - `ENOSPC`: there are as many watches as may be.
    /// - `ENOMEM`: there is no memory, as `has_room` says.
    pub fn add(
        &mut self,
        id: InstanceId,
        file: F,
        mask: u32,
        has_room: impl FnOnce(usize) -> bool,
    ) -> Result<i32, Errno> {
        let wanted = mask & (watch::ALL | watch::ONESHOT | watch::EXCL_UNLINK);
        let found = self.by_file.get(&(file, id)).copied();
        let count = self.by_file.len();
        let instance = self.instances.get_mut(id.0 as usize).ok_or(Errno::EINVAL)?;
        if let Some(number) = found {
            if mask & watch::MASK_CREATE != 0 {
                return Err(Errno::EEXIST);
            }
            if let Some(watch) = instance.watches.get_mut(&number) {
                watch.mask = if mask & watch::MASK_ADD != 0 { watch.mask | wanted } else { wanted };
            }
            return Ok(number);
        }
        if count >= MAX_WATCHES {
            return Err(Errno::ENOSPC);
        }
        if !has_room(WATCH_SIZE) {
            return Err(Errno::ENOMEM);
        }
        // Numbers are used again only when all were used.
        let following = instance.last.checked_add(1).unwrap_or(1);
        let number = (following..=i32::MAX).chain(1..following).find(|number| !instance.watches.contains_key(number));
        let number = number.ok_or(Errno::ENOSPC)?;
        instance.last = number;
        instance.watches.insert(number, Watch { file, mask: wanted });
        self.by_file.insert((file, id), number);
        Ok(number)
    }

    /// Ends a watch, which the queue says.
    ///
    /// # Errors
    /// `EINVAL` if there is none with this number.
    pub fn remove(
        &mut self,
        id: InstanceId,
        number: i32,
        has_room: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), Errno> {
        let instance = self.instances.get_mut(id.0 as usize).ok_or(Errno::EINVAL)?;
        let watch = instance.watches.remove(&number).ok_or(Errno::EINVAL)?;
        self.by_file.remove(&(watch.file, id));
        let ignored = Event { watch: number, mask: watch::IGNORED, cookie: 0, name: None };
        self.queue(id, ignored, has_room);
        Ok(())
    }

    /// Returns whether somebody watches a file.
    pub fn is_watched(&self, file: F) -> bool {
        self.of(file, InstanceId(0)).is_some()
    }

    /// Returns the first watch of a file by an instance from `from` on.
    fn of(&self, file: F, from: InstanceId) -> Option<(InstanceId, i32)> {
        let ((found, id), number) = self.by_file.range((file, from)..).next()?;
        (*found == file).then_some((*id, *number))
    }

    /// Returns a cookie for two events that are one.
    pub const fn next_cookie(&mut self) -> u32 {
        self.cookie = self.cookie.wrapping_add(1);
        self.cookie
    }

    /// Tells all who watch a file, or a directory in which something with a name is, what has happened.
    pub fn tell(&mut self, file: F, name: Option<&[u8]>, what: Happened, has_room: &mut dyn FnMut(usize) -> bool) {
        let mut from = InstanceId(0);
        while let Some((id, number)) = self.of(file, from) {
            from = InstanceId(id.0 + 1);
            let instance = self.instances.get(id.0 as usize);
            let Some(wanted) = instance.and_then(|instance| instance.watches.get(&number)).map(|watch| watch.mask)
            else {
                continue;
            };
            let is_excluded = what.is_unlinked && wanted & watch::EXCL_UNLINK != 0;
            if wanted & what.mask & watch::ALL == 0 || is_excluded {
                continue;
            }
            self.queue(
                id,
                Event { watch: number, mask: what.mask, cookie: what.cookie, name: name.map(Into::into) },
                has_room,
            );
            if wanted & watch::ONESHOT != 0 {
                let removed = self.remove(id, number, has_room);
                debug_assert!(removed.is_ok(), "the watch was there");
            }
        }
    }

    /// Ends all watches of a file that has ended, after having told that.
    pub fn end_file(&mut self, file: F, has_room: &mut dyn FnMut(usize) -> bool) {
        self.tell(file, None, Happened::new(watch::DELETE_SELF), has_room);
        while let Some((id, number)) = self.of(file, InstanceId(0)) {
            let removed = self.remove(id, number, has_room);
            debug_assert!(removed.is_ok(), "the watch was there");
        }
    }

    /// Adds an event to a queue, unless the last one says the same.
    fn queue(&mut self, id: InstanceId, event: Event, has_room: &mut dyn FnMut(usize) -> bool) {
        let bytes = self.bytes;
        let Some(instance) = self.instances.get_mut(id.0 as usize) else { return };
        let is_full = instance.queue.len() >= MAX_EVENTS;
        if !is_full && instance.queue.back().is_some_and(|last| last.says(&event)) {
            return;
        }
        let size = event.memory();
        let fits = !is_full && bytes + size <= MAX_BYTES && has_room(grown(&instance.queue) + size);
        let event = match fits {
            true => event,
            false if instance.has_overflow => return,
            false => Event::OVERFLOW,
        };
        instance.has_overflow |= !fits;
        self.bytes += event.memory();
        instance.queue.push_back(event);
        if !self.woken.contains(&id) {
            self.woken.push(id);
        }
    }

    /// Takes the instances that have got something to read since this was asked last.
    pub fn take_woken(&mut self) -> Vec<InstanceId> {
        core::mem::take(&mut self.woken)
    }

    /// Reads as many events of an instance as there is room for. Returns the number of bytes.
    ///
    /// # Errors
    /// `EAGAIN` if there is none, `EINVAL` if there is no room for one.
    pub fn read(&mut self, id: InstanceId, into: &mut [u8]) -> Result<usize, Errno> {
        let instance = self.instances.get_mut(id.0 as usize).ok_or(Errno::EAGAIN)?;
        let mut done = 0;
        while let Some(event) = instance.queue.front() {
            let Some(place) = into.get_mut(done..done + event.size()) else { break };
            event.write(place);
            done += event.size();
            self.bytes -= event.memory();
            instance.has_overflow &= event.mask & watch::Q_OVERFLOW == 0;
            instance.queue.pop_front();
        }
        if instance.queue.is_empty() {
            // A queue that was long gives its memory back.
            instance.queue = VecDeque::new();
        } else if done == 0 {
            return Err(Errno::EINVAL);
        }
        if done == 0 { Err(Errno::EAGAIN) } else { Ok(done) }
    }

    /// Returns how many bytes can be read.
    pub fn readable(&self, id: InstanceId) -> usize {
        let instance = self.instances.get(id.0 as usize);
        instance.map_or(0, |instance| instance.queue.iter().map(Event::size).sum())
    }

    /// Returns whether something can be read.
    pub fn has_events(&self, id: InstanceId) -> bool {
        self.instances.get(id.0 as usize).is_some_and(|instance| !instance.queue.is_empty())
    }
}

impl<F: Copy + Ord> Default for Watches<F> {
    fn default() -> Watches<F> {
        Watches::new()
    }
}

/// Returns how many bytes a queue takes when it has to grow for a further event.
fn grown(queue: &VecDeque<Event>) -> usize {
    if queue.len() < queue.capacity() { 0 } else { 2 * (queue.len() + 1) * size_of::<Event>() }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;

    fn watching(masks: &[u32]) -> (Watches<u32>, InstanceId) {
        let mut watches = Watches::new();
        let id = watches.open().unwrap();
        for (file, mask) in (0u32..).zip(masks) {
            assert_eq!(watches.add(id, file, *mask, |_| true), Ok(file.cast_signed() + 1));
        }
        (watches, id)
    }

    fn tell(watches: &mut Watches<u32>, file: u32, name: Option<&[u8]>, mask: u32) {
        watches.tell(file, name, Happened::new(mask), &mut |_| true);
    }

    /// Reads all events: their watches, masks and names.
    fn read(watches: &mut Watches<u32>, id: InstanceId) -> Vec<(i32, u32, Vec<u8>)> {
        let mut bytes = vec![0; watches.readable(id)];
        let count = watches.read(id, &mut bytes).unwrap_or(0);
        assert_eq!((count, watches.has_events(id)), (bytes.len(), false));
        let (mut events, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let end = 16 + word(12) as usize;
            assert!(end.is_multiple_of(16));
            let name = rest[16..end].iter().copied().take_while(|byte| *byte != 0).collect();
            events.push((word(0).cast_signed(), word(4), name));
            rest = &rest[end..];
        }
        events
    }

    #[test]
    fn who_wants_an_event_gets_it_once() {
        let (mut watches, id) = watching(&[watch::MODIFY, watch::ALL]);
        let other = watches.open().unwrap();
        watches.add(other, 0, watch::OPEN, |_| true).unwrap();
        tell(&mut watches, 0, None, watch::MODIFY);
        tell(&mut watches, 0, None, watch::MODIFY);
        tell(&mut watches, 0, None, watch::OPEN);
        tell(&mut watches, 1, Some(b"name"), watch::CREATE | watch::ISDIR);
        tell(&mut watches, 0, None, watch::MODIFY);
        tell(&mut watches, 2, None, watch::MODIFY);
        assert_eq!(watches.take_woken(), [id, other]);
        let name = b"name".to_vec();
        let expected =
            [(1, watch::MODIFY, vec![]), (2, watch::CREATE | watch::ISDIR, name), (1, watch::MODIFY, vec![])];
        assert_eq!(read(&mut watches, id), expected);
        assert_eq!(read(&mut watches, other), [(1, watch::OPEN, vec![])]);
        assert_eq!(watches.bytes(), 0);
    }

    #[test]
    fn equal_events_with_another_between_stay_two_and_names_matter() {
        let (mut watches, id) = watching(&[watch::ALL]);
        for name in [&b"a"[..], b"b", b"b", b"a"] {
            tell(&mut watches, 0, Some(name), watch::OPEN);
        }
        tell(&mut watches, 0, None, watch::OPEN);
        let names: Vec<_> = read(&mut watches, id).into_iter().map(|(_, _, name)| name).collect();
        assert_eq!(names, [&b"a"[..], b"b", b"a", b""]);
    }

    #[test]
    fn a_queue_that_nobody_reads_ends_with_the_loss() {
        let (mut watches, id) = watching(&[watch::ALL]);
        for number in 0..MAX_EVENTS + 100 {
            tell(&mut watches, 0, None, [watch::OPEN, watch::MODIFY][number % 2]);
        }
        let events = read(&mut watches, id);
        assert_eq!(events.len(), MAX_EVENTS + 1);
        assert_eq!(events[MAX_EVENTS], (-1, watch::Q_OVERFLOW, vec![]));
        tell(&mut watches, 0, None, watch::OPEN);
        assert_eq!(read(&mut watches, id), [(1, watch::OPEN, vec![])], "it goes on");
    }

    #[test]
    fn all_queues_together_are_bounded() {
        let mut watches = Watches::new();
        let all: Vec<InstanceId> = (0..MAX_INSTANCES).map(|_| watches.open().unwrap()).collect();
        assert_eq!(watches.open(), Err(Errno::EMFILE));
        for id in &all {
            watches.add(*id, 0, watch::ALL, |_| true).unwrap();
        }
        let name = [b'n'; 255];
        for number in 0..2000 {
            tell(&mut watches, 0, Some(&name[number % 2..]), watch::OPEN);
        }
        assert!(watches.bytes() <= MAX_BYTES + MAX_INSTANCES * Event::OVERFLOW.memory(), "{}", watches.bytes());
        for id in all {
            let last = read(&mut watches, id).last().cloned();
            assert_eq!(last, Some((-1, watch::Q_OVERFLOW, vec![])));
            watches.close(id);
        }
        assert_eq!((watches.bytes(), watches.count(), watches.is_empty()), (0, 0, true));
    }

    #[test]
    fn without_memory_events_are_lost_and_nothing_is_watched() {
        let (mut watches, id) = watching(&[watch::ALL]);
        watches.tell(0, None, Happened::new(watch::OPEN), &mut |_| false);
        watches.tell(0, None, Happened::new(watch::MODIFY), &mut |_| false);
        assert_eq!(read(&mut watches, id), [(-1, watch::Q_OVERFLOW, vec![])]);
        assert_eq!(watches.add(id, 7, watch::ALL, |_| false), Err(Errno::ENOMEM));
    }

    #[test]
    fn watches_are_bounded_and_their_numbers_are_not_used_again() {
        let (mut watches, id) = watching(&[watch::ALL, watch::ALL]);
        watches.remove(id, 2, &mut |_| true).unwrap();
        assert_eq!(watches.remove(id, 2, &mut |_| true), Err(Errno::EINVAL));
        assert_eq!(watches.add(id, 9, watch::ALL, |_| true), Ok(3));
        for file in 10..10 + MAX_WATCHES as u32 - 2 {
            watches.add(id, file, watch::ALL, |_| true).unwrap();
        }
        assert_eq!(watches.add(id, 1, watch::ALL, |_| true), Err(Errno::ENOSPC));
        assert_eq!(watches.add(id, 9, watch::OPEN, |_| true), Ok(3), "it is watched already");
    }

    #[test]
    fn a_mask_is_replaced_or_added_to_or_refused() {
        let (mut watches, id) = watching(&[watch::OPEN]);
        watches.add(id, 0, watch::MODIFY | watch::MASK_ADD, |_| true).unwrap();
        tell(&mut watches, 0, None, watch::OPEN);
        assert_eq!(read(&mut watches, id).len(), 1);
        watches.add(id, 0, watch::MODIFY, |_| true).unwrap();
        tell(&mut watches, 0, None, watch::OPEN);
        assert!(!watches.has_events(id));
        assert_eq!(watches.add(id, 0, watch::OPEN | watch::MASK_CREATE, |_| true), Err(Errno::EEXIST));
    }

    #[test]
    fn watches_end_after_one_event_or_with_their_file() {
        let (mut watches, id) = watching(&[watch::OPEN | watch::ONESHOT, watch::DELETE_SELF, watch::OPEN]);
        tell(&mut watches, 0, None, watch::MODIFY);
        tell(&mut watches, 0, None, watch::OPEN);
        tell(&mut watches, 0, None, watch::OPEN);
        for file in 1..3 {
            watches.end_file(file, &mut |_| true);
            assert!(!watches.is_watched(file));
        }
        let ignored = |number| (number, watch::IGNORED, vec![]);
        let expected = [(1, watch::OPEN, vec![]), ignored(1), (2, watch::DELETE_SELF, vec![]), ignored(2), ignored(3)];
        assert_eq!(read(&mut watches, id), expected);
        assert!(watches.is_empty());
    }

    #[test]
    fn who_does_not_want_them_gets_no_events_of_names_that_are_gone() {
        let (mut watches, id) = watching(&[watch::ALL | watch::EXCL_UNLINK, watch::ALL]);
        for file in 0..2 {
            let what = Happened { is_unlinked: true, ..Happened::new(watch::MODIFY) };
            watches.tell(file, None, what, &mut |_| true);
        }
        assert_eq!(read(&mut watches, id), [(2, watch::MODIFY, vec![])]);
    }

    #[test]
    fn only_whole_events_are_read() {
        let (mut watches, id) = watching(&[watch::ALL]);
        assert_eq!(watches.read(id, &mut [0; 99]), Err(Errno::EAGAIN));
        tell(&mut watches, 0, Some(&[b'n'; 15]), watch::OPEN);
        tell(&mut watches, 0, Some(&[b'n'; 16]), watch::OPEN);
        assert_eq!(watches.readable(id), 32 + 48);
        assert_eq!(watches.read(id, &mut [0; 31]), Err(Errno::EINVAL));
        assert_eq!(watches.read(id, &mut [0; 79]), Ok(32));
        assert_eq!(watches.read(id, &mut [0; 48]), Ok(48));
    }
}
