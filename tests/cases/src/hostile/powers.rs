//! Tests of what servers refuse to a program with nothing but its standard capabilities. Each case starts such a
//! program, a child of this one, which tries everything and reports by its exit code which attempt was not refused as
//! it should be.

use alloc::format;
use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::abi::power::{Client, Powers, identity};
use tench::clock::Clock;
use tench::console::protocol::{Console, Error as ConsoleError, Mode};
use tench::files::Files;
use tench::files::protocol::{Error as FilesError, How};
use tench::fs;
use tench::io::{Read, Write};
use tench::mem::protocol::Error as MemError;
use tench::mem::slabs::Slabs;
use tench::mem::{Mem, Totals, Within};
use tench::memory;
use tench::names::Names;
use tench::names::protocol::Error as NamesError;
use tench::println;
use tench::procs::Procs;
use tench::procs::protocol::{Error as ProcsError, State};
use tench::reserve::Reserve;
use tench::sys::{Cap, Endpoint, Instant, Notification, OWN_CSPACE, SchedulingContext};
use tench::thread::Builder;
use tench::time::{self, Duration};
use tench_protocol::{Failure, Rejection};

use crate::case::{Case, Outcome};
use crate::stage::PRIORITY;

pub const CASES: &[Case] = &[
    Case::new("HOS0301", "memory of others is hidden from a program without the power", |_| play("mem")),
    Case::new("HOS0302", "the system's names are not registered without the power", |_| play("names")),
    Case::new("HOS0303", "the terminal is not taken without the power", |_| play("console")),
    Case::new("HOS0304", "processor time is not reserved without the power", |_| play("reserve")),
    Case::new("HOS0305", "what others made is not changed without the power", |_| files()),
    Case::new("HOS0306", "children have no more memory together than their parent may have", |_| family()),
    Case::new("HOS0307", "sleepers with one deadline hold nobody up who runs below the clock", |_| sleepers()),
    Case::new("HOS0308", "a lent terminal is the borrower's alone, and only for as long as it is lent", |_| lending()),
];

/// File that the child must not be able to change.
const VICTIM: &str = "/tmp/not-yours";

fn lending() -> Outcome {
    let lender = Procs::STANDARD.prepare("cases")?;
    lender.argument("powerless")?;
    lender.argument("lend")?;
    // It is a process of its own, so that the terminal is nobody's again afterwards.
    lender.configure(PRIORITY as u8, PRIORITY as u8, 0, Powers::TERMINAL)?;
    let status = Procs::STANDARD.wait(lender.start()?)?;
    equal!((status.state, status.exit_code()), (State::Exited, Some(REFUSED)));
    Ok(())
}

fn files() -> Outcome {
    let mut made = fs::create(VICTIM)?;
    made.write(b"untouched")?;
    let outcome = play("files");
    let mut found = [0; 16];
    let length = fs::open(VICTIM)?.read(&mut found)?;
    fs::remove(VICTIM)?;
    equal!(&found[..length], b"untouched");
    outcome
}

/// Bytes of memory for a program and all that it starts.
const LIMIT: u64 = 8 << 20;

fn family() -> Outcome {
    let child = Procs::STANDARD.prepare("cases")?;
    child.argument("powerless")?;
    child.argument("family")?;
    child.limit(LIMIT)?;
    let status = Procs::STANDARD.wait(child.start()?)?;
    equal!((status.state, status.exit_code()), (State::Exited, Some(REFUSED)));
    Ok(())
}

