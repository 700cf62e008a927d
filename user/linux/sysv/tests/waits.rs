//! Operations that wait, in order, and what ends their wait.

use tench_linux_calls::ipc;
use tench_linux_sysv::{
    By, Done, Errno, Filter, Message, Operation, Owner, Queues, Received, Segments, Semaphores, User, Wanted,
};

/// A user to whom nothing is allowed that is not so for everybody.
const NOBODY: User<'static> =
    User { user: 1, group: 1, groups: &[], may_access_all: false, may_change_all: false, may_raise_limits: false };

fn by(thread: u32) -> By<'static> {
    By { user: User::SUPER_USER, process: thread, thread, now: 1 }
}

fn room(_: usize) -> Result<(), Errno> {
    Ok(())
}

fn operation(number: u16, change: i16) -> Operation {
    Operation { number, change, flags: 0 }
}

fn made(count: u64) -> (Semaphores, i32) {
    let mut semaphores = Semaphores::default();
    let id = semaphores.get(&by(1), ipc::PRIVATE, count, 0o600, room).unwrap();
    (semaphores, id)
}

fn operate(semaphores: &mut Semaphores, thread: u32, id: i32, operations: &[Operation]) -> Result<Done, Errno> {
    let done = semaphores.operate(&by(thread), id, operations, room);
    semaphores.check().unwrap();
    done
}

/// Returns the threads that were woken, with their results.
fn woken(semaphores: &mut Semaphores) -> Vec<(u32, Result<(), Errno>)> {
    let mut all = Vec::new();
    while let Some(thread) = semaphores.take_woken() {
        all.push((thread, semaphores.take_result(thread).unwrap()));
    }
    all
}

#[test]
fn those_who_wait_get_it_in_order_and_who_waits_for_zero_first() {
    let (mut semaphores, id) = made(1);
    for thread in [9, 3, 5] {
        assert_eq!(operate(&mut semaphores, thread, id, &[operation(0, -2)]), Ok(Done::Waits));
    }
    assert_eq!(semaphores.waiting(&by(1), id, 0, false), Ok(3));
    assert_eq!(operate(&mut semaphores, 1, id, &[operation(0, 3)]), Ok(Done::Now));
    assert_eq!(woken(&mut semaphores), [(9, Ok(()))]);
    assert_eq!(semaphores.value(&by(1), id, 0), Ok(1));
    assert_eq!(operate(&mut semaphores, 7, id, &[operation(0, 0)]), Ok(Done::Waits));
    assert_eq!(semaphores.waiting(&by(1), id, 0, true), Ok(1));
    assert_eq!(operate(&mut semaphores, 1, id, &[operation(0, 1)]), Ok(Done::Now));
    // What 3 leaves is zero.
    assert_eq!(woken(&mut semaphores), [(3, Ok(())), (7, Ok(()))]);
    assert_eq!(semaphores.last(&by(1), id, 0), Ok(7));
    semaphores.end_wait(5);
    assert_eq!(operate(&mut semaphores, 1, id, &[operation(0, 9)]), Ok(Done::Now));
    assert_eq!(woken(&mut semaphores), []);
    assert_eq!(semaphores.threads().count(), 0);
}

#[test]
fn all_operations_are_done_or_none_and_one_that_is_done_helps_others() {
    let (mut semaphores, id) = made(2);
    assert_eq!(operate(&mut semaphores, 2, id, &[operation(0, -1), operation(1, -1)]), Ok(Done::Waits));
    assert_eq!(operate(&mut semaphores, 3, id, &[operation(0, -1), operation(1, 1)]), Ok(Done::Waits));
    assert_eq!(operate(&mut semaphores, 1, id, &[operation(0, 2)]), Ok(Done::Now));
    assert_eq!(woken(&mut semaphores), [(3, Ok(())), (2, Ok(()))]);
    assert_eq!(semaphores.values(&by(1), id).unwrap(), [0; 4]);
}

#[test]
fn an_end_of_a_process_undoes_and_lets_others_go_on() {
    let (mut semaphores, id) = made(1);
    semaphores.set_value(&by(1), id, 0, 1).unwrap();
    let undone = Operation { flags: ipc::sem::UNDO as u16, ..operation(0, -1) };
    assert_eq!(operate(&mut semaphores, 2, id, &[undone]), Ok(Done::Now));
    assert_eq!(operate(&mut semaphores, 3, id, &[undone]), Ok(Done::Waits));
    semaphores.end_process(&by(2));
    assert_eq!(woken(&mut semaphores), [(3, Ok(()))]);
    assert_eq!(semaphores.processes().collect::<Vec<_>>(), [3]);
    semaphores.end_process(&by(3));
    assert_eq!(semaphores.value(&by(1), id, 0), Ok(1));
    assert_eq!(semaphores.processes().count(), 0);
    semaphores.check().unwrap();
}

#[test]
fn who_waits_for_what_is_removed_learns_of_that() {
    let (mut semaphores, id) = made(1);
    assert_eq!(operate(&mut semaphores, 2, id, &[operation(0, -1)]), Ok(Done::Waits));
    semaphores.remove(&by(1), id).unwrap();
    assert_eq!(woken(&mut semaphores), [(2, Err(Errno::EIDRM))]);
    let mut queues = Queues::default();
    let id = queues.get(&by(1), ipc::PRIVATE, 0o600).unwrap();
    assert_eq!(queues.receive(&by(2), id, wanted(Filter::Any, 9)), Ok(Received::Waits));
    queues.remove(&by(1), id).unwrap();
    assert_eq!((queues.take_woken(), queues.take_result(2)), (Some(2), Some(Err(Errno::EIDRM))));
    queues.check().unwrap();
}

