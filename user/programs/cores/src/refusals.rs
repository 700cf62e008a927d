//! Objects that cannot be sent to a process of another core. Checks that a failed transfer leaves nothing behind.

use alloc::string::{String, ToString};

use tench::abi::layout::slot;
use tench::memory;
use tench::println;
use tench::sys::{Cap, Frame, Placement, Untyped};
use tench::sys::{Kind, OWN_CSPACE};
use tench::time::{self, Duration};
use tench_mem_interface::Mem;
use tench_monitor_interface::Failure;
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::{Error, Transfer, pid_base};

use crate::processes::{on, spawn, text, wait};
use crate::share::{CHECK, FRAME_BITS, take_slot, until};

/// A process number that no core has.
const NOBODY: u64 = 9999;
/// Number of transfers that one process may send without any being taken: half of the mailboxes' capacity.
const MOST: u64 = 128;

/// Prints which transfer failed, and why.
fn refused<T>(what: &str, response: Result<T, Failure>) -> Result<(), String> {
    match response {
        Err(Failure::Refused(why)) => {
            println!("{what}: {why}");
            Ok(())
        }
        Err(failure) => Err(failure.to_string()),
        Ok(_) => Err(what.to_string() + " was not refused"),
    }
}

/// Tries all failing transfers with a core.
pub fn all(monitor: Monitor, core: u64) -> Result<(), String> {
    let idle = spawn(monitor, core, &["cores", "idle"])?;
    let frame = memory::make::<Frame>(u64::from(FRAME_BITS)).map_err(|error| error.to_string())?;
    let any = || Cap::new(frame.cap().address());
    refused("a thread", monitor.give(idle, 0, Cap::new(slot::THREAD)))?;
    refused("to a process that there is not", monitor.give(pid_base(core) | NOBODY, 0, any()))?;
    refused("to a core that there is not", monitor.give(pid_base(77) | 1, 0, any()))?;
    refused("memory of which something was made", lend_used(monitor, idle))?;
    refused("to take back a block that there is not", monitor.recall(0))?;
    monitor.revoke(any()).map_err(text)?;
    of_a_full_mailbox(monitor, idle, &frame)?;
    let guest = spawn(monitor, core, &["cores", "guest"])?;
    monitor.give(guest, CHECK, any()).map_err(text)?;
    let ended = wait(monitor, guest)?;
    if ended.exit_code() != Some(0) {
        return Err("the guest found something wrong".to_string());
    }
    refused("to a process that has ended", monitor.give(guest, 0, any()))?;
    // The copy is found to be unused and returned, and the transfer that it sent here is taken.
    let slot = take_slot()?;
    let (Transfer { from, .. }, _) = monitor.take(slot).map_err(text)?;
    let _ = OWN_CSPACE.delete_at(slot);
    memory::free_slot(slot);
    until(|| from == guest && monitor.exchanged().is_ok_and(|exchanged| exchanged.exports == 0))?;
    println!("nothing is left of it");
    Ok(())
}

/// Tries to lend memory of which a frame was made.
fn lend_used(monitor: Monitor, to: u64) -> Result<(), Failure> {
    let refuse = |_| Failure::Refused(Error::OutOfMemory);
    let [slot, made] = [memory::take_slot().map_err(refuse)?, memory::take_slot().map_err(refuse)?];
    let block = Mem::STANDARD.allocate(FRAME_BITS + 1, slot).map_err(|_| Failure::Refused(Error::OutOfMemory))?;
    let frame = u64::from(FRAME_BITS);
    let retyped = block.untyped.retype_many(Kind::Frame, frame, 1, Placement::Watermark, OWN_CSPACE, made);
    let lent = retyped.map_err(Failure::Lost).and_then(|_| monitor.lend(to, 0, Cap::<Untyped>::new(slot)));
    // The capability is gone, and the memory belongs to the memory server.
    let freed = Mem::STANDARD.free(block.number);
    [slot, made].into_iter().for_each(memory::free_slot);
    lent.and(freed.map(drop).map_err(|_| Failure::Refused(Error::Internal)))
}

/// Sends transfers that nobody takes until no more are accepted; when the receiver has ended, all of them are dropped.
fn of_a_full_mailbox(monitor: Monitor, idle: u64, frame: &memory::Made<Frame>) -> Result<(), String> {
    let any = || Cap::new(frame.cap().address());
    for _ in 0..MOST {
        monitor.give(idle, 0, any()).map_err(text)?;
    }
    refused("one more than 128 that nobody takes", monitor.give(idle, 0, any()))?;
    on(monitor, idle, |procs| procs.kill(idle))?;
    wait(monitor, idle)?;
    until(|| monitor.exchanged().is_ok_and(|exchanged| exchanged.exports == 0))
}

/// Tries what a guest cannot do with another core's frame, and what it can.
pub fn of_a_copy(monitor: Monitor, from: u64, frame: Cap<Frame>) -> Result<(), String> {
    let any = || Cap::new(frame.address());
    refused("to revoke another core's frame", monitor.revoke(any()))?;
    // The frame's own core can have it again.
    monitor.give(from, CHECK, any()).map_err(text)
}

/// Takes no transfers.
pub fn idle() -> Result<(), String> {
    loop {
        time::sleep(Duration::from_secs(60));
    }
}
