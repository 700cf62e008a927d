//! Random traffic of capabilities among all cores: an agent on each core sends frames and endpoints and lends memory to
//! the others, sends on what it received, calls endpoints, drops capabilities, and revokes its own, all at the same
//! time. In the end each core has as much free memory as before, and nothing of another's. A busier run comes first,
//! because servers keep the memory that they needed when they were busiest. As that may still be more in a later run,
//! runs follow until one changes nothing: what is lost with each run is found, at the latest after some.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use tench::memory::{self, Made, Window};
use tench::sync::Mutex;
use tench::sys::{
    Cap, CapAddress, Endpoint, Error as KernelError, Frame, Kind, MapFlags, Message, OWN_CSPACE, Placement, Reply,
    Rights, Untyped, Wait, offer_slots,
};
use tench::time::{self, Duration};
use tench::{println, process, thread};
use tench_mem_interface::{Block, Mem};
use tench_monitor_interface::protocol::{Error, State, Transfer};
use tench_monitor_interface::{Failure, Monitor};
use tench_protocol::Rejection;

use crate::processes::{on, procs, spawn, text, wait};
use crate::share::{MOMENT, quiet, settled, take_slot, until};

/// Words of transfers: the list of agents, a frame, memory.
const ROSTER: u64 = 1;
const FRAME: u64 = 2;
const MEMORY: u64 = 3;
/// Bit of the word of a transfer with an endpoint. The other bits are the word with which the endpoint replies: its
/// process, and the badge.
const ENDPOINT: u64 = 1 << 63;

/// Number of frames that each agent owns, and log2 of their size.
const OWN: usize = 4;
const FRAME_BITS: u64 = 12;
/// Log2 of the size of the memory that each agent lends.
const LENT_BITS: u32 = 14;
/// Number of agents on each core in the first run, which is to be busier than those that count.
const CROWD: usize = 2;
/// Maximum number of runs, one of which must leave all free memory as it was.
const RUNS: usize = 3;
/// Number of looks at the free memory after a run, a moment apart.
const LOOKS: usize = 100;
/// Minimum time in milliseconds that an agent runs before it is killed.
const KILLED_AFTER: u64 = 20;
/// Maximum number of others' capabilities that an agent keeps.
const MOST: usize = 24;

fn number(text: &str) -> Result<u64, String> {
    crate::number(text)
}

/// Lets an agent on each running core make `steps` steps.
pub fn traffic(monitor: Monitor, steps: &str, seed: u64, kills: bool) -> Result<(), String> {
    let (count, _) = monitor.cores().map_err(text)?;
    let is_up = |core: &u64| monitor.core(*core).is_ok_and(|core| matches!(core.state, State::Here | State::Running));
    let cores: Vec<u64> = (0..count).filter(is_up).collect();
    let free = || -> Result<Vec<u64>, String> {
        cores.iter().map(|core| monitor.memory(*core).map(|memory| memory.free).map_err(text)).collect()
    };
    cores.iter().try_for_each(|core| procs(monitor, *core).map(drop))?;
    let crowd: Vec<u64> = cores.iter().flat_map(|core| [*core; CROWD]).collect();
    // The monitors grow to what a busier run takes, and keep that.
    run(monitor, &crowd, steps, seed, kills)?;
    let others = rests(monitor, &cores)?;
    let mut changes: Vec<Vec<i64>> = vec![];
    loop {
        if changes.len() == RUNS {
            return Err(format!("each run has changed the free memory of the cores, by bytes: {changes:?}"));
        }
        let (held, before) = (quiet(monitor)?, free()?);
        let sent = run(monitor, &cores, steps, seed + 1 + changes.len() as u64, kills)?;
        settled(monitor, &held)?;
        let is_back = |_: usize| {
            time::sleep(MOMENT);
            free().is_ok_and(|after| after == before)
        };
        if (0..LOOKS).any(is_back) {
            println!("{} agents made {steps} steps each: {sent} capabilities sent", cores.len());
            break;
        }
        changes.push(free()?.iter().zip(&before).map(|(after, before)| *after as i64 - *before as i64).collect());
    }
    println!("all cores have as much free memory as before");
    if rests(monitor, &cores)? != others {
        return Err(format!("the cores have other capabilities of each other than {others:?}"));
    }
    println!("and as many capabilities of each other");
    Ok(())
}

