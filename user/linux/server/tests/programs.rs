//! Starting programs: what they find, and files that are none.

mod support;

use support::{Play, program, system};
use tench_linux_files::{Errno, Tree};
use tench_linux_memory::Access;

fn load(file: Vec<u8>) -> Result<(), Errno> {
    let mut system = system(file, 2048);
    let result =
        system.load(Tree::ROOT, b"/bin/program", &[], &[]).map(|(image, _)| image.space.end(&mut system.memory));
    system.memory.check(core::iter::empty()).unwrap();
    assert_eq!(system.memory.hardware.alive(), 0, "address spaces and tables");
    result
}

/// Changes bytes of the good program.
fn with(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = program();
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn files_that_are_no_programs_are_refused() {
    assert_eq!(load(program()), Ok(()));
    let mistakes: [(&str, Vec<u8>); 14] = [
        ("empty", Vec::new()),
        ("no magic number", with(0, b"\x7fELG")),
        ("a script without a program", with(0, b"#!  \n")),
        ("an endless first line without a program", [b"#!".to_vec(), vec![b' '; 4000]].concat()),
        ("cut off in the header", program()[..60].to_vec()),
        ("32 bits", with(4, &[1])),
        ("big endian", with(5, &[2])),
        ("another machine", with(18, &[62])),
        ("no program", with(16, &[1])),
        ("program headers of another size", with(54, &[32])),
        ("program headers beyond the end", with(32, &[0xff; 8])),
        ("more in the file than in memory", with(64 + 40, &[1, 0, 0, 0, 0, 0, 0, 0])),
        ("offset and address differ within their pages", with(64 + 8, &[8])),
        ("nothing to be loaded", with(56, &[0])),
    ];
    for (mistake, file) in mistakes {
        assert_eq!(load(file), Err(Errno::ENOEXEC), "{mistake}");
    }
    let end_of_addresses = (u64::MAX - 0xfff).to_le_bytes();
    assert_eq!(load(with(64 + 16, &end_of_addresses)), Err(Errno::ENOEXEC), "a segment without an end");
    assert_eq!(load(with(64 + 16, &(1u64 << 47).to_le_bytes())), Err(Errno::ENOMEM), "a segment outside of memory");
    assert_eq!(load(with(120 + 16, &0x20_0000u64.to_le_bytes())), Err(Errno::EEXIST), "segments overlap");
}

#[test]
fn scripts_run_the_program_in_their_first_line() {
    let mut system = system(program(), 2048);
    let mut add = |path: &[u8], text: &'static [u8]| system.add_file(path, text, 0o755).unwrap();
    add(b"/tmp/script", b"#! /bin/program \t an argument  \nrest");
    add(b"/tmp/outer", b"#!/tmp/script");
    add(b"/tmp/itself", b"#!/tmp/itself\n");
    add(b"/tmp/missing", b"#!/bin/missing\n");
    let mut load = |path: &[u8]| {
        let arguments = [b"name".to_vec(), b"last".to_vec()];
        let (image, found) = system.load(Tree::ROOT, path, &arguments, &[])?;
        let (mut space, stack) = (image.space, image.stack);
        let mut bytes = vec![0; 512];
        space.read(&mut system.memory, stack, &mut bytes);
        let word = |index: usize| u64::from_le_bytes(bytes[8 * index..][..8].try_into().unwrap());
        let count = word(0);
        let mut strings = Vec::new();
        for index in 0..count {
            let mut string = [0; 64];
            space.read(&mut system.memory, word(1 + index as usize), &mut string);
            let end = string.iter().position(|byte| *byte == 0).unwrap();
            strings.push(String::from_utf8(string[..end].to_vec()).unwrap());
        }
        space.end(&mut system.memory);
        Ok((String::from_utf8(found).unwrap(), strings.join("|")))
    };
    let program = "/bin/program".to_owned();
    let arguments = "/bin/program|an argument|/tmp/script|last".to_owned();
    assert_eq!(load(b"/tmp/script"), Ok((program.clone(), arguments)));
    let arguments = "/bin/program|an argument|/tmp/script|/tmp/outer|last".to_owned();
    assert_eq!(load(b"/tmp/outer"), Ok((program, arguments)));
    assert_eq!(load(b"/tmp/itself"), Err(Errno::ELOOP));
    assert_eq!(load(b"/tmp/missing"), Err(Errno::ENOENT));
}

#[test]
fn a_file_that_nobody_may_execute_is_refused() {
    let mut system = system(program(), 2048);
    system.add_file(b"/tmp/program", program().leak(), 0o644).unwrap();
    let mut load = |path: &[u8]| system.load(Tree::ROOT, path, &[], &[]).map(drop).unwrap_err();
    assert_eq!(load(b"/tmp/program"), Errno::EACCES);
    assert_eq!(load(b"/tmp"), Errno::EACCES);
    assert_eq!(load(b"/tmp/missing"), Errno::ENOENT);
    assert_eq!(load(b"/bin/program/x"), Errno::ENOTDIR);
}

#[test]
fn segments_have_their_contents_and_rights() {
    let mut play = Play::new(2048);
    let mut bytes = [1; 0x1000];
    let count = play.read(1, 0x20_1000, &mut bytes);
    assert_eq!(count, bytes.len());
    assert!(bytes.starts_with(b"data\0"));
    assert!(bytes[0x800..].iter().all(|byte| *byte == 0), "what follows the contents is zero");
    assert!(play.touch(1, 0x20_0100, Access::Execute) && !play.touch(1, 0x20_0100, Access::Write));
    assert!(play.touch(1, 0x20_5fff, Access::Write) && !play.touch(1, 0x20_5fff, Access::Execute));
    assert!(!play.touch(1, 0x20_6000, Access::Read), "nothing lies behind");
    play.check();
    play.end();
}

#[test]
fn there_may_be_too_little_memory() {
    let mut enough = false;
    for pages in [0, 512, 1024] {
        let mut system = system(program(), pages);
        match system.load(Tree::ROOT, b"/bin/program", &[], &[]) {
            Ok((image, _)) => {
                enough = true;
                image.space.end(&mut system.memory);
            }
            Err(error) => assert_eq!(error, Errno::ENOMEM),
        }
        system.memory.check(core::iter::empty()).unwrap();
    }
    assert!(enough);
}

/// Returns a file that can be anywhere, and asks for a multiple of 64 KiB. `path` is that of the program which is to
/// load the rest, if there is one.
fn movable(path: Option<&[u8]>) -> Vec<u8> {
    let mut file = program();
    file[16] = 3;
    let alignment = 0x1_0000u64.to_le_bytes();
    for (index, address) in [(0, 0u64), (1, 0x1000)] {
        let segment = 64 + 56 * index;
        file[segment + 16..segment + 24].copy_from_slice(&address.to_le_bytes());
        file[segment + 48..segment + 56].copy_from_slice(&alignment);
    }
    file[24..32].copy_from_slice(&0x100u64.to_le_bytes());
    if let Some(path) = path {
        file[56] = 3;
        let segment = 64 + 56 * 2;
        file[segment..segment + 4].copy_from_slice(&3u32.to_le_bytes());
        file[segment + 8..segment + 16].copy_from_slice(&0x800u64.to_le_bytes());
        file[segment + 32..segment + 40].copy_from_slice(&(path.len() as u64).to_le_bytes());
        file[0x800..0x800 + path.len()].copy_from_slice(path);
    }
    file
}

#[test]
fn a_program_is_loaded_with_the_one_that_loads_the_rest() {
    let mut system = system(movable(Some(b"/lib/loader\0")), 4096);
    system.add_file(b"/lib/loader", movable(None).leak(), 0o755).unwrap();
    let (mut image, _) = system.load(Tree::ROOT, b"/bin/program", &[], &[]).unwrap();
    let program = 0x5555_5555_0000;
    assert_eq!(image.heap, program + 0x6000, "the heap lies behind the program");
    let base = image.entry - 0x100;
    assert!(base > program && base.is_multiple_of(0x1_0000), "the other begins, where it wants to be: {base:#x}");
    let mut words = [0; 8 * (3 + 2 * 20)];
    assert_eq!(image.space.read(&mut system.memory, image.stack, &mut words), words.len());
    let words: Vec<u64> = words.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    // There are neither arguments nor an environment: three zeros come before the pairs.
    let value = |kind: u64| words[3..].chunks(2).find(|pair| pair[0] == kind).map(|pair| pair[1]);
    assert_eq!((value(3), value(5)), (Some(program + 64), Some(3)), "program headers");
    assert_eq!((value(7), value(9)), (Some(base), Some(program + 0x100)), "the loader's base, the program's entry");
    image.space.end(&mut system.memory);
    system.memory.check(core::iter::empty()).unwrap();
}

#[test]
fn a_bad_path_of_the_program_that_loads_the_rest_is_refused() {
    let long = [&[b'x'; 4097][..], b"\0"].concat();
    let mut too_long = movable(Some(b"/lib/loader\0"));
    let segment = 64 + 56 * 2;
    too_long[segment + 32..segment + 40].copy_from_slice(&(long.len() as u64).to_le_bytes());
    assert_eq!(load(too_long), Err(Errno::ENOEXEC));
    for path in [&b"/lib/loader"[..], b"\0", b"", b"/lib\0x\0"] {
        assert_eq!(load(movable(Some(path))), Err(Errno::ENOEXEC), "{path:?}");
    }
    assert_eq!(load(movable(Some(b"/lib/loader\0"))), Err(Errno::ENOENT));
    assert_eq!(load(movable(Some(b"/tmp\0"))), Err(Errno::EACCES));
}
