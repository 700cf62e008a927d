//! Receives the requests of this core's programs to servers that run on the first core only, and to endpoints of other
//! cores.
//!
//! One thread receives at each such server's endpoint, one at the endpoint that most proxies share, and one at each
//! other [proxy](tench_monitor::transfer::proxies). They pass each request to the main thread, with the reply object in
//! which the requester waits. So programs find their usual capabilities, and no thread of the monitor waits for a
//! reply. Requests about names that are local to this core are [handled](crate::requests::local) at once.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tench::memory::{self, Made};
use tench::server::Watch;
use tench::sync::Mutex;
use tench::thread;
use tench_abi::Powers;
use tench_abi::message::MAX_WORDS;
use tench_abi::power::Client;
use tench_clock_interface::Clock;
use tench_console_interface::Console;
use tench_files_interface::Files;
use tench_monitor::message::carried::requester_of;
use tench_monitor::requests::requesters::Requesters;
use tench_monitor_interface::protocol::split_pid;
use tench_names_interface::Names;
use tench_protocol::{ArrayVec, DONE, Encode, Rejection};
use tench_quota::Quota;
use tench_sys::{Cap, CapAddress, Endpoint, Error, Message, Notification, Received, Reply, Wait, offer_slots};

use crate::requests::local::{Listing, Local, LocalOutcome, listing, next_after};
use crate::requests::processes;
use crate::slots::{Arrivals, Caps, discard};

/// Maximum number of requests of programs that wait for replies, but for [waits](processes::waits).
pub const LIMIT: usize = 40;
/// Maximum number of waiting requests of the process server. Its calls have a timeout, and it may repeat them.
pub const OWN_LIMIT: u32 = 4;
/// Client to which requests count that may be from any process of another core.
const UNKNOWN: Client = Client::alone(u64::MAX);
/// Size of a thread's stack in bytes.
pub const STACK: usize = 16 * 1024;

/// The endpoint at which a thread receives.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The endpoint of the server of this number: the badge is the requesting process and its powers.
    Server(u64),
    /// The endpoint that all badged proxies share: the badge is the proxy's name.
    Common,
    /// The endpoint of the proxy of this name: the badge is the one that its holder has given it.
    Own(u64),
}

/// The target of a request.
#[derive(Clone, Copy, Debug)]
pub enum Route {
    /// The server of this number, called with the badge of a process.
    Server(u64, u64),
    /// The target of the proxy of this name, called with a badge or 0.
    Proxy(u64, u64),
}

/// A request that waits for its reply.
pub struct Waiting {
    reply: Made<Reply>,
    /// The client to which the request counts.
    pub requester: Client,
    /// Powers of the capability that was used.
    pub powers: Powers,
    /// Set if the request was sent without waiting for a reply.
    pub is_one_way: bool,
    /// Set if the request [waits](processes::waits).
    pub waits: bool,
    pub charge: Charge,
    /// Set if the request lists names, some of which are local to this core.
    listing: Option<Listing>,
    /// Set if the request tells a server of the end of a process: the process, its family, and the number of the
    /// server.
    reported_end: Option<[u64; 3]>,
}

/// The quota to which a waiting request is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The inbox's quota.
    Inbox,
    /// The quota of the waits for its core.
    Waits,
    /// No quota.
    Nothing,
}

impl Waiting {
    /// Returns a request that waits for its reply, and is charged to the inbox's quota.
    const fn new(reply: Made<Reply>, requester: Client) -> Waiting {
        Waiting {
            reply,
            requester,
            powers: Powers::empty(),
            is_one_way: false,
            waits: false,
            charge: Charge::Inbox,
            listing: None,
            reported_end: None,
        }
    }

    /// Returns whether the requester no longer waits.
    pub fn has_gone(&self, watch: Watch) -> bool {
        !self.is_one_way && watch.is_empty(self.reply.cap())
    }
}

