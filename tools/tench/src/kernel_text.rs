//! The parts of the kernel's image: machine code by module, and constants, from the symbols of its ELF file.

use std::collections::BTreeMap;
use std::path::Path;

use miette::{IntoDiagnostic, Result};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::workspace;

/// Prefix of the parts that are free after the boot.
const FREED: &str = "bootstrap: ";
/// Part of the code that no symbol with a size covers: assembly, and padding between functions.
const REST: &str = "assembly and padding";
/// Part of the functions that have the names of C: the ways into the kernel.
const ENTRIES: &str = "entries";
/// The sections with the code and the constants that stay, and with the code that does not.
const TEXT: &str = ".text";
const CONSTANTS: &str = ".rodata";
const BOOTSTRAP: &str = ".boot.text";

/// A part of the kernel's code: a module of one of its own crates, or another crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of the part.
    pub name: String,
    /// Number of its functions.
    pub functions: usize,
    /// Size in bytes.
    pub bytes: u64,
}

/// The sizes of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of machine code that stay, padding included.
    pub text: u64,
    /// Bytes of machine code of the bootstrap.
    pub bootstrap: u64,
    /// Bytes of constants.
    pub constants: u64,
    /// Parts of the machine code, the largest first; those of the bootstrap come last.
    pub parts: Vec<Part>,
}

impl Sizes {
    /// Reads the sizes of the executable at `path`.
    pub fn read(path: &Path) -> Result<Sizes> {
        let bytes = workspace::read_file(path)?;
        let file = object::File::parse(&*bytes).into_diagnostic()?;
        let mut sizes = Sizes::default();
        let size = |name| file.section_by_name(name).map_or(0, |section| section.size());
        (sizes.text, sizes.bootstrap, sizes.constants) = (size(TEXT), size(BOOTSTRAP), size(CONSTANTS));
        for (name, prefix) in [(TEXT, ""), (BOOTSTRAP, FREED)] {
            let section = file.section_by_name(name).map(|section| section.index());
            let here = file.symbols().filter(|symbol| section.is_some() && symbol.section_index() == section);
            let sized = here.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
            let mut functions: Vec<_> =
                sized.map(|symbol| (symbol.address(), symbol.size(), symbol.name().unwrap_or_default())).collect();
            // Equal functions share one place, under the first of their names.
            functions.sort_by_key(|(address, ..)| *address);
            functions.dedup_by_key(|(address, ..)| *address);
            let parts = add_up(functions.iter().map(|(_, size, name)| (part_of(name), *size)), size(name));
            sizes.parts.extend(parts.into_iter().map(|part| Part { name: format!("{prefix}{}", part.name), ..part }));
        }
        Ok(sizes)
    }
}

/// Adds functions up by part; what they lack of `text` bytes is the [`REST`].
fn add_up(functions: impl Iterator<Item = (String, u64)>, text: u64) -> Vec<Part> {
    let mut parts: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for (name, size) in functions {
        let (functions, bytes) = parts.entry(name).or_default();
        (*functions, *bytes) = (*functions + 1, *bytes + size);
    }
    let known: u64 = parts.values().map(|(_, bytes)| bytes).sum();
    parts.insert(REST.to_owned(), (0, text.saturating_sub(known)));
    let mut parts: Vec<Part> =
        parts.into_iter().map(|(name, (functions, bytes))| Part { name, functions, bytes }).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    parts
}

/// Returns the part to which the function of a symbol belongs. An instance of a generic function belongs to the crate
/// that defines it.
fn part_of(symbol: &str) -> String {
    let name = addr2line::demangle_auto(symbol.into(), None);
    if name == symbol {
        return ENTRIES.to_owned();
    }
    // The first path in `<&T as core::fmt::Debug>::fmt` is the trait's, in `<a::B as core::fmt::Debug>::fmt` the
    // type's.
    let mut paths = name.split(['<', '>', '&', ' ', ',', '(', ')', '[', ']']).filter(|word| word.contains("::"));
    // A name without a path is that of a primitive type's function.
    let path = paths.find(|path| !path.starts_with("::")).unwrap_or("core");
    let mut names = path.split("::");
    match (names.next(), names.next()) {
        (Some(own), Some(module)) if own.starts_with("tench_") => format!("{own}::{module}"),
        (first, _) => first.unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_belongs_to_the_first_module_that_its_name_has() {
        for (symbol, part) in [
            ("_ZN12tench_kernel6delete4step17h0123456789abcdefE", "tench_kernel::delete"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core"),
            ("_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE", "core"),
            ("_ZN53_$LT$tench_abi..Error$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE", "tench_abi::Error"),
            ("_RNvMNtNtCs3g5Gb6bJpu0_4core4char7methodsc16escape_debug_ext", "core"),
            ("tench_boot", ENTRIES),
            ("memcpy", ENTRIES),
        ] {
            assert_eq!(part_of(symbol), part, "{symbol}");
        }
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let functions = [("a", 8), ("b", 20), ("a", 16)].map(|(name, size)| (name.to_owned(), size));
        let part = |name: &str, functions, bytes| Part { name: name.to_owned(), functions, bytes };
        let expected = [part("a", 2, 24), part("b", 1, 20), part(REST, 0, 12)];
        assert_eq!(add_up(functions.into_iter(), 56), expected);
    }
}
