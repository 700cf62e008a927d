//! Trains the network, and writes its model to the path from which the program includes it.

use std::path::Path;

use tench_mltest_network::{model, train};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let directory = std::env::var_os("OUT_DIR").expect("cargo says where a build script writes");
    let bytes = model::quantise(&train::train());
    std::fs::write(Path::new(&directory).join("model.bin"), bytes).expect("the build directory can be written to");
}
