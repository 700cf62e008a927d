//! Early output: a serial port that needs no driver.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::BASE;
use crate::digits::{DECIMAL, HEXADECIMAL, digits};

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

/// A part of a line.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// Words.
    Text(&'a str),
    /// A number in decimal digits.
    Decimal(u64),
    /// A number in hexadecimal digits, after `0x`.
    Hexadecimal(u64),
    /// A register's sixteen hexadecimal digits.
    Register(u64),
}

/// Prints the parts one after another. Rust's own formatting would be a tenth of the kernel's code.
#[inline(never)]
pub fn say(parts: &[Part<'_>]) {
    for part in parts {
        match *part {
            Part::Text(text) => text.bytes().for_each(print_in_line),
            Part::Decimal(number) => digits(number, DECIMAL, 1, print),
            Part::Hexadecimal(number) => {
                print(b'0');
                print(b'x');
                digits(number, HEXADECIMAL, 1, print);
            }
            Part::Register(number) => digits(number, HEXADECIMAL, 16, print),
        }
    }
}

/// Prints a byte of text, in which a line ends with a line feed alone.
fn print_in_line(byte: u8) {
    if byte == b'\n' {
        print(b'\r');
    }
    print(byte);
}
