//! The servers of the first core, as processes of other cores reach them: with a badge that says which process of which core asks.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;

use tench::memory;
use tench::sync::Mutex;
use tench::time;
use tench_clock_client::Clock;
use tench_console_client::Console;
use tench_files_client::Files;
use tench_monitor::message::{Forward, Malformed, Outcome, Words, answered, ended};
use tench_monitor_client::protocol::{first, place};
use tench_names_client::Names;
use tench_procs_client::Procs;
use tench_protocol::{ArrayVec, DONE};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Message, OWN_SPACE, Received, Rights, offer_slots};

use crate::workers::Worker;

/// How often a server that does not run is looked for, and how long to wait in between: as long as it may take to start it again.
const ATTEMPTS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// What process servers tell others of a process that has ended, or lives: the only requests without a badge that are
/// forwarded. The first word is the process.
const ABOUT_PROCESSES: [u64; 5] =
    [Names::PROCESS_ENDED, Console::PROCESS_ENDED, Clock::PROCESS_ENDED, Files::PROCESS_ENDED, Files::PROCESS_LIVES];

/// A request of a process of another core.
pub struct Request {
    service: u64,
    /// Who asks: process and core. 0: that core's process server, about a process.
    badge: u64,
    label: u64,
    words: ArrayVec<u64, { tench_abi::message::MAX_WORDS }>,
}

impl Request {
    /// What was asked on a core, as servers here are to see it.
    pub fn new(core: u64, forward: &Forward<'_>) -> Result<Request, Malformed> {
        let is_about = forward.process == 0 && ABOUT_PROCESSES.contains(&forward.label);
        let badge = match forward.process {
            0 if is_about => 0,
            // That core's process server.
            0 => first(core),
            process => process,
        };
        if is_about && forward.words.first().is_some_and(|process| place(*process).0 != core) {
            return Err(Malformed::Process);
        }
        let words = forward.words.iter().copied().collect();
        Ok(Request { service: forward.service, badge, label: forward.label, words })
    }

    /// Whether it says that a process has ended: then whatever that one asked is to be cancelled before. Answers for whom.
    pub fn ends(&self) -> Option<(u64, u64)> {
        let ends = self.badge == 0 && self.label != Files::PROCESS_LIVES;
        self.words.first().filter(|_| ends).map(|process| (self.service, *process))
    }

    /// For whom it is.
    pub const fn client(&self) -> (u64, u64) {
        (self.service, self.badge)
    }
}

/// What a worker needs for a call. It is there before the call begins, so that no page fault happens in it.
pub struct Room {
    message: Message,
    answer: Box<Received>,
    /// Where the capability for the process that asks is made, and where one arrives that nobody can have.
    slots: Option<(CapAddress, CapAddress)>,
}

impl Room {
    /// Takes what it takes.
    pub fn new() -> Room {
        let full = Message::with_words(DONE, &[0; tench_abi::message::MAX_WORDS]);
        let answer = Box::new(Received::from_message(&full, 0));
        let slots = memory::take_slot().and_then(|mint| Ok((mint, memory::take_slot()?)));
        Room { message: full, answer, slots: slots.ok() }
    }
}

/// The servers.
pub struct Services {
    /// Their names, in the order in which monitors count them.
    names: Vec<&'static str>,
    endpoints: Mutex<Vec<Option<Cap<Endpoint>>>>,
}

impl Services {
    /// Of these names.
    pub fn new(names: Vec<&'static str>) -> Services {
        let endpoints = names.iter().map(|_| None).collect();
        Services { names, endpoints: Mutex::new(endpoints) }
    }

    /// Makes a request, and answers what became of it.
    pub fn serve(&self, request: &Request, worker: &Worker, room: &mut Room) -> Words {
        let Some((mint, arrival)) = room.slots else { return ended(Outcome::Busy, 0) };
        if !self.mint(request, mint, worker) {
            return ended(Outcome::Gone, 0);
        }
        room.message.restart(request.label);
        room.message.extend(&request.words);
        offer_slots(&[arrival]);
        let called = call(Cap::new(mint), room, worker);
        let _ = OWN_SPACE.delete_at(mint);
        match called {
            Ok(()) if room.answer.caps().is_empty() => self.answer(request, &room.answer),
            Ok(()) => {
                let _ = OWN_SPACE.delete_at(arrival);
                ended(Outcome::Capabilities, 0)
            }
            Err(_) if worker.is_cancelled.load(Ordering::Relaxed) => ended(Outcome::Gone, 0),
            // It is found anew by the next who asks.
            Err(_) => ended(Outcome::Restarted, 0),
        }
    }

    /// The answer, as the core that asked is to see it.
    fn answer(&self, request: &Request, answer: &Received) -> Words {
        let mut words: ArrayVec<u64, { tench_abi::message::MAX_WORDS }> = answer.words().iter().copied().collect();
        if request.badge == 0
            && let [is_some, process, ..] = words.as_mut_slice()
        {
            // The file server asks about another process. Only the one's own core knows of it.
            let core = |process| place(process).0;
            let asks_there = request.words.first().is_some_and(|asked| core(*asked) == core(*process));
            if !asks_there {
                (*is_some, *process) = (0, 0);
            }
        }
        answered(answer.label(), &words)
    }

    /// Makes the capability with which to ask. A server that is being started again is waited for.
    fn mint(&self, request: &Request, to: CapAddress, worker: &Worker) -> bool {
        if usize::try_from(request.service).is_ok_and(|number| number >= self.names.len()) {
            return false;
        }
        for _ in 0..ATTEMPTS {
            if worker.is_cancelled.load(Ordering::Relaxed) {
                return false;
            }
            let Some(endpoint) = self.find(request.service) else {
                time::sleep(PAUSE);
                continue;
            };
            match endpoint.mint_to(to, Rights::WRITE | Rights::CALL, request.badge) {
                Ok(_) => return true,
                // The server has ended since.
                Err(Error::InvalidCapability) => self.lose(request.service),
                Err(_) => return false,
            }
        }
        false
    }

    /// The endpoint of a server.
    fn find(&self, service: u64) -> Option<Cap<Endpoint>> {
        let number = usize::try_from(service).ok()?;
        let mut endpoints = self.endpoints.lock();
        let known = endpoints.get_mut(number)?;
        if known.is_none() {
            let slot = memory::take_slot().ok()?;
            match Procs::STANDARD.server(self.names.get(number)?, slot) {
                Ok(endpoint) => *known = Some(endpoint),
                Err(_) => memory::free_slot(slot),
            }
        }
        *known
    }

    /// The endpoint of a server is gone.
    fn lose(&self, service: u64) {
        let mut endpoints = self.endpoints.lock();
        let known = usize::try_from(service).ok().and_then(|number| endpoints.get_mut(number));
        if let Some(lost) = known.and_then(Option::take) {
            let _ = lost.delete();
            memory::free_slot(lost.address());
        }
    }
}

/// Calls, in a way that can be cancelled.
fn call(endpoint: Cap<Endpoint>, room: &mut Room, worker: &Worker) -> Result<(), Error> {
    worker.is_calling.store(true, Ordering::Release);
    let called = endpoint.call_into(&room.message, &mut room.answer);
    worker.is_calling.store(false, Ordering::Release);
    called
}
