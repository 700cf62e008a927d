//! The main thread, which handles requests of local programs and passes everything else to the layers below.
//!
//! The main thread waits for everything at once: requests at the monitor's endpoint; the doorbell, which the other
//! monitors notify when they have written something and this one has announced that it sleeps; and the signal of its
//! own other threads. It waits for no server: workers call servers. (On the first core it writes to the console, which
//! calls nobody.)

mod interface;
mod requests;

use alloc::sync::Arc;
use alloc::vec::Vec;

use tench::memory;
use tench::server::Watch;
use tench_abi::layout::slot;
use tench_monitor::transfer::proxies;
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::Error;
use tench_names_interface::Names;
use tench_protocol::{Event, Port, again};
use tench_sys::thread::{Binding, Bindings};
use tench_sys::{
    Cap, CapAddress, Endpoint, Error as KernelError, Instant, InterruptControl, Machine, Notification, Rights, Thread,
    Trigger, Wait,
};
use tench_system::Program;

use crate::cores::channel::LINE;
use crate::cores::peers::Peers;
use crate::cores::start::Files;
use crate::kernel::{GROWTH, KERNEL};
use crate::requests::dispatcher::{Origin, Requester, refusal};
use crate::requests::forward::Inbox;
use crate::requests::local::{own_names, servers};
use crate::requests::processes;
use crate::requests::services::Services;
use crate::slots::discard;
use crate::transfer::home::Home;
use crate::transfer::signals::Signals;
use crate::{Result, no_memory};

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

/// The server's state.
pub struct Server {
    machine: Machine,
    peers: Peers,
    home: Home,
    /// Requesters of memory for whom no worker was free.
    refused: Vec<Requester>,
    /// Tells which reply objects still hold a waiting thread.
    watch: Watch,
    /// Slot of a capability that is sent with a reply.
    outgoing: CapAddress,
    /// Set if a signal may have been lost since the last receive.
    may_have_missed: bool,
}

impl Server {
    /// Starts all other cores, if this is the first; otherwise opens the channel to the first.
    pub fn new() -> Result<Server> {
        memory::serve_without_faults(GROWTH).map_err(no_memory)?;
        let machine = KERNEL.machine()?;
        let [main, wake, remind] = listen()?;
        let files = Files::open(machine.core)?;
        let system = files.system().ok_or(KernelError::InvalidArgument)?;
        let absent = servers(&system, Program::is_absent_elsewhere);
        let is_first = machine.core == 0;
        let (own, absent) =
            if is_first { ((None, Vec::new()), absent) } else { (own_names(&system, &absent), Vec::new()) };
        let services = Arc::new(Services::new(absent));
        services.find_all();
        let watch = Watch::new().map_err(no_memory)?;
        let peers = Peers::new(machine, watch, remind)?;
        let (inbox, signals) = (Inbox::new(watch, own, wake), Signals::new(main, wake)?);
        let home = Home::new(&machine, inbox, services, signals, wake)?;
        let outgoing = memory::take_slot().map_err(no_memory)?;
        let mut server = Server { machine, peers, home, refused: Vec::new(), watch, outgoing, may_have_missed: false };
        if is_first {
            server.peers.start(&files, &system, &mut server.home.ledger)?;
            register()?;
        } else {
            server.peers.connect(&mut server.home.ledger)?;
            server.stand_in()?;
        }
        Ok(server)
    }

    /// Starts receiving in place of the servers that run on the first core only: from now on, programs here find them.
    fn stand_in(&self) -> Result<()> {
        let endpoints = &self.home.endpoints;
        endpoints.register(Monitor::NAME, tench::process::id(), Cap::new(slot::SERVICE))?;
        (0..)
            .zip(processes::endpoints().skip(1))
            .try_for_each(|(service, endpoint)| endpoints.receive_for(service, endpoint))
    }

