//! Attacks, one program each, started with nothing but what every program has, while others are served (`./tench test
//! hostile`).
//!
//! ```text
//! field      the environment of an attack, and the judgement when it is over
//! reserved   a thread with a reservation, which records how long each of its jobs took
//! client     a process that makes requests of all servers and checks every reply
//! meter      time of this core alone, without the other cores' turns in the emulator
//! take_inventory      state that must be as before: memory, processes, names, files, capabilities
//! room       how many entries of the servers' tables are free for a program that has none
//! controls   effects that must be detected: without them it would be unknown whether the rest can fail
//! kernel     attacks on the kernel, by what a program makes of its own memory
//! servers    attacks on servers, by requests
//! family     attacks on servers by a process and its children
//! leavers    attacks by children that end, and leave files
//! borrowed   attacks with capabilities of processes that have ended
//! trees      structures that are expensive to delete
//! rings      threads that wait for each other
//! equals     attempts to keep threads of the same priority from running
//! steps      threads that make single steps
//! floods     attacks that do not end
//! reach      attacks on what others hold, and on other cores
//! elsewhere  floods from another core
//! limits     limits of programs started on another core
//! waits      waits for processes of another core
//! linux      attacks by Linux programs
//! bystander  a busy program of the first core, which keeps its share
//! turns      events with which the emulator gives each core its turns
//! ```
//! An attack is a function that tries something and reports whether it was refused as it should be. The program `cases`
//! runs it in a process of its own, with priority 100; on a machine with two cores, two processes do it, one on each.
//! Each is judged by its report and by its environment: nothing gained, nothing later than admission allowed, every
//! byte back.

mod borrowed;
mod bystander;
mod capacity;
mod client;
mod controls;
mod elsewhere;
mod equals;
mod family;
mod field;
mod floods;
mod inventory;
mod kernel;
mod leavers;
mod limits;
mod linux;
mod meter;
mod reach;
mod reserved;
mod rings;
mod servers;
mod steps;
mod trees;
mod turns;
mod waits;

use alloc::format;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::memory::{self, Window};
use tench::println;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::sys::{Cap, CapAddress, Instant, Kernel, MapFlags};
use tench::time::{self, Duration};
use tench_monitor_interface::Monitor;

pub use client::run as client;
pub use turns::beat_for_ever as beat;

use crate::case::{Failure, Outcome, said};

/// Exit code of an attack that gained nothing.
pub const HELD: u64 = 100;
/// Base of exit codes that report a gain; the source line that detected it is added.
const LINES: u64 = 1000;
/// End of these codes: no source file has so many lines.
const LINES_END: u64 = LINES + 10_000;

/// An attack.
#[derive(Clone, Copy)]
pub struct Attack {
    /// Name in reports and in a child's arguments.
    name: &'static str,
    /// Statement that holds if the attack is resisted.
    about: &'static str,
    /// Tries the attack. Fails if something was gained.
    run: fn() -> Outcome,
    end: End,
    cores: Cores,
    /// Powers that the attacking program has beyond every program's.
    powers: Powers,
    /// Microseconds within which the client must get each reply.
    reply_time: u64,
    /// Set if the attack's memory is limited. Such an attack starts nothing on other cores.
    is_limited: bool,
}

/// Default of [`Attack::reply_time`].
const REPLY_TIME: u64 = 20_000;

/// Ways in which an attack ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The attack ends by itself, and its exit code counts.
    Returns,
    /// The attack may end in any way; if it goes on, it is killed.
    Any,
}

/// Cores on which an attack runs, if there are several.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cores {
    /// On the first alone, whose state it is about.
    First,
    /// On each at the same time.
    Every,
    /// On each at the same time, and not at all if there is only one, since it is about others.
    Several,
    /// On the second alone, against the first.
    Second,
}

impl Attack {
    /// Makes an attack that ends by itself, on every core.
    const fn new(name: &'static str, about: &'static str, run: fn() -> Outcome) -> Attack {
        let (cores, powers) = (Cores::Every, Powers::empty());
        Attack { name, about, run, end: End::Returns, cores, powers, reply_time: REPLY_TIME, is_limited: true }
    }

    /// Makes it one whose memory is not limited, so that it can start programs on other cores.
    const fn unlimited(self) -> Attack {
        Attack { is_limited: false, ..self }
    }

    /// Makes it one that goes on until it is killed.
    const fn endless(self) -> Attack {
        Attack { end: End::Any, ..self }
    }

