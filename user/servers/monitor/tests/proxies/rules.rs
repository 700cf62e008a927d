//! Tests of single rules.

use tench_abi::{CapAddress, Rights};
use tench_monitor::message::Malformed;
use tench_monitor::message::carried::{Carried, ObjectClass, PROCESSES, Server};
use tench_monitor::transfer::proxies::{Error, Kernel, OWN_PROXIES, PROXIES};
use tench_quota::Client;

use crate::simulation::Dice;
use crate::world::{SENDABLE, World, sendable};

/// More than are held for a core.
const MANY: usize = 4 * PROXIES;

pub fn calm(count: usize) -> World {
    let mut world = World::new(count, 0);
    world.is_calm = true;
    world
}

const fn held(number: u64, is_plain: bool) -> Carried {
    Carried::Held { class: ObjectClass::Endpoint, number, rights: SENDABLE, is_plain, server: None }
}

const fn returned(number: u64, badge: u64) -> Carried {
    Carried::Returned { number, rights: SENDABLE, badge }
}

/// Returns a copy of a process's capability, in a slot of the monitor.
pub fn hand_in(world: &mut World, at: usize, slot: CapAddress) -> CapAddress {
    let cap = world.kernel(at).caps[&slot.0].clone();
    world.kernel(at).hand_in(cap)
}

/// Sends a process's capability. Returns the number under which it is held.
fn send(world: &mut World, at: usize, slot: CapAddress, to: u64) -> Result<u64, Error> {
    let slot = hand_in(world, at, slot);
    match world.nodes[at].proxies.send(slot, to, |_| None)? {
        Carried::Held { number, .. } => Ok(number),
        other => panic!("{other:?} is no number"),
    }
}

/// Receives as many capabilities as `requester` (the requester) can from core 1.
fn receive_all(world: &mut World, requester: u64) -> Vec<CapAddress> {
    (1000..1000 + MANY as u64)
        .map_while(|number| match world.nodes[0].proxies.receive(&held(number, false), 1, Client::alone(requester)) {
            Ok(slot) => Some(slot),
            Err(why) => {
                assert_eq!(why, Error::Full);
                None
            }
        })
        .collect()
}

#[test]
fn a_sent_message_reaches_its_endpoint_with_its_badge() {
    let mut world = calm(2);
    let plain = world.make(0);
    let badged = world.mint(0, plain);
    let badge = world.meaning(0, badged).badge;
    let (plain, badged) = (world.pass(0, plain, 1).unwrap(), world.pass(0, badged, 1).unwrap());
    assert_eq!(world.follow(1, plain), (1, Some((0, 0))));
    assert_eq!(world.follow(1, badged), (1, Some((0, badge))));
    // No server receives at it there, whatever rights the sender had.
    assert_eq!([plain, badged].map(|slot| world.kernel(1).caps[&slot.0].rights), [SENDABLE; 2]);
    world.judge();
    world.drop_everything();
}

#[test]
fn badges_are_made_where_the_capability_is() {
    let mut world = calm(3);
    let plain = world.make(0);
    let second = world.pass(0, plain, 1).unwrap();
    let third = world.pass(1, second, 2).unwrap();
    let minted = [world.mint(1, second), world.mint(2, third)];
    let badges = [world.meaning(1, minted[0]).badge, world.meaning(2, minted[1]).badge];
    assert_eq!(world.follow(1, minted[0]), (1, Some((0, badges[0]))));
    assert_eq!(world.follow(2, minted[1]), (2, Some((0, badges[1]))));
    // A badge stays, and no other can be made of it.
    let home = world.pass(1, minted[0], 0).unwrap();
    assert_eq!(world.follow(0, home), (0, Some((0, badges[0]))));
    let second = world.pass(2, minted[1], 1).unwrap();
    assert_eq!(world.follow(1, second), (1, Some((0, badges[1]))));
    let copy = hand_in(&mut world, 1, second);
    assert!(world.kernel(1).copy(copy, SENDABLE, 5).is_err());
    world.kernel(1).delete(copy);
    world.judge();
    world.drop_everything();
}

