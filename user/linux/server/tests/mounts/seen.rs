//! Files in mounts, as Linux programs see and change them.

use super::*;

#[test]
fn files_in_a_mount_are_read_and_written() {
    let mut play = mounted();
    outside(&mut play).put("tmp/old", b"from outside");
    assert_eq!(contents_of(&mut play, "/mnt/old"), b"from outside");
    assert_eq!(contents_of(&mut play, "/tench/tmp/old"), b"from outside");
    assert_eq!(contents_of(&mut play, "/tench/share/text/motd"), b"welcome");
    assert_eq!(open(&mut play, "/mnt/none", RDONLY), ENOENT);
    let new = opened(&mut play, "/mnt/new", RDWR | CREAT | EXCL);
    assert_eq!(outside(&mut play).contents("tmp/new"), Ok(Vec::new()), "the file is there as soon as the call returns");
    assert_eq!(write(&mut play, new, b"first "), 6);
    assert_eq!(outside(&mut play).contents("tmp/new").unwrap(), b"first ", "and so are the bytes");
    assert_eq!(write(&mut play, new, b"second"), 6);
    assert_eq!(outside(&mut play).contents("tmp/new").unwrap(), b"first second");
    assert_eq!(call(&mut play, Sysno::ftruncate, &[new, 5]), 0);
    assert_eq!(outside(&mut play).contents("tmp/new").unwrap(), b"first");
    assert_eq!(open(&mut play, "/mnt/new", RDWR | CREAT | EXCL), EEXIST);
    assert_eq!(names(&mut play, "/mnt"), ["new", "old"]);
    assert_eq!(names(&mut play, "/tench"), ["bin", "share", "tmp"]);
    let emptied = opened(&mut play, "/mnt/new", WRONLY | TRUNC);
    assert_eq!(outside(&mut play).contents("tmp/new").unwrap(), b"");
    assert_eq!(write(&mut play, emptied, &[7; 3000]), 3000);
    assert_eq!(outside(&mut play).contents("tmp/new").unwrap(), [7; 3000]);
    play.end();
}

#[test]
fn each_call_sees_earlier_changes_of_others() {
    let mut play = mounted();
    outside(&mut play).put("tmp/log", b"one");
    let log = opened(&mut play, "/mnt/log", RDONLY);
    assert_eq!(read(&mut play, log), b"one");
    assert_eq!(read(&mut play, log), b"");
    outside(&mut play).put("tmp/log", b"one two");
    assert_eq!(read(&mut play, log), b" two", "as `tail -f` wants it");
    assert_eq!(status(&mut play, "/mnt/log").unwrap().1, 7);
    assert_eq!(call(&mut play, Sysno::lseek, &[log, 0, 0]), 0);
    // The number of bytes is the same: only the count of changes tells that the bytes are others.
    // What glibc makes of `fstat`.
    const EMPTY_PATH: u64 = 0x1000;
    let nothing = path(&mut play, PATH, "");
    outside(&mut play).put("tmp/log", b"one two three");
    assert_eq!(call(&mut play, Sysno::fstatat, &[log, nothing, RECORD, EMPTY_PATH]), 0);
    assert_eq!(field(&mut play, 48), 13);
    outside(&mut play).put("tmp/log", b"one two");
    outside(&mut play).put("tmp/log", b"ONE TWO");
    assert_eq!(read(&mut play, log), b"ONE TWO");
    outside(&mut play).put("tmp/other", b"x");
    assert_eq!(names(&mut play, "/mnt"), ["log", "other"]);
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/other").unwrap();
    assert_eq!(status(&mut play, "/mnt/other"), Err(ENOENT));
    assert_eq!(names(&mut play, "/mnt"), ["log"]);
    // Another file has the same name, length and number of changes.
    for contents in [b"a file", b"a twin"] {
        outside(&mut play).put("tmp/twin", contents);
        assert_eq!(contents_of(&mut play, "/mnt/twin"), contents);
        outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/twin").unwrap();
    }
    // A directory takes the place of a file, and a file that of a directory that had an entry.
    outside(&mut play).ends.borrow_mut().tree.make_directory(OTHER, "tmp/other").unwrap();
    outside(&mut play).put("tmp/other/below", b"y");
    assert_eq!(contents_of(&mut play, "/mnt/other/below"), b"y");
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/other/below").unwrap();
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/other").unwrap();
    outside(&mut play).put("tmp/other", b"z");
    assert_eq!(contents_of(&mut play, "/mnt/other"), b"z");
    play.end();
}

