//! All other cores: when their messages are read, and which of them still run.

mod channels;
mod exchange;
mod memory;
mod processes;

use alloc::vec::Vec;

use tench::println;
use tench::server::Watch;
use tench_abi::object::Statistic;
use tench_monitor::cores::portions::Portions;
use tench_monitor_interface::protocol::{Error, State};
use tench_protocol::Port;
use tench_sys::{Cap, Instant, Machine, Notification};

use crate::cores::links::Links;
use crate::cores::liveness::LivenessTimer;
use crate::cores::peer::{Peer, Seen};
use crate::kernel::KERNEL;
use crate::transfer::capabilities;
use crate::transfer::home::Home;
use crate::{Result, no_memory};

/// Frequency in Hz of trying again to send a channel.
const LINKS: u64 = 10;

/// The other cores.
pub struct Peers {
    machine: Machine,
    all: Vec<Peer>,
    /// Limits on the time that other cores use here.
    portions: Portions,
    /// Time at which a core whose messages are not read for lack of time has some again.
    put_off: Option<Instant>,
    /// Channels between further cores; unused on a further core.
    links: Links,
    /// Addresses of memory that was given to another core and has come back.
    returned: Vec<u64>,
    /// Tells which reply objects still hold a waiting thread.
    watch: Watch,
    liveness_timer: LivenessTimer,
    /// Set if a core may not have replied since it was started.
    is_starting: bool,
    /// Set if there was nothing to do for the ledger at the last check. That is still so unless its dirty flag is set.
    is_ledger_quiet: bool,
    /// Set if the channels may have messages to read.
    pub is_notified: bool,
    /// Set if other threads have signalled since their results were checked.
    pub is_woken: bool,
}

impl Peers {
    /// Returns the state before any other core is known. The liveness timer signals `remind`.
    pub fn new(machine: Machine, watch: Watch, remind: Cap<Notification>) -> Result<Peers> {
        Ok(Peers {
            machine,
            all: Vec::new(),
            portions: Portions::new(tench::time::frequency(), Instant::now().ticks(), idle()),
            put_off: None,
            links: Links::new(),
            returned: Vec::new(),
            watch,
            liveness_timer: LivenessTimer::new(remind).map_err(no_memory)?,
            is_starting: true,
            is_ledger_quiet: false,
            is_notified: true,
            is_woken: false,
        })
    }

    /// Returns a core, if anything is known of it.
    pub fn get(&mut self, core: u64) -> Option<&mut Peer> {
        self.all.iter_mut().find(|peer| peer.core == core)
    }

    /// Returns a core, if anything is known of it. Fails with `NoSuchCore` if the machine has no core of this number.
    pub fn existing(&mut self, core: u64) -> core::result::Result<Option<&mut Peer>, Error> {
        if core >= self.machine.cores { Err(Error::NoSuchCore) } else { Ok(self.get(core)) }
    }

    /// Reads the messages of the cores that have not used up [their time](tench_monitor::cores::portions).
    pub fn take_in(&mut self, home: &mut Home, port: &mut Port) {
        self.put_off = None;
        for peer in &mut self.all {
            if !self.portions.has(peer.core) {
                self.portions.refill(Instant::now().ticks(), idle());
            }
            if put_off(&self.portions, peer.core, &mut self.put_off) {
                continue;
            }
            // Only requests are charged: replies and events about capabilities serve this core as much as the other.
            let took = peer.take_in(home, port);
            if took > 0 {
                self.portions.charge(peer.core, took);
            }
        }
    }

    /// Charges the time of a worker to the core for which it worked.
    pub fn charge(&mut self, core: u64, ticks: u64) {
        self.portions.charge(core, ticks);
    }

