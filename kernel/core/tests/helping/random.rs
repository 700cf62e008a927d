//! Random calls, replies, ends of waits and changes among six threads; after each step each thread runs on the context
//! that follows from scratch.

use proptest::prelude::*;
use tench_abi::layout::UNBIND;
use tench_abi::{Kind, Operation, Tag};
use tench_kernel::scheduler;
use tench_kernel::thread::ThreadState;

use super::actors::{Actor, Stage};

/// Six threads.
struct Play {
    stage: Stage,
    actors: Vec<Actor>,
    /// Reply objects that are bound to no thread.
    deferred: [u64; 2],
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
        let deferred = [stage.make(Kind::Reply), stage.make(Kind::Reply)];
        Play { stage, actors, deferred }
    }

    /// Returns true if a thread can make a system call.
    fn runnable(&mut self, actor: Actor) -> bool {
        scheduler::runnable(self.stage.machine.kernel(), actor.thread)
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
                (x[1], x[11]) = (Tag::REPLY, self.deferred[(amount / 4 % 2) as usize]);
            }
            Operation::Call | Operation::Send if amount % 2 == 0 => x[1] = Tag::DEADLINE,
            Operation::Receive | Operation::ReplyReceive if amount % 4 == 1 => x[1] = Tag::DEADLINE | Tag::ALARM,
            Operation::Receive | Operation::ReplyReceive if amount % 8 == 2 => x[1] = Tag::DEADLINE,
            _ => {}
        }
        self.stage.machine.run(actor.thread);
        self.stage.machine.system_call(operation as u64, &x);
    }

    /// Makes a change from outside.
    fn arrange(&mut self, what: u8, actor: Actor, other: Actor, amount: u64) {
        match what {
            14 | 15 => self.stage.machine.pass_time(amount),
            16 => self.stage.configure(actor, amount % 70),
            17 => self.stage.manage(Operation::ThreadSuspend, &[actor.capability]),
            18 | 19 => self.stage.manage(Operation::ThreadResume, &[actor.capability]),
            20 => self.stage.set_suspended(actor, true),
            21 | 22 => self.stage.set_suspended(actor, false),
            23 => self.stage.take_time(actor),
            24 | 25 => drop(self.stage.try_to(Operation::ThreadBind, &[actor.capability, actor.time, 0, 0])),
            26 => self.stage.manage(Operation::ThreadServe, &[actor.capability, 0]),
            27 => drop(self.stage.try_to(Operation::ThreadServe, &[actor.capability, other.endpoint, amount % 3])),
            28 => self.stage.manage(Operation::ThreadBind, &[actor.capability, 0, UNBIND, 0]),
            29 => drop(self.stage.try_to(Operation::ThreadBind, &[actor.capability, 0, actor.reply, 0])),
            30 => self.stage.manage(Operation::SchedulingReserve, &[actor.time, 64 + amount, 200 + amount, 0]),
            31 => self.stage.manage(Operation::SchedulingReserve, &[actor.time, 0, 0, 0]),
            _ => self.stage.cancel(actor),
        }
    }

    /// Ends everything, and checks that each thread has its own context again.
    fn end(&mut self) {
        for actor in self.actors.clone() {
            self.stage.manage(Operation::ThreadSuspend, &[actor.capability]);
        }
        for actor in self.actors.clone() {
            assert_eq!(self.stage.state(actor), ThreadState::Suspended);
            let t = self.stage.machine.thread(actor.thread);
            assert_eq!((t.scheduling, t.height), (t.base.context, 0));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn donations_equal_those_computed_from_scratch(
        fast: bool,
        steps in prop::collection::vec((0..33u8, 0..6usize, 0..6usize, 0..100u64), 1..120),
    ) {
        let mut play = Play::new(fast);
        for step in steps {
            play.step(step);
            play.stage.check();
        }
        play.end();
    }
}
