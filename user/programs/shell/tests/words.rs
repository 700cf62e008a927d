//! Tests of words, quotes, completion and suggestions.

use proptest::prelude::*;
use tench_shell::completion::{Candidates, Sources, complete};
use tench_shell::parse::{Errors, Line, Mistake, Pipeline, Stage, Standard, Target, parse, quoted, unfinished};
use tench_shell::suggest::nearest;
use tench_shell::system::Entry;

/// Returns the words of a line with at most one command.
fn words(line: &str) -> Vec<String> {
    let mut line = parse(line).expect("a mistake");
    let pipeline = line.pop().unwrap_or_default();
    assert!(line.is_empty() && pipeline.stages.len() <= 1);
    pipeline.stages.into_iter().flat_map(|stage| stage.words).collect()
}

/// Returns a line in a form that is easy to compare.
fn picture(line: &str) -> String {
    let target =
        |sign: &str, target: &Target| format!(" {sign}{} {}", if target.append { ">" } else { "" }, target.path);
    let stage = |stage: &Stage| {
        let mut text = stage.words.join("_");
        text += &stage.input.as_ref().map(|path| format!(" < {path}")).unwrap_or_default();
        text += &stage.output.as_ref().map(|output| target(">", output)).unwrap_or_default();
        text += &match &stage.errors {
            None => String::new(),
            Some(Errors::ToOutput) => " 2>&1".into(),
            Some(Errors::To(errors)) => target("2>", errors),
        };
        text
    };
    let pipeline = |pipeline: &Pipeline| {
        let stages: Vec<String> = pipeline.stages.iter().map(stage).collect();
        format!("({}){}", stages.join(" | "), if pipeline.background { "&" } else { "" })
    };
    let line: Line = parse(line).expect("a mistake");
    line.iter().map(pipeline).collect()
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
        assert_eq!(picture(line), "(timer_3)&", "{line}");
        assert_eq!(parse(line).unwrap()[0].text, line.split('&').next().unwrap().trim(), "{line}");
    }
    assert_eq!(picture("timer '&'"), "(timer_&)");
}

#[test]
fn operators_connect_and_redirect() {
    let cases = [
        ("a|b | c", "(a | b | c)"),
        ("a 1 < in > out", "(a_1 < in > out)"),
        ("a>out<in 1", "(a_1 < in > out)"),
        ("a 0<in 1>out 2>errors", "(a < in > out 2> errors)"),
        ("a >> out 2>> errors", "(a >> out 2>> errors)"),
        ("a 2>&1 | b 2> 'two words'", "(a 2>&1 | b 2> two words)"),
        ("a > out 2>&1&", "(a > out 2>&1)&"),
        ("a 2 > out", "(a_2 > out)"),
        ("a x2>out", "(a_x2 > out)"),
        ("a \\2>out", "(a_2 > out)"),
        ("a '2'>out", "(a_2 > out)"),
        ("a | b & c; d ;", "(a | b)&(c)(d)"),
        ("a&b", "(a)&(b)"),
        ("a # | b > c", "(a)"),
        ("a \\| '<' \">\" \\;", "(a_|_<_>_;)"),
    ];
    for (line, expected) in cases {
        assert_eq!(picture(line), expected, "{line}");
    }
    let line = parse("one 'x y' | two > f & three ; four").expect("a mistake");
    let texts: Vec<&str> = line.iter().map(|pipeline| pipeline.text.as_str()).collect();
    assert_eq!(texts, ["one 'x y' | two > f", "three", "four"]);
}

#[test]
fn mistakes_are_told_apart() {
    let cases = [
        ("echo 'a", Mistake::OpenQuote('\'')),
        ("echo \"a'", Mistake::OpenQuote('"')),
        ("echo a\\", Mistake::Backslash),
        (" & ", Mistake::BeforeAmpersand),
        ("a & &", Mistake::BeforeAmpersand),
        ("; a", Mistake::BeforeSemicolon),
        ("a ;; b", Mistake::BeforeSemicolon),
        ("a & ; b", Mistake::BeforeSemicolon),
        ("| a", Mistake::BeforePipe),
        ("a ; | b", Mistake::BeforePipe),
        ("a |", Mistake::AfterPipe),
        ("a | | b", Mistake::AfterPipe),
        ("a | & b", Mistake::AfterPipe),
        ("a && b", Mistake::DoubleAmpersand),
        ("a || b", Mistake::DoublePipe),
        ("a << b", Mistake::DoubleLess),
        ("a 3> b", Mistake::Number('>')),
        ("a 1< b", Mistake::Number('<')),
        ("a >& b", Mistake::Copy),
        ("a 2>&2", Mistake::Copy),
        ("a 2>&1x", Mistake::Copy),
        ("a <", Mistake::NoFile(Standard::Input)),
        ("a > | b", Mistake::NoFile(Standard::Output)),
        ("a 2> > b", Mistake::NoFile(Standard::Errors)),
        ("> a", Mistake::NothingToRedirect(Standard::Output)),
        ("a | < b", Mistake::NothingToRedirect(Standard::Input)),
        ("2>&1", Mistake::NothingToRedirect(Standard::Errors)),
        ("a < b < c", Mistake::Twice(Standard::Input)),
        ("a > b >> c", Mistake::Twice(Standard::Output)),
        ("a 2> b 2>&1", Mistake::Twice(Standard::Errors)),
        ("a > b | c", Mistake::PipeAndFile(Standard::Output)),
        ("a | b < c", Mistake::PipeAndFile(Standard::Input)),
    ];
    let mut texts = Vec::new();
    for (line, mistake) in cases {
        assert_eq!(parse(line), Err(mistake), "{line}");
        texts.push(mistake.to_string());
    }
    for text in &texts {
        assert!(text.len() <= 130 && !text.ends_with('.'), "{text}");
        // This is the permitted alternative.
        assert!(["write", "runs", "reads", "from", "2>&1", "tee"].iter().any(|word| text.contains(word)), "{text}");
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
        assert!(!unfinished.is_file, "{line}");
    }
    let cases: &[(&str, &[&str], &str, bool)] = &[
        ("a b | c d e", &["c", "d"], "e", false),
        ("a |", &[], "", false),
        ("a; b ", &["b"], "", false),
        ("a & b", &[], "b", false),
        ("a < b", &["a"], "b", true),
        ("a >", &["a"], "", true),
        ("a > b ", &["a"], "", false),
        ("a 2> 'b c", &["a"], "b c", true),
        ("a > b c | d > e f", &["d"], "f", false),
        ("a 2>&1 b", &["a"], "b", false),
    ];
    for &(line, before, word, is_file) in cases {
        let unfinished = unfinished(line);
        assert_eq!(
            (&unfinished.words[..], unfinished.word.as_str()),
            (&before.iter().map(|s| s.to_string()).collect::<Vec<_>>()[..], word),
            "{line}"
        );
        assert_eq!(unfinished.is_file, is_file, "{line}");
    }
}

