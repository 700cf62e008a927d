//! Interrupts, other cores, and the kernel itself.

use tench_abi::object::{CorePower, IrqOffIntervals, Statistic, entry_path, line_flags};
use tench_abi::{CapAddress, Error, Operation};

use crate::cap::{Cap, objects};
use crate::ipc::Notification;
use crate::raw;

objects! {
    /// One interrupt line.
    Interrupt;
    /// The authority over all interrupt lines.
    InterruptControl;
    /// The kernel: power, early output, statistics, the other cores.
    Kernel;
    /// A line on which another core can be interrupted.
    Doorbell;
}

/// Condition under which an interrupt line fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The line fires as long as it is high.
    Level,
    /// The line fires when it goes high.
    Edge,
    /// The line fires when the core is notified through it; receiving the signal acknowledges it. Only for doorbell
    /// lines.
    Doorbell,
}

impl Cap<InterruptControl> {
    /// Makes the capability to an interrupt line of this core, in an empty slot.
    /// Errors: `InvalidInterrupt`, `InvalidArgument` (not a doorbell line, for [`Trigger::Doorbell`]; on a core
    /// other than the first, a trigger that is not the device tree's), `Busy` (it was made before), `SlotOccupied`,
    /// `NoSuchSlot`.
    pub fn get(self, number: u64, trigger: Trigger, slot: CapAddress) -> Result<Cap<Interrupt>, Error> {
        let flags = match trigger {
            Trigger::Level => 0,
            Trigger::Edge => line_flags::EDGE,
            Trigger::Doorbell => line_flags::EDGE | line_flags::AUTOMATIC,
        };
        // SAFETY: no memory of the program changes.
        unsafe { raw::call2(Operation::InterruptGet, self.raw(), number, flags, u64::from(slot.0)) }.done()?;
        Ok(Cap::new(slot))
    }

    /// Makes a doorbell to a core, which listens to it on this interrupt line of its own, in an empty slot.
    /// Errors: `NoSuchCore`, `InvalidArgument` (no such line), `SlotOccupied`, `NoSuchSlot`.
    pub fn doorbell(self, core: u64, line: u64, slot: CapAddress) -> Result<Cap<Doorbell>, Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call2(Operation::InterruptDoorbell, self.raw(), core, line, u64::from(slot.0)) }.done()?;
        Ok(Cap::new(slot))
    }
}

impl Cap<Doorbell> {
    /// Notifies the core by an interrupt. Rights: `WRITE`.
    pub fn notify(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::Signal, self.raw(), 0) }.done()
    }
}

impl Cap<Interrupt> {
    /// Binds the interrupt to a notification, which it signals with the badge of the given capability, and enables the
    /// line; with `None`, unbinds it. Rights: `WRITE`, and `WRITE` on the notification. Errors: `AlreadyBound`.
    pub fn bind(self, notification: Option<Cap<Notification>>) -> Result<(), Error> {
        let notification = notification.map_or(0, Cap::raw);
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::InterruptBind, self.raw(), notification) }.done()
    }

    /// Lets the line's next interrupt in. Does nothing for a [doorbell](Trigger::Doorbell). Rights: `WRITE`.
    pub fn acknowledge(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::InterruptAcknowledge, self.raw(), 0) }.done()
    }
}

/// The machine as its kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Number of cores that the device tree names.
    pub cores: u64,
    /// Number of this core.
    pub core: u64,
    /// Physical address of the device tree.
    pub device_tree: u64,
    /// Size of the device tree in bytes.
    pub device_tree_size: u64,
}

/// Maximum number of bytes in one `KernelPrint`.
const PRINT_BYTES: usize = 64;

impl Cap<Kernel> {
    /// Powers the machine off with an exit status; on a core that another core has started, stops only that core.
    /// Returns only on failure. Rights: `WRITE`.
    pub fn power_off(self, status: u8) -> Error {
        // SAFETY: no memory of the program changes.
        match unsafe { raw::call0(Operation::KernelPowerOff, self.raw(), u64::from(status)) }.done() {
            Ok(()) => Error::WrongState,
            Err(error) => error,
        }
    }

