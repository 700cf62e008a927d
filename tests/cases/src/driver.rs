//! The driver of a device that belongs to a core other than the first: a program that `init` starts there
//! (systems/tests.toml), and the cases that send it requests from the first core.
//!
//! The device is the machine's port of general-purpose pins. Writing its registers is enough to raise its line: all
//! pins are low, so a pin that interrupts at a low level does so until it is masked.

use tench::abi::Operation;
use tench::abi::layout::slot;
use tench::abi::object::{Statistic, line_flags};
use tench::memory::{self, Window};
use tench::names::Names;
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::sys::{
    Cap, CapAddress, Endpoint, Error, Frame, Interrupt, Message, Notification, Reply, Rights, Trigger, Wait,
};
use tench_monitor_interface::Monitor;

use crate::case::{Case, Failure, Outcome, said};
use crate::kernel::CONTROL;
use crate::space::RW;
use crate::stage::{KERNEL, RTC_LINE, Stage, is_empty, system_call};
use crate::worker::{patience, soon};

pub const CASES: &[Case] = &[
    Case::new("INT0009", "the device of another core interrupts that core, and wakes its driver there", elsewhere),
    Case::new("INT0010", "each line is given by one core's kernel only, whether that core exists or not", divided),
    Case::new(
        "INT0011",
        "a core other than the first is given no line with another trigger than its device's",
        trigger,
    ),
    Case::new("INT0012", "a program with standard capabilities is given no line on any core", attacked),
];

/// Core of the driver, and the lines that belong to it (systems/tests.toml): that of the pins, and that of a virtio
/// transport, which an edge triggers.
const CORE: u64 = 1;
const LINE: u64 = 39;
const EDGE_LINE: u64 = 79;
/// Line of the serial port.
const SERIAL_LINE: u64 = 33;
/// Name under which the driver receives requests.
const NAME: &str = "cases/driver";
/// Badge with which the line signals.
const BADGE: u64 = 0x700;
/// Requests: to let the device interrupt once, and to get a line (number, and 1 for an edge).
const INTERRUPT: u64 = 1;
const GET: u64 = 2;
/// Slots in which the driver is given the device's registers and its line.
const REGISTERS: Cap<Frame> = Cap::new(slot::EXTRA);
const PINS: Cap<Interrupt> = Cap::new(CapAddress(slot::EXTRA.0 + 1));
/// Offsets of the device's registers: whether levels interrupt, whether high ones do, and which pins do.
const SENSE: usize = 0x404;
const EVENT: usize = 0x40c;
const MASK: usize = 0x410;
/// Exit code of the child whose attempts were all refused.
const REFUSED: i32 = 66;

/// Serves requests for ever, one after another.
pub fn serve() -> Outcome<i32> {
    let pins = Window::new(REGISTERS, 12, RW)?;
    let (endpoint, reply) = (memory::make::<Endpoint>(0)?, memory::make::<Reply>(0)?);
    let (notification, badged) = (memory::make::<Notification>(0)?, memory::take_slot()?);
    PINS.bind(Some(notification.cap().mint_to(badged, Rights::WRITE, BADGE)?))?;
    let public = endpoint.cap().mint_to(memory::take_slot()?, Rights::WRITE | Rights::CALL, 0)?;
    said(Names::STANDARD.register(NAME, public))?;
    loop {
        let request = endpoint.cap().receive(Wait::FOREVER.with_reply(reply.cap()))?;
        let found = match (request.label(), request.words()) {
            (INTERRUPT, []) => interrupt(&pins, notification.cap())?,
            (GET, [line, edge]) => get(*line, *edge)?,
            _ => [u64::MAX; 3],
        };
        reply.cap().reply(&Message::with_words(0, &found))?;
    }
}

/// Lets the device interrupt once. Returns the core, the signal, and how many interrupts the core's kernel has handled
/// meanwhile.
fn interrupt(pins: &Window, notification: Cap<Notification>) -> Outcome<[u64; 3]> {
    let before = KERNEL.query(Statistic::Interrupts)?;
    pins.write32(SENSE, 1);
    pins.write32(EVENT, 0);
    pins.write32(MASK, 1);
    let signal = notification.wait_until(patience()).unwrap_or(0);
    pins.write32(MASK, 0);
    PINS.acknowledge()?;
    // A line that is lowered before it is acknowledged does not interrupt again.
    let again = notification.wait_until(soon()).is_ok();
    let handled = KERNEL.query(Statistic::Interrupts)? - before;
    Ok([KERNEL.machine()?.core, if again { u64::MAX } else { signal }, handled])
}

