//! Attacks on limits: what holds for a program on its core holds for what it starts on another: the highest priority
//! that it may give, the limit of its memory, and that all are one family.

use alloc::format;
use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::memory::make;
use tench::names::Names;
use tench::procs::protocol::Error;
use tench::procs::{Failure, Procs};
use tench::sys::{Cap, Endpoint, Instant, SchedulingContext};
use tench::time::sleep;
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::Error as MonitorError;

use super::{Attack, HELD, empty, held, procs_of, said, soon};
use crate::case::{Failure as CaseFailure, Outcome};

pub const ATTACKS: &[Attack] = &[
    Attack::new("elsewhere-ceiling", "no priority is given on another core that is not given here", ceiling)
        .several()
        .unlimited(),
    Attack::new("elsewhere-quota", "whose memory is limited starts nothing where that does not count", quota).several(),
    Attack::new("elsewhere-transfers", "endpoints that children elsewhere are sent count for them together", transfers)
        .second()
        .unlimited(),
];

const PROCS: Procs = Procs::STANDARD;
/// A ceiling below the usual priority.
const LOW: u8 = 50;
/// Bytes of memory that are enough for two of these programs.
const LIMIT: u64 = 16 << 20;
/// Number of children that are sent endpoints, and number of endpoints for each.
const RECEIVERS: usize = 6;
const SENT: usize = 40;
/// More proxies than there are when one family has all the endpoints without badges that it may have: 32 of 64.
const MOST: u64 = 40;
/// Time for which the proxies are observed, in microseconds.
const SPAN: u64 = 1_500_000;
/// Time in which a monitor finds the proxies of processes that have ended.
const AFTERWARDS: Duration = Duration::from_millis(1_500);

/// Returns the monitor of this core, this core and another.
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

/// Runs a part with a low ceiling: starts programs on the other core, one of which starts some here.
pub fn low() -> Outcome {
    low_there()?;
    let (monitor, _, other) = cores()?;
    let procs = procs_of(monitor, other)?;
    held(procs, said(procs.spawn("cases", &["attack", "low-there"]))?)
}

/// Runs the first half of that part: starts programs on the other core.
pub fn low_there() -> Outcome {
    let (monitor, _, other) = cores()?;
    equal!(said(Cap::<SchedulingContext>::new(slot::SCHEDULING).query())?.ceiling, u64::from(LOW));
    let procs = procs_of(monitor, other)?;
    let child = procs.prepare("cases")?;
    let refused = child.configure(LOW + 1, LOW + 1, 0, Powers::empty());
    equal!(refused, Err(Failure::Refused(Error::PriorityTooHigh)));
    equal!(child.configure(1, LOW + 1, 0, Powers::empty()), Err(Failure::Refused(Error::PriorityTooHigh)));
    child.configure(LOW, LOW, 0, Powers::empty())?;
    child.abandon();
    let usual = said(procs.spawn("cases", &["attack", "idle"]))?;
    let priority = procs.status(usual)?.priority;
    procs.kill(usual)?;
    check!(priority <= u64::from(LOW));
    Ok(())
}

fn quota() -> Outcome {
    let child = PROCS.prepare("cases")?;
    child.argument("attack")?;
    child.argument("limited")?;
    child.limit(LIMIT)?;
    held(PROCS, child.start()?)
}

/// Runs a part whose memory is limited: neither it nor what it starts can start anything on the other core.
pub fn limited() -> Outcome {
    nothing_there()?;
    held(PROCS, said(PROCS.spawn("cases", &["attack", "nothing-there"]))?)
}

/// Runs that part without its last step.
pub fn nothing_there() -> Outcome {
    let (monitor, _, other) = cores()?;
    let refused = tench_monitor_interface::Failure::Refused(MonitorError::Limited);
    equal!(monitor.processes(other, empty()?).map(drop), Err(refused));
    Ok(())
}

fn transfers() -> Outcome {
    let (monitor, _, other) = cores()?;
    let procs = procs_of(monitor, other)?;
    let counts = said(procs.spawn("cases", &["attack", "count-proxies"]))?;
    let endpoint = make::<Endpoint>(0)?;
    let (mut sent, mut receivers) = (0, [0; RECEIVERS]);
    for receiver in &mut receivers {
        *receiver = said(procs.spawn("cases", &["attack", "take-transfers"]))?;
        let receiver = *receiver;
        sent += (0..SENT).take_while(|_| monitor.give(receiver, 0, Cap::new(endpoint.cap().address())).is_ok()).count();
    }
    // Enough endpoints were sent to make it an attack.
    check!(sent > 2 * MOST as usize);
    equal!(said(procs.wait(counts))?.detail, HELD);
    receivers.iter().try_for_each(|receiver| said(procs.kill(*receiver)))?;
    // Until the other monitor has looked for unused proxies.
    sleep(AFTERWARDS);
    Ok(())
}

/// Runs a part that receives what is sent to it, and keeps it.
pub fn take_transfers() -> Outcome {
    let (monitor, ..) = cores()?;
    loop {
        said(monitor.take(empty()?))?;
    }
}

/// Runs a part that counts the most proxies there are: more than before, and no more than a family may have.
pub fn count_proxies() -> Outcome {
    let (monitor, ..) = cores()?;
    let mut most = 0;
    let end = soon(SPAN);
    while Instant::now() < end {
        sleep(Duration::from_millis(1));
        most = most.max(said(monitor.exchanged())?.proxies);
    }
    if !(MOST / 2..=MOST).contains(&most) {
        return Err(CaseFailure::new(format!("there were {most} proxies")));
    }
    Ok(())
}
