//! The end of processes, and of the instance.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_linux_memory::Space;

use super::{FIRST, Instance};
use crate::descriptors::Descriptors;
use crate::process::{Process, Processes, State, Status};
use crate::signals::{Cause, Info, Signals, action_flag, number};
use crate::waiting::Key;
use crate::{Machine, System};

/// Codes of `SIGCHLD`: what has happened to a child.
pub mod child_code {
    /// The child has ended itself.
    pub const EXITED: i32 = 1;
    /// A signal has ended it.
    pub const KILLED: i32 = 2;
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

/// Gives memory back to the process that has lent it, with the end of the heap in it; without one, ends it.
pub(crate) fn give_back<M: Machine>(
    system: &mut System<M>,
    others: &mut Processes<M>,
    lender: Option<u32>,
    space: Space<M>,
    heap_end: u64,
) {
    match lender.and_then(|lender| others.get(lender)) {
        Some(lender) => (lender.space, lender.heap_end) = (Some(space), heap_end),
        None => space.end(&mut system.memory),
    }
}

impl<M: Machine> Instance<M> {
    /// Ends a process. The end of the first one is that of all.
    pub(super) fn end(&mut self, mut process: Box<Process<M>>, status: Status) {
        self.release(&mut process);
        if process.id == FIRST {
            self.processes.remove(FIRST);
            self.status = Some(status);
            return self.end_all();
        }
        let groups = self.adopt_children(&process);
        let (parent, end_signal) = (process.parent, process.end_signal);
        let (code, value) = end_code(status);
        let info = Info { signal: end_signal, code, cause: Cause::Child { id: process.id, status: value } };
        process.state = State::Ended(status);
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
    fn wants_children(&self, id: u32) -> bool {
        self.processes.find(id).is_some_and(|parent| {
            let action = parent.signals.action(number::CHLD);
            !action.ignores() && action.flags() & action_flag::NOCLDWAIT == 0
        })
    }

    /// Gives back all that a process has.
    fn release(&mut self, process: &mut Process<M>) {
        let system = &mut self.system;
        if let Some(waiting) = process.waiting.take() {
            system.waiters.remove(process.id, &waiting);
            system.cancel(process.id, &waiting);
        }
        system.waiters.set_signal(process.id, process.timer.take().map(|timer| timer.deadline), None);
        if let Some(thread) = process.thread.take() {
            system.memory.hardware.end_thread(thread);
        }
        let descriptors: Vec<_> = process.descriptors.all().collect();
        for (number, descriptor) in descriptors {
            process.descriptors.set(number, None);
            system.close(descriptor.description);
        }
        system.tree.release(&mut system.memory, process.directory);
        match process.space.take() {
            Some(mut space) => {
                if process.lender.is_some() && process.clear_at_end != 0 {
                    space.write(&mut system.memory, process.clear_at_end, &[0; 4]);
                }
                give_back(system, &mut self.processes, process.lender.take(), space, process.heap_end);
            }
            // Whoever has it gives it back to who has lent it to this process, or keeps it.
            None => {
                let lender = process.lender.take();
                for other in self.processes.iter_mut().filter(|other| other.lender == Some(process.id)) {
                    other.lender = lender;
                }
            }
        }
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
            child.parent = FIRST;
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
            if !is_stopped || members().next().is_some_and(|member| self.has_guardian(member)) {
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
        self.system.close_outside();
    }
}
