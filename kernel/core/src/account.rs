//! Accounts: the processor time that all threads of a process have used together, and whether they may run.
//!
//! An account is part of a root page table, because that is the one object of which every process has exactly one and
//! which it did not make itself. Opening it takes the kernel's capability. Two rules prevent a way around a suspension:
//!
//! - A thread in an address space with an account belongs to that account. Only a capability to the root table with
//!   `GRANT` allows to put a thread of another account there, or one that is configured by a thread of another account.
//!   Processes have no such capability to their own root table.
//! - A thread that belongs to an account stays there unless the holder of a capability with `GRANT` to another moves
//!   it. A thread without an account joins, in an address space without one, the account of the thread that configures
//!   it.
//!
//! So all threads in a process's address space, and all threads that the process has made, stop with it, even if others
//! help them. Suspending takes `GRANT`, too: otherwise a process's child could resume it.
//!
//! ```text
//!  root table ── members ─► thread ⇄ thread ⇄ thread ⇄ (round)
//!   time                      │ suspended: priority -1, in no ready queue, whatever it waits for
//!   suspended                 ▼ own scheduling context: consumed since `accounted` is not in `time` yet
//! ```
//! Time is charged to scheduling contexts when the scheduler switches; charging the account as well would lengthen
//! every switch. It moves to the account when the account is queried, and before a thread or its context leaves. A
//! visit to all members takes bounded steps with preemption points in between. Each step turns the ring by one member,
//! so the only state is the number of members left, and threads may join and leave meanwhile.

use tench_abi::{Error, Rights};

use crate::object::Ref;
use crate::page_table::PageTable;
use crate::slot::SlotRef;
use crate::syscall::{Outcome, argument, capability};
use crate::thread::Thread;
use crate::{Arch, Kernel, helping, preemption_point, scheduler, scheduling_context, syscall};

/// Maximum number of members visited between two preemption points, including the threads that they help.
const BATCH: u32 = 6;

/// A process's account, in its root page table.
#[derive(Clone, Copy, Default)]
pub struct Account {
    /// Set while the account exists.
    pub open: bool,
    /// Set while the account is suspended: its members must not run.
    pub suspended: bool,
    /// Number of members.
    pub count: u32,
    /// First member of the ring.
    pub first: Option<Ref<Thread>>,
    /// Ticks that have moved from the members' scheduling contexts to the account.
    pub time: u64,
}

/// A thread's membership in an account; all `None` without one.
#[derive(Clone, Copy, Default)]
pub struct Membership {
    /// The root table with the account.
    pub account: Option<Ref<PageTable>>,
    /// Next in the ring of members.
    pub next: Option<Ref<Thread>>,
    /// Previous in the ring of members.
    pub previous: Option<Ref<Thread>>,
}

/// Returns the account to which a thread will belong when `caller` puts it into the address space whose root table is
/// in slot `space`.
///
/// # Errors
/// `MissingRights` if that address space has an account, the thread would otherwise belong to another, and the
/// capability lacks `GRANT`.
pub fn of_configured<A: Arch>(
    k: &mut Kernel<A>,
    caller: Ref<Thread>,
    thread: Ref<Thread>,
    space: SlotRef,
) -> Result<Option<Ref<PageTable>>, Error> {
    let own = k.get(thread).membership.account.or(k.get(caller).membership.account);
    let may_move = k.slot(space).cap.allows(Rights::GRANT);
    match root_of(k, space) {
        Some(table) if k.get(table).account.open => {
            if own == Some(table) || may_move {
                Ok(Some(table))
            } else {
                Err(Error::MissingRights)
            }
        }
        _ => Ok(own),
    }
}

/// Returns the root table of the capability in a slot.
fn root_of<A: Arch>(k: &mut Kernel<A>, space: SlotRef) -> Option<Ref<PageTable>> {
    k.slot(space).cap.named()
}

/// Moves a thread to this account from the one to which it belongs, if any.
pub fn join<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, account: Option<Ref<PageTable>>) {
    leave(k, thread);
    if let Some(context) = scheduling_context::of_thread(k, thread) {
        let c = k.get(context);
        c.accounted = c.consumed;
    }
    let Some(table) = account else {
        set_suspended(k, thread, false);
        return;
    };
    let (first, suspended) = (k.get(table).account.first, k.get(table).account.suspended);
    let (next, previous) = match first {
        Some(first) => (first, k.get(first).membership.previous.unwrap_or(first)),
        None => (thread, thread),
    };
    k.get(thread).membership = Membership { account, next: Some(next), previous: Some(previous) };
    k.get(next).membership.previous = Some(thread);
    k.get(previous).membership.next = Some(thread);
    let a = &mut k.get(table).account;
    a.first = a.first.or(Some(thread));
    a.count += 1;
    set_suspended(k, thread, suspended);
}

