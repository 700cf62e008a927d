//! Programs that take whatever there is. Their calls fail with errors, and when nothing else helps, one of them ends:
//! the personality's own memory is enough for all that it does, however little there is.
//!
//! The heap of these tests has a limit. An allocation beyond it that the personality has not asked for ends the test.

mod support;

use support::limited::{LEFT, Limited, can_allocate};
use support::{Doing, Play};
use tench_linux_calls::{Errno, Sysno};
use tench_linux_memory::Access;
use tench_random::Random;

#[global_allocator]
static HEAP: Limited = Limited;

/// Bytes that the personality may take in a game.
const MEMORY: usize = 2 << 20;
/// Other sizes, so that tables grow when more or less is left.
const SIZES: [usize; 8] = [1_400_000, 2_000_000, 2_600_000, 3_200_000, 3_800_000, 4_400_000, 5_000_000, 5_600_000];
/// Where the game's program keeps paths, records and bytes.
const PATH: u64 = 0x20_1100;
const RECORD: u64 = 0x20_1200;
const BYTES: u64 = 0x20_2000;
/// Where memory is mapped.
const ARENA: u64 = 0x10_0000_0000;

/// A game: a program that has little memory.
struct Game {
    play: Play,
    /// The process whose turn it is.
    id: u32,
    /// Number of bytes that the personality may take.
    memory: usize,
    /// Number of files that were made.
    files: u64,
}

impl Game {
    fn new(pages: usize) -> Game {
        let mut play = Play::new(pages);
        play.instance.system.memory.hardware.set_can_allocate(can_allocate);
        play.write(1, PATH, b"/tmp/0000000\0");
        Game { play, id: 1, memory: MEMORY, files: 0 }
    }

    /// Makes a call with little memory. Returns its result, if it has one.
    fn call(&mut self, call: Sysno, arguments: &[u64]) -> Option<Result<u64, Errno>> {
        let mut six = [0; 6];
        six[..arguments.len()].copy_from_slice(arguments);
        let result = self.play.call(self.id, call.id() as u64, six)?;
        Some(match i32::try_from(result.cast_signed()) {
            Ok(error @ -4095..0) => Err(Errno::new(-error)),
            _ => Ok(result),
        })
    }

    /// Names a file by its number.
    fn name(&mut self, number: u64) {
        self.play.write(self.id, PATH + 5, format!("{number:07}").as_bytes());
    }

    /// Maps memory at a place.
    fn map(&mut self, address: u64, length: u64) {
        let mapped = self.call(Sysno::mmap, &[address, length, 3, 0x32, u64::MAX, 0]);
        assert_eq!(mapped, Some(Ok(address)));
    }

    /// Makes files until memory is short. The next calls have what is left.
    fn fill(&mut self) {
        LEFT.set(Some(self.memory));
        while let Some(Ok(_)) = self.call(Sysno::mkdirat, &[0, PATH, 0o755]) {
            self.files += 1;
            self.name(self.files);
        }
    }

    /// Ends what is left of the game.
    fn end(mut self) {
        LEFT.set(None);
        self.play.check();
        if self.play.instance.status().is_none() {
            self.play.end();
        }
    }

    /// Repeats something with little memory until it fails. Returns how often it succeeded, and the error.
    fn exhaust(&mut self, mut make: impl FnMut(&mut Game, u64) -> Option<Result<u64, Errno>>) -> (u64, Errno) {
        LEFT.set(Some(self.memory));
        let end = (0..1_000_000).find_map(|count| match make(self, count) {
            Some(Ok(_)) => None,
            Some(Err(error)) => Some((count, error)),
            None => panic!("the process ended or waits after {count}"),
        });
        LEFT.set(None);
        let end = end.expect("there is an end to memory");
        self.play.check();
        end
    }
}

/// Checks that something fails with an error when there is no memory left, and that the processes can end then.
fn fails(error: Errno, least: u64, make: impl FnMut(&mut Game, u64) -> Option<Result<u64, Errno>>) {
    fails_after(|_| {}, error, least, make);
}

