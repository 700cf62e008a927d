//! Endpoints and notifications that are reached from other cores: the system calls around the ledger
//! ([`tench_monitor::transfer::proxies`]), and requests to endpoints.

mod machine;

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use tench::memory;
use tench::time;
use tench_abi::message::MAX_CAPS;
use tench_abi::power::{Client, Powers, identity};
use tench_channel::Request as Number;
use tench_monitor::message::carried::{self, Carried, Server};
use tench_monitor::message::{
    self, Capabilities, Forward, Malformed, Outcome, Reply, Target, Words, decode_reply, encode_reply,
};
use tench_monitor::transfer::attachments::{Attachments, UNCLAIMED, replier};
use tench_monitor::transfer::proxies::{self, Common, Proxies};
use tench_monitor_interface::protocol::{Error as MonitorError, pid_base, split_pid};
use tench_protocol::{ArrayVec, RESTARTED, Rejection};
use tench_sys::{Cap, CapAddress, Endpoint, Instant, Kind, OWN_CSPACE, Rights};

use crate::kernel::{KERNEL, is_out_of_memory};
use crate::requests::forward::{Arrived, Inbox, Route, Source, Waiting};
use crate::requests::processes;
use crate::requests::services::{Request, Services};
use crate::requests::workers::Product;
use crate::slots::{Caps, discard};
use crate::transfer::capabilities::{self, Ledger};
use crate::transfer::signals::Signals;
use crate::{Result, no_memory};
use machine::{Machine, copy};

/// Seconds between polls of the kernel for proxies that nobody holds any more.
const LOOK: u64 = 1;

/// A message to another core that waits for its attachments.
pub enum Outgoing {
    /// A request of a local program, with the waiting program unless it has given up.
    Request(Option<Waiting>, Words),
    /// The reply to a request of that core.
    Reply(Number, Words),
}

/// Attachments of a message: memory, by number and slot.
type Attached = ArrayVec<(u64, CapAddress), MAX_CAPS>;

/// An attachment to be sent.
pub struct Attachment {
    pub core: u64,
    /// Number by which the message names it.
    pub number: u64,
    pub slot: CapAddress,
    /// The client to whose quota it counts.
    pub from: u64,
}

/// Forwarding of requests, and the ledger of what they reach.
pub struct Endpoints {
    core: u64,
    inbox: Inbox,
    proxies: Proxies<Machine>,
    services: Arc<Services>,
    next: Option<Instant>,
    /// Messages to cores that wait for their attachments.
    attachments: Attachments<(u64, Outgoing), MonitorError>,
    /// Attachments to be sent.
    unsent_attachments: VecDeque<Attachment>,
}

impl Endpoints {
    /// Starts receiving at the endpoint that most proxies share.
    pub fn open(core: u64, inbox: Inbox, services: Arc<Services>, signals: Signals) -> Result<Endpoints> {
        let common = memory::make::<Endpoint>(0).map_err(no_memory)?.leak();
        let endpoint = KERNEL.holders(OWN_CSPACE, common.address())?.physical;
        let addresses = Common { endpoint, notification: signals.physical_address()? };
        inbox.open(Source::Common, common).map_err(no_memory)?;
        let machine = Machine::new(inbox.clone(), signals, common);
        let (proxies, attachments) = (Proxies::new(machine, addresses), Attachments::new());
        Ok(Endpoints { core, inbox, proxies, services, next: None, attachments, unsent_attachments: VecDeque::new() })
    }

    /// Registers a name that is local to this core.
    pub fn register(&self, name: &str, process: u64, service: Cap<Endpoint>) -> Result<()> {
        self.inbox.register(name, process, service)
    }

    /// Starts receiving in the place of a server.
    pub fn receive_for(&self, service: u64, endpoint: Cap<Endpoint>) -> Result<()> {
        self.inbox.open(Source::Server(service), endpoint).map_err(no_memory)
    }

    // ── Asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Returns the oldest forwarded request, with the addressed core and the words for it. Requests to a proxy without
    /// a target are refused, and requests with memory [wait](Self::next_attachment).
    pub fn next(&mut self) -> Option<(u64, Waiting, Words)> {
        while let Some(arrived) = self.inbox.take() {
            let Arrived { waiting, route, label, words, caps } = arrived;
            let (core, to) = match route {
                Route::Server(service, badge) => (0, Target::Server(service, badge)),
                Route::Proxy(proxy, badge) => match self.proxies.target(proxy) {
                    Some(target) => (target.core, Target::Held(target.number, badge)),
                    None => {
                        discard(&caps);
                        self.inbox.abort(waiting);
                        continue;
                    }
                },
            };
            match self.send(caps, core) {
                Ok((caps, attached)) => {
                    let is_one_way = waiting.is_one_way;
                    let forward = Forward { to, is_one_way, label, caps, words: &words }.encode();
                    if attached.is_empty() {
                        return Some((core, waiting, forward));
                    }
                    let from = match split_pid(waiting.requester.process) {
                        (own, 1..) if own == self.core => waiting.requester.badge(Powers::empty()),
                        _ => replier(self.core, core),
                    };
                    self.wait(core, from, attached, Outgoing::Request(Some(waiting), forward));
                }
                Err(proxies::Error::Full) => self.inbox.refuse(waiting, Rejection::Busy),
                Err(_) => self.inbox.refuse(waiting, Rejection::OtherCore),
            }
        }
        None
    }

    /// Takes back the capabilities of a request that was not sent to a core.
    pub fn not_sent(&mut self, to: u64, words: &[u64]) {
        if let Ok(caps) = message::capabilities(words) {
            self.proxies.take_back(&caps, to);
        }
    }

    // ── Memory that goes along ───────────────────────────────────────────────────────────────────────────────────────

    fn wait(&mut self, core: u64, from: u64, attached: Attached, message: Outgoing) {
        self.attachments.wait((core, message), attached.len() as u64);
        self.unsent_attachments.extend(attached.into_iter().map(|(number, slot)| Attachment {
            core,
            number,
            slot,
            from,
        }));
    }

    /// Returns the next attachment to be sent as a transfer.
    pub fn next_attachment(&mut self) -> Option<Attachment> {
        self.unsent_attachments.pop_front()
    }

    /// Refuses the waiting requests to a core that does not reply. Transfers that are under way go on.
    pub fn give_up(&mut self, core: u64) {
        for (to, message) in self.attachments.messages() {
            if *to == core
                && let Outgoing::Request(waiting, _) = message
                && let Some(waiting) = waiting.take()
            {
                self.inbox.refuse(waiting, Rejection::Unreachable);
            }
        }
    }

    /// Notes that an attachment has arrived, or cannot be sent. Returns the message that can be sent now, with its
    /// core. If an attachment of a request cannot be sent, the request is refused.
    pub fn attachment_done(
        &mut self,
        number: u64,
        result: core::result::Result<(), MonitorError>,
    ) -> Option<(u64, Outgoing)> {
        let ((core, message), result) = self.attachments.arrived(number, result)?;
        let Err(why) = result else { return Some((core, message)) };
        let is_full = matches!(why, MonitorError::Full | MonitorError::MailboxFull | MonitorError::TooManyObjects);
        match message {
            Outgoing::Request(waiting, words) => {
                self.not_sent(core, &words);
                let why = if is_full { Rejection::Busy } else { Rejection::OtherCore };
                waiting.into_iter().for_each(|waiting| self.inbox.refuse(waiting, why));
                None
            }
            Outgoing::Reply(asked, words) => {
                if let Ok(Reply::Message(_, caps, _)) = decode_reply(&words) {
                    self.proxies.take_back(&caps, core);
                }
                let outcome = if is_full { Outcome::Busy } else { Outcome::Capabilities };
                Some((core, Outgoing::Reply(asked, message::ended(outcome, 0))))
            }
        }
    }

    /// Handles another core's reply to a waiting program.
    pub fn finish(&mut self, waiting: Waiting, from: u64, words: &[u64], transfers: &mut Ledger) {
        match decode_reply(words) {
            Ok(Reply::Message(label, caps, words)) => match self.receive(&caps, from, waiting.requester, transfers) {
                Ok(caps) => {
                    self.inbox.reply(waiting, label, &caps, words);
                    discard(&caps);
                }
                Err(proxies::Error::Full) => self.inbox.refuse(waiting, Rejection::Busy),
                Err(_) => self.inbox.abort(waiting),
            },
            Ok(Reply::Ended(Outcome::Restarted, _)) => self.inbox.reply(waiting, RESTARTED, &[], &[]),
            Ok(Reply::Ended(Outcome::Revoked, _)) => self.inbox.abort(waiting),
            Ok(Reply::Ended(Outcome::Busy, _)) => self.inbox.refuse(waiting, Rejection::Busy),
            Ok(Reply::Ended(Outcome::Capabilities, _)) => self.inbox.refuse(waiting, Rejection::OtherCore),
            Ok(Reply::Ended(..)) | Err(_) => self.refuse(waiting),
        }
    }

