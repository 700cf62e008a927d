//! Work for others that takes time: who gets a worker, who waits for one, and who is answered when it is done.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use tench::server::Watch;
use tench_channel::Request as Number;
use tench_monitor::about::About;
use tench_monitor::message::{Malformed, Outcome, decode_result};
use tench_monitor::portions::Portions;
use tench_monitor_client::protocol::{Error, Memory, Process};
use tench_places::{Client as Asks, Places};
use tench_protocol::wire::{Encode, Source};
use tench_protocol::{Decode, Pending, Port, Replies};
use tench_sys::{Cap, Error as Refusal, Notification};

use crate::capabilities::{self, Work};
use crate::processes;
use crate::services::{Request, Services};
use crate::workers::{Pool, Product, Task};

/// Workers that a monitor has at most.
const WORKERS: usize = 128;
/// How many of them may be in calls that can take for ever. The others are for what is short, such as killing those who
/// wait.
const PLACES: usize = 112;
/// In the place of a server's number: this core's process server and memory server.
const PROCESSES: u64 = u64::MAX;

/// The same for capabilities.
const CAPABILITIES: u64 = u64::MAX - 1;

/// Somebody of this core who waits for an answer about processes.
pub enum Asker {
    /// For a number.
    Number(Pending<u64, Error>),
    /// For what is known of a process.
    Process(Pending<Process, Error>),
    /// For the end of it.
    Done(Pending<(), Error>),
    /// For yes or no.
    Truth(Pending<bool, Error>),
    /// For what is known of memory.
    Memory(Pending<Memory, Error>),
}

impl Asker {
    /// Answers with what became of it.
    pub fn finish(self, port: &mut Port, words: &[u64]) {
        match self {
            Asker::Number(pending) => port.finish(pending, &result(words)),
            Asker::Process(pending) => port.finish(pending, &result(words)),
            Asker::Done(pending) => port.finish(pending, &result(words)),
            Asker::Truth(pending) => port.finish(pending, &result(words)),
            Asker::Memory(pending) => port.finish(pending, &result(words)),
        }
    }

    /// Whether nobody waits any more.
    pub fn has_gone(&self, watch: Watch) -> bool {
        match self {
            Asker::Number(pending) => watch.has_gone(pending),
            Asker::Process(pending) => watch.has_gone(pending),
            Asker::Done(pending) => watch.has_gone(pending),
            Asker::Truth(pending) => watch.has_gone(pending),
            Asker::Memory(pending) => watch.has_gone(pending),
        }
    }

    /// Takes it back from who has gone.
    pub fn forget(self, replies: &mut Replies) {
        match self {
            Asker::Number(pending) => replies.forget(pending),
            Asker::Process(pending) => replies.forget(pending),
            Asker::Done(pending) => replies.forget(pending),
            Asker::Truth(pending) => replies.forget(pending),
            Asker::Memory(pending) => replies.forget(pending),
        }
    }

    /// Refuses it.
    pub fn refuse(self, port: &mut Port, why: Error) {
        match self {
            Asker::Number(pending) => port.finish(pending, &Err(why)),
            Asker::Process(pending) => port.finish(pending, &Err(why)),
            Asker::Done(pending) => port.finish(pending, &Err(why)),
            Asker::Truth(pending) => port.finish(pending, &Err(why)),
            Asker::Memory(pending) => port.finish(pending, &Err(why)),
        }
    }
}

/// What the words of an answer say. Of another monitor's nothing is believed before it was checked.
pub fn result<T: Encode + for<'a> Decode<'a>>(words: &[u64]) -> Result<T, Error> {
    let (outcome, words) = decode_result(words).map_err(|_| Error::Broken)?;
    match outcome {
        Outcome::Answered => {
            let kept = core::cell::Cell::new(0);
            let mut source = Source::new(words, &[], &kept);
            T::decode(&mut source).filter(|_| source.is_done()).ok_or(Error::Broken)
        }
        Outcome::Refused => Err(words.first().and_then(|code| Error::from_code(*code)).unwrap_or(Error::Broken)),
        Outcome::Busy => Err(Error::Full),
        _ => Err(Error::Internal),
    }
}

/// Who is answered when a worker is done.
pub enum Origin {
    /// Another core, whose request this is.
    Peer(u64, Number),
    /// The same, for the process server's endpoint for a process with this badge.
    Guest(u64, Number, u64),
    /// Somebody here.
    Here(Asker),
    /// Whoever sends a capability, or takes it back.
    Capabilities(Work),
    /// Who asked has gone.
    Nobody,
}

/// Who works on what.
pub struct Desk {
    /// This core.
    pub core: u64,
    pool: Pool<Origin>,
    /// Those for whom something may take for ever.
    places: Places,
    /// Ends of processes, for which something is still done that has to be cancelled before.
    postponed: VecDeque<(u64, Number, Request)>,
}

impl Desk {
    /// Of this core.
    pub fn new(core: u64, services: Arc<Services>, wake: Cap<Notification>) -> Desk {
        let (pool, places) = (Pool::new(WORKERS, services, wake), Places::new(PLACES));
        Desk { core, pool, places, postponed: VecDeque::new() }
    }

    /// Lets a worker ask a server for a process of another core. Answers what to say at once, if there is no worker.
    pub fn serve(&mut self, core: u64, number: Number, request: Request) -> Result<(), Outcome> {
        if request.ends().is_some() {
            self.postponed.push_back((core, number, request));
            return Ok(());
        }
        let client = request.client();
        // What is not begun is dropped with the capabilities in it.
        self.start(Origin::Peer(core, number), client, Task::Serve(Box::new(request)), true)
    }

