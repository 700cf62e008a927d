//! The cores, the messages between them, and the actions of their clients.

use std::collections::VecDeque;
use tench_quota::Client;

use tench_abi::{CapAddress, Error as KernelError, Kind, Rights};
use tench_monitor::message::line::Line;
use tench_monitor::transfer::exchange::{Done, Exchange, OutgoingTransfer};
use tench_monitor_interface::protocol::{Error, pid_base};
use tench_remote::{Core as Number, ObjectId};

use crate::core::{BASE, Core, POOL_BITS};
use crate::judge;
use crate::simulation::{Dice, Network};

/// The process that does everything on a core.
const CLIENT: u64 = 9;
/// Steps between two checks of the judge.
const LOOKS: usize = 25;
/// More steps than any terminating run takes.
const MOST_STEPS: usize = 20_000;
/// Log2 of the sizes that clients make: frames, and memory.
const FRAMES: [u64; 2] = [12, 14];
const MEMORY: [u64; 3] = [14, 15, 16];

/// Counts of events.
#[derive(Default)]
pub struct Tally {
    pub sent: usize,
    pub refused: usize,
    pub deleted: usize,
    /// Number of times that a core was found to have stopped.
    pub found: usize,
}

/// A waiting requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// A sender.
    Sender,
    /// A receiver.
    Receiver,
    /// A revoker, which waits until a range of memory is nowhere else: a client of this core, its slot, the range, and
    /// the number of clients' steps before.
    Revoker(usize, CapAddress, (u64, u64), usize),
}

struct Node {
    core: Core,
    exchange: Exchange<Core, Who>,
    /// Capability to all of its memory.
    pool: CapAddress,
    /// Slots of clients. Their content may have been revoked.
    clients: Vec<CapAddress>,
    /// Roots that are being deleted.
    deleting: VecDeque<(ObjectId, CapAddress)>,
    /// Number of clients' steps that sent something.
    transfers: usize,
}

pub struct World {
    nodes: Vec<Node>,
    network: Network<Line>,
    /// Set if clients request revocations from the monitors.
    asks: bool,
    /// Cores that have stopped unannounced.
    silent: Vec<usize>,
    pub dice: Dice,
    steps: usize,
    pub tally: Tally,
}

fn number(at: usize) -> Number {
    Number::new(at as u8).expect("there are not so many")
}

impl World {
    /// Returns a world in which clients request the monitors to revoke what they could not revoke themselves, and
    /// monitors revoke for no other reason.
    pub fn asking(count: u8, seed: u64) -> World {
        let world = World::wanting(count, seed);
        world.nodes.iter().for_each(|node| node.core.deafen());
        World { asks: true, ..world }
    }

    /// Returns a world in which the monitors learn from their kernels which revocations met exported capabilities. No
    /// client makes requests.
    pub fn wanting(count: u8, seed: u64) -> World {
        let nodes = (0..count).map(|at| Node::new(at, count)).collect();
        let (network, dice, tally) = (Network::new(count.into()), Dice::new(seed), Tally::default());
        World { nodes, network, asks: false, silent: Vec::new(), dice, steps: 0, tally }
    }

    /// Does a random action.
    pub fn act(&mut self) {
        self.steps += 1;
        let at = self.dice.below(self.nodes.len());
        if !self.network.has_stopped(at) {
            self.nodes[at].sweep();
            match self.dice.below(16) {
                0..3 => self.make(at),
                3 => self.copy(at),
                4 => self.delete(at),
                5..8 => self.give(at),
                8 => self.nodes[at].exchange.take(Client::alone(CLIENT), Who::Receiver),
                9 => self.revoke(at),
                10 => self.nodes[at].exchange.poll(),
                _ => drop(self.go_on()),
            }
            self.collect();
        }
        if self.steps.is_multiple_of(LOOKS) {
            self.judge();
        }
    }

    /// Stops one core for good.
    pub fn stop_one(&mut self) {
        let lost = self.stop();
        self.network.announce(lost);
    }

    /// Stops one core for good, unannounced: cores whose ledgers await something of it check.
    pub fn stop_one_silently(&mut self) {
        let lost = self.stop();
        self.silent.push(lost);
    }

