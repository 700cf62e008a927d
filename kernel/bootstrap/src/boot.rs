//! Boot: from the device tree to the first process.

use tench_abi::boot::{CORE_MAGIC, CoreBoot, Header, VERSION};
use tench_abi::memory::PAGE_SIZE;
use tench_arch_aarch64::cores::{self, Cores};
use tench_arch_aarch64::early::Part::Text;
use tench_arch_aarch64::interrupts::{self, Distributor, Interrupts};
use tench_arch_aarch64::layout::{LineSet, Region};
use tench_arch_aarch64::start::{bootstrap, leave_bootstrap, resident};
use tench_arch_aarch64::{BASE, Machine, early, fatal, first, power, timer};
use tench_kernel::Arch;
use tench_kernel::boot::Plan;

use crate::platform::{self, Platform};
use crate::tree::{HEADER_SIZE, TOTAL_SIZE, used_size};
use crate::{plan, start};

/// Boots this core. start.S calls this with the core's first register: the physical address of the device tree, or of a
/// [`CoreBoot`].
#[unsafe(no_mangle)]
extern "C" fn tench_boot(address: usize) -> ! {
    let booted = match core_boot(address) {
        Some(started) => boot_further(started),
        None => boot_first(address),
    };
    match booted {
        Ok(first) => {
            // SAFETY: `first` came from the scheduler; everything on this stack is abandoned.
            unsafe { leave_bootstrap(first) }
        }
        Err(reason) => fatal::stop(&[Text("cannot boot: "), Text(reason)]),
    }
}

/// Returns the boot page that another core has left for this one, if that core started this one.
fn core_boot(address: usize) -> Option<&'static CoreBoot> {
    if !address.is_multiple_of(PAGE_SIZE) || address == 0 {
        return None;
    }
    // SAFETY: whichever of boot loader and core started this core says that memory lies there. A boot page is plain
    // numbers, valid whatever they are, and a device tree is at least as readable; it is compared before it is
    // believed.
    let boot = unsafe { &*((BASE + address) as *const CoreBoot) };
    (boot.magic == CORE_MAGIC).then_some(boot)
}

/// Maps all memory of the machine that `tree` describes, after checking that the kernel knows it.
fn map_memory(tree: &[u8], platform: &Platform) -> Result<(), &'static str> {
    power::set_conduit(platform.power);
    if let Some(serial) = platform.uart {
        early::set_port(BASE + serial.address as usize);
    }
    platform.check(tree)?;
    for bank in &platform.memory {
        // SAFETY: the device tree says that there is memory; there was no trap yet.
        unsafe { start::map_memory(bank.start, bank.end) };
    }
    Ok(())
}

/// Returns this core's view of the machine, with the lines that belong to this core according to the header.
fn machine(platform: &Platform, header: &Header, distributor: Distributor) -> Result<Machine, &'static str> {
    let cores = Cores::new(platform.cores.clone())?;
    let mut regions = platform.redistributors.iter();
    let redistributor = regions.find_map(|region| {
        interrupts::redistributor(BASE + region.start as usize, region.size() as usize, cores::own_affinity())
    });
    let redistributor = redistributor.ok_or("its interrupt controller has no redistributor for this core")?;
    let lines = LineSet::of(|line| header.owner(Some(line)) == cores.own);
    let controller = Interrupts::new(BASE + platform.distributor.start as usize, redistributor, &lines, distributor);
    timer::init();
    Ok(Machine::new(controller, cores, platform.memory.clone(), platform.reserved.clone()))
}

/// Checks that what the owners of lines are read from is a header, and of this version.
fn check_version(header: &Header) -> Result<(), &'static str> {
    if header.is_valid() {
        Ok(())
    } else {
        Err("the RAM disk does not begin with a header of this version; boot with the host tool")
    }
}

