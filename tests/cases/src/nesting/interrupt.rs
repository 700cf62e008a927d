//! Tests of columns 5 and 6: interrupts in the handler of another interrupt, and on an idle kernel.
//!
//! Two interrupts are pending at once when a level-triggered line is acknowledged while a deadline passes: both wait
//! for the end of that system call. The timer is handled first; it wakes more threads than one batch, so it lets the
//! line's interrupt in between.

use tench::abi::Operation;
use tench::abi::object::{Statistic, ThreadState};
use tench::memory::Window;
use tench::println;
use tench::sys::{Cap, Error, Instant, Interrupt, Notification, Thread, Trigger};

use super::{Drill, MAIN, depth, preemptible, preserved};
use crate::case::Outcome;
use crate::kernel::{CONTROL, RTC, STACK_BOUND, quiet, raise_alarm};
use crate::registers::{CALL, Given, dump, fill, pattern, run, vectors};
use crate::space::RW;
use crate::stage::{HIGH, KERNEL, LOW, RTC_LINE, Stage};
use crate::worker::{Equipment, Shared, Worker};

/// Threads with the same deadline: more than one batch of the timer's handler.
const SLEEPERS: usize = 6;
/// Ticks over which the deadline is moved, one by one. The line is acknowledged somewhere in the middle.
const AROUND: u64 = 110;
/// Ticks up to which the deadline is moved further, in larger steps: until it passes after the driver has looked at all
/// sleepers.
const FAR: u64 = 2500;
const STEP: usize = 100;
/// Words: the sleepers' deadline; whether the driver looks; what it saw; errors in the drill, in the driver; how often
/// an interrupt came while the driver looked.
const DEADLINE: usize = 0;
const LOOKING: usize = 1;
const SEEN: usize = 2;
const WRONG: usize = 3;
const WRONG_REGISTERS: usize = 4;
const AGAIN: usize = 5;

/// A drill that acknowledges an asserted line, a driver that waits for the line, and sleepers.
struct Nest {
    drill: Drill,
    driver: Worker<()>,
    sleepers: [Worker<()>; SLEEPERS],
    /// Notification that sends the sleepers to sleep, one by one.
    bed: Cap<Notification>,
    line: Cap<Interrupt>,
    clock: Window,
}

/// Observations of one round, in which the drill acknowledged the line.
#[derive(Clone, Copy)]
struct Round {
    /// Interrupts taken while another was being handled.
    nested: u64,
    /// Sleepers not yet woken when the driver ran.
    asleep: u64,
    /// Increase of the greatest stack depth of the drill.
    deeper: u64,
}

/// Returns the registers with which the drill acknowledges the line.
fn given(line: Cap<Interrupt>) -> Given {
    let mut given = pattern(41);
    given[0] = u64::from(line.address().0);
    given[10] = Operation::InterruptAcknowledge as u64;
    given
}

/// Spawns a thread that sleeps until the common deadline whenever it is told to.
fn sleeper(stage: &mut Stage, bed: Cap<Notification>) -> Outcome<Worker<()>> {
    let (never, deadline) = (stage.notification()?, Shared::existing(DEADLINE));
    stage.spawn(move || {
        while bed.wait().is_ok() {
            let _ = never.wait_until(Instant::from_ticks(deadline.get()));
        }
    })
}

/// Returns how many of these threads sleep, at one moment: the count is repeated if an interrupt comes meanwhile.
fn look(threads: &[Cap<Thread>]) -> u64 {
    loop {
        let interrupts = KERNEL.query(Statistic::Interrupts);
        let is_asleep = |thread: &&Cap<Thread>| thread.query().is_ok_and(|info| info.state == ThreadState::Waiting);
        let asleep = threads.iter().filter(is_asleep).count();
        if KERNEL.query(Statistic::Interrupts) == interrupts {
            return asleep as u64;
        }
        Shared::existing(AGAIN).fetch_add();
    }
}

impl Nest {
    fn new(stage: &mut Stage) -> Outcome<Nest> {
        for word in [DEADLINE, LOOKING, SEEN, WRONG, WRONG_REGISTERS, AGAIN] {
            stage.word(word)?;
        }
        let (bed, notification, place) = (stage.notification()?, stage.notification()?, stage.slot());
        let line = CONTROL.get(RTC_LINE, Trigger::Level, place)?;
        line.bind(Some(notification))?;
        let mut sleepers = [None; SLEEPERS];
        for place in &mut sleepers {
            *place = Some(sleeper(stage, bed)?);
        }
        let sleepers = sleepers.map(|sleeper| sleeper.unwrap_or_else(|| unreachable!("all were made")));
        let drill = Drill::stopped(stage, Equipment::at(LOW), move || {
            let given = given(line);
            fill(&vectors(3));
            let found = run(&given, CALL);
            if found[..11] != [0; 11] || !preserved(&given, &found) || dump() != vectors(3) {
                Shared::existing(WRONG).fetch_add();
            }
        })?;
        let (threads, drilled) = (sleepers.map(|sleeper| sleeper.thread), drill.worker.thread);
        let driver = stage.spawn_with(Equipment::at(HIGH + 10), move || {
            while notification.wait().is_ok() {
                if Shared::existing(LOOKING).get() == 0 {
                    continue;
                }
                Shared::existing(SEEN).set(look(&threads));
                // The drill is behind its system call, whose result is in its registers.
                let given = given(line);
                let right = drilled.read_registers(true).is_ok_and(|found| {
                    found.x[..19] == [0; 19] && found.x[19..] == given[19..31] && found.thread_pointer == given[31]
                });
                if !right || drilled.resume().is_err() {
                    Shared::existing(WRONG_REGISTERS).fetch_add();
                }
            }
        })?;
        let clock = Window::new(RTC, 12, RW)?;
        raise_alarm(&clock);
        drill.worker.thread.resume()?;
        drill.warm_up()?;
        Ok(Nest { drill, driver, sleepers, bed, line, clock })
    }

