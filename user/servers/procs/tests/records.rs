//! The process server's records.

use proptest::prelude::*;
use tench_procs::records::{Condition, MAX_ENDED, MAX_LIVING, MAX_WAITERS, Records};
use tench_procs_client::protocol::{Error, State};

type Table = Records<&'static str, u32>;

const EXITED: Condition = Condition { state: State::Exited, detail: 3 };

/// What the server does when somebody wants to wait.
fn wait(table: &mut Table, pid: u64, waiter: u64, reply: u32) -> Result<Option<Condition>, Error> {
    let ended = table.check_wait(pid)?;
    if ended.is_none() {
        table.wait(pid, waiter, reply);
    }
    Ok(ended)
}

/// `init` (1), a shell (2) that it started, and a program (3) that the shell started.
fn table() -> Table {
    let mut table = Table::default();
    for (name, parent) in [("init", 0), ("bin/shell", 1), ("/bin/hello", 2)] {
        let pid = table.prepare(name, parent, Some(name)).unwrap();
        table.get_mut(pid).unwrap().status = Condition::plain(State::Running);
    }
    table.get_mut(1).unwrap().manager = true;
    table.check_invariants();
    table
}

#[test]
fn identifiers_count_up_and_are_not_used_again() {
    let mut table = table();
    table.end(3, EXITED).unwrap();
    assert_eq!(table.prepare("x", 2, None), Ok(4));
    table.discard(4).unwrap();
    assert_eq!(table.prepare("x", 2, None), Ok(5));
    assert!(table.get(0).is_err() && table.get(4).is_err() && table.get(99).is_err() && table.get(u64::MAX).is_err());
    table.check_invariants();
}

#[test]
fn processes_are_found_by_path_and_base_name() {
    let mut table = table();
    assert_eq!(table.prepare("hello", 2, None), Ok(4));
    assert_eq!(table.find("hello", 0), Some(3));
    assert_eq!(table.find("hello", 3), Some(4));
    assert_eq!(table.find("hello", 4), None);
    assert_eq!(table.find("/bin/hello", 0), Some(3));
    assert_eq!(table.find("bin/hello", 0), Some(3));
    assert_eq!(table.find("shell", u64::MAX), None);
    table.end(3, EXITED).unwrap();
    assert_eq!(table.find("hello", 0), Some(4));
    assert_eq!(table.find("bin/hello", 0), None);
    table.check_invariants();
}

#[test]
fn those_who_wait_are_answered_before_and_after_the_end() {
    let mut table = table();
    assert_eq!(wait(&mut table, 3, 2, 10), Ok(None));
    assert_eq!(wait(&mut table, 3, 1, 11), Ok(None));
    assert_eq!(wait(&mut table, 9, 1, 12), Err(Error::NoSuchProcess));
    let ended = table.end(3, EXITED).unwrap();
    assert_eq!(ended.kernel, Some("/bin/hello"));
    assert_eq!(ended.waiters, [10, 11]);
    assert_eq!(wait(&mut table, 3, 2, 13), Ok(Some(EXITED)));
    assert_eq!(table.end(3, EXITED).err(), Some(Error::WrongState));
    assert_eq!(table.get(3).unwrap().status, EXITED);
    table.check_invariants();
}

#[test]
fn an_ended_process_waits_for_nobody() {
    let mut table = table();
    assert_eq!(wait(&mut table, 1, 2, 10), Ok(None));
    assert_eq!(wait(&mut table, 3, 2, 11), Ok(None));
    assert_eq!(wait(&mut table, 3, 1, 12), Ok(None));
    assert_eq!(table.end(2, EXITED).unwrap().abandoned, [10, 11]);
    assert_eq!(table.end(3, EXITED).unwrap().waiters, [12]);
}

#[test]
fn too_many_waiters_are_an_error() {
    let mut table = table();
    for n in 0..MAX_WAITERS as u32 {
        assert_eq!(wait(&mut table, 3, 2, n), Ok(None));
    }
    assert_eq!(wait(&mut table, 3, 2, 999), Err(Error::Full));
}

