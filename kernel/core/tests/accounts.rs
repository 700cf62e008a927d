//! Accounts: whose time was used, and which threads may run.

use proptest::prelude::*;
use tench_abi::layout::{UNBIND, slot};
use tench_abi::{Error, Kind, Operation, Rights, Tag};
use tench_arch_host::host::disturb;
use tench_arch_host::machine::at;
use tench_arch_host::{Host, Machine};
use tench_kernel::Kernel;
use tench_kernel::object::Ref;
use tench_kernel::thread::{Binding, Thread, ThreadState};

use crate::common::{check, interrupt_at};

/// A thread, with its capabilities in the first thread's CSpace.
#[derive(Clone, Copy, Debug)]
struct Made {
    thread: Ref<Thread>,
    capability: u64,
    time: u64,
}

/// Returns a machine whose first thread, of priority 100, is preferred to some threads and not to others.
fn machine() -> Machine {
    let mut machine = Machine::new();
    machine.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 100, 255, 0]).ok();
    machine
}

/// Makes a root table with an account.
fn account(machine: &mut Machine) -> u64 {
    let table = machine.make(Kind::PageTable, 0);
    machine.call(Operation::AccountOpen, &[table, at(slot::KERNEL)]).ok();
    table
}

/// Makes a ready thread in this table's address space.
fn thread(machine: &mut Machine, table: u64, priority: u64) -> Made {
    let (capability, time) = (machine.make(Kind::Thread, 0), machine.make(Kind::SchedulingContext, 0));
    machine.call(Operation::SchedulingConfigure, &[time, priority, priority, 0]).ok();
    machine.call(Operation::ThreadConfigure, &[capability, at(slot::CSPACE), table, 0, 0]).ok();
    machine.call(Operation::ThreadBind, &[capability, time, 0, 0]).ok();
    machine.call(Operation::ThreadResume, &[capability]).ok();
    Made { thread: machine.thread_at(capability), capability, time }
}

/// Makes a thread that waits for messages.
fn server(machine: &mut Machine, table: u64, endpoint: u64) -> Made {
    let (first, reply) = (machine.first, machine.make(Kind::Reply, 0));
    let made = thread(machine, table, 90);
    machine.call(Operation::ThreadBind, &[made.capability, 0, reply, 0]).ok();
    machine.call_as(made.thread, Operation::Receive, &[endpoint, 0]);
    machine.call_as(first, Operation::SchedulingConfigure, &[made.time, 170, 170, 0]).ok();
    made
}

/// Returns ticks, number of threads, and the suspended flag of an account.
fn query(machine: &mut Machine, table: u64) -> [u64; 3] {
    let x = machine.call(Operation::AccountQuery, &[table]).ok();
    [x[1], x[2], x[3]]
}

fn suspend(machine: &mut Machine, table: u64, suspended: bool) {
    machine.call(Operation::AccountSuspend, &[table, u64::from(suspended)]).ok();
    check(machine);
}

/// Deletes a thread's binding to its address space.
fn move_out(k: &mut Kernel<Host>, thread: Ref<Thread>) {
    let place = &raw const k.get(thread).bindings[Binding::AddressSpace as usize];
    let slot = k.slot_at(place.addr()).expect("a slot");
    tench_kernel::delete::delete(k, slot).expect("one of several");
}

/// Runs a thread for some ticks; then the first thread continues.
fn work(machine: &mut Machine, made: Made, ticks: u64) {
    let first = machine.first;
    // Charges the running thread for what it has used before.
    machine.call(Operation::SchedulingQuery, &[at(slot::SCHEDULING)]).ok();
    machine.run(made.thread);
    machine.pass_time(ticks);
    machine.call(Operation::SchedulingQuery, &[at(slot::SCHEDULING)]).ok();
    machine.run(first);
}

#[test]
fn time_of_all_threads_counts_of_ended_ones_too() {
    let mut machine = Machine::new();
    let table = account(&mut machine);
    let (one, two) = (thread(&mut machine, table, 50), thread(&mut machine, table, 50));
    let other_table = account(&mut machine);
    let other = thread(&mut machine, other_table, 50);
    work(&mut machine, one, 1000);
    work(&mut machine, two, 30);
    work(&mut machine, other, 5);
    assert_eq!(query(&mut machine, table), [1030, 2, 0]);
    assert_eq!(query(&mut machine, table), [1030, 2, 0], "what was asked for stays");
    machine.call(Operation::Delete, &[0, one.capability]).ok();
    assert_eq!(query(&mut machine, table), [1030, 1, 0]);
    // The context is bound to another thread of another account, which is charged only for what it uses from then on.
    machine.call(Operation::ThreadBind, &[other.capability, UNBIND, 0, 0]).ok();
    machine.call(Operation::ThreadBind, &[other.capability, one.time, 0, 0]).ok();
    work(&mut machine, other, 7);
    assert_eq!(query(&mut machine, other_table), [12, 1, 0]);
    assert_eq!(query(&mut machine, table), [1030, 1, 0]);
    check(&mut machine);
}

