//! Another core, as this monitor sees it: its state, the requests sent to it, and the requests from it.

mod asked;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench::server::Watch;
use tench_channel::{Incoming, Refused, Request as Number};
use tench_monitor::message::line::{Growth, operation as exchange};
use tench_monitor::message::{Event, Words, operation};
use tench_monitor_interface::protocol::{Error, State};
use tench_protocol::Port;
use tench_quota::{Client, Quota};
use tench_sys::Instant;

use crate::cores::channel::{Channel, IN_FLIGHT};
use crate::kernel::is_off;
use crate::requests::dispatcher::Requester;
use crate::requests::forward::{Charge, LIMIT, OWN_LIMIT, Waiting};
use crate::transfer::capabilities::{self, Ledger, TransferRequest};
use crate::transfer::endpoints::Endpoints;
use crate::transfer::home::Home;
pub use asked::Asked;
use asked::{Table, carry_out};

/// Seconds within which a started core has to reply.
const PATIENCE: u64 = 10;
/// Maximum number of requests to a core that [wait](crate::requests::processes::waits).
const MAX_WAITS: usize = 16;

// The channel has room for everything that may take for ever, and for some requests that do not.
const _: () = assert!(LIMIT + MAX_WAITS + (OWN_LIMIT as usize) < IN_FLIGHT as usize);

/// Number of reminders after which an awaited core that has sent nothing counts as silent: ten seconds.
const REMINDERS: u32 = 5;

/// Maximum number of messages that are handled before another peer has its turn.
const BATCH: usize = 64;

/// Finding about an awaited core.
pub enum Seen {
    /// No change.
    Nothing,
    /// The core is silent from now on.
    Silent,
    /// The core has stopped, and the ledger knows that.
    Stopped,
}

/// Another core.
pub struct Peer {
    pub core: u64,
    pub state: State,
    /// Bytes of memory that the core was given.
    pub memory: u64,
    /// Ticks from its start to its first message; 0 before that.
    pub start: u64,
    /// The channel to its monitor, unless it is closed.
    pub channel: Option<Channel>,
    started: Instant,
    /// Set if the core has sent anything since the last reminder; `silence` counts the reminders without.
    heard: bool,
    silence: u32,
    asked: Table,
    /// Quota of waits for ends of its processes.
    quota: Quota,
    /// Replies for which the channel had no room yet.
    unsent: VecDeque<(Number, Words)>,
    /// Requests of local programs for which the channel had no room yet.
    unasked: VecDeque<(Waiting, Words)>,
    /// Set if something else could not be sent for lack of room.
    waits_for_capacity: bool,
    /// Set if the core knows that this side sleeps, and so notifies the doorbell when it writes.
    knows: bool,
    /// Requests that wait for the channel, if that was requested.
    parked: Option<Vec<Parked>>,
}

/// A request that waits for a channel: its operation, its words, and its entry in the [table](Table) once it is sent.
type Parked = (u16, Words, Asked);

impl Peer {
    /// Returns a core of which nothing is known.
    pub fn new(core: u64) -> Peer {
        Peer {
            core,
            state: State::Unconnected,
            memory: 0,
            start: 0,
            channel: None,
            started: Instant::now(),
            heard: false,
            silence: 0,
            asked: Table::new(),
            quota: Quota::new(MAX_WAITS),
            unsent: VecDeque::new(),
            unasked: VecDeque::new(),
            waits_for_capacity: false,
            knows: false,
            parked: None,
        }
    }

    /// Returns a core to which a channel was requested. Requests to it wait meanwhile.
    pub fn awaited(core: u64) -> Peer {
        Peer { parked: Some(Vec::new()), ..Peer::new(core) }
    }

    /// Returns whether the channel was requested and has not come.
    pub const fn is_awaited(&self) -> bool {
        self.parked.is_some()
    }

    /// Opens the channel, and sends the requests that waited for it.
    pub fn open(&mut self, channel: Channel, home: &mut Home, port: &mut Port) {
        (self.channel, self.state, self.knows) = (Some(channel), State::Running, false);
        for (operation, words, mut asked) in self.parked.take().into_iter().flatten() {
            if let Asked::Ping(since, _) = &mut asked {
                *since = Instant::now();
            }
            self.send_or_refuse(operation, &words, asked, home, port);
        }
    }

