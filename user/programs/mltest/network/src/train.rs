//! Training on drawn digits, by stochastic gradient descent on the squared error.

use alloc::vec;
use alloc::vec::Vec;

use crate::digits::{Random, draw};
use crate::{CLASSES, HIDDEN, PIXELS, Picture};

/// Number of drawings that are learnt from, each once.
const LESSONS: usize = 3000;
/// Fraction of the error that one drawing corrects at first; it falls to zero towards the end.
const RATE: f32 = 0.3;
/// The seed of the drawings; tests draw with others.
const SEED: u64 = 1;

/// The network in floating point.
#[derive(Clone, Debug)]
pub struct Network {
    /// Weights from the inputs to each hidden unit, unit by unit.
    pub inner: Vec<f32>,
    /// Bias of each hidden unit.
    pub inner_bias: Vec<f32>,
    /// Weights from each hidden unit to the outputs, unit by unit.
    pub outer: Vec<f32>,
    /// Bias of each output.
    pub outer_bias: [f32; CLASSES],
}

/// Returns a picture as the network's input: brightness from 0 to 1.
fn input(picture: &Picture) -> [f32; PIXELS] {
    picture.map(|pixel| f32::from(pixel) / 255.0)
}

/// Returns the sum of products, in eight strands that do not wait for one another.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut strands = [0.0; 8];
    let (left, left_rest) = left.as_chunks::<8>();
    let (right, right_rest) = right.as_chunks::<8>();
    for (left, right) in left.iter().zip(right) {
        for ((strand, left), right) in strands.iter_mut().zip(left).zip(right) {
            *strand += left * right;
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    strands.iter().sum::<f32>() + rest
}

impl Network {
    /// Returns a network with small, different weights, before training.
    fn untrained(random: &mut Random) -> Network {
        let mut weight = |largest: f32| (random.below(20_001) as f32 / 10_000.0 - 1.0) * largest;
        Network {
            inner: (0..HIDDEN * PIXELS).map(|_| weight(0.05)).collect(),
            inner_bias: vec![0.0; HIDDEN],
            outer: (0..HIDDEN * CLASSES).map(|_| weight(0.05)).collect(),
            outer_bias: [0.0; CLASSES],
        }
    }

    /// Returns the outputs of the hidden units.
    pub fn hidden(&self, picture: &Picture) -> Vec<f32> {
        let input = input(picture);
        let rows = self.inner.chunks_exact(PIXELS).zip(&self.inner_bias);
        rows.map(|(row, bias)| (dot(row, &input) + bias).max(0.0)).collect()
    }

    /// Returns the outputs: about 1 for the right digit, about 0 for the others.
    pub fn scores(&self, picture: &Picture) -> [f32; CLASSES] {
        self.outputs(&self.hidden(picture))
    }

    fn outputs(&self, hidden: &[f32]) -> [f32; CLASSES] {
        let mut scores = self.outer_bias;
        for (row, value) in self.outer.chunks_exact(CLASSES).zip(hidden) {
            for (score, weight) in scores.iter_mut().zip(row) {
                *score += weight * value;
            }
        }
        scores
    }

    /// Corrects the weights by the error for one picture.
    fn learn(&mut self, picture: &Picture, digit: usize, rate: f32) {
        let hidden = self.hidden(picture);
        let mut error = self.outputs(&hidden);
        error[digit] -= 1.0;
        let input = input(picture);
        // Divided by the inputs' strength, so that a bright picture counts no more than a dark one.
        let outer_rate = rate / (1.0 + dot(&hidden, &hidden));
        let inner_rate = rate / (1.0 + dot(&input, &input));
        for (unit, value) in hidden.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let row = &mut self.outer[unit * CLASSES..][..CLASSES];
            let blame = dot(row, &error);
            for (weight, error) in row.iter_mut().zip(&error) {
                *weight -= outer_rate * error * value;
            }
            let step = inner_rate * blame;
            self.inner_bias[unit] -= step;
            for (weight, pixel) in self.inner[unit * PIXELS..][..PIXELS].iter_mut().zip(&input) {
                *weight -= step * pixel;
            }
        }
        for (bias, error) in self.outer_bias.iter_mut().zip(&error) {
            *bias -= outer_rate * error;
        }
    }
}

/// Returns a trained network. Takes a second or two.
pub fn train() -> Network {
    let mut random = Random::new(SEED);
    let mut network = Network::untrained(&mut random);
    for lesson in 0..LESSONS {
        let digit = lesson % CLASSES;
        let rate = RATE * (1.0 - lesson as f32 / LESSONS as f32);
        network.learn(&draw(digit, &mut random), digit, rate);
    }
    network
}
