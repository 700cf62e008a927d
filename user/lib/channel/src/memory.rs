//! The memory that two cores share, as lines of eight words.

use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::error::Unfit;

/// Number of words of a line.
pub const WORDS: usize = 8;
/// Size of a line in bytes.
pub const LINE: usize = 64;
/// Size in bytes of the smallest frame that [`Frame::at`] accepts.
pub const SMALLEST: usize = 4 << 10;
/// Size in bytes of the largest frame that [`Frame::at`] accepts.
pub const LARGEST: usize = 64 << 10;

/// A word that two cores access at the same time.
pub trait Word {
    /// Returns the value.
    fn load(&self, order: Ordering) -> u64;
    /// Sets the value.
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
    /// Type of its words.
    type Word: Word;

    /// Returns the number of lines, which never changes.
    fn lines(&self) -> usize;

    /// Returns a line; `index` must be less than the number of lines.
    fn line(&self, index: usize) -> &[Self::Word; WORDS];

    /// Executes a sequentially consistent fence: of two cores that each store, fence and load what the other stored, at
    /// least one sees the other's store.
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

/// A line in memory.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Line([AtomicU64; WORDS]);

const _: () = assert!(size_of::<Line>() == LINE);

/// A mapped frame. It consists of atomic words, so whatever the peer writes there is a valid value.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'m>(&'m [Line]);

impl<'m> Frame<'m> {
    /// Returns a frame that consists of lines, which must be zero.
    pub fn of(lines: &'m [Line]) -> Frame<'m> {
        Frame(lines)
    }
}

impl Frame<'static> {
    /// Returns the frame of `bytes` bytes mapped at `start`: a power of two from [`SMALLEST`] to [`LARGEST`], all zeros
    /// until either side opens a channel in it.
    ///
    /// Errors: `Size`, `Alignment`.
    ///
    /// # Safety
    /// The memory must be mapped, readable and writable, and stay so as long as the frame, its copies or a channel in
    /// it are used. In this address space only such frames may access it.
    pub unsafe fn at(start: NonNull<u8>, bytes: usize) -> Result<Frame<'static>, Unfit> {
        if !bytes.is_power_of_two() || !(SMALLEST..=LARGEST).contains(&bytes) {
            return Err(Unfit::Size(bytes));
        }
        if !start.addr().get().is_multiple_of(LINE) {
            return Err(Unfit::Alignment(start.addr().get()));
        }
        // SAFETY: it is aligned, and the caller guarantees that it stays mapped; other processes and cores may write to
        // it, because its words are atomic.
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
