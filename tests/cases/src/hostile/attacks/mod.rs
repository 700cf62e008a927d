//! One program per attack, started with nothing but what every program has, while others are served (`./tench test
//! hostile`).
//!
//! ```text
//! field      what goes on beside an attack, and what is judged when it is over
//! reserved   a thread with a reservation, which notes how long each of its jobs took
//! client     a process that asks all servers for something and looks at every answer
//! meter      how long something took this core itself, where the emulator lets others run in between
//! books      what must be as it was: memory, processes, names, files, capabilities
//! room       how many places of the servers' tables are free, for who has none
//! controls   what is no attack, and has to be noticed: without it, nobody knew whether the rest can fail
//! kernel     attacks on the kernel, by what a program makes of its own memory
//! servers    attacks on servers, by requests
//! family     attacks on servers by a process and its children
//! leavers    the same by children that end, and leave files
//! borrowed   what others had, after their end
//! trees      work for others that is expensive to undo
//! rings      threads that wait for each other
//! equals     what keeps those of the same priority from running
//! floods     whatever lasts as long as it can
//! reach      what others hold, and what is on other cores
//! elsewhere  floods from another core
//! limits     what is started on another core
//! bystander  a busy program of the first core, which keeps its share
//! turns      who sees to it that the emulator gives each core its turns
//! ```
//! An attack is a function that tries something and says whether it was refused as it should be. The program `cases`
//! runs it in a process of its own, with priority 100; on a machine with two cores, two processes do it, one on each.
//! Each is judged by what it says and by what is seen beside it: nothing gained, nothing late beyond what admission
//! allowed, every byte back.

mod books;
mod borrowed;
mod bystander;
mod client;
mod controls;
mod elsewhere;
mod equals;
mod family;
mod field;
mod floods;
mod kernel;
mod leavers;
mod limits;
mod meter;
mod reach;
mod reserved;
mod rings;
mod room;
mod servers;
mod trees;
mod turns;

use alloc::format;
use core::fmt::Debug;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::memory::{self, Window};
use tench::println;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::sys::{Cap, CapAddress, Instant, Kernel, MapFlags};
use tench::time::{self, Duration};

pub use client::run as client;
pub use turns::beat_for_ever as beat;

use crate::case::{Failure, Outcome};

/// Exit code of an attack that gained nothing.
pub const HELD: u64 = 100;
/// What is added to the line of the source that found a gain, for an exit code.
const LINES: u64 = 1000;
/// No source has so many lines.
const LINES_END: u64 = LINES + 10_000;

/// An attack.
#[derive(Clone, Copy)]
pub struct Attack {
    /// By which it is named in reports and in a child's arguments.
    name: &'static str,
    /// What holds if it passes.
    about: &'static str,
    /// Tries it. Fails if something was gained.
    run: fn() -> Outcome,
    end: End,
    cores: Cores,
    /// What it may do beyond what every program may.
    powers: Powers,
    /// Microseconds within which the client has to have each of its answers.
    answered: u64,
    /// Whether its memory is limited. If so, it starts nothing on other cores.
    is_limited: bool,
}

/// What that is, if nothing else is said.
const ANSWERED: u64 = 20_000;

/// How an attack ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// By itself, with what it says.
    Answers,
    /// However it likes; if it goes on, it is killed.
    Any,
}

/// Where an attack runs, if there are several cores.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cores {
    /// On the first alone, since it is about what is there alone.
    First,
    /// On each at the same time.
    Every,
    /// The same, and not at all if there is one, since it is about others.
    Several,
    /// On the second alone, against what is on the first.
    Second,
}

impl Attack {
    /// An attack that ends by itself, on every core.
    const fn new(name: &'static str, about: &'static str, run: fn() -> Outcome) -> Attack {
        let (cores, powers) = (Cores::Every, Powers::empty());
        Attack { name, about, run, end: End::Answers, cores, powers, answered: ANSWERED, is_limited: true }
    }

    /// The same for one that starts something on other cores, which nobody does whose memory is limited.
    const fn unlimited(self) -> Attack {
        Attack { is_limited: false, ..self }
    }

    /// The same for one that goes on until it is killed.
    const fn endless(self) -> Attack {
        Attack { end: End::Any, ..self }
    }

    /// The same for one beside which the client may have to wait longer.
    const fn answered_within(self, answered: u64) -> Attack {
        Attack { answered, ..self }
    }

    /// The same with powers.
    const fn with(self, powers: Powers) -> Attack {
        Attack { powers, ..self }
    }

    /// The same on a machine with several cores alone.
    const fn several(self) -> Attack {
        Attack { cores: Cores::Several, ..self }
    }

    /// The same on the second core alone.
    const fn second(self) -> Attack {
        Attack { cores: Cores::Second, ..self }
    }

    /// The same on the first core alone.
    const fn first(self) -> Attack {
        Attack { cores: Cores::First, ..self }
    }
}

