//! Attacks on what others hold, on operations that take a power, and on other cores. Most are those of
//! [`powers`] and [`authority`], where the attempts are described.

use alloc::format;
use core::time::Duration;

use tench::abi::Powers;
use tench::memory::make;
use tench::names::Names;
use tench::names::protocol::Error as NamesError;
use tench::procs::protocol::Error as ProcsError;
use tench::procs::{Failure as ProcsFailure, Procs, pid};
use tench::sys::{Endpoint, Frame, OWN_CSPACE};
use tench::time::sleep;
use tench_monitor_interface::Monitor;
use tench_protocol::Failure as RequestFailure;

use super::super::{authority, powers};
use super::{Attack, empty, held, procs_of, said};
use crate::case::{Failure, Outcome};

pub const ATTACKS: &[Attack] = &[
    Attack::new("manage", "nobody manages processes that are not his descendants", || {
        tried(authority::child("manage", parent()?))
    })
    .first(),
    Attack::new("pass", "nobody passes on a power or a priority that he does not have", || {
        tried(authority::child("pass", parent()?))
    }),
    Attack::new("favoured", "a program is given nothing for its name", || tried(authority::child("names", 0))).first(),
    Attack::new("duplicates", "servers that a program starts itself are programs like others", || {
        tried(authority::child("servers", 0))
    })
    .first(),
    Attack::new("alone", "a server without its endpoint ends, and spins nowhere", authority::alone).first(),
    Attack::new("kernel", "the kernel is not there for who was not given it", || tried(authority::child("kernel", 0))),
    Attack::new("memory", "memory, accounts and slabs of others are out of reach", || tried(powers::child("mem"))),
    Attack::new("names", "the system's names are not registered", || tried(powers::child("names"))).first(),
    Attack::new("names-elsewhere", "nor are they on another core", register_as_system),
    Attack::new("terminal", "the terminal is not taken", || tried(powers::child("console"))),
    Attack::new("reserve", "processor time is not reserved", || tried(powers::child("reserve"))).first(),
    Attack::new("files", "what others made is not changed", || tried(powers::child("files"))).first(),
    Attack::new("family", "children have no more memory together than their parent may have", family).first(),
    Attack::new("other-cores", "processes of other cores are managed by nobody else", other_cores)
        .several()
        .unlimited(),
    Attack::new("untaken", "capabilities that nobody takes go with their sender", untaken).several().unlimited(),
];

/// Returns the process that started this attack.
fn parent() -> Outcome<u64> {
    tench::args().nth(3).and_then(|text| text.parse().ok()).ok_or_else(|| Failure::new("nobody said who starts it"))
}

/// Fails unless an exit code of another case's child says that everything was refused.
#[track_caller]
fn tried(code: Option<i32>) -> Outcome {
    match code {
        Some(code) if code as u64 == super::HELD => Ok(()),
        code => Err(Failure::new(format!("attempt number {code:?} had success"))),
    }
}

/// Tries to register names that are reserved for the system. Also a part.
pub fn register_as_system() -> Outcome {
    for name in ["names", "console", "files", "monitor", "procs", "mem", "init", "a.new.server", "x", "1:console"] {
        let endpoint = make::<Endpoint>(0)?;
        let result = Names::STANDARD.register(name, endpoint.cap());
        if !matches!(result, Err(RequestFailure::Refused(NamesError::NotAllowed))) {
            return Err(Failure::new(format!("{name}: {result:?}")));
        }
    }
    Ok(())
}

/// Bytes of memory for the attack in which a family wants more.
const LIMIT: u64 = 8 << 20;

fn family() -> Outcome {
    let child = Procs::STANDARD.prepare("cases")?;
    child.argument("powerless")?;
    child.argument("family")?;
    child.limit(LIMIT)?;
    held(Procs::STANDARD, child.start()?)
}

/// Returns the monitor of this core, if there are several cores.
fn monitor() -> Outcome<Option<Monitor>> {
    match Names::STANDARD.look_up(Monitor::NAME, empty()?) {
        Ok(found) => Ok(Some(Monitor::at(found))),
        Err(RequestFailure::Refused(NamesError::Unknown)) => Ok(None),
        Err(failure) => Err(Failure::new(format!("{failure:?}"))),
    }
}

fn other_cores() -> Outcome {
    let Some(monitor) = monitor()? else { return Ok(()) };
    let (count, own) = said(monitor.cores())?;
    for core in 0..count {
        let procs = procs_of(monitor, core)?;
        let not_allowed = |result: Result<(), _>| {
            matches!(result, Err(RequestFailure::Refused(ProcsError::NotAllowed | ProcsError::Essential)))
        };
        for process in [pid::INIT, pid::MEM, pid::PROCS].map(|process| pid::pid_base(core) | process) {
            check!(not_allowed(procs.kill(process)) && not_allowed(procs.suspend(process)));
            check!(not_allowed(procs.interrupt(process).map(drop)));
        }
        check!(not_allowed(procs.kill_all("monitor").map(drop)));
        if core == own {
            continue;
        }
        let child = procs.prepare("hello")?;
        let refused = |result, error| result == Err(ProcsFailure::Refused(error));
        check!(refused(child.configure(101, 101, 0, Powers::empty()), ProcsError::PriorityTooHigh));
        check!(refused(child.configure(100, 100, 0, Powers::MEMORY), ProcsError::NotAllowed));
        child.abandon();
    }
    let procs = procs_of(monitor, 1 - own.min(1))?;
    let ended = said(procs.spawn("hello", &[])).and_then(|child| said(procs.wait(child)))?;
    check!(ended.process != 0);
    Ok(())
}

/// Runs a part that takes nothing.
pub fn idle() -> Outcome {
    loop {
        sleep(Duration::from_secs(1));
    }
}

fn untaken() -> Outcome {
    /// More transfers than are kept for one process.
    const MOST: usize = 200;
    let Some(monitor) = monitor()? else { return Ok(()) };
    let (_, own) = said(monitor.cores())?;
    let procs = procs_of(monitor, 1 - own.min(1))?;
    let idle = said(procs.spawn("cases", &["attack", "idle"]))?;
    let frame = make::<Frame>(12)?;
    let mut sent = 0;
    while sent < MOST && monitor.give(idle, 0, tench::sys::Cap::new(frame.cap().address())).is_ok() {
        sent += 1;
    }
    check!(sent < MOST);
    said(procs.kill(idle))?;
    said(procs.wait(idle))?;
    sleep(Duration::from_millis(5));
    equal!(OWN_CSPACE.identify_at(frame.cap().address())?.size_bits, 12);
    Ok(())
}