/// Runs the parent: its child takes all memory, a second child is refused, and everything is available again when the
/// first has ended.
fn parent() -> Option<bool> {
    let left = || {
        let account = Mem::STANDARD.next_account(tench::process::id() - 1).ok()?;
        Some(account.quota - account.used - account.objects)
    };
    let before = left()?;
    let hoarder = Procs::STANDARD.spawn("cases", &["powerless", "hoard"]).ok()?;
    // It takes a block at a time, single pages at the end.
    let end = time::deadline(Duration::from_secs(20));
    while left()? >= 4096 {
        if Instant::now() > end {
            return Some(false);
        }
        time::sleep(Duration::from_millis(5));
    }
    let second = Procs::STANDARD.spawn("cases", &["powerless", "hoard"]);
    let refused = matches!(second, Err(Failure::Refused(ProcsError::OutOfMemory)));
    let own = Mem::STANDARD.allocate(12, memory::take_slot().ok()?);
    let nothing_left = matches!(own, Err(Failure::Refused(MemError::QuotaExceeded)));
    Procs::STANDARD.kill(hoarder).ok()?;
    Procs::STANDARD.wait(hoarder).ok()?;
    Some(before < LIMIT && refused && nothing_left && left()? == before)
}

/// Runs the child that takes smaller and smaller blocks, and stays.
fn hoard() -> Option<i32> {
    for bits in [16, 12] {
        while Mem::STANDARD.allocate(bits, memory::take_slot().ok()?).is_ok() {}
    }
    loop {
        time::sleep(Duration::from_secs(1));
    }
}

/// Threads of a process that sleep until the same time, and the number of such processes.
const SLEEPERS: usize = 250;
const SLEEPING: usize = 2;
/// Priority of the thread that must not be held up.
const IMPORTANT: u8 = 180;
/// Nanoseconds for which it may be held up: eight replies, and an interrupt.
const HELD_UP: u64 = 60_000;

fn sleepers() -> Outcome {
    let deadline = time::deadline(Duration::from_millis(400));
    let argument = format!("{}", deadline.ticks());
    let mut children = Vec::new();
    for _ in 0..SLEEPING {
        children.push(Procs::STANDARD.spawn("cases", &["powerless", "sleep", &argument])?);
    }
    let measured = Builder::new().priority(IMPORTANT).spawn(move || {
        let (mut before, mut longest) = (deadline, 0);
        // A moment earlier, so that this thread runs when their time comes.
        time::sleep_until(Instant::from_ticks(deadline.ticks() - 1000));
        while before.since(deadline) < SPAN {
            let now = Instant::now();
            longest = longest.max(now.since(before.min(now)));
            before = now.max(deadline);
        }
        longest
    })?;
    let longest = measured.join() * 1_000_000_000 / time::frequency();
    for child in children {
        let status = Procs::STANDARD.wait(child)?;
        equal!((status.state, status.exit_code()), (State::Exited, Some(REFUSED)));
    }
    println!("note: beside {} sleepers somebody more important was held up for {longest} ns", SLEEPING * SLEEPERS);
    check!(longest < HELD_UP);
    Ok(())
}

/// Ticks in which all of them get their replies.
const SPAN: u64 = 400_000;

/// Runs the child whose threads all sleep until the same time. Returns its exit code.
fn sleep(until: &str) -> Option<i32> {
    let until = Instant::from_ticks(until.parse().ok()?);
    let clock = Names::STANDARD.look_up(Clock::NAME, memory::take_slot().ok()?).ok().map(Clock::at)?;
    let mut threads = Vec::new();
    for _ in 0..SLEEPERS {
        let sleeper = move || clock.delay_until(until).is_ok_and(|end| end >= until);
        threads.push(Builder::new().stack_size(16 << 10).spawn(sleeper).ok()?);
    }
    // The case depends on all of them waiting by then.
    let is_early = Instant::now() < until;
    let all = threads.into_iter().all(|thread| thread.join());
    (is_early && all).then_some(REFUSED as i32)
}

/// Exit code of a child that was refused everything.
const REFUSED: u64 = 100;

/// Starts a child without powers that tries everything at a server.
fn play(server: &str) -> Outcome {
    let child = Procs::STANDARD.prepare("cases")?;
    child.argument("powerless")?;
    child.argument(server)?;
    let status = Procs::STANDARD.wait(child.start()?)?;
    let code = status.exit_code();
    check!(status.state == State::Exited);
    if code == Some(REFUSED) {
        return Ok(());
    }
    Err(crate::case::Failure::new(format!("of the attempts at {server}, number {code:?} had success")))
}

