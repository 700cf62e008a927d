//! Requests of the heap to the system, and costs of an allocation.
//!
//! | key | what |
//! |---|---|
//! | `rust_1024_requests` | number of address requests of 1,024 allocations of 4 bytes |
//! | `rust_1024_blocks` | number of their requests to the memory server |
//! | `rust_4`, `free_rust_4` | the mean cost of one |
//! | `c_1024_requests`, `c_1024_blocks` | both numbers in a C program (`c/heap.c`) that has just begun, for 1,024 × `malloc(4)` |
//! | `c_1024_kib`, `c_1024_left_kib` | growth of its heap by then, and the part of it kept when all is freed, in KiB |
//! | `c_4`, `free_c_4` | the mean cost of one |
//! | `c_1024xSIZE_…`, `c_SIZE`, `free_c_SIZE` | these for larger allocations |
//! | `many_requests`, `many_blocks` | both numbers for 32,768 allocations of 64 bytes |
//! | `many_64`, `free_many_64` | the mean cost of one, including page faults on first touch |
//! | `rust_256m`, `free_256m` | an allocation of 256 MiB: addresses alone; its memory comes on demand |
//! | `touched_256m_kib` | growth of the process's memory after touching each 64th page of it, in KiB |
//! | `left_256m_kib` | growth that is left when it is freed, in KiB |
//!
//! Samples over the number of the allocation: `many` and `free_many` are means of 256, `…_worst` the most expensive of
//! them, `requests` and `blocks` the numbers of requests until then.

use alloc::alloc::{alloc, dealloc};
use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::Layout;

use tench::abi::memory::PAGE_SIZE;
use tench::mem::Mem;
use tench::procs::Procs;
use tench::time::instructions;
use tench::{memory, println, process};

use crate::support::{curve, figure, mean, problem};

/// Number of allocations of a series.
const COUNT: usize = 1024;
/// Number of allocations of the long series.
const MANY: usize = 32 * 1024;
/// Bytes of each allocation.
const MANY_SIZE: usize = 64;
/// Number of allocations that a point of a curve is the mean of.
const FEW: usize = 256;
/// Bytes of a large allocation.
const LARGE: usize = 256 << 20;

/// Makes a layout.
fn layout(size: usize, alignment: usize) -> Result<Layout, String> {
    Layout::from_size_align(size, alignment).map_err(problem("a layout"))
}

/// Makes many small allocations, and frees them; prints requests and means.
fn series(layout: Layout) -> Result<(), String> {
    let mut allocations = Vec::with_capacity(COUNT);
    let (regions, blocks) = (memory::heap_requests(), memory::requests());
    let before = instructions();
    for _ in 0..COUNT {
        // SAFETY: the size is not zero.
        allocations.push(unsafe { alloc(layout) });
    }
    let cost = instructions() - before;
    figure("rust_1024_requests", memory::heap_requests() - regions);
    figure("rust_1024_blocks", memory::requests() - blocks);
    figure("rust_4", cost / COUNT as u64);
    if allocations.iter().any(|allocation| allocation.is_null()) {
        return Err("there is no memory for small allocations".into());
    }
    let before = instructions();
    for allocation in allocations {
        // SAFETY: the memory was allocated with this layout.
        unsafe { dealloc(allocation, layout) };
    }
    let cost = instructions() - before;
    figure("free_rust_4", cost / COUNT as u64);
    Ok(())
}

/// Runs a C program that measures and prints its figures itself.
fn in_c() -> Result<(), String> {
    let status = Procs::STANDARD.spawn("heap", &[]).and_then(|process| Procs::STANDARD.wait(process));
    match status.map_err(problem("the C program"))?.exit_code() {
        Some(0) => Ok(()),
        _ => Err("the C program has not measured".into()),
    }
}

/// Makes so many allocations that the heap grows, and frees them.
fn many() -> Result<(), String> {
    let layout = layout(MANY_SIZE, 8)?;
    let mut allocations = Vec::with_capacity(MANY);
    let mut costs = Vec::with_capacity(MANY);
    let mut asked = Vec::with_capacity(MANY / FEW);
    // The pages are there beforehand, so that the measurement does not touch them for the first time.
    allocations.resize(MANY, core::ptr::null_mut());
    costs.resize(MANY, 0);
    let (regions, blocks) = (memory::heap_requests(), memory::requests());
    let before = instructions();
    let readings = instructions() - before;
    for (number, (allocation, cost)) in allocations.iter_mut().zip(&mut costs).enumerate() {
        let before = instructions();
        // SAFETY: the size is not zero.
        *allocation = unsafe { alloc(layout) };
        if allocation.is_null() {
            return Err("there is no memory for many allocations".into());
        }
        // SAFETY: the address lies in the allocation.
        unsafe { allocation.write_volatile(1) };
        *cost = instructions() - before - readings;
        if number % FEW == FEW - 1 {
            asked.push((memory::heap_requests() - regions, memory::requests() - blocks));
        }
    }
    figure("many_requests", memory::heap_requests() - regions);
    figure("many_blocks", memory::requests() - blocks);
    figure("many_64", mean(&costs));
    for (number, (requests, blocks)) in asked.into_iter().enumerate() {
        curve("many", number * FEW + 1, &costs[number * FEW..(number + 1) * FEW]);
        println!("sample: requests {} {requests}", (number + 1) * FEW);
        println!("sample: blocks {} {blocks}", (number + 1) * FEW);
    }
    for (allocation, cost) in allocations.into_iter().zip(&mut costs) {
        let before = instructions();
        // SAFETY: the memory was allocated with this layout.
        unsafe { dealloc(allocation, layout) };
        *cost = instructions() - before - readings;
    }
    figure("free_many_64", mean(&costs));
    for (number, costs) in costs.chunks(FEW).enumerate() {
        curve("free_many", number * FEW + 1, costs);
    }
    Ok(())
}

/// Returns the KiB that this process has.
fn used() -> Result<u64, String> {
    let account = Mem::STANDARD.next_account(process::id() - 1).map_err(problem("the account"))?;
    Ok(account.used >> 10)
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    series(layout(4, 4)?)?;
    in_c()?;
    many()?;
    let layout = layout(LARGE, PAGE_SIZE)?;
    let kib = used()?;
    let before = instructions();
    // SAFETY: the size is not zero.
    let allocation = unsafe { alloc(layout) };
    figure("rust_256m", instructions() - before);
    if allocation.is_null() {
        return Err("256 MiB of addresses cannot be had".into());
    }
    for offset in (0..LARGE).step_by(64 * PAGE_SIZE) {
        // SAFETY: the address lies in the allocation.
        unsafe { allocation.wrapping_add(offset).write_volatile(1) };
    }
    figure("touched_256m_kib", used()? - kib);
    let before = instructions();
    // SAFETY: the memory was allocated with this layout.
    unsafe { dealloc(allocation, layout) };
    figure("free_256m", instructions() - before);
    figure("left_256m_kib", used()?.saturating_sub(kib));
    Ok(())
}
