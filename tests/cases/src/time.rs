//! Tests of time: never early, late by little, in order; and of the share of time in which the kernel idles.

use tench::abi::object::Statistic;
use tench::clock::protocol::{Error as ClockError, Event, TICKS_PER_SECOND};
use tench::clock::{Clock, Failure as ClockFailure};
use tench::names::Names;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::sys::time::ticks;
use tench::sys::{Cap, Endpoint, Error, Instant, InterruptControl, Notification, Trigger};
use tench::time::{self, Duration, Periodic, frequency};
use tench::{memory, println};

use crate::case::{Case, Failure, Outcome};
use crate::kernel::{CONTROL, quiet, raise_alarm, rtc};
use crate::stage::{HIGH, KERNEL, LOW, RTC_LINE, Stage};
use crate::worker::{Equipment, MOMENT, patience, soon};

pub const CASES: &[Case] = &[
    Case::new("TIM0001", "a delay is never early, and late by little", delays),
    Case::new("TIM0002", "a time that is past is none", past),
    Case::new("TIM0003", "the end of time comes without an overflow, and never", end_of_time),
    Case::new("TIM0004", "all who wait for the same time go on then", same_time),
    Case::new("TIM0005", "who is killed while he waits is forgotten", killed),
    Case::new("TIM0006", "the clock's delays are never early either, and end in order", clock_delays),
    Case::new("TIM0007", "an event ends a wait, and so does its deadline", events),
    Case::new("TIM0008", "an interrupt is an event", interrupts),
    Case::new("TIM0009", "periods do not drift, and those that are missed are counted", periods),
    Case::new("TIM0010", "the idle share is what nobody has used", idle_share),
    Case::new("TIM0011", "a program in C has time and events", in_c),
    Case::new("TIM0012", "without the machine's clock nobody knows the date", no_date),
];

/// Ticks by which a thread may be late that no higher priority holds up: 4 µs, in which 4,000 instructions are
/// executed.
const LATE: u64 = 250;
/// Ticks by which such a thread may be late if it waits through the clock server.
const LATE_BY_CLOCK: u64 = 1_000;

/// Checks that a wait from `begin` until `deadline` was right, and returns by how much it was late.
fn judge(deadline: Instant, bound: u64) -> Outcome<u64> {
    let end = Instant::now();
    check!(end >= deadline);
    check!(end.since(deadline) <= bound);
    Ok(end.since(deadline))
}

/// Durations of every size.
const NANOSECONDS: [u64; 8] = [0, 1, 17, 999, 20_000, 123_456, 1_000_000, 3_999_999];

fn delays(_: &mut Stage) -> Outcome {
    // The first wait allocates what later ones use.
    time::sleep(Duration::ZERO);
    let mut latest = 0;
    for nanoseconds in NANOSECONDS {
        let duration = Duration::from_nanos(nanoseconds);
        let begin = Instant::now();
        time::sleep(duration);
        latest = latest.max(judge(begin.after(ticks(duration, frequency())), LATE)?);
        let deadline = time::deadline(duration);
        time::sleep_until(deadline);
        latest = latest.max(judge(deadline, LATE)?);
    }
    println!("note: delays end {latest} ticks late at most");
    Ok(())
}

fn past(stage: &mut Stage) -> Outcome {
    let (never, idle) = (stage.notification()?, KERNEL.query(Statistic::IdleTicks)?);
    for deadline in [0, 1, Instant::now().ticks() - 1, Instant::now().ticks()] {
        let begin = Instant::now();
        time::sleep_until(Instant::from_ticks(deadline));
        judge(begin, LATE)?;
    }
    // It does not even check whether other threads are ready.
    equal!(KERNEL.query(Statistic::IdleTicks)?, idle);
    for deadline in [0, 1, Instant::now().ticks() - 1, Instant::now().ticks()] {
        let begin = Instant::now();
        refused!(never.wait_until(Instant::from_ticks(deadline)), TimedOut);
        judge(begin, LATE)?;
    }
    Ok(())
}

fn end_of_time(stage: &mut Stage) -> Outcome {
    equal!(time::deadline(Duration::MAX).ticks(), u64::MAX);
    equal!(Instant::now().after(u64::MAX).ticks(), u64::MAX);
    let never = stage.notification()?;
    for (index, deadline) in [u64::MAX, u64::MAX - 1, 1 << 63, i64::MAX as u64].into_iter().enumerate() {
        let waiter = stage.spawn(move || never.wait_until(Instant::from_ticks(deadline)))?;
        time::sleep(Duration::from_micros(100));
        check!(!waiter.has_ended());
        // Longer waits do not hold up shorter ones.
        let short = stage.spawn(move || never.wait_until(soon()))?;
        equal!(short.join()?, Err(Error::TimedOut));
        never.signal()?;
        equal!((index, waiter.join()?), (index, Ok(1)));
    }
    Ok(())
}

