//! One idea has one word: `docs/glossary.md` explains the terms, and words that they have replaced are refused.

use super::source;

/// A word that the tree used before.
struct Retired {
    /// The word, or several in a row, in lower case. Matches in prose and in names: `stand in` is also `StandIn`,
    /// `stand_in` and `stand-in`.
    words: &'static str,
    /// The term of the glossary that replaces it.
    instead: &'static str,
    /// Folders (or files) where the word is refused; elsewhere it has ordinary uses.
    within: &'static [&'static str],
}

const EVERYWHERE: &[&str] = &[""];

const RETIRED: [Retired; 36] = [
    Retired { words: "message area", instead: "IPC buffer", within: EVERYWHERE },
    Retired { words: "stretch", instead: "interrupts-off interval", within: EVERYWHERE },
    Retired { words: "stand ins", instead: "exported capability", within: EVERYWHERE },
    Retired { words: "foreign copies", instead: "remote capability", within: EVERYWHERE },
    Retired { words: "capability space", instead: "CSpace", within: EVERYWHERE },
    Retired { words: "granule", instead: "fault-around size", within: EVERYWHERE },
    Retired { words: "books", instead: "ledger", within: EVERYWHERE },
    Retired { words: "loan", instead: "scheduling-context donation", within: &["kernel", "model"] },
    Retired {
        words: "answer",
        instead: "reply",
        within: &[
            "abi",
            "kernel",
            "model",
            "user/lib/protocol",
            "user/lib/sys",
            "user/lib/tench",
            "user/interfaces",
            "user/servers",
            "docs",
            "tools",
            "systems",
        ],
    },
    Retired { words: "laid aside", instead: "deferred", within: EVERYWHERE },
    Retired { words: "window", instead: "preemption point", within: &["kernel/core/src", "model/src"] },
    Retired { words: "watch", instead: "latency tracer", within: &["kernel/core", "kernel/image"] },
    Retired { words: "obey", instead: "suspend", within: EVERYWHERE },
    Retired { words: "grace", instead: "margin", within: EVERYWHERE },
    Retired {
        words: "bell",
        instead: "doorbell",
        within: &["kernel", "user/lib/channel", "user/servers/monitor", "lab"],
    },
    Retired { words: "ear", instead: "listener", within: EVERYWHERE },
    Retired { words: "stubborn", instead: "pending unexport", within: EVERYWHERE },
    Retired { words: "freight", instead: "attachments", within: EVERYWHERE },
    Retired { words: "luggage", instead: "attachments", within: EVERYWHERE },
    Retired { words: "shipment", instead: "attachments", within: EVERYWHERE },
    Retired { words: "parcel", instead: "transfer", within: EVERYWHERE },
    Retired {
        words: "letter",
        instead: "transfer",
        within: &["user/servers/monitor/src", "user/interfaces/monitor", "user/lib/remote"],
    },
    Retired { words: "gift", instead: "transfer request", within: EVERYWHERE },
    Retired { words: "mail", instead: "mailbox", within: EVERYWHERE },
    Retired { words: "asker", instead: "requester", within: EVERYWHERE },
    Retired { words: "giver", instead: "granter", within: &["user/servers/monitor", "user/lib/remote"] },
    Retired { words: "taker", instead: "receiver", within: EVERYWHERE },
    Retired {
        words: "hands",
        instead: "executor",
        within: &["user/servers/monitor/src/transfer/exchange", "user/lib/remote"],
    },
    Retired { words: "desk", instead: "dispatcher", within: EVERYWHERE },
    Retired { words: "attention", instead: "liveness timer", within: EVERYWHERE },
    Retired { words: "unsaid", instead: "unsent", within: EVERYWHERE },
    Retired { words: "living", instead: "running process", within: &["user/servers/procs"] },
    Retired { words: "keepsake", instead: "persistent state", within: EVERYWHERE },
    Retired { words: "wish", instead: "effective settings", within: EVERYWHERE },
    Retired { words: "deed", instead: "workload", within: EVERYWHERE },
    Retired { words: "culprit", instead: "attribution", within: EVERYWHERE },
];

/// Files that must say what is refused.
const MAY_SAY: [&str; 2] = ["docs/glossary.md", "tools/tench/tests/source/words.rs"];

/// Returns the words of a line, in lower case, with names taken apart: `IpcBuffer_of` is `ipc`, `buffer`, `of`. An
/// empty word stands for punctuation.
fn parts(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut previous = ' ';
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_alphabetic() {
            let next_is_lower = letters.peek().is_some_and(|next| next.is_lowercase());
            let begins =
                !previous.is_alphabetic() || letter.is_uppercase() && (previous.is_lowercase() || next_is_lower);
            if begins {
                parts.push(String::new());
            }
            parts.last_mut().unwrap_or_else(|| unreachable!("one has begun")).extend(letter.to_lowercase());
        } else if !" _-".contains(letter) {
            parts.push(String::new());
        }
        previous = letter;
    }
    parts
}

/// Returns whether the words of `phrase` follow each other in `parts`; a plural counts, too.
fn has(parts: &[String], phrase: &str) -> bool {
    let words: Vec<&str> = phrase.split(' ').collect();
    let equal = |part: &String, word: &&str| part == word || part.strip_suffix('s') == Some(word);
    parts.windows(words.len()).any(|row| row.iter().zip(&words).all(|(part, word)| equal(part, word)))
}

/// Returns the files that people read: sources, pages, descriptions, headers, recorded sessions.
fn files() -> Vec<String> {
    let ends = [".rs", ".md", ".toml", ".h", ".c", ".S", ".s", ".ld", ".txt", ".script"];
    let mut files: Vec<String> = ends.iter().flat_map(|end| source::files("", end)).collect();
    files.retain(|file| !MAY_SAY.contains(&file.as_str()));
    files
}

#[test]
fn retired_words_are_not_used() {
    let mut wrong = Vec::new();
    for file in files() {
        let text = source::read(&file);
        let lies_within = |one: &&Retired| one.within.iter().any(|folder| file.starts_with(folder));
        let refused: Vec<&Retired> = RETIRED.iter().filter(lies_within).collect();
        for (at, line) in text.lines().enumerate() {
            let parts = parts(line);
            for one in refused.iter().filter(|one| has(&parts, one.words)) {
                wrong.push(format!("{file}:{}: `{}` is now called {}", at + 1, one.words, one.instead));
            }
        }
    }
    assert!(wrong.is_empty(), "{} retired words (docs/glossary.md):\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_glossary_explains_each_term_and_names_each_retired_word() {
    let page = source::read("docs/glossary.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut wrong = Vec::new();
    for one in &RETIRED {
        let row = rows.iter().find(|row| row[0].eq_ignore_ascii_case(one.instead));
        match row {
            None => wrong.push(format!("{} is not explained", one.instead)),
            Some(row) if !row.last().is_some_and(|old| old.contains(one.words)) => {
                wrong.push(format!("{} does not say that it was called `{}`", one.instead, one.words));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "docs/glossary.md: {}", wrong.join("\n"));
}

#[test]
fn words_are_found_in_names_and_in_prose() {
    let words = ["fn", "set", "ipc", "buffer", "", "http", "server", "x", "", "y", ""];
    assert_eq!(parts("fn set_IpcBuffer(HTTPServer x2y)"), words);
    for line in ["a stand-in", "StandIns", "let stand_in = 1;", "STAND_IN"] {
        assert!(has(&parts(line), "stand in"), "{line}");
    }
    assert!(!has(&parts("they stand outside in"), "stand in") && !has(&parts("stand, in"), "stand in"));
}
