//! Files about shared memory, semaphores and message queues of System V.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench_linux_files::Errno;
use tench_linux_memory::{ObjectId, PAGE_SIZE};
use tench_linux_sysv::{Queues, Segments, Semaphores};

use crate::{Machine, System};

/// Bytes that a line takes at most, while its text grows and is copied.
const KEPT_FOR_LINE: usize = 1024;

/// Such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpcFile {
    Segments,
    Semaphores,
    Queues,
    /// The most bytes of a segment, or pages of all.
    SegmentLimit,
    MostSegments,
    SemaphoreLimits,
    LongestMessage,
    QueueLimit,
    MostQueues,
}

impl<M: Machine> System<M> {
    /// Returns the contents of a file.
    ///
    /// # Errors
    /// `ENOMEM`
    pub(super) fn ipc_file(&mut self, file: IpcFile) -> Result<Vec<u8>, Errno> {
        let lines = match file {
            IpcFile::Segments => self.ipc.segments.count(),
            IpcFile::Semaphores => self.ipc.semaphores.count(),
            IpcFile::Queues => self.ipc.queues.count(),
            _ => 0,
        };
        self.memory.check_room(lines * KEPT_FOR_LINE)?;
        let line = |number: u64| format!("{number}\n");
        let text: String = match file {
            IpcFile::Segments => {
                let pages = |object: &ObjectId| self.memory.objects.get(*object).pages().count() as u64;
                self.ipc.segments.list(|object| pages(object) * PAGE_SIZE)
            }
            IpcFile::Semaphores => self.ipc.semaphores.list(),
            IpcFile::Queues => self.ipc.queues.list(),
            IpcFile::SegmentLimit => line(Segments::<ObjectId>::MAX_BYTES),
            IpcFile::MostSegments => line(Segments::<ObjectId>::MAX_COUNT as u64),
            IpcFile::SemaphoreLimits => {
                let limits = [Semaphores::MAX_COUNT, Semaphores::MAX_ALL, Semaphores::MAX_OPERATIONS as u64];
                let [count, all, operations] = limits;
                format!("{count}\t{all}\t{operations}\t{}\n", Semaphores::MAX_SETS)
            }
            IpcFile::LongestMessage => line(Queues::MAX_MESSAGE),
            IpcFile::QueueLimit => line(Queues::USUAL_LIMIT),
            IpcFile::MostQueues => line(Queues::MAX_COUNT as u64),
        };
        Ok(text.into_bytes())
    }
}