proptest! {
    #[test]
    fn quoted_words_are_read_as_they_are(expected in prop::collection::vec("[ -~äö€]{1,8}", 0..5)) {
        let line = expected.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(words(&line), expected);
    }

    #[test]
    fn no_line_does_harm(line in "[a-c '\"\\\\&#ä\t|<>;0-3]{0,20}") {
        for pipeline in parse(&line).unwrap_or_default() {
            // The kept text has the same meaning.
            let again = parse(&pipeline.text).expect("a part of a line has a mistake");
            prop_assert_eq!(again, vec![Pipeline { background: false, ..pipeline }]);
        }
        let unfinished = unfinished(&line);
        prop_assert!(line.is_char_boundary(unfinished.start));
        prop_assert!(unfinished.word.is_empty() || unfinished.start < line.len());
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
            "fg" => Candidates::Jobs,
            _ => return None,
        })
    }

    fn words(&mut self, kind: Candidates) -> Vec<String> {
        let words: &[&str] = match kind {
            Candidates::Commands => &["help", "kill", "ls", "cat", "run", "time", "ps"],
            Candidates::Programs => &["timer", "rps", "hello"],
            Candidates::Processes => &["init", "console", "clock", "timer", "timer"],
            Candidates::Jobs => &["%1", "%2"],
            _ => &[],
        };
        words.iter().map(|&word| word.into()).collect()
    }

    fn entries(&mut self, directory: &str) -> Vec<Entry> {
        let names: &[&str] = match directory.trim_matches('/') {
            "" => &["bin/", "etc/", "share/"],
            "bin" => &["hello", "rps", "timer"],
            "etc" => &["motd"],
            "share" => &["two words.txt", "two.txt", "deep/"],
            _ => &[],
        };
        let entry =
            |name: &str| Entry { name: name.trim_end_matches('/').into(), size: 0, is_directory: name.ends_with('/') };
        names.iter().map(|name| entry(name)).collect()
    }
}

/// Returns the line after Tab.
fn completed(line: &str) -> String {
    let completion = complete(line, &mut Known);
    line[..line.len() - completion.replaces].to_string() + &completion.text
}

#[test]
fn tab_completes_what_the_position_asks_for() {
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
        ("run --terminal t", "run --terminal timer "),
        ("run --quota 2M --terminal --with po", "run --quota 2M --terminal --with power "),
        ("run --with po", "run --with power "),
        ("run --with power,me", "run --with power,memory "),
        ("run --with xyz", "run --with xyz"),
        ("run --with power ti", "run --with power timer "),
        ("run --with power --quota 2M ti", "run --with power --quota 2M timer "),
        ("run --quota t", "run --quota t"),
        ("run bin/t", "run bin/timer "),
        ("run share/d", "run share/deep/"),
        ("/bin/h", "/bin/hello "),
        ("time share/two.", "time share/two.txt "),
        ("run --with power timer e", "run --with power timer etc/"),
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
        ("cat share/", "cat share/"),
        ("cat share/t", "cat share/two"),
        ("cat share/d", "cat share/deep/"),
        ("ls share/t", "ls share/t"),
        ("ls share/d", "ls share/deep/"),
        ("fg ", "fg %"),
        ("a | ki", "a | kill "),
        ("a|ki", "a|kill "),
        ("a ; kill co", "a ; kill console "),
        ("kill > b", "kill > bin/"),
        ("a 2>> /etc/", "a 2>> /etc/motd "),
        ("a < share/two\\ w", "a < share/two\\ words.txt "),
        ("time a | time ki", "time a | time kill "),
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
    assert_eq!(complete("run --with power,", &mut Known).choices.len(), 9);
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
