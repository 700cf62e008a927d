//! Notifications that are signalled from another core. This program is both sides: the guest is the same program,
//! started on the other core.
//!
//! ```text
//!   host                                       guest
//!   a notification with badge 4 ── give ─────▶ takes it, signals it
//!   an endpoint                 ── give ─────▶ takes it, and calls it for all that follows
//!   checks the signals          ◀─ HEARD ───── with these bits?
//!   sends it without a badge    ── reply ────▶ mints badges of its own, and signals with these
//!   signals that                ◀─ OFFER ───── sends a notification of its own, with a badge or without
//!   sends it back               ── reply ────▶ it is the guest's own again
//!   revokes the first           ◀─ REVOKE ──── signals it: the signal does not arrive
//!   checks that nothing arrived ◀─ SILENT ────
//!   receives that                              signals once more, drops its capabilities, and ends
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use tench::memory::{self, Made};
use tench::sys::{
    Cap, CapAddress, Endpoint, Error, Message, Notification, OWN_CSPACE, Reply, Rights, Wait, offer_slots,
};
use tench::{println, time};
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::Transfer;

use crate::processes::{spawn, text, wait};
use crate::share::{many, settled, take_slot};

/// Badge of the notification that the guest is given, and badges that it mints itself; the last is the last that it
/// signals.
const GIVEN: u64 = 4;
const OWN: [u64; 2] = [16, 1 << 63];
const LAST: u64 = 64;
/// Badge of the guest's own notification, or badge that the host mints for it.
const BADGE: u64 = 8;
const MINTED: u64 = 1 << 40;
/// Number of signals that the guest sends without waiting.
const FLOOD: u64 = 2000;
/// Maximum time that anything may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Word of the transfers that bring capabilities.
const SIGNAL: u64 = 6;

/// Labels of requests and replies.
mod label {
    /// Waits until these bits were signalled, and replies with the notification.
    pub const HEARD: u64 = 1;
    /// Signals the attached notification, and sends it back.
    pub const OFFER: u64 = 2;
    /// Revokes the notification that was given.
    pub const REVOKE: u64 = 3;
    /// Replies whether anything was signalled since.
    pub const SILENT: u64 = 4;
    /// Label of the reply if all is as it should be.
    pub const GOOD: u64 = 5;
    /// Label of the reply otherwise.
    pub const BAD: u64 = 6;
}

fn kernel(error: Error) -> String {
    error.to_string()
}

fn memory(error: memory::Error) -> String {
    error.to_string()
}

/// Lets a guest on another core signal a notification of this process, `times` times.
pub fn signal(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    many(monitor, core, times, signal_once)
}

fn signal_once(monitor: Monitor, core: u64, aloud: bool) -> Result<(), String> {
    let (_, own) = monitor.cores().map_err(text)?;
    let before = monitor.exchanged().map_err(text)?;
    let host = Host {
        notification: memory::make::<Notification>(0).map_err(memory)?,
        endpoint: memory::make::<Endpoint>(0).map_err(memory)?,
        reply: memory::make::<Reply>(0).map_err(memory)?,
        given: take_slot()?,
        arrival: take_slot()?,
        spare: take_slot()?,
    };
    let plain = host.notification.cap();
    let guest = spawn(monitor, core, &["cores", "signaller"])?;
    let given = plain.mint_to(host.given, Rights::all(), GIVEN).map_err(kernel)?;
    monitor.give(guest, SIGNAL, Cap::new(given.address())).map_err(text)?;
    let called = host.endpoint.cap().mint_to(host.spare, Rights::WRITE | Rights::CALL | Rights::GRANT, 1);
    monitor.give(guest, SIGNAL, Cap::new(called.map_err(kernel)?.address())).map_err(text)?;
    let _ = OWN_CSPACE.delete_at(host.spare);
    let mut is_revoked = false;
    while !is_revoked {
        is_revoked = host.serve()?;
    }
    wait_for(plain, LAST)?;
    let ended = wait(monitor, guest)?;
    if ended.exit_code() != Some(0) {
        return Err("the guest found something wrong".to_string());
    }
    [host.given, host.arrival, host.spare].into_iter().for_each(|slot| {
        let _ = OWN_CSPACE.delete_at(slot);
        memory::free_slot(slot);
    });
    if aloud {
        println!("core {core} signalled a notification of core {own}, and core {own} some of core {core}'s");
        println!("it was revoked, and nothing was heard of it any more");
    }
    settled(monitor, &before)
}

/// The host's objects.
struct Host {
    notification: Made<Notification>,
    endpoint: Made<Endpoint>,
    reply: Made<Reply>,
    /// Slot of the capability that the guest was given.
    given: CapAddress,
    /// Slot in which capabilities arrive.
    arrival: CapAddress,
    spare: CapAddress,
}

impl Host {
    /// Replies to a request. Returns true if the guest will make no more.
    fn serve(&self) -> Result<bool, String> {
        let (plain, reply) = (self.notification.cap(), self.reply.cap());
        offer_slots(&[self.arrival]);
        let received = self.endpoint.cap().receive(Wait::FOREVER.with_reply(reply)).map_err(kernel)?;
        let mut response = Message::new(label::GOOD);
        let done = match (received.label(), received.words()) {
            (label::HEARD, [bits]) => {
                response.copy_cap(plain.address());
                wait_for(plain, *bits)
            }
            (label::OFFER, []) => {
                response.copy_cap(self.arrival);
                self.signal_guest(Cap::new(self.arrival))
            }
            (label::REVOKE, []) => {
                let revoked = OWN_CSPACE.revoke_at(self.given).map(drop).map_err(kernel);
                // Signals that were on their way.
                let _ = plain.poll();
                revoked
            }
            (label::SILENT, []) => match plain.poll() {
                Err(Error::WouldBlock) => Ok(()),
                other => Err(format!("what was revoked signalled: {other:x?}")),
            },
            other => Err(format!("{other:?} was asked")),
        };
        if let Err(why) = &done {
            println!("the host: {why}");
            response.restart(label::BAD);
        }
        reply.reply(&response).map_err(kernel)?;
        let _ = OWN_CSPACE.delete_at(self.arrival);
        done.map(|()| received.label() == label::SILENT)
    }

