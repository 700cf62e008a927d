//! Calls about time.

use core::time::Duration;

use tench_linux_calls::records::{timespec, u64_at};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};

/// Ticks per second of what `times` returns.
const TICKS: u128 = 100;

fn record(time: Duration) -> [u8; 16] {
    let mut record = [0; timespec::SIZE];
    record[..8].copy_from_slice(&time.as_secs().to_le_bytes());
    record[8..].copy_from_slice(&u64::from(time.subsec_nanos()).to_le_bytes());
    record
}

impl<M: Machine> Caller<'_, M> {
    /// Returns the reading of a clock.
    fn clock(&self, clock: u64) -> Result<Duration> {
        match clock as u32 {
            0 | 5 | 8 | 11 => Ok(self.system.memory.hardware.realtime()),
            // There is one process, whose time is nearly all there is.
            1..=4 | 6 | 7 | 9 => Ok(self.system.memory.hardware.monotonic()),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Reads a clock.
    pub fn clock_gettime(&mut self, clock: u64, into: u64) -> Result {
        let time = self.clock(clock)?;
        self.write(into, &record(time)).map(|()| 0)
    }

    /// Reads the resolution of a clock.
    pub fn clock_getres(&mut self, clock: u64, into: u64) -> Result {
        self.clock(clock)?;
        let is_coarse = clock == 5 || clock == 6;
        let resolution = Duration::from_nanos(if is_coarse { 4_000_000 } else { 1 });
        self.write_if_wanted(into, &record(resolution)).map(|()| 0)
    }

    /// Reads the time of day.
    pub fn gettimeofday(&mut self, into: u64, zone: u64) -> Result {
        let now = self.system.memory.hardware.realtime();
        let words = [now.as_secs(), now.subsec_micros().into()];
        self.write_if_wanted(into, &words.map(u64::to_le_bytes).concat())?;
        self.write_if_wanted(zone, &[0; 8]).map(|()| 0)
    }

    /// Reads a span of time.
    fn read_time(&mut self, address: u64) -> Result<Duration> {
        let record: [u8; timespec::SIZE] = self.read_record(address)?;
        let (seconds, nanoseconds) = (u64_at(&record, timespec::SECONDS), u64_at(&record, timespec::NANOSECONDS));
        if seconds.cast_signed() < 0 || nanoseconds >= 1_000_000_000 {
            return Err(Errno::EINVAL);
        }
        Ok(Duration::new(seconds, nanoseconds as u32))
    }

    /// Waits.
    pub fn nanosleep(&mut self, time: u64) -> Result {
        let time = self.read_time(time)?;
        self.system.memory.hardware.sleep(time);
        Ok(0)
    }

    /// Waits for so long, or until a clock shows a time.
    pub fn clock_nanosleep(&mut self, clock: u64, flags: u64, time: u64) -> Result {
        const ABSOLUTE: u64 = 1;
        let now = self.clock(clock)?;
        let time = self.read_time(time)?;
        let time = if flags & ABSOLUTE != 0 { time.saturating_sub(now) } else { time };
        self.system.memory.hardware.sleep(time);
        Ok(0)
    }

    /// Reads how long the process has run. Returns the time in ticks.
    pub fn times(&mut self, into: u64) -> Result {
        let ticks = (self.system.memory.hardware.monotonic().as_millis() * TICKS / 1000) as u64;
        self.write_if_wanted(into, &[ticks, 0, 0, 0].map(u64::to_le_bytes).concat())?;
        Ok(ticks)
    }
}
