//! Random calls, answers, ends of waits and changes of priorities among six threads, against what is worked out from scratch
//! after each.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tench_abi::layout::UNBIND;
use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::check::Inventory;
use tench_arch_host::check_inherit::waiting_for;
use tench_kernel::thread::ThreadState;
use tench_kernel::{Ref, scheduler, scheduling, thread::Thread};

use crate::actors::{Actor, Stage};

/// What a thread gives, has and waits for, and what it would inherit if everything were worked out from scratch.
#[derive(Clone, Debug, Default)]
struct Seen {
    own: i32,
    inherited: i32,
    gives: i32,
    waiting: BTreeSet<usize>,
    exact: i32,
    exactly_gives: i32,
}

/// Six threads.
struct Play {
    stage: Stage,
    actors: Vec<Actor>,
    /// Reply objects that are bound to nobody.
    aside: [u64; 2],
    /// Threads that have inherited more than they would from scratch.
    stale: BTreeSet<usize>,
    before: Vec<Seen>,
}

impl Play {
    fn new(fast: bool) -> Play {
        let mut stage = Stage::new();
        stage.machine.fast = fast;
        let endpoints: Vec<u64> = (0..3).map(|_| stage.make(Kind::Endpoint)).collect();
        let mut actors: Vec<Actor> = (1..=6).map(|n| stage.actor(10 * n)).collect();
        for (actor, endpoint) in actors.iter_mut().zip(endpoints.iter().cycle()) {
            actor.endpoint = *endpoint;
        }
        for actor in &actors[..3] {
            stage.serve(*actor, actor.endpoint);
        }
        let aside = [stage.make(Kind::Reply), stage.make(Kind::Reply)];
        let before = vec![Seen::default(); actors.len()];
        Play { stage, actors, aside, stale: BTreeSet::new(), before }
    }

    /// The number of a thread.
    fn number(&self, thread: Ref<Thread>) -> Option<usize> {
        self.actors.iter().position(|actor| actor.thread == thread)
    }

    /// Whether a thread can make a system call.
    fn runnable(&mut self, actor: Actor) -> bool {
        scheduler::runnable(&mut self.stage.machine.kernel(), actor.thread)
    }

    fn step(&mut self, (what, who, whom, amount): (u8, usize, usize, u64)) {
        let (actor, other) = (self.actors[who], self.actors[whom]);
        let mut x = [0; 13];
        (x[0], x[12]) = (other.endpoint, self.stage.machine.host().time + amount);
        let operation = match what {
            0..=3 => Operation::Call,
            4 => Operation::Send,
            5..=8 => Operation::ReplyReceive,
            9 | 10 => Operation::Receive,
            11 => Operation::TryReceive,
            12 | 13 => Operation::Reply,
            _ => return self.arrange(what, actor, other, amount),
        };
        if !self.runnable(actor) {
            return;
        }
        match operation {
            Operation::Reply => x[0] = if what == 12 { 0 } else { other.reply },
            Operation::Receive | Operation::ReplyReceive if amount % 4 == 0 => {
                (x[1], x[11]) = (Tag::REPLY, self.aside[(amount / 4 % 2) as usize]);
            }
            Operation::Call | Operation::Send if amount % 2 == 0 => x[1] = Tag::DEADLINE,
            _ => {}
        }
        self.stage.machine.run(actor.thread);
        self.stage.machine.system_call(operation as u64, &x);
    }

    /// What happens from outside.
    fn arrange(&mut self, what: u8, actor: Actor, other: Actor, amount: u64) {
        match what {
            14 | 15 => self.stage.machine.pass_time(amount),
            16 => self.stage.configure(actor, amount % 70),
            17 => self.stage.manage(Operation::ThreadSuspend, &[actor.capability]),
            18 | 19 => self.stage.manage(Operation::ThreadResume, &[actor.capability]),
            20 => self.stage.park(actor, true),
            21 | 22 => self.stage.park(actor, false),
            23 => self.stage.take_time(actor),
            24 | 25 => drop(self.stage.try_to(Operation::ThreadBind, &[actor.capability, actor.time, 0, 0])),
            26 => self.stage.manage(Operation::ThreadServe, &[actor.capability, 0]),
            27 => drop(self.stage.try_to(Operation::ThreadServe, &[actor.capability, other.endpoint])),
            28 => self.stage.manage(Operation::ThreadBind, &[actor.capability, 0, UNBIND, 0]),
            29 => drop(self.stage.try_to(Operation::ThreadBind, &[actor.capability, 0, actor.reply, 0])),
            _ => self.stage.cancel(actor),
        }
    }

