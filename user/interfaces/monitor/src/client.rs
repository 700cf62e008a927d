//! Conveniences on top of the requests.

use crate::Failure;
use crate::protocol::{Error, Monitor};

impl Monitor {
    /// Returns the core on which the fewest processes run ([`load`](Monitor::load)), the lowest-numbered if there are
    /// several. Cores that do not reply are skipped.
    ///
    /// All started processes count, whether they work or wait. So processes that are started one after another are
    /// spread evenly, before any of them has used the processor; how busy servers are, and how much each program will
    /// do, cannot be known before.
    pub fn least_loaded(self) -> Result<u64, Failure> {
        let (count, _) = self.cores()?;
        least((0..count).map(|core| (core, self.load(core))))
    }
}

/// Returns the first of the cores with the lowest load. Fails if the connection to the monitor was lost.
fn least(loads: impl Iterator<Item = (u64, Result<u64, Failure>)>) -> Result<u64, Failure> {
    let mut best: Option<(u64, u64)> = None;
    for (core, load) in loads {
        match load {
            Ok(load) if best.is_none_or(|(_, lowest)| load < lowest) => best = Some((core, load)),
            Ok(_) | Err(Failure::Refused(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    best.map(|(core, _)| core).ok_or(Failure::Refused(Error::NotConnected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_cores_with_the_lowest_load_is_chosen() {
        let choose =
            |loads: &[Result<u64, Error>]| least((0..).zip(loads.iter().map(|load| load.map_err(Failure::Refused))));
        assert_eq!(choose(&[Ok(0), Ok(0)]), Ok(0));
        assert_eq!(choose(&[Ok(2), Ok(1), Ok(1), Ok(3)]), Ok(1));
        assert_eq!(choose(&[Ok(2), Err(Error::Broken), Ok(1)]), Ok(2));
        assert_eq!(choose(&[Err(Error::NotConnected), Ok(9)]), Ok(1));
        assert_eq!(choose(&[Err(Error::Full)]), Err(Failure::Refused(Error::NotConnected)));
        let lost = Failure::Lost(tench_sys::Error::Aborted);
        assert_eq!(least([(0, Ok(5)), (1, Err(lost)), (2, Ok(0))].into_iter()), Err(lost));
    }
}
