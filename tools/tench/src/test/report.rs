//! Output of a test run: a line for each test as it ends, the failures again at the end, and the sum.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Collects results and shows them.
pub struct Report {
    passed: usize,
    failures: Vec<(String, String)>,
    ignored: Vec<(String, String)>,
    started: Instant,
    /// Shows the running test, on a terminal only.
    spinner: ProgressBar,
}

impl Report {
    pub fn new() -> Report {
        let spinner = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            spinner.set_style(style);
        }
        Report { passed: 0, failures: Vec::new(), ignored: Vec::new(), started: Instant::now(), spinner }
    }

    /// Shows that a test is running.
    pub fn running(&self, name: &str) {
        self.spinner.reset_elapsed();
        self.spinner.set_message(name.to_owned());
        self.spinner.enable_steady_tick(Duration::from_millis(200));
    }

    /// Shows a line that is not a result.
    pub fn say(&self, line: &str) {
        self.spinner.suspend(|| println!("{line}"));
    }

    /// Records that a test passed.
    pub fn passed(&mut self, name: &str) {
        self.passed += 1;
        self.say(&format!("test {name} ... ok"));
    }

    /// Records that a test failed; `why` may have several lines.
    pub fn failed(&mut self, name: &str, why: &str) {
        self.say(&format!("test {name} ... FAILED"));
        self.failures.push((name.to_owned(), why.trim_end().to_owned()));
    }

    /// Records that a test could not be judged here.
    pub fn ignored(&mut self, name: &str, why: &str) {
        self.say(&format!("test {name} ... ignored: {why}"));
        self.ignored.push((name.to_owned(), why.to_owned()));
    }

    /// Records that many tests passed that were shown elsewhere.
    pub fn count_passed(&mut self, number: usize) {
        self.passed += number;
    }

    /// Shows the failures and the sum. Returns whether no test failed.
    pub fn close(self) -> bool {
        self.spinner.finish_and_clear();
        for (name, why) in &self.failures {
            println!("\n---- {name} ----\n{why}");
        }
        if self.passed + self.failures.len() + self.ignored.len() == 0 {
            println!("no test has that in its name; ./tench test --list shows them");
            return false;
        }
        if !self.failures.is_empty() {
            let names: Vec<&str> = self.failures.iter().map(|(name, _)| name.as_str()).collect();
            println!("\nfailed: {}", names.join(", "));
        }
        println!("\n{}, in {} s", self.sum(), self.started.elapsed().as_secs());
        self.failures.is_empty()
    }

    /// Returns the closing line.
    fn sum(&self) -> String {
        let ignored = if self.ignored.is_empty() { String::new() } else { format!(", {} ignored", self.ignored.len()) };
        format!("{} passed, {} failed{ignored}", self.passed, self.failures.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_counts_everything() {
        let mut report = Report::new();
        report.count_passed(3);
        report.passed("one");
        assert_eq!(report.sum(), "4 passed, 0 failed");
        report.failed("two", "because");
        report.ignored("three", "reasons");
        assert_eq!(report.sum(), "4 passed, 1 failed, 1 ignored");
        assert!(!report.close());
    }

    #[test]
    fn a_run_without_tests_is_no_success() {
        assert!(!Report::new().close());
    }
}
