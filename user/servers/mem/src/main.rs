//! The mem server.

fn main() {}
