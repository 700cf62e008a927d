//! Programs that measure paths for the lab.

fn main() {}
