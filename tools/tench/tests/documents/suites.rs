//! A test that the page about suites has the recorded results: those on Linux from `tests/linux/golden/suite-NAME.txt`,
//! and from `tests/linux/golden.toml` the tests that end otherwise on Tench.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{check, read};

const PAGE: &str = "docs/manual/suites.md";
/// Begins and ends what is made, for a suite.
const BEGIN: &str = "<!-- Made from tests/linux/golden/suite-NAME.txt by a test. -->\n";
const END: &str = "<!-- The end of what is made. -->";
/// How suites say that a test has passed.
const PASS: [&str; 2] = ["PASS", "ok"];

/// A test, and how it ends on either system.
struct Test {
    name: String,
    linux: String,
    tench: String,
    /// Why Tench differs, if it does.
    reason: String,
}

fn split(line: &str) -> (String, String) {
    let (name, word) = line.split_once(' ').unwrap_or((line, ""));
    (name.to_owned(), word.to_owned())
}

/// Returns the tests of a suite with their results.
fn tests(suite: &str) -> Vec<Test> {
    let list: toml::Table = toml::from_str(&read("tests/linux/golden.toml")).expect("the list can be read");
    let none = Vec::new();
    let differences = list["difference"].as_array().unwrap_or(&none);
    let text = |table: &toml::Value, key: &str| table.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let differs: BTreeMap<String, (String, String)> = differences
        .iter()
        .filter(|one| text(one, "script").is_some_and(|script| script == suite))
        .filter_map(|one| {
            let (name, word) = split(&text(one, "tench")?);
            Some((name, (word, text(one, "reason")?)))
        })
        .collect();
    let recorded = read(&format!("tests/linux/golden/{suite}.txt"));
    let is_test = |line: &&str| !line.starts_with('[') && !line.starts_with("Summary:");
    let lines = recorded.lines().skip(1).filter(is_test);
    let test = |line| {
        let (name, linux) = split(line);
        let (tench, reason) = differs.get(&name).cloned().unwrap_or((linux.clone(), String::new()));
        Test { name, linux, tench, reason }
    };
    lines.map(test).collect()
}

/// Returns what is written about a suite.
fn section(suite: &str) -> String {
    let tests = tests(suite);
    let mut sums: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for test in &tests {
        for (system, word) in [&test.linux, &test.tench].into_iter().enumerate() {
            sums.entry(word.split(' ').next().unwrap_or_default()).or_default()[system] += 1;
        }
    }
    let good: Vec<&Test> = tests.iter().filter(|test| PASS.contains(&test.linux.as_str())).collect();
    let both = good.iter().filter(|test| PASS.contains(&test.tench.as_str())).count();
    let share = both * 1000 / good.len().max(1);
    let mut text = String::from("\n| result | Linux | Tench |\n|---|---|---|\n");
    let write = |text: &mut String, line: String| writeln!(text, "{line}").expect("a string takes what is written");
    for (word, [linux, tench]) in sums {
        write(&mut text, format!("| `{word}` | {linux} | {tench} |"));
    }
    write(&mut text, format!("| all | {} | {} |\n", tests.len(), tests.len()));
    let (whole, tenth) = (share / 10, share % 10);
    write(&mut text, format!("Of {} tests that pass on Linux, {both} pass on Tench: {whole}.{tenth} %.\n", good.len()));
    for test in tests.iter().filter(|test| !test.reason.is_empty()) {
        let Test { name, linux, tench, reason } = test;
        write(&mut text, format!("- `{name}`: `{linux}` on Linux, `{tench}` on Tench: {reason}."));
    }
    text
}

#[test]
fn the_page_about_suites_has_what_is_recorded() {
    let page = read(PAGE);
    let mut expected = String::new();
    let mut rest = page.as_str();
    while let Some(from) = rest.find("<!-- Made from tests/linux/golden/") {
        let (before, after) = rest.split_at(from);
        let (line, made) = after.split_once('\n').expect("a line follows");
        let suite = line.split("golden/").nth(1).and_then(|rest| rest.split(".txt").next()).expect("a suite is named");
        let end = made.find(END).unwrap_or_else(|| panic!("{PAGE}: what is made of {suite} has no end"));
        assert_eq!(format!("{line}\n"), BEGIN.replace("suite-NAME", suite));
        write!(expected, "{before}{line}\n{}{END}", section(suite)).expect("a string takes what is written");
        rest = &made[end + END.len()..];
    }
    assert!(!expected.is_empty(), "{PAGE} has no results");
    check(PAGE, &(expected + rest));
}
