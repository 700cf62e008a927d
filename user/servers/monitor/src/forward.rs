//! Receives what programs of this core ask servers that run on the first core only, and endpoints of other cores.
//!
//! A thread for each of those servers receives at its endpoint, one at the proxy that most endpoints of other cores
//! have in common, and one at each other [proxy](tench_monitor::proxies). They hand what arrives to the main thread,
//! together with the reply object in which whoever asked waits. So programs find the capabilities that they always
//! find, and no thread waits for an answer. What is asked about names that this core has for itself they
//! [answer](crate::local) at once.

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
use tench_clock_client::Clock;
use tench_console_client::Console;
use tench_files_client::Files;
use tench_monitor::askers::Askers;
use tench_monitor::proxies::asker_of;
use tench_monitor_client::protocol::place;
use tench_names_client::Names;
use tench_places::Places;
use tench_protocol::{ArrayVec, DONE, Encode, Rejection};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Message, Notification, Received, Reply, Wait, offer_slots};

use crate::local::{Answered, Listing, Local, listing, next_after};
use crate::slots::{Arrivals, Caps, discard};

/// Requests of programs that wait for their answers. The channel has room for more, which are the process server's.
pub const LIMIT: usize = 56;
/// Requests of the process server that wait: it gives up after a moment, and may ask again.
const OWN_LIMIT: u32 = 4;
/// Who asks in the place of all processes of another core.
const UNKNOWN: Client = Client::alone(u64::MAX);
/// Bytes of a thread's stack.
pub const STACK: usize = 16 * 1024;

/// At which endpoint something is received.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// In the place of the server of this number: the badge says which process asks, and its powers.
    Server(u64),
    /// At the proxy that all capabilities with a badge have in common: the badge says which it is.
    Common,
    /// At the proxy of this name: the badge is whatever it was given.
    Own(u64),
}

/// For whom a request is.
#[derive(Clone, Copy, Debug)]
pub enum Via {
    /// The server of this number, with the badge of a process.
    Server(u64, u64),
    /// What is behind the proxy of this name, with a badge or 0.
    Proxy(u64, u64),
}

/// A request that waits for its answer.
pub struct Waiting {
    reply: Made<Reply>,
    /// Whose request it counts as.
    pub asker: Client,
    /// What the capability permits with which it was asked.
    pub powers: Powers,
    /// Nobody waits: it was sent, not called with.
    pub is_one_way: bool,
    /// It lists names, of which some are this core's own.
    listing: Option<Listing>,
    /// It says that this process, and family, has ended to a server of this number, which has to know that.
    told: Option<[u64; 3]>,
}

impl Waiting {
    /// Whether nobody waits any more.
    pub fn has_gone(&self, watch: Watch) -> bool {
        !self.is_one_way && watch.is_empty(self.reply.cap())
    }
}

/// A request that has arrived.
pub struct Arrived {
    /// Who waits.
    pub waiting: Waiting,
    /// For whom it is.
    pub via: Via,
    /// What is asked.
    pub label: u64,
    /// With which words.
    pub words: ArrayVec<u64, MAX_WORDS>,
    /// And which capabilities.
    pub caps: Caps,
}

/// What the threads share with the main thread.
struct State {
    arrived: VecDeque<Arrived>,
    /// Whose the requests are that have not been answered.
    places: Places,
    /// How many of them are the process server's.
    own: u32,
    /// Who has asked whom.
    askers: Askers,
    /// Reply objects in which nobody waits.
    spare: Vec<Made<Reply>>,
}

/// Where requests arrive.
#[derive(Clone)]
pub struct Inbox {
    watch: Watch,
    state: Arc<Mutex<State>>,
    /// The name server's number; none on the first core, where it is asked itself.
    names: Option<u64>,
    /// Names that this core has for itself. Who has this locked may lock the state, not the other way round.
    local: Arc<Mutex<Local>>,
    /// Wakes the main thread.
    wake: Cap<Notification>,
}