/// Removes a thread from its account, which keeps the time that the thread used. Whether the thread may run does not
/// change.
pub fn leave<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    transfer_time(k, thread);
    let Membership { account: Some(table), next, previous } = core::mem::take(&mut k.get(thread).membership) else {
        return;
    };
    let a = &mut k.get(table).account;
    a.count -= 1;
    if a.count == 0 {
        a.first = None;
        return;
    }
    if a.first == Some(thread) {
        a.first = next;
    }
    if let (Some(next), Some(previous)) = (next, previous) {
        k.get(next).membership.previous = Some(previous);
        k.get(previous).membership.next = Some(next);
    }
}

/// Moves the time that a thread's own scheduling context has consumed to the thread's account.
pub fn transfer_time<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let Some(context) = scheduling_context::of_thread(k, thread) else { return };
    let current = k.current();
    if k.get(current).scheduling == Some(context) {
        scheduler::charge(k);
    }
    let c = k.get(context);
    let used = c.consumed.wrapping_sub(c.accounted);
    c.accounted = c.consumed;
    if let Some(table) = k.get(thread).membership.account {
        k.get(table).account.time += used;
    }
}

/// Suspends or resumes a thread on behalf of its account. A suspended thread keeps waiting, and can get its reply.
/// Returns the number of other threads whose priority has changed.
pub fn set_suspended<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, suspended: bool) -> usize {
    if k.get(thread).account_suspended == suspended {
        return 0;
    }
    let t = k.get(thread);
    t.account_suspended = suspended;
    // The thread may wait for a call, and the fast path would let it run.
    t.fast_reply = None;
    helping::propagate_with_server(k, thread)
}

/// Applies the suspension of a thread's account to the thread. A visit to the members leaves out the thread that makes
/// it, so this follows whenever its visit ends: at its end, with an error, or discarded at a preemption point.
pub fn apply_suspension<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if let Some(table) = k.get(thread).membership.account {
        let suspended = k.get(table).account.suspended;
        set_suspended(k, thread, suspended);
    }
}

/// Returns the root table that `x0` names, if it has an account.
fn named<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>, rights: Rights) -> Result<Ref<PageTable>, Error> {
    let table = capability::<A, PageTable>(k, caller, rights)?;
    if k.get(table).account.open { Ok(table) } else { Err(Error::NotConfigured) }
}

/// Visits all members of an account: moves their time to the account, and applies the account's suspension. The running
/// thread is suspended last, so that it can finish. Contains preemption points.
///
/// # Errors
/// `Aborted` if the running thread was deleted meanwhile; those of `named`.
fn visit<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>, rights: Rights) -> Result<Ref<PageTable>, Error> {
    let mut table = named(k, caller, rights)?;
    let mut left = k.get(table).account.count;
    loop {
        let mut done = 0;
        while left > 0 && done < BATCH {
            left -= 1;
            done += 1;
            let Some(member) = k.get(table).account.first else { break };
            k.get(table).account.first = k.get(member).membership.next;
            transfer_time(k, member);
            let suspended = k.get(table).account.suspended;
            if member != caller {
                done += set_suspended(k, member, suspended) as u32;
            }
        }
        if left == 0 {
            break;
        }
        if preemption_point::pass(k).is_deleted() {
            return Err(Error::Aborted);
        }
        table = match named(k, caller, rights) {
            Ok(table) => table,
            Err(error) => {
                apply_suspension(k, caller);
                return Err(error);
            }
        };
    }
    apply_suspension(k, caller);
    Ok(table)
}

/// Performs `AccountOpen`.
pub fn open<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let table = capability::<A, PageTable>(k, caller, Rights::WRITE)?;
    let authority = argument(k, caller, 1);
    syscall::whole(k, authority)?;
    let t = k.get(table);
    if t.level != 0 {
        return Err(Error::WrongType);
    }
    if t.account.open {
        return Err(Error::AlreadyBound);
    }
    // Threads in the address space belong to other accounts, and would stay in them.
    if t.residents > 0 {
        return Err(Error::Busy);
    }
    t.account.open = true;
    Ok(Outcome::Done)
}

/// Performs `AccountQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let table = visit(k, caller, Rights::READ)?;
    let a = k.get(table).account;
    Ok(Outcome::results(k, caller, &[a.time, u64::from(a.count), u64::from(a.suspended)]))
}

/// Performs `AccountSuspend`.
pub fn suspend<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let suspended = match argument(k, caller, 1) {
        0 => false,
        1 => true,
        _ => return Err(Error::InvalidArgument),
    };
    let table = named(k, caller, Rights::GRANT)?;
    k.get(table).account.suspended = suspended;
    visit(k, caller, Rights::GRANT)?;
    Ok(Outcome::Done)
}

/// Does one step of an account's end, when its table is deleted. Returns whether it has no members any more.
pub fn close<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>) -> bool {
    for _ in 0..BATCH {
        let Some(member) = k.get(table).account.first else { return true };
        leave(k, member);
    }
    k.get(table).account.first.is_none()
}
