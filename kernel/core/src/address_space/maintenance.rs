//! Cache maintenance: memory is made coherent before it is mapped.

use tench_abi::Error;
use tench_abi::memory::MapFlags;

use crate::mapping::MEMORY_TYPE;
use crate::preemption_point::Passed;
use crate::slot::{Cap, flag};
use crate::{Arch, Kernel, preemption_point};

/// Bytes for which caches are maintained between two preemption points: 256 lines of 64 bytes.
const MAINTENANCE_STEP: usize = 16 * 1024;

/// Returns whether memory must be made coherent before it is mapped with these flags: because instructions are to be
/// fetched that were written as data (unless the program says that they were not written since), or because caches are
/// to be bypassed that hold contents.
pub fn needs_maintenance(cap: &Cap, flags: MapFlags) -> bool {
    let may_need = flags.intersects(MEMORY_TYPE.union(MapFlags::EXECUTE)) && !flags.contains(MapFlags::COHERENT);
    may_need && cap.flags & flag::DEVICE == 0
}

/// Makes `length` bytes of memory from `address` on coherent for a mapping with `flags`.
///
/// Contains preemption points, before anything is changed. `same` decodes the operation again and returns whether the
/// result is the same. Returns whether the thread that performs the operation still exists.
pub fn maintain<A: Arch>(
    k: &mut Kernel<A>,
    (address, length): (usize, usize),
    flags: MapFlags,
    mut same: impl FnMut(&mut Kernel<A>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let mut done = 0;
    // The checks before have taken long.
    if !pass_unchanged(k, &mut same)? {
        return Ok(false);
    }
    while done < length {
        let step = MAINTENANCE_STEP.min(length - done);
        if flags.intersects(MEMORY_TYPE) {
            k.arch().clean_memory(address + done, step);
        } else {
            k.arch().synchronise_instructions(address + done, step);
        }
        done += step;
        // Also after the last step: what follows takes as long.
        if !pass_unchanged(k, &mut same)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Passes a preemption point. Returns whether the running thread still exists. Fails if `same` does not hold any more.
fn pass_unchanged<A: Arch>(
    k: &mut Kernel<A>,
    same: &mut impl FnMut(&mut Kernel<A>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    match preemption_point::pass(k) {
        Passed::Undisturbed => Ok(true),
        Passed::Disturbed => same(k)?.then_some(true).ok_or(Error::Aborted),
        Passed::Deleted => Ok(false),
    }
}
