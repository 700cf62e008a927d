//! Reading of trees of files of the host: a directory, a Debian package, a tar file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tench_linux_packed::Attributes;

use super::tree::{Content, Tree};
use crate::process;
use crate::workspace;

/// The first bytes of a Debian package: an archive of `ar` whose first file says which form follows.
const PACKAGE: &[u8] = b"!<arch>\ndebian-binary";
/// Where a tar file says that it is one, and how.
const TAR: (usize, &[u8]) = (257, b"ustar");
/// The first bytes of what `gzip`, `xz`, `zstd` and `bzip2` make.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"BZh"];
/// The bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o7777;

/// Adds the files of a source to a tree.
pub fn add(tree: &mut Tree, source: &Path) -> Result<()> {
    let metadata = fs::metadata(source).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => miette!("there is no such file or directory"),
        _ => miette!("{error}"),
    })?;
    if metadata.is_dir() {
        return Directory { root: source, tree, known: HashMap::new() }.add(Path::new(""));
    }
    let bytes = if metadata.is_file() { workspace::read_file(source)? } else { Vec::new() };
    if bytes.starts_with(PACKAGE) {
        add_tar(tree, &package_files(source)?)
    } else if bytes.get(TAR.0..).is_some_and(|bytes| bytes.starts_with(TAR.1)) {
        add_tar(tree, &bytes)
    } else if COMPRESSED.iter().any(|magic| bytes.starts_with(magic)) {
        Err(miette!(help = "gzip -d, xz -d or zstd -d makes a tar file of it", "it is compressed; unpack it first"))
    } else {
        Err(miette!(
            help = "allowed: a directory, FILE.deb, FILE.tar; --with puts a single file into the image",
            "it is no directory, no Debian package and no tar file"
        ))
    }
}

/// Returns the tar file with the files of a Debian package.
fn package_files(package: &Path) -> Result<Vec<u8>> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--fsys-tarfile").arg(package).stdin(Stdio::null());
    process::show(&command);
    let output = command.output().into_diagnostic().wrap_err_with(|| process::cannot_start(&command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(miette!(help = "fetch it again", "dpkg-deb cannot read it: {}", said.trim_end()));
    }
    Ok(output.stdout)
}

/// Adds the files of a tar file.
fn add_tar(tree: &mut Tree, bytes: &[u8]) -> Result<()> {
    let mut archive = tar::Archive::new(bytes);
    let damaged = || "the tar file is damaged, or its end is missing";
    for entry in archive.entries().into_diagnostic().wrap_err_with(damaged)? {
        add_tar_entry(tree, entry.into_diagnostic().wrap_err_with(damaged)?)?;
    }
    Ok(())
}

fn add_tar_entry(tree: &mut Tree, mut entry: tar::Entry<'_, &[u8]>) -> Result<()> {
    let path = entry.path_bytes().into_owned();
    let named = || format!("the tar file's entry {}", String::from_utf8_lossy(&path));
    let header = entry.header().clone();
    let number = |number: io::Result<u64>| number.into_diagnostic().wrap_err_with(named);
    let attributes = Attributes {
        permissions: header.mode().into_diagnostic().wrap_err_with(named)? & PERMISSIONS,
        user: number(header.uid())? as u32,
        group: number(header.gid())? as u32,
        modified: number(header.mtime())?.cast_signed(),
    };
    let target = || entry.link_name_bytes().map(|name| name.into_owned()).unwrap_or_default();
    let device = || -> Result<u32> {
        let major = header.device_major().into_diagnostic().wrap_err_with(named)?;
        let minor = header.device_minor().into_diagnostic().wrap_err_with(named)?;
        Ok(device(major.unwrap_or(0), minor.unwrap_or(0)))
    };
    use tar::EntryType;
    let content = match header.entry_type() {
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            let mut contents = Vec::new();
            entry.read_to_end(&mut contents).into_diagnostic().wrap_err_with(named)?;
            Content::Regular(contents)
        }
        EntryType::Directory => Content::Directory,
        EntryType::Symlink => Content::Link(target()),
        EntryType::Link => return tree.link(&path, &target()).into_diagnostic(),
        EntryType::Char => Content::Character(device()?),
        EntryType::Block => Content::Block(device()?),
        EntryType::Fifo => Content::Fifo,
        // What it says is about all entries, and none of it matters here.
        EntryType::XGlobalHeader => return Ok(()),
        other => return Err(miette!("{} has the unknown type {:?}", named(), char::from(other.as_byte()))),
    };
    tree.add(&path, attributes, content).into_diagnostic()
}

