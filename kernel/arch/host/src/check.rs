//! Checks that a kernel's state is as docs/invariants.md says, starting from nothing but the capabilities.
//!
//! Every object is reached through the derivation tree, every thread through its object, and every queue from both
//! sides: from its head, and from each thread that claims to be in it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHashSet};
use tench_abi::Kind;
use tench_abi::message::IpcBuffer;
use tench_abi::object::{DOORBELLS, LINES};
use tench_kernel::endpoint::Endpoint;
use tench_kernel::heap::{self, Holder};
use tench_kernel::kernel::NEVER;
use tench_kernel::notification::Notification;
use tench_kernel::object::Ref;
use tench_kernel::page_table::PageTable;
use tench_kernel::reply::Reply;
use tench_kernel::scheduling_context::SchedulingContext;
use tench_kernel::slot::flag;
use tench_kernel::thread::{Binding, THREAD_OFFSET, Thread, ThreadState, blocker, canary_intact};
use tench_kernel::{Arch, Cap, Kernel, SlotRef};

use crate::check_queues::{check_budget, check_heap};
use crate::host::Host;
use crate::{check_capabilities, check_exports, check_helping, check_tables};
use tench_kernel::page_table;

/// The result of a check: nothing, or a description of what is wrong.
pub type Checked = Result<(), String>;

/// Fails with a formatted message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
pub(crate) use ensure;

/// An inventory of every capability, in the order of the derivation tree.
pub struct Inventory {
    /// Slots with their capabilities.
    pub slots: Vec<(SlotRef, Cap)>,
    /// Live objects by address, without untyped memory.
    pub objects: BTreeMap<usize, Cap>,
    /// Live threads, the idle thread first.
    pub threads: Vec<Ref<Thread>>,
}

impl Inventory {
    /// Walks the derivation tree.
    pub fn take(k: &mut Kernel<Host>) -> Result<Inventory, String> {
        let mut slots = Vec::new();
        let mut at = SlotRef::new(k.state().derivation);
        while let Some(left) = at.and_then(|slot| SlotRef::new(k.slot(slot).links.left)) {
            at = Some(left);
        }
        let mut seen = FxHashSet::default();
        while let Some(slot) = at {
            ensure!(seen.insert(slot), "{slot:?} follows itself in the derivation tree");
            let s = *k.slot(slot);
            ensure!(s.cap.kind != Kind::Null, "{slot:?} is empty and in the derivation tree");
            slots.push((slot, s.cap));
            at = SlotRef::new(s.links.next);
        }
        let mut objects = BTreeMap::new();
        for (_, cap) in &slots {
            if has_object(cap.kind) {
                objects.entry(cap.object).or_insert(*cap);
            }
        }
        let mut threads = vec![k.state().idle];
        for cap in objects.values().filter(|cap| cap.kind == Kind::Thread) {
            // SAFETY: a thread capability names a live thread object.
            threads.extend(unsafe { Ref::<Thread>::at(cap.object + THREAD_OFFSET) });
        }
        Ok(Inventory { slots, objects, threads })
    }

    /// Returns the live objects of one kind.
    pub fn of<T>(&self, kind: Kind) -> Vec<Ref<T>> {
        let caps = self.objects.values().filter(|cap| cap.kind == kind);
        // SAFETY: a capability of a kind names a live object of the type that goes with it, which callers name.
        caps.filter_map(|cap| unsafe { Ref::at(cap.object) }).collect()
    }
}

/// Returns true for kinds whose object is memory with a type of its own.
pub(crate) fn has_object(kind: Kind) -> bool {
    match kind {
        Kind::CapNode | Kind::Frame | Kind::PageTable | Kind::Thread | Kind::SchedulingContext | Kind::Endpoint => true,
        Kind::Reply | Kind::Notification => true,
        Kind::Null
        | Kind::Untyped
        | Kind::Mapping
        | Kind::Interrupt
        | Kind::InterruptControl
        | Kind::Kernel
        | Kind::Doorbell => false,
    }
}

/// A check of one part of the state.
type Check = fn(&mut Kernel<Host>, &Inventory) -> Checked;

