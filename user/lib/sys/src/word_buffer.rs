//! Storage for the words of a message, of which only those in use are written.

use core::mem::MaybeUninit;

use tench_abi::message::{MAX_WORDS, REGISTER_WORDS};

/// Words of a message. The first eight, which travel in registers, are always initialised, the others only once they
/// are written.
#[derive(Clone, Debug)]
pub(crate) struct WordBuffer([MaybeUninit<u64>; MAX_WORDS]);

impl WordBuffer {
    /// Returns storage whose register words are 0.
    #[inline(always)]
    pub(crate) const fn new() -> WordBuffer {
        let mut words = [MaybeUninit::uninit(); MAX_WORDS];
        let (registers, _) = words.split_at_mut(REGISTER_WORDS);
        registers.copy_from_slice(&[MaybeUninit::new(0); REGISTER_WORDS]);
        WordBuffer(words)
    }

    /// Writes a word, if the index exists.
    #[inline(always)]
    pub(crate) fn write(&mut self, index: usize, word: u64) {
        if let Some(place) = self.0.get_mut(index) {
            place.write(word);
        }
    }

    /// Writes bytes from a word on, as many as fit. Returns how many words all of them would take.
    #[inline(always)]
    pub(crate) fn write_bytes(&mut self, start: usize, bytes: &[u8]) -> usize {
        put(self.0.get_mut(start..).unwrap_or_default(), bytes)
    }

    /// Returns the words that travel in registers.
    #[inline(always)]
    pub(crate) const fn registers(&self) -> &[u64; REGISTER_WORDS] {
        let registers: *const [u64; REGISTER_WORDS] = self.0.as_ptr().cast();
        // SAFETY: there are more words than registers, and the first eight are always initialised.
        unsafe { &*registers }
    }

    /// Returns the words that travel in registers, mutably.
    #[inline(always)]
    pub(crate) const fn registers_mut(&mut self) -> &mut [u64; REGISTER_WORDS] {
        let registers: *mut [u64; REGISTER_WORDS] = self.0.as_mut_ptr().cast();
        // SAFETY: as above, and only initialised words are written.
        unsafe { &mut *registers }
    }

    /// Returns the words of a message of `length` words beyond the registers, all of which the caller writes.
    #[inline(always)]
    pub(crate) fn beyond_registers(&mut self, length: usize) -> &mut [MaybeUninit<u64>] {
        self.0.get_mut(REGISTER_WORDS..length.min(MAX_WORDS)).unwrap_or_default()
    }

    /// Returns the first `count` words.
    ///
    /// # Safety
    /// At least `count` words must exist, and all of them must have been written.
    #[inline(always)]
    pub(crate) unsafe fn first(&self, count: usize) -> &[u64] {
        // SAFETY: `MaybeUninit<u64>` has the layout of `u64`; the caller guarantees the rest.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), count) }
    }
}

/// Returns the bytes of words, those in the lowest bits first.
pub(crate) const fn bytes(words: &[u64]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little"), "messages are little-endian") };
    // SAFETY: any eight bytes of a `u64` are eight `u8`, which need no alignment.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Packs bytes into words, as many as fit, eight to a word, the first in the lowest bits; the rest of the last word
/// becomes 0. Returns how many words all of them would take.
#[inline(always)]
pub fn put_bytes(words: &mut [u64], bytes: &[u8]) -> usize {
    // SAFETY: `MaybeUninit<u64>` has the layout of `u64`, and `put` writes only initialised words.
    let words = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) };
    put(words, bytes)
}

/// Maximum number of bytes that [`put_short`] packs.
pub const SHORT_BYTES: usize = 24;

/// As [`put_bytes`], inlined, for at most `max` bytes, which must be a constant of at most [`SHORT_BYTES`]. The words
/// after the bytes, up to the maximum, become 0.
#[inline(always)]
pub fn put_short(words: &mut [u64], bytes: &[u8], max: usize) -> usize {
    for (index, word) in words.iter_mut().take(max.div_ceil(8)).enumerate() {
        *word = word_at(bytes, index * 8);
    }
    bytes.len().div_ceil(8)
}