#[test]
fn files_and_directories_are_made_renamed_and_removed() {
    let mut play = mounted();
    assert_eq!(with_path(&mut play, Sysno::mkdirat, "/mnt/d", &[0o777]), 0);
    assert_eq!(with_path(&mut play, Sysno::mkdirat, "/mnt/d", &[0o777]), EEXIST);
    assert_eq!(outside(&mut play).ends.borrow().tree.status("tmp/d").unwrap().size, 0);
    let file = opened(&mut play, "/mnt/d/a", RDWR | CREAT);
    assert_eq!(write(&mut play, file, b"contents"), 8);
    assert_eq!(with_path(&mut play, Sysno::unlinkat, "/mnt/d", &[0x200]), ENOTEMPTY);
    assert_eq!(rename(&mut play, "/mnt/d/a", "/mnt/b", 0), 0);
    assert_eq!(outside(&mut play).contents("tmp/b").unwrap(), b"contents");
    assert_eq!(write(&mut play, file, b" and more"), 9);
    assert_eq!(outside(&mut play).contents("tmp/b").unwrap(), b"contents and more", "the open file was renamed, too");
    assert_eq!(with_path(&mut play, Sysno::unlinkat, "/mnt/b", &[0]), 0);
    assert!(outside(&mut play).contents("tmp/b").is_err());
    // As on Linux, the open file exists until it is closed.
    assert_eq!(write(&mut play, file, b"!"), 1);
    assert_eq!(call(&mut play, Sysno::lseek, &[file, 0, 0]), 0);
    assert_eq!(read(&mut play, file), b"contents and more!");
    assert_eq!(with_path(&mut play, Sysno::mkdirat, "/mnt/e", &[0o777]), 0);
    assert_eq!(rename(&mut play, "/mnt/d", "/mnt/e", 0), 0, "a directory replaces an empty one");
    assert_eq!(rename(&mut play, "/mnt/e", "/mnt/e/f", 0), EINVAL);
    assert_eq!(with_path(&mut play, Sysno::unlinkat, "/mnt/e", &[0x200]), 0);
    assert_eq!(names(&mut play, "/mnt"), [""; 0]);
    play.end();
}

#[test]
fn a_file_that_is_removed_before_it_was_read_is_read_first() {
    let mut play = mounted();
    for name in ["/mnt/f", "/mnt/g"] {
        let made = opened(&mut play, name, WRONLY | CREAT);
        assert_eq!(call(&mut play, Sysno::close, &[made]), 0);
    }
    outside(&mut play).put("tmp/f", b"unread");
    let file = opened(&mut play, "/mnt/f", RDONLY);
    assert_eq!(with_path(&mut play, Sysno::unlinkat, "/mnt/f", &[0]), 0);
    assert_eq!(read(&mut play, file), b"unread");
    outside(&mut play).put("tmp/g", b"replaced");
    let file = opened(&mut play, "/mnt/g", RDONLY);
    let other = opened(&mut play, "/mnt/h", WRONLY | CREAT);
    assert_eq!(rename(&mut play, "/mnt/h", "/mnt/g", 0), 0);
    assert_eq!(read(&mut play, file), b"replaced");
    assert_eq!(write(&mut play, other, b"new"), 3);
    assert_eq!(outside(&mut play).contents("tmp/g").unwrap(), b"new");
    play.end();
}

#[test]
fn files_that_others_remove_are_lost_with_an_error() {
    let mut play = mounted();
    outside(&mut play).put("tmp/f", b"read");
    outside(&mut play).put("tmp/g", b"unread");
    let (read_one, other) = (opened(&mut play, "/mnt/f", RDONLY), opened(&mut play, "/mnt/g", RDONLY));
    let own = opened(&mut play, "/mnt/own", RDWR | CREAT);
    assert_eq!(call(&mut play, Sysno::pread64, &[read_one, BUFFER, 4, 0]), 4);
    for path in ["tmp/f", "tmp/g", "tmp/own"] {
        outside(&mut play).ends.borrow_mut().tree.remove(OTHER, path).unwrap();
    }
    assert_eq!(call(&mut play, Sysno::pread64, &[read_one, BUFFER, 4, 0]), 4, "what was read stays");
    assert_eq!(call(&mut play, Sysno::pread64, &[other, BUFFER, 4, 0]), ESTALE);
    assert_eq!(write(&mut play, own, b"nowhere"), ESTALE);
    assert_eq!(call(&mut play, Sysno::fstat, &[own, RECORD]), 0);
    assert_eq!(field(&mut play, 48), 0, "the mirror has not grown, either");
    play.end();
}

