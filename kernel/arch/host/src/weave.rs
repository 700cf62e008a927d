//! Weaves: operations of several threads, interleaved at preemption points. The test's policy decides at every
//! preemption point and after every call which thread continues.
//!
//! ```text
//!   A  ──call──┐point             ┌──point───┐                    ┌─end
//!   B          └─call──┐point     │          └─call goes on──end──┘
//!              decision└──────────┘decision                 decision
//! ```
//! The threads have the priority of the first thread, the *driver*, which stands first in the ready queue and runs as
//! soon as none of them is to continue. Decisions are carried out through the scheduler's own queues, so the switches
//! are those that an interrupt would cause.
//!
//! [`Orders`] enumerates all sequences of decisions. Each is played from the start, on a new machine or on one restored
//! from an [image](crate::image), because a thread in the kernel cannot go back.

use std::cell::RefCell;
use std::rc::Rc;

use tench_abi::{Kind, Operation};
use tench_kernel::object::Ref;
use tench_kernel::slot::flag;
use tench_kernel::thread::{THREAD_OFFSET, Thread, ThreadState};
use tench_kernel::{Kernel, SlotRef, scheduler};

use crate::check;
use crate::host::Host;
use crate::machine::{Machine, ResultRegisters};

/// A system call that a thread is to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// Arguments: `x0`, `x1` and so on.
    pub arguments: Vec<u64>,
}

impl Call {
    /// Returns a call of an operation.
    pub fn new(operation: Operation, arguments: &[u64]) -> Call {
        Call { operation, arguments: arguments.to_vec() }
    }
}

/// A function that decides which thread continues. Returns one of these actors (never none); the one that ran stands
/// first if it can continue. `None` ends the run.
pub type Policy = Box<dyn FnMut(&Moment<'_>) -> Option<usize>>;

/// The input of a decision.
pub struct Moment<'m> {
    /// Actors that can continue. The running one comes first.
    pub candidates: &'m [usize],
    /// The actor at a preemption point, and how many of them it has passed in its calls so far, including this one.
    pub point: Option<(usize, usize)>,
}

/// A thread and the calls that it is to make.
struct Actor {
    thread: Ref<Thread>,
    calls: std::vec::IntoIter<Call>,
    results: Vec<ResultRegisters>,
    /// Set while a call that it has made has not ended.
    calling: bool,
    points: usize,
    /// Set after it was switched away from at a preemption point, until it continues.
    was_away: bool,
}

impl Actor {
    fn has_work(&self) -> bool {
        self.calling || self.calls.len() > 0
    }
}

/// The state that the driver and the preemption points share.
struct Shared {
    driver: Ref<Thread>,
    actors: Vec<Actor>,
    policy: Policy,
    /// The actor that was chosen at a preemption point and is about to make a call.
    next: Option<usize>,
    /// Decisions made, with what led to them, for messages.
    trace: Vec<String>,
    /// Number of decisions after which the state is checked at preemption points.
    check_from: usize,
    decisions: usize,
    /// Event that runs at each preemption point, before the decision.
    event: Option<Event>,
}

/// An event at a preemption point.
pub type Event = Box<dyn FnMut(&mut Kernel<Host>, (usize, usize))>;

/// Threads and their calls, on a machine whose first thread drives.
pub struct Weave {
    /// The machine. The first thread runs before and after [`run`](Self::run).
    pub machine: Machine,
    shared: Rc<RefCell<Shared>>,
}

/// The way in which an actor's call ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The call returned, with these registers.
    Returned(ResultRegisters),
    /// The call never ended: the thread was deleted, stopped, or is never to continue.
    Never,
}

impl Weave {
    /// Returns a weave in which these threads, which are ready, make these calls.
    pub fn new(mut machine: Machine, actors: Vec<(Ref<Thread>, Vec<Call>)>) -> Weave {
        let new = |(thread, calls): (Ref<Thread>, Vec<Call>)| Actor {
            thread,
            calls: calls.into_iter(),
            results: Vec::new(),
            calling: false,
            points: 0,
            was_away: false,
        };
        let shared = Shared {
            driver: machine.first,
            actors: actors.into_iter().map(new).collect(),
            policy: Box::new(|_| None),
            next: None,
            trace: Vec::new(),
            check_from: 0,
            decisions: 0,
            event: None,
        };
        let shared = Rc::new(RefCell::new(shared));
        let at_points = shared.clone();
        machine.host().hook = Some(Box::new(move |k| at_points.borrow_mut().point(k)));
        Weave { machine, shared }
    }