fn fails_after(
    prepare: impl FnOnce(&mut Game),
    error: Errno,
    least: u64,
    make: impl FnMut(&mut Game, u64) -> Option<Result<u64, Errno>>,
) {
    let mut game = Game::new(4096);
    prepare(&mut game);
    let (count, found) = game.exhaust(make);
    assert_eq!(found, error, "after {count}");
    assert!(count >= least, "only {count} were made");
    LEFT.set(Some(MEMORY / 8));
    game.play.call(1, Sysno::exit_group.id() as u64, [0; 6]);
    LEFT.set(None);
    game.play.end();
}

/// Lets the first process have as many descriptors as it wants.
fn raise_limit(game: &mut Game) {
    game.play.put(1, RECORD, &[1 << 20; 2]);
    assert_eq!(game.call(Sysno::setrlimit, &[7, RECORD]), Some(Ok(0)));
}

#[test]
fn files_are_made_until_memory_is_short() {
    fails(Errno::ENOMEM, 1000, |game, number| {
        game.name(number);
        game.call(Sysno::mknodat, &[0, PATH, 0o10_0644, 0])
    });
}

#[test]
fn directories_are_made_until_memory_is_short() {
    fails(Errno::ENOMEM, 500, |game, number| {
        game.name(number);
        game.call(Sysno::mkdirat, &[0, PATH, 0o755])
    });
}

#[test]
fn descriptors_are_made_until_memory_is_short() {
    fails_after(raise_limit, Errno::ENOMEM, 10_000, |game, _| game.call(Sysno::dup, &[1]));
    // The highest number.
    fails_after(raise_limit, Errno::ENOMEM, 0, |game, _| game.call(Sysno::dup3, &[1, (1 << 20) - 1, 0]));
}

#[test]
fn pipes_are_made_and_filled_until_memory_is_short() {
    let prepare = |game: &mut Game| raise_limit(game);
    fails_after(prepare, Errno::ENOMEM, 500, |game, _| game.call(Sysno::pipe2, &[RECORD, 0]));
    fails_after(prepare, Errno::ENOMEM, 4, |game, _| {
        game.call(Sysno::pipe2, &[RECORD, 0])?.ok()?;
        let mut ends = [0; 8];
        game.play.read(1, RECORD, &mut ends);
        let writer = u32::from_le_bytes(ends[4..].try_into().unwrap());
        // All but the last byte, which would not wait either.
        (0..15).try_fold(Ok(0), |result, _| match result {
            Ok(_) => game.call(Sysno::write, &[writer.into(), 0x20_1000, 4096]),
            error => Some(error),
        })
    });
}

#[test]
fn sockets_are_made_and_filled_until_memory_is_short() {
    fails_after(raise_limit, Errno::ENOMEM, 200, |game, _| game.call(Sysno::socketpair, &[1, 1, 0, RECORD]));
    let mut made = 0;
    let mut errors = Vec::new();
    let mut game = Game::new(4096);
    raise_limit(&mut game);
    game.exhaust(|game, _| {
        match game.call(Sysno::socketpair, &[1, 1 | 0o4000, 0, RECORD])? {
            Ok(_) => made += 1,
            error => return Some(error),
        }
        let mut ends = [0; 8];
        game.play.read(1, RECORD, &mut ends);
        let end = u32::from_le_bytes(ends[4..].try_into().unwrap());
        while game.call(Sysno::write, &[end.into(), 0x20_1000, 4096])?.is_ok() {}
        errors.push(game.call(Sysno::write, &[end.into(), 0x20_1000, 4096])?);
        Some(Ok(0))
    });
    assert!(made > 2, "{made}");
    assert!(errors.iter().all(|error| matches!(error, Err(Errno::EAGAIN | Errno::ENOBUFS))), "{errors:?}");
    game.play.end();
}

