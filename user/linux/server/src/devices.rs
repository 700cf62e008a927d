//! Devices.

use tench_linux_files::{Device, Errno};

use crate::Machine;

const fn device(major: u32, minor: u32) -> Device {
    Device(major << 8 | minor)
}

/// Swallows everything, and is always at its end.
pub const NULL: Device = device(1, 3);
/// Is endless zeros.
pub const ZERO: Device = device(1, 5);
/// Is endless zeros, and has no room.
pub const FULL: Device = device(1, 7);
/// Is endless random bytes.
pub const RANDOM: Device = device(1, 8);
/// Is endless random bytes.
pub const URANDOM: Device = device(1, 9);
/// The terminal of the process.
pub const TERMINAL: Device = device(5, 0);
/// The console.
pub const CONSOLE: Device = device(5, 1);
/// Is another pseudo-terminal whenever it is opened: the master of a new pair.
pub const MASTERS: Device = device(5, 2);
/// Major number of the slaves of pseudo-terminals.
const SLAVES: u32 = 136;

/// The devices that every system has.
pub static NODES: &[(&[u8], Device)] = &[
    (b"/dev/null", NULL),
    (b"/dev/zero", ZERO),
    (b"/dev/full", FULL),
    (b"/dev/random", RANDOM),
    (b"/dev/urandom", URANDOM),
    (b"/dev/tty", TERMINAL),
    (b"/dev/console", CONSOLE),
    (b"/dev/ptmx", MASTERS),
];

/// Returns the slave of a pseudo-terminal with a number, which is less than 256.
pub const fn slave(number: u32) -> Device {
    device(SLAVES, number)
}

/// Returns whether a device is the slave of a pseudo-terminal.
pub const fn is_slave(device: Device) -> bool {
    device.0 >> 8 == SLAVES
}

/// Returns whether a device is a terminal.
pub fn is_terminal(device: Device) -> bool {
    device == TERMINAL || device == CONSOLE || device == MASTERS || is_slave(device)
}

/// Returns whether one can wait for events of a device. The others can be read and written at any time.
pub fn has_events(device: Device) -> bool {
    is_terminal(device) || device == RANDOM || device == URANDOM
}

/// Reads from a device that is no terminal.
///
/// # Errors
/// `ENXIO` if there is no such device, and those of the machine.
pub fn read<M: Machine>(machine: &mut M, device: Device, into: &mut [u8]) -> Result<usize, Errno> {
    match device {
        NULL => return Ok(0),
        ZERO | FULL => into.fill(0),
        RANDOM | URANDOM => machine.random(into),
        _ => return Err(Errno::ENXIO),
    }
    Ok(into.len())
}

/// Writes to a device that is no terminal.
///
/// # Errors
/// `ENOSPC` if it is full, `ENXIO` if there is no such device.
pub fn write(device: Device, from: &[u8]) -> Result<usize, Errno> {
    match device {
        NULL | ZERO | RANDOM | URANDOM => Ok(from.len()),
        FULL => Err(Errno::ENOSPC),
        _ => Err(Errno::ENXIO),
    }
}
