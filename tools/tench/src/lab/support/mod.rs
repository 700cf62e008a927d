//! Means that all experiments share: the description of one, how its numbers come about, and what becomes of them.

pub mod baseline;
mod experiment;
mod lines;
mod measure;
pub mod plot;
mod table;
mod write;

pub use experiment::{Column, Experiment, PLAIN, Run, Sum, USUAL, find};
pub use lines::LINES_WORST;
pub use measure::{Booted, Figures, Length, Measured, Sample, measure};
pub use table::{Table, table};
pub use write::{format_number, number, result_json, write};
