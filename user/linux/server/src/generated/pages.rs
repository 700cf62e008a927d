//! The file `/proc/PID/pagemap`, which has a word about each page of a process's address space.

use tench_linux_files::Errno;
use tench_linux_memory::{Kind, PAGE_SIZE, Resident};

use super::Owner;
use crate::caller::{Caller, Result};
use crate::{Machine, System};

/// Size of the word about a page.
const WORD: usize = 8;
/// End of the addresses that Linux gives to programs.
const END: u64 = 1 << 48;

/// Returns the word about a page. The number of the page frame is 0, as Linux tells it to most programs, too.
fn word(page: Option<Resident>) -> u64 {
    const PRESENT: u64 = 1 << 63;
    const OF_OBJECT: u64 = 1 << 61;
    const EXCLUSIVE: u64 = 1 << 56;
    let Some(Resident { kind, places }) = page else { return 0 };
    let of_object = if kind == Kind::Anonymous { 0 } else { OF_OBJECT };
    PRESENT | of_object | if places == 1 { EXCLUSIVE } else { 0 }
}

impl<M: Machine> Caller<'_, M> {
    /// Reads from an offset of the file, whose length covers all addresses.
    pub(super) fn read_page_map(&mut self, owner: Owner, offset: u64, into: &mut [u8]) -> Result<usize> {
        if !offset.is_multiple_of(WORD as u64) || !into.len().is_multiple_of(WORD) {
            return Err(Errno::EINVAL);
        }
        self.view().check_inspection(owner)?;
        let viewer = self.viewer();
        let process = viewer.process(owner).ok_or(Errno::ESRCH)?;
        if process.has_ended() {
            return Ok(0);
        }
        let System { memory, spaces, .. } = &*self.system;
        let space = &spaces.find(process.space).space;
        let mut done = 0;
        for place in into.chunks_exact_mut(WORD) {
            let page = (offset + done as u64) / WORD as u64;
            let Some(address) = page.checked_mul(PAGE_SIZE).filter(|address| *address < END) else { break };
            place.copy_from_slice(&word(space.page_of(memory, address)).to_le_bytes());
            done += WORD;
        }
        Ok(done)
    }
}
