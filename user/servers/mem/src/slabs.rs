//! Slab mode: objects in bundles, made of watermarked slabs. `tench-slabs` decides; this module carries the decisions
//! out in the kernel.
//!
//! ```text
//! block (on the server's own account)
//!   └─ slab       an untyped for each
//!        └─ object     its capability stays here; a client gets copies, or of untyped memory a child
//! ```
//! Freeing an object revokes and deletes the server's capability. The kernel reports which memory became free, and the
//! slabs' ledger takes that over: it needs no list of objects.

mod service;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use arrayvec::ArrayVec;
use tench_abi::object::NODE_SLOTS;
use tench_mem::ledger::Request;
use tench_mem::store::{SlotMap, Store};
use tench_mem::{ARENA_SIZE, MAX_BUNDLES, MAX_PARTS, families};
use tench_mem_interface::protocol::Error;
use tench_mem_interface::slabs::protocol::{
    Bundle as Given, Figures, KernelAccount, LedgerEntry, MAX_DESCRIPTORS, MAX_SLABS, TRACE_BYTES,
};
use tench_mem_interface::slabs::{Descriptor, MAX_TRACE};
use tench_procs_interface::pid;
use tench_protocol::Bytes;
use tench_quota::{Client, allows};
use tench_slabs::{Allocation, Backend, Lifetime, Policy, Recorder, Refused, Slabs as Ledger};
use tench_sys::{Cap, CapAddress, CapNode, Error as KernelError, Kind, OWN_CSPACE, Placement, Untyped};

use crate::kernel::Kernel;
use crate::server::KERNEL;

pub use service::Both;

/// Log2 of the maximum size of all slabs together, in bytes.
const MAX_BITS: u32 = 30;

/// The slabs, if there are any.
pub struct Slabs {
    state: Option<State>,
    recorder: Option<Recorder>,
    recording: bool,
}

/// Slabs that were set up.
struct State {
    ledger: Ledger,
    /// The block from which they are made.
    block: CapAddress,
    /// Their capabilities, in the order of the slabs' ledger.
    memory: Vec<CapAddress>,
    bundles: BTreeMap<u64, Bundle>,
    next: u64,
    /// Number of parts of all bundles.
    parts: usize,
}

impl State {
    /// Returns whether a client may have one more bundle: bundles and parts have fair-share quotas per family.
    fn may_have(&self, client: Client) -> bool {
        // As long as less than half is taken, the holders do not matter.
        if 2 * self.bundles.len() < MAX_BUNDLES && 2 * self.parts < MAX_PARTS {
            return true;
        }
        let (mut bundles, mut parts) = (0, 0);
        for bundle in self.bundles.values().filter(|bundle| bundle.client.family == client.family) {
            bundles += 1;
            parts += bundle.parts.len();
        }
        allows(bundles, self.bundles.len(), MAX_BUNDLES) && allows(parts, self.parts, MAX_PARTS)
    }
}

/// A bundle that was granted.
struct Bundle {
    client: Client,
    parts: Vec<Part>,
    /// Bytes of its objects, which are charged to its owner.
    bytes: u64,
    /// Set if a client has copies.
    lent: bool,
    /// Number of the bundle in the trace that is being recorded.
    recorded: Option<u32>,
}

impl Bundle {
    /// Returns the number of its objects, each of which has a slot.
    fn objects(&self) -> u16 {
        self.parts.iter().map(|part| part.count as u16).sum()
    }
}

/// The objects of one descriptor.
#[derive(Clone, Copy)]
struct Part {
    kind: Kind,
    size: u32,
    count: u32,
    /// The first of their slots.
    first: CapAddress,
}

/// Everything that the limits permit fits into the heap, doubled for the allocator's losses.
const _: () = {
    let bundles = MAX_BUNDLES * (size_of::<(u64, Bundle)>() + 16);
    let parts = MAX_PARTS * size_of::<Part>();
    assert!(2 * (bundles + parts + MAX_TRACE) + HEAP_RESERVE + families::SIZE <= ARENA_SIZE);
};

