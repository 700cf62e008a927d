//! Takes one entry into the kernel twice from the same state, once with the fast path and once without, and compares
//! the whole states.
//!
//! Everything is compared word by word: RAM with all objects, queues, capabilities and IPC buffers; the kernel's state;
//! the machine's registers; the doorbells notified. The two paths may differ only in what [`settle`] makes equal, and
//! in the kernel's statistics, which nothing depends on.

use std::mem::offset_of;

use tench_abi::fault::Class;
use tench_arch_host::Machine;
use tench_arch_host::image::{Difference, Image, Regions};
use tench_kernel::endpoint::Endpoint;
use tench_kernel::kernel::State;
use tench_kernel::object::Ref;
use tench_kernel::scheduling_context::SchedulingContext;
use tench_kernel::slot::flag;
use tench_kernel::thread::{Binding, Purpose, Thread, ThreadState, blocker};
use tench_kernel::{float, scheduler, timers};

use super::world::World;

/// The thread that enters the kernel, as it was before.
struct Entry {
    thread: Ref<Thread>,
    context: Option<Ref<SchedulingContext>>,
    uses_float: bool,
    /// All threads that use the floating-point unit.
    users_of_float: Vec<Ref<Thread>>,
}

impl Entry {
    fn now(world: &mut World) -> Entry {
        let m = &mut world.machine;
        let uses_float = |m: &mut Machine, thread| m.thread(thread).blockers & blocker::FLOAT != 0;
        let users = world.actors.iter().map(|actor| actor.thread).filter(|thread| uses_float(m, *thread)).collect();
        let thread = m.current();
        let context = m.thread(thread).scheduling;
        Entry { thread, context, uses_float: uses_float(m, thread), users_of_float: users }
    }
}

/// The images that a comparison needs.
pub struct Twin {
    regions: Regions,
    before: Image,
    slow: Image,
    kept: Image,
}

impl Twin {
    pub fn new(world: &mut World) -> Twin {
        let (regions, before) = world.machine.save_all();
        Twin { regions, before, slow: Image::default(), kept: Image::default() }
    }

    /// Lets the running thread enter the kernel on both paths, and continues with the state that the fast path leaves,
    /// or the slow one. Panics if the two differ.
    pub fn enter(&mut self, world: &mut World, keep_fast: bool, what: &str, act: impl Fn(&mut Machine)) {
        forget_idle(world);
        let entry = Entry::now(world);
        let m = &mut world.machine;
        assert!(!m.host().interrupted(), "{what}: an interrupt is pending");
        assert!(!scheduler::should_switch(m.kernel()), "{what}: another thread should run");
        m.save(&self.regions, &mut self.before);
        m.fast = false;
        act(m);
        check_float(m);
        let notified = m.host().notified.clone();
        if !keep_fast {
            m.save(&self.regions, &mut self.kept);
        }
        // The report that a budget is used up comes while the thread is left, when it has just kept FLOAT as one that
        // is preempted.
        let reports = m.thread(entry.thread).blockers & blocker::REPORTED != 0;
        assert!(reports || !left_float(m, &entry), "the slow path leaves FLOAT to a thread that waits");
        settle(world, &entry);
        let m = &mut world.machine;
        m.save(&self.regions, &mut self.slow);
        m.restore_all(&self.regions, &self.before);
        m.fast = true;
        act(m);
        check_float(m);
        assert_eq!(m.host().notified, notified, "{what}: doorbells");
        if keep_fast {
            m.save(&self.regions, &mut self.kept);
        }
        settle(world, &entry);
        let m = &mut world.machine;
        let differences = m.differences(&self.regions, &self.slow);
        let ignored = without_meaning(world);
        let differences = differences.iter().filter(|difference| !ignored.contains(&difference.address));
        let text: Vec<String> = differences.map(|difference| describe(world, difference)).collect();
        assert!(text.is_empty(), "{what}, by {:?}: slow and fast path differ:\n{}", entry.thread, text.join("\n"));
        let m = &mut world.machine;
        assert!(m.has_registers_of(&self.slow), "{what}: the machine's registers differ");
        m.restore_all(&self.regions, &self.kept);
        m.check();
    }
}

/// Forgets the idle thread's suspended entry, which no image can contain; the thread enters anew when it runs next.
fn forget_idle(world: &mut World) {
    let m = &mut world.machine;
    for actor in &world.actors {
        assert_eq!(m.thread(actor.thread).kernel_stack_pointer, 0, "only the idle thread is suspended in the kernel");
    }
    m.forget_suspended();
    let idle = m.kernel().state().idle;
    m.thread(idle).kernel_stack_pointer = 0;
}

