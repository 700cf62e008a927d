//! Tests of budgets: how much processor time a thread gets, which threads run meanwhile, and who is notified when the
//! budget is used up.

use core::sync::atomic::{AtomicU64, Ordering};

use tench::abi::fault::{Class, reply};
use tench::abi::object::{MAX_PERIOD, MIN_BUDGET, Statistic, ThreadState};
use tench::sys::thread::{Binding, Bindings, SchedulingInfo, upcall_resume};
use tench::sys::{
    Cap, CapAddress, Endpoint, Error, Frame, Instant, Kind, Message, Rights, SchedulingContext, Untyped, Wait,
    ipc::BOUND_REPLY,
};

use crate::case::{Case, Outcome};
use crate::stage::{HIGH, KERNEL, LOW, Stage, identify};
use crate::worker::{Equipment, MOMENT, Shared, Worker, patience, pause};

pub const CASES: &[Case] = &[
    Case::new("BUD0001", "a scheduling context keeps its budget and period", kept),
    Case::new("BUD0002", "a budget that is none is refused", refusals),
    Case::new("BUD0003", "nobody limits a context of a priority above the authority's ceiling", authority),
    Case::new("BUD0004", "who overruns does not delay threads of lower priority", lower_runs),
    Case::new("BUD0005", "who overruns does not delay an equal", equal_runs),
    Case::new("BUD0006", "a budget of 30 % is 30 % of a busy machine", share),
    Case::new("BUD0007", "a budget comes back a period after it was used", refill),
    Case::new("BUD0008", "a server spends its client's budget, and no more than it uses", spent_by_server),
    Case::new("BUD0009", "without a handler a server waits for its client's budget", server_waits),
    Case::new("BUD0010", "a handler takes a server from a client without budget, and another is served at once", reset),
    Case::new("BUD0011", "a thread that is resumed waits for its budget, and is reported once", resumed),
    Case::new("BUD0012", "a handler gives more budget, and the thread goes on at once", given_more),
    Case::new("BUD0013", "a budget is changed and taken off while it is used up", changed),
    Case::new("BUD0014", "a thread is deleted while its budget is used up", deleted),
    Case::new("BUD0015", "a thread is suspended while its budget is used up", suspended),
    Case::new("BUD0016", "a budget ends before its time slice, and slices before the budget", sliced),
    Case::new("BUD0017", "an upcall tells the thread itself", upcall),
    Case::new("BUD0018", "a budget as long as its period never ends", whole),
    Case::new("BUD0019", "a budget ends in the middle of a long operation, which goes on later", in_kernel),
    Case::new("BUD0020", "the handler hears of a budget that ended in a long operation after that", in_kernel_reported),
    Case::new("BUD0021", "a scheduling context deleted while used up leaves its thread without time", context_deleted),
];

/// Ticks by which the kernel may overrun the end of a budget, or a thread's view of it may be off: interrupt, switch,
/// and back.
const GRAIN: u64 = 200;

/// Returns whether that much of a budget was used, up to the kernel's precision.
fn is_about(used: u64, budget: u64) -> bool {
    (budget..budget + GRAIN).contains(&used)
}

/// Spawns a worker that counts for ever.
fn hog(stage: &mut Stage, word: usize, priority: u64) -> Outcome<(Worker<()>, Shared)> {
    let count = stage.word(word)?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(priority) }, move || {
        loop {
            count.fetch_add();
        }
    })?;
    Ok((worker, count))
}

/// Works until `ticks` of a context were used.
fn work(ticks: u64, context: Cap<SchedulingContext>) {
    let consumed = || context.query().map_or(0, |info| info.consumed);
    let start = consumed();
    while consumed() - start < ticks {
        core::hint::spin_loop();
    }
}

fn kept(stage: &mut Stage) -> Outcome {
    let context = stage.make::<SchedulingContext>(0)?;
    let limit = |info: SchedulingInfo| (info.budget, info.period, info.usable, info.refill);
    equal!(limit(context.query()?), (0, 0, 0, 0));
    context.reserve(1000, 5000, None)?;
    equal!(limit(context.query()?), (1000, 5000, 1000, 0));
    context.reserve(MIN_BUDGET, MAX_PERIOD, None)?;
    equal!(limit(context.query()?), (MIN_BUDGET, MAX_PERIOD, MIN_BUDGET, 0));
    context.reserve(0, 0, None)?;
    equal!(limit(context.query()?), (0, 0, 0, 0));
    Ok(())
}

