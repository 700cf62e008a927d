//! Helping: on which scheduling context a thread runs, and at which priority, while other threads wait for it.
//!
//! `check_helping` checks after each step that each thread runs on the context that follows from scratch. These tests
//! check the consequences:
//!
//! ```text
//! requests   work for a caller
//! chains     servers that call servers
//! queues     senders that wait to be received
//! own        a server's own work
//! honest     servers that call each other, and a program that makes arbitrary calls
//! random     all of it in any order
//! ```

mod actors;
mod chains;
mod honest;
mod lengths;
mod own;
mod queues;
mod random;
mod requests;
mod rings;

use actors::{Actor, Stage};
use tench_abi::Operation;
use tench_kernel::helping::heights::MAX_HEIGHT;

/// Makes a low client that calls the first of `length` servers, each of which calls the next; then a high client calls
/// the first.
fn chain(stage: &mut Stage, length: usize, served: bool) -> (Actor, Vec<Actor>, Actor) {
    let servers: Vec<Actor> = (0..length).map(|_| stage.server(10, served)).collect();
    let (low, high) = (stage.actor(5), stage.actor(200));
    stage.hog(100);
    stage.call(low, servers[0]);
    for pair in servers.windows(2) {
        stage.call(pair[0], pair[1]);
    }
    stage.call(high, servers[0]);
    (low, servers, high)
}

/// Number of servers to which a context is propagated, each calling the next.
const CHAIN: usize = MAX_HEIGHT as usize;

/// The ways in which a wait ends.
const ENDS: [fn(&mut Stage, Actor); 3] = [
    |stage, actor| {
        let deadline = stage.machine.thread(actor.thread).timer.key;
        let now = stage.machine.host().time;
        stage.machine.pass_time(deadline - now);
    },
    |stage, actor| {
        stage.manage(Operation::Delete, &[0, actor.capability]);
    },
    |stage, actor| {
        stage.manage(Operation::ThreadSuspend, &[actor.capability]);
    },
];
