//! Tests of scheduling: priorities, time slices, servers without processor time.

use tench::abi::layout::slot;
use tench::abi::object::ThreadState;
use tench::sys::thread::{Binding, Bindings, yield_now};
use tench::sys::{Cap, Error, Message, Rights, SchedulingContext, Wait};

use crate::case::{Case, Outcome};
use crate::stage::{HIGH, LOW, PRIORITY, Stage};
use crate::worker::{Equipment, MOMENT, pause, soon};

pub const CASES: &[Case] = &[
    Case::new("SCH0001", "a scheduling context keeps its configuration", configure),
    Case::new("SCH0002", "nobody gives a priority above the authority's ceiling", ceiling),
    Case::new("SCH0003", "priorities are 0 to 255, and the authority a scheduling context", arguments),
    Case::new("SCH0004", "a thread of higher priority runs at once", higher_first),
    Case::new("SCH0005", "a thread of lower priority waits", lower_waits),
    Case::new("SCH0006", "threads of equal priority run in order, and yield in turn", yields),
    Case::new("SCH0007", "a time slice ends in favour of an equal", slices),
    Case::new("SCH0008", "without a time slice an equal waits", no_slice),
    Case::new("SCH0009", "changing a priority takes effect at once", change),
    Case::new("SCH0010", "processor time is accounted for", consumed),
    Case::new("SCH0011", "a thread stops when its scheduling context goes", deleted),
    Case::new("SCH0012", "a server without processor time runs on its caller's", on_callers),
    Case::new("SCH0015", "a deadline interrupts whoever runs below", deadline_preempts),
    Case::new("SCH0016", "a signal lets neither an equal nor a lower thread run first", signalled_equal),
    Case::new("SCH0017", "a server without time stops when its caller goes, and goes on with the next's", caller_gone),
    Case::new("SCH0018", "a time slice is no longer than its authority's, but below its ceiling", slice_limit),
];

/// The main thread's own scheduling context.
const OWN: Cap<SchedulingContext> = Cap::new(slot::SCHEDULING);

fn configure(stage: &mut Stage) -> Outcome {
    let context = stage.make::<SchedulingContext>(0)?;
    let new = context.query()?;
    equal!((new.priority, new.ceiling, new.slice, new.consumed), (0, 0, 1, 0));
    context.configure(100, 130, 12345, None)?;
    let info = context.query()?;
    equal!((info.priority, info.ceiling, info.slice, info.consumed), (100, 130, 12345, 0));
    context.configure(130, 100, 0, None)?;
    equal!((context.query()?.priority, context.query()?.ceiling), (130, 100));
    equal!(OWN.query()?.priority, PRIORITY);
    Ok(())
}

fn ceiling(stage: &mut Stage) -> Outcome {
    let (context, authority) = (stage.make::<SchedulingContext>(0)?, stage.make::<SchedulingContext>(0)?);
    let own = OWN.query()?.ceiling;
    refused!(context.configure(own + 1, 0, 0, None), PriorityTooHigh);
    refused!(context.configure(0, own + 1, 0, None), PriorityTooHigh);
    context.configure(own, own, 1, None)?;
    refused!(context.configure(1, 0, 0, Some(authority)), PriorityTooHigh);
    authority.configure(0, 50, 0, None)?;
    refused!(context.configure(51, 50, 0, Some(authority)), PriorityTooHigh);
    refused!(context.configure(50, 51, 0, Some(authority)), PriorityTooHigh);
    context.configure(50, 50, 0, Some(authority))?;
    // A context does not authorise priorities above its own ceiling for itself either.
    refused!(context.configure(51, 51, 0, Some(context)), PriorityTooHigh);
    Ok(())
}

fn arguments(stage: &mut Stage) -> Outcome {
    let (context, empty) = (stage.make::<SchedulingContext>(0)?, stage.slot());
    for priority in [256, 1 << 32, u64::MAX] {
        refused!(context.configure(priority, 0, 0, None), InvalidArgument);
        refused!(context.configure(0, priority, 0, None), InvalidArgument);
    }
    refused!(context.configure(0, 0, 0, Some(Cap::new(stage.pool.address()))), WrongType);
    refused!(context.configure(0, 0, 0, Some(Cap::new(empty))), InvalidCapability);
    let weak = stage.mint(context, Rights::READ, 0)?;
    refused!(weak.configure(0, 0, 0, None), MissingRights);
    refused!(context.configure(0, 0, 0, Some(weak)), MissingRights);
    context.configure(0, 0, u64::MAX, None)?;
    equal!(context.query()?.slice, u64::MAX);
    Ok(())
}

