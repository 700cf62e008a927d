//! The processes of an instance.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::Machine;
use crate::instance::FIRST;
use crate::process::Process;

/// All processes of an instance, but the one whose call is being served.
///
/// The one that was served last is kept apart, since it is likely to be the next.
#[derive(Debug)]
pub struct Processes<M: Machine> {
    /// All processes by their numbers. Those that are kept elsewhere have their numbers here.
    all: BTreeMap<u32, Option<Box<Process<M>>>>,
    /// The process that was served last.
    latest: Option<Box<Process<M>>>,
    /// The processes of threads with other numbers than their processes.
    owners: BTreeMap<u32, u32>,
    /// The number that was given away last.
    last: u32,
    /// How often numbers have begun anew.
    round: u16,
    /// Set if some process has asked for a signal for the end of its parent.
    pub(crate) watch_parents: bool,
}

impl<M: Machine> Processes<M> {
    /// The highest number of a process.
    const MAX: u32 = 32_767;
    /// The most processes and threads at once.
    pub(crate) const MAX_COUNT: usize = 8192;

    /// Returns no processes.
    pub const fn new() -> Processes<M> {
        Processes {
            all: BTreeMap::new(),
            latest: None,
            owners: BTreeMap::new(),
            last: FIRST,
            round: 0,
            watch_parents: false,
        }
    }

    /// Returns the next free number, which no process, thread, group or session has, if there may be a further process
    /// or thread. `own` is the process whose call is being served.
    pub fn next_id(&mut self, own: &Process<M>) -> Option<u32> {
        if self.all.len() + self.owners.len() >= Processes::<M>::MAX_COUNT {
            return None;
        }
        let candidates = (self.last + 1..=Processes::<M>::MAX).chain(2..=self.last);
        let id = candidates.into_iter().find(|id| {
            let names = |process: &Process<M>| process.group == *id || process.session == *id;
            let is_used = self.all.contains_key(id) || self.owners.contains_key(id);
            !is_used && !self.iter().any(names) && !names(own)
        })?;
        if id <= self.last {
            self.round = self.round.wrapping_add(1);
        }
        self.last = id;
        Some(id)
    }

    /// Returns how often numbers have begun anew.
    pub const fn round(&self) -> u16 {
        self.round
    }

    /// Returns how many processes were made, if no number was left out, and the number of the last.
    pub fn made(&self) -> (u64, u32) {
        (u64::from(self.round) * u64::from(Processes::<M>::MAX) + u64::from(self.last), self.last)
    }

    /// Takes a process to serve its call. Its number stays its own.
    pub fn take(&mut self, id: u32) -> Option<Box<Process<M>>> {
        match self.latest.take_if(|latest| latest.id == id) {
            Some(latest) => Some(latest),
            None => self.all.get_mut(&id)?.take(),
        }
    }

    /// Takes the process of a thread, which is the present one then, unless it has ended.
    pub fn take_thread(&mut self, id: u32) -> Option<Box<Process<M>>> {
        if let Some(latest) = &mut self.latest
            && let Ok(present) = latest.index_of(id)
        {
            latest.present = present;
            return self.latest.take();
        }
        let place = match self.all.get_mut(&id) {
            Some(place) => place,
            None => self.all.get_mut(self.owners.get(&id)?)?,
        };
        let present = place.as_ref()?.index_of(id).ok()?;
        let mut process = place.take()?;
        process.present = present;
        Some(process)
    }

    /// Adds the number of a thread to those of a process.
    pub fn add_thread(&mut self, thread: u32, process: u32) {
        self.owners.insert(thread, process);
    }

    /// Removes the number of a thread.
    pub fn remove_thread(&mut self, thread: u32) {
        self.owners.remove(&thread);
    }

    /// Returns the number of a thread's process.
    pub fn owner(&self, thread: u32) -> Option<u32> {
        if self.all.contains_key(&thread) { Some(thread) } else { self.owners.get(&thread).copied() }
    }

    /// Adds a process.
    pub fn add(&mut self, process: Box<Process<M>>) {
        self.all.insert(process.id, Some(process));
    }

    /// Puts a process back that was taken.
    #[inline(always)]
    pub fn put(&mut self, process: Box<Process<M>>) {
        if let Some(earlier) = self.latest.replace(process)
            && let Some(place) = self.all.get_mut(&earlier.id)
        {
            *place = Some(earlier);
        }
    }

    /// Removes the number of a process that was taken, or the process.
    pub fn remove(&mut self, id: u32) {
        self.latest.take_if(|latest| latest.id == id);
        self.all.remove(&id);
    }

    /// Returns a process.
    pub fn get(&mut self, id: u32) -> Option<&mut Process<M>> {
        match &mut self.latest {
            Some(latest) if latest.id == id => Some(latest),
            _ => self.all.get_mut(&id)?.as_deref_mut(),
        }
    }

    /// Returns a process, to be read.
    pub fn find(&self, id: u32) -> Option<&Process<M>> {
        match &self.latest {
            Some(latest) if latest.id == id => Some(latest),
            _ => self.all.get(&id)?.as_deref(),
        }
    }

    /// Returns all processes, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Process<M>> {
        let latest = self.latest.as_deref();
        self.all.iter().filter_map(move |(id, place)| place.as_deref().or(latest.filter(|latest| latest.id == *id)))
    }

    /// Returns all processes, to be changed, in the order of their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Process<M>> {
        let mut latest = self.latest.as_deref_mut();
        self.all.iter_mut().filter_map(move |(id, place)| match place.as_deref_mut() {
            Some(process) => Some(process),
            None => latest.take_if(|latest| latest.id == *id),
        })
    }

    /// Returns whether somebody in the session, but in another group, is the parent of a member of a process's group.
    pub fn have_guardian(&self, process: &Process<M>) -> bool {
        let mut members = self.iter().filter(|member| member.group == process.group).chain([process]);
        members.any(|member| {
            let parent = self.find(member.parent).filter(|parent| !parent.has_ended());
            parent.is_some_and(|parent| parent.group != process.group && parent.session == process.session)
        })
    }

    /// Returns the number of processes, with the one whose call is being served.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of threads, if each process has its first one.
    pub fn count_threads(&self) -> usize {
        self.all.len() + self.owners.len()
    }
}

impl<M: Machine> Default for Processes<M> {
    fn default() -> Processes<M> {
        Processes::new()
    }
}
