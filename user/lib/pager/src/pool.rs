//! The pool of pages, with the number of regions that have each.
//!
//! A page is free (count 0, and in the list of free pages once) or in as many regions as its count says.

use alloc::vec::Vec;

/// A page of the pool, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(pub u32);

/// All pages of a pager.
pub struct Pool {
    /// Number of regions that have each page.
    counts: Vec<u32>,
    /// Free pages. It has room for all, so that releasing a page needs no memory.
    free: Vec<Page>,
}

impl Pool {
    /// Returns a pool of free pages.
    pub fn new(pages: u32) -> Pool {
        Pool { counts: alloc::vec![0; pages as usize], free: (0..pages).rev().map(Page).collect() }
    }

    /// Takes a free page for one region; returns `None` if there is none.
    pub fn take(&mut self) -> Option<Page> {
        let page = self.free.pop()?;
        *self.count_of(page) = 1;
        Some(page)
    }

    /// Counts one more region of a page.
    pub fn share(&mut self, page: Page) {
        *self.count_of(page) += 1;
    }

    /// Counts one region less of a page, and frees the page if that was the last.
    pub fn release(&mut self, page: Page) {
        let count = self.count_of(page);
        *count -= 1;
        if *count == 0 {
            self.free.push(page);
        }
    }

    /// Returns whether only one region has a page.
    pub fn is_sole(&self, page: Page) -> bool {
        self.counts[page.0 as usize] == 1
    }

    /// Returns the number of free pages.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Returns the number of pages.
    pub fn size(&self) -> usize {
        self.counts.len()
    }

    fn count_of(&mut self, page: Page) -> &mut u32 {
        &mut self.counts[page.0 as usize]
    }

    /// Checks the pool against the pages of all regions, each as often as it occurs.
    ///
    /// # Errors
    /// Fails with the violated invariant.
    pub fn check_invariants(&self, shown: impl Iterator<Item = Page>) -> Result<(), &'static str> {
        let mut counts = alloc::vec![0u32; self.counts.len()];
        for page in shown {
            *counts.get_mut(page.0 as usize).ok_or("a region shows a page that does not exist")? += 1;
        }
        if counts != self.counts {
            return Err("a page's count is not how many regions show it");
        }
        let mut listed = alloc::vec![false; self.counts.len()];
        for page in &self.free {
            let place = listed.get_mut(page.0 as usize).ok_or("a free page does not exist")?;
            if core::mem::replace(place, true) {
                return Err("a page is free twice");
            }
        }
        let agree = listed.iter().zip(&counts).all(|(listed, count)| *listed == (*count == 0));
        if agree { Ok(()) } else { Err("a page that nobody shows is not free, or one that is shown is") }
    }
}
