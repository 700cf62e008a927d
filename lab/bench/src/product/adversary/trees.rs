//! Workloads of capabilities in every shape: many, equal, nested, in cycles.

use tench::abi::object::{NODE_BITS, NODE_SLOTS, ROOT_MAX_BITS};
use tench::sys::{
    Cap, CapAddress, CapNode, Endpoint, Error, Frame, Kind, OWN_CSPACE, PageTable, Placement, Rights, Untyped,
};

use super::Arena;
use super::maps::RW;

/// Number of capabilities of the large workloads.
const MANY: usize = 100_000;
/// Nodes for half of them, in a CSpace whose root has 256 entries.
const NODES: u32 = (MANY / 2).div_ceil(NODE_SLOTS) as u32 + 1;

/// Returns where capability `i` lies. Slot 0 of a CSpace has no address, so its first node is left out.
fn address_of(cspaces: [Cap<CapNode>; 2], i: usize) -> (Cap<CapNode>, CapAddress) {
    let half = (NODES as usize - 1) * NODE_SLOTS;
    (cspaces[i / half], CapAddress((i % half + NODE_SLOTS) as u32))
}

impl Arena {
    pub fn cspaces(&mut self) -> Result<[Cap<CapNode>; 2], Error> {
        Ok([self.cspace(NODES)?, self.cspace(NODES)?])
    }

    /// Makes many objects. Returns the memory that they are made of.
    pub fn fill(&mut self, cspaces: [Cap<CapNode>; 2], kind: Kind, size: u64) -> Result<Cap<Untyped>, Error> {
        let memory = self.make::<Untyped>(24)?;
        for first in (0..MANY).step_by(NODE_SLOTS) {
            let (cspace, address) = address_of(cspaces, first);
            memory.retype_many(
                kind,
                size,
                (MANY - first).min(NODE_SLOTS) as u64,
                Placement::Watermark,
                cspace,
                address,
            )?;
        }
        Ok(memory)
    }

    /// Makes many objects, and deletes every seventh at random slots.
    fn many(&mut self, kind: Kind, size: u64) -> Result<(), Error> {
        let cspaces = self.cspaces()?;
        let memory = self.fill(cspaces, kind, size)?;
        let first = self.random.index(MANY);
        for i in (0..MANY).step_by(7) {
            let (cspace, address) = address_of(cspaces, (first + i * 31) % MANY);
            match cspace.delete_at(address) {
                // It may have been deleted before.
                Ok(_) | Err(Error::InvalidCapability) => {}
                Err(error) => return Err(error),
            }
        }
        memory.children()?;
        memory.revoke()?;
        Ok(())
    }
}

/// Makes many objects of one untyped.
pub fn wide(arena: &mut Arena) -> Result<(), Error> {
    arena.many(Kind::Notification, 0)
}

/// Makes many untypeds: the most expensive nodes of the tree.
pub fn blocks(arena: &mut Arena) -> Result<(), Error> {
    arena.many(Kind::Untyped, 4)
}

/// Makes many copies of one capability.
pub fn copies(arena: &mut Arena) -> Result<(), Error> {
    let cspaces = arena.cspaces()?;
    let endpoint = arena.make::<Endpoint>(0)?;
    for i in 0..MANY {
        let (cspace, address) = address_of(cspaces, i);
        cspace.copy_from(address, OWN_CSPACE, endpoint.address())?;
    }
    endpoint.revoke()?;
    Ok(())
}

/// Makes capabilities with a badge each, and copies of those; and frames with mappings between their capabilities.
pub fn badges(arena: &mut Arena) -> Result<(), Error> {
    let cspaces = arena.cspaces()?;
    let endpoint = arena.make::<Endpoint>(0)?;
    let (frame, table) = (arena.make::<Frame>(12)?, arena.make::<PageTable>(3)?);
    for i in 0..10_000 {
        let (cspace, address) = address_of(cspaces, 3 * i);
        let badge = arena.random.next() | 1;
        cspace.mint_from(address, OWN_CSPACE, endpoint.address(), Rights::all(), badge)?;
        let (cspace, copy) = address_of(cspaces, 3 * i + 1);
        cspace.copy_from(copy, cspace, address).or_else(|_| cspace.copy_from(copy, OWN_CSPACE, endpoint.address()))?;
        let (cspace, copy) = address_of(cspaces, 3 * i + 2);
        cspace.copy_from(copy, OWN_CSPACE, frame.address())?;
    }
    for entry in 0..200 {
        let slot = arena.slot();
        frame.map(table, entry, 1, 0, RW, slot)?;
    }
    let (cspace, first) = address_of(cspaces, 0);
    cspace.revoke_at(first)?;
    endpoint.revoke()?;
    frame.revoke()?;
    Ok(())
}

/// Makes deeply nested untypeds, with an object beside each.
pub fn deep(arena: &mut Arena) -> Result<(), Error> {
    let mut inner = arena.make::<Untyped>(28)?;
    let outer = inner;
    for bits in (6..28).rev() {
        let slot = arena.slots(2);
        inner.retype_many(Kind::Untyped, bits, 2, Placement::Watermark, OWN_CSPACE, slot)?;
        inner = Cap::new(CapAddress(slot.0 + 1));
        let beside = Cap::<Untyped>::new(slot);
        let object = arena.slots(2);
        beside.retype_many(Kind::Untyped, 4, 2, Placement::Watermark, OWN_CSPACE, object)?;
    }
    outer.children()?;
    outer.revoke()?;
    Ok(())
}

