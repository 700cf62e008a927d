//! The end of processes, and of the instance.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_linux_memory::ObjectId;

use super::{FIRST, Instance};
use crate::descriptors::Descriptors;
use crate::process::{Process, Status};
use crate::processes::Processes;
use crate::signals::{Cause, Info, Signals, action_flag, number};
use crate::thread::{State, Thread};
use crate::waiting::{Alarm, Key};
use crate::{Machine, System};

/// Codes of `SIGCHLD`: what has happened to a child.
pub mod child_code {
    /// The child has ended itself.
    pub const EXITED: i32 = 1;
    /// A signal has ended it.
    pub const KILLED: i32 = 2;
    /// The child, or a traced thread, has stopped for its tracer.
    pub const TRAPPED: i32 = 4;
    /// A signal has stopped it.
    pub const STOPPED: i32 = 5;
    /// The child goes on.
    pub const CONTINUED: i32 = 6;
}

/// Returns what `SIGCHLD` and `waitid` say about the end of a process: the code, and the exit code or signal.
pub(crate) fn end_code(status: Status) -> (i32, i32) {
    match status {
        Status::Exited(code) => (child_code::EXITED, code.into()),
        Status::Killed(signal) => (child_code::KILLED, signal.cast_signed()),
    }
}

impl<M: Machine> System<M> {
    /// Ends what a thread's call has begun, and its wait.
    fn end_wait(&mut self, thread: &mut Thread<M>) {
        if let Some(waiting) = thread.waiting.take() {
            self.waiters.remove(thread.id, &waiting);
            self.cancel(thread.id, &waiting);
        }
    }

    /// Lets others know that a thread, with an index, will not use its process's memory any more: marks the locks that
    /// it has not released, and clears the word that says so.
    pub(crate) fn leave_memory(&mut self, process: &mut Process<M>, index: usize) {
        let is_seen = process.threads.len() > 1 || self.spaces.get(process.space).is_shared();
        let space = process.space;
        let thread = &mut process.threads[index];
        let list = core::mem::take(&mut thread.robust_list);
        self.release_locks(space, thread.id, list);
        let word = core::mem::take(&mut thread.clear_at_end);
        if word != 0 && is_seen {
            self.write(space, word, &[0; 4]);
            self.wake_at(space, word, 1);
        }
    }

    /// Ends all threads of a process but the present one, which becomes the first.
    pub(crate) fn end_other_threads(&mut self, process: &mut Process<M>, others: &mut Processes<M>) {
        self.tell_children_of_others(process, others);
        if self.tracing.is_used {
            self.keep_traced_of_present(process, others);
        }
        let present = process.present;
        for index in (0..process.threads.len()).filter(|index| *index != present) {
            self.note_end_of_thread(process, index, Status::Exited(0));
            self.end_wait(&mut process.threads[index]);
            self.leave_memory(process, index);
        }
        if process.present > 0 {
            // The thread of the machine whose calls come with the process's number.
            let (first, rest) = process.threads.split_at_mut(1);
            let present = &mut rest[process.present - 1];
            core::mem::swap(&mut first[0].machine, &mut present.machine);
            core::mem::swap(&mut first[0].buffer, &mut present.buffer);
            core::mem::swap(&mut first[0].id, &mut present.id);
            process.threads.swap(0, process.present);
            process.present = 0;
        }
        for thread in process.threads.split_off(1) {
            others.remove_thread(thread.id);
            self.end_machine(process, thread);
        }
    }

    /// Ends a thread of a process. How long it has run stays known.
    fn end_machine(&mut self, process: &mut Process<M>, mut thread: Box<Thread<M>>) {
        process.used = process.used.saturating_add(self.memory.hardware.used(&thread.machine));
        self.set_buffer(&mut thread, None);
        self.memory.hardware.end_thread(thread.machine);
    }

    /// Sets the object with a thread's page for upcalls, and releases the previous one. The caller has already counted
    /// the thread as a user of the new object.
    pub(super) fn set_buffer(&mut self, thread: &mut Thread<M>, buffer: Option<ObjectId>) {
        if let Some(before) = core::mem::replace(&mut thread.buffer, buffer) {
            self.memory.objects.release(&mut self.memory.pool, before);
        }
    }
}

impl<M: Machine> Instance<M> {
    /// Ends the present thread of a process, whose end is that of its last thread.
    pub(super) fn end_thread(&mut self, mut process: Box<Process<M>>, status: Status) {
        let index = process.present;
        if process.living() == 1 {
            return self.end(process, status);
        }
        self.system.leave_memory(&mut process, index);
        self.end_tracing(process.thread().id, false);
        let ended = process.thread().id;
        if index == 0 {
            self.stop_thread(&mut process);
            process.thread_mut().state = State::Ended;
        } else {
            self.tell_end_of_thread(&process, index, status);
            let thread = process.threads.remove(index);
            process.present = 0;
            self.processes.remove_thread(thread.id);
            self.system.end_machine(&mut process, thread);
        }
        let successor = process.living_or(ended);
        self.system.tell_children(&process, ended, successor, &mut self.processes);
        self.processes.put(process);
    }