#[test]
fn a_returned_capability_is_the_original_with_no_more_rights() {
    let mut world = calm(2);
    let plain = world.make(0);
    let badged = world.mint(0, plain);
    for slot in [plain, badged] {
        let there = world.pass(0, slot, 1).unwrap();
        let weak = world.weaken(1, there, Rights::WRITE);
        let home = [world.pass(1, there, 0).unwrap(), world.pass(1, weak, 0).unwrap()];
        assert_eq!(home.map(|slot| world.follow(0, slot).0), [0, 0]);
        assert_eq!(home.map(|slot| world.kernel(0).caps[&slot.0].rights), [SENDABLE, Rights::WRITE]);
    }
    assert_eq!((world.nodes[0].proxies.count(), world.nodes[1].proxies.count()), ((2, 0), (0, 2)));
    world.judge();
    world.drop_everything();
}

#[test]
fn a_receiver_of_a_remote_badge_does_not_revoke_it_for_others() {
    let mut world = calm(2);
    let plain = world.make(0);
    let there = world.pass(0, plain, 1).unwrap();
    let minted = world.mint(1, there);
    let homes = [world.pass(1, minted, 0).unwrap(), world.pass(1, minted, 0).unwrap()];
    world.revoke(0, homes[0]);
    assert_eq!(world.follow(0, homes[1]).1, Some((0, world.meaning(1, minted).badge)));
    // Its maker can revoke it, on its core, except for what has gone home.
    let copy = world.copy(1, minted);
    world.revoke(1, minted);
    assert!(!world.kernel(1).caps.contains_key(&copy.0));
    assert!(world.follow(0, homes[1]).1.is_some());
    world.judge();
    world.drop_everything();
}

#[test]
fn over_a_third_core_it_goes_back_as_it_came() {
    let mut world = calm(3);
    let plain = world.make(0);
    let second = world.pass(0, plain, 1).unwrap();
    let third = world.pass(1, second, 2).unwrap();
    assert_eq!(world.follow(2, third), (2, Some((0, 0))));
    // To the core of the endpoint this is an endpoint of core 2, which it does not recognize as its own.
    let around = world.pass(2, third, 0).unwrap();
    assert_eq!(world.follow(0, around), (3, Some((0, 0))));
    let back = world.pass(2, third, 1).unwrap();
    assert_eq!(world.follow(1, back), (1, Some((0, 0))));
    let home = world.pass(1, back, 0).unwrap();
    assert_eq!(world.follow(0, home), (0, Some((0, 0))));
    // As long as core 2 has it, core 1 holds it, and has a proxy.
    [second, back].into_iter().for_each(|slot| world.kernel(1).drop_one(slot));
    world.run_until_idle();
    assert_eq!(world.follow(2, third), (2, Some((0, 0))));
    world.judge();
    world.drop_everything();
}

#[test]
fn revoking_takes_what_other_cores_can_do_at_once() {
    let mut world = calm(3);
    let plain = world.make(0);
    let badged = world.mint(0, plain);
    let (one, two) = (world.pass(0, plain, 1).unwrap(), world.pass(0, badged, 1).unwrap());
    let far = world.pass(1, two, 2).unwrap();
    world.send(1, two, 0, 1, false).unwrap();
    world.revoke(0, badged);
    // No message was delivered since.
    assert_eq!([world.follow(1, two).1, world.follow(2, far).1], [None, None]);
    assert!(world.follow(1, one).1.is_some(), "it has another badge");
    let before = world.kernel(0).of_processes();
    assert!(world.deliver(1, 0));
    assert_eq!(world.kernel(0).of_processes(), before, "it was on its way, and is gone");
    world.end_server(0, plain);
    assert_eq!(world.follow(1, one).1, None);
    // Another object has its address now.
    let other = world.make(0);
    assert_eq!(world.follow(1, one).1, None);
    let other = world.pass(0, other, 1).unwrap();
    assert_eq!(world.follow(1, other), (1, Some((1, 0))));
    world.judge();
    world.drop_everything();
}

