//! The memory that two cores share, as lines of eight words.

use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::error::Unfit;

/// Words of a line.
pub const WORDS: usize = 8;
/// Bytes of a line.
pub const LINE: usize = 64;
/// Bytes of the smallest frame that [`Frame::at`] takes.
pub const SMALLEST: usize = 4 << 10;
/// Bytes of the largest.
pub const LARGEST: usize = 64 << 10;

/// A word that two cores use at the same time.
pub trait Word {
    /// Its value.
    fn load(&self, order: Ordering) -> u64;
    /// Sets it.
    fn store(&self, value: u64, order: Ordering);
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
}

/// Shared memory: a frame on the target, a vector in tests, words of a checker that tries all orders.
pub trait Memory: Clone {
    /// Its words.
    type Word: Word;

    /// How many lines it has; always the same.
    fn lines(&self) -> usize;

    /// A line; `index` is less than the number of lines.
    fn line(&self, index: usize) -> &[Self::Word; WORDS];

    /// A sequentially consistent fence: of two cores that each store, fence and load what the other stored, one sees
    /// it.
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

/// A line as it lies in memory.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Line([AtomicU64; WORDS]);

const _: () = assert!(size_of::<Line>() == LINE);

/// A mapped frame. It holds atomic words and nothing else, so whatever the peer writes there is a valid value.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'m>(&'m [Line]);

impl<'m> Frame<'m> {
    /// Made of lines, which are zero.
    pub fn of(lines: &'m [Line]) -> Frame<'m> {
        Frame(lines)
    }
}

impl Frame<'static> {
    /// The frame of `bytes` bytes that is mapped at `start`: a power of two from [`SMALLEST`] to [`LARGEST`], all zeros
    /// until either side opens a channel in it.
    ///
    /// Errors: `Size`, `Alignment`.
    ///
    /// # Safety
    /// The memory is mapped, readable and writable, and stays so as long as the frame, its copies or a channel in it
    /// are used. In this address space nothing but such values reaches it.
    pub unsafe fn at(start: NonNull<u8>, bytes: usize) -> Result<Frame<'static>, Unfit> {
        if !bytes.is_power_of_two() || !(SMALLEST..=LARGEST).contains(&bytes) {
            return Err(Unfit::Size(bytes));
        }
        if !start.addr().get().is_multiple_of(LINE) {
            return Err(Unfit::Alignment(start.addr().get()));
        }
        // SAFETY: it is aligned, and by the caller's word mapped for ever; other processes and cores that write to it
        // meet atomic words.
        Ok(Frame(unsafe { slice::from_raw_parts(start.cast().as_ptr(), bytes / LINE) }))
    }
}

impl Memory for Frame<'_> {
    type Word = AtomicU64;

    #[inline(always)]
    fn lines(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn line(&self, index: usize) -> &[AtomicU64; WORDS] {
        &self.0[index].0
    }
}
