//! Programs that make random calls. They may end themselves, and nothing else.

mod support;

use support::{Doing, Play};
use tench_linux::exec::TRAMPOLINE;
use tench_linux::signals::Info;
use tench_linux_calls::Sysno;
use tench_linux_memory::Access;
use tench_random::Random;

/// Address at which actions are written.
const ACTION: u64 = 0x20_1300;
/// Operations of `futex`, those in pairs more often.
const OPERATIONS: [u64; 20] = [0, 0, 0, 9, 9, 1, 1, 1, 10, 2, 3, 4, 5, 6, 6, 7, 7, 8, 11, 13];
/// Flags of a thread.
const THREAD: u64 = 0x1_0f00;
/// Address of records of locks.
const LOCK: u64 = 0x20_1240;
/// Addresses of what sockets need: a name, the record of a message, its part, its control message, and its bytes.
const NAME: u64 = 0x20_1900;
const HEADER: u64 = 0x20_1920;
const PART: u64 = 0x20_1960;
const CONTROL: u64 = 0x20_1970;
const BYTES: u64 = 0x20_1a00;
/// Number of names that sockets have.
const NAMES: u64 = 4;
/// Address of the mapped file.
const FILE: u64 = 0x30_0000;

/// Addresses in the program's data, in a mapped file, at ends of areas, and nowhere.
const ADDRESSES: [u64; 12] =
    [0, 1, 8, 0x20_0000, 0x20_1000, 0x20_1ff8, 0x20_5ff9, 0x20_6000, 0x7fff_ffff_e000, 1 << 47, u64::MAX - 7, u64::MAX];

/// Paths that lie in the program's data.
const PATHS: [(u64, &[u8]); 18] = [
    (0x20_1100, b"/tmp/a\0"),
    (0x20_1110, b"b\0"),
    (0x20_1120, b"/dev/zero\0"),
    (0x20_1130, b"/bin/program\0"),
    (0x20_1140, b"..\0"),
    (0x20_1150, b"/tmp/a/c\0"),
    (0x20_1160, b"/proc/self/fd\0"),
    (0x20_1170, b"/proc/self/fd/3\0"),
    (0x20_1190, b"/proc/self/comm\0"),
    (0x20_11a0, b"/proc/3/maps\0"),
    (0x20_11b0, b"/proc/self/exe\0"),
    (0x20_11c0, b"/proc\0"),
    (0x20_11d0, b"/proc/2/cwd\0"),
    (0x20_11e0, b"status\0"),
    (0x20_11f0, b"/mnt/a\0"),
    (0x20_11f7, b"/mnt/d\0"),
    (0x20_1187, b"/mnt/d/\0"),
    (0x20_1108, b"/mnt\0"),
];

fn argument(random: &mut Random) -> u64 {
    match random.below(16) {
        0..4 => random.below(8),
        4..7 => ADDRESSES[random.below(ADDRESSES.len() as u64) as usize],
        7..11 => PATHS[random.below(PATHS.len() as u64) as usize].0,
        11 => 0x20_1000 + random.below(0x5000),
        12 => random.below(16) * 1024,
        13 => 1 << random.below(64),
        14 => (-100i64).cast_unsigned(),
        _ => random.below(u64::MAX),
    }
}

/// Calls that would end the first process, and with it the game.
const LEFT_OUT: [Sysno; 2] = [Sysno::exit, Sysno::exit_group];

