//! Heap, slots, windows.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use tench::abi::Kind;
use tench::abi::layout::slot;
use tench::mem::Mem;
use tench::memory::{self, Pages, Window, make};
use tench::process;
use tench::runtime::text;
use tench::sys::{Cap, CapAddress, Endpoint, Frame, MapFlags};

use crate::check;

/// Large and growing allocations.
pub fn heap() -> Result<(), String> {
    let mut numbers: Vec<u64> = Vec::new();
    for number in 0..1_000_000 {
        numbers.push(number);
    }
    check!(numbers.iter().sum::<u64>() == 499_999_500_000);
    let big = vec![7_u8; 20 << 20];
    check!(big.iter().step_by(4096).all(|byte| *byte == 7));
    drop(numbers);
    let mut allocations: Vec<Vec<u8>> = (1..500).map(|size| vec![size as u8; size * 7]).collect();
    allocations.retain(|allocation| allocation.len() % 2 == 0);
    let again: Vec<Vec<u8>> = (1..500).map(|size| vec![size as u8; size * 5]).collect();
    check!(allocations.iter().chain(&again).all(|allocation| allocation.iter().all(|byte| *byte == allocation[0])));
    let mut line = String::from("a");
    for _ in 0..12 {
        let copy = line.clone();
        line.push_str(&copy);
    }
    check!(line.len() == 4096 && line.bytes().all(|byte| byte == b'a'));
    Ok(())
}

/// Checks that many small allocations seldom call the memory server.
pub fn small_allocations() -> Result<(), String> {
    let before = blocks()?;
    let allocations: Vec<Box<u32>> = (0..1024).map(Box::new).collect();
    check!(allocations.iter().enumerate().all(|(index, allocation)| **allocation == index as u32));
    check!(blocks()? - before <= 8);
    Ok(())
}

/// Returns the number of blocks that this process has from the memory server.
pub fn blocks() -> Result<u64, String> {
    let account = Mem::STANDARD.next_account(process::id() - 1).map_err(text)?;
    check!(account.process == process::id());
    Ok(account.blocks)
}

/// Slots grow by nodes.
pub fn slots() -> Result<(), String> {
    let mut taken = Vec::new();
    for _ in 0..1000 {
        taken.push(memory::take_slot().map_err(text)?);
    }
    taken.sort();
    taken.dedup();
    check!(taken.len() == 1000);
    let last = taken[999];
    let copy = Cap::<Endpoint>::new(slot::MEM).copy_to(last).map_err(text)?;
    check!(copy.identify().map_err(text)?.kind == Kind::Endpoint);
    check!(copy.delete().map_err(text)?.freed.is_none());
    taken.into_iter().for_each(memory::free_slot);
    let first = memory::take_slots(256).map_err(text)?;
    check!(first.0 % 256 == 0);
    (first.0..first.0 + 256).for_each(|slot| memory::free_slot(CapAddress(slot)));
    Ok(())
}

/// Two windows show the same frame.
pub fn windows() -> Result<(), String> {
    let frame = make::<Frame>(16).map_err(text)?;
    let one = Window::new(frame.cap(), 16, MapFlags::READ | MapFlags::WRITE).map_err(text)?;
    let other = Window::new(frame.cap(), 16, MapFlags::READ).map_err(text)?;
    one.write(5, b"hello, through another window");
    let mut bytes = [0; 29];
    other.read(5, &mut bytes);
    check!(&bytes == b"hello, through another window");
    one.write64(65528, 0x0102_0304_0506_0708);
    check!(other.read32(65528) == 0x0506_0708);
    drop((one, other));
    drop(frame);
    let large = Pages::new(4 << 20).map_err(text)?;
    check!(large.size() == 4 << 20 && large.address() % large.size() == 0);
    Ok(())
}