#[test]
fn only_the_kernels_capability_opens_and_only_once() {
    let mut machine = Machine::new();
    let table = machine.make(Kind::PageTable, 0);
    let lower = machine.make(Kind::PageTable, 1);
    let open = |machine: &mut Machine, table, authority| machine.call(Operation::AccountOpen, &[table, authority]);
    assert_eq!(machine.call(Operation::AccountQuery, &[table]).err(), Error::NotConfigured);
    assert_eq!(machine.call(Operation::AccountSuspend, &[table, 1]).err(), Error::NotConfigured);
    assert_eq!(open(&mut machine, table, at(slot::CSPACE)).err(), Error::WrongType);
    assert_eq!(open(&mut machine, table, 0).err(), Error::InvalidCapability);
    assert_eq!(open(&mut machine, lower, at(slot::KERNEL)).err(), Error::WrongType);
    open(&mut machine, table, at(slot::KERNEL)).ok();
    assert_eq!(open(&mut machine, table, at(slot::KERNEL)).err(), Error::AlreadyBound);
    assert_eq!(machine.call(Operation::AccountSuspend, &[table, 2]).err(), Error::InvalidArgument);
    assert_eq!(query(&mut machine, table), [0, 0, 0]);
}

#[test]
fn a_suspended_account_runs_nobody_and_its_threads_go_on_waiting() {
    let mut machine = machine();
    let first = machine.first;
    let table = account(&mut machine);
    let endpoint = machine.make(Kind::Endpoint, 0);
    let (server, busy) = (server(&mut machine, table, endpoint), thread(&mut machine, table, 50));
    suspend(&mut machine, table, true);
    assert_eq!(query(&mut machine, table)[2], 1);
    // A message arrives, and the server would be preferred.
    let worker = machine.make_thread(150);
    machine.call_as(worker, Operation::Call, &[endpoint, Tag::new(7, 0).0]);
    assert_eq!(machine.thread(server.thread).state, ThreadState::Ready, "it has the message");
    assert!(machine.current() == first, "and does not run");
    // A thread that is made now does not run either.
    let late = thread(&mut machine, table, 140);
    assert!(machine.current() == first);
    check(&mut machine);
    machine.call(Operation::SchedulingConfigure, &[busy.time, 60, 60, 0]).ok();
    check(&mut machine);
    suspend(&mut machine, table, false);
    assert!(machine.current() == server.thread, "the highest of them runs");
    assert_eq!(machine.results(server.thread).x[1], Tag::new(7, 0).0);
    assert_eq!(machine.thread(late.thread).priority, 140);
    assert_eq!(machine.thread(busy.thread).priority, 60);
    check(&mut machine);
}

#[test]
fn a_suspended_server_without_time_does_not_run_on_its_clients() {
    let mut machine = machine();
    let first = machine.first;
    let table = account(&mut machine);
    let endpoint = machine.make(Kind::Endpoint, 0);
    let server = server(&mut machine, table, endpoint);
    machine.call(Operation::ThreadBind, &[server.capability, UNBIND, 0, 0]).ok();
    suspend(&mut machine, table, true);
    let client = machine.make_thread(150);
    machine.call_as(client, Operation::Call, &[endpoint, 0]);
    assert!(machine.current() == first);
    check(&mut machine);
    suspend(&mut machine, table, false);
    assert!(machine.current() == server.thread, "on the client's time");
    check(&mut machine);
}

