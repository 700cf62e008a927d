//! What local programs and other monitors ask.
//!
//! The main thread waits for everything at once: requests at the monitor's endpoint; its line, on which the other
//! monitors ring when they have written something and this one said that it sleeps; and the signal of its own other
//! threads. It waits for no server: what a server is asked, workers ask. (On the first core it writes to the console,
//! which asks nobody anything.)

mod errands;
mod interface;
mod trade;

use alloc::sync::Arc;
use alloc::vec::Vec;

use tench::memory;
use tench::println;
use tench::server::Watch;
use tench_abi::layout::slot;
use tench_abi::object::Statistic;
use tench_abi::power::Client;
use tench_channel::Side;
use tench_loader::Archive;
use tench_loader::addresses::Randomness;
use tench_mem_client::Mem;
use tench_monitor::about::About;
use tench_monitor::boot::BLOCK_BITS;
use tench_monitor::message::operation;
use tench_monitor::portions::Portions;
use tench_monitor::proxies;
use tench_monitor::share::divide;
use tench_monitor_client::Monitor;
use tench_monitor_client::protocol::{Error, State};
use tench_names_client::Names;
use tench_protocol::{Event, Later, Pending, Port, again};
use tench_sys::thread::{Binding, Bindings};
use tench_sys::{
    Cap, CapAddress, Endpoint, Error as Refusal, Frame, Instant, InterruptControl, Kernel, Kind, Machine, Notification,
    OWN_SPACE, Rights, Thread, Trigger, Wait,
};
use tench_system::{ARCHIVE_PATH, Program, System};

use crate::attention::Attention;
use crate::capabilities::{self, Books, KERNEL, Rounds};
use crate::channel::{self, LINE};
use crate::desk::{Asker, Desk, Origin};
use crate::endpoints::Endpoints;
use crate::forward::Inbox;
use crate::links::Links;
use crate::peer::{Peer, Seen};
use crate::processes;
use crate::services::Services;
use crate::signals::Signals;
use crate::slots::discard;
use crate::start::Starter;
use crate::{Result, no_memory};
pub use errands::Errand;

/// The name server, as the system description calls it.
const NAMES: &str = "names";
/// What the line signals.
const RING: u64 = 1;
/// What the other threads signal.
const WAKE: u64 = 1 << 1;
/// What reminds of those for whom somebody waits.
const REMIND: u64 = 1 << 2;
/// Not what stands for notifications of other cores.
const OWN: u64 = (1 << proxies::FIRST_BIT) - 1;
/// Ticks of the system counter in a second are so many times those after which something that is being cancelled is
/// looked at again.
const LOOKS: u64 = 1000;
/// Bytes of heap that are kept for what a client's request and a batch of other monitors' messages put into the books.
pub const GROWTH: usize = 64 * 1024;
/// The same as [`LOOKS`] for a channel that could not be sent.
const LINKS: u64 = 10;

/// The server's state.
pub struct Server {
    machine: Machine,
    peers: Vec<Peer>,
    /// Work for others.
    desk: Desk,
    /// How much of it they may have.
    portions: Portions,
    /// When somebody has something again of whom nothing is taken in until then.
    put_off: Option<Instant>,
    /// What programs here ask of other cores, and those of what is here.
    endpoints: Endpoints,
    /// Capabilities that left their core.
    books: Books,
    rounds: Rounds,
    /// Nothing was to be done about capabilities when that was looked at last. It still is so unless the books were
    /// touched.
    is_settled: bool,
    /// Channels between further cores; nothing where this is one.
    links: Links,
    /// Who asked for memory when nobody could find out about it.
    refused: Vec<Asker>,
    /// Memory that was given to another core and has come back.
    returned: Vec<u64>,
    /// Who still waits.
    watch: Watch,
    attention: Attention,
    /// Where a capability lies that leaves with an answer.
    outgoing: CapAddress,
    /// A signal may be lost since the last was received.
    may_have_missed: bool,
    /// There may be something in the channels to take in.
    is_rung: bool,
    /// A core may not have answered since it was started.
    is_starting: bool,
    /// The other threads have signalled since what they did was looked at.
    is_woken: bool,
}

