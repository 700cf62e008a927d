//! Scheduling contexts: the right to processor time, as an object.

use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability};
use crate::object::{Ref, SchedulingContext};
use crate::thread::Thread;
use crate::{Arch, Kernel, scheduler, space};

/// `SchedulingConfigure`.
pub fn configure<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let scheduling = capability::<A, SchedulingContext>(k, thread, Kind::SchedulingContext, Rights::WRITE)?;
    let (priority, ceiling) = (argument(k, thread, 1), argument(k, thread, 2));
    let (slice, authority) = (argument(k, thread, 3), argument(k, thread, 4));
    let (Ok(priority), Ok(ceiling)) = (u8::try_from(priority), u8::try_from(ceiling)) else {
        return Err(Error::InvalidArgument);
    };
    let allowed = if authority == 0 {
        match k.get(thread).scheduling {
            Some(own) => k.get(own).ceiling,
            None => return Err(Error::PriorityTooHigh),
        }
    } else {
        let slot = space::lookup(k, authority)?;
        let cap = k.slot(slot).cap;
        if cap.kind != Kind::SchedulingContext {
            return Err(Error::WrongType);
        }
        if !cap.allows(Rights::WRITE) {
            return Err(Error::MissingRights);
        }
        // SAFETY: a live capability of this kind names such an object.
        match unsafe { Ref::<SchedulingContext>::at(cap.object) } {
            Some(authority) => k.get(authority).ceiling,
            None => return Err(Error::InvalidCapability),
        }
    };
    if priority > allowed || ceiling > allowed {
        return Err(Error::PriorityTooHigh);
    }
    let context = k.get(scheduling);
    context.priority = priority;
    context.ceiling = ceiling;
    context.slice = slice;
    if let Some(holder) = context.thread {
        set_priority(k, holder, i32::from(priority));
    }
    Ok(Outcome::Done)
}

/// `SchedulingQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let scheduling = capability::<A, SchedulingContext>(k, thread, Kind::SchedulingContext, Rights::READ)?;
    scheduler::charge(k);
    let c = k.get(scheduling);
    let answers = [u64::from(c.priority), u64::from(c.ceiling), c.slice, c.consumed];
    Ok(Outcome::results(k, thread, &answers))
}

/// Changes the priority at which a thread runs, keeping the ready queues right.
fn set_priority<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, priority: i32) {
    if k.get(thread).parked {
        return;
    }
    let queued = k.get(thread).queued;
    scheduler::dequeue(k, thread);
    k.get(thread).priority = priority;
    if queued {
        scheduler::enqueue(k, thread);
    }
}

/// Gives a scheduling context to a thread that has none, as its own or on loan.
pub fn give<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>, to: Ref<Thread>) {
    let context = k.get(scheduling);
    context.thread = Some(to);
    let priority = i32::from(context.priority);
    let t = k.get(to);
    t.scheduling = Some(scheduling);
    t.priority = if t.parked { -1 } else { priority };
}

/// Takes a scheduling context from whoever runs on it. That thread can no longer run.
pub fn take<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>) {
    let Some(holder) = k.get(scheduling).thread.take() else { return };
    if holder == k.current() {
        scheduler::charge(k);
    }
    scheduler::dequeue(k, holder);
    let t = k.get(holder);
    t.scheduling = None;
    t.priority = -1;
}

/// The last capability goes.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, scheduling: Ref<SchedulingContext>) -> bool {
    take(k, scheduling);
    true
}