fn refusals(stage: &mut Stage) -> Outcome {
    let (context, empty) = (stage.make::<SchedulingContext>(0)?, stage.slot());
    let wrong =
        [(0, 1000), (1000, 0), (1001, 1000), (MIN_BUDGET - 1, 1000), (1000, MAX_PERIOD + 1), (u64::MAX, u64::MAX)];
    for (budget, period) in wrong {
        refused!(context.reserve(budget, period, None), InvalidArgument);
    }
    refused!(context.reserve(1000, 1000, Some(Cap::new(stage.pool.address()))), WrongType);
    refused!(context.reserve(1000, 1000, Some(Cap::new(empty))), InvalidCapability);
    let weak = stage.mint(context, Rights::READ, 0)?;
    refused!(weak.reserve(1000, 1000, None), MissingRights);
    refused!(context.reserve(1000, 1000, Some(weak)), MissingRights);
    equal!(context.query()?.period, 0);
    Ok(())
}

fn authority(stage: &mut Stage) -> Outcome {
    let (context, authority) = (stage.make::<SchedulingContext>(0)?, stage.make::<SchedulingContext>(0)?);
    context.configure(50, 0, 0, None)?;
    authority.configure(0, 49, 0, None)?;
    refused!(context.reserve(1000, 2000, Some(authority)), PriorityTooHigh);
    refused!(context.reserve(0, 0, Some(authority)), PriorityTooHigh);
    authority.configure(0, 50, 0, None)?;
    context.reserve(1000, 2000, Some(authority))?;
    refused!(context.reserve(1000, 2000, Some(context)), PriorityTooHigh);
    Ok(())
}

fn lower_runs(stage: &mut Stage) -> Outcome {
    let (greedy, _) = hog(stage, 0, HIGH)?;
    let (other, _) = hog(stage, 1, LOW)?;
    greedy.scheduling.reserve(MOMENT / 4, MOMENT, None)?;
    other.thread.resume()?;
    let start = Instant::now();
    greedy.thread.resume()?;
    // The main thread has come here, though a thread of higher priority wants to run for ever.
    for _ in 0..8 {
        pause(stage)?;
    }
    let (passed, used) = (Instant::now().since(start), other.scheduling.query()?.consumed);
    check!(used > passed / 2);
    check!(used + greedy.scheduling.query()?.consumed <= passed);
    Ok(())
}

fn equal_runs(stage: &mut Stage) -> Outcome {
    let (greedy, _) = hog(stage, 0, LOW)?;
    let (other, _) = hog(stage, 1, LOW)?;
    greedy.scheduling.reserve(MOMENT / 4, MOMENT, None)?;
    greedy.thread.resume()?;
    other.thread.resume()?;
    pause(stage)?;
    let first = greedy.scheduling.query()?.consumed;
    check!(is_about(first, MOMENT / 4));
    check!(other.scheduling.query()?.consumed > MOMENT / 2);
    // The context has no time slice, so the thread whose budget was replenished waits behind it.
    pause(stage)?;
    equal!(greedy.scheduling.query()?.consumed, first);
    Ok(())
}

fn share(stage: &mut Stage) -> Outcome {
    const BUDGET: u64 = MOMENT * 3 / 10;
    let (limited, _) = hog(stage, 0, HIGH)?;
    let (other, _) = hog(stage, 1, LOW)?;
    limited.scheduling.reserve(BUDGET, MOMENT, None)?;
    other.thread.resume()?;
    let start = Instant::now();
    limited.thread.resume()?;
    for _ in 0..20 {
        pause(stage)?;
    }
    let used = limited.scheduling.query()?.consumed;
    let passed = Instant::now().since(start);
    // In each whole period the thread had its budget; in the last, unfinished one, no more than that.
    let (least, most) = (passed / MOMENT * BUDGET, (passed / MOMENT + 1) * BUDGET);
    check!(used + GRAIN >= least && used <= most + GRAIN);
    check!(used.abs_diff(passed * 3 / 10) <= BUDGET);
    Ok(())
}

