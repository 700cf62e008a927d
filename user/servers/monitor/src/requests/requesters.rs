//! The list of requesters: which processes of this core have sent requests to which servers of the first core.
//!
//! A server has to free what it holds for a process that has ended. For a process that never sent it a request it holds
//! nothing, and need not be told: most programs use the console, and no other server. The file server must also be told
//! when the last process of a family has ended of which any has used it, whichever process is the last: so families are
//! in the same list; their numbers are no process numbers.
//!
//! A request can be sent in the name of a process that has already ended. So when a server need not be told of an end,
//! the process server is asked about a process that has begun to use that server, as the server itself would ask if it
//! were told of an end.

use alloc::vec::Vec;

use tench_quota::Client;
use tench_quota::unconfirmed::core_of;

/// Maximum number of services: each has a bit.
const BITS: u64 = u64::BITS as u64;

/// Services that a process or family has used, a bit for each.
#[derive(Clone, Copy, Debug)]
struct Asked {
    services: u64,
    /// Services that the process has begun to use, since when its process server has not confirmed that it runs.
    begun: u64,
    /// Services of `begun` that may have missed the end of the process.
    unheard: u64,
}

/// Processes and families, sorted, with the services that they have used.
#[derive(Debug)]
pub struct Requesters {
    known: Vec<(u64, Asked)>,
    /// Set if there was no memory for some entry.
    is_incomplete: bool,
    /// A bit for each service that may know any process, whether the process has used it or not.
    by_anybody: u64,
    /// For each service, the process of whose end it was told last; 0 if none.
    last_reported: [u64; BITS as usize],
}

impl Default for Requesters {
    fn default() -> Self {
        Requesters { known: Vec::new(), is_incomplete: false, by_anybody: 0, last_reported: [0; BITS as usize] }
    }
}

impl Requesters {
    /// Records that a process uses a service.
    pub fn asks(&mut self, client: Client, service: u64) {
        if service >= BITS {
            self.is_incomplete = true;
        } else if self.note(client.process, service) {
            self.find(client.process).into_iter().for_each(|asked| asked.begun |= 1 << service);
            if client.family != client.process {
                self.note(client.family, service);
            }
        }
    }

    /// Returns a process that has begun to use a service, and may have ended before. It is of the same core as
    /// `process`, and no core's authority.
    pub fn question(&self, service: u64, process: u64) -> Option<u64> {
        self.first_of_core(service, process, |asked| asked.begun)
    }

    /// Returns a process, of the same core as `process`, whose end a service [may have missed](Self::may_not_know). The
    /// process server is asked about it if the service was told of an end and asks about no process itself: a service
    /// may be told of every end, and then no other question would ever be asked.
    pub fn unheard(&self, service: u64, process: u64) -> Option<u64> {
        self.first_of_core(service, process, |asked| asked.unheard)
    }

    /// Returns the first process of the same core as `process` that has the bit of a service in `bits`.
    fn first_of_core(&self, service: u64, process: u64, bits: impl Fn(&Asked) -> u64) -> Option<u64> {
        let (first, last) = core_of(process).into_inner();
        let known = &self.known[self.known.partition_point(|(known, _)| *known <= first)..];
        let mut of_core = known.iter().take_while(|(known, _)| *known <= last);
        let found = of_core.find(|(_, asked)| service < BITS && bits(asked) & 1 << service != 0);
        found.map(|(known, _)| *known)
    }

    /// Returns the entry of a process or family.
    fn find(&mut self, who: u64) -> Option<&mut Asked> {
        let index = self.known.binary_search_by_key(&who, |(known, _)| *known).ok()?;
        Some(&mut self.known[index].1)
    }

    /// Records that a process runs, so that its end will be reported.
    pub fn lives(&mut self, process: u64, service: u64) {
        if let (Some(asked), ..BITS) = (self.find(process), service) {
            asked.begun &= !(1 << service);
            asked.unheard &= !(1 << service);
        }
    }

    /// Records that a process or family has used a service. Returns whether that is new.
    fn note(&mut self, who: u64, service: u64) -> bool {
        match self.known.binary_search_by_key(&who, |(known, _)| *known) {
            Ok(index) => {
                let services = &mut self.known[index].1.services;
                let is_new = *services & 1 << service == 0;
                *services |= 1 << service;
                return is_new;
            }
            Err(index) if self.known.try_reserve(1).is_ok() => {
                self.known.insert(index, (who, Asked { services: 1 << service, begun: 0, unheard: 0 }))
            }
            Err(_) => self.is_incomplete = true,
        }
        true
    }

