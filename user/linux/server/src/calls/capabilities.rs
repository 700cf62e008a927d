//! Calls about capabilities.

use tench_linux_calls::records::u32_at;
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::capabilities::Capabilities;
use crate::identity::Identity;

/// The version of the records that is told to who asks for another one.
const PREFERRED: u32 = 0x2008_0522;
/// Bytes of a record: 32 capabilities of each set.
const RECORD: usize = 12;

/// Returns the number of records of a version.
const fn records(version: u32) -> Option<usize> {
    match version {
        0x1998_0330 => Some(1),
        0x2007_1026 | PREFERRED => Some(2),
        _ => None,
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Reads the version in a header, and returns the number of records. If there is no such version, tells the
    /// preferred one.
    fn read_version(&mut self, header: u64) -> Result<usize> {
        let version = u32::from_le_bytes(self.read_record(header)?);
        match records(version) {
            Some(records) => Ok(records),
            None => {
                self.write(header, &PREFERRED.to_le_bytes())?;
                Err(Errno::EINVAL)
            }
        }
    }

    /// Reads the thread that a header names; 0 for the caller.
    fn read_thread(&mut self, header: u64) -> Result<u32> {
        Ok(u32::from_le_bytes(self.read_record(header.wrapping_add(4))?))
    }

    /// Reads the capabilities of a thread.
    pub fn capget(&mut self, header: u64, into: u64) -> Result {
        let records = match self.read_version(header) {
            // Who only asks for the version has got it.
            Err(Errno::EINVAL) | Ok(_) if into == 0 => return Ok(0),
            records => records?,
        };
        let thread = self.read_thread(header)?;
        if thread.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let Capabilities { effective, permitted, inheritable, .. } =
            self.scheduled(thread.into())?.identity.capabilities;
        let mut bytes = [0; 2 * RECORD];
        for (index, record) in bytes.chunks_exact_mut(RECORD).enumerate() {
            for (set, place) in [effective, permitted, inheritable].into_iter().zip(record.chunks_exact_mut(4)) {
                place.copy_from_slice(&((set >> (32 * index)) as u32).to_le_bytes());
            }
        }
        self.write(into, &bytes[..records * RECORD]).map(|()| 0)
    }

    /// Sets the capabilities of the caller.
    pub fn capset(&mut self, header: u64, from: u64) -> Result {
        let records = self.read_version(header)?;
        let thread = self.read_thread(header)?;
        let own = self.process.thread();
        if thread != 0 && thread != own.id {
            return Err(Errno::EPERM);
        }
        let before = own.identity.capabilities;
        let mut bytes = [0; 2 * RECORD];
        let given = &mut bytes[..records * RECORD];
        if self.copy_from(from, given) < given.len() {
            return Err(Errno::EFAULT);
        }
        let set = |offset: usize| u64::from(u32_at(&bytes, offset)) | u64::from(u32_at(&bytes, RECORD + offset)) << 32;
        let new = Capabilities { effective: set(0), permitted: set(4), inheritable: set(8), ..before };
        let capabilities = before.set(new)?;
        self.become_other(Identity { capabilities, ..self.identity().clone() });
        Ok(0)
    }
}
