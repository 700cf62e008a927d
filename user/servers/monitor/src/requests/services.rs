//! The servers of the first core, as processes of other cores reach them: with a badge that identifies the process and
//! its core.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;

use tench::memory;
use tench::sync::Mutex;
use tench::time;
use tench_abi::power::{Client, family_number, family_of};
use tench_clock_interface::Clock;
use tench_console_interface::Console;
use tench_files_interface::Files;
use tench_monitor::message::carried;
use tench_monitor::message::{Forward, Malformed, Outcome, Words, encode_reply, ended};
use tench_monitor_interface::protocol::{pid_base, split_pid};
use tench_names_interface::Names;
use tench_protocol::{ArrayVec, DONE};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Message, OWN_CSPACE, Received, Rights, Wait, offer_slots};

use crate::kernel::KERNEL;
use crate::requests::processes;
use crate::requests::workers::{Call, Product};
use crate::slots::{Arrivals, Caps, discard};

/// Number of lookups of a server that does not run, and the pause between two: together, as long as a restart may take.
const ATTEMPTS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// How long a message without reply is kept that no server receives. Its sender may no longer exist.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reports of process servers that a process has ended or runs: the only requests without a badge that are forwarded.
/// The first word is the process, the second its family, if there is one.
const ABOUT_PROCESSES: [u64; 6] = [
    Names::PROCESS_ENDED,
    Names::PROCESS_LIVES,
    Console::PROCESS_ENDED,
    Clock::PROCESS_ENDED,
    Files::PROCESS_ENDED,
    Files::PROCESS_LIVES,
];

/// The target of another core's request.
#[derive(Debug)]
enum Target {
    /// A server, called by a process of another core; or with badge 0 by that core's process server, about a process.
    Server { service: u64, badge: u64 },
    /// The object of this capability, which the request owns.
    Copy { slot: CapAddress, client: (u64, Client) },
}

/// A request of a process of another core.
pub struct Request {
    to: Target,
    /// Set if no reply is expected.
    is_one_way: bool,
    label: u64,
    words: ArrayVec<u64, { tench_abi::message::MAX_WORDS }>,
    /// Capabilities sent with it.
    caps: Caps,
}

impl Request {
    /// Returns the request to a server, with process numbers as servers here see them. The request owns the
    /// capabilities.
    pub fn of_server(
        core: u64,
        forward: &Forward<'_>,
        (service, requester): (u64, u64),
        caps: Caps,
    ) -> Result<Request, Malformed> {
        let is_about = requester == 0 && ABOUT_PROCESSES.contains(&forward.label);
        let badge = match requester {
            0 if is_about => 0,
            // The requester is that core's process server.
            0 => pid_base(core),
            requester => requester,
        };
        let is_here = |family: u64| family == 0 || family_of(core, family_number(family)) == family;
        let is_of_others = || match *forward.words {
            [process, family, ..] => split_pid(process).0 != core || !is_here(family),
            [process] => split_pid(process).0 != core,
            [] => false,
        };
        let (label, words) = (forward.label, forward.words.iter().copied().collect());
        let is_one_way = forward.is_one_way;
        let request = Request { to: Target::Server { service, badge }, is_one_way, label, words, caps };
        if is_about && is_of_others() { Err(Malformed::Process) } else { Ok(request) }
    }

    /// Returns the request to a local endpoint. The request owns `slot`, a capability to it. `client` is the server and
    /// process of the endpoint, if known.
    pub fn of_copy(forward: &Forward<'_>, slot: CapAddress, client: (u64, Client), caps: Caps) -> Request {
        let (label, words) = (forward.label, forward.words.iter().copied().collect());
        Request { to: Target::Copy { slot, client }, is_one_way: forward.is_one_way, label, words, caps }
    }