/// Calls with much to go wrong, which are made more often.
const PREFERRED: [Sysno; 49] = [
    Sysno::inotify_init1,
    Sysno::inotify_add_watch,
    Sysno::inotify_add_watch,
    Sysno::inotify_add_watch,
    Sysno::inotify_rm_watch,
    Sysno::memfd_create,
    Sysno::execveat,
    Sysno::truncate,
    Sysno::ftruncate,
    Sysno::mmap,
    Sysno::munmap,
    Sysno::mprotect,
    Sysno::mremap,
    Sysno::openat,
    Sysno::dup3,
    Sysno::pwrite64,
    Sysno::renameat,
    Sysno::clone,
    Sysno::wait4,
    Sysno::pipe2,
    Sysno::read,
    Sysno::write,
    Sysno::execve,
    Sysno::rt_sigaction,
    Sysno::rt_sigreturn,
    Sysno::mknodat,
    Sysno::ppoll,
    Sysno::clone,
    Sysno::futex,
    Sysno::futex,
    Sysno::futex,
    Sysno::futex,
    Sysno::set_robust_list,
    Sysno::fcntl,
    Sysno::fcntl,
    Sysno::fcntl,
    Sysno::flock,
    Sysno::dup,
    Sysno::close,
    Sysno::close,
    Sysno::socketpair,
    Sysno::socket,
    Sysno::bind,
    Sysno::listen,
    Sysno::connect,
    Sysno::accept4,
    Sysno::sendmsg,
    Sysno::sendmsg,
    Sysno::recvmsg,
];

/// Calls about what System V has, which are made more often, too.
const SYSTEM_V: [Sysno; 11] = [
    Sysno::shmget,
    Sysno::shmat,
    Sysno::shmdt,
    Sysno::shmctl,
    Sysno::semget,
    Sysno::semop,
    Sysno::semtimedop,
    Sysno::semctl,
    Sysno::msgget,
    Sysno::msgsnd,
    Sysno::msgrcv,
];

/// Code of the program, which handles signals.
const HANDLER: u64 = 0x20_0100;

/// Handles all signals, so that the first process seldom ends.
fn handle_signals(play: &mut Play) {
    for signal in 1..=64 {
        let action = [HANDLER, [4, 0x1000_0004][signal as usize % 2], 0, 0];
        let bytes: Vec<u8> = action.iter().flat_map(|word| word.to_le_bytes()).collect();
        play.write(1, ACTION, &bytes);
        play.call(1, Sysno::rt_sigaction as u64, [signal, ACTION, 0, 8, 0, 0]);
    }
}

/// Returns whether a process is in a handler, which may end.
fn is_in_handler(play: &mut Play, process: u32) -> bool {
    play.thread(process).registers.x[30] == TRAMPOLINE
}

fn number(random: &mut Random, is_first: bool) -> u64 {
    if random.below(3) == 0 {
        return PREFERRED[random.below(PREFERRED.len() as u64) as usize] as u64;
    }
    if random.once_in(20) {
        return SYSTEM_V[random.index(SYSTEM_V.len())] as u64;
    }
    loop {
        let number = if random.below(50) == 0 { random.below(u64::MAX) } else { random.below(300) };
        let ends = LEFT_OUT.iter().any(|call| *call as u64 == number);
        // Signals to everybody end the first process, too.
        let signals = (129..=131).contains(&number) || number == 138;
        if !(ends && is_first || signals && random.below(10) != 0) {
            return number;
        }
    }
}

fn write_paths(play: &mut Play, process: u32) {
    for (address, path) in PATHS {
        // The program may have changed what it may do there.
        if play.doing(process).is_some() {
            play.write(process, address, path);
        }
    }
}

/// Maps a file, which both the process and its calls change.
fn map_a_file(play: &mut Play) {
    let mut call = |call: Sysno, arguments| match play.call(1, call as u64, arguments) {
        Some(result) if result.cast_signed() >= 0 => result,
        other => panic!("{call}: {other:?}"),
    };
    let file = call(Sysno::openat, [0, PATHS[0].0, 0o102, 0o644, 0, 0]);
    call(Sysno::ftruncate, [file, 3 * 4096, 0, 0, 0, 0]);
    call(Sysno::mmap, [FILE, 3 * 4096, 3, 0x11, file, 0]);
}

