//! The terminal, as processes have it.

mod support;

use support::{Doing, Play};
use tench_linux_calls::Sysno;

/// Addresses in the program's data.
const MODES: u64 = 0x20_1200;
const DATA: u64 = 0x20_1300;
/// Offsets in the record of modes: the flags for how lines are edited, and the characters with a meaning.
const LOCAL: usize = 12;
const CHARACTERS: usize = 17;
const GET_MODES: u64 = 0x5401;
const SET_MODES: u64 = 0x5402;
const GET_GROUP: u64 = 0x540f;
const SET_GROUP: u64 = 0x5410;
const SIZE: u64 = 0x5413;

struct Game(Play);

impl Game {
    fn new(is_lent: bool) -> Game {
        Game(Play::with_terminal(4096, is_lent))
    }

    fn call(&mut self, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        self.0.call(id, call as u64, all).map(u64::cast_signed)
    }

    fn bytes(&mut self, id: u32, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let count = self.0.read(id, address, &mut bytes);
        assert_eq!(count, length);
        bytes
    }

    /// Types text.
    fn keys(&mut self, text: &str) {
        assert!(self.0.instance.system.memory.hardware.awaits_input, "somebody wants what is typed");
        self.0.instance.system.memory.hardware.awaits_input = false;
        self.0.instance.input(text.as_bytes());
    }

    /// Returns what was shown since the last time.
    fn shown(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.instance.system.memory.hardware.output)).unwrap()
    }

    /// Returns what a read of a process has got that waited, or that returned at once.
    fn got(&mut self, id: u32) -> String {
        assert_eq!(self.0.doing(id), Some(Doing::Runs), "the read is over");
        let count = self.0.thread(id).registers.x[0];
        String::from_utf8(self.bytes(id, DATA, count as usize)).unwrap()
    }

    fn read(&mut self, id: u32, length: u64) -> Option<i64> {
        self.call(id, Sysno::read, &[0, DATA, length])
    }

    /// Changes flags of how lines are edited, and how many bytes and tenths of a second a read without lines waits for.
    fn set_raw(&mut self, least: u8, tenths: u8) {
        assert_eq!(self.call(1, Sysno::ioctl, &[0, GET_MODES, MODES]), Some(0));
        let mut record = self.bytes(1, MODES, 40);
        // Without lines, echo and signals.
        record[LOCAL] &= !0o13;
        (record[CHARACTERS + 6], record[CHARACTERS + 5]) = (least, tenths);
        let words: Vec<u64> = record.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        self.0.put(1, MODES, &words);
        assert_eq!(self.call(1, Sysno::ioctl, &[0, SET_MODES, MODES]), Some(0));
    }

    fn fork(&mut self) -> u32 {
        self.call(1, Sysno::clone, &[17]).unwrap() as u32
    }

    fn end(self) {
        self.0.end();
    }
}

#[test]
fn lines_are_edited_and_shown() {
    let mut game = Game::new(true);
    assert_eq!(game.read(1, 100), None);
    game.keys("helx\x7flo");
    assert_eq!(game.shown(), "helx\x08 \x08lo");
    assert_eq!(game.0.doing(1), Some(Doing::Waits));
    game.keys("\rnext\r");
    assert_eq!((game.got(1), game.shown()), ("hello\n".into(), "\nnext\n".into()));
    assert_eq!(game.read(1, 2), Some(2));
    assert_eq!(game.read(1, 100), Some(3));
    assert_eq!(game.got(1), "xt\n");
    assert_eq!(game.read(1, 100), None);
    game.keys("\x04");
    assert_eq!(game.got(1), "", "the end");
    game.end();
}

#[test]
fn a_console_that_edits_lines_itself_shows_them_too() {
    let mut game = Game::new(false);
    assert_eq!(game.read(1, 100), None);
    game.keys("hello\n");
    assert_eq!((game.got(1), game.shown()), ("hello\n".into(), String::new()));
    assert_eq!(game.read(1, 100), None);
    game.0.instance.input(b"");
    assert_eq!(game.got(1), "", "the end");
    game.end();
}

