//! All slabs of a memory server: granting bundles, and freeing objects.
//!
//! With metadata, a bundle is planned as a whole before the kernel is called, so one that does not fit costs nothing.
//! The guessing policy has no metadata with which to plan: the objects made for the first descriptors of a bundle that
//! then fails are deleted again, and unless a slab became empty by that, the memory below its watermark is lost.

use alloc::vec::Vec;
use core::ops::Range;

use crate::backend::{Backend, Placement, Refused};
use crate::bundle::{Allocation, Descriptor, Lifetime};
use crate::policy::Policy;
use crate::slab::{Account, Mark, Slab};

/// Sizes of R1's slabs for dynamic objects, in bytes, largest first. With the one for static objects 2,723,584 B.
pub const STANDARD_SLABS: [u64; 22] = [
    512 << 10,
    512 << 10,
    256 << 10,
    256 << 10,
    256 << 10,
    128 << 10,
    128 << 10,
    128 << 10,
    128 << 10,
    64 << 10,
    64 << 10,
    64 << 10,
    64 << 10,
    32 << 10,
    32 << 10,
    16 << 10,
    8 << 10,
    4 << 10,
    4 << 10,
    2 << 10,
    1 << 10,
    512,
];
/// Size of R1's slab for static objects, in bytes.
pub const STANDARD_STATIC_SLABS: [u64; 1] = [256];

/// Reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A descriptor has a count of 0, a count too large, or an impossible size; or there is no descriptor.
    BadBundle,
    /// No slab has room.
    OutOfMemory,
    /// There is no memory for the metadata. Nothing was changed.
    NoMetadata,
    /// The kernel refused an operation that the metadata allows. The objects already made for the bundle were deleted.
    Refused,
    /// No object of that size can have been at that address. Nothing was changed.
    NoSuchObject,
    /// The watermark rule can be lifted or restored only while there are no objects.
    InUse,
    /// Slabs overlap, or the size of one is not a power of two of at least 16 bytes, or it is not aligned to its size.
    BadSlab,
}

/// Sums over all slabs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of bytes in live objects.
    pub live: u64,
    /// Number of live objects.
    pub objects: u64,
    /// Number of bytes lost to the watermark rule.
    pub watermark_loss: u64,
    /// Number of bytes lost to alignment.
    pub alignment_loss: u64,
    /// Number of times that a slab became empty.
    pub resets: u64,
    /// Number of retypes that the kernel refused for lack of room.
    pub failed_retypes: u64,
    /// Number of bundles that found no room.
    pub out_of_memory: u64,
    /// Size of all granted bundles in bytes.
    pub requested: u64,
}

impl Figures {
    /// Returns the number of bytes lost to both.
    pub const fn loss(&self) -> u64 {
        self.watermark_loss + self.alignment_loss
    }
}

/// Slabs, their metadata, and the policy that chooses among them.
#[derive(Clone, Debug)]
pub struct Slabs {
    /// Slabs for dynamic objects, then those for static ones; each group the largest first.
    slabs: Vec<Slab>,
    /// Number of slabs for dynamic objects.
    dynamic: usize,
    /// Indices of the slabs in the order of their addresses.
    by_address: Vec<usize>,
    policy: Policy,
    lifted: bool,
    /// Slabs at which next fit continues, for dynamic objects and for static ones.
    rovers: [usize; 2],
    figures: Figures,
}

impl Slabs {
    /// Returns slabs at these base addresses, of these sizes in bytes. They are put in the order of [`Slabs::slabs`]:
    /// dynamic before static, larger before smaller, otherwise as given.
    pub fn new(memory: &[(u64, u64, Lifetime)]) -> Result<Slabs, Error> {
        let good = |&(base, size, _): &(u64, u64, Lifetime)| {
            size.is_power_of_two() && size >= crate::MIN_SIZE && base.is_multiple_of(size)
        };
        if !memory.iter().all(good) {
            return Err(Error::BadSlab);
        }
        let mut slabs: Vec<Slab> =
            memory.iter().map(|&(base, size, lifetime)| Slab::new(base, size, lifetime)).collect();
        slabs.sort_by_key(|slab| (slab.lifetime() == Lifetime::Static, core::cmp::Reverse(slab.size())));
        let dynamic = slabs.partition_point(|slab| slab.lifetime() == Lifetime::Dynamic);
        let mut by_address: Vec<usize> = (0..slabs.len()).collect();
        by_address.sort_by_key(|&number| slabs[number].base());
        let overlap = |pair: &[usize]| slabs[pair[0]].base() + slabs[pair[0]].size() > slabs[pair[1]].base();
        if by_address.windows(2).any(overlap) {
            return Err(Error::BadSlab);
        }
        let figures = Figures::default();
        Ok(Slabs {
            slabs,
            dynamic,
            by_address,
            policy: Policy::default(),
            lifted: false,
            rovers: [0, dynamic],
            figures,
        })
    }

