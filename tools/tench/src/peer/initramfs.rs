//! The first file system of a Linux kernel: a cpio archive.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use cpio::newc::{self, ModeFileType};
use miette::{IntoDiagnostic, Result};

/// Permissions of everything.
const MODE: u32 = 0o755;

/// Packs files, each with its path below the root, and the directories above them.
pub fn pack(files: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let directories: BTreeSet<&Path> = files
        .iter()
        .flat_map(|(path, _)| Path::new(below_root(path)).ancestors().skip(1))
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    let mut archive = Vec::new();
    let mut number = 0;
    let mut add = |path: &str, kind, content: &[u8]| {
        number += 1;
        let entry = newc::Builder::new(below_root(path)).ino(number).mode(MODE).set_mode_file_type(kind);
        let mut writer = entry.write(&mut archive, content.len() as u32);
        writer.write_all(content).and_then(|()| writer.finish().map(drop)).into_diagnostic()
    };
    for directory in directories {
        add(&directory.to_string_lossy(), ModeFileType::Directory, &[])?;
    }
    for (path, content) in files {
        add(path, ModeFileType::Regular, content)?;
    }
    newc::trailer(archive).into_diagnostic()
}

/// Returns a path without the root before it.
fn below_root(path: &str) -> &str {
    path.trim_start_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_what_they_hold() {
        let archive = pack(&[("init", b"one"), ("/a/b/c", b"two"), ("a/d", b"")]).unwrap();
        let mut rest: &[u8] = &archive;
        let mut found = Vec::new();
        loop {
            let mut reader = newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut content = Vec::new();
            std::io::copy(&mut reader, &mut content).unwrap();
            found.push((name, mode, content));
            rest = reader.finish().unwrap();
        }
        let expected: [(&str, u32, &[u8]); 5] = [
            ("a", 0o040_755, b""),
            ("a/b", 0o040_755, b""),
            ("init", 0o100_755, b"one"),
            ("a/b/c", 0o100_755, b"two"),
            ("a/d", 0o100_755, b""),
        ];
        assert_eq!(found, expected.map(|(name, mode, content)| (name.to_owned(), mode, content.to_vec())));
    }
}
