//! Programs on any core: running and killing them, and listing all processes.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::abi::process::DEFAULT_PRIORITY;
use tench::sync::Mutex;
use tench::sys::{Cap, Notification, OWN_CSPACE};
use tench::{memory, println, thread, time};
use tench_monitor_interface::{Failure, Monitor};
use tench_procs_interface::pid::{self, Shown, pid_base, split_pid};
use tench_procs_interface::protocol::{Error, FaultKind, State};
use tench_procs_interface::{Failure as ProcsFailure, Procs, Status};

use crate::share::{take_slot, until};

/// Time for which a program runs before it is killed: long enough to begin a wait.
const MOMENT: Duration = Duration::from_millis(5);

/// Returns the process server of a core. The capability is requested once, and kept.
pub fn procs(monitor: Monitor, core: u64) -> Result<Procs, String> {
    static KNOWN: Mutex<BTreeMap<u64, Procs>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock();
    if let Some(procs) = known.get(&core) {
        return Ok(*procs);
    }
    let procs = Procs::at(monitor.processes(core, take_slot()?).map_err(text)?);
    known.insert(core, procs);
    Ok(procs)
}

/// Makes a request to the process server of a process's core.
pub fn on<T>(
    monitor: Monitor,
    process: u64,
    request: impl FnOnce(Procs) -> Result<T, ProcsFailure>,
) -> Result<T, String> {
    let (core, _) = split_pid(process);
    request(procs(monitor, core)?).map_err(|failure| why(monitor, core, failure))
}

/// Returns why a request to the process server of a core failed, as text.
fn why(monitor: Monitor, core: u64, failure: ProcsFailure) -> String {
    monitor.why_unreachable(core, &failure).map_or_else(|| failure.to_string(), text)
}

/// Starts a program, waits for its end and reports it. Forwards Ctrl-C to the program.
pub fn run(monitor: Monitor, core: u64, program: &[&str]) -> Result<(), String> {
    let process = spawn(monitor, core, program)?;
    // Without memory for the notification, Ctrl-C ends this program alone.
    let _ = memory::make::<Notification>(0).map(|keys| thread::spawn(move || pass_on(monitor, process, keys.cap())));
    report(&wait(monitor, process)?);
    Ok(())
}

/// Interrupts a process whenever Ctrl-C is typed: it may have asked to be told of that.
fn pass_on(monitor: Monitor, process: u64, keys: Cap<Notification>) {
    while Procs::STANDARD.on_interrupt(keys).is_ok() && keys.wait().is_ok() {
        // The process may just have ended by itself.
        let _ = on(monitor, process, |procs| procs.interrupt(process));
    }
}

/// Starts a program, waits for its end and reports it. Kills the program when it runs for too long.
pub fn limit(monitor: Monitor, milliseconds: u64, core: u64, program: &[&str]) -> Result<(), String> {
    let patience = Duration::from_millis(milliseconds);
    report(&run_for(monitor, patience, core, program)?);
    Ok(())
}

fn run_for(monitor: Monitor, patience: Duration, core: u64, program: &[&str]) -> Result<Status, String> {
    let process = spawn(monitor, core, program)?;
    time::sleep(patience);
    on(monitor, process, |procs| match procs.kill(process) {
        // The process has ended by itself.
        Err(ProcsFailure::Refused(Error::WrongState)) => Ok(()),
        killed => killed,
    })?;
    wait(monitor, process)
}

/// Runs a program many times, one after another, and reports whether the core has as much free memory as before.
pub fn repeat(monitor: Monitor, times: u64, core: u64, program: &[&str]) -> Result<(), String> {
    let report = many(monitor, times, core, || {
        let process = spawn(monitor, core, program)?;
        wait(monitor, process).map(drop)
    })?;
    println!("{times} times; {report}");
    Ok(())
}

/// Starts a program many times, and kills it each time after a moment.
pub fn kills(monitor: Monitor, times: u64, core: u64, program: &[&str]) -> Result<(), String> {
    let mut killed = 0;
    let report = many(monitor, times, core, || {
        let process = run_for(monitor, MOMENT, core, program)?;
        killed += u64::from(process.state == State::Killed);
        Ok(())
    })?;
    println!("killed {killed} of {}; {report}", times + 1);
    Ok(())
}

