//! Attacks with waits for the ends of another core's processes. For these the monitor has a quota of its own beside the
//! one of all other requests to that core.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::clock::Clock;
use tench::console::protocol::Console;
use tench::memory::{Window, make};
use tench::names::Names;
use tench::println;
use tench::procs::protocol::Error as ProcsError;
use tench::procs::{Failure, Procs, pid};
use tench::sys::{Cap, Endpoint, Frame, Instant, Message, Wait};
use tench::thread::Builder;
use tench::time::{Duration, sleep};
use tench_monitor_interface::Monitor;
use tench_protocol::Rejection;
use tench_protocol::transport::Until;

use super::{Attack, empty, procs_of, said, soon, window};
use crate::case::Outcome;

pub const ATTACKS: &[Attack] = &[
    Attack::new("waits-refused", "what goes with a wait that is refused is given back", refused).second().unlimited(),
    Attack::new("waits-families", "who waits for all and gives up keeps no other family from it", families)
        .second()
        .unlimited()
        .with(Powers::PROCESSES),
    Attack::new("waits-channel", "waits and requests of several families leave others a place", channel)
        .second()
        .unlimited()
        .with(Powers::PROCESSES),
];

const PROCS: Procs = Procs::STANDARD;
/// Core whose processes are waited for.
const VICTIM: u64 = 0;
/// Stack of a waiting thread, in bytes.
const STACK: usize = 8 << 10;
/// Number of waits that are refused with something attached.
const ATTEMPTS: usize = 40;
/// Waits that a family may have, if no other has any, and if one other has as many as it may.
const ALONE: u64 = 8;
const SECOND: u64 = 4;
/// Number of waits that are given up.
const GIVEN_UP: u64 = 100;
/// Number of families that take all places in the channel they can get.
const FAMILIES: usize = 3;
/// Number of refusals in a row after which a family has what it can get.
const IN_A_ROW: u32 = 4;
/// Fewer requests and waits are no attack. What attacks before this one have left takes some of them.
const MANY: u64 = 24;
/// Microseconds for which a reply or an effect is awaited.
const PATIENCE: u64 = 1_000_000;
/// Time in which a monitor finds waits that were given up.
const AFTERWARDS: Duration = Duration::from_millis(2_500);
/// Time in which a request is received by another core or refused.
const MOMENT: Duration = Duration::from_millis(2);

fn monitor() -> Outcome<Monitor> {
    Ok(Monitor::at(said(Names::STANDARD.look_up(Monitor::NAME, empty()?))?))
}

/// Starts threads that wait for ever, until some are refused in a row: one may be refused only because of a request
/// that is over soon. Returns how many wait.
fn wait_until_refused(wait: impl Fn() -> bool + Copy + Send + 'static) -> Outcome<u64> {
    let is_refused: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let (mut count, mut refusals) = (0, 0);
    while refusals < IN_A_ROW {
        let waiting = move || {
            if !wait() {
                is_refused.store(true, Ordering::SeqCst);
            }
        };
        said(Builder::new().stack_size(STACK).spawn(waiting))?.detach();
        sleep(MOMENT);
        if is_refused.swap(false, Ordering::SeqCst) {
            refusals += 1;
        } else {
            (count, refusals) = (count + 1, 0);
        }
    }
    Ok(count)
}

/// Waits for the end of a process of the other core, until that is refused. Returns how many threads wait.
fn wait_for(procs: Procs, process: u64) -> Outcome<u64> {
    wait_until_refused(move || procs.wait(process) != Err(Failure::Rejected(Rejection::Busy)))
}

/// Waits until a condition holds. Returns whether it does.
fn becomes(mut condition: impl FnMut() -> Outcome<bool>) -> Outcome<bool> {
    let end = soon(PATIENCE);
    while Instant::now() < end {
        if condition()? {
            return Ok(true);
        }
        sleep(MOMENT);
    }
    condition()
}

