//! Signals for the end of a parent (`PR_SET_PDEATHSIG`). As on Linux, the parent is here the thread that made the
//! process; when that thread ends, another one of its process takes its place.

use tench_linux_files::Errno;

use crate::caller::{Caller, Result};
use crate::identity::Identity;
use crate::process::Process;
use crate::processes::Processes;
use crate::signals::{Info, SIGNALS};
use crate::thread::State;
use crate::{Machine, System};

impl<M: Machine> Caller<'_, M> {
    /// Sets the thread's signal for the end of the process's parent.
    pub fn set_end_of_parent(&mut self, signal: u64) -> Result {
        if signal > SIGNALS as u64 {
            return Err(Errno::EINVAL);
        }
        self.process.thread_mut().end_of_parent = signal as u32;
        if signal != 0 {
            self.others.watch_parents = true;
            let parent = self.others.get(self.process.parent);
            self.process.made_by = parent.map_or(0, |parent| parent.living_or(self.process.made_by));
        }
        Ok(0)
    }
}

impl<M: Machine> Process<M> {
    /// Returns a thread if it lives, and otherwise the first that does.
    pub(crate) fn living_or(&self, thread: u32) -> u32 {
        let lives = |state: State| state != State::Ended;
        if self.thread_of(thread).is_some_and(|one| lives(one.state)) {
            return thread;
        }
        self.threads.iter().find(|one| lives(one.state)).map_or(0, |one| one.id)
    }
}

impl<M: Machine> System<M> {
    /// Sends a process its threads' signals for the end of its parent.
    pub(crate) fn tell_child(&mut self, child: &mut Process<M>, parent: u32, identity: &Identity) {
        for index in 0..child.threads.len() {
            let signal = child.threads[index].end_of_parent;
            if signal != 0 && identity.may_signal(child.identity()) {
                self.send(child, Info::from_process(signal, parent, identity.user.real));
            }
        }
    }

    /// Sends the children of a thread of a process the signals for that thread's end. `successor`, a thread of the same
    /// process, becomes their parent.
    pub(crate) fn tell_children(
        &mut self,
        process: &Process<M>,
        ended: u32,
        successor: u32,
        others: &mut Processes<M>,
    ) {
        if !others.watch_parents {
            return;
        }
        let is_own = |child: &&mut Process<M>| child.parent == process.id && child.made_by == ended;
        for child in others.iter_mut().filter(is_own) {
            child.made_by = successor;
            self.tell_child(child, process.id, process.identity());
        }
    }

    /// Sends the signals for the end of all threads of a process but the present one, which becomes the first.
    pub(crate) fn tell_children_of_others(&mut self, process: &Process<M>, others: &mut Processes<M>) {
        if !others.watch_parents {
            return;
        }
        for child in others.iter_mut().filter(|child| child.parent == process.id) {
            if core::mem::replace(&mut child.made_by, process.id) != process.thread().id {
                self.tell_child(child, process.id, process.identity());
            }
        }
    }
}