    /// Lets the drill acknowledge the line at about the time of the sleepers' deadline: `ticks` after the drill is told
    /// to, which then begins `late` instructions later.
    fn round(&self, late: u64, ticks: u64) -> Outcome<Round> {
        let before = (KERNEL.query(Statistic::NestedInterrupts)?, depth(self.drill.worker.thread)?);
        // Long enough for all of them to fall asleep.
        let deadline = Instant::now().after(8000);
        Shared::existing(DEADLINE).set(deadline.ticks());
        for _ in 0..SLEEPERS {
            self.bed.signal()?;
        }
        Shared::existing(LOOKING).set(1);
        Shared::existing(SEEN).set(u64::MAX);
        self.drill.late.set(late);
        fill(&vectors(ticks | 1));
        while deadline.ticks() > Instant::now().ticks() + ticks {
            core::hint::spin_loop();
        }
        self.drill.warm_up()?;
        check!(dump() == vectors(ticks | 1));
        // The sleepers, too, are back where they were.
        while Instant::now() <= deadline {
            core::hint::spin_loop();
        }
        for sleeper in &self.sleepers {
            equal!(sleeper.state()?, ThreadState::Waiting);
        }
        Shared::existing(LOOKING).set(0);
        equal!(self.driver.state()?, ThreadState::Waiting);
        Ok(Round {
            nested: KERNEL.query(Statistic::NestedInterrupts)? - before.0,
            asleep: Shared::existing(SEEN).get(),
            deeper: depth(self.drill.worker.thread)? - before.1,
        })
    }

    /// Runs rounds at all ticks, from a deadline long before the acknowledgement to one long after it. Calls `what`
    /// after each, and checks at last that both interrupts were pending at once in some.
    fn sweep(self, mut what: impl FnMut(&Nest, Round) -> Outcome) -> Outcome {
        let (mut nested, mut before, mut after) = (0, 0, 0);
        for tick in 0..AROUND {
            let round = self.round(tick * 7, tick)?;
            nested += round.nested;
            before += u64::from(round.nested == 0 && round.asleep == 0);
            after += u64::from(round.nested == 0 && round.asleep == SLEEPERS as u64);
            what(&self, round)?;
        }
        check!(before > 0 && after > 0);
        equal!(nested > 0, preemptible()?);
        equal!([WRONG, WRONG_REGISTERS].map(|word| Shared::existing(word).get()), [0, 0]);
        quiet(&self.clock);
        self.line.delete()?;
        Ok(())
    }
}

pub fn stack(stage: &mut Stage) -> Outcome {
    let nest = Nest::new(stage)?;
    // The stack depths that the others need, and the drill if the interrupts come one at a time.
    nest.round(0, AROUND)?;
    nest.round(0, 0)?;
    let others = nest.sleepers.map(|sleeper| depth(sleeper.thread));
    let (alone, mut deeper) = (depth(nest.drill.worker.thread)?, 0);
    nest.sweep(|nest, round| {
        if round.nested > 0 {
            deeper += round.deeper;
        }
        for (sleeper, before) in nest.sleepers.iter().zip(others) {
            equal!(depth(sleeper.thread), before);
        }
        let used = depth(nest.drill.worker.thread)?;
        check!(used < STACK_BOUND);
        Ok(())
    })?;
    // The second interrupt's handler ran below the first one's on the stack.
    equal!(deeper > 0, preemptible()?);
    let deepest = KERNEL.query(Statistic::DeepestNesting)?;
    println!(
        "  stack with one interrupt in user mode: {alone} bytes; with most at once ({deepest}): {} bytes",
        alone + deeper
    );
    equal!(deepest, if preemptible()? { 2 } else { 1 });
    Ok(())
}

pub fn saved(stage: &mut Stage) -> Outcome {
    // The driver has checked the drill's registers in each round.
    Nest::new(stage)?.sweep(|_, round| {
        check!(round.asleep <= SLEEPERS as u64);
        equal!(Shared::existing(WRONG_REGISTERS).get(), 0);
        Ok(())
    })
}

