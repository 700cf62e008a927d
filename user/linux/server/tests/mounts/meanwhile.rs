//! Calls during which other threads or programs change the same files, or their own thread stops or ends.

use super::*;

/// Lets a child with two threads make a call, and stops both threads after this number of errands. Then the remaining
/// errands are done, another process looks at the files, and the child goes on. Returns the result of the call.
fn stopped_after(play: &mut Play, errands: usize, number: Sysno, name: &str, rest: &[u64]) -> i64 {
    const THREAD: u64 = 0x1_0f00;
    let child = call(play, Sysno::clone, &[17]) as u32;
    let other = play.call(child, Sysno::clone as u64, [THREAD, 0, 0, 0, 0, 0]).unwrap() as u32;
    play.write(child, PATH, format!("{name}\0").as_bytes());
    play.write(child, OTHER_PATH, b"/mnt/moved\0");
    let mut all = [HERE, PATH, 0, 0, 0, 0];
    all[2..2 + rest.len()].copy_from_slice(rest);
    assert_eq!(play.call(child, number as u64, all), None);
    for _ in 0..errands {
        let _ = play.do_errand();
    }
    assert_eq!(play.call(1, Sysno::kill as u64, [child.into(), 19, 0, 0, 0, 0]), Some(0));
    assert_eq!(play.doing(other), Some(Doing::Stopped));
    // If the errand is not done, the thread must not send it again when it goes on.
    let waiting = outside(play).errands.len();
    assert_eq!(play.call(1, Sysno::kill as u64, [child.into(), 18, 0, 0, 0, 0]), Some(0));
    assert_eq!(outside(play).errands.len(), waiting, "{number:?}");
    assert_eq!(play.call(1, Sysno::kill as u64, [child.into(), 19, 0, 0, 0, 0]), Some(0));
    while play.do_errand() {}
    for name in [name, "/mnt/moved"] {
        let path = path(play, PATH, name);
        let _ = play.call(1, Sysno::fstatat as u64, [HERE, path, RECORD, 0, 0, 0]);
        while play.do_errand() {}
    }
    let _ = play.call(1, Sysno::kill as u64, [child.into(), 18, 0, 0, 0, 0]);
    while play.do_errand() {}
    play.check();
    assert_eq!(play.doing(child), Some(Doing::Runs));
    let result = play.thread(child).registers.x[0].cast_signed();
    let _ = play.call(child, Sysno::exit_group as u64, [0; 6]);
    result
}

/// Begins a write that takes three errands, of which none is done, in a child with two threads. Returns the child and
/// the second thread.
fn begin_long_write(play: &mut Play, file: u64, length: usize) -> (u32, u32) {
    let child = call(play, Sysno::clone, &[17]) as u32;
    let other = play.call(child, Sysno::clone as u64, [THREAD, 0, 0, 0, 0, 0]).unwrap() as u32;
    let memory = play.call(child, Sysno::mmap as u64, [0, length as u64, 3, 0x22, u64::MAX, 0]).unwrap();
    play.write(child, memory, &vec![3; length]);
    assert_eq!(play.call(child, Sysno::write as u64, [file, memory, length as u64, 0, 0, 0]), None);
    assert!(play.do_errand(), "the lookup");
    (child, other)
}

#[test]
fn a_write_is_finished_while_its_process_is_stopped() {
    const LENGTH: usize = 0xa_0000;
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/f", RDWR | CREAT);
    let (child, other) = begin_long_write(&mut play, file, LENGTH);
    assert_eq!(play.call(1, Sysno::kill as u64, [child.into(), 19, 0, 0, 0, 0]), Some(0));
    assert_eq!(play.doing(other), Some(Doing::Stopped));
    while play.do_errand() {}
    assert!(outside(&mut play).contents("tmp/f").unwrap() == [3; LENGTH]);
    assert_eq!(play.call(1, Sysno::kill as u64, [child.into(), 18, 0, 0, 0, 0]), Some(0));
    assert_eq!(play.thread(child).registers.x[0], LENGTH as u64);
    play.check();
    play.end();
}

