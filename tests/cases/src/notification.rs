//! Tests of notifications.

use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, Error, Instant, Message, Notification, Rights, Tag, Wait, ipc::BOUND_REPLY};

use crate::case::{Case, Outcome};
use crate::stage::{LOW, Stage};
use crate::worker::{Equipment, MOMENT, Worker, patience, soon};
use tench::abi::object::ThreadState;

pub const CASES: &[Case] = &[
    Case::new("NTF0001", "a signal is kept until somebody waits, and taken once", kept),
    Case::new("NTF0002", "signals set the bits of their badges", badges),
    Case::new("NTF0003", "a signal wakes a waiter of higher priority at once", wakes),
    Case::new("NTF0004", "a signal wakes one waiter, the first first", first_waiter),
    Case::new("NTF0005", "a wait ends at its deadline, not before", deadline),
    Case::new("NTF0006", "a deadline in the past ends a wait at once", past),
    Case::new("NTF0007", "a signal before the deadline ends the deadline", signal_in_time),
    Case::new("NTF0008", "deleting a notification ends all waits", deleted),
    Case::new("NTF0009", "polling waits for nothing", poll),
    Case::new("NTF0010", "a bound notification ends a receive", bound_receive),
    Case::new("NTF0011", "a signal of before comes before the messages that wait", bound_pending),
    Case::new("NTF0012", "a thread that does not receive finds the signal later", bound_later),
    Case::new("NTF0013", "an unbound notification ends no receive", unbound),
    Case::new("NTF0014", "a deleted notification is bound no longer", bound_deleted),
    Case::new("NTF0015", "reply-and-receive waits for signals", reply_receive),
    Case::new("NTF0016", "a suspended waiter leaves the queue", suspended),
    Case::new("NTF0017", "many deadlines end in their order", many_deadlines),
];

fn kept(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    notification.signal()?;
    notification.signal()?;
    equal!(notification.wait_until(patience())?, 1);
    refused!(notification.poll(), WouldBlock);
    Ok(())
}

fn badges(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    let (a, b) = (stage.mint(notification, Rights::WRITE, 0x10)?, stage.mint(notification, Rights::WRITE, 1 << 63)?);
    a.signal()?;
    b.signal()?;
    a.signal()?;
    equal!(notification.poll()?, 1 << 63 | 0x10);
    notification.signal()?;
    equal!(notification.poll()?, 1);
    refused!(a.poll(), MissingRights);
    let reader = stage.mint(notification, Rights::READ, 0)?;
    refused!(reader.signal(), MissingRights);
    refused!(reader.poll(), WouldBlock);
    Ok(())
}

fn wakes(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    let badged = stage.mint(notification, Rights::WRITE, 6)?;
    let worker = stage.spawn(move || notification.wait())?;
    equal!(worker.state()?, ThreadState::Waiting);
    badged.signal()?;
    check!(worker.has_ended());
    equal!(worker.join()?, Ok(6));
    refused!(notification.poll(), WouldBlock);
    Ok(())
}

fn first_waiter(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    let first = stage.spawn(move || notification.wait())?;
    let second = stage.spawn(move || notification.wait())?;
    let third = stage.spawn(move || notification.wait())?;
    notification.signal()?;
    check!(first.has_ended() && !second.has_ended() && !third.has_ended());
    notification.signal()?;
    check!(second.has_ended() && !third.has_ended());
    notification.signal()?;
    check!(third.has_ended());
    Ok(())
}

fn deadline(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    let begin = Instant::now();
    refused!(notification.wait_until(begin.after(MOMENT)), TimedOut);
    let passed = Instant::now().since(begin);
    check!((MOMENT..10 * MOMENT).contains(&passed));
    notification.signal()?;
    equal!(notification.poll()?, 1);
    Ok(())
}

fn past(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    for deadline in [Instant::from_ticks(0), Instant::from_ticks(1), Instant::now()] {
        refused!(notification.wait_until(deadline), TimedOut);
    }
    notification.signal()?;
    equal!(notification.wait_until(Instant::from_ticks(0))?, 1);
    Ok(())
}

fn signal_in_time(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    let deadline = soon();
    let worker = stage.spawn(move || (notification.wait_until(deadline), notification.wait()))?;
    notification.signal()?;
    // The deadline passes while the worker waits without a deadline.
    crate::worker::pause(stage)?;
    crate::worker::pause(stage)?;
    check!(!worker.has_ended());
    notification.signal()?;
    equal!(worker.join()?, (Ok(1), Ok(1)));
    Ok(())
}

fn deleted(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    let first = stage.spawn(move || notification.wait())?;
    let second = stage.spawn(move || notification.wait_until(patience()))?;
    notification.delete()?;
    equal!(first.join()?, Err(Error::Aborted));
    equal!(second.join()?, Err(Error::Aborted));
    Ok(())
}

fn poll(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    refused!(notification.poll(), WouldBlock);
    notification.signal()?;
    equal!(notification.poll()?, 1);
    Ok(())
}

/// Binds a notification to a worker.
fn bind<T>(worker: Worker<T>, notification: Cap<Notification>) -> Result<(), Error> {
    worker.thread.bind(Bindings { notification: Binding::To(notification), ..Bindings::KEEP })
}

