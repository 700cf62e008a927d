//! Early output: a serial port that needs no driver.

use core::fmt::Write;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::BASE;

/// Kernel virtual address of the PL011 used for output; a default until the device tree was read, 0 for none.
static PORT: AtomicUsize = AtomicUsize::new(BASE + 0x0900_0000);

/// Offset of the flag register.
const FLAGS: usize = 0x18;
/// Bit of the flag register: the transmit queue is full.
const TRANSMIT_FULL: u32 = 1 << 5;

/// Sets the address of the serial port; 0 for none.
pub fn set_port(address: usize) {
    PORT.store(address, Ordering::Relaxed);
}

/// Returns whether a byte can be printed without waiting.
pub fn can_write() -> bool {
    let port = PORT.load(Ordering::Relaxed);
    let flags = (port + FLAGS) as *const u32;
    // SAFETY: the port was found in the device tree and is mapped as device memory; reading flags has no side effect.
    port == 0 || unsafe { flags.read_volatile() } & TRANSMIT_FULL == 0
}

/// Prints a byte, waiting for room.
pub fn print(byte: u8) {
    let port = PORT.load(Ordering::Relaxed);
    if port == 0 {
        return;
    }
    while !can_write() {
        core::hint::spin_loop();
    }
    // SAFETY: as in `can_write`; writing the data register transmits.
    unsafe { (port as *mut u32).write_volatile(u32::from(byte)) };
}

/// A writer to the serial port.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                print(b'\r');
            }
            print(byte);
        }
        Ok(())
    }
}