#[test]
fn refusals_of_the_server_become_linux_errors() {
    let mut play = mounted();
    outside(&mut play).put("tmp/others", b"x");
    assert_eq!(open(&mut play, "/mnt/others", WRONLY), EACCES, "another program has made the file");
    assert_eq!(with_path(&mut play, Sysno::faccessat, "/mnt/others", &[2]), EACCES);
    assert_eq!(with_path(&mut play, Sysno::unlinkat, "/mnt/others", &[0]), EACCES);
    assert_eq!(open(&mut play, "/tench/bin/hello", RDWR), EROFS);
    assert_eq!(open(&mut play, "/tench/tmp/x", WRONLY | CREAT), EROFS, "the mount is read-only");
    assert_eq!(with_path(&mut play, Sysno::mkdirat, "/tench/tmp/x", &[0o777]), EROFS);
    assert_eq!(with_path(&mut play, Sysno::unlinkat, "/tench/tmp/others", &[0]), EROFS);
    let mine = opened(&mut play, "/mnt/mine", WRONLY | CREAT);
    assert_eq!(write(&mut play, mine, b"mine"), 4);
    assert_eq!(open(&mut play, "/tench/tmp/mine", WRONLY), EROFS);
    for (name, error) in [("/tench/tmp/mine", EROFS), ("/mnt/others", EACCES)] {
        let name = path(&mut play, PATH, name);
        assert_eq!(call(&mut play, Sysno::truncate, &[name, 0]), error);
    }
    assert_eq!(with_path(&mut play, Sysno::utimensat, "/tench/tmp/mine", &[0, 0]), EROFS);
    assert_eq!(with_path(&mut play, Sysno::faccessat, "/tench/tmp/mine", &[2]), EROFS);
    assert_eq!(with_path(&mut play, Sysno::faccessat, "/tench/tmp", &[2]), EROFS);
    assert_eq!(outside(&mut play).contents("tmp/mine").unwrap(), b"mine");
    let long = format!("/mnt/{}", "n".repeat(240));
    assert_eq!(open(&mut play, &long, WRONLY | CREAT), ENAMETOOLONG);
    assert_eq!(open(&mut play, "/mnt/\u{1}", WRONLY | CREAT), EINVAL);
    assert_eq!(open(&mut play, "/mnt/\u{1}", RDONLY), ENOENT);
    assert_eq!(rename(&mut play, "/mnt/others", "/tmp/others", 0), EXDEV);
    assert_eq!(rename(&mut play, "/mnt/others", "/tench/tmp/o", 0), EXDEV);
    assert_eq!(rename(&mut play, "/mnt/others", "/mnt/o", 1), EINVAL);
    assert_eq!(rename(&mut play, "/mnt", "/m", 0), EBUSY);
    assert_eq!(with_path(&mut play, Sysno::unlinkat, "/mnt", &[0x200]), EBUSY);
    let link = path(&mut play, OTHER_PATH, "/mnt/link");
    let target = path(&mut play, PATH, "/mnt/others");
    assert_eq!(call(&mut play, Sysno::symlinkat, &[target, HERE, link]), EPERM);
    assert_eq!(call(&mut play, Sysno::linkat, &[HERE, target, HERE, link, 0]), EPERM);
    assert_eq!(with_path(&mut play, Sysno::mknodat, "/mnt/fifo", &[0o010_644, 0]), EPERM);
    assert_eq!(with_path(&mut play, Sysno::fchmodat, "/mnt/others", &[0o600]), EPERM);
    assert_eq!(with_path(&mut play, Sysno::fchmodat, "/mnt/others", &[0o755]), 0, "these are the present ones");
    assert_eq!(with_path(&mut play, Sysno::fchownat, "/mnt/others", &[5, 5, 0]), EPERM);
    play.end();
}

