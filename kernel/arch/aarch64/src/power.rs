//! Calls of the firmware (PSCI), and switching the machine off.
//!
//! There are three ways to switch off, of which a machine has one or two. Semihosting comes first, because it alone
//! gives a status to an emulator or debugger that serves it. Then come the two instructions that call the firmware,
//! first the one that the device tree names. Where a way is missing, its instruction is undefined. That exception is no
//! failure: its handler tries the next way ([`go_on`]).

use core::sync::atomic::{AtomicU8, Ordering};

use smccc::{Call, Hvc, Smc, psci};

use crate::conduit::Conduit;
use crate::cores;

/// Values of [`CONDUIT`].
const NONE: u8 = 0;
const HYPERVISOR: u8 = 1;
const SECURE_MONITOR: u8 = 2;

/// The instruction that calls the firmware; none until the device tree was read.
static CONDUIT: AtomicU8 = AtomicU8::new(NONE);

/// The number of ways that have been tried; 0 until the machine is being switched off.
static TRIED: AtomicU8 = AtomicU8::new(0);

/// Sets the instruction that calls the firmware.
pub fn set_conduit(conduit: Option<Conduit>) {
    let number = conduit.map_or(NONE, |conduit| match conduit {
        Conduit::Hypervisor => HYPERVISOR,
        Conduit::SecureMonitor => SECURE_MONITOR,
    });
    CONDUIT.store(number, Ordering::Relaxed);
}

/// The firmware, called by the machine's instruction. Without one it supports nothing.
pub struct Firmware;

impl Call for Firmware {
    fn call32(function: u32, arguments: [u32; 7]) -> [u32; 8] {
        match CONDUIT.load(Ordering::Relaxed) {
            HYPERVISOR => Hvc::call32(function, arguments),
            SECURE_MONITOR => Smc::call32(function, arguments),
            _ => [psci::error::NOT_SUPPORTED as u32; 8],
        }
    }

    fn call64(function: u32, arguments: [u64; 17]) -> [u64; 18] {
        match CONDUIT.load(Ordering::Relaxed) {
            HYPERVISOR => Hvc::call64(function, arguments),
            SECURE_MONITOR => Smc::call64(function, arguments),
            _ => [psci::error::NOT_SUPPORTED as u64; 18],
        }
    }
}

/// Powers the machine off in the first way that it has, or stops this core for good if another core started it.
/// `status` becomes the emulator's, if it serves semihosting.
pub fn off(status: u8) -> ! {
    loop {
        match TRIED.fetch_add(1, Ordering::Relaxed) {
            0 if !cores::is_further() => semihosting(status),
            0 => {}
            1 => {
                // Without a secure monitor, `smc` is undefined; `hvc` could call a hypervisor that has left no vector.
                let _ = CONDUIT.compare_exchange(NONE, SECURE_MONITOR, Ordering::Relaxed, Ordering::Relaxed);
                firmware_off();
            }
            2 => {
                set_conduit(Some(Conduit::Hypervisor));
                firmware_off();
            }
            _ => loop {
                // SAFETY: waits for an interrupt; all are masked.
                unsafe { core::arch::asm!("wfi", options(nomem, nostack)) };
            },
        }
    }
}

/// Goes on to the next way if the machine is being switched off: an exception means then that it lacks a way.
pub fn go_on() {
    if TRIED.load(Ordering::Relaxed) > 0 {
        off(0);
    }
}

/// Asks the firmware to switch off the machine, or this core. Returns if it refuses.
fn firmware_off() {
    let _ = if cores::is_further() { psci::cpu_off::<Firmware>() } else { psci::system_off::<Firmware>() };
}

/// Ends the emulator with a status, if it serves semihosting.
fn semihosting(status: u8) {
    let block = [APPLICATION_EXIT, u64::from(status)];
    // SAFETY: the host reads the two words and stops the machine; without semihosting this is an exception.
    unsafe {
        core::arch::asm!("hlt #0xf000", inout("x0") SYS_EXIT_EXTENDED => _, in("x1") block.as_ptr(), options(nostack))
    };
}

/// Semihosting operation: exit with a reason and a status.
const SYS_EXIT_EXTENDED: u64 = 0x20;
/// Reason: the application ended by itself.
const APPLICATION_EXIT: u64 = 0x20026;
