//! The model: a table of capabilities, and a table of objects that know what they were made of.

use std::collections::BTreeMap;

use tench_abi::layout::WATERMARK;
use tench_abi::{Error, Kind, Rights};
use tench_arch_host::memory::RAM_START;
use tench_kernel::thread::OBJECT_SIZE;

/// An object: its kind, and what it was made of.
#[derive(Clone, Debug)]
pub struct Object {
    pub kind: Kind,
    pub start: u64,
    pub bits: u32,
    pub parent: Option<usize>,
    pub watermark: u64,
    /// Set for device memory and for memory whose contents are kept.
    pub kept: bool,
    pub device: bool,
    /// Set if the object was imported from another core.
    pub borrowed: bool,
}

/// Size of RAM in bytes.
const RAM_SIZE: u64 = 32 << 20;
/// Log2 of the smallest untyped's size.
const MIN_BITS: u32 = 4;

impl Object {
    fn end(&self) -> u64 {
        self.start + (1 << self.bits)
    }
}

/// A capability.
#[derive(Clone, Debug)]
pub struct Known {
    pub object: usize,
    rights: u8,
    badge: u64,
    original: bool,
    badge_origin: bool,
    /// Set if the capability is exported to other cores.
    pub exported: bool,
    pub revoke_requested: bool,
}

/// The model's state.
#[derive(Default)]
pub struct Model {
    pub objects: BTreeMap<usize, Object>,
    pub caps: BTreeMap<u64, Known>,
    made: usize,
}

/// The result of a call: an error, or `x1` and the following registers.
pub type CallResult = Result<Vec<u64>, Error>;

impl Model {
    pub fn add(&mut self, object: Object, address: u64) {
        self.made += 1;
        self.objects.insert(self.made, object);
        let known = Known {
            object: self.made,
            rights: Rights::all().bits(),
            badge: 0,
            original: true,
            badge_origin: false,
            exported: false,
            revoke_requested: false,
        };
        self.caps.insert(address, known);
    }

    fn cap(&self, address: u64) -> Result<&Known, Error> {
        self.caps.get(&address).ok_or(Error::InvalidCapability)
    }

    pub fn object(&self, known: &Known) -> &Object {
        &self.objects[&known.object]
    }

    fn destination(&self, address: u64) -> Result<(), Error> {
        if address >= 256 {
            return Err(Error::NoSuchSlot);
        }
        if self.caps.contains_key(&address) { Err(Error::SlotOccupied) } else { Ok(()) }
    }

    pub fn retype(&mut self, from: u64, kind: Kind, size: u64, count: u64, placement: u64, first: u64) -> CallResult {
        let untyped = self.cap(from)?.clone();
        let source = self.object(&untyped).clone();
        if source.kind != Kind::Untyped {
            return Err(Error::WrongType);
        }
        if untyped.exported {
            return Err(Error::Lent);
        }
        let bits = kind.object_bits(size).ok_or(Error::InvalidArgument)?;
        if source.kept && !matches!(kind, Kind::Untyped | Kind::Frame) {
            return Err(Error::DeviceMemory);
        }
        if count == 0 || count > 256 {
            return Err(Error::InvalidArgument);
        }
        let one = 1u64 << bits;
        let offset = if placement == WATERMARK { source.watermark.next_multiple_of(one) } else { placement };
        if offset % one != 0 {
            return Err(Error::Misaligned);
        }
        if u128::from(offset) + u128::from(count) * u128::from(one) > 1 << source.bits {
            return Err(Error::OutOfMemory);
        }
        let (start, end) = (source.start + offset, source.start + offset + count * one);
        let children = self.objects.values().filter(|child| child.parent == Some(untyped.object));
        if children.into_iter().any(|child| child.start < end && child.end() > start) {
            return Err(Error::Overlap);
        }
        if first >= 256 || (first & 255) + count > 256 {
            return Err(Error::NoSuchSlot);
        }
        (first..first + count).try_for_each(|address| self.destination(address))?;
        if placement == WATERMARK {
            self.objects.get_mut(&untyped.object).expect("it exists").watermark = offset + count * one;
        }
        for i in 0..count {
            let parent = Some(untyped.object);
            let object = Object { kind, start: start + i * one, bits, parent, watermark: 0, borrowed: false, ..source };
            self.add(object, first + i);
        }
        Ok(vec![offset])
    }

