//! The server's own memory: arrays that grow in place, because the memory server cannot allocate from itself as others
//! do.
//!
//! ```text
//!   a GiB            + 512 MiB          + 768 MiB
//!   ┌───────────┬┄┄┄┄┬──────────┬┄┄┄┄┄┄┄┬─────────┬┄┄┄┄┄┄┄┐      one GiB of addresses: one page table each of
//!   │ extents   │    │ blocks   │       │ accounts│       │      levels 1 and 2, one of level 3 for each 2 MiB in use
//!   └───────────┴┄┄┄┄┴──────────┴┄┄┄┄┄┄┄┴─────────┴┄┄┄┄┄┄┄┘
//!     mapped: grows a step at a time, and never moves
//! ```

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use tench_abi::layout::slot;
use tench_abi::memory::{PAGE_BITS, TABLE_ENTRIES, entry_bits};
use tench_mem::machine::{STEP_BITS, Step, Use};
use tench_sys::{Cap, Error, Frame, MapFlags, PageTable};

/// Bytes of addresses of the largest array.
const RANGE: u64 = 1 << 29;

/// Start of the first array.
static START: AtomicU64 = AtomicU64::new(0);

/// Places the arrays around `dynamic`, from where on the process may use its addresses as it likes. Called once, before
/// there are any arrays.
#[cfg(target_os = "none")]
pub fn set_start(dynamic: u64) {
    // One page table of level 2 covers all of them. Below `dynamic` it covers nothing else.
    START.store(dynamic & !(2 * RANGE - 1), Ordering::Relaxed);
}

/// Returns the first address of an array, and its bytes of addresses.
fn range(purpose: Use) -> (u64, u64) {
    let start = START.load(Ordering::Relaxed);
    match purpose {
        Use::Extents => (start, RANGE),
        Use::Blocks => (start + RANGE, RANGE / 2),
        Use::Accounts => (start + RANGE + RANGE / 2, RANGE / 2),
    }
}

/// The page tables that all arrays share.
#[derive(Clone, Copy)]
pub struct Tables {
    /// Page table of level 2.
    middle: Cap<PageTable>,
}

impl Tables {
    /// Installs the page tables of levels 1 and 2, which are empty and not installed yet.
    pub fn new(upper: Cap<PageTable>, middle: Cap<PageTable>) -> Result<Tables, Error> {
        upper.install(Cap::new(slot::VSPACE), entry(range(Use::Extents).0, 0))?;
        middle.install(upper, entry(range(Use::Extents).0, 1))?;
        Ok(Tables { middle })
    }
}

/// Returns the index of an address's entry in a page table of `level`.
const fn entry(address: u64, level: u32) -> u64 {
    (address >> entry_bits(level)) % TABLE_ENTRIES as u64
}

/// An array that grows in place.
pub struct Grown<T> {
    start: u64,
    limit: u64,
    /// Number of mapped bytes.
    mapped: u64,
    /// The page table of level 3 that covers the end.
    last_table: Option<Cap<PageTable>>,
    length: usize,
    kind: PhantomData<T>,
}

impl<T: Copy> Grown<T> {
    /// Returns an empty array. There must be one for each use.
    pub fn new(purpose: Use) -> Grown<T> {
        let (start, limit) = range(purpose);
        Grown { start, limit, mapped: 0, last_table: None, length: 0, kind: PhantomData }
    }

    /// Returns whether the next step needs a page table of its own.
    pub const fn wants_table(&self) -> bool {
        self.last_table.is_none() || (self.start + self.mapped).is_multiple_of(1 << entry_bits(2))
    }

    /// Maps one more step, and fills it. A failure leaves nothing behind.
    pub fn grow(&mut self, tables: Tables, step: &Step, fill: T) -> Result<(), Error> {
        if self.mapped + (1 << STEP_BITS) > self.limit {
            return Err(Error::OutOfMemory);
        }
        let end = self.start + self.mapped;
        let table = match step.table.map(Cap::<PageTable>::new) {
            Some(table) => {
                table.install(tables.middle, entry(end, 2))?;
                table
            }
            None => self.last_table.ok_or(Error::NotMapped)?,
        };
        let flags = MapFlags::READ | MapFlags::WRITE;
        // If this fails, the page table goes with its capability, which is deleted next, and is not recorded.
        Cap::<Frame>::new(step.frame).map(
            table,
            entry(end, 3),
            1 << (STEP_BITS - PAGE_BITS),
            0,
            flags,
            step.mapping,
        )?;
        self.last_table = Some(table);
        self.mapped += 1 << STEP_BITS;
        let length = self.mapped as usize / size_of::<T>();
        for index in self.length..length {
            // SAFETY: the element is in mapped memory of this array, is aligned, and no reference to it exists yet.
            unsafe { self.first().wrapping_add(index).write(fill) };
        }
        self.length = length;
        Ok(())
    }

    fn first(&self) -> *mut T {
        core::ptr::with_exposed_provenance_mut(self.start as usize)
    }
}

impl<T> AsRef<[T]> for Grown<T> {
    fn as_ref(&self) -> &[T] {
        if self.length == 0 {
            return &[];
        }
        let first = core::ptr::with_exposed_provenance(self.start as usize);
        // SAFETY: `grow` has mapped and filled that many, and there is one array for each range of addresses.
        unsafe { core::slice::from_raw_parts(first, self.length) }
    }
}

impl<T> AsMut<[T]> for Grown<T> {
    fn as_mut(&mut self) -> &mut [T] {
        if self.length == 0 {
            return &mut [];
        }
        let first = core::ptr::with_exposed_provenance_mut(self.start as usize);
        // SAFETY: as above, and `self` is borrowed for writing.
        unsafe { core::slice::from_raw_parts_mut(first, self.length) }
    }
}
