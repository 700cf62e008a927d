//! Go's own tests: the tests of packages of its standard library, which Debian's Go compiler compiles to programs. The
//! compiler runs here and cross-compiles for the other processor; it is fetched and unpacked like a source.

use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{IntoDiagnostic, Result};
use serde::Deserialize;

use super::{NAMES, PROGRAM, files, put};
use crate::linux::Tree;
use crate::peer::apt::Missing;
use crate::peer::packages::{Package, Packages};
use crate::process;
use crate::workspace;

/// Where Debian's packages have Go, and its sources.
const ROOT: &str = "usr/lib/go-1.19";
const SOURCES: &str = "usr/share/go-1.19/src";
/// Folder of data, in that of each package and in that of all packages.
const DATA: &str = "testdata";
/// Folders of what is unpacked and of what is made.
const SYSTEM: &str = "system";
const MADE: &str = "made";

/// A suite of tests of Go's packages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub name: String,
    /// Paths of the packages of Go whose tests it has.
    packages: Vec<String>,
    /// Packages of Debian that are unpacked: the compiler for this machine, and its sources.
    #[serde(rename = "source")]
    sources: Vec<Package>,
}

impl Suite {
    /// Returns why the list's entry makes no sense, if it does not.
    pub fn defect(&self) -> Option<String> {
        let name = &self.name;
        let is_path = |path: &String| !path.is_empty() && !path.contains("..") && !path.starts_with('/');
        if self.packages.is_empty() || !self.packages.iter().all(is_path) {
            let help = "name packages of Go's standard library, such as \"os/signal\"";
            return Some(format!("`packages` of {name} is wrong or empty; {help}"));
        }
        let has_compiler = self.sources.first().is_some_and(|source| source.architecture == "amd64");
        (!has_compiler).then(|| format!("the first source of {name} must be a compiler for amd64, which runs here"))
    }

    /// Fetches the compiler and the sources, and makes the programs in `own`.
    ///
    /// # Errors
    /// [`Missing`], if a package cannot be had, or if the compiler does not run on this machine; and a package of
    /// Go's whose tests cannot be compiled.
    pub fn make(&self, archive: &Packages, directory: &Path, own: &Path) -> Result<()> {
        let system = own.join(SYSTEM);
        for package in archive.files(directory, &self.sources.iter().collect::<Vec<_>>())? {
            process::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&system))?;
        }
        if !cfg!(target_arch = "x86_64") {
            Err(Missing::Tool { program: "a compiler of Go for this machine", package: "golang-1.19-go" })?;
        }
        eprintln!("compiling the suite {}", self.name);
        for package in &self.packages {
            process::run(&mut compiler(&system, own, package))?;
        }
        Ok(())
    }

    /// Adds the programs, what lies beside their sources, and the list of the packages' names to a tree.
    pub fn add(&self, tree: &mut Tree, own: &Path) -> Result<()> {
        let sources = own.join(SYSTEM).join(SOURCES);
        for path in files(&sources.join(DATA))? {
            let name = path.strip_prefix(&sources).into_diagnostic()?.to_string_lossy().into_owned();
            put(tree, &name, super::DATA, workspace::read_file(&path)?)?;
        }
        for package in &self.packages {
            let program = workspace::read_file(&own.join(MADE).join(file(package)))?;
            put(tree, &format!("{package}/{}", file(package)), PROGRAM, program)?;
            let source = sources.join(package);
            for path in beside(&source)? {
                let name = path.strip_prefix(&source).into_diagnostic()?.to_string_lossy().into_owned();
                put(tree, &format!("{package}/{name}"), super::DATA, workspace::read_file(&path)?)?;
            }
        }
        let names: String = self.packages.iter().map(|package| format!("{package}\n")).collect();
        put(tree, NAMES, super::DATA, names.into_bytes())
    }
}

/// Returns the name of the program with the tests of a package.
fn file(package: &str) -> String {
    format!("{}.test", package.replace('/', "_"))
}

/// Returns the files in the directory of a package, and those in its test data: others are other packages'.
fn beside(source: &Path) -> Result<Vec<PathBuf>> {
    let data = source.join(DATA);
    let all = files(source)?;
    Ok(all.into_iter().filter(|path| path.parent() == Some(source) || path.starts_with(&data)).collect())
}

/// Returns the command that compiles the tests of a package.
fn compiler(system: &Path, own: &Path, package: &str) -> Command {
    let root = system.join(ROOT);
    let mut command = Command::new(root.join("bin/go"));
    // The settings for Go on this machine must not change the programs.
    command.env_clear().env("PATH", "/usr/bin:/bin").env("GOROOT", &root);
    command.env("HOME", own).env("GOCACHE", own.join("cache")).env("GOPROXY", "off").env("GOENV", "off");
    command.env("GOOS", "linux").env("GOARCH", "arm64").env("CGO_ENABLED", "0");
    command.current_dir(system.join(SOURCES)).args(["test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o"]);
    command.arg(own.join(MADE).join(file(package))).arg(package);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(packages: &str, architecture: &str) -> Suite {
        let source = format!(
            "name = \"s\"\npackages = [{packages}]\n[[source]]\nname = \"c\"\nversion = \"1\"\nsize = 1\n\
             architecture = \"{architecture}\"\nsha256 = \"0\"\npath = \"pool/c.deb\"\n"
        );
        toml::from_str(&source).unwrap()
    }

    #[test]
    fn mistakes_in_a_suite_are_named() {
        assert_eq!(suite("\"os\", \"os/signal\"", "amd64").defect(), None);
        for packages in ["", "\"\"", "\"/os\"", "\"../os\""] {
            let error = suite(packages, "amd64").defect().unwrap();
            assert!(error.starts_with("`packages` of s is wrong or empty; name"), "{packages}: {error}");
        }
        let error = suite("\"os\"", "arm64").defect().unwrap();
        assert!(error.starts_with("the first source of s must be a compiler for amd64"), "{error}");
    }

    #[test]
    fn a_program_has_its_packages_files_beside_it_and_no_other_packages() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path();
        let source = own.join(SYSTEM).join(SOURCES).join("os/signal");
        for path in ["a_test.go", "testdata/deep/x", "internal/b.go", "../../testdata/y"] {
            workspace::write_file(&source.join(path), path.as_bytes()).unwrap();
        }
        workspace::write_file(&own.join(MADE).join("os_signal.test"), b"program").unwrap();
        let mut tree = Tree::default();
        suite("\"os/signal\"", "amd64").add(&mut tree, own).unwrap();
        let names: Vec<String> =
            tree.entries().iter().map(|entry| String::from_utf8_lossy(entry.path).into_owned()).collect();
        for name in
            ["suite/list", "suite/os/signal/os_signal.test", "suite/os/signal/testdata/deep/x", "suite/testdata/y"]
        {
            assert!(names.iter().any(|one| one == name), "{name}: {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("internal")), "{names:?}");
    }
}
