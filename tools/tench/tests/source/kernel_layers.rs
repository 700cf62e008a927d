//! The kernel's modules are layers, as the table at the head of the crate says: a module may name any type, but it
//! calls functions only of lower layers, and of the modules that the table joins with it.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};

use super::source;

/// Folder of the kernel's modules.
const FOLDER: &str = "kernel/core/src/";

/// The layers that a table shows: for each module, the number of its layer, from the lowest up, and that of its group
/// of modules that may call each other.
#[derive(Default)]
struct Layers(BTreeMap<String, (usize, usize)>);

impl Layers {
    /// Reads the table in the first code block. Two spaces end the modules of a line; `,` separates groups, and `+`
    /// joins modules into one, at the beginning of a line with those of the line before.
    fn read(text: &str) -> Layers {
        let block = text.split("//! ```").nth(1).expect("the crate has no table of its layers");
        let lines: Vec<_> = block.lines().skip(1).filter_map(|line| line.strip_prefix("//!   ")).collect();
        let mut layers = Layers::default();
        let (mut layer, mut circle) = (lines.len(), 0);
        for line in lines {
            let modules = line.split("  ").next().unwrap_or_default();
            let (modules, continues) = match modules.strip_prefix("+ ") {
                Some(rest) => (rest, true),
                None => (modules, false),
            };
            layer -= usize::from(!continues);
            for (index, group) in modules.split(", ").enumerate() {
                circle += usize::from(!continues || index > 0);
                for module in group.split(" + ") {
                    let known = layers.0.insert(module.to_owned(), (layer, circle));
                    assert!(known.is_none(), "{module} stands twice in the table of layers");
                }
            }
        }
        layers
    }

    /// Returns whether `own` may call functions of `other`.
    fn permits(&self, own: &str, other: &str) -> bool {
        let (own, other) = (self.0[own], self.0[other]);
        other.0 < own.0 || other == own
    }
}

/// Finds the paths of a `use` declaration, each with the name that it declares.
fn imports(tokens: &[TokenTree], prefix: &[String], found: &mut Vec<(String, Vec<String>)>) {
    for branch in tokens.split(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',')) {
        let mut path = prefix.to_vec();
        let mut inner = None;
        for token in branch {
            match token {
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => inner = Some(group.stream()),
                _ => {}
            }
        }
        if let Some(inner) = inner {
            imports(&inner.into_iter().collect::<Vec<_>>(), &path, found);
        } else if !path.is_empty() && branch.len() > 0 {
            let name = path.last().cloned().unwrap_or_default();
            path.retain(|word| word != "self");
            let name = if name == "self" { path.last().cloned().unwrap_or_default() } else { name };
            found.push((name, path));
        }
    }
}

/// Splits a file into its `use` declarations and the paths in all else.
fn paths(tokens: TokenStream, uses: &mut Vec<(String, Vec<String>)>, found: &mut Vec<Vec<String>>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut rest = &tokens[..];
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        match token {
            TokenTree::Ident(word) if word == "use" => {
                let end =
                    rest.iter().position(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';'));
                let end = end.unwrap_or(rest.len());
                imports(&rest[..end], &[], uses);
                rest = &rest[end..];
            }
            TokenTree::Ident(word) => {
                if colons != 2 {
                    found.push(std::mem::take(&mut path));
                }
                path.push(word.to_string());
                colons = 0;
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                found.push(std::mem::take(&mut path));
                paths(group.stream(), uses, found);
                colons = 0;
            }
            _ => {
                found.push(std::mem::take(&mut path));
                colons = 0;
            }
        }
    }
    found.push(path);
}

/// Returns the functions of other modules that a file calls: module and function.
fn calls(text: &str) -> BTreeSet<(String, String)> {
    let (mut uses, mut found) = (Vec::new(), Vec::new());
    paths(text.parse().expect("the compiler reads it too"), &mut uses, &mut found);
    uses.retain(|(_, path)| path[0] == "crate");
    let named: BTreeMap<_, _> = uses.into_iter().collect();
    let mut calls = BTreeSet::new();
    for path in found {
        let Some((first, rest)) = path.split_first() else { continue };
        let whole = match named.get(first) {
            // A variable may have a module's name.
            Some(module) if rest.is_empty() && module.len() == 2 => continue,
            Some(module) => module.iter().chain(rest).skip(1).cloned().collect::<Vec<_>>(),
            None if first == "crate" => rest.to_vec(),
            None => continue,
        };
        // Types, constants, and what belongs to a type are named, not called.
        let is_type = |word: &String| word.starts_with(char::is_uppercase);
        if let [module, .., function] = &whole[..]
            && !whole.iter().any(is_type)
        {
            calls.insert((module.clone(), function.clone()));
        }
    }
    calls
}

/// Returns a sentence for each function that a file calls and must not. `path` is below the folder.
fn mistakes(layers: &Layers, path: &str, text: &str) -> Vec<String> {
    let own = path.split(['/', '.']).next().unwrap_or_default();
    if own == "lib" {
        return Vec::new();
    }
    if !layers.0.contains_key(own) {
        return vec![format!("{path}: the table of layers lacks `{own}`")];
    }
    let wrong = calls(text).into_iter().filter(|(module, _)| layers.0.contains_key(module));
    let wrong = wrong.filter(|(module, _)| module != own && !layers.permits(own, module));
    wrong.map(|(module, function)| format!("{path} calls `{module}::{function}`, which is no lower layer")).collect()
}

#[test]
fn the_kernels_modules_call_lower_layers() {
    let layers = Layers::read(&source::read(&format!("{FOLDER}lib.rs")));
    let files = source::files(FOLDER, ".rs");
    let mistakes = files.iter().flat_map(|file| mistakes(&layers, &file[FOLDER.len()..], &source::read(file)));
    let mistakes: Vec<_> = mistakes.collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    for module in layers.0.keys() {
        assert!(files.iter().any(|file| *file == format!("{FOLDER}{module}.rs")), "there is no module `{module}`");
    }
}

#[test]
fn a_call_upwards_is_found() {
    let layers = Layers::read("//! ```text\n//!   top\n//!   a + b  two\n//!   + c, d  and more\n//!   low\n//! ```\n");
    let wrong = |path: &str, text: &str| mistakes(&layers, path, text).len();
    for text in [
        "use crate::top; fn f() { top::g() }",
        "use crate::top::g; fn f() { x(g) }",
        "use crate::{Kernel, top::{T, g}}; fn f() { g::<T>() }",
        "use crate::{low, top}; fn f() { h(|k| top::inner::g(k)) }",
        "use crate::top::inner; fn f() { inner::g() }",
        "fn f() { crate::top::g() }",
    ] {
        assert_eq!(wrong("low.rs", text), 1, "{text}");
        assert_eq!(wrong("a/inner.rs", text), 1, "{text}");
        assert_eq!(wrong("top.rs", text), 0, "{text}");
    }
    for text in [
        "use crate::top::{T, flag}; fn f(t: T) { t.g(); T::g(); flag::SET }",
        "use crate::{top}; fn f(top: u8) { g(top) }",
        "use crate::low; fn f() { low::g() }",
    ] {
        assert_eq!(wrong("a.rs", text), 0, "{text}");
    }
    assert_eq!(wrong("a.rs", "fn f() { crate::c::g(); crate::b::g(); crate::a::g() }"), 0);
    assert_eq!(wrong("a.rs", "fn f() { crate::d::g() }"), 1);
    assert_eq!(wrong("d.rs", "fn f() { crate::a::g() }"), 1);
    assert_eq!(wrong("new.rs", ""), 1);
}