/// Returns [what](rest) each core has of the others, and they of it.
fn rests(monitor: Monitor, cores: &[u64]) -> Result<Vec<u64>, String> {
    let guests: Vec<u64> =
        cores.iter().map(|core| spawn(monitor, *core, &["cores", "rest"])).collect::<Result<_, _>>()?;
    let count = |(core, guest): (&u64, u64)| match wait(monitor, guest)?.exit_code() {
        Some(counts @ RESTS..) => Ok(counts),
        _ => Err(format!("something is left on core {core}")),
    };
    cores.iter().zip(guests).map(count).collect()
}

/// Least exit code of [`rest`] if nothing is left but endpoints.
const RESTS: u64 = 1 << 16;

/// Waits until this core's counts stay the same, and ends with them as its exit code: [`RESTS`], 256 for each endpoint
/// that others have, and 1 for each of theirs. Nothing else may be left.
pub fn rest(monitor: Monitor) -> Result<(), String> {
    let counts = quiet(monitor)?;
    if (counts.exports, counts.copies, counts.transfers, counts.faults) != (0, 0, 0, 0) {
        return Err(format!("something is left: {counts:?}"));
    }
    process::exit((RESTS + 256 * counts.endpoints + counts.proxies) as i32)
}

/// Starts an agent on each of these cores, and waits until all have ended; one may be killed. Returns the number of
/// capabilities that they have sent.
fn run(monitor: Monitor, cores: &[u64], steps: &str, seed: u64, kills: bool) -> Result<u64, String> {
    let mut agents = Vec::new();
    for (index, core) in (0..).zip(cores) {
        let seed = (seed * 1000 + index).to_string();
        agents.push(spawn(monitor, *core, &["cores", "agent", steps, &seed])?);
    }
    let roster = memory::make::<Frame>(FRAME_BITS).map_err(|error| error.to_string())?;
    let window = Window::new(roster.cap(), FRAME_BITS as u32, MapFlags::READ | MapFlags::WRITE)
        .map_err(|error| error.to_string())?;
    (1..).zip(&agents).for_each(|(index, agent)| window.write64(index * 8, *agent));
    for agent in &agents {
        monitor.give(*agent, ROSTER, Cap::new(roster.cap().address())).map_err(text)?;
    }
    // The agents begin only now, so that none fills another's mailbox before the other has its list.
    window.write64(0, agents.len() as u64);
    let victim = agents.get(seed as usize % agents.len().max(1)).copied().filter(|_| kills);
    if let Some(victim) = victim {
        time::sleep(Duration::from_millis(KILLED_AFTER + seed % KILLED_AFTER));
        // The agent may have ended already.
        let _ = on(monitor, victim, |procs| procs.kill(victim));
    }
    let mut wrong = 0;
    for agent in &agents {
        let end = wait(monitor, *agent)?;
        let is_well = end.exit_code() == Some(0);
        wrong += u64::from(!is_well && victim != Some(*agent));
    }
    // Each agent has written behind the list how much it has sent.
    let sent = (0..agents.len()).map(|index| window.read64(2048 + index * 8)).sum();
    drop(window);
    if roster.cap().revoke() == Err(KernelError::RemoteCopies) {
        monitor.revoke(Cap::new(roster.cap().address())).map_err(text)?;
    }
    drop(roster);
    if wrong > 0 { Err(format!("{wrong} agents found something wrong")) } else { Ok(sent) }
}

/// Capabilities that arrived, each with its word.
type Arrivals = Arc<Mutex<Vec<(u64, CapAddress)>>>;

/// One of the agents.
struct Agent {
    monitor: Monitor,
    random: u64,
    others: Vec<u64>,
    own: Vec<Made<Frame>>,
    lent: Option<Block>,
    /// The agent's endpoint, at which one of its threads replies, with some badges.
    endpoint: Made<Endpoint>,
    badges: Vec<CapAddress>,
    arrivals: Arrivals,
    held: Vec<(u64, CapAddress)>,
    sent: u64,
}

/// Returns the word with which calls through a badge are replied to: no other endpoint or badge has the same.
fn word_of(badge: u64) -> u64 {
    ENDPOINT | process::id() << 8 | badge
}

