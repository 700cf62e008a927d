//! Three servers that declare their depths, a client of high priority, and a program of seven threads that make
//! arbitrary calls in any order: the program cannot keep the client's time from the server that works for the client.

use proptest::prelude::*;
use tench_abi::fault::Class;
use tench_abi::layout::UNBIND;
use tench_abi::{Kind, Operation, Tag};
use tench_kernel::helping;
use tench_kernel::helping::heights::MAX_HELPER;
use tench_kernel::scheduler;
use tench_kernel::thread::{ThreadState, blocker};

use super::actors::{Actor, Stage};

/// Number of servers: the first waits for the second, which waits for the third.
const SERVERS: usize = 3;

/// The actors of the test.
struct Play {
    stage: Stage,
    /// Honest servers, each of which calls the next.
    servers: Vec<Actor>,
    /// Threads of an ordinary program; those that serve have an endpoint of their own.
    own: Vec<Actor>,
    high: Actor,
    deferred: [u64; 2],
    notification: u64,
    /// A second reply object of each server.
    extra: Vec<u64>,
    ends: Vec<u64>,
}

type Step = (u8, usize, usize, u64);

impl Play {
    fn new(fast: bool) -> Play {
        let mut stage = Stage::new();
        stage.machine.fast = fast;
        let servers: Vec<Actor> = (0..SERVERS).map(|n| stage.server_of_depth(250, (SERVERS - 1 - n) as u64)).collect();
        let ends: Vec<u64> = (0..4).map(|_| stage.make(Kind::Endpoint)).collect();
        let mut own: Vec<Actor> = (0..7).map(|n| stage.actor(20 + 10 * n)).collect();
        for (n, actor) in own.iter_mut().enumerate() {
            actor.endpoint = ends[n % 4];
            if n < 4 {
                stage.serve(*actor, actor.endpoint);
                stage.machine.call_as(actor.thread, Operation::Receive, &[actor.endpoint, 0]);
            }
        }
        let deferred = [stage.make(Kind::Reply), stage.make(Kind::Reply)];
        let notification = stage.make(Kind::Notification);
        stage.manage(Operation::ThreadBind, &[own[0].capability, 0, 0, notification]);
        let high = stage.actor(200);
        let extra = (0..SERVERS).map(|_| stage.make(Kind::Reply)).collect();
        Play { stage, servers, own, high, deferred, notification, extra, ends }
    }

    fn runnable(&mut self, actor: Actor) -> bool {
        scheduler::runnable(self.stage.machine.kernel(), actor.thread)
    }

