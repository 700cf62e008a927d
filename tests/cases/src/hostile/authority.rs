//! Tests that a program with nothing but its standard capabilities can neither harm other processes nor gain anything
//! through what it starts. Each case starts such a program, a child of this one, which tries everything and reports by
//! its exit code which attempt succeeded.

use alloc::format;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::abi::object::Statistic;
use tench::abi::power::identity;
use tench::memory::{self, Made};
use tench::procs::pid;
use tench::procs::protocol::{Error as ProcsError, State};
use tench::procs::{Failure as ProcsFailure, Procs, Spawn};
use tench::sys::{Cap, CapAddress, Endpoint, Kernel, Kind};
use tench::{clock::Clock, fs, names::Names, process, time};
use tench_protocol::{Failure, Rejection};

use crate::case::{Case, Failure as CaseFailure, Outcome};
use crate::programs::handed_over;

pub const CASES: &[Case] = &[
    Case::new("HOS0101", "who has no powers manages its descendants and nobody else", |_| play("manage")),
    Case::new("HOS0102", "no power and no priority is passed on that one does not have", |_| play("pass")),
    Case::new("HOS0103", "a program is given nothing for its name", |_| play("names")),
    Case::new("HOS0104", "servers that a program starts itself are programs like others", |_| play("servers")),
    Case::new("HOS0105", "the kernel is not there for who was not given it", |_| play("kernel")),
    Case::new("HOS0106", "a power is passed on to children, and from there no further than they say", |_| descend()),
    Case::new("HOS0107", "a server that was given no endpoint says so and ends", |_| alone()),
    Case::new("HOS0108", "a program from a file is given nothing for its name", |_| play("files")),
];

const PROCS: Procs = Procs::STANDARD;
/// Exit code of a child that was refused everything.
const REFUSED: u64 = 100;
/// Programs of this image to which the system description grants something.
const FAVOURED: [&str; 9] = ["mem", "procs", "names", "clock", "console", "files", "monitor", "reserve", "cases"];
/// Priority below the child's.
const BELOW: u8 = 50;
/// Usual priority of programs.
const USUAL: u64 = 100;

/// Starts a child without powers that tries everything of one kind.
fn play(what: &str) -> Outcome {
    let child = PROCS.prepare("cases")?;
    for argument in ["authority", what, &format!("{}", process::id())] {
        child.argument(argument)?;
    }
    let status = PROCS.wait(child.start()?)?;
    check!(status.state == State::Exited);
    match status.exit_code() {
        Some(REFUSED) => Ok(()),
        code => Err(CaseFailure::new(format!("of the attempts at {what}, number {code:?} had success"))),
    }
}

/// Runs the child that tries everything. Returns its exit code.
pub fn child(what: &str, parent: u64) -> Option<i32> {
    let attempts: &[fn(u64) -> Option<bool>] = match what {
        "manage" => MANAGE,
        "pass" => PASS,
        "names" => &[|_| FAVOURED.iter().try_fold(true, |so_far, name| Some(so_far && is_given_nothing(name)?))],
        "files" => &[|_| is_given_nothing_for_a_file()],
        "servers" => &[|_| duplicate()],
        "kernel" => KERNEL,
        "descend" => return descendant(parent),
        _ => return None,
    };
    for (number, attempt) in attempts.iter().enumerate() {
        if attempt(parent) != Some(true) {
            return Some(number as i32);
        }
    }
    Some(REFUSED as i32)
}

/// Returns whether the process server has refused a request for lack of a power.
fn not_allowed<T>(result: Result<T, ProcsFailure>) -> Option<bool> {
    Some(matches!(result, Err(ProcsFailure::Refused(ProcsError::NotAllowed))))
}

/// Returns whether a request was refused before the server's own code saw it.
fn not_permitted<T>(result: Result<T, ProcsFailure>) -> Option<bool> {
    Some(matches!(result, Err(Failure::Rejected(Rejection::NotAllowed))))
}

/// Returns a process builder of the child's.
fn prepared() -> Option<Spawn> {
    PROCS.prepare("hello").ok()
}

