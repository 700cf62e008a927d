//! Tests of reservations: admission, the time they provide, and that no process gets more than its share.

use alloc::format;
use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::abi::object::Statistic;
use tench::memory;
use tench::names::Names;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::reserve::protocol::{Error, FIRST_PRIORITY, LAST_PRIORITY, RESERVABLE};
use tench::reserve::{Failure as ReserveFailure, Request, Reservation, ReservationError, Reserve};
use tench::sys::{
    Cap, Endpoint, Error as KernelError, Instant, Kind, OWN_CSPACE, Placement, SchedulingContext, Untyped,
};
use tench::time::{self, frequency};

use crate::case::{Case, Failure, Outcome};
use crate::child::COMPLIED;
use crate::stage::{KERNEL, LOW, Stage};
use crate::worker::Equipment;

pub const CASES: &[Case] = &[
    Case::new("RES0001", "a reservation gives budget, period and priority, and takes them back", granted),
    Case::new("RES0002", "what cannot be kept is refused, with what could be", refused),
    Case::new("RES0003", "nobody raises priority or budget by himself", |_| by_itself()),
    Case::new("RES0004", "the shorter the deadline, the higher the priority, whoever comes first", ordered),
    Case::new("RES0005", "a reservation goes with its scheduling context, and with its process", gone),
    Case::new("RES0006", "reservations stay when the server is started again", kept),
    Case::new("RES0007", "deadlines are met beside whoever is busy, and no more than the budget is used", deadlines),
    Case::new("RES0009", "nobody gets a fresh budget by giving one up", afresh),
    Case::new("RES0008", "a hostile client of the reservation server harms nobody else", hostile),
];

const PROCS: Procs = Procs::STANDARD;

/// Returns the reservation server's capability and the slot it lies in.
pub fn server() -> Outcome<Reserve<Cap<Endpoint>>> {
    let slot = memory::take_slot()?;
    let found = Names::STANDARD.wait_for(Reserve::NAME, slot);
    found.map(Reserve::at).map_err(|failure| Failure::new(format!("looking the server up: {failure}")))
}

/// Turns the server's refusal into a failure of the case.
fn because(refusal: ReservationError) -> Failure {
    Failure::new(format!("the reservation server refused: {refusal}"))
}

