//! Accesses of a process: which page is at an address, and whether it may be read, written or executed.

use super::{Entry, Space, TABLE_ROOM, Table, locate, set_rights};
use crate::areas::{Area, Backing};
use crate::{Hardware, Memory, PAGE_SIZE, Page, Rights};

/// How far an area that grows downwards keeps away from the one below it, in bytes.
const GUARD: u64 = 256 * PAGE_SIZE;

/// A kind of access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// The fetch of an instruction.
    Execute,
}

impl Access {
    /// Returns the right that the access needs.
    const fn right(self) -> Rights {
        match self {
            Access::Read => Rights::READ,
            Access::Write => Rights::WRITE,
            Access::Execute => Rights::EXECUTE,
        }
    }
}

/// Why an access is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// There is no area.
    NoArea,
    /// The area does not allow it.
    NoRight,
    /// The object ends before.
    BeyondEnd,
    /// There is no memory for the page.
    NoMemory,
}

impl<H: Hardware> Space<H> {
    /// Makes an access possible if the process may make it. It is to be made again then.
    ///
    /// # Errors
    /// See [`Denied`].
    pub fn fault(&mut self, memory: &mut Memory<H>, address: u64, access: Access) -> Result<(), Denied> {
        self.resolve(memory, address, access).map(drop)
    }

    /// Returns the page at an address, for an access that the process may make.
    pub(super) fn resolve(&mut self, memory: &mut Memory<H>, address: u64, access: Access) -> Result<Page, Denied> {
        match self.mapped(address, access) {
            Some(page) => Ok(page),
            None => self.resolve_anew(memory, address, access),
        }
    }

    /// Returns the page at an address, if the hardware allows the access: an entry has no right that its area does not
    /// have.
    pub(super) fn mapped(&self, address: u64, access: Access) -> Option<Page> {
        let (base, index) = locate(address);
        let entry = self.tables.get(&base)?.entries[index]?;
        entry.rights.contains(access.right()).then_some(entry.page)
    }

    /// Returns the page at an address that has no entry, or one without the right to the access.
    #[cold]
    fn resolve_anew(&mut self, memory: &mut Memory<H>, address: u64, access: Access) -> Result<Page, Denied> {
        let (start, area) = self.area_for(address)?;
        if !area.rights.contains(access.right()) {
            return Err(Denied::NoRight);
        }
        let (base, index) = locate(address);
        self.ensure_table(memory, base)?;
        let Some(table) = self.tables.get_mut(&base) else { return Err(Denied::NoMemory) };
        let entry = table.entries[index];
        let page = match entry {
            Some(entry) => memory.page_again(&area, entry.page, access),
            None => memory.first_page(&area, address - start, access),
        }?;
        let rights = granted(&area, memory.pool.users(page), access);
        if memory.hardware.map(&mut table.hardware, index, &[page], rights).is_err() {
            if entry.is_none_or(|entry| entry.page != page) {
                memory.pool.release(page);
            }
            // Nobody knows what is mapped there now.
            set_rights(&mut memory.hardware, table, index..index + 1, Rights::empty());
            return Err(Denied::NoMemory);
        }
        match entry {
            Some(entry) if entry.page != page => memory.pool.release(entry.page),
            Some(_) => {}
            None => {}
        }
        table.put(index, Entry { page, rights });
        Ok(page)
    }

    /// Returns the area in which an address lies, which may have to grow for it.
    fn area_for(&mut self, address: u64) -> Result<(u64, Area), Denied> {
        if let Some((start, area)) = self.areas.at(address) {
            return Ok((start, *area));
        }
        let (start, area) = self.areas.above(address).ok_or(Denied::NoArea)?;
        let new = address & !(PAGE_SIZE - 1);
        let floor = self.areas.below(start).map_or(self.limits.start, |(_, below)| below.end).saturating_add(GUARD);
        let has_room = new >= floor && self.may_grow(area.end - new, start - new);
        if !area.grows || !has_room {
            return Err(Denied::NoArea);
        }
        self.areas.grow(start, new);
        self.areas.at(address).map(|(start, area)| (start, *area)).ok_or(Denied::NoArea)
    }

    pub(super) fn ensure_table(&mut self, memory: &mut Memory<H>, base: u64) -> Result<(), Denied> {
        if !self.tables.contains_key(&base) {
            memory.check_room(TABLE_ROOM).map_err(|_| Denied::NoMemory)?;
            let hardware = memory.hardware.make_table(&mut self.root, base).map_err(|_| Denied::NoMemory)?;
            self.tables.insert(base, Table::new(hardware));
        }
        Ok(())
    }
}

impl<H: Hardware> Memory<H> {
    /// Returns the page for an entry that is made, with the entry as its user.
    fn first_page(&mut self, area: &Area, offset: u64, access: Access) -> Result<Page, Denied> {
        let Memory { pool, objects, hardware } = self;
        let page = match area.backing {
            Backing::Anonymous => pool.take_zeroed(hardware),
            Backing::Object(id, first) => {
                let offset = first + (offset & !(PAGE_SIZE - 1));
                if offset >= objects.get(id).length() {
                    return Err(Denied::BeyondEnd);
                }
                let page = objects.page(pool, hardware, id, offset / PAGE_SIZE).map_err(|_| Denied::NoMemory)?;
                if !area.shared && access == Access::Write {
                    pool.take_copy(hardware, page)
                } else {
                    pool.share(page);
                    Ok(page)
                }
            }
        };
        page.map_err(|_| Denied::NoMemory)
    }

    /// Returns the page for an entry that lacks a right: its own or, to be written in private, a copy.
    fn page_again(&mut self, area: &Area, page: Page, access: Access) -> Result<Page, Denied> {
        if area.shared || access != Access::Write || self.pool.users(page) == 1 {
            return Ok(page);
        }
        self.pool.take_copy(&mut self.hardware, page).map_err(|_| Denied::NoMemory)
    }
}

/// Returns what the hardware is to allow after an access: all that the area allows, but no writing to a private page
/// that others use. The kernel maps nothing that is writable and executable at once, so in an area that allows both,
/// the access decides.
fn granted(area: &Area, users: u32, access: Access) -> Rights {
    let mut rights = area.rights;
    if !area.shared && users > 1 {
        rights.remove(Rights::WRITE);
    }
    if rights.contains(Rights::WRITE | Rights::EXECUTE) {
        rights.remove(if access == Access::Execute { Rights::WRITE } else { Rights::EXECUTE });
    }
    rights
}
