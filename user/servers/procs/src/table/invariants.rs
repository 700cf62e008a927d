//! Checks of the records, for tests.

use super::*;

impl<K, R> Records<K, R> {
    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let mut numbers = BTreeSet::new();
        let (mut children, mut preparing, mut live) = (BTreeSet::new(), BTreeSet::new(), 0);
        let mut families = BTreeMap::new();
        let mut load = 0;
        for (index, record) in self.entries.iter().enumerate().filter_map(|(n, one)| Some((n, one.as_ref()?))) {
            let pid = &record.number;
            assert_eq!(index_of(*pid), index);
            assert!(
                *pid > pid::pid_base(self.core)
                    && *pid <= self.last
                    && (record.parent < *pid || self.is_foreign(record.parent))
            );
            assert_eq!(record.ancestors.first(), Some(&record.parent));
            assert!(record.ancestors.len() <= MAX_GENERATIONS);
            numbers.insert(*pid);
            children.insert((record.parent, *pid));
            live += usize::from(!record.has_ended());
            load += usize::from(record.counts);
            assert!(record.held.is_nothing() || record.status.state == State::Preparing);
            assert!(!record.counts || record.status.state == State::Running);
            *families.entry(record.family).or_insert(0) += usize::from(!record.has_ended());
            if record.status.state == State::Preparing && !record.is_ending {
                preparing.insert((record.parent, *pid));
            }
            let is_named = keys(&record.name).all(|key| self.names.get(key).is_some_and(|pids| pids.contains(pid)));
            assert_eq!(is_named, !record.has_ended());
        }
        assert_eq!(self.known, numbers);
        assert_eq!(self.load, load);
        assert_eq!(self.children, children);
        assert_eq!(self.preparing, preparing);
        self.live.check_invariants();
        self.visitors.check_invariants();
        self.shares.check_invariants(self.entries.iter().flatten().map(|record| record.held));
        assert_eq!(self.live.taken(), live);
        assert!(families.iter().all(|(family, count)| self.live.held_by_family(*family) == *count));
        assert!(families.keys().all(|family| power::family(*family) == *family), "a badge can say which family");
        assert!(self.hosts.keys().all(|family| self.live.held_by_family(*family) > 0));
        assert!(self.hosts.iter().all(|(family, origin)| self.guests.get(origin) == Some(family)));
        assert_eq!(self.hosts.len(), self.guests.len());
        assert_eq!(self.ended.len(), numbers.len() - live);
        assert!(live <= MAX_LIVE && self.ended.len() <= MAX_ENDED);
        assert!(self.ended.iter().all(|&pid| self.get(pid).is_ok_and(Record::has_ended)));
        for (name, pids) in &self.names {
            assert!(!pids.is_empty());
            for &pid in pids {
                let record = self.get(pid).expect("a name belongs to a process");
                assert!(keys(&record.name).any(|key| key == name));
            }
        }
        self.waits.check_invariants(|pid| self.check_live(pid).is_ok());
    }
}