/// Interval in which a thread did not run: the last time before, and the first after.
type Gap = (u64, u64);

/// Waits until the calling thread is kept from running.
fn gap(longer_than: u64) -> Gap {
    let mut last = Instant::now();
    loop {
        let now = Instant::now();
        if now.since(last) > longer_than {
            return (last.ticks(), now.ticks());
        }
        last = now;
    }
}

fn refill(stage: &mut Stage) -> Outcome {
    const BUDGET: u64 = MOMENT / 4;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, || {
        let start = Instant::now().ticks();
        (start, [gap(MOMENT / 4), gap(MOMENT / 4), gap(MOMENT / 4)])
    })?;
    let before = Instant::now().ticks();
    worker.scheduling.reserve(BUDGET, MOMENT, None)?;
    worker.thread.resume()?;
    let (_, gaps) = worker.join()?;
    let mut start = before;
    for (end, next) in gaps {
        check!(end >= start && end <= start + BUDGET + GRAIN);
        check!(next >= start + MOMENT && next <= start + MOMENT + 2 * GRAIN);
        start += MOMENT;
    }
    Ok(())
}

/// Equipment of a server that runs on its callers' time.
const PASSIVE: Equipment = Equipment { priority: None, start: false, ..Equipment::at(0) };
/// Request to the cases' server to work for ever.
const FOREVER: u64 = 9;

/// A server without time of its own: works for as many ticks as the first word says on the context that the second
/// names, or for ever.
fn serve(endpoint: Cap<Endpoint>) -> Result<(), Error> {
    let mut received = endpoint.receive(Wait::FOREVER)?;
    loop {
        if received.label() == FOREVER {
            loop {
                core::hint::spin_loop();
            }
        }
        work(received.word(0), Cap::new(CapAddress(received.word(1) as u32)));
        received = endpoint.reply_receive(&Message::new(received.label()), Wait::FOREVER)?;
    }
}

/// Lets a thread without time run, on a context lent for so long, until it waits.
fn let_begin<T: Copy>(server: &Worker<T>, setup: Cap<SchedulingContext>) -> Outcome {
    server.thread.bind(Bindings { scheduling: Binding::To(setup), ..Bindings::KEEP })?;
    server.thread.resume()?;
    equal!(server.state()?, ThreadState::Receiving);
    server.thread.bind(Bindings { scheduling: Binding::Unbind, ..Bindings::KEEP })?;
    Ok(())
}

/// Such a server, the endpoint at which it will wait, and a scheduling context with which it can begin.
type Service = (Worker<Result<(), Error>>, Cap<Endpoint>, Cap<SchedulingContext>);

/// Makes such a server, which has not begun.
fn service(stage: &mut Stage) -> Outcome<Service> {
    let (endpoint, setup) = (stage.endpoint()?, stage.make::<SchedulingContext>(0)?);
    setup.configure(HIGH, HIGH, 0, None)?;
    let server = stage.spawn_with(PASSIVE, move || serve(endpoint))?;
    Ok((server, endpoint, setup))
}

/// Spawns a client of such a server, with a budget.
fn client(
    stage: &mut Stage,
    endpoint: Cap<Endpoint>,
    message: (u64, u64),
    budget: (u64, u64),
) -> Outcome<Worker<Called>> {
    let (label, word) = message;
    let place = stage.word(0)?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, move || {
        let reply = endpoint.call(&Message::with_words(label, &[word, place.get()]));
        (reply.map(|reply| reply.label()), Instant::now().ticks())
    })?;
    place.set(u64::from(worker.scheduling.address().0));
    worker.scheduling.reserve(budget.0, budget.1, None)?;
    worker.thread.resume()?;
    Ok(worker)
}

/// Result of a call, and when it returned.
type Called = (Result<u64, Error>, u64);

fn spent_by_server(stage: &mut Stage) -> Outcome {
    let (server, endpoint, setup) = service(stage)?;
    let_begin(&server, setup)?;
    let client = client(stage, endpoint, (4, MOMENT / 2), (MOMENT, 10 * MOMENT))?;
    equal!(client.join()?.0, Ok(4));
    let info = client.scheduling.query()?;
    check!(info.consumed >= MOMENT / 2 && info.consumed < MOMENT / 2 + 20 * GRAIN);
    equal!(info.usable + info.consumed, MOMENT);
    equal!((client.thread.query()?.priority, server.thread.query()?.priority), (HIGH, 0));
    Ok(())
}

