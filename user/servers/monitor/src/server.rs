//! What local programs and other monitors ask.
//!
//! The monitor waits for both at once: requests at its endpoint, and its line, on which the other monitors ring when they have written
//! something and this one said that it sleeps.

use alloc::vec::Vec;

use tench::memory;
use tench::println;
use tench_abi::layout::slot;
use tench_channel::{Incoming, Refused, Request, Side};
use tench_loader::Archive;
use tench_loader::addresses::Randomness;
use tench_mem_client::Mem;
use tench_monitor::boot::BLOCK_BITS;
use tench_monitor::share::even;
use tench_monitor_client::Monitor;
use tench_monitor_client::protocol::{Core, Error, MonitorService, State};
use tench_names_client::Names;
use tench_protocol::{Event, Later, Pending, Port, again};
use tench_sys::thread::{Binding, Bindings};
use tench_sys::{
    Cap, CapAddress, Endpoint, Error as Refusal, Frame, Instant, Interrupt, InterruptControl, Kernel, Machine,
    Notification, Rights, Thread, Trigger, Wait,
};

use crate::channel::{self, Channel, LINE};
use crate::start::Starter;
use crate::{Result, no_memory};

/// What monitors say to each other.
mod operation {
    /// Event: this core runs.
    pub const HELLO: u16 = 1;
    /// Request without words; answered without words.
    pub const PING: u16 = 2;
}

/// Seconds in which a core that was started has to answer.
const PATIENCE: u64 = 10;

/// Another core.
struct Peer {
    core: u64,
    state: State,
    memory: u64,
    /// When it was started, and how long it took to answer.
    started: Instant,
    start: u64,
    channel: Option<Channel>,
    /// Who waits for an answer, and since when.
    pings: Vec<(Request, Instant, Pending<u64, Error>)>,
}

/// The server's state.
pub struct Server {
    machine: Machine,
    peers: Vec<Peer>,
    line: Cap<Interrupt>,
}

impl Server {
    /// On the first core, starts all others; on another, opens the channel to the first.
    pub fn new() -> Result<Server> {
        let machine = Cap::<Kernel>::new(slot::KERNEL).machine()?;
        let line = listen()?;
        let mut server = Server { machine, peers: Vec::new(), line };
        if machine.core == 0 {
            server.start_others()?;
            server.register()?;
        } else {
            server.connect()?;
        }
        Ok(server)
    }

    /// Everybody who finds the monitor by its name has it without a badge.
    fn register(&self) -> Result<()> {
        let slot = memory::take_slot().map_err(no_memory)?;
        let public = Cap::<Endpoint>::new(slot::SERVICE).mint_to(slot, Rights::WRITE | Rights::CALL, 0)?;
        again(|| Names::STANDARD.register(Monitor::NAME, public)).map_err(|_| Refusal::Aborted)
    }

