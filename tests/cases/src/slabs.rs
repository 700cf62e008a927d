//! Tests of the memory server's slabs.

use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::mem::protocol::Error as MemError;
use tench::mem::slabs::{Descriptor, Lifetime, Slabs};
use tench::mem::{Failure as MemFailure, Mem};
use tench::procs::Procs;
use tench::sys::{Cap, CapAddress, CapNode, Endpoint, Frame, Kind, Notification, OWN_CSPACE, Untyped};
use tench_random::Random;

use crate::case::{Case, Failure, Outcome};
use crate::stage::{Stage, identify};

pub const CASES: &[Case] = &[
    Case::new("SLB0001", "after every step of a random workload ledger and kernel agree", random),
    Case::new("SLB0002", "a bundle is granted whole or not at all", whole),
    Case::new("SLB0003", "the objects of a bundle can be used, until it is freed", used),
    Case::new("SLB0004", "objects go where their lifetime says, and slabs reset when they are empty", lifetimes),
    Case::new("SLB0005", "mistakes are refused and change nothing", mistakes),
    Case::new("SLB0006", "a process that ends gives its bundles back", ended),
];

const SLABS: Slabs = Slabs::STANDARD;
/// Slabs of the cases, by log2 of their sizes.
const SIZES: &[u8] = &[16, 15, 15, 14, 13, 12, 12, 10];
const STATICS: &[u8] = &[12];

#[track_caller]
fn is_refused<T>(result: Result<T, MemFailure>, reason: MemError) -> Outcome {
    match result {
        Err(MemFailure::Refused(found)) if found == reason => Ok(()),
        Err(other) => Err(Failure::new(alloc::format!("refused with: {other}"))),
        Ok(_) => Err(Failure::new("not refused")),
    }
}

/// Sets slabs up for a case, and checks that their memory comes back.
fn with_slabs(play: impl FnOnce() -> Outcome) -> Outcome {
    // The first time, the server takes slots that it keeps.
    SLABS.set_up(SIZES, STATICS)?;
    SLABS.take_down()?;
    let before = Mem::STANDARD.totals()?.free;
    equal!(SLABS.set_up(SIZES, STATICS)?, (SIZES.len() + STATICS.len()) as u64);
    let outcome = play();
    if outcome.is_ok() {
        SLABS.take_down()?;
        // A node of slots stays until half a node more is free besides; only that may be missing.
        let after = Mem::STANDARD.totals()?.free;
        check!(after <= before && before - after <= 16 << 10);
    }
    outcome
}

const fn untyped(bits: u32, count: u32) -> Descriptor {
    Descriptor { kind: Kind::Untyped, size: bits, count }
}

/// Compares all slabs with the kernel. Returns the number of live objects.
fn agree(step: u64) -> Outcome<u64> {
    let (_, lifted) = SLABS.policy()?;
    let mut objects = 0;
    for number in 0..(SIZES.len() + STATICS.len()) as u64 {
        let (ledger, kernel) = (SLABS.ledger(number)?, SLABS.kernel(number)?);
        equal!((step, number, ledger.objects, ledger.live), (step, number, kernel.objects, kernel.live));
        if !lifted {
            equal!((step, number, ledger.watermark), (step, number, kernel.watermark));
            equal!(ledger.watermark, ledger.live + ledger.align_loss + ledger.watermark_loss);
        }
        objects += ledger.objects;
    }
    equal!(objects, SLABS.figures()?.objects);
    Ok(objects)
}

fn random(_: &mut Stage) -> Outcome {
    let mut random = Random::new(7);
    let mut below = |limit| random.below(limit);
    with_slabs(|| {
        // Each policy, with the watermark rule and without.
        for (code, lifted) in (0..8).flat_map(|code| [(code, false), (code, true)]) {
            SLABS.set_policy(code, lifted)?;
            let mut bundles = Vec::new();
            for step in 0..60 {
                if below(100) < 40 && !bundles.is_empty() {
                    SLABS.free(bundles.swap_remove(below(bundles.len() as u64) as usize))?;
                } else {
                    let one = |bits: u64, count: u64| untyped(4 + bits as u32, 1 + count as u32);
                    let bundle = [one(below(9), below(3)), one(below(9), below(3))];
                    match SLABS.ask(Lifetime::Dynamic, &bundle[..1 + below(2) as usize], None) {
                        Ok(granted) => bundles.push(granted.number),
                        Err(MemFailure::Refused(MemError::OutOfMemory)) => {}
                        Err(failure) => return Err(failure.into()),
                    }
                }
                agree(code * 1000 + step)?;
            }
            for bundle in bundles {
                SLABS.free(bundle)?;
            }
            equal!(agree(code)?, 0);
        }
        Ok(())
    })
}

fn whole(_: &mut Stage) -> Outcome {
    with_slabs(|| {
        for code in 0..8 {
            SLABS.set_policy(code, false)?;
            // There is room for the first, and for the second alone, but not for both.
            let both = [untyped(16, 1), untyped(16, 1)];
            is_refused(SLABS.ask(Lifetime::Dynamic, &both, None), MemError::OutOfMemory)?;
            equal!(agree(code)?, 0);
            equal!(SLABS.figures()?.out_of_memory, 1);
            let one = SLABS.ask(Lifetime::Dynamic, &both[..1], None)?;
            SLABS.free(one.number)?;
        }
        Ok(())
    })
}

