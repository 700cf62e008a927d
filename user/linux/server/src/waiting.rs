//! Waits of threads.
//!
//! A call that has to wait is made again when what it waits for may have happened. A thread that waits has its
//! [`Waiting`], in which a call keeps what it must know then.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};
use core::time::Duration;

use tench_linux_files::NodeId;
use tench_linux_queues::QueueId;
use tench_linux_sockets::{Event as SocketEvent, SocketId};
use tench_linux_watches::InstanceId;

use crate::descriptors::DescriptionId;
use crate::running::RunningClock;
use crate::terminals::TerminalId;

/// Something for which threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A pipe has bytes, or nobody writes any more.
    Readable(NodeId),
    /// A pipe has room, or nobody reads any more.
    Writable(NodeId),
    /// A pipe is opened.
    Opened(NodeId),
    /// A terminal has input, or is used by another group.
    Terminal(TerminalId),
    /// A terminal's output goes on.
    TerminalOutput(TerminalId),
    /// The master of a pseudo-terminal has something to read, or nobody has the slave open any more.
    Master(u32),
    /// The master of a pseudo-terminal can be written again.
    MasterRoom(u32),
    /// A child of a process has ended, stopped or gone on.
    Children(u32),
    /// A process runs another program, or has ended.
    Program(u32),
    /// A signal comes for a process.
    Signal(u32),
    /// Something that an `epoll` watches may have an event.
    Watched(u32),
    /// A timer with a descriptor is due.
    Timer(u32),
    /// Something has happened to the lock of a file for which a thread waits.
    Lock(u32),
    /// Something has happened to a socket.
    Socket(SocketId, SocketEvent),
    /// A message queue has a message.
    Message(QueueId),
    /// A message queue has room.
    QueueRoom(QueueId),
    /// An operation of System V that was kept for a thread is over.
    Ipc(u32),
    /// Something has happened to a file that is watched.
    Watch(InstanceId),
    /// A context of asynchronous I/O with this name, in any address space, has a result or was removed.
    Operations(u64),
    /// The log has a new line.
    Log,
    /// The finding of the errand with this number is there.
    Errand(u64),
}

/// How a signal ends a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interruption {
    /// With `EINTR`, unless the handler wants interrupted calls to be made again.
    #[default]
    Restartable,
    /// With `EINTR`.
    Final,
    /// Not at all, unless the process ends.
    Never,
}

/// A call that waits.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Number of the call.
    pub number: u64,
    /// Arguments of the call.
    pub arguments: [u64; 6],
    /// Events that may end the wait.
    pub keys: Vec<Key>,
    /// When the wait ends at the latest: time since the machine started.
    pub deadline: Option<Duration>,
    /// The wait ends when the clock with the date shows a time, also if somebody sets that clock.
    pub is_by_date: bool,
    /// The wait ends when a clock that counts how long something runs shows a time.
    pub until_run: Option<(RunningClock, Duration)>,
    /// How a signal ends it.
    pub interruption: Interruption,
    /// How much of what was asked for has been done.
    pub done: u64,
    /// How many of several messages have been sent or received.
    pub messages: u64,
    /// Where to write how much time was left if a signal ends the wait; 0 for nowhere.
    pub time_left: u64,
    /// An open file that is not yet anybody's.
    pub opening: Option<(DescriptionId, u32)>,
}

impl Waiting {
    /// Returns whether the call waits for an errand.
    pub fn is_for_errand(&self) -> bool {
        matches!(self.keys[..], [Key::Errand(_)])
    }
}

/// Why something happens by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A thread's call waits no longer.
    Wait,
    /// A process has asked for a signal.
    Signal,
    /// A timer with a descriptor is due.
    Timer,
    /// A timer of a process is due that sends a signal.
    SignalTimer,
    /// A process may have run as long as a timer or a limit says.
    Look,
}

/// A thread or an entry that learns that something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Waiter {
    /// A thread, whose wait ends.
    Thread(u32),
    /// An entry of an `epoll`, which goes on watching.
    Entry(EntryId),
    /// An open file that sends its owner signals, and goes on.
    File(DescriptionId),
}

