//! A test of the kernels' files: what stays in memory refers to nothing that is free after the boot, and nothing in the
//! kernel formats text.
//!
//! The linker leaves its relocations in the file: each says which place refers to what. So none is missed, whether it
//! is a call or a constant with an address.

use std::path::Path;

use miette::{IntoDiagnostic, Result, miette};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};

use super::Target;
use super::report::Report;
use crate::build::Kernel;
use crate::workspace;

/// System description whose kernels are read.
pub const SYSTEM: &str = "default";
/// Sections that stay, in which there are relocations.
const RESIDENT: [&str; 3] = [".text", ".rodata", ".data"];
/// Symbols whose addresses alone are used: the bounds of what is free, and the page that is not mapped during the boot.
const BOUNDS: [&str; 5] =
    ["tench_start", "tench_image_start", "tench_resident_end", "tench_image_end", "tench_boot_guard"];
/// Part of the names of the functions that format text.
const FORMATTING: [&str; 2] = ["4core3fmt", "core..fmt"];

/// Runs the test.
pub fn run(target: &Target, report: &Report) -> Result<()> {
    let (system, build) = target.get(SYSTEM)?;
    for kernel in Kernel::ALL {
        let name = format!("resident/{}", kernel.name());
        let build = build.clone().with_kernel(target.workspace, target.packages()?, &system, kernel)?;
        let image = Image::read(build.kernel(&system)?)?;
        let faults = [image.references(), image.formatting()].concat();
        if faults.is_empty() {
            report.passed(&name);
        } else {
            report.failed(&name, &faults.join("\n"));
        }
    }
    Ok(())
}

/// A function, or another thing with an address.
struct Named {
    address: u64,
    size: u64,
    name: String,
}

/// A place that refers to an address, by means of a symbol.
struct Reference {
    place: u64,
    symbol: String,
    address: u64,
}

/// The facts about a kernel's file that the test needs.
struct Image {
    /// The whole image, and the part that stays.
    whole: std::ops::Range<u64>,
    resident: std::ops::Range<u64>,
    functions: Vec<Named>,
    references: Vec<Reference>,
}

impl Image {
    fn read(path: &Path) -> Result<Image> {
        let bytes = workspace::read_file(path)?;
        let file = object::File::parse(&*bytes).into_diagnostic()?;
        let bound = |name: &str| {
            let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
            symbol.map(|symbol| symbol.address()).ok_or_else(|| miette!("the kernel has no symbol {name}"))
        };
        let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text).map(|symbol| Named {
            address: symbol.address(),
            size: symbol.size(),
            name: symbol.name().unwrap_or_default().to_owned(),
        });
        let mut references = Vec::new();
        for section in RESIDENT {
            let section =
                file.section_by_name(section).ok_or_else(|| miette!("the kernel has no section {section}"))?;
            for (place, relocation) in section.relocations() {
                let RelocationTarget::Symbol(index) = relocation.target() else { continue };
                let symbol = file.symbol_by_index(index).into_diagnostic()?;
                references.push(Reference {
                    place,
                    symbol: symbol.name().unwrap_or_default().to_owned(),
                    address: symbol.address().wrapping_add_signed(relocation.addend()),
                });
            }
        }
        Ok(Image {
            whole: bound("tench_image_start")?..bound("tench_image_end")?,
            resident: bound("tench_resident_start")?..bound("tench_resident_end")?,
            functions: functions.collect(),
            references,
        })
    }

    /// Returns what is at an address, for people.
    fn name(&self, address: u64) -> String {
        let is_there = |named: &&Named| (named.address..named.address + named.size.max(1)).contains(&address);
        match self.functions.iter().find(is_there) {
            Some(named) => addr2line::demangle_auto(named.name.as_str().into(), None).into_owned(),
            None => format!("{address:#x}"),
        }
    }

    /// Returns a sentence for each place that stays, and refers to what does not.
    fn references(&self) -> Vec<String> {
        if self.references.is_empty() {
            return vec!["the kernel's file has no relocations".to_owned()];
        }
        let is_free = |address: u64| self.whole.contains(&address) && !self.resident.contains(&address);
        let wrong = self.references.iter().filter(|one| is_free(one.address) && !BOUNDS.contains(&&*one.symbol));
        wrong
            .map(|one| {
                let (from, to) = (self.name(one.place), self.name(one.address));
                format!("{from} stays in the kernel and refers to {to}, which belongs to the bootstrap")
            })
            .collect()
    }

    /// Returns a sentence for each function that formats text.
    fn formatting(&self) -> Vec<String> {
        let formats = |named: &&Named| FORMATTING.iter().any(|part| named.name.contains(part));
        let found = self.functions.iter().filter(formats);
        found.map(|named| format!("{} formats text; print it by hand", self.name(named.address))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of 0x100 bytes, of which the middle stays.
    fn image(references: &[(u64, &str, u64)]) -> Image {
        let named = |address, name: &str| Named { address, size: 0x10, name: name.to_owned() };
        let reference =
            |&(place, symbol, address): &(u64, &str, u64)| Reference { place, symbol: symbol.to_owned(), address };
        Image {
            whole: 0x1000..0x1100,
            resident: 0x1040..0x10c0,
            functions: vec![named(0x1000, "start"), named(0x1040, "trap"), named(0x1050, "other")],
            references: references.iter().map(reference).collect(),
        }
    }

    #[test]
    fn references_to_what_is_free_are_found() {
        let good = [(0x1044, "other", 0x1050), (0x1044, "tench_image_start", 0x1000), (0x1044, ".bss", 0x2000)];
        assert_eq!(image(&good).references(), [""; 0]);
        for (symbol, address) in [("start", 0x1000), (".boot.text", 0x103f), (".boot.bss", 0x10c0)] {
            let found = image(&[good[0], (0x1044, symbol, address)]).references();
            assert_eq!(found.len(), 1);
            assert!(found[0].starts_with("trap stays in the kernel and refers to "), "{found:?}");
        }
        assert_eq!(image(&[]).references().len(), 1, "a file without relocations shows nothing");
    }

    #[test]
    fn functions_that_format_are_found() {
        let mut image = image(&[]);
        assert_eq!(image.formatting(), [""; 0]);
        image.functions[1].name = "_RNvNtCs3g5Gb6bJpu0_4core3fmt5write".to_owned();
        assert_eq!(image.formatting(), ["core::fmt::write formats text; print it by hand"]);
    }
}
