//! A doc comment begins with a subject that has a name, or with a verb whose subject is the item.

use super::source;

/// First words that leave the reader to guess what the sentence is about.
const RIDDLES: [&str; 11] =
    ["It", "Its", "That", "They", "What", "Whether", "Which", "Who", "Whoever", "Whom", "Whose"];

/// The text of a line that is a doc comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// The first line of each doc comment, with its line from 1.
fn beginnings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_inside = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let begins = !std::mem::replace(&mut is_inside, comment(line).is_some());
        Some((at + 1, comment(line)?)).filter(|_| begins)
    })
}

/// Returns whether a sentence begins with a riddle.
fn is_riddle(sentence: &str) -> bool {
    let first = sentence.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    RIDDLES.contains(&first) || sentence.starts_with("The same") || sentence.starts_with("See above")
}

#[test]
fn doc_comments_begin_with_a_subject() {
    let mut wrong = Vec::new();
    for file in source::files("", ".rs") {
        let text = source::read(&file);
        let riddles = beginnings(&text).filter(|(_, sentence)| is_riddle(sentence));
        wrong.extend(riddles.map(|(line, sentence)| format!("{file}:{line}: {sentence}")));
    }
    assert!(wrong.is_empty(), "{} doc comments begin with a riddle:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn riddles_are_told_from_sentences() {
    let text = "/// What is left.\n/// It goes.\nfn a() {}\n\n    /// Returns what is left.\n    fn b() {}\n";
    let found: Vec<_> = beginnings(text).collect();
    assert_eq!(found, [(1, "What is left."), (5, "Returns what is left.")]);
    assert!(is_riddle(found[0].1) && !is_riddle(found[1].1));
    assert!(is_riddle("The same for pages.") && !is_riddle("Items of a list."));
}
