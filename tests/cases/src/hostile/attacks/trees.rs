//! Attacks by structures that are cheap to make and expensive to delete: they are deleted on their maker's time, or in
//! small parts.

use alloc::vec::Vec;
use core::time::Duration;

use tench::abi::layout::slot;
use tench::clock::Clock;
use tench::mem::Mem;
use tench::memory::{self, make};
use tench::names::Names;
use tench::names::protocol::MAX_NAME;
use tench::println;
use tench::procs::Procs;
use tench::reserve::Reserve;
use tench::sys::{
    Cap, CapAddress, CapNode, Endpoint, Error, Instant, Kind, Message, OWN_CSPACE, Reply, Rights, Wait, offer_slots,
};
use tench::thread::Builder;
use tench::time::{frequency, sleep};
use tench_protocol::{Encode, Text};

use super::kernel::{SERVERS, tree, tree_of};
use super::{Attack, empty, held, said, soon};
use crate::case::Outcome;

pub const ATTACKS: &[Attack] = &[
    Attack::new("trees-at-exit", "100,000 capabilities that go with a process hold nobody up", at_exit)
        .replying_within(PART),
    Attack::new("trees-urgent", "nor do they if the server's deadlines pass all the time", urgent)
        .replying_within(PART),
    Attack::new("tree-freed", "nor those that go with a block of memory", freed).replying_within(PART),
    Attack::new("tree-revoked", "nor those that are revoked", revoked),
    Attack::new("tree-moved", "nor those that are sent to a server, which does not want them", moved),
    Attack::new("tree-half-gone", "what is deleted in part cannot be used, and the rest goes", half_gone),
    Attack::new("tree-regrown", "nor does it help to make more between the parts", regrown),
    Attack::new("tree-given", "nor those that go with where a process would have served that is not started", given),
    Attack::new("tree-proxied", "nor those that are sent to a server of another core", proxied).second(),
    Attack::new("tree-local", "nor if the request is about a name of the own core", local).second(),
    Attack::new("tree-killed", "nor those of a process that is killed while it makes more", killed).endless(),
];

/// Microseconds within which the client gets its replies while something is deleted in parts: a round of it takes
/// several requests, each of which may find a part under way.
const PART: u64 = 3000;
/// Microseconds that a request to a server of another core may take, the turns of the cores included.
const ASKED: u64 = 30_000;
/// Microseconds from one deadline to the next.
const DEADLINE: u64 = 30;
/// Number of nodes of 256 copies.
const NODES: u32 = 126;

fn at_exit() -> Outcome {
    plant()
}

/// Ends a process that has made much while deadlines of the process server's requests pass, which are overdue until it
/// has deleted everything.
fn urgent() -> Outcome {
    let child = Procs::STANDARD.prepare("cases")?;
    child.argument("attack")?;
    child.argument("plant")?;
    let child = child.start()?;
    let watch = move || {
        let own = tench::process::id();
        while Procs::STANDARD.status(child).is_ok_and(|status| !status.state.has_ended()) {
            let _ = Procs::STANDARD.wait_limited(own, soon(DEADLINE));
        }
    };
    let watching = said(Builder::new().spawn(watch))?;
    held(Procs::STANDARD, child)?;
    watching.join();
    Ok(())
}

/// Runs a part of the attack: makes much, and ends.
pub fn plant() -> Outcome {
    for _ in 0..3 {
        tree(NODES)?;
    }
    Ok(())
}

fn freed() -> Outcome {
    let (block, root) = tree(NODES)?;
    Mem::STANDARD.free(block.number)?;
    equal!(root.identify()?.kind, Kind::Null);
    Ok(())
}

fn revoked() -> Outcome {
    let endpoint = make::<Endpoint>(0)?;
    let (_, root) = tree(8)?;
    // Some copies are derived from this one, the others from one that is deleted.
    for index in 32..60 {
        let node = make::<tench::sys::CapNode>(8)?.leak();
        root.install_node(index, node)?;
        for number in 0..256 {
            let slot = tench::sys::CapAddress::new(index, number);
            root.copy_from(slot, OWN_CSPACE, endpoint.cap().address())?;
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
                let _ = OWN_CSPACE.delete_at(spare);
            }
        }
        let mut message = Message::new(4);
        message.move_cap(root);
        let _ = Cap::<Endpoint>::new(server).call_with(&message, Wait::until(soon(50_000)));
    }
    Ok(())
}

/// Number of trees of copies of one endpoint.
const GIVEN: u32 = 12;
/// Number of nested trees.
const SENT: u32 = 3;

/// Prepares a process with the endpoint at which it is to serve, of which there are many copies, but without the memory
/// to start it: no server will be there, so all copies are deleted.
fn given() -> Outcome {
    let endpoint = make::<Endpoint>(0)?.leak();
    for _ in 0..GIVEN {
        tree_of(endpoint.address(), NODES)?;
    }
    let child = Procs::STANDARD.prepare("hello")?;
    child.move_in(endpoint.address(), slot::SERVICE)?;
    child.limit(4096)?;
    check!(child.start().is_err());
    Ok(())
}

/// Sends a tree to the name server, which is on another core.
fn proxied() -> Outcome {
    sent_to_names(|_| {})
}

/// Sends a tree with a request to which this core's monitor itself replies.
fn local() -> Outcome {
    sent_to_names(|message| {
        if let Some(name) = Text::<MAX_NAME>::new(Reserve::NAME) {
            name.encode(message);
        }
    })
}

