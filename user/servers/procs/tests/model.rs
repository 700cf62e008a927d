//! Tests the table of processes against a slow, obvious model: random processes create, start, suspend, end and kill
//! others, wait for them with and without deadlines, and give up.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use tench_abi::Powers;
use tench_abi::power::Client;
use tench_procs::table::waits::{LOOKS, MAX_WAITS};
use tench_procs::table::{Condition, Ended, MAX_ENDED, MAX_GENERATIONS, MAX_LIVE, MAX_WAITERS, Records};
use tench_procs_interface::protocol::{Error, State};

/// The model's process.
#[derive(Clone, Debug)]
struct Process {
    name: &'static str,
    parent: u64,
    family: u64,
    condition: Condition,
    powers: Powers,
    quota: u64,
}

/// A wait: its target, its process, its deadline, and whether its client has given up without notice.
#[derive(Clone, Debug)]
struct Wait {
    target: u64,
    waiter: u64,
    deadline: Option<u64>,
    given_up: bool,
}

/// The model. It searches linearly for everything, and keeps the record of every process that is not in `forgotten`.
#[derive(Default)]
struct Model {
    processes: BTreeMap<u64, Process>,
    ended: Vec<u64>,
    forgotten: Vec<u64>,
    waits: BTreeMap<u32, Wait>,
    now: u64,
    replies: u32,
}

impl Model {
    fn known(&self, pid: u64) -> Option<&Process> {
        if self.forgotten.contains(&pid) { None } else { self.processes.get(&pid) }
    }

    fn lives(&self, pid: u64) -> bool {
        self.known(pid).is_some_and(|process| !process.condition.state.has_ended())
    }

    fn live(&self) -> usize {
        self.processes.keys().filter(|pid| self.lives(**pid)).count()
    }

    /// Returns whether `caller` may manage `pid`.
    fn manages(&self, caller: u64, pid: u64) -> bool {
        let mut line = vec![pid];
        while let Some(process) = self.processes.get(line.last().unwrap()) {
            line.push(process.parent);
        }
        caller != 0
            && (line.iter().take(MAX_GENERATIONS + 1).any(|one| *one == caller)
                || self.known(caller).is_some_and(|process| process.powers.contains(Powers::PROCESSES)))
    }

    /// Removes the waits for which `goes` holds, in the order of their numbers.
    fn take(&mut self, goes: impl Fn(&Wait) -> bool) -> Vec<u32> {
        let numbers: Vec<u32> = self.waits.iter().filter(|(_, wait)| goes(wait)).map(|(number, _)| *number).collect();
        self.waits.retain(|number, _| !numbers.contains(number));
        numbers
    }
}

type Table = Records<u64, u32>;

/// A step of the test.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create,
    Start,
    Suspend,
    Resume,
    Exit,
    Kill,
    Abandon,
    Wait(Option<u64>),
    GiveUp,
    Pass(u64),
    Limit(u64),
    Many,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Create),
        4 => Just(Step::Start),
        1 => Just(Step::Suspend),
        1 => Just(Step::Resume),
        1 => Just(Step::Exit),
        1 => Just(Step::Kill),
        1 => Just(Step::Abandon),
        4 => prop::option::of(0..400u64).prop_map(Step::Wait),
        1 => Just(Step::GiveUp),
        2 => (0..100u64).prop_map(Step::Pass),
        1 => (0..1000u64).prop_map(Step::Limit),
        1 => Just(Step::Many),
    ]
}

/// The table and the model, side by side.
struct Pair {
    table: Table,
    model: Model,
}

impl Pair {
    fn new() -> Pair {
        let mut pair = Pair { table: Table::default(), model: Model::default() };
        for parent in 0..3 {
            let pid = pair.create("bin/first", parent).unwrap();
            pair.set(pid, State::Running).unwrap();
        }
        pair.table.get_mut(1).unwrap().powers = Powers::all();
        pair.model.processes.get_mut(&1).unwrap().powers = Powers::all();
        pair
    }

