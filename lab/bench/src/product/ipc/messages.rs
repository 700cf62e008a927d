//! Measurements of paths between two threads of different address spaces: messages, signals, yielding.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::message::{MAX_WORDS, REGISTER_WORDS};
use tench::abi::{Operation, Tag};
use tench::memory::make;
use tench::sys::{Cap, Endpoint, Message, Notification};
use tench::time::instructions;

use crate::support::figure;

use super::actor::{HIGHER, ROUNDS, Role, WAITING, call, perform};
use super::address_space::Slot;
use super::passages::across;
use super::programs::{Program, RawRecord};
use super::{Bench, problem};

/// Measures these paths.
pub fn run(bench: &Bench) -> Result<(), String> {
    for length in [0, 8, 10, MAX_WORDS] {
        let paths = round_trip(bench, length)?;
        stub(bench, length, paths)?;
    }
    with_cap(bench)?;
    round_trip_float(bench)?;
    send(bench)?;
    signal(bench)?;
    yields(bench)
}

/// Returns a capability's address as system calls take it.
fn raw<T>(cap: Cap<T>) -> u64 {
    u64::from(cap.address().0)
}

/// Returns the client's and the server's roles in an exchange with `length` words each way.
fn conversation(endpoint: Cap<Endpoint>, length: usize) -> (Role, Role) {
    let tag = Tag::new(0, length).0;
    let client = Role::new(call(Operation::Call, &[raw(endpoint), tag]));
    let server = Role::waiting(call(Operation::ReplyReceive, &[raw(endpoint), tag])).there();
    (client, server)
}

/// Measures `call_N`, from the client's `svc` to the server's first instruction, and `reply_recv_N`, from the server's
/// `svc` to the client's first instruction. The server is the only thread that waits when the client calls; both have
/// the same priority. Returns the sum.
pub fn round_trip(bench: &Bench, length: usize) -> Result<u64, String> {
    let what = "a round trip";
    let endpoint = make::<Endpoint>(0).map_err(problem(what))?;
    let (client, server) = conversation(endpoint.cap(), length);
    let [server, client] = bench.act(what, [bench.actor(what, server)?, bench.actor(what, client)?])?;
    let there = bench.figure(&format!("call_{length}"), &across(&client, &server))?;
    Ok(there + bench.figure(&format!("reply_recv_{length}"), &across(&server, &client))?)
}

/// Measures `stub_N`, which the user library adds to the kernel's two `paths` when this thread calls with a message of
/// `length` words that it already holds: up to eight words as arguments, more in a [`Message`]. The server is an actor,
/// so its side adds nothing.
fn stub(bench: &Bench, length: usize, paths: u64) -> Result<(), String> {
    let what = format!("stub_{length}");
    let endpoint = make::<Endpoint>(0).map_err(problem(&what))?;
    let endpoint = endpoint.cap();
    let server = bench.actor(&what, conversation(endpoint, length).1.priority(WAITING))?;
    perform(&[&server]).map_err(problem(&what))?;
    let message = Message::with_words(0, &[7; MAX_WORDS][..length]);
    let mut calls = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let (before, after, result);
        match length {
            0 => {
                before = instructions();
                result = endpoint.call0(0).map(|_| ());
                after = instructions();
            }
            REGISTER_WORDS => {
                before = instructions();
                result = endpoint.call8(0, 7, 7, 7, 7, 7, 7, 7, 7).map(|_| ());
                after = instructions();
            }
            _ => {
                before = instructions();
                let received = endpoint.call(&message);
                after = instructions();
                result = received.map(|received| assert_eq!(received.words().len(), length));
            }
        }
        result.map_err(problem(&what))?;
        calls.push(RawRecord { before, after, ..RawRecord::default() });
    }
    let server = server.records().map_err(problem(&what))?;
    let sums: Vec<u64> =
        across(&calls, &server).iter().zip(across(&server, &calls)).map(|(there, back)| there + back).collect();
    // This thread has no no-op around its readings: there is one less on each path than in the programs.
    let all = bench.cost(&what, &sums, bench.readings)? + 2;
    figure(&what, all - paths.min(all));
    Ok(())
}