impl Server {
    /// On the first core, starts all others; on another, opens the channel to the first.
    pub fn new() -> Result<Server> {
        memory::serve_without_faults(GROWTH).map_err(no_memory)?;
        let machine = Cap::<Kernel>::new(slot::KERNEL).machine()?;
        let [main, wake, remind] = listen()?;
        let files = Files::open(machine.core)?;
        let system = description(&files.archive).ok_or(Refusal::InvalidArgument)?;
        let absent = servers(&system, Program::is_absent_elsewhere);
        let is_first = machine.core == 0;
        let (own, absent) = if is_first { ((None, Vec::new()), absent) } else { (own(&system, &absent), Vec::new()) };
        let services = Arc::new(Services::new(absent));
        services.find_all();
        let watch = Watch::new().map_err(no_memory)?;
        let attention = Attention::new(remind).map_err(no_memory)?;
        let (inbox, signals) = (Inbox::new(watch, own, wake), Signals::new(main, wake)?);
        let endpoints = Endpoints::open(machine.core, inbox, Arc::clone(&services), signals)?;
        let desk = Desk::new(machine.core, services, wake);
        let books = capabilities::open(machine.core, machine.cores).ok_or(Refusal::NoSuchCore)?;
        let mut server = Server {
            machine,
            peers: Vec::new(),
            desk,
            portions: Portions::new(tench::time::frequency(), Instant::now().ticks(), idle()),
            put_off: None,
            endpoints,
            books,
            rounds: Rounds::new(),
            is_settled: false,
            links: Links::new(),
            refused: Vec::new(),
            returned: Vec::new(),
            watch,
            attention,
            outgoing: memory::take_slot().map_err(no_memory)?,
            may_have_missed: false,
            is_rung: true,
            is_starting: true,
            is_woken: false,
        };
        if is_first {
            server.start_others(&files, &system)?;
            server.register()?;
        } else {
            server.connect()?;
        }
        Ok(server)
    }

