//! The first process: starts the others from the system description.

fn main() {}
