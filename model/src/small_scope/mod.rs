//! Every sequence of system calls in a [small universe](universe), breadth first.
//!
//! A state is stored as the steps that lead to it from one image of the universe, and as a number that is the same for
//! all states that are equal up to renaming. Each such state is checked once, with the checks of `tench_arch_host`.
//!
//! Neighbours: [`steps`] lists what can happen in a state; `tench_arch_host::canonical` numbers states.

pub mod steps;
pub mod universe;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashSet;
use tench_abi::fault::{Class, Report};
use tench_arch_host::check::check;
use tench_arch_host::image::Image;
use tench_kernel::kernel::NEVER;
use tench_kernel::{Ref, thread};

pub use steps::{Scope, Step};
pub use universe::Universe;

use crate::panic_message;

/// Maximum length of sequences.
pub const DEPTH: usize = 8;

/// Number of timer interrupts, greater than can be due at once.
const STORM: usize = 64;

/// The steps that lead to a state: for each, which thread made it and which step it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    steps: [(u8, u16); DEPTH],
    length: u8,
}

impl Path {
    fn then(mut self, step: (u8, u16)) -> Path {
        self.steps[usize::from(self.length)] = step;
        self.length += 1;
        self
    }

    fn steps(&self) -> &[(u8, u16)] {
        &self.steps[..usize::from(self.length)]
    }
}

/// Totals at one depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Number of states that no shorter sequence leads to.
    pub states: u64,
    /// Number of steps made to find them.
    pub steps: u64,
}

/// Progress of an exploration.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// Some of the states of the previous depth have been expanded by every call.
    Part {
        /// Number of calls that lead to the states found now.
        depth: usize,
        /// Number of states that were expanded.
        done: u64,
        /// Number of states to expand.
        of: u64,
    },
    /// All states that this many calls lead to are known.
    Level(usize, Level),
}

/// Progress through a frontier is reported in parts if it has more states than this.
const LARGE: u64 = 10_000;
/// Number of those parts.
const PARTS: u64 = 50;

/// An error that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Description of the error.
    pub wrong: String,
    /// The steps that lead to it.
    pub history: Vec<String>,
}

/// A universe that is being explored.
struct Explorer {
    universe: Universe,
    scope: Scope,
    /// The first state.
    origin: Image,
    /// The state whose successors are sought.
    here: Image,
    /// The state `here`, after the switch to the thread whose steps are made.
    turn: Image,
}

impl Explorer {
    fn new(scope: Scope) -> Explorer {
        let mut universe = Universe::new();
        let mut origin = Image::default();
        universe.machine.save(&universe.regions, &mut origin);
        Explorer { universe, scope, origin, here: Image::default(), turn: Image::default() }
    }

    /// Returns the threads that can do something, each with its steps.
    fn choices(&mut self) -> Vec<(u8, Ref<thread::Thread>, Vec<Step>)> {
        let slots = self.universe.slots();
        let callers = self.universe.callers();
        let mut choices: Vec<_> = Vec::new();
        for (i, thread) in callers.into_iter().enumerate() {
            let can_call = self.universe.machine.thread(thread).cspace_slots != 0;
            // Without capabilities no call succeeds.
            let mut steps = steps::steps(&slots, self.scope);
            steps.truncate(if can_call { usize::MAX } else { 3 });
            choices.push((i as u8, thread, steps));
        }
        if choices.is_empty() {
            // The core is idle, so only time can help.
            choices.push((0, self.universe.machine.kernel().state().idle, vec![Step::Wait]));
        }
        choices
    }

    /// Makes a thread the running one.
    fn give_turn(&mut self, thread: Ref<thread::Thread>) {
        let m = &mut self.universe.machine;
        if thread != m.kernel().state().idle {
            m.run(thread);
        }
    }