/// All checks, in order.
const CHECKS: [(&str, Check); 20] = [
    ("check_order", check_capabilities::check_derivation),
    ("check_watermarks", |_, inventory| check_capabilities::check_watermarks(inventory)),
    ("check_slots", check_capabilities::check_slots),
    ("check_objects", |_, inventory| check_capabilities::check_objects(inventory)),
    ("check_queues", check_queues),
    ("check_replies", check_replies),
    ("check_scheduler", check_scheduler),
    ("check_helping", check_helping::check_helping),
    ("check_budgets", check_budgets),
    ("check_accounts", check_accounts),
    ("check_residents", check_residents),
    ("check_timers", check_timers),
    ("check_thread", check_threads),
    ("check_float", check_float),
    ("check_steps", check_steps),
    ("check_interrupts", check_interrupts),
    ("check_exports", check_exports::check_exports),
    ("check_table", check_tables::check_tables),
    ("check_identifiers", check_tables::check_identifiers),
    ("check_cache", check_tables::check_cache),
];

/// Variable that names one of [`CHECKS`], which is left out: so the tests of mutants (`./tench test mutants`) find out
/// that a check is not superfluous.
const LEAVE_OUT: &str = "TENCH_LEAVE_OUT";

/// Returns the checks that are made.
fn checks() -> &'static [Check] {
    static MADE: OnceLock<Vec<Check>> = OnceLock::new();
    MADE.get_or_init(|| {
        let left_out = std::env::var(LEAVE_OUT).unwrap_or_default();
        let is_known = left_out.is_empty() || CHECKS.iter().any(|(name, _)| *name == left_out);
        assert!(is_known, "{LEAVE_OUT} names {left_out}, which is no check");
        CHECKS.iter().filter(|(name, _)| *name != left_out).map(|(_, check)| *check).collect()
    })
}

/// Checks the kernel's whole state.
pub fn check(k: &mut Kernel<Host>) -> Checked {
    if cfg!(miri) {
        // Miri looks for undefined behaviour in the kernel, and would spend nearly all of its time here.
        return Ok(());
    }
    let inventory = Inventory::take(k)?;
    checks().iter().try_for_each(|check| check(k, &inventory))
}

/// Checks every thread.
fn check_threads(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let mut threads = inventory.threads.iter();
    threads.try_for_each(|thread| check_thread(k, *thread).map_err(|wrong| format!("{thread:?}: {wrong}")))
}

/// Checks that the floating-point unit is on exactly while the running thread uses it, and holds that thread's
/// registers; in any case those of a live thread, or nobody's.
fn check_float(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let is_on = k.arch().float().is_some();
    let (current, owner) = (k.current(), k.state().float_owner);
    let lives = owner.is_none_or(|owner| inventory.threads.contains(&owner));
    ensure!(lives, "the unit has the registers of {owner:?}, which does not live");
    let blockers = k.get(current).blockers;
    ensure!(is_on == (blockers & blocker::FLOAT != 0), "the unit is on: {is_on}, used by {current:?}: {blockers:x}");
    let is_owner = owner == Some(current) || blockers & blocker::DELETED != 0;
    ensure!(!is_on || is_owner, "the unit is on for {current:?}, with the registers of {owner:?}");
    Ok(())
}

/// Checks that a running thread that is to make a step will make one.
fn check_steps(k: &mut Kernel<Host>, _: &Inventory) -> Checked {
    let current = k.current();
    let (is_on, blockers) = (k.arch().steps, k.get(current).blockers);
    ensure!(is_on || blockers & blocker::STEP == 0, "steps are off while {current:?} runs, which is to make one");
    Ok(())
}

/// Returns the threads in a queue, from its head on, after checking the backward links.
fn queue(k: &mut Kernel<Host>, head: Option<Ref<Thread>>, tail: Option<Ref<Thread>>) -> Result<Vec<usize>, String> {
    let mut threads = Vec::new();
    let mut previous = None;
    let mut at = head;
    while let Some(thread) = at {
        ensure!(!threads.contains(&thread.address()), "{thread:?} is twice in a queue");
        let t = k.get(thread);
        ensure!(t.previous == previous, "{thread:?}: previous is {:?}, not {previous:?}", t.previous);
        threads.push(thread.address());
        previous = Some(thread);
        at = t.next;
    }
    ensure!(previous.is_none() || previous == tail, "a queue's tail is {tail:?}, not {previous:?}");
    Ok(threads)
}

