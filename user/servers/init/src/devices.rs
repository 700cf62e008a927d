//! Capabilities to devices: frames with their registers, and interrupt lines.

use arrayvec::ArrayVec;
use tench_abi::boot::{BootInfo, MAX_UNTYPED, MemoryKind};
use tench_abi::layout::slot;
use tench_abi::memory::PAGE_BITS;
use tench_abi::{CapAddress, Kind};
use tench_init::device_tree::{DeviceResources, DeviceTree};
use tench_loader::Resources;
use tench_sys::device::Trigger;
use tench_sys::{Cap, InterruptControl, OWN_CSPACE, Placement};
use tench_system::Device;

use crate::failure::Failure;
use crate::pool::{Pool, untyped_capability};

/// Maximum number of devices, of their frames, and of interrupts.
const MAX_DEVICES: usize = 64;

/// The devices of the machine that the description names.
pub struct Devices<'a> {
    info: &'a BootInfo,
    tree: DeviceTree<'a>,
    /// Devices that have been looked up in the tree.
    known: ArrayVec<(Device, DeviceResources), MAX_DEVICES>,
    /// Frames by physical address. Devices can share a page.
    frames: ArrayVec<(u64, CapAddress), MAX_DEVICES>,
    /// Interrupts by number.
    interrupts: ArrayVec<(u64, CapAddress), MAX_DEVICES>,
}

impl<'a> Devices<'a> {
    /// Returns the devices in the machine's device tree.
    pub fn new(info: &'a BootInfo) -> Devices<'a> {
        let bytes = if info.device_tree == 0 {
            &[][..]
        } else {
            let bytes = core::ptr::with_exposed_provenance::<u8>(info.device_tree as usize);
            // SAFETY: the kernel has mapped the device tree there, read-only and for ever.
            unsafe { core::slice::from_raw_parts(bytes, info.device_tree_size as usize) }
        };
        let tree = DeviceTree::new(bytes);
        Devices { info, tree, known: ArrayVec::new(), frames: ArrayVec::new(), interrupts: ArrayVec::new() }
    }

    /// Returns the random bytes that the machine's boot loader provides.
    pub fn seed(&self) -> [u8; 32] {
        self.tree.seed()
    }

    fn resources(&mut self, device: Device, program: &'static str) -> Result<DeviceResources, Failure> {
        if let Some((_, resources)) = self.known.iter().find(|(known, _)| *known == device) {
            return Ok(*resources);
        }
        let resources = self.tree.find(device).ok_or(Failure::NoDevice(program))?;
        self.known.try_push((device, resources)).map_err(|_| Failure::TooMuch(program))?;
        Ok(resources)
    }

    /// Returns the frame with a device's registers.
    pub fn frame(&mut self, pool: &mut Pool, device: Device, program: &'static str) -> Result<CapAddress, Failure> {
        let resources = self.resources(device, program)?;
        // The smallest aligned power of two of pages that contains all registers.
        let mut bits = PAGE_BITS;
        while resources.address >> bits != (resources.address + resources.size.max(1) - 1) >> bits {
            bits += 1;
        }
        let start = resources.address >> bits << bits;
        if let Some((_, cap)) = self.frames.iter().find(|(address, _)| *address == start) {
            return Ok(*cap);
        }
        let number = self.untyped_at(start, bits).ok_or(Failure::OtherCore(program))?;
        let offset = start - self.info.untyped[number].address;
        let frame = pool.slot().map_err(|error| Failure::Load(program, error))?;
        untyped_capability(number)
            .retype_many(Kind::Frame, u64::from(bits), 1, Placement::At(offset), OWN_CSPACE, frame)
            .map_err(|error| Failure::Kernel("making a device's frame", error))?;
        self.frames.try_push((start, frame)).map_err(|_| Failure::TooMuch(program))?;
        Ok(frame)
    }

    /// Returns the device memory that contains 2^`bits` bytes from `start` on.
    fn untyped_at(&self, start: u64, bits: u32) -> Option<usize> {
        let count = (self.info.untyped_count as usize).min(MAX_UNTYPED);
        self.info.untyped.iter().take(count).position(|block| {
            let contains = start >= block.address && start + (1 << bits) <= block.address + (1 << block.size_bits);
            block.kind == MemoryKind::Device as u32 && contains
        })
    }

    /// Returns a device's interrupt line.
    pub fn interrupt(&mut self, pool: &mut Pool, device: Device, program: &'static str) -> Result<CapAddress, Failure> {
        let resources = self.resources(device, program)?;
        if let Some((_, cap)) = self.interrupts.iter().find(|(number, _)| *number == resources.interrupt) {
            return Ok(*cap);
        }
        let interrupt = pool.slot().map_err(|error| Failure::Load(program, error))?;
        let trigger = if resources.edge { Trigger::Edge } else { Trigger::Level };
        Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL)
            .get(resources.interrupt, trigger, interrupt)
            .map_err(|error| Failure::Kernel("making an interrupt capability", error))?;
        self.interrupts.try_push((resources.interrupt, interrupt)).map_err(|_| Failure::TooMuch(program))?;
        Ok(interrupt)
    }
}