/// All of them, in the order in which they run.
const ATTACKS: &[&[Attack]] = &[
    reach::ATTACKS,
    kernel::ATTACKS,
    servers::ATTACKS,
    family::ATTACKS,
    leavers::ATTACKS,
    borrowed::ATTACKS,
    trees::ATTACKS,
    equals::ATTACKS,
    rings::ATTACKS,
    floods::ATTACKS,
    elsewhere::ATTACKS,
    limits::ATTACKS,
];

/// What such a process does.
type Part = fn() -> Outcome;

/// What an attack starts processes of its own for, by name.
const PARTS: &[(&str, Part)] = &[
    ("settle", kernel::settle),
    ("count", kernel::count),
    ("bomb-1", || servers::bomb("bomb-0")),
    ("bomb-2", || servers::bomb("bomb-1")),
    ("bomb-3", || servers::bomb("bomb-2")),
    ("bomb-0", || Ok(())),
    ("greedy", reach::register_as_system),
    ("idle", reach::idle),
    ("plant", trees::plant),
    ("hand-over", borrowed::hand_over),
    ("hand-over-others", borrowed::hand_over_others),
    ("hand-over-tables", borrowed::hand_over_tables),
    ("wait", servers::wait_for_one),
    ("equal", equals::count_for_ever),
    ("take-all", family::take_all),
    ("take-blocks", family::take_blocks),
    ("take-waits", family::take_waits),
    ("sleep-together", family::sleep_together),
    ("limited", limits::limited),
    ("nothing-there", limits::nothing_there),
    ("low", limits::low),
    ("low-there", limits::low_there),
    ("take-mail", limits::take_mail),
    ("count-proxies", limits::count_proxies),
    ("leave-files", leavers::leave_files),
    ("take-room", room::take_room),
];

/// Carries everything out, prints a line for each attack, and powers the machine off.
pub fn play() -> i32 {
    let wanted = tench::args().nth(2);
    let (mut passed, mut failed) = (0, 0);
    let mut say = |name: &str, about: &str, outcome: Outcome| match outcome {
        Ok(()) => {
            passed += 1;
            println!("case: {name} {about} ... ok");
        }
        Err(failure) => {
            failed += 1;
            println!("case: {name} {about} ... FAILED {failure}");
        }
    };
    match field::Field::new() {
        Ok(mut field) => {
            let is_wanted = |name: &str| wanted.is_none_or(|wanted| name.contains(wanted));
            let has_several = field.has_several_cores();
            for control in controls::CONTROLS.iter().filter(|control| is_wanted(control.name)) {
                if has_several || !control.needs_several {
                    say(control.name, control.about, control.play(&mut field));
                }
            }
            let attacks = ATTACKS.iter().copied().flatten().filter(|attack| is_wanted(attack.name));
            let needs_several = |attack: &&Attack| matches!(attack.cores, Cores::Several | Cores::Second);
            for attack in attacks.filter(|attack| has_several || !needs_several(attack)) {
                say(attack.name, attack.about, field.play(attack));
            }
            say("records", "what is remembered of processes that have ended has a limit", field.close());
            say(
                "room",
                "who has no place in a server's table gets as many as before all attacks",
                field.look_for_room(),
            );
        }
        Err(failure) => say("field", "everybody is there", Err(failure)),
    }
    println!("cases: {passed} passed, {failed} failed");
    let _ = Cap::<Kernel>::new(slot::KERNEL).power_off(u8::from(failed > 0));
    1
}

/// The process that attacks, or a part of it. Returns its exit code.
pub fn child(name: &str) -> Option<i32> {
    let attack = ATTACKS.iter().copied().flatten().find(|attack| attack.name == name).map(|attack| attack.run);
    let part = PARTS.iter().find(|part| part.0 == name).map(|part| part.1);
    Some(match attack.or(part)?() {
        Ok(()) => HELD as i32,
        Err(failure) => {
            println!("note: {name}: {failure}");
            (LINES + u64::from(failure.line())) as i32
        }
    })
}

/// Fails unless a process ended with success of nothing.
#[track_caller]
fn held(procs: Procs, process: u64) -> Outcome {
    let status = said(procs.wait_until(process, time::deadline(Duration::from_secs(5))))?;
    match (status.state, status.detail) {
        (State::Exited, HELD) => Ok(()),
        (State::Exited, detail @ LINES..) => {
            Err(Failure::new(format!("something was gained, at line {}", detail - LINES)))
        }
        (state, detail) => Err(Failure::new(format!("it ended otherwise: {state:?}, {detail}"))),
    }
}

/// What was answered; fails with the reason if it was refused.
#[track_caller]
fn said<T, E: Debug>(answer: Result<T, E>) -> Outcome<T> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(error) => Err(Failure::new(format!("unexpectedly refused: {error:?}"))),
    }
}

/// An empty slot.
#[track_caller]
fn empty() -> Outcome<CapAddress> {
    said(memory::take_slot())
}

/// So many microseconds from now.
fn soon(microseconds: u64) -> Instant {
    time::deadline(Duration::from_micros(microseconds))
}

/// A frame's memory, to read and write.
fn window(frame: Cap<tench::sys::Frame>, bits: u32) -> Outcome<Window> {
    said(Window::new(frame, bits, MapFlags::READ | MapFlags::WRITE))
}
