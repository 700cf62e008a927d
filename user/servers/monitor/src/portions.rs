//! How much of this core's processor other cores may have.
//!
//! What another core asks is done here, by the monitor and its workers: that is time of this core, on nobody's budget.
//! Each core has an account. What is done for it is taken off; what comes in is a share of the time for all of them
//! together, and all the time in which this core has nothing to do. Of a core whose account is empty nothing more is
//! taken in until something has come: its messages stay in its channel, which fills, so in the end it is its own
//! programs that wait. So others have what nobody here wants, and their share besides.
//!
//! ```text
//!              a fifth of the time, and what is idle
//!                       │ in equal parts, to those whose accounts are not full
//!            ┌──────────┼──────────┐
//!         core 1     core 2     core 3         each holds a millisecond at most
//!            └──────────┼──────────┘
//!                       ▼ what was done for them
//! ```
//! An account can be overdrawn: what a request costs is known when it is done. Then more has to come in before the next
//! is taken in.

use alloc::vec::Vec;

/// Of the time, what all others may have together while there is something else to do, in percent.
pub const SHARE: u64 = 20;
/// An account holds the time of a second divided by this.
const MOST: u64 = 1000;
/// An account is at most so many times overdrawn by what it holds at most: so nobody has to wait for ever.
const OVERDRAFT: i64 = 20;
/// Parts of a tick that are counted.
const PARTS: u64 = 100;

/// The accounts, and when something came in.
#[derive(Debug)]
pub struct Portions {
    /// Of each core, in parts of a tick.
    accounts: Vec<(u64, i64)>,
    /// What each holds at most.
    most: i64,
    /// Ticks at which something came in, and how many had been idle until then.
    last: (u64, u64),
}

impl Portions {
    /// Nobody has used anything, at a time and with so many idle ticks before it. So many ticks are a second.
    pub fn new(per_second: u64, now: u64, idle: u64) -> Portions {
        let most = i64::try_from(per_second / MOST * PARTS).unwrap_or(i64::MAX / OVERDRAFT);
        Portions { accounts: Vec::new(), most, last: (now, idle) }
    }

    /// Whether there is something left for a core. One of which nothing is known has used nothing.
    pub fn has(&self, core: u64) -> bool {
        self.accounts.iter().all(|(of, left)| *of != core || *left > 0)
    }

    /// So many ticks were used for a core.
    pub fn charge(&mut self, core: u64, ticks: u64) {
        let most = self.most;
        let parts = i64::try_from(ticks.saturating_mul(PARTS)).unwrap_or(i64::MAX);
        let after = |left: i64| left.saturating_sub(parts).max(-OVERDRAFT * most);
        if let Some((_, left)) = self.accounts.iter_mut().find(|(of, _)| *of == core) {
            *left = after(*left);
        } else if self.accounts.try_reserve(1).is_ok() {
            // (Without memory for its account, a core has it for nothing.)
            self.accounts.push((core, after(most)));
        }
    }

    /// Until now: what has come in since the last time goes to those whose accounts are not full.
    pub fn refill(&mut self, now: u64, idle: u64) {
        let (passed, unused) = (now.saturating_sub(self.last.0), idle.saturating_sub(self.last.1));
        self.last = (now, idle);
        let unused = unused.min(passed);
        let earned = unused.saturating_mul(PARTS).saturating_add((passed - unused).saturating_mul(SHARE));
        let most = self.most;
        let wants = |left: i64| left < most;
        let count = self.accounts.iter().filter(|(_, left)| wants(*left)).count().max(1);
        let each = i64::try_from(earned / count as u64).unwrap_or(i64::MAX);
        for (_, left) in self.accounts.iter_mut().filter(|(_, left)| wants(*left)) {
            *left = left.saturating_add(each).min(most);
        }
    }

    /// In how many ticks there may be something for a core, if nothing is idle meanwhile.
    pub fn wait(&self, core: u64) -> u64 {
        let left = self.accounts.iter().find(|(of, _)| *of == core).map_or(1, |(_, left)| *left);
        let count = self.accounts.iter().filter(|(_, left)| *left < self.most).count().max(1) as u64;
        left.min(0).unsigned_abs() * count / SHARE + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of a second, and of what an account holds.
    const SECOND: u64 = 1_000_000;
    const FULL: u64 = SECOND / MOST;

    #[test]
    fn who_has_used_nothing_has_something() {
        let mut portions = Portions::new(SECOND, 0, 0);
        assert!(portions.has(1));
        portions.charge(1, FULL - 1);
        assert!(portions.has(1));
        portions.charge(1, 1);
        assert!(!portions.has(1) && portions.has(2));
    }

    /// Ticks that cores have in so many, each taking a step at a time whenever it may. `idle`: of a hundred.
    fn taken<const N: usize>(time: u64, idle: u64, step: u64) -> [u64; N] {
        let (mut portions, mut taken, mut now) = (Portions::new(SECOND, 0, 0), [0; N], 0);
        while now < time {
            let before = now;
            for (core, taken) in (1..).zip(&mut taken) {
                if portions.has(core) {
                    portions.charge(core, step);
                    *taken += step;
                    now += step;
                }
            }
            now += if before == now { 10 } else { 0 };
            portions.refill(now, now * idle / 100);
        }
        taken
    }

    #[test]
    fn all_others_together_have_their_share_and_no_more() {
        let bound = |time: u64, cores: u64, step: u64| time * SHARE / 100 + cores * (FULL + step) + step;
        for step in [1, 7, 100, 3000] {
            let [one] = taken(100_000, 0, step);
            assert!((18_000..=bound(100_000, 1, step)).contains(&one), "{one} in steps of {step}");
            let all = taken::<3>(100_000, 0, step);
            assert!((18_000..=bound(100_000, 3, step)).contains(&all.iter().sum()), "{all:?} in steps of {step}");
            assert!(all.iter().all(|each| each.abs_diff(all[0]) <= step + FULL), "{all:?} in steps of {step}");
        }
    }

    #[test]
    fn what_nobody_uses_they_have_besides() {
        let [one] = taken(100_000, 50, 10);
        assert!((59_000..=62_000).contains(&one), "{one}");
        let [all] = taken(100_000, 100, 10);
        assert!(all >= 99_000, "{all}");
    }

    #[test]
    fn who_has_overdrawn_waits_until_it_is_paid() {
        let mut portions = Portions::new(SECOND, 0, 0);
        portions.charge(1, 3 * FULL);
        let wait = portions.wait(1);
        assert_eq!(wait, 2 * FULL * 100 / SHARE + 1);
        portions.refill(wait - 2, 0);
        assert!(!portions.has(1));
        portions.refill(wait + 5, 0);
        assert!(portions.has(1));
        // However much it was: not for longer than this.
        portions.charge(1, u64::MAX);
        assert!(portions.wait(1) <= OVERDRAFT as u64 * FULL * 100 / SHARE + 1);
    }
}