    /// Everybody who finds the monitor by its name has it without a badge.
    fn register(&self) -> Result<()> {
        let slot = memory::take_slot().map_err(no_memory)?;
        let public =
            Cap::<Endpoint>::new(slot::SERVICE).mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, 0)?;
        again(|| Names::STANDARD.register(Monitor::NAME, public)).map_err(|_| Refusal::Aborted)
    }

    /// Starts the other cores. One that cannot be started is reported, and the others go on.
    fn start_others(&mut self, files: &Files, system: &System<'_>) -> Result<()> {
        let starter = Starter::new(self.machine, &files.archive, files.place)?;
        let free = Mem::STANDARD.totals().map_err(no_memory)?.free;
        let shares = divide(free, self.machine.cores, 1 << BLOCK_BITS, system.shares());
        for (core, share) in (1..self.machine.cores).zip(shares.into_iter().skip(1)) {
            let peer = start_one(&starter, core, share);
            if !matches!(peer.state, State::Starting) {
                println!("monitor: core {core} was not started: {}", peer.state);
            }
            match (capabilities::core(core), &peer.channel) {
                (Some(core), Some(_)) => self.books.connect(core),
                (Some(core), None) => self.books.lose(core),
                (None, _) => {}
            }
            self.peers.push(peer);
        }
        Ok(())
    }

    /// Opens the channel to the first core, in the frame that this one was started with, and says that it runs. From
    /// now on, programs here find the servers that run there.
    fn connect(&mut self) -> Result<()> {
        let mut channel = channel::open(first_frame(slot::EXTRA)?, Side::Second, 0)?;
        channel.event(operation::HELLO, &[]).map_err(|_| Refusal::Aborted)?;
        let mut first = Peer::new(0);
        (first.channel, first.state) = (Some(channel), State::Running);
        self.peers.push(first);
        capabilities::core(0).into_iter().for_each(|core| self.books.connect(core));
        self.endpoints.register(Monitor::NAME, tench::process::id(), Cap::new(slot::SERVICE))?;
        (0..)
            .zip(processes::endpoints().skip(1))
            .try_for_each(|(service, endpoint)| self.endpoints.stand_in(service, endpoint))
    }

    /// Answers requests for ever.
    ///
    /// While this monitor sleeps the others know it, and whoever writes something rings. That is taken in when the
    /// signal has come, and only then is it said that this monitor does not sleep any more; what comes otherwise is
    /// carried out without a look at the channels. Nothing is missed by that. Who has not rung for a sleep rings as
    /// soon as he writes; who has rung is heard, because the signal stays until it is received, and after it everything
    /// is taken in that was written before the next sleep began ([`may_sleep`](Self::may_sleep) looks once more). Where
    /// a signal may have gone to somebody else, it counts as received.
    pub fn serve(&mut self) -> ! {
        let mut port: Port = tench::server::port(1, 2);
        loop {
            if core::mem::take(&mut self.is_rung) {
                self.take_in(&mut port);
            }
            let is_quiet = self.pass_on(&mut port);
            self.is_rung |= !self.may_sleep();
            let wait = match (self.is_rung, is_quiet && self.put_off.is_none()) {
                (true, _) => Wait::alarm(Instant::now()),
                (false, true) => Wait::FOREVER,
                (false, false) => self.deadline(),
            };
            match port.next(wait) {
                Event::Request => {
                    port.carry_out(|request, context, answer| Monitor::dispatch(self, request, context, answer));
                    if core::mem::take(&mut self.may_have_missed) {
                        self.make_up_for_missed();
                    }
                }
                Event::Signal(bits) => {
                    self.is_rung |= bits & RING != 0;
                    self.is_woken |= bits & WAKE != 0;
                    if bits & REMIND != 0 {
                        self.look(&mut port);
                    }
                    if bits & !OWN != 0 {
                        self.endpoints.signalled(bits);
                    }
                }
                Event::Nothing => self.expire(),
            }
            // Nobody rings for what is there already.
            self.is_rung |= self.put_off.is_some_and(|time| time <= Instant::now());
        }
    }

    /// Takes in what the other monitors have written, of those that have not used up [their
    /// part](tench_monitor::portions).
    fn take_in(&mut self, port: &mut Port) {
        self.put_off = None;
        for peer in &mut self.peers {
            if !self.portions.has(peer.core) {
                self.portions.refill(Instant::now().ticks(), idle());
            }
            if put_off(&self.portions, peer.core, &mut self.put_off) {
                continue;
            }
            // What it answers, and says about capabilities, is for this core as much as for that.
            let took = peer.take_in(&mut self.desk, &mut self.endpoints, &mut self.books, port);
            if took > 0 {
                self.portions.charge(peer.core, took);
            }
        }
    }

    /// Passes on what was taken in, what programs here have asked, and what the other threads have done. Answers
    /// whether nothing of all that has a time at which it is to be looked at again.
    fn pass_on(&mut self, port: &mut Port) -> bool {
        let is_woken = core::mem::take(&mut self.is_woken);
        while is_woken && let Some((origin, product)) = self.desk.finished(&mut self.portions) {
            if let Origin::Peer(core, number) = origin {
                let peer = self.peers.iter_mut().find(|peer| peer.core == core && peer.channel.is_some());
                match peer {
                    Some(peer) => {
                        let words = self.endpoints.answer(core, number, product);
                        words.iter().for_each(|words| peer.answer(number, words));
                    }
                    None => discard(&product.caps),
                }
                continue;
            }
            let words = product.words;
            match origin {
                Origin::Nobody | Origin::Peer(..) => {}
                Origin::Guest(core, number, badge) => self.admitted(core, number, badge, &words),
                Origin::Capabilities(work) => self.worked(work, &words, port),
                Origin::Here(asker) => asker.finish(port, &words),
            }
        }
        if self.desk.is_waiting() {
            self.desk.resume();
        }
        if is_woken {
            self.endpoints.hear_others();
        }
        if self.endpoints.has_signals() {
            self.say_signals();
        }
        if is_woken {
            self.forward();
            self.ship();
        }
        let is_quiet = self.exchange(port) && !self.is_starting && !self.desk.is_waiting();
        if self.endpoints.is_quiet() {
            return is_quiet;
        }
        self.look_after_endpoints();
        false
    }

    /// Sends on what programs here ask servers and endpoints of other cores.
    fn forward(&mut self) {
        while let Some((core, waiting, words)) = self.endpoints.next() {
            match self.peers.iter_mut().find(|peer| peer.core == core) {
                Some(peer) => peer.forward(waiting, words, &mut self.endpoints),
                None => self.endpoints.refuse(waiting),
            }
        }
    }

    /// Says what was signalled here at notifications of other cores.
    #[inline(never)]
    fn say_signals(&mut self) {
        self.peers.iter_mut().for_each(|peer| peer.signal(&mut self.endpoints));
    }

    /// Lets go what is not needed any more of endpoints and notifications: proxies here, and what is held for those
    /// that others have let go.
    #[inline(never)]
    fn look_after_endpoints(&mut self) {
        self.endpoints.look();
        if self.endpoints.took_others() {
            self.make_up_for_missed();
        }
        // What was found when proxies were let go.
        self.say_signals();
        while let Some(process) = self.endpoints.parted() {
            if !self.desk.forget(process) {
                self.endpoints.put_back(process);
                break;
            }
        }
        if self.endpoints.has_releases() {
            self.peers.iter_mut().for_each(|peer| peer.release(&mut self.endpoints, &self.books));
        }
    }

    /// Tells those others that do not know it that this monitor sleeps from now on. Answers false if something has
    /// arrived meanwhile.
    fn may_sleep(&mut self) -> bool {
        let (mut may, mut waits) = (true, self.rounds.await_any());
        for peer in &mut self.peers {
            // Of whom nothing is taken in, that need not ring: it is looked there when it has something again.
            may &= put_off(&self.portions, peer.core, &mut self.put_off) || peer.may_sleep();
            waits |= peer.is_waited_for();
        }
        if waits {
            self.attention.pay();
        }
        may
    }

    /// Looks whether those still answer for whom somebody waits.
    fn look(&mut self, port: &mut Port) {
        self.attention.was_reminded();
        for peer in &mut self.peers {
            let is_awaited = self.rounds.await_it(peer.core);
            // Of one that has stopped, the channel is closed with the next that is done for the books.
            if let Seen::Silent = peer.look(self.watch, is_awaited, &mut self.endpoints, &mut self.books, port)
                && self.machine.core == 0
            {
                println!("monitor: core {} does not answer any more", peer.core);
            }
        }
        self.make_up_for_missed();
    }

    /// Whoever asks whether somebody still waits may have lost a signal to that: what it would have told is done.
    fn make_up_for_missed(&mut self) {
        self.attention.was_reminded();
        self.endpoints.hear();
        (self.is_rung, self.is_woken) = (true, true);
    }

    /// Until when a core that was started may be silent, or what is being cancelled is left alone.
    fn deadline(&mut self) -> Wait {
        self.is_starting = self.peers.iter().any(|peer| matches!(peer.state, State::Starting));
        let waiting = self.peers.iter().filter(|peer| matches!(peer.state, State::Starting));
        let soon = || Instant::now().after(tench::time::frequency() / LOOKS);
        let look = (self.desk.is_waiting() || self.books.has_deletions()).then(soon);
        let is_linking = self.links.waiting() > 0;
        let link = is_linking.then(|| Instant::now().after(tench::time::frequency() / LINKS));
        let own = self.rounds.deadline().into_iter().chain(self.endpoints.deadline()).chain(self.put_off);
        let all = waiting.map(|peer| peer.patience()).chain(look).chain(link).chain(own);
        all.min().map_or(Wait::FOREVER, Wait::alarm)
    }

    /// Gives up cores that did not answer in time.
    fn expire(&mut self) {
        let now = Instant::now();
        for peer in &mut self.peers {
            if matches!(peer.state, State::Starting) && peer.patience() <= now {
                peer.state = State::Silent;
                if capabilities::core(peer.core).is_some_and(|core| self.books.stop(core)) {
                    continue;
                }
                println!("monitor: core {} was started, but does not answer", peer.core);
            }
        }
    }

    fn peer(&mut self, core: u64) -> core::result::Result<Option<&mut Peer>, Error> {
        if core >= self.machine.cores {
            return Err(Error::NoSuchCore);
        }
        Ok(self.peers.iter_mut().find(|peer| peer.core == core))
    }

    /// Has something done about processes of a core, for a process of this one, which is kept until it is done. If too
    /// many wait, those are taken out who have gone without a word.
    fn ask<T>(
        &mut self,
        about: About,
        mut later: Later<'_, T, Error>,
        kept: fn(Pending<T, Error>) -> Asker,
    ) -> core::result::Result<Option<T>, Error> {
        let core = about.core();
        if about.asker == Client::AUTHORITY {
            return Err(Error::NotAllowed);
        }
        self.reach(core)?;
        if about.operation.waits() && !self.may_wait(core, about.asker) {
            let (watch, replies) = (self.watch, later.others());
            self.may_have_missed = true;
            self.desk.sweep(watch, replies);
            self.peers.iter_mut().filter(|peer| peer.core == core).for_each(|peer| peer.sweep(watch, replies));
        }
        let keep = || later.keep().map(kept);
        if core == self.machine.core {
            self.desk.ask_here(processes::Task::Do(about), || keep().map(Origin::Here))?;
        } else {
            self.peer(core)?.ok_or(Error::NotConnected)?.ask(&about, keep)?;
        }
        Ok(None)
    }

    /// Whether there is room for one more who waits for the end of a process.
    fn may_wait(&self, core: u64, asker: Client) -> bool {
        let peer = self.peers.iter().find(|peer| peer.core == core);
        peer.map_or_else(|| self.desk.may_wait(asker), |peer| peer.may_wait(asker))
    }
}

