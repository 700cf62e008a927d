//! Tests of other cores, as far as a machine with one core can show them: doorbells, which a core can also notify
//! itself with, and refused requests. On a machine with several cores the cases run on the first, and the monitor owns
//! line 0 of each core.

use tench::abi::layout::slot;
use tench::abi::object::{CorePower, DOORBELLS, Statistic};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{
    Cap, CapAddress, Doorbell, Error, Interrupt, InterruptControl, Machine, Notification, Rights, Trigger, Wait,
};

use crate::case::{Case, Outcome};
use crate::kernel::CONTROL;
use crate::stage::{EMPTY_INDEX, HIGH, KERNEL, RTC_LINE, Stage, identify, is_empty};
use crate::worker::{Equipment, patience, soon};

pub const CASES: &[Case] = &[
    Case::new("COR0001", "a doorbell of the own core is received on its line, with the badge that was bound", heard),
    Case::new("COR0002", "a doorbell interrupt that comes before the line is acknowledged is kept, but once", kept),
    Case::new("COR0003", "a doorbell interrupt after the line was acknowledged is received at once", after),
    Case::new("COR0004", "a doorbell interrupt is received on no other line", other_line),
    Case::new(
        "COR0005",
        "a doorbell interrupt on a line that nobody has is received by whoever takes the line",
        kept_for_nobody,
    ),
    Case::new("COR0006", "of the own core's lines, only the doorbell lines are given", lines),
    Case::new("COR0007", "a doorbell is made for a core and a line that exist, in an empty slot", doorbell_errors),
    Case::new("COR0008", "doorbells are copied, moved, deleted and revoked", copies),
    Case::new("COR0009", "a core that runs or is not there is not started", start),
    Case::new("COR0010", "the kernel knows its core and the device tree", machine),
    Case::new("COR0011", "cores that run are on, and of no other it is said", power),
    Case::new("COR0012", "a doorbell whose signal was taken works again without being acknowledged", taken),
    Case::new("COR0013", "a doorbell interrupt is kept, but once, until its signal is taken", kept_until_taken),
    Case::new("COR0014", "a doorbell wakes a thread that waits for messages", woken),
    Case::new("COR0015", "no line of a device is a doorbell", no_doorbell),
];

/// Doorbell line that the cases notify and that has no listener.
pub const SILENT: u64 = DOORBELLS - 1;
/// Doorbell line on which the cases listen.
const LINE: u64 = 5;
/// Core that runs the cases.
const OWN: u64 = 0;
/// Doorbell line of the monitor, if there are several cores.
const MONITOR: u64 = 0;

/// Returns the number of cores.
fn cores() -> Outcome<u64> {
    Ok(KERNEL.machine()?.cores)
}

/// A notification, and the interrupt line that signals it.
struct Listener {
    line: Cap<Interrupt>,
    notification: Cap<Notification>,
}

/// Listens on a line of this core.
fn listen(stage: &mut Stage, number: u64, badge: u64) -> Outcome<Listener> {
    listen_to(stage, Trigger::Edge, number, badge)
}

/// Listens on a line of this core with this trigger.
fn listen_to(stage: &mut Stage, trigger: Trigger, number: u64, badge: u64) -> Outcome<Listener> {
    let (slot, notification) = (stage.slot(), stage.notification()?);
    let badged = stage.mint(notification, Rights::WRITE, badge)?;
    let line = CONTROL.get(number, trigger, slot)?;
    line.bind(Some(badged))?;
    Ok(Listener { line, notification })
}

/// Makes a doorbell for a line of this core.
fn make_doorbell(stage: &mut Stage, line: u64) -> Outcome<Cap<Doorbell>> {
    let slot = stage.slot();
    Ok(CONTROL.doorbell(OWN, line, slot)?)
}

fn heard(stage: &mut Stage) -> Outcome {
    let (listener, doorbell) = (listen(stage, LINE, 0x500)?, make_doorbell(stage, LINE)?);
    refused!(listener.notification.poll(), WouldBlock);
    let waiter = stage.spawn_with(Equipment::at(HIGH), move || listener.notification.wait_until(patience()))?;
    doorbell.notify()?;
    equal!(waiter.join()?, Ok(0x500));
    refused!(listener.notification.poll(), WouldBlock);
    finish(&listener, doorbell)
}

fn kept(stage: &mut Stage) -> Outcome {
    let (listener, doorbell) = (listen(stage, LINE, 0)?, make_doorbell(stage, LINE)?);
    doorbell.notify()?;
    equal!(listener.notification.wait_until(patience())?, 1);
    doorbell.notify()?;
    doorbell.notify()?;
    refused!(listener.notification.wait_until(soon()), TimedOut);
    listener.line.acknowledge()?;
    equal!(listener.notification.wait_until(patience())?, 1);
    listener.line.acknowledge()?;
    refused!(listener.notification.wait_until(soon()), TimedOut);
    finish(&listener, doorbell)
}

