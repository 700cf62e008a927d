//! Draws digits. No two drawings of a digit are alike: place, size, slant, thickness, brightness and noise differ.

use crate::{PIXELS, Picture, SIDE};

/// Reproducible pseudo-random numbers: xorshift, as published by Marsaglia.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the sequence of a seed.
    pub const fn new(seed: u64) -> Random {
        // The generator stands still at zero.
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `limit`.
    pub const fn below(&mut self, limit: u32) -> u32 {
        // The upper bits are the better ones.
        (((self.next() >> 32) * limit as u64) >> 32) as u32
    }

    /// Returns a number from `low` to `high`, both included.
    pub const fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low + 1) as u32) as i32
    }
}

/// Number of cells along a glyph.
const COLUMNS: i32 = 5;
const ROWS: i32 = 7;

/// The filled cells of each digit, the leftmost in the highest of five bits.
const GLYPHS: [[u8; ROWS as usize]; 10] = [
    [0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110],
    [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
    [0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111],
    [0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110],
    [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
    [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
    [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
    [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
    [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
    [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
];

/// Draws a digit (0 to 9). The sequence decides how.
pub fn draw(digit: usize, random: &mut Random) -> Picture {
    // Lengths are in sixteenths of a pixel.
    let (width, height) = (random.between(44, 68), random.between(44, 64));
    let slant = random.between(-4, 4);
    let left = (SIDE as i32 * 16 - COLUMNS * width) / 2 + random.between(-40, 40);
    let top = (SIDE as i32 * 16 - ROWS * height) / 2 + random.between(-24, 24);
    let bold = random.between(0, 14);
    let (ink, paper, noise) = (random.between(150, 230), random.between(0, 20), random.between(0, 24));
    let mut picture = [0; PIXELS];
    for (index, pixel) in picture.iter_mut().enumerate() {
        let (x, y) = ((index % SIDE) as i32 * 16 + 8, (index / SIDE) as i32 * 16 + 8);
        let straight = x + slant * (y - SIDE as i32 * 8) / 16;
        // A bold line also fills the cells of its neighbours to the left and right.
        let filled = [-bold, 0, bold].into_iter().any(|offset| {
            let (column, row) = ((straight + offset - left).div_euclid(width), (y - top).div_euclid(height));
            (0..COLUMNS).contains(&column)
                && (0..ROWS).contains(&row)
                && GLYPHS[digit][row as usize] >> (COLUMNS - 1 - column) & 1 == 1
        });
        let brightness = if filled { ink } else { paper } + random.between(-noise, noise);
        *pixel = brightness.clamp(0, 255) as u8;
    }
    picture
}
