//! Tests of the process server's table of processes.

mod families;

use std::collections::BTreeSet;

use tench_abi::Powers;
use tench_abi::power::{Client, GUESTS, family, family_of, is_of_guests};
use tench_procs::table::guests::{Guests, MAX_GUESTS};
use tench_procs::table::shares::{MAX_GIVEN, MAX_TEXT_UNITS, TEXT_UNIT};
use tench_procs::table::waits::{LOOKS_AT_END, MAX_WAITS};
use tench_procs::table::{Condition, MAX_ENDED, MAX_GENERATIONS, MAX_LIVE, MAX_WAITERS, Records, check_name};
use tench_procs_interface::pid;
use tench_procs_interface::protocol::{Error, State};

type Table = Records<&'static str, u32>;

/// Powers of most processes.
const NONE: Powers = Powers::empty();
const EXITED: Condition = Condition { state: State::Exited, detail: 3 };

/// Waits for a process as the server does on request.
fn wait(table: &mut Table, pid: u64, waiter: u64, reply: u32) -> Result<Option<Condition>, Error> {
    let record = table.get(pid)?;
    if record.has_ended() {
        return Ok(Some(record.status()));
    }
    assert!(table.remove_gone(pid, Client::alone(waiter), |_| false).is_empty());
    if !table.has_capacity(pid, Client::alone(waiter)) {
        return Err(Error::Full);
    }
    table.wait(pid, Client::alone(waiter), None, reply);
    Ok(None)
}

/// Returns a table with `init` (1), a shell (2) that it started, and a program (3) that the shell started.
fn table() -> Table {
    let mut table = Table::default();
    for (name, parent) in [("init", 0), ("bin/shell", 1), ("/bin/hello", 2)] {
        let pid = table.prepare(name, Client::alone(parent), NONE, Some(name)).unwrap();
        table.set_state(pid, State::Running).unwrap();
    }
    table.get_mut(1).unwrap().powers = Powers::all();
    table.check_invariants();
    table
}

/// Admits a process of another core, which may start others here.
fn guest(table: &mut Table, process: u64) -> u64 {
    table.visitors.admit(Client::alone(process), 100).unwrap();
    process
}

#[test]
fn identifiers_count_up_and_are_not_used_again() {
    let mut table = table();
    table.record_end(3, EXITED).unwrap();
    assert_eq!(table.prepare("x", Client::alone(2), NONE, None), Ok(4));
    table.discard(4).unwrap();
    assert_eq!(table.prepare("x", Client::alone(2), NONE, None), Ok(5));
    assert!(table.get(0).is_err() && table.get(4).is_err() && table.get(99).is_err() && table.get(u64::MAX).is_err());
    table.check_invariants();
}

/// Otherwise a process that expects a limit could prepare its children before, and use unlimited memory through them.
#[test]
fn a_limit_holds_for_what_was_prepared_before_it() {
    let mut table = table();
    let (before, less) = (
        table.prepare("x", Client::alone(3), NONE, None).unwrap(),
        table.prepare("y", Client::alone(3), NONE, None).unwrap(),
    );
    table.get_mut(less).unwrap().quota = 1000;
    assert_eq!(table.fix_quota(before), Ok(u64::MAX), "nobody has a limit");
    table.get_mut(3).unwrap().quota = 5000;
    assert_eq!((table.fix_quota(before), table.fix_quota(less)), (Ok(5000), Ok(1000)));
    assert_eq!(table.get(before).unwrap().quota, 5000, "and for what it starts itself");
    assert_eq!(table.fix_quota(99), Err(Error::NoSuchProcess));
}

#[test]
fn a_program_that_is_handed_over_has_a_name_that_can_be_shown() {
    for name in ["x", "/tmp/prog", "./x", "two words", "grüße", "init"] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    for name in ["", "\n", "two\nlines", "\x1b[2J", "bell\x07", "\0", "\u{9b}2J", "rubbed\x7fout"] {
        assert_eq!(check_name(name), Err(Error::BadName), "{name:?}");
    }
}

#[test]
fn processes_are_found_by_path_and_base_name() {
    let mut table = table();
    assert_eq!(table.prepare("hello", Client::alone(2), NONE, None), Ok(4));
    assert_eq!(table.find("hello", 0), Some(3));
    assert_eq!(table.find("hello", 3), Some(4));
    assert_eq!(table.find("hello", 4), None);
    assert_eq!(table.find("/bin/hello", 0), Some(3));
    assert_eq!(table.find("bin/hello", 0), Some(3));
    assert_eq!(table.find("shell", u64::MAX), None);
    table.record_end(3, EXITED).unwrap();
    assert_eq!(table.find("hello", 0), Some(4));
    assert_eq!(table.find("bin/hello", 0), None);
    table.check_invariants();
}