/// Returns the senders at an endpoint. They form runs of equal priority; the heap holds the first of each run. A
/// sender's key holds its priority and the order of its arrival. No two keys are equal. `tail` is the last thread of a
/// run.
fn senders(k: &mut Kernel<Host>, first: Ref<Thread>, tail: Option<Ref<Thread>>) -> Result<BTreeSet<usize>, String> {
    let mut nodes = Vec::new();
    // SAFETY: the field of a live thread.
    let root = unsafe { Ref::at(first.address() + offset_of!(Thread, sending)) }.ok_or("no node")?;
    let root = heap::number(k, root);
    // This panics instead of returning an error.
    check_heap(k, root, &mut |node| nodes.push(node));
    let (mut keys, mut threads, mut ends) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for node in nodes {
        // SAFETY: nodes of senders lie in live threads (that is what this checks).
        let first = unsafe { Ref::<Thread>::at(node.address() - offset_of!(Thread, sending)) };
        let (mut at, mut previous, mut before) = (first, None, 0);
        while let Some(thread) = at {
            let t = k.get(thread);
            let key = t.sending.key;
            let priority = if t.blockers & blocker::HELPLESS != 0 { -1 } else { t.priority };
            ensure!(keys.insert(key), "two senders have the key {key:x}");
            let rank = key >> 48;
            // A thread that reports its used-up budget keeps the place with which it came.
            let is_reported = t.blockers & blocker::FAULT_REPORTED == blocker::FAULT_REPORTED;
            let is_right = is_reported || rank == (256 - i64::from(priority)) as u64;
            ensure!(is_right, "{thread:?} waits with key {key:x}, and has {priority}");
            ensure!(t.previous == previous, "{thread:?}: previous is {:?}, not {previous:?}", t.previous);
            ensure!(previous.is_none() || !t.sending.is_queued(), "{thread:?} is in a run and in the heap");
            ensure!(before < key && (before == 0 || before >> 48 == rank), "{thread:?} is out of order: {key:x}");
            threads.insert(thread.address());
            (at, previous, before) = (t.next, at, key);
        }
        ends.extend(previous.map(Ref::address));
    }
    ensure!(tail.is_none_or(|tail| ends.contains(&tail.address())), "the tail {tail:?} is not the last of a run");
    Ok(threads)
}

/// Checks that the queues of endpoints and notifications hold exactly the threads that wait there.
fn check_queues(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let mut waiting: FxHashMap<(usize, u64), BTreeSet<usize>> = FxHashMap::default();
    for thread in &inventory.threads {
        let key = match k.get(*thread).state {
            ThreadState::Sending(endpoint) => (endpoint.address(), 0),
            ThreadState::Receiving(endpoint) => (endpoint.address(), 1),
            ThreadState::Waiting(notification) => (notification.address(), 2),
            _ => continue,
        };
        waiting.entry(key).or_default().insert(thread.address());
    }
    for endpoint in inventory.of::<Endpoint>(Kind::Endpoint) {
        let (head, tail) = (k.get(endpoint).head, k.get(endpoint).tail);
        // SAFETY: the head of a queue is a live thread (that is what this checks).
        let first = unsafe { Ref::at(head & !1) };
        // SAFETY: so is its tail, which is compared, not followed.
        let last = unsafe { Ref::at(tail) };
        let threads: BTreeSet<usize> = match first {
            Some(first) if head & 1 == 0 => senders(k, first, last)?,
            _ => queue(k, first, last)?.into_iter().collect(),
        };
        let expected = waiting.remove(&(endpoint.address(), head as u64 & 1)).unwrap_or_default();
        ensure!(threads == expected, "{endpoint:?} queues {threads:x?}, but {expected:x?} wait there");
    }
    for notification in inventory.of::<Notification>(Kind::Notification) {
        let n = k.get(notification);
        let (head, tail, word, bound) = (n.head, n.tail, n.word, n.bound);
        if let Some(thread) = bound {
            ensure!(
                inventory.threads.contains(&thread),
                "{notification:?} is bound to {thread:?}, which does not live"
            );
            let its = k.get(thread).notification;
            ensure!(its == Some(notification), "{notification:?} is bound to {thread:?}, which has {its:?}");
        }
        let threads: BTreeSet<usize> = queue(k, head, tail)?.into_iter().collect();
        let expected = waiting.remove(&(notification.address(), 2)).unwrap_or_default();
        ensure!(threads == expected, "{notification:?} queues {threads:x?}, but {expected:x?} wait there");
        ensure!(word == 0 || threads.is_empty(), "{notification:?} has signals and threads that wait for them");
    }
    ensure!(waiting.is_empty(), "threads wait where no object is or in the other direction: {waiting:x?}");
    Ok(())
}

