//! Programs that make random calls. They may end themselves, and nothing else.

mod support;

use support::Instance;
use tench_linux::Outcome;
use tench_linux_calls::Sysno;
use tench_linux_memory::Access;
use tench_random::Random;

/// Address of the mapped file.
const FILE: u64 = 0x30_0000;

/// Addresses in the program's data, in a mapped file, at ends of areas, and nowhere.
const ADDRESSES: [u64; 12] =
    [0, 1, 8, 0x20_0000, 0x20_1000, 0x20_1ff8, 0x20_5ff9, 0x20_6000, 0x7fff_ffff_e000, 1 << 47, u64::MAX - 7, u64::MAX];

/// Paths that lie in the program's data.
const PATHS: [(u64, &[u8]); 6] = [
    (0x20_1100, b"/tmp/a\0"),
    (0x20_1110, b"b\0"),
    (0x20_1120, b"/dev/zero\0"),
    (0x20_1130, b"/bin/program\0"),
    (0x20_1140, b"..\0"),
    (0x20_1150, b"/tmp/a/c\0"),
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

/// Calls that end the program.
const LEFT_OUT: [Sysno; 5] = [Sysno::exit, Sysno::exit_group, Sysno::kill, Sysno::tkill, Sysno::tgkill];

/// Calls with much to go wrong, which are made more often.
const PREFERRED: [Sysno; 10] = [
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
];

fn number(random: &mut Random) -> u64 {
    if random.below(4) == 0 {
        return PREFERRED[random.below(PREFERRED.len() as u64) as usize] as u64;
    }
    loop {
        let number = if random.below(50) == 0 { random.below(u64::MAX) } else { random.below(300) };
        if !LEFT_OUT.iter().any(|call| *call as u64 == number) {
            return number;
        }
    }
}

fn write_paths(instance: &mut Instance) {
    for (address, path) in PATHS {
        // The program may have changed what it may do there.
        instance.process.space.write(&mut instance.system.memory, address, path);
    }
}

/// Maps a file, which both the process and its calls change.
fn map_a_file(instance: &mut Instance) {
    let mut call = |call: Sysno, arguments| match instance.call(call as u64, arguments) {
        Outcome::Return(result) if result.cast_signed() >= 0 => result,
        other => panic!("{call}: {other:?}"),
    };
    let file = call(Sysno::openat, [0, PATHS[0].0, 0o102, 0o644, 0, 0]);
    call(Sysno::ftruncate, [file, 3 * 4096, 0, 0, 0, 0]);
    call(Sysno::mmap, [FILE, 3 * 4096, 3, 0x11, file, 0]);
}

/// Makes random calls. Returns how many succeeded.
fn play(seed: u64, calls: usize) -> usize {
    let mut succeeded = 0;
    let mut random = Random::new(seed);
    let mut instance = Instance::new(2048);
    write_paths(&mut instance);
    map_a_file(&mut instance);
    for step in 0..calls {
        let arguments = std::array::from_fn(|_| argument(&mut random));
        match instance.call(number(&mut random), arguments) {
            Outcome::Return(result) => succeeded += usize::from(result.cast_signed() >= 0),
            // The new program has the same data, but for the paths.
            Outcome::Run { .. } => write_paths(&mut instance),
            Outcome::Exit(_) | Outcome::Kill(_) => unreachable!("these calls are not made"),
        }
        let access = [Access::Read, Access::Write, Access::Execute][random.below(3) as usize];
        instance.touch(argument(&mut random), access);
        instance.touch(FILE + random.below(0x3000), access);
        instance.system.memory.hardware.reports.clear();
        instance.system.memory.hardware.output.clear();
        if step % 16 == 0 {
            instance.check();
        }
    }
    instance.check();
    instance.end();
    succeeded
}

#[test]
fn random_calls_harm_nobody_else() {
    let succeeded: usize = (0..100).map(|seed| play(seed, 2000)).sum();
    println!("{succeeded} of 200,000 calls succeeded");
    assert!(succeeded > 10_000, "only {succeeded} calls did something");
}