    /// Sends a request, now or when the channel has come. If that is impossible, returns its entry with the reason.
    pub fn send(&mut self, operation: u16, words: &[u64], asked: Asked) -> Result<(), (Asked, Error)> {
        if let Some(parked) = &mut self.parked {
            if parked.len() >= IN_FLIGHT as usize || parked.try_reserve(1).is_err() {
                return Err((asked, Error::Full));
            }
            parked.push((operation, words.iter().copied().collect(), asked));
            return Ok(());
        }
        match self.request(operation, words) {
            Ok(number) => {
                self.asked.put(number, asked);
                Ok(())
            }
            Err(why) => Err((asked, why)),
        }
    }

    /// Sends a request, now or when the channel has come, or replies why that is impossible.
    pub fn send_or_refuse(&mut self, operation: u16, words: &[u64], asked: Asked, home: &mut Home, port: &mut Port) {
        if let Err((asked, why)) = self.send(operation, words, asked) {
            asked.refuse(why, home, port);
        }
    }

    /// Returns the time by which the core has to have replied.
    pub fn patience(&self) -> Instant {
        self.started.after(PATIENCE * tench::time::frequency())
    }

    /// Handles the core's messages, and sends what there was no room for. Returns how many ticks its requests took.
    pub fn take_in(&mut self, home: &mut Home, port: &mut Port) -> u64 {
        let mut took = 0;
        // This must come first: what is written from now on is handled below, or before the next sleep.
        self.knows = false;
        self.channel.as_mut().into_iter().for_each(|channel| channel.awake());
        for _ in 0..BATCH {
            let Some(channel) = &mut self.channel else { break };
            let received = channel.receive();
            self.heard |= matches!(received, Ok(Some(_)));
            let is_valid = match received {
                Ok(None) => break,
                Ok(Some(Incoming::Event(operation, words))) if capabilities::is_line(operation) => {
                    capabilities::core(self.core)
                        .into_iter()
                        .for_each(|core| home.ledger.receive(core, operation, words));
                    true
                }
                Ok(Some(Incoming::Event(operation, words))) => {
                    let event = Event::decode(operation, words);
                    event.map(|event| self.take_event(event, home)).is_ok()
                }
                Ok(Some(Incoming::Request(number, words))) => {
                    let start = Instant::now();
                    let reply = carry_out(self.core, number, words, home);
                    reply.iter().for_each(|words| self.reply(number, words));
                    took += Instant::now().since(start);
                    true
                }
                Ok(Some(Incoming::Reply(number, words))) => {
                    if let Some(asked) = self.asked.take(number) {
                        asked.waiting().into_iter().for_each(|waiting| give_back(&mut self.quota, waiting));
                        asked.finish(self.core, words, home, port);
                    } else if matches!(number.operation(), operation::FORWARD | operation::PROCESSES) {
                        home.endpoints.finish_nothing(self.core, words, &mut home.ledger);
                    }
                    true
                }
                Err(_) => false,
            };
            if !is_valid {
                self.close(home, port);
            }
        }
        if self.heard && matches!(self.state, State::Silent) {
            self.state = State::Running;
        }
        self.send_unsent(&mut home.endpoints);
        took
    }

    /// Handles an event of the core's.
    fn take_event(&mut self, event: Event, home: &mut Home) {
        match event {
            Event::Hello => {
                self.start = Instant::now().ticks() - self.started.ticks();
                self.state = State::Running;
            }
            Event::Cancel(index) => home.dispatcher.cancel(self.core, index),
            Event::Release(number) => home.endpoints.released(self.core, number, &mut home.ledger),
            Event::Signal(number, bits) => home.endpoints.signal(self.core, number, bits),
            Event::Alive => {
                // If there is no room for the event, other messages tell the core the same.
                let _ = self.channel.as_mut().map(|channel| channel.event(operation::HERE, &[]));
            }
            Event::Here => {}
        }
    }

    /// Closes the channel, because the core's messages are invalid or the core has stopped. Memory of others that it
    /// has is revoked only if it is off: otherwise it may still use the memory, whatever its monitor sends or does not
    /// send.
    pub fn close(&mut self, home: &mut Home, port: &mut Port) {
        let why = if is_off(self.core) { Error::Stopped } else { Error::Broken };
        self.state = if matches!(why, Error::Stopped) { State::Stopped } else { State::Broken };
        self.channel = None;
        self.unsent.clear();
        home.endpoints.lose(self.core);
        self.refuse_all(why, home, port);
        self.parked = None;
        let off = capabilities::core(self.core).filter(|_| matches!(why, Error::Stopped));
        off.into_iter().for_each(|core| home.ledger.lose(core));
    }