#[test]
fn what_is_cut_off_during_a_write_is_not_written() {
    const LENGTH: usize = 0xa_0000;
    for length in [10, 0x9_0000] {
        let mut play = mounted();
        let file = opened(&mut play, "/mnt/f", RDWR | CREAT);
        let (child, _) = begin_long_write(&mut play, file, LENGTH);
        assert_eq!(call(&mut play, Sysno::ftruncate, &[file, length]), 0);
        while play.do_errand() {}
        play.check();
        assert_eq!(play.thread(child).registers.x[0], LENGTH as u64);
        assert_eq!(status(&mut play, "/mnt/f").unwrap().1, length);
        assert_eq!(outside(&mut play).contents("tmp/f").unwrap().len() as u64, length);
        play.end();
    }
}

/// A file server at which another program interferes with an errand.
struct Interfered {
    files: support::Files,
    /// The other program replaces the file as soon as its status was read.
    replaces: bool,
    /// The other program appends to the file after the first bytes were written.
    appends: bool,
}

impl FileServer for Interfered {
    type File = support::files::Open;

    fn status(&mut self, path: &str) -> Result<Status, Errno> {
        let status = self.files.status(path);
        if std::mem::take(&mut self.replaces) {
            self.files.ends.borrow_mut().tree.remove(OTHER, path).unwrap();
            self.files.put(path, b"replaced");
        }
        status
    }
    fn open(&mut self, path: &str, writes: bool) -> Result<Self::File, Errno> {
        self.files.open_for(OTHER, path, if writes { How::Update } else { How::Read }).map_err(errand::errno)
    }
    fn next(&mut self, directory: &str, after: &str) -> Result<Option<(String, Status)>, Errno> {
        self.files.next(directory, after)
    }
    fn create(&mut self, path: &str) -> Result<(), Errno> {
        self.files.create(path)
    }
    fn read(&mut self, file: &mut Self::File, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        self.files.read(file, offset, into)
    }
    fn write(&mut self, file: &mut Self::File, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
        let result = self.files.write(file, offset, bytes);
        if std::mem::take(&mut self.appends) {
            let mut other = self.files.open_for(OTHER, "tmp/f", How::Append).unwrap();
            self.files.write_all(&mut other, 0, b"more");
        }
        result
    }
    fn resize(&mut self, file: &mut Self::File, size: u64) -> Result<(), Errno> {
        self.files.resize(file, size)
    }
    fn make_directory(&mut self, path: &str) -> Result<(), Errno> {
        self.files.make_directory(path)
    }
    fn remove(&mut self, path: &str) -> Result<(), Errno> {
        self.files.remove(path)
    }
    fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        self.files.rename(from, to)
    }
    fn usage(&mut self) -> Result<Usage, Errno> {
        self.files.usage()
    }
}

/// Makes a pipe. Returns its ends.
fn pipe(play: &mut Play) -> [u64; 2] {
    assert_eq!(call(play, Sysno::pipe2, &[RECORD, 0]), 0);
    let ends = field(play, 0);
    [ends & 0xffff_ffff, ends >> 32]
}

#[test]
fn changes_of_both_sides_are_kept() {
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/both", RDWR | CREAT);
    assert_eq!(write(&mut play, file, b"aaaaaaaa"), 8);
    let mut other = outside(&mut play).open_for(OTHER, "tmp/both", How::Update).unwrap();
    outside(&mut play).write(&mut other, 4, b"BB").unwrap();
    assert_eq!(call(&mut play, Sysno::pwrite64, &[file, BUFFER, 2, 0]), 2);
    assert_eq!(call(&mut play, Sysno::lseek, &[file, 0, 0]), 0);
    assert_eq!(read(&mut play, file), b"aaaaBBaa", "the instance's copy has the other program's bytes, too");
    outside(&mut play).write(&mut other, 8, b"end").unwrap();
    let appended = opened(&mut play, "/mnt/both", WRONLY | APPEND);
    assert_eq!(write(&mut play, appended, b"!"), 1);
    assert_eq!(outside(&mut play).contents("tmp/both").unwrap(), b"aaaaBBaaend!");
    play.end();
}

