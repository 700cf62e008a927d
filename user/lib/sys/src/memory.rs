//! Untyped memory, frames, page tables and mappings.

use tench_abi::layout::WATERMARK;
use tench_abi::memory::MapFlags;
use tench_abi::{CapAddress, Error, Kind, Operation};

use crate::cap::{Cap, CapNode, OWN_CSPACE, Object, objects};
use crate::raw;

objects! {
    /// Memory that can be retyped into other objects.
    Untyped;
    /// Memory that can be mapped.
    Frame;
    /// A page table; one of level 0 is an address space.
    PageTable;
    /// Up to 512 neighbouring entries of a page table that map one frame. Deleting it unmaps.
    Mapping;
}

/// Position of new objects in an untyped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Above everything made before.
    Watermark,
    /// At this offset in bytes.
    At(u64),
}

/// An untyped as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntypedInfo {
    /// Log2 of its size in bytes.
    pub size_bits: u32,
    /// Offset of the watermark in bytes.
    pub watermark: u64,
    /// Set if the untyped is device memory.
    pub device: bool,
}

/// Objects made directly from an untyped. An object counts once, however many copies of its capability exist and
/// whatever it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Children {
    /// Number of objects.
    pub objects: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Cap<Untyped> {
    /// Makes `count` (1 to 256) objects side by side, with capabilities in as many empty slots of one node of `cspace`,
    /// from `first` on. Returns the offset of the first object. The new objects are zeroed, unless this is device
    /// memory.
    ///
    /// `size` is log2 of bytes for untyped memory and frames, log2 of slots for nodes, the level for page tables.
    /// Rights: `WRITE`. Errors: `OutOfMemory`, `Overlap`, `Misaligned`, `DeviceMemory`, `SlotOccupied`, `NoSuchSlot`,
    /// `InvalidArgument`.
    pub fn retype_many(
        self,
        kind: Kind,
        size: u64,
        count: u64,
        placement: Placement,
        cspace: Cap<CapNode>,
        first: CapAddress,
    ) -> Result<u64, Error> {
        let placement = match placement {
            Placement::Watermark => WATERMARK,
            Placement::At(offset) => offset,
        };
        let (kind, first) = (kind as u64, u64::from(first.0));
        // SAFETY: the kernel makes objects only of memory that nothing uses.
        let result = unsafe {
            raw::call5(Operation::UntypedRetype, self.raw(), kind, size, count, placement, cspace.raw(), first)
        };
        Ok(result.check()?.first)
    }

    /// Makes one object at the watermark, with its capability in a slot of the own CSpace. All else as
    /// [`retype_many`](Self::retype_many).
    pub fn retype<T: Object>(self, size: u64, slot: CapAddress) -> Result<Cap<T>, Error> {
        self.retype_many(T::KIND, size, 1, Placement::Watermark, OWN_CSPACE, slot)?;
        Ok(Cap::new(slot))
    }

    /// Returns a description of the untyped. Rights: `READ`.
    pub fn query(self) -> Result<UntypedInfo, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::UntypedQuery, self.raw(), 0) }.check()?;
        let [watermark, flags, ..] = result.words;
        Ok(UntypedInfo { size_bits: result.first as u32, watermark, device: flags & 1 != 0 })
    }

    /// Splits the untyped: this capability becomes one to the lower half; the one to the upper half goes to an empty
    /// slot of the own CSpace and is returned. Objects made from the untyped stay and belong to the half in which they
    /// lie.
    /// Rights: `WRITE`. Errors: `Overlap` (an object lies in both halves), `InvalidArgument` (too small to split),
    /// `SlotOccupied`, `NoSuchSlot`.
    pub fn split(self, slot: CapAddress) -> Result<Cap<Untyped>, Error> {
        self.split_to(OWN_CSPACE, slot)?;
        Ok(Cap::new(slot))
    }

    /// As [`split`](Self::split), with the slot in another CSpace.
    pub fn split_to(self, cspace: Cap<CapNode>, slot: CapAddress) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call1(Operation::UntypedSplit, self.raw(), cspace.raw(), u64::from(slot.0)) }.done()
    }

    /// Returns the number of objects made directly from the untyped, and their size. Rights: `READ`.
    /// Errors: `Aborted` (it was deleted, moved or split while it was counted).
    pub fn children(self) -> Result<Children, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::UntypedChildren, self.raw(), 0) }.check()?;
        let [bytes, ..] = result.words;
        Ok(Children { objects: result.first, bytes })
    }
}

impl Cap<Frame> {
    /// Maps the part of the frame from `offset` on into `count` neighbouring entries of `table`, from `first` on. The
    /// mapping's capability goes to an empty slot. A table of level 3, 2, 1 maps pages of 4 KiB, 2 MiB, 1 GiB.
    /// Rights: `READ`, and `WRITE`, `EXECUTE` as the flags ask.
    /// Errors: `AlreadyMapped`, `Misaligned`, `SlotOccupied`, `NoSuchSlot`, `InvalidArgument`.
    pub fn map(
        self,
        table: Cap<PageTable>,
        first: u64,
        count: u64,
        offset: u64,
        flags: MapFlags,
        slot: CapAddress,
    ) -> Result<Cap<Mapping>, Error> {
        let (flags, destination) = (flags.bits(), u64::from(slot.0));
        // SAFETY: the kernel maps only where nothing is mapped.
        unsafe { raw::call5(Operation::FrameMap, self.raw(), table.raw(), first, count, offset, flags, destination) }
            .done()?;
        Ok(Cap::new(slot))
    }
}

