//! A test that figures in documents are the recorded ones.
//!
//! A figure before `<!--EXPERIMENT.KEY-->` is the one with this key under `lab/baseline/`; `<!--EXPERIMENT.KEY+KEY-->`
//! is a sum, `<!--EXPERIMENT.KEY/1024-->` a quotient. It is written with as many digits after the point as before, and
//! with commas. Any other number with a comma is listed in `unguarded.txt`, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{check, read, root};

type Figures = BTreeMap<String, f64>;

/// Recorded figures, by experiment.
#[derive(Default)]
struct Recorded(BTreeMap<String, Figures>);

impl Recorded {
    /// Returns the figure, sum of figures, or part of one, that a comment names.
    fn get(&mut self, reference: &str) -> Result<f64, String> {
        let (experiment, keys) = reference.split_once('.').ok_or("a figure is EXPERIMENT.KEY")?;
        let (keys, divisor) = keys.split_once('/').unwrap_or((keys, "1"));
        let divisor: f64 = divisor.parse().map_err(|_| format!("{divisor} is not a number"))?;
        let path = format!("lab/baseline/{experiment}.json");
        if !self.0.contains_key(experiment) {
            if !root().join(&path).is_file() {
                return Err(format!("there is no {path}"));
            }
            let whole: serde_json::Value = serde_json::from_str(&read(&path)).map_err(|error| error.to_string())?;
            let figures = serde_json::from_value(whole["figures"].clone()).map_err(|error| error.to_string())?;
            self.0.insert(experiment.into(), figures);
        }
        let figures = &self.0[experiment];
        let figure = |key| figures.get(key).copied().ok_or_else(|| format!("{path} has no {key}"));
        Ok(keys.split('+').map(figure).sum::<Result<f64, String>>()? / divisor)
    }
}

/// Formats a number with this many digits after the point, and commas.
fn written(number: f64, decimals: usize) -> String {
    let digits = format!("{number:.decimals$}");
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// Returns the text with every figure replaced by `recorded`'s value.
fn renewed(text: &str, mut recorded: impl FnMut(&str) -> Result<f64, String>) -> Result<String, String> {
    let mut parts = text.split("<!--");
    let mut renewed = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let reference = part.split("-->").next().unwrap_or_default();
        let old = renewed.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',' || c == '.').len();
        // Other comments do not follow a number.
        if old < renewed.len() && !reference.contains(char::is_whitespace) {
            let decimals = renewed[old..].split_once('.').map_or(0, |(_, decimals)| decimals.len());
            renewed.truncate(old);
            renewed += &written(recorded(reference)?, decimals);
        }
        renewed += "<!--";
        renewed += part;
    }
    Ok(renewed)
}

#[test]
fn figures_in_documents_are_those_that_were_recorded() {
    let mut recorded = Recorded::default();
    for page in pages() {
        let text = renewed(&read(&page), |reference| recorded.get(reference));
        check(&page, &text.unwrap_or_else(|error| panic!("{page}: {error}")));
    }
}

/// Returns the pages that have figures: those of the manual and four more.
fn pages() -> Vec<String> {
    let folder = std::fs::read_dir(root().join("docs/manual")).expect("there is a manual");
    let names = folder.map(|entry| entry.expect("it can be read").file_name().into_string().expect("names are text"));
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/manual/{name}")).collect();
    pages.extend(["README.md", "SECURITY.md", "KNOWN-ISSUES.md", "docs/status.md"].map(String::from));
    pages.sort();
    pages
}

/// Returns the numbers with commas that no comment guards, but for powers of two and of ten, which are not measured.
fn unguarded(text: &str) -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let before = rest[..start].chars().next_back();
        let end = rest[start..].find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.');
        let (run, after) = rest[start..].split_at(end.unwrap_or(rest.len() - start));
        rest = after;
        let number = run.trim_end_matches([',', '.']);
        let whole = number.split('.').next().unwrap_or_default();
        let mut groups = whole.split(',').skip(1).peekable();
        let part_of_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let guard = after.strip_prefix("<!--").and_then(|comment| comment.split_once("-->"));
        let guarded = guard.is_some_and(|(reference, _)| !reference.contains(char::is_whitespace));
        if groups.peek().is_none() || !groups.all(|group| group.len() == 3) || part_of_word || guarded {
            continue;
        }
        let value: u64 = whole.replace(',', "").parse().expect("these are digits");
        let power_of_ten = 10_u64.pow(value.max(1).ilog10()) == value;
        if whole != number || !(value.is_power_of_two() || power_of_ten) {
            numbers.insert(number.to_owned());
        }
    }
    numbers
}

#[test]
fn a_number_without_guard_is_listed_with_the_reason() {
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in read("tools/tench/tests/documents/unguarded.txt").lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [page, reason, numbers] = parts[..] else { panic!("{line:?} is not PAGE | REASON | NUMBERS") };
        assert!(!reason.trim().is_empty(), "{line:?} has no reason");
        listed.entry(page.into()).or_default().extend(numbers.split(' ').map(String::from));
    }
    let mut faults = Vec::new();
    for page in pages() {
        let (listed, found) = (listed.remove(&page).unwrap_or_default(), unguarded(&read(&page)));
        faults.extend(found.difference(&listed).map(|number| {
            format!("{page}: {number}: guard it by <!--EXPERIMENT.KEY-->, or list it in unguarded.txt with the reason")
        }));
        faults.extend(listed.difference(&found).map(|number| format!("{page}: {number} is listed, but not there")));
    }
    faults.extend(listed.into_keys().map(|page| format!("{page} is listed, but is not one of the pages")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn numbers_without_guard_are_found() {
    let found = unguarded(
        "1,853<!--a.b-->, 2,048 and 10,000; 1,951, again 1,234.5. R1 12 `f_1,000,7` 3,0 (6,411<!-- no key -->)",
    );
    assert_eq!(found, ["1,234.5", "1,951", "6,411"].map(String::from).into());
}

#[test]
fn a_figure_keeps_its_form() {
    let recorded = |reference: &str| match reference {
        "ipc.call_0" => Ok(1_234_567.0),
        "ipc.share" => Ok(9.46),
        other => Err(format!("there is no {other}")),
    };
    let renew = |text| renewed(text, recorded);
    assert_eq!(renew("| 94<!--ipc.call_0--> | 2 |"), Ok("| 1,234,567<!--ipc.call_0--> | 2 |".into()));
    assert_eq!(renew("(9.9<!--ipc.share--> %)"), Ok("(9.5<!--ipc.share--> %)".into()));
    assert_eq!(renew("text <!-- of no number --> 5"), Ok("text <!-- of no number --> 5".into()));
    let kib = Recorded([("ipc".into(), [("call_0".into(), 3072.0)].into())].into()).get("ipc.call_0/1024");
    assert_eq!(kib, Ok(3.0));
    assert_eq!(renew("7<!--ipc.nothing-->"), Err("there is no ipc.nothing".into()));
}