#[test]
fn changes_of_others_during_a_write_are_seen_after_it() {
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/both", RDWR | CREAT);
    assert_eq!(write(&mut play, file, b"aaaaaaaa"), 8);
    let mut other = outside(&mut play).open_for(OTHER, "tmp/both", How::Update).unwrap();
    assert_eq!(play.call(1, Sysno::pwrite64 as u64, [file, BUFFER, 2, 0, 0, 0]), None);
    assert!(play.do_errand(), "the call compares the file, and then writes");
    outside(&mut play).write(&mut other, 4, b"BB").unwrap();
    assert!(play.do_errand());
    assert_eq!(call(&mut play, Sysno::lseek, &[file, 0, 0]), 0);
    assert_eq!(read(&mut play, file), b"aaaaBBaa");
    // `sendfile` appends at the end that the other program has made.
    let source = opened(&mut play, "/bin/program", RDONLY);
    let appended = opened(&mut play, "/mnt/both", WRONLY | APPEND);
    outside(&mut play).write(&mut other, 8, b"more").unwrap();
    assert_eq!(call(&mut play, Sysno::sendfile, &[appended, source, 0, 4]), 4);
    assert_eq!(outside(&mut play).contents("tmp/both").unwrap(), b"aaaaBBaamore\x7fELF");
    play.end();
}

#[test]
fn a_thread_that_ends_during_an_errand_leaves_nothing() {
    for number in [Sysno::openat, Sysno::mkdirat, Sysno::unlinkat] {
        for errands in 0..3 {
            let mut play = mounted();
            outside(&mut play).put("tmp/f", &[1; 3000]);
            let child = call(&mut play, Sysno::clone, &[17]) as u32;
            play.write(child, PATH, b"/mnt/f\0");
            let flags = if number == Sysno::openat { TRUNC | RDWR } else { 0 };
            let _ = play.call(child, number as u64, [HERE, PATH, flags, 0, 0, 0]);
            for _ in 0..errands {
                play.do_errand();
            }
            call(&mut play, Sysno::kill, &[child.into(), 9]);
            while play.do_errand() {}
            play.check();
            assert_eq!(play.instance.system.mounts.inquiries(), 0);
            play.end();
        }
    }
}

#[test]
fn a_stopped_thread_sends_each_errand_once() {
    let excl = CREAT | EXCL | RDWR;
    for errands in 0..3 {
        let mut play = mounted();
        assert!(stopped_after(&mut play, errands, Sysno::openat, "/mnt/once", &[excl, 0o644]) >= 0, "{errands}");
        assert_eq!(stopped_after(&mut play, errands, Sysno::openat, "/mnt/once", &[excl, 0o644]), EEXIST);
        assert_eq!(stopped_after(&mut play, errands, Sysno::mkdirat, "/mnt/d", &[0o755]), 0);
        assert_eq!(stopped_after(&mut play, errands, Sysno::renameat, "/mnt/d", &[HERE, OTHER_PATH]), 0);
        assert_eq!(stopped_after(&mut play, errands, Sysno::unlinkat, "/mnt/once", &[0]), 0);
        assert_eq!(stopped_after(&mut play, errands, Sysno::unlinkat, "/mnt/moved", &[0x200]), 0);
        assert_eq!(names(&mut play, "/mnt"), [""; 0]);
        play.end();
    }
}

#[test]
fn a_long_write_is_kept_while_others_look() {
    let mut play = Play::new(4096);
    play.mount("tmp", "/mnt", false);
    let file = opened(&mut play, "/mnt/f", RDWR | CREAT);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    // The write takes more than one errand.
    const LENGTH: usize = 0x6_0000;
    let memory = call(&mut play, Sysno::mmap, &[0, LENGTH as u64, 3, 0x22, u64::MAX, 0]).cast_unsigned();
    play.write(1, memory, &[3; LENGTH]);
    assert_eq!(play.call(1, Sysno::write as u64, [file, memory, LENGTH as u64, 0, 0, 0]), None);
    play.do_errand();
    play.do_errand();
    // Another program changes the file between the errands, and the child's call notices that.
    let mut other = outside(&mut play).open_for(OTHER, "tmp/f", How::Update).unwrap();
    outside(&mut play).write(&mut other, 0, b"other").unwrap();
    play.write(child, PATH, b"/mnt/f\0");
    assert_eq!(play.call(child, Sysno::fstatat as u64, [HERE, PATH, RECORD, 0, 0, 0]), None);
    while play.do_errand() {}
    assert_eq!(play.thread(1).registers.x[0], LENGTH as u64);
    let there = outside(&mut play).contents("tmp/f").unwrap();
    assert!(there.starts_with(b"other") && there[5..] == [3; LENGTH - 5]);
    play.end();
}

