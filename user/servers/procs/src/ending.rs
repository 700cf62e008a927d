//! How processes end: at once if little is to be taken apart, otherwise in parts, between which others are served.
//!
//! ```text
//!  killed, or exit, or fault ──▶ stopped ─┬─▶ parts: memory, then what it prepared ──▶ the servers are told, who waited is answered
//!           its start has failed ──────────┘  ▲ the first at once, the others
//!                                             └─ each time the reaper asks
//! ```
//! The reaper is a thread of this server that does nothing but ask for the next part, at the priority of the ended
//! process or of whoever killed it, if that is higher. So what takes long is as urgent as that, and this server is not
//! kept longer than for a part.

use alloc::vec::Vec;
use core::time::Duration;

use tench::memory;
use tench::thread::Builder;
use tench::time;
use tench_abi::Rights;
use tench_abi::layout::slot;
use tench_abi::process::DEFAULT_PRIORITY;
use tench_procs::records::Condition;
use tench_procs_client::pid;
use tench_procs_client::protocol::{Error, State, Status};
use tench_protocol::{Pending, Replies};
use tench_sys::{Cap, Endpoint, Message, Notification, Reply, SchedulingContext, Wait};

use crate::server::{Kept, Server};
use crate::spawn::{SERVICE, Service};
use crate::waiting::Waited;

/// Bytes of the reaper's stack.
const STACK: usize = 8 << 10;
/// How long the reaper waits until a server that did not answer is told again that a process has ended.
const PAUSE: Duration = Duration::from_millis(100);

/// Somebody who waits for the end of a process, by what he is told of it.
pub enum Waiter {
    /// How it ended.
    Status(Pending<Status, Error>),
    /// That it was killed.
    Kill(Pending<(), Error>),
    /// That the interrupt has killed it.
    Interrupt(Pending<bool, Error>),
}

impl Waiter {
    /// The object that he waits in.
    pub const fn reply(&self) -> Cap<Reply> {
        match self {
            Waiter::Status(pending) => pending.reply(),
            Waiter::Kill(pending) => pending.reply(),
            Waiter::Interrupt(pending) => pending.reply(),
        }
    }

    /// Tells him. Who gave up meanwhile is told nothing.
    pub fn answer(self, replies: &mut Replies, status: Result<Status, Error>) {
        // Who kills a process that is ending already is told, when it has ended, that he did not kill it.
        let killed = |status: Status| if status.state == State::Killed { Ok(()) } else { Err(Error::WrongState) };
        let _ = match self {
            Waiter::Status(pending) => replies.answer(pending, &status),
            Waiter::Kill(pending) => replies.answer(pending, &status.and_then(killed)),
            Waiter::Interrupt(pending) => replies.answer(pending, &status.and_then(killed).map(|()| true)),
        };
    }

    /// Nobody waits any more.
    pub fn forget(self, replies: &mut Replies) {
        match self {
            Waiter::Status(pending) => replies.forget(pending),
            Waiter::Kill(pending) => replies.forget(pending),
            Waiter::Interrupt(pending) => replies.forget(pending),
        }
    }
}

/// What is left to do when a part is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing.
    Nothing,
    /// The next part.
    Part,
    /// The next part, but not at once.
    Later,
}

/// The thread that asks for parts, and what there is to do.
pub struct Reaper {
    context: Cap<SchedulingContext>,
    wake: Cap<Notification>,
    /// Processes that are taken apart, with the priority at which.
    endings: Vec<(u8, u64)>,
    /// Processes of other cores that have ended, and what they prepared here goes.
    foreign: Vec<u64>,
    /// At which servers are told again.
    telling: u8,
    /// What the thread has now, if anybody has set it.
    priority: Option<u8>,
}

impl Reaper {
    /// Starts the thread, at this server's priority, until there is something to do.
    pub fn start(core: u64) -> Option<Reaper> {
        let wake = memory::make::<Notification>(0).ok()?.leak();
        let way = memory::take_slot().ok()?;
        let service = SERVICE.mint_to(way, Rights::WRITE | Rights::CALL, pid::first(core) | pid::PROCS).ok()?;
        let thread =
            Builder::new().name("reaper").stack_size(STACK).spawn(move || ask_for_parts(service, wake)).ok()?;
        let context = thread.scheduling()?;
        thread.detach();
        let (endings, foreign) = (Vec::new(), Vec::new());
        Some(Reaper { context, wake, endings, foreign, telling: 0, priority: None })
    }

    /// The process that is next: the first of those with the highest priority.
    fn next(&self) -> Option<u64> {
        let highest = self.highest()?;
        self.endings.iter().find(|(priority, _)| *priority == highest).map(|(_, process)| *process)
    }

    fn highest(&self) -> Option<u8> {
        self.endings.iter().map(|(priority, _)| *priority).max()
    }

    /// A part of what a process had is gone: it is the last of its priority, or all of it is gone.
    fn is_done_with(&mut self, process: u64, has_ended: bool) {
        if let Some(place) = self.endings.iter().position(|(_, ending)| *ending == process) {
            let ending = self.endings.remove(place);
            if !has_ended {
                self.endings.push(ending);
            }
        }
    }

    /// Gives the thread the priority of what is next, if there is something. (Not before it is begun: until then this
    /// server answers those who waited for what is done.)
    fn settle(&mut self) {
        let foreign = (!self.foreign.is_empty()).then_some(DEFAULT_PRIORITY);
        let telling = (self.telling > 0).then_some(self.telling);
        let Some(priority) = self.highest().or(foreign).or(telling) else { return };
        if self.priority != Some(priority) && set_priority(self.context, priority) {
            self.priority = Some(priority);
        }
    }

