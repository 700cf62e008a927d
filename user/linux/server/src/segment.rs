//! The files that the host tool packed into this program's file, as a segment behind the program's own ones.

use tench::abi::process::Segment;
use tench::sys::MapFlags;
use tench_linux_packed::MAGIC;

/// Returns the packed files, if there are any. They lie in the boot archive, and are mapped here like constants.
pub fn packed() -> Option<&'static [u8]> {
    let info = tench::process::info()?;
    let last: &Segment = info.segments.get(..info.segment_count as usize)?.last()?;
    if MapFlags::from_bits_truncate(last.flags) != MapFlags::READ {
        return None;
    }
    let start = core::ptr::with_exposed_provenance::<u8>(last.address as usize);
    // SAFETY: the loader has mapped the segment there, for as long as the process lives, and nobody can write to it.
    let bytes = unsafe { core::slice::from_raw_parts(start, last.size as usize) };
    bytes.starts_with(&MAGIC[..MAGIC.len() - 1]).then_some(bytes)
}
