//! Tests of single rules about signals.

use tench_abi::{CapAddress, Rights};
use tench_monitor::message::carried::{Carried, ObjectClass, Server};
use tench_monitor::transfer::proxies::{BITS, Error, Kernel, OWN_PROXIES};
use tench_quota::Client;

use crate::kernel::Receiver;
use crate::rules::{calm, hand_in};
use crate::world::World;

const fn held(number: u64, is_plain: bool) -> Carried {
    Carried::Held { class: ObjectClass::Notification, number, rights: Rights::WRITE, is_plain, server: None }
}

/// Returns a notification of core 0, a badged capability to it, and both on core 1.
fn shared(world: &mut World) -> [CapAddress; 4] {
    let plain = world.make_notification(0);
    let badged = world.mint(0, plain);
    let there = [plain, badged].map(|slot| world.pass(0, slot, 1).unwrap());
    [plain, badged, there[0], there[1]]
}

/// Lets core 1's monitor collect and send signals. Returns what core 0's processes are told.
fn delivered(world: &mut World) -> Vec<(usize, u64)> {
    world.hear(1);
    let mut delivered = Vec::new();
    while let Some((number, bits)) = world.nodes[1].proxies.next_signal(0) {
        world.nodes[1].proxies.said(0);
        world.nodes[0].proxies.signal(1, number, bits);
        delivered.append(&mut world.kernel(0).delivered);
    }
    delivered
}

/// Lets a process of core 1 signal, with a badge of its own if the capability has none.
fn signal(world: &mut World, slot: CapAddress, bits: u64) {
    assert_eq!(world.kernel(1).signal_with(slot, bits), None);
}

#[test]
fn a_notification_is_signalled_with_its_badge_or_with_those_made_on_the_way() {
    let mut world = calm(2);
    let [plain, badged, there, there_badged] = shared(&mut world);
    let badge = world.meaning(0, badged).badge;
    signal(&mut world, there, 1);
    assert_eq!(delivered(&mut world), [(0, 1)]);
    signal(&mut world, there_badged, 1);
    assert_eq!(delivered(&mut world), [(0, badge)]);
    let minted = world.mint(1, there);
    let other = world.meaning(1, minted).badge;
    signal(&mut world, minted, 1);
    assert_eq!(delivered(&mut world), [(0, other)]);
    assert_eq!(delivered(&mut world), []);
    // It can be signalled, and nothing else.
    assert_eq!([there, there_badged].map(|slot| world.kernel(1).caps[&slot.0].rights), [Rights::WRITE; 2]);
    let copy = hand_in(&mut world, 1, there_badged);
    assert!(world.kernel(1).copy(copy, Rights::WRITE, 1 << 20).is_err());
    world.kernel(1).delete(copy);
    // It comes home with its meaning, also with a badge that was made elsewhere.
    for (slot, bits) in [(there, 0), (there_badged, badge), (minted, other)] {
        let home = world.pass(1, slot, 0).unwrap();
        assert_eq!(world.kernel(0).receiver(home), Some(Receiver::Signalled(0)));
        assert_eq!(world.kernel(0).caps[&home.0].badge, bits);
    }
    assert_eq!((world.nodes[0].proxies.count(), world.nodes[1].proxies.count()), ((2, 0), (0, 2)));
    world.kernel(0).drop_one(plain);
    world.judge();
    world.drop_everything();
}

#[test]
fn other_capabilities_belong_to_no_server() {
    let mut world = calm(2);
    let plain = world.make_notification(0);
    let slot = hand_in(&mut world, 0, plain);
    let carried = world.nodes[0].proxies.send(slot, 1, |_| Some(Server { number: 1, is_personal: true }));
    assert!(matches!(
        carried,
        Ok(Carried::Held { class: ObjectClass::Notification, server: None, is_plain: true, .. })
    ));
    let slot = hand_in(&mut world, 0, plain);
    let deaf = world.kernel(0).copy(slot, Rights::READ, 0).unwrap();
    assert_eq!(world.nodes[0].proxies.send(deaf, 1, |_| None), Err(Error::NotSendable));
}

