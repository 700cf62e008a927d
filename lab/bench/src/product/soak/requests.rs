//! Clients of the soak test that make requests of servers: for blocks, bundles, names and processes.

use tench::abi::layout::slot;
use tench::mem::protocol::{Error as MemError, Granted};
use tench::mem::slabs::{Descriptor, Lifetime, Slabs};
use tench::mem::{Block, Failure as MemFailure, Mem, Within};
use tench::names::Names;
use tench::names::protocol::Error as NamesError;
use tench::procs::Procs;
use tench::procs::protocol::Error as ProcsError;
use tench::sys::{Cap, CapAddress, CapNode, Endpoint, Frame, Kind, OWN_CSPACE, Placement};
use tench::{memory, process};
use tench_protocol::{Failure, Rejection};
use tench_random::Random;

use super::client::{self, KINDS, Outcome, is_short, made};

const MEM: Mem = Mem::STANDARD;
const SLABS: Slabs = Slabs::STANDARD;
const PROCS: Procs = Procs::STANDARD;
/// Maximum number of a client's blocks.
const BLOCKS: usize = 48;
/// Log2 of the largest requested block: more than the machine has.
const MAX_BITS: u32 = 31;
/// Maximum number of a client's bundles.
const BUNDLES: usize = 24;
/// Maximum number of a client's names.
const NAMES: usize = 6;
/// Maximum number of a client's processes.
const CHILDREN: usize = 4;

// ── Blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Allocates a block; returns none if memory is short.
fn allocate(bits: u32, within: Within) -> Outcome<Option<Block>> {
    let Some(slot) = made(memory::take_slot(), "no slot")? else { return Ok(None) };
    match MEM.allocate_within(bits, within, slot) {
        Ok(block) if block.size_bits >= bits => Ok(Some(block)),
        Ok(_) => Err("a block that was not asked for"),
        Err(failure) if is_short(&failure) => {
            memory::free_slot(slot);
            Ok(None)
        }
        Err(_) => Err("a block was refused for another reason than memory"),
    }
}

/// Frees a block.
fn free(block: &Block) -> Outcome {
    if MEM.free(block.number) != Ok(1 << block.size_bits) {
        return Err("a block was not freed");
    }
    if !OWN_CSPACE.identify_at(block.untyped.address()).is_ok_and(|found| found.kind == Kind::Null) {
        return Err("a block that was freed is still there");
    }
    memory::free_slot(block.untyped.address());
    Ok(())
}

/// Divides a block, and returns its upper half, or none if there was not enough memory.
fn divide(block: &mut Block) -> Outcome<Option<Block>> {
    let Some(slot) = made(memory::take_slot(), "no slot")? else { return Ok(None) };
    if block.size_bits <= 12 || block.untyped.split(slot).is_err() {
        memory::free_slot(slot);
        return Ok(None);
    }
    match MEM.divide(block.number) {
        Ok(Granted { number, size_bits }) if size_bits == block.size_bits - 1 => {
            block.size_bits = size_bits;
            Ok(Some(Block { untyped: Cap::new(slot), number, size_bits }))
        }
        // The untyped memory is divided, but the block is still one, and is freed as one.
        Err(failure) if is_short(&failure) => {
            let _ = OWN_CSPACE.delete_at(slot);
            memory::free_slot(slot);
            Ok(None)
        }
        _ => Err("a block was not divided"),
    }
}

/// Makes an object of a block, which is deleted with it.
fn use_block(block: &Block, random: &mut Random) -> Outcome {
    let Some(slot) = made(memory::take_slot(), "no slot")? else { return Ok(()) };
    let bits = 12 + random.below(u64::from(block.size_bits) - 11);
    let offset = random.below(1 << (u64::from(block.size_bits) - bits)) << bits;
    // Fails if an object is there already, or the memory was divided.
    if block.untyped.retype_many(Kind::Frame, bits, 1, Placement::At(offset), OWN_CSPACE, slot).is_ok() {
        Cap::<Frame>::new(slot).delete().map_err(|_| "a frame was not deleted")?;
    }
    memory::free_slot(slot);
    Ok(())
}

