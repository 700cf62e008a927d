//! The machine code of a kernel, with what its file says about it: functions, labels of the assembly, and which
//! functions have their addresses taken.

use std::collections::{BTreeMap, BTreeSet};

use miette::{IntoDiagnostic, Result, miette};
use object::elf::{R_AARCH64_CALL26, R_AARCH64_CONDBR19, R_AARCH64_JUMP26, R_AARCH64_TSTBR14};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind};

/// Sections with machine code.
const EXECUTABLE: [&str; 2] = [".text", ".boot.text"];
/// Sections with constants and data, which may hold addresses of functions.
const DATA: [&str; 2] = [".rodata", ".data"];
/// Relocations of instructions that go to an address instead of taking it.
const BRANCHES: [u32; 4] = [R_AARCH64_CALL26, R_AARCH64_JUMP26, R_AARCH64_CONDBR19, R_AARCH64_TSTBR14];

/// A kernel's machine code.
#[derive(Default)]
pub struct Code {
    /// Contents of the sections, by address.
    pub sections: BTreeMap<u64, Vec<u8>>,
    /// Functions by address: size and name. Equal functions share one place.
    pub functions: BTreeMap<u64, (u64, String)>,
    /// Addresses, or values, of all symbols.
    pub symbols: BTreeMap<String, u64>,
    /// Functions whose addresses constants hold, as often as they do: those of the table of operations.
    pub in_constants: Vec<u64>,
    /// Functions whose addresses instructions take.
    pub in_code: BTreeSet<u64>,
}

impl Code {
    /// Reads the code of an executable.
    pub fn parse(bytes: &[u8]) -> Result<Code> {
        let file = object::File::parse(bytes).into_diagnostic()?;
        let mut code = Code::default();
        for symbol in file.symbols() {
            let name = symbol.name().unwrap_or_default();
            if symbol.kind() == SymbolKind::Text && symbol.size() > 0 {
                code.functions.entry(symbol.address()).or_insert_with(|| (symbol.size(), name.to_owned()));
            }
            code.symbols.insert(name.to_owned(), symbol.address());
        }
        for name in EXECUTABLE {
            let section = file.section_by_name(name).ok_or_else(|| miette!("the kernel has no section {name}"))?;
            code.sections.insert(section.address(), section.data().into_diagnostic()?.to_vec());
            code.in_code.extend(code.taken(&file, &section)?);
        }
        for section in DATA.iter().filter_map(|name| file.section_by_name(name)) {
            code.in_constants.extend(code.taken(&file, &section)?);
        }
        Ok(code)
    }

    /// Returns the functions whose addresses a section takes, according to the relocations that the linker leaves.
    fn taken(&self, file: &object::File<'_>, section: &object::Section<'_, '_>) -> Result<Vec<u64>> {
        let mut taken = Vec::new();
        for (_, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let base = file.symbol_by_index(index).into_diagnostic()?.address();
            let address = base.wrapping_add_signed(relocation.addend());
            if !BRANCHES.contains(&r_type) && self.functions.contains_key(&address) {
                taken.push(address);
            }
        }
        Ok(taken)
    }

    /// Returns the instruction at an address.
    pub fn word(&self, address: u64) -> Option<u32> {
        let (start, section) = self.sections.range(..=address).next_back()?;
        let offset = (address - start) as usize;
        section.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
    }

    /// Returns the address of a symbol.
    pub fn symbol(&self, name: &str) -> Result<u64> {
        self.symbols.get(name).copied().ok_or_else(|| miette!("the kernel has no symbol {name}"))
    }

    /// Returns the address of the only symbol that is this, or has this in it.
    pub fn symbol_with(&self, part: &str) -> Result<u64> {
        let mut with = self.symbols.iter().filter(|(name, _)| name.contains(part));
        match (self.symbols.get(part), with.next(), with.next()) {
            (Some(address), ..) | (None, Some((_, address)), None) => Ok(*address),
            _ => Err(miette!("the kernel has no symbol, or several, with {part}")),
        }
    }