impl Cap<Frame> {
    /// Makes a scattered mapping: one without entries yet, each of which [`set`](Cap::set) sets. Its capability goes to
    /// an empty slot. Its entries can have the rights of this capability.
    /// Rights: `READ`. Errors: `InvalidArgument` (a table of level 0, or of pages larger than the frame), `Busy` (the
    /// table has 8), `SlotOccupied`, `NoSuchSlot`.
    pub fn scatter(self, table: Cap<PageTable>, slot: CapAddress) -> Result<Cap<Mapping>, Error> {
        // SAFETY: nothing is mapped yet.
        unsafe { raw::call1(Operation::FrameScatter, self.raw(), table.raw(), u64::from(slot.0)) }.done()?;
        Ok(Cap::new(slot))
    }
}

/// A mapping as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingInfo {
    /// First entry of its table.
    pub first: u64,
    /// Number of entries.
    pub count: u64,
    /// Rights and attributes.
    pub flags: MapFlags,
    /// Virtual address, if the table belongs to an address space.
    pub address: Option<u64>,
}

impl Cap<Mapping> {
    /// Changes the rights of the entries, at most to those with which the mapping was made.
    pub fn protect(self, flags: MapFlags) -> Result<(), Error> {
        // SAFETY: a forbidden access ends the program with a fault.
        unsafe { raw::call0(Operation::MappingProtect, self.raw(), flags.bits()) }.done()
    }

    /// Makes `count` neighbouring entries of a scattered mapping's table, from `first` on, map the part of the frame
    /// from `offset` on. Empty flags free the entries. The entries are free or the mapping's; at most 32 at a time.
    /// Errors: `WrongType` (another mapping), `AlreadyMapped`, `Misaligned`, `InvalidArgument`, `MissingRights`,
    /// `Aborted` (it is being deleted).
    ///
    /// # Safety
    /// Nobody uses the memory that the entries map so far as Rust memory any more.
    pub unsafe fn set(self, first: u64, count: u64, offset: u64, flags: MapFlags) -> Result<(), Error> {
        // SAFETY: the caller guarantees that what was mapped is not used any more.
        unsafe { raw::call3(Operation::MappingSet, self.raw(), first, count, offset, flags.bits()) }.done()
    }

    /// Copies what `count` entries of this scattered mapping, from `first` on, map to the same entries of another of
    /// the same frame, where its table has nothing. The copies have only flags in `mask`, and if `restrict` is set, so
    /// have the entries here from then on. Returns the number of entries copied.
    /// Errors: `WrongType` (another mapping), `InvalidArgument` (another frame or level), `MissingRights`, `Aborted`.
    pub fn clone_to(
        self,
        target: Cap<Mapping>,
        first: u64,
        count: u64,
        mask: MapFlags,
        restrict: bool,
    ) -> Result<u64, Error> {
        let restrict = u64::from(restrict);
        let arguments = (self.raw(), target.raw(), first, count, mask.bits(), restrict);
        let (from, to, first, count, mask, restrict) = arguments;
        // SAFETY: the kernel maps only where nothing is mapped; a forbidden access ends the program with a fault.
        let result = unsafe { raw::call4(Operation::MappingClone, from, to, first, count, mask, restrict) }.check()?;
        Ok(result.first)
    }

    /// Returns a description of the mapping.
    pub fn query(self) -> Result<MappingInfo, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::MappingQuery, self.raw(), 0) }.check()?;
        let [count, flags, address, ..] = result.words;
        Ok(MappingInfo {
            first: result.first,
            count,
            flags: MapFlags::from_bits_truncate(flags),
            address: (address != u64::MAX).then_some(address),
        })
    }
}

impl Cap<PageTable> {
    /// Installs this table in an entry of `parent`, which is one level up. Rights: `WRITE`.
    /// Errors: `AlreadyMapped` (the entry or this table), `InvalidArgument`.
    pub fn install(self, parent: Cap<PageTable>, entry: u64) -> Result<(), Error> {
        // SAFETY: the kernel installs tables only in empty entries.
        unsafe { raw::call1(Operation::PageTableMap, self.raw(), parent.raw(), entry) }.done()
    }

    /// Removes this table from its parent. Rights: `WRITE`. Errors: `NotMapped`.
    pub fn uninstall(self) -> Result<(), Error> {
        // SAFETY: memory that this unmaps can no longer be accessed; an access ends the program.
        unsafe { raw::call0(Operation::PageTableUnmap, self.raw(), 0) }.done()
    }
}