/// Turns any error of a request into a failure of the case.
fn failed(failure: ReserveFailure) -> Failure {
    because(ReservationError::Other(failure))
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Returns all reservations.
fn list(server: &Reserve<Cap<Endpoint>>) -> Outcome<alloc::vec::Vec<Reservation>> {
    let mut all = alloc::vec::Vec::new();
    while let Some(found) = server.next(all.last().map_or(0, |last: &Reservation| last.id)).map_err(failed)? {
        all.push(found);
    }
    Ok(all)
}

/// Returns the server once all shares are free. A used share becomes free when its budget would have been replenished,
/// after 10 seconds at most.
fn server_at_rest() -> Outcome<Reserve<Cap<Endpoint>>> {
    let server = server()?;
    for _ in 0..1100 {
        if server.possible(1_000_000, 0).map_err(failed)?.share == RESERVABLE / 2 {
            return Ok(server);
        }
        time::sleep(ms(10));
    }
    Err(Failure::new("somebody has a share that does not become free"))
}

fn granted(stage: &mut Stage) -> Outcome {
    let (server, context) = (server_at_rest()?, stage.make::<SchedulingContext>(0)?);
    context.configure(100, 110, 777, None)?;
    equal!(list(&server)?.len(), 0);
    let request = Request { deadline: ms(5), ..Request::new(ms(1), ms(10)) };
    let reservation = server.request(context, &request).map_err(because)?;
    equal!(reservation.process, tench::process::id());
    equal!((reservation.budget, reservation.period, reservation.deadline), (1_000_000, 10_000_000, 5_000_000));
    equal!(reservation.share, 200_000);
    // The response time includes the servers' 250 µs, the longest interrupts-off interval of 10 µs and 4.8 µs of
    // switching.
    equal!(reservation.response, 1_264_800);
    check!((u64::from(FIRST_PRIORITY)..=u64::from(LAST_PRIORITY)).contains(&reservation.priority));
    let info = context.query()?;
    equal!((info.priority, info.ceiling, info.slice), (reservation.priority, 110, 777));
    // The budget is replenished after the part of the period that the deadline leaves, so that a delayed job does not
    // delay the next.
    equal!((info.budget, info.period), (frequency() / 1000, 5 * frequency() / 1000));
    equal!(list(&server)?, [reservation]);
    equal!(server.request(context, &request), Err(ReservationError::Other(ReserveFailure::Refused(Error::Reserved))));
    equal!(server.release(reservation.id + 1), Err(ReserveFailure::Refused(Error::Unknown)));
    server.release(reservation.id).map_err(failed)?;
    equal!(server.release(reservation.id), Err(ReserveFailure::Refused(Error::Unknown)));
    let info = context.query()?;
    equal!((info.priority, info.ceiling, info.slice, info.budget, info.period), (100, 110, 777, 0, 0));
    equal!(list(&server)?.len(), 0);
    Ok(())
}

fn refused(stage: &mut Stage) -> Outcome {
    let server = server_at_rest()?;
    let contexts = [stage.make(0)?, stage.make(0)?, stage.make(0)?];
    let [first, second, third]: [Cap<SchedulingContext>; 3] = contexts;
    let of = |budget, period| Request::new(Duration::from_micros(budget), Duration::from_micros(period));
    let error = |request: &Request| server.request(first, request).map(|_| ());
    let other = |error| Err(ReservationError::Other(ReserveFailure::Refused(error)));
    equal!(error(&of(19, 1000)), other(Error::BudgetTooShort));
    equal!(error(&of(100, 499)), other(Error::PeriodTooShort));
    equal!(error(&of(100, 10_000_001)), other(Error::PeriodTooLong));
    equal!(error(&of(501, 1000)), other(Error::BudgetTooLong));
    equal!(error(&Request { deadline: ms(1), ..of(100, 1000) }), other(Error::DeadlineTooLong));
    equal!(error(&of(900, 2000)), Err(ReservationError::Overcommitted { free: RESERVABLE / 2 }));
    equal!(error(&of(410, 2000)), Err(ReservationError::Excessive { free: RESERVABLE / 2 }));
    // A budget of 300 µs within 500 is too much beside the servers' 250; 235.2 fits, with 10 of blocking and 4.8 of
    // switching.
    let tight = Request { deadline: Duration::from_micros(500), ..of(300, 10_000) };
    let budget = Duration::from_nanos(235_200);
    equal!(error(&tight), Err(ReservationError::Unschedulable { budget }));
    let granted = server.request(first, &Request { budget, ..tight }).map_err(because)?;
    equal!(granted.response, 500_000);
    // Admitted reservations count: a second one of this kind would have to run after the first.
    equal!(server.request(second, &tight).map(|_| ()), Err(ReservationError::Unschedulable { budget: Duration::ZERO }));
    // A capability that lacks a right.
    let weak = stage.mint(third, tench::sys::Rights::READ, 0)?;
    equal!(server.request(weak, &of(100, 10_000)).map(|_| ()), other(Error::BadContext));
    equal!(third.query()?.budget, 0);
    server.release(granted.id).map_err(failed)?;
    Ok(())
}

/// Runs the child that has a reservation: it tries to get more, and to harm another process's reservation.
pub fn child(others: u64) -> Option<i32> {
    let own = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let (ceiling, slice) = own.query().map(|info| (info.ceiling, info.slice)).ok()?;
    let server = server().ok()?;
    let reservation = server.request(own, &Request::new(ms(1), ms(20))).ok()?;
    let info = own.query().ok()?;
    let is_reserved = info.priority == reservation.priority && info.ceiling == ceiling && ceiling < info.priority;
    let high = Err(KernelError::PriorityTooHigh);
    let tries = [
        own.configure(info.priority, ceiling, 0, None),
        own.configure(info.priority + 1, ceiling, 0, Some(own)),
        own.configure(ceiling, info.priority, 0, None),
        own.reserve(info.budget * 2, info.period, None),
        own.reserve(info.budget, info.period / 2, Some(own)),
        own.reserve(0, 0, None),
    ];
    let is_refused = tries.iter().all(|result| *result == high);
    let is_whole = own
        .query()
        .is_ok_and(|now| (now.priority, now.budget, now.period) == (info.priority, info.budget, info.period));
    let is_safe = server.release(others) == Err(ReserveFailure::Refused(Error::NotYours));
    // The child may give up its reservation: then it may configure its context up to its ceiling, and gains nothing
    // else.
    own.configure(ceiling, ceiling, slice, None).ok()?;
    own.reserve(0, 0, None).ok()?;
    let is_below = own.configure(info.priority, ceiling, 0, None) == high;
    (is_reserved && is_refused && is_whole && is_safe && is_below).then_some(COMPLIED as i32)
}

fn by_itself() -> Outcome {
    let (server, own) = (server_at_rest()?, memory::make::<SchedulingContext>(0)?);
    let reservation = server.request(own.cap(), &Request::new(ms(1), ms(10))).map_err(because)?;
    let spawn = PROCS.prepare("cases")?;
    spawn.argument("reserve")?;
    spawn.argument(&format!("{}", reservation.id))?;
    spawn.configure(100, 120, 0, Powers::RESERVE)?;
    let status = PROCS.wait(spawn.start()?)?;
    equal!((status.state, status.exit_code()), (State::Exited, Some(COMPLIED)));
    // The child's reservation is gone with the child.
    equal!(list(&server)?, [reservation]);
    server.release(reservation.id).map_err(failed)?;
    Ok(())
}

fn ordered(stage: &mut Stage) -> Outcome {
    let server = server_at_rest()?;
    let mut held = alloc::vec::Vec::new();
    // Periods that fall between the existing ones, so that existing reservations get other priorities.
    for period in [100, 10, 99, 98, 97, 96, 95, 94, 93, 50] {
        let context = stage.make::<SchedulingContext>(0)?;
        let reservation =
            server.request(context, &Request::new(Duration::from_micros(50), ms(period))).map_err(because)?;
        held.push((period, context, reservation.id));
        let mut found = alloc::vec::Vec::new();
        for (period, context, _) in &held {
            found.push((*period, context.query()?.priority));
        }
        found.sort_unstable();
        check!(found.is_sorted_by(|a, b| a.1 > b.1));
        // The server reports the same priorities.
        for (place, reservation) in list(&server)?.iter().enumerate() {
            equal!(reservation.priority, held[place].1.query()?.priority);
            check!(reservation.response <= reservation.deadline);
        }
    }
    held.iter().try_for_each(|(_, _, id)| server.release(*id)).map_err(failed)
}

fn gone(stage: &mut Stage) -> Outcome {
    let server = server_at_rest()?;
    let place = stage.slot();
    stage.pool.retype_many(Kind::Untyped, 12, 1, Placement::Watermark, OWN_CSPACE, place)?;
    let memory = Cap::<Untyped>::new(place);
    let context = memory.retype::<SchedulingContext>(0, stage.slot())?;
    let all = server.possible(1_000_000, 0).map_err(failed)?;
    server.request(context, &Request::new(ms(2), ms(20))).map_err(because)?;
    check!(server.possible(1_000_000, 0).map_err(failed)?.share < all.share);
    equal!(list(&server)?.len(), 1);
    memory.revoke()?;
    equal!(list(&server)?.len(), 0);
    equal!(server_at_rest()?.possible(1_000_000, 0).map_err(failed)?, all);
    // Kill a process in the middle of its period.
    let spawn = PROCS.prepare("cases")?;
    spawn.argument("reserved")?;
    spawn.configure(100, 100, 0, Powers::RESERVE)?;
    let child = spawn.start()?;
    while list(&server)?.is_empty() {
        time::sleep(ms(1));
    }
    PROCS.kill(child)?;
    equal!(PROCS.wait(child)?.state, State::Killed);
    equal!(list(&server)?.len(), 0);
    equal!(server_at_rest()?.possible(1_000_000, 0).map_err(failed)?, all);
    Ok(())
}

/// Runs the child that is killed: it has a reservation and is busy for ever.
pub fn stay() -> Option<i32> {
    server().ok()?.request(Cap::new(slot::SCHEDULING), &Request::new(ms(2), ms(10))).ok()?;
    loop {
        core::hint::spin_loop();
    }
}

fn kept(stage: &mut Stage) -> Outcome {
    let before = server_at_rest()?;
    let contexts = [stage.make::<SchedulingContext>(0)?, stage.make(0)?, stage.make(0)?];
    for (index, context) in (1..).zip(contexts) {
        before.request(context, &Request::new(ms(1), ms(10 * index))).map_err(because)?;
    }
    let [_, second, _] = contexts;
    let (granted, pid) = (list(&before)?, PROCS.find("reserve", 0)?);
    // One context is in the state in which the server leaves it if the server ends before it has told the kernel.
    second.configure(0, 0, 0, None)?;
    second.reserve(0, 0, None)?;
    PROCS.kill(pid)?;
    equal!(before.next(0).is_err(), true);
    let after = server()?;
    check!(PROCS.find("reserve", 0)? != pid);
    equal!(list(&after)?, granted);
    for (context, reservation) in contexts.into_iter().zip(&granted) {
        let info = context.query()?;
        equal!((info.priority, info.budget), (reservation.priority, frequency() / 1000));
    }
    // The numbering continues.
    let fourth = stage.make::<SchedulingContext>(0)?;
    let last = after.request(fourth, &Request::new(Duration::from_micros(500), ms(50))).map_err(because)?;
    check!(granted.iter().all(|reservation| reservation.id < last.id));
    granted.iter().chain([&last]).try_for_each(|reservation| after.release(reservation.id)).map_err(failed)
}

/// Counts of a worker with a reservation: jobs, missed deadlines, longest response in ticks.
type Seen = (u64, u64, u64);

/// Lets a worker with this reservation do a job of `work` ticks in each period. Its time is measured as the context's
/// own consumption.
fn reserved(stage: &mut Stage, request: &Request, work: u64, jobs: u64) -> Outcome<(crate::worker::Worker<Seen>, u64)> {
    let (never, period) = (stage.notification()?, time::deadline(request.period).since(Instant::now()));
    let deadline = if request.deadline.is_zero() { request.period / 2 } else { request.deadline };
    let deadline = tench::sys::time::ticks(deadline, frequency());
    let begin = Instant::now().after(4 * period);
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, move || {
        let own = tench::sys::ThreadBlock::current().map(|block| Cap::<tench::sys::Thread>::new(block.thread.get()));
        let used = || own.and_then(|own| own.query().ok()).map_or(0, |info| info.ticks);
        let (mut missed, mut longest) = (0, 0);
        for job in 0..jobs {
            let release = begin.after(job * period);
            let _ = never.wait_until(release);
            let end = used() + work;
            while used() < end {}
            let response = Instant::now().since(release);
            missed += u64::from(response > deadline);
            longest = longest.max(response);
        }
        (jobs, missed, longest)
    })?;
    let reservation = server()?.request(worker.scheduling, request).map_err(because)?;
    worker.thread.resume()?;
    Ok((worker, reservation.id))
}

