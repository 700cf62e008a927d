//! Outcomes of weaves of two operations, and the reference outcomes with which they are compared.

use std::collections::{BTreeMap, HashSet};

use tench_abi::layout::WATERMARK;
use tench_abi::{Error, Kind, Operation, Rights};
use tench_arch_host::Machine;
use tench_arch_host::check::Inventory;
use tench_arch_host::image::{Image, Regions};
use tench_arch_host::machine::{ARCHIVE, LARGE_DEVICE, RAM, RAM_MEDIUM};
use tench_arch_host::snapshot::snapshot;
use tench_arch_host::weave::{Call, End, Orders, Policy, Weave};
use tench_kernel::object::Ref;
use tench_kernel::slot::flag;
use tench_kernel::slot::payload::Ending;
use tench_kernel::thread::Thread;

use crate::world::{FORGOTTEN, Subject, World, apart, part, slots};

/// The results and the state after a weave.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// For each actor, how its calls ended.
    pub ends: Vec<Vec<End>>,
    /// The state, as text.
    pub state: String,
}

/// A world of some subjects, one actor each: its image, to which the machine is restored before each weave.
struct Start<'s> {
    subjects: &'s [&'s Subject],
    actors: Vec<Ref<Thread>>,
    regions: Regions,
    image: Image,
    /// The machine; `None` while a weave has it.
    machine: Option<Machine>,
}

impl<'s> Start<'s> {
    fn new(subjects: &'s [&'s Subject]) -> Start<'s> {
        let World { mut machine, actors } = world(subjects);
        let (regions, image) = machine.save_all();
        Start { subjects, actors, regions, image, machine: Some(machine) }
    }

    /// Returns a weave of the subjects.
    fn weave(&mut self) -> Weave {
        let mut machine = self.machine.take().expect("the last weave has ended");
        machine.restore_all(&self.regions, &self.image);
        begin(self.subjects, machine, &self.actors)
    }

    /// Ends a weave, and takes its machine back.
    fn end(&mut self, weave: Weave) {
        self.machine = Some(weave.machine);
    }

    /// Returns the outcome of a weave that has run.
    fn outcome(&self, weave: &mut Weave) -> Outcome {
        weave.machine.mark_ipc_buffers();
        outcome(weave, &self.actors)
    }
}

fn world(subjects: &[&Subject]) -> World {
    let parts = subjects.iter().fold(0, |parts, subject| parts | subject.parts);
    World::new(parts, subjects.len())
}

fn begin(subjects: &[&Subject], machine: Machine, actors: &[Ref<Thread>]) -> Weave {
    let calls = |(i, subject): (usize, &&Subject)| {
        let calls = (subject.calls)(i as u64).into_iter();
        if subject.parts & part::APART == 0 { calls.collect() } else { calls.map(apart).collect() }
    };
    let calls: Vec<Vec<Call>> = subjects.iter().enumerate().map(calls).collect();
    Weave::new(machine, actors.iter().copied().zip(calls).collect())
}

/// Returns a weave of some subjects, one actor each, and the actors.
pub fn weave(subjects: &[&Subject]) -> (Weave, Vec<Ref<Thread>>) {
    let World { machine, actors } = world(subjects);
    (begin(subjects, machine, &actors), actors)
}

/// Returns the outcome of a weave that has run.
pub fn outcome(weave: &mut Weave, actors: &[Ref<Thread>]) -> Outcome {
    let state = snapshot(weave.machine.kernel(), actors).expect("the state is consistent");
    Outcome { ends: weave.ends(), state }
}

/// Ends all exports directly in the kernel's state, because some exported capabilities lie where they cannot be named.
fn forget_copies(m: &mut Machine) {
    let k = m.kernel();
    let inventory = Inventory::take(k).expect("the tree is whole");
    for (slot, cap) in &inventory.slots {
        let now = &mut k.slot(*slot).cap;
        if cap.is_exported() {
            now.set_exported(false);
            if cap.kind == Kind::Untyped {
                now.rights |= Rights::WRITE.bits();
            }
        } else if cap.kind == Kind::CapNode && cap.flags & flag::ZOMBIE != 0 {
            // The node's record of exported capabilities in it.
            Ending::set_progress(now, 0);
        }
    }
}

/// Makes the driver revoke all memory, and make one object of each boot untyped.
pub fn delete_all(weave: &mut Weave) {
    let m = &mut weave.machine;
    forget_copies(m);
    for (untyped, bits) in [(RAM, 24), (RAM_MEDIUM, 22), (LARGE_DEVICE, 30), (ARCHIVE, 16)] {
        m.call(Operation::Revoke, &[0, untyped]).ok();
        assert_eq!(m.call(Operation::UntypedChildren, &[untyped]).ok()[1], 0, "nothing is left");
        let kind = Kind::Untyped as u64;
        m.call(Operation::UntypedRetype, &[untyped, kind, bits, 1, WATERMARK, 0, slots::SPARE]).ok();
        m.call(Operation::Delete, &[0, slots::SPARE]).ok();
    }
    m.check();
}

