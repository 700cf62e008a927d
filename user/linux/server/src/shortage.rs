//! Shortage of memory. Calls that would make something fail with `ENOMEM` then; if that is not enough, or if a process
//! touches memory that it has and no page is left, the process with the most pages ends. Before one ends because of
//! pages, copies of what is in mounts are forgotten.
//!
//! The personality's own memory has a [reserve](tench_linux_memory::RESERVE), from which calls take what is small.
//! Every so often it is checked that the reserve is there; as long as it is not, each call is checked. Whatever is not
//! small asks for room first.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use tench_linux_calls::Sysno;
use tench_linux_files::Errno;
use tench_linux_memory::{RESERVE, prepare};

use crate::caller::{Caller, Result};
use crate::instance::Instance;
use crate::process::Process;
use crate::processes::Processes;
use crate::signals::{Info, number};
use crate::{Machine, System};

/// Number of calls between two checks.
const CALLS: u32 = 32;
/// Number of entries for which tables have room at each check: more than calls add until the next one.
const ENTRIES: usize = 8 * CALLS as usize;
/// Bytes of the reserve that are left at least. With less, a process ends.
const LEAST: usize = RESERVE / 4;
/// Number of watched events for which room is kept at a time.
const STEP: usize = 1024;
/// Bytes that telling one who watches something takes at most.
const KEPT_FOR_EACH: usize = 192;
/// The most events that come with a file.
const EVENTS: usize = 4;
/// The score of a process that must not end.
const SPARED: i16 = -1000;

/// Returns whether a call makes something that stays, or needs much memory while it is served.
const fn makes_something(call: Sysno) -> bool {
    matches!(
        call,
        Sysno::accept
            | Sysno::accept4
            | Sysno::bind
            | Sysno::brk
            | Sysno::clone
            | Sysno::connect
            | Sysno::dup
            | Sysno::dup3
            | Sysno::epoll_create1
            | Sysno::epoll_ctl
            | Sysno::eventfd2
            | Sysno::execve
            | Sysno::execveat
            | Sysno::fallocate
            | Sysno::fcntl
            | Sysno::flock
            | Sysno::getdents64
            | Sysno::inotify_add_watch
            | Sysno::inotify_init1
            | Sysno::linkat
            | Sysno::listen
            | Sysno::memfd_create
            | Sysno::mkdirat
            | Sysno::mknodat
            | Sysno::mmap
            | Sysno::mprotect
            | Sysno::mq_open
            | Sysno::mq_timedsend
            | Sysno::mremap
            | Sysno::msgget
            | Sysno::msgsnd
            | Sysno::openat
            | Sysno::pipe2
            | Sysno::renameat
            | Sysno::renameat2
            | Sysno::semget
            | Sysno::semop
            | Sysno::semtimedop
            | Sysno::sendmmsg
            | Sysno::sendmsg
            | Sysno::sendto
            | Sysno::shmat
            | Sysno::shmget
            | Sysno::signalfd4
            | Sysno::socket
            | Sysno::socketpair
            | Sysno::splice
            | Sysno::symlinkat
            | Sysno::tee
            | Sysno::timer_create
            | Sysno::timerfd_create
            | Sysno::vmsplice
    )
}

impl<M: Machine> System<M> {
    /// Makes room for what the next calls add. Fails with `ENOMEM` if there is no memory for it.
    fn renew(&mut self) -> Result<()> {
        let System { memory, tree, descriptions, specials, spaces, sockets, .. } = self;
        memory.prepare_objects(ENTRIES)?;
        tree.prepare(memory, ENTRIES)?;
        prepare(&mut descriptions.all, ENTRIES, |bytes| memory.check_room(bytes))?;
        prepare(&mut specials.all, ENTRIES, |bytes| memory.check_room(bytes))?;
        prepare(&mut spaces.all, ENTRIES, |bytes| memory.check_room(bytes))?;
        sockets.prepare(ENTRIES, |bytes| memory.check_room(bytes))?;
        memory.check_room(0)?;
        let kept = self.room_for_watchers(0);
        if kept < self.kept {
            self.keep_room(kept);
        }
        self.calls_left = CALLS;
        Ok(())
    }

    /// Returns how many bytes it takes at most to tell all who watch something, and so many more, at once. The reserve
    /// is enough for a few.
    fn room_for_watchers(&self, more: usize) -> usize {
        let count = self.waiters.watching() + self.notices.count() + more;
        if count <= STEP / 2 { 0 } else { count.next_multiple_of(STEP) * KEPT_FOR_EACH }
    }