fn deadlines(stage: &mut Stage) -> Outcome {
    const JOBS: u64 = 10;
    let server = server_at_rest()?;
    let us = |microseconds: u64| microseconds * frequency() / 1_000_000;
    // This worker wants more than its reservation: it holds up only itself.
    let greedy = stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, || {
        loop {
            core::hint::spin_loop();
        }
    })?;
    let short = Request { deadline: ms(2), ..Request::new(Duration::from_micros(500), ms(7)) };
    let greedy_id = server.request(greedy.scheduling, &short).map_err(because)?.id;
    let (first, first_id) = reserved(stage, &Request::new(ms(1), ms(20)), us(990), JOBS)?;
    let tight = Request { deadline: ms(4), ..Request::new(Duration::from_micros(1500), ms(30)) };
    let (second, second_id) = reserved(stage, &tight, us(1490), JOBS)?;
    let (before, from) = (greedy.scheduling.query()?.consumed, Instant::now());
    greedy.thread.resume()?;
    // This thread is the best-effort program that is always busy.
    while !(first.has_ended() && second.has_ended()) {
        if Instant::now().since(from) > 4 * frequency() {
            return Err(Failure::new("the jobs do not end"));
        }
    }
    let (used, whole) = (greedy.scheduling.query()?.consumed - before, Instant::now().since(from));
    for (worker, name) in [(first, "1 ms of 20"), (second, "1.5 ms of 30, within 4")] {
        let (jobs, missed, longest) = worker.join()?;
        tench::println!("note: {name}: {jobs} jobs, {missed} deadlines missed, {longest} ticks at most");
        equal!((jobs, missed), (JOBS, 0));
    }
    // A tenth of the time (of the 5 ms that the deadline leaves), and the one budget available at the beginning.
    check!(used <= whole / 10 + us(500) + us(20));
    check!(used >= whole / 10 - us(500) - whole / 100);
    [greedy_id, first_id, second_id].into_iter().try_for_each(|id| server.release(id)).map_err(failed)
}