    /// Signals the guest's notification: with its badge, or with a minted one if it has none.
    fn signal_guest(&self, guests: Cap<Notification>) -> Result<(), String> {
        match guests.identify().map_err(kernel)?.badge {
            0 => {
                let minted = guests.mint_to(self.spare, Rights::WRITE, MINTED).map_err(kernel)?;
                let signalled = minted.signal().map_err(kernel);
                let _ = OWN_CSPACE.delete_at(self.spare);
                signalled
            }
            _ => guests.signal().map_err(kernel),
        }
    }
}

/// Waits until these bits were signalled, and no others.
fn wait_for(notification: Cap<Notification>, bits: u64) -> Result<(), String> {
    let (deadline, mut heard) = (time::deadline(PATIENCE), 0);
    while heard & bits != bits {
        heard |= notification.wait_until(deadline).map_err(|error| format!("{heard:#x} of {bits:#x}: {error}"))?;
    }
    if heard == bits { Ok(()) } else { Err(format!("{heard:#x} was signalled in the place of {bits:#x}")) }
}

/// Runs the guest.
pub fn signaller(monitor: Monitor) -> Result<(), String> {
    let [first, second, arrival, spare] = [take_slot()?, take_slot()?, take_slot()?, take_slot()?];
    for slot in [first, second] {
        let (Transfer { word, .. }, _) = monitor.take(slot).map_err(text)?;
        if word != SIGNAL {
            return Err(format!("{word} was sent"));
        }
    }
    let (given, host) = (Cap::<Notification>::new(first), Cap::<Endpoint>::new(second));
    given.signal().map_err(kernel)?;
    ask(host, Message::with_words(label::HEARD, &[GIVEN]), arrival)?;
    // The notification was attached, without a badge.
    let plain = Cap::<Notification>::new(arrival);
    for badge in OWN {
        plain.mint_to(spare, Rights::WRITE, badge).map_err(kernel)?.signal().map_err(kernel)?;
        OWN_CSPACE.delete_at(spare).map_err(kernel)?;
    }
    let again = take_slot()?;
    ask(host, Message::with_words(label::HEARD, &[OWN[0] | OWN[1]]), again)?;
    OWN_CSPACE.delete_at(again).map_err(kernel)?;
    (0..FLOOD).try_for_each(|_| given.signal()).map_err(kernel)?;
    ask(host, Message::with_words(label::HEARD, &[GIVEN]), again)?;
    OWN_CSPACE.delete_at(again).map_err(kernel)?;
    offer(host, again, spare)?;
    ask(host, Message::new(label::REVOKE), again)?;
    match given.signal() {
        // The signal goes nowhere, or the capability is gone already if both sides are on one core.
        Ok(()) | Err(Error::InvalidCapability) => {}
        Err(error) => return Err(kernel(error)),
    }
    ask(host, Message::new(label::SILENT), again)?;
    let last = plain.mint_to(spare, Rights::WRITE, LAST).map_err(kernel)?;
    last.signal().map_err(kernel)?;
    // The signal arrives although the guest deletes its capabilities now.
    [spare, arrival].into_iter().try_for_each(|slot| OWN_CSPACE.delete_at(slot).map(drop)).map_err(kernel)
}

/// Makes a request to the host, which may attach a capability to its reply.
fn ask(host: Cap<Endpoint>, message: Message, arrival: CapAddress) -> Result<(), String> {
    offer_slots(&[arrival]);
    match host.call(&message).map_err(kernel)?.label() {
        label::GOOD => Ok(()),
        _ => Err(format!("the host refuses {}", message.label())),
    }
}

/// Sends notifications to the host, which signals them and sends them back.
fn offer(host: Cap<Endpoint>, home: CapAddress, spare: CapAddress) -> Result<(), String> {
    let own = memory::make::<Notification>(0).map_err(memory)?;
    for (sent, badge, heard) in [(spare, BADGE, BADGE), (own.cap().address(), 0, MINTED)] {
        if badge != 0 {
            own.cap().mint_to(spare, Rights::WRITE, badge).map_err(kernel)?;
        }
        let mut message = Message::new(label::OFFER);
        message.copy_cap(sent);
        ask(host, message, home)?;
        wait_for(own.cap(), heard)?;
        let came = Cap::<Notification>::new(home);
        let found = came.identify().map_err(kernel)?.badge;
        came.signal().map_err(kernel)?;
        // The signal is there at once: no other core is involved.
        let signalled = own.cap().poll();
        if (found, signalled) != (badge, Ok(badge.max(1))) {
            return Err(format!("{badge} came back as {found}, and signalled {signalled:x?}"));
        }
        OWN_CSPACE.delete_at(home).map_err(kernel)?;
    }
    OWN_CSPACE.delete_at(spare).map(drop).map_err(kernel)
}