    /// Returns slabs of these sizes, the largest first, side by side from address 0 as far as their alignment permits.
    pub fn with_sizes(dynamic: &[u64], statics: &[u64]) -> Result<Slabs, Error> {
        let kinds = [(dynamic, Lifetime::Dynamic), (statics, Lifetime::Static)];
        let all = kinds.iter().flat_map(|&(sizes, lifetime)| sizes.iter().map(move |&size| (size, lifetime)));
        let mut end = 0;
        let mut memory = Vec::new();
        for (size, lifetime) in all {
            if !size.is_power_of_two() || size > 1 << 40 {
                return Err(Error::BadSlab);
            }
            let base = crate::slab::align_up(end, size);
            end = base + size;
            memory.push((base, size, lifetime));
        }
        Slabs::new(&memory)
    }

    /// Returns R1's slabs.
    #[expect(clippy::missing_panics_doc, reason = "the sizes are constants, and good; a test makes them")]
    pub fn standard() -> Slabs {
        Slabs::with_sizes(&STANDARD_SLABS, &STANDARD_STATIC_SLABS).expect("the standard sizes are good")
    }

    /// Returns the slabs for dynamic objects, then those for static ones; each group the largest first.
    pub fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// Returns the account of a slab that the kernel should return.
    pub fn account(&self, slab: usize) -> Option<Account> {
        Some(self.slabs.get(slab)?.account())
    }

    /// Returns the sums over all slabs.
    pub const fn figures(&self) -> Figures {
        self.figures
    }

    /// Returns the number of free bytes below the highest object of each slab, in all.
    pub fn gaps(&self) -> u64 {
        self.slabs.iter().map(Slab::gaps).sum()
    }

    /// Returns the current policy.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// Changes the policy, from the next bundle on. Live objects stay where they are.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Returns whether the watermark rule is lifted.
    pub const fn lifted(&self) -> bool {
        self.lifted
    }

    /// Lifts the watermark rule, or restores it. While it is lifted, objects are placed at any free offset, by
    /// [`Placement::At`], and nothing is lost. Errors: `InUse`.
    pub fn lift(&mut self, lifted: bool) -> Result<(), Error> {
        if self.figures.objects > 0 {
            return Err(Error::InUse);
        }
        self.slabs.iter_mut().for_each(|slab| slab.lift(lifted));
        self.lifted = lifted;
        Ok(())
    }

    /// Sets the counters to 0 (resets, failed retypes, bundles without room, bytes requested) and makes next fit begin
    /// at the first slab, so that the following requests can be compared with a replay.
    pub fn begin_measurement(&mut self) {
        self.slabs.iter_mut().for_each(Slab::forget_resets);
        self.rovers = [0, self.dynamic];
        let Figures { live, objects, watermark_loss, alignment_loss, .. } = self.figures;
        self.figures = Figures { live, objects, watermark_loss, alignment_loss, ..Figures::default() };
    }

