//! Controls, which are no attacks: a program with more power than an attacker does what no attacker may be able to do,
//! and the tests must detect it.

use alloc::format;
use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::abi::power::Client;
use tench::abi::process::DEFAULT_PRIORITY;
use tench::fs;
use tench::io::Write;
use tench::mem::Mem;
use tench::names::Names;
use tench::procs::Procs;
use tench::sys::{Cap, CapAddress, Endpoint, Instant};
use tench::thread::Builder;
use tench::time::{frequency, sleep};
use tench::{memory, println};
use tench_monitor_interface::Monitor;

use super::field::{Bounds, Field, LEFT, VICTIM};
use super::meter::Moment;
use super::{held, procs_of, said};
use crate::case::{Failure, Outcome};

/// An effect that the tests must detect.
pub struct Control {
    /// Name of the control.
    pub name: &'static str,
    /// Statement that holds if the control passes.
    pub about: &'static str,
    /// Causes the effect.
    run: fn() -> Outcome,
    /// Part of the message with which the effect is reported.
    says: &'static str,
    /// Set if the control needs several cores.
    pub needs_several: bool,
}

impl Control {
    const fn new(name: &'static str, about: &'static str, run: fn() -> Outcome, says: &'static str) -> Control {
        Control { name, about, run, says, needs_several: false }
    }
}

/// All controls.
pub const CONTROLS: &[Control] = &[
    Control::new("control-late", "whoever holds the reserved thread up is noticed", hold_up, "reserved jobs were late"),
    Control {
        needs_several: true,
        ..Control::new(
            "control-late-beside",
            "also for little longer than the deadline, while the turns of a busy core are told from that",
            hold_up_beside,
            "reserved jobs were late",
        )
    },
    Control {
        needs_several: true,
        ..Control::new(
            "control-share",
            "whoever takes a third of the core from programs is noticed",
            take_a_share,
            "were left to programs",
        )
    },
    Control::new("control-page", "a page that does not come back is noticed", leak, "grows"),
    Control::new("control-power", "an attack that was given a power is noticed", empower, "something was gained"),
    Control::new("control-served", "a client that is not served is noticed", starve, "the client waited"),
    Control::new("control-file", "a changed file of somebody else's is noticed", change, "not ["),
    Control::new("control-name", "a name that stays registered is noticed", register, "grows"),
];

impl Control {
    /// Runs the control. Passes if its effect was detected.
    pub fn play(&self, field: &mut Field) -> Outcome {
        let left = (self.needs_several && self.says.contains("left")).then_some(LEFT);
        let bounds = Bounds { left, ..Bounds::CONTROL };
        match field.beside(self.name, bounds, &mut self.run.clone()) {
            Ok(()) => Err(Failure::new("it was not noticed")),
            Err(failure) if format!("{failure}").contains(self.says) => {
                println!("note: {}: noticed: {failure}", self.name);
                Ok(())
            }
            Err(failure) => Err(Failure::new(format!("something else was noticed: {failure}"))),
        }
    }
}

/// The memory server with authority.
const AUTHORITY: Mem = Mem::at(Cap::new(CapAddress(slot::EXTRA.0 + 1)));
/// Priority below the memory server's and above programs.
const MONITOR: u8 = 129;
/// Priority above the reserved thread.
const ABOVE: u8 = 200;

/// Occupies the processor for longer than a period.
fn hold_up() -> Outcome {
    let spin = || {
        let end = Instant::now().after(3 * frequency() / 1000);
        while Instant::now() < end {}
    };
    said(Builder::new().priority(ABOVE).spawn(spin))?.join();
    Ok(())
}

/// Occupies the processor for not much longer than a job may take, while the second core is busy.
fn hold_up_beside() -> Outcome {
    let monitor = Monitor::at(said(Names::STANDARD.look_up(Monitor::NAME, memory::take_slot()?))?);
    let procs = procs_of(monitor, 1)?;
    let busy = said(procs.spawn("cases", &["attack", "spin"]))?;
    let spin = || {
        let start = Moment::now();
        // Wherever it begins, a job is released in it, and the rest of it is longer than a job may take.
        while start.passed() < 26 * frequency() / 10_000 {}
    };
    said(Builder::new().priority(ABOVE).spawn(spin))?.join();
    said(procs.kill(busy))?;
    said(procs.wait(busy)).map(drop)
}

/// Is busy for a part of the time, as the monitor would be if it served others without limit.
fn take_a_share() -> Outcome {
    let work = || {
        for _ in 0..40 {
            let start = Moment::now();
            while start.passed() < frequency() / 2500 {}
            sleep(Duration::from_micros(400));
        }
    };
    said(Builder::new().priority(MONITOR).spawn(work))?.join();
    Ok(())
}

/// Takes a page on the account of a process whose account is compared.
fn leak() -> Outcome {
    let clock = Procs::STANDARD.find("clock", 0)?;
    AUTHORITY.allocate_for(Client::alone(clock), 12, memory::take_slot()?)?;
    Ok(())
}

/// Lets an attack on names run with the power to register them.
fn empower() -> Outcome {
    let child = Procs::STANDARD.prepare("cases")?;
    child.argument("attack")?;
    child.argument("greedy")?;
    child.configure(DEFAULT_PRIORITY, DEFAULT_PRIORITY, 0, Powers::NAMES)?;
    held(Procs::STANDARD, child.start()?)
}

/// Suspends the name server for a while.
fn starve() -> Outcome {
    let names = Procs::STANDARD.find("names", 0)?;
    Procs::STANDARD.suspend(names)?;
    sleep(Duration::from_millis(30));
    Ok(Procs::STANDARD.resume(names)?)
}

/// Writes into the file that is compared.
fn change() -> Outcome {
    said(said(fs::create(VICTIM))?.write(b"changed"))?;
    Ok(())
}

/// Registers and keeps another name each time.
fn register() -> Outcome {
    let endpoint = memory::make::<Endpoint>(0)?.leak();
    let name = format!("control/{}", Instant::now().ticks());
    said(Names::STANDARD.register(&name, endpoint))
}
