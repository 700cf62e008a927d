//! Which processes of this core have asked which servers of the first.
//!
//! A server has to forget what it knows of a process that has ended. Of one that never asked it anything it knows nothing, and need not be
//! told: most programs ask the console, and nobody else.

use alloc::vec::Vec;

/// Services that there is a bit for.
const BITS: u64 = u64::BITS as u64;

/// Processes, and a bit for each service that they have asked; in order.
#[derive(Debug)]
pub struct Askers {
    known: Vec<(u64, u64)>,
    /// For some there was no memory.
    is_incomplete: bool,
    /// A bit for each service that anybody may know, who has asked it or not.
    by_anybody: u64,
    /// The process whose end was passed on to each service last; 0: none.
    told: [u64; BITS as usize],
}

impl Default for Askers {
    fn default() -> Self {
        Askers { known: Vec::new(), is_incomplete: false, by_anybody: 0, told: [0; BITS as usize] }
    }
}

impl Askers {
    /// A process asks a service.
    pub fn asks(&mut self, process: u64, service: u64) {
        if service >= BITS {
            self.is_incomplete = true;
            return;
        }
        match self.known.binary_search_by_key(&process, |(known, _)| *known) {
            Ok(place) => self.known[place].1 |= 1 << service,
            Err(place) if self.known.try_reserve(1).is_ok() => self.known.insert(place, (process, 1 << service)),
            Err(_) => self.is_incomplete = true,
        }
    }

    /// Capabilities of a service are here of which it alone knows whose they are.
    pub const fn anybody_asks(&mut self, service: u64) {
        match service < BITS {
            true => self.by_anybody |= 1 << service,
            false => self.is_incomplete = true,
        }
    }

    /// Returns whether a service may know a process that has ended. The last pair is confirmed again: the service may forget in parts.
    pub fn ends(&mut self, process: u64, service: u64) -> bool {
        let Some(told) = self.told.get_mut(service as usize) else { return self.forget(process, service) };
        if core::mem::replace(told, process) == process {
            return true;
        }
        let is_known = self.forget(process, service);
        if !is_known {
            self.told[service as usize] = 0;
        }
        is_known
    }

    /// Forgets that a process has asked a service. Returns whether it may have.
    fn forget(&mut self, process: u64, service: u64) -> bool {
        let bit = if service < BITS { 1 << service } else { 0 };
        let is_unknown = self.is_incomplete || self.by_anybody & bit != 0;
        let Ok(place) = self.known.binary_search_by_key(&process, |(known, _)| *known) else {
            return is_unknown;
        };
        let services = &mut self.known[place].1;
        let has_asked = *services & bit != 0;
        *services &= !bit;
        if *services == 0 {
            self.known.remove(place);
        }
        has_asked || is_unknown
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_hears_of_the_ends_of_those_who_asked_it() {
        let mut askers = Askers::default();
        for (process, service) in [(7, 2), (5, 0), (5, 2), (9, 63), (5, 2)] {
            askers.asks(process, service);
        }
        assert_eq!(askers.count(), 3);
        assert!(!askers.ends(5, 1) && !askers.ends(6, 2) && !askers.ends(7, 0));
        assert!(askers.ends(5, 2) && askers.ends(5, 2), "in parts");
        assert!(askers.ends(5, 0) && !askers.ends(6, 2) && !askers.ends(5, 2));
        assert!(askers.ends(7, 2) && askers.ends(9, 63));
        assert_eq!(askers.count(), 0);
    }

    #[test]
    fn who_may_have_got_something_of_a_service_without_asking_it_is_told_of() {
        let mut askers = Askers::default();
        askers.asks(5, 1);
        askers.anybody_asks(2);
        assert!(askers.ends(5, 2) && askers.ends(6, 2) && askers.ends(6, 2));
        assert!(askers.ends(5, 1) && !askers.ends(6, 1) && !askers.ends(5, 1));
        askers.anybody_asks(64);
        assert!(askers.ends(6, 1));
    }

    #[test]
    fn where_something_may_be_missing_everybody_hears_of_everybody() {
        let mut askers = Askers::default();
        askers.asks(5, 64);
        assert!(askers.ends(5, 64) && askers.ends(5, 0) && askers.ends(8, 1));
    }
}