/// Checks that reply objects and callers name each other.
fn check_replies(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    for reply in inventory.of::<Reply>(Kind::Reply) {
        let r = k.get(reply);
        let (caller, claimed, bound) = (r.caller, r.claimed, r.bound);
        if let Some(caller) = caller {
            ensure!(inventory.threads.contains(&caller), "{reply:?} holds {caller:?}, which does not live");
            let state = k.get(caller).state;
            ensure!(state == ThreadState::AwaitingReply(reply), "{reply:?} holds {caller:?}, which is {state:?}");
        }
        if let Some(thread) = claimed {
            ensure!(inventory.threads.contains(&thread), "{reply:?} is claimed by {thread:?}, which does not live");
            let t = k.get(thread);
            let (own, other) = (t.bound_reply == Some(reply), t.other_reply == Some(reply));
            ensure!(own == bound, "{reply:?}: bound is {bound}, but its thread's is {own}");
            ensure!(own != other, "{reply:?} is claimed by {thread:?}: bound {own}, received with last {other}");
        }
    }
    for thread in &inventory.threads {
        if let ThreadState::AwaitingReply(reply) = k.get(*thread).state {
            let exists = inventory.objects.get(&reply.address()).is_some_and(|cap| cap.kind == Kind::Reply);
            ensure!(exists, "{thread:?} awaits a reply through {reply:?}, which does not live");
            ensure!(k.get(reply).caller == Some(*thread), "{thread:?} is not the caller in {reply:?}");
        }
        let t = k.get(*thread);
        ensure!(!t.deferred || t.other_reply.is_some(), "{thread:?} defers callers in its bound reply object");
        if let Some(other) = k.get(*thread).other_reply {
            let exists = inventory.objects.get(&other.address()).is_some_and(|cap| cap.kind == Kind::Reply);
            ensure!(exists, "{thread:?} has received last with {other:?}, which does not live");
            let claimed = k.get(other).claimed;
            ensure!(claimed == Some(*thread), "{thread:?} has received last with {other:?}, which is {claimed:?}'s");
        }
        let t = k.get(*thread);
        if let (ThreadState::Receiving(_), Some(reply)) = (t.state, t.receive_reply) {
            let (fast, current) = (t.fast_reply, t.other_reply.or(t.bound_reply));
            ensure!(current == Some(reply), "{thread:?} waits with {reply:?}, its current one is {current:?}");
            ensure!(k.get(reply).claimed == Some(*thread), "{thread:?} waits with {reply:?}, which it has not claimed");
            ensure!(
                fast.is_none() || fast == current,
                "{thread:?} waits with {reply:?}, and {fast:?} on the fast path"
            );
        }
    }
    Ok(())
}