/// Bytes of heap that setting slabs up, or granting one bundle, can need: vectors of fewer than a hundred entries, and
/// a node of the map for each of its levels.
const HEAP_RESERVE: usize = 32 << 10;

/// Returns whether that much heap is free. Otherwise the request is refused: nothing runs out in the middle.
fn has_heap() -> bool {
    let mut reserve = Vec::<u8>::new();
    let found = reserve.try_reserve_exact(HEAP_RESERVE).is_ok();
    // Otherwise the compiler may assume that there is memory, and remove the allocation.
    core::hint::black_box(&mut reserve);
    found
}

impl Slabs {
    /// Returns a value without slabs.
    pub const fn new() -> Slabs {
        Slabs { state: None, recorder: None, recording: false }
    }

    fn state(&mut self) -> Result<&mut State, Error> {
        self.state.as_mut().ok_or(Error::NoSlabs)
    }

    /// Returns the sums over all slabs.
    fn figures(&mut self) -> Result<Figures, Error> {
        let ledger = &self.state()?.ledger;
        let figures = ledger.figures();
        Ok(Figures {
            live: figures.live,
            objects: figures.objects,
            watermark_loss: figures.watermark_loss,
            align_loss: figures.alignment_loss,
            resets: figures.resets,
            failed_retypes: figures.failed_retypes,
            out_of_memory: figures.out_of_memory,
            requested: figures.requested,
            gaps: ledger.gaps(),
        })
    }

    /// Makes slabs of these sizes (log2).
    fn set_up(&mut self, store: &mut Store<Kernel>, dynamic: &[u8], statics: &[u8]) -> Result<u64, Error> {
        if self.state.is_some() {
            return Err(Error::SlabsInUse);
        }
        let mut wanted = ArrayVec::<(u32, Lifetime), { 2 * MAX_SLABS }>::new();
        for (sizes, lifetime) in [(dynamic, Lifetime::Dynamic), (statics, Lifetime::Static)] {
            for &bits in sizes {
                if !(4..=30).contains(&bits) {
                    return Err(Error::BadSize);
                }
                wanted.push((u32::from(bits), lifetime));
            }
        }
        // This is the order of the slabs' ledger; so each is aligned where the one before ends.
        wanted.sort_unstable_by_key(|&(bits, lifetime)| (lifetime == Lifetime::Static, Reverse(bits)));
        let mut end = 0;
        let offsets: ArrayVec<u64, { 2 * MAX_SLABS }> = wanted
            .iter()
            .map(|&(bits, _)| {
                let offset = u64::next_multiple_of(end, 1 << bits);
                end = offset + (1 << bits);
                offset
            })
            .collect();
        if wanted.is_empty() || end > 1 << MAX_BITS {
            return Err(Error::BadSize);
        }
        if !has_heap() {
            return Err(Error::TooManyBlocks);
        }
        store.ensure_slots(wanted.len() + 1);
        let bits = u64::from(end.next_power_of_two().ilog2());
        let (block, memory) = store.allocate(&Request::anywhere(pid::MEM, pid::MEM, bits))?;
        let made = self.make_slabs(store, block, memory.address, &wanted, &offsets);
        match made {
            Ok(state) => {
                let count = state.memory.len() as u64;
                self.state = Some(state);
                Ok(count)
            }
            Err(error) => {
                store.free(block)?;
                Err(error)
            }
        }
    }

    fn make_slabs(
        &self,
        store: &mut Store<Kernel>,
        block: CapAddress,
        base: u64,
        wanted: &[(u32, Lifetime)],
        offsets: &[u64],
    ) -> Result<State, Error> {
        let sizes = wanted.iter().zip(offsets);
        let list: Vec<_> = sizes.map(|(&(bits, lifetime), offset)| (base + offset, 1 << bits, lifetime)).collect();
        let ledger = Ledger::new(&list).map_err(|_| Error::BadSize)?;
        let mut memory = Vec::with_capacity(list.len());
        for (&(bits, _), &offset) in wanted.iter().zip(offsets) {
            let slot = store.slots.take().ok_or(Error::TooManyBlocks)?;
            memory.push(slot);
            let untyped = Cap::<Untyped>::new(block);
            let made = untyped.retype_many(Kind::Untyped, bits.into(), 1, Placement::At(offset), OWN_CSPACE, slot);
            if made.is_err() {
                // The others go with the block; their slots are empty then.
                store.free_slots(memory);
                return Err(Error::Internal);
            }
        }
        Ok(State { ledger, block, memory, bundles: BTreeMap::new(), next: 1, parts: 0 })
    }

