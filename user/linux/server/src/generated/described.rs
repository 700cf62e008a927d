//! A process as its generated files describe it: numbers, sizes of memory, areas, arguments.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

use tench_linux_files::{Errno, MAX_NAME, MAX_PATH, NodeId};
use tench_linux_memory::{Area, Backing, Kind, Memory as Pages, ObjectId, PAGE_SIZE, Rights, Space};
use tench_linux_proc::{
    Layout, Map, Memory, Owner as PageOwner, Page, Process as Described, Residence, Signals, State, Times, Use,
};

use super::Owner;
use super::view::{Viewer, threads};
use crate::caller::{Caller, MAX_SMALL, Result};
use crate::calls::DEVICE;
use crate::capabilities::Capabilities;
use crate::identity::Ids;
use crate::instance::FIRST;
use crate::process::{Process, Status, trimmed};
use crate::signals::{Queue, SIGNALS, number, only};
use crate::thread::{Filtering, State as ThreadState};
use crate::{Machine, System, exec};

/// The least number of descriptors for which Linux has room.
const LEAST_DESCRIPTORS: u32 = 64;
/// The most bytes of a program's arguments or environment.
const MAX_BYTES: u64 = exec::MAX_STRINGS as u64;
/// Ticks per second.
const TICKS: u128 = 100;
/// How often the name of a file is there for each of its areas while they are listed.
const COPIES_OF_NAMES: usize = 4;