#[test]
fn unused_proxies_are_found_and_released() {
    let mut world = calm(2);
    let plain = world.make(0);
    let badged = world.mint(0, plain);
    let (one, two) = (world.pass(0, plain, 1).unwrap(), world.pass(0, badged, 1).unwrap());
    let minted = world.mint(1, one);
    world.kernel(1).drop_one(one);
    assert!(world.nodes[1].proxies.has_proxies());
    world.nodes[1].proxies.sweep();
    assert_eq!((world.nodes[1].proxies.next_release(0), world.nodes[1].proxies.count()), (None, (0, 2)));
    [minted, two].into_iter().for_each(|slot| world.kernel(1).drop_one(slot));
    world.nodes[1].proxies.sweep();
    assert!(!world.nodes[1].proxies.has_proxies());
    assert_eq!(world.kernel(1).slots(), []);
    // It is held until its owner is told.
    assert_eq!(world.nodes[0].proxies.count(), (2, 0));
    world.send_releases(1);
    while world.deliver(1, 0) {}
    assert_eq!((world.nodes[0].proxies.count(), world.kernel(0).slots()), ((0, 0), vec![]));
    assert_eq!(world.nodes[1].proxies.next_release(0), None);
}

#[test]
fn a_new_endpoint_is_not_mistaken_for_an_old_proxy() {
    let mut world = calm(2);
    let plain = world.make(0);
    let there = world.pass(0, plain, 1).unwrap();
    let physical = world.kernel(1).caps[&there.0].physical;
    world.kernel(1).drop_one(there);
    world.nodes[1].proxies.sweep();
    let other = world.make(1);
    assert_eq!(world.kernel(1).caps[&other.0].physical, physical);
    let other = world.pass(1, other, 0).unwrap();
    assert_eq!(world.follow(0, other), (1, Some((1, 0))));
    world.judge();
    world.drop_everything();
}

#[test]
fn a_badge_like_the_name_of_a_proxy_is_none() {
    let mut world = calm(2);
    let plain = world.make(0);
    let badged = world.mint(0, plain);
    let there = world.pass(0, badged, 1).unwrap();
    let name = world.kernel(1).caps[&there.0].badge;
    let own = world.make(1);
    let like = world.kernel(1).caps[&own.0].clone();
    let like = world.kernel(1).hand_in(crate::kernel::Cap { badge: name, ..like });
    assert!(matches!(world.nodes[1].proxies.send(like, 0, |_| None), Ok(Carried::Held { is_plain: false, .. })));
}

#[test]
fn capabilities_that_cannot_be_called_are_not_sent() {
    let mut world = calm(2);
    let plain = world.make(0);
    let slot = hand_in(&mut world, 0, plain);
    let read = world.kernel(0).copy(slot, Rights::READ | Rights::CALL, 0).unwrap();
    assert_eq!(world.nodes[0].proxies.send(read, 1, |_| panic!("it is not sent")), Err(Error::NotSendable));
    // It was revoked before.
    world.revoke(0, plain);
    assert_eq!(world.nodes[0].proxies.send(slot, 1, |_| panic!("it is not sent")), Err(Error::NotSendable));
    assert_eq!((world.nodes[0].proxies.count(), world.kernel(0).slots()), ((0, 0), vec![]));
}