/// Allocates, divides, uses and frees blocks.
pub fn blocks(random: &mut Random, steps: u64) -> Outcome {
    let mut held: [Option<Block>; BLOCKS] = [None; BLOCKS];
    for _ in 0..steps {
        let index = random.index(BLOCKS);
        match (held[index].take(), random.below(4)) {
            (None, 0) => {
                let base = 0x4000_0000 + (random.below(1 << 18) << 12);
                let limit = base + (random.below(1 << 16) << 12) + 4096;
                let align_bits = 12 + random.below(9) as u32;
                held[index] = allocate(12 + random.below(6) as u32, Within { align_bits, base, limit })?;
            }
            (None, _) => held[index] = allocate(12 + random.below(10) as u32, Within::default())?,
            (Some(mut block), 0) => {
                let other = random.index(BLOCKS);
                if other != index && held[other].is_none() {
                    held[other] = divide(&mut block)?;
                }
                held[index] = Some(block);
            }
            (Some(block), 1) => {
                use_block(&block, random)?;
                held[index] = Some(block);
            }
            (Some(block), _) => free(&block)?,
        }
    }
    // The rest is taken back when the process ends.
    Ok(())
}

/// Takes all memory, keeps it for a while, and gives some of it back.
pub fn hog(random: &mut Random, steps: u64) -> Outcome {
    let mut held: [Option<Block>; 4 * BLOCKS] = [None; 4 * BLOCKS];
    let mut count = 0;
    for bits in (12..=MAX_BITS).rev() {
        while count < held.len()
            && let Some(block) = allocate(bits, Within::default())?
        {
            held[count] = Some(block);
            count += 1;
        }
    }
    for _ in 0..steps {
        // Lets others run.
        tench::thread::yield_now();
        if random.once_in(8)
            && let Some(block) = held[random.index(count.max(1))].take()
        {
            free(&block)?;
        }
    }
    Ok(())
}

// ── Bundles ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A bundle, and the slots of its capabilities.
#[derive(Clone, Copy)]
struct Held {
    number: u64,
    copies: Option<(CapAddress, u32)>,
}

/// Returns the descriptors of a bundle of one or two kinds.
fn descriptors(random: &mut Random) -> ([Descriptor; 2], usize) {
    let one = |random: &mut Random| {
        let (kind, size) = match random.below(6) {
            0 => (Kind::Frame, 12),
            1 => (Kind::Notification, 0),
            2 => (Kind::Endpoint, 0),
            _ => (Kind::Untyped, 4 + random.below(10) as u32),
        };
        Descriptor { kind, size, count: 1 + random.below(6) as u32 }
    };
    ([one(random), one(random)], 1 + random.index(2))
}

/// Requests a bundle; returns none if there is no room.
fn grant(random: &mut Random) -> Outcome<Option<Held>> {
    let (wanted, count) = descriptors(random);
    let wanted = &wanted[..count];
    let objects = wanted.iter().map(|one| one.count).sum();
    let copies = match random.below(2) {
        0 => None,
        _ => made(memory::take_slots(objects as usize), "no slots")?.map(|first| (first, objects)),
    };
    let lifetime = if random.once_in(8) { Lifetime::Static } else { Lifetime::Dynamic };
    let destination = copies.map(|(first, _)| (Cap::<CapNode>::new(slot::CSPACE), first));
    match SLABS.ask(lifetime, wanted, destination) {
        Ok(granted) => Ok(Some(Held { number: granted.number, copies })),
        Err(failure) if is_short(&failure) => {
            give_slots(copies);
            Ok(None)
        }
        Err(_) => Err("a bundle was refused for another reason than memory"),
    }
}

fn give_slots(copies: Option<(CapAddress, u32)>) {
    if let Some((first, count)) = copies {
        (first.0..first.0 + count).for_each(|slot| memory::free_slot(CapAddress(slot)));
    }
}

/// Requests bundles and frees them, under changing policies.
pub fn bundles(random: &mut Random, steps: u64) -> Outcome {
    let mut held: [Option<Held>; BUNDLES] = [None; BUNDLES];
    for _ in 0..steps {
        let index = random.index(BUNDLES);
        match held[index].take() {
            _ if random.once_in(24) => match SLABS.set_policy(random.below(8), random.once_in(2)) {
                Ok(()) | Err(MemFailure::Refused(MemError::SlabsInUse)) => {}
                Err(_) => return Err("a policy was refused"),
            },
            None => held[index] = grant(random)?,
            Some(bundle) => {
                SLABS.free(bundle.number).map_err(|_| "a bundle was not freed")?;
                give_slots(bundle.copies);
            }
        }
    }
    Ok(())
}