    /// Grants a bundle, whole or not at all, and returns the positions of its objects: one allocation for each
    /// descriptor.
    /// Errors: `BadBundle`, `OutOfMemory`, `NoMetadata`, `Refused`.
    pub fn grant(
        &mut self,
        bundle: &[Descriptor],
        lifetime: Lifetime,
        backend: &mut impl Backend,
    ) -> Result<Vec<Allocation>, Error> {
        if bundle.is_empty() || !bundle.iter().all(|descriptor| descriptor.is_valid()) {
            return Err(Error::BadBundle);
        }
        let mut allocations = Vec::new();
        allocations.try_reserve_exact(bundle.len()).map_err(|_| Error::NoMetadata)?;
        // A requester that names offsets knows the free ranges and need not guess.
        let granted = if self.policy == Policy::NextFitGuessing && !self.lifted {
            self.guess(bundle, lifetime, backend, &mut allocations)
        } else {
            self.plan_and_do(bundle, lifetime, backend, &mut allocations)
        };
        match granted {
            Ok(()) => self.figures.requested += bundle.iter().map(|descriptor| descriptor.bytes()).sum::<u64>(),
            Err(Error::OutOfMemory) => self.figures.out_of_memory += 1,
            Err(_) => {}
        }
        granted.map(|()| allocations)
    }

    /// Records that the object of `size` bytes at a physical address was deleted, as the kernel's delete reports it.
    /// Errors: `NoSuchObject`.
    pub fn freed(&mut self, address: u64, size: u64) -> Result<(), Error> {
        let slab = self.find(address).ok_or(Error::NoSuchObject)?;
        let offset = address - self.slabs[slab].base();
        if !size.is_power_of_two() || size > self.slabs[slab].size() {
            return Err(Error::NoSuchObject);
        }
        let freed = self.change(slab, |slab| slab.free(offset, size));
        if freed { Ok(()) } else { Err(Error::NoSuchObject) }
    }

    /// Returns the slab in which an address lies, in O(log n).
    pub fn find(&self, address: u64) -> Option<usize> {
        let after = self.by_address.partition_point(|&number| self.slabs[number].base() <= address);
        let number = *self.by_address.get(after.checked_sub(1)?)?;
        (address - self.slabs[number].base() < self.slabs[number].size()).then_some(number)
    }

