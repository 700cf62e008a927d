//! Attacks with the capabilities of others: a child hands its own over, and ends.

use alloc::format;

use tench::abi::CapAddress;
use tench::abi::layout::slot;
use tench::clock::Clock;
use tench::console::protocol::Console;
use tench::files::Files;
use tench::mem::protocol::Error as MemError;
use tench::mem::{Failure as MemFailure, Mem};
use tench::memory::make;
use tench::names::Names;
use tench::procs::protocol::Error as ProcsError;
use tench::procs::{Failure as ProcsFailure, Procs};
use tench::sys::{Cap, Endpoint, Message, Wait, offer_slots};
use tench::thread::Builder;
use tench::time::{Duration, sleep};

use super::{Attack, empty, said, soon};
use crate::case::Outcome;

pub const ATTACKS: &[Attack] = &[
    Attack::new("borrowed-end", "whoever ends a child in its name gets a reply, and the server goes on", || {
        in_its_name(false)
    }),
    Attack::new(
        "borrowed-wait",
        "who waits in the name of a child that ends is refused, and the servers go on",
        wait_in_its_name,
    )
    .first(),
    Attack::new(
        "borrowed-registration",
        "what is registered in the name of a process that has ended does not stay",
        || {
            after_its_end(|names, _| {
                let endpoint = make::<Endpoint>(0)?;
                for number in 0..32 {
                    // Refused, or gone with the process that registered it.
                    let _ = names.register(&format!("borrowed/{}/{number}", tench::process::id()), endpoint.cap());
                }
                Ok(())
            })
        },
    ),
    Attack::new("borrowed-ends", "nor do ends of streams that are opened in it", || {
        after_its_end(|_, files| {
            for _ in 0..32 {
                let _ = files.pipe(empty()?, empty()?);
            }
            Ok(())
        })
    }),
    Attack::new("borrowed-name", "in the name of a process that is taken apart nothing begins", || in_its_name(true)),
];

/// Stack of a waiting thread, in bytes.
const STACK: usize = 8 << 10;
/// Process builders of the child, so that its end is handled in parts.
const PREPARED: usize = 40;

/// Uses what a child had, after ending the child: before that is complete, or after it.
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
    // The child waits for a reply; this thread requests its end in its name.
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
    let slot = empty()?;
    equal!(mem.allocate(12, slot).err(), Some(MemFailure::Refused(MemError::Ended)));
    Ok(())
}

/// Does something with the child's capabilities to the name server and the file server, when the child has ended and
/// both know that.
fn after_its_end(work: fn(Names, Files) -> Outcome) -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let mut child = Procs::STANDARD.prepare("cases")?;
    child.give(endpoint.cap())?;
    child.argument("attack")?;
    child.argument("hand-over-tables")?;
    let process = child.start()?;
    let slots = [empty()?, empty()?];
    offer_slots(&slots);
    let received = endpoint.cap().receive(Wait::until(soon(500_000)))?;
    equal!(received.caps().len(), 2);
    said(Procs::STANDARD.kill(process))?;
    sleep(Duration::from_millis(2));
    let [names, files] = slots.map(Cap::<Endpoint>::new);
    work(Names::at(names), Files::at(files))
}

/// Runs a part that gives its parent its name server and file server, and waits.
pub fn hand_over_tables() -> Outcome {
    let mut message = Message::new(0);
    message.copy_cap(slot::NAMES).copy_cap(slot::FILES);
    let _ = Cap::<Endpoint>::new(slot::EXTRA).call(&message);
    Ok(())
}

/// Lets threads wait at each server in the name of a child, among others that wait in their own, and then ends the
/// child. A server that took the reply objects of the former to be empty would receive with one of them, and so never
/// receive anything any more.
fn wait_in_its_name() -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let mut child = Procs::STANDARD.prepare("cases")?;
    child.give(endpoint.cap())?;
    child.argument("attack")?;
    child.argument("hand-over-others")?;
    let process = child.start()?;
    let slots = [empty()?, empty()?, empty()?, empty()?];
    offer_slots(&slots);
    let received = endpoint.cap().receive(Wait::until(soon(500_000)))?;
    equal!(received.caps().len(), 4);
    let lent = slots.map(Cap::<Endpoint>::new);
    let clock = said(Names::STANDARD.look_up(Clock::NAME, empty()?))?;
    let own = [Cap::new(slot::PROCS), clock, Cap::new(slot::NAMES), Cap::new(slot::CONSOLE)];
    // The process's own waits are first and last, so that none of the bound objects is free.
    for ways in [own, lent, lent, own] {
        for (server, way) in ways.into_iter().enumerate() {
            let thread = Builder::new().stack_size(STACK).spawn(move || wait_at(server, way));
            said(thread)?.detach();
        }
        sleep(Duration::from_millis(1));
    }
    said(Procs::STANDARD.kill(process))?;
    sleep(Duration::from_millis(2));
    // All servers reply, whatever they keep from now on.
    for _ in 0..4 {
        for ways in [own, lent] {
            for (server, way) in ways.into_iter().enumerate() {
                let thread = Builder::new().stack_size(STACK).spawn(move || wait_at(server, way));
                said(thread)?.detach();
            }
        }
        sleep(Duration::from_millis(1));
        said(Clock::at(own[1]).time())?;
        said(Console::STANDARD.state())?;
        said(Names::STANDARD.look_up(Clock::NAME, empty()?))?;
        said(Procs::STANDARD.status(tench::process::id()))?;
    }
    Ok(())
}

/// Waits at a server for something that does not come.
fn wait_at(server: usize, way: Cap<Endpoint>) {
    match server {
        0 => drop(Procs::at(way).wait(tench::process::id())),
        1 => drop(Clock::at(way).delay(u64::MAX >> 2)),
        2 => drop(Names::at(way).wait_for("borrowed/never", CapAddress(16_000))),
        _ => drop(Console::at(way).get(1)),
    }
}

/// Runs a part that gives its parent the other servers, and waits.
pub fn hand_over_others() -> Outcome {
    let clock = empty()?;
    said(Names::STANDARD.look_up(Clock::NAME, clock))?;
    let mut message = Message::new(0);
    message.copy_cap(slot::PROCS).copy_cap(clock).copy_cap(slot::NAMES).copy_cap(slot::CONSOLE);
    let _ = Cap::<Endpoint>::new(slot::EXTRA).call(&message);
    Ok(())
}

/// Runs a part that gives its parent what it has, and waits.
pub fn hand_over() -> Outcome {
    let mut message = Message::new(0);
    message.copy_cap(slot::MEM).copy_cap(slot::PROCS);
    let _ = Cap::<Endpoint>::new(slot::EXTRA).call(&message);
    Ok(())
}
