//! Requests of local programs and of other monitors.
//!
//! The main thread waits for everything at once: requests at the monitor's endpoint; the doorbell, which the other
//! monitors notify when they have written something and this one has announced that it sleeps; and the signal of its
//! own other threads. It waits for no server: workers call servers. (On the first core it writes to the console, which
//! calls nobody.)

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
use tench_mem_interface::Mem;
use tench_monitor::cores::boot::BLOCK_BITS;
use tench_monitor::cores::portions::Portions;
use tench_monitor::cores::share::divide;
use tench_monitor::message::operation;
use tench_monitor::transfer::proxies;
use tench_monitor::work::remote_request::RemoteRequest;
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::{Error, State};
use tench_names_interface::Names;
use tench_protocol::{Event, Later, Pending, Port, again};
use tench_sys::thread::{Binding, Bindings};
use tench_sys::{
    Cap, CapAddress, Endpoint, Error as KernelError, Frame, Instant, InterruptControl, Kernel, Kind, Machine,
    Notification, OWN_CSPACE, Rights, Thread, Trigger, Wait,
};
use tench_system::{ARCHIVE_PATH, Program, System};

use crate::cores::channel::{self, LINE};
use crate::cores::links::Links;
use crate::cores::liveness::LivenessTimer;
use crate::cores::peer::{Peer, Seen};
use crate::cores::start::Starter;
use crate::kernel::{GROWTH, KERNEL};
use crate::slots::discard;
use crate::transfer::capabilities::{self, Ledger, Rounds};
use crate::transfer::endpoints::Endpoints;
use crate::transfer::signals::Signals;
use crate::transfer::tasks::Dispatcher;
use crate::work::dispatcher::{Origin, Requester};
use crate::work::forward::Inbox;
use crate::work::processes;
use crate::work::services::Services;
use crate::{Result, no_memory};

/// The name server, as the system description calls it.
const NAMES: &str = "names";
/// Signal of the doorbell.
const DOORBELL: u64 = 1;
/// Signal of the other threads.
const WAKE: u64 = 1 << 1;
/// Signal of the liveness timer.
const REMIND: u64 = 1 << 2;
/// Signals that are not proxies of other cores' notifications.
const OWN: u64 = (1 << proxies::FIRST_BIT) - 1;
/// Frequency in Hz of checking work that is being cancelled.
const LOOKS: u64 = 1000;
/// Frequency in Hz of trying again to send a channel.
const LINKS: u64 = 10;

/// The server's state.
pub struct Server {
    machine: Machine,
    peers: Vec<Peer>,
    /// The dispatcher of slow work.
    dispatcher: Dispatcher,
    /// Limits on the time that other cores use here.
    portions: Portions,
    /// Time at which a core whose messages are not read for lack of time has some again.
    put_off: Option<Instant>,
    /// Requests of local programs to other cores, and of other cores to endpoints here.
    endpoints: Endpoints,
    /// Ledger of capabilities that left their core.
    ledger: Ledger,
    rounds: Rounds,
    /// Set if there was nothing to do for the ledger at the last check. That is still so unless its dirty flag is set.
    is_ledger_quiet: bool,
    /// Channels between further cores; unused on a further core.
    links: Links,
    /// Requesters of memory for whom no worker was free.
    refused: Vec<Requester>,
    /// Memory that was given to another core and has come back.
    returned: Vec<u64>,
    /// Tells which reply objects still hold a waiting thread.
    watch: Watch,
    liveness_timer: LivenessTimer,
    /// Slot of a capability that is sent with a reply.
    outgoing: CapAddress,
    /// Set if a signal may have been lost since the last receive.
    may_have_missed: bool,
    /// Set if the channels may have messages to read.
    is_notified: bool,
    /// Set if a core may not have replied since it was started.
    is_starting: bool,
    /// Set if other threads have signalled since their results were checked.
    is_woken: bool,
}

