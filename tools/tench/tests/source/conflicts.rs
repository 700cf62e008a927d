//! No file has a merge's conflict in it, which nobody resolved.

use super::source;

/// Ends of the names of files that people write.
const KINDS: [&str; 7] = [".rs", ".md", ".toml", ".txt", ".json", ".sh", ".yml"];

/// Returns the lines, from 1, that `git merge` writes around two versions.
fn markers(text: &str) -> impl Iterator<Item = usize> {
    let is_marker = |line: &str| ["<<<<<<< ", "||||||| ", ">>>>>>> "].iter().any(|marker| line.starts_with(marker));
    (1..).zip(text.lines()).filter(move |(_, line)| is_marker(line)).map(|(number, _)| number)
}

#[test]
fn no_conflict_is_left() {
    let files = KINDS.iter().flat_map(|kind| source::files("", kind));
    let found = files.flat_map(|file| {
        let text = source::read(&file);
        markers(&text).map(|line| format!("{file}:{line}")).collect::<Vec<_>>()
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "conflicts that nobody resolved:\n{}", found.join("\n"));
}

#[test]
fn markers_are_found() {
    let text = "a\n<<<<<<< HEAD\nb\n||||||| base\nc\n=======\nd\n>>>>>>> other\ne <<<<<<< f\n";
    assert_eq!(markers(text).collect::<Vec<_>>(), [2, 4, 8]);
}
