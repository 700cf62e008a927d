//! Calls about message queues.

use core::time::Duration;

use tench_linux_calls::numbers::{capability, open, permission};
use tench_linux_calls::records::{mq_attr, sigevent, u32_at, u64_at};
use tench_linux_files::{Attributes, Credentials, Errno, MAX_PATH, Time};
use tench_linux_queues::{Limits, Message, Owned, QueueId, Wanted};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::DescriptionId;
use crate::signals::{Cause, Info, SIGNALS};
use crate::specials::Special;
use crate::waiting::{Interruption, Key};

/// Bytes from which on it is looked again after a message whether memory is short.
const LARGE_MESSAGE: usize = 4096;

/// Ways to tell that a message has come.
mod notify {
    pub const SIGNAL: u32 = 0;
    pub const NONE: u32 = 1;
    /// By a message to a socket from which the C library reads.
    pub const THREAD: u32 = 2;
}

/// A signal of a process that wants to learn of a message; none if it only wants to be the one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Number of the signal.
    signal: u32,
    /// The value that comes with it.
    value: u64,
}

/// An open queue.
struct Open {
    queue: QueueId,
    description: DescriptionId,
    waits: bool,
}

/// Checks that a queue may be opened with an access.
fn permit(who: &Credentials<'_>, owned: Owned, access: u32) -> Result<()> {
    let never = Time::default();
    let Owned { permissions, user, group } = owned;
    let attributes = Attributes { permissions, user, group, accessed: never, modified: never, changed: never };
    let wanted = match access {
        open::RDONLY => permission::READ,
        open::WRONLY => permission::WRITE,
        _ => permission::READ | permission::WRITE,
    };
    if who.may(&attributes, false, wanted) { Ok(()) } else { Err(Errno::EACCES) }
}

