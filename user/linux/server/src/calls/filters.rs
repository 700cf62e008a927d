//! The calls that set filters of system calls, and the actions for which filters ask.

use alloc::sync::Arc;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::capability;
use tench_linux_calls::records::{u16_at, u64_at};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Outcome, Result};
use crate::filters::{ARCHITECTURE, Filter, INSTRUCTION, MOST, RECORD, action};
use crate::signals::{Action, Cause, Info, number};
use crate::thread::Filtering;

/// Modes of filtering, as `prctl` names them.
const STRICT: u64 = 1;
const FILTER: u64 = 2;
/// Flags of a new filter: one that sets it for all threads, and all that are known. The others change nothing here.
const ALL_THREADS: u32 = 1;
const KNOWN: u32 = 1 | 2 | 4 | 16;

impl<M: Machine> Caller<'_, M> {
    /// Sets a filter of the caller's calls, or reports what filters can do.
    pub fn seccomp(&mut self, operation: u64, flags: u64, argument: u64) -> Result {
        let flags = flags as u32;
        match operation as u32 {
            0 if flags == 0 && argument == 0 => self.be_strict(),
            1 => self.add_filter(flags, argument),
            2 if flags == 0 => {
                const ALL: [u32; 7] = [
                    action::KILL_PROCESS,
                    action::KILL_THREAD,
                    action::TRAP,
                    action::ERROR,
                    action::TRACE,
                    action::LOG,
                    action::ALLOW,
                ];
                let asked = u32::from_le_bytes(self.read_record(argument)?);
                if ALL.contains(&asked) { Ok(0) } else { Err(Errno::EOPNOTSUPP) }
            }
            3 if flags == 0 => {
                // Sizes of the records by which Linux lets another process decide.
                let sizes = [80_u16, 24, RECORD as u16].map(u16::to_le_bytes).concat();
                self.write(argument, &sizes).map(|()| 0)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Sets a filter of the caller's calls, as `prctl` does.
    pub(super) fn set_filtering(&mut self, mode: u64, argument: u64) -> Result {
        match mode {
            STRICT => self.be_strict(),
            FILTER => self.add_filter(0, argument),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns the mode of filtering, as `prctl` names it.
    pub(super) fn filtering(&self) -> u64 {
        match self.process.thread().filtering {
            Filtering::None => 0,
            Filtering::Strict => STRICT,
            Filtering::By(_) => FILTER,
        }
    }

    /// Allows the caller only four calls from now on.
    fn be_strict(&mut self) -> Result {
        let thread = self.process.thread_mut();
        if let Filtering::By(_) = thread.filtering {
            return Err(Errno::EINVAL);
        }
        thread.filtering = Filtering::Strict;
        self.system.inspects_calls = true;
        Ok(0)
    }

    fn add_filter(&mut self, flags: u32, argument: u64) -> Result {
        if flags & !KNOWN != 0 {
            return Err(Errno::EINVAL);
        }
        let record: [u8; 16] = self.read_record(argument)?;
        let (count, place) = (usize::from(u16_at(&record, 0)), u64_at(&record, 8));
        if !(1..=MOST).contains(&count) {
            return Err(Errno::EINVAL);
        }
        let identity = self.identity();
        if !identity.has_no_new_privileges && !identity.has(capability::SYS_ADMIN) {
            return Err(Errno::EACCES);
        }
        self.system.memory.check_room(2 * count * INSTRUCTION)?;
        let program = self.read(place, count * INSTRUCTION)?;
        let before = match &self.process.thread().filtering {
            Filtering::Strict => return Err(Errno::EINVAL),
            Filtering::None => None,
            Filtering::By(before) => Some(before.clone()),
        };
        let filter = Arc::new(Filter::new(&program, before)?);
        if flags & ALL_THREADS != 0
            && let Some(other) = self.thread_with_other_filters(&filter)
        {
            const SAYS_ESRCH: u32 = 16;
            return if flags & SAYS_ESRCH != 0 { Err(Errno::ESRCH) } else { Ok(other.into()) };
        }
        let present = self.process.present;
        let privileges = self.process.thread().identity.has_no_new_privileges;
        for (index, thread) in self.process.threads.iter_mut().enumerate() {
            if index == present || flags & ALL_THREADS != 0 {
                thread.filtering = Filtering::By(filter.clone());
                thread.identity.has_no_new_privileges |= privileges;
            }
        }
        self.system.inspects_calls = true;
        Ok(0)
    }

    /// Returns a thread that is in strict mode or whose last filter does not precede the new one.
    fn thread_with_other_filters(&self, filter: &Filter) -> Option<u32> {
        let differs = |filtering: &Filtering| match filtering {
            Filtering::None => false,
            Filtering::Strict => true,
            Filtering::By(own) => !filter.follows(own),
        };
        self.process.threads.iter().find(|thread| differs(&thread.filtering)).map(|thread| thread.id)
    }

    /// Returns the outcome of a call that a filter does not allow. A call that has waited was allowed already.
    pub(crate) fn filter(&mut self, number: u64, arguments: &[u64; 6]) -> Option<Outcome> {
        if self.waiting().is_some() {
            return None;
        }
        let thread = &self.process.threads[self.process.present];
        let filter = match &thread.filtering {
            Filtering::None => return None,
            Filtering::Strict => {
                const LEFT: [Sysno; 4] = [Sysno::read, Sysno::write, Sysno::exit, Sysno::rt_sigreturn];
                let may = LEFT.iter().any(|call| *call as u64 == number);
                return (!may).then(|| match self.process.living() {
                    1 => self.kill_by_filter(number::KILL, None),
                    _ => Outcome::EndThread(number::KILL as u8),
                });
            }
            Filtering::By(filter) => filter.clone(),
        };
        // The program counter of a call that was sent is out of reach.
        let hardware = &mut self.system.memory.hardware;
        let instruction = if thread.sends { 0 } else { hardware.registers(&thread.machine).pc };
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&(number as u32).to_le_bytes());
        record[4..8].copy_from_slice(&ARCHITECTURE.to_le_bytes());
        record[8..16].copy_from_slice(&instruction.to_le_bytes());
        for (place, argument) in record[16..].chunks_exact_mut(8).zip(arguments) {
            place.copy_from_slice(&argument.to_le_bytes());
        }
        let decided = filter.decide(&record);
        let data = decided & !action::MASK;
        let cause = Cause::Call { instruction, number: number as u32, data };
        match decided & action::MASK {
            action::ALLOW => None,
            action::LOG => {
                self.note(number);
                None
            }
            action::ERROR => {
                const HIGHEST: u32 = 4095;
                Some(Outcome::Return(u64::from(data.min(HIGHEST)).wrapping_neg()))
            }
            // There is no tracer, since there is no `ptrace`.
            action::TRACE => Some(Err(Errno::ENOSYS).into()),
            action::TRAP => {
                self.process.force(Info { signal: number::SYS, code: 1, cause });
                Some(Outcome::Resume)
            }
            action::KILL_THREAD if self.process.living() > 1 => Some(Outcome::EndThread(number::SYS as u8)),
            // Unknown actions kill the process, too.
            _ => Some(self.kill_by_filter(number::SYS, Some(cause))),
        }
    }

    /// Writes a call to the log.
    fn note(&mut self, number: u64) {
        let line = alloc::format!("seccomp: pid={} syscall={number}", self.process.id);
        self.system.note(&line);
    }

    /// Ends the process by a signal, even if the process handles, ignores or blocks that signal.
    fn kill_by_filter(&mut self, signal: u32, cause: Option<Cause>) -> Outcome {
        self.process.set_action(signal, Action::DEFAULT);
        self.process.force(Info { signal, code: 1, cause: cause.unwrap_or(Cause::None) });
        Outcome::Resume
    }
}