    /// Sends the ledger's events to the core, as far as there is room.
    pub fn say(&mut self, ledger: &mut Ledger) {
        let (Some(core), Some(channel)) = (capabilities::core(self.core), &mut self.channel) else { return };
        while let Some(line) = ledger.next_line(core) {
            let (operation, words) = line.encode();
            // A broken channel is noticed when messages are read.
            if matches!(channel.event(operation, &words), Err(Refused::Full)) {
                self.waits_for_capacity = true;
                return;
            }
            ledger.said(core);
        }
    }

    /// Requests memory from the core.
    pub fn grow(&mut self, requester: Requester, growth: &Growth, home: &mut Home, port: &mut Port) {
        self.send_or_refuse(exchange::GROW, &growth.encode(), Asked::Words(requester), home, port);
    }

    /// Asks the core whether its process accepts a transfer.
    pub fn admit(&mut self, request: TransferRequest, ledger: &mut Ledger) {
        let words = request.admission().encode();
        if let Err((Asked::Transfer(request), why)) =
            self.send(exchange::ADMIT, &words, Asked::Transfer(Box::new(request)))
        {
            request.refuse(ledger, why);
        }
    }

    /// Replies to a request of the core, now or when there is room.
    pub fn reply(&mut self, number: Number, words: &Words) {
        // A closed channel has no listener.
        let Some(channel) = &mut self.channel else { return };
        // A broken channel is noticed when messages are read.
        if !self.unsent.is_empty() || matches!(channel.reply(number, words), Err(Refused::Full)) {
            self.unsent.push_back((number, words.clone()));
        }
    }

    fn send_unsent(&mut self, endpoints: &mut Endpoints) {
        while let (Some(channel), Some((number, words))) = (&mut self.channel, self.unsent.front()) {
            // A broken channel is noticed when messages are read.
            if matches!(channel.reply(*number, words), Err(Refused::Full)) {
                return;
            }
            self.unsent.pop_front();
        }
        while let Some((waiting, words)) = self.unasked.pop_front() {
            if let Some(back) = self.try_forward(waiting, words, endpoints) {
                return self.unasked.push_front(back);
            }
        }
    }

    /// Sends signals to the core.
    pub fn signal(&mut self, endpoints: &mut Endpoints) {
        while let Some((number, bits)) = endpoints.next_signal(self.core) {
            let said = self.channel.as_mut().map(|channel| channel.event(operation::SIGNAL, &[number, bits]));
            if matches!(said, Some(Err(Refused::Full))) {
                self.waits_for_capacity = true;
                return;
            }
            endpoints.said(self.core);
        }
    }

    /// Tells the core what it need not hold any more. This must follow every message that names it.
    pub fn release(&mut self, endpoints: &mut Endpoints, ledger: &Ledger) {
        let has_lines = capabilities::core(self.core).is_some_and(|core| ledger.next_line(core).is_some());
        if has_lines || !self.unsent.is_empty() || !self.unasked.is_empty() {
            return;
        }
        while let Some(number) = endpoints.next_release(self.core) {
            let said = self.channel.as_mut().map(|channel| channel.event(operation::RELEASE, &[number]));
            if matches!(said, Some(Err(Refused::Full))) {
                self.waits_for_capacity = true;
                return;
            }
            endpoints.release_sent(self.core);
        }
    }

    /// Announces that this side is about to sleep, unless the core knows. Returns false if there is something to do
    /// already.
    #[inline]
    pub fn may_sleep(&mut self) -> bool {
        let waits_for_capacity =
            core::mem::take(&mut self.waits_for_capacity) || !self.unsent.is_empty() || !self.unasked.is_empty();
        if self.knows && !waits_for_capacity {
            return true;
        }
        let Some(channel) = &mut self.channel else { return true };
        let empty = if waits_for_capacity { channel.prepare_sleep_for_capacity() } else { channel.prepare_sleep() };
        self.knows = empty.unwrap_or(false);
        self.knows
    }

    /// Returns whether one more of a client's threads may wait for the end of a process there.
    pub fn may_wait(&self, requester: Client) -> bool {
        self.quota.may_take(requester)
    }

    /// Sends a request, and returns the number under which it is to be put into the table.
    #[inline]
    fn request(&mut self, operation: u16, words: &[u64]) -> Result<Number, Error> {
        match self.state {
            State::Broken => return Err(Error::Broken),
            State::Silent => return Err(Error::Silent),
            State::Stopped => return Err(Error::Stopped),
            _ => {}
        }
        let channel = self.channel.as_mut().ok_or(Error::NotConnected)?;
        self.asked.ensure_capacity()?;
        channel.request(operation, words).map_err(|refused| match refused {
            Refused::Broken(_) => Error::Broken,
            _ => Error::Full,
        })
    }

