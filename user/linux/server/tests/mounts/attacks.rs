//! Attempts to change what must not be changed, and calls that race with each other and with other programs.

use super::*;

const EBADF: i64 = -9;

/// Writes a datagram socket's address into a process's memory. Returns its length.
fn address(play: &mut Play, id: u32, at: u64, name: &str) -> u64 {
    let all = [&[1, 0], name.as_bytes(), &[0]].concat();
    assert_eq!(play.write(id, at, &all), all.len());
    all.len() as u64
}

/// Makes a socket for datagrams, bound to a path.
fn bound(play: &mut Play, name: &str) -> u64 {
    let socket = call(play, Sysno::socket, &[1, 2, 0]).cast_unsigned();
    let length = address(play, 1, PATH, name);
    assert_eq!(call(play, Sysno::bind, &[socket, PATH, length]), 0);
    socket
}

#[test]
fn access_to_a_file_in_a_removed_directory_fails() {
    let mut play = mounted();
    outside(&mut play).ends.borrow_mut().tree.make_directory(OTHER, "tmp/d").unwrap();
    outside(&mut play).put("tmp/d/f", b"x");
    let file = opened(&mut play, "/mnt/d/f", RDONLY);
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/d/f").unwrap();
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/d").unwrap();
    assert_eq!(status(&mut play, "/mnt/d"), Err(ENOENT));
    let name = format!("/proc/self/fd/{file}");
    assert!(with_path(&mut play, Sysno::faccessat, &name, &[2]) < 0);
    play.end();
}

#[test]
fn a_removed_working_directory_in_a_mount_has_a_status() {
    let mut play = mounted();
    for path in ["tmp/d", "tmp/d/e"] {
        outside(&mut play).ends.borrow_mut().tree.make_directory(OTHER, path).unwrap();
    }
    let name = path(&mut play, PATH, "/mnt/d/e");
    assert_eq!(call(&mut play, Sysno::chdir, &[name]), 0);
    for path in ["tmp/d/e", "tmp/d"] {
        outside(&mut play).ends.borrow_mut().tree.remove(OTHER, path).unwrap();
    }
    assert_eq!(status(&mut play, "/mnt/d"), Err(ENOENT));
    assert!(status(&mut play, ".").is_ok());
    let _ = status(&mut play, "..");
    let _ = open(&mut play, "x", WRONLY | CREAT);
    play.end();
}

#[test]
fn a_removed_working_directory_in_memory_has_a_status() {
    let mut play = Play::new(4096);
    for name in ["/a", "/a/b"] {
        assert_eq!(with_path(&mut play, Sysno::mkdirat, name, &[0o777]), 0);
    }
    let name = path(&mut play, PATH, "/a/b");
    assert_eq!(call(&mut play, Sysno::chdir, &[name]), 0);
    for name in ["/a/b", "/a"] {
        assert_eq!(with_path(&mut play, Sysno::unlinkat, name, &[0x200]), 0);
    }
    assert!(status(&mut play, ".").is_ok());
    let _ = status(&mut play, "..");
    play.end();
}

#[test]
fn a_file_is_sent_to_a_pipe_that_is_full_at_first() {
    for number in [Sysno::sendfile, Sysno::splice] {
        let mut play = Play::new(4096);
        play.mount("tmp", "/mnt", false);
        outside(&mut play).put("tmp/f", b"from outside");
        let (from, to) = pipe(&mut play);
        let child = call(&mut play, Sysno::clone, &[17]) as u32;
        let mut filled = 0;
        // The pipe has 64 KiB of room.
        while filled < 65536 {
            filled += call(&mut play, Sysno::write, &[to, BUFFER, 8192]);
        }
        let file = opened(&mut play, "/mnt/f", RDONLY);
        let arguments = match number {
            Sysno::sendfile => [to, file, 0, 12, 0, 0],
            _ => [file, 0, to, 0, 12, 0],
        };
        assert_eq!(play.call(1, number as u64, arguments), None);
        while play.do_errand() {}
        assert_eq!(play.thread(1).doing, Doing::Waits, "the pipe is full");
        // The child reads the pipe until it is empty.
        for _ in 0..8 {
            assert_eq!(begin(&mut play, child, Sysno::read, &[from, BUFFER, 8192]), Some(8192));
            while play.do_errand() {}
        }
        assert_eq!(play.thread(1).doing, Doing::Runs, "{number:?}: the pipe has room now");
        assert_eq!(result(&mut play, 1), 12);
        play.end();
    }
}