/// Measures `call_cap`: as `call_0`, with a copy of a capability, which the server deletes before it replies.
fn with_cap(bench: &Bench) -> Result<(), String> {
    let what = "call_cap";
    let endpoint = make::<Endpoint>(0).map_err(problem(what))?;
    let given = make::<Notification>(0).map_err(problem(what))?;
    let received = Slot::take().map_err(problem(what))?;
    let (client, server) = conversation(endpoint.cap(), 0);
    let mut client = client;
    client.measured[1] = Tag::new(0, 0).with_caps(1).0;
    let server = server.undo(&[call(Operation::Delete, &[0, received.raw()])]);
    let (client, server) = (bench.actor(what, client)?, bench.actor(what, server)?);
    client.send_cap(given.cap().address());
    server.receive_cap(received.address());
    let [server, client] = bench.act(what, [server, client])?;
    bench.figure("call_cap", &across(&client, &server))?;
    bench.figure("reply_recv_after_cap", &across(&server, &client))?;
    Ok(())
}

/// Measures `round_trip_float`: there and back without words, when client and server both use a floating-point register
/// between any two system calls.
fn round_trip_float(bench: &Bench) -> Result<(), String> {
    let what = "round_trip_float";
    let endpoint = make::<Endpoint>(0).map_err(problem(what))?;
    let (client, server) = conversation(endpoint.cap(), 0);
    let (client, server) = (client.program(Program::CallFloat), server.program(Program::CallFloat));
    let [server, client] = bench.act(what, [bench.actor(what, server)?, bench.actor(what, client)?])?;
    // The floating-point instruction itself belongs to the program.
    let there = bench.cost(what, &across(&client, &server), 1)?;
    let back = bench.cost(what, &across(&server, &client), 1)?;
    figure(what, there + back);
    Ok(())
}

/// Measures `send_recv`, from the `svc` of a `Send` without words to the first instruction of the receiver, which waits
/// and has the higher priority, and `recv_again`, from the receiver's next `Receive` to the sender's first instruction.
fn send(bench: &Bench) -> Result<(), String> {
    let what = "send_recv";
    let endpoint = make::<Endpoint>(0).map_err(problem(what))?;
    let sender = Role::new(call(Operation::Send, &[raw(endpoint.cap())]));
    let receiver = Role::waiting(call(Operation::Receive, &[raw(endpoint.cap())])).there().priority(HIGHER);
    let [receiver, sender] = bench.act(what, [bench.actor(what, receiver)?, bench.actor(what, sender)?])?;
    bench.figure("send_recv", &across(&sender, &receiver))?;
    bench.figure("recv_again", &across(&receiver, &sender))?;
    Ok(())
}

/// Measures `signal_wake`, from the `svc` of a `Signal` to the first instruction of the waiter, which has the higher
/// priority, and `wait_again`, from the waiter's next `Receive` to the signaller's first instruction.
fn signal(bench: &Bench) -> Result<(), String> {
    let what = "signal_wake";
    let notification = make::<Notification>(0).map_err(problem(what))?;
    let signaller = Role::new(call(Operation::Signal, &[raw(notification.cap())]));
    let waiter = Role::waiting(call(Operation::Receive, &[raw(notification.cap())])).there().priority(HIGHER);
    let [waiter, signaller] = bench.act(what, [bench.actor(what, waiter)?, bench.actor(what, signaller)?])?;
    bench.figure("signal_wake", &across(&signaller, &waiter))?;
    bench.figure("wait_again", &across(&waiter, &signaller))?;
    Ok(())
}

/// Measures `yield`, from the `svc` of a `Yield` to the first instruction of the only other thread of equal priority.
fn yields(bench: &Bench) -> Result<(), String> {
    let what = "yield";
    let role = Role::new(call(Operation::Yield, &[]));
    let [here, there] = bench.act(what, [bench.actor(what, role.clone())?, bench.actor(what, role.there())?])?;
    bench.figure("yield", &across(&here, &there))?;
    Ok(())
}
