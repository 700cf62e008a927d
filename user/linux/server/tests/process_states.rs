//! Processes that fork, run programs, end, stop, signal each other and wait for each other at random, beside a model
//! that knows nothing of threads, calls and waits.

mod support;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use support::{Doing, Play};
use tench_linux::exec::TRAMPOLINE;
use tench_linux::process::{News, Status};
use tench_linux_calls::Sysno;
use tench_random::Random;

/// Code of the program, which handles signals.
const HANDLER: u64 = 0x20_0100;
/// Addresses in the program's data at which arguments and results are.
const ARGUMENT: u64 = 0x20_1300;
const RESULT: u64 = 0x20_1400;
const PATH: u64 = 0x20_1500;

const HUP: u32 = 1;
const KILL: u32 = 9;
const USR1: u32 = 10;
const TERM: u32 = 15;
const CHLD: u32 = 17;
const CONT: u32 = 18;
const STOP: u32 = 19;
const TSTP: u32 = 20;
const SIGNALS: [u32; 7] = [KILL, USR1, TERM, CHLD, CONT, STOP, TSTP];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Default,
    Ignore,
    Handle,
}

/// A process of the model.
#[derive(Clone, Debug)]
struct Person {
    parent: u32,
    group: u32,
    session: u32,
    has_executed: bool,
    /// The word of `wait4`, once it has ended.
    ended: Option<u32>,
    stopped: bool,
    /// The word of `wait4` for what its parent does not know yet.
    news: Option<u32>,
    actions: BTreeMap<u32, Action>,
    blocked: BTreeSet<u32>,
    pending: BTreeSet<u32>,
    /// How often each handler has run.
    handled: BTreeMap<u32, u32>,
}

/// The model: the processes, and those for which signals have come, in order. What happens at once counts as one
/// signal.
#[derive(Default)]
struct World(BTreeMap<u32, Person>, VecDeque<u32>);

impl World {
    fn action(&self, id: u32, signal: u32) -> Action {
        match self.0[&id].actions.get(&signal) {
            Some(action) if signal != KILL && signal != STOP => *action,
            _ => Action::Default,
        }
    }

    fn is_ignored(&self, id: u32, signal: u32) -> bool {
        match self.action(id, signal) {
            Action::Ignore => true,
            Action::Default => signal == CHLD || signal == CONT,
            Action::Handle => false,
        }
    }

    fn send(&mut self, id: u32, signal: u32) {
        if self.0[&id].ended.is_some() {
            return;
        }
        let is_ignored = self.is_ignored(id, signal);
        let person = self.0.get_mut(&id).unwrap();
        if signal == CONT {
            person.pending.remove(&STOP);
            person.pending.remove(&TSTP);
        }
        if signal == STOP || signal == TSTP {
            person.pending.remove(&CONT);
        }
        if !is_ignored || person.blocked.contains(&signal) {
            person.pending.insert(signal);
        }
        if signal == CONT && person.stopped {
            person.stopped = false;
            person.news = Some(0xffff);
            self.tell_parent(id);
        }
        self.1.push_back(id);
    }

    /// Delivers the signals that have come.
    fn settle(&mut self) {
        while let Some(id) = self.1.pop_front() {
            self.deliver(id);
        }
    }

    fn deliver(&mut self, id: u32) {
        loop {
            let Some(person) = self.0.get(&id) else { return };
            if person.ended.is_some() {
                return;
            }
            if person.pending.contains(&KILL) {
                return self.end(id, KILL);
            }
            if person.stopped {
                return;
            }
            let next = person.pending.iter().find(|signal| !person.blocked.contains(*signal)).copied();
            let Some(signal) = next else { return };
            self.0.get_mut(&id).unwrap().pending.remove(&signal);
            match self.action(id, signal) {
                _ if self.is_ignored(id, signal) => {}
                Action::Handle => *self.0.get_mut(&id).unwrap().handled.entry(signal).or_default() += 1,
                _ if signal == STOP || signal == TSTP && !self.is_orphaned(id) => {
                    let person = self.0.get_mut(&id).unwrap();
                    (person.stopped, person.news) = (true, Some(signal << 8 | 0x7f));
                    self.tell_parent(id);
                }
                _ if signal == TSTP => {}
                _ => return self.end(id, signal),
            }
        }
    }

