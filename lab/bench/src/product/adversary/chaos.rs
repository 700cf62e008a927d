//! Workloads that do anything at any time: threads deleted in the middle of operations, and system calls with arguments
//! of every kind.

use tench::abi::layout::slot;
use tench::abi::memory::TABLE_ENTRIES;
use tench::abi::object::NODE_BITS;
use tench::abi::{Operation, Tag};
use tench::sys::{
    Cap, CapAddress, CapNode, Error, Frame, Instant, Kind, MapFlags, OWN_CSPACE, PageTable, Placement, Untyped,
};

use super::{Arena, HIGH, LOW, NODE_INDEX};
use crate::bare_threads::{BareThread, Home};

/// Maximum number of ticks that an operation gets before its thread is deleted.
const LIFE: u64 = 6_000;

/// Deletes the thread of a long operation, or what it works on, at one of its preemption points.
pub fn interrupted(arena: &mut Arena) -> Result<(), Error> {
    for round in 0..60 {
        let victim = arena.victim(LOW, Home::OWN)?;
        let memory = arena.make::<Untyped>(25)?;
        let slot = arena.slot();
        let (m, p) = (u64::from(memory.address().0), u64::from(slot.0));
        let cspace = arena.cspace(3)?;
        memory.retype_many(Kind::Notification, 0, 256, Placement::Watermark, cspace, CapAddress::new(1, 0))?;
        memory.retype_many(Kind::Frame, 12, 256, Placement::Watermark, cspace, CapAddress::new(2, 0))?;
        match round % 6 {
            0 => victim.call(Operation::UntypedRetype, &[m, Kind::Frame as u64, 23, 1, u64::MAX, 0, p])?,
            1 => victim.call(Operation::Revoke, &[0, m])?,
            2 => victim.call(Operation::Delete, &[0, u64::from(cspace.address().0)])?,
            3 => victim.call(Operation::UntypedChildren, &[m])?,
            4 => {
                let (frame, table) = (arena.make::<Frame>(21)?, arena.make::<PageTable>(3)?);
                let flags = (MapFlags::READ | MapFlags::EXECUTE).bits();
                let (f, t) = (u64::from(frame.address().0), u64::from(table.address().0));
                victim.call(Operation::FrameMap, &[f, t, 0, TABLE_ENTRIES as u64, 0, flags, p])?;
            }
            _ => victim.call(Operation::ThreadQuery, &[u64::from(victim.thread.address().0)])?,
        }
        let life = arena.random.below(LIFE);
        arena.pause(life)?;
        match round % 4 {
            0 => drop(victim.thread.delete()?),
            1 => drop(memory.revoke()?),
            2 => drop(victim.thread.suspend()),
            _ => arena.pause(LIFE)?,
        }
        arena.pool.revoke()?;
        arena.next_slot = 1;
    }
    Ok(())
}

/// Returns whether a thread may make this system call at random. It must not escape this program's control, so some are
/// left out.
fn is_harmless(operation: Operation) -> bool {
    !matches!(operation, Operation::KernelPowerOff | Operation::KernelPrint | Operation::UpcallReturn)
}

/// Rounds of a workload, and calls in each.
const ROUNDS: usize = 6;
const CALLS: usize = 400;

/// Makes every system call, with every kind of argument, in threads that have only capabilities of their own.
pub fn random(arena: &mut Arena) -> Result<(), Error> {
    for _ in 0..ROUNDS {
        let victims = populate(arena)?;
        for call in 0..CALLS {
            let operation = Operation::ALL[arena.random.index(Operation::ALL.len())];
            if !is_harmless(operation) {
                continue;
            }
            let mut x = [0; 13];
            for (index, register) in x.iter_mut().enumerate() {
                *register = argument(arena, operation, index);
            }
            let victim = victims[call % victims.len()];
            // The thread may be gone, or not be where it can be controlled.
            let _ = victim.thread.suspend();
            let _ = victim.call(operation, &x);
            if call % 16 == 0 {
                arena.pause(1_000)?;
            }
        }
        arena.pool.revoke()?;
        arena.next_slot = 1;
    }
    Ok(())
}

/// First of the slots that the threads see; those below are this program's.
const FIRST: u32 = 1;
/// Number of these slots.
const SLOTS: u64 = 120;

