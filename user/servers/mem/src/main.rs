//! The memory server.

fn main() {}