#[test]
fn threads_in_spaces_of_their_own_belong_to_who_made_them() {
    let mut machine = machine();
    let first = machine.first;
    let table = account(&mut machine);
    let one = thread(&mut machine, table, 50);
    let (inner, capability) = (machine.make(Kind::PageTable, 0), machine.make(Kind::Thread, 0));
    machine.call_as(one.thread, Operation::ThreadConfigure, &[capability, at(slot::CSPACE), inner, 0, 0]).ok();
    machine.run(first);
    assert_eq!(query(&mut machine, table)[1], 2);
    suspend(&mut machine, table, true);
    let hidden = machine.thread_at(capability);
    assert!(machine.thread(hidden).account_suspended);
    // The account is deleted with its table: no thread belongs to it any more, and none may run.
    let more: Vec<Made> = (0..36).map(|_| thread(&mut machine, table, 50)).collect();
    for made in more.iter().chain([&one]) {
        // The threads' bindings keep the table alive.
        machine.call(Operation::ThreadConfigure, &[made.capability, at(slot::CSPACE), inner, 0, 0]);
    }
    machine.call(Operation::Revoke, &[0, table]).ok();
    machine.call(Operation::Delete, &[0, table]).ok();
    check(&mut machine);
    assert!(machine.thread(hidden).account_suspended && machine.thread(hidden).membership.account.is_none());
    assert!(machine.thread(one.thread).account_suspended);
}

/// Makes a copy of a capability to a root table without `GRANT`, as a process has one to its own.
fn without_grant(machine: &mut Machine, table: u64) -> u64 {
    let to = machine.take_free();
    let rights = (Rights::all() - Rights::GRANT).bits();
    machine.call(Operation::Mint, &[0, table, 0, to, rights.into(), 0]).ok();
    to
}

#[test]
fn suspending_and_resuming_require_grant() {
    let mut machine = machine();
    let table = account(&mut machine);
    let parent = thread(&mut machine, table, 50);
    suspend(&mut machine, table, true);
    let child_table = account(&mut machine);
    let (child, own) = (thread(&mut machine, child_table, 50), without_grant(&mut machine, table));
    for suspended in [0, 1] {
        let result = machine.call_as(child.thread, Operation::AccountSuspend, &[own, suspended]);
        assert_eq!(result.err(), Error::MissingRights);
        let query = machine.call_as(child.thread, Operation::AccountQuery, &[own]).ok();
        assert_eq!(query[3], 1, "it is suspended still");
    }
    assert!(machine.thread(parent.thread).account_suspended);
    check(&mut machine);
}

#[test]
fn a_child_does_not_run_what_is_suspended() {
    let mut machine = machine();
    let (table, child_table) = (account(&mut machine), account(&mut machine));
    let (parent, child) = (thread(&mut machine, table, 50), thread(&mut machine, child_table, 50));
    let (own, childs) = (without_grant(&mut machine, table), without_grant(&mut machine, child_table));
    let empty = machine.make(Kind::PageTable, 0);
    let new = machine.make(Kind::Thread, 0);
    suspend(&mut machine, table, true);
    // From now on no thread interrupts the child.
    machine.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 10, 10, 0]);
    assert!(machine.current() == child.thread);
    let configure = |machine: &mut Machine, capability, space| {
        machine.call(Operation::ThreadConfigure, &[capability, at(slot::CSPACE), space, 0, 0])
    };
    // A new thread in the parent's address space.
    assert_eq!(configure(&mut machine, new, own).err(), Error::MissingRights);
    check(&mut machine);
    // The parent's thread in the child's address space: it would belong to the child.
    machine.call(Operation::ThreadSuspend, &[parent.capability]).ok();
    assert_eq!(configure(&mut machine, parent.capability, childs).err(), Error::MissingRights);
    // In an address space without an account the thread stays in its account.
    configure(&mut machine, parent.capability, empty).ok();
    machine.call(Operation::ThreadResume, &[parent.capability]).ok();
    assert!(machine.thread(parent.thread).account_suspended);
    assert_eq!(query(&mut machine, table)[1..], [1, 1]);
    check(&mut machine);
    // The child may use its own address space, and one without an account.
    configure(&mut machine, new, childs).ok();
    configure(&mut machine, new, empty).ok();
    assert_eq!(query(&mut machine, child_table)[1..], [2, 0]);
    // A holder of the account's capability with `GRANT` takes the thread over.
    machine.call(Operation::ThreadSuspend, &[parent.capability]).ok();
    configure(&mut machine, parent.capability, child_table).ok();
    machine.call(Operation::ThreadResume, &[parent.capability]).ok();
    assert!(!machine.thread(parent.thread).account_suspended);
    assert_eq!((query(&mut machine, table)[1], query(&mut machine, child_table)[1]), (0, 3));
    check(&mut machine);
}