    /// Returns the addresses of the function at an address: of the compiled one, or of the assembly's.
    pub fn function(&self, address: u64) -> Option<std::ops::Range<u64>> {
        let (start, (size, _)) = self.functions.range(..=address).next_back()?;
        (address < start + size).then_some(*start..start + size)
    }

    /// Returns whether an address belongs to a function in Rust without a name of its own for the assembly.
    pub fn is_mangled(&self, address: u64) -> bool {
        let function = self.function(address).and_then(|function| self.functions.get(&function.start));
        function.is_some_and(|(_, name)| addr2line::demangle_auto(name.into(), None) != *name)
    }

    /// Returns the name of the function at an address, or the label before it, for people.
    pub fn name(&self, address: u64) -> String {
        if let Some((_, name)) = self.function(address).and_then(|function| self.functions.get(&function.start)) {
            let name = addr2line::demangle_auto(name.into(), None);
            return crate::symbols::without_hash(&name).to_owned();
        }
        let before =
            self.symbols.iter().filter(|(name, at)| **at <= address && !name.starts_with('$') && !name.is_empty());
        let label = before.max_by_key(|(_, at)| **at);
        label.map_or_else(|| format!("{address:#x}"), |(name, _)| name.clone())
    }

    /// Returns the entries of a table of distances from its own address, which ends where the next label is.
    pub fn table(&self, name: &str) -> Result<Vec<u64>> {
        let start = self.symbol(name)?;
        let end = self.symbols.values().filter(|address| **address > start).min();
        let end = *end.ok_or_else(|| miette!("{name} has no end"))?;
        let distance = |address| self.word(address).ok_or_else(|| miette!("{name} lies outside the code"));
        let entry = |address| Ok(start.wrapping_add_signed(i64::from(distance(address)?.cast_signed())));
        (start..end).step_by(4).map(entry).collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Address of the first instruction of the tests' code, and its label.
    pub const START: u64 = 0x1000;
    pub const LABEL: &str = "label";
    /// `sub sp, sp, #48` and its opposite.
    pub const SUB_48: u32 = 0xd100_c3ff;
    pub const ADD_48: u32 = 0x9100_c3ff;
    /// `stp x29, x30, [sp, #-32]!` and its opposite.
    pub const PUSH_32: u32 = 0xa9be_7bfd;
    pub const POP_32: u32 = 0xa8c2_7bfd;
    /// `add x1, x1, x2`, `br x1` and `blr x1`.
    pub const SUM_X1: u32 = 0x8b02_0021;
    pub const BR_X1: u32 = 0xd61f_0020;
    pub const BLR_X1: u32 = 0xd63f_0020;
    pub const RET: u32 = 0xd65f_03c0;
    pub const NOP: u32 = 0xd503_201f;

    /// Returns these instructions with functions at these offsets, of these sizes.
    pub fn code(words: &[u32], functions: &[(u64, u64, &str)]) -> Code {
        let mut code = Code::default();
        code.sections.insert(START, words.iter().flat_map(|word| word.to_le_bytes()).collect());
        code.symbols.insert(LABEL.to_owned(), START);
        for (offset, size, name) in functions {
            code.functions.insert(START + offset, (*size, (*name).to_owned()));
        }
        code
    }

    #[test]
    fn names_are_those_of_functions_or_labels() {
        let code = code(&[NOP; 4], &[(4, 8, "_ZN3one5other17h0123456789abcdefE")]);
        assert_eq!([0, 4, 8, 12].map(|offset| code.name(START + offset)), [LABEL, "one::other", "one::other", LABEL]);
        assert_eq!([0, 4, 8, 12].map(|offset| code.is_mangled(START + offset)), [false, true, true, false]);
        assert_eq!((code.word(START + 12), code.word(START + 16), code.word(START - 4)), (Some(NOP), None, None));
    }

    #[test]
    fn a_symbol_is_found_by_the_part_that_only_it_has() {
        let mut code = code(&[], &[]);
        code.symbols.insert("label_2".to_owned(), 2);
        assert_eq!((code.symbol_with(LABEL).ok(), code.symbol_with("_2").ok()), (Some(START), Some(2)));
        assert!(code.symbol_with("lab").is_err() && code.symbol_with("other").is_err());
    }
}
