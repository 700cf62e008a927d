//! Waiting for words in memory.

use core::time::Duration;

use tench_linux_calls::numbers::futex::{self, OWNER, OWNER_DIED, WAITERS};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::futexes::{Waiter, Word};
use crate::waiting::Interruption;

/// How far a bit that says that an operand is a shift lies above the operation of `FUTEX_WAKE_OP`.
const IS_SHIFT: u32 = 8;

impl<M: Machine> Caller<'_, M> {
    /// Waits for a word, or wakes who does.
    pub fn futex(&mut self, address: u64, operation: u64, value: u64, time: u64, other: u64, value_3: u64) -> Result {
        let flags = operation as u32;
        let operation = flags & !futex::FLAGS;
        let is_realtime = flags & futex::CLOCK_REALTIME != 0;
        let may_be_realtime = matches!(operation, futex::WAIT_BITSET | futex::WAIT_REQUEUE_PI | futex::LOCK_PI_2);
        if is_realtime && !may_be_realtime {
            return Err(Errno::ENOSYS);
        }
        if flags & futex::PRIVATE == 0 {
            self.check_mapped(address)?;
        }
        let (value, value_2, value_3) = (value as u32, time as u32, value_3 as u32);
        match operation {
            futex::WAIT => self.wait_for_word(address, value, u32::MAX, time, None),
            futex::WAIT_BITSET => self.wait_for_word(address, value, value_3, time, Some(is_realtime)),
            futex::WAKE => self.wake_words(address, value, u32::MAX),
            futex::WAKE_BITSET => self.wake_words(address, value, value_3),
            futex::REQUEUE => self.requeue(address, value, value_2, other, None),
            futex::CMP_REQUEUE => self.requeue(address, value, value_2, other, Some(value_3)),
            futex::WAKE_OP => self.wake_and_change(address, value, value_2, other, value_3),
            futex::LOCK_PI => self.lock(address, time, true),
            futex::LOCK_PI_2 => self.lock(address, time, is_realtime),
            futex::TRYLOCK_PI => self.try_lock(address)?.then_some(0).ok_or(Errno::EAGAIN),
            futex::UNLOCK_PI => self.unlock(address),
            _ => Err(Errno::ENOSYS),
        }
    }

    /// Returns the value of a word.
    fn load(&mut self, address: u64) -> Result<u32> {
        if !address.is_multiple_of(4) {
            return Err(Errno::EINVAL);
        }
        self.read_record(address).map(u32::from_le_bytes)
    }

    /// Returns the word at an address.
    fn word(&mut self, address: u64) -> Result<Word> {
        if !address.is_multiple_of(4) {
            return Err(Errno::EINVAL);
        }
        Ok(self.system.word(self.process.space, address))
    }

    /// Refuses a word where nothing is. What only one process uses may be anywhere, as long as nobody looks at it.
    fn check_mapped(&mut self, address: u64) -> Result<()> {
        self.word(address)?;
        self.space().0.areas().at(address).map(drop).ok_or(Errno::EFAULT)
    }

    /// Returns until when a call waits: for so long, or until a clock shows a time.
    fn time_limit(&mut self, time: u64, clock: Option<bool>) -> Result<Option<Duration>> {
        let Some(is_realtime) = clock else { return self.read_deadline(time) };
        if time == 0 {
            return Ok(None);
        }
        let time = self.read_time(time)?;
        let now = self.system.memory.hardware.monotonic();
        let clock = if is_realtime { self.system.date() } else { now };
        Ok(Some(now.saturating_add(time.saturating_sub(clock))))
    }

    /// Returns the result of a call that has waited for a word, if it has: it was woken, or its time is over.
    fn after_wait(&mut self) -> Option<Result> {
        self.waiting()?;
        let thread = self.process.thread().id;
        if !self.system.futexes.has(thread) {
            return Some(Ok(0));
        }
        let deadline = self.deadline();
        if self.has_passed(deadline) {
            self.system.futexes.remove(thread);
            return Some(Err(Errno::ETIMEDOUT));
        }
        Some(Err(self.wait_on(deadline)))
    }

    /// Lets the call wait until the thread has left its queue.
    fn wait_on(&mut self, deadline: Option<Duration>) -> Errno {
        let interruption = if deadline.is_some() { Interruption::Final } else { Interruption::Restartable };
        self.wait(&[], deadline, interruption)
    }

    /// Waits until somebody wakes the thread, if a word has a value.
    fn wait_for_word(&mut self, address: u64, value: u32, bits: u32, time: u64, clock: Option<bool>) -> Result {
        if let Some(result) = self.after_wait() {
            return result;
        }
        if bits == 0 {
            return Err(Errno::EINVAL);
        }
        let deadline = self.time_limit(time, clock)?;
        if self.load(address)? != value {
            return Err(Errno::EAGAIN);
        }
        let (word, thread) = (self.word(address)?, self.process.thread().id);
        let priority = self.process.thread().scheduling.priority;
        if self.has_passed(deadline) {
            return Err(Errno::ETIMEDOUT);
        }
        self.system.futexes.add(word, Waiter { thread, bits, is_locker: false, priority });
        let result = self.wait_on(deadline);
        self.wait_by_date(clock == Some(true));
        Err(result)
    }

    /// Wakes so many threads that wait for a word. Returns their number.
    fn wake_words(&mut self, address: u64, count: u32, bits: u32) -> Result {
        if bits == 0 {
            return Err(Errno::EINVAL);
        }
        let word = self.word(address)?;
        self.check_no_locker(word)?;
        // As Linux, which wakes one even if none are asked for.
        let count = count.cast_signed().max(1).unsigned_abs() as usize;
        Ok(self.system.wake_word(word, count, bits) as u64)
    }

    /// Refuses to wake threads that wait to own a word.
    fn check_no_locker(&self, word: Word) -> Result<()> {
        let is_locker = self.system.futexes.first(word).is_some_and(|first| first.is_locker);
        if is_locker { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// Wakes some threads that wait for a word, and lets others wait for another one; perhaps only if the word has a
    /// value. Returns the number of both.
    fn requeue(&mut self, from: u64, woken: u32, moved: u32, to: u64, value: Option<u32>) -> Result {
        if woken.cast_signed() < 0 || moved.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let (from_word, to_word) = (self.word(from)?, self.word(to)?);
        if let Some(value) = value
            && self.load(from)? != value
        {
            return Err(Errno::EAGAIN);
        }
        self.check_no_locker(from_word)?;
        self.check_no_locker(to_word)?;
        let woken = self.system.wake_word(from_word, woken as usize, u32::MAX);
        let moved = self.system.futexes.requeue(from_word, to_word, moved as usize);
        Ok((woken + moved) as u64)
    }

    /// Changes a second word, wakes threads that wait for the first one, and, if the second one had a certain value,
    /// some that wait for that. Returns their number.
    fn wake_and_change(&mut self, first: u64, count: u32, count_2: u32, second: u64, operation: u32) -> Result {
        let (first, second_word) = (self.word(first)?, self.word(second)?);
        let field = |shift: u32, bits: u32| operation >> shift & ((1 << bits) - 1);
        // Both operands are signed numbers of 12 bits.
        let signed = |value: u32| (value << 20).cast_signed() >> 20;
        let (kind, comparison) = (field(28, 4), field(24, 4));
        let (mut operand, compared) = (signed(field(12, 12)), signed(field(0, 12)));
        if kind & IS_SHIFT != 0 {
            operand = 1 << (operand & 31);
        }
        let old = self.load(second)?.cast_signed();
        let new = match kind & !IS_SHIFT {
            0 => operand,
            1 => old.wrapping_add(operand),
            2 => old | operand,
            3 => old & !operand,
            4 => old ^ operand,
            _ => return Err(Errno::ENOSYS),
        };
        let is_true = match comparison {
            0 => old == compared,
            1 => old != compared,
            2 => old < compared,
            3 => old <= compared,
            4 => old > compared,
            5 => old >= compared,
            _ => return Err(Errno::ENOSYS),
        };
        self.write(second, &new.to_le_bytes())?;
        let at_least_one = |count: u32| count.cast_signed().max(1).unsigned_abs() as usize;
        let mut woken = self.system.wake_word(first, at_least_one(count), u32::MAX);
        if is_true {
            woken += self.system.wake_word(second_word, at_least_one(count_2), u32::MAX);
        }
        Ok(woken as u64)
    }

    /// Takes a lock that nobody has. Returns whether the thread has it.
    fn try_lock(&mut self, address: u64) -> Result<bool> {
        let (value, own) = (self.load(address)?, self.process.thread().id);
        match value & OWNER {
            0 => {
                let taken = own | value & (WAITERS | OWNER_DIED);
                self.write(address, &taken.to_le_bytes()).map(|()| true)
            }
            owner if owner == own => Err(Errno::EDEADLK),
            owner if owner != self.process.id && self.others.owner(owner).is_none() => Err(Errno::ESRCH),
            _ => Ok(false),
        }
    }

    /// Takes a lock; waits for it if another thread has it, at the longest until a clock shows a time.
    fn lock(&mut self, address: u64, time: u64, is_realtime: bool) -> Result {
        if let Some(result) = self.after_wait() {
            return result;
        }
        let deadline = self.time_limit(time, Some(is_realtime))?;
        if self.try_lock(address)? {
            return Ok(0);
        }
        let (word, thread) = (self.word(address)?, self.process.thread().id);
        let priority = self.process.thread().scheduling.priority;
        if self.system.futexes.first(word).is_some_and(|first| !first.is_locker) {
            return Err(Errno::EINVAL);
        }
        let value = self.load(address)? | WAITERS;
        self.write(address, &value.to_le_bytes())?;
        self.system.futexes.add(word, Waiter { thread, bits: u32::MAX, is_locker: true, priority });
        Err(self.wait(&[], deadline, Interruption::Restartable))
    }

    /// Passes a lock on to the thread that waits for it first.
    fn unlock(&mut self, address: u64) -> Result {
        if self.load(address)? & OWNER != self.process.thread().id {
            return Err(Errno::EPERM);
        }
        let word = self.word(address)?;
        if self.system.futexes.first(word).is_some_and(|first| !first.is_locker) {
            return Err(Errno::EINVAL);
        }
        if self.system.pass_on(self.process.space, address, 0) { Ok(0) } else { Err(Errno::EFAULT) }
    }

    /// Sets the list of locks that are marked when the thread ends without having released them.
    pub fn set_robust_list(&mut self, list: u64, size: u64) -> Result {
        if size != tench_linux_calls::records::robust_list::SIZE as u64 {
            return Err(Errno::EINVAL);
        }
        self.process.thread_mut().robust_list = list;
        Ok(0)
    }

    /// Reads where the list of locks of a thread is.
    pub fn get_robust_list(&mut self, thread: u64, list: u64, size: u64) -> Result {
        let thread = thread as u32;
        let head = if thread == 0 {
            self.process.thread().robust_list
        } else if let Ok(index) = self.process.index_of(thread) {
            self.process.threads[index].robust_list
        } else {
            let owner = self.others.owner(thread).ok_or(Errno::ESRCH)?;
            let process = self.others.find(owner).ok_or(Errno::ESRCH)?;
            if !self.identity().may_attach(process.identity(), process.is_dumpable) {
                return Err(Errno::EPERM);
            }
            process.index_of(thread).map(|index| process.threads[index].robust_list).map_err(|_| Errno::ESRCH)?
        };
        self.write(size, &(tench_linux_calls::records::robust_list::SIZE as u64).to_le_bytes())?;
        self.write(list, &head.to_le_bytes()).map(|()| 0)
    }
}