#[test]
fn files_are_watched_until_memory_is_short_and_then_events_are_lost() {
    let mut game = Game::new(4096);
    let instance = game.call(Sysno::inotify_init1, &[0o4000]).unwrap().unwrap();
    game.play.write(1, 0x20_1000, b"/tmp\0");
    game.call(Sysno::inotify_add_watch, &[instance, 0x20_1000, 0xfff]).unwrap().unwrap();
    let (count, error) = game.exhaust(|game, number| {
        game.name(number);
        game.call(Sysno::mknodat, &[0, PATH, 0o10_0644, 0])?.ok();
        game.call(Sysno::inotify_add_watch, &[instance, PATH, 0xfff])
    });
    // There is no file any more, or none more can be watched.
    assert!(matches!(error, Errno::ENOMEM | Errno::ENOENT) && count > 100, "{error} after {count}");
    LEFT.set(Some(200_000));
    let mut found = false;
    for _ in 0..MEMORY / 64 {
        game.call(Sysno::fstatat, &[0, 0x20_1000, BYTES, 0]).unwrap().unwrap();
        game.call(Sysno::fchmodat, &[0, 0x20_1000, 0o777]).unwrap().unwrap();
        game.call(Sysno::utimensat, &[0, 0x20_1000, 0, 0]).unwrap().unwrap();
        game.call(Sysno::truncate, &[0x20_1000, 0]).unwrap().unwrap_err();
        found |= game.play.instance.system.watches.bytes() > 0;
    }
    LEFT.set(None);
    assert!(found);
    game.play.check();
    game.play.end();
}

#[test]
fn memory_is_mapped_until_memory_is_short() {
    // Areas that differ, so that none is joined with its neighbour.
    fails(Errno::ENOMEM, 5000, |game, number| {
        game.call(Sysno::mmap, &[ARENA + number * 8192, 4096, 1, 0x32, u64::MAX, 0])
    });
}

#[test]
fn shared_memory_is_mapped_until_memory_is_short() {
    for memory in SIZES {
        fails_after(
            |game| game.memory = memory,
            Errno::ENOMEM,
            1000,
            |game, number| game.call(Sysno::mmap, &[ARENA + number * 8192, 4096, 1, 0x31, u64::MAX, 0]),
        );
    }
}

#[test]
fn sockets_and_counters_are_made_until_memory_is_short() {
    for memory in SIZES {
        let prepare = |game: &mut Game| {
            raise_limit(game);
            game.memory = memory;
        };
        fails_after(prepare, Errno::ENOMEM, 100, |game, _| game.call(Sysno::socketpair, &[1, 1, 0, RECORD]));
        fails_after(prepare, Errno::ENOMEM, 100, |game, _| game.call(Sysno::socket, &[2, 2, 0]));
        fails_after(prepare, Errno::ENOMEM, 1000, |game, _| game.call(Sysno::eventfd2, &[0, 0]));
        fails_after(prepare, Errno::ENOMEM, 1000, |game, _| game.call(Sysno::memfd_create, &[PATH, 0]));
    }
}

#[test]
fn processes_are_made_until_memory_is_short() {
    let prepare = |game: &mut Game| {
        game.map(ARENA, 256 << 20);
        (0..128).for_each(|table| assert!(game.play.touch(1, ARENA + (table << 21), Access::Write)));
        game.memory = 4 << 20;
    };
    fails_after(prepare, Errno::ENOMEM, 1, |game, _| game.call(Sysno::clone, &[17]));
    // Those of a process with many areas.
    for memory in SIZES {
        fails_after(
            |game| game.memory = memory,
            Errno::ENOMEM,
            1000,
            |game, number| match number % 500 {
                499 if number > 7000 => game.call(Sysno::clone, &[17]),
                _ => game.call(Sysno::mmap, &[ARENA + number * 8192, 4096, 1, 0x32, u64::MAX, 0]),
            },
        );
    }
    // And with many descriptors.
    for memory in SIZES {
        let prepare = |game: &mut Game| {
            raise_limit(game);
            game.call(Sysno::dup3, &[1, 80_000, 0]).unwrap().unwrap();
            game.memory = memory;
        };
        fails_after(prepare, Errno::ENOMEM, 1, |game, _| game.call(Sysno::clone, &[17]));
    }
}

#[test]
fn a_file_with_holes_grows_until_memory_is_short() {
    let prepare = |game: &mut Game| {
        assert_eq!(game.call(Sysno::openat, &[0, PATH, 0o102, 0o644]), Some(Ok(3)));
    };
    fails_after(prepare, Errno::ENOSPC, 200, |game, number| {
        game.call(Sysno::pwrite64, &[3, 0x20_1000, 1, number << 21])
    });
}

#[test]
fn who_touches_memory_everywhere_ends_if_there_is_none_for_tables() {
    let mut game = Game::new(4096);
    game.map(ARENA, 16 << 30);
    LEFT.set(Some(MEMORY));
    let touched = (0..8192).find(|table| {
        game.play.fault(1, ARENA + (table << 21), Access::Write);
        game.play.instance.status().is_some()
    });
    assert!(touched.is_some_and(|touched| touched > 50), "{touched:?}");
    game.end();
}

