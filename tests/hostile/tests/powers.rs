//! Tests of which methods are restricted: the list beside this file is what the interfaces say, so a change of it shows
//! in a diff. That servers refuse these methods to all other callers is tested with every message (`messages.rs`).

use std::fmt::Write;

use tench_hostile::Probe;

/// Adds the restricted methods of an interface.
fn list<P: Probe>(text: &mut String) {
    for method in P::METHODS {
        if method.authority {
            writeln!(text, "{} {} authority", P::NAME, method.name).unwrap();
        }
        for word in method.power.words() {
            writeln!(text, "{} {} {word}", P::NAME, method.name).unwrap();
        }
    }
}

macro_rules! restricted {
    ($($name:ident)*) => {{
        let mut text = String::new();
        $(list::<tench_hostile::$name::Probe>(&mut text);)*
        text
    }};
}

#[test]
fn the_restricted_methods_are_those_of_the_list() {
    let text = restricted!(clock console files mem monitor names notes pager procs reserve slabs stream);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/powers.txt"), &text).unwrap();
        return;
    }
    let expected = include_str!("powers.txt");
    assert_eq!(text, expected, "who may do what has changed; if it should, run this test with BLESS=1");
}
