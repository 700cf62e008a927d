//! Tests of the documents: each compares a page with the source that it describes.
//!
//! `BLESS=1 cargo test -p tench-tool --test documents` writes the parts that are generated from source: the table of
//! system calls, the numbers of unsafe blocks (of which there may be fewer), the picture of a session, headers and
//! pages of interfaces, figures that were recorded.

#![forbid(unsafe_code)]

mod dependencies;
mod figures;
mod interfaces;
mod links;
mod operations;
mod session;
mod source;
mod unsafe_code;

use std::path::{Path, PathBuf};

/// Returns the root of the source tree.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the tool lies two folders below the root")
}

/// Returns a file of the tree, by its path from the root.
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Fails unless a file is as expected, or writes it if the environment says `BLESS`.
fn check(path: &str, expected: &str) {
    let full = root().join(path);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&full, expected).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    let found = std::fs::read_to_string(&full).unwrap_or_default();
    let differs = |(found, expected): &(Option<&str>, Option<&str>)| found != expected;
    let length = found.lines().count().max(expected.lines().count());
    let mut pairs = (0..length).map(|line| (found.lines().nth(line), expected.lines().nth(line)));
    if let Some(position) = pairs.clone().position(|pair| differs(&pair)) {
        let (found, expected) = pairs.nth(position).unwrap_or_default();
        panic!(
            "{path}:{}: found    {}\n{path}:{}: expected {}\nBLESS=1 cargo test -p tench-tool --test documents writes it",
            position + 1,
            found.unwrap_or("(the end)"),
            position + 1,
            expected.unwrap_or("(the end)"),
        );
    }
}
