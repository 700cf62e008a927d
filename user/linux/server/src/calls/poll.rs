//! Calls that wait for files. Nothing here makes anybody wait yet: all files are always ready.

use tench_linux_calls::records::{pollfd, u32_at};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};

/// Events that a file that is always ready has.
const READY: u16 = 0x145;
/// The descriptor is not open.
const NOT_OPEN: u16 = 0x20;

impl<M: Machine> Caller<'_, M> {
    /// Reads which of several descriptors are ready.
    pub fn ppoll(&mut self, records: u64, count: u64) -> Result {
        if count > u64::from(self.process.descriptors.limit) {
            return Err(Errno::EINVAL);
        }
        let mut all = self.read(records, count as usize * pollfd::SIZE)?;
        let mut ready = 0;
        for record in all.chunks_exact_mut(pollfd::SIZE) {
            let number = u32_at(record, pollfd::DESCRIPTOR);
            let wanted = u16::from_le_bytes([record[pollfd::EVENTS], record[pollfd::EVENTS + 1]]);
            let events = match self.descriptor(number.into()) {
                _ if number.cast_signed() < 0 => 0,
                Ok(_) => wanted & READY,
                Err(_) => NOT_OPEN,
            };
            record[pollfd::RESULT..].copy_from_slice(&events.to_le_bytes());
            ready += u64::from(events != 0);
        }
        self.write(records, &all)?;
        Ok(ready)
    }
}
