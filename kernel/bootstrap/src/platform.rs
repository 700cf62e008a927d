//! The machine's description, from the device tree that the boot loader passed.
//!
//! It reads each node once and trusts the tree as far as it is well-formed: its author controlled the machine before
//! the kernel did. The result is a [`Platform`], plain values for [`plan`](crate::plan) and the drivers.
//!
//! Only children of the root are read. A bus is described by its address ranges (`ranges`); programs discover the
//! devices on it.

use arrayvec::ArrayVec;

use tench_abi::boot::Header;
use tench_abi::memory::PAGE_BITS;
use tench_arch_aarch64::conduit::Conduit;
use tench_arch_aarch64::layout::{LARGE_BITS, LineSet, MAX_BANKS, MAX_CORES, RAM_END, Region, TIMER_LINE};

use crate::tree::{Node, Tree, groups, number};

/// Maximum number of separate ranges of device registers, after adjacent ones have been joined.
pub const MAX_DEVICES: usize = 32;
/// Maximum number of cells in an address or a size.
const MAX_CELLS: u64 = 4;
/// Mask of the triggers that mean an edge, rising or falling, in an entry of `interrupts`.
const EDGES: u64 = 3;
/// The interrupt controller that the kernel drives.
const CONTROLLER: &str = "arm,gic-v3";
/// The firmware that switches cores on and off.
const FIRMWARE: [&str; 3] = ["arm,psci", "arm,psci-0.2", "arm,psci-1.0"];
/// The timer of each core.
const TIMERS: [&str; 2] = ["arm,armv8-timer", "arm,armv7-timer"];
/// Maximum number of ranges of redistributors.
pub const MAX_REDISTRIBUTORS: usize = 4;

/// A serial port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uart {
    /// Physical address of the registers.
    pub address: u64,
    /// Interrupt line.
    pub interrupt: u32,
}

/// A description of the machine.
#[derive(Clone, Debug, Default)]
pub struct Platform {
    /// RAM in whole large pages, by rising address.
    pub memory: ArrayVec<Region, MAX_BANKS>,
    /// Parts of RAM that the firmware reserves.
    pub reserved: ArrayVec<Region, MAX_BANKS>,
    /// Registers of devices other than the interrupt controller, in whole pages, by rising address, never adjacent.
    pub devices: ArrayVec<Region, MAX_DEVICES>,
    /// Lines of devices that are triggered by an edge rather than by a level.
    pub edges: LineSet,
    /// The initial RAM disk.
    pub ramdisk: Option<Region>,
    /// The device tree itself.
    pub device_tree: Region,
    /// The interrupt controller's distributor.
    pub distributor: Region,
    /// The interrupt controller's redistributors.
    pub redistributors: ArrayVec<Region, MAX_REDISTRIBUTORS>,
    /// The serial port for early output.
    pub uart: Option<Uart>,
    /// Interrupt line of the virtual timer.
    pub timer_interrupt: u32,
    /// Each core's affinity, as in `MPIDR_EL1`.
    pub cores: ArrayVec<u64, MAX_CORES>,
    /// Conduit for PSCI calls, if there is PSCI.
    pub power: Option<Conduit>,
}

/// The properties of a node, read in one pass.
#[derive(Default)]
struct Facts<'a> {
    compatible: &'a [u8],
    kind: &'a [u8],
    method: &'a [u8],
    status: &'a [u8],
    interrupts: &'a [u8],
    regions: u64,
    reg: &'a [u8],
    ranges: &'a [u8],
    initrd_start: Option<u64>,
    initrd_end: Option<u64>,
    address_cells: Option<u64>,
    size_cells: Option<u64>,
}

impl<'a> Facts<'a> {
    fn read(node: Node<'a>) -> Facts<'a> {
        let mut facts = Facts { regions: 1, ..Facts::default() };
        for (name, value) in node.properties() {
            match name {
                b"compatible" => facts.compatible = value,
                b"device_type" => facts.kind = value,
                b"method" => facts.method = value,
                b"status" => facts.status = value,
                b"interrupts" => facts.interrupts = value,
                b"reg" => facts.reg = value,
                b"ranges" => facts.ranges = value,
                b"linux,initrd-start" => facts.initrd_start = number(value),
                b"linux,initrd-end" => facts.initrd_end = number(value),
                b"#redistributor-regions" => facts.regions = number(value).unwrap_or(1),
                b"#address-cells" => facts.address_cells = number(value),
                b"#size-cells" => facts.size_cells = number(value),
                _ => {}
            }
        }
        facts
    }

    /// Returns whether the device is compatible with one of these.
    fn is(&self, wanted: &[&str]) -> bool {
        self.compatible.split(|byte| *byte == 0).any(|name| wanted.iter().any(|one| name == one.as_bytes()))
    }

    /// Returns whether the device can be used.
    fn is_enabled(&self) -> bool {
        matches!(self.status, b"" | b"okay\0" | b"ok\0")
    }

    /// Returns the numbers of cells in addresses and sizes of the node's children.
    fn cells(&self) -> [usize; 2] {
        [self.address_cells.unwrap_or(2), self.size_cells.unwrap_or(1)].map(|count| count.min(MAX_CELLS) as usize)
    }

    /// Returns the ranges in `reg`, for a child of a node with these cell counts for addresses and sizes.
    fn regions(&self, cells: [usize; 2]) -> impl Iterator<Item = Region> + use<'a> {
        groups(self.reg, cells).filter_map(region)
    }

