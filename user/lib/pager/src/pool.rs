//! Pages, and how many regions show each.
//!
//! A page is free (count 0, and in the list of free pages once) or shown by as many regions as its count says.

use alloc::vec::Vec;

/// A page of the pool, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(pub u32);

/// All pages of a pager.
pub struct Pool {
    /// How many regions show each page.
    counts: Vec<u32>,
    /// Pages that nobody shows. It has room for all, so that giving one back needs no memory.
    free: Vec<Page>,
}

impl Pool {
    /// A pool of free pages.
    pub fn new(pages: u32) -> Pool {
        Pool { counts: alloc::vec![0; pages as usize], free: (0..pages).rev().map(Page).collect() }
    }

    /// A free page, which one region shows from now on; `None` if there is none.
    pub fn take(&mut self) -> Option<Page> {
        let page = self.free.pop()?;
        *self.count_of(page) = 1;
        Some(page)
    }

    /// One more region shows a page.
    pub fn share(&mut self, page: Page) {
        *self.count_of(page) += 1;
    }

    /// One region less shows a page. If that was the last, it is free.
    pub fn release(&mut self, page: Page) {
        let count = self.count_of(page);
        *count -= 1;
        if *count == 0 {
            self.free.push(page);
        }
    }

    /// Whether one region alone shows a page.
    pub fn is_sole(&self, page: Page) -> bool {
        self.counts[page.0 as usize] == 1
    }

    /// Pages that nobody shows.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// All pages.
    pub fn size(&self) -> usize {
        self.counts.len()
    }

    fn count_of(&mut self, page: Page) -> &mut u32 {
        &mut self.counts[page.0 as usize]
    }

    /// Checks the pool against the pages that regions show, each as often as it is shown.
    ///
    /// # Errors
    /// What is wrong.
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
