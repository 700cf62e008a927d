//! Tests that a process can be killed at every step of what it does without leaving anything behind.
//!
//! With instructions as the clock, the victim is killed after k short times for each k; in real time, the moments
//! differ from run to run. The killer runs at a higher priority than all servers, so the victim is also killed while a
//! server works for it. Then all accounts are compared with those taken before, to the byte: each process's account at
//! the memory server, the capabilities in the servers' CSpaces, the registered names, and the memory server's account
//! against the kernel's.
//!
//! Servers keep their arrays and reply objects at the largest number that they ever needed, and the process server
//! remembers a number of ended processes. These are at their largest first: so many processes end that the first is
//! forgotten ([`fill_records`]), and some victims are killed that do not count. Memory counts in the blocks that the
//! memory server has given; a leak in a server's heap shows when the heap needs the next block.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::abi::Kind;
use tench::mem::Mem;
use tench::memory;
use tench::names::Names;
use tench::procs::protocol::State;
use tench::procs::{Failure as ProcsFailure, Procs};
use tench::sys::{Cap, CapAddress, Endpoint, Instant, Message};
use tench::thread::{self, Builder};
use tench::time::{self, Duration};

use crate::case::{Case, Failure, Outcome};
use crate::processes::start_with;
use crate::stage::Stage;
use crate::victim::{NAME, PATIENCE};

pub const CASES: &[Case] = &[
    Case::new("KILL0001", "killed at any step, a process leaves nothing: each fourth", |stage| at_every_step(stage, 0)),
    Case::new("KILL0002", "killed at any step, a process leaves nothing: the next", |stage| at_every_step(stage, 1)),
    Case::new("KILL0003", "killed at any step, a process leaves nothing: those after", |stage| at_every_step(stage, 2)),
    Case::new("KILL0004", "killed at any step, a process leaves nothing: the others", |stage| at_every_step(stage, 3)),
];

const PROCS: Procs = Procs::STANDARD;
/// Steps at which the victim is killed.
const STEPS: u64 = 400;
/// Threads that wait for the end of the first victim.
const WAITERS: usize = 8;
/// Priority of the killer: above all servers.
const PRIORITY: u8 = 230;

/// Everything that must be the same before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// Memory of each process: bytes, blocks, and bytes of objects.
    accounts: Vec<(u64, [u64; 3])>,
    /// Capabilities of each kind in the servers' CSpaces.
    capabilities: Vec<(u64, Vec<(Kind, u64)>)>,
    names: u64,
}

/// Takes all accounts, except for the killer's own memory.
pub fn take_inventory() -> Outcome<Inventory> {
    let (mut accounts, mut after) = (Vec::new(), 0);
    while let Ok(account) = Mem::STANDARD.next_account(after) {
        after = account.process;
        if after != tench::process::id() {
            accounts.push((after, [account.used, account.blocks, account.objects]));
        }
    }
    let mut capabilities = Vec::new();
    for name in ["procs", "names", "console", "clock", "files", "reserve"] {
        let server = PROCS.find(name, 0)?;
        capabilities.push((server, kinds(server)?));
    }
    let (mut names, mut name) = (0, String::new());
    while let Ok((next, _)) = Names::STANDARD.next(&name) {
        name = String::from(&*next);
        names += 1;
    }
    let audit = Mem::STANDARD.audit()?;
    equal!(audit.ledger, audit.kernel);
    Ok(Inventory { accounts, capabilities, names })
}

/// Returns the number of capabilities of each kind that a process has.
fn kinds(process: u64) -> Outcome<Vec<(Kind, u64)>> {
    let mut kinds: Vec<(Kind, u64)> = Vec::new();
    let mut from = CapAddress(1);
    while from != CapAddress::NULL {
        let (next, found) = PROCS.capabilities(process, from)?;
        for capability in found.iter() {
            match kinds.iter_mut().find(|(kind, _)| *kind == capability.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((capability.kind, 1)),
            }
        }
        from = next;
    }
    kinds.sort_unstable_by_key(|(kind, _)| *kind as u8);
    Ok(kinds)
}