fn server_waits(stage: &mut Stage) -> Outcome {
    let (server, endpoint, setup) = service(stage)?;
    let_begin(&server, setup)?;
    let start = Instant::now().ticks();
    let client = client(stage, endpoint, (4, MOMENT), (MOMENT / 2, 2 * MOMENT))?;
    // The main thread runs meanwhile, although its priority is lower.
    check!(Instant::now().ticks() < start + MOMENT);
    equal!((server.state()?, client.state()?), (ThreadState::Ready, ThreadState::AwaitingReply));
    let (result, end) = client.join()?;
    equal!(result, Ok(4));
    // The call took the budgets of three periods, as the client's own work is added to the server's.
    check!(end > start + 4 * MOMENT && end < start + 5 * MOMENT);
    Ok(())
}

fn reset(stage: &mut Stage) -> Outcome {
    const REFUSED: u64 = 77;
    let (server, endpoint, setup) = service(stage)?;
    let (timeouts, begin) = (stage.endpoint()?, server.thread.read_registers(false)?);
    server.thread.faults_to(Class::Timeout, Some(timeouts))?;
    let_begin(&server, setup)?;
    let greedy = client(stage, endpoint, (FOREVER, 0), (MOMENT / 2, 20 * MOMENT))?;
    let received = timeouts.receive(Wait::until(patience()))?;
    check!(received.is_fault());
    equal!((received.label(), received.word(0), received.word(3)), (Class::Timeout as u64, Class::Timeout as u64, 1));
    check!(received.word(1) >= MOMENT / 2 && received.word(1) < MOMENT / 2 + GRAIN);
    // The handler has the server's reply object: it replies to the client, which has no usable time.
    equal!(greedy.state()?, ThreadState::AwaitingReply);
    server.reply.reply(&Message::new(REFUSED))?;
    equal!((server.state()?, greedy.state()?), (ThreadState::AwaitingReply, ThreadState::Ready));
    // The server starts again.
    server.thread.suspend()?;
    // SAFETY: the registers are those with which it began, and it owns nothing.
    unsafe { server.thread.write_registers(&begin, false) }?;
    let_begin(&server, setup)?;
    equal!(endpoint.call(&Message::with_words(5, &[0]))?.label(), 5);
    // The other client's error arrives when it can run again.
    check!(!greedy.has_ended());
    equal!(greedy.join()?.0, Ok(REFUSED));
    Ok(())
}

/// Spawns a thread that works for ever on a budget, and returns the endpoint to which its timeout faults go.
fn watched(stage: &mut Stage, budget: u64, period: u64) -> Outcome<(Worker<()>, Cap<Endpoint>, Shared)> {
    let timeouts = stage.endpoint()?;
    let (worker, count) = hog(stage, 0, HIGH)?;
    worker.thread.faults_to(Class::Timeout, Some(timeouts))?;
    worker.scheduling.reserve(budget, period, None)?;
    worker.thread.resume()?;
    Ok((worker, timeouts, count))
}

fn resumed(stage: &mut Stage) -> Outcome {
    let (worker, timeouts, count) = watched(stage, MOMENT / 4, 4 * MOMENT)?;
    for round in 1..4 {
        let received = timeouts.receive(Wait::until(patience()))?;
        equal!((received.label(), received.word(3)), (Class::Timeout as u64, 0));
        let used = received.word(1);
        check!(is_about(used, round * (MOMENT / 4)));
        equal!(worker.state()?, ThreadState::AwaitingReply);
        BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
        let before = count.get();
        pause(stage)?;
        equal!((worker.state()?, count.get()), (ThreadState::Ready, before));
        refused!(timeouts.try_receive(Wait::FOREVER), WouldBlock);
    }
    Ok(())
}

