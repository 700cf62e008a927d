//! Compilation of C programs: one file each, linked with the user library's C runtime.

use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use crate::interfaces;
use crate::process;
use crate::toolchain;
use crate::workspace::Workspace;

/// Package of the runtime, a static library.
pub const RUNTIME: &str = "tench-c";
/// Folder of its headers that are written by hand; the others are generated from interfaces.
const INCLUDE: &str = "user/lib/c/include";
/// Flags as for Rust programs: frame records, so that a backtrace can follow them, and no unwinding tables.
const FRAMES: [&str; 3] =
    ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-fno-asynchronous-unwind-tables"];
/// Flags as for Rust programs (`.cargo/config.toml`): the loader puts them anywhere, and applies compact relocations.
const POSITION_INDEPENDENT: [&str; 5] =
    ["-pie", "--no-dynamic-linker", "--pack-dyn-relocs=relr", "-z", "max-page-size=4096"];

/// Compiles `source` (relative to the root) and links it with `runtime`. Returns the program, symbols included.
pub fn compile(workspace: &Workspace, source: &Path, runtime: &Path) -> Result<PathBuf> {
    let name = source.with_extension("").to_string_lossy().replace('/', "-");
    // Beside the runtime, of which there is one for each profile.
    let directory = runtime.with_file_name("c");
    std::fs::create_dir_all(&directory).into_diagnostic().wrap_err("cannot make a directory for C programs")?;
    let (object, program) = (directory.join(format!("{name}.o")), directory.join(&name));
    let generated = interfaces::write_headers(workspace)?;
    let clang = toolchain::find_clang().ok_or_else(|| missing("clang-19"))?;
    let linker = toolchain::find_linker().ok_or_else(|| missing("lld-19"))?;
    process::run(
        Command::new(clang)
            .current_dir(&workspace.root)
            .args(["--target=aarch64-none-elf", "-std=c17", "-ffreestanding", "-mgeneral-regs-only", "-O2", "-g"])
            .args(FRAMES)
            // The thread pointer is not the C compiler's, so thread-local variables are reached through a function.
            .arg("-femulated-tls")
            .args(["-fpie", "-ffunction-sections", "-Wall", "-Wextra", "-I", INCLUDE, "-I"])
            .arg(generated)
            .args(["-c", "-o"])
            .arg(&object)
            .arg(source),
    )?;
    process::run(
        Command::new(linker)
            .current_dir(&workspace.root)
            // No script: the linker's own layout is that of programs, in Rust as well as in C.
            .args(POSITION_INDEPENDENT)
            .args(["--gc-sections", "-o"])
            .arg(&program)
            .arg(&object)
            .arg(runtime),
    )?;
    Ok(program)
}

/// Settings with which a program for Linux is compiled and linked.
#[derive(Clone, Copy)]
pub struct ForLinux {
    compiler: &'static [&'static str],
    linker: &'static [&'static str],
}

impl ForLinux {
    /// A program at fixed addresses.
    pub const STATIC: ForLinux = ForLinux { compiler: &[], linker: &["-static"] };
    /// A program that can be anywhere, and loads others.
    pub const LOADER: ForLinux = ForLinux { compiler: &["-fpie"], linker: &["-pie", "--no-dynamic-linker"] };
    /// A program that can be anywhere, and which `/lib/loader` loads.
    pub const LOADED: ForLinux = ForLinux { compiler: &["-fpie"], linker: &["-pie", "--dynamic-linker=/lib/loader"] };
}

/// Compiles `source` (relative to the root), a program for Linux that needs no C library, into a directory.
pub fn compile_for_linux(workspace: &Workspace, source: &Path, directory: &Path, how: ForLinux) -> Result<PathBuf> {
    std::fs::create_dir_all(directory).into_diagnostic().wrap_err("cannot make a directory for C programs")?;
    let program = directory.join(source.file_stem().unwrap_or_default());
    let object = program.with_extension("o");
    let clang = toolchain::find_clang().ok_or_else(|| missing("clang-19"))?;
    let linker = toolchain::find_linker().ok_or_else(|| missing("lld-19"))?;
    process::run(
        Command::new(clang)
            .current_dir(&workspace.root)
            .args(["--target=aarch64-linux-gnu", "-std=c17", "-ffreestanding", "-O2", "-Wall", "-Wextra"])
            .args(how.compiler)
            .args(["-c", "-o"])
            .arg(&object)
            .arg(source),
    )?;
    let mut link = Command::new(linker);
    link.current_dir(&workspace.root).args(how.linker).args(["-z", "max-page-size=4096", "-o"]);
    process::run(link.arg(&program).arg(&object))?;
    Ok(program)
}

/// Compiles `source` (relative to the root), a program for Linux, and links it with the C library of Debian's packages
/// that are unpacked in `library`.
pub fn compile_with_library(workspace: &Workspace, source: &Path, library: &Path, directory: &Path) -> Result<PathBuf> {
    let library = std::path::absolute(library).into_diagnostic()?;
    let program = std::path::absolute(directory).into_diagnostic()?.join(source.file_stem().unwrap_or_default());
    let object = program.with_extension("o");
    let clang = toolchain::find_clang().ok_or_else(|| missing("clang-19"))?;
    let linker = toolchain::find_linker().ok_or_else(|| missing("lld-19"))?;
    let root = format!("--sysroot={}", library.display());
    process::run(
        Command::new(clang)
            .current_dir(&workspace.root)
            .args(["--target=aarch64-linux-gnu", &root, "-std=c17", "-O2", "-fpie", "-Wall", "-Wextra", "-c", "-o"])
            .arg(&object)
            .arg(source),
    )?;
    let libraries = library.join("usr/lib/aarch64-linux-gnu");
    process::run(
        Command::new(linker)
            .args([&root, "-pie", "--dynamic-linker=/lib/ld-linux-aarch64.so.1", "-z", "max-page-size=4096", "-o"])
            .arg(&program)
            .args(["Scrt1.o", "crti.o"].map(|file| libraries.join(file)))
            .arg(&object)
            .arg("-L")
            .arg(&libraries)
            .arg("-lc")
            .arg(libraries.join("crtn.o")),
    )?;
    Ok(program)
}

fn missing(package: &str) -> miette::Report {
    miette!(help = format!("apt-get install {package}"), "programs in C need {package}, which is not installed")
}