    /// Sees to it that the thread asks.
    fn wake(&mut self) {
        self.settle();
        // It waits for that, or looks when it is done with a part.
        let _ = self.wake.signal();
    }
}

fn set_priority(context: Cap<SchedulingContext>, priority: u8) -> bool {
    let main = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let Ok(like) = main.query() else { return false };
    context.configure(u64::from(priority), like.ceiling, like.slice, Some(main)).is_ok()
}

/// Asks for one part after another, whenever there is something to be done.
fn ask_for_parts(service: Cap<Endpoint>, wake: Cap<Notification>) {
    while wake.wait().is_ok() {
        loop {
            match service.call_with(&Message::new(0), Wait::FOREVER).map(|answer| answer.label()) {
                Ok(label) if label == Next::Part as u64 => {}
                // Or until there is something else to do.
                Ok(label) if label == Next::Later as u64 => drop(wake.wait_until(time::deadline(PAUSE))),
                _ => break,
            }
        }
    }
}

impl Server {
    /// Whether it is the reaper who asks.
    pub fn is_reaper(&self, badge: u64) -> bool {
        badge == pid::first(self.core) | pid::PROCS
    }

    /// Does a part of what is left to do, and answers the reaper.
    pub fn reap(&mut self, answer: &mut Message) {
        let next = self.next_part();
        answer.restart(next as u64);
    }

    fn next_part(&mut self) -> Next {
        self.reaper.settle();
        if let Some(process) = self.reaper.next() {
            let has_ended = self.end_part(process);
            self.reaper.is_done_with(process, has_ended);
            Next::Part
        } else if let Some(process) = self.reaper.foreign.pop() {
            self.forget_foreign(process);
            Next::Part
        } else {
            match self.tell_again() {
                None => {
                    self.reaper.telling = 0;
                    Next::Nothing
                }
                Some(true) => Next::Part,
                Some(false) => Next::Later,
            }
        }
    }

    /// Ends a process: it is stopped, and taken apart now or in parts. `by` is who wants that.
    pub fn end(&mut self, process: u64, how: Condition, by: u64) -> Result<(), Error> {
        let record = self.records.get_mut(process)?;
        match record.kernel.take() {
            Some(Kept::Living(mut living)) => {
                living.stop();
                record.kernel = Some(Kept::Ending(living, how));
            }
            other => {
                record.kernel = other;
                return Err(Error::WrongState);
            }
        }
        self.records.begin_end(process)?;
        self.take_apart(process, by);
        Ok(())
    }

    /// The start of a process has failed: what is left of it is taken apart now or in parts, and then its record goes,
    /// too.
    pub fn give_up(&mut self, process: u64) {
        if self.records.begin_end(process).is_ok() {
            self.take_apart(process, process);
        }
    }

    /// Takes a process apart now, or in parts.
    fn take_apart(&mut self, process: u64, by: u64) {
        if self.end_part(process) {
            return;
        }
        if self.reaper.endings.try_reserve(1).is_err() {
            // There is no memory to remember it.
            while !self.end_part(process) {}
            return;
        }
        self.reaper.endings.push((0, process));
        self.hasten(process, process);
        self.hasten(process, by);
        self.reaper.wake();
    }

    /// A process is taken apart at no lower a priority than that of whoever kills it, as far as that is known.
    pub fn hasten(&mut self, process: u64, whose: u64) {
        let Ok(priority) = self.records.get(whose).map(|record| record.priority) else { return };
        let mut found = self.reaper.endings.iter_mut().filter(|(_, ending)| *ending == process);
        if let Some((now, _)) = found.find(|(now, _)| *now < priority) {
            *now = priority;
            self.reaper.settle();
        }
    }

    /// A server that runs was not told that a process has ended: it is told again, at this priority.
    pub fn tell_later(&mut self, priority: u8) {
        self.reaper.telling = self.reaper.telling.max(priority);
        self.reaper.wake();
    }

    /// What a process of another core has prepared goes, now or in parts. Its waits stay: it may live, and monitors
    /// wait in its name.
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

    /// Does a part of what the end of a process takes. Answers whether it has ended.
    fn end_part(&mut self, process: u64) -> bool {
        let Ok(record) = self.records.get_mut(process) else { return true };
        let is_clear = match &mut record.kernel {
            Some(Kept::Ending(living, _)) => living.clear_part(),
            Some(Kept::NotStarted(service)) => service.as_ref().is_none_or(Service::revoke_part),
            _ => return true,
        };
        if !is_clear {
            return false;
        }
        // Whatever is asked in its name is refused, so these become no more.
        if let Some(prepared) = self.records.prepared_by(process) {
            self.discard_record(prepared);
            if self.records.prepared_by(process).is_some() {
                return false;
            }
        }
        self.has_ended(process);
        true
    }

    /// Nothing is left of a process: tells the other servers, and answers those who waited for that. Of one that has
    /// not run no record stays.
    fn has_ended(&mut self, process: u64) {
        let Ok(record) = self.records.get_mut(process) else { return };
        if record.status().state == State::Preparing {
            return self.discard_record(process);
        }
        let Some(Kept::Ending(living, how)) = record.kernel.take() else { return };
        record.ticks = living.used();
        let client = record.client();
        let Ok(ended) = self.records.end(process, how) else { return };
        self.tell_servers(client);
        self.supervise_end(process, how);
        self.answers.extend(ended.waiters.into_iter().map(|waiter| (waiter, Waited::For(process))));
        self.answers.extend(ended.abandoned.into_iter().map(|waiter| (waiter, Waited::ForNobody)));
        self.look_for_gone();
    }
}