#[test]
fn an_account_is_opened_before_anybody_lives_there() {
    let mut machine = machine();
    let table = machine.make(Kind::PageTable, 0);
    let made = thread(&mut machine, table, 50);
    let open = |machine: &mut Machine| machine.call(Operation::AccountOpen, &[table, at(slot::KERNEL)]).error();
    assert_eq!(open(&mut machine), Some(Error::Busy));
    check(&mut machine);
    machine.call(Operation::Delete, &[0, made.capability]).ok();
    assert_eq!(open(&mut machine), None);
    check(&mut machine);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn preemption_points_change_nothing() {
    let mut machine = Machine::new();
    let table = account(&mut machine);
    let made: Vec<Made> = (0..36).map(|_| thread(&mut machine, table, 50)).collect();
    let other = machine.make_thread(50);
    for (n, one) in made.iter().enumerate() {
        work(&mut machine, *one, n as u64);
    }
    for n in 1..4 {
        interrupt_at(&mut machine, other, n);
        assert_eq!(query(&mut machine, table), [630, 36, 0]);
        machine.host().hook = None;
    }
    // Half of the threads are moved out in the middle of it.
    let mut rest = made[..18].to_vec();
    machine.host().hook = Some(Box::new(move |k| {
        disturb(k);
        for made in rest.drain(..) {
            move_out(k, made.thread);
            tench_kernel::account::leave(k, made.thread);
        }
    }));
    assert_eq!(query(&mut machine, table), [630, 18, 0]);
    machine.host().hook = None;
    suspend(&mut machine, table, true);
    assert!(made[18..].iter().all(|made| machine.thread(made.thread).account_suspended));
    assert!(!made[..18].iter().any(|made| machine.thread(made.thread).account_suspended));
}

#[test]
fn a_thread_that_suspends_its_own_account_suspends_all_others_first() {
    let mut machine = machine();
    let table = account(&mut machine);
    let made: Vec<Made> = (0..36).map(|_| thread(&mut machine, table, 50)).collect();
    machine.call(Operation::SchedulingConfigure, &[made[3].time, 200, 200, 0]).ok();
    assert!(machine.current() == made[3].thread);
    machine.call(Operation::AccountSuspend, &[table, 1]);
    assert!(made.iter().all(|made| machine.thread(made.thread).account_suspended));
    assert!(machine.current() == machine.first);
    check(&mut machine);
    // A thread continues while others are still visited.
    machine.call(Operation::AccountSuspend, &[table, 0]);
    assert!(machine.current() == made[3].thread);
    assert_eq!(machine.results(made[3].thread).x[0], 0);
    check(&mut machine);
}

proptest! {
    /// Checks that the account's time is the sum of what the contexts bound to its threads have consumed, each since it
    /// was bound, and that suspended threads do not run.
    #[test]
    fn time_is_the_sum_of_all(steps in prop::collection::vec((0..6u8, 0..5usize, 0..2usize, 1..500u64), 1..60)) {
        let mut machine = Machine::new();
        let tables = [account(&mut machine), account(&mut machine)];
        let mut made: Vec<(Made, usize)> = Vec::new();
        let (mut expected, mut suspended) = ([0; 2], [false; 2]);
        for (step, which, account, ticks) in steps {
            let one = made.get(which % made.len().max(1)).copied();
            match (step, one) {
                (0, _) | (_, None) => made.push((thread(&mut machine, tables[account], 50), account)),
                (1 | 2, Some((one, account))) if !suspended[account] => {
                    work(&mut machine, one, ticks);
                    expected[account] += ticks;
                }
                (3, Some((one, ..))) => {
                    machine.call(Operation::Delete, &[0, one.capability]).ok();
                    made.remove(which % made.len());
                }
                (4, _) => {
                    suspended[account] = !suspended[account];
                    suspend(&mut machine, tables[account], suspended[account]);
                }
                (5, Some((one, ..))) => {
                    // The thread moves to the other account.
                    machine.call(Operation::ThreadSuspend, &[one.capability]).ok();
                    let arguments = [one.capability, at(slot::CSPACE), tables[account], 0, 0];
                    machine.call(Operation::ThreadConfigure, &arguments).ok();
                    machine.call(Operation::ThreadResume, &[one.capability]).ok();
                    let place = which % made.len();
                    made[place].1 = account;
                }
                _ => {}
            }
            check(&mut machine);
            for (one, account) in &made {
                prop_assert_eq!(machine.thread(one.thread).account_suspended, suspended[*account]);
            }
        }
        for (account, table) in tables.into_iter().enumerate() {
            let count = made.iter().filter(|one| one.1 == account).count() as u64;
            prop_assert_eq!(query(&mut machine, table), [expected[account], count, u64::from(suspended[account])]);
        }
    }
}