    /// Ends a process. The end of the first one is that of all.
    pub(super) fn end(&mut self, mut process: Box<Process<M>>, status: Status) {
        let tracer = self.tell_end_of_threads(&process, status);
        self.release(&mut process);
        self.end_tracing(process.id, true);
        if process.id == FIRST {
            self.processes.remove(FIRST);
            self.status = Some(status);
            return self.end_all();
        }
        if process.id == process.session {
            self.caller(&mut process).end_session();
        }
        let groups = self.adopt_children(&process);
        let (parent, end_signal) = (process.parent, process.end_signal);
        let (code, value) = end_code(status);
        let cause = Cause::Child { id: process.id, user: process.identity().user.real, status: value };
        let info = Info { signal: end_signal, code, cause };
        process.ended = Some(status);
        if let Some(tracer) = tracer {
            let (id, user) = (process.id, process.identity().user.real);
            process.owed_to = Some(tracer);
            self.processes.put(process);
            self.tell_tracer(tracer, id, user, code, value);
            return self.let_orphans_go_on(&groups);
        }
        let is_wanted = end_signal != number::CHLD || self.wants_children(parent);
        if is_wanted {
            self.processes.put(process);
        } else {
            self.processes.remove(process.id);
        }
        if end_signal != 0
            && let Some(parent) = self.processes.get(parent)
        {
            self.system.send(parent, info);
        }
        self.system.waiters.wake(Key::Children(parent));
        self.let_orphans_go_on(&groups);
    }

    /// Returns whether a process wants to learn of its children's ends.
    pub(super) fn wants_children(&self, id: u32) -> bool {
        self.processes.find(id).is_some_and(|parent| {
            let action = parent.signals.action(number::CHLD);
            !action.ignores() && action.flags() & action_flag::NOCLDWAIT == 0
        })
    }

    /// Gives back all that a process has.
    fn release(&mut self, process: &mut Process<M>) {
        let system = &mut self.system;
        system.waiters.set_signal(process.id, process.timer.take().map(|timer| timer.deadline), None);
        system.waiters.set_alarm(Alarm::Look, process.id, process.running.look.take(), None);
        system.end_timers(process);
        process.last_name = *process.name_of(process.id);
        process.last_identity = process.identity().clone();
        for index in 0..process.threads.len() {
            system.end_wait(&mut process.threads[index]);
            system.leave_memory(process, index);
        }
        for thread in core::mem::take(&mut process.threads) {
            self.processes.remove_thread(thread.id);
            system.end_machine(process, thread);
        }
        let mut next = 0;
        while let Some((number, descriptor)) = process.descriptors.next(next) {
            next = number + 1;
            process.descriptors.set(number, None);
            system.close_descriptor(process.id, descriptor.description);
        }
        system.release_node(process.directory);
        system.release_node(process.root);
        system.release_space(process.space);
        system.settle_segments(process.id);
        system.undo_semaphores(process);
        system.waiters.wake(Key::Program(process.id));
        // What is left of it until its parent has learnt of its end is small.
        process.descriptors = Descriptors::default();
        process.signals = Signals::none();
        process.program = Vec::new();
    }

    /// Makes the first process the parent of another one's children. Returns the groups for which the process was, or
    /// had, somebody outside of the group who lets its members go on.
    fn adopt_children(&mut self, parent: &Process<M>) -> Vec<u32> {
        let guards = |one: &Process<M>, other: &Process<M>| one.group != other.group && one.session == other.session;
        let guardian = self.processes.find(parent.parent).filter(|guardian| guards(guardian, parent));
        let mut groups: Vec<u32> = guardian.map(|_| parent.group).into_iter().collect();
        let mut ended = Vec::new();
        for child in self.processes.iter_mut().filter(|child| child.parent == parent.id) {
            self.system.tell_child(child, parent.id, parent.identity());
            child.parent = FIRST;
            child.made_by = FIRST;
            child.is_orphan = true;
            child.end_signal = number::CHLD;
            if child.has_ended() {
                ended.push(child.id);
            } else if guards(parent, child) {
                groups.push(child.group);
            }
        }
        if !ended.is_empty() {
            if !self.wants_children(FIRST) {
                ended.iter().for_each(|child| self.processes.remove(*child));
            }
            self.system.waiters.wake(Key::Children(FIRST));
            if let Some(first) = self.processes.get(FIRST) {
                self.system.send(first, Info::from_system(number::CHLD));
            }
        }
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Lets the stopped members of groups go on if nobody else would: they get `SIGHUP` and `SIGCONT`.
    fn let_orphans_go_on(&mut self, groups: &[u32]) {
        for group in groups {
            let members = || self.processes.iter().filter(|member| member.group == *group && !member.has_ended());
            let is_stopped = members().any(|member| member.is_stopped);
            if !is_stopped || members().next().is_some_and(|member| self.processes.have_guardian(member)) {
                continue;
            }
            for member in self.processes.iter_mut().filter(|member| member.group == *group) {
                self.system.send(member, Info::from_system(number::HUP));
                self.system.send(member, Info::from_system(number::CONT));
            }
        }
    }

    /// Ends all processes that are left.
    fn end_all(&mut self) {
        let ids: Vec<u32> = self.processes.iter().map(|process| process.id).collect();
        for id in ids {
            if let Some(mut process) = self.processes.take(id) {
                if !process.has_ended() {
                    self.release(&mut process);
                }
                self.processes.remove(id);
            }
        }
        self.system.end_ipc();
        self.system.close_outside();
    }
}
