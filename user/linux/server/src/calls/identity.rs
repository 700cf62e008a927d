//! Calls about the process, its limits, and the system.

use alloc::vec;
use alloc::vec::Vec;

use tench_linux_calls::records::u32_at;
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};

/// Length of a string in the description of the system.
const UNAME: usize = 65;

/// The most further groups of a process.
const MOST_GROUPS: u64 = 65_536;

/// Returns the description of the system: its type, name, release, version, machine and domain.
pub(crate) const fn system_name() -> [&'static str; 6] {
    ["Linux", "tench", "6.1.0", "#1 SMP Tench", "aarch64", "(none)"]
}

impl<M: Machine> Caller<'_, M> {
    /// Reads the numbers of the user or group three times: all are the super-user's.
    pub fn read_super_user(&mut self, into: [u64; 3]) -> Result {
        into.into_iter().try_for_each(|place| self.write(place, &[0; 4])).map(|()| 0)
    }

    /// Reads and sets how programs run: in one way only.
    pub fn personality(new: u64) -> Result {
        const ONLY_READ: u32 = u32::MAX;
        if matches!(new as u32, 0 | ONLY_READ) { Ok(0) } else { Err(Errno::EINVAL) }
    }

    /// Changes users or groups, each to the super-user's or not at all: there are no others.
    pub fn stay_super_user(ids: &[u64]) -> Result {
        let stays = ids.iter().all(|id| matches!(*id as u32, 0 | u32::MAX));
        if stays { Ok(0) } else { Err(Errno::EPERM) }
    }

    /// Reads the further groups of the process; only their number, if there is room for none.
    pub fn getgroups(&mut self, room: u64, into: u64) -> Result {
        let groups = self.process.groups.clone();
        let groups = groups.as_deref().unwrap_or_default();
        let room = (room as u32).cast_signed();
        if room < 0 || room > 0 && (room as usize) < groups.len() {
            return Err(Errno::EINVAL);
        }
        if room > 0 {
            self.system.memory.check_room(2 * size_of_val(groups))?;
            let bytes: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
            self.write(into, &bytes)?;
        }
        Ok(groups.len() as u64)
    }

    /// Sets the further groups of the process.
    pub fn setgroups(&mut self, count: u64, from: u64) -> Result {
        const NOBODY: u32 = u32::MAX;
        let count = u64::from(count as u32);
        if count > MOST_GROUPS {
            return Err(Errno::EINVAL);
        }
        // The bytes, the numbers, and what stays.
        self.system.memory.check_room(4 * count as usize * size_of::<u32>())?;
        let bytes = self.read(from, count as usize * 4)?;
        let mut groups: Vec<u32> = (0..count as usize).map(|index| u32_at(&bytes, index * 4)).collect();
        if groups.contains(&NOBODY) {
            return Err(Errno::EINVAL);
        }
        groups.sort_unstable();
        self.process.groups = (count != 0).then(|| groups.into());
        Ok(0)
    }

    /// Controls the process.
    pub fn prctl(&mut self, operation: u64, argument: u64) -> Result {
        const GET_DUMPABLE: u64 = 3;
        const SET_DUMPABLE: u64 = 4;
        const SET_NAME: u64 = 15;
        const GET_NAME: u64 = 16;
        const CAPBSET_READ: u64 = 23;
        const SET_NO_NEW_PRIVILEGES: u64 = 38;
        match operation {
            GET_DUMPABLE => Ok(1),
            SET_DUMPABLE | SET_NO_NEW_PRIVILEGES => Ok(0),
            SET_NAME => {
                let name = match self.read_string(argument, 16)? {
                    Some(name) => name,
                    None => self.read(argument, 15)?,
                };
                self.process.thread_mut().set_name(&name);
                Ok(0)
            }
            GET_NAME => {
                let name = self.process.thread().name;
                self.write(argument, &name).map(|()| 0)
            }
            CAPBSET_READ if argument <= 40 => Ok(1),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Sets which word is cleared when the thread ends. Returns the thread's number.
    pub fn set_clear_at_end(&mut self, address: u64) -> u32 {
        let thread = self.process.thread_mut();
        thread.clear_at_end = address;
        thread.id
    }

    /// Reads the description of the system.
    pub fn uname(&mut self, into: u64) -> Result {
        let texts = system_name();
        let mut record = vec![0; UNAME * texts.len()];
        for (text, field) in texts.iter().zip(record.chunks_exact_mut(UNAME)) {
            field[..text.len()].copy_from_slice(text.as_bytes());
        }
        self.write(into, &record).map(|()| 0)
    }

    /// Reads how much memory there is.
    pub fn sysinfo(&mut self, into: u64) -> Result {
        const SIZE: usize = 112;
        let uptime = self.system.memory.hardware.monotonic().as_secs();
        let (total, free) = (self.system.memory.pool.total() as u64, self.system.memory.pool.free() as u64);
        let words = [uptime, 0, 0, 0, total * 4096, free * 4096, 0, 0, 0, 0, 1];
        let mut record: Vec<u8> = words.iter().flat_map(|word| u64::to_le_bytes(*word)).collect();
        record.resize(SIZE, 0);
        // The unit of the sizes is a byte.
        record[104] = 1;
        self.write(into, &record).map(|()| 0)
    }

    /// Reads random bytes.
    pub fn getrandom(&mut self, into: u64, length: u64) -> Result {
        let mut bytes = vec![0; length.min(256) as usize];
        let mut done = 0;
        while done < length {
            let part = (length - done).min(bytes.len() as u64) as usize;
            self.system.memory.hardware.random(&mut bytes[..part]);
            let place = into.checked_add(done).ok_or(Errno::EFAULT)?;
            let chunk = bytes[..part].to_vec();
            self.write(place, &chunk)?;
            done += part as u64;
        }
        Ok(done)
    }
}
