//! Words, quotes, completion and suggestions.

use proptest::prelude::*;
use tench_shell::completion::{Candidates, Sources, complete};
use tench_shell::parse::{Mistake, parse, quoted, unfinished};
use tench_shell::suggest::nearest;

fn words(line: &str) -> Vec<String> {
    parse(line).expect("a mistake").words
}

#[test]
fn lines_become_words() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("   \t ", &[]),
        ("one", &["one"]),
        ("  one   two\tthree ", &["one", "two", "three"]),
        ("'one two' three", &["one two", "three"]),
        ("\"one two\"three", &["one twothree"]),
        ("a'b'c\"d\"e", &["abcde"]),
        ("'' \"\"", &["", ""]),
        ("one\\ two", &["one two"]),
        ("\\'a\\\" \\\\ \\&", &["'a\"", "\\", "&"]),
        ("'a\\b\"c'", &["a\\b\"c"]),
        ("\"a\\\"b\\\\c\\d'e\"", &["a\"b\\c\\d'e"]),
        ("a '&' \"b&\"", &["a", "&", "b&"]),
        ("# a comment & 'more", &[]),
        ("one # two", &["one"]),
        ("one#two '#' \\#", &["one#two", "#", "#"]),
        ("ä 'ö ü' \\€", &["ä", "ö ü", "€"]),
    ];
    for (line, expected) in cases {
        assert_eq!(words(line), *expected, "{line}");
    }
}

#[test]
fn an_ampersand_at_the_end_means_background() {
    for line in ["timer 3 &", "timer 3&", "timer 3 & ", "timer 3 & # comment"] {
        let parsed = parse(line).expect("a mistake");
        assert!(parsed.background, "{line}");
        assert_eq!(parsed.words, ["timer", "3"], "{line}");
    }
    assert!(!parse("timer '&'").expect("a mistake").background);
}

#[test]
fn mistakes_are_told_apart() {
    let cases = [
        ("echo 'a", Mistake::OpenQuote('\'')),
        ("echo \"a'", Mistake::OpenQuote('"')),
        ("echo a\\", Mistake::Backslash),
        ("a & b", Mistake::AfterAmpersand),
        ("a&b", Mistake::AfterAmpersand),
        ("a &&", Mistake::AfterAmpersand),
        ("a & &", Mistake::AfterAmpersand),
        (" & ", Mistake::BeforeAmpersand),
    ];
    for (line, mistake) in cases {
        assert_eq!(parse(line), Err(mistake), "{line}");
    }
}

#[test]
fn unfinished_lines_have_a_last_word() {
    let cases: &[(&str, &[&str], &str, usize)] = &[
        ("", &[], "", 0),
        ("he", &[], "he", 0),
        ("  he", &[], "he", 2),
        ("cat ", &["cat"], "", 4),
        ("cat 'a b", &["cat"], "a b", 4),
        ("cat a\\ b", &["cat"], "a b", 4),
        ("cat 'a' b\"c", &["cat", "a"], "bc", 8),
    ];
    for &(line, before, word, start) in cases {
        let unfinished = unfinished(line);
        assert_eq!(
            (unfinished.words.as_slice(), unfinished.word.as_str(), unfinished.start),
            (&before.iter().map(|s| s.to_string()).collect::<Vec<_>>()[..], word, start),
            "{line}"
        );
    }
}

proptest! {
    #[test]
    fn quoted_words_are_read_as_they_are(expected in prop::collection::vec("[ -~äö€]{1,8}", 0..5)) {
        let line = expected.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(words(&line), expected);
    }

    #[test]
    fn no_line_does_harm(line in "[a-c '\"\\\\&#ä\t]{0,20}") {
        let _ = parse(&line);
        let unfinished = unfinished(&line);
        prop_assert!(line.is_char_boundary(unfinished.start));
    }
}

struct Known;

impl Sources for Known {
    fn arguments(&self, command: &str) -> Option<Candidates> {
        Some(match command {
            "help" => Candidates::Commands,
            "kill" => Candidates::Processes,
            "ls" => Candidates::Directories,
            "cat" => Candidates::Files,
            "run" => Candidates::Programs,
            "time" => Candidates::CommandLine,
            "ps" => Candidates::Nothing,
            _ => return None,
        })
    }

    fn words(&mut self, kind: Candidates) -> Vec<String> {
        let words: &[&str] = match kind {
            Candidates::Commands => &["help", "kill", "ls", "cat", "run", "time", "ps"],
            Candidates::Programs => &["timer", "rps", "hello"],
            Candidates::Processes => &["init", "console", "clock", "timer", "timer"],
            Candidates::Files => {
                &["bin/hello", "bin/rps", "bin/timer", "etc/motd", "share/two words.txt", "share/two.txt"]
            }
            _ => &[],
        };
        words.iter().map(|&word| word.into()).collect()
    }
}

/// The line that Tab makes.
fn completed(line: &str) -> String {
    let completion = complete(line, &mut Known);
    line[..line.len() - completion.replaces].to_string() + &completion.text
}

#[test]
fn tab_completes_what_the_place_asks_for() {
    let cases = [
        ("k", "kill "),
        ("he", "hel"),
        ("help k", "help kill "),
        ("help t", "help time "),
        ("hell", "hello "),
        ("ti", "time"),
        ("rp", "rps "),
        ("run t", "run timer "),
        ("run timer e", "run timer etc/"),
        ("time ki", "time kill "),
        ("time kill i", "time kill init "),
        ("time run he", "time run hello "),
        ("kill co", "kill console "),
        ("kill t", "kill timer "),
        ("kill c", "kill c"),
        ("ls b", "ls bin/"),
        ("ls bin/h", "ls bin/h"),
        ("cat b", "cat bin/"),
        ("cat bin/t", "cat bin/timer "),
        ("cat /e", "cat /etc/"),
        ("cat /etc/", "cat /etc/motd "),
        ("cat sh", "cat share/"),
        ("cat share/", "cat share/two"),
        ("cat share/two\\ w", "cat share/two\\ words.txt "),
        ("cat 'share/two w", "cat share/two\\ words.txt "),
        ("hello etc/m", "hello etc/motd "),
        ("ps x", "ps x"),
        ("nothing-like-it", "nothing-like-it"),
    ];
    for (line, expected) in cases {
        assert_eq!(completed(line), expected, "{line}");
    }
}

#[test]
fn choices_are_sorted_names() {
    assert_eq!(complete("kill c", &mut Known).choices, ["clock", "console"]);
    assert_eq!(complete("cat bin/", &mut Known).choices, ["hello", "rps", "timer"]);
    assert_eq!(complete("cat ", &mut Known).choices, ["bin/", "etc/", "share/"]);
    assert_eq!(complete("help x", &mut Known).choices, [""; 0]);
}

#[test]
fn near_misses_are_found() {
    let known = ["help", "ps", "kill", "uptime", "timer"];
    let cases = [
        ("hlep", Some("help")),
        ("hepl", Some("help")),
        ("helpp", Some("help")),
        ("sp", Some("ps")),
        ("p", None),
        ("kil", Some("kill")),
        ("uptme", Some("uptime")),
        ("tmier", Some("timer")),
        ("xyzzy", None),
        ("", None),
    ];
    for (word, expected) in cases {
        assert_eq!(nearest(word, known.into_iter()), expected, "{word}");
    }
}
