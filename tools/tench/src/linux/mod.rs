//! Files for Linux programs (`./tench run --linux`): trees of files of the host, laid over each other in one tree,
//! which becomes a read-only segment of the program `linux`. So the loader maps the boot archive's own pages into it,
//! as it does with any program's constants, and nothing is copied.

mod source;
mod tree;

use std::path::PathBuf;

use miette::{Result, WrapErr, miette};

pub use tree::{Content, Tree};

/// Packs the trees that `--linux` names, in this order, if there are any.
pub fn pack(sources: &[PathBuf]) -> Result<Option<Vec<u8>>> {
    if sources.is_empty() {
        return Ok(None);
    }
    let mut tree = Tree::default();
    add(&mut tree, sources)?;
    pack_tree(&tree).map(Some)
}

/// Lays the trees that sources name over a tree, in this order.
pub fn add(tree: &mut Tree, sources: &[PathBuf]) -> Result<()> {
    let add = |source: &PathBuf| {
        source::add(tree, source).wrap_err_with(|| format!("cannot use --linux {}", source.display()))
    };
    sources.iter().try_for_each(add)
}

/// Packs a tree.
pub fn pack_tree(tree: &Tree) -> Result<Vec<u8>> {
    let packed = tench_linux_packed::write(&tree.entries());
    packed.map_err(|excess| miette!(help = "leave out what the programs do not need", "--linux: {excess}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;
    use std::process::Command;

    use tench_linux_packed::{Entry, Kind, MAX_SIZE, Packed};

    use super::*;

    /// Makes a tree of files: a program with two names, a link, a directory without permissions for others.
    fn files(below: &Path) {
        fs::create_dir_all(below.join("usr/bin")).unwrap();
        fs::write(below.join("usr/bin/program"), "program").unwrap();
        fs::set_permissions(below.join("usr/bin/program"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::hard_link(below.join("usr/bin/program"), below.join("usr/bin/same")).unwrap();
        symlink("usr/bin", below.join("bin")).unwrap();
        fs::create_dir(below.join("root")).unwrap();
        fs::set_permissions(below.join("root"), fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// Checks that packed bytes have the tree that `files` makes.
    fn check(bytes: &[u8], owner: u32) {
        let entries: Vec<Entry<'_>> = Packed::parse(bytes).unwrap().entries().collect();
        let seen: Vec<(&[u8], Kind<'_>)> = entries.iter().map(|entry| (entry.path, entry.kind)).collect();
        let expected: [(&[u8], Kind<'_>); 6] = [
            (b"bin", Kind::Link(b"usr/bin")),
            (b"root", Kind::Directory),
            (b"usr", Kind::Directory),
            (b"usr/bin", Kind::Directory),
            (b"usr/bin/program", Kind::Regular(b"program")),
            (b"usr/bin/same", Kind::Same(b"usr/bin/program")),
        ];
        assert_eq!(seen, expected);
        assert_eq!((entries[1].attributes.permissions, entries[4].attributes.permissions), (0o700, 0o755));
        assert!(entries.iter().all(|entry| entry.attributes.user == owner && entry.attributes.modified > 0));
    }

    /// Runs a program of the host.
    fn run(command: &mut Command) {
        assert!(command.status().unwrap().success(), "{command:?}");
    }

    #[test]
    fn a_directory_a_tar_file_and_a_package_have_the_same_tree() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        files(&root);
        let owner = fs::metadata(&root).unwrap().uid();
        check(&pack(std::slice::from_ref(&root)).unwrap().unwrap(), owner);

        let tar = directory.path().join("files");
        run(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg("."));
        check(&pack(&[tar]).unwrap().unwrap(), owner);

        fs::create_dir(root.join("DEBIAN")).unwrap();
        let control = "Package: x\nVersion: 1\nArchitecture: arm64\nMaintainer: x <x@example.org>\nDescription: x\n";
        fs::write(root.join("DEBIAN/control"), control).unwrap();
        let package = directory.path().join("package");
        let mut build = Command::new("dpkg-deb");
        run(build.args(["--root-owner-group", "--build"]).arg(&root).arg(&package).stdout(std::process::Stdio::null()));
        check(&pack(&[package]).unwrap().unwrap(), 0);
    }

    #[test]
    fn later_trees_replace_files_of_earlier_ones() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (directory.path().join("first"), directory.path().join("second"));
        files(&first);
        fs::create_dir_all(second.join("bin")).unwrap();
        fs::write(second.join("bin/program"), "other").unwrap();
        let bytes = pack(&[first, second]).unwrap().unwrap();
        let of = |path: &[u8]| Packed::parse(&bytes).unwrap().entries().find(|entry| entry.path == path).unwrap().kind;
        assert_eq!(of(b"bin"), Kind::Link(b"usr/bin"), "the directory is the one to which the link leads");
        assert_eq!(of(b"usr/bin/program"), Kind::Regular(b"other"));
        assert_eq!(of(b"usr/bin/same"), Kind::Regular(b"program"), "the other name keeps the old file");
    }

    /// Returns the reasons why a source is refused, and the advice.
    fn refused(source: &Path) -> String {
        let report = pack(&[source.to_owned()]).unwrap_err();
        let reasons: Vec<String> = report.chain().map(ToString::to_string).collect();
        let help = report.downcast_ref::<miette::MietteDiagnostic>().and_then(|report| report.help.clone());
        format!("{}; {}", reasons.join(": "), help.unwrap_or_default())
    }

    #[test]
    fn each_mistake_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert!(refused(&at("missing")).contains("there is no such file or directory"));

        fs::write(at("text"), "text").unwrap();
        assert!(refused(&at("text")).contains("it is no directory, no Debian package and no tar file"));
        fs::write(at("packed"), b"\xfd7zXZ\0").unwrap();
        assert!(refused(&at("packed")).contains("it is compressed; unpack it"));
        fs::write(at("package"), b"!<arch>\ndebian-binary   ").unwrap();
        assert!(refused(&at("package")).contains("dpkg-deb cannot read it"));
        assert!(refused(Path::new("/dev/null")).contains("it is no directory, no Debian package and no tar file"));

        fs::create_dir(at("special")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(at("special/socket")).unwrap();
        assert!(refused(&at("special")).contains("socket is a socket, which has no place in a tree of files"));
        drop(socket);

        fs::create_dir(at("large")).unwrap();
        let large = fs::File::create(at("large/file")).unwrap();
        large.set_len(MAX_SIZE).unwrap();
        assert!(refused(&at("large")).contains("MiB are allowed"), "{}", refused(&at("large")));
    }

    /// Writes a tar file with entries of these names and types.
    fn tar(at: &Path, entries: &[(&str, tar::EntryType, &str)]) {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, kind, link) in entries {
            let mut header = tar::Header::new_ustar();
            // The library's own setter refuses what the test is about.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(0);
            header.set_mode(0o755);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_cksum();
            builder.append(&header, &[][..]).unwrap();
        }
        fs::write(at, builder.into_inner().unwrap()).unwrap();
    }

    #[test]
    fn tar_files_cannot_lead_outside() {
        use tar::EntryType::{Directory, Link, Regular, Symlink};
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join("tar");
        for name in ["../up", "a/../../up", ".."] {
            tar(&at, &[(name, Regular, "")]);
            assert!(refused(&at).contains("has `..` in it"), "{name}: {}", refused(&at));
        }
        tar(&at, &[("x", Link, "../../etc/passwd")]);
        assert!(refused(&at).contains("has `..` in it"));
        tar(&at, &[("x", Link, "y")]);
        assert!(refused(&at).contains("y does not exist, so x cannot be another name for it"));
        tar(&at, &[("x", Link, "y"), ("y", Regular, "")]);
        assert!(refused(&at).contains("does not exist"), "what it is another name for comes before");
        tar(&at, &[("a", Symlink, "b"), ("b", Symlink, "a"), ("a/c", Regular, "")]);
        assert!(refused(&at).contains("too many symbolic links"));
        tar(&at, &[("a", Directory, ""), ("a", Regular, "")]);
        assert!(refused(&at).contains("a is a directory already"));
        tar(&at, &[("a", Regular, ""), ("a/b", Regular, "")]);
        assert!(refused(&at).contains("a is no directory"));
        let good = [("/etc/x", Regular, ""), ("up", Symlink, "../../.."), ("up/y", Regular, ""), ("./", Directory, "")];
        tar(&at, &good);
        let bytes = pack(&[at]).unwrap().unwrap();
        let paths: Vec<&[u8]> = Packed::parse(&bytes).unwrap().entries().map(|entry| entry.path).collect();
        assert_eq!(paths, [&b"etc"[..], b"etc/x", b"up", b"y"], "the root is above itself");
    }

    #[test]
    fn a_part_of_a_tree_is_kept_with_what_is_above_it() {
        let directory = tempfile::tempdir().unwrap();
        files(directory.path());
        let kept = |wanted: &[&str]| {
            let mut tree = Tree::default();
            add(&mut tree, &[directory.path().to_owned()]).unwrap();
            let wanted: Vec<String> = wanted.iter().map(|path| (*path).to_owned()).collect();
            let missing = tree.keep(&wanted).map(str::to_owned);
            let entries = tree.entries();
            let paths = entries.iter().map(|entry| String::from_utf8_lossy(entry.path).into_owned());
            (paths.collect::<Vec<_>>().join(" "), missing)
        };
        assert_eq!(kept(&["/usr/bin/same"]), ("usr usr/bin usr/bin/same".to_owned(), None));
        assert_eq!(kept(&["/usr/", "root"]), ("root usr usr/bin usr/bin/program usr/bin/same".to_owned(), None));
        assert_eq!(kept(&["root", "/usr/bi"]), ("root usr".to_owned(), Some("/usr/bi".to_owned())));
    }
}
