//! Tests that programs making random system calls harm no others.

use alloc::vec::Vec;
use tench::abi::Powers;
use tench::abi::object::Statistic;

use tench::mem::{Account, Mem};
use tench::println;
use tench::procs::Procs;
use tench::procs::protocol::State;

use crate::case::{Case, Outcome};
use crate::child::COMPLIED;
use crate::stage::{KERNEL, LOW, Stage};
use crate::worker::pause;

pub const CASES: &[Case] = &[
    Case::new("RND0001", "programs that make system calls at random harm nobody", random),
    Case::new("RND0002", "processes that come and go leave no memory behind", come_and_go),
];

/// Processes started one after the other, and the most calls that each makes.
const CHILDREN: u64 = 60;
const CALLS: &str = "4000";
/// Pauses after which a process that waits for ever is killed.
const ROUNDS: usize = 200;

/// Runs one such process to its end, which may be forced.
fn play_one(stage: &mut Stage, seed: u64) -> Outcome<State> {
    let procs = Procs::STANDARD;
    let spawn = procs.prepare("cases")?;
    let seed = alloc::format!("{seed}");
    for argument in ["random", &seed, CALLS] {
        spawn.argument(argument)?;
    }
    spawn.configure(LOW as u8, LOW as u8, 0, Powers::empty())?;
    // Its output goes to an endpoint without a receiver.
    spawn.give_in(stage.endpoint()?, tench::abi::layout::slot::CONSOLE)?;
    let process = spawn.start()?;
    for _ in 0..ROUNDS {
        pause(stage)?;
        if procs.status(process)?.state.has_ended() {
            break;
        }
    }
    if !procs.status(process)?.state.has_ended() {
        procs.kill(process)?;
    }
    Ok(procs.wait(process)?.state)
}

/// Returns the memory server's accounts without the process server's, which remembers the last thousands of processes.
fn accounts() -> Vec<Account> {
    let procs = Procs::STANDARD.find("procs", 0).unwrap_or(0);
    let mut accounts = Vec::new();
    let mut last = 0;
    while let Ok(account) = Mem::STANDARD.next_account(last) {
        last = account.process;
        if account.process != procs {
            accounts.push(account);
        }
    }
    accounts
}

/// Fails unless the servers and the kernel are as they should be.
fn all_is_well() -> Outcome {
    let procs = Procs::STANDARD;
    equal!(procs.wait(procs.spawn("cases", &["comply"])?)?.exit_code(), Some(COMPLIED));
    for statistic in Statistic::ALL {
        KERNEL.query(statistic)?;
    }
    Ok(())
}

fn random(stage: &mut Stage) -> Outcome {
    all_is_well()?;
    // The servers' heaps grow the first time to what they need, and must not grow the second time.
    play_all(stage)?;
    let before = accounts();
    let ends = play_all(stage)?;
    println!("  of {CHILDREN} random programs {} exited, {} faulted, {} were killed", ends[0], ends[1], ends[2]);
    equal!(accounts(), before);
    Ok(())
}

/// Runs all such processes, one after the other. Returns the number of each kind of end.
fn play_all(stage: &mut Stage) -> Outcome<[u64; 3]> {
    let mut ends = [0; 3];
    for seed in 1..=CHILDREN {
        match play_one(stage, seed)? {
            State::Exited => ends[0] += 1,
            State::Faulted => ends[1] += 1,
            _ => ends[2] += 1,
        }
        stage.clear()?;
        all_is_well()?;
    }
    Ok(ends)
}

fn come_and_go(_: &mut Stage) -> Outcome {
    all_is_well()?;
    let before = accounts();
    for _ in 0..20 {
        all_is_well()?;
    }
    equal!(accounts(), before);
    Ok(())
}
