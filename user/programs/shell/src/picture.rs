//! A picture of physical memory: a character for each part of it, as many parts as fit on a screen.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use tench_abi::memory::PAGE_SIZE;
use tench_mem_interface::Extent;

use crate::format::Bytes;

/// Characters in a line.
const COLUMNS: u64 = 64;
/// Maximum number of lines.
const LINES: u64 = 16;

/// Character for a part of memory of which nothing is known. The others show how much is in use.
const UNKNOWN: char = ' ';
const FREE: char = '.';
const BELOW_HALF: char = '-';
const FROM_HALF: char = '=';
const USED: char = '#';

/// A part of memory.
#[derive(Clone, Copy, Default)]
struct Cell {
    used: u64,
    free: u64,
}

impl Cell {
    const fn character(self) -> char {
        match self {
            Cell { used: 0, free: 0 } => UNKNOWN,
            Cell { used: 0, .. } => FREE,
            Cell { free: 0, .. } => USED,
            Cell { used, free } if used < free => BELOW_HALF,
            Cell { .. } => FROM_HALF,
        }
    }
}

/// The picture.
pub struct Picture {
    /// First address.
    start: u64,
    /// Bytes of a cell, a power of two.
    unit: u64,
    cells: Vec<Cell>,
}

impl Picture {
    /// Returns a picture of these extents.
    pub fn new(extents: &[Extent]) -> Picture {
        let start = extents.iter().map(|extent| extent.address).min().unwrap_or(0);
        let end = extents.iter().map(|extent| extent.address + extent.size).max().unwrap_or(start);
        let unit = (end - start).div_ceil(COLUMNS * LINES).next_power_of_two().max(PAGE_SIZE as u64);
        // A line begins at a multiple of its size, so that addresses on the left are round.
        let start = start - start % (unit * COLUMNS);
        let count = (end - start).div_ceil(unit) as usize;
        let mut picture = Picture { start, unit, cells: vec![Cell::default(); count] };
        for extent in extents {
            picture.add(extent);
        }
        picture
    }

    fn add(&mut self, extent: &Extent) {
        let (mut address, end) = (extent.address, extent.address + extent.size);
        while address < end {
            let index = (address - self.start) / self.unit;
            let next = end.min(self.start + (index + 1) * self.unit);
            let cell = &mut self.cells[index as usize];
            let bytes = if extent.account.is_some() { &mut cell.used } else { &mut cell.free };
            *bytes += next - address;
            address = next;
        }
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = Bytes(self.unit);
        writeln!(f, "each character {unit}: {USED} used, {FROM_HALF} half or more, {BELOW_HALF} less, {FREE} free")?;
        for (line, cells) in self.cells.chunks(COLUMNS as usize).enumerate() {
            write!(f, "{:#012x} ", self.start + line as u64 * COLUMNS * self.unit)?;
            cells.iter().try_for_each(|cell| write!(f, "{}", cell.character()))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn extent(address: u64, size: u64, account: Option<u64>) -> Extent {
        Extent { address, size, account }
    }

    #[test]
    fn each_cell_says_how_full_its_memory_is() {
        let unit = 1 << 20;
        let extents = [
            extent(0x4000_0000, unit, Some(1)),
            extent(0x4000_0000 + unit, unit / 4, Some(2)),
            extent(0x4000_0000 + unit + unit / 4, unit * 3 / 4, None),
            extent(0x4000_0000 + 2 * unit, unit / 2, None),
            extent(0x4000_0000 + 2 * unit + unit / 2, unit / 2, Some(1)),
            extent(0x4000_0000 + 3 * unit, unit, None),
            // A hole, and the last extent of a GiB.
            extent(0x8000_0000 - unit, unit, Some(3)),
        ];
        let text = Picture::new(&extents).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "each character 1 MiB: # used, = half or more, - less, . free");
        assert_eq!(lines[1].trim_end(), "0x0040000000 #-=.");
        assert_eq!(lines.len(), 1 + 16);
        assert!(lines[16].starts_with("0x007c000000 ") && lines[16].ends_with(" #"), "{text}");
    }

    #[test]
    fn an_empty_list_gives_a_picture() {
        assert_eq!(Picture::new(&[]).to_string().lines().count(), 1);
        let small = Picture::new(&[extent(0x1000, 0x1000, None)]);
        assert_eq!(small.to_string().lines().count(), 2);
    }
}
