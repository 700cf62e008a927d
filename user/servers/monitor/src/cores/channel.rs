//! The channel to another core's monitor.

use core::ptr::NonNull;

use alloc::boxed::Box;

use tench::memory::{self, Window};
use tench_abi::layout::slot;
use tench_channel::{Calls, Frame, Notifier, Side};
use tench_monitor::cores::boot::CHANNEL_BITS;
use tench_sys::{Cap, Doorbell, Error, Frame as Memory, InterruptControl, MapFlags};

use crate::{Result, no_memory};

/// Interrupt line of the doorbell that wakes a monitor.
pub const LINE: u64 = 0;
/// Maximum number of requests of one side without a reply.
pub const IN_FLIGHT: u32 = 64;

/// The doorbell of another core's monitor.
#[derive(Clone, Copy, Debug)]
pub struct PeerDoorbell(Cap<Doorbell>);

impl Notifier for PeerDoorbell {
    fn notify(&self) {
        // A doorbell, once made, can always be notified.
        let _ = self.0.notify();
    }
}

/// Requests and replies, both ways.
pub type Channel = Box<Calls<Frame<'static>, PeerDoorbell>>;

/// Opens the channel in a frame to the monitor of `core`.
pub fn open(frame: Cap<Memory>, side: Side, core: u64) -> Result<Channel> {
    let slot = memory::take_slot().map_err(no_memory)?;
    let doorbell = Cap::<InterruptControl>::new(slot::INTERRUPT_CONTROL).doorbell(core, LINE, slot)?;
    let window = Window::new(frame, CHANNEL_BITS, MapFlags::READ | MapFlags::WRITE).map_err(no_memory)?;
    let start = NonNull::new(core::ptr::with_exposed_provenance_mut(window.address())).ok_or(Error::InvalidArgument)?;
    // The frame stays mapped as long as this process runs.
    core::mem::forget(window);
    // SAFETY: that many bytes stay mapped there for ever, and nothing else in this process knows the address.
    let lines = unsafe { Frame::at(start, 1 << CHANNEL_BITS) }.map_err(|_| Error::InvalidArgument)?;
    let calls = Calls::open(&lines, side, PeerDoorbell(doorbell), IN_FLIGHT).map_err(|_| Error::InvalidArgument)?;
    Ok(Box::new(calls))
}