/// Attempts to manage processes that are not the child's.
const MANAGE: &[fn(u64) -> Option<bool>] = &[
    |parent| not_allowed(PROCS.kill(parent)),
    |parent| not_allowed(PROCS.suspend(parent)),
    |parent| not_allowed(PROCS.resume(parent)),
    |parent| not_allowed(PROCS.interrupt(parent)),
    |parent| not_allowed(PROCS.limit(parent, 1 << 20)),
    |parent| not_allowed(PROCS.capabilities(parent, CapAddress::NULL)),
    |_| not_allowed(PROCS.kill(PROCS.find("console", 0).ok()?)),
    |_| not_allowed(PROCS.suspend(PROCS.find("names", 0).ok()?)),
    |_| not_allowed(PROCS.capabilities(pid::PROCS, CapAddress::NULL)),
    |_| not_allowed(PROCS.kill(pid::INIT)),
    |_| not_permitted(PROCS.server("mem", memory::take_slot().ok()?)),
    |_| not_permitted(PROCS.forget(pid::pid_base(1) | 5)),
    |_| not_permitted(PROCS.set_link(process::id())),
    |_| not_permitted(PROCS.supervise(prepared()?.process(), "mine", 5, 0, 0, 0)),
    |_| {
        // The child may manage what it starts itself.
        let own = prepared()?;
        own.configure(BELOW, BELOW, 0, Powers::empty()).ok()?;
        let own = own.start().ok()?;
        Some(PROCS.suspend(own).is_ok() && PROCS.resume(own).is_ok() && PROCS.kill(own).is_ok())
    },
];

/// Attempts to pass on authority that the child does not have.
const PASS: &[fn(u64) -> Option<bool>] = &[
    |_| {
        let child = prepared()?;
        let refused = |powers| not_allowed(child.configure(BELOW, BELOW, 0, powers)) == Some(true);
        let all = Powers::all().iter().chain([Powers::all(), Powers::POWER | Powers::COUNTERS]).all(refused);
        // Bits that have no meaning.
        let unknown = [1 << 9, 1 << 15, 1 << 16, 1 << 48, u64::MAX];
        let unknown = unknown
            .into_iter()
            .all(|bits| not_allowed(PROCS.set_up(child.process(), BELOW, BELOW, 0, bits)) == Some(true));
        child.abandon();
        Some(all && unknown)
    },
    |_| {
        let child = prepared()?;
        let result = |priority, ceiling| child.configure(priority, ceiling, 0, Powers::empty());
        let usual = USUAL as u8;
        let refused =
            |priority, ceiling| result(priority, ceiling) == Err(ProcsFailure::Refused(ProcsError::PriorityTooHigh));
        let is_bounded = refused(usual + 1, usual + 1) && refused(0, usual + 1) && refused(255, 255) && refused(51, 50);
        let may = result(usual, usual).is_ok();
        child.abandon();
        Some(is_bounded && may)
    },
    |_| Some(PROCS.powers(process::id()).ok()? == 0),
];

/// Attempts at the kernel.
const KERNEL: &[fn(u64) -> Option<bool>] = &[
    |_| is_empty(slot::KERNEL),
    |_| is_empty(slot::INTERRUPT_CONTROL),
    |_| Some(Cap::<Kernel>::new(slot::KERNEL).query(Statistic::PreemptionPoints).is_err()),
    |_| Some(Cap::<Kernel>::new(slot::KERNEL).machine().is_err()),
    // The first attempt returns; otherwise the machine would be off.
    |_| Some(Cap::<Kernel>::new(slot::KERNEL).power_off(3) != tench::sys::Error::Aborted),
];

fn is_empty(slot: CapAddress) -> Option<bool> {
    Some(tench::sys::OWN_CSPACE.identify_at(slot).ok()?.kind == Kind::Null)
}

/// Makes an endpoint of the child's, given to the process that it starts as the one to serve at.
fn serve_at_own(child: &Spawn) -> Option<Made<Endpoint>> {
    let endpoint = memory::make::<Endpoint>(0).ok()?;
    child.give_in(endpoint.cap(), slot::SERVICE).ok()?;
    Some(endpoint)
}

/// Returns whether a program started under this name has the standard capabilities and no more.
fn is_given_nothing(name: &str) -> Option<bool> {
    is_plain(|| PROCS.prepare(name).ok())
}

/// Returns whether a program from a file under such a name has the standard capabilities and no more.
fn is_given_nothing_for_a_file() -> Option<bool> {
    let hello = fs::read("/bin/hello").ok()?;
    let is_plain = |name| is_plain(|| handed_over(name, &hello).ok());
    FAVOURED
        .into_iter()
        .chain(["init", "shell", "bin/shell", "/bin/init"])
        .try_fold(true, |so_far, name| Some(so_far && is_plain(name)?))
}

/// Returns whether the prepared process has the standard capabilities and no more.
fn is_plain(prepare: impl Fn() -> Option<Spawn>) -> Option<bool> {
    let usual = prepare()?;
    let status = PROCS.status(usual.process()).ok()?;
    // One of them runs at once; the other one is inspected first.
    let has_no_powers = PROCS.powers(usual.process()).ok()? == 0;
    usual.abandon();
    let child = prepare()?;
    let _endpoint = serve_at_own(&child)?;
    // The child does not run before it has been inspected.
    child.configure(BELOW, BELOW, 0, Powers::empty()).ok()?;
    let child = child.start().ok()?;
    let is_usual = has_no_powers && status.priority == USUAL;
    let is_plain = is_usual && PROCS.powers(child).ok()? == 0 && has_standard_capabilities(child)?;
    let _ = PROCS.kill(child);
    Some(is_plain)
}

