//! A well-behaved client: a process with standard capabilities that makes requests of every server, again and again,
//! and checks each reply. Its parent sees its progress in a shared page, and pauses it there.
//!
//! ```text
//! 0  whether to run    8  whether paused   16  rounds done
//! 24 number of a wrong reply (0: none)      32  ticks of the longest request     40  number of that request
//! ```

use alloc::format;
use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::abi::power::Client as Own;
use tench::clock::Clock;
use tench::console::protocol::{Console, Mode};
use tench::mem::Mem;
use tench::memory::{self, Window};
use tench::names::Names;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::sys::{Cap, Endpoint, Frame, Instant, Kind, OWN_CSPACE, Placement};
use tench::time::{frequency, sleep};
use tench::{fs, println, process};

use super::meter::{Moment, passed_since};
use super::{empty, said, window};
use crate::case::{Failure, Outcome};

/// Offsets of the words in the page.
const GO: usize = 0;
const RESTS: usize = 8;
const ROUNDS: usize = 16;
const WRONG: usize = 24;
const LONGEST: usize = 32;
const WHICH: usize = 40;

/// Priority above the attackers', and below the reserved thread's.
const PRIORITY: u8 = 110;
/// Time between two rounds.
const PAUSE: Duration = Duration::from_micros(500);
/// Bound on the time until it pauses.
const PATIENCE: u64 = 1000;

/// A request that the client makes.
type Request = fn(u64) -> Outcome;

/// All requests, which take the number of the round.
const REQUESTS: &[(&str, Request)] = &[
    ("mem", block),
    ("names", name),
    ("files", file),
    ("clock", delay),
    ("console", state),
    ("console, for the line", drain),
    ("procs", prepare),
];

/// The client, as its parent sees it.
pub struct Client {
    page: Window,
}

/// Record of how the client was served.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Rounds with only correct replies.
    pub rounds: u64,
    /// Name of the request with a wrong reply.
    pub wrong: Option<&'static str>,
    /// Microseconds of the longest request, and its name.
    pub longest: (u64, &'static str),
}

impl Client {
    /// Starts the client, paused.
    pub fn start() -> Outcome<Client> {
        let frame = memory::make::<Frame>(12)?.leak();
        let page = window(frame, 12)?;
        let mut child = Procs::STANDARD.prepare("cases")?;
        child.give(frame)?;
        child.argument("served")?;
        child.configure(PRIORITY, PRIORITY, 0, Powers::empty())?;
        child.start()?;
        let client = Client { page };
        client.rest()?;
        Ok(client)
    }

    /// Lets the client make requests.
    pub fn go(&self) {
        for word in [ROUNDS, WRONG, LONGEST, WHICH, RESTS] {
            self.page.write64(word, 0);
        }
        self.page.write64(GO, 1);
    }

    /// Pauses the client, and returns how it was served.
    pub fn rest(&self) -> Outcome<Served> {
        self.page.write64(GO, 0);
        for _ in 0..PATIENCE {
            if self.page.read64(RESTS) == 1 {
                return Ok(self.served());
            }
            sleep(PAUSE);
        }
        Err(Failure::new(format!("the client waits for a reply: {:?}", self.served())))
    }

    fn served(&self) -> Served {
        let name = |number: u64| REQUESTS.get(number as usize).map_or("nobody, for the processor", |request| request.0);
        let wrong = self.page.read64(WRONG);
        Served {
            rounds: self.page.read64(ROUNDS),
            wrong: wrong.checked_sub(1).map(name),
            longest: (self.page.read64(LONGEST) * 1_000_000 / frequency(), name(self.page.read64(WHICH))),
        }
    }
}

