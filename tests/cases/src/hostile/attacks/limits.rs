//! What holds for a program on its core holds for what it starts on another: the highest priority that it may give, and that all are one family.

use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::memory::make;
use tench::names::Names;
use tench::procs::protocol::Error;
use tench::procs::{Failure, Procs};
use tench::sys::{Cap, Endpoint, Instant, SchedulingContext};
use tench::time::sleep;
use tench_monitor_client::Monitor;

use super::{Attack, HELD, empty, held, said, soon};
use crate::case::Outcome;

/// The attacks.
pub const ATTACKS: &[Attack] = &[
    Attack::new("elsewhere-ceiling", "no priority is given on another core that is not given here", ceiling).several(),
    Attack::new("elsewhere-mail", "endpoints that children elsewhere are sent count for them together", mail).second(),
];

const PROCS: Procs = Procs::STANDARD;
/// A ceiling below the usual priority.
const LOW: u8 = 50;
/// Children that are sent endpoints, and how many each.
const RECEIVERS: usize = 6;
const SENT: usize = 40;
/// More proxies of endpoints without badges than one family may have, of 64.
const MOST: u64 = 40;
/// How long the proxies are looked at, in microseconds.
const SPAN: u64 = 1_500_000;

/// The monitor of this core, this core and another.
fn cores() -> Outcome<(Monitor, u64, u64)> {
    let monitor = Monitor::at(said(Names::STANDARD.look_up(Monitor::NAME, empty()?))?);
    let (_, own) = said(monitor.cores())?;
    Ok((monitor, own, 1 - own.min(1)))
}

fn ceiling() -> Outcome {
    let child = PROCS.prepare("cases")?;
    child.argument("attack")?;
    child.argument("low")?;
    child.configure(LOW, LOW, 0, Powers::empty())?;
    held(PROCS, child.start()?)
}

/// A part, with a low ceiling: starts programs on the other core, one of which starts some here.
pub fn low() -> Outcome {
    low_there()?;
    let (monitor, _, other) = cores()?;
    let ended =
        said(monitor.spawn(other, b"cases\0attack\0low-there\0")).and_then(|child| said(monitor.wait(child)))?;
    equal!(ended.detail, HELD);
    Ok(())
}

/// The same, but for the last.
pub fn low_there() -> Outcome {
    let (monitor, _, other) = cores()?;
    equal!(said(Cap::<SchedulingContext>::new(slot::SCHEDULING).query())?.ceiling, u64::from(LOW));
    let procs = Procs::at(said(monitor.processes(other, empty()?))?);
    let child = procs.prepare("cases")?;
    let refused = child.configure(LOW + 1, LOW + 1, 0, Powers::empty());
    equal!(refused, Err(Failure::Refused(Error::PriorityTooHigh)));
    equal!(child.configure(1, LOW + 1, 0, Powers::empty()), Err(Failure::Refused(Error::PriorityTooHigh)));
    child.configure(LOW, LOW, 0, Powers::empty())?;
    child.abandon();
    let usual =
        [said(procs.spawn("cases", &["attack", "idle"]))?, said(monitor.spawn(other, b"cases\0attack\0idle\0"))?];
    for child in usual {
        let priority = procs.status(child)?.priority;
        procs.kill(child)?;
        check!(priority <= u64::from(LOW));
    }
    Ok(())
}

fn mail() -> Outcome {
    let (monitor, _, other) = cores()?;
    let counts = said(monitor.spawn(other, b"cases\0attack\0count-proxies\0"))?;
    let endpoint = make::<Endpoint>(0)?;
    let mut sent = 0;
    for _ in 0..RECEIVERS {
        let receiver = said(monitor.spawn(other, b"cases\0attack\0take-mail\0"))?;
        sent += (0..SENT).take_while(|_| monitor.give(receiver, 0, Cap::new(endpoint.cap().address())).is_ok()).count();
    }
    // The attempt is one.
    check!(sent > 2 * MOST as usize);
    equal!(said(monitor.wait(counts))?.detail, HELD);
    Ok(())
}

/// A part: takes what is sent to it, and keeps that.
pub fn take_mail() -> Outcome {
    let (monitor, ..) = cores()?;
    loop {
        said(monitor.take(empty()?))?;
    }
}

/// A part: looks how many proxies there are more than there were.
pub fn count_proxies() -> Outcome {
    let (monitor, ..) = cores()?;
    let proxies = || said(monitor.exchanged()).map(|exchanged| exchanged.proxies);
    let before = proxies()?;
    let mut most = before;
    let end = soon(SPAN);
    while Instant::now() < end {
        sleep(Duration::from_millis(1));
        most = most.max(proxies()?);
    }
    check!(most > before && most - before < MOST);
    Ok(())
}