/// Boots the core on which the machine begins. A machine that the kernel does not know is refused without a report.
fn boot_first(tree_address: usize) -> Result<usize, &'static str> {
    let tree = trimmed_tree(tree_address).unwrap_or_else(|reason| fatal::refuse(None, reason));
    let board = || platform::board(tree);
    let mut platform =
        Platform::read(tree, tree_address as u64).unwrap_or_else(|reason| fatal::refuse(board(), reason));
    map_memory(tree, &platform).unwrap_or_else(|reason| fatal::refuse(board(), reason));
    let ramdisk = platform.ramdisk.unwrap_or_else(|| fatal::refuse(board(), "it has no RAM disk (-initrd)"));
    // SAFETY: the boot loader put the RAM disk there; a header is plain numbers, valid whatever they are.
    let header = unsafe { &*((BASE + ramdisk.start as usize) as *const Header) };
    check_version(header)?;
    let machine = machine(&platform, header, Distributor::Ours(platform.edges))
        .unwrap_or_else(|reason| fatal::refuse(board(), reason));
    let core = machine.core();
    platform.keep_devices(tree, header, core)?;
    let archive = archive(header, ramdisk).ok_or("the RAM disk's header is damaged")?;
    let memory = plan::untyped_blocks(&platform, resident(), archive)?;
    first::run(
        machine,
        &Plan {
            memory: &memory,
            init: ramdisk.start,
            header,
            archive: (archive.start, archive.size()),
            device_tree: (platform.device_tree.start, tree.len() as u64),
            counter_frequency: timer::frequency(),
            core,
        },
    )
}

/// Boots a core that another core has started.
fn boot_further(boot: &CoreBoot) -> Result<usize, &'static str> {
    cores::set_further();
    if boot.version != VERSION {
        return Err("the boot page is of another version; rebuild the image");
    }
    let tree_end =
        boot.device_tree.checked_add(boot.device_tree_size).ok_or("the boot page is damaged: no device tree")?;
    // SAFETY: the first core has found a device tree there; there was no trap yet.
    unsafe { start::map_memory(boot.device_tree, tree_end) };
    // SAFETY: mapped just now, and not written any more.
    let tree = unsafe {
        core::slice::from_raw_parts((BASE + boot.device_tree as usize) as *const u8, boot.device_tree_size as usize)
    };
    let mut platform = Platform::read(tree, boot.device_tree)?;
    map_memory(tree, &platform)?;
    // SAFETY: the core that started this one has put it there; a header is plain numbers, valid whatever they are.
    let header = unsafe { &*((BASE + boot.init as usize) as *const Header) };
    check_version(header)?;
    let machine = machine(&platform, header, Distributor::OfAnother)?;
    if machine.core() != boot.core {
        return Err("this is not the core that the boot page is for");
    }
    platform.keep_devices(tree, header, boot.core)?;
    first::run(
        machine,
        &Plan {
            memory: &plan::given(boot, bootstrap(), &platform)?,
            init: boot.init,
            header,
            archive: (boot.archive, boot.archive_size),
            device_tree: (boot.device_tree, boot.device_tree_size),
            counter_frequency: timer::frequency(),
            core: boot.core,
        },
    )
}

/// Returns the range of the archive, if the header is valid.
fn archive(header: &Header, ramdisk: Region) -> Option<Region> {
    let archive = Region::new(ramdisk.start.checked_add(header.archive_offset)?, header.archive_size)?;
    (archive.end <= ramdisk.end && archive.start % PAGE_SIZE as u64 == 0).then_some(archive)
}

/// Returns the device tree at a physical address. Cuts off the room to grow after it (nearly all of the megabyte that
/// QEMU makes), so that it can be used as memory.
fn trimmed_tree(tree: usize) -> Result<&'static [u8], &'static str> {
    if tree == 0 {
        return Err("the boot loader passed no device tree");
    }
    // SAFETY: the boot loader says that a device tree lies there, and handed it over.
    let header = unsafe { &mut *((BASE + tree) as *mut [u8; HEADER_SIZE]) };
    let size = used_size(header).ok_or("what the boot loader passed is no device tree")?;
    header[TOTAL_SIZE].copy_from_slice(&size.to_be_bytes());
    // SAFETY: as above; it is not written from here on.
    Ok(unsafe { core::slice::from_raw_parts((BASE + tree) as *const u8, size as usize) })
}
