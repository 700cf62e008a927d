//! A test that `docs/dependencies.md` has a sentence for each external crate, and for no other.

use std::collections::BTreeSet;

use super::{read, source};

const PAGE: &str = "docs/dependencies.md";
/// Sections of a manifest that name dependencies.
const SECTIONS: [&str; 4] = ["dependencies", "dev-dependencies", "build-dependencies", "workspace"];

/// Returns the external crates that a table of a manifest names: those without a path, at any nesting.
fn external(table: &toml::Table, found: &mut BTreeSet<String>) {
    for (key, value) in table {
        let Some(section) = value.as_table() else { continue };
        match key.as_str() {
            "target" => section.values().filter_map(toml::Value::as_table).for_each(|table| external(table, found)),
            "workspace" => external(section, found),
            key if SECTIONS.contains(&key) => {
                let named = section.iter().filter(|(name, value)| {
                    *name != "tench" && !name.starts_with("tench-") && value.get("path").is_none()
                });
                found.extend(named.map(|(name, _)| name.clone()));
            }
            _ => {}
        }
    }
}

#[test]
fn every_dependency_has_a_sentence_and_a_licence() {
    let mut used = BTreeSet::new();
    for manifest in source::files("", "Cargo.toml") {
        let table: toml::Table = read(&manifest).parse().unwrap_or_else(|error| panic!("{manifest}: {error}"));
        external(&table, &mut used);
    }
    let page = read(PAGE);
    let mut listed = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert!(cells.len() == 6 && cells[1..5].iter().all(|cell| !cell.is_empty()), "{PAGE}: {row}");
        listed.insert(cells[1].trim_matches('`').to_owned());
    }
    let missing: Vec<_> = used.difference(&listed).collect();
    let unused: Vec<_> = listed.difference(&used).collect();
    assert!(
        missing.is_empty() && unused.is_empty(),
        "{PAGE}: not listed: {missing:?}; listed and not used: {unused:?}"
    );
}
