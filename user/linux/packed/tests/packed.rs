//! Packing and reading again, and bytes that were not packed so.

use tench_linux_packed::{Attributes, Defect, Entry, Kind, MAX_SIZE, Packed, TooLarge, write};
use tench_random::Random;

/// Bytes of the head, behind which the index begins.
const HEAD: usize = 32;

const fn entry<'a>(path: &'a [u8], kind: Kind<'a>) -> Entry<'a> {
    let attributes = Attributes { permissions: 0o4755, user: 1, group: 70_000, modified: -5 };
    Entry { path, attributes, kind }
}

fn entries() -> Vec<Entry<'static>> {
    vec![
        entry(b"bin", Kind::Link(b"usr/bin")),
        entry(b"dev", Kind::Directory),
        entry(b"dev/disk", Kind::Block(0x800)),
        entry(b"dev/null", Kind::Character(0x103)),
        entry(b"empty", Kind::Regular(b"")),
        entry(b"pipe", Kind::Fifo),
        entry(b"usr", Kind::Directory),
        entry(b"usr/bin", Kind::Directory),
        entry(b"usr/bin/one", Kind::Regular(&[1; 4097])),
        entry(b"usr/bin/same", Kind::Same(b"usr/bin/one")),
        entry(b"usr/bin/two", Kind::Regular(b"two")),
    ]
}

/// Returns what is wrong with a list of entries that was packed all the same.
fn defect(entries: &[Entry<'_>]) -> Option<Defect> {
    Packed::parse(&write(entries).unwrap()).err()
}

#[test]
fn what_was_packed_comes_back() {
    for entries in [entries(), Vec::new()] {
        let bytes = write(&entries).unwrap();
        let packed = Packed::parse(&bytes).unwrap();
        assert_eq!(packed.entries().collect::<Vec<_>>(), entries);
    }
    let bytes = [write(&entries()).unwrap(), vec![0xff; 100]].concat();
    assert_eq!(Packed::parse(&bytes).unwrap().entries().count(), entries().len(), "what follows is ignored");
}

#[test]
fn contents_begin_at_pages() {
    let bytes = write(&entries()).unwrap();
    let start = bytes.as_ptr().addr();
    let mut seen = 0;
    for entry in Packed::parse(&bytes).unwrap().entries() {
        if let Kind::Regular(contents @ [_, ..]) = entry.kind {
            assert_eq!((contents.as_ptr().addr() - start) % 4096, 0);
            let rest = &bytes[contents.as_ptr().addr() - start + contents.len()..];
            let to_page = contents.len().next_multiple_of(4096) - contents.len();
            assert!(rest[..to_page].iter().all(|byte| *byte == 0), "zeros follow");
            seen += 1;
        }
    }
    assert_eq!(seen, 2);
}

#[test]
fn every_cut_is_found() {
    let bytes = write(&entries()).unwrap();
    for length in 0..bytes.len() {
        let expected = if length < 8 { Defect::NotPacked } else { Defect::CutOff };
        assert_eq!(Packed::parse(&bytes[..length]).err(), Some(expected), "{length}");
    }
}

#[test]
fn damaged_bytes_are_read_without_a_panic() {
    let good = write(&entries()).unwrap();
    let index = u64::from_le_bytes(*good[16..].first_chunk().unwrap()) as usize;
    let mut random = Random::new(1);
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(3) {
            let place = random.index(HEAD + index);
            bytes[place] = random.next() as u8;
        }
        match Packed::parse(&bytes) {
            // What is read lies inside, which slices see to, and its paths are good ones.
            Ok(packed) => packed.entries().for_each(|entry| {
                assert!(tench_linux_packed::is_valid_path(entry.path));
            }),
            Err(_) => refused += 1,
        }
    }
    assert!((1000..19_000).contains(&refused), "{refused}");
}

#[test]
fn each_mistake_has_its_name() {
    let mut bytes = write(&entries()).unwrap();
    bytes[7] = b'0';
    assert_eq!(Packed::parse(&bytes).err(), Some(Defect::NotPacked));
    for (count, expected) in [(12, Defect::BadEntry), (10, Defect::BadEntry), (u64::MAX, Defect::BadEntry)] {
        let mut bytes = write(&entries()).unwrap();
        bytes[8..16].copy_from_slice(&count.to_le_bytes());
        assert_eq!(Packed::parse(&bytes).err(), Some(expected), "{count} entries");
    }
    for size in [u64::MAX, u64::MAX - 31, 1 << 40] {
        let mut bytes = write(&entries()).unwrap();
        bytes[16..24].copy_from_slice(&size.to_le_bytes());
        assert_eq!(Packed::parse(&bytes).err(), Some(Defect::CutOff), "an index of {size} bytes");
    }
    let long = [b'x'; 256];
    for path in [&b""[..], b"/a", b"a/", b"a//b", b".", b"a/../b", b"..", b"./a", b"a\0b", &long] {
        assert_eq!(defect(&[entry(path, Kind::Directory)]), Some(Defect::BadPath), "{path:?}");
    }
    assert_eq!(defect(&[entry(&long[..255], Kind::Directory)]), None);
    assert_eq!(defect(&[entry(b"b", Kind::Fifo), entry(b"a", Kind::Fifo)]), Some(Defect::OutOfOrder));
    assert_eq!(defect(&[entry(b"a", Kind::Fifo), entry(b"a", Kind::Fifo)]), Some(Defect::OutOfOrder));
    assert_eq!(defect(&[entry(b"a", Kind::Link(b""))]), Some(Defect::BadLink));
    assert_eq!(defect(&[entry(b"a", Kind::Same(b"b"))]), Some(Defect::BadLink));
    assert_eq!(defect(&[entry(b"a", Kind::Same(b"../b"))]), Some(Defect::BadLink));
    let mut strange = entry(b"a", Kind::Fifo);
    strange.attributes.permissions = 0o10000;
    assert_eq!(defect(&[strange]), Some(Defect::BadEntry));
}

#[test]
fn contents_outside_are_refused() {
    let mut bytes = write(&[entry(b"a", Kind::Regular(b"a"))]).unwrap();
    assert_eq!(bytes.len(), 2 * 4096);
    // The size of everything is one page less.
    bytes[24..32].copy_from_slice(&4096u64.to_le_bytes());
    assert_eq!(Packed::parse(&bytes).err(), Some(Defect::ContentsOutside));
}

#[test]
fn too_much_is_refused() {
    let half = vec![0; MAX_SIZE as usize / 2];
    let all = [entry(b"a", Kind::Regular(&half)), entry(b"b", Kind::Regular(&half))];
    assert_eq!(write(&all), Err(TooLarge(MAX_SIZE + 4096)));
    assert_eq!(TooLarge(MAX_SIZE + 4096).to_string(), "the files have 97 MiB together, and 96 MiB are allowed");
    assert!(write(&[all[0], entry(b"b", Kind::Regular(&half[4096..]))]).is_ok());
}