/// A request that has arrived.
pub struct Arrived {
    pub waiting: Waiting,
    pub route: Route,
    pub label: u64,
    pub words: ArrayVec<u64, MAX_WORDS>,
    pub caps: Caps,
}

/// State shared by the threads and the main thread.
struct State {
    arrived: VecDeque<Arrived>,
    /// Quota of requests without replies, by requester.
    quota: Quota,
    /// Number of these requests that are the process server's.
    own: u32,
    /// Processes and the servers that they have used.
    requesters: Requesters,
    /// Reply objects in which no thread waits.
    spare: Vec<Made<Reply>>,
}

/// Queue of arriving requests.
#[derive(Clone)]
pub struct Inbox {
    watch: Watch,
    state: Arc<Mutex<State>>,
    /// The name server's number; `None` on the first core, where programs reach the name server itself.
    names: Option<u64>,
    /// Names that are local to this core. The lock order is `local` before `state`.
    local: Arc<Mutex<Local>>,
    /// Wakes the main thread.
    wake: Cap<Notification>,
}

impl Inbox {
    /// Returns an empty queue. `own` are the names that are local to this core; requests about them are handled in
    /// place of the server of number `names`.
    pub fn new(watch: Watch, (names, own): (Option<u64>, Vec<&'static str>), wake: Cap<Notification>) -> Inbox {
        let (arrived, quota, spare) = (VecDeque::new(), Quota::new(LIMIT), Vec::new());
        let state = State { arrived, quota, own: 0, requesters: Requesters::default(), spare };
        let (state, local) = (Arc::new(Mutex::new(state)), Arc::new(Mutex::new(Local::new(own))));
        Inbox { watch, state, names, local, wake }
    }

    /// Registers a name that is local to this core.
    pub fn register(&self, name: &str, process: u64, service: Cap<Endpoint>) -> crate::Result<()> {
        self.local.lock().register(name, process, service)
    }

    /// Starts a thread that receives at an endpoint.
    pub fn open(&self, source: Source, endpoint: Cap<Endpoint>) -> Result<(), memory::Error> {
        self.spawn_receiver(source, endpoint, None)
    }

    /// Starts a thread that receives at an endpoint until that is deleted. Its slot is freed only then, so that nothing
    /// else can be in it before.
    pub fn open_until_deleted(&self, source: Source, endpoint: Made<Endpoint>) -> Result<(), memory::Error> {
        self.spawn_receiver(source, endpoint.cap(), Some(endpoint))
    }

    fn spawn_receiver(
        &self,
        source: Source,
        endpoint: Cap<Endpoint>,
        made: Option<Made<Endpoint>>,
    ) -> Result<(), memory::Error> {
        let (inbox, own, reply) = (self.clone(), memory::take_slot()?, self.take_reply()?);
        let builder = thread::Builder::new().stack_size(STACK).name("forward");
        let receive = move |arrivals| {
            inbox.receive(source, endpoint, own, arrivals, reply);
            made.into_iter().for_each(Made::deleted);
        };
        let arrivals = Arrivals::new().ok_or(memory::Error::NoSlots);
        let opened = arrivals.and_then(|arrivals| builder.spawn(move || receive(arrivals)));
        opened.map(|thread| thread.detach()).inspect_err(|_| memory::free_slot(own))
    }

    /// Returns a request's charge, because it has been charged to the quota of the waits for its core.
    pub fn charge_to_waits(&self, waiting: &mut Waiting) {
        self.state.lock().finish(waiting);
        waiting.charge = Charge::Waits;
    }

    /// Removes and returns the oldest request.
    pub fn take(&self) -> Option<Arrived> {
        self.state.lock().arrived.pop_front()
    }

    /// Replies to a requester with a label, words, and capabilities, which are sent.
    pub fn reply(&self, mut waiting: Waiting, label: u64, caps: &[CapAddress], words: &[u64]) {
        if let Some((service, after)) = waiting.listing.take() {
            let listed = self.local.lock().listed(&after, label, words);
            match listed {
                Ok(None) => {}
                Ok(Some(message)) => return self.finish(waiting, &message),
                Err(after) => return self.list_further(waiting, service, after),
            }
        }
        let mut message = Message::new(label);
        match self.asks_further(&waiting, label, words) {
            Some(unheard) => Some(unheard).encode(&mut message),
            None => _ = message.extend(words),
        }
        for cap in caps {
            message.move_cap(*cap);
        }
        self.finish(waiting, &message);
    }

    /// Returns a process whose end a server may have missed, if the server's reply to the report of another end asks
    /// about no process.
    fn asks_further(&self, waiting: &Waiting, label: u64, words: &[u64]) -> Option<u64> {
        match (waiting.reported_end, label, words) {
            (Some([process, _, service]), DONE, [0, ..]) => self.state.lock().requesters.unheard(service, process),
            _ => None,
        }
    }

    /// Refuses a waiting request.
    pub fn refuse(&self, waiting: Waiting, why: Rejection) {
        let mut message = Message::new(0);
        reject(&mut message, why);
        self.finish(waiting, &message);
    }

    /// Aborts a waiting request: the requester gets the kernel's error, as if a server of its own core had ended.
    pub fn abort(&self, waiting: Waiting) {
        let mut state = self.state.lock();
        state.finish(&waiting);
        state.may_not_know(waiting.reported_end);
        drop(state);
        drop(waiting.reply);
    }

    /// Asks the name server for the name after one that is not to be seen on this core.
    fn list_further(&self, mut waiting: Waiting, service: u64, after: Box<str>) {
        let words = next_after(&after).map(|message| Received::from_message(&message, 0));
        let words = words.iter().flat_map(|received| received.words().iter().copied()).collect();
        waiting.listing = Some((service, after));
        let route = Route::Server(service, waiting.requester.badge(waiting.powers));
        self.state.lock().arrived.push_back(Arrived { waiting, route, label: Names::NEXT, words, caps: Caps::new() });
        // The notification exists as long as this process.
        let _ = self.wake.signal();
    }

    /// Sends a reply to the requester.
    pub fn finish(&self, waiting: Waiting, message: &Message) {
        // The requester may have given up.
        let is_delivered = waiting.reply.cap().reply(message).is_ok();
        let mut state = self.state.lock();
        state.finish(&waiting);
        if !is_delivered || message.label() != DONE {
            state.may_not_know(waiting.reported_end);
        }
        state.spare.push(waiting.reply);
    }

    /// Drops a request that no longer waits, or in whose process's name nothing may wait because that has ended. In the
    /// latter case the requester is refused, since the reply object has to be empty.
    pub fn forget(&self, waiting: Waiting) {
        let mut message = Message::new(0);
        reject(&mut message, Rejection::NotAllowed);
        self.finish(waiting, &message);
    }

    /// Records that a process, or an unknown one, has got a capability to a server, which must therefore be told when
    /// it ends.
    pub fn knows(&self, process: Option<u64>, service: u64) {
        let requesters = &mut self.state.lock().requesters;
        match process {
            Some(process) => requesters.asks(Client::alone(process), service),
            None => requesters.any_process_asks(service),
        }
    }

    fn take_reply(&self) -> Result<Made<Reply>, memory::Error> {
        let spare = self.state.lock().spare.pop();
        spare.map_or_else(|| memory::make::<Reply>(0), Ok)
    }

    /// Receives until the endpoint is deleted.
    fn receive(
        &self,
        source: Source,
        endpoint: Cap<Endpoint>,
        own: CapAddress,
        mut arrivals: Arrivals,
        mut reply: Made<Reply>,
    ) {
        let mut received = Received::new();
        loop {
            offer_slots(arrivals.slots());
            match endpoint.receive_into(Wait::FOREVER.with_reply(reply.cap()), &mut received) {
                Ok(()) => {}
                Err(Error::Aborted | Error::InvalidCapability) => break,
                Err(error) => panic!("receiving for another core: {error}"),
            }
            if self.is_names(source) {
                let mut local = self.local.lock();
                if local.has(&received) {
                    reply = self.serve_local(&mut local, &received, own, reply);
                    drop(local);
                    // The copies that were made of these are kept.
                    arrivals.take(received.caps()).iter().for_each(|caps| discard(caps));
                    continue;
                }
            }
            reply = self.arrives(source, &received, &mut arrivals, reply);
        }
        self.state.lock().spare.push(reply);
        memory::free_slot(own);
    }

    /// Returns whether the thread receives in place of the name server.
    fn is_names(&self, source: Source) -> bool {
        matches!(source, Source::Server(service) if self.names == Some(service))
    }

    /// Replies to a request about a name that is local to this core, or queues it until the name is registered. Returns
    /// the reply object for the next receive.
    fn serve_local(&self, local: &mut Local, received: &Received, own: CapAddress, reply: Made<Reply>) -> Made<Reply> {
        let outcome = local.serve(received, self, own, reply.cap());
        let (requester, powers) = (Client::of_badge(received.badge()), Powers::of_badge(received.badge()));
        let next = match outcome {
            LocalOutcome::Now => return reply,
            LocalOutcome::Waits => self.charge_waiter(local, requester).and_then(|()| match self.take_reply() {
                Ok(next) => Some(next),
                Err(_) => {
                    self.state.lock().leave(requester.process);
                    None
                }
            }),
        };
        let Some(next) = next else {
            let mut message = Message::new(0);
            reject(&mut message, Rejection::Busy);
            let _ = reply.cap().reply(&message);
            return reply;
        };
        local.keep(received, Waiting { powers, ..Waiting::new(reply, requester) });
        next
    }

    /// Charges the quota for a requester that waits for a name; if it is exhausted, first drops one that has given up.
    fn charge_waiter(&self, local: &mut Local, requester: Client) -> Option<()> {
        if !self.state.lock().admit(requester) {
            local.take_out(requester.family, self.watch).into_iter().for_each(|gone| self.forget(gone));
            return self.state.lock().admit(requester).then_some(());
        }
        Some(())
    }

    /// Frees the local names of a process when the name server is told that it has ended.
    fn forget_ended(&self, source: Source, received: &Received) {
        if let (true, 0, Names::PROCESS_ENDED, [process]) =
            (self.is_names(source), received.badge(), received.label(), received.words())
        {
            let waiting = self.local.lock().process_ended(*process);
            waiting.into_iter().for_each(|waiting| self.forget(waiting));
        }
    }

    /// Queues a request, or refuses it. Returns the reply object for the next receive.
    fn arrives(&self, source: Source, received: &Received, arrivals: &mut Arrivals, reply: Made<Reply>) -> Made<Reply> {
        let mut message = Message::new(0);
        let badge = received.badge();
        let powers = Powers::of_badge(badge);
        // If the proxy is nobody's, it counts to the other core as a whole.
        let counts_as = |proxy| {
            Some(requester_of(proxy)).filter(|requester| split_pid(requester.process).1 != 0).unwrap_or(UNKNOWN)
        };
        self.forget_ended(source, received);
        let listing = self.names.filter(|_| self.is_names(source)).and_then(|names| listing(names, received));
        let (route, requester) = match source {
            Source::Server(service) => (Route::Server(service, badge), Client::of_badge(badge)),
            Source::Common => (Route::Proxy(badge, 0), counts_as(badge)),
            Source::Own(proxy) => (Route::Proxy(proxy, badge), counts_as(proxy)),
        };
        let caps = arrivals.take(received.caps());
        let reported_end = reported_end(route, received);
        if let (Route::Server(service, 0), Names::PROCESS_LIVES | Files::PROCESS_LIVES, [process, ..]) =
            (&route, received.label(), received.words())
        {
            self.state.lock().requesters.lives(*process, *service);
        }
        if let Route::Server(service, 0) = route
            && let (Some(ended), [process, more @ ..]) = (ended(received.label()), received.words())
            && let family = more.first().copied().unwrap_or(0)
            && !self.state.lock().requesters.remove_ended(*process, family, service)
        {
            let question = self.state.lock().requesters.question(service, *process);
            ended(&mut message, question);
        } else if let Some((next, caps)) = self.take_reply().ok().zip(caps.clone()) {
            let mut state = self.state.lock();
            if state.admit(requester) {
                if let Route::Server(service, 1..) = route {
                    state.requesters.asks(requester, service);
                }
                let (label, words) = (received.label(), received.words().iter().copied().collect());
                // A requester that called waits already.
                let (is_one_way, waits) = (self.watch.is_empty(reply.cap()), processes::waits(label));
                let waiting =
                    Waiting { powers, is_one_way, waits, listing, reported_end, ..Waiting::new(reply, requester) };
                state.arrived.push_back(Arrived { waiting, route, label, words, caps });
                drop(state);
                // The notification exists as long as this process.
                let _ = self.wake.signal();
                return next;
            }
            state.spare.push(next);
            state.may_not_know(reported_end);
            reject(&mut message, Rejection::Busy);
        } else {
            self.state.lock().may_not_know(reported_end);
            reject(&mut message, Rejection::Busy);
        }
        caps.iter().for_each(|caps| discard(caps));
        let _ = reply.cap().reply(&message);
        reply
    }
}

impl State {
    /// Returns a requester's charge to its quota.
    fn leave(&mut self, requester: u64) {
        match requester {
            0 => self.own -= 1,
            requester => self.quota.give_back(requester),
        }
    }

