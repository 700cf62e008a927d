//! Mounts while memory is short, and while many calls are made at once.

use super::*;

/// Lets another program write a file's contents anew, so that the instance's copy is out of date.
fn forget(play: &mut Play, path: &str) {
    use tench_linux::mounts::errand::FileServer;
    let bytes = outside(play).contents(path).unwrap();
    let mut other = outside(play).open_for(OTHER, path, How::Update).unwrap();
    outside(play).write(&mut other, 0, &bytes).unwrap();
}

/// Lets the file server do its next errand without the limit of memory.
fn do_errand_elsewhere(play: &mut Play) -> bool {
    let left = LEFT.replace(None);
    let done = play.instance.system.memory.hardware.files.do_errand();
    LEFT.set(left);
    let Some((number, finding)) = done else { return false };
    play.instance.take_finding(number, finding);
    true
}

/// Returns the program that makes the file with an index. Each program makes few files, as their number is limited.
fn maker(index: u32) -> tench_files::tree::Requester {
    let client = tench_quota::Client::alone(100 + u64::from(index) / 20);
    tench_files::tree::Requester { client, is_entitled: true }
}

/// Returns a program that sees `count` files at `/mnt`, and has little memory left.
fn short(count: u32) -> Play {
    let mut play = Play::new(4096);
    let mut tree = tench_files::tree::Tree::new(2 * count as usize + 100, 512, 1_000_000_000);
    tree.add_common_directory("tmp").unwrap();
    outside(&mut play).ends = std::rc::Rc::new(std::cell::RefCell::new(tench_files::ends::Ends::new(tree)));
    for index in 0..count {
        let by = maker(index);
        drop(outside(&mut play).open_for(by, &format!("tmp/f{index:05}"), How::Write).unwrap());
    }
    play.mount("tmp", "/mnt", false);
    play.instance.system.memory.hardware.set_can_allocate(can_allocate);
    LEFT.set(Some(2 << 20));
    let mut number = 0u64;
    loop {
        play.write(1, PATH, format!("/bin/{number:07}\0").as_bytes());
        number += 1;
        let made = play.call(1, Sysno::mkdirat as u64, [HERE, PATH, 0o755, 0, 0, 0]);
        if made != Some(0) {
            break;
        }
    }
    play
}

/// Lets several processes use the same files at once. Whenever all errands are done, the processes must see each file
/// as the server has it.
fn race(seed: u64, appends: bool, others: bool) {
    let mut random = tench_random::Random::new(seed);
    let mut play = Play::new(8192);
    play.mount("tmp", "/mnt", false);
    let mut files = Vec::new();
    for name in ["a", "b"] {
        own_file(&mut play, &format!("/mnt/{name}"), &[b'.'; 600]);
        forget(&mut play, &format!("tmp/{name}"));
        let flags = if appends { RDWR | APPEND } else { RDWR };
        files.push(opened(&mut play, &format!("/mnt/{name}"), flags));
    }
    let mut processes = vec![1];
    for _ in 0..3 {
        let child = call(&mut play, Sysno::clone, &[17]) as u32;
        play.write(child, BUFFER, &[b'0' + child as u8; 3000]);
        processes.push(child);
    }
    for step in 0..300 {
        match random.below(10) {
            0..5 => {
                let id = processes[random.below(4) as usize];
                if play.doing(id) != Some(Doing::Runs) {
                    continue;
                }
                let file = files[random.below(2) as usize];
                let (offset, length) = (random.below(900), random.below(500));
                let (number, arguments) = match random.below(if appends { 3 } else { 7 }) {
                    0 => (Sysno::pread64, [file, BUFFER + 0x1000, length, offset, 0, 0]),
                    1 | 2 if appends => (Sysno::write, [file, BUFFER, length, 0, 0, 0]),
                    1 | 2 => (Sysno::pwrite64, [file, BUFFER, length, offset, 0, 0]),
                    3 => (Sysno::ftruncate, [file, offset, 0, 0, 0, 0]),
                    4 => (Sysno::fstat, [file, RECORD, 0, 0, 0, 0]),
                    5 => (Sysno::fallocate, [file, 3, offset, length + 1, 0, 0]),
                    _ => (Sysno::copy_file_range, [files[0], 0, files[1], 0, length, 0]),
                };
                let _ = play.call(id, number as u64, arguments);
            }
            5 if others && random.once_in(3) => {
                let name = ["tmp/a", "tmp/b"][random.below(2) as usize];
                forget(&mut play, name);
            }
            _ => _ = play.do_errand(),
        }
        if step % 40 == 39 {
            while play.do_errand() {}
            for id in &processes {
                let thread = play.thread(*id);
                assert_eq!(thread.doing, Doing::Runs, "process {id} waits forever, seed {seed}");
            }
            play.check();
            assert_eq!(play.instance.system.mounts.inquiries(), 0);
            for (name, file) in ["a", "b"].into_iter().zip(&files) {
                let there = outside(&mut play).contents(&format!("tmp/{name}")).unwrap();
                assert_eq!(
                    status(&mut play, &format!("/mnt/{name}")).unwrap().1,
                    there.len() as u64,
                    "size, seed {seed}"
                );
                let count = call(&mut play, Sysno::pread64, &[*file, BUFFER + 0x800, ROOM - 0x800, 0]);
                let seen = bytes(&mut play, BUFFER + 0x800, count as usize);
                assert!(seen == there[..seen.len()], "contents of {name} in step {step}, seed {seed}");
            }
        }
    }
    play.end();
}

