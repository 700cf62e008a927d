//! The cores of the machine, and the programs that run on them. Without arguments the program lists the cores;
//! [`USAGE`] lists what else it can do.
//!
//! ```text
//! main         the cores, and messages to them
//! call         endpoints that are called from another core
//! attachments  memory attached to requests to another core
//! names        endpoints that are found by name, hoarded, and never replied to
//! processes    programs on any core
//! refusals     objects that cannot be sent
//! share        memory that cores share, and lend each other
//! signals      notifications that are signalled from another core
//! traffic      capabilities sent and revoked by all cores at random
//! ```

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod attachments;
mod call;
mod names;
mod processes;
mod refusals;
mod share;
mod signals;
mod traffic;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench::{again, memory, println};
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::State;
use tench_names_interface::{Failure as NamesFailure, Names};

tench::entry!(main);

/// Usage of the program.
const USAGE: &str =
    "usage: cores [ping CORE [TIMES] | ps | memory CORE | load CORE | least | run CORE PROGRAM [ARGUMENT...] |
    kill|suspend|resume|status|wait [CORE:]PID | killall [CORE] NAME | find NAME |
    limit MILLISECONDS CORE PROGRAM [ARGUMENT...] | repeat TIMES CORE PROGRAM [ARGUMENT...] |
    kills TIMES CORE PROGRAM [ARGUMENT...] | share CORE [TIMES] | lend CORE [TIMES] |
    leave CORE [TIMES] | call CORE [TIMES] | attachments CORE [TIMES] | signal CORE [TIMES] |
    abandon CORE TIMES |
    named CORE CORE | own CORE CORE NAME | mute CORE TIMES | unheard CORE TIMES | hoard | look-up TIMES |
    lose CORE PROGRAM | keep CORE PROGRAM | refusals CORE |
    traffic STEPS [SEED [kill]] | grow CORE MEBIBYTES]";

fn main() -> Result<(), String> {
    if tench::process::help(USAGE) {
        return Ok(());
    }
    let words: Vec<&str> = tench::args().skip(1).collect();
    on_processes(&words)
}

/// Runs a command about processes of any core, or another.
fn on_processes(words: &[&str]) -> Result<(), String> {
    match *words {
        ["ps"] => processes::list(several()?),
        ["kill", process] => processes::kill(several()?, process),
        ["suspend", process] => processes::suspend(several()?, process),
        ["resume", process] => processes::resume(several()?, process),
        ["status", process] => processes::status(several()?, process),
        ["wait", process] => processes::report_end(several()?, process),
        ["killall", name] => {
            let monitor = several()?;
            let (count, _) = monitor.cores().map_err(|failure| failure.to_string())?;
            processes::kill_all(monitor, 0..count, name)
        }
        ["killall", core, name] => {
            let core = number(core)?;
            processes::kill_all(several()?, core..core.saturating_add(1), name)
        }
        ["find", name] => processes::find(several()?, name),
        ["load", core] => processes::load(several()?, number(core)?),
        ["least"] => processes::least(several()?),
        ["memory", core] => processes::memory(several()?, number(core)?),
        ["run", core, ref program @ ..] if !program.is_empty() => processes::run(several()?, number(core)?, program),
        ["limit", time, core, ref program @ ..] if !program.is_empty() => {
            processes::limit(several()?, number(time)?, number(core)?, program)
        }
        ["repeat", times, core, ref program @ ..] if !program.is_empty() => {
            processes::repeat(several()?, number(times)?, number(core)?, program)
        }
        ["kills", times, core, ref program @ ..] if !program.is_empty() => {
            processes::kills(several()?, number(times)?, number(core)?, program)
        }
        ["abandon", core, times] => processes::abandon(several()?, number(core)?, number(times)?),
        ["prepare", core] => processes::prepare(several()?, number(core)?),
        ["grow", core, mebibytes] => processes::grow(several()?, number(core)?, number(mebibytes)?),
        _ => on_capabilities(words),
    }
}

