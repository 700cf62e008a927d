//! Tests of the kernel object, and of interrupts.

use tench::abi::layout::slot;
use tench::abi::object::{Statistic, ThreadState};
use tench::abi::{Operation, Powers};
use tench::memory::Window;
use tench::println;
use tench::sys::{
    Cap, CapAddress, Error, Frame, Interrupt, InterruptControl, Kind, MapFlags, PageTable, Rights, Trigger,
};

use crate::case::{Case, Outcome};
use crate::space::RW;
use crate::stage::{EMPTY_INDEX, HIGH, KERNEL, RTC_LINE, Stage, is_empty, system_call};
use crate::worker::{Equipment, patience, pause, soon};

pub const CASES: &[Case] = &[
    Case::new("INT0001", "only lines that exist and are not the kernel's are given", lines),
    Case::new("INT0002", "a line is given once, and again after its last capability went", once),
    Case::new("INT0003", "an interrupt is bound to one notification, with WRITE", bind_errors),
    Case::new("INT0004", "a device's interrupt signals with the badge that was bound", fires),
    Case::new("INT0005", "a line stays silent until it is acknowledged", acknowledged),
    Case::new("INT0006", "an unbound line is silent", unbound),
    Case::new("INT0007", "deleting the notification unbinds the line", notification_gone),
    Case::new("INT0008", "device memory is mapped as such, and is no IPC buffer", device_memory),
    Case::new("KRN0001", "statistics are returned, others refused", statistics),
    Case::new("KRN0002", "at most 64 bytes are printed at once", print),
    Case::new("KRN0003", "no kernel stack came near its end", stack_depth),
    Case::new("KRN0004", "switches and interrupts are counted", counted),
    Case::new("KRN0005", "a badge with powers permits what they say and nothing else", powers),
    Case::new("KRN0006", "powers are copied and never gained", no_more_powers),
    Case::new("KRN0007", "counters are read by programs only while somebody with COUNTERS lets them", counting),
];

/// Capability to all interrupt lines.
pub const CONTROL: Cap<InterruptControl> = Cap::new(slot::INTERRUPT_CONTROL);
/// Frame of the real-time clock's registers, which this program is given.
pub const RTC: Cap<Frame> = Cap::new(slot::EXTRA);
/// Offsets of the clock's registers: time, alarm, mask, and clearing.
const TIME: usize = 0;
const ALARM: usize = 4;
const MASK: usize = 16;
const CLEAR: usize = 28;

fn lines(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    // 27 is the kernel's timer; lines from 16 on are private to this core, and given to no program.
    for number in [16, 26, 27, 28, 31, 1020, 1023, 4096, 1 << 32, 1 << 32 | RTC_LINE, u64::MAX] {
        refused!(CONTROL.get(number, Trigger::Level, slot), InvalidInterrupt);
    }
    for flags in [2, 3, u64::MAX] {
        let arguments = [u64::from(slot::INTERRUPT_CONTROL.0), RTC_LINE, flags, u64::from(slot.0)];
        refused!(system_call(96, &arguments), InvalidArgument);
    }
    refused!(CONTROL.get(RTC_LINE, Trigger::Level, slot::KERNEL), SlotOccupied);
    refused!(CONTROL.get(RTC_LINE, Trigger::Level, CapAddress::new(EMPTY_INDEX, 2)), NoSuchSlot);
    check!(is_empty(Cap::<Interrupt>::new(slot)));
    Ok(())
}

fn once(stage: &mut Stage) -> Outcome {
    let (slot, other) = (stage.slot(), stage.slot());
    let line = CONTROL.get(RTC_LINE, Trigger::Level, slot)?;
    equal!(line.identify()?.address, RTC_LINE);
    refused!(CONTROL.get(RTC_LINE, Trigger::Level, other), Busy);
    // The serial port's line belongs to the console.
    refused!(CONTROL.get(33, Trigger::Level, other), Busy);
    let copy = stage.copy(line)?;
    line.delete()?;
    refused!(CONTROL.get(RTC_LINE, Trigger::Level, other), Busy);
    equal!(copy.delete()?.freed.map(|freed| freed.size_bits), Some(0));
    CONTROL.get(RTC_LINE, Trigger::Edge, other)?.delete()?;
    Ok(())
}

fn bind_errors(stage: &mut Stage) -> Outcome {
    let (slot, notification, other) = (stage.slot(), stage.notification()?, stage.notification()?);
    let line = CONTROL.get(RTC_LINE, Trigger::Level, slot)?;
    let weak = stage.mint(notification, Rights::READ, 0)?;
    refused!(line.bind(Some(weak)), MissingRights);
    refused!(line.bind(Some(Cap::new(stage.pool.address()))), WrongType);
    refused!(line.bind(Some(Cap::new(stage.slot()))), InvalidCapability);
    line.bind(Some(notification))?;
    refused!(line.bind(Some(other)), AlreadyBound);
    line.bind(None)?;
    line.bind(None)?;
    line.bind(Some(other))?;
    line.delete()?;
    Ok(())
}

/// Maps the clock's registers.
pub fn rtc() -> Outcome<Window> {
    Ok(Window::new(RTC, 12, RW)?)
}

