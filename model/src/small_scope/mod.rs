//! Every sequence of system calls in a [small universe](universe), breadth first.
//!
//! A state is remembered by the steps that lead to it, from one image of the universe, and by a number that is the same for all
//! states that are equal up to renaming. Each such state is checked once, with the checks of `tench_arch_host`.
//!
//! Neighbours: [`steps`] says what can happen in a state; `tench_arch_host::canonical` numbers states.

pub mod steps;
pub mod universe;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tench_abi::fault::{Class, Report};
use tench_arch_host::check::check;
use tench_arch_host::image::Image;
use tench_kernel::kernel::NEVER;
use tench_kernel::{Ref, thread};

pub use steps::{Scope, Step};
pub use universe::Universe;

/// Longest sequences.
pub const DEPTH: usize = 8;

/// More timer interrupts than can be due at once.
const STORM: usize = 64;

/// The steps that lead to a state: for each, who made it and which it was.
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

/// What was found at one depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// States that no shorter sequence leads to.
    pub states: u64,
    /// Steps made to find them.
    pub steps: u64,
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub wrong: String,
    /// The steps that lead there.
    pub history: Vec<String>,
}

/// A universe that is being explored.
struct Explorer {
    universe: Universe,
    scope: Scope,
    /// The state at first.
    origin: Image,
    /// The state whose successors are sought.
    here: Image,
}

impl Explorer {
    fn new(scope: Scope) -> Explorer {
        let mut universe = Universe::new();
        let mut origin = Image::default();
        universe.machine.save(&universe.regions, &mut origin);
        Explorer { universe, scope, origin, here: Image::default() }
    }

    /// Who can do something, and what.
    fn choices(&mut self) -> Vec<(u8, Ref<thread::Thread>, Vec<Step>)> {
        let slots = self.universe.slots();
        let callers = self.universe.callers();
        let mut choices: Vec<_> = Vec::new();
        for (i, thread) in callers.into_iter().enumerate() {
            let can_call = self.universe.machine.thread(thread).space_slots != 0;
            // Without capabilities nothing succeeds.
            let mut steps = steps::steps(&slots, self.scope);
            steps.truncate(if can_call { usize::MAX } else { 3 });
            choices.push((i as u8, thread, steps));
        }
        if choices.is_empty() {
            // Nobody runs, so nothing but time can help.
            choices.push((0, self.universe.machine.kernel().state().idle, vec![Step::Wait]));
        }
        choices
    }