    /// Frees the memory of the slabs.
    fn take_down(&mut self, store: &mut Store<Kernel>) -> Result<(), Error> {
        if !self.state()?.bundles.is_empty() {
            return Err(Error::SlabsInUse);
        }
        if let Some(state) = self.state.take() {
            store.free(state.block)?;
            store.free_slots(state.memory);
        }
        Ok(())
    }

    /// Grants a bundle.
    fn grant(
        &mut self,
        store: &mut Store<Kernel>,
        client: Client,
        lifetime: Lifetime,
        destination: Option<(Cap<CapNode>, CapAddress)>,
        descriptors: &[u64],
    ) -> Result<Given, Error> {
        if !store.ledger.is_served(client.process) {
            return Err(Error::Ended);
        }
        let (wanted, sizes) = read_bundle(descriptors)?;
        let objects: u16 = wanted.iter().map(|one| one.count as u16).sum();
        let bytes = sizes.iter().map(|one| one.size.saturating_mul(one.count.into())).fold(0, u64::saturating_add);
        store.refill();
        store.ensure_slots(objects.into());
        let state = self.state()?;
        if state.bundles.len() >= MAX_BUNDLES || state.parts + wanted.len() > MAX_PARTS || !has_heap() {
            return Err(Error::TooManyBlocks);
        }
        if !state.may_have(client) {
            return Err(Error::TooManyBlocks);
        }
        store.charge(client, bytes, objects)?;
        let mut kernel =
            Maker { slots: &mut store.slots, memory: &state.memory, wanted: &wanted, made: ArrayVec::new() };
        let granted = state.ledger.grant(&sizes, lifetime, &mut kernel);
        let parts: Vec<Part> = kernel.made.into_iter().collect();
        if let Err(error) = granted {
            store.ledger.credit(client.process, bytes, objects);
            if error == tench_slabs::Error::OutOfMemory {
                self.note(|recorder| recorder.failed(&sizes, lifetime));
            }
            return Err(slab_error(error));
        }
        let number = state.next;
        state.next += 1;
        state.parts += parts.len();
        let lent = destination.is_some();
        let copied = destination.map_or(Ok(()), |(cspace, first)| lend(cspace, first, &parts));
        state.bundles.insert(number, Bundle { client, parts, bytes, lent, recorded: None });
        if let Err(error) = copied {
            self.free(store, number)?;
            return Err(error);
        }
        let recorded = self.note(|recorder| recorder.alloc(&sizes, lifetime)).flatten();
        if let Some(bundle) = self.state()?.bundles.get_mut(&number) {
            bundle.recorded = recorded;
        }
        Ok(Given { number, figures: self.figures()? })
    }

    /// Deletes a bundle's objects.
    fn free(&mut self, store: &mut Store<Kernel>, number: u64) -> Result<(), Error> {
        let state = self.state()?;
        let bundle = state.bundles.remove(&number).ok_or(Error::NoSuchBundle)?;
        state.parts -= bundle.parts.len();
        store.ledger.credit(bundle.client.process, bundle.bytes, bundle.objects());
        for part in &bundle.parts {
            for object in 0..part.count {
                let slot = CapAddress(part.first.0 + object);
                if bundle.lent {
                    OWN_CSPACE.revoke_at(slot).map_err(|_| Error::Internal)?;
                }
                let deleted = OWN_CSPACE.delete_located_at(KERNEL, slot).map_err(|_| Error::Internal)?;
                store.free_slots([slot]);
                let freed = deleted.freed.ok_or(Error::Internal)?;
                state.ledger.freed(freed.address, 1 << freed.size_bits).map_err(|_| Error::Internal)?;
            }
        }
        if let Some(recorded) = bundle.recorded {
            self.note(|recorder| recorder.free(recorded));
        }
        Ok(())
    }