    fn stop(&mut self) -> usize {
        let lost = self.dice.one_of(&self.network.alive()).expect("one is left");
        self.network.stop(lost);
        self.nodes.iter().for_each(|node| node.core.lose(lost));
        lost
    }

    /// Returns which cores await something of which stopped core, and have not checked.
    fn waiting(&self) -> Vec<(usize, usize)> {
        let waits = |at: usize, lost: usize| {
            let exchange = &self.nodes[at].exchange;
            !exchange.is_closed(number(lost)) && exchange.awaited().has(number(lost))
        };
        let alive = self.network.alive();
        let of = |lost: &usize| {
            let lost = *lost;
            alive.iter().filter(move |at| waits(**at, lost)).map(move |at| (*at, lost))
        };
        self.silent.iter().flat_map(of).collect()
    }

    fn judge(&mut self) {
        let of = |at: usize| (at, &self.nodes[at].core, self.nodes[at].pool);
        let alive: Vec<(usize, &Core, CapAddress)> = self.network.alive().into_iter().map(of).collect();
        alive.iter().for_each(|(_, core, _)| core.check());
        judge::check(&alive, self.nodes.len());
    }

    // ── Clients ──────────────────────────────────────────────────────────────────────────────────────────────────────

    fn make(&mut self, at: usize) {
        let of = [&[self.nodes[at].pool][..], &self.nodes[at].clients].concat();
        let Some(memory) = self.dice.one_of(&of) else { return };
        let (frame, block) = (self.dice.one_of(&FRAMES), self.dice.one_of(&MEMORY));
        let node = &mut self.nodes[at];
        let Some(found) = node.core.held(memory).filter(|found| found.kind == Kind::Untyped) else { return };
        let made = match (self.steps.is_multiple_of(2), frame, block) {
            (true, Some(bits), _) => node.core.retype(memory, Kind::Frame, bits),
            // Smaller than the memory that it is made of: the judge takes objects of equal size for lent memory.
            (_, _, Some(bits)) if bits < found.bits => node.core.retype(memory, Kind::Untyped, bits),
            _ => return,
        };
        node.clients.extend(made);
    }

    fn copy(&mut self, at: usize) {
        let Some(slot) = self.dice.one_of(&self.nodes[at].clients.clone()) else { return };
        let rights =
            self.dice.one_of(&[Rights::READ, Rights::READ | Rights::WRITE, Rights::all()]).unwrap_or(Rights::all());
        let node = &mut self.nodes[at];
        if node.core.held(slot).is_some_and(|found| found.kind == Kind::Frame) {
            node.clients.extend(node.core.mint(slot, rights));
        }
    }

    fn delete(&mut self, at: usize) {
        let Some(slot) = self.dice.one_of(&self.nodes[at].clients.clone()) else { return };
        let node = &mut self.nodes[at];
        if node.core.delete(slot).is_ok() {
            node.clients.retain(|other| *other != slot);
        }
    }

    fn give(&mut self, at: usize) {
        let Some(slot) = self.dice.one_of(&self.nodes[at].clients.clone()) else { return };
        let to = self.dice.below(self.nodes.len());
        let from = pid_base(at as u64) | CLIENT;
        let node = &mut self.nodes[at];
        let Ok(arrived) = node.core.hand_in(slot) else { return };
        if node.core.held(slot).is_none() {
            node.clients.retain(|other| *other != slot);
        }
        node.transfers += 1;
        // The reservation comes from the receiver's core; if that has stopped, there is no reply.
        let reservation = if self.network.has_stopped(to) || self.nodes[at].exchange.is_closed(number(to)) {
            Err(Error::CoreLost)
        } else {
            self.nodes[to].exchange.reserve(number(at), from, Client::alone(CLIENT), 0)
        };
        let exchange = &mut self.nodes[at].exchange;
        match reservation {
            Ok(reservation) => {
                exchange.send(OutgoingTransfer::new(Some(Who::Sender), arrived, from, number(to), reservation))
            }
            Err(why) => exchange.refuse(Some(Who::Sender), arrived, why),
        }
    }

