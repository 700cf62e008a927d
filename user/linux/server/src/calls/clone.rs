//! Making processes and threads.

use alloc::boxed::Box;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::trace::event;
use tench_linux_calls::numbers::{capability, clone};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::instance::FIRST;
use crate::limits::{UNLIMITED, resource};
use crate::process::Process;
use crate::signals::{Info, SIGNALS, Stack, number};
use crate::spaces::{SpaceId, Used};
use crate::thread::{Thread, turn};
use crate::tracing::MOST_ENDED;
use crate::waiting::{Interruption, Key};

/// Everything that a thread shares with its process.
const SHARED: u64 = clone::VM | clone::SIGHAND | clone::FILES | clone::FS;
/// Flags that are understood. Some change nothing here.
const KNOWN: u64 = SHARED
    | clone::THREAD
    | clone::VFORK
    | clone::PARENT
    | clone::SETTLS
    | clone::PARENT_SETTID
    | clone::CHILD_SETTID
    | clone::CHILD_CLEARTID
    | clone::DETACHED
    | clone::SYSVSEM
    | clone::UNTRACED
    | clone::PTRACE
    | 0xff;

/// How a new thread begins, beside its flags.
#[derive(Clone, Copy)]
struct Beginning {
    flags: u64,
    /// The stack pointer; 0 for the caller's.
    stack: u64,
    thread_pointer: u64,
    /// Address at which the new thread finds its number, and which is cleared at its end, if the flags say so.
    id_address: u64,
}

