//! Suites in Rust: the program of a crate, which `cargo` fetches with the versions that its author has locked, and
//! compiles for Linux on this processor without a shared C library.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::peer::apt::Missing;
use crate::process;
use crate::toolchain;
use crate::workspace;

/// The target for which they are compiled, and the variables that say how to link for it.
const TARGET: &str = "aarch64-unknown-linux-musl";
const LINKER: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER";
const FLAGS: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS";
/// A library without contents.
const EMPTY_LIBRARY: &[u8] = b"!<arch>\n";

/// A suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    /// Name of the crate, and of its program.
    pub name: String,
    pub version: String,
    /// Checksum of the crate's file, as in the registry.
    sha256: String,
    /// Libraries of the system that the program names, but needs for nothing that the suite runs. They are left out.
    #[serde(default)]
    without: Vec<String>,
}

impl Suite {
    /// Returns why the list's entry makes no sense, if it does not.
    pub fn defect(&self) -> Option<String> {
        let Suite { name, version, sha256, .. } = self;
        let parts: Vec<&str> = version.split('.').collect();
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() != 3 || !parts.iter().all(is_number) {
            return Some(format!("the version {version} of {name} must have three numbers, as 1.2.3"));
        }
        let is_sum = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        (!is_sum).then(|| format!("`sha256` of {name} must have 64 hexadecimal digits"))
    }

    /// Returns the name of the crate's file.
    fn file(&self) -> String {
        format!("{}-{}.crate", self.name, self.version)
    }
}

/// Returns the program that is made of a suite.
pub(super) fn program(suite: &Suite, own: &Path) -> PathBuf {
    own.join("root/bin").join(&suite.name)
}

/// Fetches and compiles a suite.
pub(super) fn make(suite: &Suite, own: &Path) -> Result<()> {
    let linker = toolchain::find_linker().ok_or(Missing::Tool { program: "ld.lld", package: "lld-19" })?;
    check_target()?;
    fetch(suite, own)?;
    eprintln!("compiling the suite {}", suite.name);
    let mut flags = vec!["-Clink-self-contained=yes".to_owned()];
    if !suite.without.is_empty() {
        let empty = own.join("empty");
        fs::create_dir_all(&empty).into_diagnostic().wrap_err("cannot make a directory for a suite")?;
        for library in &suite.without {
            workspace::write_file(&empty.join(format!("lib{library}.a")), EMPTY_LIBRARY)?;
        }
        flags.push(format!("-Lnative={}", empty.display()));
        flags.push("-Clink-arg=--unresolved-symbols=ignore-all".to_owned());
    }
    let mut command = Command::new("cargo");
    command.args(["install", "--quiet", "--locked", "--target", TARGET, "--version"]);
    command.arg(format!("={}", suite.version)).arg(&suite.name);
    command.arg("--root").arg(own.join("root")).arg("--target-dir").arg(own.join("target"));
    command.env(LINKER, linker).env(FLAGS, flags.join(" ")).env("CARGO_INCREMENTAL", "0").current_dir(own);
    // The flags of this tree are not meant for others' programs.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    process::run(&mut command)?;
    fs::remove_dir_all(own.join("target")).into_diagnostic().wrap_err("cannot remove what was compiled")
}

/// Fails if the compiler has no library for the target.
fn check_target() -> Result<()> {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", TARGET]).stderr(Stdio::null());
    let output = command.output().into_diagnostic().wrap_err_with(|| process::cannot_start(&command))?;
    let directory = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if output.status.success() && directory.is_dir() {
        return Ok(());
    }
    Err(Missing::Target { target: TARGET }.into())
}

/// Lets `cargo` fetch a crate, and compares its checksum.
fn fetch(suite: &Suite, own: &Path) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["info", "--quiet"]).arg(format!("{}@{}", suite.name, suite.version)).current_dir(own);
    let status = command.stdout(Stdio::null()).status();
    if !status.into_diagnostic().wrap_err_with(|| process::cannot_start(&command))?.success() {
        return Err(Missing::Crate { name: suite.name.clone(), version: suite.version.clone() }.into());
    }
    let file =
        find(suite).ok_or_else(|| Missing::Crate { name: suite.name.clone(), version: suite.version.clone() })?;
    let sum: String = Sha256::digest(workspace::read_file(&file)?).iter().map(|byte| format!("{byte:02x}")).collect();
    if sum == suite.sha256 {
        return Ok(());
    }
    let help = format!(
        "expected {}, found {sum}; remove {}, and see which one the registry has",
        suite.sha256,
        file.display()
    );
    Err(miette!(help = help, "the crate {} is not the one in tests/linux/suites.toml", suite.file()))
}

/// Returns the file of a crate that `cargo` has fetched.
fn find(suite: &Suite) -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/cache")).ok()?;
    registries.filter_map(|registry| Some(registry.ok()?.path().join(suite.file()))).find(|file| file.is_file())
}
