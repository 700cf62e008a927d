//! Endpoints that are found by name, hoarded, and never replied to.

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use tench::abi::power::identity;
use tench::memory;
use tench::sys::{Cap, CapAddress, Endpoint, Kind, Message, OWN_CSPACE, Reply, Rights, Wait};
use tench::{again, println, process, time};
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::{Transfer, split_pid};
use tench_names_interface::{Failure as NamesFailure, Names};
use tench_procs_interface::pid::Shown;
use tench_procs_interface::protocol::State;

use crate::processes::{on, procs, spawn, spawn_with_powers, text, wait};
use crate::share::{quiet, settled, take_slot, until};

/// The name that the server of this program registers.
const NAME: &str = "cores/badge";
/// Time for which a guest waits in vain before it is killed.
const MOMENT: Duration = Duration::from_millis(5);
/// Time after which a message that nobody receives is dropped.
const FORGOTTEN: Duration = Duration::from_secs(11);
/// Number of messages that a guest sends: more than one process's fair share.
const MESSAGES: u32 = 40;
/// Word of the transfer that brings a capability.
const CALL: u64 = 6;

/// Returns an error as text.
fn wrong<E: core::fmt::Display>(error: E) -> String {
    error.to_string()
}

fn ended_well(monitor: Monitor, process: u64) -> Result<(), String> {
    let ended = wait(monitor, process)?;
    match (ended.state, ended.detail) {
        (State::Exited, 0) => Ok(()),
        (state, detail) => Err(format!("process {} of this program {state} {detail}", Shown(process))),
    }
}

/// Registers a name with a server on one core, and finds it with a client on another: the server sees which process
/// calls.
pub fn named(monitor: Monitor, core: u64, other: u64) -> Result<(), String> {
    let server = spawn(monitor, core, &["cores", "badge"])?;
    let client = spawn(monitor, other, &["cores", "badge-of", &core.to_string()])?;
    ended_well(monitor, client)?;
    ended_well(monitor, server)
}

/// Runs the server: replies to one request with the process number in its badge.
pub fn badge() -> Result<(), String> {
    serve_once(NAME, |badge| [identity(badge)])
}

/// Registers a name, and replies to one request with words made from its badge.
fn serve_once<const N: usize>(name: &str, words: impl FnOnce(u64) -> [u64; N]) -> Result<(), String> {
    let endpoint = memory::make::<Endpoint>(0).map_err(wrong)?;
    let reply = memory::make::<Reply>(0).map_err(wrong)?;
    let public = take_slot()?;
    endpoint.cap().mint_to(public, Rights::WRITE | Rights::CALL, 0).map_err(wrong)?;
    again(|| Names::STANDARD.register(name, Cap::new(public))).map_err(wrong)?;
    let received = endpoint.cap().receive(Wait::FOREVER.with_reply(reply.cap())).map_err(wrong)?;
    reply.cap().reply(&Message::with_words(0, &words(received.badge()))).map_err(wrong)
}

/// Runs the client.
pub fn badge_of(core: u64) -> Result<(), String> {
    let found: Cap<Endpoint> =
        again(|| Names::STANDARD.wait_for(NAME, take_slot().unwrap_or(CapAddress::NULL))).map_err(wrong)?;
    let response = found.call(&Message::new(0)).map_err(wrong)?;
    let own = process::id();
    if response.words() != [own] {
        return Err(format!("the server saw {:?} in the place of {}", response.words(), Shown(own)));
    }
    println!("a server of core {core} was found by its name, and saw that process {} asked", Shown(own));
    Ok(())
}

/// Registers one per-core name with servers on two cores, and looks it up with a client on each, which waits for the
/// name: each client finds its own core's server. When the servers have ended, the name is free.
pub fn own(monitor: Monitor, cores: [u64; 2], name: &str) -> Result<(), String> {
    let clients = cores.map(|core| spawn(monitor, core, &["cores", "own-client", name]));
    // The clients wait meanwhile.
    time::sleep(10 * MOMENT);
    let servers = cores.map(|core| spawn_with_powers(monitor, core, &["cores", "own-server", name]));
    for process in clients.into_iter().chain(servers) {
        ended_well(monitor, process?)?;
    }
    let [core, other] = cores;
    println!("cores {core} and {other} each had a {name} of their own, which saw who asked");
    Ok(())
}

/// Runs the server: replies to one request with the process number in its badge and its own.
pub fn own_server(name: &str) -> Result<(), String> {
    serve_once(name, |badge| [identity(badge), process::id()])
}