    /// Makes a step of the running thread.
    fn make(&mut self, step: Step) {
        let m = &mut self.universe.machine;
        match step {
            Step::Call(operation, registers) => {
                m.system_call(operation as u64, &registers);
            }
            Step::Fault => {
                m.fault(Report { class: Class::PageFault as u64, address: 0, instruction: 4, syndrome: 0x9200_0046 });
            }
            Step::Wait => {
                let timer = m.host().timer.filter(|timer| *timer != NEVER);
                let ticks = timer.map_or(0, |timer| timer.saturating_sub(m.host().time));
                m.host().time += ticks;
                let mut count = 0;
                while m.host().interrupted() {
                    m.interrupt_once();
                    count += 1;
                    assert!(count < STORM, "the timer fires for ever");
                }
            }
        }
        self.universe.forget_suspended();
    }

    /// Goes to the state to which a path leads. Returns the steps made.
    fn go(&mut self, path: &Path) -> Vec<(Ref<thread::Thread>, Step)> {
        self.universe.machine.restore(&self.universe.regions, &self.origin);
        let mut history = Vec::new();
        for (caller, number) in path.steps() {
            let choices = self.choices();
            let Some((_, thread, steps)) = choices.get(usize::from(*caller)) else { break };
            let Some(step) = steps.get(usize::from(*number)) else { break };
            history.push((*thread, *step));
            self.give_turn(*thread);
            self.make(*step);
        }
        history
    }

    /// Finds the successors of the state to which a path leads, and checks those whose numbers `visit` has not seen.
    fn expand(&mut self, path: &Path, mut visit: impl FnMut(u64, Path) -> bool) -> Result<u64, Finding> {
        self.go(path);
        let Explorer { universe, here, .. } = self;
        universe.machine.save(&universe.regions, here);
        let mut count = 0;
        for (caller, thread, steps) in self.choices() {
            self.universe.machine.restore(&self.universe.regions, &self.here);
            self.give_turn(thread);
            let Explorer { universe, turn, .. } = self;
            universe.machine.save(&universe.regions, turn);
            let unchanged = universe.number();
            for (number, step) in steps.into_iter().enumerate() {
                count += 1;
                let next = path.then((caller, number as u16));
                let result =
                    catch_unwind(AssertUnwindSafe(|| self.try_step(thread, step, unchanged, next, &mut visit)));
                let wrong = match result {
                    Ok(Ok(())) => continue,
                    Ok(Err(wrong)) => wrong,
                    Err(payload) => panic_message(payload.as_ref()),
                };
                return Err(Finding { wrong, history: self.describe(&next) });
            }
        }
        Ok(count)
    }

    /// Makes a step of the thread whose turn it is, checks the resulting state if it is new, and undoes the step. The
    /// number of a state that a call leaves unchanged is known.
    fn try_step(
        &mut self,
        thread: Ref<thread::Thread>,
        step: Step,
        unchanged: u64,
        next: Path,
        mut visit: impl FnMut(u64, Path) -> bool,
    ) -> Result<(), String> {
        self.make(step);
        let Explorer { universe, turn, .. } = self;
        let is_unchanged = universe.machine.is_unchanged(&universe.regions, turn, thread);
        let number = if is_unchanged { unchanged } else { universe.number() };
        if visit(number, next) {
            check(universe.machine.kernel())?;
        }
        if is_unchanged {
            universe.machine.restore_registers(&universe.regions, turn, thread);
        } else {
            universe.machine.restore(&universe.regions, turn);
        }
        Ok(())
    }

    /// Returns the steps of a path, the last of which went wrong.
    fn describe(&self, path: &Path) -> Vec<String> {
        // The machine of this explorer is broken.
        let mut fresh = Explorer::new(self.scope);
        let before = Path { length: path.length - 1, ..*path };
        let mut history = fresh.go(&before);
        let (caller, number) = path.steps[usize::from(before.length)];
        let choices = fresh.choices();
        if let Some((_, thread, steps)) = choices.get(usize::from(caller)) {
            history.push((*thread, steps[usize::from(number)]));
        }
        let base = fresh.universe.ours.start;
        let describe = |(thread, step): (Ref<thread::Thread>, Step)| {
            let who = thread.address().wrapping_sub(base);
            match step {
                Step::Call(operation, x) => {
                    format!("thread +{who:x}: {} {:x?} … {:x?}", operation.name(), &x[..7], &x[11..])
                }
                other => format!("thread +{who:x}: {other:?}"),
            }
        };
        history.into_iter().map(describe).collect()
    }
}

