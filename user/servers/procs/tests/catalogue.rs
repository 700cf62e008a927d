//! The catalogue finds what the archive and the description find.

use proptest::prelude::*;
use tench_loader::Archive;
use tench_procs::catalogue::Catalogue;
use tench_system::{Capabilities, Cores, Program, Shares, Strings, System};

/// A tar file with these files.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, contents) in files {
        let mut header = [0; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", contents.len()).as_bytes());
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend(header);
        tar.extend(*contents);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

fn program<'a>(name: &'a str, path: &'a str) -> Program<'a> {
    Program {
        name,
        path,
        priority: 9,
        ceiling: 9,
        stack_size: 0,
        quota: u64::MAX,
        start: false,
        cores: Cores::First,
        server: false,
        restart: 0,
        restart_delay: 0,
        keep: 0,
        keep_nodes: 0,
        arguments: Strings::default(),
        environment: Strings::default(),
        capabilities: Capabilities::default(),
    }
}

#[test]
fn programs_are_found_by_name_and_path_with_what_is_said_of_them() {
    let tar =
        tar(&[("etc/motd", b"hi"), ("bin/hello", b"elf"), ("bin/hello", b"second"), ("bin/he", b"he"), ("bin", b"")]);
    let bytes = System::write(&[program("greeting", "bin/hello"), program("other", "bin/other")], Shares::default());
    let system = System::parse(&bytes).unwrap();
    let catalogue = Catalogue::new(&Archive::new(&tar), &system);
    for name in ["hello", "bin/hello", "/bin/hello", "./bin/hello"] {
        let file = catalogue.find_program(name).unwrap();
        assert_eq!((file.path.as_str(), file.contents), ("bin/hello", &b"elf"[..]));
        assert_eq!(file.entry.map(|entry| entry.name), Some("greeting"));
    }
    assert!(catalogue.find("etc/motd").unwrap().entry.is_none());
    for missing in ["motd", "other", "bin/other", "greeting", "", "bin/"] {
        assert!(catalogue.find_program(missing).is_none(), "{missing}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever is asked for, the archive itself finds the same.
    #[test]
    fn the_archive_finds_the_same(
        paths in prop::collection::vec("(bin/)?[ab]{1,3}(/[ab])?", 0..20),
        names in prop::collection::vec("/?(bin/)?[ab]{0,3}(/[ab])?", 20),
    ) {
        let numbers: Vec<String> = (0..paths.len()).map(|number| number.to_string()).collect();
        let files: Vec<_> = paths.iter().zip(&numbers).map(|(path, n)| (path.as_str(), n.as_bytes())).collect();
        let tar = tar(&files);
        let archive = Archive::new(&tar);
        let bytes = System::write(&[], Shares::default());
        let catalogue = Catalogue::new(&archive, &System::parse(&bytes).unwrap());
        for name in &names {
            let found = |file: &tench_procs::catalogue::File<'_>| file.contents.to_vec();
            prop_assert_eq!(
                catalogue.find_program(name).map(found),
                archive.find_program(name).map(|file| file.contents.to_vec())
            );
            prop_assert_eq!(catalogue.find(name).map(found), archive.find(name).map(|file| file.contents.to_vec()));
        }
    }
}