/// Runs the child that tries everything at a server. Returns its exit code.
pub fn child(server: &str) -> Option<i32> {
    match server {
        "hoard" => return hoard(),
        "sleep" => return sleep(tench::args().nth(3)?),
        _ => {}
    }
    let attempts: &[fn() -> Option<bool>] = match server {
        "mem" => MEM,
        "names" => NAMES,
        "console" => CONSOLE,
        "lend" => LENDER,
        "borrow" => BORROWER,
        "heir" => HEIR,
        "keep" => return keep(),
        "reserve" => RESERVE,
        "files" => FILES,
        "family" => &[parent],
        _ => return None,
    };
    for (number, attempt) in attempts.iter().enumerate() {
        if attempt() != Some(true) {
            return Some(number as i32);
        }
    }
    Some(REFUSED as i32)
}

/// Returns whether a request was refused for lack of a power, before the server's own code saw it.
fn not_allowed<T, E>(result: Result<T, Failure<E>>) -> Option<bool> {
    Some(matches!(result, Err(Failure::Rejected(Rejection::NotAllowed))))
}

/// Attempts at the memory server.
const MEM: &[fn() -> Option<bool>] = &[
    || not_allowed(Mem::STANDARD.describe(0)),
    || not_allowed(Mem::STANDARD.audit()),
    || not_allowed(Mem::STANDARD.abroad(0)),
    || not_allowed(Mem::STANDARD.reclaim(1)),
    || not_allowed(Mem::STANDARD.number(0x4000_0000)),
    || not_allowed(Mem::STANDARD.find(tench::process::id(), 300)),
    || not_allowed(Mem::STANDARD.set_quota(tench::process::id(), u64::MAX)),
    || not_allowed(Mem::STANDARD.close_account(tench::process::id())),
    || not_allowed(Mem::STANDARD.allocate_for(Client::alone(tench::process::id()), 12, memory::take_slot().ok()?)),
    || not_allowed(Mem::STANDARD.add(Cap::new(slot::VSPACE))),
    || {
        // It sees only its own account, whichever it asks for.
        let first = Mem::STANDARD.next_account(0).ok()?;
        let further = Mem::STANDARD.next_account(first.process);
        Some(first.process == tench::process::id() && further.is_err())
    },
    || {
        let Totals { total, free, largest, blocks, accounts } = Mem::STANDARD.totals().ok()?;
        Some(total > free && free > 0 && (largest, blocks, accounts) == (0, 0, 0))
    },
    || chosen(Within { base: 0x4000_0000, ..Within::default() }),
    || chosen(Within { limit: 1 << 40, ..Within::default() }),
    || chosen(Within { align_bits: 13, ..Within::default() }),
    || not_allowed(Slabs::STANDARD.set_up(&[20], &[])),
    || not_allowed(Slabs::STANDARD.take_down()),
    || not_allowed(Slabs::STANDARD.set_policy(0, false)),
    || not_allowed(Slabs::STANDARD.ledger(0)),
    || not_allowed(Slabs::STANDARD.kernel(0)),
    || not_allowed(Slabs::STANDARD.record(true)),
    || not_allowed(Slabs::STANDARD.read_part(0)),
    || not_allowed(Slabs::STANDARD.figures()),
];

/// Returns whether a chosen address was refused and no memory was given.
fn chosen(within: Within) -> Option<bool> {
    let slot = memory::take_slot().ok()?;
    let refused =
        matches!(Mem::STANDARD.allocate_within(12, within, slot), Err(Failure::Refused(MemError::NotAllowed)));
    Some(refused && OWN_CSPACE.identify_at(slot).ok()?.kind == tench::sys::Kind::Null)
}

/// Attempts at the name server: a server's name, a name that a server might have, and an unreserved name.
const NAMES: &[fn() -> Option<bool>] = &[
    || registered(Clock::NAME),
    || registered(Reserve::NAME),
    || registered("files"),
    || registered("a.new.server"),
    || {
        let endpoint = memory::make::<Endpoint>(0).ok()?;
        Names::STANDARD.register("powerless/name", endpoint.cap()).ok()?;
        // The badge found there has this process's number and family, and no bits of its powers.
        let own = OWN_CSPACE.identify_at(slot::PROCS).ok()?.badge;
        let found = Names::STANDARD.look_up("powerless/name", memory::take_slot().ok()?).ok()?;
        Names::STANDARD.unregister("powerless/name").ok()?;
        let is_own = identity(own) == tench::process::id();
        Some(is_own && found.identify().ok()?.badge == Client::of_badge(own).badge(Powers::empty()))
    },
];

