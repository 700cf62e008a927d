//! The dynamic section of a position-independent program: pairs of words, a tag and a value.
//!
//! A statically linked program uses few of the tags: the relocations, and the flag that it is a program.

use elf::abi::{
    DF_1_PIE, DT_FLAGS_1, DT_JMPREL, DT_NEEDED, DT_NULL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELAENT, DT_RELASZ, DT_RELSZ,
    DT_TEXTREL,
};
use tench_procs_interface::protocol::Defect;

use super::Segment;
use super::relocation::{RELA_SIZE, RELR_SIZE, Relocations};

/// Size of an entry in bytes.
const ENTRY_SIZE: usize = 16;
/// First tag of compact relative relocations, newer than most lists of tags.
const DT_RELRSZ: i64 = 35;
const DT_RELR: i64 = 36;
const DT_RELRENT: i64 = 37;

/// A table: address, size in bytes, and size of an entry in bytes.
#[derive(Default)]
struct Table {
    address: u64,
    size: u64,
    entry_size: Option<u64>,
}

impl Table {
    /// Returns the table's bytes in the file.
    fn contents<'a>(&self, segments: &[Segment<'a>], entry_size: u64) -> Result<&'a [u8], Defect> {
        if self.size == 0 {
            return Ok(&[]);
        }
        let whole = self.size.is_multiple_of(entry_size) && self.entry_size.is_none_or(|size| size == entry_size);
        let found = segments.iter().find_map(|segment| {
            let offset = usize::try_from(self.address.checked_sub(segment.address + segment.lead)?).ok()?;
            segment.contents.get(offset..)?.get(..usize::try_from(self.size).ok()?)
        });
        found.filter(|_| whole).ok_or(Defect::BadDynamicSection)
    }
}

/// Reads a dynamic section. Returns the relocations that it names, unchecked.
pub fn relocations<'a>(section: &[u8], segments: &[Segment<'a>]) -> Result<Relocations<'a>, Defect> {
    let (mut relr, mut rela) = (Table::default(), Table::default());
    let mut is_program = false;
    let mut has_end = false;
    for entry in section.chunks_exact(ENTRY_SIZE) {
        let word = |index: usize| entry[index..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let value = word(8);
        match word(0) as i64 {
            DT_NULL => {
                has_end = true;
                break;
            }
            DT_NEEDED => return Err(Defect::NeedsLibraries),
            DT_TEXTREL => return Err(Defect::RelocationOfConstant),
            DT_REL | DT_RELSZ | DT_JMPREL | DT_PLTRELSZ if value != 0 => return Err(Defect::UnknownRelocation),
            DT_FLAGS_1 => is_program = value & DF_1_PIE as u64 != 0,
            DT_RELR => relr.address = value,
            DT_RELRSZ => relr.size = value,
            DT_RELRENT => relr.entry_size = Some(value),
            DT_RELA => rela.address = value,
            DT_RELASZ => rela.size = value,
            DT_RELAENT => rela.entry_size = Some(value),
            _ => {}
        }
    }
    if !has_end {
        return Err(Defect::BadDynamicSection);
    }
    if !is_program {
        return Err(Defect::SharedLibrary);
    }
    let relr = relr.contents(segments, RELR_SIZE as u64)?;
    let rela = rela.contents(segments, RELA_SIZE as u64)?;
    Ok(Relocations::new(relr, rela))
}
