//! Debian's archive, read by Debian's own tools with a configuration of their own, so that nothing of this machine's
//! packages changes. They check the archive's signature, and each file's checksum against it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{Diagnostic, IntoDiagnostic, Result, WrapErr};
use thiserror::Error;

use crate::process;
use crate::workspace;

/// Release whose packages they are.
pub const RELEASE: &str = "bookworm";
/// Debian's keys, of the package that has them.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The variable that names an archive, if this machine's sources of packages have none.
const ARCHIVE: &str = "TENCH_DEBIAN";
/// The program that fetches a file as apt fetches packages; it is in no `PATH`.
const HELPER: &str = "/usr/lib/apt/apt-helper";

/// Reasons why something of Debian's archive, or what else tests take from elsewhere, cannot be had.
#[derive(Debug, Error, Diagnostic)]
pub enum Missing {
    #[error("Debian's archive is needed, and {program} is not installed, which reads that")]
    #[diagnostic(help("on Debian: apt-get install {package}"))]
    Tool { program: &'static str, package: &'static str },
    #[error("Debian's archive is needed, and this machine's sources of packages have no such archive")]
    #[diagnostic(help("{ARCHIVE} may name an archive: the address of the directory that holds dists and pool"))]
    Archive,
    #[error("Debian's archive {archive} cannot be reached")]
    #[diagnostic(help(
        "a network is needed once, since what comes from there is kept; {ARCHIVE} names another archive"
    ))]
    Unreachable { archive: String },
    #[error("Debian's package {package} is not kept here, and could not be fetched from {}", .places.join(", nor from "))]
    #[diagnostic(help("a network is needed once, since packages are kept; {ARCHIVE} names another archive"))]
    Package { package: String, places: Vec<String> },
    #[error("a suite's program is to be compiled for {target}, and this compiler has no library for that")]
    #[diagnostic(help("rustup target add {target}"))]
    Target { target: &'static str },
    #[error("the crate {name} {version} is not kept here, and cargo could not fetch it")]
    #[diagnostic(help("a network is needed once, since cargo keeps crates"))]
    Crate { name: String, version: String },
    #[error("a program from a package registry is needed, and {client}, which fetches it, is not installed")]
    #[diagnostic(help("on Debian: apt-get install {package}"))]
    Client { client: &'static str, package: &'static str },
    #[error("the package {name} {version} is not kept here, and {client} could not fetch it")]
    #[diagnostic(help("a network is needed once, since packages are kept"))]
    Registered { name: String, version: String, client: String },
}

impl Missing {
    /// Returns whether `report` says that something cannot be had here, which is nobody's mistake.
    pub fn is_reason_of(report: &miette::Report) -> bool {
        report.downcast_ref::<Missing>().is_some()
    }
}

/// Returns the address of Debian's archive.
fn archive() -> Result<String> {
    if let Ok(archive) = std::env::var(ARCHIVE) {
        return Ok(archive.trim_end_matches('/').to_owned());
    }
    let format = ["indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages"];
    let targets = process::output(Command::new("apt-get").args(format))?;
    Ok(among(&targets).ok_or(Missing::Archive)?.to_owned())
}

/// Returns Debian's archive among the sources of packages, a line each with its address and its component.
fn among(targets: &str) -> Option<&str> {
    let addresses = targets.lines().filter_map(|line| line.strip_suffix(" main"));
    addresses.map(|address| address.trim_end_matches('/')).find(|address| address.ends_with("/debian"))
}

/// Debian's tools with a configuration of their own.
pub struct Apt {
    directory: PathBuf,
    /// Address of the archive.
    pub archive: String,
}

impl Apt {
    /// Configures the tools in a directory, for the archive among this machine's sources of packages.
    ///
    /// # Errors
    /// [`Missing`], if one of the tools or the archive is not there.
    pub fn new(directory: &Path) -> Result<Apt> {
        for program in ["apt-get", "apt-cache", "apt-config", "dpkg-deb"] {
            let package = if program == "dpkg-deb" { "dpkg" } else { "apt" };
            process::find_program(&[program]).ok_or(Missing::Tool { program, package })?;
        }
        for (program, package) in [(KEYS, "debian-archive-keyring"), (HELPER, "apt")] {
            if !Path::new(program).is_file() {
                Err(Missing::Tool { program, package })?;
            }
        }
        let apt = Apt { directory: std::path::absolute(directory).into_diagnostic()?, archive: archive()? };
        apt.configure()?;
        Ok(apt)
    }

