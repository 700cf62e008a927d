//! Things that have descriptors, but no names: counters of events, timers, signals that are read, and sets of files
//! that are watched.

use core::time::Duration;

use slab::Slab;
use tench_linux_files::NodeId;
use tench_linux_queues::QueueId;
use tench_linux_sockets::SocketId;
use tench_linux_sockets::numbers::kind;
use tench_linux_watches::InstanceId;

use crate::epoll::Epoll;
use crate::signals::Set;

/// A number to which events are added, and which is read as a whole or one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The number.
    pub value: u64,
    /// A read takes one, and not all.
    pub counts_down: bool,
}

impl Counter {
    /// The highest value.
    pub const MAX: u64 = u64::MAX - 1;

    /// Takes the number, or one of it. Returns none if it is 0.
    pub fn take(&mut self) -> Option<u64> {
        let taken = if self.counts_down { self.value.min(1) } else { self.value };
        self.value -= taken;
        (taken > 0).then_some(taken)
    }

    /// Adds to the number. Returns false, and adds nothing, if it would be higher than it can.
    pub fn add(&mut self, number: u64) -> bool {
        let fits = number <= Counter::MAX - self.value;
        self.value += if fits { number } else { 0 };
        fits
    }
}

/// The shortest time between two times at which a timer is looked at: the process has to get on meanwhile.
pub const SHORTEST: Duration = Duration::from_millis(1);

/// A timer that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The timer belongs to the clock that counts from the beginning of 1970.
    pub is_realtime: bool,
    /// The timer is due when that clock shows a time, also if somebody sets the clock.
    pub is_by_date: bool,
    /// When it is due next: time since the machine started.
    pub next: Option<Duration>,
    /// How long after each time the next one is; zero if there is none.
    pub interval: Duration,
    /// How often it has been due since it was read.
    pub count: u64,
    /// How often it is due before the time at which it is looked at next.
    pub skipped: u64,
}

impl Timer {
    /// Returns a timer that is not set.
    pub const fn unset(is_realtime: bool) -> Timer {
        Timer { is_realtime, is_by_date: false, next: None, interval: Duration::ZERO, count: 0, skipped: 0 }
    }

    /// Counts how often the timer has been due by now, and sets when it is due next. That is [`SHORTEST`] from now at
    /// the earliest: the times before are counted then.
    pub fn pass(&mut self, now: Duration) {
        let Some(next) = self.next.filter(|next| *next <= now) else { return };
        self.count = self.count.saturating_add(core::mem::take(&mut self.skipped)).saturating_add(1);
        let interval = self.interval.as_nanos();
        if interval == 0 {
            self.next = None;
            return;
        }
        let number = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        let missed = (now - next).as_nanos() / interval;
        let least = (now + SHORTEST - next).as_nanos().div_ceil(interval).max(missed + 1);
        self.count = self.count.saturating_add(number(missed));
        self.skipped = number(least - missed - 1);
        self.next = Some(next.saturating_add(Duration::from_nanos(number(least.saturating_mul(interval)))));
    }
}

/// Something that has descriptors, but no name.
#[derive(Debug)]
pub enum Special {
    /// A counter of events.
    Counter(Counter),
    /// A timer.
    Timer(Timer),
    /// Signals that are read in place of being handled.
    Signals(Set),
    /// Files that are watched.
    Epoll(Epoll),
    /// A socket.
    Socket(Socket),
    /// A message queue.
    Queue(QueueId),
    /// Watches of files.
    Watches(InstanceId),
    /// A process.
    Process(ProcessName),
}

/// Name of a process that no other process ever gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessName {
    /// Number of the process.
    pub id: u32,
    /// How often numbers had begun anew when it was made.
    pub round: u16,
}

/// A socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Name of the socket.
    pub id: SocketId,
    /// Family of its addresses.
    pub family: u16,
    /// Type of the socket.
    pub kind: u32,
    /// The file that is its address, if it has one, with a user for the socket.
    pub node: Option<NodeId>,
}

impl Socket {
    /// Returns whether bytes are sent without bounds between messages.
    pub const fn is_stream(&self) -> bool {
        self.kind == kind::STREAM
    }
}

/// All of them, by their numbers.
#[derive(Debug, Default)]
pub struct Specials {
    pub(crate) all: Slab<Special>,
}

impl Specials {
    /// Adds one. Returns its number.
    pub fn add(&mut self, special: Special) -> u32 {
        self.all.insert(special) as u32
    }

    /// Returns one.
    ///
    /// # Panics
    /// Panics if it has ended: whoever has its number is one of its users.
    pub fn get(&mut self, number: u32) -> &mut Special {
        match self.all.get_mut(number as usize) {
            Some(special) => special,
            None => panic!("a special file ended before its user"),
        }
    }

    /// Returns what the descriptors of one are called in `/proc`, but for sockets and message queues.
    pub fn shown_name(&self, number: u32) -> Option<&'static str> {
        Some(match self.all.get(number as usize)? {
            Special::Counter(_) => "anon_inode:[eventfd]",
            Special::Timer(_) => "anon_inode:[timerfd]",
            Special::Signals(_) => "anon_inode:[signalfd]",
            Special::Epoll(_) => "anon_inode:[eventpoll]",
            Special::Watches(_) => "anon_inode:inotify",
            Special::Process(_) => "anon_inode:[pidfd]",
            Special::Socket(_) | Special::Queue(_) => return None,
        })
    }

    /// Returns the socket that one is.
    pub fn socket(&self, number: u32) -> Option<SocketId> {
        match self.all.get(number as usize) {
            Some(Special::Socket(socket)) => Some(socket.id),
            _ => None,
        }
    }

    /// Returns the message queue that one is.
    pub fn queue(&self, number: u32) -> Option<QueueId> {
        match self.all.get(number as usize) {
            Some(Special::Queue(queue)) => Some(*queue),
            _ => None,
        }
    }

    /// Returns the watches of files that one is.
    pub fn watches(&self, number: u32) -> Option<InstanceId> {
        match self.all.get(number as usize) {
            Some(Special::Watches(instance)) => Some(*instance),
            _ => None,
        }
    }

    /// Returns whether one is a socket.
    pub fn is_socket(&self, number: u32) -> bool {
        self.socket(number).is_some()
    }

    /// Removes one.
    pub fn remove(&mut self, number: u32) -> Option<Special> {
        self.all.try_remove(number as usize)
    }

    /// Returns all that watch files, with their numbers.
    pub fn epolls(&mut self) -> impl Iterator<Item = (u32, &mut Epoll)> {
        self.all.iter_mut().filter_map(|(number, special)| match special {
            Special::Epoll(epoll) => Some((number as u32, epoll)),
            _ => None,
        })
    }

    /// Returns all timers, with their numbers.
    pub fn timers(&mut self) -> impl Iterator<Item = (u32, &mut Timer)> {
        self.all.iter_mut().filter_map(|(number, special)| match special {
            Special::Timer(timer) => Some((number as u32, timer)),
            _ => None,
        })
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}
