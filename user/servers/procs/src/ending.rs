//! Processes are destroyed at once if they have little to tear down, otherwise in parts, between which the server
//! handles other requests.
//!
//! ```text
//!  killed, or exit, or fault ──▶ stopped ─┬─▶ parts: memory, then process builders ──▶ tell servers, reply to waiters
//!           its start has failed ──────────┘  ▲ the first at once, the others
//!                                             └─ each time the reaper asks
//! ```
//! The reaper is a thread of this server that only requests the next part, at the priority of the ended process or of
//! its killer, whichever is higher. So long teardown runs at the right urgency, and blocks this server for one part at
//! most.

use alloc::vec::Vec;
use core::time::Duration;

use tench::memory;
use tench::thread::Builder;
use tench::time;
use tench_abi::Rights;
use tench_abi::layout::slot;
use tench_abi::process::DEFAULT_PRIORITY;
use tench_procs::records::Condition;
use tench_procs_interface::pid;
use tench_procs_interface::protocol::{Error, State, Status};
use tench_protocol::{Pending, Replies};
use tench_sys::{Cap, Endpoint, Message, Notification, Reply, SchedulingContext, Wait};

use crate::server::{Kept, Server};
use crate::spawn::{SERVICE, Service};
use crate::waiting::Waited;

/// Size of the reaper's stack in bytes.
const STACK: usize = 8 << 10;
/// Pause before a server that did not reply is told again that a process has ended.
const PAUSE: Duration = Duration::from_millis(100);

/// A thread that waits for the end of a process, by the reply that it expects.
pub enum Waiter {
    /// A wait for the exit status.
    Status(Pending<Status, Error>),
    /// A kill: the reply says that the process was killed.
    Kill(Pending<(), Error>),
    /// An interrupt: the reply says that the interrupt killed the process.
    Interrupt(Pending<bool, Error>),
}

impl Waiter {
    /// Returns the reply object in which the thread waits.
    pub const fn reply(&self) -> Cap<Reply> {
        match self {
            Waiter::Status(pending) => pending.reply(),
            Waiter::Kill(pending) => pending.reply(),
            Waiter::Interrupt(pending) => pending.reply(),
        }
    }

    /// Replies to the waiter. A waiter that has given up meanwhile gets no reply.
    pub fn send_reply(self, replies: &mut Replies, status: Result<Status, Error>) {
        // A thread that kills an already ending process learns, when that has ended, that its kill was not the cause.
        let killed = |status: Status| if status.state == State::Killed { Ok(()) } else { Err(Error::WrongState) };
        let _ = match self {
            Waiter::Status(pending) => replies.send(pending, &status),
            Waiter::Kill(pending) => replies.send(pending, &status.and_then(killed)),
            Waiter::Interrupt(pending) => replies.send(pending, &status.and_then(killed).map(|()| true)),
        };
    }

    /// Releases the reply object of a waiter that no longer waits.
    pub fn forget(self, replies: &mut Replies) {
        match self {
            Waiter::Status(pending) => replies.forget(pending),
            Waiter::Kill(pending) => replies.forget(pending),
            Waiter::Interrupt(pending) => replies.forget(pending),
        }
    }
}

/// Work that is left after a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Nothing,
    /// There is a next part.
    Part,
    /// There is a next part, after a pause.
    Later,
}

/// The reaper thread and its work.
pub struct Reaper {
    context: Cap<SchedulingContext>,
    wake: Cap<Notification>,
    /// Processes that are being destroyed, each with the priority of its teardown.
    endings: Vec<(u8, u64)>,
    /// Processes of other cores that have ended, and whose process builders here are to be discarded.
    foreign: Vec<u64>,
    /// Priority at which servers are told again of ended processes; 0 if none is to be told.
    notify_priority: u8,
    /// The thread's current priority, if it has been set.
    priority: Option<u8>,
}

