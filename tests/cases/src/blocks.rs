//! Tests of the memory server as its clients see it.

use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::abi::memory::PAGE_SIZE;
use tench::abi::power::Client;
use tench::mem::protocol::{Error as MemError, MAX_EXTENTS, MIN_BLOCK_BITS};
use tench::mem::slabs::Slabs;
use tench::mem::{Extent, Failure as MemFailure, Mem, Within};
use tench::procs::pid;
use tench::procs::protocol::{Error as ProcsError, State};
use tench::procs::{Failure as ProcsFailure, Procs};
use tench::sys::{Cap, CapAddress, Endpoint, Frame, Message, Notification, Placement, Untyped};
use tench::{process, thread};
use tench_protocol::Rejection;
use tench_random::Random;

use crate::case::{Case, Failure, Outcome};
use crate::stage::{Stage, is_empty, physical_address};

pub const CASES: &[Case] = &[
    Case::new("BLK0001", "blocks are aligned, distinct and empty", blocks),
    Case::new("BLK0002", "freeing a block deletes what was made of it", freed),
    Case::new("BLK0003", "a block lies where it is wanted, or there is none", within),
    Case::new("BLK0004", "of equal blocks the one with the lowest address is taken", lowest),
    Case::new("BLK0005", "what cannot be had or was never given is refused, and changes nothing", refused),
    Case::new("BLK0006", "a divided block is freed in any order of its parts", divided),
    Case::new("BLK0007", "a block is not divided where something lies across", across),
    Case::new("BLK0008", "every byte is described once, and the sums agree", described),
    Case::new("BLK0009", "a process that ends gives everything back", ended),
    Case::new("BLK0010", "a process killed at any time gives everything back", killed),
    Case::new("BLK0011", "too little memory at any step of a start is an error, and nothing is lost", too_little),
    Case::new("BLK0012", "a limit holds, for children too, and cannot be raised beyond one's own", limits),
    Case::new("BLK0013", "requests of random words change nothing for others", nonsense),
];

const MEM: Mem = Mem::STANDARD;
const PROCS: Procs = Procs::STANDARD;

/// Fails unless a request is refused for this reason.
#[track_caller]
fn is_refused<T>(result: Result<T, MemFailure>, reason: MemError) -> Outcome {
    match result {
        Err(MemFailure::Refused(found)) if found == reason => Ok(()),
        Err(other) => Err(Failure::new(alloc::format!("refused with: {other}"))),
        Ok(_) => Err(Failure::new("not refused")),
    }
}

/// Fails unless the request is refused for lack of the capability without a badge.
fn needs_authority<T>(result: Result<T, MemFailure>) -> Outcome {
    check!(matches!(result, Err(MemFailure::Rejected(Rejection::NotAllowed))));
    Ok(())
}

fn blocks(stage: &mut Stage) -> Outcome {
    let before = MEM.totals()?;
    let mut given = Vec::new();
    for bits in (MIN_BLOCK_BITS..20).chain([0, 4, 11]) {
        let slot = stage.slot();
        let block = MEM.allocate(bits, slot)?;
        equal!(block.size_bits, bits.max(MIN_BLOCK_BITS));
        let address = physical_address(block.untyped)?;
        check!(address.is_multiple_of(1 << block.size_bits));
        let account = block.untyped.query()?;
        equal!((account.size_bits, account.watermark), (block.size_bits, 0));
        given.push((address, block));
    }
    given.sort_by_key(|(address, _)| *address);
    check!(given.is_sorted_by(|(one, block), (next, _)| one + (1 << block.size_bits) <= *next));
    for (_, block) in given {
        equal!(MEM.free(block.number)?, 1 << block.size_bits);
        check!(is_empty(block.untyped));
    }
    equal!(MEM.totals()?, before);
    Ok(())
}

