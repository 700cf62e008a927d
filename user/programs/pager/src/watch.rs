//! The watcher, which starts pagers of each conduct and reports what happens.

use alloc::format;

use tench::mem::Mem;
use tench::memory::make;
use tench::println;
use tench::procs::protocol::State;
use tench::procs::{Procs, Status};
use tench::sys::Notification;
use tench::time::{self, Duration};

use crate::{CONDUCTS, Problem};

/// Maximum time until a fault comes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for which a client that stands still is watched.
const WATCHED: Duration = Duration::from_millis(20);

const PROCS: Procs = Procs::STANDARD;

/// Starts a pager with its client. The notification is signalled when the first fault has come.
fn start(conduct: &str, faulted: tench::sys::Cap<Notification>) -> Result<u64, Problem> {
    let mut spawn = PROCS.prepare("pager")?;
    spawn.give(faulted)?;
    spawn.argument("serve")?;
    spawn.argument(conduct)?;
    Ok(spawn.start()?)
}

/// Runs a pager that does its work, to the end.
fn honest(conduct: &str) -> Result<(), Problem> {
    println!("pager: {conduct}");
    let faulted = make::<Notification>(0)?;
    let pager = start(conduct, faulted.cap())?;
    let status = PROCS.wait(pager)?;
    match status.exit_code() {
        Some(0) => Ok(()),
        _ => Err(format!("the pager ended in state {:?}, {}", status.state, status.detail).into()),
    }
}

/// Returns the client of a pager.
fn client_of(pager: u64) -> Result<Status, Problem> {
    let mut after = pager;
    loop {
        let found = PROCS.next(after)?;
        if found.parent == pager {
            return Ok(found);
        }
        after = found.process;
    }
}

/// Runs a pager that does not do its work, until its client has faulted, and beyond.
fn hostile(conduct: &str) -> Result<(), Problem> {
    println!("pager: {conduct}");
    let faulted = make::<Notification>(0)?;
    let pager = start(conduct, faulted.cap())?;
    faulted.cap().wait_until(time::deadline(PATIENCE))?;
    time::sleep(WATCHED);
    let client = client_of(pager)?;
    println!("  the client {}", in_words(&client));
    // All other processes go on.
    honest("honest")?;
    let pager_now = PROCS.status(pager)?;
    println!("  meanwhile the client {}, the pager {}", in_words(&PROCS.status(client.process)?), in_words(&pager_now));
    end(client.process)?;
    if !pager_now.state.has_ended() {
        end(pager)?;
    }
    for process in [client.process, pager] {
        if accounts(process)? {
            return Err(format!("process {process} has memory still").into());
        }
    }
    println!("  killed: neither has memory any more");
    Ok(())
}

fn in_words(status: &Status) -> &'static str {
    match status.state {
        State::Running => "has not ended",
        State::Exited => "has exited",
        _ => "has been stopped by others",
    }
}

/// Kills a process, and waits for its end.
fn end(process: u64) -> Result<(), Problem> {
    PROCS.kill(process)?;
    match PROCS.wait(process)?.state {
        State::Killed => Ok(()),
        other => Err(format!("process {process} is {other:?}, not killed").into()),
    }
}

/// Returns true if a process has memory.
fn accounts(process: u64) -> Result<bool, Problem> {
    Ok(matches!(Mem::STANDARD.next_account(process - 1), Ok(account) if account.process == process && account.used > 0))
}

/// Runs pagers of all conducts.
pub fn run() -> Result<(), Problem> {
    honest("honest")?;
    honest("strict")?;
    CONDUCTS.iter().try_for_each(|conduct| hostile(conduct))
}
