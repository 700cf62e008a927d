//! Files that were packed, among those of the system, and how programs are found there.

mod support;

use support::{Play, program, system};
use tench_linux::packed::NotAdded;
use tench_linux_files::{Errno, Kind as NodeKind, Last, Tree};
use tench_linux_packed::{Attributes, Entry, Kind, Packed, write};

/// Returns an entry with permissions of its own.
fn entry<'a>(path: &'a str, kind: Kind<'a>) -> Entry<'a> {
    let attributes = Attributes { permissions: 0o751, user: 3, group: 4, modified: 1_000_000 };
    Entry { path: path.as_bytes(), attributes, kind }
}

/// Adds packed files to a system.
fn add(system: &mut tench_linux::System<support::Console>, entries: &[Entry<'_>]) -> Result<(), NotAdded> {
    let bytes = write(entries).unwrap().leak();
    system.add_packed(&Packed::parse(bytes).unwrap())
}

/// Returns the entries of a tree in which `/bin` leads to `/usr/bin`.
fn merged(file: &[u8]) -> Vec<Entry<'_>> {
    vec![
        entry("etc", Kind::Directory),
        entry("etc/motd", Kind::Regular(b"hello\n")),
        entry("usr", Kind::Directory),
        entry("usr/bin", Kind::Directory),
        entry("usr/bin/found", Kind::Regular(file)),
        entry("usr/bin/link", Kind::Link(b"found")),
        entry("usr/bin/same", Kind::Same(b"usr/bin/found")),
        entry("usr/local", Kind::Directory),
    ]
}

#[test]
fn packed_files_are_there_with_their_attributes() {
    let mut play = Play::new(2048);
    let file = program();
    add(&mut play.instance.system, &merged(&file)).unwrap();
    let system = &mut play.instance.system;
    let find = |path: &str| system.tree.find((Tree::ROOT, Tree::ROOT), path.as_bytes(), Last::Keep).unwrap();
    let (same, found, etc) = (find("/usr/bin/same"), find("/usr/bin/found"), find("/etc"));
    assert_eq!(same, found);
    assert_eq!(system.tree.node(found).links(), 2);
    for node in [found, etc] {
        let attributes = system.tree.node(node).attributes;
        assert_eq!((attributes.permissions, attributes.user, attributes.group), (0o751, 3, 4));
        assert_eq!(attributes.modified.seconds, 1_000_000);
    }
    let NodeKind::Regular(object) = system.tree.node(find("/etc/motd")).kind else { panic!("a file") };
    let mut bytes = [0; 10];
    let count = system.memory.objects.read(&mut system.memory.hardware, object, 0, &mut bytes);
    assert_eq!(&bytes[..count], b"hello\n");
    play.check();
    play.end();
}

#[test]
fn what_the_system_has_gives_way_or_stays() {
    let mut play = Play::new(2048);
    let entries = [
        entry("dev", Kind::Directory),
        entry("dev/null", Kind::Regular(b"not null")),
        entry("root", Kind::Link(b"home")),
        entry("tmp", Kind::Directory),
    ];
    add(&mut play.instance.system, &entries).unwrap();
    let tree = &play.instance.system.tree;
    let kind = |path: &str| &tree.node(tree.find((Tree::ROOT, Tree::ROOT), path.as_bytes(), Last::Keep).unwrap()).kind;
    assert!(matches!(kind("/dev/null"), NodeKind::Character(_)), "a device stays");
    assert!(matches!(kind("/root"), NodeKind::Link(_)), "an empty directory gives way");
    play.check();

    let not_empty = add(&mut play.instance.system, &[entry("dev", Kind::Fifo)]);
    assert_eq!(not_empty, Err(NotAdded { path: b"dev".to_vec(), error: Errno::ENOTEMPTY }));
    let nowhere = add(&mut play.instance.system, &[entry("a/b", Kind::Fifo)]);
    assert_eq!(nowhere, Err(NotAdded { path: b"a/b".to_vec(), error: Errno::ENOENT }));
    let of_nothing = add(&mut play.instance.system, &[entry("z", Kind::Same(b"y"))]);
    assert_eq!(of_nothing, Err(NotAdded { path: b"z".to_vec(), error: Errno::ENOENT }));
    play.check();
    play.end();
}

#[test]
fn programs_are_found_as_a_shell_finds_them() {
    let mut system = system(program(), 2048);
    let file = program();
    add(&mut system, &merged(&file)).unwrap();
    let find = |name: &str| system.find_program(name.as_bytes()).map(|path| String::from_utf8(path).unwrap());
    assert_eq!(find("found").as_deref(), Some("/usr/bin/found"));
    assert_eq!(find("link").as_deref(), Some("/usr/bin/link"), "its name stays, though it leads to another");
    assert_eq!(find("program").as_deref(), Some("/bin/program"));
    assert_eq!(find("bin/program").as_deref(), Some("/bin/program"));
    assert_eq!(find("/usr/bin/../bin/found").as_deref(), Some("/usr/bin/../bin/found"));
    for missing in ["", "missing", "usr", "/usr/bin", "etc/missing", "./found", "."] {
        assert_eq!(find(missing), None, "{missing}");
    }
    let mut closed = entry("usr/bin/closed", Kind::Regular(&file));
    closed.attributes.permissions = 0o644;
    add(&mut system, &[closed]).unwrap();
    assert_eq!(system.find_program(b"closed"), None, "nobody may execute it");
}
