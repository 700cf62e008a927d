//! A small neural network that reads drawn digits: what `mltest` runs.
//!
//! ```text
//!   when the program is built, on the host                    on the target, without floating point
//!
//!   digits::draw ──▶ train ──▶ Network ──▶ quantise ──▶ model ──▶ pages ──▶ inference ──▶ ten scores
//!                              (f32)                   (bytes: 253 pages of 4 KiB)
//! ```
//! The network has two layers: 1,024 pixels, 996 hidden units that pass what is above zero, ten scores. It is small
//! enough to be trained whenever the program is built, and large enough that its weights fill 1 MiB, which is what
//! matters to the memory manager. Training is plain arithmetic in a fixed order, without functions that differ from
//! library to library, so the same model comes out everywhere.
//!
//! | module | what |
//! |---|---|
//! | [`digits`] | draws digits, each in many shapes |
//! | [`train`] | learns from drawn digits |
//! | [`model`] | the trained network with 8-bit weights, page by page |
//! | [`inference`] | what the model says about a picture |

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod digits;
pub mod inference;
pub mod model;
pub mod train;

/// Pixels along each side of a picture.
pub const SIDE: usize = 32;
/// Inputs of the network.
pub const PIXELS: usize = SIDE * SIDE;
/// Units between input and output.
pub const HIDDEN: usize = 996;
/// Outputs of the network, one for each digit.
pub const CLASSES: usize = 10;

/// A picture: brightness of each pixel, row by row.
pub type Picture = [u8; PIXELS];

/// Where the largest value is: the digit that scores say. The first of equals.
pub fn largest<T: Copy + PartialOrd>(scores: &[T; CLASSES]) -> usize {
    (1..CLASSES).fold(0, |best, class| if scores[class] > scores[best] { class } else { best })
}
