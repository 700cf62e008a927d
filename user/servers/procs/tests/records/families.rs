//! Families of processes, and what they share.

use super::*;

#[test]
fn the_guests_of_one_family_leave_capacity_for_others() {
    let mut guests = Guests::default();
    let of = |core, number| Client { process: pid::pid_base(core) | number, family: family_of(core, 1) };
    let count = (10..).take_while(|number| guests.admit(of(1, *number), 100).is_ok()).count();
    assert_eq!(count, MAX_GUESTS / 2);
    assert_eq!(guests.admit(of(1, 1), 100), Err(Error::Full));
    assert_eq!((guests.admit(of(2, 1), 100), guests.admit(of(1, 10), 100)), (Ok(()), Ok(())));
    guests.check_invariants();
}

#[test]
fn a_family_that_multiplies_leaves_capacity_for_others() {
    let mut table = table();
    let first = table.prepare("x", Client::alone(1), NONE, None).unwrap();
    let (mut parent, mut count) = (first, 1);
    // Each is a child of the one before, so that none has more than one child.
    let refusal = loop {
        match table.prepare("x", Client::alone(parent), NONE, None) {
            Ok(child) => (parent, count) = (child, count + 1),
            Err(error) => break error,
        }
    };
    assert_eq!((refusal, count), (Error::TooManyProcesses, (MAX_LIVE - 3).div_ceil(2)));
    assert!(count > 1000, "so many can a program start");
    assert!(
        table.prepare("x", Client::alone(2), NONE, None).is_ok()
            && table.prepare("x", Client::alone(1), NONE, None).is_ok()
    );
    table.check_invariants();
    // The family stays the same after its first process has ended.
    table.record_end(first, EXITED).unwrap();
    assert_eq!(table.prepare("x", Client::alone(parent), NONE, None), Err(Error::TooManyProcesses));
    table.check_invariants();
}

/// Returns the badge that a process is given.
fn badge(table: &Table, pid: u64) -> u64 {
    let record = table.get(pid).unwrap();
    record.client().badge(record.powers)
}

#[test]
fn a_badge_says_of_which_family_a_process_is() {
    let mut table = table();
    let start = |table: &mut Table, parent: u64| table.prepare("x", Client::alone(parent), NONE, None).unwrap();
    // A child of a process that manages all begins a family, whatever other children its parent has.
    let (one, other) = (start(&mut table, 1), start(&mut table, 1));
    let child = start(&mut table, one);
    let grandchild = start(&mut table, child);
    let families = [2, one, other, child, grandchild].map(|pid| family(badge(&table, pid)));
    assert!(families[0] != families[1] && families[1] != families[2] && families[0] != families[2]);
    assert_eq!([families[3], families[4]], [families[1]; 2], "a child is of its parent's family");
    assert_eq!([3, grandchild].map(|pid| Client::of_badge(badge(&table, pid)).process), [3, grandchild]);
    // A process cannot be given the power that its parent lacks; a process with that power begins families, and still
    // belongs to its own.
    table.get_mut(other).unwrap().powers = Powers::PROCESSES;
    let apart = start(&mut table, other);
    assert!(!families.contains(&family(badge(&table, apart))));
    assert_eq!(Powers::of_badge(badge(&table, other)), Powers::PROCESSES);
    assert!([1, 2, 3, one, apart].into_iter().all(|pid| family(badge(&table, pid)) != pid), "nobody is in none");
    table.check_invariants();
}

#[test]
fn the_number_of_a_family_is_used_again_when_nobody_of_it_lives() {
    let mut table = table();
    let start = |table: &mut Table, parent: u64| table.prepare("x", Client::alone(parent), NONE, None).unwrap();
    let family = |table: &Table, pid: u64| table.get(pid).unwrap().client().family;
    let first = start(&mut table, 1);
    let (number, child) = (family(&table, first), start(&mut table, first));
    table.record_end(first, EXITED).unwrap();
    let mut seen = BTreeSet::new();
    // Each number is used once before the first is reused, and a number is not free while its child runs.
    for round in 0..2 * GUESTS {
        let pid = start(&mut table, 1);
        let given = family(&table, pid);
        assert_ne!(given, number);
        assert!(seen.insert(given) || round > GUESTS - 10, "{given:#x} comes too early");
        table.record_end(pid, EXITED).unwrap();
    }
    table.check_invariants();
    assert_eq!(family(&table, child), number);
    table.record_end(child, EXITED).unwrap();
    let is_given_again = (0..GUESTS).any(|_| {
        let pid = start(&mut table, 1);
        table.record_end(pid, EXITED).unwrap();
        family(&table, pid) == number
    });
    assert!(is_given_again);
    table.check_invariants();
}

