//! The machine, as the memory of processes needs it.

use core::ops::Range;

use bitflags::bitflags;

use crate::{Errno, PAGE_SIZE, Page};

bitflags! {
    /// Rights to memory.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Rights: u8 {
        /// The memory can be read.
        const READ = 1;
        /// The memory can be written.
        const WRITE = 2;
        /// Instructions in the memory can be executed.
        const EXECUTE = 4;
    }
}

/// A byte of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The page.
    pub page: Page,
    /// Index of the byte.
    pub offset: usize,
}

/// Bytes of pages, and page tables. A table has the entries of 512 neighbouring pages.
pub trait Hardware {
    /// The page tables of an address space.
    type Root: core::fmt::Debug;
    /// One of its tables.
    type Table: core::fmt::Debug;

    /// Returns whether so many bytes of the personality's own memory can be allocated, as a whole or in small parts.
    /// They can until something else has been allocated, or was asked for.
    fn can_allocate(&mut self, bytes: usize) -> bool;

    /// Makes further pages, which have the numbers after those so far. Returns false if there is no memory for so many;
    /// nothing has changed then.
    fn grow(&mut self, pages: u32) -> bool;

    /// Returns the bytes of a page.
    fn bytes(&mut self, page: Page) -> &mut [u8; PAGE_SIZE as usize];

    /// Copies bytes from one place to another, which may overlap. Neither reaches beyond its page.
    fn copy(&mut self, from: Place, to: Place, length: usize);

    /// Makes an address space in which nothing is mapped.
    ///
    /// # Errors
    /// `ENOMEM`
    fn make_root(&mut self) -> Result<Self::Root, Errno>;

    /// Makes the table of the 2 MiB at an address, where there is none.
    ///
    /// # Errors
    /// `ENOMEM`
    fn make_table(&mut self, root: &mut Self::Root, address: u64) -> Result<Self::Table, Errno>;

    /// Maps pages at neighbouring entries of a table, in place of what they map.
    ///
    /// # Errors
    /// `ENOMEM`. What the entries map is undefined then, until they are [unmapped](Self::unmap).
    fn map(&mut self, table: &mut Self::Table, first: usize, pages: &[Page], rights: Rights) -> Result<(), Errno>;

    /// Makes entries map nothing.
    fn unmap(&mut self, table: &mut Self::Table, first: usize, count: usize);

    /// Maps in a new table what another one maps at the same entries, of which some are used, without the right to
    /// write, and takes that right from the other one, too.
    ///
    /// # Errors
    /// `ENOMEM`. What the new table maps is undefined then, and the other one may have lost rights to write.
    fn share(&mut self, from: &mut Self::Table, to: &mut Self::Table, used: Range<usize>) -> Result<(), Errno>;

    /// Ends a table. Nobody uses it any more.
    fn drop_table(&mut self, root: &mut Self::Root, table: Self::Table);

    /// Ends an address space, of which all tables have ended.
    fn drop_root(&mut self, root: Self::Root);
}
