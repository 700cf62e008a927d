//! Tests of memory that a server shares with a client in another process.

use alloc::vec;
use alloc::vec::Vec;

use tench::abi::Rights;
use tench::abi::layout::slot;
use tench::memory::{self, make};
use tench::procs::Procs;
use tench::procs::protocol::State;
use tench::shared::{Buffers, Connection};
use tench::sys::{Cap, Endpoint, Instant, Message, Wait};
use tench::time::{self, Duration};
use tench_protocol::{Caller, Event, Factory, Failure, Port, Rejection, Replies, Shared, SharedMut, Slots, interface};

use crate::case::{Case, Outcome};
use crate::stage::Stage;

pub const CASES: &[Case] =
    &[Case::new("SHARE0001", "bytes beyond a message go through shared memory between two processes", two_processes)];

/// Badge of the client.
const BADGE: u64 = 77;
/// Maximum bytes of a buffer.
const LARGEST: u64 = 64 << 10;

/// A service to which bytes travel both ways.
#[interface(client = Blocks, version = 1)]
pub trait BlocksService {
    /// Replies the sum of the bytes.
    #[method(1)]
    fn sum(&mut self, caller: Caller, bytes: Shared<'_>) -> Result<u64, Error>;

    /// Fills the buffer with bytes that count up from a number. Replies their number.
    #[method(2)]
    fn fill(&mut self, from: u8, into: SharedMut<'_>) -> Result<u64, Error>;

    /// Copies the bytes in reverse order.
    #[method(3)]
    fn turn(&mut self, bytes: Shared<'_>, into: SharedMut<'_>) -> Result<(), Error>;

    /// Tells the server that the client has finished.
    #[method(4)]
    fn done(&mut self) -> Result<(), Error>;
}

tench_protocol::codes! {
    /// Reasons for which a request is refused.
    pub enum Error {
        /// The caller is not the client.
        Stranger = 1, "not the client";
    }
}

/// The server.
#[derive(Default)]
struct Server {
    done: bool,
}

/// Returns a copy of the shared bytes.
fn copy_of(bytes: &Shared<'_>) -> Vec<u8> {
    let mut copy = vec![0; bytes.len()];
    bytes.read(0, &mut copy);
    copy
}

impl BlocksService for Server {
    fn sum(&mut self, caller: Caller, bytes: Shared<'_>) -> Result<u64, Error> {
        if caller.process != BADGE {
            return Err(Error::Stranger);
        }
        Ok(copy_of(&bytes).iter().map(|byte| u64::from(*byte)).sum())
    }

    fn fill(&mut self, from: u8, into: SharedMut<'_>) -> Result<u64, Error> {
        let bytes: Vec<u8> = (0..into.len()).map(|index| from.wrapping_add(index as u8)).collect();
        Ok(into.write(0, &bytes) as u64)
    }

    fn turn(&mut self, bytes: Shared<'_>, into: SharedMut<'_>) -> Result<(), Error> {
        let mut copy = copy_of(&bytes);
        copy.reverse();
        into.write(0, &copy);
        Ok(())
    }

    fn done(&mut self) -> Result<(), Error> {
        self.done = true;
        Ok(())
    }
}

fn two_processes(_: &mut Stage) -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let slot = memory::take_slot()?;
    let public = endpoint.cap().mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, BADGE)?;
    let mut child = Procs::STANDARD.prepare("cases")?;
    child.argument("shared")?;
    child.give(public.address())?;
    let process = child.start()?;

    let mut buffers = Buffers::new(LARGEST, 1);
    let mut server = Server::default();
    // Nothing is replied to later, so the bound reply object is never named.
    let mut port = Port::new(endpoint.cap(), Replies::new(Cap::new(slot::REPLY), Factory::NONE), Slots::NONE);
    let end = time::deadline(Duration::from_secs(20));
    while !server.done && Instant::now() < end {
        if port.next(Wait::until(end)) == Event::Request {
            port.carry_out_sharing(&mut buffers, |request, context, reply| {
                Blocks::dispatch(&mut server, request, context, reply)
            });
        }
    }
    port.close().into_iter().for_each(memory::free_slot);
    let status = Procs::STANDARD.wait(process)?;
    equal!((status.state, status.detail), (State::Exited, 0));
    equal!(buffers.count(), 1);
    buffers.forget(BADGE);
    equal!(buffers.count(), 0);
    public.delete()?;
    memory::free_slot(slot);
    Ok(())
}

/// Runs the client. Returns the step that failed, 0 if none did.
pub fn child() -> i32 {
    let server = Cap::<Endpoint>::new(slot::EXTRA);
    let step = client(server).err().unwrap_or(0);
    if Blocks::at(server).done().is_err() { 100 } else { step }
}

fn demand(holds: bool, step: i32) -> Result<(), i32> {
    if holds { Ok(()) } else { Err(step) }
}

fn client(server: Cap<Endpoint>) -> Result<(), i32> {
    // A request for shared memory as it is sent: label, offset, bytes.
    let raw = |offset: u64, bytes: u64| {
        let reply = server.call(&Message::with_words(Blocks::SUM, &[offset, bytes]));
        reply.map(|reply| Rejection::from_code(reply.label(), reply.word(0)))
    };
    demand(raw(0, 0) == Ok(Some(Rejection::NotAttached)), 1)?;
    let slot = memory::take_slot().map_err(|_| 2)?;
    let refused = Blocks::at(server).attach_buffer(LARGEST + 1, slot);
    demand(matches!(refused, Err(Failure::Rejected(Rejection::NoBuffer))), 3)?;
    let (frame, bits) = Blocks::at(server).attach_buffer(LARGEST, slot).map_err(|_| 4)?;
    demand(bits == u64::from(LARGEST.ilog2()), 5)?;
    // A range outside the memory is refused before the server sees it.
    for (offset, bytes) in [(0, LARGEST + 1), (LARGEST, 1), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)] {
        demand(raw(offset, bytes) == Ok(Some(Rejection::BadArguments)), 6)?;
    }
    demand(raw(LARGEST, 0) == Ok(None), 7)?;
    let connection = Connection::new(server, frame, bits).map_err(|_| 8)?;
    let blocks = Blocks::at(&connection);
    let bytes: Vec<u8> = (0..LARGEST).map(|index| (index % 251) as u8).collect();
    let sum = bytes.iter().map(|byte| u64::from(*byte)).sum();
    demand(blocks.sum(&bytes) == Ok(sum), 9)?;
    let mut filled = vec![0; LARGEST as usize];
    demand(blocks.fill(3, &mut filled) == Ok(LARGEST), 10)?;
    demand(filled.iter().enumerate().all(|(index, byte)| *byte == 3_u8.wrapping_add(index as u8)), 11)?;
    let (text, mut turned) = (&bytes[1..1000], [0; 999]);
    blocks.turn(text, &mut turned).map_err(|_| 12)?;
    demand(text.iter().rev().eq(&turned), 13)?;
    // Half of it is in use already.
    let half = vec![0; LARGEST as usize / 2 + 1];
    demand(matches!(blocks.turn(&half, &mut half.clone()), Err(Failure::TooLong)), 14)?;
    drop(connection);
    // Another buffer replaces the first.
    let slot = memory::take_slot().map_err(|_| 15)?;
    let (frame, bits) = Blocks::at(server).attach_buffer(1, slot).map_err(|_| 16)?;
    let connection = Connection::new(server, frame, bits).map_err(|_| 17)?;
    demand(Blocks::at(&connection).sum(&[1; 4096]) == Ok(4096), 18)?;
    demand(raw(0, 4097) == Ok(Some(Rejection::BadArguments)), 19)
}
