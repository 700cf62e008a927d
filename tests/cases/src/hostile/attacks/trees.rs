//! Attacks by work that is cheap to make and expensive to undo: it is undone on the time of who makes it, or in pieces that nobody notices.

use core::time::Duration;

use tench::mem::Mem;
use tench::memory::make;
use tench::sys::{Cap, Endpoint, Kind, Message, OWN_SPACE, Wait};
use tench::time::sleep;

use super::kernel::{SERVERS, tree};
use super::{Attack, empty, soon};
use crate::case::Outcome;

/// The attacks.
pub const ATTACKS: &[Attack] = &[
    Attack::new("trees-at-exit", "100,000 capabilities that go with a process hold nobody up", at_exit)
        .answered_within(ACCOUNT),
    Attack::new("tree-freed", "nor those that go with a block of memory", freed),
    Attack::new("tree-revoked", "nor those that are revoked", revoked),
    Attack::new("tree-moved", "nor those that are sent to a server, which does not want them", moved),
    Attack::new("tree-killed", "nor those of a process that is killed while it makes more", killed).endless(),
];

/// Microseconds for which the memory server takes back what is on the account of the attack: it serves nobody else meanwhile, which is
/// known to be wrong (docs/status.md). Reservations are kept.
const ACCOUNT: u64 = 60_000;
/// Nodes of 256 copies.
const NODES: u32 = 126;

fn at_exit() -> Outcome {
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
