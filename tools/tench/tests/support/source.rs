//! The source files of the tree, and how a test reads and rewrites one.

use std::path::{Path, PathBuf};

/// Returns the root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the tool lies two folders below the root")
}

/// Returns a file of the tree, by its path from the root.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Fails unless a file is as expected, or writes it if the environment says `BLESS`.
pub fn check(path: &str, expected: &str) {
    let full = root().join(path);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&full, expected).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    let found = std::fs::read_to_string(&full).unwrap_or_default();
    let differs = |(found, expected): &(Option<&str>, Option<&str>)| found != expected;
    let length = found.lines().count().max(expected.lines().count());
    let mut pairs = (0..length).map(|line| (found.lines().nth(line), expected.lines().nth(line)));
    if let Some(position) = pairs.clone().position(|pair| differs(&pair)) {
        let (found, expected) = pairs.nth(position).unwrap_or_default();
        panic!(
            "{path}:{}: found    {}\n{path}:{}: expected {}\nBLESS=1 cargo test -p tench-tool --test {} writes it",
            position + 1,
            found.unwrap_or("(the end)"),
            position + 1,
            expected.unwrap_or("(the end)"),
            env!("CARGO_CRATE_NAME"),
        );
    }
}

/// Folders without source files, as paths from the root.
const NOT_SOURCE: [&str; 4] = ["target", "fuzz/target", "fuzz/corpus", "fuzz/artifacts"];

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
            if !name.starts_with('.') && !NOT_SOURCE.contains(&from_root(&path).as_str()) {
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
