//! Debian's kernel for this processor, from its archive.
//!
//! Debian's own tools fetch it, with a configuration of their own, so that nothing of this machine's packages changes.
//! They check the archive's signature, and each file's checksum against it. What they fetch is kept.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use miette::{Diagnostic, IntoDiagnostic, Result, WrapErr, miette};
use thiserror::Error;

use crate::process;
use crate::workspace;

/// Release whose kernel it is, and the package that depends on the newest kernel.
const RELEASE: &str = "bookworm";
const NEWEST: &str = "linux-image-cloud-arm64";
/// Beginning of the packages with kernels.
const PACKAGE: &str = "linux-image-";
/// Debian's keys, of the package that has them.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The variable that names an archive, if this machine's sources of packages have none.
const ARCHIVE: &str = "TENCH_DEBIAN";
/// The mark of an uncompressed kernel for AArch64, and where it is.
const MARK: (usize, &[u8]) = (56, b"ARMd");

/// A kernel on this machine.
pub struct Kernel {
    pub image: PathBuf,
    /// The package and its version.
    pub version: String,
}

/// Reasons why there is no kernel.
#[derive(Debug, Error, Diagnostic)]
pub enum Missing {
    #[error("Linux's kernel comes from Debian's archive, and {program} is not installed, which reads that")]
    #[diagnostic(help("on Debian: apt-get install {package}"))]
    Tool { program: &'static str, package: &'static str },
    #[error("Linux's kernel comes from Debian's archive, and this machine's sources of packages have no such archive")]
    #[diagnostic(help("{ARCHIVE} may name an archive: the address of the directory that holds dists and pool"))]
    Archive,
    #[error("Debian's archive {archive} cannot be reached")]
    #[diagnostic(help("a network is needed once, since the kernel is kept; {ARCHIVE} names another archive"))]
    Unreachable { archive: String },
}

impl Missing {
    /// Returns whether `report` says that there can be no kernel here, which is nobody's mistake.
    pub fn is_reason_of(report: &miette::Report) -> bool {
        report.downcast_ref::<Missing>().is_some()
    }
}

/// Returns the kernel that is kept in `directory`, or fetches it.
pub fn kernel(directory: &Path) -> Result<Kernel> {
    let (image, version) = (directory.join("Image"), directory.join("version"));
    if !image.is_file() || !version.is_file() {
        let package = fetch(&directory.join("apt"))?;
        let content = unpack(&package).wrap_err_with(|| format!("cannot use {}", package.display()))?;
        workspace::write_file(&image, &content)?;
        workspace::write_file(&version, named(&package).as_bytes())?;
        // What is left costs space, and nothing needs it.
        let _ = fs::remove_dir_all(directory.join("apt"));
    }
    Ok(Kernel { image, version: workspace::read_text(&version)?.trim().to_owned() })
}

/// Returns the package and version of a file `NAME_VERSION_ARCHITECTURE.deb`.
fn named(package: &Path) -> String {
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    name.split('_').take(2).collect::<Vec<_>>().join(" ") + "\n"
}

/// Fetches the newest kernel's package into a directory.
fn fetch(directory: &Path) -> Result<PathBuf> {
    for program in ["apt-get", "apt-cache", "apt-config", "dpkg-deb"] {
        let package = if program == "dpkg-deb" { "dpkg" } else { "apt" };
        process::find_program(&[program]).ok_or(Missing::Tool { program, package })?;
    }
    if !Path::new(KEYS).is_file() {
        Err(Missing::Tool { program: KEYS, package: "debian-archive-keyring" })?;
    }
    let archive = archive()?;
    eprintln!("fetching Linux's kernel from {archive}");
    let apt = Apt::new(directory, &archive)?;
    process::run(apt.command("apt-get").args(["-qq", "update", "--error-on=any"]))
        .map_err(|_| Missing::Unreachable { archive: archive.clone() })?;
    let depends = process::output(apt.command("apt-cache").args(["depends", "--important", NEWEST]))?;
    let newest = newest(&depends).ok_or_else(|| miette!("{archive} has no {NEWEST} that depends on a kernel"))?;
    process::run(apt.command("apt-get").args(["-qq", "download", newest]))
        .map_err(|_| Missing::Unreachable { archive: archive.clone() })?;
    let entries = fs::read_dir(directory).into_diagnostic()?.flatten().map(|entry| entry.path());
    let mut packages = entries.filter(|path| path.extension().is_some_and(|extension| extension == "deb"));
    packages.next().ok_or_else(|| miette!("apt-get download {newest} left no package in {}", directory.display()))
}

/// Returns the kernel's package on which the other one depends.
fn newest(depends: &str) -> Option<&str> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.map(str::trim).find(|name| name.starts_with(PACKAGE))
}

