//! Tests of faults: who is notified of them, what the message says, and that only the faulting program ends.

use alloc::format;
use alloc::string::ToString;

use tench::abi::fault::{Class, Report, reply};
use tench::abi::object::ThreadState;
use tench::process;
use tench::procs::Procs;
use tench::procs::protocol::{FaultKind, State};
use tench::sys::{MapFlags, Message, Received, Rights, Wait, ipc::BOUND_REPLY};
use tench_loader::fault::{Fault, Layout, Part};

use crate::assembly;
use crate::case::{Case, Failure, Outcome};
use crate::child::COMPLIED;
use crate::space::BASE;
use crate::stage::{HIGH, Stage};
use crate::worker::{Equipment, Worker, patience};

/// A workload that a program must not execute.
pub struct FaultTrigger {
    /// Name in a child's arguments.
    pub name: &'static str,
    /// Executes it, with an address if it takes one. Its first instruction faults, unless it jumps.
    pub function: unsafe extern "C" fn(u64) -> u64,
    address: fn() -> u64,
    /// Kind of fault that the process server reports.
    kind: FaultKind,
    /// Text of the report about the access and the region.
    text: &'static str,
}

/// First address of the kernel's half.
const KERNEL: u64 = 0xffff_8000_0000_0000;
/// An address at which nothing is ever mapped.
const NOTHING: u64 = BASE + (1 << 38);

/// Defines a workload.
macro_rules! trigger {
    ($name:literal, $function:ident, $address:expr, $kind:ident, $text:literal) => {
        FaultTrigger {
            name: $name,
            function: assembly::$function,
            address: || $address,
            kind: FaultKind::$kind,
            text: $text,
        }
    };
}

/// Returns an address of the program's own code.
fn code() -> u64 {
    assembly::load as *const () as u64
}

/// Returns an address of the program's data, aligned to eight bytes.
fn data() -> u64 {
    static DATA: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
    core::ptr::from_ref(&DATA).expose_provenance() as u64
}

impl FaultTrigger {
    /// All workloads.
    pub const ALL: &[FaultTrigger] = &[
        trigger!(
            "null-read",
            load,
            0,
            NullDereference,
            "read from {address} at instruction {instruction} (region first page)"
        ),
        trigger!(
            "null-write",
            store,
            8,
            NullDereference,
            "write to {address} at instruction {instruction} (region first page)"
        ),
        trigger!(
            "null-jump",
            jump,
            4,
            NullDereference,
            "jump to {address} at instruction {address} (region first page)"
        ),
        trigger!(
            "kernel-read",
            load,
            KERNEL,
            KernelAddress,
            "read from {address} at instruction {instruction} (region kernel's half)"
        ),
        trigger!(
            "kernel-write",
            store,
            KERNEL + 64,
            KernelAddress,
            "write to {address} at instruction {instruction} (region kernel's half)"
        ),
        trigger!(
            "kernel-jump",
            jump,
            KERNEL,
            KernelAddress,
            "jump to {address} at instruction {address} (region kernel's half)"
        ),
        trigger!(
            "kernel-end",
            load,
            !7,
            KernelAddress,
            "read from {address} at instruction {instruction} (region kernel's half)"
        ),
        trigger!(
            "hole",
            load,
            1 << 60,
            KernelAddress,
            "read from {address} at instruction {instruction} (region kernel's half)"
        ),
        trigger!(
            "nothing-read",
            load,
            NOTHING,
            NeverAllocated,
            "read from {address} at instruction {instruction} (region nothing there)"
        ),
        trigger!(
            "nothing-write",
            store,
            NOTHING,
            NeverAllocated,
            "write to {address} at instruction {instruction} (region nothing there)"
        ),
        trigger!(
            "code-write",
            store,
            code(),
            RightsViolation,
            "write to {address} at instruction {instruction} (region segment {segment})"
        ),
        trigger!(
            "data-jump",
            jump,
            data(),
            RightsViolation,
            "jump to {address} at instruction {address} (region segment {segment})"
        ),
        trigger!(
            "unaligned",
            load_exclusive,
            data() + 1,
            Misaligned,
            "read from {address} at instruction {instruction} (region segment {segment})"
        ),
        trigger!(
            "unaligned-jump",
            jump,
            code() + 2,
            Misaligned,
            "syndrome {syndrome} at instruction {address} (region segment {segment})"
        ),
        trigger!(
            "undefined",
            undefined,
            0,
            UndefinedInstruction,
            "at instruction {instruction} (region segment {segment})"
        ),
        trigger!(
            "privileged-read",
            privileged,
            0,
            UndefinedInstruction,
            "at instruction {instruction} (region segment {segment})"
        ),
        trigger!(
            "privileged-write",
            privileged_write,
            0,
            UndefinedInstruction,
            "at instruction {instruction} (region segment {segment})"
        ),
        trigger!(
            "mask",
            mask_interrupts,
            0,
            PrivilegedInstruction,
            "at instruction {instruction} (region segment {segment})"
        ),
        trigger!(
            "hypervisor",
            hypervisor,
            0,
            UndefinedInstruction,
            "at instruction {instruction} (region segment {segment})"
        ),
        trigger!("breakpoint", breakpoint, 0, Breakpoint, "at instruction {instruction} (region segment {segment})"),
    ];