    fn create(&mut self, name: &'static str, parent: u64) -> Result<u64, Error> {
        let above = self
            .model
            .known(parent)
            .filter(|parent| !parent.powers.contains(Powers::PROCESSES))
            .map(|parent| parent.family);
        let in_family = |process: &Process| !process.condition.state.has_ended() && Some(process.family) == above;
        let made = self.table.prepare(name, Client::alone(parent), Powers::empty(), Some(parent));
        // The check takes long, and many processes are created.
        if made.is_err() || self.model.processes.len().is_multiple_of(64) {
            let own = self.model.processes.values().filter(|process| in_family(process)).count();
            assert_eq!(made.is_ok(), own < MAX_LIVE - self.model.live(), "a family of {own}");
        }
        if let Ok(pid) = made {
            assert!(self.model.processes.keys().all(|other| *other < pid), "{pid} was used before");
            let quota = self.model.known(parent).map_or(u64::MAX, |parent| parent.quota);
            let condition = Condition::plain(State::Preparing);
            let family = above.unwrap_or(pid);
            self.model
                .processes
                .insert(pid, Process { name, parent, family, condition, powers: Powers::empty(), quota });
        } else {
            assert_eq!(made, Err(Error::TooManyProcesses));
        }
        made
    }

    fn set(&mut self, pid: u64, state: State) -> Result<(), Error> {
        let done = self.table.set_state(pid, state);
        assert_eq!(done.is_ok(), self.model.lives(pid));
        if done.is_ok() {
            self.model.processes.get_mut(&pid).unwrap().condition = Condition::plain(state);
        }
        done
    }

    /// Checks which waiters get a reply when a process ends, and which are dropped.
    fn check_end(&mut self, pid: u64, ended: &Ended<u64, u32>) {
        let process = &self.model.processes[&pid];
        assert_eq!(ended.kernel, Some(process.parent));
        assert_eq!(ended.waiters, self.model.take(|wait| wait.target == pid));
        let mut abandoned = ended.abandoned.clone();
        abandoned.sort_unstable();
        assert_eq!(abandoned, self.model.take(|wait| wait.waiter == pid));
    }

    /// Ends a process as the server does: its process builders go first.
    fn end(&mut self, pid: u64, condition: Condition) {
        while let Some(prepared) = self.table.prepared_by(pid) {
            self.abandon(prepared);
        }
        let is_left = |process: &Process| process.parent == pid && process.condition.state == State::Preparing;
        let left = self.model.processes.iter().find(|(child, one)| self.model.lives(**child) && is_left(one));
        assert!(left.is_none(), "{left:?} is still prepared by {pid}");
        match self.table.record_end(pid, condition) {
            Ok(ended) => {
                assert!(self.model.lives(pid));
                self.check_end(pid, &ended);
                self.model.processes.get_mut(&pid).unwrap().condition = condition;
                self.model.ended.push(pid);
                if self.model.ended.len() > MAX_ENDED {
                    let oldest = self.model.ended.remove(0);
                    self.model.forgotten.push(oldest);
                }
            }
            Err(error) => {
                let expected = if self.model.known(pid).is_some() { Error::WrongState } else { Error::NoSuchProcess };
                assert_eq!((error, self.model.lives(pid)), (expected, false));
            }
        }
    }

    fn abandon(&mut self, pid: u64) {
        match self.table.discard(pid) {
            Some(ended) => {
                assert!(self.model.lives(pid));
                self.check_end(pid, &ended);
                self.model.processes.get_mut(&pid).unwrap().condition = Condition::plain(State::Killed);
                self.model.forgotten.push(pid);
            }
            None => assert!(!self.model.lives(pid)),
        }
    }

    fn wait(&mut self, target: u64, waiter: u64, after: Option<u64>) {
        if !self.model.lives(target) || !self.model.lives(waiter) {
            assert_eq!(self.table.check_live(target).is_ok(), self.model.lives(target));
            return;
        }
        let family = self.model.processes[&waiter].family;
        let has_capacity = |model: &Model| {
            let count = |is_one: &dyn Fn(&Wait) -> bool| model.waits.values().filter(|wait| is_one(wait)).count();
            let free = MAX_WAITERS - count(&|wait| wait.target == target);
            count(&|wait| wait.target == target && model.processes[&wait.waiter].family == family) < free
                && count(&|wait| wait.waiter == waiter) < MAX_WAITERS
                && count(&|wait| model.processes[&wait.waiter].family == family) < MAX_WAITS - model.waits.len()
        };
        let client = self.table.get(waiter).unwrap().client();
        let was_full = !has_capacity(&self.model);
        let (waits, processes) = (&self.model.waits, &self.model.processes);
        let mut gone = self.table.remove_gone(target, client, |reply| waits[reply].given_up);
        gone.sort_unstable();
        // The table checks all waits for the same target, some of the family (all, if they are few), and some of any
        // family.
        let of_family = |wait: &Wait| processes[&wait.waiter].family == family;
        let is_few = waits.values().filter(|wait| of_family(wait)).count() <= LOOKS;
        let is_meant = |wait: &Wait| was_full && wait.given_up && (wait.target == target || is_few && of_family(wait));
        let meant = waits.iter().filter(|(_, wait)| is_meant(wait));
        assert!({ meant }.all(|(number, _)| gone.contains(number)));
        assert!(gone.iter().all(|number| was_full && waits[number].given_up));
        self.model.waits.retain(|number, _| !gone.contains(number));
        assert_eq!(self.table.has_capacity(target, client), has_capacity(&self.model));
        if !self.table.has_capacity(target, client) {
            return;
        }
        let deadline = after.map(|after| self.model.now + 1 + after);
        self.model.replies += 1;
        let number = self.model.replies;
        self.table.wait(target, client, deadline, number);
        self.model.waits.insert(number, Wait { target, waiter, deadline, given_up: false });
    }