/// Arguments of a call, which for some are chosen so that they mean something more often.
fn arguments(random: &mut Random, number: u64) -> [u64; 6] {
    let mut arguments = std::array::from_fn(|_| argument(random));
    if number == Sysno::clone as u64 && random.below(4) != 0 {
        // A child, of which the parent's memory is a copy, or which borrows it.
        arguments[0] = [17, 0x4011, 0x4111, 0x120_0011, 0x111, THREAD, THREAD | 0x20_0000][random.below(7) as usize];
    }
    if number == Sysno::futex as u64 && random.below(8) != 0 {
        let words = [0x20_1200, FILE, FILE];
        let word = |random: &mut Random| words[random.below(3) as usize];
        let operation = OPERATIONS[random.below(OPERATIONS.len() as u64) as usize] | random.below(2) << 7;
        arguments = [word(random), operation, random.below(4), 0, word(random), 1];
        if random.below(4) == 0 {
            // A time, of which most are valid.
            arguments[3] = 0x20_1220;
        }
    }
    if number == Sysno::fcntl as u64 && random.below(8) != 0 {
        // A lock that is waited for more often than not, by a record whose whence is mostly right.
        let commands = [5, 6, 7, 7, 36, 37, 38, 38];
        arguments[..3].copy_from_slice(&[3 + random.below(3), commands[random.below(8) as usize], LOCK]);
    }
    if number == Sysno::flock as u64 && random.below(8) != 0 {
        arguments[..2].copy_from_slice(&[3 + random.below(3), [1, 2, 2, 5, 6, 8][random.below(6) as usize]]);
    }
    if number == Sysno::inotify_add_watch as u64 && random.below(8) != 0 {
        arguments[0] = 3 + random.below(4);
        arguments[2] = 0xfff | [0, 0, 1 << 26, 1 << 31][random.below(4) as usize];
    }
    if number == Sysno::close as u64 && random.below(8) != 0 {
        arguments[0] = 3 + random.below(5);
    }
    if number == Sysno::set_robust_list as u64 {
        arguments = [0x20_1230, 24, 0, 0, 0, 0];
    }
    if number == Sysno::pipe2 as u64 {
        arguments = [0x20_1200, [0, 0o4000][random.below(2) as usize], 0, 0, 0, 0];
    }
    if let Some(chosen) = socket_arguments(random, number).filter(|_| !random.once_in(8)) {
        arguments = chosen;
    }
    if let Some(chosen) = ipc_arguments(random, number).filter(|_| !random.once_in(8)) {
        arguments = chosen;
    }
    if number == Sysno::execve as u64 && random.below(2) == 0 {
        arguments[..3].copy_from_slice(&[PATHS[3].0, 0, 0]);
    }
    arguments
}

/// Returns arguments of a call about sockets that mostly mean something: Unix sockets and some of TCP, and descriptors
/// that often are sockets.
fn socket_arguments(random: &mut Random, number: u64) -> Option<[u64; 6]> {
    let file = |random: &mut Random| 3 + random.below(8);
    let kind = |random: &mut Random| [1, 1, 2, 5][random.below(4) as usize] | (random.below(2) * 0o4000);
    let call = [
        Sysno::socketpair,
        Sysno::socket,
        Sysno::bind,
        Sysno::connect,
        Sysno::listen,
        Sysno::accept4,
        Sysno::sendmsg,
        Sysno::recvmsg,
    ];
    Some(match call.into_iter().find(|call| *call as u64 == number)? {
        Sysno::socketpair => [1, kind(random), 0, BYTES, 0, 0],
        Sysno::socket => [[1, 1, 1, 2][random.below(4) as usize], kind(random), 0, 0, 0, 0],
        Sysno::bind | Sysno::connect => [file(random), NAME, 4, 0, 0, 0],
        Sysno::listen => [file(random), random.below(4), 0, 0, 0, 0],
        Sysno::accept4 => [file(random), 0, 0, random.below(2) * 0o4000, 0, 0],
        _ => [file(random), HEADER, random.below(2) * 0x40, 0, 0, 0],
    })
}

/// Addresses at which segments are attached, now and then within each other.
const SEGMENTS: [u64; 4] = [0, 0x40_0000, 0x40_2000, 0x41_0000];
/// Address of operations on semaphores.
const OPERATIONS_AT: u64 = 0x20_1280;
/// Address of a message.
const MESSAGE: u64 = 0x20_12c0;

