//! Mounts of Tench's file server: what Linux programs see of it, and what they change there.

mod attacks;
mod load;
mod meanwhile;
mod random;
mod seen;
#[path = "../support/mod.rs"]
mod support;

use support::files::OTHER;
use support::limited::{LEFT, Limited, can_allocate};
use support::{Doing, Play};
use tench_files_interface::protocol::{How, Status, Usage};
use tench_linux::mounts::Mount;
use tench_linux::mounts::errand::{self, Errand, FileServer, Finding, Name};
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;
use tench_linux_memory::Access;

#[global_allocator]
static HEAP: Limited = Limited;

const PATH: u64 = 0x20_1300;
const OTHER_PATH: u64 = 0x20_1400;
const RECORD: u64 = 0x20_1500;
const BUFFER: u64 = 0x20_2000;
/// Size of the buffer in bytes.
const ROOM: u64 = 0x3000;
const HERE: u64 = (-100i64).cast_unsigned();

/// Flags of a thread.
const THREAD: u64 = 0x5_0f00;

const RDONLY: u64 = 0;
const WRONLY: u64 = 1;
const RDWR: u64 = 2;
const CREAT: u64 = 0o100;
const EXCL: u64 = 0o200;
const TRUNC: u64 = 0o1000;
const APPEND: u64 = 0o2000;

const EPERM: i64 = -1;
const ENOENT: i64 = -2;
const EACCES: i64 = -13;
const EBUSY: i64 = -16;
const EEXIST: i64 = -17;
const EXDEV: i64 = -18;
const ENODEV: i64 = -19;
const EINVAL: i64 = -22;
const ENOSPC: i64 = -28;
const EROFS: i64 = -30;
const ENAMETOOLONG: i64 = -36;
const ENOTEMPTY: i64 = -39;
const ESTALE: i64 = -116;

fn call(play: &mut Play, call: Sysno, arguments: &[u64]) -> i64 {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let result = play.call_outside(1, call as u64, all);
    play.check();
    assert_eq!(play.instance.system.mounts.inquiries(), 0, "a call that is over leaves no inquiry");
    result
}

fn path(play: &mut Play, at: u64, path: &str) -> u64 {
    play.write(1, at, path.as_bytes());
    play.write(1, at + path.len() as u64, &[0]);
    at
}

fn open(play: &mut Play, name: &str, flags: u64) -> i64 {
    let name = path(play, PATH, name);
    call(play, Sysno::openat, &[HERE, name, flags, 0o644])
}

fn opened(play: &mut Play, name: &str, flags: u64) -> u64 {
    let result = open(play, name, flags);
    assert!(result >= 0, "{name}: {result}");
    result.cast_unsigned()
}

fn write(play: &mut Play, file: u64, bytes: &[u8]) -> i64 {
    play.write(1, BUFFER, bytes);
    call(play, Sysno::write, &[file, BUFFER, bytes.len() as u64])
}

fn read(play: &mut Play, file: u64) -> Vec<u8> {
    let count = call(play, Sysno::read, &[file, BUFFER, ROOM]);
    bytes(play, BUFFER, usize::try_from(count).unwrap())
}

fn bytes(play: &mut Play, at: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    assert_eq!(play.read(1, at, &mut bytes), count);
    bytes
}

/// Returns what a program reads from a file.
fn contents_of(play: &mut Play, name: &str) -> Vec<u8> {
    let file = opened(play, name, RDONLY);
    let all = read(play, file);
    call(play, Sysno::close, &[file]);
    all
}

fn with_path(play: &mut Play, number: Sysno, name: &str, rest: &[u64]) -> i64 {
    let name = path(play, PATH, name);
    call(play, number, &[&[HERE, name], rest].concat())
}

fn rename(play: &mut Play, from: &str, to: &str, flags: u64) -> i64 {
    let (from, to) = (path(play, PATH, from), path(play, OTHER_PATH, to));
    call(play, Sysno::renameat2, &[HERE, from, HERE, to, flags])
}

fn field(play: &mut Play, at: u64) -> u64 {
    u64::from_le_bytes(bytes(play, RECORD + at, 8).try_into().unwrap())
}

/// Returns the mode, the length and the time of the last change in seconds of the file at a path.
fn status(play: &mut Play, name: &str) -> Result<(u64, u64, u64), i64> {
    match with_path(play, Sysno::fstatat, name, &[RECORD, 0]) {
        0 => Ok((field(play, 16) & 0xffff_ffff, field(play, 48), field(play, 88))),
        error => Err(error),
    }
}

/// Returns the names in a directory, in order.
fn names(play: &mut Play, name: &str) -> Vec<String> {
    let directory = opened(play, name, RDONLY);
    let mut all = Vec::new();
    loop {
        let count = call(play, Sysno::getdents64, &[directory, BUFFER, ROOM]);
        if count <= 0 {
            break;
        }
        let records = bytes(play, BUFFER, count as usize);
        let mut rest = &records[..];
        while !rest.is_empty() {
            let size = usize::from(u16::from_le_bytes([rest[16], rest[17]]));
            let end = rest[19..].iter().position(|byte| *byte == 0).unwrap();
            all.push(String::from_utf8(rest[19..19 + end].to_vec()).unwrap());
            rest = &rest[size..];
        }
    }
    call(play, Sysno::close, &[directory]);
    all.retain(|name| !name.starts_with('.'));
    all.sort();
    all
}

fn outside(play: &mut Play) -> &mut support::Files {
    &mut play.instance.system.memory.hardware.files
}

/// Returns a program that sees the file server's `tmp` at `/mnt`, and all files of the server at `/tench`, read-only.
fn mounted() -> Play {
    let mut play = Play::new(4096);
    play.mount("tmp", "/mnt", false);
    play.mount("", "/tench", true);
    play
}

/// Begins a call of a process, which may have to wait.
fn begin(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<u64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all)
}

fn result(play: &mut Play, id: u32) -> i64 {
    let thread = play.thread(id);
    assert_eq!(thread.doing, Doing::Runs, "the call is over");
    thread.registers.x[0].cast_signed()
}

fn own_file(play: &mut Play, name: &str, bytes: &[u8]) {
    let file = opened(play, name, WRONLY | CREAT);
    assert_eq!(write(play, file, bytes), bytes.len() as i64);
    assert_eq!(call(play, Sysno::close, &[file]), 0);
}

fn pipe(play: &mut Play) -> (u64, u64) {
    assert_eq!(call(play, Sysno::pipe2, &[RECORD, 0]), 0);
    let both = field(play, 0);
    (both & 0xffff_ffff, both >> 32)
}

/// Lets another program write bytes over the beginning of a file.
fn forget_and_own(play: &mut Play, path: &str, bytes: &[u8]) {
    use tench_linux::mounts::errand::FileServer;
    let mut other = outside(play).open_for(OTHER, path, How::Update).unwrap();
    outside(play).write(&mut other, 0, bytes).unwrap();
}