/// A reference run.
struct Known {
    /// Name of the run. `AB` and `BA`: one after the other. `A2B`: A stopped at its second step, and then B ran. `aB`,
    /// `Ba`: of A only the effect that remains if it fails after a preemption point.
    name: String,
    /// The actor that did not finish.
    cut: Option<usize>,
    /// Set if the cut operation failed, for whatever reason.
    refused: bool,
    outcome: Outcome,
}

/// The outcomes of a pair's undisturbed and stopped runs.
pub struct References {
    operations: [Option<Operation>; 2],
    known: Vec<Known>,
    /// Number of preemption points that each passes if undisturbed, running first.
    pub points: [usize; 2],
}

/// Returns a policy that runs `first` until it has come to `stop` preemption points or calls, and then the other.
fn policy(first: usize, stop: usize) -> Policy {
    let mut steps = 0;
    Box::new(move |moment| {
        let stopped = steps == stop;
        let wanted = if stopped { 1 - first } else { first };
        if moment.candidates.contains(&wanted) {
            steps += usize::from(!stopped);
            return Some(wanted);
        }
        // An actor that has finished makes room for the other; a stopped one does not continue.
        Some(1 - wanted).filter(|_| !stopped)
    })
}

/// Runs a pair with that policy. Returns the outcome, and the number of preemption points of `first`.
fn play(start: &mut Start<'_>, first: usize, stop: usize) -> (Outcome, usize) {
    let mut run = start.weave();
    run.run(policy(first, stop));
    let (outcome, points) = (start.outcome(&mut run), run.points()[first]);
    start.end(run);
    (outcome, points)
}

impl References {
    /// Plays the reference runs of a pair.
    pub fn of(pair: [&Subject; 2]) -> References {
        let mut references =
            References { operations: pair.map(|subject| subject.points), known: Vec::new(), points: [0; 2] };
        let mut start = Start::new(&pair);
        for first in 0..2 {
            let (outcome, points) = play(&mut start, first, usize::MAX);
            references.points[first] = points;
            references.add(["AB", "BA"][first], None, outcome);
            let steps = points + (pair[first].calls)(0).len();
            for stop in 0..steps {
                let (outcome, _) = play(&mut start, first, stop);
                references.add(&format!("{}{stop}{}", ["A", "B"][first], ["B", "A"][first]), Some(first), outcome);
            }
            if let Some(remainder) = pair[first].remainder() {
                let mut cut = pair;
                cut[first] = &remainder;
                let mut start = Start::new(&cut);
                for begins in 0..2 {
                    let name = [["aB", "Ba"], ["Ab", "bA"]][first][usize::from(begins != first)];
                    references.add(name, Some(first), play(&mut start, begins, usize::MAX).0);
                    references.known.last_mut().expect("added").refused = true;
                }
            }
        }
        references
    }

    fn add(&mut self, name: &str, cut: Option<usize>, outcome: Outcome) {
        self.known.push(Known { name: name.to_owned(), cut, refused: false, outcome });
    }

    /// Returns true if an outcome is that of one operation after the other.
    fn is_sequential(&self, outcome: &Outcome) -> bool {
        self.known.iter().any(|known| known.cut.is_none() && known.outcome == *outcome)
    }

    /// Returns true if an outcome is as described: the state is that of one operation after the other or of a run in
    /// which one stopped; each operation returned what it did there, or what it may return if it was disturbed.
    pub fn judge(&self, outcome: &Outcome) -> bool {
        self.is_sequential(outcome)
            || self.known.iter().any(|known| {
                known.outcome.state == outcome.state
                    && (0..2).all(|i| {
                        let same = known.outcome.ends[i] == outcome.ends[i] && known.cut != Some(i);
                        let refused = known.cut == Some(i) && known.refused && is_refused(&outcome.ends[i]);
                        same || refused || self.is_disturbed(i, &outcome.ends[i])
                    })
                    && self.counts_add_up(outcome)
            })
    }

    /// Returns true if an actor's operation returned what it may return if it was disturbed.
    fn is_disturbed(&self, actor: usize, ends: &[End]) -> bool {
        ends.iter().any(|end| match end {
            End::Never => true,
            End::Returned(result) if result.x[0] == FORGOTTEN => true,
            End::Returned(result) => match (error(result.x[0]), self.operations[actor]) {
                (Some(Error::Aborted | Error::InvalidCapability), _) => true,
                // Another thread has finished the deletion.
                (None, Some(Operation::Delete)) => result.x[1] == 0,
                // A revocation ends when its capability is deleted, and does not count what others delete.
                (None, Some(Operation::Revoke)) => true,
                // A revocation does not look again whether the exported capabilities that it passed are still there.
                (Some(Error::RemoteCopies), Some(Operation::Revoke)) => true,
                // Changes that others make meanwhile are counted before or after.
                (None, Some(Operation::UntypedChildren)) => self.is_between(actor, result.x[2]),
                _ => false,
            },
        })
    }

