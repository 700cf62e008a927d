//! The page tables that this process has hung into its address space, so that each is made once.

use tench_abi::CapAddress;
use tench_abi::memory::entry_bits;
use tench_sys::{Cap, PageTable};

/// Tables that are remembered: 250 MiB in small pieces, or some 100 GiB in large ones.
const MAX_TABLES: usize = 128;

/// One table.
#[derive(Clone, Copy)]
struct Table {
    /// First address that it shows, shifted right as far as its level allows, so that zeroed memory names none.
    number: u64,
    level: u32,
    cap: CapAddress,
}

/// Tables of level 1 to 3.
pub struct Tables {
    tables: [Table; MAX_TABLES],
    count: usize,
}

impl Tables {
    /// None.
    pub const fn new() -> Tables {
        Tables { tables: [Table { number: 0, level: 0, cap: CapAddress::NULL }; MAX_TABLES], count: 0 }
    }

    /// The table of `level` that shows `address`, if it is there.
    pub fn find(&self, address: u64, level: u32) -> Option<Cap<PageTable>> {
        let number = number(address, level);
        let tables = &self.tables[..self.count];
        // The last one made is the likeliest.
        let table = tables.iter().rev().find(|table| table.level == level && table.number == number)?;
        Some(Cap::new(table.cap))
    }

    /// Whether no more can be remembered.
    pub const fn is_full(&self) -> bool {
        self.count == MAX_TABLES
    }

    /// Remembers the table of `level` that shows `address`.
    pub fn push(&mut self, address: u64, level: u32, cap: Cap<PageTable>) {
        if let Some(place) = self.tables.get_mut(self.count) {
            *place = Table { number: number(address, level), level, cap: cap.address() };
            self.count += 1;
        }
    }
}

/// What tables of `level` are counted by: the part of the address that their parent looks at, and all above.
const fn number(address: u64, level: u32) -> u64 {
    address >> entry_bits(level - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_what_they_show() {
        let mut tables = Tables::new();
        let (a, b) = (Cap::new(CapAddress(60)), Cap::new(CapAddress(61)));
        tables.push(0x1000_0000_0000, 3, a);
        tables.push(0x1000_0000_0000, 2, b);
        assert_eq!(tables.find(0x1000_0000_0000, 3), Some(a));
        assert_eq!(tables.find(0x1000_001f_ffff, 3), Some(a));
        assert_eq!(tables.find(0x1000_0020_0000, 3), None);
        assert_eq!(tables.find(0x1000_3fff_ffff, 2), Some(b));
        assert_eq!(tables.find(0x1000_4000_0000, 2), None);
        assert_eq!(tables.find(0x1000_0000_0000, 1), None);
    }

    #[test]
    fn the_table_of_tables_fills_up() {
        let mut tables = Tables::new();
        for index in 0..MAX_TABLES as u64 {
            assert!(!tables.is_full());
            tables.push(index << 21, 3, Cap::new(CapAddress(index as u32 + 1)));
        }
        assert!(tables.is_full());
        assert_eq!(tables.find(5 << 21, 3), Some(Cap::new(CapAddress(6))));
    }
}
