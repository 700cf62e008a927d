//! Operations that pass preemption points, against each other and against those that pass none, in every order.

mod accounts;
mod interrupts;
mod nodes;
mod outcome;
mod pairs;
mod parts;
mod protect;
mod restart;
mod triples;
mod world;
