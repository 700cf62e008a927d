//! Calls about the whole instance: reading its log, and ending it.

use tench_linux_calls::numbers::capability;
use tench_linux_files::Errno;

use super::transfer::END;
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::instance::FIRST;
use crate::log;
use crate::signals::{Info, number};
use crate::waiting::{Interruption, Key};

/// Actions on the log.
mod action {
    pub const CLOSE: i32 = 0;
    pub const OPEN: i32 = 1;
    pub const READ: i32 = 2;
    pub const READ_ALL: i32 = 3;
    pub const READ_AND_CLEAR: i32 = 4;
    pub const CLEAR: i32 = 5;
    pub const CONSOLE_OFF: i32 = 6;
    pub const CONSOLE_ON: i32 = 7;
    pub const CONSOLE_LEVEL: i32 = 8;
    pub const UNREAD: i32 = 9;
    pub const SIZE: i32 = 10;
}

/// Numbers without which `reboot` is refused.
const MAGIC: u32 = 0xfee1_dead;
const MAGIC_TOO: [u32; 4] = [672_274_793, 85_072_278, 369_367_448, 537_993_216];

impl<M: Machine> Caller<'_, M> {
    /// Reads the log of the instance, or controls it.
    pub fn syslog(&mut self, what: u64, into: u64, length: u64) -> Result {
        let (what, length) = ((what as u32).cast_signed(), (length as u32).cast_signed());
        // As on Linux with `dmesg_restrict`, which Debian's kernel sets.
        if !self.identity().has(capability::SYSLOG) && !self.identity().has(capability::SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        match what {
            action::CLOSE | action::OPEN | action::CONSOLE_OFF | action::CONSOLE_ON => Ok(0),
            action::READ | action::READ_ALL | action::READ_AND_CLEAR => self.read_log(what, into, length),
            action::CLEAR => {
                self.system.log.clear();
                Ok(0)
            }
            action::CONSOLE_LEVEL if (1..=8).contains(&length) => Ok(0),
            action::UNREAD => Ok(self.system.log.unread() as u64),
            action::SIZE => Ok(log::SIZE as u64),
            _ => Err(Errno::EINVAL),
        }
    }

    fn read_log(&mut self, what: i32, into: u64, length: i32) -> Result {
        let most = usize::try_from(length).map_err(|_| Errno::EINVAL)?;
        if into == 0 {
            return Err(Errno::EINVAL);
        }
        if most == 0 {
            return Ok(0);
        }
        into.checked_add(most as u64).filter(|end| *end <= END).ok_or(Errno::EFAULT)?;
        let bytes = if what == action::READ { self.system.log.take(most) } else { self.system.log.last(most) };
        if what == action::READ && bytes.is_empty() {
            return Err(self.wait(&[Key::Log], None, Interruption::Restartable));
        }
        self.write(into, &bytes)?;
        if what == action::READ_AND_CLEAR {
            self.system.log.clear();
        }
        Ok(bytes.len() as u64)
    }

    /// Ends the instance, whether the command is to power off, to halt or to restart.
    pub fn reboot(&mut self, magic: [u64; 2], command: u64) -> Result {
        const RESTART: u32 = 0x0123_4567;
        const HALT: u32 = 0xcdef_0123;
        const POWER_OFF: u32 = 0x4321_fedc;
        const KEYS_ON: u32 = 0x89ab_cdef;
        const KEYS_OFF: u32 = 0;
        if !self.identity().has(capability::SYS_BOOT) {
            return Err(Errno::EPERM);
        }
        if magic[0] as u32 != MAGIC || !MAGIC_TOO.contains(&(magic[1] as u32)) {
            return Err(Errno::EINVAL);
        }
        match command as u32 {
            RESTART | HALT | POWER_OFF => {
                // All other processes end with the first one.
                let info = Info::from_process(number::KILL, self.process.id, self.identity().user.real);
                match self.others.get(FIRST) {
                    Some(first) => self.system.send(first, info),
                    None => self.system.send(self.process, info),
                }
                Ok(0)
            }
            KEYS_ON | KEYS_OFF => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }
}