/// Checks that the ready queues hold exactly the threads that are runnable and do not run.
fn check_scheduler(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let mut queued = BTreeMap::new();
    let mut highest = -1;
    for priority in 0..tench_abi::object::PRIORITIES {
        let q = k.state().ready[priority];
        let bit = k.state().ready_bitmap[priority / 64] >> (priority % 64) & 1 != 0;
        if q.head.is_none() && !bit {
            continue;
        }
        let threads = queue(k, q.head, q.tail).map_err(|wrong| format!("priority {priority}: {wrong}"))?;
        ensure!(bit != threads.is_empty(), "priority {priority}: bitmap says {bit}, queue {threads:x?}");
        if bit {
            highest = priority as i32;
        }
        queued.extend(threads.into_iter().map(|thread| (thread, priority as i32)));
    }
    let (current, idle) = (k.current(), k.state().idle);
    ensure!(k.state().highest_ready == highest, "highest_ready is {}, not {highest}", k.state().highest_ready);
    for thread in &inventory.threads {
        let t = k.get(*thread);
        let found = queued.remove(&thread.address());
        ensure!(t.queued == found.is_some(), "{thread:?}: queued is {}, its queue {found:?}", t.queued);
        let runnable = matches!(t.state, ThreadState::Ready) && t.priority >= 0 && *thread != idle;
        let expected = (runnable && *thread != current).then(|| i32::from(t.priority));
        ensure!(found == expected, "{thread:?} ({:?}): in queue {found:?}, belongs in {expected:?}", t.state);
    }
    ensure!(queued.is_empty(), "threads that do not live are ready: {queued:x?}");
    ensure!(inventory.threads.contains(&current), "the running thread {current:?} does not live");
    Ok(())
}

/// Checks that budgets are consistent, and that the flags of threads on limited and used-up contexts are right.
fn check_budgets(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let current = k.current();
    let running = k.get(current).scheduling;
    for context in inventory.of::<SchedulingContext>(Kind::SchedulingContext) {
        let c = k.get(context);
        let (budget, consumed, charged) = (c.budget, c.consumed, c.charged);
        // This panics instead of returning an error.
        check_budget(&budget);
        ensure!(
            !budget.is_limited() || running == Some(context) || consumed == charged,
            "{context:?} has used what it was not charged"
        );
    }
    for thread in &inventory.threads {
        let t = k.get(*thread);
        let (flags, scheduling) = (t.blockers, t.scheduling);
        let is_limited = scheduling.is_some_and(|context| k.get(context).budget.is_limited());
        let has = |bit: u32| flags & bit != 0;
        ensure!(has(blocker::BUDGETED) == is_limited, "{thread:?}: flags {flags:#x}, but a budget is {is_limited}");
        // A thread that reports a used-up budget may have lost the budget meanwhile.
        let of_budget = if has(blocker::FAULT) { blocker::OF_BUDGET & !blocker::REPORTED } else { blocker::OF_BUDGET };
        ensure!(is_limited || !has(of_budget), "{thread:?} has flags {flags:#x} of a budget that it has not");
    }
    let (end, flags) = (k.state().budget_end, k.get(current).blockers);
    ensure!(end == NEVER || flags & blocker::BUDGETED != 0, "the budget of {current:?} is timed, which has none");
    // No thread runs on an untimed budget, except one that is known already not to go on.
    let is_timed = end != NEVER || k.state().reschedule || flags & blocker::BUDGETED == 0;
    ensure!(is_timed, "{current:?} runs on a budget that is not timed");
    Ok(())
}

/// Checks that each account's ring holds exactly the threads that belong to it.
fn check_accounts(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let mut members: FxHashMap<usize, BTreeSet<usize>> = FxHashMap::default();
    for thread in &inventory.threads {
        if let Some(table) = k.get(*thread).membership.account {
            members.entry(table.address()).or_default().insert(thread.address());
        }
    }
    for table in inventory.of::<PageTable>(Kind::PageTable) {
        let account = k.get(table).account;
        let expected = members.remove(&table.address()).unwrap_or_default();
        ensure!(account.open || expected.is_empty(), "{table:?} has no account, but members {expected:x?}");
        let mut found = BTreeSet::new();
        let mut at = account.first;
        while let Some(thread) = at.filter(|thread| found.insert(thread.address())) {
            ensure!(expected.contains(&thread.address()), "{thread:?} is in the ring of {table:?}, but no member");
            let next = k.get(thread).membership.next.ok_or("a member without a next")?;
            ensure!(k.get(next).membership.previous == Some(thread), "{next:?} does not follow {thread:?}");
            at = Some(next);
        }
        ensure!(found == expected, "the ring of {table:?} has {found:x?}, its members are {expected:x?}");
        ensure!(account.count as usize == found.len(), "{table:?} counts {} members", account.count);
    }
    ensure!(members.is_empty(), "threads belong to accounts that do not live: {members:x?}");
    Ok(())
}