fn freed(stage: &mut Stage) -> Outcome {
    let block = MEM.allocate(14, stage.slot())?;
    let (frame, elsewhere) = (stage.slot(), stage.slot());
    let frame: Cap<Frame> = block.untyped.retype(12, frame)?;
    let copy = frame.copy_to(elsewhere)?;
    let slot = stage.slot();
    let inner: Cap<Untyped> = block.untyped.retype(12, slot)?;
    let slot = stage.slot();
    let notification: Cap<Notification> = inner.retype(0, slot)?;
    MEM.free(block.number)?;
    check!(is_empty(block.untyped) && is_empty(frame) && is_empty(copy) && is_empty(inner) && is_empty(notification));
    is_refused(MEM.free(block.number), MemError::NoSuchBlock)
}

fn within(stage: &mut Stage) -> Outcome {
    let far = MEM.allocate(22, stage.slot())?;
    let base = physical_address(far.untyped)?;
    MEM.free(far.number)?;
    let wanted = Within { align_bits: 14, base: base + 4096, limit: base + (1 << 15) };
    let block = MEM.allocate_within(12, wanted, stage.slot())?;
    equal!(physical_address(block.untyped)?, base + (1 << 14));
    // The second request is refused: there is no other place of this kind.
    is_refused(MEM.allocate_within(12, wanted, stage.slot()), MemError::OutOfMemory)?;
    is_refused(MEM.allocate_within(12, Within { align_bits: 64, ..wanted }, stage.slot()), MemError::BadSize)?;
    let nowhere = Within { align_bits: 0, base: 0, limit: 4096 };
    is_refused(MEM.allocate_within(12, nowhere, stage.slot()), MemError::OutOfMemory)?;
    MEM.free(block.number)?;
    Ok(())
}

fn lowest(stage: &mut Stage) -> Outcome {
    let large = MEM.allocate(16, stage.slot())?;
    let base = physical_address(large.untyped)?;
    MEM.free(large.number)?;
    let one = Within { align_bits: 0, base, limit: base + (1 << 16) };
    let mut pages = Vec::new();
    for _ in 0..4 {
        let page = MEM.allocate_within(12, one, stage.slot())?;
        pages.push((physical_address(page.untyped)?, page));
    }
    check!(pages.is_sorted_by_key(|(address, _)| *address));
    for (_, page) in pages {
        MEM.free(page.number)?;
    }
    Ok(())
}

fn refused(stage: &mut Stage) -> Outcome {
    let before = MEM.totals()?;
    is_refused(MEM.allocate(48, stage.slot()), MemError::BadSize)?;
    is_refused(MEM.allocate(64, stage.slot()), MemError::BadSize)?;
    is_refused(MEM.allocate(47, stage.slot()), MemError::OutOfMemory)?;
    is_refused(MEM.free(0), MemError::NoSuchBlock)?;
    is_refused(MEM.free(u16::MAX), MemError::NoSuchBlock)?;
    // A block that belongs to the process server.
    let own = process::id();
    let other = (0..u16::MAX).find(|number| MEM.find(pid::PROCS, *number).is_ok());
    let other = other.ok_or_else(|| Failure::new("the process server has no memory"))?;
    is_refused(MEM.free(other), MemError::NoSuchBlock)?;
    is_refused(MEM.divide(other), MemError::NoSuchBlock)?;
    needs_authority(MEM.set_quota(own, 0))?;
    needs_authority(MEM.close_account(own))?;
    needs_authority(MEM.allocate_for(Client::alone(own + 1), 12, stage.slot()))?;
    // A block is found by its address and its number, and nowhere else.
    let block = MEM.allocate(13, stage.slot())?;
    let address = physical_address(block.untyped)?;
    equal!(MEM.find(own, block.number)?, Extent { address, size: 1 << 13, account: Some(own) });
    equal!(MEM.number(address)?, block.number);
    is_refused(MEM.number(address + 4096), MemError::NoSuchBlock)?;
    is_refused(MEM.number(address + 1), MemError::NoSuchBlock)?;
    MEM.free(block.number)?;
    is_refused(MEM.number(address), MemError::NoSuchBlock)?;
    is_refused(MEM.find(own, block.number), MemError::NoSuchBlock)?;
    equal!(MEM.totals()?, before);
    Ok(())
}

