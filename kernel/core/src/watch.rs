//! How long interrupts are off, measured by the kernel itself.
//!
//! ```text
//!   user mode │ entry ── operation ── window │ handler │ window ── operation ── exit │ user mode
//!   on        │ off                          │ off     │ off                         │ on
//!             └ begin                    end ┘ begin…end └ begin                 end ┘
//! ```
//! A *stretch* is what runs between two moments at which an interrupt could have been taken. It counts for the path on
//! which it began: what the kernel was entered for, or, from a window on, the operation whose window that was; so if
//! another thread's operation goes on after a switch in a window, the stretch up to that one's next window is the first
//! operation's. Lengths are in retired instructions. The reading at a stretch's beginning comes a few instructions
//! late, that at its end a few early, because registers must be saved and restored; whoever ends a stretch says how
//! many were missed at most ([`edge`]), and they are added, so no figure is too small. Instructions of the measuring
//! itself that lie inside a stretch are counted too.
//!
//! Kernels built without the feature `watch` contain none of this: [`WATCHING`] is a constant.

use tench_abi::object::stretch;

use crate::{Arch, Kernel, State};

/// Whether this kernel measures.
pub const WATCHING: bool = cfg!(feature = "watch");

/// Paths that are told apart.
const PATHS: usize = stretch::LIMIT as usize;

/// The counter may have no more bits than these.
const COUNTER: u64 = u32::MAX as u64;

/// Instructions of a stretch that its two readings miss, at most: those of the entry up to the reading (two, in the
/// kernel twelve), and those behind the reading at its end, counted in the assembly.
pub mod edge {
    /// Up to a window, and from its end: masking and barriers.
    pub const WINDOW: u64 = 8;
    /// Up to user mode, through the code that loads all registers.
    pub const RESUME: u64 = 36;
    /// Up to user mode, through the hand-off of a fast message.
    pub const HAND_OFF: u64 = 56;
    /// Up to user mode, back to the caller of a fast path.
    pub const HAND_BACK: u64 = 36;
    /// Up to the end of an interrupt in the kernel.
    pub const KERNEL_INTERRUPT: u64 = 32;
}

/// What is known of a path.
#[derive(Clone, Copy, Default)]
pub struct Record {
    /// Which reset it comes after; what is older counts as nothing.
    age: u64,
    /// The longest stretch.
    pub longest: u64,
    /// Where that began.
    pub place: u64,
    /// How many.
    pub count: u64,
    /// The sum of their lengths.
    pub sum: u64,
    /// The sum of the squares of their lengths.
    pub squares: u64,
}

/// What the kernel remembers. The first three fields are written by the assembly, too.
#[repr(C)]
pub struct Watch {
    /// The counter where the stretch began.
    pub start: u64,
    /// The path on which it began.
    pub path: u64,
    /// The kernel's address where it began.
    pub place: u64,
    /// The operation that went on in this stretch after a switch, plus 1; 0 for none.
    resumed: u64,
    /// The counter when the last timer interrupt entered the kernel.
    timer: u64,
    /// How often everything was forgotten.
    age: u64,
    /// Whether a program has run: what comes before is boot.
    booted: bool,
    /// By path.
    records: [Record; PATHS],
}

impl Watch {
    /// A stretch ends, at this reading of the counter; `missed` instructions are not in it. Answers the path of the
    /// operation that is under way.
    fn end(&mut self, now: u64, missed: u64) -> u64 {
        let under_way = match core::mem::take(&mut self.resumed) {
            0 => self.path,
            resumed => resumed - 1,
        };
        if !core::mem::replace(&mut self.booted, true) {
            return under_way;
        }
        let length = (now.wrapping_sub(self.start) & COUNTER) + missed;
        let (age, place) = (self.age, self.place);
        if let Some(record) = self.records.get_mut(self.path as usize) {
            if record.age != age {
                *record = Record { age, ..Record::default() };
            }
            if length > record.longest {
                (record.longest, record.place) = (length, place);
            }
            record.count += 1;
            record.sum += length;
            record.squares = record.squares.saturating_add(length * length);
        }
        under_way
    }

    /// What is known of a path.
    fn record(&self, path: u64) -> Option<Record> {
        let record = *self.records.get(path as usize)?;
        Some(if record.age == self.age { record } else { Record::default() })
    }
}

#[cfg(feature = "watch")]
impl<A> State<A> {
    /// What is measured.
    #[inline(always)]
    fn watch(&mut self) -> Option<&mut Watch> {
        Some(&mut self.watch)
    }
}

#[cfg(not(feature = "watch"))]
impl<A> State<A> {
    /// Nothing is measured.
    #[inline(always)]
    fn watch(&mut self) -> Option<&mut Watch> {
        None
    }
}

