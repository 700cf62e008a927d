//! The source files of the tree.

use std::path::{Path, PathBuf};

use super::root;

/// Folders without source files.
const NOT_SOURCE: [&str; 3] = ["target", "corpus", "artifacts"];

/// Returns every file below `folder` (a path from the root) whose name ends with `end`, as paths from the root, in
/// order.
pub fn files(folder: &str, end: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&root().join(folder), end, &mut found);
    let mut paths: Vec<String> = found.iter().map(|path| from_root(path)).collect();
    paths.sort();
    paths
}

fn from_root(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}

fn collect(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if !name.starts_with('.') && !NOT_SOURCE.contains(&name.as_str()) {
                collect(&path, end, found);
            }
        } else if name.ends_with(end) {
            found.push(path);
        }
    }
}

/// Returns the folders of all crates, as paths from the root: those with a package's manifest.
pub fn crates() -> Vec<String> {
    let manifests = files("", "Cargo.toml").into_iter();
    manifests.filter_map(|manifest| manifest.strip_suffix("/Cargo.toml").map(str::to_owned)).collect()
}

/// Returns the source files of a crate, without those of crates inside its folder.
pub fn files_of(folder: &str, all: &[String]) -> Vec<String> {
    let inner: Vec<String> =
        all.iter().filter(|other| other.starts_with(&format!("{folder}/"))).map(|other| format!("{other}/")).collect();
    files(folder, ".rs").into_iter().filter(|file| !inner.iter().any(|other| file.starts_with(other))).collect()
}
