//! The procs server.

fn main() {}
