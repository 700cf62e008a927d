//! The System V IPC of an instance: shared memory, semaphores and message queues.

use tench_linux_memory::{Memory, ObjectId};
use tench_linux_sysv::{By, Change, Queues, Segments, Semaphores, User};

use crate::waiting::Key;
use crate::{Machine, Process, System};

/// All System V objects of an instance.
#[derive(Debug, Default)]
pub struct Ipc {
    /// Shared memory.
    pub segments: Segments<ObjectId>,
    /// Semaphores.
    pub semaphores: Semaphores,
    /// Message queues.
    pub queues: Queues,
}

impl Ipc {
    /// Forgets what was kept for a thread that waits no longer.
    pub(crate) fn end_wait(&mut self, thread: u32) {
        self.semaphores.end_wait(thread);
        self.queues.end_wait(thread);
    }
}

impl<M: Machine> System<M> {
    /// Returns a caller for what the system itself does to a process's objects: nothing is refused.
    pub(crate) fn by(&self, process: u32, thread: u32) -> By<'static> {
        By { user: User::SUPER_USER, process, thread, now: self.date().as_secs() }
    }

    /// Records that a process has attached or detached segments, by whatever call. Destroys segments that were removed
    /// and that nobody has attached any more.
    #[inline(always)]
    pub(crate) fn settle_segments(&mut self, process: u32) {
        if self.memory.objects.has_news() {
            self.settle_all_segments(process);
        }
    }

    #[cold]
    fn settle_all_segments(&mut self, process: u32) {
        let by = self.by(process, process);
        let Memory { objects, pool, .. } = &mut self.memory;
        objects.begin_news();
        let ended = self.ipc.segments.settle(&by, |content| {
            let (news, users) = objects.take_news(*content)?;
            let (was_attached, was_detached) = (news.was_attached, news.was_detached);
            Some(Change { attachments: users.into(), was_attached, was_detached })
        });
        for content in ended {
            objects.release(pool, content);
        }
    }

    /// Wakes the threads whose operations are over.
    pub(crate) fn wake_for_ipc(&mut self) {
        while let Some(thread) = self.ipc.semaphores.take_woken().or_else(|| self.ipc.queues.take_woken()) {
            self.waiters.wake(Key::Ipc(thread));
        }
    }

    /// Applies the `SEM_UNDO` values of a process that ends.
    pub(crate) fn undo_semaphores(&mut self, process: &Process<M>) {
        let by = self.by(process.id, process.id);
        self.ipc.semaphores.end_process(&by);
        self.wake_for_ipc();
    }

    /// Destroys all System V objects, which no process uses any more.
    pub(crate) fn end_ipc(&mut self) {
        let mut ipc = core::mem::take(&mut self.ipc);
        while let Some(content) = ipc.segments.end_one() {
            self.memory.objects.release(&mut self.memory.pool, content);
        }
    }
}
