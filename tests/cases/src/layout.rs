//! Tests of a process's memory layout: where things lie, which accesses are allowed, and what is not loaded.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::hint::black_box;

use tench::abi::memory::{MapFlags, PAGE_SIZE};
use tench::mem::Mem;
use tench::memory::{Anonymous, Error, make, with_paging};
use tench::paging::FrameCap;
use tench::process;
use tench::procs::Procs;
use tench::procs::pid;
use tench::procs::protocol::{FaultKind, State};
use tench::sys::Frame;

use crate::case::{Case, Failure, Outcome};
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("LAYOUT0001", "two processes of a program share no address", apart),
    Case::new("LAYOUT0002", "constants with addresses in them are relocated, and then read-only", constants),
    Case::new("LAYOUT0003", "no memory is ever writable and executable", write_or_execute),
    Case::new("LAYOUT0004", "a file that is no program is refused with the reason, and nothing is lost", broken),
    Case::new("LAYOUT0005", "nothing but the first page is forbidden to programs", second_page),
];

const PAGE: u64 = PAGE_SIZE as u64;

/// A constant that contains addresses.
static WORDS: [&str; 3] = ["one", "two", "three"];
static mut VARIABLE: u64 = 1;

/// A part of the process: its name, and a function that returns its address.
type Part = (&'static str, fn() -> u64);

/// Parts of a process, by the argument that makes a child access them.
const PARTS: [Part; 10] = [
    ("code", || apart as *const () as u64),
    ("constants", || WORDS.as_ptr() as u64),
    ("variables", || (&raw const VARIABLE) as u64),
    ("heap", || Box::into_raw(Box::new(1u64)) as u64),
    ("stack", || black_box(&0u64) as *const u64 as u64),
    ("information", || process::info().map_or(0, |info| core::ptr::from_ref(info) as u64)),
    ("first-stack", || process::info().map_or(0, |info| info.stack_top)),
    ("ipc-buffer", || process::info().map_or(0, |info| info.ipc_buffer)),
    ("dynamic", || process::info().map_or(0, |info| info.dynamic)),
    ("random", || process::info().map_or(0, |info| info.random[0])),
];

/// Runs the child that accesses a part.
pub fn child(name: &str) -> Option<i32> {
    if name == "relro" {
        let address = WORDS.as_ptr() as usize;
        // SAFETY: the write faults, which ends this process.
        unsafe { core::ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(0) };
        return Some(1);
    }
    let (_, part) = PARTS.iter().find(|(part, _)| *part == name)?;
    // The call returns only if it is refused.
    let _ = Procs::STANDARD.exit(part());
    None
}

/// Starts this program with a part to access, and returns how it ended.
fn ended(part: &str) -> Outcome<tench::procs::protocol::Status> {
    let procs = Procs::STANDARD;
    let child = procs.prepare("cases")?;
    child.argument("layout")?;
    child.argument(part)?;
    Ok(procs.wait(child.start()?)?)
}

fn apart(_: &mut Stage) -> Outcome {
    for (name, part) in PARTS {
        let mut found = Vec::from([part()]);
        for _ in 0..2 {
            let status = ended(name)?;
            found.push(status.exit_code().ok_or(Failure::new(format!("{name}: {:?}", status.state)))?);
        }
        check!(found.iter().all(|address| *address >= PAGE));
        found.sort_unstable();
        found.dedup();
        equal!((name, found.len()), (name, 3));
    }
    Ok(())
}

fn constants(_: &mut Stage) -> Outcome {
    equal!(black_box(&WORDS)[1..], ["two", "three"]);
    let status = ended("relro")?;
    equal!((status.state, status.fault()), (State::Faulted, Some(FaultKind::RightsViolation)));
    Ok(())
}

fn write_or_execute(_: &mut Stage) -> Outcome {
    let everything = MapFlags::READ | MapFlags::WRITE | MapFlags::EXECUTE;
    let memory = Anonymous::new(PAGE_SIZE)?;
    let address = memory.address() as u64;
    let protect = |flags| with_paging(|paging, carrier| paging.protect(carrier, address, PAGE, flags));
    check!(protect(everything).is_err());
    check!(protect(MapFlags::WRITE | MapFlags::EXECUTE).is_err());
    // A page can become executable when it is no longer writable, and the other way round.
    protect(MapFlags::READ | MapFlags::EXECUTE).map_err(Error::from)?;
    protect(MapFlags::READ | MapFlags::WRITE).map_err(Error::from)?;
    let frame = make::<Frame>(12)?;
    let cap = FrameCap { cap: frame.cap().address(), bits: 12 };
    let start = 1 << 45;
    let map = |flags| with_paging(|paging, carrier| paging.map_fixed(carrier, start, cap, 0, PAGE, flags));
    check!(map(everything).is_err());
    Ok(())
}

/// Returns the bytes on the process server's account, the blocks in use, and the number of accounts.
pub fn in_use() -> Outcome<(u64, u64, u64)> {
    let (account, totals) = (Mem::STANDARD.next_account(pid::PROCS - 1)?, Mem::STANDARD.totals()?);
    Ok((account.used, totals.blocks, totals.accounts))
}

fn broken(_: &mut Stage) -> Outcome {
    let mut before = None;
    // The first time, the process server may get memory that it keeps.
    for _ in 0..2 {
        for mistake in tench_corpus::mistakes() {
            let child = Procs::STANDARD.prepare(&format!("{}/{}", tench_corpus::DIRECTORY, mistake.name))?;
            let refused = child.start_or_defect().err().and_then(|(_, defect)| defect);
            equal!((mistake.name, refused), (mistake.name, Some(mistake.defect)));
        }
        let after = in_use()?;
        equal!(before.replace(after).unwrap_or(after), after);
    }
    Ok(())
}

fn second_page(_: &mut Stage) -> Outcome {
    for (name, _) in tench_corpus::good() {
        let procs = Procs::STANDARD;
        let child = procs.prepare(&format!("{}/{name}", tench_corpus::DIRECTORY))?;
        let status = procs.wait(child.start()?)?;
        equal!((name, status.state, status.fault()), (name, State::Faulted, Some(FaultKind::Breakpoint)));
    }
    Ok(())
}
