//! Notices of messages, and the number of queues.

use tench_linux_queues::{Errno, Limits, Message, Owned, QueueId, Queues, Wanted};

const OWNED: Owned = Owned { permissions: 0o600, user: 5, group: 6 };
const NEW: Wanted = Wanted { make: Some((Limits::USUAL, OWNED)), is_new: false, is_privileged: false };

fn message(priority: u32) -> Message {
    Message { priority, bytes: Box::new([1]) }
}

fn opened() -> (Queues<&'static str>, QueueId) {
    let mut queues = Queues::default();
    let id = queues.open(b"a", NEW, |_| Ok(())).unwrap();
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
    let opened: Vec<QueueId> = (0..).map_while(|number| queues.open(&names(number), NEW, |_| Ok(())).ok()).collect();
    // As many as Linux lets a user have.
    assert_eq!(opened.len(), 9);
    assert_eq!(queues.open(b"a", NEW, |_| Ok(())), Err(Errno::EMFILE));
    queues.close(opened[0]);
    assert_eq!(queues.open(b"a", NEW, |_| Ok(())), Err(Errno::EMFILE), "it still has its name");
    queues.unlink(&names(0), |_| Ok(())).unwrap();
    assert!(queues.open(b"a", NEW, |_| Ok(())).is_ok());
    queues.check().unwrap();
}

#[test]
fn who_may_not_is_refused_and_leaves_the_queue_as_it_is() {
    let mut queues: Queues<u32> = Queues::default();
    let id = queues.open(b"a", NEW, |_| Err(Errno::EACCES)).unwrap();
    assert_eq!(queues.owned(id), OWNED);
    let refused = |owned| if owned == OWNED { Err(Errno::EACCES) } else { Ok(()) };
    assert_eq!(queues.open(b"a", NEW, refused), Err(Errno::EACCES));
    assert_eq!(queues.unlink(b"a", refused), Err(Errno::EACCES));
    assert_eq!(queues.check(), Ok(()));
    let large = Limits { messages: 11, ..Limits::USUAL };
    let wanted = Wanted { make: Some((large, OWNED)), ..NEW };
    assert_eq!(queues.open(b"b", wanted, |_| Ok(())), Err(Errno::EINVAL), "only who is privileged may have more");
    assert!(queues.open(b"b", Wanted { is_privileged: true, ..wanted }, |_| Ok(())).is_ok());
    queues.close(id);
    assert_eq!(queues.unlink(b"a", |_| Ok(())), Ok(()));
}
