//! Preparation of the files with which the machine is started.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tench_abi::boot;

use crate::archive::Archive;
use crate::build::Build;
use crate::compile_c::{self, ForLinux};
use crate::elf::{self, Executable};
use crate::image;
use crate::system::{Origin, Program, System};
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

/// Package of the program that runs Linux programs, of which their files are a part.
const PERSONALITY: &str = "tench-linux";

/// Folder with programs for Linux, and with their files in the boot archive.
pub const LINUX: &str = "linux";
/// Folder of a tree of files for Linux programs that tests make.
pub const LINUX_TREE: &str = "linux-tree";

/// Compiles the programs of `tests/linux`, and returns arguments of `--with` for them.
pub fn linux_programs(workspace: &Workspace, label: &str) -> Result<Vec<String>> {
    let folder = Path::new("tests").join(LINUX);
    let directory = workspace.target.join("tench").join(label).join(LINUX);
    let entries = std::fs::read_dir(workspace.root.join(&folder)).into_diagnostic()?;
    let mut names: Vec<_> = entries.map(|entry| Ok(entry.into_diagnostic()?.file_name())).collect::<Result<_>>()?;
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "c"));
    names.sort();
    let compile = |name| {
        let program = compile_c::compile_for_linux(workspace, &folder.join(name), &directory, ForLinux::STATIC)?;
        let file = program.file_name().unwrap_or_default().to_string_lossy();
        Ok(format!("{}:{LINUX}/{file}", program.display()))
    };
    names.iter().map(compile).collect()
}

/// Makes a tree of files for Linux programs in `target/tench/LABEL/`, as `--linux` takes it, and returns its path. The
/// programs of `tests/linux` are in `/usr/bin`, to which `/bin` leads, with one that `/lib/loader` loads.
pub fn linux_tree(workspace: &Workspace, label: &str) -> Result<PathBuf> {
    let root = workspace.target.join("tench").join(label).join(LINUX_TREE);
    make_linux_files(&root).into_diagnostic().wrap_err_with(|| format!("cannot make {}", root.display()))?;
    let mut programs = vec![
        (compile_dynamic(workspace, label, "loader.c", ForLinux::LOADER)?, "usr/lib"),
        (compile_dynamic(workspace, label, "moved.c", ForLinux::LOADED)?, "usr/bin"),
    ];
    for argument in linux_programs(workspace, label)? {
        programs.extend(argument.rsplit_once(':').map(|(program, _)| (program.into(), "usr/bin")));
    }
    for (program, directory) in programs {
        let place = root.join(directory).join(program.file_name().unwrap_or_default());
        std::fs::copy(&program, place).into_diagnostic()?;
    }
    Ok(root)
}

fn compile_dynamic(workspace: &Workspace, label: &str, name: &str, how: ForLinux) -> Result<PathBuf> {
    let source = Path::new("tests").join(LINUX).join("dynamic").join(name);
    compile_c::compile_for_linux(workspace, &source, &workspace.target.join("tench").join(label).join(LINUX), how)
}

/// Makes the files of that tree that are no programs.
fn make_linux_files(root: &Path) -> std::io::Result<()> {
    if root.exists() {
        std::fs::remove_dir_all(root)?;
    }
    for directory in ["usr/bin", "usr/lib", "etc"] {
        std::fs::create_dir_all(root.join(directory))?;
    }
    for (target, link) in [("usr/bin", "bin"), ("usr/lib", "lib"), ("hello", "usr/bin/greet")] {
        symlink(target, root.join(link))?;
    }
    let file = |path: &str, contents: &str, mode| {
        std::fs::write(root.join(path), contents)?;
        std::fs::set_permissions(root.join(path), Permissions::from_mode(mode))
    };
    file("etc/missing", "not missing\n", 0o644)?;
    file("etc/both", "one file\n", 0o640)?;
    std::fs::hard_link(root.join("etc/both"), root.join("etc/same"))
}

/// Writes the boot files of a system into `target/tench/LABEL/`, with further host files in the archive, and with
/// packed files for Linux programs.
pub fn prepare(
    workspace: &Workspace,
    build: &Build,
    system: &System,
    label: &str,
    with: &[String],
    linux: Option<&[u8]>,
) -> Result<BootFiles> {
    let mut archive = Archive::default();
    let runs_linux = |program: &Program| matches!(&program.origin, Origin::Package(package) if package == PERSONALITY);
    if linux.is_some() && !system.programs.iter().any(runs_linux) {
        let help = format!("add the package {PERSONALITY} to systems/NAME.toml, or boot the usual system");
        return Err(miette!(help = help, "--linux: this system does not have the program that runs Linux programs"));
    }
    for program in &system.programs {
        let path = build.program(&program.origin)?;
        let file = elf::lay_out(&workspace::read_file(path)?);
        let mut file = file.wrap_err_with(|| format!("cannot use {}", path.display()))?;
        if let Some(packed) = linux.filter(|_| runs_linux(program)) {
            file = elf::with_segment(file, packed)?;
        }
        archive.add(&program.path, file)?;
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
