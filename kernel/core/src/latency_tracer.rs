//! The latency tracer: the kernel measures how long interrupts are off.
//!
//! ```text
//!   user mode │ entry ── operation ─ point │ handler │ point ─── operation ── exit │ user mode
//!   on        │ off                        │ off     │ off                         │ on
//!             └ begin                  end ┘ begin…end └ begin                 end ┘
//! ```
//! An *interrupts-off interval* lies between two moments at which an interrupt could have been taken. It counts for the
//! path on which it began: the reason for which the kernel was entered or, after a preemption point, the operation that
//! passed it. So if a switch at a preemption point continues another thread's operation, the interval up to the next
//! preemption point counts for the first operation.
//!
//! Lengths are in retired instructions. The reading at the beginning comes a few instructions late and that at the end
//! a few early, because registers must be saved and restored. The code that ends an interval says how many instructions
//! were missed at most ([`edge`]), and they are added, so no figure is too small. Instructions of the tracer itself
//! within an interval count, too.
//!
//! Kernels without the feature `latency-tracer` contain none of this: [`MEASURING`] is a constant.

use tench_abi::object::entry_path;

use crate::{Arch, Kernel, State};

/// True in a measuring kernel.
pub const MEASURING: bool = cfg!(feature = "latency-tracer");

/// Number of paths.
const PATHS: usize = entry_path::LIMIT as usize;

/// Mask of the counter's bits, of which a machine may have no more than 32.
const COUNTER: u64 = u32::MAX as u64;

/// Maximum number of instructions that the two readings of an interval miss: those from the entry to the reading (two,
/// inside the kernel twelve), and those after the reading at the end, counted in the assembly.
pub mod edge {
    /// Before and after a preemption point: masking and barriers.
    pub const PREEMPTION_POINT: u64 = 8;
    /// Return to user mode through the code that loads all registers.
    pub const RESUME: u64 = 36;
    /// Return to user mode through the hand-off of a fast message.
    pub const HAND_OFF: u64 = 56;
    /// Return to user mode, to the caller of a fast path.
    pub const HAND_BACK: u64 = 36;
    /// End of an interrupt handler in the kernel.
    pub const KERNEL_INTERRUPT: u64 = 32;
}

/// Measurements of one path.
#[derive(Clone, Copy, Default)]
pub struct Record {
    /// The reset to which the record belongs; a record of an earlier reset counts as empty.
    age: u64,
    /// Length of the longest interval.
    pub longest: u64,
    /// Kernel address where the longest interval began.
    pub address: u64,
    /// Number of intervals.
    pub count: u64,
    /// The sum of their lengths.
    pub sum: u64,
    /// The sum of the squares of their lengths.
    pub squares: u64,
}

/// The tracer's state. The assembly writes the first three fields, too.
#[repr(C)]
pub struct LatencyTracer {
    /// Counter reading at which the interval began.
    pub start: u64,
    /// Path on which the interval began.
    pub path: u64,
    /// Kernel address at which the interval began.
    pub address: u64,
    /// Path of the operation that was continued by a switch in this interval, plus 1; 0 for none.
    resumed: u64,
    /// Counter reading at which the last timer interrupt entered the kernel.
    timer: u64,
    /// Number of resets.
    age: u64,
    /// Set once a program has run. The interval before that is boot, and does not count.
    booted: bool,
    /// Records, by path.
    records: [Record; PATHS],
}

impl LatencyTracer {
    /// Ends an interval at this counter reading, which misses `missed` instructions. Returns the path of the current
    /// operation.
    fn end_interval(&mut self, now: u64, missed: u64) -> u64 {
        let under_way = match core::mem::take(&mut self.resumed) {
            0 => self.path,
            resumed => resumed - 1,
        };
        if !core::mem::replace(&mut self.booted, true) {
            return under_way;
        }
        let length = (now.wrapping_sub(self.start) & COUNTER) + missed;
        let (age, address) = (self.age, self.address);
        if let Some(record) = self.records.get_mut(self.path as usize) {
            if record.age != age {
                *record = Record { age, ..Record::default() };
            }
            if length > record.longest {
                (record.longest, record.address) = (length, address);
            }
            record.count += 1;
            record.sum += length;
            record.squares = record.squares.saturating_add(length * length);
        }
        under_way
    }

    /// Returns the record of a path.
    fn record(&self, path: u64) -> Option<Record> {
        let record = *self.records.get(path as usize)?;
        Some(if record.age == self.age { record } else { Record::default() })
    }
}

#[cfg(feature = "latency-tracer")]
impl<A> State<A> {
    /// Returns the tracer's state.
    #[inline(always)]
    fn tracer(&mut self) -> Option<&mut LatencyTracer> {
        Some(&mut self.latency_tracer)
    }
}

#[cfg(not(feature = "latency-tracer"))]
impl<A> State<A> {
    /// Returns `None`: this kernel does not measure.
    #[inline(always)]
    fn tracer(&mut self) -> Option<&mut LatencyTracer> {
        None
    }
}

