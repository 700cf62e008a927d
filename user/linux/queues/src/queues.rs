//! All queues, and their names.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tench_linux_calls::Errno;

use crate::queue::{Limits, MAX_PRIORITY, Message, Messages};

/// The longest name in bytes.
const MAX_NAME: usize = 255;

/// Name of a queue that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueId(u32);

/// Conditions for a queue that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Makes the queue, if there is none, with these limits and for this owner.
    pub make: Option<(Limits, Owned)>,
    /// Refuses a queue that is there already.
    pub is_new: bool,
    /// Limits may be higher than the usual ones, and there may be more queues than usual.
    pub is_privileged: bool,
}

/// The owner and the permissions of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Permissions.
    pub permissions: u32,
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

#[derive(Debug)]
struct Queue<N> {
    limits: Limits,
    owned: Owned,
    messages: Messages,
    has_name: bool,
    users: u32,
    /// The process that is to learn of a message, and how.
    notice: Option<(u32, N)>,
}

/// All queues.
#[derive(Debug)]
pub struct Queues<N> {
    all: Vec<Option<Queue<N>>>,
    names: BTreeMap<Box<[u8]>, QueueId>,
    /// Bytes that all of them are charged.
    charged: u64,
}

impl<N> Default for Queues<N> {
    fn default() -> Queues<N> {
        Queues { all: Vec::new(), names: BTreeMap::new(), charged: 0 }
    }
}

impl<N> Queues<N> {
    /// Bytes that all queues may have, as Linux counts them: what a user may have there.
    pub const MAX_BYTES: u64 = 819_200;
    /// The most names of queues.
    pub const MAX_NAMES: usize = 1024;
    /// The most names of queues, which only a privileged caller can exceed.
    pub const USUAL_NAMES: usize = 256;

    /// Opens a queue, or makes it, which adds a user to it. `permit` says whether one that is there may be opened.
    ///
    /// # Errors
    /// `ENOENT` if there is no such queue, `EEXIST` if there is one, `EACCES` and `ENAMETOOLONG` if none can have the
    /// name, `EINVAL` if none can have the limits, `EMFILE` if they are too high together with all others', `ENOSPC` if
    /// there are too many queues; and those of `permit`.
    pub fn open(
        &mut self,
        name: &[u8],
        wanted: Wanted,
        permit: impl FnOnce(Owned) -> Result<(), Errno>,
    ) -> Result<QueueId, Errno> {
        check_name(name)?;
        if let Some(id) = self.names.get(name).copied() {
            if wanted.is_new && wanted.make.is_some() {
                return Err(Errno::EEXIST);
            }
            permit(self.get(id).owned)?;
            self.get_mut(id).users += 1;
            return Ok(id);
        }
        let (limits, owned) = wanted.make.ok_or(Errno::ENOENT)?;
        let most = if wanted.is_privileged { Self::MAX_NAMES } else { Self::USUAL_NAMES };
        if self.names.len() >= most {
            return Err(Errno::ENOSPC);
        }
        if !wanted.is_privileged && !limits.are_usual() {
            return Err(Errno::EINVAL);
        }
        let charge = limits.charge()?;
        if self.charged + charge > Self::MAX_BYTES {
            return Err(Errno::EMFILE);
        }
        self.charged += charge;
        let messages = Messages::default();
        let new = Some(Queue { limits, owned, messages, has_name: true, users: 1, notice: None });
        let index = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
        match self.all.get_mut(index) {
            Some(place) => *place = new,
            None => self.all.push(new),
        }
        let id = QueueId(index as u32);
        self.names.insert(name.into(), id);
        Ok(id)
    }

    /// Takes a queue's name away, if `permit` says so. It ends with its last user.
    ///
    /// # Errors
    /// `ENOENT`, and those of names and of `permit`.
    pub fn unlink(&mut self, name: &[u8], permit: impl FnOnce(Owned) -> Result<(), Errno>) -> Result<(), Errno> {
        check_name(name)?;
        let id = self.names.get(name).copied().ok_or(Errno::ENOENT)?;
        permit(self.get(id).owned)?;
        self.names.remove(name);
        self.get_mut(id).has_name = false;
        self.end_if_unused(id);
        Ok(())
    }

    /// Removes a user of a queue.
    pub fn close(&mut self, id: QueueId) {
        self.get_mut(id).users -= 1;
        self.end_if_unused(id);
    }

    fn end_if_unused(&mut self, id: QueueId) {
        let queue = self.get(id);
        if !queue.has_name && queue.users == 0 {
            let charge = queue.limits.charge().unwrap_or(0);
            self.charged -= charge;
            self.all[id.0 as usize] = None;
        }
    }

