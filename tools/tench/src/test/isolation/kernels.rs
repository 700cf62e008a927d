//! Kernels in a machine's memory, found by means of the kernel's file.

use std::ops::Range;
use std::path::Path;

use miette::{IntoDiagnostic, Result, miette};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, elf};
use tench_abi::boot::{CORE_MAGIC, MAGIC, MemoryKind, VERSION};
use tench_abi::layout::address::PROCESS_INFO;

use crate::elf::Executable;
use crate::workspace;

const PAGE: u64 = tench_abi::memory::PAGE_SIZE as u64;
const WORD: u64 = size_of::<u64>() as u64;
/// Size of the block that a kernel maps in pages for itself, which also contains its boot page.
const BLOCK: u64 = 2 << 20;
/// Indices of words of a boot page (`tench_abi::boot::CoreBoot`): device tree, archive, number of chunks, the first of
/// them.
const DEVICE_TREE: u64 = 3;
const ARCHIVE: u64 = 6;
const BLOCKS: u64 = 10;
/// Bytes after its boot information in which the first process has the device tree.
const LARGE: u64 = 64 << 20;

/// Physical memory.
pub struct Memory {
    start: u64,
    bytes: Vec<u8>,
}

impl Memory {
    /// Makes memory that begins at an address.
    pub fn new(start: u64, bytes: Vec<u8>) -> Memory {
        Memory { start, bytes }
    }

    /// Returns whether there is memory at an address.
    pub fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.start).is_some_and(|offset| offset < self.bytes.len() as u64)
    }

    fn bytes(&self, address: u64, size: usize) -> &[u8] {
        let offset = address.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
        offset.and_then(|offset| self.bytes.get(offset..)?.get(..size)).unwrap_or_default()
    }

    fn word(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(address, WORD as usize).try_into().ok()?))
    }
}

/// The kernel as it was linked. Ranges are offsets from its beginning.
pub struct Linked {
    base: u64,
    start: u64,
    size: u64,
    /// The part that stays after the boot.
    resident: Range<u64>,
    /// The code at the beginning of that part.
    code: Vec<u8>,
    writable: Range<u64>,
    tables: Range<u64>,
    /// Offset at which a kernel stores its own address.
    linked_at: u64,
    /// Bytes of the naturally aligned block that holds the kernel and its core's data.
    block: u64,
    /// Writable sections, with names.
    sections: Vec<(String, Range<u64>)>,
}

impl Linked {
    /// Reads the kernel's file.
    pub fn read(path: &Path) -> Result<Linked> {
        let executable = Executable::read_kernel(path)?;
        let bytes = workspace::read_file(path)?;
        let file = object::File::parse(&*bytes).into_diagnostic()?;
        let data = executable.segments.iter().find(|segment| segment.writable);
        let data = data.ok_or_else(|| miette!("the kernel has no data"))?;
        let named = |name: &str| {
            let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
            symbol.map(|symbol| symbol.address()).ok_or_else(|| miette!("the kernel has no symbol {name}"))
        };
        let start = named("tench_image_start")?;
        let symbol = |name: &str| named(name).map(|address| address - start);
        let resident = symbol("tench_resident_start")?..symbol("tench_resident_end")?;
        let code = executable.segments.iter().find(|segment| segment.virtual_address == start + resident.start);
        let code = code.ok_or_else(|| miette!("the kernel has no code that stays"))?;
        let data_start = data.virtual_address - start;
        Ok(Linked {
            base: code.virtual_address - code.physical_address,
            start,
            size: symbol("tench_image_end")?,
            resident,
            code: code.content.clone(),
            writable: data_start..data_start + data.memory_size,
            tables: symbol("tench_kernel_tables")?..symbol("tench_empty_table")? + PAGE,
            linked_at: symbol("tench_linked_at")?,
            block: BLOCK,
            sections: writable_sections(&file),
        })
    }

