//! Tests with one bad file per mistake (`tests/bad/`): the first line says what the tool must report about it.

use std::fs;
use std::path::{Path, PathBuf};

use super::check::check;
use super::mistake::Mistakes;
use super::*;

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn packages() -> Packages {
    Packages::of(&["tench-kernel-image", "tench-init", "tench-mem", "tench-shell"])
}

/// Returns what the tool reports about a file of `tests/bad/`, one line for each mistake.
fn verdict(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let packages = packages();
    let root = manifest().join("../..");
    match check("bad", "bad.toml", &text, &Surroundings { root: &root, packages: &packages }) {
        Ok(_) => vec!["no mistake".to_owned()],
        Err(report) => {
            let mistakes = report.downcast_ref::<Mistakes>().unwrap();
            let line = |one: &super::mistake::Mistake| format!("{one}; {}", miette::Diagnostic::help(one).unwrap());
            mistakes.mistakes.iter().map(line).collect()
        }
    }
}

#[test]
fn each_bad_file_gets_its_message() {
    let mut files: Vec<PathBuf> =
        fs::read_dir(manifest().join("tests/bad")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20);
    let mut wrong = Vec::new();
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        let expected: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# error: ")).collect();
        let verdict = verdict(path);
        if verdict != expected {
            wrong.push(format!("{}:\n  # error: {}", path.display(), verdict.join("\n  # error: ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_good_description_survives_encoding() {
    let text = r#"
        kernel = "tench-kernel-image"
        init = "tench-init"
        [cores]
        memory = [3, "96M", 1]
        lines = [[40], [34, 48], [], [319]]
        [[program]]
        name = "mem"
        package = "tench-mem"
        server = true
        start = true
        priority = 200
        capabilities = ["untyped:all"]
        [[program]]
        name = "shell"
        package = "tench-shell"
        start = true
        ceiling = 150
        cores = 3
        powers = ["power", "memory"]
        arguments = ["-x", "two words"]
        environment = ["A=b=c"]
        capabilities = ["service:mem", "device:uart"]
    "#;
    let packages = packages();
    let mut system = check("good", "good.toml", text, &Surroundings { root: manifest(), packages: &packages }).unwrap();
    assert_eq!(system.lines, BTreeMap::from([(34, 1), (40, 0), (48, 1), (319, 3)]));
    assert_eq!(system.programs[0].ceiling, 200);
    assert_eq!(system.programs[1].cores, Cores::Only(3));
    assert_eq!(system.programs[1].path, "bin/shell");
    system.set_arguments("mem", &["--all".to_owned()]);

    let bytes = system.encode();
    let read = tench_system::System::parse(&bytes).unwrap();
    assert_eq!(read.find("mem").unwrap().arguments.iter().collect::<Vec<_>>(), ["--all"]);
    let shares = [3, 0, 1, 1].map(tench_system::Share::Weight);
    let shares = [shares[0], tench_system::Share::Size(96 << 20), shares[2], shares[3]];
    assert_eq!([0, 1, 2, 3].map(|core| read.shares().of(core)), shares);
    let shell = read.find("shell").unwrap();
    assert_eq!((shell.priority, shell.ceiling, shell.start), (DEFAULT, 150, true));
    assert_eq!(shell.arguments.iter().collect::<Vec<_>>(), ["-x", "two words"]);
    assert_eq!(shell.environment.iter().collect::<Vec<_>>(), ["A=b=c"]);
    assert_eq!(shell.powers(), Powers::POWER | Powers::MEMORY);
    assert!(read.find("mem").unwrap().powers().is_empty());
    assert_eq!(shell.capabilities.iter().count(), 2);
}

const DEFAULT: u8 = tench_system::DEFAULT_PRIORITY;

#[test]
fn the_descriptions_of_the_tree_name_nothing_twice() {
    let root = manifest().join("../..");
    for entry in fs::read_dir(root.join("systems")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let packages = workspace_packages(&text);
            let names: Vec<&str> = packages.iter().map(String::as_str).collect();
            let packages = Packages::of(&names);
            check("tree", "tree.toml", &text, &Surroundings { root: &root, packages: &packages }).unwrap();
        }
    }
}

/// Returns the packages that a description mentions, as if all existed.
fn workspace_packages(text: &str) -> Vec<String> {
    text.split('"').filter(|word| word.starts_with("tench-")).map(str::to_owned).collect()
}