/// A hostile program once could fill the file server through one child after another, each of which left files without
/// an owner.
#[test]
fn a_family_has_ended_when_nobody_of_it_is_prepared_or_runs() {
    let mut table = table();
    let start = |table: &mut Table, parent: u64| table.prepare("x", Client::alone(parent), NONE, None).unwrap();
    let (first, other) = (start(&mut table, 1), start(&mut table, 1));
    let family = table.get(first).unwrap().client().family;
    for child in (0..5).map(|_| start(&mut table, first)).collect::<Vec<_>>() {
        table.record_end(child, EXITED).unwrap();
        assert_eq!(table.family_that_ended(family), 0, "its parent lives");
    }
    let (heir, prepared) = (start(&mut table, first), start(&mut table, first));
    table.record_end(first, EXITED).unwrap();
    table.record_end(heir, EXITED).unwrap();
    assert_eq!(table.family_that_ended(family), 0, "one is prepared");
    table.discard(prepared).unwrap();
    assert_eq!(table.family_that_ended(family), family);
    assert_eq!(table.family_that_ended(table.get(other).unwrap().client().family), 0);
    assert_eq!(table.family_that_ended(0), 0, "none is none");
    table.check_invariants();
}

/// A hostile program once could begin a family on another core with each of its children.
#[test]
fn processes_started_by_a_remote_family_are_one_family() {
    let mut table = Table::of_core(1);
    table.prepare("init", Client::alone(0), NONE, None).unwrap();
    let of = |number: u64, process: u64| Client { process, family: family_of(0, number) };
    let start = |table: &mut Table, parent: Client, powers| {
        guest(table, parent.process);
        let pid = table.prepare("x", parent, powers, None).unwrap();
        (pid, table.get(pid).unwrap().client().family)
    };
    let (first, family) = start(&mut table, of(3, 20), NONE);
    let (second, other) = start(&mut table, of(3, 21), NONE);
    assert_eq!(family, other, "whichever of its processes asks");
    assert_ne!(start(&mut table, of(4, 22), NONE).1, family);
    assert_ne!(start(&mut table, Client::alone(23), NONE).1, family);
    let apart = [0; 2].map(|_| start(&mut table, of(3, 24), Powers::PROCESSES).1);
    assert!(apart[0] != apart[1] && !apart.contains(&family), "who manages all there starts families here, too");
    assert_eq!(start(&mut table, Client { process: first, family }, NONE).1, family);
    table.check_invariants();
    // The families are related while one of the processes runs, and no longer.
    table.record_end(first, EXITED).unwrap();
    assert_eq!(start(&mut table, of(3, 25), NONE).1, family);
    let all: Vec<u64> =
        std::iter::successors(table.next(second), |(pid, _)| table.next(*pid)).map(|(pid, _)| pid).collect();
    [second].into_iter().chain(all).for_each(|pid| drop(table.record_end(pid, EXITED).unwrap()));
    table.check_invariants();
    assert_ne!(start(&mut table, of(3, 26), NONE).1, family);
    table.check_invariants();
}

/// A program once could begin a family with each trip to another core and back.
#[test]
fn going_to_and_fro_between_cores_begins_no_family_after_family() {
    let mut tables = [0, 1].map(Table::of_core);
    for table in &mut tables {
        table.prepare("init", Client::alone(0), NONE, None).unwrap();
    }
    let start = |tables: &mut [Table; 2], core: usize, parent: Client| {
        guest(&mut tables[core], parent.process);
        let pid = tables[core].prepare("x", parent, NONE, None).unwrap();
        tables[core].get(pid).unwrap().client()
    };
    let first = start(&mut tables, 0, Client::alone(1));
    assert!(!is_of_guests(first.family));
    let (mut seen, mut last) = (BTreeSet::from([first.family]), first);
    for round in 1..40 {
        let core = round % 2;
        last = start(&mut tables, core, last);
        assert!(is_of_guests(last.family));
        seen.insert(last.family);
        // A process that is left of the family may end.
        if round % 3 == 0 {
            let child = start(&mut tables, core, last);
            assert_eq!(child.family, last.family);
            tables[core].record_end(last.process, EXITED).unwrap();
            last = child;
        }
        tables.iter().for_each(Table::check_invariants);
    }
    assert_eq!(seen.len(), 4, "its own, that of its guests, and that of all guests of either core");
}

