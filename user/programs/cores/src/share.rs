//! Memory that two cores share, and memory that one core lends to another. This program is both sides: the guest is the
//! same program, started on the other core.

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use tench::memory::{self, Window};
use tench::sys::{
    Cap, CapAddress, Error as KernelError, Frame, Instant, Kind, MapFlags, OWN_CSPACE, Placement, Untyped,
};
use tench::{println, time};
use tench_mem_interface::{Error as MemError, Failure as MemFailure, Mem};
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::{Exchanged, Transfer};
use tench_procs_interface::Status;
use tench_procs_interface::protocol::State;

use crate::processes::{procs, spawn, text, wait};

/// Words of transfers: a frame to share, and lent memory to make frames of.
const SHARE: u64 = 1;
const LEND: u64 = 2;
/// Word of the transfer that returns a frame made of lent memory.
const MADE: u64 = 3;
/// Word of the transfer of a frame on which the guest tries what it cannot do.
pub const CHECK: u64 = 4;

/// Log2 of the sizes in bytes of shared frames and of lent memory.
pub const FRAME_BITS: u32 = 12;
const LENT_BITS: u32 = 16;

const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);
/// Words that the sides write: the sender, and the guest.
const HERE: u64 = 0x6865_7265;
const THERE: u64 = 0x0074_6865_7265;
/// Maximum time for which each side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two checks.
pub const MOMENT: Duration = Duration::from_millis(1);

/// Time for which a monitor's counts must not change. The monitor looks for unused proxies once a second.
const STILL: Duration = Duration::from_millis(1200);

/// Accounting of both sides: free memory of both cores, and the counts of this core's monitor.
#[derive(PartialEq)]
struct Inventory {
    free: [u64; 2],
    exchanged: Exchanged,
}

impl Inventory {
    fn read(monitor: Monitor, core: u64) -> Result<Inventory, String> {
        let (_, own) = monitor.cores().map_err(text)?;
        let free = [monitor.memory(own).map_err(text)?.free, monitor.memory(core).map_err(text)?.free];
        Ok(Inventory { free, exchanged: monitor.exchanged().map_err(text)? })
    }
}

/// Runs an action with a guest on a core `times` times, and reports whether the accounting is as before. The first run
/// precedes the accounting, so that memory that servers cache is there.
pub fn many(
    monitor: Monitor,
    core: u64,
    times: u64,
    once: impl Fn(Monitor, u64, bool) -> Result<(), String>,
) -> Result<(), String> {
    // The capability is kept, which counts from now on.
    procs(monitor, core)?;
    quiet(monitor)?;
    once(monitor, core, true)?;
    quiet(monitor)?;
    let before = Inventory::read(monitor, core)?;
    for _ in 1..times {
        once(monitor, core, false)?;
    }
    if until(|| Inventory::read(monitor, core).is_ok_and(|after| after == before)).is_ok() {
        println!("{times} times; both cores have as much free memory as before");
        return Ok(());
    }
    let after = Inventory::read(monitor, core)?;
    let [here, there] = [0, 1].map(|core| after.free[core] as i64 - before.free[core] as i64);
    Err(format!(
        "free memory changed by {here} and {there} bytes, and the counts from {:?} to {:?}",
        before.exchanged, after.exchanged
    ))
}

/// Waits until a condition holds.
pub fn until(mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    let deadline = time::deadline(PATIENCE);
    while !is_so() {
        if Instant::now() > deadline {
            return Err("the other core does not reply".to_string());
        }
        time::sleep(MOMENT);
    }
    Ok(())
}

/// Returns the monitor's counts as soon as they no longer change: then everything of earlier commands is gone.
pub fn quiet(monitor: Monitor) -> Result<Exchanged, String> {
    let deadline = time::deadline(PATIENCE);
    let mut since = Instant::now();
    let mut counts = monitor.exchanged().map_err(text)?;
    while time::elapsed(since) < STILL {
        if Instant::now() > deadline {
            return Err(format!("the monitor's counts never stay the same: {counts:?}"));
        }
        time::sleep(MOMENT);
        let now = monitor.exchanged().map_err(text)?;
        if now != counts {
            (since, counts) = (Instant::now(), now);
        }
    }
    Ok(counts)
}

/// Waits until the monitor's counts are [those before](quiet) again.
pub fn settled(monitor: Monitor, before: &Exchanged) -> Result<(), String> {
    let is_as_before = || monitor.exchanged().is_ok_and(|now| now == *before);
    until(is_as_before).map_err(|_| format!("the monitor had {before:?}, and has {:?}", monitor.exchanged()))
}

/// Checks that a guest whose memory was revoked has crashed.
fn crashed(process: &Status) -> Result<(), String> {
    match process.state {
        State::Faulted => Ok(()),
        state => Err(format!("the guest still had the memory: {state}")),
    }
}

/// Shares a frame with a guest, and revokes it.
pub fn share(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    many(monitor, core, times, share_once)
}

