//! Preparation of the files with which the machine is started.

use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, WrapErr};
use tench_abi::boot;

use crate::archive::Archive;
use crate::build::Build;
use crate::compile_c;
use crate::elf::{self, Executable};
use crate::image;
use crate::system::System;
use crate::workspace::{self, Workspace};

/// Files with which the machine is started.
#[derive(Clone, Debug)]
pub struct BootFiles {
    /// Kernel image, as the boot loader wants it.
    pub image: PathBuf,
    /// RAM disk.
    pub ram_disk: PathBuf,
    /// Programs of the host in the archive: the names that reports have for them, and their paths.
    pub from_host: Vec<(String, PathBuf)>,
}

/// Writes programs that must be refused, and valid ones beside them, into `target/tench/LABEL/`; returns them as
/// arguments of `--with`.
pub fn corpus(workspace: &Workspace, label: &str) -> Result<Vec<String>> {
    let mistakes = tench_corpus::mistakes().map(|mistake| (mistake.name, mistake.file()));
    let mut arguments = Vec::new();
    for (name, file) in mistakes.chain(tench_corpus::good()) {
        let path = format!("{}/{name}", tench_corpus::DIRECTORY);
        let place = workspace.target.join("tench").join(label).join(&path);
        workspace::write_file(&place, &file)?;
        arguments.push(format!("{}:{path}", place.display()));
    }
    Ok(arguments)
}

/// Folder with programs for Linux, and with their files in the boot archive.
pub const LINUX: &str = "linux";

/// Compiles the programs of `tests/linux`, and returns arguments of `--with` for them.
pub fn linux_programs(workspace: &Workspace, label: &str) -> Result<Vec<String>> {
    let folder = Path::new("tests").join(LINUX);
    let directory = workspace.target.join("tench").join(label).join(LINUX);
    let entries = std::fs::read_dir(workspace.root.join(&folder)).into_diagnostic()?;
    let mut names: Vec<_> = entries.map(|entry| Ok(entry.into_diagnostic()?.file_name())).collect::<Result<_>>()?;
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "c"));
    names.sort();
    let compile = |name| {
        let program = compile_c::compile_for_linux(workspace, &folder.join(name), &directory)?;
        let file = program.file_name().unwrap_or_default().to_string_lossy();
        Ok(format!("{}:{LINUX}/{file}", program.display()))
    };
    names.iter().map(compile).collect()
}

/// Writes the boot files of a system into `target/tench/LABEL/`, with further host files in the archive.
pub fn prepare(
    workspace: &Workspace,
    build: &Build,
    system: &System,
    label: &str,
    with: &[String],
) -> Result<BootFiles> {
    let mut archive = Archive::default();
    for program in &system.programs {
        let path = build.program(&program.origin)?;
        let file = elf::lay_out(&workspace::read_file(path)?);
        archive.add(&program.path, file.wrap_err_with(|| format!("cannot use {}", path.display()))?)?;
    }
    archive.add(tench_system::ARCHIVE_PATH, system.encode())?;
    archive.add_directory(&workspace.root.join("systems/files"))?;
    let mut from_host = Vec::new();
    for argument in with {
        from_host.extend(archive.add_host_file(argument)?);
    }

    let init = Executable::read(build.init(system)?)?;
    let kernel = image::kernel(&Executable::read_kernel(build.kernel(system)?)?)?;
    archive.add(boot::KERNEL_FILE, kernel.clone())?;
    archive.add(boot::INIT_FILE, image::ram_disk(&init, &[], &system.lines)?)?;

    let directory = workspace.target.join("tench").join(label);
    let files = BootFiles { image: directory.join("Image"), ram_disk: directory.join("ramdisk"), from_host };
    workspace::write_file(&files.image, &kernel)?;
    workspace::write_file(&files.ram_disk, &image::ram_disk(&init, &archive.to_tar()?, &system.lines)?)?;
    Ok(files)
}