    /// Returns true if the byte count lies within the range of the undisturbed orders, or if nothing could be counted
    /// in one of them.
    fn is_between(&self, actor: usize, bytes: u64) -> bool {
        let ends = self.known.iter().flat_map(|known| &known.outcome.ends[actor]);
        let counts: Vec<u64> =
            ends.filter_map(|end| if let End::Returned(result) = end { Some(result.x[2]) } else { None }).collect();
        counts.iter().min().is_some_and(|least| *least <= bytes)
            && counts.iter().max().is_some_and(|most| bytes <= *most)
    }

    /// Returns true if two revocations that finish have deleted exactly as many as one after the other.
    fn counts_add_up(&self, outcome: &Outcome) -> bool {
        let count = |ends: &[End]| match ends {
            [End::Returned(result)] if result.x[0] == 0 => Some(result.x[1]),
            _ => None,
        };
        let sum = |outcome: &Outcome| Some(count(&outcome.ends[0])? + count(&outcome.ends[1])?);
        if self.operations != [Some(Operation::Revoke); 2] {
            return true;
        }
        let Some(total) = sum(outcome) else { return true };
        self.known.iter().any(|known| known.cut.is_none() && sum(&known.outcome).is_none_or(|sum| sum == total))
    }

    /// Returns a short description of an outcome.
    fn describe(&self, outcome: &Outcome) -> String {
        let found = self.known.iter().find(|known| known.outcome.state == outcome.state);
        let state = found.map_or("?", |known| known.name.as_str());
        format!("A {}, B {}, like {state}", describe(&outcome.ends[0]), describe(&outcome.ends[1]))
    }

    /// Returns the state of one operation after the other, for messages.
    fn sequential_state(&self) -> &str {
        &self.known[0].outcome.state
    }
}

/// Returns true if the last call failed.
fn is_refused(ends: &[End]) -> bool {
    matches!(ends.last(), Some(End::Returned(result)) if error(result.x[0]).is_some())
}

/// Returns the error that a code names.
fn error(code: u64) -> Option<Error> {
    if code == 0 || code == FORGOTTEN { None } else { Error::from_code(code) }
}

/// Returns a short description of ends.
fn describe(ends: &[End]) -> String {
    let one = |end: &End| match end {
        End::Never => "never".to_owned(),
        End::Returned(result) if result.x[0] == FORGOTTEN => "forgotten".to_owned(),
        End::Returned(result) => {
            error(result.x[0]).map_or_else(|| format!("{:x?}", &result.x[1..3]), |e| format!("{e:?}"))
        }
    };
    ends.iter().map(one).collect::<Vec<_>>().join("+")
}

/// The outcomes of all orders of a pair.
#[derive(Default)]
pub struct Explored {
    /// Number of orders.
    pub orders: usize,
    /// Number of orders with the outcome of one operation after the other.
    pub sequential: usize,
    /// Outcomes that were not as described: class, number, one of the sequences, and the difference of its state from
    /// that of A before B.
    pub strange: BTreeMap<String, (usize, Vec<usize>, String)>,
}

/// Plays all orders of a pair.
pub fn explore(pair: [&Subject; 2], references: &References) -> Explored {
    let mut explored = Explored::default();
    let mut seen = HashSet::new();
    let mut start = Start::new(&pair);
    let mut next = Some(Orders::default());
    while let Some(orders) = next {
        let shown = Shown { subjects: &pair, choices: orders.choices() };
        let mut run = start.weave();
        let orders = orders.play(&mut run);
        let outcome = start.outcome(&mut run);
        if references.is_sequential(&outcome) {
            explored.sequential += 1;
        } else if !references.judge(&outcome) {
            let difference = || difference(references.sequential_state(), &outcome.state);
            let class = explored.strange.entry(references.describe(&outcome));
            class.or_insert_with(|| (0, orders.choices(), difference())).0 += 1;
        }
        // Equal states end equally.
        if seen.insert(outcome) {
            delete_all(&mut run);
        }
        drop(shown);
        explored.orders += 1;
        assert!(explored.orders < 50_000, "{} and {} pass too many preemption points", pair[0].name, pair[1].name);
        next = orders.next();
        start.end(run);
    }
    explored
}

/// Returns the lines that are in only one of the texts.
fn difference(one: &str, other: &str) -> String {
    let lines = |text: &str, without: &str, mark: char| {
        let without: HashSet<&str> = without.lines().collect();
        text.lines().filter(|line| !without.contains(line)).map(|line| format!("  {mark} {line}\n")).collect::<String>()
    };
    lines(one, other, '-') + &lines(other, one, '+')
}

/// Prints which sequence was being played, if that fails.
pub struct Shown<'s> {
    /// The subjects.
    pub subjects: &'s [&'s Subject],
    /// Choices, as far as they were made before.
    pub choices: Vec<usize>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let names: Vec<&str> = self.subjects.iter().map(|subject| subject.name).collect();
            eprintln!("it was {names:?}, choices {:?}", self.choices);
        }
    }
}