/// Runs an action many times, and reports whether the core has as much free memory as before. Runs it once more at the
/// start, so that memory that servers cache is there.
fn many(
    monitor: Monitor,
    times: u64,
    core: u64,
    mut once: impl FnMut() -> Result<(), String>,
) -> Result<String, String> {
    once()?;
    let before = monitor.memory(core).map_err(text)?.free;
    (0..times).try_for_each(|_| once())?;
    let after = monitor.memory(core).map_err(text)?.free;
    Ok(match after.abs_diff(before) {
        0 => format!("core {core} has as much free memory as before"),
        bytes if after < before => format!("core {core} has {bytes} bytes less than before"),
        bytes => format!("core {core} has {bytes} bytes more than before"),
    })
}

/// Returns the process with a number as people write it.
fn parse(process: &str) -> Result<u64, String> {
    pid::parse(process).ok_or_else(|| format!("\"{process}\" is no process; `ps` lists them"))
}

/// Kills a process, if the user of this program may.
pub fn kill(monitor: Monitor, process: &str) -> Result<(), String> {
    let process = parse(process)?;
    on(monitor, process, |procs| procs.kill(process))
}

/// Suspends a process.
pub fn suspend(monitor: Monitor, process: &str) -> Result<(), String> {
    let process = parse(process)?;
    on(monitor, process, |procs| procs.suspend(process))
}

/// Resumes a process.
pub fn resume(monitor: Monitor, process: &str) -> Result<(), String> {
    let process = parse(process)?;
    on(monitor, process, |procs| procs.resume(process))
}

/// Reports the state of a process.
pub fn status(monitor: Monitor, process: &str) -> Result<(), String> {
    let process = parse(process)?;
    report(&on(monitor, process, |procs| procs.status(process))?);
    Ok(())
}

/// Waits for the end of a process and reports it.
pub fn report_end(monitor: Monitor, process: &str) -> Result<(), String> {
    report(&wait(monitor, parse(process)?)?);
    Ok(())
}

/// Waits for the end of a process, and returns its status.
pub fn wait(monitor: Monitor, process: u64) -> Result<Status, String> {
    on(monitor, process, |procs| procs.wait(process))
}

/// Kills all processes of a name on these cores, and prints their number. Failing to kill some does not spare the
/// others.
pub fn kill_all(monitor: Monitor, cores: impl Iterator<Item = u64>, name: &str) -> Result<(), String> {
    let (mut killed, mut refused) = (0, None);
    for core in cores {
        match on(monitor, pid_base(core), |procs| procs.kill_all(name)) {
            Ok(count) => killed += count,
            Err(failure) => refused = Some(format!("core {core}: {failure}")),
        }
    }
    println!("killed {killed}");
    refused.map_or(Ok(()), Err)
}

/// Lists the running processes of a name.
pub fn find(monitor: Monitor, name: &str) -> Result<(), String> {
    let (count, _) = monitor.cores().map_err(text)?;
    for core in 0..count {
        let mut after = pid_base(core);
        while let Some(process) = on(monitor, after, |procs| found(procs.find(name, after)))? {
            println!("{}", Shown(process));
            after = process;
        }
    }
    Ok(())
}

/// Prints how many processes run on a core.
pub fn load(monitor: Monitor, core: u64) -> Result<(), String> {
    println!("core {core} runs {}", on(monitor, pid_base(core), |procs| procs.load())?);
    Ok(())
}

/// Prints the core on which the fewest processes run, the first if there are several. Cores that do not reply are
/// skipped.
pub fn least(monitor: Monitor) -> Result<(), String> {
    let (count, _) = monitor.cores().map_err(text)?;
    let loads = (0..count).filter_map(|core| Some((on(monitor, pid_base(core), |procs| procs.load()).ok()?, core)));
    println!("{}", loads.min().ok_or("no core replies")?.1);
    Ok(())
}

/// Returns `None` if there is no such process.
fn found<T>(result: Result<T, ProcsFailure>) -> Result<Option<T>, ProcsFailure> {
    match result {
        Err(ProcsFailure::Refused(Error::NoSuchProcess)) => Ok(None),
        result => result.map(Some),
    }
}

/// Prints how much memory a core has.
pub fn memory(monitor: Monitor, core: u64) -> Result<(), String> {
    let memory = monitor.memory(core).map_err(text)?;
    println!("core {core}: {} KiB, of which {} KiB are free", memory.total >> 10, memory.free >> 10);
    Ok(())
}

