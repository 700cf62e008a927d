//! Supervision decides which servers are restarted when they end, and when, and keeps the clients that wait for that.
//!
//! ```text
//!          ended                 its time has come, and it starts
//!  Up ─────────────▶ Down until … ─────────────────────────────────▶ Up
//!   │                     ▲  │
//!   │ ended too often     └──┘ it does not start
//!   └──────▶ given up ◀──────┘ too often
//! ```
//! Times are in ticks of the system counter.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench_quota::{Client, allows};

/// Maximum number of threads that can wait for one server at a time.
pub const MAX_WAITERS: usize = 256;

/// Policy by which a server is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Maximum number of restarts within `window`.
    pub attempts: u32,
    /// Ticks before the first restart; doubled for each further one within `window`.
    pub delay: u64,
    /// Ticks over which ends are counted.
    pub window: u64,
}

impl Policy {
    /// Returns the ticks before the `number`th start within `window`.
    fn wait(&self, number: usize) -> u64 {
        self.delay.saturating_mul(1 << (number.saturating_sub(1)).min(20))
    }
}

/// State of a supervised server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The server runs, as this process.
    Up(u64),
    /// The server is restarted at this time.
    Down(u64),
    /// The server has ended too often.
    GivenUp,
}

/// A supervised server. `P` is what it takes to start it, `W` what it takes to reply to a waiter later.
pub struct Service<P, W> {
    /// Well-known name of the server.
    pub name: &'static str,
    /// Data needed to start it.
    pub plan: P,
    state: State,
    policy: Policy,
    /// Times of its ends, latest last; no more than the policy considers.
    ends: VecDeque<u64>,
    /// Clients that wait for the server.
    waiters: Vec<(Client, W)>,
    /// Ended processes of which it has not been told.
    missed: Vec<Client>,
}

impl<P, W> Service<P, W> {
    /// Returns the service's state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Lets a client wait until the server runs, if its family has room for one more and `keep` returns a waiter.
    /// Returns whether the client waits.
    pub fn wait(&mut self, client: Client, keep: impl FnOnce() -> Option<W>) -> bool {
        let own = self.waiters.iter().filter(|(waiter, _)| waiter.family == client.family).count();
        if !allows(own, self.waiters.len(), MAX_WAITERS) {
            return false;
        }
        let Some(waiter) = keep() else { return false };
        self.waiters.push((client, waiter));
        true
    }

    /// Records that the server has not been told of an ended process. A server that is given up is never told.
    pub fn miss(&mut self, ended: Client) {
        if self.state != State::GivenUp {
            self.missed.push(ended);
        }
    }

    /// Handles an end or a failed start. Returns the waiters, if the server is given up.
    fn fail(&mut self, now: u64) -> Vec<(Client, W)> {
        let window = self.policy.window;
        self.ends.retain(|end| now.saturating_sub(*end) < window);
        self.ends.push_back(now);
        if self.ends.len() > self.policy.attempts as usize {
            self.state = State::GivenUp;
            self.missed.clear();
            return core::mem::take(&mut self.waiters);
        }
        self.state = State::Down(now.saturating_add(self.policy.wait(self.ends.len())));
        Vec::new()
    }
}