#[test]
fn without_lines_each_byte_comes_at_once_or_in_time() {
    let mut game = Game::new(true);
    game.set_raw(1, 0);
    assert_eq!(game.read(1, 100), None);
    game.keys("a");
    assert_eq!((game.got(1), game.shown()), ("a".into(), String::new()));
    game.set_raw(0, 3);
    assert_eq!(game.read(1, 100), None);
    let deadline = game.0.instance.deadline().unwrap();
    assert_eq!(deadline - game.0.instance.system.memory.hardware.time, std::time::Duration::from_millis(300));
    game.0.instance.system.memory.hardware.time = deadline;
    game.0.instance.pass_time();
    assert_eq!(game.got(1), "", "the time is over");
    game.set_raw(3, 0);
    assert_eq!(game.read(1, 100), None);
    game.keys("xy");
    assert_eq!(game.0.doing(1), Some(Doing::Waits));
    game.keys("z");
    assert_eq!(game.got(1), "xyz");
    game.end();
}

#[test]
fn keys_are_signals_for_those_who_use_the_terminal() {
    let mut game = Game::new(true);
    let child = game.fork();
    assert_eq!(game.call(1, Sysno::setpgid, &[child.into(), child.into()]), Some(0));
    game.0.put(1, DATA, &[child.into()]);
    assert_eq!(game.call(1, Sysno::ioctl, &[0, SET_GROUP, DATA]), Some(0));
    assert_eq!(game.call(child, Sysno::read, &[0, DATA, 10]), None);
    game.keys("\x03");
    assert_eq!((game.0.doing(child), game.shown()), (None, "^C".into()), "it is ended, and nobody else");
    assert_eq!(game.0.doing(1), Some(Doing::Runs));
    game.end();
}

#[test]
fn who_reads_in_the_background_stops() {
    let mut game = Game::new(true);
    let child = game.fork();
    game.call(1, Sysno::setpgid, &[child.into(), child.into()]);
    assert_eq!(game.call(child, Sysno::read, &[0, DATA, 10]), None);
    assert!(game.0.instance.processes.get(child).unwrap().is_stopped);
    // Where it is ignored, there is an error.
    game.0.put(1, DATA, &[1, 0, 0, 0]);
    let other = {
        game.call(1, Sysno::rt_sigaction, &[21, DATA, 0, 8]);
        game.fork()
    };
    game.call(1, Sysno::setpgid, &[other.into(), other.into()]);
    assert_eq!(game.call(other, Sysno::read, &[0, DATA, 10]), Some(-5));
    // In the foreground it goes on.
    game.0.put(1, DATA, &[child.into()]);
    game.call(1, Sysno::ioctl, &[0, SET_GROUP, DATA]);
    game.call(1, Sysno::kill, &[child.into(), 18]);
    assert_eq!(game.0.doing(child), Some(Doing::Waits));
    game.keys("x\r");
    assert_eq!(game.got(child), "x\n");
    game.end();
}

#[test]
fn calls_about_terminals_fail_as_on_linux() {
    let mut game = Game::new(true);
    assert_eq!(game.call(1, Sysno::ioctl, &[0, GET_GROUP, DATA]), Some(0));
    assert_eq!(game.bytes(1, DATA, 4), [1, 0, 0, 0]);
    game.0.put(1, DATA, &[77]);
    assert_eq!(game.call(1, Sysno::ioctl, &[0, SET_GROUP, DATA]), Some(-3), "there is no such group");
    assert_eq!(game.call(1, Sysno::ioctl, &[0, SIZE, DATA]), Some(0));
    assert_eq!(game.bytes(1, DATA, 4), [24, 0, 80, 0]);
    assert_eq!(game.call(1, Sysno::ioctl, &[0, 0x54ff, DATA]), Some(-25));
    let child = game.fork();
    assert_eq!(game.call(child, Sysno::setsid, &[]), Some(child.into()));
    assert_eq!(game.call(child, Sysno::ioctl, &[0, GET_GROUP, DATA]), Some(-25), "not its terminal");
    game.end();
}

#[test]
fn errors_go_to_the_console_if_output_goes_elsewhere() {
    let mut game = Game(Play::with_redirected_output(4096));
    game.0.put(1, DATA, &[u64::from_le_bytes(*b"textual\n")]);
    for stream in [1, 2] {
        assert_eq!(game.call(1, Sysno::write, &[stream, DATA, 8]), Some(8));
        assert_eq!(u64::from(game.0.instance.system.memory.hardware.stream), stream);
    }
    game.end();
}
