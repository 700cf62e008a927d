//! Output of a test run: a line for each test as it ends, the failures again at the end, and the sum. Several workers
//! report at once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Number of stages that are named as those that took longest.
const LONGEST: usize = 12;

/// Collects results and shows them.
pub struct Report {
    results: Mutex<Results>,
    /// Number of stages of the run.
    stages: usize,
    started: Instant,
    /// Shows what is running, on a terminal only.
    bar: ProgressBar,
}

#[derive(Default)]
struct Results {
    passed: usize,
    failures: Vec<(String, String)>,
    ignored: Vec<(String, String)>,
    /// The stages that are running, and since when.
    running: Vec<(String, Instant)>,
    /// The stages that have ended, and how long each took.
    ended: Vec<(Duration, String)>,
}

impl Results {
    /// Returns the closing line.
    fn sum(&self) -> String {
        let ignored = if self.ignored.is_empty() { String::new() } else { format!(", {} ignored", self.ignored.len()) };
        format!("{} passed, {} failed{ignored}", self.passed, self.failures.len())
    }

    /// Returns the names of the running stages.
    fn now(&self) -> String {
        self.running.iter().map(|(stage, _)| stage.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the stages that took longest, if there are so many that somebody may wonder.
    fn longest(&self) -> Option<String> {
        let mut ended: Vec<&(Duration, String)> = self.ended.iter().collect();
        ended.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        let shown: Vec<String> =
            ended.iter().take(LONGEST).map(|(took, stage)| format!("{stage} {} s", took.as_secs())).collect();
        (ended.len() > LONGEST).then(|| shown.join(", "))
    }
}

impl Report {
    /// Makes a report of a run of so many stages.
    pub fn new(stages: usize) -> Report {
        let bar = ProgressBar::new(stages as u64);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} of {len} in {elapsed}, now {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Report { results: Mutex::default(), stages, started: Instant::now(), bar }
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows that a stage begins: in the bar, and where there is no terminal as a line if `what` says what it does.
    pub fn begin(&self, stage: &str, what: Option<&str>) {
        let mut results = self.results();
        results.running.push((stage.to_owned(), Instant::now()));
        self.bar.set_message(results.now());
        if let Some(what) = what.filter(|_| self.bar.is_hidden()) {
            let (ended, seconds) = (results.ended.len(), self.started.elapsed().as_secs());
            println!("{stage}: {what}; {ended} of {} stages have ended in {seconds} s", self.stages);
        }
    }

    /// Shows that a stage has ended.
    pub fn end(&self, stage: &str) {
        let mut results = self.results();
        if let Some(index) = results.running.iter().position(|(running, _)| running == stage) {
            let (stage, since) = results.running.swap_remove(index);
            results.ended.push((since.elapsed(), stage));
        }
        self.bar.set_message(results.now());
        self.bar.inc(1);
    }

    /// Shows a line that is not a result.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| println!("{line}"));
    }

    /// Records that a test passed.
    pub fn passed(&self, name: &str) {
        self.results().passed += 1;
        self.say(&format!("test {name} ... ok"));
    }

    /// Records that a test failed; `why` may have several lines.
    pub fn failed(&self, name: &str, why: &str) {
        self.results().failures.push((name.to_owned(), why.trim_end().to_owned()));
        self.say(&format!("test {name} ... FAILED"));
    }

    /// Records that a test could not be judged here.
    pub fn ignored(&self, name: &str, why: &str) {
        self.results().ignored.push((name.to_owned(), why.to_owned()));
        self.say(&format!("test {name} ... ignored: {why}"));
    }

    /// Records that many tests passed that were shown elsewhere.
    pub fn count_passed(&self, number: usize) {
        self.results().passed += number;
    }

    /// Shows the failures and the sum. Returns whether no test failed.
    pub fn close(&self) -> bool {
        self.bar.finish_and_clear();
        let results = self.results();
        for (name, why) in &results.failures {
            println!("\n---- {name} ----\n{why}");
        }
        if results.passed + results.failures.len() + results.ignored.len() == 0 {
            println!("no test has that in its name; ./tench test --list shows them");
            return false;
        }
        if !results.failures.is_empty() {
            let names: Vec<&str> = results.failures.iter().map(|(name, _)| name.as_str()).collect();
            println!("\nfailed: {}", names.join(", "));
        }
        if let Some(longest) = results.longest() {
            println!("\nlongest: {longest}");
        }
        println!("\n{}, in {} s", results.sum(), self.started.elapsed().as_secs());
        results.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_counts_everything() {
        let report = Report::new(1);
        report.count_passed(3);
        report.passed("one");
        assert_eq!(report.results().sum(), "4 passed, 0 failed");
        report.failed("two", "because");
        report.ignored("three", "reasons");
        assert_eq!(report.results().sum(), "4 passed, 1 failed, 1 ignored");
        assert!(!report.close());
    }

    #[test]
    fn the_stages_that_took_longest_are_named() {
        let seconds = |seconds| (Duration::from_secs(seconds), format!("stage-{seconds}"));
        let mut results = Results { ended: (0..LONGEST as u64).map(seconds).collect(), ..Results::default() };
        assert_eq!(results.longest(), None);
        results.ended.push(seconds(100));
        assert!(results.longest().is_some_and(|line| line.starts_with("stage-100 100 s, stage-11 11 s, ")));
    }

    #[test]
    fn a_run_without_tests_is_no_success() {
        assert!(!Report::new(0).close());
    }
}