fn same_time(stage: &mut Stage) -> Outcome {
    let deadline = Instant::now().after(12 * MOMENT);
    let mut waiters = alloc::vec::Vec::new();
    for priority in [LOW, LOW, HIGH, LOW, HIGH] {
        let never = stage.notification()?;
        waiters.push(stage.spawn_with(Equipment::at(priority), move || (never.wait_until(deadline), Instant::now()))?);
        // This thread waits before the next one does.
        crate::worker::pause(stage)?;
    }
    check!(Instant::now() < deadline);
    for waiter in waiters {
        let (result, end) = waiter.join()?;
        equal!(result, Err(Error::TimedOut));
        check!(end >= deadline && end.since(deadline) <= 4 * LATE);
    }
    Ok(())
}

fn killed(stage: &mut Stage) -> Outcome {
    let (never, word) = (stage.notification()?, stage.word(0)?);
    let deadlines = [1, 2, 3].map(|moments| Instant::now().after(moments * MOMENT));
    let waiters = deadlines.map(|deadline| {
        stage.spawn(move || {
            let result = never.wait_until(deadline);
            word.fetch_add();
            result
        })
    });
    let [first, second, third] = waiters;
    let (first, second, third) = (first?, second?, third?);
    first.thread.delete()?;
    second.thread.suspend()?;
    equal!(third.join()?, Err(Error::TimedOut));
    judge(deadlines[2], LATE)?;
    equal!(word.get(), 1);
    // A thread that was only stopped is told that its wait was cancelled.
    second.thread.resume()?;
    equal!(second.join()?, Err(Error::Aborted));
    Ok(())
}

/// Returns the clock server.
fn clock() -> Outcome<(Clock<Cap<Endpoint>>, Cap<Endpoint>)> {
    let slot = memory::take_slot()?;
    let found = Names::STANDARD.look_up(Clock::NAME, slot);
    let server = found.map_err(|failure| Failure::new(alloc::format!("looking up the clock: {failure}")))?;
    Ok((Clock::at(server), server))
}

/// Turns the clock server's refusal into a failure.
fn clock_failure(failure: tench::clock::Failure) -> Failure {
    Failure::new(alloc::format!("the clock refused: {failure}"))
}

fn clock_delays(_: &mut Stage) -> Outcome {
    let (clock, server) = clock()?;
    let mut latest = 0;
    for nanoseconds in NANOSECONDS {
        let wanted = ticks(Duration::from_nanos(nanoseconds), frequency());
        let begin = Instant::now();
        let said = clock.delay(wanted).map_err(clock_failure)?;
        latest = latest.max(judge(begin.after(wanted), LATE_BY_CLOCK)?);
        check!(said >= begin.after(wanted) && said <= Instant::now());
        let deadline = Instant::now().after(wanted);
        check!(clock.delay_until(deadline).map_err(clock_failure)? >= deadline);
        latest = latest.max(judge(deadline, LATE_BY_CLOCK)?);
    }
    for past in [0, 1, Instant::now().ticks() - 1] {
        let begin = Instant::now();
        check!(clock.delay_until(Instant::from_ticks(past)).map_err(clock_failure)? >= begin);
        judge(begin, LATE_BY_CLOCK)?;
    }
    // The tenths of a second do not drift, whenever the time is queried.
    for _ in 0..3 {
        let before = Instant::now().ticks() * TICKS_PER_SECOND / frequency();
        let said = clock.await_event(Event::Tick).map_err(clock_failure)?;
        equal!(said.ticks() * TICKS_PER_SECOND / frequency(), before + 1);
        judge(Instant::from_ticks((before + 1) * frequency() / TICKS_PER_SECOND), LATE_BY_CLOCK)?;
    }
    println!("note: the clock's delays end {latest} ticks late at most");
    server.delete()?;
    memory::free_slot(server.address());
    Ok(())
}

