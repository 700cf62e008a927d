//! The boot archive: an ordinary tar file with the programs, the system description and further files.
//!
//! It depends on nothing but the content: no times, no owners, entries in the order of their paths. Programs begin at
//! pages of the archive, so that the process server can map their pages for processes: before each is a comment of the
//! necessary length.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use tench_abi::memory::PAGE_SIZE;

use crate::elf;
use crate::workspace;

/// Bytes of a block of a tar file.
const BLOCK: usize = 512;

/// Files of an archive, by path.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    files: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// Adds a file; a path can be used once.
    pub fn add(&mut self, path: &str, content: Vec<u8>) -> Result<()> {
        if !is_valid_path(path) {
            return Err(miette!(help = "allowed: a path such as etc/motd", "{path:?} is no path in the boot archive"));
        }
        match self.files.insert(path.to_owned(), content) {
            None => Ok(()),
            Some(_) => Err(miette!("the boot archive would have {path} twice")),
        }
    }

    /// Adds everything below a directory, with paths relative to it.
    pub fn add_directory(&mut self, directory: &Path) -> Result<()> {
        self.add_below(directory, "")
    }

    fn add_below(&mut self, directory: &Path, prefix: &str) -> Result<()> {
        let entries = fs::read_dir(directory)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot read the directory {}", directory.display()))?;
        for entry in entries {
            let path = entry.into_diagnostic()?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| miette!("{} has a name that is not text", path.display()))?;
            if path.is_dir() {
                self.add_below(&path, &format!("{prefix}{name}/"))?;
            } else {
                self.add(&format!("{prefix}{name}"), workspace::read_file(&path)?)?;
            }
        }
        Ok(())
    }

    /// Adds the file that `--with HOSTFILE[:PATH]` names; it replaces an existing file. If it is a program, returns the
    /// name that reports have for it, and its path on the host.
    pub fn add_host_file(&mut self, argument: &str) -> Result<Option<(String, PathBuf)>> {
        let (host, path) = match argument.rsplit_once(':') {
            Some((host, path)) => (host, Some(path)),
            None => (argument, None),
        };
        let content = workspace::read_file(Path::new(host))?;
        let name = Path::new(host).file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| miette!("{host} names no file"))?;
        let path = match path {
            Some(path) if path.ends_with('/') => format!("{path}{name}"),
            Some(path) => path.to_owned(),
            None if elf::is_elf(&content) => format!("bin/{name}"),
            None => name.to_owned(),
        };
        let path = path.trim_start_matches('/');
        let reported = path.rsplit('/').next().unwrap_or(path).to_owned();
        let program = elf::is_elf(&content).then(|| (reported, PathBuf::from(host)));
        self.files.remove(path);
        self.add(path, content)?;
        Ok(program)
    }

    /// Returns the tar file.
    pub fn to_tar(&self) -> Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in &self.files {
            if elf::is_elf(content) {
                align(&mut builder).into_diagnostic()?;
            }
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(if elf::is_elf(content) { 0o755 } else { 0o644 });
            header.set_mtime(0);
            builder
                .append_data(&mut header, path, content.as_slice())
                .into_diagnostic()
                .wrap_err_with(|| format!("cannot put {path} into the boot archive"))?;
        }
        builder.into_inner().into_diagnostic()
    }
}