fn after(stage: &mut Stage) -> Outcome {
    let (listener, doorbell) = (listen(stage, LINE, 0)?, make_doorbell(stage, LINE)?);
    for _ in 0..3 {
        doorbell.notify()?;
        equal!(listener.notification.wait_until(patience())?, 1);
        listener.line.acknowledge()?;
        refused!(listener.notification.poll(), WouldBlock);
    }
    finish(&listener, doorbell)
}

fn other_line(stage: &mut Stage) -> Outcome {
    let (low, high) = (listen(stage, LINE, 1)?, listen(stage, LINE + 1, 2)?);
    let (doorbell, other) = (make_doorbell(stage, LINE)?, make_doorbell(stage, LINE + 1)?);
    other.notify()?;
    equal!(high.notification.wait_until(patience())?, 2);
    refused!(low.notification.poll(), WouldBlock);
    doorbell.notify()?;
    equal!(low.notification.wait_until(patience())?, 1);
    refused!(high.notification.poll(), WouldBlock);
    finish(&low, doorbell)?;
    finish(&high, other)
}

fn kept_for_nobody(stage: &mut Stage) -> Outcome {
    let doorbell = make_doorbell(stage, LINE)?;
    doorbell.notify()?;
    let listener = listen(stage, LINE, 0)?;
    equal!(listener.notification.wait_until(patience())?, 1);
    finish(&listener, doorbell)
}

fn lines(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    // 27 is the kernel's timer.
    for number in DOORBELLS..32 {
        refused!(CONTROL.get(number, Trigger::Edge, slot), InvalidInterrupt);
        check!(is_empty(Cap::<Interrupt>::new(slot)));
    }
    let (other, cores) = (stage.slot(), cores()?);
    for number in 0..DOORBELLS {
        if number == MONITOR && cores > 1 {
            refused!(CONTROL.get(number, Trigger::Edge, slot), Busy);
            continue;
        }
        let line = CONTROL.get(number, Trigger::Edge, slot)?;
        equal!(line.identify()?.address, number);
        refused!(CONTROL.get(number, Trigger::Edge, other), Busy);
        line.delete()?;
    }
    Ok(())
}

fn doorbell_errors(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    for core in [cores()?, 64, 1 << 32, 1 << 60, u64::MAX] {
        refused!(CONTROL.doorbell(core, SILENT, slot), NoSuchCore);
    }
    for line in [DOORBELLS, 27, 33, 1 << 32, u64::MAX] {
        refused!(CONTROL.doorbell(OWN, line, slot), InvalidArgument);
    }
    refused!(CONTROL.doorbell(OWN, SILENT, slot::KERNEL), SlotOccupied);
    refused!(CONTROL.doorbell(OWN, SILENT, CapAddress::new(EMPTY_INDEX, 2)), NoSuchSlot);
    check!(is_empty(Cap::<Doorbell>::new(slot)));
    let weak: Cap<InterruptControl> = stage.mint(CONTROL, Rights::READ, 0)?;
    refused!(weak.doorbell(OWN, SILENT, slot), MissingRights);
    weak.delete()?;
    Ok(())
}

fn copies(stage: &mut Stage) -> Outcome {
    let (listener, doorbell) = (listen(stage, LINE, 0)?, make_doorbell(stage, LINE)?);
    let copy = stage.copy(doorbell)?;
    let weak = stage.mint(doorbell, Rights::READ, 0)?;
    refused!(weak.notify(), MissingRights);
    refused!(doorbell.mint_to(stage.slot(), Rights::all(), 7), InvalidArgument);
    copy.notify()?;
    equal!(listener.notification.wait_until(patience())?, 1);
    listener.line.acknowledge()?;
    equal!(doorbell.revoke()?, 2);
    refused!(copy.notify(), InvalidCapability);
    check!(is_empty(weak));
    let moved = doorbell.move_to(stage.slot())?;
    moved.notify()?;
    equal!(listener.notification.wait_until(patience())?, 1);
    equal!(identify(moved.address())?.address, OWN * DOORBELLS + LINE);
    equal!(moved.delete()?.freed.map(|freed| freed.size_bits), Some(0));
    listener.line.delete()?;
    Ok(())
}

