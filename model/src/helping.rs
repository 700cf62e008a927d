//! Helping, said plainly: what each thread runs on follows from who waits for it, worked out from nothing each time.
//!
//! Two things are remembered: at which priority somebody may finish by himself what he has begun for one who cannot
//! help any more, and whether the time for which he wanted to wait has passed meanwhile.

use tench_kernel::helping::heights::MAX_HEIGHT;

use crate::messages::{Doing, World};

/// A scheduling context, at a priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The context; `None`: the thread cannot run.
    pub context: Option<usize>,
    /// Its priority, or less.
    pub priority: u64,
}

impl World {
    /// The priority at which a thread runs, if it has time.
    pub fn priority(&self, thread: usize) -> Option<u64> {
        let standing = self.standings.get(thread).copied().unwrap_or_default();
        standing.context.map(|_| standing.priority)
    }

    /// The thread for which one waits.
    fn server(&self, thread: usize) -> Option<usize> {
        match self.threads[thread].doing {
            Doing::AwaitingReply { reply } if !self.threads[thread].is_helpless => (0..self.threads.len())
                .find(|other| self.current_reply(*other) == Some(reply) && !self.threads[*other].is_aside),
            Doing::Sending { endpoint, .. } if !self.threads[thread].is_helpless => self.serving(endpoint),
            _ => None,
        }
    }

    /// The reply object with which a thread has received last: the caller in it is the one for whom it works.
    pub(crate) fn current_reply(&self, thread: usize) -> Option<usize> {
        self.threads[thread].other_reply.or(self.threads[thread].bound_reply)
    }

    /// The thread that serves an endpoint.
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

    /// Returns the first of the callers that make a thread higher than that: each of the others is a server that is
    /// higher than its depth allows.
    fn excess_caller(&self, thread: usize, most: u8) -> Option<usize> {
        let heights = self.heights();
        let caller = self.caller(thread).filter(|caller| heights[*caller] + 1 > most)?;
        let allowed = MAX_HEIGHT - self.threads[caller].depth.max(1);
        Some(self.excess_caller(caller, allowed).unwrap_or(caller))
    }

    /// A caller helps no more in this wait.
    fn stop_helping(&mut self, caller: usize) {
        let server = self.works_for(caller);
        self.threads[caller].is_helpless = true;
        self.settle();
        if let Some(server) = server {
            self.abandon(server, caller);
        }
        self.settle();
    }

    /// Whether a thread that waits may help: nobody gets too high by that, and it waits for itself by no way.
    fn may_join(&mut self, thread: usize) -> bool {
        let before = self.heights();
        self.threads[thread].is_helpless = false;
        let (after, settled) = self.rounds();
        self.threads[thread].is_helpless = true;
        settled
            && (0..self.threads.len()).all(|other| {
                let most = match self.threads[other].doing {
                    Doing::Sending { endpoint, .. } if !self.threads[other].is_helpless => self.max_sender(endpoint),
                    _ => MAX_HEIGHT,
                };
                after[other] <= before[other].max(most)
            })
    }

