//! Calls about signals.

use tench_linux_calls::records::{sigaction, u32_at, u64_at};
use tench_linux_files::Errno;
use zerocopy::{FromZeros, IntoBytes};

use crate::Machine;
use crate::caller::{Caller, Outcome, Result};
use crate::instance::FIRST;
use crate::process::Process;
use crate::signals::{Action, Cause, Info, SIGNALS, Set, Stack, UNBLOCKABLE, frame, number, only};
use crate::thread::Registers;
use crate::waiting::{Interruption, Key};

/// Size of a set of signals in bytes.
const SET: u64 = 8;
/// The code of a signal that one thread has sent to another.
const TO_THREAD: i32 = -6;

/// Returns the number of a signal; 0 only asks whether there is somebody to get one.
pub(super) fn signal(number: u64) -> Result<u32> {
    let number = number as u32;
    if number as usize > SIGNALS { Err(Errno::EINVAL) } else { Ok(number) }
}

/// Returns whether a signal has no effect on a process: it is the first process, acts as `init` for the sender, and
/// does not handle the signal.
fn is_spared<M: Machine>(process: &Process<M>, signal: u32, is_init: bool) -> bool {
    is_init && process.id == FIRST && signal != number::CONT && process.signals.action(signal).handler() == 0
}

/// Checks that a process may send another one a signal.
fn may_signal<M: Machine>(own: &Process<M>, other: &Process<M>, signal: u32) -> Result<()> {
    let is_allowed =
        own.thread().identity.may_signal(other.identity()) || signal == number::CONT && own.session == other.session;
    if is_allowed { Ok(()) } else { Err(Errno::EPERM) }
}