impl Server {
    /// Starts all other cores, if this is the first; otherwise opens the channel to the first.
    pub fn new() -> Result<Server> {
        memory::serve_without_faults(GROWTH).map_err(no_memory)?;
        let machine = Cap::<Kernel>::new(slot::KERNEL).machine()?;
        let [main, wake, remind] = listen()?;
        let files = Files::open(machine.core)?;
        let system = description(&files.archive).ok_or(KernelError::InvalidArgument)?;
        let absent = servers(&system, Program::is_absent_elsewhere);
        let is_first = machine.core == 0;
        let (own, absent) = if is_first { ((None, Vec::new()), absent) } else { (own(&system, &absent), Vec::new()) };
        let services = Arc::new(Services::new(absent));
        services.find_all();
        let watch = Watch::new().map_err(no_memory)?;
        let liveness_timer = LivenessTimer::new(remind).map_err(no_memory)?;
        let (inbox, signals) = (Inbox::new(watch, own, wake), Signals::new(main, wake)?);
        let endpoints = Endpoints::open(machine.core, inbox, Arc::clone(&services), signals)?;
        let dispatcher = Dispatcher::new(machine.core, services, wake)?;
        let ledger = capabilities::open(machine.core, machine.cores).ok_or(KernelError::NoSuchCore)?;
        let mut server = Server {
            machine,
            peers: Vec::new(),
            dispatcher,
            portions: Portions::new(tench::time::frequency(), Instant::now().ticks(), idle()),
            put_off: None,
            endpoints,
            ledger,
            rounds: Rounds::new(),
            is_ledger_quiet: false,
            links: Links::new(),
            refused: Vec::new(),
            returned: Vec::new(),
            watch,
            liveness_timer,
            outgoing: memory::take_slot().map_err(no_memory)?,
            may_have_missed: false,
            is_notified: true,
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

    /// Registers the monitor without a badge, so that each process that looks it up gets its own.
    fn register(&self) -> Result<()> {
        let slot = memory::take_slot().map_err(no_memory)?;
        let public =
            Cap::<Endpoint>::new(slot::SERVICE).mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, 0)?;
        again(|| Names::STANDARD.register(Monitor::NAME, public)).map_err(|_| KernelError::Aborted)
    }

    /// Starts the other cores. A core that cannot be started is reported, and the others go on.
    fn start_others(&mut self, files: &Files, system: &System<'_>) -> Result<()> {
        let starter = Starter::new(self.machine, &files.archive, files.range)?;
        let free = Mem::STANDARD.totals().map_err(no_memory)?.free;
        let shares = divide(free, self.machine.cores, 1 << BLOCK_BITS, system.shares());
        for (core, share) in (1..self.machine.cores).zip(shares.into_iter().skip(1)) {
            let peer = start_one(&starter, core, share);
            if !matches!(peer.state, State::Starting) {
                println!("monitor: core {core} was not started: {}", peer.state);
            }
            match (capabilities::core(core), &peer.channel) {
                (Some(core), Some(_)) => self.ledger.connect(core),
                (Some(core), None) => self.ledger.lose(core),
                (None, _) => {}
            }
            self.peers.push(peer);
        }
        Ok(())
    }

    /// Opens the channel to the first core, in the frame that this one was started with, and announces that it runs.
    /// From now on, programs here find the servers that run there.
    fn connect(&mut self) -> Result<()> {
        let mut channel = channel::open(first_frame(slot::EXTRA)?, Side::Second, 0)?;
        channel.event(operation::HELLO, &[]).map_err(|_| KernelError::Aborted)?;
        let mut first = Peer::new(0);
        (first.channel, first.state) = (Some(channel), State::Running);
        self.peers.push(first);
        capabilities::core(0).into_iter().for_each(|core| self.ledger.connect(core));
        self.endpoints.register(Monitor::NAME, tench::process::id(), Cap::new(slot::SERVICE))?;
        (0..)
            .zip(processes::endpoints().skip(1))
            .try_for_each(|(service, endpoint)| self.endpoints.receive_for(service, endpoint))
    }

    /// Serves requests for ever.
    ///
    /// While this monitor sleeps the others know it, and notify the doorbell after a write. The channels are read when
    /// the signal has come, and only then do the others learn that this monitor is awake; other events are handled
    /// without reading the channels. No message is missed: a monitor that has not notified it in this sleep does so
    /// with its next write. If it has, the signal stays until it is received, and then everything is read that was
    /// written before the next sleep begins ([`may_sleep`](Self::may_sleep) checks once more). A signal that may have
    /// been lost counts as received.
    pub fn serve(&mut self) -> ! {
        let mut port: Port = tench::server::port(1, 2);
        loop {
            if core::mem::take(&mut self.is_notified) {
                self.take_in(&mut port);
            }
            let is_quiet = self.pass_on(&mut port);
            self.is_notified |= !self.may_sleep();
            let wait = match (self.is_notified, is_quiet && self.put_off.is_none()) {
                (true, _) => Wait::alarm(Instant::now()),
                (false, true) => Wait::FOREVER,
                (false, false) => self.deadline(),
            };
            match port.next(wait) {
                Event::Request => {
                    port.carry_out(|request, context, reply| Monitor::dispatch(self, request, context, reply));
                    if core::mem::take(&mut self.may_have_missed) {
                        self.make_up_for_missed();
                    }
                }
                Event::Signal(bits) => {
                    self.is_notified |= bits & DOORBELL != 0;
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
            // Nobody notifies for messages that are there already.
            self.is_notified |= self.put_off.is_some_and(|time| time <= Instant::now());
        }
    }

    /// Reads the messages of those other monitors that have not used up [their time](tench_monitor::cores::portions).
    fn take_in(&mut self, port: &mut Port) {
        self.put_off = None;
        for peer in &mut self.peers {
            if !self.portions.has(peer.core) {
                self.portions.refill(Instant::now().ticks(), idle());
            }
            if put_off(&self.portions, peer.core, &mut self.put_off) {
                continue;
            }
            // Its replies, and its events about capabilities, are for this core as much as for that one.
            let took = peer.take_in(&mut self.dispatcher, &mut self.endpoints, &mut self.ledger, port);
            if took > 0 {
                self.portions.charge(peer.core, took);
            }
        }
    }

    /// Handles the results of messages, of local programs' requests, and of other threads. Returns whether none of it
    /// has a time at which it has to be checked again.
    fn pass_on(&mut self, port: &mut Port) -> bool {
        let is_woken = core::mem::take(&mut self.is_woken);
        while is_woken
            && let Some((origin, product)) = self.dispatcher.finished(|core, ticks| self.portions.charge(core, ticks))
        {
            if let Origin::Peer(core, number) = origin {
                let peer = self.peers.iter_mut().find(|peer| peer.core == core && peer.channel.is_some());
                match peer {
                    Some(peer) => {
                        let words = self.endpoints.reply(core, number, product);
                        words.iter().for_each(|words| peer.reply(number, words));
                    }
                    None => discard(&product.caps),
                }
                continue;
            }
            let words = product.words;
            match origin {
                Origin::Nobody | Origin::Peer(..) => {}
                Origin::Guest(core, number, badge) => self.admitted(core, number, badge, &words),
                Origin::Errand(errand) => self.run(errand, &words, port),
                Origin::Own(work) => self.worked(work, &words, port),
                Origin::Here(requester) => requester.finish(port, &words),
            }
        }
        if self.dispatcher.is_waiting() {
            self.dispatcher.resume();
        }
        if is_woken {
            self.endpoints.hear_others();
        }
        if self.endpoints.has_signals() {
            self.say_signals();
        }
        if is_woken {
            self.forward();
            self.send_attachments();
        }
        let is_quiet = self.exchange(port) && !self.is_starting && !self.dispatcher.is_waiting();
        if self.endpoints.is_quiet() {
            return is_quiet;
        }
        self.look_after_endpoints();
        false
    }

    /// Forwards requests of local programs to servers and endpoints of other cores.
    fn forward(&mut self) {
        while let Some((core, waiting, words)) = self.endpoints.next() {
            match self.peers.iter_mut().find(|peer| peer.core == core) {
                Some(peer) => peer.forward(waiting, words, &mut self.endpoints),
                None => self.endpoints.refuse(waiting),
            }
        }
    }

    /// Sends local signals to notifications of other cores.
    #[inline(never)]
    fn say_signals(&mut self) {
        self.peers.iter_mut().for_each(|peer| peer.signal(&mut self.endpoints));
    }

    /// Removes unused proxies, and copies held for other cores that no longer need them.
    #[inline(never)]
    fn look_after_endpoints(&mut self) {
        self.endpoints.look();
        if self.endpoints.took_others() {
            self.make_up_for_missed();
        }
        // These are signals that were found when proxies were removed.
        self.say_signals();
        while let Some(process) = self.endpoints.parted() {
            if !self.dispatcher.forget(process) {
                self.endpoints.put_back(process);
                break;
            }
        }
        if self.endpoints.has_releases() {
            self.peers.iter_mut().for_each(|peer| peer.release(&mut self.endpoints, &self.ledger));
        }
    }

    /// Announces to the other monitors that this one is about to sleep, unless they know. Returns false if something
    /// has arrived meanwhile.
    fn may_sleep(&mut self) -> bool {
        let (mut may, mut waits) = (true, self.rounds.await_any());
        for peer in &mut self.peers {
            // A core whose messages are not read need not notify: they are read when it has time again.
            may &= put_off(&self.portions, peer.core, &mut self.put_off) || peer.may_sleep();
            waits |= peer.is_waited_for();
        }
        if waits {
            self.liveness_timer.arm();
        }
        may
    }

    /// Checks that the awaited cores still run.
    fn look(&mut self, port: &mut Port) {
        self.liveness_timer.was_reminded();
        for peer in &mut self.peers {
            let is_awaited = self.rounds.await_it(peer.core);
            // The channel of a stopped core is closed when the ledger is next handled.
            if let Seen::Silent = peer.look(self.watch, is_awaited, &mut self.endpoints, &mut self.ledger, port)
                && self.machine.core == 0
            {
                println!("monitor: core {} does not reply any more", peer.core);
            }
        }
        self.make_up_for_missed();
    }

    /// Handles what signals would have reported that may have been lost in a check for waiting threads.
    fn make_up_for_missed(&mut self) {
        self.liveness_timer.was_reminded();
        self.endpoints.hear();
        (self.is_notified, self.is_woken) = (true, true);
    }

    /// Returns how long to wait: until a started core has to have replied, or cancelled work is checked again.
    fn deadline(&mut self) -> Wait {
        self.is_starting = self.peers.iter().any(|peer| matches!(peer.state, State::Starting));
        let waiting = self.peers.iter().filter(|peer| matches!(peer.state, State::Starting));
        let soon = || Instant::now().after(tench::time::frequency() / LOOKS);
        let look = (self.dispatcher.is_waiting() || self.ledger.has_deletions()).then(soon);
        let is_linking = self.links.waiting() > 0;
        let link = is_linking.then(|| Instant::now().after(tench::time::frequency() / LINKS));
        let own = self.rounds.deadline().into_iter().chain(self.endpoints.deadline()).chain(self.put_off);
        let all = waiting.map(|peer| peer.patience()).chain(look).chain(link).chain(own);
        all.min().map_or(Wait::FOREVER, Wait::alarm)
    }

    /// Gives up cores that did not reply in time.
    fn expire(&mut self) {
        let now = Instant::now();
        for peer in &mut self.peers {
            if matches!(peer.state, State::Starting) && peer.patience() <= now {
                peer.state = State::Silent;
                if capabilities::core(peer.core).is_some_and(|core| self.ledger.stop(core)) {
                    continue;
                }
                println!("monitor: core {} was started, but does not reply", peer.core);
            }
        }
    }

    fn peer(&mut self, core: u64) -> core::result::Result<Option<&mut Peer>, Error> {
        if core >= self.machine.cores {
            return Err(Error::NoSuchCore);
        }
        Ok(self.peers.iter_mut().find(|peer| peer.core == core))
    }

    /// Requests an operation on processes of a core, for a local process, which is kept until it is done. If too many
    /// wait, those that have given up are removed.
    fn ask<T>(
        &mut self,
        request: RemoteRequest,
        mut later: Later<'_, T, Error>,
        kept: fn(Pending<T, Error>) -> Requester,
    ) -> core::result::Result<Option<T>, Error> {
        let core = request.core();
        if request.requester == Client::AUTHORITY {
            return Err(Error::NotAllowed);
        }
        self.reach(core)?;
        if request.operation.waits() && !self.may_wait(core, request.requester) {
            let (watch, replies) = (self.watch, later.others());
            self.may_have_missed = true;
            self.dispatcher.sweep(watch, replies);
            self.peers.iter_mut().filter(|peer| peer.core == core).for_each(|peer| peer.sweep(watch, replies));
        }
        let keep = || later.keep().map(kept);
        if core == self.machine.core {
            self.dispatcher.ask_here(processes::Task::Do(request), || keep().map(Origin::Here))?;
        } else {
            self.peer(core)?.ok_or(Error::NotConnected)?.ask(&request, keep)?;
        }
        Ok(None)
    }

    /// Returns whether one more thread may wait for the end of a process.
    fn may_wait(&self, core: u64, requester: Client) -> bool {
        let peer = self.peers.iter().find(|peer| peer.core == core);
        peer.map_or_else(|| self.dispatcher.may_wait(requester), |peer| peer.may_wait(requester))
    }
}

/// Returns whether a core's messages are not read, since it has used up its time. If so, lowers `until` to the time at
/// which it has some again.
fn put_off(portions: &Portions, core: u64, until: &mut Option<Instant>) -> bool {
    if portions.has(core) {
        return false;
    }
    let again = Instant::now().after(portions.wait(core));
    *until = Some(until.map_or(again, |first| first.min(again)));
    true
}

/// Returns the ticks in which this core was idle.
fn idle() -> u64 {
    Cap::<Kernel>::new(slot::KERNEL).query(Statistic::IdleTicks).unwrap_or(0)
}

/// The boot archive.
struct Files {
    archive: Archive<'static>,
    /// Physical address and size.
    range: (u64, u64),
}

impl Files {
    /// Maps the archive. On a further core its frames follow that of the channel.
    fn open(core: u64) -> Result<Files> {
        let first = if core == 0 { slot::EXTRA } else { CapAddress(slot::EXTRA.0 + 1) };
        let mut random = Randomness::new(Default::default());
        let (shown, archive) = tench_boot::map(first, &mut random).map_err(no_memory)?;
        Ok(Files { archive, range: (first_frame(first)?.locate(KERNEL)?.address, shown.size()) })
    }
}

/// Returns the system description.
fn description(archive: &Archive<'static>) -> Option<System<'static>> {
    System::parse(archive.find(ARCHIVE_PATH)?.contents).ok()
}

/// Returns the names of the servers for which `are` holds.
fn servers(system: &System<'static>, are: fn(&Program<'static>) -> bool) -> Vec<&'static str> {
    system.programs().filter(are).map(|program| program.name).collect()
}

/// Returns the names that are local to a further core, and the name server's number. `absent` are the servers that run
/// on the first core only.
fn own(system: &System<'static>, absent: &[&str]) -> (Option<u64>, Vec<&'static str>) {
    let names = absent.iter().position(|name| *name == NAMES).map(|number| number as u64);
    let mut own = servers(system, Program::is_on_each_core);
    if !own.contains(&Monitor::NAME) {
        // The description may call the monitor anything: each core has one.
        own.push(Monitor::NAME);
    }
    (names, own)
}

/// Binds the doorbell's line to the main thread. Returns the notification that is bound to the thread, the one that
/// wakes it otherwise, and the liveness timer's.
fn listen() -> Result<[Cap<Notification>; 3]> {
    let slot = memory::take_slot().map_err(no_memory)?;
    let line = Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL).get(LINE, Trigger::Doorbell, slot)?;
    let notification = memory::make::<Notification>(0).map_err(no_memory)?.leak();
    let bindings = Bindings { notification: Binding::To(notification), ..Bindings::KEEP };
    Cap::<Thread>::new(slot::THREAD).bind(bindings)?;
    line.bind(Some(notification))?;
    let mint = |badge| notification.mint_to(memory::take_slot().map_err(no_memory)?, Rights::WRITE, badge);
    Ok([notification, mint(WAKE)?, mint(REMIND)?])
}

/// Returns the frame in one of the slots for extra capabilities.
fn first_frame(slot: CapAddress) -> Result<Cap<Frame>> {
    let is_frame = OWN_CSPACE.identify_at(slot)?.kind == Kind::Frame;
    if is_frame { Ok(Cap::new(slot)) } else { Err(KernelError::InvalidCapability) }
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
        Err(KernelError::OutOfMemory) => State::NoMemory,
        Err(_) => State::Refused,
    };
    peer
}
