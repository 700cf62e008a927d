//! What is no attack: somebody with more power than an attacker has does what no attacker may be able to do, and that has to be noticed.

use alloc::format;
use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
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

use super::field::{Bounds, Field, VICTIM};
use super::{held, said};
use crate::case::{Failure, Outcome};

/// Something that has to be noticed.
pub struct Control {
    /// By which it is named.
    pub name: &'static str,
    /// What holds if it passes.
    pub about: &'static str,
    /// Does it.
    run: fn() -> Outcome,
    /// Part of what is said about it then.
    says: &'static str,
}

/// All of them.
pub const CONTROLS: &[Control] = &[
    Control {
        name: "control-late",
        about: "whoever holds the reserved thread up is noticed",
        run: hold_up,
        says: "reserved jobs were late",
    },
    Control { name: "control-page", about: "a page that does not come back is noticed", run: leak, says: "grows" },
    Control {
        name: "control-power",
        about: "an attack that was given a power is noticed",
        run: empower,
        says: "something was gained",
    },
    Control {
        name: "control-served",
        about: "a client that is not served is noticed",
        run: starve,
        says: "the client waited",
    },
    Control { name: "control-file", about: "a changed file of somebody else's is noticed", run: change, says: "not [" },
    Control { name: "control-name", about: "a name that stays registered is noticed", run: register, says: "grows" },
];

impl Control {
    /// Carries it out. Passes if it was noticed.
    pub fn play(&self, field: &mut Field) -> Outcome {
        match field.beside(self.name, Bounds::CONTROL, &mut self.run.clone()) {
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
/// Above the reserved thread.
const ABOVE: u8 = 200;

/// Keeps the processor for longer than a period.
fn hold_up() -> Outcome {
    let spin = || {
        let end = Instant::now().after(3 * frequency() / 1000);
        while Instant::now() < end {}
    };
    said(Builder::new().priority(ABOVE).spawn(spin))?.join();
    Ok(())
}

/// Takes a page, on the account of a process that is none of those whose accounts are not looked at.
fn leak() -> Outcome {
    let clock = Procs::STANDARD.find("clock", 0)?;
    AUTHORITY.allocate_for(clock, 12, memory::take_slot()?)?;
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

/// Writes into the file that is looked at.
fn change() -> Outcome {
    said(said(fs::create(VICTIM))?.write(b"changed"))?;
    Ok(())
}

/// Registers a name and keeps it, another each time.
fn register() -> Outcome {
    let endpoint = memory::make::<Endpoint>(0)?.leak();
    let name = format!("control/{}", Instant::now().ticks());
    said(Names::STANDARD.register(&name, endpoint))
}
