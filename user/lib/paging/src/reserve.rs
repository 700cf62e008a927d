//! Resources reserved while a mapping is replaced.

use tench_abi::CapAddress;

use crate::backend::{Backend, Object};

/// Slots and tables reserved while a mapping is replaced, so that this cannot fail for lack of them.
#[derive(Debug)]
pub(crate) struct Reserve {
    slots: [CapAddress; SLOTS],
    slot_count: usize,
    tables: [(u8, Object); TABLES],
    table_count: usize,
    /// Set while slots that become free are kept.
    keeps: bool,
}

/// Maximum number of slots for the remaining parts of a mapping: pages of three sizes on each side of the changed part;
/// and for that part.
const SLOTS: usize = 7 + 6;
/// Maximum number of tables for them: two levels on each side.
const TABLES: usize = 4;

impl Reserve {
    /// Returns an empty reserve.
    pub(crate) const fn new() -> Reserve {
        Reserve {
            slots: [CapAddress::NULL; SLOTS],
            slot_count: 0,
            tables: [(0, Object::NONE); TABLES],
            table_count: 0,
            keeps: false,
        }
    }

    /// Takes slots and tables from the backend, the tables by level from 2 on. If it fails, nothing is taken.
    pub(crate) fn fill<B: Backend>(
        &mut self,
        backend: &mut B,
        slots: usize,
        tables: [usize; 2],
    ) -> Result<(), B::Error> {
        self.keeps = true;
        for _ in 0..slots.min(SLOTS) {
            match backend.take_slot() {
                Ok(slot) => self.keep_slot(backend, slot),
                Err(error) => {
                    self.empty(backend);
                    return Err(error);
                }
            }
        }
        for (level, count) in [2, 3].into_iter().zip(tables) {
            for _ in 0..count {
                match backend.make_table(level) {
                    Ok(object) => self.keep_table(backend, level, object),
                    Err(error) => {
                        self.empty(backend);
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns everything to the backend.
    pub(crate) fn empty<B: Backend>(&mut self, backend: &mut B) {
        self.keeps = false;
        while let Some(slot) = self.take_slot() {
            backend.give_slot(slot);
        }
        while self.table_count > 0 {
            self.table_count -= 1;
            backend.destroy(self.tables[self.table_count].1);
        }
    }

    pub(crate) fn take_slot(&mut self) -> Option<CapAddress> {
        self.slot_count = self.slot_count.checked_sub(1)?;
        Some(self.slots[self.slot_count])
    }

    /// Keeps or frees an empty slot.
    pub(crate) fn keep_slot<B: Backend>(&mut self, backend: &mut B, slot: CapAddress) {
        if self.keeps && self.slot_count < SLOTS {
            self.slots[self.slot_count] = slot;
            self.slot_count += 1;
        } else {
            backend.give_slot(slot);
        }
    }

    fn keep_table<B: Backend>(&mut self, backend: &mut B, level: u8, object: Object) {
        if self.table_count < TABLES {
            self.tables[self.table_count] = (level, object);
            self.table_count += 1;
        } else {
            backend.destroy(object);
        }
    }

    pub(crate) fn take_table(&mut self, level: u8) -> Option<Object> {
        let index = self.tables[..self.table_count].iter().position(|(has, _)| *has == level)?;
        self.table_count -= 1;
        self.tables.swap(index, self.table_count);
        Some(self.tables[self.table_count].1)
    }
}