fn slice_limit(stage: &mut Stage) -> Outcome {
    let own = OWN.query()?;
    let (top, below, longest) = (own.ceiling, own.ceiling - 1, own.slice);
    let context = stage.make::<SchedulingContext>(0)?;
    for slice in [0, u64::MAX, longest + 1] {
        for (priority, ceiling) in [(top, top), (top, 0), (below, top), (0, top), (top, below)] {
            refused!(context.configure(priority, ceiling, slice, None), SliceTooLong);
            refused!(context.configure(priority, ceiling, slice, Some(OWN)), SliceTooLong);
        }
        context.configure(below, below, slice, None)?;
    }
    context.configure(top, top, longest, None)?;
    context.configure(top, top, 1, None)?;
    // A context without authority passes none on.
    let (first, second) = (stage.make::<SchedulingContext>(0)?, stage.make::<SchedulingContext>(0)?);
    first.configure(50, 50, 0, None)?;
    for slice in [0, 1, u64::MAX] {
        second.configure(50, 50, slice, Some(first))?;
    }
    // A new context authorises nothing, not even priority 0.
    let new = stage.make::<SchedulingContext>(0)?;
    refused!(second.configure(0, 0, 0, Some(new)), SliceTooLong);
    second.configure(0, 0, 1, Some(new))?;
    // A refused operation changes nothing.
    let info = second.query()?;
    equal!((info.priority, info.ceiling, info.slice), (0, 0, 1));
    Ok(())
}

fn higher_first(stage: &mut Stage) -> Outcome {
    let (order, notification) = (stage.word(0)?, stage.notification()?);
    stage.spawn_with(Equipment::at(HIGH), move || {
        let _ = notification.wait();
        order.append(2);
    })?;
    order.append(1);
    notification.signal()?;
    order.append(3);
    equal!(order.get(), 123);
    stage.spawn_with(Equipment::at(HIGH + 1), move || order.append(4))?;
    order.append(5);
    equal!(order.get(), 12345);
    Ok(())
}

fn lower_waits(stage: &mut Stage) -> Outcome {
    let order = stage.word(0)?;
    let lower = stage.spawn_with(Equipment::at(LOW - 1), move || order.append(3))?;
    let low = stage.spawn_with(Equipment::at(LOW), move || order.append(2))?;
    yield_now();
    order.append(1);
    lower.join()?;
    low.join()?;
    equal!(order.get(), 123);
    Ok(())
}

fn signalled_equal(stage: &mut Stage) -> Outcome {
    for priority in [PRIORITY, LOW] {
        let (order, notification) = (stage.word(0)?, stage.notification()?);
        let waiter = stage.spawn_with(Equipment::at(priority), move || {
            let _ = notification.wait();
            order.append(2);
        })?;
        pause(stage)?;
        notification.signal()?;
        order.append(1);
        waiter.join()?;
        equal!(order.get(), 12);
    }
    Ok(())
}

fn yields(stage: &mut Stage) -> Outcome {
    let order = stage.word(0)?;
    let mut last = None;
    for digit in 1..=3 {
        last = Some(stage.spawn_with(Equipment::at(LOW), move || {
            for _ in 0..3 {
                order.append(digit);
                yield_now();
            }
        })?);
    }
    if let Some(last) = last {
        last.join()?;
    }
    equal!(order.get(), 123_123_123);
    Ok(())
}

/// Runs two threads that count for ever. Returns what they have counted after a while.
fn count(stage: &mut Stage, slice: u64) -> Outcome<[u64; 2]> {
    let words = [stage.word(1)?, stage.word(2)?];
    for word in words {
        stage.spawn_with(Equipment { slice, ..Equipment::at(LOW) }, move || {
            loop {
                word.fetch_add();
            }
        })?;
    }
    for _ in 0..10 {
        pause(stage)?;
    }
    Ok(words.map(|word| word.get()))
}

fn slices(stage: &mut Stage) -> Outcome {
    let [a, b] = count(stage, MOMENT / 4)?;
    check!(a > 0 && b > 0);
    // Neither had more than twice the other's time.
    check!(a < 2 * b && b < 2 * a);
    Ok(())
}

fn no_slice(stage: &mut Stage) -> Outcome {
    let [a, b] = count(stage, 0)?;
    check!(a > 0);
    equal!(b, 0);
    Ok(())
}

fn change(stage: &mut Stage) -> Outcome {
    let order = stage.word(0)?;
    let first = stage.spawn_with(Equipment::at(LOW), move || order.append(2))?;
    let second = stage.spawn_with(Equipment::at(LOW), move || order.append(1))?;
    equal!(second.thread.query()?.priority, LOW);
    second.scheduling.configure(HIGH, HIGH, 0, None)?;
    equal!(order.get(), 1);
    first.scheduling.configure(PRIORITY, PRIORITY, 0, None)?;
    equal!(order.get(), 1);
    yield_now();
    equal!(order.get(), 12);
    check!(first.has_ended() && second.has_ended());
    Ok(())
}

fn consumed(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn_with(Equipment::at(LOW), || {
        loop {
            core::hint::spin_loop();
        }
    })?;
    equal!(worker.scheduling.query()?.consumed, 0);
    pause(stage)?;
    let once = worker.scheduling.query()?.consumed;
    check!(once > MOMENT / 2 && once < 2 * MOMENT);
    equal!(worker.thread.query()?.ticks, once);
    worker.thread.suspend()?;
    pause(stage)?;
    equal!(worker.scheduling.query()?.consumed, once);
    worker.thread.resume()?;
    pause(stage)?;
    check!(worker.scheduling.query()?.consumed > once);
    Ok(())
}