#[test]
fn an_errand_fails_if_its_file_is_replaced() {
    let mut files = support::Files::default();
    files.put("tmp/f", b"original");
    let mut server = Interfered { files, replaces: false, appends: false };
    for kind in 0..3 {
        let original = server.files.status("tmp/f").unwrap().identity;
        let name = Name { path: "tmp/f".into(), original };
        let errand = match kind {
            0 => Errand::Read(name, 0, vec![0; 8]),
            1 => Errand::Write(name, 0, vec![1]),
            _ => Errand::Resize(name, 0),
        };
        server.replaces = true;
        assert_eq!(errand::run(&mut server, errand), Err(Errno::ESTALE), "{kind}");
        assert_eq!(server.files.contents("tmp/f").unwrap(), b"replaced", "the new file is as it was");
    }
}

#[test]
fn an_errand_finds_out_that_others_have_changed_the_file() {
    for appends in [false, true] {
        let mut files = support::Files::default();
        files.put("tmp/f", b"original");
        let status = files.status("tmp/f").unwrap();
        let mut server = Interfered { files, replaces: false, appends };
        let name = Name { path: "tmp/f".into(), original: status.identity };
        let finding = errand::run(&mut server, Errand::Write(name, 0, vec![1; 1000])).unwrap();
        let Finding::Changed { before, count, .. } = finding else { panic!("{finding:?}") };
        assert_eq!((before, count), ((!appends).then_some(status.changes), 1000));
    }
}

#[test]
fn a_call_that_has_waited_for_a_pipe_can_wait_for_errands() {
    let mut play = mounted();
    outside(&mut play).put("tmp/f", &[b'f'; 3000]);
    let [source, sink] = pipe(&mut play);
    let file = opened(&mut play, "/mnt/out", RDWR | CREAT);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    // The child waits until there is something in the pipe.
    let splice = |from: u64, to: u64, length: u64| [from, 0, to, 0, length, 0];
    assert_eq!(play.call(child, Sysno::splice as u64, splice(source, file, 100)), None);
    while play.do_errand() {}
    play.write(1, BUFFER, b"through a pipe");
    assert_eq!(play.call(1, Sysno::write as u64, [sink, BUFFER, 14, 0, 0, 0]), Some(14));
    while play.do_errand() {}
    assert_eq!((play.doing(child), play.thread(child).registers.x[0]), (Some(Doing::Runs), 14));
    assert_eq!(outside(&mut play).contents("tmp/out").unwrap(), b"through a pipe");
    // Now a child waits until there is room.
    let full = call(&mut play, Sysno::fcntl, &[sink, 1031, 4096]);
    assert_eq!(full, 4096);
    assert_eq!(call(&mut play, Sysno::write, &[sink, BUFFER, 4096]), 4096);
    let from = opened(&mut play, "/mnt/f", RDONLY);
    let second = call(&mut play, Sysno::clone, &[17]) as u32;
    assert_eq!(play.call(second, Sysno::splice as u64, splice(from, sink, 3000)), None);
    while play.do_errand() {}
    assert_eq!(call(&mut play, Sysno::read, &[source, BUFFER, ROOM]), 4096);
    while play.do_errand() {}
    assert_eq!((play.doing(second), play.thread(second).registers.x[0]), (Some(Doing::Runs), 3000));
    // The file is gone when the wait is over.
    assert_eq!(call(&mut play, Sysno::read, &[source, BUFFER, ROOM]), 3000);
    assert_eq!(play.call(child, Sysno::splice as u64, splice(source, file, 100)), None);
    while play.do_errand() {}
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/out").unwrap();
    assert_eq!(play.call(1, Sysno::write as u64, [sink, BUFFER, 14, 0, 0, 0]), Some(14));
    while play.do_errand() {}
    assert_eq!(play.thread(child).registers.x[0].cast_signed(), ESTALE);
    play.check();
    play.end();
}