    /// Returns the name of a writable section that is not copied with the image.
    pub fn outside(&self) -> Option<&str> {
        let image = self.start..self.start + self.size;
        let is_outside = |range: &Range<u64>| range.start < image.start || range.end > image.end;
        self.sections.iter().find(|(_, range)| is_outside(range)).map(|(name, _)| name.as_str())
    }

    /// Returns the kernels that run in a memory, by what stays of them. A mere copy of the file does not contain its
    /// own address.
    pub fn find<'l>(&'l self, memory: &'l Memory) -> Vec<Kernel<'l>> {
        let pages = (memory.start..memory.start + memory.bytes.len() as u64).step_by(PAGE as usize);
        let head = self.code.get(..PAGE as usize).unwrap_or(&self.code);
        let runs = |start: &u64| {
            memory.bytes(*start + self.resident.start, head.len()) == head
                && memory.word(start + self.linked_at) == Some(self.base + start)
        };
        pages.filter(runs).map(|start| Kernel { linked: self, start }).collect()
    }
}

fn writable_sections(file: &object::File<'_>) -> Vec<(String, Range<u64>)> {
    let is_writable = |section: &object::Section<'_, '_>| {
        let needed = u64::from(elf::SHF_ALLOC | elf::SHF_WRITE);
        matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & needed == needed)
    };
    let sections = file.sections().filter(is_writable);
    sections
        .map(|section| {
            let range = section.address()..section.address() + section.size();
            (section.name().unwrap_or("a section without a name").to_owned(), range)
        })
        .collect()
}

/// A kernel in memory.
pub struct Kernel<'l> {
    linked: &'l Linked,
    /// Physical address of the image.
    pub start: u64,
}

impl<'l> Kernel<'l> {
    /// Returns the physical addresses of its writable data.
    pub fn writable(&self) -> Range<u64> {
        self.start + self.linked.writable.start..self.start + self.linked.writable.end
    }

    /// Returns whether its code is the linked code.
    pub fn has_its_code(&self, memory: &Memory) -> bool {
        memory.bytes(self.start + self.linked.resident.start, self.linked.code.len()) == self.linked.code
    }

    /// Returns the words of its writable data, without page tables, with their physical addresses.
    fn words<'m>(&'m self, memory: &'m Memory) -> impl Iterator<Item = (u64, u64)> + 'm {
        let (start, tables) = (self.start, &self.linked.tables);
        let words = self.writable().step_by(WORD as usize).filter(move |address| !tables.contains(&(address - start)));
        words.filter_map(|address| Some((address, memory.word(address)?)))
    }

    /// Returns those words that are kernel virtual addresses of physical ones for which `wanted` holds.
    pub fn pointers<'m>(
        &'m self,
        memory: &'m Memory,
        wanted: impl Fn(u64) -> bool + 'm,
    ) -> impl Iterator<Item = (u64, u64)> + 'm {
        let base = self.linked.base;
        self.words(memory).filter(move |(_, word)| word.checked_sub(base).is_some_and(&wanted))
    }

    /// Returns those words that are such addresses, virtual or physical.
    pub fn names<'m>(
        &'m self,
        memory: &'m Memory,
        wanted: impl Fn(u64) -> bool + 'm,
    ) -> impl Iterator<Item = (u64, u64)> + 'm {
        let base = self.linked.base;
        self.words(memory).filter(move |(_, word)| wanted(*word) || word.checked_sub(base).is_some_and(&wanted))
    }

    /// Returns a page of the image that the first process of this core has as untyped memory although it stays, or has
    /// not although it is free, if there is one.
    pub fn wrong_page(&self, memory: &Memory, core: u64) -> Option<String> {
        let Some(untyped) = untyped(memory, core) else {
            return Some(format!("no page has the boot information of core {core}"));
        };
        let linked = self.linked;
        let mut pages = (0..linked.size).step_by(PAGE as usize);
        let page = pages.find(|page| {
            let is_free = untyped.iter().any(|block| block.contains(&(self.start + page)));
            is_free == linked.resident.contains(page)
        })?;
        let is = if linked.resident.contains(&page) { "stays, and is" } else { "is free, and is not" };
        Some(format!("the page at {page:#x} of core {core}'s kernel {is} in a block of untyped memory"))
    }

    /// Returns what the core was given, by its boot page: the block with its image, its memory, and the read-only
    /// device tree and archive.
    pub fn given(&self, memory: &Memory) -> Option<Vec<Range<u64>>> {
        let page = self.start - PAGE;
        let word = |index: u64| memory.word(page + index * WORD);
        if word(0)? != CORE_MAGIC {
            return None;
        }
        let range = |start: u64, size: u64| start..start.saturating_add(size);
        let pair = |index: u64| Some((word(index)?, word(index + 1)?));
        let mut given = Vec::from([range(self.start & !(self.linked.block - 1), self.linked.block)]);
        for index in [DEVICE_TREE, ARCHIVE] {
            let (start, size) = pair(index)?;
            given.push(range(start, size));
        }
        for index in (0..word(BLOCKS)?).map(|number| BLOCKS + 1 + 2 * number) {
            let (start, bits) = pair(index)?;
            given.push(range(start, 1u64.checked_shl(bits as u32)?));
        }
        Some(given)
    }
}