    pub fn split(&mut self, address: u64, to: u64) -> CallResult {
        let known = self.cap(address)?.clone();
        let mut lower = self.object(&known).clone();
        if lower.kind != Kind::Untyped {
            return Err(Error::WrongType);
        }
        if known.exported {
            return Err(Error::Lent);
        }
        if lower.bits == MIN_BITS {
            return Err(Error::InvalidArgument);
        }
        let half = 1u64 << (lower.bits - 1);
        let middle = lower.start + half;
        let children: Vec<usize> =
            self.objects.iter().filter(|(_, child)| child.parent == Some(known.object)).map(|(id, _)| *id).collect();
        if children.iter().any(|id| self.objects[id].start < middle && self.objects[id].end() > middle) {
            return Err(Error::Overlap);
        }
        self.destination(to)?;
        let (below, above): (Vec<usize>, Vec<usize>) =
            children.into_iter().partition(|id| self.objects[id].start < middle);
        lower.bits -= 1;
        let mut upper = Object { start: middle, ..lower.clone() };
        upper.watermark = if above.is_empty() { 0 } else { lower.watermark.saturating_sub(half) };
        lower.watermark = if below.is_empty() { 0 } else { lower.watermark.min(half) };
        self.objects.insert(known.object, lower);
        self.add(upper, to);
        for id in above {
            self.objects.get_mut(&id).expect("it exists").parent = Some(self.made);
        }
        Ok(vec![])
    }

    pub fn children(&self, address: u64) -> CallResult {
        let known = self.cap(address)?;
        if self.object(known).kind != Kind::Untyped {
            return Err(Error::WrongType);
        }
        if known.rights & Rights::READ.bits() == 0 {
            return Err(Error::MissingRights);
        }
        let children = self.objects.values().filter(|child| child.parent == Some(known.object));
        let sizes: Vec<u64> = children.map(|child| 1 << child.bits).collect();
        Ok(vec![sizes.len() as u64, sizes.iter().sum()])
    }

    pub fn mint(&mut self, from: u64, to: u64, mask: u64, badge: u64) -> CallResult {
        let mut known = self.cap(from)?.clone();
        self.destination(to)?;
        let kind = self.object(&known).kind;
        if matches!(kind, Kind::Untyped | Kind::Mapping) {
            return Err(Error::NotCopyable);
        }
        known.original = false;
        known.badge_origin = false;
        (known.exported, known.revoke_requested) = (false, false);
        known.rights &= mask as u8;
        if badge != 0 {
            if !matches!(kind, Kind::Endpoint | Kind::Notification | Kind::Kernel) || known.badge != 0 {
                return Err(Error::InvalidArgument);
            }
            known.badge = badge;
            known.badge_origin = true;
        }
        self.caps.insert(to, known);
        Ok(vec![])
    }

    pub fn shift(&mut self, from: u64, to: u64) -> CallResult {
        let known = self.cap(from)?.clone();
        self.destination(to)?;
        self.caps.remove(&from);
        self.caps.insert(to, known);
        Ok(vec![])
    }

    /// Removes a capability, and its object if this was the last. Returns that object, unless its children remain.
    fn remove(&mut self, address: u64) -> Option<Object> {
        let known = self.caps.remove(&address).expect("it exists");
        if self.caps.values().any(|other| other.object == known.object) {
            return None;
        }
        let object = self.objects.remove(&known.object).expect("it exists");
        let mut has_children = false;
        for child in self.objects.values_mut().filter(|child| child.parent == Some(known.object)) {
            child.parent = object.parent;
            has_children = true;
        }
        if let Some(parent) = object.parent
            && !self.objects.values().any(|sibling| sibling.parent == Some(parent))
            && let Some(parent) = self.objects.get_mut(&parent)
        {
            parent.watermark = 0;
        }
        if has_children { None } else { Some(object) }
    }

    pub fn delete(&mut self, address: u64) -> CallResult {
        if self.cap(address)?.exported {
            self.request_revoke(address);
            return Err(Error::RemoteCopies);
        }
        Ok(match self.remove(address) {
            Some(object) => vec![1, object.start, object.bits.into()],
            None => vec![0],
        })
    }

    fn descends(&self, object: usize, ancestor: usize) -> bool {
        let mut at = self.objects[&object].parent;
        while let Some(parent) = at {
            if parent == ancestor {
                return true;
            }
            at = self.objects[&parent].parent;
        }
        false
    }

    pub fn revoke(&mut self, address: u64) -> CallResult {
        let known = self.cap(address)?.clone();
        let untyped = self.object(&known).kind == Kind::Untyped;
        let goes = |other: &Known| {
            if untyped {
                self.descends(other.object, known.object)
            } else {
                known.original && other.object == known.object
                    || known.badge_origin && other.object == known.object && other.badge == known.badge
            }
        };
        let victims: Vec<u64> =
            self.caps.iter().filter(|(at, other)| **at != address && goes(other)).map(|(at, _)| *at).collect();
        let (stay, go): (Vec<u64>, Vec<u64>) = victims.into_iter().partition(|victim| self.caps[victim].exported);
        for victim in &go {
            self.remove(*victim);
        }
        let all = stay.iter().copied().chain(known.exported.then_some(address));
        let is_over = all.map(|stays| self.request_revoke(stays)).count() == 0;
        if is_over { Ok(vec![go.len() as u64]) } else { Err(Error::RemoteCopies) }
    }

    /// Records that revocation of an exported capability was requested.
    fn request_revoke(&mut self, address: u64) {
        self.caps.get_mut(&address).expect("it exists").revoke_requested = true;
    }