/// Waits until the process's children have ended, and until no thread waits any more for what they waited for.
pub fn wait_until_gone(process: u64) -> Outcome {
    let mut after = 0;
    while let Ok(child) = PROCS.child(process, after) {
        PROCS.wait(child)?;
        after = child;
    }
    time::sleep(2 * PATIENCE);
    Ok(())
}

/// Starts a victim, kills it some time after its start or lets it end, and checks which parties are notified. Returns
/// whether it had ended by itself.
fn kill_after(ticks: u64, server: Cap<Endpoint>) -> Outcome<bool> {
    let victim = start_with(&["victim"], Some(server))?;
    let end = Instant::now().after(ticks);
    let waiter = Builder::new().priority(PRIORITY).spawn(move || PROCS.wait(victim))?;
    time::sleep_until(end);
    // If the victim has got that far, a thread waits for a reply that will never come.
    let slot = memory::take_slot()?;
    let caller = Names::STANDARD.look_up(NAME, slot).ok().map(|endpoint| {
        thread::spawn(move || {
            let is_refused = endpoint.call(&Message::new(0)).is_err();
            let _ = endpoint.delete();
            is_refused
        })
    });
    time::sleep(Duration::from_micros(1));
    let killed = PROCS.kill(victim);
    let has_ended = matches!(killed, Err(ProcsFailure::Refused(tench::procs::protocol::Error::WrongState)));
    check!(killed.is_ok() || has_ended);
    let expected = if has_ended { State::Exited } else { State::Killed };
    equal!(waiter.join()?.state, expected);
    if let Some(caller) = caller {
        check!(caller.join());
    }
    memory::free_slot(slot);
    wait_until_gone(victim)?;
    Ok(has_ended)
}

/// Starts a small program and kills it before its first instruction. Returns its number.
fn end_one() -> Outcome<u64> {
    let child = PROCS.spawn("hello", &[])?;
    PROCS.kill(child)?;
    equal!(PROCS.wait(child)?.state, State::Killed);
    Ok(child)
}

/// Lets processes end until the process server has forgotten the first of them: then it remembers as many as it ever
/// does, and grows no more.
pub fn fill_records() -> Outcome {
    static IS_FULL: AtomicBool = AtomicBool::new(false);
    if !IS_FULL.swap(true, Ordering::Relaxed) {
        let first = end_one()?;
        while PROCS.status(first).is_ok() {
            end_one()?;
        }
    }
    Ok(())
}

fn kill_at_all(server: Cap<Endpoint>, quarter: u64) -> Outcome {
    fill_records()?;
    let victim = start_with(&["victim"], Some(server))?;
    let begin = Instant::now();
    // More threads wait at once than later, because the process server keeps its reply objects.
    let wait = |_| Builder::new().priority(PRIORITY).spawn(move || PROCS.wait(victim));
    let waiters = (0..WAITERS).map(wait).collect::<Result<Vec<_>, _>>()?;
    equal!(PROCS.wait(victim)?.state, State::Exited);
    let life = Instant::now().since(begin);
    for waiter in waiters {
        equal!(waiter.join()?.state, State::Exited);
    }
    time::sleep(2 * PATIENCE);
    // Lets the servers' arrays grow to their final size.
    for part in 1..9 {
        kill_after(life * part / 8, server)?;
    }
    let before = take_inventory()?;
    let mut ended = 0;
    for number in 0..STEPS / 4 {
        let ticks = life * (number * 4 + quarter) / STEPS;
        let has_ended = kill_after(ticks, server)?;
        // In real time the victim may be faster or slower than before; mostly it is still running.
        ended += u64::from(has_ended);
        let after = take_inventory()?;
        if after != before {
            return Err(Failure::new(format!("killed after {ticks} ticks: {after:?}, before: {before:?}")));
        }
    }
    check!(ended < STEPS / 8);
    Ok(())
}

/// Runs every fourth step, beginning with `quarter`, so that progress is printed in between.
fn at_every_step(stage: &mut Stage, quarter: u64) -> Outcome {
    let server = stage.endpoint()?;
    let killer = Builder::new().priority(PRIORITY).spawn(move || kill_at_all(server, quarter))?;
    killer.join()
}