#[test]
fn capabilities_not_sent_or_not_received_are_released() {
    let mut world = calm(2);
    let plain = world.make(0);
    let slots: [CapAddress; 3] = std::array::from_fn(|_| hand_in(&mut world, 0, plain));
    let carried = slots.map(|slot| world.nodes[0].proxies.send(slot, 1, |_| None).unwrap());
    world.nodes[0].proxies.take_back(&carried[..2], 1);
    world.nodes[0].proxies.take_back(&carried[..1], 1);
    assert_eq!((world.nodes[0].proxies.count(), world.kernel(0).slots().len()), ((1, 0), 1));
    let Carried::Held { number, .. } = carried[2] else { panic!("{carried:?}") };
    world.nodes[1].proxies.take_in_vain(&carried[2], 0);
    world.nodes[1].proxies.take_in_vain(&returned(number, 0), 0);
    assert_eq!(world.nodes[1].proxies.next_release(0), Some(number));
    world.send_releases(1);
    while world.deliver(1, 0) {}
    world.kernel(0).drop_one(plain);
    [0, 1].into_iter().for_each(|at| world.check_empty(at));
}

#[test]
fn no_client_takes_all_proxies() {
    let mut world = calm(2);
    let first = receive_all(&mut world, 7);
    assert_eq!(first.len(), PROXIES / 2);
    // What there was no room for is released.
    let refused = 1000 + PROXIES as u64 / 2;
    assert_eq!(world.nodes[0].proxies.next_release(1), Some(refused));
    world.nodes[0].proxies.release_sent(1);
    assert_eq!(world.nodes[0].proxies.next_release(1), None);
    let second = receive_all(&mut world, 8);
    assert_eq!(second.len(), PROXIES / 4);
    // Unused proxies are found when they are needed.
    world.kernel(0).delete(second[3]);
    assert_eq!(receive_all(&mut world, 8).len(), 1);
    // Unbadged ones count as well.
    assert_eq!(world.nodes[0].proxies.receive(&held(5, true), 1, Client::alone(8)), Err(Error::Full));
    assert!(world.nodes[0].proxies.receive(&held(5, true), 1, Client::alone(9)).is_ok());
}

#[test]
fn no_client_takes_all_proxies_that_are_endpoints_of_their_own() {
    let mut world = calm(2);
    let mut receive = |is_plain, requester| {
        let mut numbers = 5000..5100;
        let made = |number| world.nodes[0].proxies.receive(&held(number, is_plain), 1, requester).ok();
        numbers.by_ref().map_while(made).count()
    };
    assert_eq!((receive(true, Client::alone(7)), receive(true, Client::alone(8))), (OWN_PROXIES / 2, OWN_PROXIES / 4));
    assert_eq!(receive(false, Client::alone(7)), 100, "with a badge there is room");
}

#[test]
fn no_more_is_held_for_a_core_than_it_can_use() {
    let mut world = calm(3);
    let plain = world.make(0);
    let mut numbers = Vec::new();
    let why = loop {
        match send(&mut world, 0, plain, 1) {
            Ok(number) => numbers.push(number),
            Err(why) => break why,
        }
        assert!(numbers.len() < MANY, "it never ends");
    };
    assert!((why, numbers.len() >= PROXIES) == (Error::Full, true));
    assert_eq!((world.nodes[0].proxies.count(), world.kernel(0).slots().len()), ((numbers.len(), 0), numbers.len()));
    // There is room for another core, and what comes home needs none.
    let other = send(&mut world, 0, plain, 2).unwrap();
    let there = world.pass(0, plain, 2).unwrap();
    world.pass(2, there, 0).unwrap();
    world.nodes[0].proxies.released(1, other);
    assert_eq!(send(&mut world, 0, plain, 1), Err(Error::Full), "that was not for it");
    world.nodes[0].proxies.released(1, numbers[4]);
    world.nodes[0].proxies.released(1, numbers[4]);
    assert!(send(&mut world, 0, plain, 1).is_ok());
    assert_eq!(send(&mut world, 0, plain, 1), Err(Error::Full));
}