    /// Makes, for a process, the capability in another core's reply to [`PROCESSES`](operation::PROCESSES).
    pub fn made(
        &mut self,
        words: &[u64],
        from: u64,
        requester: Client,
    ) -> core::result::Result<CapAddress, MonitorError> {
        match decode_reply(words) {
            Ok(Reply::Message(_, caps, _)) if let [carried] = caps[..] => {
                self.receive_one(&carried, from, requester).map_err(|_| MonitorError::Full)
            }
            Ok(Reply::Ended(Outcome::Busy, _)) => Err(MonitorError::Full),
            Ok(Reply::Ended(Outcome::Refused, why)) => {
                Err(MonitorError::from_code(why).unwrap_or(MonitorError::Broken))
            }
            _ => Err(MonitorError::Broken),
        }
    }

    /// Handles another core's reply to a request that is no longer awaited.
    pub fn finish_nothing(&mut self, from: u64, words: &[u64], transfers: &mut Ledger) {
        if let Ok(Reply::Message(_, caps, _)) = decode_reply(words) {
            for carried in &caps {
                self.proxies.take_in_vain(carried, from);
                discard(claim(carried, from, transfers).as_slice());
            }
        }
    }

    /// Refuses a request because the other core does not reply.
    pub fn refuse(&self, waiting: Waiting) {
        self.inbox.refuse(waiting, Rejection::Unreachable);
    }

    /// Refuses a request because too many wait for the other core.
    pub fn refuse_as_busy(&self, waiting: Waiting) {
        self.inbox.refuse(waiting, Rejection::Busy);
    }

    /// Returns a request's charge, because it has been charged to the quota of the waits for its core.
    pub fn charge_to_waits(&self, waiting: &mut Waiting) {
        self.inbox.charge_to_waits(waiting);
    }

    // ── Being asked ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Makes a request for a local server or endpoint from what another core has forwarded.
    pub fn request(
        &mut self,
        from: u64,
        forward: &Forward<'_>,
        transfers: &mut Ledger,
    ) -> core::result::Result<Request, (Outcome, u64)> {
        let requester = match forward.to {
            Target::Server(_, badge) => Client::of_badge(badge),
            Target::Held(..) => Client::alone(pid_base(from)),
        };
        let malformed = |why: Malformed| (Outcome::Malformed, why as u64);
        let caps = self.receive(&forward.caps, from, requester, transfers).map_err(|why| match why {
            proxies::Error::Full => (Outcome::Busy, 0),
            _ => (Outcome::Capabilities, 0),
        })?;
        let (number, badge) = match forward.to {
            Target::Server(service, badge) => {
                return Request::of_server(from, forward, (service, badge), caps).map_err(malformed);
            }
            Target::Held(number, badge) => (number, badge),
        };
        let client = self.proxies.client(number).map(|(server, process)| (u64::from(server), process));
        let client = client.unwrap_or((carried::NO_SERVER, Client::alone(pid_base(from))));
        match self.proxies.copy(number, from, Rights::all(), badge) {
            Ok(slot) => Ok(Request::of_copy(forward, slot, client, caps)),
            Err(why) => {
                discard(&caps);
                Err(if matches!(why, proxies::Error::Full) { (Outcome::Busy, 0) } else { (Outcome::Revoked, 0) })
            }
        }
    }

    /// Returns the reply for the requesting core. A reply with memory [waits](Self::next_attachment).
    pub fn reply(&mut self, to: u64, number: Number, product: Product) -> Option<Words> {
        let Product { words, caps } = product;
        if caps.is_empty() {
            return Some(words);
        }
        let Ok((caps, attached)) = self.send(caps, to) else {
            return Some(message::ended(Outcome::Capabilities, 0));
        };
        // Other results have no capabilities.
        let reply = decode_reply(&words).ok().and_then(|reply| match reply {
            Reply::Message(label, _, words) => Some(encode_reply(label, &caps, words)),
            Reply::Ended(..) => None,
        });
        let words = reply.unwrap_or(words);
        if attached.is_empty() {
            return Some(words);
        }
        self.wait(to, replier(self.core, to), attached, Outgoing::Reply(number, words));
        None
    }