// ── Names and processes ──────────────────────────────────────────────────────────────────────────────────────────────

/// Returns a unique name.
fn name(number: usize, buffer: &mut [u8; 24]) -> &str {
    let mut rest = process::id() * NAMES as u64 + number as u64;
    for byte in buffer.iter_mut().rev() {
        *byte = b'a' + (rest % 16) as u8;
        rest /= 16;
    }
    buffer[0] = b'/';
    core::str::from_utf8(buffer).unwrap_or("soak")
}

/// Registers names, looks them up and gives them up.
pub fn names(random: &mut Random, steps: u64) -> Outcome {
    let Some(endpoint) = made(memory::make::<Endpoint>(0), "no endpoint")? else { return Ok(()) };
    let Some(slot) = made(memory::take_slot(), "no slot")? else { return Ok(()) };
    let (mut known, mut buffer) = ([false; NAMES], [0; 24]);
    for _ in 0..steps {
        let number = random.index(NAMES);
        let name = name(number, &mut buffer);
        if random.once_in(3) {
            match (Names::STANDARD.look_up(name, slot), known[number]) {
                (Ok(found), true) => found.delete().map(drop).map_err(|_| "a capability was not deleted")?,
                (Err(Failure::Refused(NamesError::Unknown)), false) => {}
                _ => return Err("a name is not what it should be"),
            }
        } else if known[number] {
            Names::STANDARD.unregister(name).map_err(|_| "a name was not given up")?;
            known[number] = false;
        } else {
            match Names::STANDARD.register(name, endpoint.cap()) {
                Ok(()) => known[number] = true,
                // Without memory the server has no slot for the capability, or no room for the name.
                Err(Failure::Refused(NamesError::Full) | Failure::Rejected(Rejection::Busy)) => {}
                Err(_) => return Err("a name was not registered"),
            }
        }
    }
    Ok(())
}

/// Starts processes, suspends, resumes and kills them, or lets them end.
pub fn spawn(random: &mut Random, steps: u64) -> Outcome {
    let mut children: [Option<u64>; CHILDREN] = [None; CHILDREN];
    // Starting a process takes longer than a request.
    for _ in 0..steps / 16 + 1 {
        let index = random.index(CHILDREN);
        match children[index] {
            None => children[index] = child(random)?,
            Some(child) => {
                let result = match random.below(4) {
                    0 => PROCS.suspend(child),
                    1 => PROCS.resume(child),
                    2 => PROCS.kill(child),
                    _ => PROCS.status(child).map(drop),
                };
                match result {
                    Ok(()) | Err(Failure::Refused(ProcsError::WrongState)) => {}
                    Err(_) => return Err("a child could not be managed"),
                }
                if PROCS.status(child).is_ok_and(|status| status.state.has_ended()) {
                    children[index] = None;
                }
            }
        }
    }
    for child in children.into_iter().flatten() {
        // A suspended process would never end.
        let _ = PROCS.resume(child);
    }
    Ok(())
}

/// Starts a process that starts none itself, or only prepares one.
fn child(random: &mut Random) -> Outcome<Option<u64>> {
    if random.once_in(4) {
        return match PROCS.prepare("bench") {
            Ok(spawn) if random.once_in(2) => {
                spawn.abandon();
                Ok(None)
            }
            // The builder goes when this process ends.
            Ok(_) | Err(Failure::Refused(ProcsError::OutOfMemory)) => Ok(None),
            Err(_) => Err("a process could not be prepared"),
        };
    }
    let kind = loop {
        let (kind, _) = KINDS[random.index(KINDS.len())];
        if !matches!(kind, "spawn" | "hog") {
            break kind;
        }
    };
    match client::start(kind, random.next() >> 8, Some((64 << 10) + random.below(2 << 20)), 90) {
        Ok(child) => Ok(Some(child)),
        // Not even a limit beyond the process's own is an error of the system.
        Err(Failure::Refused(ProcsError::OutOfMemory | ProcsError::NotAllowed)) => Ok(None),
        Err(_) => Err("a process could not be started"),
    }
}
