//! Tests of exhausted memory, wherever that is: the requester gets an error with a name, the system goes on, and
//! nothing is lost.
//!
//! A server's account gets a quota of its present use and a little more in each round, until every request to the
//! server succeeds: so each of the server's own memory requests is the one that fails in some round.
//! docs/manual/exhaustion.md lists the places.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::abi::memory::PAGE_SIZE;
use tench::clock::Clock;
use tench::files::{Error as FilesError, Failure as FilesFailure};
use tench::mem::protocol::{Error as MemError, NO_QUOTA};
use tench::mem::slabs::{Descriptor, Lifetime, Slabs};
use tench::mem::{Block, Failure as MemFailure, Mem};
use tench::memory::{self, Anonymous, Pages, Window, make};
use tench::names::protocol::Error as NamesError;
use tench::names::{Failure as NamesFailure, Names};
use tench::procs::pid;
use tench::procs::protocol::{Error as ProcsError, FaultKind, State};
use tench::procs::{Failure as ProcsFailure, Procs};
use tench::stream::{Error as StreamError, Failure as StreamFailure};
use tench::sys::{Cap, CapAddress, Endpoint, Frame, Kind, MapFlags};
use tench::{println, process};
use tench_protocol::Rejection;

use crate::case::{Case, Failure, Outcome};
use crate::child::COMPLIED;
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("EXH0001", "the name server refuses names for which it can have no memory", names),
    Case::new("EXH0002", "the process server refuses processes for which it can have no memory", processes),
    Case::new("EXH0003", "the memory server refuses blocks for which its ledger can have no memory", ledger_memory),
    Case::new("EXH0004", "without any memory the servers go on, and what was taken comes back", nothing_left),
    Case::new("EXH0005", "a program that may have little gets errors from its library, and no worse", library),
    Case::new("EXH0006", "bundles count against the quota, and go back with their owner", bundles),
    Case::new("EXH0007", "the file server refuses files and pipes for which it can have no memory", files),
];

const MEM: Mem = Mem::STANDARD;
const PROCS: Procs = Procs::STANDARD;
/// The memory server with authority: the second capability that the system description gives this program.
const AUTHORITY: Mem = Mem::at(Cap::new(CapAddress(slot::EXTRA.0 + 1)));
/// Bytes by which a quota rises from round to round: less than the library requests at a time.
const STEP: u64 = 32 << 10;
/// Maximum number of rounds.
const ROUNDS: u64 = 200;

/// Returns the bytes on an account.
fn used(process: u64) -> Outcome<u64> {
    let account = MEM.next_account(process - 1)?;
    equal!(account.process, process);
    Ok(account.used)
}

/// Returns whether the name server has no memory: for the name, or for a slot in which its capability could arrive.
fn is_full(refusal: &NamesFailure) -> bool {
    matches!(refusal, NamesFailure::Refused(NamesError::Full) | NamesFailure::Rejected(Rejection::Busy))
}

/// Checks that the memory server's account agrees with the kernel.
fn audit() -> Outcome {
    let audit = MEM.audit()?;
    equal!(audit.ledger, audit.kernel);
    Ok(())
}

/// Raises a server's quota until `play` reports that nothing was refused. Something must be refused in the first round.
fn walk(server: u64, mut play: impl FnMut() -> Outcome<bool>) -> Outcome {
    let mut outcome = Err(Failure::new("something is refused in every round"));
    for round in 0..ROUNDS {
        AUTHORITY.set_quota(server, used(server)? + round * STEP)?;
        let played = play().and_then(|was_enough| audit().map(|()| was_enough));
        match played {
            Ok(true) if round == 0 => outcome = Err(Failure::new("nothing is refused: there is no need for memory")),
            Ok(true) => outcome = Ok(()),
            Ok(false) => continue,
            Err(failure) => outcome = Err(failure),
        }
        break;
    }
    AUTHORITY.set_quota(server, NO_QUOTA)?;
    outcome
}

/// Starts a process and waits for its end.
fn all_is_well() -> Outcome {
    equal!(PROCS.wait(PROCS.spawn("cases", &["comply"])?)?.exit_code(), Some(COMPLIED));
    audit()
}

// ── Servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Names registered at a time: about as many as one process may have.
const NAMES: usize = 450;