    fn get(&self, id: QueueId) -> &Queue<N> {
        match self.all.get(id.0 as usize) {
            Some(Some(queue)) => queue,
            _ => panic!("a queue ended before its user"),
        }
    }

    fn get_mut(&mut self, id: QueueId) -> &mut Queue<N> {
        match self.all.get_mut(id.0 as usize) {
            Some(Some(queue)) => queue,
            _ => panic!("a queue ended before its user"),
        }
    }

    /// Returns how much a queue holds.
    ///
    /// # Panics
    /// Panics, as all that follow, if the queue has ended: whoever has its name is one of its users.
    pub fn limits(&self, id: QueueId) -> Limits {
        self.get(id).limits
    }

    /// Returns the owner and the permissions of a queue.
    pub fn owned(&self, id: QueueId) -> Owned {
        self.get(id).owned
    }

    /// Returns how many messages a queue has.
    pub fn count(&self, id: QueueId) -> u64 {
        self.get(id).messages.count()
    }

    /// Returns whether a queue has room for a message.
    pub fn has_room(&self, id: QueueId) -> bool {
        self.count(id) < self.limits(id).messages
    }

    /// Returns the error that a message of this length and priority is, whether or not there is room.
    ///
    /// # Errors
    /// `EINVAL` for the priority, `EMSGSIZE` for the length.
    pub fn check_message(&self, id: QueueId, length: u64, priority: u32) -> Result<(), Errno> {
        if priority > MAX_PRIORITY {
            return Err(Errno::EINVAL);
        }
        if length > self.limits(id).bytes { Err(Errno::EMSGSIZE) } else { Ok(()) }
    }

    /// Sends a message. If the queue was empty and nobody waits for it, returns whom to tell that, which is over then.
    ///
    /// # Errors
    /// `EAGAIN` if the queue is full, and those of [`check_message`](Self::check_message).
    pub fn send(&mut self, id: QueueId, message: Message, is_awaited: bool) -> Result<Option<(u32, N)>, Errno> {
        self.check_message(id, message.bytes.len() as u64, message.priority)?;
        if !self.has_room(id) {
            return Err(Errno::EAGAIN);
        }
        let queue = self.get_mut(id);
        queue.messages.add(message);
        let is_first = queue.messages.count() == 1;
        Ok(if is_first && !is_awaited { queue.notice.take() } else { None })
    }

    /// Receives the oldest message of the highest priority.
    ///
    /// # Errors
    /// `EAGAIN` if the queue is empty.
    pub fn receive(&mut self, id: QueueId) -> Result<Message, Errno> {
        self.get_mut(id).messages.take().ok_or(Errno::EAGAIN)
    }

    /// Lets a process learn of the next message that comes to the empty queue.
    ///
    /// # Errors
    /// `EBUSY` if a process is to learn of it already.
    pub fn notify(&mut self, id: QueueId, process: u32, how: N) -> Result<(), Errno> {
        let notice = &mut self.get_mut(id).notice;
        if notice.is_some() {
            return Err(Errno::EBUSY);
        }
        *notice = Some((process, how));
        Ok(())
    }

    /// Lets a process not learn of messages any more.
    pub fn forget(&mut self, id: QueueId, process: u32) {
        let notice = &mut self.get_mut(id).notice;
        if notice.as_ref().is_some_and(|(owner, _)| *owner == process) {
            *notice = None;
        }
    }

    /// Returns how many queues there are.
    pub fn queues(&self) -> usize {
        self.all.iter().flatten().count()
    }

    /// Checks that each queue has a name or users, no more messages than it may, and its part of the charge; and that
    /// names lead to queues which know that.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        let mut charged = 0;
        for queue in self.all.iter().flatten() {
            queue.messages.check()?;
            if queue.messages.count() > queue.limits.messages {
                return Err("a queue has more messages than it may");
            }
            if !queue.has_name && queue.users == 0 {
                return Err("a queue exists that nobody can open, and nobody has open");
            }
            charged += queue.limits.charge().map_err(|_| "a queue has limits that none can have")?;
        }
        if charged != self.charged {
            return Err("queues are charged wrongly");
        }
        let named = self.all.iter().flatten().filter(|queue| queue.has_name).count();
        if self.names.len() != named || self.names.values().any(|id| !self.get(*id).has_name) {
            return Err("names and queues do not know each other");
        }
        Ok(())
    }
}

/// Checks that a queue can have a name: a file's, without its directory.
fn check_name(name: &[u8]) -> Result<(), Errno> {
    match name {
        b"" => Err(Errno::ENOENT),
        b"." | b".." => Err(Errno::EACCES),
        _ if name.contains(&b'/') => Err(Errno::EACCES),
        _ if name.len() > MAX_NAME => Err(Errno::ENAMETOOLONG),
        _ => Ok(()),
    }
}