/// Replies to every call, for ever: with a word, and the attached capability.
fn reply_to_all(endpoint: Cap<Endpoint>, reply: &Made<Reply>, arrival: CapAddress) {
    loop {
        offer_slots(&[arrival]);
        let Ok(received) = endpoint.receive(Wait::FOREVER.with_reply(reply.cap())) else { break };
        let mut response = Message::with_words(0, &[word_of(received.badge())]);
        let alone = response.clone();
        for cap in received.caps() {
            response.copy_cap(*cap);
        }
        // The capability may have been revoked meanwhile, and the caller may be gone.
        if reply.cap().reply(&response).is_err() {
            let _ = reply.cap().reply(&alone);
        }
        let _ = OWN_CSPACE.delete_at(arrival);
    }
}

/// Takes transfers, for ever.
fn take_all(monitor: Monitor, arrivals: &Arrivals) {
    while let Ok(slot) = memory::take_slot() {
        match monitor.take(slot) {
            Ok((Transfer { word, .. }, _)) => arrivals.lock().push((word, slot)),
            Err(_) => memory::free_slot(slot),
        }
    }
}

/// Runs an agent: makes `steps` steps, and gives everything back.
pub fn agent(monitor: Monitor, steps: &str, seed: &str) -> Result<(), String> {
    let (steps, seed) = (number(steps)?, number(seed)?);
    let arrivals = Arrivals::default();
    let slot = take_slot()?;
    let (Transfer { word, .. }, _) = monitor.take(slot).map_err(text)?;
    if word != ROSTER {
        return Err(format!("{word} came before the list of agents"));
    }
    let window = Window::new(Cap::new(slot), FRAME_BITS as u32, MapFlags::READ | MapFlags::WRITE)
        .map_err(|error| error.to_string())?;
    until(|| window.read64(0) > 0)?;
    let others: Vec<u64> = (1..=window.read64(0) as usize).map(|index| window.read64(index * 8)).collect();
    let own =
        (0..OWN).map(|_| memory::make(FRAME_BITS)).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let taken = Arc::clone(&arrivals);
    thread::Builder::new().spawn(move || take_all(monitor, &taken)).map_err(|error| error.to_string())?.detach();
    let endpoint = memory::make::<Endpoint>(0).map_err(|error| error.to_string())?;
    let (serves, reply) = (endpoint.cap(), memory::make::<Reply>(0).map_err(|error| error.to_string())?);
    let arrival = take_slot()?;
    let server = move || reply_to_all(serves, &reply, arrival);
    thread::Builder::new().spawn(server).map_err(|error| error.to_string())?.detach();
    let badges = (0..OWN).map(|_| take_slot()).collect::<Result<_, _>>()?;
    let (random, held) = (seed, vec![]);
    let mut agent = Agent { monitor, random, others, own, lent: None, endpoint, badges, arrivals, held, sent: 0 };
    for index in 0..OWN {
        agent.make_badge(index)?;
    }
    for _ in 0..steps {
        agent.step()?;
    }
    agent.end()?;
    let place = agent.others.iter().position(|other| *other == process::id()).unwrap_or_default();
    window.write64(2048 + place * 8, agent.sent);
    Ok(())
}

