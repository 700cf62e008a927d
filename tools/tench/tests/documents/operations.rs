//! A test that the second half of `docs/manual/system-calls.md` is generated from the documentation in `abi/src`.

use std::fmt::Write;

use tench_abi::{Error, Operation};

use super::{check, read};

const PAGE: &str = "docs/manual/system-calls.md";
/// Line at which the generated part begins.
const MARK: &str = "<!-- From here on made from abi/src by a test of the host tool. -->\n";

/// Replaces `[text](crate::path)` by `text`.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let link = after.split_once("](").filter(|(name, _)| !name.contains(']'));
        match link.and_then(|(name, after)| Some((name, after.split_once(')')?.1))) {
            Some((name, after)) => {
                plain.push_str(name);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = after;
            }
        }
    }
    plain + rest
}

/// Returns an operation's documentation, with its results and errors in paragraphs of their own.
fn paragraphs(documentation: &str) -> String {
    let text = without_links(documentation.trim());
    text.replace(" Returns ", "\n\n*Returns* ").replace(" Errors: ", "\n\n*Errors:* ")
}

/// Returns the operations as a chapter for each group of the source.
fn operations() -> String {
    let source = read("abi/src/operation.rs");
    let (_, list) = source.split_once("\noperations! {").expect("the list of operations");
    let (mut page, mut documentation, mut seen) = (String::new(), String::new(), 0);
    for line in list.lines().map(str::trim).take_while(|line| *line != "}") {
        if let Some(title) = line.strip_prefix("// ──") {
            let _ = write!(page, "\n## {}\n", title.trim_matches(['─', ' ']));
        } else if let Some(text) = line.strip_prefix("///") {
            documentation += text;
        } else if let Some((name, code)) = line.trim_end_matches(';').split_once(" = ") {
            let _ = write!(page, "\n### {name} ({code})\n\n{}\n", paragraphs(&documentation));
            assert_eq!(Operation::ALL[seen].name(), name, "operations lie in the order of their numbers");
            (documentation, seen) = (String::new(), seen + 1);
        }
    }
    assert_eq!(seen, Operation::ALL.len(), "every operation has a line `NAME = NUMBER;`");
    page
}

/// Returns the errors as a table.
fn errors() -> String {
    let mut page = "\n## Errors\n\n| code | error | what to do |\n|---:|---|---|\n".to_owned();
    for error in Error::ALL {
        let _ = writeln!(page, "| {} | `{error:?}` | {} |", *error as u32, error.text());
    }
    page
}

#[test]
fn the_page_has_every_system_call() {
    let page = read(PAGE);
    let (front, _) = page.split_once(MARK).unwrap_or_else(|| panic!("{PAGE} lacks the line {MARK}"));
    check(PAGE, &format!("{front}{MARK}{}{}", operations(), errors()));
}

#[test]
fn links_of_rust_become_text() {
    assert_eq!(without_links("a [b] [`Kind`](crate::Kind) [c] d"), "a [b] `Kind` [c] d");
}
