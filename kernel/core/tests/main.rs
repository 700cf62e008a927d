//! The kernel's operations on the host, object by object. All are one program, because each test program compiles the
//! whole kernel again; `weave`, which takes long, is another, so that two workers can run the two.

mod accounts;
mod budget;
mod capabilities;
mod common;
mod containers;
mod cores;
mod cspaces;
mod deadlines;
mod depletion;
mod fast_path;
mod fault_registers;
mod float;
mod helping;
mod identifiers;
mod powers;
mod receiving;
mod remote;
mod retype;
mod runs;
mod scattered;
mod slices;
mod split;
mod state;
mod threads;
mod tree;

/// Checks that each file is a module: otherwise it would never be compiled.
#[test]
fn each_file_is_a_module() {
    let own = include_str!("main.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).expect("this folder") {
        let path = entry.expect("readable").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let is_program = ["main", "weave"].contains(&name.as_ref());
        assert!(is_program || own.contains(&format!("\nmod {name};\n")), "{name} is not in main.rs");
    }
}