#[test]
fn queues_do_not_grow_when_memory_is_short() {
    let mut game = Game::new(4096);
    let sockets = (0..100).map(|_| {
        game.call(Sysno::socketpair, &[1, 1 | 0o4000, 0, RECORD]).unwrap().unwrap();
        let mut ends = [0; 8];
        game.play.read(1, RECORD, &mut ends);
        u32::from_le_bytes(ends[4..].try_into().unwrap())
    });
    let sockets: Vec<u32> = sockets.collect();
    game.fill();
    for length in [100, 4096, 4096, 4096, 4096, 4096] {
        for socket in &sockets {
            let result = game.call(Sysno::write, &[(*socket).into(), 0x20_1000, length]).unwrap();
            assert!(matches!(result, Ok(_) | Err(Errno::ENOBUFS)), "{result:?}");
        }
    }
    game.end();
}

#[test]
fn a_call_that_waits_is_not_refused_when_it_goes_on() {
    const SET_LOCK: u64 = 6;
    const SET_LOCK_AND_WAIT: u64 = 7;
    let mut game = Game::new(4096);
    assert_eq!(game.call(Sysno::openat, &[0, PATH, 0o102, 0o644]), Some(Ok(3)));
    // A lock for writing, of the whole file.
    game.play.put(1, RECORD, &[1, 0, 0, 0]);
    assert_eq!(game.call(Sysno::fcntl, &[3, SET_LOCK, RECORD]), Some(Ok(0)));
    let child = game.call(Sysno::clone, &[17]).unwrap().unwrap() as u32;
    game.id = child;
    assert_eq!(game.call(Sysno::fcntl, &[3, SET_LOCK_AND_WAIT, RECORD]), None);
    game.id = 1;
    game.files = 1;
    game.name(1);
    game.fill();
    assert_eq!(game.call(Sysno::dup, &[1]), Some(Err(Errno::ENOMEM)));
    assert_eq!(game.call(Sysno::close, &[3]), Some(Ok(0)));
    assert_eq!(game.play.doing(child), Some(Doing::Runs));
    assert_eq!(game.play.thread(child).registers.x[0], 0);
    game.end();
}

#[test]
fn generated_files_and_long_lists_need_room() {
    let mut game = Game::new(4096);
    raise_limit(&mut game);
    game.memory = 8 << 20;
    game.map(ARENA, 1 << 20);
    game.play.write(1, ARENA, b"/proc/self/smaps_rollup\0");
    assert_eq!(game.call(Sysno::openat, &[0, ARENA, 0, 0]), Some(Ok(3)));
    for area in 0..6000 {
        let address = 2 * ARENA + area * 8192;
        assert_eq!(game.call(Sysno::mmap, &[address, 4096, 1, 0x32, u64::MAX, 0]), Some(Ok(address)));
    }
    game.fill();
    assert_eq!(game.call(Sysno::read, &[3, ARENA, 100]), Some(Err(Errno::ENOMEM)));
    assert!(game.call(Sysno::openat, &[0, ARENA, 0, 0]) == Some(Err(Errno::ENOMEM)));
    assert_eq!(game.call(Sysno::pselect6, &[1 << 20, ARENA, 0, 0, 0, 0]), Some(Err(Errno::ENOMEM)));
    // There may be room for it.
    let groups = game.call(Sysno::setgroups, &[65_536, ARENA]);
    assert!(matches!(groups, Some(Ok(0) | Err(Errno::ENOMEM))), "{groups:?}");
    game.end();
}

#[test]
fn a_process_ends_if_even_what_is_small_is_too_much() {
    let mut game = Game::new(4096);
    game.play.put(1, RECORD, &[u64::MAX]);
    game.call(Sysno::rt_sigprocmask, &[0, RECORD, 0, 8]);
    let children: Vec<u64> = (0..64).map(|_| game.call(Sysno::clone, &[17]).unwrap().unwrap()).collect();
    game.fill();
    for child in (0..1000).flat_map(|_| &children) {
        if game.play.instance.status().is_some() {
            break;
        }
        let result = game.call(Sysno::kill, &[*child, 40]);
        assert!(matches!(result, None | Some(Ok(_) | Err(Errno::ESRCH))), "{result:?}");
    }
    LEFT.set(None);
    assert!(game.play.instance.system.memory.hardware.reports.iter().any(|report| report.contains("is killed")));
    game.end();
}

