//! Driver of Arm's PrimeCell UART (PL011), as far as a terminal needs it.
//!
//! Received bytes raise an interrupt. Sent bytes go straight into the transmit FIFO while there is room; when it is
//! full, an interrupt tells when there is room again. The line's speed is left as the machine set it up.

use tench::memory::{Error, Window};
use tench_abi::memory::PAGE_BITS;
use tench_sys::{Cap, Frame, MapFlags};

/// Offsets of registers.
mod register {
    pub const DATA: usize = 0x00;
    pub const FLAGS: usize = 0x18;
    pub const LINE_CONTROL: usize = 0x2c;
    pub const CONTROL: usize = 0x30;
    pub const INTERRUPT_MASK: usize = 0x38;
    pub const INTERRUPT_CLEAR: usize = 0x44;
}

/// Bits of `FLAGS`.
mod flag {
    pub const BUSY: u32 = 1 << 3;
    pub const RECEIVE_EMPTY: u32 = 1 << 4;
    pub const TRANSMIT_FULL: u32 = 1 << 5;
}

/// Bits of `INTERRUPT_MASK` and `INTERRUPT_CLEAR`.
mod interrupt {
    pub const RECEIVE: u32 = 1 << 4;
    pub const TRANSMIT: u32 = 1 << 5;
    pub const RECEIVE_TIMEOUT: u32 = 1 << 6;
    pub const ALL: u32 = 0x7ff;
}

/// `LINE_CONTROL`: eight bits, FIFOs on.
const EIGHT_BITS_WITH_FIFOS: u32 = 0b11 << 5 | 1 << 4;
/// `CONTROL`: on, sending and receiving.
const ENABLED: u32 = 1 | 1 << 8 | 1 << 9;
/// The byte's bits in `DATA`; the others are error flags.
const BYTE: u32 = 0xff;
/// Maximum number of polls for the last byte: many times more than an emptying FIFO needs.
const MAX_POLLS: u32 = 1_000_000;

/// The device.
pub struct Uart {
    registers: Window,
    /// The byte that had come before the FIFOs were on.
    early: Option<u8>,
}

impl Uart {
    /// Maps the registers and sets the device up. Bytes received so far raise no interrupt: they have to be taken once.
    pub fn new(frame: Cap<Frame>) -> Result<Uart, Error> {
        let flags = MapFlags::READ | MapFlags::WRITE | MapFlags::DEVICE;
        let mut uart = Uart { registers: Window::new(frame, PAGE_BITS, flags)?, early: None };
        // Turning the FIFOs on empties them.
        uart.early = uart.receive();
        uart.registers.write32(register::LINE_CONTROL, EIGHT_BITS_WITH_FIFOS);
        uart.registers.write32(register::CONTROL, ENABLED);
        uart.registers.write32(register::INTERRUPT_CLEAR, interrupt::ALL);
        uart.want_transmit_interrupt(false);
        Ok(uart)
    }

    fn has_flag(&self, flag: u32) -> bool {
        self.registers.read32(register::FLAGS) & flag != 0
    }

    /// Returns a received byte, if there is one.
    pub fn receive(&mut self) -> Option<u8> {
        if self.early.is_some() {
            return self.early.take();
        }
        let has_byte = !self.has_flag(flag::RECEIVE_EMPTY);
        has_byte.then(|| (self.registers.read32(register::DATA) & BYTE) as u8)
    }

    /// Returns whether a byte can be sent now.
    pub fn can_send(&self) -> bool {
        !self.has_flag(flag::TRANSMIT_FULL)
    }

    /// Sends a byte, for which there must be room.
    pub fn send(&self, byte: u8) {
        self.registers.write32(register::DATA, u32::from(byte));
    }

    /// Waits until the last byte has been sent, for as long as a full FIFO takes.
    pub fn flush(&self) {
        for _ in 0..MAX_POLLS {
            if !self.has_flag(flag::BUSY) {
                return;
            }
            core::hint::spin_loop();
        }
    }

    /// Enables or disables the interrupt for room to send. Received bytes always raise one.
    pub fn want_transmit_interrupt(&self, wanted: bool) {
        let receive = interrupt::RECEIVE | interrupt::RECEIVE_TIMEOUT;
        let mask = if wanted { receive | interrupt::TRANSMIT } else { receive };
        self.registers.write32(register::INTERRUPT_MASK, mask);
    }

    /// Clears the device's interrupt. This comes before its cause is handled: later events raise another one.
    pub fn clear_interrupts(&self) {
        self.registers.write32(register::INTERRUPT_CLEAR, interrupt::ALL);
    }
}