#[test]
fn a_monitor_names_what_it_does_not_have() {
    let mut world = calm(3);
    let plain = world.make(0);
    let badged = world.mint(0, plain);
    let numbers = [plain, badged].map(|slot| send(&mut world, 0, slot, 1).unwrap());
    let slots = world.kernel(0).slots();
    for number in [0, numbers[1] + 1, (1 << 48) - 1].into_iter().chain(numbers) {
        // Core 2 has none of these.
        for badge in [0, 9] {
            assert_eq!(world.nodes[0].proxies.receive(&returned(number, badge), 2, Client::alone(1)), Err(Error::Gone));
            assert_eq!(world.nodes[0].proxies.copy(number, 2, Rights::all(), badge), Err(Error::Gone));
        }
        world.nodes[0].proxies.released(2, number);
    }
    // It claims more rights than can be given.
    for is_plain in [false, true] {
        let all =
            Carried::Held { class: ObjectClass::Endpoint, number: 7, rights: Rights::all(), is_plain, server: None };
        let slot = world.nodes[1].proxies.receive(&all, 0, Client::alone(1)).unwrap();
        assert_eq!(world.kernel(1).caps[&slot.0].rights, SENDABLE);
    }
    // A capability with a badge gets no other.
    assert_eq!(world.nodes[0].proxies.receive(&returned(numbers[1], 9), 1, Client::alone(1)), Err(Error::Gone));
    assert_eq!(world.nodes[0].proxies.copy(numbers[1], 1, Rights::all(), 9), Err(Error::Gone));
    assert_eq!((world.nodes[0].proxies.count(), world.kernel(0).slots()), ((2, 0), slots));
    for _ in 0..2 {
        numbers.iter().for_each(|number| world.nodes[0].proxies.released(1, *number));
        assert_eq!(world.nodes[0].proxies.receive(&returned(numbers[0], 0), 1, Client::alone(1)), Err(Error::Gone));
    }
    assert_eq!((world.nodes[0].proxies.count(), world.kernel(0).slots()), ((0, 0), vec![]));
    assert!(numbers.into_iter().all(|number| send(&mut world, 0, plain, 1).unwrap() > number), "it is used again");
}

#[test]
fn a_monitor_that_sends_without_end_is_not_remembered_without_end() {
    let mut world = calm(2);
    (0..MANY as u64).for_each(|number| world.nodes[0].proxies.take_in_vain(&held(number, false), 1));
    let mut count = 0;
    while world.nodes[0].proxies.next_release(1) == Some(count) {
        world.nodes[0].proxies.release_sent(1);
        count += 1;
    }
    assert!((PROXIES as u64..MANY as u64).contains(&count), "{count}");
    assert_eq!(world.nodes[0].proxies.next_release(1), None);
}

#[test]
fn a_core_that_has_stopped_is_sent_nothing_and_holds_nothing() {
    let mut world = calm(3);
    let plain = world.make(0);
    let there = world.pass(0, plain, 1).unwrap();
    let third = world.pass(1, there, 2).unwrap();
    let from_one = world.make(1);
    let from_one = world.pass(1, from_one, 0).unwrap();
    world.nodes[0].proxies.take_in_vain(&held(99, false), 1);
    world.nodes[0].proxies.lose(1);
    assert_eq!(world.nodes[0].proxies.count(), (0, 1));
    assert_eq!(world.nodes[0].proxies.next_release(1), None);
    assert_eq!(world.follow(2, third).1, None);
    // One was made here, and one came from there.
    for slot in [plain, from_one] {
        let slot = hand_in(&mut world, 0, slot);
        assert_eq!(world.nodes[0].proxies.send(slot, 1, |_| None), Err(Error::Gone));
    }
    let on = world.pass(0, from_one, 2).unwrap();
    world.kernel(2).drop_one(on);
    world.kernel(2).drop_one(third);
    world.kernel(0).drop_one(from_one);
    world.kernel(0).drop_one(plain);
    for at in [2, 0, 2] {
        world.nodes[at].proxies.sweep();
        world.send_releases(at);
        while world.deliver(2, 0) {}
    }
    world.check_empty(0);
}