fn start(stage: &mut Stage) -> Outcome {
    let cores = cores()?;
    for core in [cores, 64, 1 << 32, u64::MAX] {
        refused!(KERNEL.start_core(core, 0x4020_0000, 0), NoSuchCore);
    }
    for core in OWN..cores {
        refused!(KERNEL.start_core(core, 0x4020_0000, 0), CoreRunning);
    }
    let weak = stage.mint(KERNEL, Rights::READ, 0)?;
    refused!(weak.start_core(OWN, 0x4020_0000, 0), MissingRights);
    weak.delete()?;
    Ok(())
}

fn machine(stage: &mut Stage) -> Outcome {
    let Machine { cores, core, device_tree, device_tree_size } = KERNEL.machine()?;
    equal!(core, OWN);
    // `./tench test` boots machines with 1, 2 and 4 cores; with several, further kernels cannot be started twice
    // (COR0009).
    check!([1, 2, 4].contains(&cores));
    check!(device_tree >= 0x4000_0000 && device_tree.is_multiple_of(8));
    check!(device_tree_size > 0 && device_tree_size < 1 << 21);
    let weak = stage.mint(KERNEL, Rights::WRITE, 0)?;
    refused!(weak.machine(), MissingRights);
    weak.delete()?;
    Ok(())
}

fn power(stage: &mut Stage) -> Outcome {
    let cores = cores()?;
    for core in [cores, 64, 1 << 32, u64::MAX] {
        refused!(KERNEL.core_power(core), NoSuchCore);
    }
    for core in OWN..cores {
        equal!(KERNEL.core_power(core), Ok(CorePower::On));
    }
    let weak = stage.mint(KERNEL, Rights::WRITE, 0)?;
    refused!(weak.core_power(OWN), MissingRights);
    weak.delete()?;
    Ok(())
}

fn taken(stage: &mut Stage) -> Outcome {
    let (listener, doorbell) = (listen_to(stage, Trigger::Doorbell, LINE, 0x50)?, make_doorbell(stage, LINE)?);
    for _ in 0..3 {
        doorbell.notify()?;
        equal!(listener.notification.wait_until(patience())?, 0x50);
        refused!(listener.notification.poll(), WouldBlock);
    }
    let listen = move || (0..3).try_fold(0, |sum, _| Ok(sum + listener.notification.wait_until(patience())?));
    let waiter = stage.spawn_with(Equipment::at(HIGH), move || -> Result<u64, Error> { listen() })?;
    for _ in 0..3 {
        doorbell.notify()?;
    }
    equal!(waiter.join()?, Ok(3 * 0x50));
    finish(&listener, doorbell)
}

fn kept_until_taken(stage: &mut Stage) -> Outcome {
    let (listener, doorbell) = (listen_to(stage, Trigger::Doorbell, LINE, 0)?, make_doorbell(stage, LINE)?);
    let before = KERNEL.query(Statistic::Interrupts)?;
    for _ in 0..100 {
        doorbell.notify()?;
        listener.line.acknowledge()?;
    }
    // Timer interrupts may be among them.
    check!(KERNEL.query(Statistic::Interrupts)? - before < 20);
    equal!(listener.notification.wait_until(patience())?, 1);
    equal!(listener.notification.wait_until(patience())?, 1);
    refused!(listener.notification.wait_until(soon()), TimedOut);
    finish(&listener, doorbell)
}

fn woken(stage: &mut Stage) -> Outcome {
    let (listener, doorbell) = (listen_to(stage, Trigger::Doorbell, LINE, 0x40)?, make_doorbell(stage, LINE)?);
    let (endpoint, heard) = (stage.endpoint()?, stage.word(0)?);
    let listen = move || -> Result<(), Error> {
        for round in 1..=4 {
            let received = endpoint.receive(Wait::FOREVER)?;
            heard.set(if received.is_notification() { received.badge() + round } else { 0 });
        }
        Ok(())
    };
    let waiter = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, listen)?;
    waiter.thread.bind(Bindings { notification: Binding::To(listener.notification), ..Bindings::KEEP })?;
    waiter.thread.resume()?;
    for round in 1..=4 {
        doorbell.notify()?;
        equal!(heard.get(), 0x40 + round);
    }
    equal!(waiter.join()?, Ok(()));
    finish(&listener, doorbell)
}

fn no_doorbell(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    refused!(CONTROL.get(RTC_LINE, Trigger::Doorbell, slot), InvalidArgument);
    refused!(CONTROL.get(27, Trigger::Doorbell, slot), InvalidInterrupt);
    check!(is_empty(Cap::<Interrupt>::new(slot)));
    Ok(())
}

/// Gives back what is not deleted with the case's memory.
fn finish(listener: &Listener, doorbell: Cap<Doorbell>) -> Outcome {
    listener.line.delete()?;
    doorbell.delete()?;
    Ok(())
}