    /// Returns the address for the workload.
    pub fn address(&self) -> u64 {
        (self.address)()
    }

    /// Returns the address of the instruction that faults.
    fn instruction(&self) -> u64 {
        if self.function as usize == assembly::jump as *const () as usize {
            self.address()
        } else {
            self.function as usize as u64
        }
    }

    /// Returns the expected report.
    fn expected(&self, report: &Report, layout: &Layout) -> alloc::string::String {
        let place = if self.text.starts_with("at") { self.instruction() } else { self.address() };
        let region = layout.region(place).to_string();
        let text = self.text.replace("{address}", &format!("{:#x}", self.address()));
        let text = text.replace("{instruction}", &format!("{:#x}", self.instruction()));
        let text = text.replace("{syndrome}", &format!("{:#x}", report.syndrome));
        let text = text.replace("segment {segment}", &region);
        format!("{}: {text}", self.kind)
    }
}

pub const CASES: &[Case] = &[
    Case::new("FLT0001", "a fault message names class, address, instruction and syndrome", messages),
    Case::new("FLT0002", "the report names what happened, address, instruction and region", reports),
    Case::new("FLT0003", "each fault ends its process alone", processes),
    Case::new("FLT0004", "a stack that overflows ends its process at the guard page", guard_page),
    Case::new("FLT0005", "a fault that nobody handles stops its thread", unhandled),
    Case::new("FLT0006", "a handler leaves a thread stopped", stopped),
    Case::new("FLT0007", "a handler resumes a thread after it has changed its registers", changed),
    Case::new("FLT0008", "each class has its own endpoint, and the badge tells which", classes),
    Case::new("FLT0009", "a fault endpoint needs WRITE and CALL", rights),
    Case::new("FLT0010", "a handler that ends without a reply leaves the thread stopped", handler_lost),
    Case::new("FLT0011", "a faulted thread that nobody has heard stops with the endpoint", endpoint_lost),
    Case::new("FLT0012", "a suspended thread forgets its fault's call", suspended),
    Case::new("FLT0013", "an unknown reply leaves the thread stopped", unknown_reply),
    Case::new("FLT0014", "faults are retried as often as they are resumed", retried),
    Case::new("FLT0015", "the kernel refuses a class that does not exist", no_class),
];

/// Spawns a worker that executes a workload, and whose faults go to an endpoint.
fn faulting_worker(
    stage: &mut Stage,
    trigger: &'static FaultTrigger,
) -> Outcome<(Worker<u64>, tench::sys::Cap<tench::sys::Endpoint>)> {
    let endpoint = stage.endpoint()?;
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, move || {
        // SAFETY: the fault goes to the endpoint, where the case decides.
        unsafe { (trigger.function)(trigger.address()) }
    })?;
    for class in Class::ALL {
        worker.thread.faults_to(class, Some(endpoint))?;
    }
    worker.thread.resume()?;
    Ok((worker, endpoint))
}

/// Returns the workload of this name.
fn trigger(name: &str) -> &'static FaultTrigger {
    FaultTrigger::ALL.iter().find(|trigger| trigger.name == name).unwrap_or(&FaultTrigger::ALL[0])
}

/// Returns the report in a fault message.
fn report(received: &Received) -> Report {
    let word = |index| received.word(index);
    Report { class: word(0), address: word(1), instruction: word(2), syndrome: word(3) }
}