fn refused() -> Outcome {
    let monitor = monitor()?;
    let procs = procs_of(monitor, VICTIM)?;
    let idle = said(procs.spawn("cases", &["attack", "idle"]))?;
    wait_for(procs, idle)?;
    let (endpoint, frame) = (make::<Endpoint>(0)?, make::<Frame>(12)?);
    let before = said(monitor.exchanged())?;
    for cap in [endpoint.cap().address(), frame.cap().address()] {
        for _ in 0..ATTEMPTS {
            let mut wait = Message::with_words(Procs::WAIT, &[idle]);
            wait.copy_cap(cap);
            let reply = said(procs.way().call_with(&wait, Wait::until(soon(PATIENCE))))?;
            equal!(Rejection::from_code(reply.label(), reply.word(0)), Some(Rejection::Busy));
        }
    }
    check!(becomes(|| Ok(said(monitor.exchanged())? == before))?);
    // That also ends the waits.
    said(procs.kill(idle))
}

/// Starts a child that is a family of its own, and waits until it has what it can get. Returns the child, and how many
/// of its threads wait.
fn start(part: &str) -> Outcome<(u64, u64)> {
    let frame = make::<Frame>(12)?.leak();
    let page: Window = window(frame, 12)?;
    let mut child = PROCS.prepare("cases")?;
    child.give(frame)?;
    for argument in ["attack", part] {
        child.argument(argument)?;
    }
    let child = child.start()?;
    let is_done = || Ok(page.read64(0) != 0 || said(PROCS.status(child))?.state.has_ended());
    check!(becomes(is_done)?);
    check!(page.read64(0) != 0);
    Ok((child, page.read64(0) - 1))
}

fn end(child: u64) -> Outcome {
    said(PROCS.kill(child))?;
    said(PROCS.wait(child)).map(drop)
}

fn families() -> Outcome {
    let (first, waits) = start("wait-elsewhere")?;
    equal!(waits, ALONE);
    let (second, waits) = start("wait-elsewhere")?;
    equal!(waits, SECOND);
    [first, second].into_iter().try_for_each(end)?;
    // Those who gave up have left nothing.
    let (third, waits) = start("wait-elsewhere")?;
    equal!(waits, ALONE);
    end(third)?;
    // Until the monitor has looked for those who gave up.
    sleep(AFTERWARDS);
    Ok(())
}

/// Runs a part of the attack: gives up waits at various moments, and then waits until that is refused.
pub fn wait_elsewhere() -> Outcome {
    let page: Window = window(Cap::new(slot::EXTRA), 12)?;
    let procs = procs_of(monitor()?, VICTIM)?;
    for number in 0..GIVEN_UP {
        // Some are given up before they are sent, some by the server, and some of them get a reply.
        let _ = Procs::at(Until(procs.way(), soon(number % 30 * 10))).wait(pid::INIT);
        let ended = procs.wait_until(pid::INIT, soon(number % 7 * 100));
        check!(matches!(ended, Err(Failure::Refused(ProcsError::TimedOut) | Failure::Rejected(Rejection::Busy))));
    }
    keep(&page, wait_for(procs, pid::INIT)?)
}

/// Reports the number of waits, and keeps them.
fn keep(page: &Window, waits: u64) -> Outcome {
    page.write64(0, waits + 1);
    loop {
        sleep(Duration::from_secs(1));
    }
}

fn channel() -> Outcome {
    let (mut children, mut taken) = ([0; FAMILIES], 0);
    for child in &mut children {
        let (number, more) = start("fill-channel")?;
        (*child, taken) = (number, taken + more);
    }
    let console = Console::at(Until(Cap::<Endpoint>::new(slot::CONSOLE), soon(PATIENCE)));
    let state = console.state();
    children.into_iter().try_for_each(end)?;
    sleep(AFTERWARDS);
    // With fewer it is no attack.
    println!("note: {FAMILIES} families have taken {taken} places");
    check!(taken > MANY);
    said(state).map(drop)
}

/// Runs a part of the attack: waits for a process and for the clock, until each is refused.
pub fn fill_channel() -> Outcome {
    let page: Window = window(Cap::new(slot::EXTRA), 12)?;
    let procs = procs_of(monitor()?, VICTIM)?;
    let clock = Clock::at(said(Names::STANDARD.look_up(Clock::NAME, empty()?))?);
    let waits = wait_for(procs, pid::INIT)?;
    keep(&page, waits + wait_until_refused(move || clock.delay(u64::MAX >> 2).is_ok())?)
}
