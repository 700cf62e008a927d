//! Measurements of faults, upcalls and device interrupts.

use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::fault::{Class, reply as label};
use tench::abi::layout::slot;
use tench::abi::memory::PAGE_BITS;
use tench::abi::{CapAddress, Operation, Tag};
use tench::memory::{Window, make};
use tench::sys::{Cap, Endpoint, Frame, Interrupt, Notification};

use super::actor::{DEVICE, HIGHER, PRIORITY, Role, call};
use super::address_space::{Slot, WRITABLE};
use super::passages::{across, own};
use super::programs::{Program, RawRecord};
use super::{Bench, problem};

/// Measures these paths.
pub fn run(bench: &Bench) -> Result<(), String> {
    endpoint(bench)?;
    foreign_message(bench)?;
    upcall(bench, "fault_upcall", "upcall_return", Program::Load, Class::PageFault, 4)?;
    upcall(bench, "foreign_upcall", "foreign_return", Program::ForeignCall, Class::ForeignCall, 0)?;
    interrupt(bench)
}

/// Measures `fault_endpoint`, from a load from an unmapped address to the first instruction of the handler, which waits
/// at the thread's fault endpoint, and `fault_reply`, from the handler's `svc`, after it has mapped a page there, to
/// the retried load.
fn endpoint(bench: &Bench) -> Result<(), String> {
    let what = "fault_endpoint";
    let endpoint = make::<Endpoint>(0).map_err(problem(what))?;
    let page = make::<Frame>(u64::from(PAGE_BITS)).map_err(problem(what))?;
    let mapping = Slot::take().map_err(problem(what))?;
    let (entry, address) = bench.other.fault_entry();
    let table = u64::from(bench.other.table().address().0);
    let frame = u64::from(page.cap().address().0);
    let map = call(Operation::FrameMap, &[frame, table, entry, 1, 0, WRITABLE.bits(), mapping.raw()]);
    let handler = Role::waiting(call(Operation::ReplyReceive, &[u64::from(endpoint.cap().address().0)])).undo(&[map]);
    let mut measured = [0; 13];
    measured[0] = address;
    let unmap = call(Operation::Delete, &[0, mapping.raw()]);
    let faulter = Role::new(measured).program(Program::Load).there().undo(&[unmap]);
    let (handler, faulter) = (bench.actor(what, handler)?, bench.actor(what, faulter)?);
    faulter.faults_to(Class::PageFault, endpoint.cap()).map_err(problem(what))?;
    let [handler, faulter] = bench.act(what, [handler, faulter])?;
    bench.figure("fault_endpoint", &across(&faulter, &handler))?;
    // The successful load is the first instruction that the thread executes.
    bench.figure_less("fault_reply", &across(&handler, &faulter), 1)?;
    Ok(())
}

/// Measures `foreign_message`: a foreign system call of a thread whose handler, in the other address space, waits at
/// the thread's fault endpoint, and the handler's reply with one word of result, to the instruction after the call.
fn foreign_message(bench: &Bench) -> Result<(), String> {
    let what = "foreign_message";
    let endpoint = make::<Endpoint>(0).map_err(problem(what))?;
    let (tag, result) = (Tag::new(label::RESULT, 1).0, 77);
    let mut answer = call(Operation::ReplyReceive, &[u64::from(endpoint.cap().address().0), tag]);
    answer[2] = result;
    let handler = bench.actor(what, Role::waiting(answer).there())?;
    let foreigner = Role { code: result, ..Role::new([0; 13]) }.program(Program::ForeignCall);
    let foreigner = bench.actor(what, foreigner)?;
    foreigner.faults_to(Class::ForeignCall, endpoint.cap()).map_err(problem(what))?;
    let [handler, foreigner] = bench.act(what, [handler, foreigner])?;
    bench.round_trip(what, [&foreigner, &handler], 0)
}

/// Measures from the instruction to the upcall's first, and from the `svc` that ends the upcall to the instruction at
/// which the thread goes on.
fn upcall(bench: &Bench, there: &str, back: &str, program: Program, class: Class, skip: u64) -> Result<(), String> {
    // The first page of an address space is never mapped.
    let actor = bench.actor(there, Role::new([0; 13]).program(program))?;
    actor.faults_upcall(class, skip).map_err(problem(there))?;
    let [records] = bench.act(there, [actor])?;
    let every_other = |first| -> Vec<RawRecord> { records.iter().skip(first).step_by(2).copied().collect() };
    bench.figure(there, &own(&every_other(0)))?;
    // The handler stores the reading where the kernel restores registers from, which takes one instruction.
    bench.figure_less(back, &own(&every_other(1)), 1)?;
    Ok(())
}

/// The real-time clock's registers and interrupt, as the system description gives them.
const CLOCK: (Cap<Frame>, Cap<Interrupt>) = (Cap::new(slot::EXTRA), Cap::new(CapAddress(slot::EXTRA.0 + 1)));

/// Registers of Arm's PL031 real-time clock.
mod register {
    /// Seconds, read-only.
    pub const DATA: usize = 0x00;
    /// Seconds at which the interrupt is raised.
    pub const MATCH: usize = 0x04;
    /// 1: the raised interrupt reaches the line.
    pub const MASK: usize = 0x10;
    /// 1: the interrupt is raised.
    pub const RAW_STATUS: usize = 0x14;
}

/// Measures `irq_wake`, from the store that makes a device raise its line to the first instruction of the thread that
/// waits for the interrupt and has the higher priority, and `irq_return`, from that thread's next wait to the
/// interrupted instruction.
///
/// The device is the real-time clock, whose alarm has gone off once and for all; the store lets the alarm reach the
/// line. The waiting thread masks the alarm, acknowledges the interrupt (neither counts) and waits again.
fn interrupt(bench: &Bench) -> Result<(), String> {
    let what = "irq_wake";
    let (frame, line) = CLOCK;
    let here = Window::new(frame, PAGE_BITS, DEVICE).map_err(problem(what))?;
    let there = bench.other.show(frame, DEVICE).map_err(problem(what))?;
    here.write32(register::MASK, 0);
    while here.read32(register::RAW_STATUS) & 1 == 0 {
        here.write32(register::MATCH, here.read32(register::DATA));
    }
    let notification = make::<Notification>(0).map_err(problem(what))?;
    line.bind(Some(notification.cap())).map_err(problem(what))?;

    let acknowledge = call(Operation::InterruptAcknowledge, &[u64::from(line.address().0)]);
    let wait = call(Operation::Receive, &[u64::from(notification.cap().address().0)]);
    let waiter = Role::waiting(wait).there().priority(HIGHER).undo(&[acknowledge]);
    let mut store = [0; 13];
    store[0] = (here.address() + register::MASK) as u64;
    store[1] = 1;
    let worker = Role { code: store[0], ..Role::new(store) }.program(Program::Store).priority(PRIORITY);
    let waiter = bench.actor(what, waiter)?;
    waiter.quiet(there.address() + register::MASK as u64);
    let [waiter, worker] = bench.act(what, [waiter, bench.actor(what, worker)?])?;
    bench.figure("irq_wake", &across(&worker, &waiter))?;
    bench.figure("irq_return", &across(&waiter, &worker))?;
    line.bind(None).map_err(problem(what))
}