/// Makes every sequence of up to `depth` steps, by `workers` threads. Calls `report` with the progress.
///
/// # Errors
/// Fails with an inconsistent state, and the steps that lead to it. No shorter sequence leads to one.
pub fn explore(
    scope: Scope,
    depth: usize,
    workers: usize,
    report: impl Fn(Progress) + Sync,
) -> Result<Vec<Level>, Finding> {
    assert!(depth <= DEPTH, "sequences of {depth} steps");
    let mut frontier = vec![Path::default()];
    let mut seen = FxHashSet::from_iter([Explorer::new(scope).universe.number()]);
    let mut levels = Vec::new();
    for at in 1..=depth {
        let (of, done) = (frontier.len() as u64, AtomicU64::new(0));
        let tick = || {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if of > LARGE && done.is_multiple_of(of / PARTS) {
                report(Progress::Part { depth: at, done, of });
            }
        };
        let (level, found) = advance(scope, &frontier, &seen, workers, at == depth, tick)?;
        report(Progress::Level(at, level));
        levels.push(level);
        frontier = found.iter().map(|(_, path)| *path).collect();
        seen.extend(found.into_iter().map(|(number, _)| number));
    }
    Ok(levels)
}

/// States by number, with one path to each.
type Found = Vec<(u64, Path)>;

/// Makes one step from each state of the frontier. For the last depth the paths need not be known. Calls `tick` when a
/// state of the frontier is done.
fn advance(
    scope: Scope,
    frontier: &[Path],
    seen: &FxHashSet<u64>,
    workers: usize,
    is_last: bool,
    tick: impl Fn() + Sync,
) -> Result<(Level, Found), Finding> {
    let tick = &tick;
    let parts = std::thread::scope(|threads| {
        let work = |worker: usize| {
            threads.spawn(move || {
                let mut explorer = Explorer::new(scope);
                let (mut new, mut found, mut steps) = (FxHashSet::default(), Found::new(), 0);
                for path in frontier.iter().skip(worker).step_by(workers) {
                    steps += explorer.expand(path, |number, next| {
                        let is_new = !seen.contains(&number) && new.insert(number);
                        if is_new && !is_last {
                            found.push((number, next));
                        }
                        is_new
                    })?;
                    tick();
                }
                Ok((new, found, steps))
            })
        };
        let workers: Vec<_> = (0..workers).map(work).collect();
        workers.into_iter().map(|worker| worker.join().expect("panics are caught")).collect::<Vec<_>>()
    });
    let (mut level, mut all, mut found) = (Level::default(), FxHashSet::default(), Found::new());
    for part in parts {
        let (new, paths, steps): (FxHashSet<u64>, Found, u64) = part?;
        level.steps += steps;
        found.extend(paths.into_iter().filter(|(number, _)| !all.contains(number)));
        if all.is_empty() { all = new } else { all.extend(new) }
    }
    level.states = all.len() as u64;
    Ok((level, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a step found to change nothing would get the number that is known, and that each step is undone
    /// completely.
    #[test]
    fn equal_states_have_the_same_number() {
        let mut e = Explorer::new(Scope::All);
        let origin = e.universe.number();
        let (mut changed, mut unchanged) = (0, 0);
        for (_, thread, steps) in e.choices() {
            e.universe.machine.restore(&e.universe.regions, &e.origin);
            e.give_turn(thread);
            let Explorer { universe, turn, .. } = &mut e;
            universe.machine.save(&universe.regions, turn);
            let number = universe.number();
            for step in steps {
                e.make(step);
                let Explorer { universe, turn, .. } = &mut e;
                if universe.machine.is_unchanged(&universe.regions, turn, thread) {
                    unchanged += 1;
                    assert_eq!(universe.number(), number, "{step:?}");
                    universe.machine.restore_registers(&universe.regions, turn, thread);
                } else {
                    changed += 1;
                    universe.machine.restore(&universe.regions, turn);
                }
                assert_eq!(universe.number(), number, "{step:?} is not taken back");
            }
        }
        e.universe.machine.restore(&e.universe.regions, &e.origin);
        assert_eq!(e.universe.number(), origin);
        assert!(changed > 100 && unchanged > 100, "{changed} steps change something, {unchanged} nothing");
    }
}
