//! Interrupts: a device's line becomes a signal on a notification.
//!
//! A line is masked when it fires and unmasked when its owner acknowledges, so a driver that is slow or dead costs
//! the others nothing.
//!
//! A doorbell is the capability to the other end of such a line: a signal to it interrupts the core that it names, which may be run by
//! another kernel. Lines below [`DOORBELLS`] are the ones that can be rung.
//!
//! Handlers run with interrupts masked but for [`window::nested`](crate::window::nested), where others get in. Only the
//! handler of the timer passes such windows, when more deadlines have passed than one batch; its own line is masked
//! then, and every other handler is short. So at most two interrupts are under way at once, whatever programs do.

use tench_abi::object::DOORBELLS;
use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability_slot, slot_at};
use crate::kernel::INTERRUPTS;
use crate::object::{InterruptLine, Notification, Ref};
use crate::slot::Cap;
use crate::thread::Thread;
use crate::{Arch, Kernel, derivation, space, timers, watch, window};

/// Serves one pending interrupt, if there is one. Answers what is to be signalled.
#[inline]
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
    k.arch().interrupt_disable(number);
    k.arch().interrupt_end(number);
    let line = k.state().interrupts.get(number as usize)?;
    let badge = line.badge;
    line.notification.map(|target| (target, badge))
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
    if flags > 1 {
        return Err(Error::InvalidArgument);
    }
    let Ok(number) = u32::try_from(number) else { return Err(Error::InvalidInterrupt) };
    if number as usize >= INTERRUPTS || !k.arch().interrupt_exists(number) || number == k.arch().timer_interrupt() {
        return Err(Error::InvalidInterrupt);
    }
    if k.state().interrupts[number as usize].taken {
        return Err(Error::Busy);
    }
    let address = argument(k, thread, 3);
    let destination = space::destination(k, 0, address)?;
    k.state().interrupts[number as usize].taken = true;
    k.arch().interrupt_set_edge(number, flags & 1 != 0);
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
    k.state().interrupts[number as usize] =
        InterruptLine { notification: Some(target), badge, next, previous: 0, taken: true };
    k.arch().interrupt_enable(number);
    Ok(Outcome::Done)
}

/// `InterruptAcknowledge`.
pub fn acknowledge<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let number = line(k, thread)?;
    if k.state().interrupts[number as usize].notification.is_some() {
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
    k.state().interrupts[number as usize].taken = false;
    true
}