/// Returns whether a name was refused.
fn registered(name: &str) -> Option<bool> {
    let endpoint = memory::make::<Endpoint>(0).ok()?;
    let result = Names::STANDARD.register(name, endpoint.cap());
    Some(matches!(result, Err(Failure::Refused(NamesError::NotAllowed))))
}

/// Attempts at the terminal, which no process owns while the cases run.
const CONSOLE: &[fn() -> Option<bool>] = &[
    || not_yours(Console::STANDARD.set_mode(Mode::Raw)),
    || not_yours(Console::STANDARD.set_reader(tench::process::id())),
    || not_yours(Console::STANDARD.set_reader_and_signal(0, memory::make::<Notification>(0).ok()?.cap())),
    || not_yours(Console::STANDARD.set_suspend_signal(memory::make::<Notification>(0).ok()?.cap())),
    || not_yours(Console::STANDARD.lend(tench::process::id())),
    || Some(Console::STANDARD.state().ok()?.0 == Mode::Canonical),
];

/// Returns whether the console refused a client that does not own the terminal.
fn not_yours<T>(result: Result<T, Failure<ConsoleError>>) -> Option<bool> {
    refused(result, ConsoleError::NotYours)
}

/// Returns whether the console refused a request for this reason.
fn refused<T>(result: Result<T, Failure<ConsoleError>>, why: ConsoleError) -> Option<bool> {
    Some(matches!(result, Err(Failure::Refused(error)) if error == why))
}

/// Attempts at the terminal by its owner.
const LENDER: &[fn() -> Option<bool>] = &[
    || refused(Console::STANDARD.lend(tench::process::id()), ConsoleError::NotReading),
    || {
        // There is nobody whom Ctrl-] would tell.
        Console::STANDARD.set_reader(tench::process::id()).ok()?;
        refused(Console::STANDARD.lend(tench::process::id()), ConsoleError::NoSignal)
    },
    || {
        let borrower = lend_to("borrow")?;
        let status = Procs::STANDARD.wait(borrower).ok()?;
        // It has ended in raw mode.
        let (mode, reader, _) = Console::STANDARD.state().ok()?;
        Some(status.exit_code() == Some(REFUSED) && (mode, reader) == (Mode::Canonical, tench::process::id()))
    },
    || {
        let borrower = lend_to("keep")?;
        while Console::STANDARD.state().ok()?.0 != Mode::Raw {
            time::sleep(Duration::from_millis(1));
        }
        Console::STANDARD.set_reader(tench::process::id()).ok()?;
        let mode = Console::STANDARD.state().ok()?.0;
        let status = Procs::STANDARD.wait(borrower).ok()?;
        Some(mode == Mode::Canonical && status.exit_code() == Some(REFUSED))
    },
    || Some(Console::STANDARD.state().ok()?.0 == Mode::Canonical),
];

/// Starts a child to which this process lends the terminal.
fn lend_to(name: &str) -> Option<u64> {
    let child = Procs::STANDARD.prepare("cases").ok()?;
    child.argument("powerless").ok()?;
    child.argument(name).ok()?;
    let interrupt = memory::make::<Notification>(0).ok()?;
    Console::STANDARD.set_reader_and_signal(child.process(), interrupt.cap()).ok()?;
    Console::STANDARD.lend(child.process()).ok()?;
    child.start().ok()
}

