//! How processes end: at once if little is to be taken apart, otherwise in parts, between which others are served.
//!
//! ```text
//!  killed, or exit, or fault ──▶ stopped ──▶ parts: memory, then what it prepared ──▶ the servers are told, who waited is answered
//!                                             ▲ the first at once, the others
//!                                             └─ each time the undertaker asks
//! ```
//! The undertaker is a thread of this server that does nothing but ask for the next part, at the priority of the ended process or of whoever
//! waits for its end, if that is higher. So what takes long is as urgent as that, and this server is not kept longer than for a part.

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

use crate::server::{Kept, ProcessRecord, Server, Waited};
use crate::services::own_core;
use crate::spawn::SERVICE;

/// Bytes of the undertaker's stack.
const STACK: usize = 8 << 10;
/// How long the undertaker waits until a server that did not answer is told again that a process has ended.
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

/// The thread that asks for parts, once there was something to ask for.
#[derive(Default)]
pub struct Undertaker {
    thread: Option<(Cap<SchedulingContext>, Cap<Notification>)>,
    /// Processes that are taken apart, with the priority at which.
    endings: Vec<(u8, u64)>,
    /// Processes of other cores that have ended, and what they prepared here goes.
    foreign: Vec<u64>,
    priority: u8,
}

impl Undertaker {
    /// The process that is next: the first of those with the highest priority.
    fn next(&self) -> Option<u64> {
        let highest = self.endings.iter().map(|(priority, _)| *priority).max()?;
        self.endings.iter().find(|(priority, _)| *priority == highest).map(|(_, process)| *process)
    }

    /// Sees to it that the thread asks, at the highest of the priorities. Answers whether it will.
    fn wake(&mut self, least: u8) -> bool {
        let highest = self.endings.iter().map(|(priority, _)| *priority).max().unwrap_or(0).max(least);
        if self.thread.is_none() {
            self.thread = start(highest);
            self.priority = highest;
        }
        let Some((context, wake)) = self.thread else { return false };
        if highest != self.priority && set_priority(context, highest) {
            self.priority = highest;
        }
        wake.signal().is_ok()
    }
}

/// Starts the undertaker. There may be no memory for it.
fn start(priority: u8) -> Option<(Cap<SchedulingContext>, Cap<Notification>)> {
    let wake = memory::make::<Notification>(0).ok()?;
    let way = memory::take_slot().ok()?;
    let (signal, own) = (wake.cap(), pid::first(own_core()) | pid::PROCS);
    let started = SERVICE.mint_to(way, Rights::WRITE | Rights::CALL, own).ok().and_then(|service| {
        let thread = Builder::new().name("undertaker").stack_size(STACK).priority(priority);
        thread.spawn(move || undertake(service, signal)).ok()
    });
    let Some((thread, context)) = started.and_then(|thread| thread.scheduling().map(|context| (thread, context)))
    else {
        tench::server::bury(way);
        return None;
    };
    thread.detach();
    Some((context, wake.leak()))
}

fn set_priority(context: Cap<SchedulingContext>, priority: u8) -> bool {
    let main = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let Ok(like) = main.query() else { return false };
    context.configure(u64::from(priority), like.ceiling, like.slice, Some(main)).is_ok()
}

/// Asks for one part after another, whenever there is something to be done.
fn undertake(service: Cap<Endpoint>, wake: Cap<Notification>) {
    while wake.wait().is_ok() {
        loop {
            match service.call_with(&Message::new(0), Wait::FOREVER).map(|answer| answer.label()) {
                Ok(label) if label == Next::Part as u64 => {}
                Ok(label) if label == Next::Later as u64 => time::sleep(PAUSE),
                _ => break,
            }
        }
    }
}

impl Server {
    /// Whether it is the undertaker who asks.
    pub fn is_undertaker(&self, badge: u64) -> bool {
        badge == pid::first(self.core) | pid::PROCS
    }

    /// Does a part of what is left to do, and answers the undertaker.
    pub fn undertake(&mut self, answer: &mut Message) {
        let next = self.next_part();
        answer.restart(next as u64);
    }

