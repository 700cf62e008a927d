//! Suites of tests that others have written, as they are. `tests/linux/suites.toml` lists them; each is made here once,
//! and its programs are put into `/suite` for a script that runs them. Each kind of suite, by where it comes from, has
//! a module here and a table in the list.

mod crates;
mod go;
mod registered;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tench_linux_packed::Attributes;

use super::packages::Packages;
use crate::linux::{Content, Tree};
use crate::workspace::{self, Workspace};

/// The list.
const LIST: &str = "tests/linux/suites.toml";
/// Where a suite's files are.
const PLACE: &str = "suite";
/// The list of a suite's tests, there.
const NAMES: &str = "list";
/// Permissions of a program, and of a file that is read.
const PROGRAM: u32 = 0o755;
const DATA: u32 = 0o644;
/// Folder of what is made, in the peer's, and the file in it that says of what.
const DIRECTORY: &str = "suites";
const STAMP: &str = "made-of";

/// Held by the worker that makes a suite, so that each is made once.
static MAKING: Mutex<()> = Mutex::new(());

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    snapshot: String,
    #[serde(rename = "suite", default)]
    sources: Vec<sources::Suite>,
    #[serde(rename = "crate", default)]
    crates: Vec<crates::Suite>,
    #[serde(rename = "go", default)]
    of_go: Vec<go::Suite>,
    #[serde(default)]
    registered: Vec<registered::Suite>,
}

/// A suite of one of the kinds.
#[derive(Debug)]
enum Suite {
    /// Sources in C of a Debian package.
    Sources(sources::Suite),
    /// A program of a Rust crate.
    Crate(crates::Suite),
    /// Tests of Go's own packages.
    Go(go::Suite),
    /// A program from a package registry.
    Registered(registered::Suite),
}

impl Suite {
    fn name(&self) -> &str {
        match self {
            Suite::Sources(suite) => &suite.name,
            Suite::Crate(suite) => &suite.name,
            Suite::Go(suite) => &suite.name,
            Suite::Registered(suite) => &suite.name,
        }
    }

    /// Returns why the list's entry makes no sense, if it does not.
    fn defect(&self) -> Option<String> {
        match self {
            Suite::Sources(suite) => suite.defect(),
            Suite::Crate(suite) => suite.defect(),
            Suite::Go(suite) => suite.defect(),
            Suite::Registered(suite) => suite.defect(),
        }
    }
}

/// Returns the suite of a name from the text of the list, and the list's snapshot.
fn find(text: &str, name: &str) -> Result<(Suite, String)> {
    let List { snapshot, sources, crates, of_go, registered } =
        toml::from_str(text).map_err(|error| miette!("{LIST}: {error}"))?;
    let all = sources.into_iter().map(Suite::Sources).chain(crates.into_iter().map(Suite::Crate));
    let all = all.chain(of_go.into_iter().map(Suite::Go));
    let all: Vec<Suite> = all.chain(registered.into_iter().map(Suite::Registered)).collect();
    let names: Vec<String> = all.iter().map(|suite| suite.name().to_owned()).collect();
    let found = all.into_iter().find(|suite| suite.name() == name);
    let help = format!("allowed: {}", names.join(", "));
    let suite = found.ok_or_else(|| miette!(help = help, "{LIST} has no suite {name}"))?;
    match suite.defect() {
        Some(defect) => Err(miette!("{LIST}: {defect}")),
        None => Ok((suite, snapshot)),
    }
}

/// Adds the programs of a suite to a tree.
///
/// # Errors
/// [`Missing`](super::apt::Missing), if its sources or a tool cannot be had; and a mistake in the list.
pub fn add(tree: &mut Tree, workspace: &Workspace, directory: &Path, name: &str) -> Result<()> {
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let text = workspace::read_text(&workspace.root.join(LIST))?;
    let (suite, snapshot) = find(&text, name)?;
    let own = std::path::absolute(directory.join(DIRECTORY).join(name)).into_diagnostic()?;
    // Everything of which the suite is made.
    let made_of = format!("{suite:?} {snapshot}");
    let stamp: String = Sha256::digest(&made_of).iter().map(|byte| format!("{byte:02x}")).collect();
    if fs::read_to_string(own.join(STAMP)).ok().as_ref() != Some(&stamp) {
        let _ = fs::remove_dir_all(&own);
        fs::create_dir_all(&own).into_diagnostic().wrap_err("cannot make a directory for a suite")?;
        match &suite {
            Suite::Sources(suite) => sources::make(suite, &Packages::of(snapshot), workspace, directory, &own)?,
            Suite::Crate(suite) => crates::make(suite, &own)?,
            Suite::Go(suite) => suite.make(&Packages::of(snapshot), directory, &own)?,
            Suite::Registered(suite) => suite.make(&own)?,
        }
        workspace::write_file(&own.join(STAMP), stamp.as_bytes())?;
    }
    match &suite {
        Suite::Sources(suite) => sources::add(tree, suite, &own),
        Suite::Crate(suite) => put(tree, &suite.name, PROGRAM, workspace::read_file(&crates::program(suite, &own))?),
        Suite::Go(suite) => suite.add(tree, &own),
        Suite::Registered(suite) => put(tree, &suite.name, PROGRAM, workspace::read_file(&suite.program(&own))?),
    }
}

/// Adds a file of a suite to a tree.
fn put(tree: &mut Tree, path: &str, permissions: u32, content: Vec<u8>) -> Result<()> {
    let attributes = Attributes { permissions, ..Attributes::default() };
    tree.add(format!("{PLACE}/{path}").as_bytes(), attributes, Content::Regular(content)).into_diagnostic()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_suites_of_each_kind_and_names_mistakes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(LIST)).unwrap();
        let (suite, _) = find(&text, "posix").unwrap();
        assert!(matches!(suite, Suite::Sources(suite) if suite.directory == "conformance" && suite.sources.len() == 3));
        assert!(matches!(find(&text, "fsx").unwrap().0, Suite::Crate(_)));
        let error = find(&text, "other").unwrap_err();
        assert_eq!(error.to_string(), format!("{LIST} has no suite other"));
        assert_eq!(
            error.help().unwrap().to_string(),
            "allowed: posix, pjdfstest, fsx, coremark, go, esbuild, ruff, uv"
        );
        let error = find(&text.replace(".dsc", ".tar"), "posix").unwrap_err().to_string();
        assert!(error.ends_with("must be the package's description, a .dsc"), "{error}");
        let error = find(&text.replace("version = \"0.3.2\"", "version = \"0.3\""), "fsx").unwrap_err().to_string();
        assert!(error.ends_with("the version 0.3 of fsx must have three numbers, as 1.2.3"), "{error}");
        let error = find(&text.replace("flags", "flag"), "posix").unwrap_err().to_string();
        assert!(error.contains("unknown field `flag`"), "{error}");
    }
}
