//! Helping, specified plainly: what each thread runs on follows from the threads that wait for it, computed from
//! scratch each time.
//!
//! Two things are remembered: the priority at which a thread may finish by itself what it has begun for a thread that
//! can no longer help, and whether the time until which it wanted to wait has passed meanwhile.

use tench_kernel::helping::heights::MAX_HEIGHT;

use crate::messages::{Doing, World};

/// A scheduling context, at a priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The context; `None` if the thread cannot run.
    pub context: Option<usize>,
    /// The context's priority, or less.
    pub priority: u64,
}

impl World {
    /// Returns the priority at which a thread runs, if it has a context.
    pub fn priority(&self, thread: usize) -> Option<u64> {
        let standing = self.standings.get(thread).copied().unwrap_or_default();
        standing.context.map(|_| standing.priority)
    }

    /// Returns the thread for which a thread waits.
    fn server(&self, thread: usize) -> Option<usize> {
        match self.threads[thread].doing {
            Doing::AwaitingReply { reply } if !self.threads[thread].is_helpless => (0..self.threads.len())
                .find(|other| self.current_reply(*other) == Some(reply) && !self.threads[*other].is_deferred),
            Doing::Sending { endpoint, .. } if !self.threads[thread].is_helpless => self.serving(endpoint),
            _ => None,
        }
    }

    /// Returns the reply object with which a thread has received last: the thread works for the caller in it.
    pub(crate) fn current_reply(&self, thread: usize) -> Option<usize> {
        self.threads[thread].other_reply.or(self.threads[thread].bound_reply)
    }

    /// Returns the thread that serves an endpoint.
    pub(crate) fn serving(&self, endpoint: usize) -> Option<usize> {
        self.threads.iter().position(|other| other.serves == Some(endpoint))
    }

    /// Begins a thread's wait, at an endpoint or for a reply: the thread helps if it may. Callers that make it too high
    /// for that stop helping, but not on behalf of an endpoint that no thread serves.
    pub(crate) fn join(&mut self, thread: usize) {
        self.threads[thread].is_helpless = true;
        let most = match self.threads[thread].doing {
            Doing::Sending { endpoint, .. } => self.max_sender(endpoint),
            _ => MAX_HEIGHT - 1,
        };
        if !matches!(self.threads[thread].doing, Doing::Sending { endpoint, .. } if self.serving(endpoint).is_none()) {
            self.lower(thread, most);
        }
        self.threads[thread].is_helpless = self.heights()[thread] > most || !self.may_join(thread);
    }

    /// Returns the maximum height with which a sender helps at an endpoint.
    fn max_sender(&self, endpoint: usize) -> u8 {
        self.serving(endpoint).map_or(1, |server| MAX_HEIGHT - 1 - self.threads[server].depth)
    }

    /// Lowers a thread to a height of at most `most`: callers that make it higher stop helping.
    fn lower(&mut self, thread: usize, most: u8) {
        while let Some(caller) = self.excess_caller(thread, most) {
            self.stop_helping(caller);
        }
    }

    /// Returns the first of the callers that make a thread higher than `most`: each of the others is a server that is
    /// higher than its depth allows.
    fn excess_caller(&self, thread: usize, most: u8) -> Option<usize> {
        let heights = self.heights();
        let caller = self.caller(thread).filter(|caller| heights[*caller] + 1 > most)?;
        let allowed = MAX_HEIGHT - self.threads[caller].depth.max(1);
        Some(self.excess_caller(caller, allowed).unwrap_or(caller))
    }

    /// Ends a caller's help for the rest of this wait.
    fn stop_helping(&mut self, caller: usize) {
        let server = self.works_for(caller);
        self.threads[caller].is_helpless = true;
        self.update_standings();
        if let Some(server) = server {
            self.abandon(server, caller);
        }
        self.update_standings();
    }

    /// Returns true if a waiting thread may help: that raises no height too far, and the thread does not wait for
    /// itself by any path.
    fn may_join(&mut self, thread: usize) -> bool {
        let before = self.heights();
        self.threads[thread].is_helpless = false;
        let (after, stable) = self.rounds();
        self.threads[thread].is_helpless = true;
        stable
            && (0..self.threads.len()).all(|other| {
                let most = match self.threads[other].doing {
                    Doing::Sending { endpoint, .. } if !self.threads[other].is_helpless => self.max_sender(endpoint),
                    _ => MAX_HEIGHT,
                };
                after[other] <= before[other].max(most)
            })
    }