impl Reaper {
    /// Starts the thread. It has this server's priority until there is work.
    pub fn start(core: u64) -> Option<Reaper> {
        let wake = memory::make::<Notification>(0).ok()?.leak();
        let way = memory::take_slot().ok()?;
        let service = SERVICE.mint_to(way, Rights::WRITE | Rights::CALL, pid::pid_base(core) | pid::PROCS).ok()?;
        let thread =
            Builder::new().name("reaper").stack_size(STACK).spawn(move || ask_for_parts(service, wake)).ok()?;
        let context = thread.scheduling()?;
        thread.detach();
        let (endings, foreign) = (Vec::new(), Vec::new());
        Some(Reaper { context, wake, endings, foreign, notify_priority: 0, priority: None })
    }

    /// Returns the next process to work on: the first of those with the highest priority.
    fn next(&self) -> Option<u64> {
        let highest = self.highest()?;
        self.endings.iter().find(|(priority, _)| *priority == highest).map(|(_, process)| *process)
    }

    fn highest(&self) -> Option<u8> {
        self.endings.iter().map(|(priority, _)| *priority).max()
    }

    /// Records that a part is done: the process moves behind the others of its priority, or out of the queue if it has
    /// ended.
    fn is_done_with(&mut self, process: u64, has_ended: bool) {
        if let Some(index) = self.endings.iter().position(|(_, ending)| *ending == process) {
            let ending = self.endings.remove(index);
            if !has_ended {
                self.endings.push(ending);
            }
        }
    }

    /// Sets the thread's priority to that of the next work, if there is any. This is not done before the next part
    /// begins: until then this server replies to those who waited for the part before.
    fn update_priority(&mut self) {
        let foreign = (!self.foreign.is_empty()).then_some(DEFAULT_PRIORITY);
        let notify_priority = (self.notify_priority > 0).then_some(self.notify_priority);
        let Some(priority) = self.highest().or(foreign).or(notify_priority) else { return };
        if self.priority != Some(priority) && set_priority(self.context, priority) {
            self.priority = Some(priority);
        }
    }

    /// Wakes the reaper for new work.
    fn wake(&mut self) {
        self.update_priority();
        // The thread waits for this signal, or sees it when it has done its part.
        let _ = self.wake.signal();
    }
}

fn set_priority(context: Cap<SchedulingContext>, priority: u8) -> bool {
    let main = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let Ok(like) = main.query() else { return false };
    context.configure(u64::from(priority), like.ceiling, like.slice, Some(main)).is_ok()
}

/// Requests one part after another while there is work.
fn ask_for_parts(service: Cap<Endpoint>, wake: Cap<Notification>) {
    while wake.wait().is_ok() {
        loop {
            match service.call_with(&Message::new(0), Wait::FOREVER).map(|reply| reply.label()) {
                Ok(label) if label == Next::Part as u64 => {}
                // The pause also ends when new work arrives.
                Ok(label) if label == Next::Later as u64 => drop(wake.wait_until(time::deadline(PAUSE))),
                _ => break,
            }
        }
    }
}

impl Server {
    /// Returns whether a message with this badge comes from the reaper.
    pub fn is_reaper(&self, badge: u64) -> bool {
        badge == pid::pid_base(self.core) | pid::PROCS
    }

    /// Does one part of the remaining work, and replies to the reaper.
    pub fn reap(&mut self, reply: &mut Message) {
        let next = self.next_part();
        reply.restart(next as u64);
    }

    fn next_part(&mut self) -> Next {
        self.reaper.update_priority();
        if let Some(process) = self.reaper.next() {
            let has_ended = self.end_part(process);
            self.reaper.is_done_with(process, has_ended);
            Next::Part
        } else if let Some(process) = self.reaper.foreign.pop() {
            self.forget_foreign(process);
            Next::Part
        } else {
            match self.notify_again() {
                None => {
                    self.reaper.notify_priority = 0;
                    Next::Nothing
                }
                Some(true) => Next::Part,
                Some(false) => Next::Later,
            }
        }
    }

