//! Checks that each thread runs on the scheduling context that it should run on. Computes that from scratch: from which
//! threads wait for which, and which scheduling context each has of its own.

use std::collections::BTreeMap;

use tench_abi::Kind;
use tench_kernel::Kernel;
use tench_kernel::endpoint::Endpoint;
use tench_kernel::endpoint::queue;
use tench_kernel::helping::heights::MAX_HEIGHT;
use tench_kernel::helping::{UNCAPPED, can_help};
use tench_kernel::object::Ref;
use tench_kernel::scheduling_context::SchedulingContext;
use tench_kernel::thread::{Base, Binding, Thread, ThreadState, blocker};

use crate::check::{Checked, Inventory, ensure};
use crate::host::Host;

/// A scheduling context, the priority at which a thread runs on it (-1: not now), and the thread's height: how many
/// threads wait for each other behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Address of the context.
    pub context: Option<usize>,
    /// Priority at which the thread runs.
    pub priority: i16,
    /// One more than the greatest height of those that help the thread, 0 if none does. Of senders to a thread without
    /// depth, heights of 2 and 3 count as 3.
    pub height: u8,
}

/// The facts about a thread that do not depend on what it runs on.
#[derive(Clone, Debug)]
pub struct Facts {
    own: Standing,
    cap: i16,
    is_urgent: bool,
    is_suspended: bool,
    /// The thread's declared depth: how many servers deep its own calls go while it serves.
    depth: u8,
    /// The thread waits without helping: it reports that its budget is used up, or too many threads would wait for
    /// each other.
    is_helpless: bool,
    /// The caller in the reply object with which the thread has received last.
    pub caller: Option<usize>,
    /// Threads that wait to send to the endpoint that the thread serves, by priority and arrival.
    pub senders: Vec<usize>,
}

/// The facts about all threads, by address.
pub type World = BTreeMap<usize, Facts>;

/// Reads from the threads' states alone which threads wait for which.
pub fn world(k: &mut Kernel<Host>, inventory: &Inventory) -> World {
    let mut world = World::new();
    for thread in &inventory.threads {
        let binding = &k.get(*thread).bindings[Binding::Scheduling as usize].cap;
        let is_bound =
            binding.kind == Kind::SchedulingContext && binding.flags & tench_kernel::slot::flag::EMBEDDED != 0;
        let context = is_bound.then_some(binding.object);
        let priority = context.map_or(-1, |address| {
            // SAFETY: a thread's binding names a live scheduling context.
            let c = unsafe { Ref::<SchedulingContext>::at(address) }.map(|context| k.get(context));
            c.map_or(-1, |c| if c.is_used_up { -1 } else { i16::from(c.priority) })
        });
        let t = k.get(*thread);
        let facts = Facts {
            own: Standing { context, priority, height: 0 },
            cap: t.cap,
            is_urgent: t.blockers & blocker::URGENT != 0,
            is_suspended: t.account_suspended,
            depth: t.depth,
            is_helpless: t.blockers & blocker::FAULT_REPORTED == blocker::FAULT_REPORTED
                || t.blockers & blocker::HELPLESS != 0,
            caller: None,
            senders: Vec::new(),
        };
        world.insert(thread.address(), facts);
    }
    let mut senders: Vec<(u64, usize, usize)> = Vec::new();
    for thread in &inventory.threads {
        let t = k.get(*thread);
        match t.state {
            ThreadState::AwaitingReply(reply) => {
                let current = |other: &&Ref<Thread>| {
                    let t = k.get(**other);
                    t.other_reply.or(t.bound_reply) == Some(reply) && !t.deferred
                };
                let server = inventory.threads.iter().find(current);
                if let Some(server) = server.and_then(|server| world.get_mut(&server.address())) {
                    server.caller = Some(thread.address());
                }
            }
            ThreadState::Sending(endpoint) => {
                let key = t.sending.key;
                let serves = inventory.threads.iter().find(|other| k.get(**other).served == Some(endpoint));
                senders.extend(serves.map(|server| (key, server.address(), thread.address())));
            }
            _ => {}
        }
    }
    senders.sort_unstable();
    for (_, server, sender) in senders {
        world.entry(server).and_modify(|facts| facts.senders.push(sender));
    }
    world
}