fn share_once(monitor: Monitor, core: u64, aloud: bool) -> Result<(), String> {
    let guest = spawn(monitor, core, &["cores", "guest"])?;
    let frame = memory::make::<Frame>(u64::from(FRAME_BITS)).map_err(|error| error.to_string())?;
    let window = Window::new(frame.cap(), FRAME_BITS, RW).map_err(|error| error.to_string())?;
    window.write64(0, HERE);
    monitor.give(guest, SHARE, Cap::new(frame.cap().address())).map_err(text)?;
    until(|| window.read64(8) == THERE)?;
    window.write64(0, HERE + 1);
    until(|| window.read64(8) == THERE + 1)?;
    let (_, own) = monitor.cores().map_err(text)?;
    if aloud {
        println!("cores {own} and {core} write into one frame");
    }
    // The sender need not know where the receiver runs: it asks the monitor when the kernel says so.
    match frame.cap().revoke() {
        Err(KernelError::RemoteCopies) if core != own => {
            monitor.revoke(Cap::new(frame.cap().address())).map_err(text)?;
            frame.cap().revoke().map_err(|error| error.to_string())?;
        }
        Ok(_) if core == own => {}
        other => return Err(format!("it was revoked where it is not: {other:?}")),
    }
    crashed(&wait(monitor, guest)?)?;
    if aloud {
        println!("it was taken back, and the process there crashed");
    }
    Ok(())
}

/// Lends memory to a guest, which makes frames of it, one of which comes back; then recalls the memory.
pub fn lend(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    many(monitor, core, times, lend_once)
}

fn lend_once(monitor: Monitor, core: u64, aloud: bool) -> Result<(), String> {
    let guest = spawn(monitor, core, &["cores", "guest"])?;
    let [slot, arrival] = [take_slot()?, take_slot()?];
    let block = Mem::STANDARD.allocate(LENT_BITS, slot).map_err(|failure| failure.to_string())?;
    monitor.lend(guest, LEND, block.untyped).map_err(text)?;
    let (Transfer { from, word }, _) = monitor.take(arrival).map_err(text)?;
    if (from, word) != (guest, MADE) {
        return Err(format!("{from} sent {word}"));
    }
    let window = Window::new(Cap::new(arrival), FRAME_BITS, RW).map_err(|error| error.to_string())?;
    until(|| window.read64(8) == THERE)?;
    window.write64(0, HERE);
    until(|| window.read64(8) == THERE + 1)?;
    if aloud {
        let (_, own) = monitor.cores().map_err(text)?;
        println!("core {core} made a frame of memory that core {own} lent, and both write into it");
    }
    monitor.recall(block.number).map_err(text)?;
    if OWN_CSPACE.identify_at(arrival).is_ok_and(|found| found.kind != Kind::Null) {
        return Err("what was made of the memory is still there".to_string());
    }
    crashed(&wait(monitor, guest)?)?;
    drop(window);
    Mem::STANDARD.free(block.number).map_err(|failure| failure.to_string())?;
    [slot, arrival].into_iter().for_each(memory::free_slot);
    if aloud {
        println!("it was taken back, and the process there crashed");
    }
    Ok(())
}

/// Shares a frame of a process that ends without revoking it.
pub fn leave(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    many(monitor, core, times, leave_once)
}

fn leave_once(monitor: Monitor, core: u64, aloud: bool) -> Result<(), String> {
    let (_, own) = monitor.cores().map_err(text)?;
    let guest = spawn(monitor, core, &["cores", "guest"])?;
    let granter = spawn(monitor, own, &["cores", "granter", &guest.to_string()])?;
    let ended = wait(monitor, granter)?;
    if ended.exit_code() != Some(0) {
        return Err("the process that was to share its memory did not".to_string());
    }
    crashed(&wait(monitor, guest)?)?;
    until(|| monitor.exchanged().is_ok_and(|exchanged| exchanged.exports == 0))?;
    until(|| matches!(Mem::STANDARD.abroad(0), Err(MemFailure::Refused(MemError::NoSuchBlock))))?;
    if aloud {
        println!("a process of core {own} ended, and what it had shared with core {core} is gone there, too");
    }
    Ok(())
}

/// Time that a program takes that ends its core.
const END: Duration = Duration::from_millis(500);

