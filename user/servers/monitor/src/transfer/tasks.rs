//! Tasks of workers about capabilities and memory, and the purpose of each.

use alloc::vec::Vec;
use core::time::Duration;

use tench::memory;
use tench::thread::yield_now;
use tench::time;
use tench_channel::Request as Number;
use tench_mem_interface::Mem;
use tench_monitor::message::line::{Admission, Growth};
use tench_monitor::message::{MONITOR, Outcome, Words, ended};
use tench_monitor::transfer::grant::{SMALLEST, grant_bits};
use tench_monitor_interface::protocol::{Error, pid_base};
use tench_procs_interface::Procs;
use tench_procs_interface::protocol::State;
use tench_protocol::Pending;
use tench_quota::Client;
use tench_remote::{Core, ObjectId};
use tench_sys::{Cap, CapAddress, Error as KernelError, OWN_CSPACE};

use crate::kernel::KERNEL;
use crate::requests::dispatcher::{Purpose, Requester};
use crate::requests::processes;
use crate::requests::workers::OwnTask;
use crate::transfer::capabilities::{Ledger, TransferRequest, core};

/// Preemption points that the kernel passes in one part of a deletion.
const PART: u64 = 48;
/// Pause before a deletion goes on that met an exported capability.
const PAUSE: Duration = Duration::from_millis(10);
/// Value in place of a family: the process has ended, or the request named none.
const NOBODY: u64 = 0;
/// Maximum number of processes in one question to the process server.
pub const MOST_ASKED: usize = 60;

/// The dispatcher, whose own tasks are those about capabilities and memory.
pub type Dispatcher = crate::requests::dispatcher::Dispatcher<Work>;

/// The purpose of a worker's task.
pub enum Work {
    /// Finds out whether a process accepts what a local process sends.
    Here(TransferRequest),
    /// Finds out whether a process accepts what a process of another core sends, for that core's request.
    There(u64, Number, Admission),
    /// Deletes a remote object.
    Deletion(ObjectId),
    /// Finds out which processes have ended.
    Sweep,
    /// Finds out how much memory is free here, for a requester that wants memory from another core.
    Growth(u64, Requester, u64),
    /// Gives memory to another core, for its request.
    MemoryGrant(u64, Number),
    /// Revokes from other cores what a process has sent or lent of a block, for a requester that waits.
    Recall(u64, Pending<(), Error>),
    /// Hands memory that another core has given, in this slot, to the memory server.
    Donation(CapAddress, u64),
    /// Returns memory to the memory server.
    Return,
    /// Frees memory of ended processes of which other cores had a part.
    Reclaim,
}

/// A worker's task.
pub enum Task {
    /// Asks for the family of a process, if it runs (0: no process is named), and which of the others do not run.
    Look(u64, Vec<u64>),
    /// Deletes everything that was derived or copied from a slot's capability.
    Delete(CapAddress),
    /// Asks how much memory is free.
    Free,
    /// Asks for the address of the block of a process that has this number.
    Find(u64, u16),
    /// Takes memory from the memory server for a core, or reports why there is none for it.
    Take(Growth),
    /// Hands a slot's memory to the memory server.
    Donate(CapAddress),
    /// Returns the block at an address to the memory server.
    Return(u64),
    /// Makes the memory server free memory of which other cores had a part. The attempt revokes what they still have.
    Reclaim,
}

impl Purpose for Work {
    type Task = Task;

    fn payer(&self) -> Option<u64> {
        match self {
            Work::There(core, ..) | Work::MemoryGrant(core, _) => Some(*core),
            _ => None,
        }
    }
}

impl OwnTask for Task {
    fn carry_out(&self) -> Words {
        carry_out(self)
    }
}

fn carry_out(task: &Task) -> Words {
    match task {
        Task::Look(receiver, others) => {
            let known = if *receiver == MONITOR { None } else { processes::vouch(*receiver).ok() };
            let family = known.map_or(NOBODY, |(family, ..)| family);
            let ended = others.iter().copied().filter(|process| !lives(*process));
            core::iter::once(family).chain(ended).collect()
        }
        Task::Delete(slot) => {
            loop {
                match OWN_CSPACE.revoke_part_at(*slot, PART) {
                    // The main thread, of the same priority, need not wait for more than one part.
                    Err(KernelError::Unfinished) => yield_now(),
                    // Exported capabilities were revoked before; if they are still there, this waits for them.
                    Err(KernelError::RemoteCopies) => time::sleep(PAUSE),
                    _ => return Words::new(),
                }
            }
        }
        Task::Reclaim => {
            reclaim();
            Words::new()
        }
        Task::Free => Mem::STANDARD.totals().ok().map(|totals| totals.free).into_iter().collect(),
        Task::Find(process, number) => {
            let found = Mem::STANDARD.find(*process, *number);
            found.into_iter().flat_map(|block| [block.address, block.size]).collect()
        }
        Task::Take(growth) => match take(growth) {
            Ok(block) => block.into_iter().collect(),
            Err(why) => [why as u64].into_iter().collect(),
        },
        Task::Donate(slot) => donate(*slot).is_some().then_some(1).into_iter().collect(),
        Task::Return(address) => {
            let _ = Mem::STANDARD.number(*address).map(|number| Mem::STANDARD.free(number));
            Words::new()
        }
    }
}

