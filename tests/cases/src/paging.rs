//! Tests of memory on demand, and of address spaces whose parts are mapped, change and go.

use alloc::format;
use alloc::vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::abi::Powers;
use tench::abi::layout::{address, slot};
use tench::abi::memory::{MapFlags, PAGE_SIZE};
use tench::mem::Mem;
use tench::mem::protocol::Error as MemError;
use tench::memory::{self, Anonymous, Error, Pages, Window, make, with_paging};
use tench::paging::{Account, FrameCap};
use tench::process;
use tench::procs::Procs;
use tench::procs::protocol::{FaultKind, State};
use tench::sys::ipc::BOUND_REPLY;
use tench::sys::{Cap, Endpoint, Frame, Message, OWN_CSPACE, Thread, Wait};
use tench::thread::Builder;
use tench_protocol::Code;

use crate::case::{Case, Failure, Outcome};
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("PAGING0001", "memory comes zeroed, a page at a time, and goes back", on_demand),
    Case::new("PAGING0002", "an access without remedy ends the process, and says what it was", without_remedy),
    Case::new("PAGING0003", "a thread's stack grows to its full size, and no further", stacks),
    Case::new("PAGING0004", "the library can be called from any depth of a stack", any_depth),
    Case::new("PAGING0005", "threads that touch the same pages at once see the same memory", at_once),
    Case::new("PAGING0006", "5 MiB at a fixed address, and one frame at seventeen", fixed),
    Case::new("PAGING0007", "part of a large page can go or change, and the rest stays", partly),
    Case::new("PAGING0008", "a range that cannot be had changes nothing", refused),
    Case::new("PAGING0009", "a thousand small allocations ask the system at most eight times", few_requests),
    Case::new("PAGING0010", "256 MiB of heap can be touched here and there, and go back", large_heap),
    Case::new("PAGING0011", "a page that is made present does not fault", present),
    Case::new("PAGING0012", "when a process with much memory ends, everything comes back", ends),
    Case::new(
        "PAGING0013",
        "the main thread's stack comes on demand, and has a page below it that never does",
        main_stack,
    ),
    Case::new(
        "PAGING0014",
        "malloc and its relatives refuse what cannot be, and allow allocations of no bytes",
        malloc,
    ),
    Case::new(
        "PAGING0015",
        "malloc returns null when memory runs out, whatever the size of the allocations",
        malloc_exhaustion,
    ),
    Case::new("PAGING0016", "pages touched in order come in runs, parts of which can go and change", in_runs),
    Case::new("PAGING0017", "where a run is more than the quota allows, pages come one by one", to_the_quota),
    Case::new("PAGING0018", "a fault without memory is reported so, though memory is free again", tried_once),
];

const PAGE: u64 = PAGE_SIZE as u64;
const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);
/// Address at which R0's course maps its 5 MiB: above 2⁴⁵.
const FIXED: u64 = (1 << 45) + 3 * PAGE;

/// Returns the bytes that this process has.
fn used() -> Outcome<u64> {
    let account = Mem::STANDARD.next_account(process::id() - 1);
    Ok(account.map_err(|failure| Failure::new(format!("no account: {failure}")))?.used)
}

/// Returns this process's account.
fn account() -> Account {
    with_paging(|paging, _| paging.account())
}

/// Reads a word.
fn read(address: usize) -> u64 {
    // SAFETY: the cases read only what they have mapped, and a word is a word.
    unsafe { core::ptr::with_exposed_provenance::<u64>(address).read_volatile() }
}

/// Writes a word.
fn write(address: usize, value: u64) {
    // SAFETY: the cases write only to memory that they have for themselves.
    unsafe { core::ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(value) };
}

fn on_demand(_: &mut Stage) -> Outcome {
    check!(memory::comes_on_demand());
    let (before, frames) = (account(), account().frames);
    let memory = Anonymous::new(1 << 20)?;
    equal!(account().frames, frames);
    for page in (0..256).step_by(5) {
        let address = memory.address() + page * PAGE_SIZE;
        equal!((read(address), read(address + PAGE_SIZE - 8)), (0, 0));
        write(address, page as u64);
    }
    equal!(account().frames, frames + 52);
    for page in (0..256).step_by(5) {
        equal!(read(memory.address() + page * PAGE_SIZE), page as u64);
    }
    drop(memory);
    equal!((account().regions, account().mappings, account().frames), (before.regions, before.mappings, frames));
    Ok(())
}