    fn next_part(&mut self) -> Next {
        if let Some(process) = self.undertaker.next() {
            if self.end_part(process) {
                self.undertaker.endings.retain(|(_, ending)| *ending != process);
            }
            return Next::Part;
        }
        if let Some(process) = self.undertaker.foreign.pop() {
            self.forget_foreign(process);
            return Next::Part;
        }
        match self.tell_again() {
            None => Next::Nothing,
            Some(true) => Next::Part,
            Some(false) => Next::Later,
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
        if self.end_part(process) {
            return Ok(());
        }
        self.undertaker.endings.push((0, process));
        self.hasten(process, process);
        self.hasten(process, by);
        if !self.undertaker.wake(0) {
            self.end_at_once(process);
        }
        Ok(())
    }

    /// The same where a thread of the process itself asks: nobody is answered, but as long as that thread is there it waits in a reply object,
    /// which `keep` keeps.
    pub fn end_itself(
        &mut self,
        process: u64,
        how: Condition,
        keep: impl FnOnce() -> Option<Waiter>,
    ) -> Result<(), Error> {
        self.end(process, how, process)?;
        if self.records.get(process).is_ok_and(ProcessRecord::has_ended) {
            return Ok(());
        }
        match keep() {
            Some(waiter) => self.records.wait(process, process, None, waiter),
            None => self.end_at_once(process),
        }
        Ok(())
    }

    /// Takes a process apart to the end, where there is no memory to do it in parts.
    fn end_at_once(&mut self, process: u64) {
        while !self.end_part(process) {}
        self.undertaker.endings.retain(|(_, ending)| *ending != process);
    }

    /// A process is taken apart at no lower a priority than that of whoever wants its end, as far as that is known.
    pub fn hasten(&mut self, process: u64, whose: u64) {
        let Ok(priority) = self.records.get(whose).map(|record| record.priority) else { return };
        let mut found = self.undertaker.endings.iter_mut().filter(|(_, ending)| *ending == process);
        if let Some((now, _)) = found.find(|(now, _)| *now < priority) {
            *now = priority;
            self.undertaker.wake(0);
        }
    }

    /// A server that runs was not told that a process has ended: it is told again, at this priority.
    pub fn tell_later(&mut self, priority: u8) {
        // Without memory for the thread, it is told when it is started again.
        let _ = self.undertaker.wake(priority);
    }

    /// What a process of another core has prepared goes, now or in parts.
    pub fn forget_foreign(&mut self, process: u64) {
        if let Some(prepared) = self.records.prepared_by(process) {
            self.discard_record(prepared);
        }
        if self.records.prepared_by(process).is_none() {
            return;
        }
        self.undertaker.foreign.push(process);
        if !self.undertaker.wake(DEFAULT_PRIORITY) {
            self.undertaker.foreign.pop();
            while let Some(prepared) = self.records.prepared_by(process) {
                self.discard_record(prepared);
            }
        }
    }

    /// Does a part of what the end of a process takes. Answers whether it has ended.
    fn end_part(&mut self, process: u64) -> bool {
        let Ok(record) = self.records.get_mut(process) else { return true };
        let Some(Kept::Ending(living, _)) = &mut record.kernel else { return true };
        if !living.clear_part() {
            return false;
        }
        // Nobody of it runs any more, so these become no more.
        if let Some(prepared) = self.records.prepared_by(process) {
            self.discard_record(prepared);
            if self.records.prepared_by(process).is_some() {
                return false;
            }
        }
        self.has_ended(process);
        true
    }

    /// Nothing is left of a process: tells the other servers, and answers those who waited for that.
    fn has_ended(&mut self, process: u64) {
        let Ok(record) = self.records.get_mut(process) else { return };
        let Some(Kept::Ending(living, how)) = record.kernel.take() else { return };
        record.ticks = living.used();
        let Ok(ended) = self.records.end(process, how) else { return };
        self.tell_servers(process);
        self.supervise_end(process, how);
        self.answers.extend(ended.waiters.into_iter().map(|waiter| (waiter, Waited::For(process))));
        self.answers.extend(ended.abandoned.into_iter().map(|waiter| (waiter, Waited::ForNobody)));
    }
}