    /// Makes a step.
    fn make(&mut self, thread: Ref<thread::Thread>, step: Step) {
        let m = &mut self.universe.machine;
        if thread != m.kernel().state().idle {
            m.run(thread);
        }
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

    /// Goes where a path leads. Returns what was done.
    fn go(&mut self, path: &Path) -> Vec<(Ref<thread::Thread>, Step)> {
        self.universe.machine.restore(&self.universe.regions, &self.origin);
        let mut history = Vec::new();
        for (caller, number) in path.steps() {
            let choices = self.choices();
            let Some((_, thread, steps)) = choices.get(usize::from(*caller)) else { break };
            let Some(step) = steps.get(usize::from(*number)) else { break };
            history.push((*thread, *step));
            self.make(*thread, *step);
        }
        history
    }

    /// The successors of the state to which a path leads, of those whose numbers `visit` has not seen.
    fn expand(&mut self, path: &Path, mut visit: impl FnMut(u64, Path) -> bool) -> Result<u64, Finding> {
        self.go(path);
        let Explorer { universe, here, .. } = self;
        universe.machine.save(&universe.regions, here);
        let mut count = 0;
        for (caller, thread, steps) in self.choices() {
            for (number, step) in steps.into_iter().enumerate() {
                count += 1;
                let next = path.then((caller, number as u16));
                let result = catch_unwind(AssertUnwindSafe(|| {
                    self.make(thread, step);
                    let number = self.universe.number();
                    if visit(number, next) { check(&mut self.universe.machine.kernel()) } else { Ok(()) }
                }));
                let wrong = match result {
                    Ok(Ok(())) => {
                        self.universe.machine.restore(&self.universe.regions, &self.here);
                        continue;
                    }
                    Ok(Err(wrong)) => wrong,
                    Err(payload) => panic_message(payload.as_ref()),
                };
                return Err(Finding { wrong, history: self.tell(&next) });
            }
        }
        Ok(count)
    }

    /// The steps of a path, the last of which went wrong.
    fn tell(&self, path: &Path) -> Vec<String> {
        // This machine is broken.
        let mut fresh = Explorer::new(self.scope);
        let before = Path { length: path.length - 1, ..*path };
        let mut history = fresh.go(&before);
        let (caller, number) = path.steps[usize::from(before.length)];
        let choices = fresh.choices();
        if let Some((_, thread, steps)) = choices.get(usize::from(caller)) {
            history.push((*thread, steps[usize::from(number)]));
        }
        let base = fresh.universe.ours.start;
        let tell = |(thread, step): (Ref<thread::Thread>, Step)| {
            let who = thread.address().wrapping_sub(base);
            match step {
                Step::Call(operation, x) => {
                    format!("thread +{who:x}: {} {:x?} … {:x?}", operation.name(), &x[..7], &x[11..])
                }
                other => format!("thread +{who:x}: {other:?}"),
            }
        };
        history.into_iter().map(tell).collect()
    }
}

/// What a panic says.
fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

/// Makes every sequence of up to `depth` steps, by `workers` threads. `report` is told of each level.
///
/// # Errors
/// A state that is inconsistent, and how it came about. No shorter sequence leads to one.
pub fn explore(
    scope: Scope,
    depth: usize,
    workers: usize,
    mut report: impl FnMut(usize, Level),
) -> Result<Vec<Level>, Finding> {
    assert!(depth <= DEPTH, "sequences of {depth} steps");
    let mut frontier = vec![Path::default()];
    let mut seen = HashSet::from([Explorer::new(scope).universe.number()]);
    let mut levels = Vec::new();
    for at in 1..=depth {
        let (level, found) = advance(scope, &frontier, &seen, workers, at == depth)?;
        report(at, level);
        levels.push(level);
        frontier = found.iter().map(|(_, path)| *path).collect();
        seen.extend(found.into_iter().map(|(number, _)| number));
    }
    Ok(levels)
}

/// States by number, with one path to each.
type Found = Vec<(u64, Path)>;

/// One step more than the frontier. Of the last, what leads to them need not be known.
fn advance(
    scope: Scope,
    frontier: &[Path],
    seen: &HashSet<u64>,
    workers: usize,
    is_last: bool,
) -> Result<(Level, Found), Finding> {
    let parts = std::thread::scope(|threads| {
        let work = |worker: usize| {
            threads.spawn(move || {
                let mut explorer = Explorer::new(scope);
                let (mut new, mut found, mut steps) = (HashSet::new(), Found::new(), 0);
                for path in frontier.iter().skip(worker).step_by(workers) {
                    steps += explorer.expand(path, |number, next| {
                        let is_new = !seen.contains(&number) && new.insert(number);
                        if is_new && !is_last {
                            found.push((number, next));
                        }
                        is_new
                    })?;
                }
                Ok((new, found, steps))
            })
        };
        let workers: Vec<_> = (0..workers).map(work).collect();
        workers.into_iter().map(|worker| worker.join().expect("panics are caught")).collect::<Vec<_>>()
    });
    let (mut level, mut all, mut found) = (Level::default(), HashSet::new(), Found::new());
    for part in parts {
        let (new, paths, steps): (HashSet<u64>, Found, u64) = part?;
        level.steps += steps;
        found.extend(paths.into_iter().filter(|(number, _)| !all.contains(number)));
        if all.is_empty() { all = new } else { all.extend(new) }
    }
    level.states = all.len() as u64;
    Ok((level, found))
}