    /// If the request reports the end of a process, returns the client whose work is to be cancelled first.
    pub fn ended_client(&self) -> Option<(u64, u64)> {
        match self.to {
            Target::Server { service, badge: 0 }
                if ![Names::PROCESS_LIVES, Files::PROCESS_LIVES].contains(&self.label) =>
            {
                self.words.first().map(|process| (service, *process))
            }
            _ => None,
        }
    }

    /// Returns whether the request can wait for ever. One to this core's process server ends soon, unless it waits for
    /// the end of a process or the restart of a server.
    pub fn waits(&self) -> bool {
        let is_for_processes = self.client().0 == u64::from(carried::PROCESSES);
        self.is_one_way || !is_for_processes || processes::waits(self.label)
    }

    /// Returns the client for which the request is made.
    pub const fn client(&self) -> (u64, Client) {
        match self.to {
            Target::Server { service, badge } => (service, Client::of_badge(badge)),
            Target::Copy { client, .. } => client,
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        discard(&self.caps);
        if let Target::Copy { slot, .. } = self.to {
            discard(&[slot]);
        }
    }
}

/// Buffers and slots of a call. They exist before the call begins, so that no page fault happens in it.
pub struct CallBuffers {
    message: Message,
    reply: Box<Received>,
    /// Slot in which the requester's capability is made, and slots for the reply's capabilities.
    slots: Option<(CapAddress, Arrivals)>,
}

impl CallBuffers {
    /// Allocates the resources.
    pub fn new() -> CallBuffers {
        let full = Message::with_words(DONE, &[0; tench_abi::message::MAX_WORDS]);
        let reply = Box::new(Received::from_message(&full, 0));
        let slots = memory::take_slot().ok().and_then(|mint| Some((mint, Arrivals::new()?)));
        CallBuffers { message: full, reply, slots }
    }
}

/// The servers that other cores reach.
pub struct Services {
    /// Their names, in the order of their numbers between monitors.
    names: Vec<&'static str>,
    endpoints: Mutex<Vec<Option<Cap<Endpoint>>>>,
    /// The physical addresses of their endpoints. (A holder of the lock may wait for the process server.)
    addresses: Mutex<Vec<Option<u64>>>,
}

impl Services {
    /// Returns the servers of these names.
    pub fn new(names: Vec<&'static str>) -> Services {
        let endpoints = names.iter().map(|_| None).collect();
        let addresses = names.iter().map(|_| None).collect();
        Services { names, endpoints: Mutex::new(endpoints), addresses: Mutex::new(addresses) }
    }

    /// Looks up all servers that run.
    pub fn find_all(&self) {
        for service in 0..self.names.len() as u64 {
            let _ = self.find(service);
        }
    }

    /// Returns the server whose endpoint is at a physical address: its number, and whether a badge identifies the
    /// process.
    pub fn at(&self, address: u64) -> Option<(u8, bool)> {
        let number = self.addresses.lock().iter().position(|known| *known == Some(address))?;
        // A badge of the file server's identifies a stream.
        Some((u8::try_from(number).ok()?, *self.names.get(number)? != "files"))
    }

    /// Carries out a request, and returns the reply.
    pub fn serve(&self, request: Request, current: &Call, buffers: &mut CallBuffers) -> Product {
        let Some((mint, arrivals)) = &mut buffers.slots else { return ended(Outcome::Busy, 0).into() };
        let slot = match request.to {
            Target::Server { service, badge } if !self.mint(service, badge, *mint, current) => {
                return ended(Outcome::Gone, 0).into();
            }
            Target::Server { .. } => *mint,
            Target::Copy { slot, .. } => slot,
        };
        buffers.message.restart(request.label);
        buffers.message.extend(&request.words);
        for cap in &request.caps {
            buffers.message.move_cap(*cap);
        }
        offer_slots(arrivals.slots());
        let reply_to = if request.is_one_way { None } else { Some(&mut *buffers.reply) };
        let called = call(Cap::new(slot), &buffers.message, reply_to, current);
        let _ = OWN_CSPACE.delete_at(*mint);
        match called {
            Ok(()) if request.is_one_way => encode_reply(DONE, &[], &[]).into(),
            Ok(()) => match arrivals.take(buffers.reply.caps()) {
                Some(caps) => Product { words: translate(&request, &buffers.reply), caps },
                None => ended(Outcome::Capabilities, 0).into(),
            },
            Err(_) if current.is_cancelled.load(Ordering::Relaxed) => ended(Outcome::Gone, 0).into(),
            Err(_) if matches!(request.to, Target::Copy { .. }) => ended(Outcome::Revoked, 0).into(),
            // The next request looks the server up again.
            Err(_) => ended(Outcome::Restarted, 0).into(),
        }
    }