#[test]
fn signals_that_were_not_said_are_one() {
    let mut world = calm(2);
    let [_, badged, there, there_badged] = shared(&mut world);
    let badge = world.meaning(0, badged).badge;
    for bit in 0..1000 {
        signal(&mut world, there, 1 << (bit % 50));
        signal(&mut world, there_badged, 1);
        world.hear(1);
    }
    assert_eq!(delivered(&mut world), [(0, (1 << 50) - 1), (0, badge)]);
}

#[test]
fn endless_signals_delay_nothing_else() {
    let mut world = calm(2);
    let [_, badged, there, there_badged] = shared(&mut world);
    let others: Vec<CapAddress> = (0..4).map(|_| world.pass(0, badged, 1).unwrap()).collect();
    for slot in others.iter().chain([&there, &there_badged]) {
        signal(&mut world, *slot, 1);
    }
    let mut seen = Vec::new();
    // There is room for one at a time, and meanwhile two of them are signalled again.
    for _ in 0..6 {
        world.hear(1);
        let (number, _) = world.nodes[1].proxies.next_signal(0).unwrap();
        world.nodes[1].proxies.said(0);
        seen.push(number);
        [there, there_badged].into_iter().for_each(|slot| signal(&mut world, slot, 1));
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 6);
}

#[test]
fn signals_before_a_drop_arrive_at_their_receiver_alone() {
    let mut world = calm(2);
    let [_, badged, there, there_badged] = shared(&mut world);
    let badge = world.meaning(0, badged).badge;
    let bits = world.kernel(1).caps[&there_badged.0].badge;
    signal(&mut world, there, 1 << 40);
    signal(&mut world, there_badged, 1);
    [there, there_badged].into_iter().for_each(|slot| world.kernel(1).drop_one(slot));
    world.nodes[1].proxies.sweep();
    // The bit is reused at once.
    let other = world.make_notification(0);
    let other = world.mint(0, other);
    let other = world.pass(0, other, 1).unwrap();
    assert_eq!(world.kernel(1).caps[&other.0].badge, bits);
    // They are held until the signal was sent.
    assert_eq!(world.nodes[1].proxies.next_release(0), None);
    assert_eq!(delivered(&mut world), [(0, badge), (0, 1 << 40)]);
    assert!(world.nodes[1].proxies.next_release(0).is_some());
    assert_eq!(delivered(&mut world), []);
    world.judge();
    world.drop_everything();
}

#[test]
fn a_thread_that_has_received_something_is_waited_for() {
    let mut world = calm(2);
    let [_, _, there, there_badged] = shared(&mut world);
    signal(&mut world, there, 2);
    let name = *world.kernel(1).listeners.keys().next().unwrap();
    world.kernel(1).listen(name);
    signal(&mut world, there, 4);
    [there, there_badged].into_iter().for_each(|slot| world.kernel(1).drop_one(slot));
    for _ in 0..2 {
        world.nodes[1].proxies.sweep();
        // The proxy of the badged one has gone.
        assert_eq!(world.nodes[1].proxies.count(), (0, 1));
    }
    assert!(world.nodes[1].proxies.next_release(0).is_some());
    world.nodes[1].proxies.release_sent(0);
    assert_eq!(world.nodes[1].proxies.next_release(0), None);
    assert_eq!(delivered(&mut world), [(0, 6)]);
    assert_eq!(world.nodes[1].proxies.count(), (0, 0));
    assert!(world.nodes[1].proxies.next_release(0).is_some());
}