impl Beginning {
    const fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// Refuses flags that contradict each other or are unknown.
    fn check(&self) -> Result<()> {
        let lacks = |flag: u64, needed: u64| self.has(flag) && !self.has(needed);
        let contradicts = lacks(clone::SIGHAND, clone::VM) || lacks(clone::THREAD, clone::SIGHAND);
        let is_unknown = self.flags & !KNOWN != 0 || self.flags & 0xff > SIGNALS as u64;
        if contradicts || is_unknown { Err(Errno::EINVAL) } else { Ok(()) }
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Makes a process or a thread. Returns its number. With `CLONE_VFORK`, the caller waits until the process runs
    /// another program or ends.
    pub fn clone(&mut self, flags: u64, stack: u64, parent_id: u64, thread_pointer: u64, child_id: u64) -> Result {
        if let Some(waiting) = self.waiting() {
            let child = waiting.done as u32;
            let is_there = self.others.find(child).is_some_and(|child| !child.has_ended() && child.programs == 0);
            if is_there {
                return Err(self.wait_for_program(child));
            }
            self.tell_end_of_vfork(child);
            return Ok(child.into());
        }
        let beginning = Beginning { flags: flags & 0xffff_ffff, stack, thread_pointer, id_address: child_id };
        beginning.check()?;
        let is_thread = beginning.has(clone::THREAD);
        if !is_thread && beginning.has(SHARED & !clone::VM) || is_thread && flags & SHARED != SHARED {
            self.report_once(Sysno::clone, "processes share their memory and nothing else, threads share everything");
            return Err(Errno::EINVAL);
        }
        if beginning.has(clone::PARENT) && self.process.id == FIRST {
            // Its children would have no parent.
            return Err(Errno::EINVAL);
        }
        self.check_number()?;
        if self.system.tracing.ended.len() >= MOST_ENDED {
            return Err(Errno::EAGAIN);
        }
        let id = self.others.next_id(self.process).ok_or(Errno::EAGAIN)?;
        if is_thread {
            let space = self.process.space;
            let thread = self.make_thread(id, space, &beginning)?;
            let index = self.process.index_of(id).unwrap_or_else(|index| index);
            self.process.threads.insert(index, Box::new(thread));
            self.others.add_thread(id, self.process.id);
        } else {
            self.make_process(id, &beginning)?;
        }
        if self.process.thread().tracing.is_some() {
            self.let_child_be_traced(id, is_thread, &beginning);
        }
        if beginning.has(clone::PARENT_SETTID) {
            // As Linux, which does not look whether it can be written.
            self.copy_to(parent_id, &id.to_le_bytes());
        }
        if !beginning.has(clone::VFORK) || is_thread {
            return Ok(id.into());
        }
        Err(self.wait_for_program(id))
    }

    /// Lets the tracer of a thread trace what it has made, if it wants so, and learn of it.
    fn let_child_be_traced(&mut self, id: u32, is_thread: bool, beginning: &Beginning) {
        let kind = match beginning.flags & 0xff {
            _ if beginning.has(clone::VFORK) => event::VFORK,
            signal if signal == u64::from(number::CHLD) && !is_thread => event::FORK,
            _ => event::CLONE,
        };
        let Some(tracing) = &mut self.process.thread_mut().tracing else { return };
        let is_told = !beginning.has(clone::UNTRACED) && tracing.wants(kind);
        if is_told {
            (tracing.event, tracing.message) = (Some(kind), id.into());
        } else if !beginning.has(clone::PTRACE) {
            return;
        }
        let inherited = tracing.inherited();
        let process = if is_thread { Some(&mut *self.process) } else { self.others.get(id) };
        let Some(process) = process else { return };
        let Ok(index) = process.index_of(id) else { return };
        let thread = &mut process.threads[index];
        if !inherited.is_seized {
            thread.signals.pending.add(Info::from_process(number::STOP, 0, 0));
        }
        thread.tracing = Some(Box::new(inherited));
        self.system.touch_traced(id);
    }

    /// Lets the tracer learn that a child does not use the thread's memory any more.
    fn tell_end_of_vfork(&mut self, child: u32) {
        if let Some(tracing) = &mut self.process.thread_mut().tracing
            && tracing.wants(event::VFORK_DONE)
        {
            (tracing.event, tracing.message) = (Some(event::VFORK_DONE), child.into());
        }
    }

    /// Refuses a further thread to a user who has as many as may be.
    ///
    /// # Errors
    /// `EAGAIN`
    fn check_number(&self) -> Result<()> {
        let limit = self.process.limits.of(resource::PROCESSES).soft;
        let own = self.identity();
        let user = own.user.real;
        if limit == UNLIMITED || user == 0 || own.has(capability::SYS_RESOURCE) || own.has(capability::SYS_ADMIN) {
            return Ok(());
        }
        let all = self.others.iter().chain([&*self.process]).flat_map(|process| &process.threads);
        let count = all.filter(|thread| thread.identity.user.real == user).count() as u64;
        if count < limit { Ok(()) } else { Err(Errno::EAGAIN) }
    }

    /// Waits until a child runs another program or ends.
    fn wait_for_program(&mut self, child: u32) -> Errno {
        let error = self.wait(&[Key::Program(child)], None, Interruption::Never);
        if let Some(waiting) = self.waiting_mut() {
            waiting.done = child.into();
        }
        error
    }

    /// Makes a thread that begins as a copy of the caller, and lets it run.
    fn make_thread(&mut self, id: u32, space: SpaceId, beginning: &Beginning) -> Result<Thread<M>> {
        if beginning.has(clone::CHILD_SETTID) {
            // As Linux, which does not look whether it can be written.
            self.system.write(space, beginning.id_address, &id.to_le_bytes());
        }
        let own = self.process.thread();
        let root = self.system.spaces.get(space).space.root();
        let hardware = &mut self.system.memory.hardware;
        let mut machine = hardware.make_thread(root, id).map_err(|_| Errno::EAGAIN)?;
        let mut registers = hardware.registers(&own.machine);
        let float = hardware.float_registers(&own.machine);
        hardware.set_float_registers(&mut machine, &float);
        registers.x[0] = 0;
        if beginning.stack != 0 {
            registers.sp = beginning.stack;
        }
        if beginning.has(clone::SETTLS) {
            registers.thread_pointer = beginning.thread_pointer;
        }
        hardware.run(&mut machine, &registers);
        if own.nice != 0 {
            hardware.set_turn(&mut machine, turn(own.nice));
        }
        let mut signals = own.signals.inherited();
        if beginning.has(clone::VM) && !beginning.has(clone::VFORK) {
            signals.stack = Stack::NONE;
        }
        let clear_at_end = if beginning.has(clone::CHILD_CLEARTID) { beginning.id_address } else { 0 };
        let scheduling = own.scheduling.inherited();
        let (nice, io_priority, identity, name) = (own.nice, own.io_priority, own.identity.clone(), own.name);
        let filtering = own.filtering.clone();
        let new = Thread::new(id, machine);
        Ok(Thread { signals, nice, io_priority, scheduling, identity, filtering, name, clear_at_end, ..new })
    }

    /// Makes a process, which inherits all that a child does.
    fn make_process(&mut self, id: u32, beginning: &Beginning) -> Result<()> {
        self.system.memory.check_room(self.process.descriptors.size())?;
        let descriptors = self.process.descriptors.clone();
        let space = self.space_for_child(beginning.has(clone::VM))?;
        let thread = match self.make_thread(id, space, beginning) {
            Ok(thread) => thread,
            Err(error) => {
                self.system.release_space(space);
                return Err(error);
            }
        };
        self.system.update_time();
        let own = &*self.process;
        self.system.tree.share(own.directory);
        self.system.tree.share(own.root);
        for (_, descriptor) in own.descriptors.all() {
            self.system.descriptions.share(descriptor.description);
        }
        let is_sibling = beginning.has(clone::PARENT);
        let mut child = Process {
            parent: if is_sibling { own.parent } else { own.id },
            made_by: if is_sibling { own.made_by } else { own.thread().id },
            group: own.group,
            session: own.session,
            terminal: own.terminal,
            end_signal: if is_sibling { own.end_signal } else { (beginning.flags & 0xff) as u32 },
            programs: 0,
            personality: own.personality,
            directory: own.directory,
            root: own.root,
            mask: own.mask,
            limits: own.limits,
            is_dumpable: own.is_dumpable,
            signals: own.signals.inherited(),
            program: own.program.clone(),
            layout: own.layout.clone(),
            started: self.system.tree.now,
            round: self.others.round(),
            score_adjustment: own.score_adjustment,
            least_adjustment: own.least_adjustment,
            ..Process::new(thread, space, descriptors)
        };
        if child.limits.of(resource::CPU).soft != UNLIMITED {
            self.system.look_soon(&mut child);
        }
        self.others.add(Box::new(child));
        Ok(())
    }

    /// Returns the memory for a child: the own, or a copy.
    fn space_for_child(&mut self, is_shared: bool) -> Result<SpaceId> {
        let own = self.process.space;
        if is_shared {
            self.system.spaces.share(own);
            return Ok(own);
        }
        let used = self.system.spaces.get(own);
        let (heap, heap_end, barriers) = (used.heap, used.heap_end, used.barriers);
        let mut copy = Used::new(used.space.fork(&mut self.system.memory)?, heap);
        // A child, who may become another user, must not change the registers of its parent's threads.
        for buffer in self.process.threads.iter().filter_map(|thread| thread.buffer) {
            copy.space.part_from(&mut self.system.memory, buffer);
        }
        (copy.heap_end, copy.barriers) = (heap_end, barriers);
        Ok(self.system.spaces.add(copy))
    }

    /// Gives the process the memory of a new program, and lets go of what it has had. Its other threads end.
    pub(crate) fn replace_space(&mut self, used: Used<M>) {
        self.system.end_other_threads(self.process, self.others);
        self.system.leave_memory(self.process, 0);
        self.system.end_timers(self.process);
        let new = self.system.spaces.add(used);
        let old = core::mem::replace(&mut self.process.space, new);
        self.system.release_space(old);
        self.system.settle_segments(self.process.id);
        self.process.programs += 1;
        self.system.waiters.wake(Key::Program(self.process.id));
    }
}
