//! Upcalls, and faults that end the program.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use tench::abi::fault::{Class, Registers, Report};
use tench::memory::{Pages, Window};
use tench::runtime::text;
use tench::sync::Mutex;
use tench::sys::MapFlags;
use tench::{println, upcall};

use crate::check;

/// Number of skipped faults.
static SKIPPED: AtomicU64 = AtomicU64::new(0);

/// Skips the faulting instruction, and counts the fault.
fn skip(_: &Report, registers: &mut Registers) {
    SKIPPED.fetch_add(1, Ordering::Relaxed);
    registers.pc += 4;
}

/// The memory before guarded pages is not mapped.
pub fn guard_page() -> Result<(), String> {
    let pages = Pages::with_guard(8192).map_err(text)?;
    // SAFETY: the handler skips the load, whose result is not used.
    unsafe { upcall::handle(Class::PageFault, skip, 0) }.map_err(text)?;
    let before = SKIPPED.load(Ordering::Relaxed);
    touch(pages.address());
    check!(SKIPPED.load(Ordering::Relaxed) == before);
    touch(pages.address() - 8);
    check!(SKIPPED.load(Ordering::Relaxed) == before + 1);
    upcall::stop_handling(Class::PageFault).map_err(text)
}

/// Reads a word at any address.
fn touch(address: usize) {
    #[cfg(target_os = "none")]
    // SAFETY: the value is discarded, and a fault is handled.
    unsafe {
        core::arch::asm!("ldr {0}, [{1}]", out(reg) _, in(reg) address, options(nostack, readonly));
    }
    #[cfg(not(target_os = "none"))]
    let _ = address;
}

/// Replies to a foreign system call with the sum of its arguments.
fn add(report: &Report, registers: &mut Registers) {
    registers.x[0] = registers.x[0] + registers.x[1] + report.syndrome;
}

/// A handler sees and changes registers.
pub fn upcalls() -> Result<(), String> {
    // SAFETY: the handler skips the undefined instruction.
    unsafe { upcall::handle(Class::Exception, skip, 0) }.map_err(text)?;
    let stack = Pages::new(16384).map_err(text)?;
    // SAFETY: the handler only sets `x0`, and the stack is not used otherwise as long as this function runs.
    unsafe { upcall::handle(Class::ForeignCall, add, stack.end()) }.map_err(text)?;
    let before = SKIPPED.load(Ordering::Relaxed);
    let mut survived = [0; 2];
    for number in 0..50_u64 {
        let sum = foreign(number, &mut survived);
        check!(sum == number + 1000 + 7);
        check!(survived == [0x1234, 0x5678]);
    }
    check!(SKIPPED.load(Ordering::Relaxed) == before + 50);
    upcall::stop_handling(Class::Exception).map_err(text)?;
    upcall::stop_handling(Class::ForeignCall).map_err(text)
}

/// Runs an undefined instruction and a foreign system call, with registers that must survive both.
fn foreign(number: u64, survived: &mut [u64; 2]) -> u64 {
    #[cfg(target_os = "none")]
    {
        let sum: u64;
        // SAFETY: both instructions are handled; the registers in use are declared.
        unsafe {
            core::arch::asm!(
                "udf #0",
                "svc #7",
                inlateout("x0") number => sum,
                in("x1") 1000_u64,
                inlateout("x9") 0x1234_u64 => survived[0],
                inlateout("x17") 0x5678_u64 => survived[1],
            );
        }
        sum
    }
    #[cfg(not(target_os = "none"))]
    {
        *survived = [0x1234, 0x5678];
        number + 1000 + 7
    }
}

/// Address range that `self_paging` populates when it is touched.
const LAZY: usize = 0x5000_0000_0000;

/// Pages that the handler mapped.
static MAPPED: Mutex<Vec<Pages>> = Mutex::new(Vec::new());

/// Sends a long message of its own, as a pager would, and redirects the access.
fn page_in(report: &Report, registers: &mut Registers) {
    let pages = match Pages::new(4096) {
        Ok(pages) => pages,
        Err(error) => panic!("{error}"),
    };
    let window = Window::new(pages.frame(), 12, MapFlags::READ | MapFlags::WRITE);
    if let Ok(window) = window {
        window.write64(0, report.address);
    }
    println!("        paging in {:#x}, with a text that is too long for registers alone", report.address);
    registers.x[1] = pages.address() as u64;
    MAPPED.lock().push(pages);
}

/// A handler maps memory and sends messages itself.
pub fn self_paging() -> Result<(), String> {
    let stack = Pages::new(32768).map_err(text)?;
    // SAFETY: the handler changes the address of the load that `load` makes; the stack is not used otherwise.
    unsafe { upcall::handle(Class::PageFault, page_in, stack.end()) }.map_err(text)?;
    for index in 0..3 {
        let address = LAZY + index * 8192;
        check!(load(address) == address as u64);
    }
    upcall::stop_handling(Class::PageFault).map_err(text)?;
    MAPPED.lock().clear();
    Ok(())
}

/// Reads a word with the address in `x1`, which a handler may change.
fn load(address: usize) -> u64 {
    #[cfg(target_os = "none")]
    {
        let value: u64;
        // SAFETY: the handler leaves an address that can be read in `x1`.
        unsafe { core::arch::asm!("ldr x0, [x1]", out("x0") value, inlateout("x1") address => _, options(nostack)) };
        value
    }
    #[cfg(not(target_os = "none"))]
    {
        address as u64
    }
}

/// Panics in a few calls.
#[inline(never)]
pub fn descend(depth: u32) {
    if depth == 0 {
        panic!("as asked, at depth {depth}");
    }
    descend(depth - 1);
    println!("not reached at {depth}");
}

/// Overflows the stack.
#[inline(never)]
pub fn recurse(depth: u64) -> u64 {
    let block = core::hint::black_box([depth; 64]);
    if block[0] == u64::MAX { 0 } else { recurse(depth + 1) + block[7] }
}

/// Reads the first page.
pub fn null() {
    touch(8);
}
