//! Interrupts: a device's line becomes a signal on a notification.
//!
//! A line is masked when it fires and unmasked when its owner acknowledges, so a driver that is slow or dead costs
//! the others nothing.
//!
//! A doorbell is the capability to the other end of such a line: a signal to it interrupts the core that it names,
//! which may be run by another kernel. Lines below [`DOORBELLS`] are the ones that can be rung.
//!
//! Who rings has nothing to be quieted, so whoever is rung can leave acknowledging to the kernel: a line that is
//! *automatic* is unmasked when the signal is taken. If somebody waits for it when the line fires, that is at once, and
//! the line is not masked at all; otherwise it is held by the notification until then. So each time that somebody
//! looks, at most two interrupts have come: one that woke him, and one that has been kept.
//!
//! Handlers run with interrupts masked but for [`window::nested`](crate::window::nested), where others get in. Only the
//! handler of the timer passes such windows, when more deadlines have passed than one batch; its own line is masked
//! then, and every other handler is short. So at most two interrupts are under way at once, whatever programs do.

use tench_abi::object::{DOORBELLS, line_flags};
use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability_slot, slot_at};
use crate::kernel::INTERRUPTS;
use crate::object::{InterruptLine, Notification, Ref};
use crate::slot::Cap;
use crate::thread::Thread;
use crate::{Arch, Kernel, derivation, notification, space, timers, watch, window};

/// Serves one pending interrupt, if there is one. Answers what is to be signalled.
#[inline(always)]
pub fn serve<A: Arch>(k: &mut Kernel<A>) -> Option<(Ref<Notification>, u64)> {
    let number = k.arch().interrupt_acknowledge()?;
    k.state().statistics.interrupts += 1;
    if number == k.arch().timer_interrupt() {
        watch::timer(k);
        if timers::expire(k) {
            k.arch().interrupt_end(number);
        } else {
            expire_rest(k, number);
        }
        return None;
    }
    if has_to_wait(k, number) {
        k.arch().interrupt_disable(number);
    }
    k.arch().interrupt_end(number);
    let line = k.state().interrupts.get(number as usize)?;
    let badge = line.badge;
    line.notification.map(|target| (target, badge))
}

/// Whether a line that has fired is to be masked until it is acknowledged: always, unless it is automatic and its
/// signal is about to be taken. One that is automatic and waits is held by its notification.
#[inline(always)]
fn has_to_wait<A: Arch>(k: &mut Kernel<A>, number: u32) -> bool {
    if u64::from(number) >= DOORBELLS {
        return true;
    }
    let line = k.state().interrupts[number as usize];
    let (true, Some(target)) = (line.automatic, line.notification) else { return true };
    if notification::is_awaited(k, target) {
        return false;
    }
    k.get(target).held |= bit(number);
    true
}

/// The bit of a line that can be rung.
#[inline(always)]
const fn bit(line: u32) -> u16 {
    1 << (line % DOORBELLS as u32)
}

/// What a notification has to say is about to be taken: the lines that it holds are let in.
#[cold]
#[inline(never)]
pub fn let_in<A: Arch>(k: &mut Kernel<A>, notification: Ref<Notification>) {
    let mut held = core::mem::take(&mut k.get(notification).held);
    while held != 0 {
        let line = held.trailing_zeros();
        k.arch().interrupt_enable(line);
        held &= !bit(line);
    }
}

/// The rest of a timer interrupt that a single batch of deadlines was not enough for.
///
/// The interrupt is ended first, because the controller lets nothing else in while it counts as being served. Its line
/// is masked meanwhile, like any other that has fired, whatever deadlines are set: what has become due is found here.
#[cold]
#[inline(never)]
fn expire_rest<A: Arch>(k: &mut Kernel<A>, number: u32) {
    k.arch().interrupt_disable(number);
    k.arch().interrupt_end(number);
    loop {
        window::nested(k);
        if timers::expire(k) {
            break;
        }
    }
    k.arch().interrupt_enable(number);
}

/// The line that an interrupt capability in `x0` names.
fn line<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<u32, Error> {
    let slot = capability_slot(k, thread, Kind::Interrupt, Rights::WRITE)?;
    Ok(k.slot(slot).cap.object as u32)
}