fn deleted(stage: &mut Stage) -> Outcome {
    let word = stage.word(0)?;
    let worker = stage.spawn_with(Equipment::at(LOW), move || {
        loop {
            word.fetch_add();
        }
    })?;
    pause(stage)?;
    worker.scheduling.revoke()?;
    worker.scheduling.delete()?;
    let before = word.get();
    pause(stage)?;
    equal!((word.get(), worker.state()?, worker.thread.query()?.priority), (before, ThreadState::Ready, 0));
    let another = stage.make::<SchedulingContext>(0)?;
    another.configure(LOW, LOW, 0, None)?;
    worker.thread.bind(Bindings { scheduling: Binding::To(another), ..Bindings::KEEP })?;
    pause(stage)?;
    check!(word.get() > before);
    Ok(())
}

/// Equipment of a server that runs on its callers' time.
const PASSIVE: Equipment = Equipment { priority: None, ..Equipment::at(0) };

fn on_callers(stage: &mut Stage) -> Outcome {
    let (endpoint, setup) = (stage.endpoint()?, stage.make::<SchedulingContext>(0)?);
    let server = stage.spawn_with(PASSIVE, move || -> Result<(), Error> {
        let mut received = endpoint.receive(Wait::FOREVER)?;
        loop {
            let priority = tench::thread::current_thread().query()?.priority;
            received = endpoint.reply_receive(&Message::with_words(received.label(), &[priority]), Wait::FOREVER)?;
        }
    })?;
    // It gets time of its own until it waits for the first time.
    setup.configure(HIGH, HIGH, 0, None)?;
    server.thread.bind(Bindings { scheduling: Binding::To(setup), ..Bindings::KEEP })?;
    equal!(server.state()?, ThreadState::Receiving);
    server.thread.bind(Bindings { scheduling: Binding::Unbind, ..Bindings::KEEP })?;
    for priority in [LOW, HIGH, LOW + 1] {
        let caller = stage.spawn_with(Equipment::at(priority), move || {
            endpoint.call(&Message::new(4)).map(|reply| (reply.label(), reply.word(0)))
        })?;
        equal!(caller.join()?, Ok((4, priority)));
        equal!(caller.thread.query()?.priority, priority);
    }
    equal!(endpoint.call(&Message::new(5))?.word(0), PRIORITY);
    equal!(server.thread.query()?.priority, 0);
    Ok(())
}

fn caller_gone(stage: &mut Stage) -> Outcome {
    let (endpoint, setup) = (stage.endpoint()?, stage.make::<SchedulingContext>(0)?);
    let (gate, rounds) = (stage.word(0)?, stage.word(1)?);
    let server = stage.spawn_with(PASSIVE, move || -> Result<(), Error> {
        endpoint.receive(Wait::FOREVER)?;
        loop {
            while gate.get() == 0 {
                rounds.fetch_add();
            }
            endpoint.reply_receive(&Message::new(3), Wait::FOREVER)?;
        }
    })?;
    setup.configure(HIGH, HIGH, 0, None)?;
    server.thread.bind(Bindings { scheduling: Binding::To(setup), ..Bindings::KEEP })?;
    server.thread.bind(Bindings { scheduling: Binding::Unbind, ..Bindings::KEEP })?;
    server.thread.serve(endpoint, 0)?;
    let call = move || endpoint.call(&Message::new(1)).map(|reply| reply.label());
    let caller = stage.spawn_with(Equipment::at(LOW), call)?;
    pause(stage)?;
    check!(rounds.get() > 0);
    // The caller keeps its priority; the server has the same.
    equal!((server.thread.query()?.priority, caller.thread.query()?.priority), (LOW, LOW));
    caller.thread.suspend()?;
    let before = rounds.get();
    pause(stage)?;
    equal!((rounds.get(), server.state()?, server.thread.query()?.priority), (before, ThreadState::Ready, 0));
    // The next caller waits for the unfinished request, so that is completed on the caller's time.
    let next = stage.spawn_with(Equipment::at(LOW + 1), call)?;
    pause(stage)?;
    equal!(server.thread.query()?.priority, LOW + 1);
    check!(rounds.get() > before);
    gate.set(1);
    equal!(next.join()?, Ok(3));
    caller.thread.resume()?;
    equal!(caller.join()?, Err(Error::Aborted));
    Ok(())
}

fn deadline_preempts(stage: &mut Stage) -> Outcome {
    let (never, order) = (stage.notification()?, stage.word(0)?);
    let early = stage.spawn(move || {
        let ended = never.wait_until(soon());
        order.append(1);
        ended
    })?;
    let busy = stage.spawn_with(Equipment::at(LOW), move || {
        while order.get() == 0 {
            core::hint::spin_loop();
        }
        order.append(2);
    })?;
    equal!(early.join()?, Err(Error::TimedOut));
    busy.join()?;
    equal!(order.get(), 12);
    Ok(())
}
