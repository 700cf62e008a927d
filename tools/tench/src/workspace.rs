//! Locations of files on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

/// The source tree and the directory for everything that is built.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Root of the source tree.
    pub root: PathBuf,
    /// `target/`, or what `CARGO_TARGET_DIR` says.
    pub target: PathBuf,
}

impl Workspace {
    /// Finds the tree that contains the current directory, or else the one from which this tool was built.
    pub fn find() -> Result<Workspace> {
        let here = std::env::current_dir().into_diagnostic()?;
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here
            .ancestors()
            .chain(built_from.ancestors())
            .find(|directory| directory.join("abi/src/boot.rs").is_file() && directory.join("tench").exists())
            .ok_or_else(|| miette!("this is not inside a Tench source tree; change into one"))?
            .to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(target) => here.join(target),
            None => root.join("target"),
        };
        Ok(Workspace { root, target })
    }

    /// Returns `path` as seen from the root, for messages.
    pub fn relative<'p>(&self, path: &'p Path) -> std::path::Display<'p> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }

    /// Returns the path of the system description called `name`.
    pub fn system(&self, name: &str) -> PathBuf {
        self.root.join("systems").join(name).with_extension("toml")
    }
}

/// Writes a file whole: a reader sees the old content or the new, and two writers do not mix.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot make the directory {}", directory.display()))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = directory.join(name);
    fs::write(&temporary, content)
        .and_then(|()| fs::rename(&temporary, path))
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot write {}", path.display()))
}

/// Reads a file; the error names it.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).into_diagnostic().wrap_err_with(|| format!("cannot read {}", path.display()))
}

/// Reads a text file; the error names it.
pub fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).into_diagnostic().wrap_err_with(|| format!("cannot read {}", path.display()))
}
