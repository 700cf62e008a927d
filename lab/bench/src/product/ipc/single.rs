//! Measurements of paths that return to their caller: each figure is from the `svc` to the instruction after it.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use tench::abi::layout::WATERMARK;
use tench::abi::memory::{MAX_SET, MapFlags, PAGE_BITS, TABLE_ENTRIES};
use tench::abi::{Error, Kind, Operation};
use tench::memory::{Made, make, take_slots};
use tench::sys::{CapAddress, Frame, Notification, PageTable, Untyped};

use crate::support::figure;

use super::actor::{Role, call, perform};
use super::address_space::{Slot, WRITABLE};
use super::passages::own;
use super::programs::{Arguments, MAX_RECORDS};
use super::{Bench, problem};

/// Measures these paths.
pub fn run(bench: &Bench) -> Result<(), String> {
    let empty = Slot::take().map_err(problem("null_syscall"))?;
    let refused = Role::new(call(Operation::Call, &[empty.raw()]));
    measure(bench, "null_syscall", Role { code: Error::InvalidCapability as u64, ..refused })?;
    let notification = make::<Notification>(0).map_err(problem("signal_nowait"))?;
    let number = u64::from(notification.cap().address().0);
    measure(bench, "signal_nowait", Role::new(call(Operation::Signal, &[number])))?;
    let copy = call(Operation::Copy, &[0, number, 0, empty.raw()]);
    measure(bench, "copy_cap", Role::new(copy).undo(&[delete(&empty)]))?;
    thread_control(bench)?;
    mappings(bench)?;
    scattered(bench)?;
    memory(bench)
}

/// Prints the figure of a role that acts alone.
fn measure(bench: &Bench, key: &str, role: Role) -> Result<(), String> {
    let [records] = bench.act(key, [bench.actor(key, role)?])?;
    bench.figure(key, &own(&records))?;
    Ok(())
}

/// Returns the system call that deletes what is in a slot.
fn delete(slot: &Slot) -> Arguments {
    call(Operation::Delete, &[0, slot.raw()])
}

/// Measures `thread_control`: a thread that waits for a signal is suspended and its registers are read, then they are
/// written and the thread is resumed. Two system calls; prints their sum.
fn thread_control(bench: &Bench) -> Result<(), String> {
    let what = "thread_control";
    let notification = make::<Notification>(0).map_err(problem(what))?;
    let wait = call(Operation::Receive, &[u64::from(notification.cap().address().0)]);
    let mut sum = 0;
    for first in 0..2 {
        let waiter = Role { rounds: MAX_RECORDS, ..Role::waiting(wait) };
        let waiter = bench.actor(what, waiter.there())?;
        perform(&[&waiter]).map_err(problem(what))?;
        let calls = [
            call(Operation::ThreadReadRegisters, &[waiter.raw(), 1]),
            call(Operation::ThreadWriteRegisters, &[waiter.raw(), 1]),
            // Lets the resumed thread, which has the same priority, wait again.
            call(Operation::Yield, &[]),
        ];
        let mut circle = calls.into_iter().cycle().skip(first);
        let measured = circle.next().unwrap_or_default();
        let undo: Vec<Arguments> = circle.take(calls.len() - 1).collect();
        let actor = bench.actor(what, Role::new(measured).undo(&undo))?;
        if first != 0 {
            actor.take_registers_of(&waiter).map_err(problem(what))?;
        }
        let [records] = bench.act(what, [actor])?;
        sum += bench.cost(what, &own(&records), 0)?;
    }
    figure(what, sum);
    Ok(())
}

/// Measures mapping and unmapping, in the other address space.
fn mappings(bench: &Bench) -> Result<(), String> {
    let what = "map_1";
    let mapping = Slot::take().map_err(problem(what))?;
    let page = make::<Frame>(u64::from(PAGE_BITS)).map_err(problem(what))?;
    let map = |frame: &Made<Frame>, table: u64, first: u64, count: u64| {
        let frame = u64::from(frame.cap().address().0);
        call(Operation::FrameMap, &[frame, table, first, count, 0, WRITABLE.bits(), mapping.raw()])
    };
    let (entry, _) = bench.other.fault_entry();
    let map_page = map(&page, u64::from(bench.other.table().address().0), entry, 1);
    measure(bench, "map_1", Role::new(map_page).undo(&[delete(&mapping)]))?;
    // The last round has left the page mapped.
    measure(bench, "unmap_1", Role::new(delete(&mapping)).undo(&[map_page]))?;

    let what = "map_each_512";
    let count = TABLE_ENTRIES as u64;
    let pages = make::<Frame>(u64::from(PAGE_BITS + TABLE_ENTRIES.ilog2())).map_err(problem(what))?;
    let map_all = map(&pages, u64::from(bench.other.empty_table().address().0), 0, count);
    let role = Role::new(map_all).undo(&[delete(&mapping)]);
    let [records] = bench.act(what, [bench.actor(what, role)?])?;
    let all = bench.cost(what, &own(&records), 0)?;
    figure("map_512", all);
    // Two decimals: exact enough, and independent of rounding.
    figure(what, format!("{}.{:02}", all / count, all % count * 100 / count));
    Ok(())
}

