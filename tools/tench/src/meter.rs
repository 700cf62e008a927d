//! The emulator's plug-in that separates a core's own time from the turns of the others (`tools/meter`).

use std::path::PathBuf;
use std::process::Command;

use miette::Result;

use crate::process;
use crate::workspace::Workspace;

/// Package of the plug-in.
const PACKAGE: &str = "tench-meter";
/// File that cargo makes of it.
const FILE: &str = "libtench_meter.so";

/// Builds the plug-in for this machine.
pub fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    command.args(["build", "--quiet", "--release", "-p", PACKAGE]);
    process::run(&mut command)?;
    Ok(workspace.target.join("release").join(FILE))
}