/// Returns the blocks of RAM in a core's boot information (`tench_abi::boot::BootInfo`).
fn untyped(memory: &Memory, core: u64) -> Option<Vec<Range<u64>>> {
    let mut pages = (memory.start..memory.start + memory.bytes.len() as u64).step_by(PAGE as usize);
    // The header of the RAM disk begins likewise, but has no device tree where the first process has it.
    let is_wanted = |page: &u64| {
        let word = |index: u64| memory.word(page + index * WORD);
        let begins = word(0) == Some(MAGIC) && word(1) == Some(VERSION) && word(8) == Some(core);
        begins && word(5).is_some_and(|tree| (PROCESS_INFO..PROCESS_INFO + LARGE).contains(&tree))
    };
    let page = pages.find(is_wanted)?;
    let block = |index: u64| {
        let (start, kind) = (memory.word(page + (9 + 2 * index) * WORD)?, memory.word(page + (10 + 2 * index) * WORD)?);
        let is_ram = kind >> u32::BITS == MemoryKind::Ram as u64;
        Some(if is_ram { start..start.saturating_add(1u64.checked_shl(kind as u32)?) } else { 0..0 })
    };
    (0..memory.word(page + 2 * WORD)?).map(block).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Bytes of a kernel: a page of code, and a page of data whose second half is page tables.
    const SIZE: u64 = 2 * PAGE;
    const BASE: u64 = 0xffff_fff0_0000_0000;
    const RAM: u64 = 0x4000_0000;

    /// Returns a kernel whose code is a page of sevens.
    pub fn linked() -> Linked {
        Linked {
            base: BASE,
            start: BASE + RAM,
            size: SIZE,
            resident: 0..SIZE,
            code: vec![7; PAGE as usize],
            writable: PAGE..2 * PAGE,
            tables: PAGE + PAGE / 2..2 * PAGE,
            linked_at: PAGE,
            block: 4 * PAGE,
            sections: vec![(".data".into(), BASE + RAM + PAGE..BASE + RAM + SIZE)],
        }
    }

    /// Returns memory with kernels at these pages, which contain their own addresses, and whose data name themselves.
    pub fn memory(at: &[u64]) -> Memory {
        let mut memory = Memory::new(RAM, vec![0; 16 * PAGE as usize]);
        for page in at {
            let start = (page * PAGE) as usize;
            memory.bytes[start..start + PAGE as usize].fill(7);
            put(&mut memory, RAM + (page + 1) * PAGE, BASE + RAM + page * PAGE);
            // A word of its data that names another kernel.
            put(&mut memory, RAM + (page + 1) * PAGE + 32, BASE + RAM + (page + 1) * PAGE);
        }
        memory
    }

    /// Returns two kernels whose data overlap.
    pub fn overlapping() -> (Linked, Memory) {
        let linked = Linked { writable: PAGE..4 * PAGE, linked_at: 2 * PAGE, ..linked() };
        let mut memory = Memory::new(RAM, vec![7; 16 * PAGE as usize]);
        for page in [1, 2] {
            put(&mut memory, RAM + (page + 2) * PAGE, BASE + RAM + page * PAGE);
        }
        (linked, memory)
    }

    /// Writes a word.
    pub fn put(memory: &mut Memory, address: u64, word: u64) {
        let offset = (address - RAM) as usize;
        memory.bytes[offset..offset + WORD as usize].copy_from_slice(&word.to_le_bytes());
    }

    #[test]
    fn kernels_are_told_from_files_that_hold_one() {
        let linked = linked();
        let mut memory = memory(&[1, 5, 9]);
        put(&mut memory, RAM + 10 * PAGE, BASE + RAM);
        let found: Vec<u64> = linked.find(&memory).iter().map(|kernel| (kernel.start - RAM) / PAGE).collect();
        assert_eq!(found, [1, 5]);
    }

    #[test]
    fn free_pages_are_in_untyped_memory_and_others_are_not() {
        let linked = Linked { size: 4 * PAGE, resident: PAGE..3 * PAGE, ..linked() };
        let kernel = Kernel { linked: &linked, start: RAM + 4 * PAGE };
        let judge = |core: u64, blocks: &[(u64, u64)]| {
            let mut memory = memory(&[]);
            let ram = |&(page, bits): &(u64, u64)| [RAM + page * PAGE, bits | (MemoryKind::Ram as u64) << 32];
            let info = [MAGIC, VERSION, blocks.len() as u64, 0, 0, PROCESS_INFO + 0x40_0000, 0, 0, 1];
            for (index, word) in info.into_iter().chain(blocks.iter().flat_map(ram)).enumerate() {
                put(&mut memory, RAM + 9 * PAGE + index as u64 * WORD, word);
            }
            kernel.wrong_page(&memory, core)
        };
        assert_eq!(judge(1, &[(4, 12), (7, 12), (8, 15)]), None);
        let page = |page: u64, is: &str| {
            Some(format!("the page at {:#x} of core 1's kernel {is} in a block of untyped memory", page * PAGE))
        };
        assert_eq!(judge(1, &[(4, 12), (8, 15)]), page(3, "is free, and is not"));
        assert_eq!(judge(1, &[(4, 13), (7, 12)]), page(1, "stays, and is"));
        assert_eq!(judge(0, &[(4, 12), (7, 12)]), Some("no page has the boot information of core 0".into()));
    }

    #[test]
    fn a_section_outside_of_the_image_is_named() {
        let mut linked = linked();
        assert_eq!(linked.outside(), None);
        linked.sections.push((".late".into(), BASE + RAM + PAGE..BASE + RAM + SIZE + 1));
        assert_eq!(linked.outside(), Some(".late"));
    }

    #[test]
    fn the_memory_of_a_core_is_read_from_its_boot_page() {
        let linked = linked();
        let mut memory = memory(&[3]);
        let kernel = Kernel { linked: &linked, start: RAM + 3 * PAGE };
        assert!(kernel.given(&memory).is_none());
        let page = [CORE_MAGIC, 1, 1, 0x100, 0x10, 0, 0x200, 0x20, 0, 14, 1, 0x8000, 12];
        for (index, word) in page.into_iter().enumerate() {
            put(&mut memory, RAM + 2 * PAGE + index as u64 * WORD, word);
        }
        let given = kernel.given(&memory).unwrap();
        assert_eq!(given, [RAM..RAM + 4 * PAGE, 0x100..0x110, 0x200..0x220, 0x8000..0x9000]);
    }
}