    /// Returns whether nobody outside of a process's group, but in its session, is a parent of a member.
    fn is_orphaned(&self, id: u32) -> bool {
        let own = &self.0[&id];
        !self.0.values().filter(|person| person.group == own.group).any(|member| {
            let parent = self.0.get(&member.parent);
            parent.is_some_and(|parent| {
                parent.ended.is_none() && parent.group != own.group && parent.session == own.session
            })
        })
    }

    fn tell_parent(&mut self, id: u32) {
        let parent = self.0[&id].parent;
        if self.0.contains_key(&parent) {
            self.send(parent, CHLD);
        }
    }

    fn end(&mut self, id: u32, word: u32) {
        let parent = {
            let person = self.0.get_mut(&id).unwrap();
            person.ended = Some(word);
            person.news = None;
            person.stopped = false;
            person.parent
        };
        let mut inherited = Vec::new();
        let own = self.0[&id].clone();
        let guards = |one: &Person, other: &Person| one.group != other.group && one.session == other.session;
        let mut groups = BTreeSet::new();
        if self.0.get(&parent).is_some_and(|parent| guards(parent, &own)) {
            groups.insert(own.group);
        }
        for (number, child) in self.0.iter_mut().filter(|(_, child)| child.parent == id) {
            child.parent = 1;
            if child.ended.is_some() {
                inherited.push(*number);
            } else if guards(&own, child) {
                groups.insert(child.group);
            }
        }
        if !inherited.is_empty() && id != 1 {
            if self.action(1, CHLD) == Action::Ignore {
                inherited.iter().for_each(|child| drop(self.0.remove(child)));
            }
            self.send(1, CHLD);
        }
        if self.0.contains_key(&parent) {
            if self.action(parent, CHLD) == Action::Ignore {
                self.0.remove(&id);
            }
            self.send(parent, CHLD);
        }
        for group in groups {
            let members: Vec<u32> = self.members(group);
            let is_stopped = members.iter().any(|member| self.0[member].stopped);
            if is_stopped && self.is_orphaned(members[0]) {
                for member in members {
                    self.send(member, HUP);
                    self.send(member, CONT);
                }
            }
        }
    }

    /// Returns the members of a group that have not ended.
    fn members(&self, group: u32) -> Vec<u32> {
        let members = self.0.iter().filter(|(_, person)| person.group == group && person.ended.is_none());
        members.map(|(id, _)| *id).collect()
    }

    /// Returns what `wait4` returns for any child, with all options.
    fn wait(&mut self, id: u32) -> Option<(u32, u32)> {
        let children: Vec<u32> = self.0.iter().filter(|(_, child)| child.parent == id).map(|(id, _)| *id).collect();
        for child in children {
            if let Some(word) = self.0[&child].ended {
                self.0.remove(&child);
                return Some((child, word));
            }
            if let Some(word) = self.0.get_mut(&child).unwrap().news.take() {
                return Some((child, word));
            }
        }
        None
    }
}

/// The processes, beside the model.
struct Game {
    play: Play,
    world: World,
    /// How often each handler of each process has run.
    handled: BTreeMap<(u32, u32), u32>,
    /// Calls that the processes have made.
    history: Vec<String>,
}

impl Game {
    fn new() -> Game {
        let mut play = Play::new(8192);
        play.write(1, PATH, b"/bin/program\0");
        // Without a handler, it would end the first process, and the game.
        play.put(1, ARGUMENT, &[HANDLER, 0, 0, 0]);
        play.call(1, Sysno::rt_sigaction as u64, [HUP.into(), ARGUMENT, 0, 8, 0, 0]);
        let first = Person {
            parent: 0,
            group: 1,
            session: 1,
            has_executed: true,
            ended: None,
            stopped: false,
            news: None,
            actions: BTreeMap::from([(HUP, Action::Handle)]),
            blocked: BTreeSet::new(),
            pending: BTreeSet::new(),
            handled: BTreeMap::new(),
        };
        Game {
            play,
            world: World(BTreeMap::from([(1, first)]), VecDeque::new()),
            handled: BTreeMap::new(),
            history: Vec::new(),
        }
    }

