//! Threads of a process that are made, end, wait, and get signals at random, beside a model that knows nothing of
//! calls, waits and frames.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use support::{Doing, Play};
use tench_linux::exec::TRAMPOLINE;
use tench_linux_calls::Sysno;
use tench_random::Random;

/// Code of the program, which handles signals.
const HANDLER: u64 = 0x20_0100;
/// Addresses in the program's data of an argument, and of a word that is 0.
const ARGUMENT: u64 = 0x20_1300;
const WORD: u64 = 0x20_1400;
const THREAD: u64 = 0x5_0f00;
/// Size of a thread's stack.
const STACK: u64 = 64 << 10;
const FORK: u64 = 17;

const KILL: u32 = 9;
const USR1: u32 = 10;
const USR2: u32 = 12;
const CONT: u32 = 18;
const STOP: u32 = 19;
const WINCH: u32 = 28;
/// Signals that are handled or ignored.
const SIGNALS: [u32; 3] = [USR1, USR2, WINCH];

/// A thread of the model.
#[derive(Default)]
struct Member {
    /// Set once the first thread has ended.
    is_gone: bool,
    blocked: BTreeSet<u32>,
    pending: BTreeSet<u32>,
    /// Signals in whose handlers it is: they come through when these have ended.
    in_handlers: BTreeSet<u32>,
    /// How often each handler has run.
    handled: BTreeMap<u32, u32>,
}

impl Member {
    /// Returns the first signal of a set that comes through.
    fn first(&self, pending: &BTreeSet<u32>) -> Option<u32> {
        pending.iter().find(|signal| !self.blocked.contains(signal) && !self.in_handlers.contains(signal)).copied()
    }
}

/// The model: a process. Its first thread has its number, which is the lowest.
#[derive(Default)]
struct Model {
    process: u32,
    members: BTreeMap<u32, Member>,
    pending: BTreeSet<u32>,
    ignored: BTreeSet<u32>,
    stopped: bool,
}

impl Model {
    fn new(process: u32) -> Model {
        Model { process, members: BTreeMap::from([(process, Member::default())]), ..Model::default() }
    }

    fn drop_all(&mut self, signal: u32) {
        self.pending.remove(&signal);
        for member in self.members.values_mut() {
            member.pending.remove(&signal);
        }
    }

    /// Sends a signal to the process or to one of its threads.
    fn send(&mut self, signal: u32, thread: Option<u32>) {
        if signal == CONT {
            self.drop_all(STOP);
            self.stopped = false;
        }
        let receiver = self.members.get_mut(&thread.unwrap_or(self.process)).unwrap();
        let is_ignored = signal == CONT || self.ignored.contains(&signal);
        let is_blocked = receiver.blocked.contains(&signal) || receiver.in_handlers.contains(&signal);
        if !is_ignored || is_blocked {
            if thread.is_some() { &mut receiver.pending } else { &mut self.pending }.insert(signal);
        }
    }

    /// Delivers what has come, until all handlers have ended.
    fn deliver(&mut self) {
        while self.deliver_once() && !self.stopped {
            self.members.values_mut().for_each(|member| member.in_handlers.clear());
        }
    }

    /// Delivers what has come: each thread takes its own first, and the first one those of the process. Returns whether
    /// one is in a handler then.
    fn deliver_once(&mut self) -> bool {
        for member in self.members.values_mut().filter(|member| !member.is_gone) {
            while !self.stopped {
                let own = member.first(&member.pending);
                let Some(signal) = own.or_else(|| member.first(&self.pending)) else { break };
                let queue = if own.is_some() { &mut member.pending } else { &mut self.pending };
                queue.remove(&signal);
                if signal == STOP {
                    self.stopped = true;
                } else if !self.ignored.contains(&signal) {
                    *member.handled.entry(signal).or_default() += 1;
                    member.in_handlers.insert(signal);
                }
            }
        }
        self.members.values().any(|member| !member.in_handlers.is_empty())
    }

    fn living(&self) -> usize {
        self.members.values().filter(|member| !member.is_gone).count()
    }
}