#[test]
fn the_call_that_needs_room_fails_if_the_server_is_full() {
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/large", RDWR | CREAT);
    let mut written = 0;
    let refused = loop {
        match write(&mut play, file, &[1; ROOM as usize]) {
            count @ 0.. => written += count,
            error => break error,
        }
        assert!(written < 4 << 20, "there is room for 512 blocks");
    };
    assert_eq!(refused, ENOSPC);
    let there = outside(&mut play).contents("tmp/large").unwrap();
    assert!(there.len() as i64 >= written && there.iter().all(|byte| *byte == 1));
    assert_eq!(status(&mut play, "/mnt/large").unwrap().1, there.len() as u64, "the server's length is seen");
    assert_eq!(call(&mut play, Sysno::pwrite64, &[file, BUFFER, 1, 1 << 22]), ENOSPC, "the server has written nothing");
    assert_eq!(status(&mut play, "/mnt/large").unwrap().1, there.len() as u64);
    assert_eq!(call(&mut play, Sysno::lseek, &[file, 0, 0]), 0);
    assert_eq!(read(&mut play, file), there[..ROOM as usize]);
    play.end();
}

#[test]
fn times_are_those_of_the_server() {
    let mut play = mounted();
    outside(&mut play).put("tmp/f", b"x");
    let before = status(&mut play, "/mnt/f").unwrap();
    assert_eq!(before.0, 0o100_755);
    assert_eq!(status(&mut play, "/tench/bin/hello").unwrap().0, 0o100_555);
    assert_eq!(status(&mut play, "/mnt").unwrap().0, 0o040_755);
    let own = opened(&mut play, "/mnt/own", WRONLY | CREAT);
    outside(&mut play).ends.borrow_mut().tree.now = tench_sys::Instant::from_ticks(5_000_000_000);
    assert_eq!(with_path(&mut play, Sysno::utimensat, "/mnt/own", &[0, 0]), 0);
    let start = support::START.as_secs();
    assert_eq!(status(&mut play, "/mnt/own").unwrap().2, start + 5);
    play.put(1, RECORD, &[1, 0, 1, 0]);
    assert_eq!(with_path(&mut play, Sysno::utimensat, "/mnt/own", &[RECORD, 0]), EPERM);
    assert_eq!(call(&mut play, Sysno::close, &[own]), 0);
    play.end();
}

#[test]
fn mappings_keep_the_contents_of_their_time() {
    let mut play = mounted();
    outside(&mut play).put("tmp/f", &[b'a'; 5000]);
    let file = opened(&mut play, "/mnt/f", RDONLY);
    let place = call(&mut play, Sysno::mmap, &[0, 8192, 3, 2, file, 0]).cast_unsigned();
    assert!(play.touch(1, place + 4999, Access::Read));
    assert_eq!(bytes(&mut play, place + 4990, 20), [[b'a'; 10], [0; 10]].concat());
    outside(&mut play).put("tmp/f", b"other");
    assert_eq!(read(&mut play, file), b"other");
    assert_eq!(bytes(&mut play, place, 10), [b'a'; 10], "the mapping keeps its contents");
    let own = opened(&mut play, "/mnt/own", RDWR | CREAT);
    assert_eq!(write(&mut play, own, b"mine"), 4);
    assert_eq!(call(&mut play, Sysno::mmap, &[0, 4096, 3, 1, own, 0]), ENODEV, "a shared mapping cannot be writable");
    let place = call(&mut play, Sysno::mmap, &[0, 4096, 1, 1, own, 0]).cast_unsigned();
    assert_eq!(bytes(&mut play, place, 4), b"mine");
    assert_eq!(call(&mut play, Sysno::mprotect, &[place, 4096, 3]), EACCES);
    play.end();
}

#[test]
fn programs_in_a_mount_are_run() {
    let mut play = mounted();
    let program = support::program();
    outside(&mut play).put("tmp/program", &program);
    outside(&mut play).put("tmp/script", b"#!/mnt/program\n");
    for name in ["/mnt/program", "/mnt/script"] {
        let child = call(&mut play, Sysno::clone, &[17]) as u32;
        let name = path(&mut play, PATH, name);
        let copy = bytes(&mut play, name, 20);
        play.write(child, PATH, &copy);
        let _ = play.call(child, Sysno::execve as u64, [PATH, 0, 0, 0, 0, 0]);
        while play.do_errand() {}
        play.check();
        assert_eq!(play.doing(child), Some(Doing::Runs));
        assert_eq!(play.process_of(child).unwrap().program, b"/mnt/program");
        let _ = play.call(child, Sysno::exit_group as u64, [0; 6]);
    }
    assert_eq!(with_path(&mut play, Sysno::execveat, "/mnt/none", &[0, 0, 0]), ENOENT);
    play.end();
}