fn hostile(stage: &mut Stage) -> Outcome {
    const ENEMIES: u64 = 3;
    const JOBS: u64 = 8;
    let server = server_at_rest()?;
    let all = server.possible(10_000_000, 0).map_err(failed)?;
    let us = |microseconds: u64| microseconds * frequency() / 1_000_000;
    let (worker, id) = reserved(stage, &Request::new(ms(1), ms(20)), us(990), JOBS)?;
    let mut enemies = alloc::vec::Vec::new();
    for seed in 0..ENEMIES {
        let spawn = PROCS.prepare("cases")?;
        for argument in ["hostile", "reserve", &format!("{seed}")] {
            spawn.argument(argument)?;
        }
        spawn.configure(110, 110, 0, Powers::RESERVE)?;
        enemies.push(spawn.start()?);
    }
    let (jobs, missed, longest) = worker.join()?;
    tench::println!("note: beside hostile clients: {jobs} jobs, {missed} deadlines missed, {longest} ticks at most");
    // Half of the period is left to each job. (A server that works for one of the best-effort clients, on no
    // reservation's budget, can delay a job: by 0.7 ms here. Without preemption points, system calls of these clients
    // can delay it for longer.)
    equal!(jobs, JOBS);
    check!(missed == 0 || KERNEL.query(Statistic::Preemptible)? == 0);
    check!(longest >= us(990));
    // The enemies have what they can get, and this program can still be refused for a reason, or get what is left.
    let reservations = list(&server)?;
    check!(reservations.iter().any(|reservation| enemies.contains(&reservation.process)));
    check!(reservations.iter().map(|reservation| reservation.share).sum::<u64>() <= RESERVABLE);
    check!(reservations.iter().all(|reservation| reservation.response <= reservation.deadline));
    let context = stage.make::<SchedulingContext>(0)?;
    let mine = server.request(context, &Request::new(Duration::from_micros(100), ms(1000)));
    check!(mine.is_ok());
    for enemy in enemies {
        PROCS.kill(enemy)?;
        PROCS.wait(enemy)?;
    }
    server.release(mine.map_err(because)?.id).map_err(failed)?;
    server.release(id).map_err(failed)?;
    equal!(list(&server)?.len(), 0);
    equal!(server_at_rest()?.possible(10_000_000, 0).map_err(failed)?, all);
    Ok(())
}