    /// A thread's current reply object is another without its having received. Who is the caller in it helps again, if
    /// he may.
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
        self.settle();
    }

    /// How many threads wait for each other behind each thread, worked out from nothing: more than behind each who
    /// helps it, where senders of 2 and 3 to a thread without depth count alike.
    fn heights(&self) -> Vec<u8> {
        self.rounds().0
    }

    /// The same, and whether that is all: rings go on for ever.
    fn rounds(&self) -> (Vec<u8>, bool) {
        let mut heights = vec![0; self.threads.len()];
        // Each round finds those of one more.
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

    /// The caller for whom a thread works.
    pub(crate) fn caller(&self, thread: usize) -> Option<usize> {
        let calls = |other: &usize| matches!(self.threads[*other].doing, Doing::AwaitingReply { .. });
        (0..self.threads.len()).filter(calls).find(|other| self.server(*other) == Some(thread))
    }

    /// The senders at an endpoint, in the order in which they are received.
    pub(crate) fn senders(&self, endpoint: usize) -> Vec<usize> {
        let sends = |thread: &usize| matches!(self.threads[*thread].doing, Doing::Sending { .. });
        let mut senders: Vec<usize> = self.endpoints[endpoint].iter().copied().filter(sends).collect();
        // Stable: equals stay in the order of their arrival. Who has no time, or waits for himself, comes last, and who
        // came when nobody served the endpoint first.
        let rank = |thread: usize| match self.priority(thread) {
            _ if self.threads[thread].is_early => 256,
            Some(priority) if !self.threads[thread].is_helpless => priority as i64,
            _ => -1,
        };
        senders.sort_by_key(|thread| std::cmp::Reverse(rank(*thread)));
        senders
    }

    /// What somebody who waits offers to the one for whom he waits.
    fn offer(standings: &[Standing], waiter: usize) -> Option<Standing> {
        let standing = standings[waiter];
        standing.context.is_some().then_some(standing)
    }

    /// What a thread has of its own, at no more than a priority.
    fn own(&self, thread: usize, cap: Option<u64>) -> Standing {
        let context = self.threads[thread].own;
        let priority = context.map_or(0, |context| self.priorities[context].min(cap.unwrap_or(u64::MAX)));
        Standing { context, priority }
    }

    /// What a thread runs on, if those who wait for it run on these.
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

    /// How urgent it is what was begun on a context, if it is finished on another: no more than that of whoever has the
    /// context.
    fn urgency(&self, context: usize) -> u64 {
        let owner = self.threads.iter().find(|thread| thread.own == Some(context));
        owner.and_then(|owner| owner.cap).unwrap_or(u64::MAX).min(self.priorities[context])
    }

    /// Something has happened: everybody runs on whatever is best now. Who cannot be helped any more by his caller
    /// remembers how important that was.
    pub(crate) fn settle(&mut self) {
        let before = self.standings.clone();
        loop {
            self.standings = self.worked_out();
            let mut is_settled = true;
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
                is_settled &= self.threads[thread].cap == cap;
                self.threads[thread].cap = cap;
            }
            if is_settled {
                return;
            }
        }
    }

    /// Nobody runs on anything at first, and each looks at those who wait for it until nothing changes.
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

    /// A thread works for a caller from now on.
    pub(crate) fn begin(&mut self, thread: usize, caller: usize) {
        if self.threads[caller].is_helpless || Self::offer(&self.standings, caller).is_none() {
            let context = self.standings[caller].context;
            self.threads[thread].cap = Some(context.map_or(0, |context| self.urgency(context)));
        }
    }

    /// A thread has received what nobody waits for. If it serves others, it is no more urgent than who has sent that.
    pub(crate) fn begin_unhelped(&mut self, thread: usize, sender: usize) {
        if self.threads[thread].serves.is_some() {
            let context = self.standings[sender].context;
            self.threads[thread].cap = Some(context.map_or(0, |context| self.urgency(context)));
        }
    }

    /// A thread's caller goes without an answer.
    pub(crate) fn abandon(&mut self, thread: usize, caller: usize) {
        let known = self.standings[caller].context;
        let had = self.standings[thread].context.filter(|context| Some(*context) != self.threads[thread].own);
        let begun = self.threads[caller].cap.unwrap_or(u64::MAX);
        let priority = |context: Option<usize>| context.map(|context| self.urgency(context));
        let had = priority(had).map(|priority| priority.min(begun));
        let cap = priority(known).or(self.threads[thread].cap).or(had);
        self.threads[thread].cap = Some(cap.unwrap_or(0));
    }

    /// The thread for which somebody waits, if it works for him.
    pub(crate) fn works_for(&self, caller: usize) -> Option<usize> {
        let calls = matches!(self.threads[caller].doing, Doing::AwaitingReply { .. });
        self.server(caller).filter(|_| calls)
    }
}
