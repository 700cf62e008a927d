//! Files made by cargo, from the messages that it prints for tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::{Result, miette};
use serde::Deserialize;

use crate::system::Packages;

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact(Artifact),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    target: Target,
    executable: Option<PathBuf>,
    filenames: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The executables and static libraries of one cargo invocation.
#[derive(Clone, Debug, Default)]
pub struct Artifacts {
    /// Executables by package, then by name of the target.
    executables: BTreeMap<String, BTreeMap<String, PathBuf>>,
    libraries: BTreeMap<String, PathBuf>,
}

impl Artifacts {
    /// Adds what cargo's messages name, one line each.
    pub fn read(&mut self, messages: &str, packages: &Packages) -> Result<()> {
        for line in messages.lines().filter(|line| line.starts_with('{')) {
            let message =
                serde_json::from_str(line).map_err(|error| miette!("cargo said something unexpected: {error}"))?;
            let Message::CompilerArtifact(artifact) = message else { continue };
            let Some(package) = packages.name_of(&artifact.package_id) else { continue };
            if let Some(executable) = artifact.executable {
                let of_package = self.executables.entry(package.to_owned()).or_default();
                of_package.insert(artifact.target.name, executable);
            } else if artifact.target.kind.iter().any(|kind| kind == "staticlib") {
                let library = artifact.filenames.into_iter().find(|name| name.extension().is_some_and(|it| it == "a"));
                self.libraries.extend(library.map(|library| (package.to_owned(), library)));
            }
        }
        Ok(())
    }

    /// Returns the executable of a package: its only one, or the one with the package's name.
    pub fn executable(&self, package: &str) -> Result<&Path> {
        let Some(executables) = self.executables.get(package) else {
            return Err(miette!("cargo made no program from the package {package}"));
        };
        let only = if executables.len() == 1 { executables.values().next() } else { executables.get(package) };
        only.map(PathBuf::as_path).ok_or_else(|| miette!("{package} has several programs and none has its name"))
    }

    /// Returns the static library of a package.
    pub fn library(&self, package: &str) -> Result<&Path> {
        let library = self.libraries.get(package).map(PathBuf::as_path);
        library.ok_or_else(|| miette!("cargo made no static library from the package {package}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_and_libraries_are_found_by_package() {
        let line = |package: &str, target: &str, kind: &str, executable: &str, file: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"id#{package}","target":{{"name":"{target}","kind":["{kind}"]}},"executable":{executable},"filenames":["{file}"],"fresh":true}}"#
            )
        };
        let messages = [
            line("shell", "shell", "bin", r#""/t/shell""#, "/t/shell"),
            line("two", "one", "bin", r#""/t/one""#, "/t/one"),
            line("two", "two", "bin", r#""/t/two""#, "/t/two"),
            line("c", "c", "staticlib", "null", "/t/libc.a"),
            line("stranger", "x", "bin", r#""/t/x""#, "/t/x"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let packages = Packages::of(&["shell", "two", "c"]);
        let mut artifacts = Artifacts::default();
        artifacts.read(&messages.join("\n"), &packages).unwrap();
        assert_eq!(artifacts.executable("shell").unwrap(), Path::new("/t/shell"));
        assert_eq!(artifacts.executable("two").unwrap(), Path::new("/t/two"));
        assert_eq!(artifacts.library("c").unwrap(), Path::new("/t/libc.a"));
        assert!(artifacts.executable("stranger").is_err());
        assert!(artifacts.library("shell").is_err());
    }
}
