//! Lookup of a device's registers and interrupt line in the device tree.
//!
//! The tree is the machine's own description and is trusted as far as it is well-formed. Interrupt numbers are those of
//! Arm's generic interrupt controller: three cells give kind, number and trigger.

use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::standard::NodeStandard;
use dtoolkit::{Node, Property};
use tench_system::Device;

/// Resources of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceResources {
    /// Physical address of the registers.
    pub address: u64,
    /// Size of the registers in bytes.
    pub size: u64,
    /// The interrupt line in the kernel's numbering.
    pub interrupt: u64,
    /// Set if the line is triggered by an edge rather than by a level.
    pub edge: bool,
}

/// First number of interrupts that all cores share.
const FIRST_SHARED: u32 = tench_abi::object::FIRST_DEVICE_LINE as u32;
/// First number of interrupts that are private to a core.
const FIRST_PRIVATE: u32 = 16;
/// Trigger types of the interrupt controller's third cell that mean an edge: rising or falling.
const EDGES: u32 = 3;

/// The machine's device tree. It is checked once, because that takes a look at every property.
#[derive(Clone, Copy, Debug)]
pub struct DeviceTree<'a> {
    /// The tree, unless it is damaged.
    tree: Option<Fdt<'a>>,
}

impl<'a> DeviceTree<'a> {
    /// Reads a device tree. A damaged one, or none, has no devices and no seed.
    pub fn new(bytes: &'a [u8]) -> DeviceTree<'a> {
        DeviceTree { tree: Fdt::new(bytes).ok() }
    }

    /// Returns the resources of `device`, or `None` if the machine has no such device.
    pub fn find(&self, device: Device) -> Option<DeviceResources> {
        let tree = self.tree.as_ref()?;
        // Devices of one kind are counted by increasing address, whatever their order in the tree.
        let mut lowest = 0;
        let mut found = None;
        for _ in 0..=device.position() {
            let all = tree.root().children().filter(|node| node.is_compatible(device.compatible()));
            let above = all.filter_map(resources).filter(|resources| resources.address >= lowest);
            found = above.min_by_key(|resources| resources.address);
            lowest = found?.address + 1;
        }
        found
    }

    /// Returns the random bytes that the boot loader has put into the tree; missing ones are zeros.
    pub fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        let chosen = self.tree.as_ref().and_then(|tree| tree.root().children().find(|node| node.name() == "chosen"));
        if let Some(property) = chosen.and_then(|node| node.property("rng-seed")) {
            seed.iter_mut().zip(property.value()).for_each(|(to, byte)| *to = *byte);
        }
        seed
    }
}

/// Returns the resources in a device's node.
fn resources(node: FdtNode<'_>) -> Option<DeviceResources> {
    let registers = node.reg().ok()??.next()?;
    let interrupts = node.property("interrupts")?;
    let mut cells =
        interrupts.value().chunks_exact(4).map(|cell| u32::from_be_bytes([cell[0], cell[1], cell[2], cell[3]]));
    let (kind, number, trigger) = (cells.next()?, cells.next()?, cells.next()?);
    let first = match kind {
        0 => FIRST_SHARED,
        1 => FIRST_PRIVATE,
        _ => return None,
    };
    Some(DeviceResources {
        address: registers.address().ok()?,
        size: registers.size().ok()?,
        interrupt: u64::from(first.checked_add(number)?),
        edge: trigger & EDGES != 0,
    })
}