impl<M: Machine> Caller<'_, M> {
    /// Opens a message queue, or makes it.
    pub fn mq_open(&mut self, name: u64, flags: u64, mode: u64, attributes: u64) -> Result {
        let flags = flags as u32;
        let creates = flags & open::CREAT != 0;
        let limits = match attributes {
            address if address != 0 && creates => {
                let record: [u8; mq_attr::SIZE] = self.read_record(address)?;
                Limits { messages: u64_at(&record, mq_attr::MESSAGES), bytes: u64_at(&record, mq_attr::BYTES) }
            }
            _ => Limits::USUAL,
        };
        let name = self.read_path(name)?;
        let permissions = mode as u32 & 0o7777 & !self.process.mask;
        let identity = &self.process.thread().identity;
        let who = identity.for_files();
        let (user, group) = (who.user, who.group);
        let new = creates.then_some((limits, Owned { permissions, user, group }));
        let is_privileged = identity.has(capability::SYS_RESOURCE);
        let wanted = Wanted { make: new, is_new: flags & open::EXCL != 0, is_privileged };
        let is_refused = |owned: Owned| match flags & open::ACCESS {
            open::ACCESS => Err(Errno::EINVAL),
            access => permit(&who, owned, access),
        };
        let queue = self.system.queues.open(&name, wanted, is_refused)?;
        if flags & open::ACCESS == open::ACCESS {
            self.system.queues.close(queue);
            return Err(Errno::EINVAL);
        }
        // Linux closes it when the process runs another program, whatever it wants.
        self.add_special(Special::Queue(queue), flags & (open::ACCESS | open::NONBLOCK), true)
    }

    /// Takes a message queue's name away.
    pub fn mq_unlink(&mut self, name: u64) -> Result {
        let name = self.read_string(name, MAX_PATH + 1)?.ok_or(Errno::ENAMETOOLONG)?;
        let who = self.process.thread().identity.for_files();
        // Names are in a directory that belongs to the super-user, from which each removes only its own.
        let may = |owned: Owned| who.user == 0 || who.user == owned.user || who.has(capability::FOWNER);
        self.system.queues.unlink(&name, |owned| if may(owned) { Ok(()) } else { Err(Errno::EPERM) }).map(|()| 0)
    }

    /// Returns an open message queue, and with what access it was opened.
    fn open_queue(&mut self, descriptor: u64) -> Result<(Open, bool, bool)> {
        let description = self.descriptor(descriptor)?;
        let number = self.special(descriptor).map_err(|_| Errno::EBADF)?;
        let &mut Special::Queue(queue) = self.system.specials.get(number) else { return Err(Errno::EBADF) };
        let open_file = self.system.descriptions.get(description);
        let waits = open_file.flags & open::NONBLOCK == 0;
        Ok((Open { queue, description, waits }, open_file.reads(), open_file.writes()))
    }

    /// Sends a message; waits, at the longest until a time of day, if there is no room.
    pub fn mq_timedsend(&mut self, descriptor: u64, from: u64, length: u64, priority: u64, time: u64) -> Result {
        let deadline = self.read_time_of_day(time)?;
        let priority = priority as u32;
        if priority > tench_linux_queues::MAX_PRIORITY {
            return Err(Errno::EINVAL);
        }
        let (open, _, writes) = self.open_queue(descriptor)?;
        if !writes {
            return Err(Errno::EBADF);
        }
        self.system.queues.check_message(open.queue, length, priority)?;
        if length as usize > LARGE_MESSAGE {
            self.system.memory.check_room(length as usize)?;
            self.system.calls_left = 0;
        }
        let bytes = self.read(from, length as usize)?.into_boxed_slice();
        let key = Key::Message(open.queue);
        let is_awaited = self.system.waiters.has_thread(key);
        match self.system.queues.send(open.queue, Message { priority, bytes }, is_awaited) {
            Ok(notice) => {
                self.system.waiters.wake(key);
                notice.map_or(Ok(0), |(process, notice)| self.tell(process, notice))
            }
            Err(Errno::EAGAIN) => Err(self.wait_for_queue(&open, Key::QueueRoom(open.queue), deadline)),
            Err(error) => Err(error),
        }
    }

    /// Receives a message and its priority; waits, at the longest until a time of day, if there is none.
    pub fn mq_timedreceive(&mut self, descriptor: u64, into: u64, length: u64, priority: u64, time: u64) -> Result {
        let deadline = self.read_time_of_day(time)?;
        let (open, reads, _) = self.open_queue(descriptor)?;
        if !reads {
            return Err(Errno::EBADF);
        }
        if length < self.system.queues.limits(open.queue).bytes {
            return Err(Errno::EMSGSIZE);
        }
        match self.system.queues.receive(open.queue) {
            Ok(message) => {
                self.system.waiters.wake(Key::QueueRoom(open.queue));
                self.write_if_wanted(priority, &message.priority.to_le_bytes())?;
                self.write(into, &message.bytes)?;
                Ok(message.bytes.len() as u64)
            }
            Err(Errno::EAGAIN) => Err(self.wait_for_queue(&open, Key::Message(open.queue), deadline)),
            Err(error) => Err(error),
        }
    }

    /// Lets the call wait for a queue, unless it must not.
    fn wait_for_queue(&mut self, open: &Open, key: Key, deadline: Option<Duration>) -> Errno {
        if !open.waits {
            Errno::EAGAIN
        } else if self.has_passed(deadline) {
            Errno::ETIMEDOUT
        } else {
            let result = self.wait(&[key], deadline, Interruption::Restartable);
            self.wait_by_date(true);
            result
        }
    }

    /// Reads until which time of day a call waits; for ever without one.
    fn read_time_of_day(&mut self, time: u64) -> Result<Option<Duration>> {
        if time == 0 {
            return Ok(None);
        }
        let time = self.read_time(time)?;
        if self.waiting().is_some() {
            return Ok(self.deadline());
        }
        let left = time.saturating_sub(self.system.date());
        Ok(Some(self.system.memory.hardware.monotonic().saturating_add(left)))
    }

    /// Lets the process learn of the next message that comes to an empty queue, or not any more.
    pub fn mq_notify(&mut self, descriptor: u64, event: u64) -> Result {
        let mut wanted = None;
        if event != 0 {
            let record: [u8; sigevent::USED] = self.read_record(event)?;
            let (signal, value) = (u32_at(&record, sigevent::SIGNAL), u64_at(&record, sigevent::VALUE));
            wanted = Some(match u32_at(&record, sigevent::NOTIFY) {
                notify::NONE => None,
                notify::SIGNAL if signal <= SIGNALS as u32 => Some(Notice { signal, value }),
                // There are no sockets of that family.
                notify::THREAD => return Err(Errno::ENOSYS),
                _ => return Err(Errno::EINVAL),
            });
        }
        let (open, ..) = self.open_queue(descriptor)?;
        match wanted {
            Some(notice) => self.system.queues.notify(open.queue, self.process.id, notice)?,
            None => self.system.queues.forget(open.queue, self.process.id),
        }
        Ok(0)
    }

    /// Tells a process of the message that this one has sent.
    fn tell(&mut self, process: u32, notice: Option<Notice>) -> Result {
        const BY_QUEUE: i32 = -3;
        if let Some(Notice { signal: signal @ 1.., value }) = notice {
            let cause = Cause::Process { id: self.process.id, user: self.identity().user.real, value };
            let info = Info { signal, code: BY_QUEUE, cause };
            if process == self.process.id {
                self.system.send(self.process, info);
            } else if let Some(process) = self.others.get(process) {
                self.system.send(process, info);
            }
        }
        Ok(0)
    }

    /// Reads what is known of a message queue, and sets whether the open one waits.
    pub fn mq_getsetattr(&mut self, descriptor: u64, new: u64, old: u64) -> Result {
        let mut flags = None;
        if new != 0 {
            let record: [u8; mq_attr::SIZE] = self.read_record(new)?;
            let wanted = u64_at(&record, mq_attr::FLAGS);
            if wanted & !u64::from(open::NONBLOCK) != 0 {
                return Err(Errno::EINVAL);
            }
            flags = Some(wanted as u32);
        }
        let (open, ..) = self.open_queue(descriptor)?;
        let limits = self.system.queues.limits(open.queue);
        let count = self.system.queues.count(open.queue);
        let mut record = [0; mq_attr::SIZE];
        let mut put = |offset: usize, word: u64| record[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        put(mq_attr::FLAGS, if open.waits { 0 } else { open::NONBLOCK.into() });
        put(mq_attr::MESSAGES, limits.messages);
        put(mq_attr::BYTES, limits.bytes);
        put(mq_attr::COUNT, count);
        if let Some(flags) = flags {
            let open_file = self.system.descriptions.get(open.description);
            open_file.flags = open_file.flags & !open::NONBLOCK | flags;
        }
        self.write_if_wanted(old, &record).map(|()| 0)
    }
}
