//! Records of a terminal's modes: the short record (`termio`) of old programs, and the record of locked modes.

use tench_linux_terminal::MODES_SIZE;

/// Size of the four words of flags at the beginning of a full record.
const FLAGS: usize = 16;
/// Number of characters in the short record.
const CHARACTERS: usize = 8;
/// Size of the short record's fields: four half words of flags, the line discipline, characters.
const END: usize = 8 + 1 + CHARACTERS;
/// Size of the short record, whose last byte is padding.
pub(super) const SHORT: usize = END + 1;

/// Returns the short record of a full one: the lower halves of the flags, and the first characters.
pub(super) fn short(record: &[u8; MODES_SIZE]) -> [u8; SHORT] {
    let mut short = [0; SHORT];
    for (half, word) in short[..8].chunks_exact_mut(2).zip(record.chunks_exact(4)) {
        half.copy_from_slice(&word[..2]);
    }
    short[8..END].copy_from_slice(&record[FLAGS..FLAGS + 1 + CHARACTERS]);
    short
}

/// Returns a full record with the contents of a short one. The upper halves of the flags and the other characters
/// stay.
pub(super) fn with_short(mut record: [u8; MODES_SIZE], short: &[u8; SHORT]) -> [u8; MODES_SIZE] {
    for (half, word) in short[..8].chunks_exact(2).zip(record.chunks_exact_mut(4)) {
        word[..2].copy_from_slice(half);
    }
    record[FLAGS..FLAGS + 1 + CHARACTERS].copy_from_slice(&short[8..END]);
    record
}

/// Returns the new record with the locked flags and characters of the old one.
pub(super) fn unless_locked(
    locked: &[u8; MODES_SIZE],
    old: &[u8; MODES_SIZE],
    new: &[u8; MODES_SIZE],
) -> [u8; MODES_SIZE] {
    core::array::from_fn(|index| {
        let kept = match locked[index] {
            bits if index < FLAGS => bits,
            0 => 0,
            _ => 0xff,
        };
        old[index] & kept | new[index] & !kept
    })
}
