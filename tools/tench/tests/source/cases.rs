//! A case's number is its own: it stands in pages and in reports of failures, and never means another case.

use std::collections::BTreeMap;

use super::source;

#[test]
fn every_case_has_a_number_of_its_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in source::files("tests/cases/src", ".rs") {
        for number in numbers(&source::read(&file)) {
            places.entry(number).or_default().push(file.clone());
        }
    }
    assert!(places.len() > 500, "only {} cases were found", places.len());
    let twice: Vec<_> = places.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(twice.is_empty(), "numbers that two cases have: {twice:#?}");
}

/// Returns the numbers in a file: quoted, capital letters and four digits. Only definitions of cases quote them.
fn numbers(text: &str) -> Vec<String> {
    let is_number = |word: &&str| {
        let (letters, digits) = word.split_at_checked(word.len().saturating_sub(4)).unwrap_or_default();
        letters.len() >= 2 && letters.bytes().all(|byte| byte.is_ascii_uppercase()) && digits.parse::<u16>().is_ok()
    };
    text.split('"').filter(is_number).map(str::to_owned).collect()
}

#[test]
fn numbers_are_found() {
    let text = "Case::new(\"ABC0001\", \"x\", f), case(\n    \"ABC0002\", \"see ABC0003\", g); new(\"ABCD01\")";
    assert_eq!(numbers(text), ["ABC0001", "ABC0002"]);
}
