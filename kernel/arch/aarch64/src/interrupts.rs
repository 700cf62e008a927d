//! The interrupt controller, GICv3, as one core sees it, with every line in group 1.
//!
//! Every core has private lines: the timer's, and its doorbells, by which other cores notify it. Each line of a device
//! belongs to one core ([`Header::line_owners`](tench_abi::boot::Header)), whose kernel alone routes, masks and unmasks
//! it, in registers where each write concerns that line only.
//!
//! The distributor belongs to the first core. Its kernel sets up what the lines share before another core runs, and it
//! alone changes triggers: those of 16 lines are read, modified and written together.
//!
//! Written by hand rather than taken from a library: acknowledging and masking lie on the measured path from a device
//! to its driver (`irq_wake`), and a kernel without policy needs only the little below.

use tench_abi::object::{DOORBELLS, FIRST_DEVICE_LINE};

use crate::cores::own_affinity;
use crate::layout::LineSet;

/// First shared line; the 32 below are private to each core.
const FIRST_SHARED: u32 = FIRST_DEVICE_LINE as u32;
/// Interrupt numbers from here on mean "none pending".
const SPECIAL: u32 = 1020;
/// Priority of every line, for four lines at a time; lower than the mask.
const PRIORITY: u32 = 0xa0a0_a0a0;

mod distributor {
    pub const CONTROL: usize = 0x0;
    pub const TYPE: usize = 0x4;
    pub const GROUP: usize = 0x80;
    pub const ENABLE: usize = 0x100;
    pub const DISABLE: usize = 0x180;
    pub const FORGET: usize = 0x280;
    pub const DEACTIVATE: usize = 0x380;
    pub const PRIORITY: usize = 0x400;
    pub const CONFIGURATION: usize = 0xc00;
    pub const ROUTE: usize = 0x6000;
}

mod redistributor {
    /// The core's affinity in the upper half; bit 4 is set in the region's last.
    pub const TYPE: usize = 0x8;
    pub const LAST: u32 = 1 << 4;
    pub const WAKER: usize = 0x14;
    pub const SLEEP: u32 = 1 << 1;
    pub const ASLEEP: u32 = 1 << 2;
    /// The frame with the registers of the core's private lines, laid out like the distributor's.
    pub const OWN_LINES: usize = 0x1_0000;
    /// Distance from one core's frames to the next core's.
    pub const STRIDE: usize = 0x2_0000;
}

/// The owner of the distributor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distributor {
    /// This core, which sets up the distributor: an edge triggers these lines of devices, a level the others.
    Ours(LineSet),
    /// The first core, which is not this one.
    OfAnother,
}

/// Returns the redistributor of the core with this affinity, among those of a region. Takes and returns kernel virtual
/// addresses.
pub fn redistributor(region: usize, size: usize, affinity: u64) -> Option<usize> {
    let wanted = (affinity >> 32 & 0xff) << 24 | affinity & 0xff_ffff;
    let mut at = region;
    while at < region + size {
        if u64::from(read(at + redistributor::TYPE + 4)) == wanted {
            return Some(at);
        }
        if read(at + redistributor::TYPE) & redistributor::LAST != 0 {
            return None;
        }
        at += redistributor::STRIDE;
    }
    None
}

/// The interrupt controller as one core sees it.
pub struct Interrupts {
    distributor: usize,
    own_lines: usize,
    /// Lines that programs of this core may own.
    lines: LineSet,
    may_set_triggers: bool,
}

/// Reads a register.
fn read(address: usize) -> u32 {
    // SAFETY: addresses are formed from the controller's, found in the device tree and mapped as device memory.
    unsafe { (address as *const u32).read_volatile() }
}

/// Writes a register.
fn write(address: usize, value: u32) {
    // SAFETY: as in `read`.
    unsafe { (address as *mut u32).write_volatile(value) };
}

/// Masks 32 lines, puts them into group 1, and gives all the same priority.
fn set_up_word(registers: usize, word: usize) {
    write(registers + distributor::DISABLE + word * 4, u32::MAX);
    write(registers + distributor::GROUP + word * 4, u32::MAX);
    for four in word * 8..(word + 1) * 8 {
        write(registers + distributor::PRIORITY + four * 4, PRIORITY);
    }
}

/// Sets the triggers of all lines of devices.
fn set_triggers(distributor: usize, words: usize, edges: &LineSet) {
    for sixteen in FIRST_DEVICE_LINE / 16..words * 2 {
        let bits = (0..16u32).filter(|bit| edges.contains(sixteen as u32 * 16 + bit)).map(|bit| 2 << (bit * 2));
        write(distributor + distributor::CONFIGURATION + sixteen * 4, bits.sum());
    }
}

/// Sets up this core's interface to the controller.
fn set_up_interface() {
    // SAFETY: configures this core's interface: system registers on, every priority allowed, group 1 enabled.
    unsafe {
        core::arch::asm!(
            "msr s3_0_c12_c12_5, {sre}", // ICC_SRE_EL1
            "isb",
            "msr s3_0_c4_c6_0, {mask}", // ICC_PMR_EL1
            "msr s3_0_c12_c12_3, xzr", // ICC_BPR1_EL1
            "msr s3_0_c12_c12_7, {on}", // ICC_IGRPEN1_EL1
            "isb",
            sre = in(reg) 7u64,
            mask = in(reg) 0xffu64,
            on = in(reg) 1u64,
            options(nostack, preserves_flags)
        )
    };
}