#[test]
fn one_manages_descendants_and_managers_manage_all() {
    let mut table = table();
    table.prepare("grandchild", 3, None).unwrap();
    table.prepare("other", 1, None).unwrap();
    assert_eq!(table.check_manage(2, 3), Ok(()));
    assert_eq!(table.check_manage(2, 4), Ok(()));
    assert_eq!(table.check_manage(2, 2), Ok(()));
    assert_eq!(table.check_manage(2, 1), Err(Error::NotAllowed));
    assert_eq!(table.check_manage(2, 5), Err(Error::NotAllowed));
    assert_eq!(table.check_manage(4, 3), Err(Error::NotAllowed));
    assert_eq!(table.check_manage(0, 3), Err(Error::NotAllowed));
    assert_eq!(table.check_manage(1, 4), Ok(()));
    assert_eq!(table.check_manage(1, 77), Err(Error::NoSuchProcess));
    table.end(3, EXITED).unwrap();
    assert_eq!(table.check_manage(2, 4), Ok(()), "also below an ended process");
}

#[test]
fn only_the_preparer_prepares_and_only_before_the_start() {
    let mut table = table();
    let pid = table.prepare("x", 2, None).unwrap();
    assert!(table.preparing(2, pid).is_ok());
    assert_eq!(table.preparing(3, pid).err(), Some(Error::NotYours));
    assert_eq!(table.prepared_by(2), [pid]);
    table.get_mut(pid).unwrap().status = Condition::plain(State::Running);
    assert_eq!(table.preparing(2, pid).err(), Some(Error::WrongState));
    assert_eq!(table.prepared_by(2), []);
}

#[test]
fn a_child_has_its_parents_priority_and_ceiling_at_first() {
    let mut table = table();
    table.get_mut(2).unwrap().priority = 100;
    table.get_mut(2).unwrap().ceiling = 120;
    let pid = table.prepare("x", 2, None).unwrap();
    assert_eq!((table.get(pid).unwrap().priority, table.get(pid).unwrap().ceiling), (100, 120));
}

#[test]
fn the_table_can_be_full() {
    let mut table = table();
    for _ in 3..MAX_LIVING {
        table.prepare("x", 2, None).unwrap();
    }
    assert_eq!(table.prepare("x", 2, None), Err(Error::TooManyProcesses));
    table.end(3, EXITED).unwrap();
    table.prepare("x", 2, None).unwrap();
    table.check_invariants();
}

#[test]
fn old_records_are_forgotten_in_order() {
    let mut table = table();
    for _ in 0..MAX_ENDED + 1 {
        let pid = table.prepare("x", 2, None).unwrap();
        table.end(pid, EXITED).unwrap();
    }
    assert!(table.get(4).is_err());
    assert!(table.get(5).is_ok());
    assert_eq!(table.next(3).unwrap().0, 5);
    table.check_invariants();
}

proptest! {
    #[test]
    fn invariants_hold_after_any_sequence(steps in prop::collection::vec((0..5u8, 1..12u64, 1..12u64), 0..200)) {
        let mut table = table();
        let mut waiting = 0;
        for (kind, a, b) in steps {
            match kind {
                0 => { table.prepare(["a", "x/a", "/x/b"][a as usize % 3], b, Some("k")).unwrap(); }
                1 => if let Ok(ended) = table.end(a, EXITED) {
                    waiting -= ended.waiters.len() + ended.abandoned.len();
                },
                2 => if let Some(ended) = table.discard(a) {
                    waiting -= ended.waiters.len() + ended.abandoned.len();
                },
                3 => waiting += usize::from(wait(&mut table, a, b, 0) == Ok(None)),
                _ => { let _ = table.check_manage(a, b); }
            }
            table.check_invariants();
        }
        // Nobody who waits is lost: ending everything answers all.
        let mut pid = 0;
        while let Some((next, _)) = table.next(pid) {
            if let Ok(ended) = table.end(next, EXITED) {
                waiting -= ended.waiters.len() + ended.abandoned.len();
            }
            pid = next;
        }
        prop_assert_eq!(waiting, 0);
    }
}