    pub fn identify(&self, address: u64) -> CallResult {
        let Ok(known) = self.cap(address) else { return Ok(vec![0; 5]) };
        let object = self.object(known);
        let physical = if matches!(object.kind, Kind::Untyped | Kind::Frame) { object.start } else { 0 };
        Ok(vec![object.kind as u64, known.rights.into(), object.bits.into(), known.badge, physical])
    }

    pub fn query(&self, address: u64) -> CallResult {
        let known = self.cap(address)?;
        let object = self.object(known);
        if object.kind != Kind::Untyped {
            return Err(Error::WrongType);
        }
        if known.rights & Rights::READ.bits() == 0 {
            return Err(Error::MissingRights);
        }
        Ok(vec![object.bits.into(), object.watermark])
    }

    pub fn export(&mut self, address: u64) -> CallResult {
        let known = self.cap(address)?.clone();
        let object = self.object(&known);
        if !matches!(object.kind, Kind::Untyped | Kind::Frame) {
            return Err(Error::WrongType);
        }
        if known.exported {
            return Err(Error::Lent);
        }
        if object.borrowed {
            return Err(Error::Borrowed);
        }
        if object.device {
            return Err(Error::DeviceMemory);
        }
        if self.has_children(known.object) {
            return Err(Error::Busy);
        }
        if self.caps.values().any(|other| other.object == known.object && other.exported) {
            return Err(Error::Lent);
        }
        self.mark(address, true);
        Ok(vec![])
    }

    pub fn unexport(&mut self, address: u64) -> CallResult {
        let known = self.cap(address)?;
        if !known.exported {
            return Err(Error::NotExported);
        }
        if self.has_children(known.object) {
            return Err(Error::Busy);
        }
        self.mark(address, false);
        Ok(vec![])
    }

    /// Sets or clears the exported flag of a capability.
    fn mark(&mut self, address: u64, exported: bool) {
        let known = self.caps.get_mut(&address).expect("it exists");
        (known.exported, known.revoke_requested) = (exported, false);
        if self.objects[&known.object].kind == Kind::Untyped {
            known.rights ^= Rights::WRITE.bits();
        }
    }

    fn has_children(&self, object: usize) -> bool {
        self.objects.values().any(|child| child.parent == Some(object))
    }

    pub fn import(&mut self, kind: Kind, start: u64, size: u64, rights: u64, to: u64) -> CallResult {
        if !matches!(kind, Kind::Untyped | Kind::Frame) {
            return Err(Error::InvalidArgument);
        }
        let bits = kind.object_bits(size).ok_or(Error::InvalidArgument)?;
        let all = u64::from(Rights::all().bits());
        if rights > all || kind == Kind::Untyped && rights != all {
            return Err(Error::InvalidArgument);
        }
        let end = start + (1 << bits);
        if !start.is_multiple_of(1 << bits) {
            return Err(Error::Misaligned);
        }
        if start < RAM_START || end > RAM_START + RAM_SIZE {
            return Err(Error::InvalidArgument);
        }
        if start < RAM_START + OBJECT_SIZE as u64 {
            return Err(Error::Overlap);
        }
        self.destination(to)?;
        let parent = self.lent_around(start, end)?;
        let object = Object { kind, start, bits, parent, watermark: 0, kept: false, device: false, borrowed: true };
        self.add(object, to);
        self.caps.get_mut(&to).expect("just made").rights = rights as u8;
        Ok(vec![])
    }

    /// Returns the exported object that contains this range, if any object overlaps the range.
    fn lent_around(&self, start: u64, end: u64) -> Result<Option<usize>, Error> {
        let overlapping = self.objects.iter().filter(|(_, object)| object.start < end && object.end() > start);
        let overlapping: Vec<usize> = overlapping.map(|(id, _)| *id).collect();
        if overlapping.is_empty() {
            return Ok(None);
        }
        let is_lent = |id: usize| self.caps.values().any(|known| known.object == id && known.exported);
        let innermost = overlapping.iter().copied().find(|id| {
            let object = &self.objects[id];
            let contains = object.start <= start && end <= object.end();
            let all_around = overlapping.iter().all(|other| other == id || self.descends(*id, *other));
            object.kind == Kind::Untyped && contains && is_lent(*id) && all_around
        });
        innermost.map(Some).ok_or(Error::Overlap)
    }

    pub fn holders(&self, address: u64) -> CallResult {
        let known = self.cap(address)?;
        let object = self.object(known);
        let others = match object.kind {
            Kind::Untyped => self.has_children(known.object),
            _ => {
                let is_like = |other: &&Known| known.badge == 0 || other.badge == known.badge;
                self.caps.values().filter(|other| other.object == known.object).filter(is_like).count() > 1
            }
        };
        let physical = if matches!(object.kind, Kind::Endpoint | Kind::Notification) { object.start } else { 0 };
        let exported = u64::from(known.exported) + u64::from(known.revoke_requested);
        Ok(vec![u64::from(others), exported, u64::from(object.borrowed), physical])
    }
}
