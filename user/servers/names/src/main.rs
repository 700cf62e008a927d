//! The names server.

fn main() {}