/// Tasks of a child without remedy, and the fault that must end it.
const WITHOUT_REMEDY: [(&str, FaultKind); 7] = [
    ("null", FaultKind::NullDereference),
    ("never", FaultKind::NeverAllocated),
    ("freed", FaultKind::NeverAllocated),
    ("execute", FaultKind::RightsViolation),
    ("read-only", FaultKind::RightsViolation),
    ("thread-stack", FaultKind::GuardPage),
    ("too-much", FaultKind::OutOfMemory),
];

fn without_remedy(_: &mut Stage) -> Outcome {
    let procs = Procs::STANDARD;
    for (name, kind) in WITHOUT_REMEDY {
        let child = procs.prepare("cases")?;
        child.argument("paging")?;
        child.argument(name)?;
        child.limit(4 << 20)?;
        let status = procs.wait(child.start()?)?;
        equal!((name, status.state, status.fault()), (name, State::Faulted, Some(kind)));
    }
    Ok(())
}

/// Runs the child of `without_remedy`.
pub fn child(name: &str) -> Option<i32> {
    let memory = Anonymous::new(256 << 20).ok()?;
    let address = memory.address();
    match name {
        "null" => _ = read(8),
        "never" => _ = read(address::DYNAMIC_END as usize - PAGE_SIZE),
        "freed" => {
            write(address, 1);
            drop(memory);
            read(address);
        }
        "execute" => {
            // SAFETY: there is no function at this address and never will be: the jump to it faults.
            let function = unsafe { core::mem::transmute::<usize, extern "C" fn()>(address) };
            function();
        }
        "read-only" => {
            write(address, 1);
            with_paging(|paging, carrier| paging.protect(carrier, address as u64, PAGE, MapFlags::READ)).ok()?;
            write(address, 2);
        }
        "thread-stack" => {
            Builder::new().stack_size(128 << 10).spawn(|| descend(1 << 30)).ok()?.join();
        }
        "too-much" => (0..256 << 8).for_each(|page| write(address + page * PAGE_SIZE, 1)),
        "refused" => return refused_at_first(tench::args().nth(3)?.parse().ok()?),
        "main-stack" => {
            let (before, _, after) = (account().frames, descend(900), account().frames);
            return Some(if before < 8 && after >= before + 14 { 0 } else { 1 });
        }
        "to-the-quota" => {
            let all = Mem::STANDARD.next_account(process::id() - 1).ok()?.quota;
            for page in 0..256 << 8 {
                write(address + page * PAGE_SIZE, 1);
                // The memory server's smallest block is a page. A few tables may not fit any more, nor the 64 KiB by
                // which the metadata of a process of this size grow.
                if used().ok()? + 20 * PAGE > all {
                    return Some(0);
                }
            }
            return Some(2);
        }
        "much" => {
            (0..256).for_each(|page| write(address + page * 8 * PAGE_SIZE, 1));
            return Some(0);
        }
        _ => return None,
    }
    Some(1)
}

/// Uses about a kibibyte of stack for each level.
#[inline(never)]
fn descend(levels: usize) -> usize {
    let block = black_box([levels; 128]);
    if levels == 0 { block[0] } else { descend(levels - 1) + usize::from(block[5] == 0) }
}

/// The memory server refuses some requests of the child and grants the next: as many as one fault takes, which is found
/// by trying. So there is memory again when the child reports the fault.
fn tried_once(_: &mut Stage) -> Outcome {
    let procs = Procs::STANDARD;
    for refusals in 1..8 {
        let status = procs.wait(procs.spawn("cases", &["paging", "refused", &format!("{refusals}")])?)?;
        if status.exit_code() != Some(0) {
            equal!((refusals, status.state, status.fault()), (refusals, State::Faulted, Some(FaultKind::OutOfMemory)));
            return Ok(());
        }
    }
    Err(Failure::new("no fault was refused memory"))
}

