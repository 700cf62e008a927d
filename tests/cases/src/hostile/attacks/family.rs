//! An attack by many processes: a program without powers starts children, one after another, each of which takes all it
//! can of the servers' limited resources.
//!
//! If servers counted for each process by itself, each child could take half of what is left, and the eleventh would
//! get the last of 1,024 entries. Children that were not started by a process with the power `processes` are of one
//! family, which gets what one process could get.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use tench::abi::layout::slot;
use tench::clock::Clock;
use tench::console::protocol::Console;
use tench::fs;
use tench::io::End;
use tench::mem::Mem;
use tench::memory::{self, Window, make};
use tench::names::Names;
use tench::procs::{Failure, Procs, Spawn, pid};
use tench::sys::Error::TimedOut;
use tench::sys::{Cap, Endpoint, Frame, Instant, OWN_CSPACE};
use tench::thread::Builder;
use tench::time::sleep;
use tench_protocol::transport::Until;

use super::{Attack, empty, said, soon, window};
use crate::case::{self, Outcome};

pub const ATTACKS: &[Attack] = &[
    Attack::new("hoard-family", "children that take what they can get keep nobody from his", hoard),
    Attack::new("hoard-family-blocks", "nor do those that take blocks of memory", hoard_blocks),
    Attack::new("hoard-family-waits", "nor do those that wait for each other, and give up", hoard_waits),
    Attack::new("flood-clock-family", "children whose delays end at one time make nobody's late", flood_clock)
        .replying_within(DELAYED)
        .first(),
];

const PROCS: Procs = Procs::STANDARD;
/// Stack of a waiting thread, in bytes.
const STACK: usize = 8 << 10;
/// Threads that a child starts before it checks whether one was refused.
const SOME: usize = 8;
/// Microseconds that a child may take.
const PATIENCE: u64 = 2_000_000;
/// Value of a child's word when it has all it can get.
const DONE: u64 = 1;
/// Value that tells a child to begin.
const GO: u64 = 2;
/// Time for which they hold what they have.
const SPAN: Duration = Duration::from_millis(20);

/// Children, which end with the attack.
struct Children(Vec<u64>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &self.0 {
            // The child may have ended.
            let _ = PROCS.kill(*child);
            let _ = PROCS.wait(*child);
        }
    }
}

/// Number of children that it takes to get the last entry of each table.
const CHILDREN: usize = 12;
/// Number of children that it takes to get the last slot for a block.
const BLOCK_OWNERS: usize = 16;
/// Number of children that it takes for so many waits: 128 of a family may wait for each process.
const WAITERS: usize = 112;
/// Number of children that wait at the clock. If each had a turn of its own there, they would make others 5 ms late.
const SLEEPERS: usize = 160;
/// Ticks between the times for which they wait: 8 ms, in which all get replies.
const BEAT: u64 = 500_000;
/// Microseconds that the client may wait meanwhile.
const DELAYED: u64 = 2_500;
/// Offset in the page of the number of waits left behind.
const LEFT: usize = 4000;
/// Microseconds for which a child waits: long enough for the server to receive the request.
const PATIENCE_AT_PROCS: u64 = 12;
/// Waits that a child leaves behind: all that one process may have.
const MOST_WAITS: usize = 256;
/// More children than can be started when these have what they can get.
const MOST: usize = 64;

fn hoard() -> Outcome {
    let frame = make::<Frame>(12)?.leak();
    let page = window(frame, 12)?;
    let mut children = Children(Vec::with_capacity(CHILDREN));
    for number in 0..CHILDREN {
        let Some(child) = start("take-all", frame, number) else { break };
        children.0.push(child);
        until_done(&page, number, child)?;
    }
    // With fewer children it is no attack.
    check!(children.0.len() > 3);
    sleep(SPAN);
    Ok(())
}

