//! Interrupts: a device's interrupt line becomes a signal on a notification.
//!
//! A line is masked when it fires and unmasked when its owner acknowledges it, so a slow or dead driver costs the
//! others nothing.
//!
//! A doorbell is a capability to notify another core: signalling it interrupts the core that it names, which may run
//! another kernel. The lines below [`DOORBELLS`] serve as doorbells.
//!
//! A doorbell has no device to be quieted, so its owner can leave acknowledging to the kernel: an *automatic* line is
//! unmasked when its signal is taken. If a thread waits for the signal when the line fires, that is at once, and the
//! line is not masked at all; otherwise the notification holds the line until then. So for each time that a thread
//! takes the signal there are at most two interrupts: one that woke the thread, and one that was held.
//!
//! Handlers run with interrupts off except at [`preemption_point::nested`], where
//! other interrupts get in. Only the timer's handler passes such preemption points, when more deadlines have passed
//! than one batch. Its own line is masked then, and every other handler is short. So at most two handlers are active at
//! once, whatever programs do.

use tench_abi::object::{DOORBELLS, LINES, line_flags};
use tench_abi::{Error, Kind, Rights};

use crate::notification::Notification;
use crate::object::Ref;
use crate::slot::Cap;
use crate::syscall::{Outcome, argument, capability_slot, slot_at};
use crate::thread::Thread;
use crate::{Arch, Kernel, cspace, derivation, latency_tracer, notification, preemption_point, timers};

/// The state of one interrupt line.
#[derive(Clone, Copy, Default)]
pub struct InterruptLine {
    /// The notification to signal.
    pub notification: Option<Ref<Notification>>,
    /// Bits that an interrupt sets in the notification's word.
    pub badge: u64,
    /// Next line of the same notification, as its number plus 1; 0 if this is the last.
    pub next: u16,
    /// Previous line of the same notification, as its number plus 1; 0 if this is the first.
    pub previous: u16,
    /// Set while a capability for the line exists.
    pub taken: bool,
    /// Set if taking the line's signal acknowledges the interrupt. Such a line serves as a doorbell and has a bit in
    /// [`Notification::held`].
    pub automatic: bool,
}

/// Handles one pending interrupt, if there is one. Returns the notification to signal, and the bits.
#[inline(always)]
pub fn serve<A: Arch>(k: &mut Kernel<A>) -> Option<(Ref<Notification>, u64)> {
    let number = k.arch().interrupt_acknowledge()?;
    k.state().statistics.interrupts += 1;
    if number == k.arch().timer_interrupt() {
        latency_tracer::timer(k);
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

/// Returns whether a line that has fired is to be masked until it is acknowledged: always, except for an automatic line
/// whose signal is about to be taken. An automatic line that has to wait is held by its notification.
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

/// Returns the bit of a doorbell's line in [`Notification::held`].
#[inline(always)]
const fn bit(line: u32) -> u16 {
    1 << (line % DOORBELLS as u32)
}

/// Unmasks the lines that a notification holds, before its signals are taken.
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

/// Handles the rest of a timer interrupt for which one batch of deadlines was not enough.
///
/// The interrupt is ended first, because the controller lets no other in while it is active. The timer's line is masked
/// meanwhile, like any other that has fired, whatever deadlines are set: deadlines that pass are found here.
#[cold]
#[inline(never)]
fn expire_rest<A: Arch>(k: &mut Kernel<A>, number: u32) {
    k.arch().interrupt_disable(number);
    k.arch().interrupt_end(number);
    loop {
        preemption_point::nested(k);
        if timers::expire(k) {
            break;
        }
    }
    k.arch().interrupt_enable(number);
}

/// Returns the line of the interrupt capability in `x0`.
fn line<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<u32, Error> {
    let slot = capability_slot(k, thread, Kind::Interrupt, Rights::WRITE)?;
    Ok(k.slot(slot).cap.object as u32)
}

/// Performs `InterruptGet`.
pub fn get<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::InterruptControl, Rights::WRITE)?;
    let (number, flags) = (argument(k, thread, 1), argument(k, thread, 2));
    if flags & !(line_flags::EDGE | line_flags::AUTOMATIC) != 0 {
        return Err(Error::InvalidArgument);
    }
    let Ok(number) = u32::try_from(number) else { return Err(Error::InvalidInterrupt) };
    if number as usize >= LINES || !k.arch().interrupt_exists(number) || number == k.arch().timer_interrupt() {
        return Err(Error::InvalidInterrupt);
    }
    let (edge, automatic) = (flags & line_flags::EDGE != 0, flags & line_flags::AUTOMATIC != 0);
    if automatic && u64::from(number) >= DOORBELLS || !k.arch().interrupt_allows(number, edge) {
        return Err(Error::InvalidArgument);
    }
    if k.state().interrupts[number as usize].taken {
        return Err(Error::Busy);
    }
    let address = argument(k, thread, 3);
    let destination = cspace::destination(k, 0, address)?;
    let line = &mut k.state().interrupts[number as usize];
    (line.taken, line.automatic) = (true, automatic);
    k.arch().interrupt_claim(number, edge);
    derivation::insert_child(k, destination, Cap::new(Kind::Interrupt, number as usize, 0));
    Ok(Outcome::Done)
}

/// Performs `InterruptBind`.
pub fn bind<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let number = line(k, thread)?;
    let address = argument(k, thread, 1);
    if address == 0 {
        unbind(k, number);
        return Ok(Outcome::Done);
    }
    let slot = slot_at(k, address, Kind::Notification, Rights::WRITE)?;
    let cap = k.slot(slot).cap;
    let target = cap.named::<Notification>().ok_or(Error::WrongType)?;
    if k.state().interrupts[number as usize].notification.is_some() {
        return Err(Error::AlreadyBound);
    }
    let link = number as u16 + 1;
    let next = core::mem::replace(&mut k.get(target).first_interrupt, link);
    if next != 0 {
        k.state().interrupts[next as usize - 1].previous = link;
    }
    let badge = cap.badge().max(1);
    let line = &mut k.state().interrupts[number as usize];
    *line = InterruptLine { notification: Some(target), badge, next, previous: 0, ..*line };
    k.arch().interrupt_enable(number);
    Ok(Outcome::Done)
}

/// Performs `InterruptAcknowledge`. An automatic line is unmasked only when its signal is taken.
pub fn acknowledge<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let number = line(k, thread)?;
    let line = k.state().interrupts[number as usize];
    if line.notification.is_some() && !line.automatic {
        k.arch().interrupt_enable(number);
    }
    Ok(Outcome::Done)
}

/// Returns the number that a doorbell capability holds for a core and one of its lines.
fn doorbell_number(core: u64, line: u64) -> usize {
    (core * DOORBELLS + line) as usize
}

/// Performs `InterruptDoorbell`.
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
    let destination = cspace::destination(k, 0, address)?;
    derivation::insert_child(k, destination, Cap::new(Kind::Doorbell, doorbell_number(core, line), 0));
    Ok(Outcome::Done)
}

/// Notifies a doorbell, for `Signal`.
pub fn notify<A: Arch>(k: &mut Kernel<A>, doorbell: usize) {
    let doorbell = doorbell as u64;
    k.arch().notify(doorbell / DOORBELLS, (doorbell % DOORBELLS) as u32);
}

/// Masks a line and unlinks it from its notification's list, which can be as long as there are lines.
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

/// Ends a line's binding when the last capability to the line is deleted.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, number: u32) -> bool {
    unbind(k, number);
    let line = &mut k.state().interrupts[number as usize];
    (line.taken, line.automatic) = (false, false);
    true
}