    // ── Signals ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Handles bits that were signalled to the main thread.
    #[cold]
    pub fn signalled(&mut self, bits: u64) {
        self.proxies.signalled(bits);
    }

    /// Collects pending signals of all notifications.
    pub fn hear(&mut self) {
        let machine = self.proxies.kernel();
        let bits = machine.signals.drain();
        self.proxies.signalled(bits);
        self.hear_others();
    }

    /// Collects pending signals of the notifications at which threads wait.
    pub fn hear_others(&mut self) {
        while let Some((name, bits, is_over)) = self.proxies.kernel().signals.next() {
            self.proxies.signalled_at(name, bits);
            if is_over {
                self.proxies.closed(name);
            }
        }
    }

    /// Returns whether the last collections also took signals of the main thread that mean something else.
    pub fn took_others(&mut self) -> bool {
        self.proxies.kernel().signals.took_others()
    }

    /// Returns whether a core is to be told of a signal.
    pub const fn has_signals(&self) -> bool {
        self.proxies.has_signals()
    }

    /// Returns the next signal to be sent to a core.
    pub fn next_signal(&self, core: u64) -> Option<(u64, u64)> {
        self.proxies.next_signal(core)
    }

    /// Marks the next signal as sent.
    pub fn said(&mut self, core: u64) {
        self.proxies.said(core);
    }

    /// Handles another core's report of a signal on a notification that it holds for this core.
    pub fn signal(&mut self, core: u64, number: u64, bits: u64) {
        self.proxies.signal(core, number, bits);
    }

    // ── Capabilities ─────────────────────────────────────────────────────────────────────────────────────────────────

    /// Exports capabilities to a core. Returns their description for a message, and the memory that has to arrive
    /// before the message. The slots are consumed, whatever the result.
    fn send(&mut self, caps: Caps, to: u64) -> core::result::Result<(Capabilities, Attached), proxies::Error> {
        let (mut sent, mut attached, mut refused) = (Capabilities::new(), Attached::new(), None);
        if !caps.is_empty() && is_out_of_memory() {
            discard(&caps);
            return Err(proxies::Error::Full);
        }
        for cap in caps {
            if is_memory(cap) {
                let number = self.attachments.number();
                sent.push(Carried::Memory { number });
                attached.push((number, cap));
                continue;
            }
            match self.send_one(cap, to) {
                Ok(carried) => sent.push(carried),
                Err(why) => refused = Some(why),
            }
        }
        let Some(why) = refused else { return Ok((sent, attached)) };
        self.proxies.take_back(&sent, to);
        attached.iter().for_each(|(_, slot)| discard(&[*slot]));
        Err(why)
    }

    /// Exports one capability to a core.
    pub fn send_one(&mut self, cap: CapAddress, to: u64) -> core::result::Result<Carried, proxies::Error> {
        let services = &self.services;
        self.proxies.send(cap, to, |found| {
            let (number, is_personal) = services.at(found.physical)?;
            Some(Server { number, is_personal: is_personal && split_pid(identity(found.badge)).0 == to })
        })
    }

    /// Exports the process server, with a badge, for a process of another core.
    pub fn processes(&mut self, badge: u64, to: u64) -> core::result::Result<Carried, proxies::Error> {
        let slot = self.own_processes(badge)?;
        let server = Server { number: carried::PROCESSES, is_personal: true };
        self.proxies.send(slot, to, |_| Some(server))
    }

    /// Makes a capability to the process server for a process of this core, in a slot that the caller then owns.
    pub fn own_processes(&self, badge: u64) -> core::result::Result<CapAddress, proxies::Error> {
        let authority = processes::authority().ok_or(proxies::Error::Gone)?;
        copy(authority, Rights::WRITE | Rights::CALL | Rights::GRANT, badge).map_err(|_| proxies::Error::Full)
    }

    /// Returns a process of another core that has one way fewer to reach this core's process server.
    pub fn parted(&mut self) -> Option<u64> {
        self.proxies.parted()
    }

    /// Queues such a process again.
    pub fn put_back(&mut self, process: u64) {
        self.proxies.put_back(process);
    }

    /// Makes local capabilities from another core's descriptions, for a requester.
    fn receive(
        &mut self,
        carried: &[Carried],
        from: u64,
        requester: Client,
        transfers: &mut Ledger,
    ) -> core::result::Result<Caps, proxies::Error> {
        let (mut caps, mut refused) = (Caps::new(), None);
        for carried in carried {
            let received = match carried {
                Carried::Memory { .. } => claim(carried, from, transfers).ok_or(proxies::Error::Gone),
                _ => self.receive_one(carried, from, requester),
            };
            match received {
                Ok(cap) => caps.push(cap),
                Err(why) => refused = Some(why),
            }
        }
        let Some(why) = refused else { return Ok(caps) };
        discard(&caps);
        Err(why)
    }

