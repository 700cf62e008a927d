//! Pseudo-terminals: how many there may be, what remains of them, and processes that do anything with them.

mod support;

use support::{Doing, Play};
use tench_linux::terminals::TerminalId;
use tench_linux_calls::Sysno;
use tench_linux_memory::RESERVE;
use tench_random::Random;

/// Addresses in the program's data: a path, a record of modes or a number, and bytes.
const PATH: u64 = 0x20_1100;
const RECORD: u64 = 0x20_1200;
const BYTES: u64 = 0x20_1300;
const RDWR: u64 = 2;
const NOCTTY: u64 = 0o400;
const NONBLOCK: u64 = 0o4000;
const UNLOCK: u64 = 0x4004_5431;
const NUMBER: u64 = 0x8004_5430;
const PEER: u64 = 0x5441;
/// Commands for either side.
const COMMANDS: [u64; 20] = [
    0x5401,
    0x5402,
    0x5403,
    0x5404,
    0x5409,
    0x540a,
    0x540b,
    0x540e,
    0x540f,
    0x5410,
    0x5411,
    0x5413,
    0x5414,
    0x541b,
    0x5422,
    0x5429,
    PEER,
    UNLOCK,
    NUMBER,
    0x4004_5436,
];

struct Game(Play);

impl Game {
    fn new() -> Game {
        Game(Play::with_terminal(4096, true))
    }

    fn call(&mut self, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        self.0.call(id, call as u64, all).map(u64::cast_signed)
    }

    fn open(&mut self, id: u32, path: &str, flags: u64) -> Option<i64> {
        self.0.write(id, PATH, path.as_bytes());
        self.0.write(id, PATH + path.len() as u64, b"\0");
        self.call(id, Sysno::openat, &[0, PATH, flags, 0o600])
    }

    fn open_master(&mut self, id: u32) -> i64 {
        let master = self.open(id, "/dev/ptmx", RDWR).unwrap();
        if master >= 0 {
            self.0.write(id, RECORD, &[0; 4]);
            assert_eq!(self.call(id, Sysno::ioctl, &[master as u64, UNLOCK, RECORD]), Some(0));
        }
        master
    }

    fn pairs(&self) -> usize {
        self.0.instance.system.terminals.count()
    }
}

#[test]
fn there_is_a_limit_and_nothing_remains() {
    let mut game = Game::new();
    game.0.put(1, RECORD, &[4000, 4000]);
    assert_eq!(game.call(1, Sysno::prlimit64, &[0, 7, RECORD, 0]), Some(0));
    let nodes = game.0.instance.system.tree.nodes().count();
    let masters: Vec<i64> = std::iter::repeat_with(|| game.open_master(1)).take_while(|master| *master >= 0).collect();
    assert_eq!(masters.len(), 256);
    assert_eq!(game.open_master(1), -28, "no space is left");
    assert_eq!(game.call(1, Sysno::close, &[masters[17] as u64]), Some(0));
    let again = game.open_master(1) as u64;
    assert_eq!(game.call(1, Sysno::ioctl, &[again, NUMBER, RECORD]), Some(0));
    let mut number = [0; 4];
    game.0.read(1, RECORD, &mut number);
    assert_eq!(u32::from_le_bytes(number), 17, "the lowest number that is free");
    for master in 3..300 {
        game.call(1, Sysno::close, &[master]);
    }
    assert_eq!((game.pairs(), game.0.instance.system.tree.nodes().count()), (0, nodes));
    game.0.check();
    game.0.end();
}

#[test]
fn without_memory_there_is_no_other() {
    let mut game = Game::new();
    let nodes = game.0.instance.system.tree.nodes().count();
    // Tables get room for what follows.
    let first = game.open_master(1) as u64;
    assert_eq!(game.call(1, Sysno::close, &[first]), Some(0));
    // The reserve is there, and a little more, but not all that a pair takes.
    game.0.instance.system.memory.hardware.set_can_allocate(|bytes| bytes <= RESERVE + 16 * 1024);
    assert!(game.call(1, Sysno::dup, &[0]).is_some_and(|file| file >= 0), "calls that make less are admitted");
    assert_eq!(game.open_master(1), -12);
    assert_eq!((game.pairs(), game.0.instance.system.tree.nodes().count()), (0, nodes));
    game.0.instance.system.memory.hardware.set_can_allocate(|bytes| bytes <= RESERVE + 48 * 1024);
    assert!(game.open_master(1) >= 0);
    game.0.end();
}