#[test]
fn without_memory_nothing_changes() {
    for carried in [held(1, true), held(1, false)] {
        let mut world = calm(2);
        let mut calls = 0;
        let slot = loop {
            world.kernel(0).patience = Some(calls);
            let received = world.nodes[0].proxies.receive(&carried, 1, Client::alone(1));
            let is_over = world.kernel(0).patience.take().is_some();
            match received {
                Ok(slot) => break slot,
                Err(why) => assert_eq!(why, Error::Full),
            }
            assert_eq!((is_over, world.nodes[0].proxies.next_release(1)), (false, Some(1)));
            world.nodes[0].proxies.release_sent(1);
            world.check_empty(0);
            calls += 1;
        };
        assert_eq!(calls, 2, "it takes two system calls");
        world.kernel(0).delete(slot);
        world.nodes[0].proxies.sweep();
        world.nodes[0].proxies.release_sent(1);
        world.check_empty(0);
    }
    // The rule holds also for what comes home.
    for badge in [0, 5] {
        let mut world = calm(2);
        let plain = world.make(0);
        let number = send(&mut world, 0, plain, 1).unwrap();
        for calls in 0.. {
            world.kernel(0).patience = Some(calls);
            let received = world.nodes[0].proxies.receive(&returned(number, badge), 1, Client::alone(1));
            world.kernel(0).patience = None;
            assert_eq!(world.kernel(0).slots().len(), 1 + usize::from(received.is_ok()));
            match received {
                Ok(_) => {
                    assert_eq!(calls, if badge == 0 { 1 } else { 2 });
                    break;
                }
                Err(why) => assert_eq!(why, Error::Full),
            }
        }
    }
}

#[test]
fn the_owner_of_an_endpoint_is_known_from_its_badge() {
    let mut world = calm(2);
    let plain = world.make(0);
    let badged = world.mint(0, plain);
    let badge = world.meaning(0, badged).badge;
    for (server, expected) in [
        (None, None),
        (Some(Server { number: 3, is_personal: false }), None),
        (Some(Server { number: 3, is_personal: true }), Some((3, Client::of_badge(badge)))),
    ] {
        let slot = hand_in(&mut world, 0, badged);
        let carried = world.nodes[0].proxies.send(slot, 1, |found| {
            assert_eq!(found.badge, badge);
            server
        });
        let Ok(Carried::Held { number, server: said, is_plain: false, .. }) = carried else { panic!("{carried:?}") };
        assert_eq!((said, world.nodes[0].proxies.client(number)), (server, expected));
        assert_eq!(world.nodes[0].proxies.client(number + 1), None);
    }
}

#[test]
fn each_lost_way_to_the_process_server_is_reported() {
    let mut world = calm(2);
    let plain = world.make(0);
    let process = world.mint(0, plain);
    let badge = world.meaning(0, process).badge;
    let of = |number| Some(Server { number, is_personal: true });
    let send = |world: &mut World, server| {
        let slot = hand_in(world, 0, process);
        match world.nodes[0].proxies.send(slot, 1, |_| server) {
            Ok(Carried::Held { number, .. }) => number,
            other => panic!("{other:?}"),
        }
    };
    let numbers = [None, of(3), of(PROCESSES), of(PROCESSES)].map(|server| send(&mut world, server));
    for number in &numbers[..2] {
        world.nodes[0].proxies.released(1, *number);
        assert_eq!(world.nodes[0].proxies.parted(), None);
    }
    for number in &numbers[2..] {
        world.nodes[0].proxies.released(1, *number);
        assert_eq!(world.nodes[0].proxies.parted(), Some(badge));
        assert_eq!(world.nodes[0].proxies.parted(), None);
    }
    // This does not hold if another core sends it.
    let number = send(&mut world, of(PROCESSES));
    world.nodes[0].proxies.released(0, number);
    assert_eq!(world.nodes[0].proxies.parted(), None);
    // A capability that was not sent in the end is one of them, and so is one sent to a core that has stopped.
    let number = send(&mut world, of(PROCESSES));
    let carried = Carried::Held {
        class: ObjectClass::Endpoint,
        number,
        rights: Rights::CALL,
        is_plain: false,
        server: of(PROCESSES),
    };
    world.nodes[0].proxies.take_back(&[carried], 1);
    assert_eq!(world.nodes[0].proxies.parted(), Some(badge));
    world.nodes[0].proxies.lose(1);
    assert_eq!((world.nodes[0].proxies.parted(), world.nodes[0].proxies.parted()), (Some(badge), None));
}

