//! Tests that the catalogue finds the same files as the archive.

use proptest::prelude::*;
use tench_loader::Archive;
use tench_procs::spawn::catalogue::Catalogue;

/// Returns a tar archive with these files.
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

#[test]
fn programs_are_found_by_name_and_path() {
    let tar =
        tar(&[("etc/motd", b"hi"), ("bin/hello", b"elf"), ("bin/hello", b"second"), ("bin/he", b"he"), ("bin", b"")]);
    let catalogue = Catalogue::new(&Archive::new(&tar));
    for name in ["hello", "bin/hello", "/bin/hello", "./bin/hello"] {
        let file = catalogue.find_program(name).unwrap();
        assert_eq!((file.path.as_str(), file.contents), ("bin/hello", &b"elf"[..]));
    }
    assert!(catalogue.find("etc/motd").is_some());
    for missing in ["motd", "other", "bin/other", "", "bin/"] {
        assert!(catalogue.find_program(missing).is_none(), "{missing}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For any path, the catalogue finds what the archive itself finds.
    #[test]
    fn the_archive_finds_the_same(
        paths in prop::collection::vec("(bin/)?[ab]{1,3}(/[ab])?", 0..20),
        names in prop::collection::vec("/?(bin/)?[ab]{0,3}(/[ab])?", 20),
    ) {
        let numbers: Vec<String> = (0..paths.len()).map(|number| number.to_string()).collect();
        let files: Vec<_> = paths.iter().zip(&numbers).map(|(path, n)| (path.as_str(), n.as_bytes())).collect();
        let tar = tar(&files);
        let archive = Archive::new(&tar);
        let catalogue = Catalogue::new(&archive);
        for name in &names {
            let found = |file: &tench_procs::spawn::catalogue::File<'_>| file.contents.to_vec();
            prop_assert_eq!(
                catalogue.find_program(name).map(found),
                archive.find_program(name).map(|file| file.contents.to_vec())
            );
            prop_assert_eq!(catalogue.find(name).map(found), archive.find(name).map(|file| file.contents.to_vec()));
        }
    }
}
