//! A small neural network that recognises drawn digits: the one that `mltest` runs.
//!
//! ```text
//!   when the program is built, on the host                    on the target, without floating point
//!
//!   digits::draw ──▶ train ──▶ Network ──▶ quantise ──▶ model ──▶ pages ──▶ inference ──▶ ten scores
//!                              (f32)                   (bytes: 253 pages of 4 KiB)
//! ```
//! The network has two layers: 1,024 pixels, 996 hidden units that pass positive values, ten scores. It is small enough
//! to be trained whenever the program is built, and large enough that its weights fill 1 MiB, which is what matters to
//! the memory manager. Training is plain arithmetic in a fixed order, without functions that differ from library to
//! library, so the model is the same everywhere.
//!
//! | module | what |
//! |---|---|
//! | [`digits`] | draws digits, each in many shapes |
//! | [`train`] | learns from drawn digits |
//! | [`model`] | the trained network with 8-bit weights, page by page |
//! | [`inference`] | the scores that the model gives for a picture |

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod digits;
pub mod inference;
pub mod model;
pub mod train;

/// Number of pixels along each side of a picture.
pub const SIDE: usize = 32;
/// Number of inputs of the network.
pub const PIXELS: usize = SIDE * SIDE;
/// Number of units between input and output.
pub const HIDDEN: usize = 996;
/// Number of outputs of the network, one for each digit.
pub const CLASSES: usize = 10;

/// A picture: brightness of each pixel, row by row.
pub type Picture = [u8; PIXELS];

/// Returns the index of the largest value: the digit that the scores mean. Of equals it is the first.
pub fn largest<T: Copy + PartialOrd>(scores: &[T; CLASSES]) -> usize {
    (1..CLASSES).fold(0, |best, class| if scores[class] > scores[best] { class } else { best })
}
