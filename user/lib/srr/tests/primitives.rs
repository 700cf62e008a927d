//! The test cases of the primitives, in the simulation of R4's scheduler.

use tench_srr::cases::{CASES, time};
use tench_srr::{Error, Terminal, create, receive, run};

/// A terminal that prints nothing.
struct Silence;

impl Terminal for Silence {
    fn write(&mut self, _: &str) {}
    fn wait_key(&mut self) {}
}

#[test]
fn every_primitive_behaves_as_specified() {
    let broken: Vec<_> =
        CASES.iter().chain(time::CASES).filter_map(|case| Some((case.name, case.check().err()?))).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_first_task_needs_a_priority_too() {
    assert_eq!(run(Silence, -1, || ()), Err(Error::InvalidPriority));
}

#[test]
#[should_panic(expected = "as it must")]
fn a_panic_ends_the_session() {
    let _ = run(Silence, 3, || {
        create(4, || _ = receive(&mut [])).unwrap();
        create(4, || panic!("as it must")).unwrap();
        receive(&mut []);
    });
}