/// Eleven children once used up all waits for a process for whose end other families wait, too.
#[test]
fn a_family_that_waits_leaves_capacity_for_others() {
    let mut table = table();
    let first = table.prepare("x", Client::alone(1), NONE, None).unwrap();
    let family = table.get(first).unwrap().client().family;
    let mut waits = 0;
    for _ in 0..20 {
        let child = table.prepare("x", Client::alone(first), NONE, None).unwrap();
        while table.has_capacity(3, Client { process: child, family }) {
            table.wait(3, Client { process: child, family }, None, 0);
            waits += 1;
        }
    }
    assert_eq!(waits, MAX_WAITERS / 2);
    assert!(table.has_capacity(3, table.get(2).unwrap().client()));
    assert_eq!(table.record_end(3, EXITED).unwrap().waiters.len(), waits);
    table.check_invariants();
}

/// One family once could take all slots of the server with given capabilities.
#[test]
fn capabilities_given_to_process_builders_are_shared_among_families() {
    let mut table = table();
    let first = table.prepare("x", Client::alone(1), NONE, None).unwrap();
    let mut pids = Vec::new();
    while pids.len() < 100 {
        let pid = table.prepare("x", Client::alone(first), NONE, None).unwrap();
        pids.push(pid);
        if table.hold_given(pid, 20) == Err(Error::TooManyCapabilities) {
            break;
        }
    }
    assert_eq!(pids.len(), MAX_GIVEN / 2 / 20 + 1);
    table.check_invariants();
    let other = table.prepare("x", Client::alone(1), NONE, None).unwrap();
    assert_eq!(table.hold_given(other, 35), Ok(()), "another family has its own share");
    pids[..4].iter().for_each(|pid| table.set_state(*pid, State::Running).unwrap());
    assert_eq!(table.hold_given(*pids.last().unwrap(), 20), Ok(()), "what starts leaves room");
    pids.iter().for_each(|pid| drop(table.discard(*pid)));
    table.check_invariants();
    assert_eq!(table.hold_given(99, 1), Err(Error::NoSuchProcess));
}

/// One family once could take all slots of the server with waits, a few threads for each of many processes.
#[test]
fn a_family_that_waits_for_many_leaves_capacity_for_others() {
    let mut table = table();
    let parent = table.prepare("x", Client::alone(1), NONE, None).unwrap();
    let family = table.get(parent).unwrap().client().family;
    let children: Vec<u64> =
        (0..64).map(|_| table.prepare("x", Client { process: parent, family }, NONE, None).unwrap()).collect();
    let mut waits = 0;
    for child in children.iter().cycle().take(10 * MAX_WAITS) {
        let client = Client { process: children[waits % children.len()], family };
        if table.has_capacity(*child, client) {
            table.wait(*child, client, None, waits as u32);
            waits += 1;
        }
    }
    assert_eq!(waits, MAX_WAITS / 2);
    let other = table.prepare("x", Client::alone(1), NONE, None).unwrap();
    assert_eq!(wait(&mut table, children[0], other, 1), Ok(None));
    table.check_invariants();
}

/// Processes that were prepared and never started once kept 32 MiB of the server's memory.
#[test]
fn texts_of_process_builders_are_shared_among_families() {
    let mut table = table();
    let first = table.prepare("x", Client::alone(1), NONE, None).unwrap();
    let mut pids = vec![first];
    // Each process of the family holds the maximum amount of text.
    let refusal = loop {
        let pid = table.prepare("x", Client::alone(first), NONE, None).unwrap();
        pids.push(pid);
        if let Err(error) = table.hold_texts(pid, 16 * TEXT_UNIT) {
            break error;
        }
    };
    assert_eq!(refusal, Error::TooMuchText);
    let held = pids.len() * 16 * TEXT_UNIT;
    assert!(held <= (MAX_TEXT_UNITS / 2 + 32) * TEXT_UNIT, "{held} bytes");
    table.check_invariants();
    let other = table.prepare("x", Client::alone(1), NONE, None).unwrap();
    assert_eq!(table.hold_texts(other, TEXT_UNIT + 1), Ok(()), "another family has its own share");
    assert_eq!(table.hold_texts(other, 2 * TEXT_UNIT), Ok(()), "that is no more");
    // A process that starts, or is abandoned, makes room.
    table.set_state(pids[1], State::Running).unwrap();
    table.check_invariants();
    assert_eq!(table.hold_texts(*pids.last().unwrap(), 12 * TEXT_UNIT), Ok(()));
    pids[2..].iter().for_each(|pid| drop(table.discard(*pid)));
    table.discard(other).unwrap();
    table.check_invariants();
    let again = table.prepare("x", Client::alone(first), NONE, None).unwrap();
    assert_eq!(table.hold_texts(again, MAX_TEXT_UNITS / 4 * TEXT_UNIT), Ok(()), "the whole quota is free again");
    assert_eq!(table.hold_texts(99, 1), Err(Error::NoSuchProcess));
}