    /// Sets an event that runs at each preemption point, before the decision. It is passed the actor and the number of
    /// that actor's preemption point.
    pub fn at_preemption_points(&mut self, event: Event) {
        self.shared.borrow_mut().event = Some(event);
    }

    /// Checks the state at preemption points and between calls only from this decision on. Earlier states were checked
    /// when another sequence began with the same decisions.
    pub fn check_from(&mut self, decision: usize) {
        self.shared.borrow_mut().check_from = decision;
    }

    /// Runs until no actor can continue or the policy ends the run. The first thread runs afterwards.
    pub fn run(&mut self, policy: Policy) {
        self.shared.borrow_mut().policy = policy;
        while let Some(actor) = self.next() {
            let thread = self.shared.borrow().actors[actor].thread;
            if self.machine.current() != thread {
                self.let_run(thread);
            }
            // The thread may have continued in the kernel, and any thread may run now.
            if self.machine.current() == thread && !self.shared.borrow().actors[actor].calling {
                self.call(actor);
            }
        }
        let driver = self.machine.first;
        if self.machine.current() != driver {
            self.let_run(driver);
        }
        self.machine.host().hook = None;
    }

    /// Returns the actor that continues in user mode.
    fn next(&mut self) -> Option<usize> {
        let k = self.machine.kernel();
        let mut shared = self.shared.borrow_mut();
        shared.collect(k);
        let current = k.current();
        match shared.next.take() {
            Some(next) if shared.actors[next].thread == current && !shared.actors[next].calling => Some(next),
            _ => {
                shared.check(k);
                let running = shared.actors.iter().position(|actor| actor.thread == current);
                shared.decide(k, running, None)
            }
        }
    }

    /// Makes the kernel switch to a thread, wherever that thread is.
    fn let_run(&mut self, thread: Ref<Thread>) {
        let shared = self.shared.clone();
        self.machine.enter(move |k| {
            shared.borrow().arrange(k, thread);
            k.state().reschedule = true;
            scheduler::leave(k)
        });
    }

    /// Makes the next call of an actor, which is the running thread.
    fn call(&mut self, actor: usize) {
        let call = {
            let mut shared = self.shared.borrow_mut();
            let driver = shared.driver;
            shared.arrange(self.machine.kernel(), driver);
            let actor = &mut shared.actors[actor];
            actor.calling = true;
            // The actor may have been away in a call that was forgotten.
            actor.was_away = false;
            actor.calls.next().unwrap_or_else(|| panic!("an actor without work was chosen"))
        };
        self.machine.call(call.operation, &call.arguments);
    }

    /// Returns how each actor's calls ended.
    pub fn ends(&self) -> Vec<Vec<End>> {
        let ends = |actor: &Actor| {
            let mut ends: Vec<End> = actor.results.iter().map(|result| End::Returned(*result)).collect();
            if actor.has_work() {
                ends.push(End::Never);
            }
            ends
        };
        self.shared.borrow().actors.iter().map(ends).collect()
    }

    /// Returns how many preemption points each actor has passed.
    pub fn points(&self) -> Vec<usize> {
        self.shared.borrow().actors.iter().map(|actor| actor.points).collect()
    }

    /// Returns the decisions, in order, as text.
    pub fn trace(&self) -> String {
        self.shared.borrow().trace.join(" ")
    }
}

impl Shared {
    /// Handles a preemption point of the running thread.
    fn point(&mut self, k: &mut Kernel<Host>) {
        let current = k.current();
        let Some(me) = self.actors.iter().position(|actor| actor.thread == current) else { return };
        self.check(k);
        // A thread that continues after a switch lets interrupts in once more before it has looked at anything.
        // Whatever happens there could have happened while it was away, so that is the same preemption point.
        if k.state().nesting != 0 || core::mem::take(&mut self.actors[me].was_away) {
            return;
        }
        self.actors[me].points += 1;
        let point = (me, self.actors[me].points);
        if let Some(event) = &mut self.event {
            event(k, point);
        }
        let next = self.decide(k, Some(me), Some(point));
        if next == Some(me) {
            return;
        }
        let to = next.map_or(self.driver, |next| self.actors[next].thread);
        self.arrange(k, to);
        k.state().reschedule = true;
        self.actors[me].was_away = true;
        self.next = next.filter(|next| !self.actors[*next].calling);
    }

    fn check(&self, k: &mut Kernel<Host>) {
        if self.decisions >= self.check_from
            && let Err(wrong) = check::check(k)
        {
            panic!("the kernel's state is inconsistent: {wrong}");
        }
    }