    fn revoke(&mut self, at: usize) {
        let Some(slot) = self.dice.one_of(&self.nodes[at].clients.clone()) else { return };
        let (steps, node) = (self.nodes[at].transfers, &mut self.nodes[at]);
        if node.core.revoke(slot) == Err(KernelError::RemoteCopies)
            && self.asks
            && let Some(found) = node.core.held(slot)
        {
            let (base, bytes) = (found.base, 1 << found.bits);
            let who = Who::Revoker(at, slot, (base, bytes), steps);
            node.exchange.recall(pid_base(at as u64) | CLIENT, base, bytes, who);
        }
    }

    // ── Monitors ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Replies to clients, and takes out what is to be sent and deleted.
    fn collect(&mut self) {
        for at in self.network.alive() {
            while let Some(done) = self.nodes[at].exchange.done() {
                self.note(at, done);
            }
            let node = &mut self.nodes[at];
            while let Some((object, slot, _)) = node.exchange.deletion() {
                node.deleting.push_back((object, slot));
            }
            for to in 0..self.nodes.len() {
                let exchange = &mut self.nodes[at].exchange;
                let lines: Vec<Line> = core::iter::from_fn(|| {
                    let line = exchange.next_line(number(to));
                    exchange.said(number(to));
                    line
                })
                .collect();
                for line in lines {
                    self.network.send(at, to, line);
                }
            }
        }
    }

    fn note(&mut self, at: usize, done: Done<Who>) {
        match done {
            Done::Reply(Who::Sender, Ok(())) => self.tally.sent += 1,
            Done::Reply(_, Err(_)) => self.tally.refused += 1,
            Done::Transfer(_, transfer) => self.nodes[at].clients.push(transfer.slot),
            Done::Reply(Who::Revoker(at, slot, (base, bytes), transfers), Ok(())) => {
                // Nothing was sent since: so no other core has a part of it, and the kernel agrees.
                let node = &self.nodes[at];
                let is_same = node.core.held(slot).is_some_and(|found| found.base == base && 1 << found.bits == bytes);
                if node.transfers != transfers || !is_same {
                    return;
                }
                assert_eq!(node.core.revoke(slot), Ok(()), "{base:#x} was taken back, and is not all here");
                for other in self.network.alive().into_iter().filter(|other| *other != at) {
                    let has = judge::has(&self.nodes[other].core, base, bytes);
                    assert!(!has, "{base:#x} was taken back, but {other} has it");
                }
            }
            Done::Reply(..) => {}
        }
    }

    /// Delivers an event, ends a deletion, or tells a core that another has stopped. Returns whether there was anything
    /// to do.
    fn go_on(&mut self) -> bool {
        self.collect();
        let ready = self.network.ready();
        let is_deleting = |at: &usize| !self.nodes[*at].deleting.is_empty();
        let deleting: Vec<usize> = self.network.alive().into_iter().filter(is_deleting).collect();
        let waiting = self.waiting();
        let choice = self.dice.below(ready.len() + deleting.len() + self.network.unaware.len() + waiting.len());
        if let Some(&(from, to)) = ready.get(choice) {
            self.deliver(from, to);
        } else if let Some(&at) = deleting.get(choice - ready.len()) {
            self.nodes[at].finish_deletion();
            self.tally.deleted += 1;
        } else if let Some(&(at, lost)) = waiting.get(choice - ready.len() - deleting.len()) {
            while self.deliver(lost, at) {}
            assert!(self.nodes[at].exchange.stop(number(lost)), "it has stopped");
            self.tally.found += 1;
        } else if let Some(index) = choice.checked_sub(ready.len() + deleting.len() + waiting.len())
            && index < self.network.unaware.len()
        {
            let (at, lost) = self.network.unaware.swap_remove(index);
            // What it has sent before is delivered first.
            while self.deliver(lost, at) {}
            self.nodes[at].exchange.lose(number(lost));
        } else {
            return false;
        }
        self.collect();
        true
    }

    fn deliver(&mut self, from: usize, to: usize) -> bool {
        let Some(line) = self.network.next(from, to) else { return false };
        let (operation, words) = line.encode();
        self.nodes[to].exchange.receive(number(from), operation, &words);
        true
    }