    /// Starts the other cores. One that cannot be started is reported, and the others go on.
    fn start_others(&mut self) -> Result<()> {
        let mut random = Randomness::new(Default::default());
        let (shown, archive): (_, Archive<'static>) = tench_boot::map(slot::EXTRA, &mut random).map_err(no_memory)?;
        let place = first_frame(slot::EXTRA)?.identify()?.address;
        let starter = Starter::new(self.machine, &archive, (place, shown.size()))?;
        let free = Mem::STANDARD.totals().map_err(no_memory)?.free;
        let share = even(free, self.machine.cores - 1, 1 << BLOCK_BITS);
        for core in 1..self.machine.cores {
            let peer = start_one(&starter, core, share);
            if !matches!(peer.state, State::Starting) {
                println!("monitor: core {core} was not started: {}", peer.state);
            }
            self.peers.push(peer);
        }
        Ok(())
    }

    /// Opens the channel to the first core, in the frame that this one was started with, and says that it runs.
    fn connect(&mut self) -> Result<()> {
        let mut channel = channel::open(first_frame(slot::EXTRA)?, Side::Second, 0)?;
        channel.event(operation::HELLO, &[]).map_err(|_| Refusal::Aborted)?;
        self.peers.push(Peer { channel: Some(channel), state: State::Running, ..Peer::new(0) });
        Ok(())
    }

    /// Answers requests for ever.
    pub fn serve(&mut self) -> ! {
        let mut port: Port = tench::server::port(0);
        loop {
            self.take_in(&mut port);
            let event = match self.may_sleep() {
                true => port.next(self.deadline()),
                false => port.next(Wait::until(Instant::now())),
            };
            self.peers.iter_mut().filter_map(|peer| peer.channel.as_mut()).for_each(|channel| channel.awake());
            match event {
                Event::Request => {
                    port.carry_out(|request, context, answer| Monitor::dispatch(self, request, context, answer));
                }
                Event::Signal(_) => {
                    // The line can be rung again before what was written is taken in.
                    let _ = self.line.acknowledge();
                }
                Event::Nothing => self.expire(),
            }
        }
    }

    /// Takes in what the other monitors have written.
    fn take_in(&mut self, port: &mut Port) {
        for peer in &mut self.peers {
            peer.take_in(port);
        }
    }

    /// Tells the others that this monitor sleeps from now on. Answers false if something has arrived meanwhile.
    fn may_sleep(&mut self) -> bool {
        let mut may = true;
        for peer in &mut self.peers {
            let Some(channel) = &mut peer.channel else { continue };
            match channel.prepare_sleep() {
                Ok(empty) => may &= empty,
                Err(_) => may = false,
            }
        }
        may
    }

    /// Until when a core that was started may be silent.
    fn deadline(&self) -> Wait {
        let waiting = self.peers.iter().filter(|peer| matches!(peer.state, State::Starting));
        waiting.map(|peer| peer.patience()).min().map_or(Wait::FOREVER, Wait::until)
    }

    /// Gives up cores that did not answer in time.
    fn expire(&mut self) {
        let now = Instant::now();
        for peer in &mut self.peers {
            if matches!(peer.state, State::Starting) && peer.patience() <= now {
                peer.state = State::Silent;
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
}

/// Lets this core be rung: the line signals the main thread.
fn listen() -> Result<Cap<Interrupt>> {
    let slot = memory::take_slot().map_err(no_memory)?;
    let line = Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL).get(LINE, Trigger::Edge, slot)?;
    let notification = memory::make::<Notification>(0).map_err(no_memory)?.leak();
    let bindings = Bindings { notification: Binding::To(notification), ..Bindings::KEEP };
    Cap::<Thread>::new(slot::THREAD).bind(bindings)?;
    line.bind(Some(notification))?;
    Ok(line)
}

/// The frame in the first of the slots for extra capabilities.
fn first_frame(slot: CapAddress) -> Result<Cap<Frame>> {
    let (frame, _) = tench_boot::frames(slot).next().ok_or(Refusal::InvalidCapability)?;
    Ok(frame)
}

/// Starts a core and opens the channel to it.
fn start_one(starter: &Starter<'_>, core: u64, memory: u64) -> Peer {
    let peer = Peer::new(core);
    let opened = starter.start(core, memory).and_then(|started| {
        let channel = channel::open(started.channel, Side::First, core)?;
        Ok((started.memory, channel))
    });
    match opened {
        Ok((memory, channel)) => Peer { channel: Some(channel), memory, state: State::Starting, ..peer },
        Err(Refusal::OutOfMemory) => Peer { state: State::NoMemory, ..peer },
        Err(_) => Peer { state: State::Refused, ..peer },
    }
}

impl Peer {
    fn new(core: u64) -> Peer {
        let started = Instant::now();
        Peer { core, state: State::Unconnected, memory: 0, started, start: 0, channel: None, pings: Vec::new() }
    }

    /// When it has to have answered.
    fn patience(&self) -> Instant {
        self.started.after(PATIENCE * tench::time::frequency())
    }

    /// Takes in what it has written.
    fn take_in(&mut self, port: &mut Port) {
        let Some(channel) = &mut self.channel else { return };
        loop {
            match channel.receive() {
                Ok(Some(Incoming::Event(operation::HELLO, _))) => {
                    self.start = Instant::now().ticks() - self.started.ticks();
                    self.state = State::Running;
                }
                Ok(Some(Incoming::Request(request, _))) if request.operation() == operation::PING => {
                    // If there is no room for the answer, the peer has not taken in what it asked for.
                    let _ = channel.answer(request, &[]);
                }
                Ok(Some(Incoming::Answer(request, _))) => {
                    let Some(place) = self.pings.iter().position(|(waiting, ..)| *waiting == request) else { continue };
                    let (_, since, pending) = self.pings.swap_remove(place);
                    let ticks = Instant::now().ticks() - since.ticks();
                    port.finish(pending, &Ok(ticks));
                }
                Ok(None) => return,
                Ok(Some(_)) | Err(_) => break,
            }
        }
        self.state = State::Broken;
        self.channel = None;
        for (.., pending) in self.pings.drain(..) {
            port.finish(pending, &Err(Error::Broken));
        }
    }
}

impl MonitorService for Server {
    fn cores(&mut self) -> core::result::Result<(u64, u64), Error> {
        Ok((self.machine.cores, self.machine.core))
    }

    fn core(&mut self, core: u64) -> core::result::Result<Core, Error> {
        if core == self.machine.core {
            return Ok(Core { state: State::Here, memory: 0, start: 0 });
        }
        Ok(match self.peer(core)? {
            Some(peer) => Core { state: peer.state, memory: peer.memory, start: peer.start },
            None => Core { state: State::Unconnected, memory: 0, start: 0 },
        })
    }

    fn ping(&mut self, later: Later<'_, u64, Error>, core: u64) -> core::result::Result<Option<u64>, Error> {
        let peer = self.peer(core)?.ok_or(Error::NotConnected)?;
        if matches!(peer.state, State::Broken) {
            return Err(Error::Broken);
        }
        let channel = peer.channel.as_mut().ok_or(Error::NotConnected)?;
        peer.pings.try_reserve(1).map_err(|_| Error::Full)?;
        let since = Instant::now();
        let request = channel.request(operation::PING, &[]).map_err(|refused| match refused {
            Refused::Broken(_) => Error::Broken,
            _ => Error::Full,
        })?;
        let pending = later.keep().map_err(|_| Error::Full)?;
        peer.pings.push((request, since, pending));
        Ok(None)
    }
}