/// Raises a fault of the running thread. Without the fast path, the kernel must not take it either:
/// `CALLABLE` is the flag of the fault binding by which only the fast path decides.
pub fn fault(m: &mut Machine, class: Class, report: tench_abi::fault::Report) {
    let thread = m.current();
    let binding = Binding::fault(class) as usize;
    let flags = m.thread(thread).bindings[binding].cap.flags;
    if !m.fast {
        m.thread(thread).bindings[binding].cap.flags &= !flag::CALLABLE;
    }
    m.fault(report);
    m.thread(thread).bindings[binding].cap.flags = flags;
}

/// Panics unless the floating-point unit is on exactly while a thread runs that has `FLOAT`, and then holds that
/// thread's registers.
fn check_float(m: &mut Machine) {
    let current = m.current();
    let uses = m.thread(current).blockers & blocker::FLOAT != 0;
    let is_on = m.host().float().is_some();
    assert_eq!(is_on, uses, "the unit is on, and the running thread uses it");
    let owner = m.kernel().state().float_owner;
    assert!(!is_on || owner == Some(current), "the unit is on with registers of {owner:?}");
}

/// Returns whether the thread that entered waits for a message or reply, and still has `FLOAT`.
fn left_float(m: &mut Machine, entry: &Entry) -> bool {
    let t = m.thread(entry.thread);
    let waits = matches!(t.state, ThreadState::AwaitingReply(_) | ThreadState::Receiving(_));
    entry.uses_float && waits && t.blockers & blocker::FLOAT != 0
}

/// Makes equal what may differ:
///
/// - The hardware timer may be set to a time before which nothing is due any more: then its interrupt does nothing. It
///   must not be set to a later time than the first that is due.
/// - The fast path switches threads without charging time, because both run on the same scheduling context. So time is
///   charged now; then every context must have been charged the same.
/// - `FLOAT` of the thread that entered, if it had the bit and now waits for a reply or a message. The fast path lets
///   such threads keep it, so that a conversation of calls does not trap again. A receiver with the bit has no
///   `fast_reply`, whose path does not look at the bit; the receiver's wait is the same otherwise. Nobody else's bit
///   may differ.
/// - Fields without a meaning: what a sender's message was sent with once it is no longer queued, which the fast path
///   never writes, and the reply objects of a receive that is over. (The tail of an endpoint's empty queue is one, too,
///   and left out of the comparison.)
fn settle(world: &mut World, entry: &Entry) {
    let m = &mut world.machine;
    scheduler::charge(m.kernel());
    let timer = m.host().timer;
    timers::program(m.kernel());
    let due = m.host().timer;
    assert!(timer.unwrap_or(u64::MAX) <= due.unwrap_or(u64::MAX), "the timer fires at {timer:?}, too late for {due:?}");
    settle_slices(m, entry);
    // The fast path exchanges the registers of the unit at once; after the slow path, the thread's next use of the unit
    // does.
    let current = m.current();
    if entry.users_of_float.contains(&current) && m.thread(current).blockers & blocker::FLOAT == 0 {
        float::trap(m.kernel());
    }
    if left_float(m, entry) {
        let t = m.thread(entry.thread);
        t.blockers &= !blocker::FLOAT;
        if matches!(t.state, ThreadState::Receiving(_)) {
            assert!(t.fast_reply.is_none(), "calls to a user of the unit take the path of `fast_reply`");
            let others = t.blockers & !blocker::BUDGETED;
            assert!(others == 0 && !t.deferred, "FLOAT stays although there are other reasons for the slow path");
            t.fast_reply = t.receive_reply;
        }
    }
    for actor in &world.actors {
        let t = m.thread(actor.thread);
        if !matches!(t.state, ThreadState::Sending(_)) {
            (t.badge, t.may_grant, t.purpose) = (0, false, Purpose::Send);
        }
        if !matches!(t.state, ThreadState::Receiving(_)) {
            (t.fast_reply, t.receive_reply) = (None, None);
        }
    }
}

/// Returns the addresses of words that mean nothing: the tails of empty queues, and the partners of threads that
/// wait for nothing.
fn without_meaning(world: &mut World) -> Vec<usize> {
    let objects = world.objects.endpoints.map(|endpoint| world.machine.cap(endpoint).object);
    let threads: Vec<Ref<Thread>> = world.actors.iter().map(|actor| actor.thread).collect();
    let mut found = Vec::new();
    for thread in threads {
        let state = world.machine.thread(thread).state;
        if matches!(state, ThreadState::Ready | ThreadState::Suspended | ThreadState::Faulted) {
            found.push(thread.address() + PARTNER);
        }
    }
    let memory = &world.machine.host().memory;
    let head = |object: &usize| memory.read((object + offset_of!(Endpoint, head) - memory.base()) as u64);
    found.extend(objects.iter().filter(|object| head(object) == 0).map(|object| object + offset_of!(Endpoint, tail)));
    found
}

