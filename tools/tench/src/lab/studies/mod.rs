//! Studies: what repeats measurements of the references, beside their printed values.

pub mod latency_model;
pub mod memlab;
pub mod slabs;
pub mod srr;
