//! System V IPC: attachments, waits and undo, over the ends of the processes that use it.

mod support;

use support::{Doing, Play};
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;

/// Addresses in the program's data, and where a segment is attached.
const DATA: u64 = 0x20_1300;
const OPERATION: u64 = 0x20_1400;
const SEGMENT: u64 = 0x40_0000;
const FORK: u64 = 17;
const CREATE: u64 = 0o1600;
const UNDO: i16 = 0o10000;
/// Commands.
const REMOVE: u64 = 0;
const STATUS: u64 = 2;
const VALUE: u64 = 12;
const COUNT_UP: u64 = 14;
/// Where a segment's record says how often it is attached, and who was the last to change that.
const ATTACHMENTS: u64 = 88;
const LAST: u64 = 84;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let result = play.call(id, call as u64, all).map(u64::cast_signed);
    play.check();
    result
}

fn refused(error: Errno) -> Option<i64> {
    Some((-error.into_raw()).into())
}

fn fork(play: &mut Play) -> u32 {
    call(play, 1, Sysno::clone, &[FORK]).unwrap() as u32
}

fn half(play: &mut Play, address: u64) -> u32 {
    let mut bytes = [0; 4];
    assert_eq!(play.read(1, address, &mut bytes), 4);
    u32::from_le_bytes(bytes)
}

/// Returns how often a segment is attached, and by whom that was changed last.
fn attached(play: &mut Play, segment: u64) -> (u32, u32) {
    assert_eq!(call(play, 1, Sysno::shmctl, &[segment, STATUS, DATA]), Some(0));
    (half(play, DATA + ATTACHMENTS), half(play, DATA + LAST))
}

/// Makes a segment, and attaches it.
fn segment(play: &mut Play) -> u64 {
    let id = call(play, 1, Sysno::shmget, &[5, 3 * 4096, CREATE]).unwrap().cast_unsigned();
    assert_eq!(call(play, 1, Sysno::shmat, &[id, SEGMENT, 0]), Some(SEGMENT as i64));
    play.write(1, SEGMENT, b"shared");
    id
}

#[test]
fn attachments_are_counted_over_fork_program_and_end() {
    let mut play = Play::new(4096);
    let id = segment(&mut play);
    assert_eq!(attached(&mut play, id), (1, 1));
    let [one, two, three] = [(); 3].map(|()| fork(&mut play));
    assert_eq!(attached(&mut play, id), (4, 1));
    let mut bytes = [0; 6];
    assert_eq!((play.read(two, SEGMENT, &mut bytes), &bytes), (6, b"shared"));
    assert_eq!(call(&mut play, one, Sysno::exit_group, &[0]), None);
    assert_eq!(attached(&mut play, id), (3, one));
    play.write(two, DATA, b"/bin/program\0");
    call(&mut play, two, Sysno::execve, &[DATA, 0, 0]);
    assert_eq!(attached(&mut play, id), (2, two));
    call(&mut play, 1, Sysno::kill, &[three.into(), 9]);
    assert_eq!(attached(&mut play, id), (1, three));
    assert_eq!(call(&mut play, 1, Sysno::munmap, &[SEGMENT + 4096, 4096]), Some(0));
    assert_eq!(attached(&mut play, id), (2, 1));
    assert_eq!(call(&mut play, 1, Sysno::mmap, &[SEGMENT, 4096, 3, 0x32, 0, 0]), Some(SEGMENT as i64));
    assert_eq!(attached(&mut play, id), (1, 1));
    assert_eq!(call(&mut play, 1, Sysno::shmdt, &[SEGMENT]), Some(0));
    assert_eq!(attached(&mut play, id), (0, 1));
    play.end();
}

#[test]
fn a_segment_that_was_removed_ends_with_its_last_process() {
    let mut play = Play::new(4096);
    let objects = play.instance.system.memory.objects.count();
    let id = segment(&mut play);
    let child = fork(&mut play);
    assert_eq!(call(&mut play, 1, Sysno::shmctl, &[id, REMOVE]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::shmdt, &[SEGMENT]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::shmget, &[5, 1, 0]), refused(Errno::ENOENT));
    assert_eq!(play.instance.system.ipc.segments.count(), 1);
    call(&mut play, child, Sysno::exit_group, &[0]);
    assert_eq!(play.instance.system.ipc.segments.count(), 0);
    assert_eq!(play.instance.system.memory.objects.count(), objects);
    play.end();
}

#[test]
fn what_nobody_has_removed_ends_with_the_instance() {
    let mut play = Play::new(4096);
    segment(&mut play);
    play.end();
}

/// Makes a set of one semaphore.
fn semaphore(play: &mut Play) -> u64 {
    call(play, 1, Sysno::semget, &[0, 1, CREATE]).unwrap().cast_unsigned()
}

