//! A machine whose page tables are arrays.

use tench_linux_memory::{
    Access, Denied, Errno, Hardware, Memory, Objects, PAGE_SIZE, Page, Place, Pool, Rights, Space,
};

/// A table: what its entries map.
pub type Table = Vec<Option<(Page, Rights)>>;

/// Pages, and how much of what there may be.
#[derive(Debug)]
pub struct Machine {
    pages: Vec<Box<[u8; PAGE_SIZE as usize]>>,
    /// Number of pages that there can be.
    pub limit: usize,
    /// Number of tables that can still be made.
    pub tables: usize,
    /// Number of address spaces and tables that exist.
    pub alive: usize,
    /// Number of further calls that succeed.
    pub calls: usize,
    /// Says whether so many bytes can be allocated.
    pub can_allocate: fn(usize) -> bool,
}

impl Machine {
    /// Returns memory on a machine with this number of pages.
    pub fn memory(limit: usize) -> Memory<Machine> {
        let hardware = Machine {
            pages: Vec::new(),
            limit,
            tables: usize::MAX,
            alive: 0,
            calls: usize::MAX,
            can_allocate: |_| true,
        };
        Memory { pool: Pool::new(), objects: Objects::new(), hardware }
    }

    fn count_call(&mut self) -> Result<(), Errno> {
        self.calls = self.calls.checked_sub(1).ok_or(Errno::ENOMEM)?;
        Ok(())
    }
}

impl Hardware for Machine {
    type Root = ();
    type Table = Table;

    fn can_allocate(&mut self, bytes: usize) -> bool {
        (self.can_allocate)(bytes)
    }

    fn grow(&mut self, pages: u32) -> bool {
        let has_room = self.pages.len() + pages as usize <= self.limit;
        if has_room {
            // What was in memory before is nobody's business.
            let new = (0..pages).map(|_| Box::new([0xee; PAGE_SIZE as usize]));
            self.pages.extend(new);
        }
        has_room
    }

    fn bytes(&mut self, page: Page) -> &mut [u8; PAGE_SIZE as usize] {
        &mut self.pages[page.number() as usize]
    }

    fn copy(&mut self, from: Place, to: Place, length: usize) {
        let bytes = *self.bytes(from.page);
        self.bytes(to.page)[to.offset..][..length].copy_from_slice(&bytes[from.offset..][..length]);
    }

    fn make_root(&mut self) -> Result<(), Errno> {
        self.count_call()?;
        self.alive += 1;
        Ok(())
    }

    fn make_table(&mut self, _: &mut (), address: u64) -> Result<Table, Errno> {
        assert_eq!(address % (512 * PAGE_SIZE), 0);
        self.count_call()?;
        self.tables = self.tables.checked_sub(1).ok_or(Errno::ENOMEM)?;
        self.alive += 1;
        Ok(vec![None; 512])
    }

    fn map(&mut self, table: &mut Table, first: usize, pages: &[Page], rights: Rights) -> Result<(), Errno> {
        assert!(!rights.is_empty() && !rights.contains(Rights::WRITE | Rights::EXECUTE), "{rights:?}");
        // What was mapped goes first.
        table[first..first + pages.len()].fill(None);
        self.count_call()?;
        for (entry, page) in table[first..first + pages.len()].iter_mut().zip(pages) {
            *entry = Some((*page, rights));
        }
        Ok(())
    }

    fn unmap(&mut self, table: &mut Table, first: usize, count: usize) {
        table[first..first + count].fill(None);
    }

    fn share(&mut self, from: &mut Table, to: &mut Table, used: std::ops::Range<usize>) -> Result<(), Errno> {
        assert!(to.iter().all(Option::is_none));
        for (from, to) in from[used.clone()].iter_mut().zip(&mut to[used]) {
            self.count_call()?;
            if let Some((_, rights)) = from {
                rights.remove(Rights::WRITE);
            }
            *to = *from;
        }
        Ok(())
    }

    fn drop_table(&mut self, _: &mut (), _: Table) {
        self.alive -= 1;
    }

    fn drop_root(&mut self, (): ()) {
        self.alive -= 1;
    }
}

/// A process that accesses memory by the machine's page tables, as a processor does.
pub trait Process {
    /// Reads or writes a byte. Returns what is there afterwards.
    fn access(
        &mut self,
        memory: &mut Memory<Machine>,
        address: u64,
        access: Access,
        write: Option<u8>,
    ) -> Result<u8, Denied>;

    /// Returns what the machine maps at an address.
    fn mapped(&self, address: u64) -> Option<(Page, Rights)>;
}

impl Process for Space<Machine> {
    fn access(
        &mut self,
        memory: &mut Memory<Machine>,
        address: u64,
        access: Access,
        write: Option<u8>,
    ) -> Result<u8, Denied> {
        let right = match access {
            Access::Read => Rights::READ,
            Access::Write => Rights::WRITE,
            Access::Execute => Rights::EXECUTE,
        };
        for attempt in 0..2 {
            if let Some((page, rights)) = self.mapped(address)
                && rights.contains(right)
            {
                let byte = &mut memory.hardware.bytes(page)[(address % PAGE_SIZE) as usize];
                if let Some(new) = write {
                    *byte = new;
                }
                return Ok(*byte);
            }
            assert_eq!(attempt, 0, "after a fault that is no error, the access succeeds");
            self.fault(memory, address, access)?;
        }
        unreachable!()
    }

    fn mapped(&self, address: u64) -> Option<(Page, Rights)> {
        self.table(address).and_then(|(table, index)| table[index])
    }
}

/// Checks the invariants of everything.
pub fn check(memory: &Memory<Machine>, spaces: &[&Space<Machine>]) {
    memory.check(spaces.iter().flat_map(|space| space.pages())).unwrap();
    for space in spaces {
        space.check(memory, |table, index| table[index]).unwrap();
    }
}
