//! Checks of the invariants, for tests.

use super::{Entry, Space};
use crate::areas::{Area, Backing};
use crate::{Hardware, Memory, PAGE_SIZE, Page, Rights};

impl<H: Hardware> Space<H> {
    /// Checks the invariants of the address space; `mapped` is what the hardware maps at an entry.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(
        &self,
        memory: &Memory<H>,
        mapped: impl Fn(&H::Table, usize) -> Option<(Page, Rights)>,
    ) -> Result<(), &'static str> {
        self.areas.check()?;
        if self.full_from < self.arena.end && !self.areas.cover(self.full_from..self.arena.end) {
            return Err("something is free where no place is searched");
        }
        for (base, table) in &self.tables {
            if table.used != table.entries.iter().flatten().count() {
                return Err("a table has another number of entries than it says");
            }
            if table.entries.iter().enumerate().any(|(index, entry)| entry.is_some() && !table.span.contains(&index)) {
                return Err("a table has an entry where it says that there is none");
            }
            for (index, entry) in table.entries.iter().enumerate() {
                let hardware = mapped(&table.hardware, index);
                let Some(entry) = entry else {
                    if hardware.is_some() {
                        return Err("the hardware maps something where there is no entry");
                    }
                    continue;
                };
                let expected = (!entry.rights.is_empty()).then_some((entry.page, entry.rights));
                if hardware != expected {
                    return Err("the hardware maps something else than the entry says");
                }
                let address = base + index as u64 * PAGE_SIZE;
                let Some((start, area)) = self.areas.at(address) else { return Err("an entry lies in no area") };
                check_entry(memory, entry, area, address - start)?;
            }
        }
        Ok(())
    }
}

impl<H: Hardware> Memory<H> {
    /// Checks the invariants of all memory, given the pages that the entries of all address spaces use.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self, entries: impl Iterator<Item = Page>) -> Result<(), &'static str> {
        self.pool.check()?;
        let mut users = alloc::vec![0; self.pool.total()];
        for page in entries.chain(self.objects.all().flat_map(|object| object.pages().map(|(_, page)| page))) {
            users[page.0 as usize] += 1;
        }
        let recorded = (0..self.pool.total() as u32).map(|number| self.pool.users(Page(number)));
        if recorded.eq(users) { Ok(()) } else { Err("a page has another number of users than it says") }
    }
}

/// Checks an entry at an offset in an area.
fn check_entry<H: Hardware>(memory: &Memory<H>, entry: &Entry, area: &Area, offset: u64) -> Result<(), &'static str> {
    if !area.rights.contains(entry.rights) {
        return Err("an entry has a right that its area does not have");
    }
    if entry.rights.contains(Rights::WRITE | Rights::EXECUTE) {
        return Err("an entry can be written and executed");
    }
    if !area.shared && entry.rights.contains(Rights::WRITE) && memory.pool.users(entry.page) != 1 {
        return Err("a private page that others use can be written");
    }
    if let (true, Backing::Object(id, first)) = (area.shared, area.backing) {
        let index = (first + offset) / PAGE_SIZE;
        if !memory.objects.get(id).pages().any(|page| page == (index, entry.page)) {
            return Err("a shared entry has another page than its object");
        }
    }
    Ok(())
}