/// Returns whether a process holds only standard capabilities, whose badges grant no powers.
fn has_standard_capabilities(process: u64) -> Option<bool> {
    let mut from = CapAddress::NULL;
    let extra = slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT;
    loop {
        let (next, found) = PROCS.capabilities(process, from).ok()?;
        for one in &found {
            let is_of_kernel =
                matches!(one.kind, Kind::Kernel | Kind::InterruptControl | Kind::Interrupt | Kind::Doorbell);
            let is_extra = extra.contains(&one.address.0) || one.address == slot::KEPT_MEMORY;
            let is_client = one.kind == Kind::Endpoint && one.address != slot::SERVICE;
            let is_plain = identity(one.badge) == process && Powers::of_badge(one.badge).is_empty();
            if is_of_kernel || is_extra || is_client && !is_plain {
                return Some(false);
            }
        }
        if next == CapAddress::NULL {
            return Some(true);
        }
        from = next;
    }
}

/// Starts the clock server five times at endpoints of its own, and ends these instances: that must not affect others.
/// Five such requests once kept the process server busy for ever.
fn duplicate() -> Option<bool> {
    let clock = PROCS.find("clock", 0).ok()?;
    for _ in 0..5 {
        let child = PROCS.prepare("clock").ok()?;
        let endpoint = serve_at_own(&child)?;
        let child = child.start().ok()?;
        let _ = PROCS.kill(child);
        drop(endpoint);
    }
    time::sleep(time::Duration::from_millis(50));
    let slot = memory::take_slot().ok()?;
    let real = Names::STANDARD.look_up(Clock::NAME, slot).ok()?;
    let _ = real.delete();
    // Nothing was started again, and the real clock server serves.
    Some(PROCS.find("clock", 0).ok()? == clock && PROCS.find("clock", clock).is_err())
}

/// Starts a child with two powers, which passes on one of them, but not the other.
fn descend() -> Outcome {
    let powers = Powers::COUNTERS | Powers::PROCESSES;
    let child = PROCS.prepare("cases")?;
    for argument in ["authority", "descend", &format!("{}", powers.bits())] {
        child.argument(argument)?;
    }
    child.configure(USUAL as u8, USUAL as u8, 0, powers)?;
    let status = PROCS.wait(child.start()?)?;
    equal!(status.exit_code(), Some(REFUSED));
    Ok(())
}

/// Runs the child or grandchild that has these powers, and gives the last of them to a child of its own.
fn descendant(powers: u64) -> Option<i32> {
    let powers = Powers::from_bits_truncate(powers as u16);
    let kernel = Cap::<Kernel>::new(slot::KERNEL);
    let has = |power| powers.contains(power);
    let is_right = PROCS.powers(process::id()).ok()? == u64::from(powers.bits())
        && kernel.query(Statistic::PreemptionPoints).is_ok() == has(Powers::COUNTERS)
        && PROCS.capabilities(pid::PROCS, CapAddress::NULL).is_ok() == has(Powers::PROCESSES)
        && PROCS.kill(pid::MEM) != Ok(())
        && !kernel.machine().is_ok_and(|machine| machine.device_tree != 0);
    if !is_right {
        return Some(1);
    }
    let Some(last) = powers.iter().last() else { return Some(REFUSED as i32) };
    let child = PROCS.prepare("cases").ok()?;
    for argument in ["authority", "descend", &format!("{}", powers.difference(last).bits())] {
        child.argument(argument).ok()?;
    }
    // It cannot pass on powers that it does not have.
    let more = not_allowed(child.configure(USUAL as u8, USUAL as u8, 0, powers | Powers::POWER))?;
    child.configure(USUAL as u8, USUAL as u8, 0, powers.difference(last)).ok()?;
    let status = PROCS.wait(child.start().ok()?).ok()?;
    if more { status.exit_code().map(|code| code as i32) } else { Some(2) }
}

/// Runs a server without an endpoint. Such a server once kept asking the kernel for requests for ever, at the priority
/// that the description gave it.
pub fn alone() -> Outcome {
    for server in ["names", "console", "files"] {
        let child = PROCS.prepare(server)?.start()?;
        let status = PROCS.wait_until(child, time::deadline(time::Duration::from_secs(2)));
        if status.is_err() {
            PROCS.kill(child)?;
        }
        let status = status?;
        equal!((server, status.state), (server, State::Exited));
        check!(status.exit_code() != Some(0));
    }
    Ok(())
}
