//! Endpoints that are called from another core. This program is both sides: the guest is the same program, started on
//! the other core.
//!
//! ```text
//!   host                                       guest
//!   its endpoint, with badge 7  ── give ─────▶ takes it
//!   replies                     ◀─ ECHO ────── calls with 0 to 64 words
//!   gives it the badge 5, and   ◀─ OFFER ───── sends an endpoint of its own, without a badge
//!   calls it                    ── ECHO ─────▶ replies, and sends the host's own endpoint back
//!   sends the guest's back      ── reply ────▶ it is the guest's own endpoint again
//!   receives that               ◀─ SAY ─────── sends a message, and waits for no reply
//!   revokes its endpoint        ◀─ LAST ────── gets an error from now on
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tench::memory;
use tench::sys::{Cap, CapAddress, Endpoint, Error, Message, OWN_CSPACE, Received, Reply, Rights, Wait, offer_slots};
use tench::{println, thread, time};
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::Transfer;

use crate::processes::{spawn, text, wait};
use crate::share::{many, settled, take_slot};

/// Badge of the guest's capability, and badge that the host mints for the guest's endpoint.
const HOST_BADGE: u64 = 7;
const GUEST_BADGE: u64 = 5;
/// Word of the transfer that brings the capability.
const CALL: u64 = 5;
/// Time within which the message without a reply is received.
const MOMENT: Duration = Duration::from_millis(10);

/// Labels of requests. The last word of each reply is the badge that the receiver saw.
mod label {
    /// Asks for a reply with each word increased by one.
    pub const ECHO: u64 = 1;
    /// Asks the receiver to call the attached endpoint, and to send it back.
    pub const OFFER: u64 = 2;
    /// Sends a message without a reply.
    pub const SAY: u64 = 6;
    /// Asks the receiver to revoke all capabilities to its endpoint that others have.
    pub const LAST: u64 = 3;
    /// Label of the reply if all is as it should be.
    pub const GOOD: u64 = 4;
    /// Label of the reply otherwise.
    pub const BAD: u64 = 5;
}

fn kernel(error: Error) -> String {
    error.to_string()
}

/// Lets a guest on another core call an endpoint of this process, `times` times.
pub fn call(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    many(monitor, core, times, call_once)
}

fn call_once(monitor: Monitor, core: u64, aloud: bool) -> Result<(), String> {
    let (_, own) = monitor.cores().map_err(text)?;
    let before = monitor.exchanged().map_err(text)?;
    let endpoint = memory::make::<Endpoint>(0).map_err(|error| error.to_string())?;
    let reply = memory::make::<Reply>(0).map_err(|error| error.to_string())?;
    let [arrival, minted] = [take_slot()?, take_slot()?];
    let guest = spawn(monitor, core, &["cores", "caller"])?;
    endpoint.cap().mint_to(minted, Rights::WRITE | Rights::CALL | Rights::GRANT, HOST_BADGE).map_err(kernel)?;
    monitor.give(guest, CALL, Cap::new(minted)).map_err(text)?;
    let _ = OWN_CSPACE.delete_at(minted);
    let mut calls = 0;
    loop {
        offer_slots(&[arrival]);
        let received = endpoint.cap().receive(Wait::FOREVER.with_reply(reply.cap())).map_err(kernel)?;
        calls += 1;
        let mut response = Message::new(label::GOOD);
        match received.label() {
            label::ECHO => echo(&received, &mut response),
            label::OFFER => {
                let back = Cap::<Endpoint>::new(arrival);
                match ask(back, minted) {
                    Ok(()) => drop(response.copy_cap(arrival).push(received.badge())),
                    Err(why) => {
                        println!("the host: {why}");
                        response.restart(label::BAD);
                    }
                }
            }
            _ => {}
        }
        if received.label() == label::SAY {
            match reply.cap().reply(&response) {
                Err(Error::NoCaller) => continue,
                other => return Err(format!("whoever waits for no reply got one: {other:?}")),
            }
        }
        let is_last = received.label() == label::LAST;
        let revoked = if is_last { OWN_CSPACE.revoke_at(endpoint.cap().address()).map(drop) } else { Ok(()) };
        reply.cap().reply(&response).map_err(kernel)?;
        revoked.map_err(kernel)?;
        let _ = OWN_CSPACE.delete_at(arrival);
        if is_last {
            break;
        }
    }
    let ended = wait(monitor, guest)?;
    if ended.exit_code() != Some(0) {
        return Err("the guest found something wrong".to_string());
    }
    [arrival, minted].into_iter().for_each(memory::free_slot);
    if aloud {
        println!("core {core} called an endpoint of core {own} {calls} times, and core {own} one of core {core}'s");
        println!("it was revoked, and could not be called any more");
    }
    settled(monitor, &before)
}