#[test]
fn waiting_threads_get_replies_before_and_after_the_end() {
    let mut table = table();
    assert_eq!(wait(&mut table, 3, 2, 10), Ok(None));
    assert_eq!(wait(&mut table, 3, 1, 11), Ok(None));
    assert_eq!(wait(&mut table, 9, 1, 12), Err(Error::NoSuchProcess));
    let ended = table.record_end(3, EXITED).unwrap();
    assert_eq!(ended.kernel, Some("/bin/hello"));
    assert_eq!(ended.waiters, [10, 11]);
    assert_eq!(wait(&mut table, 3, 2, 13), Ok(Some(EXITED)));
    assert_eq!(table.record_end(3, EXITED).err(), Some(Error::WrongState));
    assert_eq!(table.get(3).unwrap().status(), EXITED);
    table.check_invariants();
}

#[test]
fn an_ended_process_waits_for_nobody() {
    let mut table = table();
    assert_eq!(wait(&mut table, 1, 2, 10), Ok(None));
    assert_eq!(wait(&mut table, 3, 2, 11), Ok(None));
    assert_eq!(wait(&mut table, 3, 1, 12), Ok(None));
    assert_eq!(table.record_end(2, EXITED).unwrap().abandoned, [10, 11]);
    assert_eq!(table.record_end(3, EXITED).unwrap().waiters, [12]);
}

#[test]
fn too_many_waiters_are_an_error() {
    let mut table = table();
    for n in 0..MAX_WAITERS as u32 {
        assert_eq!(wait(&mut table, if n % 2 == 0 { 3 } else { 1 }, 2, n), Ok(None));
    }
    assert_eq!(wait(&mut table, 2, 2, 999), Err(Error::Full), "too many of one wait");
    // Waiters that have given up make room.
    assert_eq!(table.remove_gone(1, Client::alone(2), |reply| *reply % 100 == 7), [7, 107, 207]);
    assert_eq!(wait(&mut table, 1, 2, 999), Ok(None));
    table.check_invariants();
}

#[test]
fn waits_that_were_given_up_are_found_a_few_at_a_time_and_no_others() {
    let mut table = table();
    // This server does not know whether a process of another core runs.
    let elsewhere = pid::pid_base(1) | 9;
    for n in 0..20 {
        assert_eq!(wait(&mut table, 1, if n % 2 == 0 { 2 } else { elsewhere }, n), Ok(None));
    }
    let has_gone = |reply: &u32| *reply >= 4;
    let mut gone: Vec<u32> = Vec::new();
    for _ in 0..3 {
        let found = table.look_for_gone(has_gone);
        assert!(found.len() <= LOOKS_AT_END);
        gone.extend(found);
    }
    gone.sort_unstable();
    assert_eq!(gone, (4..20).collect::<Vec<_>>());
    assert_eq!(table.record_end(1, EXITED).unwrap().waiters, [0, 1, 2, 3], "whoever still waits gets a reply");
    table.check_invariants();
}

#[test]
fn waiters_of_one_process_share_its_quota() {
    let mut table = table();
    let mut free = MAX_WAITERS;
    let waiters: Vec<u64> = (0..12).map(|_| table.prepare("waiter", Client::alone(2), NONE, None).unwrap()).collect();
    for waiter in &waiters {
        // Each family can have half of what the others left, and one wait while there is any room.
        let own = (0..).take_while(|n| wait(&mut table, 3, *waiter, *n) == Ok(None)).count();
        assert_eq!(own, free.div_ceil(2), "of {free}");
        free -= own;
    }
    assert_eq!(free, 0);
    assert_eq!(wait(&mut table, 3, 1, 999), Err(Error::Full), "too many wait for one");
    assert_eq!(wait(&mut table, 1, waiters[0], 999), Ok(None), "and for another it may");
    table.check_invariants();
    // The others share what one family releases.
    assert_eq!(table.record_end(waiters[1], EXITED).unwrap().abandoned.len(), MAX_WAITERS / 4);
    assert_eq!(wait(&mut table, 3, waiters[0], 999), Err(Error::Full), "it has more than are free");
    assert_eq!(wait(&mut table, 3, waiters[11], 999), Ok(None));
    table.check_invariants();
}