/// Checks that each address space counts its resident threads, and that a resident of one with an account belongs to
/// that account.
fn check_residents(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let mut residents: FxHashMap<usize, u32> = FxHashMap::default();
    for thread in &inventory.threads {
        let t = k.get(*thread);
        let (account, home) = (t.membership.account, t.bindings[Binding::AddressSpace as usize].cap);
        let object = inventory.objects.get(&(thread.address() - THREAD_OFFSET));
        let ends = object.is_some_and(|cap| cap.flags & flag::ZOMBIE != 0);
        if home.kind == Kind::Null || home.flags & flag::EMBEDDED == 0 {
            continue;
        }
        *residents.entry(home.object).or_default() += 1;
        // SAFETY: the binding is a capability to a live table.
        let root = unsafe { Ref::<PageTable>::at(home.object) }.ok_or("no table")?;
        let belongs = account == Some(root) || ends || !k.get(root).account.open;
        ensure!(belongs, "{thread:?} lives in the space of {root:?}, and belongs to {account:?}");
    }
    for table in inventory.of::<PageTable>(Kind::PageTable) {
        let (counted, found) = (k.get(table).residents, residents.get(&table.address()).copied().unwrap_or(0));
        ensure!(counted == found, "{found} threads live in the space of {table:?}, which counts {counted}");
    }
    Ok(())
}

/// Checks that the timer queues are heaps of exactly the threads that wait with a deadline or have an alarm, and the
/// contexts that wait for a refill.
fn check_timers(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let mut found = BTreeSet::new();
    for (class, root) in k.state().timers.roots().into_iter().enumerate() {
        let mut nodes = Vec::new();
        // This panics instead of returning an error.
        check_heap(k, root, &mut |node| nodes.push(node));
        for node in nodes {
            let n = *k.get(node);
            ensure!(usize::from(n.class) == class, "{n:?} is in class {class}");
            let offset = match n.holder {
                Holder::Thread => offset_of!(Thread, timer),
                Holder::Context => offset_of!(SchedulingContext, refill),
            };
            ensure!(found.insert((n.holder == Holder::Context, node.address() - offset)), "{n:?} is queued twice");
        }
    }
    let mut expected = BTreeSet::new();
    for thread in &inventory.threads {
        let (flags, state) = (k.get(*thread).blockers, k.get(*thread).state);
        if flags & blocker::DEADLINE != 0 {
            expected.insert((false, thread.address()));
            let waits = !matches!(state, ThreadState::Ready | ThreadState::Suspended | ThreadState::Faulted);
            ensure!(waits || flags & blocker::ALARM != 0, "{thread:?} has a deadline, and is {state:?}");
        }
    }
    for context in inventory.of::<SchedulingContext>(Kind::SchedulingContext) {
        if k.get(context).is_used_up {
            expected.insert((true, context.address()));
        }
    }
    ensure!(found == expected, "the timer queues hold {found:x?}, but {expected:x?} wait for a time");
    Ok(())
}