    /// Collects the results of calls that have ended.
    fn collect(&mut self, k: &mut Kernel<Host>) {
        for actor in &mut self.actors {
            if actor.calling && is_alive(k, actor.thread) {
                let t = k.get(actor.thread);
                let waits = !matches!(t.state, ThreadState::Ready | ThreadState::Suspended);
                if t.kernel_stack_pointer == 0 && !waits {
                    let mut result = ResultRegisters { x: [0; 11] };
                    result.x.copy_from_slice(&t.registers.x[..11]);
                    actor.results.push(result);
                    actor.calling = false;
                }
            }
        }
    }

    /// Returns the actor that continues, if any can. With one candidate there is no decision.
    fn decide(&mut self, k: &mut Kernel<Host>, running: Option<usize>, point: Option<(usize, usize)>) -> Option<usize> {
        let order = running.into_iter().chain((0..self.actors.len()).filter(|i| Some(*i) != running));
        let mut candidates: Vec<usize> = order.collect();
        candidates.retain(|i| {
            let actor = &self.actors[*i];
            actor.has_work() && is_alive(k, actor.thread) && scheduler::runnable(k, actor.thread)
        });
        if candidates.is_empty() {
            return None;
        }
        let next = (self.policy)(&Moment { candidates: &candidates, point });
        if candidates.len() > 1 {
            self.decisions += 1;
        }
        if let Some(next) = next {
            self.trace.push(match point {
                Some((me, at)) => format!("{}{at}→{}", name(me), name(next)),
                None => format!("→{}", name(next)),
            });
        }
        next
    }

    /// Puts a thread that is in the ready queue first, before the driver and all others.
    fn arrange(&self, k: &mut Kernel<Host>, first: Ref<Thread>) {
        let priority = usize::from(k.get(self.driver).priority as u8);
        let mut order = Vec::new();
        while let Some(thread) = k.state().ready[priority].head {
            scheduler::dequeue(k, thread);
            order.push(thread);
        }
        order.sort_by_key(|thread| (*thread != first, *thread != self.driver));
        for thread in order {
            scheduler::enqueue(k, thread);
        }
    }
}

/// Returns an actor's name in messages.
fn name(actor: usize) -> char {
    char::from(b'A' + actor as u8)
}

/// Returns true if a thread exists: if there is a capability to it that is not about to be deleted.
pub fn is_alive(k: &mut Kernel<Host>, thread: Ref<Thread>) -> bool {
    if thread == k.state().idle {
        return true;
    }
    let object = thread.address() - THREAD_OFFSET;
    let mut at = SlotRef::new(k.state().derivation_tail);
    while let Some(slot) = at {
        let s = k.slot(slot);
        if s.cap.object == object && s.cap.kind == Kind::Thread {
            return s.cap.flags & flag::ZOMBIE == 0;
        }
        if s.cap.object < object {
            return false;
        }
        at = SlotRef::new(s.links.previous);
    }
    false
}

/// All sequences of decisions, in depth-first order.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// For each decision, the index of the chosen candidate and the number of candidates.
    path: Vec<(usize, usize)>,
    /// The first decision that differs from the previous sequence's.
    changed: usize,
}

impl Orders {
    /// Returns the first decision at which this sequence differs from the previous one.
    pub fn changed(&self) -> usize {
        self.changed
    }

    /// Returns the index of the chosen candidate for each decision.
    pub fn choices(&self) -> Vec<usize> {
        self.path.iter().map(|(chosen, _)| *chosen).collect()
    }

    /// Plays this sequence on a weave; decisions beyond its end choose the first candidate. Returns the decisions made.
    pub fn play(self, weave: &mut Weave) -> Orders {
        let path = Rc::new(RefCell::new((self.path, 0)));
        let choose = path.clone();
        weave.check_from(self.changed);
        weave.run(Box::new(move |moment| {
            let count = moment.candidates.len();
            if count == 1 {
                return Some(moment.candidates[0]);
            }
            let (path, at) = &mut *choose.borrow_mut();
            if *at == path.len() {
                path.push((0, count));
            }
            assert_eq!(path[*at].1, count, "the same decisions lead to the same candidates");
            *at += 1;
            Some(moment.candidates[path[*at - 1].0])
        }));
        let (path, at) = path.take();
        assert_eq!(at, path.len(), "all decisions came up again");
        Orders { path, changed: self.changed }
    }

    /// Returns the next sequence, or `None` if this was the last.
    pub fn next(mut self) -> Option<Orders> {
        while let Some((chosen, count)) = self.path.pop() {
            if chosen + 1 < count {
                self.path.push((chosen + 1, count));
                return Some(Orders { changed: self.path.len() - 1, path: self.path });
            }
        }
        None
    }
}