    /// Frees the bundles of a client, one at a time.
    pub fn close(&mut self, store: &mut Store<Kernel>, client: u64) -> Result<(), Error> {
        let Some(state) = &self.state else { return Ok(()) };
        let mut numbers =
            state.bundles.iter().filter(|(_, bundle)| bundle.client.process == client).map(|(number, _)| *number);
        let (Some(number), more) = (numbers.next(), numbers.next().is_some()) else { return Ok(()) };
        self.free(store, number)?;
        if more { Err(Error::Unfinished) } else { Ok(()) }
    }

    /// Returns the ledger's description of a slab.
    fn ledger(&mut self, number: u64) -> Result<LedgerEntry, Error> {
        let slab = self.state()?.ledger.slabs().get(number as usize).ok_or(Error::NoSuchSlab)?;
        Ok(LedgerEntry {
            address: slab.base(),
            size_bits: slab.size().ilog2(),
            watermark: slab.watermark(),
            objects: slab.objects(),
            live: slab.live(),
            align_loss: slab.alignment_loss(),
            watermark_loss: slab.watermark_loss(),
            resets: slab.resets(),
        })
    }

    /// Returns the kernel's description of a slab.
    fn kernel(&mut self, number: u64) -> Result<KernelAccount, Error> {
        let slot = *self.state()?.memory.get(number as usize).ok_or(Error::NoSuchSlab)?;
        let untyped = Cap::<Untyped>::new(slot);
        let account = untyped.query().map_err(|_| Error::Internal)?;
        let children = untyped.children().map_err(|_| Error::Internal)?;
        Ok(KernelAccount { watermark: account.watermark, objects: children.objects, live: children.bytes })
    }

    /// Changes the policy.
    fn set_policy(&mut self, code: u64, lifted: bool) -> Result<(), Error> {
        let ledger = &mut self.state()?.ledger;
        let policy = Policy::from_code(code).ok_or(Error::NoSuchPolicy)?;
        if ledger.lifted() != lifted {
            ledger.lift(lifted).map_err(|_| Error::SlabsInUse)?;
        }
        ledger.set_policy(policy);
        // So what follows can be compared with a replay.
        ledger.begin_measurement();
        Ok(())
    }

    // ── Traces ───────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Writes into the trace, if one is being recorded.
    fn note<R>(&mut self, write: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
        self.recorder.as_mut().filter(|_| self.recording).map(write)
    }

    /// Starts or ends a trace.
    fn record(&mut self, on: bool) -> Result<u64, Error> {
        self.recording = on;
        if self.recording {
            // The old trace must go first: there is room for one.
            self.recorder = None;
            self.recorder = Some(Recorder::new(MAX_TRACE).ok_or(Error::OutOfMemory)?);
            // Existing bundles are not in the trace, so their freeing is not recorded either.
            if let Some(state) = &mut self.state {
                state.bundles.values_mut().for_each(|bundle| bundle.recorded = None);
            }
        }
        let bytes = self.recorder.as_ref().map_or(0, |recorder| recorder.text().len());
        Ok(bytes as u64)
    }

    /// Returns a part of the trace.
    fn part_of_trace(&self, offset: u64) -> Bytes<'_, TRACE_BYTES> {
        let text = self.recorder.as_ref().map_or("", |recorder| recorder.text()).as_bytes();
        Bytes::first_of(usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or_default())
    }
}