    /// Ends a process: stops it, and destroys it now or in parts. `by` is the process that requests this.
    pub fn end_process(&mut self, process: u64, how: Condition, by: u64) -> Result<(), Error> {
        let record = self.records.get_mut(process)?;
        match record.kernel.take() {
            Some(Kept::Running(mut running)) => {
                running.stop();
                record.kernel = Some(Kept::Ending(running, how));
            }
            other => {
                record.kernel = other;
                return Err(Error::WrongState);
            }
        }
        self.records.mark_ending(process)?;
        self.take_apart(process, by);
        Ok(())
    }

    /// Cleans up after a failed start: destroys what was built, now or in parts, and then removes the record.
    pub fn give_up(&mut self, process: u64) {
        if self.records.mark_ending(process).is_ok() {
            self.take_apart(process, process);
        }
    }

    /// Destroys a process now, or in parts.
    fn take_apart(&mut self, process: u64, by: u64) {
        if self.end_part(process) {
            return;
        }
        if self.reaper.endings.try_reserve(1).is_err() {
            // There is no memory to queue the rest, so all parts are done now.
            while !self.end_part(process) {}
            return;
        }
        self.reaper.endings.push((0, process));
        self.hasten(process, process);
        self.hasten(process, by);
        self.reaper.wake();
    }

    /// Raises the priority of a teardown to that of the process `whose`, which kills, if it is known here.
    pub fn hasten(&mut self, process: u64, whose: u64) {
        let Ok(priority) = self.records.get(whose).map(|record| record.priority) else { return };
        let mut found = self.reaper.endings.iter_mut().filter(|(_, ending)| *ending == process);
        if let Some((now, _)) = found.find(|(now, _)| *now < priority) {
            *now = priority;
            self.reaper.update_priority();
        }
    }

    /// Makes the reaper tell, at this priority, a running server that missed the end of a process.
    pub fn notify_later(&mut self, priority: u8) {
        self.reaper.notify_priority = self.reaper.notify_priority.max(priority);
        self.reaper.wake();
    }

    /// Discards the process builders of a process of another core, now or in parts. Its waits stay: the process may be
    /// running, and monitors wait in its name.
    pub fn forget_foreign(&mut self, process: u64) {
        self.look_for_gone();
        if let Some(prepared) = self.records.prepared_by(process) {
            self.discard_record(prepared);
        }
        if self.records.prepared_by(process).is_none() {
            return;
        }
        if self.reaper.foreign.try_reserve(1).is_err() {
            while let Some(prepared) = self.records.prepared_by(process) {
                self.discard_record(prepared);
            }
            return;
        }
        self.reaper.foreign.push(process);
        self.reaper.wake();
    }

    /// Does one part of destroying a process. Returns whether the process has ended.
    fn end_part(&mut self, process: u64) -> bool {
        let Ok(record) = self.records.get_mut(process) else { return true };
        let is_clear = match &mut record.kernel {
            Some(Kept::Ending(running, _)) => running.clear_part(),
            Some(Kept::NotStarted(service)) => service.as_ref().is_none_or(Service::revoke_part),
            _ => return true,
        };
        if !is_clear {
            return false;
        }
        // Requests in the name of this process are refused, so it can get no more process builders.
        if let Some(prepared) = self.records.prepared_by(process) {
            self.discard_record(prepared);
            if self.records.prepared_by(process).is_some() {
                return false;
            }
        }
        self.has_ended(process);
        true
    }

    /// Completes the end of a process that has nothing left: tells the other servers, and replies to the waiters. A
    /// process that never ran leaves no record.
    fn has_ended(&mut self, process: u64) {
        let Ok(record) = self.records.get_mut(process) else { return };
        if record.status().state == State::Preparing {
            return self.discard_record(process);
        }
        let Some(Kept::Ending(running, how)) = record.kernel.take() else { return };
        record.ticks = running.used();
        let client = record.client();
        let Ok(ended) = self.records.record_end(process, how) else { return };
        self.notify_servers(client);
        self.supervise_end(process, how);
        self.due_replies.extend(ended.waiters.into_iter().map(|waiter| (waiter, Waited::For(process))));
        self.due_replies.extend(ended.abandoned.into_iter().map(|waiter| (waiter, Waited::ForNobody)));
        self.look_for_gone();
    }
}
