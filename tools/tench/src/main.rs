//! The host tool behind the entry script.

fn main() {}
