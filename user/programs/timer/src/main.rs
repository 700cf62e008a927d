//! Prints ticks of a timer.

fn main() {}
