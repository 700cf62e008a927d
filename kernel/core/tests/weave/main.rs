//! Operations that pass windows, against each other and against those that pass none, in every order.

mod interrupts;
mod outcome;
mod pairs;
mod restart;
mod triples;
mod world;
