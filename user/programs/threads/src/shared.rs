//! Locks, semaphores and conditions that two processes share.
//!
//! Cells of the frame: 0 a lock, 1 a semaphore, 2 a condition, 3 and 4 words.

use alloc::string::String;
use core::sync::atomic::Ordering;

use tench::abi::layout::slot;
use tench::procs::Procs;
use tench::runtime::text;
use tench::sync::shared::{Error, Group, Member, Taken};
use tench::sys::{Cap, CapAddress, Endpoint, Frame};
use tench::thread;
use tench::time::{self, Duration};

use crate::check;

const LOCK: usize = 0;
const PERMITS: usize = 1;
const CONDITION: usize = 2;
const COUNT: usize = 3;
const STEP: usize = 4;
const CELLS: usize = 5;
/// Number that each process adds to the count.
const ROUNDS: usize = 200;

/// Starts this program once more as a child, which joins the group.
fn start(group: &Group, role: &str) -> Result<u64, String> {
    let (frame, endpoint) = group.capabilities();
    let mut spawn = Procs::STANDARD.prepare("threads").map_err(text)?;
    spawn.give(frame).map_err(text)?;
    spawn.give(endpoint).map_err(text)?;
    spawn.argument("child").map_err(text)?;
    spawn.argument(role).map_err(text)?;
    spawn.start().map_err(text)
}

/// Runs a child in the role of the second argument.
pub fn child() -> Result<(), String> {
    let endpoint = Cap::<Endpoint>::new(CapAddress(slot::EXTRA.0 + 1));
    let group = Group::join(Cap::<Frame>::new(slot::EXTRA), endpoint).map_err(text)?;
    let member = group.member().map_err(text)?;
    match tench::args().nth(2) {
        Some("lock") => count(&group, &member),
        Some("condition") => count_up(&group, &member),
        Some("die-holding") => {
            let _ = group.lock(LOCK).lock(&member, None).map_err(text)?;
            group.word(STEP).store(1, Ordering::SeqCst);
            wait_for(&group, 2);
            // The process exits without releasing anything.
            tench::exit(0)
        }
        Some("die-waiting") => {
            group.word(STEP).store(1, Ordering::SeqCst);
            let _ = group.lock(LOCK).lock(&member, None).map_err(text)?;
            Err("a process that was killed has the lock".into())
        }
        other => Err(alloc::format!("there is no role {other:?}")),
    }
}

/// Waits until the other process has come to this step.
fn wait_for(group: &Group, step: usize) {
    while group.word(STEP).load(Ordering::SeqCst) < step {
        time::sleep(Duration::from_millis(1));
    }
}

/// Increments the count, holding the lock meanwhile.
fn count(group: &Group, member: &Member<'_>) -> Result<(), String> {
    for _ in 0..ROUNDS {
        check!(group.lock(LOCK).lock(member, None) == Ok(Taken::InOrder));
        let before = group.word(COUNT).load(Ordering::Relaxed);
        thread::yield_now();
        group.word(COUNT).store(before + 1, Ordering::Relaxed);
        group.lock(LOCK).unlock(member).map_err(text)?;
    }
    Ok(())
}

/// Waits for the successful end of a child.
fn ended(child: u64) -> Result<(), String> {
    check!(Procs::STANDARD.wait(child).map_err(text)?.exit_code() == Some(0));
    Ok(())
}

pub fn lock() -> Result<(), String> {
    let group = Group::new(CELLS).map_err(text)?;
    let child = start(&group, "lock")?;
    let member = group.member().map_err(text)?;
    count(&group, &member)?;
    ended(child)?;
    check!(group.word(COUNT).load(Ordering::Relaxed) == 2 * ROUNDS);
    check!(group.lock(LOCK).owner().is_none() && group.lock(LOCK).waiting() == 0);
    Ok(())
}

