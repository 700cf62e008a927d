//! The files generated from interfaces: a C header, which is made when programs in C are built, and a page of the
//! manual, which is kept in the tree.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::source::Source;
use crate::{header, page};

/// Folders below which interfaces lie, in files of the following name.
const FOLDERS: [&str; 2] = ["user/interfaces", "user/lib"];
const FILE: &str = "protocol.rs";
/// Folder of the pages in the tree.
pub const PAGES: &str = "docs/manual/interfaces";

/// A generated file: its name, and its content.
pub type File = (String, String);

/// Reason why files could not be generated.
#[derive(Debug)]
pub struct Wrong {
    /// Path of the wrong file, from the root of the tree.
    pub path: PathBuf,
    /// Description of the problem.
    pub problem: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for Wrong {}

/// Returns the C headers of all interfaces of a source tree, by name.
///
/// # Errors
/// Fails if a file cannot be read, or has something that is not allowed in an interface.
pub fn headers(root: &Path) -> Result<Vec<File>, Wrong> {
    generate(root, "h", |source, _| header::header(source))
}

/// Returns the manual's pages of all interfaces of a source tree, by name.
///
/// # Errors
/// As [`headers`].
pub fn pages(root: &Path) -> Result<Vec<File>, Wrong> {
    generate(root, "md", page::page)
}

/// Generates a file from each interface.
fn generate(
    root: &Path,
    extension: &str,
    text: impl Fn(&Source, &Path) -> Result<String, syn::Error>,
) -> Result<Vec<File>, Wrong> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        collect(root, Path::new(folder), &mut sources)?;
    }
    sources.sort_by(|one, other| one.1.name.cmp(&other.1.name));
    let file = |(path, source): &(PathBuf, Source)| {
        let text = text(source, path).map_err(|error| refused(path, &error))?;
        Ok((format!("{}.{extension}", source.name), text))
    };
    sources.iter().map(file).collect()
}

/// Collects the interfaces below a folder.
fn collect(root: &Path, folder: &Path, found: &mut Vec<(PathBuf, Source)>) -> Result<(), Wrong> {
    let unreadable = |path: &Path, error: std::io::Error| Wrong { path: path.into(), problem: error.to_string() };
    for entry in std::fs::read_dir(root.join(folder)).map_err(|error| unreadable(folder, error))? {
        let entry = entry.map_err(|error| unreadable(folder, error))?;
        let path = folder.join(entry.file_name());
        if root.join(&path).is_dir() {
            collect(root, &path, found)?;
        } else if entry.file_name() == FILE {
            let text = std::fs::read_to_string(root.join(&path)).map_err(|error| unreadable(&path, error))?;
            let source = Source::read(&text).map_err(|error| refused(&path, &error))?;
            found.extend(source.map(|source| (path, source)));
        }
    }
    Ok(())
}

/// Returns the interface compiler's error about a place in a file.
fn refused(path: &Path, error: &syn::Error) -> Wrong {
    Wrong { path: path.into(), problem: format!("line {}: {error}", error.span().start().line) }
}