/// Returns a device's number as Linux's programs see it.
const fn device(major: u32, minor: u32) -> u32 {
    minor & 0xff | major << 8 | (minor & !0xff) << 12
}

/// A directory of the host that is added.
struct Directory<'a> {
    root: &'a Path,
    tree: &'a mut Tree,
    /// Names of files that have several, by device and number.
    known: HashMap<(u64, u64), PathBuf>,
}

impl Directory<'_> {
    /// Adds everything in the directory at a path below the root.
    fn add(&mut self, path: &Path) -> Result<()> {
        let place = self.root.join(path);
        let unreadable = || format!("cannot read the directory {}", place.display());
        let entries = fs::read_dir(&place).into_diagnostic().wrap_err_with(unreadable)?;
        let mut names: Vec<_> = entries.map(|entry| Ok(entry.into_diagnostic()?.file_name())).collect::<Result<_>>()?;
        // The first name of a file is the same each time.
        names.sort();
        names.iter().try_for_each(|name| self.add_entry(&path.join(name)))
    }

    fn add_entry(&mut self, path: &Path) -> Result<()> {
        let place = self.root.join(path);
        let unreadable = || format!("cannot read {}", place.display());
        let metadata = fs::symlink_metadata(&place).into_diagnostic().wrap_err_with(unreadable)?;
        let is_directory = metadata.is_dir();
        if !is_directory && metadata.nlink() > 1 {
            let identity = (metadata.dev(), metadata.ino());
            if let Some(first) = self.known.get(&identity) {
                return self.tree.link(bytes(path), bytes(first)).into_diagnostic();
            }
            self.known.insert(identity, path.to_owned());
        }
        self.tree.add(bytes(path), attributes(&metadata), content(&place, &metadata)?).into_diagnostic()?;
        if is_directory { self.add(path) } else { Ok(()) }
    }
}

fn bytes(path: &Path) -> &[u8] {
    OsStr::as_bytes(path.as_os_str())
}

fn attributes(metadata: &Metadata) -> Attributes {
    let (user, group, modified) = (metadata.uid(), metadata.gid(), metadata.mtime());
    Attributes { permissions: metadata.mode() & PERMISSIONS, user, group, modified }
}

/// Returns the contents of a file of the host.
fn content(place: &Path, metadata: &Metadata) -> Result<Content> {
    let kind = metadata.file_type();
    let device = || {
        let number = u32::try_from(metadata.rdev());
        number.map_err(|_| miette!("the device {} has too large a number", place.display()))
    };
    if kind.is_dir() {
        Ok(Content::Directory)
    } else if kind.is_symlink() {
        let target =
            fs::read_link(place).into_diagnostic().wrap_err_with(|| format!("cannot read {}", place.display()));
        Ok(Content::Link(bytes(&target?).to_vec()))
    } else if kind.is_char_device() {
        Ok(Content::Character(device()?))
    } else if kind.is_block_device() {
        Ok(Content::Block(device()?))
    } else if kind.is_fifo() {
        Ok(Content::Fifo)
    } else if kind.is_file() {
        Ok(Content::Regular(workspace::read_file(place)?))
    } else {
        Err(miette!(help = "remove it", "{} is a socket, which has no place in a tree of files", place.display()))
    }
}