/// Sums over the games.
#[derive(Debug, Default)]
struct Counts {
    handled: u32,
    handled_by_others: u32,
    waited: u32,
    stopped: u32,
    ended: u32,
    first_gone: u32,
}

/// A process, beside the model. Process 1 makes it and sends it signals.
struct Game {
    play: Play,
    model: Model,
    /// How often each handler of each thread has run.
    handled: BTreeMap<(u32, u32), u32>,
    counts: Counts,
    /// Calls that were made.
    history: Vec<String>,
}

impl Game {
    fn new() -> Game {
        let play = Play::new(8192);
        let mut game = Game {
            play,
            model: Model::default(),
            handled: BTreeMap::new(),
            counts: Counts::default(),
            history: Vec::new(),
        };
        game.begin();
        game
    }

    fn call(&mut self, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        self.history.push(format!("{id}: {call}{arguments:?}"));
        self.play.call(id, call as u64, all).map(u64::cast_signed)
    }

    /// Makes a process that handles all signals.
    fn begin(&mut self) {
        let process = self.call(1, Sysno::clone, &[FORK]).unwrap() as u32;
        self.model = Model::new(process);
        self.handled.clear();
        for signal in SIGNALS {
            self.act(process, signal, false);
        }
    }

    /// Learns of the process's end, and makes another one.
    fn begin_again(&mut self) {
        self.counts.ended += 1;
        let expected = Some(self.model.process.into());
        assert_eq!(self.call(1, Sysno::wait4, &[u64::MAX, 0, 1]), expected, "the end of the process");
        self.begin();
    }

    /// Sets whether a signal is ignored or handled.
    fn act(&mut self, id: u32, signal: u32, ignores: bool) {
        self.play.put(id, ARGUMENT, &[if ignores { 1 } else { HANDLER }, 0, 0, 0]);
        assert_eq!(self.call(id, Sysno::rt_sigaction, &[signal.into(), ARGUMENT, 0, 8]), Some(0));
        if ignores {
            self.model.ignored.insert(signal);
            self.model.drop_all(signal);
        } else {
            self.model.ignored.remove(&signal);
        }
    }

    /// Ends the handlers in which threads are.
    fn end_handlers(&mut self) {
        loop {
            let running = self.play.running();
            let Some(id) = running.into_iter().find(|id| self.play.thread(*id).registers.x[30] == TRAMPOLINE) else {
                return;
            };
            let signal = self.play.thread(id).registers.x[0] as u32;
            *self.handled.entry((id, signal)).or_default() += 1;
            self.counts.handled += 1;
            self.counts.handled_by_others += u32::from(id != self.model.process);
            self.call(id, Sysno::rt_sigreturn, &[]);
        }
    }