/// Puts a thread into the memory server's place that refuses this many requests, and touches memory until the server is
/// back. Returns 0 if the library has tried again with success before it gave up.
fn refused_at_first(refusals: usize) -> Option<i32> {
    static IS_BACK: AtomicBool = AtomicBool::new(false);
    let memory = Anonymous::new(256 << 20).ok()?;
    let (endpoint, server) = (make::<Endpoint>(0).ok()?.leak(), memory::take_slot().ok()?);
    Cap::<Endpoint>::new(slot::MEM).copy_to(server).ok()?;
    let replace = |by: Cap<Endpoint>| OWN_CSPACE.delete_at(slot::MEM).and_then(|_| by.copy_to(slot::MEM));
    let refuse = move || {
        // The first request comes before the memory server is replaced, so that this thread's stack is populated.
        for number in 0..=refusals {
            endpoint.receive(Wait::FOREVER).ok()?;
            if number == 0 {
                replace(endpoint).ok()?;
            }
            if number == refusals {
                replace(Cap::new(server)).ok()?;
                IS_BACK.store(true, Ordering::Relaxed);
            }
            BOUND_REPLY.reply(&Message::new(MemError::OutOfMemory.code())).ok()?;
        }
        Some(())
    };
    Builder::new().spawn(refuse).ok()?.detach();
    endpoint.call(&Message::new(0)).ok()?;
    let mut pages = (0..256 << 8).map(|page| memory.address() + page * PAGE_SIZE);
    while !IS_BACK.load(Ordering::Relaxed) {
        write(pages.next()?, 1);
    }
    Some(0)
}

fn stacks(_: &mut Stage) -> Outcome {
    let frames = account().frames;
    let deep = Builder::new().stack_size(8 << 20).spawn(|| (account().frames, descend(6000), account().frames))?;
    let (before, _, after) = deep.join();
    check!(before < frames + 8);
    // 6,000 KiB, 64 KiB at a time.
    check!(after >= before + 90);
    // An access beyond the end is tested by a child of `without_remedy`.
    Ok(())
}

fn main_stack(_: &mut Stage) -> Outcome {
    let procs = Procs::STANDARD;
    // The process begins with part of its stack, and gets the rest as it needs it.
    let status = procs.wait(procs.spawn("cases", &["paging", "main-stack"])?)?;
    equal!(status.exit_code(), Some(0));
    // The parent's layout is what the child has.
    let child = procs.prepare("cases")?;
    let query = Cap::<Thread>::new(slot::THREAD).query()?;
    child.configure(query.priority as u8, query.priority as u8, 64 << 10, Powers::empty())?;
    child.argument("paging")?;
    child.argument("main-stack")?;
    let status = procs.wait(child.start()?)?;
    equal!((status.state, status.fault()), (State::Faulted, Some(FaultKind::GuardPage)));
    Ok(())
}

fn any_depth(_: &mut Stage) -> Outcome {
    /// Calls the library, which takes its lock, with each stack level a little deeper.
    #[inline(never)]
    fn call(levels: usize) -> Result<usize, Error> {
        let block = black_box([levels as u8; 200]);
        let pages = Pages::new(PAGE_SIZE)?;
        if levels == 0 {
            return Ok(0);
        }
        Ok(call(levels - 1)? + usize::from(block[7] == levels as u8 && pages.size() == PAGE_SIZE))
    }
    let thread = Builder::new().stack_size(1 << 20).spawn(|| call(200))?;
    equal!(thread.join()?, 200);
    Ok(())
}