fn events(stage: &mut Stage) -> Outcome {
    let event = stage.notification()?;
    equal!(time::await_event(event, Some(soon())), Err(Error::TimedOut));
    stage.spawn_with(Equipment::at(LOW), move || event.signal())?;
    equal!(time::await_event(event, None), Ok(1));
    event.signal()?;
    // A pending event is taken, even if the time is past.
    equal!(time::await_event(event, Some(Instant::from_ticks(0))), Ok(1));
    equal!(time::await_event(event, Some(Instant::from_ticks(0))), Err(Error::TimedOut));
    let nothing = Cap::<Notification>::new(stage.slot());
    equal!(time::await_event(nothing, None), Err(Error::InvalidCapability));
    Ok(())
}

fn interrupts(stage: &mut Stage) -> Outcome {
    let (slot, notification, clock) = (stage.slot(), stage.notification()?, rtc()?);
    let control: Cap<InterruptControl> = CONTROL;
    let line = control.get(RTC_LINE, Trigger::Level, slot)?;
    line.bind(Some(notification))?;
    equal!(time::await_interrupt(line, notification, Some(soon())), Err(Error::TimedOut));
    for _ in 0..3 {
        raise_alarm(&clock);
        equal!(time::await_interrupt(line, notification, Some(patience())), Ok(1));
        quiet(&clock);
    }
    equal!(time::await_interrupt(line, notification, Some(soon())), Err(Error::TimedOut));
    line.delete()?;
    Ok(())
}

fn periods(_: &mut Stage) -> Outcome {
    let period = Duration::from_micros(300);
    let length = ticks(period, frequency());
    let mut periodic = Periodic::every(period);
    let first = periodic.next();
    for number in 0..5 {
        equal!(periodic.wait(), 0);
        judge(first.after(number * length), LATE)?;
        // However long it takes.
        time::sleep(Duration::from_micros(50 * number));
    }
    // The work takes two and a half periods: the next one begins on time, after two that were missed.
    let busy = Instant::now().after(length * 5 / 2);
    while Instant::now() < busy {}
    let missed = periodic.wait();
    check!(missed == 1 || missed == 2);
    equal!(periodic.wait(), 0);
    judge(first.after((5 + missed + 1) * length), LATE)?;
    Ok(())
}

/// Returns the ticks of a millisecond.
fn millisecond() -> u64 {
    frequency() / 1000
}

fn idle_share(stage: &mut Stage) -> Outcome {
    // Milliseconds of ten in which a thread is busy, and whether a signal wakes it, or its own deadline.
    for (busy, by_signal) in [(0, false), (3, false), (3, true), (9, false)] {
        let (notification, length) = (stage.notification()?, millisecond());
        let begin = Instant::now().after(length);
        let worker = stage.spawn_with(Equipment::at(LOW), move || -> Result<(), Error> {
            for round in 0..10 {
                let deadline = begin.after(round * 10 * length);
                match if by_signal { notification.wait() } else { notification.wait_until(deadline) } {
                    Ok(_) | Err(Error::TimedOut) => {}
                    Err(error) => return Err(error),
                }
                let end = Instant::now().after(busy * length);
                while Instant::now() < end {}
            }
            Ok(())
        })?;
        let (before, from) = (KERNEL.query(Statistic::IdleTicks)?, Instant::now());
        for round in 0..10 {
            if by_signal {
                time::sleep_until(begin.after(round * 10 * length));
                notification.signal()?;
            }
        }
        time::sleep_until(begin.after(100 * length));
        let (idle, whole) = (KERNEL.query(Statistic::IdleTicks)? - before, Instant::now().since(from));
        equal!(worker.join()?, Ok(()));
        let expected = whole - 10 * busy * length;
        println!("note: {busy} of 10 ms busy: idle {} of 10000 parts", idle * 10_000 / whole);
        // Overhead of kernel and library: at most 10 µs in each round.
        check!(idle <= expected && idle + 10 * 625 >= expected);
    }
    Ok(())
}

fn in_c(_: &mut Stage) -> Outcome {
    let procs = Procs::STANDARD;
    let status = procs.wait(procs.spawn("time", &[])?)?;
    equal!((status.state, status.exit_code(), status.fault()), (State::Exited, Some(0), None));
    Ok(())
}

fn no_date(_: &mut Stage) -> Outcome {
    // These tests have the device themselves. What the clock server makes of it the session `date` shows.
    let unknown = ClockFailure::Refused(ClockError::NoWallClock);
    check!(time::wall_clock_at_start() == Err(unknown) && time::wall_clock() == Err(unknown));
    Ok(())
}
