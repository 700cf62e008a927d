//! Rock-paper-scissors over Send, Receive, Reply.

fn main() {}
