//! Room for the words of a message, of which only those in use are ever written.

use core::mem::MaybeUninit;

use tench_abi::message::{MAX_WORDS, REGISTER_WORDS};

/// Words of which the first eight, which travel in registers, are always numbers, and the others only once they are
/// written.
#[derive(Clone, Debug)]
pub(crate) struct Room([MaybeUninit<u64>; MAX_WORDS]);

impl Room {
    /// Zeros where registers are.
    #[inline(always)]
    pub(crate) const fn new() -> Room {
        let mut words = [MaybeUninit::uninit(); MAX_WORDS];
        let (registers, _) = words.split_at_mut(REGISTER_WORDS);
        registers.copy_from_slice(&[MaybeUninit::new(0); REGISTER_WORDS]);
        Room(words)
    }

    /// Writes a word, if there is such.
    #[inline(always)]
    pub(crate) fn write(&mut self, index: usize, word: u64) {
        if let Some(place) = self.0.get_mut(index) {
            place.write(word);
        }
    }

    /// Writes bytes from a word on, as many as there is room for. Answers how many words there should be.
    #[inline(always)]
    pub(crate) fn write_bytes(&mut self, start: usize, bytes: &[u8]) -> usize {
        put(self.0.get_mut(start..).unwrap_or_default(), bytes)
    }

    /// The words that travel in registers.
    #[inline(always)]
    pub(crate) const fn registers(&self) -> &[u64; REGISTER_WORDS] {
        let registers: *const [u64; REGISTER_WORDS] = self.0.as_ptr().cast();
        // SAFETY: there are more words than registers, and the first ones are always numbers.
        unsafe { &*registers }
    }

    /// The same, to replace them.
    #[inline(always)]
    pub(crate) const fn registers_mut(&mut self) -> &mut [u64; REGISTER_WORDS] {
        let registers: *mut [u64; REGISTER_WORDS] = self.0.as_mut_ptr().cast();
        // SAFETY: as above, and what is written is numbers again.
        unsafe { &mut *registers }
    }

    /// The words beyond registers of a message of `length` words, to write all of them.
    #[inline(always)]
    pub(crate) fn beyond_registers(&mut self, length: usize) -> &mut [MaybeUninit<u64>] {
        self.0.get_mut(REGISTER_WORDS..length.min(MAX_WORDS)).unwrap_or_default()
    }

    /// The first `count` words, which are not more than there are.
    ///
    /// # Safety
    /// There are so many, and all of them have been written.
    #[inline(always)]
    pub(crate) unsafe fn first(&self, count: usize) -> &[u64] {
        // SAFETY: `MaybeUninit<u64>` has the layout of `u64`, and the caller says the rest.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), count) }
    }
}

/// The bytes of words, those in the lowest bits first.
pub(crate) const fn bytes(words: &[u64]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little"), "messages are little-endian") };
    // SAFETY: any eight bytes of a `u64` are eight `u8`, which need no alignment.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Puts bytes into words, eight to a word, the first in the lowest bits; what is left of the last word becomes 0. As
/// many as there is room for. Answers how many words there should be.
#[inline(always)]
pub fn put_bytes(words: &mut [u64], bytes: &[u8]) -> usize {
    // SAFETY: `MaybeUninit<u64>` has the layout of `u64`, and `put` writes nothing but numbers.
    let words = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) };
    put(words, bytes)
}

/// Bytes that [`put_short`] puts into words at most.
pub const SHORT_BYTES: usize = 24;

/// As [`put_bytes`], without a call, for at most `max` bytes, which is a constant of at most [`SHORT_BYTES`]. The words
/// behind them, as far as there could have been more, become 0.
#[inline(always)]
pub fn put_short(words: &mut [u64], bytes: &[u8], max: usize) -> usize {
    for (index, word) in words.iter_mut().take(max.div_ceil(8)).enumerate() {
        *word = word_at(bytes, index * 8);
    }
    bytes.len().div_ceil(8)
}

/// Up to eight bytes from `start` on, which is a multiple of 8, as a word; none are 0.
#[inline(always)]
fn word_at(bytes: &[u8], start: usize) -> u64 {
    let Some(left) = bytes.len().checked_sub(start).filter(|left| *left > 0) else { return 0 };
    if let Some(eight) = bytes.get(start..).and_then(|rest| rest.first_chunk()) {
        return load(eight);
    }
    match bytes.last_chunk() {
        // The last eight, without those that are in the word before.
        Some(eight) => load(eight) >> (64 - 8 * left),
        None => few(bytes),
    }
}

/// Less than eight bytes as a word.
#[inline(never)]
fn few(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Eight bytes as a word, wherever they lie. The compiler by itself loads one after another what may not be aligned;
/// the processor can do better.
#[inline(always)]
fn load(bytes: &[u8; 8]) -> u64 {
    #[cfg(all(target_arch = "aarch64", target_os = "none"))]
    {
        let word;
        // SAFETY: it reads these bytes, and nothing else happens.
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

/// The same where nothing need have been written yet.
#[inline(always)]
fn put(words: &mut [MaybeUninit<u64>], bytes: &[u8]) -> usize {
    const { assert!(cfg!(target_endian = "little"), "messages are little-endian") };
    let count = bytes.len().div_ceil(8);
    if let Some(last) = count.checked_sub(1).and_then(|last| words.get_mut(last)) {
        last.write(0);
    }
    let room = bytes.len().min(size_of_val(words));
    // SAFETY: there is room for so many bytes, and `bytes` is not part of `words`, which are borrowed to be written.
    unsafe { words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), room) };
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
    fn what_does_not_fit_is_left_out() {
        let mut room = Room::new();
        assert_eq!(room.write_bytes(MAX_WORDS - 1, &[7; 17]), 3);
        assert_eq!(room.write_bytes(MAX_WORDS, &[7]), 1);
        assert_eq!(room.write_bytes(MAX_WORDS + 1, &[7]), 1);
        room.write(MAX_WORDS, 7);
        assert_eq!(room.registers(), &[0; REGISTER_WORDS]);
    }
}
