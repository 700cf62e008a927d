//! Limits on how much of this core's processor other cores may use.
//!
//! Requests of another core are carried out here, by the monitor and its workers: that takes time of this core, on no
//! process's budget. Each core has an account, to which that time is charged. The income, for all cores together, is a
//! share of the time, and all the time in which this core is idle. While a core's account is empty, its messages are
//! not read: they fill its channel, so in the end its own programs wait. So other cores have what no local program
//! wants, and their share besides.
//!
//! ```text
//!              a fifth of the time, and all idle time
//!                       │ in equal parts, to those whose accounts are not full
//!            ┌──────────┼──────────┐
//!         core 1     core 2     core 3         each holds a millisecond at most
//!            └──────────┼──────────┘
//!                       ▼ time used for their requests
//! ```
//! An account can be overdrawn, since the cost of a request is known only when it is done. Then more has to come in
//! before the next request is read.

use alloc::vec::Vec;

/// Share of the time, in percent, that all other cores together may have while this core is busy.
pub const SHARE: u64 = 20;
/// Divisor of a second: an account holds at most that part of one.
const MOST: u64 = 1000;
/// Maximum overdraft, in multiples of the account's maximum; so no core has to wait for ever.
const OVERDRAFT: i64 = 20;
/// Number of parts of a tick that are counted.
const PARTS: u64 = 100;

/// The accounts, and the time of the last income.
#[derive(Debug)]
pub struct Portions {
    /// Account of each core, in parts of a tick.
    accounts: Vec<(u64, i64)>,
    /// Maximum of an account, in parts of a tick.
    most: i64,
    /// Ticks at the last income, and the number of idle ticks until then.
    last: (u64, u64),
}

impl Portions {
    /// Returns full accounts. `per_second` is the tick rate, `now` the time, and `idle` the number of idle ticks
    /// before.
    pub fn new(per_second: u64, now: u64, idle: u64) -> Portions {
        let most = i64::try_from(per_second / MOST * PARTS).unwrap_or(i64::MAX / OVERDRAFT);
        Portions { accounts: Vec::new(), most, last: (now, idle) }
    }

    /// Returns whether a core's account has time left. A core without an account has used nothing.
    pub fn has(&self, core: u64) -> bool {
        self.accounts.iter().all(|(of, left)| *of != core || *left > 0)
    }

    /// Charges ticks to a core.
    pub fn charge(&mut self, core: u64, ticks: u64) {
        let most = self.most;
        let parts = i64::try_from(ticks.saturating_mul(PARTS)).unwrap_or(i64::MAX);
        let after = |left: i64| left.saturating_sub(parts).max(-OVERDRAFT * most);
        if let Some((_, left)) = self.accounts.iter_mut().find(|(of, _)| *of == core) {
            *left = after(*left);
        } else if self.accounts.try_reserve(1).is_ok() {
            // (If there is no memory for its account, a core is not charged.)
            self.accounts.push((core, after(most)));
        }
    }

    /// Distributes the income since the last call to the accounts that are not full.
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

    /// Returns after how many ticks a core's account may have time, if this core is not idle meanwhile.
    pub fn wait(&self, core: u64) -> u64 {
        let left = self.accounts.iter().find(|(of, _)| *of == core).map_or(1, |(_, left)| *left);
        let count = self.accounts.iter().filter(|(_, left)| *left < self.most).count().max(1) as u64;
        left.min(0).unsigned_abs() * count / SHARE + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of a second.
    const SECOND: u64 = 1_000_000;
    const FULL: u64 = SECOND / MOST;

    #[test]
    fn an_unused_portion_is_not_empty() {
        let mut portions = Portions::new(SECOND, 0, 0);
        assert!(portions.has(1));
        portions.charge(1, FULL - 1);
        assert!(portions.has(1));
        portions.charge(1, 1);
        assert!(!portions.has(1) && portions.has(2));
    }

    /// Returns how many ticks cores get within `time`, if each takes a step whenever it may. `idle` is a percentage.
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
    fn unused_time_is_shared_among_the_others() {
        let [one] = taken(100_000, 50, 10);
        assert!((59_000..=62_000).contains(&one), "{one}");
        let [all] = taken(100_000, 100, 10);
        assert!(all >= 99_000, "{all}");
    }

    #[test]
    fn an_overdrawn_core_waits_until_its_debt_is_paid() {
        let mut portions = Portions::new(SECOND, 0, 0);
        portions.charge(1, 3 * FULL);
        let wait = portions.wait(1);
        assert_eq!(wait, 2 * FULL * 100 / SHARE + 1);
        portions.refill(wait - 2, 0);
        assert!(!portions.has(1));
        portions.refill(wait + 5, 0);
        assert!(portions.has(1));
        // However much was charged, the core waits no longer than this.
        portions.charge(1, u64::MAX);
        assert!(portions.wait(1) <= OVERDRAFT as u64 * FULL * 100 / SHARE + 1);
    }
}
