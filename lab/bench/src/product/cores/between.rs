//! A channel between processes on two cores, both of which poll.
//!
//! ```text
//!   this core                               core 1 (`cores-partner`)
//!   request ─────────────── lines ────────▶ receive, reply
//!   receive ◀────────────── lines ─────────
//!   and the other way round
//! ```
//! The counter counts what all cores execute, so each step of this core is measured by itself, from before the call
//! that does it until after. A poll that the other core's turn interrupts counts that turn, too; the mean of the
//! other rounds is the step's cost.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ptr::NonNull;

use tench::memory::{self, Window};
use tench::procs::Procs;
use tench::sys::thread::poll_hint;
use tench::sys::{Cap, Frame as Memory, MapFlags};
use tench::time::instructions;
use tench_channel::{Calls, Frame, Incoming, Notifier, Side};
use tench_monitor_interface::Monitor;

use super::channel::{LIMIT, WORDS};
use super::{monitor, problem};
use crate::support::{self, figure, reading};

/// Words of the messages.
const LENGTHS: [usize; 3] = [1, 7, 64];
/// Number of round trips of each length.
const ROUNDS: usize = 64;
/// Log2 of the channel's bytes.
const BITS: u64 = 14;
/// Operations of requests: one that is replied to with as many words; one whose words are the number and the length of
/// requests that the other side makes before its reply; and one that ends the partner.
const ECHO: u16 = 1;
const ASK: u16 = 2;
const END: u16 = 3;

/// A side that never sleeps is never woken.
#[derive(Clone, Copy)]
struct Silent;

impl Notifier for Silent {
    fn notify(&self) {}
}

type Channel = Box<Calls<Frame<'static>, Silent>>;

/// Opens one side of the channel in a frame.
fn open(frame: Cap<Memory>, side: Side) -> Result<Channel, String> {
    let window =
        Window::new(frame, BITS as u32, MapFlags::READ | MapFlags::WRITE).map_err(problem("mapping a channel"))?;
    let start = NonNull::new(core::ptr::with_exposed_provenance_mut(window.address())).ok_or("no address")?;
    // The frame stays mapped as long as this process runs.
    core::mem::forget(window);
    // SAFETY: that many bytes stay mapped there for ever, and nothing else in this process knows the address.
    let lines = unsafe { Frame::at(start, 1 << BITS) }.map_err(|_| "the channel is no frame")?;
    Calls::open(&lines, side, Silent, LIMIT).map(Box::new).map_err(|_| "the channel could not be opened".into())
}

/// Measures the work of one side for a round trip of each length: half of what a client and a server do.
pub fn run(monitor: Monitor, procs: Procs) -> Result<(), String> {
    let partner = procs.spawn("bench", &["cores-partner"]).map_err(problem("starting the partner"))?;
    let frame = memory::make::<Memory>(BITS).map_err(|error| error.to_string())?;
    monitor.give(partner, 0, Cap::new(frame.cap().address())).map_err(problem("sending a channel"))?;
    let mut channel = open(frame.cap(), Side::First)?;
    for words in LENGTHS {
        let message = WORDS.get(..words).ok_or("the message is too long")?;
        let work = client(&mut channel, message)? + server(&mut channel, message)?;
        figure(&format!("poll_{words}_between"), work / 2);
    }
    channel.request(END, &[]).map_err(|_| "a request was refused")?;
    procs.wait(partner).map(drop).map_err(problem("waiting for the partner"))
}

/// Returns the cost of a request, and of the poll that finds its reply.
fn client(channel: &mut Channel, message: &[u64]) -> Result<u64, String> {
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let start = instructions();
        let sent = channel.request(ECHO, message);
        let sending = instructions() - start;
        sent.map_err(|_| "a request was refused")?;
        let receiving = loop {
            let start = instructions();
            let found = channel.receive();
            let cost = instructions() - start;
            match found.map_err(problem("the channel"))? {
                Some(Incoming::Reply(..)) => break cost,
                Some(_) => return Err("the partner sends other than replies".into()),
                None => poll_hint(),
            }
        };
        costs.push(sending + receiving);
    }
    Ok(mean(&costs)? - 2 * reading())
}

/// Returns the cost of a poll that finds a request, and of its reply.
fn server(channel: &mut Channel, message: &[u64]) -> Result<u64, String> {
    let mut costs = Vec::new();
    channel.request(ASK, &[ROUNDS as u64, message.len() as u64]).map_err(|_| "a request was refused")?;
    loop {
        let start = instructions();
        let request = match channel.receive().map_err(problem("the channel"))? {
            Some(Incoming::Request(request, _)) => request,
            Some(Incoming::Reply(..)) => break,
            _ => {
                poll_hint();
                continue;
            }
        };
        let sent = channel.reply(request, message);
        costs.push(instructions() - start);
        sent.map_err(|_| "a reply was refused")?;
    }
    if costs.len() != ROUNDS {
        return Err(format!("the partner made {} requests of {ROUNDS}", costs.len()));
    }
    Ok(mean(&costs)? - reading())
}

/// Runs the process on the other core.
pub fn partner() -> Result<(), String> {
    let (monitor, slot) = (monitor(0)?, memory::take_slot().map_err(|error| error.to_string())?);
    monitor.take(slot).map_err(problem("taking the channel"))?;
    let mut channel = open(Cap::new(slot), Side::Second)?;
    loop {
        let (request, count, length) = match channel.receive().map_err(problem("the channel"))? {
            Some(Incoming::Request(request, words)) => match (request.operation(), words) {
                (END, _) => return Ok(()),
                (ASK, &[count, length]) => (request, count, length as usize),
                _ => (request, 0, words.len()),
            },
            _ => {
                poll_hint();
                continue;
            }
        };
        let message = WORDS.get(..length).ok_or("the message is too long")?;
        (0..count).try_for_each(|_| ask(&mut channel, message))?;
        channel.reply(request, message).map_err(|_| "a reply was refused")?;
    }
}

/// Makes a request, and polls until its reply is there.
fn ask(channel: &mut Channel, message: &[u64]) -> Result<(), String> {
    channel.request(ECHO, message).map_err(|_| "a request was refused")?;
    while channel.receive().map_err(problem("the channel"))?.is_none() {
        poll_hint();
    }
    Ok(())
}

/// Returns the mean of the rounds in which no other core had a turn, which takes much longer than any step.
fn mean(costs: &[u64]) -> Result<u64, String> {
    let least = costs.iter().min().copied().unwrap_or(0);
    let alone: Vec<u64> = costs.iter().copied().filter(|cost| *cost < 2 * least).collect();
    if alone.len() < ROUNDS / 8 {
        return Err(format!("only {} of {} steps were not interrupted", alone.len(), costs.len()));
    }
    Ok(support::mean(&alone))
}
