//! Waits for the end of a process: their deadlines, their replies, and how long the server itself waits for requests.

use tench_procs_interface::protocol::{Error, Status};
use tench_protocol::{Caller, Later, Replies};
use tench_sys::{Instant, Wait};

use crate::ending::Waiter;
use crate::server::{Server, reserve};

/// Outcome of a wait.
#[derive(Clone, Copy, Debug)]
pub enum Waited {
    /// This process has ended.
    For(u64),
    /// The deadline has passed.
    TimedOut,
    /// The thread no longer waits.
    ForNobody,
}

impl Server {
    /// Returns how the server waits for requests. If a server is to be restarted, the earliest deadline is an alarm. A
    /// client's deadline by itself is none, because clients choose it freely.
    #[inline]
    pub fn next_wait(&self) -> Wait {
        let start = self.supervisor.next_deadline();
        let end = self.records.next_deadline().map(|deadline| self.pace.earliest(deadline));
        match (start, end) {
            (Some(start), end) => Wait::alarm(Instant::from_ticks(end.map_or(start, |end| end.min(start)))),
            (None, Some(end)) => Wait::until(Instant::from_ticks(end)),
            (None, None) => Wait::FOREVER,
        }
    }

    /// Ends some of the expired waits.
    #[inline]
    pub fn expire(&mut self) {
        if self.records.next_deadline().is_none() {
            return;
        }
        let now = Instant::now().ticks();
        while self.pace.admits(now)
            && let Some(waiter) = self.records.pop_expired(now)
        {
            self.pace.count(now);
            self.due_replies.push((waiter, Waited::TimedOut));
        }
    }

    /// Lets a thread wait for the end of a process.
    pub fn wait_for(
        &mut self,
        caller: Caller,
        later: Later<'_, Status, Error>,
        process: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<Status>, Error> {
        reserve()?;
        self.records.check_live(caller.process)?;
        if self.records.get(process)?.has_ended() {
            return self.describe(process).map(Some);
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(Error::TimedOut);
        }
        if !self.may_wait(process, caller) {
            return Err(Error::Full);
        }
        let waiter = later.keep().map_err(|_| Error::Full)?;
        self.records.wait(process, caller, deadline.map(Instant::ticks), Waiter::Status(waiter));
        Ok(None)
    }

    /// Makes room for one more waiting thread, if there is none. Returns whether there is.
    fn may_wait(&mut self, process: u64, caller: Caller) -> bool {
        let watch = self.watch;
        let gone = self.records.remove_gone(process, caller, |waiter| watch.is_empty(waiter.reply()));
        self.due_replies.extend(gone.into_iter().map(|waiter| (waiter, Waited::ForNobody)));
        self.records.has_capacity(process, caller)
    }

    /// Checks, after a process has ended, whether a few of the waiting threads still wait. This finds waits made in the
    /// name of the ended process from another core or after its end: that a process of another core requests nothing
    /// here any more does not mean that it has ended.
    pub fn look_for_gone(&mut self) {
        let watch = self.watch;
        let gone = self.records.look_for_gone(|waiter| watch.is_empty(waiter.reply()));
        self.due_replies.extend(gone.into_iter().map(|waiter| (waiter, Waited::ForNobody)));
    }

    /// Lets the killer of a process wait until nothing is left of it. Returns whether it waits: if there is no room, it
    /// goes on.
    pub fn wait_for_kill(&mut self, caller: Caller, process: u64, keep: &mut dyn FnMut() -> Option<Waiter>) -> bool {
        if reserve().is_err() || !self.may_wait(process, caller) {
            return false;
        }
        let Some(waiter) = keep() else { return false };
        self.records.wait(process, caller, None, waiter);
        true
    }

    /// Replies to the threads whose waits have ended, and to those that waited for a server.
    #[inline]
    pub fn reply_to_waiters(&mut self, replies: &mut Replies) {
        for (waiter, waited) in core::mem::take(&mut self.due_replies) {
            match waited {
                Waited::For(process) => waiter.send_reply(replies, self.describe(process)),
                Waited::TimedOut => waiter.send_reply(replies, Err(Error::TimedOut)),
                Waited::ForNobody => waiter.forget(replies),
            }
        }
        self.reply_to_connections(replies);
    }
}