    /// Records that capabilities of a service are on this core whose holders only the service knows.
    pub const fn any_process_asks(&mut self, service: u64) {
        match service < BITS {
            true => self.by_anybody |= 1 << service,
            false => self.is_incomplete = true,
        }
    }

    /// Removes an ended process, and its family if that has ended with it and is not 0. Returns whether the service may
    /// know either. For the process of the last call the result is yes again: the service may free what it holds in
    /// parts.
    pub fn remove_ended(&mut self, process: u64, family: u64, service: u64) -> bool {
        let last_reported = self.last_reported.get_mut(service as usize);
        let is_again = last_reported.is_some_and(|last_reported| core::mem::replace(last_reported, process) == process);
        let bit = if service < BITS { 1 << service } else { 0 };
        // Only one service is told of families, and a family that has ended uses no other.
        let is_known = self.forget(process, bit) & bit != 0;
        let is_family_known = family != 0 && self.forget(family, u64::MAX) & bit != 0;
        let may_know = is_again || is_known || is_family_known || self.is_incomplete || self.by_anybody & bit != 0;
        if let Some(last_reported) = self.last_reported.get_mut(service as usize).filter(|_| !may_know) {
            *last_reported = 0;
        }
        may_know
    }

    /// Records that it is unknown whether a service that asks about other processes was told of the
    /// [end](Self::remove_ended) of this process, and of its family if that is not 0. The process server is
    /// [asked](Self::question) about it, as about a process that has begun to use that service, and so reports the
    /// end again.
    pub fn may_not_know(&mut self, process: u64, family: u64, service: u64) {
        let family = if family == 0 { process } else { family };
        self.asks(Client { process, family }, service);
        if let (Some(asked), ..BITS) = (self.find(process), service) {
            asked.begun |= 1 << service;
            asked.unheard |= 1 << service;
        }
    }

    /// Removes these services from the entry of a process or family. Returns those that it had.
    fn forget(&mut self, who: u64, services: u64) -> u64 {
        let Ok(index) = self.known.binary_search_by_key(&who, |(known, _)| *known) else { return 0 };
        let asked = &mut self.known[index].1;
        let had = asked.services;
        asked.services &= !services;
        asked.begun &= !services;
        asked.unheard &= !services;
        if asked.services == 0 {
            self.known.remove(index);
        }
        had
    }