    /// Lets somebody do something random.
    fn step(&mut self, random: &mut Random) {
        let running: Vec<u32> = self.play.running().into_iter().filter(|id| *id != 1).collect();
        let some = |random: &mut Random| running.get(random.below(running.len().max(1) as u64) as usize).copied();
        let all: Vec<u32> = self.model.members.keys().copied().collect();
        let target = all[random.below(all.len() as u64) as usize];
        let signal = SIGNALS[random.below(3) as usize];
        match (random.below(20), some(random)) {
            (0..=3, Some(id)) if all.len() < 8 => {
                // Each has a stack of its own for the frames of its handlers.
                let stack = self.call(id, Sysno::mmap, &[0, STACK, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
                let made = self.call(id, Sysno::clone, &[THREAD, stack + STACK]).unwrap() as u32;
                let blocked = self.model.members[&id].blocked.clone();
                self.model.members.insert(made, Member { blocked, ..Member::default() });
            }
            (4, Some(id)) => return self.exit(id),
            (5..=8, _) => self.send(signal, None),
            (9..=12, _) => self.send(signal, Some(target)),
            (13..=14, Some(id)) => self.block(id, random),
            (15, Some(id)) => {
                let ignores = random.below(3) == 0;
                self.act(id, signal, ignores);
            }
            (16, _) => self.send([STOP, CONT, CONT][random.below(3) as usize], None),
            (17, Some(id)) => {
                assert_eq!(self.call(id, Sysno::futex, &[WORD, 128, 0]), None, "it waits");
                self.counts.waited += 1;
            }
            (18, Some(id)) => {
                self.call(id, Sysno::futex, &[WORD, 129, 100]);
            }
            (19, _) if random.below(8) == 0 => {
                self.call(1, Sysno::kill, &[self.model.process.into(), KILL.into()]);
                return self.begin_again();
            }
            _ => return,
        }
        self.model.deliver();
        self.counts.stopped += u32::from(self.model.stopped);
        self.end_handlers();
    }

    fn send(&mut self, signal: u32, thread: Option<u32>) {
        let process = self.model.process.into();
        let result = match thread {
            Some(thread) => self.call(1, Sysno::tgkill, &[process, thread.into(), signal.into()]),
            None => self.call(1, Sysno::kill, &[process, signal.into()]),
        };
        assert_eq!(result, Some(0));
        self.model.send(signal, thread);
    }

    fn block(&mut self, id: u32, random: &mut Random) {
        let blocked: BTreeSet<u32> = SIGNALS.into_iter().filter(|_| random.below(2) == 0).collect();
        let set = blocked.iter().fold(0u64, |set, signal| set | 1 << (signal - 1));
        self.play.put(id, ARGUMENT, &[set]);
        self.call(id, Sysno::rt_sigprocmask, &[2, ARGUMENT, 0, 8]);
        self.model.members.get_mut(&id).unwrap().blocked = blocked;
    }

    /// Ends a thread, and with the last one the process.
    fn exit(&mut self, id: u32) {
        self.call(id, Sysno::exit, &[3]);
        if self.model.living() == 1 {
            return self.begin_again();
        }
        if id == self.model.process {
            self.model.members.get_mut(&id).unwrap().is_gone = true;
            self.counts.first_gone += 1;
        } else {
            self.model.members.remove(&id);
        }
    }

    /// Compares the process with the model.
    fn compare(&mut self) {
        let last = self.history[self.history.len().saturating_sub(12)..].join("\n");
        let process = self.play.instance.processes.get(self.model.process).unwrap();
        let found: Vec<u32> = process.threads.iter().map(|thread| thread.id).collect();
        let expected: Vec<u32> = self.model.members.keys().copied().collect();
        assert_eq!(found, expected, "the threads");
        assert_eq!(process.is_stopped, self.model.stopped, "whether it is stopped");
        for (id, member) in self.model.members.iter().filter(|(_, member)| !member.is_gone) {
            let doing = self.play.doing(*id);
            if self.model.stopped {
                assert_ne!(doing, Some(Doing::Runs), "thread {id} of a stopped process");
                continue;
            }
            assert!(matches!(doing, Some(Doing::Runs | Doing::Waits)), "thread {id}: {doing:?}");
            for signal in SIGNALS {
                let handled = self.handled.get(&(*id, signal)).copied().unwrap_or(0);
                let expected = member.handled.get(&signal).copied().unwrap_or(0);
                assert_eq!(handled, expected, "how often thread {id} has handled {signal} after\n{last}");
            }
        }
    }
}

#[test]
fn threads_are_in_the_states_of_the_model() {
    let mut all = Counts::default();
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut game = Game::new();
        for step in 0..600 {
            game.step(&mut random);
            game.compare();
            if step % 16 == 0 {
                game.play.check();
            }
        }
        let Game { play, counts, .. } = game;
        all.handled += counts.handled;
        all.handled_by_others += counts.handled_by_others;
        all.waited += counts.waited;
        all.stopped += counts.stopped;
        all.ended += counts.ended;
        all.first_gone += counts.first_gone;
        play.end();
    }
    println!("{all:?}");
    assert!(all.handled > 5_000 && all.handled_by_others > 1_000 && all.waited > 500, "{all:?}");
    assert!(all.stopped > 1_000 && all.ended > 100 && all.first_gone > 50, "{all:?}");
}
