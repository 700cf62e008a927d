//! The trained network as bytes: 253 pages of 4 KiB, each of which can be used without the others.
//!
//! ```text
//!   page 0          name, multiplier, biases of the outputs, biases of the hidden units (all little-endian)
//!   pages 1..250    weights from the inputs to four hidden units each, a byte each
//!   pages 250..253  weights from 332 hidden units each to the outputs, a byte each
//! ```
//! A weight is a whole number of steps, from −127 to 127; each layer has its own step. The output of a hidden unit is
//! rounded to a byte as well, by a multiplication and a shift, so no step has to be known when the model is used:
//! scores have a unit of their own, in which they are compared.

use alloc::vec;
use alloc::vec::Vec;

use crate::digits::{Random, draw};
use crate::train::Network;
use crate::{CLASSES, HIDDEN, PIXELS};

/// Size of a page in bytes.
pub const PAGE: usize = 4096;
/// Number of hidden units whose weights share a page.
pub const INNER_PER_PAGE: usize = PAGE / PIXELS;
/// Number of pages of the first layer's weights.
pub const INNER_PAGES: usize = HIDDEN / INNER_PER_PAGE;
/// Number of hidden units whose weights of the second layer share a page.
pub const OUTER_PER_PAGE: usize = HIDDEN / OUTER_PAGES;
/// Number of pages of the second layer's weights.
pub const OUTER_PAGES: usize = 3;
/// Number of pages of a model.
pub const PAGES: usize = 1 + INNER_PAGES + OUTER_PAGES;
/// Size of a model in bytes.
pub const SIZE: usize = PAGES * PAGE;

/// The first bytes of a model.
pub const NAME: [u8; 8] = *b"tenchML1";
/// Number of bits by which the product with the multiplier is shifted.
pub const SHIFT: u32 = 24;
/// Offset of the multiplier in page 0.
pub const MULTIPLIER_AT: usize = 8;
/// Offset of the outputs' biases in page 0.
pub const OUTER_BIAS_AT: usize = 16;
/// Offset of the hidden units' biases in page 0.
pub const INNER_BIAS_AT: usize = 64;

/// Number of drawings by which the outputs of hidden units are scaled.
const CALIBRATION: usize = 200;

/// Returns the network with 8-bit weights.
pub fn quantise(network: &Network) -> Vec<u8> {
    let inner_step = largest(&network.inner) / 127.0;
    let outer_step = largest(&network.outer) / 127.0;
    let hidden_step = largest_activation(network) / 255.0;
    // A hidden unit adds up steps of the weights times 255ths of the brightness.
    let sum_step = inner_step / 255.0;
    let score_step = outer_step * hidden_step;
    let multiplier = (sum_step / hidden_step * (1_u32 << SHIFT) as f32) as u32;

    let mut model = vec![0; SIZE];
    model[..8].copy_from_slice(&NAME);
    put(&mut model, MULTIPLIER_AT, multiplier as i32);
    for (index, bias) in network.outer_bias.iter().enumerate() {
        put(&mut model, OUTER_BIAS_AT + index * 4, round(bias / score_step));
    }
    for (index, bias) in network.inner_bias.iter().enumerate() {
        put(&mut model, INNER_BIAS_AT + index * 4, round(bias / sum_step));
    }
    let weight = |value: &f32, step: f32| round(value / step).clamp(-127, 127) as i8 as u8;
    for (place, value) in model[PAGE..].iter_mut().zip(&network.inner) {
        *place = weight(value, inner_step);
    }
    let pages = model[(1 + INNER_PAGES) * PAGE..].chunks_exact_mut(PAGE);
    for (page, values) in pages.zip(network.outer.chunks_exact(OUTER_PER_PAGE * CLASSES)) {
        for (place, value) in page.iter_mut().zip(values) {
            *place = weight(value, outer_step);
        }
    }
    model
}

/// Returns the largest absolute value of some weights.
fn largest(weights: &[f32]) -> f32 {
    weights.iter().fold(f32::MIN_POSITIVE, |largest, weight| largest.max(weight.max(-weight)))
}

/// Returns the largest output of a hidden unit for some drawings.
fn largest_activation(network: &Network) -> f32 {
    let mut random = Random::new(2);
    let drawings = (0..CALIBRATION).map(|index| draw(index % CLASSES, &mut random));
    drawings.fold(f32::MIN_POSITIVE, |most, picture| most.max(largest(&network.hidden(&picture))))
}

/// Rounds to the nearest integer. (`f32::round` needs a library on the target.)
fn round(value: f32) -> i32 {
    (value + if value < 0.0 { -0.5 } else { 0.5 }) as i32
}

fn put(model: &mut [u8], at: usize, value: i32) {
    model[at..at + 4].copy_from_slice(&value.to_le_bytes());
}