fn used(stage: &mut Stage) -> Outcome {
    let first = stage.slots(4);
    with_slabs(|| {
        let kind = |kind, size, count| Descriptor { kind, size, count };
        let bundle = [kind(Kind::Frame, 12, 1), kind(Kind::Untyped, 8, 2), kind(Kind::Notification, 0, 1)];
        let destination = Some((Cap::<CapNode>::new(slot::CSPACE), first));
        let granted = SLABS.ask(Lifetime::Dynamic, &bundle, destination)?;
        let at = |number| CapAddress(first.0 + number);
        let kinds = [at(0), at(1), at(2), at(3)].map(|place| identify(place).map(|found| found.kind));
        equal!(kinds, [Ok(Kind::Frame), Ok(Kind::Untyped), Ok(Kind::Untyped), Ok(Kind::Notification)]);
        Cap::<Notification>::new(at(3)).signal()?;
        // Objects made of it and remote capabilities go with it.
        let (made, copy) = (stage.slot(), stage.slot());
        let endpoint: Cap<Endpoint> = Cap::<Untyped>::new(at(1)).retype(0, made)?;
        let frame = Cap::<Frame>::new(at(0)).copy_to(copy)?;
        agree(0)?;
        SLABS.free(granted.number)?;
        for gone in [at(0), at(1), at(2), at(3), endpoint.address(), frame.address()] {
            equal!(identify(gone).map(|found| found.kind), Ok(Kind::Null));
        }
        // The slots are in use: the bundle is not granted.
        let occupied = Some((Cap::<CapNode>::new(slot::CSPACE), slot::CSPACE));
        is_refused(SLABS.ask(Lifetime::Dynamic, &bundle, occupied), MemError::NoSuchSlot)?;
        equal!(agree(1)?, 0);
        Ok(())
    })
}

fn lifetimes(_: &mut Stage) -> Outcome {
    with_slabs(|| {
        let last = (SIZES.len() + STATICS.len() - 1) as u64;
        let stays = SLABS.ask(Lifetime::Static, &[untyped(4, 3)], None)?;
        equal!((SLABS.ledger(last)?.objects, SLABS.ledger(last)?.live), (3, 48));
        let goes = SLABS.ask(Lifetime::Dynamic, &[untyped(4, 3)], None)?;
        equal!(SLABS.ledger(last)?.objects, 3);
        equal!(SLABS.free(goes.number)?.resets, 1);
        is_refused(SLABS.ask(Lifetime::Static, &[untyped(13, 1)], None), MemError::OutOfMemory)?;
        is_refused(SLABS.take_down(), MemError::SlabsInUse)?;
        equal!(SLABS.free(stays.number)?.resets, 2);
        equal!(SLABS.ledger(last)?.watermark, 0);
        Ok(())
    })
}

fn mistakes(stage: &mut Stage) -> Outcome {
    is_refused(SLABS.figures(), MemError::NoSlabs)?;
    is_refused(SLABS.set_up(&[], &[]), MemError::BadSize)?;
    is_refused(SLABS.set_up(&[31], &[]), MemError::BadSize)?;
    is_refused(SLABS.set_up(&[3], &[]), MemError::BadSize)?;
    with_slabs(|| {
        is_refused(SLABS.set_up(SIZES, &[]), MemError::SlabsInUse)?;
        for bundle in [
            &[][..],
            &[untyped(4, 0)],
            &[untyped(4, 257)],
            &[untyped(4, 200), untyped(4, 200)],
            &[untyped(3, 1)],
            &[Descriptor { kind: Kind::Mapping, size: 0, count: 1 }],
        ] {
            is_refused(SLABS.ask(Lifetime::Dynamic, bundle, None), MemError::BadSize)?;
        }
        is_refused(SLABS.free(0), MemError::NoSuchBundle)?;
        is_refused(SLABS.ledger(99), MemError::NoSuchSlab)?;
        is_refused(SLABS.kernel(99), MemError::NoSuchSlab)?;
        is_refused(SLABS.set_policy(99, false), MemError::NoSuchPolicy)?;
        let one = SLABS.ask(Lifetime::Dynamic, &[untyped(4, 1)], None)?;
        is_refused(SLABS.set_policy(0, true), MemError::SlabsInUse)?;
        SLABS.free(one.number)?;
        is_refused(SLABS.free(one.number), MemError::NoSuchBundle)?;
        equal!(agree(0)?, 0);
        let _ = stage;
        Ok(())
    })
}

fn ended(_: &mut Stage) -> Outcome {
    with_slabs(|| {
        let spawn = Procs::STANDARD.prepare("cases")?;
        spawn.argument("bundle")?;
        let process = spawn.start()?;
        // The child's exit code is the number of objects that it left behind.
        equal!(Procs::STANDARD.wait(process)?.detail, 5);
        equal!(agree(0)?, 0);
        Ok(())
    })
}

/// Runs the child of the last case: it takes a bundle, and ends.
pub fn leave_a_bundle() -> i32 {
    let bundle = [untyped(8, 4), Descriptor { kind: Kind::Frame, size: 12, count: 1 }];
    let Ok(first) = tench::memory::take_slots(5) else { return -1 };
    let destination = (Cap::<CapNode>::new(slot::CSPACE), first);
    match SLABS.ask(Lifetime::Dynamic, &bundle, Some(destination)) {
        Ok(_) => (0..5).filter(|number| is_object(CapAddress(first.0 + number))).count() as i32,
        _ => -1,
    }
}

/// Returns whether something lies in a slot.
fn is_object(slot: CapAddress) -> bool {
    OWN_CSPACE.identify_at(slot).is_ok_and(|found| found.kind != Kind::Null)
}
