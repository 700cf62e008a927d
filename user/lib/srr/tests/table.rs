//! The task table by itself.

use proptest::prelude::*;
use tench_srr::Error;
use tench_srr::table::{Arrival, MAX_TASKS, Meeting, PRIORITIES, State, Table, Tid};

#[test]
fn the_lowest_free_identifier_is_given() {
    let table = Table::new(8);
    for n in 0..5 {
        assert_eq!(table.create(None, 0), Ok(Tid(n)));
    }
    table.exit(Tid(3));
    table.exit(Tid(1));
    assert_eq!(table.create(Some(Tid(4)), 7), Ok(Tid(1)));
    assert_eq!(table.parent(Tid(1)), Some(Tid(4)));
    assert_eq!(table.create(None, 0), Ok(Tid(3)));
    assert_eq!(table.create(None, 0), Ok(Tid(5)));
    assert_eq!(table.parent(Tid(5)), None);
}

#[test]
fn priorities_have_bounds() {
    let table = Table::new(8);
    assert_eq!(table.create(None, 8), Err(Error::InvalidPriority));
    assert_eq!(table.create(None, -1), Err(Error::InvalidPriority));
    let table = Table::new(u32::MAX);
    assert_eq!(table.create(None, PRIORITIES as i32), Err(Error::InvalidPriority));
    assert_eq!(table.create(None, PRIORITIES as i32 - 1), Ok(Tid(0)));
}

#[test]
fn a_message_is_delivered_or_queued() {
    let table = Table::new(8);
    let [server, a, b] = core::array::from_fn(|_| table.create(None, 1).unwrap());
    assert_eq!(table.receive(server), Arrival::Nobody);
    assert_eq!(table.send(a, server), Ok(Meeting::Delivered));
    assert_eq!((table.state(server), table.state(a)), (State::Ready, State::ReplyWait));
    assert_eq!(table.send(b, server), Ok(Meeting::Queued));
    assert_eq!(table.reply(b), Err(Error::Incomplete));
    assert_eq!(table.receive(server), Arrival::Waiting);
    table.take(server, b);
    assert_eq!(table.reply(b), Ok(()));
    assert_eq!(table.reply(b), Err(Error::Incomplete));
    assert_eq!(table.reply(a), Ok(()));
    table.check_invariants();
}

/// A step of some task, the running one if it is ready.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create(i32),
    Send(u32),
    Receive,
    Reply(u32),
    Await(i32),
    Tick,
    Exit,
}

fn step() -> impl Strategy<Value = Step> {
    let tid = 0..MAX_TASKS as u32 + 2;
    prop_oneof![
        3 => (-1..5).prop_map(Step::Create),
        4 => prop_oneof![0..4u32, tid.clone()].prop_map(Step::Send),
        4 => Just(Step::Receive),
        4 => prop_oneof![0..8u32, tid].prop_map(Step::Reply),
        1 => (-1..3).prop_map(Step::Await),
        1 => Just(Step::Tick),
        1 => Just(Step::Exit),
    ]
}

proptest! {
    /// The table's invariants hold whatever tasks do, and a refused step changes nothing.
    #[test]
    fn the_account_is_always_right(steps in proptest::collection::vec((0..MAX_TASKS as u32, step()), 1..400)) {
        let table = Table::new(4);
        let mut queues = vec![Vec::new(); MAX_TASKS];
        table.create(None, 1).unwrap();
        for (actor, step) in steps {
            let Some(actor) = (0..MAX_TASKS as u32)
                .map(|n| Tid((n + actor) % MAX_TASKS as u32))
                .find(|tid| table.state(*tid) == State::Ready)
            else {
                break;
            };
            let before: Vec<_> = (0..MAX_TASKS as u32).map(|n| table.state(Tid(n))).collect();
            let refused = match step {
                Step::Create(priority) => table.create(Some(actor), priority).is_err(),
                Step::Send(to) => match table.send(actor, Tid(to)) {
                    Ok(Meeting::Queued) => {
                        queues[to as usize].push(actor);
                        false
                    }
                    result => result.is_err(),
                },
                Step::Receive => {
                    if table.receive(actor) == Arrival::Waiting {
                        table.take(actor, queues[actor.0 as usize].remove(0));
                    }
                    false
                }
                Step::Reply(to) => table.reply(Tid(to)).is_err(),
                Step::Await(event) => {
                    let is_awaited = before.contains(&State::EventWait);
                    let result = table.await_event(actor, event);
                    prop_assert_eq!(result.is_ok(), event == 0 && !is_awaited);
                    prop_assert_eq!(result == Err(Error::EventTaken), event == 0 && is_awaited);
                    result.is_err()
                }
                Step::Tick => {
                    let waiter = before.iter().position(|state| *state == State::EventWait);
                    prop_assert_eq!(table.event_comes(0), waiter.map(|tid| Tid(tid as u32)));
                    prop_assert!(!table.awaits_events());
                    waiter.is_none()
                }
                Step::Exit => {
                    table.exit(actor);
                    for sender in std::mem::take(&mut queues[actor.0 as usize]) {
                        prop_assert_eq!(table.state(sender), State::Ready);
                    }
                    false
                }
            };
            if refused {
                let after: Vec<_> = (0..MAX_TASKS as u32).map(|n| table.state(Tid(n))).collect();
                prop_assert_eq!(before, after);
            }
            table.check_invariants();
        }
    }
}
