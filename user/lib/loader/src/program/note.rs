//! Tench's note ([`note`]), with which a program describes itself, among other notes.

use elf::segment::ProgramHeader;
use tench_abi::process::note;
use tench_procs_interface::protocol::Defect;

/// Size of a note's head in bytes: the sizes of its name and of its contents, and its type.
const HEAD: usize = 12;

/// Returns whether the notes in a part of the file say that the program makes its stack itself.
pub fn makes_stack(file: &[u8], header: &ProgramHeader) -> Result<bool, Defect> {
    let mut rest = super::contents(file, header).map_err(|_| Defect::BadNote)?;
    // Alignment of name and contents; some tools write 0 or 1 for 4.
    let alignment = match header.p_align {
        0..=4 => 4,
        8 => 8,
        _ => return Err(Defect::BadNote),
    };
    let mut makes_stack = false;
    while !rest.is_empty() {
        let (head, after) = rest.split_at_checked(HEAD).ok_or(Defect::BadNote)?;
        let word = |index: usize| head[index..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let name_end = HEAD + word(0) as usize;
        let contents_start = name_end.next_multiple_of(alignment);
        let contents_end = contents_start + word(4) as usize;
        let name = after.get(..word(0) as usize).ok_or(Defect::BadNote)?;
        let contents = rest.get(contents_start..contents_end).ok_or(Defect::BadNote)?;
        if name == note::NAME && word(8) == note::KIND {
            let flags = contents.try_into().map(u32::from_le_bytes).map_err(|_| Defect::BadNote)?;
            makes_stack |= flags & note::OWN_STACK != 0;
        }
        // The last note may lack its padding.
        rest = rest.get(contents_end.next_multiple_of(alignment)..).unwrap_or(&[]);
    }
    Ok(makes_stack)
}