/// Divides a block and its untyped. Returns the upper half's untyped and number.
fn halve(stage: &mut Stage, untyped: Cap<Untyped>, number: u16) -> Outcome<(Cap<Untyped>, u16)> {
    let upper = untyped.split(stage.slot())?;
    let half = MEM.divide(number)?;
    equal!(half.size_bits, upper.query()?.size_bits);
    Ok((upper, half.number))
}

fn divided(stage: &mut Stage) -> Outcome {
    let before = MEM.totals()?;
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        let block = MEM.allocate(14, stage.slot())?;
        // An object in the first page stays in use throughout.
        let slot = stage.slot();
        let notification: Cap<Notification> = block.untyped.retype(0, slot)?;
        let (upper, third) = halve(stage, block.untyped, block.number)?;
        let (_, second) = halve(stage, block.untyped, block.number)?;
        let (_, fourth) = halve(stage, upper, third)?;
        let pages = [block.number, second, third, fourth];
        is_refused(MEM.divide(block.number), MemError::BadSize)?;
        for page in order {
            notification.signal()?;
            if page != 0 {
                equal!(MEM.free(pages[page])?, 4096);
            }
        }
        MEM.free(block.number)?;
        check!(is_empty(notification));
        equal!(MEM.totals()?, before);
    }
    Ok(())
}

fn across(stage: &mut Stage) -> Outcome {
    let block = MEM.allocate(14, stage.slot())?;
    // The given untyped straddles the middle.
    is_refused(MEM.divide(block.number), MemError::NotDivided)?;
    // A frame of the same size straddles it too.
    let slot = stage.slot();
    let frame: Cap<Frame> = block.untyped.retype(14, slot)?;
    check!(block.untyped.split(stage.slot()).is_err());
    block.untyped.delete()?;
    is_refused(MEM.divide(block.number), MemError::NotDivided)?;
    frame.delete()?;
    let upper = MEM.divide(block.number)?;
    equal!(upper.size_bits, 13);
    MEM.free(block.number)?;
    MEM.free(upper.number)?;
    Ok(())
}

/// Returns all extents.
fn extents() -> Outcome<Vec<Extent>> {
    let mut all: Vec<Extent> = Vec::new();
    loop {
        let mut found = [Extent::default(); MAX_EXTENTS];
        let from = all.last().map_or(0, |last| last.address + last.size);
        let count = MEM.extents(from, &mut found)?;
        if count == 0 {
            return Ok(all);
        }
        all.extend(&found[..count]);
    }
}

fn described(_: &mut Stage) -> Outcome {
    // The list itself needs memory, which is taken before anything is compared.
    let _ = extents()?;
    let all = extents()?;
    let totals = MEM.totals()?;
    check!(all.is_sorted_by(|a, b| a.address + a.size <= b.address));
    let sum = |free: bool| all.iter().filter(move |extent| extent.account.is_none() == free).map(|extent| extent.size);
    equal!(sum(true).sum::<u64>(), totals.free);
    equal!(sum(true).max(), Some(totals.largest));
    equal!(sum(true).sum::<u64>() + sum(false).sum::<u64>(), totals.total);
    let mut after = 0;
    while let Ok(account) = MEM.next_account(after) {
        after = account.process;
        let used = all.iter().filter(|extent| extent.account == Some(account.process)).map(|extent| extent.size);
        equal!((account.process, used.sum::<u64>()), (account.process, account.used));
    }
    Ok(())
}

/// Returns what must be as before when a process has ended: the free bytes, plus those on the accounts of the process
/// server, which remembers each ended process, and of this process.
pub fn free_memory() -> Outcome<u64> {
    let mut bytes = MEM.totals()?.free;
    for process in [pid::PROCS, process::id()] {
        let account = MEM.next_account(process - 1)?;
        equal!(account.process, process);
        bytes += account.used;
    }
    Ok(bytes)
}

