//! Notices of messages, and the number of queues.

use tench_linux_queues::{Errno, Limits, Message, QueueId, Queues, Wanted};

const NEW: Wanted = Wanted { make: Some((Limits::USUAL, 0o600)), is_new: false };

fn message(priority: u32) -> Message {
    Message { priority, bytes: Box::new([1]) }
}

fn opened() -> (Queues<&'static str>, QueueId) {
    let mut queues = Queues::default();
    let id = queues.open(b"a", NEW).unwrap();
    (queues, id)
}

#[test]
fn one_process_is_told_once_that_a_message_has_come_to_the_empty_queue() {
    let (mut queues, id) = opened();
    queues.notify(id, 7, "seven").unwrap();
    assert_eq!(queues.notify(id, 8, "eight"), Err(Errno::EBUSY));
    assert_eq!(queues.notify(id, 7, "again"), Err(Errno::EBUSY));
    queues.forget(id, 8);
    assert_eq!(queues.send(id, message(0), false), Ok(Some((7, "seven"))));
    assert_eq!(queues.send(id, message(0), false), Ok(None));
    // The queue is not empty, so nobody is told, and the process still waits to be.
    queues.notify(id, 8, "eight").unwrap();
    assert_eq!(queues.send(id, message(0), false), Ok(None));
    for _ in 0..3 {
        queues.receive(id).unwrap();
    }
    assert_eq!(queues.send(id, message(0), false), Ok(Some((8, "eight"))));
}

#[test]
fn nobody_is_told_of_a_message_that_somebody_awaits() {
    let (mut queues, id) = opened();
    queues.notify(id, 7, "seven").unwrap();
    assert_eq!(queues.send(id, message(0), true), Ok(None));
    queues.receive(id).unwrap();
    assert_eq!(queues.send(id, message(0), false), Ok(Some((7, "seven"))));
}

#[test]
fn who_forgets_is_not_told() {
    let (mut queues, id) = opened();
    queues.notify(id, 7, "seven").unwrap();
    queues.forget(id, 7);
    assert_eq!(queues.send(id, message(0), false), Ok(None));
}

#[test]
fn all_queues_together_have_a_limit() {
    let mut queues: Queues<()> = Queues::default();
    let names = |number: u32| number.to_le_bytes().map(|byte| byte | 0x80);
    let opened: Vec<QueueId> = (0..).map_while(|number| queues.open(&names(number), NEW).ok()).collect();
    // As many as Linux lets a user have.
    assert_eq!(opened.len(), 9);
    assert_eq!(queues.open(b"a", NEW), Err(Errno::EMFILE));
    queues.close(opened[0]);
    assert_eq!(queues.open(b"a", NEW), Err(Errno::EMFILE), "it still has its name");
    queues.unlink(&names(0)).unwrap();
    assert!(queues.open(b"a", NEW).is_ok());
    queues.check().unwrap();
}