    /// Forwards requests of local programs to servers and endpoints of other cores.
    pub fn forward(&mut self, home: &mut Home) {
        let (watch, mut searched) = (self.watch, None);
        while let Some((core, waiting, words)) = home.endpoints.next() {
            let Some(peer) = self.get(core) else {
                home.endpoints.not_sent(core, &words);
                home.endpoints.refuse(waiting);
                continue;
            };
            // The search takes long, and finds nothing if it was made just now.
            if waiting.waits && searched != Some(core) && !peer.may_wait(waiting.requester) {
                peer.cancel_gone(watch);
                searched = Some(core);
            }
            peer.forward(waiting, words, &mut home.endpoints);
        }
        if searched.is_some() {
            self.make_up_for_missed(home);
        }
    }

    /// Sends local signals to notifications of other cores.
    #[inline(never)]
    pub fn say_signals(&mut self, home: &mut Home) {
        self.all.iter_mut().for_each(|peer| peer.signal(&mut home.endpoints));
    }

    /// Removes unused proxies, and copies held for other cores that no longer need them.
    #[inline(never)]
    pub fn look_after_endpoints(&mut self, home: &mut Home) {
        home.endpoints.look();
        if home.endpoints.took_others() {
            self.make_up_for_missed(home);
        }
        // These are signals that were found when proxies were removed.
        self.say_signals(home);
        home.report_parted();
        if home.endpoints.has_releases() {
            self.all.iter_mut().for_each(|peer| peer.release(&mut home.endpoints, &home.ledger));
        }
    }

    /// Announces to the other monitors that this one is about to sleep, unless they know. Returns false if something
    /// has arrived meanwhile.
    pub fn may_sleep(&mut self, home: &Home) -> bool {
        let (mut may, mut waits) = (true, home.rounds.await_any());
        for peer in &mut self.all {
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
    pub fn look(&mut self, home: &mut Home, port: &mut Port) {
        for peer in &mut self.all {
            // The channel of a stopped core is closed when the ledger is next handled.
            if let Seen::Silent = peer.look(self.watch, home, port)
                && self.machine.core == 0
            {
                println!("monitor: core {} does not reply any more", peer.core);
            }
        }
        self.make_up_for_missed(home);
    }

    /// Handles everything that a signal may have reported, since a check for waiting threads can lose signals.
    pub fn make_up_for_missed(&mut self, home: &mut Home) {
        self.liveness_timer.was_reminded();
        home.endpoints.hear();
        (self.is_notified, self.is_woken) = (true, true);
    }

    /// Returns whether a core may not have replied since it was started.
    pub const fn is_starting(&self) -> bool {
        self.is_starting
    }

    /// Returns the time at which a core that has used up its time has some again, so that its messages are read.
    pub const fn put_off(&self) -> Option<Instant> {
        self.put_off
    }

    /// Returns the times at which a started core must have replied, a channel is sent again, or messages are read.
    pub fn deadline(&mut self) -> impl Iterator<Item = Instant> + '_ {
        self.is_starting = self.all.iter().any(|peer| matches!(peer.state, State::Starting));
        let starting = self.all.iter().filter(|peer| matches!(peer.state, State::Starting)).map(Peer::patience);
        let is_linking = self.links.waiting() > 0;
        let link = is_linking.then(|| Instant::now().after(tench::time::frequency() / LINKS));
        starting.chain(link).chain(self.put_off)
    }

    /// Gives up cores that did not reply in time.
    pub fn expire(&mut self, home: &mut Home) {
        let now = Instant::now();
        for peer in &mut self.all {
            if matches!(peer.state, State::Starting) && peer.patience() <= now {
                peer.state = State::Silent;
                if capabilities::core(peer.core).is_some_and(|core| home.ledger.stop(core)) {
                    continue;
                }
                println!("monitor: core {} was started, but does not reply", peer.core);
            }
        }
    }
}

/// Returns whether a core has used up its time, so that its messages are not read. If so, lowers `until` to the time at
/// which the core has some again.
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
    KERNEL.query(Statistic::IdleTicks).unwrap_or(0)
}
