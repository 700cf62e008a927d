//! Pipes.

use tench_linux_calls::numbers::open;
use tench_linux_files::{Errno, NodeId, Pipe};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::{DescriptionId, Descriptor};
use crate::signals::{Info, number};
use crate::waiting::{Interruption, Key};

impl<M: Machine> Caller<'_, M> {
    /// Makes a pipe with two descriptors.
    pub fn pipe2(&mut self, into: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !(open::CLOEXEC | open::NONBLOCK | open::DIRECT) != 0 {
            return Err(Errno::EINVAL);
        }
        let kept = flags & (open::NONBLOCK | open::DIRECT);
        self.system.update_time();
        let node = self.system.tree.make_pipe();
        self.own(node);
        let reader = self.system.open(node, open::RDONLY | kept);
        self.system.tree.share(node);
        let writer = self.system.open(node, open::WRONLY | kept);
        let closes_on_exec = flags & open::CLOEXEC != 0;
        let result = self.add_ends([reader, writer], closes_on_exec, into);
        if result.is_err() {
            self.system.close(reader);
            self.system.close(writer);
        }
        result
    }

    /// Gives the process descriptors for the ends of a pipe, and writes their numbers.
    fn add_ends(&mut self, ends: [DescriptionId; 2], closes_on_exec: bool, into: u64) -> Result {
        let [reader, writer] = ends.map(|description| Descriptor { description, closes_on_exec });
        let first = self.use_free_number(reader, 0)?;
        let second = self.use_free_number(writer, 0);
        let written = second.and_then(|second| self.write(into, &[first, second].map(u32::to_le_bytes).concat()));
        if written.is_err() {
            for number in [Some(first), second.ok()].into_iter().flatten() {
                self.process.descriptors.set(number, None);
            }
        }
        written.map(|()| 0)
    }

    /// Returns a pipe.
    pub(super) fn pipe(&mut self, node: NodeId) -> Result<&mut Pipe> {
        self.system.tree.pipe_mut(node).ok_or(Errno::EINVAL)
    }

    /// Asks for input if a pipe is where it comes from outside.
    pub(crate) fn await_outside(&mut self, node: NodeId) {
        if self.system.stream_of(node) == Some(0) {
            self.system.memory.hardware.await_input();
        }
    }

    /// Reads from a pipe what is there; waits if nothing is and somebody could still write.
    pub(crate) fn read_pipe(&mut self, node: NodeId, flags: u32, into: &mut [u8]) -> Result<usize> {
        let pipe = self.pipe(node)?;
        if into.is_empty() {
            return Ok(0);
        }
        if pipe.is_empty() && pipe.has_writers() {
            self.await_outside(node);
            if flags & open::NONBLOCK != 0 {
                return Err(Errno::EAGAIN);
            }
            return Err(self.wait(&[Key::Readable(node)], None, Interruption::Restartable));
        }
        let count = pipe.read(into);
        if count > 0 {
            self.system.waiters.wake(Key::Writable(node));
        }
        Ok(count)
    }

    /// Writes to a pipe as much as there is room for; waits if there is none.
    pub(crate) fn write_pipe(&mut self, node: NodeId, flags: u32, from: &[u8]) -> Result<usize> {
        let pipe = self.pipe(node)?;
        if from.is_empty() {
            return Ok(0);
        }
        if !pipe.has_readers() {
            return Err(self.broken_pipe());
        }
        if let Some(stream) = self.system.stream_of(node) {
            let written = self.system.memory.hardware.write_outside(stream, from);
            return written.map_err(|error| if error == Errno::EPIPE { self.broken_pipe() } else { error });
        }
        let pipe = self.pipe(node)?;
        if !pipe.has_room(from.len()) {
            if flags & open::NONBLOCK != 0 {
                return Err(Errno::EAGAIN);
            }
            return Err(self.wait(&[Key::Writable(node)], None, Interruption::Restartable));
        }
        if let Some(bytes) = pipe.growth(from.len()) {
            self.system.memory.check_room(bytes)?;
        }
        let count = self.pipe(node)?.write(from);
        self.system.waiters.wake(Key::Readable(node));
        Ok(count)
    }

    /// Sends the process the signal for writing what nobody reads. Returns the call's error.
    pub(crate) fn broken_pipe(&mut self) -> Errno {
        let (own, user) = (self.process.id, self.identity().user.real);
        self.system.send(self.process, Info::from_process(number::PIPE, own, user));
        Errno::EPIPE
    }

    /// Opens a pipe with a name. Who may only read waits for somebody who writes, and the other way round.
    pub(crate) fn open_pipe(&mut self, node: NodeId, flags: u32) -> Result<DescriptionId> {
        // One without a name was opened for both when it was made, and is found by a link in `/proc`.
        let has_name = self.system.tree.node(node).links() > 0;
        let pipe = self.pipe(node)?;
        let access = flags & open::ACCESS;
        let blocks = flags & open::NONBLOCK == 0;
        let (has_other, openings) = match access {
            _ if !has_name => (true, 0),
            open::RDONLY => (pipe.has_writers(), pipe.openings().1),
            open::WRONLY => (pipe.has_readers(), pipe.openings().0),
            _ => (true, 0),
        };
        if !has_other && !blocks && access == open::WRONLY {
            self.system.tree.release(&mut self.system.memory, node);
            return Err(Errno::ENXIO);
        }
        let description = self.system.open(node, flags);
        if !has_other && !blocks {
            self.system.descriptions.get(description).without_writers = Some(openings);
        }
        if has_other || !blocks {
            return Ok(description);
        }
        let error = self.wait(&[Key::Opened(node)], None, Interruption::Restartable);
        if let Some(waiting) = self.waiting_mut() {
            waiting.opening = Some((description, openings));
        }
        Err(error)
    }

    /// Goes on opening a pipe: the other side may have been opened meanwhile. Returns none if the call has not begun
    /// to.
    pub(crate) fn opening(&mut self) -> Option<Result<DescriptionId>> {
        let (description, before) = self.waiting()?.opening?;
        let open_file = self.system.descriptions.get(description);
        let (node, reads) = (open_file.node, open_file.reads());
        let openings = self.system.tree.pipe_mut(node).map_or((0, 0), |pipe| pipe.openings());
        let now = if reads { openings.1 } else { openings.0 };
        if now == before {
            return Some(Err(self.wait(&[Key::Opened(node)], None, Interruption::Restartable)));
        }
        if let Some(waiting) = self.waiting_mut() {
            waiting.opening = None;
        }
        Some(Ok(description))
    }
}
