//! Tests that the C headers and the manual's pages agree with the interfaces, and that a C compiler accepts the
//! headers.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use tench_interface_compiler::files::{self, HEADERS, PAGES};

use super::{check, root};

/// Header that is written by hand: what all headers share.
const COMMON: &str = "message.h";

#[test]
fn headers_and_pages_are_those_of_the_interfaces() {
    let files = files::all(&root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(files.len() >= 2 * 5, "names, clock, console, procs, pager");
    for file in &files {
        check(file.path.to_str().expect("paths are text"), &file.text);
    }
    // Files of interfaces that are gone.
    let known: BTreeSet<_> = files.iter().map(|file| root().join(&file.path)).collect();
    for folder in [HEADERS, PAGES] {
        for entry in std::fs::read_dir(root().join(folder)).expect("it was just looked into") {
            let path = entry.expect("it was just looked into").path();
            assert!(path.ends_with(COMMON) || known.contains(&path), "{} belongs to no interface", path.display());
        }
    }
}

/// Compiles every header alone, and all together, with the warnings that programs are compiled with; a warning is an
/// error.
#[test]
fn a_c_compiler_takes_the_headers() {
    let files = files::all(&root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let names = files.iter().filter(|file| file.path.starts_with(HEADERS));
    let lines: Vec<_> = names
        .map(|file| format!("#include <tench/{}>\n", file.path.file_name().unwrap_or_default().display()))
        .collect();
    for text in lines.iter().chain([&lines.concat()]) {
        let include = root().join("user/lib/c/include");
        let mut clang = Command::new("clang-19")
            .args([
                "--target=aarch64-none-elf",
                "-std=c17",
                "-ffreestanding",
                "-mgeneral-regs-only",
                "-Wall",
                "-Wextra",
            ])
            .args(["-Werror", "-fsyntax-only", "-x", "c", "-I"])
            .arg(include)
            .arg("-")
            .stdin(Stdio::piped())
            .spawn()
            .expect("programs in C need clang-19: apt-get install clang-19");
        clang.stdin.take().expect("it is a pipe").write_all(text.as_bytes()).expect("the compiler reads it");
        assert!(clang.wait().expect("it was started").success(), "{text}");
    }
}