    /// Returns whether a reply of the core is awaited.
    pub fn is_waited_for(&self) -> bool {
        let is_parked = self.parked.as_ref().is_some_and(|parked| !parked.is_empty());
        let is_asked = !self.asked.is_empty() || !self.unasked.is_empty();
        is_parked || is_asked && !matches!(self.state, State::Silent)
    }

    /// Checks a core that is awaited by a requester or the ledger; called periodically. If the core has sent nothing
    /// since the last call, and is not off, its monitor is asked whether it still runs. If it has sent nothing for
    /// long, all waiting requests are refused.
    ///
    /// The channel stays open then. If the core was only slow, its first message makes it available again: the reply to
    /// that question, or to any other, which is no longer awaited. A channel that was requested and has not come may
    /// still come.
    pub fn look(&mut self, watch: Watch, home: &mut Home, port: &mut Port) -> Seen {
        self.cancel_gone(watch);
        let is_awaited = home.rounds.await_it(self.core) || self.is_waited_for();
        if core::mem::take(&mut self.heard) || !is_awaited {
            self.silence = 0;
            return Seen::Nothing;
        }
        if capabilities::core(self.core).is_some_and(|core| home.ledger.stop(core)) {
            return Seen::Stopped;
        }
        self.silence += 1;
        if self.silence > REMINDERS {
            self.silence = 0;
            let was = self.state;
            if self.channel.is_some() {
                self.state = State::Silent;
            }
            self.refuse_all(Error::Silent, home, port);
            return if self.state == was { Seen::Nothing } else { Seen::Silent };
        }
        // If there is no room for the event, the core has other unread messages, and will reply to those.
        let _ = self.channel.as_mut().map(|channel| channel.event(operation::ALIVE, &[]));
        Seen::Nothing
    }

    /// Refuses all requests that wait for the core.
    fn refuse_all(&mut self, why: Error, home: &mut Home, port: &mut Port) {
        for (waiting, words) in self.unasked.drain(..) {
            give_back(&mut self.quota, &waiting);
            home.endpoints.not_sent(self.core, &words);
            home.endpoints.refuse(waiting);
        }
        home.endpoints.give_up(self.core);
        for asked in self.asked.drain() {
            asked.waiting().into_iter().for_each(|waiting| give_back(&mut self.quota, waiting));
            asked.refuse(why, home, port);
        }
        for (.., asked) in self.parked.iter_mut().flat_map(|parked| parked.drain(..)) {
            asked.refuse(why, home, port);
        }
    }

    /// Sends a local program's request to the core, now or when there is room. One that waits for the end of a process
    /// is refused if too many do so already.
    pub fn forward(&mut self, mut waiting: Waiting, words: Words, endpoints: &mut Endpoints) {
        if waiting.waits {
            if !self.quota.may_take(waiting.requester) {
                endpoints.not_sent(self.core, &words);
                return endpoints.refuse_as_busy(waiting);
            }
            self.quota.take(waiting.requester);
            endpoints.charge_to_waits(&mut waiting);
        }
        let back =
            if self.unasked.is_empty() { self.try_forward(waiting, words, endpoints) } else { Some((waiting, words)) };
        self.unasked.extend(back);
    }

    /// Sends a local program's request to the core. Returns it if there is no room.
    fn try_forward(&mut self, waiting: Waiting, words: Words, endpoints: &mut Endpoints) -> Option<(Waiting, Words)> {
        match self.request(operation::FORWARD, &words) {
            Ok(number) => self.asked.put(number, Asked::Forward(waiting)),
            Err(Error::Full) => {
                self.waits_for_capacity = true;
                return Some((waiting, words));
            }
            Err(_) => {
                give_back(&mut self.quota, &waiting);
                endpoints.not_sent(self.core, &words);
                endpoints.refuse(waiting);
            }
        }
        None
    }

    /// Cancels, on the core, the requests whose requesters have given up without notice.
    pub fn cancel_gone(&mut self, watch: Watch) {
        let Some(channel) = &mut self.channel else { return };
        for (index, asked) in self.asked.iter_mut() {
            if let Asked::Forward(waiting) = asked
                && waiting.has_gone(watch)
            {
                give_back(&mut self.quota, waiting);
                waiting.charge = Charge::Nothing;
                // If there is no room for the event, or it comes too early, it is sent again.
                let _ = channel.event(operation::CANCEL, &[index]);
            }
        }
    }
}

/// Returns a request's charge to the quota of the waits for a core, if it has one.
fn give_back(quota: &mut Quota, waiting: &Waiting) {
    if waiting.charge == Charge::Waits {
        quota.give_back(waiting.requester.process);
    }
}
