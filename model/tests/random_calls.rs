//! Makes 10⁵ random system calls with every shape of argument, and checks the kernel's whole state after each.
//!
//! `TENCH_SEED=n` replays the episode of seed `n` alone; `TENCH_CALLS=n` sets the number of calls. With both, the
//! episodes from that seed on are played.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tench_abi::Operation;
use tench_kernel::latency_tracer::MEASURING;
use tench_model::executions::play;
use tench_model::player::Player;
use tench_model::source::{Seeded, Source};

/// Number of events of one episode; each episode begins on a new machine.
const EPISODE: u64 = 600;

/// Returns a number from the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// Plays one episode. Reports any failure with its seed.
fn episode(seed: u64) -> Player {
    let mut player = Player::new(!seed, seed.is_multiple_of(2));
    let mut source = Seeded::new(seed);
    let result = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..EPISODE {
            match player.step(&mut source) {
                Ok(true) => {}
                Ok(false) => break,
                Err(wrong) => panic!("the state is inconsistent: {wrong}"),
            }
        }
    }));
    if let Err(payload) = result {
        eprintln!("seed {seed}, call {}; the last events:\n  {}", player.calls, player.history.join("\n  "));
        eprintln!("replay with TENCH_SEED={seed}");
        // Suspended entries may unwind through broken state.
        std::mem::forget(player);
        resume_unwind(payload);
    }
    player
}

#[test]
fn random_calls_harm_nobody() {
    let (wanted, first) = (variable("TENCH_CALLS"), variable("TENCH_SEED"));
    if let (None, Some(seed)) = (wanted, first) {
        episode(seed);
        return;
    }
    let (wanted, first) = (wanted.unwrap_or(100_000), first.unwrap_or(0));
    let (mut calls, mut seed) = (0, first);
    let (mut succeeded, mut refused) = ([0; 128], [0; 128]);
    let (mut preemptions, mut points) = (0, 0);
    while calls < wanted {
        let mut player = episode(seed);
        calls += player.calls;
        seed += 1;
        for i in 0..128 {
            succeeded[i] += player.succeeded[i];
            refused[i] += player.refused[i];
        }
        let statistics = player.machine.kernel().state().statistics;
        preemptions += statistics.preemptions;
        points += statistics.preemption_points;
    }
    println!("{calls} calls in {} episodes, {points} preemption points, {preemptions} preemptions", seed - first);
    for operation in Operation::ALL {
        let number = *operation as usize;
        println!("{:>22}: {:>6} succeeded, {:>6} refused", operation.name(), succeeded[number], refused[number]);
    }
    for operation in Operation::ALL {
        let number = *operation as usize;
        // Most kernels do not measure interrupts-off intervals.
        let can_succeed = *operation != Operation::KernelIrqOff || MEASURING;
        assert!(
            (succeeded[number] > 0) == can_succeed,
            "{operation} succeeded {} times: the test has gone blind",
            succeeded[number]
        );
        assert!(refused[number] > 0 || *operation == Operation::Yield, "{operation} was never refused");
    }
    assert_eq!(
        preemptions > 0,
        tench_kernel::preemption_point::PREEMPTIBLE,
        "{preemptions} preemption points switched threads"
    );
}

#[test]
fn bytes_are_played_as_a_fuzzer_would() {
    for seed in 0..20 {
        let mut source = Seeded::new(seed);
        let bytes: Vec<u8> = (0..4000).map(|_| source.word() as u8).collect();
        let calls = play(&bytes).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        assert!(calls > 20, "seed {seed}: only {calls} calls");
    }
}