    /// Returns the ranges of addresses that a bus forwards.
    fn windows(&self, cells: [usize; 2]) -> impl Iterator<Item = Region> + use<'a> {
        // On every relevant machine the bus's own sizes have as many cells as those of its parent.
        let [child, _] = self.cells();
        groups(self.ranges, [child, cells[0], cells[1]]).filter_map(|[_, start, size]| region([start, size]))
    }

    /// Returns the interrupt line in entry `index`, which has a cell each for kind, number and trigger.
    fn interrupt(&self, index: usize) -> Option<u32> {
        let entry = self.interrupts.get(index * 12..index * 12 + 12)?;
        let line = number(entry.get(4..8)?)? as u32;
        match number(entry.get(..4)?)? {
            0 => line.checked_add(32),
            1 => line.checked_add(16),
            _ => None,
        }
    }

    /// Returns whether an edge triggers the line in entry `index`.
    fn is_edge(&self, index: usize) -> bool {
        let trigger = self.interrupts.get(index * 12 + 8..index * 12 + 12).and_then(number);
        trigger.is_some_and(|trigger| trigger & EDGES != 0)
    }
}

/// Returns a range of addresses, if it is valid and not empty.
fn region([start, size]: [Option<u64>; 2]) -> Option<Region> {
    Region::new(start?, size?).filter(|region| !region.is_empty())
}

/// Returns whether a child of the root is a device or a bus, as [`Platform::read`] takes it.
fn is_device(node: Node<'_>, facts: &Facts<'_>) -> bool {
    let describes_more = matches!(node.name_without_address(), b"chosen" | b"cpus" | b"reserved-memory");
    let is_the_kernels = facts.is(&[CONTROLLER]) || facts.is(&FIRMWARE) || facts.is(&TIMERS);
    facts.is_enabled() && facts.kind != b"memory\0" && !describes_more && !is_the_kernels
}

