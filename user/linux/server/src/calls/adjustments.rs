//! The calls that adjust the real-time clock, made by programs that follow another clock.

use core::time::Duration;

use tench_linux_calls::numbers::capability;
use tench_linux_calls::records::{timex, u32_at, u64_at};
use tench_linux_files::Errno;

use super::time::REALTIME;
use crate::Machine;
use crate::caller::{Caller, Result};

/// Bits of `modes`: the facts to be changed.
mod change {
    pub const OFFSET: u32 = 1;
    pub const FREQUENCY: u32 = 2;
    pub const MAX_ERROR: u32 = 4;
    pub const ERROR: u32 = 8;
    pub const STATUS: u32 = 0x10;
    pub const CONSTANT: u32 = 0x20;
    pub const TAI: u32 = 0x80;
    pub const TIME: u32 = 0x100;
    pub const MICROSECONDS: u32 = 0x1000;
    pub const NANOSECONDS: u32 = 0x2000;
    pub const TICK: u32 = 0x4000;
    /// The call is `adjtime`. `NANOSECONDS` then means that nothing is changed.
    pub const ONCE: u32 = 0x8000;
}

/// Bit of the status: the clock follows no other clock.
const UNSYNCHRONISED: u32 = 0x40;
/// Bit of the status: offsets and times are in nanoseconds.
const NANO: u32 = 0x2000;
/// Bits of the status that programs cannot set.
const READ_ONLY: u32 = 0xff00;
/// The error of a clock that follows no other, in microseconds.
const UNKNOWN_ERROR: u64 = 16_000_000;
/// The call's result if the clock follows no other (`TIME_ERROR`).
const HAS_ERROR: u64 = 5;
/// The largest offset in nanoseconds, the largest frequency and the largest constant.
const MAX_OFFSET: i64 = 500_000_000;
const MAX_FREQUENCY: i64 = 500 << 16;
const MAX_CONSTANT: i64 = 10;
/// A frequency beyond this is refused; one beyond [`MAX_FREQUENCY`] is reduced to that.
const POSSIBLE_FREQUENCY: u64 = i64::MAX.unsigned_abs() / (1000 << 16);

/// Facts about the real-time clock that programs have set.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment {
    status: u32,
    frequency: i64,
    max_error: u64,
    error: u64,
    constant: i64,
    tick: u64,
    tai: u32,
}

impl Default for Adjustment {
    fn default() -> Adjustment {
        Adjustment {
            status: UNSYNCHRONISED,
            frequency: 0,
            max_error: UNKNOWN_ERROR,
            error: UNKNOWN_ERROR,
            constant: 2,
            tick: 10_000,
            tai: 0,
        }
    }
}

impl Adjustment {
    /// Takes the facts that `modes` names from a record, except the time.
    fn change(&mut self, modes: u32, record: &[u8]) {
        let signed = |offset| u64_at(record, offset).cast_signed();
        if modes & change::STATUS != 0 {
            self.status = self.status & READ_ONLY | u32_at(record, timex::STATUS) & !READ_ONLY;
        }
        if modes & change::NANOSECONDS != 0 {
            self.status |= NANO;
        }
        if modes & change::MICROSECONDS != 0 {
            self.status &= !NANO;
        }
        if modes & change::FREQUENCY != 0 {
            self.frequency = signed(timex::FREQUENCY).clamp(-MAX_FREQUENCY, MAX_FREQUENCY);
        }
        if modes & change::MAX_ERROR != 0 {
            self.max_error = u64_at(record, timex::MAX_ERROR).min(UNKNOWN_ERROR);
        }
        if modes & change::ERROR != 0 {
            self.error = u64_at(record, timex::ERROR).min(UNKNOWN_ERROR);
        }
        if modes & change::CONSTANT != 0 {
            let more = if self.status & NANO != 0 { 0 } else { 4 };
            self.constant = signed(timex::CONSTANT).clamp(0, MAX_CONSTANT).saturating_add(more).clamp(0, MAX_CONSTANT);
        }
        if modes & change::TAI != 0 && (0..=100_000).contains(&signed(timex::CONSTANT)) {
            self.tai = u64_at(record, timex::CONSTANT) as u32;
        }
        if modes & change::TICK != 0 {
            self.tick = u64_at(record, timex::TICK);
        }
    }

