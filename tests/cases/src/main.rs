//! Named cases for every kernel object and operation, run on the target.

fn main() {}
