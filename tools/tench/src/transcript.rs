//! Comparing a transcript with the expected one.
//!
//! An expected line may hold `[..]`, which stands for anything within the line; a line `...` stands for any number of
//! lines. They are for legitimate differences between runs, such as times.

/// Placeholder for any part of a line.
const ANYTHING: &str = "[..]";
/// Placeholder for any number of lines.
const ANY_LINES: &str = "...";

/// Returns whether a line is as expected.
fn line_matches(expected: &str, actual: &str) -> bool {
    let Some((front, rest)) = expected.split_once(ANYTHING) else { return expected == actual };
    let Some(mut left) = actual.strip_prefix(front) else { return false };
    let mut parts: Vec<&str> = rest.split(ANYTHING).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(position) => left = &left[position + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

/// Returns the first place where the transcripts differ, as (expected, actual) line numbers from 0, or `None` if they
/// agree.
fn difference(expected: &[&str], actual: &[&str]) -> Option<(usize, usize)> {
    // Position to go on from if the lines after the last `...` do not match.
    let mut retry: Option<(usize, usize)> = None;
    let mut farthest = (0, 0);
    let (mut at, mut seen) = (0, 0);
    loop {
        if at == expected.len() && seen == actual.len() {
            return None;
        }
        if expected.get(at) == Some(&ANY_LINES) {
            retry = Some((at + 1, seen));
            at += 1;
        } else if at < expected.len() && seen < actual.len() && line_matches(expected[at], actual[seen]) {
            (at, seen) = (at + 1, seen + 1);
        } else {
            farthest = farthest.max((at, seen));
            match &mut retry {
                Some((start, skipped)) if *skipped < actual.len() => {
                    *skipped += 1;
                    (at, seen) = (*start, *skipped);
                }
                _ => return Some(farthest),
            }
        }
    }
}

/// Returns a few lines about the difference, or `None`.
pub fn compare(expected: &[&str], actual: &[&str]) -> Option<String> {
    let (at, seen) = difference(expected, actual)?;
    let context = actual[seen.saturating_sub(3)..seen].iter().map(|line| format!("    {line}\n"));
    let show = |line: Option<&&str>| line.map_or("(the end)".to_owned(), |line| line.to_string());
    Some(format!(
        "{}  expected: {}\n  actual:   {}",
        context.collect::<String>(),
        show(expected.get(at)),
        show(actual.get(seen))
    ))
}

/// Returns the actual transcript, but with the expected line wherever that has `[..]` and matches.
pub fn bless(expected: &[&str], actual: &[&str]) -> Vec<String> {
    let flexible: Vec<&&str> = expected.iter().filter(|line| line.contains(ANYTHING)).collect();
    let keep = |line: &&str| {
        flexible.iter().find(|pattern| line_matches(pattern, line)).map_or(*line, |pattern| **pattern).to_owned()
    };
    actual.iter().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_match_with_gaps() {
        for (expected, actual) in
            [("a", "a"), ("[..]", ""), ("a[..]c", "abc"), ("a[..]b[..]c", "a1b2b3c"), ("[..]x", "xx")]
        {
            assert!(line_matches(expected, actual), "{expected} {actual}");
        }
        for (expected, actual) in [("a", "b"), ("a[..]c", "ab"), ("ab[..]bc", "abc"), ("[..]x[..]", "y")] {
            assert!(!line_matches(expected, actual), "{expected} {actual}");
        }
    }

    #[test]
    fn transcripts_match_with_missing_lines() {
        assert_eq!(difference(&["a", "...", "c"], &["a", "c"]), None);
        assert_eq!(difference(&["a", "...", "c", "d"], &["a", "c", "x", "c", "d"]), None);
        assert_eq!(difference(&["..."], &["a", "b"]), None);
        assert_eq!(difference(&["a", "b"], &["a", "c"]), Some((1, 1)));
        assert_eq!(difference(&["a"], &["a", "b"]), Some((1, 1)));
        assert_eq!(difference(&["a", "b"], &["a"]), Some((1, 1)));
        assert!(difference(&["a", "...", "z"], &["a", "b"]).is_some());
    }

    #[test]
    fn a_difference_is_shown_in_its_place() {
        let text = compare(&["one", "two", "three"], &["one", "two", "four"]).unwrap();
        assert_eq!(text, "    one\n    two\n  expected: three\n  actual:   four");
        assert!(compare(&["one"], &[]).unwrap().contains("actual:   (the end)"));
    }

    #[test]
    fn blessing_keeps_what_may_differ() {
        assert_eq!(bless(&["up [..] s", "old"], &["up 12 s", "new"]), ["up [..] s", "new"]);
    }
}
