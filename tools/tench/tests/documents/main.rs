//! Tests of the documents: each compares a page with the source that it describes.
//!
//! `BLESS=1 cargo test -p tench-tool --test documents` writes the parts that are generated from source: the table of
//! system calls, the picture of a session, headers and pages of interfaces, figures that were recorded.

#![forbid(unsafe_code)]

mod dependencies;
mod figures;
mod interfaces;
mod invariants;
mod links;
mod operations;
mod session;
#[path = "../support/source.rs"]
#[expect(dead_code, reason = "the tests of the source use the rest")]
mod source;
mod suites;

use source::{check, read, root};