/// Runs the client.
pub fn own_client(name: &str) -> Result<(), String> {
    let found: Cap<Endpoint> =
        again(|| Names::STANDARD.wait_for(name, take_slot().unwrap_or(CapAddress::NULL))).map_err(wrong)?;
    let (response, own) = (found.call(&Message::new(0)).map_err(wrong)?, process::id());
    match *response.words() {
        [badge, server] if badge == own && split_pid(server).0 == split_pid(own).0 => Ok(()),
        ref other => Err(format!("process {} asked its own core's {name}, and got the reply {other:?}", Shown(own))),
    }
}

/// Looks a name up, again and again, and keeps the capabilities until the request fails.
pub fn hoard() -> Result<(), String> {
    let mut count = 0;
    loop {
        match Names::STANDARD.look_up("clock", take_slot()?) {
            Ok(_) => count += 1,
            Err(NamesFailure::Rejected(why)) if count > 0 => {
                println!("it was refused when there were many: {why}");
                break;
            }
            Err(failure) => return Err(failure.to_string()),
        }
    }
    loop {
        time::sleep(Duration::from_secs(1));
    }
}

/// Looks a name up, again and again, and drops the capabilities.
pub fn drop_all(times: u64) -> Result<(), String> {
    let slot = take_slot()?;
    for _ in 0..times {
        let found: Cap<Endpoint> = again(|| Names::STANDARD.look_up("clock", slot)).map_err(wrong)?;
        found.delete().map_err(wrong)?;
    }
    println!("a name was looked up {times} times");
    Ok(())
}

/// Lets guests on another core call an endpoint that never replies, and kills them.
pub fn mute(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    let endpoint = memory::make::<Endpoint>(0).map_err(wrong)?;
    let reply = memory::make::<Reply>(0).map_err(wrong)?;
    let slot = take_slot()?;
    procs(monitor, core)?;
    let before = quiet(monitor)?;
    endpoint.cap().mint_to(slot, Rights::WRITE | Rights::CALL, 1).map_err(wrong)?;
    for _ in 0..times {
        let guest = spawn(monitor, core, &["cores", "muted"])?;
        monitor.give(guest, CALL, Cap::new(slot)).map_err(text)?;
        // The guest calls. This side is not told when the guest is killed.
        let received = endpoint.cap().receive(Wait::FOREVER.with_reply(reply.cap())).map_err(wrong)?;
        time::sleep(MOMENT);
        on(monitor, guest, |procs| procs.kill(guest))?;
        // The reply object that held the guest's call becomes free.
        let quiet = memory::make::<Endpoint>(0).map_err(wrong)?;
        let is_empty = || {
            let tried = quiet.cap().try_receive(Wait::FOREVER.with_reply(reply.cap()));
            !matches!(tried, Err(tench::sys::Error::ReplyInUse))
        };
        until(is_empty)?;
        if received.badge() != 1 {
            return Err(format!("somebody asked with badge {}", received.badge()));
        }
    }
    let _ = OWN_CSPACE.delete_at(slot);
    settled(monitor, &before)?;
    println!("{times} processes of core {core} were killed while they waited here, and nobody waits for them any more");
    Ok(())
}

/// Lets guests on another core send messages to an endpoint at which nobody receives, as many as are accepted, and end.
pub fn unheard(monitor: Monitor, core: u64, times: u64) -> Result<(), String> {
    let endpoint = memory::make::<Endpoint>(0).map_err(wrong)?;
    let slot = take_slot()?;
    endpoint.cap().mint_to(slot, Rights::WRITE | Rights::CALL, 1).map_err(wrong)?;
    for _ in 0..times {
        let guest = spawn(monitor, core, &["cores", "unheard-of"])?;
        monitor.give(guest, CALL, Cap::new(slot)).map_err(text)?;
        ended_well(monitor, guest)?;
    }
    // Nobody receives these messages, but they are not kept for ever, although the endpoint still exists.
    time::sleep(FORGOTTEN);
    println!("{times} processes of core {core} sent messages that nobody heard");
    crate::call::call(monitor, core, 1)
}

/// Runs the guest: sends as many messages as it can.
pub fn unheard_of(monitor: Monitor) -> Result<(), String> {
    let slot = take_slot()?;
    monitor.take(slot).map_err(text)?;
    let endpoint = Cap::<Endpoint>::new(slot);
    (0..MESSAGES).try_for_each(|_| endpoint.send(&Message::new(0), Wait::FOREVER).map_err(wrong))
}

/// Runs the guest: calls the endpoint that it receives.
pub fn muted(monitor: Monitor) -> Result<(), String> {
    let slot = take_slot()?;
    let (Transfer { word, .. }, _) = monitor.take(slot).map_err(text)?;
    let is_endpoint = OWN_CSPACE.identify_at(slot).is_ok_and(|found| found.kind == Kind::Endpoint);
    if word != CALL || !is_endpoint {
        return Err(format!("{word} was sent"));
    }
    Cap::<Endpoint>::new(slot).call(&Message::new(0)).map(drop).map_err(wrong)
}