#[test]
fn one_manages_descendants_and_managers_manage_all() {
    let mut table = table();
    table.prepare("grandchild", Client::alone(3), NONE, None).unwrap();
    table.prepare("other", Client::alone(1), NONE, None).unwrap();
    assert_eq!(table.check_manage(2, NONE, 3), Ok(()));
    assert_eq!(table.check_manage(2, NONE, 4), Ok(()));
    assert_eq!(table.check_manage(2, NONE, 2), Ok(()));
    assert_eq!(table.check_manage(2, NONE, 1), Err(Error::NotAllowed));
    assert_eq!(table.check_manage(2, NONE, 5), Err(Error::NotAllowed));
    assert_eq!(table.check_manage(4, NONE, 3), Err(Error::NotAllowed));
    assert_eq!(table.check_manage(0, NONE, 3), Err(Error::NotAllowed));
    assert_eq!(table.check_manage(1, Powers::PROCESSES, 4), Ok(()));
    assert_eq!(table.check_manage(1, Powers::PROCESSES, 77), Err(Error::NoSuchProcess));
    table.record_end(3, EXITED).unwrap();
    assert_eq!(table.check_manage(2, NONE, 4), Ok(()), "also below an ended process");
}

#[test]
fn only_the_preparer_prepares_and_only_before_the_start() {
    let mut table = table();
    let pid = table.prepare("x", Client::alone(2), NONE, None).unwrap();
    assert!(table.preparing(2, pid).is_ok());
    assert_eq!(table.preparing(3, pid).err(), Some(Error::NotYours));
    assert_eq!(table.prepared_by(2), Some(pid));
    table.set_state(pid, State::Running).unwrap();
    assert_eq!(table.preparing(2, pid).err(), Some(Error::WrongState));
    assert_eq!(table.prepared_by(2), None);
    assert_eq!(table.set_state(pid, State::Preparing), Err(Error::WrongState));
}

/// While such a process is being destroyed, it keeps its quota, so that a family can have no more of these than of
/// processes.
#[test]
fn an_unstarted_process_has_no_owner_any_more_but_counts_until_it_is_gone() {
    let mut table = table();
    let pid = table.prepare("x", Client::alone(3), NONE, None).unwrap();
    table.mark_ending(pid).unwrap();
    table.check_invariants();
    assert_eq!(table.preparing(3, pid).err(), Some(Error::WrongState), "it is not started again");
    assert_eq!(table.check_live(pid), Err(Error::WrongState));
    assert_eq!(table.prepared_by(3), None, "its parent's end does not wait for it");
    table.record_end(3, EXITED).unwrap();
    table.check_invariants();
    let others: Vec<_> = (0..).map_while(|_| table.prepare("y", Client::alone(1), NONE, None).ok()).collect();
    table.discard(pid).unwrap();
    assert_eq!(table.get(pid).err(), Some(Error::NoSuchProcess));
    assert!(!others.is_empty() && table.prepare("z", Client::alone(1), NONE, None).is_ok(), "its share is free");
    table.check_invariants();
}

#[test]
fn a_child_has_the_usual_priority_and_ceiling_or_its_parents_ceiling_and_no_powers() {
    let mut table = table();
    for (ceiling, expected) in [(120, 100), (100, 100), (99, 99), (0, 0), (255, 100)] {
        let parent = table.get_mut(2).unwrap();
        (parent.priority, parent.ceiling, parent.powers) = (ceiling / 2, ceiling, Powers::all());
        let pid = table.prepare("x", Client::alone(2), NONE, None).unwrap();
        let child = table.get(pid).unwrap();
        assert_eq!((child.priority, child.ceiling, child.powers), (expected, expected, NONE));
    }
}

#[test]
fn priorities_are_limited_by_the_own_ceiling_or_the_remote_cores_statement() {
    let mut table = table();
    table.get_mut(2).unwrap().ceiling = 120;
    assert_eq!(table.ceiling(2), 120);
    assert_eq!((table.ceiling(0), table.ceiling(99)), (0, 0), "no process");
    let guest = Client::alone(pid::pid_base(1) | 2);
    assert_eq!(table.ceiling(guest.process), 0, "a process of another core of which nothing is known");
    assert_eq!(table.prepare("x", guest, Powers::all(), None), Err(Error::NoSuchProcess));
    for (ceiling, usual) in [(50, 50), (100, 100), (180, 100)] {
        table.visitors.admit(guest, ceiling).unwrap();
        assert_eq!(table.ceiling(guest.process), ceiling);
        let child = table.prepare("x", guest, NONE, None).unwrap();
        let record = table.get(child).unwrap();
        assert_eq!((record.priority, record.ceiling), (usual, usual), "unless something else is said");
        table.check_invariants();
        // The process was prepared, and cannot be started once its parent is not admitted any more.
        assert_eq!(table.check_parent(guest.process), Ok(()));
        assert!(table.visitors.leave(guest.process));
        assert_eq!((table.ceiling(guest.process), table.check_parent(guest.process)), (0, Err(Error::NoSuchProcess)));
    }
}