/// Makes a random call about files in a mount, or about paths and descriptors that can lead there.
fn random_call(play: &mut Play, random: &mut tench_random::Random, id: u32) {
    const NAMES: [&str; 14] = [
        "/mnt/a",
        "/mnt/b",
        "/mnt/d",
        "/mnt/d/a",
        "/mnt/d/e",
        "/mnt/d/e/a",
        "/mnt/d/e/../a",
        "a",
        "..",
        "../d/a",
        "/proc/self/fd/4",
        "/proc/self/cwd/a",
        "/mnt/d/../../bin/fifo",
        "/proc/self/exe",
    ];
    let some = |random: &mut tench_random::Random| NAMES[random.below(NAMES.len() as u64) as usize];
    for at in [PATH, OTHER_PATH] {
        play.write(id, at, format!("{}\0", some(random)).as_bytes());
    }
    let (file, other, length) = (3 + random.below(6), 3 + random.below(6), random.below(3000));
    let flags =
        [0, 2, 0o102, 0o302, 0o1002, 0o1102, 0o2001, 0o2102, 0o101, 0o10000000, 0o4002][random.below(11) as usize];
    const ARENA: u64 = 0x10_0000_0000;
    let (call, arguments) = match random.below(36) {
        0..5 => (Sysno::openat, [HERE, PATH, flags, 0o644, 0, 0]),
        5 => (Sysno::mkdirat, [HERE, PATH, 0o755, 0, 0, 0]),
        6 => (Sysno::unlinkat, [HERE, PATH, random.below(2) * 0x200, 0, 0, 0]),
        7 | 8 => (Sysno::renameat2, [HERE, PATH, HERE, OTHER_PATH, 0, 0]),
        9 => (Sysno::fstatat, [HERE, PATH, RECORD, 0, 0, 0]),
        10 => (Sysno::read, [file, BUFFER, length, 0, 0, 0]),
        11..14 => (Sysno::write, [file, BUFFER, length, 0, 0, 0]),
        14 => (Sysno::ftruncate, [file, length, 0, 0, 0, 0]),
        15 => (Sysno::getdents64, [file, BUFFER, ROOM, 0, 0, 0]),
        16 => (Sysno::chdir, [PATH, 0, 0, 0, 0, 0]),
        17 => (Sysno::execve, [PATH, 0, 0, 0, 0, 0]),
        18 => (Sysno::close, [file, 0, 0, 0, 0, 0]),
        19 => (Sysno::sendfile, [other, file, 0, length, 0, 0]),
        20 => (Sysno::splice, [file, 0, other, 0, length, 0]),
        21 => (Sysno::fstat, [file, RECORD, 0, 0, 0, 0]),
        22 => (Sysno::truncate, [PATH, length, 0, 0, 0, 0]),
        23 => (Sysno::utimensat, [HERE, PATH, 0, 0, 0, 0]),
        24 => (Sysno::utimensat, [file, 0, 0, 0, 0, 0]),
        25 => (Sysno::faccessat, [HERE, PATH, 7, 0, 0, 0]),
        26 => (
            Sysno::mmap,
            [ARENA + 0x4000 * random.below(3), 0x3000, 1 + random.below(3), 0x11 + random.below(2), file, 0],
        ),
        27 => (Sysno::munmap, [ARENA, 0xc000, 0, 0, 0, 0]),
        28 => (Sysno::pipe2, [RECORD, 0, 0, 0, 0, 0]),
        29 => (Sysno::dup3, [file, other, 0, 0, 0, 0]),
        30 => (Sysno::getcwd, [BUFFER, 100, 0, 0, 0, 0]),
        31 => (Sysno::readlinkat, [HERE, PATH, BUFFER, 100, 0, 0]),
        32 => (Sysno::copy_file_range, [file, 0, other, 0, length, 0]),
        33 => (Sysno::statfs, [PATH, BUFFER, 0, 0, 0, 0]),
        34 => (Sysno::inotify_init1, [0, 0, 0, 0, 0, 0]),
        _ => (Sysno::inotify_add_watch, [file, PATH, 0xfff, 0, 0, 0]),
    };
    let _ = play.call(id, call as u64, arguments);
}

