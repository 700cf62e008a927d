//! Files and functions stay short enough to be read in one go, and comments as narrow as the code.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::source;

/// Lines of a source file at most.
const MAX_FILE: usize = 600;
/// Lines of code of a function at most, from `fn` to its closing brace: comments, empty
/// lines and lines of text (also of assembly) do not count.
const MAX_FUNCTION: usize = 60;
/// Lines of a test at most: a table of cases reads well at any length, so the limit is only against forgetting it.
const MAX_TEST: usize = 110;
/// Columns of a line at most, as `rustfmt.toml` has it for code.
const MAX_COLUMNS: usize = 120;

/// Files that are longer, until their second idea is found. May only become fewer.
const LONG_FILES: [&str; 0] = [];

/// The functions of a file: name, first line from 1, and number of lines.
fn functions(tokens: TokenStream, found: &mut Vec<(String, usize, usize)>) {
    let mut begun: Option<(String, usize)> = None;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "fn" => {
                if let Some(TokenTree::Ident(name)) = tokens.peek() {
                    begun = Some((name.to_string(), word.span().start().line));
                }
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' && mark.spacing() == Spacing::Alone => begun = None,
            TokenTree::Group(group) => {
                if group.delimiter() == Delimiter::Brace
                    && let Some((name, first)) = begun.take()
                {
                    found.push((name, first, group.span_close().end().line - first + 1));
                }
                functions(group.stream(), found);
            }
            _ => {}
        }
    }
}

/// Returns whether a line is neither empty, nor a comment, nor text alone.
fn is_code(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with("//") && !line.starts_with('"')
}

#[test]
fn files_functions_and_lines_are_short() {
    let mut wrong = Vec::new();
    for file in source::files("", ".rs") {
        let text = source::read(&file);
        let lines = text.lines().count();
        if lines > MAX_FILE && !LONG_FILES.contains(&file.as_str()) {
            wrong.push(format!("{file}: {lines} lines, {MAX_FILE} are allowed: find its second idea"));
        }
        let wide = text.lines().enumerate().filter(|(_, line)| {
            let code = line.trim_start();
            let is_table = code.get(3..).is_some_and(|text| text.trim_start().starts_with('|'));
            code.starts_with("//") && !is_table && !code.contains("://") && line.chars().count() > MAX_COLUMNS
        });
        wrong.extend(wide.map(|(at, _)| format!("{file}:{}: a comment of more than {MAX_COLUMNS} columns", at + 1)));
        let mut found = Vec::new();
        functions(text.parse().expect("the compiler reads it too"), &mut found);
        let lines: Vec<&str> = text.lines().collect();
        for (name, first, count) in found {
            let is_test = file.contains("/tests/")
                || lines[..first - 1].iter().rev().take(3).any(|line| line.contains("#[test]"));
            let allowed = if is_test { MAX_TEST } else { MAX_FUNCTION };
            let code = lines[first - 1..first - 1 + count].iter().filter(|line| is_code(line)).count();
            if code > allowed {
                wrong.push(format!("{file}:{first}: `{name}` has {code} lines, {allowed} are allowed"));
            }
        }
    }
    for file in LONG_FILES {
        let lines = source::read(file).lines().count();
        if lines <= MAX_FILE {
            wrong.push(format!("{file} has {lines} lines; strike it from the list of long files"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_are_measured() {
    let text = "trait T { fn a(); fn b() {\n} }\nfn c(x: [u8; 2]) -> u8\nwhere u8: Copy {\n let f: fn() = || {\n };\n}";
    let mut found = Vec::new();
    functions(text.parse().expect("it is Rust"), &mut found);
    let of = |name: &str, first, lines| (name.to_owned(), first, lines);
    assert_eq!(found, [of("b", 1, 2), of("c", 3, 5)]);
}