/// Returns a block for another core: its slot, address and size.
fn take(growth: &Growth) -> Result<[u64; 3], Error> {
    let free = Mem::STANDARD.totals().map_err(|_| Error::Internal)?.free;
    let mut bits = grant_bits(growth.bytes, free, growth.free)?;
    let slot = memory::take_slot().map_err(|_| Error::OutOfMemory)?;
    loop {
        match Mem::STANDARD.allocate(bits, slot) {
            Ok(block) => {
                let address = block.untyped.locate(KERNEL).map_err(|_| Error::Internal)?.address;
                return Ok([u64::from(slot.0), address, 1 << block.size_bits]);
            }
            Err(_) if bits > SMALLEST => bits -= 1,
            Err(_) => break,
        }
    }
    memory::free_slot(slot);
    Err(Error::OutOfMemory)
}

/// Gives memory to the memory server, which accepts it only from holders of its authority.
fn donate(memory: CapAddress) -> Option<()> {
    let slot = memory::take_slot().ok()?;
    let added = processes::server("mem", slot).and_then(|authority| {
        let added = Mem::at(authority).add(Cap::new(memory)).ok();
        let _ = authority.delete();
        added
    });
    memory::free_slot(slot);
    added
}

fn reclaim() {
    let mut last = 0;
    while let Ok(block) = Mem::STANDARD.abroad(last) {
        // If it cannot be freed yet, it is tried again.
        let _ = Mem::STANDARD.reclaim(block.number);
        last = block.number;
    }
}

/// Returns whether a process of this core has not ended.
fn lives(process: u64) -> bool {
    let status = Procs::STANDARD.status(process);
    status.is_ok_and(|status| !matches!(status.state, State::Exited | State::Killed | State::Faulted))
}

/// Returns the task that checks, before a transfer, that the receiver runs; and, if there is no room for the transfer,
/// which other processes have ended.
pub fn look(ledger: &Ledger, from: u64, process: u64) -> Task {
    let others = if ledger.has_capacity(from) { Vec::new() } else { ledger.receivers() };
    if process == MONITOR {
        // The monitor itself runs.
        return Task::Look(MONITOR, Vec::new());
    }
    Task::Look(process, others.into_iter().take(MOST_ASKED).collect())
}

/// Handles a finished task. Returns the reply to another core, if that had sent the request.
pub fn finish(ledger: &mut Ledger, own: Core, work: Work, words: &[u64]) -> Option<(u64, Number, Words)> {
    match work {
        Work::Here(request) => {
            remove_ended(ledger, words);
            match admit(ledger, own, request.from, &request.admission(), words) {
                Ok(reservation) => request.send(ledger, reservation),
                Err(why) => request.refuse(ledger, why),
            }
        }
        Work::There(from, number, admission) => {
            remove_ended(ledger, words);
            let sender = core(from)?;
            let reply = match admit(ledger, sender, pid_base(from) | admission.requester, &admission, words) {
                Ok(reservation) => [Outcome::Replied as u64, reservation].into_iter().collect(),
                Err(why) => ended(Outcome::Refused, why as u64),
            };
            return Some((from, number, reply));
        }
        Work::Deletion(object) => ledger.deleted(object),
        Work::Sweep => remove_ended(ledger, words),
        // The first three are handled in `cores`; nobody waits for the others.
        Work::Growth(..) | Work::MemoryGrant(..) | Work::Recall(..) | Work::Return | Work::Reclaim => {}
        Work::Donation(slot, base) => {
            if !words.is_empty() {
                ledger.keep_memory(base);
            }
            // The slot is empty; or the memory was not accepted, and returns to its owner when it is found to be
            // unused.
            ledger.discard(slot);
        }
    }
    None
}

/// Removes the ended processes, which the words name after the family.
fn remove_ended(ledger: &mut Ledger, found: &[u64]) {
    found.iter().skip(1).for_each(|process| ledger.discard_for(*process));
}

fn admit(ledger: &mut Ledger, sender: Core, from: u64, admission: &Admission, found: &[u64]) -> Result<u64, Error> {
    let to = match (admission.process, found) {
        (MONITOR, _) => Client::alone(MONITOR),
        (process, &[family, ..]) if family != NOBODY => Client { process, family },
        _ => return Err(Error::NoSuchProcess),
    };
    ledger.reserve(sender, from, to, admission.word)
}