/// Returns up to eight bytes from `start` on, a multiple of 8, as a word; 0 if there are none.
#[inline(always)]
fn word_at(bytes: &[u8], start: usize) -> u64 {
    let Some(left) = bytes.len().checked_sub(start).filter(|left| *left > 0) else { return 0 };
    if let Some(eight) = bytes.get(start..).and_then(|rest| rest.first_chunk()) {
        return load(eight);
    }
    match bytes.last_chunk() {
        // The last eight bytes, without those in the preceding word.
        Some(eight) => load(eight) >> (64 - 8 * left),
        None => few(bytes),
    }
}

/// Returns fewer than eight bytes as a word.
#[inline(never)]
fn few(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns eight bytes at any address as a word. The compiler would load possibly unaligned bytes one by one; the
/// processor can load them at once.
#[inline(always)]
fn load(bytes: &[u8; 8]) -> u64 {
    #[cfg(all(target_arch = "aarch64", target_os = "none"))]
    {
        let word;
        // SAFETY: the instruction reads these bytes and has no other effect.
        unsafe {
            core::arch::asm!(
                "ldr {}, [{}]",
                out(reg) word,
                in(reg) bytes.as_ptr(),
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        word
    }
    #[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
    u64::from_le_bytes(*bytes)
}

/// As [`put_bytes`], for words that may be uninitialised.
#[inline(always)]
fn put(words: &mut [MaybeUninit<u64>], bytes: &[u8]) -> usize {
    const { assert!(cfg!(target_endian = "little"), "messages are little-endian") };
    let count = bytes.len().div_ceil(8);
    if let Some(last) = count.checked_sub(1).and_then(|last| words.get_mut(last)) {
        last.write(0);
    }
    let length = bytes.len().min(size_of_val(words));
    // SAFETY: that many bytes fit, and `bytes` does not overlap `words`, which are borrowed mutably.
    unsafe { words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), length) };
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_put_lowest_first_and_the_rest_of_the_word_is_zero() {
        let all: [u8; 40] = core::array::from_fn(|index| index as u8 + 1);
        for length in 0..=all.len() {
            let given = &all[..length];
            let mut words = [u64::MAX; 4];
            let count = put_bytes(&mut words, given);
            assert_eq!(count, given.len().div_ceil(8));
            if length <= SHORT_BYTES {
                let mut short = [u64::MAX; 4];
                assert_eq!(put_short(&mut short, given, SHORT_BYTES), count);
                assert_eq!((&short[..count], short[3]), (&words[..count], u64::MAX));
                assert!(short[count..3].iter().all(|word| *word == 0));
                assert_eq!(put_short(&mut short[..1], given, SHORT_BYTES), count, "what does not fit is left out");
            }
            for (index, word) in words.iter().enumerate() {
                let byte = |at: usize| given.get(8 * index + at).map_or(0, |byte| u64::from(*byte) << (8 * at));
                let expected = if index < count { (0..8).map(byte).sum() } else { u64::MAX };
                assert_eq!(*word, expected, "{length} bytes, word {index}");
            }
        }
    }

    #[test]
    fn bytes_that_do_not_fit_are_left_out() {
        let mut buffer = WordBuffer::new();
        assert_eq!(buffer.write_bytes(MAX_WORDS - 1, &[7; 17]), 3);
        assert_eq!(buffer.write_bytes(MAX_WORDS, &[7]), 1);
        assert_eq!(buffer.write_bytes(MAX_WORDS + 1, &[7]), 1);
        buffer.write(MAX_WORDS, 7);
        assert_eq!(buffer.registers(), &[0; REGISTER_WORDS]);
    }
}
