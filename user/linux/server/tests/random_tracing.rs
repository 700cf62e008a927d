//! Random requests of tracers beside signals, forks and ends. No thread stays stopped whose tracer has ended, and when
//! all have been killed, the first process learns of each end and nothing is left.

mod support;

use support::Play;
use tench_linux_calls::Sysno;
use tench_linux_memory::Access;
use tench_random::Random;

const DATA: u64 = 0x20_1300;
/// Flags of `clone`: for a process, for one whose parent waits, and for a thread.
const MADE: [u64; 3] = [17, 0x4111, 0x5_0f00];
/// The requests, those that begin tracing and let threads go on more often.
const REQUESTS: [u64; 26] = [
    0, 0, 1, 4, 7, 7, 7, 7, 8, 9, 9, 16, 16, 17, 24, 24, 24, 0x4200, 0x4202, 0x4204, 0x4206, 0x4206, 0x4206, 0x4207,
    0x4207, 0x4208,
];
/// The signals: `SIGUSR1`, `SIGCHLD`, `SIGCONT`, `SIGSTOP`, `SIGTSTP`, `SIGWINCH`, and 0 for none.
const SIGNALS: [u64; 8] = [10, 17, 18, 18, 19, 20, 28, 0];
const KILL: u64 = 9;
const NOHANG: u64 = 1;
const ALL: u64 = 0x4000_0002;
const ECHILD: u64 = (-10i64).cast_unsigned();
const STEPS: u64 = 150;
const RUNS: u64 = 120;

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}

/// Makes a random call of a thread. The first process is neither traced nor stopped, and does not wait.
fn step(play: &mut Play, random: &mut Random, id: u32) {
    let all: Vec<u32> = play.instance.processes.iter().flat_map(|process| &process.threads).map(|one| one.id).collect();
    let others: Vec<u64> = all.iter().filter(|other| **other != 1).map(|other| (*other).into()).collect();
    let other = if others.is_empty() { 99 } else { pick(random, &others) };
    if id != 1 && random.below(12) == 0 {
        return act_otherwise(play, random, id);
    }
    let mut call = |call: Sysno, arguments: [u64; 4]| {
        let [a, b, c, d] = arguments;
        play.call(id, call as u64, [a, b, c, d, 0, 0]);
    };
    match random.below(16) {
        0..3 if all.len() < 12 => {
            let flags = pick(random, if id == 1 { &MADE[..1] } else { &MADE });
            call(Sysno::clone, [flags, if flags == MADE[2] { 0x20_4000 } else { 0 }, 0, 0]);
        }
        0..9 => {
            let request = pick(random, &REQUESTS);
            if request != 0 || id != 1 {
                let options = random.below(0x80) | (random.below(4) / 3) << 20;
                let data = if matches!(request, 0x4200 | 0x4206) { options } else { pick(random, &SIGNALS) };
                let address = if request == 0x4206 { 0 } else { DATA };
                call(Sysno::ptrace, [request, other, address, data]);
            }
        }
        9..11 => call(Sysno::tkill, [other, pick(random, &SIGNALS), 0, 0]),
        11 | 12 => call(Sysno::wait4, [u64::MAX, 0, NOHANG | ALL, 0]),
        13 if id != 1 => call(Sysno::ppoll, [0, 0, 0, 0]),
        14 if id != 1 => call(pick(random, &[Sysno::exit, Sysno::exit_group, Sysno::execve]), [DATA, 0, 0, 0]),
        _ => call(Sysno::getpid, [0; 4]),
    }
}

/// Lets a thread send a call, which may wait, or touch memory.
fn act_otherwise(play: &mut Play, random: &mut Random, id: u32) {
    match random.below(4) {
        0 => _ = play.send(id, Sysno::getpid as u64, [0; 6]),
        1 => _ = play.send(id, Sysno::ppoll as u64, [0; 6]),
        _ => play.fault(id, pick(random, &[DATA, 0x20_4008, 0x20_0000]), Access::Read),
    }
}

/// Returns a process that lives, beside the first one.
fn living(play: &Play) -> Option<u32> {
    play.instance.processes.iter().find(|process| process.id != 1 && !process.has_ended()).map(|process| process.id)
}

#[test]
fn tracers_lose_no_threads() {
    for seed in 0..RUNS {
        let random = &mut Random::new(seed);
        let mut play = Play::new(4096);
        play.write(1, DATA, b"/bin/program\0");
        for _ in 0..STEPS {
            let running = play.running();
            let id = pick(random, &running);
            // A step may also be a call or a fault, before which the processor raises no exception.
            let is_call = play.thread(id).steps && random.below(4) == 0;
            if is_call {
                play.thread(id).steps = false;
            }
            if play.thread(id).steps {
                play.make_step(id);
            } else {
                step(&mut play, random, id);
            }
            play.check();
        }
        // One that goes on because its tracer has ended may make a further process.
        while let Some(id) = living(&play) {
            play.call(1, Sysno::kill as u64, [id.into(), KILL, 0, 0, 0, 0]);
            play.check();
        }
        let wait = [u64::MAX, 0, NOHANG | ALL, 0, 0, 0];
        let learns_all = (0..1000).any(|_| play.call(1, Sysno::wait4 as u64, wait) == Some(ECHILD));
        assert!(learns_all, "seed {seed}");
        assert_eq!(play.instance.processes.count(), 1, "seed {seed}");
        play.end();
    }
}