/// Returns what each thread runs on, computed from nothing: at first no thread runs on anything, then each looks at the
/// threads that wait for it, until nothing changes.
pub fn from_scratch(world: &World) -> BTreeMap<usize, Standing> {
    let nothing = Standing { context: None, priority: -1, height: 0 };
    let mut standings: BTreeMap<usize, Standing> = world.keys().map(|thread| (*thread, nothing)).collect();
    for _ in 0..2 * world.len() {
        let before = standings.clone();
        for (thread, facts) in world {
            standings.insert(*thread, best(world, &before, facts));
        }
        if standings == before {
            break;
        }
    }
    standings
}

/// Returns what one thread runs on, given what the threads that wait for it run on.
fn best(world: &World, standings: &BTreeMap<usize, Standing>, facts: &Facts) -> Standing {
    let offer = |waiter: &usize| {
        let standing = standings[waiter];
        let can = !world[waiter].is_suspended && standing.context.is_some();
        can.then_some(standing)
    };
    let own = |cap: i16| Standing { priority: facts.own.priority.min(cap), ..facts.own };
    let caller = facts.caller.filter(|caller| !world[caller].is_helpless);
    let mut best = caller.as_ref().and_then(offer).unwrap_or(own(facts.cap));
    let urgent = facts.is_urgent.then(|| own(UNCAPPED));
    let first = facts.senders.first().filter(|sender| !world[*sender].is_helpless).and_then(offer);
    for other in urgent.into_iter().chain(first) {
        if other.priority > best.priority {
            best = other;
        }
    }
    if facts.is_suspended {
        best.priority = -1;
    }
    let by_sender = |sender: &usize| match standings[sender].height {
        0 => 1,
        1 => 2,
        2 if facts.depth > 0 => 3,
        _ => MAX_HEIGHT,
    };
    let by_senders = facts.senders.iter().filter(|sender| !world[*sender].is_helpless).map(by_sender).max();
    let by_caller = caller.map(|caller| standings[&caller].height.saturating_add(1));
    best.height = by_senders.max(by_caller).unwrap_or(0);
    best
}

/// Checks every thread.
pub fn check_helping(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    for endpoint in inventory.of::<Endpoint>(Kind::Endpoint) {
        check_helpers(k, endpoint, inventory)?;
        if let Some(server) = queue::server(k, endpoint) {
            ensure!(inventory.threads.contains(&server), "{endpoint:?} is served by {server:?}, which does not live");
            let served = k.get(server).served;
            ensure!(served == Some(endpoint), "{endpoint:?} is served by {server:?}, which serves {served:?}");
        }
    }
    let world = world(k, inventory);
    let expected = from_scratch(&world);
    let mut running = BTreeMap::new();
    for thread in &inventory.threads {
        let facts = &world[&thread.address()];
        check_thread(k, *thread, facts, expected[&thread.address()])
            .map_err(|wrong| format!("{thread:?}: {wrong}; {facts:x?}"))?;
        for sender in facts.senders.iter().filter(|sender| !world[*sender].is_helpless) {
            let (height, above) = (expected[sender].height, expected[&thread.address()].height);
            ensure!(height < above, "{thread:?} of height {above} is helped by a sender of height {height}");
            let depth = facts.depth;
            ensure!(
                height + depth < MAX_HEIGHT,
                "{thread:?} of depth {depth} is helped by a sender of height {height}"
            );
        }
        let t = k.get(*thread);
        if let (ThreadState::Ready, Some(context)) = (t.state, t.scheduling) {
            let other = running.insert(context.address(), *thread);
            ensure!(other.is_none(), "{thread:?} and {other:?} both run on {context:?}");
        }
    }
    check_contexts(k, inventory)
}

/// Checks the counts of the senders at an endpoint that help.
fn check_helpers(k: &mut Kernel<Host>, endpoint: Ref<Endpoint>, inventory: &Inventory) -> Checked {
    let mut helpers = [0; 3];
    for thread in &inventory.threads {
        if k.get(*thread).state == ThreadState::Sending(endpoint) && can_help(k, *thread) {
            helpers[usize::from(k.get(*thread).height.min(2))] += 1;
        }
    }
    let known = k.get(endpoint).helpers;
    ensure!(known == helpers, "{endpoint:?} counts {known:?} helpers, and has {helpers:?}");
    Ok(())
}