    fn run_until_idle(&mut self) {
        let mut steps = 0;
        while self.go_on() {
            steps += 1;
            if steps % 100 == 0 {
                // The monitors do this periodically.
                self.network.alive().into_iter().for_each(|at| self.nodes[at].exchange.poll());
            }
            assert!(steps < MOST_STEPS, "it never ends: {:?} is being deleted", self.deleting());
        }
    }

    fn deleting(&self) -> Vec<(usize, &VecDeque<(ObjectId, CapAddress)>)> {
        self.nodes.iter().map(|node| &node.deleting).enumerate().collect()
    }

    /// Lets all clients revoke what is theirs, until nothing is left anywhere.
    pub fn drop_everything(&mut self) {
        self.run_until_idle();
        let alive = self.network.alive();
        for at in &alive {
            assert_eq!((at, self.nodes[*at].exchange.requests()), (at, 0), "somebody waits, and nothing is on its way");
        }
        for at in &alive {
            let (base, bytes) = (BASE + ((*at as u64) << POOL_BITS), 1 << POOL_BITS);
            let pool = self.nodes[*at].pool;
            let mut rounds = 0;
            while let Err(why) = self.nodes[*at].core.revoke(pool) {
                assert_eq!(why, KernelError::RemoteCopies);
                rounds += 1;
                assert!(rounds < 5, "core {at} does not get its memory back");
                if self.asks {
                    self.nodes[*at].exchange.recall(pid_base(*at as u64) | CLIENT, base, bytes, Who::Sender);
                } else {
                    self.nodes[*at].exchange.poll();
                }
                self.run_until_idle();
            }
        }
        // Cores that awaited nothing of the stopped ones have not been told, unless another had checked.
        self.network.unaware.extend(self.silent.iter().flat_map(|lost| alive.iter().map(|at| (*at, *lost))));
        self.run_until_idle();
        for at in &alive {
            self.nodes[*at].exchange.discard_for(CLIENT);
            self.nodes[*at].exchange.forget(usize::MAX, |_| true);
            self.nodes[*at].exchange.poll();
        }
        self.run_until_idle();
        self.judge();
        for at in alive {
            self.nodes[at].check_empty(at);
        }
    }
}

impl Node {
    fn new(at: u8, count: u8) -> Node {
        let (core, pool) = Core::new(at.into());
        let mut exchange = Exchange::new(at.into(), count.into(), core.clone()).expect("there are not so many");
        (0..count).filter(|other| *other != at).for_each(|other| exchange.connect(number(other.into())));
        let (clients, deleting) = (Vec::new(), VecDeque::new());
        Node { core, exchange, pool, clients, deleting, transfers: 0 }
    }

    /// Drops slots of clients whose capabilities were revoked.
    fn sweep(&mut self) {
        let core = self.core.clone();
        self.clients.retain(|slot| core.held(*slot).is_some() || core.delete(*slot).is_err());
    }

    fn finish_deletion(&mut self) {
        let Some((object, slot)) = self.deleting.pop_front() else { return };
        match self.core.revoke(slot) {
            // The memory around it may have been revoked here before.
            Ok(()) | Err(KernelError::InvalidCapability) => self.exchange.deleted(object),
            // A client made something of it and is just sending it; that is revoked first.
            Err(why) => {
                assert_eq!(why, KernelError::RemoteCopies);
                self.deleting.push_back((object, slot));
            }
        }
    }

    fn check_empty(&mut self, at: usize) {
        self.sweep();
        assert_eq!((at, self.exchange.count(), self.exchange.requests()), (at, (0, 0, 0), 0));
        assert_eq!((at, self.exchange.faults()), (at, 0));
        assert_eq!((at, self.core.children(self.pool)), (at, 0), "something is left in the memory");
        assert_eq!((at, &self.clients), (at, &vec![]));
        let lost: Vec<_> = self.core.taken_slots().into_iter().map(|slot| (slot, self.core.held(slot))).collect();
        assert_eq!((at, lost), (at, vec![]), "slots are lost");
    }
}