    /// Updates the help after a thread's current reply object has become another without a receive. The caller in it
    /// helps again, if it may.
    pub(crate) fn rejoin(&mut self, thread: usize) {
        if let Some(caller) = self.caller(thread) {
            self.threads[caller].is_helpless = true;
            self.lower(caller, MAX_HEIGHT - 1);
            if self.may_join(caller) {
                self.threads[caller].is_helpless = false;
            } else {
                self.abandon(thread, caller);
            }
        }
        self.update_standings();
    }

    /// Returns each thread's height, computed from scratch: how many threads wait for each other behind it. A height is
    /// greater than that of each thread that helps, where senders of heights 2 and 3 to a thread without depth count
    /// alike.
    fn heights(&self) -> Vec<u8> {
        self.rounds().0
    }

    /// Returns each thread's height, and whether the heights are final: rings go on for ever.
    fn rounds(&self) -> (Vec<u8>, bool) {
        let mut heights = vec![0; self.threads.len()];
        // Each round finds the heights that are one greater.
        for _ in 0..=2 * MAX_HEIGHT {
            let mut next = vec![0; self.threads.len()];
            for (thread, height) in heights.iter().copied().enumerate() {
                let is_sender = matches!(self.threads[thread].doing, Doing::Sending { .. });
                if let Some(server) = self.server(thread) {
                    let is_unknown = is_sender && height == 2 && self.threads[server].depth == 0;
                    let given = if is_unknown { MAX_HEIGHT } else { height + 1 };
                    next[server] = given.max(next[server]);
                }
            }
            if next == heights {
                return (heights, true);
            }
            heights = next;
        }
        (heights, false)
    }

    /// Returns the caller for whom a thread works.
    pub(crate) fn caller(&self, thread: usize) -> Option<usize> {
        let calls = |other: &usize| matches!(self.threads[*other].doing, Doing::AwaitingReply { .. });
        (0..self.threads.len()).filter(calls).find(|other| self.server(*other) == Some(thread))
    }

    /// Returns the senders at an endpoint, in the order in which they are received.
    pub(crate) fn senders(&self, endpoint: usize) -> Vec<usize> {
        let sends = |thread: &usize| matches!(self.threads[*thread].doing, Doing::Sending { .. });
        let mut senders: Vec<usize> = self.endpoints[endpoint].iter().copied().filter(sends).collect();
        // Stable: equals stay in the order of their arrival. Threads without a context, or that wait for themselves,
        // come last.
        let rank = |thread: usize| match self.priority(thread) {
            Some(priority) if !self.threads[thread].is_helpless => priority as i64,
            _ => -1,
        };
        senders.sort_by_key(|thread| std::cmp::Reverse(rank(*thread)));
        senders
    }

    /// Returns the context that a waiting thread offers to the thread for which it waits.
    fn offer(standings: &[Standing], waiter: usize) -> Option<Standing> {
        let standing = standings[waiter];
        standing.context.is_some().then_some(standing)
    }

    /// Returns a thread's own context, at a priority of at most `cap`.
    fn own(&self, thread: usize, cap: Option<u64>) -> Standing {
        let context = self.threads[thread].own;
        let priority = context.map_or(0, |context| self.priorities[context].min(cap.unwrap_or(u64::MAX)));
        Standing { context, priority }
    }

    /// Returns what a thread runs on, if the threads that wait for it run on these contexts.
    fn best(&self, standings: &[Standing], thread: usize) -> Standing {
        let t = &self.threads[thread];
        let caller = self.caller(thread);
        let mut best =
            caller.and_then(|caller| Self::offer(standings, caller)).unwrap_or_else(|| self.own(thread, t.cap));
        let is_signalled = t.bound_notification.is_some_and(|bound| self.notifications[bound].0 != 0);
        let urgent = (is_signalled || t.is_alarmed).then(|| self.own(thread, None));
        let first = t.serves.and_then(|endpoint| self.senders(endpoint).first().copied());
        let first = first.filter(|first| !self.threads[*first].is_helpless);
        let first = first.and_then(|first| Self::offer(standings, first));
        let rank = |standing: &Standing| standing.context.map_or(-1, |_| standing.priority as i64);
        for other in urgent.into_iter().chain(first) {
            if rank(&other) > rank(&best) {
                best = other;
            }
        }
        best
    }

