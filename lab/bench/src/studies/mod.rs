//! Studies: what repeats measurements of the references.

pub mod latency_model;
pub mod slabs;
pub mod srr;