fn operate(play: &mut Play, id: u32, set: u64, change: i16, flags: i16) -> Option<i64> {
    let record = [0, change, flags].map(i16::to_le_bytes).concat();
    play.write(id, OPERATION, &record);
    call(play, id, Sysno::semop, &[set, OPERATION, 1])
}

fn ask(play: &mut Play, set: u64, command: u64) -> Option<i64> {
    call(play, 1, Sysno::semctl, &[set, 0, command])
}

#[test]
fn an_end_undoes_and_who_waits_goes_on_in_order() {
    let mut play = Play::new(4096);
    let set = semaphore(&mut play);
    let [first, second, holder] = [(); 3].map(|()| fork(&mut play));
    assert_eq!(operate(&mut play, 1, set, 1, 0), Some(0));
    assert_eq!(operate(&mut play, holder, set, -1, UNDO), Some(0));
    assert_eq!(operate(&mut play, second, set, -1, UNDO), None);
    assert_eq!(operate(&mut play, first, set, -1, 0), None);
    assert_eq!(ask(&mut play, set, COUNT_UP), Some(2));
    call(&mut play, 1, Sysno::kill, &[holder.into(), 9]);
    assert_eq!((play.doing(second), play.doing(first)), (Some(Doing::Runs), Some(Doing::Waits)));
    call(&mut play, 1, Sysno::kill, &[second.into(), 9]);
    assert_eq!((play.doing(first), ask(&mut play, set, VALUE)), (Some(Doing::Runs), Some(0)));
    assert_eq!(play.thread(first).registers.x[0], 0);
    play.end();
}

#[test]
fn a_limit_and_a_kill_end_a_wait_and_leave_nothing() {
    let mut play = Play::new(4096);
    let set = semaphore(&mut play);
    let child = fork(&mut play);
    assert_eq!(operate(&mut play, child, set, -1, 0), None);
    call(&mut play, 1, Sysno::kill, &[child.into(), 9]);
    assert_eq!(ask(&mut play, set, COUNT_UP), Some(0));
    let child = fork(&mut play);
    play.put(child, DATA, &[1, 0]);
    let record = [0, -1, 0].map(i16::to_le_bytes).concat();
    play.write(child, OPERATION, &record);
    assert_eq!(call(&mut play, child, Sysno::semtimedop, &[set, OPERATION, 1, DATA]), None);
    let deadline = play.instance.deadline().unwrap();
    play.instance.system.memory.hardware.time = deadline;
    play.instance.pass_time();
    play.check();
    assert_eq!(play.doing(child), Some(Doing::Runs));
    assert_eq!(Some(play.thread(child).registers.x[0].cast_signed()), refused(Errno::EAGAIN));
    assert_eq!(ask(&mut play, set, COUNT_UP), Some(0));
    play.end();
}

#[test]
fn a_message_reaches_who_waits_and_a_removed_queue_says_so() {
    let mut play = Play::new(4096);
    let queue = call(&mut play, 1, Sysno::msgget, &[0, CREATE]).unwrap().cast_unsigned();
    let child = fork(&mut play);
    let receive = [queue, DATA, 8, 0, 0];
    assert_eq!(call(&mut play, child, Sysno::msgrcv, &receive), None);
    play.put(1, DATA, &[7, 0x6261]);
    assert_eq!(call(&mut play, 1, Sysno::msgsnd, &[queue, DATA, 2, 0]), Some(0));
    assert_eq!((play.doing(child), play.thread(child).registers.x[0]), (Some(Doing::Runs), 2));
    let mut message = [0; 10];
    assert_eq!(play.read(child, DATA, &mut message), message.len());
    assert_eq!(&message, b"\x07\0\0\0\0\0\0\0ab");
    for _ in 0..2 {
        assert_eq!(call(&mut play, 1, Sysno::msgsnd, &[queue, DATA, 8192, 0]), Some(0));
    }
    assert_eq!(call(&mut play, child, Sysno::msgsnd, &[queue, DATA, 1, 0]), None, "it is full");
    assert_eq!(call(&mut play, 1, Sysno::msgctl, &[queue, REMOVE]), Some(0));
    assert_eq!(Some(play.thread(child).registers.x[0].cast_signed()), refused(Errno::EIDRM));
    play.end();
}

#[test]
fn a_large_set_asks_for_memory_first() {
    let mut play = Play::new(4096);
    play.instance.system.memory.hardware.set_can_allocate(|bytes| bytes < 600 * 1024);
    assert_eq!(call(&mut play, 1, Sysno::semget, &[0, 32_000, CREATE]), refused(Errno::ENOMEM));
    assert_eq!(play.instance.system.ipc.semaphores.count(), 0);
}