impl<M: Machine> Caller<'_, M> {
    /// Does something with a process's memory.
    fn with_space<R>(&mut self, owner: Owner, work: impl FnOnce(&mut Pages<M>, &mut Space<M>) -> R) -> Option<R> {
        let process = self.viewer().process(owner).filter(|process| !process.has_ended())?;
        let (space, System { memory, spaces, .. }) = (process.space, &mut *self.system);
        Some(work(memory, &mut spaces.get(space).space))
    }

    /// Returns where a process's heap is.
    fn heap(&mut self, owner: Owner) -> Range<u64> {
        let process = self.viewer().process(owner).filter(|process| !process.has_ended());
        let Some(space) = process.map(|process| process.space) else { return 0..0 };
        let used = self.system.spaces.get(space);
        used.heap..used.heap_end
    }

    /// Returns how long a process, or one of its threads, has run, and its children.
    fn times_of(&mut self, owner: Owner, thread: Option<u32>) -> Times {
        let viewer = Viewer { own: Some(&*self.process), others: Some(&*self.others) };
        let Some(process) = viewer.process(owner) else { return Times::default() };
        let own = match thread.map(|thread| process.index_of(thread)) {
            Some(Ok(index)) => self.system.memory.hardware.used(&process.threads[index].machine),
            _ => self.system.time_of(process),
        };
        let ticks = |time: core::time::Duration| (time.as_millis() * TICKS / 1000) as u64;
        Times { user: ticks(own), children_user: ticks(process.children_used), ..Times::default() }
    }

    /// Returns bytes of a process; fewer if some cannot be read, and none of one that has ended.
    pub(super) fn bytes_of(&mut self, owner: Owner, range: Range<u64>) -> Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start).min(MAX_BYTES) as usize;
        if length > MAX_SMALL {
            // Twice, since more may follow.
            self.system.memory.check_room(2 * length)?;
        }
        let read = self.with_space(owner, |memory, space| {
            let mut bytes = alloc::vec![0; length];
            let count = space.read(memory, range.start, &mut bytes);
            bytes.truncate(count);
            bytes
        });
        Ok(read.unwrap_or_default())
    }

    /// Returns the arguments of a process. If it has written over the end of them, they go on in the environment to the
    /// next zero, as Linux shows titles that programs give themselves.
    pub(super) fn arguments(&mut self, owner: Owner) -> Result<Vec<u8>> {
        let Some(process) = self.viewer().process(owner) else { return Ok(Vec::new()) };
        let (arguments, environment) = (process.layout.arguments.clone(), process.layout.environment.clone());
        let mut bytes = self.bytes_of(owner, arguments)?;
        if bytes.last().is_some_and(|last| *last != 0) {
            bytes.extend(self.bytes_of(owner, environment)?);
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            bytes.truncate(end);
        }
        Ok(bytes)
    }

    /// Returns a process as its files describe it, or one of its threads.
    pub(super) fn described(&mut self, owner: Owner, thread: Option<u32>) -> Result<Described<'_>> {
        let (sizes, heap, times) = (self.sizes(owner), self.heap(owner), self.times_of(owner, thread));
        let start = self.system.memory.hardware.start();
        let process = self.viewer().process(owner).ok_or(Errno::ESRCH)?;
        let terminal = process.terminal.and_then(|id| Some((id.device().0, self.system.terminals.get(id)?)));
        let started = core::time::Duration::new(process.started.seconds.cast_unsigned(), process.started.nanoseconds);
        let started = started.saturating_sub(start);
        let exec::Layout { code, data, stack, arguments, environment, .. } = process.layout.clone();
        let highest = process.descriptors.all().last().map_or(0, |(number, _)| number + 1);
        let thread = thread.unwrap_or(process.id);
        let identity = process.thread_of(thread).map_or_else(|| process.identity(), |thread| &thread.identity);
        Ok(Described {
            thread,
            id: process.id,
            parent: process.parent,
            tracer: process
                .thread_of(thread)
                .and_then(|thread| thread.tracing.as_ref())
                .map_or(0, |tracing| tracing.tracer),
            group: process.group,
            session: process.session,
            terminal: terminal.map(|(device, terminal)| (device, terminal.discipline.foreground())),
            name: trimmed(process.name_of(thread)),
            state: state(process, thread),
            has_executed: process.programs != 0,
            threads: threads(process).count() as u32,
            started: (started.as_millis() * TICKS / 1000) as u64,
            nice: process.thread_of(thread).map_or(0, |thread| thread.nice),
            times,
            memory: sizes,
            layout: Layout { code, data, heap: heap.start, stack, arguments, environment },
            signals: signals(process, thread),
            users: ids(identity.user),
            group_ids: ids(identity.group),
            capabilities: sets(identity.capabilities),
            has_no_new_privileges: identity.has_no_new_privileges,
            filtering: filtering(process, thread),
            mask: process.mask,
            groups: identity.groups.as_deref().unwrap_or_default(),
            descriptors: highest.next_power_of_two().max(LEAST_DESCRIPTORS),
            // The first process has no parent here, but would have one with Linux.
            end_signal: if process.id == FIRST { number::CHLD } else { process.end_signal },
            end: process.ended.map_or(0, Status::word),
        })
    }

    /// Returns the sizes of a process's memory.
    fn sizes(&mut self, owner: Owner) -> Option<Memory> {
        let code = self.viewer().process(owner)?.layout.code.clone();
        self.with_space(owner, |memory, space| {
            let usage = space.usage(memory);
            let mut sizes = Memory {
                anonymous: usage.anonymous,
                file: usage.file,
                shared: usage.shared,
                tables: space.tables() as u64,
                code: (code.end.next_multiple_of(PAGE_SIZE) - code.start / PAGE_SIZE * PAGE_SIZE) / PAGE_SIZE,
                ..Memory::default()
            };
            let mut executable = 0;
            for (start, area) in space.areas().iter() {
                let pages = (area.end - start) / PAGE_SIZE;
                sizes.size += pages;
                match (area.grows, area.shared, area.rights) {
                    (true, ..) => sizes.stack += pages,
                    (_, false, rights) if rights.contains(Rights::WRITE) => sizes.data += pages,
                    (_, _, rights) if rights.contains(Rights::EXECUTE) => executable += pages,
                    _ => {}
                }
            }
            sizes.libraries = u64::saturating_sub(executable, sizes.code);
            sizes
        })
    }

    /// Returns the areas of a process.
    pub(super) fn maps(&mut self, owner: Owner) -> Result<Vec<Map>> {
        let areas = self
            .with_space(owner, |_, space| space.areas().iter().map(|(start, area)| (start, *area)).collect::<Vec<_>>());
        let (areas, names, heap) = (areas.unwrap_or_default(), self.files_by_object(), self.heap(owner));
        let Some(process) = self.viewer().process(owner) else { return Ok(Vec::new()) };
        let stack = process.layout.stack;
        let object_of = |area: &Area| match area.backing {
            Backing::Object(id, _) => Some(id),
            Backing::Anonymous => None,
        };
        let objects: BTreeSet<ObjectId> = areas.iter().filter_map(|(_, area)| object_of(area)).collect();
        let paths = self.paths_by_object(&objects, &names)?;
        let of_files = areas.iter().filter_map(|(_, area)| Some(paths.get(&object_of(area)?)?.len()));
        // Each area has its own copy of the name, and the text has one or two.
        self.system.memory.check_room(COPIES_OF_NAMES * of_files.sum::<usize>())?;
        let maps = areas
            .into_iter()
            .map(|(start, area)| {
                let mut map = Map {
                    range: start..area.end,
                    rights: flags(area.rights),
                    is_shared: area.shared,
                    offset: 0,
                    device: (0, 0),
                    inode: 0,
                    name: Vec::new(),
                };
                match area.backing {
                    Backing::Anonymous if (start..area.end).contains(&stack) => map.name = b"[stack]".to_vec(),
                    Backing::Anonymous if start < heap.end && heap.start < area.end => map.name = b"[heap]".to_vec(),
                    Backing::Anonymous => {}
                    Backing::Object(id, _) if id == self.system.trampoline => map.name = b"[vdso]".to_vec(),
                    Backing::Object(id, offset) => {
                        let node = names.get(&id);
                        map.offset = offset;
                        map.device = (0, DEVICE as u32);
                        map.inode = node.map_or(0, |node| self.system.tree.inode(*node));
                        // Memory that processes share without a file is a file for Linux, too.
                        map.name = paths.get(&id).cloned().unwrap_or_else(|| b"/dev/zero (deleted)".to_vec());
                    }
                }
                map
            })
            .collect();
        Ok(maps)
    }

    /// Returns what the areas of a process use.
    pub(super) fn uses(&mut self, owner: Owner) -> Result<Vec<Use>> {
        let (maps, trampoline) = (self.maps(owner)?, self.system.trampoline);
        let uses = self.with_space(owner, |memory, space| {
            let areas = space.areas().iter().zip(maps);
            let uses = areas.map(|((start, area), map)| {
                // All files are in memory, and dirty is what is nowhere else: all but the code of the personality.
                let is_dirty = area.backing != Backing::Object(trampoline, 0);
                let mut pages = Residence::default();
                for page in space.residents(memory, start, area) {
                    let owner = match page.kind {
                        Kind::Anonymous => PageOwner::Process,
                        _ if is_dirty => PageOwner::Memory,
                        _ => PageOwner::File,
                    };
                    pages.add(Page { owner, is_dirty, places: page.places });
                }
                Use { map, allowed: flags(area.allowed), grows: area.grows, pages }
            });
            uses.collect()
        });
        Ok(uses.unwrap_or_default())
    }

    /// Returns the paths of these objects that have one, or have a name in place of it.
    fn paths_by_object(
        &mut self,
        objects: &BTreeSet<ObjectId>,
        files: &BTreeMap<ObjectId, NodeId>,
    ) -> Result<BTreeMap<ObjectId, Vec<u8>>> {
        let wanted: BTreeSet<NodeId> = objects.iter().filter_map(|object| files.get(object).copied()).collect();
        let nameless = objects.iter().filter(|id| self.system.memory.objects.get(**id).name().is_some()).count();
        self.system.memory.check_room(2 * (wanted.len() * MAX_PATH + nameless * MAX_NAME))?;
        let paths = self.system.tree.paths_of(&wanted);
        let path_of = |object: &ObjectId| {
            let path = files.get(object).and_then(|node| paths.get(node).cloned());
            Some((*object, path.or_else(|| self.system.path_of_nameless(*object))?))
        };
        Ok(objects.iter().filter_map(path_of).collect())
    }

    /// Returns the file of each object that has one.
    fn files_by_object(&self) -> BTreeMap<ObjectId, NodeId> {
        self.system.tree.regular_files().map(|(node, object)| (object, node)).collect()
    }
}

