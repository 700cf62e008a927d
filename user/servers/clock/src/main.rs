//! The clock server.

fn main() {}