    fn keep_room(&mut self, bytes: usize) {
        self.memory.hardware.keep_room(bytes);
        self.kept = bytes;
    }

    /// Prepares for a further one who watches a file: what all are told at once then is not small.
    ///
    /// # Errors
    /// `ENOMEM`
    pub(crate) fn prepare_to_watch(&mut self) -> Result<()> {
        let kept = self.room_for_watchers(EVENTS);
        if kept > self.kept {
            self.memory.check_room(kept - self.kept)?;
            self.keep_room(kept);
        }
        Ok(())
    }

    /// Looks again whether the reserve is there. Returns whether it is.
    pub(crate) fn check_reserve(&mut self) -> bool {
        self.is_short = self.renew().is_err();
        !self.is_short
    }

    /// Returns how many pages' worth a process is, if memory is short and one has to end; nothing if it may not end.
    fn worth(&self, process: &Process<M>) -> Option<i64> {
        if process.has_ended() || process.score_adjustment <= SPARED {
            return None;
        }
        let pages = self.spaces.find(process.space).space.resident() as i64;
        Some(pages + i64::from(process.score_adjustment) * self.memory.pool.total() as i64 / 1000)
    }

    /// Returns the process that ends if memory is short: the one that is worth the most.
    fn victim(&self, own: &Process<M>, others: &Processes<M>) -> Option<u32> {
        let all = others.iter().chain([own]);
        all.filter_map(|process| Some((self.worth(process)?, process.id))).max().map(|(_, id)| id)
    }

    /// Logs that a process is killed, and tells whoever runs the instance unless the instance is quiet.
    fn report_victim(&mut self, process: &Process<M>) {
        let name = process.name_of(process.id);
        let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default());
        let what = format!("memory is short: {name} (pid {}) is killed", process.id);
        self.note(&what);
        if !self.is_quiet {
            self.memory.hardware.report(&format!("linux: {what}"));
        }
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Checks that there is memory for what a call may make.
    ///
    /// # Errors
    /// `ENOMEM`
    #[cold]
    pub(crate) fn admit(&mut self, call: Sysno) -> Result<()> {
        if self.keep_reserve() {
            return Ok(());
        }
        // A call that has waited goes on: it knows itself what it has begun.
        let has_begun = self.waiting().is_some() || self.system.mounts.has_acted(self.process.thread().id);
        if makes_something(call) && !has_begun { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Counts a fault of which its thread learns by a signal as if it were a call: the signal takes memory, too, and
    /// thousands of threads may have one each.
    pub(crate) fn account_for_fault(&mut self) {
        match self.system.calls_left.checked_sub(1) {
            Some(left) => self.system.calls_left = left,
            None => _ = self.keep_reserve(),
        }
    }

    /// Looks again whether the reserve is there, and ends a process if too little of it is. Returns whether it is
    /// there.
    fn keep_reserve(&mut self) -> bool {
        let is_there = self.system.check_reserve();
        if !is_there && !self.system.memory.hardware.can_allocate(LEAST) {
            self.end_victim();
        }
        is_there
    }

    /// Ends the process that is worth the most when the call is over, unless one does already.
    fn end_victim(&mut self) {
        let Caller { system, process, others } = self;
        let Some(id) = system.victim(process, others) else { return };
        let victim = if process.id == id { Some(&mut **process) } else { others.get(id) };
        if let Some(victim) = victim.filter(|victim| !victim.is_killed()) {
            system.report_victim(victim);
            system.send(victim, Info::from_system(number::KILL));
        }
    }
}

impl<M: Machine> Instance<M> {
    /// Makes pages free, since there is none for a process whose fault is being served: forgets copies of files in
    /// mounts, or ends the process that is worth the most. Returns whether there may be pages now: not if it was this
    /// process.
    pub(crate) fn end_for(&mut self, mut process: Box<Process<M>>) -> bool {
        if self.system.tree.forget_contents(&mut self.system.memory) {
            self.processes.put(process);
            return true;
        }
        let own = process.id;
        match self.system.victim(&process, &self.processes) {
            Some(id) if id != own => {
                self.processes.put(process);
                if let Some(victim) = self.processes.find(id) {
                    self.system.report_victim(victim);
                }
                self.kill(id);
                true
            }
            _ => {
                self.system.report_victim(&process);
                self.system.send(&mut process, Info::from_system(number::KILL));
                self.processes.put(process);
                false
            }
        }
    }
}