/// No thread has this number.
pub const NO_THREAD: u32 = 0;
/// Among those whose calls are to be made again, this stands for all files that have a signal to send, and for
/// terminals that have hung up, so that nobody has to ask whether there are any.
const FILES: u32 = NO_THREAD;

/// Name of an entry of an `epoll`: the number of the `epoll`, and the entry's in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    /// Number of the `epoll`.
    pub epoll: u32,
    /// Number of the entry.
    pub entry: u32,
}

/// Entries of `epoll`s to which something has happened, in order.
#[derive(Debug, Default)]
pub struct Touched {
    order: BTreeMap<u32, VecDeque<u32>>,
    all: BTreeSet<EntryId>,
}

impl Touched {
    /// Adds an entry, unless it is there.
    pub fn add(&mut self, id: EntryId) {
        if self.all.insert(id) {
            self.order.entry(id.epoll).or_default().push_back(id.entry);
        }
    }

    /// Takes the first entry of an `epoll`.
    pub fn take(&mut self, epoll: u32) -> Option<EntryId> {
        let entry = self.order.get_mut(&epoll)?.pop_front()?;
        let id = EntryId { epoll, entry };
        self.all.remove(&id);
        Some(id)
    }

    /// Returns all entries of an `epoll`, in order.
    pub fn of(&self, epoll: u32) -> impl Iterator<Item = u32> {
        self.order.get(&epoll).into_iter().flatten().copied()
    }

    /// Removes an entry, if it is there.
    pub fn remove(&mut self, id: EntryId) {
        if self.all.remove(&id)
            && let Some(order) = self.order.get_mut(&id.epoll)
        {
            order.retain(|entry| *entry != id.entry);
        }
    }

    /// Forgets an `epoll`, which has no entries any more.
    pub fn forget(&mut self, epoll: u32) {
        self.order.remove(&epoll);
    }
}

/// Threads that wait, what for, and whose wait is over.
#[derive(Debug, Default)]
pub struct Waiters {
    by_key: BTreeSet<(Key, Waiter)>,
    by_time: BTreeSet<(Duration, Alarm, u32)>,
    /// Threads whose calls are to be made again, in order.
    ready: VecDeque<u32>,
    /// Entries of `epoll`s to which something has happened.
    pub touched: Touched,
    /// Set if all files are among those that are ready.
    files_are_ready: bool,
    /// Open files that have a signal to send, with the event.
    signalling: BTreeSet<(DescriptionId, Key)>,
    /// Number of events that entries and open files watch.
    watching: usize,
}

impl Waiters {
    /// Adds a thread for everything that it waits for.
    pub fn add(&mut self, thread: u32, waiting: &Waiting) {
        self.by_key.extend(waiting.keys.iter().map(|key| (*key, Waiter::Thread(thread))));
        self.by_time.extend(waiting.deadline.map(|deadline| (deadline, Alarm::Wait, thread)));
    }

    /// Removes a thread from everything that it waits for.
    pub fn remove(&mut self, thread: u32, waiting: &Waiting) {
        for key in &waiting.keys {
            self.by_key.remove(&(*key, Waiter::Thread(thread)));
        }
        if let Some(deadline) = waiting.deadline {
            self.by_time.remove(&(deadline, Alarm::Wait, thread));
        }
    }

    /// Lets an entry of an `epoll` watch events, or not any more.
    pub fn watch(&mut self, entry: EntryId, keys: &[Key], watches: bool) {
        self.set_watching(Waiter::Entry(entry), keys, watches);
    }

    /// Lets an open file watch events of which it tells its owner, or not any more.
    pub fn watch_file(&mut self, file: DescriptionId, keys: &[Key], watches: bool) {
        self.set_watching(Waiter::File(file), keys, watches);
    }

    fn set_watching(&mut self, waiter: Waiter, keys: &[Key], watches: bool) {
        for key in keys {
            let place = (*key, waiter);
            if watches {
                self.watching += usize::from(self.by_key.insert(place));
            } else {
                self.watching -= usize::from(self.by_key.remove(&place));
            }
        }
    }

    /// Returns how many events entries and open files watch.
    pub const fn watching(&self) -> usize {
        self.watching
    }

