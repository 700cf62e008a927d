//! A mapping that is replaced while its rights are being changed. The new one has the same entries and shows the same
//! memory, but as part of another frame.
//!
//! ```text
//!   untyped   ├──────────────┬──────────────┤ another process's
//!   before    ├──────── frame ──────────────┤      the mapping shows its second half
//!   after                    ├─── frame ────┤      the mapping shows all of it
//! ```
//! The offset in its frame that was known of the first mapping would lie beyond the end of the second's frame.
#![cfg(feature = "preemption")]

use tench_abi::memory::MapFlags;
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::machine::{LARGE_DEVICE, RAM};
use tench_arch_host::weave::{Call, End, Policy, Weave};

use crate::world::{World, slots as p};

const READ: u64 = MapFlags::READ.bits();
const WRITE: u64 = MapFlags::READ.union(MapFlags::WRITE).bits();
const UNCACHED: u64 = WRITE | MapFlags::UNCACHED.bits();

/// Returns a world whose first actor changes the rights of a mapping, of the second half of a frame of 2^`bits` bytes,
/// to `flags`. The second actor replaces that mapping. The third makes the same change.
fn world(memory: u64, bits: u64, flags: u64) -> Weave {
    let World { mut machine, actors } = World::new(0, 3);
    let (half, pages) = (1 << (bits - 1), 1 << (bits - 13));
    let m = &mut machine;
    m.retype(memory, Kind::Untyped, bits, 1, p::LENDER).ok();
    m.retype(p::LENDER, Kind::Frame, bits, 1, p::FRAME).ok();
    m.retype(p::POOL, Kind::PageTable, 3, 1, p::TABLE).ok();
    m.call(Operation::FrameMap, &[p::FRAME, p::TABLE, 0, pages, half, WRITE, p::MAPPING]).ok();
    let protect = vec![Call::new(Operation::MappingProtect, &[p::MAPPING, flags])];
    let replace = vec![
        Call::new(Operation::Revoke, &[0, p::LENDER]),
        Call::new(Operation::UntypedRetype, &[p::LENDER, Kind::Frame as u64, bits - 1, 1, half, 0, p::FRAME]),
        Call::new(Operation::FrameMap, &[p::FRAME, p::TABLE, 0, pages, 0, WRITE, p::MAPPING]),
    ];
    Weave::new(machine, actors.into_iter().zip([protect.clone(), replace, protect]).collect())
}

/// Returns a policy: the first actor runs to its preemption point number `at`, the second finishes, the third, if it
/// takes part, runs to its first preemption point, and the first continues.
fn policy(at: usize, with_third: bool) -> Policy {
    let mut turns = if with_third { vec![0, 1, 2, 0] } else { vec![0, 1, 0] };
    let mut has_begun = false;
    Box::new(move |moment| {
        let is_over = match (turns[0], moment.point) {
            _ if !has_begun => false,
            (0, Some((0, point))) => turns.len() > 1 && point >= at,
            (2, point) => point.is_some_and(|(who, _)| who == 2),
            (who, _) => !moment.candidates.contains(&who),
        };
        has_begun = true;
        if is_over && turns.len() > 1 {
            turns.remove(0);
        }
        Some(turns[0]).filter(|who| moment.candidates.contains(who))
    })
}

/// Returns the physical address that the mapping shows first.
fn memory(run: &mut Weave) -> u64 {
    run.machine.physical(p::MAPPING)
}

/// Checks that the first actor failed, that the second made all its calls, and that the mapping shows the memory for
/// which it was made, also after one more change.
fn judge(run: &mut Weave, before: u64) {
    let (ends, trace) = (run.ends(), run.trace());
    let is_replaced = ends[1].iter().all(|end| matches!(end, End::Returned(result) if result.error().is_none()));
    assert!(is_replaced && ends[1].len() == 3, "{ends:?}: {trace}");
    assert_eq!(memory(run), before, "{trace}");
    assert!(matches!(ends[0][..], [End::Returned(result)] if result.err() == Error::Aborted), "{ends:?}: {trace}");
    run.machine.call(Operation::MappingProtect, &[p::MAPPING, READ]).ok();
    run.machine.check();
}

#[test]
fn while_caches_are_cleaned() {
    for at in 1.. {
        let mut run = world(RAM, 18, UNCACHED);
        let before = memory(&mut run);
        run.run(policy(at, false));
        if run.points()[0] < at {
            assert!(at > 3, "few preemption points were passed: {at}");
            return;
        }
        judge(&mut run, before);
    }
}

#[test]
fn while_entries_are_written_and_somebody_else_writes_those_of_the_new_one() {
    let mut run = world(LARGE_DEVICE, 20, READ);
    let before = memory(&mut run);
    run.run(policy(1, true));
    judge(&mut run, before);
}