/// `InterruptGet`.
pub fn get<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::InterruptControl, Rights::WRITE)?;
    let (number, flags) = (argument(k, thread, 1), argument(k, thread, 2));
    if flags & !(line_flags::EDGE | line_flags::AUTOMATIC) != 0 {
        return Err(Error::InvalidArgument);
    }
    let Ok(number) = u32::try_from(number) else { return Err(Error::InvalidInterrupt) };
    if number as usize >= INTERRUPTS || !k.arch().interrupt_exists(number) || number == k.arch().timer_interrupt() {
        return Err(Error::InvalidInterrupt);
    }
    let automatic = flags & line_flags::AUTOMATIC != 0;
    if automatic && u64::from(number) >= DOORBELLS {
        return Err(Error::InvalidArgument);
    }
    if k.state().interrupts[number as usize].taken {
        return Err(Error::Busy);
    }
    let address = argument(k, thread, 3);
    let destination = space::destination(k, 0, address)?;
    let line = &mut k.state().interrupts[number as usize];
    (line.taken, line.automatic) = (true, automatic);
    k.arch().interrupt_set_edge(number, flags & line_flags::EDGE != 0);
    derivation::insert_child(k, destination, Cap::new(Kind::Interrupt, number as usize, 0));
    Ok(Outcome::Done)
}

/// `InterruptBind`.
pub fn bind<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let number = line(k, thread)?;
    let address = argument(k, thread, 1);
    if address == 0 {
        unbind(k, number);
        return Ok(Outcome::Done);
    }
    let slot = slot_at(k, address, Kind::Notification, Rights::WRITE)?;
    let cap = k.slot(slot).cap;
    // SAFETY: a live capability of this kind names such an object.
    let Some(target) = (unsafe { Ref::<Notification>::at(cap.object) }) else {
        return Err(Error::InvalidCapability);
    };
    if k.state().interrupts[number as usize].notification.is_some() {
        return Err(Error::AlreadyBound);
    }
    let link = number as u16 + 1;
    let next = core::mem::replace(&mut k.get(target).first_interrupt, link);
    if next != 0 {
        k.state().interrupts[next as usize - 1].previous = link;
    }
    let badge = if cap.badge == 0 { 1 } else { cap.badge };
    let line = &mut k.state().interrupts[number as usize];
    *line = InterruptLine { notification: Some(target), badge, next, previous: 0, ..*line };
    k.arch().interrupt_enable(number);
    Ok(Outcome::Done)
}

/// `InterruptAcknowledge`. What is automatic is let in when its signal is taken, and not before.
pub fn acknowledge<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let number = line(k, thread)?;
    let line = k.state().interrupts[number as usize];
    if line.notification.is_some() && !line.automatic {
        k.arch().interrupt_enable(number);
    }
    Ok(Outcome::Done)
}

/// What a doorbell names: a core and one of its lines.
fn bell(core: u64, line: u64) -> usize {
    (core * DOORBELLS + line) as usize
}

/// `InterruptDoorbell`.
pub fn doorbell<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::InterruptControl, Rights::WRITE)?;
    let (core, line) = (argument(k, thread, 1), argument(k, thread, 2));
    if core >= k.arch().cores() {
        return Err(Error::NoSuchCore);
    }
    if line >= DOORBELLS {
        return Err(Error::InvalidArgument);
    }
    let address = argument(k, thread, 3);
    let destination = space::destination(k, 0, address)?;
    derivation::insert_child(k, destination, Cap::new(Kind::Doorbell, bell(core, line), 0));
    Ok(Outcome::Done)
}

/// `Signal` with a doorbell.
#[inline]
pub fn ring<A: Arch>(k: &mut Kernel<A>, bell: usize) {
    let bell = bell as u64;
    k.arch().ring(bell / DOORBELLS, (bell % DOORBELLS) as u32);
}

/// Masks a line and takes it off its notification's list, which can be as long as there are lines.
pub fn unbind<A: Arch>(k: &mut Kernel<A>, number: u32) {
    k.arch().interrupt_disable(number);
    let line = &mut k.state().interrupts[number as usize];
    let (next, previous) = (core::mem::take(&mut line.next), core::mem::take(&mut line.previous));
    let Some(target) = line.notification.take() else { return };
    if u64::from(number) < DOORBELLS {
        k.get(target).held &= !bit(number);
    }
    match previous {
        0 => k.get(target).first_interrupt = next,
        previous => k.state().interrupts[previous as usize - 1].next = next,
    }
    if next != 0 {
        k.state().interrupts[next as usize - 1].previous = previous;
    }
}

/// The last capability to a line goes.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, number: u32) -> bool {
    unbind(k, number);
    let line = &mut k.state().interrupts[number as usize];
    (line.taken, line.automatic) = (false, false);
    true
}