/// Asks another core for memory, and waits until it has arrived.
pub fn grow(monitor: Monitor, from: u64, mebibytes: u64) -> Result<(), String> {
    let (_, own) = monitor.cores().map_err(text)?;
    let before = monitor.memory(own).map_err(text)?.total;
    let given = monitor.grow(from, mebibytes.saturating_mul(1 << 20)).map_err(text)?;
    crate::share::until(|| monitor.memory(own).is_ok_and(|memory| memory.total == before + given))?;
    println!("core {from} gave {} MiB to core {own}", given >> 20);
    Ok(())
}

/// Lists the processes of all cores that have not ended.
pub fn list(monitor: Monitor) -> Result<(), String> {
    let (count, _) = monitor.cores().map_err(text)?;
    println!("CORE      PID   PARENT       TIME  STATE      NAME");
    for core in 0..count {
        let mut after = pid_base(core);
        loop {
            let process = match on(monitor, after, |procs| found(procs.next(after))) {
                Ok(Some(process)) => process,
                Ok(None) => break,
                Err(failure) => {
                    println!("{core:>4}  {failure}");
                    break;
                }
            };
            after = process.process;
            if !process.state.has_ended() {
                println!("{}", line(core, &process));
            }
        }
    }
    Ok(())
}

fn line(core: u64, process: &Status) -> String {
    let Status { process, parent, state, ticks, name, .. } = process;
    let milliseconds = ticks.saturating_mul(1000) / time::frequency();
    let state = state.to_string();
    format!("{core:>4} {:>8} {:>8} {milliseconds:>7} ms  {state:<9}  {name}", shown(*process), shown(*parent))
}

/// Starts a program with arguments and the powers of this one.
pub fn spawn_with_powers(monitor: Monitor, core: u64, program: &[&str]) -> Result<u64, String> {
    let [name, arguments @ ..] = program else { return Err("there is no program to start".into()) };
    let own = OWN_CSPACE.identify_at(slot::PROCS).map_err(|failure| failure.to_string())?;
    on(monitor, pid_base(core), |procs| {
        let child = procs.prepare(name)?;
        arguments.iter().try_for_each(|argument| child.argument(argument))?;
        child.configure(DEFAULT_PRIORITY, DEFAULT_PRIORITY, 0, Powers::of_badge(own.badge))?;
        child.start()
    })
}

/// Starts a program with arguments on a core; it gets no powers.
pub fn spawn(monitor: Monitor, core: u64, program: &[&str]) -> Result<u64, String> {
    let [name, arguments @ ..] = program else { return Err("there is no program to start".into()) };
    on(monitor, pid_base(core), |procs| procs.spawn(name, arguments))
}

/// Returns a process number for a column.
fn shown(process: u64) -> String {
    Shown(process).to_string()
}

/// Reports the state of a process.
fn report(process: &Status) {
    let (who, detail) = (Shown(process.process), process.detail);
    match process.state {
        State::Exited => println!("process {who} exited with {detail}"),
        State::Faulted => match FaultKind::from_code(detail) {
            Some(kind) => println!("process {who} crashed: {kind}"),
            None => println!("process {who} crashed"),
        },
        state => println!("process {who}: {state}"),
    }
}

/// Returns an error as text.
pub fn text(failure: Failure) -> String {
    failure.to_string()
}

/// Makes a process builder on a core, through that core's process server, and ends.
pub fn prepare(monitor: Monitor, core: u64) -> Result<(), String> {
    on(monitor, pid_base(core), |procs| procs.prepare("hello").map(drop))
}

/// Lets processes end that have made process builders on a core, and checks that those builders are discarded.
pub fn abandon(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    let (_, own) = monitor.cores().map_err(text)?;
    let procs = procs(monitor, core)?;
    let count = || {
        let mut after = pid_base(core);
        core::iter::from_fn(|| {
            after = procs.next(after).ok()?.process;
            Some(())
        })
        .count()
    };
    let before = count();
    for _ in 0..times {
        let preparing = spawn(monitor, own, &["cores", "prepare", &core.to_string()])?;
        let ended = wait(monitor, preparing)?;
        if ended.exit_code() != Some(0) {
            return Err("a process could not prepare another".to_string());
        }
    }
    // Ended processes stay known for a while; they are on this core.
    let added = if own == core { times as usize } else { 0 };
    until(|| count() == before + added)?;
    println!("{times} processes of core {own} prepared one each on core {core}, and ended; nothing is left there");
    Ok(())
}