impl Inbox {
    /// Nothing arrives yet. These names this core has for itself; it is asked about them in the place of the server of
    /// this number.
    pub fn new(watch: Watch, (names, own): (Option<u64>, Vec<&'static str>), wake: Cap<Notification>) -> Inbox {
        let (arrived, places, spare) = (VecDeque::new(), Places::new(LIMIT), Vec::new());
        let state = State { arrived, places, own: 0, askers: Askers::default(), spare };
        let (state, local) = (Arc::new(Mutex::new(state)), Arc::new(Mutex::new(Local::new(own))));
        Inbox { watch, state, names, local, wake }
    }

    /// Registers a name that this core has for itself.
    pub fn register(&self, name: &str, process: u64, service: Cap<Endpoint>) -> crate::Result<()> {
        self.local.lock().register(name, process, service)
    }

    /// Receives at an endpoint from now on.
    pub fn open(&self, source: Source, endpoint: Cap<Endpoint>) -> Result<(), memory::Error> {
        self.begin(source, endpoint, None)
    }

    /// Receives at an endpoint until it is deleted. Its slot is free only then, so that nothing else is found there.
    pub fn open_until_deleted(&self, source: Source, endpoint: Made<Endpoint>) -> Result<(), memory::Error> {
        self.begin(source, endpoint.cap(), Some(endpoint))
    }

    fn begin(
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

    /// The request that has waited longest, and has not been taken out.
    pub fn take(&self) -> Option<Arrived> {
        self.state.lock().arrived.pop_front()
    }

    /// Answers whoever waits with a label, words, and capabilities, which go there.
    pub fn answer(&self, mut waiting: Waiting, label: u64, caps: &[CapAddress], words: &[u64]) {
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

    /// Returns a process of whose end a server may not have heard, if it answers that it was told of another one's, and
    /// asks about nobody.
    fn asks_further(&self, waiting: &Waiting, label: u64, words: &[u64]) -> Option<u64> {
        match (waiting.told, label, words) {
            (Some([process, _, service]), DONE, [0, ..]) => self.state.lock().askers.unheard(service, process),
            _ => None,
        }
    }

    /// Refuses whoever waits.
    pub fn refuse(&self, waiting: Waiting, why: Rejection) {
        let mut message = Message::new(0);
        reject(&mut message, why);
        self.finish(waiting, &message);
    }

    /// Whoever waits learns no more than when a server of its own core has ended: the kernel says so.
    pub fn abort(&self, waiting: Waiting) {
        let mut state = self.state.lock();
        state.leave(waiting.asker.process);
        state.may_not_know(waiting.told);
        drop(state);
        drop(waiting.reply);
    }

    /// Asks the name server for the next name after one that is not to be seen here.
    fn list_further(&self, mut waiting: Waiting, service: u64, after: Box<str>) {
        let words = next_after(&after).map(|message| Received::from_message(&message, 0));
        let words = words.iter().flat_map(|received| received.words().iter().copied()).collect();
        waiting.listing = Some((service, after));
        let via = Via::Server(service, waiting.asker.badge(waiting.powers));
        self.state.lock().arrived.push_back(Arrived { waiting, via, label: Names::NEXT, words, caps: Caps::new() });
        // It is there as long as this process.
        let _ = self.wake.signal();
    }

    /// Answers whoever waits.
    pub fn finish(&self, waiting: Waiting, message: &Message) {
        // Who asked may have gone.
        let is_told = waiting.reply.cap().reply(message).is_ok();
        let mut state = self.state.lock();
        state.leave(waiting.asker.process);
        if !is_told || message.label() != DONE {
            state.may_not_know(waiting.told);
        }
        state.spare.push(waiting.reply);
    }

    /// Nobody waits any more, or the process in whose name somebody does has ended: he is refused, since the object has
    /// to be empty.
    pub fn forget(&self, waiting: Waiting) {
        let mut message = Message::new(0);
        reject(&mut message, Rejection::NotAllowed);
        self.finish(waiting, &message);
    }

    /// A process, or nobody knows which, has got a capability of a server's, which is to hear of its end therefore.
    pub fn knows(&self, process: Option<u64>, service: u64) {
        let askers = &mut self.state.lock().askers;
        match process {
            Some(process) => askers.asks(Client::alone(process), service),
            None => askers.anybody_asks(service),
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
                    reply = self.answer_here(&mut local, &received, own, reply);
                    drop(local);
                    // What is kept of it is a copy.
                    arrivals.take(received.caps()).iter().for_each(|caps| discard(caps));
                    continue;
                }
            }
            reply = self.arrives(source, &received, &mut arrivals, reply);
        }
        self.state.lock().spare.push(reply);
        memory::free_slot(own);
    }

    /// Whether something is received in the place of the name server.
    fn is_names(&self, source: Source) -> bool {
        matches!(source, Source::Server(service) if self.names == Some(service))
    }

    /// Answers what is asked about a name of this core alone, or keeps who waits for it. Answers with which reply
    /// object to receive the next.
    fn answer_here(&self, local: &mut Local, received: &Received, own: CapAddress, reply: Made<Reply>) -> Made<Reply> {
        let answered = local.answer(received, self, own, reply.cap());
        let (asker, powers) = (Client::of_badge(received.badge()), Powers::of_badge(received.badge()));
        let next = match answered {
            Answered::Now => return reply,
            Answered::Waits => self.make_place(local, asker).and_then(|()| match self.take_reply() {
                Ok(next) => Some(next),
                Err(_) => {
                    self.state.lock().leave(asker.process);
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
        local.keep(received, Waiting { reply, asker, powers, is_one_way: false, listing: None, told: None });
        next
    }

    /// Takes a place for somebody who waits for a name, if need be that of one who has gone.
    fn make_place(&self, local: &mut Local, asker: Client) -> Option<()> {
        if !self.state.lock().admit(asker) {
            local.take_out(asker.family, self.watch).into_iter().for_each(|gone| self.forget(gone));
            return self.state.lock().admit(asker).then_some(());
        }
        Some(())
    }

    /// If the name server is told that a process has ended, its names here are free.
    fn forget_ended(&self, source: Source, received: &Received) {
        if let (true, 0, Names::PROCESS_ENDED, [process]) =
            (self.is_names(source), received.badge(), received.label(), received.words())
        {
            let waiting = self.local.lock().process_ended(*process);
            waiting.into_iter().for_each(|waiting| self.forget(waiting));
        }
    }

    /// Hands a request on, or refuses it. Answers with which reply object to receive the next.
    fn arrives(&self, source: Source, received: &Received, arrivals: &mut Arrivals, reply: Made<Reply>) -> Made<Reply> {
        let mut message = Message::new(0);
        let badge = received.badge();
        let powers = Powers::of_badge(badge);
        // If it is nobody's, it was another core's as a whole.
        let counts_as = |proxy| Some(asker_of(proxy)).filter(|asker| place(asker.process).1 != 0).unwrap_or(UNKNOWN);
        self.forget_ended(source, received);
        let listing = self.names.filter(|_| self.is_names(source)).and_then(|names| listing(names, received));
        let (via, asker) = match source {
            Source::Server(service) => (Via::Server(service, badge), Client::of_badge(badge)),
            Source::Common => (Via::Proxy(badge, 0), counts_as(badge)),
            Source::Own(proxy) => (Via::Proxy(proxy, badge), counts_as(proxy)),
        };
        let caps = arrivals.take(received.caps());
        let told = told(via, received);
        if let (Via::Server(service, 0), Names::PROCESS_LIVES | Files::PROCESS_LIVES, [process, ..]) =
            (&via, received.label(), received.words())
        {
            self.state.lock().askers.lives(*process, *service);
        }
        if let Via::Server(service, 0) = via
            && let (Some(ended), [process, more @ ..]) = (ended(received.label()), received.words())
            && let family = more.first().copied().unwrap_or(0)
            && !self.state.lock().askers.ends(*process, family, service)
        {
            let question = self.state.lock().askers.question(service, *process);
            ended(&mut message, question);
        } else if let Some((next, caps)) = self.take_reply().ok().zip(caps.clone()) {
            let mut state = self.state.lock();
            if state.admit(asker) {
                if let Via::Server(service, 1..) = via {
                    state.askers.asks(asker, service);
                }
                let words = received.words().iter().copied().collect();
                // Whoever calls waits already.
                let is_one_way = self.watch.is_empty(reply.cap());
                let (waiting, label) = (Waiting { reply, asker, powers, is_one_way, listing, told }, received.label());
                state.arrived.push_back(Arrived { waiting, via, label, words, caps });
                drop(state);
                // It is there as long as this process.
                let _ = self.wake.signal();
                return next;
            }
            state.spare.push(next);
            state.may_not_know(told);
            reject(&mut message, Rejection::Busy);
        } else {
            self.state.lock().may_not_know(told);
            reject(&mut message, Rejection::Busy);
        }
        caps.iter().for_each(|caps| discard(caps));
        let _ = reply.cap().reply(&message);
        reply
    }
}

impl State {
    /// Gives a place back.
    fn leave(&mut self, asker: u64) {
        match asker {
            0 => self.own -= 1,
            asker => self.places.give_back(asker),
        }
    }

    /// A server may not have been told what was to be said to it.
    fn may_not_know(&mut self, told: Option<[u64; 3]>) {
        if let Some([process, family, service]) = told {
            self.askers.may_not_know(process, family, service);
        }
    }

    /// Takes a place for a request, if there is one for whoever asks.
    fn admit(&mut self, asker: Client) -> bool {
        let may = if asker.process == 0 { self.own < OWN_LIMIT } else { self.places.may_take(asker) };
        match (may, asker.process) {
            (false, _) => {}
            (true, 0) => self.own += 1,
            (true, _) => self.places.take(asker),
        }
        may
    }
}

/// Returns the process, its family, and the server, if a request says to a server that asks about others that a process
/// has ended.
fn told(via: Via, received: &Received) -> Option<[u64; 3]> {
    match (via, received.label(), received.words()) {
        (Via::Server(service, 0), Names::PROCESS_ENDED | Files::PROCESS_ENDED, [process, more @ ..]) => {
            Some([*process, more.first().copied().unwrap_or(0), service])
        }
        _ => None,
    }
}

/// If a request says that a process has ended: how a server answers that knows nothing of it, with this question if it
/// asks any.
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