/// Makes the clock raise its line at once: the alarm is now.
pub fn raise_alarm(clock: &Window) {
    clock.write32(MASK, 1);
    clock.write32(ALARM, clock.read32(TIME));
}

/// Makes the clock lower its line.
pub fn quiet(clock: &Window) {
    clock.write32(CLEAR, 1);
    clock.write32(MASK, 0);
}

fn fires(stage: &mut Stage) -> Outcome {
    let (slot, notification, clock) = (stage.slot(), stage.notification()?, Window::new(RTC, 12, RW)?);
    let badged = stage.mint(notification, Rights::WRITE, 0x500)?;
    let line = CONTROL.get(RTC_LINE, Trigger::Level, slot)?;
    line.bind(Some(badged))?;
    let driver = stage.spawn_with(Equipment::at(HIGH), move || notification.wait_until(patience()))?;
    raise_alarm(&clock);
    // A driver of higher priority has run before the next instructions.
    let found = driver.join()?;
    quiet(&clock);
    line.acknowledge()?;
    equal!(found, Ok(0x500));
    refused!(notification.poll(), WouldBlock);
    line.delete()?;
    Ok(())
}

fn acknowledged(stage: &mut Stage) -> Outcome {
    let (slot, notification, clock) = (stage.slot(), stage.notification()?, Window::new(RTC, 12, RW)?);
    let line = CONTROL.get(RTC_LINE, Trigger::Level, slot)?;
    line.bind(Some(notification))?;
    raise_alarm(&clock);
    equal!(notification.wait_until(patience())?, 1);
    // The line is still high, but masked.
    pause(stage)?;
    refused!(notification.poll(), WouldBlock);
    line.acknowledge()?;
    equal!(notification.wait_until(patience())?, 1);
    quiet(&clock);
    line.acknowledge()?;
    refused!(notification.wait_until(soon()), TimedOut);
    line.delete()?;
    Ok(())
}

fn unbound(stage: &mut Stage) -> Outcome {
    let (slot, notification, clock) = (stage.slot(), stage.notification()?, Window::new(RTC, 12, RW)?);
    let line = CONTROL.get(RTC_LINE, Trigger::Level, slot)?;
    line.acknowledge()?;
    line.bind(Some(notification))?;
    line.bind(None)?;
    let before = KERNEL.query(Statistic::Interrupts)?;
    raise_alarm(&clock);
    line.acknowledge()?;
    refused!(notification.poll(), WouldBlock);
    equal!(KERNEL.query(Statistic::Interrupts)?, before);
    // A pending interrupt is delivered when the line is bound.
    line.bind(Some(notification))?;
    equal!(notification.wait_until(patience())?, 1);
    quiet(&clock);
    line.delete()?;
    Ok(())
}

fn notification_gone(stage: &mut Stage) -> Outcome {
    let (slot, notification, other) = (stage.slot(), stage.notification()?, stage.notification()?);
    let clock = Window::new(RTC, 12, RW)?;
    let line = CONTROL.get(RTC_LINE, Trigger::Level, slot)?;
    line.bind(Some(notification))?;
    check!(notification.delete()?.freed.is_some());
    raise_alarm(&clock);
    line.bind(Some(other))?;
    equal!(other.wait_until(patience())?, 1);
    quiet(&clock);
    line.delete()?;
    Ok(())
}

fn device_memory(stage: &mut Stage) -> Outcome {
    let tables = stage.tables()?;
    let mapping = stage.map(RTC, tables.level3, 0, MapFlags::READ)?;
    equal!(mapping.query()?.flags, MapFlags::READ | MapFlags::DEVICE);
    mapping.delete()?;
    let thread = stage.make::<tench::sys::Thread>(0)?;
    let buffer = Some((RTC, 0));
    refused!(thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), buffer), DeviceMemory);
    Ok(())
}

fn statistics(_: &mut Stage) -> Outcome {
    for statistic in Statistic::ALL {
        KERNEL.query(statistic)?;
    }
    for which in [Statistic::ALL.len() as u64, 1 << 32, u64::MAX] {
        refused!(system_call(114, &[u64::from(slot::KERNEL.0), which]), InvalidArgument);
    }
    check!(KERNEL.query(Statistic::Preemptible)? <= 1);
    check!(KERNEL.query(Statistic::BootInstructions)? > 0);
    Ok(())
}

fn print(_: &mut Stage) -> Outcome {
    for length in [65, 1 << 32, u64::MAX] {
        refused!(system_call(113, &[u64::from(slot::KERNEL.0), length]), InvalidArgument);
    }
    equal!(system_call(113, &[u64::from(slot::KERNEL.0), 0]), Ok::<_, Error>([0; 8]));
    Ok(())
}

/// Number of this program's process in badges that the cases make up.
const PROCESS: u64 = 1;