impl<M: Machine> Caller<'_, M> {
    /// Sends a signal to a process, to a group, or to all.
    pub fn kill(&mut self, to: u64, signal_number: u64) -> Result {
        let signal = signal(signal_number)?;
        let info = Info::from_process(signal, self.process.id, self.identity().user.real);
        match (to as u32).cast_signed() {
            i32::MIN => Err(Errno::ESRCH),
            // The first process is left alone, and the own.
            -1 => self.send_to_all(info, |process| process.id > 1, false),
            0 => {
                let group = self.process.group;
                self.send_to_all(info, |process| process.group == group, true)
            }
            group @ ..0 => {
                let group = group.unsigned_abs();
                self.send_to_all(info, |process| process.group == group, true)
            }
            one => self.send_to(one.unsigned_abs(), info),
        }
    }

    /// Returns whether the first process acts as `init` for the caller, which no signal ends: for orphans and their
    /// descendants, many of which signal their parent without checking that it is still the same process.
    fn sees_init(&self) -> bool {
        let mut ancestor = &*self.process;
        while ancestor.parent > FIRST
            && let Some(parent) = self.others.find(ancestor.parent)
        {
            ancestor = parent;
        }
        ancestor.is_orphan
    }

    /// Sends a signal to a process; 0 only asks whether it is there.
    pub(super) fn send_to(&mut self, id: u32, info: Info) -> Result {
        let is_init = id == FIRST && self.sees_init();
        let process = if id == self.process.id {
            &mut *self.process
        } else {
            let other = self.others.get(id).ok_or(Errno::ESRCH)?;
            may_signal(self.process, other, info.signal)?;
            other
        };
        if info.signal != 0 && !is_spared(process, info.signal, is_init) {
            self.system.send(process, info);
        }
        Ok(0)
    }

    /// Sends a signal to all of whom something is true, perhaps with the own process among them.
    fn send_to_all(&mut self, info: Info, is_meant: impl Fn(&Process<M>) -> bool, with_own: bool) -> Result {
        let is_init = self.sees_init();
        // A signal to all processes skips those that may not be signalled, without an error.
        let mut result = Err(Errno::ESRCH);
        for process in self.others.iter_mut().filter(|process| is_meant(process)) {
            if may_signal(self.process, process, info.signal).is_err() {
                let refused = if with_own { Err(Errno::EPERM) } else { Ok(0) };
                result = result.or(refused);
                continue;
            }
            result = Ok(0);
            if info.signal != 0 && !is_spared(process, info.signal, is_init) {
                self.system.send(process, info);
            }
        }
        if with_own && is_meant(self.process) {
            result = Ok(0);
            if info.signal != 0 && !is_spared(self.process, info.signal, is_init) {
                self.system.send(self.process, info);
            }
        }
        result
    }

    /// Sends a signal to a thread; perhaps only if it is a certain process's.
    pub fn tgkill(&mut self, process: Option<u64>, thread: u64, signal_number: u64) -> Result {
        let thread = thread as u32;
        if thread.cast_signed() <= 0 || process.is_some_and(|process| (process as u32).cast_signed() <= 0) {
            return Err(Errno::EINVAL);
        }
        let user = self.identity().user.real;
        let info = Info { code: TO_THREAD, ..Info::from_process(signal(signal_number)?, self.process.id, user) };
        self.send_to_thread(process.map(|process| process as u32), thread, info)
    }

    /// Sends a signal to a thread, perhaps only if it is a certain process's; 0 only asks whether it is there.
    fn send_to_thread(&mut self, process: Option<u32>, thread: u32, info: Info) -> Result {
        let is_init = self.sees_init();
        let own = self.process.index_of(thread).is_ok().then_some(self.process.id);
        let owner = own.or_else(|| self.others.owner(thread)).ok_or(Errno::ESRCH)?;
        if process.is_some_and(|process| process != owner) {
            return Err(Errno::ESRCH);
        }
        let process = if own.is_some() {
            &mut *self.process
        } else {
            let other = self.others.get(owner).ok_or(Errno::ESRCH)?;
            may_signal(self.process, other, info.signal)?;
            other
        };
        // A process that has ended has no threads, and nothing happens to it.
        if let Ok(index) = process.index_of(thread)
            && info.signal != 0
            && !is_spared(process, info.signal, is_init)
        {
            self.system.send_to(process, info, Some(index));
        }
        Ok(0)
    }

    /// Sends a signal with a value to a thread of a process.
    pub fn rt_tgsigqueueinfo(&mut self, process: u64, thread: u64, signal_number: u64, record: u64) -> Result {
        let (process, thread) = (process as u32, thread as u32);
        if process.cast_signed() <= 0 || thread.cast_signed() <= 0 {
            return Err(Errno::EINVAL);
        }
        let info = self.read_info(signal_number, record, process)?;
        self.send_to_thread(Some(process), thread, info)
    }

    /// Sends a signal with a value.
    pub fn rt_sigqueueinfo(&mut self, to: u64, signal_number: u64, record: u64) -> Result {
        let info = self.read_info(signal_number, record, to as u32)?;
        self.send_to(to as u32, info)
    }

    /// Reads what a process says about a signal that it sends to another one.
    pub(super) fn read_info(&mut self, signal_number: u64, record: u64, to: u32) -> Result<Info> {
        let record: [u8; Info::SIZE] = self.read_record(record)?;
        let code = u32_at(&record, 8).cast_signed();
        if (code >= 0 || code == TO_THREAD) && to != self.process.id {
            return Err(Errno::EPERM);
        }
        let cause = Cause::Process { id: u32_at(&record, 16), user: u32_at(&record, 20), value: u64_at(&record, 24) };
        Ok(Info { signal: signal(signal_number)?, code, cause })
    }

    /// Reads and sets what happens at a signal.
    pub fn rt_sigaction(&mut self, signal: u64, new: u64, old: u64, size: u64) -> Result {
        if size != SET || signal == 0 || signal > SIGNALS as u64 {
            return Err(Errno::EINVAL);
        }
        let signal = signal as u32;
        if new != 0 && only(signal) & UNBLOCKABLE != 0 {
            return Err(Errno::EINVAL);
        }
        let before = self.process.signals.action(signal);
        if new != 0 {
            let mut action: [u8; sigaction::SIZE] = self.read_record(new)?;
            let mask = u64_at(&action, sigaction::MASK) & !UNBLOCKABLE;
            action[sigaction::MASK..].copy_from_slice(&mask.to_le_bytes());
            self.process.set_action(signal, Action(action));
        }
        self.write_if_wanted(old, &before.0).map(|()| 0)
    }

    /// Reads and sets the stack on which handlers run that want one of their own.
    pub fn sigaltstack(&mut self, new: u64, old: u64) -> Result {
        const LEAST: u64 = 2048;
        const ON_STACK: u32 = 1;
        let before = self.process.thread().signals.stack;
        let pointer = self.registers().sp;
        let is_used = before.range().is_some_and(|range| frame::is_on(&range, pointer));
        if new != 0 {
            let mut stack: [u8; Stack::SIZE] = self.read_record(new)?;
            if is_used {
                return Err(Errno::EPERM);
            }
            match u32_at(&stack, 8) {
                Stack::DISABLED => stack = Stack::NONE.0,
                0 | ON_STACK if u64_at(&stack, 16) < LEAST => return Err(Errno::ENOMEM),
                0 | ON_STACK => stack[8] = 0,
                _ => return Err(Errno::EINVAL),
            }
            self.process.thread_mut().signals.stack = Stack(stack);
        }
        let mut record = before.0;
        record[8] |= u8::from(is_used);
        self.write_if_wanted(old, &record).map(|()| 0)
    }

    /// Returns the registers with which the thread has made its call.
    fn registers(&mut self) -> Registers {
        self.system.memory.hardware.registers(&self.process.thread().machine)
    }

    /// Reads a set of signals that can be blocked.
    pub(crate) fn read_set(&mut self, address: u64, size: u64) -> Result<Set> {
        if size != SET {
            return Err(Errno::EINVAL);
        }
        Ok(u64::from_le_bytes(self.read_record(address)?) & !UNBLOCKABLE)
    }

    /// Reads and sets which signals are blocked.
    pub fn rt_sigprocmask(&mut self, how: u64, new: u64, old: u64, size: u64) -> Result {
        if size != SET {
            return Err(Errno::EINVAL);
        }
        let before = self.process.thread().signals.blocked;
        if new != 0 {
            let set = self.read_set(new, size)?;
            self.process.thread_mut().signals.blocked = match how {
                0 => before | set,
                1 => before & !set,
                2 => set,
                _ => return Err(Errno::EINVAL),
            };
        }
        self.write_if_wanted(old, &before.to_le_bytes()).map(|()| 0)
    }

    /// Reads which blocked signals have come.
    pub fn rt_sigpending(&mut self, into: u64, size: u64) -> Result {
        if size > SET {
            return Err(Errno::EINVAL);
        }
        let set = self.process.pending() & self.process.thread().signals.blocked;
        self.write(into, &set.to_le_bytes()[..size as usize]).map(|()| 0)
    }

    /// Blocks other signals than before, until the call is over.
    pub(crate) fn block_meanwhile(&mut self, set: u64, size: u64) -> Result<()> {
        if set != 0 && self.process.thread().signals.saved.is_none() {
            let set = self.read_set(set, size)?;
            let signals = &mut self.process.thread_mut().signals;
            signals.saved = Some(core::mem::replace(&mut signals.blocked, set));
        }
        Ok(())
    }

    /// Waits until a handler has run, and blocks other signals meanwhile.
    pub fn rt_sigsuspend(&mut self, set: u64, size: u64) -> Result {
        if set == 0 {
            return Err(Errno::EFAULT);
        }
        self.block_meanwhile(set, size)?;
        Err(self.wait(&[], None, Interruption::Final))
    }

    /// Waits for one of a set of signals, and takes it.
    pub fn rt_sigtimedwait(&mut self, set: u64, into: u64, timeout: u64, size: u64) -> Result {
        let set = self.read_set(set, size)?;
        let deadline = self.read_deadline(timeout)?;
        if let Some(info) = self.process.take_signal_of(set) {
            self.write_if_wanted(into, &info.record())?;
            return Ok(info.signal.into());
        }
        if self.has_passed(deadline) {
            return Err(Errno::EAGAIN);
        }
        let key = Key::Signal(self.process.id);
        Err(self.wait(&[key], deadline, Interruption::Final))
    }

    /// Ends a handler: the process goes on where it was interrupted.
    pub fn rt_sigreturn(&mut self) -> Outcome {
        if self.return_from_handler().is_err() {
            let info = Info { code: 1, ..Info::from_system(number::SEGV) };
            self.process.force(info);
        }
        Outcome::Resume
    }

    /// Sets the thread's registers and signals to what the frame of its handler has kept.
    fn return_from_handler(&mut self) -> Result<()> {
        let registers = self.registers();
        let mut frame = frame::Kept::new_zeroed();
        if self.copy_from(registers.sp, frame.as_mut_bytes()) < size_of_val(&frame) || !frame.is_whole() {
            return Err(Errno::EFAULT);
        }
        let thread = self.process.thread_mut();
        let hardware = &mut self.system.memory.hardware;
        hardware.set_float_registers(&mut thread.machine, &frame.float());
        hardware.set_registers(&mut thread.machine, &frame.registers(registers.thread_pointer));
        thread.signals.blocked = frame.blocked();
        let steps = thread.tracing.as_mut().is_some_and(|tracing| core::mem::take(&mut tracing.steps));
        if !frame::is_same_stack(&frame.stack(), &thread.signals.stack) {
            thread.signals.stack = frame.stack();
        }
        if steps {
            // This call ends the step. As with Linux, the next one is an instruction, other than after all other calls.
            self.process.force(Info::from_process(number::TRAP, 0, 0));
        }
        Ok(())
    }
}
