//! The server's own memory: arrays that grow in place, because nobody gives memory to the one who gives memory.
//!
//! ```text
//!   a GiB            + 512 MiB          + 768 MiB
//!   ┌───────────┬┄┄┄┄┬──────────┬┄┄┄┄┄┄┄┬─────────┬┄┄┄┄┄┄┄┐      one GiB of addresses: one table each of levels 1 and 2,
//!   │ extents   │    │ blocks   │       │ accounts│       │      one of level 3 for each 2 MiB in use
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

/// Where the first array begins.
static START: AtomicU64 = AtomicU64::new(0);

/// Lets the arrays lie around `dynamic`, which the process may use as it likes, with all that follows. Called once,
/// before there are any.
#[cfg(target_os = "none")]
pub fn set_start(dynamic: u64) {
    // One table of level 2 shows all of them. Below `dynamic` it shows nothing else.
    START.store(dynamic & !(2 * RANGE - 1), Ordering::Relaxed);
}

/// First address of an array, and bytes of addresses.
fn range(purpose: Use) -> (u64, u64) {
    let start = START.load(Ordering::Relaxed);
    match purpose {
        Use::Extents => (start, RANGE),
        Use::Blocks => (start + RANGE, RANGE / 2),
        Use::Accounts => (start + RANGE + RANGE / 2, RANGE / 2),
    }
}

/// The tables that all arrays lie in.
#[derive(Clone, Copy)]
pub struct Tables {
    /// Of level 2.
    middle: Cap<PageTable>,
}

impl Tables {
    /// Those of levels 1 and 2, which are empty and hang nowhere.
    pub fn new(upper: Cap<PageTable>, middle: Cap<PageTable>) -> Result<Tables, Error> {
        upper.hang(Cap::new(slot::VSPACE), entry(range(Use::Extents).0, 0))?;
        middle.hang(upper, entry(range(Use::Extents).0, 1))?;
        Ok(Tables { middle })
    }
}

/// Entry of a table of `level` that shows an address.
const fn entry(address: u64, level: u32) -> u64 {
    (address >> entry_bits(level)) % TABLE_ENTRIES as u64
}

/// An array that grows in place.
pub struct Grown<T> {
    start: u64,
    limit: u64,
    /// Bytes that are mapped.
    mapped: u64,
    /// The table of level 3 that shows the end.
    last_table: Option<Cap<PageTable>>,
    length: usize,
    kind: PhantomData<T>,
}

impl<T: Copy> Grown<T> {
    /// An empty array. There must be one for each use.
    pub fn new(purpose: Use) -> Grown<T> {
        let (start, limit) = range(purpose);
        Grown { start, limit, mapped: 0, last_table: None, length: 0, kind: PhantomData }
    }

    /// Whether the next step needs a table of its own.
    pub const fn wants_table(&self) -> bool {
        self.last_table.is_none() || (self.start + self.mapped).is_multiple_of(1 << entry_bits(2))
    }

    /// Maps one more step, and fills it. One that fails leaves nothing behind.
    pub fn grow(&mut self, tables: Tables, step: &Step, fill: T) -> Result<(), Error> {
        if self.mapped + (1 << STEP_BITS) > self.limit {
            return Err(Error::OutOfMemory);
        }
        let end = self.start + self.mapped;
        let table = match step.table.map(Cap::<PageTable>::new) {
            Some(table) => {
                table.hang(tables.middle, entry(end, 2))?;
                table
            }
            None => self.last_table.ok_or(Error::NotMapped)?,
        };
        let flags = MapFlags::READ | MapFlags::WRITE;
        // If this fails the table goes with its capability, which is deleted next, and is not remembered.
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
            // SAFETY: the place lies in mapped memory of this array, is aligned, and no reference to it exists yet.
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