    /// What there is to see now.
    fn look(&mut self) -> Vec<Seen> {
        let mut k = self.stage.machine.kernel();
        let inventory = Inventory::take(&mut k).expect("consistent");
        let mut seen = Vec::new();
        for actor in &self.actors {
            let own = scheduling::own_priority(&mut k, actor.thread);
            let waiting = waiting_for(&mut k, &inventory, actor.thread);
            let waiting = waiting.into_iter().filter_map(|thread| self.number(thread)).collect();
            let t = k.get(actor.thread);
            let (inherited, gives) = (t.inherited, t.inherited.max(t.priority));
            seen.push(Seen { own, inherited, gives, waiting, ..Seen::default() });
        }
        // The least that satisfies the rule: everybody begins with nothing inherited, and rises.
        loop {
            let mut changed = false;
            for i in 0..seen.len() {
                let t = self.stage.machine.thread(self.actors[i].thread);
                let runs = t.scheduling.is_some() && !t.parked;
                let most = seen[i].waiting.iter().map(|waiter| seen[*waiter].exactly_gives).max().unwrap_or(0);
                let exact = if most > seen[i].own { most } else { 0 };
                let gives = if runs { exact.max(seen[i].own) } else { exact };
                changed |= (exact, gives) != (seen[i].exact, seen[i].exactly_gives);
                (seen[i].exact, seen[i].exactly_gives) = (exact, gives);
            }
            if !changed {
                return seen;
            }
        }
    }

    /// Compares what the kernel has done with what follows from scratch.
    fn compare(&mut self) {
        let now = self.look();
        let mut stale = BTreeSet::new();
        for (i, seen) in now.iter().enumerate() {
            let old = &self.before[i];
            assert!(seen.inherited >= seen.exact, "thread {i} has too little: {seen:?}");
            // Nobody who waits gives so much, and it had not so much before.
            let gave = |waiter: &usize| now[*waiter].gives.max(self.before[*waiter].gives);
            let most = seen.waiting.iter().map(gave).max().unwrap_or(0);
            let has_lost = !old.waiting.is_subset(&seen.waiting);
            let allowed = if has_lost { most } else { most.max(old.inherited) };
            assert!(seen.inherited <= allowed, "thread {i} has too much: {seen:?}, before {old:?}");
            if seen.inherited > seen.exact {
                stale.insert(i);
            }
        }
        // It has too much only if somebody who waits gives less than before, or has too much.
        for i in stale.difference(&self.stale) {
            let fallen = |waiter: &usize| now[*waiter].exactly_gives < self.before[*waiter].exactly_gives;
            let because = |waiter: &usize| fallen(waiter) || stale.contains(waiter);
            assert!(now[*i].waiting.iter().any(because), "thread {i} has too much without a reason: {now:?}");
        }
        self.stale = stale;
        self.before = now;
    }

    /// Everything ends, and nothing is left.
    fn end(&mut self) {
        for actor in self.actors.clone() {
            self.stage.manage(Operation::ThreadSuspend, &[actor.capability]);
        }
        for (i, seen) in self.look().iter().enumerate() {
            assert_eq!(seen.inherited, 0, "thread {i}");
            assert_eq!(self.stage.state(self.actors[i]), ThreadState::Suspended);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn as_from_scratch_or_higher_for_a_reason(
        fast: bool,
        steps in prop::collection::vec((0..31u8, 0..6usize, 0..6usize, 0..100u64), 1..120),
    ) {
        let mut play = Play::new(fast);
        play.before = play.look();
        for step in steps {
            play.step(step);
            play.stage.check();
            play.compare();
        }
        play.end();
    }
}
