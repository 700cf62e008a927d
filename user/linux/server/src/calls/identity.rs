//! Calls about the process, its limits, and the system.

use alloc::vec;
use alloc::vec::Vec;

use tench_linux_calls::numbers::capability;
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::MAX_DESCRIPTORS;

/// Length of a string in the description of the system.
const UNAME: usize = 65;

/// Number of the limit of descriptors.
const DESCRIPTORS: u64 = 7;

/// Returns a limit, and how far it can be raised, of a process that may have so many descriptors.
pub(crate) const fn limits_of(resource: u64, descriptors: u32) -> Option<[u64; 2]> {
    const STACK: u64 = 3;
    const CORE: u64 = 4;
    const MEMORY_LOCK: u64 = 8;
    const NICE: u64 = 13;
    const REAL_TIME: u64 = 14;
    Some(match resource {
        STACK => [8 << 20, u64::MAX],
        CORE => [0, u64::MAX],
        DESCRIPTORS => [descriptors as u64, 1 << 20],
        MEMORY_LOCK => [8 << 20, 8 << 20],
        // Priorities: without the capability for it, nobody gets a higher one.
        NICE | REAL_TIME => [0, 0],
        0..16 => [u64::MAX, u64::MAX],
        _ => return None,
    })
}

/// Returns the description of the system: its type, name, release, version, machine and domain.
pub(crate) const fn system_name() -> [&'static str; 6] {
    ["Linux", "tench", "6.1.0", "#1 SMP Tench", "aarch64", "(none)"]
}

impl<M: Machine> Caller<'_, M> {
    /// Reads and sets how programs run: in one way only.
    pub fn personality(new: u64) -> Result {
        const ONLY_READ: u32 = u32::MAX;
        if matches!(new as u32, 0 | ONLY_READ) { Ok(0) } else { Err(Errno::EINVAL) }
    }

    /// Reads and sets a limit.
    pub fn prlimit64(&mut self, process: u64, resource: u64, new: u64, old: u64) -> Result {
        let id = if process as u32 == 0 { self.process.id } else { process as u32 };
        let is_own = self.process.index_of(id).is_ok();
        let others = self.others.owner(id).and_then(|owner| self.others.find(owner));
        let whose = if is_own { &*self.process } else { others.ok_or(Errno::ESRCH)? };
        if !is_own && !self.identity().may_limit(whose.identity()) {
            return Err(Errno::EPERM);
        }
        let (owner, before) = (whose.id, whose.descriptors.limit);
        let limits = limits_of(resource, before).ok_or(Errno::EINVAL)?;
        if new != 0 {
            let record: [u8; 16] = self.read_record(new)?;
            let [current, most] = [0, 8].map(|offset| tench_linux_calls::records::u64_at(&record, offset));
            if current > most {
                return Err(Errno::EINVAL);
            }
            if most > limits[1] && !self.identity().has(capability::SYS_RESOURCE) {
                return Err(Errno::EPERM);
            }
            let whose = if is_own { Some(&mut *self.process) } else { self.others.get(owner) };
            if let Some(process) = whose.filter(|_| resource == DESCRIPTORS) {
                process.descriptors.limit = current.min(1 << 20) as u32;
            }
        }
        self.write_if_wanted(old, &limits.map(u64::to_le_bytes).concat()).map(|()| 0)
    }

    /// Controls the process.
    pub fn prctl(&mut self, operation: u64, arguments: [u64; 4]) -> Result {
        const SET_NAME: u64 = 15;
        const GET_NAME: u64 = 16;
        if let Some(result) = self.control_power(operation, arguments) {
            return result;
        }
        let argument = arguments[0];
        match operation {
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

const _: () = assert!(MAX_DESCRIPTORS <= 1 << 20);