    fn configure(&self) -> Result<()> {
        for name in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(self.directory.join(name)).into_diagnostic().wrap_err("cannot make a directory")?;
        }
        let source = format!("deb [arch=arm64 signed-by={KEYS}] {} {RELEASE} main non-free\n", self.archive);
        workspace::write_file(&self.directory.join("sources.list"), source.as_bytes())?;
        workspace::write_file(&self.directory.join("status"), b"")?;
        // The way to the network is this machine's.
        let own = process::output(Command::new("apt-config").args(["dump", "Acquire"]))?;
        let network = own.lines().filter(|line| line.to_lowercase().starts_with("acquire::http"));
        let configuration = network.map(|line| format!("{line}\n")).collect::<String>() + &self.configuration();
        workspace::write_file(&self.directory.join("apt.conf"), configuration.as_bytes())
    }

    fn configuration(&self) -> String {
        let directory = self.directory.display();
        format!(
            "Dir::State \"{directory}\";\nDir::State::lists \"{directory}/lists\";\n\
             Dir::State::status \"{directory}/status\";\nDir::Cache \"{directory}/cache\";\n\
             Dir::Etc::sourcelist \"{directory}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::parts \"/dev/null\";\nDir::Etc::main \"/dev/null\";\n\
             APT::Architecture \"arm64\";\nAPT::Architectures {{\"arm64\";}};\nAcquire::Languages \"none\";\n{}",
            // As the super-user it would give up its rights, and then could not write here.
            "APT::Sandbox::User \"root\";\n",
        )
    }

    /// Returns a command that runs one of the tools in the directory.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.directory).env("APT_CONFIG", self.directory.join("apt.conf"));
        command
    }

    /// Reads which packages the archive has.
    pub fn update(&self) -> Result<()> {
        self.get(&["update", "--error-on=any"])
    }

    /// Runs a command of `apt-get` that needs the archive.
    pub fn get(&self, words: &[&str]) -> Result<()> {
        let unreachable = |_| Missing::Unreachable { archive: self.archive.clone() };
        Ok(process::run(self.command("apt-get").arg("-qq").args(words)).map_err(unreachable)?)
    }

    /// Fetches a file, whose content is whatever the address gives. Returns whether it was there.
    pub fn fetch(&self, address: &str, file: &Path) -> Result<bool> {
        let mut command = self.command(HELPER);
        command.args(["-o", "APT::Acquire::Retries=1", "download-file", address]).arg(file);
        process::show(&command);
        // What it says of a missing file is the reader's business only if no address has it.
        let output = command.output().into_diagnostic().wrap_err_with(|| process::cannot_start(&command))?;
        Ok(output.status.success() && file.is_file())
    }

    /// Returns the text of the archive's signed index for this release.
    pub fn release(&self) -> Result<String> {
        let lists = fs::read_dir(self.directory.join("lists")).into_diagnostic()?.flatten().map(|entry| entry.path());
        let mut found = lists.filter(|path| path.to_string_lossy().ends_with("Release"));
        let index = found.next().ok_or_else(|| Missing::Unreachable { archive: self.archive.clone() })?;
        workspace::read_text(&index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debians_archive_is_found_among_others() {
        let targets = "http://a.example/debian-security/ main\nhttp://a.example/debian/ contrib\n\
                       http://b.example/debian/ main\nhttp://c.example/debian main\n";
        assert_eq!(among(targets), Some("http://b.example/debian"));
        assert_eq!(among("http://a.example/ubuntu/ main\n"), None);
    }

    #[test]
    fn what_is_missing_is_told_from_mistakes() {
        let package = "a 1".to_owned();
        let missing = Missing::Package { package, places: vec!["x".to_owned(), "y".to_owned()] };
        assert!(
            missing.to_string().ends_with("package a 1 is not kept here, and could not be fetched from x, nor from y")
        );
        assert!(Missing::is_reason_of(&missing.into()));
        assert!(!Missing::is_reason_of(&miette::miette!("a mistake")));
    }
}