fn bound_receive(stage: &mut Stage) -> Outcome {
    let (endpoint, notification) = (stage.endpoint()?, stage.notification()?);
    let badged = stage.mint(notification, Rights::WRITE, 0x70)?;
    let worker = stage.spawn(move || {
        let received = endpoint.receive(Wait::FOREVER)?;
        Ok::<_, Error>((received.tag().0, received.badge(), received.words().len()))
    })?;
    equal!(worker.state()?, ThreadState::Receiving);
    bind(worker, notification)?;
    badged.signal()?;
    equal!(worker.join()?, Ok((Tag::NOTIFICATION, 0x70, 0)));
    refused!(notification.poll(), WouldBlock);
    // The worker has left the endpoint's queue.
    refused!(endpoint.try_send(&Message::new(1)), WouldBlock);
    Ok(())
}

fn bound_pending(stage: &mut Stage) -> Outcome {
    let (endpoint, notification) = (stage.endpoint()?, stage.notification()?);
    let sender = stage.spawn(move || endpoint.send(&Message::new(5), Wait::FOREVER))?;
    let low = Equipment::at(LOW);
    let worker = stage.spawn_with(low, move || {
        let first = endpoint.receive(Wait::FOREVER)?;
        let second = endpoint.receive(Wait::FOREVER)?;
        Ok::<_, Error>((first.is_notification(), first.badge(), second.is_notification(), second.label()))
    })?;
    notification.signal()?;
    bind(worker, notification)?;
    equal!(worker.join()?, Ok((true, 1, false, 5)));
    sender.join()??;
    Ok(())
}

fn bound_later(stage: &mut Stage) -> Outcome {
    let (endpoint, notification, other) = (stage.endpoint()?, stage.notification()?, stage.notification()?);
    let worker = stage.spawn(move || {
        other.wait()?;
        let received = endpoint.receive(Wait::FOREVER)?;
        Ok::<_, Error>((received.is_notification(), received.badge()))
    })?;
    bind(worker, notification)?;
    notification.signal()?;
    check!(!worker.has_ended());
    other.signal()?;
    equal!(worker.join()?, Ok((true, 1)));
    Ok(())
}

fn unbound(stage: &mut Stage) -> Outcome {
    let (endpoint, notification) = (stage.endpoint()?, stage.notification()?);
    let worker = stage.spawn(move || endpoint.receive(Wait::FOREVER).map(|received| received.label()))?;
    bind(worker, notification)?;
    worker.thread.bind(Bindings { notification: Binding::Unbind, ..Bindings::KEEP })?;
    notification.signal()?;
    check!(!worker.has_ended());
    equal!(notification.poll()?, 1);
    endpoint.send(&Message::new(8), Wait::until(patience()))?;
    equal!(worker.join()?, Ok(8));
    Ok(())
}

fn bound_deleted(stage: &mut Stage) -> Outcome {
    let (endpoint, notification) = (stage.endpoint()?, stage.notification()?);
    let worker = stage.spawn(move || endpoint.receive(Wait::FOREVER).map(|received| received.label()))?;
    bind(worker, notification)?;
    // The thread's own capability is still there.
    equal!(notification.delete()?.freed, None);
    worker.thread.bind(Bindings { notification: Binding::Unbind, ..Bindings::KEEP })?;
    let other = stage.notification()?;
    bind(worker, other)?;
    other.revoke()?;
    let third = stage.notification()?;
    bind(worker, third)?;
    endpoint.send(&Message::new(8), Wait::until(patience()))?;
    equal!(worker.join()?, Ok(8));
    Ok(())
}

fn reply_receive(stage: &mut Stage) -> Outcome {
    let (endpoint, notification) = (stage.endpoint()?, stage.notification()?);
    let worker = stage.spawn(move || {
        let call = endpoint.receive(Wait::FOREVER)?;
        let next = endpoint.reply_receive(&Message::with_words(4, &[call.word(0) + 1]), Wait::FOREVER)?;
        let third = endpoint.reply_receive(&Message::new(0), Wait::FOREVER)?;
        BOUND_REPLY.reply(&Message::new(6))?;
        Ok::<_, Error>((next.is_notification(), next.badge(), third.label()))
    })?;
    bind(worker, notification)?;
    let reply = endpoint.call_with(&Message::with_words(3, &[41]), Wait::until(patience()))?;
    equal!((reply.label(), reply.word(0)), (4, 42));
    notification.signal()?;
    equal!(endpoint.call_with(&Message::new(9), Wait::until(patience()))?.label(), 6);
    equal!(worker.join()?, Ok((true, 1, 9)));
    Ok(())
}

fn suspended(stage: &mut Stage) -> Outcome {
    let notification = stage.notification()?;
    let first = stage.spawn(move || notification.wait())?;
    let second = stage.spawn(move || notification.wait())?;
    first.thread.suspend()?;
    notification.signal()?;
    equal!(second.join()?, Ok(1));
    first.thread.resume()?;
    equal!(first.join()?, Err(Error::Aborted));
    Ok(())
}

fn many_deadlines(stage: &mut Stage) -> Outcome {
    let (never, order) = (stage.notification()?, stage.word(0)?);
    let begin = Instant::now().after(4 * MOMENT);
    let mut workers = [None; 6];
    for (worker, place) in workers.iter_mut().zip([3, 0, 5, 1, 4, 2]) {
        *worker = Some(stage.spawn(move || {
            let ended = never.wait_until(begin.after(place * 100)) == Err(Error::TimedOut);
            let turn = order.fetch_add();
            (ended, turn == place)
        })?);
    }
    for worker in workers.into_iter().flatten() {
        equal!(worker.join()?, (true, true));
    }
    Ok(())
}
