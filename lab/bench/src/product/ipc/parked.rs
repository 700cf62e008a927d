//! Measurement of calls to a server that owes many replies.

use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::{Operation, Tag};
use tench::memory::{Made, make};
use tench::sys::{Cap, Endpoint, Reply};

use super::actor::{Actor, ROUNDS, Role, call, perform};
use super::programs::{Arguments, Program};
use super::{Bench, problem};

/// Number of callers that wait for their replies meanwhile.
const PARKED: usize = 100;

/// Measures `call_parked`: there and back without words, from a client that uses a floating-point register between its
/// calls, to a server that has received and parked 100 callers, each in a reply object of its own, and that receives
/// and replies with a named reply object.
pub fn run(bench: &Bench) -> Result<(), String> {
    let what = "call_parked";
    let endpoint = make::<Endpoint>(0).map_err(problem(what))?;
    let endpoint = endpoint.cap();
    let caller = Role::waiting(call(Operation::Call, &[raw(endpoint)]));
    let client = Role { finishes: true, rounds: ROUNDS, ..caller.clone() }.program(Program::CallFloat);
    let reply = make::<Reply>(0).map_err(problem(what))?;
    let serve = with_reply(Operation::ReplyReceive, endpoint, &reply);
    let server = bench.actor(what, Role::waiting(serve).there())?;
    // The callers and their reply objects live until the end.
    let mut parked = Vec::with_capacity(PARKED);
    for _ in 0..PARKED {
        parked.push(park(bench, endpoint, &server, &caller).map_err(problem(what))?);
    }
    server.begin_again(&bench.other, &serve, ROUNDS + 1).map_err(problem(what))?;
    let [server, client] = bench.act(what, [server, bench.actor(what, client)?])?;
    // The client's floating-point instruction belongs to its program.
    bench.round_trip(what, [&client, &server], 1)
}

/// Lets the server receive the call of one more caller, and suspend itself.
fn park(
    bench: &Bench,
    endpoint: Cap<Endpoint>,
    server: &Actor,
    caller: &Role,
) -> Result<(Actor, Made<Reply>), tench::memory::Error> {
    let reply = make::<Reply>(0)?;
    server.begin_again(&bench.other, &with_reply(Operation::Receive, endpoint, &reply), 1)?;
    let caller = Actor::new(&bench.other, caller.clone())?;
    perform(&[server, &caller])?;
    Ok((caller, reply))
}

/// Returns the arguments of a receive at an endpoint with a named reply object.
fn with_reply(operation: Operation, endpoint: Cap<Endpoint>, reply: &Made<Reply>) -> Arguments {
    let mut arguments = call(operation, &[raw(endpoint), Tag::new(0, 0).with(Tag::REPLY).0]);
    arguments[11] = raw(reply.cap());
    arguments
}

/// Returns a capability's address as system calls take it.
fn raw<T>(cap: Cap<T>) -> u64 {
    u64::from(cap.address().0)
}
