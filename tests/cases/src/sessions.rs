//! Tests of many threads of one process that call over one connection.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::memory::{self, Made, make};
use tench::sys::{Cap, Error as KernelError, Instant, Reply, Wait};
use tench::thread::{self, JoinHandle};
use tench::time::{self, Duration};
use tench_protocol::{Event, Factory, Later, Pending, Port, Replies, Slots, interface};

use crate::case::{Case, Failure, Outcome};
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("SESSION0001", "replies in another order than the requests reach the threads that asked", out_of_order),
    Case::new("SESSION0002", "callers for whom the server has no room wait, and get replies", little_capacity),
    Case::new("SESSION0003", "of threads that call again and again none gets ahead of another", in_turn),
];

/// Number of threads, and calls of each.
const THREADS: usize = 12;
const CALLS: u64 = 20;

/// A service that replies to numbers.
#[interface(client = Tripler, version = 1)]
pub trait TriplerService {
    /// Replies three times the number, and the thread. Errors: `Full`.
    #[method(1)]
    fn ask(&mut self, later: Later<'_, u64, Error>, thread: u64, number: u64) -> Result<Option<u64>, Error>;
}

tench_protocol::codes! {
    /// Reasons for which a request is refused.
    pub enum Error {
        /// No reply object can be made.
        Full = 1, "no reply object";
    }
}

/// Returns the reply that a thread expects.
const fn reply(thread: u64, number: u64) -> u64 {
    ((3 * number) << 8) | thread
}

/// State of the server.
struct Service {
    waiting: Vec<(u64, u64, Pending<u64, Error>)>,
    /// Number of requests of each thread.
    asked: Vec<u64>,
    /// Largest lead of one thread over another while all had more to ask.
    spread: u64,
}

impl TriplerService for Service {
    fn ask(&mut self, later: Later<'_, u64, Error>, thread: u64, number: u64) -> Result<Option<u64>, Error> {
        self.waiting.push((thread, number, later.keep().map_err(|_| Error::Full)?));
        self.asked[thread as usize] += 1;
        let (least, most) = (self.asked.iter().min(), self.asked.iter().max());
        if let (Some(least), Some(most)) = (least, most)
            && *least > 0
            && *most < CALLS
        {
            // Until a thread has called once, it has not come yet: the one before it may go on calling.
            self.spread = self.spread.max(most - least);
        }
        Ok(None)
    }
}

/// Reply objects that live as long as the program.
const FACTORY: Factory = Factory {
    make: || make::<Reply>(0).map(Made::leak).map_err(|_| KernelError::OutOfMemory),
    delete: |_| {},
    refuse: |_| {},
};

/// Lets all threads make all their calls to a server that keeps `room` requests and then replies to the one that
/// `choose` picks by the number of replies so far and of kept requests. Returns the largest lead of one thread.
fn run(capacity: usize, choose: fn(usize, usize) -> usize) -> Outcome<u64> {
    let endpoint = Arc::new(make::<tench::sys::Endpoint>(0)?);
    let threads = (0..THREADS as u64).map(|number| {
        let endpoint = Arc::clone(&endpoint);
        let body = move || {
            let ask = |call| Tripler::at(endpoint.cap()).ask(number, call) == Ok(reply(number, call));
            (0..CALLS).all(ask)
        };
        thread::Builder::new().spawn(body).map_err(|error| Failure::new(alloc::format!("a thread: {error}")))
    });
    let threads: Vec<JoinHandle<bool>> = threads.collect::<Result<_, _>>()?;
    let replies = Replies::new(Cap::new(slot::REPLY), FACTORY);
    let mut port = Port::new(endpoint.cap(), replies, Slots::NONE);
    let mut service = Service { waiting: Vec::new(), asked: vec![0; THREADS], spread: 0 };
    let (mut replied, mut active) = (0, THREADS);
    let end = time::deadline(Duration::from_secs(20));
    while active > 0 {
        while service.waiting.len() < capacity.min(active) {
            check!(Instant::now() < end);
            if port.next(Wait::until(end)) == Event::Request {
                port.carry_out(|request, context, reply| Tripler::dispatch(&mut service, request, context, reply));
            }
        }
        let (thread, number, pending) = service.waiting.remove(choose(replied, service.waiting.len()));
        active -= usize::from(number + 1 == CALLS);
        replied += 1;
        port.finish(pending, &Ok(reply(thread, number)));
    }
    port.close().into_iter().for_each(memory::free_slot);
    for thread in threads {
        check!(thread.join());
    }
    equal!(replied, THREADS * CALLS as usize);
    Ok(service.spread)
}

fn out_of_order(_: &mut Stage) -> Outcome {
    run(THREADS, |_, waiting| waiting - 1).map(drop)
}

fn little_capacity(_: &mut Stage) -> Outcome {
    run(3, |replied, waiting| replied * 7 % 5 % waiting).map(drop)
}

fn in_turn(_: &mut Stage) -> Outcome {
    check!(run(1, |_, _| 0)? <= 1);
    Ok(())
}