/// Shares a frame with a guest on a core and lends memory to another, starts a program there that ends the core without
/// notice, and recalls everything.
pub fn lose(monitor: Monitor, core: u64, program: &str) -> Result<(), String> {
    let (_, own) = monitor.cores().map_err(text)?;
    let [guest, borrower] = [spawn(monitor, core, &["cores", "guest"])?, spawn(monitor, core, &["cores", "guest"])?];
    let frame = memory::make::<Frame>(u64::from(FRAME_BITS)).map_err(|error| error.to_string())?;
    let window = Window::new(frame.cap(), FRAME_BITS, RW).map_err(|error| error.to_string())?;
    window.write64(0, HERE);
    monitor.give(guest, SHARE, Cap::new(frame.cap().address())).map_err(text)?;
    until(|| window.read64(8) == THERE)?;
    let [slot, arrival] = [take_slot()?, take_slot()?];
    let block = Mem::STANDARD.allocate(LENT_BITS, slot).map_err(|failure| failure.to_string())?;
    monitor.lend(borrower, LEND, block.untyped).map_err(text)?;
    monitor.take(arrival).map_err(text)?;
    println!("core {core} has a frame of core {own}, and memory, of which it made a frame that core {own} has");
    spawn(monitor, core, &[program])?;
    time::sleep(END);
    monitor.revoke(Cap::new(frame.cap().address())).map_err(text)?;
    frame.cap().revoke().map_err(|error| error.to_string())?;
    monitor.recall(block.number).map_err(text)?;
    if OWN_CSPACE.identify_at(arrival).is_ok_and(|found| found.kind != Kind::Null) {
        return Err("what was made of the memory is still there".to_string());
    }
    Mem::STANDARD.free(block.number).map_err(|failure| failure.to_string())?;
    [slot, arrival].into_iter().for_each(memory::free_slot);
    let why = wait(monitor, guest).err().unwrap_or_else(|| "it goes on".to_string());
    let exchanged = monitor.exchanged().map_err(text)?;
    println!(
        "all was taken back, {} objects are on other cores; whoever waits for the process there: {why}",
        exchanged.exports
    );
    Ok(())
}

/// Shares a frame with a guest, and starts a program on its core that breaks the channel to the core, and later stops
/// the core. The guest may use the frame as long as the core is on.
pub fn keep(monitor: Monitor, core: u64, program: &str) -> Result<(), String> {
    let guest = spawn(monitor, core, &["cores", "guest"])?;
    let frame = memory::make::<Frame>(u64::from(FRAME_BITS)).map_err(|error| error.to_string())?;
    let window = Window::new(frame.cap(), FRAME_BITS, RW).map_err(|error| error.to_string())?;
    window.write64(0, HERE);
    monitor.give(guest, SHARE, Cap::new(frame.cap().address())).map_err(text)?;
    until(|| window.read64(8) == THERE)?;
    spawn(monitor, core, &[program])?;
    time::sleep(END);
    // The damage is noticed when the monitor receives something.
    until(|| monitor.ping(core).is_err())?;
    let why = monitor.ping(core).err().map_or("it replies".to_string(), text);
    window.write64(0, HERE + 1);
    until(|| window.read64(8) == THERE + 1)?;
    match frame.cap().revoke() {
        Err(KernelError::RemoteCopies) => {
            println!("core {core}: {why}; a process there has a frame of this core, and uses it")
        }
        other => return Err(format!("the frame was taken back from a core that is on: {other:?}")),
    }
    until(|| frame.cap().revoke().is_ok())?;
    println!("when the core had stopped, the frame was taken back");
    Ok(())
}

/// Shares a frame with a guest, and ends.
pub fn granter(monitor: Monitor, guest: u64) -> Result<(), String> {
    let frame = memory::make::<Frame>(u64::from(FRAME_BITS)).map_err(|error| error.to_string())?.leak();
    let window = Window::new(frame, FRAME_BITS, RW).map_err(|error| error.to_string())?;
    window.write64(0, HERE);
    monitor.give(guest, SHARE, Cap::new(frame.address())).map_err(text)?;
    until(|| window.read64(8) == THERE)?;
    window.write64(0, HERE + 1);
    until(|| window.read64(8) == THERE + 1)
}

/// Takes an empty slot.
pub fn take_slot() -> Result<CapAddress, String> {
    memory::take_slot().map_err(|error| error.to_string())
}

/// Runs the guest: takes a transfer, and uses it until it is revoked, which ends the guest.
pub fn guest(monitor: Monitor) -> Result<(), String> {
    let slot = take_slot()?;
    let (Transfer { from, word }, _) = monitor.take(slot).map_err(text)?;
    let frame = match word {
        SHARE => Cap::<Frame>::new(slot),
        CHECK => return crate::refusals::of_a_copy(monitor, from, Cap::new(slot)),
        LEND => {
            let first = memory::take_slots(4).map_err(|error| error.to_string())?;
            let lent = Cap::<Untyped>::new(slot);
            lent.retype_many(Kind::Frame, u64::from(FRAME_BITS), 4, Placement::Watermark, OWN_CSPACE, first)
                .map_err(|error| error.to_string())?;
            monitor.give(from, MADE, Cap::new(first)).map_err(text)?;
            Cap::new(first)
        }
        other => return Err(format!("{from} sent {other}")),
    };
    let window = Window::new(frame, FRAME_BITS, RW).map_err(|error| error.to_string())?;
    window.write64(8, THERE);
    until(|| window.read64(0) >= HERE)?;
    until(|| word == LEND || window.read64(0) == HERE + 1)?;
    window.write64(8, THERE + 1);
    // From here on the other side can revoke it at any time.
    loop {
        window.read64(0);
        time::sleep(MOMENT);
    }
}
