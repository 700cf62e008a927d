//! Counts of what happened in a world, so that a test cannot go blind.

/// Counts of events.
#[derive(Debug, Default)]
pub struct Tally {
    pub(super) sent: usize,
    /// Capabilities sent to the core of their endpoint, and to one over another.
    pub(super) home: usize,
    pub(super) far: usize,
    pub(super) refused: usize,
    pub(super) gone: usize,
    pub(super) calls: usize,
    pub(super) revoked: usize,
    /// Signals with capabilities of other cores, and those that were received.
    pub(super) signals: usize,
    pub(super) heard: usize,
}

impl Tally {
    fn all(&mut self) -> [&mut usize; 9] {
        let Tally { sent, home, far, refused, gone, calls, revoked, signals, heard } = self;
        [sent, home, far, refused, gone, calls, revoked, signals, heard]
    }

    pub fn add(&mut self, other: &mut Tally) {
        self.all().into_iter().zip(other.all()).for_each(|(sum, one)| *sum += *one);
    }

    /// Checks that everything has happened in this many runs.
    pub fn check(&mut self, runs: usize) {
        assert!(self.sent > 10 * runs, "the traffic has dried up");
        assert!(
            runs == 1 || self.all().into_iter().all(|count| *count > runs / 4),
            "something does not happen any more"
        );
    }
}
