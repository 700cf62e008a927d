//! Costs of a request by a bare call, by a generated stub, and by the generic message builder; and of `task_info` by a
//! generated stub and by a layer of ports.
//!
//! | key | what |
//! |---|---|
//! | `bare_N` | a call with `N` words whose reply has as many, written by hand: `call0` to `call8` |
//! | `stub_N` | the call by the client that the interface compiler generates |
//! | `message_N` | the call with [`Message`](tench::sys::Message) and [`Received`](tench::sys::Received) |
//! | `…_text`, `…_cap` | with text of 16 bytes there and back; with the copy of a capability |
//! | `stub_N_over`, `message_N_over` | the excess over the bare call |
//! | `served_…` | both sides: the server is written in the same way |
//! | `task_info_stub`, `task_info_port` | a structure of 10 words, both sides, see [`ports`] |
//! | `…_bytes` | the size of the client's function, taken from the program by the host tool |
//!
//! But for `served_…` and `task_info_…`, the server is the same: it echoes words, without looking at them. Each figure
//! is the whole round trip to a thread of the same process and back; it includes taking the words from memory and
//! storing the reply there, which is the same everywhere. The cost of two readings of the counter and of the call of an
//! empty function is subtracted.

mod calls;
mod interface;
pub mod ports;
mod servers;

use alloc::format;
use alloc::string::String;
use core::hint::black_box;

use tench::abi::Error as KernelError;
use tench::memory::make;
use tench::println;
use tench::sys::{Endpoint, Notification};
use tench::thread::{self, JoinHandle};
use tench::time::instructions;

use crate::support::{figure, problem};

use calls::{Function, Given, Got};
use servers::STOP;

/// Number of repetitions of each call; the cheapest counts.
const ROUNDS: usize = 24;
/// Kinds of data that are sent.
const CASES: [&str; 6] = ["0", "1", "4", "8", "text", "cap"];

/// Returns the instructions of one call; the first calls warm up what is allocated once.
fn cost(function: Function, given: &Given, what: &str) -> Result<u64, String> {
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        let mut got = Got::default();
        let function = black_box(function);
        let before = instructions();
        let good = function(black_box(given), &mut got);
        let cost = instructions() - before;
        if !good || !got.is_right(given, what) {
            return Err(format!("{what}: the reply is wrong"));
        }
        least = least.min(cost);
    }
    Ok(least)
}

/// Starts a server in a thread of its own, and returns what its clients send to it.
fn serve(server: fn(tench::sys::Cap<Endpoint>) -> Result<(), KernelError>) -> Result<(Given, Serving), String> {
    let endpoint = make::<Endpoint>(0).map_err(problem("an endpoint"))?;
    let cap = make::<Notification>(0).map_err(problem("a notification"))?;
    let there = endpoint.cap();
    let handle = thread::Builder::new().spawn(move || server(there)).map_err(problem("a server"))?;
    let given =
        Given { endpoint: there, words: [11, 12, 13, 14, 15, 16, 17, 18], text: "sixteen letters!", cap: cap.cap() };
    Ok((given, Serving { handle, _kept: (endpoint, cap) }))
}

/// A running server.
struct Serving {
    handle: JoinHandle<Result<(), KernelError>>,
    _kept: (tench::memory::Made<Endpoint>, tench::memory::Made<Notification>),
}

impl Serving {
    /// Tells the server to stop, and waits until it has.
    fn stop(self, given: &Given) -> Result<(), String> {
        given.endpoint.call0(STOP).map_err(problem("stopping"))?;
        self.handle.join().map_err(problem("a server"))
    }
}

/// Measures and prints everything.
pub fn run() -> Result<(), String> {
    let (given, echo) = serve(servers::echo)?;
    let nothing = cost(calls::NOTHING, &given, "nothing")?;
    for (index, case) in CASES.iter().enumerate() {
        let least = |kind: &str, function| cost(function, &given, &format!("{kind}_{case}")).map(|cost| cost - nothing);
        let bare = least("bare", calls::BARE[index])?;
        let (stub, message) = (least("stub", calls::STUB[index])?, least("message", calls::MESSAGE[index])?);
        for (kind, cost) in [("bare", bare), ("stub", stub), ("message", message)] {
            figure(&format!("{kind}_{case}"), cost);
            println!("sample: {kind} {index} {cost}");
        }
        // Signed: with a stub, the common part can turn out shorter.
        figure(&format!("stub_{case}_over"), stub as i64 - bare as i64);
        figure(&format!("message_{case}_over"), message as i64 - bare as i64);
    }
    echo.stop(&given)?;
    for (kind, server, functions) in [
        ("stub", servers::generated as fn(_) -> _, calls::STUB),
        ("message", servers::generic as fn(_) -> _, calls::MESSAGE),
    ] {
        let (given, serving) = serve(server)?;
        for (index, (case, function)) in CASES.iter().zip(functions).enumerate() {
            let key = format!("served_{kind}_{case}");
            let cost = cost(function, &given, &key)? - nothing;
            figure(&key, cost);
            println!("sample: served_{kind} {index} {cost}");
        }
        if kind == "stub" {
            figure("task_info_stub", cost(calls::TASK_INFO, &given, "task_info_stub")? - nothing);
        }
        serving.stop(&given)?;
    }
    let (given, serving) = serve(ports::server)?;
    ports::prepare(given.endpoint);
    figure("task_info_port", cost(ports::TASK_INFO, &given, "task_info_port")? - nothing);
    serving.stop(&given)
}