#[test]
fn a_read_that_lost_its_file_leaves_the_terminal_to_others() {
    let mut game = Game::new();
    let master = game.open_master(1) as u64;
    let slave = game.open(1, "/dev/pts/0", RDWR | NOCTTY).unwrap() as u64;
    let thread = game.call(1, Sysno::clone, &[0x1_0f00]).unwrap() as u32;
    assert_eq!(game.call(thread, Sysno::read, &[slave, BYTES, 10]), None);
    assert_eq!(game.call(1, Sysno::close, &[slave]), Some(0));
    let slave = game.open(1, "/dev/pts/0", RDWR | NOCTTY | NONBLOCK).unwrap() as u64;
    // Another file has the number now, so that the thread reads from that.
    assert_eq!(game.call(1, Sysno::dup3, &[slave, 20, 0]), Some(20));
    game.call(1, Sysno::close, &[slave]);
    game.0.write(1, BYTES, b"one\n");
    assert_eq!(game.call(1, Sysno::write, &[master, BYTES, 4]), Some(4));
    assert_eq!(game.0.thread(thread).registers.x[0].cast_signed(), -9, "its file was closed");
    assert_eq!(game.call(1, Sysno::read, &[20, BYTES, 10]), Some(4));
    game.0.end();
}

#[test]
fn a_hang_up_reaches_the_session() {
    let mut game = Game::new();
    let master = game.open_master(1) as u64;
    let leader = game.call(1, Sysno::clone, &[17]).unwrap() as u32;
    assert_eq!(game.call(leader, Sysno::close, &[master]), Some(0));
    assert_eq!(game.call(leader, Sysno::setsid, &[]), Some(leader.into()));
    let slave = game.open(leader, "/dev/pts/0", RDWR).unwrap() as u64;
    let member = game.call(leader, Sysno::clone, &[17]).unwrap() as u32;
    assert_eq!(game.call(member, Sysno::read, &[slave, BYTES, 10]), None);
    let terminal = |game: &mut Game| game.0.instance.processes.get(member).unwrap().terminal;
    assert_eq!(terminal(&mut game), Some(TerminalId::Slave(0)));
    game.0.check();
    assert_eq!(game.call(1, Sysno::close, &[master]), Some(0));
    assert_eq!(game.0.doing(leader), None, "its signal has ended the leader");
    assert_eq!(game.0.doing(member), None, "the leader's end is that of the foreground");
    assert_eq!(game.pairs(), 0);
    game.0.check();
    game.0.end();
}

#[test]
fn output_that_goes_on_lets_its_writer_go_on() {
    let mut game = Game::new();
    let master = game.open_master(1) as u64;
    let slave = game.open(1, "/dev/pts/0", RDWR | NOCTTY).unwrap() as u64;
    let writer = game.call(1, Sysno::clone, &[17]).unwrap() as u32;
    let keys = |game: &mut Game, keys: &[u8]| {
        game.0.write(1, BYTES, keys);
        assert_eq!(game.call(1, Sysno::write, &[master, BYTES, keys.len() as u64]), Some(keys.len() as i64));
    };
    keys(&mut game, b"\x13");
    while game.call(writer, Sysno::write, &[slave, BYTES, 200]).is_some() {}
    keys(&mut game, b"\x11");
    assert_eq!(game.0.doing(writer), Some(Doing::Runs), "there is room again");
    game.0.check();
    game.0.end();
}

