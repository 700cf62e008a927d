//! Interrupts, other cores, and the kernel itself.

use tench_abi::object::{CorePower, Statistic, Stretches, line_flags, stretch};
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

/// What makes an interrupt line fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// As long as the line is high.
    Level,
    /// When the line goes high.
    Edge,
    /// When the core is rung; whoever takes the signal acknowledges it by that. For lines that can be rung.
    Bell,
}

impl Cap<InterruptControl> {
    /// Makes the capability to an interrupt line, in an empty slot.
    /// Errors: `InvalidInterrupt`, `InvalidArgument` (a line that cannot be rung, as a bell), `Busy` (it was made
    /// before), `SlotOccupied`, `NoSuchSlot`.
    pub fn get(self, number: u64, trigger: Trigger, slot: CapAddress) -> Result<Cap<Interrupt>, Error> {
        let flags = match trigger {
            Trigger::Level => 0,
            Trigger::Edge => line_flags::EDGE,
            Trigger::Bell => line_flags::EDGE | line_flags::AUTOMATIC,
        };
        // SAFETY: no memory of the program changes.
        unsafe { raw::call2(Operation::InterruptGet, self.raw(), number, flags, u64::from(slot.0)) }.done()?;
        Ok(Cap::new(slot))
    }

    /// Makes the capability to ring a core, which hears it on this interrupt line of its own, in an empty slot.
    /// Errors: `NoSuchCore`, `InvalidArgument` (no such line), `SlotOccupied`, `NoSuchSlot`.
    pub fn doorbell(self, core: u64, line: u64, slot: CapAddress) -> Result<Cap<Doorbell>, Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call2(Operation::InterruptDoorbell, self.raw(), core, line, u64::from(slot.0)) }.done()?;
        Ok(Cap::new(slot))
    }
}

impl Cap<Doorbell> {
    /// Interrupts the core. Rights: `WRITE`.
    pub fn ring(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::Signal, self.raw(), 0) }.done()
    }
}

impl Cap<Interrupt> {
    /// Makes the interrupt signal a notification with the badge of this capability to it, and enables the line; with
    /// `None`, unbinds it. Rights: `WRITE`, and `WRITE` on the notification. Errors: `AlreadyBound`.
    pub fn bind(self, notification: Option<Cap<Notification>>) -> Result<(), Error> {
        let notification = notification.map_or(0, Cap::raw);
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::InterruptBind, self.raw(), notification) }.done()
    }

    /// Lets the line's next interrupt in. For a [bell](Trigger::Bell) it does nothing. Rights: `WRITE`.
    pub fn acknowledge(self) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::InterruptAcknowledge, self.raw(), 0) }.done()
    }
}

/// The machine, as a kernel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Cores that the device tree names.
    pub cores: u64,
    /// Which of them this is.
    pub core: u64,
    /// Physical address of the device tree.
    pub device_tree: u64,
    /// Its size in bytes.
    pub device_tree_size: u64,
}

/// Bytes in one `KernelPrint`.
const PRINT_BYTES: usize = 64;

impl Cap<Kernel> {
    /// Powers the machine off with an exit status; on a core that another has started, stops that core alone. Returns
    /// only if that is refused. Rights: `WRITE`.
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

    /// One of the kernel's statistics. Rights: `READ`.
    pub fn query(self, statistic: Statistic) -> Result<u64, Error> {
        // SAFETY: no memory of the program changes.
        Ok(unsafe { raw::call0(Operation::KernelQuery, self.raw(), statistic as u64) }.check()?.first)
    }

    /// Lets all programs on this core read the processor's counters, or makes each attempt an exception. Rights:
    /// `WRITE`.
    pub fn let_count(self, readable: bool) -> Result<(), Error> {
        // SAFETY: no memory of the program changes.
        unsafe { raw::call0(Operation::KernelCounters, self.raw(), u64::from(readable)) }.done()
    }

    /// What machine this is. Rights: `READ`.
    pub fn machine(self) -> Result<Machine, Error> {
        // SAFETY: no memory of the program changes.
        let answer = unsafe { raw::call0(Operation::KernelMachine, self.raw(), 0) }.check()?;
        let [core, device_tree, device_tree_size, ..] = answer.words;
        Ok(Machine { cores: answer.first, core, device_tree, device_tree_size })
    }

    /// Starts a core with the kernel whose image lies at one physical address, and its boot page at the other. Rights:
    /// `WRITE`.
    /// Errors: `NoSuchCore`, `CoreRunning`, `CoreRefused`.
    pub fn start_core(self, core: u64, image: u64, boot: u64) -> Result<(), Error> {
        // SAFETY: what the other core does there is the contract between whoever has this capability and the kernel;
        // memory of this program changes only if it is given to that core.
        unsafe { raw::call2(Operation::KernelStartCore, self.raw(), core, image, boot) }.done()
    }

    /// Whether a core is on, as the firmware says. Rights: `READ`.
    /// Errors: `NoSuchCore`, `CoreRefused` (the firmware does not say).
    pub fn core_power(self, core: u64) -> Result<CorePower, Error> {
        // SAFETY: no memory of the program changes.
        let answer = unsafe { raw::call0(Operation::KernelCorePower, self.raw(), core) }.check()?;
        CorePower::from_code(answer.first).ok_or(Error::CoreRefused)
    }

    /// How long interrupts were off on a path: an operation's number or one of [`stretch`]. Rights: `READ`.
    /// Errors: `Unsupported` (this kernel does not measure).
    pub fn stretches(self, path: u64) -> Result<Stretches, Error> {
        // SAFETY: no memory of the program changes.
        let answer = unsafe { raw::call0(Operation::KernelStretches, self.raw(), path) }.check()?;
        let [place, count, sum, squares, ..] = answer.words;
        Ok(Stretches { longest: answer.first, place, count, sum, squares })
    }

    /// Forgets how long interrupts were off. Rights: `READ`. Errors: `Unsupported` (this kernel does not measure).
    pub fn forget_stretches(self) -> Result<(), Error> {
        self.stretches(stretch::RESET).map(|_| ())
    }

    /// How many instructions were retired when the last timer interrupt entered the kernel. Rights: `READ`.
    /// Errors: `Unsupported` (this kernel does not measure).
    pub fn timer_entry(self) -> Result<u64, Error> {
        Ok(self.stretches(stretch::TIMER)?.longest)
    }
}

/// Eight bytes of text as a word, the first in the lowest bits; what is missing is 0.
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
