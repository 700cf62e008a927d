//! Locks of files, as descriptors are closed and waits end.

use tench_linux_files::{Kind, NodeId};
use tench_linux_locks::Locks;

use crate::descriptors::DescriptionId;
use crate::waiting::Key;
use crate::{Machine, System};

/// The locks of all files.
pub type FileLocks = Locks<NodeId, DescriptionId>;

impl<M: Machine> System<M> {
    /// Closes a process's descriptor of an open file. The process loses its locks of ranges of the file, even if it has
    /// other descriptors of that.
    pub(crate) fn close_descriptor(&mut self, process: u32, description: DescriptionId) {
        if !self.locks.is_empty() {
            let open_file = self.descriptions.find(description);
            if !open_file.is_path() {
                self.locks.close_process(open_file.node, process);
                self.wake_lockers();
            }
        }
        if !self.notices.is_empty() {
            let node = self.descriptions.find(description).node;
            self.notices.end(node, description, Some(process));
        }
        // It learns of no messages any more that come to a queue, either.
        if let Kind::Special(number) = self.tree.node(self.descriptions.find(description).node).kind
            && let Some(queue) = self.specials.queue(number)
        {
            self.queues.forget(queue, process);
        }
        self.close(description);
    }

    /// Drops the locks of an open file that nobody has any more.
    pub(crate) fn drop_locks(&mut self, node: NodeId, description: DescriptionId) {
        self.locks.close_description(node, description);
        self.wake_lockers();
    }

    /// Wakes those who may get the locks for which they wait.
    pub(crate) fn wake_lockers(&mut self) {
        for thread in self.locks.take_woken() {
            self.waiters.wake(Key::Lock(thread));
        }
    }
}