#[test]
fn a_file_that_is_opened_while_it_is_removed_reads_no_zeros() {
    let mut play = mounted();
    let made = opened(&mut play, "/mnt/f", WRONLY | CREAT);
    assert_eq!(call(&mut play, Sysno::close, &[made]), 0);
    outside(&mut play).put("tmp/f", b"contents");
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    play.write(child, PATH, b"/mnt/f\0");
    assert_eq!(play.call(child, Sysno::unlinkat as u64, [HERE, PATH, 0, 0, 0, 0]), None);
    assert!(play.do_errand(), "the call looks, and sends the errand that removes the file");
    let name = path(&mut play, PATH, "/mnt/f");
    assert_eq!(play.call(1, Sysno::openat as u64, [HERE, name, 0, 0, 0, 0]), None);
    outside(&mut play).errands.swap(0, 1);
    while play.do_errand() {}
    assert_eq!(play.thread(child).registers.x[0], 0);
    let file = play.thread(1).registers.x[0];
    assert!(file.cast_signed() > 0);
    assert_eq!(call(&mut play, Sysno::read, &[file, BUFFER, 8]), ESTALE, "the file is gone, and was never read");
    play.end();
}

#[test]
fn a_file_that_is_renamed_during_a_write_is_written() {
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/log", WRONLY | CREAT);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    play.write(child, PATH, b"/mnt/log\0");
    play.write(child, OTHER_PATH, b"/mnt/log.1\0");
    assert_eq!(play.call(child, Sysno::renameat as u64, [HERE, PATH, HERE, OTHER_PATH, 0, 0]), None);
    // Both paths are looked at, and the errand that renames is sent. Before that errand is done, the other process
    // writes.
    assert!(play.do_errand() && play.do_errand());
    play.write(1, BUFFER, b"line");
    assert_eq!(play.call(1, Sysno::write as u64, [file, BUFFER, 4, 0, 0, 0]), None);
    while play.do_errand() {}
    assert_eq!((play.thread(1).registers.x[0], play.thread(child).registers.x[0]), (4, 0));
    assert_eq!(outside(&mut play).contents("tmp/log.1").unwrap(), b"line");
    play.check();
    play.end();
}

#[test]
fn a_touched_file_keeps_what_others_append_meanwhile() {
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/f", RDWR | CREAT);
    assert_eq!(write(&mut play, file, b"own "), 4);
    for number in [Sysno::utimensat, Sysno::fallocate] {
        let name = path(&mut play, PATH, "/mnt/f");
        let arguments = if number == Sysno::utimensat { [HERE, name, 0, 0] } else { [file, 0, 0, 12] };
        let mut all = [0; 6];
        all[..4].copy_from_slice(&arguments);
        assert_eq!(play.call(1, number as u64, all), None);
        while outside(&mut play).errands.iter().all(|(_, errand)| !matches!(errand, Errand::Enlarge(..))) {
            assert!(play.do_errand());
        }
        let mut other = outside(&mut play).open_for(OTHER, "tmp/f", How::Append).unwrap();
        outside(&mut play).write_all(&mut other, 0, b"other ");
        while play.do_errand() {}
        assert_eq!(play.thread(1).registers.x[0], 0);
    }
    assert_eq!(outside(&mut play).contents("tmp/f").unwrap(), b"own other other ");
    assert_eq!(contents_of(&mut play, "/mnt/f"), b"own other other ");
    play.end();
}

#[test]
fn two_processes_that_append_at_once_lose_nothing() {
    let mut play = mounted();
    let made = opened(&mut play, "/mnt/f", WRONLY | CREAT);
    assert_eq!(call(&mut play, Sysno::close, &[made]), 0);
    outside(&mut play).put("tmp/f", &[b'o'; 100]);
    let file = opened(&mut play, "/mnt/f", WRONLY | APPEND);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    play.write(1, BUFFER, b"one ");
    play.write(child, BUFFER, b"two ");
    assert_eq!(play.call(1, Sysno::write as u64, [file, BUFFER, 4, 0, 0, 0]), None);
    assert_eq!(play.call(child, Sysno::write as u64, [file, BUFFER, 4, 0, 0, 0]), None);
    while play.do_errand() {}
    play.check();
    let all = outside(&mut play).contents("tmp/f").unwrap();
    assert_eq!(String::from_utf8_lossy(&all[100..]), "one two ");
    assert_eq!(contents_of(&mut play, "/mnt/f"), all);
    play.end();
}
