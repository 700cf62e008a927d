//! Attacks on threads of the same priority: attempts to run without yielding to them.

use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::abi::process::DEFAULT_PRIORITY;
use tench::memory::make;
use tench::procs::Procs;
use tench::sys::{Cap, Error, Frame, Instant, SchedulingContext};
use tench::thread::yield_now;

use super::{Attack, said, soon, window};
use crate::case::{Failure, Outcome};

pub const ATTACKS: &[Attack] =
    &[Attack::new("slices", "nobody gives himself a time slice that does not end for his equals", slices)];

/// Microseconds without a system call: several of the usual time slices.
const LONG: u64 = 35_000;
/// Where the other process counts.
const COUNT: usize = 0;

fn slices() -> Outcome {
    let own = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let (info, made) = (own.query()?, make::<SchedulingContext>(0)?);
    equal!(info.priority, info.ceiling);
    let frame = make::<Frame>(12)?.leak();
    let page = window(frame, 12)?;
    let mut child = Procs::STANDARD.prepare("cases")?;
    child.give(frame)?;
    child.argument("attack")?;
    child.argument("equal")?;
    let child = child.start()?;
    let end = soon(100_000);
    while page.read64(COUNT) == 0 {
        check!(Instant::now() < end);
        yield_now();
    }
    // A context that authorises any slice, but no useful priority, must authorise nothing more than that.
    let below = info.ceiling - 1;
    made.cap().configure(below, below, 0, None)?;
    let mut results = Vec::new();
    for slice in [info.slice + 1, u64::MAX, 0] {
        for authority in [None, Some(own)] {
            results.push(own.configure(info.priority, info.ceiling, slice, authority));
            results.push(made.cap().configure(info.priority, 0, slice, authority));
            results.push(made.cap().configure(info.priority, below, slice, authority));
            results.push(made.cap().configure(below, info.ceiling, slice, authority));
        }
    }
    let before = page.read64(COUNT);
    let end = soon(LONG);
    while Instant::now() < end {}
    let after = page.read64(COUNT);
    said(Procs::STANDARD.kill(child))?;
    said(Procs::STANDARD.wait(child))?;
    if after == before {
        return Err(Failure::new("an equal did not run any more"));
    }
    check!(results.iter().all(|result| *result == Err(Error::SliceTooLong)));
    refused!(own.configure(info.priority, info.ceiling, 0, Some(made.cap())), PriorityTooHigh);
    equal!(own.query()?.slice, info.slice);
    // Shorter slices need no authority.
    own.configure(info.priority, info.ceiling, info.slice / 2, None)?;
    Ok(())
}

/// Runs a part of the attack: a thread of the same priority that counts.
pub fn count_for_ever() -> Outcome {
    equal!(Cap::<SchedulingContext>::new(slot::SCHEDULING).query()?.priority, u64::from(DEFAULT_PRIORITY));
    let page = window(Cap::new(slot::EXTRA), 12)?;
    for count in 1.. {
        page.write64(COUNT, count);
    }
    Ok(())
}