#[test]
fn the_first_program_may_be_in_a_mount() {
    let mut system = support::system(support::program(), 4096);
    let program = support::program();
    system.memory.hardware.files.put("tmp/program", &program);
    let mount = Mount { directory: "tmp".into(), mount_point: "/mnt".into(), is_read_only: true };
    system.mount(mount).unwrap();
    assert_eq!(system.bring(b"/mnt/none"), Ok(()));
    assert_eq!(system.find_program(b"/mnt/none"), None);
    assert_eq!(system.find_program(b"/mnt/program"), None, "the program was not brought");
    assert_eq!(system.bring(b"/mnt/program"), Ok(()));
    assert_eq!(system.find_program(b"/mnt/program"), Some(b"/mnt/program".to_vec()));
    let mut instance = tench_linux::Instance::new(system);
    instance.start(b"/mnt/program", &[b"program".to_vec()], &[]).unwrap();
    Play { instance }.end();
}

#[test]
fn mount_points_must_be_free_and_directories_must_exist() {
    let mut play = Play::new(4096);
    let mut mount = |directory: &str, place: &str| {
        let (directory, place) = (directory.to_owned(), place.to_owned());
        play.instance.system.mount(Mount { directory, mount_point: place, is_read_only: false }).unwrap_err()
    };
    let error = mount("nowhere", "/mnt");
    assert_eq!(error, "--mount nowhere=/mnt: there is no such directory among Tench's files; ls shows what there is");
    assert!(mount("bin/hello", "/mnt").contains("that is a file"));
    assert!(mount("tmp", "mnt").contains("a path from the root"));
    assert!(mount("tmp", "/").contains("a path from the root"));
    assert!(mount("tmp", "/bin").contains("there is something at the mount point"));
    assert!(mount("tmp", "/dev/pts").contains("there is something at the mount point"));
    assert!(mount("tmp", "/bin/program/x").contains("is no directory"));
    assert!(mount("tmp", "/a/../b").contains("a path from the root"));
    play.mount("tmp", "/mnt", false);
    for place in ["/mnt", "/mnt/", "/mnt/x", "/mnt/x/y"] {
        let again = Mount { directory: "tmp".into(), mount_point: place.into(), is_read_only: false };
        assert!(play.instance.system.mount(again).is_err(), "a mount in a mount");
    }
    play.mount("bin", "//opt//x/", false);
    assert_eq!(names(&mut play, "/opt/x"), ["hello"]);
    let mut short = Play::new(4096);
    outside(&mut short).is_short = true;
    let refused = Mount { directory: "tmp".into(), mount_point: "/mnt".into(), is_read_only: false };
    assert!(short.instance.system.mount(refused).unwrap_err().contains("not enough memory"));
    play.end();
}

#[test]
fn copies_of_files_are_freed_when_memory_is_short() {
    const PAGES: u64 = 1024;
    let mut play = Play::new(PAGES as usize);
    play.mount("tmp", "/mnt", false);
    outside(&mut play).put("tmp/large", &[b'l'; 1 << 20]);
    let file = opened(&mut play, "/mnt/large", RDONLY);
    assert_eq!(call(&mut play, Sysno::pread64, &[file, BUFFER, ROOM, 0]), ROOM as i64);
    // These pages and the contents of the file would be more than there are.
    let count = PAGES - 150;
    let memory = call(&mut play, Sysno::mmap, &[0, count * 4096, 3, 0x22, u64::MAX, 0]).cast_unsigned();
    for page in 0..count {
        play.fault(1, memory + page * 4096, Access::Write);
        assert_eq!(play.doing(1), Some(Doing::Runs), "page {page}");
    }
    assert_eq!(call(&mut play, Sysno::munmap, &[memory, count * 4096]), 0);
    assert_eq!(call(&mut play, Sysno::pread64, &[file, BUFFER, ROOM, 1 << 19]), ROOM as i64);
    assert_eq!(bytes(&mut play, BUFFER, ROOM as usize), [b'l'; ROOM as usize], "the file is read again");
    assert!(play.instance.system.memory.hardware.reports.is_empty());
    play.end();
}

