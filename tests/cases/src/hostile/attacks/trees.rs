//! Attacks by work that is cheap to make and expensive to undo: it is undone on the time of who makes it, or in pieces that nobody notices.

use core::time::Duration;

use tench::mem::Mem;
use tench::memory::make;
use tench::procs::Procs;
use tench::sys::{Cap, Endpoint, Kind, Message, OWN_SPACE, Wait};
use tench::thread::Builder;
use tench::time::sleep;

use super::kernel::{SERVERS, tree};
use super::{Attack, empty, held, said, soon};
use crate::case::Outcome;

/// The attacks.
pub const ATTACKS: &[Attack] = &[
    Attack::new("trees-at-exit", "100,000 capabilities that go with a process hold nobody up", at_exit)
        .answered_within(PART),
    Attack::new("trees-urgent", "nor do they if the server's deadlines pass all the time", urgent)
        .answered_within(PART),
    Attack::new("tree-freed", "nor those that go with a block of memory", freed).answered_within(PART),
    Attack::new("tree-revoked", "nor those that are revoked", revoked),
    Attack::new("tree-moved", "nor those that are sent to a server, which does not want them", moved),
    Attack::new("tree-killed", "nor those of a process that is killed while it makes more", killed).endless(),
];

/// Microseconds within which the client is answered beside what is deleted in parts: a round of it takes more than one request, of which each
/// may find a part under way.
const PART: u64 = 3000;
/// Microseconds from one deadline to the next.
const DEADLINE: u64 = 30;
/// Nodes of 256 copies.
const NODES: u32 = 126;

fn at_exit() -> Outcome {
    plant()
}

/// A process ends that has made much, while deadlines of the process server's pass, which are overdue until it has done with that.
fn urgent() -> Outcome {
    let child = Procs::STANDARD.prepare("cases")?;
    child.argument("attack")?;
    child.argument("plant")?;
    let child = child.start()?;
    let watch = move || {
        let own = tench::process::id();
        while Procs::STANDARD.status(child).is_ok_and(|status| !status.state.has_ended()) {
            let _ = Procs::STANDARD.wait_until(own, soon(DEADLINE));
        }
    };
    let watching = said(Builder::new().spawn(watch))?;
    held(Procs::STANDARD, child)?;
    watching.join();
    Ok(())
}

/// A part: makes much, and ends.
pub fn plant() -> Outcome {
    for _ in 0..3 {
        tree(NODES)?;
    }
    Ok(())
}

fn freed() -> Outcome {
    let (block, root) = tree(NODES)?;
    Mem::STANDARD.free(block.address)?;
    equal!(root.identify()?.kind, Kind::Null);
    Ok(())
}

fn revoked() -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let (_, root) = tree(8)?;
    // Some copies are derived from this one, the others from none that is left.
    for index in 32..60 {
        let node = make::<tench::sys::CapNode>(8)?.leak();
        root.install_node(index, node)?;
        for number in 0..256 {
            let place = tench::sys::CapAddress::new(index, number);
            root.copy_from(place, OWN_SPACE, endpoint.cap().address())?;
        }
    }
    equal!(endpoint.cap().revoke()?, 28 * 256);
    root.delete()?;
    Ok(())
}

fn moved() -> Outcome {
    for server in SERVERS {
        let (_, root) = tree(NODES / 2)?;
        // Requests that take a capability, and some that do not exist.
        for method in [3_u64, 4, 1, 13, 99] {
            let spare = empty()?;
            let copy = root.copy_to(spare);
            let mut message = Message::new(method);
            message.push(tench::process::id()).push(u64::from(empty()?.0)).move_cap(spare);
            let _ = Cap::<Endpoint>::new(server).call_with(&message, Wait::until(soon(5000)));
            if copy.is_ok() {
                let _ = OWN_SPACE.delete_at(spare);
            }
        }
        let mut message = Message::new(4);
        message.move_cap(root);
        let _ = Cap::<Endpoint>::new(server).call_with(&message, Wait::until(soon(50_000)));
    }
    Ok(())
}

fn killed() -> Outcome {
    loop {
        let (_, root) = tree(NODES)?;
        sleep(Duration::from_millis(1));
        let _ = root.delete();
    }
}