fn messages(stage: &mut Stage) -> Outcome {
    for trigger in FaultTrigger::ALL {
        let (worker, endpoint) = faulting_worker(stage, trigger)?;
        let received = endpoint.receive(Wait::until(patience()))?;
        let report = report(&received);
        check!(received.is_fault() && received.words().len() == 4);
        equal!((trigger.name, received.label()), (trigger.name, report.class));
        equal!((trigger.name, report.instruction), (trigger.name, trigger.instruction()));
        let is_page_fault = report.class == Class::PageFault as u64;
        let expected = if is_page_fault { trigger.address() } else { 0 };
        equal!((trigger.name, report.address), (trigger.name, expected));
        equal!((trigger.name, worker.state()?), (trigger.name, ThreadState::AwaitingReply));
        BOUND_REPLY.reply(&Message::new(reply::STOP))?;
        let info = worker.thread.query()?;
        equal!((trigger.name, info.state), (trigger.name, ThreadState::Faulted));
        equal!((trigger.name, info.fault.instruction), (trigger.name, report.instruction));
        equal!((info.fault.address, info.fault.syndrome), (report.address, report.syndrome));
        stage.clear()?;
    }
    Ok(())
}

/// Returns what the loader knows about this process.
fn layout() -> Outcome<Layout> {
    let info = process::info().ok_or_else(|| Failure::new("no process information"))?;
    let mut layout = Layout { stack_bottom: info.stack_bottom, stack_top: info.stack_top, ..Layout::default() };
    for segment in process::segments() {
        let flags = MapFlags::from_bits_truncate(segment.flags);
        layout.segments.push(Part { address: segment.address, size: segment.size, flags });
    }
    Ok(layout)
}

fn reports(stage: &mut Stage) -> Outcome {
    let layout = layout()?;
    for trigger in FaultTrigger::ALL {
        let (_, endpoint) = faulting_worker(stage, trigger)?;
        let received = endpoint.receive(Wait::until(patience()))?;
        let report = report(&received);
        let fault = Fault { report, layout: &layout, own: None };
        equal!((trigger.name, fault.to_string()), (trigger.name, trigger.expected(&report, &layout)));
        BOUND_REPLY.reply(&Message::new(reply::STOP))?;
        stage.clear()?;
    }
    Ok(())
}

/// Starts this program as a process of its own, waits for its end, and checks that another one still runs.
pub fn play_child(arguments: &[&str]) -> Outcome<tench::procs::Status> {
    let procs = Procs::STANDARD;
    let status = procs.wait(procs.spawn("cases", arguments)?)?;
    let other = procs.wait(procs.spawn("cases", &["comply"])?)?;
    equal!(other.exit_code(), Some(COMPLIED));
    Ok(status)
}

fn processes(_: &mut Stage) -> Outcome {
    for trigger in FaultTrigger::ALL {
        let status = play_child(&["fault", trigger.name])?;
        equal!((trigger.name, status.state), (trigger.name, State::Faulted));
        equal!((trigger.name, status.fault()), (trigger.name, Some(trigger.kind)));
    }
    Ok(())
}

fn guard_page(_: &mut Stage) -> Outcome {
    let status = play_child(&["fault", "stack"])?;
    equal!((status.state, status.fault()), (State::Faulted, Some(FaultKind::GuardPage)));
    Ok(())
}

fn unhandled(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn(|| {
        // SAFETY: the fault has no handler, so the thread stops.
        unsafe { assembly::load(16) }
    })?;
    let info = worker.thread.query()?;
    equal!(info.state, ThreadState::Faulted);
    equal!((info.fault.address, info.fault.instruction), (16, code()));
    check!(info.fault.syndrome >> 26 == 0x24);
    // The resumed thread faults again.
    worker.thread.resume()?;
    equal!(worker.state()?, ThreadState::Faulted);
    Ok(())
}

fn stopped(stage: &mut Stage) -> Outcome {
    let (worker, endpoint) = faulting_worker(stage, trigger("null-read"))?;
    endpoint.receive(Wait::until(patience()))?;
    BOUND_REPLY.reply(&Message::new(reply::STOP))?;
    equal!(worker.state()?, ThreadState::Faulted);
    check!(!worker.has_ended());
    Ok(())
}

fn changed(stage: &mut Stage) -> Outcome {
    let (worker, endpoint) = faulting_worker(stage, trigger("undefined"))?;
    endpoint.receive(Wait::until(patience()))?;
    BOUND_REPLY.reply(&Message::new(reply::STOP))?;
    let mut registers = worker.thread.read_registers(false)?;
    registers.x[0] = 0xbeef;
    registers.pc += 4;
    // SAFETY: the thread goes on behind the instruction that faulted.
    unsafe { worker.thread.write_registers(&registers, true) }?;
    equal!(worker.join()?, 0xbeef);
    Ok(())
}