#[test]
fn a_file_in_a_removed_directory_has_a_status() {
    let mut play = mounted();
    outside(&mut play).ends.borrow_mut().tree.make_directory(OTHER, "tmp/d").unwrap();
    outside(&mut play).put("tmp/d/f", b"x");
    let file = opened(&mut play, "/mnt/d/f", RDONLY);
    for path in ["tmp/d/f", "tmp/d"] {
        outside(&mut play).ends.borrow_mut().tree.remove(OTHER, path).unwrap();
    }
    assert_eq!(status(&mut play, "/mnt/d"), Err(ENOENT));
    assert_eq!(call(&mut play, Sysno::fstat, &[file, RECORD]), 0);
    assert_eq!(call(&mut play, Sysno::fstatfs, &[file, RECORD]), 0);
    assert_eq!(call(&mut play, Sysno::fchmod, &[file, 0o600]), EPERM);
    assert_eq!(call(&mut play, Sysno::read, &[file, BUFFER, 1]), ESTALE);
    play.end();
}

#[test]
fn a_read_only_mount_cannot_be_changed_in_any_way() {
    let mut play = mounted();
    let mine = opened(&mut play, "/mnt/mine", WRONLY | CREAT);
    assert_eq!(write(&mut play, mine, b"mine"), 4);
    let reader = opened(&mut play, "/tench/tmp/mine", RDONLY);
    for way in [format!("/proc/self/fd/{reader}"), format!("/dev/fd/{reader}")] {
        assert_eq!(open(&mut play, &way, WRONLY), EROFS, "{way}");
        assert_eq!(open(&mut play, &way, RDONLY | TRUNC), EROFS, "{way}");
    }
    assert_eq!(with_path(&mut play, Sysno::faccessat, "/tench", &[2]), EROFS);
    assert_eq!(with_path(&mut play, Sysno::unlinkat, "/tench/tmp/none", &[0]), EROFS);
    assert_eq!(rename(&mut play, "/tench/tmp/none", "/tench/tmp/x", 0), EROFS);
    assert_eq!(with_path(&mut play, Sysno::fchmodat, "/tench/tmp/mine", &[0o555]), EROFS);
    assert_eq!(call(&mut play, Sysno::ftruncate, &[reader, 0]), EINVAL);
    let flags = |play: &mut Play| u64::from_le_bytes(bytes(play, RECORD + 80, 8).try_into().unwrap());
    assert_eq!(call(&mut play, Sysno::fstatfs, &[reader, RECORD]), 0);
    assert_eq!(flags(&mut play), 1);
    assert_eq!(outside(&mut play).contents("tmp/mine").unwrap(), b"mine");
    play.end();
}

#[test]
fn a_write_with_room_for_a_part_is_short() {
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/large", RDWR | CREAT);
    let mut written = 0;
    let last = loop {
        match write(&mut play, file, &[1; ROOM as usize]) {
            count if count == ROOM as i64 => written += count,
            count => break count,
        }
    };
    assert!(last > 0 && last < ROOM as i64, "{last}");
    written += last;
    assert_eq!(call(&mut play, Sysno::lseek, &[file, 0, 1]), written, "the position is after these bytes");
    assert_eq!(outside(&mut play).contents("tmp/large").unwrap().len() as i64, written);
    // The server does a request as a whole or not at all.
    assert_eq!(write(&mut play, file, &[1; 480]), ENOSPC);
    assert_eq!(call(&mut play, Sysno::lseek, &[file, 0, 1]), written);
    play.end();
}

#[test]
fn a_restarted_server_has_other_files() {
    let mut play = mounted();
    outside(&mut play).put("tmp/f", b"before");
    assert_eq!(contents_of(&mut play, "/mnt/f"), b"before");
    // The server numbers its files from the beginning again, and time goes on.
    let now = outside(&mut play).ends.borrow().tree.now;
    *outside(&mut play) = support::Files::default();
    outside(&mut play).ends.borrow_mut().tree.now = now;
    outside(&mut play).put("tmp/f", b"after!");
    assert_eq!(contents_of(&mut play, "/mnt/f"), b"after!");
    play.end();
}