/// Interrupts come on; `missed` is one of [`edge`]. Answers the path of the operation that is under way.
#[inline(always)]
pub fn end<A: Arch>(k: &mut Kernel<A>, missed: u64) -> u64 {
    if !WATCHING {
        return 0;
    }
    let now = k.arch().instructions();
    k.state().watch().map_or(0, |watch| watch.end(now, missed))
}

/// Interrupts have gone off, on this path, at this address of the kernel's.
#[inline(always)]
pub fn begin<A: Arch>(k: &mut Kernel<A>, path: u64, place: usize) {
    if WATCHING {
        let now = k.arch().instructions();
        if let Some(watch) = k.state().watch() {
            (watch.start, watch.path, watch.place) = (now, path, place as u64);
        }
    }
}

/// An operation on this path goes on after a switch, in the stretch of another.
#[inline(always)]
pub fn goes_on<A: Arch>(k: &mut Kernel<A>, path: u64) {
    if let Some(watch) = k.state().watch() {
        watch.resumed = path + 1;
    }
}

/// What the kernel was entered for is known now.
#[inline(always)]
pub fn entered<A: Arch>(k: &mut Kernel<A>, path: u64) {
    if let Some(watch) = k.state().watch() {
        watch.path = path;
    }
}

/// The interrupt with which this stretch began was the timer's.
#[inline(always)]
pub fn timer<A: Arch>(k: &mut Kernel<A>) {
    if let Some(watch) = k.state().watch() {
        watch.timer = watch.start;
    }
}

/// The answer to `KernelStretches`; `None` for a path that does not exist or if nothing is measured.
pub fn answer<A: Arch>(k: &mut Kernel<A>, path: u64) -> Option<[u64; 5]> {
    let watch = k.state().watch()?;
    match path {
        stretch::RESET => {
            watch.age += 1;
            Some([0; 5])
        }
        stretch::TIMER => Some([watch.timer, 0, 0, 0, 0]),
        _ => watch.record(path).map(|r| [r.longest, r.place, r.count, r.sum, r.squares]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Watch {
        Watch {
            start: 0,
            path: 0,
            place: 0,
            resumed: 0,
            timer: 0,
            age: 0,
            booted: true,
            records: [Record::default(); PATHS],
        }
    }

    fn stretch_of(watch: &mut Watch, path: u64, place: u64, from: u64, to: u64) -> u64 {
        (watch.start, watch.path, watch.place) = (from, path, place);
        watch.end(to, 10)
    }

    #[test]
    fn the_longest_is_kept_with_its_place_and_all_are_summed() {
        let mut watch = fresh();
        stretch_of(&mut watch, 5, 0x100, 1000, 1090);
        stretch_of(&mut watch, 5, 0x200, 2000, 2190);
        stretch_of(&mut watch, 5, 0x300, 3000, 3040);
        let r = watch.record(5).unwrap();
        assert_eq!((r.longest, r.place, r.count, r.sum), (200, 0x200, 3, 100 + 200 + 50));
        assert_eq!(r.squares, 100 * 100 + 200 * 200 + 50 * 50);
        assert_eq!(watch.record(6).unwrap().count, 0);
        assert!(watch.record(stretch::LIMIT).is_none());
    }

    #[test]
    fn the_counter_may_wrap() {
        let mut watch = fresh();
        stretch_of(&mut watch, 1, 0, COUNTER - 9, 10);
        assert_eq!(watch.record(1).unwrap().longest, 30);
    }

    #[test]
    fn what_was_before_a_reset_counts_as_nothing() {
        let mut watch = fresh();
        stretch_of(&mut watch, 1, 7, 0, 500);
        watch.age += 1;
        assert_eq!(watch.record(1).unwrap().longest, 0);
        stretch_of(&mut watch, 1, 8, 0, 20);
        let r = watch.record(1).unwrap();
        assert_eq!((r.longest, r.place, r.count, r.sum), (30, 8, 1, 30));
    }

    /// A switch in a window of operation 16 to a thread that goes on with operation 25: the stretch is 16's, and the
    /// next 25's.
    #[test]
    fn a_stretch_is_of_the_path_on_which_it_began() {
        let mut watch = fresh();
        (watch.start, watch.path, watch.resumed) = (0, 16, 25 + 1);
        assert_eq!(watch.end(90, 10), 25);
        assert_eq!(watch.record(16).unwrap().longest, 100);
        assert_eq!(stretch_of(&mut watch, 25, 0, 100, 110), 25);
        assert_eq!(watch.record(25).unwrap().count, 1);
    }

    #[test]
    fn boot_is_no_stretch() {
        let mut watch = Watch { booted: false, ..fresh() };
        stretch_of(&mut watch, 0, 0, 0, 400_000);
        assert_eq!(watch.record(0).unwrap().count, 0);
    }
}
