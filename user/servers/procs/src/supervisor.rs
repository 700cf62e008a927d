//! Which servers are started again when they end, when, and who waits for that.
//!
//! ```text
//!          ended                 its time has come, and it starts
//!  Up ─────────────▶ Down until … ─────────────────────────────────▶ Up
//!   │                     ▲  │
//!   │ ended too often     └──┘ it does not start
//!   └──────▶ given up ◀──────┘ too often
//! ```
//! Time is in ticks of the system counter.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench_places::{Client, allows};

/// Threads that can wait for one server at the same time.
pub const MAX_WAITERS: usize = 256;

/// How a server is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How often within a window.
    pub attempts: u32,
    /// Ticks until the first time; twice as many each further time within a window.
    pub delay: u64,
    /// Ticks of a window.
    pub window: u64,
}

impl Policy {
    /// Ticks until the `number`th start within a window.
    fn wait(&self, number: usize) -> u64 {
        self.delay.saturating_mul(1 << (number.saturating_sub(1)).min(20))
    }
}

/// What a supervised server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, as this process.
    Up(u64),
    /// It is started again at this time.
    Down(u64),
    /// It has ended too often.
    GivenUp,
}

/// A supervised server. `P` is what it takes to start it, `W` what it takes to answer somebody later.
pub struct Service<P, W> {
    /// What everybody calls it.
    pub name: &'static str,
    /// What it takes to start it.
    pub plan: P,
    state: State,
    policy: Policy,
    /// When it ended, the latest last; no more than the policy looks at.
    ends: VecDeque<u64>,
    /// Clients that wait for it.
    waiters: Vec<(Client, W)>,
    /// Processes that have ended and that it has not been told of.
    missed: Vec<Client>,
}

impl<P, W> Service<P, W> {
    /// What it does.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Somebody waits until it runs, if there is room for one more of its family and `keep` answers who. Answers
    /// whether.
    pub fn wait(&mut self, client: Client, keep: impl FnOnce() -> Option<W>) -> bool {
        let own = self.waiters.iter().filter(|(waiter, _)| waiter.family == client.family).count();
        if !allows(own, self.waiters.len(), MAX_WAITERS) {
            return false;
        }
        let Some(waiter) = keep() else { return false };
        self.waiters.push((client, waiter));
        true
    }

    /// It has not been told that a process has ended. One that is given up never will be.
    pub fn miss(&mut self, ended: Client) {
        if self.state != State::GivenUp {
            self.missed.push(ended);
        }
    }

    /// It has ended, or could not be started. Answers who waits in vain, if it is given up.
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

/// What follows from the end of a process.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<W> {
    /// It is not supervised.
    NotSupervised,
    /// The server of this name is started again.
    Again(&'static str),
    /// The server of this name is not started again; these have waited for it.
    GivenUp(&'static str, Vec<(Client, W)>),
}

/// What has waited for a server that runs now.
pub struct Started<W> {
    /// Who has waited for it.
    pub waiters: Vec<(Client, W)>,
    /// Processes that ended meanwhile.
    pub missed: Vec<Client>,
}

/// All supervised servers.
pub struct Supervisor<P, W> {
    services: Vec<Service<P, W>>,
    /// Whose turn it is to be told what it missed.
    turn: usize,
    /// The earliest time at which something is to be started, for which the server looks with each request; [`NEVER`]
    /// if nothing is.
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
    /// A server that runs as a process. What is done about a server is done by its
    /// name, so of a name that there is already, the plan comes back.
    pub fn add(&mut self, name: &'static str, plan: P, policy: Policy, process: u64) -> Result<(), P> {
        if self.state(name).is_some() {
            return Err(plan);
        }
        let state = State::Up(process);
        let (ends, waiters, missed) = (VecDeque::new(), Vec::new(), Vec::new());
        self.services.push(Service { name, plan, state, policy, ends, waiters, missed });
        Ok(())
    }

    /// The server of a name.
    pub fn find(&mut self, name: &str) -> Option<&mut Service<P, W>> {
        self.services.iter_mut().find(|service| service.name == name)
    }

    /// What the server of a name does.
    pub fn state(&self, name: &str) -> Option<State> {
        self.services.iter().find(|service| service.name == name).map(Service::state)
    }

    /// Takes out a process of which a server that runs has not been told, and the server's name: of each such server in
    /// turn, since one that does not answer must not keep the others from it.
    pub fn missed(&mut self) -> Option<(&'static str, Client)> {
        let count = self.services.len();
        let wants = |service: &Service<P, W>| matches!(service.state, State::Up(_)) && !service.missed.is_empty();
        let place = (0..count).map(|step| (self.turn + step) % count).find(|place| wants(&self.services[*place]))?;
        self.turn = place + 1;
        let service = &mut self.services[place];
        Some((service.name, service.missed.remove(0)))
    }

    /// The earliest time at which something is to be started.
    #[inline]
    pub const fn next_deadline(&self) -> Option<u64> {
        if self.next == NEVER { None } else { Some(self.next) }
    }

    /// Works that time out anew.
    fn look_ahead(&mut self) {
        let starts = self.services.iter().filter_map(|service| match service.state {
            State::Down(until) => Some(until),
            State::Up(_) | State::GivenUp => None,
        });
        self.next = starts.min().unwrap_or(NEVER);
    }

    /// A server whose time to be started has come.
    #[inline]
    pub fn due(&self, now: u64) -> Option<&'static str> {
        if now < self.next { None } else { self.first_due(now) }
    }

    fn first_due(&self, now: u64) -> Option<&'static str> {
        let is_due = |service: &&Service<P, W>| matches!(service.state, State::Down(until) if until <= now);
        self.services.iter().find(is_due).map(|service| service.name)
    }

    /// A process has ended; and nobody of it waits any more.
    pub fn ended(&mut self, process: u64, now: u64) -> (Verdict<W>, Vec<W>) {
        let mut gone = Vec::new();
        for service in &mut self.services {
            gone.extend(
                service.waiters.extract_if(.., |(waiter, _)| waiter.process == process).map(|(_, waiter)| waiter),
            );
        }
        let Some(service) = self.services.iter_mut().find(|service| service.state == State::Up(process)) else {
            return (Verdict::NotSupervised, gone);
        };
        let name = service.name;
        let in_vain = service.fail(now);
        let verdict =
            if service.state == State::GivenUp { Verdict::GivenUp(name, in_vain) } else { Verdict::Again(name) };
        self.look_ahead();
        (verdict, gone)
    }

    /// A server runs again, as this process.
    pub fn started(&mut self, name: &str, process: u64) -> Option<Started<W>> {
        let service = self.find(name)?;
        service.state = State::Up(process);
        let started =
            Started { waiters: core::mem::take(&mut service.waiters), missed: core::mem::take(&mut service.missed) };
        self.look_ahead();
        Some(started)
    }

    /// A server could not be started. Answers who waits in vain, if it is given up.
    pub fn not_started(&mut self, name: &str, now: u64) -> Vec<(Client, W)> {
        let in_vain = self.find(name).map(|service| service.fail(now)).unwrap_or_default();
        self.look_ahead();
        in_vain
    }
}