/// Replies with each word increased by one, and the badge.
fn echo(received: &Received, response: &mut Message) {
    let words: Vec<u64> = received.words().iter().take(63).map(|word| word + 1).collect();
    response.extend(&words).push(received.badge());
}

/// Makes the host call the guest's endpoint, for which it mints a badge; the capability that comes back is to the
/// host's own endpoint.
fn ask(guests: Cap<Endpoint>, minted: CapAddress) -> Result<(), String> {
    let home = take_slot()?;
    guests.mint_to(minted, Rights::all(), GUEST_BADGE).map_err(kernel)?;
    offer_slots(&[home]);
    let response = Cap::<Endpoint>::new(minted).call(&Message::with_words(label::ECHO, &[1, 2])).map_err(kernel);
    let _ = OWN_CSPACE.delete_at(minted);
    let found = OWN_CSPACE.identify_at(home).map_err(kernel)?;
    let _ = OWN_CSPACE.delete_at(home);
    memory::free_slot(home);
    let response = response?;
    if response.words() != [2, 3, GUEST_BADGE] {
        return Err(format!("the guest replied {:?}", response.words()));
    }
    match (response.caps().len(), found.badge) {
        (1, HOST_BADGE) => Ok(()),
        (caps, badge) => Err(format!("{caps} capabilities came back, with badge {badge}")),
    }
}

/// Runs the guest.
pub fn caller(monitor: Monitor) -> Result<(), String> {
    let [slot, arrival] = [take_slot()?, take_slot()?];
    let (Transfer { word, .. }, _) = monitor.take(slot).map_err(text)?;
    if word != CALL {
        return Err(format!("{word} was sent"));
    }
    let host = Cap::<Endpoint>::new(slot);
    for length in [0, 1, 8, 9, 63] {
        let words: Vec<u64> = (0..length).collect();
        let response = host.call(&Message::with_words(label::ECHO, &words)).map_err(kernel)?;
        let expected: Vec<u64> = (1..=length).chain([HOST_BADGE]).collect();
        if response.label() != label::GOOD || response.words() != expected {
            return Err(format!("{:?} came for {words:?}", response.words()));
        }
    }
    let own = memory::make::<Endpoint>(0).map_err(|error| error.to_string())?;
    let serving = own.cap();
    let thread = thread::spawn(move || reply_to_one(serving, host));
    offer_slots(&[arrival]);
    let mut offer = Message::new(label::OFFER);
    offer.copy_cap(own.cap().address());
    let response = host.call(&offer).map_err(kernel)?;
    thread.join()?;
    let came_home = response.caps().len() == 1 && is_same(own.cap(), Cap::new(arrival))?;
    if response.label() != label::GOOD || !came_home {
        return Err("the own endpoint did not come back".to_string());
    }
    host.send(&Message::with_words(label::SAY, &[1]), Wait::FOREVER).map_err(kernel)?;
    // A call can overtake the message, and then the host revokes its endpoint.
    time::sleep(MOMENT);
    host.call(&Message::new(label::LAST)).map(drop).or_else(|error| match error {
        // The revoked capability can be gone before the reply has come.
        Error::Aborted => Ok(()),
        other => Err(kernel(other)),
    })?;
    match host.call(&Message::new(label::ECHO)) {
        Err(Error::Aborted | Error::InvalidCapability) => Ok(()),
        other => Err(format!("what was revoked replied {:?}", other.map(|response| response.label()))),
    }
}

/// Replies to one request as the guest's thread, and sends the host's endpoint back.
fn reply_to_one(own: Cap<Endpoint>, host: Cap<Endpoint>) -> Result<(), String> {
    let reply = memory::make::<Reply>(0).map_err(|error| error.to_string())?;
    let received = own.receive(Wait::FOREVER.with_reply(reply.cap())).map_err(kernel)?;
    let mut response = Message::new(label::GOOD);
    echo(&received, &mut response);
    response.copy_cap(host.address());
    reply.cap().reply(&response).map_err(kernel)
}

/// Returns true if two capabilities without badges are to one endpoint: a message sent with one arrives at the other.
fn is_same(one: Cap<Endpoint>, other: Cap<Endpoint>) -> Result<bool, String> {
    let receiver = thread::spawn(move || {
        let reply = memory::make::<Reply>(0).map_err(|error| error.to_string())?;
        let received = one.receive(Wait::FOREVER.with_reply(reply.cap())).map_err(kernel)?;
        reply.cap().reply(&Message::new(label::GOOD)).map_err(kernel)?;
        Ok(received.label() == label::LAST)
    });
    let found = OWN_CSPACE.identify_at(other.address()).map_err(kernel)?;
    let has_replied = other.call(&Message::new(label::LAST)).map_err(kernel)?.label() == label::GOOD;
    let arrived: Result<bool, String> = receiver.join();
    Ok(found.badge == 0 && has_replied && arrived?)
}