    /// Returns the violated invariant, if any.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let mut sum = Figures { failed_retypes: self.figures.failed_retypes, ..Figures::default() };
        for slab in &self.slabs {
            slab.check_invariants()?;
            sum.live += slab.live();
            sum.objects += slab.objects();
            sum.watermark_loss += slab.watermark_loss();
            sum.alignment_loss += slab.alignment_loss();
            sum.resets += slab.resets();
        }
        (sum.out_of_memory, sum.requested) = (self.figures.out_of_memory, self.figures.requested);
        if sum != self.figures {
            return Err("the sums over all slabs are wrong");
        }
        let [dynamic, statics] = self.rovers;
        let inside = |rover, range: Range<usize>| range.is_empty() || range.contains(&rover);
        if !inside(dynamic, 0..self.dynamic) || !inside(statics, self.dynamic..self.slabs.len()) {
            return Err("next fit would go on at a slab that does not exist");
        }
        Ok(())
    }

    /// Returns the range of the slabs for objects of that lifetime.
    fn range(&self, lifetime: Lifetime) -> Range<usize> {
        match lifetime {
            Lifetime::Dynamic => 0..self.dynamic,
            Lifetime::Static => self.dynamic..self.slabs.len(),
        }
    }

    /// Changes one slab, and updates the sums.
    fn change<R>(&mut self, slab: usize, change: impl FnOnce(&mut Slab) -> R) -> R {
        let slab = &mut self.slabs[slab];
        let sums = &mut self.figures;
        sums.live -= slab.live();
        sums.objects -= slab.objects();
        sums.watermark_loss -= slab.watermark_loss();
        sums.alignment_loss -= slab.alignment_loss();
        sums.resets -= slab.resets();
        let result = change(slab);
        sums.live += slab.live();
        sums.objects += slab.objects();
        sums.watermark_loss += slab.watermark_loss();
        sums.alignment_loss += slab.alignment_loss();
        sums.resets += slab.resets();
        result
    }

    /// Plans a bundle in the metadata and, if all of it fits, has it made.
    fn plan_and_do(
        &mut self,
        bundle: &[Descriptor],
        lifetime: Lifetime,
        backend: &mut impl Backend,
        allocations: &mut Vec<Allocation>,
    ) -> Result<(), Error> {
        let mut marks = Vec::new();
        marks.try_reserve_exact(bundle.len()).map_err(|_| Error::NoMetadata)?;
        let range = self.range(lifetime);
        let mut rover = self.rovers[lifetime as usize];
        for &descriptor in bundle {
            let planned = self.policy.choose(&self.slabs[range.clone()], rover.saturating_sub(range.start), descriptor);
            let planned = planned.ok_or(Error::OutOfMemory).and_then(|(slab, offset)| {
                let slab = slab + range.start;
                let allocation = Allocation { slab, offset, size: descriptor.size, count: descriptor.count };
                if self.slabs[slab].reserve(descriptor.count) { Ok(allocation) } else { Err(Error::NoMetadata) }
            });
            let allocation = match planned {
                Ok(allocation) => allocation,
                Err(error) => {
                    self.take_back(allocations, &marks, 0);
                    return Err(error);
                }
            };
            marks.push(self.slabs[allocation.slab].mark());
            self.change(allocation.slab, |slab| slab.place(allocation.offset, allocation.size, allocation.count));
            allocations.push(allocation);
            rover = allocation.slab;
        }
        for (part, &allocation) in allocations.iter().enumerate() {
            let placement = if self.lifted { Placement::At(allocation.offset) } else { Placement::Watermark };
            let made = backend.retype(allocation.slab, part, placement, allocation.size, allocation.count);
            if made != Ok(allocation.offset) {
                self.figures.failed_retypes += u64::from(made == Err(Refused::Full));
                // The objects were made elsewhere than planned: the kernel and the metadata disagree about the slab.
                if let Ok(offset) = made {
                    backend.undo(part, Allocation { offset, ..allocation });
                }
                self.take_back(allocations, &marks, part);
                self.undo(&allocations[..part], backend);
                return Err(Error::Refused);
            }
        }
        self.rovers[lifetime as usize] = rover;
        Ok(())
    }

    /// Grants a bundle as R1 found it: trying slab after slab.
    fn guess(
        &mut self,
        bundle: &[Descriptor],
        lifetime: Lifetime,
        backend: &mut impl Backend,
        allocations: &mut Vec<Allocation>,
    ) -> Result<(), Error> {
        let range = self.range(lifetime);
        let mut slab = self.rovers[lifetime as usize];
        for (part, descriptor) in bundle.iter().enumerate() {
            let Descriptor { size, count } = *descriptor;
            let mut tries = range.len();
            let made = loop {
                if tries == 0 {
                    break Err(Error::OutOfMemory);
                }
                match backend.retype(slab, part, Placement::Watermark, size, count) {
                    Ok(offset) => break Ok(offset),
                    Err(Refused::Otherwise) => break Err(Error::Refused),
                    Err(Refused::Full) => self.figures.failed_retypes += 1,
                }
                tries -= 1;
                slab = if slab + 1 == range.end { range.start } else { slab + 1 };
            };
            match made {
                Ok(offset) => {
                    self.change(slab, |slab| slab.place(offset, size, count));
                    allocations.push(Allocation { slab, offset, size, count });
                }
                Err(error) => {
                    self.undo(allocations, backend);
                    return Err(error);
                }
            }
        }
        self.rovers[lifetime as usize] = slab;
        Ok(())
    }

    /// Undoes the plan from allocation number `first` on completely.
    fn take_back(&mut self, allocations: &[Allocation], marks: &[Mark], first: usize) {
        for (allocation, mark) in allocations.iter().zip(marks).skip(first).rev() {
            self.change(allocation.slab, |slab| slab.undo_placement(*mark, allocation.offset, allocation.bytes()));
        }
    }

    /// Deletes objects that were made. Unlike undoing a plan, this affects the kernel's watermarks.
    fn undo(&mut self, allocations: &[Allocation], backend: &mut impl Backend) {
        for (part, allocation) in allocations.iter().enumerate().rev() {
            backend.undo(part, *allocation);
            for i in 0..u64::from(allocation.count) {
                let freed = self.change(allocation.slab, |slab| {
                    slab.free(allocation.offset + i * allocation.size, allocation.size)
                });
                debug_assert!(freed, "what was recorded can be freed");
            }
        }
    }
}
