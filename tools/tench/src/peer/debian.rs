//! Debian's kernel for this processor, from its archive. What is fetched is kept.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use super::apt::Apt;
use crate::process;
use crate::workspace;

/// The package that depends on the newest kernel.
const NEWEST: &str = "linux-image-cloud-arm64";
/// Beginning of the packages with kernels.
const PACKAGE: &str = "linux-image-";
/// The mark of an uncompressed kernel for AArch64, and where it is.
const MARK: (usize, &[u8]) = (56, b"ARMd");

/// A kernel on this machine.
pub struct Kernel {
    pub image: PathBuf,
    /// The package and its version.
    pub version: String,
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
    let apt = Apt::new(directory)?;
    eprintln!("fetching Linux's kernel from {}", apt.archive);
    apt.update()?;
    let depends = process::output(apt.command("apt-cache").args(["depends", "--important", NEWEST]))?;
    let newest = newest(&depends).ok_or_else(|| miette!("{} has no {NEWEST} that depends on a kernel", apt.archive))?;
    apt.get(&["download", newest])?;
    let entries = fs::read_dir(directory).into_diagnostic()?.flatten().map(|entry| entry.path());
    let mut packages = entries.filter(|path| path.extension().is_some_and(|extension| extension == "deb"));
    packages.next().ok_or_else(|| miette!("apt-get download {newest} left no package in {}", directory.display()))
}

/// Returns the kernel's package on which the other one depends.
fn newest(depends: &str) -> Option<&str> {
    let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names.map(str::trim).find(|name| name.starts_with(PACKAGE))
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
