//! The kernel's modules are layers, as the table at the head of the crate says: a module may name any type, but it
//! calls functions only of lower layers, and of the modules that the table joins with it.
//!
//! An import of a function counts as a call. Types, constants and what belongs to a type do not count, nor do modules:
//! only what is called in them.

mod names;

use std::collections::{BTreeMap, BTreeSet};

use names::{Names, Path};

use super::source;

/// Folder of the kernel's modules.
const FOLDER: &str = "kernel/core/src/";

/// Position of a module in the table.
#[derive(Clone, Copy)]
struct Position {
    /// Number of its layer, from the lowest up.
    layer: usize,
    /// Number of its group of modules that may call each other.
    group: usize,
}

/// The layers that a table shows.
#[derive(Default)]
struct Layers(BTreeMap<String, Position>);

impl Layers {
    /// Reads the table in the first code block. Two spaces end the modules of a line; `,` separates groups, and `+`
    /// joins modules into one, at the beginning of a line with those of the line before.
    fn read(text: &str) -> Layers {
        let block = text.split("//! ```").nth(1).expect("the crate has no table of its layers");
        let lines: Vec<_> = block.lines().skip(1).filter_map(|line| line.strip_prefix("//!   ")).collect();
        let mut layers = Layers::default();
        let (mut layer, mut group) = (lines.len(), 0);
        for line in lines {
            let modules = line.split("  ").next().unwrap_or_default();
            let (modules, continues) = match modules.strip_prefix("+ ") {
                Some(rest) => (rest, true),
                None => (modules, false),
            };
            layer -= usize::from(!continues);
            for (index, joined) in modules.split(", ").enumerate() {
                group += usize::from(!continues || index > 0);
                for module in joined.split(" + ") {
                    let known = layers.0.insert(module.to_owned(), Position { layer, group });
                    assert!(known.is_none(), "{module} stands twice in the table of layers");
                }
            }
        }
        layers
    }

    /// Returns whether `own` may call functions of `other`.
    fn permits(&self, own: &str, other: &str) -> bool {
        let (own, other) = (self.0[own], self.0[other]);
        other.layer < own.layer || other.group == own.group
    }
}

/// Returns the module of a file, whose path is below the folder.
fn module(file: &str) -> Path {
    let words = file.trim_end_matches(".rs").split('/').map(str::to_owned);
    words.filter(|word| word != "lib").collect()
}

/// Returns what is wrong with a path in a file of the module `own`, of the root without one.
fn complaint(layers: &Layers, names: &Names, own: Option<&String>, path: &Path) -> Option<String> {
    let is_type = |word: &String| word.starts_with(char::is_uppercase);
    let first = path.first().filter(|_| !path.iter().any(is_type))?;
    let is_item = path.len() > 1 && layers.0.contains_key(first);
    let shown = path.join("::");
    match own {
        None => is_item.then(|| format!("re-exports `{shown}`, which is not a type")),
        Some(own) if shown.ends_with('*') => {
            (first != own).then(|| format!("imports `{shown}`, which hides what it calls"))
        }
        Some(own) => {
            let is_wrong = is_item && !names.is_module(path) && !layers.permits(own, first);
            is_wrong.then(|| format!("uses `{shown}`, which is not in a lower layer"))
        }
    }
}

