//! Suites in C: a Debian source package, compiled once against Debian's C library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use miette::{IntoDiagnostic, Result, WrapErr};
use serde::Deserialize;

use super::{DATA, NAMES, PROGRAM, files, put};
use crate::linux::Tree;
use crate::peer::apt::Missing;
use crate::peer::packages::{Package, Packages};
use crate::process;
use crate::toolchain;
use crate::workspace::{self, Workspace};

/// The mark of a source that is compiled and linked, and run by another test.
const PART: &str = "-buildonly";

/// A suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    pub name: String,
    /// Folder of its sources in which the tests are, each a file `NUMBER-NUMBER.c` or `NUMBER-NUMBER.sh`.
    pub directory: String,
    /// Folder of its sources with headers.
    include: String,
    /// Arguments of the compiler, and of the linker below.
    flags: Vec<String>,
    libraries: Vec<String>,
    /// Files of its source package, the description first.
    #[serde(rename = "source")]
    pub sources: Vec<Package>,
    needs: Vec<Package>,
}

impl Suite {
    /// Returns why the list's entry makes no sense, if it does not.
    pub fn defect(&self) -> Option<String> {
        let has_description = self.sources.first().is_some_and(|source| source.path.ends_with(".dsc"));
        let name = &self.name;
        (!has_description).then(|| format!("the first source of {name} must be the package's description, a .dsc"))
    }
}

/// Adds the tests of a suite to a tree, with the list of their names.
pub(super) fn add(tree: &mut Tree, suite: &Suite, own: &Path) -> Result<()> {
    let source = own.join("source");
    let mut tests = Vec::new();
    for file in files(&source.join(&suite.directory))? {
        let path = file.strip_prefix(&source).into_diagnostic()?.to_string_lossy().into_owned();
        let Some((test, kind)) = path.rsplit_once('.').filter(|(test, _)| is_test(test)) else { continue };
        match kind {
            "c" if program(&file).is_file() => {
                put(tree, &format!("{test}.test"), PROGRAM, workspace::read_file(&program(&file))?)?;
            }
            "sh" => put(tree, &path, PROGRAM, workspace::read_file(&file)?)?,
            _ => continue,
        }
        tests.extend((!test.ends_with(PART)).then(|| test.to_owned()));
    }
    tests.sort();
    tests.dedup();
    put(tree, NAMES, DATA, tests.iter().map(|test| format!("{test}\n")).collect::<String>().into_bytes())
}

/// Returns whether the name of a file, without its kind, is that of a test: `3-1`, or `3-core-buildonly`.
fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((first, second)) = name.split_once('-') else { return false };
    let is_number = |text: &str| text.starts_with(|letter: char| letter.is_ascii_digit());
    is_number(first) && (is_number(second) || name.ends_with(PART))
}

/// Returns the program that is made of a source.
fn program(source: &Path) -> PathBuf {
    source.with_extension("test")
}

/// Fetches the sources and libraries of a suite, unpacks and compiles them.
pub(super) fn make(
    suite: &Suite,
    archive: &Packages,
    workspace: &Workspace,
    directory: &Path,
    own: &Path,
) -> Result<()> {
    let unpacker = process::find_program(&["dpkg-source"]);
    let unpacker = unpacker.ok_or(Missing::Tool { program: "dpkg-source", package: "dpkg-dev" })?;
    let sources = archive.files(directory, &suite.sources.iter().collect::<Vec<_>>())?;
    let mut libraries = archive.files(directory, &suite.needs.iter().collect::<Vec<_>>())?;
    let list = Packages::load(workspace)?;
    let run_time = list.with_needs(&["dash".to_owned()])?;
    libraries.extend(list.files(directory, &run_time)?);
    let system = own.join("system");
    for package in &libraries {
        process::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&system))?;
    }
    let source = own.join("source");
    let unpack = ["--no-check", "-q", "-x"];
    process::run(
        Command::new(unpacker).args(unpack).arg(std::path::absolute(&sources[0]).into_diagnostic()?).arg(&source),
    )?;
    eprintln!("compiling the suite {}", suite.name);
    let all: Vec<PathBuf> = files(&source.join(&suite.directory))?
        .into_iter()
        .filter(|file| file.extension().is_some_and(|kind| kind == "c"))
        .filter(|file| is_test(&file.with_extension("").to_string_lossy()))
        .collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let work = || {
            while let Some(file) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                compile(suite, &source, &system, file)?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// Compiles and links a test. One that cannot be compiled, or that is no program, is left out, as the suite's own
/// makefile does.
fn compile(suite: &Suite, source: &Path, system: &Path, file: &Path) -> Result<()> {
    let clang = toolchain::find_clang().ok_or(Missing::Tool { program: "clang", package: "clang-19" })?;
    let linker = toolchain::find_linker().ok_or(Missing::Tool { program: "ld.lld", package: "lld-19" })?;
    let object = file.with_extension("o");
    let mut command = Command::new(&clang);
    command.args(["--target=aarch64-linux-gnu", "-w", "-Wno-implicit-function-declaration", "-Wno-int-conversion"]);
    command.arg(format!("--sysroot={}", system.display())).args(&suite.flags);
    command.arg("-I").arg(source.join(&suite.include)).arg("-c").arg(file).arg("-o").arg(&object);
    if succeeds(&mut command)? {
        let mut command = Command::new(&clang);
        command.args(["--target=aarch64-linux-gnu", "-s"]).arg(format!("--sysroot={}", system.display()));
        command.arg(format!("-fuse-ld={}", linker.display())).arg(&object).arg("-o").arg(program(file));
        succeeds(command.args(&suite.libraries))?;
        let _ = fs::remove_file(&object);
    }
    Ok(())
}

/// Runs a command silently. Returns whether it succeeds.
fn succeeds(command: &mut Command) -> Result<bool> {
    process::show(command);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    Ok(status.into_diagnostic().wrap_err_with(|| process::cannot_start(command))?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_from_other_files_by_their_names() {
        for name in ["conformance/interfaces/a/3-1", "1-1", "12-10", "a/3-core-buildonly", "19-13-buildonly"] {
            assert!(is_test(name), "{name}");
        }
        for name in ["conformance/1-1/helper", "testfrmw", "a-1", "3", "3-core", "a/coverage"] {
            assert!(!is_test(name), "{name}");
        }
    }
}
