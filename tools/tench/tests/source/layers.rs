//! A crate depends on crates of its own layer and of lower ones only, and so do the modules of a crate in layers.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};

use super::source;

/// The layers from the lowest up: a name, and the folders whose crates belong to it. The longest folder decides.
const LAYERS: [(&str, &[&str]); 14] = [
    ("numbers and layouts", &["abi"]),
    ("the kernel's semantics", &["kernel/core"]),
    ("the kernel's machines", &["kernel/arch"]),
    ("the kernel's bootstrap", &["kernel/bootstrap"]),
    ("the kernel's image", &["kernel/image"]),
    ("the kernel's model", &["model"]),
    ("structures and algorithms", &["user/lib", "user/interfaces/compiler", "user/linux"]),
    ("system calls and messages", &["user/lib/sys", "user/lib/protocol"]),
    ("interfaces of servers", &["user/interfaces", "user/lib/stream"]),
    ("formats", &["user/lib/loader", "user/lib/profile", "tests/corpus"]),
    ("the programs' library", &["user/lib/tench"]),
    (
        "libraries over the programs' library",
        &["user/lib/boot", "user/lib/c", "user/lib/options", "user/lib/pager", "user/lib/srr"],
    ),
    ("servers", &["user/servers"]),
    ("programs, tests and tools", &["user/programs", "user/linux/server", "tests", "lab", "tools", "fuzz"]),
];

/// Crates whose modules are layers, too: a crate's folder, its library's name, and its modules from the lowest up.
const MODULES: [(&str, &str, &[&str]); 2] = [
    (
        "user/servers/monitor",
        "tench_monitor",
        &["kernel", "slots", "message", "requests", "transfer", "cores", "server"],
    ),
    ("user/servers/procs", "tench_procs", &["spawn", "boot", "table", "supervision", "requests"]),
];

/// Returns whether `folder` is `pattern` or lies in it; a `*` stands for one name.
fn lies_in(folder: &str, pattern: &str) -> bool {
    let mut names = folder.split('/');
    pattern.split('/').all(|wanted| names.next().is_some_and(|name| wanted == "*" || wanted == name))
}

/// The layer of the crate in `folder`.
fn layer_of(folder: &str) -> usize {
    let all = LAYERS.iter().enumerate().flat_map(|(layer, (_, folders))| folders.iter().map(move |one| (layer, *one)));
    let best =
        all.filter(|(_, pattern)| lies_in(folder, pattern)).max_by_key(|(_, pattern)| pattern.split('/').count());
    best.unwrap_or_else(|| panic!("{folder}: no layer has it; name its layer in {}", file!())).0
}

/// The names of the tree's crates that a manifest asks for, tests aside.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let sections = ["dependencies", "build-dependencies"].into_iter();
    let tables = sections.filter_map(|section| manifest.get(section)?.as_table());
    tables.flat_map(|table| table.keys().cloned()).collect()
}

/// Dependencies that point upwards, as sentences. `crates` gives each crate's folder and dependencies by its name.
fn upward(crates: &BTreeMap<String, (String, Vec<String>)>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, (folder, dependencies)) in crates {
        for dependency in dependencies {
            let Some((below, _)) = crates.get(dependency) else { continue };
            let (own, other) = (layer_of(folder), layer_of(below));
            if own < other {
                let (own, other) = (LAYERS[own].0, LAYERS[other].0);
                wrong.push(format!("{name} ({own}) depends on {dependency} ({other}), which is a higher layer"));
            }
        }
    }
    wrong
}

/// The modules of the crate that tokens name: after `crate`, the name of its library, or as many `super` as lead from
/// a module at this `depth` to the root.
fn modules_named(tokens: TokenStream, library: &str, depth: usize, found: &mut Vec<String>) {
    let mut supers = 0;
    let mut at_root = false;
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                if at_root {
                    found.push(word.to_string());
                }
                supers = if word == "super" { supers + 1 } else { 0 };
                at_root = word == "crate" || word == library || (word == "super" && supers == depth);
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => {}
            TokenTree::Group(group) => {
                let mut inner = Vec::new();
                modules_named(group.stream(), library, depth, &mut inner);
                // Of `{a::b, c}` after the root, the names that begin the branches are modules.
                if at_root {
                    let text = group.stream().to_string();
                    let branches = text.split(',').filter_map(|branch| branch.split("::").next());
                    inner.extend(branches.map(|name| name.trim().to_owned()));
                }
                found.append(&mut inner);
                (supers, at_root) = (0, false);
            }
            _ => (supers, at_root) = (0, false),
        }
    }
}

/// The higher modules of a crate in layers that a file uses, which is at `path` below the crate's `src`.
fn higher_modules(path: &str, text: &str, library: &str, layers: &[&str]) -> Vec<String> {
    let own = path.split(['/', '.']).next().unwrap_or_default();
    let Some(own) = layers.iter().position(|layer| *layer == own) else { return Vec::new() };
    let depth = path.trim_end_matches("/mod.rs").split('/').count();
    let mut named = Vec::new();
    modules_named(text.parse().expect("the compiler reads it too"), library, depth, &mut named);
    named.retain(|name| layers.iter().position(|layer| layer == name).is_some_and(|other| other > own));
    named
}