#[test]
fn two_processes_append_to_a_file_that_nobody_has_read() {
    let mut play = mounted();
    own_file(&mut play, "/mnt/log", b"old ");
    // Another program has changed the file since.
    forget_and_own(&mut play, "tmp/log", b"log ");
    let log = opened(&mut play, "/mnt/log", WRONLY | APPEND);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    play.write(1, BUFFER, b"one ");
    play.write(child, BUFFER, b"two ");
    assert_eq!(begin(&mut play, 1, Sysno::write, &[log, BUFFER, 4]), None);
    assert_eq!(begin(&mut play, child, Sysno::write, &[log, BUFFER, 4]), None);
    while play.do_errand() {}
    assert_eq!((result(&mut play, 1), result(&mut play, child)), (4, 4));
    let there = outside(&mut play).contents("tmp/log").unwrap();
    assert_eq!(String::from_utf8_lossy(&there), "log one two ");
    play.end();
}

#[test]
fn a_write_is_kept_while_another_process_reads_the_file() {
    let mut play = mounted();
    own_file(&mut play, "/mnt/f", b"--------");
    forget_and_own(&mut play, "tmp/f", b"........");
    let file = opened(&mut play, "/mnt/f", RDWR);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    play.write(1, BUFFER, b"new");
    assert_eq!(begin(&mut play, child, Sysno::pread64, &[file, BUFFER, 8, 0]), None);
    assert_eq!(begin(&mut play, 1, Sysno::pwrite64, &[file, BUFFER, 3, 0]), None);
    while play.do_errand() {}
    assert_eq!((result(&mut play, child), result(&mut play, 1)), (8, 3));
    assert_eq!(outside(&mut play).contents("tmp/f").unwrap(), b"new.....");
    assert_eq!(read(&mut play, file), b"new.....", "the bytes that the program has written itself are there");
    play.end();
}

#[test]
fn a_truncation_is_kept_while_another_process_reads_the_file() {
    let mut play = mounted();
    own_file(&mut play, "/mnt/f", b"--------");
    forget_and_own(&mut play, "tmp/f", b"........");
    let file = opened(&mut play, "/mnt/f", RDWR);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    assert_eq!(begin(&mut play, child, Sysno::pread64, &[file, BUFFER, 8, 0]), None);
    assert_eq!(begin(&mut play, 1, Sysno::ftruncate, &[file, 3]), None);
    while play.do_errand() {}
    assert!([3, 8].contains(&result(&mut play, child)));
    assert_eq!(result(&mut play, 1), 0);
    assert_eq!(outside(&mut play).contents("tmp/f").unwrap(), b"...");
    assert_eq!(status(&mut play, "/mnt/f").unwrap().1, 3);
    assert_eq!(read(&mut play, file), b"...");
    play.end();
}

#[test]
fn a_file_is_not_lost_when_its_directory_is_renamed() {
    let mut play = mounted();
    assert_eq!(with_path(&mut play, Sysno::mkdirat, "/mnt/d", &[0o777]), 0);
    let file = opened(&mut play, "/mnt/d/f", RDWR | CREAT);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    let (from, to) = (path(&mut play, PATH, "/mnt/d"), path(&mut play, OTHER_PATH, "/mnt/e"));
    assert_eq!(begin(&mut play, 1, Sysno::renameat2, &[HERE, from, HERE, to, 0]), None);
    // The call looks at both paths, and then sends the errand that renames.
    play.do_errand();
    play.do_errand();
    // Meanwhile, another process writes to the file.
    play.write(child, BUFFER, b"text");
    assert_eq!(begin(&mut play, child, Sysno::write, &[file, BUFFER, 4]), None);
    while play.do_errand() {}
    assert_eq!((result(&mut play, 1), result(&mut play, child)), (0, 4));
    assert_eq!(write(&mut play, file, b" more"), 5);
    assert_eq!(outside(&mut play).contents("tmp/e/f").unwrap(), b"text more");
    play.end();
}

