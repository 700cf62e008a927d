//! Calls about the process and the system.

use alloc::vec;
use alloc::vec::Vec;

use tench_linux_calls::numbers::capability;
use tench_linux_files::Errno;

use super::transfer::MAX_TRANSFER;
use crate::Machine;
use crate::caller::{Caller, Result};

/// Length of a string in the description of the system.
const UNAME: usize = 65;

/// Returns the description of the system: its type, release, version and machine.
pub(crate) const fn system_name() -> [&'static str; 4] {
    ["Linux", "6.1.0", "#1 SMP Tench", "aarch64"]
}

/// Indexes into [`System::names`](crate::System).
pub(crate) const HOST: usize = 0;
pub(crate) const DOMAIN: usize = 1;

impl<M: Machine> Caller<'_, M> {
    /// Reads and sets how programs run. There is one way: what can be asked for is what is so anyhow.
    pub fn personality(&mut self, new: u64) -> Result {
        const ONLY_READ: u32 = u32::MAX;
        /// Addresses do not differ from run to run.
        const SAME_ADDRESSES: u32 = 0x4_0000;
        let old = self.process.personality;
        match new as u32 {
            ONLY_READ => {}
            new @ (0 | SAME_ADDRESSES) => self.process.personality = new,
            _ => return Err(Errno::EINVAL),
        }
        Ok(old.into())
    }

    /// Controls the process.
    pub fn prctl(&mut self, operation: u64, arguments: [u64; 4]) -> Result {
        const SET_END_OF_PARENT: u64 = 1;
        const GET_END_OF_PARENT: u64 = 2;
        const SET_NAME: u64 = 15;
        const GET_NAME: u64 = 16;
        const GET_SECCOMP: u64 = 21;
        const SET_SECCOMP: u64 = 22;
        if let Some(result) = self.control_power(operation, arguments) {
            return result;
        }
        let argument = arguments[0];
        match operation {
            SET_END_OF_PARENT => self.set_end_of_parent(argument),
            GET_END_OF_PARENT => {
                let signal = self.process.thread().end_of_parent;
                self.write(argument, &signal.to_le_bytes()).map(|()| 0)
            }
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
            GET_SECCOMP => Ok(self.filtering()),
            SET_SECCOMP => self.set_filtering(argument, arguments[1]),
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
        let [kind, release, version, machine] = system_name().map(str::as_bytes);
        let [host, domain] = &self.system.names;
        let texts = [kind, host, release, version, machine, domain];
        let mut record = vec![0; UNAME * texts.len()];
        for (text, field) in texts.iter().zip(record.chunks_exact_mut(UNAME)) {
            field[..text.len()].copy_from_slice(text);
        }
        self.write(into, &record).map(|()| 0)
    }

    /// Sets the host name or the domain name.
    pub fn set_name(&mut self, which: usize, from: u64, length: u64) -> Result {
        if !self.identity().has(capability::SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        let length = length as u32 as usize;
        if length >= UNAME {
            return Err(Errno::EINVAL);
        }
        self.system.names[which] = self.read(from, length)?;
        Ok(0)
    }

    /// Reads how much memory there is.
    pub fn sysinfo(&mut self, into: u64) -> Result {
        const SIZE: usize = 112;
        let uptime = self.system.memory.hardware.monotonic().as_secs();
        let (total, free) = self.system.count_pages();
        let words = [uptime, 0, 0, 0, total * 4096, free * 4096, 0, 0, 0, 0, 1];
        let mut record: Vec<u8> = words.iter().flat_map(|word| u64::to_le_bytes(*word)).collect();
        record.resize(SIZE, 0);
        // The unit of the sizes is a byte.
        record[104] = 1;
        self.write(into, &record).map(|()| 0)
    }

    /// Reads random bytes.
    pub fn getrandom(&mut self, into: u64, length: u64) -> Result {
        /// Number of bytes after which others are served.
        const PART: u64 = 1 << 20;
        let length = length.min(MAX_TRANSFER);
        let mut bytes = [0; 256];
        let mut done = self.done();
        let last = length.min(done + PART);
        while done < last {
            let part = &mut bytes[..(last - done).min(256) as usize];
            self.system.memory.hardware.random(part);
            let count = into.checked_add(done).map_or(0, |place| self.copy_to(place, part));
            done += count as u64;
            if count < part.len() {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
            }
        }
        if done == length { Ok(done) } else { Err(self.let_others_be_served(done)) }
    }
}