/// Makes threads in a CSpace of their own, with objects of every kind in it.
fn populate(arena: &mut Arena) -> Result<[BareThread; 3], Error> {
    let root = arena.make::<CapNode>(u64::from(NODE_BITS))?;
    let node = arena.make::<CapNode>(u64::from(NODE_BITS))?;
    root.install_node(NODE_INDEX, node)?;
    let buffers = [0, 1, 2].map(|buffer: usize| arena.buffers[buffer].frame());
    let victims = [0, 1, 2].map(|i: usize| -> Result<BareThread, Error> {
        let home = Home { cspace: root, buffer: Some((buffers[i], 0)), table: Cap::new(slot::VSPACE) };
        arena.victim(if i == 0 { LOW } else { HIGH }, home)
    });
    let [a, b, c] = victims;
    let victims = [a?, b?, c?];
    let kinds = [
        (Kind::Untyped, 20),
        (Kind::Untyped, 16),
        (Kind::Untyped, 14),
        (Kind::Frame, 12),
        (Kind::Frame, 21),
        (Kind::CapNode, 8),
        (Kind::CapNode, 3),
        (Kind::PageTable, 0),
        (Kind::PageTable, 1),
        (Kind::PageTable, 2),
        (Kind::PageTable, 3),
        (Kind::Thread, 0),
        (Kind::SchedulingContext, 0),
        (Kind::Endpoint, 0),
        (Kind::Endpoint, 0),
        (Kind::Reply, 0),
        (Kind::Reply, 0),
        (Kind::Notification, 0),
        (Kind::Notification, 0),
    ];
    for (index, (kind, size)) in kinds.into_iter().enumerate() {
        let address = CapAddress::new(NODE_INDEX, FIRST + index as u32);
        arena.pool.retype_many(kind, size, 1, Placement::Watermark, root, address)?;
    }
    for (index, victim) in victims.iter().enumerate() {
        let address = CapAddress::new(NODE_INDEX, 40 + index as u32);
        root.copy_from(address, OWN_CSPACE, victim.thread.address())?;
    }
    Ok(victims)
}

/// Returns a register of a random call: mostly a meaningful one.
fn argument(arena: &mut Arena, operation: Operation, index: usize) -> u64 {
    let random = &mut arena.random;
    let cap = u64::from(NODE_INDEX) << NODE_BITS | (u64::from(FIRST) + random.below(SLOTS / 4));
    let empty = u64::from(NODE_INDEX) << NODE_BITS | (60 + random.below(SLOTS / 2));
    match (operation, index) {
        (_, 12) => Instant::now().after(random.below(2_000)).ticks(),
        (Operation::UntypedRetype, 1) => random.below(13),
        (Operation::UntypedRetype, 2) => [0, 1, 3, 4, 8, 12, 14][random.index(7)],
        (Operation::UntypedRetype, 3) => [1, 1, 2, 5, 40, 256][random.index(6)],
        (Operation::UntypedRetype, 4) => [u64::MAX, u64::MAX, random.below(64) << 12][random.index(3)],
        (Operation::UntypedRetype, 5)
        | (
            Operation::Delete | Operation::DeletePart | Operation::Revoke | Operation::RevokePart | Operation::Identify,
            0,
        ) => 0,
        (Operation::UntypedRetype, 6) | (Operation::Copy | Operation::Mint | Operation::Move, 3) => empty,
        (Operation::Copy | Operation::Mint | Operation::Move, 0 | 2) => 0,
        (Operation::FrameScatter, 2) => empty,
        (Operation::MappingSet, 1) | (Operation::MappingClone, 2 | 3) => random.below(300),
        (Operation::MappingSet, 2) => random.below(34),
        (Operation::MappingSet, 3) => random.below(3) << 12,
        (Operation::MappingSet, 4) | (Operation::MappingClone, 4) => random.below(8),
        (Operation::MappingClone, 5) => random.below(2),
        (Operation::FrameMap, 2 | 3) => random.below(300),
        (Operation::FrameMap, 4) => random.below(3) << 12,
        (Operation::FrameMap, 5) | (Operation::MappingProtect, 1) => random.below(32),
        (Operation::FrameMap, 6) => empty,
        (Operation::Call | Operation::Send | Operation::TrySend | Operation::Reply | Operation::ReplyReceive, 1) => {
            let flags = [0, Tag::DEADLINE, Tag::DEADLINE | Tag::REPLY][random.index(3)];
            Tag::new(random.below(4), random.index(66)).with_caps(random.index(5)).0 | flags
        }
        (Operation::Receive | Operation::TryReceive, 1) => [Tag::DEADLINE, Tag::REPLY][random.index(2)],
        (_, 0) => cap,
        _ => match random.below(8) {
            0 => random.next(),
            1 | 2 => random.below(4),
            3 => empty,
            4 => u64::MAX - random.below(3),
            _ => cap,
        },
    }
}