    /// Returns the urgency of work that was begun on a context and is finished on another: at most the limit of the
    /// thread to which the context is bound.
    fn urgency(&self, context: usize) -> u64 {
        let owner = self.threads.iter().find(|thread| thread.own == Some(context));
        owner.and_then(|owner| owner.cap).unwrap_or(u64::MAX).min(self.priorities[context])
    }

    /// Recomputes what all threads run on after a change. A thread that its caller can no longer help remembers how
    /// urgent the caller's request was.
    pub(crate) fn update_standings(&mut self) {
        let before = self.standings.clone();
        loop {
            self.standings = self.worked_out();
            let mut is_stable = true;
            for thread in 0..self.threads.len() {
                let Some(caller) = self.caller(thread) else { continue };
                if Self::offer(&self.standings, caller).is_some() {
                    continue;
                }
                let known = self.standings[caller].context.map(|context| self.urgency(context));
                let had = before.get(thread).copied().unwrap_or_default();
                let had = had.context.filter(|context| Some(*context) != self.threads[thread].own);
                let begun = self.threads[caller].cap.unwrap_or(u64::MAX);
                let had = had.map(|context| self.urgency(context).min(begun));
                let cap = known.or(self.threads[thread].cap).or(had);
                let cap = Some(cap.unwrap_or(0));
                is_stable &= self.threads[thread].cap == cap;
                self.threads[thread].cap = cap;
            }
            if is_stable {
                return;
            }
        }
    }

    /// Computes what all threads run on: at first none runs on anything, then each looks at the threads that wait for
    /// it, until nothing changes.
    fn worked_out(&mut self) -> Vec<Standing> {
        self.standings = vec![Standing::default(); self.threads.len()];
        for _ in 0..4 * self.threads.len() {
            let next = (0..self.threads.len()).map(|thread| self.best(&self.standings, thread)).collect();
            if self.standings == next {
                break;
            }
            self.standings = next;
        }
        self.standings.clone()
    }

    /// Begins a thread's work for a caller.
    pub(crate) fn work_for(&mut self, thread: usize, caller: usize) {
        if self.threads[caller].is_helpless || Self::offer(&self.standings, caller).is_none() {
            let context = self.standings[caller].context;
            self.threads[thread].cap = Some(context.map_or(0, |context| self.urgency(context)));
        }
    }

    /// Begins a thread's work on a message for which no thread waits. A thread that serves an endpoint is no more
    /// urgent than the sender.
    pub(crate) fn limit_unhelped(&mut self, thread: usize, sender: usize) {
        if self.threads[thread].serves.is_some() {
            let context = self.standings[sender].context;
            self.threads[thread].cap = Some(context.map_or(0, |context| self.urgency(context)));
        }
    }

    /// Ends a thread's work for a caller that leaves without a reply.
    pub(crate) fn abandon(&mut self, thread: usize, caller: usize) {
        let known = self.standings[caller].context;
        let had = self.standings[thread].context.filter(|context| Some(*context) != self.threads[thread].own);
        let begun = self.threads[caller].cap.unwrap_or(u64::MAX);
        let priority = |context: Option<usize>| context.map(|context| self.urgency(context));
        let had = priority(had).map(|priority| priority.min(begun));
        let cap = priority(known).or(self.threads[thread].cap).or(had);
        self.threads[thread].cap = Some(cap.unwrap_or(0));
    }

    /// Returns the thread for which a caller waits, if it works for that caller.
    pub(crate) fn works_for(&self, caller: usize) -> Option<usize> {
        let calls = matches!(self.threads[caller].doing, Doing::AwaitingReply { .. });
        self.server(caller).filter(|_| calls)
    }
}
