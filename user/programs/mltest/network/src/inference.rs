//! Inference: a model's scores for a picture, in integers only.

use crate::model::{
    INNER_BIAS_AT, INNER_PAGES, INNER_PER_PAGE, MULTIPLIER_AT, NAME, OUTER_BIAS_AT, OUTER_PER_PAGE, PAGE, PAGES, SHIFT,
};
use crate::{CLASSES, HIDDEN, PIXELS, Picture};

/// One page of a model.
pub type Page = [u8; PAGE];

/// Damage of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The model does not begin as a model does.
    NotAModel,
    /// The multiplier makes every output zero or too large.
    Multiplier(i32),
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Damage::NotAModel => f.write_str("this is not a model: it does not begin with \"tenchML1\""),
            Damage::Multiplier(value) => write!(f, "the model's multiplier is {value}, which no model has"),
        }
    }
}

/// Returns the scores that a model gives to the digits for a picture. `page` copies the model's pages, each once, in
/// order.
pub fn infer(mut page: impl FnMut(usize, &mut Page), picture: &Picture) -> Result<[i32; CLASSES], Damage> {
    let mut bytes = [0; PAGE];
    page(0, &mut bytes);
    let head = Head::read(&bytes)?;
    let mut hidden = [0_u8; HIDDEN];
    for (index, units) in hidden.chunks_exact_mut(INNER_PER_PAGE).enumerate() {
        page(1 + index, &mut bytes);
        for (place, (unit, weights)) in units.iter_mut().zip(bytes.chunks_exact(PIXELS)).enumerate() {
            *unit = head.activation(index * INNER_PER_PAGE + place, product(weights, picture));
        }
    }
    let mut scores = head.outer_bias;
    for (index, units) in hidden.chunks_exact(OUTER_PER_PAGE).enumerate() {
        page(1 + INNER_PAGES + index, &mut bytes);
        for (unit, weights) in units.iter().zip(bytes.chunks_exact(CLASSES)) {
            for (score, weight) in scores.iter_mut().zip(weights) {
                *score += i32::from(*unit) * i32::from(*weight as i8);
            }
        }
    }
    Ok(scores)
}

/// Returns the sum of products of weights and pixels: at most 1,024 × 127 × 255, so it cannot overflow.
fn product(weights: &[u8], picture: &Picture) -> i32 {
    weights.iter().zip(picture).map(|(weight, pixel)| i32::from(*weight as i8) * i32::from(*pixel)).sum()
}

/// The contents of page 0.
struct Head {
    multiplier: i32,
    outer_bias: [i32; CLASSES],
    inner_bias: [i32; HIDDEN],
}

impl Head {
    fn read(page: &Page) -> Result<Head, Damage> {
        let number = |at: usize| i32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
        if page[..8] != NAME {
            return Err(Damage::NotAModel);
        }
        let multiplier = number(MULTIPLIER_AT);
        if !(1..1 << SHIFT).contains(&multiplier) {
            return Err(Damage::Multiplier(multiplier));
        }
        let outer_bias = core::array::from_fn(|index| number(OUTER_BIAS_AT + index * 4));
        let inner_bias = core::array::from_fn(|index| number(INNER_BIAS_AT + index * 4));
        Ok(Head { multiplier, outer_bias, inner_bias })
    }

    /// Returns the output of a hidden unit, from 0 to 255.
    fn activation(&self, unit: usize, sum: i32) -> u8 {
        let sum = i64::from(sum) + i64::from(self.inner_bias[unit]);
        let scaled = (sum * i64::from(self.multiplier) + (1 << (SHIFT - 1))) >> SHIFT;
        scaled.clamp(0, 255) as u8
    }
}

const _: () = assert!(PAGES == 253 && INNER_BIAS_AT + HIDDEN * 4 <= PAGE && OUTER_PER_PAGE * CLASSES <= PAGE);