    /// Lets time pass. Expired waits end in rotation over families, in each family over its processes, and in each
    /// process by deadline. A process has its first turn before the process that has just had one has its next.
    fn pass(&mut self, ticks: u64) {
        self.model.now += ticks;
        let now = self.model.now;
        let due = self.model.waits.iter().filter_map(|(number, wait)| Some((wait.deadline?, *number, wait.waiter)));
        let mut due: Vec<(u64, u32, u64)> = due.filter(|(deadline, ..)| *deadline <= now).collect();
        due.sort_unstable();
        let families: BTreeMap<u64, u64> = due.iter().map(|due| (due.2, self.model.processes[&due.2].family)).collect();
        let mut turns = VecDeque::<(u64, VecDeque<u64>)>::new();
        for (.., waiter) in &due {
            if !turns.iter().any(|(family, _)| *family == families[waiter]) {
                turns.push_back((families[waiter], VecDeque::from([*waiter])));
            }
        }
        while let Some((family, mut called)) = turns.pop_front() {
            assert!(self.table.next_deadline().is_some_and(|deadline| deadline <= now));
            let process = called.pop_front().unwrap();
            let first = due.iter().position(|(.., waiter)| *waiter == process).unwrap();
            let (_, number, _) = due.remove(first);
            assert_eq!(self.table.pop_expired(now), Some(number));
            self.model.waits.remove(&number);
            let is_new = |other: &u64| families[other] == family && *other != process && !called.contains(other);
            let another = due.iter().map(|(.., waiter)| *waiter).find(is_new);
            let same = due.iter().map(|(.., waiter)| *waiter).find(|waiter| *waiter == process);
            called.extend([another, same].into_iter().flatten());
            if !called.is_empty() {
                turns.push_back((family, called));
            }
        }
        assert_eq!(self.table.pop_expired(now), None);
        assert_eq!(self.table.next_deadline(), self.model.waits.values().filter_map(|wait| wait.deadline).min());
    }

    /// Compares every query about a few processes, and every query that depends on none.
    fn compare(&self, sample: &[u64]) {
        self.table.check_invariants();
        for pid in sample {
            let known = self.model.known(*pid);
            assert_eq!(self.table.get(*pid).is_ok(), known.is_some(), "{pid}");
            if let (Ok(record), Some(process)) = (self.table.get(*pid), known) {
                assert_eq!((record.parent, record.status()), (process.parent, process.condition));
                assert_eq!((&*record.name, record.quota), (process.name, process.quota));
                // No process except this one, or one that has taken its number.
                let number = record.client().family;
                let is_of = |pid: u64, of: &Process| {
                    of.family == process.family
                        || self.table.get(pid).is_ok_and(|other| other.client().family == number)
                };
                let lives = self.model.processes.iter().any(|(pid, of)| self.model.lives(*pid) && is_of(*pid, of));
                let ended = if lives { 0 } else { number };
                assert_eq!(self.table.family_that_ended(number), ended, "whether a family has ended");
            }
            let next =
                |after: u64| self.model.processes.keys().find(|one| **one > after && self.model.known(**one).is_some());
            assert_eq!(self.table.next(*pid).map(|(pid, _)| pid), next(*pid).copied());
            let is_child = |one: &&u64| self.model.known(**one).is_some_and(|process| process.parent == *pid);
            assert_eq!(self.table.child(*pid, *pid), self.model.processes.keys().find(is_child).copied());
            let has_name = |one: &&u64| self.model.lives(**one) && self.model.processes[*one].name.ends_with("first");
            let named = self.model.processes.keys().filter(has_name).find(|one| *one > pid);
            assert_eq!(self.table.find("first", *pid), named.copied());
            for other in sample.iter().filter(|other| self.model.lives(*pid) && self.model.lives(**other)) {
                let [one, other] =
                    [pid, other].map(|pid| (self.model.processes[pid].family, self.table.get(*pid).unwrap().client()));
                assert_eq!(one.0 == other.0, one.1.family == other.1.family, "who is of one family");
            }
            for caller in sample {
                let allowed = match known {
                    None => Err(Error::NoSuchProcess),
                    Some(_) if self.model.manages(*caller, *pid) => Ok(()),
                    Some(_) => Err(Error::NotAllowed),
                };
                let powers = self.model.known(*caller).map_or(Powers::empty(), |process| process.powers);
                assert_eq!(self.table.check_manage(*caller, powers, *pid), allowed, "{caller} manages {pid}");
            }
        }
    }