/// Tries to get a line, and gives it back. Returns 0 or the error's number.
fn get(line: u64, edge: u64) -> Outcome<[u64; 3]> {
    let slot = memory::take_slot()?;
    let trigger = if edge == 1 { Trigger::Edge } else { Trigger::Level };
    let found = CONTROL.get(line, trigger, slot);
    if let Ok(line) = found {
        line.delete()?;
    }
    memory::free_slot(slot);
    Ok([found.err().map_or(0, |error| error as u64), 0, 0])
}

/// A capability to the driver.
struct Driver(Cap<Endpoint>);

impl Driver {
    /// Returns the driver; `None` if its core does not exist.
    fn find() -> Outcome<Option<Driver>> {
        if KERNEL.machine()?.cores <= CORE {
            return Ok(None);
        }
        said(Names::STANDARD.wait_for(NAME, memory::take_slot()?)).map(Driver).map(Some)
    }

    fn ask(&self, label: u64, words: &[u64]) -> Outcome<[u64; 3]> {
        let reply = self.0.call(&Message::with_words(label, words))?;
        reply.words().try_into().map_err(|_| Failure::new("the driver replied with other words"))
    }

    /// Returns the reply to an attempt to get a line.
    fn get(&self, line: u64, edge: bool) -> Outcome<u64> {
        Ok(self.ask(GET, &[line, u64::from(edge)])?[0])
    }

    fn close(self) -> Outcome {
        self.0.delete()?;
        memory::free_slot(self.0.address());
        Ok(())
    }
}

fn elsewhere(_: &mut Stage) -> Outcome {
    let Some(driver) = Driver::find()? else { return Ok(()) };
    for _ in 0..4 {
        let [core, signal, handled] = driver.ask(INTERRUPT, &[])?;
        equal!((core, signal), (CORE, BADGE));
        check!(handled > 0);
    }
    driver.close()
}

fn divided(stage: &mut Stage) -> Outcome {
    let slot = stage.slot();
    for line in [LINE, EDGE_LINE] {
        refused!(CONTROL.get(line, Trigger::Level, slot), InvalidInterrupt);
        refused!(CONTROL.get(line, Trigger::Edge, slot), InvalidInterrupt);
        check!(is_empty(Cap::<Interrupt>::new(slot)));
    }
    let Some(driver) = Driver::find()? else { return Ok(()) };
    for line in [SERIAL_LINE, RTC_LINE, LINE - 1, LINE + 1, EDGE_LINE - 1, EDGE_LINE + 1, 27, 320, u64::MAX] {
        for edge in [false, true] {
            equal!(driver.get(line, edge)?, Error::InvalidInterrupt as u64);
        }
    }
    equal!(driver.get(LINE, false)?, Error::Busy as u64);
    driver.close()
}

fn trigger(_: &mut Stage) -> Outcome {
    let Some(driver) = Driver::find()? else { return Ok(()) };
    equal!(driver.get(EDGE_LINE, false)?, Error::InvalidArgument as u64);
    equal!(driver.get(LINE, true)?, Error::InvalidArgument as u64);
    equal!(driver.get(EDGE_LINE, true)?, 0);
    driver.close()
}

fn attacked(stage: &mut Stage) -> Outcome {
    play(Procs::STANDARD)?;
    let monitor = Cap::<Endpoint>::new(stage.slot());
    for core in 1..KERNEL.machine()?.cores {
        let procs = Cap::<Endpoint>::new(stage.slot());
        said(Names::STANDARD.wait_for(Monitor::NAME, monitor.address()))?;
        said(Monitor::at(monitor).processes(core, procs.address()))?;
        play(Procs::at(procs))?;
        procs.delete()?;
        monitor.delete()?;
    }
    Ok(())
}

/// Has a process server start the attacking child, all of whose attempts must be refused.
fn play(procs: Procs) -> Outcome {
    let status = procs.wait(procs.spawn("cases", &["lines"])?)?;
    equal!((status.state, status.exit_code()), (State::Exited, Some(REFUSED as u64)));
    Ok(())
}

/// Runs the attacking child: tries to get lines with each capability that it has, as if that were the right one.
pub fn attack() -> Option<i32> {
    let destination = memory::take_slot().ok()?;
    for cap in 0..u64::from(slot::BOOT_UNTYPED.0) {
        for line in [1, SERIAL_LINE, RTC_LINE, LINE, EDGE_LINE] {
            for trigger in [0, line_flags::EDGE] {
                let arguments = [cap, line, trigger, u64::from(destination.0)];
                if system_call(Operation::InterruptGet as u64, &arguments).is_ok() {
                    return Some(line as i32);
                }
            }
        }
    }
    Some(REFUSED)
}