impl Interrupts {
    /// Sets up this core's part of the controller, with all of this core's lines masked. `devices` are the lines of its
    /// devices. Takes kernel virtual addresses.
    pub fn new(distributor: usize, redistributor: usize, devices: &LineSet, owner: Distributor) -> Interrupts {
        let own_lines = redistributor + redistributor::OWN_LINES;
        let waker = redistributor + redistributor::WAKER;
        write(waker, read(waker) & !redistributor::SLEEP);
        while read(waker) & redistributor::ASLEEP != 0 {
            core::hint::spin_loop();
        }
        let words = (read(distributor + distributor::TYPE) & 31) as usize + 1;
        if let Distributor::Ours(edges) = owner {
            // Affinity routing, and group 1 enabled: before that, a redistributor does not heed its registers of lines.
            write(distributor + distributor::CONTROL, 1 << 4 | 1 << 1);
            for word in 1..words {
                set_up_word(distributor, word);
            }
            set_triggers(distributor, words, &edges);
        } else {
            // A kernel that ran on this core before may have stopped with lines unmasked, or while it handled one.
            for word in 1..words {
                write(distributor + distributor::DISABLE + word * 4, devices.word(word));
                write(distributor + distributor::FORGET + word * 4, devices.word(word));
                write(distributor + distributor::DEACTIVATE + word * 4, devices.word(word));
            }
        }
        set_up_word(own_lines, 0);
        set_up_interface();
        let lines = devices.with_private((1 << DOORBELLS) - 1, words);
        Interrupts { distributor, own_lines, lines, may_set_triggers: owner != Distributor::OfAnother }
    }

    /// Returns the register block and the bit for a line.
    fn bit(&self, number: u32) -> (usize, u32) {
        let registers = if number < FIRST_SHARED { self.own_lines } else { self.distributor };
        (registers + (number as usize / 32) * 4, 1 << (number & 31))
    }

    /// Returns whether programs of this core may own the line: whether it is a doorbell's, or that of a device of this
    /// core.
    pub fn exists(&self, number: u32) -> bool {
        self.lines.contains(number)
    }

    /// Notifies the core with this affinity by an interrupt on one of its doorbell lines.
    pub fn notify(affinity: u64, line: u32) {
        let levels = (affinity >> 32 & 0xff) << 48 | (affinity >> 16 & 0xff) << 32 | (affinity >> 8 & 0xff) << 16;
        let (range, target) = ((affinity & 0xff) >> 4, 1 << (affinity & 0xf));
        let value = levels | range << 44 | u64::from(line & 0xf) << 24 | target;
        // SAFETY: what was written before is visible to the core that is interrupted; then ICC_SGI1R_EL1 interrupts it.
        unsafe {
            core::arch::asm!("dsb ishst", "msr s3_0_c12_c11_5, {}", "isb", in(reg) value, options(nostack, preserves_flags))
        };
    }

    /// Unmasks a line.
    pub fn enable(&self, number: u32) {
        let (registers, bit) = self.bit(number);
        write(registers + distributor::ENABLE, bit);
    }

    /// Masks a line.
    pub fn disable(&self, number: u32) {
        let (registers, bit) = self.bit(number);
        write(registers + distributor::DISABLE, bit);
    }

    /// Returns the address of the register that holds a line's trigger, and the bit there that means an edge.
    fn trigger(&self, number: u32) -> (usize, u32) {
        let register = self.distributor + distributor::CONFIGURATION + number as usize / 16 * 4;
        (register, 2 << (number % 16 * 2))
    }

    /// Returns whether this kernel can give the line this trigger: the first core's kernel can change it, others can
    /// only keep it.
    pub fn allows(&self, number: u32, edge: bool) -> bool {
        // The first core may change other lines' triggers in the register meanwhile.
        let is_set = || {
            let (register, bit) = self.trigger(number);
            (read(register) & bit != 0) == edge
        };
        number < FIRST_SHARED || self.may_set_triggers || is_set()
    }

    /// Routes the line of a device to this core, and sets its trigger, which must be [allowed](Self::allows).
    pub fn claim(&self, number: u32, edge: bool) {
        if number < FIRST_SHARED {
            return;
        }
        if self.may_set_triggers {
            let (register, bit) = self.trigger(number);
            write(register, if edge { read(register) | bit } else { read(register) & !bit });
        }
        let route = self.distributor + distributor::ROUTE + number as usize * 8;
        // SAFETY: as in `write`; the line belongs to this core, and so does its register.
        unsafe { (route as *mut u64).write_volatile(own_affinity()) };
    }

    /// Acknowledges and returns the pending interrupt, which becomes active, or returns `None`.
    pub fn acknowledge(&self) -> Option<u32> {
        let number: u64;
        // SAFETY: takes the pending interrupt (ICC_IAR1_EL1).
        unsafe { core::arch::asm!("mrs {}, s3_0_c12_c12_0", out(reg) number, options(nostack, preserves_flags)) };
        if (number as u32) < SPECIAL { Some(number as u32) } else { None }
    }

    /// Deactivates an acknowledged interrupt.
    pub fn end(&self, number: u32) {
        // SAFETY: ends the interrupt that was taken (ICC_EOIR1_EL1).
        unsafe {
            core::arch::asm!("msr s3_0_c12_c12_1, {}", in(reg) u64::from(number), options(nostack, preserves_flags))
        };
    }
}