impl Agent {
    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % limit.max(1)
    }

    fn step(&mut self) -> Result<(), String> {
        let arrived = core::mem::take(&mut *self.arrivals.lock());
        self.held.extend(arrived);
        while self.held.len() > MOST {
            self.drop_one();
        }
        match self.below(20) {
            16 => self.send_endpoint(),
            17..19 => self.call_one(),
            19 => {
                let index = self.below(self.badges.len());
                self.take_badge_back(index)?;
                self.make_badge(index)
            }
            0..6 => {
                let index = self.below(self.own.len());
                let frame = self.own[index].cap().address();
                self.send(FRAME, frame)
            }
            6..9 if !self.held.is_empty() => self.send_on(),
            9..11 if !self.held.is_empty() => {
                self.drop_one();
                Ok(())
            }
            11..13 => {
                let index = self.below(self.own.len());
                self.take_back(self.own[index].cap())
            }
            13 => self.lend(),
            14 => self.recall(),
            _ => self.make_of_lent(),
        }
    }

    /// Counts a transfer. Errors that can come from what others do at the same time are ignored.
    fn count(&mut self, sent: Result<(), Failure>) -> Result<(), String> {
        match sent {
            Ok(()) => self.sent += 1,
            // The capability was revoked before it was sent.
            Err(Failure::Rejected(Rejection::BadArguments) | Failure::Lost(KernelError::InvalidCapability)) => {}
            Err(Failure::Refused(
                Error::MailboxFull
                | Error::Full
                | Error::BeingRevoked
                | Error::TooManyObjects
                | Error::NoSuchProcess
                | Error::NotSendable
                | Error::Lent
                | Error::InUse
                | Error::Refused,
            )) => {}
            Err(failure) => return Err(failure.to_string()),
        }
        Ok(())
    }

    fn send(&mut self, word: u64, slot: CapAddress) -> Result<(), String> {
        let index = self.below(self.others.len());
        let sent = self.monitor.give(self.others[index], word, Cap::new(slot));
        self.count(sent)
    }

    /// Sends on a capability that another agent sent: a frame is copied, memory is moved.
    fn send_on(&mut self) -> Result<(), String> {
        let index = self.below(self.held.len());
        let (word, slot) = self.held[index];
        if word != MEMORY {
            return self.send(word, slot);
        }
        self.held.swap_remove(index);
        let to = self.below(self.others.len());
        let sent = self.monitor.lend(self.others[to], MEMORY, Cap::new(slot));
        discard(slot);
        self.count(sent)
    }

    fn drop_one(&mut self) {
        let index = self.below(self.held.len());
        discard(self.held.swap_remove(index).1);
    }

    /// Revokes one of the agent's own frames, wherever copies are. If another agent of this core has sent the frame to
    /// another core, the monitor refuses, and only the attempt in the kernel has the frame revoked there.
    fn take_back(&mut self, frame: Cap<Frame>) -> Result<(), String> {
        loop {
            match frame.revoke() {
                Ok(_) => return Ok(()),
                Err(KernelError::RemoteCopies) => {}
                Err(error) => return Err(error.to_string()),
            }
            match self.monitor.revoke(Cap::new(frame.address())) {
                Ok(()) | Err(Failure::Refused(Error::Full)) => {}
                Err(Failure::Refused(Error::NotAllowed)) => time::sleep(MOMENT),
                Err(failure) => return Err(failure.to_string()),
            }
        }
    }

    fn lend(&mut self) -> Result<(), String> {
        if self.lent.is_some() {
            return Ok(());
        }
        let slot = take_slot()?;
        let Ok(block) = Mem::STANDARD.allocate(LENT_BITS, slot) else {
            memory::free_slot(slot);
            return Ok(());
        };
        self.lent = Some(block);
        let to = self.below(self.others.len());
        let sent = self.monitor.lend(self.others[to], MEMORY, block.untyped);
        self.count(sent)
    }

    fn recall(&mut self) -> Result<(), String> {
        let Some(block) = self.lent.take() else { return Ok(()) };
        loop {
            match Mem::STANDARD.free(block.number) {
                Ok(_) => break,
                Err(tench_mem_interface::Failure::Refused(tench_mem_interface::Error::Abroad)) => {}
                Err(failure) => return Err(failure.to_string()),
            }
            match self.monitor.recall(block.number) {
                Ok(()) | Err(Failure::Refused(Error::Full)) => {}
                Err(failure) => return Err(failure.to_string()),
            }
        }
        memory::free_slot(block.untyped.address());
        Ok(())
    }

    /// Makes a frame of memory that another agent lent, and sends it to one.
    fn make_of_lent(&mut self) -> Result<(), String> {
        let Some((_, slot)) = self.held.iter().find(|(word, _)| *word == MEMORY).copied() else { return Ok(()) };
        let made = take_slot()?;
        let lent = Cap::<Untyped>::new(slot);
        if lent.retype_many(Kind::Frame, FRAME_BITS, 1, Placement::Watermark, OWN_CSPACE, made).is_err() {
            memory::free_slot(made);
            return Ok(());
        }
        self.held.push((FRAME, made));
        self.send(FRAME, made)
    }

    // ── Endpoints ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Mints the capability to the agent's own endpoint with a badge.
    fn make_badge(&mut self, index: usize) -> Result<(), String> {
        let (to, rights) = (self.badges[index], Rights::WRITE | Rights::CALL | Rights::GRANT);
        self.endpoint.cap().mint_to(to, rights, index as u64 + 1).map(drop).map_err(|error| error.to_string())
    }

    /// Revokes and deletes the capability with a badge.
    fn take_badge_back(&mut self, index: usize) -> Result<(), String> {
        OWN_CSPACE.revoke_at(self.badges[index]).map_err(|error| error.to_string())?;
        OWN_CSPACE.delete_at(self.badges[index]).map(drop).map_err(|error| error.to_string())
    }

    /// Sends the capability with a badge to another agent.
    fn send_endpoint(&mut self) -> Result<(), String> {
        let index = self.below(self.badges.len());
        self.send(word_of(index as u64 + 1), self.badges[index])
    }

    /// Calls another agent's endpoint, perhaps with a frame attached: the word in the reply must be the one that came
    /// with the endpoint, and a frame must come back if one was attached. (Which frame it is can be found out only with
    /// the power `memory`; the monitor's host tests check that.)
    fn call_one(&mut self) -> Result<(), String> {
        let endpoints: Vec<(u64, CapAddress)> =
            self.held.iter().copied().filter(|(word, _)| word & ENDPOINT != 0).collect();
        if endpoints.is_empty() {
            return self.send_endpoint();
        }
        let (word, slot) = endpoints[self.below(endpoints.len())];
        let (frame, back) = (self.some_frame(), take_slot()?);
        let mut request = Message::new(0);
        if let Some(frame) = frame {
            request.copy_cap(frame);
        }
        offer_slots(&[back]);
        let response = Cap::<Endpoint>::new(slot).call(&request);
        let is_back = response.as_ref().is_ok_and(|response| !response.caps().is_empty());
        let kind = OWN_CSPACE.identify_at(back).map_or(Kind::Null, |found| found.kind);
        if is_back {
            self.sent += 1;
            self.held.push((FRAME, back));
        } else {
            memory::free_slot(back);
        }
        match response {
            // A capability that was revoked meanwhile is null.
            Ok(_) if is_back && (frame.is_none() || ![Kind::Null, Kind::Frame].contains(&kind)) => {
                Err(format!("{kind:?} came back where {frame:?} went along"))
            }
            Ok(response) if response.label() == 0 && response.words() == [word] => Ok(()),
            // Too many requests wait, or the other core was not reached.
            Ok(response) if Rejection::from_code(response.label(), 0).is_some() => Ok(()),
            Ok(response) => Err(format!("{:x?} replied in the place of {word:x}", response.words())),
            // The endpoint was revoked, or its owner has ended.
            Err(KernelError::Aborted | KernelError::InvalidCapability) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns a frame to attach, or none.
    fn some_frame(&mut self) -> Option<CapAddress> {
        let frames: Vec<CapAddress> =
            self.held.iter().filter(|(word, _)| *word == FRAME).map(|(_, slot)| *slot).collect();
        let (choice, own, other) = (self.below(4), self.below(OWN), self.below(frames.len()));
        match choice {
            0 => self.own.get(own).map(|frame| frame.cap().address()),
            1 => frames.get(other).copied(),
            _ => None,
        }
    }

    /// Revokes the agent's own capabilities, and drops the others.
    fn end(&mut self) -> Result<(), String> {
        self.recall()?;
        for index in 0..self.badges.len() {
            self.take_badge_back(index)?;
        }
        for index in 0..self.own.len() {
            self.take_back(self.own[index].cap())?;
        }
        let arrived = core::mem::take(&mut *self.arrivals.lock());
        self.held.extend(arrived);
        while !self.held.is_empty() {
            self.drop_one();
        }
        Ok(())
    }
}

/// Deletes the capability in a slot, if it was not revoked, and frees the slot.
fn discard(slot: CapAddress) {
    match OWN_CSPACE.delete_at(slot) {
        // An exported capability stays until it is revoked, and so does the slot.
        Err(KernelError::RemoteCopies) => {}
        _ => memory::free_slot(slot),
    }
}
