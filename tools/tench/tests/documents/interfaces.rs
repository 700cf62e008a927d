//! Tests that the manual's pages agree with the interfaces, and that a C compiler accepts the headers.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use tench_interface_compiler::files::{self, PAGES};

use super::{check, root};

#[test]
fn pages_are_those_of_the_interfaces() {
    let pages = files::pages(&root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(pages.len() >= 5, "names, clock, console, procs, pager");
    for (name, text) in &pages {
        check(&format!("{PAGES}/{name}"), text);
    }
    // Files of interfaces that are gone.
    let known: BTreeSet<_> = pages.iter().map(|(name, _)| name.clone()).collect();
    for entry in std::fs::read_dir(root().join(PAGES)).expect("it was just looked into") {
        let name = entry.expect("it was just looked into").file_name().into_string().expect("names are text");
        assert!(known.contains(&name), "{name} belongs to no interface");
    }
}

/// Compiles every header alone, and all together, with the warnings that programs are compiled with; a warning is an
/// error.
#[test]
fn a_c_compiler_takes_the_headers() {
    let headers = files::headers(&root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let generated = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("include");
    std::fs::create_dir_all(generated.join("tench")).expect("cargo made the folder around it");
    for (name, text) in &headers {
        std::fs::write(generated.join("tench").join(name), text).expect("it can be written");
    }
    let lines: Vec<_> = headers.iter().map(|(name, _)| format!("#include <tench/{name}>\n")).collect();
    for text in lines.iter().chain([&lines.concat()]) {
        let include = root().join("user/lib/c/include");
        let mut clang = Command::new("clang-19")
            .args([
                "--target=aarch64-none-elf",
                "-std=c17",
                "-ffreestanding",
                "-Xclang",
                "-mlong-double-64",
                "-Wall",
                "-Wextra",
            ])
            .args(["-Werror", "-fsyntax-only", "-x", "c", "-I"])
            .arg(include)
            .arg("-I")
            .arg(&generated)
            .arg("-")
            .stdin(Stdio::piped())
            .spawn()
            .expect("programs in C need clang-19: apt-get install clang-19");
        clang.stdin.take().expect("it is a pipe").write_all(text.as_bytes()).expect("the compiler reads it");
        assert!(clang.wait().expect("it was started").success(), "{text}");
    }
}