    /// Does one step by one process, with another.
    fn step(&mut self, step: Step, actor: u64, other: u64) {
        let manages = self.model.known(other).is_some() && self.model.manages(actor, other);
        let is_prepared = self.model.known(other).is_some_and(|one| one.condition.state == State::Preparing);
        let prepares = self.model.lives(other) && self.table.preparing(actor, other).is_ok();
        match step {
            Step::Create if self.model.lives(actor) => {
                let _ = self.create(["bin/first", "first", "/x/second"][(other % 3) as usize], actor);
            }
            Step::Start if prepares => self.set(other, State::Running).unwrap(),
            Step::Abandon if prepares => self.abandon(other),
            Step::Suspend if manages && !is_prepared => {
                let _ = self.set(other, State::Suspended);
            }
            Step::Resume if manages && !is_prepared => {
                let _ = self.set(other, State::Running);
            }
            Step::Exit if actor > 3 => self.end(actor, Condition { state: State::Exited, detail: other }),
            Step::Kill if manages && other > 3 => self.end(other, Condition::plain(State::Killed)),
            Step::Wait(after) => self.wait(other, actor, after),
            Step::GiveUp => {
                let own = self.model.waits.values_mut().filter(|wait| wait.waiter == actor);
                own.for_each(|wait| wait.given_up = true);
            }
            Step::Pass(ticks) => self.pass(ticks),
            Step::Limit(bytes) if manages => {
                self.table.get_mut(other).unwrap().quota = bytes;
                self.model.processes.get_mut(&other).unwrap().quota = bytes;
            }
            // So many that tables fill and old records are removed.
            Step::Many => self.many(actor, other),
            _ => {}
        }
    }

    fn many(&mut self, actor: u64, other: u64) {
        if !self.model.lives(actor) || self.model.processes.len() > 6000 {
            return;
        }
        match other % 3 {
            0 => {
                (0..MAX_WAITERS as u64 + 8).for_each(|n| self.wait(1 + n % 3, actor, n.is_multiple_of(2).then_some(n)))
            }
            1 => {
                for _ in 0..700 {
                    if let Ok(pid) = self.create("x/second", actor) {
                        self.end(pid, Condition { state: State::Faulted, detail: 1 });
                    }
                }
            }
            _ => (0..300).for_each(|_| {
                let _ = self.create("first", actor);
            }),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_table_does_what_the_model_does(
        steps in prop::collection::vec((step(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..120),
    ) {
        let mut pair = Pair::new();
        for (step, actor, other) in steps {
            let pids: Vec<u64> = pair.model.processes.keys().copied().collect();
            // Mostly young processes, so that they interact.
            let recent = &pids[pids.len().saturating_sub(12)..];
            let pick = |index: prop::sample::Index| if index.index(4) == 0 { *index.get(&pids) } else { *index.get(recent) };
            let (actor, other) = (pick(actor), pick(other));
            pair.step(step, actor, other);
            pair.compare(&[0, 1, 3, actor, other, *pids.last().unwrap()]);
        }
        // No thread waits for ever: when all processes have ended, all waits have.
        let pids: Vec<u64> = pair.model.processes.keys().copied().collect();
        pids.iter().rev().for_each(|pid| pair.end(*pid, Condition::plain(State::Killed)));
        prop_assert!(pair.model.waits.is_empty());
        prop_assert_eq!(pair.table.next_deadline(), None);
        pair.compare(&[0, 1, 2]);
    }
}