    /// Returns the number of entries.
    pub fn count(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a client whose process is a family of its own.
    const fn alone(process: u64) -> Client {
        Client::alone(process)
    }

    #[test]
    fn a_service_hears_of_the_ends_of_those_who_asked_it() {
        let mut requesters = Requesters::default();
        for (process, service) in [(7, 2), (5, 0), (5, 2), (9, 63), (5, 2)] {
            requesters.asks(alone(process), service);
        }
        assert_eq!(requesters.count(), 3);
        assert!(
            !requesters.remove_ended(5, 0, 1) && !requesters.remove_ended(6, 0, 2) && !requesters.remove_ended(7, 0, 0)
        );
        assert!(requesters.remove_ended(5, 0, 2) && requesters.remove_ended(5, 0, 2), "in parts");
        assert!(
            requesters.remove_ended(5, 0, 0) && !requesters.remove_ended(6, 0, 2) && !requesters.remove_ended(5, 0, 2)
        );
        assert!(requesters.remove_ended(7, 0, 2) && requesters.remove_ended(9, 0, 63));
        assert_eq!(requesters.count(), 0);
    }

    #[test]
    fn a_service_hears_of_the_end_of_a_family_of_which_any_asked_it() {
        const FAMILY: u64 = 3 << 38;
        let mut requesters = Requesters::default();
        for (process, service) in [(5, 2), (6, 2), (6, 1)] {
            requesters.asks(Client { process, family: FAMILY }, service);
        }
        assert_eq!(requesters.count(), 3);
        assert!(requesters.remove_ended(5, 0, 2) && !requesters.remove_ended(7, 0, 2), "the family lives");
        assert!(requesters.remove_ended(6, 0, 1) && requesters.remove_ended(6, 0, 2));
        assert_eq!(requesters.count(), 1);
        // The last process used no service.
        assert!(!requesters.remove_ended(8, 4 << 38, 2), "another family");
        assert!(
            requesters.remove_ended(8, FAMILY, 2)
                && requesters.remove_ended(8, FAMILY, 2)
                && !requesters.remove_ended(9, FAMILY, 2)
        );
        assert_eq!(requesters.count(), 0);
        // A family of which no process used that service is removed with its end, too.
        requesters.asks(Client { process: 10, family: FAMILY }, 1);
        assert!(requesters.remove_ended(10, 0, 1) && !requesters.remove_ended(10, FAMILY, 2));
        assert_eq!(requesters.count(), 0);
    }

    #[test]
    fn about_who_begins_to_ask_the_process_server_is_asked_once() {
        let mut requesters = Requesters::default();
        for (process, service) in [(5, 1), (6, 1), (5, 2)] {
            requesters.asks(alone(process), service);
        }
        assert_eq!(
            (requesters.question(0, 9), requesters.question(1, 9), requesters.question(2, 9)),
            (None, Some(5), Some(5))
        );
        requesters.lives(5, 1);
        assert_eq!((requesters.question(1, 9), requesters.question(2, 9)), (Some(6), Some(5)));
        assert!(requesters.remove_ended(6, 0, 1) && !requesters.remove_ended(7, 0, 1));
        requesters.asks(alone(5), 1);
        assert_eq!(requesters.question(1, 9), None, "its end will be said");
        // A request in its name arrives afterwards.
        assert!(requesters.remove_ended(5, 0, 1) && !requesters.remove_ended(7, 0, 1));
        requesters.asks(alone(5), 1);
        assert_eq!(requesters.question(1, 9), Some(5));
        assert!(requesters.remove_ended(5, 0, 1));
        assert_eq!(requesters.question(1, 9), None);
    }

    #[test]
    fn a_service_that_may_have_missed_an_end_is_told_again() {
        const FAMILY: u64 = 3 << 38;
        let mut requesters = Requesters::default();
        requesters.asks(Client { process: 5, family: FAMILY }, 2);
        requesters.asks(alone(6), 2);
        requesters.lives(6, 2);
        assert!(requesters.remove_ended(5, FAMILY, 2));
        // The call was refused, and another end is reported in between.
        requesters.may_not_know(5, FAMILY, 2);
        assert!(requesters.remove_ended(6, 0, 2) && !requesters.remove_ended(7, 0, 2));
        assert_eq!(requesters.question(2, 7), Some(5));
        assert!(requesters.remove_ended(5, FAMILY, 2));
        assert_eq!((requesters.question(2, 7), requesters.count()), (None, 0));
    }

    #[test]
    fn a_service_that_hears_of_all_ends_is_told_again_of_one_that_it_may_have_missed() {
        let mut requesters = Requesters::default();
        requesters.any_process_asks(2);
        requesters.asks(alone(4), 2);
        assert!(requesters.remove_ended(5, 0, 2));
        requesters.may_not_know(5, 0, 2);
        // The service is told of this end, too, so the monitor does not reply on its behalf. It asks itself about
        // processes that have begun to use it.
        assert!(requesters.remove_ended(6, 0, 2));
        assert_eq!((requesters.unheard(2, 6), requesters.unheard(1, 6)), (Some(5), None));
        assert!(requesters.remove_ended(5, 0, 2));
        assert_eq!(requesters.unheard(2, 6), None);
        // The service frees what it holds in parts.
        requesters.may_not_know(5, 0, 2);
        assert!(requesters.remove_ended(5, 0, 2));
        assert_eq!((requesters.unheard(2, 6), requesters.question(2, 6)), (None, Some(4)), "it is told again once");
        requesters.may_not_know(4, 0, 2);
        assert_eq!(requesters.unheard(2, 6), Some(4));
        requesters.lives(4, 2);
        assert_eq!(requesters.unheard(2, 6), None, "when it ends, that will be said");
    }

    #[test]
    fn a_service_is_told_of_processes_that_may_have_its_capabilities_without_asking() {
        let mut requesters = Requesters::default();
        requesters.asks(alone(5), 1);
        requesters.any_process_asks(2);
        assert!(
            requesters.remove_ended(5, 0, 2) && requesters.remove_ended(6, 0, 2) && requesters.remove_ended(6, 0, 2)
        );
        assert!(
            requesters.remove_ended(5, 0, 1) && !requesters.remove_ended(6, 0, 1) && !requesters.remove_ended(5, 0, 1)
        );
        requesters.any_process_asks(64);
        assert!(requesters.remove_ended(6, 0, 1));
    }

    #[test]
    fn services_with_missed_reports_hear_of_every_process() {
        let mut requesters = Requesters::default();
        requesters.asks(alone(5), 64);
        assert!(
            requesters.remove_ended(5, 0, 64) && requesters.remove_ended(5, 0, 0) && requesters.remove_ended(8, 0, 1)
        );
    }
}