fn powers(stage: &mut Stage) -> Outcome {
    let (frame, root) = (stage.make::<Frame>(12)?.address(), stage.make::<PageTable>(0)?);
    for power in Powers::all().iter().chain([Powers::empty()]) {
        let kernel = stage.mint(KERNEL, Rights::all(), power.badge(PROCESS))?;
        let call = |operation: Operation, rest: [u64; 2]| {
            system_call(operation as u64, &[u64::from(kernel.address().0), rest[0], rest[1]]).err()
        };
        let refusal = |may: Powers| (!power.intersects(may)).then_some(Error::MissingRights);
        equal!((power, kernel.machine().err()), (power, refusal(Powers::all())));
        equal!((power, kernel.query(Statistic::PreemptionPoints).err()), (power, refusal(Powers::COUNTERS)));
        equal!((power, kernel.let_count(true).err()), (power, refusal(Powers::COUNTERS)));
        // The capability is checked before other reasons to refuse.
        let core = refusal(Powers::CORES).unwrap_or(Error::NoSuchCore);
        equal!((power, kernel.core_power(u64::MAX).err()), (power, Some(core)));
        equal!((power, kernel.start_core(u64::MAX, 0, 0).err()), (power, Some(Error::MissingRights)));
        if power != Powers::POWER {
            equal!((power, kernel.power_off(0)), (power, Error::MissingRights));
        }
        for operation in [Operation::KernelExport, Operation::KernelUnexport, Operation::KernelHolders] {
            equal!((power, call(operation, [0, frame.0.into()])), (power, Some(Error::MissingRights)));
        }
        equal!((power, call(Operation::KernelImport, [Kind::Frame as u64, 0])), (power, Some(Error::MissingRights)));
        equal!((power, kernel.print(b"never").err()), (power, Some(Error::MissingRights)));
        equal!((power, root.open_account(kernel).err()), (power, Some(Error::MissingRights)));
        if let Ok(machine) = kernel.machine() {
            equal!((machine.device_tree, machine.device_tree_size), (0, 0));
        }
        kernel.delete()?;
    }
    Ok(())
}

fn no_more_powers(stage: &mut Stage) -> Outcome {
    let narrow = stage.mint(KERNEL, Rights::all(), Powers::COUNTERS.badge(PROCESS))?;
    let slot = stage.slot();
    for badge in [Powers::all().badge(PROCESS), Powers::COUNTERS.badge(PROCESS), 1] {
        refused!(narrow.mint_to(slot, Rights::all(), badge), InvalidArgument);
    }
    let copy = narrow.mint_to(slot, Rights::all(), 0)?;
    equal!(copy.identify()?.badge, Powers::COUNTERS.badge(PROCESS));
    copy.query(Statistic::PreemptionPoints)?;
    refused!(copy.print(b"never"), MissingRights);
    equal!(narrow.revoke()?, 1);
    refused!(copy.query(Statistic::PreemptionPoints), InvalidCapability);
    narrow.delete()?;
    Ok(())
}

/// Reads one of the processor's counters.
macro_rules! counter {
    ($register:literal) => {
        || {
            let count: u64;
            // SAFETY: reads a register, or is an exception of this thread.
            unsafe { core::arch::asm!(concat!("mrs {}, ", $register), out(reg) count, options(nomem, nostack)) };
            count
        }
    };
}

fn counting(stage: &mut Stage) -> Outcome {
    refused!(system_call(Operation::KernelCounters as u64, &[u64::from(slot::KERNEL.0), 2]), InvalidArgument);
    let readers: [fn() -> u64; 2] = [counter!("pmevcntr0_el0"), counter!("pmccntr_el0")];
    for reader in readers {
        for readable in [false, true] {
            KERNEL.let_count(readable)?;
            let worker = stage.spawn(reader)?;
            let state = worker.state()?;
            // The cases after this one measure.
            KERNEL.let_count(true)?;
            equal!((readable, state == ThreadState::Faulted), (readable, !readable));
            worker.thread.delete()?;
        }
    }
    // A program that may not read the counters can know it, and ask the kernel.
    KERNEL.let_count(false)?;
    let (may_count, count) = (tench::time::may_count(), KERNEL.query(Statistic::Instructions));
    KERNEL.let_count(true)?;
    equal!((may_count, tench::time::may_count()), (false, true));
    check!(count? > 0);
    Ok(())
}

/// Bytes that a kernel stack may use at most: two thirds of what there is. That no path exceeds it is proved elsewhere.
pub const STACK_BOUND: u64 = 1400;

fn stack_depth(_: &mut Stage) -> Outcome {
    let depth = KERNEL.query(Statistic::DeepestStack)?;
    println!("  deepest use of a kernel stack: {depth} bytes");
    check!(depth > 0 && depth < STACK_BOUND);
    Ok(())
}

fn counted(stage: &mut Stage) -> Outcome {
    let before = (KERNEL.query(Statistic::Switches)?, KERNEL.query(Statistic::Interrupts)?);
    let idle = KERNEL.query(Statistic::IdleTicks)?;
    pause(stage)?;
    stage.spawn(|| ())?.join()?;
    check!(KERNEL.query(Statistic::Switches)? >= before.0 + 2);
    check!(KERNEL.query(Statistic::Interrupts)? > before.1);
    check!(KERNEL.query(Statistic::IdleTicks)? > idle);
    Ok(())
}