/// Returns whether rights are among some: to read, to write, to execute.
fn flags(rights: Rights) -> [bool; 3] {
    [Rights::READ, Rights::WRITE, Rights::EXECUTE].map(|right| rights.contains(right))
}

fn state<M: Machine>(process: &Process<M>, thread: u32) -> State {
    match process.thread_of(thread).map(|thread| thread.state) {
        None | Some(ThreadState::Ended) => State::Ended,
        _ if process.thread_of(thread).is_some_and(|thread| thread.is_trapped()) => State::Traced,
        _ if process.is_stopped => State::Stopped,
        Some(ThreadState::Runs) => State::Runs,
        Some(ThreadState::Waits) => State::Sleeps,
    }
}

const fn ids(ids: Ids) -> [u32; 4] {
    [ids.real, ids.effective, ids.saved, ids.files]
}

const fn sets(own: Capabilities) -> [u64; 5] {
    [own.inheritable, own.permitted, own.effective, own.bounding, own.ambient]
}

fn signals<M: Machine>(process: &Process<M>, thread: u32) -> Signals {
    let all = 1..=SIGNALS as u32;
    let set = |is_in: &dyn Fn(u32) -> bool| {
        all.clone().filter(|signal| is_in(*signal)).fold(0, |set, signal| set | only(signal))
    };
    let (shared, own) = (&process.signals, process.thread_of(thread).map(|thread| &thread.signals));
    let queued = process.threads.iter().map(|thread| thread.signals.pending.count()).sum::<usize>();
    Signals {
        pending: own.map_or(0, |own| own.pending.set()),
        shared_pending: shared.pending.set(),
        blocked: own.map_or(0, |own| own.blocked),
        ignored: set(&|signal| shared.action(signal).ignores()),
        caught: set(&|signal| shared.action(signal).handler() > 1),
        queued: (shared.pending.count() + queued) as u64,
        most: Queue::MAX as u64,
    }
}

/// Returns the mode in which a thread's calls are filtered, and the number of filters.
fn filtering<M: Machine>(process: &Process<M>, thread: u32) -> (u32, usize) {
    match process.thread_of(thread).map(|thread| &thread.filtering) {
        None | Some(Filtering::None) => (0, 0),
        Some(Filtering::Strict) => (1, 0),
        Some(Filtering::By(filter)) => (2, filter.number()),
    }
}
