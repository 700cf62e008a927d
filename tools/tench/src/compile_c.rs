//! Compilation of C programs: one file each, linked with the user library's C runtime.
//!
//! A program may compute with floating point, and one that does not is spared it: its file has no such instruction, the
//! kernel never saves the registers, and `printf` is linked without the formatting of such values.

use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

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

/// Flags for floating point: only where the program has it, without `errno`, and with a `long double` that is a
/// `double`, because the functions for a longer one take their arguments in other registers.
pub const FLOAT: [&str; 4] = ["-mno-implicit-float", "-fno-math-errno", "-Xclang", "-mlong-double-64"];
/// Beginning of the symbols of the runtime's functions that take or return floating-point values.
const FLOAT_SYMBOLS: &str = "tench_float_";
/// Functions of `<math.h>`, of which the compiler's run-time library has some under their own names. They are for
/// Rust, and take values in registers in which a program in C does not pass them.
const MATH: [&str; 57] = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmaximum",
    "fmin",
    "fminimum",
    "fmod",
    "frexp",
    "hypot",
    "ilogb",
    "ldexp",
    "lgamma",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "modf",
    "nearbyint",
    "nextafter",
    "pow",
    "remainder",
    "remquo",
    "rint",
    "round",
    "roundeven",
    "scalbn",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
];

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
            .args(["--target=aarch64-none-elf", "-std=c17", "-ffreestanding", "-O2", "-g"])
            .args(FLOAT)
            .args(FRAMES)
            // The thread pointer is not the C compiler's, so thread-local variables are reached through a function.
            .arg("-femulated-tls")
            .args(["-fpie", "-ffunction-sections", "-Wall", "-Wextra", "-I", INCLUDE, "-I"])
            .arg(generated)
            .args(["-c", "-o"])
            .arg(&object)
            .arg(source),
    )?;
    let file = std::fs::read(&object).into_diagnostic().wrap_err("cannot read what the compiler wrote")?;
    let write = if has_float(&file, source)? { "tench_write_some" } else { "tench_write_none" };
    process::run(
        Command::new(linker)
            .current_dir(&workspace.root)
            // No script: the linker's own layout is that of programs, in Rust as well as in C.
            .args(POSITION_INDEPENDENT)
            .arg(format!("--defsym=tench_write_float={write}"))
            .args(["--gc-sections", "-o"])
            .arg(&program)
            .arg(&object)
            .arg(runtime),
    )?;
    Ok(program)
}

/// Returns whether a program's object file computes with floating point, or calls a function of the runtime that does.
fn has_float(file: &[u8], source: &Path) -> Result<bool> {
    let object = object::File::parse(file).into_diagnostic().wrap_err("the compiler wrote no object file")?;
    let mut has_float = false;
    for name in object.symbols().filter(ObjectSymbol::is_undefined).filter_map(|symbol| symbol.name().ok()) {
        if let Some(help) = foreign(name) {
            let source = source.display();
            return Err(miette!(help = help, "{source} needs the function `{name}`, which programs in C do not have"));
        }
        has_float |= name.starts_with(FLOAT_SYMBOLS);
    }
    for section in object.sections().filter(|section| section.kind() == SectionKind::Text) {
        let code = section.data().into_diagnostic().wrap_err("the compiler wrote a section without its contents")?;
        let (instructions, _) = code.as_chunks::<4>();
        has_float |= instructions.iter().any(|word| uses_float(u32::from_le_bytes(*word)));
    }
    Ok(has_float)
}

/// Returns what to do instead if a function is of the compiler's run-time library, and takes or returns floating-point
/// values.
fn foreign(name: &str) -> Option<&'static str> {
    let is_math = |name: &str| MATH.contains(&name);
    let plain = name.strip_suffix("_r").unwrap_or(name);
    if ["", "f", "l", "f16", "f128"].iter().any(|kind| plain.strip_suffix(kind).is_some_and(is_math)) {
        return Some("include <math.h>, and call the function without `__builtin_`");
    }
    let name = name.strip_prefix("__")?;
    if name.starts_with("float") || name.starts_with("fix") {
        return Some("convert between floating point and integers of at most 64 bits");
    }
    if name.starts_with("powi") {
        return Some("include <math.h>, and call `pow`");
    }
    (name.starts_with("mul") || name.starts_with("div"))
        .then_some("multiply and divide the parts of complex numbers")
        .filter(|_| name.ends_with("c3"))
}

/// Returns whether an instruction uses a floating-point or vector register: it computes with them, or loads or stores
/// them. The architecture's table of encodings tells both by bits 25 to 28.
const fn uses_float(instruction: u32) -> bool {
    let group = instruction >> 25 & 0xf;
    group & 0b0111 == 0b0111 || (group & 0b0101 == 0b0100 && instruction >> 26 & 1 == 1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_pass_values_elsewhere_are_refused() {
        let help = |name| foreign(name).unwrap_or_default();
        for name in [
            "sin",
            "sinf",
            "fmod",
            "erf",
            "erff",
            "modf",
            "modff",
            "powl",
            "lgamma_r",
            "lgammaf_r",
            "floorf16",
            "fmodf128",
        ] {
            assert!(help(name).contains("<math.h>"), "{name}");
        }
        assert!(help("__floattidf").contains("at most 64 bits") && help("__fixunssfti").contains("at most 64 bits"));
        assert!(help("__muldc3").contains("complex") && help("__divsc3").contains("complex"));
        for name in
            ["printf", "tench_float_sin", "__multi3", "__divti3", "memcpy", "main", "leaf", "__emutls_get_address"]
        {
            assert_eq!(foreign(name), None, "{name}");
        }
    }

    #[test]
    fn instructions_of_floating_point_are_told_from_others() {
        let float = [
            ("fadd d0, d0, d1", 0x1e61_2800),
            ("fmov d0, x0", 0x9e67_0000),
            ("movi d0, #0", 0x2f00_e400),
            ("ldr d0, [x0]", 0xfd40_0000),
            ("ldr d0, pc", 0x5c00_0000),
            ("stp q0, q1, [sp]", 0xad00_07e0),
            ("fmadd d0, d0, d1, d2", 0x1f41_0800),
            ("st1 {v0.16b}, [x0]", 0x4c00_7000),
        ];
        let other = [
            ("add x0, x0, x1", 0x8b01_0000),
            ("mul x0, x0, x1", 0x9b01_7c00),
            ("ldr x0, [x0]", 0xf940_0000),
            ("stp x29, x30, [sp, #-16]!", 0xa9bf_7bfd),
            ("ldxr x0, [x0]", 0xc85f_7c00),
            ("bl", 0x9400_0000),
            ("b.ne", 0x5400_0001),
            ("svc #0", 0xd400_0001),
            ("movz x0, #1", 0xd280_0020),
            ("nop", 0xd503_201f),
        ];
        for (text, instruction) in float {
            assert!(uses_float(instruction), "{text}");
        }
        for (text, instruction) in other {
            assert!(!uses_float(instruction), "{text}");
        }
    }
}
