//! The measurement with threads in two processes.
//!
//! Cells of the frame: the turns (semaphores, because a turn is released by another thread than acquires it), the
//! counter's lock, the counter, and the number of the child's ready threads.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::procs::Procs;
use tench::sync::shared::{Group, Member};
use tench::sys::{Cap, CapAddress, Endpoint, Frame};
use tench::thread::{self, JoinHandle};
use tench::time::instructions;

use super::{COUNTS, TURNS, WARM_UP, decimal, point, problem, uncontended};

/// Slot of the frame that the child is given.
const FRAME: Cap<Frame> = Cap::new(slot::EXTRA);
const GROUP: Cap<Endpoint> = Cap::new(CapAddress(slot::EXTRA.0 + 1));

/// Cells of the frame; turns come first.
const LOCK: usize = 64;
const COUNT: usize = 65;
const READY: usize = 66;
const CELLS: usize = 67;
/// Priority of this process, whose threads take turns with the child's.
const PRIORITY: u8 = 120;

/// Takes the turns of thread `number` of `threads`. Returns the readings of the first thread.
fn take_turns(group: &Group, member: &Member<'_>, number: usize, threads: usize) -> Result<(u64, u64), String> {
    let (mut before, mut after) = (0, 0);
    let next = (number + 1) % threads;
    for turn in 0..=TURNS {
        group.permits(number).acquire(member, None);
        if turn == WARM_UP {
            before = instructions();
        }
        if turn == TURNS {
            after = instructions();
        }
        let _ = group.lock(LOCK).lock(member, None).map_err(problem("the lock"))?;
        // Only the holder of the lock changes the counter.
        group.word(COUNT).store(group.word(COUNT).load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        group.lock(LOCK).unlock(member).map_err(problem("the lock"))?;
        group.permits(next).release(member).map_err(|_| "too many turns")?;
    }
    Ok((before, after))
}

/// Starts this process's threads except the first, and runs that in the caller. Thread `first`, and every second from
/// there on, is this process's; the very first turn is released when all are ready.
fn take_part(group: &Arc<Group>, first: usize, threads: usize, begin: impl FnOnce()) -> Result<(u64, u64), String> {
    let others = (first + 2..threads).step_by(2).map(|number| {
        let group = Arc::clone(group);
        let body = move || {
            let member = group.member().map_err(problem("a member"))?;
            group.word(READY).fetch_add(1, Ordering::Relaxed);
            take_turns(&group, &member, number, threads).map(drop)
        };
        thread::Builder::new().spawn(body).map_err(problem("a thread"))
    });
    let others: Vec<JoinHandle<Result<(), String>>> = others.collect::<Result<_, _>>()?;
    let member = group.member().map_err(problem("a member"))?;
    group.word(READY).fetch_add(1, Ordering::Relaxed);
    begin();
    let result = take_turns(group, &member, first, threads)?;
    others.into_iter().try_for_each(JoinHandle::join)?;
    Ok(result)
}

/// Measures with `threads` threads.
fn measure(threads: usize) -> Result<String, String> {
    let group = Arc::new(Group::new(CELLS).map_err(problem("a group"))?);
    let (frame, endpoint) = group.capabilities();
    let mut spawn = Procs::STANDARD.prepare("bench").map_err(problem("the child"))?;
    let mut starting = || {
        spawn.give(frame)?;
        spawn.give(endpoint)?;
        spawn.argument("threads-child")?;
        spawn.argument(&alloc::format!("{threads}"))?;
        spawn.configure(PRIORITY, PRIORITY, 0, Powers::empty())?;
        spawn.start()
    };
    let child = starting().map_err(problem("the child"))?;
    let ready = Arc::clone(&group);
    let begin = move || {
        while ready.word(READY).load(Ordering::Relaxed) < threads {
            thread::yield_now();
        }
        // No other thread has had a turn, so there is room for this one.
        ready.permits(0).reset(1);
    };
    let (before, after) = take_part(&group, 0, threads, begin)?;
    let status = Procs::STANDARD.wait(child).map_err(problem("waiting for the child"))?;
    let count = group.word(COUNT).load(Ordering::Relaxed);
    if status.exit_code() != Some(0) || count as u64 != (TURNS + 1) * threads as u64 {
        return Err(alloc::format!("the shared counter is {count} in the end"));
    }
    Ok(decimal(after - before, (TURNS - WARM_UP) * threads as u64))
}

/// Runs the other process: `bench threads-child THREADS`.
pub fn child() -> Result<(), String> {
    let threads = tench::args().nth(2).and_then(|count| count.parse().ok()).ok_or("how many?")?;
    let group = Arc::new(Group::join(FRAME, GROUP).map_err(problem("joining"))?);
    take_part(&group, 1, threads, || {}).map(drop)
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let group = Group::new(CELLS).map_err(problem("a group"))?;
    let member = group.member().map_err(problem("a member"))?;
    uncontended("shared", || {
        if group.lock(LOCK).lock(&member, None).is_ok() {
            // The lock was just acquired.
            let _ = group.lock(LOCK).unlock(&member);
        }
    });
    COUNTS.into_iter().try_for_each(|threads| {
        point("shared", threads, &measure(threads)?);
        Ok(())
    })
}
