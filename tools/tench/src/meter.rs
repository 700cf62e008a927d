//! The emulator's plug-in that counts what the machine does (`tools/meter`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use miette::Result;

use crate::process;
use crate::workspace::Workspace;

/// Package of the plug-in.
const PACKAGE: &str = "tench-meter";
/// File that cargo makes of it.
const FILE: &str = "libtench_meter.so";

/// Returns the plug-in that separates a core's own time from the turns of the others.
pub fn turns(workspace: &Workspace) -> Result<OsString> {
    Ok(build(workspace)?.into_os_string())
}

/// Returns the plug-in that counts the cache lines that the kernel touches, and writes them to this file.
pub fn lines(workspace: &Workspace, file: &Path) -> Result<OsString> {
    let mut plugin = turns(workspace)?;
    plugin.push(",lines=");
    plugin.push(file);
    Ok(plugin)
}

/// Builds the plug-in for this machine.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    command.args(["build", "--quiet", "--release", "-p", PACKAGE]);
    process::run(&mut command)?;
    Ok(workspace.target.join("release").join(FILE))
}
