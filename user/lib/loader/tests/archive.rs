//! Tar archives as written by the host tool and GNU tar, and damaged ones.

use proptest::prelude::*;
use tench_loader::Archive;

/// Returns a header block and the padded contents.
fn record(prefix: &str, name: &str, kind: u8, magic: &[u8; 8], contents: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{:011o}", contents.len()).as_bytes());
    block[156] = kind;
    block[257..265].copy_from_slice(magic);
    block[345..][..prefix.len()].copy_from_slice(prefix.as_bytes());
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend(contents);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

const POSIX: &[u8; 8] = b"ustar\x0000";
const GNU: &[u8; 8] = b"ustar  \0";

fn sample() -> Vec<u8> {
    let long = format!("usr/{}/deep", "x".repeat(120));
    let mut bytes = record("", "bin/", b'5', POSIX, b"");
    bytes.extend(record("", "bin/hello", b'0', POSIX, b"ELF"));
    bytes.extend(record("", "./etc/motd", 0, GNU, b"Tench\n"));
    bytes.extend(record("usr/share", "doc/hello", b'0', POSIX, &[9; 1000]));
    bytes.extend(record("", "link", b'2', POSIX, b""));
    bytes.extend(record("", "././@LongLink", b'L', GNU, format!("{long}\0").as_bytes()));
    bytes.extend(record("", &long[..100], b'0', GNU, b"far"));
    bytes.extend(record("", "empty", b'0', POSIX, b""));
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn files_are_listed_in_order() {
    let bytes = sample();
    let names: Vec<_> = Archive::new(&bytes).files().map(|file| file.path.to_string()).collect();
    let long = format!("usr/{}/deep", "x".repeat(120));
    assert_eq!(names, ["bin/hello", "etc/motd", "usr/share/doc/hello", &long, "empty"]);
}

#[test]
fn files_are_found_by_path() {
    let bytes = sample();
    let archive = Archive::new(&bytes);
    assert_eq!(archive.find("etc/motd").unwrap().contents, b"Tench\n");
    assert_eq!(archive.find("/etc/motd").unwrap().contents, b"Tench\n");
    assert_eq!(archive.find("usr/share/doc/hello").unwrap().contents, [9; 1000]);
    assert_eq!(archive.find("empty").unwrap().contents, b"");
    for missing in ["", "bin", "bin/", "bin/hell", "bin/hello2", "hello", "link", "usr/share"] {
        assert!(archive.find(missing).is_none(), "{missing}");
    }
}

#[test]
fn programs_are_found_by_base_name_in_bin_alone() {
    let bytes = sample();
    let archive = Archive::new(&bytes);
    assert_eq!(archive.find_program("hello").unwrap().contents, b"ELF");
    assert_eq!(archive.find_program("/bin/hello").unwrap().contents, b"ELF");
    assert_eq!(archive.find_program("usr/share/doc/hello").unwrap().contents.len(), 1000);
    assert!(archive.find_program("motd").is_none());
    assert!(archive.find_program("deep").is_none());
}

#[test]
fn a_cut_archive_lists_what_is_whole() {
    let bytes = sample();
    let whole = Archive::new(&bytes).files().count();
    for length in 0..bytes.len() {
        let found = Archive::new(&bytes[..length]).files().count();
        assert!(found <= whole);
    }
    assert_eq!(Archive::new(&bytes[..512 + 512 + 2]).files().count(), 0);
    assert_eq!(Archive::new(&bytes[..512 + 512 + 3]).files().count(), 1);
}

#[test]
fn a_wrong_checksum_ends_the_archive() {
    let mut bytes = sample();
    bytes[512] ^= 1;
    assert_eq!(Archive::new(&bytes).files().count(), 0);
}

proptest! {
    #[test]
    fn damage_does_no_harm(changes in proptest::collection::vec((0usize..6000, any::<u8>()), 1..20)) {
        let mut bytes = sample();
        for (position, value) in changes {
            if let Some(byte) = bytes.get_mut(position) {
                *byte = value;
            }
        }
        for file in Archive::new(&bytes).files() {
            prop_assert!(file.contents.len() <= bytes.len());
        }
    }
}