    /// Makes a call. Returns its result, unless the process does something else afterwards.
    fn call(&mut self, id: u32, call: Sysno, arguments: [u64; 6]) -> Option<i64> {
        self.history.push(format!("{id}: {call}{arguments:?}"));
        let result = self.play.call(id, call as u64, arguments)?;
        (self.play.thread(id).registers.x[30] != TRAMPOLINE).then_some(result.cast_signed())
    }

    fn write(&mut self, id: u32, address: u64, bytes: &[u8]) {
        self.play.write(id, address, bytes);
    }

    /// Ends the handlers in which processes are.
    fn end_handlers(&mut self) {
        loop {
            let running = self.play.running();
            let in_handler = running.into_iter().find(|id| self.play.thread(*id).registers.x[30] == TRAMPOLINE);
            let Some(id) = in_handler else { return };
            let signal = self.play.thread(id).registers.x[0] as u32;
            *self.handled.entry((id, signal)).or_default() += 1;
            self.call(id, Sysno::rt_sigreturn, [0; 6]);
        }
    }

    /// Lets a random process do something random.
    fn step(&mut self, random: &mut Random) {
        let running = self.play.running();
        let id = running[random.below(running.len() as u64) as usize];
        let others: Vec<u32> = self.world.0.keys().copied().collect();
        let other = others[random.below(others.len() as u64) as usize];
        match random.below(20) {
            0..=3 if self.world.0.len() < 12 => self.fork(id),
            4 if id != 1 => {
                let code = random.below(256);
                self.call(id, Sysno::exit_group, [code, 0, 0, 0, 0, 0]);
                self.world.end(id, (code as u32) << 8);
            }
            5..=8 => self.signal(id, other, SIGNALS[random.below(7) as usize]),
            9..=10 => self.act(id, random),
            11..=12 => self.block(id, random),
            13 => self.regroup(id, other, random),
            // What the first process has blocked would end it, and the game, without its handlers.
            14 if id != 1 => self.execute(id),
            _ => self.wait(id),
        }
        self.world.settle();
        self.end_handlers();
    }

    fn fork(&mut self, id: u32) {
        let child = self.call(id, Sysno::clone, [17, 0, 0, 0, 0, 0]).unwrap() as u32;
        let own = self.world.0[&id].clone();
        let (pending, handled) = (BTreeSet::new(), BTreeMap::new());
        let person = Person { parent: id, news: None, has_executed: false, pending, handled, ..own };
        self.world.0.insert(child, person);
    }

    fn signal(&mut self, id: u32, to: u32, signal: u32) {
        // The game is over with the first process, and it has nobody who lets it go on.
        let ends_the_game = to == 1 && !matches!(signal, CHLD | CONT);
        if ends_the_game && (signal != USR1 || self.world.action(1, USR1) != Action::Handle) {
            return;
        }
        let result = self.call(id, Sysno::kill, [to.into(), signal.into(), 0, 0, 0, 0]);
        assert!(result.is_none_or(|result| result == 0), "{result:?}");
        self.world.send(to, signal);
    }

    fn act(&mut self, id: u32, random: &mut Random) {
        let signal = [USR1, TERM, CHLD, CONT, TSTP][random.below(5) as usize];
        let action = [Action::Default, Action::Ignore, Action::Handle][random.below(3) as usize];
        if id == 1 && signal != CHLD && action != Action::Handle {
            return;
        }
        let handler = match action {
            Action::Default => 0,
            Action::Ignore => 1,
            Action::Handle => HANDLER,
        };
        let record: Vec<u8> = [handler, 0, 0, 0u64].iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(id, ARGUMENT, &record);
        assert_eq!(self.call(id, Sysno::rt_sigaction, [signal.into(), ARGUMENT, 0, 8, 0, 0]), Some(0));
        self.world.0.get_mut(&id).unwrap().actions.insert(signal, action);
        if self.world.is_ignored(id, signal) {
            self.world.0.get_mut(&id).unwrap().pending.remove(&signal);
        }
    }

    fn block(&mut self, id: u32, random: &mut Random) {
        let blocked: BTreeSet<u32> =
            [USR1, TERM, CHLD, CONT, TSTP].into_iter().filter(|_| random.below(3) == 0).collect();
        let set = blocked.iter().fold(0u64, |set, signal| set | 1 << (signal - 1));
        self.write(id, ARGUMENT, &set.to_le_bytes());
        self.call(id, Sysno::rt_sigprocmask, [2, ARGUMENT, 0, 8, 0, 0]);
        self.world.0.get_mut(&id).unwrap().blocked = blocked;
        self.world.1.push_back(id);
    }