#[test]
fn long_arguments_do_not_exhaust_memory() {
    let mut game = Game::new(4096);
    game.map(ARENA, 1 << 20);
    game.play.write(1, ARENA, &vec![b'a'; 120 * 1024]);
    game.play.put(1, RECORD, &[ARENA; 13]);
    game.play.put(1, RECORD + 13 * 8, &[0]);
    game.play.write(1, PATH, b"/bin/program\0");
    LEFT.set(Some(MEMORY));
    let result = game.call(Sysno::execve, &[PATH, RECORD, 0]);
    LEFT.set(None);
    assert_eq!(result, Some(Err(Errno::ENOMEM)));
    game.play.end();
}

#[test]
fn who_has_the_most_pages_ends_if_none_is_left() {
    let mut game = Game::new(2048);
    game.map(ARENA, 64 << 20);
    let children: Vec<u32> = (0..2).map(|_| game.call(Sysno::clone, &[17]).unwrap().unwrap() as u32).collect();
    for page in 0..1200 {
        game.play.fault(children[0], ARENA + (page << 12), Access::Write);
    }
    // The first process wants what is left, and more.
    let mut touched = 0;
    while game.play.doing(children[0]).is_some() {
        game.play.fault(1, ARENA + (touched << 12), Access::Write);
        touched += 1;
        assert!(touched < 2048);
    }
    assert!((500..900).contains(&touched), "{touched}");
    assert_eq!(game.play.doing(1), Some(Doing::Runs));
    assert_eq!(game.play.doing(children[1]), Some(Doing::Runs));
    assert_eq!(
        game.play.instance.system.memory.hardware.reports,
        [format!("linux: memory is short: program (pid {}) is killed", children[0])]
    );
    // It goes on until it has the most itself.
    while game.play.instance.status().is_none() {
        game.play.fault(1, ARENA + (touched << 12), Access::Write);
        touched += 1;
    }
    assert!((1500..2048).contains(&touched), "{touched}");
    game.play.end();
}

/// Calls that make something.
const CALLS: [Sysno; 24] = [
    Sysno::mknodat,
    Sysno::mkdirat,
    Sysno::symlinkat,
    Sysno::openat,
    Sysno::dup,
    Sysno::pipe2,
    Sysno::write,
    Sysno::pwrite64,
    Sysno::mmap,
    Sysno::mprotect,
    Sysno::munmap,
    Sysno::clone,
    Sysno::socketpair,
    Sysno::epoll_create1,
    Sysno::epoll_ctl,
    Sysno::eventfd2,
    Sysno::timerfd_create,
    Sysno::timer_create,
    Sysno::kill,
    Sysno::getdents64,
    Sysno::ppoll,
    Sysno::futex,
    Sysno::execve,
    Sysno::close,
];