    /// Serves requests for ever.
    ///
    /// While this monitor sleeps the others know it, and notify the doorbell after a write. The channels are read when
    /// the signal has come, and only then do the others learn that this monitor is awake; other events are handled
    /// without reading the channels. No message is missed: a monitor that has not notified it in this sleep does so
    /// with its next write. If it has, the signal stays until it is received, and then everything is read that was
    /// written before the next sleep begins ([`may_sleep`](Peers::may_sleep) checks once more). A signal that may have
    /// been lost counts as received.
    pub fn serve(&mut self) -> ! {
        let mut port: Port = tench::server::port(1, 2);
        loop {
            if core::mem::take(&mut self.peers.is_notified) {
                self.peers.take_in(&mut self.home, &mut port);
            }
            let is_quiet = self.pass_on(&mut port);
            self.peers.is_notified |= !self.peers.may_sleep(&self.home);
            let wait = match (self.peers.is_notified, is_quiet && self.peers.put_off().is_none()) {
                (true, _) => Wait::alarm(Instant::now()),
                (false, true) => Wait::FOREVER,
                (false, false) => self.deadline(),
            };
            match port.next(wait) {
                Event::Request => {
                    port.carry_out(|request, context, reply| Monitor::dispatch(self, request, context, reply));
                    if core::mem::take(&mut self.may_have_missed) {
                        self.peers.make_up_for_missed(&mut self.home);
                    }
                }
                Event::Signal(bits) => {
                    self.peers.is_notified |= bits & DOORBELL != 0;
                    self.peers.is_woken |= bits & WAKE != 0;
                    if bits & REMIND != 0 {
                        self.peers.look(&mut self.home, &mut port);
                    }
                    if bits & !OWN != 0 {
                        self.home.endpoints.signalled(bits);
                    }
                }
                Event::Nothing => self.peers.expire(&mut self.home),
            }
            // Nobody notifies for messages that are there already.
            self.peers.is_notified |= self.peers.put_off().is_some_and(|time| time <= Instant::now());
        }
    }

    /// Handles the results of messages, of local programs' requests, and of other threads. Returns whether nothing has
    /// to be checked again at some time.
    fn pass_on(&mut self, port: &mut Port) -> bool {
        let is_woken = core::mem::take(&mut self.peers.is_woken);
        if is_woken {
            self.finish_work(port);
        }
        let (peers, home) = (&mut self.peers, &mut self.home);
        if home.dispatcher.is_waiting() {
            home.dispatcher.resume();
        }
        if is_woken {
            home.endpoints.hear_others();
        }
        if home.endpoints.has_signals() {
            peers.say_signals(home);
        }
        if is_woken {
            peers.forward(home);
            peers.send_attachments(home);
        }
        if !self.refused.is_empty() {
            self.refused.drain(..).for_each(|requester| port.finish_waiter(requester, &refusal(Error::Full)));
        }
        let is_quiet = peers.exchange(home, port) && !peers.is_starting() && !home.dispatcher.is_waiting();
        if home.endpoints.is_quiet() {
            return is_quiet;
        }
        peers.look_after_endpoints(home);
        false
    }

    /// Handles the results of workers.
    fn finish_work(&mut self, port: &mut Port) {
        let (peers, home) = (&mut self.peers, &mut self.home);
        while let Some((origin, product)) = home.dispatcher.finished(|core, ticks| peers.charge(core, ticks)) {
            let words = &product.words;
            match origin {
                Origin::Peer(core, number) => match peers.get(core).filter(|peer| peer.channel.is_some()) {
                    Some(peer) => {
                        let words = home.endpoints.reply(core, number, product);
                        words.iter().for_each(|words| peer.reply(number, words));
                    }
                    None => discard(&product.caps),
                },
                Origin::Nobody => {}
                Origin::Guest(core, number, badge) => peers.admitted(core, number, badge, words, home),
                Origin::Processes(request) => peers.request_processes(request, words, home, port),
                Origin::Own(work) => peers.worked(work, words, home, port),
                Origin::Here(requester) => port.finish_waiter(requester, words),
            }
        }
    }

    /// Returns how long to wait: until a started core must have replied, or cancelled work is checked again.
    fn deadline(&mut self) -> Wait {
        let home = &self.home;
        let soon = || Instant::now().after(tench::time::frequency() / LOOKS);
        let look = (home.dispatcher.is_waiting() || home.ledger.has_deletions()).then(soon);
        let own = home.rounds.deadline().into_iter().chain(home.endpoints.deadline()).chain(look);
        self.peers.deadline().chain(own).min().map_or(Wait::FOREVER, Wait::alarm)
    }
}

/// Registers the monitor without a badge, so that each process that looks it up gets its own.
fn register() -> Result<()> {
    let slot = memory::take_slot().map_err(no_memory)?;
    let public = Cap::<Endpoint>::new(slot::SERVICE).mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, 0)?;
    again(|| Names::STANDARD.register(Monitor::NAME, public)).map_err(|_| KernelError::Aborted)
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