/// Whether nothing is taken in of a core, since it has used up its part. If so, `until` is not later than when it has
/// something again.
fn put_off(portions: &Portions, core: u64, until: &mut Option<Instant>) -> bool {
    if portions.has(core) {
        return false;
    }
    let again = Instant::now().after(portions.wait(core));
    *until = Some(until.map_or(again, |first| first.min(again)));
    true
}

/// Ticks in which this core had nothing to do.
fn idle() -> u64 {
    Cap::<Kernel>::new(slot::KERNEL).query(Statistic::IdleTicks).unwrap_or(0)
}

/// The boot archive.
struct Files {
    archive: Archive<'static>,
    /// Its physical address and size.
    place: (u64, u64),
}

impl Files {
    /// On a further core it lies behind the frame of the channel.
    fn open(core: u64) -> Result<Files> {
        let first = if core == 0 { slot::EXTRA } else { CapAddress(slot::EXTRA.0 + 1) };
        let mut random = Randomness::new(Default::default());
        let (shown, archive) = tench_boot::map(first, &mut random).map_err(no_memory)?;
        Ok(Files { archive, place: (first_frame(first)?.locate(KERNEL)?.address, shown.size()) })
    }
}

/// The system description.
fn description(archive: &Archive<'static>) -> Option<System<'static>> {
    System::parse(archive.find(ARCHIVE_PATH)?.contents).ok()
}

/// The names of such servers.
fn servers(system: &System<'static>, are: fn(&Program<'static>) -> bool) -> Vec<&'static str> {
    system.programs().filter(are).map(|program| program.name).collect()
}

