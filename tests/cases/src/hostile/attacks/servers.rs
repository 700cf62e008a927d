//! Attacks on servers by requests: exhaustion of every limited resource, and messages of every shape.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use tench::abi::layout::slot;
use tench::abi::{Operation, Powers, Tag};
use tench::clock::Clock;
use tench::console::Failure as ConsoleFailure;
use tench::console::protocol::{Console, Error as ConsoleError, Mode};
use tench::files::Files;
use tench::fs;
use tench::io::{self, Write};
use tench::mem::{Failure as MemFailure, Mem};
use tench::memory::{self, make};
use tench::names::Names;
use tench::procs::protocol::Error;
use tench::procs::{Failure as ProcsFailure, Procs, Spawn};
use tench::sys::{Cap, CapAddress, Endpoint, Instant, Message, Notification, OWN_CSPACE, Wait, offer_slots, raw};
use tench::thread::Builder;
use tench::time::sleep;
use tench_random::Random;

use super::kernel::SERVERS;
use super::{Attack, HELD, empty, held, said, soon};
use crate::case::{Failure, Outcome};
use crate::child::Arguments;

pub const ATTACKS: &[Attack] = &[
    Attack::new("tags", "messages of every length and shape get replies or are refused", tags),
    Attack::new("capabilities", "capabilities of any kind in a request do nothing but go", capabilities).endless(),
    Attack::new("hoard-memory", "who takes all memory that he may have leaves others theirs", hoard_memory),
    Attack::new("hoard-blocks", "who divides memory into the smallest blocks does not fill the table", hoard_blocks),
    Attack::new("hoard-names", "who registers names without end keeps nobody from his", hoard_names),
    Attack::new("hoard-processes", "who prepares processes without end keeps nobody from his", hoard_processes),
    Attack::new("hoard-waits", "who waits everywhere for ever keeps nobody from waiting", hoard_waits),
    // Processes that it starts are of another family, and must not be held up.
    Attack::new("hoard-end", "who waits for one process with all threads keeps nobody from waiting for it", hoard_end)
        .with(Powers::PROCESSES),
    Attack::new("hoard-files", "who opens and fills files without end keeps nobody from his", hoard_files),
    Attack::new("records", "processes that end with long arguments are not remembered without a limit", records),
    Attack::new("bomb", "processes that start processes are as many as they may be", || bomb("bomb-3")),
    Attack::new("storm", "processes that end at once are started one after another, and nothing stays", storm),
    Attack::new("escape", "control characters do not reach the terminal", escape).first(),
    Attack::new("take-terminal", "who is lent no terminal neither sets its mode nor lends it", take_terminal),
    Attack::new("sudden-end", "a process that ends in the middle of a request leaves nothing", sudden_end),
    Attack::new(
        "own-service",
        "a name that leads to a server that never replies harms only those who ask there",
        own_service,
    ),
];

const PROCS: Procs = Procs::STANDARD;
/// Stack size in bytes: threads of an attack have small stacks.
const STACK: usize = 16 << 10;
/// Microseconds that a request to a server may take.
const PATIENCE: u64 = 300;

/// Accepts any result.
fn anything<T>(_: T) {}

fn tags() -> Outcome {
    let mut random = Random::new(tench::process::id());
    for server in SERVERS.into_iter().cycle().take(600) {
        let mut x: [u64; 13] = core::array::from_fn(|_| random.argument());
        let shape = Tag::new(random.next(), 0).0 | random.below(1 << 12) | random.below(16) << 12;
        x[0] = u64::from(server.0);
        x[1] = shape | Tag::DEADLINE;
        x[12] = soon(PATIENCE).ticks();
        let operation = [Operation::Call, Operation::Send, Operation::TrySend][random.below(3) as usize];
        // SAFETY: servers reply into the IPC buffer; the call names no memory of this process.
        anything(unsafe { raw::anything(operation as u64, &x) });
    }
    Ok(())
}

fn capabilities() -> Outcome {
    let mut random = Random::new(tench::process::id() ^ 7);
    // Takes the slots that it uses away from the library.
    while empty()?.0 < crate::child::OBJECTS + 64 {}
    crate::child::furnish();
    let refuse = empty()?;
    for server in SERVERS.into_iter().cycle().take(600) {
        let mut message = Message::new(Tag::new(random.next(), 0).label() & 0xff_ffff_ff00 | random.below(32));
        for _ in 0..1 + random.below(4) {
            let cap = CapAddress(random.object() as u32);
            if random.below(2) == 0 {
                message.copy_cap(cap)
            } else {
                message.move_cap(cap)
            };
        }
        for _ in 0..random.below(8) {
            message.push(random.argument());
        }
        offer_slots(&[refuse]);
        anything(Cap::<Endpoint>::new(server).call_with(&message, Wait::until(soon(PATIENCE))));
        let _ = OWN_CSPACE.delete_at(refuse);
    }
    Ok(())
}