fn given_more(stage: &mut Stage) -> Outcome {
    let (worker, timeouts, count) = watched(stage, MOMENT / 4, 100 * MOMENT)?;
    timeouts.receive(Wait::until(patience()))?;
    let before = count.get();
    worker.scheduling.reserve(MOMENT / 2, 100 * MOMENT, None)?;
    equal!(count.get(), before);
    BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
    check!(count.get() > before);
    let used = timeouts.receive(Wait::until(patience()))?.word(1);
    check!(is_about(used, MOMENT * 3 / 4));
    // A reply that does not resume the thread stops it.
    BOUND_REPLY.reply(&Message::new(reply::STOP))?;
    equal!(worker.state()?, ThreadState::Faulted);
    Ok(())
}

/// Spawns a thread of higher priority that has used up its budget, which is replenished in ten moments.
fn depleted(stage: &mut Stage) -> Outcome<(Worker<()>, Shared)> {
    let (worker, count) = hog(stage, 0, HIGH)?;
    worker.scheduling.reserve(MOMENT / 4, 10 * MOMENT, None)?;
    worker.thread.resume()?;
    equal!((worker.state()?, worker.scheduling.query()?.usable), (ThreadState::Ready, 0));
    check!(count.get() > 0);
    Ok((worker, count))
}

fn changed(stage: &mut Stage) -> Outcome {
    let (worker, count) = depleted(stage)?;
    let before = count.get();
    worker.scheduling.reserve(MOMENT / 2, 10 * MOMENT, None)?;
    check!(count.get() > before);
    let used = worker.scheduling.query()?.consumed;
    check!(is_about(used, MOMENT * 3 / 4));
    // At a lower priority and without a limit it runs when the main thread waits.
    worker.scheduling.configure(LOW, LOW, 0, None)?;
    worker.scheduling.reserve(0, 0, None)?;
    let before = count.get();
    pause(stage)?;
    check!(count.get() > before);
    worker.thread.suspend()?;
    Ok(())
}

fn deleted(stage: &mut Stage) -> Outcome {
    let (worker, count) = depleted(stage)?;
    let before = count.get();
    worker.thread.delete()?;
    for _ in 0..11 {
        pause(stage)?;
    }
    equal!(count.get(), before);
    // The overrun is due a period later.
    let usable = worker.scheduling.query()?.usable;
    check!(usable <= MOMENT / 4 && usable + GRAIN > MOMENT / 4);
    Ok(())
}

fn suspended(stage: &mut Stage) -> Outcome {
    let (worker, count) = depleted(stage)?;
    worker.thread.suspend()?;
    equal!((worker.state()?, worker.thread.query()?.priority), (ThreadState::Suspended, 0));
    let before = count.get();
    // Resumed early, the thread continues where it was.
    worker.thread.resume()?;
    check!(count.get() <= before + 1);
    equal!(worker.state()?, ThreadState::Ready);
    worker.thread.suspend()?;
    let before = count.get();
    for _ in 0..11 {
        pause(stage)?;
    }
    equal!((count.get(), worker.thread.query()?.priority), (before, HIGH));
    worker.thread.resume()?;
    check!(count.get() > before);
    Ok(())
}

fn sliced(stage: &mut Stage) -> Outcome {
    let words = [stage.word(1)?, stage.word(2)?];
    let mut workers = [None, None];
    for (word, place) in words.into_iter().zip(&mut workers) {
        let equipment = Equipment { slice: MOMENT / 8, start: false, ..Equipment::at(LOW) };
        let worker = stage.spawn_with(equipment, move || {
            loop {
                word.fetch_add();
            }
        })?;
        worker.scheduling.reserve(MOMENT / 4, 2 * MOMENT, None)?;
        *place = Some(worker.scheduling);
        worker.thread.resume()?;
    }
    // Both used all of their budgets in turns, and nothing more.
    pause(stage)?;
    for context in workers.into_iter().flatten() {
        let used = context.query()?.consumed;
        check!(is_about(used, MOMENT / 4));
    }
    let [a, b] = words.map(Shared::get);
    check!(a < 2 * b && b < 2 * a);
    Ok(())
}