#[test]
fn files_are_looked_at_while_memory_is_short() {
    let mut play = short(1900);
    for index in 0..1900 {
        if play.instance.status().is_some() {
            break;
        }
        let name = format!("/mnt/f{index:05}\0");
        play.write(1, PATH, name.as_bytes());
        let _ = play.call(1, Sysno::fstatat as u64, [HERE, PATH, RECORD, 0, 0, 0]);
        while do_errand_elsewhere(&mut play) {}
    }
    LEFT.set(None);
    assert!(play.instance.status().is_none(), "nobody was killed for a look");
}

#[test]
fn a_directory_is_listed_while_memory_is_short() {
    let mut play = short(3000);
    play.write(1, PATH, b"/mnt\0");
    LEFT.set(LEFT.get().map(|left| left + (1 << 19)));
    let file = play.call(1, Sysno::openat as u64, [HERE, PATH, 0, 0, 0, 0]);
    println!("{file:?} {:?}", LEFT.get());
    LEFT.set(LEFT.get().map(|left| left - (1 << 19)));
    if let Some(file @ 0..1000) = file {
        let _ = play.call(1, Sysno::getdents64 as u64, [file, BUFFER, ROOM, 0, 0, 0]);
        while do_errand_elsewhere(&mut play) {}
        println!("{:?}", play.thread(1).registers.x[0].cast_signed());
    }
    LEFT.set(None);
}

#[test]
fn a_long_path_is_walked_while_memory_is_short() {
    let mut play = short(500);
    for index in 0..110 {
        let path = format!("tmp/{}", ["d"; 110][..=index].join("/"));
        LEFT.set(LEFT.get().map(|left| left + (1 << 19)));
        outside(&mut play).ends.borrow_mut().tree.make_directory(maker(index as u32), &path).unwrap();
        LEFT.set(LEFT.get().map(|left| left - (1 << 19)));
    }
    let name = format!("/mnt/{}\0", ["d"; 110].join("/"));
    play.write(1, PATH, name.as_bytes());
    let _ = play.call(1, Sysno::fstatat as u64, [HERE, PATH, RECORD, 0, 0, 0]);
    while do_errand_elsewhere(&mut play) {}
    LEFT.set(None);
    play.check();
}

#[test]
fn large_parts_are_written_while_memory_is_short() {
    let mut play = Play::new(4096);
    play.mount("tmp", "/mnt", false);
    let file = opened(&mut play, "/mnt/f", RDWR | CREAT);
    const LENGTH: usize = 0x8_0000;
    let memory = call(&mut play, Sysno::mmap, &[0, LENGTH as u64, 3, 0x22, u64::MAX, 0]).cast_unsigned();
    play.write(1, memory, &[3; LENGTH]);
    play.instance.system.memory.hardware.set_can_allocate(can_allocate);
    for left in [400_000usize, 600_000, 800_000, 1_000_000, 1_500_000] {
        LEFT.set(Some(left));
        let _ = play.call(1, Sysno::pwrite64 as u64, [file, memory, LENGTH as u64, 0, 0, 0]);
        while do_errand_elsewhere(&mut play) {}
        LEFT.set(None);
        println!("{left}: {}", play.thread(1).registers.x[0].cast_signed());
        play.check();
    }
    play.end();
}

#[test]
fn a_removed_working_directory_in_memory_has_no_path() {
    let mut play = Play::new(4096);
    for name in ["/a", "/a/b"] {
        assert_eq!(with_path(&mut play, Sysno::mkdirat, name, &[0o777]), 0);
    }
    let name = path(&mut play, PATH, "/a/b");
    assert_eq!(call(&mut play, Sysno::chdir, &[name]), 0);
    for name in ["/a/b", "/a"] {
        assert_eq!(with_path(&mut play, Sysno::unlinkat, name, &[0x200]), 0);
    }
    assert_eq!(call(&mut play, Sysno::getcwd, &[BUFFER, 100]), ENOENT);
    play.end();
}