/// Bytes at which the attack stops taking memory where there is no limit.
const ENOUGH: u64 = 96 << 20;

fn hoard_memory() -> Outcome {
    let mut had = 0;
    let mut bits = 22;
    while bits >= 12 && had < ENOUGH {
        match Mem::STANDARD.allocate(bits, empty()?) {
            Ok(block) => had += 1 << block.size_bits,
            Err(MemFailure::Refused(_)) => bits -= 2,
            Err(failure) => return Err(failure.into()),
        }
    }
    check!(had < ENOUGH);
    sleep(Duration::from_millis(5));
    Ok(())
}

fn hoard_blocks() -> Outcome {
    let slot = empty()?;
    let mut blocks = 0;
    // Their capabilities are deleted at once, but the blocks remain this process's.
    while Mem::STANDARD.allocate(12, slot).is_ok() {
        OWN_CSPACE.delete_at(slot)?;
        blocks += 1;
        if blocks == 4000 {
            break;
        }
    }
    check!(blocks > 16);
    sleep(Duration::from_millis(5));
    Ok(())
}

fn hoard_names() -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let mut names = 0;
    while Names::STANDARD.register(&format!("hoard-{}/{names}", tench::process::id()), endpoint.cap()).is_ok() {
        names += 1;
        check!(names < 5000);
    }
    check!(names > 0);
    sleep(Duration::from_millis(5));
    Ok(())
}

fn hoard_processes() -> Outcome {
    let text = "x".repeat(400);
    let mut prepared: Vec<Spawn> = Vec::new();
    while let Ok(child) = PROCS.prepare("hello") {
        while prepared.len() < 40 && child.argument(&text).is_ok() {}
        prepared.push(child);
        check!(prepared.len() < 5000);
    }
    check!(!prepared.is_empty());
    sleep(Duration::from_millis(5));
    Ok(())
}

fn hoard_waits() -> Outcome {
    /// Threads that wait at each server.
    const THREADS: usize = 24;
    let clock = Clock::at(said(Names::STANDARD.look_up(Clock::NAME, empty()?))?);
    for number in 0..4 * THREADS {
        let wait = move || match number % 4 {
            0 => anything(clock.delay(u64::MAX >> 2)),
            1 => anything(Names::STANDARD.wait_for("hoard/never", CapAddress(16_000))),
            2 => anything(PROCS.wait(tench::process::id())),
            _ => anything(Console::STANDARD.get(1)),
        };
        said(Builder::new().stack_size(STACK).spawn(wait))?.detach();
    }
    sleep(Duration::from_millis(10));
    Ok(())
}

/// More threads than can wait for one process.
const MOST: usize = 260;

fn hoard_end() -> Outcome {
    let target = PROCS.spawn("cases", &["attack", "idle"])?;
    for _ in 0..MOST {
        let thread = Builder::new().stack_size(STACK).spawn(move || anything(PROCS.wait(target)));
        said(thread)?.detach();
    }
    let end = soon(1_000_000);
    while !is_refused(target, Error::Full) {
        check!(Instant::now() < end);
        sleep(Duration::from_millis(1));
    }
    let other = PROCS.spawn("cases", &["attack", "wait", &format!("{target}")])?;
    let outcome = held(PROCS, other);
    said(PROCS.kill(target))?;
    outcome
}

/// Runs a part of the attack: another process that waits for the process that its last argument names.
pub fn wait_for_one() -> Outcome {
    let target = tench::args().nth(3).and_then(|number| number.parse().ok());
    check!(is_refused(target.ok_or_else(|| Failure::new("for whom?"))?, Error::TimedOut));
    Ok(())
}

/// Returns whether a wait for a process, which does not end, fails with an error.
fn is_refused(target: u64, error: Error) -> bool {
    PROCS.wait_until(target, soon(1000)).err() == Some(ProcsFailure::Refused(error))
}