    /// Returns the charge of a request that is over or charged elsewhere.
    fn finish(&mut self, waiting: &Waiting) {
        if waiting.charge == Charge::Inbox {
            self.leave(waiting.requester.process);
        }
    }

    /// Records that a server may not have been told of an end.
    fn may_not_know(&mut self, reported_end: Option<[u64; 3]>) {
        if let Some([process, family, service]) = reported_end {
            self.requesters.may_not_know(process, family, service);
        }
    }

    /// Charges a request to its requester's quota. Returns whether that permits it.
    fn admit(&mut self, requester: Client) -> bool {
        let may = if requester.process == 0 { self.own < OWN_LIMIT } else { self.quota.may_take(requester) };
        match (may, requester.process) {
            (false, _) => {}
            (true, 0) => self.own += 1,
            (true, _) => self.quota.take(requester),
        }
        may
    }
}

/// Returns the process, its family and the server, if a request reports the end of a process to a server that asks
/// about others.
fn reported_end(route: Route, received: &Received) -> Option<[u64; 3]> {
    match (route, received.label(), received.words()) {
        (Route::Server(service, 0), Names::PROCESS_ENDED | Files::PROCESS_ENDED, [process, more @ ..]) => {
            Some([*process, more.first().copied().unwrap_or(0), service])
        }
        _ => None,
    }
}

/// If a request reports the end of a process, returns the function that makes the reply of a server that does not know
/// the process; the reply asks the given question if the server asks any.
fn ended(label: u64) -> Option<fn(&mut Message, Option<u64>)> {
    fn nothing(message: &mut Message, _: Option<u64>) {
        message.restart(DONE);
    }
    fn no_more(message: &mut Message, _: Option<u64>) {
        message.restart(DONE);
        false.encode(message);
    }
    fn ask(message: &mut Message, question: Option<u64>) {
        message.restart(DONE);
        question.encode(message);
    }
    match label {
        Console::PROCESS_ENDED => Some(nothing),
        Clock::PROCESS_ENDED => Some(no_more),
        Names::PROCESS_ENDED | Files::PROCESS_ENDED => Some(ask),
        _ => None,
    }
}

fn reject(message: &mut Message, why: Rejection) {
    let _ = why.write(message);
}