pub fn switched(stage: &mut Stage) -> Outcome {
    let nest = Nest::new(stage)?;
    let (mut meanwhile, mut later) = (0, 0);
    for ticks in (AROUND..FAR).step_by(STEP) {
        let again = Shared::existing(AGAIN).get();
        let asleep = nest.round(0, ticks)?.asleep;
        // A deadline that passes while the driver looks wakes all of them, too.
        check!(asleep == 0 || asleep == SLEEPERS as u64);
        let is_disturbed = Shared::existing(AGAIN).get() > again;
        meanwhile += u64::from(is_disturbed && asleep == 0);
        later += u64::from(!is_disturbed && asleep > 0);
    }
    check!(meanwhile > 0 && later > 0);
    nest.sweep(|_, round| {
        // The line's interrupt came before some sleepers were woken, but its driver ran after that, although it has the
        // highest priority.
        check!(round.nested == 0 || round.asleep == 0);
        // One at a time: all of them were woken, or none.
        check!(round.asleep == 0 || round.asleep == SLEEPERS as u64);
        Ok(())
    })
}

pub fn restored(stage: &mut Stage) -> Outcome {
    let mut rounds = 0;
    Nest::new(stage)?.sweep(|_, _| {
        rounds += 1;
        equal!(Shared::existing(WRONG).get(), 0);
        Ok(())
    })?;
    equal!(rounds, AROUND);
    Ok(())
}

// ── Nobody runs ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Sleeps while all other threads sleep. Returns by how many ticks it woke late, and for how many the kernel idled.
fn idle(never: Cap<Notification>, ticks: u64) -> Outcome<(u64, u64)> {
    let before = KERNEL.query(Statistic::IdleTicks)?;
    let deadline = Instant::now().after(ticks);
    refused!(never.wait_until(deadline), TimedOut);
    let late = Instant::now().since(deadline);
    Ok((late, KERNEL.query(Statistic::IdleTicks)? - before))
}

/// Ticks within which a thread runs that was woken on an idle kernel.
const PROMPT: u64 = 150;

pub fn idle_stack(stage: &mut Stage) -> Outcome {
    let never = stage.notification()?;
    let other = stage.spawn(move || never.wait().is_ok())?;
    idle(never, 500)?;
    depth(MAIN)?;
    let before = (depth(MAIN)?, depth(other.thread)?);
    let interrupts = KERNEL.query(Statistic::Interrupts)?;
    for _ in 0..50 {
        check!(idle(never, 500)?.1 > 300);
    }
    check!(KERNEL.query(Statistic::Interrupts)? >= interrupts + 50);
    equal!((depth(MAIN)?, depth(other.thread)?), before);
    Ok(())
}

pub fn idle_saved(stage: &mut Stage) -> Outcome {
    let (never, notification) = (stage.notification()?, stage.notification()?);
    // A waiting system call; the registers that it preserves lie in the thread meanwhile.
    let other = stage.spawn(move || {
        let mut given = pattern(43);
        (given[0], given[1]) = (u64::from(notification.address().0), 0);
        given[10] = Operation::Receive as u64;
        fill(&vectors(13));
        let found = run(&given, CALL);
        found[0] == 0 && found[10] == 1 && preserved(&given, &found) && dump() == vectors(13)
    })?;
    equal!(other.state()?, ThreadState::Waiting);
    fill(&vectors(14));
    for _ in 0..50 {
        check!(idle(never, 500)?.1 > 300);
        check!(dump() == vectors(14));
    }
    notification.signal()?;
    check!(other.join()?);
    Ok(())
}

pub fn idle_switched(stage: &mut Stage) -> Outcome {
    let (never, order) = (stage.notification()?, stage.word(0)?);
    let deadline = Instant::now().after(6000);
    let mut workers = [None; 6];
    for (worker, place) in workers.iter_mut().zip([2u64, 0, 5, 1, 4, 3]) {
        *worker = Some(stage.spawn(move || {
            let deadline = deadline.after(place * 400);
            let ended = never.wait_until(deadline) == Err(Error::TimedOut);
            (ended, order.fetch_add() == place, Instant::now().since(deadline))
        })?);
    }
    let switches = KERNEL.query(Statistic::Switches)?;
    check!(idle(never, 12_000)?.1 > 6000);
    check!(KERNEL.query(Statistic::Switches)? >= switches + 6);
    for worker in workers.into_iter().flatten() {
        let (ended, in_turn, late) = worker.join()?;
        check!(ended && in_turn && late < PROMPT);
    }
    Ok(())
}

pub fn idle_goes_on(stage: &mut Stage) -> Outcome {
    let never = stage.notification()?;
    let (mut shortest, mut longest, mut latest) = (u64::MAX, 0, 0);
    for late in 0..16 {
        for ticks in 0..120 {
            // SAFETY: the number is below 16.
            unsafe { crate::assembly::delay(late) };
            let (late, idle) = idle(never, ticks)?;
            (shortest, longest) = (shortest.min(idle), longest.max(idle));
            latest = latest.max(late);
        }
    }
    check!(latest < PROMPT);
    // Some deadlines passed before the kernel could idle, and were met at once; others after it.
    println!("  woken while nobody ran: after {latest} ticks at most; idle for {shortest} to {longest} ticks");
    check!(longest > shortest + 40);
    Ok(())
}