    /// Lets a worker do something about processes for another core. (It has a name in the program's file, by which the
    /// tests find it, to break it on one core.)
    #[inline(never)]
    pub fn ask_for(&mut self, core: u64, number: Number, about: About) -> Result<(), Outcome> {
        self.start_task(Origin::Peer(core, number), processes::Task::Do(about))
    }

    /// The same for somebody here, who is kept if there is a worker.
    pub fn ask_here(
        &mut self,
        task: processes::Task,
        keep: impl FnOnce() -> Result<Origin, Refusal>,
    ) -> Result<(), Error> {
        if !self.pool.has_room() || task.waits() && !self.places.may_take(task.asker()) {
            return Err(Error::Full);
        }
        let origin = keep().map_err(|_| Error::Full)?;
        // There is room, so it starts.
        self.start_task(origin, task).map_err(|_| Error::Full)
    }

    /// Whether a worker can begin something.
    pub fn has_room(&mut self) -> bool {
        self.pool.has_room()
    }

    /// Lets a worker tell the process server how high a priority a process of another core may give. Answers what to
    /// say at once, if there is no worker.
    pub fn admit(&mut self, core: u64, number: Number, badge: u64, ceiling: u8) -> Result<(), Outcome> {
        self.start_task(Origin::Guest(core, number, badge), processes::Task::Admit(badge, ceiling))
    }

    /// Lets a worker tell the process server that a process of another core has one way less to ask it. Answers whether
    /// there is one.
    pub fn forget(&mut self, process: u64) -> bool {
        self.start_task(Origin::Nobody, processes::Task::Forget(process)).is_ok()
    }

    fn start_task(&mut self, origin: Origin, task: processes::Task) -> Result<(), Outcome> {
        let (client, takes_long) = ((PROCESSES, task.asker()), task.waits());
        self.start(origin, client, Task::Processes(task), takes_long)
    }

    /// Lets a worker do something about capabilities. Gives back what it was for, if there is none.
    pub fn work(&mut self, work: Work, task: capabilities::Task) -> Result<(), Work> {
        let started = self.pool.start(Origin::Capabilities(work), (CAPABILITIES, 0), Task::Capabilities(task), false);
        started.map_err(|origin| match origin {
            Origin::Capabilities(work) => work,
            // It is what was given.
            _ => Work::Sweep,
        })
    }

    /// Another core says that nobody waits any more for the answer to a request of its.
    pub fn cancel(&mut self, core: u64, place: usize) {
        let is_it =
            |origin: &Origin| matches!(origin, Origin::Peer(of, number) if *of == core && number.place() == place);
        // If it is not over yet, the other core says so again.
        let _ = self.pool.cancel(|origin, _| is_it(origin));
    }

    /// Takes out those here who have gone without a word.
    pub fn sweep(&mut self, watch: Watch, replies: &mut Replies) {
        for (origin, is_cancelled) in self.pool.origins(|(service, _)| service == PROCESSES) {
            if !matches!(origin, Origin::Here(asker) if asker.has_gone(watch)) {
                continue;
            }
            is_cancelled.store(true, Ordering::Relaxed);
            if let Origin::Here(asker) = core::mem::replace(origin, Origin::Nobody) {
                asker.forget(replies);
            }
        }
    }

    /// Whether there is room for one more of a process here who waits for the end of another.
    pub fn may_wait(&self, asker: Asks) -> bool {
        self.places.may_take(asker)
    }

    fn start(
        &mut self,
        origin: Origin,
        (service, asker): (u64, Asks),
        task: Task,
        takes_long: bool,
    ) -> Result<(), Outcome> {
        if takes_long && !self.places.may_take(asker) {
            return Err(Outcome::Busy);
        }
        self.pool.start(origin, (service, asker.process), task, takes_long).map_err(|_| Outcome::Busy)?;
        if takes_long {
            self.places.take(asker);
        }
        Ok(())
    }

    /// Starts what was postponed and can begin now.
    pub fn resume(&mut self) {
        for _ in 0..self.postponed.len() {
            let Some((core, number, request)) = self.postponed.pop_front() else { return };
            let is_over = request.ends().is_none_or(|client| self.pool.cancel(|_, of| of == client));
            if !(is_over && self.pool.has_room()) {
                self.postponed.push_back((core, number, request));
                continue;
            }
            let client = request.client();
            // There is room, so it starts.
            let _ = self.start(Origin::Peer(core, number), client, Task::Serve(Box::new(request)), false);
        }
    }

    /// Whether something is postponed.
    pub fn is_waiting(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// Takes out what a worker has done: who is to be answered, and what. If it was for another core, that has used the
    /// time.
    pub fn finished(&mut self, portions: &mut Portions) -> Option<(Origin, Product)> {
        let charge = |origin: &Origin, ticks| match origin {
            Origin::Peer(core, _)
            | Origin::Guest(core, ..)
            | Origin::Capabilities(Work::There(core, ..) | Work::Gift(core, _)) => {
                portions.charge(*core, ticks);
            }
            _ => {}
        };
        let (origin, (_, asker), took_place, product) = self.pool.finished(charge)?;
        if took_place {
            self.places.give_back(asker);
        }
        Some((origin, product))
    }
}

/// What to answer to words that are no message.
pub fn malformed(why: Malformed) -> (Outcome, u64) {
    (Outcome::Malformed, why as u64)
}