/// Number of entries that are cloned.
const CLONED: u64 = 192;

/// Measures entries of scattered mappings: one that is set, and many that are cloned and become read-only.
fn scattered(bench: &Bench) -> Result<(), String> {
    let what = "set_1";
    let bits = u64::from(PAGE_BITS + TABLE_ENTRIES.ilog2());
    let frame = make::<Frame>(bits).map_err(problem(what))?;
    let target = make::<PageTable>(3).map_err(problem(what))?;
    let slots = [Slot::take().map_err(problem(what))?, Slot::take().map_err(problem(what))?];
    let [from, to] = [slots[0].raw(), slots[1].raw()];
    frame.cap().scatter(bench.other.empty_table(), CapAddress(from as u32)).map_err(problem(what))?;
    frame.cap().scatter(target.cap(), CapAddress(to as u32)).map_err(problem(what))?;
    let set = |first, count, flags: MapFlags| {
        call(Operation::MappingSet, &[from, first, count, first << PAGE_BITS, flags.bits()])
    };
    let one = set(300, 1, WRITABLE);
    measure(bench, what, Role::new(one).undo(&[set(300, 1, MapFlags::empty())]))?;

    let what = "clone_each_192";
    let number = u64::from(frame.cap().address().0);
    let again = call(Operation::FrameScatter, &[number, u64::from(target.cap().address().0), to]);
    let mut undo = vec![delete(&slots[1]), again];
    undo.extend((0..CLONED / MAX_SET).map(|group| set(group * MAX_SET, MAX_SET, WRITABLE)));
    let clone = call(Operation::MappingClone, &[from, to, 0, CLONED, MapFlags::READ.bits(), 1]);
    let [records] = bench.act(what, [bench.actor(what, Role::new(clone).undo(&undo))?])?;
    let all = bench.cost(what, &own(&records), 0)?;
    figure("clone_192", all);
    figure(what, format!("{}.{:02}", all / CLONED, all % CLONED * 100 / CLONED));
    Ok(())
}

/// Pages that the largest measurement makes at once.
const PAGES: u64 = 256;
/// Retypes before a large revoke.
const BLOCKS: u64 = 4;

/// Measures making and destroying objects.
fn memory(bench: &Bench) -> Result<(), String> {
    let what = "retype_page";
    let bits = u64::from(PAGE_BITS) + PAGES.ilog2() as u64 + BLOCKS.ilog2() as u64;
    let untyped = make::<Untyped>(bits).map_err(problem(what))?;
    let number = u64::from(untyped.cap().address().0);
    let slot = Slot::take().map_err(problem(what))?;
    let retype = |count: u64, first: u64| {
        let (kind, bits) = (Kind::Frame as u64, u64::from(PAGE_BITS));
        call(Operation::UntypedRetype, &[number, kind, bits, count, WATERMARK, 0, first])
    };
    let make_page = retype(1, slot.raw());
    measure(bench, what, Role::new(make_page).undo(&[delete(&slot)]))?;
    // The last round has left a page.
    measure(bench, "delete_page", Role::new(delete(&slot)).undo(&[make_page]))?;
    // Revokes the last round's page.
    untyped.cap().revoke().map_err(problem("delete_page"))?;

    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        let first = take_slots(PAGES as usize).map_err(problem("retype_256"))?;
        blocks.push(retype(PAGES, u64::from(first.0)));
    }
    let revoke = call(Operation::Revoke, &[0, number]);
    measure(bench, "retype_256", Role::new(blocks[0]).undo(&[revoke]))?;
    untyped.cap().revoke().map_err(problem("retype_256"))?;
    // The first round revokes nothing, and does not count.
    measure(bench, "revoke_1024", Role::new(revoke).undo(&blocks))?;
    untyped.cap().revoke().map(|_| ()).map_err(problem("revoke_1024"))
}