    /// Takes an open file that has a signal to send, with the event.
    pub fn take_signalling(&mut self) -> Option<(DescriptionId, Key)> {
        self.signalling.pop_first()
    }

    /// Forgets that an open file has a signal to send.
    pub fn forget_file(&mut self, file: DescriptionId) {
        self.signalling.retain(|(other, _)| *other != file);
    }

    /// Sets when a process is to get a signal, in place of when that was so far.
    pub fn set_signal(&mut self, process: u32, old: Option<Duration>, new: Option<Duration>) {
        self.set_alarm(Alarm::Signal, process, old, new);
    }

    /// Sets when an alarm is due, in place of when that was so far.
    pub fn set_alarm(&mut self, alarm: Alarm, whose: u32, old: Option<Duration>, new: Option<Duration>) {
        if let Some(old) = old {
            self.by_time.remove(&(old, alarm, whose));
        }
        self.by_time.extend(new.map(|new| (new, alarm, whose)));
    }

    /// Returns whether a thread waits for something.
    pub fn has_thread(&self, key: Key) -> bool {
        let first = self.by_key.range((key, Waiter::Thread(0))..).next();
        first.is_some_and(|(found, waiter)| *found == key && matches!(waiter, Waiter::Thread(_)))
    }

    /// Ends the wait of all who wait for something.
    pub fn wake(&mut self, key: Key) {
        while let Some((found, waiter)) = self.by_key.range((key, Waiter::Thread(0))..).next().copied()
            && found == key
        {
            match waiter {
                Waiter::Thread(thread) => {
                    self.by_key.remove(&(found, waiter));
                    self.ready.push_back(thread);
                }
                Waiter::Entry(_) | Waiter::File(_) => return self.touch_entries(key),
            }
        }
    }

    /// Tells the entries of `epoll`s and the open files that watch something. Each `epoll` is told once, however many
    /// ways lead to it through others.
    fn touch_entries(&mut self, key: Key) {
        let (mut keys, mut told) = (VecDeque::from([key]), BTreeSet::new());
        while let Some(key) = keys.pop_front() {
            let mut last = Waiter::Thread(FILES);
            while let Some((found, waiter)) = self.by_key.range((Excluded((key, last)), Unbounded)).next().copied()
                && found == key
            {
                last = waiter;
                match waiter {
                    Waiter::Thread(thread) => {
                        self.by_key.remove(&(key, waiter));
                        self.ready.push_back(thread);
                    }
                    Waiter::Entry(id) => {
                        self.touched.add(id);
                        if told.insert(id.epoll) {
                            keys.push_back(Key::Watched(id.epoll));
                        }
                    }
                    Waiter::File(file) => {
                        self.signalling.insert((file, key));
                        self.make_files_ready();
                    }
                }
            }
        }
    }

    /// Returns when the next wait ends.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.by_time.first().map(|(time, ..)| *time)
    }

    /// Takes an alarm that is due by now, with whose it is: a thread, a process or a timer.
    pub fn take_due(&mut self, now: Duration) -> Option<(Alarm, u32)> {
        let (time, alarm, whose) = *self.by_time.first()?;
        if time > now {
            return None;
        }
        self.by_time.remove(&(time, alarm, whose));
        Some((alarm, whose))
    }

    /// Lets open files be attended to at the end of the call.
    pub fn make_files_ready(&mut self) {
        if !core::mem::replace(&mut self.files_are_ready, true) {
            self.ready.push_back(FILES);
        }
    }

    /// Adds a thread whose call is to be made again.
    pub fn make_ready(&mut self, thread: u32) {
        self.ready.push_back(thread);
    }

    /// Returns whether a call is to be made again.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes a thread whose call is to be made again.
    pub fn take_ready(&mut self) -> Option<u32> {
        let first = self.ready.pop_front()?;
        self.files_are_ready &= first != FILES;
        Some(first)
    }

    /// Returns whether nobody waits for anything, for tests. Those whose calls were to be made again may have ended.
    pub fn is_over(&self) -> bool {
        self.by_key.is_empty() && self.by_time.is_empty() && self.touched.all.is_empty() && self.signalling.is_empty()
    }
}