/// Runs a command about capabilities that travel between cores, and about cores as such.
fn on_capabilities(words: &[&str]) -> Result<(), String> {
    match *words {
        [] => list(),
        ["ping", core] => ping(number(core)?, 1),
        ["ping", core, times] => ping(number(core)?, number(times)?),
        ["share", core] => share::share(several()?, number(core)?, 1),
        ["share", core, times] => share::share(several()?, number(core)?, number(times)?),
        ["lend", core] => share::lend(several()?, number(core)?, 1),
        ["lend", core, times] => share::lend(several()?, number(core)?, number(times)?),
        ["leave", core] => share::leave(several()?, number(core)?, 1),
        ["leave", core, times] => share::leave(several()?, number(core)?, number(times)?),
        ["call", core] => call::call(several()?, number(core)?, 1),
        ["call", core, times] => call::call(several()?, number(core)?, number(times)?),
        ["attachments", core] => attachments::attachments(several()?, number(core)?, 1),
        ["attachments", core, times] => attachments::attachments(several()?, number(core)?, number(times)?),
        ["attachments-of", whose] => attachments::guest(several()?, whose == "there"),
        ["signal", core] => signals::signal(several()?, number(core)?, 1),
        ["signal", core, times] => signals::signal(several()?, number(core)?, number(times)?),
        ["named", core, other] => names::named(several()?, number(core)?, number(other)?),
        ["own", core, other, name] => names::own(several()?, [number(core)?, number(other)?], name),
        ["own-server", name] => names::own_server(name),
        ["own-client", name] => names::own_client(name),
        ["mute", core, times] => names::mute(several()?, number(core)?, number(times)?),
        ["unheard", core, times] => names::unheard(several()?, number(core)?, number(times)?),
        ["unheard-of"] => names::unheard_of(several()?),
        ["hoard"] => names::hoard(),
        ["look-up", times] => names::drop_all(number(times)?),
        ["badge"] => names::badge(),
        ["badge-of", core] => names::badge_of(number(core)?),
        ["muted"] => names::muted(several()?),
        ["caller"] => call::caller(several()?),
        ["signaller"] => signals::signaller(several()?),
        ["lose", core, program] => share::lose(several()?, number(core)?, program),
        ["keep", core, program] => share::keep(several()?, number(core)?, program),
        ["refusals", core] => refusals::all(several()?, number(core)?),
        ["traffic", steps] => traffic::traffic(several()?, steps, 1, false),
        ["traffic", steps, seed] => traffic::traffic(several()?, steps, number(seed)?, false),
        ["traffic", steps, seed, "kill"] => traffic::traffic(several()?, steps, number(seed)?, true),
        ["rest"] => traffic::rest(several()?),
        ["agent", steps, seed] => traffic::agent(several()?, steps, seed),
        ["idle"] => refusals::idle(),
        ["granter", guest] => share::granter(several()?, number(guest)?),
        ["guest"] => share::guest(several()?),
        _ => Err(USAGE.to_string()),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a number; {USAGE}"))
}

/// Returns the monitor of this core; `None` if there is none, because there is no other core to need it.
fn monitor() -> Result<Option<Monitor>, String> {
    let slot = memory::take_slot().map_err(|_| "no memory".to_string())?;
    match again(|| Names::STANDARD.look_up(Monitor::NAME, slot)) {
        Ok(endpoint) => Ok(Some(Monitor::at(endpoint))),
        Err(NamesFailure::Refused(_)) => Ok(None),
        Err(failure) => Err(failure.to_string()),
    }
}

/// Returns the monitor. Fails if there is only one core.
fn several() -> Result<Monitor, String> {
    Ok(monitor()?.ok_or("no monitor runs; a machine with one core needs none")?)
}

fn list() -> Result<(), String> {
    let Some(monitor) = monitor()? else {
        println!("no monitor runs; a machine with one core needs none");
        return Ok(());
    };
    let (count, _) = monitor.cores().map_err(|failure| failure.to_string())?;
    println!("CORE    MEMORY      START  STATE");
    let mut running = 0;
    for number in 0..count {
        let core = monitor.core(number).map_err(|failure| failure.to_string())?;
        running += u64::from(matches!(core.state, State::Here | State::Running));
        let memory = if core.memory == 0 { "-".to_string() } else { format!("{} MiB", core.memory >> 20) };
        let start = if core.start == 0 { "-".to_string() } else { microseconds(core.start) };
        println!("{number:>4} {memory:>9} {start:>10}  {}", core.state);
    }
    println!("{running} of {count} cores run");
    Ok(())
}

/// Sends messages to a core, one after another.
fn ping(core: u64, times: u64) -> Result<(), String> {
    let monitor = several()?;
    let mut total = 0;
    for _ in 0..times {
        total += monitor.ping(core).map_err(|failure| failure.to_string())?;
    }
    println!("core {core} replied {times} times, after {} each", microseconds(total / times.max(1)));
    Ok(())
}

/// Returns ticks of the system counter in microseconds, as text.
fn microseconds(ticks: u64) -> String {
    format!("{} µs", ticks.saturating_mul(1_000_000) / tench::time::frequency())
}