/// Returns arguments of a call about what System V has that mostly mean something. There are few identifiers, most of
/// which were made anew several times.
fn ipc_arguments(random: &mut Random, number: u64) -> Option<[u64; 6]> {
    let id = |random: &mut Random| random.below(4);
    let flags = |random: &mut Random| [0o1600, 0o1600, 0o3600, 0o600][random.index(4)];
    let some = |random: &mut Random, of: &[u64]| of[random.index(of.len())];
    Some(match SYSTEM_V.into_iter().find(|call| *call as u64 == number)? {
        Sysno::shmget => [random.below(3), some(random, &[1, 4096, 5 * 4096, 0]), flags(random), 0, 0, 0],
        Sysno::shmat => [id(random), some(random, &SEGMENTS), some(random, &[0, 0o10000, 0o40000, 0o100000]), 0, 0, 0],
        Sysno::shmdt => [some(random, &SEGMENTS), 0, 0, 0, 0, 0],
        Sysno::shmctl => [id(random), some(random, &[0, 2, 11, 12]), 0x20_2000, 0, 0, 0],
        Sysno::semget => [random.below(3), 1 + random.below(3), flags(random), 0, 0, 0],
        Sysno::semop => [id(random), OPERATIONS_AT, 1 + random.below(2), 0, 0, 0],
        Sysno::semtimedop => [id(random), OPERATIONS_AT, 1 + random.below(2), 0x20_1220, 0, 0],
        Sysno::semctl if random.once_in(6) => [id(random), 0, 0, 0, 0, 0],
        Sysno::semctl => [id(random), random.below(3), 11 + random.below(7), some(random, &[1, 0x20_2000]), 0, 0],
        Sysno::msgget => [random.below(3), flags(random), 0, 0, 0, 0],
        Sysno::msgsnd => [id(random), MESSAGE, some(random, &[0, 5, 8000]), some(random, &[0, 0, 0o4000]), 0, 0],
        _ => [id(random), 0x20_2000, some(random, &[0, 5, 8000]), random.below(3), some(random, &[0, 0o10000]), 0],
    })
}

/// Writes operations on semaphores, half of which are undone, and a message's type.
fn choose_operations(play: &mut Play, random: &mut Random, process: u32) {
    let mut bytes = Vec::new();
    for _ in 0..2 {
        let change = random.below(6) as i16 - 3;
        bytes.extend((random.below(3) as u16).to_le_bytes());
        bytes.extend(change.to_le_bytes());
        bytes.extend(([0, 0o10000, 0o10000, 0o4000][random.index(4)] as u16).to_le_bytes());
    }
    play.write(process, OPERATIONS_AT, &bytes);
    play.write(process, MESSAGE, &(1 + random.below(2)).to_le_bytes());
}

/// Writes a name of a socket, and the record of a message of some bytes with some open files.
fn choose_message(play: &mut Play, random: &mut Random, process: u32) {
    play.write(process, NAME, &[1, 0, 0, b'a' + random.below(NAMES) as u8]);
    let files = random.below(4);
    let words = [0, 0, PART, 1, CONTROL, 16 + 4 * files, 0];
    let record = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    play.write(process, HEADER, &record(&words));
    play.write(process, PART, &record(&[BYTES, 1 + random.below(8)]));
    play.write(process, CONTROL, &record(&[16 + 4 * files, 1 << 32 | 1]));
    for file in 0..files {
        play.write(process, CONTROL + 16 + 4 * file, &(random.below(11) as u32).to_le_bytes());
    }
}

/// Lets a thread wait for a word's value more often than not, which is 0 now and then, as a lock's is that is free.
fn choose_value(play: &mut Play, random: &mut Random, process: u32, arguments: &mut [u64; 6]) {
    if random.below(8) == 0 {
        play.write(process, arguments[0], &[0; 4]);
    }
    let mut value = [0; 4];
    if random.below(4) != 0 && play.read(process, arguments[0], &mut value) == value.len() {
        arguments[2] = u32::from_le_bytes(value).into();
    }
}