    fn regroup(&mut self, id: u32, other: u32, random: &mut Random) {
        let (own, person) = (&self.world.0[&id], &self.world.0[&other]);
        let group = if random.below(2) == 0 { other } else { own.group };
        let is_group = self.world.0.values().any(|member| member.group == group && member.session == own.session);
        let expected = if other != id && person.parent != id {
            -3
        } else if other != id && person.session != own.session {
            -1
        } else if other != id && person.has_executed {
            -13
        } else if person.session == other || group != other && !is_group {
            -1
        } else {
            0
        };
        let result = self.call(id, Sysno::setpgid, [other.into(), group.into(), 0, 0, 0, 0]);
        assert_eq!(result, Some(expected), "setpgid({other}, {group}) by {id}");
        if expected == 0 {
            self.world.0.get_mut(&other).unwrap().group = group;
        }
    }

    fn execute(&mut self, id: u32) {
        self.call(id, Sysno::execve, [PATH, 0, 0, 0, 0, 0]);
        assert_eq!(self.play.doing(id), Some(Doing::Runs));
        self.write(id, PATH, b"/bin/program\0");
        let person = self.world.0.get_mut(&id).unwrap();
        person.has_executed = true;
        person.actions.retain(|_, action| *action == Action::Ignore);
    }

    fn wait(&mut self, id: u32) {
        // Without waiting, for those that have stopped or gone on, too.
        let result = self.call(id, Sysno::wait4, [u64::MAX, RESULT, 1 | 2 | 8, 0, 0, 0]);
        let has_children = self.world.0.values().any(|child| child.parent == id);
        match self.world.wait(id) {
            Some((child, word)) => {
                assert_eq!(result, Some(child.into()), "the child for which {id} waits");
                let mut found = [0; 4];
                self.play.read(id, RESULT, &mut found);
                assert_eq!(u32::from_le_bytes(found), word, "the status of {child}");
            }
            None => assert_eq!(result, Some(if has_children { 0 } else { -10 })),
        }
    }

    /// Compares all processes with the model.
    fn compare(&mut self) {
        let found: Vec<u32> = self.play.instance.processes.iter().map(|process| process.id).collect();
        let expected: Vec<u32> = self.world.0.keys().copied().collect();
        let last = self.history[self.history.len().saturating_sub(12)..].join("\n");
        assert_eq!(found, expected, "the processes after\n{last}");
        for process in self.play.instance.processes.iter() {
            let person = &self.world.0[&process.id];
            let ended = process.ended.map(|status| match status {
                Status::Exited(code) => u32::from(code) << 8,
                Status::Killed(signal) => signal,
            });
            assert_eq!(ended, person.ended, "the end of {}", process.id);
            assert_eq!((process.parent, process.group), (person.parent, person.group), "of {}", process.id);
            if ended.is_none() {
                assert_eq!(process.is_stopped, person.stopped, "whether {} is stopped", process.id);
                let news = process.news.map(|news| match news {
                    News::Stopped(signal) => signal << 8 | 0x7f,
                    News::Continued => 0xffff,
                });
                assert_eq!(news, person.news, "news of {}", process.id);
                for (signal, count) in &person.handled {
                    let handled = self.handled.get(&(process.id, *signal)).copied().unwrap_or(0);
                    // Two children that end at once may be one signal.
                    let is_one = *signal == CHLD && (1..=*count).contains(&handled);
                    assert!(handled == *count || is_one, "{} has handled {signal} {handled} times", process.id);
                }
            }
        }
    }
}

#[test]
fn processes_are_in_the_states_of_the_model() {
    let (mut ended, mut stopped, mut most) = (0, 0, 0);
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut game = Game::new();
        for _ in 0..600 {
            game.step(&mut random);
            game.compare();
            ended += game.world.0.values().filter(|person| person.ended.is_some()).count();
            stopped += game.world.0.values().filter(|person| person.stopped).count();
            most = most.max(game.world.0.len());
        }
        game.play.check();
        game.play.end();
    }
    println!("{ended} ended, {stopped} stopped, at most {most}");
    assert!(ended > 1000 && stopped > 1000 && most == 12, "{ended} ended, {stopped} stopped, at most {most}");
}
