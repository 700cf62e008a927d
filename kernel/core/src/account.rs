//! Accounts: what all threads of a process have in common: the processor time that they have used, and whether they may
//! run.
//!
//! An account is part of a root page table, because that is what every process has exactly one of that it did not make
//! itself. Who holds the kernel's capability opens it. Two rules leave no way around a suspension:
//!
//! - Whoever lives in a space with an account belongs to that. Only a capability to the root with `GRANT` lets a thread
//!   of another account, or one that somebody of another account configures, live there. Processes have no such
//!   capability to their own root.
//! - A thread that belongs to an account stays there as long as nobody with `GRANT` to another takes it over. One that
//!   belongs to none joins, in a space without one, the account of the thread that configures it.
//!
//! So a thread that runs in a process's space, and one that the process has made, stop with it, whoever else helps.
//! `GRANT` is also what suspending takes: otherwise a process's child could let it go on.
//!
//! ```text
//!  root table ── members ─► thread ⇄ thread ⇄ thread ⇄ (round)
//!   time                      │ parked: priority -1, in no ready queue, whatever it waits for
//!   suspended                 ▼ own scheduling context: consumed since `accounted` is not in `time` yet
//! ```
//! Time is charged to scheduling contexts, at the scheduler's switches; to charge it twice would make every switch
//! longer. It moves from there to the account when somebody asks, and before a thread or its context leaves. Visiting
//! all members takes bounded steps with windows between them: the ring turns by one member for each visit, so nothing
//! has to be remembered but how many are left, and whoever joins or leaves meanwhile disturbs nothing.

use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability};
use crate::object::{PageTable, Ref, SchedulingContext};
use crate::slot::{SlotRef, flag};
use crate::thread::{Binding, Thread};
use crate::{Arch, Kernel, helping, power, scheduler, window};

/// Members visited between two windows, and threads that they help.
const BATCH: u32 = 6;

/// What a root page table holds of an account.
#[derive(Clone, Copy, Default)]
pub struct Account {
    /// Whether there is one.
    pub open: bool,
    /// Whether its members may not run.
    pub suspended: bool,
    /// How many threads belong to it.
    pub count: u32,
    /// One of them.
    pub first: Option<Ref<Thread>>,
    /// Ticks that have moved here.
    pub time: u64,
}

/// A thread's place in an account. All `None` outside.
#[derive(Clone, Copy, Default)]
pub struct Membership {
    /// The root table with the account.
    pub account: Option<Ref<PageTable>>,
    /// Next in the ring of members.
    pub next: Option<Ref<Thread>>,
    /// Previous in it.
    pub previous: Option<Ref<Thread>>,
}

/// The account to which a thread belongs when `caller` lets it live in the address space whose root a capability names.
///
/// # Errors
/// `MissingRights` if that space has an account, the thread would belong to another, and the capability lacks `GRANT`.
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

/// The root table that the capability in a slot names.
fn root_of<A: Arch>(k: &mut Kernel<A>, space: SlotRef) -> Option<Ref<PageTable>> {
    // SAFETY: the caller has a live capability to a table there.
    unsafe { Ref::at(k.slot(space).cap.object) }
}

/// A thread belongs to this account from now on, and to none that it belonged to before.
pub fn join<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, account: Option<Ref<PageTable>>) {
    leave(k, thread);
    if let Some(context) = own_context(k, thread) {
        let c = k.get(context);
        c.accounted = c.consumed;
    }
    let Some(table) = account else {
        park(k, thread, false);
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
    park(k, thread, suspended);
}

/// A thread leaves its account; the time that it used stays there. Whether it may run does not change.
pub fn leave<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    settle(k, thread);
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

/// The scheduling context that is bound to a thread, wherever it is at the moment.
pub fn own_context<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<SchedulingContext>> {
    let cap = &k.get(thread).bindings[Binding::Scheduling as usize].cap;
    // A slot that is no longer marked was unbound, and holds what is being deleted.
    if cap.kind as u8 != Kind::SchedulingContext as u8 || cap.flags & flag::EMBEDDED == 0 {
        return None;
    }
    // SAFETY: a live capability of this kind names such an object.
    unsafe { Ref::at(cap.object) }
}

/// Moves the time that a thread's own scheduling context has used to the thread's account.
pub fn settle<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let Some(context) = own_context(k, thread) else { return };
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

/// Says whether a thread may run, whatever else it does. A thread that may not goes on waiting, and can be answered.
/// Answers how many others run at another priority because of that.
pub fn park<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, parked: bool) -> usize {
    if k.get(thread).parked == parked {
        return 0;
    }
    let t = k.get(thread);
    t.parked = parked;
    // It may be waiting to be called; the fast path would let it run.
    t.fast_reply = None;
    helping::settle_with_server(k, thread)
}

/// A thread may run or not, as its account says. Who visits the members leaves itself out, so this is owed to it
/// whenever its visit ends: at its end, with an error, or forgotten in a window.
pub fn obey<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if let Some(table) = k.get(thread).membership.account {
        let suspended = k.get(table).account.suspended;
        park(k, thread, suspended);
    }
}

/// The account of the table that `x0` names.
fn named<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>, rights: Rights) -> Result<Ref<PageTable>, Error> {
    let table = capability::<A, PageTable>(k, caller, Kind::PageTable, rights)?;
    if k.get(table).account.open { Ok(table) } else { Err(Error::NotConfigured) }
}

/// Visits every thread that is a member of the account now: its time moves to the account, and it may run or not, as
/// the account says. The running thread is parked last, so that it comes to the end. Passes windows.
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
            settle(k, member);
            let suspended = k.get(table).account.suspended;
            if member != caller {
                done += park(k, member, suspended) as u32;
            }
        }
        if left == 0 {
            break;
        }
        if !window::pass(k) {
            return Err(Error::Aborted);
        }
        table = match named(k, caller, rights) {
            Ok(table) => table,
            Err(error) => {
                obey(k, caller);
                return Err(error);
            }
        };
    }
    obey(k, caller);
    Ok(table)
}

/// `AccountOpen`.
pub fn open<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let table = capability::<A, PageTable>(k, caller, Kind::PageTable, Rights::WRITE)?;
    let authority = argument(k, caller, 1);
    power::whole(k, authority)?;
    let t = k.get(table);
    if t.level != 0 {
        return Err(Error::WrongType);
    }
    if t.account.open {
        return Err(Error::AlreadyBound);
    }
    // They belong elsewhere, and would live here all the same.
    if t.residents > 0 {
        return Err(Error::Busy);
    }
    t.account.open = true;
    Ok(Outcome::Done)
}

/// `AccountQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let table = visit(k, caller, Rights::READ)?;
    let a = k.get(table).account;
    Ok(Outcome::results(k, caller, &[a.time, u64::from(a.count), u64::from(a.suspended)]))
}

/// `AccountSuspend`.
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

/// One step of the end of an account, whose table goes. Answers whether nobody belongs to it any more.
pub fn close<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>) -> bool {
    for _ in 0..BATCH {
        let Some(member) = k.get(table).account.first else { return true };
        leave(k, member);
    }
    k.get(table).account.first.is_none()
}