/// Converts a bundle's descriptors from the client's form to that of the slabs' library. At most 256 objects.
fn read_bundle(
    words: &[u64],
) -> Result<(ArrayVec<Descriptor, MAX_DESCRIPTORS>, ArrayVec<tench_slabs::Descriptor, MAX_DESCRIPTORS>), Error> {
    if words.is_empty() || words.len() > MAX_DESCRIPTORS {
        return Err(Error::BadSize);
    }
    let (mut wanted, mut sizes, mut objects) = (ArrayVec::new(), ArrayVec::new(), 0);
    for &word in words {
        let one = Descriptor::from_word(word).filter(|one| (1..=NODE_SLOTS as u32).contains(&one.count));
        let one = one.ok_or(Error::BadSize)?;
        objects += one.count as usize;
        wanted.push(one);
        sizes.push(tench_slabs::Descriptor::new(one.object_size().ok_or(Error::BadSize)?, one.count));
    }
    if objects > NODE_SLOTS { Err(Error::BadSize) } else { Ok((wanted, sizes)) }
}

/// Gives a client copies of objects, or of untyped memory a child, in adjacent slots of its CSpace from `first` on.
fn lend(cspace: Cap<CapNode>, first: CapAddress, parts: &[Part]) -> Result<(), Error> {
    let mut to = first.0;
    for part in parts {
        for object in 0..part.count {
            let from = CapAddress(part.first.0 + object);
            let lent = match part.kind {
                Kind::Untyped => Cap::<Untyped>::new(from)
                    .retype_many(part.kind, part.size.into(), 1, Placement::At(0), cspace, CapAddress(to))
                    .map(drop),
                _ => cspace.copy_from(CapAddress(to), OWN_CSPACE, from),
            };
            lent.map_err(|_| Error::NoSuchSlot)?;
            to = to.checked_add(1).ok_or(Error::NoSuchSlot)?;
        }
    }
    Ok(())
}

/// Converts an error of the library to one of the protocol.
const fn slab_error(error: tench_slabs::Error) -> Error {
    match error {
        tench_slabs::Error::OutOfMemory => Error::OutOfMemory,
        tench_slabs::Error::BadBundle | tench_slabs::Error::BadSlab => Error::BadSize,
        // What the ledger permits, the kernel refuses only for lack of slots.
        tench_slabs::Error::NoMetadata | tench_slabs::Error::Refused => Error::TooManyBlocks,
        tench_slabs::Error::InUse => Error::SlabsInUse,
        tench_slabs::Error::NoSuchObject => Error::Internal,
    }
}

/// The kernel, as the slabs' library uses it.
struct Maker<'a> {
    slots: &'a mut SlotMap,
    memory: &'a [CapAddress],
    wanted: &'a [Descriptor],
    made: ArrayVec<Part, MAX_DESCRIPTORS>,
}

impl Backend for Maker<'_> {
    fn retype(
        &mut self,
        slab: usize,
        part: usize,
        placement: tench_slabs::Placement,
        _size: u64,
        count: u32,
    ) -> Result<u64, Refused> {
        let (Some(&slab), Some(&wanted)) = (self.memory.get(slab), self.wanted.get(part)) else {
            return Err(Refused::Otherwise);
        };
        let first = if count == 1 { self.slots.take() } else { self.slots.take_run(count as usize) };
        let first = first.ok_or(Refused::Otherwise)?;
        let placement = match placement {
            tench_slabs::Placement::Watermark => Placement::Watermark,
            tench_slabs::Placement::At(offset) => Placement::At(offset),
        };
        let untyped = Cap::<Untyped>::new(slab);
        match untyped.retype_many(wanted.kind, wanted.size.into(), count.into(), placement, OWN_CSPACE, first) {
            Ok(offset) => {
                self.made.push(Part { kind: wanted.kind, size: wanted.size, count, first });
                Ok(offset)
            }
            Err(error) => {
                (first.0..first.0 + count).for_each(|slot| self.slots.free(CapAddress(slot)));
                Err(match error {
                    KernelError::OutOfMemory | KernelError::Overlap => Refused::Full,
                    _ => Refused::Otherwise,
                })
            }
        }
    }

    fn undo(&mut self, _part: usize, _allocation: Allocation) {
        // The last part goes first.
        let Some(part) = self.made.pop() else { return };
        for slot in part.first.0..part.first.0 + part.count {
            // The object has not left this server, so nothing prevents its deletion.
            let _ = OWN_CSPACE.delete_at(CapAddress(slot));
            self.slots.free(CapAddress(slot));
        }
    }
}
