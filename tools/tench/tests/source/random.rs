//! Random numbers of tests come from `tests/random`; each further generator would be one more sequence to trust.

use super::source;

/// Files with a generator or a mixing function of their own, and why.
const ALLOWED: [(&str, &str); 12] = [
    ("kernel/arch/host/src/canonical.rs", "mixes the words of a hash"),
    ("lab/bench/src/product/latency/load.rs", "is a load of equal instructions"),
    ("model/src/source.rs", "numbers of recorded seeds depend on its sequence"),
    ("tests/linux/hostile.c", "is a program for Linux, in C"),
    ("tests/random/src/lib.rs", "is the generator"),
    ("tools/tench/tests/source/random.rs", "says what is refused"),
    ("user/lib/slabs/src/random.rs", "reproduces R1's workloads"),
    ("user/programs/cores/src/traffic.rs", "is a program"),
    ("user/programs/hog/src/loads.rs", "is a load of equal instructions"),
    ("user/programs/mltest/network/src/digits.rs", "the trained network depends on its sequence"),
    ("user/programs/rps/src/moves.rs", "recorded games depend on its sequence"),
    ("user/servers/monitor/tests/simulation/mod.rs", "recorded seeds depend on its sequence"),
];

/// Multipliers of well-known generators: xorshift64*, Knuth's (decimal and hexadecimal), SplitMix64.
const MULTIPLIERS: [&str; 4] = ["2545f4914f6cdd1d", "6364136223846793005", "5851f42d4c957f2d", "bf58476d1ce4e5b9"];

/// Returns whether a line belongs to a generator: it has such a multiplier, or a step of Marsaglia's xorshift.
fn is_generator(line: &str) -> bool {
    let line = line.to_ascii_lowercase().replace('_', "");
    let is_step = line.contains("^=") && ["<< 13;", "<< 25;"].iter().any(|shift| line.contains(shift));
    is_step || MULTIPLIERS.iter().any(|multiplier| line.contains(multiplier))
}

#[test]
fn there_is_one_generator() {
    let mut files = [source::files("", ".rs"), source::files("", ".c")].concat();
    files.retain(|file| source::read(file).lines().any(is_generator));
    files.sort();
    let allowed = ALLOWED.map(|(file, _)| file);
    let further: Vec<_> = files.iter().filter(|file| !allowed.contains(&file.as_str())).collect();
    assert!(further.is_empty(), "{further:?}: use tench_random::Random (tests/random)");
    let gone: Vec<_> = allowed.iter().filter(|file| !files.iter().any(|found| found == *file)).collect();
    assert!(gone.is_empty(), "{gone:?}: no generator is there; take them off the list");
}

#[test]
fn generators_are_recognised() {
    assert!(is_generator("        state ^= state << 13;") && is_generator("x.wrapping_mul(0x2545_F491_4F6C_DD1D)"));
    assert!(!is_generator("let size = 1 << 13;") && !is_generator("bits ^= 1 << index;"));
}