    /// Makes one local capability from another core's description.
    pub fn receive_one(
        &mut self,
        carried: &Carried,
        from: u64,
        requester: Client,
    ) -> core::result::Result<CapAddress, proxies::Error> {
        if is_out_of_memory() {
            self.proxies.take_in_vain(carried, from);
            return Err(proxies::Error::Full);
        }
        if let Carried::Held { server: Some(server), .. } = carried
            && server.number != carried::PROCESSES
        {
            self.inbox.knows(server.is_personal.then_some(requester.process), u64::from(server.number));
        }
        self.proxies.receive(carried, from, requester)
    }

    /// Rejects a capability that a core has sent, since nobody can receive it.
    pub fn refuse_one(&mut self, carried: &Carried, from: u64) {
        self.proxies.take_in_vain(carried, from);
    }

    /// Handles the end of a core.
    pub fn lose(&mut self, core: u64) {
        self.proxies.lose(core);
    }

    /// Handles a core's message that it no longer needs what is held for it.
    pub fn released(&mut self, core: u64, number: u64, transfers: &mut Ledger) {
        if number & UNCLAIMED != 0 {
            let carried = Carried::Memory { number: number & !UNCLAIMED };
            return discard(claim(&carried, core, transfers).as_slice());
        }
        self.proxies.released(core, number);
    }

    /// Returns whether a core is to be told that it need not hold something.
    pub fn has_releases(&self) -> bool {
        self.proxies.has_releases()
    }

    /// Returns the next number that a core need not hold any more. A number in a message that waits for attachments is
    /// needed until the message has been sent.
    pub fn next_release(&mut self, core: u64) -> Option<u64> {
        let number = self.proxies.next_release(core)?;
        let is_named = self.attachments.messages().any(|(to, message)| *to == core && message.names(number));
        (!is_named).then_some(number)
    }

    /// Marks the next release as sent.
    pub fn release_sent(&mut self, core: u64) {
        self.proxies.release_sent(core);
    }

    /// Returns the number of held copies, and of proxies.
    pub fn count(&self) -> (usize, usize) {
        self.proxies.count()
    }

    /// Polls the kernel, if it is time, for proxies that nobody holds any more.
    pub fn look(&mut self) {
        if !self.proxies.has_proxies() {
            self.next = None;
            return;
        }
        let now = Instant::now();
        // A copy held for another core may have been the last capability to a proxy here.
        let is_due = self.proxies.is_stale() || self.next.is_some_and(|next| next <= now);
        if is_due {
            self.proxies.sweep();
        }
        if is_due || self.next.is_none() {
            self.next = Some(now.after(LOOK * time::frequency()));
        }
    }

    /// Returns whether there is nothing to do: no proxies to poll for, and nothing to send.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.next.is_none() && self.proxies.is_quiet()
    }

    /// Returns the time until which the main thread may sleep.
    pub const fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

impl Outgoing {
    /// Returns whether the message refers to what the other core holds under this number.
    fn names(&self, number: u64) -> bool {
        let caps = match self {
            Outgoing::Request(_, words) => {
                if message::is_for(words, number) {
                    return true;
                }
                message::capabilities(words).ok()
            }
            Outgoing::Reply(_, words) => match decode_reply(words) {
                Ok(Reply::Message(_, caps, _)) => Some(caps),
                _ => None,
            },
        };
        let is_it = |carried: &Carried| matches!(carried, Carried::Returned { number: other, .. } if *other == number);
        caps.is_some_and(|caps| caps.iter().any(is_it))
    }
}

/// Returns whether a slot contains memory.
fn is_memory(slot: CapAddress) -> bool {
    OWN_CSPACE.identify_at(slot).is_ok_and(|found| matches!(found.kind, Kind::Frame | Kind::Untyped))
}

/// Returns the memory that has arrived from a core before the message that describes it. `None` also if the description
/// is not of memory.
fn claim(carried: &Carried, from: u64, transfers: &mut Ledger) -> Option<CapAddress> {
    let Carried::Memory { number } = carried else { return None };
    transfers.claim(capabilities::core(from)?, *number)
}
