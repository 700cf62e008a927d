//! The task table by itself.

use std::collections::HashMap;

use proptest::prelude::*;
use tench_srr::Error;
use tench_srr::table::{MAX_TASKS, Meeting, PRIORITIES, State, Table, Tid};

#[test]
fn the_lowest_free_identifier_is_given() {
    let table = Table::new(8);
    for n in 0..5 {
        assert_eq!(table.create(None, 0), Ok(Tid(n)));
    }
    table.exit(Tid(3), |_| ());
    table.exit(Tid(1), |_| ());
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
    assert_eq!(table.receive(server), None);
    assert_eq!(table.send(a, server), Ok(Meeting::Delivered));
    assert_eq!((table.state(server), table.state(a)), (State::Ready, State::ReplyWait));
    assert_eq!(table.send(b, server), Ok(Meeting::Queued));
    assert_eq!(table.reply(b), Err(Error::Incomplete));
    assert_eq!(table.receive(server), Some(b));
    assert_eq!(table.reply(b), Ok(()));
    assert_eq!(table.reply(b), Err(Error::Incomplete));
    assert_eq!(table.reply(a), Ok(()));
    table.check_invariants();
}

#[test]
fn ready_tasks_run_by_priority_and_then_in_order() {
    let table = Table::new(256);
    let tids: [Tid; 5] = [7, 200, 63, 64, 7].map(|priority| table.create(None, priority).unwrap());
    tids.into_iter().for_each(|tid| table.queue(tid));
    table.check_invariants();
    let order = core::array::from_fn(|_| table.take_next().unwrap());
    assert_eq!(order, [tids[1], tids[3], tids[2], tids[0], tids[4]]);
    assert_eq!(table.take_next(), None);
}

#[test]
fn a_running_task_goes_behind_its_equals_and_a_preempted_one_before_them() {
    let table = Table::new(8);
    let [a, b, c, high] = [3, 3, 3, 4].map(|priority| table.create(None, priority).unwrap());
    assert_eq!(table.give_way(a), None, "nobody else is ready");
    table.queue(b);
    assert_eq!(table.give_way(a), Some(b));
    table.queue(c);
    assert!(!table.is_outranked(b));
    assert_eq!(table.hand_over(high), high, "it has the highest priority");
    table.queue_first(b);
    assert_eq!(core::array::from_fn(|_| table.take_next()), [Some(b), Some(a), Some(c), None]);
    table.queue(high);
    assert!(table.is_outranked(b));
    assert_eq!(table.hand_over(b), high);
    assert_eq!(table.take_next(), Some(b));
}

/// A step of the running task.
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
        4 => (-1..5).prop_map(Step::Create),
        4 => prop_oneof![0..4u32, tid.clone()].prop_map(Step::Send),
        2 => Just(Step::Receive),
        4 => prop_oneof![0..8u32, tid].prop_map(Step::Reply),
        1 => (-1..3).prop_map(Step::Await),
        2 => Just(Step::Tick),
        1 => Just(Step::Exit),
    ]
}

/// The queues as lists.
#[derive(Default)]
struct Model {
    /// Ready tasks that do not run, in the order in which they became ready.
    ready: Vec<Tid>,
    /// By receiver, the senders.
    senders: HashMap<Tid, Vec<Tid>>,
}

impl Model {
    /// Removes the task that runs next.
    fn take_next(&mut self, table: &Table) -> Option<Tid> {
        let highest = self.ready.iter().map(|tid| table.priority(*tid)).max()?;
        let index = self.ready.iter().position(|tid| table.priority(*tid) == highest)?;
        Some(self.ready.remove(index))
    }

    /// Performs a step of the task `actor` on the table and on the lists. Returns whether the table refuses it.
    fn perform(&mut self, table: &Table, actor: Tid, step: Step) -> Result<bool, TestCaseError> {
        let awaiting = (0..MAX_TASKS as u32).map(Tid).find(|tid| table.state(*tid) == State::EventWait);
        Ok(match step {
            Step::Create(priority) => match table.create(Some(actor), priority) {
                Ok(tid) => {
                    table.queue(tid);
                    self.ready.push(tid);
                    false
                }
                Err(_) => true,
            },
            Step::Send(to) => match table.send(actor, Tid(to)) {
                Ok(Meeting::Queued) => {
                    self.senders.entry(Tid(to)).or_default().push(actor);
                    false
                }
                Ok(Meeting::Delivered) => {
                    // The task that would run now is put back at the head of its queue.
                    let next = table.hand_over(Tid(to));
                    table.queue_first(next);
                    self.ready.push(Tid(to));
                    false
                }
                Err(_) => true,
            },
            Step::Receive => {
                let senders = self.senders.entry(actor).or_default();
                let first = if senders.is_empty() { None } else { Some(senders.remove(0)) };
                prop_assert_eq!(table.receive(actor), first);
                false
            }
            Step::Reply(to) => {
                let result = table.reply(Tid(to));
                self.ready.extend(result.is_ok().then_some(Tid(to)));
                result.is_err()
            }
            Step::Await(event) => {
                let result = table.await_event(actor, event);
                prop_assert_eq!(result.is_ok(), event == 0 && awaiting.is_none());
                prop_assert_eq!(result == Err(Error::EventTaken), event == 0 && awaiting.is_some());
                result.is_err()
            }
            Step::Tick => {
                prop_assert_eq!(table.event_comes(0), awaiting);
                prop_assert!(!table.awaits_events());
                self.ready.extend(awaiting);
                awaiting.is_none()
            }
            Step::Exit => {
                let mut aborted = Vec::new();
                table.exit(actor, |sender| aborted.push(sender));
                prop_assert_eq!(&aborted, &self.senders.remove(&actor).unwrap_or_default());
                self.ready.extend(aborted);
                false
            }
        })
    }
}

proptest! {
    /// Whatever tasks do, the table's invariants hold, a refused step changes nothing, and the next task is that of the
    /// highest priority which became ready first.
    #[test]
    fn the_table_is_a_scheduler(steps in proptest::collection::vec(step(), 1..400)) {
        let table = Table::new(4);
        let mut model = Model::default();
        let mut actor = table.create(None, 1).unwrap();
        for step in steps {
            let states = || Vec::from_iter((0..MAX_TASKS as u32).map(|n| table.state(Tid(n))));
            let before = states();
            if model.perform(&table, actor, step)? {
                prop_assert_eq!(before, states());
            }
            table.check_invariants();
            let next = if table.state(actor) == State::Ready {
                model.ready.push(actor);
                table.give_way(actor).or(Some(actor))
            } else {
                table.take_next()
            };
            prop_assert_eq!(next, model.take_next(&table));
            table.check_invariants();
            match next {
                Some(next) => actor = next,
                None => break,
            }
        }
    }
}