#[test]
fn a_reader_that_stops_leaves_the_terminal_to_others() {
    let mut game = Game::new();
    let master = game.open_master(1) as u64;
    let slave = game.open(1, "/dev/pts/0", RDWR | NOCTTY).unwrap() as u64;
    let reader = game.call(1, Sysno::clone, &[17]).unwrap() as u32;
    let other = game.call(1, Sysno::clone, &[17]).unwrap() as u32;
    assert_eq!(game.call(reader, Sysno::read, &[slave, BYTES, 10]), None);
    assert_eq!(game.call(other, Sysno::read, &[slave, BYTES, 10]), None);
    assert_eq!(game.call(1, Sysno::kill, &[reader.into(), 19]), Some(0));
    game.0.write(1, BYTES, b"one\n");
    game.call(1, Sysno::write, &[master, BYTES, 4]);
    assert_eq!(game.0.doing(other), Some(Doing::Runs), "it has read");
    assert_eq!(game.call(1, Sysno::kill, &[reader.into(), 18]), Some(0));
    game.call(1, Sysno::write, &[master, BYTES, 4]);
    assert_eq!(game.0.doing(reader), Some(Doing::Runs), "it goes on reading");
    game.0.check();
    game.0.end();
}

#[test]
fn a_read_that_got_another_terminal_leaves_the_first_to_others() {
    let mut game = Game::new();
    let masters = [0; 2].map(|_| game.open_master(1) as u64);
    let slaves = ["/dev/pts/0", "/dev/pts/1"].map(|path| game.open(1, path, RDWR | NOCTTY).unwrap() as u64);
    let first = game.call(1, Sysno::dup, &[slaves[0]]).unwrap() as u64;
    let thread = game.call(1, Sysno::clone, &[0x1_0f00]).unwrap() as u32;
    assert_eq!(game.call(thread, Sysno::read, &[slaves[0], BYTES, 10]), None);
    game.call(1, Sysno::dup3, &[slaves[1], slaves[0], 0]);
    game.0.write(1, BYTES, b"one\n");
    game.call(1, Sysno::write, &[masters[0], BYTES, 4]);
    assert_eq!(game.0.doing(thread), Some(Doing::Waits), "it reads from the second one");
    assert_eq!(game.call(1, Sysno::read, &[first, BYTES, 10]), Some(4));
    game.call(1, Sysno::write, &[masters[1], BYTES, 4]);
    assert_eq!(game.0.doing(thread), Some(Doing::Runs));
    game.0.check();
    game.0.end();
}

#[test]
fn only_the_system_makes_slaves() {
    const STREAM: u64 = 1;
    let mut game = Game::new();
    let socket = game.call(1, Sysno::socket, &[1, STREAM, 0]).unwrap() as u64;
    game.0.write(1, RECORD, b"\x01\0/dev/pts/0");
    assert_eq!(game.call(1, Sysno::bind, &[socket, RECORD, 12]), Some(-1));
    assert!(game.open_master(1) >= 0);
    game.0.end();
}

#[test]
fn without_a_number_nothing_is_opened() {
    const TRUNC: u64 = 0o1000;
    let mut game = Game::new();
    let file = game.open(1, "/tmp/file", RDWR | 0o100).unwrap() as u64;
    assert_eq!(game.call(1, Sysno::pwrite64, &[file, BYTES, 5, 0]), Some(5));
    game.0.put(1, RECORD, &[file + 1, 4000]);
    assert_eq!(game.call(1, Sysno::prlimit64, &[0, 7, RECORD, 0]), Some(0));
    assert_eq!(game.open(1, "/tmp/file", RDWR | TRUNC), Some(-24));
    assert_eq!(game.open(1, "/dev/ptmx", RDWR), Some(-24));
    assert_eq!((game.pairs(), game.call(1, Sysno::pread64, &[file, BYTES, 9, 0])), (0, Some(5)));
    game.0.end();
}

