//! Attacks with the capabilities of others: a child hands its own over, and ends.

use tench::abi::layout::slot;
use tench::mem::protocol::Error as MemError;
use tench::mem::{Failure as MemFailure, Mem};
use tench::memory::make;
use tench::procs::protocol::Error as ProcsError;
use tench::procs::{Failure as ProcsFailure, Procs};
use tench::sys::{Cap, Endpoint, Message, Wait, offer_slots};

use super::{Attack, empty, soon};
use crate::case::Outcome;

/// The attacks.
pub const ATTACKS: &[Attack] = &[
    Attack::new("borrowed-end", "who ends a child in its name is answered, and the server goes on", || {
        in_its_name(false)
    }),
    Attack::new("borrowed-name", "in the name of a process that is taken apart nothing begins", || in_its_name(true)),
];

/// Preparations, so that the child is taken apart in parts.
const PREPARED: usize = 40;

/// Uses what a child had, after ending it, in the middle of that or when it is over.
fn in_its_name(at_once: bool) -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let mut child = Procs::STANDARD.prepare("cases")?;
    child.give(endpoint.cap())?;
    child.argument("attack")?;
    child.argument("hand-over")?;
    let process = child.start()?;
    let (mem, procs) = (empty()?, empty()?);
    offer_slots(&[mem, procs]);
    let received = endpoint.cap().receive(Wait::until(soon(500_000)))?;
    equal!(received.caps().len(), 2);
    let (mem, procs) = (Mem::at(Cap::new(mem)), Procs::at(Cap::new(procs)));
    for _ in 0..PREPARED {
        let _prepared = procs.create("hello")?;
    }
    // The child waits for an answer; this thread says in its name that it ends.
    procs.exit(0)?;
    if !at_once {
        Procs::STANDARD.wait_until(process, soon(5_000_000))?;
    }
    let ended = ProcsFailure::Refused(ProcsError::WrongState);
    for _ in 0..3 {
        equal!(procs.create("hello").err(), Some(ended));
    }
    equal!(procs.exit(0), Err(ended));
    Procs::STANDARD.wait_until(process, soon(5_000_000))?;
    let place = empty()?;
    equal!(mem.allocate(12, place).err(), Some(MemFailure::Refused(MemError::Ended)));
    Ok(())
}

/// A part: lends its parent what it has, and waits.
pub fn hand_over() -> Outcome {
    let mut message = Message::new(0);
    message.copy_cap(slot::MEM).copy_cap(slot::PROCS);
    let _ = Cap::<Endpoint>::new(slot::EXTRA).call(&message);
    Ok(())
}
