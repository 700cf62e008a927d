//! What this process was told at its start, and its end.

use core::sync::atomic::{AtomicUsize, Ordering};

use tench_abi::boot::{self, BootInfo};
use tench_abi::layout::{address, slot};
use tench_abi::memory::PAGE_SIZE;
use tench_abi::process::{INFO_PAGES, Info, MAGIC, MAX_SEGMENTS, Segment};
use tench_procs_client::Procs;
use tench_sys::thread::yield_now;
use tench_sys::{Cap, Kernel, Thread};

/// Bytes of the information block.
const BLOCK_SIZE: usize = INFO_PAGES * PAGE_SIZE;

/// Address of the information block, or 0 before the runtime has begun.
static BLOCK: AtomicUsize = AtomicUsize::new(0);

/// Remembers where the information block is.
///
/// # Safety
/// `address` is what the first instruction found in `x0`: a [`Info`] with its block, or a [`BootInfo`], mapped
/// read-only for as long as the process lives.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
pub(crate) unsafe fn set_block(address: usize) {
    BLOCK.store(address, Ordering::Relaxed);
}

/// The first word of the block.
fn magic() -> u64 {
    match BLOCK.load(Ordering::Relaxed) {
        0 => 0,
        // SAFETY: `set_block` was told that a block is there.
        address => unsafe { core::ptr::with_exposed_provenance::<u64>(address).read() },
    }
}

/// The process information, if the process has some: all but the first process.
pub fn info() -> Option<&'static Info> {
    if magic() != MAGIC {
        return None;
    }
    // SAFETY: the block begins with an `Info`, says its first word, is never written to, and stays (`set_block`).
    unsafe { core::ptr::with_exposed_provenance::<Info>(BLOCK.load(Ordering::Relaxed)).as_ref() }
}

/// The kernel's boot information, in the first process.
pub fn boot_info() -> Option<&'static BootInfo> {
    if magic() != boot::MAGIC {
        return None;
    }
    // SAFETY: as in `info`.
    unsafe { core::ptr::with_exposed_provenance::<BootInfo>(BLOCK.load(Ordering::Relaxed)).as_ref() }
}

/// Whether this is the first process, which the kernel made.
pub(crate) fn is_first() -> bool {
    magic() == boot::MAGIC
}

/// Where the information block lies.
pub(crate) fn information_address() -> u64 {
    BLOCK.load(Ordering::Relaxed) as u64
}

/// First address where libraries may allocate.
pub(crate) fn dynamic() -> u64 {
    info().map_or(address::DYNAMIC, |info| info.dynamic)
}

/// First address for the books of that.
pub(crate) fn books() -> u64 {
    info().map_or(address::BOOKS, |info| info.books)
}

/// What the program's file calls an address of the program: it may lie elsewhere than it was linked. Other addresses
/// stay as they are.
pub fn linked_address(address: usize) -> usize {
    let in_program = |part: &Segment| part.address <= address as u64 && address as u64 - part.address < part.size;
    match info() {
        Some(info) if segments().iter().any(in_program) => address.wrapping_sub(info.bias as usize),
        _ => address,
    }
}

/// Bytes of the stack that the main thread is to make itself; `None`: it stays on the one on which it begins.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
pub(crate) fn own_stack() -> Option<usize> {
    info().map(|info| info.own_stack as usize).filter(|size| *size != 0)
}

/// The whole block, arguments and environment included.
fn block() -> &'static [u8] {
    if magic() != MAGIC {
        return &[];
    }
    let start = core::ptr::with_exposed_provenance::<u8>(BLOCK.load(Ordering::Relaxed));
    // SAFETY: the block has this size, is never written to, and stays (`set_block`).
    unsafe { core::slice::from_raw_parts(start, BLOCK_SIZE) }
}

/// The process identifier; 0 for the first process.
pub fn id() -> u64 {
    info().map_or(0, |info| info.pid)
}

/// The program's mapped segments.
pub fn segments() -> &'static [Segment] {
    info().map_or(&[], |info| &info.segments[..(info.segment_count as usize).min(MAX_SEGMENTS)])
}

/// The arguments, the program's name first. Of an argument that is not UTF-8 the part that is, is given.
pub fn args() -> Strings {
    info().map_or(Strings::NONE, |info| Strings::new(block(), info.arguments_offset, info.argument_count))
}

/// The environment: strings of the form `NAME=value`.
pub fn env() -> Strings {
    info().map_or(Strings::NONE, |info| Strings::new(block(), info.environment_offset, info.environment_count))
}

/// The value of an environment entry.
pub fn variable(name: &str) -> Option<&'static str> {
    env().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

/// The program's name: the last part of its first argument.
pub fn name() -> &'static str {
    match args().next() {
        Some(path) => path.rsplit('/').next().unwrap_or(path),
        None if is_first() => "init",
        None => "unknown",
    }
}

/// Zero-terminated strings, one after another.
#[derive(Clone, Debug)]
pub struct Strings {
    bytes: &'static [u8],
    left: u64,
}

impl Strings {
    const NONE: Strings = Strings { bytes: &[], left: 0 };

    fn new(block: &'static [u8], offset: u64, count: u64) -> Strings {
        Strings { bytes: usize::try_from(offset).ok().and_then(|start| block.get(start..)).unwrap_or(&[]), left: count }
    }

    /// The next string as bytes.
    pub fn next_bytes(&mut self) -> Option<&'static [u8]> {
        if self.left == 0 {
            return None;
        }
        let end = self.bytes.iter().position(|byte| *byte == 0)?;
        let (string, rest) = self.bytes.split_at(end);
        self.bytes = &rest[1..];
        self.left -= 1;
        Some(string)
    }
}

impl Iterator for Strings {
    type Item = &'static str;

    fn next(&mut self) -> Option<&'static str> {
        let bytes = self.next_bytes()?;
        Some(bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

/// Ends the process with all its threads.
///
/// Without a process server to tell, the machine is powered off if the process may do that; otherwise the calling
/// thread stops for ever.
pub fn exit(code: i32) -> ! {
    // This goes on only if there is no process server.
    let _ = Procs::STANDARD.exit(code as u64);
    if is_first() {
        Cap::<Kernel>::new(slot::KERNEL).power_off(code as u8);
    }
    loop {
        let thread = tench_sys::ThreadBlock::current().map_or(slot::THREAD, |block| block.thread.get());
        let _ = Cap::<Thread>::new(thread).suspend();
        yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_with_zero_bytes() {
        let mut strings = Strings::new(b"..bin/hello\0a b\0\0\xffx\0rest", 2, 4);
        assert_eq!(strings.next(), Some("bin/hello"));
        assert_eq!(strings.next(), Some("a b"));
        assert_eq!(strings.next(), Some(""));
        assert_eq!(strings.clone().next_bytes(), Some(&b"\xffx"[..]));
        assert_eq!(strings.next(), Some(""));
        assert_eq!(strings.next(), None);
    }

    #[test]
    fn counts_and_offsets_that_lie_do_no_harm() {
        assert_eq!(Strings::new(b"abc\0def", 0, 9).count(), 1);
        assert_eq!(Strings::new(b"abc\0", 99, 1).next(), None);
        assert_eq!(Strings::new(b"abc\0", u64::MAX, 1).next(), None);
    }

    #[test]
    fn on_the_host_there_is_no_information() {
        assert!(info().is_none() && boot_info().is_none() && args().next().is_none());
        assert_eq!((id(), name(), variable("HOME")), (0, "unknown", None));
    }
}
