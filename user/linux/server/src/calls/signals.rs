//! Calls about signals. What a process sets is kept; no signal is delivered yet.

use tench_linux_calls::records::{u32_at, u64_at};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Outcome, Result};
use crate::process::{ACTION, NO_SIGNAL_STACK, SIGNAL_STACK, SIGNALS};

/// The handler of a signal that is ignored.
const IGNORE: u64 = 1;
const KILL: u64 = 9;
const STOP: u64 = 19;

/// Signals that do nothing unless the process says so: SIGCHLD, SIGCONT, SIGURG, SIGWINCH.
const HARMLESS: [u64; 4] = [17, 18, 23, 28];

impl<M: Machine> Caller<'_, M> {
    /// Sends a signal to the process itself, the only one that there is.
    pub fn kill(&mut self, process: u64, signal: u64) -> Outcome {
        let own = [0, u64::from(self.process.id), u64::MAX, u64::from(u32::MAX)];
        if signal > SIGNALS as u64 {
            return Err(Errno::EINVAL).into();
        }
        if !own.contains(&process) {
            return Err(Errno::ESRCH).into();
        }
        if signal == 0 || HARMLESS.contains(&signal) || self.handler(signal) == IGNORE {
            return Ok(0).into();
        }
        Outcome::Kill(signal as u32)
    }

    /// Returns the address of a signal's handler, or 0 or 1.
    fn handler(&self, signal: u64) -> u64 {
        let action = &self.process.actions[signal as usize - 1];
        u64::from_le_bytes(*action.first_chunk().unwrap_or(&[0; 8]))
    }

    /// Reads and sets what happens at a signal.
    pub fn rt_sigaction(&mut self, signal: u64, new: u64, old: u64, size: u64) -> Result {
        if size != 8 || signal == 0 || signal > SIGNALS as u64 {
            return Err(Errno::EINVAL);
        }
        if new != 0 && (signal == KILL || signal == STOP) {
            return Err(Errno::EINVAL);
        }
        let index = signal as usize - 1;
        let before = self.process.actions[index];
        if new != 0 {
            let action: [u8; ACTION] = self.read_record(new)?;
            self.process.actions[index] = action;
        }
        self.write_if_wanted(old, &before).map(|()| 0)
    }

    /// Reads and sets the stack on which handlers run that want one of their own.
    pub fn sigaltstack(&mut self, new: u64, old: u64) -> Result {
        const DISABLED: u32 = 2;
        const LEAST: u64 = 2048;
        let before = self.process.signal_stack;
        if new != 0 {
            let mut stack: [u8; SIGNAL_STACK] = self.read_record(new)?;
            match u32_at(&stack, 8) {
                DISABLED => stack = NO_SIGNAL_STACK,
                0 if u64_at(&stack, 16) < LEAST => return Err(Errno::ENOMEM),
                0 => {}
                _ => return Err(Errno::EINVAL),
            }
            self.process.signal_stack = stack;
        }
        self.write_if_wanted(old, &before).map(|()| 0)
    }

    /// Reads and sets which signals are blocked.
    pub fn rt_sigprocmask(&mut self, how: u64, new: u64, old: u64, size: u64) -> Result {
        const UNBLOCKABLE: u64 = 1 << (KILL - 1) | 1 << (STOP - 1);
        if size != 8 {
            return Err(Errno::EINVAL);
        }
        let before = self.process.blocked;
        if new != 0 {
            let set = u64::from_le_bytes(self.read_record(new)?) & !UNBLOCKABLE;
            self.process.blocked = match how {
                0 => before | set,
                1 => before & !set,
                2 => set,
                _ => return Err(Errno::EINVAL),
            };
        }
        self.write_if_wanted(old, &before.to_le_bytes()).map(|()| 0)
    }
}
