//! Calls that read and write a process's memory.

use super::{Access, Space};
use crate::{Hardware, Memory, PAGE_SIZE};

impl<H: Hardware> Space<H> {
    /// Copies bytes of the process from an address on. Returns how many could be read.
    pub fn read(&mut self, memory: &mut Memory<H>, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(place) = address.checked_add(done as u64) else { break };
            let Ok(page) = self.resolve(memory, place, Access::Read) else { break };
            let within = (place % PAGE_SIZE) as usize;
            let part = (PAGE_SIZE as usize - within).min(into.len() - done);
            into[done..done + part].copy_from_slice(&memory.hardware.bytes(page)[within..within + part]);
            done += part;
        }
        done
    }

    /// Copies bytes to the process, to an address on. Returns how many could be written.
    pub fn write(&mut self, memory: &mut Memory<H>, address: u64, from: &[u8]) -> usize {
        let mut done = 0;
        while done < from.len() {
            let Some(place) = address.checked_add(done as u64) else { break };
            let Ok(page) = self.resolve(memory, place, Access::Write) else { break };
            let within = (place % PAGE_SIZE) as usize;
            let part = (PAGE_SIZE as usize - within).min(from.len() - done);
            memory.hardware.bytes(page)[within..within + part].copy_from_slice(&from[done..done + part]);
            done += part;
        }
        done
    }
}