/// Deletes the last capability to a full node of full nodes.
pub fn nested_nodes(arena: &mut Arena) -> Result<(), Error> {
    let root = arena.cspace(64)?;
    let endpoint = arena.make::<Endpoint>(0)?;
    for i in NODE_SLOTS as u32..64 * NODE_SLOTS as u32 {
        // Every other capability is to an object of its own.
        if i % 2 == 0 {
            root.copy_from(CapAddress(i), OWN_CSPACE, endpoint.address())?;
        } else {
            arena.pool.retype_many(Kind::Notification, 0, 1, Placement::Watermark, root, CapAddress(i))?;
        }
    }
    root.delete()?;
    // A chain: each CSpace's node holds the last capability to the CSpace before.
    let mut before: Option<Cap<CapNode>> = None;
    for _ in 0..100 {
        let slot = arena.slots(2);
        let cspace = arena.pool.retype::<CapNode>(u64::from(NODE_BITS), slot)?;
        let node = arena.pool.retype::<CapNode>(u64::from(NODE_BITS), CapAddress(slot.0 + 1))?;
        cspace.install_node(1, node)?;
        if let Some(before) = before {
            cspace.move_from(CapAddress::new(1, 7), OWN_CSPACE, before.address())?;
        }
        before = Some(cspace);
    }
    if let Some(last) = before {
        last.delete()?;
    }
    Ok(())
}

/// Makes roots as large as can be, 4 MiB to be zeroed, and deletes them: empty, and with a few nodes.
pub fn largest_root(arena: &mut Arena) -> Result<(), Error> {
    const ENTRIES: u32 = 1 << ROOT_MAX_BITS;
    arena.make::<CapNode>(u64::from(ROOT_MAX_BITS))?.delete()?;
    let (root, endpoint) = (arena.make::<CapNode>(u64::from(ROOT_MAX_BITS))?, arena.make::<Endpoint>(0)?);
    let slot = arena.slot();
    for index in (0..ENTRIES).step_by(4999).chain([ENTRIES - 1]) {
        let node = arena.pool.retype::<CapNode>(u64::from(NODE_BITS), slot)?;
        root.install_node(index, node)?;
        root.copy_from(CapAddress::new(index, 7), OWN_CSPACE, endpoint.address())?;
    }
    root.identify_at(CapAddress::new(ENTRIES - 1, 7))?;
    root.delete()?;
    Ok(())
}

/// Makes nodes that hold their own last capabilities, alone and in rings.
pub fn cyclic_nodes(arena: &mut Arena) -> Result<(), Error> {
    for members in [1, 2, 3, 17] {
        let cspaces: [Option<Cap<CapNode>>; 17] = {
            let mut cspaces = [None; 17];
            for cspace in cspaces.iter_mut().take(members) {
                *cspace = Some(arena.cspace(1)?);
            }
            cspaces
        };
        for i in 0..members {
            if let (Some(cspace), Some(next)) = (cspaces[i], cspaces[(i + 1) % members]) {
                let node = arena.slot();
                let made = arena.pool.retype::<CapNode>(u64::from(NODE_BITS), node)?;
                cspace.install_node(1, made)?;
                cspace.copy_from(CapAddress::new(1, 5), OWN_CSPACE, next.address())?;
            }
        }
        // The capabilities outside are deleted; the last takes the ring along, or the revocation of the memory does.
        for cspace in cspaces.into_iter().flatten() {
            cspace.delete()?;
        }
    }
    Ok(())
}

/// Splits memory of which many objects were made.
pub fn divided(arena: &mut Arena) -> Result<(), Error> {
    let cspace = arena.cspace(40)?;
    let memory = arena.make::<Untyped>(24)?;
    for node in 1..40 {
        memory.retype_many(Kind::Notification, 0, 256, Placement::Watermark, cspace, CapAddress::new(node, 0))?;
    }
    for _ in 0..12 {
        let slot = arena.slot();
        memory.children()?;
        memory.split(slot)?.children()?;
    }
    Ok(())
}

/// Makes every kind of object, as many as one call makes, and one by one at offsets.
pub fn bundles(arena: &mut Arena) -> Result<(), Error> {
    let kinds = [
        (Kind::Untyped, 12),
        (Kind::Frame, 12),
        (Kind::Frame, 16),
        (Kind::PageTable, 0),
        (Kind::PageTable, 3),
        (Kind::CapNode, 8),
        (Kind::Thread, 0),
        (Kind::SchedulingContext, 0),
        (Kind::Endpoint, 0),
        (Kind::Reply, 0),
        (Kind::Notification, 0),
    ];
    let cspace = arena.cspace(kinds.len() as u32 + 2)?;
    for (index, (kind, size)) in kinds.into_iter().enumerate() {
        let memory = arena.make::<Untyped>(25)?;
        let address = |slot| CapAddress::new(index as u32 + 1, slot);
        memory.retype_many(kind, size, 256, Placement::Watermark, cspace, address(0))?;
        // Occupied slots are refused, wherever in the range they lie.
        cspace.delete_at(address(3))?;
        for count in [1, 2, 5, 253] {
            let refused = memory.retype_many(kind, size, count, Placement::Watermark, cspace, address(3));
            if count == 1 {
                refused?;
                cspace.delete_at(address(3))?;
            }
        }
        memory.revoke()?;
        for slot in (0..200).rev() {
            let bits = u64::from(kind.object_bits(size).unwrap_or(12));
            memory.retype_many(kind, size, 1, Placement::At(slot << bits), cspace, address(slot as u32))?;
        }
        for slot in 0..200 {
            cspace.delete_at(address(slot * 77 % 200))?;
        }
    }
    Ok(())
}