#[test]
fn a_refused_truncation_changes_no_mapping() {
    let mut play = mounted();
    outside(&mut play).put("tmp/others", &[7; 5000]);
    let file = opened(&mut play, "/mnt/others", RDONLY);
    let place = call(&mut play, Sysno::mmap, &[0, 8192, 1, 2, file, 0]).cast_unsigned();
    assert_eq!(bytes(&mut play, place, 5000), [7; 5000]);
    let name = path(&mut play, PATH, "/mnt/others");
    assert_eq!(call(&mut play, Sysno::truncate, &[name, 0]), EACCES);
    assert!(play.touch(1, place, Access::Read), "the mapping is there");
    assert_eq!(bytes(&mut play, place, 5000), [7; 5000]);
    play.end();
}

#[test]
fn a_program_whose_interpreter_is_in_a_mount_is_run() {
    let mut play = mounted();
    let mut program = support::program();
    program[56] = 3;
    let put = |file: &mut Vec<u8>, at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let header: Vec<u8> = [3u64 | 4 << 32, 0x300, 0, 0, 8, 8, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
    put(&mut program, 64 + 112, &header);
    put(&mut program, 0x300, b"/mnt/ld\0");
    let mut loader = support::program();
    loader[16] = 3;
    outside(&mut play).put("tmp/program", &program);
    outside(&mut play).put("tmp/ld", &loader);
    for errands in 0..20 {
        let child = call(&mut play, Sysno::clone, &[17]) as u32;
        play.write(child, PATH, b"/mnt/program\0");
        let _ = play.call(child, Sysno::execve as u64, [PATH, 0, 0, 0, 0, 0]);
        for _ in 0..errands {
            play.do_errand();
            play.check();
        }
        if errands > 15 {
            assert_eq!(play.process_of(child).unwrap().program, b"/mnt/program");
        }
        let _ = play.call(1, Sysno::kill as u64, [child.into(), 9, 0, 0, 0, 0]);
        while play.do_errand() {}
        let _ = call(&mut play, Sysno::wait4, &[u64::MAX, 0, 1, 0]);
    }
    play.end();
}

#[test]
fn a_removed_working_directory_in_a_mount_has_no_path() {
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
    assert_eq!(call(&mut play, Sysno::getcwd, &[BUFFER, 100]), ENOENT);
    play.end();
}

#[test]
fn a_new_node_is_not_taken_for_a_lost_directory() {
    // A new pipe gets the number of a directory that is gone.
    let mut play = mounted();
    outside(&mut play).ends.borrow_mut().tree.make_directory(OTHER, "tmp/d").unwrap();
    outside(&mut play).put("tmp/d/f", b"x");
    let file = opened(&mut play, "/mnt/d/f", RDONLY);
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/d/f").unwrap();
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/d").unwrap();
    assert_eq!(status(&mut play, "/mnt/d"), Err(ENOENT));
    for index in 0..4 {
        let file = call(&mut play, Sysno::pipe2, &[RECORD, 0]);
        assert_eq!(file, 0, "{index}");
    }
    assert_eq!(call(&mut play, Sysno::fstat, &[file, RECORD]), 0);
    play.end();
}

#[test]
fn a_write_to_a_full_server_returns_the_bytes_written() {
    // The server has no room for all bytes. As on Linux, the result is the number of those that were written.
    let mut play = mounted();
    let file = opened(&mut play, "/mnt/f", RDWR | CREAT);
    const LENGTH: usize = 3 << 20;
    let memory = call(&mut play, Sysno::mmap, &[0, LENGTH as u64, 3, 0x22, u64::MAX, 0]).cast_unsigned();
    play.write(1, memory, &[3; LENGTH]);
    let result = call(&mut play, Sysno::write, &[file, memory, LENGTH as u64]);
    let there = status(&mut play, "/mnt/f").unwrap().1 as i64;
    assert!(there > 0);
    assert_eq!(result, there, "the result is the number of bytes that were written");
    play.end();
}

#[test]
fn files_are_read_written_and_truncated_at_once() {
    for seed in 1..=200 {
        race(seed, false, false);
    }
}

#[test]
fn files_are_read_written_and_truncated_at_once_with_others() {
    for seed in 1..=200 {
        race(seed, false, true);
    }
}

#[test]
fn appends_of_several_processes_are_all_kept() {
    for seed in 1..=300 {
        let mut random = tench_random::Random::new(seed);
        let mut play = Play::new(8192);
        play.mount("tmp", "/mnt", false);
        own_file(&mut play, "/mnt/a", &[b'.'; 100]);
        forget(&mut play, "tmp/a");
        let file = opened(&mut play, "/mnt/a", RDWR | APPEND);
        let mut processes = vec![1];
        for _ in 0..3 {
            let child = call(&mut play, Sysno::clone, &[17]) as u32;
            play.write(child, BUFFER, &[b'0' + child as u8; 3000]);
            processes.push(child);
        }
        let mut total = 100;
        for step in 0..100 {
            match random.below(6) {
                0..3 => {
                    let id = processes[random.below(4) as usize];
                    if play.doing(id) == Some(Doing::Runs) {
                        let length = 1 + random.below(50);
                        if random.once_in(6) {
                            let _ = begin(&mut play, id, Sysno::pread64, &[file, BUFFER + 0x1000, length, 0]);
                        } else {
                            total += length;
                            let _ = begin(&mut play, id, Sysno::write, &[file, BUFFER, length]);
                        }
                    }
                }
                3 if random.once_in(6) => {
                    // Another program changes a byte of the file, but not its length.
                    forget_and_own(&mut play, "tmp/a", b"x");
                }
                _ => _ = play.do_errand(),
            }
            if step % 50 == 49 {
                while play.do_errand() {}
                let there = outside(&mut play).contents("tmp/a").unwrap().len() as u64;
                assert_eq!(there, total, "step {step}, seed {seed}");
            }
        }
        play.end();
    }
}

#[test]
fn a_file_is_written_while_another_writer_is_stopped() {
    let mut play = Play::new(4096);
    play.mount("tmp", "/mnt", false);
    own_file(&mut play, "/mnt/f", b"contents");
    forget(&mut play, "tmp/f");
    let file = opened(&mut play, "/mnt/f", RDWR | APPEND);
    const LENGTH: usize = 0x6_0000;
    let memory = call(&mut play, Sysno::mmap, &[0, LENGTH as u64, 3, 0x22, u64::MAX, 0]).cast_unsigned();
    play.write(1, memory, &[3; LENGTH]);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    let second = begin(&mut play, child, Sysno::clone, &[THREAD, 0x20_5000]).unwrap() as u32;
    assert_eq!(begin(&mut play, child, Sysno::write, &[file, memory, LENGTH as u64]), None);
    // The call compares the file before the child stops; the first part is written after that.
    play.do_errand();
    assert_eq!(play.call(1, Sysno::kill as u64, [child.into(), 19, 0, 0, 0, 0]), Some(0));
    assert_eq!(play.thread(second).doing, Doing::Stopped);
    play.do_errand();
    play.write(1, BUFFER, b"end");
    assert_eq!(begin(&mut play, 1, Sysno::write, &[file, BUFFER, 3]), None);
    let errands = (0..50).take_while(|_| play.do_errand()).count();
    assert!(errands < 50, "the call does not send errands forever");
    assert_eq!(result(&mut play, 1), 3);
    assert_eq!(play.call(1, Sysno::kill as u64, [child.into(), 18, 0, 0, 0, 0]), Some(0));
    while play.do_errand() {}
    assert_eq!(result(&mut play, child), LENGTH as i64);
    let there = outside(&mut play).contents("tmp/f").unwrap();
    assert!(there == [&b"contents"[..], &[3; LENGTH], b"end"].concat());
    play.end();
}

#[test]
fn random_calls_of_several_processes_end() {
    for seed in 1..=400 {
        let mut random = tench_random::Random::new(seed);
        let mut play = Play::new(8192);
        play.mount("tmp", "/mnt", false);
        let program = support::program();
        outside(&mut play).put("tmp/a", &program[..0x1900]);
        assert_eq!(with_path(&mut play, Sysno::mknodat, "/bin/fifo", &[0o010_644, 0]), 0);
        for step in 0..400 {
            let running = play.running();
            match random.below(12) {
                0..6 if !running.is_empty() => {
                    let id = running[random.below(running.len() as u64) as usize];
                    random_call(&mut play, &mut random, id);
                }
                6 if running.contains(&1) && play.instance.processes.count() < 6 => {
                    let flags = [17, THREAD][random.below(2) as usize];
                    let by = running[random.below(running.len() as u64) as usize];
                    let _ = play.call(by, Sysno::clone as u64, [flags, 0x20_5000, 0, 0, 0, 0]);
                }
                7 if running.contains(&1) => {
                    let signal = [9, 19, 18, 18][random.below(4) as usize];
                    let _ = play.call(1, Sysno::kill as u64, [2 + random.below(8), signal, 0, 0, 0, 0]);
                }
                8 => {
                    let name = ["tmp/a", "tmp/b", "tmp/d", "tmp/d/a", "tmp/d/e", "tmp/d/e/a"][random.below(6) as usize];
                    let ends = std::rc::Rc::clone(&outside(&mut play).ends);
                    let tree = &mut ends.borrow_mut().tree;
                    let _ = match random.below(3) {
                        0 => tree.remove(OTHER, name),
                        1 => tree.make_directory(OTHER, name),
                        _ => tree.rename(OTHER, name, "tmp/x").and_then(|()| tree.remove(OTHER, "tmp/x")),
                    };
                }
                9 => {
                    let name = ["tmp/a", "tmp/b", "tmp/d/a"][random.below(3) as usize];
                    if let Ok(mut file) = outside(&mut play).open_for(OTHER, name, How::Append) {
                        use tench_linux::mounts::errand::FileServer;
                        outside(&mut play).write(&mut file, 100, b"others").unwrap();
                    }
                }
                _ => _ = play.do_errand(),
            }
            if step % 16 == 0 {
                play.check();
            }
            if step % 100 == 99 {
                let errands = (0..5000).take_while(|_| play.do_errand()).count();
                assert!(errands < 5000, "errands go on forever, seed {seed}");
                let threads = play.instance.processes.iter().flat_map(|process| &process.threads);
                for thread in threads {
                    let asks = thread.waiting.as_ref().is_some_and(tench_linux::waiting::Waiting::is_for_errand);
                    assert!(!asks || thread.machine.doing != Doing::Runs, "seed {seed}");
                }
            }
        }
        if play.instance.status().is_none() {
            play.end();
        }
    }
}

#[test]
fn a_file_that_another_program_makes_first_is_opened() {
    let mut play = mounted();
    let name = path(&mut play, PATH, "/mnt/f");
    assert_eq!(begin(&mut play, 1, Sysno::openat, &[HERE, name, RDONLY | CREAT, 0o644]), None);
    // The call has found no file.
    play.do_errand();
    outside(&mut play).put("tmp/f", b"contents");
    while play.do_errand() {}
    assert_eq!(result(&mut play, 1), 3, "without EXCL, the call opens the other program's file");
    assert_eq!(read(&mut play, 3), b"contents");
    play.end();
}

#[test]
fn a_splice_to_a_file_waits_for_the_pipe() {
    let mut play = Play::new(4096);
    play.mount("tmp", "/mnt", false);
    let (from, to) = pipe(&mut play);
    let file = opened(&mut play, "/mnt/f", RDWR | CREAT);
    let child = call(&mut play, Sysno::clone, &[17]) as u32;
    assert_eq!(begin(&mut play, 1, Sysno::splice, &[from, 0, file, 0, 100, 0]), None);
    while play.do_errand() {}
    play.write(child, BUFFER, b"text");
    assert_eq!(begin(&mut play, child, Sysno::write, &[to, BUFFER, 4]), Some(4));
    while play.do_errand() {}
    assert_eq!(result(&mut play, 1), 4);
    assert_eq!(outside(&mut play).contents("tmp/f").unwrap(), b"text");
    play.end();
}

#[test]
fn unlink_does_not_remove_a_directory_that_replaces_the_file() {
    // Another program makes a directory at the path of the file that is being removed.
    let mut play = mounted();
    own_file(&mut play, "/mnt/f", b"contents");
    let name = path(&mut play, PATH, "/mnt/f");
    assert_eq!(begin(&mut play, 1, Sysno::unlinkat, &[HERE, name, 0]), None);
    play.do_errand();
    outside(&mut play).ends.borrow_mut().tree.remove(OTHER, "tmp/f").unwrap();
    let own = tench_files::tree::Requester { client: tench_quota::Client::alone(5), is_entitled: false };
    outside(&mut play).ends.borrow_mut().tree.make_directory(own, "tmp/f").unwrap();
    while play.do_errand() {}
    assert!(result(&mut play, 1) < 0, "unlink removes no directory");
    assert!(outside(&mut play).ends.borrow().tree.status("tmp/f").is_ok());
    play.end();
}