fn at_once(_: &mut Stage) -> Outcome {
    let memory = Anonymous::new(1 << 20)?;
    let address = memory.address();
    let threads: vec::Vec<_> = (0..4)
        .map(|number| {
            Builder::new().spawn(move || {
                for page in 0..256 {
                    write(address + page * PAGE_SIZE + number * 8, number as u64 + 1);
                    if page % 8 == number {
                        tench::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread?.join();
    }
    for page in 0..256 {
        for number in 0..4 {
            equal!(read(address + page * PAGE_SIZE + number * 8), number as u64 + 1);
        }
    }
    Ok(())
}

/// Unmaps a range.
fn unmap(start: u64, size: u64) -> Outcome {
    with_paging(|paging, carrier| paging.unmap(carrier, start, size))
        .map_err(|error| Failure::new(format!("unmapping: {error:?}")))
}

/// Maps part of a frame.
fn map(start: u64, frame: FrameCap, offset: u64, size: u64, flags: MapFlags) -> Outcome {
    with_paging(|paging, carrier| paging.map_fixed(carrier, start, frame, offset, size, flags))
        .map_err(|error| Failure::new(format!("mapping: {error:?}")))
}

fn fixed(_: &mut Stage) -> Outcome {
    let frame = make::<Frame>(23)?;
    let frame_cap = FrameCap { cap: frame.cap().address(), bits: 23 };
    map(FIXED, frame_cap, 0, 5 << 20, RW)?;
    for page in 0..1280 {
        write(FIXED as usize + page * PAGE_SIZE, page as u64);
    }
    let window = Window::new(frame.cap(), 23, MapFlags::READ)?;
    check!((0..1280).all(|page| window.read64(page * PAGE_SIZE) == page as u64));
    unmap(FIXED, 5 << 20)?;
    let page = make::<Frame>(12)?;
    let page_cap = FrameCap { cap: page.cap().address(), bits: 12 };
    let mut addresses = [0; 17];
    for address in &mut addresses {
        *address = with_paging(|paging, carrier| paging.map(carrier, page_cap, RW)).map_err(Error::from)? as usize;
    }
    for (index, address) in addresses.iter().enumerate() {
        write(*address, index as u64);
        check!(addresses.iter().all(|other| read(*other) == index as u64));
    }
    addresses.iter().try_for_each(|address| unmap(*address as u64, PAGE))
}

fn partly(_: &mut Stage) -> Outcome {
    let large = 2 << 20;
    let frame = make::<Frame>(22)?;
    let cap = FrameCap { cap: frame.cap().address(), bits: 22 };
    let start = with_paging(|paging, carrier| paging.map(carrier, cap, RW)).map_err(Error::from)?;
    let before = account();
    let address = |page: u64| (start + page * PAGE) as usize;
    (0..1024).for_each(|page| write(address(page), page + 1));
    // A hole in the first large page, and rights in the second.
    unmap(start + 100 * PAGE, 3 * PAGE)?;
    with_paging(|paging, carrier| paging.protect(carrier, start + large + 7 * PAGE, PAGE, MapFlags::READ))
        .map_err(Error::from)?;
    for page in (0..1024).filter(|page| !(100..103).contains(page)) {
        equal!(read(address(page)), page + 1);
        if page != 512 + 7 {
            write(address(page), page + 2);
        }
    }
    check!(account().mappings > before.mappings + 3);
    let rights = |page| with_paging(|paging, _| paging.shown(start + page * PAGE).map(|shown| shown.3));
    equal!((rights(519), rights(520), rights(101)), (Some(MapFlags::READ), Some(RW), None));
    with_paging(|paging, carrier| paging.protect(carrier, start + large, large, RW)).map_err(Error::from)?;
    write(address(519), 5);
    // The hole can be filled again.
    map(start + 100 * PAGE, cap, 100 * PAGE, 3 * PAGE, RW)?;
    equal!((read(address(101)), read(address(519))), (102, 5));
    unmap(start, 1 << 22)?;
    equal!((account().mappings, account().regions), (before.mappings - 1, before.regions - 1));
    Ok(())
}

fn refused(_: &mut Stage) -> Outcome {
    let before = account();
    let info = process::info().ok_or(Failure::new("no information about this process"))?;
    let frame = make::<Frame>(13)?;
    let cap = FrameCap { cap: frame.cap().address(), bits: 13 };
    map(FIXED, cap, 0, 2 * PAGE, RW)?;
    for (start, offset, size) in [
        (FIXED + PAGE, 0, 2 * PAGE),
        (FIXED, PAGE, PAGE),
        (FIXED + 8 * PAGE, PAGE, 2 * PAGE),
        (FIXED + 8 * PAGE + 1, 0, PAGE),
        (0, 0, PAGE),
        (info.ipc_buffer, 0, PAGE),
        (info.metadata, 0, PAGE),
    ] {
        check!(map(start, cap, offset, size, RW).is_err());
    }
    check!(map(FIXED + 8 * PAGE, cap, 0, PAGE, MapFlags::all()).is_err());
    write(FIXED as usize + PAGE_SIZE, 9);
    equal!(read(FIXED as usize + PAGE_SIZE), 9);
    unmap(FIXED, 2 * PAGE)?;
    let after = account();
    equal!((after.regions, after.mappings), (before.regions, before.mappings));
    Ok(())
}

fn few_requests(_: &mut Stage) -> Outcome {
    let before = memory::heap_requests();
    let allocations: vec::Vec<_> = (0..1024u32).map(alloc::boxed::Box::new).collect();
    check!(memory::heap_requests() - before <= 8);
    check!(allocations.iter().enumerate().all(|(index, allocation)| **allocation as usize == index));
    Ok(())
}

/// Starts the C program that tries malloc, with a quota.
fn run_malloc(what: &str, quota: u64) -> Outcome {
    let procs = Procs::STANDARD;
    let child = procs.prepare("malloc")?;
    child.argument(what)?;
    child.limit(quota)?;
    let status = procs.wait(child.start()?)?;
    equal!((what, status.state, status.exit_code(), status.fault()), (what, State::Exited, Some(0), None));
    Ok(())
}

fn malloc(_: &mut Stage) -> Outcome {
    ["no-bytes", "overflow", "alignment"].iter().try_for_each(|what| run_malloc(what, 16 << 20))
}

fn malloc_exhaustion(_: &mut Stage) -> Outcome {
    run_malloc("exhaustion", 4 << 20)
}

fn large_heap(_: &mut Stage) -> Outcome {
    let (before, frames) = (used()?, account().frames);
    let mut allocation = vec::Vec::<u8>::new();
    if allocation.try_reserve_exact(256 << 20).is_err() {
        return Err(Failure::new("256 MiB of addresses cannot be had"));
    }
    // R0's course touches every eighth page; every sixty-fourth fits into a small machine.
    let start = allocation.spare_capacity_mut().as_mut_ptr().expose_provenance() & !7;
    for page in (0..65536).step_by(64) {
        write(start + page * PAGE_SIZE, page as u64);
    }
    check!((0..65536).step_by(64).all(|page| read(start + page * PAGE_SIZE) == page as u64));
    check!(account().frames >= frames + 1024 && used()? >= before + (3 << 20));
    drop(allocation);
    check!(account().frames <= frames + 1);
    // The metadata stay, which have grown for that many pages and tables, and so do memory blocks that are partly in
    // use.
    check!(used()? < before + (5 << 18));
    Ok(())
}

fn present(_: &mut Stage) -> Outcome {
    let memory = Anonymous::new(1 << 20)?;
    let frames = account().frames;
    memory::make_present(memory.address() + PAGE_SIZE - 1, 2)?;
    equal!(account().frames, frames + 2);
    write(memory.address(), 1);
    write(memory.address() + PAGE_SIZE, 1);
    equal!(account().frames, frames + 2);
    memory::make_present(memory.address(), 0)?;
    Ok(())
}

fn in_runs(_: &mut Stage) -> Outcome {
    let before = account();
    let memory = Anonymous::new(1 << 20)?;
    let address = |page: usize| memory.address() + page * PAGE_SIZE;
    (0..64).for_each(|page| write(address(page), page as u64 + 1));
    // Faults populate 1, 1, 2, 4, 8, and three times 16 pages.
    equal!((account().frames, account().mappings), (before.frames + 8, before.mappings + 8));
    let start = address(0) as u64;
    with_paging(|paging, carrier| paging.protect(carrier, start + 40 * PAGE, PAGE, MapFlags::READ))
        .map_err(Error::from)?;
    with_paging(|paging, carrier| paging.clear(carrier, start + 50 * PAGE, 2 * PAGE)).map_err(Error::from)?;
    for page in (0..64).filter(|page| *page != 50 && *page != 51) {
        equal!(read(address(page)), page as u64 + 1);
    }
    equal!(account().frames, before.frames + 8);
    // Discarded pages come again, zeroed: two, as there is room for them.
    equal!((read(address(50)), read(address(51)), account().frames), (0, 0, before.frames + 9));
    write(address(41), 7);
    equal!((read(address(41)), read(address(40))), (7, 41));
    let rights = |page| with_paging(|paging, _| paging.shown(start + page * PAGE).map(|shown| shown.3));
    equal!((rights(39), rights(40), rights(41)), (Some(RW), Some(MapFlags::READ), Some(RW)));
    drop(memory);
    equal!((account().frames, account().mappings, account().regions), (before.frames, before.mappings, before.regions));
    Ok(())
}

fn to_the_quota(_: &mut Stage) -> Outcome {
    let procs = Procs::STANDARD;
    // Remainders beyond whole blocks.
    for quota in [4 << 20, (4 << 20) + 5 * PAGE, (4 << 20) - 3 * PAGE] {
        let child = procs.prepare("cases")?;
        child.argument("paging")?;
        child.argument("to-the-quota")?;
        child.limit(quota)?;
        let status = procs.wait(child.start()?)?;
        equal!((quota, status.exit_code(), status.fault()), (quota, Some(0), None));
    }
    Ok(())
}

fn ends(_: &mut Stage) -> Outcome {
    let procs = Procs::STANDARD;
    let free = || Mem::STANDARD.totals().map_err(|failure| Failure::new(format!("no totals: {failure}")));
    // The first run makes the servers' metadata as large as they must be.
    procs.wait(procs.spawn("cases", &["paging", "much"])?)?;
    let before = free()?;
    let status = procs.wait(procs.spawn("cases", &["paging", "much"])?)?;
    equal!(status.exit_code(), Some(0));
    equal!(free()?, before);
    Ok(())
}