#[test]
fn revoked_notifications_cannot_be_signalled() {
    let mut world = calm(3);
    let [plain, badged, there, there_badged] = shared(&mut world);
    let far = world.pass(1, there_badged, 2).unwrap();
    [there, there_badged].into_iter().for_each(|slot| signal(&mut world, slot, 1));
    world.revoke(0, badged);
    // What was on its way is dropped.
    assert_eq!(delivered(&mut world), [(0, 1)]);
    world.signal(2, far);
    world.run_until_idle();
    assert_eq!(delivered(&mut world), []);
    signal(&mut world, there, 1);
    world.end_server(0, plain);
    assert_eq!(delivered(&mut world), []);
    world.judge();
    world.drop_everything();
}

#[test]
fn a_monitor_signals_what_it_does_not_have() {
    let mut world = calm(3);
    let [_, badged, ..] = shared(&mut world);
    let endpoint = world.make(0);
    let endpoint = hand_in(&mut world, 0, endpoint);
    let Ok(Carried::Held { number: last, .. }) = world.nodes[0].proxies.send(endpoint, 2, |_| None) else { panic!() };
    let to_two = world.pass(0, badged, 2).unwrap();
    for number in (0..last + 5).chain([u64::MAX]) {
        world.nodes[0].proxies.signal(2, number, u64::MAX);
    }
    // Its signal has the badge.
    let badge = world.meaning(0, badged).badge;
    assert_eq!(core::mem::take(&mut world.kernel(0).delivered), [(0, badge)]);
    world.kernel(2).drop_one(to_two);
}

#[test]
fn no_client_takes_all_proxies_of_notifications() {
    let mut world = calm(2);
    let mut receive = |is_plain, requester| {
        let mut slots = Vec::new();
        while let Ok(slot) = world.nodes[0].proxies.receive(&held(5000 + slots.len() as u64, is_plain), 1, requester) {
            slots.push(slot);
            assert!(slots.len() < BITS + OWN_PROXIES, "it never ends");
        }
        slots
    };
    let (first, second) = (receive(false, Client::alone(7)), receive(false, Client::alone(8)));
    assert_eq!((first.len(), second.len()), (BITS / 2, BITS / 4));
    assert_eq!(
        (receive(true, Client::alone(7)).len(), receive(true, Client::alone(8)).len()),
        (OWN_PROXIES / 2, OWN_PROXIES / 4)
    );
    // Unused proxies are found when they are needed.
    world.kernel(0).delete(second[3]);
    assert!(world.nodes[0].proxies.receive(&held(7000, false), 1, Client::alone(8)).is_ok());
    assert_eq!(world.nodes[0].proxies.receive(&held(7001, false), 1, Client::alone(8)), Err(Error::Full));
}

#[test]
fn a_core_that_has_stopped_is_told_nothing() {
    let mut world = calm(2);
    let [_, _, there, there_badged] = shared(&mut world);
    let all = [there, there_badged];
    all.into_iter().for_each(|slot| signal(&mut world, slot, 1));
    world.hear(1);
    assert!(world.nodes[1].proxies.next_signal(0).is_some());
    world.nodes[1].proxies.lose(0);
    for _ in 0..2 {
        assert_eq!((world.nodes[1].proxies.next_signal(0), world.nodes[1].proxies.has_signals()), (None, false));
        all.into_iter().for_each(|slot| signal(&mut world, slot, 1));
        world.hear(1);
    }
    all.into_iter().for_each(|slot| world.kernel(1).drop_one(slot));
    world.nodes[1].proxies.sweep();
    world.hear(1);
    world.check_empty(1);
}

#[test]
fn without_memory_nothing_changes() {
    for carried in [held(1, true), held(1, false)] {
        let mut world = calm(2);
        for calls in 0..2 {
            world.kernel(0).patience = Some(calls);
            assert_eq!(world.nodes[0].proxies.receive(&carried, 1, Client::alone(1)), Err(Error::Full));
            assert_eq!(world.nodes[0].proxies.next_release(1), Some(1));
            world.nodes[0].proxies.release_sent(1);
            world.hear(0);
            world.check_empty(0);
        }
        world.kernel(0).patience = Some(2);
        assert!(world.nodes[0].proxies.receive(&carried, 1, Client::alone(1)).is_ok());
    }
}