/// Consequence of a process's end.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<W> {
    /// The process is not supervised.
    NotSupervised,
    /// The server of this name is restarted.
    Again(&'static str),
    /// The server of this name is given up; these have waited for it.
    GivenUp(&'static str, Vec<(Client, W)>),
}

/// Waiters and ends that have accumulated for a server that runs again.
pub struct Started<W> {
    /// Clients that have waited for it.
    pub waiters: Vec<(Client, W)>,
    /// Processes that ended meanwhile.
    pub missed: Vec<Client>,
}

/// All supervised servers.
pub struct Supervisor<P, W> {
    services: Vec<Service<P, W>>,
    /// Index of the server that is next to be told of an end that it missed.
    turn: usize,
    /// Earliest time at which a server is to be started, checked with each request; [`NEVER`] if there is none.
    next: u64,
}

/// Later than any time.
const NEVER: u64 = u64::MAX;

impl<P, W> Default for Supervisor<P, W> {
    fn default() -> Self {
        Supervisor { services: Vec::new(), turn: 0, next: NEVER }
    }
}

impl<P, W> Supervisor<P, W> {
    /// Adds a server that runs as a process. Servers are identified by name, so if the name is taken, `plan` is
    /// returned.
    pub fn add(&mut self, name: &'static str, plan: P, policy: Policy, process: u64) -> Result<(), P> {
        if self.state(name).is_some() {
            return Err(plan);
        }
        let state = State::Up(process);
        let (ends, waiters, missed) = (VecDeque::new(), Vec::new(), Vec::new());
        self.services.push(Service { name, plan, state, policy, ends, waiters, missed });
        Ok(())
    }

    /// Returns the server of this name, to change it.
    pub fn find(&mut self, name: &str) -> Option<&mut Service<P, W>> {
        self.services.iter_mut().find(|service| service.name == name)
    }

    /// Returns the server of this name.
    pub fn get(&self, name: &str) -> Option<&Service<P, W>> {
        self.services.iter().find(|service| service.name == name)
    }

    /// Returns the state of the server of this name.
    pub fn state(&self, name: &str) -> Option<State> {
        self.get(name).map(Service::state)
    }

    /// Returns the server that runs as this process.
    pub fn of_process(&mut self, process: u64) -> Option<&mut Service<P, W>> {
        self.services.iter_mut().find(|service| service.state == State::Up(process))
    }

    /// Takes out an ended process that a running server has missed, and returns it with the server's name. Such servers
    /// take turns, since one that does not reply must not keep the others from being told.
    pub fn missed(&mut self) -> Option<(&'static str, Client)> {
        let count = self.services.len();
        let wants = |service: &Service<P, W>| matches!(service.state, State::Up(_)) && !service.missed.is_empty();
        let index = (0..count).map(|step| (self.turn + step) % count).find(|index| wants(&self.services[*index]))?;
        self.turn = index + 1;
        let service = &mut self.services[index];
        Some((service.name, service.missed.remove(0)))
    }

    /// Returns the earliest time at which a server is to be started.
    #[inline]
    pub const fn next_deadline(&self) -> Option<u64> {
        if self.next == NEVER { None } else { Some(self.next) }
    }

    /// Recomputes `next`.
    fn look_ahead(&mut self) {
        let starts = self.services.iter().filter_map(|service| match service.state {
            State::Down(until) => Some(until),
            State::Up(_) | State::GivenUp => None,
        });
        self.next = starts.min().unwrap_or(NEVER);
    }

    /// Returns a server whose time to be started has come.
    #[inline]
    pub fn due(&self, now: u64) -> Option<&'static str> {
        if now < self.next { None } else { self.first_due(now) }
    }

    fn first_due(&self, now: u64) -> Option<&'static str> {
        let is_due = |service: &&Service<P, W>| matches!(service.state, State::Down(until) if until <= now);
        self.services.iter().find(is_due).map(|service| service.name)
    }

    /// Handles the end of a process. Returns the consequence, and the process's own waiters, which wait no more.
    pub fn ended(&mut self, process: u64, now: u64) -> (Verdict<W>, Vec<W>) {
        let mut gone = Vec::new();
        for service in &mut self.services {
            gone.extend(
                service.waiters.extract_if(.., |(waiter, _)| waiter.process == process).map(|(_, waiter)| waiter),
            );
        }
        let Some(service) = self.of_process(process) else {
            return (Verdict::NotSupervised, gone);
        };
        let name = service.name;
        let in_vain = service.fail(now);
        let verdict =
            if service.state == State::GivenUp { Verdict::GivenUp(name, in_vain) } else { Verdict::Again(name) };
        self.look_ahead();
        (verdict, gone)
    }

    /// Records that a server runs again, as this process.
    pub fn started(&mut self, name: &str, process: u64) -> Option<Started<W>> {
        let service = self.find(name)?;
        service.state = State::Up(process);
        let started =
            Started { waiters: core::mem::take(&mut service.waiters), missed: core::mem::take(&mut service.missed) };
        self.look_ahead();
        Some(started)
    }

    /// Handles a failed start of a server. Returns the waiters, if the server is given up.
    pub fn not_started(&mut self, name: &str, now: u64) -> Vec<(Client, W)> {
        let in_vain = self.find(name).map(|service| service.fail(now)).unwrap_or_default();
        self.look_ahead();
        in_vain
    }
}
