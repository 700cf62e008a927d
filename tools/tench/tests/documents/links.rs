//! Tests that links and file names in the documents are valid.

use super::{read, root, source};

/// Returns the targets of a page's links that are files of the tree.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|target| !target.contains("://") && !target.starts_with('#'))
}

/// Returns whether `word` looks like the path of a source file from the root.
fn is_path(word: &str) -> bool {
    let top = ["abi/", "docs/", "fuzz/", "kernel/", "lab/", "model/", "systems/", "tests/", "tools/", "user/"];
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c));
    plain && top.iter().any(|folder| word.starts_with(folder))
}

/// Paths that the pages about new programs and servers tell their readers to create.
const MADE_BY_READERS: [&str; 4] =
    ["user/programs/greet", "user/programs/count", "user/servers/counter", "user/interfaces/counter"];

/// Pages at the root whose links are checked.
const AT_THE_ROOT: [&str; 4] = ["README.md", "SECURITY.md", "KNOWN-ISSUES.md", "CHANGELOG.md"];

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    let pages = source::files("docs", ".md").into_iter().chain(AT_THE_ROOT.map(str::to_owned));
    for page in pages {
        let text = read(&page);
        let folder = root().join(&page).parent().map(std::path::Path::to_path_buf).unwrap_or_default();
        for target in targets(&text) {
            let file = target.split('#').next().unwrap_or_default();
            if !folder.join(file).exists() {
                wrong.push(format!("{page}: the link to {target} leads nowhere"));
            }
        }
        for word in text.split('`').skip(1).step_by(2).filter(|word| is_path(word)) {
            let made = MADE_BY_READERS.iter().any(|folder| word.starts_with(folder));
            if !made && !word.contains("NAME") && !root().join(word).exists() {
                wrong.push(format!("{page}: there is no {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn comments_name_pages_that_exist() {
    let mut wrong = Vec::new();
    for file in source::files("", ".rs").into_iter().chain(source::files("systems", ".toml")) {
        for word in read(&file).split(|c: char| !(c.is_ascii_alphanumeric() || "./_-".contains(c))) {
            if word.starts_with("docs/") && word.ends_with(".md") && !root().join(word).exists() {
                wrong.push(format!("{file}: there is no {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
