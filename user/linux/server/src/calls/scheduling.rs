//! How threads are scheduled: in turns, which are shorter for those that are nice. What else they want is recorded.

use tench_linux_calls::numbers::{capability, schedule};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Outcome, Result};
use crate::thread::{Scheduling, Thread, turn};

/// How long a turn is, as programs see it, in nanoseconds.
const TURN: u64 = 4_000_000;
/// The length of a turn with `SCHED_RR`, as programs see it.
const LONG_TURN: u64 = 100_000_000;
/// Size of a set of processors in bytes.
const SET: u64 = 8;

impl<M: Machine> Caller<'_, M> {
    /// Lets all others run first.
    pub(crate) fn sched_yield(&self) -> Outcome {
        if self.others.count_threads() > 1 { Outcome::Yield } else { Outcome::Return(0) }
    }

    /// Refuses the number of a thread that does not exist. 0 is the thread itself.
    fn check_thread(&self, thread: u64) -> Result<()> {
        let thread = thread as u32;
        let is_there = thread == 0 || self.process.index_of(thread).is_ok() || self.others.owner(thread).is_some();
        if is_there { Ok(()) } else { Err(Errno::ESRCH) }
    }

    /// Returns a thread; 0 is the present one.
    pub(crate) fn scheduled(&mut self, thread: u64) -> Result<&mut Thread<M>> {
        let thread = thread as u32;
        if thread.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        if thread == 0 {
            return Ok(self.process.thread_mut());
        }
        if let Ok(index) = self.process.index_of(thread) {
            return Ok(&mut self.process.threads[index]);
        }
        let owner = self.others.owner(thread).ok_or(Errno::ESRCH)?;
        let process = self.others.get(owner).ok_or(Errno::ESRCH)?;
        let index = process.index_of(thread).map_err(|_| Errno::ESRCH)?;
        Ok(&mut process.threads[index])
    }

    /// Records how a thread wants to be scheduled.
    fn schedule(&mut self, thread: u64, policy: Option<u32>, parameter: u64) -> Result {
        let priority = u32::from_le_bytes(self.read_record(parameter)?);
        let own = self.identity().clone();
        let other = self.scheduled(thread)?;
        let (is_owner, place) = (own.is_owner_of(&other.identity), &mut other.scheduling);
        let (policy, is_reset) = match policy {
            Some(policy) => (policy & !schedule::RESET_ON_FORK, policy & schedule::RESET_ON_FORK != 0),
            None => (place.policy, place.is_reset),
        };
        let is_allowed = match policy {
            schedule::OTHER | schedule::BATCH | schedule::IDLE => priority == 0,
            schedule::FIFO | schedule::RR => (1..=schedule::MAX).contains(&priority),
            _ => false,
        };
        if !is_allowed {
            return Err(Errno::EINVAL);
        }
        let new = Scheduling { policy, priority, is_reset };
        if !(own.has(capability::SYS_NICE) || is_owner && place.may_become(new)) {
            return Err(Errno::EPERM);
        }
        *place = new;
        Ok(0)
    }

    /// Sets how a thread wants to be scheduled.
    pub fn sched_setscheduler(&mut self, thread: u64, policy: u64, parameter: u64) -> Result {
        if parameter == 0 || (policy as u32).cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        self.schedule(thread, Some(policy as u32), parameter)
    }

    /// Sets a thread's priority.
    pub fn sched_setparam(&mut self, thread: u64, parameter: u64) -> Result {
        if parameter == 0 {
            return Err(Errno::EINVAL);
        }
        self.schedule(thread, None, parameter)
    }

    /// Returns how a thread wants to be scheduled.
    pub fn sched_getscheduler(&mut self, thread: u64) -> Result {
        let Scheduling { policy, is_reset, .. } = self.scheduled(thread)?.scheduling;
        Ok((policy | if is_reset { schedule::RESET_ON_FORK } else { 0 }).into())
    }

    /// Reads a thread's priority.
    pub fn sched_getparam(&mut self, thread: u64, into: u64) -> Result {
        if into == 0 {
            return Err(Errno::EINVAL);
        }
        let priority = self.scheduled(thread)?.scheduling.priority;
        self.write(into, &priority.to_le_bytes()).map(|()| 0)
    }

    /// Returns the lowest or the highest priority of a way to schedule threads.
    pub fn priority_limit(policy: u64, limit: u32) -> Result {
        match policy as u32 {
            schedule::OTHER | schedule::BATCH | schedule::IDLE => Ok(0),
            schedule::FIFO | schedule::RR => Ok(limit.into()),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Does something with each thread that two numbers name: one, those of a group, or those of a user.
    pub(super) fn for_each_thread(
        &mut self,
        which: u64,
        who: u64,
        mut work: impl FnMut(&mut M, &mut Thread<M>) -> Result<()>,
    ) -> Result<()> {
        const THREAD: u32 = 0;
        const GROUP: u32 = 1;
        const USER: u32 = 2;
        let (which, who) = (which as u32, who as u32);
        let own = (self.process.thread().id, self.process.group);
        let (thread, group) = if who == 0 { own } else { (who, who) };
        let user = if who == 0 { self.identity().user.real } else { who };
        if which > USER {
            return Err(Errno::EINVAL);
        }
        let hardware = &mut self.system.memory.hardware;
        let mut result = Err(Errno::ESRCH);
        for process in self.others.iter_mut().chain([&mut *self.process]) {
            let is_group = which == GROUP && process.group == group;
            let is_meant = |one: &Thread<M>| {
                is_group || which == THREAD && one.id == thread || which == USER && one.identity.user.real == user
            };
            for thread in process.threads.iter_mut().filter(|one| is_meant(one)) {
                result = match work(hardware, thread) {
                    Ok(()) => result.or(if matches!(result, Err(Errno::ESRCH)) { Ok(()) } else { result }),
                    refused => refused,
                };
            }
        }
        result
    }

    /// Sets how much threads let others run in their place.
    pub fn setpriority(&mut self, which: u64, who: u64, nice: u64) -> Result {
        let nice = (nice as u32).cast_signed().clamp(-20, 19);
        let own = self.identity().clone();
        let is_privileged = own.has(capability::SYS_NICE);
        self.for_each_thread(which, who, |hardware, thread| {
            if !is_privileged && !own.is_owner_of(&thread.identity) {
                return Err(Errno::EPERM);
            }
            if !is_privileged && nice < thread.nice {
                return Err(Errno::EACCES);
            }
            thread.nice = nice;
            hardware.set_turn(&mut thread.machine, turn(nice));
            Ok(())
        })?;
        Ok(0)
    }

    /// Returns how little the least nice of threads lets others run in its place: from 1 to 40.
    pub fn getpriority(&mut self, which: u64, who: u64) -> Result {
        let mut least = i32::MAX;
        self.for_each_thread(which, who, |_, thread| {
            least = least.min(thread.nice);
            Ok(())
        })?;
        Ok((20 - least).cast_unsigned().into())
    }

    /// Reads how long a thread's turn is.
    pub fn sched_rr_get_interval(&mut self, thread: u64, into: u64) -> Result {
        let turn = match self.scheduled(thread)?.scheduling.policy {
            schedule::FIFO => 0,
            schedule::RR => LONG_TURN,
            _ => TURN,
        };
        self.write(into, &[0, turn].map(u64::to_le_bytes).concat()).map(|()| 0)
    }

    /// Reads on which processors a thread may run: the only one.
    pub fn sched_getaffinity(&mut self, thread: u64, length: u64, into: u64) -> Result {
        if length < SET || !length.is_multiple_of(SET) {
            return Err(Errno::EINVAL);
        }
        self.check_thread(thread)?;
        self.write(into, &1u64.to_le_bytes())?;
        Ok(SET)
    }

    /// Sets on which processors a thread may run, among them the only one.
    pub fn sched_setaffinity(&mut self, thread: u64, length: u64, set: u64) -> Result {
        let mut bytes = [0; SET as usize];
        let length = length.min(SET) as usize;
        bytes[..length].copy_from_slice(&self.read(set, length)?);
        self.check_thread(thread)?;
        let own = self.identity().clone();
        if !own.is_owner_of(&self.scheduled(thread)?.identity) && !own.has(capability::SYS_NICE) {
            return Err(Errno::EPERM);
        }
        if u64::from_le_bytes(bytes) & 1 != 0 { Ok(0) } else { Err(Errno::EINVAL) }
    }

    /// Tells on which processor the thread runs.
    pub fn getcpu(&mut self, processor: u64, node: u64) -> Result {
        self.write_if_wanted(processor, &[0; 4])?;
        self.write_if_wanted(node, &[0; 4]).map(|()| 0)
    }
}