/// Makes one of the calls, with arguments that mostly fit.
fn make_any(game: &mut Game, random: &mut Random) {
    game.name(random.below(100_000));
    let file = random.below(40);
    let page = ARENA + (random.below(20_000) << 12);
    let call = CALLS[random.below(CALLS.len() as u64) as usize];
    let arguments = match call {
        Sysno::mknodat => [0, PATH, 0o10_0644, 0, 0, 0],
        Sysno::mkdirat => [0, PATH, 0o755, 0, 0, 0],
        Sysno::symlinkat => [PATH, 0, PATH, 0, 0, 0],
        Sysno::openat => [0, PATH, 0o102, 0o644, 0, 0],
        Sysno::write => [file, 0x20_1000, 4096, 0, 0, 0],
        Sysno::pwrite64 => [file, 0x20_1000, 4096, random.below(1 << 34), 0, 0],
        Sysno::mmap => [page, 4096 << random.below(8), 3, 0x32, u64::MAX, 0],
        Sysno::mprotect => [page, 4096, random.below(2), 0, 0, 0],
        Sysno::munmap => [page, 4096, 0, 0, 0, 0],
        Sysno::clone => [17, 0, 0, 0, 0, 0],
        Sysno::socketpair => [1, 1 | 0o4000, 0, RECORD, 0, 0],
        Sysno::epoll_ctl => [file, 1, random.below(40), RECORD, 0, 0],
        Sysno::kill => [random.below(20), 40, 0, 0, 0, 0],
        Sysno::getdents64 => [file, BYTES, 4096, 0, 0, 0],
        Sysno::ppoll => [RECORD, 8, 0, 0, 0, 0],
        Sysno::futex => [RECORD, 0, random.below(2), 0, 0, 0],
        Sysno::execve => [PATH, 0, 0, 0, 0, 0],
        Sysno::timer_create => [0, 0, RECORD, 0, 0, 0],
        Sysno::dup | Sysno::close => [file, 0, 0, 0, 0, 0],
        _ => [0, 0, 0, 0, 0, 0],
    };
    if call == Sysno::close && random.below(8) != 0 {
        return;
    }
    let arguments = if call == Sysno::pipe2 { [RECORD, 0o4000, 0, 0, 0, 0] } else { arguments };
    game.play.call(game.id, call.id() as u64, arguments);
}

#[test]
fn any_calls_are_survived_with_any_memory() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut game = Game::new(if seed % 2 == 0 { 4096 } else { 600 });
        // Signals wait, so that many can come.
        game.play.put(1, RECORD, &[u64::MAX]);
        game.call(Sysno::rt_sigprocmask, &[0, RECORD, 0, 8]);
        raise_limit(&mut game);
        let memory = 600 * 1024 + random.below(4 << 20) as usize;
        LEFT.set(Some(memory));
        for step in 0..6000 {
            let running = game.play.running();
            if game.play.instance.status().is_some() || running.is_empty() {
                break;
            }
            game.id = running[random.below(running.len() as u64) as usize];
            make_any(&mut game, &mut random);
            if step % 64 == 0 && game.play.instance.status().is_none() {
                let running = game.play.running();
                if let Some(id) = running.first() {
                    game.play.fault(*id, ARENA + (random.below(20_000) << 12), Access::Write);
                }
            }
        }
        game.end();
    }
}

/// Returns a game in which memory is short and the first process traces the threads of another, if it shall, and these.
fn crowd(is_traced: bool) -> (Game, Vec<u32>) {
    const THREADS: u64 = 3000;
    let mut game = Game::new(8192);
    game.id = game.call(Sysno::clone, &[17]).unwrap().unwrap() as u32;
    let mut threads: Vec<u64> = vec![game.id.into()];
    for _ in 1..THREADS {
        threads.push(game.call(Sysno::clone, &[0x5_0f00, 0x20_4000]).unwrap().unwrap());
    }
    game.id = 1;
    for thread in threads.iter().filter(|_| is_traced) {
        assert_eq!(game.call(Sysno::ptrace, &[0x4206, *thread, 0, 0]), Some(Ok(0)));
    }
    game.fill();
    (game, threads.into_iter().map(|thread| thread as u32).collect())
}

#[test]
fn thousands_of_threads_have_a_fault_each_when_memory_is_short() {
    for is_traced in [false, true] {
        let (mut game, threads) = crowd(is_traced);
        game.play.put(threads[0], RECORD, &[0x20_0100, 0x4000_0000, 0, 0]);
        game.id = threads[0];
        assert_eq!(game.call(Sysno::rt_sigaction, &[11, RECORD, 0, 8]), Some(Ok(0)));
        game.id = 1;
        for thread in threads {
            if game.play.doing(thread) == Some(Doing::Runs) {
                game.play.fault(thread, 0, Access::Read);
            }
        }
        game.end();
    }
}

#[test]
fn thousands_of_traced_threads_stop_with_their_process_when_memory_is_short() {
    let (mut game, threads) = crowd(true);
    // Its tracer learns of the signal, and lets the process have it.
    assert_eq!(game.call(Sysno::tkill, &[threads[0].into(), 19]), Some(Ok(0)));
    assert_eq!(game.call(Sysno::ptrace, &[7, threads[0].into(), 0, 19]), Some(Ok(0)));
    for thread in threads {
        assert_eq!(game.play.doing(thread), Some(Doing::Stopped));
    }
    game.end();
}