/// Returns a sentence for each function that a file uses and must not. Paths of files are below the folder.
fn mistakes<'a>(layers: &Layers, files: impl IntoIterator<Item = (&'a str, String)>) -> BTreeSet<String> {
    let mut names = Names::default();
    let read = |(file, text): (&'a str, String)| (file, module(file), names.add(module(file), &text));
    let files: Vec<_> = files.into_iter().map(read).collect();
    let mut mistakes = BTreeSet::new();
    for (file, module, paths) in files {
        let own = module.first();
        if let Some(own) = own.filter(|own| !layers.0.contains_key(*own)) {
            mistakes.insert(format!("{file}: the table of layers lacks `{own}`"));
            continue;
        }
        let meanings = paths.into_iter().flat_map(|path| names.meanings(path));
        let complaints = meanings.filter_map(|path| complaint(layers, &names, own, &path));
        mistakes.extend(complaints.map(|complaint| format!("{file} {complaint}")));
    }
    mistakes
}

#[test]
fn the_kernels_modules_call_lower_layers() {
    let layers = Layers::read(&source::read(&format!("{FOLDER}lib.rs")));
    let files = source::files(FOLDER, ".rs");
    let mistakes = mistakes(&layers, files.iter().map(|file| (&file[FOLDER.len()..], source::read(file))));
    assert!(mistakes.is_empty(), "{}", Vec::from_iter(mistakes).join("\n"));
    for module in layers.0.keys() {
        assert!(files.iter().any(|file| *file == format!("{FOLDER}{module}.rs")), "there is no module `{module}`");
    }
}

/// A small tree of modules.
const TREE: [(&str, &str); 5] = [
    ("lib.rs", "pub mod top; pub mod a; pub mod b; pub mod c; pub mod d; pub mod low; pub use top::T;"),
    ("top.rs", "pub mod inner { pub fn g() {} } pub mod flag { pub const SET: u8 = 1; } pub fn g() {}"),
    ("a.rs", "mod inner; use crate::top; use crate::top as t; use crate::top::T;"),
    ("low.rs", "mod inner; use crate::top; use crate::top as t; use crate::top::T;"),
    ("low/inner.rs", ""),
];

/// Returns the mistakes in the small tree with another text in one of its files.
fn wrong(file: &str, text: &str) -> Vec<String> {
    let layers = Layers::read("//! ```text\n//!   top\n//!   a + b  two\n//!   + c, d  and more\n//!   low\n//! ```\n");
    let others = TREE.iter().filter(|(other, _)| *other != file).map(|(other, text)| (*other, (*text).to_owned()));
    let files: Vec<_> = others.chain([(file, text.to_owned())]).collect();
    Vec::from_iter(mistakes(&layers, files))
}

#[test]
fn a_call_upwards_is_found() {
    for text in [
        "use crate::top; fn f() { top::g() }",
        "use crate::top::g; fn f() { x(g) }",
        "use crate::{Kernel, top::{T, g}}; fn f() { g::<T>() }",
        "use crate::{low, top}; fn f() { h(|k| top::inner::g(k)) }",
        "use crate::top::inner; fn f() { inner::g() }",
        "fn f() { crate::top::g() }",
        "fn f() { self::super::top::g() }",
        "use crate::top::g;",
        "pub use crate::top::g;",
        "use crate::top; use top::g;",
        "use crate::top as t; fn f() { t::g() }",
        "use crate::top::{self as t, T}; fn f() { t::g() }",
        "use crate::{self as k}; fn f() { k::top::g() }",
        "use crate::top::g as h;",
        "fn f(x: &u8) -> impl T + use<'_> { crate::top::g() }",
        "fn f() { use crate::top::inner; inner::g() } fn h() { use crate::low::inner; inner::g() }",
        "fn f() { use crate::low::inner; inner::g() } fn h() { use crate::top::inner; inner::g() }",
    ] {
        assert_eq!(wrong("low.rs", text).len(), 1, "{text}");
        let text = text.replace("self::super", "self::super::super");
        assert_eq!(wrong("low/inner.rs", &text).len(), 1, "{text}");
        assert_eq!(wrong("a/inner.rs", &text).len(), 1, "{text}");
        assert_eq!(wrong("top.rs", &text.replace("super::super", "super")).len(), 0, "{text}");
    }
    assert_eq!(wrong("a.rs", "fn f() { crate::c::g(); crate::b::g(); crate::a::g() }").len(), 0);
    assert_eq!(wrong("a.rs", "fn f() { crate::d::g() }").len(), 1);
    assert_eq!(wrong("d.rs", "fn f() { crate::a::g() }").len(), 1);
    assert_eq!(wrong("new.rs", "").len(), 1);
}

#[test]
fn a_call_upwards_through_the_module_above_is_found() {
    for text in [
        "use super::top; fn f() { top::g() }",
        "fn f() { super::top::g() }",
        "fn f() { super::t::g() }",
        "fn f() { super::super::top::g() }",
        "use super::super::top::g;",
        "use super::*; fn f() { top::g() }",
        "mod tests { use super::super::top; fn f() { top::g() } }",
    ] {
        assert_eq!(wrong("low/inner.rs", text).len(), 1, "{text}");
        assert_eq!(wrong("a/inner.rs", text).len(), 1, "{text}");
    }
}

#[test]
fn globs_of_other_modules_are_found() {
    for text in ["use crate::top::*;", "use crate::low::{inner::*};", "use crate::*;", "pub use super::low::*;"] {
        assert_eq!(wrong("a.rs", text).len(), 1, "{text}");
    }
    assert_eq!(wrong("a.rs", "mod tests { use super::*; } use inner::*; use crate::top::T::*;").len(), 0);
}

#[test]
fn the_root_re_exports_types_only() {
    let root = TREE[0].1;
    for text in ["pub use top::g;", "pub use crate::top::{T as U, flag};", "pub use low::*;"] {
        assert!(!wrong("lib.rs", &format!("{root} {text}")).is_empty(), "{text}");
    }
}

#[test]
fn types_constants_and_variables_are_no_calls() {
    for text in [
        "use crate::top::{T, flag}; fn f(t: T) { t.g(); T::g(); flag::SET }",
        "use crate::{top}; fn f(top: u8) { g(top) }",
        "use crate::top::{flag}; fn f(flag: u8) { g(flag) }",
        "use crate::low; fn f() { low::g() }",
        "use crate::top::inner as g; fn f() { super::low::g() }",
        "fn f(x: &u8) -> impl Iterator + use<'_, T> { crate::low::g() }",
    ] {
        assert_eq!(wrong("a.rs", text).len(), 0, "{text}");
    }
}
