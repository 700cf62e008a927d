//! `./tench check`: what can be judged without running the system: the form of the code, what the compiler's lints and
//! the documentation's builder have to say, and the tree's own rules.
//!
//! The tests run all of it, too; this is the part that takes a minute or two, for whoever is about to commit.

use std::process::Command;

use miette::Result;

use crate::process;
use crate::workspace::Workspace;

/// One thing that is checked.
pub struct Check {
    /// Name of the check, behind `check/`.
    pub name: &'static str,
    /// The program that has to be installed beside cargo, and the Debian package that has it.
    needs: Option<(&'static str, &'static str)>,
    arguments: &'static [&'static str],
    /// An environment variable that makes warnings errors.
    environment: Option<(&'static str, &'static str)>,
    /// Advice on how to mend a failure.
    remedy: &'static str,
}

impl Check {
    /// All but the tree's own rules, which are tests of this tool.
    pub const ALL: [Check; 3] = [
        Check {
            name: "format",
            needs: Some(("rustfmt", "rustfmt-web")),
            arguments: &["fmt", "--all", "--check"],
            environment: None,
            remedy: "cargo fmt --all",
        },
        Check {
            name: "lints",
            needs: Some(("cargo-clippy", "rust-web-clippy")),
            arguments: &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
            environment: None,
            remedy: "the lines above say what to write instead",
        },
        Check {
            name: "documentation",
            needs: Some(("rustdoc", "rustc-web")),
            arguments: &["doc", "--workspace", "--no-deps", "--document-private-items", "--keep-going", "--quiet"],
            environment: Some(("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")),
            remedy: "the lines above say which link leads nowhere",
        },
    ];

    /// The tree's own rules: layers of crates, lengths, words, unsafe code, and what the pages say.
    pub const RULES: Check = Check {
        name: "rules",
        needs: None,
        arguments: &["test", "--quiet", "-p", "tench-tool", "--test", "source", "--test", "documents"],
        environment: None,
        remedy: "the lines above say which file breaks which rule",
    };

    /// The sentence with which the check is passed over, if a program that it needs is not installed.
    pub fn missing(&self) -> Option<String> {
        let (program, package) = self.needs?;
        let beside_cargo = std::env::var_os("CARGO").map(|cargo| std::path::Path::new(&cargo).with_file_name(program));
        let is_there = beside_cargo.is_some_and(|path| path.is_file()) || process::find_program(&[program]).is_some();
        (!is_there).then(|| {
            format!(
                "{program} is not installed (rustup component add {component}, or apt-get install {package})",
                component = program.trim_start_matches("cargo-")
            )
        })
    }

    /// The command.
    pub fn command(&self, workspace: &Workspace) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target).args(self.arguments);
        command.envs(self.environment);
        command
    }

    /// Runs the check on the terminal.
    ///
    /// # Errors
    /// It did not pass: what to do about it.
    pub fn run(&self, workspace: &Workspace) -> Result<()> {
        process::run(&mut self.command(workspace)).map_err(|error| error.wrap_err(self.remedy))
    }
}

/// Runs every check, and returns 1 if one did not pass.
pub fn run(workspace: &Workspace) -> Result<u8> {
    let mut failed = Vec::new();
    for check in Check::ALL.iter().chain([&Check::RULES]) {
        match check.missing() {
            Some(missing) => println!("check {} ... passed over: {missing}", check.name),
            None => match check.run(workspace) {
                Ok(()) => println!("check {} ... ok", check.name),
                Err(error) => {
                    println!("check {} ... FAILED\n{error:?}", check.name);
                    failed.push(check.name);
                }
            },
        }
    }
    if !failed.is_empty() {
        println!("\nfailed: {}", failed.join(", "));
    }
    Ok(u8::from(!failed.is_empty()))
}