    /// Makes one step: a server works, the victim calls a server, or the program does something.
    fn step(&mut self, (what, who, whom, amount): Step) {
        let actor = self.own[who % 7];
        let other = self.own[whom % 7];
        let mut x = [0; 13];
        x[12] = self.stage.machine.host().time + amount;
        match what {
            // The servers.
            0..=9 => {
                let n = who % SERVERS;
                let server = self.servers[n];
                if !self.runnable(server) {
                    return;
                }
                self.stage.machine.run(server.thread);
                if what == 8 {
                    (x[0], x[1], x[11]) = (server.endpoint, Tag::REPLY, self.extra[n]);
                    self.stage.machine.system_call(Operation::Receive as u64, &x);
                } else if what == 9 {
                    (x[0], x[1]) = (self.extra[n], Tag::new(tench_abi::fault::reply::RESUME, 0).0);
                    self.stage.machine.system_call(Operation::Reply as u64, &x);
                } else if n + 1 < SERVERS && what < 5 {
                    x[0] = self.servers[n + 1].endpoint;
                    self.stage.machine.system_call(Operation::Call as u64, &x);
                } else {
                    (x[0], x[1]) = (server.endpoint, Tag::new(tench_abi::fault::reply::RESUME, 0).0);
                    self.stage.machine.system_call(Operation::ReplyReceive as u64, &x);
                }
            }
            // The victim.
            10 => {
                let high = self.high;
                if self.runnable(high) {
                    (x[0], x[1]) = (self.servers[whom % SERVERS].endpoint, Tag::DEADLINE);
                    self.stage.machine.run(high.thread);
                    self.stage.machine.system_call(Operation::Call as u64, &x);
                }
            }
            // The attackers' calls to servers and to each other.
            11..=25 => {
                if !self.runnable(actor) {
                    return;
                }
                let operation = match what {
                    11..=14 => Operation::Call,
                    15..=18 => Operation::Call,
                    19 => Operation::Send,
                    20 | 21 => Operation::ReplyReceive,
                    22 | 23 => Operation::Receive,
                    24 => Operation::Reply,
                    _ => Operation::TryReceive,
                };
                x[0] = match what {
                    11..=14 | 19 => self.servers[whom % SERVERS].endpoint,
                    24 => {
                        if amount % 2 == 0 {
                            0
                        } else {
                            other.reply
                        }
                    }
                    _ => other.endpoint,
                };
                match operation {
                    Operation::Receive | Operation::ReplyReceive if amount % 4 == 0 => {
                        (x[1], x[11]) = (Tag::REPLY, self.deferred[(amount / 4 % 2) as usize]);
                    }
                    Operation::Call | Operation::Send if amount % 2 == 0 => x[1] = Tag::DEADLINE,
                    Operation::Receive | Operation::ReplyReceive if amount % 4 == 1 => {
                        x[1] = Tag::DEADLINE | Tag::ALARM
                    }
                    Operation::Receive | Operation::ReplyReceive if amount % 8 == 2 => x[1] = Tag::DEADLINE,
                    _ => {}
                }
                self.stage.machine.run(actor.thread);
                self.stage.machine.system_call(operation as u64, &x);
            }
            26 | 27 => self.stage.machine.pass_time(amount),
            28 => self.stage.configure(actor, amount % 100),
            29 => self.stage.manage(Operation::ThreadSuspend, &[actor.capability]),
            30 | 31 => self.stage.manage(Operation::ThreadResume, &[actor.capability]),
            32 => self.stage.set_suspended(actor, true),
            33 | 34 => self.stage.set_suspended(actor, false),
            35 => self.stage.take_time(actor),
            36 => drop(self.stage.try_to(Operation::ThreadBind, &[actor.capability, actor.time, 0, 0])),
            37 => self.stage.manage(Operation::ThreadServe, &[actor.capability, 0]),
            38..=40 => {
                let _ = self.stage.try_to(Operation::ThreadServe, &[actor.capability, self.ends[whom % 4], amount % 3]);
            }
            41 => self.stage.manage(Operation::ThreadBind, &[actor.capability, 0, UNBIND, 0]),
            42 => drop(self.stage.try_to(Operation::ThreadBind, &[actor.capability, 0, actor.reply, 0])),
            43 => self.stage.manage(Operation::SchedulingReserve, &[actor.time, 64 + amount, 200 + amount, 0]),
            44 => self.stage.manage(Operation::SchedulingReserve, &[actor.time, 0, 0, 0]),
            45 => {
                let target = self.servers[whom % SERVERS].endpoint;
                let end = if amount % 2 == 0 { target } else { other.endpoint };
                let _ = self.stage.try_to(Operation::ThreadFaults, &[actor.capability, Class::Timeout as u64, end]);
            }
            46 => self.stage.manage(Operation::Signal, &[self.notification]),
            _ => self.stage.cancel(actor),
        }
    }

    /// Checks that every waiting server helps the next, that the waiting victim helps, too, and that the thread for
    /// which the victim waits is as urgent.
    fn look(&mut self) -> Result<(), TestCaseError> {
        for n in 0..SERVERS {
            let (thread, next) = (self.servers[n].thread, self.servers.get(n + 1).map(|next| next.thread));
            let t = self.stage.machine.thread(thread);
            let (state, flags) = (t.state, t.blockers);
            let waits = matches!(state, ThreadState::Sending(_) | ThreadState::AwaitingReply(_));
            if waits {
                prop_assert!(flags & blocker::HELPLESS == 0, "server {} is helpless", n);
                let k = self.stage.machine.kernel();
                let helped = helping::server_of(k, thread);
                // The next server may have set the caller aside.
                let is_deferred = helped.is_none() && matches!(state, ThreadState::AwaitingReply(_));
                prop_assert!(is_deferred || helped == next, "server {} helps another", n);
            }
        }
        for sender in self.own.iter().chain(&self.servers).map(|actor| actor.thread).collect::<Vec<_>>() {
            let t = self.stage.machine.thread(sender);
            let (state, height) = (t.state, t.height);
            let k = self.stage.machine.kernel();
            if matches!(state, ThreadState::Sending(_))
                && let Some(server) = helping::server_of(k, sender)
            {
                let depth = k.get(server).depth;
                if self.servers.iter().any(|actor| actor.thread == server) {
                    prop_assert!(height + depth <= MAX_HELPER, "a sender of {} at a depth of {}", height, depth);
                }
            }
        }
        let t = self.stage.machine.thread(self.high.thread);
        let waits = matches!(t.state, ThreadState::Sending(_) | ThreadState::AwaitingReply(_));
        prop_assert!(!waits || t.blockers & blocker::HELPLESS == 0, "the victim is helpless");
        if waits {
            let mut at = self.high.thread;
            loop {
                let k = self.stage.machine.kernel();
                let Some(next) = helping::server_of(k, at) else { break };
                at = next;
                let priority = self.stage.machine.thread(at).priority;
                prop_assert!(priority >= 200, "somebody that the victim waits for has {}", priority);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_client_keeps_servers_from_helping_each_other(
        fast: bool,
        steps in prop::collection::vec((0..48u8, 0..21usize, 0..21usize, 0..100u64), 1..250),
    ) {
        let mut play = Play::new(fast);
        for step in steps {
            play.step(step);
            play.stage.check();
            play.look()?;
        }
    }
}