#[test]
fn modules_use_lower_modules_only() {
    let mut wrong = Vec::new();
    for (folder, library, layers) in MODULES {
        let sources = format!("{folder}/src/");
        for layer in layers {
            let files = source::files(&sources, ".rs");
            let prefix = format!("{sources}{layer}");
            assert!(files.iter().any(|file| file.starts_with(&prefix)), "{prefix}: there is no such layer");
        }
        for file in source::files(&sources, ".rs") {
            let path = &file[sources.len()..];
            let higher = higher_modules(path, &source::read(&file), library, layers);
            wrong.extend(higher.iter().map(|name| format!("{file} uses `{name}`, which is a higher layer")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_module_that_uses_a_higher_one_is_found() {
    let higher = |path, text| higher_modules(path, text, "tench_procs", MODULES[1].2);
    for text in [
        "use crate::requests::Server;",
        "use tench_procs::requests::Server;",
        "use super::super::requests::Server;",
        "use crate::{boot, requests::{Server, reserve}};",
        "fn a() { let it = [crate::requests::reserve()]; }",
    ] {
        assert_eq!(higher("supervision/listeners.rs", text), ["requests"], "{text}");
    }
    assert_eq!(higher("spawn/mod.rs", "use super::table::Records;"), ["table"]);
    assert_eq!(higher("boot.rs", "use super::table::Records;"), ["table"]);
    let lower = "use crate::spawn::Terms; use super::requests; use tench_procs_interface::requests; use crate::boot;";
    assert_eq!(higher("supervision/listeners.rs", lower), [""; 0]);
}

#[test]
fn dependencies_point_downwards() {
    let mut crates = BTreeMap::new();
    for folder in source::crates() {
        let path = format!("{folder}/Cargo.toml");
        let manifest: toml::Table = source::read(&path).parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let name = manifest["package"]["name"].as_str().unwrap_or_else(|| panic!("{path}: no name")).to_owned();
        crates.insert(name, (folder, dependencies(&manifest)));
    }
    let wrong = upward(&crates);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_kernel_knows_no_program() {
    let kernel = layer_of("model");
    assert!(layer_of("kernel/image") < kernel && layer_of("user/lib/tree") > kernel);
    for folder in source::crates().into_iter().filter(|folder| layer_of(folder) > kernel) {
        let path = format!("{folder}/Cargo.toml");
        let manifest: toml::Table = source::read(&path).parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let kernel = dependencies(&manifest).into_iter().find(|name| {
            ["tench-kernel", "tench-arch-host", "tench-arch-aarch64", "tench-bootstrap", "tench-model"]
                .contains(&name.as_str())
        });
        assert!(
            folder == "fuzz" || kernel.is_none(),
            "{folder} depends on {kernel:?}; programs know the kernel by abi"
        );
    }
}

/// The lab's two halves; each has the folders of [`LAB`].
const LAB_HALVES: [&str; 2] = ["lab/bench/src", "tools/tench/src/lab"];
/// Parts of the lab, and what each must not name.
const LAB: [(&str, &[&str]); 3] =
    [("support", &["product::", "studies::"]), ("product", &["studies::"]), ("studies", &["register::"])];

/// The lines of the lab's code that name a part above their own.
fn upward_in_the_lab() -> Vec<String> {
    let mut wrong = Vec::new();
    for half in LAB_HALVES {
        let files = source::files(half, ".rs");
        for (part, above) in LAB {
            let (file, folder) = (format!("{half}/{part}.rs"), format!("{half}/{part}/"));
            let own: Vec<_> = files.iter().filter(|path| **path == file || path.starts_with(&folder)).collect();
            assert!(!own.is_empty(), "{half} has no {part}");
            for path in own {
                let text = source::read(path);
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let upward = code.filter(|line| above.iter().any(|name| line.contains(name)));
                wrong.extend(upward.map(|line| format!("{path}: {}", line.trim())));
            }
        }
    }
    wrong
}

#[test]
fn the_lab_is_layered() {
    let wrong = upward_in_the_lab();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_dependency_that_points_upwards_is_found() {
    let entry = |folder: &str, on: &[&str]| (folder.to_owned(), on.iter().map(|name| (*name).to_owned()).collect());
    let mut crates = BTreeMap::from([
        ("tench".to_owned(), entry("user/lib/tench", &["tench-sys", "serde"])),
        ("tench-sys".to_owned(), entry("user/lib/sys", &["tench-abi"])),
        ("tench-abi".to_owned(), entry("abi", &[])),
    ]);
    assert_eq!(upward(&crates), Vec::<String>::new());
    crates.insert("tench-abi".to_owned(), entry("abi", &["tench"]));
    assert_eq!(upward(&crates).len(), 1);
}