/// Adds a POSIX extended header with a comment, after which a file's contents begin at a page.
fn align(builder: &mut tar::Builder<Vec<u8>>) -> std::io::Result<()> {
    let contents = builder.get_ref().len() + BLOCK;
    let missing = contents.next_multiple_of(PAGE_SIZE) - contents;
    // One block is the comment's own header. A comment without bytes is possible.
    let Some(size) = missing.checked_sub(BLOCK) else { return Ok(()) };
    let mut comment = if size == 0 { String::new() } else { format!("{size} comment=") };
    comment.extend(std::iter::repeat_n(' ', size.saturating_sub(comment.len() + 1)));
    comment.extend((size > 0).then_some('\n'));
    let mut header = tar::Header::new_ustar();
    header.set_path("comment")?;
    header.set_entry_type(tar::EntryType::XHeader);
    header.set_size(size as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_cksum();
    builder.append(&header, comment.as_bytes())
}

/// Returns whether a file of the archive can have this path: relative, of plain components.
pub fn is_valid_path(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    path.len() <= 100 && path.split('/').all(|part| !matches!(part, "" | "." | "..") && part.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn entries(tar: &[u8]) -> Vec<(String, u32, String)> {
        let mut archive = tar::Archive::new(tar);
        let read = |entry: std::io::Result<tar::Entry<&[u8]>>| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap(), text)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn files_come_back_in_the_order_of_their_paths() {
        let mut archive = Archive::default();
        archive.add("etc/motd", b"hello\n".to_vec()).unwrap();
        archive.add("bin/shell", b"\x7fELF".to_vec()).unwrap();
        let tar = archive.to_tar().unwrap();
        let expected = [("bin/shell".into(), 0o755, "\x7fELF".into()), ("etc/motd".into(), 0o644, "hello\n".into())];
        assert_eq!(entries(&tar), expected);
        assert_eq!(tar, archive.to_tar().unwrap());
        assert!(archive.add("etc/motd", Vec::new()).is_err());
    }

    #[test]
    fn programs_begin_at_pages() {
        // Every distance from a page that blocks can have.
        for blocks in 0..9 {
            let mut archive = Archive::default();
            archive.add("a", vec![b'a'; blocks * BLOCK]).unwrap();
            archive.add("b", b"\x7fELF first".to_vec()).unwrap();
            archive.add("c", b"\x7fELF second".to_vec()).unwrap();
            let tar = archive.to_tar().unwrap();
            for content in [&b"\x7fELF first"[..], b"\x7fELF second"] {
                let place = tar.windows(content.len()).position(|window| window == content).unwrap();
                assert_eq!(place % PAGE_SIZE, 0);
            }
            let paths: Vec<String> = entries(&tar).into_iter().map(|(path, ..)| path).collect();
            assert_eq!(paths, ["a", "b", "c"], "comments are no files");
        }
    }

    #[test]
    fn host_files_go_where_they_are_asked_to() {
        let directory = tempfile::tempdir().unwrap();
        let note = directory.path().join("note.txt");
        fs::write(&note, "note").unwrap();
        let program = directory.path().join("program");
        fs::write(&program, "\x7fELFrest").unwrap();
        let mut archive = Archive::default();
        archive.add("taken", b"old".to_vec()).unwrap();
        let (note, program) = (note.display(), program.display());
        for argument in [
            format!("{note}"),
            format!("{program}"),
            format!("{note}:/a/b"),
            format!("{note}:c/"),
            format!("{note}:taken"),
        ] {
            assert_eq!(archive.add_host_file(&argument).unwrap().is_some(), argument == program.to_string());
        }
        let reported = archive.add_host_file(&format!("{program}:far/away")).unwrap();
        assert_eq!(reported, Some(("away".to_owned(), PathBuf::from(program.to_string()))));
        let paths: Vec<String> = archive.files.keys().cloned().collect();
        assert_eq!(paths, ["a/b", "bin/program", "c/note.txt", "far/away", "note.txt", "taken"]);
        assert_eq!(archive.files["taken"], b"note");
        assert!(archive.add_host_file("/nowhere/at/all").is_err());
        assert!(archive.add_host_file(&format!("{note}:../up")).is_err());
    }

    #[test]
    fn directories_are_added_whole() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("etc/deep")).unwrap();
        fs::write(directory.path().join("etc/deep/file"), "x").unwrap();
        fs::write(directory.path().join("top"), "y").unwrap();
        let mut archive = Archive::default();
        archive.add_directory(directory.path()).unwrap();
        assert_eq!(archive.files.keys().collect::<Vec<_>>(), ["etc/deep/file", "top"]);
    }

    #[test]
    fn paths_stay_inside() {
        for good in ["a", "bin/hello", "etc/x.y-z_0"] {
            assert!(is_valid_path(good), "{good}");
        }
        for bad in ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a b", "a\nb", &"x".repeat(101)] {
            assert!(!is_valid_path(bad), "{bad}");
        }
    }
}
