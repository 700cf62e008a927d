//! The process's information block, and the end of the process.

use core::sync::atomic::{AtomicUsize, Ordering};

use tench_abi::boot::{self, BootInfo};
use tench_abi::layout::{address, slot};
use tench_abi::memory::PAGE_SIZE;
use tench_abi::process::{INFO_PAGES, Info, MAGIC, MAX_SEGMENTS, Segment};
use tench_procs_interface::Procs;
use tench_sys::thread::yield_now;
use tench_sys::{Cap, Kernel, Thread};

/// Size of the information block in bytes.
const BLOCK_SIZE: usize = INFO_PAGES * PAGE_SIZE;

/// Address of the information block, or 0 before the runtime has begun.
static BLOCK: AtomicUsize = AtomicUsize::new(0);

/// Sets the address of the information block.
///
/// # Safety
/// `address` must be the value of `x0` at the first instruction: the address of an [`Info`] with its block, or of a
/// [`BootInfo`], mapped read-only for as long as the process lives.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
pub(crate) unsafe fn set_block(address: usize) {
    BLOCK.store(address, Ordering::Relaxed);
}

/// Returns the first word of the block.
fn magic() -> u64 {
    match BLOCK.load(Ordering::Relaxed) {
        0 => 0,
        // SAFETY: the caller of `set_block` guarantees that a block is there.
        address => unsafe { core::ptr::with_exposed_provenance::<u64>(address).read() },
    }
}

/// Returns the process information. Every process has it except the first.
pub fn info() -> Option<&'static Info> {
    if magic() != MAGIC {
        return None;
    }
    // SAFETY: the first word says that the block begins with an `Info`; the block is never written to and stays
    // (`set_block`).
    unsafe { core::ptr::with_exposed_provenance::<Info>(BLOCK.load(Ordering::Relaxed)).as_ref() }
}

/// Returns the kernel's boot information, in the first process.
pub fn boot_info() -> Option<&'static BootInfo> {
    if magic() != boot::MAGIC {
        return None;
    }
    // SAFETY: as in `info`.
    unsafe { core::ptr::with_exposed_provenance::<BootInfo>(BLOCK.load(Ordering::Relaxed)).as_ref() }
}

/// Returns whether this is the first process, which the kernel made.
pub(crate) fn is_first() -> bool {
    magic() == boot::MAGIC
}

/// Returns the address of the information block.
pub(crate) fn information_address() -> u64 {
    BLOCK.load(Ordering::Relaxed) as u64
}

/// Returns the first address at which libraries may allocate.
pub(crate) fn dynamic() -> u64 {
    info().map_or(address::DYNAMIC, |info| info.dynamic)
}

/// Returns the first address for the metadata of that range.
pub(crate) fn metadata() -> u64 {
    info().map_or(address::METADATA, |info| info.metadata)
}

/// Returns the address in the program's file that corresponds to an address of the program, which may lie elsewhere
/// than it was linked. Other addresses are returned unchanged.
pub fn linked_address(address: usize) -> usize {
    let in_program = |part: &Segment| part.address <= address as u64 && address as u64 - part.address < part.size;
    match info() {
        Some(info) if segments().iter().any(in_program) => address.wrapping_sub(info.bias as usize),
        _ => address,
    }
}

/// Returns the size in bytes of the stack that the main thread makes itself; `None` if it stays on the initial stack.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
pub(crate) fn own_stack() -> Option<usize> {
    info().map(|info| info.own_stack as usize).filter(|size| *size != 0)
}

/// Returns the whole block, arguments and environment included.
fn block() -> &'static [u8] {
    if magic() != MAGIC {
        return &[];
    }
    let start = core::ptr::with_exposed_provenance::<u8>(BLOCK.load(Ordering::Relaxed));
    // SAFETY: the block has this size, is never written to, and stays (`set_block`).
    unsafe { core::slice::from_raw_parts(start, BLOCK_SIZE) }
}

/// Returns the process identifier; 0 for the first process.
pub fn id() -> u64 {
    info().map_or(0, |info| info.pid)
}

/// Returns the program's mapped segments.
pub fn segments() -> &'static [Segment] {
    info().map_or(&[], |info| &info.segments[..(info.segment_count as usize).min(MAX_SEGMENTS)])
}

/// Returns the arguments, the program's name first. An argument that is not UTF-8 is cut after its valid part.
pub fn args() -> Strings {
    info().map_or(Strings::NONE, |info| Strings::new(block(), info.arguments_offset, info.argument_count))
}

/// Returns the environment: strings of the form `NAME=value`.
pub fn env() -> Strings {
    info().map_or(Strings::NONE, |info| Strings::new(block(), info.environment_offset, info.environment_count))
}

/// Prints the usage if the first argument is `--help`. Returns whether it is; then the program is done.
pub fn help(usage: &str) -> bool {
    let is_wanted = args().nth(1) == Some("--help");
    if is_wanted {
        crate::println!("{usage}");
    }
    is_wanted
}

/// Returns the value of an environment entry.
pub fn variable(name: &str) -> Option<&'static str> {
    env().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

/// Returns the program's name: the last component of its first argument.
pub fn name() -> &'static str {
    match args().next() {
        Some(path) => path.rsplit('/').next().unwrap_or(path),
        None if is_first() => "init",
        None => "unknown",
    }
}

/// Iterator over consecutive zero-terminated strings.
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

    /// Returns the next string as bytes.
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
/// Without a process server, it powers the machine off if the process may do that; otherwise the calling thread stops
/// for ever.
pub fn exit(code: i32) -> ! {
    // This returns only if there is no process server.
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