fn hoard_files() -> Outcome {
    let own = tench::process::id();
    let (mut ends, mut written) = (Vec::new(), 0);
    while ends.len() < 400 {
        let path = format!("/tmp/hoard-{own}-{}", ends.len());
        let Ok(mut file) = fs::create(&path) else { break };
        while written < 2 << 20 && file.write(&[b'x'; 480]).is_ok() {
            written += 480;
            if written % (64 << 10) < 480 {
                break;
            }
        }
        // The file remains, without a name, while it is open.
        said(fs::remove(&path))?;
        ends.push(file);
    }
    let mut pipes = Vec::new();
    while let Ok(pipe) = io::pipe() {
        pipes.push(pipe);
        check!(pipes.len() < 1000);
    }
    check!(!ends.is_empty());
    sleep(Duration::from_millis(5));
    // The process ends with all of them open.
    core::mem::forget((ends, pipes));
    Ok(())
}

fn records() -> Outcome {
    let text = "y".repeat(440);
    for _ in 0..12 {
        let child = PROCS.prepare("cases")?;
        child.argument("comply")?;
        for _ in 0..6 {
            if child.argument(&text).is_err() {
                break;
            }
        }
        // No thread waits for them.
        child.start()?;
    }
    sleep(Duration::from_millis(20));
    Ok(())
}

/// Starts two processes of the next generation, and waits for them. Also a part.
pub fn bomb(next: &str) -> Outcome {
    let children = [PROCS.spawn("cases", &["attack", next])?, PROCS.spawn("cases", &["attack", next])?];
    for child in children {
        equal!(PROCS.wait(child)?.exit_code(), Some(HELD));
    }
    Ok(())
}

fn storm() -> Outcome {
    for round in 0..30 {
        let child = PROCS.spawn("cases", &["comply"])?;
        if round % 3 == 0 {
            let _ = PROCS.kill(child);
        }
        said(PROCS.wait(child))?;
    }
    Ok(())
}

/// Escape sequences that would clear the screen and set the terminal's title; `./tench test hostile` checks that they
/// are made visible instead.
const ESCAPES: &[u8] = b"\x1b[2J\x1b]0;hostile\x07\xc2\x9b2J\n";

fn escape() -> Outcome {
    said(Console::STANDARD.write(b"note: escapes: "))?;
    // A sequence may come in several parts.
    for part in ESCAPES.chunks(3) {
        said(Console::STANDARD.write(part))?;
    }
    Ok(())
}

fn take_terminal() -> Outcome {
    let own = tench::process::id();
    let (_, reader, _) = said(Console::STANDARD.state())?;
    let interrupt = make::<Notification>(0)?;
    for _ in 0..50 {
        let refused = [
            Console::STANDARD.set_mode(Mode::Raw),
            Console::STANDARD.lend(own),
            Console::STANDARD.lend(reader),
            Console::STANDARD.set_reader(own),
        ];
        check!(refused.iter().all(|result| *result == Err(ConsoleFailure::Refused(ConsoleError::NotYours))));
        // From another core, the notification itself may be refused.
        let signalled = Console::STANDARD.set_reader_and_signal(own, interrupt.cap());
        check!(signalled.is_err());
    }
    let (mode, reader_now, _) = said(Console::STANDARD.state())?;
    equal!((mode, reader_now), (Mode::Canonical, reader));
    Ok(())
}

fn sudden_end() -> Outcome {
    for kind in 0..12 {
        let child = PROCS.spawn("cases", &["hostile", ["procs", "mem", "files", "names"][kind % 4], "5"])?;
        sleep(Duration::from_micros(900 + 130 * kind as u64));
        PROCS.kill(child)?;
        said(PROCS.wait(child))?;
    }
    Ok(())
}

fn own_service() -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let name = format!("never/{}", tench::process::id());
    said(Names::STANDARD.register(&name, endpoint.cap()))?;
    let slot = empty()?;
    // Many clients make requests there, and end while they wait.
    for _ in 0..20 {
        let found = said(Names::STANDARD.look_up(&name, slot))?;
        anything(found.call_with(&Message::new(1), Wait::until(Instant::now())));
        OWN_CSPACE.delete_at(slot)?;
    }
    memory::free_slot(slot);
    let found = said(Files::STANDARD.usage())?;
    if found.bytes > found.most_bytes {
        return Err(Failure::new("more bytes than there can be"));
    }
    check!(Cap::<Endpoint>::new(slot::FILES).identify()?.badge != 0);
    Ok(())
}