/// How often the handler of `upcall` was entered, and with which class and syndrome.
static UPCALLS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Records that it was called.
unsafe extern "C" fn note(class: u64, _address: u64, _instruction: u64, syndrome: u64) -> ! {
    UPCALLS[0].fetch_add(1, Ordering::SeqCst);
    UPCALLS[1].store(class, Ordering::SeqCst);
    UPCALLS[2].store(syndrome, Ordering::SeqCst);
    // SAFETY: in an upcall, with the registers as they were.
    let _ = unsafe { upcall_resume() };
    loop {
        core::hint::spin_loop();
    }
}

fn upcall(stage: &mut Stage) -> Outcome {
    UPCALLS[0].store(0, Ordering::SeqCst);
    let (worker, count) = hog(stage, 0, HIGH)?;
    // SAFETY: the handler never returns, and runs on the worker's own stack.
    unsafe { worker.thread.faults_upcall(Class::Timeout, None, note as *const () as usize, 0) }?;
    worker.scheduling.reserve(MOMENT / 4, MOMENT, None)?;
    worker.thread.resume()?;
    // The handler is called when the thread can run again.
    equal!((worker.state()?, UPCALLS[0].load(Ordering::SeqCst)), (ThreadState::Ready, 0));
    let before = count.get();
    for _ in 0..3 {
        pause(stage)?;
    }
    check!((2..=4).contains(&UPCALLS[0].load(Ordering::SeqCst)));
    equal!((UPCALLS[1].load(Ordering::SeqCst), UPCALLS[2].load(Ordering::SeqCst)), (Class::Timeout as u64, 0));
    check!(count.get() > before);
    worker.thread.suspend()?;
    Ok(())
}

fn whole(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, || {
        let start = Instant::now();
        let mut last = start;
        let mut longest = 0;
        while last.since(start) < 5 * MOMENT {
            let now = Instant::now();
            longest = now.since(last).max(longest);
            last = now;
        }
        longest
    })?;
    worker.scheduling.reserve(MOMENT, MOMENT, None)?;
    worker.thread.resume()?;
    check!(worker.join()? < GRAIN);
    Ok(())
}

/// Spawns a thread that makes a large frame on a budget much shorter than that takes. Returns also where the frame will
/// be.
fn zeroing(stage: &mut Stage) -> Outcome<(Worker<bool>, CapAddress)> {
    let (memory, place) = (stage.make::<Untyped>(FRAME_BITS)?, stage.slot());
    let body = move || memory.retype::<Frame>(FRAME_BITS, place).is_ok();
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, body)?;
    worker.scheduling.reserve(MIN_BUDGET, MOMENT / 4, None)?;
    Ok((worker, place))
}

/// Log2 of the bytes of that frame.
const FRAME_BITS: u64 = 21;

fn in_kernel(stage: &mut Stage) -> Outcome {
    let (worker, place) = zeroing(stage)?;
    worker.thread.resume()?;
    // Without preemption the operation is not interrupted, and all of its time is paid back afterwards.
    let is_interrupted = KERNEL.query(Statistic::Preemptible)? == 1;
    equal!((worker.state()?, identify(place)?.kind != Kind::Frame), (ThreadState::Ready, is_interrupted));
    check!(worker.scheduling.query()?.consumed >= MIN_BUDGET);
    equal!(worker.join()?, true);
    equal!(identify(place)?.kind, Kind::Frame);
    Ok(())
}

fn in_kernel_reported(stage: &mut Stage) -> Outcome {
    let timeouts = stage.endpoint()?;
    let (worker, place) = zeroing(stage)?;
    worker.thread.faults_to(Class::Timeout, Some(timeouts))?;
    worker.thread.resume()?;
    equal!(timeouts.receive(Wait::until(patience()))?.label(), Class::Timeout as u64);
    equal!((identify(place)?.kind, worker.state()?), (Kind::Frame, ThreadState::AwaitingReply));
    worker.thread.faults_to(Class::Timeout, None)?;
    BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
    equal!(worker.join()?, true);
    Ok(())
}

fn context_deleted(stage: &mut Stage) -> Outcome {
    let (worker, count) = depleted(stage)?;
    let before = count.get();
    worker.scheduling.revoke()?;
    worker.scheduling.delete()?;
    for _ in 0..11 {
        pause(stage)?;
    }
    equal!((worker.state()?, worker.thread.query()?.priority, count.get()), (ThreadState::Ready, 0, before));
    Ok(())
}