    /// Makes the capability for a call to a server. If the server is being restarted, waits for it.
    fn mint(&self, service: u64, badge: u64, to: CapAddress, current: &Call) -> bool {
        if usize::try_from(service).is_ok_and(|number| number >= self.names.len()) {
            return false;
        }
        for _ in 0..ATTEMPTS {
            if current.is_cancelled.load(Ordering::Relaxed) {
                return false;
            }
            let Some(endpoint) = self.find(service) else {
                time::sleep(PAUSE);
                continue;
            };
            match endpoint.mint_to(to, Rights::WRITE | Rights::CALL | Rights::GRANT, badge) {
                Ok(_) => return true,
                // The server has ended since.
                Err(Error::InvalidCapability) => self.lose(service),
                Err(_) => return false,
            }
        }
        false
    }

    /// Returns the endpoint of a server.
    fn find(&self, service: u64) -> Option<Cap<Endpoint>> {
        let number = usize::try_from(service).ok()?;
        let mut endpoints = self.endpoints.lock();
        let known = endpoints.get_mut(number)?;
        if known.is_none() {
            let slot = memory::take_slot().ok()?;
            match processes::server(self.names.get(number)?, slot) {
                Some(endpoint) => {
                    *known = Some(endpoint);
                    let found = KERNEL.holders(OWN_CSPACE, slot);
                    self.addresses.lock().get_mut(number)?.clone_from(&found.ok().map(|found| found.physical));
                }
                None => memory::free_slot(slot),
            }
        }
        *known
    }

    /// Notes that the endpoint of a server is gone.
    fn lose(&self, service: u64) {
        let mut endpoints = self.endpoints.lock();
        let known = usize::try_from(service).ok().and_then(|number| endpoints.get_mut(number));
        if let Some(lost) = known.and_then(Option::take) {
            let _ = lost.delete();
            memory::free_slot(lost.address());
            // Another object may take the endpoint's memory.
            let index = usize::try_from(service).ok();
            let mut addresses = self.addresses.lock();
            index.and_then(|index| addresses.get_mut(index)).into_iter().for_each(|address| *address = None);
        }
    }
}

/// Returns the reply in the requesting core's process numbers, without its capabilities.
fn translate(request: &Request, reply: &Received) -> Words {
    let mut words: ArrayVec<u64, { tench_abi::message::MAX_WORDS }> = reply.words().iter().copied().collect();
    if let (Target::Server { badge: 0, .. }, [is_some, process, ..]) = (&request.to, words.as_mut_slice()) {
        // The file server asks about another process. Only that process's own core knows about it.
        let core = |process| split_pid(process).0;
        let asks_there = request.words.first().is_some_and(|asked| core(*asked) == core(*process));
        if !asks_there {
            (*is_some, *process) = (0, 0);
        }
    }
    encode_reply(reply.label(), &[], &words)
}

/// Makes the call, or sends if no reply is expected, in a way that can be cancelled.
fn call(endpoint: Cap<Endpoint>, message: &Message, reply: Option<&mut Received>, current: &Call) -> Result<(), Error> {
    current.is_calling.store(true, Ordering::Release);
    let called = match reply {
        Some(reply) => endpoint.call_into(message, reply),
        None => endpoint.send(message, Wait::until(time::deadline(PATIENCE))),
    };
    current.is_calling.store(false, Ordering::Release);
    called
}
