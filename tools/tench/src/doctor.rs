//! The command `./tench doctor`: what is installed, what is missing, and what to do about it.

use miette::Result;

use crate::disk;
use crate::process;
use crate::toolchain::{self, BareMetal};
use crate::workspace::Workspace;

/// Something that the tool needs.
struct Need {
    what: &'static str,
    found: Option<String>,
    remedy: String,
}

/// Prints the findings; returns status 1 if something is missing.
pub fn run(workspace: &Workspace) -> Result<u8> {
    let bare_metal = BareMetal::find();
    let needs = [
        Need {
            what: "Rust for this machine",
            found: process::find_program(&["cargo"]).and_then(|cargo| process::first_line(&cargo, &["--version"])),
            remedy: "https://rustup.rs, or apt-get install cargo-web rustc-web".into(),
        },
        Need {
            what: "Rust for the bare machine",
            found: bare_metal.map(|found| format!("{} ({})", found.version, found.kind())),
            remedy: format!(
                "rustup target add {}, or apt-get install rustc-web cargo-web rust-web-src lld-19",
                toolchain::TARGET
            ),
        },
        Need {
            what: "a linker",
            found: toolchain::find_linker().and_then(|linker| process::first_line(&linker, &["--version"])),
            remedy: "apt-get install lld-19".into(),
        },
        Need {
            what: "a C compiler",
            found: toolchain::find_clang().and_then(|clang| process::first_line(&clang, &["--version"])),
            remedy: "apt-get install clang-19".into(),
        },
        Need {
            what: "QEMU",
            found: process::find_program(&[toolchain::QEMU])
                .and_then(|qemu| process::first_line(&qemu, &["--version"])),
            remedy: "apt-get install qemu-system-arm".into(),
        },
    ];
    println!("source tree: {}\nbuilt files: {}\n", workspace.root.display(), workspace.target.display());
    for need in &needs {
        match &need.found {
            Some(found) => println!("  found    {:26} {found}", need.what),
            None => println!("  MISSING  {:26} {}", need.what, need.remedy),
        }
    }
    if let Some(warning) = disk::warning(workspace) {
        println!("  note     {warning}");
    }
    let missing = needs.iter().filter(|need| need.found.is_none()).count();
    if missing == 0 {
        println!("\nNothing is missing. ./tench run boots the system.");
    } else {
        println!("\n{missing} missing. On Debian, ./tench run installs them by itself, as root or with sudo.");
    }
    Ok(u8::from(missing != 0))
}