#[test]
fn a_process_admitted_twice_leaves_twice() {
    let mut table = table();
    let guest = Client::alone(pid::pid_base(1) | 2);
    (0..2).for_each(|_| table.visitors.admit(guest, 70).unwrap());
    assert!(!table.visitors.leave(guest.process));
    assert_eq!(table.ceiling(guest.process), 70);
    assert!(table.visitors.leave(guest.process));
    assert_eq!(table.ceiling(guest.process), 0);
    assert!(table.visitors.leave(guest.process), "it is not there any more");
    table.check_invariants();
}

#[test]
fn the_table_can_be_full() {
    let mut table = table();
    // Children of a manager are families of their own.
    for _ in 3..MAX_LIVE {
        table.prepare("x", Client::alone(1), NONE, None).unwrap();
    }
    assert_eq!(table.prepare("x", Client::alone(1), NONE, None), Err(Error::TooManyProcesses));
    table.record_end(3, EXITED).unwrap();
    table.prepare("x", Client::alone(1), NONE, None).unwrap();
    table.check_invariants();
}

#[test]
fn old_records_are_forgotten_in_order() {
    let mut table = table();
    for _ in 0..MAX_ENDED + 1 {
        let pid = table.prepare("x", Client::alone(2), NONE, None).unwrap();
        table.record_end(pid, EXITED).unwrap();
    }
    assert!(table.get(4).is_err());
    assert!(table.get(5).is_ok());
    assert_eq!(table.next(3).unwrap().0, 5);
    table.check_invariants();
}

#[test]
fn numbers_whose_entry_is_in_use_are_skipped() {
    let mut table = table();
    let mut last = 3;
    for _ in 0..20_000 {
        let pid = table.prepare("x", Client::alone(2), NONE, None).unwrap();
        assert!(pid > last);
        // 1, 2 and 3 still hold their entries.
        assert!(pid.is_multiple_of(8192) || pid % 8192 > 3);
        last = pid;
        table.record_end(pid, EXITED).unwrap();
    }
    assert_eq!(last, 20_003 + 2 * 3);
    table.check_invariants();
}

#[test]
fn children_are_listed_and_stay() {
    let mut table = table();
    let other = table.prepare("other", Client::alone(2), NONE, None).unwrap();
    assert_eq!((table.child(2, 0), table.child(2, 3), table.child(2, other)), (Some(3), Some(other), None));
    table.record_end(2, EXITED).unwrap();
    assert_eq!(table.child(2, 0), Some(3));
    assert_eq!(table.get(3).unwrap().parent, 2);
    assert_eq!(table.child(2, u64::MAX), None);
    table.check_invariants();
}

#[test]
fn descendants_over_generations_are_managed_whoever_is_forgotten() {
    let mut table = table();
    let mut line = vec![2];
    for _ in 0..MAX_GENERATIONS + 1 {
        let pid = table.prepare("x", Client::alone(*line.last().unwrap()), Powers::empty(), None).unwrap();
        line.push(pid);
    }
    for pid in &line[1..10] {
        table.record_end(*pid, EXITED).unwrap();
    }
    for _ in 0..MAX_ENDED {
        let pid = table.prepare("y", Client::alone(1), NONE, None).unwrap();
        table.record_end(pid, EXITED).unwrap();
    }
    assert!(table.get(line[9]).is_err());
    assert_eq!(table.check_manage(2, NONE, line[MAX_GENERATIONS]), Ok(()));
    assert_eq!(table.check_manage(2, NONE, line[MAX_GENERATIONS + 1]), Err(Error::NotAllowed));
    table.check_invariants();
}

#[test]
fn waits_end_in_the_order_of_their_deadlines() {
    let mut table = table();
    for (deadline, reply) in [(Some(50), 1), (None, 2), (Some(20), 3), (Some(50), 4)] {
        table.wait(3, Client::alone(2), deadline, reply);
    }
    assert_eq!((table.next_deadline(), table.pop_expired(19)), (Some(20), None));
    assert_eq!(table.pop_expired(20), Some(3));
    assert_eq!([table.pop_expired(60), table.pop_expired(60), table.pop_expired(60)], [Some(1), Some(4), None]);
    assert_eq!(table.next_deadline(), None);
    assert_eq!(table.record_end(3, EXITED).unwrap().waiters, [2]);
    table.check_invariants();
}

