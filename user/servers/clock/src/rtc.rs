//! Driver of Arm's PrimeCell real-time clock (PL031), of which only the time is read.

use tench::memory::Window;
use tench_abi::layout::slot;
use tench_abi::memory::PAGE_BITS;
use tench_sys::{Cap, Frame, Kind, MapFlags, OWN_CSPACE};

/// Frame with the device's registers: the first extra capability of the system description, if there is one.
const REGISTERS: Cap<Frame> = Cap::new(slot::EXTRA);
/// Offset of the register with the seconds since the beginning of 1970.
const TIME: usize = 0x00;

/// Returns the seconds since the beginning of 1970 that the device shows. Without a device there are none.
pub fn seconds() -> Option<u32> {
    let is_given = OWN_CSPACE.identify_at(slot::EXTRA).is_ok_and(|found| found.kind == Kind::Frame);
    let registers = is_given.then(|| Window::new(REGISTERS, PAGE_BITS, MapFlags::READ | MapFlags::DEVICE));
    registers?.ok().map(|registers| registers.read32(TIME))
}