fn wanted(filter: Filter, bytes: u64) -> Wanted {
    Wanted { filter, bytes, cuts: false, waits: true }
}

fn message(kind: i64, length: usize) -> Message {
    Message { kind, bytes: vec![0; length].into() }
}

#[test]
fn messages_go_to_the_first_who_wants_them_and_room_to_the_first_who_fits() {
    let mut queues = Queues::default();
    let id = queues.get(&by(1), ipc::PRIVATE, 0o600).unwrap();
    assert_eq!(queues.receive(&by(9), id, wanted(Filter::Of(2), 9)), Ok(Received::Waits));
    assert_eq!(queues.receive(&by(3), id, wanted(Filter::UpTo(5), 1)), Ok(Received::Waits));
    assert_eq!(queues.receive(&by(4), id, wanted(Filter::UpTo(5), 9)), Ok(Received::Waits));
    assert_eq!(queues.send(&by(1), id, message(3, 4), true), Ok(Received::Sent));
    assert_eq!((queues.take_woken(), queues.take_result(3)), (Some(3), Some(Err(Errno::E2BIG))));
    let received = Some(Ok(Received::Message(message(3, 4))));
    assert_eq!((queues.take_woken(), queues.take_result(4)), (Some(4), received));
    queues.check().unwrap();
    let owner = Owner { user: 0, group: 0, mode: 0o600 };
    queues.give(&by(1), id, &owner, 6).unwrap();
    assert_eq!(queues.send(&by(1), id, message(1, 6), true), Ok(Received::Sent));
    assert_eq!(queues.send(&by(8), id, message(1, 4), true), Ok(Received::Waits));
    assert_eq!(queues.send(&by(6), id, message(1, 3), true), Ok(Received::Waits));
    assert_eq!(queues.send(&by(5), id, message(2, 2), true), Ok(Received::Waits));
    assert_eq!(queues.receive(&by(1), id, wanted(Filter::Any, 9)), Ok(Received::Message(message(1, 6))));
    // Those of 4 and 2 bytes fit; the latter's is awaited, so that there is room for no more than before.
    let woken: Vec<u32> = std::iter::from_fn(|| queues.take_woken()).collect();
    assert_eq!(woken, [8, 5, 9]);
    assert_eq!(queues.take_result(9), Some(Ok(Received::Message(message(2, 2)))));
    assert!(queues.is_kept(6));
    queues.end_wait(6);
    queues.check().unwrap();
}

#[test]
fn permissions_are_those_of_the_owner_the_group_or_others() {
    let mut segments: Segments<()> = Segments::default();
    let user = |user, groups| By { user: User { user, group: 50, groups, ..NOBODY }, ..by(1) };
    let (owner, other) = (user(5, &[]), user(6, &[]));
    let id = segments.get(&owner, 9, 1, ipc::CREAT | 0o640, || Ok(())).unwrap();
    assert!(segments.attach(&owner, id, 0o666).is_ok());
    assert!(segments.attach(&other, id, 0o444).is_ok(), "of the same group");
    assert_eq!(segments.attach(&other, id, 0o666).err(), Some(Errno::EACCES));
    assert_eq!(segments.get(&other, 9, 1, 0o600, || Ok(())), Err(Errno::EACCES));
    assert_eq!(segments.remove(&other, id), Err(Errno::EPERM));
    segments.give(&owner, id, &Owner { user: 6, group: 51, mode: 0o060 }).unwrap();
    assert_eq!(segments.attach(&other, id, 0o444).err(), Some(Errno::EACCES), "the owner's come first");
    let third = By { user: User { user: 7, group: 1, groups: &[51], ..NOBODY }, ..by(1) };
    assert!(segments.attach(&third, id, 0o666).is_ok());
    assert!(segments.attach(&by(1), id, 0o777).is_ok(), "the super-user");
    assert!(segments.remove(&other, id).is_ok());
}

#[test]
fn identifiers_rise_and_begin_anew_with_another_number() {
    let mut queues = Queues::default();
    let mut next = || {
        let id = queues.get(&by(1), ipc::PRIVATE, 0).unwrap();
        queues.remove(&by(1), id).unwrap();
        id
    };
    let ids: Vec<i32> = (0..130).map(|_| next()).collect();
    assert_eq!((ids[0], ids[63], ids[64], ids[65], ids[128]), (0, 63, 32_768, 32_769, 65_536));
}

#[test]
fn there_are_no_more_than_linux_allows() {
    let mut segments: Segments<u32> = Segments::default();
    let mut get = |size| segments.get(&by(1), ipc::PRIVATE, size, 0, || Ok(0));
    let ids: Vec<i32> = (0..4096).map(|_| get(1).unwrap()).collect();
    assert_eq!(get(1), Err(Errno::ENOSPC));
    assert_eq!(get(0), Err(Errno::EINVAL), "that is said first");
    assert!(segments.remove(&by(1), ids[77]).is_ok());
    assert!(segments.get(&by(1), ipc::PRIVATE, 1, 0, || Ok(0)).is_ok());
    segments.check().unwrap();
    let mut large: Segments<()> = Segments::default();
    let mut get = |size| large.get(&by(1), ipc::PRIVATE, size, 0, || Ok(()));
    assert!(get(i64::MAX as u64).is_ok());
    assert_eq!(get(u64::MAX - (1 << 24) + 1), Err(Errno::EINVAL));
    assert_eq!(get(1 << 63), Err(Errno::EINVAL));
}