/// Starts `hello` and waits for its end.
fn greet() -> Outcome<State> {
    let process = PROCS.spawn("hello", &[])?;
    Ok(PROCS.wait(process)?.state)
}

fn ended(_: &mut Stage) -> Outcome {
    // The first time, the servers may take memory that they keep.
    greet()?;
    let before = free_memory()?;
    for _ in 0..20 {
        equal!(greet()?, State::Exited);
        equal!(free_memory()?, before);
    }
    Ok(())
}

/// Starts a process that takes as much memory as it can get, which is 4 MiB.
fn hog() -> Outcome<u64> {
    let spawn = PROCS.prepare("cases")?;
    spawn.argument("hog")?;
    spawn.limit(4 << 20)?;
    Ok(spawn.start()?)
}

fn killed(_: &mut Stage) -> Outcome {
    // The first time, the servers may take memory that they keep.
    PROCS.wait(hog()?)?;
    let before = free_memory()?;
    for steps in 0..60 {
        let process = hog()?;
        for _ in 0..steps {
            thread::yield_now();
        }
        tench::time::sleep(core::time::Duration::from_micros(steps * 7));
        match PROCS.kill(process) {
            // The process may have ended by then.
            Ok(()) | Err(ProcsFailure::Refused(ProcsError::WrongState)) => {}
            Err(failure) => return Err(failure.into()),
        }
        let _ = PROCS.wait(process)?;
        equal!((steps, free_memory()?), (steps, before));
    }
    Ok(())
}

fn too_little(_: &mut Stage) -> Outcome {
    greet()?;
    let before = free_memory()?;
    let mut pages = 0;
    loop {
        let spawn = PROCS.prepare("hello")?;
        spawn.limit(pages * PAGE_SIZE as u64)?;
        let state = match spawn.start() {
            Ok(process) => PROCS.wait(process)?.state,
            Err(ProcsFailure::Refused(ProcsError::OutOfMemory)) => State::Killed,
            Err(failure) => return Err(failure.into()),
        };
        equal!((pages, free_memory()?), (pages, before));
        if state == State::Exited && pages > 256 {
            return Ok(());
        }
        check!(pages < 4096);
        pages += if pages < 256 { 1 } else { 64 };
    }
}

fn limits(_: &mut Stage) -> Outcome {
    // Its status is the number of KiB at which it had to stop, or 0 if it could give itself or a child more.
    let status = PROCS.wait(hog()?)?;
    equal!(status.state, State::Exited);
    check!((512..=4096).contains(&status.detail));
    Ok(())
}

fn nonsense(stage: &mut Stage) -> Outcome {
    let before = MEM.totals()?;
    let endpoint = Cap::<Endpoint>::new(slot::MEM);
    let mut random = Random::new(1);
    let mut next = || random.next() >> 20;
    for round in 0..3000 {
        let label = match round % 4 {
            0 => next() % 64,
            1 => next(),
            // Existing methods and some that do not exist. A successful allocation or slab set-up would change
            // something, so these are excluded.
            2 => Mem::GIVE + 1 + next() % 14,
            _ => Slabs::SET_UP + 1 + next() % 14,
        };
        let words: Vec<u64> =
            (0..next() % 64).map(|_| if next() % 2 == 0 { next() % 64 } else { next() << 12 }).collect();
        let mut message = Message::with_words(label & 0xffff_ffff_ffff, &words);
        if next() % 8 == 0 {
            message.copy_cap(Cap::<Endpoint>::new(slot::CONSOLE));
        }
        let _ = endpoint.call(&message)?;
    }
    equal!(MEM.totals()?, before);
    let slot: CapAddress = stage.slot();
    let block = MEM.allocate(12, slot)?;
    // The object made at an offset lies where it should.
    let made = stage.slot();
    block.untyped.retype_many(tench::sys::Kind::Frame, 12, 1, Placement::At(0), tench::sys::OWN_CSPACE, made)?;
    MEM.free(block.number)?;
    Ok(())
}
