//! The tools that build and run the system: Rust for bare metal, a C compiler, QEMU.
//!
//! Rust for bare metal comes in two ways: a compiler that has the target's libraries, or one whose library sources are
//! installed, from which cargo then builds `core` and `alloc`. Both give the same system, with other figures, because
//! another compiler generates other instructions. `TENCH_RUST` names a directory with `cargo` and `rustc` to use
//! instead.

use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{Result, miette};

use crate::process;
use crate::workspace::Workspace;

/// Target of kernel and programs: no vector registers unless a program asks for them.
pub const TARGET: &str = "aarch64-unknown-none-softfloat";

/// The end of a [compiler's identity](BareMetal::identity) if it builds `core` from source, as Debian's does.
pub const FROM_SOURCE: &str = "core from source";

/// Name of the emulator.
pub const QEMU: &str = "qemu-system-aarch64";

/// A Rust compiler that can build for the bare machine.
#[derive(Clone, Debug)]
pub struct BareMetal {
    cargo: PathBuf,
    rustc: PathBuf,
    /// Version as printed: `rustc 1.96.0 …`.
    pub version: String,
    /// Set if `core` and `alloc` are built from source.
    pub from_source: bool,
    /// Linker to name, unless the compiler brings its own.
    linker: Option<PathBuf>,
}

impl BareMetal {
    /// Finds the first suitable compiler: one with the target's libraries before one with the sources.
    pub fn find() -> Option<BareMetal> {
        let found: Vec<BareMetal> =
            rust_directories().iter().filter_map(|directory| Self::in_directory(directory)).collect();
        found.iter().find(|one| !one.from_source).or(found.first()).cloned()
    }

    /// Finds a compiler as [`find`](Self::find) does, or fails with advice.
    pub fn require() -> Result<BareMetal> {
        Self::find().ok_or_else(|| {
            miette!(
                help = format!(
                    "rustup target add {TARGET}, or on Debian: apt-get install rustc-web cargo-web rust-web-src lld-19"
                ),
                "no Rust compiler here can build for {TARGET}"
            )
        })
    }

    fn in_directory(directory: &Path) -> Option<BareMetal> {
        let (cargo, rustc) = (directory.join("cargo"), directory.join("rustc"));
        let version = process::first_line(&rustc, &["--version"])?;
        process::first_line(&cargo, &["--version"])?;
        if !is_new_enough(&version) {
            return None;
        }
        let libraries = process::first_line(&rustc, &["--print", "target-libdir", "--target", TARGET]);
        if libraries.is_some_and(|libraries| Path::new(&libraries).is_dir()) {
            return Some(BareMetal { cargo, rustc, version, from_source: false, linker: None });
        }
        let sysroot = PathBuf::from(process::first_line(&rustc, &["--print", "sysroot"])?);
        if !sysroot.join("lib/rustlib/src/rust/library/core").is_dir() {
            return None;
        }
        let own_linker = has_own_linker(&sysroot);
        let linker = if own_linker { None } else { Some(find_linker()?) };
        Some(BareMetal { cargo, rustc, version, from_source: true, linker })
    }

    /// Returns the command `cargo SUBCOMMAND` for the target.
    pub fn cargo(&self, workspace: &Workspace, subcommand: &str) -> Command {
        let mut command = Command::new(&self.cargo);
        command.current_dir(&workspace.root).arg(subcommand).args(["--target", TARGET]);
        command.env("RUSTC", &self.rustc).env("CARGO_TARGET_DIR", &workspace.target);
        if self.from_source {
            // For `-Z build-std` alone; the system's own code uses no unstable feature.
            command.arg("-Zbuild-std=core,alloc").env("RUSTC_BOOTSTRAP", "1");
            command.env("CARGO_FUTURE_INCOMPAT_REPORT_FREQUENCY", "never");
        }
        if let Some(linker) = &self.linker {
            command.env("CARGO_TARGET_AARCH64_UNKNOWN_NONE_SOFTFLOAT_LINKER", linker);
        }
        command
    }

    /// Returns an identifier of all that decides which instructions are generated.
    pub fn identity(&self) -> String {
        let number = self.version.split_whitespace().nth(1).unwrap_or("unknown");
        format!("rustc {number}, {}", self.kind())
    }

    /// Returns where the target's libraries come from.
    pub fn kind(&self) -> &'static str {
        if self.from_source { FROM_SOURCE } else { "core as installed" }
    }
}

/// Returns the directories where Rust may be installed: the one that `TENCH_RUST` names, and no other; without it those
/// of the `PATH`, then Rust's own place, then the distribution's.
fn rust_directories() -> Vec<PathBuf> {
    if let Some(directory) = std::env::var_os("TENCH_RUST") {
        return vec![PathBuf::from(directory)];
    }
    let mut directories: Vec<PathBuf> = Vec::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::home_dir().map(|home| home.join(".cargo/bin"));
    for directory in std::env::split_paths(&path).chain(home).chain([PathBuf::from("/usr/bin")]) {
        if directory.join("rustc").exists() && !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    directories
}

/// Returns whether `rustc 1.96.0 …` is at least the version that the workspace requires.
fn is_new_enough(version: &str) -> bool {
    let numbers = |text: &str| -> Option<(u32, u32)> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??))
    };
    let have = version.split_whitespace().nth(1).and_then(numbers);
    have >= numbers(env!("CARGO_PKG_RUST_VERSION"))
}

/// Returns whether the compiler brings the linker that the target requires (`rust-lld`).
fn has_own_linker(sysroot: &Path) -> bool {
    let hosts = std::fs::read_dir(sysroot.join("lib/rustlib")).into_iter().flatten().flatten();
    hosts.map(|host| host.path().join("bin/rust-lld")).any(|linker| linker.exists())
}

/// Finds LLVM's linker for ELF files.
pub fn find_linker() -> Option<PathBuf> {
    process::find_program(&["ld.lld-19", "ld.lld", "ld.lld-20", "ld.lld-21", "ld.lld-18"])
}

/// Finds LLVM's C compiler.
pub fn find_clang() -> Option<PathBuf> {
    process::find_program(&["clang-19", "clang", "clang-20", "clang-21", "clang-18"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_new_enough("rustc 1.96.0 (abc 2026-01-01)"));
        assert!(is_new_enough("rustc 1.100.0-nightly"));
        assert!(is_new_enough("rustc 2.0.0"));
        assert!(!is_new_enough("rustc 1.63.0"));
        assert!(!is_new_enough("nonsense"));
    }
}