/// Increments the count for each permit and notification.
fn count_up(group: &Group, member: &Member<'_>) -> Result<(), String> {
    for round in 0..ROUNDS / 4 {
        check!(group.permits(PERMITS).acquire(member, None));
        check!(group.lock(LOCK).lock(member, None) == Ok(Taken::InOrder));
        check!(group.word(COUNT).load(Ordering::Relaxed) == 2 * round);
        group.word(COUNT).store(2 * round + 1, Ordering::Relaxed);
        group.condition(CONDITION).notify_one(member);
        group.lock(LOCK).unlock(member).map_err(text)?;
    }
    Ok(())
}

pub fn condition() -> Result<(), String> {
    let group = Group::new(CELLS).map_err(text)?;
    let child = start(&group, "condition")?;
    let member = group.member().map_err(text)?;
    for round in 0..ROUNDS / 4 {
        check!(group.lock(LOCK).lock(&member, None) == Ok(Taken::InOrder));
        check!(group.permits(PERMITS).release(&member).is_ok());
        while group.word(COUNT).load(Ordering::Relaxed) == 2 * round {
            let waited = group.condition(CONDITION).wait(&member, group.lock(LOCK), None);
            check!(waited == Ok((Taken::InOrder, true)));
        }
        group.word(COUNT).store(2 * round + 2, Ordering::Relaxed);
        group.lock(LOCK).unlock(&member).map_err(text)?;
    }
    ended(child)?;
    // Nothing notifies any more, and there are no permits.
    let soon = Some(time::deadline(Duration::from_millis(2)).ticks());
    check!(!group.permits(PERMITS).acquire(&member, soon));
    check!(group.lock(LOCK).lock(&member, soon) == Ok(Taken::InOrder));
    let waited = group.condition(CONDITION).wait(&member, group.lock(LOCK), soon);
    check!(waited == Ok((Taken::InOrder, false)));
    Ok(())
}

pub fn owner_dies() -> Result<(), String> {
    let group = Group::new(CELLS).map_err(text)?;
    let child = start(&group, "die-holding")?;
    let member = group.member().map_err(text)?;
    wait_for(&group, 1);
    check!(group.lock(LOCK).try_lock(&member) == Err(Error::Busy));
    let soon = Some(time::deadline(Duration::from_millis(25)).ticks());
    // The owner is alive, however long it takes.
    check!(group.lock(LOCK).lock(&member, soon) == Err(Error::TimedOut));
    group.word(STEP).store(2, Ordering::SeqCst);
    check!(group.lock(LOCK).lock(&member, None) == Ok(Taken::OwnerDied));
    check!(group.lock(LOCK).unlock(&member).is_ok());
    check!(group.lock(LOCK).lock(&member, None) == Ok(Taken::InOrder));
    ended(child)
}

pub fn waiter_dies() -> Result<(), String> {
    let group = Group::new(CELLS).map_err(text)?;
    let member = group.member().map_err(text)?;
    check!(group.lock(LOCK).lock(&member, None) == Ok(Taken::InOrder));
    let child = start(&group, "die-waiting")?;
    wait_for(&group, 1);
    while group.lock(LOCK).waiting() == 0 {
        time::sleep(Duration::from_millis(1));
    }
    Procs::STANDARD.kill(child).map_err(text)?;
    check!(group.lock(LOCK).waiting() == 1);
    group.lock(LOCK).unlock(&member).map_err(text)?;
    check!(group.lock(LOCK).lock(&member, None) == Ok(Taken::InOrder));
    check!(group.lock(LOCK).waiting() == 0);
    Ok(())
}

pub fn misuse() -> Result<(), String> {
    let group = Group::new(CELLS).map_err(text)?;
    let member = group.member().map_err(text)?;
    let lock = group.lock(LOCK);
    check!(lock.unlock(&member) == Err(Error::NotHeld));
    check!(lock.lock(&member, None) == Ok(Taken::InOrder));
    check!(lock.lock(&member, None) == Err(Error::HeldAlready));
    let other = group.member().map_err(text)?;
    check!(other.number() != member.number() && lock.unlock(&other) == Err(Error::NotHeld));
    check!(group.condition(CONDITION).wait(&other, lock, None) == Err(Error::NotHeld));
    check!(!group.permits(PERMITS).try_acquire());
    check!(lock.unlock(&member).is_ok() && lock.try_lock(&other) == Ok(Taken::InOrder));
    Ok(())
}