/// The names that a further core has for itself, and where it is asked for them. `absent` are the servers that run on
/// the first only.
fn own(system: &System<'static>, absent: &[&str]) -> (Option<u64>, Vec<&'static str>) {
    let names = absent.iter().position(|name| *name == NAMES).map(|number| number as u64);
    let mut own = servers(system, Program::is_on_each_core);
    if !own.contains(&Monitor::NAME) {
        // However the description calls the monitor: each core has one.
        own.push(Monitor::NAME);
    }
    (names, own)
}

/// Lets this core be rung: the line signals the main thread. Answers the notification that is bound to that thread,
/// what wakes it otherwise, and what reminds it.
fn listen() -> Result<[Cap<Notification>; 3]> {
    let slot = memory::take_slot().map_err(no_memory)?;
    let line = Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL).get(LINE, Trigger::Bell, slot)?;
    let notification = memory::make::<Notification>(0).map_err(no_memory)?.leak();
    let bindings = Bindings { notification: Binding::To(notification), ..Bindings::KEEP };
    Cap::<Thread>::new(slot::THREAD).bind(bindings)?;
    line.bind(Some(notification))?;
    let mint = |badge| notification.mint_to(memory::take_slot().map_err(no_memory)?, Rights::WRITE, badge);
    Ok([notification, mint(WAKE)?, mint(REMIND)?])
}

/// The frame in one of the slots for extra capabilities.
fn first_frame(slot: CapAddress) -> Result<Cap<Frame>> {
    let is_frame = OWN_SPACE.identify_at(slot)?.kind == Kind::Frame;
    if is_frame { Ok(Cap::new(slot)) } else { Err(Refusal::InvalidCapability) }
}

/// Starts a core and opens the channel to it.
fn start_one(starter: &Starter<'_>, core: u64, memory: u64) -> Peer {
    let mut peer = Peer::new(core);
    let opened = starter.start(core, memory).and_then(|started| {
        let channel = channel::open(started.channel, Side::First, core)?;
        Ok((started.memory, channel))
    });
    peer.state = match opened {
        Ok((memory, channel)) => {
            (peer.memory, peer.channel) = (memory, Some(channel));
            State::Starting
        }
        Err(Refusal::OutOfMemory) => State::NoMemory,
        Err(_) => State::Refused,
    };
    peer
}