fn names(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let slot = stage.slot();
    let names = Names::STANDARD;
    let name = |number: usize| format!("cases/{number:x>174}");
    let server = PROCS.find("names", 0)?;
    walk(server, || {
        let mut registered = 0;
        let refusal = loop {
            match names.register(&name(registered), endpoint) {
                Ok(()) => registered += 1,
                Err(failure) => break Some(failure),
            }
            if registered == NAMES {
                break None;
            }
        };
        // Without a slot the capability does not arrive; without heap there is no room for the name.
        check!(match &refusal {
            None => true,
            Some(refusal) => is_full(refusal),
        });
        for number in 0..registered {
            let found = names.look_up(&name(number), slot).map_err(|_| Failure::new("a name is not there"))?;
            found.delete()?;
            names.unregister(&name(number)).map_err(|_| Failure::new("a name does not go"))?;
        }
        Ok(refusal.is_none())
    })?;
    all_is_well()
}

/// Number of unstarted process builders at a time.
const PROCESSES: usize = 300;

/// Number of file blocks, and of pipes, at a time.
const PAGES_OF_FILES: u64 = 100;

fn files(_: &mut Stage) -> Outcome {
    let server = PROCS.find("files", 0)?;
    walk(server, || {
        let mut pipes = Vec::new();
        let mut play = || {
            let file = tench::fs::create("/tmp/exhaustion")?;
            for number in 0..PAGES_OF_FILES {
                file.seek(number << 12)?;
                file.stream().write(b"x")?;
            }
            for _ in 0..PAGES_OF_FILES / 2 {
                let pipe = tench::io::pipe()?;
                pipe.1.stream().write(b"x")?;
                pipes.push(pipe);
            }
            Ok(())
        };
        let played = play();
        drop(pipes);
        let is_there = tench::fs::status("/tmp/exhaustion").is_ok();
        if is_there {
            tench::fs::remove("/tmp/exhaustion")?;
        }
        match played {
            Ok(()) => Ok(true),
            Err(tench::io::Error::Stream(StreamFailure::Refused(StreamError::NoSpace | StreamError::Full)))
            | Err(tench::io::Error::Files(FilesFailure::Refused(FilesError::NoSpace | FilesError::Full))) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

fn processes(_: &mut Stage) -> Outcome {
    walk(pid::PROCS, || {
        let mut prepared = Vec::with_capacity(PROCESSES);
        let mut was_enough = true;
        while prepared.len() < PROCESSES {
            match PROCS.prepare("cases") {
                Ok(spawn) => {
                    was_enough &= append(&spawn)?;
                    prepared.push(spawn);
                }
                Err(ProcsFailure::Refused(ProcsError::OutOfMemory)) => {
                    was_enough = false;
                    break;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        // An existing builder can still be started, or is refused and gone; a running process can end.
        if let Some(spawn) = prepared.pop() {
            spawn.configure(100, 100, 0, Powers::empty())?;
            match spawn.start() {
                Ok(process) => {
                    let _ = PROCS.kill(process);
                }
                Err(ProcsFailure::Refused(ProcsError::OutOfMemory)) => was_enough = false,
                Err(failure) => return Err(failure.into()),
            }
        }
        prepared.into_iter().for_each(|spawn| spawn.abandon());
        Ok(was_enough)
    })?;
    all_is_well()
}

/// Gives a process builder some arguments. Returns whether there was memory for them.
fn append(spawn: &tench::procs::Spawn) -> Outcome<bool> {
    for _ in 0..3 {
        match spawn.argument(core::str::from_utf8(&[b'a'; 900]).unwrap_or("a")) {
            Ok(()) => {}
            Err(ProcsFailure::Refused(ProcsError::OutOfMemory)) => return Ok(false),
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(true)
}

// ── The memory server ────────────────────────────────────────────────────────────────────────────────────────────────

/// Blocks at a time: so many that the slots and the extents' metadata must grow.
const BLOCKS: usize = 3000;

fn ledger_memory(_: &mut Stage) -> Outcome {
    let mut held: Vec<Block> = Vec::with_capacity(BLOCKS);
    // This process's slots are allocated beforehand, whatever happens to the memory server.
    let slots = take_slots(BLOCKS)?;
    let before = MEM.totals()?;
    let outcome = walk(pid::MEM, || {
        let mut was_enough = true;
        for slot in &slots {
            match MEM.allocate(12, *slot) {
                Ok(block) => held.push(block),
                Err(MemFailure::Refused(MemError::TooManyBlocks)) => {
                    was_enough = false;
                    break;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        audit()?;
        held.drain(..).try_for_each(|block| MEM.free(block.number).map(drop))?;
        Ok(was_enough)
    });
    slots.into_iter().for_each(memory::free_slot);
    outcome?;
    // Only the arrays keep the size to which they had to grow.
    let after = MEM.totals()?;
    check!(before.free - after.free < 2 << 20 && after.accounts == before.accounts);
    all_is_well()
}

fn take_slots(count: usize) -> Outcome<Vec<CapAddress>> {
    let mut slots = Vec::with_capacity(count);
    for _ in 0..count {
        slots.push(memory::take_slot()?);
    }
    Ok(slots)
}

/// Takes all memory there is, in the largest blocks available.
fn take_all(held: &mut Vec<Block>, slots: &[CapAddress]) -> Outcome {
    let mut slots = slots.iter();
    for bits in (12..31).rev() {
        loop {
            let slot = slots.as_slice().first().ok_or_else(|| Failure::new("memory is in too many fragments"))?;
            match MEM.allocate(bits, *slot) {
                Ok(block) => held.push(block),
                Err(MemFailure::Refused(MemError::OutOfMemory)) => break,
                Err(failure) => return Err(failure.into()),
            }
            slots.next();
        }
    }
    Ok(())
}

fn nothing_left(stage: &mut Stage) -> Outcome {
    all_is_well()?;
    let (mut held, slots) = (Vec::with_capacity(1000), take_slots(1000)?);
    let endpoint = stage.endpoint()?;
    let slot = stage.slot();
    let found = Names::STANDARD.look_up(Clock::NAME, slot).map_err(|_| Failure::new("there is no clock"))?;
    let clock = Clock::at(found);
    let before = MEM.totals()?;
    let taken = take_all(&mut held, &slots);
    let outcome = taken.and_then(|()| {
        equal!(MEM.totals()?.free, 0);
        without_memory(endpoint, clock)
    });
    for block in held {
        MEM.free(block.number)?;
    }
    slots.into_iter().for_each(memory::free_slot);
    found.delete()?;
    outcome?;
    // Servers may have returned spare memory, and taken it back.
    check!(MEM.totals()?.free + (256 << 10) >= before.free);
    all_is_well()
}

/// Makes every request to every server; those that need memory are refused, or served from the server's own.
fn without_memory(endpoint: Cap<Endpoint>, clock: Clock) -> Outcome {
    for number in 0..20 {
        match PROCS.spawn("cases", &["comply"]) {
            Err(ProcsFailure::Refused(ProcsError::OutOfMemory)) => {}
            Err(failure) => return Err(failure.into()),
            Ok(_) => return Err(Failure::new("a process was started without memory")),
        }
        let name = ["cases/soon", "cases/gone"][number % 2];
        match Names::STANDARD.register(name, endpoint) {
            Ok(()) => Names::STANDARD.unregister(name).map_err(|_| Failure::new("a name does not go"))?,
            Err(refusal) if is_full(&refusal) => {}
            Err(_) => return Err(Failure::new("a name was refused for another reason")),
        }
        clock.delay(10).map_err(|_| Failure::new("the clock does not reply"))?;
        println!("  without memory: {number}");
        tench::time::sleep(Duration::from_micros(50));
        check!(make::<Frame>(20).is_err() && Pages::new(1 << 20).is_err());
        audit()?;
    }
    Ok(())
}

// ── The library ──────────────────────────────────────────────────────────────────────────────────────────────────────

fn library(_: &mut Stage) -> Outcome {
    all_is_well()?;
    let mut pages = 16;
    loop {
        let spawn = PROCS.prepare("cases")?;
        spawn.argument("library")?;
        spawn.limit(pages * PAGE_SIZE as u64)?;
        let was_enough = match spawn.start() {
            Err(ProcsFailure::Refused(ProcsError::OutOfMemory)) => false,
            Err(failure) => return Err(failure.into()),
            Ok(process) => {
                let status = PROCS.wait(process)?;
                match (status.state, status.exit_code(), status.fault()) {
                    (State::Exited, Some(COMPLIED), _) => true,
                    // A request was refused, as it should be; or there was no memory for a stack or a page of it.
                    (State::Exited, Some(REFUSED | NO_STACK), _)
                    | (State::Faulted, _, Some(FaultKind::OutOfMemory)) => false,
                    _ => return Err(Failure::new(format!("{pages} pages: {:?} {}", status.state, status.detail))),
                }
            }
        };
        audit()?;
        if was_enough {
            return Ok(());
        }
        check!(pages < 4096);
        pages += 3;
    }
}

/// Exit code of a child without memory for its main thread's stack.
const NO_STACK: u64 = tench::runtime::NO_STACK as u64;
/// Exit code of a child to which a request was refused.
const REFUSED: u64 = 8;

/// Runs the child that requests everything from its library, is refused some of it, and gives it back.
pub fn use_library() -> Result<i32, memory::Error> {
    let mut refused = false;
    for round in 0..3 {
        let before = tench::memory::with_paging(|paging, _| paging.account());
        let mut made = [const { None }; 24];
        for (number, slot) in made.iter_mut().enumerate() {
            *slot = take(number + round);
            refused |= slot.is_none();
        }
        drop(made);
        let after = tench::memory::with_paging(|paging, _| {
            paging.check_invariants();
            paging.account()
        });
        // A refused request leaves nothing behind. (Tables stay, and so do heap regions, with the pages at their ends
        // and around allocations.)
        let kept = after.regions.saturating_sub(before.regions);
        if kept > 2 || after.mappings > before.mappings + 2 + 4 * kept {
            return Ok(1);
        }
    }
    Ok(if refused { REFUSED as i32 } else { COMPLIED as i32 })
}

/// An object that the library provides.
enum Taken {
    Object(#[expect(dead_code, reason = "it is held")] memory::Made<Endpoint>),
    Pages(#[expect(dead_code, reason = "it is held")] Pages),
    Anonymous(#[expect(dead_code, reason = "it is held")] Anonymous),
    Shown(
        #[expect(dead_code, reason = "it is held")] Window,
        #[expect(dead_code, reason = "it is held")] memory::Made<Frame>,
    ),
    Heap(#[expect(dead_code, reason = "it is held")] Vec<u8>),
    Slots(CapAddress, u32),
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Taken::Slots(first, count) = self {
            (first.0..first.0 + *count).for_each(|slot| memory::free_slot(CapAddress(slot)));
        }
    }
}

/// Takes one of them; returns none if it is refused.
fn take(number: usize) -> Option<Taken> {
    let scale = number / 6 % 4;
    Some(match number % 6 {
        0 => Taken::Object(make(0).ok()?),
        1 => Taken::Pages(Pages::with_guard(PAGE_SIZE << (2 * scale)).ok()?),
        2 => {
            let anonymous = Anonymous::new(PAGE_SIZE << (3 * scale)).ok()?;
            memory::make_present(anonymous.address(), anonymous.size().min(8 * PAGE_SIZE)).ok()?;
            Taken::Anonymous(anonymous)
        }
        3 => {
            let bits = 12 + 2 * scale as u32;
            let frame = make::<Frame>(u64::from(bits)).ok()?;
            let window = Window::new(frame.cap(), bits, MapFlags::READ | MapFlags::WRITE).ok()?;
            window.write64(0, number as u64);
            Taken::Shown(window, frame)
        }
        4 => {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(1000 << (2 * scale)).ok()?;
            Taken::Heap(bytes)
        }
        _ => {
            let count = 60 << (scale % 3);
            Taken::Slots(memory::take_slots(count).ok()?, count as u32)
        }
    })
}

// ── Slabs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

fn bundles(_: &mut Stage) -> Outcome {
    let slabs = Slabs::STANDARD;
    let own = process::id();
    let before = MEM.totals()?;
    slabs.set_up(&[18, 16], &[])?;
    let bundle = [Descriptor { kind: Kind::Untyped, size: 12, count: 4 }];
    let grant = || slabs.ask(Lifetime::Dynamic, &bundle, None);
    let objects = || -> Outcome<u64> { Ok(MEM.next_account(own - 1)?.objects) };
    let first = grant()?;
    equal!(objects()?, 4 << 12);
    AUTHORITY.set_quota(own, used(own)? + (8 << 12))?;
    let second = grant()?;
    let refused = grant();
    // A block counts, too.
    let block = MEM.allocate(12, memory::take_slot()?);
    AUTHORITY.set_quota(own, NO_QUOTA)?;
    equal!(refused.map(|_| ()), Err::<(), _>(MemFailure::Refused(MemError::QuotaExceeded)));
    equal!(block.map(|_| ()), Err::<(), _>(MemFailure::Refused(MemError::QuotaExceeded)));
    equal!(slabs.figures()?.objects, 8);
    slabs.free(second.number)?;
    equal!(objects()?, 4 << 12);
    slabs.free(first.number)?;
    equal!(objects()?, 0);
    slabs.take_down()?;
    equal!(MEM.totals()?, before);
    Ok(())
}
