//! The first file system of a Linux kernel: a cpio archive.

use std::collections::HashMap;
use std::io::Write;

use cpio::newc::{self, ModeFileType};
use miette::{IntoDiagnostic, Result, miette};
use tench_linux_packed::{Entry, Kind};

/// Packs entries, each of which comes after the directory in which it lies.
pub fn pack(entries: &[Entry<'_>]) -> Result<Vec<u8>> {
    // Names of one file have the same number, by which the kernel knows that, and the first has the contents.
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let mut names: HashMap<&[u8], u32> = HashMap::new();
    for entry in entries {
        *names.entry(first_name(entry)).or_default() += 1;
    }
    let mut archive = Vec::new();
    for entry in entries {
        let next = numbers.len() as u32 + 1;
        let number = *numbers.entry(first_name(entry)).or_insert(next);
        let builder = builder(entry)?.ino(number).nlink(names[first_name(entry)]);
        let content = match entry.kind {
            Kind::Regular(content) | Kind::Link(content) => content,
            _ => &[],
        };
        let size = u32::try_from(content.len()).into_diagnostic()?;
        let mut writer = builder.write(&mut archive, size);
        writer.write_all(content).and_then(|()| writer.finish().map(drop)).into_diagnostic()?;
    }
    newc::trailer(archive).into_diagnostic()
}

/// Returns the name under which a file's contents are.
fn first_name<'a>(entry: &Entry<'a>) -> &'a [u8] {
    if let Kind::Same(first) = entry.kind { first } else { entry.path }
}

fn builder(entry: &Entry<'_>) -> Result<newc::Builder> {
    let shown = String::from_utf8_lossy(entry.path);
    let name =
        str::from_utf8(entry.path).map_err(|_| miette!("{shown}: only names in UTF-8 can be packed for Linux"))?;
    let attributes = entry.attributes;
    let modified = u32::try_from(attributes.modified);
    let modified = modified.map_err(|_| miette!("{shown}: its time is before 1970 or after 2106"))?;
    let (kind, device) = match entry.kind {
        Kind::Directory => (ModeFileType::Directory, 0),
        Kind::Regular(_) | Kind::Same(_) => (ModeFileType::Regular, 0),
        Kind::Link(_) => (ModeFileType::Symlink, 0),
        Kind::Character(device) => (ModeFileType::Char, device),
        Kind::Block(device) => (ModeFileType::Block, device),
        Kind::Fifo => (ModeFileType::Fifo, 0),
    };
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & !0xff);
    let builder = newc::Builder::new(name).mode(attributes.permissions).set_mode_file_type(kind);
    let builder = builder.uid(attributes.user).gid(attributes.group).mtime(modified);
    Ok(builder.rdev_major(major).rdev_minor(minor))
}

#[cfg(test)]
mod tests {
    use tench_linux_packed::Attributes;

    use super::*;

    /// An entry as it is read again: name, mode, number of names, time, contents.
    type Seen = (String, u32, u32, u32, Vec<u8>);

    fn read(archive: &[u8]) -> Vec<(Seen, u32, (u32, u32))> {
        let mut rest: &[u8] = archive;
        let mut found = Vec::new();
        loop {
            let mut reader = newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return found;
            }
            let entry = reader.entry();
            let (name, device) = (entry.name().to_owned(), (entry.rdev_major(), entry.rdev_minor()));
            let (mode, links, number, time) = (entry.mode(), entry.nlink(), entry.ino(), entry.mtime());
            let mut content = Vec::new();
            std::io::copy(&mut reader, &mut content).unwrap();
            found.push(((name, mode, links, time, content), number, device));
            rest = reader.finish().unwrap();
        }
    }

    fn entry<'a>(path: &'a str, permissions: u32, kind: Kind<'a>) -> Entry<'a> {
        let attributes = Attributes { permissions, modified: 7, ..Attributes::default() };
        Entry { path: path.as_bytes(), attributes, kind }
    }

    #[test]
    fn everything_of_an_entry_is_packed() {
        let archive = pack(&[
            entry("a", 0o1777, Kind::Directory),
            entry("a/b", 0o644, Kind::Regular(b"one")),
            entry("a/c", 0o777, Kind::Link(b"b")),
            entry("d", 0o644, Kind::Same(b"a/b")),
            entry("e", 0o600, Kind::Character(0x0012_3456)),
            entry("f", 0o600, Kind::Fifo),
        ]);
        let found = read(&archive.unwrap());
        let expected: [(&str, u32, u32, &[u8]); 6] = [
            ("a", 0o041_777, 1, b""),
            ("a/b", 0o100_644, 2, b"one"),
            ("a/c", 0o120_777, 1, b"b"),
            ("d", 0o100_644, 2, b""),
            ("e", 0o020_600, 1, b""),
            ("f", 0o010_600, 1, b""),
        ];
        let seen: Vec<Seen> = found.iter().map(|(seen, ..)| seen.clone()).collect();
        assert_eq!(seen, expected.map(|(name, mode, links, content)| (name.into(), mode, links, 7, content.into())));
        assert_eq!(found.iter().map(|(_, number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 2, 4, 5]);
        assert_eq!(found[4].2, (0x234, 0x156));
    }

    #[test]
    fn what_the_form_has_no_place_for_is_an_error() {
        let message = |entry: Entry<'_>| pack(&[entry]).unwrap_err().to_string();
        assert!(message(Entry { path: b"\xff", ..entry("", 0, Kind::Fifo) }).contains("only names in UTF-8"));
        let attributes = Attributes { modified: -1, ..Attributes::default() };
        assert_eq!(
            message(Entry { attributes, ..entry("x", 0, Kind::Fifo) }),
            "x: its time is before 1970 or after 2106"
        );
    }
}