#[test]
fn a_write_succeeds_while_its_file_is_renamed() {
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/f", RDWR | CREAT);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    let (from, to) = (path(&mut play, PATH, "/mnt/f"), path(&mut play, OTHER_PATH, "/mnt/g"));
    play.write(child, BUFFER, b"text");
    assert_eq!(begin(&mut play, 1, Sysno::renameat2, &[HERE, from, HERE, to, 0]), None);
    play.do_errand();
    // Two errands are waiting now: the lookup of the new name, and that of the write.
    assert_eq!(begin(&mut play, child, Sysno::write, &[file, BUFFER, 4]), None);
    while play.do_errand() {}
    assert_eq!((result(&mut play, 1), result(&mut play, child)), (0, 4));
    assert_eq!(outside(&mut play).contents("tmp/g").unwrap(), b"text");
    play.end();
}

#[test]
fn a_failed_write_does_not_move_the_position() {
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/large", RDWR | CREAT);
    let mut written = 0;
    while let count @ 0.. = write(&mut play, file, &[1; ROOM as usize]) {
        written += count;
        assert!(written < 4 << 20);
    }
    assert_eq!(call(&mut play, Sysno::lseek, &[file, 0, 1]), written);
    play.end();
}

#[test]
fn a_failed_open_leaves_no_descriptor() {
    let mut play = mounted();
    own_file(&mut play, "/mnt/f", b"contents");
    let name = path(&mut play, PATH, "/mnt/f");
    assert_eq!(begin(&mut play, 1, Sysno::openat, &[HERE, name, WRONLY | TRUNC, 0]), None);
    // The first errand looks at the path, the second checks that the file may be written.
    play.do_errand();
    play.do_errand();
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/f").unwrap();
    while play.do_errand() {}
    let error = result(&mut play, 1);
    assert!(error < 0, "{error}");
    assert_eq!(call(&mut play, Sysno::close, &[3]), EBADF, "the call that failed with {error} has left a descriptor");
    play.end();
}

#[test]
fn a_failed_rename_removes_nothing() {
    let mut play = mounted();
    outside(&mut play).ends.borrow_mut().tree.make_directory(OTHER, "tmp/others").unwrap();
    assert_eq!(with_path(&mut play, Sysno::mkdirat, "/mnt/own", &[0o777]), 0);
    let error = rename(&mut play, "/mnt/others", "/mnt/own", 0);
    assert_eq!(error, EACCES);
    assert!(outside(&mut play).ends.borrow().tree.status("tmp/own").is_ok(), "the directory is still there");
    play.end();
}

#[test]
fn a_touch_does_not_truncate() {
    use tench_linux::mounts::errand::FileServer;
    let mut play = mounted();
    own_file(&mut play, "/mnt/f", b"contents");
    let name = path(&mut play, PATH, "/mnt/f");
    assert_eq!(begin(&mut play, 1, Sysno::utimensat, &[HERE, name, 0, 0]), None);
    play.do_errand();
    let mut other = outside(&mut play).open_for(OTHER, "tmp/f", How::Update).unwrap();
    outside(&mut play).write(&mut other, 8, b" of another").unwrap();
    drop(other);
    while play.do_errand() {}
    assert_eq!(result(&mut play, 1), 0);
    assert_eq!(outside(&mut play).contents("tmp/f").unwrap(), b"contents of another");
    play.end();
}

#[test]
fn files_that_exceed_memory_together_are_read_one_by_one() {
    let mut play = Play::new(160);
    play.mount("tmp", "/mnt", false);
    for index in 0..15 {
        outside(&mut play).put(&format!("tmp/f{index}"), &[index; 60_000]);
    }
    for index in 0..15 {
        let file = opened(&mut play, &format!("/mnt/f{index}"), RDONLY);
        assert_eq!(call(&mut play, Sysno::read, &[file, BUFFER, 100]), 100, "file {index}");
        assert_eq!(bytes(&mut play, BUFFER, 100), [index; 100]);
        assert_eq!(call(&mut play, Sysno::close, &[file]), 0);
    }
    play.end();
}