    /// Prints on the kernel's early output. Rights: `WRITE`.
    pub fn print(self, text: &[u8]) -> Result<(), Error> {
        for chunk in text.chunks(PRINT_BYTES) {
            let words: [u64; 8] = core::array::from_fn(|index| word(chunk, index));
            let [a, b, c, d, e, f, g, h] = words;
            let length = chunk.len() as u64;
            // SAFETY: no memory of the program changes.
            unsafe { raw::call8(Operation::KernelPrint, self.raw(), length, a, b, c, d, e, f, g, h) }.done()?;
        }
        Ok(())
    }

    /// Returns one of the kernel's statistics. Rights: `READ`.
    pub fn query(self, statistic: Statistic) -> Result<u64, Error> {
        // SAFETY: no memory of the program changes.
        Ok(unsafe { raw::call0(Operation::KernelQuery, self.raw(), statistic as u64) }.check()?.first)
    }

    /// Permits or forbids all programs on this core to read the processor's counters. If forbidden, reading one is an
    /// exception. Rights: `WRITE`.
    pub fn let_count(self, readable: bool) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::KernelCounters, self.raw(), u64::from(readable)) }.done()
    }

    /// Returns a description of the machine. Rights: `READ`.
    pub fn machine(self) -> Result<Machine, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::KernelMachine, self.raw(), 0) }.check()?;
        let [core, device_tree, device_tree_size, ..] = result.words;
        Ok(Machine { cores: result.first, core, device_tree, device_tree_size })
    }

    /// Starts a core with the kernel image at the physical address `image` and the boot page at the physical address
    /// `boot`. Rights: `WRITE`.
    /// Errors: `NoSuchCore`, `CoreRunning`, `CoreRefused`.
    pub fn start_core(self, core: u64, image: u64, boot: u64) -> Result<(), Error> {
        // SAFETY: the holder of this capability is responsible to the kernel for what the other core does; memory of
        // this program changes only if it is given to that core.
        unsafe { raw::call2(Operation::KernelStartCore, self.raw(), core, image, boot) }.done()
    }

    /// Returns whether a core is on, according to the firmware. Rights: `READ`.
    /// Errors: `NoSuchCore`, `CoreRefused` (the firmware does not say).
    pub fn core_power(self, core: u64) -> Result<CorePower, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::KernelCorePower, self.raw(), core) }.check()?;
        CorePower::from_code(result.first).ok_or(Error::CoreRefused)
    }

    /// Returns the lengths of the interrupts-off intervals on a path: an operation's number or one of [`entry_path`].
    /// Rights: `READ`.
    /// Errors: `Unsupported` (this kernel does not measure).
    pub fn irq_off_intervals(self, path: u64) -> Result<IrqOffIntervals, Error> {
        // SAFETY: no memory of the program changes.
        let result = unsafe { raw::call0(Operation::KernelIrqOff, self.raw(), path) }.check()?;
        let [address, count, sum, squares, ..] = result.words;
        Ok(IrqOffIntervals { longest: result.first, address, count, sum, squares })
    }

    /// Resets the measurement of interrupts-off intervals. Rights: `READ`. Errors: `Unsupported` (this kernel does not
    /// measure).
    pub fn reset_irq_off_intervals(self) -> Result<(), Error> {
        self.irq_off_intervals(entry_path::RESET).map(|_| ())
    }

    /// Returns the number of instructions retired when the last timer interrupt entered the kernel. Rights: `READ`.
    /// Errors: `Unsupported` (this kernel does not measure).
    pub fn timer_entry(self) -> Result<u64, Error> {
        Ok(self.irq_off_intervals(entry_path::TIMER)?.longest)
    }
}

/// Returns eight bytes of text as a word, the first in the lowest bits; missing bytes are 0.
fn word(text: &[u8], index: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = text.get(index * 8..).unwrap_or(&[]);
    let length = rest.len().min(8);
    bytes[..length].copy_from_slice(&rest[..length]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_words() {
        assert_eq!(word(b"abcdefghij", 0), u64::from_le_bytes(*b"abcdefgh"));
        assert_eq!(word(b"abcdefghij", 1), u64::from_le_bytes(*b"ij\0\0\0\0\0\0"));
        assert_eq!(word(b"abcdefghij", 2), 0);
    }

    #[test]
    fn on_the_host_every_call_is_refused() {
        let kernel = Cap::<Kernel>::new(CapAddress(12));
        assert_eq!(kernel.power_off(3), Error::UnknownOperation);
        assert_eq!(kernel.print(b"x"), Err(Error::UnknownOperation));
    }
}