#[test]
fn processes_of_other_cores_start_some_here_and_manage_those() {
    let mut table = table();
    let [one, other] = [guest(&mut table, pid::pid_base(1) | 7), pid::pid_base(2) | 7];
    let child = table.prepare("bin/child", Client::alone(one), NONE, None).unwrap();
    assert_eq!(
        (table.preparing(one, child).is_ok(), table.preparing(other, child).err()),
        (true, Some(Error::NotYours))
    );
    table.set_state(child, State::Running).unwrap();
    assert_eq!((table.check_live(one), table.check_live(other)), (Ok(()), Ok(())));
    assert_eq!(table.check_manage(one, NONE, child), Ok(()));
    assert_eq!(table.check_manage(other, NONE, child), Err(Error::NotAllowed));
    assert_eq!(
        table.check_manage(7, NONE, child),
        Err(Error::NotAllowed),
        "a process of this core with the same number"
    );
    let grandchild = table.prepare("bin/child", Client::alone(child), NONE, None).unwrap();
    assert_eq!(table.check_manage(one, NONE, grandchild), Ok(()), "a descendant");
    assert_eq!(wait(&mut table, child, other, 5), Ok(None));
    table.check_invariants();
    assert_eq!(table.record_end(child, Condition { state: State::Exited, detail: 3 }).unwrap().waiters, [5]);
    table.check_invariants();
    assert!(table.get(one).is_err() && table.record_end(one, Condition::plain(State::Killed)).is_err());
}

#[test]
fn processes_started_from_another_core_leave_capacity_for_others() {
    let mut table = table();
    let (foreign, other) = (guest(&mut table, pid::pid_base(1) | 7), guest(&mut table, pid::pid_base(2) | 7));
    let started = (0..).take_while(|_| table.prepare("bin/child", Client::alone(foreign), NONE, None).is_ok()).count();
    assert!((MAX_LIVE / 4..=MAX_LIVE / 2).contains(&started), "{started}");
    assert!(table.prepare("bin/child", Client::alone(other), Powers::empty(), None).is_ok());
    table.check_invariants();
}

#[test]
fn processes_of_another_core_are_numbered_with_that_core() {
    let mut table = Table::of_core(3);
    guest(&mut table, 2);
    let here = |number| pid::pid_base(3) | number;
    assert_eq!(table.prepare("init", Client::alone(0), NONE, None), Ok(here(1)));
    assert_eq!(table.prepare("bin/shell", Client::alone(here(1)), Powers::empty(), None), Ok(here(2)));
    assert_eq!(
        table.prepare("bin/hello", Client::alone(2), NONE, None),
        Ok(here(3)),
        "for process 2 of the first core"
    );
    assert_eq!((table.get(2).is_err(), table.get(here(2)).is_ok()), (true, true));
    assert_eq!(table.next(pid::pid_base(3)).map(|(pid, _)| pid), Some(here(1)));
    assert_eq!(table.find("hello", pid::pid_base(3)), Some(here(3)));
    assert_eq!((table.check_live(2), table.check_live(0)), (Ok(()), Err(Error::NoSuchProcess)));
    assert_eq!(table.check_live(here(9)), Err(Error::NoSuchProcess));
    assert_eq!(
        (table.check_manage(2, NONE, here(3)), table.check_manage(here(2), NONE, here(3))),
        (Ok(()), Err(Error::NotAllowed))
    );
    table.check_invariants();
}

/// Children of `init` are not counted in the load: they always run, and the first core has more of them than the
/// others.
#[test]
fn the_load_is_what_runs_and_was_not_started_by_init() {
    let mut table = table();
    assert_eq!(table.load(), 1, "the program, not init and the shell");
    let parent = guest(&mut table, pid::pid_base(1) | 7);
    let child = table.prepare("bin/child", Client::alone(parent), Powers::empty(), None).unwrap();
    assert_eq!(table.load(), 1, "it does not run yet");
    table.set_state(child, State::Running).unwrap();
    assert_eq!(table.load(), 2);
    for (state, load) in [(State::Suspended, 1), (State::Suspended, 1), (State::Running, 2), (State::Running, 2)] {
        table.set_state(child, state).unwrap();
        assert_eq!(table.load(), load);
        table.check_invariants();
    }
    table.set_state(child, State::Suspended).unwrap();
    table.record_end(child, EXITED).unwrap();
    assert_eq!(table.load(), 1, "it was suspended when it ended");
    table.record_end(3, EXITED).unwrap();
    assert_eq!(table.load(), 0);
    table.check_invariants();
}