    /// Makes it one beside which the client may have to wait longer.
    const fn replying_within(self, reply_time: u64) -> Attack {
        Attack { reply_time, ..self }
    }

    /// Gives it powers.
    const fn with(self, powers: Powers) -> Attack {
        Attack { powers, ..self }
    }

    /// Restricts it to machines with several cores.
    const fn several(self) -> Attack {
        Attack { cores: Cores::Several, ..self }
    }

    /// Restricts it to the second core.
    const fn second(self) -> Attack {
        Attack { cores: Cores::Second, ..self }
    }

    /// Restricts it to the first core.
    const fn first(self) -> Attack {
        Attack { cores: Cores::First, ..self }
    }
}

/// All attacks, in the order in which they run.
const ATTACKS: &[&[Attack]] = &[
    reach::ATTACKS,
    kernel::ATTACKS,
    servers::ATTACKS,
    family::ATTACKS,
    leavers::ATTACKS,
    borrowed::ATTACKS,
    trees::ATTACKS,
    equals::ATTACKS,
    steps::ATTACKS,
    rings::ATTACKS,
    floods::ATTACKS,
    elsewhere::ATTACKS,
    limits::ATTACKS,
    waits::ATTACKS,
    linux::ATTACKS,
];

/// Body of a process that is part of an attack.
type Part = fn() -> Outcome;

/// Parts, the processes that attacks start, by name.
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
    ("take-transfers", limits::take_transfers),
    ("count-proxies", limits::count_proxies),
    ("leave-files", leavers::leave_files),
    ("take-capacity", capacity::take_capacity),
    ("wait-elsewhere", waits::wait_elsewhere),
    ("fill-channel", waits::fill_channel),
    ("keep-terminal", linux::keep_terminal),
];

/// Returns whether an attack is wanted: with `even` or `odd` every second one, so that two machines share them, with
/// another word those whose names contain it.
fn is_wanted(index: usize, name: &str) -> bool {
    match tench::args().nth(2) {
        None => true,
        Some("even") => index.is_multiple_of(2),
        Some("odd") => !index.is_multiple_of(2),
        Some(part) => name.contains(part),
    }
}

/// Runs the attacks that are wanted, prints a line for each, and powers the machine off.
pub fn play() -> i32 {
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
            let has_several = field.has_several_cores();
            let controls = controls::CONTROLS.iter().enumerate();
            for (_, control) in controls.filter(|(index, control)| is_wanted(*index, control.name)) {
                if has_several || !control.needs_several {
                    say(control.name, control.about, control.play(&mut field));
                }
            }
            let attacks = ATTACKS.iter().copied().flatten().enumerate();
            let needs_several = |attack: &Attack| matches!(attack.cores, Cores::Several | Cores::Second);
            for (_, attack) in attacks
                .filter(|(index, attack)| is_wanted(*index, attack.name))
                .filter(|(_, attack)| has_several || !needs_several(attack))
            {
                say(attack.name, attack.about, field.play(attack));
            }
            say("records", "what is remembered of processes that have ended has a limit", field.close());
            say(
                "capacity",
                "a program without entries in the servers' tables gets as many as before all attacks",
                field.check_capacity(),
            );
        }
        Err(failure) => say("field", "everybody is there", Err(failure)),
    }
    println!("cases: {passed} passed, {failed} failed");
    let _ = Cap::<Kernel>::new(slot::KERNEL).power_off(u8::from(failed > 0));
    1
}

/// Runs the attacking process, or a part of the attack. Returns its exit code.
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

/// Fails unless a process ended and reported that it gained nothing.
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

/// Returns an empty slot.
#[track_caller]
fn empty() -> Outcome<CapAddress> {
    said(memory::take_slot())
}

/// Returns the process server of a core, which the attack keeps.
#[track_caller]
fn procs_of(monitor: Monitor, core: u64) -> Outcome<Procs> {
    Ok(Procs::at(said(monitor.processes(core, empty()?))?))
}

/// Returns the instant `microseconds` from now.
fn soon(microseconds: u64) -> Instant {
    time::deadline(Duration::from_micros(microseconds))
}

/// Maps a frame for reading and writing.
fn window(frame: Cap<tench::sys::Frame>, bits: u32) -> Outcome<Window> {
    said(Window::new(frame, bits, MapFlags::READ | MapFlags::WRITE))
}