/// Checks one thread.
fn check_thread(k: &mut Kernel<Host>, thread: Ref<Thread>, facts: &Facts, expected: Standing) -> Checked {
    let t = k.get(thread);
    let (flags, cap, served, fast_reply) = (t.blockers, t.cap, t.served, t.fast_reply);
    let (base, spare, state) = (t.base, t.spare, t.state);
    let found = Standing { context: t.scheduling.map(Ref::address), priority: t.priority, height: t.height };
    ensure!(found == expected, "it runs on {found:x?}, should run on {expected:x?}");
    ensure!((spare, base.spare, base.height) == (0, 0, 0), "what is always 0 is not");
    let own = base.context.map(Ref::address);
    ensure!((own, base.priority) == (facts.own.context, facts.own.priority), "base {base:?}");
    ensure!((flags & blocker::CAPPED != 0) == (cap != UNCAPPED), "cap {cap}, flags {flags:#x}");
    let fast = matches!(state, ThreadState::Receiving(_)) && fast_reply.is_some();
    ensure!(!fast || flags & !blocker::OF_BUDGET == 0, "a fast call would make it forget flags {flags:#x}");
    ensure!(
        flags & blocker::ALARM == 0 || flags & blocker::DEADLINE != 0,
        "it has an alarm without a time, flags {flags:#x}"
    );
    ensure!(served.is_some() || facts.depth == 0, "it serves nothing, with depth {}", facts.depth);
    let is_waited_for = !facts.senders.is_empty();
    let waits = matches!(state, ThreadState::Sending(_) | ThreadState::AwaitingReply(_));
    ensure!(flags & blocker::HELPLESS == 0 || waits, "it waits without helping, and is {state:?}");
    ensure!(found.height <= MAX_HEIGHT, "too many threads wait for each other");
    let is_sender = matches!(state, ThreadState::Sending(_));
    ensure!(!is_sender || facts.is_helpless || found.height < MAX_HEIGHT, "a sender is too high to help");
    ensure!((flags & blocker::HELPED != 0) == is_waited_for, "flags {flags:#x}, senders: {is_waited_for}");
    if let Some(endpoint) = served {
        ensure!(queue::server(k, endpoint) == Some(thread), "it serves {endpoint:?}, which is another's");
    }
    Ok(())
}

/// Checks that contexts and their owners name each other, and that both live.
fn check_contexts(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    for context in inventory.of::<SchedulingContext>(Kind::SchedulingContext) {
        let c = k.get(context);
        let (owner, is_limited, is_used_up, refill) = (c.owner, c.budget.is_limited(), c.is_used_up, c.refill);
        if let Some(owner) = owner {
            ensure!(inventory.threads.contains(&owner), "{context:?} is {owner:?}'s, which does not live");
            let base = k.get(owner).base;
            ensure!(base.context == Some(context), "{context:?} is {owner:?}'s, which has {base:?}");
            ensure!(
                (base.blockers == blocker::BUDGETED) == is_limited,
                "{context:?} is limited: {is_limited}, but {base:?}"
            );
        }
        ensure!(!is_used_up || is_limited, "{context:?} is used up, and has no limit");
        ensure!(is_used_up == refill.is_queued(), "{context:?} is used up: {is_used_up}; it waits: {refill:?}");
    }
    for thread in &inventory.threads {
        let Base { context, .. } = k.get(*thread).base;
        if let Some(context) = context {
            let lives =
                inventory.objects.get(&context.address()).is_some_and(|cap| cap.kind == Kind::SchedulingContext);
            ensure!(lives, "{thread:?} has {context:?} for its own, which does not live");
            ensure!(
                k.get(context).owner == Some(*thread),
                "{thread:?} has {context:?} for its own, which is another's"
            );
        }
        if let Some(context) = k.get(*thread).scheduling {
            let lives =
                inventory.objects.get(&context.address()).is_some_and(|cap| cap.kind == Kind::SchedulingContext);
            ensure!(lives, "{thread:?} runs on {context:?}, which does not live");
        }
    }
    Ok(())
}