/// Attempts by the process that is lent the terminal: it sets the mode, and nothing else.
const BORROWER: &[fn() -> Option<bool>] = &[
    || Some(Console::STANDARD.set_mode(Mode::Raw).is_ok() && Console::STANDARD.state().ok()?.0 == Mode::Raw),
    || not_yours(Console::STANDARD.lend(tench::process::id())),
    || not_yours(Console::STANDARD.lend(0)),
    || not_yours(Console::STANDARD.set_reader(0)),
    || not_yours(Console::STANDARD.set_reader_and_signal(0, memory::make::<Notification>(0).ok()?.cap())),
    || not_yours(Console::STANDARD.set_suspend_signal(memory::make::<Notification>(0).ok()?.cap())),
    || {
        let heir = Procs::STANDARD.spawn("cases", &["powerless", "heir"]).ok()?;
        let status = Procs::STANDARD.wait(heir).ok()?;
        Some(status.exit_code() == Some(REFUSED) && Console::STANDARD.state().ok()?.0 == Mode::Raw)
    },
];

/// Attempts by a child of the process that is lent the terminal.
const HEIR: &[fn() -> Option<bool>] = &[
    || not_yours(Console::STANDARD.set_mode(Mode::Canonical)),
    || not_yours(Console::STANDARD.set_reader(tench::process::id())),
    || not_yours(Console::STANDARD.lend(tench::process::id())),
    || not_yours(Console::STANDARD.lend(Console::STANDARD.state().ok()?.1)),
];

/// Runs the child that sets raw mode again and again, until it is refused. Returns its exit code.
fn keep() -> Option<i32> {
    Console::STANDARD.set_mode(Mode::Raw).ok()?;
    while Console::STANDARD.state().ok()?.0 == Mode::Raw {
        time::sleep(Duration::from_millis(1));
    }
    let refused = not_yours(Console::STANDARD.set_mode(Mode::Raw))?;
    refused.then_some(REFUSED as i32)
}

/// Attempts at the reservation server.
const RESERVE: &[fn() -> Option<bool>] = &[
    || not_allowed(reserve()?.reserve(Cap::new(slot::SCHEDULING), 1_000_000, 100_000_000, 0)),
    || not_allowed(reserve()?.release(1)),
    || not_allowed(reserve()?.next(0)),
    || not_allowed(reserve()?.possible(1_000_000, 0)),
    || Some(Cap::<SchedulingContext>::new(slot::SCHEDULING).query().ok()?.budget == 0),
];

/// Returns the reservation server.
fn reserve() -> Option<Reserve<Cap<Endpoint>>> {
    Names::STANDARD.wait_for(Reserve::NAME, memory::take_slot().ok()?).ok().map(Reserve::at)
}

/// Attempts at the file server.
const FILES: &[fn() -> Option<bool>] = &[
    || not_open(VICTIM, How::Write),
    || not_open(VICTIM, How::Append),
    || not_open(VICTIM, How::Update),
    || not_open("/mine", How::Write),
    || not_open("/bin/mine", How::CreateNew),
    || not_changed(Files::STANDARD.make_directory("/mine")),
    || not_changed(Files::STANDARD.remove(VICTIM)),
    || not_changed(Files::STANDARD.rename(VICTIM, "/tmp/mine")),
    || {
        // The child may change what it makes itself, but not replace another's files with it.
        Files::STANDARD.make_directory("/tmp/mine").ok()?;
        drop(fs::create("/tmp/mine/a").ok()?);
        let refused = not_changed(Files::STANDARD.rename("/tmp/mine/a", VICTIM));
        Files::STANDARD.rename("/tmp/mine/a", "/tmp/b").ok()?;
        Files::STANDARD.remove("/tmp/b").ok()?;
        Files::STANDARD.remove("/tmp/mine").ok()?;
        refused
    },
    || Some(fs::open(VICTIM).ok()?.read(&mut [0; 4]).ok()? == 4),
];

/// Returns whether a file was not opened for writing.
fn not_open(path: &str, how: How) -> Option<bool> {
    not_changed(Files::STANDARD.open(path, how, memory::take_slot().ok()?))
}

/// Returns whether the file server refused to change another process's file.
fn not_changed<T>(result: Result<T, Failure<FilesError>>) -> Option<bool> {
    Some(matches!(result, Err(Failure::Refused(FilesError::NotAllowed))))
}