/// Sends a tree with others nested in it to the name server, with such words, and makes another request meanwhile.
fn sent_to_names(say: fn(&mut Message)) -> Outcome {
    let (_, root) = tree(NODES)?;
    for number in 1..SENT {
        let (_, inner) = tree(NODES)?;
        let slot = CapAddress::new(0, number);
        root.delete_at(slot)?;
        root.move_from(slot, OWN_CSPACE, inner.address())?;
    }
    let slot = empty()?;
    let mut longest = 0;
    let mut ask = || {
        let start = Instant::now();
        let found = Names::STANDARD.look_up(Clock::NAME, slot);
        longest = longest.max(Instant::now().since(start));
        let _ = OWN_CSPACE.delete_at(slot);
        said(found).map(drop)
    };
    (0..20).try_for_each(|_| ask())?;
    let send = move || {
        let mut message = Message::new(Names::LOOK_UP);
        say(&mut message);
        message.move_cap(root);
        let _ = Cap::<Endpoint>::new(slot::NAMES).call_with(&message, Wait::until(soon(1_000_000)));
    };
    let sender = said(Builder::new().spawn(send))?;
    (0..60).try_for_each(|_| ask())?;
    sender.join();
    let longest = longest * 1_000_000 / frequency();
    println!("note: the longest request took {longest} us");
    check!(longest < ASKED);
    Ok(())
}

/// Deletes a root with its nodes in the smallest parts, and tries after each what can be done with the rest.
fn half_gone() -> Outcome {
    let (block, root) = tree(8)?;
    let (slot, spare, node) = (root.address(), empty()?, make::<CapNode>(8)?);
    let inside = CapAddress::new(1, 7);
    let asked = make::<Endpoint>(0)?;
    let asks = asked.cap();
    said(Builder::new().spawn(move || count_arrivals(asks)))?.detach();
    let mut parts = 0;
    let mut left = OWN_CSPACE.delete_part_at(slot, 0);
    while left.is_err() {
        equal!(left, Err(Error::Unfinished));
        let found = root.identify()?;
        equal!((found.kind, found.rights), (Kind::CapNode, Rights::empty()));
        let attempts = [
            root.copy_to(spare).map(drop),
            root.mint_to(spare, Rights::all(), 0).map(drop),
            OWN_CSPACE.copy_from(spare, root, inside),
            OWN_CSPACE.move_from(spare, root, inside),
            root.copy_from(inside, OWN_CSPACE, slot::MEM),
            root.identify_at(inside).map(drop),
            root.delete_at(inside).map(drop),
            root.revoke_at(inside).map(drop),
            root.install_node(60, node.cap()),
            root.remove_node(1, spare).map(drop),
            Cap::<CapNode>::new(slot::CSPACE).install_node(60, root),
        ];
        check!(attempts.iter().all(Result::is_err) && is_empty(spare)?);
        let mut message = Message::new(0);
        match parts % 2 {
            0 => message.copy_cap(slot),
            _ => message.move_cap(slot),
        };
        // The message arrives, without the capabilities that cannot be sent.
        equal!(asks.call(&message)?.words(), [0]);
        parts += 1;
        left = OWN_CSPACE.delete_part_at(slot, 1);
    }
    check!(parts > 8 && is_empty(slot)?);
    equal!(Mem::STANDARD.free(block.number)?, 1 << block.size_bits);
    memory::free_slot(spare);
    Ok(())
}

/// Replies to each request with the number of capabilities that arrived.
fn count_arrivals(endpoint: Cap<Endpoint>) {
    let (Ok(slot), Ok(reply)) = (memory::take_slot(), make::<Reply>(0)) else { return };
    loop {
        offer_slots(&[slot]);
        let Ok(received) = endpoint.receive(Wait::FOREVER.with_reply(reply.cap())) else { return };
        let _ = reply.cap().reply(&Message::with_words(0, &[received.caps().len() as u64]));
        let _ = OWN_CSPACE.delete_at(slot);
    }
}

fn is_empty(slot: CapAddress) -> Outcome<bool> {
    Ok(OWN_CSPACE.identify_at(slot)?.kind == Kind::Null)
}

/// Revokes memory in the smallest parts, and for a while makes objects of it after each.
fn regrown() -> Outcome {
    const MADE: usize = 200;
    let (block, _) = tree(8)?;
    let (memory, address) = (block.untyped, block.untyped.address());
    let slots = (0..MADE).map(|_| empty()).collect::<Outcome<Vec<_>>>()?;
    for slot in &slots {
        match OWN_CSPACE.revoke_part_at(address, 0) {
            Ok(_) | Err(Error::Unfinished) => {}
            Err(error) => return Err(error.into()),
        }
        // While an object is left, nothing can be made, wherever the next object would lie.
        let _ = memory.retype::<Endpoint>(0, *slot);
    }
    while OWN_CSPACE.revoke_part_at(address, 0) == Err(Error::Unfinished) {}
    equal!((memory.query()?.watermark, memory.children()?.objects), (0, 0));
    for slot in slots {
        check!(is_empty(slot)?);
        memory::free_slot(slot);
    }
    equal!(Mem::STANDARD.free(block.number)?, 1 << block.size_bits);
    Ok(())
}

fn killed() -> Outcome {
    loop {
        let (_, root) = tree(NODES)?;
        sleep(Duration::from_millis(1));
        let _ = root.delete();
    }
}
