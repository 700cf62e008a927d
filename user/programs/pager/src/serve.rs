//! Pagers: one that does its work, and those that do not.

use tench::abi::fault::{Report, reply};
use tench::abi::layout::slot;
use tench::abi::{CapAddress, Rights};
use tench::memory::{self, make};
use tench::procs::{Procs, Status};
use tench::sys::ipc::BOUND_REPLY;
use tench::sys::{Cap, Endpoint, Message, Notification, Wait, offer_slots};
use tench::{println, thread};
use tench_pager::protocol::{PagerClient, Statistics};
use tench_pager::server::{Policy, Server};
use tench_pager::{Error, Frames, Pager};
use tench_protocol::DONE;

use crate::Problem;

/// Log2 of the number of pages that a pager has.
const POOL_BITS: u32 = 8;
/// The number of the client.
const CLIENT: u64 = 1;
/// Notification that tells the watcher of the first fault.
const FAULTED: Cap<Notification> = Cap::new(slot::EXTRA);

/// Starts the client of a pager. Its faults come to `endpoint`.
fn start_client(endpoint: Cap<Endpoint>, task: &str) -> Result<u64, Problem> {
    let rights = Rights::WRITE | Rights::CALL | Rights::GRANT;
    let badged = endpoint.mint_to(memory::take_slot()?, rights, CLIENT)?;
    let mut spawn = Procs::STANDARD.prepare("pager")?;
    spawn.give(badged)?;
    spawn.argument("client")?;
    spawn.argument(task)?;
    let process = spawn.start()?;
    badged.delete()?;
    memory::free_slot(badged.address());
    Ok(process)
}

/// A policy that ends a client that touches what it may not: nothing else would end it.
struct Strict;

impl Policy for Strict {
    fn may_fork(&mut self, _: u64, _: u64) -> bool {
        false
    }

    fn refused(&mut self, client: u64, report: &Report, error: Error) {
        println!("  the pager refuses client {client} the address {:#x}: {error}", report.address);
        FAULTED.signal().unwrap_or_else(|error| println!("  nobody is told: {error}"));
    }
}

/// Serves one client properly, and prints statistics. Fails unless the client ends well.
pub fn honest(task: &str) -> Result<(), Problem> {
    let endpoint = make::<Endpoint>(0)?;
    let at = endpoint.cap();
    let frames = Frames::new(POOL_BITS)?;
    let pool = frames.pool();
    let server = thread::spawn(move || Server::new(at, Pager::new(frames, pool), Strict).run().free());
    let client = start_client(at, task)?;
    if task == "stray" {
        // The client's thread stands still for good.
        FAULTED.wait()?;
        Procs::STANDARD.kill(client)?;
    }
    let status: Status = Procs::STANDARD.wait(client)?;
    let own = PagerClient::at(at);
    let Statistics { fresh, refused, free, .. } = own.statistics()?;
    own.forget(CLIENT)?;
    own.stop()?;
    let all = server.join() as u64;
    println!("  pages that were new: {fresh}; faults refused: {refused}; free pages: {free}, and {all} afterwards");
    match status.exit_code() {
        Some(0) => Ok(()),
        None if task == "stray" => Ok(()),
        _ => Err("the client did not end as it should".into()),
    }
}

/// Attaches regions properly, and treats faults as `conduct` says.
pub fn hostile(conduct: &str) -> Result<(), Problem> {
    let endpoint = make::<Endpoint>(0)?;
    start_client(endpoint.cap(), "work")?;
    let slot: CapAddress = memory::take_slot()?;
    loop {
        offer_slots(&[slot]);
        let request = endpoint.cap().receive(Wait::FOREVER)?;
        if !request.is_fault() {
            // The message brings the client's table; other attachments find no slot.
            BOUND_REPLY.reply(&Message::new(DONE))?;
            continue;
        }
        FAULTED.signal()?;
        match conduct {
            // This notification is never signalled.
            "silent" => drop(make::<Notification>(0)?.cap().wait()?),
            "stop" => BOUND_REPLY.reply(&Message::new(reply::STOP))?,
            "lie" => BOUND_REPLY.reply(&Message::new(reply::RESUME))?,
            "babble" => BOUND_REPLY.reply(&Message::with_words(99, &[!0; 64]))?,
            _ => return Ok(()),
        }
    }
}