/// Returns a call about terminals.
fn call(game: &mut Game, id: u32, random: &mut Random) -> (Sysno, [u64; 6]) {
    let file = 3 + random.below(12);
    let few = random.below(200);
    match random.below(24) {
        0..3 => {
            game.0.write(id, PATH, b"/dev/ptmx\0");
            (Sysno::openat, [0, PATH, RDWR | (random.below(2) * NONBLOCK), 0, 0, 0])
        }
        3..6 => {
            game.0.write(id, RECORD, &[0; 4]);
            (Sysno::ioctl, [file, UNLOCK, RECORD, 0, 0, 0])
        }
        6..9 => {
            let path = [&b"/dev/pts/0\0"[..], b"/dev/pts/1\0", b"/dev/pts/2\0", b"/dev/tty\0"];
            game.0.write(id, PATH, path[random.below(4) as usize]);
            let access = [RDWR, RDWR, 0, 1][random.below(4) as usize];
            (Sysno::openat, [0, PATH, access | (random.below(2) * NOCTTY) | (random.below(2) * NONBLOCK), 0, 0, 0])
        }
        9..12 => {
            let text = [&b"line\n"[..], b"\x03", b"\x1a", b"\x04", b"\x13", b"\x11", b"\xff\0\r\n\x7f\x15"];
            let text = text[random.below(7) as usize];
            let bytes: Vec<u8> = text.iter().copied().cycle().take(256).collect();
            game.0.write(id, BYTES, &bytes);
            (Sysno::write, [file, BYTES, 1 + few, 0, 0, 0])
        }
        12 => (Sysno::write, [file, BYTES, 0x4000, 0, 0, 0]),
        13..16 => (Sysno::read, [file, BYTES, 1 + few, 0, 0, 0]),
        16..19 => {
            let command = COMMANDS[random.below(COMMANDS.len() as u64) as usize];
            let argument = [RECORD, RECORD, RECORD, 0, 1, 2, 3][random.below(7) as usize];
            if random.below(2) == 0 {
                game.0.write(id, RECORD, &(1 + random.below(20) as u32).to_le_bytes());
            }
            (Sysno::ioctl, [file, command, argument, 0, 0, 0])
        }
        19 => (Sysno::clone, [17, 0, 0, 0, 0, 0]),
        20 => (Sysno::close, [file, 0, 0, 0, 0, 0]),
        21 => [(Sysno::setsid, [0; 6]), (Sysno::setpgid, [0; 6])][random.below(2) as usize],
        22 => {
            let signal = [1, 2, 9, 18, 19, 21, 22][random.below(7) as usize];
            (Sysno::kill, [2 + random.below(20), signal, 0, 0, 0, 0])
        }
        _ if id != 1 => (Sysno::exit_group, [0; 6]),
        _ => (Sysno::wait4, [u64::MAX, 0, 1, 0, 0, 0]),
    }
}

/// Sums over the plays.
#[derive(Debug, Default)]
struct Counts {
    most_pairs: usize,
    most_sessions: usize,
    stopped: usize,
    waited: usize,
    hung_up: usize,
}

fn play(seed: u64, counts: &mut Counts) {
    let mut random = Random::new(seed);
    let mut game = Game::new();
    // The first process ignores what keys and others send, so that the game goes on.
    for signal in [1, 2, 3, 13, 18, 20, 21, 22] {
        game.0.put(1, RECORD, &[1, 0, 0, 0]);
        game.call(1, Sysno::rt_sigaction, &[signal, RECORD, 0, 8]);
    }
    for _ in 0..1500 {
        let running = game.0.running();
        if running.is_empty() {
            break;
        }
        let id = running[random.below(running.len() as u64) as usize];
        let (call, arguments) = call(&mut game, id, &mut random);
        // The first process is not to wait for ever.
        let blocks = matches!(call, Sysno::read | Sysno::write | Sysno::ioctl);
        if game.0.instance.processes.count() > 12 && call == Sysno::clone || id == 1 && blocks && random.below(4) != 0 {
            continue;
        }
        game.call(id, call, &arguments);
        let terminals = &game.0.instance.system.terminals;
        let sessions = terminals.iter().filter(|(_, terminal)| terminal.discipline.session().is_some()).count();
        counts.most_pairs = counts.most_pairs.max(terminals.count());
        counts.most_sessions = counts.most_sessions.max(sessions);
        counts.hung_up += terminals.iter().filter(|(_, terminal)| terminal.discipline.is_hung_up()).count();
        counts.stopped += game.0.instance.processes.iter().filter(|process| process.is_stopped).count();
        counts.waited += usize::from(game.0.doing(id) == Some(Doing::Waits));
        game.0.check();
    }
    game.0.end();
}

#[test]
fn random_calls_leave_nothing_behind() {
    let mut counts = Counts::default();
    for seed in 0..150 {
        play(seed, &mut counts);
    }
    println!("{counts:?}");
    assert!(counts.most_pairs > 5 && counts.most_sessions > 2 && counts.stopped > 100, "{counts:?}");
    assert!(counts.waited > 100 && counts.hung_up > 100, "{counts:?}");
}