/// Writes a record of a lock that is mostly valid.
fn choose_lock(play: &mut Play, random: &mut Random, process: u32) {
    let (kind, whence) = (random.below(3), if random.once_in(8) { random.below(4) } else { 0 });
    let number = |random: &mut Random| if random.once_in(16) { random.below(u64::MAX) } else { random.below(20) };
    let words = [kind | whence << 16, number(random), number(random), 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    play.write(process, LOCK, &bytes);
}

/// Sums over the plays.
#[derive(Debug, Default)]
struct Counts {
    calls: usize,
    succeeded: usize,
    waited: usize,
    most_processes: usize,
    most_threads: usize,
    /// Threads that others have woken.
    woken: usize,
    /// Waits for locks that were over.
    got_locks: usize,
    most_lockers: usize,
    /// Files in messages that nobody has received, and messages with files that somebody has.
    most_sent: usize,
    received: usize,
    ended: usize,
    /// Threads that waited for System V's semaphores and messages at once, and whose wait was over.
    most_for_ipc: usize,
    went_on: usize,
    most_attached: u64,
    /// Errands at the file server.
    errands: usize,
    /// Files and directories that were made there.
    most_outside: u64,
}

/// Returns how many threads wait for System V's semaphores and messages.
fn for_ipc(play: &Play) -> usize {
    let ipc = &play.instance.system.ipc;
    ipc.semaphores.threads().chain(ipc.queues.threads()).count()
}

/// Lets somebody run, if all wait. Returns false if that is for ever.
fn somebody_runs(play: &mut Play, random: &mut Random) -> bool {
    while play.running().is_empty() && play.do_errand() {}
    if play.running().is_empty()
        && let Some(deadline) = play.instance.deadline()
    {
        play.instance.system.memory.hardware.time = deadline;
        play.instance.pass_time();
    }
    if play.running().is_empty() {
        play.instance.input([&b"typed\n"[..], b"x", b""][random.below(3) as usize]);
    }
    if play.running().is_empty() {
        // Those that are stopped go on, and those that wait for nothing else are interrupted.
        let all: Vec<u32> = play.instance.processes.iter().map(|process| process.id).collect();
        for id in all {
            let Some(process) = play.instance.processes.get(id) else { continue };
            let signal = [18, 34, 14][random.below(3) as usize];
            play.instance.system.send(process, Info::from_system(signal));
        }
        play.instance.pass_time();
    }
    if play.running().is_empty() {
        // Only the first process stays whatever happens.
        for process in play.instance.processes.iter_mut().filter(|process| process.id != 1) {
            play.instance.system.send(process, Info::from_system(9));
        }
        play.instance.pass_time();
    }
    !play.running().is_empty()
}

/// Makes random calls of random processes.
fn play(seed: u64, calls: usize, counts: &mut Counts) {
    let mut random = Random::new(seed);
    let mut play = if seed.is_multiple_of(3) {
        Play::with_streams(4096, false)
    } else {
        Play::with_terminal(4096, seed.is_multiple_of(2))
    };
    if seed % 4 < 2 {
        play.mount("tmp", "/mnt", false);
    }
    write_paths(&mut play, 1);
    handle_signals(&mut play);
    map_a_file(&mut play);
    for step in 0..calls {
        if play.instance.status().is_some() || !somebody_runs(&mut play, &mut random) {
            counts.ended += 1;
            break;
        }
        let running = play.running();
        let process = running[random.below(running.len() as u64) as usize];
        let is_first = play.instance.processes.owner(process) == Some(1);
        let mut number = number(&mut random, is_first);
        if is_first && number == Sysno::rt_sigreturn as u64 || random.below(10) == 0 {
            let ends = is_in_handler(&mut play, process);
            number = if ends { Sysno::rt_sigreturn } else { Sysno::getpid } as u64;
        }
        let mut arguments = arguments(&mut random, number);
        if number == Sysno::futex as u64 {
            choose_value(&mut play, &mut random, process, &mut arguments);
        }
        if number == Sysno::fcntl as u64 && arguments[2] == LOCK {
            choose_lock(&mut play, &mut random, process);
        }
        if arguments[1] == OPERATIONS_AT || arguments[1] == MESSAGE {
            choose_operations(&mut play, &mut random, process);
        }
        if arguments[1] == NAME || arguments[1] == HEADER {
            choose_message(&mut play, &mut random, process);
        }
        counts.calls += 1;
        let for_ipc_before = for_ipc(&play);
        let lockers_before = play.instance.system.locks.threads().count();
        let waiters_before = play.instance.system.futexes.threads().count();
        let sent_before = play.instance.system.sockets.held_rights();
        match play.call(process, number, arguments) {
            Some(result) => counts.succeeded += usize::from(result.cast_signed() >= 0),
            None => counts.waited += 1,
        }
        if random.below(2) == 0 {
            counts.errands += usize::from(play.do_errand());
        }
        let usage = play.instance.system.memory.hardware.files.ends.borrow().usage();
        counts.most_outside = counts.most_outside.max(usage.nodes);
        counts.most_processes = counts.most_processes.max(play.instance.processes.count());
        let threads = play.instance.processes.iter().map(|process| process.threads.len()).max();
        counts.most_threads = counts.most_threads.max(threads.unwrap_or(0));
        counts.woken += usize::from(number == Sysno::futex as u64)
            * waiters_before.saturating_sub(play.instance.system.futexes.threads().count());
        let for_ipc = for_ipc(&play);
        counts.most_for_ipc = counts.most_for_ipc.max(for_ipc);
        counts.went_on += for_ipc_before.saturating_sub(for_ipc);
        let segments = &play.instance.system.ipc.segments;
        let attached = segments.iter().map(|entry| entry.value.attachments).max();
        counts.most_attached = counts.most_attached.max(attached.unwrap_or(0));
        let lockers = play.instance.system.locks.threads().count();
        counts.most_lockers = counts.most_lockers.max(lockers);
        counts.got_locks += lockers_before.saturating_sub(lockers);
        let sent = play.instance.system.sockets.held_rights();
        counts.most_sent = counts.most_sent.max(sent);
        counts.received += usize::from(number == Sysno::recvmsg as u64 && sent < sent_before);
        if number == Sysno::execve as u64 {
            // The new program has the same data, but for the paths.
            write_paths(&mut play, process);
        }
        if play.doing(process) == Some(Doing::Runs) {
            let access = [Access::Read, Access::Write, Access::Execute][random.below(3) as usize];
            play.touch(process, argument(&mut random), access);
            play.touch(process, FILE + random.below(0x3000), access);
            if !is_first && random.below(100) == 0 {
                play.fault(process, argument(&mut random), access);
            }
        }
        play.instance.system.memory.hardware.reports.clear();
        play.instance.system.memory.hardware.output.clear();
        if step % 16 == 0 {
            play.check();
        }
    }
    play.check();
    play.end();
}

#[test]
fn random_calls_harm_nobody_else() {
    let mut counts = Counts::default();
    for seed in 0..300 {
        play(seed, 2000, &mut counts);
    }
    println!("{counts:?}");
    assert!(counts.calls > 100_000 && counts.succeeded > 10_000 && counts.waited > 1_000, "{counts:?}");
    assert!(counts.got_locks > 20 && counts.most_lockers > 1, "{counts:?}");
    assert!(counts.most_for_ipc > 3 && counts.went_on > 20 && counts.most_attached > 3, "{counts:?}");
    assert!(counts.errands > 50 && counts.most_outside >= 1, "{counts:?}");
    assert!(counts.most_sent > 10 && counts.received > 20, "{counts:?}");
    assert!(counts.most_processes > 10 && counts.most_threads > 5 && counts.woken > 50, "{counts:?}");
}