/// Ends an interval before interrupts are let in; `missed` is one of [`edge`]. Returns the path of the current
/// operation.
#[inline(always)]
pub fn end_interval<A: Arch>(k: &mut Kernel<A>, missed: u64) -> u64 {
    if !MEASURING {
        return 0;
    }
    let now = k.arch().instructions();
    k.state().tracer().map_or(0, |tracer| tracer.end_interval(now, missed))
}

/// Begins an interval on this path, at this kernel address, after interrupts have been switched off.
#[inline(always)]
pub fn begin_interval<A: Arch>(k: &mut Kernel<A>, path: u64, address: usize) {
    if MEASURING {
        let now = k.arch().instructions();
        if let Some(tracer) = k.state().tracer() {
            (tracer.start, tracer.path, tracer.address) = (now, path, address as u64);
        }
    }
}

/// Records that a switch has continued an operation on this path, in the interval of another.
#[inline(always)]
pub fn goes_on<A: Arch>(k: &mut Kernel<A>, path: u64) {
    if let Some(tracer) = k.state().tracer() {
        tracer.resumed = path + 1;
    }
}

/// Sets the path of the interval when the reason for entering the kernel is known.
#[inline(always)]
pub fn entered<A: Arch>(k: &mut Kernel<A>, path: u64) {
    if let Some(tracer) = k.state().tracer() {
        tracer.path = path;
    }
}

/// Records that the interval began with a timer interrupt.
#[inline(always)]
pub fn timer<A: Arch>(k: &mut Kernel<A>) {
    if let Some(tracer) = k.state().tracer() {
        tracer.timer = tracer.start;
    }
}

/// Returns the results of `KernelIrqOff`; `None` for a path that does not exist, and if this kernel does not
/// measure.
pub fn results<A: Arch>(k: &mut Kernel<A>, path: u64) -> Option<[u64; 5]> {
    let tracer = k.state().tracer()?;
    match path {
        entry_path::RESET => {
            tracer.age += 1;
            Some([0; 5])
        }
        entry_path::TIMER => Some([tracer.timer, 0, 0, 0, 0]),
        _ => tracer.record(path).map(|r| [r.longest, r.address, r.count, r.sum, r.squares]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> LatencyTracer {
        LatencyTracer {
            start: 0,
            path: 0,
            address: 0,
            resumed: 0,
            timer: 0,
            age: 0,
            booted: true,
            records: [Record::default(); PATHS],
        }
    }

    fn interval_of(tracer: &mut LatencyTracer, path: u64, address: u64, from: u64, to: u64) -> u64 {
        (tracer.start, tracer.path, tracer.address) = (from, path, address);
        tracer.end_interval(to, 10)
    }

    #[test]
    fn the_longest_is_kept_with_its_address_and_all_are_summed() {
        let mut tracer = fresh();
        interval_of(&mut tracer, 5, 0x100, 1000, 1090);
        interval_of(&mut tracer, 5, 0x200, 2000, 2190);
        interval_of(&mut tracer, 5, 0x300, 3000, 3040);
        let r = tracer.record(5).unwrap();
        assert_eq!((r.longest, r.address, r.count, r.sum), (200, 0x200, 3, 100 + 200 + 50));
        assert_eq!(r.squares, 100 * 100 + 200 * 200 + 50 * 50);
        assert_eq!(tracer.record(6).unwrap().count, 0);
        assert!(tracer.record(entry_path::LIMIT).is_none());
    }

    #[test]
    fn the_counter_may_wrap() {
        let mut tracer = fresh();
        interval_of(&mut tracer, 1, 0, COUNTER - 9, 10);
        assert_eq!(tracer.record(1).unwrap().longest, 30);
    }

    #[test]
    fn a_reset_discards_earlier_records() {
        let mut tracer = fresh();
        interval_of(&mut tracer, 1, 7, 0, 500);
        tracer.age += 1;
        assert_eq!(tracer.record(1).unwrap().longest, 0);
        interval_of(&mut tracer, 1, 8, 0, 20);
        let r = tracer.record(1).unwrap();
        assert_eq!((r.longest, r.address, r.count, r.sum), (30, 8, 1, 30));
    }

    /// A switch at a preemption point of operation 16 to a thread that continues with operation 25: the interval counts
    /// for 16, and the next for 25.
    #[test]
    fn an_interval_counts_for_the_path_on_which_it_began() {
        let mut tracer = fresh();
        (tracer.start, tracer.path, tracer.resumed) = (0, 16, 25 + 1);
        assert_eq!(tracer.end_interval(90, 10), 25);
        assert_eq!(tracer.record(16).unwrap().longest, 100);
        assert_eq!(interval_of(&mut tracer, 25, 0, 100, 110), 25);
        assert_eq!(tracer.record(25).unwrap().count, 1);
    }

    #[test]
    fn boot_is_no_interval() {
        let mut tracer = LatencyTracer { booted: false, ..fresh() };
        interval_of(&mut tracer, 0, 0, 0, 400_000);
        assert_eq!(tracer.record(0).unwrap().count, 0);
    }
}