/// Waits until a child has all it can get.
fn until_done(page: &Window, number: usize, child: u64) -> Outcome {
    let end = soon(PATIENCE);
    // On another core, the first child may leave the others so few requests that they end.
    while page.read64(number * 8) != DONE && !said(PROCS.status(child))?.state.has_ended() {
        if Instant::now() >= end {
            return Err(case::Failure::new(format!("child {number} does not get on")));
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Starts the children before the first of them takes anything, since otherwise the last have no memory to begin with.
fn hoard_blocks() -> Outcome {
    let frame = make::<Frame>(12)?.leak();
    let page = window(frame, 12)?;
    let mut children = Children(Vec::with_capacity(MOST));
    for number in 0..BLOCK_OWNERS {
        let child = start("take-blocks", frame, number);
        children.0.push(child.ok_or_else(|| case::Failure::new("no memory for a child"))?);
    }
    for (number, child) in children.0.iter().enumerate() {
        page.write64(number * 8, GO);
        until_done(&page, number, *child)?;
    }
    // Each left as many as it had from the beginning. Processes that begin have those.
    while let Ok(child) = PROCS.spawn("cases", &["attack", "idle"]) {
        children.0.push(child);
        check!(children.0.len() < MOST);
    }
    sleep(SPAN);
    Ok(())
}

/// Lets each child leave so many waits behind that all together would have all slots of the process server.
fn hoard_waits() -> Outcome {
    let frame = make::<Frame>(12)?.leak();
    let page = window(frame, 12)?;
    let mut children = Children(Vec::with_capacity(WAITERS));
    for number in 0..WAITERS {
        let child = start("take-waits", frame, number);
        children.0.push(child.ok_or_else(|| case::Failure::new("no memory for a child"))?);
    }
    for (number, child) in children.0.iter().enumerate() {
        page.write64(number * 8, GO);
        until_done(&page, number, *child)?;
    }
    // The server has found that no thread waits any more for some of the waits they left.
    let left = page.read64(LEFT);
    check!(left > (WAITERS * MOST_WAITS / 4) as u64);
    sleep(SPAN);
    Ok(())
}

/// Runs a part of the attack: leaves waits behind, for each known process.
pub fn take_waits() -> Outcome {
    let (number, page) = await_go()?;
    // The child's siblings, perhaps with others between them. For processes that have ended or do not exist no wait is
    // left behind.
    let first = tench::process::id() - number as u64;
    for target in (first..first + 2 * WAITERS as u64).cycle().take(2 * MOST_WAITS) {
        let waited = Procs::at(Until(Cap::new(slot::PROCS), soon(PATIENCE_AT_PROCS))).wait(target);
        if waited == Err(Failure::Lost(TimedOut)) {
            page.write64(LEFT, page.read64(LEFT) + 1);
        }
    }
    page.write64(number * 8, DONE);
    loop {
        sleep(Duration::from_secs(1));
    }
}

/// Gives each child a delay, all of which end at one time, again and again.
fn flood_clock() -> Outcome {
    let frame = make::<Frame>(12)?.leak();
    let page = window(frame, 12)?;
    let mut children = Children(Vec::with_capacity(SLEEPERS));
    for number in 0..SLEEPERS {
        let child = start("sleep-together", frame, number);
        children.0.push(child.ok_or_else(|| case::Failure::new("no memory for a child"))?);
    }
    for (number, child) in children.0.iter().enumerate() {
        until_done(&page, number, *child)?;
    }
    sleep(2 * SPAN);
    Ok(())
}

/// Runs a part of the attack: waits at the clock until the next beat, which all siblings share.
pub fn sleep_together() -> Outcome {
    let number: usize = tench::args().nth(3).and_then(|number| number.parse().ok()).unwrap_or(0);
    let page: Window = window(Cap::new(slot::EXTRA), 12)?;
    let clock = Clock::at(said(Names::STANDARD.look_up(Clock::NAME, empty()?))?);
    page.write64(number * 8, DONE);
    loop {
        let beat = (Instant::now().ticks() / BEAT + 1) * BEAT;
        said(clock.delay_until(Instant::from_ticks(beat)))?;
    }
}

/// Starts a child, if there is memory for it.
fn start(part: &str, frame: Cap<Frame>, number: usize) -> Option<u64> {
    let mut child = PROCS.prepare("cases").ok()?;
    child.give(frame).ok()?;
    for argument in ["attack", part, &format!("{number}")] {
        child.argument(argument).ok()?;
    }
    child.start().ok()
}

/// Runs a part of the attack: takes all it can get, reports that, and keeps it.
pub fn take_all() -> Outcome {
    let number: usize = tench::args().nth(3).and_then(|number| number.parse().ok()).unwrap_or(0);
    let page: Window = window(Cap::new(slot::EXTRA), 12)?;
    let clock = Clock::at(said(Names::STANDARD.look_up(Clock::NAME, empty()?))?);
    let kept = (names()?, files(), processes());
    wait_everywhere(|| Console::STANDARD.get(1).is_err());
    // Waits for a process that does not end.
    wait_everywhere(|| PROCS.wait(pid::INIT).is_err());
    wait_everywhere(move || clock.delay(u64::MAX >> 2).is_err());
    page.write64(number * 8, DONE);
    loop {
        sleep(Duration::from_secs(1));
        core::hint::black_box(&kept);
    }
}

/// Waits until a child is to begin. Returns its number, and the page of words.
fn await_go() -> Outcome<(usize, Window)> {
    let number: usize = tench::args().nth(3).and_then(|number| number.parse().ok()).unwrap_or(0);
    let page: Window = window(Cap::new(slot::EXTRA), 12)?;
    while page.read64(number * 8) != GO {
        sleep(Duration::from_millis(1));
    }
    Ok((number, page))
}

/// Runs a part of the attack: takes blocks of a page until one is refused, reports that, and keeps them.
pub fn take_blocks() -> Outcome {
    let (number, page) = await_go()?;
    let slot = empty()?;
    // Their capabilities are deleted at once, but the blocks remain this process's.
    while Mem::STANDARD.allocate(12, slot).is_ok() {
        OWN_CSPACE.delete_at(slot)?;
    }
    page.write64(number * 8, DONE);
    loop {
        sleep(Duration::from_secs(1));
    }
}

/// Registers names until one is refused.
fn names() -> Outcome<memory::Made<Endpoint>> {
    let endpoint = make::<Endpoint>(0)?;
    let own = tench::process::id();
    let _ = (0..).find(|number| Names::STANDARD.register(&format!("all-{own}/{number}"), endpoint.cap()).is_err());
    Ok(endpoint)
}

/// Opens files without a name until one is refused.
fn files() -> Vec<End> {
    let path = format!("/tmp/all-{}", tench::process::id());
    let files = core::iter::from_fn(|| {
        let file = fs::create(&path).ok()?;
        fs::remove(&path).ok()?;
        Some(file)
    });
    files.collect()
}

/// Prepares some processes: each takes long to make and to abandon.
fn processes() -> Vec<Spawn> {
    (0..8).map_while(|_| PROCS.prepare("hello").ok()).collect()
}

/// Starts threads that wait for ever, until one is refused or there is no memory for one more.
fn wait_everywhere(wait: impl Fn() -> bool + Copy + Send + 'static) {
    let is_refused: &'static AtomicBool = alloc::boxed::Box::leak(alloc::boxed::Box::new(AtomicBool::new(false)));
    while !is_refused.load(Ordering::Relaxed) {
        for _ in 0..SOME {
            let waiting = move || {
                if wait() {
                    is_refused.store(true, Ordering::Relaxed);
                }
            };
            match Builder::new().stack_size(STACK).spawn(waiting) {
                Ok(thread) => thread.detach(),
                Err(_) => return,
            }
        }
        // They have the same priority.
        sleep(Duration::from_micros(100));
    }
}
