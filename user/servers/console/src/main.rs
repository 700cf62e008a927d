//! The console server.

fn main() {}