#[test]
fn two_words_encode_and_decode() {
    let mut dice = Dice::new(3);
    let (mut held, mut returned, mut memory, mut plain, mut known, mut signalled) = (0, 0, 0, 0, 0, 0);
    for _ in 0..2_000_000 {
        let (first, second, kind) = (dice.word(), dice.word(), dice.word() % 8);
        // Random words, and some that are nearly valid.
        let first = if first % 8 == 0 { first } else { first >> 8 & !(0xf1 << 48) | kind << 56 };
        let second = if second % 4 == 0 { second } else { second & 0x1_01ff >> (second >> 60) };
        match Carried::decode([first, second]) {
            Ok(carried) => {
                assert_eq!(carried.encode(), [first, second], "{carried:?}");
                let (number, rights) = match carried {
                    Carried::Held { number, rights, .. } | Carried::Returned { number, rights, .. } => (number, rights),
                    Carried::Memory { number } => (number, Rights::empty()),
                };
                assert!(SENDABLE.contains(rights) && number < 1 << 48, "{carried:?}");
                match carried {
                    Carried::Held { class, is_plain, server, .. } => {
                        held += 1;
                        signalled += usize::from(class == ObjectClass::Notification);
                        assert!(sendable(class).contains(rights), "{carried:?}");
                        plain += usize::from(is_plain);
                        known += usize::from(server.is_some());
                    }
                    Carried::Returned { .. } => returned += 1,
                    Carried::Memory { .. } => memory += 1,
                }
            }
            Err(why) => {
                assert_eq!(why, Malformed::Capability);
                let (kind, rights) = (first >> 56, first >> 48 & 0xff);
                let is_no_server = second & 0xffff == 0 || second & 0xffff > 256 || second >> 16 > 1;
                let is_said = second != 0 && is_no_server && kind != 3;
                let is_none = match kind {
                    1..=3 => rights & 0xf1 != 0 || is_said,
                    4 => rights != 0 || second != 0,
                    5 | 6 => rights & !u64::from(Rights::WRITE.bits()) != 0 || second != 0,
                    _ => true,
                };
                assert!(is_none, "{first:#x} {second:#x}");
            }
        }
    }
    assert!(
        [held, returned, memory, plain, known, signalled].into_iter().all(|count| count > 4_000),
        "{held} {returned} {memory} {plain} {known} {signalled}"
    );
    // And in the other direction.
    for server in
        [None, Some(Server { number: 0, is_personal: true }), Some(Server { number: 255, is_personal: false })]
    {
        for is_plain in [false, true] {
            let class = ObjectClass::Endpoint;
            let carried = Carried::Held { class, number: (1 << 48) - 1, rights: SENDABLE, is_plain, server };
            assert_eq!(Carried::decode(carried.encode()), Ok(carried));
            let carried = Carried::Held {
                class: ObjectClass::Notification,
                number: 3,
                rights: Rights::WRITE,
                is_plain,
                server: None,
            };
            assert_eq!(Carried::decode(carried.encode()), Ok(carried));
        }
    }
    let carried = Carried::Returned { number: 7, rights: Rights::WRITE, badge: u64::MAX };
    assert_eq!(Carried::decode(carried.encode()), Ok(carried));
}
