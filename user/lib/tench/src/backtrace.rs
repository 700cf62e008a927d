//! Backtrace of a panic.
//!
//! Everything is compiled with frame pointers: `x29` points to a record of the caller's `x29` and the return address.
//! Only records in the thread's own stack are followed, each above the one before, so a damaged stack ends the walk and
//! does no further harm.

#![cfg_attr(not(target_os = "none"), allow(dead_code))]

use tench_sys::ThreadBlock;

/// Maximum number of records followed.
const MAX_FRAMES: usize = 32;

/// A range of readable addresses, with the words in it.
trait Stack {
    /// Returns the two words at an address, if both lie in the stack.
    fn record(&self, address: usize) -> Option<(usize, usize)>;
}

/// The stack of the running thread.
struct OwnStack {
    bottom: usize,
    top: usize,
}

impl OwnStack {
    fn current() -> Option<OwnStack> {
        let block = ThreadBlock::current()?;
        Some(OwnStack { bottom: block.stack_bottom.get(), top: block.stack_top.get() })
    }
}

impl Stack for OwnStack {
    fn record(&self, address: usize) -> Option<(usize, usize)> {
        let inside = address >= self.bottom && address.checked_add(16)? <= self.top;
        if !inside || !address.is_multiple_of(8) {
            return None;
        }
        let words = core::ptr::with_exposed_provenance::<usize>(address);
        // SAFETY: both words lie in the running thread's stack, which is mapped.
        let next = unsafe { words.read_volatile() };
        // SAFETY: as above.
        let back = unsafe { words.wrapping_add(1).read_volatile() };
        Some((next, back))
    }
}

/// The return addresses on a stack, from the record at `frame` on.
struct Walk<S> {
    stack: S,
    frame: usize,
}

impl<S: Stack> Iterator for Walk<S> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let (next, back) = self.stack.record(self.frame)?;
        // A record that is not above this one, or an end without code, was the last record.
        self.frame = if next > self.frame { next } else { 0 };
        (back != 0).then_some(back)
    }
}

/// Prints the panic and its backtrace, and ends the process with exit code 101.
#[cfg(target_os = "none")]
pub(crate) fn panic(info: &core::panic::PanicInfo) -> ! {
    use crate::{eprintln, process};

    let block = ThreadBlock::current();
    let before = block.map_or(0, |block| block.panicking.replace(1));
    if before == 0 {
        let name = process::name();
        match info.location() {
            Some(place) => eprintln!("{name}: panicked at {}:{}: {}", place.file(), place.line(), info.message()),
            None => eprintln!("{name}: panicked: {}", info.message()),
        }
        print(name);
    }
    process::exit(101)
}

/// Prints a backtrace in the form that the host tool expects of a report: the first line is the address of the call
/// itself, the others are return addresses.
#[cfg(target_os = "none")]
#[inline(never)]
fn print(name: &str) {
    use crate::process;

    let frame: usize;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, x29", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    let Some(stack) = OwnStack::current() else { return };
    for (index, address) in (Walk { stack, frame }).take(MAX_FRAMES).enumerate() {
        let address = if index == 0 { address - 4 } else { address };
        crate::eprintln!("  at {:#x} in {name}", process::linked_address(address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack of words at 0x1000.
    struct Words(&'static [usize]);

    impl Stack for Words {
        fn record(&self, address: usize) -> Option<(usize, usize)> {
            let index = address.checked_sub(0x1000)? / 8;
            Some((*self.0.get(index)?, *self.0.get(index + 1)?))
        }
    }

    fn walk(words: &'static [usize], frame: usize) -> Vec<usize> {
        Walk { stack: Words(words), frame }.collect()
    }

    #[test]
    fn records_are_followed_to_the_end() {
        assert_eq!(walk(&[0x1010, 0xa, 0x1020, 0xb, 0, 0], 0x1000), [0xa, 0xb]);
        assert_eq!(walk(&[0x1010, 0xa, 0, 0xb], 0x1000), [0xa, 0xb]);
    }

    #[test]
    fn a_damaged_stack_ends_the_walk() {
        assert_eq!(walk(&[0x1000, 0xa], 0x1000), [0xa]);
        assert_eq!(walk(&[0x1010, 0xa, 0x1000, 0xb], 0x1000), [0xa, 0xb]);
        assert_eq!(walk(&[usize::MAX, 0xa], 0x1000), [0xa]);
        assert_eq!(walk(&[0, 0xa], 0x10), []);
    }

    #[test]
    fn only_the_own_stack_is_read() {
        let stack = OwnStack { bottom: 0x1000, top: 0x2000 };
        for address in [0, 0xff8, 0x1ff8, 0x2000, 0x1001, usize::MAX, usize::MAX - 7] {
            assert_eq!(stack.record(address), None);
        }
    }
}