impl Platform {
    /// Reads the device tree, which lies at `address`. What it lacks, [`check`](Platform::check) says.
    ///
    /// # Errors
    /// A sentence, if the tree cannot be understood.
    pub fn read(tree: &[u8], address: u64) -> Result<Platform, &'static str> {
        let tree_region = Region::new(address, tree.len() as u64).ok_or("the device tree lies nowhere")?;
        let tree = Tree::new(tree).ok_or("the device tree is damaged")?;
        let mut platform = Platform { device_tree: tree_region, ..Platform::default() };
        for reserved in tree.reservations().filter_map(region) {
            insert(&mut platform.reserved, reserved.widen(PAGE_BITS))
                .map_err(|()| "firmware reserves too many ranges of memory")?;
        }
        let root = tree.root().ok_or("the device tree is damaged")?;
        let cells = Facts::read(root).cells();
        for node in root.children() {
            let facts = Facts::read(node);
            if facts.is_enabled() {
                platform.add(node, &facts, cells)?;
            }
        }
        Ok(platform)
    }

    /// Adds the description in one node.
    fn add(&mut self, node: Node<'_>, facts: &Facts<'_>, cells: [usize; 2]) -> Result<(), &'static str> {
        if facts.kind == b"memory\0" {
            for region in facts.regions(cells) {
                let region = Region { end: region.end.min(RAM_END), ..region }.narrow(LARGE_BITS);
                insert(&mut self.memory, region).map_err(|()| "there are too many banks of memory")?;
            }
            return Ok(());
        }
        match node.name_without_address() {
            b"chosen" => {
                self.ramdisk = match (facts.initrd_start, facts.initrd_end) {
                    (Some(start), Some(end)) => Some(Region { start, end }).filter(|region| !region.is_empty()),
                    _ => None,
                };
                return Ok(());
            }
            b"cpus" => return self.add_cores(node, facts),
            b"reserved-memory" => return self.add_reserved(node, facts),
            _ => {}
        }
        if facts.is(&FIRMWARE) {
            let hypervisor = facts.method == b"hvc\0";
            self.power = Some(if hypervisor { Conduit::Hypervisor } else { Conduit::SecureMonitor });
        } else if facts.is(&TIMERS) {
            // In order: secure, non-secure, virtual, hypervisor.
            self.timer_interrupt = facts.interrupt(2).unwrap_or(0);
        } else if facts.is(&[CONTROLLER]) {
            let mut regions = facts.regions(cells);
            self.distributor = regions.next().unwrap_or_default();
            self.redistributors.extend(regions.take((facts.regions as usize).min(MAX_REDISTRIBUTORS)));
        } else {
            self.add_device(facts, cells)?;
        }
        Ok(())
    }

    /// Adds a device or a bus.
    fn add_device(&mut self, facts: &Facts<'_>, cells: [usize; 2]) -> Result<(), &'static str> {
        if facts.is(&["arm,pl011"]) {
            let registers = facts.regions(cells).next();
            let uart = registers
                .map(|registers| Uart { address: registers.start, interrupt: facts.interrupt(0).unwrap_or(0) });
            self.uart = match (self.uart, uart) {
                (Some(known), Some(new)) if known.address < new.address => Some(known),
                (known, new) => new.or(known),
            };
        }
        for (index, line) in (0..).map_while(|index| Some((index, facts.interrupt(index)?))) {
            if facts.is_edge(index) {
                self.edges.insert(line);
            }
        }
        self.add_registers(facts, cells)
    }

    /// Adds the registers of a device or a bus.
    #[inline(never)]
    fn add_registers(&mut self, facts: &Facts<'_>, cells: [usize; 2]) -> Result<(), &'static str> {
        for region in facts.regions(cells).chain(facts.windows(cells)) {
            insert(&mut self.devices, region.widen(PAGE_BITS)).map_err(|()| "there are too many devices")?;
        }
        Ok(())
    }

    /// Keeps only the devices that belong to a core: a device belongs to the core of its first line, or to the first
    /// core if it has no line. A page that holds registers of several cores' devices is kept on each of them.
    ///
    /// # Errors
    /// A sentence, if the tree cannot be understood.
    pub fn keep_devices(&mut self, tree: &[u8], header: &Header, core: u64) -> Result<(), &'static str> {
        if header.line_owners.iter().all(|owner| *owner == 0) {
            self.devices.retain(|_| core == 0);
            return Ok(());
        }
        let root = root(tree).ok_or("the device tree is damaged")?;
        let cells = Facts::read(root).cells();
        self.devices.clear();
        for node in root.children() {
            let facts = Facts::read(node);
            if is_device(node, &facts) && header.owner(facts.interrupt(0)) == core {
                self.add_registers(&facts, cells)?;
            }
        }
        Ok(())
    }

    /// Adds `/cpus`. Cores beyond the maximum are left out: they cannot be started then.
    fn add_cores(&mut self, node: Node<'_>, facts: &Facts<'_>) -> Result<(), &'static str> {
        let cells = facts.address_cells.unwrap_or(1).min(MAX_CELLS) as usize;
        for child in node.children() {
            let core = Facts::read(child);
            if core.kind != b"cpu\0" {
                continue;
            }
            let [number] = groups(core.reg, [cells]).next().ok_or("a core has no number")?;
            let _ = self.cores.try_push(number.ok_or("a core has a malformed number")?);
        }
        Ok(())
    }

    /// Adds `/reserved-memory`.
    fn add_reserved(&mut self, node: Node<'_>, facts: &Facts<'_>) -> Result<(), &'static str> {
        for child in node.children() {
            for region in Facts::read(child).regions(facts.cells()) {
                insert(&mut self.reserved, region.widen(PAGE_BITS))
                    .map_err(|()| "firmware reserves too many ranges of memory")?;
            }
        }
        Ok(())
    }

    /// Checks that the description, which is that of `tree`, has everything that the kernel needs.
    ///
    /// # Errors
    /// A sentence that says what the tree has or lacks, and what is needed.
    pub fn check(&self, tree: &[u8]) -> Result<(), &'static str> {
        if self.memory.is_empty() {
            return Err("its device tree names no memory");
        }
        if self.distributor.is_empty() || self.redistributors.is_empty() {
            return Err(if has_old_controller(tree) {
                "it has a GICv2 interrupt controller, and Tench needs a GICv3"
            } else {
                "its device tree names no interrupt controller that Tench knows, and Tench needs a GICv3"
            });
        }
        match self.timer_interrupt {
            TIMER_LINE => Ok(()),
            0 => Err("its device tree names no timer that Tench knows, and Tench needs Arm's generic timer"),
            _ => Err("its virtual timer has another interrupt line than 27, where Arm's systems have it"),
        }
    }
}