/// Offset in a thread of the object for which it waits, behind the tag of its state.
const PARTNER: usize = offset_of!(Thread, state) + size_of::<u64>();

/// Makes equal what may differ about time slices. A slice matters while an equal of the running thread is ready. If the
/// next thread runs on the same scheduling context, the fast path leaves its slice timed as it is; the slow path begins
/// to time the rest anew, or stops without equals. The slow path also begins a slice of a server when it makes the
/// caller ready, just before the server waits.
fn settle_slices(m: &mut Machine, entry: &Entry) {
    let current = m.current();
    let (priority, context) = (m.thread(current).priority, m.thread(current).scheduling);
    let k = m.kernel();
    if context == entry.context || priority < 0 || k.state().ready[priority as usize].head.is_none() {
        k.state().slice_end = 0;
        k.get(current).slice_left = 0;
        timers::program(k);
    }
    if !matches!(k.get(entry.thread).state, ThreadState::Ready) {
        k.get(entry.thread).slice_left = 0;
    }
}

/// Fields of a thread by their offsets.
const THREAD: [(usize, &str); 22] = [
    (offset_of!(Thread, registers), "register"),
    (offset_of!(Thread, space_register), "space_register"),
    (offset_of!(Thread, full_restore), "full_restore"),
    (offset_of!(Thread, kernel_stack_pointer), "kernel_stack_pointer"),
    (offset_of!(Thread, fast_reply), "fast_reply"),
    (offset_of!(Thread, receive_reply), "receive_reply"),
    (offset_of!(Thread, bound_reply), "bound_reply"),
    (offset_of!(Thread, priority), "priority, height, blockers"),
    (offset_of!(Thread, scheduling), "scheduling"),
    (offset_of!(Thread, base), "base"),
    (offset_of!(Thread, state), "state"),
    (offset_of!(Thread, next), "next"),
    (offset_of!(Thread, previous), "previous"),
    (offset_of!(Thread, badge), "badge"),
    (offset_of!(Thread, may_grant), "may_grant to cap"),
    (offset_of!(Thread, slice_left), "slice_left"),
    (offset_of!(Thread, fault), "fault"),
    (offset_of!(Thread, timer), "timer"),
    (offset_of!(Thread, sending), "sending"),
    (offset_of!(Thread, other_reply), "other_reply"),
    (offset_of!(Thread, membership), "membership"),
    (offset_of!(Thread, served), "served"),
];

/// Fields of the kernel's state by their offsets.
const STATE: [(usize, &str); 9] = [
    (offset_of!(State<tench_arch_host::Host>, current), "current"),
    (offset_of!(State<tench_arch_host::Host>, highest_ready), "highest_ready, reschedule"),
    (offset_of!(State<tench_arch_host::Host>, slice_end), "slice_end"),
    (offset_of!(State<tench_arch_host::Host>, budget_end), "budget_end"),
    (offset_of!(State<tench_arch_host::Host>, charged_until), "charged_until"),
    (offset_of!(State<tench_arch_host::Host>, ready), "ready"),
    (offset_of!(State<tench_arch_host::Host>, timers), "timers"),
    (offset_of!(State<tench_arch_host::Host>, derivation), "derivation"),
    (offset_of!(State<tench_arch_host::Host>, float_owner), "float_owner"),
];

/// Returns the name of the last field that begins at or before an offset.
fn field(fields: &[(usize, &str)], offset: usize) -> String {
    let found = fields.iter().filter(|(start, _)| *start <= offset).max_by_key(|(start, _)| *start);
    found.map_or(String::new(), |(start, name)| format!("{name} + {}", offset - start))
}

/// Returns a difference as text.
fn describe(world: &mut World, difference: &Difference) -> String {
    let Difference { address, image, machine } = *difference;
    let m = &mut world.machine;
    let state = std::ptr::from_mut(m.kernel().state()).addr();
    let within = |start: usize, size: usize| address.checked_sub(start).filter(|offset| *offset < size);
    let place = if let Some(offset) = within(state, size_of::<State<tench_arch_host::Host>>()) {
        format!("kernel: {}", field(&STATE, offset))
    } else {
        let mut of_thread = world.actors.iter().enumerate().filter_map(|(i, actor)| {
            let offset = within(actor.thread.address(), size_of::<Thread>())?;
            Some(format!("thread {i}: {}", field(&THREAD, offset)))
        });
        of_thread.next().unwrap_or_else(|| format!("physical {:#x}", address - m.host().memory.base()))
    };
    format!("  {place}: slow {image:#x}, fast {machine:#x}")
}
