//! The manual's list of calls is that of the code. `BLESS=1` writes it.

use std::collections::BTreeSet;

const BEGIN: &str = "<!-- Made from user/linux/server/src/calls/mod.rs by a test. -->\n";
const END: &str = "<!-- The end of what is made. -->";
const COLUMNS: usize = 150;

/// Returns the names of the calls that the code has an answer for.
fn calls() -> BTreeSet<String> {
    let code = include_str!("../src/calls/mod.rs");
    let answered = code.lines().filter(|line| line.contains("=>"));
    let names = answered.flat_map(|line| {
        let patterns = line.split("=>").next().unwrap_or("").split(" if ").next().unwrap_or("");
        patterns.split('|').filter_map(|pattern| pattern.trim().strip_prefix("Sysno::").map(str::to_owned))
    });
    names.map(|name| if name == "fstatat" { "newfstatat".into() } else { name.trim().to_owned() }).collect()
}

fn list() -> String {
    let mut text = String::new();
    let mut line = String::new();
    for name in calls() {
        if line.len() + name.len() + 4 > COLUMNS {
            text.push_str(&line);
            text.push('\n');
            line.clear();
        }
        line.push_str(&format!("{}`{name}`", if line.is_empty() { "" } else { " " }));
    }
    text + &line + "\n"
}

#[test]
fn the_manual_lists_the_calls() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/linux.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the list");
    let (found, after) = rest.split_once(END).expect("the end of the list");
    let expected = list();
    assert!(calls().len() > 80, "the code was read");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, expected, "BLESS=1 cargo test -p tench-linux --test manual writes it");
    }
}
