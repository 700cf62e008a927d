//! Calls about the limits of a process.

use tench_linux_calls::numbers::capability;
use tench_linux_calls::records::u64_at;
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::limits::{Limit, UNLIMITED, resource};
use crate::process::Process;
use crate::signals::{Info, number};

/// The most descriptors that a process can be allowed.
const MOST_DESCRIPTORS: u64 = 1 << 20;

impl<M: Machine> Caller<'_, M> {
    /// Returns the process of a thread; 0 is the own one.
    ///
    /// # Errors
    /// `ESRCH`, and `EPERM` if it is another user's process that the caller may not limit.
    fn limited(&mut self, id: u64) -> Result<&mut Process<M>> {
        let id = id as u32;
        if id == 0 || self.process.index_of(id).is_ok() {
            return Ok(self.process);
        }
        let identity = self.identity().clone();
        let owner = self.others.owner(id).ok_or(Errno::ESRCH)?;
        let process = self.others.get(owner).filter(|process| !process.has_ended()).ok_or(Errno::ESRCH)?;
        if identity.may_limit(process.identity()) { Ok(process) } else { Err(Errno::EPERM) }
    }

    /// Reads and sets a limit of a process.
    pub fn prlimit64(&mut self, id: u64, resource: u64, new: u64, old: u64) -> Result {
        let new = if new == 0 { None } else { Some(self.read_limit(new)?) };
        let before = self.limited(id)?.limits.get(resource as u32).ok_or(Errno::EINVAL)?;
        if let Some(new) = new {
            if new.soft > new.hard {
                return Err(Errno::EINVAL);
            }
            if new.hard > before.hard && !self.identity().has(capability::SYS_RESOURCE) {
                return Err(Errno::EPERM);
            }
            self.set_limit(id, resource as u32 as usize, new)?;
        }
        self.write_if_wanted(old, &[before.soft, before.hard].map(u64::to_le_bytes).concat()).map(|()| 0)
    }

    /// Has the CPU-time timers and limit of a process checked soon.
    fn look_at(&mut self, id: u64) {
        let id = id as u32;
        if id == 0 || self.process.index_of(id).is_ok() {
            self.system.look_soon(self.process);
        } else if let Some(process) = self.others.owner(id).and_then(|owner| self.others.get(owner)) {
            self.system.look_soon(process);
        }
    }

    fn read_limit(&mut self, from: u64) -> Result<Limit> {
        let record: [u8; 16] = self.read_record(from)?;
        Ok(Limit { soft: u64_at(&record, 0), hard: u64_at(&record, 8) })
    }

    /// Sets a limit, and puts it into effect.
    fn set_limit(&mut self, id: u64, resource: usize, limit: Limit) -> Result<()> {
        let process = self.limited(id)?;
        if resource == resource::DESCRIPTORS {
            if limit.hard > MOST_DESCRIPTORS {
                return Err(Errno::EPERM);
            }
            process.descriptors.limit = limit.soft.min(MOST_DESCRIPTORS) as u32;
        }
        process.limits.set(resource, limit);
        let (space, allowance) = (process.space, process.limits.allowance());
        let used = self.system.spaces.get(space);
        // The parent of `vfork` gets its memory back, and has limits of its own.
        if !used.is_shared() {
            used.space.allowance = allowance;
        }
        if resource == resource::CPU {
            self.look_at(id);
        }
        Ok(())
    }

    /// Returns how many of so many bytes the limit of file sizes lets be written from an offset on. Sends `SIGXFSZ` if
    /// it lets none.
    ///
    /// # Errors
    /// `EFBIG`
    pub(crate) fn room_in_file(&mut self, start: u64, length: u64) -> Result<u64> {
        let limit = self.process.limits.of(resource::FILE).soft;
        if limit == UNLIMITED || length == 0 {
            return Ok(length);
        }
        if start < limit {
            return Ok(length.min(limit - start));
        }
        self.refuse_length()
    }

    /// Checks that the limit of file sizes allows a length. Sends `SIGXFSZ` if not.
    ///
    /// # Errors
    /// `EFBIG`
    pub(crate) fn check_length(&mut self, length: u64) -> Result<()> {
        if length <= self.process.limits.of(resource::FILE).soft { Ok(()) } else { self.refuse_length().map(drop) }
    }

    fn refuse_length(&mut self) -> Result {
        let present = self.process.present;
        let signal = Info::from_process(number::XFSZ, self.process.id, self.identity().user.real);
        self.system.send_to(self.process, signal, Some(present));
        Err(Errno::EFBIG)
    }
}
