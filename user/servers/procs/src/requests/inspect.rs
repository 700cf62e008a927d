//! Read-only requests: processes, their capabilities, the boot archive.

use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, SLOT_SIZE};
use tench_abi::{CapAddress, Kind, Powers};
use tench_procs_interface::pid;
use tench_procs_interface::protocol::{CAPABILITIES_PER_REPLY, Capability, Error, MAX_NAME, Status};
use tench_protocol::{ArrayString, List};
use tench_sys::{Cap, PageTable};

use super::kept::{Kept, ProcessRecord, ProcessTable};

/// Maximum number of slots, and of nodes that do not exist, visited for one reply to `capabilities`.
const SLOTS_PER_REPLY: u32 = 1024;

/// Returns the status of a process.
pub fn describe(records: &ProcessTable, process: u64) -> Result<Status, Error> {
    Ok(status_of(process, records.get(process)?))
}

/// Lists capabilities of a process from an address on.
pub fn list_capabilities(
    records: &ProcessTable,
    caller: u64,
    powers: Powers,
    process: u64,
    from: CapAddress,
) -> Result<(CapAddress, List<Capability, CAPABILITIES_PER_REPLY>), Error> {
    records.check_manage(caller, powers, process)?;
    let root = match &records.get(process)?.kernel {
        Some(Kept::Running(running)) => running.process.root,
        // This server's own capabilities are no secret, and can be compared with what should be there.
        None if pid::split_pid(process).1 == pid::PROCS => Cap::new(slot::CSPACE),
        _ => return Err(Error::WrongState),
    };
    let nodes = 1u32 << root.identify().map_err(|_| Error::Internal)?.size_bits.saturating_sub(SLOT_SIZE.ilog2());
    let end = nodes << NODE_BITS;
    // Physical addresses are shown only to callers with the power for them.
    let kernel = Cap::new(if powers.contains(Powers::MEMORY) { slot::KERNEL } else { CapAddress::NULL });
    let mut found = List::new();
    let mut address = from.0;
    for _ in 0..SLOTS_PER_REPLY {
        if address >= end || found.is_full() {
            break;
        }
        match root.locate_at(kernel, CapAddress(address)) {
            Ok(one) if one.kind == Kind::Null => address += 1,
            Ok(one) => {
                found.push(Capability {
                    address: CapAddress(address),
                    kind: one.kind,
                    rights: one.rights,
                    size_bits: one.size_bits,
                    badge: one.badge,
                    object: one.address,
                });
                address += 1;
            }
            // Address 0 is never a capability; at any other address, an error means that the whole node is missing.
            Err(_) if address == 0 => address = 1,
            Err(_) => address = ((address >> NODE_BITS) + 1) << NODE_BITS,
        }
    }
    Ok((if address < end { CapAddress(address) } else { CapAddress::NULL }, found))
}

/// Converts a record to a status.
pub fn status_of(process: u64, record: &ProcessRecord) -> Status {
    let ticks = match &record.kernel {
        Some(Kept::Running(running)) => running.ticks(),
        Some(Kept::Ending(remains, _)) => remains.used(),
        _ if pid::split_pid(process).1 == pid::PROCS => {
            Cap::<PageTable>::new(slot::VSPACE).account().map_or(0, |account| account.ticks)
        }
        _ => record.ticks,
    };
    let status = record.status();
    Status {
        process,
        state: status.state,
        detail: status.detail,
        parent: record.parent,
        priority: u64::from(record.priority),
        ticks,
        size: record.size,
        name: ArrayString::from(&record.name[..record.name.floor_char_boundary(MAX_NAME)]).unwrap_or_default(),
    }
}
