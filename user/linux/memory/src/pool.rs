//! The pages, and how many use each.

use alloc::vec::Vec;

use crate::{Errno, Hardware, PAGE_SIZE, Place};

/// Number of pages that a pool gets first: 2 MiB.
const FIRST_PAGES: u32 = 512;
/// Number of pages below which a part is too small to be worth having.
const LEAST_PAGES: u32 = 64;

/// A page of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(pub(crate) u32);

impl Page {
    /// Returns the page's number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the page with a number, for hardware that records pages.
    pub const fn from_number(number: u32) -> Page {
        Page(number)
    }
}

/// All pages of an instance.
#[derive(Debug, Default)]
pub struct Pool {
    /// For each page, the number of its users; 0 if it is free.
    users: Vec<u32>,
    /// The free pages. The last one is taken first, since its bytes are most likely in a cache.
    free: Vec<Page>,
}

impl Pool {
    /// Returns a pool without pages.
    pub const fn new() -> Pool {
        Pool { users: Vec::new(), free: Vec::new() }
    }

    /// Takes a page for one user. Its bytes are those that it had before.
    ///
    /// # Errors
    /// `ENOMEM` if there is no memory for another page.
    pub fn take<H: Hardware>(&mut self, hardware: &mut H) -> Result<Page, Errno> {
        if self.free.is_empty() {
            self.grow(hardware)?;
        }
        let page = self.free.pop().ok_or(Errno::ENOMEM)?;
        self.users[page.0 as usize] = 1;
        Ok(page)
    }

    /// Takes a page that is filled with zeros.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_zeroed<H: Hardware>(&mut self, hardware: &mut H) -> Result<Page, Errno> {
        let page = self.take(hardware)?;
        hardware.bytes(page).fill(0);
        Ok(page)
    }

    /// Takes a page with the bytes of another.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_copy<H: Hardware>(&mut self, hardware: &mut H, of: Page) -> Result<Page, Errno> {
        let page = self.take(hardware)?;
        let first = |page| Place { page, offset: 0 };
        hardware.copy(first(of), first(page), PAGE_SIZE as usize);
        Ok(page)
    }

    /// Doubles the pool, so that it consists of few parts, or adds as much as there is memory for.
    fn grow<H: Hardware>(&mut self, hardware: &mut H) -> Result<(), Errno> {
        let first = self.users.len() as u32;
        let mut count = first.max(FIRST_PAGES);
        let size = |pages: u32| 2 * pages as usize * (size_of::<Page>() + size_of::<u32>());
        while crate::check_room(hardware, size(first + count)).is_err() || !hardware.grow(count) {
            count /= 2;
            if count < LEAST_PAGES {
                return Err(Errno::ENOMEM);
            }
        }
        self.users.resize((first + count) as usize, 0);
        self.free.extend((first..first + count).rev().map(Page));
        Ok(())
    }

    /// Adds a user to a page.
    pub fn share(&mut self, page: Page) {
        self.users[page.0 as usize] += 1;
    }

    /// Removes a user from a page.
    pub fn release(&mut self, page: Page) {
        let users = &mut self.users[page.0 as usize];
        *users -= 1;
        if *users == 0 {
            self.free.push(page);
        }
    }

    /// Returns the number of a page's users.
    pub fn users(&self, page: Page) -> u32 {
        self.users.get(page.0 as usize).copied().unwrap_or(0)
    }

    /// Returns the number of pages, free ones included.
    pub fn total(&self) -> usize {
        self.users.len()
    }

    /// Returns the number of free pages.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Checks the pool's own invariants.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.free.iter().any(|page| self.users(*page) != 0) {
            return Err("a free page has users");
        }
        let unused = self.users.iter().filter(|users| **users == 0).count();
        if unused != self.free.len() {
            return Err("a page without users is not free, or free twice");
        }
        Ok(())
    }
}
