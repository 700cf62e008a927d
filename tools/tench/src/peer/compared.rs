//! Programs that measure the same on Linux and on Tench, for `./tench lab`: what is in `lab/linux`, in a tree of files
//! with those of Debian's packages.
//!
//! A program in C is linked with the C library that it then runs with, so that nothing of the host's is in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{IntoDiagnostic, Result, WrapErr};

use super::packages::Packages;
use super::scripts;
use super::{directory, put};
use crate::compile_c;
use crate::linux::{self, Tree};
use crate::process;
use crate::workspace::{self, Workspace};

/// Folder of the programs, and where they are.
const SOURCE: &str = "lab/linux";
const PLACE: &str = "lab";
/// Packages with all that a program needs to be linked with the C library.
const FOR_LINKING: &[&str] = &["libc6", "libc6-dev", "linux-libc-dev"];
/// Files of the C library's package with which every program runs.
const LIBRARY: &[&str] = &[
    "usr/lib/ld-linux-aarch64.so.1",
    "usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1",
    "usr/lib/aarch64-linux-gnu/libc.so.6",
];

/// An experiment that measures the same programs on both systems.
#[derive(Debug)]
pub struct Compared {
    /// Name of the experiment.
    pub name: &'static str,
    pub programs: Programs,
    /// Path of the program that runs on Linux, and its arguments: the last is `linux`, which ends the figures' names.
    pub command: &'static [&'static str],
}

/// Programs of an experiment.
#[derive(Debug)]
pub enum Programs {
    /// One of `tests/linux`, which needs no other file.
    Static(&'static str),
    /// A file of `lab/linux`, compiled if it is in C, beside files of packages.
    InTree {
        source: &'static str,
        /// Packages, without what they need but do not use here.
        packages: &'static [&'static str],
        /// Files and directories of these that are taken, as paths from the root.
        files: &'static [&'static str],
    },
}

/// Costs of calls, faults and signals.
const SYSCALL: Compared =
    Compared { name: "syscall", programs: Programs::Static("costs"), command: &["linux/costs", "linux"] };

/// Costs of POSIX threads.
const PTHREADS: Compared = Compared {
    name: "pthreads",
    programs: Programs::InTree { source: "pthreads.c", packages: &["libc6"], files: LIBRARY },
    command: &["/lab/pthreads", "linux"],
};

/// Figures of Debian's lmbench.
const LMBENCH: Compared = Compared {
    name: "lmbench",
    programs: Programs::InTree {
        source: "lmbench.sh",
        packages: &[
            "busybox-static",
            "dash",
            "libc6",
            "libcom-err2",
            "libgssapi-krb5-2",
            "libk5crypto3",
            "libkeyutils1",
            "libkrb5-3",
            "libkrb5support0",
            "libtirpc3",
            "libtirpc-common",
            "lmbench",
        ],
        files: &[
            "etc/netconfig",
            "usr/bin/busybox",
            "usr/bin/dash",
            "usr/bin/sh",
            "usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1",
            "usr/lib/aarch64-linux-gnu/libc.so.6",
            "usr/lib/aarch64-linux-gnu/libcom_err.so.2",
            "usr/lib/aarch64-linux-gnu/libcom_err.so.2.1",
            "usr/lib/aarch64-linux-gnu/libgssapi_krb5.so.2",
            "usr/lib/aarch64-linux-gnu/libgssapi_krb5.so.2.2",
            "usr/lib/aarch64-linux-gnu/libk5crypto.so.3",
            "usr/lib/aarch64-linux-gnu/libk5crypto.so.3.1",
            "usr/lib/aarch64-linux-gnu/libkeyutils.so.1",
            "usr/lib/aarch64-linux-gnu/libkeyutils.so.1.10",
            "usr/lib/aarch64-linux-gnu/libkrb5.so.3",
            "usr/lib/aarch64-linux-gnu/libkrb5.so.3.3",
            "usr/lib/aarch64-linux-gnu/libkrb5support.so.0",
            "usr/lib/aarch64-linux-gnu/libkrb5support.so.0.1",
            "usr/lib/aarch64-linux-gnu/libresolv.so.2",
            "usr/lib/aarch64-linux-gnu/libtirpc.so.3",
            "usr/lib/aarch64-linux-gnu/libtirpc.so.3.0.0",
            "usr/lib/ld-linux-aarch64.so.1",
            "usr/lib/lmbench/bin",
        ],
    },
    command: &["/bin/dash", "/lab/lmbench.sh", "linux"],
};

