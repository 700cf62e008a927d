//! Waits for the end of a process: their deadlines, their replies, and how long the server itself waits for requests.

use alloc::vec::Vec;

use tench::memory;
use tench::server::Watch;
use tench_procs_interface::protocol::{Error, State, Status};
use tench_protocol::replies::write;
use tench_protocol::{Caller, Later, Pending, Replies};
use tench_quota::pace::Pace;
use tench_sys::{Instant, Wait};

use super::inspect::describe;
use super::kept::ProcessTable;
use super::reserve;

/// Nanoseconds of a [pause](Pace) between expired waits that are ended; this bounds their cost to two percent of the
/// processor.
const PAUSE: u64 = 1_000_000;

/// A thread that waits for the end of a process. Its reply is made from the process's status.
pub type Waiter = tench_protocol::Waiter<Result<Status, Error>>;

/// Returns the waiter that gets the exit status.
pub const fn status(pending: Pending<Status, Error>) -> Waiter {
    pending.waiter(write)
}

/// Returns the waiter that learns whether its kill ended the process.
pub const fn kill(pending: Pending<(), Error>) -> Waiter {
    pending.waiter(|status, message| write(&was_killed(status), message))
}

/// Returns the waiter that learns whether its interrupt killed the process.
pub const fn interrupt(pending: Pending<bool, Error>) -> Waiter {
    pending.waiter(|status, message| write(&was_killed(status).map(|()| true), message))
}

/// Fails with `WrongState` unless the process was killed. A thread that kills an already ending process learns, when
/// the process has ended, that its kill was not the cause.
fn was_killed(status: &Result<Status, Error>) -> Result<(), Error> {
    match status {
        Ok(status) if status.state == State::Killed => Ok(()),
        Ok(_) => Err(Error::WrongState),
        Err(why) => Err(*why),
    }
}

/// Outcome of a wait.
#[derive(Clone, Copy, Debug)]
enum Waited {
    /// This process has ended.
    For(u64),
    /// The deadline has passed.
    TimedOut,
    /// The thread no longer waits.
    ForNobody,
}

/// Waits that have ended, and how waits end.
pub struct Waiting {
    /// Ended waits, whose replies are to be sent.
    due: Vec<(Waiter, Waited)>,
    /// Tells which reply objects still hold a waiting thread.
    watch: Watch,
    /// Limits how many expired waits are ended at a time.
    pace: Pace,
}

impl Waiting {
    /// Returns the state without ended waits.
    pub fn new() -> Result<Waiting, memory::Error> {
        Ok(Waiting { due: Vec::new(), watch: Watch::new()?, pace: Pace::new(PAUSE, tench::time::frequency()) })
    }

    /// Returns how the server waits for requests. If a server is to be restarted, at `start`, the earliest deadline is
    /// an alarm. A client's deadline by itself is none, because clients choose it freely.
    #[inline]
    pub fn next(&self, records: &ProcessTable, start: Option<u64>) -> Wait {
        let end = records.next_deadline().map(|deadline| self.pace.earliest(deadline));
        match (start, end) {
            (Some(start), end) => Wait::alarm(Instant::from_ticks(end.map_or(start, |end| end.min(start)))),
            (None, Some(end)) => Wait::until(Instant::from_ticks(end)),
            (None, None) => Wait::FOREVER,
        }
    }

    /// Ends some of the expired waits.
    #[inline]
    pub fn expire(&mut self, records: &mut ProcessTable) {
        if records.next_deadline().is_none() {
            return;
        }
        let now = Instant::now().ticks();
        while self.pace.admits(now)
            && let Some(waiter) = records.pop_expired(now)
        {
            self.pace.count(now);
            self.due.push((waiter, Waited::TimedOut));
        }
    }

    /// Lets a thread wait for the end of a process.
    pub fn wait_for(
        &mut self,
        records: &mut ProcessTable,
        caller: Caller,
        later: Later<'_, Status, Error>,
        process: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<Status>, Error> {
        reserve()?;
        records.check_live(caller.process)?;
        if records.get(process)?.has_ended() {
            return describe(records, process).map(Some);
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(Error::TimedOut);
        }
        if !self.may_wait(records, process, caller) {
            return Err(Error::Full);
        }
        let waiter = later.keep().map_err(|_| Error::Full)?;
        records.wait(process, caller, deadline.map(Instant::ticks), status(waiter));
        Ok(None)
    }

    /// Makes room for one more waiting thread, if there is none. Returns whether there is.
    fn may_wait(&mut self, records: &mut ProcessTable, process: u64, caller: Caller) -> bool {
        let watch = self.watch;
        let gone = records.remove_gone(process, caller, |waiter| watch.has_gone(waiter));
        self.forget(gone);
        records.has_capacity(process, caller)
    }

    /// Checks, after a process has ended, whether a few of the waiting threads still wait. This finds waits made in the
    /// name of the ended process from another core or after its end: that a process of another core requests nothing
    /// here any more does not mean that it has ended.
    pub fn look_for_gone(&mut self, records: &mut ProcessTable) {
        let watch = self.watch;
        let gone = records.look_for_gone(|waiter| watch.has_gone(waiter));
        self.forget(gone);
    }

    /// Lets the killer of a process wait until nothing is left of it. Returns whether it waits: if there is no room, it
    /// goes on.
    pub fn wait_for_kill(
        &mut self,
        records: &mut ProcessTable,
        caller: Caller,
        process: u64,
        keep: &mut dyn FnMut() -> Option<Waiter>,
    ) -> bool {
        if reserve().is_err() || !self.may_wait(records, process, caller) {
            return false;
        }
        let Some(waiter) = keep() else { return false };
        records.wait(process, caller, None, waiter);
        true
    }

    /// Notes that a process has ended, for which some have waited, and whose own threads wait no more.
    pub fn ended(&mut self, process: u64, waiters: Vec<Waiter>, abandoned: Vec<Waiter>) {
        self.due.extend(waiters.into_iter().map(|waiter| (waiter, Waited::For(process))));
        self.forget(abandoned);
    }

    /// Notes that these threads no longer wait.
    fn forget(&mut self, gone: Vec<Waiter>) {
        self.due.extend(gone.into_iter().map(|waiter| (waiter, Waited::ForNobody)));
    }

    /// Replies to the threads whose waits have ended.
    #[inline]
    pub fn send_replies(&mut self, records: &ProcessTable, replies: &mut Replies) {
        for (waiter, waited) in core::mem::take(&mut self.due) {
            // A waiter that has given up meanwhile gets no reply.
            let _ = match waited {
                Waited::For(process) => replies.send_to(waiter, &describe(records, process)),
                Waited::TimedOut => replies.send_to(waiter, &Err(Error::TimedOut)),
                Waited::ForNobody => {
                    replies.forget(waiter);
                    continue;
                }
            };
        }
    }
}