fn classes(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    for (class, name) in [(Class::PageFault, "null-read"), (Class::Exception, "undefined")] {
        let trigger = trigger(name);
        let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, move || {
            // SAFETY: the fault goes to the endpoint.
            unsafe { (trigger.function)(0) }
        })?;
        for other in Class::ALL {
            let badged = stage.mint(endpoint, Rights::WRITE | Rights::CALL, 40 + other as u64)?;
            worker.thread.faults_to(other, Some(badged))?;
        }
        worker.thread.resume()?;
        let received = endpoint.receive(Wait::until(patience()))?;
        equal!((received.label(), received.badge()), (class as u64, 40 + class as u64));
        BOUND_REPLY.reply(&Message::new(reply::STOP))?;
        // Without an endpoint for its class, the fault stops the thread at once.
        worker.thread.faults_to(class, None)?;
        worker.thread.resume()?;
        equal!(worker.state()?, ThreadState::Faulted);
    }
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    Ok(())
}

fn rights(stage: &mut Stage) -> Outcome {
    let (endpoint, worker) = (stage.endpoint()?, stage.spawn(|| 1)?);
    for missing in [Rights::WRITE, Rights::CALL] {
        let weak = stage.mint(endpoint, Rights::all().difference(missing), 0)?;
        refused!(worker.thread.faults_to(Class::PageFault, Some(weak)), MissingRights);
    }
    let notification = stage.notification()?;
    let wrong = tench::sys::Cap::new(notification.address());
    refused!(worker.thread.faults_to(Class::PageFault, Some(wrong)), WrongType);
    let empty = tench::sys::Cap::new(stage.slot());
    refused!(worker.thread.faults_to(Class::PageFault, Some(empty)), InvalidCapability);
    Ok(())
}

fn handler_lost(stage: &mut Stage) -> Outcome {
    let (worker, endpoint) = faulting_worker(stage, trigger("null-read"))?;
    let reply = stage.reply()?;
    endpoint.receive(Wait::until(patience()).with_reply(reply))?;
    equal!(worker.state()?, ThreadState::AwaitingReply);
    reply.delete()?;
    equal!(worker.state()?, ThreadState::Faulted);
    Ok(())
}

fn endpoint_lost(stage: &mut Stage) -> Outcome {
    let (worker, endpoint) = faulting_worker(stage, trigger("null-read"))?;
    equal!(worker.state()?, ThreadState::Sending);
    endpoint.revoke()?;
    endpoint.delete()?;
    equal!(worker.state()?, ThreadState::Faulted);
    // The thread's binding is deleted with the endpoint, so the next fault stops it, too.
    worker.thread.resume()?;
    equal!(worker.state()?, ThreadState::Faulted);
    Ok(())
}

fn suspended(stage: &mut Stage) -> Outcome {
    let (worker, endpoint) = faulting_worker(stage, trigger("null-read"))?;
    equal!(worker.state()?, ThreadState::Sending);
    worker.thread.suspend()?;
    refused!(endpoint.try_receive(Wait::FOREVER), WouldBlock);
    worker.thread.resume()?;
    check!(endpoint.try_receive(Wait::FOREVER)?.is_fault());
    BOUND_REPLY.reply(&Message::new(reply::STOP))?;
    Ok(())
}

fn unknown_reply(stage: &mut Stage) -> Outcome {
    for label in [reply::RESULT, 4, 0xffff_ffff_ffff] {
        let (worker, endpoint) = faulting_worker(stage, trigger("null-read"))?;
        endpoint.receive(Wait::until(patience()))?;
        BOUND_REPLY.reply(&Message::new(label))?;
        equal!((label, worker.state()?), (label, ThreadState::Faulted));
    }
    Ok(())
}

fn retried(stage: &mut Stage) -> Outcome {
    let (worker, endpoint) = faulting_worker(stage, trigger("nothing-read"))?;
    let mut received = endpoint.receive(Wait::until(patience()))?;
    for _ in 0..50 {
        equal!((received.word(1), received.word(2)), (NOTHING, code()));
        received = endpoint.reply_receive(&Message::new(reply::RESUME), Wait::until(patience()))?;
    }
    BOUND_REPLY.reply(&Message::new(reply::STOP))?;
    equal!(worker.state()?, ThreadState::Faulted);
    Ok(())
}

fn no_class(stage: &mut Stage) -> Outcome {
    let worker = stage.spawn(|| 1)?;
    let thread = u64::from(worker.thread.address().0);
    for class in [Class::COUNT as u64, Class::COUNT as u64 + 1, 1 << 32, u64::MAX] {
        let operation = tench::abi::Operation::ThreadFaults as u64;
        refused!(crate::stage::system_call(operation, &[thread, class]), InvalidArgument);
    }
    Ok(())
}