/// Returns the address of Debian's archive.
fn archive() -> Result<String> {
    if let Ok(archive) = std::env::var(ARCHIVE) {
        return Ok(archive);
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
struct Apt {
    directory: PathBuf,
}

impl Apt {
    fn new(directory: &Path, archive: &str) -> Result<Apt> {
        let directory = std::path::absolute(directory).into_diagnostic()?;
        let apt = Apt { directory };
        for name in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.directory.join(name)).into_diagnostic().wrap_err("cannot make a directory")?;
        }
        let source = format!("deb [arch=arm64 signed-by={KEYS}] {archive} {RELEASE} main\n");
        workspace::write_file(&apt.directory.join("sources.list"), source.as_bytes())?;
        workspace::write_file(&apt.directory.join("status"), b"")?;
        // The way to the network is this machine's.
        let own = process::output(Command::new("apt-config").args(["dump", "Acquire"]))?;
        let network = own.lines().filter(|line| line.to_lowercase().starts_with("acquire::http"));
        let configuration = network.map(|line| format!("{line}\n")).collect::<String>() + &apt.configuration();
        workspace::write_file(&apt.directory.join("apt.conf"), configuration.as_bytes())?;
        Ok(apt)
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

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.directory).env("APT_CONFIG", self.directory.join("apt.conf"));
        command
    }
}

/// Returns the kernel in a package.
fn unpack(package: &Path) -> Result<Vec<u8>> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--fsys-tarfile").arg(package).stdout(Stdio::piped());
    process::show(&command);
    let mut child = command.spawn().into_diagnostic().wrap_err_with(|| process::cannot_start(&command))?;
    let mut stream = child.stdout.take().ok_or_else(|| miette!("dpkg-deb has no output"))?;
    let found = find(&mut stream);
    // It ends only when all was read.
    let rest = std::io::copy(&mut stream, &mut std::io::sink());
    let status = child.wait().into_diagnostic()?;
    let image = found?;
    rest.into_diagnostic()?;
    if status.success() { Ok(image) } else { Err(miette!("dpkg-deb failed: {status}")) }
}

/// Finds the kernel in a package's files, which are in a tar archive.
fn find(stream: &mut impl Read) -> Result<Vec<u8>> {
    for entry in tar::Archive::new(stream).entries().into_diagnostic()? {
        let mut entry = entry.into_diagnostic()?;
        let path = entry.path().into_diagnostic()?.to_string_lossy().into_owned();
        if !path.trim_start_matches("./").starts_with("boot/vmlinuz-") {
            continue;
        }
        let mut image = Vec::new();
        entry.read_to_end(&mut image).into_diagnostic()?;
        if image.get(MARK.0..MARK.0 + MARK.1.len()) != Some(MARK.1) {
            return Err(miette!("{path} is no uncompressed kernel for AArch64, which the emulator needs"));
        }
        return Ok(image);
    }
    Err(miette!("it has no file boot/vmlinuz-VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_the_newest_package_depends_on() {
        let depends = "linux-image-cloud-arm64\n  Depends: linux-base\n  Depends: linux-image-6.1.0-50-cloud-arm64\n";
        assert_eq!(newest(depends), Some("linux-image-6.1.0-50-cloud-arm64"));
        assert_eq!(newest("linux-image-cloud-arm64\n"), None);
        let file = Path::new("/x/linux-image-6.1.0-50-cloud-arm64_6.1.176-1_arm64.deb");
        assert_eq!(named(file), "linux-image-6.1.0-50-cloud-arm64 6.1.176-1\n");
    }

    #[test]
    fn debians_archive_is_found_among_others() {
        let targets = "http://a.example/debian-security/ main\nhttp://a.example/debian/ contrib\n\
                       http://b.example/debian/ main\nhttp://c.example/debian main\n";
        assert_eq!(among(targets), Some("http://b.example/debian"));
        assert_eq!(among("http://a.example/ubuntu/ main\n"), None);
    }

    /// Makes an archive with one file.
    fn archive(path: &str, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_data(&mut header, path, content).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn only_an_uncompressed_kernel_is_taken() {
        let mut image = vec![0; 100];
        image[MARK.0..MARK.0 + 4].copy_from_slice(MARK.1);
        assert_eq!(find(&mut &archive("boot/vmlinuz-6.1", &image)[..]).unwrap(), image);
        let message = |path, content: &[u8]| find(&mut &archive(path, content)[..]).unwrap_err().to_string();
        assert!(message("boot/vmlinuz-6.1", b"\x1f\x8bgzip").contains("no uncompressed kernel"));
        assert!(message("boot/config-6.1", &image).contains("has no file boot/vmlinuz"));
    }
}
