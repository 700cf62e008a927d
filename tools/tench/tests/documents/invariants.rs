//! docs/invariants.md names, for each invariant, the functions that check it and the mutants that break it. Each of
//! them exists, and each mutant is named where it belongs; none is missing that would show that a check finds mistakes.

use std::collections::{BTreeMap, BTreeSet};

use super::{read, source};

const PAGE: &str = "docs/invariants.md";
/// Folder with the lists of mutants.
const LISTS: &str = "tests/mutants";
/// Begins the first section that is not about the kernel.
const OTHERS: &str = "\n## Servers";
/// Begins a line with checks.
const CHECKS: &str = "→ ";
/// Begins a line with mutants. Those of which the check is the only thing that finds them are bold.
const MUTANTS: &str = "✗ ";

/// An invariant, as the page has it.
#[derive(Default)]
struct Invariant {
    /// Names in code of its checks.
    checks: Vec<String>,
    /// Mutants, and whether each is bold.
    mutants: BTreeSet<(String, bool)>,
    /// Set if it is about the kernel, of which there are mutants.
    is_of_kernel: bool,
}

/// Returns what stands between backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the name of the invariant that a line begins: the bold text at its start.
fn name(item: &str) -> Option<String> {
    let (name, _) = item.strip_prefix("- **")?.split_once("**")?;
    Some(name.trim_end_matches(['.', ':', ',']).to_owned())
}

/// Returns the page's invariants by name. Lines that continue others are indented.
fn invariants() -> BTreeMap<String, Invariant> {
    let mut found: BTreeMap<String, Invariant> = BTreeMap::new();
    let page = read(PAGE).replace("\n  →", "\r→").replace("\n  ✗", "\r✗").replace("\n  ", " ");
    let (of_kernel, of_others) = page.split_once(OTHERS).expect("a section about servers");
    let of_kernel = of_kernel.lines().map(|line| (line, true));
    for (item, is_of_kernel) in of_kernel.chain(of_others.lines().map(|line| (line, false))) {
        if !item.starts_with("- ") {
            continue;
        }
        let mut parts = item.split('\r');
        let first = parts.next().unwrap_or_default();
        let name = name(first).unwrap_or_else(|| panic!("{PAGE}: this item has no name in bold: {first}"));
        let mut invariant = Invariant { is_of_kernel, ..Invariant::default() };
        for part in parts.chain(first.split_once(CHECKS).map(|(_, checks)| checks)) {
            if let Some(mutants) = part.strip_prefix(MUTANTS) {
                let bold = |mutant: &str| mutants.contains(&format!("**`{mutant}`**"));
                invariant.mutants.extend(code(mutants).map(|mutant| (mutant.to_owned(), bold(mutant))));
            } else {
                invariant.checks.extend(code(part).map(str::to_owned));
            }
        }
        assert!(found.insert(name.clone(), invariant).is_none(), "{PAGE}: two invariants are called {name}");
    }
    found
}

/// Returns a function for each mutant that returns the text of one of its fields.
fn mutants() -> Vec<impl Fn(&str) -> Option<String>> {
    let lists = source::files(LISTS, ".toml").into_iter().map(|file| {
        let list: toml::Table = read(&file).parse().unwrap_or_else(|error| panic!("{file}: {error}"));
        list["mutant"].as_array().expect("a list of mutants").clone()
    });
    let field =
        |mutant: toml::Value| move |name: &str| mutant.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    lists.flatten().map(field).collect()
}

#[test]
fn the_checks_of_each_invariant_exist() {
    let files = ["kernel", "model", "user", "tests", "tools"].map(|folder| source::files(folder, ".rs"));
    let text: String = files.iter().flatten().map(|file| read(file)).collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, invariant) in invariants() {
        for check in &invariant.checks {
            let function = check.rsplit("::").next().unwrap_or(check);
            let is_name = function.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if !is_name || !function.contains('_') {
                continue;
            }
            count += 1;
            if ["(", "<"].iter().all(|end| !text.contains(&format!("fn {function}{end}"))) {
                wrong.push(format!("{name}: there is no {check}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
    assert!(count > 100, "{PAGE}: an invariant that can be checked names its functions behind an arrow; {count} do");
}

#[test]
fn each_mutant_is_named_by_the_invariant_that_it_breaks() {
    let mut expected: BTreeMap<String, BTreeSet<(String, bool)>> = BTreeMap::new();
    for field in mutants() {
        let mutants = expected.entry(field("breaks").expect("what it breaks")).or_default();
        mutants.insert((field("name").expect("a name"), field("check").is_some()));
    }
    let mut wrong = Vec::new();
    for (name, invariant) in invariants() {
        let mutants = expected.remove(&name).unwrap_or_default();
        if mutants != invariant.mutants {
            let quoted = |(mutant, bold): &(String, bool)| match bold {
                true => format!("**`{mutant}`**"),
                false => format!("`{mutant}`"),
            };
            let line: Vec<String> = mutants.iter().map(quoted).collect();
            wrong.push(format!("{name}\n  {MUTANTS}{}", line.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{PAGE} should have these lines:\n{}", wrong.join("\n"));
    assert!(expected.is_empty(), "{LISTS} breaks what {PAGE} does not state: {:?}", expected.keys());
}

#[test]
fn each_invariant_that_tests_of_the_host_check_has_a_mutant() {
    let is_case = |check: &str| check.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let without = |(_, invariant): &(String, Invariant)| {
        let is_checked = invariant.checks.iter().any(|check| !is_case(check));
        invariant.is_of_kernel && is_checked && invariant.mutants.is_empty()
    };
    let wrong: Vec<String> = invariants().into_iter().filter(without).map(|(name, _)| name).collect();
    assert!(wrong.is_empty(), "{LISTS} has no mutant that breaks these statements of {PAGE}: {wrong:#?}");
}

#[test]
fn each_check_of_the_state_is_the_only_one_that_finds_some_mutant() {
    let file = "kernel/arch/host/src/check.rs";
    let text = read(file);
    let (_, list) = text.split_once("const CHECKS: ").expect("the list of checks");
    let (list, _) = list.split_once("];").expect("its end");
    let checks: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(checks.contains("check_slots"), "{file}: {checks:?}");
    let needed: BTreeSet<String> = mutants().iter().filter_map(|field| field("check")).collect();
    let needed: BTreeSet<&str> = needed.iter().map(String::as_str).collect();
    assert_eq!(checks, needed, "the checks in {file}, and those that mutants in {LISTS} name as theirs");
}
