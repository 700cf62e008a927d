//! The files that a script has on Linux and on Tench: those of Debian's packages, as they are, and all of
//! `tests/linux/scripts` in `/test`.

use std::fs;
use std::path::Path;

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tench_linux_packed::Attributes;

use super::golden::Script;
use super::packages::Packages;
use super::suites;
use crate::linux::{self, Content, Tree};
use crate::workspace::{self, Workspace};

/// Folder of the scripts, and where they are.
const SOURCE: &str = "tests/linux/scripts";
const PLACE: &str = "test";
/// Symbolic links that Debian's systems have before any package is unpacked.
const LINKS: [(&str, &str); 3] = [("bin", "usr/bin"), ("lib", "usr/lib"), ("sbin", "usr/sbin")];
/// Time at which the files that are no package's were changed: the beginning of 2020.
const MODIFIED: i64 = 1_577_836_800;

/// Returns the files of a script. Packages are fetched into the peer's directory if they are not there.
///
/// # Errors
/// A package cannot be had or is not what its list says, or the command's script does not exist.
pub fn tree(workspace: &Workspace, directory: &Path, script: &Script) -> Result<Tree> {
    let mut tree = root()?;
    let list = Packages::load(workspace)?;
    let packages = list.with_needs(&script.packages)?;
    linux::add(&mut tree, &list.files(directory, &packages)?)?;
    if !script.files.is_empty() {
        keep(&mut tree, &script.name, script.files.iter().cloned())?;
    }
    if let Some(suite) = &script.suite {
        suites::add(&mut tree, workspace, directory, suite)?;
    }
    add_scripts(&mut tree, &workspace.root.join(SOURCE))?;
    check(workspace, script)?;
    Ok(tree)
}

/// Returns the tree that Debian's systems have before any package is unpacked.
pub fn root() -> Result<Tree> {
    let mut tree = Tree::default();
    for (path, target) in LINKS {
        tree.add(path.as_bytes(), attributes(0o777), Content::Link(target.into())).into_diagnostic()?;
        tree.add(target.as_bytes(), attributes(0o755), Content::Directory).into_diagnostic()?;
    }
    Ok(tree)
}

/// Keeps some files and directories of what `name` needs, and what the root has.
pub fn keep(tree: &mut Tree, name: &str, files: impl Iterator<Item = String>) -> Result<()> {
    let wanted: Vec<String> = files.chain(LINKS.map(|(path, _)| path.to_owned())).collect();
    let help = "paths begin at the root and lead through no symbolic links: /usr/bin/x, not /bin/x";
    match tree.keep(&wanted) {
        Some(missing) => Err(miette!(help = help, "no package of {name} has {missing}")),
        None => Ok(()),
    }
}

/// Fails if the command names a script that does not exist.
fn check(workspace: &Workspace, script: &Script) -> Result<()> {
    let named = script.command.iter().filter_map(|word| word.strip_prefix('/')?.strip_prefix(PLACE)?.strip_prefix('/'));
    for name in named {
        if !workspace.root.join(SOURCE).join(name).is_file() {
            let help = format!("/{PLACE} has the files of {SOURCE}, all of them");
            return Err(miette!(help = help, "the script {} runs /{PLACE}/{name}, which does not exist", script.name));
        }
    }
    Ok(())
}

fn add_scripts(tree: &mut Tree, from: &Path) -> Result<()> {
    tree.add(PLACE.as_bytes(), attributes(0o755), Content::Directory).into_diagnostic()?;
    let unreadable = || format!("cannot read the directory {}", from.display());
    for entry in fs::read_dir(from).into_diagnostic().wrap_err_with(unreadable)? {
        let path = entry.into_diagnostic()?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let content = Content::Regular(workspace::read_file(&path)?);
        tree.add(format!("{PLACE}/{name}").as_bytes(), attributes(0o755), content).into_diagnostic()?;
    }
    Ok(())
}

fn attributes(permissions: u32) -> Attributes {
    Attributes { permissions, modified: MODIFIED, ..Attributes::default() }
}