    /// Writes the facts and the time into a record.
    fn write(&self, record: &mut [u8; timex::SIZE], now: Duration) {
        let parts = if self.status & NANO != 0 { now.subsec_nanos() } else { now.subsec_micros() };
        let words = [
            (timex::FREQUENCY, self.frequency.cast_unsigned()),
            (timex::MAX_ERROR, self.max_error),
            (timex::ERROR, self.error),
            (timex::CONSTANT, self.constant.cast_unsigned()),
            (timex::PRECISION, 1),
            (timex::TOLERANCE, MAX_FREQUENCY.cast_unsigned()),
            (timex::SECONDS, now.as_secs()),
            (timex::PARTS, parts.into()),
            (timex::TICK, self.tick),
        ];
        for (offset, word) in words {
            record[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        }
        record[timex::STATUS..timex::STATUS + 4].copy_from_slice(&self.status.to_le_bytes());
        // The fields about a pulse per second are 0: nothing measures one.
        record[timex::SIGNAL..timex::TAI].fill(0);
        record[timex::TAI..timex::TAI + 4].copy_from_slice(&self.tai.to_le_bytes());
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Reads and changes the real-time clock's adjustment. Returns whether the clock has an error. An adjustment moves
    /// the clock at once, where Linux changes its rate.
    pub fn clock_adjtime(&mut self, clock: u64, place: u64) -> Result {
        let mut record: [u8; timex::SIZE] = self.read_record(place)?;
        if clock as u32 != REALTIME {
            self.read_clock(clock)?;
            return Err(Errno::EOPNOTSUPP);
        }
        let modes = u32_at(&record, timex::MODES);
        self.check_adjustment(modes, &record)?;
        let offset = u64_at(&record, timex::OFFSET).cast_signed();
        if modes & change::ONCE != 0 {
            if modes & change::NANOSECONDS == 0 {
                self.move_date(Duration::from_micros(offset.unsigned_abs()), offset < 0)?;
            }
        } else {
            self.adjust(modes, &record, offset)?;
        }
        // No offset remains, since the clock was moved at once.
        record[timex::OFFSET..timex::OFFSET + 8].fill(0);
        let adjustment = self.system.adjustment;
        adjustment.write(&mut record, self.system.date());
        self.write(place, &record)?;
        Ok(if adjustment.status & UNSYNCHRONISED != 0 { HAS_ERROR } else { 0 })
    }

    /// Fails with `EINVAL` if the adjustment is impossible, and with `EPERM` if the caller may not make it.
    fn check_adjustment(&self, modes: u32, record: &[u8]) -> Result<()> {
        let may = self.identity().has(capability::SYS_TIME);
        if modes & change::ONCE != 0 {
            if modes & change::OFFSET == 0 {
                return Err(Errno::EINVAL);
            }
            return if may || modes & change::NANOSECONDS != 0 { Ok(()) } else { Err(Errno::EPERM) };
        }
        if modes != 0 && !may {
            return Err(Errno::EPERM);
        }
        if modes & change::TICK != 0 && !(9_000..=11_000).contains(&u64_at(record, timex::TICK)) {
            return Err(Errno::EINVAL);
        }
        let frequency = u64_at(record, timex::FREQUENCY).cast_signed();
        if modes & change::FREQUENCY != 0 && frequency.unsigned_abs() > POSSIBLE_FREQUENCY {
            return Err(Errno::EINVAL);
        }
        let whole = if modes & change::NANOSECONDS != 0 { 1_000_000_000 } else { 1_000_000 };
        if modes & change::TIME != 0 && u64_at(record, timex::PARTS) >= whole {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// Makes an adjustment that was checked.
    fn adjust(&mut self, modes: u32, record: &[u8], offset: i64) -> Result<()> {
        if modes & change::TIME != 0 {
            let (seconds, parts) = (u64_at(record, timex::SECONDS).cast_signed(), u64_at(record, timex::PARTS));
            let parts = if modes & change::NANOSECONDS != 0 { parts } else { parts * 1000 };
            let parts = Duration::from_nanos(parts);
            let whole = Duration::from_secs(seconds.unsigned_abs());
            match seconds < 0 {
                true => self.move_date(whole.saturating_sub(parts), true)?,
                false => self.move_date(whole.saturating_add(parts), false)?,
            }
        }
        self.system.adjustment.change(modes, record);
        const FOLLOWS: u32 = 1;
        if modes & change::OFFSET != 0 && self.system.adjustment.status & FOLLOWS != 0 {
            let unit = if self.system.adjustment.status & NANO != 0 { 1 } else { 1000 };
            let offset = offset.saturating_mul(unit).clamp(-MAX_OFFSET, MAX_OFFSET);
            self.move_date(Duration::from_nanos(offset.unsigned_abs()), offset < 0)?;
        }
        Ok(())
    }

    /// Moves the real-time clock.
    fn move_date(&mut self, by: Duration, is_back: bool) -> Result<()> {
        if by.is_zero() {
            return Ok(());
        }
        let date = self.system.date();
        let date = if is_back { date.checked_sub(by) } else { date.checked_add(by) };
        self.set_date(date.ok_or(Errno::EINVAL)?)
    }
}
