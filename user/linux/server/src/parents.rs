//! The ends of parents, of which their children learn if they want to: each thread may name a signal for that. A
//! process's parent is, in this, the thread that has made it, and then another one of the same process.

use tench_linux_files::Errno;

use crate::caller::{Caller, Result};
use crate::identity::Identity;
use crate::process::Process;
use crate::processes::Processes;
use crate::signals::{Info, SIGNALS};
use crate::thread::State;
use crate::{Machine, System};

impl<M: Machine> Caller<'_, M> {
    /// Sets the signal that the process gets when its parent ends, for the thread.
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
    /// Returns a thread if it has not ended, and otherwise the first that has not.
    pub(crate) fn living_or(&self, thread: u32) -> u32 {
        let lives = |state: State| state != State::Ended;
        if self.thread_of(thread).is_some_and(|one| lives(one.state)) {
            return thread;
        }
        self.threads.iter().find(|one| lives(one.state)).map_or(0, |one| one.id)
    }
}

impl<M: Machine> System<M> {
    /// Sends a process the signals that its threads have named for the end of its parent.
    pub(crate) fn tell_child(&mut self, child: &mut Process<M>, parent: u32, identity: &Identity) {
        for index in 0..child.threads.len() {
            let signal = child.threads[index].end_of_parent;
            if signal != 0 && identity.may_signal(child.identity()) {
                self.send(child, Info::from_process(signal, parent, identity.user.real));
            }
        }
    }

    /// Tells the children that a thread of a process has made of its end. `heir`, a thread of the same process, is in
    /// its place from now on.
    pub(crate) fn tell_children(&mut self, process: &Process<M>, ended: u32, heir: u32, others: &mut Processes<M>) {
        if !others.watch_parents {
            return;
        }
        let is_own = |child: &&mut Process<M>| child.parent == process.id && child.made_by == ended;
        for child in others.iter_mut().filter(is_own) {
            child.made_by = heir;
            self.tell_child(child, process.id, process.identity());
        }
    }

    /// Tells the children of all threads of a process but the present one, which becomes the first, that these end.
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
