//! Attacks by Linux programs: the process that runs them has no more than any other, and so have they.

use alloc::format;

use tench::console::protocol::{Console, Mode};
use tench::memory;
use tench::procs::{Procs, Status};
use tench::sys::Notification;
use tench::time::{self, Duration};

use super::{Attack, said};
use crate::case::{Failure, Outcome};

pub const ATTACKS: &[Attack] = &[
    Attack::new("linux-calls", "Linux programs that make random calls hold nobody up", || {
        ends(&["linux/hostile", "9", "600"])
    })
    .first(),
    Attack::new("linux-processes", "nor do those that make processes until there is no memory", || {
        takes_all_memory(&["linux/bomb"])
    })
    .first(),
];

const PROCS: Procs = Procs::STANDARD;
/// The longest that such a program may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// Time for which the program has the terminal, and for which it then tries to get it.
const SPAN: Duration = Duration::from_millis(5);

/// Runs a Linux program, which ends with 0 if nothing went wrong.
fn ends(arguments: &[&str]) -> Outcome {
    let status = run(arguments)?;
    if status.exit_code() == Some(0) {
        return Ok(());
    }
    Err(Failure::new(format!("it ended otherwise: {:?}, {}", status.state, status.detail)))
}

/// Runs a Linux program that takes all memory, and ends with 0 unless it is killed for that: 1 says that it took hardly
/// any, 2 that it could have taken more.
fn takes_all_memory(arguments: &[&str]) -> Outcome {
    let status = run(arguments)?;
    match status.exit_code() {
        Some(1) => Err(Failure::new("it took hardly any memory")),
        Some(2) => Err(Failure::new("it did not take all memory")),
        _ => Ok(()),
    }
}

/// Runs a Linux program, and returns how it has ended.
fn run(arguments: &[&str]) -> Outcome<Status> {
    let child = said(PROCS.prepare("linux"))?;
    for argument in ["--quiet"].iter().chain(arguments) {
        said(child.argument(argument))?;
    }
    let instance = said(child.start())?;
    said(PROCS.wait_until(instance, time::deadline(PATIENCE)))
}

/// Runs a part: lends the terminal, which takes the power for it, to a program that keeps it, and takes it back.
pub fn keep_terminal() -> Outcome {
    let own = tench::process::id();
    let child = said(PROCS.prepare("linux"))?;
    for argument in ["--quiet", "linux/keeper"] {
        said(child.argument(argument))?;
    }
    let interrupt = said(memory::make::<Notification>(0))?;
    said(Console::STANDARD.set_reader_and_signal(child.process(), interrupt.cap()))?;
    said(Console::STANDARD.lend(child.process()))?;
    let instance = said(child.start())?;
    let state = || said(Console::STANDARD.state()).map(|(mode, reader, _)| (mode, reader));
    let end = time::deadline(PATIENCE);
    while state()? != (Mode::Raw, instance) {
        check!(tench::sys::Instant::now() < end);
        time::sleep(Duration::from_millis(1));
    }
    time::sleep(SPAN);
    said(Console::STANDARD.set_reader(own))?;
    equal!(state()?, (Mode::Canonical, own));
    time::sleep(SPAN);
    equal!(state()?, (Mode::Canonical, own));
    said(PROCS.kill(instance))?;
    said(PROCS.wait(instance))?;
    equal!(state()?, (Mode::Canonical, own));
    Ok(())
}