/// Every such experiment.
pub const ALL: &[Compared] = &[SYSCALL, PTHREADS, LMBENCH];

/// Returns the names of all packages that the experiments need, whatever those packages need.
pub fn packages() -> impl Iterator<Item = &'static str> {
    let own = ALL.iter().flat_map(|compared| match compared.programs {
        Programs::InTree { packages, .. } => packages,
        Programs::Static(_) => &[],
    });
    own.chain(FOR_LINKING).copied()
}

/// Returns the experiment of a name, if there is one.
pub fn find(name: &str) -> Option<&'static Compared> {
    ALL.iter().find(|compared| compared.name == name)
}

impl Compared {
    /// Returns the files of the experiment, with those of the packages, which are fetched if they are not kept; nothing
    /// if its program needs no other file.
    ///
    /// # Errors
    /// [`Missing`](super::Missing), if a package cannot be had; and mistakes in the list of packages or in the program.
    pub fn tree(&self, workspace: &Workspace) -> Result<Option<Tree>> {
        let Programs::InTree { source, packages, files } = self.programs else { return Ok(None) };
        let (directory, list) = (directory(workspace), Packages::load(workspace)?);
        let mut tree = scripts::root()?;
        linux::add(&mut tree, &list.files(&directory, &list.alone(packages)?)?)?;
        scripts::keep(&mut tree, self.name, files.iter().map(|file| (*file).to_owned()))?;
        let source = Path::new(SOURCE).join(source);
        let is_in_c = source.extension().is_some_and(|extension| extension == "c");
        let file = if is_in_c { compile(workspace, &list, &source)? } else { workspace.root.join(&source) };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        put(&mut tree, &format!("{PLACE}/{name}"), workspace::read_file(&file)?)?;
        Ok(Some(tree))
    }
}

/// Compiles a program and links it with Debian's C library.
fn compile(workspace: &Workspace, list: &Packages, source: &Path) -> Result<PathBuf> {
    let directory = directory(workspace);
    let packages = list.alone(FOR_LINKING)?;
    let names: Vec<String> = packages.iter().map(|one| format!("{} {}\n", one.name, one.sha256)).collect();
    let root = unpacked(&directory, &list.files(&directory, &packages)?, &names.concat())?;
    compile_c::compile_with_library(workspace, source, &root, &directory)
}

/// Returns the folder in which packages are unpacked. What was unpacked before is used again if its `contents` are
/// these.
fn unpacked(directory: &Path, packages: &[PathBuf], contents: &str) -> Result<PathBuf> {
    let (root, unfinished) = (directory.join("library"), directory.join("library.unfinished"));
    let mark = "contents";
    if fs::read_to_string(root.join(mark)).is_ok_and(|found| found == contents) {
        return Ok(root);
    }
    for old in [&root, &unfinished] {
        if old.exists() {
            fs::remove_dir_all(old).into_diagnostic().wrap_err_with(|| format!("cannot remove {}", old.display()))?;
        }
    }
    for package in packages {
        process::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&unfinished))?;
    }
    workspace::write_file(&unfinished.join(mark), contents.as_bytes())?;
    fs::rename(&unfinished, &root).into_diagnostic().wrap_err_with(|| format!("cannot make {}", root.display()))?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_listed() {
        let list = include_str!("../../../../tests/linux/packages.toml");
        let names: Vec<&str> = packages().collect();
        assert!(Packages::parse(list).unwrap().alone(&names).is_ok());
    }

    #[test]
    fn other_contents_are_unpacked_anew() {
        let directory = tempfile::tempdir().unwrap();
        let package = |name: &str| {
            let (root, file) = (directory.path().join(name), directory.path().join(format!("{name}.deb")));
            fs::create_dir_all(root.join("DEBIAN")).unwrap();
            let control = "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a\n";
            fs::write(root.join("DEBIAN/control"), control).unwrap();
            fs::write(root.join(name), name).unwrap();
            assert!(Command::new("dpkg-deb").arg("--build").arg(&root).arg(&file).status().unwrap().success());
            file
        };
        let (one, two) = (package("one"), package("two"));
        let has = |root: &Path, name: &str| root.join(name).is_file();
        let root = unpacked(directory.path(), &[one], "1").unwrap();
        assert!(has(&root, "one"));
        let root = unpacked(directory.path(), &[directory.path().join("none.deb")], "1").unwrap();
        assert!(has(&root, "one"), "it is there already");
        let root = unpacked(directory.path(), &[two], "2").unwrap();
        assert!(has(&root, "two") && !has(&root, "one"));
    }
}