/// Runs the client until the process is killed.
pub fn run() -> Option<i32> {
    let page = window(Cap::new(slot::EXTRA), 12).ok()?;
    for round in 0.. {
        while page.read64(GO) == 0 {
            page.write64(RESTS, 1);
            sleep(PAUSE);
        }
        for (number, (name, request)) in (0..).zip(REQUESTS) {
            let start = Moment::now();
            if let Err(failure) = request(round) {
                println!("note: the client got a wrong reply from {name}: {failure}");
                page.write64(WRONG, number + 1);
            }
            note(&page, number, start.passed());
        }
        page.write64(ROUNDS, page.read64(ROUNDS) + 1);
        // It also runs again in time: its priority is above the attackers'.
        let end = Instant::now().after(tench::sys::time::ticks(PAUSE, frequency()));
        sleep(PAUSE);
        note(&page, REQUESTS.len() as u64, passed_since(end.ticks()));
    }
    None
}

/// Records the ticks of a request if it is the longest.
fn note(page: &Window, number: u64, took: u64) {
    if took > page.read64(LONGEST) {
        page.write64(LONGEST, took);
        page.write64(WHICH, number);
    }
}

/// Allocates a block, makes a frame of it, and frees it.
fn block(round: u64) -> Outcome {
    let (slot, made, bits) = (empty()?, empty()?, 12 + (round % 4) as u32);
    let block = Mem::STANDARD.allocate(bits, slot)?;
    block.untyped.retype_many(Kind::Frame, 12, 1, Placement::Watermark, OWN_CSPACE, made)?;
    // The frame's physical address is not revealed.
    equal!(Cap::<Frame>::new(made).identify()?.address, 0);
    equal!(Mem::STANDARD.free(block.number)?, 1 << bits);
    equal!(OWN_CSPACE.identify_at(made)?.kind, Kind::Null);
    [slot, made].into_iter().for_each(memory::free_slot);
    Ok(())
}

/// Registers, finds and gives up a name.
fn name(round: u64) -> Outcome {
    let (endpoint, slot) = (memory::make::<Endpoint>(0)?, empty()?);
    let name = format!("served/{round}");
    said(Names::STANDARD.register(&name, endpoint.cap()))?;
    let found = said(Names::STANDARD.look_up(&name, slot))?.identify()?;
    // The badge says which process this is and of which family, as those from the process server do, without powers.
    let own = Own::of_badge(OWN_CSPACE.identify_at(slot::PROCS)?.badge);
    equal!((found.kind, found.badge, own.process), (Kind::Endpoint, own.badge(Powers::empty()), process::id()));
    OWN_CSPACE.delete_at(slot)?;
    memory::free_slot(slot);
    said(Names::STANDARD.unregister(&name))
}

/// Writes, reads and removes a file.
fn file(round: u64) -> Outcome {
    let path = format!("/tmp/served-{round}");
    let text = [b'a' + (round % 26) as u8; 600];
    said(fs::write(&path, &text))?;
    check!(said(fs::read(&path))? == text);
    said(fs::remove(&path))
}

/// Makes a delay, which must not be too short.
fn delay(round: u64) -> Outcome {
    let slot = empty()?;
    let clock = Clock::at(said(Names::STANDARD.look_up(Clock::NAME, slot))?);
    let ticks = 500 + 100 * (round % 5);
    let start = Instant::now();
    let end = said(clock.delay(ticks))?;
    check!(end >= start.after(ticks) && end <= Instant::now());
    OWN_CSPACE.delete_at(slot)?;
    memory::free_slot(slot);
    Ok(())
}

/// Queries the terminal's state, which no process changes meanwhile.
fn state(_: u64) -> Outcome {
    let (mode, reader, _) = said(Console::STANDARD.state())?;
    equal!((mode, reader), (Mode::Canonical, 0));
    Ok(())
}

/// Waits until all written text has been sent.
fn drain(_: u64) -> Outcome {
    said(Console::STANDARD.drain())
}

/// Prepares and abandons a process.
fn prepare(_: u64) -> Outcome {
    let child = Procs::STANDARD.prepare("hello")?;
    equal!(Procs::STANDARD.status(child.process())?.state, State::Preparing);
    child.abandon();
    check!(Procs::STANDARD.status(child.process()).is_err());
    Ok(())
}
