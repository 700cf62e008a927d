//! Suites of tests that others have written, as they are: `tests/linux/suites.toml` names their sources in Debian's
//! archive. They are compiled here once, against Debian's C library, and put into `/suite` for a script that runs them.
//! Those of Go's packages are [`go`]'s.

mod go;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tench_linux_packed::Attributes;

use super::apt::Missing;
use super::packages::{Package, Packages};
use crate::linux::{Content, Tree};
use crate::process;
use crate::toolchain;
use crate::workspace::{self, Workspace};

/// The list.
const LIST: &str = "tests/linux/suites.toml";
/// Where a suite's files are, and the list of its tests there.
const PLACE: &str = "suite";
const NAMES: &str = "list";
/// Folder of what is made, in the peer's, and the file in it that says of what.
const DIRECTORY: &str = "suites";
const STAMP: &str = "made-of";
/// The mark of a source that is compiled and linked, and run by another test.
const PART: &str = "-buildonly";

/// Held by the worker that makes a suite, so that each is made once.
static MAKING: Mutex<()> = Mutex::new(());

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    snapshot: String,
    #[serde(rename = "suite", default)]
    suites: Vec<Suite>,
    #[serde(rename = "go", default)]
    of_go: Vec<go::Suite>,
}

/// A suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    name: String,
    /// Folder of its sources in which the tests are, each a file `NUMBER-NUMBER.c` or `NUMBER-NUMBER.sh`.
    directory: String,
    /// Folder of its sources with headers.
    include: String,
    /// Arguments of the compiler, and of the linker below.
    flags: Vec<String>,
    libraries: Vec<String>,
    /// Files of its source package, the description first.
    #[serde(rename = "source")]
    sources: Vec<Package>,
    needs: Vec<Package>,
}

/// A suite of either kind.
#[derive(Debug)]
enum Found {
    OfC(Suite),
    OfGo(go::Suite),
}

/// Returns the suite of a name from the text of the list, and the list's snapshot.
fn find(text: &str, name: &str) -> Result<(Found, String)> {
    let List { snapshot, suites, of_go } = toml::from_str(text).map_err(|error| miette!("{LIST}: {error}"))?;
    let names = suites.iter().map(|suite| &suite.name).chain(of_go.iter().map(|suite| &suite.name));
    let names: Vec<String> = names.cloned().collect();
    if let Some(suite) = of_go.into_iter().find(|suite| suite.name == name) {
        suite.check()?;
        return Ok((Found::OfGo(suite), snapshot));
    }
    let found = suites.into_iter().find(|suite| suite.name == name);
    let help = format!("allowed: {}", names.join(", "));
    let suite = found.ok_or_else(|| miette!(help = help, "{LIST} has no suite {name}"))?;
    if suite.sources.first().is_none_or(|source| !source.path.ends_with(".dsc")) {
        return Err(miette!("{LIST}: the first source of {name} must be the package's description, a .dsc"));
    }
    Ok((Found::OfC(suite), snapshot))
}

/// Adds the tests of a suite to a tree, with the list of their names.
///
/// # Errors
/// [`Missing`], if its sources or a tool cannot be had; and a mistake in the list.
pub fn add(tree: &mut Tree, workspace: &Workspace, directory: &Path, name: &str) -> Result<()> {
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let text = workspace::read_text(&workspace.root.join(LIST))?;
    let (suite, snapshot) = find(&text, name)?;
    let own = std::path::absolute(directory.join(DIRECTORY).join(name)).into_diagnostic()?;
    let stamp: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    if fs::read_to_string(own.join(STAMP)).ok().as_ref() != Some(&stamp) {
        let _ = fs::remove_dir_all(&own);
        fs::create_dir_all(&own).into_diagnostic().wrap_err("cannot make a directory for a suite")?;
        let archive = Packages::of(snapshot);
        match &suite {
            Found::OfC(suite) => make(suite, &archive, workspace, directory, &own)?,
            Found::OfGo(suite) => suite.make(&archive, directory, &own)?,
        }
        workspace::write_file(&own.join(STAMP), stamp.as_bytes())?;
    }
    match suite {
        Found::OfC(suite) => add_programs(tree, &suite, &own),
        Found::OfGo(suite) => suite.add(tree, &own),
    }
}

/// Adds the programs of a suite that were made in `own`.
fn add_programs(tree: &mut Tree, suite: &Suite, own: &Path) -> Result<()> {
    let source = own.join("source");
    let mut tests = Vec::new();
    let mut put = |path: String, content: Vec<u8>| {
        let attributes = Attributes { permissions: 0o755, ..Attributes::default() };
        tree.add(format!("{PLACE}/{path}").as_bytes(), attributes, Content::Regular(content)).into_diagnostic()
    };
    for file in files(&source.join(&suite.directory))? {
        let path = file.strip_prefix(&source).into_diagnostic()?.to_string_lossy().into_owned();
        let Some((test, kind)) = path.rsplit_once('.').filter(|(test, _)| is_test(test)) else { continue };
        match kind {
            "c" if program(&file).is_file() => put(format!("{test}.test"), workspace::read_file(&program(&file))?)?,
            "sh" => put(path.clone(), workspace::read_file(&file)?)?,
            _ => continue,
        }
        tests.extend((!test.ends_with(PART)).then(|| test.to_owned()));
    }
    tests.sort();
    tests.dedup();
    put(NAMES.to_owned(), tests.iter().map(|test| format!("{test}\n")).collect::<String>().into_bytes())
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

/// Returns all files below a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let unreadable = || format!("cannot read the directory {}", directory.display());
    for entry in fs::read_dir(directory).into_diagnostic().wrap_err_with(unreadable)? {
        let path = entry.into_diagnostic()?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Fetches the sources and libraries of a suite, unpacks and compiles them.
fn make(suite: &Suite, archive: &Packages, workspace: &Workspace, directory: &Path, own: &Path) -> Result<()> {
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

    #[test]
    fn the_list_has_each_suite_with_a_description_first() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(LIST)).unwrap();
        let (Found::OfC(suite), _) = find(&text, "posix").unwrap() else { panic!("it has another kind") };
        assert_eq!((suite.directory.as_str(), suite.sources.len()), ("conformance", 3));
        let error = find(&text, "other").unwrap_err();
        assert_eq!(error.to_string(), format!("{LIST} has no suite other"));
        assert_eq!(error.help().unwrap().to_string(), "allowed: posix, go");
        assert!(matches!(find(&text, "go").unwrap(), (Found::OfGo(_), _)));
        let error = find(&text.replace(".dsc", ".tar"), "posix").unwrap_err().to_string();
        assert!(error.ends_with("must be the package's description, a .dsc"), "{error}");
        assert!(
            find(&text.replace("flags", "flag"), "posix").unwrap_err().to_string().contains("unknown field `flag`")
        );
    }
}
