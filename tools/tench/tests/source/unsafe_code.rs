//! A test that `docs/unsafe.md` lists the crates that may use `unsafe`, with the number of blocks, and that each block
//! says why it is sound.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::source::{self, check, read};

const PAGE: &str = "docs/unsafe.md";
/// Maximum number of lines of code between a comment and its block, if a statement spans lines.
const REACH: usize = 4;

/// Form in which the keyword is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// A block, or an implementation of an unsafe trait, which claims that something is sound.
    Claim,
    /// A function or trait, which demands such a claim of its users.
    Demand,
    /// An attribute or a list of foreign functions.
    Other,
}

/// Collects every use of the keyword, with its line from 0.
fn uses(tokens: TokenStream, found: &mut Vec<(Form, usize)>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => uses(group.stream(), found),
            TokenTree::Ident(word) if word == "unsafe" => {
                let form = match tokens.peek() {
                    Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => Form::Claim,
                    Some(TokenTree::Ident(next)) if next == "impl" => Form::Claim,
                    Some(TokenTree::Ident(next)) if next == "fn" || next == "trait" => Form::Demand,
                    _ => Form::Other,
                };
                found.push((form, word.span().start().line - 1));
            }
            _ => {}
        }
    }
}

/// Returns the uses in a file.
fn uses_in(text: &str) -> Vec<(Form, usize)> {
    let mut found = Vec::new();
    uses(text.parse().expect("the compiler reads it too"), &mut found);
    found
}

/// Returns whether the comment before line `line`, or on it, contains `word`.
fn comment_says(lines: &[&str], line: usize, word: &str) -> bool {
    if lines[line].contains(word) {
        return true;
    }
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let above = lines[..line].iter().rev();
    let between = above.clone().take_while(|line| !is_comment(line)).count();
    between <= REACH && above.skip(between).take_while(|line| is_comment(line)).any(|line| line.contains(word))
}

/// A row of the page's table.
struct Row<'p> {
    folder: &'p str,
    blocks: &'p str,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let cells = |line: &'_ str| line.strip_prefix("| `").is_some();
    let rows = page.lines().filter(|line| cells(line)).filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        Some(Row { folder: cells.next()?.trim_matches('`'), blocks: cells.next()? })
    });
    rows.filter(|row| row.blocks.parse::<usize>().is_ok()).collect()
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let mut wrong = Vec::new();
    for file in source::files("", ".rs") {
        let text = read(&file);
        let lines: Vec<&str> = text.lines().collect();
        for (form, line) in uses_in(&text) {
            if form == Form::Claim && !comment_says(&lines, line, "SAFETY:") {
                wrong.push(format!("{file}:{}: no `// SAFETY:` comment", line + 1));
            }
            if form == Form::Demand && lines[line].trim_start().starts_with("pub ") {
                let is_above = |line: &&&str| !line.trim().is_empty() && !line.trim().ends_with('}');
                let above = lines[..line].iter().rev().take_while(is_above);
                if !above.clone().any(|line| line.contains("# Safety")) {
                    wrong.push(format!("{file}:{}: no `# Safety` in its documentation", line + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_is_where_the_page_says() {
    let crates = source::crates();
    let mut page = read(PAGE);
    let mut wrong = Vec::new();
    for folder in &crates {
        let files = source::files_of(folder, &crates);
        let used: Vec<Form> = files.iter().flat_map(|file| uses_in(&read(file))).map(|(form, _)| form).collect();
        let blocks = used.iter().filter(|form| **form == Form::Claim).count();
        let listed = rows(&page).into_iter().find(|row| row.folder == folder).map(|row| row.blocks.to_owned());
        match listed {
            Some(_) if used.is_empty() => wrong.push(format!("{folder} is listed in {PAGE} and uses no unsafe code")),
            // Fewer blocks are not an error; only blessing writes their number.
            Some(number) if blocks > number.parse().unwrap_or(0) || std::env::var_os("BLESS").is_some() => {
                let (old, new) = (format!("| `{folder}` | {number} |"), format!("| `{folder}` | {blocks} |"));
                assert!(page.contains(&old), "{PAGE}: the row of {folder} has other blanks than `{old}`");
                page = page.replace(&old, &new);
            }
            Some(_) => {}
            None if !used.is_empty() => wrong.push(format!("{folder} uses unsafe code and is not listed in {PAGE}")),
            None => wrong.extend(files.iter().filter(|file| is_root(folder, file)).filter_map(|file| {
                let forbids = read(file).contains("#![forbid(unsafe_code)]");
                (!forbids).then(|| format!("{file} needs #![forbid(unsafe_code)]"))
            })),
        }
    }
    for row in rows(&page) {
        if !crates.iter().any(|folder| folder == row.folder) {
            wrong.push(format!("{PAGE} lists {}, which is no crate", row.folder));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check(PAGE, &page);
}

/// Returns whether a file is the root of a library or program of the crate.
fn is_root(folder: &str, file: &str) -> bool {
    ["src/lib.rs", "src/main.rs"].iter().any(|root| *file == format!("{folder}/{root}"))
}

#[test]
fn uses_are_told_apart() {
    let text =
        "#[unsafe(no_mangle)]\nunsafe fn a() {\n    // SAFETY: yes.\n    unsafe { b() }\n}\nunsafe impl C for D {}";
    let found = uses_in(text);
    assert_eq!(found, [(Form::Other, 0), (Form::Demand, 1), (Form::Claim, 3), (Form::Claim, 5)]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(comment_says(&lines, 3, "SAFETY:"));
    assert!(!comment_says(&["// other", "x", "unsafe { b() }"], 2, "SAFETY:"));
}