#[test]
fn each_of_several_messages_is_sent_once() {
    let mut play = Play::new(4096);
    play.mount("tmp", "/mnt", false);
    assert_eq!(with_path(&mut play, Sysno::mkdirat, "/mnt/d", &[0o777]), 0);
    let to = bound(&mut play, "/bin/socket");
    let from = call(&mut play, Sysno::socket, &[1, 2, 0]).cast_unsigned();
    let lengths =
        [address(&mut play, 1, PATH, "/bin/socket"), address(&mut play, 1, OTHER_PATH, "/mnt/d/../../bin/socket")];
    play.write(1, BUFFER, b"12");
    play.put(1, RECORD, &[BUFFER, 1, BUFFER + 1, 1]);
    // Two records of messages.
    let first = [PATH, lengths[0], RECORD, 1, 0, 0, 0, 0];
    let second = [OTHER_PATH, lengths[1], RECORD + 16, 1, 0, 0, 0, 0];
    play.put(1, RECORD + 64, &[first, second].concat());
    assert_eq!(call(&mut play, Sysno::sendmmsg, &[from, RECORD + 64, 2, 0]), 2);
    let mut received = Vec::new();
    loop {
        let count = call(&mut play, Sysno::recvfrom, &[to, BUFFER, 9, 0x40, 0, 0]);
        if count < 0 {
            break;
        }
        received.push(bytes(&mut play, BUFFER, count as usize));
    }
    assert_eq!(received, [b"1", b"2"]);
    play.end();
}

#[test]
fn a_message_to_a_path_through_a_mount_waits_for_room() {
    let mut play = Play::new(4096);
    play.mount("tmp", "/mnt", false);
    assert_eq!(with_path(&mut play, Sysno::mkdirat, "/mnt/d", &[0o777]), 0);
    let to = bound(&mut play, "/bin/socket");
    let from = call(&mut play, Sysno::socket, &[1, 2, 0]).cast_unsigned();
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    let length = address(&mut play, 1, PATH, "/mnt/d/../../bin/socket");
    let mut sent = 0;
    loop {
        let _ = begin(&mut play, 1, Sysno::sendto, &[from, BUFFER, 8, 0, PATH, length]);
        while play.do_errand() {}
        if play.thread(1).doing == Doing::Waits {
            break;
        }
        sent += 1;
        assert!(sent < 10_000);
    }
    for _ in 0..sent {
        assert_eq!(begin(&mut play, child, Sysno::recvfrom, &[to, BUFFER, 8, 0x40, 0, 0]), Some(8));
        while play.do_errand() {}
    }
    assert_eq!(play.thread(1).doing, Doing::Runs, "the socket has room now");
    play.end();
}

#[test]
fn a_call_that_fails_after_a_wait_leaves_no_wait() {
    let mut play = Play::new(4096);
    play.mount("tmp", "/mnt", false);
    outside(&mut play).put("tmp/f", b"from outside");
    let (from, to) = pipe(&mut play);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    let mut filled = 0;
    while filled < 65536 {
        filled += call(&mut play, Sysno::write, &[to, BUFFER, 8192]);
    }
    let file = opened(&mut play, "/mnt/f", RDONLY);
    assert_eq!(play.call(1, Sysno::sendfile as u64, [to, file, 0, 12, 0, 0]), None);
    while play.do_errand() {}
    assert_eq!(play.thread(1).doing, Doing::Waits, "the pipe is full");
    // Another program changes the file, and then removes it.
    play.write(child, PATH, b"/mnt/f\0");
    outside(&mut play).put("tmp/f", b"other");
    let _ = begin(&mut play, child, Sysno::fstatat, &[HERE, PATH, RECORD, 0]);
    while play.do_errand() {}
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/f").unwrap();
    let _ = begin(&mut play, child, Sysno::fstatat, &[HERE, PATH, RECORD, 0]);
    while play.do_errand() {}
    for _ in 0..8 {
        assert_eq!(begin(&mut play, child, Sysno::read, &[from, BUFFER, 8192]), Some(8192));
        while play.do_errand() {}
    }
    assert_eq!(result(&mut play, 1), ESTALE);
    assert!(play.process_of(1).unwrap().thread().waiting.is_none(), "with a wait, the next call would not be filtered");
    play.end();
}

#[test]
fn a_file_is_reopened_for_writing_only_if_the_server_agrees() {
    let mut play = mounted();
    outside(&mut play).put("tmp/others", b"x");
    let file = opened(&mut play, "/mnt/others", RDONLY);
    assert_eq!(open(&mut play, &format!("/proc/self/fd/{file}"), RDWR), EACCES);
    play.end();
}