/// Checks that what a thread caches of its bindings agrees with them.
fn check_thread(k: &mut Kernel<Host>, thread: Ref<Thread>) -> Checked {
    ensure!(canary_intact(thread), "its canary was overwritten");
    let empty = k.arch().empty_space_register();
    let t = k.get(thread);
    // A slot without the flag was unbound, and holds a capability that is being deleted.
    let binding = |binding: Binding| match t.bindings[binding as usize].cap {
        cap if cap.flags & flag::EMBEDDED != 0 => cap,
        _ => Cap::NULL,
    };
    let cspace = binding(Binding::CSpace);
    let root = if cspace.kind == Kind::Null { (0, 0) } else { (cspace.object, cspace.slots()) };
    ensure!((t.cspace_root, t.cspace_slots) == root, "CSpace {:x}, {} slots", t.cspace_root, t.cspace_slots);
    let (buffer, frame) = (t.ipc_buffer, binding(Binding::IpcBuffer));
    let inside = frame.kind == Kind::Frame && (frame.object..frame.object + frame.size()).contains(&buffer);
    ensure!(buffer == 0 || inside, "its IPC buffer {buffer:x} is not in its frame");
    let registers = if buffer == 0 { 0 } else { buffer + offset_of!(IpcBuffer, registers) };
    ensure!(t.upcall_registers == registers, "the registers in its IPC buffer are at {:x}", t.upcall_registers);
    let has_upcalls = t.fault_targets.iter().any(|target| target.entry != 0);
    ensure!((t.has_upcalls != 0) == has_upcalls, "whether it has upcalls: {}", t.has_upcalls);
    let reply = t.bound_reply.map_or(0, Ref::address);
    ensure!(reply == binding(Binding::Reply).object, "bound reply {reply:x}");
    let served = t.served.map_or(0, Ref::address);
    ensure!(served == binding(Binding::Served).object, "it serves {served:x}");
    let notification = t.notification.map_or(0, Ref::address);
    ensure!(notification == binding(Binding::Notification).object, "bound notification {notification:x}");
    let (register, table) = (t.space_register, binding(Binding::AddressSpace));
    let root = table.named();
    let own = root.map_or(empty, |root| page_table::space_register(k, root));
    ensure!(register == own, "space register {register:x}, not {own:x}");
    if thread == k.current() {
        let loaded = k.arch().space;
        let shared = root.filter(|root| own == empty && k.state().shared_space == root.address());
        let shared = shared.map_or(own, |root| page_table::share(k, root));
        ensure!(loaded == own || loaded == shared, "it runs in space {loaded:x}, not {own:x}");
    }
    if let Some(notification) = k.get(thread).notification {
        let n = k.get(notification);
        let (bound, word) = (n.bound, n.word);
        ensure!(bound == Some(thread), "it has {notification:?} bound, which is another's");
        let is_marked = k.get(thread).blockers & blocker::SIGNALLED != 0;
        ensure!(word == 0 || is_marked, "its notification has signals {word:#x}, and it is not marked");
    }
    Ok(())
}

/// Checks that interrupt lines and notifications name each other.
fn check_interrupts(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let mut listed = FxHashSet::default();
    for notification in inventory.of::<Notification>(Kind::Notification) {
        let (mut previous, mut at) = (0, k.get(notification).first_interrupt);
        while at != 0 {
            ensure!(listed.insert(at), "line {} is listed twice", at - 1);
            let line = k.state().interrupts[at as usize - 1];
            ensure!(line.notification == Some(notification), "line {} is not {notification:?}'s", at - 1);
            ensure!(line.previous == previous, "line {}: previous is {}, not {previous}", at - 1, line.previous);
            (previous, at) = (at, line.next);
        }
        check_held(k, notification)?;
    }
    let named = inventory.slots.iter().filter(|(_, cap)| cap.kind == Kind::Interrupt);
    let named: FxHashSet<usize> = named.map(|(_, cap)| cap.object).collect();
    for number in 0..LINES {
        let line = k.state().interrupts[number];
        let bound = listed.contains(&(number as u16 + 1));
        ensure!(line.notification.is_some() == bound, "line {number} is bound, but not listed");
        ensure!(line.taken == named.contains(&number), "line {number}: taken is {}", line.taken);
        ensure!(line.taken || !line.automatic, "line {number} is automatic, and nobody's");
        ensure!(!line.taken || k.arch().interrupt_exists(number as u32), "line {number} is another core's");
    }
    Ok(())
}

/// Checks that a notification holds exactly those of its automatic lines that are masked, and that it then has a
/// signal, whose taking unmasks them.
fn check_held(k: &mut Kernel<Host>, notification: Ref<Notification>) -> Checked {
    let n = k.get(notification);
    let (held, word) = (n.held, n.word);
    ensure!(held == 0 || word != 0, "{notification:?} holds lines {held:#x}, and has no signal");
    for number in 0..DOORBELLS as u32 {
        let line = k.state().interrupts[number as usize];
        let is_one = line.automatic && line.notification == Some(notification);
        let (is_held, is_masked) = (held >> number & 1 != 0, !k.arch().enabled.contains(&number));
        ensure!(
            is_held == (is_one && is_masked),
            "line {number}: held by {notification:?}: {is_held}; masked: {is_masked}"
        );
    }
    Ok(())
}