/// Returns the root of a device tree.
fn root(tree: &[u8]) -> Option<Node<'_>> {
    Tree::new(tree)?.root()
}

/// Returns whether a device tree names an interrupt controller of version 2.
fn has_old_controller(tree: &[u8]) -> bool {
    let names = ["arm,cortex-a15-gic", "arm,cortex-a9-gic", "arm,cortex-a7-gic", "arm,gic-400"];
    root(tree).is_some_and(|root| root.children().any(|node| Facts::read(node).is(&names)))
}

/// Returns the board's name in a device tree, if it has one.
pub fn board(tree: &[u8]) -> Option<&str> {
    let names = Facts::read(root(tree)?).compatible;
    names.split(|byte| *byte == 0).next().and_then(|name| str::from_utf8(name).ok())
}

/// Inserts a range into a sorted list and joins it with adjacent ones. Leaves out empty ranges.
fn insert<const N: usize>(list: &mut ArrayVec<Region, N>, mut region: Region) -> Result<(), ()> {
    if region.is_empty() {
        return Ok(());
    }
    let first = list.iter().position(|other| other.end >= region.start).unwrap_or(list.len());
    while let Some(other) = list.get(first).filter(|other| other.start <= region.end) {
        region = Region { start: region.start.min(other.start), end: region.end.max(other.end) };
        list.remove(first);
    }
    list.try_insert(first, region).map_err(|_| ())
}

#[cfg(test)]
mod tests {
    use tench_abi::boot::{MAGIC, VERSION};
    use tench_abi::object::LINES;

    use super::*;

    /// The device tree of QEMU's `virt`.
    const TREE: &[u8] = include_bytes!("../../../user/servers/init/tests/virt.dtb");
    /// Registers of the serial port, the clock and the pins, and the pages of the virtio transports' registers.
    const SERIAL: u64 = 0x900_0000;
    const CLOCK: u64 = 0x901_0000;
    const PINS: u64 = 0x903_0000;
    const VIRTIO: [u64; 4] = [0xa00_0000, 0xa00_1000, 0xa00_2000, 0xa00_3000];

    /// Returns a function that tells whether `core` has the registers at an address, if these lines belong to core 1.
    fn has(lines: &[usize], core: u64) -> impl Fn(u64) -> bool {
        let mut header = Header {
            magic: MAGIC,
            version: VERSION,
            entry: 0,
            segment_count: 0,
            segments: Default::default(),
            archive_offset: 0,
            archive_size: 0,
            line_owners: [0; LINES],
        };
        lines.iter().for_each(|line| header.line_owners[*line] = 1);
        let mut platform = Platform::read(TREE, 0x4800_0000).unwrap();
        platform.keep_devices(TREE, &header, core).unwrap();
        move |address| platform.devices.iter().any(|one| (one.start..one.end).contains(&address))
    }

    #[test]
    fn each_device_belongs_to_one_core() {
        let all = [SERIAL, CLOCK, PINS].into_iter().chain(VIRTIO);
        let (first, other) = (has(&[], 0), has(&[], 1));
        assert!(all.clone().all(|device| first(device) && !other(device)));

        let [first, second, third] = [0, 1, 2].map(|core| has(&[39], core));
        assert!(all.clone().all(|device| first(device) == (device != PINS)));
        assert!(all.clone().all(|device| second(device) == (device == PINS)));
        assert!(!all.clone().any(third));
        // A device without a line is the first core's.
        let flash = 0;
        assert!(first(flash) && !second(flash));
    }

    #[test]
    fn a_page_with_devices_of_two_cores_is_kept_by_both() {
        let [first, second] = [0, 1].map(|core| has(&[79], core));
        assert_eq!(VIRTIO.map(&first), [true; 4]);
        assert_eq!(VIRTIO.map(&second), [false, false, false, true]);
        let lines: [usize; 8] = core::array::from_fn(|index| 48 + index);
        let [first, second] = [0, 1].map(|core| has(&lines, core));
        assert_eq!(VIRTIO.map(&first), [false, true, true, true]);
        assert_eq!(VIRTIO.map(&second), [true, false, false, false]);
    }

    #[test]
    fn the_tree_says_which_lines_an_edge_triggers() {
        let platform = Platform::read(TREE, 0x4800_0000).unwrap();
        assert!((32..LINES as u32).all(|line| platform.edges.contains(line) == (48..80).contains(&line)));
    }
}