/// A program that uses up a budget, gives the reservation up and requests another, repeatedly and in every possible
/// way, gets no more than it may reserve at once.
fn afresh(stage: &mut Stage) -> Outcome {
    let server = server_at_rest()?;
    let request = Request { deadline: ms(2), ..Request::new(ms(1), ms(7)) };
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(LOW) }, || {
        loop {
            core::hint::spin_loop();
        }
    })?;
    let from = Instant::now();
    worker.thread.resume()?;
    let used = || worker.scheduling.query().map(|info| info.consumed);
    let (mut high, mut round) = (0, 0_u64);
    while Instant::now().since(from) < 60 * frequency() / 1000 {
        let before = used()?;
        if let Ok(reservation) = server.request(worker.scheduling, &request) {
            // The worker has run meanwhile at a priority above this thread's, and goes on if it may.
            round += 1;
            if round.is_multiple_of(2) {
                // The server notices at the next request.
                worker.scheduling.configure(LOW, LOW, 0, None)?;
                worker.scheduling.reserve(0, 0, None)?;
            } else {
                server.release(reservation.id).map_err(failed)?;
            }
        }
        high += used()? - before;
    }
    let whole = Instant::now().since(from);
    worker.thread.suspend()?;
    worker.scheduling.configure(LOW, LOW, 0, None)?;
    worker.scheduling.reserve(0, 0, None)?;
    check!(round > 4);
    // Two fifths, which is all that it may reserve, plus one budget of each reservation at the beginning.
    tench::println!("note: {high} of {whole} ticks in {round} reservations");
    check!(high <= whole * 2 / 5 + 2 * frequency() / 1000 + whole / 50);
    Ok(())
}
